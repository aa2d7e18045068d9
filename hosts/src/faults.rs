//! Table of known faults of MPI libraries in moving the bytes of a datatype. Each row gives the
//! library, its versions and the datatypes concerned.
//!
//! There are two kinds of faults. With the first kind, a library reads and writes the right places,
//! but loses some bytes inside elements. Such datatypes may be converted: a converted call moves
//! all bytes right. With the second kind, a library reads and writes wrong places. It makes the
//! same mistake at both ends of a transfer, so a program that uses one datatype at both ends gets
//! the right result without ddtc. If ddtc converted only one end of such a transfer, the result
//! would be wrong. So these datatypes are left to the library.
//!
//! Each row was found by the fuzzer of MPI libraries (docs/findings) or by comparing random
//! datatypes packed by the library with their type maps. The preload library looks up each datatype
//! that it decodes in the table. It also uses the table to name the differences that its checks
//! find.

use std::ops::Range;

use ddtc::internal::datatype::{Combiner, Datatype, Distribution, Named, Order};
use ddtc::internal::exec::interp;
use ddtc::internal::methods::*;

use crate::policy::{Family, Library};

/// Effect of a fault on the bytes of a datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The library reads and writes places other than those of the type map.
    OtherPlaces,
    /// The library reads and writes the right places, but loses bytes of elements of these named
    /// types: those at the offsets [`LOST`] in each 16 bytes.
    LostBytes(&'static [Named]),
}

/// Offsets, in 16 bytes, of the bytes that are lost if a library moves the 16 bytes as an x87 `long
/// double`, which has 10 bytes.
pub const LOST: Range<usize> = 10..16;

/// Named types that contain an x87 `long double`.
const EXTENDED: &[Named] =
    &[Named::LongDouble, Named::CLongDoubleComplex, Named::CxxLongDoubleComplex, Named::LongDoubleInt];

/// Named types with parts of 16 bytes: those of [`EXTENDED`], and all others whose values consist
/// only of such parts, such as a complex number of two reals of 16 bytes.
const OF_16_BYTES: &[Named] = &[
    Named::LongDouble,
    Named::CLongDoubleComplex,
    Named::CxxLongDoubleComplex,
    Named::LongDoubleInt,
    Named::Real16,
    Named::Integer16,
    Named::Complex32,
];

/// A known fault of an MPI library.
#[derive(Debug)]
pub struct Fault {
    family: Family,
    /// First version with the fault, and first version without it. If no known version has the
    /// fault corrected, the end is [`UNMENDED`].
    versions: Range<[u32; 3]>,
    /// Effect on the bytes of a datatype.
    pub effect: Effect,
    /// Sentence that says what the library does.
    pub text: &'static str,
    /// Function that returns true if a datatype itself has the fault: because of its outermost
    /// constructor, or because it is a certain named type. The constructors that enclose the
    /// datatype do not matter.
    has: fn(&Datatype) -> bool,
}

/// End of the versions of a fault that no known version has corrected.
const UNMENDED: [u32; 3] = [u32::MAX; 3];
/// Beginning of the versions of a fault that the oldest tested version has.
const OLDEST: [u32; 3] = [0; 3];

/// All known faults. Those with `Effect::OtherPlaces` come first, because they decide whether a
/// datatype is converted. So [`find`] returns them rather than a fault that only loses bytes.
static FAULTS: [Fault; 8] = [
    Fault {
        family: Family::Mpich,
        versions: OLDEST..UNMENDED,
        effect: Effect::OtherPlaces,
        text: "MPICH steps from one instance to the next by the sum of the negative extents inside, not by the extent",
        has: |t| t.extent() < 0,
    },
    Fault {
        family: Family::Intel,
        versions: OLDEST..UNMENDED,
        effect: Effect::OtherPlaces,
        text: "Intel MPI places the rows of blocks of a cyclic dimension of MPI_Type_create_darray wrongly",
        has: has_blocks_of_short_lines,
    },
    Fault {
        family: Family::Intel,
        versions: OLDEST..UNMENDED,
        effect: Effect::OtherPlaces,
        text: "Intel MPI uses the first instance for all instances if constructors are nested at least 16 deep",
        has: |t| t.depth() >= 16,
    },
    Fault {
        family: Family::Intel,
        versions: OLDEST..UNMENDED,
        effect: Effect::OtherPlaces,
        text: "Intel MPI treats blocks as contiguous that overlap, or whose extent is not positive",
        has: |t| overlaps(t) || t.extent() <= 0 && t.size() > 0,
    },
    Fault {
        family: Family::OpenMpi,
        versions: OLDEST..UNMENDED,
        effect: Effect::OtherPlaces,
        text: "Open MPI builds types with a byte stride of -1 wrongly",
        has: steps_back_one_byte,
    },
    Fault {
        family: Family::OpenMpi,
        versions: OLDEST..UNMENDED,
        effect: Effect::OtherPlaces,
        text: "Open MPI joins blocks that overlap",
        has: overlaps,
    },
    Fault {
        family: Family::Mpich,
        versions: OLDEST..UNMENDED,
        effect: Effect::LostBytes(OF_16_BYTES),
        text: "MPICH moves 16-byte elements as long double: 6 bytes are lost",
        has: |t| is_named(t, OF_16_BYTES),
    },
    Fault {
        family: Family::OpenMpi,
        versions: OLDEST..UNMENDED,
        effect: Effect::LostBytes(EXTENDED),
        text: "Open MPI moves long double by value: its 6 bytes of padding are lost",
        has: |t| is_named(t, EXTENDED),
    },
];

impl Fault {
    fn is_of(&self, library: Library) -> bool {
        self.family == library.family && self.versions.contains(&library.version)
    }
}

/// Returns the fault because of which a library moves bytes from or to other places than the type
/// map of the datatype says; `None` if none is known. A datatype with such a fault is not
/// converted.
///
/// A library of no known family may be derived from any other, so it is assumed to have the faults
/// of all families.
pub fn misplaces(library: Library, t: &Datatype) -> Option<&'static Fault> {
    // This is called for each decoded datatype. So the faults of the library are selected only
    // once, and nothing is allocated for a chain of constructors with one child each.
    let is_its =
        |f: &Fault| f.effect == Effect::OtherPlaces && (f.is_of(library) || library.family == Family::Other);
    let its = FAULTS.iter().enumerate().filter(|(_, f)| is_its(f));
    let its: u32 = its.map(|(place, _)| 1 << place).sum();
    let fault_of = |node: &Datatype| {
        FAULTS.iter().enumerate().find(|(place, f)| its >> place & 1 != 0 && (f.has)(node)).map(|(_, f)| f)
    };
    if its == 0 {
        return None;
    }
    let mut node = t;
    loop {
        if let Some(fault) = fault_of(node) {
            return Some(fault);
        }
        let mut children = node.combiner().children();
        node = match (children.next(), children.next()) {
            (None, _) => return None,
            (Some(only), None) => only,
            (Some(_), Some(_)) => return node.nodes().skip(1).find_map(fault_of),
        };
    }
}

/// Returns the first known fault that explains why a library moves the bytes of a datatype wrongly.
pub fn find(library: Library, t: &Datatype) -> Option<&'static Fault> {
    FAULTS.iter().filter(|f| f.is_of(library)).find(|f| t.nodes().any(|node| (f.has)(node)))
}

/// Returns true if a library is known to lose byte `at` of an element of a named type.
pub fn loses(library: Library, named: Named, at: usize) -> bool {
    let has = |f: &Fault| matches!(f.effect, Effect::LostBytes(of) if of.contains(&named));
    LOST.contains(&(at % 16)) && FAULTS.iter().any(|f| f.is_of(library) && has(f))
}

/// Returns true if `theirs`, packed by a library, equals `ours`, packed by the definition, except
/// for bytes inside elements that the library is known to lose.
pub fn are_same_but_lost(library: Library, t: &Datatype, count: u64, ours: &[u8], theirs: &[u8]) -> bool {
    if ours == theirs {
        return true;
    }
    let mut offset = 0;
    let mut same = ours.len() == theirs.len();
    let walked = interp::for_each(t, count, &mut |_, len, named| {
        let (Some(a), Some(b)) = (ours.get(offset..offset + len), theirs.get(offset..offset + len)) else {
            same = false;
            return;
        };
        same &= a == b || (0..len).all(|i| a[i] == b[i] || loses(library, named, i));
        offset += len;
    });
    same && walked.is_ok()
}

/// Returns true if a type is one of these named types. A type of `MPI_Type_create_f90_real`,
/// `_complex` or `_integer` counts as the named type that it stands for.
fn is_named(t: &Datatype, wanted: &[Named]) -> bool {
    let meant = match t.combiner() {
        Combiner::F90Real { .. } | Combiner::F90Complex { .. } | Combiner::F90Integer { .. } => t.expansion(),
        _ => Some(t),
    };
    let named = |t: &Datatype| matches!(t.combiner(), Combiner::Named(n) if wanted.contains(n));
    meant.is_some_and(|t| t.nodes().any(named))
}

/// Returns true if entries of a type map certainly overlap, because the datatype has more bytes
/// than its true extent. Some types whose entries overlap are not recognized by this test.
fn overlaps(t: &Datatype) -> bool {
    t.size() > t.true_extent()
}

fn steps_back_one_byte(t: &Datatype) -> bool {
    match t.combiner() {
        Combiner::Vector { stride, oldtype, .. } => stride.checked_mul(oldtype.extent()) == Some(-1),
        Combiner::Hvector { stride, .. } => *stride == -1,
        _ => false,
    }
}

/// Returns true if Intel MPI places blocks of a distributed array wrongly: a cyclic dimension has
/// blocks of more than one line, and the type of a line has a different extent than a line of the
/// global array.
///
/// Intel MPI builds the dimensions from the fastest to the slowest. In a cyclic dimension, the
/// lines of a block are instances of the type of all faster dimensions, placed one extent apart.
/// That extent equals the length of a line of the global array only under two conditions. First,
/// the fastest dimension is cyclic (the library then sets the extent) or has one process. Second,
/// every other faster dimension has one process.
fn has_blocks_of_short_lines(t: &Datatype) -> bool {
    let Combiner::Darray { distribs, dargs, psizes, order, .. } = t.combiner() else { return false };
    let dimensions = distribs.iter().zip(dargs.iter()).zip(psizes.iter());
    let mut has_whole_lines = true;
    let mut is_fastest = true;
    let mut has = |((distribution, block), processes): ((&Distribution, &Option<i64>), &i64)| {
        let is_cyclic = *distribution == Distribution::Cyclic;
        let found = is_cyclic && block.unwrap_or(1) > 1 && !has_whole_lines;
        has_whole_lines = is_cyclic && is_fastest || has_whole_lines && *processes == 1;
        is_fastest = false;
        found
    };
    match order {
        Order::Fortran => dimensions.into_iter().any(&mut has),
        Order::C => dimensions.into_iter().rev().any(&mut has),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEL: Library = Library::new(Family::Intel, [2021, 18, 1]);
    const MPICH: Library = Library::new(Family::Mpich, [5, 0, 2]);
    const OPEN_MPI: Library = Library::new(Family::OpenMpi, [5, 0, 11]);

    fn is_misplaced(library: Library, text: &str) -> bool {
        misplaces(library, &text.parse().unwrap()).is_some()
    }

    #[test]
    fn faults_that_misplace_are_found_at_any_depth() {
        let cyclic = "darray(4,0,[128,2],[cyclic,block],[2,default],[2,2],C,int)";
        let vector = "vector(8,1,-1,char)";
        let steps = "contiguous(3,resized(6,-9,contiguous(4,byte)))";
        for (library, text) in [(INTEL, cyclic), (OPEN_MPI, vector), (MPICH, steps), (INTEL, steps)] {
            for outer in ["T", "dup(T)", "vector(2,1,3,T)", "struct([1,1],[0,999],[int,T])"] {
                let text = outer.replace('T', text);
                assert!(is_misplaced(library, &text), "{library} {text}");
            }
        }
        for (library, text) in [(MPICH, cyclic), (OPEN_MPI, cyclic), (MPICH, vector), (OPEN_MPI, steps)] {
            assert!(!is_misplaced(library, text), "{library} {text}");
        }
    }

    #[test]
    fn a_library_of_no_known_family_may_misplace_what_any_family_does() {
        let other = Library::from_version_text("CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)");
        assert_eq!(other.family, Family::Other);
        let deep = "contiguous(1,".repeat(16) + "vector(2,1,2,int)" + &")".repeat(16);
        for text in [
            "contiguous(3,resized(6,-9,contiguous(4,byte)))",
            "darray(4,0,[128,2],[cyclic,block],[2,default],[2,2],C,int)",
            &deep,
            "hvector(3,1,1,double)",
            "vector(8,1,-1,char)",
            "hindexed([1,1],[0,8],double_complex)",
        ] {
            assert!(is_misplaced(other, text), "{text}");
            // A difference in its bytes is explained by no fault, because none is known.
            assert!(find(other, &text.parse().unwrap()).is_none(), "{text}");
        }
        assert!(!is_misplaced(other, "vector(8,1,2,double)"));
        assert!(!loses(other, Named::LongDouble, 12));
    }

    #[test]
    fn lost_bytes_misplace_nothing() {
        for text in ["vector(2,1,2,long_double)", "vector(2,1,2,real16)", "vector(2,1,2,f90_real(33,37))"] {
            let t: Datatype = text.parse().unwrap();
            assert!(misplaces(MPICH, &t).is_none());
            assert!(find(MPICH, &t).is_some_and(|f| f.text.contains("6 bytes are lost")), "{text}");
        }
        let lost: Vec<usize> = (0..36).filter(|&at| loses(MPICH, Named::LongDoubleInt, at)).collect();
        assert_eq!(lost, [10, 11, 12, 13, 14, 15, 26, 27, 28, 29, 30, 31]);
        assert!(!loses(MPICH, Named::Double, 12) && !loses(INTEL, Named::LongDouble, 12));
        assert!(loses(OPEN_MPI, Named::LongDouble, 12) && !loses(OPEN_MPI, Named::Real16, 12));
    }

    #[test]
    fn packed_bytes_are_the_same_but_for_lost_bytes() {
        let t: Datatype = "struct([1,1],[0,16],[long_double,int])".parse().unwrap();
        let ours: Vec<u8> = (1..=40).collect();
        let with = |at: usize| {
            let mut theirs = ours.clone();
            theirs[at] = 0;
            theirs
        };
        let same = |library, at| are_same_but_lost(library, &t, 2, &ours, &with(at));
        // An instance has 20 packed bytes, so the second one begins at packed byte 20.
        let lost: Vec<usize> = (0..40).filter(|&at| same(MPICH, at)).collect();
        assert_eq!(lost, [10, 11, 12, 13, 14, 15, 30, 31, 32, 33, 34, 35]);
        assert!((0..40).all(|at| !same(INTEL, at)));
    }

    /// The expected values were found by comparing bytes packed by Intel MPI 2021.18.1 with the
    /// type maps.
    #[test]
    fn distributed_arrays_of_intel_mpi() {
        for (text, misplaced) in [
            ("darray(4,0,[61,54],[cyclic,block],[2,default],[2,2],C,double)", true),
            ("darray(4,0,[61,54],[cyclic,block],[2,default],[2,2],Fortran,double)", false),
            ("darray(4,0,[61,54],[cyclic,block],[default,default],[2,2],C,double)", false),
            // Block-cyclic in both dimensions, as the arrays of ScaLAPACK are.
            ("darray(4,1,[64,64],[cyclic,cyclic],[8,8],[2,2],Fortran,double)", false),
            ("darray(3,0,[12,7,4],[none,cyclic,cyclic],[default,4,4],[1,3,1],Fortran,short)", true),
            ("darray(3,1,[6,5,8],[none,cyclic,block],[default,3,default],[1,1,3],C,short)", true),
            ("darray(2,1,[6,5],[cyclic,none],[3,default],[2,1],C,short)", false),
        ] {
            assert_eq!(is_misplaced(INTEL, text), misplaced, "{text}");
        }
    }

    #[test]
    fn blocks_that_overlap() {
        for text in [
            "hvector(3,1,1,double)",
            "hindexed([1,1],[0,1],short)",
            "indexed([1,2],[-1,2],resized(-17,0,double))",
        ] {
            assert!(is_misplaced(INTEL, text), "{text}");
        }
        assert!(is_misplaced(OPEN_MPI, "hindexed([1,1],[0,8],double_complex)"));
        assert!(!is_misplaced(MPICH, "hvector(3,1,1,double)"));
        // Adjacent blocks, blocks with gaps, and an empty type.
        for text in ["hvector(3,1,8,double)", "hindexed([1,1],[0,9],short)", "contiguous(0,int)"] {
            assert!(!is_misplaced(INTEL, text) && !is_misplaced(OPEN_MPI, text), "{text}");
        }
    }
}
