//! Entry points for the program's error handlers.
//!
//! A handler may read received bytes, and it may leave the MPI call by an exception or a jump. So
//! ddtc must unpack received bytes before the handler runs. For that, the MPI library is given an
//! entry point of ddtc instead of the program's function. The entry point calls
//! [`before_a_handler`] and then jumps to the program's function. All argument registers and the
//! stack stay as they were, because handlers are variadic and only the program knows the types of
//! the arguments. No frame of ddtc stays between the MPI library and the program's function.
//!
//! Each entry point serves one function of the program for the rest of the process. If a program
//! makes error handlers from more functions than there are entry points, the MPI library calls the
//! remaining functions directly.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::call_memory::before_a_handler;

/// Address of an entry point. The real signature is that of the program's error handler.
type Entry = unsafe extern "C-unwind" fn();

/// The program's function to which each entry point jumps; null if the entry point is free.
static TARGETS: [AtomicPtr<c_void>; ENTRIES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; ENTRIES.len()];

/// Returns the entry point for an error handler of the program, and takes a free entry point if the
/// handler has none yet. Returns the handler itself if all entry points are taken.
pub(crate) fn entry_point(handler: *mut c_void) -> *mut c_void {
    if handler.is_null() {
        // A null pointer gets no entry point, so that the MPI library refuses the pointer.
        return handler;
    }
    let null = std::ptr::null_mut();
    let is_for = |target: &AtomicPtr<c_void>| match target.compare_exchange(
        null,
        handler,
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        Ok(_) => true,
        Err(other) => other == handler,
    };
    let at = TARGETS.iter().position(is_for);
    at.map_or(handler, |at| ENTRIES[at] as *mut c_void)
}

/// Does the work that must be done before the program's error handler runs. Entry points call this
/// function.
extern "C-unwind" fn prepare() {
    before_a_handler();
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! entries {
    ($($i:literal)*) => { [$(entry::<$i> as Entry),*] };
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static ENTRIES: [Entry; 32] =
    entries!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
static ENTRIES: [Entry; 0] = [];

/// Entry point number `I`: puts the number into r11, in which no argument is passed, and jumps to
/// [`enter`].
///
/// # Safety
/// As for the program's function to which this entry point jumps.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C-unwind" fn entry<const I: usize>() {
    // SAFETY: r11 may be changed between a call and the called function's first instruction (System
    // V ABI, 3.2.3). No other register and nothing on the stack changes.
    std::arch::naked_asm!("mov r11d, {i}", "jmp {enter}", i = const I, enter = sym enter)
}

/// Saves every register that may hold an argument, calls [`prepare`], restores the registers, and
/// jumps to the program's function.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C-unwind" fn enter() {
    // SAFETY: when the program's function begins, all registers that may hold arguments and the
    // stack pointer have their values from the entry again, and r10 and r11 may be changed there.
    // Before `call` the stack is aligned to 16 bytes: the return address, nine pushed registers
    // (together 80 bytes) and 128 bytes for xmm0 to xmm7 are on it. r11 is less than the length of
    // `TARGETS`.
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        "push r11",
        "sub rsp, 128",
        "movaps [rsp], xmm0",
        "movaps [rsp + 16], xmm1",
        "movaps [rsp + 32], xmm2",
        "movaps [rsp + 48], xmm3",
        "movaps [rsp + 64], xmm4",
        "movaps [rsp + 80], xmm5",
        "movaps [rsp + 96], xmm6",
        "movaps [rsp + 112], xmm7",
        "call {prepare}",
        "movaps xmm0, [rsp]",
        "movaps xmm1, [rsp + 16]",
        "movaps xmm2, [rsp + 32]",
        "movaps xmm3, [rsp + 48]",
        "movaps xmm4, [rsp + 64]",
        "movaps xmm5, [rsp + 80]",
        "movaps xmm6, [rsp + 96]",
        "movaps xmm7, [rsp + 112]",
        "add rsp, 128",
        "pop r11",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "lea r10, [rip + {targets}]",
        "jmp [r10 + 8 * r11]",
        ".cfi_endproc",
        prepare = sym prepare,
        targets = sym TARGETS,
    )
}

/// Entry point number `I`: puts the number into x16, in which no argument is passed, and jumps to
/// [`enter`].
///
/// # Safety
/// As for the program's function to which this entry point jumps.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C-unwind" fn entry<const I: usize>() {
    // SAFETY: x16 may be changed between a call and the called function's first instruction
    // (AAPCS64, 6.1.1). `enter` is in the same object and within the reach of `b`, so the linker
    // inserts no veneer, which could change x16.
    std::arch::naked_asm!("mov x16, {i}", "b {enter}", i = const I, enter = sym enter)
}

/// Saves every register that may hold an argument, calls [`prepare`], restores the registers, and
/// jumps to the program's function.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C-unwind" fn enter() {
    // SAFETY: when the program's function begins, all registers that may hold arguments, x29, x30
    // and the stack pointer have their values from the entry again, and x16 and x17 may be changed
    // there. The stack pointer is moved by 224 bytes, a multiple of 16. x16 is less than the length
    // of `TARGETS`.
    std::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-224]!",
        ".cfi_def_cfa_offset 224",
        ".cfi_offset x29, -224",
        ".cfi_offset x30, -216",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "stp x8, x16, [sp, #80]",
        "stp q0, q1, [sp, #96]",
        "stp q2, q3, [sp, #128]",
        "stp q4, q5, [sp, #160]",
        "stp q6, q7, [sp, #192]",
        "bl {prepare}",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldp x8, x16, [sp, #80]",
        "ldp q0, q1, [sp, #96]",
        "ldp q2, q3, [sp, #128]",
        "ldp q4, q5, [sp, #160]",
        "ldp q6, q7, [sp, #192]",
        "ldp x29, x30, [sp], #224",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "adrp x17, {targets}",
        "add x17, x17, :lo12:{targets}",
        "ldr x17, [x17, x16, lsl #3]",
        "br x17",
        ".cfi_endproc",
        prepare = sym prepare,
        targets = sym TARGETS,
    )
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicI64;

    static SUM: AtomicI64 = AtomicI64::new(0);

    type Handler = unsafe extern "C-unwind" fn(i64, f64, i64, i64, i64, i64, i64, i64, i64, f64);

    /// Stores a number that depends on all arguments. There are integers and floating-point
    /// numbers, and more integers than registers for them on x86-64.
    #[allow(clippy::too_many_arguments, reason = "more than there are registers for")]
    unsafe extern "C-unwind" fn handler(
        a: i64,
        x: f64,
        b: i64,
        c: i64,
        d: i64,
        e: i64,
        f: i64,
        g: i64,
        h: i64,
        y: f64,
    ) {
        let sum = [a, b, c, d, e, f, g, h].iter().fold(0, |sum, n| 10 * sum + n);
        SUM.store(sum + (x * y) as i64, Ordering::Relaxed);
    }

    unsafe extern "C-unwind" fn throwing() {
        std::panic::resume_unwind(Box::new(7i32));
    }

    #[test]
    fn a_handler_gets_its_arguments_and_may_throw() {
        let function = handler as Handler as *mut c_void;
        let entry = entry_point(function);
        assert!(entry != function && entry_point(function) == entry);
        assert!(entry_point(std::ptr::null_mut()).is_null());
        // SAFETY: `entry` is an entry point of `handler`, which has the type `Handler`.
        unsafe {
            let entry: Handler = std::mem::transmute(entry);
            entry(1, 0.5, 2, 3, 4, 5, 6, 7, 8, 4.0);
        }
        assert_eq!(SUM.load(Ordering::Relaxed), 12_345_680);
        let entry = entry_point(throwing as Entry as *mut c_void);
        // SAFETY: `entry` is an entry point of `throwing`, which has the type `Entry`.
        let entry: Entry = unsafe { std::mem::transmute(entry) };
        // SAFETY: the entry point of `throwing` takes no arguments, and exceptions may pass through
        // it.
        let thrown = std::panic::catch_unwind(|| unsafe { entry() }).unwrap_err();
        assert_eq!(thrown.downcast_ref(), Some(&7i32));
        // If all entry points are taken, `entry_point` returns the handler itself.
        for i in 0..ENTRIES.len() {
            entry_point(std::ptr::without_provenance_mut(i + 1));
        }
        let late = std::ptr::without_provenance_mut(1 << 20);
        assert_eq!((entry_point(late), entry_point(function)), (late, entry_point(function)));
    }
}
