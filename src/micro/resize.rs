//! Conversion of values whose size or form in the source differs from that in the destination.
//! Values are converted one after the other, until one of them does not fit into the destination.
//!
//! The user of this module gives the conversion as a type, which tells whether a value fits into
//! the destination and what the value becomes there. The loops are here, so that they are compiled
//! with the instructions of their level. Dense values are converted in groups: first all values of
//! a group are tested together, then they are converted together. In a group no branch depends on a
//! single value, so the compiler makes vector code for integers of any sign. If a group has a value
//! that does not fit, the values from the start of this group on are converted one by one. The
//! values after the last whole group are converted one by one too.

use std::marker::PhantomData;

use super::functions::functions;
use super::isa::with_code;
use crate::target::Level;

mod sealed {
    pub trait Sealed {}
}

/// Bits of a value as they lie in memory: unsigned integers, for which any bytes are valid.
pub trait Bits: sealed::Sealed + Copy {}

macro_rules! bits {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        impl Bits for $t {}
    )*};
}
bits! { u16 u32 u64 u128 }

/// Conversion of one value.
pub trait Conversion {
    /// Bits of the value at the source.
    type From: Bits;
    /// Bits of the value at the destination.
    type To: Bits;

    /// Whether every value fits into the destination, so that no value has to be tested.
    const ALWAYS: bool = false;

    /// Returns true if the destination can hold `value`.
    fn fits(value: Self::From) -> bool;

    /// Returns what `value` becomes at the destination. This function is called only for values
    /// that fit into the destination.
    fn converted(value: Self::From) -> Self::To;
}

/// Blocks at constant strides in the source and in the destination. The values of a block follow
/// each other directly. Strides are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// Address of the first block in the destination.
    pub dst: *mut u8,
    /// Address of the first block in the source.
    pub src: *const u8,
    /// Number of blocks.
    pub n: u64,
    /// Distance from one block to the next in the destination.
    pub dst_stride: i64,
    /// Distance from one block to the next in the source.
    pub src_stride: i64,
    /// Number of values in a block.
    pub units: u64,
}

functions! {
    /// Converts the values of all blocks in order. Stops before the first value that does not fit
    /// into the destination, and returns the number of values before it.
    pub type Function = unsafe fn(blocks: &Blocks) -> u64;
}

/// Number of values that are tested together.
const GROUP: usize = 16;

/// Scalar reference, with which the tests compare the functions: converts one value after the
/// other.
///
/// # Safety
/// Every value of every block must be readable at the source and writable at the destination. The
/// sides must not overlap.
#[cfg(test)]
unsafe fn scalar_reference<C: Conversion>(blocks: &Blocks) -> u64 {
    let mut done = 0;
    for i in 0..blocks.n as i64 {
        for k in 0..blocks.units as usize {
            let src = blocks.src.wrapping_offset((i * blocks.src_stride) as isize);
            let dst = blocks.dst.wrapping_offset((i * blocks.dst_stride) as isize);
            // SAFETY: `k` is less than `units` and `i` less than `n`, so this is value `k` of block
            // `i`, which the caller promises on both sides.
            unsafe {
                let value = src.cast::<C::From>().wrapping_add(k).read_unaligned();
                if !C::fits(value) {
                    return done;
                }
                dst.cast::<C::To>().wrapping_add(k).write_unaligned(C::converted(value));
            }
            done += 1;
        }
    }
    done
}

/// Converts `n` values that follow each other directly. Stops before the first value that does not
/// fit into the destination, and returns the number of values before it.
///
/// # Safety
/// The values must be readable at `src` and writable at `dst`. The source must not overlap the
/// destination.
#[inline(always)]
unsafe fn dense<C: Conversion>(dst: *mut C::To, src: *const C::From, n: usize) -> usize {
    let mut done = 0;
    // SAFETY: all indices are less than `n`: a group is taken only if `GROUP` values remain, and a
    // single value only if `done < n`. The caller promises these values on both sides, and the
    // accesses need no alignment.
    unsafe {
        if C::ALWAYS {
            for k in 0..n {
                dst.add(k).write_unaligned(C::converted(src.add(k).read_unaligned()));
            }
            return n;
        }
        while n - done >= GROUP {
            let (dst, src) = (dst.add(done), src.add(done));
            let mut fit = true;
            for k in 0..GROUP {
                fit &= C::fits(src.add(k).read_unaligned());
            }
            if !fit {
                break;
            }
            for k in 0..GROUP {
                dst.add(k).write_unaligned(C::converted(src.add(k).read_unaligned()));
            }
            done += GROUP;
        }
        while done < n {
            let value = src.add(done).read_unaligned();
            if !C::fits(value) {
                break;
            }
            dst.add(done).write_unaligned(C::converted(value));
            done += 1;
        }
    }
    done
}

/// Marker type. Its [`Body`] is the code of the functions that convert blocks of values by `C`,
/// generic over the instruction set.
struct Converted<C>(PhantomData<C>);

impl<C: Conversion> Body for Converted<C> {
    #[inline(always)]
    unsafe fn run<I: Functions>(blocks: &Blocks) -> u64 {
        let Blocks { mut dst, mut src, n, dst_stride, src_stride, units } = *blocks;
        for i in 0..n {
            // SAFETY: `dst` and `src` are block `i` of the `n` blocks, whose `units` values the
            // caller promises on both sides.
            let done = unsafe { dense::<C>(dst.cast(), src.cast(), units as usize) } as u64;
            if done < units {
                return i * units + done;
            }
            dst = dst.wrapping_offset(dst_stride as isize);
            src = src.wrapping_offset(src_stride as isize);
        }
        n * units
    }
}

/// Returns the function that converts values by `C`, compiled with the instructions of `level`.
#[inline]
pub fn function<C: Conversion>(level: Level) -> Function {
    with_code!(level, I => I::function::<Converted<C>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::micro::testing::{Guarded, fill};

    /// Conversion for the tests, which halves a value. A value fits if it is even and less than
    /// 2^33.
    struct Half;

    impl Conversion for Half {
        type From = u64;
        type To = u32;

        fn fits(value: u64) -> bool {
            value < 1 << 33 && value.is_multiple_of(2)
        }

        fn converted(value: u64) -> u32 {
            (value / 2) as u32
        }
    }

    #[test]
    fn values_until_one_does_not_fit() {
        let mut areas = (Guarded::new(64 << 10), Guarded::new(64 << 10));
        for level in Level::available() {
            let f = function::<Half>(level);
            for (n, units) in [(1, 0), (1, 1), (1, 15), (1, 16), (1, 70), (3, 5), (40, 1), (2, 33)] {
                for (dst_gap, src_gap) in [(0, 0), (0, 4), (12, 0)] {
                    for unfit in (0..=n * units).step_by(1 + (n * units) as usize / 37) {
                        for back in [false, true] {
                            let (dst_stride, src_stride) =
                                ((4 * units + dst_gap) as i64, (8 * units + src_gap) as i64);
                            let span = |stride: i64, len: u64| ((n - 1) * stride as u64 + len) as usize;
                            let src = areas.1.edge(back, span(src_stride, 8 * units));
                            for value in 0..n * units {
                                let at = (value / units) as usize * src_stride as usize
                                    + (value % units) as usize * 8;
                                let bits =
                                    if value == unfit { 1 << (value % 64) | 1 } else { value * 0x3_0402 };
                                src[at..at + 8].copy_from_slice(&bits.to_ne_bytes());
                            }
                            let src = src.as_ptr();
                            let mut run = |f: Function| {
                                let dst = areas.0.edge(back, span(dst_stride, 4 * units));
                                fill(dst, 7);
                                let blocks =
                                    Blocks { dst: dst.as_mut_ptr(), src, n, dst_stride, src_stride, units };
                                // SAFETY: both areas contain all `n` blocks at these strides.
                                (unsafe { f(&blocks) }, dst.to_vec())
                            };
                            let (done, bytes) = run(f);
                            assert_eq!(
                                (done, &bytes),
                                (unfit, &run(scalar_reference::<Half>).1),
                                "{level} {n} {units}"
                            );
                        }
                    }
                }
            }
        }
    }
}
