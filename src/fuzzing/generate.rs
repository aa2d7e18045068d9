//! Generator of datatypes. They are valid by construction, use every constructor, and have sizes
//! bounded by a budget.
//!
//! A pool of datatypes grows from the leaves up: each step applies one constructor to members of
//! the pool. So subtrees are shared, as in a program that reuses its types. Numbers are not drawn
//! evenly but from patterns that matter to a compiler: dense, constant distance, periodic, sorted
//! with gaps, backwards, overlapping, arbitrary. Lengths are drawn from both sides of the access
//! widths and unrolling limits of compiled code.

use super::choices::Choices;
use crate::datatype::{Class, Combiner, Datatype, Distribution, Named, Order};
use crate::error::Result;

/// Limits on the generated datatypes.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Maximum number of constructor steps. A step adds one node or a short chain of nodes.
    pub steps: u64,
    /// Maximum number of packed bytes of one instance.
    pub size: i64,
    /// Maximum distance of any bound from displacement 0, and maximum extent, in bytes.
    pub span: i64,
    /// Maximum number of entries of an argument array.
    pub entries: i64,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { steps: 7, size: 4 << 10, span: 64 << 10, entries: 40 }
    }
}

impl Budget {
    /// Returns a budget for datatypes so small that many cases are checked in little time.
    pub fn small() -> Budget {
        Budget { steps: 5, size: 512, span: 8 << 10, entries: 12 }
    }

    /// Returns a budget for millions of cases: enough bytes for one plan of every kind, but few
    /// enough to evaluate plans one byte at a time.
    pub fn tiny() -> Budget {
        Budget { steps: 4, size: 128, span: 1 << 10, entries: 6 }
    }

    /// Returns whether size and bounds of `t` are within the budget.
    fn allows(&self, t: &Datatype) -> bool {
        let bounds = [t.lb(), t.ub(), t.true_lb(), t.true_ub(), t.extent(), t.true_extent()];
        t.size() <= self.size && bounds.iter().all(|b| b.unsigned_abs() <= self.span as u64)
    }
}

/// Named types that programs often use, and those that are difficult for compilers: types with
/// padding, types of 16 bytes and types of one byte.
const COMMON: [Named; 14] = [
    Named::Int,
    Named::Double,
    Named::Char,
    Named::Float,
    Named::Short,
    Named::Byte,
    Named::DoubleComplex,
    Named::DoubleInt,
    Named::ShortInt,
    Named::LongDouble,
    Named::LongDoubleInt,
    Named::Int64,
    Named::Complex32,
    Named::Packed,
];

/// Lengths on both sides of access widths, unrolling and inlining limits.
const EDGES: [i64; 22] = [4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 97, 100, 257];

/// Returns a datatype within `budget`.
pub fn datatype(c: &mut Choices<'_>, budget: &Budget) -> Datatype {
    let mut g = Generator { budget, pool: Vec::new() };
    let steps = c.below(budget.steps + 1);
    g.pool.push(leaf(c));
    for _ in 0..steps {
        // If bounds leave the budget or arithmetic overflows, the new datatype is dropped and the
        // pool stays as it is.
        if let Ok(t) = g.step(c)
            && budget.allows(&t)
        {
            g.pool.push(if c.chance(20) { t.with_large_count() } else { t });
        }
    }
    g.pool.pop().unwrap_or_else(|| Datatype::named(Named::Byte))
}

/// Returns a number of instances: usually one that the corpus uses, sometimes another one.
pub fn instances(c: &mut Choices<'_>) -> u64 {
    match c.below(8) {
        0..=5 => c.pick(&[1, 2, 3, 17, 0]),
        6 => c.below(70),
        _ => 1,
    }
}

/// Returns a datatype without children other than named types.
fn leaf(c: &mut Choices<'_>) -> Datatype {
    match c.below(16) {
        0..=11 => Datatype::named(c.pick(&COMMON)),
        12 | 13 => Datatype::named(c.pick(Named::ALL)),
        14 => float(c).unwrap_or_else(|_| Datatype::named(Named::Int)),
        _ => {
            let numeric = |n: &Named| matches!(n.class(), Class::Integer | Class::Float);
            let named: Vec<Named> = Named::ALL.iter().copied().filter(numeric).collect();
            let value = Datatype::named(c.pick(&named));
            let integer = |n: &Named| n.class() == Class::Integer;
            let named: Vec<Named> = named.into_iter().filter(integer).collect();
            let index = Datatype::named(c.pick(&named));
            Datatype::value_index(&value, &index).unwrap_or(value)
        }
    }
}

/// Returns a parameterized Fortran type: an integer, real or complex one.
fn float(c: &mut Choices<'_>) -> Result<Datatype> {
    let p = c.pick(&[6, 15, 18, 33]);
    let (p, r) = match c.below(3) {
        0 => (Some(p), Some(37)),
        1 => (Some(p), None),
        _ => (None, Some(307)),
    };
    match c.below(3) {
        0 => Datatype::f90_integer(c.pick(&[2, 4, 9, 18, 38])),
        1 => Datatype::f90_real(p, r),
        _ => Datatype::f90_complex(p, r),
    }
}

/// Returns a number between 0 and `max`, inclusive: usually a small one, sometimes one of `EDGES`,
/// sometimes any.
fn small(c: &mut Choices<'_>, max: i64) -> i64 {
    let n = match c.below(8) {
        0..=4 => c.pick(&[1, 2, 3, 4, 2, 3, 5, 1, 2, 3, 4, 0]),
        5 | 6 => c.pick(&EDGES),
        _ => c.within(0, max),
    };
    if n <= max { n } else { n % (max + 1) }
}

/// State of the generator: the limits, and the datatypes that it has made so far.
struct Generator<'b> {
    budget: &'b Budget,
    pool: Vec<Datatype>,
}

impl Generator<'_> {
    /// Returns a datatype for use as a child: usually the last one of the pool, sometimes another
    /// one of the pool or a new leaf.
    fn child(&self, c: &mut Choices<'_>) -> Datatype {
        match c.below(8) {
            0..=4 => self.pool[self.pool.len() - 1].clone(),
            5 | 6 => self.pool[c.below(self.pool.len() as u64) as usize].clone(),
            _ => leaf(c),
        }
    }

    /// Returns the maximum number of copies of `t` that the budget allows.
    fn copies(&self, t: &Datatype) -> i64 {
        let by_size = self.budget.size / t.size().max(1);
        let by_span = self.budget.span / t.extent().abs().max(1);
        by_size.min(by_span).min(self.budget.size)
    }

    /// Applies one constructor to a child. Returns an error if the constructor refuses its
    /// arguments.
    fn step(&mut self, c: &mut Choices<'_>) -> Result<Datatype> {
        let t = self.child(c);
        match c.below(21) {
            0 => Datatype::contiguous(small(c, self.copies(&t)), &t),
            1..=4 => self.vector(c, &t),
            5..=7 => self.indexed(c, &t),
            8 => self.block(c, &t),
            9..=11 => self.structure(c, &t),
            12 | 13 => self.subarray(c, &t),
            14 => self.darray(c, &t),
            15 | 16 => self.resized(c, &t),
            17 => self.grid(c, t),
            18 => chain(c, t),
            19 => self.columns(c, &t),
            _ => Ok(t.dup()),
        }
    }

    /// Returns a stride for `n` blocks of `width` units each, such that the first and last block
    /// are at most `max` units apart.
    fn stride(c: &mut Choices<'_>, width: i64, n: i64, max: i64) -> i64 {
        let most = max / (n - 1).max(1);
        let stride = match c.below(12) {
            0 | 1 => width + c.within(1, 3),
            2 => width,
            3 => 2 * width,
            4 => -width - c.within(0, 2),
            5 => width - 1,
            6 => c.pick(&[0, 1, -1, 2]),
            7 => c.pick(&[4096, 4160, 64, 1024]),
            8 => c.within(-most, most),
            _ => c.within(width, 4 * width + 4),
        };
        stride.clamp(-most, most)
    }

    fn vector(&self, c: &mut Choices<'_>, t: &Datatype) -> Result<Datatype> {
        let copies = self.copies(t);
        let blocklength = small(c, copies);
        let count = small(c, copies / blocklength.max(1));
        let legacy = c.chance(20);
        if c.chance(128) {
            let stride = Self::stride(c, blocklength * t.extent().abs(), count, self.budget.span);
            let oldtype = t.clone();
            return Datatype::new(Combiner::Hvector { count, blocklength, stride, oldtype, legacy });
        }
        let max = self.budget.span / t.extent().abs().max(1);
        Datatype::vector(count, blocklength, Self::stride(c, blocklength, count, max), t)
    }

    /// Returns `n` block lengths whose sum is at most `copies`.
    fn lengths(&self, c: &mut Choices<'_>, n: i64, copies: i64) -> Vec<i64> {
        let most = copies / n.max(1);
        let period = c.within(1, 3);
        let pattern: Vec<i64> = (0..period).map(|_| small(c, most)).collect();
        let mode = c.below(4);
        (0..n)
            .map(|i| match mode {
                0 => pattern[0],
                1 => pattern[(i % period) as usize],
                2 => small(c, most),
                _ => pattern[usize::from(i == n - 1).min(pattern.len() - 1)],
            })
            .collect()
    }

    /// Returns displacements of blocks with the lengths `widths`, in the same unit as `widths`, and
    /// not farther than `max` from zero.
    fn displacements(&self, c: &mut Choices<'_>, widths: &[i64], max: i64) -> Vec<i64> {
        let n = widths.len() as i64;
        let mut at = match c.below(3) {
            0 => 0,
            1 => c.within(0, 16),
            _ => c.within(-max / 4, max / 4),
        };
        let widest = widths.iter().copied().max().unwrap_or(0);
        let mode = c.below(8);
        let step = Self::stride(c, widest, n + 1, max / 2);
        let period = c.within(1, 4);
        let gaps: Vec<i64> = (0..period).map(|_| c.within(0, 5)).collect();
        let odd = c.below(n.max(1) as u64) as i64;
        let window = max / 4;
        let mut out = Vec::with_capacity(widths.len());
        for (i, &width) in widths.iter().enumerate() {
            let i = i as i64;
            out.push(match mode {
                // Mode 0 places entries at a constant distance. Mode 1 does the same, but moves one
                // entry by 1.
                0 => at + i * step,
                1 => at + i * step + i64::from(i == odd),
                // Mode 2 places entries anywhere in the window. Mode 3 places them in a range so
                // small that entries are likely to be repeated.
                2 => c.within(-window, window),
                3 => c.within(0, 2 * n),
                _ => at,
            });
            // Modes 4 to 7 place each block relative to the one before: without gaps, with periodic
            // gaps, with arbitrary gaps, and with arbitrary gaps at descending displacements.
            at += match mode {
                4 => width,
                5 => widest + gaps[(i % period) as usize],
                6 => width + c.within(0, 3),
                7 => -width - c.within(0, 3),
                _ => 0,
            };
        }
        out.iter().map(|d| (*d).clamp(-max, max)).collect()
    }

    fn indexed(&self, c: &mut Choices<'_>, t: &Datatype) -> Result<Datatype> {
        let n = small(c, self.budget.entries);
        let lengths = self.lengths(c, n, self.copies(t));
        let extent = t.extent().abs();
        if c.chance(100) {
            let max = self.budget.span / extent.max(1);
            return Datatype::indexed(&lengths, &self.displacements(c, &lengths, max), t);
        }
        let widths: Vec<i64> = lengths.iter().map(|l| l * extent).collect();
        Datatype::new(Combiner::Hindexed {
            displacements: self.displacements(c, &widths, self.budget.span).into(),
            blocklengths: lengths.into(),
            oldtype: t.clone(),
            legacy: c.chance(20),
        })
    }

    fn block(&self, c: &mut Choices<'_>, t: &Datatype) -> Result<Datatype> {
        let n = small(c, self.budget.entries);
        let blocklength = small(c, self.copies(t) / n.max(1));
        let extent = t.extent().abs();
        if c.chance(128) {
            let max = self.budget.span / extent.max(1);
            let displacements = self.displacements(c, &vec![blocklength; n as usize], max);
            return Datatype::indexed_block(blocklength, &displacements, t);
        }
        let displacements = self.displacements(c, &vec![blocklength * extent; n as usize], self.budget.span);
        Datatype::hindexed_block(blocklength, &displacements, t)
    }

    fn structure(&self, c: &mut Choices<'_>, t: &Datatype) -> Result<Datatype> {
        let n = small(c, self.budget.entries / 2).min(12);
        let equal = c.chance(100);
        let mut types = Vec::new();
        let mut lengths = Vec::new();
        let mut left = self.budget.size;
        for i in 0..n {
            let child = match c.below(8) {
                _ if equal || i == 0 => t.clone(),
                0 => Datatype::named(c.pick(&[Named::Lb, Named::Ub])),
                _ => self.child(c),
            };
            let most = self.copies(&child).min(left / child.size().max(1));
            let most = if c.chance(230) { most.min(4) } else { most };
            let length = small(c, most);
            left -= length * child.size();
            types.push(child);
            lengths.push(if equal && i > 0 { lengths[0] } else { length });
        }
        let widths: Vec<i64> = types.iter().zip(&lengths).map(|(t, n)| t.extent().abs() * n).collect();
        Datatype::new(Combiner::Struct {
            displacements: self.displacements(c, &widths, self.budget.span / 2).into(),
            blocklengths: lengths.into(),
            types: types.into(),
            legacy: c.chance(20),
        })
    }

    fn order(c: &mut Choices<'_>) -> Order {
        c.pick(&[Order::C, Order::Fortran])
    }

    fn subarray(&self, c: &mut Choices<'_>, t: &Datatype) -> Result<Datatype> {
        let ndims = c.within(1, 4);
        let (mut area, mut copies) = (self.budget.span / t.extent().abs().max(1), self.copies(t));
        let (mut sizes, mut subsizes, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ndims {
            let size = small(c, area.max(1)).max(1);
            let subsize = match c.below(4) {
                0 => size,
                1 => 1,
                _ => c.within(1, size),
            }
            .min(copies.max(1));
            sizes.push(size);
            subsizes.push(subsize);
            starts.push(c.within(0, size - subsize));
            area /= size;
            copies /= subsize;
        }
        Datatype::subarray(&sizes, &subsizes, &starts, Self::order(c), t)
    }

    fn darray(&self, c: &mut Choices<'_>, t: &Datatype) -> Result<Datatype> {
        let ndims = c.within(1, 3) as usize;
        let mut area = self.copies(t).max(1);
        let (mut gsizes, mut distribs, mut dargs, mut psizes) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ndims {
            let gsize = small(c, area).max(1);
            area = (area / gsize).max(1);
            let distribution = c.pick(&[Distribution::Block, Distribution::Cyclic, Distribution::None]);
            let psize = if distribution == Distribution::None { 1 } else { c.within(1, 4) };
            let darg = match distribution {
                _ if c.chance(100) => None,
                Distribution::Block => Some((gsize - 1) / psize + 1 + c.within(0, 2)),
                _ => Some(c.within(1, 4)),
            };
            gsizes.push(gsize);
            distribs.push(distribution);
            dargs.push(darg);
            psizes.push(psize);
        }
        let size: i64 = psizes.iter().product();
        let rank = c.within(0, size - 1);
        Datatype::darray(size, rank, &gsizes, &distribs, &dargs, &psizes, Self::order(c), t)
    }

    fn resized(&self, c: &mut Choices<'_>, t: &Datatype) -> Result<Datatype> {
        let lb = match c.below(4) {
            0 | 1 => 0,
            2 => t.true_lb(),
            _ => c.within(-40, 40),
        };
        let extent = match c.below(8) {
            0 => t.true_extent(),
            1 => t.extent(),
            2 => c.pick(&[0, 1, 4, 8, 16, -1]),
            3 => -t.extent(),
            4 => t.true_extent() / 2,
            5 => c.pick(&[4096, 8192, 5000]),
            _ => t.true_extent() + c.within(0, 64),
        };
        match c.chance(40) {
            true => Datatype::bounds(lb, extent, t),
            false => Datatype::resized(lb, extent, t),
        }
    }

    /// Returns a column of a matrix. Its instances begin about one element apart, so that one
    /// instance lies in the gaps of another, until the gaps are full.
    fn columns(&self, c: &mut Choices<'_>, t: &Datatype) -> Result<Datatype> {
        let (n, width) = (c.within(2, 20), c.within(1, 2));
        let most = (self.budget.span / t.extent().abs().max(1) / n).max(width);
        let column = Datatype::vector(n, width, c.within(width, most.min(40)), t)?;
        let next = if c.chance(80) { width * t.extent() } else { t.extent() + c.within(-1, 9) };
        let column = Datatype::resized(0, next, &column)?;
        if c.chance(30) { Datatype::contiguous(c.within(2, 6), &column) } else { Ok(column) }
    }

    /// Returns `t` inside 2 to 7 vectors of 1 to 3 blocks each, like an array of several
    /// dimensions, so that its nest has nested loops with few iterations each. There are fewer
    /// vectors if the budget does not allow more.
    fn grid(&self, c: &mut Choices<'_>, mut t: Datatype) -> Result<Datatype> {
        for _ in 0..c.within(2, 7) {
            let n = c.within(1, 3);
            let stride = Self::stride(c, t.true_extent().max(1), n, self.budget.span);
            let next = Datatype::hvector(n, c.within(1, 2), stride, &t)?;
            if !self.budget.allows(&next) {
                break;
            }
            t = next;
        }
        Ok(t)
    }
}

/// Applies up to 40 constructors that change nothing, or only the displacement.
fn chain(c: &mut Choices<'_>, mut t: Datatype) -> Result<Datatype> {
    for _ in 0..c.pick(&[2, 5, 20, 40]) {
        t = match c.below(7) {
            0 => t.dup(),
            1 => Datatype::contiguous(1, &t)?,
            2 => Datatype::vector(1, 1, 7, &t)?,
            3 => Datatype::hindexed(&[0, 1], &[5, c.within(-4, 4)], &t)?,
            4 => Datatype::structure(&[1], &[0], std::slice::from_ref(&t))?,
            5 => Datatype::indexed_block(1, &[0], &t)?,
            _ => Datatype::resized(t.lb(), t.extent(), &t)?,
        };
    }
    Ok(t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_constructor_comes_up_and_the_budget_holds() {
        let budget = Budget::default();
        let mut seen = BTreeSet::new();
        let (mut shared, mut negative, mut empty, mut deep, mut gapless) = (0, 0, 0, 0, 0);
        for seed in 0..2000 {
            let t = datatype(&mut Choices::from_seed(seed), &budget);
            assert!(budget.allows(&t), "{t}");
            seen.extend(t.nodes().map(|n| n.combiner().text_name()));
            let links: usize = t.nodes().map(|n| n.combiner().children().len()).sum();
            shared += u32::from(links >= t.nodes().count() && t.depth() > 1);
            negative += u32::from(t.true_lb() < 0 || t.extent() < 0);
            empty += u32::from(t.size() == 0);
            deep += u32::from(t.depth() > 18);
            gapless += u32::from(t.size() == t.extent());
        }
        for name in [
            "dup",
            "contiguous",
            "vector",
            "hvector",
            "hvector_integer",
            "indexed",
            "hindexed",
            "hindexed_integer",
            "indexed_block",
            "hindexed_block",
            "struct",
            "struct_integer",
            "subarray",
            "darray",
            "resized",
            "bounds",
            "f90_real",
            "f90_complex",
            "f90_integer",
            "value_index",
            "lb",
            "ub",
            "int",
            "double_int",
        ] {
            assert!(seen.contains(name), "{name} never comes up");
        }
        // Few of the generated datatypes may be trivial, and many must be unusual.
        assert!(
            empty < 600 && shared > 100 && negative > 100 && deep > 50,
            "{empty} {shared} {negative} {deep}"
        );
        assert!(gapless < 1200, "{gapless}");
    }

    #[test]
    fn any_bytes_give_a_datatype() {
        for n in 0..200_usize {
            let bytes: Vec<u8> = (0..n).map(|i| (i * i * 37 + n) as u8).collect();
            let t = datatype(&mut Choices::from_bytes(&bytes), &Budget::small());
            assert_eq!(t, datatype(&mut Choices::from_bytes(&bytes), &Budget::small()));
        }
        assert_eq!(datatype(&mut Choices::from_bytes(&[]), &Budget::small()), Datatype::named(Named::Int));
    }
}
