//! Checks that a predefined reduction is defined for the elements of a datatype (MPI 5.0, the
//! tables of 6.9.2 to 6.9.4), and otherwise finds the first element for which the reduction is not
//! defined.
//!
//! Each node of a datatype is visited once, so the search takes one look at the constructors,
//! however many elements come before the element that it finds.

use std::collections::HashMap;

use super::{Class, Combiner, Datatype, Language, Named};
use crate::error::{Error, ErrorClass, Result};
use crate::kind::Op;

/// An element of a datatype, as reductions treat it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Element {
    /// A named type.
    Named(Named),
    /// An unnamed pair of a value and an index type.
    Pair(Named, Named),
}

impl Op {
    /// Returns true if the operation is defined for the named type (MPI 5.0, 6.9.2 and 6.9.4;
    /// 12.3.4 for `MPI_REPLACE` and `MPI_NO_OP`).
    pub(crate) fn takes(self, named: Named) -> bool {
        let (class, language) = (named.class(), named.language());
        let integer = matches!(class, Class::Integer | Class::Unsigned);
        match self {
            Op::Min | Op::Max => integer || class == Class::Float,
            Op::Sum | Op::Prod => integer || matches!(class, Class::Float | Class::Complex),
            Op::Land | Op::Lor | Op::Lxor => integer && language == Language::C || class == Class::Logical,
            Op::Band | Op::Bor | Op::Bxor => integer || class == Class::Byte,
            Op::Minloc | Op::Maxloc => class == Class::Pair,
            Op::Replace | Op::NoOp => class != Class::Marker,
        }
    }

    fn takes_element(self, element: Element) -> bool {
        let ordered = |n: Named| matches!(n.class(), Class::Integer | Class::Unsigned | Class::Float);
        match element {
            Element::Named(named) => self.takes(named),
            Element::Pair(value, index) if self.is_location() => ordered(value) && ordered(index),
            Element::Pair(..) => matches!(self, Op::Replace | Op::NoOp),
        }
    }
}

/// The first element of one instance for which a condition holds, as the result of a search.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// Number of basic elements before this element.
    before: i128,
    displacement: i128,
    element: Element,
}

impl Datatype {
    /// Returns the parts of an unnamed pair type: the value, and the index with its displacement in
    /// bytes.
    pub(crate) fn value_index_parts(&self) -> Option<(Named, (Named, i64))> {
        let Combiner::ValueIndex { value, index } = self.combiner() else { return None };
        let (value, index) = (value.basic()?, index.basic()?);
        let align = index.alignment();
        Some((value, (index, (value.size() + align - 1) / align * align)))
    }

    /// Checks that `op` is defined for every element of the datatype.
    ///
    /// # Errors
    /// Returns an error of class `Op` that names the first element for which `op` is not defined:
    /// the number of basic elements before it, its type and its displacement in bytes.
    pub(crate) fn check_reduction(&self, op: Op) -> Result<()> {
        let rule = || format!("must be of a type for which {} is defined", op.mpi_name());
        self.check_elements(op.name(), |element| op.takes_element(element), rule)
    }

    /// Checks that every element is of type `named`.
    ///
    /// # Errors
    /// Returns an error of class `Op` about the first element of another type, with the same
    /// details as [`Datatype::check_reduction`].
    pub(crate) fn check_basic(&self, operation: &'static str, named: Named) -> Result<()> {
        let rule = || format!("must be {}, as all elements that are reduced", named.mpi_name());
        self.check_elements(operation, |element| element == Element::Named(named), rule)
    }

    fn check_elements(
        &self,
        operation: &'static str,
        accepts: impl Fn(Element) -> bool,
        rule: impl FnOnce() -> String,
    ) -> Result<()> {
        let Some(Found { before, displacement, element }) = self.first_element(|e| !accepts(e)) else {
            return Ok(());
        };
        let name = match element {
            Element::Named(named) => named.mpi_name().to_owned(),
            Element::Pair(value, index) => format!("value {value:?} and index {index:?}"),
        };
        let value = format!("{before} ({name} at displacement {displacement})");
        Err(Error::new(ErrorClass::Op, operation, "element", value, rule()))
    }

    /// Returns the basic type of all elements, or `None` if there are no elements. A named pair
    /// counts as one type.
    ///
    /// # Errors
    /// Returns the error of [`Datatype::check_basic`] about the first element that differs in type
    /// from element 0. Returns an error of class `Type` if element 0 is an unnamed pair.
    pub(crate) fn only_basic(&self, operation: &'static str) -> Result<Option<Named>> {
        match self.first_element(|_| true) {
            None => Ok(None),
            Some(Found { element: Element::Named(named), .. }) => {
                self.check_basic(operation, named).map(|()| Some(named))
            }
            Some(Found { element: Element::Pair(value, index), .. }) => {
                let rule = "must be of a named type";
                let value = format!("value {value:?} and index {index:?}");
                Err(Error::new(ErrorClass::Type, operation, "element", value, rule))
            }
        }
    }

    /// Returns the first element for which `wanted` holds.
    fn first_element(&self, wanted: impl Fn(Element) -> bool) -> Option<Found> {
        // Visit the DAG with an explicit stack, children before parents. `done` has the result for
        // every node that has been visited completely, with displacements relative to the origin of
        // that node.
        let mut done: HashMap<usize, Option<Found>> = HashMap::new();
        let mut stack = vec![(self, false)];
        while let Some((t, children_done)) = stack.pop() {
            if done.contains_key(&t.id()) {
                continue;
            }
            let leaf = match t.basic() {
                Some(named) => Some(Element::Named(named)),
                None => t.value_index_parts().map(|(value, (index, _))| Element::Pair(value, index)),
            };
            // A named type or an unnamed pair is an element itself. Any other node gets its result
            // from its children or its expansion, once `done` has theirs.
            let found = match leaf {
                _ if t.size() == 0 => None,
                Some(element) => wanted(element).then_some(Found { before: 0, displacement: 0, element }),
                None if !children_done => {
                    stack.push((t, true));
                    match t.expansion() {
                        Some(e) => stack.push((e, false)),
                        None => stack.extend(t.combiner().children().map(|child| (child, false))),
                    }
                    continue;
                }
                None => match t.expansion() {
                    Some(e) => done.get(&e.id()).copied().flatten(),
                    None => first_in_blocks(t, &done),
                },
            };
            done.insert(t.id(), found);
        }
        done.get(&self.id()).copied().flatten()
    }
}

/// Returns the first element for which the condition holds in the blocks of constructor `t`. `done`
/// has the results for the children of `t`.
fn first_in_blocks(t: &Datatype, done: &HashMap<usize, Option<Found>>) -> Option<Found> {
    let mut before = 0_i128;
    let one_child = !matches!(t.combiner(), Combiner::Struct { .. });
    for i in 0.. {
        let (child, copies, displacement) = super::typemap::block(t.combiner(), i)?;
        let found = done.get(&child.id()).copied().flatten();
        if let Some(found) = found
            && copies > 0
        {
            return Some(Found {
                before: before + found.before,
                displacement: found.displacement + i128::from(displacement),
                ..found
            });
        }
        if one_child && found.is_none() {
            return None;
        }
        before += i128::from(copies) * i128::from(child.signature().length());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str, op: Op) -> Result<()> {
        text.parse::<Datatype>().unwrap().check_reduction(op)
    }

    /// Tries each operation on a list of named types. The list has types of every class except
    /// `Marker`, and of several languages where the language matters.
    #[test]
    fn the_tables_of_the_standard() {
        let names = |op: Op| -> Vec<&str> {
            let some = [
                Named::Int,
                Named::UnsignedChar,
                Named::SignedChar,
                Named::Char,
                Named::Wchar,
                Named::Integer,
                Named::Aint,
                Named::Double,
                Named::Real16,
                Named::CFloatComplex,
                Named::Logical,
                Named::CBool,
                Named::Byte,
                Named::Packed,
                Named::DoubleInt,
                Named::TwoReal,
                Named::Character,
            ];
            some.into_iter().filter(|&n| op.takes(n)).map(Named::text_name).collect()
        };
        // These are the integer types in the list. Arithmetic and bitwise operations take all of
        // them, and logical operations only those of C.
        let integers = ["int", "unsigned_char", "signed_char", "integer", "aint"];
        let integers_and = |more: &[&'static str]| [&integers, more].concat();
        for op in [Op::Min, Op::Max] {
            assert_eq!(names(op), integers_and(&["double", "real16"]));
        }
        for op in [Op::Sum, Op::Prod] {
            assert_eq!(names(op), integers_and(&["double", "real16", "c_float_complex"]));
        }
        for op in [Op::Land, Op::Lor, Op::Lxor] {
            assert_eq!(names(op), ["int", "unsigned_char", "signed_char", "logical", "c_bool"]);
        }
        for op in [Op::Band, Op::Bor, Op::Bxor] {
            assert_eq!(names(op), integers_and(&["byte"]));
        }
        for op in [Op::Minloc, Op::Maxloc] {
            assert_eq!(names(op), ["double_int", "2real"]);
        }
        for op in [Op::Replace, Op::NoOp] {
            assert_eq!(names(op).len(), 17);
        }
    }

    #[test]
    fn the_first_element_is_named() {
        let refusal = |text: &str, op| match first(text, op) {
            Ok(()) => String::new(),
            Err(e) => {
                assert_eq!((e.class(), e.argument()), (ErrorClass::Op, "element"));
                e.value().to_owned()
            }
        };
        assert_eq!(refusal("vector(4, 2, 3, int)", Op::Sum), "");
        assert_eq!(refusal("vector(4, 2, 3, char)", Op::Sum), "0 (MPI_CHAR at displacement 0)");
        let mixed = "struct([3, 0, 2], [0, 100, 50], [int, char, struct([2, 1], [0, 9], [double, char])])";
        assert_eq!(refusal(mixed, Op::Sum), "5 (MPI_CHAR at displacement 59)");
        assert_eq!(refusal(mixed, Op::Replace), "");
        assert_eq!(refusal(mixed, Op::Band), "3 (MPI_DOUBLE at displacement 50)");
        assert_eq!(refusal("struct([0, 1], [0, 8], [char, int])", Op::Max), "");
        assert_eq!(
            refusal("indexed([0, 2], [5, 7], logical)", Op::Sum),
            "0 (MPI_LOGICAL at displacement 28)"
        );
        assert_eq!(
            refusal("subarray([4, 5], [2, 2], [1, 2], C, char)", Op::Sum),
            "0 (MPI_CHAR at displacement 7)"
        );
        // A structure of a double and an int does not count as a pair type, and a pair type does
        // not count as two numbers.
        assert_eq!(
            refusal("struct([1, 1], [0, 8], [double, int])", Op::Minloc),
            "0 (MPI_DOUBLE at displacement 0)"
        );
        assert_eq!(
            refusal("struct([1, 1], [0, 8], [int, double_int])", Op::Sum),
            "1 (MPI_DOUBLE_INT at displacement 8)"
        );
        assert_eq!(refusal("value_index(double, long)", Op::Minloc), "");
        assert_eq!(
            refusal("contiguous(3, value_index(double, long))", Op::Sum),
            "0 (value MPI_DOUBLE and index MPI_LONG at displacement 0)"
        );
        assert_eq!(refusal("f90_integer(9)", Op::Land), "0 (MPI_INTEGER4 at displacement 0)");
    }

    #[test]
    fn elements_far_away_are_found_at_once() {
        let t = "struct([1, 1], [0, 0], [contiguous(1000000000000, int), char])";
        assert!(first(t, Op::Sum).unwrap_err().value().starts_with("1000000000000 (MPI_CHAR"));
    }

    #[test]
    fn one_basic_type() {
        let only = |text: &str| text.parse::<Datatype>().unwrap().only_basic("op");
        assert_eq!(only("vector(2, 1, 3, double_int)"), Ok(Some(Named::DoubleInt)));
        assert_eq!(only("contiguous(0, int)"), Ok(None));
        let error = only("struct([1, 1], [0, 8], [int, unsigned])").unwrap_err();
        assert_eq!(error.value(), "1 (MPI_UNSIGNED at displacement 8)");
        assert_eq!(only("value_index(double, long)").unwrap_err().class(), ErrorClass::Type);
    }
}
