//! Real numbers, with the functions that reductions need: the types of Rust, and the types of
//! `rustc_apfloat` for other formats.
//!
//! The result of every sum, difference and product is rounded to the format of the numbers, to
//! nearest, ties to even. No product and sum are contracted into a fused operation.

use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Half, Quad, X87DoubleExtended};

/// A real number of some format.
pub(super) trait Real: Copy + PartialOrd {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn no_number(self) -> bool;
    fn infinite(self) -> bool;
    /// Returns 1 if the number is infinite, or else 0, with the sign of the number.
    fn boxed(self) -> Self;
    /// Returns a zero with the sign of the number if it is a NaN, or else the number itself.
    fn zeroed(self) -> Self;
    /// Returns the product of the number and positive infinity.
    fn endless(self) -> Self;
}

macro_rules! native {
    ($($t:ident)*) => {$(
        impl Real for $t {
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self + other
            }
            #[inline(always)]
            fn minus(self, other: $t) -> $t {
                self - other
            }
            #[inline(always)]
            fn times(self, other: $t) -> $t {
                self * other
            }
            #[inline(always)]
            fn no_number(self) -> bool {
                self.is_nan()
            }
            fn infinite(self) -> bool {
                self.is_infinite()
            }
            fn boxed(self) -> $t {
                $t::from(u8::from(self.is_infinite())).copysign(self)
            }
            fn zeroed(self) -> $t {
                if self.is_nan() { $t::from(0_u8).copysign(self) } else { self }
            }
            fn endless(self) -> $t {
                self * $t::INFINITY
            }
        }
    )*};
}
native! { f32 f64 }

macro_rules! soft {
    ($($t:ident)*) => {$(
        impl Real for $t {
            fn plus(self, other: $t) -> $t {
                (self + other).value
            }
            fn minus(self, other: $t) -> $t {
                (self - other).value
            }
            fn times(self, other: $t) -> $t {
                (self * other).value
            }
            fn no_number(self) -> bool {
                self.is_nan()
            }
            fn infinite(self) -> bool {
                self.is_infinite()
            }
            fn boxed(self) -> $t {
                let one = $t::from_u128(u128::from(self.is_infinite())).value;
                one.copy_sign(self)
            }
            fn zeroed(self) -> $t {
                if self.is_nan() { $t::ZERO.copy_sign(self) } else { self }
            }
            fn endless(self) -> $t {
                (self * $t::INFINITY).value
            }
        }
    )*};
}
soft! { Half Quad X87DoubleExtended }

/// Returns the product of two complex numbers as C defines it (C23, Annex G.5.2). The result is
/// that of the plain formula, with one exception: if both parts of the plain result are NaN
/// although a factor or an intermediate product is infinite, an infinity is returned.
#[inline(always)]
pub(super) fn product<R: Real>(x: [R; 2], y: [R; 2]) -> [R; 2] {
    let ([a, b], [c, d]) = (x, y);
    let (ac, bd, ad, bc) = (a.times(c), b.times(d), a.times(d), b.times(c));
    let plain = [ac.minus(bd), ad.plus(bc)];
    if plain[0].no_number() && plain[1].no_number() { recovered(x, y, plain) } else { plain }
}

/// Returns the product of two complex numbers if both parts of the plain formula (`plain`) are NaN.
/// If neither a factor nor an intermediate product is infinite, this is `plain`.
#[cold]
#[inline(never)]
fn recovered<R: Real>([mut a, mut b]: [R; 2], [mut c, mut d]: [R; 2], plain: [R; 2]) -> [R; 2] {
    let overflowed = [a.times(c), b.times(d), a.times(d), b.times(c)].iter().any(|part| part.infinite());
    // As in the example of Annex G, in an infinite factor the infinite parts are replaced by 1 and
    // the other parts by 0, and in the other factor NaNs are replaced by 0; every part keeps its
    // sign. If only an intermediate product is infinite, every NaN is replaced by 0. The result is
    // the product of the two factors after these replacements, times infinity.
    let mut again = false;
    if a.infinite() || b.infinite() {
        (a, b, c, d, again) = (a.boxed(), b.boxed(), c.zeroed(), d.zeroed(), true);
    }
    if c.infinite() || d.infinite() {
        (c, d, a, b, again) = (c.boxed(), d.boxed(), a.zeroed(), b.zeroed(), true);
    }
    if !again && overflowed {
        (a, b, c, d, again) = (a.zeroed(), b.zeroed(), c.zeroed(), d.zeroed(), true);
    }
    if !again {
        return plain;
    }
    [a.times(c).minus(b.times(d)).endless(), a.times(d).plus(b.times(c)).endless()]
}
