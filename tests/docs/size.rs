//! The documents of docs/ are short enough to be read together; records and history stand in docs/records, docs/findings and benches/record.

use crate::text::{files, read};

/// Most bytes of the documents that a reader needs together: those directly in docs/.
const MAX_BYTES: usize = 184_320;

#[test]
fn what_a_reader_needs_together_is_short() {
    let mut sizes: Vec<(usize, String)> = files("docs", "md")
        .into_iter()
        .filter(|path| path.matches('/').count() == 1)
        .map(|path| (read(&path).len(), path))
        .collect();
    assert!(sizes.len() >= 13, "{sizes:?}");
    sizes.sort_unstable();
    let all: usize = sizes.iter().map(|(bytes, _)| bytes).sum();
    assert!(all <= MAX_BYTES, "{all} bytes of at most {MAX_BYTES}: move records to docs/records: {sizes:#?}");
}
