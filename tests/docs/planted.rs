//! Tests of tests/mutants/planted.txt, which lists faults that can be planted into the sources to
//! see whether the tests find them. Each fault must still fit its place in the sources, because a
//! fault that a change of the sources has made obsolete is useless.

use crate::text::read;

#[test]
fn planted_faults_stand_in_the_sources() {
    let text = read("tests/mutants/planted.txt");
    let mut faults = 0;
    for block in text.split("\n= ").skip(1) {
        let (head, body) = block.split_once('\n').expect("a head and what is planted");
        let columns: Vec<&str> = head.split('|').map(str::trim).collect();
        let [name, file, _] = columns[..] else { panic!("name, file and test: {head}") };
        let old: Vec<&str> =
            body.lines().filter(|line| line.starts_with('-')).map(|l| l.get(2..).unwrap_or("")).collect();
        assert!(!old.is_empty(), "{name}: nothing is replaced");
        assert_eq!(read(file).matches(&old.join("\n")).count(), 1, "{name}: once in {file}");
        faults += 1;
    }
    assert!(faults >= 40, "{faults} faults");
}
