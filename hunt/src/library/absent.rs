//! Types that the library was built without, and that some libraries end a process for that asks: named types, which have handles but no sizes,
//! and kinds of Fortran.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};

use ddtc::internal::datatype::{Combiner, Named};

use super::{Handle, Library};

/// Size of a type that the library does not have.
const NONE: i64 = -1;
/// Decimal digits that no integer has.
const DIGITS: i64 = 1000;

impl Library {
    /// Forgets the named types that the library has no size for, and markers.
    pub(super) fn drop_absent_types(&mut self) {
        // MPICH has handles for types that the compiler lacked; they are MPI_DATATYPE_NULL or have no size.
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

    /// Says whether the library lives on when it is asked for a kind that it lacks: which these are is not known, and asking is erroneous (MPI 5.0,
    /// 19.1.5), so a library that ends its process is asked for none.
    pub(super) fn survives_kinds(&self) -> bool {
        let ask = || self.construct(&Combiner::F90Integer { r: DIGITS }, false, &[]).map_or(NONE, |_| 0);
        elsewhere(&mut std::iter::once_with(ask)).is_none_or(|told| told.len() == 1)
    }

    /// Sizes in bytes, asked in other processes: one that dies has none of what it was asked, and the next goes on behind it.
    fn sizes(&self, of: &[(Named, Handle)]) -> Vec<i64> {
        // MPICH reads the size of a type from its handle, also of one that came with a later version; such a type has no name, or has become
        // an extension's. A library that names none of its types is believed.
        let is_named =
            |handle| self.name(handle).is_ok_and(|name| !name.is_empty() && !name.starts_with("MPIX_"));
        let names = self.named(Named::Int).is_some_and(is_named);
        let size = |&(_, handle): &(Named, Handle)| match names && !is_named(handle) {
            true => NONE,
            false => self.size(handle).unwrap_or(NONE),
        };
        let mut sizes = Vec::new();
        while let Some(rest) = of.get(sizes.len()..).filter(|rest| !rest.is_empty()) {
            let Some(told) = elsewhere(&mut rest.iter().map(size)) else {
                // No process to be had: what the library does now, it does here.
                sizes.extend(rest.iter().map(size));
                break;
            };
            let died = told.len() < rest.len();
            sizes.extend(told);
            sizes.extend(died.then_some(NONE));
        }
        sizes
    }
}

/// Returns `values` as another process computes them, as far as it comes; none where the system gives no process.
fn elsewhere(values: &mut dyn Iterator<Item = i64>) -> Option<Vec<i64>> {
    let mut ends = [-1; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return None;
    }
    // SAFETY: both were just opened and belong to nobody else.
    let [from, to] = ends.map(|end| File::from(unsafe { OwnedFd::from_raw_fd(end) }));
    // SAFETY: the new process has this thread alone. It asks the library, as this thread would, writes to a pipe, and ends without unwinding
    // or running anything at its exit. A lock that another thread held here would make it wait, and the hunter ends who waits.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            for value in values {
                if (&to).write_all(&value.to_ne_bytes()).is_err() {
                    break;
                }
            }
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(to);
            let mut bytes = Vec::new();
            let _ = (&from).read_to_end(&mut bytes);
            // SAFETY: a child of this process that nobody else waits for; no status is asked for.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            Some(bytes.as_chunks().0.iter().map(|&word| i64::from_ne_bytes(word)).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_dies_has_told_what_came_before() {
        assert_eq!(elsewhere(&mut [4, NONE, 8].into_iter()), Some(vec![4, NONE, 8]));
        let dies = |n: i64| if n == 3 { std::process::abort() } else { n };
        assert_eq!(elsewhere(&mut (1..9).map(dies)), Some(vec![1, 2]));
    }
}
