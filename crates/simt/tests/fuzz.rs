//! Kernels that are changed at random, inline assembly too, are refused, or run to an end that is told: nothing panics.

use simt::{Arg, Launch};

const KERNELS: [(&str, &str); 9] = [
    ("cluster", include_str!("cluster.ll")),
    ("copies", include_str!("copies.ll")),
    ("gather4", include_str!("gather4.ll")),
    ("mma", include_str!("mma.ll")),
    ("multicast", include_str!("multicast.ll")),
    ("phases", include_str!("phases.ll")),
    ("reverse", include_str!("reverse.ll")),
    ("swizzle", include_str!("swizzle.ll")),
    ("wgmma", include_str!("wgmma.ll")),
];
const PER_KERNEL: u64 = 300;

/// The xorshift generator, so that every run has the same changes.
struct Noise(u64);

impl Noise {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// The text with one place of it changed: a number, a letter, a line that goes, comes twice or changes places.
fn changed(text: &str, noise: &mut Noise) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (i, j) = (noise.below(lines.len()), noise.below(lines.len()));
    match noise.below(7) {
        0 => _ = lines.remove(i),
        1 => lines.insert(i, lines[j].clone()),
        2 => lines.swap(i, j),
        how => {
            // Lines with inline assembly, which this crate reads itself, are changed most often.
            let asm: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].contains("asm")).collect();
            let at = if asm.is_empty() || how == 3 { i } else { asm[noise.below(asm.len())] };
            // LLVM 22's verifier crashes where it prints what is wrong with an immediate of this intrinsic.
            if lines[at].contains("tensormap.replace") {
                return text.to_owned();
            }
            let mut bytes = lines[at].clone().into_bytes();
            // Of inline assembly only the text: LLVM 22 reads past the end of constraints that are broken.
            let text = lines[at].split('"').nth(1).filter(|_| lines[at].contains(" asm "));
            let from = text.and_then(|text| lines[at].find(text)).unwrap_or(0);
            let places = from..text.map_or(bytes.len(), |text| from + text.len());
            let digits: Vec<usize> = places.clone().filter(|i| bytes[*i].is_ascii_digit()).collect();
            let anywhere = from + noise.below(places.len());
            match noise.below(4) {
                0 if !digits.is_empty() => {
                    bytes[digits[noise.below(digits.len())]] = b'0' + noise.below(10) as u8
                }
                1 if !digits.is_empty() => bytes.insert(digits[noise.below(digits.len())], b'9'),
                2 if !places.is_empty() => _ = bytes.remove(anywhere),
                _ => bytes.insert(anywhere, b" ,;{}[]$%@.:rx-0~"[noise.below(17)]),
            }
            lines[at] = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    lines.join("\n")
}

/// How far a kernel comes: 0 it is not read, 1 not decoded, 2 not launched, 3 it is run.
fn reach(text: &str) -> usize {
    let Ok(module) = simt::read::parse("changed.ll", text.as_bytes()) else { return 0 };
    let Ok(program) = simt::decode(&module, None) else { return 1 };
    let buffer = |i: usize| Arg::Buffer { name: format!("b{i}"), data: vec![1; 4096] };
    let launches = (0..6).map(|n| Launch {
        args: (0..n).map(buffer).collect(),
        limit: 20_000,
        jobs: 1,
        ..Launch::default()
    });
    let ran = launches.map(|launch| simt::run(&program, &launch)).filter(Result::is_ok).count();
    2 + usize::from(ran > 0)
}

#[test]
fn changed_kernels_are_refused_or_run() {
    let mut reached = [0; 4];
    for (name, text) in KERNELS {
        assert!(reach(text) > 0, "{name} is read as it is");
        let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
        for _ in 0..PER_KERNEL {
            let text = (0..=noise.below(2)).fold(text.to_owned(), |text, _| changed(&text, &mut noise));
            let result = std::panic::catch_unwind(|| reach(&text));
            reached[result.unwrap_or_else(|_| panic!("this {name} panics:\n{text}"))] += 1;
        }
    }
    // Changes go to all depths: what is only ever refused at once tests nothing behind.
    assert!(reached.iter().all(|count| *count > 20), "{reached:?}");
}
