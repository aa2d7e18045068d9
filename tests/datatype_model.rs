//! Compares random small datatypes with a model. The model expands the whole type map, including
//! the markers of bounds, as the text of MPI 5.0, section 5.1 describes it.

use std::sync::Arc;

use ddtc::internal::datatype::{
    Combiner, CombinerKind, Constants, Datatype, Distribution, Named, Order, Signature,
};
use ddtc::internal::decode::{Own, decode};
use ddtc::internal::methods::*;

/// An entry of a type map: a basic type, or one of the two conceptual markers of the bounds of a
/// type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Entry {
    Basic(Named),
    Lb,
    Ub,
}

type Map = Vec<(Entry, i64)>;

fn lower(map: &Map) -> i64 {
    let lowest = |wanted: fn(&Entry) -> bool| map.iter().filter(|e| wanted(&e.0)).map(|e| e.1).min();
    // If a map has neither data nor lower-bound markers, section 5.1.6 of MPI 5.0 leaves only the
    // greatest of its upper-bound markers. So this marker is also the lower bound.
    let ub = || map.iter().filter(|e| e.0 == Entry::Ub).map(|e| e.1).max();
    lowest(|e| *e == Entry::Lb).or(lowest(|e| matches!(e, Entry::Basic(_)))).or_else(ub).unwrap_or(0)
}

fn upper(map: &Map) -> i64 {
    if let Some(marker) = map.iter().filter(|e| e.0 == Entry::Ub).map(|e| e.1).max() {
        return marker;
    }
    let basics = || map.iter().filter_map(|e| if let Entry::Basic(n) = e.0 { Some((n, e.1)) } else { None });
    let Some(end) = basics().map(|(n, d)| d + n.size()).max() else { return lower(map) };
    let strictest = basics().map(|(n, _)| n.alignment()).max().unwrap_or(1);
    let lb = lower(map);
    let mut epsilon = 0;
    while (end + epsilon - lb) % strictest != 0 {
        epsilon += 1;
    }
    end + epsilon
}

fn extent(map: &Map) -> i64 {
    upper(map) - lower(map)
}

fn append(into: &mut Map, child: &Map, displacement: i64, copies: i64) {
    for copy in 0..copies {
        let at = displacement + copy * extent(child);
        into.extend(child.iter().map(|e| (e.0, e.1 + at)));
    }
}

fn marked(map: &Map, lb: i64, extent: i64) -> Map {
    let basics = map.iter().copied().filter(|e| matches!(e.0, Entry::Basic(_)));
    std::iter::once((Entry::Lb, lb)).chain(basics).chain([(Entry::Ub, lb + extent)]).collect()
}

/// Returns the type map of a subarray or of a distributed array: the elements of the global array
/// for which `mine` is true, in storage order, between markers for the bounds of the whole array.
fn global(sizes: &[i64], order: Order, child: &Map, mine: impl Fn(&[i64]) -> bool) -> Map {
    let total: i64 = sizes.iter().product();
    let mut map = Map::new();
    for position in 0..total {
        let mut rest = position;
        let mut index = vec![0; sizes.len()];
        let dimensions: Vec<usize> = match order {
            Order::C => (0..sizes.len()).rev().collect(),
            Order::Fortran => (0..sizes.len()).collect(),
        };
        for d in dimensions {
            index[d] = rest % sizes[d];
            rest /= sizes[d];
        }
        if mine(&index) {
            append(&mut map, child, position * extent(child), 1);
        }
    }
    marked(&map, 0, total * extent(child))
}

/// Returns the type map of `t`, including markers of bounds, by the standard's definition of each
/// constructor. Only for types of Fortran 90 (`F90Real` and so on) the library's own expansion is
/// used.
fn model(t: &Datatype) -> Map {
    let mut map = Map::new();
    // Most constructors place copies of the map of their element type at the displacements that the
    // standard defines. The branches of these constructors expand the map of the element type and
    // append the copies to `map`.
    match t.combiner() {
        Combiner::Named(Named::Lb) => map.push((Entry::Lb, 0)),
        Combiner::Named(Named::Ub) => map.push((Entry::Ub, 0)),
        Combiner::Named(n) => map.extend(n.parts().iter().map(|p| (Entry::Basic(p.0), p.1))),
        Combiner::F90Real { .. } | Combiner::F90Complex { .. } | Combiner::F90Integer { .. } => {
            return model(t.expansion().unwrap());
        }
        Combiner::Dup { oldtype } => return model(oldtype),
        Combiner::Contiguous { count, oldtype } => append(&mut map, &model(oldtype), 0, *count),
        Combiner::Vector { count, blocklength, stride, oldtype } => {
            let child = model(oldtype);
            (0..*count).for_each(|i| append(&mut map, &child, i * stride * extent(&child), *blocklength));
        }
        Combiner::Hvector { count, blocklength, stride, oldtype, .. } => {
            let child = model(oldtype);
            (0..*count).for_each(|i| append(&mut map, &child, i * stride, *blocklength));
        }
        Combiner::Indexed { blocklengths, displacements, oldtype } => {
            let child = model(oldtype);
            for (l, d) in blocklengths.iter().zip(displacements.iter()) {
                append(&mut map, &child, d * extent(&child), *l);
            }
        }
        Combiner::Hindexed { blocklengths, displacements, oldtype, .. } => {
            let child = model(oldtype);
            for (l, d) in blocklengths.iter().zip(displacements.iter()) {
                append(&mut map, &child, *d, *l);
            }
        }
        Combiner::IndexedBlock { blocklength, displacements, oldtype } => {
            let child = model(oldtype);
            for d in displacements.iter() {
                append(&mut map, &child, d * extent(&child), *blocklength);
            }
        }
        Combiner::HindexedBlock { blocklength, displacements, oldtype } => {
            let child = model(oldtype);
            for d in displacements.iter() {
                append(&mut map, &child, *d, *blocklength);
            }
        }
        Combiner::Struct { blocklengths, displacements, types, .. } => {
            for ((l, d), t) in blocklengths.iter().zip(displacements.iter()).zip(types.iter()) {
                append(&mut map, &model(t), *d, *l);
            }
        }
        Combiner::Subarray { sizes, subsizes, starts, order, oldtype } => {
            return global(sizes, *order, &model(oldtype), |index| {
                (0..sizes.len()).all(|d| (starts[d]..starts[d] + subsizes[d]).contains(&index[d]))
            });
        }
        Combiner::Darray { rank, gsizes, distribs, dargs, psizes, order, oldtype, .. } => {
            return global(gsizes, *order, &model(oldtype), |index| {
                let owner = (0..gsizes.len()).fold(0, |rank, d| {
                    let darg = match distribs[d] {
                        Distribution::None => gsizes[d],
                        Distribution::Block => dargs[d].unwrap_or((gsizes[d] + psizes[d] - 1) / psizes[d]),
                        Distribution::Cyclic => dargs[d].unwrap_or(1),
                    };
                    rank * psizes[d] + index[d] / darg % psizes[d]
                });
                owner == *rank
            });
        }
        Combiner::Resized { lb, extent, oldtype } | Combiner::Bounds { lb, extent, oldtype } => {
            return marked(&model(oldtype), *lb, *extent);
        }
        Combiner::ValueIndex { value, index } => {
            let (v, i) = (model(value), model(index));
            let align = index.alignment();
            append(&mut map, &v, 0, 1);
            append(&mut map, &i, (value.size() + align - 1) / align * align, 1);
        }
    }
    map
}

/// Pseudo-random number generator (splitmix64) from which datatypes are generated.
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn from(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    fn list(&mut self, n: i64, low: i64, high: i64) -> Arc<[i64]> {
        (0..n).map(|_| self.from(low, high)).collect()
    }

    /// Returns a random count from 1 to 4, or 0 in one of twelve cases.
    fn count(&mut self) -> i64 {
        if self.below(12) == 0 { 0 } else { self.from(1, 4) }
    }

    fn counts(&mut self, n: i64) -> Arc<[i64]> {
        (0..n).map(|_| self.count()).collect()
    }

    fn leaf(&mut self) -> Datatype {
        match self.below(12) {
            0 => Datatype::f90_real(Some(self.from(0, 33)), None).unwrap(),
            1 => Datatype::f90_integer(self.from(0, 38)).unwrap(),
            2 => Datatype::value_index(&Datatype::named(Named::Double), &Datatype::named(Named::Short))
                .unwrap(),
            _ => Datatype::named(Named::ALL[self.below(Named::ALL.len() as u64) as usize]),
        }
    }

    fn array(&mut self) -> (i64, Order) {
        (self.from(1, 3), if self.below(2) == 0 { Order::C } else { Order::Fortran })
    }

    fn datatype(&mut self, depth: u32) -> Datatype {
        if depth == 0 || self.below(10) == 0 {
            return self.leaf();
        }
        // Generate the element type first. Then choose a constructor around it, with arguments that
        // the constructor accepts, so that `Datatype::new` cannot fail.
        let oldtype = self.datatype(depth - 1);
        let n = self.count();
        let combiner = match self.below(15) {
            0 => Combiner::Dup { oldtype },
            1 => Combiner::Contiguous { count: self.count(), oldtype },
            2 => Combiner::Vector {
                count: self.count(),
                blocklength: self.count(),
                stride: self.from(-4, 4),
                oldtype,
            },
            3 => Combiner::Hvector {
                count: self.count(),
                blocklength: self.count(),
                stride: self.from(-40, 40),
                oldtype,
                legacy: self.below(2) == 0,
            },
            4 => Combiner::Indexed {
                blocklengths: self.counts(n),
                displacements: self.list(n, -5, 5),
                oldtype,
            },
            5 => Combiner::Hindexed {
                blocklengths: self.counts(n),
                displacements: self.list(n, -50, 50),
                oldtype,
                legacy: self.below(2) == 0,
            },
            6 => Combiner::IndexedBlock {
                blocklength: self.count(),
                displacements: self.list(n, -5, 5),
                oldtype,
            },
            7 => Combiner::HindexedBlock {
                blocklength: self.count(),
                displacements: self.list(n, -50, 50),
                oldtype,
            },
            8 | 9 => {
                let n = n + 1;
                let mut types: Vec<Datatype> = (1..n).map(|_| self.datatype(depth - 1)).collect();
                types.push(oldtype);
                Combiner::Struct {
                    blocklengths: self.counts(n),
                    displacements: self.list(n, -50, 50),
                    types: types.into(),
                    legacy: self.below(2) == 0,
                }
            }
            10 | 11 => {
                let (ndims, order) = self.array();
                let sizes = self.list(ndims, 1, 4);
                let subsizes: Arc<[i64]> = sizes.iter().map(|&s| self.from(1, s)).collect();
                let starts = sizes.iter().zip(subsizes.iter()).map(|(&s, &n)| self.from(0, s - n)).collect();
                Combiner::Subarray { sizes, subsizes, starts, order, oldtype }
            }
            12 => {
                let (ndims, order) = self.array();
                let (gsizes, mut psizes) = (self.list(ndims, 1, 5), self.list(ndims, 1, 3).to_vec());
                let (mut distribs, mut dargs) = (Vec::new(), Vec::new());
                for d in 0..ndims as usize {
                    let blocks = (gsizes[d] + psizes[d] - 1) / psizes[d];
                    let default = self.below(2) == 0;
                    let (distribution, darg) = match self.below(3) {
                        0 => (Distribution::Block, self.from(blocks, blocks + 2)),
                        1 => (Distribution::Cyclic, self.from(1, 4)),
                        _ => (Distribution::None, self.from(-3, 3)),
                    };
                    if distribution == Distribution::None {
                        psizes[d] = 1;
                    }
                    distribs.push(distribution);
                    dargs.push(if default { None } else { Some(darg) });
                }
                let size = psizes.iter().product();
                Combiner::Darray {
                    size,
                    rank: self.from(0, size - 1),
                    gsizes,
                    distribs: distribs.into(),
                    dargs: dargs.into(),
                    psizes: psizes.into(),
                    order,
                    oldtype,
                }
            }
            13 => Combiner::Resized { lb: self.from(-20, 20), extent: self.from(-8, 60), oldtype },
            _ => Combiner::Bounds { lb: self.from(-20, 20), extent: self.from(0, 60), oldtype },
        };
        let t = Datatype::new(combiner).unwrap();
        if self.below(8) == 0 { t.with_large_count() } else { t }
    }
}

fn check(t: &Datatype) {
    let map = model(t);
    let basics: Vec<(Named, i64)> =
        map.iter().filter_map(|e| if let Entry::Basic(n) = e.0 { Some((n, e.1)) } else { None }).collect();
    assert_eq!(t.type_map().collect::<Vec<_>>(), basics, "{t}");
    assert_eq!((t.lb(), t.ub(), t.extent()), (lower(&map), upper(&map), extent(&map)), "{t}");
    assert_eq!(t.size(), basics.iter().map(|e| e.0.size()).sum::<i64>(), "{t}");
    assert_eq!(t.true_lb(), basics.iter().map(|e| e.1).min().unwrap_or(0), "{t}");
    assert_eq!(t.true_ub(), basics.iter().map(|e| e.1 + e.0.size()).max().unwrap_or(0), "{t}");
    let signature = basics.iter().fold(Signature::EMPTY, |s, e| s.then(&Signature::from_named(e.0)));
    assert_eq!(t.signature(), signature, "{t}");
    if let Some(expansion) = t.expansion() {
        assert_eq!(expansion.type_map().collect::<Vec<_>>(), basics, "{t}");
        assert_eq!((expansion.lb(), expansion.extent()), (t.lb(), t.extent()), "{t}");
    }
    for text in [t.to_string(), format!("{t:#}")] {
        let parsed: Datatype = text.parse().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(parsed, *t, "{text}");
        assert_eq!(parsed.structural_hash(), t.structural_hash());
    }
    let decoded = decode(&mut Own, t).unwrap();
    assert_eq!(decoded, *t);
    let flags = |t: &Datatype| t.nodes().map(Datatype::is_large_count).collect::<Vec<_>>();
    assert_eq!(flags(&decoded), flags(t), "{t}");
    if t.envelope().combiner != CombinerKind::Named {
        let contents = t.contents(&Constants::ABI).unwrap();
        let again = Datatype::from_contents(t.envelope().combiner, contents, &Constants::ABI).unwrap();
        assert_eq!(again, *t.constructed(), "{t}");
    }
}

#[test]
fn random_types_agree_with_the_model() {
    let (mut empty, mut markers, mut large) = (0, 0, 0);
    for seed in 0..10_000 {
        let mut choices = Choices(seed);
        let depth = choices.from(1, 4) as u32;
        let t = choices.datatype(depth);
        // Skip large types. The model expands whole maps at each level, so large types would take
        // long; they are rare and add nothing to the test.
        if t.size() > 20_000 {
            continue;
        }
        check(&t);
        empty += u32::from(t.size() == 0);
        markers += u32::from(t.size() == 0 && t.extent() != 0);
        large += u32::from(t.signature().length() > 100);
    }
    assert!(empty > 500 && markers > 100 && large > 500, "{empty} {markers} {large}");
}

#[test]
fn different_types_differ() {
    let mut seen = std::collections::HashMap::new();
    for seed in 0..3000 {
        let t = Choices(seed).datatype(2);
        let other = seen.entry(t.structural_hash()).or_insert_with(|| t.clone());
        assert_eq!(t.to_string(), other.to_string());
        assert_eq!(t, *other);
    }
    let all: Vec<Datatype> = seen.into_values().take(200).collect();
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate() {
            assert_eq!(a == b, i == j, "{a} {b}");
        }
    }
}
