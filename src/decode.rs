//! Decoding of any MPI library's datatypes into ours, through their envelopes and contents.
//!
//! [`Introspect`] lists what an MPI library must offer. [`decode`] follows a datatype down to its
//! named types with an explicit stack, and calls our constructors with the arguments that it finds
//! (MPI 5.0 section 5.1.13). Libraries compute bounds differently, so the library is asked for the
//! lower bound and the extent of every node. Where these differ from ours, the decoded node is
//! wrapped in `bounds(lb, extent, T)`, which keeps them. Sizes and true bounds are always our own.
//!
//! A library is not trusted: negative or huge counts, wrong lengths, cycles and endless depth end
//! in an error within [`Limits`]. Our own datatypes can be decoded as well ([`Own`]), which returns
//! the same tree with the same large-count flags. Sharing is kept too, except that a node is
//! decoded twice if it occurs both below a `Bounds` and elsewhere. A darray with a size, rank, grid
//! entry or distribution argument that does not fit in an int is refused with class
//! `ValueTooLarge`.

use std::collections::HashMap;

use crate::datatype::contents::{CombinerKind, Constants, Contents, Envelope, named_of};
use crate::datatype::{Datatype, Named};
use crate::error::{Error, ErrorClass, Result};

/// Access to the datatypes of an MPI library.
pub trait Introspect {
    /// A datatype handle.
    type Handle: Clone;

    /// Returns the result of `MPI_Type_get_envelope_c`. A library without this call returns the
    /// result of `MPI_Type_get_envelope`, with 0 large counts.
    fn envelope(&mut self, handle: &Self::Handle) -> Result<Envelope>;

    /// Returns the result of `MPI_Type_get_contents_c` or `MPI_Type_get_contents`. This method is
    /// called only for types that are not named. `envelope` is the envelope that was just returned
    /// for the handle, and the lengths in it are within the limits.
    fn contents(&mut self, handle: &Self::Handle, envelope: &Envelope) -> Result<Contents<Self::Handle>>;

    /// Returns the named type of a handle. This method is called only if the envelope says that the
    /// type is named.
    fn named(&mut self, handle: &Self::Handle) -> Result<Named>;

    /// Returns the lower bound and the extent in bytes that the library reports, or `None` if those
    /// that ddtc computes are to be used.
    fn bounds(&mut self, _handle: &Self::Handle) -> Result<Option<(i64, i64)>> {
        Ok(None)
    }

    /// Returns a value that identifies the datatype of a handle, so that shared subtrees are
    /// decoded once. As long as the decoded type lives, the value must be equal for all handles of
    /// the same datatype, and different for handles of any other. Returns `None` if the library has
    /// no such value.
    fn identity(&mut self, _handle: &Self::Handle) -> Option<u64> {
        None
    }

    /// Releases a handle. This method is called once for every handle that `contents` returned,
    /// even after an error. A handle of a derived type is a new reference that must be freed. A
    /// handle of a predefined type must not be freed.
    fn release(&mut self, _handle: Self::Handle) {}

    /// Returns the values of the constants that the library uses in contents.
    fn constants(&self) -> Constants {
        Constants::ABI
    }
}

/// Limits on the cost of decoding one datatype.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of nodes that are not named types. A datatype that has no identity counts
    /// again at every visit.
    pub nodes: u64,
    /// Maximum number of arguments of all nodes together. The arguments of a node are the entries
    /// of the four arrays of its contents. Each argument takes about 16 bytes of memory.
    pub arguments: u64,
}

impl Limits {
    /// Default limits. They admit a chain of a million constructors, and structures of many million
    /// blocks. Endless types are refused before they take about 2 GB of memory.
    pub const DEFAULT: Limits = Limits { nodes: 1 << 21, arguments: 1 << 26 };
}

/// Decodes a datatype within the default limits.
///
/// # Errors
/// Returns an error that the library reported. Returns an error of its own if an envelope or
/// contents cannot come from any constructor call, or if a limit is exceeded.
pub fn decode<I: Introspect>(host: &mut I, handle: &I::Handle) -> Result<Datatype> {
    decode_within(host, handle, Limits::DEFAULT)
}

/// Decodes a datatype within `limits`. The errors are those of [`decode`].
pub fn decode_within<I: Introspect>(host: &mut I, handle: &I::Handle, limits: Limits) -> Result<Datatype> {
    let mut decoder =
        Decoder { constants: host.constants(), host, limits, known: HashMap::new(), stack: Vec::new() };
    let result = decoder.run(handle);
    // Nodes are left on the stack only after an error. Release the handles of their children.
    while let Some(open) = decoder.stack.pop() {
        for handle in open.pending {
            decoder.host.release(handle);
        }
    }
    result
}

/// A node whose children are being decoded. It owns the handles of the children that are not
/// decoded yet, so that these handles are released even if the node turns out to be invalid.
struct OpenNode<H> {
    combiner: CombinerKind,
    identity: Option<u64>,
    bounds: Option<(i64, i64)>,
    /// Contents of the node. Its datatypes are the children that have been decoded.
    contents: Contents<Datatype>,
    /// Handles of the children that have not been decoded, in reverse order: the last handle in the
    /// list is being decoded.
    pending: Vec<H>,
}

struct Decoder<'h, I: Introspect> {
    host: &'h mut I,
    constants: Constants,
    limits: Limits,
    /// Decoded nodes by identity, or `None` for a node that is still being decoded.
    known: HashMap<u64, Option<Datatype>>,
    stack: Vec<OpenNode<I::Handle>>,
}

fn refuse(argument: &'static str, value: impl std::fmt::Display, rule: impl Into<String>) -> Error {
    Error::new(ErrorClass::Type, "decode", argument, value, rule.into())
}

fn with_bounds(t: Datatype, bounds: Option<(i64, i64)>) -> Result<Datatype> {
    match bounds {
        Some((lb, extent)) => Datatype::bounds(lb, extent, &t),
        None => Ok(t),
    }
}

impl<I: Introspect> Decoder<'_, I> {
    fn run(&mut self, root: &I::Handle) -> Result<Datatype> {
        let mut finished = self.visit(root)?;
        loop {
            if let Some(t) = finished.take() {
                let Some(open) = self.stack.last_mut() else { return Ok(t) };
                if let Some(handle) = open.pending.pop() {
                    self.host.release(handle);
                }
                open.contents.datatypes.push(t);
            }
            let Some(open) = self.stack.last() else {
                return Err(Error::internal("decode", "neither a result nor work"));
            };
            finished = match open.pending.last().cloned() {
                Some(next) => self.visit(&next)?,
                None => Some(self.build()?),
            };
        }
    }

    /// Returns the datatype of a handle if it is a named type or was decoded before. Otherwise
    /// pushes a new node for the handle onto the stack and returns `None`.
    fn visit(&mut self, handle: &I::Handle) -> Result<Option<Datatype>> {
        let identity = self.host.identity(handle);
        match identity.and_then(|id| self.known.get(&id)) {
            Some(Some(t)) => return Ok(Some(t.clone())),
            Some(None) => return Err(refuse("datatype", "a cycle", "a datatype cannot contain itself")),
            None => {}
        }
        // The node is new. Its envelope is checked before memory is allocated for its contents.
        let envelope = self.host.envelope(handle)?;
        self.admit(&envelope)?;
        let bounds = self.host.bounds(handle)?;
        if envelope.combiner == CombinerKind::Named {
            let t = with_bounds(Datatype::named(self.host.named(handle)?), bounds)?;
            if let Some(id) = identity {
                self.known.insert(id, Some(t.clone()));
            }
            return Ok(Some(t));
        }
        let contents = self.host.contents(handle, &envelope)?;
        // The type is derived. It becomes an open node, whose children `run` decodes in order.
        let lengths = [
            ("array_of_integers", contents.integers.len(), envelope.integers),
            ("array_of_addresses", contents.addresses.len(), envelope.addresses),
            ("array_of_large_counts", contents.large_counts.len(), envelope.large_counts),
            ("array_of_datatypes", contents.datatypes.len(), envelope.datatypes),
        ];
        let mut pending = contents.datatypes;
        pending.reverse();
        // Push the node before the lengths are checked: the node owns the handles, which must be
        // released even if a check fails.
        self.stack.push(OpenNode {
            combiner: envelope.combiner,
            identity,
            bounds,
            contents: Contents {
                integers: contents.integers,
                addresses: contents.addresses,
                large_counts: contents.large_counts,
                datatypes: Vec::new(),
            },
            pending,
        });
        for (argument, received, declared) in lengths {
            if received as i64 != declared {
                return Err(refuse(
                    argument,
                    received,
                    format!("must have the {declared} entries of the envelope"),
                ));
            }
        }
        if let Some(id) = identity {
            // Until the node is built, a handle with the same identity means a cycle.
            self.known.insert(id, None);
        }
        Ok(None)
    }

    /// Checks the numbers of an envelope and subtracts them from the limits. This happens before
    /// memory is allocated for the arguments that the envelope announces.
    fn admit(&mut self, envelope: &Envelope) -> Result<()> {
        let mut arguments = 0u64;
        for (argument, value) in [
            ("num_integers", envelope.integers),
            ("num_addresses", envelope.addresses),
            ("num_large_counts", envelope.large_counts),
            ("num_datatypes", envelope.datatypes),
        ] {
            let value = u64::try_from(value).map_err(|_| refuse(argument, value, "must not be negative"))?;
            arguments = arguments.saturating_add(value);
        }
        let rule = "the datatype has more arguments than the limit";
        let left = self.limits.arguments.checked_sub(arguments);
        self.limits.arguments = left.ok_or_else(|| refuse("arguments", arguments, rule))?;
        if envelope.combiner != CombinerKind::Named {
            let rule = "the datatype has more nodes than the limit";
            let left = self.limits.nodes.checked_sub(1);
            self.limits.nodes = left.ok_or_else(|| refuse("nodes", "too many", rule))?;
        }
        Ok(())
    }

    /// Removes the top node, whose children are all decoded, and calls its constructor.
    fn build(&mut self) -> Result<Datatype> {
        let Some(open) = self.stack.pop() else {
            return Err(Error::internal("decode", "no node to build"));
        };
        let t = Datatype::from_contents(open.combiner, open.contents, &self.constants)?;
        let t = with_bounds(t, open.bounds)?;
        if let Some(id) = open.identity {
            self.known.insert(id, Some(t.clone()));
        }
        Ok(t)
    }
}

/// Access to ddtc's own datatypes as if they were those of an MPI library: `decode(&mut Own, &t)`
/// returns the tree of `t`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own;

impl Introspect for Own {
    type Handle = Datatype;

    fn envelope(&mut self, handle: &Datatype) -> Result<Envelope> {
        Ok(handle.envelope())
    }

    fn contents(&mut self, handle: &Datatype, _envelope: &Envelope) -> Result<Contents<Datatype>> {
        handle.contents(&Constants::OWN)
    }

    fn named(&mut self, handle: &Datatype) -> Result<Named> {
        named_of(handle).ok_or_else(|| Error::internal("decode", "not a named type"))
    }

    fn bounds(&mut self, handle: &Datatype) -> Result<Option<(i64, i64)>> {
        Ok(Some((handle.lb(), handle.extent())))
    }

    fn identity(&mut self, handle: &Datatype) -> Option<u64> {
        Some(handle.id() as u64)
    }

    fn constants(&self) -> Constants {
        Constants::OWN
    }
}
