//! Tables of the three C ABIs of MPI: everything that differs between the MPI libraries that ddtc
//! runs under or queries.
//!
//! A handle is a 32-bit integer in the ABI of MPICH, an address in that of Open MPI, and as wide as
//! a pointer in the standard ABI of MPI 5.0. In registers, all handles are 64-bit words; those of
//! MPICH use the lower half. The values come from `mpi.h` of MPICH 5.0.2 (whose ABI has been fixed
//! since release 3.1 and is shared by Intel MPI, Cray MPI and MVAPICH), from `mpi.h` of Open MPI
//! 5.0.11, and from appendix A of MPI 5.0. Handles of Open MPI are addresses of objects, so the
//! names of these symbols are given for it. Zero or an empty name means that the ABI does not have
//! the item.

use std::ffi::c_int;
use std::ops::RangeInclusive;

use ddtc::internal::datatype::Named;
use ddtc::internal::datatype::contents::{CombinerKind, Constants};

pub mod queries;

/// ABI of an MPI library, named after the library or the standard that defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// ABI of MPICH since release 3.1, of Intel MPI, MVAPICH and Cray MPI.
    Mpich,
    /// ABI of Open MPI.
    OpenMpi,
    /// Standard ABI of MPI 5.0, appendix A.
    Standard,
}

/// Facts about a loaded MPI library from which its ABI is inferred.
#[derive(Clone, Copy, Debug)]
pub struct Signs<'a> {
    /// True if the library has a symbol `ompi_mpi_int`.
    pub has_ompi_int: bool,
    /// True if the library has a symbol `MPIR_Dup_fn`. The headers of MPICH define
    /// `MPI_TYPE_DUP_FN` as this symbol, so every library with the same ABI has it.
    pub has_mpir_dup_fn: bool,
    /// Result of `MPI_Abi_get_version`; `None` if the library lacks the function or it fails.
    pub abi_version: Option<(c_int, c_int)>,
    /// Path of the library's file.
    pub file: &'a str,
    /// First line of `MPI_Get_library_version`.
    pub version: &'a str,
}

/// Names of libraries with MPICH's ABI. The version text of each such library contains one of them.
const FAMILY: [&str; 6] = ["MPICH", "Intel(R) MPI", "MVAPICH", "CRAY", "ParaStation", "HPE MPI"];

/// Constants of the MPI tool information interface. The name of each field in capitals, with
/// `MPI_T_` before it, is the name in the standard.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names of the standard")]
pub struct Tool {
    pub verbosity_user_basic: c_int,
    pub verbosity_tuner_basic: c_int,
    pub bind_no_object: c_int,
    pub scope_local: c_int,
    /// `MPI_T_PVAR_CLASS_LEVEL`, `_COUNTER`, `_AGGREGATE` and `_TIMER`.
    pub pvar_classes: [c_int; 4],
    /// `MPI_T_PVAR_ALL_HANDLES`; 0 if the ABI does not fix the value. The constant is then the
    /// value of the variable that is named in `pvar_all_handles_symbol`.
    pub pvar_all_handles: usize,
    pub pvar_all_handles_symbol: &'static str,
    pub err_invalid: c_int,
    pub err_invalid_index: c_int,
    pub err_invalid_handle: c_int,
    pub err_out_of_handles: c_int,
    pub err_invalid_session: c_int,
    pub err_pvar_no_startstop: c_int,
    pub err_pvar_no_write: c_int,
}

/// Table of one ABI. Fields that begin with `err_` are error classes. A field that ends with
/// `_symbol` is the name of an object whose address is the handle.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names of the standard")]
pub struct Abi {
    pub flavour: Flavour,
    pub name: &'static str,
    /// Size of a handle in memory, in bytes.
    pub handle_bytes: usize,
    /// Mask of the bits of a 64-bit register that hold a handle.
    pub handle_mask: u64,
    /// `MPI_COMM_WORLD`; 0 if it is the address of a symbol.
    pub world: u64,
    /// `MPI_COMM_SELF`; 0 if it is the address of a symbol.
    pub myself: u64,
    /// `MPI_DATATYPE_NULL`; 0 if it is the address of a symbol.
    pub type_null: u64,
    pub world_symbol: &'static str,
    pub self_symbol: &'static str,
    pub type_null_symbol: &'static str,
    pub constants: Constants,
    pub err_value_too_large: c_int,
    pub err_other: c_int,
    pub err_type: c_int,
    pub err_truncate: c_int,
    pub tool: Tool,
    pub err_in_status: c_int,
    pub err_pending: c_int,
    /// `MPI_MODE_SEQUENTIAL`, a mode of files.
    pub mode_sequential: c_int,
    /// `MPI_MODE_NOPRECEDE`, an assertion of `MPI_Win_fence`.
    pub mode_noprecede: c_int,
    pub proc_null: c_int,
    pub root: c_int,
    /// Address `MPI_IN_PLACE`.
    pub in_place: usize,
    pub any_source: c_int,
    /// `MPI_GRAPH`, `MPI_CART` and `MPI_DIST_GRAPH`.
    pub topologies: [c_int; 3],
    /// `MPI_REQUEST_NULL`; 0 if it is the address of a symbol.
    pub request_null: u64,
    pub request_null_symbol: &'static str,
    /// `MPI_MESSAGE_NO_PROC`; 0 if it is the address of a symbol.
    pub message_no_proc: u64,
    pub message_no_proc_symbol: &'static str,
    /// `MPI_COMM_NULL`; 0 if it is the address of a symbol.
    pub comm_null: u64,
    pub comm_null_symbol: &'static str,
    /// `MPI_ERRORS_RETURN`; 0 if it is the address of a symbol.
    pub errors_return: u64,
    pub errors_return_symbol: &'static str,
    /// `MPI_INFO_NULL`; 0 if it is the address of a symbol.
    pub info_null: u64,
    pub info_null_symbol: &'static str,
    /// `MPI_SUM`; 0 if it is the address of a symbol.
    pub op_sum: u64,
    pub op_sum_symbol: &'static str,
    /// Size of an `MPI_Status`, in bytes.
    pub status_bytes: usize,
    /// Offset of `MPI_SOURCE` in a status, in bytes.
    pub status_source: usize,
    /// Offset of `MPI_ERROR` in a status, in bytes.
    pub status_error: usize,
    /// Address `MPI_STATUS_IGNORE`, which is also `MPI_STATUSES_IGNORE`.
    pub status_ignore: usize,
    /// Values of the combiners in the order of [`COMBINERS`]; [`NONE`] if the ABI lacks a combiner.
    combiners: [c_int; 20],
}

use CombinerKind as K;

/// Combiners, in the order in which `Abi::combiners` has their values.
const COMBINERS: [CombinerKind; 20] = [
    K::Named,
    K::Dup,
    K::Contiguous,
    K::Vector,
    K::HvectorInteger,
    K::Hvector,
    K::Indexed,
    K::HindexedInteger,
    K::Hindexed,
    K::IndexedBlock,
    K::HindexedBlock,
    K::StructInteger,
    K::Struct,
    K::Subarray,
    K::Darray,
    K::F90Real,
    K::F90Complex,
    K::F90Integer,
    K::Resized,
    K::ValueIndex,
];

/// Value of a combiner that an ABI does not have.
const NONE: c_int = c_int::MIN;

/// Table of the ABI of MPICH, from `mpi.h` of MPICH 5.0.2.
pub static MPICH: Abi = Abi {
    flavour: Flavour::Mpich,
    name: "MPICH ABI",
    handle_bytes: 4,
    handle_mask: 0xffff_ffff,
    world: 0x4400_0000,
    myself: 0x4400_0001,
    type_null: 0x0c00_0000,
    world_symbol: "",
    self_symbol: "",
    type_null_symbol: "",
    constants: Constants {
        order_c: 56,
        order_fortran: 57,
        distribute_block: 121,
        distribute_cyclic: 122,
        distribute_none: 123,
        distribute_dflt_darg: -49767,
        undefined: -32766,
    },
    err_value_too_large: 77,
    err_other: 15,
    err_type: 3,
    err_truncate: 14,
    tool: Tool {
        verbosity_user_basic: 221,
        verbosity_tuner_basic: 224,
        bind_no_object: 9700,
        scope_local: 60440,
        pvar_classes: [241, 246, 247, 248],
        pvar_all_handles: 0,
        pvar_all_handles_symbol: "MPI_T_PVAR_ALL_HANDLES",
        err_invalid: 74,
        err_invalid_index: 62,
        err_invalid_handle: 64,
        err_out_of_handles: 65,
        err_invalid_session: 67,
        err_pvar_no_startstop: 70,
        err_pvar_no_write: 71,
    },
    err_in_status: 17,
    err_pending: 18,
    mode_sequential: 256,
    mode_noprecede: 8192,
    proc_null: -1,
    root: -3,
    in_place: usize::MAX,
    any_source: -2,
    topologies: [1, 2, 3],
    request_null: 0x2c00_0000,
    request_null_symbol: "",
    message_no_proc: 0x6c00_0000,
    message_no_proc_symbol: "",
    comm_null: 0x0400_0000,
    comm_null_symbol: "",
    errors_return: 0x5400_0001,
    errors_return_symbol: "",
    info_null: 0x1c00_0000,
    info_null_symbol: "",
    op_sum: 0x5800_0003,
    op_sum_symbol: "",
    status_bytes: 20,
    status_source: 8,
    status_error: 16,
    status_ignore: 1,
    combiners: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 19, 11, 12, 13, 14, 15, 16, 17, 18, 20],
};

/// Table of the ABI of Open MPI, from `mpi.h` of Open MPI 5.0.11.
pub static OPEN_MPI: Abi = Abi {
    flavour: Flavour::OpenMpi,
    name: "Open MPI ABI",
    handle_bytes: 8,
    handle_mask: u64::MAX,
    world: 0,
    myself: 0,
    type_null: 0,
    world_symbol: "ompi_mpi_comm_world",
    self_symbol: "ompi_mpi_comm_self",
    type_null_symbol: "ompi_mpi_datatype_null",
    constants: Constants {
        order_c: 0,
        order_fortran: 1,
        distribute_block: 0,
        distribute_cyclic: 1,
        distribute_none: 2,
        distribute_dflt_darg: -1,
        undefined: -32766,
    },
    err_value_too_large: 79,
    err_other: 16,
    err_type: 3,
    err_truncate: 15,
    tool: Tool {
        verbosity_user_basic: 0,
        verbosity_tuner_basic: 3,
        bind_no_object: 0,
        scope_local: 2,
        pvar_classes: [1, 6, 7, 8],
        pvar_all_handles: usize::MAX,
        pvar_all_handles_symbol: "",
        err_invalid: 72,
        err_invalid_index: 57,
        err_invalid_handle: 59,
        err_out_of_handles: 60,
        err_invalid_session: 62,
        err_pvar_no_startstop: 65,
        err_pvar_no_write: 66,
    },
    err_in_status: 18,
    err_pending: 19,
    mode_sequential: 256,
    mode_noprecede: 2,
    proc_null: -2,
    root: -4,
    in_place: 1,
    any_source: -1,
    topologies: [2, 1, 3],
    request_null: 0,
    request_null_symbol: "ompi_request_null",
    message_no_proc: 0,
    message_no_proc_symbol: "ompi_message_no_proc",
    comm_null: 0,
    comm_null_symbol: "ompi_mpi_comm_null",
    errors_return: 0,
    errors_return_symbol: "ompi_mpi_errors_return",
    info_null: 0,
    info_null_symbol: "ompi_mpi_info_null",
    op_sum: 0,
    op_sum_symbol: "ompi_mpi_op_sum",
    status_bytes: 24,
    status_source: 0,
    status_error: 8,
    status_ignore: 0,
    combiners: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 18, 10, 11, 12, 13, 14, 15, 16, 17, NONE],
};

/// Table of the standard ABI, from appendix A of MPI 5.0.
pub static STANDARD: Abi = Abi {
    flavour: Flavour::Standard,
    name: "standard ABI",
    handle_bytes: 8,
    handle_mask: u64::MAX,
    world: 0x101,
    myself: 0x102,
    type_null: 0x200,
    world_symbol: "",
    self_symbol: "",
    type_null_symbol: "",
    constants: Constants::ABI,
    err_value_too_large: 59,
    err_other: 16,
    err_type: 3,
    err_truncate: 15,
    tool: Tool {
        verbosity_user_basic: 9,
        verbosity_tuner_basic: 17,
        bind_no_object: 1,
        scope_local: 3,
        pvar_classes: [2, 7, 8, 9],
        pvar_all_handles: 1,
        pvar_all_handles_symbol: "",
        err_invalid: 1006,
        err_invalid_index: 1007,
        err_invalid_handle: 1010,
        err_out_of_handles: 1012,
        err_invalid_session: 1009,
        err_pvar_no_startstop: 1017,
        err_pvar_no_write: 1016,
    },
    err_in_status: 19,
    err_pending: 18,
    mode_sequential: 64,
    mode_noprecede: 2048,
    proc_null: -3,
    root: -4,
    in_place: 1,
    any_source: -1,
    topologies: [212, 211, 213],
    request_null: 0x180,
    request_null_symbol: "",
    message_no_proc: 0x129,
    message_no_proc_symbol: "",
    comm_null: 0x100,
    comm_null_symbol: "",
    errors_return: 0x143,
    errors_return_symbol: "",
    info_null: 0x130,
    info_null_symbol: "",
    op_sum: 0x21,
    op_sum_symbol: "",
    status_bytes: 32,
    status_source: 0,
    status_error: 8,
    status_ignore: 0,
    combiners: [
        101, 102, 103, 104, NONE, 105, 106, NONE, 107, 108, 109, NONE, 110, 111, 112, 113, 114, 115, 116, 117,
    ],
};

impl Abi {
    /// Returns the ABI of a library about which these facts are known.
    ///
    /// # Errors
    /// The library or the version of its ABI is unknown; the message says which.
    pub fn find(signs: &Signs<'_>) -> Result<&'static Abi, String> {
        let (major, minor) = signs.abi_version.unwrap_or((-1, -1));
        // Open MPI's own library may also report version 1 of the standard ABI. A library that has
        // the symbols of Open MPI has the standard ABI only if its file is named `libmpi_abi`.
        if major == 1 && (!signs.has_ompi_int || signs.file.contains("libmpi_abi")) {
            return Ok(&STANDARD);
        }
        if major > 1 {
            return Err(format!("unknown MPI ABI {major}.{minor}"));
        }
        if signs.has_ompi_int {
            return Ok(&OPEN_MPI);
        }
        // The version text alone does not show the ABI: a wrapper around a library may repeat the
        // version text of that library. So the symbol `MPIR_Dup_fn` is required too.
        if signs.has_mpir_dup_fn && FAMILY.iter().any(|name| signs.version.contains(name)) {
            return Ok(&MPICH);
        }
        Err(format!("unknown MPI library '{}'", signs.version))
    }

    /// Returns the combiner whose constant, such as `MPI_COMBINER_VECTOR`, has the value `value` in
    /// this ABI; `None` if no combiner has this value.
    pub fn combiner(&self, value: c_int) -> Option<CombinerKind> {
        let at = self.combiners.iter().position(|&c| c == value && c != NONE)?;
        Some(COMBINERS[at])
    }

    /// Returns a range of handles that contains handles of named types and no handle of a derived
    /// type; `None` for Open MPI, whose handles are addresses that are known only at run time. The
    /// range need not contain the handles of all named types: MPICH's handles of pair types such as
    /// `MPI_FLOAT_INT` lie outside.
    ///
    /// MPICH encodes the kind of an object, and whether it is predefined, in the upper eight bits
    /// of a handle. Predefined handles of the standard ABI are below 4096 (MPI 5.0, chapter 20).
    pub fn named_range(&self) -> Option<RangeInclusive<u64>> {
        match self.flavour {
            Flavour::Mpich => Some(0x4c00_0000..=0x4cff_ffff),
            Flavour::Standard => Some(0..=0xfff),
            Flavour::OpenMpi => None,
        }
    }

    /// Returns all named types with their handles in this ABI. The handle is 0 if the ABI has no
    /// constant for the type.
    pub fn named(&self) -> impl Iterator<Item = (u64, Named)> {
        ROWS.iter().map(|&(named, mpich, standard, _)| match self.flavour {
            Flavour::Mpich => (mpich, named),
            Flavour::OpenMpi => (0, named),
            Flavour::Standard => (standard, named),
        })
    }

    /// Returns the named types with the names of Open MPI's symbols for them, without the prefix
    /// `ompi_mpi_`. Under any other ABI, and for types that Open MPI lacks, there are none.
    pub fn named_symbols(&self) -> impl Iterator<Item = (&'static str, Named)> {
        let used = self.flavour == Flavour::OpenMpi;
        ROWS.iter().filter(move |r| used && !r.3.is_empty()).map(|r| (r.3, r.0))
    }
}

macro_rules! rows {
    ($($named:ident $mpich:literal $standard:literal $symbol:literal,)*) => {
        /// Named types with MPICH's handle, the handle of the standard ABI, and Open MPI's symbol.
        const ROWS: &[(Named, u64, u64, &str)] = &[$((Named::$named, $mpich, $standard, $symbol),)*];
    };
}

rows! {
    Char 0x4c000101 0x243 "char",
    SignedChar 0x4c000118 0x244 "signed_char",
    UnsignedChar 0x4c000102 0x245 "unsigned_char",
    Wchar 0x4c00040e 0x23c "wchar",
    Short 0x4c000203 0x208 "short",
    UnsignedShort 0x4c000204 0x20c "unsigned_short",
    Int 0x4c000405 0x209 "int",
    Unsigned 0x4c000406 0x20d "unsigned",
    Long 0x4c000807 0x20a "long",
    UnsignedLong 0x4c000808 0x20e "unsigned_long",
    LongLong 0x4c000809 0x20b "long_long_int",
    UnsignedLongLong 0x4c000819 0x20f "unsigned_long_long",
    Float 0x4c00040a 0x210 "float",
    Double 0x4c00080b 0x214 "double",
    LongDouble 0x4c00100c 0x220 "long_double",
    CBool 0x4c00013f 0x238 "c_bool",
    Int8 0x4c000137 0x240 "int8_t",
    Int16 0x4c000238 0x248 "int16_t",
    Int32 0x4c000439 0x250 "int32_t",
    Int64 0x4c00083a 0x258 "int64_t",
    Uint8 0x4c00013b 0x241 "uint8_t",
    Uint16 0x4c00023c 0x249 "uint16_t",
    Uint32 0x4c00043d 0x251 "uint32_t",
    Uint64 0x4c00083e 0x259 "uint64_t",
    CFloatComplex 0x4c000840 0x212 "c_float_complex",
    CDoubleComplex 0x4c001041 0x216 "c_double_complex",
    CLongDoubleComplex 0x4c002042 0x224 "c_long_double_complex",
    Byte 0x4c00010d 0x247 "byte",
    Packed 0x4c00010f 0x207 "packed",
    Aint 0x4c000843 0x201 "aint",
    Count 0x4c000845 0x202 "count",
    Offset 0x4c000844 0x203 "offset",
    CxxBool 0x4c000133 0x239 "cxx_bool",
    CxxFloatComplex 0x4c000834 0x213 "cxx_cplex",
    CxxDoubleComplex 0x4c001035 0x217 "cxx_dblcplex",
    CxxLongDoubleComplex 0x4c002036 0x225 "cxx_ldblcplex",
    Character 0x4c00011a 0x21e "character",
    Logical 0x4c00041d 0x218 "logical",
    Integer 0x4c00041b 0x219 "integer",
    Real 0x4c00041c 0x21a "real",
    DoublePrecision 0x4c00081f 0x21c "dblprec",
    Complex 0x4c00081e 0x21b "cplex",
    DoubleComplex 0x4c001022 0x21d "dblcplex",
    Integer1 0x4c00012d 0x2c1 "integer1",
    Integer2 0x4c00022f 0x2c9 "integer2",
    Integer4 0x4c000430 0x2d1 "integer4",
    Integer8 0x4c000831 0x2d9 "integer8",
    Integer16 0x4c001032 0x2e1 "integer16",
    Real2 0x4c000226 0x2ca "real2",
    Real4 0x4c000427 0x2d2 "real4",
    Real8 0x4c000829 0x2da "real8",
    Real16 0x4c00102b 0x2e2 "real16",
    Complex4 0x4c00042e 0x2d3 "complex4",
    Complex8 0x4c000828 0x2db "complex8",
    Complex16 0x4c00102a 0x2e3 "complex16",
    Complex32 0x4c00202c 0x2eb "complex32",
    Logical1 0x4c000147 0x2c0 "logical1",
    Logical2 0x4c000248 0x2c8 "logical2",
    Logical4 0x4c000449 0x2d0 "logical4",
    Logical8 0x4c00084a 0x2d8 "logical8",
    Logical16 0x4c00104b 0x2e0 "",
    FloatInt 0x8c000000 0x228 "float_int",
    DoubleInt 0x8c000001 0x229 "double_int",
    LongInt 0x8c000002 0x22a "long_int",
    TwoInt 0x4c000816 0x22b "2int",
    ShortInt 0x8c000003 0x22c "short_int",
    LongDoubleInt 0x8c000004 0x22d "longdbl_int",
    TwoReal 0x4c000821 0x230 "2real",
    TwoDoublePrecision 0x4c001023 0x231 "2dblprec",
    TwoInteger 0x4c000820 0x232 "2integer",
    Lb 0x4c000010 0x000 "lb",
    Ub 0x4c000011 0x000 "ub",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn combiners_are_distinct_and_named_comes_first() {
        for abi in [&MPICH, &OPEN_MPI, &STANDARD] {
            let known: Vec<_> = abi.combiners.iter().filter(|&&c| c != NONE).collect();
            assert_eq!(known.iter().collect::<HashSet<_>>().len(), known.len(), "{}", abi.name);
            assert_eq!(abi.combiner(abi.combiners[0]), Some(CombinerKind::Named));
            assert_eq!(abi.combiner(NONE), None);
        }
        for kind in CombinerKind::all().filter(|k| k.abi_value() < 16384) {
            assert_eq!(STANDARD.combiner(kind.abi_value()), Some(kind));
        }
    }

    #[test]
    fn handles_of_named_types_lie_apart_from_those_of_derived_types() {
        let is_named =
            |abi: &Abi, handle: u64| abi.named_range().is_some_and(|named| named.contains(&handle));
        // MPICH encodes the handles of pair types such as `MPI_FLOAT_INT` like those of derived
        // types, so these handles lie outside the range of named types.
        let others =
            |abi: &'static Abi| abi.named().filter(|&(h, _)| h != 0 && !is_named(abi, h)).map(|(_, n)| n);
        assert!(
            others(&MPICH).all(|named| format!("{named:?}").ends_with("_INT")),
            "{:?}",
            others(&MPICH).collect::<Vec<_>>()
        );
        assert_eq!(others(&STANDARD).count(), 0);
        for (abi, derived) in
            [(&MPICH, 0x8c00_0000), (&MPICH, 0xcc00_0010), (&STANDARD, 0x1000), (&OPEN_MPI, 0x7f00_0000_1000)]
        {
            assert!(!is_named(abi, derived), "{} {derived:#x}", abi.name);
        }
        assert!(!is_named(&MPICH, MPICH.type_null) && !is_named(&OPEN_MPI, 0));
    }

    #[test]
    fn constants_of_the_tool_interface_are_those_of_the_engine() {
        use ddtc::ErrorClass as E;
        use ddtc::internal::tool::Class as C;
        let classes = [C::Level, C::Counter, C::Aggregate, C::Timer].map(|c| c as c_int);
        assert_eq!(STANDARD.tool.pvar_classes, classes);
        // The ABIs of MPICH and Open MPI number the classes of performance variables in the same
        // order as the standard ABI, but begin with a different value.
        for abi in [&MPICH, &OPEN_MPI] {
            let shift = abi.tool.pvar_classes[0] - classes[0];
            assert_eq!(abi.tool.pvar_classes, classes.map(|c| c + shift), "{}", abi.name);
        }
        let errors = |t: &Tool| {
            [
                t.err_invalid,
                t.err_invalid_index,
                t.err_invalid_handle,
                t.err_invalid_session,
                t.err_pvar_no_startstop,
                t.err_pvar_no_write,
                t.err_out_of_handles,
            ]
        };
        let known = [
            E::ToolInvalid,
            E::ToolInvalidIndex,
            E::ToolInvalidHandle,
            E::ToolInvalidSession,
            E::ToolNoStartStop,
            E::ToolNoWrite,
        ];
        assert_eq!(errors(&STANDARD.tool)[..6], known.map(|c| c as c_int));
        for abi in [&MPICH, &OPEN_MPI, &STANDARD] {
            let all = errors(&abi.tool);
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{}", abi.name);
            assert_eq!(abi.tool.pvar_all_handles == 0, !abi.tool.pvar_all_handles_symbol.is_empty());
        }
    }

    #[test]
    fn handles_are_distinct_and_every_named_type_has_a_row() {
        for abi in [&MPICH, &STANDARD] {
            let handles: Vec<_> = abi.named().map(|(h, _)| h).filter(|&h| h != 0).collect();
            assert_eq!(handles.iter().collect::<HashSet<_>>().len(), handles.len(), "{}", abi.name);
        }
        assert_eq!(ROWS.iter().map(|r| r.0).collect::<HashSet<_>>().len(), Named::ALL.len());
    }

    #[test]
    fn sizes_inside_mpich_handles_are_ours() {
        // In MPICH the upper byte of a built-in type's handle is 0x4c, and bits 8 to 15 are the
        // size of the type.
        for (handle, named) in MPICH.named().filter(|(h, _)| h >> 24 == 0x4c) {
            assert_eq!((handle >> 8 & 0xff) as i64, named.size(), "{named:?}");
        }
    }
}
