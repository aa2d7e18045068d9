//! Writing of wire forms: one pass over the nodes counts the bytes, and a second pass writes them.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::{CHECKSUM, HEADER, LARGE, MAGIC, VERSION, tag};
use crate::column::{try_reserve, try_with_capacity};
use crate::datatype::{Combiner, Datatype, Distribution, Named, Order};
use crate::error::{Error, ErrorClass, Result};

const CALL: &str = "to_wire";

/// Receiver of the bytes of a form.
trait Sink {
    fn bytes(&mut self, bytes: &[u8]);
    /// Receives an array, each value of which is to be written in `width` bytes. `width` is large
    /// enough for all values.
    fn column(&mut self, width: usize, values: &[i64]);
}

/// Sink that counts the bytes.
struct ByteCounter(usize);

impl Sink for ByteCounter {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }

    fn column(&mut self, width: usize, values: &[i64]) {
        self.0 += width * values.len();
    }
}

/// Sink that stores the bytes. The caller has reserved the memory for them.
impl Sink for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn column(&mut self, width: usize, values: &[i64]) {
        fn narrow<const W: usize>(into: &mut Vec<u8>, values: &[i64]) {
            let start = into.len();
            into.resize(start + W * values.len(), 0);
            let (slots, _) = into[start..].as_chunks_mut::<W>();
            for (slot, value) in slots.iter_mut().zip(values) {
                *slot = *value.to_le_bytes().first_chunk().unwrap_or(&[0; W]);
            }
        }
        match width {
            1 => narrow::<1>(self, values),
            2 => narrow::<2>(self, values),
            4 => narrow::<4>(self, values),
            _ => narrow::<8>(self, values),
        }
    }
}

/// Sink that compares the bytes that it receives with those of an existing form.
struct Comparison<'a> {
    form: &'a [u8],
    at: usize,
    differs: Option<usize>,
}

impl Sink for Comparison<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        if self.differs.is_none() {
            let rest = &self.form[self.at..];
            let same = rest.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            self.at += same;
            self.differs = (same < bytes.len()).then_some(self.at);
        }
    }

    fn column(&mut self, width: usize, values: &[i64]) {
        values.iter().for_each(|value| self.bytes(&value.to_le_bytes()[..width]));
    }
}

/// The nodes of a DAG in the order in which the form has them, and the position of each node in
/// this order.
struct Nodes<'a> {
    list: Vec<&'a Datatype>,
    named: [usize; Named::ALL.len()],
    others: HashMap<usize, usize>,
}

/// Position that stands for a node that is not in the list.
const NO_POSITION: usize = usize::MAX;

fn no_room(nodes: usize) -> Error {
    let rule = "there must be memory for a list of the nodes";
    Error::new(ErrorClass::NoMem, CALL, "nodes", nodes, rule)
}

impl<'a> Nodes<'a> {
    fn from_root(root: &'a Datatype) -> Result<Nodes<'a>> {
        let mut nodes =
            Nodes { list: Vec::new(), named: [NO_POSITION; Named::ALL.len()], others: HashMap::new() };
        let mut open = vec![(root, false)];
        while let Some((t, children_done)) = open.pop() {
            if nodes.position(t) != NO_POSITION {
                continue;
            }
            // On the way down, the node is pushed again, below its children. Both the stack and the
            // list are grown by `try_reserve`, so that the process is not aborted if memory is
            // short.
            if !children_done {
                open.push((t, true));
                let mut last = None;
                for child in t.combiner().children().chain(stands_for(t)) {
                    // Neighbouring members of a struct often have the same type, which needs to be
                    // looked up only once.
                    if last != Some(child.id()) && nodes.position(child) == NO_POSITION {
                        try_reserve(CALL, &mut open, 1)?;
                        open.push((child, false));
                    }
                    last = Some(child.id());
                }
                continue;
            }
            // On the way up, all children already have positions, so the node gets the next
            // position.
            let position = nodes.list.len();
            match t.combiner() {
                Combiner::Named(named) => nodes.named[*named as usize] = position,
                _ => {
                    nodes.others.try_reserve(1).map_err(|_| no_room(position))?;
                    nodes.others.insert(t.id(), position);
                }
            }
            try_reserve(CALL, &mut nodes.list, 1)?;
            nodes.list.push(t);
        }
        Ok(nodes)
    }

    fn position(&self, t: &Datatype) -> usize {
        match t.combiner() {
            Combiner::Named(named) => self.named[*named as usize],
            _ => self.others.get(&t.id()).copied().unwrap_or(NO_POSITION),
        }
    }

    /// Writes the number of nodes, and then every node.
    fn write(&self, sink: &mut impl Sink) -> Result<()> {
        let mut writer = Writer { sink, nodes: self, position: 0 };
        writer.unsigned(self.list.len() as u64);
        for (position, t) in self.list.iter().enumerate() {
            writer.position = position;
            writer.node(t)?;
        }
        Ok(())
    }
}

/// Returns the named type that an f90 type stands for, and `None` for any other type.
fn stands_for(t: &Datatype) -> Option<&Datatype> {
    match t.combiner() {
        Combiner::F90Real { .. } | Combiner::F90Complex { .. } | Combiner::F90Integer { .. } => t.expansion(),
        _ => None,
    }
}

struct Writer<'w, 'a, S> {
    sink: &'w mut S,
    nodes: &'w Nodes<'a>,
    /// Position of the node that is being written.
    position: usize,
}

impl<S: Sink> Writer<'_, '_, S> {
    fn unsigned(&mut self, mut value: u64) {
        while value > 0x7f {
            self.sink.bytes(&[value as u8 | 0x80]);
            value >>= 7;
        }
        self.sink.bytes(&[value as u8]);
    }

    fn number(&mut self, value: i64) {
        self.unsigned((value << 1 ^ value >> 63) as u64);
    }

    fn column(&mut self, values: &[i64]) {
        // The highest bit that is set in the magnitude of any value decides the width. The loop has
        // no branches.
        let magnitude = values.iter().fold(0, |bits, v| bits | (v ^ v >> 63) as u64);
        let width = match 64 - magnitude.leading_zeros() {
            0..8 => 1,
            8..16 => 2,
            16..32 => 4,
            _ => 8,
        };
        self.sink.bytes(&[width as u8]);
        self.sink.column(width, values);
    }

    fn distance_to(&self, child: &Datatype) -> usize {
        self.position - self.nodes.position(child)
    }

    fn child(&mut self, child: &Datatype) {
        self.unsigned(self.distance_to(child) as u64);
    }

    fn order(&mut self, order: Order) {
        self.sink.bytes(&[match order {
            Order::C => 0,
            Order::Fortran => 1,
        }]);
    }

    /// Writes the precision and the range of an f90 type. Either can be undefined.
    fn f90(&mut self, p: Option<i64>, r: Option<i64>) {
        self.sink.bytes(&[u8::from(p.is_some()) | u8::from(r.is_some()) << 1]);
        p.into_iter().chain(r).for_each(|value| self.number(value));
    }

    fn node(&mut self, t: &Datatype) -> Result<()> {
        let combiner = t.combiner();
        let tag = tag_of(combiner);
        self.sink.bytes(&[tag | if t.is_large_count() { LARGE } else { 0 }]);
        // The children of a node are written after its tag and before its arguments. A struct is
        // the exception: its children are written as a column after its other columns.
        if !matches!(combiner, Combiner::Struct { .. }) {
            for child in combiner.children().chain(stands_for(t)) {
                self.child(child);
            }
        }
        match combiner {
            Combiner::Named(named) => {
                let name = named.text_name();
                self.sink.bytes(&[named.size() as u8, named.alignment() as u8, name.len() as u8]);
                self.sink.bytes(name.as_bytes());
            }
            Combiner::Dup { .. } | Combiner::ValueIndex { .. } => {}
            Combiner::Contiguous { count, .. } => self.number(*count),
            Combiner::Vector { count, blocklength, stride, .. }
            | Combiner::Hvector { count, blocklength, stride, .. } => {
                [*count, *blocklength, *stride].into_iter().for_each(|value| self.number(value));
            }
            Combiner::Indexed { blocklengths, displacements, .. }
            | Combiner::Hindexed { blocklengths, displacements, .. } => {
                self.unsigned(displacements.len() as u64);
                self.column(blocklengths);
                self.column(displacements);
            }
            Combiner::IndexedBlock { blocklength, displacements, .. }
            | Combiner::HindexedBlock { blocklength, displacements, .. } => {
                self.number(*blocklength);
                self.unsigned(displacements.len() as u64);
                self.column(displacements);
            }
            Combiner::Struct { blocklengths, displacements, types, .. } => {
                self.unsigned(types.len() as u64);
                self.column(blocklengths);
                self.column(displacements);
                self.children(types)?;
            }
            Combiner::Subarray { sizes, subsizes, starts, order, .. } => {
                self.order(*order);
                self.unsigned(sizes.len() as u64);
                [sizes, subsizes, starts].into_iter().for_each(|values| self.column(values));
            }
            Combiner::Darray { size, rank, gsizes, distribs, dargs, psizes, order, .. } => {
                self.order(*order);
                self.number(*size);
                self.number(*rank);
                self.unsigned(gsizes.len() as u64);
                self.column(gsizes);
                self.column(psizes);
                self.distributions(distribs, dargs)?;
            }
            Combiner::F90Real { p, r } | Combiner::F90Complex { p, r } => self.f90(*p, *r),
            Combiner::F90Integer { r } => self.number(*r),
            Combiner::Resized { lb, extent, .. } | Combiner::Bounds { lb, extent, .. } => {
                self.number(*lb);
                self.number(*extent);
            }
        }
        Ok(())
    }
    /// Writes the type of each member of a struct, as the distance back to it.
    fn children(&mut self, types: &[Datatype]) -> Result<()> {
        let mut back = try_with_capacity(CALL, types.len())?;
        let mut last = None;
        for t in types {
            let distance = match last {
                Some((id, distance)) if id == t.id() => distance,
                _ => self.distance_to(t) as i64,
            };
            last = Some((t.id(), distance));
            back.push(distance);
        }
        self.column(&back);
        Ok(())
    }

    /// Writes the distributions of a darray, and the arguments of the distributions.
    fn distributions(&mut self, distribs: &[Distribution], dargs: &[Option<i64>]) -> Result<()> {
        let mut given = try_with_capacity(CALL, dargs.len())?;
        for (distribution, darg) in distribs.iter().zip(dargs) {
            let distribution = match distribution {
                Distribution::Block => 0,
                Distribution::Cyclic => 1,
                Distribution::None => 2,
            };
            self.sink.bytes(&[distribution | u8::from(darg.is_some()) << 2]);
            given.push(darg.unwrap_or(0));
        }
        self.column(&given);
        Ok(())
    }
}

/// Returns the tag of a constructor.
fn tag_of(combiner: &Combiner) -> u8 {
    match combiner {
        Combiner::Named(_) => tag::NAMED,
        Combiner::Dup { .. } => tag::DUP,
        Combiner::Contiguous { .. } => tag::CONTIGUOUS,
        Combiner::Vector { .. } => tag::VECTOR,
        Combiner::Hvector { legacy: false, .. } => tag::HVECTOR,
        Combiner::Hvector { legacy: true, .. } => tag::HVECTOR_INTEGER,
        Combiner::Indexed { .. } => tag::INDEXED,
        Combiner::Hindexed { legacy: false, .. } => tag::HINDEXED,
        Combiner::Hindexed { legacy: true, .. } => tag::HINDEXED_INTEGER,
        Combiner::IndexedBlock { .. } => tag::INDEXED_BLOCK,
        Combiner::HindexedBlock { .. } => tag::HINDEXED_BLOCK,
        Combiner::Struct { legacy: false, .. } => tag::STRUCT,
        Combiner::Struct { legacy: true, .. } => tag::STRUCT_INTEGER,
        Combiner::Subarray { .. } => tag::SUBARRAY,
        Combiner::Darray { .. } => tag::DARRAY,
        Combiner::F90Real { .. } => tag::F90_REAL,
        Combiner::F90Complex { .. } => tag::F90_COMPLEX,
        Combiner::F90Integer { .. } => tag::F90_INTEGER,
        Combiner::Resized { .. } => tag::RESIZED,
        Combiner::Bounds { .. } => tag::BOUNDS,
        Combiner::ValueIndex { .. } => tag::VALUE_INDEX,
    }
}

/// Compares `form`, which is the part of a form that has the nodes, with the nodes of `root` as
/// they are written. Returns the position of the first byte that differs, or `None` if there is
/// none. If one of the two is the beginning of the other, this is the length of the shorter one.
pub(super) fn first_difference(root: &Datatype, form: &[u8]) -> Result<Option<usize>> {
    let mut compared = Comparison { form, at: 0, differs: None };
    Nodes::from_root(root)?.write(&mut compared)?;
    Ok(compared.differs.or_else(|| (compared.at < form.len()).then_some(compared.at)))
}

/// Returns the length in bytes of the whole form of these nodes, with header and checksum.
fn length(nodes: &Nodes<'_>) -> Result<usize> {
    let mut counted = ByteCounter(HEADER + CHECKSUM);
    nodes.write(&mut counted)?;
    Ok(counted.0)
}

impl Datatype {
    /// Returns the number of bytes that [`Datatype::to_wire`] writes.
    ///
    /// # Errors
    /// Returns an error of class `NoMem` if there is no memory for a list of the nodes.
    pub(crate) fn wire_size(&self) -> Result<usize> {
        length(&Nodes::from_root(self)?)
    }

    /// Returns the wire form: portable bytes from which [`Datatype::from_wire`] makes an equal
    /// datatype on another machine. Shared subtrees stay shared, and bounds that an MPI library
    /// decided stay as they are. The other machine refuses the form, with class `Type`, if a named
    /// type in it has another size or alignment there, or if an f90 type stands for another type.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = Datatype::vector(4, 1, 8, &Datatype::of::<f64>())?;
    /// assert_eq!(Datatype::from_wire(&column.to_wire()?)?, column);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error of class `NoMem` if there is no memory for the form.
    pub fn to_wire(&self) -> Result<Vec<u8>> {
        let nodes = Nodes::from_root(self)?;
        let length = length(&nodes)?;
        let mut form = try_with_capacity(CALL, length)?;
        form.bytes(&MAGIC);
        form.bytes(&VERSION.to_le_bytes());
        form.bytes(&[0; 2]);
        form.bytes(&(length as u64).to_le_bytes());
        form.bytes(&self.structural_hash().to_le_bytes());
        nodes.write(&mut form)?;
        let checksum = xxh3_64(&form);
        form.bytes(&checksum.to_le_bytes());
        debug_assert_eq!(form.len(), length);
        Ok(form)
    }
}
