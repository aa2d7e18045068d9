//! Parts of a nest. A part is a separate nest whose instances are the iterations of one node of
//! another nest.

use super::{Body, LoopNest, Lowered, Node, Normal, Offsets, Quantity};
use crate::column::{Column, try_reserve, try_with_capacity};
use crate::error::Result;

/// The rows of a `Blocks` node, adjacent on the packed side and cut into pieces of equal length.
#[derive(Clone, Debug)]
pub struct EqualPieces {
    /// User offset that the displacements are relative to, and packed offset of the first piece.
    pub at: Offsets,
    /// User displacements of the pieces in bytes.
    pub user: Column,
    /// Bytes of each piece.
    pub len: u64,
}

impl EqualPieces {
    /// Returns the packed offset in bytes after the last piece.
    pub fn end(&self) -> i64 {
        self.at.packed + self.user.len() as i64 * self.len as i64
    }
}

impl LoopNest<Normal> {
    /// Returns the nest whose instances are the iterations of node `i`. For a loop with stride `s`
    /// and body `B`, this is `loop count step s {B}`. For a table, an instance is one row at user
    /// offset 0. For a leaf, an instance is the whole leaf. If the leaf has blocks, its instances
    /// lie so far apart that they share no user byte. If the leaf is a copy, all its instances are
    /// at the same user offset.
    ///
    /// # Errors
    /// Class `NoMem`.
    pub fn part(&self, i: usize) -> Result<LoopNest<Lowered>> {
        let nodes = self.nodes();
        // Mark the nodes that node `i` reaches. A body lies before the nodes that use it, so one
        // pass from `i` down to the start of the vector finds all reached nodes.
        let mut reached: Vec<bool> = try_with_capacity("part", i)?;
        reached.resize(i, false);
        for j in (0..=i).rev() {
            if let Some(body) = nodes[j].body().filter(|_| j == i || reached[j]) {
                reached[body.range()].fill(true);
            }
        }
        let mut kept: Vec<Node> = Vec::new();
        // Copy the marked nodes. `new_index` has the new index of each node. All nodes of a body
        // are copied, so a body remains a run of consecutive nodes.
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
        // Add the loop over the iterations, which completes the nest. A leaf has no body, so the
        // leaf itself is added and the loop goes around it.
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

/// Returns the number of user bytes from the start of the lowest row of a `Blocks` node to the end
/// of the highest row. Instances at this distance share no byte. For any other leaf the result is
/// 0.
fn span(leaf: &Node) -> i64 {
    let Node::Blocks { user, len, .. } = leaf else { return 0 };
    let low = user.iter().fold(i64::MAX, i64::min);
    let high = user.iter().zip(len.iter()).map(|(u, l)| u.saturating_add(l)).fold(i64::MIN, i64::max);
    high.saturating_sub(low)
}

/// Completes a nest with a loop over `body` whose trip is the instance count. If `body` is `None`,
/// the loop is over the last node.
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

    /// Returns the user and packed offsets and the lengths of the copies that `count` instances of
    /// a part make.
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
        // The second instance begins where the first one ends, so they share no byte.
        assert_eq!(visits(text, blocks, 2)[3], (Offsets::new(37, 6), 3));
    }
}
