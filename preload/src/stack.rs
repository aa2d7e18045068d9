//! Stack addresses, by which a new call finds out whether an earlier call of ddtc is still under
//! way.
//!
//! The program may leave an MPI call by an exception or a jump. Then no code runs that would remove
//! the record of the call, which says for example that the call owns a staging buffer. So each
//! record has the stack address at which it was made. Stacks grow downwards. A record whose address
//! is at or below the address of a new call on the same stack is therefore that of a call which the
//! program has left.

/// Returns an address in the frame of this function, which is directly below the frame of its
/// caller. The deeper the caller is on the stack, the lower the returned address is.
#[inline(never)]
pub(crate) fn here() -> usize {
    let place = 0u8;
    std::hint::black_box(&raw const place).addr()
}

/// Returns the addresses of this thread's own stack, or `None` if the C library does not return
/// them.
#[cold]
pub(crate) fn bounds() -> Option<std::ops::Range<usize>> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut low, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: `attributes` has room for the attributes. `pthread_getattr_np` initializes them, and
    // the other two calls, which read and destroy them, are reached only if it has succeeded. `low`
    // and `bytes` are local variables of the types that `pthread_attr_getstack` writes.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let code = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (code == 0).then(|| low.addr()..low.addr() + bytes)
    }
}

/// Runs `f` in a deeper stack frame, like the functions that the MPI library calls.
#[cfg(test)]
#[inline(never)]
pub(crate) fn deeper<R>(f: impl FnOnce() -> R) -> R {
    let room = std::hint::black_box([0u8; 256]);
    let result = f();
    std::hint::black_box(&room);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deeper_call_has_a_lower_place() {
        let (inner, outer) = (deeper(here), here());
        assert!(inner < outer);
        assert!(bounds().is_some_and(|bounds| bounds.contains(&outer)));
        std::thread::spawn(|| assert!(bounds().unwrap().contains(&here()))).join().unwrap();
    }
}
