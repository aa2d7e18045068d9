//! Table of the MPI functions that concern requests, and of what the preload library does about
//! each.
//!
//! The table contains the functions that take or return a request, a status or a message, and the
//! wrapped functions that have a form with `MPI_Count`.
//!
//! A request that the preload library has converted is complete only after the preload library has
//! unpacked the staging buffer of the request. So every function that can complete such a request,
//! or reveal to the program that it is complete, must be known: either the preload library wraps
//! the function, or nonblocking operations are not converted while a loaded object refers to it.
//!
//! The table has one row for each function in all its forms: the row of `MPI_Irecv` is also that of
//! `MPI_Irecv_c`, and of both with the prefixes `PMPI_` (profiling) and `QMPI_` (MPICH's interface
//! for several tools). Its columns are:
//!
//! 1. the name;
//! 2. [`DataDirection`]: the direction in which the function moves the caller's data;
//! 3. [`RequestEffect`]: the effect of the function on a request;
//! 4. [`Handling`]: the treatment of the function by the preload library.
//!
//! The rows of functions in [`crate::counted_calls`] are derived from the table there. All other
//! rows are in this file.
//!
//! A test reads the headers of the installed MPI libraries, and fails for a function of the kinds
//! above that has no row.

use crate::counted_calls::{COUNTED_CALLS, Completion, CountedCall, DataDirection};

/// Effect of a function on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEffect {
    /// Makes a new request, which is active or, for a persistent operation, inactive.
    Creates,
    /// Starts the operation of an inactive request, or a part of an active one.
    Starts,
    /// Waits for or tests requests, and ends those that are complete.
    Completes,
    /// Returns whether a request is complete, and does not change the request.
    Asks,
    /// Frees a request.
    Frees,
    /// Marks a request for cancellation. The program must still complete the request.
    Cancels,
    /// Takes no request, or only translates the handle of one.
    Nothing,
}

/// Treatment of a function by the preload library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// The preload library exports a wrapper of the function.
    Wrapped,
    /// The preload library has no wrapper of the function. While a loaded object refers to the
    /// function, nonblocking operations are not converted.
    Bypass,
    /// The preload library has no wrapper of the function and need not see its calls, for this
    /// reason.
    Harmless(&'static str),
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct MpiFunction {
    /// Name of the function, with `MPI_` or `MPIX_` and without `_c`.
    pub name: &'static str,
    /// Direction in which the function moves the caller's data.
    pub moves: DataDirection,
    /// Effect of the function on a request.
    pub request: RequestEffect,
    /// Treatment of the function by the preload library.
    pub handling: Handling,
}

const UNCONVERTED: &str =
    "what it moves is never converted, so a request that it makes is the MPI library's own";
const STATUS: &str = "a converted message has the length and the status of one that is not converted";
const TRANSLATES: &str =
    "it gives the handle another form; Fortran's own functions are looked for separately";
const CANCELS: &str = "the program still has to complete the request, by a function that is wrapped";
const PARTITIONED: &str = "partitioned messages are never converted";
const GENERALIZED: &str = "the program completes a generalized request itself; no buffer belongs to it";
const ENQUEUED: &str = "it takes only requests of the enqueue functions, which are never converted; MPICH 5.0.2 aborts at any other";

/// Rows of the functions in [`crate::counted_calls`], all of which are wrapped.
static COUNTED: [MpiFunction; COUNTED_CALLS.len()] = {
    const fn row(call: &CountedCall) -> MpiFunction {
        let request = match call.completion {
            Completion::ItsRequest | Completion::Persistent => RequestEffect::Creates,
            Completion::ThisCall | Completion::Epoch => RequestEffect::Nothing,
        };
        MpiFunction { name: call.name, moves: call.direction(), request, handling: Handling::Wrapped }
    }
    let (mut rows, mut i) = ([row(&COUNTED_CALLS[0]); COUNTED_CALLS.len()], 0);
    while i < rows.len() {
        rows[i] = row(&COUNTED_CALLS[i]);
        i += 1;
    }
    rows
};

macro_rules! rows {
    ($($name:ident $moves:ident $request:ident $handling:expr;)*) => {
        /// Rows of all other functions.
        static OTHERS: &[MpiFunction] = &[$(MpiFunction {
            name: stringify!($name),
            moves: DataDirection::$moves,
            request: RequestEffect::$request,
            handling: { use Handling::*; $handling },
        },)*];
    };
}

rows! {
    // Messages between two processes (MPI 5.0, chapter 3).
    MPI_Improbe Neither Nothing Harmless(STATUS);
    MPI_Iprobe Neither Nothing Harmless(STATUS);
    MPI_Mprobe Neither Nothing Harmless(STATUS);
    MPI_Probe Neither Nothing Harmless(STATUS);
    // Requests of every kind (3.7.3 to 3.9).
    MPI_Cancel Neither Cancels Harmless(CANCELS);
    MPI_Request_free Neither Frees Wrapped;
    MPI_Request_get_status Neither Asks Wrapped;
    MPI_Request_get_status_all Neither Asks Wrapped;
    MPI_Request_get_status_any Neither Asks Wrapped;
    MPI_Request_get_status_some Neither Asks Wrapped;
    MPI_Start Neither Starts Wrapped;
    MPI_Startall Neither Starts Wrapped;
    MPI_Test Neither Completes Wrapped;
    MPI_Testall Neither Completes Wrapped;
    MPI_Testany Neither Completes Wrapped;
    MPI_Testsome Neither Completes Wrapped;
    MPI_Wait Neither Completes Wrapped;
    MPI_Waitall Neither Completes Wrapped;
    MPI_Waitany Neither Completes Wrapped;
    MPI_Waitsome Neither Completes Wrapped;
    // Collective calls (chapters 6 and 8).
    MPI_Allgatherv_init Both Creates Harmless(UNCONVERTED);
    MPI_Allreduce_init Both Creates Harmless(UNCONVERTED);
    MPI_Barrier_init Neither Creates Harmless(UNCONVERTED);
    MPI_Exscan_init Both Creates Harmless(UNCONVERTED);
    MPI_Iallgatherv Both Creates Harmless(UNCONVERTED);
    MPI_Iallreduce Both Creates Harmless(UNCONVERTED);
    MPI_Ibarrier Neither Creates Harmless(UNCONVERTED);
    MPI_Iexscan Both Creates Harmless(UNCONVERTED);
    MPI_Ireduce Both Creates Harmless(UNCONVERTED);
    MPI_Ireduce_scatter Both Creates Harmless(UNCONVERTED);
    MPI_Ireduce_scatter_block Both Creates Harmless(UNCONVERTED);
    MPI_Iscan Both Creates Harmless(UNCONVERTED);
    MPI_Reduce_init Both Creates Harmless(UNCONVERTED);
    MPI_Reduce_scatter_block_init Both Creates Harmless(UNCONVERTED);
    MPI_Reduce_scatter_init Both Creates Harmless(UNCONVERTED);
    MPI_Scan_init Both Creates Harmless(UNCONVERTED);
    // Partitioned messages (chapter 4).
    MPI_Parrived Neither Asks Harmless(PARTITIONED);
    MPI_Pready Neither Starts Harmless(PARTITIONED);
    MPI_Pready_list Neither Starts Harmless(PARTITIONED);
    MPI_Pready_range Neither Starts Harmless(PARTITIONED);
    MPI_Precv_init Receive Creates Wrapped;
    MPI_Psend_init Send Creates Wrapped;
    // Files (chapter 14).
    MPI_File_iread Receive Creates Harmless(UNCONVERTED);
    MPI_File_iread_all Receive Creates Harmless(UNCONVERTED);
    MPI_File_iread_at Receive Creates Harmless(UNCONVERTED);
    MPI_File_iread_at_all Receive Creates Harmless(UNCONVERTED);
    MPI_File_iread_shared Receive Creates Harmless(UNCONVERTED);
    MPI_File_iwrite Send Creates Harmless(UNCONVERTED);
    MPI_File_iwrite_all Send Creates Harmless(UNCONVERTED);
    MPI_File_iwrite_at Send Creates Harmless(UNCONVERTED);
    MPI_File_iwrite_at_all Send Creates Harmless(UNCONVERTED);
    MPI_File_iwrite_shared Send Creates Harmless(UNCONVERTED);
    MPI_File_read_all_end Receive Nothing Harmless(UNCONVERTED);
    MPI_File_read_at_all_end Receive Nothing Harmless(UNCONVERTED);
    MPI_File_read_ordered Receive Nothing Harmless(UNCONVERTED);
    MPI_File_read_ordered_end Receive Nothing Harmless(UNCONVERTED);
    MPI_File_read_shared Receive Nothing Harmless(UNCONVERTED);
    MPI_File_write_all_end Send Nothing Harmless(UNCONVERTED);
    MPI_File_write_at_all_end Send Nothing Harmless(UNCONVERTED);
    MPI_File_write_ordered_end Send Nothing Harmless(UNCONVERTED);
    // One-sided operations (chapter 12).
    MPI_Raccumulate Send Creates Harmless(UNCONVERTED);
    MPI_Rget_accumulate Both Creates Harmless(UNCONVERTED);
    // Communicators and the buffers of buffered sends (3.6 and 7.4.2).
    MPI_Buffer_iflush Neither Creates Harmless(UNCONVERTED);
    MPI_Comm_idup Neither Creates Harmless(UNCONVERTED);
    MPI_Comm_idup_with_info Neither Creates Harmless(UNCONVERTED);
    MPI_Comm_iflush_buffer Neither Creates Harmless(UNCONVERTED);
    MPI_Session_iflush_buffer Neither Creates Harmless(UNCONVERTED);
    // Generalized requests (13.2).
    MPI_Grequest_complete Neither Completes Harmless(GENERALIZED);
    MPI_Grequest_start Neither Creates Harmless(GENERALIZED);
    // Statuses, and handles as numbers (3.2.5, 13.3 and 20.3.5).
    MPI_Get_count Neither Nothing Harmless(STATUS);
    MPI_Get_elements Neither Nothing Harmless(STATUS);
    MPI_Get_elements_x Neither Nothing Harmless(STATUS);
    MPI_Message_c2f Neither Nothing Harmless(TRANSLATES);
    MPI_Message_f2c Neither Nothing Harmless(TRANSLATES);
    MPI_Message_fromint Neither Nothing Harmless(TRANSLATES);
    MPI_Message_toint Neither Nothing Harmless(TRANSLATES);
    MPI_Request_c2f Neither Nothing Harmless(TRANSLATES);
    MPI_Request_f2c Neither Nothing Harmless(TRANSLATES);
    MPI_Request_fromint Neither Nothing Harmless(TRANSLATES);
    MPI_Request_toint Neither Nothing Harmless(TRANSLATES);
    MPI_Status_c2f Neither Nothing Harmless(STATUS);
    MPI_Status_c2f08 Neither Nothing Harmless(STATUS);
    MPI_Status_f082c Neither Nothing Harmless(STATUS);
    MPI_Status_f082f Neither Nothing Harmless(STATUS);
    MPI_Status_f2c Neither Nothing Harmless(STATUS);
    MPI_Status_f2f08 Neither Nothing Harmless(STATUS);
    MPI_Status_get_error Neither Nothing Harmless(STATUS);
    MPI_Status_get_source Neither Nothing Harmless(STATUS);
    MPI_Status_get_tag Neither Nothing Harmless(STATUS);
    MPI_Status_set_cancelled Neither Nothing Harmless(STATUS);
    MPI_Status_set_elements Neither Nothing Harmless(STATUS);
    MPI_Status_set_elements_x Neither Nothing Harmless(STATUS);
    MPI_Status_set_error Neither Nothing Harmless(STATUS);
    MPI_Status_set_source Neither Nothing Harmless(STATUS);
    MPI_Status_set_tag Neither Nothing Harmless(STATUS);
    MPI_Test_cancelled Neither Nothing Harmless(STATUS);
    // Extensions of MPICH and Open MPI.
    MPIX_Allgather_init Both Creates Harmless(UNCONVERTED);
    MPIX_Allgatherv_init Both Creates Harmless(UNCONVERTED);
    MPIX_Allreduce_init Both Creates Harmless(UNCONVERTED);
    MPIX_Alltoall_init Both Creates Harmless(UNCONVERTED);
    MPIX_Alltoallv_init Both Creates Harmless(UNCONVERTED);
    MPIX_Alltoallw_init Both Creates Harmless(UNCONVERTED);
    MPIX_Barrier_init Neither Creates Harmless(UNCONVERTED);
    MPIX_Bcast_init Both Creates Harmless(UNCONVERTED);
    MPIX_Comm_iagree Neither Creates Harmless(UNCONVERTED);
    MPIX_Comm_ishrink Neither Creates Harmless(UNCONVERTED);
    MPIX_Continue Neither Completes Bypass;
    MPIX_Continueall Neither Completes Bypass;
    MPIX_Exscan_init Both Creates Harmless(UNCONVERTED);
    MPIX_Gather_init Both Creates Harmless(UNCONVERTED);
    MPIX_Gatherv_init Both Creates Harmless(UNCONVERTED);
    MPIX_Grequest_class_allocate Neither Creates Harmless(GENERALIZED);
    MPIX_Grequest_start Neither Creates Harmless(GENERALIZED);
    MPIX_Irecv_enqueue Receive Creates Harmless(UNCONVERTED);
    MPIX_Isend_enqueue Send Creates Harmless(UNCONVERTED);
    MPIX_Neighbor_allgather_init Both Creates Harmless(UNCONVERTED);
    MPIX_Neighbor_allgatherv_init Both Creates Harmless(UNCONVERTED);
    MPIX_Neighbor_alltoall_init Both Creates Harmless(UNCONVERTED);
    MPIX_Neighbor_alltoallv_init Both Creates Harmless(UNCONVERTED);
    MPIX_Neighbor_alltoallw_init Both Creates Harmless(UNCONVERTED);
    MPIX_Recv_enqueue Receive Nothing Harmless(UNCONVERTED);
    MPIX_Reduce_init Both Creates Harmless(UNCONVERTED);
    MPIX_Reduce_scatter_block_init Both Creates Harmless(UNCONVERTED);
    MPIX_Reduce_scatter_init Both Creates Harmless(UNCONVERTED);
    MPIX_Request_is_complete Neither Asks Bypass;
    MPIX_Scan_init Both Creates Harmless(UNCONVERTED);
    MPIX_Scatter_init Both Creates Harmless(UNCONVERTED);
    MPIX_Scatterv_init Both Creates Harmless(UNCONVERTED);
    MPIX_Stream_irecv Receive Creates Harmless(UNCONVERTED);
    MPIX_Stream_isend Send Creates Harmless(UNCONVERTED);
    MPIX_Stream_recv Receive Nothing Harmless(UNCONVERTED);
    MPIX_Wait_enqueue Neither Completes Harmless(ENQUEUED);
    MPIX_Waitall_enqueue Neither Completes Harmless(ENQUEUED);
}

impl MpiFunction {
    /// Returns true if a call of the function that the preload library does not see could start,
    /// complete or free a converted request, or reveal that the request is complete.
    fn touches_converted(&self) -> bool {
        use RequestEffect::{Asks, Completes, Frees, Starts};
        !matches!(self.handling, Handling::Harmless(_))
            && matches!(self.request, Starts | Completes | Asks | Frees)
    }
}

/// Returns all rows of the table.
pub fn all() -> impl Iterator<Item = &'static MpiFunction> {
    COUNTED.iter().chain(OTHERS)
}

/// Returns the row of a function name; `None` if the table has none. The name may end with `_c`,
/// and may begin with the letter `P` or `Q` of a profiling interface.
pub fn find(name: &str) -> Option<&'static MpiFunction> {
    let plain = name.strip_prefix(['P', 'Q']).unwrap_or(name);
    let small = plain.strip_suffix("_c").unwrap_or(plain);
    all().find(|function| function.name == small)
}

/// Returns true if an object that refers to the symbol `name` may start, complete, ask about or
/// free a converted request by a call that the preload library does not see.
///
/// This is so only for functions that do one of these things to a request, and only in two cases:
///
/// * `name` is the `PMPI_` or `QMPI_` name of the function. A call by this name bypasses the
///   wrapper that the preload library may have.
/// * The preload library has no wrapper of the function, so that its calls are never seen
///   ([`Handling::Bypass`]). Then `name` may be any name of the function. Names in Fortran (lower
///   or upper case, with underscores at the end) count only in this case.
pub fn touches_requests_unseen(name: &str) -> bool {
    let profiling = ["PMPI", "QMPI"].iter().any(|prefix| name.starts_with(prefix));
    if profiling && find(name).is_some_and(MpiFunction::touches_converted) {
        return true;
    }
    let plain = name.strip_prefix(['P', 'Q', 'p', 'q']).unwrap_or(name).trim_end_matches('_');
    let bypassed = all().filter(|function| function.handling == Handling::Bypass);
    bypassed.filter(|function| function.touches_converted()).any(|f| f.name.eq_ignore_ascii_case(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_function_has_one_row() {
        let names: HashSet<&str> = all().map(|function| function.name).collect();
        assert_eq!(names.len(), all().count());
        for function in all() {
            let prefixed = function.name.starts_with("MPI_") || function.name.starts_with("MPIX_");
            assert!(prefixed && !function.name.ends_with("_c"), "{}", function.name);
            assert_eq!(find(&format!("P{}_c", function.name)).map(|f| f.name), Some(function.name));
        }
    }

    #[test]
    fn a_reason_to_bypass_touches_requests() {
        for function in all().filter(|function| function.handling == Handling::Bypass) {
            assert!(function.touches_converted(), "{}", function.name);
        }
    }

    #[test]
    fn names_that_touch_requests_unseen() {
        for name in [
            "PMPI_Wait",
            "QMPI_Waitall",
            "PMPI_Startall",
            "PMPI_Request_get_status_some",
            "PMPI_Request_free",
            "MPIX_Request_is_complete",
            "PMPIX_Request_is_complete",
            "QMPIX_Request_is_complete",
            "mpix_request_is_complete_",
            "pmpix_request_is_complete__",
            "MPIX_REQUEST_IS_COMPLETE",
            "MPIX_Continueall",
        ] {
            assert!(touches_requests_unseen(name), "{name}");
        }
        for name in [
            "MPI_Wait",
            "PMPI_Waiting",
            "PMPI_Isend",
            "PMPI_Recv",
            "PMPI_Cancel",
            "PMPI_Get_count",
            "PMPI_Parrived",
            "PMPI_Type_commit",
            "MPIX_Wait_enqueue",
            "PMPIX_Grequest_start",
            "pmpi_wait_",
            "",
            "P",
        ] {
            assert!(!touches_requests_unseen(name), "{name}");
        }
    }
}
