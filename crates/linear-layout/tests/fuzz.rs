//! Every fuzzer of `fuzz/`, on random strings of bytes from a fixed seed.

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::panic::catch_unwind;

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Runs a fuzzer on `count` strings; `LINEAR_LAYOUT_FUZZ` multiplies how many, for a longer run.
fn run(name: &str, count: u64) {
    let (_, body) = fuzz::ALL.into_iter().find(|f| f.0 == name).expect("a fuzzer of that name");
    let times = std::env::var("LINEAR_LAYOUT_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut state = name.bytes().fold(0x1b, |seed, byte| seed << 5 ^ u64::from(byte));
    for _ in 0..count * times {
        let length = next(&mut state) % 160;
        let bytes: Vec<u8> = (0..length).map(|_| next(&mut state) as u8).collect();
        assert!(catch_unwind(|| body(&bytes)).is_ok(), "{name} fails on {bytes:?}");
    }
}

macro_rules! fuzzers {
    ($($name:ident $count:literal),*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name), $count);
            }
        )*

        #[test]
        fn every_fuzzer_runs_here() {
            let here = [$(stringify!($name)),*];
            assert_eq!(here, fuzz::ALL.map(|f| f.0));
        }
    };
}

fuzzers!(
    encoding 4000, conversion 300, copies 300, shared_access 300, vector 500, reduce 100, scan 100, gather 100,
    histogram 200, dot 1000, warp_group 500, descriptor 1000, tma 1000
);
