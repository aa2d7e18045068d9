//! Tests of the command `ddtc report` as a user calls it, and of the page that it writes, in a real
//! browser: what the script of the page does, the colours, and that the page fits into a narrow
//! window.

#[path = "../../preload/tests/hosts/build.rs"]
mod build;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::json;

/// Time after which a browser is taken to hang and is killed. Otherwise no test depends on this
/// length.
const HANGS: Duration = Duration::from_secs(600);

fn ddtc(arguments: &[&str]) -> Output {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| build::build("ddtc-cli").join("ddtc"));
    Command::new(program).args(arguments).output().unwrap()
}

/// Returns the path of a Chromium browser: the one that `DDTC_BROWSER` names, or else the first one
/// on the search path.
fn browser() -> PathBuf {
    if let Some(named) = std::env::var_os("DDTC_BROWSER") {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    found.into_iter().find(|file| file.is_file()).unwrap_or_else(|| {
        panic!(
            "no Chromium on the path, and the report is looked at in one: install it (Debian: apt-get install chromium), or name one in DDTC_BROWSER"
        )
    })
}

/// Runs a headless browser on `page` and returns its standard output. The browser puts its profile
/// and its output into `folder`.
fn browse(folder: &Path, flags: &[&str], page: &str) -> String {
    let profile = folder.join("profile");
    let _ = std::fs::remove_dir_all(&profile);
    let files = ["out", "err"].map(|name| folder.join(name));
    let [out, err] = files.each_ref().map(|file| std::fs::File::create(file).unwrap());
    let program = browser();
    let mut child = Command::new(&program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
        ])
        .args(["--disable-dev-shm-usage", "--virtual-time-budget=10000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(flags)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > HANGS {
            let _ = child.kill();
            panic!("{} hangs on {page}", program.display());
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let [out, err] = files.map(|file| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned());
    assert!(status.success(), "{} on {page}: {status}\n{err}", program.display());
    out
}

/// Makes a folder such as a run of `ddtc-hunt` leaves, with five findings. Runs `ddtc report` on
/// it, so that the folder also has the report, and returns the folder.
fn report(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    // Write the records of the findings and of the run by hand, with one C program per finding. The
    // command `ddtc report` then makes the report from these files.
    let library = json!({"name": "Example MPI", "version": "1.2", "path": "/opt/example/lib/libmpi.so.12", "flavour": "mpich"});
    // The fields of each row are: fingerprint, class, check, section, datatype, constructors,
    // count, confirmed, case and seconds.
    let rows = [
        ("aa", "bug", "unpack", "5.1.2", "hvector(3, 1, -1, int)", 1, 2, Some(true), 90, 0.5),
        ("bb", "open", "elements", "5.1.11", "contiguous(2, double_int)", 1, 1, None, 9, 1.5),
        (
            "cc",
            "bug",
            "external32",
            "14.5.2",
            "struct([1, 2], [0, 16], [int, complex32])",
            1,
            3,
            Some(true),
            1000,
            12.25,
        ),
        (
            "dd",
            "quality",
            "errors",
            "5.1.2",
            "subarray([8, 16], [4, 6], [2, 3], C, int)",
            1,
            1,
            Some(false),
            77,
            3.0,
        ),
        (
            "ee",
            "bug",
            "pack",
            "5.1.7",
            "resized(-8, 24, vector(2, 1, 3, <int & \"x\">))",
            2,
            17,
            Some(true),
            10,
            100.0,
        ),
    ];
    let mut lines = String::new();
    for (fingerprint, class, check, section, datatype, constructors, count, confirmed, case, seconds) in rows
    {
        let program = format!("{fingerprint}.c");
        std::fs::write(folder.join(&program), "#include <mpi.h>\nint main(void)\n{\n    return 1 < 0;\n}\n")
            .unwrap();
        let finding = json!({
            "fingerprint": fingerprint, "class": class, "check": check, "library": library, "datatype": datatype,
            "rule": {"section": section, "text": "Entries are packed in the order of the type map."},
            "original": format!("dup({datatype})"), "count": count, "constructors": constructors,
            "expected": "00 01 02 03 04 05 06 07", "got": "00 01 02 03 00 01 02 03", "program": program,
            "confirmed": confirmed, "seed": 7, "case": case, "seconds": seconds,
        });
        lines += &format!("{finding}\n");
    }
    std::fs::write(folder.join("findings.jsonl"), lines).unwrap();
    let run = json!({
        "library": library, "seed": 7, "cases": 1_234_567, "seconds": 60.5, "rate": 20_406.1, "jobs": 2, "workers": {"died": 1, "hung": 0},
        "coverage": {"hvector": 80_000, "byte stride -1": 1200, "more than 1000 handles": 3, "darray over pairs": 0},
        "found": {"bug": 3, "quality": 1, "open": 1},
    });
    std::fs::write(folder.join("run.json"), run.to_string()).unwrap();
    let output = ddtc(&["report", folder.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = String::from_utf8(output.stdout).unwrap();
    assert!(output.ends_with("report.json: 5 findings\n"), "{output}");
    folder
}

/// Returns two lists of fingerprints: those of the findings that the page `dom` shows, in the order
/// of the page, and those of the findings whose details are open.
fn shown(dom: &str) -> (String, String) {
    assert!(dom.contains("id=\"trouble\" class=\"note\" role=\"alert\" hidden"), "the script failed:\n{dom}");
    let (mut order, mut open) = (Vec::new(), Vec::new());
    for part in dom.split("<tbody class=\"finding\" id=\"f-").skip(1) {
        let (name, rest) = part.split_once('"').unwrap();
        let (tag, rest) = rest.split_once('>').unwrap();
        if !tag.contains("hidden") {
            order.push(name);
        }
        if rest.split("</tbody>").next().unwrap().contains("<details open") {
            open.push(name);
        }
    }
    (order.join(" "), open.join(" "))
}

#[test]
fn views_are_kept_in_the_fragment() {
    let folder = report("report-views");
    let page = format!("file://{}/report.html", folder.display());
    for (fragment, order, open) in [
        ("", "aa bb cc dd ee", ""),
        ("#sort=case", "bb ee dd aa cc", ""),
        ("#sort=case&down", "cc aa dd ee bb", ""),
        ("#sort=section", "aa dd ee bb cc", ""),
        ("#sort=seconds&down=", "ee cc dd bb aa", ""),
        ("#class=bug&sort=check", "cc ee aa", ""),
        ("#class=bug&check=pack", "ee", ""),
        ("#text=SUBARRAY&open", "dd", "aa bb cc dd ee"),
        ("#class=none&check=none&sort=none", "aa bb cc dd ee", ""),
        ("#f-cc", "aa bb cc dd ee", "cc"),
    ] {
        let dom = browse(&folder, &["--dump-dom"], &format!("{page}{fragment}"));
        assert_eq!(shown(&dom), (order.to_owned(), open.to_owned()), "{fragment}");
    }
}

/// Adds a script to the end of the page of the report. The script uses the page as a reader would.
/// Returns the page in the state that it has after the script ran.
fn used(folder: &Path, script: &str, flags: &[&str]) -> String {
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    let end = "</body>";
    assert_eq!(page.matches(end).count(), 1);
    let used = page.replace(end, &format!("<script>{script}</script>{end}"));
    std::fs::write(folder.join("used.html"), used).unwrap();
    browse(folder, &[&["--dump-dom"], flags].concat(), &format!("file://{}/used.html", folder.display()))
}

#[test]
fn heads_sort_and_fields_filter() {
    let folder = report("report-used");
    let click = "const head = document.querySelector('th[data-key=case] button'); head.click();";
    let dom = used(&folder, click, &[]);
    assert_eq!(shown(&dom).0, "bb ee dd aa cc");
    assert!(dom.contains("data-key=\"case\" class=\"number\" aria-sort=\"ascending\""), "{dom}");
    let dom = used(
        &folder,
        &format!(
            "{click} head.click(); const form = document.getElementById('filters'); form.elements.class.value = 'bug'; \
             form.elements.class.dispatchEvent(new Event('input', {{bubbles: true}})); document.getElementById('toggle').click(); \
             document.body.dataset.fragment = location.hash; document.body.dataset.number = document.getElementById('number').value;"
        ),
        &[],
    );
    assert_eq!(shown(&dom), ("cc aa ee".to_owned(), "cc aa dd ee bb".to_owned()));
    assert!(dom.contains("data-fragment=\"#sort=case&amp;down=&amp;class=bug\""), "{dom}");
    assert!(dom.contains("data-number=\"3 of 5\""), "{dom}");
    // If a script throws an error, the page shows the error as text.
    let dom = used(&folder, "throw new Error('<made up>');", &[]);
    assert!(dom.contains("The script of this page failed: Uncaught Error: &lt;made up&gt;"), "{dom}");
}

#[test]
fn pictures_and_programs_are_there_and_a_narrow_window_holds_them() {
    let folder = report("report-narrow");
    let script = "document.getElementById('toggle').click(); document.querySelectorAll('details').forEach(d => { d.open = true; }); \
        const all = document.documentElement; document.body.dataset.over = all.scrollWidth - all.clientWidth; \
        const shown = [...document.querySelectorAll('figure svg')].filter(s => s.getBoundingClientRect().width > 100 && s.getBoundingClientRect().right <= all.clientWidth); \
        document.body.dataset.pictures = shown.length; document.body.dataset.titles = document.querySelectorAll('svg rect > title').length > 20; \
        document.body.dataset.loaded = performance.getEntriesByType('resource').length; \
        document.body.dataset.programs = [...document.querySelectorAll('.program pre')].filter(p => p.offsetHeight > 60).length;";
    for size in ["--window-size=500,900", "--window-size=1400,900"] {
        let dom = used(&folder, script, &[size]);
        for (key, value) in
            [("over", "0"), ("pictures", "4"), ("titles", "true"), ("loaded", "0"), ("programs", "5")]
        {
            assert!(dom.contains(&format!("data-{key}=\"{value}\"")), "{size}: {key} is not {value}:\n{dom}");
        }
    }
}

/// Returns the colour of the pixel in the lower right corner of the picture in `file`.
fn corner(file: &Path) -> Vec<u8> {
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(file).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((frame.width, frame.height), (1200, 1000), "{}", file.display());
    let pixels = &pixels[..frame.buffer_size()];
    pixels[pixels.len() - frame.color_type.samples()..][..3].to_vec()
}

#[test]
fn light_and_dark() {
    let folder = report("report-colours");
    let page = format!("file://{}/report.html#open", folder.display());
    for (name, flag, ground) in [
        ("light", "--disable-extensions", [255, 255, 255]),
        ("dark", "--blink-settings=preferredColorScheme=0", [13, 17, 23]),
    ] {
        let file = folder.join(format!("{name}.png"));
        browse(
            &folder,
            &[flag, "--window-size=1200,1000", &format!("--screenshot={}", file.display())],
            &page,
        );
        assert_eq!(corner(&file), ground, "{name}");
    }
}
