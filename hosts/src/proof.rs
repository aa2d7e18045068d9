//! Proofs: results of `ddtc tune` with an MPI library that the matrix ([`crate::tried`]) does not
//! know.
//!
//! `ddtc tune` exchanges messages under the library, with and without conversion, and writes down
//! what was right. A proof is a permission with limits. It holds for the library, the transport and
//! the version of ddtc in its key, and for jobs on one node, or on as many nodes as the run had and
//! fewer. It permits messages, and collective calls if at least [`ENOUGH_RANKS`] ranks took part.
//!
//! A file has the proofs of several libraries. The preload library reads two files: one next to the
//! MPI library and one in the user's configuration folder. A refusal in either file outweighs a
//! permission in the other.
//!
//! Before a run tries calls of a kind, it writes down that they have begun. If no other outcome
//! follows, the calls are taken to have ended the run, by a hang or a crash, and the kind counts as
//! refused.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::policy;
use crate::tried::{Kind, Kinds};

/// Minimum number of ranks with which collective calls are proven. With fewer ranks, MPI libraries
/// choose other algorithms.
pub const ENOUGH_RANKS: u32 = 8;

/// First line of a file. A file with another number is of a newer version of ddtc.
const HEAD: &str = "ddtc proofs 1";
/// Beginning of [`HEAD`], without the version of the form.
const ANY_HEAD: &str = "ddtc proofs ";

/// Name of the file in the folder of the MPI library.
const FILE: &str = "ddtc-proofs";

/// Returns the paths of the files in which proofs are looked for, in the order in which they are
/// read: next to the MPI library, whose file is `library`, and in the user's configuration folder.
/// `config` and `home` are the values of `XDG_CONFIG_HOME` and `HOME`.
pub fn files(library: &str, config: Option<&str>, home: Option<&str>) -> Vec<PathBuf> {
    let library_folder = Path::new(library).parent().filter(|folder| folder.is_absolute());
    library_folder.map(|folder| folder.join(FILE)).into_iter().chain(of_user(config, home)).collect()
}

/// Returns the path of the file in the user's configuration folder; `None` if there is no such
/// folder.
pub fn of_user(config: Option<&str>, home: Option<&str>) -> Option<PathBuf> {
    Some(policy::file(config, home)?.with_file_name("proofs"))
}

/// Returns those of [`files`] that exist.
pub fn existing_files(library: &str, config: Option<&str>, home: Option<&str>) -> Vec<PathBuf> {
    let mut files = files(library, config, home);
    files.retain(|file| std::fs::symlink_metadata(file).is_ok());
    files
}

/// What a proof holds for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Version of ddtc that made the proof.
    pub ddtc: String,
    /// Version text of the MPI library.
    pub library: String,
    /// Identities of the MPI library's file and of the network libraries that are loaded.
    pub objects: String,
    /// Transport of the job, and the variables that choose it.
    pub transport: String,
}

impl Key {
    /// Names that begin the four lines of a key, in the order of the lines.
    const NAMES: [&str; 4] = ["ddtc", "library", "objects", "transport"];

    /// Returns a key of this version of ddtc. Characters that would end a line are replaced.
    pub fn new(library: &str, objects: &str, transport: &str) -> Key {
        let line = |text: &str| text.replace(|c: char| c.is_control(), "?").trim().to_owned();
        Key {
            ddtc: env!("CARGO_PKG_VERSION").to_owned(),
            library: line(library),
            objects: line(objects),
            transport: line(transport),
        }
    }

    /// Returns the key that `text` has as lines, in the form that `Display` of [`Key`] writes;
    /// `None` if the text is no key.
    pub fn parse(text: &str) -> Option<Key> {
        let mut lines = text.lines();
        let mut value = |name: &str| value_of(lines.next()?, name).map(str::to_owned);
        let [ddtc, library, objects, transport] = Key::NAMES.map(&mut value);
        let key = Key { ddtc: ddtc?, library: library?, objects: objects?, transport: transport? };
        lines.next().is_none().then_some(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = [&self.ddtc, &self.library, &self.objects, &self.transport];
        Key::NAMES.iter().zip(values).try_for_each(|(name, value)| writeln!(f, "{name} {value}"))
    }
}

/// Returns the text after the name in a line; `None` if the line has another name.
fn value_of<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(name)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

/// Part of a proof: calls that are tried together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Blocking messages.
    Blocking,
    /// Nonblocking messages.
    Nonblocking,
    /// Persistent messages.
    Persistent,
    /// Blocking and nonblocking collective calls.
    Collectives,
}

impl Step {
    /// All steps, in the order in which they run.
    pub const ALL: [Step; 4] = [Step::Blocking, Step::Nonblocking, Step::Persistent, Step::Collectives];

    /// Returns the name of the step in files.
    pub fn name(self) -> &'static str {
        match self {
            Step::Blocking => "blocking",
            Step::Nonblocking => "nonblocking",
            Step::Persistent => "persistent",
            Step::Collectives => "collectives",
        }
    }

    /// Returns the step of a name.
    pub fn find(name: &str) -> Option<Step> {
        Step::ALL.into_iter().find(|step| step.name() == name)
    }
}

/// Outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The step has begun, and nothing else is known of it.
    Begun,
    /// Everything was right.
    Proven,
    /// Something was wrong, or the step has not ended. Holds the reason.
    Refused(String),
    /// Nothing was wrong, but too little was converted to permit anything. Holds the reason.
    Unproven(String),
}

/// Result of a run of `ddtc tune` with one library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// What the proof holds for.
    pub key: Key,
    /// Date of the run, as year, month and day.
    pub date: String,
    /// Nodes on which the ranks ran.
    pub nodes: u32,
    /// Ranks that took part.
    pub ranks: u32,
    /// Outcomes in the order of [`Step::ALL`]; `None` if the step has not begun.
    pub outcomes: [Option<Outcome>; Step::ALL.len()],
    /// Whether the run has ended. The proof of a run that has not ended permits nothing.
    pub is_finished: bool,
}

impl Proof {
    /// Returns a proof in which no step has begun.
    pub fn new(key: Key, date: &str, nodes: u32, ranks: u32) -> Proof {
        Proof { key, date: date.to_owned(), nodes, ranks, outcomes: [const { None }; 4], is_finished: false }
    }

    /// Returns the outcome of a step.
    pub fn outcome(&self, step: Step) -> Option<&Outcome> {
        self.outcomes[step as usize].as_ref()
    }

    /// Returns true if the step must not be converted: it was refused, or it has begun and not
    /// ended.
    pub fn refuses(&self, step: Step) -> bool {
        matches!(self.outcome(step), Some(Outcome::Begun | Outcome::Refused(_)))
    }

    fn proves(&self, step: Step) -> bool {
        self.is_finished && self.outcome(step) == Some(&Outcome::Proven)
    }

    const MESSAGES: [Step; 3] = [Step::Blocking, Step::Nonblocking, Step::Persistent];

    /// Returns the kinds of calls that this proof permits alone, without regard to the jobs for
    /// which it holds and to refusals.
    pub fn permitted(&self) -> Kinds {
        let messages = Proof::MESSAGES.into_iter().all(|step| self.proves(step));
        let collectives = messages && self.ranks >= ENOUGH_RANKS && self.proves(Step::Collectives);
        let kinds = if messages { Kinds::NONE.with(Kind::Messages) } else { Kinds::NONE };
        if collectives { kinds.with(Kind::Collectives) } else { kinds }
    }

    /// Returns the kinds of calls that are refused. If messages are refused, all kinds are, because
    /// all calls consist of messages.
    pub fn refused(&self) -> Kinds {
        if Proof::MESSAGES.into_iter().any(|step| self.refuses(step)) {
            Kinds::ALL
        } else if self.refuses(Step::Collectives) {
            Kinds::NONE.with(Kind::Collectives)
        } else {
            Kinds::NONE
        }
    }

    /// Returns true if the proof holds for jobs on `nodes` nodes; `None` stands for an unknown
    /// number of nodes. A run on one node proves nothing about messages between nodes, and a run on
    /// several nodes may have had few messages within a node.
    pub fn holds_on(&self, nodes: Option<u32>) -> bool {
        nodes.is_some_and(|nodes| match self.nodes {
            1 => nodes == 1,
            most => (2..=most).contains(&nodes),
        })
    }
}

/// Writes the lines of the proof, without the last line `end`, which has the checksum of the
/// others.
impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proof\n{}date {}\nnodes {}\nranks {}\n", self.key, self.date, self.nodes, self.ranks)?;
        for step in Step::ALL {
            match self.outcome(step) {
                None => {}
                Some(Outcome::Begun) => writeln!(f, "begun {}", step.name())?,
                Some(Outcome::Proven) => writeln!(f, "proven {}", step.name())?,
                Some(outcome @ (Outcome::Refused(why) | Outcome::Unproven(why))) => {
                    let is_refused = matches!(outcome, Outcome::Refused(_));
                    let head = if is_refused { "refused" } else { "unproven" };
                    let why = why.replace(|c: char| c.is_control(), "?");
                    writeln!(f, "{head} {} {why}", step.name())?;
                }
            }
        }
        if self.is_finished { writeln!(f, "finished") } else { Ok(()) }
    }
}

/// Returns the text of a file with these proofs.
pub fn written(proofs: &[Proof]) -> String {
    let mut text = format!("{HEAD}\n");
    for proof in proofs {
        let lines = proof.to_string();
        let _ = writeln!(text, "{lines}end {:016x}", xxh3_64(lines.as_bytes()));
    }
    text
}

/// Returns the proofs in the text of a file.
///
/// # Errors
/// The file is of a newer version, or damaged.
pub fn parse(text: &str) -> Result<Vec<Proof>, String> {
    let damaged =
        || "must be as `ddtc tune` has written it; remove it, then run `ddtc tune` again".to_owned();
    let (head, mut rest) = text.split_once('\n').ok_or_else(damaged)?;
    if head != HEAD {
        return Err(if head.starts_with(ANY_HEAD) {
            "must not be of a newer version of ddtc; remove it, then run `ddtc tune` again".to_owned()
        } else {
            damaged()
        });
    }
    let mut proofs = Vec::new();
    while !rest.is_empty() {
        let (lines, after) = rest.split_once("\nend ").ok_or_else(damaged)?;
        let (sum, after) = after.split_once('\n').ok_or_else(damaged)?;
        let lines = &rest[..=lines.len()];
        if sum != format!("{:016x}", xxh3_64(lines.as_bytes())) {
            return Err(damaged());
        }
        proofs.push(section(lines).ok_or_else(damaged)?);
        rest = after;
    }
    Ok(proofs)
}

/// Returns the proof that `text` has as lines, in the form that `Display` of [`Proof`] writes;
/// `None` if the text is no proof.
fn section(text: &str) -> Option<Proof> {
    let mut lines = text.strip_prefix("proof\n")?.lines();
    let key: Vec<&str> = lines.by_ref().take(Key::NAMES.len()).collect();
    let key = Key::parse(&key.join("\n"))?;
    let date = value_of(lines.next()?, "date")?;
    let nodes = value_of(lines.next()?, "nodes")?.parse().ok()?;
    let ranks = value_of(lines.next()?, "ranks")?.parse().ok()?;
    let mut proof = Proof::new(key, date, nodes, ranks);
    for line in lines {
        let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (name, why) = rest.split_once(' ').unwrap_or((rest, ""));
        let outcome = match head {
            "finished" if rest.is_empty() => {
                proof.is_finished = true;
                continue;
            }
            "begun" => Outcome::Begun,
            "proven" => Outcome::Proven,
            "refused" => Outcome::Refused(why.to_owned()),
            "unproven" => Outcome::Unproven(why.to_owned()),
            _ => return None,
        };
        proof.outcomes[Step::find(name)? as usize] = Some(outcome);
    }
    Some(proof)
}

/// Returns a number of nodes in words.
pub fn nodes_in_words(nodes: u32) -> String {
    format!("{nodes} node{}", if nodes == 1 { "" } else { "s" })
}

/// What proofs say about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Kinds of calls that are permitted.
    pub permitted: Kinds,
    /// Kinds of calls that are refused. They are never among the permitted ones.
    pub refused: Kinds,
    /// A sentence about it for the user.
    pub words: String,
}

impl Grant {
    /// Returns what the proofs of all files say about a job with this key on `nodes` nodes; `None`
    /// stands for an unknown number of nodes.
    pub fn from_proofs(proofs: &[Proof], key: &Key, nodes: Option<u32>) -> Grant {
        let ours = || proofs.iter().filter(|proof| proof.key == *key);
        let refused = ours().map(Proof::refused).fold(Kinds::NONE, Kinds::or);
        let here = || ours().filter(|proof| proof.holds_on(nodes));
        let permitted = here().map(Proof::permitted).fold(Kinds::NONE, Kinds::or).without(refused);
        let why = ours().find_map(|proof| {
            Step::ALL.into_iter().find_map(|step| match proof.outcome(step)? {
                Outcome::Refused(why) => Some(format!("{}: {why}", step.name())),
                Outcome::Begun => Some(format!("{}: the run that tried them has not ended", step.name())),
                Outcome::Proven | Outcome::Unproven(_) => None,
            })
        });
        let best = here().find(|proof| !proof.permitted().without(refused).is_empty());
        let words = match (best, why) {
            (Some(proof), why) => {
                let also = why.map_or(String::new(), |why| format!("; refused {why}"));
                format!(
                    "{permitted}: proven here by `ddtc tune` on {}, with {} ranks on {}{also}",
                    proof.date,
                    proof.ranks,
                    nodes_in_words(proof.nodes)
                )
            }
            (None, Some(why)) => format!("only MPI_Pack and MPI_Unpack: `ddtc tune` has refused {why}"),
            (None, None) if here().next().is_some() => {
                let unproven = here().find_map(|proof| {
                    Step::ALL.into_iter().find_map(|step| match proof.outcome(step)? {
                        Outcome::Unproven(why) => Some(format!("has not proven {}: {why}", step.name())),
                        _ => None,
                    })
                });
                let why = unproven.unwrap_or_else(|| "has not ended".to_owned());
                format!("only MPI_Pack and MPI_Unpack: the run of `ddtc tune` {why}")
            }
            (None, None) if ours().next().is_some() => {
                let here = nodes.map_or("a number of nodes that is not known".to_owned(), nodes_in_words);
                format!("only MPI_Pack and MPI_Unpack: no proof holds for this job, which runs on {here}")
            }
            (None, None) => {
                "only MPI_Pack and MPI_Unpack: no proof is of this library with this transport and this ddtc"
                    .to_owned()
            }
        };
        Grant { permitted, refused, words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new("MVAPICH Version: 4.0", "libmpi.so.12=00ff", "unknown")
    }

    fn proven(ranks: u32) -> Proof {
        let outcomes = [const { Some(Outcome::Proven) }; 4];
        Proof { outcomes, is_finished: true, ..Proof::new(key(), "2026-11-29", 1, ranks) }
    }

    fn with(step: Step, outcome: Option<Outcome>) -> Proof {
        let mut proof = proven(8);
        proof.outcomes[step as usize] = outcome;
        proof
    }

    #[test]
    fn what_is_written_is_read() {
        let mut other = with(Step::Collectives, Some(Outcome::Refused("wrong\nbytes".to_owned())));
        other.key.objects.clear();
        other.outcomes[2] = Some(Outcome::Unproven("4 MiB is not converted".to_owned()));
        let text = written(&[proven(2), other.clone()]);
        other.outcomes[3] = Some(Outcome::Refused("wrong?bytes".to_owned()));
        assert_eq!(parse(&text).unwrap(), [proven(2), other]);
        assert_eq!(Key::parse(&key().to_string()), Some(key()));
        assert_eq!(parse("ddtc proofs 1\n"), Ok(Vec::new()));
    }

    #[test]
    fn what_is_damaged_or_newer_is_refused() {
        let text = written(&[proven(2), proven(8)]);
        let offset = |part: &str| text.find(part).unwrap();
        for (at, byte) in
            [(offset("nodes 1") + 6, b'4'), (offset("ddtc 0") + 5, b'9'), (offset("end ") + 5, b'g')]
        {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = byte;
            assert!(parse(&String::from_utf8(bytes).unwrap()).unwrap_err().contains("as `ddtc tune`"));
        }
        // The text is cut at every offset. A cut after the first line or after a proof leaves a
        // valid file with the proofs before the cut. A cut at any other place leaves a damaged
        // file.
        let whole = [0, 1, 2].map(|n| written(&[proven(2), proven(8)][..n]).len());
        for end in 0..=text.len() {
            let read = parse(&text[..end]);
            match whole.iter().position(|&length| length == end) {
                Some(n) => assert_eq!(read, Ok([proven(2), proven(8)][..n].to_vec())),
                None => assert!(read.unwrap_err().contains("remove it, then run `ddtc tune` again"), "{end}"),
            }
        }
        for newer in ["ddtc proofs 2\nwhatever\n", "ddtc proofs 2\n"] {
            assert!(parse(newer).unwrap_err().contains("newer"));
        }
    }

    fn grant(proofs: &[Proof], nodes: Option<u32>) -> String {
        let found = Grant::from_proofs(proofs, &key(), nodes);
        assert!(found.permitted.and(found.refused).is_empty());
        format!("{} | {}", found.permitted, found.words)
    }

    #[test]
    fn a_proof_permits_within_its_limits() {
        let two = grant(&[proven(2)], Some(1));
        assert!(two.starts_with("messages | messages: proven here by `ddtc tune` on 2026-11-29"), "{two}");
        assert!(grant(&[proven(8)], Some(1)).starts_with("messages, collectives | "));
        assert!(grant(&[proven(8)], None).ends_with("which runs on a number of nodes that is not known"));
        assert!(grant(&[proven(8)], Some(2)).starts_with("nothing | "));
        let on = |nodes| Proof { nodes, ..proven(8) };
        for (proven_on, nodes) in [(0, 0), (0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (2, 3), (u32::MAX, 1)] {
            let words = grant(&[on(proven_on)], Some(nodes));
            assert!(words.starts_with("nothing | "), "{proven_on} {nodes}: {words}");
        }
        for (proven_on, nodes) in [(1, 1), (2, 2), (3, 2), (3, 3)] {
            let words = grant(&[on(proven_on)], Some(nodes));
            let place = format!("with 8 ranks on {}", nodes_in_words(proven_on));
            assert!(words.starts_with("messages, collectives | ") && words.ends_with(&place), "{words}");
        }
        assert!(grant(&[on(2)], None).starts_with("nothing | "));
        let unfinished = Proof { is_finished: false, ..proven(8) };
        assert!(grant(&[unfinished], Some(1)).ends_with("the run of `ddtc tune` has not ended"));
        let missing = with(Step::Persistent, None);
        assert!(grant(&[missing], Some(1)).starts_with("nothing"));
        let unproven = with(Step::Persistent, Some(Outcome::Unproven("nothing converts".to_owned())));
        let words = grant(std::slice::from_ref(&unproven), Some(1));
        assert!(words.ends_with("has not proven persistent: nothing converts"), "{words}");
        assert!(grant(&[unproven, proven(2)], Some(1)).starts_with("messages | "), "it refuses nothing");
        let mut newer = proven(8);
        newer.key.ddtc = "99.0.0".to_owned();
        assert!(grant(&[newer], Some(1)).contains("no proof is of this library"));
    }

    #[test]
    fn a_refusal_outweighs_every_permission() {
        for step in [Step::Blocking, Step::Nonblocking, Step::Persistent] {
            for outcome in [Outcome::Begun, Outcome::Refused("wrong bytes".to_owned())] {
                let refused = Proof { nodes: 2, is_finished: false, ..with(step, Some(outcome)) };
                for proofs in [[proven(8), refused.clone()], [refused.clone(), proven(8)]] {
                    let found = Grant::from_proofs(&proofs, &key(), Some(1));
                    assert!(found.permitted.is_empty() && found.refused == Kinds::ALL, "{found:?}");
                    assert!(found.words.contains(step.name()), "{}", found.words);
                }
            }
        }
        let collectives = with(Step::Collectives, Some(Outcome::Begun));
        let words = grant(&[proven(8), collectives], Some(1));
        assert!(words.starts_with("messages | ") && words.contains("refused collectives"), "{words}");
    }
}
