//! Tests of the embedded corpora, which are lists of named datatypes: names, sizes, and the bounds
//! and bytes that were worked out by hand.

use std::collections::HashSet;

use ddtc::internal::corpus::{self, Size};
use ddtc::internal::exec::interp;
use ddtc::internal::methods::*;

#[test]
fn the_application_corpus_has_66_entries() {
    let entries = corpus::application();
    assert_eq!(entries.len(), 66);
    let families: HashSet<&str> = entries.iter().map(|e| e.family()).collect();
    assert_eq!(families.len(), 33);
    for size in [Size::S, Size::L] {
        assert_eq!(entries.iter().filter(|e| e.size == size).count(), 33);
    }
    for e in &entries {
        assert!(e.payload().is_some_and(|p| p > 0), "{}", e.name);
        assert!(e.span().is_some_and(|(low, high)| low >= 0 && high > low), "{}", e.name);
        assert!(!e.comment.is_empty(), "{}", e.name);
    }
}

#[test]
fn payloads_of_the_application_corpus_by_hand() {
    let payload = |name: &str| {
        let entries = corpus::application();
        entries.iter().find(|e| e.name == name).and_then(|e| e.payload()).unwrap_or_else(|| panic!("{name}"))
    };
    // The datatype consists of four two-dimensional patches of 16 x 3 floats and five
    // three-dimensional patches of 16 x 65 x 3 floats.
    assert_eq!(payload("WRF_x_vec.S"), 4 * (4 * 16 * 3 + 5 * 16 * 65 * 3));
    assert_eq!(payload("WRF_x_sa.L"), payload("WRF_x_vec.L"));
    // The datatype selects half of the sites (lattice points) of a slice in z, and each site has 24
    // bytes.
    assert_eq!(payload("MILC_su3_zd.S"), 2 * 8 * 32 * 24);
    assert_eq!(payload("NAS_LU_y.L"), 1020 * 40);
    assert_eq!(payload("NAS_MG_x.L"), 256 * 256 * 8);
    assert_eq!(payload("FFT2D_scatter.S"), 256 * 64 * 16);
    assert_eq!(payload("FFT2D_gather.S"), 256 * 64 * 16);
    assert_eq!(payload("LAMMPS_full.S"), 1662 * 64);
    assert_eq!(payload("LAMMPS_atomic.L"), 243 * 48);
    assert_eq!(payload("SPECFEM3D_cm.L"), (11_797 + 3009) * 12);
    assert_eq!(payload("vec_4096B.L"), 4 << 20);
    assert_eq!(payload("struct_i_d_f3.S"), 128 * 24);
    assert_eq!(payload("darray_cyc.L"), 1024 * 1024 * 8);
    assert_eq!(payload("transpose_1024x16B.L"), 16 << 20);
}

#[test]
fn bounds_of_the_corner_cases_are_those_worked_out_by_hand() {
    let mut checked = 0;
    for e in corpus::corner() {
        let Some(bounds) = e.bounds else { continue };
        let t = &e.datatype;
        let own =
            corpus::Bounds { lb: t.lb(), extent: t.extent(), true_lb: t.true_lb(), true_ub: t.true_ub() };
        assert_eq!(own, bounds, "{}", e.name);
        checked += 1;
    }
    assert!(checked > 60, "{checked}");
}

#[test]
fn by_hand_bytes_are_those_of_the_interpreter() {
    let mut checked = 0;
    for e in corpus::corner() {
        let Some(expected) = &e.expected else { continue };
        let mut packed = Vec::new();
        let mut put =
            |at: i64, len: usize, _| packed.extend((0..len as i64).map(|i| corpus::pattern(at + i)));
        interp::for_each(&e.datatype, e.count, &mut put).unwrap();
        assert_eq!(packed, *expected, "{}", e.name);
        checked += 1;
    }
    assert!(checked > 60, "{checked}");
}

#[test]
fn by_hand_bytes_are_as_many_as_the_payload() {
    let entries = corpus::corner();
    for e in entries.iter() {
        if let Some(expected) = &e.expected {
            assert_eq!(e.payload(), Some(expected.len() as u64), "{}", e.name);
        }
    }
    assert!(entries.iter().filter(|e| e.expected.is_some()).count() > 60);
}

#[test]
fn texts_of_the_corpus_are_read_back() {
    for e in corpus::application().iter().chain(&corpus::corner()) {
        // Leave out entries with very many arguments: printing a million rows shows nothing that
        // printing a thousand does not show.
        if e.datatype.arguments() < 20_000 {
            let again: ddtc::internal::datatype::Datatype = e.datatype.to_string().parse().unwrap();
            assert_eq!(again, e.datatype, "{}", e.name);
        }
    }
}

#[test]
fn errors_name_the_line_and_the_entry() {
    let error = corpus::parse("\n# fine\na = int\nb = vector(2, -1, 3, int)\n").unwrap_err().to_string();
    assert!(error.contains("line 4") && error.contains("'b'") && error.contains("blocklength"), "{error}");
    let error = corpus::parse("a = int\na = double\n").unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
    for text in [
        "a = @dag(-1)",
        "a = @dag(99999999)",
        "a = @dag(400)",
        "a = @none(1)",
        "a = @dag()",
        "a = contiguous(@fill(2,1), int)",
    ] {
        assert!(corpus::parse(text).is_err(), "{text}");
    }
}
