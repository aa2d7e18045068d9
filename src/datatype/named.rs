//! Named predefined datatypes: one row per type of MPI 5.0, and one for each of the markers
//! `MPI_LB` and `MPI_UB`, which MPI 3.0 removed.
//!
//! Source: MPI 5.0 sections 3.2.2 (C and Fortran types), 6.9.4 (pair types), 14.5.2 (external32
//! sizes) and 19.1.9 (sized Fortran types). Sizes and alignments are those of C compilers for
//! 64-bit targets. Only those of `long`, `wchar_t`, `long double` and addresses depend on the
//! target of this build, and those of Fortran's default kinds are those of [`FortranKinds`]. For
//! 32-bit targets, some are wrong: on 32-bit x86, `double` is aligned to 4 bytes and not to 8.
//! Invariant: the size in a row is the sum of the sizes of its pieces, and every type except the
//! markers has a positive size.

use std::fmt;

use crate::error::{Error, ErrorClass, Result};
use crate::process::Once;

/// Kind of value that a basic type holds (MPI 5.0 section 6.9.2 groups them for reductions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Signed integer, `MPI_AINT`, `MPI_COUNT` and `MPI_OFFSET` included.
    Integer,
    /// Unsigned integer.
    Unsigned,
    /// Real floating point.
    Float,
    /// Complex number: two reals of half the size, with the real part first.
    Complex,
    /// C, C++ or Fortran truth value.
    Logical,
    /// Printable character, for which no arithmetic is defined.
    Character,
    /// Uninterpreted byte.
    Byte,
    /// Byte of a packed stream that `MPI_Pack` wrote.
    Packed,
    /// Value and index for `MPI_MINLOC` and `MPI_MAXLOC`: two basic types, possibly with padding.
    Pair,
    /// `MPI_LB` or `MPI_UB` of MPI-1, which has size 0 and only sets a bound.
    Marker,
}

/// The language whose compiler decides a basic type's representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cxx,
    /// Fortran.
    Fortran,
    /// A type that is the same in every language.
    Any,
}

struct Row {
    /// Name in the text notation: MPI's name, or its synonym, in lower case without `MPI_`.
    text: &'static str,
    /// MPI's name.
    c: &'static str,
    size: u8,
    align: u8,
    external32: u8,
    class: Class,
    language: Language,
    /// Basic types of the type map in order, with their displacements in bytes. A type that is not
    /// a pair lists itself, and a marker lists nothing.
    parts: &'static [(Named, i64)],
    /// Offset and size in bytes of every part.
    pieces: &'static [(i64, i64)],
}

const LONG: u8 = size_of::<std::ffi::c_long>() as u8;
const LONG_ALIGN: u8 = align_of::<std::ffi::c_long>() as u8;
const WCHAR: u8 = size_of::<libc::wchar_t>() as u8;
const ADDRESS: u8 = size_of::<isize>() as u8;
/// Size in bytes of C's `long double`. On Windows and on Apple's aarch64 it is a double of 8 bytes.
/// On other systems with x86-64 or aarch64 it has 16 bytes, as an x87 number with 6 bytes of
/// padding or as binary128. For any other target 16 bytes are assumed, which is wrong for some: on
/// 32-bit x86 it has 12 bytes.
const LONG_DOUBLE: u8 =
    if cfg!(any(windows, all(target_vendor = "apple", target_arch = "aarch64"))) { 8 } else { 16 };

const fn pair_offset(value: u8, index_align: u8) -> i64 {
    value.div_ceil(index_align) as i64 * index_align as i64
}

macro_rules! named_types {
    ($($variant:ident $text:literal $c:literal $size:expr, $align:expr, $external:expr, $class:ident, $language:ident
       $(, [$first:ident, $second:ident at $at:expr, $first_size:expr, $second_size:expr])? ;)*) => {
        /// A named predefined datatype.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Named {
            $(#[doc = concat!("`", $c, "`")] $variant,)*
        }

        impl Named {
            /// Every named type in the order of the table, so that `ALL[n as usize] == n`.
            pub const ALL: &'static [Named] = &[$(Named::$variant,)*];
        }

        static ROWS: [Row; Named::ALL.len()] = [$(Row {
            text: $text,
            c: $c,
            size: $size,
            align: $align,
            external32: $external,
            class: Class::$class,
            language: Language::$language,
            parts: named_types!(@parts $variant, $class $(, $first, $second at $at)?),
            pieces: named_types!(@pieces $size, $class $(, $first_size, $second_size, $at)?),
        },)*];
    };
    (@parts $variant:ident, Marker) => { &[] };
    (@parts $variant:ident, $class:ident) => { &[(Named::$variant, 0)] };
    (@parts $variant:ident, $class:ident, $first:ident, $second:ident at $at:expr) => {
        &[(Named::$first, 0), (Named::$second, $at)]
    };
    (@pieces $size:expr, Marker) => { &[] };
    (@pieces $size:expr, $class:ident) => { &[(0, $size as i64)] };
    (@pieces $size:expr, $class:ident, $first:expr, $second:expr, $at:expr) => {
        &[(0, $first as i64), ($at, $second as i64)]
    };
}

named_types! {
    // The columns are: variant, text name, MPI name, size, alignment, external32 size, class,
    // language and, for a pair, [first part, second part at its offset, size of the first, size of
    // the second].
    Char "char" "MPI_CHAR" 1, 1, 1, Character, C;
    SignedChar "signed_char" "MPI_SIGNED_CHAR" 1, 1, 1, Integer, C;
    UnsignedChar "unsigned_char" "MPI_UNSIGNED_CHAR" 1, 1, 1, Unsigned, C;
    Wchar "wchar" "MPI_WCHAR" WCHAR, WCHAR, 2, Character, C;
    Short "short" "MPI_SHORT" 2, 2, 2, Integer, C;
    UnsignedShort "unsigned_short" "MPI_UNSIGNED_SHORT" 2, 2, 2, Unsigned, C;
    Int "int" "MPI_INT" 4, 4, 4, Integer, C;
    Unsigned "unsigned" "MPI_UNSIGNED" 4, 4, 4, Unsigned, C;
    Long "long" "MPI_LONG" LONG, LONG_ALIGN, 4, Integer, C;
    UnsignedLong "unsigned_long" "MPI_UNSIGNED_LONG" LONG, LONG_ALIGN, 4, Unsigned, C;
    LongLong "long_long" "MPI_LONG_LONG_INT" 8, 8, 8, Integer, C;
    UnsignedLongLong "unsigned_long_long" "MPI_UNSIGNED_LONG_LONG" 8, 8, 8, Unsigned, C;
    Float "float" "MPI_FLOAT" 4, 4, 4, Float, C;
    Double "double" "MPI_DOUBLE" 8, 8, 8, Float, C;
    LongDouble "long_double" "MPI_LONG_DOUBLE" LONG_DOUBLE, LONG_DOUBLE, 16, Float, C;
    CBool "c_bool" "MPI_C_BOOL" 1, 1, 1, Logical, C;
    Int8 "int8_t" "MPI_INT8_T" 1, 1, 1, Integer, C;
    Int16 "int16_t" "MPI_INT16_T" 2, 2, 2, Integer, C;
    Int32 "int32_t" "MPI_INT32_T" 4, 4, 4, Integer, C;
    Int64 "int64_t" "MPI_INT64_T" 8, 8, 8, Integer, C;
    Uint8 "uint8_t" "MPI_UINT8_T" 1, 1, 1, Unsigned, C;
    Uint16 "uint16_t" "MPI_UINT16_T" 2, 2, 2, Unsigned, C;
    Uint32 "uint32_t" "MPI_UINT32_T" 4, 4, 4, Unsigned, C;
    Uint64 "uint64_t" "MPI_UINT64_T" 8, 8, 8, Unsigned, C;
    CFloatComplex "c_float_complex" "MPI_C_COMPLEX" 8, 4, 8, Complex, C;
    CDoubleComplex "c_double_complex" "MPI_C_DOUBLE_COMPLEX" 16, 8, 16, Complex, C;
    CLongDoubleComplex "c_long_double_complex" "MPI_C_LONG_DOUBLE_COMPLEX" 2 * LONG_DOUBLE, LONG_DOUBLE, 32, Complex, C;
    Byte "byte" "MPI_BYTE" 1, 1, 1, Byte, Any;
    Packed "packed" "MPI_PACKED" 1, 1, 1, Packed, Any;
    Aint "aint" "MPI_AINT" ADDRESS, ADDRESS, 8, Integer, Any;
    Count "count" "MPI_COUNT" 8, 8, 8, Integer, Any;
    Offset "offset" "MPI_OFFSET" 8, 8, 8, Integer, Any;
    CxxBool "cxx_bool" "MPI_CXX_BOOL" 1, 1, 1, Logical, Cxx;
    CxxFloatComplex "cxx_float_complex" "MPI_CXX_FLOAT_COMPLEX" 8, 4, 8, Complex, Cxx;
    CxxDoubleComplex "cxx_double_complex" "MPI_CXX_DOUBLE_COMPLEX" 16, 8, 16, Complex, Cxx;
    CxxLongDoubleComplex "cxx_long_double_complex" "MPI_CXX_LONG_DOUBLE_COMPLEX" 2 * LONG_DOUBLE, LONG_DOUBLE, 32, Complex, Cxx;
    Character "character" "MPI_CHARACTER" 1, 1, 1, Character, Fortran;
    Logical "logical" "MPI_LOGICAL" 4, 4, 4, Logical, Fortran;
    Integer "integer" "MPI_INTEGER" 4, 4, 4, Integer, Fortran;
    Real "real" "MPI_REAL" 4, 4, 4, Float, Fortran;
    DoublePrecision "double_precision" "MPI_DOUBLE_PRECISION" 8, 8, 8, Float, Fortran;
    Complex "complex" "MPI_COMPLEX" 8, 4, 8, Complex, Fortran;
    DoubleComplex "double_complex" "MPI_DOUBLE_COMPLEX" 16, 8, 16, Complex, Fortran;
    Integer1 "integer1" "MPI_INTEGER1" 1, 1, 1, Integer, Fortran;
    Integer2 "integer2" "MPI_INTEGER2" 2, 2, 2, Integer, Fortran;
    Integer4 "integer4" "MPI_INTEGER4" 4, 4, 4, Integer, Fortran;
    Integer8 "integer8" "MPI_INTEGER8" 8, 8, 8, Integer, Fortran;
    Integer16 "integer16" "MPI_INTEGER16" 16, 16, 16, Integer, Fortran;
    Real2 "real2" "MPI_REAL2" 2, 2, 2, Float, Fortran;
    Real4 "real4" "MPI_REAL4" 4, 4, 4, Float, Fortran;
    Real8 "real8" "MPI_REAL8" 8, 8, 8, Float, Fortran;
    Real16 "real16" "MPI_REAL16" 16, 16, 16, Float, Fortran;
    Complex4 "complex4" "MPI_COMPLEX4" 4, 2, 4, Complex, Fortran;
    Complex8 "complex8" "MPI_COMPLEX8" 8, 4, 8, Complex, Fortran;
    Complex16 "complex16" "MPI_COMPLEX16" 16, 8, 16, Complex, Fortran;
    Complex32 "complex32" "MPI_COMPLEX32" 32, 16, 32, Complex, Fortran;
    Logical1 "logical1" "MPI_LOGICAL1" 1, 1, 1, Logical, Fortran;
    Logical2 "logical2" "MPI_LOGICAL2" 2, 2, 2, Logical, Fortran;
    Logical4 "logical4" "MPI_LOGICAL4" 4, 4, 4, Logical, Fortran;
    Logical8 "logical8" "MPI_LOGICAL8" 8, 8, 8, Logical, Fortran;
    Logical16 "logical16" "MPI_LOGICAL16" 16, 16, 16, Logical, Fortran;
    FloatInt "float_int" "MPI_FLOAT_INT" 8, 4, 8, Pair, C, [Float, Int at 4, 4, 4];
    DoubleInt "double_int" "MPI_DOUBLE_INT" 12, 8, 12, Pair, C, [Double, Int at 8, 8, 4];
    LongInt "long_int" "MPI_LONG_INT" LONG + 4, LONG_ALIGN, 8, Pair, C, [Long, Int at LONG as i64, LONG, 4];
    TwoInt "2int" "MPI_2INT" 8, 4, 8, Pair, C, [Int, Int at 4, 4, 4];
    ShortInt "short_int" "MPI_SHORT_INT" 6, 4, 6, Pair, C, [Short, Int at pair_offset(2, 4), 2, 4];
    LongDoubleInt "long_double_int" "MPI_LONG_DOUBLE_INT" LONG_DOUBLE + 4, LONG_DOUBLE, 20, Pair, C,
        [LongDouble, Int at LONG_DOUBLE as i64, LONG_DOUBLE, 4];
    TwoReal "2real" "MPI_2REAL" 8, 4, 8, Pair, Fortran, [Real, Real at 4, 4, 4];
    TwoDoublePrecision "2double_precision" "MPI_2DOUBLE_PRECISION" 16, 8, 16, Pair, Fortran,
        [DoublePrecision, DoublePrecision at 8, 8, 8];
    TwoInteger "2integer" "MPI_2INTEGER" 8, 4, 8, Pair, Fortran, [Integer, Integer at 4, 4, 4];
    Lb "lb" "MPI_LB" 0, 1, 0, Marker, Any;
    Ub "ub" "MPI_UB" 0, 1, 0, Marker, Any;
}

/// Lower-case names of MPI whose type has a synonym in MPI 5.0 (section 3.2.2). The text notation
/// writes the synonym and reads both names.
const ALIASES: [(&str, Named); 2] = [("long_long_int", Named::LongLong), ("c_complex", Named::CFloatComplex)];

/// Sizes in bytes of Fortran's default kinds, which depend on the Fortran compiler and its flags,
/// such as `-fdefault-integer-8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FortranKinds {
    /// Size of INTEGER and of LOGICAL: 4 or 8.
    pub integer: u8,
    /// Size of REAL, and half the size of COMPLEX: 4 or 8.
    pub real: u8,
    /// Size of DOUBLE PRECISION, and half the size of DOUBLE COMPLEX: 8 or 16.
    pub double_precision: u8,
}

impl FortranKinds {
    /// Sizes of gfortran without flags.
    pub const DEFAULT: FortranKinds = FortranKinds { integer: 4, real: 4, double_precision: 8 };

    /// Fixes these sizes for the rest of the life of the process.
    ///
    /// # Errors
    /// Returns an error of class `Unsupported` if a size is not one of those listed at its field.
    /// Returns an error of class `Other` if different sizes are in force already, because they were
    /// fixed or because a datatype was used.
    pub fn set(self) -> Result<()> {
        const CALL: &str = "fortran_kinds";
        let sizes = [
            ("integer", self.integer, [4, 8]),
            ("real", self.real, [4, 8]),
            ("double_precision", self.double_precision, [8, 16]),
        ];
        for (argument, size, [usual, wide]) in sizes {
            if size != usual && size != wide {
                let rule = format!("must be {usual} or {wide} bytes");
                return Err(Error::new(ErrorClass::Unsupported, CALL, argument, size, rule));
            }
        }
        if *KINDS.get_or_init(|| self) != self {
            let rule = "must be set before any datatype is used";
            return Err(Error::new(ErrorClass::Other, CALL, "integer", self.integer, rule));
        }
        Ok(())
    }

    /// Returns the sizes in force, which cannot be changed after this call.
    pub fn get() -> FortranKinds {
        *KINDS.get_or_init(|| FortranKinds::DEFAULT)
    }

    /// Returns the row of the wide variant of a default kind if its size is twice the usual one,
    /// and `None` otherwise.
    fn row(self, named: Named) -> Option<&'static Row> {
        let wide = match named {
            Named::Integer | Named::Logical | Named::TwoInteger => self.integer > 4,
            Named::Real | Named::Complex | Named::TwoReal => self.real > 4,
            _ => self.double_precision > 8,
        };
        WIDE.iter().find(|w| wide && w.0 == named).map(|w| &w.1)
    }
}

static KINDS: Once<FortranKinds> = Once::new();

macro_rules! wide {
    ($($variant:ident $size:expr, $align:expr, $parts:expr, $pieces:expr;)*) => {
        /// Rows of Fortran's default kinds for the case that their size is twice the usual one. The
        /// columns that are not given here are those of `ROWS`.
        static WIDE: [(Named, Row); 9] = [$((Named::$variant, Row {
            text: ROWS[Named::$variant as usize].text,
            c: ROWS[Named::$variant as usize].c,
            size: $size,
            align: $align,
            external32: ROWS[Named::$variant as usize].external32,
            class: ROWS[Named::$variant as usize].class,
            language: Language::Fortran,
            parts: $parts,
            pieces: $pieces,
        }),)*];
    };
}

wide! {
    Logical 8, 8, &[(Named::Logical, 0)], &[(0, 8)];
    Integer 8, 8, &[(Named::Integer, 0)], &[(0, 8)];
    Real 8, 8, &[(Named::Real, 0)], &[(0, 8)];
    DoublePrecision 16, 16, &[(Named::DoublePrecision, 0)], &[(0, 16)];
    Complex 16, 8, &[(Named::Complex, 0)], &[(0, 16)];
    DoubleComplex 32, 16, &[(Named::DoubleComplex, 0)], &[(0, 32)];
    TwoReal 16, 8, &[(Named::Real, 0), (Named::Real, 8)], &[(0, 8), (8, 8)];
    TwoDoublePrecision 32, 16, &[(Named::DoublePrecision, 0), (Named::DoublePrecision, 16)], &[(0, 16), (16, 16)];
    TwoInteger 16, 8, &[(Named::Integer, 0), (Named::Integer, 8)], &[(0, 8), (8, 8)];
}

impl Named {
    fn row(self) -> &'static Row {
        match self {
            Named::Logical
            | Named::Integer
            | Named::Real
            | Named::DoublePrecision
            | Named::Complex
            | Named::DoubleComplex
            | Named::TwoReal
            | Named::TwoDoublePrecision
            | Named::TwoInteger => FortranKinds::get().row(self).unwrap_or(&ROWS[self as usize]),
            _ => &ROWS[self as usize],
        }
    }

    /// Returns the name in the text notation: MPI's name or its synonym, in lower case without
    /// `MPI_`.
    pub fn text_name(self) -> &'static str {
        self.row().text
    }

    /// Returns MPI's name, such as `MPI_INT`. If MPI has a synonym for the name, this is the name
    /// that the synonym stands for.
    pub fn mpi_name(self) -> &'static str {
        self.row().c
    }

    /// Returns the number of bytes of data, which is the sum of the sizes of the pieces, without
    /// the padding of a pair. Only markers have no data.
    pub fn size(self) -> i64 {
        i64::from(self.row().size)
    }

    /// Returns the alignment in bytes that the compiler gives the type. This is the `k` in MPI's
    /// equation for epsilon (MPI 5.0 section 5.1).
    pub fn alignment(self) -> i64 {
        i64::from(self.row().align)
    }

    /// Returns the distance in bytes between neighbours in an array, which includes trailing
    /// padding of pairs.
    pub fn extent(self) -> i64 {
        let end = self.pieces().last().map_or(0, |&(offset, size)| offset + size);
        (end + self.alignment() - 1) / self.alignment() * self.alignment()
    }

    /// Returns the size in bytes in external32 representation (MPI 5.0 table 14.2).
    pub fn external32_size(self) -> i64 {
        i64::from(self.row().external32)
    }

    /// Returns the kind of value that the type holds.
    pub fn class(self) -> Class {
        self.row().class
    }

    /// Returns the language whose compiler decides the type's representation.
    pub fn language(self) -> Language {
        self.row().language
    }

    /// Returns the offset and the size in bytes of every contiguous value of the type, in type-map
    /// order. A pair has two values, a marker has none, and any other type has one.
    pub fn pieces(self) -> &'static [(i64, i64)] {
        self.row().pieces
    }

    /// Returns the type map: basic types with their displacements in bytes. A pair lists its two
    /// parts, a marker lists nothing, and any other type lists itself.
    pub fn parts(self) -> &'static [(Named, i64)] {
        self.row().parts
    }

    /// Returns true for `MPI_LB` and `MPI_UB`.
    pub fn is_marker(self) -> bool {
        self.class() == Class::Marker
    }

    /// Returns the named type with the given name. The name can be that of the text notation
    /// (`int`, or one of the aliases `long_long_int` and `c_complex`) or MPI's name (`MPI_INT`).
    pub fn from_name(name: &str) -> Option<Named> {
        let lower;
        let text = match name.strip_prefix("MPI_") {
            Some(rest) if !rest.bytes().any(|b| b.is_ascii_lowercase()) => {
                lower = rest.to_ascii_lowercase();
                lower.as_str()
            }
            Some(_) => return None,
            None => name,
        };
        Named::ALL
            .iter()
            .copied()
            .find(|n| n.text_name() == text)
            .or_else(|| ALIASES.iter().find(|(alias, _)| *alias == text).map(|&(_, n)| n))
    }

    /// Returns the named pair type of a value and an index type, if MPI has one (MPI 5.0 section
    /// 6.9.4).
    pub fn pair_of(value: Named, index: Named) -> Option<Named> {
        let offset = pair_offset(value.row().size, index.row().align);
        let pair = [(value, 0), (index, offset)];
        Named::ALL.iter().copied().find(|n| n.class() == Class::Pair && n.parts() == pair)
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mpi_name())
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_consistent() {
        for (i, &n) in Named::ALL.iter().enumerate() {
            assert_eq!(n as usize, i);
            assert_eq!(n.size(), n.pieces().iter().map(|p| p.1).sum::<i64>(), "{n}");
            assert_eq!(n.pieces().len(), n.parts().len(), "{n}");
            for (part, piece) in n.parts().iter().zip(n.pieces()) {
                assert_eq!((part.1, part.0.size()), *piece, "{n}");
                assert!(part.1 % part.0.alignment() == 0, "{n}");
            }
            assert!(n.alignment().count_ones() == 1, "{n}");
            assert_eq!(n.size() == 0, n.is_marker());
            assert_eq!(Named::from_name(n.text_name()), Some(n));
            assert_eq!(Named::from_name(n.mpi_name()), Some(n));
            let primary = ALIASES.iter().find(|a| a.1 == n).map_or(n.text_name(), |a| a.0);
            assert_eq!(n.mpi_name(), format!("MPI_{}", primary.to_uppercase()));
            if n.class() == Class::Pair {
                let external: i64 = n.parts().iter().map(|p| p.0.external32_size()).sum();
                assert_eq!(n.external32_size(), external, "{n}");
            }
        }
        assert_eq!(Named::ALL.len(), 72);
    }

    #[test]
    fn pairs_are_c_structures() {
        assert_eq!((Named::DoubleInt.size(), Named::DoubleInt.extent()), (12, 16));
        assert_eq!((Named::ShortInt.size(), Named::ShortInt.extent()), (6, 8));
        assert_eq!(Named::ShortInt.pieces(), [(0, 2), (4, 4)]);
        assert_eq!((Named::LongDoubleInt.size(), Named::LongDoubleInt.extent()), (20, 32));
        assert_eq!(Named::pair_of(Named::Float, Named::Int), Some(Named::FloatInt));
        assert_eq!(Named::pair_of(Named::Real, Named::Real), Some(Named::TwoReal));
        assert_eq!(Named::pair_of(Named::Real, Named::Int), None);
    }

    #[test]
    fn names() {
        assert_eq!(Named::from_name("long_long_int"), Some(Named::LongLong));
        assert_eq!(Named::from_name("MPI_C_COMPLEX"), Some(Named::CFloatComplex));
        assert_eq!(Named::from_name("MPI_int"), None);
        assert_eq!(Named::from_name("INT"), None);
        assert_eq!(Named::from_name(""), None);
    }
}
