//! MPI datatypes, independent of any MPI library: a shared tree of constructors, in which each node
//! has exactly the arguments of its call.
//!
//! A [`Datatype`] is a reference to an immutable node. Subtrees are shared, so a type is a DAG.
//! Whatever is asked often (size, bounds, signature, structural hash) is computed when a node is
//! built, from its arguments and the values of its children. This takes time linear in the number
//! of arguments of the node, however far the DAG would unfold. Nothing here recurses on the stack,
//! `Drop` included, so only memory limits the depth of a type.
//!
//! The type map ([`TypeMap`]) is the reference for everything that is computed from a datatype. The
//! meaning of constructors and their bounds follow MPI 5.0 chapter 5; docs/SEMANTICS.md lists each
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
    hash: Hash128,
    extra: Option<Arc<Extra>>,
    depth: u32,
    /// Whether a large-count constructor built the node, or a count (or the size, rank or grid of a
    /// darray) does not fit in an int.
    large: bool,
    /// One more than the number of constructor arguments in the DAG below and including this node.
    /// It is 0 until that number is computed, and stays 0 if the sum does not fit in 32 bits.
    arguments: AtomicU32,
}

/// A property that only few nodes have.
enum Extra {
    /// Equivalent tree of simpler constructors.
    Expansion(Datatype),
    /// Prefix sums over the members of a long struct. Entry `i` is the sum over the first
    /// `(i + 1) * prefix::MEMBERS_PER_TOTALS` members.
    Members(Vec<prefix::Totals>),
}

/// A program may hold millions of nodes, so a node must not grow unnoticed.
const _: () = assert!(size_of::<Node>() <= 200);

/// A 128-bit hash, as its low and its high half. A `u128` would make a node 8 bytes larger because
/// of its alignment.
#[derive(Clone, Copy)]
struct Hash128([u64; 2]);

impl Hash128 {
    fn from_combiner(combiner: &Combiner) -> Hash128 {
        let hash = hash::structural(combiner);
        Hash128([hash as u64, (hash >> 64) as u64])
    }

    fn to_u128(self) -> u128 {
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
/// The text notation has MPI's names in lower case: those of named types without `MPI_`, and those
/// of constructors as in `MPI_COMBINER_VECTOR`, without `MPI_COMBINER_`. The constructor `bounds`
/// is not MPI's. It stands for the bounds that an MPI library gave to a datatype. The arguments are
/// in MPI's order with the datatype last. `Display` and `Debug` write the text notation and
/// `FromStr` reads it:
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
        let (layout, signature, hash) =
            (Bounds::from_named(n), Signature::from_named(n), Hash128::from_combiner(&combiner));
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
    /// Returns the datatype of a named type. Every call returns the same node.
    pub(crate) fn named(named: Named) -> Datatype {
        NAMED[named as usize].clone()
    }

    /// Returns the datatype of a combiner.
    ///
    /// Some combiners do not become a node of their own. A value_index of two types for which MPI
    /// has a named pair type becomes that pair type. A [`Combiner::Bounds`] with the bounds that
    /// `oldtype` has anyway becomes `oldtype`. A [`Combiner::Bounds`] on top of another one
    /// replaces it.
    ///
    /// # Errors
    /// Returns an error that names the constructor, the argument, its value and the rule. Among
    /// what is refused are negative counts, block lengths or sizes; arrays of different lengths; a
    /// subarray outside its array; a bad distribution, rank or grid; sizes, displacements or bounds
    /// that do not fit in 64 bits.
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
        let hash = Hash128::from_combiner(&combiner);
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
        let hash = Hash128::from_combiner(&combiner);
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

    /// Returns a datatype with the type map of `t` and the bounds in bytes that an MPI library
    /// decided for it. As with `resized`, the bounds are sticky. Returns `t` itself if it has these
    /// bounds already, and replaces a [`Combiner::Bounds`] on top of `t`.
    pub(crate) fn bounds(lb: i64, extent: i64, t: &Datatype) -> Result<Datatype> {
        Datatype::new(Combiner::Bounds { lb, extent, oldtype: t.clone() })
    }

    /// Returns the datatype of `MPI_Type_create_f90_real` for `p` decimal digits and a decimal
    /// exponent range `r`. `None` is `MPI_UNDEFINED`.
    pub(crate) fn f90_real(p: Option<i64>, r: Option<i64>) -> Result<Datatype> {
        Datatype::new(Combiner::F90Real { p, r })
    }

    /// Returns the datatype of `MPI_Type_create_f90_complex`, with the arguments of
    /// [`Datatype::f90_real`].
    pub(crate) fn f90_complex(p: Option<i64>, r: Option<i64>) -> Result<Datatype> {
        Datatype::new(Combiner::F90Complex { p, r })
    }

    /// Returns the datatype of `MPI_Type_create_f90_integer` for a decimal exponent range `r`.
    pub(crate) fn f90_integer(r: i64) -> Result<Datatype> {
        Datatype::new(Combiner::F90Integer { r })
    }

    /// Returns the datatype of `MPI_Type_get_value_index`: the named pair type if MPI has one, and
    /// otherwise an unnamed pair type with the layout of a C structure.
    pub(crate) fn value_index(value: &Datatype, index: &Datatype) -> Result<Datatype> {
        Datatype::new(Combiner::ValueIndex { value: value.clone(), index: index.clone() })
    }

    /// Returns the datatype with its node marked as built by a large-count (`_c`) constructor. The
    /// mark is not part of hash and equality, and children are unaffected. Nodes that have no
    /// large-count constructor (named, dup, f90, value_index, bounds) are returned as they are.
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
        // A node that has a single owner can be changed in place. A node that is shared is copied.
        if let Some(node) = Arc::get_mut(&mut self.0) {
            node.large = true;
            return self;
        }
        let node = &*self.0;
        let mut combiner = node.combiner.clone();
        if let C::Struct { types, .. } = &mut combiner {
            // The copy gets its own array of children, because `Drop` takes children only out of an
            // array that has a single owner.
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

    /// Returns true if a large-count constructor built the node, or if a count of the node does not
    /// fit in 32 bits, so that only such a constructor could have built it. Also returns true for a
    /// darray whose size, rank or grid does not fit in 32 bits. No constructor of MPI could have
    /// built such a darray, because these arguments are ints in both forms.
    pub(crate) fn is_large_count(&self) -> bool {
        self.0.large
    }

    /// Returns the constructor and its arguments.
    pub(crate) fn combiner(&self) -> &Combiner {
        &self.0.combiner
    }

    /// Returns an equivalent tree of simpler constructors for subarray, darray, the f90 types and
    /// value_index, and `None` for any other type. The tree has the same type map and bounds, and
    /// consists of constructors of the dup, contiguous, vector, indexed, struct and resized kinds
    /// over named types and `oldtype`.
    pub(crate) fn expansion(&self) -> Option<&Datatype> {
        match self.0.extra.as_deref() {
            Some(Extra::Expansion(tree)) => Some(tree),
            _ => None,
        }
    }

    /// Returns the sums over the members of a long struct before every
    /// [`prefix::MEMBERS_PER_TOTALS`]th member except the first. For other types there are none.
    fn member_totals(&self) -> &[prefix::Totals] {
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

    /// Returns the number of bytes from the first byte of data to the end of the last one.
    pub(crate) fn true_extent(&self) -> i64 {
        self.true_ub() - self.true_lb()
    }

    /// Returns the strictest alignment in bytes of the basic types in the type map, or 1 if there
    /// are none.
    pub(crate) fn alignment(&self) -> i64 {
        i64::from(self.0.layout.alignment)
    }

    /// Returns the type signature, which is the sequence of basic types, represented by a length
    /// and a hash.
    pub(crate) fn signature(&self) -> Signature {
        self.0.signature
    }

    /// Returns a 128-bit hash of the combiner tree. It is equal for equal types, and the same in
    /// every process and on every machine.
    pub(crate) fn structural_hash(&self) -> u128 {
        self.0.hash.to_u128()
    }

    /// Returns the address of the shared node, which can serve as a key as long as this `Datatype`
    /// lives.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Returns the number of constructor arguments in the DAG, in which each node counts once. This
    /// number measures how large the description of a type is. The first call traverses the DAG.
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

    /// Returns the number of constructors on the longest path down from the node. A named type has
    /// depth 0.
    pub(crate) fn depth(&self) -> u32 {
        self.0.depth
    }

    /// Returns an iterator over the nodes of the DAG in depth-first order. Each node appears once,
    /// after the parent from which it is first reached. Only children of structs that share one
    /// array of children can appear again ([`Datatype::reference_count`]).
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
                // A node with a single reference is reached only once, so there is no need to
                // remember it. (If several structs share the array of children that holds the
                // reference, the node is reached once for each of these structs.)
                if let Some(t) = next.filter(|t| t.reference_count() == 1 || seen.insert(t.id())) {
                    open.push(t.combiner().children());
                    return next;
                }
            }
        }))
    }

    /// Returns the number of references to the node. If it is 1, the node is reached only through
    /// the node that holds the reference. The exception is a child of a struct whose combiner was
    /// cloned: the structs that are built from the clones share one array with the references.
    fn reference_count(&self) -> usize {
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

/// Writes the text notation, like `Display`.
impl fmt::Debug for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the nodes of the DAG of `root`, each once. Children are before their parents.
pub(crate) fn postorder(root: &Datatype) -> Vec<&Datatype> {
    let (mut order, mut seen, mut open) = (Vec::new(), HashSet::new(), vec![(root, false)]);
    while let Some((t, children_done)) = open.pop() {
        if children_done {
            order.push(t);
        } else if seen.insert(t.id()) {
            open.push((t, true));
            open.extend(t.combiner().children().map(|c| (c, false)));
        }
    }
    order
}

/// Moves the children of a node that is being dropped to `into`, so that they are not dropped
/// recursively.
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
                // The table of named types holds a reference to every named type, so a reference to
                // such a type can be dropped in place without going deeper.
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
        // Dropping the children in place would recurse once per level of the tree, so they are
        // collected and dropped one after another.
        let mut dying = Vec::new();
        unlink(self, &mut dying);
        while let Some(datatype) = dying.pop() {
            if let Some(mut node) = Arc::into_inner(datatype.0) {
                unlink(&mut node, &mut dying);
            }
        }
    }
}
