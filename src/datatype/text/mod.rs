//! Text notation of datatypes: the constructor without MPI's prefix, arguments in the standard's order, datatypes last.
//!
//! ```text
//! text     = { "let" name "=" type ";" } type
//! type     = named | name | constructor "(" argument { "," argument } ")"
//! argument = [ parameter "=" ] ( number | word | type | "[" list "]" )
//! ```
//! Numbers may contain `_`; `#` starts a comment that ends with its line. Array lengths are implied, so `indexed_block` has no
//! count and `subarray` no ndims. `let` names a shared node: a DAG is written once and read back as a DAG.

mod parse;
mod print;

/// Kind of an argument of the notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A number.
    Number,
    /// A number or `undefined`.
    Optional,
    /// A list of numbers.
    Numbers,
    /// A list of numbers and `default`.
    Optionals,
    /// A list of `block`, `cyclic`, `none`.
    Distributions,
    /// `C` or `Fortran`.
    Order,
    /// A datatype.
    Type,
    /// A list of datatypes.
    Types,
}

/// A constructor's name and parameters.
struct Form {
    name: &'static str,
    parameters: &'static [(&'static str, Kind)],
}

const OLDTYPE: (&str, Kind) = ("oldtype", Kind::Type);
const COUNT: (&str, Kind) = ("count", Kind::Number);
const BLOCKLENGTH: (&str, Kind) = ("blocklength", Kind::Number);
const BLOCKLENGTHS: (&str, Kind) = ("blocklengths", Kind::Numbers);
const DISPLACEMENTS: (&str, Kind) = ("displacements", Kind::Numbers);
const STRIDE: (&str, Kind) = ("stride", Kind::Number);
const TYPES: (&str, Kind) = ("types", Kind::Types);
const VECTOR: &[(&str, Kind)] = &[COUNT, BLOCKLENGTH, STRIDE, OLDTYPE];
const INDEXED: &[(&str, Kind)] = &[BLOCKLENGTHS, DISPLACEMENTS, OLDTYPE];
const INDEXED_BLOCK: &[(&str, Kind)] = &[BLOCKLENGTH, DISPLACEMENTS, OLDTYPE];
const STRUCT: &[(&str, Kind)] = &[BLOCKLENGTHS, DISPLACEMENTS, TYPES];
const RESIZED: &[(&str, Kind)] = &[("lb", Kind::Number), ("extent", Kind::Number), OLDTYPE];
const FLOAT: &[(&str, Kind)] = &[("p", Kind::Optional), ("r", Kind::Optional)];

/// Every constructor of the notation.
const FORMS: &[Form] = &[
    Form { name: "dup", parameters: &[OLDTYPE] },
    Form { name: "contiguous", parameters: &[COUNT, OLDTYPE] },
    Form { name: "vector", parameters: VECTOR },
    Form { name: "hvector", parameters: VECTOR },
    Form { name: "hvector_integer", parameters: VECTOR },
    Form { name: "indexed", parameters: INDEXED },
    Form { name: "hindexed", parameters: INDEXED },
    Form { name: "hindexed_integer", parameters: INDEXED },
    Form { name: "indexed_block", parameters: INDEXED_BLOCK },
    Form { name: "hindexed_block", parameters: INDEXED_BLOCK },
    Form { name: "struct", parameters: STRUCT },
    Form { name: "struct_integer", parameters: STRUCT },
    Form {
        name: "subarray",
        parameters: &[
            ("sizes", Kind::Numbers),
            ("subsizes", Kind::Numbers),
            ("starts", Kind::Numbers),
            ("order", Kind::Order),
            OLDTYPE,
        ],
    },
    Form {
        name: "darray",
        parameters: &[
            ("size", Kind::Number),
            ("rank", Kind::Number),
            ("gsizes", Kind::Numbers),
            ("distribs", Kind::Distributions),
            ("dargs", Kind::Optionals),
            ("psizes", Kind::Numbers),
            ("order", Kind::Order),
            OLDTYPE,
        ],
    },
    Form { name: "f90_real", parameters: FLOAT },
    Form { name: "f90_complex", parameters: FLOAT },
    Form { name: "f90_integer", parameters: &[("r", Kind::Number)] },
    Form { name: "resized", parameters: RESIZED },
    Form { name: "bounds", parameters: RESIZED },
    Form { name: "value_index", parameters: &[("value", Kind::Type), ("index", Kind::Type)] },
];

fn form(name: &str) -> Option<&'static Form> {
    FORMS.iter().find(|f| f.name == name)
}

#[cfg(test)]
mod tests;
