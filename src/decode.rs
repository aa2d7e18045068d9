//! Decode: from any MPI library's datatypes to ours, through envelope and contents.
//!
//! [`Introspect`] is what a library must offer; [`decode`] follows it down with an explicit stack and calls our constructors
//! with the arguments found (MPI 5.0 section 5.1.13). Libraries decide bounds differently, so the host's lower bound and extent
//! are asked at every node and kept where they differ from ours (`bounds(lb, extent, T)`); sizes and true bounds stay our own.
//!
//! A host is not trusted: negative or huge counts, wrong lengths, cycles and endless depth end in an error within [`Limits`].
//! Our own datatypes are a host too ([`Own`]): decoding them gives the same tree, node flags and sharing included.

use std::collections::HashMap;

use crate::datatype::contents::{CombinerKind, Constants, Contents, Envelope, named_of};
use crate::datatype::{Datatype, Named};
use crate::error::{Error, ErrorClass, Result};

/// Access to the datatypes of a library.
pub trait Introspect {
    /// A datatype handle.
    type Handle: Clone;

    /// `MPI_Type_get_envelope_c`, or the small form with no large counts.
    fn envelope(&mut self, handle: &Self::Handle) -> Result<Envelope>;

    /// `MPI_Type_get_contents_c` or the small form, for a type that is not named. The envelope is the one just returned for
    /// the handle, its lengths within the limits.
    fn contents(&mut self, handle: &Self::Handle, envelope: &Envelope) -> Result<Contents<Self::Handle>>;

    /// Which named type it is; asked only where the envelope says named.
    fn named(&mut self, handle: &Self::Handle) -> Result<Named>;

    /// The library's lower bound and extent in bytes; `None` accepts ours.
    fn bounds(&mut self, _handle: &Self::Handle) -> Result<Option<(i64, i64)>> {
        Ok(None)
    }

    /// A value that is equal for handles of the same datatype and no others while the decoded type lives, so that shared
    /// subtrees are decoded once. `None`: not known.
    fn identity(&mut self, _handle: &Self::Handle) -> Option<u64> {
        None
    }

    /// Called once for every handle that `contents` returned, after errors too. Derived types are new references that must
    /// be freed; predefined ones must not be.
    fn release(&mut self, _handle: Self::Handle) {}

    /// The library's constants inside contents.
    fn constants(&self) -> Constants {
        Constants::ABI
    }
}

/// Limits on the cost of one decoding.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Derived nodes, each visit counted where the host gives no identity.
    pub nodes: u64,
    /// Arguments over all nodes: entries of the four arrays. Memory is about 16 bytes each.
    pub arguments: u64,
}

impl Limits {
    /// A chain of a million constructors and structures of many million blocks pass; endless ones stop below about 2 GB.
    pub const DEFAULT: Limits = Limits { nodes: 1 << 21, arguments: 1 << 26 };
}

/// Decodes with the default limits.
///
/// # Errors
/// What the host reports; an envelope or contents that no constructor call gives; limits.
pub fn decode<I: Introspect>(host: &mut I, handle: &I::Handle) -> Result<Datatype> {
    decode_within(host, handle, Limits::DEFAULT)
}

/// Decodes within `limits`. Errors as [`decode`].
pub fn decode_within<I: Introspect>(host: &mut I, handle: &I::Handle, limits: Limits) -> Result<Datatype> {
    let mut decoder =
        Decoder { constants: host.constants(), host, limits, known: HashMap::new(), stack: Vec::new() };
    let result = decoder.run(handle);
    // Children that an error left behind.
    while let Some(open) = decoder.stack.pop() {
        for handle in open.pending {
            decoder.host.release(handle);
        }
    }
    result
}

/// A node whose children are being decoded. It owns the handles of those that are left, whatever is wrong with the node.
struct OpenNode<H> {
    combiner: CombinerKind,
    identity: Option<u64>,
    bounds: Option<(i64, i64)>,
    /// The contents without datatypes.
    contents: Contents<Datatype>,
    /// Children not decoded yet, last first; the last entry is the one under way.
    pending: Vec<H>,
}

struct Decoder<'h, I: Introspect> {
    host: &'h mut I,
    constants: Constants,
    limits: Limits,
    /// Decoded nodes by identity; `None` while under way.
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

    /// Decodes a leaf or a known node; else opens a node.
    fn visit(&mut self, handle: &I::Handle) -> Result<Option<Datatype>> {
        let identity = self.host.identity(handle);
        match identity.and_then(|id| self.known.get(&id)) {
            Some(Some(t)) => return Ok(Some(t.clone())),
            Some(None) => return Err(refuse("datatype", "a cycle", "a datatype cannot contain itself")),
            None => {}
        }
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
        let lengths = [
            ("array_of_integers", contents.integers.len(), envelope.integers),
            ("array_of_addresses", contents.addresses.len(), envelope.addresses),
            ("array_of_large_counts", contents.large_counts.len(), envelope.large_counts),
            ("array_of_datatypes", contents.datatypes.len(), envelope.datatypes),
        ];
        let mut pending = contents.datatypes;
        pending.reverse();
        // The node is pushed first: it owns the handles, whatever is wrong with the rest.
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
            self.known.insert(id, None);
        }
        Ok(None)
    }

    /// Checks an envelope's numbers and takes them off the limits, before anything is allocated for them.
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

    /// Calls the constructor of the top node, whose children are all decoded.
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

/// Our own datatypes as a host: `decode(&mut Own, &t)` gives back `t`'s tree.
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
