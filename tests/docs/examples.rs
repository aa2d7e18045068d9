//! Tests of the examples in the documents. The tag after the opening fence of a block says what the
//! block contains. Blocks of nests and plans are generated: each shows what a stage of the compiler
//! makes of the last block with the tag `datatype` or `nest input` before it.

use ddtc::internal::datatype::Datatype;
use ddtc::internal::kind::Direction;
use ddtc::internal::lower::{Bytes, External32, Leaves, Native};
use ddtc::internal::methods::*;
use ddtc::internal::micro::FAMILIES;
use ddtc::internal::nest::{Leaf, LoopNest, Lowered, Normal, Phase, Side};
use ddtc::internal::plan::{Plan, Scheduled};
use ddtc::internal::target::Target;
use ddtc::internal::{legalize, lower, normalize, refine, schedule};

use crate::kinds;
use crate::text::{Block, blocks, files, hold, read, with_blocks};

/// Input of the stage of the compiler that generates a block of a document: a datatype or a nest.
pub(crate) enum Source {
    Datatype(Datatype),
    Nest(LoopNest<Lowered>),
}

/// Returns the text of a nest. Checks first that the nest passes its verifier, and that its text
/// parses to a nest with the same text.
fn text<P: Phase, L: Leaf, S: Side>(nest: &LoopNest<P, L, S>) -> String {
    nest.verify().unwrap_or_else(|e| panic!("{e}\n{nest}"));
    let text = nest.to_string();
    assert_eq!(text.parse::<LoopNest<P, L, S>>().unwrap().to_string(), text);
    text
}

/// Returns the text of the normal form of a lowered nest.
fn normal_text<L: Leaf, S: Side>(nest: &LoopNest<Lowered, L, S>) -> String {
    text(nest);
    text(&normalize::normalize(nest, 1).unwrap().nest)
}

impl Source {
    pub(crate) fn datatype(&self) -> &Datatype {
        match self {
            Source::Datatype(t) => t,
            _ => panic!("there is a nest above, not a datatype"),
        }
    }

    fn lowered(&self) -> LoopNest<Lowered> {
        match self {
            Source::Nest(nest) => nest.clone(),
            _ => lower::lower(self.datatype(), Bytes).unwrap(),
        }
    }

    fn normal(&self) -> LoopNest<Normal> {
        normalize::normalize(&self.lowered(), 1).unwrap().nest
    }

    /// Returns the text of the normal form of the datatype's nest, which is lowered with the given
    /// kind of leaves.
    fn normal_of(&self, leaves: impl Leaves) -> String {
        normal_text(&lower::lower(self.datatype(), leaves).unwrap())
    }

    fn scheduled(&self, direction: &str, level: &str) -> Plan<Scheduled> {
        let direction = Direction::BOTH.into_iter().find(|d| d.name() == direction).expect("pack or unpack");
        let target: Target = level.parse().unwrap();
        let plan = schedule::schedule(&self.normal(), direction, target).unwrap();
        plan.verify().unwrap_or_else(|e| panic!("{e}\n{plan}"));
        plan
    }
}

/// Returns the text that the block of a document must have, or `None` if the block is not
/// generated: if it is input for later blocks, or prose. Input is stored in `source`.
fn wanted(block: &Block, source: &mut Option<Source>) -> Option<String> {
    let words: Vec<&str> = block.tag.split_whitespace().collect();
    let from = source.as_ref();
    Some(match words[..] {
        ["datatype"] => {
            *source = Some(Source::Datatype(block.text.parse().unwrap()));
            return None;
        }
        ["nest", "input", ..] => {
            let nest: LoopNest<Lowered> = block.text.parse().unwrap();
            *source = Some(Source::Nest(nest));
            return None;
        }
        ["typemap"] => {
            let map = from?.datatype().type_map().map(|(basic, at)| format!("({basic}, {at})"));
            format!("{}\n", map.collect::<Vec<_>>().join(" "))
        }
        ["nest", "lowered"] => text(&from?.lowered()),
        ["nest", "normal"] => normal_text(&from?.lowered()),
        ["nest", "refine", ref other @ ..] => {
            let other = Source::Datatype(other.join(" ").parse().unwrap()).normal();
            text(&refine::refine(&from?.normal(), &other).unwrap().unwrap().nest)
        }
        ["nest", "normal", "native"] => from?.normal_of(Native),
        ["nest", "normal", "external32"] => from?.normal_of(External32),
        ["kind", ..] => kinds::shown(&words[1..], from?.datatype()),
        ["plan", "scheduled", direction, level] => from?.scheduled(direction, level).to_string(),
        ["plan", "legal", direction, level] => {
            let legal = legalize::legalize(&from?.scheduled(direction, level), 16).unwrap();
            legal.verify().unwrap_or_else(|e| panic!("{e}\n{legal}"));
            legal.to_string()
        }
        _ => return None,
    })
}

#[test]
fn nests_and_plans_are_what_the_stages_make() {
    for document in &files("docs", "md") {
        let text = read(document);
        let mut source = None;
        let mut texts = Vec::new();
        for block in blocks(&text) {
            if let Some(wanted) = wanted(&block, &mut source) {
                texts.push((block.line, wanted));
            }
        }
        hold(document, &with_blocks(&text, &texts));
    }
}

#[test]
fn tags_are_known() {
    let known = [
        "datatype", "forms", "typemap", "nest", "plan", "identity", "kind", "ebnf", "text", "rust", "sh", "c",
    ];
    for document in &files("docs", "md") {
        for block in blocks(&read(document)) {
            let tag = block.tag.split_whitespace().next().unwrap_or("");
            assert!(known.contains(&tag), "{document}:{}: nothing checks a block of `{tag}`", block.line);
        }
    }
}

#[test]
fn every_constructor_has_its_form() {
    let blocks = blocks(&read("docs/IR.md"));
    let forms: Vec<&str> = blocks.iter().filter(|b| b.tag == "forms").flat_map(|b| b.text.lines()).collect();
    for form in &forms {
        let t: Datatype = form.parse().unwrap_or_else(|e| panic!("{form}: {e}"));
        assert_eq!(format!("{t:#}"), *form, "the long form");
        assert_eq!(t.to_string().parse::<Datatype>().unwrap(), t, "the short form reads back");
    }
    let source = read("src/datatype/text/mod.rs");
    for rest in source.split("name: \"").skip(1) {
        let name = rest.split('"').next().unwrap();
        let listed = forms.iter().any(|f| f.split('(').next() == Some(name));
        assert!(listed, "docs/IR.md has no form of `{name}`");
    }
}

/// Returns the words in double quotes of a grammar in docs/IR.md. `rule` is the first rule of the
/// grammar.
fn terminals(rule: &str) -> Vec<String> {
    let blocks = blocks(&read("docs/IR.md"));
    let grammar = blocks.iter().find(|b| b.tag == "ebnf" && b.text.starts_with(&format!("{rule} ")));
    let grammar = grammar.unwrap_or_else(|| panic!("docs/IR.md has no grammar of {rule}"));
    grammar.text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_grammar_of_nests_has_the_words_of_the_parser() {
    let source = read("src/nest/text.rs");
    let grammar = terminals("nest");
    for call in ["self.eat(\"", "self.expect(\""] {
        for rest in source.split(call).skip(1) {
            let word = rest.split('"').next().unwrap();
            assert!(grammar.iter().any(|w| w == word), "the grammar of nests lacks `{word}`");
        }
    }
    let phases = read("src/nest/mod.rs") + &read("src/nest/leaf.rs");
    for word in &grammar {
        let quoted = format!("\"{word}\"");
        assert!(source.contains(&quoted) || phases.contains(&quoted), "no parser knows `{word}`");
    }
}

#[test]
fn the_grammar_of_plans_has_the_words_of_the_printer() {
    let source =
        ["plan/text.rs", "plan/mod.rs", "kind.rs", "kind/op.rs", "micro/family.rs", "micro/permute.rs"];
    let source: String = source.iter().map(|file| read(&format!("src/{file}"))).collect();
    for word in terminals("plan").iter().filter(|w| w.chars().all(char::is_alphabetic)) {
        assert!(source.contains(word.as_str()), "no printer writes `{word}`");
    }
}

#[test]
fn the_printer_of_plans_writes_the_words_of_the_grammar() {
    let grammar = terminals("plan");
    for call in ["write!(f, \"", "writeln!(f, \""] {
        for rest in read("src/plan/text.rs").split(call).skip(1) {
            let format = rest.split("\")").next().unwrap().split("\",").next().unwrap();
            // `format` is a format string of the printer. Take the words outside of its braces. The
            // single letter `i` is the prefix of a width and not a word of the grammar.
            let mut depth = 0;
            let words: String = format
                .chars()
                .map(|c| {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    if depth == 0 && c.is_alphabetic() { c } else { ' ' }
                })
                .collect();
            for word in words.split_whitespace().filter(|w| *w != "i") {
                assert!(grammar.iter().any(|w| w == word), "the grammar of plans lacks `{word}`");
            }
        }
    }
}

#[test]
fn families_have_their_roles() {
    let document = read("docs/IR.md");
    // The table of families in docs/IR.md need not list each family of micro-kernels, because the
    // source of a family states its roles itself. But each row of the table must be right.
    let table = document.lines().skip_while(|l| !l.starts_with("| Family | Roles |")).skip(2);
    let mut rows: Vec<&str> = table.take_while(|l| l.starts_with('|')).collect();
    assert!(rows.len() > 1, "docs/IR.md has a table of families");
    let plans: String = ["schedule", "legalize"].map(filetests).concat();
    for family in FAMILIES {
        let mut roles = (family.parameters)(Direction::Pack).to_vec();
        roles.retain(|role| !role.is_address());
        roles.sort_unstable();
        let words: Vec<String> = roles.iter().map(|role| format!("`{}`", role.name())).collect();
        let row = format!("| `{}` | {} |", family.name, words.join(" "));
        rows.retain(|found| !found.starts_with(&row));
        // Packing and unpacking have the same roles, possibly in another order.
        let mut others = (family.parameters)(Direction::Unpack).to_vec();
        others.retain(|role| !role.is_address());
        others.sort_unstable();
        assert_eq!(roles, others, "{}", family.name);
        let shown = plans.contains(&format!("call {}", family.name));
        assert!(shown, "no filetest of the schedule shows {}", family.name);
    }
    assert!(rows.is_empty(), "docs/IR.md: no family has that name and these roles: {rows:#?}");
}

/// Returns the text of all filetests of a stage of the compiler.
fn filetests(stage: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests").join(stage);
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn invariants_are_those_of_the_verifiers() {
    let document = read("docs/IR.md");
    for verifier in ["src/nest/verify.rs", "src/plan/verify.rs"] {
        let docs: Vec<String> = read(verifier)
            .lines()
            .filter_map(|l| l.strip_prefix("//! "))
            .filter(|l| l.starts_with(|c: char| c.is_ascii_digit()) || l.starts_with("   "))
            .map(|l| l.replace("(super::MAX_MOVES)", ""))
            .collect();
        assert!(docs.len() >= 4, "{verifier} lists its invariants");
        for line in docs {
            assert!(document.contains(&line), "docs/IR.md lacks the invariant of {verifier}: {line}");
        }
    }
}
