//! Loops of few iterations written out, so that an assembler issues the loads of all of them at once.
//!
//! ptxas unrolls loops by four at most, and begins an iteration's loads when the ones before have been used: where what an iteration
//! loads is known before the loop (a table, a window of pixels), threads wait for memory in each. Written out, the loads of
//! all iterations may be under way together, and what follows from the number of an iteration is known. Registers are no obstacle:
//! those of PTX are variables, so that the text of an iteration can be repeated as it is.

use super::apart::registers;
use std::collections::HashMap;

/// Iterations of a loop at most.
const MOST_ITERATIONS: usize = 40;
/// Instructions of all iterations of a loop together at most: with 3,300 (a filter of seven rows) nothing was lost.
const MOST_INSTRUCTIONS: usize = 4096;
/// Loops that are put in order at most.
const MOST_MOVES: usize = 8;
/// What a loop must not have: it orders threads, or copies and multiplies beside the program, so that schedules are made for it.
const KEPT: [&str; 9] =
    ["bar.", "barrier.", "mbarrier.", "cp.", "mma.", "wgmma.", "ldmatrix.", "setmaxnreg.", "call"];

/// A loop that is one piece of text, from behind its label to the branch back, in which control goes forward.
struct Loop<'a> {
    /// The line of its label.
    begin: usize,
    /// The line of its branch.
    end: usize,
    /// Labels in it, and their lines.
    labels: HashMap<&'a str, usize>,
    iterations: usize,
}

impl<'a> Loop<'a> {
    /// Writes a line of iteration number `n`, in which labels have names of their own.
    fn write(&self, line: &'a str, n: usize, out: &mut String) {
        let named =
            label(line).or_else(|| Some(branch(line)?.1)).filter(|name| self.labels.contains_key(name));
        match named {
            Some(name) => out.push_str(&line.replacen(name, &format!("{name}$iteration{n}"), 1)),
            None => out.push_str(line),
        }
        out.push('\n');
    }
}

/// `ptx` with its innermost loops written out. `None` where one of them cannot be, since it runs too often, or nobody knows how
/// often, or none of them loads.
pub fn written_out(ptx: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(ptx).ok()?;
    let lines = with_loops_in_order(text.split('\n').collect());
    let loops = loops(&lines)?;
    let mut out = String::with_capacity(2 * text.len());
    let copy = |lines: &[&str], out: &mut String| {
        for line in lines {
            out.push_str(line);
            out.push('\n');
        }
    };
    let mut at = 0;
    for found in loops {
        copy(&lines[at..=found.begin], &mut out);
        for n in 0..found.iterations {
            // Labels for debuggers would be there more than once.
            let body = lines[found.begin + 1..found.end].iter().filter(|line| !line.starts_with("$L__tmp"));
            body.for_each(|line| found.write(line, n, &mut out));
        }
        at = found.end + 1;
    }
    copy(&lines[at..], &mut out);
    // What was split has a line more than line breaks.
    out.pop();
    Some(out.into_bytes())
}

/// The lines with loops from their first block to their last one. LLVM may put the last one, which branches back, first, so that
/// one branch less is taken: control comes to such text only by its labels, leaves it for good, and so it may stand anywhere.
fn with_loops_in_order(mut lines: Vec<&str>) -> Vec<&str> {
    for _ in 0..MOST_MOVES {
        let Some((at, last, behind)) = out_of_order(&lines) else { break };
        // Both branches become ways to the next line. What comes before may be inlined at places that the block behind names: a
        // directive of a place has to come before those that are inlined there (PTX ISA, ".loc").
        let moved = &lines[at + 1..last];
        let named: Vec<&str> = moved.iter().filter(|line| line.starts_with("\t.loc")).copied().collect();
        let rest = [&named, &lines[last + 1..behind], moved].concat();
        lines.splice(at..behind, rest);
    }
    lines
}

/// Where a branch goes to a loop's first block, past the last one: the lines of this branch, of the branch with which the
/// last block leaves, and of the label behind the loop.
fn out_of_order(lines: &[&str]) -> Option<(usize, usize, usize)> {
    let labels: HashMap<&str, usize> =
        lines.iter().enumerate().filter_map(|(at, line)| Some((label(line)?, at))).collect();
    (0..lines.len()).find_map(|at| {
        let first = *labels.get(always(lines[at])?)?;
        label(lines.get(at + 1)?)?;
        let last = text_before(lines, first).filter(|last| *last > at)?;
        let behind = labels.get(always(lines[last])?).copied().filter(|behind| *behind > first)?;
        always(lines[text_before(lines, behind)?])?;
        Some((at, last, behind))
    })
}

/// The last line before line `at` that is an instruction or a label.
fn text_before(lines: &[&str], at: usize) -> Option<usize> {
    lines[..at].iter().rposition(|line| {
        !line.trim().is_empty() && !line.starts_with("\t.loc") && !line.starts_with("$L__tmp")
    })
}

/// The target of a branch that is always taken.
fn always(line: &str) -> Option<&str> {
    branch(line).filter(|_| !line.trim_start().starts_with('@')).map(|(_, target)| target)
}

/// What says that a loop stays one (PTX ISA, "Pragma Strings"): libdevice says it of loops that only large arguments need.
const STAYS: &str = ".pragma \"nounroll\"";

/// Whether the text has loops that are to stay loops.
pub fn has_loops_that_stay(ptx: &[u8]) -> bool {
    super::read::position(ptx, 0, STAYS.as_bytes()).is_some()
}

/// The innermost loops but those that are to stay, in the order of the text.
fn loops<'a>(lines: &[&'a str]) -> Option<Vec<Loop<'a>>> {
    let mut found: Vec<Loop<'_>> = Vec::new();
    let (mut loads, mut last) = (false, None);
    let (mut labels, mut constants) = (HashMap::new(), None);
    let branches: Vec<(usize, &str)> =
        lines.iter().enumerate().filter_map(|(at, line)| Some((at, branch(line)?.1))).collect();
    for (end, line) in lines.iter().enumerate() {
        if let Some(label) = label(line) {
            labels.insert(label, end);
        }
        let Some((predicate, target)) = branch(line) else { continue };
        let Some(begin) = labels.get(target).copied() else { continue };
        // One that has another one in it is not innermost.
        if last.is_some_and(|inner| inner > begin) {
            continue;
        }
        last = Some(begin);
        let body = &lines[begin + 1..end];
        if body.iter().any(|line| line.contains(STAYS)) {
            continue;
        }
        let kept = |line: &&str| KEPT.iter().any(|name| instruction(line).starts_with(name));
        if body.iter().any(kept) {
            return None;
        }
        let inside = |at: usize| begin < at && at < end;
        let own: HashMap<&str, usize> =
            (begin + 1..end).filter_map(|at| Some((label(lines[at])?, at))).collect();
        // Control comes to a label in the loop from before it, in the loop, and to the loop itself from the text before it.
        let goes_forward = |(at, other): &(usize, &str)| match own.get(other) {
            Some(to) => inside(*at) && at < to,
            None => *other != target || *at == end,
        };
        if !branches.iter().all(goes_forward) {
            return None;
        }
        let known = constants.get_or_insert_with(|| Constants::of(lines));
        let iterations = known.iterations(lines, (begin, end), &own, predicate?)?;
        loads |= body.iter().any(|line| line.contains("ld.global"));
        found.push(Loop { begin, end, labels: own, iterations });
    }
    (loads && !found.is_empty()).then_some(found)
}

pub(super) fn label(line: &str) -> Option<&str> {
    line.strip_suffix(':').filter(|name| name.starts_with('$') && !name.starts_with("$L__tmp"))
}

/// The predicate and the target of a branch; no predicate where there is none, or it is negated.
pub(super) fn branch(line: &str) -> Option<(Option<&str>, &str)> {
    let line = line.trim();
    let (guard, rest) = match line.strip_prefix('@') {
        Some(guarded) => {
            let (guard, rest) = guarded.split_once([' ', '\t'])?;
            (Some(guard).filter(|guard| guard.starts_with('%')), rest.trim_start())
        }
        None => (None, line),
    };
    let target = rest.strip_prefix("bra")?.split_once([' ', '\t'])?.1;
    Some((guard, target.trim().strip_suffix(';')?))
}

/// An instruction without its predicate.
fn instruction(line: &str) -> &str {
    let line = line.trim_start();
    if line.starts_with('@') {
        line.split_once([' ', '\t']).map_or("", |(_, rest)| rest.trim_start())
    } else {
        line
    }
}

/// Registers that hold a constant before a loop: those that one `mov` outside of it writes, and nothing else there.
struct Constants<'a> {
    /// By register: each line that may write it, and the constant, if it is a `mov` of one.
    written: HashMap<&'a str, Vec<(usize, Option<i64>)>>,
}

impl<'a> Constants<'a> {
    fn of(lines: &[&'a str]) -> Self {
        let mut written: HashMap<&str, Vec<(usize, Option<i64>)>> = HashMap::new();
        for (at, line) in lines.iter().enumerate() {
            let known = Assignment::of(line);
            let constant = known.as_ref().filter(|known| known.name.starts_with("mov."));
            let constant = constant.and_then(|known| known.operands.first()?.parse().ok());
            for register in made(line) {
                written.entry(register).or_default().push((at, constant));
            }
        }
        Self { written }
    }

    /// How often the loop from line `begin` to line `end` runs, in which there are these labels.
    fn iterations(
        &self,
        lines: &[&'a str],
        (begin, end): (usize, usize),
        labels: &HashMap<&str, usize>,
        predicate: &str,
    ) -> Option<usize> {
        let size = lines[begin + 1..end].iter().filter(|line| line.ends_with(';')).count().max(1);
        // What registers hold, as far as it is known: before the loop, from the block that leads to it on.
        let mut values: HashMap<&str, Option<i64>> = HashMap::new();
        let before = |register: &str| {
            let mut outside = self.written.get(register)?.iter().filter(|(at, _)| *at < begin || *at > end);
            let (at, constant) = *outside.next()?;
            (outside.next().is_none() && at < begin).then_some(constant)?
        };
        let run = |lines: &[(Option<Assignment<'a>>, Vec<&'a str>)],
                   values: &mut HashMap<&'a str, Option<i64>>| {
            for (assignment, makes) in lines {
                let value = assignment.as_ref().and_then(|known| {
                    known.value(|register| values.get(register).copied().unwrap_or_else(|| before(register)))
                });
                for register in makes {
                    values.insert(register, value);
                }
            }
        };
        // What a branch may pass by is not known to be done.
        let read = |from: usize, to: usize| -> Vec<_> {
            let mut passed = 0;
            let step = |at: usize| {
                let target = branch(lines[at]).and_then(|(_, target)| labels.get(target));
                passed = passed.max(target.copied().unwrap_or(0));
                (Assignment::of(lines[at]).filter(|_| at >= passed), made(lines[at]))
            };
            (from..to).map(step).collect()
        };
        let cut = |line: &&str| label(line).is_some() || branch(line).is_some();
        let leads = lines[..begin].iter().rposition(cut).map_or(0, |at| at + 1);
        run(&read(leads, begin), &mut values);
        let assignments = read(begin + 1, end);
        for iteration in 1..=MOST_ITERATIONS.min(MOST_INSTRUCTIONS / size) {
            run(&assignments, &mut values);
            if values.get(predicate).copied()?? == 0 {
                return Some(iteration);
            }
        }
        None
    }
}

/// An instruction that writes one register, without a predicate.
pub(super) struct Assignment<'a> {
    pub(super) name: &'a str,
    pub(super) operands: Vec<&'a str>,
}

impl<'a> Assignment<'a> {
    pub(super) fn of(line: &'a str) -> Option<Self> {
        let (name, operands) = line.strip_prefix('\t')?.strip_suffix(';')?.split_once([' ', '\t'])?;
        if name.starts_with('@') || operands.contains(['{', '[', '|']) {
            return None;
        }
        let mut operands = operands.split(',').map(str::trim);
        operands.next()?;
        Some(Self { name, operands: operands.collect() })
    }

    /// Its result, where `of` knows registers.
    fn value(&self, of: impl Fn(&str) -> Option<i64>) -> Option<i64> {
        let operand = |n: usize| {
            let text = self.operands.get(n)?;
            if text.starts_with('%') { of(text) } else { text.parse().ok() }
        };
        let mut parts = self.name.split('.');
        let (operation, rest): (_, Vec<&str>) = (parts.next()?, parts.collect());
        let ty = rest.last()?;
        // As the register holds it: of 32 bits, sign-extended.
        let fit = |value: i64| match *ty {
            "s32" | "u32" | "b32" => Some(i64::from(value as i32)),
            "s64" | "u64" | "b64" => Some(value),
            _ => None,
        };
        match (operation, rest.len()) {
            ("mov", 1) => fit(operand(0)?),
            ("add", 1) => fit(operand(0)?.wrapping_add(operand(1)?)),
            ("sub", 1) => fit(operand(0)?.wrapping_sub(operand(1)?)),
            ("setp", 2) => {
                let (left, right) = (fit(operand(0)?)?, fit(operand(1)?)?);
                let unsigned =
                    |value: i64| if ty.ends_with("32") { u64::from(value as u32) } else { value as u64 };
                let order =
                    if ty.starts_with('u') { unsigned(left).cmp(&unsigned(right)) } else { left.cmp(&right) };
                let holds = match rest[0] {
                    "eq" => order.is_eq(),
                    "ne" => order.is_ne(),
                    "lt" => order.is_lt(),
                    "le" => order.is_le(),
                    "gt" => order.is_gt(),
                    "ge" => order.is_ge(),
                    _ => return None,
                };
                Some(holds.into())
            }
            _ => None,
        }
    }
}

/// The registers that an instruction may write: those of its first operand, whatever it does.
pub(super) fn made(line: &str) -> Vec<&str> {
    let line = instruction(line);
    let Some((_, operands)) = line.split_once([' ', '\t']) else { return Vec::new() };
    let operands = operands.trim_start();
    let end = if operands.starts_with('{') { '}' } else { ',' };
    operands.split(end).next().into_iter().flat_map(registers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop as LLVM writes it, which loads in each iteration: `before` it, what it tests, and `more` of it.
    fn text(before: &str, more: &str, test: &str) -> String {
        format!(
            "\tmov.b32 \t%r1, 0;\n{before}$L__BB0_1:\n\t.loc\t1 2 3\n$L__tmp4:\n\tld.global.b32 \t%r9, [%rd1];\n\
             \tadd.s64 \t%rd1, %rd1, 4;\n{more}{test}\t@%p1 bra \t$L__BB0_1;\n\tret;\n"
        )
    }

    const STEP: &str = "\tadd.s32 \t%r2, %r2, 1;\n";
    const FROM_ZERO: &str = "\tmov.b32 \t%r2, %r1;\n";

    /// How many iterations are written out.
    fn iterations(text: &str) -> Option<usize> {
        let made = String::from_utf8(written_out(text.as_bytes())?).expect("text");
        assert!(!made.contains("bra") && !made.contains("$L__tmp"), "{made}");
        assert!(made.ends_with("\tret;\n"), "{made}");
        assert_eq!(made.matches("$L__BB0_1:").count(), 1, "what comes from elsewhere finds the label");
        let loads = made.matches("ld.global").count();
        assert_eq!(made.matches(".loc").count(), loads);
        Some(loads)
    }

    #[test]
    fn a_loop_runs_as_often_as_its_counter_says() {
        let test = |test: &str| iterations(&text(FROM_ZERO, STEP, test));
        assert_eq!(test("\tsetp.lt.s32 \t%p1, %r2, 19;\n"), Some(19));
        assert_eq!(test("\tsetp.ne.b32 \t%p1, %r2, 7;\n"), Some(7));
        assert_eq!(test("\tsetp.le.u32 \t%p1, %r2, 7;\n"), Some(8));
        assert_eq!(test("\tsetp.lt.s32 \t%p1, %r2, 0;\n"), Some(1));
        assert_eq!(test("\tsetp.lt.u32 \t%p1, %r2, -1;\n"), None, "four billion times");
        assert_eq!(test("\tsetp.lt.s32 \t%p1, %r2, %r7;\n"), None, "nobody knows how often");
        assert_eq!(test("\tsetp.lt.f32 \t%p1, %r2, 0f40000000;\n"), None);
        assert_eq!(test("\tsetp.lt.s32 \t%p1, %r2, 41;\n"), None, "too often");
        let down =
            text("\tmov.b32 \t%r2, 12;\n", "\tadd.s32 \t%r2, %r2, -3;\n", "\tsetp.gt.s32 \t%p1, %r2, 0;\n");
        assert_eq!(iterations(&down), Some(4));
        let wide = text(
            "\tmov.b64 \t%rd5, 0;\n",
            "\tadd.s64 \t%rd5, %rd5, 16;\n",
            "\tsetp.ne.b64 \t%p1, %rd5, 64;\n",
        );
        assert_eq!(iterations(&wide), Some(4));
    }

    #[test]
    fn loops_that_are_to_stay_do() {
        let test = "\tsetp.lt.s32 \t%p1, %r2, 19;\n";
        let stays = text(FROM_ZERO, &format!("\t.pragma \"nounroll\";\n{STEP}"), test);
        assert!(has_loops_that_stay(stays.as_bytes()) && written_out(stays.as_bytes()).is_none());
        let other = text(FROM_ZERO, STEP, test).replace("BB0_1", "BB0_7");
        assert!(!has_loops_that_stay(other.as_bytes()));
        let both =
            written_out((stays.replace("\tret;\n", "") + &other).as_bytes()).expect("one is written out");
        let both = String::from_utf8(both).expect("text");
        assert_eq!((both.matches("ld.global").count(), both.matches("bra").count()), (20, 1));
    }

    #[test]
    fn a_counter_may_be_changed_only_by_what_is_understood() {
        let test = "\tsetp.lt.s32 \t%p1, %r2, 19;\n";
        for other in [
            "\tld.global.b32 \t%r2, [%rd1];\n",
            "\t@%p3 mov.b32 \t%r2, 5;\n",
            "\tmov.b64 \t{%r3, %r2}, %rd1;\n",
            "\tshfl.sync.bfly.b32 \t%r2|%p5, %r2, 1, 31, -1;\n",
            "\tmul.lo.s32 \t%r2, %r2, 3;\n",
        ] {
            assert_eq!(iterations(&text(FROM_ZERO, &format!("{STEP}{other}"), test)), None, "{other}");
            assert_eq!(iterations(&text(&format!("{FROM_ZERO}{other}"), STEP, test)), None, "{other}");
        }
        // Before the block that leads to the loop, only a constant that nothing else changes is known.
        let far = format!("{FROM_ZERO}$L__BB0_7:\n");
        assert_eq!(iterations(&text(&far, STEP, test)), None);
        let constant = "\tmov.b32 \t%r2, 0;\n$L__BB0_7:\n";
        assert_eq!(iterations(&text(constant, STEP, test)), Some(19));
        assert_eq!(iterations(&text(&format!("{constant}\t@%p3 mov.b32 \t%r2, 5;\n"), STEP, test)), None);
    }

    #[test]
    fn branches_forward_are_of_their_iteration() {
        let test = "\tsetp.lt.s32 \t%p1, %r2, 3;\n";
        let passes = |what: &str| format!("{STEP}\t@%p3 bra \t$L__BB0_2;\n{what}$L__BB0_2:\n");
        let loops = text(FROM_ZERO, &passes("\tadd.s32 \t%r5, %r5, 1;\n"), test);
        let made = String::from_utf8(written_out(loops.as_bytes()).expect("a loop")).expect("text");
        for n in 0..3 {
            let (jump, place) =
                (format!("bra \t$L__BB0_2$iteration{n};\n"), format!("\n$L__BB0_2$iteration{n}:\n"));
            assert_eq!((made.matches(&jump).count(), made.matches(&place).count()), (1, 1), "{made}");
            assert!(made.find(&jump) < made.find(&place));
        }
        assert_eq!(made.matches("bra").count(), 3);
        // Out of the loop, wherever that is.
        let leaves = text(FROM_ZERO, &format!("{STEP}\t@%p3 bra \t$L__BB0_9;\n"), test);
        let made = String::from_utf8(written_out(leaves.as_bytes()).expect("a loop")).expect("text");
        assert_eq!(made.matches("bra \t$L__BB0_9;").count(), 3);
        // A counter that is not always counted, ways into the loop from elsewhere, and another way to it.
        for other in [
            text(FROM_ZERO, &format!("\t@%p3 bra \t$L__BB0_2;\n{STEP}$L__BB0_2:\n"), test),
            format!("{loops}\tbra.uni \t$L__BB0_2;\n"),
            format!("\t@%p8 bra \t$L__BB0_1;\n{loops}"),
        ] {
            assert_eq!(written_out(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn loops_that_end_before_they_begin_are_put_in_order() {
        let text = "\tmov.b32 \t%r2, 0;\n\tbra.uni \t$L__BB0_1;\n\
            $L__BB0_5:\n\tadd.s32 \t%r2, %r2, 1;\n\tsetp.lt.s32 \t%p1, %r2, 2;\n\t@%p1 bra \t$L__BB0_1;\n\tbra.uni \t$L__BB0_6;\n\
            $L__BB0_1:\n\tld.global.b32 \t%r9, [%rd1];\n\t@%p3 bra \t$L__BB0_5;\n\tadd.s32 \t%r5, %r9, 1;\n\tbra.uni \t$L__BB0_5;\n\
            $L__BB0_6:\n\tret;\n";
        let made = String::from_utf8(written_out(text.as_bytes()).expect("a loop")).expect("text");
        let once = |n: usize| {
            format!(
                "\tld.global.b32 \t%r9, [%rd1];\n\t@%p3 bra \t$L__BB0_5$iteration{n};\n\tadd.s32 \t%r5, %r9, 1;\n\
                 \tbra.uni \t$L__BB0_5$iteration{n};\n$L__BB0_5$iteration{n}:\n\tadd.s32 \t%r2, %r2, 1;\n\
                 \tsetp.lt.s32 \t%p1, %r2, 2;\n"
            )
        };
        assert_eq!(
            made,
            format!("\tmov.b32 \t%r2, 0;\n$L__BB0_1:\n{}{}$L__BB0_6:\n\tret;\n", once(0), once(1))
        );
        // A place that the block that moves names is named before what is inlined there.
        let call = "\t.loc\t2 216 40, function_name $L__f, inlined_at 1 2 3\n";
        let inlined = "\t.loc\t2 187 42, function_name $L__f, inlined_at 2 216 40\n";
        let located = text
            .replace("$L__BB0_5:\n", &format!("$L__BB0_5:\n{call}"))
            .replace("$L__BB0_1:\n", &format!("$L__BB0_1:\n{inlined}"));
        let ordered = with_loops_in_order(located.split('\n').collect()).join("\n");
        assert!(ordered.find("$L__BB0_1:\n") < ordered.find("$L__BB0_5:\n"), "{ordered}");
        assert!(ordered.find(call) < ordered.find(inlined), "{ordered}");
        // Text that control reaches from the line before, or leaves to the next one, stays.
        for other in [
            text.replace("\tbra.uni \t$L__BB0_1;\n", "\t@%p7 bra \t$L__BB0_1;\n"),
            text.replace("\tbra.uni \t$L__BB0_6;\n", ""),
            text.replace("\tbra.uni \t$L__BB0_5;\n", ""),
        ] {
            assert_eq!(with_loops_in_order(other.split('\n').collect()).join("\n"), other);
        }
    }

    #[test]
    fn what_orders_threads_stays() {
        let test = "\tsetp.lt.s32 \t%p1, %r2, 19;\n";
        for more in ["\tbar.sync \t0;\n", "\t@%p3 bra \t$L__BB0_1;\n", "\t@%p2 cp.async.wait_all;\n"] {
            assert_eq!(iterations(&text(FROM_ZERO, &format!("{STEP}{more}"), test)), None, "{more}");
        }
        let negated = text(FROM_ZERO, STEP, test).replace("@%p1", "@!%p1");
        assert_eq!(iterations(&negated), None);
        // Nothing is loaded, and too much is done.
        assert_eq!(iterations(&text(FROM_ZERO, STEP, test).replace("ld.global", "ld.shared")), None);
        let long = "\tadd.s32 \t%r5, %r5, 1;\n".repeat(MOST_INSTRUCTIONS / 19);
        assert_eq!(iterations(&text(FROM_ZERO, &format!("{STEP}{long}"), test)), None);
    }

    #[test]
    fn of_loops_in_loops_the_inner_one_is_written_out() {
        let inner = text(FROM_ZERO, STEP, "\tsetp.lt.s32 \t%p1, %r2, 3;\n");
        let both = format!("$L__BB0_8:\n{}", inner.replace("\tret;\n", "\t@%p9 bra \t$L__BB0_8;\n\tret;\n"));
        let made = String::from_utf8(written_out(both.as_bytes()).expect("a loop")).expect("text");
        assert_eq!(made.matches("ld.global").count(), 3);
        assert_eq!(made.matches("bra").count(), 1);
        // Of two, one of which runs nobody knows how often, both stay.
        let unknown = text(FROM_ZERO, STEP, "\tsetp.lt.s32 \t%p1, %r2, %r7;\n").replace("BB0_1", "BB0_5");
        assert_eq!(written_out(format!("{inner}{unknown}").as_bytes()), None);
    }
}
