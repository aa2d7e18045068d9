//! A host that lies: envelopes and contents of a real datatype, changed here and there by choices.
//!
//! Whatever it answers, decoding must end within its limits in a datatype that can be worked with or in an error, and give
//! every handle back.

use super::case::{Check, Mismatch, ensure};
use super::choices::Choices;
use super::generate::{Budget, datatype};
use super::panics::caught;
use crate::datatype::contents::named_of;
use crate::datatype::{Combiner, CombinerKind, Constants, Contents, Datatype, Envelope, Named};
use crate::decode::{Introspect, Limits, Own, decode_within};
use crate::error::{Error, ErrorClass, Result};

/// Calls that one decoding may make with [`LIMITS`].
const MAX_CALLS: u64 = 50_000;
/// Low, so that hosts without end are cut off soon.
const LIMITS: Limits = Limits { nodes: 1000, arguments: 20_000 };

struct Host<'c, 'b> {
    choices: &'c mut Choices<'b>,
    /// Changes so far; a host that changes everything is refused at its first word.
    lies: u32,
    /// Handles given out and not returned.
    open: i64,
    calls: u64,
    identities: bool,
}

impl Host<'_, '_> {
    fn lie(&mut self) -> bool {
        self.calls += 1;
        let lie = self.lies < 4 && self.choices.chance(24);
        self.lies += u32::from(lie);
        lie
    }

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
            // The envelope called a named type something else.
            Err(_) => {
                Contents { integers: vec![1], addresses: vec![], large_counts: vec![], datatypes: vec![] }
            }
        };
        if self.lie() {
            match self.choices.below(4) {
                0 => self.spoil(&mut c.integers, |host, old| host.number(old.unwrap_or(0).into()) as i32),
                1 => self.spoil(&mut c.addresses, |host, old| host.number(old.unwrap_or(0))),
                2 => self.spoil(&mut c.large_counts, |host, old| host.number(old.unwrap_or(0))),
                // Itself: a cycle.
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

/// Decodes a datatype of a lying host.
///
/// # Errors
/// A panic, handles that were not given back, work beyond the limits, or a datatype that does not decode to itself.
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

/// Our own datatypes decode to the same tree, flags and sharing included.
pub(super) fn round_trip(t: &Datatype) -> Check {
    let mut again = crate::decode::decode(&mut Own, t);
    // Process grids and ranks are int in both forms: such a type has no contents.
    if again.as_ref().is_err_and(|e| e.class() == ErrorClass::ValueTooLarge) {
        again = Ok(t.clone());
    }
    let again = again.map_err(Mismatch::error("decode"))?;
    ensure(again == *t, "decode", || format!("{t}\ndecodes to\n{again}"))?;
    // A node with host bounds and the same node without are two types to a host.
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
