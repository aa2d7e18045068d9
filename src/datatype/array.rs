//! Subarray and darray as trees of simpler constructors, with O(dimensions) nodes each.
//!
//! MPI 5.0 section 5.1.3 defines a subarray dimension by dimension. Section 5.1.4 reduces every
//! distribution of a darray to `cyclic(darg)`, whose last block may be shorter. Strides are
//! computed in bytes from the extent of `oldtype`, so the extents of the inner trees do not matter.
//! Both bounds of the result are set once, by a `resized` node on top: the lower bound is 0, and
//! the extent is the product of the sizes and the extent of `oldtype`.

use super::Datatype;
use super::call::ConstructorCall;
use super::combiner::{Distribution, Order};
use crate::error::{Error, ErrorClass, Result};

/// Arguments of darray except `oldtype`.
pub(crate) struct Grid<'a> {
    pub(crate) size: i64,
    pub(crate) rank: i64,
    pub(crate) gsizes: &'a [i64],
    pub(crate) distribs: &'a [Distribution],
    pub(crate) dargs: &'a [Option<i64>],
    pub(crate) psizes: &'a [i64],
    pub(crate) order: Order,
}

/// Returns the indices of the dimensions, beginning with the contiguous one.
fn fastest_first(ndims: usize, order: Order) -> Box<dyn Iterator<Item = usize>> {
    match order {
        Order::C => Box::new((0..ndims).rev()),
        Order::Fortran => Box::new(0..ndims),
    }
}

fn positive(call: &ConstructorCall, argument: &str, index: usize, value: i64) -> Result<()> {
    if value <= 0 {
        let argument = format!("{argument}[{index}]");
        return Err(Error::new(ErrorClass::Arg, call.0, argument, value, "must be positive"));
    }
    Ok(())
}

fn some_dimensions(call: &ConstructorCall, ndims: usize) -> Result<()> {
    if ndims == 0 {
        return Err(Error::new(ErrorClass::Arg, call.0, "ndims", 0, "must be positive"));
    }
    Ok(())
}

/// Datatype of the wanted elements in the dimensions that have been added so far. Dimensions are
/// added one at a time, beginning with the contiguous one. The first wanted element is `offset`
/// bytes after the start of the array.
struct Slab<'a> {
    call: &'a ConstructorCall,
    /// Name of the argument that the error of an overflow shows.
    sizes: &'static str,
    tree: Datatype,
    offset: i64,
    /// Distance in bytes between neighbouring elements in the dimension that is added next.
    stride: i64,
}

impl Slab<'_> {
    /// Returns the error of an overflow that the size of dimension `d` causes.
    fn overflow(&self, d: usize, size: i64) -> Error {
        self.call.overflow(format!("{}[{d}]", self.sizes), size)
    }

    fn bytes(&self, indices: i128, d: usize, size: i64) -> Result<i64> {
        let bytes = i128::from(self.stride).checked_mul(indices).and_then(|b| i64::try_from(b).ok());
        bytes.ok_or_else(|| self.overflow(d, size))
    }

    /// Returns the type of `n` neighbouring elements in the dimension that is added next.
    /// `innermost` says that it is the contiguous one.
    fn neighbours(&self, n: i64, innermost: bool) -> Result<Datatype> {
        match n {
            1 => Ok(self.tree.clone()),
            _ if innermost => Datatype::contiguous(n, &self.tree),
            _ => Datatype::hvector(n, 1, self.stride, &self.tree),
        }
    }

    /// Adds dimension `d`, which has `size` elements in the whole array. `tree` is the type of the
    /// wanted elements, the first of which has index `first`.
    fn advance(&mut self, tree: Result<Datatype>, first: i128, d: usize, size: i64) -> Result<()> {
        // The arguments have been checked, so if a constructor refused to make `tree`, the reason
        // is an overflow.
        self.tree = tree.map_err(|_| self.overflow(d, size))?;
        let shift = self.bytes(first, d, size)?;
        self.offset = self.offset.checked_add(shift).ok_or_else(|| self.overflow(d, size))?;
        self.stride = self.bytes(i128::from(size), d, size)?;
        Ok(())
    }

    /// Returns the type of the whole array. `d` is the dimension that was added last.
    fn finish(self, d: usize, size: i64) -> Result<Datatype> {
        let placed = match self.offset {
            0 => Ok(self.tree.clone()),
            offset => Datatype::hindexed(&[1], &[offset], &self.tree),
        };
        placed.and_then(|t| Datatype::resized(0, self.stride, &t)).map_err(|_| self.overflow(d, size))
    }
}

/// Checks the arguments of a subarray and returns its tree.
pub(crate) fn subarray(
    call: &ConstructorCall,
    sizes: &[i64],
    subsizes: &[i64],
    starts: &[i64],
    order: Order,
    oldtype: &Datatype,
) -> Result<Datatype> {
    some_dimensions(call, sizes.len())?;
    call.same_length("subsizes", subsizes.len(), "sizes", sizes.len())?;
    call.same_length("starts", starts.len(), "sizes", sizes.len())?;
    for (d, ((&size, &subsize), &start)) in sizes.iter().zip(subsizes).zip(starts).enumerate() {
        positive(call, "sizes", d, size)?;
        positive(call, "subsizes", d, subsize)?;
        if subsize > size {
            let rule = format!("must be at most sizes[{d}], which is {size}");
            return Err(Error::new(ErrorClass::Arg, call.0, format!("subsizes[{d}]"), subsize, rule));
        }
        if start < 0 || start > size - subsize {
            let rule = format!("must be from 0 to sizes[{d}] - subsizes[{d}], which is {}", size - subsize);
            return Err(Error::new(ErrorClass::Arg, call.0, format!("starts[{d}]"), start, rule));
        }
    }
    // Nest one constructor per dimension, from the contiguous dimension outwards.
    let mut slab = Slab { call, sizes: "sizes", tree: oldtype.clone(), offset: 0, stride: oldtype.extent() };
    let mut last = 0;
    for (level, d) in fastest_first(sizes.len(), order).enumerate() {
        slab.advance(slab.neighbours(subsizes[d], level == 0), i128::from(starts[d]), d, sizes[d])?;
        last = d;
    }
    slab.finish(last, sizes[last])
}

/// One dimension of a darray, as the blocks of it that a process owns. The process has coordinate
/// `r` among the `psize` processes of the dimension. Its block `k` has the `darg` global indices
/// from `(r + k*psize)*darg` on, cut at `gsize`.
struct Cyclic {
    darg: i64,
    r: i64,
    psize: i64,
    gsize: i64,
}

impl Cyclic {
    /// Returns the number of blocks that the process owns.
    fn count(&self) -> i64 {
        let blocks = (self.gsize - 1) / self.darg + 1;
        if self.r >= blocks { 0 } else { (blocks - self.r - 1) / self.psize + 1 }
    }

    /// Returns the first global index of block `k` of the process.
    fn start(&self, k: i64) -> i128 {
        (i128::from(self.r) + i128::from(k) * i128::from(self.psize)) * i128::from(self.darg)
    }

    /// Returns the number of elements in block `k` of the process.
    fn length(&self, k: i64) -> i64 {
        let left = i128::from(self.gsize) - self.start(k);
        if left < i128::from(self.darg) { left as i64 } else { self.darg }
    }
}

/// Returns the coordinates of process `rank` in the process grid, which is row-major for both
/// storage orders of the array.
fn coordinates(rank: i64, psizes: &[i64]) -> Vec<i64> {
    let mut rest = rank;
    let mut r = vec![0; psizes.len()];
    for d in (0..psizes.len()).rev() {
        r[d] = rest % psizes[d];
        rest /= psizes[d];
    }
    r
}

/// Checks the arguments of a darray, and returns the blocks of the process for every dimension.
fn reduce(call: &ConstructorCall, grid: &Grid<'_>) -> Result<Vec<Cyclic>> {
    let ndims = grid.gsizes.len();
    some_dimensions(call, ndims)?;
    call.same_length("distribs", grid.distribs.len(), "gsizes", ndims)?;
    call.same_length("dargs", grid.dargs.len(), "gsizes", ndims)?;
    call.same_length("psizes", grid.psizes.len(), "gsizes", ndims)?;
    if grid.size <= 0 {
        return Err(Error::new(ErrorClass::Arg, call.0, "size", grid.size, "must be positive"));
    }
    if grid.rank < 0 || grid.rank >= grid.size {
        let rule = format!("must be from 0 to size - 1, which is {}", grid.size - 1);
        return Err(Error::new(ErrorClass::Arg, call.0, "rank", grid.rank, rule));
    }
    for d in 0..ndims {
        positive(call, "gsizes", d, grid.gsizes[d])?;
        positive(call, "psizes", d, grid.psizes[d])?;
    }
    // All entries of `psizes` are positive here. If their product overflows, it cannot be the
    // number of processes.
    let processes = grid.psizes.iter().try_fold(1i64, |p, &n| p.checked_mul(n));
    if processes != Some(grid.size) {
        let rule = format!(
            "must be the product of psizes, which is {}",
            processes.map_or("too large".into(), |p| p.to_string())
        );
        return Err(Error::new(ErrorClass::Arg, call.0, "size", grid.size, rule));
    }
    // Express each distribution as blocks of `darg` elements that are dealt to the processes in
    // turn.
    let r = coordinates(grid.rank, grid.psizes);
    (0..ndims)
        .map(|d| {
            let (gsize, psize) = (grid.gsizes[d], grid.psizes[d]);
            let darg = match (grid.distribs[d], grid.dargs[d]) {
                (Distribution::None, _) if psize != 1 => {
                    let rule = "must be 1 where the dimension is not distributed";
                    return Err(Error::new(ErrorClass::Arg, call.0, format!("psizes[{d}]"), psize, rule));
                }
                (Distribution::None, _) => gsize,
                (_, Some(darg)) if darg <= 0 => {
                    let rule = "must be positive or the default";
                    return Err(Error::new(ErrorClass::Arg, call.0, format!("dargs[{d}]"), darg, rule));
                }
                (Distribution::Block, None) => (gsize - 1) / psize + 1,
                (Distribution::Cyclic, None) => 1,
                (Distribution::Block, Some(darg))
                    if i128::from(darg) * i128::from(psize) < i128::from(gsize) =>
                {
                    let rule = format!("blocks times psizes[{d}] = {psize} must cover gsizes[{d}] = {gsize}");
                    return Err(Error::new(ErrorClass::Arg, call.0, format!("dargs[{d}]"), darg, rule));
                }
                (_, Some(darg)) => darg,
            };
            // If the dimension has only one process, all blocks are neighbours of each other, so
            // they form a single block.
            Ok(Cyclic { darg: if psize == 1 { gsize } else { darg }, r: r[d], psize, gsize })
        })
        .collect()
}

/// Checks the arguments of a darray and returns its tree.
pub(crate) fn darray(call: &ConstructorCall, grid: &Grid<'_>, oldtype: &Datatype) -> Result<Datatype> {
    let dimensions = reduce(call, grid)?;
    let empty = dimensions.iter().any(|c| c.count() == 0);
    let tree = if empty { Datatype::contiguous(0, oldtype)? } else { oldtype.clone() };
    let mut slab = Slab { call, sizes: "gsizes", tree, offset: 0, stride: oldtype.extent() };
    let mut last = 0;
    for (level, d) in fastest_first(dimensions.len(), grid.order).enumerate() {
        let c = &dimensions[d];
        last = d;
        // If the process owns no elements, only the stride is needed, from which `finish` computes
        // the extent of the array.
        if empty {
            slab.stride = slab.bytes(i128::from(c.gsize), d, c.gsize)?;
            continue;
        }
        // All blocks of the process have `darg` elements, except that the last one may be shorter.
        // Two or more full blocks become an hvector, and a single full block is taken as it is. A
        // shorter block after full ones is added by a struct. If the shorter block is the only one,
        // it is taken as it is too.
        let innermost = level == 0;
        let (count, short) = (c.count(), c.length(c.count() - 1));
        let step = if count == 1 { 0 } else { slab.bytes(c.start(1) - c.start(0), d, c.gsize)? };
        let full = if short == c.darg { count } else { count - 1 };
        let run = |blocks: i64| match blocks {
            1 => slab.neighbours(c.darg, innermost),
            _ => Datatype::hvector(blocks, 1, step, &slab.neighbours(c.darg, innermost)?),
        };
        let tree = if full == count {
            run(count)
        } else if full == 0 {
            slab.neighbours(short, innermost)
        } else {
            let at = slab.bytes(c.start(count - 1) - c.start(0), d, c.gsize)?;
            let ends = run(full).and_then(|full| Ok([full, slab.neighbours(short, innermost)?]));
            ends.and_then(|ends| Datatype::structure(&[1, 1], &[0, at], &ends))
        };
        slab.advance(tree, c.start(0), d, c.gsize)?;
    }
    slab.finish(last, grid.gsizes[last])
}
