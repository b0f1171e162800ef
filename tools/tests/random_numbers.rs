//! Random programs give the same numbers whatever they are compiled for: each runs on the simulator, all checks on,
//! for several targets and numbers of warps and blocks, so with different layouts, and the buffers are compared.
//! Programs without one result are compiled.
//!
//! `TTOPT_PROGRAMS` says how many programs there are, `TTOPT_SEED` with which seed they begin.

#[path = "../../passes/tests/random_programs/generate/mod.rs"]
mod generate;

use generate::{ELEMENTS, Kind, LARGEST, STORES, program};
use simt::{Arg, Launch, run};
use ttopt_tools::compile::{Options, Stage, compile};

/// Target, warps, blocks.
type Way = (&'static str, u32, u32);

/// All are compared with the first.
const WAYS: [Way; 7] = [
    ("cuda:90", 4, 1),
    ("cuda:80", 4, 1),
    ("cuda:90", 8, 1),
    ("cuda:80", 1, 1),
    ("cuda:90", 4, 2),
    ("cuda:90", 2, 1),
    ("cuda:80", 8, 1),
];

fn bytes(element: &str) -> usize {
    element.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().unwrap_or(8) / 8
}

/// Element `i` of what is read: small integers in floats, all bits otherwise.
fn element(i: usize, element: &str) -> Vec<u8> {
    let spread = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let number = ((spread >> 40) % 17) as f32 - 8.0;
    match element {
        "f32" => number.to_bits().to_le_bytes().to_vec(),
        "bf16" => ((number.to_bits() >> 16) as u16).to_le_bytes().to_vec(),
        // Eight and below have three bits after the first.
        "f16" if number == 0.0 => vec![0; 2],
        "f16" => {
            let bits = number.to_bits();
            let exponent = (bits >> 23 & 0xff) - 127 + 15;
            ((bits >> 16 & 0x8000 | exponent << 10 | bits >> 13 & 0x3ff) as u16).to_le_bytes().to_vec()
        }
        _ => spread.to_be_bytes()[..bytes(element)].to_vec(),
    }
}

fn options((target, num_warps, num_ctas): Way, emit: Stage) -> Options {
    Options {
        target: Some(target.to_owned()),
        num_warps,
        num_stages: 1,
        num_ctas,
        emit,
        print_after: Vec::new(),
        explain: false,
        verify_each: true,
        all_tensor_maps: false,
    }
}

/// Runs a program; its buffers, or what went wrong.
fn buffers(text: &str, seed: u64, way: Way) -> Result<Vec<Vec<u8>>, String> {
    let fail = |what: &dyn std::fmt::Display| what.to_string();
    let compiled = compile(text, "program.mlir", &options(way, Stage::Llvmir)).map_err(|err| fail(&err))?;
    let module = simt::read::parse("program", &compiled.output).map_err(|err| fail(&err))?;
    let metadata = compiled.metadata.ok_or("no kernel")?;
    let program = simt::decode(&module, Some(&metadata.name)).map_err(|err| fail(&err))?;
    let from = ELEMENTS.map(|ty| Arg::Buffer {
        name: ty.to_owned(),
        data: (0..2 * LARGEST).flat_map(|i| element(i, ty)).collect(),
    });
    let to = ELEMENTS
        .map(|ty| Arg::Buffer { name: format!("o_{ty}"), data: vec![0; STORES * LARGEST * bytes(ty)] });
    let mut args: Vec<Arg> = from.into_iter().chain(to).collect();
    args.extend([Arg::Scalar(1 + seed % 3), Arg::Scalar(seed / 3 % 2)]);
    let launch = Launch {
        args,
        grid: [way.2, 1, 1],
        jobs: 1,
        shared: u32::try_from(metadata.shared).ok(),
        scratch: 1 << 16,
        ..Launch::default()
    };
    let outcome = run(&program, &launch).map_err(|err| fail(&err))?;
    match outcome.findings.first() {
        Some(finding) => Err(fail(finding)),
        None => Ok(outcome.buffers),
    }
}

/// A number to compare: all NaNs are one, and both zeros.
fn comparable(bytes: &[u8], element: &str) -> u64 {
    let word = bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    let (exponent, mantissa) = match element {
        "f32" => (8, 23),
        "bf16" => (8, 7),
        "f16" => (5, 10),
        _ => return word,
    };
    let magnitude = word & ((1 << (exponent + mantissa)) - 1);
    let infinity = ((1 << exponent) - 1) << mantissa;
    if magnitude > infinity {
        infinity + 1
    } else if magnitude == 0 {
        0
    } else {
        word
    }
}

/// The first element in which two runs differ.
fn difference(a: &[Vec<u8>], b: &[Vec<u8>]) -> Option<String> {
    let outputs = ELEMENTS.iter().zip(a.iter().zip(b).skip(ELEMENTS.len()));
    for (element, (a, b)) in outputs {
        let size = bytes(element);
        for (i, (x, y)) in a.chunks(size).zip(b.chunks(size)).enumerate() {
            let (x, y) = (comparable(x, element), comparable(y, element));
            if x != y {
                let (part, at) = (i / LARGEST, i % LARGEST);
                return Some(format!("o_{element}, store {part}, element {at}: {x:#x} and {y:#x}"));
            }
        }
    }
    None
}

fn check(seed: u64) -> Result<(), String> {
    let text = program(seed, Kind::Exact);
    let first = buffers(&text, seed, WAYS[0]).map_err(|err| format!("{:?}: {err}", WAYS[0]))?;
    // Two more ways, others for each seed.
    let others = WAYS.len() - 1;
    for n in 0..2 {
        let way = WAYS[1 + (seed as usize * 2 + n) % others];
        let second = buffers(&text, seed, way).map_err(|err| format!("{way:?}: {err}"))?;
        if let Some(what) = difference(&first, &second) {
            return Err(format!("{:?} and {way:?} differ in {what}", WAYS[0]));
        }
    }
    // What has no one result compiles as well.
    let way = WAYS[seed as usize % WAYS.len()];
    let compiled = compile(&program(seed, Kind::Any), "program.mlir", &options(way, Stage::Ptx));
    compiled.map(|_| ()).map_err(|err| format!("any program, {way:?}: {err}"))
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_programs_give_the_same_numbers_everywhere() {
    let (first, count) = (number("TTOPT_SEED", 0), number("TTOPT_PROGRAMS", 40));
    let mut failed = Vec::new();
    for seed in first..first + count {
        if let Err(reason) = check(seed) {
            eprintln!("seed {seed}: {reason}");
            failed.push(seed);
        }
    }
    assert!(failed.is_empty(), "{} of {count} programs failed: {failed:?}", failed.len());
}
