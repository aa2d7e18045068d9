//! An MPI library that answers wrongly: the envelopes and contents of a real datatype, changed at
//! some places that a stream of choices selects.
//!
//! Whatever the library answers, decoding must end within its limits, either with a datatype that
//! is usable or with an error, and must release every handle.

use super::case::{Check, Mismatch, ensure};
use super::choices::Choices;
use super::generate::{Budget, datatype};
use super::panics::caught;
use crate::datatype::contents::named_of;
use crate::datatype::{Combiner, CombinerKind, Constants, Contents, Datatype, Envelope, Named};
use crate::decode::{Introspect, Limits, Own, decode_within};
use crate::error::{Error, ErrorClass, Result};

/// Maximum number of calls of the library in one decoding with [`LIMITS`].
const MAX_CALLS: u64 = 50_000;
/// Limits of the decoding. They are low, so that endless datatypes are cut off soon.
const LIMITS: Limits = Limits { nodes: 1000, arguments: 20_000 };

/// The MPI library that answers wrongly.
struct Host<'c, 'b> {
    choices: &'c mut Choices<'b>,
    /// Number of wrong answers so far. There are at most four. If every answer were wrong, decoding
    /// would end at the first one.
    lies: u32,
    /// Number of handles that were given out and not released.
    open: i64,
    calls: u64,
    identities: bool,
}

impl Host<'_, '_> {
    /// Counts a call, and decides whether its answer is to be wrong.
    fn lie(&mut self) -> bool {
        self.calls += 1;
        let lie = self.lies < 4 && self.choices.chance(24);
        self.lies += u32::from(lie);
        lie
    }

    /// Returns a wrong number in place of `old`.
    fn number(&mut self, old: i64) -> i64 {
        match self.choices.below(10) {
            0 => -1,
            1 => 0,
            2 => old.wrapping_add(1),
            3 => old.wrapping_sub(1),
            4 => i64::MAX,
            5 => i64::MIN,
            6 => i64::from(i32::MAX),
            7 => 1 << self.choices.below(63),
            8 => -(1 << self.choices.below(63)),
            _ => self.choices.within(-40, 40),
        }
    }

    /// Removes, adds or replaces one entry of an array, or leaves the array as it is.
    fn spoil<T: Clone>(&mut self, array: &mut Vec<T>, mut new: impl FnMut(&mut Self, Option<T>) -> T) {
        let at = self.choices.below(array.len() as u64) as usize;
        match self.choices.below(4) {
            0 => drop(array.pop()),
            1 => array.push(new(self, None)),
            _ if at < array.len() => array[at] = new(self, Some(array[at].clone())),
            _ => {}
        }
    }
}

impl Introspect for Host<'_, '_> {
    type Handle = Datatype;

    fn envelope(&mut self, handle: &Datatype) -> Result<Envelope> {
        let mut e = handle.envelope();
        if self.lie() {
            match self.choices.below(6) {
                0 => e.integers = self.number(e.integers),
                1 => e.addresses = self.number(e.addresses),
                2 => e.large_counts = self.number(e.large_counts),
                3 => e.datatypes = self.number(e.datatypes),
                4 => {
                    let kinds: Vec<CombinerKind> = CombinerKind::all().collect();
                    e.combiner = self.choices.pick(&kinds);
                }
                _ => return Err(Error::new(ErrorClass::Other, "host", "handle", "", "does not answer")),
            }
        }
        Ok(e)
    }

    fn contents(&mut self, handle: &Datatype, _: &Envelope) -> Result<Contents<Datatype>> {
        let mut c = match handle.contents(&Constants::OWN) {
            Ok(contents) => contents,
            // This is a named type, which has no contents. The decoder asks for them because a
            // wrong envelope gave the type another combiner. Answer with invented contents.
            Err(_) => {
                Contents { integers: vec![1], addresses: vec![], large_counts: vec![], datatypes: vec![] }
            }
        };
        if self.lie() {
            match self.choices.below(4) {
                0 => self.spoil(&mut c.integers, |host, old| host.number(old.unwrap_or(0).into()) as i32),
                1 => self.spoil(&mut c.addresses, |host, old| host.number(old.unwrap_or(0))),
                2 => self.spoil(&mut c.large_counts, |host, old| host.number(old.unwrap_or(0))),
                // Return the datatype as its own child, which makes a cycle.
                _ => self.spoil(&mut c.datatypes, |_, _| handle.clone()),
            }
        }
        self.open += c.datatypes.len() as i64;
        Ok(c)
    }

    fn named(&mut self, handle: &Datatype) -> Result<Named> {
        named_of(handle).ok_or_else(|| Error::new(ErrorClass::Type, "host", "handle", "", "is not named"))
    }

    fn bounds(&mut self, handle: &Datatype) -> Result<Option<(i64, i64)>> {
        Ok(match self.lie() {
            true => Some((self.number(handle.lb()), self.number(handle.extent()))),
            false => Some((handle.lb(), handle.extent())),
        })
    }

    fn identity(&mut self, handle: &Datatype) -> Option<u64> {
        self.calls += 1;
        self.identities.then_some(handle.id() as u64)
    }

    fn release(&mut self, _: Datatype) {
        self.open -= 1;
    }

    fn constants(&self) -> Constants {
        Constants::OWN
    }
}

/// Decodes a random datatype through an MPI library that answers wrongly.
///
/// # Errors
/// A panic, handles that were not released, more calls than allowed, a datatype that does not
/// decode to itself. Also a decoding that fails without a wrong answer, although the library
/// identifies its handles and the datatype is far below the limits.
pub fn check_hostile(c: &mut Choices<'_>) -> std::result::Result<(), Mismatch> {
    let t = datatype(c, &Budget::small());
    let identities = c.chance(128);
    let mut host = Host { choices: c, lies: 0, open: 0, calls: 0, identities };
    let decoded = caught(|| decode_within(&mut host, &t, LIMITS))
        .map_err(|panic| Mismatch::new("decode", format!("panic: {panic}\n{t}")))?;
    let Host { open, calls, lies, .. } = host;
    ensure(open == 0, "decode", || format!("{open} handles are not released\n{t}"))?;
    ensure(calls <= MAX_CALLS, "decode", || format!("{calls} calls of the host\n{t}"))?;
    match decoded {
        Ok(got) if lies == 0 => ensure(got == t, "decode", || format!("{t}\ndecodes to\n{got}")),
        Ok(got) => round_trip(&got),
        Err(e) => {
            let (nodes, arguments) = (t.nodes().count() as u64, t.arguments());
            let large = nodes > LIMITS.nodes / 4 || arguments > LIMITS.arguments / 4 || !identities;
            ensure(lies > 0 || large, "decode", || format!("an honest host is refused: {e}\n{t}"))
        }
    }
}

/// Checks that decoding the envelopes and contents of a datatype gives the same tree, with the same
/// flags and sharing.
pub(super) fn round_trip(t: &Datatype) -> Check {
    let mut again = crate::decode::decode(&mut Own, t);
    // MPI returns process grids and ranks as C `int`, also among the contents with large counts. So
    // a datatype with larger grids or ranks has no contents and cannot be decoded.
    if again.as_ref().is_err_and(|e| e.class() == ErrorClass::ValueTooLarge) {
        again = Ok(t.clone());
    }
    let again = again.map_err(Mismatch::error("decode"))?;
    ensure(again == *t, "decode", || format!("{t}\ndecodes to\n{again}"))?;
    // A node that occurs several times in a tree is shared, and `nodes` returns it once. Decoding
    // keeps the sharing, except that a node is decoded twice if it occurs both below a `Bounds`,
    // which carries bounds of an MPI library, and elsewhere. The list of flags may then be longer,
    // so it is compared only for trees without `Bounds`.
    let host_bounds = t.nodes().any(|n| matches!(n.combiner(), Combiner::Bounds { .. }));
    let flags = |t: &Datatype| t.nodes().map(Datatype::is_large_count).collect::<Vec<_>>();
    ensure(host_bounds || flags(&again) == flags(t), "decode", || {
        format!("{t} decodes with other sharing or flags")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_lie_a_little() {
        for seed in 0..3000 {
            check_hostile(&mut Choices::from_seed(seed)).unwrap_or_else(|m| panic!("seed {seed}: {m}"));
        }
    }
}
