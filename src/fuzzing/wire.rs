//! Checks of the wire form: any bytes are read or refused, and a datatype that was written reads
//! back as the same one.

use xxhash_rust::xxh3::xxh3_64;

use super::case::{Check, Mismatch, ensure};
use super::choices::Choices;
use super::generate::{Budget, datatype};
use super::panics::caught;
use crate::datatype::{Datatype, Named};
use crate::error::Result;

/// Offsets in a wire form of its length, of its hash and of its nodes, and number of bytes of the
/// checksum at its end.
const LENGTH: usize = 8;
const HASH: usize = 16;
const NODES: usize = 32;
const CHECKSUM: usize = 8;

/// Returns, for each node of a datatype: its large-count flag, its size, bounds and alignment,
/// and the hash of its signature. These properties are not part of the node's constructor.
fn facts(t: &Datatype) -> Vec<(bool, [i64; 6], u64)> {
    let facts = |t: &Datatype| {
        let numbers = [t.size(), t.lb(), t.ub(), t.true_lb(), t.true_ub(), t.alignment()];
        (t.is_large_count(), numbers, t.signature().hash() as u64)
    };
    t.nodes().map(facts).collect()
}

/// Checks that the wire form of `t` has the announced length and reads back as the same datatype,
/// with contents, bounds, flags and sharing, and that the datatype read back has the same form.
///
/// # Errors
/// The first property that does not hold.
pub(super) fn round_trip(t: &Datatype) -> Check {
    let failed = Mismatch::error("wire");
    let form = t.to_wire().map_err(&failed)?;
    let said = t.wire_size().map_err(&failed)?;
    ensure(said == form.len(), "wire", || format!("{said} bytes are said, {} written\n{t}", form.len()))?;
    let back = Datatype::from_wire(&form).map_err(&failed)?;
    ensure(back == *t && back.structural_hash() == t.structural_hash(), "wire", || {
        format!("{t}\nreads back as\n{back}")
    })?;
    ensure(facts(&back) == facts(t), "wire", || {
        format!("{t} reads back with other bounds, flags or sharing")
    })?;
    let again = back.to_wire().map_err(&failed)?;
    ensure(again == form, "wire", || format!("{t} is written in two ways"))
}

/// Writes the actual length and checksum into a form, so that a reader does not refuse the form
/// before it has read the hash and the nodes, which lie between the two.
fn seal(form: &mut Vec<u8>) {
    let end = form.len().max(NODES + CHECKSUM) - CHECKSUM;
    form.resize(end, 0);
    form[LENGTH..LENGTH + 8].copy_from_slice(&((end + CHECKSUM) as u64).to_le_bytes());
    let checksum = xxh3_64(form);
    form.extend_from_slice(&checksum.to_le_bytes());
}

/// Returns the hash that a reader has computed for a wire form that it refused because the hash in
/// the form is wrong. The error message contains the computed hash.
fn hash_of(refused: &Result<Datatype>) -> Option<u128> {
    let error = refused.as_ref().err().filter(|e| e.argument() == format!("byte {HASH}"))?;
    u128::from_str_radix(error.rule().strip_prefix("must be ")?.get(..32)?, 16).ok()
}

/// Corrects the length, the checksum and the hash of a form, whatever its nodes are, and reads it.
/// If the form is accepted, writing its datatype must give the same form again.
fn check_nodes(mut form: Vec<u8>) -> Check {
    seal(&mut form);
    let mut read = Datatype::from_wire(&form);
    if let Some(hash) = hash_of(&read) {
        form[HASH..NODES].copy_from_slice(&hash.to_le_bytes());
        seal(&mut form);
        read = Datatype::from_wire(&form);
        ensure(read.is_ok(), "wire", || format!("{read:?}, though its hash is right"))?;
    }
    read.map_or(Ok(()), |t| {
        round_trip(&t)?;
        let written = t.to_wire().map_err(Mismatch::error("wire"))?;
        ensure(written == form, "wire", || {
            format!("a form is read that is not written: {t}\nread    {form:?}\nwritten {written:?}")
        })
    })
}

/// Returns `form` with one more node before its own nodes, which is no child of any of them. The
/// result would give the same datatype and hash, but a reader must refuse it, since each datatype
/// has only one form.
fn with_a_stray(form: &[u8], which: u8) -> Vec<u8> {
    let named = Named::ALL[usize::from(which) % Named::ALL.len()];
    let Ok(stray) = Datatype::named(named).to_wire() else { return form.to_vec() };
    let (mut number, mut at) = (0u64, NODES);
    loop {
        number |= u64::from(form[at] & 0x7f) << (7 * (at - NODES));
        at += 1;
        if form[at - 1] < 0x80 {
            break;
        }
    }
    let (mut more, mut left) = (form[..NODES].to_vec(), number + 1);
    while left >= 0x80 {
        more.push(left as u8 | 0x80);
        left >>= 7;
    }
    more.push(left as u8);
    // The number of nodes in the form of the stray node takes one byte.
    more.extend_from_slice(&stray[NODES + 1..stray.len() - CHECKSUM]);
    more.extend_from_slice(&form[at..]);
    seal(&mut more);
    more
}

/// Reads `data` as a form, then as the nodes of a form, and then valid forms after changing a few
/// bytes or adding a node.
///
/// # Errors
/// A panic, a datatype that does not read back as itself, or a changed form that is accepted
/// although its checksum is wrong.
pub fn check_wire(data: &[u8]) -> std::result::Result<(), Mismatch> {
    caught(|| {
        Datatype::from_wire(data).map_or(Ok(()), |t| round_trip(&t))?;
        let frame =
            Datatype::named(crate::datatype::Named::Int).to_wire().map_err(Mismatch::error("wire"))?;
        let mut nodes = frame[..NODES].to_vec();
        nodes.extend_from_slice(data);
        nodes.extend_from_slice(&[0; CHECKSUM]);
        check_nodes(nodes)?;
        let mut c = Choices::from_bytes(data);
        let t = datatype(&mut c, &Budget::small());
        round_trip(&t)?;
        let mut form = t.to_wire().map_err(Mismatch::error("wire"))?;
        for _ in 0..1 + c.below(4) {
            let at = NODES + c.below((form.len() - NODES - CHECKSUM) as u64) as usize;
            match c.below(4) {
                0 => form[at] = c.byte(),
                1 => form[at] ^= 1 << c.below(8),
                2 => form.insert(at, c.byte()),
                _ => drop(form.remove(at)),
            }
        }
        let more = with_a_stray(&t.to_wire().map_err(Mismatch::error("wire"))?, c.byte());
        ensure(Datatype::from_wire(&more).is_err(), "wire", || {
            format!("a form of {t} with a node more is accepted")
        })?;
        check_nodes(more)?;
        ensure(
            Datatype::from_wire(&form).is_err() || form == t.to_wire().unwrap_or_default(),
            "wire",
            || format!("a changed form of {t} is accepted"),
        )?;
        check_nodes(form)
    })
    .unwrap_or_else(|panic| Err(Mismatch::new("wire", format!("panic: {panic}\n{data:?}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_and_changed_forms() {
        let mut read = 0;
        for seed in 0..4000 {
            let mut c = Choices::from_seed(seed);
            let data: Vec<u8> = (0..c.below(300)).map(|_| c.byte()).collect();
            check_wire(&data).unwrap_or_else(|m| panic!("seed {seed}: {m}"));
            // Some changes must give another valid type. Otherwise every form would be refused
            // before its hash is checked, and nothing after that check would be tested.
            let mut form = datatype(&mut c, &Budget::small()).to_wire().unwrap();
            let at = NODES + c.below((form.len() - NODES - CHECKSUM) as u64) as usize;
            form[at] ^= 1;
            seal(&mut form);
            read += u32::from(hash_of(&Datatype::from_wire(&form)).is_some());
        }
        assert!(read > 400, "{read}");
    }
}
