//! Basic elements in a number of packed bytes (MPI 5.0 section 3.2.5, `MPI_Get_elements`).

use crate::datatype::{Combiner, Datatype};

/// Basic elements in the first `bytes` packed bytes of instances of `t`; none where that ends inside an element.
///
/// A pair counts as two, as its type map says. Time: O(depth + members of the structs on the way).
pub fn elements(t: &Datatype, bytes: u64) -> Option<i64> {
    let mut left = i64::try_from(bytes).ok()?;
    let mut total = 0i64;
    let mut node = t;
    loop {
        if left == 0 {
            return Some(total);
        }
        if node.size() == 0 {
            // Bytes for a type without data.
            return None;
        }
        // Packed order of every constructor with one child is child after child.
        total = total.checked_add((left / node.size()).checked_mul(node.signature().length())?)?;
        left %= node.size();
        if left == 0 {
            return Some(total);
        }
        if let Some(simpler) = node.expansion() {
            node = simpler;
            continue;
        }
        match node.combiner() {
            Combiner::Named(named) => {
                let mut end = 0;
                for &(_, size) in named.pieces() {
                    end += size;
                    if end <= left {
                        total += 1;
                    }
                    if end == left {
                        return Some(total);
                    }
                }
                return None;
            }
            Combiner::Struct { blocklengths, types, .. } => {
                let mut next = None;
                for (&length, child) in blocklengths.iter().zip(types.iter()) {
                    // No larger than the node's size, which fits.
                    let block = length * child.size();
                    if left < block {
                        next = Some(child);
                        break;
                    }
                    left -= block;
                    total = total.checked_add(length.checked_mul(child.signature().length())?)?;
                }
                node = next?;
            }
            combiner => node = combiner.children().next()?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(u64, Option<i64>)]) {
        let t: Datatype = text.parse().unwrap();
        for &(bytes, count) in expected {
            assert_eq!(elements(&t, bytes), count, "{text}, {bytes} bytes");
        }
    }

    #[test]
    fn by_hand() {
        check("int", &[(0, Some(0)), (4, Some(1)), (12, Some(3)), (6, None)]);
        check("double_int", &[(8, Some(1)), (12, Some(2)), (20, Some(3)), (9, None)]);
        check("vector(3, 2, 5, int)", &[(4, Some(1)), (24, Some(6)), (28, Some(7)), (26, None)]);
        let t = "struct([1, 1, 3], [0, 8, 16], [int, double, float])";
        check(t, &[(4, Some(1)), (12, Some(2)), (16, Some(3)), (24, Some(5)), (28, Some(6)), (8, None)]);
        check("subarray([4, 8], [1, 3], [2, 1], C, double)", &[(8, Some(1)), (32, Some(4))]);
        check("struct([], [], [])", &[(0, Some(0)), (1, None)]);
        check("struct([0, 2], [0, 0], [double, contiguous(2, char)])", &[(3, Some(3)), (4, Some(4))]);
    }
}
