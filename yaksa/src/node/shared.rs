//! References to nodes, counted in the node itself.
//!
//! A node is made and freed as often as a type, so what its references cost is what types cost. The standard library's have a second count (of weak ones)
//! and write to both with locked instructions, when the only owner lets go too, and at each mention of a predefined type. Here there is one count of four bytes; the
//! last owner only reads it; predefined nodes are not counted.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use super::{Extra, Node, Shape};

/// Counts from here on never come down to nothing: more references than a program can hold.
const MANY: u32 = 1 << 31;
/// From here on nothing is counted any more.
const ALWAYS: u32 = 3 << 30;
/// Count of nodes that stay: as far from both ends as steps that are under way in other threads could go.
const FOREVER: u32 = 7 << 29;

/// References to a node.
#[derive(Debug)]
pub(crate) struct Count(AtomicU32);

impl Count {
    /// Of a node that has one owner.
    pub(crate) const fn one() -> Count {
        Count(AtomicU32::new(1))
    }

    #[inline]
    fn more(&self) {
        if self.0.load(Ordering::Relaxed) < ALWAYS && self.0.fetch_add(1, Ordering::Relaxed) >= MANY {
            self.0.store(FOREVER, Ordering::Relaxed);
        }
    }

    /// Whether that was the last one.
    #[inline]
    fn fewer(&self) -> bool {
        match self.0.load(Ordering::Acquire) {
            // The caller's: nobody else can make another.
            1 => true,
            n if n >= MANY => false,
            _ => {
                let last = self.0.fetch_sub(1, Ordering::Release) == 1;
                if last {
                    fence(Ordering::Acquire);
                }
                last
            }
        }
    }
}

/// A counted reference to a node.
#[derive(Debug)]
pub(crate) struct Ref(NonNull<Node>);

// What a node consists of may be shared and sent.
const _: () = {
    const fn sync<T: Send + Sync>() {}
    sync::<Extra>();
    sync::<Shape>();
    sync::<Count>();
};
// SAFETY: a reference gives shared access to a node, and the last one drops it, in whichever thread: both are sound for what nodes consist of, which is
// asserted above; references among it are these.
unsafe impl Send for Ref {}
// SAFETY: as above.
unsafe impl Sync for Ref {}

impl Ref {
    /// Returns the first reference to a node.
    #[inline(always)]
    pub(crate) fn new(node: Node) -> Ref {
        Ref(NonNull::from(Box::leak(Box::new(node))))
    }

    /// Makes the node stay until the process ends; it is counted no more.
    pub(crate) fn forever(self) -> Ref {
        self.count.0.store(FOREVER, Ordering::Relaxed);
        self
    }

    /// Says whether both are one node.
    #[inline]
    pub(crate) fn same(a: &Ref, b: &Ref) -> bool {
        a.0 == b.0
    }

    /// Returns the node to be changed, where there is no other reference.
    pub(crate) fn alone(&mut self) -> Option<&mut Node> {
        if self.count.0.load(Ordering::Acquire) != 1 {
            return None;
        }
        // SAFETY: the only reference is this one, which is borrowed alone.
        Some(unsafe { self.0.as_mut() })
    }

    /// Returns its address, which [`Ref::back`] takes.
    #[inline]
    pub(crate) fn away(self) -> *mut Node {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// Returns the reference that went [`Ref::away`].
    ///
    /// # Safety
    /// `address` must be what `away` gave, each taken back once.
    #[inline]
    pub(crate) unsafe fn back(address: NonNull<Node>) -> Ref {
        Ref(address)
    }

    /// Another reference beside one that is away.
    ///
    /// # Safety
    /// `address` must be what `away` gave and `back` has not taken, and stay so during the call.
    #[inline]
    pub(crate) unsafe fn beside(address: NonNull<Node>) -> Ref {
        // SAFETY: the reference that is away keeps the node.
        let away = ManuallyDrop::new(Ref(address));
        Ref::clone(&away)
    }
}

impl Deref for Ref {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        // SAFETY: a reference keeps its node.
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
            // SAFETY: made by `new` from a box, and the last reference is going.
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
        // SAFETY: away from the line above on, and taken back once.
        let (beside, back) = unsafe { (Ref::beside(address), Ref::back(address)) };
        assert_eq!(back.count.0.load(Ordering::Relaxed), 2);
        drop(back);
        assert_eq!(beside.count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_stays_is_not_counted() {
        let mut named = Node::named(Named::Double).forever();
        let before = named.count.0.load(Ordering::Relaxed);
        drop(named.clone());
        assert!(named.alone().is_none());
        assert_eq!(named.count.0.load(Ordering::Relaxed), before);
        let many = Count(AtomicU32::new(MANY - 1));
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
