//! Masked loads in blocks of their own, so that an assembler issues all of them before what uses the first one.
//!
//! ptxas begins to use what it loaded under a predicate as soon as a few loads are under way, where it issues dozens that are not
//! predicated at once: threads then wait for memory again and again. It does not move instructions across branches, though. So
//! such loads go to a block that warps enter all of whose lanes have true masks, without predicates, and once more to one for the
//! others.

use std::collections::HashSet;

/// Loads next to each other from which on they are put apart. Fewer are under way at once in any case.
const LEAST: usize = 8;
/// Masks of them at most.
const MOST_MASKS: usize = 8;
/// Instructions that may stand between loads and come before all of them: their results follow from registers alone.
const PLAIN: [&str; 22] = [
    "add", "sub", "mov", "cvt", "shl", "shr", "and", "or", "xor", "not", "neg", "selp", "setp", "mul", "mad",
    "min", "max", "prmt", "bfe", "bfi", "cvta", "fma",
];

/// A load, as lowering writes it: what else its registers hold, and the access under its mask.
struct Load<'a> {
    defaults: Vec<&'a str>,
    mask: &'a str,
    access: &'a str,
    /// Registers that it writes.
    makes: Vec<&'a str>,
    /// The line behind it.
    end: usize,
}

/// `ptx` with its masked loads apart; `None` where there are too few.
pub fn apart(ptx: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(ptx).ok()?;
    let lines: Vec<&str> = text.split('\n').collect();
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let (mut at, mut count) = (0, 0);
    while at < lines.len() {
        let run = run(&lines, at).filter(|run| run.loads.len() >= LEAST && run.masks().len() <= MOST_MASKS);
        let Some(run) = run else {
            out.push_str(lines[at]);
            out.push('\n');
            at += 1;
            continue;
        };
        count += 1;
        run.write(count, &mut out);
        at = run.end;
    }
    // What was split has a line more than line breaks.
    out.pop();
    (count > 0).then(|| out.into_bytes())
}

/// Loads next to each other, and what stands between them.
struct Run<'a> {
    loads: Vec<Load<'a>>,
    before: Vec<&'a str>,
    end: usize,
}

/// The loads that begin at line `at`.
fn run<'a>(lines: &[&'a str], at: usize) -> Option<Run<'a>> {
    let first = load(lines, at)?;
    let mut run = Run { end: first.end, loads: vec![first], before: Vec::new() };
    // Registers of loads so far: no instruction that comes before all of them may read what they write, or write what they read.
    let (mut made, mut used) = (HashSet::new(), HashSet::new());
    let mut between = Vec::new();
    let mut at = run.end;
    note(&run.loads[0], &mut made, &mut used);
    while let Some(text) = lines.get(at) {
        if let Some(load) = load(lines, at) {
            if reads(&load).any(|register| made.contains(register))
                || load.makes.iter().any(|register| used.contains(register))
            {
                break;
            }
            run.before.append(&mut between);
            note(&load, &mut made, &mut used);
            at = load.end;
            run.end = at;
            run.loads.push(load);
        } else if text.trim().is_empty() || text.starts_with("\t.loc") {
            at += 1;
        } else if let Some((makes, mut uses)) = plain(text) {
            if made.contains(makes) || used.contains(makes) || uses.any(|register| made.contains(register)) {
                break;
            }
            between.push(*text);
            at += 1;
        } else {
            break;
        }
    }
    Some(run)
}

fn note<'a>(load: &Load<'a>, made: &mut HashSet<&'a str>, used: &mut HashSet<&'a str>) {
    made.extend(load.makes.iter().copied());
    used.extend(reads(load));
}

/// What a load reads, besides what it writes.
fn reads<'a>(load: &Load<'a>) -> impl Iterator<Item = &'a str> {
    let makes = load.makes.clone();
    let texts = load.defaults.iter().copied().chain([load.access, load.mask]);
    texts
        .flat_map(registers)
        .filter(move |register| !makes.contains(register))
        .collect::<Vec<_>>()
        .into_iter()
}

/// The registers in `text`, by their names.
fn registers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '%' || c == '_'))
        .filter(|word| word.starts_with('%'))
}

/// What a plain instruction writes and reads.
fn plain(text: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let name = text.strip_prefix('\t')?.split(['.', ' ', '\t']).next()?;
    let (true, false) = (PLAIN.contains(&name), text.contains(['[', '{', '|'])) else { return None };
    let mut all = registers(text);
    Some((all.next()?, all))
}

/// The masked load whose inline assembly begins at line `at`.
fn load<'a>(lines: &[&'a str], at: usize) -> Option<Load<'a>> {
    let line = |n: usize| Some(lines.get(at + n)?.trim());
    if line(0)? != "// begin inline asm" || line(1)? != "{" {
        return None;
    }
    let mut n = 2;
    let mut defaults = Vec::new();
    while line(n)?.starts_with("mov.") {
        defaults.push(line(n)?);
        n += 1;
    }
    let (mask, access) = line(n)?.strip_prefix('@')?.split_once(' ')?;
    let is_load = mask.starts_with("%p") && access.starts_with("ld.global") && !access.contains("volatile");
    if !is_load || line(n + 1)? != "}" || line(n + 2)? != "// end inline asm" {
        return None;
    }
    let makes: Vec<&str> = registers(access.split_once('[')?.0).collect();
    // Defaults are of what is loaded, and nothing else.
    let of_loaded = |text: &&str| registers(text).next().is_some_and(|register| makes.contains(&register));
    defaults.iter().all(of_loaded).then_some(Load { defaults, mask, access, makes, end: at + n + 3 })
}

impl<'a> Run<'a> {
    fn masks(&self) -> Vec<&'a str> {
        let mut masks: Vec<&str> = self.loads.iter().map(|load| load.mask).collect();
        masks.sort_unstable();
        masks.dedup();
        masks
    }

    fn write(&self, number: usize, out: &mut String) {
        let mut line = |text: &str| {
            out.push_str(text);
            out.push('\n');
        };
        self.before.iter().for_each(|text| line(text));
        line("\t{");
        line("\t.reg .pred \ttt_all;");
        for (n, mask) in self.masks().into_iter().enumerate() {
            line(&if n == 0 {
                format!("\tmov.pred \ttt_all, {mask};")
            } else {
                format!("\tand.pred \ttt_all, tt_all, {mask};")
            });
        }
        line("\tvote.sync.all.pred \ttt_all, tt_all, 0xffffffff;");
        line(&format!("\t@tt_all bra \t$TT_all_{number};"));
        for load in &self.loads {
            load.defaults.iter().for_each(|text| line(&format!("\t{text}")));
            line(&format!("\t@{} {}", load.mask, load.access));
        }
        line(&format!("\tbra.uni \t$TT_loaded_{number};"));
        line(&format!("$TT_all_{number}:"));
        self.loads.iter().for_each(|load| line(&format!("\t{}", load.access)));
        line(&format!("$TT_loaded_{number}:"));
        line("\t}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A masked load as lowering writes it.
    fn load(n: usize) -> String {
        format!(
            "\t// begin inline asm\n\t{{\n\tmov.b32 %r{n}, %r1;\n\t@%p1 ld.global.b32 %r{n}, [ %rd{n} ];\n}}\n\t// end inline asm\n"
        )
    }

    fn of(text: &str) -> Option<String> {
        apart(text.as_bytes()).map(|text| String::from_utf8(text).unwrap_or_default())
    }

    #[test]
    fn masked_loads_go_to_a_block_with_masks_and_one_without() {
        let loads: String = (10..18).map(load).collect();
        let made = of(&format!("head\n{loads}\tadd.s32 \t%r3, %r10, %r11;\n")).expect("eight loads");
        assert_eq!(made.matches("@%p1 ld.global.b32").count(), 8);
        assert_eq!(made.matches("\tld.global.b32").count(), 8);
        assert!(made.starts_with("head\n\t{\n"), "{made}");
        assert!(made.ends_with("}\n\tadd.s32 \t%r3, %r10, %r11;\n"), "{made}");
        let (branch, label) = (made.find("bra \t$TT_all_1;"), made.find("$TT_all_1:"));
        assert!(branch.is_some() && branch < label, "{made}");
    }

    #[test]
    fn few_loads_stay() {
        let loads: String = (10..17).map(load).collect();
        assert_eq!(of(&loads), None);
    }

    #[test]
    fn what_stands_between_comes_before_unless_it_follows_from_a_load() {
        let with = |between: &str| {
            let loads: Vec<String> = (10..18).map(load).collect();
            of(&format!("{}{between}{}", loads[..4].concat(), loads[4..].concat()))
        };
        let made = with("\t.loc\t1 2 3\n\tadd.s64 \t%rd15, %rd2, 4;\n")
            .expect("an address is computed between loads");
        assert!(made.starts_with("\tadd.s64 \t%rd15, %rd2, 4;\n\t{\n"), "{made}");
        // It reads what was loaded, writes what a load reads, or is more than arithmetic.
        assert_eq!(with("\tcvt.s64.s32 \t%rd15, %r11;\n"), None);
        assert_eq!(with("\tadd.s64 \t%rd11, %rd2, 4;\n"), None);
        assert_eq!(with("\tst.global.b32 \t[%rd2], %r2;\n"), None);
        assert_eq!(with("$L__BB0_2:\n"), None);
    }

    #[test]
    fn loads_that_may_not_be_told_from_their_masks_stay() {
        let loads: String = (10..18).map(load).collect();
        assert_eq!(of(&loads.replace("@%p1", "@!%p1")), None);
        assert_eq!(of(&loads.replace("ld.global", "ld.volatile.global")), None);
        assert_eq!(of(&loads.replace("ld.global", "ld.shared")), None);
        // Each reads what the one before made.
        let chain: String = (10..18).map(|n| load(n).replace("%r1;", &format!("%r{};", n - 1))).collect();
        assert_eq!(of(&chain), None);
    }
}
