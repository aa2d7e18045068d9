//! Functions of yaksa's interface that construct derived types (`yaksa_type_create_...`). Most
//! constructors return the null type if the new type would have no data. There are two exceptions,
//! which keep their bounds: a resized type, and an empty subarray. If the new type would be equal
//! to the old type, both share one node. If a simpler constructor describes the same type, the node
//! has the arguments of that constructor.

use std::ffi::{c_int, c_void};

use crate::abi::{Code, Result, export, input, out, require};
use crate::arrays::{Blocks, Places};
use crate::builtin;
use crate::info::usable;
use crate::node::{Node, Ref, Shape};
use crate::recent;
use crate::startup::running;

/// Result of a constructor; `None` for the null type. If the node already has a type handle, it
/// gets a further one.
struct Made(Option<Ref>);

impl Made {
    const NULL: Made = Made(None);

    /// Returns a new type handle, or 0 for the null type.
    fn number(self) -> Result<u64> {
        self.0.map_or(Ok(0), recent::insert)
    }
}

impl From<Ref> for Made {
    fn from(node: Ref) -> Made {
        Made(Some(node))
    }
}

fn old(number: u64) -> Result<Ref> {
    recent::get(number)
}

fn contiguous(count: i64, old: Ref) -> Result<Made> {
    require(count >= 0)?;
    match count {
        _ if count == 0 || old.facts.size == 0 => Ok(Made::NULL),
        1 => Ok(old.into()),
        _ => Node::copies(count, old).map(Made::from),
    }
}

/// Returns a type of `count` blocks, which are `stride` bytes apart. Each block has `length` copies
/// of `old`.
fn strided(count: i64, length: i64, stride: i64, old: Ref) -> Result<Made> {
    require(count >= 0 && length >= 0)?;
    match count {
        _ if count == 0 || length == 0 || old.facts.size == 0 => Ok(Made::NULL),
        1 => contiguous(length, old),
        _ => Node::strided(count, length, stride, old).map(Made::from),
    }
}

/// Unit in which the displacements of a constructor are given.
#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Extents,
}

impl Unit {
    /// Returns the size of the unit in bytes. For [`Unit::Extents`], this is the extent of `old`,
    /// the type whose copies lie at the displacements.
    fn bytes(self, old: &Ref) -> i64 {
        match self {
            Unit::Bytes => 1,
            Unit::Extents => old.facts.extent,
        }
    }
}

/// Returns a type made of one block of `length` copies of `old` at each of the displacements `at`.
fn blocks(length: i64, at: &[isize], unit: Unit, old: Ref) -> Result<Made> {
    require(length >= 0)?;
    let (Some(&first), false) = (at.first(), length == 0 || old.facts.size == 0) else {
        return Ok(Made::NULL);
    };
    // If the first block is at displacement 0 and all blocks are equally spaced, a vector describes
    // them, and no table of displacements is needed.
    let step = at.get(1).map_or(0, |second| second.wrapping_sub(first));
    if first == 0 && at.windows(2).all(|d| d[1].checked_sub(d[0]) == Some(step)) {
        let step = (step as i64).checked_mul(unit.bytes(&old)).ok_or(Code::Internal)?;
        return strided(at.len() as i64, length, step, old);
    }
    Node::blocks(length, Places::new(at, unit.bytes(&old))?, old).map(Made::from)
}

/// Returns a type made of blocks of copies of `old`. Block `i` is at displacement `at[i]` and has
/// `lengths[i]` copies.
fn indexed(lengths: &[isize], at: &[isize], unit: Unit, old: Ref) -> Result<Made> {
    // `all` is the bitwise or of the lengths. It is negative if a length is negative, and 0 if all
    // lengths are 0.
    let all = lengths.iter().fold(0, |all, &length| all | length);
    require(all >= 0)?;
    if old.facts.size == 0 || all == 0 {
        return Ok(Made::NULL);
    }
    if lengths.windows(2).all(|l| l[0] == l[1]) {
        return blocks(lengths[0] as i64, at, unit, old);
    }
    Node::listed(Blocks::new(lengths, at, unit.bytes(&old))?, old).map(Made::from)
}

fn structure(lengths: &[isize], at: &[isize], numbers: &[u64]) -> Result<Made> {
    require(lengths.iter().all(|&length| length >= 0))?;
    // The types of all members are looked up before anything else, because a handle that names no
    // type is an error even if the block length of the member is 0.
    let mut children = Vec::new();
    children.try_reserve_exact(numbers.len()).map_err(|_| Code::OutOfMem)?;
    for &number in numbers {
        children.push(old(number)?);
    }
    let has_data = |(child, &length): (&Ref, &isize)| length > 0 && child.facts.size > 0;
    if !children.iter().zip(lengths).any(has_data) {
        return Ok(Made::NULL);
    }
    let all = |alike: fn(&Ref, &Ref) -> bool| children.windows(2).all(|c| alike(&c[0], &c[1]));
    // If all members have the same type, an indexed type has the same data and bounds as the
    // struct.
    if all(Ref::same) {
        return indexed(lengths, at, Unit::Bytes, children.swap_remove(0));
    }
    // A struct is padded only if its members do not all have the same type. Integers that differ
    // only in sign keep their types, but count as one type here.
    let padded = !all(builtin::same);
    Node::structure(Blocks::new(lengths, at, 1)?, children.into(), padded).map(Made::from)
}

/// Returns a type with the data of `old`, the lower bound `lb` and the extent `extent`.
fn resized(old: Ref, lb: i64, extent: i64) -> Result<Made> {
    let facts = &old.facts;
    if (facts.lb, facts.extent) == (lb, extent) {
        return Ok(old.into());
    }
    // If `old` is itself a resized type, the new bounds replace its bounds.
    let child = match old.shape() {
        Shape::Bounded { child } => Ref::clone(child),
        _ => old,
    };
    Node::bounded(child, lb, extent).map(Made::from)
}

/// Dimension of an array: its size, and the size and start of the subarray in it. All are in
/// elements.
struct Dimension {
    size: i64,
    subsize: i64,
    start: i64,
}

/// Returns the type of a subarray of an array whose elements have the type `child`. In
/// `dimensions`, the dimension whose index varies fastest in memory comes first, and the slowest
/// one last.
fn subarray(dimensions: &[Dimension], child: Ref) -> Result<Ref> {
    let fits = |d: &Dimension| {
        let inside = d.subsize >= 0 && d.start >= 0 && d.subsize <= d.size && d.start <= d.size - d.subsize;
        d.size >= 1 && inside
    };
    require(dimensions.iter().all(fits))?;
    // All dimensions are valid. `stride` is the distance in bytes between neighbouring elements in
    // the current dimension. `start` is the displacement in bytes of the first element of the
    // subarray.
    let empty = dimensions.iter().any(|d| d.subsize == 0);
    let times = |a: i64, b: i64| a.checked_mul(b).ok_or(Code::Internal);
    let (mut stride, mut start) = (child.facts.extent, 0i64);
    // In the dimensions that the loop has handled so far, the subarray consists of `row` copies of
    // `inner`. For each slower dimension in which the subarray has more than one element, the loop
    // makes a strided type with one block for each of these elements. A block has the `row` copies
    // of the old `inner`, and the strided type is the new `inner`.
    let (mut inner, mut row) = (child, 1);
    for (i, d) in dimensions.iter().enumerate() {
        start = times(d.start, stride)?.checked_add(start).ok_or(Code::Internal)?;
        if i == 0 {
            row = d.subsize;
        } else if !empty && d.subsize > 1 {
            (inner, row) = (Node::strided(d.subsize, row, stride, inner)?, 1);
        }
        stride = times(stride, d.size)?;
    }
    if empty {
        // The subarray has no data, but its type still has the bounds of the whole array.
        inner = Node::empty();
    } else if start != 0 {
        inner = Node::blocks(row, Places::one(start), inner)?;
    } else if row > 1 {
        inner = Node::copies(row, inner)?;
    }
    Node::bounded(inner, 0, stride)
}

/// Calls `make` to create a type and writes the handle of that type to `place`.
///
/// # Safety
/// `place` must be null, or valid for writes of a `u64`.
unsafe fn give(place: *mut u64, info: *const c_void, make: impl FnOnce() -> Result<Made>) -> Result<()> {
    // SAFETY: the caller promises that `place` is null or valid for writes, as `out` requires.
    let place = unsafe { out(place) }?;
    running()?;
    usable(info)?;
    place.set(make()?.number()?);
    Ok(())
}

export! {
    fn yaksa_type_create_contig(count: isize, number: u64, info: *mut c_void, newtype: *mut u64) {
        give(newtype, info, || {
            contiguous(count as i64, old(number)?)
        })
    }

    fn yaksa_type_create_dup(number: u64, info: *mut c_void, newtype: *mut u64) {
        give(newtype, info, || {
            let old = old(number)?;
            Ok(if number == 0 { Made::NULL } else { old.into() })
        })
    }

    fn yaksa_type_create_vector(
        count: isize, blocklength: isize, stride: isize, number: u64, info: *mut c_void, newtype: *mut u64,
    ) {
        give(newtype, info, || {
            let old = old(number)?;
            // With at most one block the stride is not used, so no error results if its product
            // with the extent overflows.
            let stride = if count > 1 { (stride as i64).checked_mul(old.facts.extent) } else { Some(0) };
            strided(count as i64, blocklength as i64, stride.ok_or(Code::Internal)?, old)
        })
    }

    fn yaksa_type_create_hvector(
        count: isize, blocklength: isize, stride: isize, number: u64, info: *mut c_void, newtype: *mut u64,
    ) {
        give(newtype, info, || {
            strided(count as i64, blocklength as i64, stride as i64, old(number)?)
        })
    }

    fn yaksa_type_create_indexed_block(
        count: isize, blocklength: isize, displacements: *const isize, number: u64, info: *mut c_void,
        newtype: *mut u64,
    ) {
        give(newtype, info, || {
            blocks(blocklength as i64, input(displacements, count)?, Unit::Extents, old(number)?)
        })
    }

    fn yaksa_type_create_hindexed_block(
        count: isize, blocklength: isize, displacements: *const isize, number: u64, info: *mut c_void,
        newtype: *mut u64,
    ) {
        give(newtype, info, || {
            blocks(blocklength as i64, input(displacements, count)?, Unit::Bytes, old(number)?)
        })
    }

    fn yaksa_type_create_indexed(
        count: isize, lengths: *const isize, displacements: *const isize, number: u64, info: *mut c_void,
        newtype: *mut u64,
    ) {
        give(newtype, info, || {
            indexed(input(lengths, count)?, input(displacements, count)?, Unit::Extents, old(number)?)
        })
    }

    fn yaksa_type_create_hindexed(
        count: isize, lengths: *const isize, displacements: *const isize, number: u64, info: *mut c_void,
        newtype: *mut u64,
    ) {
        give(newtype, info, || {
            indexed(input(lengths, count)?, input(displacements, count)?, Unit::Bytes, old(number)?)
        })
    }

    fn yaksa_type_create_struct(
        count: isize, lengths: *const isize, displacements: *const isize, numbers: *const u64,
        info: *mut c_void, newtype: *mut u64,
    ) {
        give(newtype, info, || {
            structure(input(lengths, count)?, input(displacements, count)?, input(numbers, count)?)
        })
    }

    fn yaksa_type_create_resized(
        number: u64, lb: isize, extent: isize, info: *mut c_void, newtype: *mut u64,
    ) {
        give(newtype, info, || {
            resized(old(number)?, lb as i64, extent as i64)
        })
    }

    fn yaksa_type_create_subarray(
        ndims: c_int, sizes: *const isize, subsizes: *const isize, starts: *const isize, order: c_int,
        number: u64, info: *mut c_void, newtype: *mut u64,
    ) {
        give(newtype, info, || {
            let old = old(number)?;
            let n = ndims as isize;
            let (sizes, subsizes, starts) = (input(sizes, n)?, input(subsizes, n)?, input(starts, n)?);
            require(order == 0 || order == 1)?;
            if n == 0 || old.facts.size == 0 {
                return Ok(Made::NULL);
            }
            let all = sizes.iter().zip(subsizes).zip(starts);
            let all = all.map(|((&size, &subsize), &start)| Dimension {
                size: size as i64,
                subsize: subsize as i64,
                start: start as i64,
            });
            let mut dimensions: Vec<Dimension> = all.collect();
            // In C order the slowest dimension comes first, but `subarray` takes the fastest one
            // first.
            if order == 0 {
                dimensions.reverse();
            }
            subarray(&dimensions, old).map(Made::from)
        })
    }
}
