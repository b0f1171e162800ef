//! What a compiled kernel is made of, in plain words.

use crate::compile::Metadata;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Counts the PTX instructions of a kernel by class.
pub fn instruction_classes(ptx: &str) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for line in ptx.lines() {
        let line = line.trim().trim_start_matches('{').trim_start();
        let line =
            line.split_once(' ').filter(|(first, _)| first.starts_with('@')).map_or(line, |(_, rest)| rest);
        let opcode: &str = line.split([' ', '\t', ';']).next().unwrap_or("");
        if !opcode.starts_with(|c: char| c.is_ascii_lowercase()) || opcode.ends_with(':') {
            continue;
        }
        let class = match opcode {
            op if ["ld.global", "ld.weak.global", "ld.volatile.global"]
                .iter()
                .any(|start| op.starts_with(start)) =>
            {
                "global loads"
            }
            op if op.starts_with("st.global") || op.starts_with("st.volatile.global") => "global stores",
            op if op.starts_with("ld.shared") || op.starts_with("ldmatrix") => "shared loads",
            op if op.starts_with("st.shared") || op.starts_with("stmatrix") => "shared stores",
            op if op.starts_with("ld.param") => "parameter loads",
            op if op.starts_with("atom") || op.starts_with("red") => "atomics",
            op if op.starts_with("shfl") => "shuffles",
            op if op.starts_with("bar") => "barriers",
            op if op.starts_with("mma") || op.starts_with("wgmma") => "matrix instructions",
            op if op.starts_with("bra") || op.starts_with("ret") || op.starts_with("call") => "control flow",
            op if op.starts_with("cvt") => "conversions",
            op if op.starts_with("mov") => "moves",
            _ => "arithmetic",
        };
        *counts.entry(class).or_insert(0) += 1;
    }
    counts
}

/// The opcodes of global accesses with how often they occur, widest first.
pub fn global_accesses(ptx: &str) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for word in ptx.split_whitespace().filter(|word| word.contains(".global") && !word.starts_with('.')) {
        if word.starts_with("ld") || word.starts_with("st") {
            *counts.entry(word.to_owned()).or_insert(0) += 1;
        }
    }
    let mut list: Vec<(String, usize)> = counts.into_iter().collect();
    list.sort_by_key(|(opcode, _)| std::cmp::Reverse(access_bits(opcode)));
    list
}

/// Bits that one access of this opcode moves for a thread.
pub fn access_bits(opcode: &str) -> u32 {
    let vector = opcode.split('.').find_map(|part| part.strip_prefix('v')?.parse().ok()).unwrap_or(1);
    let width =
        opcode.rsplit('.').next().and_then(|part| part.trim_start_matches(char::is_alphabetic).parse().ok());
    vector * width.unwrap_or(0)
}

/// A summary of the compiled kernel.
pub fn summary(metadata: &Metadata, ptx: &str) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "kernel {} for {}: {} warps = {} threads per program, {} bytes of shared memory",
        metadata.name, metadata.target, metadata.num_warps, metadata.threads, metadata.shared
    );
    let _ = writeln!(out, "accesses to global memory:");
    for (opcode, count) in global_accesses(ptx) {
        let bits = access_bits(&opcode);
        let _ = writeln!(out, "  {count:4} x {opcode:<40} {bits} bits a thread");
    }
    let _ = writeln!(out, "PTX instructions (static):");
    for (class, count) in instruction_classes(ptx) {
        let _ = writeln!(out, "  {count:4} {class}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "{\n\tmov.b32 %r1, %tid.x;\n\t@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 ];\n\
                       $L_1:\n\tst.global.L1::evict_first.b16 [ %rd2 ], %rs1;\n\tret;\n}";

    #[test]
    fn instructions_are_counted_by_class() {
        let counts = instruction_classes(PTX);
        assert_eq!(counts.get("global loads"), Some(&1));
        assert_eq!(counts.get("global stores"), Some(&1));
        assert_eq!(counts.get("moves"), Some(&1));
        assert_eq!(counts.get("control flow"), Some(&1));
        assert_eq!(counts.values().sum::<usize>(), 4);
    }

    #[test]
    fn widths_are_read_off_the_opcode() {
        assert_eq!(access_bits("ld.global.v4.b32"), 128);
        assert_eq!(access_bits("st.global.L1::evict_first.b16"), 16);
        assert_eq!(global_accesses(PTX)[0], ("ld.global.v4.b32".to_owned(), 1));
    }
}
