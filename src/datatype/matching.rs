//! Comparison of type signatures: whether the elements of one message match those of another,
//! without unfolding either.
//!
//! Two datatypes of one signature may be built in quite different ways, so sequences of elements
//! are compared by their hashes. The first n elements of both are taken to be equal if their hashes
//! are, and the first difference is found by binary search over n. An answer that an element
//! differs is certain. An answer that no element differs is wrong only with the probability that
//! [`signature`](super::signature) states. A copy between two layouts is refused because of an
//! answer that an element differs, but no answer decides which bytes are moved.
//!
//! Source: MPI 5.0 sections 3.3.1 (matching of communication), 14.6.6 (matching in files), 5.2
//! (packed data).

use super::named::Class;
use super::prefix::{self, Unit};
use super::{Datatype, Named};
use crate::error::{Error, ErrorClass, Result};

/// Relation of the signature of one message to that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// Both signatures have the same elements.
    Equal,
    /// The first signature has fewer elements than the second, which begins with them.
    FirstIsPrefix,
    /// The second signature has fewer elements than the first, which begins with them.
    SecondIsPrefix,
    /// Element `index`, counted from 0, has different basic types in the two signatures, and all
    /// elements before it are the same.
    Mismatch {
        /// Number of the element, counted from 0.
        index: i64,
    },
    /// Element `index` differs as in [`Match::Mismatch`], but one of the two types is `MPI_BYTE` or
    /// `MPI_PACKED`, so it is not known what its bytes hold.
    Unknown {
        /// Number of the element, counted from 0.
        index: i64,
    },
}

/// Returns the number of basic elements in `count` instances of `t`. An error names the argument
/// `which`.
fn length(call: &'static str, which: &'static str, count: i64, t: &Datatype) -> Result<i64> {
    if count < 0 {
        return Err(Error::new(ErrorClass::Count, call, which, count, "must not be negative"));
    }
    count.checked_mul(t.signature().length()).ok_or_else(|| {
        let rule = "instances must have no more elements than 64 bits count";
        Error::new(ErrorClass::ValueTooLarge, call, which, count, rule)
    })
}

/// Compares the signatures of `count1` instances of `type1` and `count2` of `type2`.
///
/// If the shorter signature is the beginning of the other one, this takes O(depth * (1 + log m))
/// for structs of up to m members. Otherwise it takes that time for each step of a binary search
/// over the elements.
///
/// # Errors
/// Returns an error of class `Count` if a count is negative, and of class `ValueTooLarge` if there
/// are more than 2^63 - 1 elements.
pub fn compare(count1: i64, type1: &Datatype, count2: i64, type2: &Datatype) -> Result<Match> {
    const CALL: &str = "signature_compare";
    let (n1, n2) = (length(CALL, "count1", count1, type1)?, length(CALL, "count2", count2, type2)?);
    let same = |n: i64| prefix::signature(type1, n) == prefix::signature(type2, n);
    let shorter = n1.min(n2);
    // If one instance of each type has the same signature, or if the shorter sequence is the
    // beginning of the other one, only the lengths can differ.
    if type1.signature() == type2.signature() || same(shorter) {
        return Ok(match n1.cmp(&n2) {
            std::cmp::Ordering::Less => Match::FirstIsPrefix,
            std::cmp::Ordering::Equal => Match::Equal,
            std::cmp::Ordering::Greater => Match::SecondIsPrefix,
        });
    }
    // Search for the first difference by bisection. The first `index` elements of both are equal,
    // and the first `differ` elements are not.
    let (mut index, mut differ) = (0, shorter);
    while differ - index > 1 {
        let middle = index + (differ - index) / 2;
        if same(middle) { index = middle } else { differ = middle }
    }
    let untyped =
        |t| element(t, index).is_some_and(|named| matches!(named.class(), Class::Byte | Class::Packed));
    Ok(match untyped(type1) || untyped(type2) {
        true => Match::Unknown { index },
        false => Match::Mismatch { index },
    })
}

/// Returns the basic type of element `index`, counted from 0, of instances of `t`, or `None` if the
/// type has no elements. Takes O(depth * (1 + log m)) for structs of up to m members.
pub(crate) fn element(t: &Datatype, index: i64) -> Option<Named> {
    prefix::descend(t, Unit::Elements, index, |_| ()).map(|(named, _)| named)
}

/// Returns a 64-bit hash of the first `elements` basic elements of `count` instances of `t`. The
/// hash is the same for equal sequences in every process and version. Together with the number of
/// elements, the hash lets a receiver see that the sender's signature differs.
///
/// The hash is 0 if one of the elements is `MPI_BYTE` or `MPI_PACKED`. A hash of 0 says nothing
/// about the sequence, and must be taken as equal to every other hash.
///
/// # Errors
/// Returns the errors that [`compare`] returns. Also returns an error of class `Count` if
/// `elements` is negative, and of class `Truncate` if the instances have fewer elements.
pub fn signature_hash(count: i64, t: &Datatype, elements: i64) -> Result<u64> {
    const CALL: &str = "signature_hash";
    let all = length(CALL, "count", count, t)?;
    if elements < 0 {
        return Err(Error::new(ErrorClass::Count, CALL, "elements", elements, "must not be negative"));
    }
    if elements > all {
        let rule = format!("must be at most the {all} elements of the instances");
        return Err(Error::new(ErrorClass::Truncate, CALL, "elements", elements, rule));
    }
    let signature = prefix::signature(t, elements);
    Ok(if signature.has_untyped() { 0 } else { (signature.hash() as u64).max(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(text: &str) -> Datatype {
        text.parse().unwrap()
    }

    #[test]
    fn by_hand() {
        let check = |n1, first: &str, n2, second: &str, expected| {
            assert_eq!(
                compare(n1, &t(first), n2, &t(second)).unwrap(),
                expected,
                "{n1} {first}, {n2} {second}"
            );
            let turned = match expected {
                Match::FirstIsPrefix => Match::SecondIsPrefix,
                Match::SecondIsPrefix => Match::FirstIsPrefix,
                other => other,
            };
            assert_eq!(
                compare(n2, &t(second), n1, &t(first)).unwrap(),
                turned,
                "{n2} {second}, {n1} {first}"
            );
        };
        let mismatch = |index| Match::Mismatch { index };
        let unknown = |index| Match::Unknown { index };
        check(6, "int", 2, "vector(3, 1, 7, int)", Match::Equal);
        check(5, "int", 2, "vector(3, 1, 7, int)", Match::FirstIsPrefix);
        check(0, "int", 1, "double", Match::FirstIsPrefix);
        check(0, "int", 0, "double", Match::Equal);
        check(7, "contiguous(0, int)", 0, "double", Match::Equal);
        check(1, "int", 1, "double", mismatch(0));
        check(
            3,
            "struct([1, 1], [0, 8], [int, double])",
            3,
            "struct([1, 2], [0, 8], [int, double])",
            mismatch(2),
        );
        // Types of different languages are different, even if their values are represented in the
        // same way.
        check(1, "int", 1, "integer", mismatch(0));
        check(4, "real8", 4, "f90_real(15, 307)", Match::Equal);
        // A pair counts as its two elements.
        check(2, "double_int", 2, "struct([1, 1], [0, 8], [double, int])", Match::Equal);
        check(1, "double_int", 1, "double", Match::SecondIsPrefix);
        check(2, "2int", 4, "int", Match::Equal);
        check(
            2,
            "value_index(uint64_t, int)",
            1,
            "struct([1, 1, 1], [0, 8, 16], [uint64_t, int, uint64_t])",
            Match::SecondIsPrefix,
        );
        // Bytes match bytes. If the first difference is between bytes and anything else, the answer
        // is `Unknown`. Elements after the first difference do not matter.
        check(4, "byte", 4, "byte", Match::Equal);
        check(4, "packed", 8, "packed", Match::FirstIsPrefix);
        check(4, "byte", 1, "int", unknown(0));
        check(4, "byte", 4, "packed", unknown(0));
        check(
            2,
            "struct([1, 1], [0, 4], [int, packed])",
            2,
            "struct([1, 1], [0, 4], [int, float])",
            unknown(1),
        );
        check(
            2,
            "struct([1, 1], [0, 4], [int, byte])",
            1,
            "struct([1, 1, 1], [0, 4, 8], [int, byte, float])",
            mismatch(2),
        );
        check(
            1,
            "struct([1, 1], [0, 4], [int, byte])",
            1,
            "struct([1, 1], [0, 8], [double, float])",
            mismatch(0),
        );
    }

    #[test]
    fn two_to_the_forty_elements() {
        let shared = |text: &str| {
            (0..20).fold(t(text), |t, _| {
                Datatype::structure(&[1, 1], &[0, t.extent()], &[t.clone(), t]).unwrap()
            })
        };
        let id = "struct([1, 1], [0, 8], [int, double])";
        let (tree, run) = (shared(id), t(id));
        assert_eq!(compare(1 << 19, &tree, 1 << 39, &run), Ok(Match::Equal));
        assert_eq!(compare(1 << 19, &tree, (1 << 39) + 1, &run), Ok(Match::FirstIsPrefix));
        // One element among 2^41 differs.
        let at = (1i64 << 39) + 12_345;
        let ids = |n| Datatype::contiguous(n, &run).unwrap();
        let float = t("struct([1, 1], [0, 8], [int, float])");
        let parts = [ids(at), float, ids((1 << 39) - 1 - at + (1 << 39))];
        let places = [0, parts[0].extent(), parts[0].extent() + 16];
        let other = Datatype::structure(&[1, 1, 1], &places, &parts).unwrap();
        assert_eq!(compare(1 << 20, &tree, 1, &other), Ok(Match::Mismatch { index: 2 * at + 1 }));
    }

    #[test]
    fn hashes_by_hand() {
        let hash = |n, text, elements| signature_hash(n, &t(text), elements).unwrap();
        // These values were computed from the definition by a program in another language.
        assert_eq!(hash(5, "int", 0), 1);
        assert_eq!(hash(1, "int", 1), 0x5501_57f9_a367_0863);
        assert_eq!(hash(1, "double", 1), 0xa6ef_0cf3_35db_8dc1);
        assert_eq!(hash(3, "struct([1, 1], [0, 8], [int, double])", 2), 0x215b_2e9b_5d68_a85a);
        assert_eq!(hash(1, "vector(4, 2, 9, int)", 3), 0x8b5a_4114_c5a7_8d2b);
        assert_eq!(hash(8, "byte", 8), 0);
        assert_eq!(hash(8, "struct([1, 1], [0, 4], [int, packed])", 1), 0x5501_57f9_a367_0863);
        assert_eq!(hash(8, "struct([1, 1], [0, 4], [int, packed])", 2), 0);
    }

    #[test]
    fn bad_numbers_are_refused() {
        let int = t("int");
        let class = |e: Error| (e.class(), e.argument().to_owned());
        assert_eq!(class(compare(-1, &int, 1, &int).unwrap_err()), (ErrorClass::Count, "count1".into()));
        assert_eq!(class(compare(1, &int, -1, &int).unwrap_err()), (ErrorClass::Count, "count2".into()));
        let pair = t("2int");
        let e = compare(1, &int, i64::MAX, &pair).unwrap_err();
        assert_eq!(class(e), (ErrorClass::ValueTooLarge, "count2".into()));
        assert_eq!(compare(i64::MAX, &int, i64::MAX / 2, &pair), Ok(Match::SecondIsPrefix));
        let e = signature_hash(2, &pair, 5).unwrap_err();
        assert_eq!(class(e), (ErrorClass::Truncate, "elements".into()));
        assert_eq!(class(signature_hash(2, &pair, -1).unwrap_err()), (ErrorClass::Count, "elements".into()));
        assert_eq!(class(signature_hash(-2, &pair, 0).unwrap_err()), (ErrorClass::Count, "count".into()));
    }
}
