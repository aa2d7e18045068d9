//! Checks of envelope and contents of every node, and of the envelope, size and bounds of every
//! datatype among the contents.

use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::methods::*;

use super::{Class, Context, Report};
use crate::library::{Handle, Library};
use crate::subject::{Node, is_predefined};

pub(super) fn run(context: &mut Context<'_>, report: &mut Report<'_>) {
    for node in &report.subject.nodes {
        one(context.library, report, node);
    }
}

const BUG: Class = Class::Bug;

fn one(library: &Library, report: &mut Report<'_>, node: &Node) {
    let t = &node.plain;
    let envelope = match library.envelope(node.handle) {
        Ok(envelope) => envelope,
        Err(what) => {
            return report.add_at(
                node,
                ("envelope", BUG, "envelope"),
                "MPI_Type_get_envelope gives an envelope",
                what,
            );
        }
    };
    let want = t.envelope();
    if envelope.combiner != want.combiner {
        // The combiner also differs if the library returned, for a Fortran kind type, the handle of
        // the named type for which it stands. The envelope of such a handle says
        // `MPI_COMBINER_NAMED`.
        let clause = |name: &str| format!("the combiner is {name}");
        let (want, got) = (clause(want.combiner.mpi_name()), clause(envelope.combiner.mpi_name()));
        return report.add_at(node, ("combiner", BUG, "envelope"), want, got);
    }
    if is_named(t) {
        return;
    }
    if envelope != want {
        let shown = |e: &ddtc::internal::datatype::Envelope| {
            let (i, a, c, d) = (e.integers, e.addresses, e.large_counts, e.datatypes);
            format!("the envelope has {i} integers, {a} addresses, {c} large counts and {d} datatypes")
        };
        return report.add_at(node, ("envelope", BUG, "envelope"), shown(&want), shown(&envelope));
    }
    let contents = match library.contents(node.handle, &envelope) {
        Ok(contents) => contents,
        Err(what) => {
            return report.add_at(
                node,
                ("contents", BUG, "contents"),
                "MPI_Type_get_contents gives contents",
                what,
            );
        }
    };
    if let Ok(want) = t.contents(&library.abi().constants) {
        let at = ("contents", BUG, "contents");
        let integers = (show(&want.integers), show(&contents.integers));
        let addresses = (show(&want.addresses), show(&contents.addresses));
        let counts = (show(&want.large_counts), show(&contents.large_counts));
        for ((want, got), what) in
            [(integers, "integers"), (addresses, "addresses"), (counts, "large counts")]
        {
            if want != got {
                report.add_at(node, at, format!("the {what} are {want}"), format!("the {what} are {got}"));
            }
        }
    }
    for (child, &handle) in t.combiner().children().zip(&contents.datatypes) {
        same(library, report, node, child, handle);
        if !is_predefined(child) {
            let _ = library.free(handle);
        }
    }
}

/// Checks `handle`, which the library returned among the contents of `node`. Reports a difference
/// if the datatype of this handle is not equal to `child`.
fn same(library: &Library, report: &mut Report<'_>, node: &Node, child: &Datatype, handle: Handle) {
    let Some(own) = report.subject.node(child) else { return };
    let (own_handle, bounds) = (own.handle, own.bounds);
    if is_named(child) {
        if handle != own_handle {
            // The library returned another handle than that of the expected type. If the type of
            // the returned handle has the same size and bounds as the expected type, it is taken
            // for a synonym of that type, and the difference is classified as open.
            let synonym = library.size(handle) == Ok(child.size()) && library.bounds(handle) == Ok(bounds);
            let name = library.name(handle).unwrap_or_else(|r| r.to_string());
            let what =
                if synonym { ("synonym", Class::Open, "contents") } else { ("child", BUG, "contents") };
            let want = format!("the datatype among the contents is {child}");
            report.add_at(node, what, want, format!("it is {name}"));
        }
        return;
    }
    let envelope = library.envelope(handle);
    let like = envelope.as_ref().is_ok_and(|e| *e == child.envelope())
        && library.size(handle) == Ok(child.size())
        && library.bounds(handle) == Ok(bounds);
    if !like {
        let got =
            format!("it has {envelope:?}, size {:?}, {:?}", library.size(handle), library.bounds(handle));
        let want = format!(
            "a datatype among the contents has {:?}, size {}, {bounds:?}",
            child.envelope(),
            child.size()
        );
        report.add_at(node, ("child", BUG, "contents"), want, got);
    }
}

fn is_named(t: &Datatype) -> bool {
    matches!(t.combiner(), Combiner::Named(_))
}

fn show(values: &[impl std::fmt::Display]) -> String {
    let mut shown: Vec<String> = values.iter().take(40).map(ToString::to_string).collect();
    if values.len() > 40 {
        shown.push(format!("and {} more", values.len() - 40));
    }
    format!("[{}]", shown.join(", "))
}
