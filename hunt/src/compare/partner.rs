//! The partner of a datatype, which the other side of a transfer uses: a datatype of the same
//! values in the same order, stored without gaps.

use ddtc::internal::datatype::{Combiner, Datatype, Named};
use ddtc::internal::methods::*;

use crate::library::{Area, Handle, Library};
use crate::subject::Map;

/// Splits the elements of a map, in packing order, into runs of the same basic type. Each run has
/// the offset of its first byte in the stream, its number of elements, and its type.
fn runs(map: &Map) -> Vec<(usize, i64, Named)> {
    let mut runs: Vec<(usize, i64, Named)> = Vec::new();
    let mut at = 0;
    for &(_, len, named) in &map.entries {
        match runs.last_mut() {
            Some(last) if last.2 == named => last.1 += 1,
            _ => runs.push((at, 1, named)),
        }
        at += len;
    }
    runs
}

/// Maximum number of members of a structure that [`flat`] builds.
const MEMBERS: usize = 512;

/// Returns a committed datatype that has the signature of the map and stores its values without
/// gaps. Also returns the count to use with it, and whether the caller must free the datatype.
///
/// A map of one basic type gives that basic type, and other maps give a committed structure.
/// Returns none if the map has more than [`MEMBERS`] runs, or if the library lacks one of the types
/// or refuses the structure. `MPI_PACKED` cannot replace such a datatype, because only bytes that
/// `MPI_Pack` wrote may be sent with it.
pub(super) fn flat(library: &Library, map: &Map) -> Option<(Handle, u64, bool)> {
    let runs = runs(map);
    if let [(_, n, named)] = runs[..] {
        return Some((library.named(named)?, n as u64, false));
    }
    if runs.len() > MEMBERS {
        return None;
    }
    let children: Vec<Handle> = runs.iter().map(|r| library.named(r.2)).collect::<Option<_>>()?;
    let structure = Combiner::Struct {
        blocklengths: runs.iter().map(|r| r.1).collect(),
        displacements: runs.iter().map(|r| r.0 as i64).collect(),
        types: runs.iter().map(|r| Datatype::named(r.2)).collect(),
        legacy: false,
    };
    let t = library.construct(&structure, false, &children).ok()?;
    if library.commit(t).is_err() {
        let _ = library.free(t);
        return None;
    }
    Some((t, 1, true))
}

/// Returns the library's packed stream of `values`, which are the values of the map without gaps.
/// Each run of one basic type is packed by a separate call. Returns none if a call is refused or a
/// type is missing.
pub(super) fn stream(library: &Library, map: &Map, values: &[u8]) -> Option<Vec<u8>> {
    let mut stream = vec![0; 2 * values.len() + 64];
    let mut position = 0;
    for (at, n, named) in runs(map) {
        let len = (n * named.size()) as usize;
        let mut area = Area::new(0, len as i64, 0xa5);
        area.data_mut().copy_from_slice(&values[at..at + len]);
        library.pack(&area, n as u64, library.named(named)?, &mut stream, &mut position).ok()?;
    }
    stream.truncate(position);
    Some(stream)
}
