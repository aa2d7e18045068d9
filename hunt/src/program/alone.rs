//! The file `finding.h`, which the programs of findings share. A program either includes this file,
//! or stands alone and contains the necessary parts of it.

use std::iter::once;

/// Text of `finding.h`.
pub(super) const FINDING_H: &str = include_str!("../../../docs/findings/finding.h");

/// The line by which a program in docs/findings includes `finding.h`.
pub(super) const INCLUDE: &str = "#include \"../finding.h\"";

/// Lines before and after the parts of `finding.h` in a program that stands alone. These parts take
/// the place of the line [`INCLUDE`].
const BEGIN: &str = "/* From finding.h: */";
const END: &str = "/* End of what is from finding.h. */";

/// Returns the path by which a program includes `finding.h`, or none if the program stands alone.
pub fn shared(program: &str) -> Option<&str> {
    program.lines().find_map(included)
}

fn included(line: &str) -> Option<&str> {
    let path = line.strip_prefix("#include \"")?.strip_suffix('"')?;
    (path.rsplit('/').next() == Some("finding.h")).then_some(path)
}

/// Returns the program with the necessary parts of `header` in place of the line that includes the
/// header. The result is a single file, which can be compiled by people who have no other file.
#[must_use]
pub fn alone(program: &str, header: &str) -> String {
    let checks: Vec<&str> = program.lines().filter_map(|line| line.strip_prefix("#define ")).collect();
    let mut out = String::new();
    for line in program.lines() {
        let lines = match included(line) {
            Some(_) => once(BEGIN).chain(parts(header, &checks)).chain(once(END)).collect(),
            None => vec![line],
        };
        lines.into_iter().for_each(|line| out.extend([line, "\n"]));
    }
    out
}

/// Returns the lines of the header that the given checks need, without the header's opening
/// comment. Lines for other checks are left out, and so are the preprocessor conditions that select
/// lines by check.
fn parts<'h>(header: &'h str, checks: &[&str]) -> Vec<&'h str> {
    // The values of the preprocessor conditions around the current line. None stands for a
    // condition that stays in the program for the compiler.
    let mut conditions: Vec<Option<bool>> = Vec::new();
    let mut lines = Vec::new();
    for line in header.lines().skip_while(|line| !line.starts_with("#include")) {
        let by_check = match line {
            _ if line.starts_with("#if defined CHECK_") => {
                let mut names = line.split("defined ").skip(1).filter_map(|rest| rest.split(' ').next());
                conditions.push(Some(names.any(|name| checks.contains(&name))));
                true
            }
            _ if line.starts_with("#if") => {
                conditions.push(None);
                false
            }
            "#endif" => match conditions.pop() {
                Some(None) | None => false,
                Some(Some(_)) => true,
            },
            _ => false,
        };
        let blank = line.is_empty() && lines.last().is_none_or(|last: &&str| last.is_empty());
        if !by_check && !blank && !conditions.contains(&Some(false)) {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_stands_alone_with_its_own_parts() {
        let header = "/* About it. */\n#include <mpi.h>\n#if defined CHECK_A\n#include <a.h>\n#endif\n\n\
                      #if defined CHECK_B || defined CHECK_A\n\n#if MPI_VERSION >= 4\nint new;\n#else\nint old;\n#endif\n#endif\n\n\
                      #if defined CHECK_B\n\nint b;\n#if MPI_VERSION >= 4\nint new_b;\n#endif\n#endif\n\nint last;\n";
        let program = "/* Title. */\n#define CHECK_A\n#include \"../finding.h\"\n\nint own;\n";
        let both = "#if MPI_VERSION >= 4\nint new;\n#else\nint old;\n#endif\n";
        assert_eq!(
            alone(program, header),
            format!(
                "/* Title. */\n#define CHECK_A\n{BEGIN}\n#include <mpi.h>\n#include <a.h>\n\n{both}\nint last;\n{END}\n\nint own;\n"
            )
        );
        assert!(
            alone(&program.replace("_A", "_B"), header)
                .contains("\nint b;\n#if MPI_VERSION >= 4\nint new_b;\n#endif\n")
        );
        // A program that does not include finding.h is unchanged.
        let other = program.replace("finding.h", "another.h");
        assert_eq!((alone(&other, header), shared(&other)), (other.clone(), None));
        assert_eq!(shared(program), Some("../finding.h"));
    }

    #[test]
    fn every_check_has_its_part() {
        for check in crate::Check::ALL {
            let name = format!("CHECK_{}", check.name().to_uppercase());
            let text = alone(&format!("#define {name}\n{INCLUDE}\n"), FINDING_H);
            assert!(!text.contains("#if defined CHECK") && text.contains("int main("), "{text}");
            assert!(text.contains(&format!("static void check_{}(MPI_Datatype t", check.name())), "{text}");
            // A program that stands alone has only the check functions of its own check.
            let own = text.matches("static void check_").count();
            assert_eq!(own, if check == crate::Check::Bounds { 5 } else { 1 }, "{text}");
        }
    }
}
