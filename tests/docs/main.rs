//! The documents are held to the sources: rooms, stages, examples, grammars, links, and the commands of the README.
//!
//! `DDTC_BLESS=1` rewrites what is generated: the importers in docs/ARCHITECTURE.md and the blocks of nests and plans.

mod examples;
mod identities;
mod kinds;

mod links;
mod passes;
mod readme;
mod rooms;
mod text;
