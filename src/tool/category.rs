//! Categories, which group variables that belong together.

use super::{CONTROLS, PERFORMANCE};

/// A group of variables and other categories.
#[derive(Clone, Copy, Debug)]
pub struct Category {
    /// Name of the category, unique among categories.
    pub name: &'static str,
    /// Description of what the members have in common.
    pub description: &'static str,
    controls: &'static [&'static str],
    performance: &'static [&'static str],
    categories: &'static [&'static str],
}

/// All categories. They never change.
pub const CATEGORIES: [Category; 4] = [
    Category {
        name: "ddtc",
        description: "The derived datatype compiler.",
        controls: &["ddtc_report"],
        performance: &["ddtc_types"],
        categories: &["ddtc_commit", "ddtc_cache", "ddtc_calls"],
    },
    Category {
        name: "ddtc_commit",
        description: "What a commit does, and what it has done.",
        controls: &["ddtc_mode", "ddtc_lazy_threshold", "ddtc_both_directions", "ddtc_check", "ddtc_target"],
        performance: &[
            "ddtc_commits",
            "ddtc_compiles",
            "ddtc_compile_time",
            "ddtc_refusals",
            "ddtc_fallbacks",
            "ddtc_mismatches",
        ],
        categories: &[],
    },
    Category {
        name: "ddtc_cache",
        description: "Layouts and code that equal types share.",
        controls: &["ddtc_cache_capacity", "ddtc_arena_capacity"],
        performance: &[
            "ddtc_cache_hits",
            "ddtc_cache_misses",
            "ddtc_cache_evictions",
            "ddtc_cache_bytes",
            "ddtc_code_bytes",
            "ddtc_own_pages",
        ],
        categories: &[],
    },
    Category {
        name: "ddtc_calls",
        description: "Calls of pack and unpack: how huge ones are made, and counts while a session or a report is open.",
        controls: &["ddtc_threads", "ddtc_parallel_bytes", "ddtc_stream_bytes"],
        performance: &[
            "ddtc_pack_calls",
            "ddtc_unpack_calls",
            "ddtc_pack_bytes",
            "ddtc_unpack_bytes",
            "ddtc_pack_external32_calls",
            "ddtc_unpack_external32_calls",
            "ddtc_pack_external32_bytes",
            "ddtc_unpack_external32_bytes",
            "ddtc_reduce_calls",
            "ddtc_reduce_bytes",
            "ddtc_copy_calls",
            "ddtc_copy_bytes",
        ],
        categories: &[],
    },
];

fn indices(names: &[&str], all: impl Fn(&str) -> Option<usize>) -> Vec<i32> {
    names.iter().filter_map(|n| all(n)).map(|i| i as i32).collect()
}

impl Category {
    /// Returns the indices in [`CONTROLS`] of the control variables of the category.
    pub fn controls(&self) -> Vec<i32> {
        indices(self.controls, |n| CONTROLS.iter().position(|c| c.name == n))
    }

    /// Returns the indices in [`PERFORMANCE`] of the performance variables of the category.
    pub fn performance(&self) -> Vec<i32> {
        indices(self.performance, |n| PERFORMANCE.iter().position(|p| p.name == n))
    }

    /// Returns the indices in [`CATEGORIES`] of the categories inside this one.
    pub fn categories(&self) -> Vec<i32> {
        indices(self.categories, |n| CATEGORIES.iter().position(|c| c.name == n))
    }
}
