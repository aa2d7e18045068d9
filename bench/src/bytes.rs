//! The check of bytes before any timing: each way to move the bytes of a layout (a variant) is
//! compared with one of them, the reference variant, in both directions.

use ddtc::internal::corpus::SplitMix64;
use ddtc::internal::kind::Direction;

use crate::native::{Region, Subject};
use crate::result::Column;

/// Value of unmapped bytes before an unpack.
const GAP: u8 = 0xa5;

/// Checks that every variant of `subject` packs and unpacks the same bytes as `reference`, which
/// must be one of the variants, that unpacking leaves gaps unchanged, and that nothing outside of
/// the buffers is written. The variant `memcpy` is not checked.
///
/// # Errors
/// Returns a text that says which variant differs, in which direction, and where, or that
/// `reference` is not among the variants.
pub(crate) fn check(subject: &mut Subject, reference: Column) -> Result<(), String> {
    let columns = subject.columns();
    let known =
        columns.iter().position(|&c| c == reference).ok_or("the reference is not among the variants")?;
    // Prepare a user buffer that has random bytes at the places that the datatype maps, and GAP in
    // all other places. The reference variant itself unpacks the random bytes into the buffer.
    let (user, packed) = subject.buffers();
    user.bytes_mut().fill(GAP);
    randomize(packed.bytes_mut());
    subject.run(known, Direction::Unpack, 1);
    subject.run(known, Direction::Pack, 1);
    let (user, packed) = subject.buffers();
    let (expected_user, expected_packed) = (user.bytes().to_vec(), packed.bytes().to_vec());
    let others = (0..columns.len()).filter(|&v| v != known && columns[v] != Column::Memcpy);
    // Each other variant packs and then unpacks. After each call both buffers are compared with the
    // expected ones: the target must be right, and the source must be unchanged.
    for v in others {
        let fault = |direction: Direction, what: String| {
            Err(format!("{} {}: {what}", columns[v].name(), direction.name()))
        };
        subject.buffers().1.bytes_mut().fill(GAP);
        subject.run(v, Direction::Pack, 1);
        let (user, packed) = subject.buffers();
        if let Some(what) = difference(packed, &expected_packed, "packed") {
            return fault(Direction::Pack, what);
        }
        if let Some(what) = difference(user, &expected_user, "user") {
            return fault(Direction::Pack, what);
        }
        user.bytes_mut().fill(GAP);
        subject.run(v, Direction::Unpack, 1);
        let (user, packed) = subject.buffers();
        if let Some(what) = difference(user, &expected_user, "user") {
            return fault(Direction::Unpack, what);
        }
        if let Some(what) = difference(packed, &expected_packed, "packed") {
            return fault(Direction::Unpack, what);
        }
    }
    Ok(())
}

fn randomize(bytes: &mut [u8]) {
    let mut random = SplitMix64::new(0x00dd_7c00);
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&random.draw().to_le_bytes()[..chunk.len()]);
    }
}

fn difference(region: &Region, expected: &[u8], which: &str) -> Option<String> {
    if !region.intact() {
        return Some(format!("bytes next to the {which} buffer were written"));
    }
    if region.bytes() == expected {
        return None;
    }
    let at = region.bytes().iter().zip(expected).position(|(a, b)| a != b)?;
    Some(format!("{which} byte {at} is {:#04x}, must be {:#04x}", region.bytes()[at], expected[at]))
}
