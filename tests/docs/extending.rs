//! Tests of docs/EXTENDING.md, which has a recipe for everything that is likely to be added to
//! ddtc. Two of its recipes come with patches, which add a family of micro-kernels and a kind. The
//! file recipes.rs tests that sources with these patches compile.

use crate::text::{quoted, read, root};

/// Headings of the recipes in docs/EXTENDING.md, in the order of the document.
const RECIPES: [&str; 9] = [
    "A rewrite of normalize",
    "A kind",
    "A micro-kernel family",
    "An instruction set",
    "A combiner",
    "A wrapped call of the preload library",
    "An MPI library",
    "A target",
    "A C surface",
];

/// Tests that each recipe of docs/EXTENDING.md has its parts. Whether the files that a recipe names
/// exist is checked by the module `links`, for all documents.
#[test]
fn every_recipe_names_its_files_and_an_example() {
    let document = read("docs/EXTENDING.md");
    let sections: Vec<&str> = document.split("\n## ").skip(1).collect();
    let names: Vec<&str> = sections.iter().map(|s| s.lines().next().unwrap()).collect();
    assert_eq!(names, RECIPES);
    for (name, section) in names.iter().zip(&sections) {
        let files = quoted(section).iter().filter(|w| root().join(w).exists()).count();
        assert!(files >= 3, "{name} names {files} files");
        for part in ["| File", "\nExample: ", "\nHeld by: "] {
            // Each recipe must have a table of files, an example, and a line that says which tests
            // hold it. The recipe for a target is an exception, because its table has another form.
            assert!(section.contains(part) || section.contains("| What | Files |"), "{name} lacks {part}");
        }
    }
}

/// Tests that the patches of docs/EXTENDING.md fit the sources. This test is in the fast tier and
/// does not need git. That the patched sources compile is tested by recipes.rs, which is a part of
/// e2e.
#[test]
fn the_patches_fit_the_sources() {
    for patch in ["docs/extending/family.patch", "docs/extending/kind.patch"] {
        let text = read(patch);
        let changed = text.split("\ndiff --git ").filter(|file| !file.contains("\nnew file mode "));
        for file in changed {
            let (_, after) = file.split_once("\n+++ b/").expect("a file's name");
            let mut hunks = after.split("\n@@ ");
            let source = read(hunks.next().unwrap());
            for hunk in hunks {
                let was: String = hunk
                    .lines()
                    .skip(1)
                    .filter_map(|line| line.strip_prefix([' ', '-']))
                    .map(|l| format!("{l}\n"))
                    .collect();
                assert!(!was.is_empty() && source.contains(&was), "{patch}: not in the source:\n{was}");
            }
        }
    }
}
