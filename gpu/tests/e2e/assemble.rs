//! Checks that `ptxas`, NVIDIA's assembler, accepts every kernel for nine kinds of GPUs between
//! sm_70 and sm_120, and that the kernels use no local memory and few registers. This test belongs
//! to the end-to-end tests (e2e), because pip has to download the assembler.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ddtc::internal::kind::Direction;
use ddtc_gpu::kernel::WIDTHS;
use ddtc_gpu::per_element;
use ddtc_gpu::selection::all_kernels;
use ddtc_gpu::strided::MAX_DIVISIONS;

/// Line of a pip requirements file for the package that contains the assembler. This release of the
/// package is the last one whose assembler supports sm_70. The hashes are those of the package's
/// wheels for x86-64 and aarch64.
const WHEEL: &str = "nvidia-cuda-nvcc-cu12==12.9.86 \
--hash=sha256:5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0 --hash=sha256:44e1eca4d08926193a558d2434b1bf83d57b4d5743e0c431c0c83d51da1df62b\n";

/// Architectures of GPUs for which the kernels are assembled, from Volta (sm_70) to Blackwell for
/// workstations (sm_120).
const TARGETS: [&str; 9] =
    ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"];

/// Maximum number of registers that one thread of a kernel may use. With this number, a
/// multiprocessor that has 65536 registers runs four blocks of 256 threads at the same time.
const MAX_REGISTERS: u32 = 64;

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Installs the assembler in the folder `folder`, and returns the path of its executable file. pip
/// checks the hash of the package.
fn assembler(folder: &Path) -> PathBuf {
    let requirements = folder.join("requirements.txt");
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(&requirements, WHEEL).unwrap();
    let packages = folder.join("packages");
    run(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")));
    run(Command::new(folder.join("venv/bin/pip"))
        .args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--require-hashes",
            "--upgrade",
        ])
        .arg("--target")
        .arg(&packages)
        .arg("-r")
        .arg(&requirements));
    packages.join("nvidia/cuda_nvcc/bin/ptxas")
}

#[test]
fn every_kernel_is_assembled() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ptxas");
    let assembler = assembler(&folder);
    // Write all kernels into the file of a single module. The text of each kernel is a module of
    // its own, which begins with the directives `.version`, `.target` and `.address_size`. Keep
    // these directives only once, at the beginning of the file.
    // The kernels `per_element` of the benchmark program `judge` are not among those that ddtc
    // chooses. A layout has at most `MAX_DIVISIONS` nested loops.
    let mut kernels = all_kernels();
    for (element, levels) in WIDTHS.into_iter().flat_map(|w| (1..=MAX_DIVISIONS).map(move |n| (w, n))) {
        kernels.extend(Direction::BOTH.map(|direction| per_element::kernel(element, levels, direction)));
    }
    let mut text = String::new();
    for kernel in &kernels {
        let at = kernel.text.find(".visible").expect("a kernel");
        text += if text.is_empty() { &kernel.text } else { &kernel.text[at..] };
    }
    let source = folder.join("kernels.ptx");
    std::fs::write(&source, text).unwrap();
    // Assemble for all architectures in parallel, because each run of the assembler uses only one
    // core.
    let started = TARGETS.map(|target| {
        let mut command = Command::new(&assembler);
        command.args(["--verbose", "--gpu-name", target, "--output-file"]);
        command.arg(folder.join(format!("{target}.cubin"))).arg(&source);
        (target, command.stderr(Stdio::piped()).spawn().expect("the assembler"))
    });
    for (target, assembler) in started {
        let output = assembler.wait_with_output().expect("the assembler");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{target}: {said}");
        check(target, &said, kernels.len());
    }
}

/// Checks `said`, which the assembler printed for the architecture `target`. It must describe
/// `number` kernels. Each of them must use no local memory and at most [`MAX_REGISTERS`] registers.
fn check(target: &str, said: &str, number: usize) {
    let frames: Vec<&str> = said.lines().filter(|l| l.contains("bytes stack frame")).collect();
    assert_eq!(frames.len(), number, "{target}: {said}");
    for frame in frames {
        let without = "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
        assert_eq!(frame.trim(), without, "{target}");
    }
    let registers: Vec<u32> = said
        .lines()
        .filter_map(|l| l.split("Used ").nth(1)?.split(" registers").next()?.parse().ok())
        .collect();
    assert_eq!(registers.len(), number, "{target}: {said}");
    let most = registers.into_iter().max().expect("a kernel");
    assert!(most <= MAX_REGISTERS, "{target}: {most} registers");
}
