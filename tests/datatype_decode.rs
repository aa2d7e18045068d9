//! Tests of envelopes and contents against the tables of MPI 5.0, section 5.1.13, and of the
//! decoding of datatypes from envelopes and contents, including those of MPI libraries that return
//! wrong data.

use ddtc::internal::datatype::{Combiner, CombinerKind, Constants, Contents, Datatype, Envelope, Named};
use ddtc::internal::decode::{Introspect, Limits, Own, decode, decode_within};
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;

fn parse(text: &str) -> Datatype {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// A datatype and what its envelope and contents must be: the text of the datatype, its combiner,
/// and the lists of integers, addresses, large counts and datatypes.
type Row =
    (&'static str, CombinerKind, &'static [i32], &'static [i64], &'static [i64], &'static [&'static str]);

const ABI_C: i32 = 12;
const ABI_FORTRAN: i32 = 15;

use CombinerKind as K;

/// Datatypes whose contents have `int` counts, in the order of the tables of MPI 5.0, section
/// 5.1.13.
const SMALL: &[Row] = &[
    ("dup(int)", K::Dup, &[], &[], &[], &["int"]),
    ("contiguous(5,double)", K::Contiguous, &[5], &[], &[], &["double"]),
    ("vector(34,10,-64,double)", K::Vector, &[34, 10, -64], &[], &[], &["double"]),
    ("hvector(4,1,-5000000000,int)", K::Hvector, &[4, 1], &[-5000000000], &[], &["int"]),
    ("hvector_integer(4,1,7,int)", K::HvectorInteger, &[4, 1], &[7], &[], &["int"]),
    ("indexed([1,2],[0,-4],int)", K::Indexed, &[2, 1, 2, 0, -4], &[], &[], &["int"]),
    ("indexed([],[],int)", K::Indexed, &[0], &[], &[], &["int"]),
    ("hindexed([1,2],[0,4096],int)", K::Hindexed, &[2, 1, 2], &[0, 4096], &[], &["int"]),
    ("hindexed_integer([3],[9],char)", K::HindexedInteger, &[1, 3], &[9], &[], &["char"]),
    ("indexed_block(3,[0,9],double)", K::IndexedBlock, &[2, 3, 0, 9], &[], &[], &["double"]),
    ("hindexed_block(3,[0,90],float)", K::HindexedBlock, &[2, 3], &[0, 90], &[], &["float"]),
    ("struct([1,3],[0,16],[int,dup(float)])", K::Struct, &[2, 1, 3], &[0, 16], &[], &["int", "dup(float)"]),
    ("struct([],[],[])", K::Struct, &[0], &[], &[], &[]),
    ("struct_integer([2],[8],[ub])", K::StructInteger, &[1, 2], &[8], &[], &["ub"]),
    (
        "subarray([4,8],[1,3],[2,1],C,double)",
        K::Subarray,
        &[2, 4, 8, 1, 3, 2, 1, ABI_C],
        &[],
        &[],
        &["double"],
    ),
    (
        "darray(4,1,[6,4],[cyclic,block],[2,default],[2,2],Fortran,double)",
        K::Darray,
        &[4, 1, 2, 6, 4, 18, 17, 2, 19, 2, 2, ABI_FORTRAN],
        &[],
        &[],
        &["double"],
    ),
    ("f90_real(15,undefined)", K::F90Real, &[15, -32766], &[], &[], &[]),
    ("f90_complex(15,307)", K::F90Complex, &[15, 307], &[], &[], &[]),
    ("f90_integer(9)", K::F90Integer, &[9], &[], &[], &[]),
    ("resized(-3,9,int)", K::Resized, &[], &[-3, 9], &[], &["int"]),
    ("value_index(double,long)", K::ValueIndex, &[], &[], &[], &["double", "long"]),
];

/// Datatypes whose contents have `MPI_Count` counts.
const LARGE: &[Row] = &[
    ("contiguous(5,double)", K::Contiguous, &[], &[], &[5], &["double"]),
    ("vector(34,10,-64,double)", K::Vector, &[], &[], &[34, 10, -64], &["double"]),
    ("hvector(4,1,-8,int)", K::Hvector, &[], &[], &[4, 1, -8], &["int"]),
    ("indexed([1,2],[0,-4],int)", K::Indexed, &[], &[], &[2, 1, 2, 0, -4], &["int"]),
    ("hindexed([1,2],[0,4096],int)", K::Hindexed, &[], &[], &[2, 1, 2, 0, 4096], &["int"]),
    ("indexed_block(3,[0,9],double)", K::IndexedBlock, &[], &[], &[2, 3, 0, 9], &["double"]),
    ("hindexed_block(3,[0,90],float)", K::HindexedBlock, &[], &[], &[2, 3, 0, 90], &["float"]),
    ("struct([1,3],[0,16],[int,float])", K::Struct, &[], &[], &[2, 1, 3, 0, 16], &["int", "float"]),
    ("subarray([4,8],[1,3],[2,1],C,double)", K::Subarray, &[2, ABI_C], &[], &[4, 8, 1, 3, 2, 1], &["double"]),
    (
        "darray(4,1,[6,4],[none,block],[2,default],[1,4],Fortran,double)",
        K::Darray,
        &[4, 1, 2, 16, 17, 2, 19, 1, 4, ABI_FORTRAN],
        &[],
        &[6, 4],
        &["double"],
    ),
    ("resized(-3,9,int)", K::Resized, &[], &[], &[-3, 9], &["int"]),
];

fn check(t: &Datatype, row: &Row) {
    let &(text, combiner, integers, addresses, large_counts, datatypes) = row;
    let lengths = [integers.len(), addresses.len(), large_counts.len(), datatypes.len()].map(|n| n as i64);
    let envelope = t.envelope();
    assert_eq!(envelope.combiner, combiner, "{text}");
    assert_eq!(
        [envelope.integers, envelope.addresses, envelope.large_counts, envelope.datatypes],
        lengths,
        "{text}"
    );
    let contents = t.contents(&Constants::ABI).unwrap();
    assert_eq!(contents.integers, integers, "{text}");
    assert_eq!(contents.addresses, addresses, "{text}");
    assert_eq!(contents.large_counts, large_counts, "{text}");
    assert_eq!(contents.datatypes, datatypes.iter().map(|d| parse(d)).collect::<Vec<_>>(), "{text}");
    let again = Datatype::from_contents(combiner, contents, &Constants::ABI).unwrap();
    assert_eq!(again, *t);
    assert_eq!(again.is_large_count(), t.is_large_count(), "{text}");
    assert_eq!(again.arguments(), t.arguments());
    let arguments: i64 = lengths.iter().sum();
    assert_eq!(t.combiner().arguments() as i64, arguments, "{text}");
}

#[test]
fn small_forms() {
    for row in SMALL {
        check(&parse(row.0), row);
    }
}

#[test]
fn large_forms() {
    for row in LARGE {
        check(&parse(row.0).with_large_count(), row);
    }
    // A count that does not fit into an `int` makes the form with `MPI_Count` counts necessary.
    let t = parse("vector(3000000000,1,2,char)");
    assert!(t.is_large_count());
    check(&t, &("vector(3000000000,1,2,char)", K::Vector, &[], &[], &[3000000000, 1, 2], &["char"]));
    // Large byte addresses alone do not make the form with `MPI_Count` counts necessary.
    assert!(!parse("resized(0,5000000000,int)").is_large_count());
}

#[test]
fn kinds() {
    for (i, kind) in CombinerKind::all().enumerate() {
        assert_eq!(kind as usize, i);
        let debug = format!("{kind:?}").to_uppercase();
        assert_eq!(kind.mpi_name().replace("MPI_COMBINER_", "").replace('_', ""), debug);
    }
    assert_eq!(K::Named.abi_value(), 101);
    assert_eq!(K::ValueIndex.abi_value(), 117);
    assert!(K::F90Real.is_predefined() && !K::Dup.is_predefined());
}

#[test]
fn contents_refuse() {
    let named = parse("int").contents(&Constants::ABI).unwrap_err();
    assert_eq!(named.class(), ErrorClass::Type);
    let t = parse("indexed([1,2],[0,-4],int)");
    let short = t.contents_into(&Constants::ABI, &mut [0; 4], &mut [], &mut []).unwrap_err();
    assert_eq!(short.to_string(), "get_contents: max_integers = 4: must be at least the envelope's 5");
    let mut larger = [77; 7];
    t.contents_into(&Constants::ABI, &mut larger, &mut [], &mut []).unwrap();
    assert_eq!(larger, [2, 1, 2, 0, -4, 77, 77]);
    // The process grid of a `darray` consists of `int`s in the form with `int` counts and in that
    // with `MPI_Count` counts. So a larger number of processes is refused.
    let t = parse("darray(5000000000,0,[1],[cyclic],[1],[5000000000],C,int)");
    assert_eq!(t.contents(&Constants::ABI).unwrap_err().class(), ErrorClass::ValueTooLarge);
}

/// Checks that decoding one of ddtc's own datatypes gives an equal tree, in which each node has the
/// same flag of the form with `MPI_Count` counts. The lists of nodes are compared, too, which
/// checks that shared nodes stay shared.
fn round_trip(t: &Datatype) {
    let again = decode(&mut Own, t).unwrap();
    assert_eq!(again, *t);
    let flags = |t: &Datatype| t.nodes().map(Datatype::is_large_count).collect::<Vec<_>>();
    assert_eq!(flags(&again), flags(t), "{t}");
}

#[test]
fn decoding_our_own_gives_the_same_tree() {
    for row in SMALL.iter().chain(LARGE) {
        let t = parse(row.0);
        round_trip(&t);
        round_trip(&t.clone().with_large_count());
        round_trip(
            &Datatype::structure(&[1, 2], &[0, 1 << 20], &[t.clone().with_large_count(), t.dup()]).unwrap(),
        );
    }
    for text in [
        "int",
        "bounds(0,9,hvector(2,1,5,int))",
        "bounds(-8,100,int)",
        "struct([1,1],[0,50],[bounds(0,9,hvector(2,1,5,int)),dup(bounds(-8,100,int))])",
        "bounds(1,2,resized(3,4,int))",
        "darray(2,1,[100],[cyclic],[19],[2],C,int)",
    ] {
        round_trip(&parse(text));
    }
    let mut t = parse("int");
    for _ in 0..40 {
        t = Datatype::structure(&[1, 1], &[0, t.extent()], &[t.clone(), t]).unwrap();
    }
    round_trip(&t);
    std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(|| {
            let chain = (0..1_000_000).fold(parse("int"), |t, _| t.dup());
            round_trip(&chain);
        })
        .unwrap()
        .join()
        .unwrap();
}

/// Datatype of the simulated MPI library [`Table`]: its envelope, its contents, and its lower bound
/// and extent. The last part is `None` if the library is to return no bounds.
type MpiType = (Envelope, Contents<usize>, Option<(i64, i64)>);

/// A simulated MPI library whose datatypes are the entries of a table. `handles` is the number of
/// handles that the library gave out and that were not released yet.
#[derive(Default)]
struct Table {
    types: Vec<MpiType>,
    handles: i64,
    identities: bool,
    visits: u64,
}

fn envelope(combiner: K, integers: i64, addresses: i64, large_counts: i64, datatypes: i64) -> Envelope {
    Envelope { combiner, integers, addresses, large_counts, datatypes }
}

impl Table {
    fn add(&mut self, combiner: K, integers: &[i32], addresses: &[i64], datatypes: &[usize]) -> usize {
        let lengths = [integers.len(), addresses.len(), datatypes.len()].map(|n| n as i64);
        let envelope = envelope(combiner, lengths[0], lengths[1], 0, lengths[2]);
        let contents = Contents {
            integers: integers.into(),
            addresses: addresses.into(),
            large_counts: vec![],
            datatypes: datatypes.into(),
        };
        self.types.push((envelope, contents, None));
        self.types.len() - 1
    }

    fn int() -> Table {
        let mut table = Table::default();
        table.add(K::Named, &[], &[], &[]);
        table
    }
}

impl Introspect for Table {
    type Handle = usize;

    fn envelope(&mut self, &handle: &usize) -> Result<Envelope> {
        self.visits += 1;
        self.types.get(handle).map(|t| t.0).ok_or_else(|| Error::internal("library", "no such handle"))
    }

    fn contents(&mut self, &handle: &usize, _: &Envelope) -> Result<Contents<usize>> {
        let contents = self.types[handle].1.clone();
        self.handles += contents.datatypes.len() as i64;
        Ok(contents)
    }

    fn named(&mut self, _: &usize) -> Result<Named> {
        Ok(Named::Int)
    }

    fn bounds(&mut self, &handle: &usize) -> Result<Option<(i64, i64)>> {
        Ok(self.types[handle].2)
    }

    fn identity(&mut self, &handle: &usize) -> Option<u64> {
        self.identities.then_some(handle as u64)
    }

    fn release(&mut self, _: usize) {
        self.handles -= 1;
    }
}

fn refused(mut table: Table, root: usize, what: &str) {
    for identities in [false, true] {
        (table.identities, table.visits) = (identities, 0);
        let limits = Limits { nodes: 10_000, arguments: 100_000 };
        let error = decode_within(&mut table, &root, limits).unwrap_err().to_string();
        assert!(error.contains(what), "{error}, not {what}");
        assert_eq!(table.handles, 0, "{what}: handles not released");
        assert!(table.visits < 200_000, "{}", table.visits);
    }
}

#[test]
fn bounds_of_the_mpi_library_are_kept_where_they_differ() {
    let mut table = Table::int();
    table.types[0].2 = Some((0, 4));
    let vector = table.add(K::Hvector, &[2, 1], &[5], &[0]);
    table.types[vector].2 = Some((0, 9));
    let pair = table.add(K::Contiguous, &[2], &[], &[vector]);
    table.types[pair].2 = Some((0, 18));
    let t = decode(&mut table, &pair).unwrap();
    assert_eq!(t.to_string(), "contiguous(2,bounds(0,9,hvector(2,1,5,int)))");
    assert_eq!(table.handles, 0);
}

#[test]
fn libraries_with_identities_are_asked_once_a_node() {
    let mut table = Table::int();
    let mut top = 0;
    for _ in 0..40 {
        top = table.add(K::Struct, &[2, 1, 1], &[0, 64], &[top, top]);
    }
    table.identities = true;
    let t = decode(&mut table, &top).unwrap();
    assert_eq!(t.nodes().count(), 41);
    assert_eq!((table.visits, table.handles), (41, 0));
    table.identities = false;
    let limits = Limits { nodes: 10_000, ..Limits::DEFAULT };
    assert!(decode_within(&mut table, &top, limits).unwrap_err().to_string().contains("more nodes"));
    assert_eq!(table.handles, 0);
}

#[test]
fn hostile_numbers() {
    for bad in [-1, i64::MIN] {
        for place in 0..4 {
            let mut table = Table::int();
            let t = table.add(K::Contiguous, &[1], &[], &[0]);
            let e = &mut table.types[t].0;
            *[&mut e.integers, &mut e.addresses, &mut e.large_counts, &mut e.datatypes][place] = bad;
            refused(table, t, "must not be negative");
        }
    }
    for huge in [100_001, i64::MAX] {
        for place in 0..4 {
            let mut table = Table::int();
            let t = table.add(K::Contiguous, &[1], &[], &[0]);
            let e = &mut table.types[t].0;
            *[&mut e.integers, &mut e.addresses, &mut e.large_counts, &mut e.datatypes][place] = huge;
            refused(table, t, "more arguments than the limit");
        }
    }
}

#[test]
fn hostile_contents() {
    // For each combiner, make one of the arrays of its contents one entry too short or too long.
    // The envelope either announces the changed length (`honest`) or still has the proper one.
    for row in SMALL {
        let proper = parse(row.0).contents(&Constants::ABI).unwrap();
        for place in 0..4 {
            for longer in [false, true] {
                for honest in [false, true] {
                    let mut table = Table::int();
                    let datatypes = vec![0; proper.datatypes.len()];
                    let t = table.add(row.1, &proper.integers, &proper.addresses, &datatypes);
                    let (envelope, contents, _) = &mut table.types[t];
                    let changed = match place {
                        0 if longer => (contents.integers.push(1), true).1,
                        0 => contents.integers.pop().is_some(),
                        1 if longer => (contents.addresses.push(1), true).1,
                        1 => contents.addresses.pop().is_some(),
                        2 if longer => (contents.large_counts.push(1), true).1,
                        2 => false,
                        _ if longer => (contents.datatypes.push(0), true).1,
                        _ => contents.datatypes.pop().is_some(),
                    };
                    if !changed {
                        continue;
                    }
                    if honest {
                        envelope.integers = contents.integers.len() as i64;
                        envelope.addresses = contents.addresses.len() as i64;
                        envelope.large_counts = contents.large_counts.len() as i64;
                        envelope.datatypes = contents.datatypes.len() as i64;
                    }
                    refused(table, t, "");
                }
            }
        }
    }
    let mut table = Table::int();
    let t = table.add(K::Indexed, &[i32::MAX, 1, 2], &[], &[0]);
    refused(table, t, "too short");
    let mut table = Table::int();
    let t = table.add(K::Indexed, &[-1], &[], &[0]);
    refused(table, t, "count = -1");
    let mut table = Table::int();
    let t = table.add(K::Darray, &[1, 0, i32::MAX, 4], &[], &[0]);
    refused(table, t, "too short");
    let mut table = Table::int();
    let t = table.add(K::Subarray, &[1, 4, 2, 0, 99], &[], &[0]);
    refused(table, t, "MPI_ORDER_C");
    let mut table = Table::int();
    let t = table.add(K::Darray, &[1, 0, 1, 4, 99, 1, 1, ABI_C], &[], &[0]);
    refused(table, t, "array_of_distribs = 99");
    let mut table = Table::int();
    let t = table.add(K::Contiguous, &[-7], &[], &[0]);
    let up = table.add(K::Struct, &[2, 1, 1], &[0, 8], &[t, 0]);
    refused(table, up, "contiguous: count = -7");
    let mut table = Table::int();
    let t = table.add(K::Struct, &[3, 1, 1, 1], &[0, 8, 16], &[0, 12345, 0]);
    refused(table, t, "no such handle");
}

#[test]
fn endless_types_of_libraries() {
    // Decode a type that contains itself. If the simulated MPI library returns identities of types,
    // decoding recognizes the cycle. Otherwise the depth is infinite, and the limit on the number
    // of nodes stops decoding.
    let mut table = Table::int();
    let t = table.add(K::Contiguous, &[1], &[], &[1]);
    let limits = Limits { nodes: 10_000, arguments: 100_000 };
    let error = decode_within(&mut table, &t, limits).unwrap_err().to_string();
    assert!(error.contains("more nodes"), "{error}");
    table.identities = true;
    let error = decode_within(&mut table, &t, limits).unwrap_err().to_string();
    assert!(error.contains("cannot contain itself"), "{error}");
    assert_eq!(table.handles, 0);
    let mut table = Table::int();
    let wide = table.add(K::Struct, &[3, 1, 1, 1], &[0, 8, 16], &[1, 1, 1]);
    refused(table, wide, "");
}

#[test]
fn legacy_integer_combiners_are_kept() {
    let mut table = Table::int();
    let t = table.add(K::StructInteger, &[1, 2], &[8], &[0]);
    let t = table.add(K::HindexedInteger, &[1, 2], &[8], &[t]);
    let t = table.add(K::HvectorInteger, &[2, 2], &[-8], &[t]);
    let t = decode(&mut table, &t).unwrap();
    assert_eq!(
        t.to_string(),
        "hvector_integer(2,2,-8,hindexed_integer([2],[8],struct_integer([2],[8],[int])))"
    );
    assert!(matches!(t.combiner(), Combiner::Hvector { legacy: true, .. }));
}
