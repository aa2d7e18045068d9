//! Refinement: joins two nests over the same packed stream into one nest that moves data from
//! memory to memory.
//!
//! The stream is cut at every place where one of the two nests cuts it, and structure that both
//! nests have in common is kept. If the iterations of a loop in each nest are equally long pieces
//! of the stream, or become equally long when several are taken together, the loops remain a loop.
//! Rows of a table remain rows in the same way. Parts without a common structure are unfolded row
//! by row. One instance of the new nest is the **joint period**: the least common multiple of the
//! numbers of bytes that one iteration of each root moves. The number of joint periods, and so the
//! instance count, is known only at run time, as for any nest.
//!
//! Every copy that is made and every node that is unfolded uses up a part of a budget. If the
//! budget does not suffice, the fused nest would be too large: it is refused, and the bytes go
//! through a buffer.
//!
//! Source: docs/IR.md, "Other kinds"; common refinement of two partitions of an interval.

mod item;

use std::collections::HashMap;

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use crate::column::{Column, try_reserve};
use crate::error::{Error, Result};
use crate::interval::gcd;
use crate::nest::{
    Body, Leaf, LoopNest, Lowered, MemorySide, Node, Normal, Offsets, Quantity, reserve_nodes,
};
use item::{Item, Key};

/// Maximum depth of nested loops that are joined. The scheduler allows a smaller depth in a kernel.
const MAX_DEPTH: usize = 64;

/// Number of steps that are allowed for joining any two nests. A step joins the next pieces of both
/// sides, or makes a row of the result. For each row and node of the two nests, [`STEPS_PER_ROW`]
/// further steps are allowed.
const BASE_STEPS: u64 = 1 << 14;

/// Number of further steps that are allowed for each row and each node of the two nests. Cutting
/// both sides makes as many rows as both sides have together, and each node that is unfolded takes
/// one more step.
const STEPS_PER_ROW: u64 = 4;

/// Two nests that have been joined into one.
#[derive(Clone, Debug)]
pub struct Refined<L> {
    /// The nest that moves data between the memories of the two nests. Its user side is the memory
    /// of the first nest, and its packed side is the memory of the second. One instance moves one
    /// joint period.
    pub nest: LoopNest<Lowered, L, MemorySide>,
    /// Number of packed bytes in a joint period; 0 if nothing is moved.
    pub period: u64,
    /// Whether every period moves the same bytes between the same places. If so, it suffices to
    /// execute one period, unless values are combined.
    pub still: bool,
}

/// Reason why two nests are not joined. This is not a failure: the bytes go through a buffer by
/// design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Reason, for reports.
    pub reason: &'static str,
}

/// Joins two nests: the memory of `user` becomes the user side, and that of `packed` the packed
/// side. `Ok(Err(_))` is a refusal by design.
///
/// # Errors
/// Class `NoMem` if there is no memory for rows. Any other error is a fault of ddtc.
pub fn refine<L: Leaf>(
    user: &LoopNest<Normal, L>,
    packed: &LoopNest<Normal, L>,
) -> Result<std::result::Result<Refined<L>, Refusal>> {
    let entries = |nest: &LoopNest<Normal, L>| nest.nodes().iter().map(|n| 1 + n.rows() as u64).sum::<u64>();
    let steps_left = BASE_STEPS + STEPS_PER_ROW * (entries(user) + entries(packed));
    let mut join = Join { nests: [user, packed], nodes: Vec::new(), known: HashMap::default(), steps_left };
    match join.roots() {
        Ok(refined) => Ok(Ok(refined)),
        Err(Stop::Refused(reason)) => Ok(Err(Refusal { reason })),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Reason why joining ends early.
enum Stop {
    Refused(&'static str),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

/// State of a join: the nest under construction, and the bodies made so far. A body is made for a
/// pair of chunks, which are equally long pieces of the two sides.
struct Join<'n, L> {
    nests: [&'n LoopNest<Normal, L>; 2],
    nodes: Vec<Node<L>>,
    known: HashMap<[Key<L>; 2], Body, Xxh3DefaultBuilder>,
    steps_left: u64,
}

/// The rest of one side that has not been joined yet, as a stack of items with the next item on
/// top.
type Stack<'n, L> = Vec<Item<'n, L>>;

impl<'n, L: Leaf> Join<'n, L> {
    fn roots(&mut self) -> std::result::Result<Refined<L>, Stop> {
        let [Some(user), Some(packed)] = self.nests.map(root) else {
            return Ok(Refined {
                nest: LoopNest::new(Vec::new(), Body::default(), 0, 0),
                period: 0,
                still: true,
            });
        };
        let common = self.common(&user, &packed)?;
        let roots = [user, packed];
        let steps = roots.each_ref().map(|root| stride(root, common));
        let [Some(user_step), Some(packed_step)] = steps else {
            return Err(Error::internal("refine", "a root of rows").into());
        };
        let node = if let [Item::Run { unit, .. }, Item::Run { unit: other, .. }] = &roots {
            require_same_class(*unit, *other)?;
            Node::Copy { at: Offsets::ZERO, n: Quantity::counted(1), unit: unit.in_memory() }
        } else {
            let body = self.chunk(&roots, common, 0)?;
            let still = (user_step, packed_step) == (0, 0);
            // A loop must have a step other than 0 on at least one side. If both steps of this loop
            // would be 0, it gets a packed step. That step has no effect, because only a single
            // iteration is ever executed.
            let step = Offsets::new(user_step, if still { common as i64 } else { packed_step });
            Node::Loop { at: Offsets::ZERO, trip: Quantity::counted(1), step, body }
        };
        let root = self.seal(vec![node])?;
        let size = self.moved(root);
        let nest = LoopNest::new(std::mem::take(&mut self.nodes), root, size, user_step);
        Ok(Refined { nest, period: common, still: (user_step, packed_step) == (0, 0) })
    }

    /// Returns the number of bytes that one instance of the root moves.
    fn moved(&self, root: Body) -> i64 {
        let mut sizes: Vec<i64> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let inside =
                |body: Body| sizes[body.range()].iter().fold(0, |sum: i64, size| sum.wrapping_add(*size));
            sizes.push(match node {
                Node::Loop { trip, body, .. } => inside(*body).wrapping_mul(trip.k as i64),
                Node::Table { displacements, body, .. } => {
                    inside(*body).wrapping_mul(displacements.len() as i64)
                }
                Node::Blocks { len, unit, .. } => len.iter().sum::<i64>().wrapping_mul(unit.packed()),
                Node::Copy { n, unit, .. } => unit.packed().wrapping_mul(n.k as i64),
            });
        }
        sizes[root.range()].iter().sum()
    }

    /// Returns the least common multiple of the granules of both items. The granule of an item is a
    /// number of bytes; the item can be cut after every multiple of it.
    fn common(&self, user: &Item<'n, L>, packed: &Item<'n, L>) -> std::result::Result<u64, Stop> {
        let (a, b) = (user.granule(), packed.granule());
        (a / gcd(a, b))
            .checked_mul(b)
            .filter(|&c| c <= i64::MAX as u64)
            .ok_or(Stop::Refused("the joint period of both layouts is longer than any message"))
    }

    fn spend(&mut self, steps: u64) -> std::result::Result<(), Stop> {
        self.steps_left =
            self.steps_left.checked_sub(steps).ok_or(Stop::Refused("the joint nest has too many rows"))?;
        Ok(())
    }

    fn seal(&mut self, list: Vec<Node<L>>) -> Result<Body> {
        reserve_nodes("refine", &mut self.nodes, &list)?;
        let body = Body { start: self.nodes.len() as u32, len: list.len() as u32 };
        self.nodes.extend(list);
        Ok(body)
    }

    /// Joins the first `common` bytes of both items in `heads` as a body that begins at offset 0 on
    /// both sides. If an equal pair has been joined before, its body is returned.
    fn chunk(
        &mut self,
        heads: &[Item<'n, L>; 2],
        common: u64,
        depth: usize,
    ) -> std::result::Result<Body, Stop> {
        let chunk = |side: usize| match &heads[side] {
            Item::Loop { body, .. } | Item::Table { body, .. } if heads[side].granule() == common => {
                (Item::body(self.nests[side], *body, 0), Some(Key::Body(*body)))
            }
            head => {
                let (item, key) = head.clone().cut(common / head.granule()).0.moved_to_zero();
                (vec![item], key)
            }
        };
        let ((user, user_key), (packed, packed_key)) = (chunk(0), chunk(1));
        let key = user_key.zip(packed_key).map(|(user, packed)| [user, packed]);
        if let Some(body) = key.and_then(|key| self.known.get(&key)) {
            return Ok(*body);
        }
        let mut out = List::new();
        self.stacks([user, packed], depth + 1, &mut out)?;
        let list = out.finish()?;
        let body = self.seal(list)?;
        if let Some(key) = key {
            self.known.insert(key, body);
        }
        Ok(body)
    }

    /// Joins two streams of equal length and appends the result to `out`.
    fn stacks(
        &mut self,
        [mut user, mut packed]: [Stack<'n, L>; 2],
        depth: usize,
        out: &mut List<L>,
    ) -> std::result::Result<(), Stop> {
        if depth > MAX_DEPTH {
            return Err(Stop::Refused("loops nested deeper than are joined"));
        }
        loop {
            let (x, y) = match (user.pop(), packed.pop()) {
                (Some(x), Some(y)) => (x, y),
                (None, None) => return Ok(()),
                _ => return Err(Error::internal("refine", "streams of different length").into()),
            };
            self.spend(1)?;
            // Two runs become a copy that is as long as the shorter run. Blocks have no regular
            // structure, so only the first row of a list of blocks is processed now. All other
            // pairs are cut into common periods.
            match (x, y) {
                (Item::Run { at, n, unit }, Item::Run { at: to, n: m, unit: other }) => {
                    require_same_class(unit, other)?;
                    let both = n.min(m);
                    out.run(Offsets::new(at, to), both, unit.in_memory())?;
                    let rest = |at: i64, n: u64| {
                        let at = at.wrapping_add((both as i64).wrapping_mul(unit.user()));
                        (n > both).then_some(Item::Run { at, n: n - both, unit })
                    };
                    user.extend(rest(at, n));
                    packed.extend(rest(to, m));
                }
                (x @ Item::Blocks { .. }, y) => {
                    x.unfold_first(self.nests[0], &mut user);
                    packed.push(y);
                }
                (x, y @ Item::Blocks { .. }) => {
                    user.push(x);
                    y.unfold_first(self.nests[1], &mut packed);
                }
                (x, y) => {
                    let common = self.common(&x, &y)?;
                    let k = x.bytes().min(y.bytes()) / common;
                    if k == 0 {
                        // Not even one common period fits, so unfold the item with the longer
                        // pieces.
                        self.unfold_longer([x, y], [&mut user, &mut packed]);
                        continue;
                    }
                    // Take `k` whole periods off both sides. The rest of an item stays on the stack
                    // of its side.
                    let cut = |item: Item<'n, L>, stack: &mut Stack<'n, L>| {
                        let (head, rest) = item.clone().cut(k * (common / item.granule()));
                        stack.extend((rest.bytes() > 0).then_some(rest));
                        head
                    };
                    let heads = [cut(x, &mut user), cut(y, &mut packed)];
                    if k == 1 && !heads.iter().any(|head| head.granule() == common && !is_run(head)) {
                        // This is one period that has several iterations on both sides. The
                        // iterations have no smaller common period, so unfold the item with the
                        // longer pieces.
                        self.unfold_longer(heads, [&mut user, &mut packed]);
                    } else if k == 1 {
                        let [x, y] = heads;
                        unfold_single(x, self.nests[0], common, &mut user);
                        unfold_single(y, self.nests[1], common, &mut packed);
                    } else {
                        self.periods(heads, (k, common), depth, out)?;
                    }
                }
            }
        }
    }

    /// Puts each item on the stack of its side. The first iteration or row of the item with the
    /// longer pieces is unfolded.
    fn unfold_longer(&self, [x, y]: [Item<'n, L>; 2], [user, packed]: [&mut Stack<'n, L>; 2]) {
        if x.granule() >= y.granule() {
            x.unfold_first(self.nests[0], user);
            packed.push(y);
        } else {
            user.push(x);
            y.unfold_first(self.nests[1], packed);
        }
    }

    /// Joins the two items in `heads`, one from each side. Both items consist of `k` periods of
    /// `common` bytes of the stream.
    fn periods(
        &mut self,
        heads: [Item<'n, L>; 2],
        (k, common): (u64, u64),
        depth: usize,
        out: &mut List<L>,
    ) -> std::result::Result<(), Stop> {
        // If a period consists of several rows of a table, the periods of that table differ from
        // each other. So join each period of one side separately with the corresponding period of
        // the other side.
        if heads.iter().any(|head| head.step().is_none() && head.granule() != common) {
            let [mut user, mut packed] = heads;
            for _ in 0..k {
                let (x, rest) = user.clone().cut(common / user.granule());
                let (y, other) = packed.clone().cut(common / packed.granule());
                let (mut xs, mut ys) = (Vec::new(), Vec::new());
                unfold_single(x, self.nests[0], common, &mut xs);
                unfold_single(y, self.nests[1], common, &mut ys);
                self.stacks([xs, ys], depth + 1, out)?;
                (user, packed) = (rest, other);
            }
            return Ok(());
        }
        // The periods of an item in `heads` are equal except for their offsets. Join the first
        // period of one side with the first period of the other side, and repeat the result as a
        // loop or a table.
        let body = self.chunk(&heads, common, depth)?;
        let steps = heads.each_ref().map(|head| stride(head, common));
        let at = Offsets::new(heads[0].offset(), heads[1].offset());
        match (&heads, steps) {
            // All periods move the same bytes between the same places. One iteration is enough,
            // unless values are combined.
            (_, [Some(0), Some(0)]) => {
                let trip = if L::IDEMPOTENT { 1 } else { k };
                out.node(Node::Loop { at, trip: Quantity::fixed(trip), step: Offsets::ZERO, body })
            }
            (_, [Some(user), Some(packed)]) => {
                let step = Offsets::new(user, packed);
                out.node(Node::Loop { at, trip: Quantity::fixed(k), step, body })
            }
            ([Item::Table { displacements, rows, .. }, _], [None, Some(packed)]) => {
                self.spend(rows.len() as u64)?;
                let displacements = column_part(displacements, rows.clone())?;
                out.node(Node::Table { at, displacements, packed, body })
            }
            _ => self.scattered(&heads, steps, body, out),
        }
    }

    /// Appends the periods one by one, each at the offsets of its own row. This is needed if there
    /// is a table on the packed side, because a table of a nest has displacements only on the user
    /// side.
    fn scattered(
        &mut self,
        heads: &[Item<'n, L>; 2],
        steps: [Option<i64>; 2],
        body: Body,
        out: &mut List<L>,
    ) -> std::result::Result<(), Stop> {
        let place = |side: usize, i: usize| match (&heads[side], steps[side]) {
            (Item::Table { at, displacements, rows, .. }, _) => {
                at.wrapping_add(displacements.get(rows.start + i))
            }
            (item, step) => item.offset().wrapping_add(step.unwrap_or(0).wrapping_mul(i as i64)),
        };
        let rows = heads.iter().find_map(|head| match head {
            Item::Table { rows, .. } => Some(rows.len()),
            _ => None,
        });
        for i in 0..rows.unwrap_or(0) {
            self.spend(1)?;
            let at = Offsets::new(place(0, i), place(1, i));
            match &self.nodes[body.range()] {
                [Node::Copy { at: inner, n, unit }] => out.run(at + *inner, n.k, *unit)?,
                _ => out.node(Node::Loop { at, trip: Quantity::fixed(1), step: Offsets::ZERO, body })?,
            }
        }
        Ok(())
    }
}

/// Puts one period of `head` on `stack`. If the period is a single iteration, puts the items inside
/// the iteration on `stack` instead.
fn unfold_single<'n, L: Leaf>(
    head: Item<'n, L>,
    nest: &'n LoopNest<Normal, L>,
    common: u64,
    stack: &mut Stack<'n, L>,
) {
    if head.granule() == common { head.unfold_first(nest, stack) } else { stack.push(head) }
}

fn is_run<L>(item: &Item<'_, L>) -> bool {
    matches!(item, Item::Run { .. })
}

/// Returns the root of `nest` as an item with a practically unlimited number of iterations or
/// units, because the instance count is not known. The result is `None` if the nest moves nothing.
fn root<L: Leaf>(nest: &LoopNest<Normal, L>) -> Option<Item<'_, L>> {
    nest.body(nest.root())
        .first()
        .map(|node| Item::from_node(node, 0, u64::MAX / 2))
        .filter(|item| item.granule() > 0)
}

/// Checks that two values have the same class. Even one mismatch makes the whole fused nest
/// impossible, although the values before it match.
fn require_same_class<L: Leaf>(unit: L, other: L) -> std::result::Result<(), Stop> {
    if unit == other { Ok(()) } else { Err(Stop::Refused("values of different classes")) }
}

/// Returns the distance in memory from one period of `common` bytes to the next, or `None` if
/// `head` consists of rows, which have no constant distance.
fn stride<L: Leaf>(head: &Item<'_, L>, common: u64) -> Option<i64> {
    let granules = (common / head.granule()) as i64;
    head.step().map(|step| step.wrapping_mul(granules))
}

/// Returns the rows of a column with the indices `rows`.
fn column_part(column: &Column, rows: std::ops::Range<usize>) -> Result<Column> {
    if rows == (0..column.len()) {
        return Ok(column.clone());
    }
    Column::build(rows.map(|i| column.get(i)))
}

/// A body under construction. Consecutive runs are collected and become the columns of one node.
struct List<L> {
    nodes: Vec<Node<L>>,
    /// Runs of `unit` that are not yet part of a node. Each has a user offset, a packed offset, and
    /// a number of units.
    runs: Vec<[i64; 3]>,
    unit: Option<L>,
}

impl<L: Leaf> List<L> {
    fn new() -> List<L> {
        List { nodes: Vec::new(), runs: Vec::new(), unit: None }
    }

    fn run(&mut self, at: Offsets, n: u64, unit: L) -> std::result::Result<(), Stop> {
        if self.unit != Some(unit) {
            self.flush()?;
            self.unit = Some(unit);
        }
        if let Some([user, packed, len]) = self.runs.last_mut() {
            let end = Offsets::new(*user, *packed) + unit.span(*len);
            if end == at {
                *len += n as i64;
                return Ok(());
            }
        }
        try_reserve("refine", &mut self.runs, 1)?;
        self.runs.push([at.user, at.packed, n as i64]);
        Ok(())
    }

    fn node(&mut self, node: Node<L>) -> std::result::Result<(), Stop> {
        self.flush()?;
        try_reserve("refine", &mut self.nodes, 1)?;
        self.nodes.push(node);
        Ok(())
    }

    /// Makes a node of the runs collected so far.
    fn flush(&mut self) -> Result<()> {
        let (Some(unit), Some(first)) = (self.unit.take(), self.runs.first()) else { return Ok(()) };
        let node = if self.runs.len() == 1 {
            Node::units(Offsets::new(first[0], first[1]), first[2] as u64, unit)
        } else {
            let column = |i: usize| Column::build(self.runs.iter().map(|run| run[i]));
            Node::Blocks { at: Offsets::ZERO, user: column(0)?, packed: column(1)?, len: column(2)?, unit }
        };
        self.runs.clear();
        try_reserve("refine", &mut self.nodes, 1)?;
        self.nodes.push(node);
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Node<L>>> {
        self.flush()?;
        Ok(self.nodes)
    }
}

#[cfg(test)]
mod tests;
