//! Detection of types that the library lacks: named types that have handles but no sizes, and
//! Fortran kinds. Some libraries end a process that asks for such a type.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};

use ddtc::internal::datatype::{Combiner, Named};

use super::{Handle, Library};

/// Value that takes the place of a size if the library does not have the type.
const NONE: i64 = -1;
/// A number of decimal digits that no integer type has.
const DIGITS: i64 = 1000;

impl Library {
    /// Removes the handles of all markers, and of the named types for which the library has no size
    /// or a size that differs from ddtc's.
    pub(super) fn drop_absent_types(&mut self) {
        // MPICH has handles even for types that the compiler lacked when MPICH was built. These
        // handles are MPI_DATATYPE_NULL, or their types have no size.
        let handles: Vec<(Named, Handle)> = Named::ALL
            .iter()
            .filter(|n| !n.is_marker())
            .filter_map(|&n| Some((n, self.named(n)?)))
            .filter(|(_, handle)| handle.0 != self.type_null)
            .collect();
        let sizes = self.sizes(&handles);
        self.named.fill(None);
        for ((n, handle), size) in handles.into_iter().zip(sizes) {
            if size == n.size() {
                self.named[n as usize] = Some(handle);
            }
        }
    }

    /// Returns true if the process survives a request for a Fortran kind that the library lacks. It
    /// is not known which kinds the library lacks, and a request for such a kind is erroneous (MPI
    /// 5.0, section 19.1.5). Therefore a library that ends the process is never asked for any kind.
    pub(super) fn survives_kinds(&self) -> bool {
        let ask = || self.construct(&Combiner::F90Integer { r: DIGITS }, false, &[]).map_or(NONE, |_| 0);
        elsewhere(&mut std::iter::once_with(ask)).is_none_or(|answers| answers.len() == 1)
    }

    /// Returns the sizes of types in bytes. Child processes ask the library for them, because some
    /// libraries end a process that asks for a type which they lack. If one of these processes
    /// dies, the type that it asked for last has no size, and a new process continues with the next
    /// type.
    fn sizes(&self, of: &[(Named, Handle)]) -> Vec<i64> {
        // MPICH reads the size of a type from its handle, even if the type exists only in a later
        // version of MPICH. Such a type has no name, or the name of an extension (MPIX_), so its
        // size does not count. If none of the library's types has a name, all sizes are accepted.
        let is_named =
            |handle| self.name(handle).is_ok_and(|name| !name.is_empty() && !name.starts_with("MPIX_"));
        let names = self.named(Named::Int).is_some_and(is_named);
        let size = |&(_, handle): &(Named, Handle)| match names && !is_named(handle) {
            true => NONE,
            false => self.size(handle).unwrap_or(NONE),
        };
        let mut sizes = Vec::new();
        while let Some(rest) = of.get(sizes.len()..).filter(|rest| !rest.is_empty()) {
            let Some(answers) = elsewhere(&mut rest.iter().map(size)) else {
                // No process could be created, so this process itself asks the library, even though
                // that may end it.
                sizes.extend(rest.iter().map(size));
                break;
            };
            let died = answers.len() < rest.len();
            sizes.extend(answers);
            sizes.extend(died.then_some(NONE));
        }
        sizes
    }
}

/// Returns `values`, which another process computes. If that process ends early, returns only the
/// values before the one that ended it. Returns none if the system can create no pipe or no
/// process.
fn elsewhere(values: &mut dyn Iterator<Item = i64>) -> Option<Vec<i64>> {
    let mut ends = [-1; 2];
    // SAFETY: `ends` has room for the two descriptors that pipe2 writes.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return None;
    }
    // SAFETY: pipe2 has just opened both descriptors, and nothing else owns them.
    let [from, to] = ends.map(|end| File::from(unsafe { OwnedFd::from_raw_fd(end) }));
    // SAFETY: the new process has only this thread. It asks the library, as this thread would,
    // writes to a pipe, and then ends without unwinding and without running exit handlers. If
    // another thread of this process held a lock at the time of the fork, the new process may wait
    // for it forever. The main process of the fuzzer then ends this worker, which hangs.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            for value in values {
                if (&to).write_all(&value.to_ne_bytes()).is_err() {
                    break;
                }
            }
            // SAFETY: _exit has no preconditions. It ends the new process at once.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(to);
            let mut bytes = Vec::new();
            let _ = (&from).read_to_end(&mut bytes);
            // SAFETY: `child` is a child of this process, and nothing else waits for it. A null
            // pointer is permitted, and means that no status is returned.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            Some(bytes.as_chunks().0.iter().map(|&word| i64::from_ne_bytes(word)).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_dies_has_sent_what_came_before() {
        assert_eq!(elsewhere(&mut [4, NONE, 8].into_iter()), Some(vec![4, NONE, 8]));
        let dies = |n: i64| if n == 3 { std::process::abort() } else { n };
        assert_eq!(elsewhere(&mut (1..9).map(dies)), Some(vec![1, 2]));
    }
}
