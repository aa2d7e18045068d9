//! Nothing: this member is its tests, which stand beside what they test and are named in its Cargo.toml.
