//! Checks of the attributes of a datatype: which callbacks are called, how often, and with which
//! arguments. The standard leaves the order of the callbacks open, so it is not checked.

use super::{Class, Context, Report};
use crate::library::{Answer, CallbackCounts, Library};
use crate::subject::is_predefined;

pub(super) fn run(context: &mut Context<'_>, report: &mut Report<'_>) {
    if is_predefined(&report.subject.root().plain) {
        return;
    }
    if let Err(refusal) = checked(context.library, report) {
        report.refused(refusal);
    }
}

fn checked(library: &Library, report: &mut Report<'_>) -> Answer<()> {
    // Every callback only increments counts, and each call of `callbacks` resets these counts. The
    // first call of `callbacks` discards the counts of earlier checks.
    let root = report.subject.root();
    let (t, bounds, size) = (root.handle, root.bounds, root.judged.size());
    let expect = |report: &mut Report<'_>, kind: &str, want: CallbackCounts, when: &str| {
        let got = library.callbacks();
        if got != want {
            let shown = |c: CallbackCounts| {
                format!(
                    "{when}, the copy callbacks were called {} times, the delete callbacks {} times, and {} calls had wrong arguments",
                    c.copies, c.deletes, c.strange
                )
            };
            report.add(kind, Class::Bug, "attributes", shown(want), shown(got));
        }
    };
    library.callbacks();
    // Two of the attributes have even values, which the copy callback copies to the duplicate. The
    // third has an odd value, which the callback does not copy.
    let keyvals = [library.keyval()?, library.keyval()?, library.keyval()?];
    for (i, value) in [0x100, 0x200, 0x301].into_iter().enumerate() {
        library.set_attribute(t, keyvals[i], value)?;
    }
    let copy = library.dup(t)?;
    expect(
        report,
        "copy-callbacks",
        CallbackCounts { copies: 3, deletes: 0, strange: 0 },
        "after MPI_Type_dup",
    );
    // An attribute of the duplicate must have the value that the copy callback wrote, which is 0x10
    // more than the value of the original's attribute. The duplicate must also have the same bounds
    // and size.
    for (i, want) in [Some(0x110), Some(0x210), None].into_iter().enumerate() {
        let got = library.attribute(copy, keyvals[i])?;
        if got != want {
            let shown = |v: Option<usize>| {
                v.map_or("the duplicate lacks the attribute".to_owned(), |v| {
                    format!("the attribute of the duplicate is {v:#x}")
                })
            };
            report.add("copied-attribute", Class::Bug, "attributes", shown(want), shown(got));
        }
    }
    let like = (library.bounds(copy)?, library.size(copy)?);
    if like != (bounds, size) {
        let clause = |b: crate::library::Bounds, size: i64| {
            format!("the duplicate has lower bound {}, extent {} and size {size}", b.lb, b.extent)
        };
        report.add("duplicate", Class::Bug, "attributes", clause(bounds, size), clause(like.0, like.1));
    }
    // The delete callback is called once for the attribute that is deleted explicitly, and once for
    // the attribute that the duplicate still has when it is freed. The original still has all three
    // attributes.
    library.delete_attribute(copy, keyvals[0])?;
    expect(
        report,
        "delete-callbacks",
        CallbackCounts { copies: 0, deletes: 1, strange: 0 },
        "after MPI_Type_delete_attr",
    );
    library.free(copy)?;
    expect(
        report,
        "free-callbacks",
        CallbackCounts { copies: 0, deletes: 1, strange: 0 },
        "after MPI_Type_free",
    );
    for keyval in keyvals {
        library.delete_attribute(t, keyval)?;
        library.free_keyval(keyval)?;
    }
    expect(
        report,
        "delete-callbacks",
        CallbackCounts { copies: 0, deletes: 3, strange: 0 },
        "after MPI_Type_delete_attr of all attributes",
    );
    Ok(())
}
