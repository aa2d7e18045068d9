//! Places on the stack, by which a call tells whether an earlier call is still under way.
//!
//! The program may leave an MPI call by an exception or a jump, and then nobody takes back what the
//! call has noted. So a note says where on the stack it was made. Stacks grow downwards: a note that
//! was made at or below the place of a new call belongs to a call that is gone.

/// Returns an address in the frame below the caller's: the deeper the caller, the lower it is.
#[inline(never)]
pub(crate) fn here() -> usize {
    let place = 0u8;
    std::hint::black_box(&raw const place).addr()
}

/// Returns the addresses of this thread's own stack, if the C library tells them.
#[cold]
pub(crate) fn bounds() -> Option<std::ops::Range<usize>> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut low, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are written by the first call, read by the second if the first has
    // succeeded, and given back by the third.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let code = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (code == 0).then(|| low.addr()..low.addr() + bytes)
    }
}

/// Runs `f` in a deeper frame, as the MPI library runs what it calls.
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
