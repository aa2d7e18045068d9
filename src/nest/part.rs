//! Parts of a nest: what some iterations of a loop do, as a nest of its own.

use super::{Body, LoopNest, Lowered, Node, Normal, Offsets, Quantity};
use crate::column::{Column, try_reserve, try_with_capacity};
use crate::error::Result;

/// Rows of blocks, one behind the other on the packed side, as equal pieces.
#[derive(Clone, Debug)]
pub struct EqualPieces {
    /// Offset that their displacements are relative to, and packed offset of the first one.
    pub at: Offsets,
    /// Their displacements in bytes.
    pub user: Column,
    /// Bytes of each.
    pub len: u64,
}

impl EqualPieces {
    /// Returns the packed offset in bytes behind the last one.
    pub fn end(&self) -> i64 {
        self.at.packed + self.user.len() as i64 * self.len as i64
    }
}

impl LoopNest<Normal> {
    /// `loop count step s {B}` for a loop `i` with stride `s` and body `B`: of `count` of its iterations. For a table it is one row at
    /// a time, at offset 0; for a leaf, the leaf, its instances apart from each other.
    ///
    /// # Errors
    /// Class `NoMem`.
    pub fn part(&self, i: usize) -> Result<LoopNest<Lowered>> {
        let nodes = self.nodes();
        // What the node reaches, from it downwards: bodies lie before their users.
        let mut reached: Vec<bool> = try_with_capacity("part", i)?;
        reached.resize(i, false);
        for j in (0..=i).rev() {
            if let Some(body) = nodes[j].body().filter(|_| j == i || reached[j]) {
                reached[body.range()].fill(true);
            }
        }
        let mut kept: Vec<Node> = Vec::new();
        // Where each node went. Bodies are kept whole, so they stay runs.
        let mut new_index: Vec<u32> = try_with_capacity("part", i)?;
        for (node, reached) in nodes.iter().zip(reached) {
            new_index.push(kept.len() as u32);
            if reached {
                let mut node = node.clone();
                if let Node::Loop { body, .. } | Node::Table { body, .. } = &mut node {
                    body.start = new_index[body.start as usize];
                }
                try_reserve("part", &mut kept, 1)?;
                kept.push(node);
            }
        }
        let (step, body) = match &nodes[i] {
            Node::Loop { step, body, .. } => (*step, *body),
            Node::Table { packed, body, .. } => (Offsets::new(0, *packed), *body),
            leaf => {
                kept.push(leaf.placed(Offsets::ZERO));
                let size = leaf.packed_bytes(1);
                return Ok(loop_over_instances(kept, Offsets::new(span(leaf), size), None));
            }
        };
        let body = Body { start: new_index[body.start as usize], ..body };
        Ok(loop_over_instances(kept, step, Some(body)))
    }
}

/// User bytes from the lowest to the end of the highest entry of a leaf: instances that far apart share no byte.
fn span(leaf: &Node) -> i64 {
    let Node::Blocks { user, len, .. } = leaf else { return 0 };
    let low = user.iter().fold(i64::MAX, i64::min);
    let high = user.iter().zip(len.iter()).map(|(u, l)| u.saturating_add(l)).fold(i64::MIN, i64::max);
    high.saturating_sub(low)
}

/// `loop count` over `body`, or over the last node.
fn loop_over_instances(mut nodes: Vec<Node>, step: Offsets, body: Option<Body>) -> LoopNest<Lowered> {
    let end = nodes.len() as u32;
    let body = body.unwrap_or(Body { start: end - 1, len: 1 });
    nodes.push(Node::Loop { at: Offsets::ZERO, trip: Quantity::counted(1), step, body });
    LoopNest::new(nodes, Body { start: end, len: 1 }, step.packed, step.user)
}

#[cfg(test)]
mod tests {
    use crate::datatype::Datatype;
    use crate::lower::{Bytes, lower};
    use crate::nest::{Node, Offsets};
    use crate::normalize::normalize;

    /// The visits of `count` instances of a part, and how many make one iteration.
    fn visits(text: &str, part: impl Fn(&Node) -> bool, count: u64) -> Vec<(Offsets, u64)> {
        let t: Datatype = text.parse().unwrap();
        let nest = normalize(&lower(&t, Bytes).unwrap(), t.arguments()).unwrap().nest;
        let i = nest.nodes().iter().position(part).unwrap();
        let part = nest.part(i).unwrap();
        part.verify().unwrap();
        let mut visits = Vec::new();
        part.visit(count, |v| visits.push((v.at, v.n)));
        visits
    }

    #[test]
    fn a_loop_gives_its_iterations() {
        let text = "struct([1, 1, 1], [0, 4096, 9000], [hvector(5, 1, 100, struct([1,1],[0,9],[int,char])), double, vector(3, 2, 7, int)])";
        let inner = |node: &Node| matches!(node, Node::Loop { trip, .. } if trip.is(5));
        let want = [((0, 0), 4), ((9, 4), 1), ((100, 5), 4), ((109, 9), 1)];
        let want = want.map(|((user, packed), len)| (Offsets::new(user, packed), len));
        assert_eq!(visits(text, inner, 2), want);
    }

    #[test]
    fn a_table_gives_one_row_and_blocks_themselves() {
        let text = "hindexed_block(1, [0, 1000, 3000], hvector(2, 3, 50, char))";
        let table = |node: &Node| matches!(node, Node::Table { .. });
        assert_eq!(visits(text, table, 1), [(Offsets::ZERO, 3), (Offsets::new(50, 3), 3)]);
        let text = "hindexed([3, 1, 2], [5, 20, 40], char)";
        let blocks = |node: &Node| matches!(node, Node::Blocks { .. });
        assert_eq!(
            visits(text, blocks, 1),
            [(Offsets::ZERO, 3), (Offsets::new(15, 3), 1), (Offsets::new(35, 4), 2)]
        );
        // The second instance begins where the first one ends: they share no byte.
        assert_eq!(visits(text, blocks, 2)[3], (Offsets::new(37, 6), 3));
    }
}
