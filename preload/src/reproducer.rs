//! A datatype and a call as a C program that shows what the host does with it, without this library.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};

use ddtc::datatype::{Combiner, Datatype, Distribution, Order};
use ddtc::kind::Direction;

/// A C program that packs or unpacks `count` instances of `t` and prints the bytes.
pub(crate) fn reproducer(t: &Datatype, count: u64, direction: Direction) -> String {
    let mut program = Program::default();
    let root = program.types(t);
    let last = i128::from(count.saturating_sub(1)) * i128::from(t.extent());
    let low = (i128::from(t.true_lb()) + last.min(0)).min(0);
    let high = (i128::from(t.true_ub()) + last.max(0)).max(1);
    let size = i128::from(t.size()) * i128::from(count);
    let (user, packed) = (high - low, size.max(1));
    let call = match direction {
        Direction::Pack => {
            format!("MPI_Pack(user + {}, {count}, {root}, packed, {size}, &at, MPI_COMM_SELF);", -low)
        }
        Direction::Unpack => {
            format!("MPI_Unpack(packed, {size}, &at, user + {}, {count}, {root}, MPI_COMM_SELF);", -low)
        }
    };
    let (source, shown) = match direction {
        Direction::Pack => (("user", user), ("packed", packed)),
        Direction::Unpack => (("packed", packed), ("user", user)),
    };
    format!(
        "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\nint main(void) {{\n  MPI_Init(NULL, NULL);\n{}  \
         MPI_Type_commit(&{root});\n  unsigned char *user = calloc({user}, 1), *packed = calloc({packed}, 1);\n  \
         for (long i = 0; i < {}; i++) {}[i] = i % 251;\n  int at = 0;\n  {call}\n  \
         for (long i = 0; i < {}; i++) printf(\"%02x%c\", {}[i], i % 32 == 31 ? '\\n' : ' ');\n  \
         printf(\"\\nposition %d\\n\", at);\n  MPI_Finalize();\n}}\n",
        program.text, source.1, source.0, shown.1, shown.0
    )
}

#[derive(Default)]
struct Program {
    text: String,
    names: HashMap<usize, String>,
}

impl Program {
    /// Constructors of all nodes below and with `t`, children first; gives the name of `t`.
    fn types(&mut self, t: &Datatype) -> String {
        let mut open = vec![(t, false)];
        while let Some((node, ready)) = open.pop() {
            if self.names.contains_key(&node.id()) {
                continue;
            }
            if ready {
                self.construct(node);
            } else {
                open.push((node, true));
                open.extend(node.combiner().children().map(|child| (child, false)));
            }
        }
        self.name(t)
    }

    fn name(&self, t: &Datatype) -> String {
        self.names.get(&t.id()).cloned().unwrap_or_else(|| "MPI_DATATYPE_NULL".to_owned())
    }

    /// An array of integers in braces, as a compound literal.
    fn array(of: &str, values: impl Iterator<Item = impl Display>) -> String {
        let list: Vec<String> = values.map(|v| v.to_string()).collect();
        if list.is_empty() { "NULL".to_owned() } else { format!("({of}[]){{{}}}", list.join(",")) }
    }

    fn construct(&mut self, t: &Datatype) {
        use Combiner as C;
        let large = t.is_large_count() || !fits(t.combiner());
        let (c, int, aint) = if large { ("_c", "MPI_Count", "MPI_Count") } else { ("", "int", "MPI_Aint") };
        let ints = |values: &[i64]| Self::array(int, values.iter());
        let aints = |values: &[i64]| Self::array(aint, values.iter());
        let plain = |values: &[i64]| Self::array("int", values.iter());
        let order = |order: &Order| match order {
            Order::C => "MPI_ORDER_C",
            Order::Fortran => "MPI_ORDER_FORTRAN",
        };
        let call = match t.combiner() {
            C::Named(named) => {
                self.names.insert(t.id(), named.mpi_name().to_owned());
                return;
            }
            // The host decides its bounds itself.
            C::Bounds { oldtype, .. } => {
                let name = self.name(oldtype);
                self.names.insert(t.id(), name);
                return;
            }
            C::Dup { oldtype } => format!("MPI_Type_dup({}", self.name(oldtype)),
            C::Contiguous { count, oldtype } => {
                format!("MPI_Type_contiguous{c}({count}, {}", self.name(oldtype))
            }
            C::Vector { count, blocklength, stride, oldtype } => {
                format!("MPI_Type_vector{c}({count}, {blocklength}, {stride}, {}", self.name(oldtype))
            }
            C::Hvector { count, blocklength, stride, oldtype, .. } => {
                format!("MPI_Type_create_hvector{c}({count}, {blocklength}, {stride}, {}", self.name(oldtype))
            }
            C::Indexed { blocklengths, displacements, oldtype } => format!(
                "MPI_Type_indexed{c}({}, {}, {}, {}",
                displacements.len(),
                ints(blocklengths),
                ints(displacements),
                self.name(oldtype)
            ),
            C::Hindexed { blocklengths, displacements, oldtype, .. } => format!(
                "MPI_Type_create_hindexed{c}({}, {}, {}, {}",
                displacements.len(),
                ints(blocklengths),
                aints(displacements),
                self.name(oldtype)
            ),
            C::IndexedBlock { blocklength, displacements, oldtype } => format!(
                "MPI_Type_create_indexed_block{c}({}, {blocklength}, {}, {}",
                displacements.len(),
                ints(displacements),
                self.name(oldtype)
            ),
            C::HindexedBlock { blocklength, displacements, oldtype } => format!(
                "MPI_Type_create_hindexed_block{c}({}, {blocklength}, {}, {}",
                displacements.len(),
                aints(displacements),
                self.name(oldtype)
            ),
            C::Struct { blocklengths, displacements, types, .. } => format!(
                "MPI_Type_create_struct{c}({}, {}, {}, {}",
                types.len(),
                ints(blocklengths),
                aints(displacements),
                Self::array("MPI_Datatype", types.iter().map(|t| self.name(t)))
            ),
            C::Subarray { sizes, subsizes, starts, order: o, oldtype } => format!(
                "MPI_Type_create_subarray{c}({}, {}, {}, {}, {}, {}",
                sizes.len(),
                ints(sizes),
                ints(subsizes),
                ints(starts),
                order(o),
                self.name(oldtype)
            ),
            C::Darray { size, rank, gsizes, distribs, dargs, psizes, order: o, oldtype } => format!(
                "MPI_Type_create_darray{c}({size}, {rank}, {}, {}, {}, {}, {}, {}, {}",
                gsizes.len(),
                ints(gsizes),
                Self::array("int", distribs.iter().map(distribution)),
                Self::array(
                    "int",
                    dargs.iter().map(|d| d.map_or("MPI_DISTRIBUTE_DFLT_DARG".to_owned(), |d| d.to_string()))
                ),
                plain(psizes),
                order(o),
                self.name(oldtype)
            ),
            C::F90Real { p, r } => format!("MPI_Type_create_f90_real({}, {}", or(*p), or(*r)),
            C::F90Complex { p, r } => format!("MPI_Type_create_f90_complex({}, {}", or(*p), or(*r)),
            C::F90Integer { r } => format!("MPI_Type_create_f90_integer({r}"),
            C::Resized { lb, extent, oldtype } => {
                format!("MPI_Type_create_resized{c}({}, {lb}, {extent}", self.name(oldtype))
            }
            C::ValueIndex { value, index } => {
                format!("MPI_Type_get_value_index({}, {}", self.name(value), self.name(index))
            }
        };
        let name = format!("t{}", self.names.len());
        let _ = writeln!(self.text, "  MPI_Datatype {name};\n  {call}, &{name});");
        self.names.insert(t.id(), name);
    }
}

fn distribution(d: &Distribution) -> &'static str {
    match d {
        Distribution::Block => "MPI_DISTRIBUTE_BLOCK",
        Distribution::Cyclic => "MPI_DISTRIBUTE_CYCLIC",
        Distribution::None => "MPI_DISTRIBUTE_NONE",
    }
}

fn or(n: Option<i64>) -> String {
    n.map_or("MPI_UNDEFINED".to_owned(), |n| n.to_string())
}

/// Whether the small form can express the arguments that it takes as `int`.
fn fits(combiner: &Combiner) -> bool {
    use Combiner as C;
    let all = |lists: &[&[i64]]| lists.iter().all(|l| l.iter().all(|&n| i32::try_from(n).is_ok()));
    match combiner {
        C::Contiguous { count, .. } => all(&[&[*count]]),
        C::Vector { count, blocklength, stride, .. } => all(&[&[*count, *blocklength, *stride]]),
        C::Hvector { count, blocklength, .. } => all(&[&[*count, *blocklength]]),
        C::Indexed { blocklengths, displacements, .. } => all(&[blocklengths, displacements]),
        C::Hindexed { blocklengths, .. } | C::Struct { blocklengths, .. } => all(&[blocklengths]),
        C::IndexedBlock { blocklength, displacements, .. } => all(&[&[*blocklength], displacements]),
        C::HindexedBlock { blocklength, .. } => all(&[&[*blocklength]]),
        C::Subarray { sizes, subsizes, starts, .. } => all(&[sizes, subsizes, starts]),
        C::Darray { gsizes, .. } => all(&[gsizes]),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_struct_of_vectors() {
        let t: Datatype = "struct([1, 2], [0, 64], [vector(3, 1, 2, int), double])".parse().unwrap();
        let text = reproducer(&t, 2, Direction::Pack);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(lines.contains(&"MPI_Type_vector(3, 1, 2, MPI_INT, &t2);"), "{text}");
        assert!(
            lines.contains(
                &"MPI_Type_create_struct(2, (int[]){1,2}, (MPI_Aint[]){0,64}, (MPI_Datatype[]){t2,MPI_DOUBLE}, &t3);"
            ),
            "{text}"
        );
        assert!(text.contains("MPI_Pack(user + 0, 2, t3, packed, 56, &at, MPI_COMM_SELF);"), "{text}");
    }

    #[test]
    fn large_counts_take_the_large_form() {
        let t: Datatype = "vector(2, 1, 4000000000, char)".parse().unwrap();
        assert!(
            reproducer(&t, 1, Direction::Unpack).contains("MPI_Type_vector_c(2, 1, 4000000000, MPI_CHAR")
        );
    }
}
