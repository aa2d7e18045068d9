//! `ddtc explain`, and subcommands such as `ddtc lower` that print the result of one stage of the
//! compiler. [`Engine::explain`] does the work.

use std::error::Error;
use std::fmt::Write as _;
use std::str::FromStr;

use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::engine::{Config, Engine, Explanation};
use ddtc::internal::kind::{Direction, Kind, Operation};
use ddtc::internal::methods::*;
use ddtc::internal::target::{Level, Target};
use ddtc_bench::bytes_in_words;

use crate::output::{out, outln};
use crate::{draw, gpu, tree};

/// Arguments of `ddtc explain`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    ddtc explain 'vector(count=34, blocklength=10, stride=64, double)'\n  \
    ddtc explain --unpack 'resized(0, 32, struct([1,1,3], [0,8,16], [int,double,float]))'\n  \
    ddtc explain --kind external32 'vector(100, 1, 3, int)'\n  \
    ddtc explain --kind sum:double 'vector(100, 1, 3, double)'\n  \
    ddtc explain --kind copy:FFT2D_gather.S FFT2D_scatter.S\n  \
    ddtc explain --target neon FFT2D_scatter.S\n  \
    ddtc explain --gpu --count 100000 'resized(0, 64, double)'")]
pub(crate) struct Args {
    #[command(flatten)]
    stage: StageArgs,
    /// Number of instances. Their sizes are printed, --svg draws them, and the output of --gpu is
    /// about packing and unpacking them. The code of the stages does not depend on this number
    /// [default: the count of the corpus entry if TYPE names one, otherwise 1]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Emit code with Cranelift, even on machines where ddtc has its own code generator (x86-64),
    /// and also print Cranelift's IR
    #[arg(long)]
    clif: bool,
    /// Instead of the stages, show how the instances would be packed and unpacked in the memory of
    /// an NVIDIA GPU. This prints the kernel and its grid, or the reason why the datatype is not
    /// supported. It also prints how many bytes of device memory would be read and written, and an
    /// upper bound of the speed, as a share of the speed of a plain copy. Nothing is run, and no
    /// GPU is needed
    #[arg(long, conflicts_with_all = ["unpack", "kind", "target", "clif"])]
    gpu: bool,
    /// Write a picture of the instances, as `ddtc draw` makes it, into this file, whose name must
    /// end in .svg
    #[arg(long, value_name = "FILE")]
    svg: Option<std::path::PathBuf>,
}

/// Arguments of the subcommands that print one stage.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    ddtc schedule 'vector(3, 2, 4, int)'\n  \
    ddtc emit --unpack --target avx512+vbmi vec_64B.S")]
pub(crate) struct StageArgs {
    /// A datatype in text notation, or the name of an entry of the corpus
    #[arg(value_name = "TYPE")]
    datatype: String,
    /// Show the stages for unpack instead of pack
    #[arg(long)]
    unpack: bool,
    /// What to do with each value. With bytes it is copied, with external32 it is converted, and
    /// with a reduction it is combined with the value in memory. The reductions are sum, prod, min,
    /// max, band, bor, bxor, land, lor, lxor, minloc, maxloc, replace and no_op. A reduction always
    /// shows the stages of unpack. A reduction, a colon and a basic type, as in sum:double, require
    /// that all elements are of that type. With copy:TYPE, the stages of a direct copy to the
    /// datatype TYPE are shown
    #[arg(long, value_name = "OPERATION", default_value = "bytes")]
    kind: RequestedKind,
    /// Target to plan and emit code for, even if this machine does not run it: baseline, avx2,
    /// avx512, avx512+vbmi or neon [default: this machine, at the CPU level of DDTC_TARGET if that
    /// is set]
    #[arg(long, visible_alias = "level")]
    target: Option<Target>,
}

/// Transfer that the option `--kind` asks for.
#[derive(Clone, Debug)]
enum RequestedKind {
    /// Pack or unpack, with an operation on each value. If a basic type is given, all elements must
    /// be of this type.
    Transfer(Operation, Option<Named>),
    /// Copy directly to another datatype, given as text or by the name of a corpus entry.
    Copy(String),
}

impl FromStr for RequestedKind {
    type Err = String;

    fn from_str(text: &str) -> Result<RequestedKind, String> {
        let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        if word == "copy" {
            let target = rest.filter(|rest| !rest.trim().is_empty());
            return target.map(|target| RequestedKind::Copy(target.to_owned())).ok_or_else(|| {
                "after copy, a colon and the datatype of the target must follow, as in copy:'vector(3, 1, 2, int)'".to_owned()
            });
        }
        let operation: Operation = word.parse().map_err(|e: ddtc::Error| e.to_string())?;
        let basic = match (operation, rest) {
            (_, None) => None,
            (Operation::Reduce(_), Some(name)) => Some(Named::from_name(name).ok_or_else(|| {
                format!("'{name}' must be the name of a basic type, such as int or double")
            })?),
            _ => return Err("only a reduction may be followed by a basic type, as in sum:double".to_owned()),
        };
        Ok(RequestedKind::Transfer(operation, basic))
    }
}

impl StageArgs {
    /// Describes the transfer in words, for the heading of the code.
    fn describe(&self) -> String {
        match &self.kind {
            RequestedKind::Transfer(operation, _) => self.transfer(*operation).to_string(),
            RequestedKind::Copy(to) => format!("copy to {to}"),
        }
    }

    fn transfer(&self, operation: Operation) -> Kind {
        let unpack = self.unpack || matches!(operation, Operation::Reduce(_));
        Kind { direction: if unpack { Direction::Unpack } else { Direction::Pack }, operation }
    }

    fn target(&self) -> Result<Target, Box<dyn Error>> {
        match self.target {
            Some(target) => Ok(target),
            None => Ok(Target::host(Level::asked(None)?)),
        }
    }

    /// Runs every stage for `t`, including those that a commit skips when it uses precompiled code.
    fn explanation(&self, t: &Datatype, native: bool) -> Result<Explanation, Box<dyn Error>> {
        let target = self.target()?;
        let engine = Engine::new(Config { precompiled: false, native, ..Config::default() });
        // Compile another type first: the first compile of a process includes one-time setup, so
        // its times would not be typical.
        engine.explain(&"vector(2, 1, 3, byte)".parse()?, Direction::Pack, target)?;
        match &self.kind {
            RequestedKind::Transfer(operation, basic) => {
                if let Some(basic) = *basic {
                    t.check_basic(operation.name(), basic)?;
                }
                Ok(engine.explain(t, self.transfer(*operation), target)?)
            }
            RequestedKind::Copy(_) if self.unpack => {
                Err("--unpack: must not be given with --kind copy, which has one direction: from TYPE to the datatype after the colon".into())
            }
            RequestedKind::Copy(to) => {
                Ok(engine.explain_copy(t, &ddtc::internal::corpus::asked(to)?.0, target)?)
            }
        }
    }
}

/// Maximum number of characters of the result of a stage that `ddtc explain` prints. The table of a
/// plan may have 10^5 rows, which nobody reads.
const MAX_TEXT: usize = 6000;

/// Runs the subcommand `ddtc explain`.
///
/// # Errors
/// If the type cannot be read, the picture or standard output cannot be written, or a stage fails.
/// With `--gpu`, also if the number of packed bytes does not fit in 63 bits.
pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let (t, count) = ddtc::internal::corpus::asked(&args.stage.datatype)?;
    let count = args.count.unwrap_or(count);
    if let Some(path) = &args.svg {
        draw::picture(path, &t, count, &args.stage.datatype)?;
    }
    // Print what depends on the datatype alone: sizes, and the tree of constructors.
    outln!("{}", sizes(&t, count))?;
    outln!("\ndatatype\n{}", tree::tree(&t))?;
    if args.gpu {
        out!("{}", gpu::explained(&t, count)?)?;
        return Ok(());
    }
    let explanation = args.stage.explanation(&t, !args.clif)?;
    // Print each stage with its time and, if it changed anything, its result.
    for stage in &explanation.stages {
        let time = stage.time.as_secs_f64() * 1e6;
        let note = if stage.unchanged { " (unchanged)" } else { "" };
        outln!("{}: {time:.1} us{note}", stage.name)?;
        if !stage.unchanged && !stage.text.is_empty() {
            outln!("{}", cut(&stage.text))?;
        }
    }
    for (stage, why) in &explanation.missing {
        outln!("{stage}: not shown: {why}")?;
    }
    outln!("origin: {} B between the buffer address and the address that the code gets", explanation.origin)?;
    // Print how the bytes would be moved after a commit. If no code can be compiled, print that the
    // layout is interpreted or, for a copy, that the bytes go through a buffer, and print the
    // reason. Otherwise list the code.
    match explanation.refusal {
        Some(reason) if matches!(args.stage.kind, RequestedKind::Copy(_)) => {
            outln!("copied through a buffer: {reason}")?;
        }
        Some(reason) => outln!("interpreted: {reason}")?,
        None => {
            outln!("schedule: {}", explanation.schedule)?;
            if explanation.listing.precompiled {
                outln!("a commit runs no code generator: precompiled code serves this shape")?;
            }
            if args.clif && !explanation.listing.ir.is_empty() {
                outln!("\nCranelift IR\n{}", cut(&explanation.listing.ir))?;
            }
            let (kind, code) = (args.stage.describe(), &explanation.code);
            if !code.is_empty() {
                outln!("\ncode for {kind}: {} B\n{}", code.len(), explanation.listing.code)?;
            }
        }
    }
    Ok(())
}

/// Returns a line with the sizes and bounds of `count` instances of `t`.
fn sizes(t: &Datatype, count: u64) -> String {
    let mut line = String::new();
    let size = u64::try_from(t.size()).unwrap_or(0);
    let payload = size.checked_mul(count).map_or_else(|| "over 2^64 B".into(), bytes_in_words);
    let _ = write!(line, "{count} instance(s): payload {payload}; size {} extent {}", t.size(), t.extent());
    let _ = write!(line, "; lb {} ub {} true {}..{}", t.lb(), t.ub(), t.true_lb(), t.true_ub());
    let _ = write!(line, "; {} arguments, depth {}", t.arguments(), t.depth());
    line
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} ... {} more bytes", &text[..at], text.len() - at),
    }
}

/// Prints the result of one stage in full.
///
/// # Errors
/// As for [`run`]; also if the stage was not reached, for example because the stage `schedule` does
/// not support the datatype.
pub(crate) fn stage(name: &str, args: &StageArgs) -> Result<(), Box<dyn Error>> {
    let (t, _) = ddtc::internal::corpus::asked(&args.datatype)?;
    let explanation = args.explanation(&t, true)?;
    // For a copy, some stages are run several times: the stages `lower` and `normalize` for each of
    // the two datatypes, and `normalize` once more after the stage `refine` has joined the two
    // nests. If the wanted stage was run several times, show its last result.
    let stage = explanation.stages.iter().rfind(|s| s.name == name);
    let target = args.target()?;
    let missing = explanation.missing.iter().find(|(stage, _)| *stage == name);
    let stage = stage.ok_or_else(|| match missing {
        Some((_, why)) => format!("stage {name} is not shown for {target}: {why}"),
        None if name == "refine" && !matches!(args.kind, RequestedKind::Copy(_)) => {
            "--kind: must be copy:TYPE, because this stage joins two datatypes for a copy from the first to TYPE".to_owned()
        }
        None => {
            let reason = explanation.refusal.unwrap_or("an earlier stage failed");
            format!("stage {name} is not reached: {reason}")
        }
    })?;
    if stage.text.is_empty() {
        out!("{}", explanation.listing.code)?;
    } else {
        out!("{}", stage.text)?;
    }
    Ok(())
}
