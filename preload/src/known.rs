//! Map of this process from the arguments of a type's constructor, as the MPI library returns them,
//! to the compiled type.
//!
//! If all old types of a datatype are named types, its envelope, contents and bounds describe the
//! datatype completely. If a program makes the same vector, subarray or structure again, for each
//! step or for each message, ddtc takes the compiled type of the first one from this map. Then ddtc
//! need not build a tree of constructors, compare the tree with the MPI library and compile the
//! type.

use std::ffi::c_int;

use ddtc::internal::committed::Committed;
use ddtc::internal::datatype::contents::{Contents, Envelope};
use ddtc::internal::engine::Engine;
use ddtc::internal::methods::*;
use ddtc::internal::process::Mutex;

use crate::host::HandleWord;

/// Maximum number of constructor arguments of a type in the map. It suffices for a subarray of 20
/// dimensions (63 arguments) or a structure of 20 members (61 arguments). A type with more
/// arguments is usually made from a long array of displacements, and equal arrays are seldom used
/// again.
const MAX_ARGUMENTS: usize = 64;

/// Number of slots of the map, each for one description of a type. A description is kept in one of
/// the two slots that its hash gives. If both are taken, the new description replaces the one in
/// the first slot. Replacements are rare, because a program has few descriptions of this kind, and
/// harmless: the type of a replaced description is decoded again if it is needed again.
const SLOTS: usize = 256;

/// The MPI library's description of a type: envelope, bounds and contents, with at most
/// [`MAX_ARGUMENTS`] arguments.
pub(crate) struct Description {
    envelope: Envelope,
    /// Lower bound and extent in bytes; `None` if the MPI library has no function that returns
    /// them.
    bounds: Option<(i64, i64)>,
    integers: [c_int; MAX_ARGUMENTS],
    /// Address arguments, followed by large counts.
    wide: [i64; MAX_ARGUMENTS],
    datatypes: [HandleWord; MAX_ARGUMENTS],
}

/// A description in the map, and the compiled type that was committed for it.
struct Known {
    envelope: Envelope,
    bounds: Option<(i64, i64)>,
    integers: Box<[c_int]>,
    wide: Box<[i64]>,
    datatypes: Box<[HandleWord]>,
    committed: Committed,
}

/// State of the map. All its types were committed by one engine.
struct State {
    /// Engine that has committed the types; `None` until the first type is kept.
    engine: Option<Engine>,
    /// Empty until the first type is kept, then [`SLOTS`] slots.
    slots: Vec<Option<Known>>,
}

static KNOWN: Mutex<State> = Mutex::new(State { engine: None, slots: Vec::new() });

impl Description {
    /// Returns true if a type with this envelope has at most [`MAX_ARGUMENTS`] arguments. The
    /// numbers in the envelope come from the MPI library and may be anything, negative ones
    /// included.
    pub(crate) fn has_room(envelope: &Envelope) -> bool {
        let Envelope { integers, addresses, large_counts, datatypes, .. } = *envelope;
        let numbers = [integers, addresses, large_counts, datatypes];
        let all = 0..=MAX_ARGUMENTS as i64;
        numbers.iter().all(|n| all.contains(n)) && all.contains(&numbers.iter().sum())
    }

    /// Returns the description of a type with this envelope and these bounds (lower bound and
    /// extent in bytes, if the MPI library returns them). The contents must still be written
    /// ([`Description::arrays`]).
    ///
    /// # Panics
    /// This function does not panic. But if there is no room for the arguments
    /// ([`Description::has_room`]), later calls of methods that read or write the arguments panic.
    #[inline] // So that the 1.3 KB of the value are written in place and not copied.
    pub(crate) fn new(envelope: Envelope, bounds: Option<(i64, i64)>) -> Description {
        Description {
            envelope,
            bounds,
            integers: [0; MAX_ARGUMENTS],
            wide: [0; MAX_ARGUMENTS],
            datatypes: [0; MAX_ARGUMENTS],
        }
    }

    /// Returns the envelope.
    pub(crate) fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Returns the arrays to which the MPI library writes the contents: integers, addresses, large
    /// counts and datatypes, each as long as the envelope says.
    pub(crate) fn arrays(&mut self) -> (&mut [c_int], &mut [i64], &mut [i64], &mut [HandleWord]) {
        let [integers, addresses, large_counts, datatypes] = self.lengths();
        let (addresses, rest) = self.wide.split_at_mut(addresses);
        (
            &mut self.integers[..integers],
            addresses,
            &mut rest[..large_counts],
            &mut self.datatypes[..datatypes],
        )
    }

    /// Returns the numbers of integers, addresses, large counts and datatypes among the arguments.
    fn lengths(&self) -> [usize; 4] {
        let Envelope { integers, addresses, large_counts, datatypes, .. } = self.envelope;
        [integers, addresses, large_counts, datatypes].map(|n| n as usize)
    }

    fn integers(&self) -> &[c_int] {
        &self.integers[..self.lengths()[0]]
    }

    fn wide(&self) -> &[i64] {
        &self.wide[..self.lengths()[1] + self.lengths()[2]]
    }

    /// Returns the datatype arguments: the old types.
    pub(crate) fn datatypes(&self) -> &[HandleWord] {
        &self.datatypes[..self.lengths()[3]]
    }

    /// Returns a copy of the contents, in the form from which the type is decoded.
    pub(crate) fn contents(&self) -> Contents<HandleWord> {
        let (addresses, large_counts) = self.wide().split_at(self.lengths()[1]);
        Contents {
            integers: self.integers().to_vec(),
            addresses: addresses.to_vec(),
            large_counts: large_counts.to_vec(),
            datatypes: self.datatypes().to_vec(),
        }
    }

    /// Returns the two slots in which the description may be kept. The first is preferred.
    fn slots(&self) -> [usize; 2] {
        // The multiplier is the fractional part of the golden ratio as a 64-bit number, whose bits
        // follow no pattern. Combining both halves of the 128-bit product lets each bit of `word`
        // change high and low bits of the hash.
        let mix = |hash: u64, word: u64| {
            let product = u128::from(hash.rotate_left(32) ^ word) * 0x9e37_79b9_7f4a_7c15;
            product as u64 ^ (product >> 64) as u64
        };
        let hash = self.integers().iter().fold(self.envelope.combiner as u64, |hash, &n| mix(hash, n as u64));
        let hash = self.wide().iter().fold(hash, |hash, &n| mix(hash, n as u64));
        let hash = self.datatypes().iter().fold(hash, |hash, &old| mix(hash, old));
        [hash as usize % SLOTS, (hash >> 32) as usize % SLOTS]
    }

    fn is_of(&self, known: &Known) -> bool {
        self.envelope == known.envelope
            && self.bounds == known.bounds
            && *self.integers() == *known.integers
            && *self.wide() == *known.wide
            && *self.datatypes() == *known.datatypes
    }
}

/// Returns the type that `engine` has committed for a description, if the map has such a type.
pub(crate) fn find(description: &Description, engine: &Engine) -> Option<Committed> {
    let state = KNOWN.lock();
    state.engine.as_ref().filter(|known| known.is_same(engine))?;
    let both = description.slots().map(|slot| state.slots.get(slot)?.as_ref());
    let known = both.into_iter().flatten().find(|known| description.is_of(known));
    known.map(|known| known.committed.clone())
}

/// Puts a description and the type that was committed for it into the map. If the map has types of
/// another engine, drops them first, because they would keep alive an engine whose configuration is
/// no longer used.
pub(crate) fn keep(description: &Description, committed: Committed) {
    let [slot, other] = description.slots();
    let new = Known {
        envelope: description.envelope,
        bounds: description.bounds,
        integers: description.integers().into(),
        wide: description.wide().into(),
        datatypes: description.datatypes().into(),
        committed,
    };
    let replaced = {
        let mut state = KNOWN.lock();
        let engine = new.committed.engine();
        let is_same = state.engine.as_ref().is_some_and(|known| known.is_same(engine));
        let others = if is_same {
            None
        } else {
            let slots = (0..SLOTS).map(|_| None).collect();
            Some(std::mem::replace(&mut *state, State { engine: Some(engine.clone()), slots }))
        };
        let slots = &mut state.slots;
        let slot = if slots[slot].is_some() && slots[other].is_none() { other } else { slot };
        (slots[slot].replace(new), others)
    };
    // Dropping types may return the memory of their kernels to the arena, so the lock of the map is
    // not held here.
    drop(replaced);
}

/// Drops all types in the map. Called at the end of an epoch, because the handles of named types in
/// the descriptions may mean something else in the next epoch.
pub(crate) fn forget_all() {
    let gone = std::mem::replace(&mut *KNOWN.lock(), State { engine: None, slots: Vec::new() });
    // Dropping types may return the memory of their kernels to the arena, so the lock of the map is
    // not held here.
    drop(gone);
}

#[cfg(test)]
mod tests {
    use ddtc::internal::datatype::contents::CombinerKind;
    use ddtc::internal::datatype::{Datatype, Named};

    use super::*;

    const INT: HandleWord = 0x4c00_0405;

    fn described(combiner: CombinerKind, integers: &[c_int], old: HandleWord, extent: i64) -> Description {
        let (addresses, large_counts, datatypes) = (0, 0, 1);
        let envelope =
            Envelope { combiner, integers: integers.len() as i64, addresses, large_counts, datatypes };
        let mut description = Description::new(envelope, Some((0, extent)));
        let arrays = description.arrays();
        arrays.0.copy_from_slice(integers);
        arrays.3[0] = old;
        description
    }

    fn vector(stride: i32) -> (Description, Committed) {
        let t = Datatype::vector(2, 1, stride.into(), &Datatype::named(Named::Int)).unwrap();
        let description = described(CombinerKind::Vector, &[2, 1, stride], INT, t.extent());
        (description, Engine::global().commit(&t).unwrap())
    }

    // All these checks are in one test, because the map is global to the process.
    #[test]
    fn what_is_kept_is_found_by_all_that_describes_it() {
        // There are more types than slots, so some types replace others. For each description the
        // map has the equal type or none, and at least half of the slots are in use.
        let types: Vec<_> = (1..1000).map(vector).collect();
        types.iter().for_each(|(description, committed)| keep(description, committed.clone()));
        let found = |description: &Description| find(description, Engine::global());
        let mut kept = 0;
        for (description, committed) in &types {
            if let Some(found) = found(description) {
                assert_eq!(found.datatype(), committed.datatype());
                kept += 1;
            }
        }
        assert!((SLOTS / 2..=SLOTS).contains(&kept), "{kept}");
        // The map has no type for a description that differs in any part. A type of another engine
        // is not found either.
        let (last, t) = types.last().unwrap();
        assert!(found(last).is_some() && find(last, &Engine::default()).is_none());
        let extent = t.datatype().extent();
        for (combiner, integers, old, extent) in [
            (CombinerKind::Vector, &[2, 1, 999][..], INT, extent + 4),
            (CombinerKind::Vector, &[2, 1, 999], INT + 1, extent),
            (CombinerKind::Hvector, &[2, 1, 999], INT, extent),
            (CombinerKind::Vector, &[2, 1, 999, 0], INT, extent),
        ] {
            assert!(found(&described(combiner, integers, old, extent)).is_none());
        }
        assert!(found(&described(CombinerKind::Vector, &[2, 1, 999], INT, extent)).is_some());
        // Keeping a type of another engine drops all types of the first one.
        let other = Engine::default();
        keep(last, other.commit(t.datatype()).unwrap());
        assert!(find(last, &other).is_some());
        assert!(types.iter().all(|(description, _)| found(description).is_none()));
        forget_all();
        assert!(find(last, &other).is_none());
    }

    #[test]
    fn contents_come_back_as_they_were_written() {
        let envelope = Envelope {
            combiner: CombinerKind::Struct,
            integers: 3,
            addresses: 2,
            large_counts: 1,
            datatypes: 2,
        };
        let mut description = Description::new(envelope, None);
        let arrays = description.arrays();
        arrays.0.copy_from_slice(&[2, 1, 1]);
        arrays.1.copy_from_slice(&[0, -8]);
        arrays.2.copy_from_slice(&[5]);
        arrays.3.copy_from_slice(&[INT, INT + 1]);
        let contents = description.contents();
        assert_eq!((contents.integers, contents.addresses), (vec![2, 1, 1], vec![0, -8]));
        assert_eq!((contents.large_counts, contents.datatypes), (vec![5], vec![INT, INT + 1]));
        assert!(Description::has_room(&envelope));
        for numbers in [[60, 2, 1, 2], [-1, 2, 1, 2], [65, -1, 0, 0], [1 << 62; 4], [i64::MAX; 4]] {
            let [integers, addresses, large_counts, datatypes] = numbers;
            let wrong = Envelope { integers, addresses, large_counts, datatypes, ..envelope };
            assert!(!Description::has_room(&wrong), "{numbers:?}");
        }
    }
}
