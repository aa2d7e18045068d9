//! Empty library of the package `ddtc-e2e`. The package consists of end-to-end tests only. Their
//! files lie next to the code that they test, and the package's Cargo.toml names each of them.
