//! Work of a runtime with types other than moving bytes: writing and reading wire forms, comparing
//! signatures, and counting the elements of messages that were cut short.

use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;

use ddtc::internal::corpus;
use ddtc::internal::datatype::{Datatype, Match, compare_signatures, signature_hash};
use ddtc::internal::methods::*;

use crate::measure::{Effort, interleaved};

/// Returns the datatypes whose wire forms are measured. Each comes with a name and the size in
/// bytes of the arguments of its constructors, where a number counts as an int and an address or a
/// datatype has 8 bytes.
fn forms() -> ddtc::Result<Vec<(&'static str, Datatype, usize)>> {
    let n = 100_000;
    let lengths: Vec<i64> = (0..n).map(|i| 1 + i % 8).collect();
    let places: Vec<i64> = (0..n).map(|i| 11 * i + i % 3).collect();
    let far: Vec<i64> = places.iter().map(|p| p << 33).collect();
    let named: Vec<Datatype> =
        ["int", "double", "char"].map(str::parse).into_iter().collect::<Result<_, _>>()?;
    let members: Vec<Datatype> = (0..n as usize).map(|i| named[i % 3].clone()).collect();
    let bytes: Vec<i64> = places.iter().map(|p| 8 * p).collect();
    let int: Datatype = named[0].clone();
    let mut chain = int.clone();
    for _ in 0..n {
        chain = chain.dup();
    }
    let n = n as usize;
    Ok(vec![
        ("indexed, 10^5 blocks", Datatype::indexed(&lengths, &places, &int)?, 8 * n),
        ("indexed_block, 10^5 blocks", Datatype::indexed_block(3, &places, &int)?, 4 * n),
        ("hindexed, 10^5 blocks, 8-byte places", Datatype::hindexed(&lengths, &far, &int)?, 12 * n),
        ("struct, 10^5 members of 3 types", Datatype::structure(&lengths, &bytes, &members)?, 20 * n),
        ("struct, 10^5 different vectors", corpus::datatype("@children(100000)")?, 40 * n),
        ("chain of 10^5 dups", chain, 8 * n),
        ("vector(100, 3, 7, int)", "vector(100, 3, 7, int)".parse()?, 20),
    ])
}

/// Measures wire forms, comparisons of signatures and counts of elements, prints tables and returns
/// the record.
///
/// # Errors
/// Returns the errors of constructors and wire forms, or an error if an answer is wrong.
pub(crate) fn run(quick: bool) -> Result<String, Box<dyn Error>> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let mut csv = String::from("case,bytes,of_arguments,out_us,in_us\n");
    println!("{:40} {:>9} {:>12} {:>9} {:>9}", "wire form", "bytes", "of arguments", "out us", "in us");
    for (case, t, arguments) in forms()? {
        let form = t.to_wire()?;
        if Datatype::from_wire(&form)? != t {
            return Err(format!("{case}: another datatype is read back").into());
        }
        let times = interleaved(2, effort, |v, times| {
            for _ in 0..times {
                match v {
                    0 => drop(black_box(t.to_wire())),
                    _ => drop(black_box(Datatype::from_wire(&form))),
                }
            }
        });
        let (bytes, share) = (form.len(), form.len() as f64 / arguments as f64);
        let (out, back) = (times[0] / 1e3, times[1] / 1e3);
        println!("{case:40} {bytes:>9} {share:>12.2} {out:>9.1} {back:>9.1}");
        let _ = writeln!(csv, "\"{case}\",{bytes},{share:.3},{out:.2},{back:.2}");
    }

    // The signatures of several datatypes are compared. `dag` is a DAG that unfolds to 2^40 ints.
    // It is compared with loops over 2^40 ints and over 2^40 + 1 ints, and with `other`, which has
    // 2^40 elements of which the one in the middle is a float.
    let dag = (0..40).try_fold("int".parse::<Datatype>()?, |t, _| {
        Datatype::structure(&[1, 1], &[0, t.extent()], &[t.clone(), t])
    })?;
    let int: Datatype = "int".parse()?;
    let (all, half) = (1i64 << 40, 1i64 << 39);
    let part = |n| Datatype::contiguous(n, &int);
    let places = [0, 4 * half, 4 * half + 4];
    let other = Datatype::structure(&[1; 3], &places, &[part(half)?, "float".parse()?, part(half - 1)?])?;
    let million = corpus::datatype("@children(100000)")?;
    let expected = [Match::Equal, Match::FirstIsPrefix, Match::Mismatch { index: half }];
    let compared = |v: usize| match v {
        0 => compare_signatures(1, &dag, all, &int),
        1 => compare_signatures(1, &dag, all + 1, &int),
        _ => compare_signatures(1, &dag, 1, &other),
    };
    // The answers of these three comparisons are checked before they are timed.
    for (v, &expected) in expected.iter().enumerate() {
        if compared(v)? != expected {
            return Err(format!("signature_compare: {:?}, not {expected:?}", compared(v)?).into());
        }
    }
    let (cut, inside) = (4 * half + 8, million.size() / 2);
    let names = [
        "signatures equal: 2^40 elements by a DAG, by a loop",
        "one a prefix of the other",
        "first difference in the middle",
        "signature hash of the first 2^39 + 1 elements",
        "elements of half a DAG of 2^40 elements",
        "elements of half a struct of 10^5 vectors",
    ];
    let times = interleaved(names.len(), effort, |v, times| {
        for _ in 0..times {
            match v {
                0..3 => drop(black_box(compared(v))),
                3 => drop(black_box(signature_hash(1, &dag, half + 1))),
                4 => drop(black_box(dag.elements_before(black_box(cut)))),
                _ => drop(black_box(million.elements_before(black_box(inside)))),
            }
        }
    });
    println!("{:55} {:>9}", "question", "ns");
    csv.push_str("question,ns\n");
    for (name, ns) in names.iter().zip(times) {
        println!("{name:55} {ns:>9.1}");
        let _ = writeln!(csv, "\"{name}\",{ns:.1}");
    }
    Ok(csv)
}
