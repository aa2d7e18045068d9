//! Tests that the shipped policy follows from the records of measured calls: a layout class and
//! payload is converted if that gains clearly on every machine that was measured.
//! `benches/record/POLICY.md` compares the machines and is generated from the records.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ddtc_hosts::policy::{Call, Class, Family, Library, Policy, payloads};
use ddtc_hosts::profile::Profile;

use crate::text::{files, hold, read};

/// Minimum gain with which a call is shipped as converted, if several machines were measured. The
/// gain is the time with the unmodified MPI library divided by the time with a conversion. Twice
/// the noise is added to this minimum.
const CLEAR: f64 = 1.3;

/// Minimum gain in place of [`CLEAR`] if only one machine was measured.
const ALONE: f64 = 2.0;

/// Line that marks a record of Open MPI whose staged bytes had a gap. Without a gap, the messages
/// took a path of Open MPI that does not check the length of the receive buffer. Nothing is
/// converted in that way any more, so records without this line are ignored.
const GAPPED: &str = "\n# staged bytes have a gap\n";

/// Minimum gain of one-sided operations if only one machine was measured. A smaller gain than
/// [`ALONE`] suffices, because [`MAX_TIME_OVER_HAND`] also limits the time of these operations
/// relative to packing by hand. The value is the gain that was seen earlier on a Zen 5.
const ONE_SIDED: f64 = 1.5;

/// Minimum gain of reads from files if only one machine was measured. A converted read asks for the
/// size of the file first, and the time for that depends on the file system.
const READS: f64 = 4.0;

/// Maximum time of a conversion relative to packing by hand, if only one machine was measured. The
/// limit is for other types of the same class that gain less: the cost of the conversion itself
/// matters more for them.
const MAX_TIME_OVER_HAND: f64 = 1.2;

/// Line of a record: call, class, bytes, the gain of a conversion, and the noise of the measured
/// times.
struct Point {
    call: Call,
    class: Class,
    bytes: u64,
    gain: f64,
    /// Time of the conversion divided by that of packing by hand; 1 if nothing was converted.
    time_over_hand: f64,
    noise: f64,
}

/// Lines of the records of one MPI library, by machine.
type Machines = BTreeMap<String, Vec<Point>>;

/// Returns the point in a line of a record; `None` if the line has none.
///
/// A line about messages is `# CLASS,BYTES,CONVERTED,BARE,HAND,NOISE`. The fields `CONVERTED`,
/// `BARE` and `HAND` are times with a conversion, with the unmodified MPI library and with packing
/// by hand. A line about another call has the name of the call before the class. If nothing was
/// converted, `CONVERTED` is `-`. Such a line counts, with gain 1, only if packing by hand is not
/// faster than the unmodified library, because then a conversion is not faster either.
fn point(line: &str) -> Option<Point> {
    let fields: Vec<&str> = line.strip_prefix("# ")?.split(',').collect();
    let named = Call::ALL.into_iter().find(|c| *c != Call::Message && c.name() == fields[0]);
    let (call, fields) = named.map_or((Call::Message, &fields[..]), |call| (call, &fields[1..]));
    let [class, bytes, converted, unmodified, hand, noise] = fields[..] else { return None };
    let class = Class::ALL.into_iter().find(|c| c.name() == class)?;
    let number = |text: &str| text.parse::<f64>().unwrap_or_else(|e| panic!("{line}: {e}"));
    let (unmodified, hand) = (number(unmodified), number(hand));
    let (gain, time_over_hand) = if converted != "-" {
        (unmodified / number(converted), number(converted) / hand)
    } else if hand >= unmodified {
        (1.0, 1.0)
    } else {
        return None;
    };
    Some(Point {
        call,
        class,
        bytes: bytes.parse().unwrap(),
        gain,
        time_over_hand,
        noise: number(noise) / 100.0,
    })
}

/// Returns all records, by the name of the MPI library's table.
fn records() -> BTreeMap<String, Machines> {
    let mut tables: BTreeMap<String, Machines> = BTreeMap::new();
    for file in files("benches/record", "txt").into_iter().filter(|f| f.contains("-messages-")) {
        let text = read(&file);
        let table = text.lines().find_map(|l| l.strip_prefix("library ")).unwrap_or_else(|| panic!("{file}"));
        let machine = file.split('/').nth(2).unwrap();
        let points: Vec<Point> = text.lines().filter_map(point).collect();
        assert!(!points.is_empty(), "{file}");
        let machines = tables.entry(table.trim().to_owned()).or_default();
        if table.starts_with("openmpi") && !text.contains(GAPPED) {
            continue;
        }
        machines.entry(machine.to_owned()).or_default().extend(points);
    }
    tables
}

/// Returns the points of a call and layout class whose payload is closest to `2^bit` bytes: several
/// points if they are equally close.
fn nearest(points: &[Point], (call, class): (Call, Class), bit: u32) -> Vec<&Point> {
    let of_class = || points.iter().filter(|p| (p.call, p.class) == (call, class));
    let distance = |p: &Point| p.bytes.ilog2().abs_diff(bit);
    let closest = of_class().map(distance).min();
    of_class().filter(|p| Some(distance(p)) == closest).collect()
}

/// Returns the machines on which a call was measured, the minimum gain that suffices on each of
/// them, and the maximum time relative to packing by hand.
fn measured(machines: &Machines, call: Call) -> (Vec<&Vec<Point>>, f64, f64) {
    let those: Vec<_> = machines.values().filter(|m| m.iter().any(|p| p.call == call)).collect();
    let alone = match call {
        Call::Put | Call::Get => ONE_SIDED,
        Call::FileRead => READS,
        _ => ALONE,
    };
    let (enough, limit) = if those.len() == 1 { (alone, MAX_TIME_OVER_HAND) } else { (CLEAR, f64::INFINITY) };
    (those, enough, limit)
}

/// Returns the policy that follows from the records of an MPI library. The smallest converted
/// payload of a class is at least the smallest measured one. Payloads beyond the largest measured
/// one are treated like the largest. Collective calls were measured on fewer machines than
/// messages, so they are converted only if messages of that class and payload are.
fn policy_of(machines: &Machines) -> Policy {
    let mut policy = Policy::NONE;
    for (call, class) in Call::ALL.into_iter().flat_map(|call| Class::ALL.map(|class| (call, class))) {
        let (those, enough, limit) = measured(machines, call);
        let points = those.iter().copied().flatten().filter(|p| (p.call, p.class) == (call, class));
        let Some(first) = points.map(|p| p.bytes.ilog2()).min() else { continue };
        let clear = |p: &&Point| match call {
            // Moves inside the MPI library need no memory for staging. So they need not gain: it
            // suffices if they lose nothing beyond twice the noise.
            Call::Inside => p.gain + 2.0 * p.noise >= 1.0,
            _ => p.gain >= enough + 2.0 * p.noise && p.time_over_hand <= limit,
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

/// Returns the MPI library whose table has this name in the records. `named` lists the version
/// texts of all libraries that have records.
fn library(table: &str) -> Library {
    let named = ["MPICH Version: 5.0.2", "Intel(R) MPI Library 2021.18.1 for Linux* OS", "Open MPI v5.0.11"];
    let found = named.map(Library::from_version_text).into_iter().find(|l| l.to_string() == table);
    found.unwrap_or_else(|| panic!("a record of {table}, which is none of {named:?}"))
}

#[test]
fn the_shipped_policy_converts_what_gains_on_every_machine() {
    let mut out = String::from(
        "# What is converted where the user has no table: made from benches/record by tests/docs/policies.rs.\n",
    );
    for (table, machines) in records() {
        let (said, library) = (policy_of(&machines), library(&table));
        assert_eq!(said == Policy::NONE, machines.is_empty(), "{table}");
        let _ = write!(out, "library {}\n{said}", library.family.name());
        assert_eq!(Policy::parse(&out, library.family.name()), Ok(Some(said)), "{table}");
    }
    hold("hosts/src/policy.txt", &out);
}

#[test]
fn the_machines_stand_side_by_side() {
    let mut out = String::from(
        "# Gain of converted calls, by machine\n\n\
         This page is generated from the records of measured calls\n\
         (`DDTC_BLESS=1 cargo test --test docs`). Each machine has a column with the name of its\n\
         folder here: CPU model, family, model number and stepping. A gain is the time with the\n\
         unmodified MPI library divided by the time with a conversion. For `inside`, the gain is\n\
         relative to converted messages. `no` means that nothing was converted and that packing\n\
         by hand gains nothing either.\n\n\
         A payload is shipped as converted if the gain is at least 1.3 plus twice the noise on\n\
         every machine. For a machine without a measurement of the payload, the nearest measured\n\
         payload counts. If only one machine has measured a call, other rules hold: the gain must\n\
         be at least 2 plus twice the noise (1.5 for one-sided operations, 4 for reads from\n\
         files), and the conversion must take at most 1.2 times as long as packing by hand. For\n\
         `inside` it suffices that nothing is lost beyond twice the noise. Collective calls are\n\
         converted only if messages of the same class and payload are.\n",
    );
    for (table, machines) in records() {
        // This is the policy of the records. The test above ensures that the shipped table is equal
        // to it.
        let shipped = policy_of(&machines);
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
                writeln!(out, "\n## {table}, {kind}\n\n| class | bytes | {} | shipped |", names.join(" | "));
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
                        if Policy::has(shipped.payloads(call, class), 1 << bit) { "converted" } else { "" };
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
        let policy = Profile::find(&Library::new(family, [0; 3])).shipped_policy();
        let classes = Class::ALL.into_iter().filter(|&class| policy.set(class) != 0);
        let words: Vec<String> =
            classes.map(|class| format!("{} {}", class.name(), payloads(policy.set(class)))).collect();
        let expected = if words.is_empty() { "none".to_owned() } else { words.join(", ") };
        let mut tables = document.split("| | messages converted, by shipped table |").skip(1);
        let rows = tables.next().expect("the table").lines();
        let cell = rows.filter_map(|l| l.strip_prefix("| ")?.strip_prefix(name)?.strip_prefix(" | ")).next();
        let said = cell.and_then(|rest| rest.split(" |").next()).unwrap_or_default();
        // In the document, a reason may follow after a colon.
        let said = said.split(": ").next().unwrap_or_default();
        assert_eq!(said, expected, "{name}: docs/SETTINGS.md (left) and the shipped table (right)");
    }
}
