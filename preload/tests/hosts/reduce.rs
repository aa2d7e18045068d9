//! Test of the reductions of MPI libraries. For the results of the predefined operations, an MPI
//! library is a third opinion, after the text of the standard and ddtc. The test tries all
//! predefined operations except `MPI_REPLACE` and `MPI_NO_OP`, for every named type that they are
//! defined for.
//!
//! The values that the reference interpreter computes by the text of the standard are compared with
//! those that `MPI_Reduce_local` of an unmodified MPI library computes from the same operands. If
//! they differ, one of the two is wrong. Faults of the library are in `known_faults`, whose entries
//! for this test are `reduce.OP.TYPE`; any other difference fails the test.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ddtc::internal::datatype::{Class, Datatype, Named};
use ddtc::internal::exec::interp;
use ddtc::internal::kind::Op;
use ddtc::internal::methods::*;

use crate::faults::{Excluded, Symptom, known};
use crate::programs::answers;
use crate::setup::Host;

/// Number of elements of each call of `MPI_Reduce_local`.
const COUNT: u64 = 6;

/// Returns true if `known_faults` may have the entry `entry` for this test: `reduce.` followed by
/// the names of an operation and of a named type.
pub(crate) fn has(entry: &str) -> bool {
    let mut words = entry.splitn(3, '.');
    let (Some("reduce"), Some(op), Some(name)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    Op::ALL.iter().any(|known| known.name() == op) && Named::ALL.iter().any(|named| named.mpi_name() == name)
}

struct Entry {
    op: Op,
    named: Named,
    input: Vec<u8>,
    before: Vec<u8>,
    after: Vec<u8>,
    /// For each byte of `after`, true if the byte has no defined value, because it belongs to a NaN
    /// or to padding.
    loose: Vec<bool>,
}

/// Returns [`COUNT`] small numbers of either sign, some of which are equal, as values of the type
/// `named`. The number for a truth value is 0 or 1.
fn numbers(named: Named, seed: u64) -> Vec<u8> {
    let extent = named.extent() as usize;
    let mut bytes = vec![0; extent * COUNT as usize];
    for i in 0..COUNT {
        let value = [3, -2, 0, 7, 1, -5][((i * seed + seed) % 6) as usize];
        for &(part, at) in named.parts() {
            let at = i as usize * extent + at as usize;
            put(part, value, &mut bytes[at..at + part.size() as usize]);
        }
    }
    bytes
}

fn put(named: Named, value: i64, bytes: &mut [u8]) {
    let size = bytes.len();
    match named.class() {
        Class::Float if size == 4 => bytes.copy_from_slice(&(value as f32 / 4.0).to_le_bytes()),
        Class::Float if size == 8 => bytes.copy_from_slice(&(value as f64 / 4.0).to_le_bytes()),
        Class::Complex if size == 8 || size == 16 => {
            let half = if size == 8 { Named::Float } else { Named::Double };
            let (re, im) = bytes.split_at_mut(size / 2);
            put(half, value, re);
            put(half, 2 - value, im);
        }
        Class::Logical => bytes[0] = u8::from(value > 0),
        // Numbers in binary16, binary128 and the format of x87 are made from their bits. Their
        // values are powers of two, so that only sign and exponent matter.
        Class::Float => {
            let x87 = cfg!(target_arch = "x86_64") && named == Named::LongDouble;
            let (bias, fraction) =
                if size == 2 { (15_u128, 10) } else { (16383, if x87 { 63 } else { 112 }) };
            let power = bias + value.unsigned_abs() as u128 % 8;
            let (width, leading) =
                if size == 2 { (15, 0) } else { (if x87 { 79 } else { 127 }, u128::from(x87)) };
            let bits = u128::from(value < 0) << width | power << (fraction + leading as u32) | leading << 63;
            bytes.copy_from_slice(&bits.to_le_bytes()[..size]);
        }
        Class::Complex => {
            let half = match named {
                Named::Complex4 => Named::Real2,
                Named::Complex32 => Named::Real16,
                _ => Named::LongDouble,
            };
            let (re, im) = bytes.split_at_mut(size / 2);
            put(half, value, re);
            put(half, 2 - value, im);
        }
        _ => {
            let wide = i128::from(value).to_le_bytes();
            bytes.copy_from_slice(&wide[..size]);
        }
    }
}

impl Entry {
    fn new(op: Op, named: Named) -> Entry {
        let t = Datatype::named(named);
        let (input, before) = (numbers(named, 1), numbers(named, 5));
        let mut stream = vec![0; (t.size() * COUNT as i64) as usize];
        interp::pack(&t, COUNT, &input, 0, &mut stream).unwrap();
        let mut after = before.clone();
        let mut loose = interp::reduce::unpack(op, &t, COUNT, &stream, &mut after, 0);
        // Bytes of padding have no defined value, so mark them in `loose` too. Padding may be
        // between the parts of an element, after them, or inside the 16 bytes of an x87 number.
        for (i, loose) in loose.iter_mut().enumerate() {
            let at = i as i64 % t.extent();
            let of_part = |&(part, start): &(Named, i64)| {
                let inside = at - start;
                let x87 = matches!(
                    part,
                    Named::LongDouble | Named::CLongDoubleComplex | Named::CxxLongDoubleComplex
                );
                (0..part.size()).contains(&inside) && !(x87 && part.alignment() == 16 && inside % 16 >= 10)
            };
            *loose |= !named.parts().iter().any(of_part);
        }
        Entry { op, named, input, before, after, loose }
    }

    fn name(&self) -> String {
        format!("reduce.{}.{}", self.op, self.named.mpi_name())
    }

    fn is_right(&self, digits: &str) -> bool {
        digits.len() == 2 * self.after.len()
            && (0..self.after.len()).all(|i| {
                let byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16);
                self.loose[i] || byte == Ok(self.after[i])
            })
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[test]
fn hosts_agree_with_the_definition_of_reductions() {
    // Make one entry for each operation and each named type that the operation takes. The
    // operations replace and no-op are left out.
    let ops = || Op::ALL.into_iter().filter(|op| !matches!(op, Op::Replace | Op::NoOp));
    let entries: Vec<Entry> = ops()
        .flat_map(|op| Named::ALL.iter().filter(move |n| op.takes(**n)).map(move |&n| Entry::new(op, n)))
        .collect();
    for host in [Host::Mpich, Host::OpenMpi] {
        let program = host.compile("reduce", &[]);
        let lines: String = entries.iter().fold(String::new(), |mut out, e| {
            let (name, op) = (e.named.mpi_name(), e.op);
            let _ = writeln!(out, "{name} {op} {COUNT} {} {}", digits(&e.input), digits(&e.before));
            out
        });
        let text = answers(host, program, lines);
        // Compare the program's answers, which are one line for each entry in the same order, with
        // what the reference interpreter has computed. Types that the MPI library does not have are
        // skipped.
        let (mut wrong, mut asked, mut differences) = (BTreeSet::new(), 0, String::new());
        let mut said = text.lines();
        for entry in &entries {
            let line =
                said.next().unwrap_or_else(|| panic!("{host:?} said nothing of {}\n{text}", entry.name()));
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words[..2], [entry.named.mpi_name(), entry.op.name()], "{host:?}: {line}");
            if words[2] == "absent" {
                continue;
            }
            asked += 1;
            if words.len() != 4 || words[2] != "0" || !entry.is_right(words[3]) {
                wrong.insert(entry.name());
                if !known(host, &entry.name(), Symptom::Bytes) {
                    let _ = writeln!(
                        differences,
                        "{}\n  host       {:?}\n  definition {}",
                        entry.name(),
                        &words[2..],
                        digits(&entry.after)
                    );
                }
            }
        }
        assert!(asked >= 200, "{host:?} has only {asked} of {}", entries.len());
        Excluded::name_wrong(host, &wrong);
        assert!(
            differences.is_empty(),
            "{host:?} or the interpreter is wrong (MPI 5.0, 6.9); a fault of the host belongs in known_faults:\n{differences}"
        );
    }
}
