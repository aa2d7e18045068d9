//! The type map of a datatype as C code. The C code is a function that enumerates the map, using
//! the bounds that the library gives the parts of the datatype. So a program is right with every
//! library, whichever reading of the standard the library's bounds follow.

use std::collections::HashMap;
use std::fmt::Write;

use ddtc::internal::datatype::c;
use ddtc::internal::datatype::{Combiner, Datatype, Named};
use ddtc::internal::fuzzing::rebuilt;
use ddtc::internal::methods::*;

use crate::compare::values;
use crate::subject::Map;

/// Returns the nodes of the datatype tree in an order in which each node comes after its children.
/// [`c::constructors`] and [`rebuilt`] use the same order.
fn nodes(t: &Datatype) -> Vec<Datatype> {
    let mut nodes = Vec::new();
    rebuilt(t, &mut |node, _| {
        nodes.push(node.clone());
        Some(node.clone())
    });
    nodes
}

/// Returns C statements that record the library's bounds of all nodes.
pub(super) fn record_bounds(t: &Datatype) -> String {
    let mut out = String::new();
    for (i, node) in nodes(t).into_iter().enumerate() {
        let handle = match node.combiner() {
            Combiner::Named(n) => n.mpi_name().to_owned(),
            _ => format!("t{i}"),
        };
        let _ = writeln!(out, "    bounds({i}, {handle});");
    }
    out
}

/// Writes the C function that enumerates the type map of a datatype. Returns none for a datatype
/// that is too large to be touched.
pub(super) fn write_walk(out: &mut String, t: &Datatype, count: u64) -> Option<()> {
    Map::new(t, count)?;
    let nodes = nodes(t);
    let numbers: HashMap<usize, usize> = nodes.iter().enumerate().map(|(i, n)| (n.id(), i)).collect();
    out.push_str("\nstatic void walk(int node, long at)\n{\n    switch (node) {\n");
    for (i, node) in nodes.iter().enumerate() {
        let body = body(node, &|child| numbers[&child.id()])?;
        let _ = write!(out, "    case {i}:\n{body}        break;\n");
    }
    out.push_str("    }\n}\n");
    Some(())
}

fn list(values: impl IntoIterator<Item = i64>) -> String {
    let items: Vec<String> = values.into_iter().map(c::literal).collect();
    if items.is_empty() { "0".to_owned() } else { items.join(", ") }
}

/// Returns the C calls that visit all copies of the children of a node, or the entries of a basic
/// type. Returns none if the map of the node cannot be computed or is too large.
fn body(t: &Datatype, number: &dyn Fn(&Datatype) -> usize) -> Option<String> {
    // `row` and `table` return the call of a C function that visits blocks of copies of one child.
    // The blocks of `row` have a constant stride, and those of `table` are at listed displacements.
    let row = |n: i64, copies: i64, stride: &str, child: usize| {
        format!("        row(at, {n}, {copies}, {stride}, {child});\n")
    };
    let table = |at: &[i64], copies: &[i64], unit: &str, child: usize| {
        let (n, at, copies) = (at.len(), list(at.iter().copied()), list(copies.iter().copied()));
        format!("        table(at, {n}, (long[]){{{at}}}, (long[]){{{copies}}}, {unit}, {child});\n")
    };
    let extent = |child: usize| format!("extents[{child}]");
    let place = |at: i64| match at {
        0 => "at".to_owned(),
        _ => format!("at + {}", c::literal(at)),
    };
    Some(match t.combiner() {
        Combiner::Dup { oldtype } | Combiner::Resized { oldtype, .. } | Combiner::Bounds { oldtype, .. } => {
            format!("        walk({}, at);\n", number(oldtype))
        }
        Combiner::Contiguous { count, oldtype } => row(1, *count, "0", number(oldtype)),
        Combiner::Vector { count, blocklength, stride, oldtype } => {
            let child = number(oldtype);
            row(*count, *blocklength, &format!("{} * {}", c::literal(*stride), extent(child)), child)
        }
        Combiner::Hvector { count, blocklength, stride, oldtype, .. } => {
            row(*count, *blocklength, &c::literal(*stride), number(oldtype))
        }
        Combiner::Indexed { blocklengths, displacements, oldtype } => {
            let child = number(oldtype);
            table(displacements, blocklengths, &extent(child), child)
        }
        Combiner::Hindexed { blocklengths, displacements, oldtype, .. } => {
            table(displacements, blocklengths, "1", number(oldtype))
        }
        Combiner::IndexedBlock { blocklength, displacements, oldtype } => {
            let child = number(oldtype);
            table(displacements, &vec![*blocklength; displacements.len()], &extent(child), child)
        }
        Combiner::HindexedBlock { blocklength, displacements, oldtype, .. } => {
            table(displacements, &vec![*blocklength; displacements.len()], "1", number(oldtype))
        }
        Combiner::Struct { blocklengths, displacements, types, .. } => {
            let members = blocklengths.iter().zip(displacements.iter()).zip(types.iter());
            members.fold(String::new(), |mut out, ((n, at), child)| {
                let _ = writeln!(out, "        row({}, 1, {n}, 0, {});", place(*at), number(child));
                out
            })
        }
        Combiner::Subarray { oldtype, .. } | Combiner::Darray { oldtype, .. } => {
            // Which elements of the array belong to the subarray or to the process does not depend
            // on the type of the elements. So the type map of the same constructor with elements of
            // one byte gives the indices of these elements.
            let mut combiner = t.combiner().clone();
            if let Combiner::Subarray { oldtype, .. } | Combiner::Darray { oldtype, .. } = &mut combiner {
                *oldtype = Datatype::named(Named::Byte);
            }
            let map = Map::new(&Datatype::new(combiner).ok()?, 1)?;
            let at: Vec<i64> = map.entries.iter().map(|e| e.0).collect();
            let child = number(oldtype);
            table(&at, &vec![1; at.len()], &extent(child), child)
        }
        Combiner::Named(_)
        | Combiner::F90Real { .. }
        | Combiner::F90Complex { .. }
        | Combiner::F90Integer { .. }
        | Combiner::ValueIndex { .. } => {
            let map = Map::new(t, 1)?;
            map.entries.iter().fold(String::new(), |mut out, &(at, len, named)| {
                let (at, padded) = (place(at), u8::from(values::has_padding(named)));
                let _ = writeln!(out, "        entry({at}, {len}, {padded}, {});", named.mpi_name());
                out
            })
        }
    })
}
