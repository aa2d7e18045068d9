//! Conversion of Fortran handles to C handles, for Open MPI, whose Fortran functions do not call
//! the C wrappers.

use std::ffi::{c_int, c_void};

use ddtc::internal::datatype::Named;
use ddtc::internal::process::Awaited;

use crate::host::{HandleWord, Host};

/// C type of `MPI_Type_f2c` and `MPI_Comm_f2c` of an MPI library whose handles are addresses.
pub(crate) type FromFortran = unsafe extern "C-unwind" fn(c_int) -> HandleWord;

/// Functions and addresses that are needed to convert a call from Fortran under Open MPI.
pub(crate) struct Bridge {
    pub(crate) type_f2c: FromFortran,
    pub(crate) comm_f2c: FromFortran,
    /// Addresses that mean `MPI_BOTTOM` if a Fortran program passes them as a buffer.
    pub(crate) bottoms: Vec<usize>,
}

/// Returns the bridge for Open MPI. Returns `None` under any other MPI library, because there the
/// Fortran functions call the C wrappers. Under Open MPI, returns `None` if Fortran's default
/// integers do not have the 4 bytes of a C `int`, if their size cannot be queried, or if Open MPI
/// lacks `PMPI_Type_f2c` or `PMPI_Comm_f2c`.
pub(crate) fn bridge(host: &'static Host) -> Option<&'static Bridge> {
    static BRIDGE: Awaited<Option<Bridge>> = Awaited::new();
    if !host.is_open_mpi() {
        return None;
    }
    BRIDGE
        .get_or_init(|| {
            let mut size = 0;
            // SAFETY: `MPI_Type_size` of the MPI library, with its handle of a predefined type and
            // a valid pointer to an `int`.
            let code = unsafe { host.f.type_size?(host.handle(Named::Integer)?, &raw mut size) };
            let (types, comms) = (host.function(c"PMPI_Type_f2c"), host.function(c"PMPI_Comm_f2c"));
            if code != 0 || size != 4 || types.is_null() || comms.is_null() {
                return None;
            }
            let bottoms =
                ["mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__", "MPI_FORTRAN_BOTTOM"];
            // SAFETY: neither pointer is null, as checked above. They are the MPI library's
            // functions of these names, whose types the MPI standard fixes: from a Fortran integer,
            // which has 4 bytes, to a C handle, which is a 64-bit word in Open MPI.
            unsafe {
                Some(Bridge {
                    type_f2c: std::mem::transmute::<*mut c_void, FromFortran>(types),
                    comm_f2c: std::mem::transmute::<*mut c_void, FromFortran>(comms),
                    bottoms: bottoms.iter().map(|b| host.data(b) as usize).filter(|&b| b != 0).collect(),
                })
            }
        })
        .as_ref()
}

/// Returns true if ddtc does not see the calls that the program makes from Fortran, because the MPI
/// library is Open MPI and there is no [`bridge`].
pub(crate) fn unseen(host: &'static Host) -> bool {
    host.is_open_mpi() && bridge(host).is_none()
}
