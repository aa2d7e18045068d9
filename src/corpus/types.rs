//! Generated types: corner cases whose text would be out of proportion.
//!
//! | form | type |
//! |---|---|
//! | `@dag(levels)` | `T0 = int`, then `struct([1,1,1], [0,e+8,e+16], [T,int,T])` with `e` the extent of `T`: 2^levels leaves, shared |
//! | `@displaced(depth, step)` | `T0 = int`, `Tk+1 = hindexed([1], [step], Tk)`: one int at `depth * step` |
//! | `@children(n)` | a struct of n different children: child k is `vector(2, 1, k + 2, byte)` at `k * (n + 4)` |

use crate::datatype::Datatype;
use crate::error::{Error, ErrorClass, Result};

/// Largest argument of a form that says how many nodes to build.
const MAX_NODES: i64 = 1 << 20;

/// The type that the form `name(arguments)` stands for.
pub(super) fn build(name: &str, arguments: &[i64]) -> Result<Datatype> {
    let bad =
        |rule: &'static str| Error::new(ErrorClass::Arg, "corpus type", "form", format!("@{name}"), rule);
    match (name, arguments) {
        (_, [n, ..]) if !(0..=MAX_NODES).contains(n) => Err(bad("builds 0 to 2^20 nodes")),
        ("dag", &[levels]) => dag(levels),
        ("displaced", &[depth, step]) => {
            (0..depth).try_fold("int".parse::<Datatype>()?, |t, _| Datatype::hindexed(&[1], &[step], &t))
        }
        ("children", &[n]) => children(n),
        _ => Err(bad("must be dag(levels), displaced(depth, step) or children(n)")),
    }
}

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

fn children(n: i64) -> Result<Datatype> {
    let byte: Datatype = "byte".parse()?;
    let types: Vec<Datatype> = (0..n).map(|k| Datatype::vector(2, 1, k + 2, &byte)).collect::<Result<_>>()?;
    let places: Vec<i64> = (0..n).map(|k| k * (n + 4)).collect();
    Datatype::structure(&vec![1; types.len()], &places, &types)
}
