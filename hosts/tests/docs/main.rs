//! Documents that say what this member knows are held to it; the others are held in tests/docs/.
//!
//! `DDTC_BLESS=1` rewrites what is generated: the shipped table, and the records side by side.

mod guide;
mod policies;
#[path = "../../../tests/docs/text.rs"]
#[allow(dead_code, reason = "of the readers of documents some are used here")]
mod text;
