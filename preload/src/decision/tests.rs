//! Tests of [`decide`]: a table of facts with the expected decisions, and rules that must hold for
//! all combinations of facts.

use super::*;
use CompletedBy::{LaterCall, SameCall};

const PACK: Purpose = Purpose::Pack { is_accepted: true, fits: true, own_runs: i64::MAX };
const SEND: Purpose = Purpose::Send(SameCall);
const GAP: WireForm = WireForm::Gap { joined: 16 };
const SEGMENTS: WireForm = WireForm::Segments { whole: 4096, multiple: 16 };

/// Facts about a compiled type of 400 packed bytes in short strided runs. The policy converts
/// messages of this type from 4 KiB on.
const KNOWN: Known = Known {
    class: Class::StridedShort,
    size: 400,
    converts: true,
    payloads: Policy::from(4096),
    verdict: None,
    is_due: false,
    code: Code::Ready,
    hook: HookState::No,
};

/// Returns the facts of a send of 8000 bytes, which are 20 instances of the type [`KNOWN`].
/// `known`: the facts about the type.
fn sent(known: Known) -> Facts {
    let payload = Payload { moves: true, is_null: false, bytes: Some(8000) };
    Facts {
        payload: Some(payload),
        purpose: SEND,
        ..Facts::of_type(Call::Message, false, Record::Known(known))
    }
}

fn elements(part: i64, convert_below: u64) -> Purpose {
    Purpose::Elements { call: Call::Alltoall, count: 20, part, convert_below, completed_by: SameCall }
}

fn with_bytes(facts: Facts, bytes: i64) -> Facts {
    Facts { payload: facts.payload.map(|payload| Payload { bytes: Some(bytes), ..payload }), ..facts }
}

#[test]
fn each_fact_decides_as_the_table_says() {
    use Decision::{Bypass, Hook, Stage, Work as W};
    use ddtc_hosts::bypass::Bypass as B;
    let facts = sent(KNOWN);
    let known = |change: fn(&mut Known)| {
        let mut known = KNOWN;
        change(&mut known);
        sent(known)
    };
    let paid = |change: fn(&mut Payload)| {
        let mut facts = facts;
        facts.payload.iter_mut().for_each(change);
        facts
    };
    let of = |purpose| Facts { purpose, ..facts };
    let wire = |purpose, wire_form| Facts { purpose, wire_form, ..facts };
    let argument = |record| Facts::of_type(Call::Message, false, record);
    let undecoded = |counts, declined| argument(Record::Undecoded { counts, declined });
    let pack = |is_accepted, fits, own_runs| of(Purpose::Pack { is_accepted, fits, own_runs });
    let verdict = |gains, loses| Some(Verdict { gains, loses });
    let file = |uncached| Purpose::File { call: Call::FileWrite, uncached };
    let rows = [
        // Cases in which the facts about the type decide.
        (facts, Stage(Plan::Packed)),
        (argument(Record::Unseen), Bypass(B::UnknownType)),
        (Facts { purpose: PACK, ..argument(Record::Unseen) }, Bypass(B::FirstUse)),
        (argument(Record::NotTaken), Bypass(B::TypeNotTaken)),
        (undecoded(true, false), W(Work::Decode)),
        (undecoded(true, true), Bypass(B::Rare)),
        (undecoded(false, false), Bypass(B::Policy)),
        (argument(Record::Known(KNOWN)), Stage(Plan::Later)),
        (argument(Record::Known(Known { converts: false, ..KNOWN })), Bypass(B::Policy)),
        (
            argument(Record::Known(Known { converts: false, class: Class::Dense, ..KNOWN })),
            Bypass(B::Contiguous),
        ),
        (Facts { is_layers: true, ..facts }, Bypass(B::Layer)),
        // Cases in which the facts about the buffer decide.
        (paid(|payload| payload.moves = false), Bypass(B::NothingToMove)),
        (paid(|payload| payload.is_null = true), Bypass(B::NullBuffer)),
        (paid(|payload| payload.bytes = None), Bypass(B::Other)),
        // Cases in which the policy or the measured times decide.
        (with_bytes(facts, 400), Bypass(B::TooSmall)),
        (with_bytes(known(|known| known.payloads = 1 << 12), 8192), Bypass(B::TooLarge)),
        (known(|known| known.payloads = 0), Bypass(B::Policy)),
        (known(|known| known.is_due = true), W(Work::Time)),
        (known(|known| known.verdict = Some(Verdict { gains: false, loses: true })), Bypass(B::Policy)),
        (known(|known| known.verdict = Some(Verdict { gains: false, loses: false })), Stage(Plan::Packed)),
        (with_bytes(sent(Known { verdict: verdict(true, false), ..KNOWN }), 400), Stage(Plan::Packed)),
        (with_bytes(sent(Known { verdict: verdict(false, false), ..KNOWN }), 400), Bypass(B::Policy)),
        // Cases with types whose bytes can be moved inside the MPI library, by the convertor hook.
        (known(|known| known.hook = HookState::Ready { gains: true }), Hook),
        (known(|known| known.hook = HookState::Ready { gains: false }), Stage(Plan::Packed)),
        (known(|known| known.hook = HookState::NotReady), Stage(Plan::Packed)),
        (argument(Record::Known(Known { hook: HookState::Ready { gains: true }, ..KNOWN })), Hook),
        // Cases with an MPI library that was not tried, and with types that are not compiled.
        (Facts { is_tried: false, ..facts }, Bypass(B::Untried)),
        (known(|known| known.code = Code::Missing), W(Work::Compile)),
        (known(|known| known.code = Code::Declined), Bypass(B::Rare)),
        (
            Facts::of_type(Call::Message, true, Record::Known(Known { code: Code::Missing, ..KNOWN })),
            W(Work::Compile),
        ),
        // Cases in which the program itself packs.
        (of(PACK), Stage(Plan::Direct)),
        (
            Facts { purpose: PACK, ..sent(Known { converts: false, payloads: 0, ..KNOWN }) },
            Stage(Plan::Direct),
        ),
        (pack(false, true, i64::MAX), Bypass(B::FirstUse)),
        (pack(true, false, i64::MAX), Bypass(B::Other)),
        (pack(true, true, 8000), Stage(Plan::Direct)),
        (
            Facts {
                purpose: Purpose::Pack { is_accepted: true, fits: true, own_runs: 8000 },
                ..sent(Known { class: Class::Dense, ..KNOWN })
            },
            Bypass(B::Contiguous),
        ),
        (Facts { purpose: PACK, ..sent(Known { code: Code::Missing, ..KNOWN }) }, W(Work::Compile)),
        (Facts { purpose: PACK, is_tried: false, ..facts }, Bypass(B::Untried)),
        // Collective calls. Parts of 11 instances of 400 bytes on average have 4400 bytes, which
        // the policy converts. Parts of 2 instances have 800 bytes, which are too few.
        (of(elements(11, 0)), Stage(Plan::Elements)),
        (of(elements(2, 0)), Bypass(B::TooSmall)),
        (of(elements(2, 1 << 20)), Stage(Plan::Elements)),
        (
            Facts { purpose: elements(2, 801), ..sent(Known { converts: false, payloads: 0, ..KNOWN }) },
            Stage(Plan::Elements),
        ),
        (
            Facts { purpose: elements(2, 800), ..sent(Known { converts: false, payloads: 0, ..KNOWN }) },
            Bypass(B::Policy),
        ),
        (
            Facts { purpose: elements(11, 0), ..sent(Known { verdict: verdict(false, true), ..KNOWN }) },
            Bypass(B::Policy),
        ),
        // If every instance gets a gap, each instance alone must have enough bytes for the policy.
        // 400 bytes are too few, and 4096 bytes are enough.
        (wire(elements(11, 0), GAP), Bypass(B::TooSmall)),
        (
            Facts { purpose: elements(11, 0), wire_form: GAP, ..sent(Known { size: 4096, ..KNOWN }) },
            Stage(Plan::ElementsWithGap),
        ),
        // Files. If contiguous accesses of multiples of 4096 bytes bypass the system's cache, a
        // buffer of 8192 bytes is not staged.
        (of(file(0)), Stage(Plan::FileElements)),
        (with_bytes(of(file(4096)), 8192), Bypass(B::Other)),
        (of(file(4096)), Stage(Plan::FileElements)),
        // Cases that differ in the form in which the MPI library gets the packed bytes.
        (wire(SEND, GAP), Stage(Plan::PiecesWithGap)),
        (wire(Purpose::Receive(LaterCall), GAP), Stage(Plan::BytesWithGap)),
        (wire(Purpose::LaterReceive, GAP), Stage(Plan::BytesWithGap)),
        (wire(Purpose::LaterSend, GAP), Stage(Plan::PiecesWithGap)),
        (wire(SEND, SEGMENTS), Stage(Plan::Uncut)),
        (with_bytes(wire(SEND, SEGMENTS), 4096), Stage(Plan::Packed)),
        (wire(Purpose::Receive(SameCall), SEGMENTS), Stage(Plan::Packed)),
        (wire(Purpose::Put(SameCall), SEGMENTS), Stage(Plan::Uncut)),
        (wire(Purpose::Put(SameCall), GAP), Stage(Plan::Packed)),
        (wire(Purpose::Get, SEGMENTS), Stage(Plan::Packed)),
    ];
    for (row, (facts, decision)) in rows.into_iter().enumerate() {
        assert_eq!(decide(&facts), decision, "row {row}: {facts:?}");
    }
}

/// Calls `with` for all combinations of values that the facts of a decoded type can have here.
fn for_each_facts(mut with: impl FnMut(&Facts)) {
    let booleans = [false, true];
    let verdicts = || {
        let all = booleans.iter().flat_map(|&gains| booleans.map(|loses| Some(Verdict { gains, loses })));
        std::iter::once(None).chain(all)
    };
    let hooks = [
        HookState::No,
        HookState::NotReady,
        HookState::Ready { gains: false },
        HookState::Ready { gains: true },
    ];
    let purposes = [
        PACK,
        SEND,
        Purpose::Receive(LaterCall),
        Purpose::LaterSend,
        Purpose::LaterReceive,
        elements(11, 0),
        elements(2, 0),
        elements(2, 1000),
        Purpose::File { call: Call::FileRead, uncached: 4096 },
        Purpose::Put(SameCall),
        Purpose::Get,
    ];
    for class in [Class::Dense, Class::StridedShort] {
        for payloads in [0, 1 << 12, Policy::from(4096)] {
            for converts in booleans {
                for verdict in verdicts() {
                    for hook in hooks {
                        for code in [Code::Ready, Code::Missing, Code::Declined] {
                            for (is_due, is_tried) in
                                booleans.map(|due| booleans.map(|t| (due, t))).into_iter().flatten()
                            {
                                let known = Known {
                                    class,
                                    size: 400,
                                    converts,
                                    payloads,
                                    verdict,
                                    is_due,
                                    code,
                                    hook,
                                };
                                for purpose in purposes {
                                    for wire_form in [WireForm::Packed, SEGMENTS, GAP] {
                                        for bytes in [400, 8000, 8192] {
                                            let facts = with_bytes(sent(known), bytes);
                                            with(&Facts { purpose, is_tried, wire_form, ..facts });
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_decision_is_reached_after_at_most_three_kinds_of_work() {
    for_each_facts(|facts| {
        for is_done in [false, true] {
            let (mut facts, mut asked) = (*facts, Vec::new());
            while let Decision::Work(work) = decide(&facts) {
                assert!(!asked.contains(&work), "{facts:?}");
                asked.push(work);
                let Record::Known(known) = &mut facts.record else { panic!("{facts:?}") };
                match work {
                    Work::Decode => panic!("{facts:?}"),
                    Work::Compile => known.code = if is_done { Code::Ready } else { Code::Declined },
                    Work::Time => {
                        known.is_due = false;
                        known.verdict = is_done.then_some(Verdict { gains: true, loses: false });
                    }
                }
            }
            assert!(asked.len() <= 2);
        }
    });
}

#[test]
fn what_is_bypassed_for_its_type_is_bypassed_whatever_its_bytes() {
    for_each_facts(|facts| {
        let Record::Known(known) = facts.record else { panic!("{facts:?}") };
        let converts_below = matches!(facts.purpose, Purpose::Elements { convert_below: 1.., .. });
        let argument = decide(&Facts::of_type(
            facts.purpose.call(),
            false,
            Record::Known(Known { hook: HookState::No, ..known }),
        ));
        if let Decision::Bypass(_) = argument
            && facts.purpose != PACK
            && !converts_below
        {
            assert_eq!(decide(facts), argument, "{facts:?}");
        }
    });
}

#[test]
fn nothing_is_staged_that_times_speak_against_or_that_has_no_code() {
    for_each_facts(|facts| {
        let Record::Known(known) = facts.record else { panic!("{facts:?}") };
        if let Decision::Stage(plan) = decide(facts) {
            assert!(known.code == Code::Ready && facts.is_tried && plan != Plan::Later, "{facts:?}");
            let loses = known.verdict == Some(Verdict { gains: false, loses: true });
            assert!(
                !(loses && (facts.purpose.is_message() || facts.purpose == elements(11, 0))),
                "{facts:?}"
            );
        }
    });
}
