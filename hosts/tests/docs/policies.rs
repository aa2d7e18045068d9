//! The shipped policy is what the records of messages say: a layout class and payload is converted where that gains clearly on every
//! machine that was measured. `benches/record/POLICY.md` has the machines side by side, generated from the records.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ddtc_hosts::policy::{Call, Class, Family, Library, Policy, payloads};
use ddtc_hosts::profile::Profile;

use crate::text::{files, hold, read};

/// Gain of a converted call over the bare host's, beyond twice the noise, from which it is shipped as converted.
const CLEAR: f64 = 1.3;

/// Least gain where one machine alone was measured.
const ALONE: f64 = 2.0;

/// Marks a record of Open MPI whose staged bytes had a gap. Without one they took a path that does not bound a receive, on which nothing is
/// converted any more.
const GAPPED: &str = "\n# staged bytes have a gap\n";

/// Least gain of one-sided operations on one machine: their time beside packing by hand is held too, and more is not at stake.
const ONE_SIDED: f64 = 1.5;

/// Least gain of reads from files on one machine: they ask for the file's size first, whose time depends on the file system.
const READS: f64 = 4.0;

/// There a conversion must take no longer than this many times packing by hand either: what it costs by itself shows more where other types of the
/// class gain less.
const BESIDE_HAND: f64 = 1.2;

/// A line of a record: call, class, bytes, and the gain with the noise of both.
struct Point {
    call: Call,
    class: Class,
    bytes: u64,
    gain: f64,
    /// Times packing by hand; 1 where nothing was converted.
    beside_hand: f64,
    noise: f64,
}

/// The records of one host on one machine.
type Machines = BTreeMap<String, Vec<Point>>;

/// `# CLASS,BYTES,CONVERTED,BARE,HAND,NOISE` of messages, the same behind the name of a collective call; `-` where nothing was converted: that speaks only where packing by hand is no faster
/// than the bare host, because then conversion is not either.
fn point(line: &str) -> Option<Point> {
    let fields: Vec<&str> = line.strip_prefix("# ")?.split(',').collect();
    let named = Call::ALL.into_iter().find(|c| *c != Call::Message && c.name() == fields[0]);
    let (call, fields) = named.map_or((Call::Message, &fields[..]), |call| (call, &fields[1..]));
    let [class, bytes, converted, bare, hand, noise] = fields[..] else { return None };
    let class = Class::ALL.into_iter().find(|c| c.name() == class)?;
    let number = |text: &str| text.parse::<f64>().unwrap_or_else(|e| panic!("{line}: {e}"));
    let (bare, hand) = (number(bare), number(hand));
    let (gain, beside_hand) = if converted != "-" {
        (bare / number(converted), number(converted) / hand)
    } else if hand >= bare {
        (1.0, 1.0)
    } else {
        return None;
    };
    Some(Point {
        call,
        class,
        bytes: bytes.parse().unwrap(),
        gain,
        beside_hand,
        noise: number(noise) / 100.0,
    })
}

/// All records, by the name of the host's table.
fn records() -> BTreeMap<String, Machines> {
    let mut hosts: BTreeMap<String, Machines> = BTreeMap::new();
    for file in files("benches/record", "txt").into_iter().filter(|f| f.contains("-messages-")) {
        let text = read(&file);
        let host = text.lines().find_map(|l| l.strip_prefix("library ")).unwrap_or_else(|| panic!("{file}"));
        let machine = file.split('/').nth(2).unwrap();
        let points: Vec<Point> = text.lines().filter_map(point).collect();
        assert!(!points.is_empty(), "{file}");
        let machines = hosts.entry(host.trim().to_owned()).or_default();
        if host.starts_with("openmpi") && !text.contains(GAPPED) {
            continue;
        }
        machines.entry(machine.to_owned()).or_default().extend(points);
    }
    hosts
}

/// The points of a machine that speak of a payload of `2^bit` bytes: the nearest ones, all of them where several are.
fn nearest(points: &[Point], (call, class): (Call, Class), bit: u32) -> Vec<&Point> {
    let of_class = || points.iter().filter(|p| (p.call, p.class) == (call, class));
    let distance = |p: &Point| p.bytes.ilog2().abs_diff(bit);
    let least = of_class().map(distance).min();
    of_class().filter(|p| Some(distance(p)) == least).collect()
}

/// The machines that have measured a call, the gain that is enough there, and how long it may take beside packing by hand.
fn measured(machines: &Machines, call: Call) -> (Vec<&Vec<Point>>, f64, f64) {
    let those: Vec<_> = machines.values().filter(|m| m.iter().any(|p| p.call == call)).collect();
    let alone = match call {
        Call::Put | Call::Get => ONE_SIDED,
        Call::FileRead => READS,
        _ => ALONE,
    };
    let (enough, most) = if those.len() == 1 { (alone, BESIDE_HAND) } else { (CLEAR, f64::INFINITY) };
    (those, enough, most)
}

/// Returns the policy that the records of a host give: from the smallest payload measured of a class, beyond the largest as of the largest. Collective calls were measured
/// on fewer machines than messages: they are converted only where messages of that class and payload are.
fn said(machines: &Machines) -> Policy {
    let mut policy = Policy::NONE;
    for (call, class) in Call::ALL.into_iter().flat_map(|call| Class::ALL.map(|class| (call, class))) {
        let (those, enough, most) = measured(machines, call);
        let points = those.iter().copied().flatten().filter(|p| (p.call, p.class) == (call, class));
        let Some(first) = points.map(|p| p.bytes.ilog2()).min() else { continue };
        let clear = |p: &&Point| match call {
            // It needs no memory for staging.
            Call::Inside => p.gain + 2.0 * p.noise >= 1.0,
            _ => p.gain >= enough + 2.0 * p.noise && p.beside_hand <= most,
        };
        let gains = |bit: &u32| those.iter().all(|m| nearest(m, (call, class), *bit).iter().all(clear));
        let set = (first..64).filter(gains).fold(0, |set, bit| set | 1u64 << bit);
        use Call::{FileRead, FileWrite, Get, Inside, Message, Put};
        let sent = !matches!(call, Message | FileWrite | FileRead | Put | Get | Inside);
        let messages = if sent { policy.set(class) } else { u64::MAX };
        policy = policy.with_call(call, class, set & messages);
    }
    policy
}

/// The hosts of the records, as `MPI_Get_library_version` names them.
fn library(host: &str) -> Library {
    let named = ["MPICH Version: 5.0.2", "Intel(R) MPI Library 2021.18.1 for Linux* OS", "Open MPI v5.0.11"];
    let found = named.map(Library::of).into_iter().find(|l| l.to_string() == host);
    found.unwrap_or_else(|| panic!("a record of {host}, which is none of {named:?}"))
}

#[test]
fn the_shipped_policy_converts_what_gains_on_every_machine() {
    let mut out = String::from(
        "# What is converted where the user has no table: made from benches/record by tests/docs/policies.rs.\n",
    );
    for (host, machines) in records() {
        let (said, library) = (said(&machines), library(&host));
        assert_eq!(said == Policy::NONE, machines.is_empty(), "{host}");
        let _ = write!(out, "library {}\n{said}", library.family.name());
        assert_eq!(Policy::parse(&out, library.family.name()), Ok(Some(said)), "{host}");
    }
    hold("hosts/src/policy.txt", &out);
}

#[test]
fn the_machines_stand_side_by_side() {
    let mut out = String::from(
        "# Gain of converted calls over the bare host's, by machine\n\n\
         Generated from the records of messages and collective calls (`DDTC_BLESS=1 cargo test --test docs`). A payload is shipped as converted where the \
         gain is at least 1.3 beyond twice\nthe noise on every machine; of a machine, the nearest payload measured speaks for it. Where one machine alone has \
         measured a call, the gain must be 2, and it must take at most 1.2 times what packing by hand takes; collective calls\nare converted only where messages of their class and payload are. For one-sided operations 1.5 is enough, for reads from files it is 4. Of `inside` the gain is over converted messages: not to lose beyond the noise is enough. Machines are named by the \
         folders here: CPU model, family, model number, stepping.\n`no`: not converted then, and packing by hand gains nothing either.\n",
    );
    for (host, machines) in records() {
        // What the records say, to which the table in src is held.
        let shipped = said(&machines);
        for call in Call::ALL {
            let names: Vec<&str> = machines
                .iter()
                .filter(|(_, points)| points.iter().any(|p| p.call == call))
                .map(|(name, _)| name.as_str())
                .collect();
            if names.is_empty() {
                continue;
            }
            let kind = if call == Call::Message { "messages" } else { call.name() };
            let _ =
                writeln!(out, "\n## {host}, {kind}\n\n| class | bytes | {} | shipped |", names.join(" | "));
            let _ = writeln!(out, "|---|---|{}---|", "---|".repeat(names.len()));
            for class in Class::ALL {
                let here = |p: &&Point| (p.call, p.class) == (call, class);
                let of_class = machines.values().flatten().filter(here);
                let bits: BTreeSet<u32> = of_class.map(|p| p.bytes.ilog2()).collect();
                for bit in bits {
                    let cell = |name: &&str| {
                        let points = machines[*name].iter().filter(here).filter(|p| p.bytes.ilog2() == bit);
                        let gain =
                            |p: &Point| if p.gain == 1.0 { "no".into() } else { format!("{:.2}", p.gain) };
                        points.map(gain).collect::<Vec<String>>().join(", ")
                    };
                    let cells: Vec<String> = names.iter().map(cell).collect();
                    let converted =
                        if Policy::has(shipped.of(call, class), 1 << bit) { "converted" } else { "" };
                    let _ =
                        writeln!(out, "| {} | 2^{bit} | {} | {converted} |", class.name(), cells.join(" | "));
                }
            }
        }
    }
    hold("benches/record/POLICY.md", &out);
}

#[test]
fn the_document_says_the_shipped_payloads_of_messages() {
    let document = read("docs/SETTINGS.md");
    for (name, family) in
        [("MPICH", Family::Mpich), ("Intel MPI", Family::Intel), ("Open MPI", Family::OpenMpi)]
    {
        let policy = Profile::of(&Library::new(family, [0; 3])).shipped_policy();
        let classes = Class::ALL.into_iter().filter(|&class| policy.set(class) != 0);
        let words: Vec<String> =
            classes.map(|class| format!("{} {}", class.name(), payloads(policy.set(class)))).collect();
        let expected = if words.is_empty() { "none".to_owned() } else { words.join(", ") };
        let mut tables = document.split("| | messages converted, by shipped table |").skip(1);
        let rows = tables.next().expect("the table").lines();
        let cell = rows.filter_map(|l| l.strip_prefix("| ")?.strip_prefix(name)?.strip_prefix(" | ")).next();
        let said = cell.and_then(|rest| rest.split(" |").next()).unwrap_or_default();
        // Behind a colon stands why.
        let said = said.split(": ").next().unwrap_or_default();
        assert_eq!(said, expected, "{name}: docs/SETTINGS.md (left) and the shipped table (right)");
    }
}
