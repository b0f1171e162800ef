//! Loads that come back to lines that have been read before.
//!
//! Where an address moves by a few bytes in an iteration, as those of a window that slides over a row do, most loads find their line in L1:
//! a warp waits for them for tens of cycles, where estimates of machine code take it that loads come from memory. So do the loads of a
//! window that is written out.

use super::apart::registers;
use super::written_out::{Assignment, branch, label, made};
use std::collections::HashMap;

/// Bytes up to which another address is on the same line in most cases: half of a line.
const NEAR: i64 = 64;
/// Instructions through which an address is followed.
const MOST_STEPS: usize = 16;

/// Numbers that the sum of an address has at most, of those that are compared.
const MOST_TERMS: usize = 8;

/// Whether at least half of the loads from global memory in innermost loops are from lines that the iteration before has read, too;
/// where there is no loop, whether at least three quarters of all loads are from lines that a load before has read.
pub fn loads_are_near(ptx: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(ptx) else { return false };
    let lines: Vec<&str> = text.split('\n').collect();
    let (mut near, mut all) = (0, 0);
    let mut labels = HashMap::new();
    let mut behind = 0;
    for (end, line) in lines.iter().enumerate() {
        if let Some(label) = label(line) {
            labels.insert(label, end);
        }
        let Some(begin) = branch(line).and_then(|(_, target)| labels.get(target).copied()) else { continue };
        // One that has another one in it is not innermost.
        if begin < behind {
            continue;
        }
        behind = end;
        let body = Body::of(&lines[begin..end]);
        for address in lines[begin..end].iter().filter_map(|line| address(line)) {
            all += 1;
            near += usize::from(body.moves(address, MOST_STEPS).is_some_and(|by| by.abs() <= NEAR));
        }
    }
    if behind == 0 { are_near_each_other(&lines) } else { all > 0 && 2 * near >= all }
}

/// Whether at least three quarters of the loads of straight-line code are from lines that one before them has read.
fn are_near_each_other(lines: &[&str]) -> bool {
    let body = Body::of(lines);
    // Places by what they are apart from.
    let mut read: HashMap<Vec<(&str, i64)>, Vec<i64>> = HashMap::new();
    let (mut near, mut all) = (0, 0);
    for line in lines {
        let Some(register) = address(line) else { continue };
        let offset =
            line.split_once('+').and_then(|(_, text)| text.split(']').next()?.trim().parse::<i64>().ok());
        all += 1;
        let Some(sum) = body.sum(register, MOST_STEPS) else { continue };
        let (at, places) = (sum.constant + offset.unwrap_or(0), read.entry(sum.terms).or_default());
        near += usize::from(places.iter().any(|place| (place - at).abs() <= NEAR));
        places.push(at);
    }
    all > 0 && 4 * near >= 3 * all
}

/// A sum of numbers in registers, each so many times, and a constant.
struct Sum<'a> {
    terms: Vec<(&'a str, i64)>,
    constant: i64,
}

impl<'a> Sum<'a> {
    fn times(mut self, factor: i64) -> Option<Self> {
        self.constant = self.constant.checked_mul(factor)?;
        for (_, times) in &mut self.terms {
            *times = times.checked_mul(factor)?;
        }
        Some(self)
    }

    fn plus(mut self, other: Self) -> Option<Self> {
        self.constant = self.constant.checked_add(other.constant)?;
        for (register, times) in other.terms {
            match self.terms.binary_search_by_key(&register, |(register, _)| *register) {
                Ok(at) => self.terms[at].1 = self.terms[at].1.checked_add(times)?,
                Err(at) => self.terms.insert(at, (register, times)),
            }
        }
        self.terms.retain(|(_, times)| *times != 0);
        (self.terms.len() <= MOST_TERMS).then_some(self)
    }
}

/// The register of the address that a line loads from.
fn address(line: &str) -> Option<&str> {
    let (_, operands) = line.split_once("ld.global")?;
    registers(operands.split_once('[')?.1).next()
}

/// The instructions of a loop, by what they write: nothing is known of what several may write.
struct Body<'a> {
    definitions: HashMap<&'a str, Option<Assignment<'a>>>,
}

impl<'a> Body<'a> {
    fn of(lines: &[&'a str]) -> Self {
        let mut definitions: HashMap<&str, Option<Assignment<'_>>> = HashMap::new();
        for line in lines {
            for register in made(line) {
                let again = definitions.contains_key(register);
                definitions.insert(register, Assignment::of(line).filter(|_| !again));
            }
        }
        Self { definitions }
    }

    /// An operand as a sum of what nothing more is known of, where nothing overflows; `None` where it is too long.
    fn sum(&self, operand: &'a str, most: usize) -> Option<Sum<'a>> {
        if !operand.starts_with('%') {
            return Some(Sum { terms: Vec::new(), constant: operand.parse().ok()? });
        }
        let itself = Sum { terms: vec![(operand, 1)], constant: 0 };
        let Some(Some(definition)) = self.definitions.get(operand) else { return Some(itself) };
        let Some(most) = most.checked_sub(1) else { return Some(itself) };
        let number = |n: usize| definition.operands.get(n)?.parse::<i64>().ok();
        let sum = |n: usize| self.sum(definition.operands.get(n)?, most);
        match definition.name.split('.').next()? {
            "add" => sum(0)?.plus(sum(1)?),
            "sub" => sum(0)?.plus(sum(1)?.times(-1)?),
            "mov" | "cvt" => sum(0),
            "shl" => {
                number(1).map_or(Some(itself), |by| sum(0)?.times(1 << (0..32).contains(&by).then_some(by)?))
            }
            "mul" if !definition.name.contains(".hi") => {
                number(1).map_or(Some(itself), |factor| sum(0)?.times(factor))
            }
            "mad" => number(1).map_or(Some(itself), |factor| sum(0)?.times(factor)?.plus(sum(2)?)),
            _ => Some(itself),
        }
    }

    /// By how much the number in an operand grows from one iteration to the next.
    fn moves(&self, operand: &str, most: usize) -> Option<i64> {
        if !operand.starts_with('%') {
            return Some(0);
        }
        let Some(definition) = self.definitions.get(operand) else { return Some(0) };
        if let Some(by) = self.carried(operand) {
            return Some(by);
        }
        let (definition, most) = (definition.as_ref()?, most.checked_sub(1)?);
        let number = |n: usize| definition.operands.get(n)?.parse::<i64>().ok();
        let moves = |n: usize| self.moves(definition.operands.get(n)?, most);
        match definition.name.split('.').next()? {
            "add" => moves(0)?.checked_add(moves(1)?),
            "sub" => moves(0)?.checked_sub(moves(1)?),
            "mov" | "cvt" => moves(0),
            "shl" => moves(0)?.checked_mul(1 << number(1).filter(|by| (0..32).contains(by))?),
            "mul" => moves(0)?.checked_mul(number(1)?),
            "mad" => moves(0)?.checked_mul(number(1)?)?.checked_add(moves(2)?),
            _ => (0..definition.operands.len()).all(|n| moves(n) == Some(0)).then_some(0),
        }
    }

    /// What an iteration adds to a register that the loop carries: constants alone.
    fn carried(&self, register: &str) -> Option<i64> {
        let (mut at, mut by) = (register, 0_i64);
        for _ in 0..MOST_STEPS {
            let definition = self.definitions.get(at)?.as_ref()?;
            let number = |n: usize| definition.operands.get(n)?.parse::<i64>().ok();
            by = match definition.name.split('.').next()? {
                "mov" => by,
                "add" => by.checked_add(number(1)?)?,
                "sub" => by.checked_sub(number(1)?)?,
                _ => return None,
            };
            at = definition.operands.first()?;
            if at == register {
                return Some(by);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop with these instructions, whose counter is `%r1`.
    fn of(body: &str) -> bool {
        let text = format!(
            "\tmov.b32 \t%r1, 0;\n$L__BB0_1:\n{body}\tadd.s32 \t%r2, %r1, 1;\n\tsetp.lt.s32 \t%p1, %r2, 9;\n\tmov.b32 \t%r1, %r2;\n\
             \t@%p1 bra \t$L__BB0_1;\n\tret;\n"
        );
        loads_are_near(text.as_bytes())
    }

    const LOAD: &str = "\tmov.b16 %rs1, 0;\n\t@%p2 ld.global.b16 %rs1, [ %rd5 ];\n";

    #[test]
    fn addresses_that_move_by_elements_are_near() {
        assert!(of(&format!("\tmul.wide.s32 \t%rd4, %r1, 2;\n\tadd.s64 \t%rd5, %rd9, %rd4;\n{LOAD}")));
        assert!(of(&format!("{LOAD}\tadd.s64 \t%rd5, %rd5, -4;\n")), "down");
        assert!(of(&format!("\tadd.s32 \t%r3, %r1, %r7;\n\tmul.wide.s32 \t%rd5, %r3, 16;\n{LOAD}")));
        assert!(of(LOAD), "the same in each iteration");
        assert!(of(&format!("\tshl.b32 \t%r3, %r2, 3;\n\tcvt.s64.s32 \t%rd5, %r3;\n{LOAD}")));
    }

    #[test]
    fn what_moves_by_rows_or_by_what_nobody_knows_is_not() {
        assert!(!of(&format!("\tmul.wide.s32 \t%rd4, %r1, 128;\n\tadd.s64 \t%rd5, %rd9, %rd4;\n{LOAD}")));
        assert!(!of(&format!("\tmul.wide.s32 \t%rd5, %r1, %r8;\n{LOAD}")), "a stride");
        assert!(!of(&format!("{LOAD}\tadd.s64 \t%rd5, %rd5, %rd7;\n")), "a stride");
        assert!(
            !of(&format!("\tld.global.b32 \t%r3, [%rd8];\n\tmul.wide.s32 \t%rd5, %r3, 2;\n{LOAD}{LOAD}")),
            "gathered"
        );
        assert!(!of(&format!("\t@%p3 add.s64 \t%rd5, %rd5, 2;\n{LOAD}")), "sometimes");
        assert!(!of(&format!("\tadd.s64 \t%rd5, %rd5, 2;\n\tadd.s64 \t%rd5, %rd5, 512;\n{LOAD}")));
        assert!(!of("\tadd.s32 \t%r3, %r1, 1;\n"), "no loads");
        assert!(!loads_are_near(LOAD.as_bytes()), "no loop");
    }

    /// A window of loads, each this many elements of two bytes behind the one before, that is written out.
    fn window(apart: usize, masked: bool) -> bool {
        let load = |i: usize| {
            let (index, pointer, mask) = (10 + i, 20 + i, if masked { "@%p1 " } else { "" });
            format!(
                "\tadd.s32 \t%r{index}, %r1, {};\n\tmul.wide.s32 \t%rd4{i}, %r{index}, 2;\n\tadd.s64 \t%rd{pointer}, %rd9, %rd4{i};\n\
                 \t{mask}ld.global.b16 %rs{i}, [ %rd{pointer} ];\n",
                i * apart
            )
        };
        loads_are_near((0..8).map(load).chain(["\tret;\n".into()]).collect::<String>().as_bytes())
    }

    #[test]
    fn windows_that_are_written_out_are_near() {
        assert!(window(1, false));
        assert!(window(1, true));
        assert!(window(32, true), "the next half of a line");
        assert!(!window(512, true), "rows");
        let offsets = |bytes| {
            (0..4).map(|i| format!("\tld.global.b32 \t%r{i}, [%rd1+{}];\n", i * bytes)).collect::<String>()
        };
        assert!(loads_are_near(offsets(4).as_bytes()));
        assert!(!loads_are_near(offsets(4096).as_bytes()));
    }

    #[test]
    fn innermost_loops_count() {
        let inner = format!("$L__BB0_2:\n{LOAD}\tadd.s64 \t%rd5, %rd5, 4096;\n\t@%p4 bra \t$L__BB0_2;\n");
        let far = "\tld.global.b32 \t%r9, [%rd8];\n".repeat(3);
        assert!(!of(&format!("{far}{inner}")));
        assert!(of(&format!("{}{inner}", "").replace("4096", "2")));
    }
}
