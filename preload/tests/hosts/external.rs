//! Test of external32 as MPI libraries compute it, for every named type and some structures. For
//! the bytes of these types, an MPI library is a third opinion, after the text of the standard and
//! ddtc.
//!
//! The bytes that the reference interpreter computes by the text of the standard are compared with
//! those that an unmodified MPI library packs and unpacks. If they differ, one of the two is wrong.
//! Faults of the library are in `known_faults`, whose entries for this test are `external32.TYPE`;
//! any other difference fails the test.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use ddtc::internal::datatype::c::{HostBounds, constructors};
use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::exec::interp::external32;
use ddtc::internal::methods::*;

use crate::faults::{Excluded, Symptom, known};
use crate::programs::answers;
use crate::setup::{Host, hosts};

/// Names and constructors of the derived datatypes that the test asks for, besides all named types:
/// structures, strides, types whose values have another size in external32, and values of 2, 4 and
/// 8 bytes, which are byte-swapped.
const LAYOUTS: [(&str, &str); 9] = [
    ("doubles", "contiguous(9, double)"),
    ("floats_by_16", "vector(9, 1, 4, float)"),
    ("shorts_by_16", "vector(9, 1, 8, short)"),
    ("blocks", "indexed([1, 3, 2], [0, 5, 20], int)"),
    ("struct", "resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float]))"),
    ("struct_char", "resized(0, 24, struct([3, 1, 1], [0, 4, 8], [char, short, double]))"),
    ("struct_long", "resized(0, 32, struct([1, 1, 2], [0, 8, 16], [int, long, unsigned_long]))"),
    ("struct_complex", "resized(0, 32, struct([1, 1], [0, 8], [float, double_complex]))"),
    ("backwards", "hvector(5, 1, -12, resized(0, 8, hindexed([1], [48], double)))"),
];
const COUNT: u64 = 3;

/// Returns true if `known_faults` may have the entry `entry` for this test: `external32.` followed
/// by the name of a named type or of one of [`LAYOUTS`].
pub(crate) fn has(entry: &str) -> bool {
    let Some(name) = entry.strip_prefix("external32.") else { return false };
    LAYOUTS.iter().any(|layout| layout.0 == name) || Named::ALL.iter().any(|named| named.mpi_name() == name)
}

struct Entry {
    datatype: Datatype,
    /// The word by which the program `external32` is asked for the datatype: the name of a named
    /// type, or the number of a layout. The field `name` is the name of the entry in
    /// `known_faults`.
    asked: String,
    name: String,
    user: Vec<u8>,
    stream: Vec<u8>,
}

impl Entry {
    /// Makes an entry for the datatype `t`. Its values in user memory are unpacked from a pattern
    /// of external32 bytes, so that external32 can represent each value.
    fn new(asked: String, name: &str, t: &Datatype) -> Entry {
        let span = (t.true_ub() + (COUNT as i64 - 1) * t.extent()) as usize;
        let pattern: Vec<u8> = (0..4 * span + 64).map(|i| (i * 37 + i / 11 + 9) as u8).collect();
        let mut user = vec![0; span];
        external32::unpack(t, COUNT, &pattern, &mut user, 0).unwrap();
        let (stream, fit) = external32::pack(t, COUNT, &user, 0);
        fit.unwrap();
        Entry { datatype: t.clone(), asked, name: format!("external32.{name}"), user, stream }
    }

    /// Returns true if `user` has the bytes, in hexadecimal digits, that the entry's packed stream
    /// must unpack to. The padding of x87 long doubles may have any value.
    fn unpacked(&self, user: &str) -> bool {
        let byte =
            |i: usize| user.get(2 * i..2 * i + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(bytes) = (0..user.len() / 2).map(byte).collect::<Option<Vec<u8>>>() else { return false };
        let padded = self.datatype.type_map().any(|(basic, _)| {
            matches!(basic, Named::LongDouble | Named::CLongDoubleComplex | Named::CxxLongDoubleComplex)
        });
        let again = || external32::pack(&self.datatype, COUNT, &bytes, 0) == (self.stream.clone(), Ok(()));
        bytes == self.user || padded && bytes.len() == self.user.len() && again()
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Writes a C header with a function for each of `types` that makes the type by MPI calls, and
/// returns the path of the header. The file name depends on the contents, so that the program that
/// includes the header is compiled again if they change.
fn header(types: &[Datatype]) -> String {
    let (mut out, mut rows) = (String::from("#include <mpi.h>\n"), String::new());
    for (i, t) in types.iter().enumerate() {
        let _ = writeln!(out, "static MPI_Datatype make_{i}(void) {{");
        let root = constructors(t, HostBounds::Resized, &mut out);
        let _ = writeln!(out, "    return {root};\n}}");
        let _ = write!(rows, "make_{i}, ");
    }
    let _ = writeln!(out, "static MPI_Datatype (*const make[])(void) = {{{rows}}};");
    let hash = out.bytes().fold(5381_u64, |hash, byte| hash.wrapping_mul(33) ^ u64::from(byte));
    let file = hosts().join(format!("bin/external32-{hash:016x}.h"));
    fs::write(&file, out).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn hosts_agree_with_the_definition_of_external32() {
    // Make one entry for each named type except the markers, and one entry for each of [`LAYOUTS`].
    // The program `external32` gets the layouts by a generated header.
    let types: Vec<Datatype> = LAYOUTS.iter().map(|(_, text)| text.parse().unwrap()).collect();
    let named = Named::ALL.iter().filter(|named| !named.is_marker());
    let mut entries: Vec<Entry> = named
        .map(|&named| Entry::new(named.mpi_name().to_owned(), named.mpi_name(), &Datatype::named(named)))
        .collect();
    entries.extend(
        LAYOUTS.iter().zip(&types).enumerate().map(|(i, ((name, _), t))| Entry::new(i.to_string(), name, t)),
    );
    let header = header(&types);
    // Only Open MPI is asked. MPICH 5.0.2 ends the process if it gets a type that its conversion to
    // external32 does not know.
    for host in [Host::OpenMpi] {
        let program = host.compile("external32", &["-include", &header]);
        let lines: String = entries.iter().fold(String::new(), |mut out, e| {
            let _ = writeln!(out, "{} {COUNT} {} {}", e.asked, digits(&e.user), digits(&e.stream));
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
                said.next().unwrap_or_else(|| panic!("{host:?} said nothing of {}\n{text}", entry.name));
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words[0], entry.asked, "{host:?}: {line}");
            if words[1..] == ["absent"] {
                continue;
            }
            asked += 1;
            let wanted = ["0", &digits(&entry.stream), "0", &digits(&entry.user)];
            if words.len() != 5 || words[1..4] != wanted[..3] || !entry.unpacked(words[4]) {
                wrong.insert(entry.name.clone());
                if !known(host, &entry.name, Symptom::Bytes) {
                    let _ = writeln!(
                        differences,
                        "{}\n  host       {:?}\n  definition {wanted:?}",
                        entry.name,
                        &words[1..]
                    );
                }
            }
        }
        assert!(asked >= 40, "{host:?} has only {asked} types");
        Excluded::name_wrong(host, &wrong);
        assert!(
            differences.is_empty(),
            "{host:?} or the interpreter is wrong (MPI 5.0, 14.5.2); a fault of the host belongs in known_faults:\n{differences}"
        );
    }
}
