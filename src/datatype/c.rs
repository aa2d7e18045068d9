//! C program text that builds a datatype with MPI's constructors, and numbers and arrays as C
//! expressions (`literal`, `array`).
//!
//! The text is for programs that ask an MPI library about a datatype: reproducers, benchmarks and
//! comparisons with another library. Invariant: every node of the DAG is built once, after its
//! children. A node that was built by a large-count constructor, or whose counts need one, is built
//! by that constructor again.

use std::collections::HashMap;
use std::fmt::{Display, Write};

use super::combiner::{Argument, Combiner, Distribution, Order};
use super::{Datatype, postorder};

/// Treatment of the bounds that an MPI library gave to a datatype that was decoded from it. MPI has
/// no constructor for such bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostBounds {
    /// The program leaves the bounds out, because it runs with the library that decided them, which
    /// decides them again.
    Omitted,
    /// The program sets the bounds by `MPI_Type_create_resized`, so that the type has them in any
    /// library. The resized type packs the same bytes.
    Resized,
}

/// Appends C statements to `out` that declare and build the nodes of `t`, for the body of a
/// function. Returns the C expression of `t` itself.
pub fn constructors(t: &Datatype, bounds: HostBounds, out: &mut String) -> String {
    let mut names: HashMap<usize, String> = HashMap::new();
    for node in postorder(t) {
        let name = match node.combiner() {
            Combiner::Named(n) => n.mpi_name().to_owned(),
            Combiner::Bounds { oldtype, .. } if bounds == HostBounds::Omitted => names[&oldtype.id()].clone(),
            combiner => {
                let name = format!("t{}", names.len());
                let (function, c) = (function(combiner), if node.is_large_count() { "_c" } else { "" });
                let arguments = arguments(combiner, node.is_large_count(), &names).join(", ");
                let _ = writeln!(out, "    MPI_Datatype {name};\n    {function}{c}({arguments}, &{name});");
                name
            }
        };
        names.insert(node.id(), name);
    }
    names.remove(&t.id()).unwrap_or_default()
}

/// Returns the name of MPI's function for a constructor. The MPI-1 forms with INTEGER addresses no
/// longer exist in MPI, so the result for such a form is the name of its successor, which means the
/// same.
fn function(combiner: &Combiner) -> String {
    let prefix = match combiner {
        Combiner::Dup { .. }
        | Combiner::Contiguous { .. }
        | Combiner::Vector { .. }
        | Combiner::Indexed { .. } => "",
        Combiner::ValueIndex { .. } => "get_",
        _ => "create_",
    };
    let name = match combiner {
        Combiner::Bounds { .. } => "resized",
        Combiner::Hvector { .. } => "hvector",
        Combiner::Hindexed { .. } => "hindexed",
        Combiner::Struct { .. } => "struct",
        _ => combiner.text_name(),
    };
    format!("MPI_Type_{prefix}{name}")
}

/// Returns the arguments of the call in MPI's order, without the last one, which is the new
/// datatype.
fn arguments(combiner: &Combiner, large: bool, names: &HashMap<usize, String>) -> Vec<String> {
    let name = |t: &Datatype| names[&t.id()].clone();
    let (count, address) = if large { ("MPI_Count", "MPI_Count") } else { ("int", "MPI_Aint") };
    let or = |value: Option<i64>, none: &str| value.map_or(none.to_owned(), literal);
    let mut list: Vec<String> = combiner
        .parameters()
        .into_iter()
        .map(|(_, argument)| match argument {
            Argument::Number(n) => literal(n),
            Argument::Optional(n) => or(n, "MPI_UNDEFINED"),
            Argument::Integers(values) => array("int", values.iter().copied().map(literal)),
            Argument::Counts(values) => array(count, values.iter().copied().map(literal)),
            Argument::Addresses(values) => array(address, values.iter().copied().map(literal)),
            Argument::Defaults(values) => {
                array("int", values.iter().map(|&n| or(n, "MPI_DISTRIBUTE_DFLT_DARG")))
            }
            Argument::Distributions(values) => array(
                "int",
                values.iter().map(|d| match d {
                    Distribution::Block => "MPI_DISTRIBUTE_BLOCK",
                    Distribution::Cyclic => "MPI_DISTRIBUTE_CYCLIC",
                    Distribution::None => "MPI_DISTRIBUTE_NONE",
                }),
            ),
            Argument::Order(Order::C) => "MPI_ORDER_C".to_owned(),
            Argument::Order(Order::Fortran) => "MPI_ORDER_FORTRAN".to_owned(),
            Argument::Type(t) => name(t),
            Argument::Types([]) => array("MPI_Datatype", ["MPI_BYTE"]),
            Argument::Types(types) => array("MPI_Datatype", types.iter().map(name)),
        })
        .collect();
    match combiner {
        // `parameters` leaves out the lengths of arrays, and lists `oldtype` after the numbers.
        // Insert each length where MPI has it, and for resized move `oldtype` to the front.
        Combiner::Indexed { displacements: entries, .. }
        | Combiner::Hindexed { displacements: entries, .. }
        | Combiner::IndexedBlock { displacements: entries, .. }
        | Combiner::HindexedBlock { displacements: entries, .. }
        | Combiner::Struct { displacements: entries, .. }
        | Combiner::Subarray { sizes: entries, .. } => list.insert(0, entries.len().to_string()),
        Combiner::Darray { gsizes, .. } => list.insert(2, gsizes.len().to_string()),
        Combiner::Resized { .. } | Combiner::Bounds { .. } => list.rotate_right(1),
        _ => {}
    }
    list
}

/// Returns an array of values as a C compound literal. Since C has no empty array, an array without
/// values gets a single zero.
pub fn array<T: Display>(element: &str, values: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = values.into_iter().map(|v| v.to_string()).collect();
    let items = if items.is_empty() { "0".to_owned() } else { items.join(", ") };
    format!("({element}[]){{{items}}}")
}

/// Returns a 64-bit number as a C expression. In C, a decimal constant has the first type in which
/// it fits. The lowest number is written as a difference, because its digits without the minus sign
/// fit in no type.
pub fn literal(n: i64) -> String {
    if n == i64::MIN { format!("({} - 1)", n + 1) } else { n.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(t: &str, bounds: HostBounds) -> (String, String) {
        let mut out = String::new();
        let root = constructors(&t.parse().unwrap(), bounds, &mut out);
        (out, root)
    }

    #[test]
    fn every_constructor_has_mpis_arguments() {
        for (t, call) in [
            ("dup(int)", "MPI_Type_dup(MPI_INT, &t1)"),
            ("contiguous(3, int)", "MPI_Type_contiguous(3, MPI_INT, &t1)"),
            ("vector(2, 1, 3, int)", "MPI_Type_vector(2, 1, 3, MPI_INT, &t1)"),
            ("hvector_integer(2, 1, 3, int)", "MPI_Type_create_hvector(2, 1, 3, MPI_INT, &t1)"),
            ("indexed([1], [2], int)", "MPI_Type_indexed(1, (int[]){1}, (int[]){2}, MPI_INT, &t1)"),
            (
                "hindexed([1, 1], [2, 8], int)",
                "MPI_Type_create_hindexed(2, (int[]){1, 1}, (MPI_Aint[]){2, 8}, MPI_INT, &t1)",
            ),
            ("indexed_block(1, [2], int)", "MPI_Type_create_indexed_block(1, 1, (int[]){2}, MPI_INT, &t1)"),
            (
                "hindexed_block(1, [2], int)",
                "MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){2}, MPI_INT, &t1)",
            ),
            (
                "struct([1], [-9223372036854775808], [byte])",
                "MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){(-9223372036854775807 - 1)}, (MPI_Datatype[]){MPI_BYTE}, &t1)",
            ),
            (
                "struct([], [], [])",
                "MPI_Type_create_struct(0, (int[]){0}, (MPI_Aint[]){0}, (MPI_Datatype[]){MPI_BYTE}, &t0)",
            ),
            (
                "subarray([4], [2], [1], Fortran, int)",
                "MPI_Type_create_subarray(1, (int[]){4}, (int[]){2}, (int[]){1}, MPI_ORDER_FORTRAN, MPI_INT, &t1)",
            ),
            (
                "darray(2, 1, [8], [cyclic], [default], [2], C, int)",
                "MPI_Type_create_darray(2, 1, 1, (int[]){8}, (int[]){MPI_DISTRIBUTE_CYCLIC}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, \
                 (int[]){2}, MPI_ORDER_C, MPI_INT, &t1)",
            ),
            ("f90_real(6, undefined)", "MPI_Type_create_f90_real(6, MPI_UNDEFINED, &t0)"),
            ("f90_integer(4)", "MPI_Type_create_f90_integer(4, &t0)"),
            ("resized(-4, 16, int)", "MPI_Type_create_resized(MPI_INT, -4, 16, &t1)"),
            ("value_index(int, long)", "MPI_Type_get_value_index(MPI_INT, MPI_LONG, &t2)"),
        ] {
            let (out, root) = text(t, HostBounds::Resized);
            let declared = format!("    MPI_Datatype {root};\n    {call};\n");
            assert_eq!(out, declared, "{t}");
        }
    }

    #[test]
    fn large_counts_take_the_large_form() {
        let (out, _) = text("indexed([4000000000], [1], byte)", HostBounds::Resized);
        assert!(
            out.contains("MPI_Type_indexed_c(1, (MPI_Count[]){4000000000}, (MPI_Count[]){1}, MPI_BYTE, &t1)"),
            "{out}"
        );
    }

    #[test]
    fn shared_nodes_are_built_once_and_bounds_as_asked() {
        let t = "let a = vector(2,1,3,int); struct([1,1],[0,99],[bounds(0, 64, a),a])";
        let (out, root) = text(t, HostBounds::Resized);
        assert_eq!((out.matches("vector").count(), root.as_str()), (1, "t3"), "{out}");
        assert!(out.contains("MPI_Type_create_resized(t1, 0, 64, &t2);"), "{out}");
        let (out, _) = text(t, HostBounds::Omitted);
        assert!(out.contains("(MPI_Datatype[]){t1, t1}, &t3);") && !out.contains("resized"), "{out}");
    }
}
