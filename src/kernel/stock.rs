//! Stock kernels: precompiled code for plans that are one call, or one counted loop around one call.
//!
//! Contiguous types, vectors, tables and arrays of structs end as such plans. Their code would differ in nothing but the
//! address of the micro-kernel, so it is written once, here, and a commit of such a type runs no code generator. For one
//! instance the call is the last thing the function does, which the compiler turns into a jump.
//!
//! The context holds the words of [`Place`] in their order: what one instance needs lies in the cache line of the entry point.

use super::{Context, Entry};
use crate::kind::Direction;
use crate::micro;
use crate::plan::{At, Body, Legal, Op, Plan, Trip, Word};
use crate::target::Level;

/// What all micro-kernels look like to their callers: six words.
type Micro = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64);

/// Where a stock kernel finds its words.
#[derive(Clone, Copy)]
enum Place {
    /// User offset of the first block in bytes.
    User,
    /// Packed offset of the first block in bytes.
    Packed,
    /// The third to sixth argument of the micro-kernel, of one instance where the count belongs to it.
    Third,
    Fourth,
    Fifth,
    Sixth,
    /// Address of the micro-kernel.
    Micro,
    /// User bytes from one call to the next.
    NextUser,
    /// Packed bytes from one call to the next.
    NextPacked,
    /// Calls per instance.
    Calls,
}

/// A stock kernel for `plan`, with its context, if its shape has one.
pub(crate) fn of(plan: &Plan<Legal>) -> Option<(Entry, Context)> {
    let [call, outer @ ..] = plan.ops() else { return None };
    let calls = match outer {
        [] if plan.root() == Body { start: 0, len: 1 } => None,
        [Op::Loop { at, trip: Trip { per_count: true, k }, step, body, .. }]
            if *body == Body { start: 0, len: 1 } && plan.root() == Body { start: 1, len: 1 } =>
        {
            Some((*at, *k, *step))
        }
        _ => return None,
    };
    let (single, lone) = (matches!(calls, None | Some((_, 1, _))), calls.is_none());
    let [third, fourth, fifth, sixth] = match call {
        Op::Strided { .. } => [Word::Trip, Word::StepUser, Word::StepPacked, Word::Len],
        Op::Pattern { .. } => [Word::Trip, Word::StepUser, Word::Second, Word::Third],
        Op::Rows { .. } => [Word::StepUser, Word::Trip, Word::StepPacked, Word::Len],
        _ => [Word::StepUser, Word::Trip, Word::Second, Word::Third],
    };
    let (micro, [pack, unpack]): (_, [Entry; 2]) = match call {
        Op::Strided { micro, n, len, .. } => {
            let entries: [Entry; 2] = match (n.per_count, len.per_count, lone, single) {
                (true, false, true, _) => [strided::<true, ONCE, N>, strided::<false, ONCE, N>],
                (false, true, true, _) if n.is(1) => contiguous(micro.level()),
                (false, true, true, _) => [strided::<true, ONCE, LEN>, strided::<false, ONCE, LEN>],
                (false, false, false, true) => [strided::<true, EACH, NONE>, strided::<false, EACH, NONE>],
                (false, false, false, false) => [strided::<true, MANY, NONE>, strided::<false, MANY, NONE>],
                _ => return None,
            };
            (micro, entries)
        }
        Op::Pattern { micro, n, .. } if lone && n.per_count => (micro, [pattern, pattern]),
        Op::Rows { micro, .. } | Op::Blocks { micro, .. } if !lone => (micro, [table, table]),
        _ => return None,
    };
    let first = plan.words();
    let (at, k, next) = calls.unwrap_or((At::ZERO, 1, At::ZERO));
    let at = at + call.at();
    let argument = |word: Word| first[word as usize];
    // In the order of `Place`.
    let words = [
        at.user as u64,
        at.packed as u64,
        argument(third),
        argument(fourth),
        argument(fifth),
        argument(sixth),
        micro.address() as u64,
        next.user as u64,
        next.packed as u64,
        k,
    ];
    let used = if lone { Place::NextUser } else { Place::Calls } as usize + usize::from(!lone);
    let entry = if plan.direction() == Direction::Pack { pack } else { unpack };
    Some((entry, Context::new(&words[..used], plan.columns().to_vec())))
}

/// The call stands alone.
const ONCE: u8 = 0;
/// The call stands in a loop, once per instance.
const EACH: u8 = 1;
/// The call stands in a loop, several times per instance.
const MANY: u8 = 2;
/// Nothing in the call carries the instance count.
const NONE: u8 = 0;
/// The number of blocks does.
const N: u8 = 1;
/// The length does.
const LEN: u8 = 2;

/// The words of a context.
#[derive(Clone, Copy)]
struct Words(*const u64);

impl Words {
    /// # Safety
    /// The context was made by [`of`] for a plan that has the word.
    #[inline(always)]
    unsafe fn get(self, place: Place) -> u64 {
        // SAFETY: as promised by the caller.
        unsafe { *self.0.add(place as usize) }
    }

    /// # Safety
    /// The context was made by [`of`].
    #[inline(always)]
    unsafe fn micro(self) -> Micro {
        // SAFETY: `of` put the address of a function of six words there.
        unsafe { std::mem::transmute::<u64, Micro>(self.get(Place::Micro)) }
    }

    /// Both sides of the first call.
    ///
    /// # Safety
    /// The context was made by [`of`].
    #[inline(always)]
    unsafe fn sides(self, user: *mut u8, packed: *mut u8) -> (u64, u64) {
        // SAFETY: as promised by the caller.
        unsafe {
            let (user_at, packed_at) = (self.get(Place::User), self.get(Place::Packed));
            ((user as u64).wrapping_add(user_at), (packed as u64).wrapping_add(packed_at))
        }
    }

    /// `call` for every call of `calls`. A single one is all that this does: the compiler can make it a jump.
    ///
    /// # Safety
    /// The context was made by [`of`] for a loop.
    #[inline(always)]
    unsafe fn each(self, sides: (u64, u64), calls: u64, call: impl Fn(u64, u64)) {
        if calls == 1 {
            call(sides.0, sides.1);
        } else {
            // SAFETY: as promised by the caller.
            unsafe { self.every(sides, calls, call) }
        }
    }

    /// Not in line, so that a single call saves no registers.
    ///
    /// # Safety
    /// As [`Words::each`].
    #[inline(never)]
    unsafe fn every(self, (mut user, mut packed): (u64, u64), calls: u64, call: impl Fn(u64, u64)) {
        // SAFETY: as promised by the caller.
        let (next_user, next_packed) = unsafe { (self.get(Place::NextUser), self.get(Place::NextPacked)) };
        for _ in 0..calls {
            call(user, packed);
            user = user.wrapping_add(next_user);
            packed = packed.wrapping_add(next_packed);
        }
    }
}

/// A strided call: alone, with the count in one of its arguments, or in a loop over instances.
///
/// # Safety
/// As [`super::Frame::call`], with a context made by [`of`] for such a plan.
unsafe extern "C" fn strided<const PACK: bool, const CALLED: u8, const COUNTED: u8>(
    user: *mut u8,
    packed: *mut u8,
    count: u64,
    context: *const u64,
) {
    let w = Words(context);
    // SAFETY: the context is that of a plan of these operations; its micro-kernel takes these arguments.
    unsafe {
        let by_count = |counted: bool, k: u64| if counted { k.wrapping_mul(count) } else { k };
        let n = by_count(COUNTED == N, w.get(Place::Third));
        let len = by_count(COUNTED == LEN, w.get(Place::Sixth));
        let (step_user, step_packed) = (w.get(Place::Fourth), w.get(Place::Fifth));
        let (micro, (user, packed)) = (w.micro(), w.sides(user, packed));
        let call = |user, packed| {
            if PACK {
                micro(packed, user, n, step_packed, step_user, len);
            } else {
                micro(user, packed, n, step_user, step_packed, len);
            }
        };
        match CALLED {
            ONCE => call(user, packed),
            EACH => w.each((user, packed), count, call),
            _ => w.each((user, packed), w.get(Place::Calls).wrapping_mul(count), call),
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
        #[cfg(target_arch = "aarch64")]
        Level::Neon => [contiguous_neon::<true>, contiguous_neon::<false>],
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
                let user = user.wrapping_add(w.get(Place::User) as usize);
                let packed = packed.wrapping_add(w.get(Place::Packed) as usize);
                let len = w.get(Place::Sixth).wrapping_mul(count) as usize;
                let (dst, src) = if PACK { (packed, user) } else { (user, packed) };
                micro::copy::<$wide>(dst, src, len);
            }
        }
    };
}

contiguous!(contiguous_baseline, 16,);
#[cfg(target_arch = "aarch64")]
contiguous!(contiguous_neon, 32,);
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
        let (user, packed) = w.sides(user, packed);
        let n = w.get(Place::Third).wrapping_mul(count);
        // A micro-kernel of five words; the sixth is not looked at.
        w.micro()(user, packed, n, w.get(Place::Fourth), w.get(Place::Fifth), 0);
    }
}

/// A call over tables in a loop over instances: rows of one length, or blocks.
///
/// # Safety
/// As [`strided`].
unsafe extern "C" fn table(user: *mut u8, packed: *mut u8, count: u64, context: *const u64) {
    let w = Words(context);
    // SAFETY: as in `strided`.
    unsafe {
        let micro = w.micro();
        let (third, fourth) = (w.get(Place::Third), w.get(Place::Fourth));
        let (fifth, sixth) = (w.get(Place::Fifth), w.get(Place::Sixth));
        let calls = w.get(Place::Calls).wrapping_mul(count);
        w.each(w.sides(user, packed), calls, |user, packed| micro(user, packed, third, fourth, fifth, sixth));
    }
}
