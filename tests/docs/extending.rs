//! Tests of docs/EXTENDING.md, which has a recipe for everything that is likely to be added.
//! recipes.rs tests the patches with which it adds a family and a kind.

use crate::text::{quoted, read, root};

/// Headings of the recipes, in the order of the document.
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

/// Checks the parts of each recipe. The module `links` checks, for all documents, that the files
/// that they name exist.
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
            // Each recipe must have these three parts, except for the recipe for a target, which
            // has a table of another form.
            assert!(section.contains(part) || section.contains("| What | Files |"), "{name} lacks {part}");
        }
    }
}

/// Checks in the fast tier, and without git, that the patches fit the sources. A part of e2e
/// (recipes.rs) tests that the patched copies compile.
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
