//! From Fortran's handles to C's, where Fortran's calls do not come by the C functions.

use std::ffi::{c_int, c_void};

use ddtc::datatype::Named;
use ddtc::process::Awaited;

use crate::host::{HandleWord, Host};

/// `MPI_Type_f2c` or `MPI_Comm_f2c` of a host whose handles are addresses.
pub(crate) type FromFortran = unsafe extern "C-unwind" fn(c_int) -> HandleWord;

/// Functions that convert a Fortran call of Open MPI.
pub(crate) struct Bridge {
    pub(crate) type_f2c: FromFortran,
    pub(crate) comm_f2c: FromFortran,
    /// Addresses that mean `MPI_BOTTOM`.
    pub(crate) bottoms: Vec<usize>,
}

/// Returns the bridge; `None` where C sees the calls anyway, or Fortran integers are not C's.
pub(crate) fn bridge(host: &'static Host) -> Option<&'static Bridge> {
    static BRIDGE: Awaited<Option<Bridge>> = Awaited::new();
    if !host.is_open_mpi() {
        return None;
    }
    BRIDGE
        .get_or_init(|| {
            let mut size = 0;
            // SAFETY: a predefined type, and a number to write to.
            let code = unsafe { host.f.type_size?(host.handle(Named::Integer)?, &raw mut size) };
            let (types, comms) = (host.function(c"PMPI_Type_f2c"), host.function(c"PMPI_Comm_f2c"));
            if code != 0 || size != 4 || types.is_null() || comms.is_null() {
                return None;
            }
            let bottoms =
                ["mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__", "MPI_FORTRAN_BOTTOM"];
            // SAFETY: functions of these names in the host, of the standard's types with handles as words.
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

/// Says whether the host's Fortran calls are not seen.
pub(crate) fn unseen(host: &'static Host) -> bool {
    host.is_open_mpi() && bridge(host).is_none()
}
