//! The MPI library that the process uses: its functions, its ABI and its predefined handles.
//!
//! The preload library is linked with no MPI library. It finds the functions of the MPI library
//! that is already loaded. `RTLD_NEXT` does not suffice for that, because a Python module may have
//! loaded libmpi with `RTLD_LOCAL`. So the scope of the object that called the wrapper is searched
//! first, then the global scope, then the scope of every loaded object. The objects are opened by
//! `dlopen` with `RTLD_NOLOAD`, which loads nothing.
//!
//! The preload library calls MPI only by the `PMPI_` names, so these calls never enter its own
//! wrappers. Calls of the program go on to a PMPI layer if there is one ([`crate::layers`]).

mod registry;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;

use ddtc::internal::datatype::Named;
use ddtc::internal::process::Awaited;
use ddtc_hosts::abi::queries::{self, Queries};
use ddtc_hosts::abi::{Abi, Flavour, Signs};
use ddtc_hosts::for_each_counted_call;
use ddtc_hosts::layer::Group;
use ddtc_hosts::policy::{Call, Library};
use ddtc_hosts::profile::{OTHER, PartialElement, Profile};
use ddtc_hosts::proof::{self, Grant};
use ddtc_hosts::transport::{Transport, Transports, nodes};
use ddtc_hosts::tried::{Kind, Kinds, SharedKinds, TrialStatus};

use crate::layers::{Layers, Successors};
use crate::loader::{Opened, object_of};
use crate::named_range::{NO_RANGE, within_segments};
use crate::scopes::{Place, find_scope};
use crate::settings::{Choice, settings};
pub(crate) use crate::signatures::HandleWord;
use crate::signatures::argument;
use crate::slow_path::{COUNT, LAYER, watch};
use crate::users::Users;
use crate::warn::warn;

pub(crate) use registry::{first_is_gone, host, host_of_caller, initialized, known, others};

pub(crate) type CopyFn = unsafe extern "C-unwind" fn(
    HandleWord,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;
pub(crate) type DeleteFn = unsafe extern "C-unwind" fn(HandleWord, c_int, *mut c_void, *mut c_void) -> c_int;

/// Makes a constant C string from a string literal.
macro_rules! c_name {
    ($name:expr) => {
        const {
            match std::ffi::CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name"),
            }
        }
    };
}
pub(crate) use c_name;

macro_rules! functions {
    ($(#[$doc:meta])* $functions:ident $($field:ident $name:ident ($($arg:ty),*);)*) => {
        $(#[$doc])*
        #[allow(clippy::type_complexity, reason = "the signatures of MPI")]
        #[derive(Clone)]
        pub(crate) struct $functions {
            $(pub(crate) $field: Option<unsafe extern "C-unwind" fn($($arg),*) -> c_int>,)*
        }

        impl $functions {
            /// Profiling names (`PMPI_...`) of the functions of this table.
            const PROFILING: &[&CStr] = &[$(c_name!(concat!("P", stringify!($name)))),*];

            /// Returns the functions that `lookup` gives for their profiling names.
            fn find(lookup: &dyn Fn(&CStr) -> *mut c_void) -> $functions {
                $functions {
                    $($field: {
                        let name = c_name!(concat!("P", stringify!($name)));
                        // SAFETY: a null pointer becomes `None`. Any other pointer is the address
                        // of the C function `name`, whose type is fixed by the MPI standard.
                        // Handles of 4 or 8 bytes are passed as 64-bit words, which the C calling
                        // conventions of x86-64 and aarch64 allow.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                Option<unsafe extern "C-unwind" fn($($arg),*) -> c_int>,
                            >(lookup(name))
                        }
                    },)*
                }
            }
        }
    };
}

macro_rules! counted {
    ($(fn $name:ident, fn $name_c:ident: $small:ident, $large:ident, $section:literal, $call:ident $completion:ident $file:ident::$by:ident
     ($($argument:ident: $role:ident),*);)*) => {
        functions! {
            /// Functions of an MPI library that take counts, each in both forms: with counts of
            /// type `int` and with counts of type `MPI_Count`. `None` if the library has no such
            /// symbol.
            CountedFunctions
            $(
                $small $name ($(argument!(c_int, $role)),*);
                $large $name_c ($(argument!(i64, $role)),*);
            )*
        }
    };
}

for_each_counted_call! { counted }

functions! {
    /// Functions of an MPI library that this library wraps or calls, and that have no row in
    /// `ddtc_hosts::counted_calls`. `None` if the MPI library has no such symbol.
    Functions
    finalize MPI_Finalize ();
    initialized MPI_Initialized (*mut c_int);
    finalized MPI_Finalized (*mut c_int);
    abort MPI_Abort (HandleWord, c_int);
    session_finalize MPI_Session_finalize (*mut c_void);
    comm_rank MPI_Comm_rank (HandleWord, *mut c_int);
    comm_size MPI_Comm_size (HandleWord, *mut c_int);
    comm_test_inter MPI_Comm_test_inter (HandleWord, *mut c_int);
    comm_remote_size MPI_Comm_remote_size (HandleWord, *mut c_int);
    comm_get_parent MPI_Comm_get_parent (*mut c_void);
    comm_spawn MPI_Comm_spawn
        (*const c_char, *mut c_void, c_int, HandleWord, c_int, HandleWord, *mut c_void, *mut c_int);
    comm_spawn_multiple MPI_Comm_spawn_multiple
        (c_int, *mut c_void, *mut c_void, *const c_int, *const c_void, c_int, HandleWord, *mut c_void, *mut c_int);
    comm_accept MPI_Comm_accept (*const c_char, HandleWord, c_int, HandleWord, *mut c_void);
    comm_connect MPI_Comm_connect (*const c_char, HandleWord, c_int, HandleWord, *mut c_void);
    comm_join MPI_Comm_join (c_int, *mut c_void);
    comm_disconnect MPI_Comm_disconnect (*mut c_void);
    intercomm_create MPI_Intercomm_create (HandleWord, c_int, HandleWord, c_int, c_int, *mut c_void);
    comm_group MPI_Comm_group (HandleWord, *mut c_void);
    comm_remote_group MPI_Comm_remote_group (HandleWord, *mut c_void);
    group_size MPI_Group_size (HandleWord, *mut c_int);
    group_translate_ranks MPI_Group_translate_ranks
        (HandleWord, c_int, *const c_int, HandleWord, *mut c_int);
    group_free MPI_Group_free (*mut c_void);
    topo_test MPI_Topo_test (HandleWord, *mut c_int);
    cartdim_get MPI_Cartdim_get (HandleWord, *mut c_int);
    cart_shift MPI_Cart_shift (HandleWord, c_int, c_int, *mut c_int, *mut c_int);
    graph_neighbors_count MPI_Graph_neighbors_count (HandleWord, c_int, *mut c_int);
    dist_graph_neighbors_count MPI_Dist_graph_neighbors_count (HandleWord, *mut c_int, *mut c_int, *mut c_int);
    comm_call_errhandler MPI_Comm_call_errhandler (HandleWord, c_int);
    comm_create_errhandler MPI_Comm_create_errhandler (*mut c_void, *mut c_void);
    win_create_errhandler MPI_Win_create_errhandler (*mut c_void, *mut c_void);
    file_create_errhandler MPI_File_create_errhandler (*mut c_void, *mut c_void);
    session_create_errhandler MPI_Session_create_errhandler (*mut c_void, *mut c_void);
    errhandler_create MPI_Errhandler_create (*mut c_void, *mut c_void);
    file_open MPI_File_open (HandleWord, *const c_char, c_int, HandleWord, *mut c_void);
    file_close MPI_File_close (*mut c_void);
    file_set_view MPI_File_set_view (HandleWord, i64, HandleWord, HandleWord, *const c_char, HandleWord);
    file_get_size MPI_File_get_size (HandleWord, *mut i64);
    file_get_position MPI_File_get_position (HandleWord, *mut i64);
    file_get_byte_offset MPI_File_get_byte_offset (HandleWord, i64, *mut i64);
    file_call_errhandler MPI_File_call_errhandler (HandleWord, c_int);
    win_fence MPI_Win_fence (c_int, HandleWord);
    win_flush MPI_Win_flush (c_int, HandleWord);
    win_flush_local MPI_Win_flush_local (c_int, HandleWord);
    win_flush_all MPI_Win_flush_all (HandleWord);
    win_flush_local_all MPI_Win_flush_local_all (HandleWord);
    win_unlock MPI_Win_unlock (c_int, HandleWord);
    win_unlock_all MPI_Win_unlock_all (HandleWord);
    win_complete MPI_Win_complete (HandleWord);
    win_free MPI_Win_free (*mut c_void);
    win_call_errhandler MPI_Win_call_errhandler (HandleWord, c_int);
    comm_create_keyval MPI_Comm_create_keyval (CopyFn, DeleteFn, *mut c_int, *mut c_void);
    comm_free_keyval MPI_Comm_free_keyval (*mut c_int);
    comm_set_attr MPI_Comm_set_attr (HandleWord, c_int, *mut c_void);
    comm_get_attr MPI_Comm_get_attr (HandleWord, c_int, *mut c_void, *mut c_int);
    library_version MPI_Get_library_version (*mut c_char, *mut c_int);
    abi_version MPI_Abi_get_version (*mut c_int, *mut c_int);
    type_commit MPI_Type_commit (*mut c_void);
    type_free MPI_Type_free (*mut c_void);
    type_dup MPI_Type_dup (HandleWord, *mut c_void);
    type_contiguous MPI_Type_contiguous (c_int, HandleWord, *mut c_void);
    type_create_resized MPI_Type_create_resized (HandleWord, isize, isize, *mut c_void);
    type_create_struct MPI_Type_create_struct (c_int, *const c_int, *const isize, *const c_void, *mut c_void);
    type_vector MPI_Type_vector (c_int, c_int, c_int, HandleWord, *mut c_void);
    type_size MPI_Type_size (HandleWord, *mut c_int);
    type_size_x MPI_Type_size_x (HandleWord, *mut i64);
    type_size_c MPI_Type_size_c (HandleWord, *mut i64);
    type_extent MPI_Type_get_extent (HandleWord, *mut isize, *mut isize);
    type_true_extent MPI_Type_get_true_extent (HandleWord, *mut isize, *mut isize);
    envelope MPI_Type_get_envelope (HandleWord, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
    envelope_c MPI_Type_get_envelope_c (HandleWord, *mut i64, *mut i64, *mut i64, *mut i64, *mut c_int);
    contents MPI_Type_get_contents
        (HandleWord, c_int, c_int, c_int, *mut c_int, *mut isize, *mut c_void);
    contents_c MPI_Type_get_contents_c
        (HandleWord, i64, i64, i64, i64, *mut c_int, *mut isize, *mut i64, *mut c_void);
    type_create_keyval MPI_Type_create_keyval (CopyFn, DeleteFn, *mut c_int, *mut c_void);
    type_free_keyval MPI_Type_free_keyval (*mut c_int);
    type_set_attr MPI_Type_set_attr (HandleWord, c_int, *mut c_void);
    type_get_attr MPI_Type_get_attr (HandleWord, c_int, *mut c_void, *mut c_int);
    psend_init MPI_Psend_init
        (*mut c_void, c_int, i64, HandleWord, c_int, c_int, HandleWord, HandleWord, *mut c_void);
    precv_init MPI_Precv_init
        (*mut c_void, c_int, i64, HandleWord, c_int, c_int, HandleWord, HandleWord, *mut c_void);
    start MPI_Start (*mut c_void);
    startall MPI_Startall (c_int, *mut c_void);
    wait MPI_Wait (*mut c_void, *mut c_void);
    test MPI_Test (*mut c_void, *mut c_int, *mut c_void);
    waitany MPI_Waitany (c_int, *mut c_void, *mut c_int, *mut c_void);
    testany MPI_Testany (c_int, *mut c_void, *mut c_int, *mut c_int, *mut c_void);
    waitall MPI_Waitall (c_int, *mut c_void, *mut c_void);
    testall MPI_Testall (c_int, *mut c_void, *mut c_int, *mut c_void);
    waitsome MPI_Waitsome (c_int, *mut c_void, *mut c_int, *mut c_int, *mut c_void);
    testsome MPI_Testsome (c_int, *mut c_void, *mut c_int, *mut c_int, *mut c_void);
    request_get_status MPI_Request_get_status (HandleWord, *mut c_int, *mut c_void);
    request_get_status_any MPI_Request_get_status_any (c_int, *mut c_void, *mut c_int, *mut c_int, *mut c_void);
    request_get_status_all MPI_Request_get_status_all (c_int, *mut c_void, *mut c_int, *mut c_void);
    request_get_status_some MPI_Request_get_status_some (c_int, *mut c_void, *mut c_int, *mut c_int, *mut c_void);
    request_free MPI_Request_free (*mut c_void);
    test_cancelled MPI_Test_cancelled (*const c_void, *mut c_int);
    get_count MPI_Get_count (*const c_void, HandleWord, *mut c_int);
    get_count_c MPI_Get_count_c (*const c_void, HandleWord, *mut i64);
    get_elements_x MPI_Get_elements_x (*const c_void, HandleWord, *mut i64);
    status_set_elements MPI_Status_set_elements (*mut c_void, HandleWord, c_int);
    status_set_elements_x MPI_Status_set_elements_x (*mut c_void, HandleWord, i64);
    pack_size MPI_Pack_size (c_int, HandleWord, HandleWord, *mut c_int);
    error_class MPI_Error_class (c_int, *mut c_int);
    cvar_get_num MPI_T_cvar_get_num (*mut c_int);
    cvar_get_info MPI_T_cvar_get_info
        (c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_void, *mut c_void, *mut c_char, *mut c_int, *mut c_int, *mut c_int);
    cvar_get_index MPI_T_cvar_get_index (*const c_char, *mut c_int);
    cvar_handle_alloc MPI_T_cvar_handle_alloc (c_int, *mut c_void, *mut c_void, *mut c_int);
    cvar_handle_free MPI_T_cvar_handle_free (*mut c_void);
    cvar_read MPI_T_cvar_read (*mut c_void, *mut c_void);
    cvar_write MPI_T_cvar_write (*mut c_void, *const c_void);
    t_finalize MPI_T_finalize ();
    enum_get_info MPI_T_enum_get_info (*mut c_void, *mut c_int, *mut c_char, *mut c_int);
    enum_get_item MPI_T_enum_get_item (*mut c_void, c_int, *mut c_int, *mut c_char, *mut c_int);
    pvar_get_num MPI_T_pvar_get_num (*mut c_int);
    pvar_get_info MPI_T_pvar_get_info
        (c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_int, *mut c_void, *mut c_void, *mut c_char, *mut c_int,
         *mut c_int, *mut c_int, *mut c_int, *mut c_int);
    pvar_get_index MPI_T_pvar_get_index (*const c_char, c_int, *mut c_int);
    pvar_session_create MPI_T_pvar_session_create (*mut c_void);
    pvar_session_free MPI_T_pvar_session_free (*mut c_void);
    pvar_handle_alloc MPI_T_pvar_handle_alloc (*mut c_void, c_int, *mut c_void, *mut c_void, *mut c_int);
    pvar_handle_free MPI_T_pvar_handle_free (*mut c_void, *mut c_void);
    pvar_start MPI_T_pvar_start (*mut c_void, *mut c_void);
    pvar_stop MPI_T_pvar_stop (*mut c_void, *mut c_void);
    pvar_read MPI_T_pvar_read (*mut c_void, *mut c_void, *mut c_void);
    pvar_write MPI_T_pvar_write (*mut c_void, *mut c_void, *const c_void);
    pvar_reset MPI_T_pvar_reset (*mut c_void, *mut c_void);
    pvar_readreset MPI_T_pvar_readreset (*mut c_void, *mut c_void, *mut c_void);
    category_get_num MPI_T_category_get_num (*mut c_int);
    category_get_info MPI_T_category_get_info
        (c_int, *mut c_char, *mut c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
    category_get_index MPI_T_category_get_index (*const c_char, *mut c_int);
    category_get_cvars MPI_T_category_get_cvars (c_int, c_int, *mut c_int);
    category_get_pvars MPI_T_category_get_pvars (c_int, c_int, *mut c_int);
    category_get_categories MPI_T_category_get_categories (c_int, c_int, *mut c_int);
    category_get_num_events MPI_T_category_get_num_events (c_int, *mut c_int);
    category_get_events MPI_T_category_get_events (c_int, c_int, *mut c_int);
}

/// Returns the `PMPI_` names of all functions of MPI that this library wraps or calls.
pub(crate) fn profiling_names() -> impl Iterator<Item = &'static CStr> {
    Functions::PROFILING.iter().chain(CountedFunctions::PROFILING).copied()
}

impl Functions {
    /// Returns true if the MPI library has all functions of this table that conversion needs.
    fn complete(&self) -> bool {
        self.type_commit.is_some()
            && self.type_free.is_some()
            && self.type_vector.is_some()
            && (self.type_size.is_some() || self.type_size_x.is_some() || self.type_size_c.is_some())
            && self.type_extent.is_some()
            && (self.envelope.is_some() && self.contents.is_some()
                || self.envelope_c.is_some() && self.contents_c.is_some())
            && self.type_create_keyval.is_some()
            && self.type_set_attr.is_some()
            && self.type_get_attr.is_some()
            && self.comm_create_keyval.is_some()
            && self.comm_set_attr.is_some()
    }
}

/// Data about one MPI library. The fields before `next` are those that most calls read. They lie in
/// one cache line, because a program that computes between two calls evicts this struct from the
/// cache, and each further line would be a cache miss in every call.
#[repr(C, align(64))]
pub(crate) struct Host {
    /// Mask of the bits of a [`HandleWord`] that hold a handle; 0 if [`Host::abi`] is `None`.
    pub(crate) mask: u64,
    /// Two ranges of handles that contain only handles of named types. Each is given by its first
    /// handle and the distance from the first handle to the last.
    named_ranges: [(u64, u64); 2],
    /// `MPI_DATATYPE_NULL`.
    pub(crate) type_null: u64,
    /// Bytes that a handle has in memory; 0 if [`Host::abi`] is `None`.
    pub(crate) handle_bytes: usize,
    is_open_mpi: bool,
    /// True under Open MPI if the wrapper of `MPI_Type_commit` sees the commits of the program's
    /// types, so that they can be distinguished from the commits that Open MPI makes itself. False
    /// if a PMPI layer takes messages. Then types are found by Open MPI's descriptions of them.
    shows_commits: bool,
    /// Functions to which calls of the program are passed on: the function of a PMPI layer if a
    /// layer has it, else the function of the MPI library.
    pub(crate) next: Functions,
    /// Functions with counts to which calls of the program are passed on, in both forms: with
    /// counts of type `int` and with counts of type `MPI_Count`.
    pub(crate) next_counted: CountedFunctions,
    /// Functions with counts to which a wrapper jumps directly if no type of the call is to be
    /// converted. They are those of `next_counted`, except if calls are counted for a report or
    /// record. Then all of them are `None`, so that every call reaches the code that counts it. (If
    /// the calls of this MPI library are only handed on, they are not counted, and the functions
    /// are always those of `next_counted`.)
    pub(crate) direct: CountedFunctions,
    /// Functions of the MPI library under their `PMPI_` names, for calls that ddtc itself makes.
    pub(crate) f: Functions,
    /// Functions of the MPI library that take a count, under their `PMPI_` names, for calls that
    /// ddtc itself makes.
    pub(crate) counted: CountedFunctions,
    /// PMPI layers between this library and the MPI library.
    pub(crate) layers: Layers,
    /// ABI of the MPI library. `None` if nothing is to be converted, because the ABI is not known,
    /// functions that conversion needs are missing, or the calls of this MPI library are only
    /// handed on.
    pub(crate) abi: Option<&'static Abi>,
    /// Handle `MPI_COMM_WORLD`.
    pub(crate) world: u64,
    /// Handle `MPI_COMM_SELF`.
    pub(crate) myself: u64,
    /// `MPI_COMM_NULL`.
    pub(crate) comm_null: u64,
    /// Handle `MPI_MESSAGE_NO_PROC`.
    pub(crate) message_no_proc: u64,
    /// Handle `MPI_REQUEST_NULL`.
    pub(crate) request_null: u64,
    /// Handle `MPI_PACKED`.
    pub(crate) packed: u64,
    /// Handle `MPI_BYTE`.
    pub(crate) byte: u64,
    /// Family and version of the MPI library, parsed from `version`; `Family::Other` and 0.0.0 if
    /// the calls of this MPI library are only handed on.
    pub(crate) library: Library,
    /// Properties of this release of the MPI library that decisions about conversion depend on.
    pub(crate) profile: &'static Profile,
    /// What the project's test runs, the matrix of MPI libraries, have shown about this release
    /// with the transport of this job.
    pub(crate) trial_status: TrialStatus,
    /// Files that may have proofs of the MPI library. Empty if the release was tried.
    pub(crate) proofs: Vec<PathBuf>,
    /// What these files permit, from the moment when the first message would be converted.
    pub(crate) grant: Awaited<Grant>,
    /// Kinds of calls that may be converted. They become fewer when the proofs are read, and if the
    /// process is connected to another job (`kinds_beyond`).
    pub(crate) kinds: SharedKinds,
    /// Kinds of calls that may be converted in a process that is connected to another job: those
    /// that were right with both transports, inside this job and to other jobs.
    pub(crate) kinds_beyond: Kinds,
    /// Treatment of messages that end inside an element, with the transport of this job.
    pub(crate) partial_element: PartialElement,
    /// Names of the implementation and its device, from the text of `MPI_Get_library_version`
    /// ([`queries::version`]).
    pub(crate) version: String,
    /// Minimum bytes of a contiguous run that the MPI library copies faster than `memcpy` does
    /// (`costs.own_runs` of the profile), or `i64::MAX` if the policy converts everything.
    pub(crate) own_runs: i64,
    /// Handles of the named types with the types, sorted by handle.
    named: Vec<(u64, Named)>,
    /// Object file of the MPI library and an address in it, for symbols that are looked up later.
    place: Place,
    pub(crate) users: Users,
}

const _: () = assert!(std::mem::offset_of!(Host, next) <= 64);

/// Returns the kinds of calls that may be converted under an MPI library: those that were right
/// when the release was tried. For a release that was not tried, `DDTC_POLICY=all` permits those of
/// the nearest older one, or of the oldest; for a library of no known family, those that a proof
/// can permit. No kind is permitted if the profile of the MPI library does not stage
/// ([`Profile::stages`]), or if there is no profile of the library's family or ABI. `DDTC_UNPROVEN`
/// permits all kinds if there is such a profile.
fn kinds(profile: &Profile, trial_status: TrialStatus) -> Kinds {
    let settings = settings();
    if profile.policy == OTHER.policy {
        Kinds::NONE
    } else if settings.unproven {
        Kinds::ALL
    } else if profile.stages {
        trial_status.kinds(settings.policy == Choice::All)
    } else {
        Kinds::NONE
    }
}

impl Host {
    /// Collects the data about the MPI library whose functions are found in `scope`. If `converts`
    /// is true, its calls may be converted. If `converts` is false or the ABI is not known, its
    /// calls are only handed on.
    fn in_scope(scope: &Opened, converts: bool) -> Host {
        let lookup = |name: &CStr| scope.symbol(name);
        let (f, counted) = (Functions::find(&lookup), CountedFunctions::find(&lookup));
        let successors = Successors::new(scope);
        let onwards = |name: &CStr| successors.function(name);
        let (next, next_counted) = (Functions::find(&onwards), CountedFunctions::find(&onwards));
        successors.look_for_fortran_packs();
        let layers = successors.into_layers();
        if layers.have(Group::Pack) {
            watch(LAYER);
        }
        let version = version(&f);
        let mut abi = if converts { detect(&f, scope, &version) } else { None };
        if abi.is_some() && !(f.complete() && counted.pack.is_some() && counted.unpack.is_some()) {
            warn(format_args!("the MPI library lacks functions that conversion needs; nothing is converted"));
            abi = None;
        }
        let counting = settings().counting();
        if counting {
            watch(COUNT);
        }
        let none = |_: &CStr| std::ptr::null_mut();
        let direct = if counting && converts { CountedFunctions::find(&none) } else { next_counted.clone() };
        let library = Library::from_version_text(if converts { &version } else { "" });
        let place = Place::from_scope(scope);
        let transports = Transports::determine(&version, |name| std::env::var(name).ok());
        let trial_status = TrialStatus::find(&library, transports.inside);
        let (profile, proofs) = profile_and_proofs(&library, abi, trial_status, &place.object);
        let without_proof = kinds(profile, trial_status);
        let permitted = if proofs.is_empty() { without_proof } else { without_proof.or(Kinds::PROVABLE) };
        // A proof holds for the ranks of one job.
        let beyond = kinds(profile, TrialStatus::find(&library, transports.beyond));
        let mut host = Host {
            mask: abi.map_or(0, |a| a.handle_mask),
            named_ranges: [NO_RANGE; 2],
            type_null: abi.map_or(0, |a| a.type_null),
            handle_bytes: abi.map_or(0, |a| a.handle_bytes),
            is_open_mpi: abi.is_some_and(|a| a.flavour == Flavour::OpenMpi),
            shows_commits: abi.is_some_and(|a| a.flavour == Flavour::OpenMpi)
                && !layers.have(Group::Messages),
            next,
            next_counted,
            direct,
            f,
            counted,
            layers,
            abi,
            world: abi.map_or(0, |a| a.world),
            myself: abi.map_or(0, |a| a.myself),
            request_null: abi.map_or(0, |a| a.request_null),
            comm_null: abi.map_or(0, |a| a.comm_null),
            message_no_proc: abi.map_or(0, |a| a.message_no_proc),
            packed: 0,
            byte: 0,
            own_runs: if settings().policy == Choice::All { i64::MAX } else { profile.costs.own_runs },
            library,
            profile,
            trial_status,
            kinds: SharedKinds::new(permitted),
            proofs,
            grant: Awaited::new(),
            kinds_beyond: without_proof.and(beyond),
            partial_element: match transports.inside {
                Some(Transport::Libfabric) => profile.partial_element_over_libfabric,
                _ => profile.partial_element,
            },
            version,
            named: Vec::new(),
            place,
            users: Users::new(),
        };
        if let Some(abi) = abi {
            host.take_handles(abi, scope);
        }
        host
    }

    /// Returns true if calls of this kind may be converted.
    #[inline]
    pub(crate) fn permits(&self, call: Call) -> bool {
        Kind::from_call(call).is_none_or(|kind| self.kinds.get().has(kind))
    }

    /// Returns true if fewer kinds of calls may be converted than before the process was connected
    /// to another job.
    pub(crate) fn is_restricted(&self) -> bool {
        self.kinds.get() != self.allowed()
    }

    /// Returns the kinds of calls that are converted although neither a run of the matrix nor a
    /// proof permits them, because the user asks for it.
    pub(crate) fn asked(&self) -> Kinds {
        match self.trial_status {
            TrialStatus::Tried { .. } => Kinds::NONE,
            _ => self.kinds.get().without(self.grant.get().map_or(Kinds::NONE, |grant| grant.permitted)),
        }
    }

    /// Returns the kinds of calls that may be converted while this process is not connected to
    /// another job, as far as that is known. Before the proofs are read, these include what they
    /// can permit.
    pub(crate) fn allowed(&self) -> Kinds {
        let kinds = kinds(self.profile, self.trial_status);
        match self.grant.get() {
            Some(grant) => kinds.or(grant.permitted).without(grant.refused),
            None if self.proofs.is_empty() => kinds,
            None => kinds.or(Kinds::PROVABLE),
        }
    }

    /// Returns the file of the MPI library.
    pub(crate) fn object(&self) -> &str {
        &self.place.object
    }

    /// Returns true if calls of this kind are left to the MPI library whatever their types are.
    /// Under Open MPI the result is always false, because compiled code may move the bytes of any
    /// call inside Open MPI.
    pub(crate) fn never_converts(&self, call: Call) -> bool {
        !self.permits(call) && !self.profile.costs.moves_inside
    }

    /// Fills in the predefined handles, which are constants of the ABI or addresses of data objects
    /// in the MPI library.
    fn take_handles(&mut self, abi: &'static Abi, scope: &Opened) {
        let global = Opened::global();
        let data = |name: &str| data_in([global.as_ref(), Some(scope)], name);
        self.named.extend(abi.named().filter(|&(handle, _)| handle != 0));
        for (name, named) in abi.named_symbols() {
            let handle = data(&format!("ompi_mpi_{name}"));
            self.named.extend((handle != 0).then_some((handle, named)));
        }
        self.named.sort_unstable_by_key(|&(handle, _)| handle);
        self.named_ranges = match abi.named_range() {
            Some(range) => [(*range.start(), range.end() - range.start()), NO_RANGE],
            None => within_segments(&self.named),
        };
        if !abi.world_symbol.is_empty() {
            self.world = data(abi.world_symbol);
            self.myself = data(abi.self_symbol);
            self.type_null = data(abi.type_null_symbol);
            self.request_null = data(abi.request_null_symbol);
            self.comm_null = data(abi.comm_null_symbol);
            self.message_no_proc = data(abi.message_no_proc_symbol);
        }
        self.packed = self.handle(Named::Packed).unwrap_or(0);
        self.byte = self.handle(Named::Byte).unwrap_or(0);
    }

    /// Returns whether the world was initialized, and whether it was finalized. Any thread may
    /// query both at any time (MPI 5.0, 11.4.1). If the MPI library lacks one of the two functions
    /// or the function returns an error, its result is "not initialized" or "finalized".
    fn initialized_and_finalized(&self) -> (bool, bool) {
        let (mut up, mut down) = (0, 0);
        // SAFETY: `MPI_Initialized` and `MPI_Finalized` of this library, which may be called at any
        // time. Each gets a valid pointer to an `int` that it writes.
        let codes = unsafe {
            (self.f.initialized.map(|f| f(&raw mut up)), self.f.finalized.map(|f| f(&raw mut down)))
        };
        (codes.0 == Some(0) && up != 0, codes.1 != Some(0) || down != 0)
    }

    /// Returns whether the world is initialized and not finalized.
    pub(crate) fn world_is_up(&self) -> bool {
        self.initialized_and_finalized() == (true, false)
    }

    /// Runs `call`, a call of ddtc's own that uses `MPI_COMM_WORLD` or `MPI_COMM_SELF`, and returns
    /// its result. Returns `None` if the world is not initialized or `MPI_Finalize` has begun. If
    /// an `MPI_Finalize` of the program begins while `call` runs, it waits until `call` has ended
    /// (at most `MAX_WAIT` of [`crate::users`]).
    pub(crate) fn with_world<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        let _internal = self.users.internal()?;
        self.world_is_up().then(call)
    }

    /// Returns the number of nodes on which the ranks of the world run; `None` if launchers do not
    /// show it ([`nodes`]). The world must be initialized and not finalized.
    pub(crate) fn nodes(&self) -> Option<u32> {
        let mut ranks = 0;
        // SAFETY: the world exists, as the caller promises, and `ranks` may be written.
        let code = self.f.comm_size.map(|f| unsafe { f(self.world, &raw mut ranks) });
        let ranks = u32::try_from(ranks).ok().filter(|_| code == Some(0))?;
        nodes(ranks, |name| std::env::var(name).ok())
    }

    /// Returns true if the handle lies in one of the two ranges that contain only handles of named
    /// types. So the result is false also for named types outside of these ranges, for example
    /// MPICH's pair types such as `MPI_FLOAT_INT`.
    #[inline]
    pub(crate) fn is_named(&self, handle: u64) -> bool {
        self.named_ranges.iter().any(|&(first, span)| handle.wrapping_sub(first) <= span)
    }

    /// Returns the named type of a handle.
    pub(crate) fn named(&self, handle: u64) -> Option<Named> {
        let at = self.named.binary_search_by_key(&handle, |&(h, _)| h).ok()?;
        Some(self.named[at].1)
    }

    /// Returns the functions that return the envelope and contents of a datatype.
    pub(crate) fn queries(&self, abi: &'static Abi) -> Queries {
        let f = &self.f;
        let (envelope, envelope_c) = (f.envelope, f.envelope_c);
        Queries { abi, envelope, envelope_c, contents: f.contents, contents_c: f.contents_c }
    }

    /// Returns the handle of a named type.
    pub(crate) fn handle(&self, named: Named) -> Option<u64> {
        self.named.iter().find(|&&(_, n)| n == named).map(|&(h, _)| h)
    }

    /// Returns the address of a data object of the MPI library, or 0 if there is no such object.
    /// The program may have its own copy of the object, made by a copy relocation, which all
    /// objects then use. So the global scope, where the copy is found, is searched before the
    /// library.
    pub(crate) fn data(&self, name: &str) -> u64 {
        let scopes = [Opened::global(), self.opened()];
        data_in([scopes[0].as_ref(), scopes[1].as_ref()], name)
    }

    /// Returns a function of the MPI library by name, or null. The library and its dependencies are
    /// searched first, then all other scopes ([`find_scope`]), since the Fortran functions may be
    /// in a library of their own.
    pub(crate) fn function(&self, name: &CStr) -> *mut c_void {
        let here = self.opened().map_or(std::ptr::null_mut(), |scope| scope.symbol(name));
        if !here.is_null() {
            return here;
        }
        find_scope(name).map_or(std::ptr::null_mut(), |scope| scope.symbol(name))
    }

    /// Opens the MPI library for symbol look-ups, which keeps it loaded until the result is
    /// dropped.
    fn opened(&self) -> Option<Opened> {
        Opened::loaded(&self.place.object)
    }

    /// Returns true if the world or a session of this MPI library is known to be in use.
    fn is_in_use(&self) -> bool {
        self.users.any() || self.world_is_up()
    }

    #[inline]
    pub(crate) fn is_open_mpi(&self) -> bool {
        self.is_open_mpi
    }

    /// Returns true under Open MPI if commits of the program's types can be distinguished from
    /// those that Open MPI makes itself, because the wrapper of `MPI_Type_commit` sees the
    /// program's commits.
    #[inline]
    pub(crate) fn shows_commits(&self) -> bool {
        self.shows_commits
    }

    /// Returns the function of a PMPI layer that has the Fortran name `name`; `None` if no layer
    /// has one. `profiling`: the same name with the letter P before it.
    pub(crate) fn layers_fortran(&self, name: &CStr, profiling: &CStr) -> Option<*mut c_void> {
        Successors::new(&self.opened()?).of_fortran(name, profiling)
    }
}

/// Returns the profile of an MPI library, and the files that may have proofs of it. Only a library
/// that was not tried has such files. `object`: the file of the library.
fn profile_and_proofs(
    library: &Library,
    abi: Option<&'static Abi>,
    trial_status: TrialStatus,
    object: &str,
) -> (&'static Profile, Vec<PathBuf>) {
    let is_tried = matches!(trial_status, TrialStatus::Tried { .. });
    let profile = abi.filter(|_| !is_tried).and_then(|abi| Profile::find_untried(library, abi.flavour));
    match profile.filter(|profile| profile.stages) {
        Some(profile) if settings().unproven => (profile, Vec::new()),
        Some(profile) => {
            let variable = |name| std::env::var(name).ok();
            let (config, home) = (variable("XDG_CONFIG_HOME"), variable("HOME"));
            match proof::existing_files(object, config.as_deref(), home.as_deref()) {
                files if files.is_empty() && settings().policy != Choice::All => {
                    (Profile::find(library), files)
                }
                files => (profile, files),
            }
        }
        None => (Profile::find(library), Vec::new()),
    }
}

/// Returns the ABI of an MPI library. If the ABI is not a known one, writes a warning and returns
/// `None`.
fn detect(f: &Functions, scope: &Opened, version: &str) -> Option<&'static Abi> {
    // SAFETY: the MPI library's function of that name, which may be called at any time.
    let abi_version = f.abi_version.and_then(|f| unsafe { queries::abi_version(f) });
    let file = object_of(scope.symbol(c"PMPI_Pack"));
    let has = |name| !scope.symbol(name).is_null();
    let (has_ompi_int, has_mpir_dup_fn) = (has(c"ompi_mpi_int"), has(c"MPIR_Dup_fn"));
    match Abi::find(&Signs { has_ompi_int, has_mpir_dup_fn, abi_version, file: &file, version }) {
        Ok(abi) => Some(abi),
        Err(what) => {
            warn(format_args!("{what}; its calls are not converted"));
            None
        }
    }
}

/// Returns the address of a data object in the first of these scopes that defines it, or 0 if none
/// does.
fn data_in(scopes: [Option<&Opened>; 2], name: &str) -> u64 {
    let Ok(name) = CString::new(name) else { return 0 };
    let mut found = scopes.into_iter().flatten().map(|scope| scope.symbol(&name));
    found.find(|found| !found.is_null()).map_or(0, |found| found.addr() as u64)
}

fn version(f: &Functions) -> String {
    // SAFETY: the MPI library's function of that name, which may be called at any time.
    f.library_version.and_then(|f| unsafe { queries::version(f) }).unwrap_or_else(|| "no version".to_owned())
}
