//! Registers of straight-line code with a name for each value.
//!
//! Loops that are written out repeat the text of an iteration, registers and all. ptxas gives each value a register of its own, but what
//! puts instructions in another order before must not let one iteration write what the one before it still reads.

use super::read::{only_body, position};
use super::reorder::{Part, Reader, Unit};
use std::collections::HashMap;
use std::ops::Range;

/// `ptx` with names of their own for values that straight-line code replaces further on. `None` where there are none, or it has not
/// exactly one kernel, or calls functions.
pub fn with_own_names(ptx: &[u8]) -> Option<Vec<u8>> {
    let Range { start: from, end } = only_body(ptx)?;
    let mut reader = Reader::new(ptx);
    let parts = reader.parts(from..end)?;
    let names = reader.names();
    let mut declared = Declared::of(&ptx[from..end]);
    let (mut text, mut at, mut found) = (ptx[..from].to_vec(), from, false);
    for part in &parts {
        let Part::Units(units) = part else { continue };
        let last = last_definitions(units);
        let mut own: HashMap<&[u8], Vec<u8>> = HashMap::new();
        for (number, unit) in units.iter().enumerate() {
            for register in defined(unit) {
                let name = names[register as usize];
                let is_replaced = last.get(&register).is_some_and(|last| *last > number);
                match is_replaced.then(|| declared.next(name)).flatten() {
                    Some(next) => own.insert(name, next),
                    None => own.remove(name),
                };
            }
            text.extend(&ptx[at..unit.text.start]);
            found |= write(&ptx[unit.text.clone()], &own, &mut text);
            at = unit.text.end;
        }
    }
    text.extend(&ptx[at..]);
    found.then(|| declared.written(text, from))
}

/// The registers of which a unit needs no value, and makes one.
fn defined(unit: &Unit) -> impl Iterator<Item = u32> + '_ {
    unit.makes.iter().copied().filter(|made| !unit.uses.contains(made))
}

/// The last unit of straight-line code that defines each register. Its value may be read behind the code.
fn last_definitions(units: &[Unit]) -> HashMap<u32, usize> {
    let all = units.iter().enumerate();
    all.flat_map(|(number, unit)| defined(unit).map(move |register| (register, number))).collect()
}

/// Writes text with registers that have names of their own; says whether there were any.
fn write(text: &[u8], own: &HashMap<&[u8], Vec<u8>>, out: &mut Vec<u8>) -> bool {
    let (mut at, mut found) = (0, false);
    while let Some(percent) = text[at..].iter().position(|byte| *byte == b'%') {
        let from = at + percent + 1;
        let to = from + text[from..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        out.extend(&text[at..from]);
        let name = own.get(&text[from..to]);
        found |= name.is_some();
        out.extend(name.map_or(&text[from..to], Vec::as_slice));
        at = to;
    }
    out.extend(&text[at..]);
    found
}

/// How many registers of each kind a kernel declares, as in `.reg .b32 %r<7>`.
struct Declared<'a> {
    /// The kind, as in `r`, how many there were, and how many there are.
    kinds: Vec<(&'a [u8], u64, u64)>,
}

impl<'a> Declared<'a> {
    fn of(body: &'a [u8]) -> Self {
        let declarations =
            body.split(|byte| *byte == b'\n').filter(|line| line.trim_ascii().starts_with(b".reg"));
        let kinds = declarations.filter_map(|line| {
            let rest = &line[line.iter().position(|byte| *byte == b'%')? + 1..];
            let (kind, count) = rest.split_at(rest.iter().position(|byte| *byte == b'<')?);
            let digits = count[1..].split(|byte| *byte == b'>').next()?;
            let count = std::str::from_utf8(digits).ok()?.parse().ok()?;
            Some((kind, count, count))
        });
        Self { kinds: kinds.collect() }
    }

    /// A further register of the kind of `name`; `None` where that is not known.
    fn next(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        let kind = &name[..name.iter().position(u8::is_ascii_digit)?];
        let (_, _, count) = self.kinds.iter_mut().find(|(known, ..)| *known == kind)?;
        let made = [kind, count.to_string().as_bytes()].concat();
        *count += 1;
        Some(made)
    }

    /// `text` with declarations, which are behind `from`, of as many as there are.
    fn written(&self, mut text: Vec<u8>, from: usize) -> Vec<u8> {
        for (kind, before, now) in &self.kinds {
            let declaration = |count: &u64| [b"%", *kind, b"<", count.to_string().as_bytes(), b">"].concat();
            let old = declaration(before);
            if let Some(at) = position(&text, from, &old) {
                text.splice(at..at + old.len(), declaration(now));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(body: &str) -> Option<String> {
        let head = ".version 8.4\n.target sm_90a\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n.reqntid 128\n{\n\
                    \t.reg .pred \t%p<3>;\n\t.reg .b32 \t%r<9>;\n\t.reg .b64 \t%rd<4>;\n";
        let made = with_own_names(format!("{head}{body}\tret;\n}}\n").as_bytes())?;
        let made = String::from_utf8(made).unwrap();
        let (_, body) = made.split_once("{\n").unwrap();
        Some(body.strip_suffix("\tret;\n}\n").unwrap().to_owned())
    }

    #[test]
    fn values_that_are_replaced_have_names_of_their_own() {
        let step = "\tld.global.b32 \t%r1, [%rd1];\n\tadd.s32 \t%r2, %r2, %r1;\n\tadd.s64 \t%rd1, %rd1, 4;\n";
        let made = renamed(&step.repeat(3)).unwrap();
        let expected = "\t.reg .pred \t%p<3>;\n\t.reg .b32 \t%r<11>;\n\t.reg .b64 \t%rd<4>;\n".to_owned()
            + &step.replace("%r1", "%r9")
            + &step.replace("%r1", "%r10")
            + step;
        // The last value keeps its name.
        assert_eq!(made, expected);
    }

    #[test]
    fn what_comes_from_elsewhere_or_goes_on_keeps_its_name() {
        // Read before it is written, written under a predicate, and written in another block.
        assert_eq!(renamed("\tadd.s32 \t%r2, %r1, 1;\n\tmov.b32 \t%r1, 7;\n"), None);
        assert_eq!(
            renamed("\tmov.b32 \t%r1, 7;\n\t@%p1 mov.b32 \t%r1, 8;\n\tadd.s32 \t%r2, %r1, 1;\n"),
            None
        );
        assert_eq!(renamed("\tmov.b32 \t%r1, 7;\n$L__1:\n\tmov.b32 \t%r1, 8;\n"), None);
        let made = renamed(
            "\tmov.b32 \t%r1, 7;\n\t@%p1 mov.b32 \t%r1, 8;\n\tmov.b32 \t%r2, %r1;\n\tmov.b32 \t%r1, 9;\n",
        );
        let made = made.unwrap();
        assert!(
            made.ends_with("%r9, 7;\n\t@%p1 mov.b32 \t%r9, 8;\n\tmov.b32 \t%r2, %r9;\n\tmov.b32 \t%r1, 9;\n"),
            "{made}"
        );
    }

    #[test]
    fn inline_assembly_is_renamed_as_a_whole() {
        let one = "\t// begin inline asm\n\t{\n\tmov.b32 %r3, 0;\n\t@%p1 ld.global.b32 %r3, [ %rd1 ];\n}\n\t// end inline asm\n";
        let made = renamed(&(one.to_owned() + "\tadd.s32 \t%r4, %r3, 1;\n" + one)).unwrap();
        assert_eq!((made.matches("%r9").count(), made.matches("%r3").count()), (3, 2), "{made}");
    }
}
