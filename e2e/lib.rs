//! An empty library. This member consists of its tests, which are next to what they test, and which
//! its Cargo.toml names.
