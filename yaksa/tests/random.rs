//! Tests random types that the library's constructors make. Each of them is made twice: by the
//! library's functions, and as an equivalent `Datatype` of ddtc. For most types, a loop over all
//! copies of the children determines the bounds of the `Datatype`, and the library must return the
//! same bounds.
//!
//! The bytes that the library moves are compared with those that ddtc's reference interpreter
//! moves, one basic element at a time. Some calls move all data, others only a part of them, and
//! some have a reduction. The lists of contiguous pieces must contain the same bytes. Each type is
//! also serialized, and the bounds, moved bytes and pieces of the type that is made from the
//! serialized form are tested too.
//!
//! `DDTC_CASES` sets the number of types and `DDTC_SEED` the first seed.

mod library;
mod mirror;

use std::ops::Range;
use std::ptr;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::exec::interp;
use ddtc::internal::fuzzing::{Budget, Choices, datatype, pattern};
use ddtc::internal::kind::Op;
use ddtc::internal::methods::*;
use libc::iovec;
use mirror::{Mirror, Yaksa};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().unwrap_or_else(|e| panic!("{name}={v}: {e}")))
}

/// User memory with some instances of a type. `origin` is the index in `bytes` of displacement 0 of
/// the first instance.
struct Memory {
    bytes: Vec<u8>,
    origin: usize,
}

impl Memory {
    fn new(t: &Datatype, count: u64, seed: u64) -> Memory {
        let last = (count as i64 - 1) * t.extent();
        let low = (t.true_lb() + last.min(0)).min(0);
        let high = (t.true_ub() + last.max(0)).max(0);
        let bytes = (0..(high - low) as usize + 1).map(|i| pattern(seed, i)).collect();
        Memory { bytes, origin: -low as usize }
    }

    fn address(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().wrapping_add(self.origin)
    }
}

/// Returns the offset 0 and all offsets at which basic elements end in the packed data of `count`
/// instances.
fn ends(t: &Datatype, count: u64) -> Vec<u64> {
    let (mut at, mut ends) = (0, vec![0]);
    interp::for_each(t, count, &mut |_, length, _| {
        at += length as u64;
        ends.push(at);
    })
    .unwrap();
    ends
}

/// Type that is tested, both as a handle of the library and as a `Datatype`, and a number of
/// instances. `stream` has the packed data of these instances, and `ends` the offsets at which its
/// elements end.
struct Case<'y> {
    yaksa: &'y Yaksa,
    number: u64,
    t: &'y Datatype,
    count: u64,
    stream: Vec<u8>,
    ends: Vec<u64>,
}

impl Case<'_> {
    /// Packs and unpacks all instances in one call, and compares the bytes with the reference
    /// interpreter.
    fn whole(&self) {
        let Case { yaksa, number, t, count, ref stream, .. } = *self;
        let mut user = Memory::new(t, count, 1);
        let mut packed = vec![0xee; stream.len() + 1];
        let n = yaksa.pack(number, user.address(), count, 0, &mut packed, 10).unwrap();
        assert_eq!((n, &packed[..n], packed[n]), (stream.len(), &stream[..], 0xee), "{t}");
        let sent: Vec<u8> = (0..stream.len()).map(|i| pattern(2, i)).collect();
        let (mut to, mut expected) = (Memory::new(t, count, 3), Memory::new(t, count, 3));
        let origin = expected.origin;
        interp::unpack(t, count, &sent, &mut expected.bytes, origin).unwrap();
        let n = yaksa.unpack(number, &sent, to.address(), count, 0, 10).unwrap();
        assert!(n == sent.len() && to.bytes == expected.bytes, "{count} of {t}");
    }

    /// Packs and unpacks at most `room` bytes from packed byte `offset` on, and compares the bytes
    /// with the reference interpreter. Returns the offset after the last byte that was moved.
    fn part(&self, offset: u64, room: usize) -> u64 {
        let Case { yaksa, number, t, count, ref stream, ref ends } = *self;
        let mut user = Memory::new(t, count, 1);
        let mut packed = vec![0xee; room + 1];
        let n = yaksa.pack(number, user.address(), count, offset as usize, &mut packed[..room], 10).unwrap();
        let end = offset + n as u64;
        assert_eq!(&packed[..n], &stream[offset as usize..end as usize], "{offset} {room} of {t}");
        assert!(packed[n..].iter().all(|&b| b == 0xee));
        // The library moves as many whole elements as there is room for. A pair is one element, and
        // an element has at most 32 bytes. So fewer than 32 bytes of the room are left, and the
        // test allows fewer than 40.
        assert!(n == 0 || ends.binary_search(&end).is_ok(), "{end} of {t}");
        let most = (offset + room as u64).min(stream.len() as u64);
        assert!(most - end < 40 && (end < most || most - end == 0), "{end} of {most}: {t}");
        let sent: Vec<u8> = (0..room).map(|i| pattern(2, i)).collect();
        let (mut to, mut expected) = (Memory::new(t, count, 3), Memory::new(t, count, 3));
        let origin = expected.origin;
        interp::unpack_range(t, count, &sent[..n], &mut expected.bytes, origin, offset).unwrap();
        let got = yaksa.unpack(number, &sent, to.address(), count, offset as usize, 10).unwrap();
        assert!(got == n && to.bytes == expected.bytes, "{offset} {room} of {count} of {t}");
        end
    }

    /// Checks that the contiguous pieces that the library lists contain the packed data. Then
    /// compares parts of the list with the whole list.
    fn pieces(&self, c: &mut Choices<'_>) {
        let Case { yaksa, number, t, count, ref stream, ref ends } = *self;
        let (one, all) = (yaksa.iov_len(number, 1), yaksa.iov_len(number, count));
        let mut user = Memory::new(t, count, 1);
        let list = yaksa.iov(number, user.address(), count, 0, all + 1);
        assert_eq!(list.len(), all, "{count} of {t}");
        if all != 1 {
            assert_eq!(all, one * count as usize, "{t}");
        }
        let (mut bytes, mut at) = (Vec::new(), 0);
        for piece in &list {
            // SAFETY: the library lists pieces of the instances in `user`, which is alive and
            // initialized. If the library listed other pieces, the comparison with `stream` below
            // would show wrong bytes.
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts(piece.iov_base.cast::<u8>(), piece.iov_len)
            });
            at += piece.iov_len as u64;
            assert!(ends.binary_search(&at).is_ok(), "a piece of {t} ends at {at}");
        }
        assert!(&bytes == stream, "{count} of {t}");
        for _ in 0..4 {
            let (from, max) = (c.below(all as u64 + 2) as usize, c.below(9) as usize);
            let part = yaksa.iov(number, user.address(), count, from, max);
            let expected = &list[from.min(all)..(from + max).min(all).max(from.min(all))];
            let plain = |l: &[iovec]| l.iter().map(|p| (p.iov_base, p.iov_len)).collect::<Vec<_>>();
            assert_eq!(plain(&part), plain(expected), "{max} from {from} of {count} of {t}");
            let most = c.below(stream.len() as u64 + 9) as usize;
            let sums = list.iter().scan(0, |sum, piece| {
                *sum += piece.iov_len;
                Some(*sum)
            });
            let whole: Vec<usize> = sums.take_while(|&sum| sum <= most).collect();
            let known = (whole.len(), whole.last().copied().unwrap_or(0));
            assert_eq!(yaksa.iov_len_max(number, count, most), known, "{most} bytes of {count} of {t}");
        }
    }

    /// Packs and unpacks with the reduction `op`, and compares the destination with the reference
    /// interpreter. `number_of` is the code of `op` in the interface. The bits of a result that is
    /// NaN are not defined. The interpreter marks the bytes of these results in `loose`, and the
    /// test does not compare them.
    fn reduces(&self, number_of: u64, op: Op) {
        let Case { yaksa, number, t, count, ref stream, .. } = *self;
        let bytes = |seed| (0..stream.len()).map(|i| pattern(seed, i)).collect::<Vec<u8>>();
        let (mut to, mut expected) = (Memory::new(t, count, 3), Memory::new(t, count, 3));
        let origin = expected.origin;
        let loose = interp::reduce::unpack(op, t, count, &bytes(2), &mut expected.bytes, origin);
        assert_eq!(yaksa.unpack(number, &bytes(2), to.address(), count, 0, number_of), Ok(stream.len()));
        for (i, loose) in loose.iter().enumerate() {
            assert!(*loose || to.bytes[i] == expected.bytes[i], "{op}: byte {i} of {count} of {t}");
        }
        // When packing, the destination is packed data. The interpreter treats these data as an
        // instance of a type that has the same elements without gaps.
        let mut user = Memory::new(t, count, 1);
        let (mut packed, mut want) = (bytes(4), bytes(4));
        let elements = self.elements();
        let loose = interp::reduce::unpack(op, &elements, 1, stream, &mut want, 0);
        assert_eq!(yaksa.pack(number, user.address(), count, 0, &mut packed, number_of), Ok(stream.len()));
        for (i, loose) in loose.iter().enumerate() {
            assert!(*loose || packed[i] == want[i], "{op}: byte {i} of the stream of {count} of {t}");
        }
    }

    /// Returns a struct that has the basic elements of all instances as members, without gaps
    /// between them.
    fn elements(&self) -> Datatype {
        let (mut at, mut types, mut places) = (0, Vec::new(), Vec::new());
        interp::for_each(self.t, self.count, &mut |_, length, named| {
            types.push(Datatype::named(named));
            places.push(at);
            at += length as i64;
        })
        .unwrap();
        Datatype::structure(&vec![1; types.len()], &places, &types).unwrap()
    }
}

/// Returns a random offset in the packed data that is not inside an element.
fn cut(c: &mut Choices<'_>, ends: &[u64]) -> u64 {
    ends[c.below(ends.len() as u64) as usize]
}

/// Makes one random type. Compares the results of the library's functions for this type, and the
/// bytes that they move, with those of the equivalent `Datatype` and of the reference interpreter.
fn check(yaksa: &Yaksa, seed: u64) {
    let mut c = Choices::from_seed(seed);
    let drawn = datatype(&mut c, &Budget::small());
    let mut mirror = Mirror::new(yaksa);
    let (number, t) = mirror.make(&drawn);
    yaksa.agrees(number, &t);
    let count = 1 + c.below(5);
    let source = Memory::new(&t, count, 1);
    let mut stream = vec![0; (t.size() * count as i64) as usize];
    interp::pack(&t, count, &source.bytes, source.origin, &mut stream).unwrap();
    let case = Case { yaksa, number, t: &t, count, ends: ends(&t, count), stream };
    if t.size() > 0 {
        // The first call copies the contiguous pieces of the type one by one. If there are enough
        // calls, later ones use ddtc's interpreter, and for some types compiled code.
        for round in 0..c.pick(&[1, 3, 60]) {
            case.whole();
            if round < 3 {
                let room = c.below(case.stream.len() as u64 + 20) as usize;
                case.part(cut(&mut c, &case.ends), room);
            }
        }
        case.pieces(&mut c);
        for (number_of, op) in [(0, Op::Max), (2, Op::Sum), (4, Op::Land), (9, Op::Bxor)] {
            let mut parts = Vec::new();
            interp::for_each(&t, 1, &mut |_, _, named| parts.push(named)).unwrap();
            if parts.into_iter().all(|named| op.takes(named)) {
                case.reduces(number_of, op);
            } else {
                let mut user = Memory::new(&t, count, 1);
                let mut packed = vec![0; case.stream.len()];
                assert_eq!(yaksa.pack(number, user.address(), count, 0, &mut packed, number_of), Err(3));
            }
        }
    }
    let again = yaksa.unflatten(&yaksa.flatten(number));
    yaksa.agrees(again, &t);
    assert_eq!(yaksa.iov_len(again, 3), yaksa.iov_len(number, 3), "{t}");
    if t.size() > 0 {
        let case = Case { number: again, ..case };
        case.whole();
        case.pieces(&mut c);
        // The type is made once more, and its packed data are moved in parts. The first part begins
        // at the beginning or at a random place, and each other part begins where the part before
        // it ended.
        let mut anew = Mirror::new(yaksa);
        let case = Case { number: anew.make(&drawn).0, ..case };
        let first = cut(&mut c, &case.ends);
        let (mut at, room) = (c.pick(&[0, 0, first]), 40 + c.below(200) as usize);
        while at < case.stream.len() as u64 {
            at = case.part(at, room);
        }
        anew.free();
    }
    if again != 0 {
        yaksa.free(again);
    }
    mirror.free();
}

#[test]
fn random_types_agree_with_the_interpreter() {
    let yaksa = Yaksa::open();
    let (cases, first) = (setting("DDTC_CASES", 1500), setting("DDTC_SEED", 20_261_122));
    for seed in first..first + cases {
        let run = std::panic::AssertUnwindSafe(|| check(&yaksa, seed));
        if let Err(payload) = std::panic::catch_unwind(run) {
            eprintln!("DDTC_SEED={seed} DDTC_CASES=1");
            std::panic::resume_unwind(payload);
        }
    }
}

/// Makes types from serialized types that ddtc has written. They may have any constructor of ddtc,
/// including those that yaksa's interface lacks, because another process may send any datatype.
#[test]
fn trees_of_other_constructors_come_in_as_forms() {
    let yaksa = Yaksa::open();
    let mut c = Choices::from_seed(7);
    // A serialized type is a head of 88 bytes, followed by the bytes that `to_wire` returns. The
    // head is the same for every type, so it is taken from the serialized type of handle 1.
    let mut form = yaksa.flatten(1);
    for _ in 0..200 {
        let t = datatype(&mut c, &Budget::small());
        form.truncate(88);
        form.extend(t.to_wire().unwrap());
        let number = yaksa.unflatten(&form);
        yaksa.agrees(number, &t);
        let mut memory = Memory::new(&t, 2, 1);
        let mut expected = vec![0; 2 * t.size() as usize];
        interp::pack(&t, 2, &memory.bytes, memory.origin, &mut expected).unwrap();
        let Range { start, end } = 0..expected.len();
        let mut packed = vec![0; end];
        let address = if end == 0 { ptr::null_mut() } else { memory.address() };
        assert_eq!(yaksa.pack(number, address, 2, start, &mut packed, 10), Ok(end));
        assert!(packed == expected, "{t}");
        if number != 0 {
            yaksa.free(number);
        }
    }
}
