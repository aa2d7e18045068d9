//! Tests that the checked-in header and Fortran files equal the files that are generated from the
//! table.

use std::path::Path;

use super::bindings::bindings;
use super::header::header;
use super::module::module;
use super::pieces::Pieces;
use super::{Declarations, NAMES, What, parse, words};
use crate::HERE;

const COMMAND: &str = "DDTC_BLESS=1 cargo test -p ddtc-capi --test installed table::interfaces";

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(HERE).join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the path and text of each file that is generated from a table and the text of ddtc.h.
/// Panics if the table is wrong, or does not use all pieces.
fn made(table: &str, ddtc: &str) -> [(&'static str, String); 3] {
    let (entries, ddtc) = (parse(table), Declarations::parse(ddtc));
    let c = Pieces::parse(include_str!("pieces.h"), "//:");
    let fortran = Pieces::parse(include_str!("pieces.f90"), "!:");
    for name in entries.iter().filter_map(|e| if let What::Text(name) = &e.what { Some(name) } else { None })
    {
        assert!(c.take(name).or(fortran.take(name)).is_some(), "text {name} is in neither file");
    }
    let header = header(&entries, &ddtc, &c);
    let module = module(&entries, &ddtc, &fortran);
    for name in
        entries.iter().filter_map(|e| if let What::Fortran(name) = &e.what { Some(name) } else { None })
    {
        assert!(words(&module).any(|w| w.eq_ignore_ascii_case(name)), "{name} is not in the module");
    }
    let bindings = bindings(&entries, &module, &ddtc, &fortran);
    assert_eq!([c.left(), fortran.left()], [[""; 0]; 2], "pieces that the table does not ask for");
    [("include/ddtc_mpi.h", header), ("fortran/ddtc_c.f90", bindings), ("fortran/ddtc_mpi.f90", module)]
}

#[test]
fn the_files_are_made_of_the_table() {
    let bless = std::env::var("DDTC_BLESS").is_ok_and(|v| v == "1");
    for (path, text) in made(NAMES, &read("include/ddtc.h")) {
        let found = read(path);
        if bless && found != text {
            // Other tests may be reading the file, so it is replaced in one step.
            let draft = Path::new(HERE).join(format!("{path}.draft"));
            std::fs::write(&draft, text).expect("draft");
            std::fs::rename(draft, Path::new(HERE).join(path)).expect("file");
            continue;
        }
        let other = found.lines().zip(text.lines()).position(|(a, b)| a != b);
        let line = other.unwrap_or(found.lines().count().min(text.lines().count()));
        let at = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
        let (has, wanted) = (at(&found), at(&text));
        assert!(found == text, "{path}:{}:\n- {has}\n+ {wanted}\n{COMMAND}", line + 1);
    }
}

/// Checks that a single line of names.txt can add a function to all three generated files. This
/// requires that the argument types alone determine the function bodies.
#[test]
fn a_function_takes_a_line() {
    let with = |line: &str, declaration: &str| {
        let end = "\n#ifdef __cplusplus\n}";
        let header = read("include/ddtc.h").replace(end, &format!("{declaration}\n{end}"));
        made(&format!("{NAMES}{line}\n"), &header).map(|(_, text)| text)
    };
    let [header, bindings, module] = with(
        "both int MPI_Type_twice_c(MPI_Count count, const MPI_Datatype array_of_types[], MPI_Info info, MPI_Comm comm, MPI_Datatype *newtype)",
        "int ddtc_type_twice_c(ddtc_count count, const ddtc_datatype types[], ddtc_info info, ddtc_datatype *newtype);",
    );
    let expected = "\
static inline int MPI_Type_twice_c(MPI_Count count, const MPI_Datatype array_of_types[], MPI_Info info, MPI_Comm comm,
    MPI_Datatype *newtype)
{
    DDTC_MPI_COMM(comm, \"MPI_Type_twice_c\");
    return ddtc_mpi_check_on(comm, ddtc_type_twice_c(count, array_of_types, info, newtype), \"MPI_Type_twice_c\");
}
";
    assert!(header.contains(expected), "{header}");
    let expected = "
    integer(c_int) function ddtc_type_twice_c(count, types, info, newtype) bind(C)
      import
      integer(c_int64_t), value :: count
      type(c_ptr), intent(in) :: types(*)
      integer(c_intptr_t), value :: info
      type(c_ptr), intent(inout) :: newtype
    end function
";
    assert!(bindings.contains(expected), "{bindings}");
    let expected = "
  subroutine MPI_Type_twice_c(count, array_of_types, info, comm, newtype, ierror)
    integer(MPI_COUNT_KIND), intent(in) :: count
    integer, intent(in) :: array_of_types(*), info, comm
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr), allocatable :: c_array_of_types(:)
    type(c_ptr) :: c_newtype
    integer :: code
    code = known(comm, 'MPI_Type_twice_c')
    if (code == 0) code = take_all(int(count, MPI_COUNT_KIND), array_of_types, c_array_of_types)
    if (code == 0) code = ddtc_type_twice_c(count, c_array_of_types, int(info, WIDE), c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_twice_c', ierror, comm)
  end subroutine
";
    assert!(module.contains(expected), "{module}");
}

/// Checks that a line of the table is refused if it contradicts ddtc.h or has an unknown form. The
/// message must say what is wrong.
#[test]
fn what_does_not_fit_is_refused() {
    let ddtc = read("include/ddtc.h");
    for (line, said) in [
        ("both int MPI_Type_none(int count)", "ddtc_type_none is not in ddtc.h"),
        ("c int MPI_Type_none(MPI_Datatype t); = ddtc_type_size", "arguments of ddtc_type_size"),
        ("fortran int MPI_Type_none(MPI_Datatype t); = ddtc_type_size", "arguments of ddtc_type_size"),
        ("both int MPI_Type_none(int count); = ddtc_type_dup; twice", "twice in: int MPI_Type_none"),
        ("both int MPI_Type_none(int count); null size", "size is no argument"),
        ("fortran int MPI_Type_none(MPI_Session s); = ddtc_type_commit", "what MPI_Session is in Fortran"),
        (
            "fortran int MPI_Type_none(MPI_Datatype t[]); = ddtc_type_commit",
            "how t is converted is not known",
        ),
        ("fortran MPI_NONE", "MPI_NONE is not in the module"),
        ("pointer ddtc_pack size: type(*)", "pointer ddtc_pack size is of no use"),
        ("define\n  MPI_NONE", "MPI_NONE has no value"),
        ("  MPI_NONE 1", "a constant in no group"),
        ("text none", "text none is in neither file"),
        ("// nothing", "a comment on nothing"),
        ("macro MPI_NONE", "macro is no kind of line"),
    ] {
        let refused = std::panic::catch_unwind(|| made(&format!("{NAMES}{line}\n"), &ddtc)).expect_err(line);
        let message = refused.downcast_ref::<String>().expect("a message");
        assert!(message.contains(said), "{line}: {message}");
    }
}
