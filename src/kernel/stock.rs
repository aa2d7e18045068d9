//! Stock kernels: precompiled code for plans that are one call, or one counted loop around one call.
//!
//! Contiguous types, vectors, tables and arrays of structs end as such plans. Their code would differ in nothing but the
//! address of the micro-kernel, so it is written once, here, and a commit of such a type runs no code generator. For one
//! instance the call is the last thing the function does, which the compiler turns into a jump.
//!
//! The context is that of a parametric plan ([`Word`]) followed by the address of the micro-kernel.

use super::{Context, Entry};
use crate::kind::Direction;
use crate::micro;
use crate::plan::{Body, Legal, Op, Plan, Trip, WORDS, Word};
use crate::target::Level;

/// What all micro-kernels look like to their callers: six words.
type Micro = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64);

/// A stock kernel for `plan`, with its context, if its shape has one.
pub(crate) fn of(plan: &Plan<Legal>) -> Option<(Entry, Context)> {
    let [call, outer @ ..] = plan.ops() else { return None };
    let lone = matches!(outer, []) && plan.root() == Body { start: 0, len: 1 };
    let looped = match outer {
        [Op::Loop { trip: Trip { per_count: true, .. }, body, .. }] => {
            *body == Body { start: 0, len: 1 } && plan.root() == Body { start: 1, len: 1 }
        }
        _ => false,
    };
    if !lone && !looped {
        return None;
    }
    let (address, entry): (usize, Entry) = match (call, plan.direction()) {
        (Op::Strided { micro, n, len, .. }, direction) => {
            let [pack, unpack]: [Entry; 2] = match (n.per_count, len.per_count, lone) {
                (true, false, true) => [strided::<true, ONCE, N>, strided::<false, ONCE, N>],
                (false, true, true) if n.is(1) => contiguous(micro.level()),
                (false, true, true) => [strided::<true, ONCE, LEN>, strided::<false, ONCE, LEN>],
                (false, false, false) => [strided::<true, LOOP, NONE>, strided::<false, LOOP, NONE>],
                _ => return None,
            };
            let entry = if direction == Direction::Pack { pack } else { unpack };
            (micro.address(), entry)
        }
        (Op::Pattern { micro, n, .. }, _) if lone && n.per_count => (micro.address(), pattern),
        (Op::Rows { micro, .. }, _) if looped => (micro.address(), table::<true>),
        (Op::Blocks { micro, .. }, _) if looped => (micro.address(), table::<false>),
        _ => return None,
    };
    let mut words = plan.words();
    words.push(address as u64);
    Some((entry, Context::new(words, plan.columns().to_vec())))
}

/// The call stands alone.
const ONCE: bool = true;
/// The call stands in a loop over instances.
const LOOP: bool = false;
/// Nothing in the call carries the instance count.
const NONE: u8 = 0;
/// The number of blocks does.
const N: u8 = 1;
/// The length does.
const LEN: u8 = 2;

/// The words of a context, read as operations of [`WORDS`] words.
#[derive(Clone, Copy)]
struct Words(*const u64);

impl Words {
    /// # Safety
    /// The context has operation `op`.
    #[inline(always)]
    unsafe fn get(self, op: u32, word: Word) -> u64 {
        // SAFETY: as promised by the caller.
        unsafe { *self.0.add((op * WORDS + word as u32) as usize) }
    }

    /// The micro-kernel, which stands behind `ops` operations.
    ///
    /// # Safety
    /// The context was made by [`of`] for a plan of `ops` operations.
    #[inline(always)]
    unsafe fn micro(self, ops: u32) -> Micro {
        // SAFETY: `of` put the address of a function of six words there.
        unsafe { std::mem::transmute::<u64, Micro>(*self.0.add((ops * WORDS) as usize)) }
    }
}

/// A strided call: alone, with the count in one of its arguments, or in a loop over instances.
///
/// # Safety
/// As [`super::Kernel::call`], with a context made by [`of`] for such a plan.
unsafe extern "C" fn strided<const PACK: bool, const CALLED_ONCE: bool, const COUNTED: u8>(
    user: *mut u8,
    packed: *mut u8,
    count: u64,
    context: *const u64,
) {
    let w = Words(context);
    // SAFETY: the context is that of a plan of these operations; its micro-kernel takes these arguments.
    unsafe {
        let by_count = |counted: bool, k: u64| if counted { k.wrapping_mul(count) } else { k };
        let n = by_count(COUNTED == N, w.get(0, Word::Trip));
        let len = by_count(COUNTED == LEN, w.get(0, Word::Len));
        let (step_user, step_packed) = (w.get(0, Word::StepUser), w.get(0, Word::StepPacked));
        let mut user = (user as u64).wrapping_add(w.get(0, Word::AtUser));
        let mut packed = (packed as u64).wrapping_add(w.get(0, Word::AtPacked));
        let micro = w.micro(if CALLED_ONCE { 1 } else { 2 });
        if CALLED_ONCE {
            if COUNTED == N && n == 0 {
                return;
            }
        } else {
            user = user.wrapping_add(w.get(1, Word::AtUser));
            packed = packed.wrapping_add(w.get(1, Word::AtPacked));
            // All iterations but the last; `Len` of a counted loop is its packed bytes per instance.
            let (next_user, next_packed) = (w.get(1, Word::StepUser), w.get(1, Word::StepPacked));
            let end = packed.wrapping_add(w.get(1, Word::Len).wrapping_mul(count));
            if packed == end {
                return;
            }
            while packed.wrapping_add(next_packed) != end {
                if PACK {
                    micro(packed, user, n, step_packed, step_user, len);
                } else {
                    micro(user, packed, n, step_user, step_packed, len);
                }
                user = user.wrapping_add(next_user);
                packed = packed.wrapping_add(next_packed);
            }
        }
        if PACK {
            micro(packed, user, n, step_packed, step_user, len);
        } else {
            micro(user, packed, n, step_user, step_packed, len);
        }
    }
}

/// The kernels of contiguous types, pack first, which copy without a call.
fn contiguous(level: Level) -> [Entry; 2] {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => [contiguous_avx512::<true>, contiguous_avx512::<false>],
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => [contiguous_avx2::<true>, contiguous_avx2::<false>],
        _ => [contiguous_baseline::<true>, contiguous_baseline::<false>],
    }
}

macro_rules! contiguous {
    ($name:ident, $wide:literal, $(#[$feature:meta])?) => {
        /// One block, whose length carries the instance count.
        ///
        /// # Safety
        /// As [`strided`], on a machine of the level.
        $(#[$feature])?
        unsafe extern "C" fn $name<const PACK: bool>(
            user: *mut u8,
            packed: *mut u8,
            count: u64,
            context: *const u64,
        ) {
            let w = Words(context);
            // SAFETY: as in `strided`; the block is valid on both sides, as the caller promises.
            unsafe {
                let user = user.wrapping_add(w.get(0, Word::AtUser) as usize);
                let packed = packed.wrapping_add(w.get(0, Word::AtPacked) as usize);
                let len = w.get(0, Word::Len).wrapping_mul(count) as usize;
                let (dst, src) = if PACK { (packed, user) } else { (user, packed) };
                micro::copy::<$wide>(dst, src, len);
            }
        }
    };
}

contiguous!(contiguous_baseline, 16,);
#[cfg(target_arch = "x86_64")]
contiguous!(contiguous_avx2, 32, #[target_feature(enable = "avx2,bmi1,bmi2,fma")]);
#[cfg(target_arch = "x86_64")]
contiguous!(contiguous_avx512, 64, #[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f,avx512bw,avx512dq,avx512vl")]);

/// One call of the pattern micro-kernel over all instances.
///
/// # Safety
/// As [`strided`].
unsafe extern "C" fn pattern(user: *mut u8, packed: *mut u8, count: u64, context: *const u64) {
    let w = Words(context);
    // SAFETY: as in `strided`.
    unsafe {
        let user = (user as u64).wrapping_add(w.get(0, Word::AtUser));
        let packed = (packed as u64).wrapping_add(w.get(0, Word::AtPacked));
        let n = w.get(0, Word::Trip).wrapping_mul(count);
        // A micro-kernel of five words; the sixth is not looked at.
        w.micro(1)(user, packed, n, w.get(0, Word::StepUser), w.get(0, Word::Second), 0);
    }
}

/// A call over tables in a loop over instances: rows of one length, or blocks.
///
/// # Safety
/// As [`strided`].
unsafe extern "C" fn table<const ROWS: bool>(
    user: *mut u8,
    packed: *mut u8,
    count: u64,
    context: *const u64,
) {
    let w = Words(context);
    // SAFETY: as in `strided`.
    unsafe {
        let mut user =
            (user as u64).wrapping_add(w.get(0, Word::AtUser)).wrapping_add(w.get(1, Word::AtUser));
        let mut packed =
            (packed as u64).wrapping_add(w.get(0, Word::AtPacked)).wrapping_add(w.get(1, Word::AtPacked));
        let (n, first) = (w.get(0, Word::StepUser), w.get(0, Word::Trip));
        let (second, third) = if ROWS {
            (w.get(0, Word::StepPacked), w.get(0, Word::Len))
        } else {
            (w.get(0, Word::Second), w.get(0, Word::Third))
        };
        let micro = w.micro(2);
        let (next_user, next_packed) = (w.get(1, Word::StepUser), w.get(1, Word::StepPacked));
        let end = packed.wrapping_add(w.get(1, Word::Len).wrapping_mul(count));
        if packed == end {
            return;
        }
        while packed.wrapping_add(next_packed) != end {
            micro(user, packed, n, first, second, third);
            user = user.wrapping_add(next_user);
            packed = packed.wrapping_add(next_packed);
        }
        micro(user, packed, n, first, second, third);
    }
}
