//! Tests of constructor identities, as in docs/records/identities.md: if all constructors that can
//! express a type map build it, the datatypes must have one normal form and one layout in the
//! cache.

use ddtc::internal::datatype::{Datatype, Order};
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::fuzzing::{Budget, Choices, datatype};
use ddtc::internal::lower::{Bytes, lower};
use ddtc::internal::methods::*;
use ddtc::internal::normalize::{Normalized, normalize};

fn normal(t: &Datatype) -> Normalized {
    normalize(&lower(t, Bytes).unwrap(), t.arguments()).unwrap()
}

/// Checks that all datatypes of `family` have the same type map, the same normal form at the same
/// origin, and the same layout in the cache.
fn one(engine: &Engine, family: &[Datatype]) {
    assert!(family.len() > 1, "test fault: nothing is compared with {family:?}");
    let first = &family[0];
    let want = normal(first);
    let committed = engine.commit(first).unwrap();
    for t in &family[1..] {
        assert!(t.type_map().eq(first.type_map()), "test fault: {t} is not {first}");
        assert_eq!((t.lb(), t.extent()), (first.lb(), first.extent()), "test fault: {t} is not {first}");
        let got = normal(t);
        assert_eq!(got.origin, want.origin, "{t}\n{first}");
        assert!(got.nest == want.nest, "{t}\n{}\n{first}\n{}", got.nest, want.nest);
        assert!(engine.commit(t).unwrap().shares_layout(&committed), "{t}\n{first}");
    }
}

/// Returns datatypes with `n` blocks of `blocklength` elements at a constant distance. Each
/// constructor that has blocks makes at least one of these datatypes.
fn blocks(t: &Datatype, n: i64, blocklength: i64, stride: i64) -> Vec<Datatype> {
    let extent = t.extent();
    let units: Vec<i64> = (0..n).map(|i| i * stride).collect();
    let bytes: Vec<i64> = units.iter().map(|d| d * extent).collect();
    let lengths = vec![blocklength; n as usize];
    let block = Datatype::contiguous(blocklength, t).unwrap();
    let mut family = vec![
        Datatype::vector(n, blocklength, stride, t).unwrap(),
        Datatype::hvector(n, blocklength, stride * extent, t).unwrap(),
        Datatype::indexed(&lengths, &units, t).unwrap(),
        Datatype::hindexed(&lengths, &bytes, t).unwrap(),
        Datatype::indexed_block(blocklength, &units, t).unwrap(),
        Datatype::hindexed_block(blocklength, &bytes, t).unwrap(),
        Datatype::structure(&lengths, &bytes, &vec![t.clone(); n as usize]).unwrap(),
        Datatype::hvector(n, 1, stride * extent, &block).unwrap(),
        Datatype::structure(&vec![1; n as usize], &bytes, &vec![block; n as usize]).unwrap(),
    ];
    // If the number of blocks is even, add a datatype that consists of two vectors, each with half
    // of the blocks.
    if n % 2 == 0 {
        let half = Datatype::vector(n / 2, blocklength, stride, t).unwrap();
        family.push(Datatype::hindexed(&[1, 1], &[0, bytes[n as usize / 2]], &half).unwrap());
    }
    family.push(family[0].dup());
    // Give all datatypes the same bounds, because the bounds that the constructors compute differ
    // if blocks run backwards.
    family.iter().map(|f| Datatype::resized(family[0].lb(), family[0].extent(), f).unwrap()).collect()
}

fn engine() -> Engine {
    Engine::new(Config { mode: Mode::Interpret, ..Config::default() })
}

const LEAVES: [&str; 9] = [
    "int",
    "char",
    "double_int",
    "contiguous(5,double)",
    "vector(3,1,2,int)",
    "struct([1,1,3],[0,8,16],[int,double,float])",
    "indexed([1,2,3],[0,4,9],int)",
    "resized(-8,40,vector(2,1,3,int))",
    "hvector(4,1,4,vector(3,1,4,int))",
];

#[test]
fn blocks_at_constant_distance() {
    let engine = engine();
    for leaf in LEAVES {
        let t: Datatype = leaf.parse().unwrap();
        for (n, blocklength, stride) in [
            (2, 1, 2),
            (4, 1, 3),
            (5, 2, 7),
            (4, 3, 3),
            (3, 2, 1),
            (4, 1, -2),
            (6, 1, 0),
            (1, 4, 9),
            (16, 2, 5),
        ] {
            one(&engine, &blocks(&t, n, blocklength, stride));
        }
    }
}

#[test]
fn one_run() {
    let engine = engine();
    for leaf in LEAVES {
        let t: Datatype = leaf.parse().unwrap();
        let (n, extent) = (12, t.extent());
        let c = |n, t: &Datatype| Datatype::contiguous(n, t).unwrap();
        let family = [
            c(n, &t),
            Datatype::vector(n, 1, 1, &t).unwrap(),
            Datatype::vector(1, n, 99, &t).unwrap(),
            Datatype::vector(3, 4, 4, &t).unwrap(),
            c(4, &c(3, &t)),
            c(2, &c(2, &c(3, &t))),
            Datatype::indexed(&[5, 0, 7], &[0, 77, 5], &t).unwrap(),
            Datatype::indexed_block(6, &[0, 6], &t).unwrap(),
            Datatype::hindexed_block(4, &[0, 4 * extent, 8 * extent], &t).unwrap(),
            Datatype::structure(&[6, 6], &[0, 6 * extent], &[t.clone(), t.clone()]).unwrap(),
            Datatype::structure(&[1, 2], &[0, 4 * extent], &[c(4, &t), c(4, &t)]).unwrap(),
            c(n, &t).dup(),
            c(1, &c(n, &t)),
        ];
        let family: Vec<Datatype> = family
            .iter()
            .map(|f| Datatype::resized(family[0].lb(), family[0].extent(), f).unwrap())
            .collect();
        one(&engine, &family);
    }
}

#[test]
fn slabs_of_arrays() {
    let engine = engine();
    for leaf in ["double", "char", "double_int", "contiguous(3,int)", "struct([1,1],[0,8],[int,char])"] {
        let t: Datatype = leaf.parse().unwrap();
        let e = t.extent();
        let array = |sizes: &[i64], sub: &[i64], starts: &[i64]| {
            let reversed = |v: &[i64]| v.iter().rev().copied().collect::<Vec<i64>>();
            let c = Datatype::subarray(sizes, sub, starts, Order::C, &t).unwrap();
            let (sizes, sub, starts) = (reversed(sizes), reversed(sub), reversed(starts));
            [c, Datatype::subarray(&sizes, &sub, &starts, Order::Fortran, &t).unwrap()]
        };
        let whole = |at: i64, n: i64, map: Datatype| {
            Datatype::resized(0, n * e, &Datatype::hindexed(&[1], &[at * e], &map).unwrap()).unwrap()
        };
        // The faces of a box of elements are a plane, a set of rows and a set of columns.
        let mut plane = array(&[6, 5, 4], &[1, 5, 4], &[2, 0, 0]).to_vec();
        plane.push(whole(40, 120, Datatype::contiguous(20, &t).unwrap()));
        one(&engine, &plane);
        let mut rows = array(&[6, 5, 4], &[6, 1, 4], &[0, 3, 0]).to_vec();
        rows.push(whole(12, 120, Datatype::vector(6, 4, 20, &t).unwrap()));
        one(&engine, &rows);
        let mut columns = array(&[6, 5, 4], &[6, 5, 1], &[0, 0, 1]).to_vec();
        columns.push(whole(1, 120, Datatype::vector(30, 1, 4, &t).unwrap()));
        columns.push(whole(
            1,
            120,
            Datatype::hvector(6, 1, 20 * e, &Datatype::vector(5, 1, 4, &t).unwrap()).unwrap(),
        ));
        one(&engine, &columns);
        // A block of elements inside a box is a vector of vectors.
        let mut block = array(&[6, 5, 4], &[3, 2, 2], &[1, 1, 1]).to_vec();
        let inner = Datatype::vector(2, 2, 4, &t).unwrap();
        block.push(whole(25, 120, Datatype::hvector(3, 1, 20 * e, &inner).unwrap()));
        block.push(whole(25, 120, Datatype::hindexed_block(1, &[0, 20 * e, 40 * e], &inner).unwrap()));
        one(&engine, &block);
    }
}

#[test]
fn distributed_arrays() {
    let engine = engine();
    let parse = |text: &str| text.parse::<Datatype>().unwrap();
    // If one process owns the whole array, the type of the array is contiguous. A block
    // distribution is a subarray, and a distribution that is cyclic(1) is a vector.
    one(
        &engine,
        &[
            parse("darray(1,0,[6,4],[block,block],[default,default],[1,1],C,double)"),
            parse("darray(1,0,[6,4],[cyclic,none],[2,default],[1,1],Fortran,double)"),
            parse("resized(0,192,contiguous(24,double))"),
        ],
    );
    one(
        &engine,
        &[
            parse("darray(4,3,[8,6],[block,block],[default,default],[2,2],C,double)"),
            parse("subarray([8,6],[4,3],[4,3],C,double)"),
        ],
    );
    one(
        &engine,
        &[
            parse("darray(3,1,[12],[cyclic],[default],[3],C,int)"),
            parse("resized(0,48,hindexed_block(1,[4,16,28,40],int))"),
            parse("resized(0,48,hindexed([1],[4],vector(4,1,3,int)))"),
        ],
    );
}

#[test]
fn structs_of_parts() {
    let engine = engine();
    let parse = |text: &str| text.parse::<Datatype>().unwrap();
    one(
        &engine,
        &[
            parse("struct([1,1,1],[0,4,8],[int,int,double])"),
            parse("struct([2,1],[0,8],[int,double])"),
            parse("struct([1,1,0,1],[0,4,99,8],[int,int,char,double])"),
        ]
        .map(|t| Datatype::resized(0, 16, &t).unwrap()),
    );
    // A layout describes bytes and not basic types. So these two datatypes share one layout,
    // although their signatures differ.
    let family =
        ["resized(0,16,struct([1,1,1],[0,4,8],[int,float,double]))", "resized(0,16,contiguous(16,char))"];
    let [a, b] = family.map(|t| engine.commit(&parse(t)).unwrap());
    assert!(a.shares_layout(&b));
}

/// Tests that datatypes of absolute addresses share one layout if they differ only by a
/// translation. The origins of the committed types differ by this translation.
#[test]
fn translated() {
    let engine = engine();
    let t: Datatype = "vector(3,2,5,int)".parse().unwrap();
    let base = engine.commit(&Datatype::resized(0, 64, &t).unwrap()).unwrap();
    for at in [8, -400, 1 << 40, -(1 << 40)] {
        let moved = Datatype::hindexed(&[1], &[at], &t).unwrap();
        let moved = engine.commit(&Datatype::resized(0, 64, &moved).unwrap()).unwrap();
        assert!(moved.shares_layout(&base));
        assert_eq!(moved.origin() - base.origin(), at as isize);
    }
}

#[test]
fn generated_elements() {
    let engine = engine();
    for seed in 0..400 {
        let mut c = Choices::from_seed(seed);
        let t = datatype(&mut c, &Budget::small());
        if t.size() == 0 || t.extent() == 0 {
            continue;
        }
        let (n, blocklength) = (c.within(1, 6), c.within(1, 3));
        let stride = c.pick(&[blocklength, blocklength + 1, 3 * blocklength, -blocklength, 0, 1]);
        one(&engine, &blocks(&t, n, blocklength, stride));
    }
}

#[test]
fn levels_of_one_element_are_nothing_at_any_depth() {
    let text = "hindexed([2, 16, 4, 14, 3, 1, 9], [-500, 0, 478, 956, 1500, 2013, 2491], short_int)";
    let base: Datatype = text.parse().unwrap();
    let mut t = base.clone();
    for level in 0..10_000 {
        t = match level % 4 {
            0 => Datatype::contiguous(1, &t),
            1 => Datatype::vector(1, 1, 7, &t),
            2 => Datatype::indexed_block(1, &[0], &t),
            _ => Datatype::structure(&[1], &[0], std::slice::from_ref(&t)),
        }
        .unwrap();
    }
    let (deep, flat) = (normal(&t), normal(&base));
    assert!(deep.unique && flat.unique);
    assert!(deep.nest == flat.nest && deep.origin == flat.origin, "{}\n{}", deep.nest, flat.nest);
}
