//! Text notation of datatypes. A datatype is written as its constructor without MPI's prefix, with
//! the arguments in the standard's order, except that datatypes are last.
//!
//! ```text
//! text     = { "let" name "=" type ";" } type
//! type     = named | name | constructor "(" argument { "," argument } ")"
//! argument = [ parameter "=" ] ( number | word | type | "[" list "]" )
//! ```
//! Numbers may contain `_`, and `#` starts a comment that ends with its line. The lengths of arrays
//! are implied, so `indexed_block` has no count and `subarray` no ndims. `let` gives a name to a
//! shared node, so that it is written once and read back as one node. The printer does this only if
//! it estimates that the node's text has more than 96 characters. A shared node with a shorter text
//! is written at each use and, unless it is a named type, read back as a separate node each time.

mod parse;
mod print;

/// Kind of an argument in the text notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParameterKind {
    /// A number.
    Number,
    /// A number or `undefined`.
    Optional,
    /// A list of numbers.
    Numbers,
    /// A list, each entry of which is a number or `default`.
    Optionals,
    /// A list of the words `block`, `cyclic` and `none`.
    Distributions,
    /// `C` or `Fortran`.
    Order,
    /// A datatype.
    Type,
    /// A list of datatypes.
    Types,
}

/// Name of a constructor in the text notation, and the names and kinds of its parameters.
struct ConstructorSyntax {
    name: &'static str,
    parameters: &'static [(&'static str, ParameterKind)],
}

const OLDTYPE: (&str, ParameterKind) = ("oldtype", ParameterKind::Type);
const COUNT: (&str, ParameterKind) = ("count", ParameterKind::Number);
const BLOCKLENGTH: (&str, ParameterKind) = ("blocklength", ParameterKind::Number);
const BLOCKLENGTHS: (&str, ParameterKind) = ("blocklengths", ParameterKind::Numbers);
const DISPLACEMENTS: (&str, ParameterKind) = ("displacements", ParameterKind::Numbers);
const STRIDE: (&str, ParameterKind) = ("stride", ParameterKind::Number);
const TYPES: (&str, ParameterKind) = ("types", ParameterKind::Types);
const VECTOR: &[(&str, ParameterKind)] = &[COUNT, BLOCKLENGTH, STRIDE, OLDTYPE];
const INDEXED: &[(&str, ParameterKind)] = &[BLOCKLENGTHS, DISPLACEMENTS, OLDTYPE];
const INDEXED_BLOCK: &[(&str, ParameterKind)] = &[BLOCKLENGTH, DISPLACEMENTS, OLDTYPE];
const STRUCT: &[(&str, ParameterKind)] = &[BLOCKLENGTHS, DISPLACEMENTS, TYPES];
const RESIZED: &[(&str, ParameterKind)] =
    &[("lb", ParameterKind::Number), ("extent", ParameterKind::Number), OLDTYPE];
const FLOAT: &[(&str, ParameterKind)] = &[("p", ParameterKind::Optional), ("r", ParameterKind::Optional)];

/// Every constructor of the text notation.
const CONSTRUCTORS: &[ConstructorSyntax] = &[
    ConstructorSyntax { name: "dup", parameters: &[OLDTYPE] },
    ConstructorSyntax { name: "contiguous", parameters: &[COUNT, OLDTYPE] },
    ConstructorSyntax { name: "vector", parameters: VECTOR },
    ConstructorSyntax { name: "hvector", parameters: VECTOR },
    ConstructorSyntax { name: "hvector_integer", parameters: VECTOR },
    ConstructorSyntax { name: "indexed", parameters: INDEXED },
    ConstructorSyntax { name: "hindexed", parameters: INDEXED },
    ConstructorSyntax { name: "hindexed_integer", parameters: INDEXED },
    ConstructorSyntax { name: "indexed_block", parameters: INDEXED_BLOCK },
    ConstructorSyntax { name: "hindexed_block", parameters: INDEXED_BLOCK },
    ConstructorSyntax { name: "struct", parameters: STRUCT },
    ConstructorSyntax { name: "struct_integer", parameters: STRUCT },
    ConstructorSyntax {
        name: "subarray",
        parameters: &[
            ("sizes", ParameterKind::Numbers),
            ("subsizes", ParameterKind::Numbers),
            ("starts", ParameterKind::Numbers),
            ("order", ParameterKind::Order),
            OLDTYPE,
        ],
    },
    ConstructorSyntax {
        name: "darray",
        parameters: &[
            ("size", ParameterKind::Number),
            ("rank", ParameterKind::Number),
            ("gsizes", ParameterKind::Numbers),
            ("distribs", ParameterKind::Distributions),
            ("dargs", ParameterKind::Optionals),
            ("psizes", ParameterKind::Numbers),
            ("order", ParameterKind::Order),
            OLDTYPE,
        ],
    },
    ConstructorSyntax { name: "f90_real", parameters: FLOAT },
    ConstructorSyntax { name: "f90_complex", parameters: FLOAT },
    ConstructorSyntax { name: "f90_integer", parameters: &[("r", ParameterKind::Number)] },
    ConstructorSyntax { name: "resized", parameters: RESIZED },
    ConstructorSyntax { name: "bounds", parameters: RESIZED },
    ConstructorSyntax {
        name: "value_index",
        parameters: &[("value", ParameterKind::Type), ("index", ParameterKind::Type)],
    },
];

fn find_constructor(name: &str) -> Option<&'static ConstructorSyntax> {
    CONSTRUCTORS.iter().find(|f| f.name == name)
}

#[cfg(test)]
mod tests;
