//! The main process's side of a worker: the main process starts the worker, sends requests, watches
//! it, and starts another one after it died or hung.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::difference::Check;
use crate::protocol::{At, Place, Reply, Request};

/// Time after which a worker that begins no other case or check counts as hanging. Time in which
/// the worker waited for a processor is not counted. A case normally takes microseconds.
const HANGS: Duration = Duration::from_secs(10);
/// Time after which a worker that has not started counts as hanging. It is longer than the time
/// limit of a case ([`HANGS`]), since many workers may start at once.
const STARTS: Duration = Duration::from_secs(60);

/// Returns how long the first thread of a process was ready to run but waited for a processor.
/// Linux provides this number; on other systems it is zero. Time limits do not count this time,
/// because otherwise a library would seem to hang if the machine is busy for minutes.
pub(crate) fn kept_waiting(process: u32) -> Duration {
    stalled(&format!("/proc/{process}/schedstat"))
}

/// Returns how long the calling thread was ready to run but waited for a processor.
pub(crate) fn kept_waiting_here() -> Duration {
    stalled("/proc/thread-self/schedstat")
}

fn stalled(file: &str) -> Duration {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // The file has three numbers: nanoseconds on a processor, nanoseconds ready to run but waiting
    // for a processor, and the number of time slices.
    Duration::from_nanos(text.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0))
}

/// Clock for a process and for the thread that watches it. The clock does not count time in which
/// either of them waited for a processor.
pub(crate) struct Clock {
    process: u32,
    began: Instant,
    waited: Duration,
}

impl Clock {
    pub(crate) fn start(process: u32) -> Clock {
        let waited = kept_waiting(process) + kept_waiting_here();
        Clock { process, began: Instant::now(), waited }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        let waited = kept_waiting(self.process) + kept_waiting_here();
        self.began.elapsed().saturating_sub(waited.saturating_sub(self.waited))
    }
}

/// The way in which a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    pub(crate) how: How,
    /// The case and check at which the worker ended. None if the worker ended before its first
    /// case.
    pub(crate) at: Option<At>,
    /// One line of the worker's standard error: the first line that mentions an assertion or the
    /// allocator, or else the last line.
    pub(crate) said: String,
}

/// The kinds of ends of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Signal(i32),
    Exit(i32),
    Hang,
}

impl How {
    fn from_status(status: ExitStatus) -> How {
        status.signal().map_or_else(|| How::Exit(status.code().unwrap_or(-1)), How::Signal)
    }
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            How::Signal(libc::SIGSEGV) => f.write_str("the process ends by SIGSEGV"),
            How::Signal(libc::SIGABRT) => f.write_str("the process ends by SIGABRT"),
            How::Signal(libc::SIGFPE) => f.write_str("the process ends by SIGFPE"),
            How::Signal(libc::SIGBUS) => f.write_str("the process ends by SIGBUS"),
            How::Signal(n) => write!(f, "the process ends by signal {n}"),
            How::Exit(n) => write!(f, "the process exits with status {n}"),
            How::Hang => write!(f, "the call does not return"),
        }
    }
}

/// Path by which this program starts itself again as a worker. It works even if the program's file
/// was deleted or replaced since the program was started.
const RUNNING: &str = "/proc/self/exe";

/// What is needed to start workers.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) mpi: PathBuf,
    pub(crate) seed: u64,
    pub(crate) checks: Vec<Check>,
    /// Folder for the files of workers.
    pub(crate) folder: PathBuf,
}

/// The library's own description of itself after it was initialized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) version: String,
    pub(crate) flavour: String,
}

/// Sets the environment variables that a library needs to start as a single process. Workers and
/// the programs of findings run with these variables. Variables that are set already are kept, and
/// the library's folder is put before `LD_LIBRARY_PATH`.
pub(crate) fn surroundings(command: &mut Command, mpi: &Path) {
    if let Some(folder) = mpi.parent() {
        let mut paths = vec![folder.to_path_buf()];
        paths.extend(std::env::split_paths(&std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default()));
        if let Ok(paths) = std::env::join_paths(paths) {
            command.env("LD_LIBRARY_PATH", paths);
        }
    }
    // Open MPI refuses to run as root unless these variables allow it. No library needs a network
    // here, and Intel's MPI must be told to use only shared memory. Core dumps are disabled,
    // because crashes are expected here.
    for (name, value) in [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_btl", "^tcp,openib,uct,usnic,ofi"),
        ("OMPI_MCA_osc", "^ucx"),
        ("OMPI_MCA_btl_base_warn_component_unused", "0"),
        ("I_MPI_FABRICS", "shm"),
        ("MPIR_CVAR_COREDUMP", "0"),
    ] {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
}

/// A running worker.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    requests: Option<ChildStdin>,
    replies: Receiver<Reply>,
    place: Place,
    errors: PathBuf,
    /// Total time that the worker had waited for a processor when it sent its last reply.
    pub(crate) waited: Duration,
    pub(crate) about: About,
}

/// Reason why there is no worker.
#[derive(Debug)]
pub(crate) enum NoWorker {
    /// The library cannot be used. The worker sent this text as the reason.
    Refused(String),
    /// The worker died while it started.
    Died(Death),
    /// The system did not start the worker.
    Failed(io::Error),
}

impl std::fmt::Display for NoWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoWorker::Refused(reason) => f.write_str(reason),
            NoWorker::Died(death) => write!(f, "the library does not start: {}\n{}", death.how, death.said),
            NoWorker::Failed(error) => write!(f, "no worker: {error}"),
        }
    }
}

impl Worker {
    /// Starts worker `number` and waits until its library is initialized.
    pub(crate) fn start(start: &Start, number: usize) -> Result<Worker, NoWorker> {
        let failed = NoWorker::Failed;
        let place = start.folder.join(format!("worker-{number}.case"));
        let errors = start.folder.join(format!("worker-{number}.stderr"));
        let mut command = Command::new(RUNNING);
        let only: Vec<&str> = start.checks.iter().map(|c| c.name()).collect();
        command.arg("hunt-worker").arg("--mpi").arg(&start.mpi).arg("--seed").arg(start.seed.to_string());
        command.arg("--only").arg(only.join(",")).arg("--place").arg(&place);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(&errors).map_err(failed)?);
        surroundings(&mut command, &start.mpi);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&place);
        let place = Place(file.map_err(failed)?);
        let mut child = command.spawn().map_err(failed)?;
        // A thread reads the replies, so that waiting for a reply can have a time limit. The thread
        // ends at the end of the worker's output, or at the first line that is not a reply.
        let (requests, output) = (child.stdin.take(), child.stdout.take());
        let (sender, replies) = channel();
        if let Some(output) = output {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let Ok(reply) = serde_json::from_str(&line) else { return };
                    if sender.send(reply).is_err() {
                        return;
                    }
                }
            });
        }
        let about = About { version: String::new(), flavour: String::new() };
        let mut worker = Worker { child, requests, replies, place, errors, waited: Duration::ZERO, about };
        match worker.next(STARTS) {
            Ok(Reply::Ready { version, flavour }) => {
                worker.about = About { version, flavour };
                Ok(worker)
            }
            Ok(Reply::Refused { reason }) => Err(NoWorker::Refused(reason)),
            Ok(_) => Err(NoWorker::Refused("the worker does not speak as expected".to_owned())),
            Err(death) => Err(NoWorker::Died(death)),
        }
    }

    /// Sends a request. If the worker has ended, the next call that waits for a reply returns an
    /// error.
    pub(crate) fn ask(&mut self, request: &Request) {
        if let (Some(to), Ok(mut line)) = (&mut self.requests, serde_json::to_vec(request)) {
            line.push(b'\n');
            let _ = to.write_all(&line);
        }
    }

    /// Returns the next reply of a worker that runs one check on one datatype ([`Request::Try`]).
    ///
    /// # Errors
    /// Returns the same errors as [`Worker::reply`], but the time limit is half as long.
    pub(crate) fn answer(&mut self) -> Result<Reply, Death> {
        self.next(HANGS / 2)
    }

    /// Returns the next reply.
    ///
    /// # Errors
    /// Returns how the worker ended if it died, or if it was killed because it hung.
    pub(crate) fn reply(&mut self) -> Result<Reply, Death> {
        self.next(HANGS)
    }

    fn next(&mut self, limit: Duration) -> Result<Reply, Death> {
        let reply = self.watched(limit);
        self.waited = kept_waiting(self.child.id());
        reply.map_err(|hangs| {
            if hangs {
                let _ = self.child.kill();
            }
            let how = self.child.wait().map_or(How::Exit(-1), How::from_status);
            self.death(if hangs { How::Hang } else { how })
        })
    }

    /// Returns the next reply. The error is true if the worker hangs, and false if it has ended.
    /// The time limit starts again whenever the worker begins another case or check.
    fn watched(&mut self, limit: Duration) -> Result<Reply, bool> {
        let (mut last, mut since) = (self.place.get(), Clock::start(self.child.id()));
        loop {
            match self.replies.recv_timeout(Duration::from_millis(200)) {
                Ok(reply) => return Ok(reply),
                Err(RecvTimeoutError::Disconnected) => return Err(false),
                Err(RecvTimeoutError::Timeout) => {
                    let now = self.place.get();
                    if now != last {
                        (last, since) = (now, Clock::start(self.child.id()));
                    } else if since.elapsed() > limit {
                        return Err(true);
                    }
                }
            }
        }
    }

    fn death(&self, how: How) -> Death {
        let text = std::fs::read(&self.errors).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        // A line about a failed assertion or about the allocator says more than the stack trace
        // after it, so it is preferred to the last line.
        let telling =
            lines.iter().find(|l| l.contains("ssert") || l.contains("free()") || l.contains("malloc"));
        let said = telling.or(lines.last()).map_or(String::new(), |l| l.chars().take(300).collect());
        Death { how, at: self.place.get(), said }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // When its standard input is closed, the worker finalizes the library and ends. It is
        // killed if that takes longer than two seconds.
        drop(self.requests.take());
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(2) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts more busy loops than there are processors, so that some of them must wait, and checks
    /// that the clock does not count this time.
    #[test]
    fn what_a_process_is_kept_waiting_is_no_time_of_its_own() {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut loops: Vec<Child> = (0..=processors)
            .map(|_| Command::new("sh").arg("-c").arg("while :; do :; done").spawn().expect("sh is needed"))
            .collect();
        let clocks: Vec<Clock> = loops.iter().map(|child| Clock::start(child.id())).collect();
        let began = Instant::now();
        let left_out = loop {
            std::thread::sleep(Duration::from_millis(20));
            let own = clocks.iter().any(|clock| {
                let all = clock.began.elapsed();
                let own = clock.elapsed();
                own < all && kept_waiting(clock.process) > Duration::ZERO
            });
            if own || began.elapsed() > 10 * STARTS {
                break own;
            }
        };
        for child in &mut loops {
            child.kill().and_then(|()| child.wait()).unwrap();
        }
        assert!(left_out, "Linux's schedstat says nothing");
        // For a process that has ended, the waiting time is unknown, so `kept_waiting` returns
        // zero.
        assert_eq!(kept_waiting(loops[0].id()), Duration::ZERO);
    }
}
