//! From a datatype to its wire form: once to count the bytes, once to write them.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::{CHECKSUM, HEADER, LARGE, MAGIC, VERSION, tag};
use crate::column::{try_reserve, try_with_capacity};
use crate::datatype::{Combiner, Datatype, Distribution, Named, Order};
use crate::error::{Error, ErrorClass, Result};

const CALL: &str = "to_wire";

/// Receives the bytes of a form.
trait Sink {
    fn bytes(&mut self, bytes: &[u8]);
    /// Every value in `width` bytes, which hold it.
    fn column(&mut self, width: usize, values: &[i64]);
}

/// Counts them.
struct Counted(usize);

impl Sink for Counted {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }

    fn column(&mut self, width: usize, values: &[i64]) {
        self.0 += width * values.len();
    }
}

/// Takes them, where there is room.
impl Sink for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn column(&mut self, width: usize, values: &[i64]) {
        fn narrow<const W: usize>(into: &mut Vec<u8>, values: &[i64]) {
            let start = into.len();
            into.resize(start + W * values.len(), 0);
            let (places, _) = into[start..].as_chunks_mut::<W>();
            for (place, value) in places.iter_mut().zip(values) {
                *place = *value.to_le_bytes().first_chunk().unwrap_or(&[0; W]);
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

/// Compares them with those of a form.
struct Compared<'a> {
    form: &'a [u8],
    at: usize,
    differs: Option<usize>,
}

impl Sink for Compared<'_> {
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

/// The nodes of a DAG in the order of the form, and where each stands.
struct Nodes<'a> {
    list: Vec<&'a Datatype>,
    named: [usize; Named::ALL.len()],
    others: HashMap<usize, usize>,
}

/// No place yet.
const NOWHERE: usize = usize::MAX;

fn no_room(nodes: usize) -> Error {
    let rule = "there must be memory for a list of the nodes";
    Error::new(ErrorClass::NoMem, CALL, "nodes", nodes, rule)
}

impl<'a> Nodes<'a> {
    fn of(root: &'a Datatype) -> Result<Nodes<'a>> {
        let mut nodes =
            Nodes { list: Vec::new(), named: [NOWHERE; Named::ALL.len()], others: HashMap::new() };
        let mut open = vec![(root, false)];
        while let Some((t, children_done)) = open.pop() {
            if nodes.place(t) != NOWHERE {
                continue;
            }
            if !children_done {
                open.push((t, true));
                let mut last = None;
                for child in t.combiner().children().chain(stands_for(t)) {
                    // Neighbours in a struct are often of one type.
                    if last != Some(child.id()) && nodes.place(child) == NOWHERE {
                        try_reserve(CALL, &mut open, 1)?;
                        open.push((child, false));
                    }
                    last = Some(child.id());
                }
                continue;
            }
            let place = nodes.list.len();
            match t.combiner() {
                Combiner::Named(named) => nodes.named[*named as usize] = place,
                _ => {
                    nodes.others.try_reserve(1).map_err(|_| no_room(place))?;
                    nodes.others.insert(t.id(), place);
                }
            }
            try_reserve(CALL, &mut nodes.list, 1)?;
            nodes.list.push(t);
        }
        Ok(nodes)
    }

    fn place(&self, t: &Datatype) -> usize {
        match t.combiner() {
            Combiner::Named(named) => self.named[*named as usize],
            _ => self.others.get(&t.id()).copied().unwrap_or(NOWHERE),
        }
    }

    /// Writes all of them.
    fn write(&self, sink: &mut impl Sink) -> Result<()> {
        let mut writer = Writer { sink, nodes: self, place: 0 };
        writer.unsigned(self.list.len() as u64);
        for (place, t) in self.list.iter().enumerate() {
            writer.place = place;
            writer.node(t)?;
        }
        Ok(())
    }
}

/// The named type that an f90 type stands for.
fn stands_for(t: &Datatype) -> Option<&Datatype> {
    match t.combiner() {
        Combiner::F90Real { .. } | Combiner::F90Complex { .. } | Combiner::F90Integer { .. } => t.expansion(),
        _ => None,
    }
}

struct Writer<'w, 'a, S> {
    sink: &'w mut S,
    nodes: &'w Nodes<'a>,
    /// Of the node that is being written.
    place: usize,
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
        // The highest bit of any magnitude, in a loop without branches.
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

    fn back(&self, child: &Datatype) -> usize {
        self.place - self.nodes.place(child)
    }

    fn child(&mut self, child: &Datatype) {
        self.unsigned(self.back(child) as u64);
    }

    fn order(&mut self, order: Order) {
        self.sink.bytes(&[match order {
            Order::C => 0,
            Order::Fortran => 1,
        }]);
    }

    /// Precision and range, of which one may be undefined.
    fn f90(&mut self, p: Option<i64>, r: Option<i64>) {
        self.sink.bytes(&[u8::from(p.is_some()) | u8::from(r.is_some()) << 1]);
        p.into_iter().chain(r).for_each(|value| self.number(value));
    }

    fn node(&mut self, t: &Datatype) -> Result<()> {
        let combiner = t.combiner();
        let tag = tag_of(combiner);
        self.sink.bytes(&[tag | if t.is_large_count() { LARGE } else { 0 }]);
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
    /// Where each member of a struct stands, as the distance back to it.
    fn children(&mut self, types: &[Datatype]) -> Result<()> {
        let mut back = try_with_capacity(CALL, types.len())?;
        let mut last = None;
        for t in types {
            let distance = match last {
                Some((id, distance)) if id == t.id() => distance,
                _ => self.back(t) as i64,
            };
            last = Some((t.id(), distance));
            back.push(distance);
        }
        self.column(&back);
        Ok(())
    }

    /// Distributions with their arguments.
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

/// The tag of a constructor.
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

/// Returns the first byte of `form`, the nodes of a form, that is not as the nodes of `root` are written; its length if it ends before they do.
pub(super) fn first_difference(root: &Datatype, form: &[u8]) -> Result<Option<usize>> {
    let mut compared = Compared { form, at: 0, differs: None };
    Nodes::of(root)?.write(&mut compared)?;
    Ok(compared.differs.or_else(|| (compared.at < form.len()).then_some(compared.at)))
}

/// Bytes of the form of these nodes.
fn length(nodes: &Nodes<'_>) -> Result<usize> {
    let mut counted = Counted(HEADER + CHECKSUM);
    nodes.write(&mut counted)?;
    Ok(counted.0)
}

impl Datatype {
    /// Returns the bytes of [`Datatype::to_wire`].
    ///
    /// # Errors
    /// Class `NoMem` where there is no memory for a list of the nodes.
    pub(crate) fn wire_size(&self) -> Result<usize> {
        length(&Nodes::of(self)?)
    }

    /// Returns the wire form of the datatype: portable bytes, from which [`Datatype::from_wire`]
    /// makes an equal datatype on any machine. Shared subtrees stay shared, and bounds that were
    /// taken from an MPI library are kept.
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
    /// Class `NoMem` if there is no memory for the bytes.
    pub fn to_wire(&self) -> Result<Vec<u8>> {
        let nodes = Nodes::of(self)?;
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
