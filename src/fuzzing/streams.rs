//! Checks of counts in packed streams (elements, bytes, signatures and their comparison) against a
//! list of the basic types of the type map.

use super::case::{Check, ensure};
use super::choices::Choices;
use crate::datatype::{
    Class, Datatype, Match, Named, Signature, TypeMap, compare_signatures, signature_hash,
};
use crate::error::ErrorClass;
use crate::object;

/// Maximum number of elements that are listed.
const MAX_ELEMENTS: usize = 4096;
/// If a list has more positions than this, only about this many of them are checked.
const CUTS: usize = 256;
/// Maximum number of elements of a datatype that become members of the struct with whose signature
/// its own is compared.
const MEMBERS: usize = 300;

/// Returns whether a type stands for bytes or packed data, whose contents a signature does not
/// describe.
fn is_untyped(n: Named) -> bool {
    matches!(n.class(), Class::Byte | Class::Packed)
}

/// Compares two signatures, given as lists of basic types, by the definition of when they match.
fn by_definition(a: &[Named], b: &[Named]) -> Match {
    match a.iter().zip(b).position(|(a, b)| a != b) {
        Some(i) if is_untyped(a[i]) || is_untyped(b[i]) => Match::Unknown { index: i as i64 },
        Some(i) => Match::Mismatch { index: i as i64 },
        None if a.len() < b.len() => Match::FirstIsPrefix,
        None if a.len() > b.len() => Match::SecondIsPrefix,
        None => Match::Equal,
    }
}

/// Returns all numbers from 0 to `most` if they are few, otherwise some of them, including the
/// smallest and the largest.
fn some(most: usize, cuts: &mut Choices<'_>) -> Vec<usize> {
    match most <= CUTS {
        true => (0..=most).collect(),
        false => (0..CUTS).map(|_| cuts.below(most as u64 + 1) as usize).chain([0, 1, most]).collect(),
    }
}

/// Checks the number of elements, the number of bytes and the signature of the first part of the
/// packed stream, for parts of several lengths, of `count` instances of `t`. Also compares the
/// signature with those of structs.
///
/// # Errors
/// The first value that contradicts the basic types of the type map.
pub(super) fn check(t: &Datatype, count: u64, cuts: &mut Choices<'_>) -> Check {
    let list: Vec<Named> = TypeMap::instances(t, count).take(MAX_ELEMENTS).map(|e| e.0).collect();
    let whole = t.signature().length() as i128 * i128::from(count) == list.len() as i128;
    let n = count as i64;
    // Packed positions at which the elements end.
    let mut ends = vec![0];
    for element in &list {
        ends.push(ends[ends.len() - 1] + element.size());
    }
    for bytes in some(ends[list.len()] as usize, cuts) {
        let expected = ends.binary_search(&(bytes as i64)).ok().map(|i| i as i64);
        let got = t.elements_before(bytes as i64);
        ensure(got == expected, "elements", || {
            format!("{bytes} bytes have {got:?}, not {expected:?} elements\n{t}")
        })?;
    }
    // Compute the hash of the signature of the first n elements, for every n. From the first
    // untyped element on, the hash is 0.
    let (mut signature, mut untyped) = (Signature::EMPTY, false);
    let hashes: Vec<u64> = std::iter::once(1)
        .chain(list.iter().map(|&element| {
            signature = signature.then(&Signature::from_named(element));
            untyped |= is_untyped(element);
            if untyped { 0 } else { (signature.hash() as u64).max(1) }
        }))
        .collect();
    for elements in some(list.len(), cuts) {
        let (expected, got) = (ends[elements], object::elements_size(t, elements as i64));
        ensure(got == Ok(expected), "elements", || {
            format!("{elements} have {got:?}, not {expected} bytes\n{t}")
        })?;
        let (expected, got) = (hashes[elements], signature_hash(n, t, elements as i64));
        ensure(got == Ok(expected), "signature", || {
            format!("the hash of {elements} elements is {got:x?}, not {expected:x}\n{t}")
        })?;
    }
    if !whole {
        return Ok(());
    }
    let past = signature_hash(n, t, list.len() as i64 + 1).map_err(|e| e.class());
    ensure(past == Err(ErrorClass::Truncate), "signature", || format!("{past:?} past the end\n{t}"))?;
    // Compare the type with a struct that has the same elements as members, with fewer or more
    // members, or with one member of another type.
    for _ in 0..4 {
        let mut other: Vec<Named> = list.iter().copied().take(MEMBERS).collect();
        match cuts.below(4) {
            0 => other.truncate(cuts.below(other.len() as u64 + 1) as usize),
            1 => other.push(Named::Double),
            2 if !other.is_empty() => {
                let at = cuts.below(other.len() as u64) as usize;
                other[at] = cuts.pick(&[Named::Int, Named::Byte, Named::Packed, Named::Real]);
            }
            _ => {}
        }
        let places: Vec<i64> = (0..other.len() as i64).map(|i| 32 * i).collect();
        let types: Vec<Datatype> = other.iter().map(|&n| Datatype::named(n)).collect();
        let members = Datatype::structure(&vec![1; other.len()], &places, &types);
        let members = members.map_err(super::Mismatch::error("signature"))?;
        let (expected, got) = (by_definition(&list, &other), compare_signatures(n, t, 1, &members));
        ensure(got == Ok(expected), "signature", || {
            format!("{got:?}, not {expected:?}: {count} of\n{t}\n{members}")
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corpus_and_long_structs() {
        let entries = crate::corpus::application().into_iter().chain(crate::corpus::corner());
        let long = ["@children(1000)", "@wide(300, 5)", "@tangle(12)", "@deep(300)", "@chain(500)"];
        let long = long.map(|text| (crate::corpus::datatype(text).unwrap(), 2));
        for (t, count) in entries.map(|e| (e.datatype, e.count.min(3))).chain(long) {
            let mut cuts = Choices::from_seed(t.structural_hash() as u64);
            check(&t, count, &mut cuts).unwrap_or_else(|m| panic!("{m}"));
        }
    }

    #[test]
    fn structs_of_many_members_of_all_types() {
        for seed in 0..200 {
            let mut c = Choices::from_seed(seed);
            let n = 60 + c.below(300) as usize;
            let basics: Vec<Named> = Named::ALL.iter().copied().filter(|n| !n.is_marker()).collect();
            let types: Vec<Datatype> = (0..n).map(|_| Datatype::named(c.pick(&basics))).collect();
            let lengths: Vec<i64> = (0..n).map(|_| c.below(4) as i64).collect();
            let places: Vec<i64> = (0..n as i64).map(|i| 200 * i).collect();
            let t = Datatype::structure(&lengths, &places, &types).unwrap();
            check(&t, 1 + c.below(2), &mut c).unwrap_or_else(|m| panic!("seed {seed}: {m}"));
        }
    }
}
