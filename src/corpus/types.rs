//! Generated types: corner cases whose text would be too long.
//!
//! The forms are:
//!
//! * `@dag(levels)`: `T0 = int`, then `struct([1,1,1], [0,e+8,e+16], [T,int,T])` with `e` the
//!   extent of `T`. It has 2^(levels+1) - 1 leaves, but a number of nodes proportional to the
//!   levels.
//! * `@displaced(depth, step)`: `T0 = int`, `Tk+1 = hindexed([1], [step], Tk)`. It is one int at
//!   `depth * step`.
//! * `@chain(n)`: `T0 = int`, `Tk+1 = struct([1,1], [0,3], [char,Tk])`. It has n + 1 blocks.
//! * `@tangle(levels)`: `T0 = int`, `Tk+1 = struct([1,1,1], [0,7+k,1], [Tk,char,Tk])`. It is a DAG
//!   whose parts interleave.
//! * `@wide(n, rows)`: a struct of n members, all of the same hindexed type, which has irregular
//!   rows. The members are at irregular displacements.
//! * `@deep(n)`: n constructors around an int, eight kinds in turn. One kind is a struct, which has
//!   a char as its second member.
//! * `@children(n)`: a struct of n different children. Child k is `vector(2, 1, k + 2, byte)`, at
//!   displacement `k*(n+4)`.

use crate::datatype::{Datatype, Order};
use crate::error::{Error, ErrorClass, Result};

/// Maximum value of the first argument of a form, which determines how many nodes are built.
const MAX_NODES: i64 = 1 << 20;

/// Returns the type that the form `name(arguments)` stands for.
pub(super) fn build(name: &str, arguments: &[i64]) -> Result<Datatype> {
    let bad =
        |rule: &'static str| Error::new(ErrorClass::Arg, "corpus type", "form", format!("@{name}"), rule);
    match (name, arguments) {
        (_, [n, ..]) if !(0..=MAX_NODES).contains(n) => Err(bad("builds 0 to 2^20 nodes")),
        ("dag", &[levels]) => dag(levels),
        ("displaced", &[depth, step]) => {
            (0..depth).try_fold("int".parse::<Datatype>()?, |t, _| Datatype::hindexed(&[1], &[step], &t))
        }
        ("chain", &[n]) => {
            let char: Datatype = "char".parse()?;
            (0..n).try_fold("int".parse()?, |t, _| Datatype::structure(&[1, 1], &[0, 3], &[char.clone(), t]))
        }
        ("tangle", &[levels]) => {
            let char: Datatype = "char".parse()?;
            (0..levels).try_fold("int".parse::<Datatype>()?, |t, k| {
                Datatype::structure(&[1, 1, 1], &[0, 7 + k, 1], &[t.clone(), char.clone(), t])
            })
        }
        ("wide", &[n, rows]) => wide(n, rows),
        ("deep", &[n]) => (0..n).try_fold("int".parse()?, deeper),
        ("children", &[n]) => children(n),
        _ => Err(bad("must be dag, displaced, chain, tangle, wide, deep or children, with its arguments")),
    }
}

/// Returns the type of the form `@dag(levels)`. Each level is a struct with three members: the
/// first and the third one are the type of the level below, the second one is an int.
fn dag(levels: i64) -> Result<Datatype> {
    let int: Datatype = "int".parse()?;
    let mut t = int.clone();
    for _ in 0..levels {
        let e = t.extent();
        let after = e.checked_add(16).ok_or_else(|| {
            Error::new(ErrorClass::ValueTooLarge, "corpus type", "levels", levels, "extent must fit 64 bits")
        })?;
        t = Datatype::structure(&[1, 1, 1], &[0, e + 8, after], &[t.clone(), int.clone(), t])?;
    }
    Ok(t)
}

/// Returns `n` displacements at irregular distances of about `step`.
fn irregular(n: i64, step: i64) -> Vec<i64> {
    (0..n).map(|i| i * step + i * i % 7 % 5).collect()
}

fn wide(n: i64, rows: i64) -> Result<Datatype> {
    if !(0..=MAX_NODES).contains(&rows) {
        return Err(Error::new(ErrorClass::Arg, "corpus type", "rows", rows, "must be 0 to 2^20"));
    }
    let lengths: Vec<i64> = (0..rows).map(|i| 1 + i % 3).collect();
    let shared = Datatype::hindexed(&lengths, &irregular(rows, 32), &"int".parse()?)?;
    let places = irregular(n, 32 * rows + 64);
    Datatype::structure(&vec![1; places.len()], &places, &vec![shared; places.len()])
}

/// Returns `t` inside one more constructor, which `level` selects. One of the eight constructors is
/// a struct, which has a char after `t`.
fn deeper(t: Datatype, level: i64) -> Result<Datatype> {
    match level % 8 {
        0 => Datatype::structure(&[1, 1], &[0, t.true_ub() + 1 + level % 5], &[t, "char".parse()?]),
        1 => Datatype::hindexed(&[1], &[level % 3], &t),
        2 => Datatype::vector(1, 1, 7, &t),
        3 => Datatype::resized(0, t.extent() + 1, &t),
        4 => Datatype::indexed_block(1, &[0], &t),
        5 => Datatype::subarray(&[1], &[1], &[0], Order::C, &t),
        6 => Datatype::hvector(1, 1, 3, &t),
        _ => Datatype::contiguous(1, &t),
    }
}

fn children(n: i64) -> Result<Datatype> {
    let byte: Datatype = "byte".parse()?;
    let types: Vec<Datatype> = (0..n).map(|k| Datatype::vector(2, 1, k + 2, &byte)).collect::<Result<_>>()?;
    let places: Vec<i64> = (0..n).map(|k| k * (n + 4)).collect();
    Datatype::structure(&vec![1; types.len()], &places, &types)
}
