//! Tests that documents agree with the tables of this crate. The tests of all other documents are
//! in tests/docs/.
//!
//! With `DDTC_BLESS=1`, the tests rewrite what is generated: the shipped table of policies, and the
//! comparison of the records.

mod guide;
mod policies;
#[path = "../../../tests/docs/text.rs"]
#[allow(dead_code, reason = "of the readers of documents some are used here")]
mod text;
