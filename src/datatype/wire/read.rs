//! Reading of wire forms: from bytes that may come from anybody to a datatype, or to an error that
//! names the byte and the rule.

use std::hint::black_box;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::write::first_difference;
use super::{CHECKSUM, HEADER, LARGE, MAGIC, VERSION, tag};
use crate::column::{try_reserve, try_with_capacity};
use crate::datatype::{Combiner, Datatype, Distribution, Named, Order};
use crate::error::{Error, ErrorClass, Result};

const CALL: &str = "from_wire";

/// Returns an error of class `class` about `what`, which was found at byte `at` and breaks `rule`.
#[cold]
fn refuse(class: ErrorClass, at: usize, what: impl std::fmt::Display, rule: impl Into<String>) -> Error {
    Error::new(class, CALL, format!("byte {at}"), what, rule.into())
}

/// Checks the header, the length and the checksum before any node is read. Returns the hash in the
/// header, and the byte offset at which the nodes end.
fn frame(bytes: &[u8]) -> Result<(u128, usize)> {
    let start = &bytes[..bytes.len().min(MAGIC.len())];
    if *start != MAGIC[..start.len()] {
        let shown = start.escape_ascii();
        return Err(refuse(ErrorClass::Arg, 0, shown, "must begin a wire form, with \"ddtw\""));
    }
    // The bytes begin like a form, so if there are too few of them, the form was truncated.
    let truncated = |whole: u64| {
        let rule = format!("must be the whole form, which has {whole} bytes or more");
        refuse(ErrorClass::Truncate, bytes.len(), "the end", rule)
    };
    let min_length = (HEADER + CHECKSUM + 1) as u64;
    let Some((header, _)) = bytes.split_first_chunk::<HEADER>() else { return Err(truncated(min_length)) };
    let word = |at: usize| header[at..].first_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b));
    let (version, zero) = (word(0) >> 32 & 0xffff, word(0) >> 48);
    if version != u64::from(VERSION) || zero != 0 {
        let rule = format!("must be {VERSION}: this library reads no other version");
        return Err(refuse(ErrorClass::Unsupported, 4, word(0) >> 32, rule));
    }
    // The length in the header must be the number of bytes. Only after this check is it known where
    // the checksum is.
    let length = word(8);
    if length < min_length {
        return Err(refuse(
            ErrorClass::Arg,
            8,
            length,
            format!("must be a length of at least {min_length} bytes"),
        ));
    }
    if (bytes.len() as u64) < length {
        return Err(truncated(length));
    }
    if bytes.len() as u64 > length {
        let rule = format!("must be the end of the form, which has {length} bytes");
        return Err(refuse(ErrorClass::Arg, length as usize, "more", rule));
    }
    let end = bytes.len() - CHECKSUM;
    if bytes[end..] != xxh3_64(&bytes[..end]).to_le_bytes() {
        let rule = "must be the checksum of what is before it: the form is corrupt";
        return Err(refuse(ErrorClass::Arg, end, "another number", rule));
    }
    Ok((u128::from(word(24)) << 64 | u128::from(word(16)), end))
}

/// Returns a shared array of `n` entries. Collecting into an `Arc` aborts the process if memory is
/// short, so the same amount of memory is first allocated, and freed, in a way that may fail.
fn shared_array<T>(n: usize, entries: impl Iterator<Item = T>) -> Result<Arc<[T]>> {
    let asked: Vec<T> = try_with_capacity(CALL, n)?;
    // `black_box` keeps the compiler from removing the allocation, whose memory is never used.
    black_box(asked.as_ptr());
    drop(asked);
    Ok(entries.collect())
}

struct Reader<'a> {
    /// Bytes of the form without its checksum.
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Datatype>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let left = &self.bytes[self.at..];
        if n > left.len() {
            let rule = format!("must fit in the {} bytes before the checksum", left.len());
            return Err(refuse(ErrorClass::Arg, self.at, format!("{n} bytes"), rule));
        }
        self.at += n;
        Ok(&left[..n])
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn unsigned(&mut self) -> Result<u64> {
        let (start, mut value) = (self.at, 0u64);
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(refuse(
            ErrorClass::Arg,
            start,
            "a number",
            "must have 64 bits at most, and no zero byte at its end",
        ))
    }

    fn number(&mut self) -> Result<i64> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads the number of entries of the columns (arrays of numbers) that follow. Each entry has
    /// at least one byte, so a number is refused if it is larger than the number of bytes that are
    /// left.
    fn length(&mut self) -> Result<usize> {
        let (start, n) = (self.at, self.unsigned()?);
        let left = self.bytes.len() - self.at;
        match usize::try_from(n) {
            Ok(n) if n <= left => Ok(n),
            _ => Err(refuse(
                ErrorClass::Arg,
                start,
                format!("{n} entries"),
                format!("must fit in the {left} bytes before the checksum"),
            )),
        }
    }

    fn column(&mut self, n: usize) -> Result<Arc<[i64]>> {
        let (start, width) = (self.at, self.byte()?);
        if !matches!(width, 1 | 2 | 4 | 8) {
            return Err(refuse(ErrorClass::Arg, start, width, "must be a width of 1, 2, 4 or 8 bytes"));
        }
        // If the number of bytes does not fit in a `usize`, it saturates, and `take` refuses it.
        let bytes = self.take(n.saturating_mul(usize::from(width)))?;
        match width {
            1 => shared_array(n, bytes.iter().map(|&b| i64::from(b as i8))),
            2 => shared_array(n, bytes.as_chunks().0.iter().map(|&b| i64::from(i16::from_le_bytes(b)))),
            4 => shared_array(n, bytes.as_chunks().0.iter().map(|&b| i64::from(i32::from_le_bytes(b)))),
            _ => shared_array(n, bytes.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b))),
        }
    }

    /// Returns the node that is `distance` places back in the list of nodes. `at` is the byte
    /// offset of this distance in the form, which an error shows.
    fn node_at_distance(&self, at: usize, distance: u64) -> Result<&Datatype> {
        let place = usize::try_from(distance).ok().and_then(|d| self.nodes.len().checked_sub(d));
        place.and_then(|p| self.nodes.get(p)).ok_or_else(|| {
            let rule = format!("must be from 1 to {}, the nodes before this one", self.nodes.len());
            refuse(ErrorClass::Arg, at, format!("{distance} back"), rule)
        })
    }

    fn child(&mut self) -> Result<Datatype> {
        let (start, distance) = (self.at, self.unsigned()?);
        self.node_at_distance(start, distance).cloned()
    }

    fn children(&mut self, n: usize) -> Result<Arc<[Datatype]>> {
        let start = self.at;
        let distances = self.column(n)?;
        for &distance in distances.iter() {
            // As a `u64`, a negative distance is larger than the number of nodes, so it is refused
            // too.
            self.node_at_distance(start, distance as u64)?;
        }
        let nodes = &self.nodes;
        shared_array(n, distances.iter().map(|&d| nodes[nodes.len() - d as usize].clone()))
    }

    fn order(&mut self) -> Result<Order> {
        match (self.at, self.byte()?) {
            (_, 0) => Ok(Order::C),
            (_, 1) => Ok(Order::Fortran),
            (at, other) => Err(refuse(ErrorClass::Arg, at, other, "must be 0 or 1, a storage order")),
        }
    }

    fn f90(&mut self) -> Result<(Option<i64>, Option<i64>)> {
        let (at, given) = (self.at, self.byte()?);
        if given > 3 {
            return Err(refuse(ErrorClass::Arg, at, given, "must be 0 to 3, which of p and r are given"));
        }
        let mut one = |bit: u8| if given & bit != 0 { self.number().map(Some) } else { Ok(None) };
        Ok((one(1)?, one(2)?))
    }

    fn named(&mut self) -> Result<Named> {
        let start = self.at;
        let &[size, alignment, length] = self.take(3)? else {
            return Err(Error::internal(CALL, "a slice of another length"));
        };
        let name = self.take(usize::from(length))?;
        let known = std::str::from_utf8(name).ok().and_then(Named::from_name);
        let Some(named) = known.filter(|n| n.text_name().as_bytes() == name) else {
            let rule = "must be a named type that this library has";
            return Err(refuse(ErrorClass::Type, start, name.escape_ascii(), rule));
        };
        if (i64::from(size), i64::from(alignment)) != (named.size(), named.alignment()) {
            let what = format!("{named} of {size} bytes aligned to {alignment}");
            let rule = format!(
                "must have the {} bytes aligned to {} that it has here",
                named.size(),
                named.alignment()
            );
            return Err(refuse(ErrorClass::Type, start, what, rule));
        }
        Ok(named)
    }

    /// Reads the distributions of the `n` dimensions of a darray, and the arguments of the
    /// distributions.
    #[expect(clippy::type_complexity, reason = "two arguments of darray")]
    fn distributions(&mut self, n: usize) -> Result<(Arc<[Distribution]>, Arc<[Option<i64>]>)> {
        let start = self.at;
        let kinds = self.take(n)?;
        if let Some(i) = kinds.iter().position(|&k| k > 6 || k & 3 == 3) {
            let rule = "must be a distribution: 0 to 2, 4 more with an argument";
            return Err(refuse(ErrorClass::Arg, start + i, kinds[i], rule));
        }
        let given = self.column(n)?;
        let distribs = kinds.iter().map(|k| match k & 3 {
            0 => Distribution::Block,
            1 => Distribution::Cyclic,
            _ => Distribution::None,
        });
        let dargs = kinds.iter().zip(given.iter()).map(|(k, &darg)| (k & 4 != 0).then_some(darg));
        Ok((shared_array(n, distribs)?, shared_array(n, dargs)?))
    }

    /// Reads the arguments of a darray.
    fn darray(&mut self) -> Result<Combiner> {
        let (oldtype, order) = (self.child()?, self.order()?);
        let (size, rank, n) = (self.number()?, self.number()?, self.length()?);
        let (gsizes, psizes) = (self.column(n)?, self.column(n)?);
        let (distribs, dargs) = self.distributions(n)?;
        Ok(Combiner::Darray { size, rank, gsizes, distribs, dargs, psizes, order, oldtype })
    }

    /// Reads the constructor call of a node, and for an f90 type the named type that it stood for
    /// at the writer.
    fn combiner(&mut self, tag: u8) -> Result<(Combiner, Option<Datatype>)> {
        let plain = |combiner| Ok((combiner, None));
        // Every arm reads the fields in the order in which `write` writes them. When the node is
        // built, its constructor checks the arguments.
        match tag {
            tag::NAMED => plain(Combiner::Named(self.named()?)),
            tag::DUP => plain(Combiner::Dup { oldtype: self.child()? }),
            tag::CONTIGUOUS => {
                let oldtype = self.child()?;
                plain(Combiner::Contiguous { count: self.number()?, oldtype })
            }
            tag::VECTOR | tag::HVECTOR | tag::HVECTOR_INTEGER => {
                let oldtype = self.child()?;
                let [count, blocklength, stride] = [self.number()?, self.number()?, self.number()?];
                let legacy = tag == tag::HVECTOR_INTEGER;
                plain(match tag {
                    tag::VECTOR => Combiner::Vector { count, blocklength, stride, oldtype },
                    _ => Combiner::Hvector { count, blocklength, stride, oldtype, legacy },
                })
            }
            tag::INDEXED | tag::HINDEXED | tag::HINDEXED_INTEGER => {
                let oldtype = self.child()?;
                let n = self.length()?;
                let (blocklengths, displacements) = (self.column(n)?, self.column(n)?);
                let legacy = tag == tag::HINDEXED_INTEGER;
                plain(match tag {
                    tag::INDEXED => Combiner::Indexed { blocklengths, displacements, oldtype },
                    _ => Combiner::Hindexed { blocklengths, displacements, oldtype, legacy },
                })
            }
            tag::INDEXED_BLOCK | tag::HINDEXED_BLOCK => {
                let oldtype = self.child()?;
                let (blocklength, n) = (self.number()?, self.length()?);
                let displacements = self.column(n)?;
                plain(match tag {
                    tag::INDEXED_BLOCK => Combiner::IndexedBlock { blocklength, displacements, oldtype },
                    _ => Combiner::HindexedBlock { blocklength, displacements, oldtype },
                })
            }
            tag::STRUCT | tag::STRUCT_INTEGER => {
                let n = self.length()?;
                let (blocklengths, displacements) = (self.column(n)?, self.column(n)?);
                let legacy = tag == tag::STRUCT_INTEGER;
                plain(Combiner::Struct { blocklengths, displacements, types: self.children(n)?, legacy })
            }
            tag::SUBARRAY => {
                let (oldtype, order, n) = (self.child()?, self.order()?, self.length()?);
                let [sizes, subsizes, starts] = [self.column(n)?, self.column(n)?, self.column(n)?];
                plain(Combiner::Subarray { sizes, subsizes, starts, order, oldtype })
            }
            tag::DARRAY => plain(self.darray()?),
            tag::F90_REAL | tag::F90_COMPLEX => {
                let stood_for = self.child()?;
                let (p, r) = self.f90()?;
                Ok(match tag {
                    tag::F90_REAL => (Combiner::F90Real { p, r }, Some(stood_for)),
                    _ => (Combiner::F90Complex { p, r }, Some(stood_for)),
                })
            }
            tag::F90_INTEGER => {
                let stood_for = self.child()?;
                Ok((Combiner::F90Integer { r: self.number()? }, Some(stood_for)))
            }
            tag::RESIZED | tag::BOUNDS => {
                let oldtype = self.child()?;
                let (lb, extent) = (self.number()?, self.number()?);
                plain(match tag {
                    tag::RESIZED => Combiner::Resized { lb, extent, oldtype },
                    _ => Combiner::Bounds { lb, extent, oldtype },
                })
            }
            tag::VALUE_INDEX => plain(Combiner::ValueIndex { value: self.child()?, index: self.child()? }),
            _ => {
                let rule = "must be the tag of a constructor";
                Err(refuse(ErrorClass::Arg, self.at - 1, tag, rule))
            }
        }
    }

    fn node(&mut self) -> Result<()> {
        let start = self.at;
        let tag = self.byte()?;
        let (combiner, stood_for) = self.combiner(tag & !LARGE)?;
        let mut t = Datatype::new(combiner).map_err(|e| {
            let argument = format!("byte {start}, {} of {}", e.argument(), e.operation());
            Error::new(e.class(), CALL, argument, e.value(), e.rule().to_owned())
        })?;
        // If an f90 type stands for another named type here than at the writer, the datatype would
        // describe different bytes.
        if let Some(named) = stood_for.filter(|named| t.expansion() != Some(named)) {
            let here = t.expansion().map_or_else(String::new, Datatype::to_string);
            let rule = format!("must stand for {here}, as it does here");
            let what = format!("{t} for {}", named.combiner().text_name());
            return Err(refuse(ErrorClass::Type, start, what, rule));
        }
        // Each datatype must have only one form. The tag may therefore have the mark of a
        // large-count node only if the node has a large-count constructor, and must have the mark
        // if a count needs that constructor. A node with the bounds that a datatype has already is
        // the node of that datatype, which has its own mark. Marking a copy of it would take time
        // and memory for each of its members.
        if tag & LARGE != 0 && t.reference_count() == 1 {
            t = t.with_large_count();
        }
        if t.is_large_count() != (tag & LARGE != 0) {
            let rule = "must be marked as large-count if a count needs it, and only if the constructor has a large-count form";
            return Err(refuse(ErrorClass::Arg, start, t.combiner().text_name(), rule));
        }
        try_reserve(CALL, &mut self.nodes, 1)?;
        self.nodes.push(t);
        Ok(())
    }
}

impl Datatype {
    /// Returns the datatype that a wire form describes ([`Datatype::to_wire`]). The bytes need not
    /// be trusted if their number is limited: time and memory are linear in it, but two bytes can
    /// describe a node that takes about 200 bytes of memory, and the process ends if there is no
    /// memory for a node.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// assert!(Datatype::from_wire(b"no datatype").is_err());
    /// let column = Datatype::vector(4, 1, 8, &Datatype::of::<f64>())?;
    /// assert_eq!(Datatype::from_wire(&column.to_wire()?)?, column);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error of class `Truncate` if the end of the form is missing, `Unsupported` if the
    /// form has another version, and `NoMem` if there is not enough memory for an array. The class
    /// is `Type` if this library does not have a named type of the form, or has it with another
    /// size or alignment, or if an f90 type stands for another named type here. If a constructor
    /// refuses its arguments, the class is that of its error. For any other bytes that are not a
    /// wire form, the class is `Arg`. Except for `NoMem`, the error names the byte and the rule.
    pub fn from_wire(bytes: &[u8]) -> Result<Datatype> {
        let (hash, end) = frame(bytes)?;
        let mut reader = Reader { bytes: &bytes[..end], at: HEADER, nodes: Vec::new() };
        for _ in 0..reader.length()? {
            reader.node()?;
        }
        if reader.at != end {
            let rule = "must be the checksum: there are no more nodes";
            return Err(refuse(ErrorClass::Arg, reader.at, "more", rule));
        }
        let Some(root) = reader.nodes.pop() else {
            return Err(refuse(ErrorClass::Arg, HEADER, "0 nodes", "must have a node, the root"));
        };
        // Refuse everything that `write` would not have written, because a datatype has exactly one
        // form: for example a column that is wider than needed, a node that is not part of the
        // root, or another order of the nodes.
        if let Some(place) = first_difference(&root, &bytes[HEADER..end])? {
            let rule =
                "must be the byte that this library writes for the datatype, which has exactly one form";
            return Err(refuse(ErrorClass::Arg, HEADER + place, "another byte", rule));
        }
        if root.structural_hash() != hash {
            let rule =
                format!("must be {:032x}, the hash of the datatype that was read", root.structural_hash());
            return Err(refuse(ErrorClass::Arg, 16, format!("{hash:032x}"), rule));
        }
        Ok(root)
    }
}
