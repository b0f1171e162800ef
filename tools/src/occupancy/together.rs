//! Loads that are all under way before the first one is used: behind them stands a barrier, and what uses them waits for it.
//!
//! ptxas takes what uses a load before later loads where that frees registers, so that a thread waits for memory again and again. It
//! takes no load across a barrier of the CTA, but what computes, so a barrier alone changes nothing. Here the barrier gives a number, too:
//! whether a thread says so that none does. It is zero, which ptxas does not know, and all that was loaded is or-ed with it.

use std::collections::{HashMap, HashSet};

use super::apart::{self, registers};

/// Loads of a run at least.
const LEAST: usize = 4;
/// Registers of 32 bits that a run loads at least: fewer are under way at once in any case.
const LEAST_REGISTERS: u64 = 32;
/// Instructions that may stand between loads, since they are likely to compute addresses.
const BETWEEN: [&str; 17] = [
    "add", "sub", "mov", "cvt", "shl", "shr", "and", "or", "xor", "not", "neg", "selp", "setp", "mul", "mad",
    "cvta", "prmt",
];
/// What differs between the threads of a CTA, or may.
const OF_THREADS: [&str; 6] = ["%tid", "%laneid", "%warpid", "%lanemask", "%clock", "%globaltimer"];
/// Instructions that give the same to all threads that give them the same. Of all others each thread may have its own.
const OF_OPERANDS: [&str; 38] = [
    "ld", "mov", "add", "sub", "mul", "mad", "fma", "div", "rem", "min", "max", "abs", "neg", "not", "and",
    "or", "xor", "shl", "shr", "shf", "prmt", "bfe", "bfi", "lop3", "setp", "selp", "cvt", "cvta", "popc",
    "clz", "brev", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos",
];

/// A statement, as far as it matters here.
enum Line<'a> {
    Label(&'a str),
    /// A branch, with its predicate.
    Branch(Option<&'a str>, &'a str),
    /// What writes registers (the first ones) and reads others, and whether they give the same to all threads that read the same.
    Plain(Vec<&'a str>, Vec<&'a str>, bool),
    /// Where threads end that others may go on behind, or go on nobody knows where.
    Leaves,
    Other,
}

/// `ptx`, the text of one kernel, with a barrier behind loads that all threads of a CTA come to together, outside of loops; `None`
/// where there are none.
pub fn together(ptx: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(ptx).ok()?;
    let lines: Vec<&str> = text.split('\n').collect();
    if lines.iter().any(|line| line.trim_start().starts_with("call") || line.contains("setmaxnreg")) {
        return None;
    }
    let met = met_by_all(&lines)?;
    let mut barriers: HashMap<usize, Vec<(&str, u64)>> = HashMap::new();
    let mut run = Run::default();
    let mut at = 0;
    while at < lines.len() {
        match load(&lines, at) {
            Some((loaded, end)) if met[at] => {
                run.loads += 1;
                run.loaded.extend(loaded);
                run.end = end;
                at = end;
            }
            _ => {
                if !is_between(lines[at]) {
                    run.close(&mut barriers);
                }
                at += 1;
            }
        }
    }
    if barriers.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for (at, line) in lines.iter().enumerate() {
        if let Some(loaded) = barriers.get(&at) {
            write(loaded, &mut out);
        }
        out.push_str(line);
        out.push('\n');
    }
    // What was split has a line more than line breaks.
    out.pop();
    Some(out.into_bytes())
}

/// Loads that follow each other.
#[derive(Default)]
struct Run<'a> {
    loads: usize,
    /// Registers that they write, with their bits.
    loaded: Vec<(&'a str, u64)>,
    /// The line behind the last one.
    end: usize,
}

impl<'a> Run<'a> {
    /// Ends the run, and has a barrier behind it if it loads enough.
    fn close(&mut self, barriers: &mut HashMap<usize, Vec<(&'a str, u64)>>) {
        let run = std::mem::take(self);
        let registers: u64 = run.loaded.iter().map(|(_, bits)| bits.div_ceil(32)).sum();
        if run.loads >= LEAST && registers >= LEAST_REGISTERS {
            barriers.insert(run.end, run.loaded);
        }
    }
}

/// The barrier, and all that was `loaded` with a zero that is known behind it.
fn write(loaded: &[(&str, u64)], out: &mut String) {
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    line("\t{");
    line("\t.reg .pred \ttt_none;");
    line("\t.reg .b16 \ttt_zero16;");
    line("\t.reg .b32 \ttt_zero32;");
    line("\t.reg .b64 \ttt_zero64;");
    line("\tsetp.ne.b32 \ttt_none, 0, 0;");
    line("\tbar.red.or.pred \ttt_none, 0, tt_none;");
    line("\tselp.b32 \ttt_zero32, 1, 0, tt_none;");
    line("\tcvt.u16.u32 \ttt_zero16, tt_zero32;");
    line("\tcvt.u64.u32 \ttt_zero64, tt_zero32;");
    for (register, bits) in loaded {
        line(&format!("\tor.b{bits} \t{register}, {register}, tt_zero{bits};"));
    }
    line("\t}");
}

/// For each line, whether all threads of a CTA come to it together, once. `None` for text that is not read.
fn met_by_all(lines: &[&str]) -> Option<Vec<bool>> {
    let read: Vec<Line<'_>> = lines.iter().map(|line| statement(line)).collect();
    if read.iter().any(|line| matches!(line, Line::Leaves)) {
        return None;
    }
    let labels: HashMap<&str, usize> = (read.iter().enumerate())
        .filter_map(|(at, line)| if let Line::Label(name) = line { Some((*name, at)) } else { None })
        .collect();
    let mut met = vec![true; lines.len()];
    for (at, line) in read.iter().enumerate() {
        if let Line::Branch(_, target) = line {
            let target = *labels.get(target)?;
            // A loop, between its label and the branch back.
            if target <= at {
                met[target..=at].fill(false);
            }
        }
    }
    let mut differs: HashSet<&str> = HashSet::new();
    loop {
        let known = differs.len();
        let mut apart = 0;
        for (at, line) in read.iter().enumerate() {
            match line {
                // Who is apart from others may go on behind the place where these come together.
                Line::Branch(mask, target)
                    if at < apart || mask.is_some_and(|mask| differs.contains(mask)) =>
                {
                    apart = apart.max(labels[target]).max(at);
                }
                Line::Plain(makes, reads, alike)
                    if !alike || at < apart || reads.iter().any(|register| differs.contains(register)) =>
                {
                    differs.extend(makes);
                }
                _ => {}
            }
            if at < apart {
                met[at] = false;
            }
        }
        if differs.len() == known {
            return Some(met);
        }
    }
}

/// What `line` is.
fn statement(line: &str) -> Line<'_> {
    let text = line.trim();
    if let Some(label) = text.strip_suffix(':').filter(|label| label.starts_with('$')) {
        return Line::Label(label);
    }
    let (mask, rest) = match text.strip_prefix('@').and_then(|masked| masked.split_once([' ', '\t'])) {
        Some((mask, rest)) => (Some(mask.trim_start_matches('!')), rest.trim_start()),
        None => (None, text),
    };
    if rest.starts_with("bra") {
        let target = rest.split([' ', '\t']).next_back().unwrap_or_default().trim_end_matches(';');
        return Line::Branch(mask, target);
    }
    if rest.starts_with("brx") || mask.is_some() && (rest.starts_with("ret") || rest.starts_with("exit")) {
        return Line::Leaves;
    }
    // The first operand is written, all registers of it, but for stores, whose first one is an address.
    let Some((name, operands)) = rest.split_once([' ', '\t']) else { return Line::Other };
    let alike = name.split('.').next().is_some_and(|first| OF_OPERANDS.contains(&first))
        && !OF_THREADS.iter().any(|special| operands.contains(special));
    let operands = operands.trim_start();
    let end = if operands.starts_with('{') { '}' } else { ',' };
    let Some((makes, reads)) = operands.split_once(end).filter(|(makes, _)| !makes.contains('[')) else {
        return Line::Other;
    };
    let makes: Vec<&str> = registers(makes).collect();
    // Under a predicate what was there before may stay.
    let kept = mask.iter().copied().chain(if mask.is_some() { makes.clone() } else { Vec::new() });
    let reads = registers(reads).chain(kept).collect();
    Line::Plain(makes, reads, alike)
}

/// Whether a run of loads goes on behind `line`.
fn is_between(line: &str) -> bool {
    let text = line.trim();
    if text.is_empty() || text.starts_with(".loc") || text.starts_with("//") {
        return true;
    }
    let Some((name, operands)) = text.split_once([' ', '\t']) else { return false };
    let mut parts = name.split('.');
    let is_between = parts.next().is_some_and(|first| BETWEEN.contains(&first));
    let computes = parts.any(|part| matches!(part, "f16" | "bf16" | "f32" | "f64" | "f16x2" | "bf16x2"));
    is_between && !computes && !operands.contains(['[', '|'])
}

/// The load at line `at`, alone or under a mask in inline assembly: the registers that it writes with their bits, and the line behind it.
fn load<'a>(lines: &[&'a str], at: usize) -> Option<(Vec<(&'a str, u64)>, usize)> {
    if let Some(loaded) = access(lines[at].trim()) {
        return Some((loaded, at + 1));
    }
    let masked = apart::load(lines, at)?;
    Some((access(masked.access)?, masked.end))
}

/// What a load writes, with the bits of each register.
fn access(text: &str) -> Option<Vec<(&str, u64)>> {
    let (name, operands) = text.split_once([' ', '\t'])?;
    let is_load = name.starts_with("ld.global") && !name.contains("volatile") && !name.contains("acquire");
    if !is_load {
        return None;
    }
    // A register may be wider than what is loaded to it.
    let bits = |register: &str| match register
        .trim_start_matches('%')
        .trim_end_matches(|c: char| c.is_ascii_digit())
    {
        "rs" => Some(16),
        "r" => Some(32),
        "rd" => Some(64),
        _ => None,
    };
    registers(operands.split_once('[')?.0).map(|register| Some((register, bits(register)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TID: &str = "\tmov.u32 \t%r1, %tid.x;\n";

    /// Eight loads of 16 bytes a thread, of which the first half of the registers is added up.
    fn loads() -> String {
        let load = |n: usize| {
            let at = 10 + 4 * n;
            format!("\tld.global.v4.b32 \t{{%r{at}, %r{}, %r{}, %r{}}}, [%rd{n}];\n", at + 1, at + 2, at + 3)
        };
        (0..8).map(load).collect()
    }

    fn of(body: &str) -> Option<String> {
        together(body.as_bytes()).map(|text| String::from_utf8(text).unwrap_or_default())
    }

    #[test]
    fn what_uses_loads_waits_for_a_barrier_behind_them() {
        let head = format!("{TID}\tmul.wide.u32 \t%rd1, %r1, 16;\n");
        let sums = "\tadd.f32 \t%r2, %r10, %r11;\n\tret;\n";
        let made = of(&format!("{head}{}{sums}", loads())).expect("32 registers are loaded");
        assert!(made.starts_with(&format!("{head}{}\t{{\n", loads())), "{made}");
        assert!(made.ends_with(&format!("\tor.b32 \t%r41, %r41, tt_zero32;\n\t}}\n{sums}")), "{made}");
        assert_eq!((made.matches("bar.red.or.pred").count(), made.matches("\tor.b32").count()), (1, 32));
    }

    #[test]
    fn masked_loads_and_addresses_between_loads_belong_to_a_run() {
        let masked = |n: usize| {
            format!(
                "\tadd.s64 \t%rd{n}, %rd9, {n};\n\t// begin inline asm\n\t{{\n\tmov.b64 %rd{}, 0;\n\t@%p1 ld.global.b64 {{ %rd{} }}, [ %rd{n} ];\n}}\n\t// end inline asm\n",
                n + 100,
                n + 100
            )
        };
        let loads: String = (10..26).map(masked).collect();
        let made = of(&format!("{loads}\tadd.f64 \t%rd1, %rd110, %rd111;\n")).expect("16 loads of 64 bits");
        assert_eq!((made.matches("bar.red").count(), made.matches("\tor.b64").count()), (1, 16));
        let halved = loads.replace("add.s64 \t%rd18, %rd9, 18", "add.f64 \t%rd18, %rd9, %rd9");
        assert_eq!(
            of(&format!("{halved}\tadd.f64 \t%rd1, %rd110, %rd111;\n")),
            None,
            "two runs are too short"
        );
    }

    #[test]
    fn loads_that_not_all_threads_come_to_together_stay() {
        let branch = |mask: &str| {
            let (loads, setp) = (loads(), format!("\tsetp.lt.s32 \t%p1, {mask}, 4;\n"));
            of(&format!(
                "{TID}{setp}\t@%p1 bra \t$L_end;\n{loads}\tst.global.b32 \t[%rd50], %r10;\n$L_end:\n\tret;\n"
            ))
        };
        assert_eq!(branch("%r1"), None);
        assert!(branch("%r2").is_some(), "a number that all threads have the same of");
        let other_way = format!(
            "{TID}\tsetp.lt.s32 \t%p1, %r1, 4;\n\t@%p1 bra \t$L_other;\n\tmov.b32 \t%r2, 1;\n\tbra.uni \t$L_end;\n$L_other:\n{}\tst.global.b32 \t[%rd50], %r10;\n$L_end:\n\tret;\n",
            loads()
        );
        assert_eq!(of(&other_way), None);
        // Behind the branch they are together again.
        let joined = format!(
            "{TID}\tsetp.lt.s32 \t%p1, %r1, 4;\n\t@!%p1 bra \t$L_go;\n\tst.global.b32 \t[%rd50], %r2;\n$L_go:\n{}\tst.global.b32 \t[%rd50], %r10;\n\tret;\n",
            loads()
        );
        assert!(of(&joined).is_some());
        assert_eq!(of(&joined.replace("\tst.global.b32 \t[%rd50], %r2;", "\t@%p1 ret;")), None);
    }

    #[test]
    fn what_threads_find_out_themselves_differs() {
        let of_found = |found: &str| {
            of(&format!(
                "{found}\tsetp.lt.s32 \t%p1, %r3, 4;\n\t@%p1 bra \t$L_end;\n{}\tst.global.b32 \t[%rd50], %r10;\n$L_end:\n\tret;\n",
                loads()
            ))
        };
        assert!(of_found("\tld.param.b32 \t%r3, [k_param_1];\n").is_some());
        assert!(of_found("\tld.global.b32 \t%r3, [%rd1];\n").is_some());
        assert_eq!(of_found("\tatom.global.add.u32 \t%r3, [%rd1], 1;\n"), None);
        assert_eq!(of_found("\tmma.sync.aligned.m16n8k16 \t{%r3, %r4}, {%r5}, {%r6}, {%r7};\n"), None);
        assert_eq!(of_found(&format!("{TID}\tadd.s32 \t%r2, %r1, 1;\n\tmov.b32 \t%r3, %r2;\n")), None);
        // One of two numbers, by a branch that threads take by themselves.
        assert_eq!(
            of_found(&format!(
                "{TID}\tmov.b32 \t%r3, 1;\n\tsetp.lt.s32 \t%p2, %r1, 4;\n\t@%p2 bra \t$L_one;\n\tmov.b32 \t%r3, 9;\n$L_one:\n"
            )),
            None
        );
    }

    #[test]
    fn loops_and_few_loads_stay() {
        let looped = format!("$L_1:\n{}\tadd.f32 \t%r2, %r10, %r2;\n\t@%p1 bra \t$L_1;\n\tret;\n", loads());
        assert_eq!(of(&looped), None);
        let few: String = loads().lines().take(7).map(|line| format!("{line}\n")).collect();
        assert_eq!(of(&format!("{few}\tadd.f32 \t%r2, %r10, %r11;\n")), None);
        let calls = format!("{}\tadd.f32 \t%r2, %r10, %r11;\n\tcall.uni other, ();\n", loads());
        assert_eq!(of(&calls), None);
    }
}
