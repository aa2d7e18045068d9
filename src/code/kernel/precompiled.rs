//! Precompiled code: kernels that are one call, or one counted loop around one call.
//!
//! Contiguous types, vectors, tables and arrays of structs end as such plans. Their code differs in nothing but the context, so it is
//! written once, here; `emit` chooses it by the plan. The context is that of any plan without moves (`src/plan/context.rs`): the words of the call
//! come first, so those of a lone call lie in the cache line of the entry point. For one instance the call is the last thing the
//! function does, which the compiler turns into a jump.

use super::{Code, Entry};
use crate::micro;
use crate::target::Level;

/// Function types of the micro-kernels of five and of six parameters.
type CalleeOfFive = unsafe extern "C" fn(u64, u64, u64, u64, u64);
type CalleeOfSix = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64);

/// Parameters of a lone call, and which of them carries the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Five parameters, the third one.
    ThirdOfFive,
    /// Six parameters, the third one.
    ThirdOfSix,
    /// Six parameters, the sixth one.
    SixthOfSix,
}

/// Form of a plan, as far as its precompiled code depends on it. The callee has five or six parameters, the two addresses first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A call of the strided family for one block whose length carries the count.
    Contiguous {
        /// Pack.
        pack: bool,
        /// The level of the code.
        level: Level,
    },
    /// A lone call of which one argument carries the count.
    Lone {
        /// Whether the packed address is the first parameter.
        packed_first: bool,
        /// The parameters, and the one that carries the count.
        counted: Counted,
    },
    /// A call of six parameters in a counted loop at offset zero.
    Repeated {
        /// Whether the packed address is the first parameter.
        packed_first: bool,
        /// Whether the loop has one iteration per instance.
        single: bool,
    },
}

impl Form {
    /// Returns its code.
    pub fn code(self) -> Code {
        let entry: Entry = match self {
            Form::Contiguous { pack, level } => {
                let [packs, unpacks] = contiguous(level);
                if pack { packs } else { unpacks }
            }
            Form::Lone { packed_first: true, counted } => lone::<true>(counted),
            Form::Lone { packed_first: false, counted } => lone::<false>(counted),
            Form::Repeated { packed_first: true, single: true } => repeated::<true, true>,
            Form::Repeated { packed_first: true, single: false } => repeated::<true, false>,
            Form::Repeated { packed_first: false, single: true } => repeated::<false, true>,
            Form::Repeated { packed_first: false, single: false } => repeated::<false, false>,
        };
        Code { slot: None, entry }
    }
}

/// The words of a context: those of the call, then those of the loop around it.
#[derive(Clone, Copy)]
struct Words(*const u64);

/// User and packed offset of the call.
const USER: usize = 0;
const PACKED: usize = 1;
const CALLEE: usize = 2;
/// The arguments after the two addresses.
const THIRD: usize = 3;
const SIXTH: usize = 6;
/// Steps of the loop, and packed bytes of its iterations for one instance.
const USER_STEP: usize = 9;
const PACKED_STEP: usize = 10;
const BYTES: usize = 11;

impl Words {
    /// # Safety
    /// The context is that of a plan of this form; words up to [`SIXTH`] lie in its first line, which is always whole.
    #[inline(always)]
    unsafe fn get(self, i: usize) -> u64 {
        // SAFETY: as promised by the caller.
        unsafe { *self.0.add(i) }
    }

    /// Calls the micro-kernel, which has five parameters.
    ///
    /// # Safety
    /// As [`Words::get`], and what the micro-kernel asks of its caller.
    #[inline(always)]
    unsafe fn call_of_five<const PACKED_FIRST: bool>(self, (user, packed): (u64, u64), third: u64) {
        // SAFETY: this word of a call is the address of a micro-kernel that takes these arguments.
        unsafe {
            let callee = std::mem::transmute::<u64, CalleeOfFive>(self.get(CALLEE));
            let (first, second) = if PACKED_FIRST { (packed, user) } else { (user, packed) };
            callee(first, second, third, self.get(THIRD + 1), self.get(THIRD + 2));
        }
    }

    /// Calls the micro-kernel, which has six parameters.
    ///
    /// # Safety
    /// As [`Words::call_of_five`].
    #[inline(always)]
    unsafe fn call<const PACKED_FIRST: bool>(self, (user, packed): (u64, u64), third: u64, sixth: u64) {
        // SAFETY: this word of a call is the address of a micro-kernel that takes these arguments.
        unsafe {
            let callee = std::mem::transmute::<u64, CalleeOfSix>(self.get(CALLEE));
            let (first, second) = if PACKED_FIRST { (packed, user) } else { (user, packed) };
            callee(first, second, third, self.get(THIRD + 1), self.get(THIRD + 2), sixth);
        }
    }

    /// Both addresses of the first call.
    ///
    /// # Safety
    /// As [`Words::get`].
    #[inline(always)]
    unsafe fn addresses(self, user: *mut u8, packed: *mut u8) -> (u64, u64) {
        // SAFETY: as promised by the caller.
        unsafe {
            let (user_offset, packed_offset) = (self.get(USER), self.get(PACKED));
            ((user as u64).wrapping_add(user_offset), (packed as u64).wrapping_add(packed_offset))
        }
    }

    /// All iterations for `count` instances. Not in line, so that a single call saves no registers.
    ///
    /// # Safety
    /// As [`Words::call`], for a loop.
    #[inline(never)]
    unsafe fn iterate<const PACKED_FIRST: bool>(self, (mut user, mut packed): (u64, u64), count: u64) {
        // SAFETY: as promised by the caller.
        unsafe {
            let end = packed.wrapping_add(self.get(BYTES).wrapping_mul(count));
            while packed != end {
                self.call::<PACKED_FIRST>((user, packed), self.get(THIRD), self.get(SIXTH));
                user = user.wrapping_add(self.get(USER_STEP));
                packed = packed.wrapping_add(self.get(PACKED_STEP));
            }
        }
    }
}

/// Returns the code of a lone call.
fn lone<const PACKED_FIRST: bool>(counted: Counted) -> Entry {
    match counted {
        Counted::ThirdOfFive => lone_of_five::<PACKED_FIRST>,
        Counted::ThirdOfSix => lone_of_six::<PACKED_FIRST, false>,
        Counted::SixthOfSix => lone_of_six::<PACKED_FIRST, true>,
    }
}

/// A lone call of five parameters, whose third carries the count.
///
/// # Safety
/// As [`super::EntryPoint::call`], with the context of a plan of this form.
unsafe extern "C" fn lone_of_five<const PACKED_FIRST: bool>(
    user: *mut u8,
    packed: *mut u8,
    count: u64,
    context: *const u64,
) {
    let w = Words(context);
    // SAFETY: as promised by the caller.
    unsafe {
        let third = w.get(THIRD).wrapping_mul(count);
        w.call_of_five::<PACKED_FIRST>(w.addresses(user, packed), third);
    }
}

/// A lone call of six parameters.
///
/// # Safety
/// As [`lone_of_five`].
unsafe extern "C" fn lone_of_six<const PACKED_FIRST: bool, const SIXTH_COUNTED: bool>(
    user: *mut u8,
    packed: *mut u8,
    count: u64,
    context: *const u64,
) {
    let w = Words(context);
    // SAFETY: as promised by the caller.
    unsafe {
        let (mut third, mut sixth) = (w.get(THIRD), w.get(SIXTH));
        let counted = if SIXTH_COUNTED { &mut sixth } else { &mut third };
        *counted = counted.wrapping_mul(count);
        w.call::<PACKED_FIRST>(w.addresses(user, packed), third, sixth);
    }
}

/// A call in a loop over instances, or over several iterations per instance.
///
/// # Safety
/// As [`lone_of_five`].
unsafe extern "C" fn repeated<const PACKED_FIRST: bool, const SINGLE: bool>(
    user: *mut u8,
    packed: *mut u8,
    count: u64,
    context: *const u64,
) {
    let w = Words(context);
    // SAFETY: as promised by the caller.
    unsafe {
        let addresses = w.addresses(user, packed);
        if SINGLE && count == 1 {
            w.call::<PACKED_FIRST>(addresses, w.get(THIRD), w.get(SIXTH));
        } else {
            w.iterate::<PACKED_FIRST>(addresses, count);
        }
    }
}

/// The code of contiguous types, pack first, which copies without a call.
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
        /// As [`lone_of_five`], on a machine of the level.
        $(#[$feature])?
        unsafe extern "C" fn $name<const PACK: bool>(
            user: *mut u8,
            packed: *mut u8,
            count: u64,
            context: *const u64,
        ) {
            let w = Words(context);
            // SAFETY: as in `lone_of_five`; the block is valid on both sides, as the caller promises.
            unsafe {
                let user = user.wrapping_add(w.get(USER) as usize);
                let packed = packed.wrapping_add(w.get(PACKED) as usize);
                let len = w.get(SIXTH).wrapping_mul(count) as usize;
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
