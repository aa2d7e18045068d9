//! References to nodes (types), with a reference count in the node itself.
//!
//! A node is allocated and freed with every type, so the reference count is a large part of the
//! cost of a type. A node has one count of four bytes. The last owner only reads this count, and
//! references to the nodes of predefined types that have a handle are not counted.
//!
//! `Arc` would cost more, for two reasons. First, it has a second count, for weak references, and
//! even the only owner changes both counts, by locked instructions, when it drops its reference.
//! Second, it changes a count each time that a reference to a predefined type is made or dropped.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use super::{Extra, Node, Shape};

/// Minimum count of a node that is never freed. A count of at least this value is not decremented.
/// [`Ref::forever`] stores such a count in a node. Counting references does not reach this value in
/// practice, because 2^31 references to one node would take 16 GiB of memory.
const MIN_PERMANENT_COUNT: u32 = 1 << 31;
/// Limit from which on counting stops: a count of at least this value is not incremented when a
/// further reference is made.
const ALWAYS: u32 = 3 << 30;
/// Count that is stored in nodes that are never freed. It is 2^29 more than [`ALWAYS`], and 2^29
/// less than the first value that does not fit in 32 bits. A thread that read the previous count
/// just before this value was stored may still increment or decrement this value once. But there
/// are far fewer than 2^29 threads, so the count stays above `ALWAYS` and does not overflow.
const FOREVER: u32 = 7 << 29;

/// Number of references to a node.
#[derive(Debug)]
pub(crate) struct Count(AtomicU32);

impl Count {
    /// Returns the count of a new node, to which there is one reference.
    pub(crate) const fn one() -> Count {
        Count(AtomicU32::new(1))
    }

    /// Increments the count for a further reference. If the count has reached
    /// [`MIN_PERMANENT_COUNT`], the node is never freed from then on.
    #[inline]
    fn more(&self) {
        if self.0.load(Ordering::Relaxed) < ALWAYS
            && self.0.fetch_add(1, Ordering::Relaxed) >= MIN_PERMANENT_COUNT
        {
            self.0.store(FOREVER, Ordering::Relaxed);
        }
    }

    /// Decrements the count for a reference that is dropped. Returns true if it was the last
    /// reference, so that the caller must free the node.
    #[inline]
    fn fewer(&self) -> bool {
        match self.0.load(Ordering::Acquire) {
            // The caller has the only reference, so no other thread can make a further one. The
            // node is freed now, so its count need not be written.
            1 => true,
            n if n >= MIN_PERMANENT_COUNT => false,
            _ => {
                // All accesses of other threads to the node happen before these threads decrement
                // the count (`Release`), and so before the last owner frees the node (`Acquire`).
                let last = self.0.fetch_sub(1, Ordering::Release) == 1;
                if last {
                    fence(Ordering::Acquire);
                }
                last
            }
        }
    }
}

/// Counted reference to a node.
#[derive(Debug)]
pub(crate) struct Ref(NonNull<Node>);

// Asserts that `Extra`, `Shape` and `Count` can be sent to other threads and shared with them.
// These are parts of a node. The other parts need no assertion: `facts` and `marks` are plain or
// atomic numbers, and `Once` is an `OnceLock`, which can be sent and shared if its content can.
const _: () = {
    const fn sync<T: Send + Sync>() {}
    sync::<Extra>();
    sync::<Shape>();
    sync::<Count>();
};
// SAFETY: a reference gives shared access to a node, and the last one drops the node, in whichever
// thread that happens. Both are sound because all parts of a node can be shared and sent, as
// asserted above. The references in `Shape` are of this type, to which the same reasoning applies.
// The count is atomic, and `alone` gives unshared access only if there is no other reference.
unsafe impl Send for Ref {}
// SAFETY: sharing a `Ref` allows other threads to read its node and to clone the reference. The
// reasons given for `Send` cover both.
unsafe impl Sync for Ref {}

impl Ref {
    /// Moves a new node to the heap and returns the first reference to it. The count of the node
    /// must be 1.
    #[inline(always)]
    pub(crate) fn new(node: Node) -> Ref {
        Ref(NonNull::from(Box::leak(Box::new(node))))
    }

    /// Makes the node permanent: it stays until the process ends, and references to it are no
    /// longer counted.
    pub(crate) fn forever(self) -> Ref {
        self.count.0.store(FOREVER, Ordering::Relaxed);
        self
    }

    /// Returns true if both references are to the same node.
    #[inline]
    pub(crate) fn same(a: &Ref, b: &Ref) -> bool {
        a.0 == b.0
    }

    /// Returns mutable access to the node if this is the only reference to it; `None` otherwise.
    pub(crate) fn alone(&mut self) -> Option<&mut Node> {
        if self.count.0.load(Ordering::Acquire) != 1 {
            return None;
        }
        // SAFETY: the reference keeps the node alive. The count is 1, so this is the only
        // reference, and it is borrowed mutably, so nobody else can access the node or make another
        // reference.
        Some(unsafe { self.0.as_mut() })
    }

    /// Consumes the reference without decrementing the count, and returns the address of the node.
    /// [`Ref::back`] turns the address into the reference again.
    #[inline]
    pub(crate) fn away(self) -> *mut Node {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// Turns an address that [`Ref::away`] has returned into the reference again.
    ///
    /// # Safety
    /// `address` must be a result of [`Ref::away`], and each such result may be passed to this
    /// function only once.
    #[inline]
    pub(crate) unsafe fn back(address: NonNull<Node>) -> Ref {
        Ref(address)
    }

    /// Returns a further reference to the node whose address [`Ref::away`] has returned.
    ///
    /// # Safety
    /// `address` must be a result of [`Ref::away`] that has not been passed to [`Ref::back`], and
    /// that is not passed to it during the call.
    #[inline]
    pub(crate) unsafe fn further(address: NonNull<Node>) -> Ref {
        // SAFETY: the reference that was given away keeps the node alive during the call.
        // `ManuallyDrop` prevents that this copy of the reference is dropped, which would count it
        // twice.
        let away = ManuallyDrop::new(Ref(address));
        Ref::clone(&away)
    }
}

impl Deref for Ref {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        // SAFETY: the pointer comes from a box, and the node lives as long as a reference to it,
        // such as `self`. `alone` gives mutable access only to the holder of the only reference,
        // and borrows it mutably.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for Ref {
    #[inline]
    fn clone(&self) -> Ref {
        self.count.more();
        Ref(self.0)
    }
}

impl Drop for Ref {
    #[inline]
    fn drop(&mut self) {
        if self.count.fewer() {
            // SAFETY: `new` made the node from a box. The last reference is being dropped, so
            // nobody else accesses the node or frees it.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddtc::internal::datatype::Named;

    #[test]
    fn the_last_reference_frees_and_the_only_one_may_change() {
        let child = Node::copies(3, Node::named(Named::Int32)).unwrap();
        let mut above = Node::copies(2, child.clone()).unwrap();
        assert_eq!(child.count.0.load(Ordering::Relaxed), 2);
        let also = above.clone();
        assert!(above.alone().is_none() && Ref::same(&above, &also));
        drop(also);
        assert!(above.alone().is_some());
        drop(above);
        assert_eq!(child.count.0.load(Ordering::Relaxed), 1);
        let address = NonNull::new(child.away()).unwrap();
        // SAFETY: the line above gave the reference away. `further` is called first, and `back`
        // once.
        let (further, back) = unsafe { (Ref::further(address), Ref::back(address)) };
        assert_eq!(back.count.0.load(Ordering::Relaxed), 2);
        drop(back);
        assert_eq!(further.count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_stays_is_not_counted() {
        let mut named = Node::named(Named::Double).forever();
        let before = named.count.0.load(Ordering::Relaxed);
        drop(named.clone());
        assert!(named.alone().is_none());
        assert_eq!(named.count.0.load(Ordering::Relaxed), before);
        let many = Count(AtomicU32::new(MIN_PERMANENT_COUNT - 1));
        many.more();
        assert!(!many.fewer(), "as many as that never end");
        many.more();
        assert_eq!(many.0.load(Ordering::Relaxed), FOREVER);
    }

    #[test]
    fn threads_share_a_node() {
        let node = Node::copies(3, Node::named(Named::Int32)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let own = node.clone();
                scope.spawn(move || (0..1000).for_each(|_| assert_eq!(own.clone().facts.size, 12)));
            }
        });
        assert_eq!(node.count.0.load(Ordering::Relaxed), 1);
    }
}
