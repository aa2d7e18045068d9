//! Construction of a node from a combiner: checks every rule on the arguments and computes bounds
//! and signature.
//!
//! Construction usually takes one pass over the arrays of arguments. An error names the
//! constructor, the argument, its value and the rule, and nothing is built. If one entry of an
//! array is wrong, the argument is shown with the index of this entry; if the array as a whole is,
//! without an index. The rules are those of MPI 5.0 sections 5.1.2 to 5.1.4 and 19.1.9.

use super::bounds::{Bounds, Overflow, Placing, displacement_range};
use super::call::ConstructorCall;
use super::combiner::Combiner;
use super::named::{Class, Named};
use super::prefix::{self, Totals};
use super::signature::Signature;
use super::{Datatype, Extra, array};
use crate::column::try_with_capacity;
use crate::error::{Error, ErrorClass, Result};

/// Properties that a new node derives from its arguments.
pub(crate) struct Derived {
    pub(crate) layout: Bounds,
    pub(crate) signature: Signature,
    pub(crate) extra: Option<Extra>,
}

/// Checks the arguments of a combiner and computes the properties of its node. The errors are those
/// of [`Datatype::new`].
pub(crate) fn derive(combiner: &Combiner) -> Result<Derived> {
    let call = ConstructorCall(combiner.text_name());
    let simple = |layout, signature| Ok(Derived { layout, signature, extra: None });
    match combiner {
        Combiner::Named(n) => simple(Bounds::from_named(*n), Signature::from_named(*n)),
        Combiner::Dup { oldtype } => simple(*oldtype.layout(), oldtype.signature()),
        Combiner::Contiguous { count, oldtype } => {
            call.not_negative(ErrorClass::Count, "count", *count)?;
            let layout = blocks(oldtype, 1, *count, 0).map_err(|_| call.overflow("count", *count))?;
            simple(layout, oldtype.signature().repeat(*count))
        }
        Combiner::Vector { count, blocklength, stride, oldtype } => {
            let bytes = stride.checked_mul(oldtype.extent());
            let (layout, signature) = vector(&call, *count, *blocklength, *stride, bytes, oldtype)?;
            simple(layout, signature)
        }
        Combiner::Hvector { count, blocklength, stride, oldtype, .. } => {
            let (layout, signature) = vector(&call, *count, *blocklength, *stride, Some(*stride), oldtype)?;
            simple(layout, signature)
        }
        Combiner::Indexed { blocklengths, displacements, oldtype } => {
            let (layout, signature) =
                indexed(&call, Lengths::Each(blocklengths), displacements, oldtype.extent(), oldtype)?;
            simple(layout, signature)
        }
        Combiner::Hindexed { blocklengths, displacements, oldtype, .. } => {
            let (layout, signature) = indexed(&call, Lengths::Each(blocklengths), displacements, 1, oldtype)?;
            simple(layout, signature)
        }
        Combiner::IndexedBlock { blocklength, displacements, oldtype } => {
            let (layout, signature) =
                indexed(&call, Lengths::All(*blocklength), displacements, oldtype.extent(), oldtype)?;
            simple(layout, signature)
        }
        Combiner::HindexedBlock { blocklength, displacements, oldtype } => {
            let (layout, signature) = indexed(&call, Lengths::All(*blocklength), displacements, 1, oldtype)?;
            simple(layout, signature)
        }
        Combiner::Struct { blocklengths, displacements, types, .. } => {
            structure(&call, blocklengths, displacements, types)
        }
        // The type map stays that of `oldtype`, and only its bounds are replaced.
        Combiner::Resized { lb, extent, oldtype } | Combiner::Bounds { lb, extent, oldtype } => {
            let layout =
                oldtype.layout().resized(*lb, *extent).map_err(|_| call.overflow("extent", *extent))?;
            simple(layout, oldtype.signature())
        }
        // The remaining constructors are checked and rewritten in terms of simpler ones, from which
        // they take bounds and signature.
        Combiner::Subarray { sizes, subsizes, starts, order, oldtype } => {
            expanded(array::subarray(&call, sizes, subsizes, starts, *order, oldtype)?)
        }
        Combiner::Darray { size, rank, gsizes, distribs, dargs, psizes, order, oldtype } => {
            let grid =
                array::Grid { size: *size, rank: *rank, gsizes, distribs, dargs, psizes, order: *order };
            expanded(array::darray(&call, &grid, oldtype)?)
        }
        Combiner::F90Real { p, r } => expanded(Datatype::named(f90_float(&call, *p, *r, false)?)),
        Combiner::F90Complex { p, r } => expanded(Datatype::named(f90_float(&call, *p, *r, true)?)),
        Combiner::F90Integer { r } => expanded(Datatype::named(f90_integer(&call, *r)?)),
        Combiner::ValueIndex { value, index } => {
            let (value_named, index_named) = value_index(&call, value, index)?;
            let align = index_named.alignment();
            let at = (value_named.size() + align - 1) / align * align;
            expanded(Datatype::structure(&[1, 1], &[0, at], &[value.clone(), index.clone()])?)
        }
    }
}

fn expanded(tree: Datatype) -> Result<Derived> {
    let (layout, signature) = (*tree.layout(), tree.signature());
    Ok(Derived { layout, signature, extra: Some(Extra::Expansion(tree)) })
}

/// Returns the bounds of `count` blocks of `blocklength` copies of `oldtype`. The blocks start
/// `stride` bytes apart. `count` and `blocklength` must not be negative.
fn blocks(
    oldtype: &Datatype,
    count: i64,
    blocklength: i64,
    stride: i64,
) -> std::result::Result<Bounds, Overflow> {
    if count == 0 || blocklength == 0 {
        return Ok(Bounds::EMPTY);
    }
    let child = oldtype.layout();
    // The lowest and highest displacement of any copy are the sums of those of a copy within its
    // block and those of a block.
    let (first, last) = displacement_range(0, blocklength, child.extent())?;
    let (block_first, block_last) = displacement_range(0, count, stride)?;
    let mut placing = Placing::new();
    placing.add(
        child,
        i128::from(count) * i128::from(blocklength),
        first.checked_add(block_first).ok_or(Overflow)?,
        last.checked_add(block_last).ok_or(Overflow)?,
    )?;
    placing.finish()
}

/// Checks the arguments of a vector or an hvector, and returns its bounds and signature. `bytes` is
/// the stride in bytes, or `None` if it does not fit in 64 bits.
fn vector(
    call: &ConstructorCall,
    count: i64,
    blocklength: i64,
    stride: i64,
    bytes: Option<i64>,
    oldtype: &Datatype,
) -> Result<(Bounds, Signature)> {
    call.not_negative(ErrorClass::Count, "count", count)?;
    call.not_negative(ErrorClass::Arg, "blocklength", blocklength)?;
    let bytes = match bytes {
        Some(bytes) => bytes,
        // If there is at most one block, or the blocks are empty, the stride is not used.
        None if count <= 1 || blocklength == 0 => 0,
        None => return Err(call.overflow("stride", stride)),
    };
    let layout = blocks(oldtype, count, blocklength, bytes).map_err(|_| {
        if bytes.checked_mul(count).is_none() {
            call.overflow("stride", stride)
        } else if count > 1 {
            call.overflow("count", count)
        } else {
            call.overflow("blocklength", blocklength)
        }
    })?;
    Ok((layout, oldtype.signature().repeat(blocklength).repeat(count)))
}

/// Block lengths of an indexed constructor: one for each block, or a single length for all blocks.
enum Lengths<'a> {
    Each(&'a [i64]),
    All(i64),
}

/// Checks the arguments of an indexed constructor, and returns its bounds and signature.
/// Displacements are in units of `unit` bytes.
fn indexed(
    call: &ConstructorCall,
    lengths: Lengths<'_>,
    displacements: &[i64],
    unit: i64,
    oldtype: &Datatype,
) -> Result<(Bounds, Signature)> {
    match lengths {
        Lengths::Each(each) => {
            call.same_length("displacements", displacements.len(), "blocklengths", each.len())?;
        }
        Lengths::All(length) => call.not_negative(ErrorClass::Arg, "blocklength", length)?,
    }
    let child = oldtype.layout();
    // Find how many copies there are and where the outermost copies are. `ends_checked` runs only
    // if `ends_fast` gives up, and its error names the entry that is wrong.
    let (total, first, last) = match ends_fast(&lengths, displacements, unit, child.extent()) {
        Some(ends) => ends,
        None => ends_checked(call, &lengths, displacements, unit, child.extent())?,
    };
    if total == 0 {
        return Ok((Bounds::EMPTY, Signature::EMPTY));
    }
    // The size is checked before the bounds, so that the error of a size that does not fit in 64
    // bits names the block lengths. A copy whose displacement does not fit was refused above.
    let copies = i64::try_from(total).unwrap_or(i64::MAX);
    if total.checked_mul(child.size.into()).is_none_or(|size| size > i64::MAX.into()) {
        let argument = if matches!(lengths, Lengths::All(_)) { "blocklength" } else { "blocklengths" };
        return Err(call.overflow(argument, copies));
    }
    let mut placing = Placing::new();
    let layout = placing
        .add(child, total, first, last)
        .and_then(|()| placing.finish())
        .map_err(|_| call.overflow("displacements", if last > 0 { last } else { first }))?;
    Ok((layout, oldtype.signature().repeat(copies)))
}

/// Returns the number of copies and the lowest and highest displacement of a copy, computed in a
/// loop without checks. If each block has a length of its own and one of them is 0 or negative, a
/// second loop leaves the empty blocks out.
///
/// Returns `None` if a length or the extent is negative, if a single length for all blocks is 0, or
/// if something could have overflowed. The caller then calls [`ends_checked`], which names the
/// entry that is wrong, if there is one.
fn ends_fast(
    lengths: &Lengths<'_>,
    displacements: &[i64],
    unit: i64,
    extent: i64,
) -> Option<(i128, i64, i64)> {
    if extent < 0 {
        return None;
    }
    let ends = match *lengths {
        Lengths::All(length) => {
            let places = Ends::from_equal_blocks(length, displacements).scaled(unit);
            Ends { end: places.end.wrapping_add(length.wrapping_mul(extent)), ..places }
        }
        Lengths::Each(each) => {
            let blocks = each.iter().copied().zip(displacements.iter().copied());
            if unit == extent {
                Ends::from_nonempty_blocks(blocks, |d| d, |n| n).scaled(unit)
            } else {
                Ends::from_nonempty_blocks(blocks, |d| d.wrapping_mul(unit), |n| n.wrapping_mul(extent))
            }
        }
    };
    // No length is larger than `longest`, and no displacement is larger in magnitude than
    // `farthest` + 1. If the sums that follow from these bounds fit in 64 bits, nothing wrapped in
    // the loop.
    let wide = |magnitude: u64, by: i64| (i128::from(magnitude) + 1) * i128::from(by).abs();
    let reach = wide(ends.longest, extent).saturating_mul(2).saturating_add(wide(ends.farthest, unit));
    let copies = i128::from(ends.longest) * displacements.len() as i128;
    let exact = ends.signs >= 0 && reach.max(copies) <= i128::from(i64::MAX);
    exact.then_some((i128::from(ends.total), ends.first, ends.end.wrapping_sub(extent)))
}

/// Number of copies and outermost places of some blocks, computed without checks. They are wrong if
/// something overflowed.
struct Ends {
    /// Number of copies of the child in all blocks together.
    total: i64,
    /// Lowest start of a block. It is in bytes or, if [`Ends::scaled`] is still to be called, in
    /// units of the displacements.
    first: i64,
    /// Highest end of a block, in the same unit as `first`.
    end: i64,
    /// Bitwise or of `length - 1` for all lengths. It is negative if a length is 0 or negative. The
    /// exception is the length `i64::MIN`, which makes `longest` too large instead.
    signs: i64,
    /// Bitwise or of the lengths, which is at least as large as each of them.
    longest: u64,
    /// Bitwise or of the magnitudes of all displacements or, in [`Ends::from_equal_blocks`], of
    /// only the lowest and the highest one. It is at least as large as each magnitude.
    farthest: u64,
}

impl Ends {
    /// Returns the ends of blocks, which are given as pairs (length, displacement). `place`
    /// converts a displacement to the start of the block, and `span` converts a length to the
    /// distance that the block covers.
    #[inline(always)]
    fn from_blocks(
        blocks: impl Iterator<Item = (i64, i64)>,
        place: impl Fn(i64) -> i64,
        span: impl Fn(i64) -> i64,
    ) -> Ends {
        let none = Ends { total: 0, first: i64::MAX, end: i64::MIN, signs: 0, longest: 0, farthest: 0 };
        blocks.fold(none, |ends, (length, displacement)| {
            let at = place(displacement);
            Ends {
                total: ends.total.wrapping_add(length),
                first: ends.first.min(at),
                end: ends.end.max(at.wrapping_add(span(length))),
                signs: ends.signs | length.wrapping_sub(1),
                longest: ends.longest | length as u64,
                farthest: ends.farthest | magnitude(displacement),
            }
        })
    }

    /// Returns the ends of blocks that all have length `length`. In this result `end` is the
    /// highest start of a block, without the length added.
    ///
    /// The loop keeps four independent minima and maxima. With a single minimum, each step would
    /// wait for the one before it, which takes two cycles.
    fn from_equal_blocks(length: i64, displacements: &[i64]) -> Ends {
        let (fours, rest) = displacements.as_chunks::<4>();
        let (mut minimum, mut maximum) = ([i64::MAX; 4], [i64::MIN; 4]);
        for four in fours {
            for i in 0..4 {
                (minimum[i], maximum[i]) = (minimum[i].min(four[i]), maximum[i].max(four[i]));
            }
        }
        let first = minimum.iter().chain(rest).fold(i64::MAX, |minimum, &d| minimum.min(d));
        let end = maximum.iter().chain(rest).fold(i64::MIN, |maximum, &d| maximum.max(d));
        Ends {
            total: length.wrapping_mul(displacements.len() as i64),
            first,
            end,
            signs: length.wrapping_sub(1),
            longest: length as u64,
            farthest: magnitude(first) | magnitude(end),
        }
    }

    /// Returns the ends of the blocks that are not empty; empty blocks have no place. Empty blocks
    /// are rare, so a first pass takes all blocks and finds out whether a length is 0 or negative.
    /// Only if there is such a length, a second pass leaves the empty blocks out.
    #[inline(always)]
    fn from_nonempty_blocks(
        blocks: impl Iterator<Item = (i64, i64)> + Clone,
        place: impl Fn(i64) -> i64,
        span: impl Fn(i64) -> i64,
    ) -> Ends {
        let ends = Ends::from_blocks(blocks.clone(), &place, &span);
        if ends.signs >= 0 {
            return ends;
        }
        Ends::from_blocks(blocks.filter(|&(length, _)| length != 0), place, span)
    }

    /// Converts `first` and `end` from units of `unit` bytes to bytes.
    fn scaled(self, unit: i64) -> Ends {
        Ends { first: self.first.wrapping_mul(unit), end: self.end.wrapping_mul(unit), ..self }
    }
}

/// Returns the value if it is not negative. Otherwise returns its bitwise complement, which has as
/// many significant bits.
fn magnitude(value: i64) -> u64 {
    (value ^ (value >> 63)) as u64
}

/// Computes the same as [`ends_fast`] with checks at every step. The error names the first entry
/// that is wrong.
fn ends_checked(
    call: &ConstructorCall,
    lengths: &Lengths<'_>,
    displacements: &[i64],
    unit: i64,
    extent: i64,
) -> Result<(i128, i64, i64)> {
    let (mut total, mut first, mut last) = (0i128, i64::MAX, i64::MIN);
    for (i, &displacement) in displacements.iter().enumerate() {
        let length = match *lengths {
            Lengths::Each(each) => each[i],
            Lengths::All(length) => length,
        };
        if length <= 0 {
            if length < 0 {
                return Err(call.negative_entry("blocklengths", i, length));
            }
            continue;
        }
        let at = displacement
            .checked_mul(unit)
            .ok_or(Overflow)
            .and_then(|at| displacement_range(at, length, extent));
        let Ok((low, high)) = at else {
            return Err(call.overflow(format!("displacements[{i}]"), displacement));
        };
        (first, last) = (first.min(low), last.max(high));
        total += i128::from(length);
    }
    Ok((total, first, last))
}

/// Checks the arguments of a struct and computes the properties of its node.
fn structure(
    call: &ConstructorCall,
    blocklengths: &[i64],
    displacements: &[i64],
    types: &[Datatype],
) -> Result<Derived> {
    call.same_length("displacements", displacements.len(), "blocklengths", blocklengths.len())?;
    call.same_length("types", types.len(), "blocklengths", blocklengths.len())?;
    let mut placing = Placing::new();
    // Consecutive members of one type form a run. `before` has the sums over all members before the
    // current run, which so far consists of `copies` copies of `previous`. The signature of a run
    // is computed in one step.
    let (mut before, mut recent) = (Totals::ZERO, prefix::RecentSignatures::new(types.len()));
    let (mut previous, mut copies) = (None::<&Datatype>, 0i64);
    let mut members = try_with_capacity(call.0, types.len().saturating_sub(1) / prefix::MEMBERS_PER_TOTALS)?;
    for (i, ((&length, &displacement), child)) in
        blocklengths.iter().zip(displacements).zip(types).enumerate()
    {
        // Long structs keep the sums before every 64th member, which serve to find a position in
        // the packed stream.
        if i > 0 && i % prefix::MEMBERS_PER_TOTALS == 0 {
            before = previous.take().map_or(before, |t| before.then(&mut recent, t, copies));
            members.push(before);
        }
        if length < 0 {
            return Err(call.negative_entry("blocklengths", i, length));
        }
        if length == 0 {
            continue;
        }
        // Empty blocks were skipped above, because they have neither entries nor markers. Place
        // this block, which is not empty, and add it to the current run or begin a new one.
        let layout = child.layout();
        displacement_range(displacement, length, layout.extent())
            .and_then(|(first, last)| placing.add(layout, i128::from(length), first, last))
            .map_err(|_| call.overflow(format!("displacements[{i}]"), displacement))?;
        match previous {
            Some(t) if t.id() == child.id() => copies = copies.saturating_add(length),
            _ => {
                before = previous.map_or(before, |t| before.then(&mut recent, t, copies));
                (previous, copies) = (Some(child), length);
            }
        }
    }
    let signature = previous.map_or(before, |t| before.then(&mut recent, t, copies)).signature;
    // If the size or the bounds of the whole struct do not fit in 64 bits, the error shows the
    // displacement that is farthest from 0.
    let extreme = displacements.iter().copied().max_by_key(|d| d.unsigned_abs()).unwrap_or(0);
    let layout = placing.finish().map_err(|_| call.overflow("displacements", extreme))?;
    let extra = (!members.is_empty()).then_some(Extra::Members(members));
    Ok(Derived { layout, signature, extra })
}

/// Returns the named type of the kind that `selected_real_kind(p, r)` returns in a Fortran
/// processor like gfortran on this target.
///
/// The kinds are 4, 8, 16 and, on x86, 10. On x86-64, kind 10 has the same bytes as C's `long
/// double`, so the named type of `long double` is returned for it. On 32-bit x86 the same type is
/// returned, but it has the 16 bytes of x86-64, where the compilers use 12.
fn f90_float(call: &ConstructorCall, p: Option<i64>, r: Option<i64>, complex: bool) -> Result<Named> {
    for (argument, value) in [("p", p), ("r", r)] {
        if let Some(value) = value {
            call.not_negative(ErrorClass::Arg, argument, value)?;
        }
    }
    if p.is_none() && r.is_none() {
        let rule = "p and r must not both be undefined";
        return Err(Error::new(ErrorClass::Arg, call.0, "p", "undefined", rule));
    }
    let (precision, range) = (p.unwrap_or(0), r.unwrap_or(0));
    let x87 = cfg!(any(target_arch = "x86", target_arch = "x86_64"));
    let kinds = [
        (6, 37, Named::Real4, Named::Complex8),
        (15, 307, Named::Real8, Named::Complex16),
        (if x87 { 18 } else { -1 }, 4931, Named::LongDouble, Named::CLongDoubleComplex),
        (33, 4931, Named::Real16, Named::Complex32),
    ];
    let kind = kinds.into_iter().find(|k| precision <= k.0 && range <= k.1);
    let Some((_, _, real, both)) = kind else {
        let (argument, value) = if precision > 33 { ("p", precision) } else { ("r", range) };
        let rule = "no real kind has more than 33 digits or a decimal exponent range above 4931";
        return Err(Error::new(ErrorClass::Arg, call.0, argument, value, rule));
    };
    Ok(if complex { both } else { real })
}

/// Returns the named type of the kind that `selected_int_kind(r)` returns.
fn f90_integer(call: &ConstructorCall, r: i64) -> Result<Named> {
    call.not_negative(ErrorClass::Arg, "r", r)?;
    let kinds = [
        (2, Named::Integer1),
        (4, Named::Integer2),
        (9, Named::Integer4),
        (18, Named::Integer8),
        (38, Named::Integer16),
    ];
    kinds.into_iter().find(|k| r <= k.0).map(|k| k.1).ok_or_else(|| {
        Error::new(ErrorClass::Arg, call.0, "r", r, "no integer kind has a decimal exponent range above 38")
    })
}

/// Checks the types of a pair of a value and an index, and returns them as named types.
fn value_index(call: &ConstructorCall, value: &Datatype, index: &Datatype) -> Result<(Named, Named)> {
    let refuse = |argument, t: &Datatype, rule| {
        Error::new(ErrorClass::Type, call.0, argument, t.combiner().text_name(), rule)
    };
    let numeric = "must be a named integer or floating point type";
    let Combiner::Named(v) = *value.combiner() else { return Err(refuse("value", value, numeric)) };
    let Combiner::Named(i) = *index.combiner() else {
        return Err(refuse("index", index, "must be a named integer type"));
    };
    if !matches!(v.class(), Class::Integer | Class::Unsigned | Class::Float) {
        return Err(refuse("value", value, numeric));
    }
    if !matches!(i.class(), Class::Integer | Class::Unsigned) {
        return Err(refuse("index", index, "must be a named integer type"));
    }
    Ok((v, i))
}
