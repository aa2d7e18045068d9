//! The MPI library under test. This module loads, identifies and initializes it. The methods of
//! [`Library`] call its functions with arguments of the right lengths and types.
//!
//! The functions are looked up by their `MPI_` names, as programs call them, so a library that
//! wraps another one is tested too. Handles are passed as 64-bit words (see [`ddtc_hosts::abi`]).
//! Two invariants hold: each [`Handle`] came from this library, and each buffer holds every byte
//! that its datatype maps. If the library violates its own contract, the worst consequence is the
//! end of a worker process, which is why workers are separate processes.
#![allow(unsafe_code)] // Functions of a library under test: there is no other way to call them.

mod absent;
mod functions;
mod misuse;
mod objects;
mod queries;
mod transfers;

use std::error::Error;
use std::ffi::c_int;
use std::path::Path;

use ddtc::internal::datatype::Named;
use ddtc_hosts::abi::Abi;
use ddtc_hosts::abi::queries::Queries;

use ddtc_hosts::loaded::Loaded;
use functions::Functions;
pub(crate) use misuse::MISUSES;
pub(crate) use objects::CallbackCounts;
pub(crate) use queries::Bounds;
pub(crate) use transfers::{Area, Received};

/// A handle of the library. Only the bits that the library's ABI uses are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle(u64);

/// Error of a call: the name of the call, and the class of the error that it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) call: &'static str,
    pub(crate) class: c_int,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} returns an error of class {}", self.call, self.class)
    }
}

impl Refusal {
    /// Returns what the standard requires in place of this refusal, as text: that the call returns
    /// `MPI_SUCCESS`.
    pub(crate) fn refuted(&self) -> String {
        format!("{} returns MPI_SUCCESS", self.call)
    }
}

/// Result of a call of the library.
pub(crate) type Answer<T> = Result<T, Refusal>;

/// Error class for a call or type that the library does not have.
pub(crate) const ABSENT: c_int = c_int::MIN;

/// A library that is loaded and initialized.
#[derive(Debug)]
pub(crate) struct Library {
    f: Functions,
    abi: &'static Abi,
    /// First line of the text that `MPI_Get_library_version` gives, with the device appended for
    /// MPICH.
    version: String,
    /// Handles of the named types, indexed by `Named as usize`. None for types that the library
    /// does not have.
    named: Vec<Option<Handle>>,
    world: u64,
    myself: u64,
    type_null: u64,
    info_null: u64,
    op_sum: u64,
    errors_return: u64,
    /// Whether the process survives a request for a Fortran kind that the library lacks. Some
    /// libraries end the process.
    has_kinds: bool,
}

impl Library {
    /// Loads the library at `path` and initializes it as a single process.
    ///
    /// # Errors
    /// Returns the loader's message, or an error if the file is no MPI library, if its ABI or
    /// version cannot be determined, or if MPI does not start.
    pub(crate) fn open(path: &Path) -> Result<Library, Box<dyn Error>> {
        let shown = path.display();
        let loaded = Loaded::open(path).map_err(|why| format!("--mpi {shown}: cannot be loaded: {why}"))?;
        let f = Functions::find(&|name| loaded.symbol(name));
        if let Some(absent) = f.absent() {
            return Err(format!("--mpi {shown}: is no MPI library: it has no MPI_{absent}").into());
        }
        let abi = loaded.abi().map_err(|what| format!("--mpi {shown}: {what}"))?;
        let mut named = vec![None; Named::ALL.len()];
        for (n, handle) in loaded.named(abi) {
            named[n as usize] = Some(Handle(handle));
        }
        let mut library = Library {
            f,
            abi,
            version: loaded.version()?.to_owned(),
            named,
            world: loaded.handle(abi.world, abi.world_symbol),
            myself: loaded.handle(abi.myself, abi.self_symbol),
            type_null: loaded.handle(abi.type_null, abi.type_null_symbol),
            info_null: loaded.handle(abi.info_null, abi.info_null_symbol),
            op_sum: loaded.handle(abi.op_sum, abi.op_sum_symbol),
            errors_return: loaded.handle(abi.errors_return, abi.errors_return_symbol),
            has_kinds: false,
        };
        library.start().map_err(|what| format!("--mpi {shown}: does not start: {what}"))?;
        library.drop_absent_types();
        library.has_kinds = library.survives_kinds();
        Ok(library)
    }

    fn start(&self) -> Result<(), String> {
        let init = self.f.init.ok_or("there is no MPI_Init")?;
        // SAFETY: `init` is the library's MPI_Init, with its C type (see `functions`). The MPI
        // standard permits null pointers in place of a program's arguments. `open` calls this
        // function once for each library that it loads.
        let code = unsafe { init(std::ptr::null_mut(), std::ptr::null_mut()) };
        if code != 0 {
            return Err(format!("MPI_Init returns {code}"));
        }
        if let Some(set) = self.f.set_errhandler {
            for communicator in [self.myself, self.world] {
                // SAFETY: `set` is the library's MPI_Comm_set_errhandler, MPI is initialized, and
                // all three arguments are predefined handles of this library.
                unsafe { set(communicator, self.errors_return) };
            }
        }
        Ok(())
    }

    /// Calls `MPI_Finalize`, if the library has it.
    pub(crate) fn finalize(&self) {
        if let Some(finalize) = self.f.finalize {
            // SAFETY: `finalize` is the library's MPI_Finalize. `open` called MPI_Init
            // successfully, the worker calls this method once, as its last call of the library, and
            // no request is pending then, since each method that starts a request waits for it.
            unsafe { finalize() };
        }
    }

    /// Returns the ABI of the library.
    pub(crate) fn abi(&self) -> &'static Abi {
        self.abi
    }

    /// Returns the first line of the text that `MPI_Get_library_version` gives, with the device
    /// appended for MPICH.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the handle of a named type, or none if the library has no such type.
    pub(crate) fn named(&self, named: Named) -> Option<Handle> {
        self.named[named as usize]
    }

    /// Returns true if the library has the large-count variants of the constructors, such as
    /// `MPI_Type_contiguous_c`.
    pub(crate) fn has_large_counts(&self) -> bool {
        self.f.contiguous_c.is_some() && self.f.envelope_c.is_some() && self.f.contents_c.is_some()
    }

    /// Returns true if the library has `MPI_Type_get_value_index`.
    pub(crate) fn has_value_index(&self) -> bool {
        self.f.value_index.is_some()
    }

    /// Returns true if asking the library for a Fortran kind never ends the process.
    pub(crate) fn has_kinds(&self) -> bool {
        self.has_kinds
    }

    // Returns the library's functions that return the envelope and the contents of a datatype.
    fn queries(&self) -> Queries {
        let f = &self.f;
        Queries {
            abi: self.abi,
            envelope: f.envelope,
            envelope_c: f.envelope_c,
            contents: f.contents,
            contents_c: f.contents_c,
        }
    }

    /// Turns `code`, which the MPI function `call` returned, into a result. Code 0 is success. For
    /// other codes returns an error with the name of the function and the error class of the code.
    fn done(&self, call: &'static str, code: c_int) -> Answer<()> {
        if code == 0 { Ok(()) } else { Err(Refusal { call, class: self.class(code) }) }
    }

    fn class(&self, code: c_int) -> c_int {
        let mut class = code;
        if let Some(error_class) = self.f.error_class {
            // SAFETY: `error_class` is the library's MPI_Error_class, `code` is an error code that
            // the library returned, and `class` is an integer to which it may write.
            unsafe { error_class(code, &raw mut class) };
        }
        class
    }
}

// Returns the error for a call or type that the library does not have.
fn absent(call: &'static str) -> Refusal {
    Refusal { call, class: ABSENT }
}

/// Redirects the standard output of the process to its standard error.
///
/// # Errors
/// Returns the system's error.
pub(crate) fn silence() -> std::io::Result<()> {
    // SAFETY: dup2 takes any two numbers; it changes no memory of the process. Nothing in this
    // process owns descriptor 1 exclusively.
    match unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
