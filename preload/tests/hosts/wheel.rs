//! Test of the Python package. The test builds the wheel, checks its platform tag, and installs it
//! in an environment without Rust. Then it uses everything in the wheel: the command under mpiexec,
//! the module, its calls for device memory, its documents, its types under mypy, and its pictures
//! in a notebook.

#[path = "../../../gpu/tests/standin/build.rs"]
mod standin;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup::{Host, built, lossy, report, scratch};

const NUMPY: &str = "numpy==2.3.5";
const MPI4PY: &str = "mpi4py==4.1.2";
/// Python packages with the tools that check the types of the module `ddtc` and that run a
/// notebook.
const TOOLS: &str = "mypy==2.4.1 nbconvert==7.17.2 ipykernel==7.4.0";

fn done(command: &mut Command) -> (String, String) {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (text, errors) = (lossy(&out.stdout), lossy(&out.stderr));
    assert!(out.status.success(), "{command:?}\n{text}\n{errors}");
    (text, errors)
}

fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("workspace").join("python")
}

/// Returns that command of docs/GUIDE.md which installs the wheel. Its line begins with `pip
/// install`.
fn guide_line() -> String {
    let guide = fs::read_to_string(python().join("../docs/GUIDE.md")).expect("GUIDE.md");
    guide.lines().find(|l| l.starts_with("pip install ")).expect("a line that installs the wheel").to_owned()
}

const PROGRAM: &str = "\
from mpi4py import MPI
import numpy
comm = MPI.COMM_WORLD
points = numpy.dtype([('id', 'i4'), ('mass', 'f8'), ('at', 'f4', (3,))], align=True)
record = MPI.Datatype.Create_struct([1, 1, 3], [0, 8, 16], [MPI.INT, MPI.DOUBLE, MPI.FLOAT]).Create_resized(0, 32).Commit()
data = numpy.zeros(1000, points)
if comm.rank == 0:
    data['id'] = numpy.arange(1000)
    comm.Send([data, 1000, record], 1)
else:
    comm.Recv([data, 1000, record], 0)
    assert (data['id'] == numpy.arange(1000)).all()
";

#[test]
fn from_the_wheel_to_a_converted_message() {
    let folder = scratch("wheel");
    let profile = built();
    let name = profile.file_name().unwrap().to_str().unwrap();
    let mut build = Command::new("sh");
    build.arg(python().join("../packaging/wheel.sh")).arg("--out").arg(&folder);
    build.args(["--profile", if name == "debug" { "dev" } else { name }, "--built"]).arg(&profile);
    build.env("CARGO", env!("CARGO")).env("CARGO_TARGET_DIR", profile.parent().unwrap());
    let (said, _) = done(&mut build);
    // The script that builds the wheel prints the verdict of the tool auditwheel, which must give a
    // manylinux tag.
    assert!(said.contains("manylinux_2_"), "{said}");
    let wheels: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(wheels.len() == 1 && wheels[0].contains("-cp311-abi3-manylinux_2_"), "{wheels:?}");

    // The virtual environment of this test has no cargo in PATH. It gets MPICH from the wheel of
    // another package.
    let env = folder.join("env");
    done(Command::new("python3").args(["-m", "venv"]).arg(&env));
    let (package, version) = Host::Mpich.release();
    let shell = |command: &str| {
        let mut shell = Command::new("sh");
        for name in
            std::env::vars().map(|(name, _)| name).filter(|n| n.starts_with("DDTC_") || n.starts_with("LD_"))
        {
            shell.env_remove(name);
        }
        shell.args(["-c", command]).current_dir(&folder);
        shell.env("PATH", format!("{}:/usr/bin:/bin", env.join("bin").display())).env("VIRTUAL_ENV", &env);
        shell.env("XDG_CONFIG_HOME", folder.join("config"));
        done(&mut shell)
    };
    shell(&format!("pip install --quiet {package}=={version} {MPI4PY} {NUMPY}"));
    shell(&guide_line());
    shell("test -f env/lib/python*/site-packages/ddtc-*.dist-info/licenses/THIRD-PARTY");
    let (doctor, _) = shell("ddtc doctor -- mpiexec -n 2");
    assert!(
        doctor.ends_with("problems         none\n") && doctor.contains("site-packages/ddtc/bin"),
        "{doctor}"
    );
    fs::write(folder.join("app.py"), PROGRAM).unwrap();
    // The Python program sends one message, which must be converted. By default a type is compiled
    // only if its uses pay for that, and measured times decide which messages are converted. These
    // settings convert the message at once.
    shell("DDTC_POLICY=all ddtc preload --mode commit --report counts.json -- mpiexec -n 2 python app.py");
    let counts = report(&fs::read_to_string(folder.join("counts.json")).unwrap());
    assert_eq!((counts["messages_packed"], counts["messages_unpacked"]), (1, 1), "{counts:?}");

    // Check the installed Python module by its own tests and by the examples in its documents.
    for file in ["README.md", "test_ddtc.py", "test_cuda.py"] {
        fs::copy(python().join(file), folder.join(file)).unwrap();
    }
    let (_, tests) = shell("python test_ddtc.py");
    assert!(tests.contains("\nOK\n"), "{tests}");
    // The calls for device memory run on a library that takes the place of NVIDIA's driver.
    standin::standin(&folder.join("standin"));
    let (_, tests) = shell("LD_LIBRARY_PATH=\"$PWD/standin\" python test_cuda.py");
    assert!(tests.contains("\nOK\n"), "{tests}");
    shell("python -m doctest -o ELLIPSIS README.md");
    shell(
        "python -c 'import doctest, ddtc; assert doctest.testmod(ddtc).attempted >= 4 and not doctest.testmod(ddtc).failed'",
    );
    // The type stubs must name everything in the module `ddtc` with its arguments, and nothing
    // else. mypy must accept the program typed_ddtc.py, which is written as a user would, and must
    // notice the mistakes in it.
    shell(&format!("pip install --quiet {TOOLS}"));
    shell("stubtest ddtc");
    shell("mypy --strict -p ddtc");
    fs::copy(python().join("typed_ddtc.py"), folder.join("typed_ddtc.py")).unwrap();
    shell("mypy --strict typed_ddtc.py && python typed_ddtc.py");
    // Run the notebook draw.ipynb and check the sizes of its pictures in a browser.
    fs::copy(python().join("draw.ipynb"), folder.join("draw.ipynb")).unwrap();
    shell("env HOME=\"$PWD\" jupyter nbconvert --execute --to html --output drawn.html draw.ipynb");
    let html = fs::read_to_string(folder.join("drawn.html")).unwrap();
    assert!(html.contains("24 B in 3 blocks"), "characters where it is printed");
    for image in pictures(&folder, &html) {
        let [width, shown, room] = image[..] else { panic!("{image:?}") };
        assert!(width > 600, "an image that the browser reads: {image:?}");
        assert!(shown <= room && shown > 300, "shrunk to the notebook's width: {image:?}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Returns three widths in pixels for each picture among the outputs of a notebook, as a browser
/// shows it in a narrow window: the width of the image file, the width in which it is shown, and
/// the width of its parent element.
fn pictures(folder: &Path, html: &str) -> Vec<Vec<u32>> {
    let measure = "<script>addEventListener('load', () => { document.title = [...document.querySelectorAll('.jp-OutputArea img')].map(i => \
                   `${i.naturalWidth} ${i.clientWidth} ${i.parentElement.clientWidth}`).join(';') })</script>";
    // The template of the HTML page refers to scripts of other sites. The pictures need none of
    // them, and the browser must reach no other site.
    fs::write(folder.join("page.html"), format!("{html}{measure}")).unwrap();
    let named = std::env::var_os("DDTC_BROWSER").map(PathBuf::from);
    let browser = named.unwrap_or_else(|| "chromium".into());
    let mut look = Command::new(&browser);
    look.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]);
    look.args([
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--virtual-time-budget=10000",
        "--window-size=800,1800",
    ]);
    look.arg(format!("--user-data-dir={}", folder.join("profile").display())).arg("--dump-dom");
    let out = look.arg(format!("file://{}", folder.join("page.html").display())).output();
    let out = out.unwrap_or_else(|e| {
        panic!(
            "{}: {e}: install it (Debian: apt-get install chromium), or name one in DDTC_BROWSER",
            browser.display()
        )
    });
    let page = lossy(&out.stdout);
    let title = page.split("<title>").nth(1).and_then(|t| t.split("</title>").next()).unwrap_or_default();
    let images: Vec<Vec<u32>> =
        title.split(';').map(|i| i.split(' ').filter_map(|n| n.parse().ok()).collect()).collect();
    assert_eq!(images.len(), 3, "pictures in the page: {title}\n{}", lossy(&out.stderr));
    images
}
