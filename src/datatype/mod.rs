//! The MPI datatype, free of any MPI library: a shared tree of constructors, each node with exactly its arguments.
//!
//! A [`Datatype`] is a reference to an immutable node; subtrees are shared, so a type is a DAG. Whatever is asked often (size,
//! bounds, signature, structural hash) is computed when a node is built, from its arguments and its children's values: O(nodes)
//! for any DAG. Nothing here recurses on the stack: depth is bounded by memory only, in `Drop` too.
//!
//! The type map is the truth: [`TypeMap`] lists it. Meaning and bounds follow MPI 5.0 chapter 5; docs/SEMANTICS.md lists each
//! decision with its section.

mod array;
mod bounds;
pub mod c;
mod call;
pub mod combiner;
mod compare;
mod construct;
mod constructors;
pub mod contents;
mod hash;
pub mod matching;
pub mod named;
mod prefix;
mod reducible;
mod scalar;
pub mod signature;
mod text;
pub mod typemap;
mod wire;

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub use combiner::{Combiner, Distribution, Order};
pub use contents::{CombinerKind, Constants, Contents, Envelope};
pub(crate) use matching::element;
pub use matching::{Match, compare as compare_signatures, signature_hash};
pub use named::{Class, FortranKinds, Language, Named};
pub use scalar::Scalar;
pub use signature::Signature;
pub use typemap::TypeMap;

use crate::error::Result;
use crate::process::Lazy;
use bounds::Bounds;

struct Node {
    combiner: Combiner,
    layout: Bounds,
    signature: Signature,
    hash: Halves,
    extra: Option<Arc<Extra>>,
    depth: u32,
    /// Built by a large-count constructor.
    large: bool,
    /// Arguments over the DAG plus one; 0 = not asked yet, or too many to be kept.
    arguments: AtomicU32,
}

/// Properties that few nodes have.
enum Extra {
    /// The equivalent tree of simpler constructors.
    Expansion(Datatype),
    /// Sums before every so many members of a long struct.
    Members(Vec<prefix::Totals>),
}

/// A program may hold millions of nodes: what one takes is kept in sight.
const _: () = assert!(size_of::<Node>() <= 200);

/// A 128-bit hash without 128-bit alignment, which would cost a node 8 bytes more.
#[derive(Clone, Copy)]
struct Halves([u64; 2]);

impl Halves {
    fn of(combiner: &Combiner) -> Halves {
        let hash = hash::structural(combiner);
        Halves([hash as u64, (hash >> 64) as u64])
    }

    fn whole(self) -> u128 {
        u128::from(self.0[1]) << 64 | u128::from(self.0[0])
    }
}

/// An MPI datatype: a list of basic types with their displacements in bytes, and bounds.
///
/// A datatype is built from basic types ([`Datatype::of`]) by the constructors of MPI, or read from
/// its text. It is immutable, and clones share it. Two datatypes are equal if they were built by
/// the same calls; datatypes that were built differently are not equal, even if they describe the
/// same bytes.
///
/// The text notation has MPI's names in lower case without `MPI_` and `Type_create_`. Arguments are
/// in MPI's order, except that the datatype is the last. `Display` and `Debug` write the notation,
/// and `FromStr` reads it:
///
/// ```
/// use ddtc::{Datatype, Order};
///
/// let part = Datatype::subarray(&[4, 8], &[2, 3], &[1, 2], Order::C, &Datatype::of::<f64>())?;
/// assert_eq!(part.to_string().parse::<Datatype>()?, part);
/// let byte: Datatype = "byte".parse()?;
/// let columns: Datatype = "vector(4, 2, 8, 2int)".parse()?;
/// assert_eq!((byte.size(), columns.size()), (1, 4 * 2 * 8));
/// # Ok::<(), ddtc::Error>(())
/// ```
#[derive(Clone)]
pub struct Datatype(Arc<Node>);

static NAMED: Lazy<Vec<Datatype>> = Lazy::new(|| {
    let build = |&n: &Named| {
        let combiner = Combiner::Named(n);
        let (layout, signature, hash) = (Bounds::of(n), Signature::of(n), Halves::of(&combiner));
        let node = Node {
            combiner,
            layout,
            signature,
            hash,
            extra: None,
            depth: 0,
            large: false,
            arguments: AtomicU32::new(1),
        };
        Datatype(Arc::new(node))
    };
    Named::ALL.iter().map(build).collect()
});

impl Datatype {
    /// Returns a named predefined datatype; every call gives the same node.
    pub(crate) fn named(named: Named) -> Datatype {
        NAMED[named as usize].clone()
    }

    /// Returns the datatype of a combiner. A value_index with a named pair type gives that type; host bounds that `oldtype` has anyway
    /// give `oldtype`, and replace host bounds on top of it.
    ///
    /// # Errors
    /// Names the constructor, the argument, its value and the rule: negative counts, block lengths or sizes; arrays of
    /// different lengths; a subarray outside its array; a bad distribution, rank or grid; sizes, displacements or bounds that
    /// do not fit in 64 bits.
    pub(crate) fn new(combiner: Combiner) -> Result<Datatype> {
        match &combiner {
            Combiner::Named(n) => return Ok(Datatype::named(*n)),
            Combiner::Bounds { lb, extent, oldtype } => {
                if oldtype.lb() == *lb && oldtype.extent() == *extent {
                    return Ok(oldtype.clone());
                }
                if let Combiner::Bounds { oldtype: inner, .. } = oldtype.combiner() {
                    return Datatype::bounds(*lb, *extent, inner);
                }
            }
            Combiner::ValueIndex { value, index } => {
                if let (Combiner::Named(v), Combiner::Named(i)) = (value.combiner(), index.combiner())
                    && let Some(pair) = Named::pair_of(*v, *i)
                {
                    return Ok(Datatype::named(pair));
                }
            }
            _ => {}
        }
        let derived = construct::derive(&combiner)?;
        let hash = Halves::of(&combiner);
        let depth = combiner.children().map(Datatype::depth).max().unwrap_or(0).saturating_add(1);
        let large = combiner.needs_large_counts();
        Ok(Datatype(Arc::new(Node {
            combiner,
            layout: derived.layout,
            signature: derived.signature,
            hash,
            extra: derived.extra.map(Arc::new),
            depth,
            large,
            arguments: AtomicU32::new(0),
        })))
    }

    /// Returns a duplicate, which is a new datatype with the same type map (`MPI_Type_dup`).
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let double = Datatype::of::<f64>();
    /// assert_eq!(double.dup().size(), double.size());
    /// assert_ne!(double.dup(), double, "equality is that of the constructor calls");
    /// ```
    pub fn dup(&self) -> Datatype {
        let combiner = Combiner::Dup { oldtype: self.clone() };
        let hash = Halves::of(&combiner);
        Datatype(Arc::new(Node {
            combiner,
            layout: self.0.layout,
            signature: self.0.signature,
            hash,
            extra: None,
            depth: self.0.depth.saturating_add(1),
            large: false,
            arguments: AtomicU32::new(0),
        }))
    }

    /// Makes the datatype of the same map with the bounds that a host MPI library decided, in bytes; they stick as resized's do. Gives `t` itself if
    /// it has these bounds, and replaces host bounds that `t` carries on top.
    pub(crate) fn bounds(lb: i64, extent: i64, t: &Datatype) -> Result<Datatype> {
        Datatype::new(Combiner::Bounds { lb, extent, oldtype: t.clone() })
    }

    /// `MPI_Type_create_f90_real` for `p` decimal digits and decimal exponent range `r`; `None` is `MPI_UNDEFINED`.
    pub(crate) fn f90_real(p: Option<i64>, r: Option<i64>) -> Result<Datatype> {
        Datatype::new(Combiner::F90Real { p, r })
    }

    /// `MPI_Type_create_f90_complex`; arguments as [`Datatype::f90_real`].
    pub(crate) fn f90_complex(p: Option<i64>, r: Option<i64>) -> Result<Datatype> {
        Datatype::new(Combiner::F90Complex { p, r })
    }

    /// `MPI_Type_create_f90_integer` for decimal exponent range `r`.
    pub(crate) fn f90_integer(r: i64) -> Result<Datatype> {
        Datatype::new(Combiner::F90Integer { r })
    }

    /// `MPI_Type_get_value_index`: the named pair type where MPI has one, else an unnamed one laid out as a C structure.
    pub(crate) fn value_index(value: &Datatype, index: &Datatype) -> Result<Datatype> {
        Datatype::new(Combiner::ValueIndex { value: value.clone(), index: index.clone() })
    }

    /// Marks the node as built by a large-count (`_c`) constructor. Outside hash and equality; children are unaffected. Nodes
    /// without a large-count constructor (named, dup, f90, value_index, host bounds) stay as they are.
    #[must_use]
    pub(crate) fn with_large_count(mut self) -> Datatype {
        use Combiner as C;
        if self.0.large {
            return self;
        }
        match self.combiner() {
            C::Named(_) | C::Dup { .. } | C::Bounds { .. } | C::ValueIndex { .. } => return self,
            C::F90Real { .. } | C::F90Complex { .. } | C::F90Integer { .. } => return self,
            _ => {}
        }
        if let Some(node) = Arc::get_mut(&mut self.0) {
            node.large = true;
            return self;
        }
        let node = &*self.0;
        let mut combiner = node.combiner.clone();
        if let C::Struct { types, .. } = &mut combiner {
            // An own array of children: Drop unlinks an array only from its single owner.
            *types = types.iter().cloned().collect();
        }
        Datatype(Arc::new(Node {
            combiner,
            layout: node.layout,
            signature: node.signature,
            hash: node.hash,
            extra: node.extra.clone(),
            depth: node.depth,
            large: true,
            arguments: AtomicU32::new(node.arguments.load(Ordering::Relaxed)),
        }))
    }

    /// Says whether a large-count constructor built the node, or only one could have: a count does not fit 32 bits.
    pub(crate) fn is_large_count(&self) -> bool {
        self.0.large
    }

    /// Returns the constructor and its arguments.
    pub(crate) fn combiner(&self) -> &Combiner {
        &self.0.combiner
    }

    /// Returns an equivalent tree of dup, contiguous, vector, indexed, struct and resized kinds over named types and `oldtype`, for the
    /// constructors that have one: subarray, darray, f90 types and value_index. Same type map and bounds.
    pub(crate) fn expansion(&self) -> Option<&Datatype> {
        match self.0.extra.as_deref() {
            Some(Extra::Expansion(tree)) => Some(tree),
            _ => None,
        }
    }

    /// Of a long struct: what comes before every [`prefix::STEP`]th member, but the first.
    fn totals(&self) -> &[prefix::Totals] {
        match self.0.extra.as_deref() {
            Some(Extra::Members(totals)) => totals,
            _ => &[],
        }
    }

    /// Returns the number of bytes of data in the type map.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let row = Datatype::hindexed(&[2], &[4], &Datatype::of::<i32>())?;
    /// assert_eq!(row.size(), 8);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    #[inline]
    pub fn size(&self) -> i64 {
        self.0.layout.size
    }

    /// Returns the lower bound in bytes.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let row = Datatype::hindexed(&[2], &[4], &Datatype::of::<i32>())?;
    /// assert_eq!(row.lb(), 4);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    #[inline]
    pub fn lb(&self) -> i64 {
        self.0.layout.lb
    }

    /// Returns the upper bound in bytes.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let row = Datatype::hindexed(&[2], &[4], &Datatype::of::<i32>())?;
    /// assert_eq!(row.ub(), 12);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    #[inline]
    pub fn ub(&self) -> i64 {
        self.0.layout.ub
    }

    /// Returns the upper bound minus the lower bound, which is the distance in bytes between
    /// neighbours in an array of the type.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let row = Datatype::hindexed(&[2], &[4], &Datatype::of::<i32>())?;
    /// assert_eq!(row.extent(), 8);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    #[inline]
    pub fn extent(&self) -> i64 {
        self.0.layout.extent()
    }

    /// Returns the displacement in bytes of the first byte of data, or 0 if there is none.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let row = Datatype::hindexed(&[2], &[4], &Datatype::of::<i32>())?;
    /// let row = Datatype::resized(0, 64, &row)?;
    /// assert_eq!((row.lb(), row.true_lb()), (0, 4));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    #[inline]
    pub fn true_lb(&self) -> i64 {
        self.0.layout.true_lb
    }

    /// Returns the displacement after the last byte of data, in bytes, or 0 if there is none.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let row = Datatype::hindexed(&[2], &[4], &Datatype::of::<i32>())?;
    /// let row = Datatype::resized(0, 64, &row)?;
    /// assert_eq!((row.ub(), row.true_ub()), (64, 12));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    #[inline]
    pub fn true_ub(&self) -> i64 {
        self.0.layout.true_ub
    }

    /// Returns the bytes from the first to after the last byte of data.
    pub(crate) fn true_extent(&self) -> i64 {
        self.true_ub() - self.true_lb()
    }

    /// Strictest alignment in bytes of the basic types in the map; 1 where there is none.
    pub(crate) fn alignment(&self) -> i64 {
        i64::from(self.0.layout.alignment)
    }

    /// Returns the sequence of basic types, as length and hash.
    pub(crate) fn signature(&self) -> Signature {
        self.0.signature
    }

    /// 128-bit hash of the combiner tree: equal for equal types, the same in every process and on every machine.
    pub(crate) fn structural_hash(&self) -> u128 {
        self.0.hash.whole()
    }

    /// Returns the address of the shared node: a key for memoization while this `Datatype` lives.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Returns the number of constructor arguments over the DAG, each node once: the measure of how large a type is written down.
    /// Walks the DAG at the first call.
    pub(crate) fn arguments(&self) -> u64 {
        let known = self.0.arguments.load(Ordering::Relaxed);
        if known > 0 {
            return u64::from(known - 1);
        }
        let mut total = self.combiner().arguments();
        // At depth 1 all children are named types, which have no arguments.
        if self.depth() > 1 {
            total =
                self.nodes().skip(1).fold(total, |total, t| total.saturating_add(t.combiner().arguments()));
        }
        if let Ok(known) = u32::try_from(total.saturating_add(1)) {
            self.0.arguments.store(known, Ordering::Relaxed);
        }
        total
    }

    /// Constructors on the longest path down to a named type, which itself has depth 0.
    pub(crate) fn depth(&self) -> u32 {
        self.0.depth
    }

    /// Every node of the DAG once, parents before their first child's subtree.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Datatype> {
        let mut seen = HashSet::new();
        let mut open = vec![self.combiner().children()];
        std::iter::once(self).chain(std::iter::from_fn(move || {
            loop {
                let siblings = open.last_mut()?;
                let next = siblings.next();
                if siblings.len() == 0 {
                    open.pop();
                }
                // A node with one owner is met once.
                if let Some(t) = next.filter(|t| t.owners() == 1 || seen.insert(t.id())) {
                    open.push(t.combiner().children());
                    return next;
                }
            }
        }))
    }

    /// References to the node: 1 means that nothing else can reach it.
    fn owners(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    fn layout(&self) -> &Bounds {
        &self.0.layout
    }
}

impl PartialEq for Datatype {
    fn eq(&self, other: &Datatype) -> bool {
        compare::equal(self, other)
    }
}

impl Eq for Datatype {}

impl Hash for Datatype {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash.0.hash(state);
    }
}

/// Shows the text notation.
impl fmt::Debug for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Nodes of the DAG below and with `root`, each once, children before parents.
pub(crate) fn postorder(root: &Datatype) -> Vec<&Datatype> {
    let (mut order, mut seen, mut open) = (Vec::new(), HashSet::new(), vec![(root, false)]);
    while let Some((t, left)) = open.pop() {
        if left {
            order.push(t);
        } else if seen.insert(t.id()) {
            open.push((t, true));
            open.extend(t.combiner().children().map(|c| (c, false)));
        }
    }
    order
}

/// Moves the children of a dying node to `into` instead of dropping them in place.
fn unlink(node: &mut Node, into: &mut Vec<Datatype>) {
    if let Some(Extra::Expansion(tree)) = node.extra.take().and_then(Arc::into_inner) {
        into.push(tree);
    }
    let combiner = std::mem::replace(&mut node.combiner, Combiner::Named(Named::Byte));
    match combiner {
        Combiner::Named(_)
        | Combiner::F90Real { .. }
        | Combiner::F90Complex { .. }
        | Combiner::F90Integer { .. } => {}
        Combiner::Dup { oldtype }
        | Combiner::Contiguous { oldtype, .. }
        | Combiner::Vector { oldtype, .. }
        | Combiner::Hvector { oldtype, .. }
        | Combiner::Indexed { oldtype, .. }
        | Combiner::Hindexed { oldtype, .. }
        | Combiner::IndexedBlock { oldtype, .. }
        | Combiner::HindexedBlock { oldtype, .. }
        | Combiner::Subarray { oldtype, .. }
        | Combiner::Darray { oldtype, .. }
        | Combiner::Resized { oldtype, .. }
        | Combiner::Bounds { oldtype, .. } => into.push(oldtype),
        Combiner::ValueIndex { value, index } => into.extend([value, index]),
        Combiner::Struct { mut types, .. } => {
            if let Some(types) = Arc::get_mut(&mut types) {
                // Leaves are shared with the table of named types: dropping those in place goes no deeper.
                for child in types.iter_mut().filter(|c| c.depth() > 0) {
                    into.push(std::mem::replace(child, Datatype::named(Named::Byte)));
                }
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.depth <= 1 && self.extra.is_none() {
            return;
        }
        let mut dying = Vec::new();
        unlink(self, &mut dying);
        while let Some(datatype) = dying.pop() {
            if let Some(mut node) = Arc::into_inner(datatype.0) {
                unlink(&mut node, &mut dying);
            }
        }
    }
}
