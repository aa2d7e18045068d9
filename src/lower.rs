//! Lowering: turns the constructor tree of a datatype into loops and tables over copies.
//!
//! Every datatype node is lowered once, to a body that describes one instance at origin zero. All
//! datatypes that use a shared child, or equal children, share the body of that child, so the nest
//! is at most as large as the DAG of the datatype. Lowering makes only a few simplifications. An
//! indexed type becomes a single node, whose columns list all blocks, if its blocks have one length
//! or its child is known to be a gapless run. A separate node for each of 10^6 blocks would cost
//! more than all later stages together. In other indexed types, the empty blocks are removed. A
//! datatype without bytes gets an empty root.
//!
//! Source: the definitions of the constructors, MPI 5.0, section 5.1.2.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::column::{Column, try_reserve, try_with_capacity};
use crate::datatype::{Combiner, Datatype, Named};
use crate::error::{Error, ErrorClass, Result};
use crate::kind::{Op, Operation};
use crate::nest::keys::BuildKeyHasher;
use crate::nest::{Body, Byte, Leaf, LoopNest, Lowered, Node, Offsets, Quantity, Value, reserve_nodes};

/// Mapping from basic types to the leaves of a nest, for one leaf operation.
pub trait Leaves: Copy {
    /// Type of the leaves: [`Byte`], or [`Value`] for operations on values.
    type Leaf: Leaf;

    /// Upper bound, for all basic types, of the number of packed bytes divided by the number of
    /// bytes in memory.
    const GROWTH: i64 = 1;

    /// Returns the leaves of a basic type, at most two. Each leaf is described by the byte offsets
    /// of its first unit in user memory and in the packed stream, by its number of units, and by
    /// the unit.
    fn basic_leaves(self, named: Named) -> BasicLeaves<Self::Leaf>;

    /// Returns the leaf for an unnamed pair type (a value and an index, for MINLOC and MAXLOC), or
    /// `None` if the operation treats the pair as two leaves. The arguments are the type of the
    /// value, the type of the index, and the byte offset of the index from the start of the value.
    fn pair(self, _value: Named, _index: (Named, i64)) -> Option<Self::Leaf> {
        None
    }

    /// Checks that the operation is defined for every element of `t`.
    ///
    /// # Errors
    /// Fails with the error for the first element for which the operation is not defined.
    fn check(self, _t: &Datatype) -> Result<()> {
        Ok(())
    }
}

/// Leaves of one basic type, at most two. [`Leaves::basic_leaves`] returns them.
pub type BasicLeaves<L> = SmallVec<[(Offsets, u64, L); 2]>;

/// Lowering to bytes, which are moved unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Bytes;

/// Lowering to values in the representation of this machine, for operations that combine them.
#[derive(Clone, Copy, Debug)]
pub struct Native;

/// Lowering to values that are in external32 representation on the packed side (MPI 5.0, 14.5.2).
#[derive(Clone, Copy, Debug)]
pub struct External32;

/// Lowering to the values that the given operation works on.
#[derive(Clone, Copy, Debug)]
pub struct Values(pub Operation);

impl Leaves for Values {
    type Leaf = Value;
    const GROWTH: i64 = External32::GROWTH;

    fn basic_leaves(self, named: Named) -> BasicLeaves<Value> {
        match self.0 {
            Operation::Bytes => Native.basic_leaves(named),
            Operation::External32 => External32.basic_leaves(named),
            Operation::Reduce(op) => Reduced(op).basic_leaves(named),
        }
    }

    fn pair(self, value: Named, index: (Named, i64)) -> Option<Value> {
        match self.0 {
            Operation::Reduce(op) => Reduced(op).pair(value, index),
            _ => None,
        }
    }

    fn check(self, t: &Datatype) -> Result<()> {
        match self.0 {
            Operation::Reduce(op) => t.check_reduction(op),
            _ => Ok(()),
        }
    }
}

/// Lowering to values in memory that an operation combines (MPI 5.0, 6.9.2 to 6.9.4).
#[derive(Clone, Copy, Debug)]
pub struct Reduced(pub Op);

impl Leaves for Reduced {
    type Leaf = Value;

    fn basic_leaves(self, named: Named) -> BasicLeaves<Value> {
        if self.0.is_location() {
            return Native.basic_leaves(named);
        }
        let parts = named.parts().iter().scan(0, |packed, &(part, offset)| {
            let (value, n) = Value::reduced(self.0, part);
            let at = Offsets::new(offset, *packed);
            *packed += part.size();
            Some((at, n, value))
        });
        parts.collect()
    }

    fn pair(self, value: Named, (index, at): (Named, i64)) -> Option<Value> {
        self.0.is_location().then(|| Value::pair(value, index, at))
    }

    fn check(self, t: &Datatype) -> Result<()> {
        t.check_reduction(self.0)
    }
}

impl Leaves for Bytes {
    type Leaf = Byte;

    fn basic_leaves(self, named: Named) -> BasicLeaves<Byte> {
        let pieces = named.pieces().iter().scan(0, |packed, &(offset, size)| {
            let at = Offsets::new(offset, *packed);
            *packed += size;
            Some((at, size as u64, Byte))
        });
        pieces.collect()
    }
}

impl Leaves for Native {
    type Leaf = Value;

    fn basic_leaves(self, named: Named) -> BasicLeaves<Value> {
        let whole = (!named.is_marker()).then(|| (Offsets::ZERO, 1, Value::native(named)));
        whole.into_iter().collect()
    }
}

impl Leaves for External32 {
    type Leaf = Value;

    /// This is the growth of `long double`: 16 bytes in external32, and 8 bytes in C on some
    /// machines.
    const GROWTH: i64 = 2;

    fn basic_leaves(self, named: Named) -> BasicLeaves<Value> {
        let parts = named.parts().iter().scan(0, |packed, &(part, offset)| {
            let (value, n) = Value::external32(part);
            let at = Offsets::new(offset, *packed);
            *packed += value.packed() * n as i64;
            Some((at, n, value))
        });
        parts.collect()
    }
}

/// One lowered datatype. `body` moves one instance, and `size` is the number of packed bytes of one
/// instance. If one instance is known to be a gapless run from displacement 0, `run` is the unit of
/// that run and the number of units.
#[derive(Clone, Copy)]
struct LoweredType<L> {
    body: Body,
    size: i64,
    run: Option<(L, i64)>,
}

/// Lowers `t` to a nest. The number of instances is a parameter of the nest: it is known only when
/// the nest is used.
///
/// # Errors
/// Fails if [`Leaves::GROWTH`] times the size of `t` does not fit in 63 bits, if [`Leaves::check`]
/// fails, or if there is no memory. For [`Values`], `GROWTH` is that of external32 for every
/// operation, even if the packed form of the values is not larger than the type. Any other error is
/// a fault of ddtc, because every datatype that could be built has a nest.
pub fn lower<V: Leaves>(t: &Datatype, leaves: V) -> Result<LoopNest<Lowered, V::Leaf>> {
    if t.size() > i64::MAX / V::GROWTH {
        let rule = "the size in external32 must fit in 64 bits";
        return Err(Error::new(ErrorClass::ValueTooLarge, "lower", "size", t.size(), rule));
    }
    leaves.check(t)?;
    // Lower the children of a node before the node itself, on an explicit stack, so that the depth
    // of a datatype is limited by memory only. When a node is popped for the first time, it is
    // pushed again with `children_done` set, and its children are pushed on top of it. When it is
    // popped again, its children are done, and it is lowered.
    let mut l = Lowering { nodes: Vec::new(), done: HashMap::default(), by_hash: HashMap::default(), leaves };
    let mut stack = vec![(t, false)];
    while let Some((t, children_done)) = stack.pop() {
        if l.done.contains_key(&t.id()) {
            continue;
        }
        if !children_done {
            if let Some(done) = l.lowered_equal(t) {
                l.done.insert(t.id(), done);
                continue;
            }
            stack.push((t, true));
            match t.expansion() {
                Some(e) => stack.push((e, false)),
                None => {
                    let children = t.combiner().children();
                    try_reserve("lower", &mut stack, children.len())?;
                    stack.extend(children.map(|c| (c, false)));
                }
            }
            continue;
        }
        let done = l.lower_node(t)?;
        l.done.insert(t.id(), done);
        l.by_hash.insert(t.structural_hash(), t);
    }
    // The body of `t` describes one instance. The root loop repeats it for every instance of the
    // call; a datatype without bytes has an empty root.
    let inner = l.lowered(t)?;
    let step = Offsets::new(t.extent(), inner.size);
    let root = if inner.size == 0 {
        Body::default()
    } else {
        l.seal(vec![Node::Loop { at: Offsets::ZERO, trip: Quantity::counted(1), step, body: inner.body }])?
    };
    Ok(LoopNest::new(l.nodes, root, inner.size, t.extent()))
}

struct Lowering<'t, V: Leaves> {
    nodes: Vec<Node<V::Leaf>>,
    done: HashMap<usize, LoweredType<V::Leaf>, BuildKeyHasher>,
    /// Lowered datatypes by structural hash. MPI libraries return equal members of a struct as
    /// separate datatypes. This map finds a datatype that is equal to such a member and has been
    /// lowered already.
    by_hash: HashMap<u128, &'t Datatype, BuildKeyHasher>,
    leaves: V,
}

impl<V: Leaves> Lowering<'_, V> {
    /// Returns the lowered form of a datatype that is equal to `t`, if such a datatype has been
    /// lowered before.
    fn lowered_equal(&self, t: &Datatype) -> Option<LoweredType<V::Leaf>> {
        let known = self.by_hash.get(&t.structural_hash()).filter(|&&known| known == t)?;
        self.done.get(&known.id()).copied()
    }

    fn lowered(&self, t: &Datatype) -> Result<LoweredType<V::Leaf>> {
        self.done.get(&t.id()).copied().ok_or_else(|| Error::internal("lower", "child not lowered"))
    }

    fn seal(&mut self, list: Vec<Node<V::Leaf>>) -> Result<Body> {
        reserve_nodes("lower", &mut self.nodes, &list)?;
        let body = Body { start: self.nodes.len() as u32, len: list.len() as u32 };
        self.nodes.extend(list);
        Ok(body)
    }

    fn finish(
        &mut self,
        list: Vec<Node<V::Leaf>>,
        run: Option<(V::Leaf, i64)>,
    ) -> Result<LoweredType<V::Leaf>> {
        let size = list.iter().map(|node| node.packed_bytes(1)).fold(0, i64::wrapping_add);
        Ok(LoweredType { body: self.seal(list)?, size, run })
    }

    fn lower_node(&mut self, t: &Datatype) -> Result<LoweredType<V::Leaf>> {
        // A pair that the operation treats as one value becomes one leaf. Any other type with an
        // expansion shares the body of its expansion: an equivalent tree of simpler constructors. A
        // subarray has one, for example.
        if let Some((value, index)) = t.value_index_parts()
            && let Some(unit) = self.leaves.pair(value, index)
        {
            return self.finish(vec![Node::units(Offsets::ZERO, 1, unit)], None);
        }
        if let Some(e) = t.expansion() {
            return self.lowered(e);
        }
        // For all other types, the body follows from the definition of the constructor. One
        // instance is known to be a gapless run in three cases only: for named types, for
        // contiguous copies of a type that is a gapless run, and for types that share the body of
        // such a type. A vector, indexed type or struct has `run` set to `None`, even if it has no
        // gap.
        match t.combiner() {
            Combiner::Dup { oldtype }
            | Combiner::Resized { oldtype, .. }
            | Combiner::Bounds { oldtype, .. } => self.lowered(oldtype),
            Combiner::Contiguous { count, oldtype } => {
                let run = self.run_of(oldtype)?;
                let run = run.and_then(|(unit, n)| Some((unit, n.checked_mul(*count)?)));
                let node = self.block(oldtype, Offsets::ZERO, *count)?;
                self.finish(vec![node], run)
            }
            Combiner::Vector { count, blocklength, stride, oldtype } => {
                self.vector(oldtype, *count, *blocklength, stride.wrapping_mul(oldtype.extent()))
            }
            Combiner::Hvector { count, blocklength, stride, oldtype, .. } => {
                self.vector(oldtype, *count, *blocklength, *stride)
            }
            Combiner::Indexed { blocklengths, displacements, oldtype } => {
                self.indexed(oldtype, blocklengths, displacements, oldtype.extent())
            }
            Combiner::Hindexed { blocklengths, displacements, oldtype, .. } => {
                self.indexed(oldtype, blocklengths, displacements, 1)
            }
            Combiner::IndexedBlock { blocklength, displacements, oldtype } => {
                self.table(oldtype, *blocklength, displacements, oldtype.extent())
            }
            Combiner::HindexedBlock { blocklength, displacements, oldtype } => {
                self.table(oldtype, *blocklength, displacements, 1)
            }
            Combiner::Struct { blocklengths, displacements, types, .. } => {
                let mut list = try_with_capacity("lower", types.len())?;
                let mut packed = 0_i64;
                for ((t, &n), &d) in types.iter().zip(blocklengths.iter()).zip(displacements.iter()) {
                    list.push(self.block(t, Offsets::new(d, packed), n)?);
                    packed = packed.wrapping_add(self.lowered(t)?.size.wrapping_mul(n));
                }
                self.finish(list, None)
            }
            Combiner::Named(named) => {
                let leaves = self.leaves.basic_leaves(*named);
                let run = match leaves[..] {
                    [(_, n, unit)] if unit.user() * n as i64 == t.extent() => Some((unit, n as i64)),
                    _ => None,
                };
                self.finish(leaves.into_iter().map(|(at, n, unit)| Node::units(at, n, unit)).collect(), run)
            }
            Combiner::Subarray { .. }
            | Combiner::Darray { .. }
            | Combiner::F90Real { .. }
            | Combiner::F90Complex { .. }
            | Combiner::F90Integer { .. }
            | Combiner::ValueIndex { .. } => Err(Error::internal("lower", "constructor without expansion")),
        }
    }

    /// If several instances of `t` in a row are known to form one gapless run, returns the unit of
    /// that run and the number of units in one instance.
    fn run_of(&self, t: &Datatype) -> Result<Option<(V::Leaf, i64)>> {
        Ok(self.lowered(t)?.run.filter(|&(unit, n)| unit.user().checked_mul(n) == Some(t.extent())))
    }

    /// Returns the node for `n` instances of `t` in a row, the first of them at offset `at`.
    fn block(&self, t: &Datatype, at: Offsets, n: i64) -> Result<Node<V::Leaf>> {
        let LoweredType { body, size, .. } = self.lowered(t)?;
        Ok(Node::Loop { at, trip: Quantity::fixed(n as u64), step: Offsets::new(t.extent(), size), body })
    }

    fn vector(
        &mut self,
        t: &Datatype,
        count: i64,
        blocklength: i64,
        stride: i64,
    ) -> Result<LoweredType<V::Leaf>> {
        let block = self.block(t, Offsets::ZERO, blocklength)?;
        let body = self.seal(vec![block])?;
        let step = Offsets::new(stride, blocklength.wrapping_mul(self.lowered(t)?.size));
        let outer = Node::Loop { at: Offsets::ZERO, trip: Quantity::fixed(count as u64), step, body };
        self.finish(vec![outer], None)
    }

    /// Lowers blocks of `blocklength` instances of `t` each. Block `i` is at
    /// `displacements[i] * scale` bytes.
    fn table(
        &mut self,
        t: &Datatype,
        blocklength: i64,
        displacements: &[i64],
        scale: i64,
    ) -> Result<LoweredType<V::Leaf>> {
        let block = self.block(t, Offsets::ZERO, blocklength)?;
        let body = self.seal(vec![block])?;
        let packed = blocklength.wrapping_mul(self.lowered(t)?.size);
        // With SIMD, shifting 64-bit words takes one instruction, but multiplying them takes about
        // ten.
        let displacements = if (scale as u64).is_power_of_two() {
            Column::build(displacements.iter().map(|d| d << scale.trailing_zeros()))
        } else {
            Column::build(displacements.iter().map(|d| d.wrapping_mul(scale)))
        }?;
        let table = Node::Table { at: Offsets::ZERO, displacements, packed, body };
        self.finish(vec![table], None)
    }

    /// Lowers blocks of different lengths: block `i` has `lengths[i]` instances of `t`, and is at
    /// `displacements[i] * scale` bytes.
    fn indexed(
        &mut self,
        t: &Datatype,
        lengths: &[i64],
        displacements: &[i64],
        scale: i64,
    ) -> Result<LoweredType<V::Leaf>> {
        // Blocks of one length become a table, which needs one column instead of three.
        if let [first, rest @ ..] = lengths
            && rest.iter().all(|n| n == first)
        {
            return self.table(t, *first, displacements, scale);
        }
        // Empty blocks are rare. Remove them first, so that the columns below are built from
        // slices.
        let (mut kept_lengths, mut kept_displacements);
        let (lengths, displacements) = if lengths.contains(&0) {
            let kept = || lengths.iter().zip(displacements).filter(|&(&n, _)| n > 0);
            let n = kept().count();
            (kept_lengths, kept_displacements) =
                (try_with_capacity("lower", n)?, try_with_capacity("lower", n)?);
            kept_lengths.extend(kept().map(|(&n, _)| n));
            kept_displacements.extend(kept().map(|(_, &d)| d));
            (&kept_lengths[..], &kept_displacements[..])
        } else {
            (lengths, displacements)
        };
        let size = self.lowered(t)?.size;
        let list = if let Some((unit, run)) = self.run_of(t)? {
            // `starts` yields the prefix sums of the lengths, and `Column::build` computes them
            // while it writes the column. Storing the sums first would cost more, because most of
            // the time goes into touching memory for the first time.
            let mut next = 0_i64;
            let starts = lengths.iter().map(move |n| {
                let start = next;
                next = next.wrapping_add(n.wrapping_mul(run).wrapping_mul(unit.packed()));
                start
            });
            if lengths.is_empty() || run == 0 {
                Vec::new()
            } else {
                let user = Column::build(displacements.iter().map(|d| d.wrapping_mul(scale)))?;
                let len = Column::build(lengths.iter().map(|n| n.wrapping_mul(run)))?;
                vec![Node::Blocks { at: Offsets::ZERO, user, packed: Column::build(starts)?, len, unit }]
            }
        } else {
            // The child is not known to be a gapless run, so every block is a loop over its
            // instances, at the block's displacement.
            let mut list = try_with_capacity("lower", lengths.len())?;
            let mut packed = 0_i64;
            for (&n, &d) in lengths.iter().zip(displacements) {
                list.push(self.block(t, Offsets::new(d.wrapping_mul(scale), packed), n)?);
                packed = packed.wrapping_add(n.wrapping_mul(size));
            }
            list
        };
        self.finish(list, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal members are lowered once, even if they are separate objects, as MPI libraries return
    /// them.
    #[test]
    fn equal_members_are_lowered_once() {
        let member = || {
            let inner = Datatype::vector(2, 1, 3, &Datatype::named(Named::Int)).unwrap();
            Datatype::hvector(3, 1, 100, &inner).unwrap()
        };
        let lowered = |members: &[Datatype]| {
            let places: Vec<i64> = (0..members.len() as i64).map(|i| 1000 * i * i).collect();
            let t = Datatype::structure(&vec![1; members.len()], &places, members).unwrap();
            lower(&t, Bytes).unwrap()
        };
        let apart = [member(), member(), member(), member()];
        assert!(apart[0] == apart[1] && apart[0].id() != apart[1].id());
        let one = vec![member(); 4];
        assert_eq!(lowered(&apart), lowered(&one));
    }
}
