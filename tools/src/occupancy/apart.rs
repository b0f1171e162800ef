//! Masked loads in blocks of their own, so that an assembler issues all of them before what uses the first one.
//!
//! ptxas begins to use what it loaded under a predicate as soon as a few loads are under way, where it issues dozens that are not
//! predicated at once: threads then wait for memory again and again. It does not move instructions across branches, though. So
//! such loads go to a block that warps enter all of whose lanes have true masks, without predicates, and once more to one for the
//! others.

use std::collections::HashSet;

/// Loads next to each other from which on they are put apart: two are under way at once in any case.
const LEAST: usize = 4;
/// Masks of the loads of a block at most.
const MOST_MASKS: usize = 16;
/// More masks, and addresses of as many loads, take registers that not all kernels have.
const FEW_MASKS: usize = 8;
/// Instructions that may stand between loads, since their results follow from registers alone: those that read nothing that was
/// loaded come before all of the loads, the others behind.
const PLAIN: [&str; 22] = [
    "add", "sub", "mov", "cvt", "shl", "shr", "and", "or", "xor", "not", "neg", "selp", "setp", "mul", "mad",
    "min", "max", "prmt", "bfe", "bfi", "cvta", "fma",
];

/// A load, as lowering writes it: what else its registers hold, and the access under its mask.
pub(super) struct Load<'a> {
    defaults: Vec<&'a str>,
    mask: &'a str,
    pub(super) access: &'a str,
    /// Registers that it writes.
    makes: Vec<&'a str>,
    /// The line behind it.
    pub(super) end: usize,
}

/// Which loads go apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All: where they have many masks, in several blocks, one after the other.
    All,
    /// Of loads next to each other the last ones that have few masks together; those before stay as they are.
    OfFewMasks,
}

/// `ptx` with its masked loads apart; `None` where there are too few.
pub fn apart(ptx: &[u8], which: Which) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(ptx).ok()?;
    let lines: Vec<&str> = text.split('\n').collect();
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let (mut at, mut count) = (0, 0);
    while at < lines.len() {
        let most_masks = if which == Which::All { MOST_MASKS } else { usize::MAX };
        let goes_apart = |run: &Run<'_>| {
            run.loads.len() >= LEAST && (which == Which::All || run.masks().len() <= FEW_MASKS)
        };
        let run = run(&lines, at, most_masks).filter(goes_apart);
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
#[derive(Default)]
struct Run<'a> {
    loads: Vec<Load<'a>>,
    /// Directives between them, each once: later ones may say what was inlined there, and ptxas knows such a place only if a
    /// directive before names it.
    places: Vec<&'a str>,
    /// That which holds behind the loads.
    last_place: Option<&'a str>,
    before: Vec<&'a str>,
    after: Vec<&'a str>,
    end: usize,
}

/// Registers that instructions write and read.
#[derive(Default)]
struct Registers<'a> {
    made: HashSet<&'a str>,
    used: HashSet<&'a str>,
}

impl<'a> Registers<'a> {
    /// Whether an instruction that writes `makes` and reads `uses` stays behind these.
    fn keep_behind(&self, makes: &[&'a str], uses: &[&'a str]) -> bool {
        uses.iter().any(|register| self.made.contains(register))
            || makes.iter().any(|register| self.made.contains(register) || self.used.contains(register))
    }

    fn add(&mut self, makes: &[&'a str], uses: &[&'a str]) {
        self.made.extend(makes);
        self.used.extend(uses);
    }
}

/// The loads that begin at line `at`, of `most_masks` masks.
fn run<'a>(lines: &[&'a str], at: usize, most_masks: usize) -> Option<Run<'a>> {
    let first = load(lines, at)?;
    let mut run = Run { end: first.end, ..Run::default() };
    let (mut loaded, mut behind) = (Registers::default(), Registers::default());
    let mut between: Vec<(&str, Vec<&str>, Vec<&str>)> = Vec::new();
    let (mut places, mut masks) = (Vec::new(), Vec::new());
    let mut at = at;
    while let Some(text) = lines.get(at) {
        if let Some(load) = load(lines, at) {
            if !masks.contains(&load.mask) {
                if masks.len() == most_masks {
                    break;
                }
                masks.push(load.mask);
            }
            // What stands between comes before all loads, or behind them; this load comes before what stands behind.
            let uses = reads(&load);
            let (mut late, mut early) = (Vec::new(), Vec::new());
            for (text, makes, uses) in between.drain(..) {
                if loaded.keep_behind(&makes, &uses) || behind.keep_behind(&makes, &uses) {
                    behind.add(&makes, &uses);
                    late.push(text);
                } else {
                    early.push(text);
                }
            }
            if loaded.keep_behind(&load.makes, &uses) || behind.keep_behind(&load.makes, &uses) {
                break;
            }
            for place in places.drain(..) {
                if !run.places.contains(&place) {
                    run.places.push(place);
                }
                run.last_place = Some(place);
            }
            run.before.append(&mut early);
            run.after.append(&mut late);
            loaded.add(&load.makes, &uses);
            at = load.end;
            run.end = at;
            run.loads.push(load);
        } else if text.starts_with("\t.loc") {
            places.push(*text);
            at += 1;
        } else if text.trim().is_empty() {
            at += 1;
        } else if let Some((makes, uses)) = plain(text) {
            between.push((text, makes, uses));
            at += 1;
        } else {
            break;
        }
    }
    Some(run)
}

/// What a load reads, besides what it writes.
fn reads<'a>(load: &Load<'a>) -> Vec<&'a str> {
    let texts = load.defaults.iter().copied().chain([load.access, load.mask]);
    texts.flat_map(registers).filter(|register| !load.makes.contains(register)).collect()
}

/// The registers in `text`, by their names.
pub(super) fn registers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '%' || c == '_'))
        .filter(|word| word.starts_with('%'))
}

/// What a plain instruction writes and reads.
fn plain(text: &str) -> Option<(Vec<&str>, Vec<&str>)> {
    let (name, operands) = text.strip_prefix('\t')?.split_once([' ', '\t'])?;
    let (true, false) = (PLAIN.contains(&name.split('.').next()?), operands.contains(['[', '|'])) else {
        return None;
    };
    let operands = operands.trim_start();
    // Several registers may stand in braces, as in `mov.b32 {%rs1, %rs2}, %r1`.
    let end = if operands.starts_with('{') { '}' } else { ',' };
    let (makes, uses) = operands.split_once(end)?;
    Some((registers(makes).collect(), registers(uses).collect()))
}

/// The masked load whose inline assembly begins at line `at`.
pub(super) fn load<'a>(lines: &[&'a str], at: usize) -> Option<Load<'a>> {
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
        self.places.iter().chain(&self.last_place).chain(&self.before).for_each(|text| line(text));
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
        self.after.iter().for_each(|text| line(text));
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
        apart(text.as_bytes(), Which::All).map(|text| String::from_utf8(text).unwrap_or_default())
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
        let loads: String = (10..13).map(load).collect();
        assert_eq!(of(&loads), None);
        assert!(of(&format!("{loads}{}", load(13))).is_some());
    }

    #[test]
    fn loads_with_many_masks_go_to_several_blocks() {
        let own_mask = |n: usize| load(n).replace("@%p1", &format!("@%p{n}"));
        let blocks = |count: usize| {
            let loads: String = (10..10 + count).map(own_mask).collect();
            let made = of(&loads).unwrap_or_default();
            assert_eq!(
                made.matches("ld.global.b32").count(),
                count + made.matches("\tld.global.b32").count()
            );
            made.matches("vote.sync.all").count()
        };
        assert_eq!((blocks(MOST_MASKS), blocks(MOST_MASKS + LEAST)), (1, 2));
        assert_eq!(blocks(MOST_MASKS + 1), 1, "the last load stays as it is");
        let few = |count: usize| {
            let loads: String = (10..10 + count).map(own_mask).collect();
            let made = String::from_utf8(apart(loads.as_bytes(), Which::OfFewMasks).unwrap()).unwrap();
            (made.matches("\tld.global.b32").count(), made.find("vote.sync.all") > made.find("@%p10"))
        };
        assert_eq!((few(FEW_MASKS), few(FEW_MASKS + 3)), ((FEW_MASKS, false), (FEW_MASKS, true)));
    }

    #[test]
    fn what_stands_between_comes_before_unless_it_follows_from_a_load() {
        let with = |between: &str| {
            let loads = [10, 11, 15, 16].map(load);
            of(&format!("{}{between}{}", loads[..2].concat(), loads[2..].concat()))
        };
        let made = with("\t.loc\t1 2 3\n\tadd.s64 \t%rd15, %rd2, 4;\n\t.loc\t1 9 1, function_name $L__f, inlined_at 1 2 3\n\t.loc\t1 2 3\n")
            .expect("an address is computed between loads");
        // A place that an inlined function's names is known before it, and the last one holds behind the loads.
        let call = "\t.loc\t1 2 3\n";
        let inlined = "\t.loc\t1 9 1, function_name $L__f, inlined_at 1 2 3\n";
        assert!(
            made.starts_with(&format!("{call}{inlined}{call}\tadd.s64 \t%rd15, %rd2, 4;\n\t{{\n")),
            "{made}"
        );
        // A load's address follows from what was loaded, or it is more than arithmetic.
        assert_eq!(with("\tcvt.s64.s32 \t%rd15, %r11;\n"), None);
        assert_eq!(with("\tadd.s32 \t%r3, %r11, 1;\n\tcvt.s64.s32 \t%rd15, %r3;\n"), None);
        assert_eq!(with("\tst.global.b32 \t[%rd2], %r2;\n"), None);
        assert_eq!(with("$L__BB0_2:\n"), None);
    }

    #[test]
    fn what_follows_from_a_load_or_replaces_what_it_reads_comes_behind_all_of_them() {
        let with = |between: &str| {
            let loads = [10, 11, 15, 16].map(load);
            of(&format!("{}{between}{}", loads[..2].concat(), loads[2..].concat()))
        };
        // A half of what was loaded, and what is computed from it.
        let halves = "\tmov.b32 \t{_, %rs1}, %r11;\n\tcvt.f32.f16 \t%r3, %rs1;\n";
        let made = with(halves).expect("halves are unpacked between loads");
        assert!(made.ends_with(&format!("\t}}\n{halves}")), "{made}");
        assert_eq!(made.matches("\tld.global.b32").count(), 4);
        // The address of a load that came before, and an operand of what is behind already.
        for between in
            ["\tadd.s64 \t%rd11, %rd2, 4;\n", "\tadd.s32 \t%r3, %r11, %r4;\n\tmov.b32 \t%r4, %r5;\n"]
        {
            let made = with(between).expect("an operand is made between loads");
            assert!(made.ends_with(&format!("\t}}\n{between}")), "{made}");
        }
        // What is behind would be read before it is made, or made before it is read.
        assert_eq!(with("\tadd.s32 \t%r1, %r11, 1;\n"), None);
        assert_eq!(with("\tadd.s32 \t%r3, %r11, %r15;\n"), None);
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
