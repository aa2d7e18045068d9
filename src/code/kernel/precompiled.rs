//! Precompiled code for kernels that consist of one call of a micro-kernel, or of one counted loop
//! around such a call.
//!
//! The plans of contiguous types, vectors, tables and arrays of structs often have this form. Such
//! plans differ only in their contexts, so their code is written once, here, and the stage `emit`
//! chooses it by the plan. The context has the same words as for any parametric plan
//! (`src/plan/context.rs`). The words of the call come first. So for a call without a loop, all
//! words are in the first cache line of the context, which also contains the address of the code.
//!
//! A call without a loop is the last thing that its function does, so the compiler can turn the
//! call into a jump. The same holds for a loop that has only one iteration.

use super::{Code, Entry};
use crate::micro;
use crate::target::Level;

/// Function type of the micro-kernels that have five parameters.
type CalleeOfFive = unsafe extern "C" fn(u64, u64, u64, u64, u64);
/// Function type of the micro-kernels that have six parameters.
type CalleeOfSix = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64);

/// Number of parameters of a call without a loop, and the parameter that carries the count, which
/// means that its argument is multiplied by the instance count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Five parameters, of which the third carries the count.
    ThirdOfFive,
    /// Six parameters, of which the third carries the count.
    ThirdOfSix,
    /// Six parameters, of which the sixth carries the count.
    SixthOfSix,
}

/// Properties of a plan on which its precompiled code depends. The micro-kernel that the plan calls
/// has five or six parameters, of which the first two are the user address and the packed address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One call of a micro-kernel for strided copies, with a single block. The length of the block
    /// is multiplied by the instance count.
    Contiguous {
        /// Whether the code packs.
        pack: bool,
        /// Level of the copy loop.
        level: Level,
    },
    /// One call without a loop. One of its arguments is multiplied by the instance count.
    Lone {
        /// Whether the packed address is the first parameter.
        packed_first: bool,
        /// The number of parameters, and which of them is multiplied by the instance count.
        counted: Counted,
    },
    /// One call of six parameters in a counted loop. The loop starts at offset zero.
    Repeated {
        /// Whether the packed address is the first parameter.
        packed_first: bool,
        /// Whether the loop has one iteration per instance.
        single: bool,
    },
}

impl Form {
    /// Returns the precompiled code for this form.
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

/// The words of a context: those of the call, followed by those of the loop around it.
#[derive(Clone, Copy)]
struct Words(*const u64);

/// Index of the word with the user offset of the call. The words with the packed offset and with
/// the address of the micro-kernel follow it.
const USER: usize = 0;
const PACKED: usize = 1;
const CALLEE: usize = 2;
/// Index of the word with the third argument of the call; the first two arguments are addresses.
/// The words with the fourth to sixth argument follow it.
const THIRD: usize = 3;
const SIXTH: usize = 6;
/// Index of the word with the user step of the loop. The words before it, 7 and 8, are the offsets
/// of the loop, which are zero. The words after it are the packed step, and the number of packed
/// bytes of all iterations for one instance.
const USER_STEP: usize = 9;
const PACKED_STEP: usize = 10;
const BYTES: usize = 11;

impl Words {
    /// Returns word `i`.
    ///
    /// # Safety
    /// `self` must be the context of a plan for which there is precompiled code, and the context
    /// must have a word `i`. The words up to [`SIXTH`] can always be read, because they lie in the
    /// first cache line, which a context always has as a whole.
    #[inline(always)]
    unsafe fn get(self, i: usize) -> u64 {
        // SAFETY: the caller vouches that the context has a word `i`, which is the condition of
        // both `add` and the read.
        unsafe { *self.0.add(i) }
    }

    /// Calls the micro-kernel of the context, which must have five parameters.
    ///
    /// # Safety
    /// The conditions of [`Words::get`], and those of the micro-kernel for these arguments.
    #[inline(always)]
    unsafe fn call_of_five<const PACKED_FIRST: bool>(self, (user, packed): (u64, u64), third: u64) {
        // SAFETY: the context belongs to a plan whose call has five parameters, so its word
        // `CALLEE` is the address of a function of type `CalleeOfFive`, which is not null, and its
        // words up to index 5 exist. The caller vouches for the conditions of the micro-kernel.
        unsafe {
            let callee = std::mem::transmute::<u64, CalleeOfFive>(self.get(CALLEE));
            let (first, second) = if PACKED_FIRST { (packed, user) } else { (user, packed) };
            callee(first, second, third, self.get(THIRD + 1), self.get(THIRD + 2));
        }
    }

    /// Calls the micro-kernel of the context, which must have six parameters.
    ///
    /// # Safety
    /// The conditions of [`Words::get`], and those of the micro-kernel for these arguments.
    #[inline(always)]
    unsafe fn call<const PACKED_FIRST: bool>(self, (user, packed): (u64, u64), third: u64, sixth: u64) {
        // SAFETY: the context belongs to a plan whose call has six parameters, so its word `CALLEE`
        // is the address of a function of type `CalleeOfSix`, which is not null, and its words up
        // to index 5 exist. The caller vouches for the conditions of the micro-kernel.
        unsafe {
            let callee = std::mem::transmute::<u64, CalleeOfSix>(self.get(CALLEE));
            let (first, second) = if PACKED_FIRST { (packed, user) } else { (user, packed) };
            callee(first, second, third, self.get(THIRD + 1), self.get(THIRD + 2), sixth);
        }
    }

    /// Returns the user address and the packed address of the first call.
    ///
    /// # Safety
    /// The conditions of [`Words::get`] for the words `USER` and `PACKED`.
    #[inline(always)]
    unsafe fn addresses(self, user: *mut u8, packed: *mut u8) -> (u64, u64) {
        // SAFETY: the caller vouches for the two words that are read. The sums wrap and are not
        // dereferenced.
        unsafe {
            let (user_offset, packed_offset) = (self.get(USER), self.get(PACKED));
            ((user as u64).wrapping_add(user_offset), (packed as u64).wrapping_add(packed_offset))
        }
    }

    /// Calls the micro-kernel for all iterations of `count` instances. This function is not
    /// inlined, because the loop needs saved registers, and the path for a single call should not
    /// have to save registers.
    ///
    /// # Safety
    /// The context must be that of a plan with a loop, whose packed step is not zero, so that words
    /// up to [`BYTES`] exist. The conditions of [`Words::call`] must hold for each iteration.
    #[inline(never)]
    unsafe fn iterate<const PACKED_FIRST: bool>(self, (mut user, mut packed): (u64, u64), count: u64) {
        // SAFETY: the caller vouches for the words and for each call. The loop makes exactly the
        // iterations of `count` instances: `BYTES` is the packed step times the iterations per
        // instance, so `packed` reaches `end`.
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

/// Returns the precompiled code for a plan that is one call without a loop.
fn lone<const PACKED_FIRST: bool>(counted: Counted) -> Entry {
    match counted {
        Counted::ThirdOfFive => lone_of_five::<PACKED_FIRST>,
        Counted::ThirdOfSix => lone_of_six::<PACKED_FIRST, false>,
        Counted::SixthOfSix => lone_of_six::<PACKED_FIRST, true>,
    }
}

/// Runs a call of five parameters, of which the third is multiplied by the instance count.
///
/// # Safety
/// The conditions of [`super::EntryPoint::call`], for a context of a plan of this form.
unsafe extern "C" fn lone_of_five<const PACKED_FIRST: bool>(
    user: *mut u8,
    packed: *mut u8,
    count: u64,
    context: *const u64,
) {
    let w = Words(context);
    // SAFETY: the caller vouches for the context and for the buffers, as `call_of_five` needs them.
    // The third argument times `count` is the argument that the plan defines.
    unsafe {
        let third = w.get(THIRD).wrapping_mul(count);
        w.call_of_five::<PACKED_FIRST>(w.addresses(user, packed), third);
    }
}

/// Runs a call of six parameters, of which the third or the sixth is multiplied by the instance
/// count.
///
/// # Safety
/// The conditions of [`super::EntryPoint::call`], for a context of a plan of this form.
unsafe extern "C" fn lone_of_six<const PACKED_FIRST: bool, const SIXTH_COUNTED: bool>(
    user: *mut u8,
    packed: *mut u8,
    count: u64,
    context: *const u64,
) {
    let w = Words(context);
    // SAFETY: the caller vouches for the context and for the buffers, as `call` needs them. The
    // counted argument times `count` is the argument that the plan defines.
    unsafe {
        let (mut third, mut sixth) = (w.get(THIRD), w.get(SIXTH));
        let counted = if SIXTH_COUNTED { &mut sixth } else { &mut third };
        *counted = counted.wrapping_mul(count);
        w.call::<PACKED_FIRST>(w.addresses(user, packed), third, sixth);
    }
}

/// Runs a call in a loop. The loop has one iteration per instance if `SINGLE` is true, and
/// otherwise several.
///
/// # Safety
/// The conditions of [`super::EntryPoint::call`], for a context of a plan of this form.
unsafe extern "C" fn repeated<const PACKED_FIRST: bool, const SINGLE: bool>(
    user: *mut u8,
    packed: *mut u8,
    count: u64,
    context: *const u64,
) {
    let w = Words(context);
    // SAFETY: the caller vouches for the context and for the buffers, as `call` and `iterate` need
    // them. With one iteration per instance and one instance there is exactly one call.
    unsafe {
        let addresses = w.addresses(user, packed);
        if SINGLE && count == 1 {
            w.call::<PACKED_FIRST>(addresses, w.get(THIRD), w.get(SIXTH));
        } else {
            w.iterate::<PACKED_FIRST>(addresses, count);
        }
    }
}

/// Returns the precompiled code for contiguous types, which copies without calling a micro-kernel:
/// first the code that packs, then the code that unpacks.
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
        /// Copies one block, whose length in the context is multiplied by the instance count.
        ///
        /// # Safety
        /// The conditions of [`super::EntryPoint::call`], for a context of a plan of this form, on
        /// a machine that has the instructions of the level.
        $(#[$feature])?
        unsafe extern "C" fn $name<const PACK: bool>(
            user: *mut u8,
            packed: *mut u8,
            count: u64,
            context: *const u64,
        ) {
            let w = Words(context);
            // SAFETY: the context of a call of the strided family has words up to `SIXTH`, the
            // length of the block. `micro::copy` needs `len` bytes readable at `src` and writable
            // at `dst` without overlap: they are the mapped bytes and the packed bytes of `count`
            // instances, for which the caller vouches.
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
