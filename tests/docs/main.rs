//! Tests that the documents agree with the sources: modules, stages, examples, grammars, links, and
//! the commands of the README.
//!
//! With `DDTC_BLESS=1` the tests rewrite the generated parts of the documents, for example the
//! importers in docs/ARCHITECTURE.md, the blocks of nests and plans, and the figures.

mod api;
mod examples;
mod extending;
mod figures;
mod findings;
mod fitted;
mod glossary;
mod guide;
mod identities;
mod import_cycles;
mod kinds;
mod libraries;
mod limits;
mod links;
mod modules;
mod parts;
mod passes;
mod planted;
mod readme;
mod testing;
mod text;
