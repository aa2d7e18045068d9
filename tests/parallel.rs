//! Several threads for one call, and stores past the caches: the same bytes as one thread, for every split.

use ddtc::datatype::Datatype;
use ddtc::engine::{Config, Engine};
use ddtc::interp;

#[test]
fn pieces_make_the_whole() {
    let types = [
        "vector(1000, 3, 7, double)",
        "hvector(20, 3000, 5000, char)",
        "contiguous(5000, int)",
        "resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float]))",
        "resized(0, 16, vector(64, 1, 64, double_complex))",
        // Overlap: an unpack stays on one thread.
        "vector(1000, 3, 2, double)",
    ];
    for text in types {
        let t: Datatype = text.parse().unwrap();
        for (threads, stream_bytes) in [(2, u64::MAX), (3, u64::MAX), (8, 1 << 10), (1, 1 << 10)] {
            let config = Config { threads, parallel_bytes: 1 << 10, stream_bytes, ..Config::default() };
            let engine = Engine::new(config);
            let c = engine.commit(&t).unwrap();
            let count = 64;
            let n = c.packed_size(count).unwrap() as usize;
            let len = ((count as i64 - 1) * t.extent() + t.true_ub()) as usize;
            let user: Vec<u8> = (0..len).map(|i| (i % 253) as u8).collect();
            let (mut got, mut want) = (vec![0; n], vec![0; n]);
            c.pack(&user, 0, count, &mut got).unwrap();
            interp::pack(&t, count, &user, 0, &mut want).unwrap();
            assert!(got == want, "pack {text} on {threads} threads");
            let (mut got, mut want) = (vec![0xAA; len], vec![0xAA; len]);
            let stream: Vec<u8> = (0..n).map(|i| (i % 241) as u8).collect();
            c.unpack(&stream, &mut got, 0, count).unwrap();
            interp::unpack(&t, count, &stream, &mut want, 0).unwrap();
            assert!(got == want, "unpack {text} on {threads} threads");
        }
    }
}
