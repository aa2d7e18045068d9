//! The MPI library under test: loaded, told apart, started, and its functions behind calls that check what they are given.
//!
//! Names are `MPI_`, those that a program calls, so that what stands before a library's functions is asked too. Handles are 64-bit words (see
//! [`ddtc_hosts::abi`]). Invariants: a [`Handle`] came from this library; buffers hold every byte that the datatype maps. What the library does
//! beyond its own contract ends a worker process at worst, which is what workers are for.
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

/// A handle of the library, in the bits of a register that its ABI uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle(u64);

/// A call that returned an error: its name and the error's class.
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

/// Result of a call of the library.
pub(crate) type Answer<T> = Result<T, Refusal>;

/// The class of a call that the library does not have.
pub(crate) const ABSENT: c_int = c_int::MIN;

/// A loaded library, initialized.
#[derive(Debug)]
pub(crate) struct Library {
    f: Functions,
    abi: &'static Abi,
    /// First line of `MPI_Get_library_version`.
    version: String,
    /// Handles of the named types, by `Named as usize`.
    named: Vec<Option<Handle>>,
    world: u64,
    myself: u64,
    type_null: u64,
    info_null: u64,
    op_sum: u64,
    errors_return: u64,
    /// Whether a kind of Fortran that the library lacks is an error, and not the end of the process.
    has_kinds: bool,
}

impl Library {
    /// Loads the library at `path` and initializes it as a process of its own.
    ///
    /// # Errors
    /// What the loader says; a file that is no MPI library; an MPI that does not start.
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
        // SAFETY: MPI_Init takes null pointers for a program's arguments.
        let code = unsafe { init(std::ptr::null_mut(), std::ptr::null_mut()) };
        if code != 0 {
            return Err(format!("MPI_Init returns {code}"));
        }
        if let Some(set) = self.f.set_errhandler {
            for communicator in [self.myself, self.world] {
                // SAFETY: predefined handles.
                unsafe { set(communicator, self.errors_return) };
            }
        }
        Ok(())
    }

    /// `MPI_Finalize`.
    pub(crate) fn finalize(&self) {
        if let Some(finalize) = self.f.finalize {
            // SAFETY: after a successful MPI_Init, once, with nothing under way.
            unsafe { finalize() };
        }
    }

    /// Returns the ABI.
    pub(crate) fn abi(&self) -> &'static Abi {
        self.abi
    }

    /// First line of `MPI_Get_library_version`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the handle of a named type; none where the library has no such type.
    pub(crate) fn named(&self, named: Named) -> Option<Handle> {
        self.named[named as usize]
    }

    /// Says whether the library has the large-count constructors.
    pub(crate) fn has_large_counts(&self) -> bool {
        self.f.contiguous_c.is_some() && self.f.envelope_c.is_some() && self.f.contents_c.is_some()
    }

    /// Says whether the library has `MPI_Type_get_value_index`.
    pub(crate) fn has_value_index(&self) -> bool {
        self.f.value_index.is_some()
    }

    /// Says whether the library can be asked for kinds of Fortran.
    pub(crate) fn has_kinds(&self) -> bool {
        self.has_kinds
    }

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

    /// Success, or the class of the error.
    fn done(&self, call: &'static str, code: c_int) -> Answer<()> {
        if code == 0 { Ok(()) } else { Err(Refusal { call, class: self.class(code) }) }
    }

    fn class(&self, code: c_int) -> c_int {
        let mut class = code;
        if let Some(error_class) = self.f.error_class {
            // SAFETY: a code that the library returned, and an integer to write to.
            unsafe { error_class(code, &raw mut class) };
        }
        class
    }
}

fn absent(call: &'static str) -> Refusal {
    Refusal { call, class: ABSENT }
}

/// Sends what the process prints from now on to standard error.
///
/// # Errors
/// What the system says.
pub(crate) fn silence() -> std::io::Result<()> {
    // SAFETY: both are open descriptors of the process.
    match unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
