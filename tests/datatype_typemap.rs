//! Tests of the type maps of datatypes: they are compared with maps that were written by hand, and
//! with the bounds, signatures and expansions that follow from a map.

use ddtc::internal::datatype::{Datatype, Distribution, Named, Order, Signature};
use ddtc::internal::exec::interp;
use ddtc::internal::methods::*;

fn parse(text: &str) -> Datatype {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn displacements(t: &Datatype) -> Vec<i64> {
    t.type_map().map(|e| e.1).collect()
}

#[test]
fn by_hand() {
    let rows: &[(&str, &[i64])] = &[
        ("int", &[0]),
        ("double_int", &[0, 8]),
        ("lb", &[]),
        ("dup(vector(2,1,3,int))", &[0, 12]),
        ("contiguous(3,double)", &[0, 8, 16]),
        ("contiguous(2,resized(-3,9,int))", &[0, 9]),
        ("contiguous(3,resized(0,-8,int))", &[0, -8, -16]),
        ("vector(2,3,5,int)", &[0, 4, 8, 20, 24, 28]),
        ("vector(3,1,-2,short)", &[0, -4, -8]),
        ("hvector(2,2,9,char)", &[0, 1, 9, 10]),
        // The two copies of the inner vector interleave in memory, but the packed order contains
        // one whole copy after the other.
        ("hvector(2,1,4,vector(2,1,4,int))", &[0, 16, 4, 20]),
        ("hvector(3,1,0,int)", &[0, 0, 0]),
        ("indexed([2,0,1],[3,100,-1],double)", &[24, 32, -8]),
        ("hindexed([1,2],[2,-7],int)", &[2, -7, -3]),
        ("indexed_block(2,[5,1],float)", &[20, 24, 4, 8]),
        ("hindexed_block(2,[5,1],char)", &[5, 6, 1, 2]),
        ("struct([1,2,1],[8,0,-4],[int,short,float_int])", &[8, 0, 2, -4, 0]),
        ("subarray([3,4],[2,2],[1,1],C,int)", &[20, 24, 36, 40]),
        ("subarray([3,4],[2,2],[1,1],Fortran,int)", &[16, 20, 28, 32]),
        ("subarray([2,2,3],[1,2,2],[1,0,1],C,char)", &[7, 8, 10, 11]),
        // If 7 elements are distributed cyclic(2) over 2 processes, process 1 owns elements 2, 3
        // and 6.
        ("darray(2,1,[7],[cyclic],[2],[2],C,int)", &[8, 12, 24]),
        // If 7 elements are distributed in blocks of ceil(7/3) = 3 over 3 processes, process 2 owns
        // element 6.
        ("darray(3,2,[7],[block],[default],[3],C,int)", &[24]),
        ("darray(3,2,[2],[block],[default],[3],C,int)", &[]),
        // Process 1 of the row-major 2 x 2 process grid has coordinates (0, 1), so it owns rows 0
        // and 2 and columns 1 and 3.
        ("darray(4,1,[3,4],[cyclic,cyclic],[default,default],[2,2],C,char)", &[1, 3, 9, 11]),
        ("darray(4,1,[3,4],[cyclic,cyclic],[default,default],[2,2],Fortran,char)", &[3, 5, 9, 11]),
        ("darray(2,1,[2,3],[none,block],[7,2],[1,2],Fortran,char)", &[4, 5]),
        ("f90_real(15,307)", &[0]),
        ("resized(-8,100,vector(2,1,2,int))", &[0, 8]),
        ("bounds(0,9,hvector(2,1,5,int))", &[0, 5]),
        ("value_index(long,short)", &[0, 8]),
        ("value_index(signed_char,long)", &[0, 8]),
        // Element types and blocks that are empty have no entries, however often they are repeated.
        ("contiguous(1000000000000000000,contiguous(0,int))", &[]),
        ("struct([0,3,1],[5,6,7],[int,struct([],[],[]),char])", &[7]),
    ];
    for (text, want) in rows {
        assert_eq!(displacements(&parse(text)), *want, "{text}");
    }
    let basics: Vec<Named> = parse("struct([1,2],[0,8],[2int,double])").type_map().map(|e| e.0).collect();
    assert_eq!(basics, [Named::Int, Named::Int, Named::Double, Named::Double]);
}

/// Checks that the size, bounds, signature and alignment of `t`, and its expansion, agree with what
/// follows from its type map alone.
fn consistent(t: &Datatype) {
    let map: Vec<(Named, i64)> = t.type_map().collect();
    assert_eq!(t.size(), map.iter().map(|e| e.0.size()).sum::<i64>(), "{t}");
    assert_eq!(t.true_lb(), map.iter().map(|e| e.1).min().unwrap_or(0), "{t}");
    assert_eq!(t.true_ub(), map.iter().map(|e| e.1 + e.0.size()).max().unwrap_or(0), "{t}");
    let signature = map.iter().fold(Signature::EMPTY, |s, e| s.then(&Signature::from_named(e.0)));
    assert_eq!(t.signature(), signature, "{t}");
    assert_eq!(
        t.alignment(),
        map.iter().map(|e| e.0.alignment()).max().unwrap_or(1).max(t.alignment()),
        "{t}"
    );
    if let Some(expansion) = t.expansion() {
        assert_eq!(map, expansion.type_map().collect::<Vec<_>>(), "{t}");
    }
    let twice: Vec<(Named, i64)> = ddtc::internal::datatype::TypeMap::instances(t, 2).collect();
    let shifted = map.iter().map(|e| (e.0, e.1 + t.extent()));
    assert_eq!(twice, map.iter().copied().chain(shifted).collect::<Vec<_>>(), "{t}");
}

#[test]
fn summaries_follow_from_the_map() {
    for text in [
        "hvector(4,1,4,vector(3,1,4,int))",
        "struct([1,1,3,0],[0,8,16,1],[int,double,float,double])",
        "subarray([5,4,8],[2,1,3],[3,2,1],C,resized(-4,20,struct([1,1],[0,8],[int,char])))",
        "subarray([5,4,8],[5,4,8],[0,0,0],Fortran,contiguous(2,double_int))",
        "darray(6,5,[9,11],[cyclic,block],[2,default],[2,3],Fortran,vector(2,1,3,short))",
        "indexed([2,0,1],[3,100,-1],value_index(long,short))",
        "contiguous(3,f90_complex(18,4931))",
        "resized(0,0,dup(int))",
    ] {
        consistent(&parse(text));
    }
}

/// Compares small two-dimensional darrays with a search over all global indices, in which `owner`
/// computes the process that owns an index.
#[test]
fn darray_by_brute_force() {
    let owner =
        |distribution: Distribution, darg: Option<i64>, gsize: i64, psize: i64, g: i64| match distribution {
            Distribution::None => 0,
            Distribution::Block => g / darg.unwrap_or((gsize + psize - 1) / psize),
            Distribution::Cyclic => g / darg.unwrap_or(1) % psize,
        };
    let kinds = [
        (Distribution::None, None),
        (Distribution::Block, None),
        (Distribution::Block, Some(4)),
        (Distribution::Cyclic, None),
        (Distribution::Cyclic, Some(2)),
        (Distribution::Cyclic, Some(3)),
        (Distribution::Cyclic, Some(9)),
    ];
    let child = parse("struct([1,1],[0,4],[int,char])");
    let mut checked = 0;
    for (k0, d0) in kinds {
        for (k1, d1) in kinds {
            for gsizes in [[1, 1], [5, 3], [7, 4], [8, 8], [3, 10]] {
                for psizes in [[1, 1], [2, 3], [3, 1], [1, 4], [4, 2]] {
                    let valid = |k, d: Option<i64>, i: usize| match (k, d) {
                        (Distribution::None, _) => psizes[i] == 1,
                        (Distribution::Block, Some(d)) => d * psizes[i] >= gsizes[i],
                        _ => true,
                    };
                    let size = psizes[0] * psizes[1];
                    let mut seen = 0;
                    for rank in 0..size {
                        for order in [Order::C, Order::Fortran] {
                            let t = Datatype::darray(
                                size,
                                rank,
                                &gsizes,
                                &[k0, k1],
                                &[d0, d1],
                                &psizes,
                                order,
                                &child,
                            );
                            assert_eq!(t.is_ok(), valid(k0, d0, 0) && valid(k1, d1, 1));
                            let Ok(t) = t else { continue };
                            let mut want = Vec::new();
                            for position in 0..gsizes[0] * gsizes[1] {
                                let (g0, g1) = match order {
                                    Order::C => (position / gsizes[1], position % gsizes[1]),
                                    Order::Fortran => (position % gsizes[0], position / gsizes[0]),
                                };
                                let at = owner(k0, d0, gsizes[0], psizes[0], g0) * psizes[1]
                                    + owner(k1, d1, gsizes[1], psizes[1], g1);
                                if at == rank {
                                    want.extend([position * 8, position * 8 + 4]);
                                }
                            }
                            assert_eq!(displacements(&t), want, "{t}");
                            consistent(&t);
                            assert_eq!((t.lb(), t.extent()), (0, 8 * gsizes[0] * gsizes[1]));
                            seen += want.len();
                            checked += 1;
                        }
                    }
                    // The loop above has visited each process in two orders. In each of these
                    // orders, each element belongs to exactly one process, and an element has two
                    // entries in the type map.
                    if valid(k0, d0, 0) && valid(k1, d1, 1) {
                        assert_eq!(seen as i64, 4 * gsizes[0] * gsizes[1]);
                    }
                }
            }
        }
    }
    assert!(checked > 2000, "{checked}");
}

#[test]
fn whole_elements() {
    // Each row has a datatype and the packed offsets, written by hand, at which the elements of one
    // instance end.
    for (text, ends) in [
        ("contiguous(3,double)", &[8, 16, 24][..]),
        ("struct([1,1,3,0],[0,8,16,1],[int,double,float,double])", &[4, 12, 16, 20, 24]),
        // The two parts of a pair, such as `short_int`, are one element.
        ("vector(2,1,3,struct([1,1],[0,8],[short_int,char]))", &[6, 7, 13, 14]),
        ("contiguous(2,double_int)", &[12, 24]),
        ("value_index(double,long)", &[8, 16]),
        ("f90_complex(15,307)", &[16]),
    ] {
        let t = parse(text);
        for bytes in 0..=3 * t.size() {
            let (whole, rest) = (bytes / t.size() * t.size(), bytes % t.size());
            let inside = ends.iter().copied().filter(|&end| end <= rest).max().unwrap_or(0);
            assert_eq!(t.whole_elements(bytes), whole + inside, "{bytes} of {t}");
        }
    }
    assert_eq!(parse("contiguous(0,int)").whole_elements(7), 0);
    assert_eq!(
        parse("contiguous(1000000000000,short_int)").whole_elements(5_999_999_999_999),
        5_999_999_999_994
    );
}

#[test]
fn every_range_of_the_packed_stream() {
    for text in [
        "contiguous(5,double)",
        "hvector(4,2,7,vector(3,1,4,short))",
        "struct([1,1,3,0],[0,8,16,1],[int,double,float,double])",
        "contiguous(2,double_int)",
        "indexed([2,0,1],[3,100,1],int)",
        "subarray([3,4],[2,2],[1,1],C,int)",
        "darray(2,1,[7],[cyclic],[2],[2],C,int)",
        "vector(5,2,3,struct([1,1],[4,0],[char,short]))",
    ] {
        let t = parse(text);
        let count = 3;
        let user: Vec<u8> = (0..400).map(|i| (i * 7 % 251) as u8).collect();
        let total = t.size() as usize * count as usize;
        let mut whole = vec![0; total];
        interp::pack(&t, count, &user, 20, &mut whole).unwrap();
        let by_map: Vec<u8> = ddtc::internal::datatype::TypeMap::instances(&t, count)
            .flat_map(|(n, d)| user[(20 + d) as usize..(20 + d + n.size()) as usize].to_vec())
            .collect();
        assert_eq!(whole, by_map, "{t}");
        for offset in 0..=total {
            for len in 0..=total - offset {
                let mut part = vec![0; len];
                interp::pack_range(&t, count, &user, 20, offset as u64, &mut part).unwrap();
                assert_eq!(part, whole[offset..offset + len], "{t} {offset}+{len}");
            }
        }
        for cut in 0..=total {
            let mut back = vec![0xee; user.len()];
            interp::unpack_range(&t, count, &whole[cut..], &mut back, 20, cut as u64).unwrap();
            interp::unpack_range(&t, count, &whole[..cut], &mut back, 20, 0).unwrap();
            let mut want = vec![0xee; user.len()];
            interp::unpack(&t, count, &whole, &mut want, 20).unwrap();
            assert_eq!(back, want, "{t} {cut}");
        }
    }
}

#[test]
fn far_ranges_take_steps_for_blocks() {
    // Skipping to an offset deep inside the packed stream is done by arithmetic, without a visit of
    // each block. The first type has 2^40 blocks of four integers, and the second is a matrix with
    // about 2^20 columns.
    let t = parse("vector(1099511627776,1,3,contiguous(4,int))");
    let mut map = t.type_map();
    assert_eq!(map.skip_bytes(16 * 1_000_000_000_003 + 5), 1);
    assert_eq!(map.next(), Some((Named::Int, 48 * 1_000_000_000_003 + 4)));
    let t = parse("subarray([1048576,1048576],[1048575,1048575],[1,1],C,int)");
    let mut map = t.type_map();
    assert_eq!(map.skip_bytes(4 * (1_048_575 * 700_000 + 3)), 0);
    assert_eq!(map.next(), Some((Named::Int, 4 * (1_048_576 * 700_001 + 4))));
    let t = parse("contiguous(8,char)");
    let mut map = ddtc::internal::datatype::TypeMap::instances(&t, 1 << 61);
    assert_eq!(map.skip_bytes((1 << 63) + 9), 0);
    assert_eq!(map.next(), Some((Named::Char, ((1u64 << 63) + 9) as i64)));
    assert_eq!(map.skip_bytes(u64::MAX), 0);
    assert_eq!(map.next(), None);
}

#[test]
fn refusals_write_nothing() {
    let t = parse("hindexed([1,1],[-4,8],int)");
    let mut packed = [7; 8];
    assert!(interp::pack(&t, 1, &[1; 12], 3, &mut packed).unwrap_err().to_string().contains("origin"));
    assert!(interp::pack(&t, 1, &[1; 15], 4, &mut packed).is_err());
    assert!(interp::pack(&t, 1, &[1; 16], 4, &mut packed[..7]).unwrap_err().to_string().contains("packed"));
    assert_eq!(packed, [7; 8]);
    assert!(interp::pack_range(&t, 1, &[1; 16], 4, 5, &mut packed[..4]).is_err());
    let mut user = [7; 15];
    assert!(interp::unpack(&t, 1, &[1; 8], &mut user, 4).is_err());
    assert_eq!(user, [7; 15]);
    assert!(
        interp::for_each(&parse("resized(0,4611686018427387904,int)"), 4, &mut |_, _, _| panic!()).is_err()
    );
    let mut calls = Vec::new();
    interp::for_each(&parse("resized(0,4611686018427387904,int)"), 2, &mut |d, n, b| calls.push((d, n, b)))
        .unwrap();
    assert_eq!(calls, [(0, 4, Named::Int), (1 << 62, 4, Named::Int)]);
    // A type without elements packs nothing, so no buffer is needed for it.
    interp::pack(&parse("contiguous(0,int)"), 1 << 60, &[], 0, &mut []).unwrap();
}

#[test]
fn overlap_unpacks_last_wins() {
    let t = parse("hindexed([1,1],[0,2],int)");
    let mut user = [0; 6];
    interp::unpack(&t, 1, &[1, 2, 3, 4, 5, 6, 7, 8], &mut user, 0).unwrap();
    assert_eq!(user, [1, 2, 5, 6, 7, 8]);
}

/// Tests the worked examples of MPI 5.0, section 5.1.2. The `oldtype` of these examples is
/// {(double, 0), (char, 8)} with extent 16.
#[test]
fn examples_of_the_standard() {
    let old = "struct([1,1],[0,8],[double,char])";
    let struct_example = format!("struct([2,1,3],[0,16,26],[float,{old},char])");
    let rows: &[(String, &[i64])] = &[
        (format!("contiguous(3,{old})"), &[0, 8, 16, 24, 32, 40]),
        (format!("vector(2,3,4,{old})"), &[0, 8, 16, 24, 32, 40, 64, 72, 80, 88, 96, 104]),
        (format!("vector(3,1,-2,{old})"), &[0, 8, -32, -24, -64, -56]),
        (format!("indexed([3,1],[4,0],{old})"), &[64, 72, 80, 88, 96, 104, 0, 8]),
        (struct_example.clone(), &[0, 4, 16, 24, 26, 27, 28]),
    ];
    for (text, want) in rows {
        assert_eq!(displacements(&parse(text)), *want, "{text}");
    }
    use Named::{Char, Double, Float};
    let basics: Vec<Named> = parse(&struct_example).type_map().map(|e| e.0).collect();
    assert_eq!(basics, [Float, Float, Double, Char, Char, Char, Char]);
    assert_eq!(parse(old).extent(), 16);
    // This is the example in MPI 5.0, section 5.1.4, of an array of 100 x 200 x 300 elements. The
    // distribution argument of a dimension that is not distributed is ignored.
    let t = parse("darray(6,4,[100,200,300],[cyclic,none,block],[10,0,default],[2,1,3],Fortran,real)");
    // Process 4 has coordinates (1, 0, 1), so it owns rows 10..20, 30..40 and so on, all columns,
    // and planes 100..200.
    assert_eq!(t.size(), 4 * 50 * 200 * 100);
    assert_eq!(t.true_lb(), 4 * (10 + 100 * 200 * 100));
    let mut map = t.type_map();
    assert_eq!(map.skip_bytes(4 * 10), 0);
    assert_eq!(map.next(), Some((Named::Real, 4 * (30 + 100 * 200 * 100))));
    // This is the example of MPI 5.0, section 5.1.6: two copies of a resized type, and each copy
    // has its own markers of bounds.
    let t = parse("contiguous(2,resized(-3,9,int))");
    assert_eq!((t.lb(), t.ub()), (-3, 15));
}

/// Tests that all constructors that can express a type map give equal results. The datatypes of
/// each group have one type map, so their signatures, sizes and true bounds are equal, but their
/// constructor trees differ.
#[test]
fn one_map_by_many_constructors() {
    let groups: &[&[&str]] = &[
        &[
            "vector(3,2,5,double)",
            "hvector(3,2,40,double)",
            "hvector(3,1,40,contiguous(2,double))",
            "indexed([2,2,2],[0,5,10],double)",
            "hindexed([2,0,2,2],[0,7,40,80],double)",
            "indexed_block(2,[0,5,10],double)",
            "hindexed_block(2,[0,40,80],double)",
            "struct([2,2,2],[0,40,80],[double,double,double])",
            "subarray([3,5],[3,2],[0,0],C,double)",
            "subarray([5,3],[2,3],[0,0],Fortran,double)",
            "darray(5,0,[3,10],[none,block],[default,2],[1,5],C,resized(0,4,resized(0,4,double)))",
            "dup(resized(-8,1000,vector(3,2,5,double)))",
        ],
        &["contiguous(6,int)", "vector(6,1,1,int)", "vector(2,3,3,int)", "contiguous(2,contiguous(3,int))"],
        &["double_int", "struct([1,1],[0,8],[double,int])", "hindexed([1],[0],double_int)"],
        &[
            "contiguous(0,int)",
            "struct([],[],[])",
            "vector(4,0,9,double)",
            "darray(3,2,[2],[block],[default],[3],C,int)",
        ],
    ];
    for group in groups {
        let first = parse(group[0]);
        let map: Vec<(Named, i64)> = first.type_map().collect();
        for text in &group[1..] {
            let t = parse(text);
            if text.starts_with("darray(5") {
                // All datatypes of a group have the same type map, except for this darray. Its
                // elements lie half an element apart, so its map differs from that of the group,
                // but its signature is the same.
                assert_ne!(t.type_map().collect::<Vec<_>>(), map);
                assert_eq!(t.signature(), first.signature());
                continue;
            }
            assert_eq!(t.type_map().collect::<Vec<_>>(), map, "{text}");
            assert_eq!(t.signature(), first.signature(), "{text}");
            assert_eq!((t.true_lb(), t.true_ub()), (first.true_lb(), first.true_ub()), "{text}");
            assert_ne!(t, first, "{text}");
            assert_ne!(t.structural_hash(), first.structural_hash(), "{text}");
        }
    }
}
