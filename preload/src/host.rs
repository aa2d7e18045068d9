//! The MPI library that the process runs: found in memory, told apart, and its functions.
//!
//! Nothing of MPI is linked. `RTLD_NEXT` is not enough: a Python module may have loaded libmpi with `RTLD_LOCAL`. So the object
//! that called the wrapper is asked first, then the global scope, then every loaded object; all by `dlopen` with `RTLD_NOLOAD`,
//! which loads nothing. Only `PMPI_` names are called, so no call of ours can come back as a wrapper's.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use ddtc::datatype::Named;
use ddtc::process::Awaited;

use crate::warn::warn;
use ddtc::abi::queries::Queries;
use ddtc::abi::{Abi, Flavour, Signs};

/// A handle of the host as an argument of a call, whichever ABI the host has: 4 or 8 bytes wide. Bits above its width are not
/// defined; `Host::mask` clears them.
pub(crate) type HandleWord = u64;

pub(crate) type CopyFn =
    unsafe extern "C" fn(HandleWord, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
pub(crate) type DeleteFn = unsafe extern "C" fn(HandleWord, c_int, *mut c_void, *mut c_void) -> c_int;

macro_rules! functions {
    ($($field:ident $name:literal ($($arg:ty),*);)*) => {
        /// Functions of the host, `None` where it has no such symbol.
        #[allow(clippy::type_complexity, reason = "the signatures of MPI")]
        pub(crate) struct Functions {
            $(pub(crate) $field: Option<unsafe extern "C" fn($($arg),*) -> c_int>,)*
        }

        impl Functions {
            fn find(lookup: &dyn Fn(&CStr) -> *mut c_void) -> Functions {
                Functions {
                    $($field: {
                        let name = const {
                            match CStr::from_bytes_with_nul(concat!("PMPI_", $name, "\0").as_bytes()) {
                                Ok(name) => name,
                                Err(_) => panic!("a name"),
                            }
                        };
                        // SAFETY: a null pointer is None, any other the function of that name, whose C type the MPI
                        // standard fixes; handles are passed as 64-bit words (see `abi`).
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                Option<unsafe extern "C" fn($($arg),*) -> c_int>,
                            >(lookup(name))
                        }
                    },)*
                }
            }
        }
    };
}

functions! {
    finalize "Finalize" ();
    initialized "Initialized" (*mut c_int);
    finalized "Finalized" (*mut c_int);
    session_finalize "Session_finalize" (*mut c_void);
    comm_rank "Comm_rank" (HandleWord, *mut c_int);
    comm_size "Comm_size" (HandleWord, *mut c_int);
    comm_call_errhandler "Comm_call_errhandler" (HandleWord, c_int);
    comm_create_keyval "Comm_create_keyval" (CopyFn, DeleteFn, *mut c_int, *mut c_void);
    comm_free_keyval "Comm_free_keyval" (*mut c_int);
    comm_set_attr "Comm_set_attr" (HandleWord, c_int, *mut c_void);
    library_version "Get_library_version" (*mut c_char, *mut c_int);
    abi_version "Abi_get_version" (*mut c_int, *mut c_int);
    type_commit "Type_commit" (*mut c_void);
    type_free "Type_free" (*mut c_void);
    type_dup "Type_dup" (HandleWord, *mut c_void);
    type_vector "Type_vector" (c_int, c_int, c_int, HandleWord, *mut c_void);
    type_size "Type_size" (HandleWord, *mut c_int);
    type_size_x "Type_size_x" (HandleWord, *mut i64);
    type_size_c "Type_size_c" (HandleWord, *mut i64);
    type_extent "Type_get_extent" (HandleWord, *mut isize, *mut isize);
    envelope "Type_get_envelope" (HandleWord, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
    envelope_c "Type_get_envelope_c" (HandleWord, *mut i64, *mut i64, *mut i64, *mut i64, *mut c_int);
    contents "Type_get_contents"
        (HandleWord, c_int, c_int, c_int, *mut c_int, *mut isize, *mut c_void);
    contents_c "Type_get_contents_c"
        (HandleWord, i64, i64, i64, i64, *mut c_int, *mut isize, *mut i64, *mut c_void);
    type_create_keyval "Type_create_keyval" (CopyFn, DeleteFn, *mut c_int, *mut c_void);
    type_free_keyval "Type_free_keyval" (*mut c_int);
    type_set_attr "Type_set_attr" (HandleWord, c_int, *mut c_void);
    type_get_attr "Type_get_attr" (HandleWord, c_int, *mut c_void, *mut c_int);
    pack "Pack" (*const c_void, c_int, HandleWord, *mut c_void, c_int, *mut c_int, HandleWord);
    unpack "Unpack" (*const c_void, c_int, *mut c_int, *mut c_void, c_int, HandleWord, HandleWord);
    pack_c "Pack_c" (*const c_void, i64, HandleWord, *mut c_void, i64, *mut i64, HandleWord);
    unpack_c "Unpack_c" (*const c_void, i64, *mut i64, *mut c_void, i64, HandleWord, HandleWord);
    send "Send" (*const c_void, c_int, HandleWord, c_int, c_int, HandleWord);
    send_c "Send_c" (*const c_void, i64, HandleWord, c_int, c_int, HandleWord);
    ssend "Ssend" (*const c_void, c_int, HandleWord, c_int, c_int, HandleWord);
    ssend_c "Ssend_c" (*const c_void, i64, HandleWord, c_int, c_int, HandleWord);
    rsend "Rsend" (*const c_void, c_int, HandleWord, c_int, c_int, HandleWord);
    rsend_c "Rsend_c" (*const c_void, i64, HandleWord, c_int, c_int, HandleWord);
    recv "Recv" (*mut c_void, c_int, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    recv_c "Recv_c" (*mut c_void, i64, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    sendrecv "Sendrecv"
        (*const c_void, c_int, HandleWord, c_int, c_int, *mut c_void, c_int, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    sendrecv_c "Sendrecv_c"
        (*const c_void, i64, HandleWord, c_int, c_int, *mut c_void, i64, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    sendrecv_replace "Sendrecv_replace"
        (*mut c_void, c_int, HandleWord, c_int, c_int, c_int, c_int, HandleWord, *mut c_void);
    sendrecv_replace_c "Sendrecv_replace_c"
        (*mut c_void, i64, HandleWord, c_int, c_int, c_int, c_int, HandleWord, *mut c_void);
    mrecv "Mrecv" (*mut c_void, c_int, HandleWord, *mut c_void, *mut c_void);
    mrecv_c "Mrecv_c" (*mut c_void, i64, HandleWord, *mut c_void, *mut c_void);
    isend "Isend" (*const c_void, c_int, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    isend_c "Isend_c" (*const c_void, i64, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    issend "Issend" (*const c_void, c_int, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    issend_c "Issend_c" (*const c_void, i64, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    irsend "Irsend" (*const c_void, c_int, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    irsend_c "Irsend_c" (*const c_void, i64, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    send_init "Send_init" (*const c_void, c_int, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    send_init_c "Send_init_c" (*const c_void, i64, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    ssend_init "Ssend_init" (*const c_void, c_int, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    ssend_init_c "Ssend_init_c" (*const c_void, i64, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    rsend_init "Rsend_init" (*const c_void, c_int, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    rsend_init_c "Rsend_init_c" (*const c_void, i64, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    irecv "Irecv" (*mut c_void, c_int, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    irecv_c "Irecv_c" (*mut c_void, i64, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    recv_init "Recv_init" (*mut c_void, c_int, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    recv_init_c "Recv_init_c" (*mut c_void, i64, HandleWord, c_int, c_int, HandleWord, *mut c_void);
    imrecv "Imrecv" (*mut c_void, c_int, HandleWord, *mut c_void, *mut c_void);
    imrecv_c "Imrecv_c" (*mut c_void, i64, HandleWord, *mut c_void, *mut c_void);
    start "Start" (*mut c_void);
    startall "Startall" (c_int, *mut c_void);
    wait "Wait" (*mut c_void, *mut c_void);
    test "Test" (*mut c_void, *mut c_int, *mut c_void);
    waitany "Waitany" (c_int, *mut c_void, *mut c_int, *mut c_void);
    testany "Testany" (c_int, *mut c_void, *mut c_int, *mut c_int, *mut c_void);
    waitall "Waitall" (c_int, *mut c_void, *mut c_void);
    testall "Testall" (c_int, *mut c_void, *mut c_int, *mut c_void);
    waitsome "Waitsome" (c_int, *mut c_void, *mut c_int, *mut c_int, *mut c_void);
    testsome "Testsome" (c_int, *mut c_void, *mut c_int, *mut c_int, *mut c_void);
    request_get_status "Request_get_status" (HandleWord, *mut c_int, *mut c_void);
    request_get_status_any "Request_get_status_any" (c_int, *mut c_void, *mut c_int, *mut c_int, *mut c_void);
    request_get_status_all "Request_get_status_all" (c_int, *mut c_void, *mut c_int, *mut c_void);
    request_get_status_some "Request_get_status_some" (c_int, *mut c_void, *mut c_int, *mut c_int, *mut c_void);
    request_free "Request_free" (*mut c_void);
    cancel "Cancel" (*mut c_void);
    test_cancelled "Test_cancelled" (*const c_void, *mut c_int);
    get_count "Get_count" (*const c_void, HandleWord, *mut c_int);
    get_count_c "Get_count_c" (*const c_void, HandleWord, *mut i64);
    get_elements_x "Get_elements_x" (*const c_void, HandleWord, *mut i64);
    status_set_elements "Status_set_elements" (*mut c_void, HandleWord, c_int);
    status_set_elements_x "Status_set_elements_x" (*mut c_void, HandleWord, i64);
    pack_size "Pack_size" (c_int, HandleWord, HandleWord, *mut c_int);
    error_class "Error_class" (c_int, *mut c_int);
    cvar_get_num "T_cvar_get_num" (*mut c_int);
    cvar_get_info "T_cvar_get_info"
        (c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_void, *mut c_void, *mut c_char, *mut c_int, *mut c_int, *mut c_int);
    cvar_get_index "T_cvar_get_index" (*const c_char, *mut c_int);
    cvar_handle_alloc "T_cvar_handle_alloc" (c_int, *mut c_void, *mut c_void, *mut c_int);
    cvar_handle_free "T_cvar_handle_free" (*mut c_void);
    cvar_read "T_cvar_read" (*mut c_void, *mut c_void);
    cvar_write "T_cvar_write" (*mut c_void, *const c_void);
    t_finalize "T_finalize" ();
    enum_get_info "T_enum_get_info" (*mut c_void, *mut c_int, *mut c_char, *mut c_int);
    enum_get_item "T_enum_get_item" (*mut c_void, c_int, *mut c_int, *mut c_char, *mut c_int);
    pvar_get_num "T_pvar_get_num" (*mut c_int);
    pvar_get_info "T_pvar_get_info"
        (c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_int, *mut c_void, *mut c_void, *mut c_char, *mut c_int,
         *mut c_int, *mut c_int, *mut c_int, *mut c_int);
    pvar_get_index "T_pvar_get_index" (*const c_char, c_int, *mut c_int);
    pvar_session_create "T_pvar_session_create" (*mut c_void);
    pvar_session_free "T_pvar_session_free" (*mut c_void);
    pvar_handle_alloc "T_pvar_handle_alloc" (*mut c_void, c_int, *mut c_void, *mut c_void, *mut c_int);
    pvar_handle_free "T_pvar_handle_free" (*mut c_void, *mut c_void);
    pvar_start "T_pvar_start" (*mut c_void, *mut c_void);
    pvar_stop "T_pvar_stop" (*mut c_void, *mut c_void);
    pvar_read "T_pvar_read" (*mut c_void, *mut c_void, *mut c_void);
    pvar_write "T_pvar_write" (*mut c_void, *mut c_void, *const c_void);
    pvar_reset "T_pvar_reset" (*mut c_void, *mut c_void);
    pvar_readreset "T_pvar_readreset" (*mut c_void, *mut c_void, *mut c_void);
    category_get_num "T_category_get_num" (*mut c_int);
    category_get_info "T_category_get_info"
        (c_int, *mut c_char, *mut c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
    category_get_index "T_category_get_index" (*const c_char, *mut c_int);
    category_get_cvars "T_category_get_cvars" (c_int, c_int, *mut c_int);
    category_get_pvars "T_category_get_pvars" (c_int, c_int, *mut c_int);
    category_get_categories "T_category_get_categories" (c_int, c_int, *mut c_int);
    category_get_num_events "T_category_get_num_events" (c_int, *mut c_int);
    category_get_events "T_category_get_events" (c_int, c_int, *mut c_int);
}

impl Functions {
    /// Whether all that conversion needs is there.
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
            && self.pack.is_some()
            && self.unpack.is_some()
    }
}

/// The host.
pub(crate) struct Host {
    pub(crate) f: Functions,
    /// The ABI; `None` if the host is not known, and then nothing is converted.
    pub(crate) abi: Option<&'static Abi>,
    /// Bits of a word that hold a handle; 0 without an ABI.
    pub(crate) mask: u64,
    /// `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
    pub(crate) world: u64,
    pub(crate) myself: u64,
    /// `MPI_DATATYPE_NULL`.
    pub(crate) type_null: u64,
    /// `MPI_REQUEST_NULL` and `MPI_PACKED`.
    pub(crate) request_null: u64,
    pub(crate) packed: u64,
    /// First line of `MPI_Get_library_version`.
    pub(crate) version: String,
    /// Handles of the named types, sorted.
    named: Vec<(u64, Named)>,
    /// The scope in which it was found, for symbols asked later.
    scope: usize,
}

static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());

/// The host, found by the first call; `None` while no MPI library is loaded.
#[inline]
pub(crate) fn host() -> Option<&'static Host> {
    let known = HOST.load(Ordering::Acquire);
    // SAFETY: null, or the host that `find` keeps for good.
    unsafe { known.as_ref() }.or_else(find)
}

#[cold]
fn find() -> Option<&'static Host> {
    static FOUND: Awaited<Host> = Awaited::new();
    let scope = find_scope(c"PMPI_Type_commit")?;
    let host = FOUND.get_or_init(|| Host::in_scope(scope));
    HOST.store(std::ptr::from_ref(host).cast_mut(), Ordering::Release);
    Some(host)
}

impl Host {
    fn in_scope(scope: *mut c_void) -> Host {
        let f = Functions::find(&|name| symbol(scope, name));
        let version = version(&f);
        let mut abi = detect(&f, scope, &version);
        if abi.is_some() && !f.complete() {
            warn(format_args!("this MPI lacks functions that conversion needs; nothing is converted"));
            abi = None;
        }
        let mut host = Host {
            f,
            abi,
            mask: abi.map_or(0, |a| a.handle_mask),
            world: abi.map_or(0, |a| a.world),
            myself: abi.map_or(0, |a| a.myself),
            type_null: abi.map_or(0, |a| a.type_null),
            request_null: abi.map_or(0, |a| a.request_null),
            packed: 0,
            version,
            named: Vec::new(),
            scope: scope.addr(),
        };
        if let Some(abi) = abi {
            host.named.extend(abi.named().filter(|&(handle, _)| handle != 0));
            for (name, named) in abi.named_symbols() {
                let handle = host.data(&format!("ompi_mpi_{name}"));
                host.named.extend((handle != 0).then_some((handle, named)));
            }
            host.named.sort_unstable_by_key(|&(handle, _)| handle);
            if !abi.world_symbol.is_empty() {
                host.world = host.data(abi.world_symbol);
                host.myself = host.data(abi.self_symbol);
                host.type_null = host.data(abi.type_null_symbol);
                host.request_null = host.data(abi.request_null_symbol);
            }
            host.packed = host.handle(Named::Packed).unwrap_or(0);
        }
        host
    }

    /// The named type of a handle.
    pub(crate) fn named(&self, handle: u64) -> Option<Named> {
        let at = self.named.binary_search_by_key(&handle, |&(h, _)| h).ok()?;
        Some(self.named[at].1)
    }

    /// The functions that tell how a datatype was made.
    pub(crate) fn queries(&self, abi: &'static Abi) -> Queries {
        let f = &self.f;
        let (envelope, envelope_c) = (f.envelope, f.envelope_c);
        Queries { abi, envelope, envelope_c, contents: f.contents, contents_c: f.contents_c }
    }

    /// The handle of a named type.
    pub(crate) fn handle(&self, named: Named) -> Option<u64> {
        self.named.iter().find(|&&(_, n)| n == named).map(|&(h, _)| h)
    }

    /// Address of an object of the host that the program may have a copy of (a copy relocation), or 0: the copy is asked first.
    pub(crate) fn data(&self, name: &str) -> u64 {
        let Ok(name) = CString::new(name) else { return 0 };
        let global = symbol(libc::RTLD_DEFAULT, &name);
        let found = if global.is_null() { symbol(self.scope as *mut c_void, &name) } else { global };
        found.addr() as u64
    }

    /// A function of the host or of its Fortran library by name, or null.
    pub(crate) fn function(&self, name: &CStr) -> *mut c_void {
        let here = symbol(self.scope as *mut c_void, name);
        if !here.is_null() {
            return here;
        }
        find_scope(name).map_or(std::ptr::null_mut(), |scope| symbol(scope, name))
    }

    pub(crate) fn is_open_mpi(&self) -> bool {
        self.abi.is_some_and(|a| a.flavour == Flavour::OpenMpi)
    }
}

/// Which ABI the host has; says so once where it is none that we know.
fn detect(f: &Functions, scope: *mut c_void, version: &str) -> Option<&'static Abi> {
    let abi_version = f.abi_version.and_then(|abi_version| {
        let (mut major, mut minor) = (-1, -1);
        // SAFETY: two integers to write to; callable at any time (MPI 5.0, 20.1).
        (unsafe { abi_version(&raw mut major, &raw mut minor) } == 0).then_some((major, minor))
    });
    let file = object_of(symbol(scope, c"PMPI_Pack"));
    let has_ompi_int = !symbol(scope, c"ompi_mpi_int").is_null();
    match Abi::of(&Signs { has_ompi_int, abi_version, file: &file, version }) {
        Ok(abi) => Some(abi),
        Err(what) => {
            warn(format_args!("{what}; nothing is converted"));
            None
        }
    }
}

fn version(f: &Functions) -> String {
    let Some(library_version) = f.library_version else { return "no version".to_owned() };
    let mut text = vec![0u8; 16384];
    let mut len = 0;
    // SAFETY: the buffer is longer than any host's MPI_MAX_LIBRARY_VERSION_STRING (8192); callable at any time.
    if unsafe { library_version(text.as_mut_ptr().cast(), &raw mut len) } != 0 {
        return "no version".to_owned();
    }
    let text = CStr::from_bytes_until_nul(&text).map_or(String::new(), |t| t.to_string_lossy().into_owned());
    let words: Vec<&str> = text.lines().next().unwrap_or("").split_whitespace().collect();
    words.join(" ")
}

fn symbol(scope: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a scope from dlopen or RTLD_DEFAULT, and a C string.
    unsafe { libc::dlsym(scope, name.as_ptr()) }
}

/// The file of the object that holds an address, or nothing.
pub(crate) fn object_of(address: *const c_void) -> String {
    // SAFETY: all zero is a valid Dl_info, which dladdr fills in.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr takes any address.
    if unsafe { libc::dladdr(address, &raw mut info) } == 0 || info.dli_fname.is_null() {
        return String::new();
    }
    // SAFETY: dladdr gave a C string that lives as long as the object.
    unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned()
}

/// A scope in which `name` is found: that of the caller, the global one, or that of any loaded object.
fn find_scope(name: &CStr) -> Option<*mut c_void> {
    let ours = object_of(find_scope as *const c_void);
    if let Some(caller) = caller(&ours) {
        let scope = open_loaded(&caller);
        if !scope.is_null() && !symbol(scope, name).is_null() {
            return Some(scope);
        }
    }
    if !symbol(libc::RTLD_DEFAULT, name).is_null() {
        return Some(libc::RTLD_DEFAULT);
    }
    loaded_objects().iter().filter(|object| **object != ours).find_map(|object| {
        let scope = open_loaded(object);
        (!scope.is_null() && !symbol(scope, name).is_null()).then_some(scope)
    })
}

/// A function of some other loaded object that has the name of a wrapper.
pub(crate) fn behind(name: &str) -> *mut c_void {
    let Ok(name) = CString::new(name) else { return std::ptr::null_mut() };
    let ours = object_of(find_scope as *const c_void);
    let others = loaded_objects().into_iter().filter(|object| *object != ours);
    let found = others.map(|object| symbol(open_loaded(&object), &name));
    found.into_iter().find(|f| !f.is_null() && object_of(*f) != ours).unwrap_or(std::ptr::null_mut())
}

/// Whether the program's calls of a function come here.
pub(crate) fn ours(name: &CStr) -> bool {
    object_of(symbol(libc::RTLD_DEFAULT, name)) == object_of(find_scope as *const c_void)
}

/// Whether a loaded object or what it depends on has a function of this name.
pub(crate) fn has(object: &str, name: &CStr) -> bool {
    let scope = open_loaded(object);
    !scope.is_null() && !symbol(scope, name).is_null()
}

/// The object that called into us: the first one on the stack that is not this library.
fn caller(ours: &str) -> Option<String> {
    let mut frames = [std::ptr::null_mut(); 64];
    // SAFETY: an array with room for that many addresses.
    let n = unsafe { libc::backtrace(frames.as_mut_ptr(), frames.len() as c_int) };
    let stack = frames.get(..n.max(0) as usize)?;
    stack.iter().map(|&address| object_of(address)).find(|object| object != ours && !object.is_empty())
}

/// A loaded object by its file name, without loading anything. Never closed: it is the host or on the way to it.
fn open_loaded(object: &str) -> *mut c_void {
    let Ok(name) = CString::new(object) else { return std::ptr::null_mut() };
    // SAFETY: a C string; RTLD_NOLOAD runs no code of the object.
    unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) }
}

/// File names of all loaded objects.
pub(crate) fn loaded_objects() -> Vec<String> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _size: usize, names: *mut c_void) -> c_int {
        // SAFETY: `names` is the vector below, and the loader's record is valid during the call.
        unsafe {
            let names = &mut *names.cast::<Vec<String>>();
            let name = (*info).dlpi_name;
            if !name.is_null() && *name != 0 {
                names.push(CStr::from_ptr(name).to_string_lossy().into_owned());
            }
        }
        0
    }
    let mut names: Vec<String> = Vec::new();
    // SAFETY: the callback takes the vector, and is called only during this call.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut names).cast()) };
    names
}

/// How often objects were loaded so far: cheap, to notice that one more was.
pub(crate) fn loads() -> u64 {
    unsafe extern "C" fn read(info: *mut libc::dl_phdr_info, _size: usize, adds: *mut c_void) -> c_int {
        // SAFETY: `adds` is the number below, and the loader's record is valid during the call.
        unsafe { *adds.cast::<u64>() = (*info).dlpi_adds };
        1
    }
    let mut adds = 0u64;
    // SAFETY: as above.
    unsafe { libc::dl_iterate_phdr(Some(read), (&raw mut adds).cast()) };
    adds
}
