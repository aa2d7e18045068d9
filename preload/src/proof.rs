//! Proofs by `ddtc tune` ([`ddtc_hosts::proof`]) for an MPI library that the matrix does not know.
//!
//! While the MPI library's record is made, only the existence of the files is looked at. They are
//! read when a message would be converted for the first time, because the network libraries, which
//! are part of the key, may be loaded late. Until then the kinds of calls that a proof can permit
//! count as permitted, so that the policy of this process includes them.
//!
//! The two functions at the end are for the program with which `ddtc tune` proves.

use std::ffi::{c_char, c_int};

use ddtc::internal::files;
use ddtc_hosts::proof::{self, Grant, Key};
use ddtc_hosts::transport::{Transports, in_words};
use ddtc_hosts::tried::Kinds;

use crate::guard::guard;
use crate::host::{self, Host};
use crate::loader::identities;
use crate::warn::warn;

/// Beginnings of the names of libraries that decide how messages travel: of networks, of
/// collective calls (HCOLL, UCC, SHARP), of memory between processes (xpmem), of ParaStation
/// (pscom), of datatypes (yaksa of MPICH, open-pal of Open MPI), and of Open MPI's plugins.
const NETWORKS: [&str; 21] = [
    "libfabric",
    "libucp",
    "libuct",
    "libucs",
    "libpsm",
    "libcxi",
    "libefa",
    "libibverbs",
    "libpami",
    "libhcoll",
    "libucc",
    "libsharp",
    "libxpmem",
    "libpscom",
    "libyaksa",
    "libopen-pal",
    "mca_coll_",
    "mca_pml_",
    "mca_btl_",
    "mca_mtl_",
    "mca_smsc_",
];
/// Part of the names of libfabric's providers that are libraries of their own.
const PROVIDER: &str = "-fi.so";

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns what a proof of this process's MPI library holds for.
fn key(host: &Host) -> Key {
    let is_network = |object: &str| {
        let name = object.rsplit('/').next().unwrap_or(object);
        NETWORKS.iter().any(|start| name.starts_with(start)) || name.contains(PROVIDER)
    };
    let objects = identities(|object| object == host.object() || is_network(object));
    let transport = Transports::determine(&host.version, variable).inside;
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    let variables: Vec<_> = std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
    Key::new(&host.version, &objects.join(" "), &in_words(transport, &variables))
}

/// Reads the proofs of the MPI library and restricts what may be converted to what they permit, if
/// there are files that may have one and they were not read before. The world must be initialized
/// and not finalized.
pub(crate) fn read(host: &Host) {
    if !host.proofs.is_empty() {
        host.grant.get_or_init(|| find(host));
        host.kinds.restrict(host.allowed());
    }
}

/// Returns what the proofs in the files permit to this job. If a file cannot be used, writes one
/// line to standard error and permits nothing, because that file might refuse what another file
/// permits.
///
/// The world must be initialized and not finalized.
fn find(host: &Host) -> Grant {
    let mut proofs = Vec::new();
    for file in &host.proofs {
        let read = files::read_own(file).map_err(|error| error.to_string());
        match read.and_then(|text| proof::parse(&text)) {
            Ok(found) => proofs.extend(found),
            Err(error) => {
                warn(format_args!(
                    "{}: {error}; the MPI library is treated as one that was not tried",
                    file.display()
                ));
                return Grant {
                    permitted: Kinds::NONE,
                    refused: Kinds::NONE,
                    words: format!("only MPI_Pack and MPI_Unpack: {}: {error}", file.display()),
                };
            }
        }
    }
    Grant::from_proofs(&proofs, &key(host), host.nodes())
}

/// Writes the key of proofs of this process's MPI library to `text`, as a C string of lines.
/// Returns the length of the string with its end, or 0 if `text` is null or too short, or if there
/// is no MPI library with a known ABI.
///
/// # Safety
/// `text` must be null or writable for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ddtc_proof_key(text: *mut c_char, room: c_int) -> c_int {
    let made = guard(|| host::host().filter(|host| host.abi.is_some()).map(|host| key(host).to_string()));
    let Some(key) = made.flatten() else { return 0 };
    let length = key.len() + 1;
    if text.is_null() || usize::try_from(room).is_ok_and(|room| room < length) || room < 0 {
        return 0;
    }
    // SAFETY: `text` is not null and has room for `length` bytes, which are those of the key and a
    // zero.
    unsafe {
        std::ptr::copy_nonoverlapping(key.as_ptr().cast(), text, key.len());
        text.add(key.len()).write(0);
    }
    length as c_int
}
