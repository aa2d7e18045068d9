//! Calls of our own to the host, told from the program's.

thread_local! {
    static INSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// While it lives, this thread makes calls of our own to the host.
pub(crate) struct Inside(());

impl Inside {
    pub(crate) fn enter() -> Option<Inside> {
        // One that is made only to be dropped would end the outer one.
        INSIDE.try_with(|inside| (!inside.replace(true)).then(|| Inside(()))).ok().flatten()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(false));
    }
}

/// Says whether this thread makes calls of our own to the host.
#[inline]
pub(crate) fn is_inside() -> bool {
    INSIDE.try_with(std::cell::Cell::get).unwrap_or(true)
}
