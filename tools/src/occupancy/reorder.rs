//! The instructions of a kernel in another order, for which an assembler may find registers where it spilled.
//!
//! ptxas orders instructions itself, but starts from the order of the text, and where blocks are large it does not get far
//! from it: of 512 elements of a thread, all loaded before they are combined, it spills kilobytes, where loads that stand
//! before what needs them take 16 bytes. Which order is best nobody knows before; so there are two, and who assembles
//! keeps the one that spills least.
//!
//! Only what provably may move does. Instructions outside the lists below, and what is written as inline assembly with
//! labels or declarations, stay where they are, with all others on their side.

use super::read::{TARGETS, line, only_body, position, registers};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// How the next instruction is chosen, from the last to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The one that leaves the fewest registers alive, and of those the one whose result was asked for last.
    FewestAlive,
    /// The last one in the text, but such that leave fewer registers alive as soon as they can be placed.
    LastInText,
    /// Loads from global memory and what they need before all else, as long as no more registers of 32 bits are alive behind them.
    LoadsFirst(u32),
}

/// What an instruction must not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Only what it reads and what reads it.
    Free,
    /// A load from global memory: also stores to it, and barriers.
    Load,
    /// A store to global memory: also loads from it, other stores, and barriers.
    Store,
    /// Shared memory, shuffles and products of a warp: also each other, and barriers.
    Warp,
    /// Barriers, fences, atomics, copies: all of the above but what is free.
    Barrier,
    /// Everything.
    All,
}

/// Instructions whose result is a function of the registers that they read (PTX ISA, "Integer Arithmetic Instructions" to
/// "Data Movement and Conversion Instructions").
const FREE: [&[u8]; 49] = [
    b"add",
    b"sub",
    b"mul",
    b"mad",
    b"fma",
    b"neg",
    b"abs",
    b"min",
    b"max",
    b"div",
    b"rem",
    b"rcp",
    b"sqrt",
    b"rsqrt",
    b"sin",
    b"cos",
    b"lg2",
    b"ex2",
    b"tanh",
    b"and",
    b"or",
    b"xor",
    b"not",
    b"cnot",
    b"shl",
    b"shr",
    b"shf",
    b"bfe",
    b"bfi",
    b"bfind",
    b"brev",
    b"popc",
    b"clz",
    b"lop3",
    b"prmt",
    b"set",
    b"setp",
    b"selp",
    b"slct",
    b"copysign",
    b"cvt",
    b"mov",
    b"testp",
    b"sad",
    b"dp4a",
    b"dp2a",
    b"mul24",
    b"mad24",
    b"cvta",
];
/// Special registers that are the same whenever a thread reads them.
const CONSTANT: [&[u8]; 5] = [b"tid", b"ntid", b"ctaid", b"nctaid", b"laneid"];
/// Instructions that make no register.
const NO_RESULT: [&[u8]; 8] = [b"st", b"stmatrix", b"red", b"bar", b"barrier", b"fence", b"membar", b"cp"];
/// What LLVM's names of registers begin with, and the registers of 16 bits that each takes.
const KINDS: [(&[u8], u8); 8] =
    [(b"p", 0), (b"rs", 1), (b"h", 1), (b"r", 2), (b"f", 2), (b"rd", 4), (b"fd", 4), (b"rq", 8)];

/// Registers of 16 bits that a register takes, by its name without percent sign; `None` of special registers.
fn halves(name: &[u8]) -> Option<u8> {
    let digits = name.iter().position(u8::is_ascii_digit)?;
    let (kind, number) = name.split_at(digits);
    let found = KINDS.iter().find(|(prefix, _)| *prefix == kind)?;
    number.iter().all(u8::is_ascii_digit).then_some(found.1)
}

/// Of the class of an instruction by its name; of which nothing is known is [`Class::All`].
fn class(name: &[u8]) -> Class {
    let mut parts = name.split(|byte| *byte == b'.');
    let first = parts.next().unwrap_or_default();
    let rest: SmallVec<[&[u8]; 8]> = parts.collect();
    let has = |part: &[u8]| rest.contains(&part);
    let plain = |space: &[u8]| {
        rest.iter().find(|part| **part != b"weak") == Some(&space)
            && ![&b"volatile"[..], b"relaxed", b"acquire", b"release", b"mmio"].iter().any(|part| has(part))
    };
    match first {
        _ if has(b"cc") => Class::All,
        _ if FREE.contains(&first) => Class::Free,
        b"ld" if plain(b"param") => Class::Free,
        b"ld" if plain(b"global") => Class::Load,
        b"st" if plain(b"global") => Class::Store,
        b"ld" | b"st" if plain(b"shared") => Class::Warp,
        b"ldmatrix" | b"stmatrix" | b"shfl" | b"redux" if has(b"sync") => Class::Warp,
        b"mma" if has(b"sync") => Class::Warp,
        b"bar" | b"barrier" if has(b"sync") && !has(b"red") => Class::Barrier,
        b"fence" | b"membar" => Class::Barrier,
        b"red" | b"atom" if has(b"global") && !has(b"async") => Class::Barrier,
        b"cp" if has(b"async") && !has(b"bulk") && !has(b"mbarrier") => Class::Barrier,
        _ => Class::All,
    }
}

/// A directive that says which line of the source follows.
struct Place<'a> {
    text: Range<usize>,
    /// File, line and column.
    at: &'a [u8],
    /// The directive of the call that was inlined there. A directive of that file, line and column has to come before
    /// (PTX ISA, "Debugging Directives: .loc").
    call: Option<usize>,
}

/// One instruction, or a block of inline assembly.
pub(super) struct Unit {
    pub(super) text: Range<usize>,
    /// The number of the directive that says which line of the source it stands for.
    place: Option<usize>,
    pub(super) makes: SmallVec<[u32; 4]>,
    pub(super) uses: SmallVec<[u32; 8]>,
    class: Class,
}

/// A part of a kernel's body: units between labels and branches, or text that stays.
pub(super) enum Part {
    Units(Vec<Unit>),
    /// With the number of the directive that says which line of the source it stands for.
    Text(Range<usize>, Option<usize>),
}

/// `ptx` with loads first, as long as no more than so many registers of 32 bits are alive; `None` where they are already.
pub fn with_loads_first(ptx: &[u8], most: u32) -> Option<Vec<u8>> {
    reordered(ptx, Choice::LoadsFirst(most)).filter(|text| text != ptx)
}

/// `ptx` with the instructions of its one kernel in another order. `None` where it has not exactly one, or calls functions.
pub fn reordered(ptx: &[u8], choice: Choice) -> Option<Vec<u8>> {
    let Range { start: from, end } = only_body(ptx)?;
    let mut reader = Reader::new(ptx);
    let parts = reader.parts(from..end)?;
    // Registers that several parts have are alive throughout.
    let mut homes = vec![None; reader.halves.len()];
    let mut passed = vec![false; reader.halves.len()];
    for (number, part) in parts.iter().enumerate() {
        let mut found = |register: u32| {
            let home = homes[register as usize].get_or_insert(number);
            passed[register as usize] |= *home != number;
        };
        match part {
            Part::Units(units) => {
                units.iter().flat_map(|unit| unit.makes.iter().chain(&unit.uses)).for_each(|r| found(*r));
            }
            Part::Text(text, _) => registers(&ptx[text.clone()], |name| {
                reader.numbers.get(name).into_iter().for_each(|register| found(*register));
            }),
        }
    }
    let mut writer = Writer { reader: &reader, text: ptx[..from].to_vec(), stated: HashMap::new() };
    let mut place = None;
    for part in &parts {
        match part {
            Part::Text(kept, line) => {
                line.iter().for_each(|line| writer.state(*line));
                writer.text.extend(&ptx[kept.clone()]);
                place = None;
            }
            Part::Units(units) => {
                for unit in order(units, &reader.halves, &passed, choice).into_iter().map(|at| &units[at]) {
                    if let Some(new) = unit.place.filter(|new| place != Some(*new)) {
                        writer.state(new);
                        place = Some(new);
                    }
                    writer.text.extend(&ptx[unit.text.clone()]);
                }
            }
        }
    }
    writer.text.extend(&ptx[end..]);
    Some(writer.text)
}

struct Writer<'r, 'a> {
    reader: &'r Reader<'a>,
    text: Vec<u8>,
    /// The directive that last named a file, line and column.
    stated: HashMap<&'a [u8], usize>,
}

impl Writer<'_, '_> {
    /// Writes the directive `place`, behind those of the calls that it names.
    fn state(&mut self, place: usize) {
        let places = &self.reader.places;
        let mut missing: SmallVec<[usize; 4]> = SmallVec::from_slice(&[place]);
        let mut next = places[place].call;
        while let Some(call) = next.filter(|call| self.stated.get(places[*call].at) != Some(call)) {
            missing.push(call);
            next = places[call].call;
        }
        for place in missing.into_iter().rev() {
            self.text.extend(&self.reader.ptx[places[place].text.clone()]);
            self.stated.insert(places[place].at, place);
        }
    }
}

pub(super) struct Reader<'a> {
    ptx: &'a [u8],
    numbers: HashMap<&'a [u8], u32>,
    /// Registers of 16 bits that each register takes.
    halves: Vec<u8>,
    places: Vec<Place<'a>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(ptx: &'a [u8]) -> Self {
        Reader { ptx, numbers: HashMap::new(), halves: Vec::new(), places: Vec::new() }
    }

    /// Names of registers without percent signs, by their numbers.
    pub(super) fn names(&self) -> Vec<&'a [u8]> {
        let mut names: Vec<&[u8]> = vec![b""; self.numbers.len()];
        self.numbers.iter().for_each(|(name, number)| names[*number as usize] = name);
        names
    }

    /// The parts of a body, line by line, as LLVM writes it: an instruction a line, inline assembly between two comments.
    pub(super) fn parts(&mut self, body: Range<usize>) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        let (mut units, mut place) = (Vec::new(), None);
        let mut named: HashMap<&[u8], usize> = HashMap::new();
        let mut at = body.start;
        while at < body.end {
            let rest = &self.ptx[at..body.end];
            let here = at..at + line(rest);
            let text = self.ptx[here.clone()].trim_ascii();
            at = here.end;
            if text.is_empty() || text.starts_with(b"//") && text != b"// begin inline asm" {
                continue;
            }
            if text
                .strip_prefix(b".loc")
                .is_some_and(|rest| rest.starts_with(b"\t") || rest.starts_with(b" "))
            {
                let (at, call) = location(text);
                place = Some(self.places.len());
                self.places.push(Place {
                    text: here,
                    at,
                    call: call.and_then(|call| named.get(call).copied()),
                });
                named.extend(place.map(|place| (at, place)));
                continue;
            }
            let unit = if text == b"// begin inline asm" {
                let marker: &[u8] = b"// end inline asm\n";
                let end = here.start + position(rest, 0, marker)? + marker.len();
                at = end;
                self.assembly(here.start..end, place)
            } else if text[0].is_ascii_lowercase() || text[0] == b'@' {
                // One statement, which may go on over lines.
                let end = here.start + rest.iter().position(|byte| *byte == b';')? + 1;
                at = end + line(&self.ptx[end..body.end]);
                let behind = self.ptx[end..at].trim_ascii();
                if !behind.is_empty() && !behind.starts_with(b"//") {
                    return None;
                }
                self.statement(here.start..at, place)
            } else if matches!(text[0], b'.' | b'$') {
                // A list of labels goes on over lines.
                if position(text, 0, TARGETS).is_some() {
                    let end = here.start + rest.iter().position(|byte| *byte == b';')?;
                    at = end + line(&self.ptx[end..body.end]);
                }
                None
            } else {
                // Calls stand in braces.
                return None;
            };
            match unit {
                Some(unit) => units.push(unit),
                None => {
                    parts.push(Part::Units(std::mem::take(&mut units)));
                    parts.push(Part::Text(here.start..at, place));
                }
            }
        }
        parts.push(Part::Units(units));
        Some(parts)
    }

    /// A statement outside of inline assembly; `None` if control leaves there.
    fn statement(&mut self, text: Range<usize>, place: Option<usize>) -> Option<Unit> {
        let mut unit =
            Unit { text, place, makes: SmallVec::new(), uses: SmallVec::new(), class: Class::Free };
        let ptx = self.ptx;
        let statement = &ptx[unit.text.clone()];
        let end = statement.iter().position(|byte| *byte == b';')?;
        self.add(statement[..end].trim_ascii(), &mut unit)?;
        Some(unit)
    }

    /// A block of inline assembly; `None` if it has labels, branches, or names of its own outside of braces.
    fn assembly(&mut self, text: Range<usize>, place: Option<usize>) -> Option<Unit> {
        let mut unit = Unit {
            text: text.clone(),
            place,
            makes: SmallVec::new(),
            uses: SmallVec::new(),
            class: Class::Free,
        };
        let ptx = self.ptx;
        let mut inner = Vec::new();
        for one in ptx[text].split(|byte| *byte == b'\n') {
            let end = one.windows(2).position(|two| two == b"//").unwrap_or(one.len());
            inner.push(&one[..end]);
        }
        // Statements end with a semicolon; a block of inline assembly opens and closes braces of its own.
        for one in inner.iter().flat_map(|one| one.split_inclusive(|byte| *byte == b';')) {
            let mut one = one.trim_ascii();
            while let Some(rest) = one.strip_prefix(b"{").or_else(|| one.strip_prefix(b"}")) {
                one = rest.trim_ascii();
            }
            if one.is_empty() || one == b";" {
                continue;
            }
            // What goes on over several lines, and declarations, are left alone.
            let one = one.strip_suffix(b";")?.trim_ascii();
            if one.starts_with(b".") || one.is_empty() {
                return None;
            }
            self.add(one, &mut unit)?;
        }
        Some(unit)
    }

    /// Adds what a statement without its semicolon makes and uses. `None` where control leaves.
    fn add(&mut self, statement: &'a [u8], unit: &mut Unit) -> Option<()> {
        let (predicate, statement) = match statement.strip_prefix(b"@") {
            Some(rest) => {
                let end = rest.iter().position(u8::is_ascii_whitespace)?;
                (Some(&rest[..end]), rest[end..].trim_ascii())
            }
            None => (None, statement),
        };
        let end = statement.iter().position(u8::is_ascii_whitespace).unwrap_or(statement.len());
        let (name, operands) = (&statement[..end], &statement[end..]);
        let first = name.split(|byte| *byte == b'.').next()?;
        if matches!(first, b"bra" | b"brx" | b"ret" | b"exit" | b"trap" | b"call") || name.contains(&b':') {
            return None;
        }
        let mut own = class(name);
        // Clocks and such are not the same twice.
        registers(operands, |name| {
            if halves(name).is_none() && !CONSTANT.contains(&name) {
                own = Class::All;
            }
        });
        unit.class = match (unit.class, own) {
            (one, other) if one == other => one,
            (Class::Free, other) | (other, Class::Free) => other,
            (Class::All, _) | (_, Class::All) => Class::All,
            _ => Class::Barrier,
        };
        let results = if NO_RESULT.contains(&first) { 0 } else { first_operand(operands) };
        let mut made: SmallVec<[u32; 4]> = SmallVec::new();
        registers(&operands[..results], |name| made.extend(self.number(name)));
        registers(&operands[results..], |name| {
            let used = self.number(name).filter(|used| !unit.makes.contains(used));
            unit.uses.extend(used);
        });
        if let Some(predicate) = predicate {
            registers(predicate, |name| {
                unit.uses.extend(self.number(name).filter(|p| !unit.makes.contains(p)))
            });
        }
        // What stays as it was where the predicate is false is used; also what an instruction may only add to.
        if predicate.is_some() || own == Class::All {
            unit.uses.extend(made.iter().copied().filter(|made| !unit.makes.contains(made)));
        }
        if own == Class::All {
            // Nothing is known of its operands: all may change.
            registers(operands, |name| made.extend(self.number(name)));
        }
        made.retain(|made| !unit.makes.contains(made));
        unit.makes.extend(made);
        unit.makes.sort_unstable();
        unit.makes.dedup();
        unit.uses.sort_unstable();
        unit.uses.dedup();
        Some(())
    }

    /// The number of a register by its name without percent sign; `None` for special ones.
    fn number(&mut self, name: &'a [u8]) -> Option<u32> {
        let (halves, next) = (halves(name)?, self.halves.len() as u32);
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.halves.push(halves);
        }
        Some(number)
    }
}

/// The file, line and column of a directive `.loc`, and those of the call that was inlined there.
fn location(directive: &[u8]) -> (&[u8], Option<&[u8]>) {
    let own = directive.strip_prefix(b".loc").unwrap_or(directive);
    let (own, attributes) = own.split_at(own.iter().position(|byte| *byte == b',').unwrap_or(own.len()));
    let marker: &[u8] = b"inlined_at ";
    let call = position(attributes, 0, marker).map(|at| attributes[at + marker.len()..].trim_ascii());
    (own.trim_ascii(), call)
}

/// Bytes up to the comma behind the first operand; braces hold several registers.
fn first_operand(operands: &[u8]) -> usize {
    let mut open = 0;
    for (at, byte) in operands.iter().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' => open -= 1,
            b',' if open == 0 => return at,
            _ => {}
        }
    }
    operands.len()
}

/// For each unit those that stay before it.
fn dependences(units: &[Unit], registers: usize) -> Vec<Vec<u32>> {
    let mut made: Vec<Option<u32>> = vec![None; registers];
    let mut read: Vec<Vec<u32>> = vec![Vec::new(); registers];
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); units.len()];
    let (mut all, mut since_all) = (None, Vec::new());
    let (mut barrier, mut since_barrier) = (None, Vec::new());
    let (mut store, mut since_store, mut warp) = (None, Vec::new(), None);
    for (at, (unit, own)) in units.iter().zip(&mut before).enumerate() {
        let at = at as u32;
        own.extend(all);
        for register in &unit.uses {
            own.extend(made[*register as usize]);
            read[*register as usize].push(at);
        }
        for register in &unit.makes {
            let register = *register as usize;
            own.extend(made[register]);
            own.append(&mut read[register]);
            made[register] = Some(at);
        }
        if unit.class != Class::Free {
            own.extend(barrier);
        }
        match unit.class {
            Class::Free => {}
            Class::Load => {
                own.extend(store);
                since_store.push(at);
            }
            Class::Store => {
                own.extend(store);
                own.append(&mut since_store);
                store = Some(at);
            }
            Class::Warp => own.extend(warp.replace(at)),
            Class::Barrier | Class::All => {
                own.append(&mut since_barrier);
                (barrier, store, warp) = (Some(at), None, None);
                since_store.clear();
            }
        }
        if unit.class == Class::All {
            own.append(&mut since_all);
            all = Some(at);
        }
        if unit.class != Class::Free {
            since_barrier.push(at);
        }
        since_all.push(at);
        own.sort_unstable();
        own.dedup();
        own.retain(|earlier| *earlier != at);
    }
    before
}

/// Whether a unit is a load from global memory, or some load needs it.
fn needed_by_loads(units: &[Unit], before: &[Vec<u32>]) -> Vec<bool> {
    let mut needed: Vec<bool> = units.iter().map(|unit| unit.class == Class::Load).collect();
    for at in (0..units.len()).rev().filter(|at| !before[*at].is_empty()) {
        if needed[at] {
            before[at].iter().for_each(|earlier| needed[*earlier as usize] = true);
        }
    }
    needed
}

/// Units that can be placed of which the best is looked for.
const WINDOW: usize = 64;

/// The order of `units`, each of whose registers takes so many `halves`, where registers that are `passed` on are alive
/// behind the last.
fn order(units: &[Unit], halves: &[u8], passed: &[bool], choice: Choice) -> Vec<usize> {
    let before = dependences(units, halves.len());
    let mut waiting = vec![0u32; units.len()];
    before.iter().flatten().for_each(|at| waiting[*at as usize] += 1);
    let mut alive = vec![false; halves.len()];
    for register in units.iter().flat_map(|unit| unit.makes.iter().chain(&unit.uses)) {
        alive[*register as usize] |= passed[*register as usize];
    }
    // Where loads go first, all else comes last: when it was asked for is no matter.
    let ahead = match choice {
        Choice::LoadsFirst(_) => needed_by_loads(units, &before),
        Choice::FewestAlive | Choice::LastInText => Vec::new(),
    };
    let key = |step: u32, at: usize| (ahead.get(at).map_or(step, |ahead| u32::from(!ahead)), at);
    let mut taken = 0_i64;
    // Those that can be placed, by when they were asked for.
    let mut asked = vec![0u32; units.len()];
    let mut ready: BTreeSet<(u32, usize)> =
        (0..units.len()).filter(|at| waiting[*at] == 0).map(|at| key(0, at)).collect();
    let mut placed = Vec::with_capacity(units.len());
    for step in 1.. {
        let change = |at: usize| {
            let unit = &units[at];
            let more = unit.uses.iter().filter(|used| !alive[**used as usize]);
            let less = unit.makes.iter().filter(|made| alive[**made as usize] && !unit.uses.contains(made));
            let sum = |registers: &mut dyn Iterator<Item = &u32>| {
                registers.map(|register| i64::from(halves[*register as usize])).sum::<i64>()
            };
            sum(&mut { more }) - sum(&mut { less })
        };
        let window = ready.iter().rev().take(WINDOW);
        let next = match choice {
            Choice::FewestAlive => {
                window.min_by_key(|(asked, at)| (change(*at), u32::MAX - asked, usize::MAX - at)).copied()
            }
            Choice::LastInText => {
                let frees = window
                    .map(|ready| (change(ready.1), *ready))
                    .filter(|(change, (_, at))| *change < 0 || *change == 0 && !units[*at].makes.is_empty())
                    .min_by_key(|(change, (_, at))| (*change, usize::MAX - at))
                    .map(|(_, ready)| ready);
                frees.or_else(|| ready.iter().max_by_key(|(_, at)| *at).copied())
            }
            Choice::LoadsFirst(most) if taken > 2 * i64::from(most) => {
                let loads = ready.range(..(1, 0)).rev().take(WINDOW);
                let frees = window
                    .chain(loads)
                    .map(|ready| (change(ready.1), *ready))
                    .filter(|(change, _)| *change < 0)
                    .min_by_key(|(change, (_, at))| (*change, usize::MAX - at))
                    .map(|(_, ready)| ready);
                let last = [ready.range(..(1, 0)).next_back(), ready.last()];
                frees.or_else(|| last.into_iter().flatten().max_by_key(|(_, at)| *at).copied())
            }
            Choice::LoadsFirst(_) => ready.last().copied(),
        };
        let Some(next) = next else { break };
        ready.remove(&next);
        taken += change(next.1);
        let unit = &units[next.1];
        placed.push(next.1);
        for made in unit.makes.iter().filter(|made| !unit.uses.contains(made)) {
            alive[*made as usize] = false;
        }
        unit.uses.iter().for_each(|used| alive[*used as usize] = true);
        for &earlier in &before[next.1] {
            asked[earlier as usize] = step;
            waiting[earlier as usize] -= 1;
            if waiting[earlier as usize] == 0 {
                ready.insert(key(step, earlier as usize));
            }
        }
    }
    placed.reverse();
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(body: &str) -> Vec<u8> {
        let head =
            ".version 8.4\n.target sm_90a\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n.reqntid 128\n";
        format!("{head}{{\n\t.reg .b32 \t%r<99>;\n{body}\tret;\n}}\n").into_bytes()
    }

    /// The statements of `body` in the order in which they then stand.
    fn lines(body: &str, choice: Choice) -> Vec<String> {
        let text = String::from_utf8(reordered(&kernel(body), choice).unwrap()).unwrap();
        let (_, body) = text.split_once("%r<99>;\n").unwrap();
        let (body, _) = body.split_once("\tret;\n}\n").unwrap();
        body.lines().map(|line| line.trim().to_owned()).collect()
    }

    const BOTH: [Choice; 2] = [Choice::FewestAlive, Choice::LastInText];
    const ALL: [Choice; 4] =
        [Choice::FewestAlive, Choice::LastInText, Choice::LoadsFirst(64), Choice::LoadsFirst(1)];

    fn keeps(body: &[&str]) {
        for choice in ALL {
            assert_eq!(lines(&(body.join("\n") + "\n"), choice), body, "{choice:?}");
        }
    }

    #[test]
    fn loads_stand_before_what_needs_them() {
        let loads = (0..20).map(|i| format!("ld.global.b32 %r{i}, [%rd1+{}];\n", 4 * i));
        let sums =
            (1..20).map(|i| format!("add.s32 %r{}, %r{}, %r{i};\n", 20 + i, if i == 1 { 0 } else { 19 + i }));
        let body: String = loads.chain(sums).chain(["st.global.b32 [%rd1], %r39;\n".into()]).collect();
        for choice in BOTH {
            let found = lines(&body, choice);
            let at = |what: &str| found.iter().position(|line| line.starts_with(what)).unwrap();
            for i in 2..20 {
                assert!(
                    at(&format!("ld.global.b32 %r{i},")) > at(&format!("add.s32 %r{},", 19 + i)),
                    "{found:?}"
                );
            }
        }
    }

    /// Twelve loads, each of which is added up before the next one.
    fn one_by_one() -> String {
        let step = |i: u32| {
            let sum = if i == 0 { 0 } else { 19 + i };
            format!(
                "add.s64 %rd{}, %rd1, %rd{};\nld.global.b32 %r{}, [%rd{}];\nadd.s32 %r{}, %r{sum}, %r{};\n",
                20 + i,
                i + 2,
                i + 1,
                20 + i,
                20 + i,
                i + 1
            )
        };
        (0..12).map(step).collect::<String>() + "st.global.b32 [%rd1], %r31;\n"
    }

    #[test]
    fn loads_go_first_as_far_as_registers_go() {
        let places = |most| {
            let found = lines(&one_by_one(), Choice::LoadsFirst(most));
            let at = |what: &str| -> Vec<usize> {
                (0..found.len()).filter(|at| found[*at].starts_with(what)).collect()
            };
            (at("ld.global"), at("add.s32"), at("add.s64"))
        };
        let (loads, sums, addresses) = places(64);
        assert!(loads[11] < sums[0] && sums.is_sorted());
        assert!(loads.iter().zip(&addresses).all(|(load, address)| address < load));
        // With room for few, those that are left stand where they stood.
        let (loads, sums, _) = places(8);
        assert!(loads[5] > sums[4] && loads[11] < sums[6], "{loads:?} {sums:?}");
        let text = kernel(&one_by_one());
        let first = with_loads_first(&text, 64).unwrap();
        assert_eq!(with_loads_first(&first, 64), None);
    }

    #[test]
    fn what_meets_others_keeps_its_order() {
        keeps(&["st.shared.b32 [%r1], %r2;", "ld.shared.b32 %r3, [%r4];", "st.global.b32 [%rd1], %r3;"]);
        keeps(&["ld.global.b32 %r1, [%rd1];", "bar.sync 0;", "st.global.b32 [%rd2], %r1;"]);
        keeps(&["st.global.b32 [%rd1], %r9;", "ld.global.b32 %r1, [%rd2];", "st.shared.b32 [%r4], %r1;"]);
        keeps(&["ld.global.b32 %r1, [%rd1];", "st.global.b32 [%rd2], %r9;", "st.shared.b32 [%r4], %r1;"]);
        keeps(&[
            "ld.weak.global.b32 %r1, [%rd1];",
            "st.global.b32 [%rd2], %r9;",
            "st.shared.b32 [%r4], %r1;",
        ]);
        // Clocks, volatile accesses, carries, and what nobody knows: nothing passes them.
        for fixed in [
            "mov.u32 %r5, %clock;",
            "mov.u64 %rd5, %clock64;",
            "ld.volatile.global.b32 %r5, [%rd1];",
            "add.cc.u32 %r5, %r6, %r7;",
            "wgmma.wait_group.sync.aligned 0;",
            "frobnicate.sync %r5;",
        ] {
            keeps(&[
                "ld.global.b32 %r1, [%rd1];",
                fixed,
                "add.s32 %r2, %r1, %r1;",
                "st.shared.b32 [%r4], %r2;",
            ]);
        }
    }

    #[test]
    fn a_predicate_keeps_what_was_there() {
        keeps(&["mov.b32 %r1, 7;", "@%p1 mov.b32 %r1, %r2;", "st.shared.b32 [%r4], %r1;"]);
        // Two registers of the same number one after the other.
        keeps(&["st.shared.b32 [%r4], %r1;", "mov.b32 %r1, 7;", "st.shared.b32 [%r4], %r1;"]);
    }

    #[test]
    fn inline_assembly_stays_together() {
        let block = "// begin inline asm\n{\nmov.b32 %r1, %r9;\n@%p1 ld.global.b32 %r1, [%rd1];\n}\n// end inline asm";
        let body = format!("{block}\nmov.b32 %r2, 1;\nadd.s32 %r3, %r2, %r1;\nst.shared.b32 [%r4], %r3;\n");
        for choice in BOTH {
            assert!(lines(&body, choice).join("\n").contains(block), "{choice:?}");
        }
        // With names of its own it stays where it is.
        let block =
            "// begin inline asm\n{\n.reg .b32 t;\nmov.b32 t, %r9;\nadd.s32 %r1, t, t;\n}\n// end inline asm";
        let (before, after) = ("ld.global.b32 %r7, [%rd1];", "st.shared.b32 [%r4], %r7;");
        for choice in BOTH {
            let found = lines(&format!("{before}\n{block}\n{after}\n"), choice).join("\n");
            assert_eq!(found, format!("{before}\n{block}\n{after}"));
        }
    }

    #[test]
    fn places_in_the_source_go_with_their_instructions() {
        let body = ".loc 1 1 1\nld.global.b32 %r1, [%rd1];\n.loc 1 2 1\nmov.b32 %r2, 1;\n.loc 1 3 1\nadd.s32 %r3, %r2, %r1;\nst.shared.b32 [%r4], %r3;\n";
        for choice in BOTH {
            let found = lines(body, choice);
            for (place, what) in [("1", "ld."), ("2", "mov."), ("3", "add.")] {
                let at = found.iter().position(|line| line.starts_with(what)).unwrap();
                assert_eq!(found[at - 1], format!(".loc 1 {place} 1"));
            }
        }
    }

    #[test]
    fn lists_of_labels_stay_in_one_piece() {
        let list = "$L_list_0: .branchtargets\n$L_one,\n$L_two;";
        let jump = "brx.idx \t%r1, $L_list_0;";
        let body = format!(
            ".loc 1 1 1\nld.global.b32 %r1, [%rd1];\n.loc 1 2 1\n{list}\n{jump}\n$L_one:\nmov.b32 %r2, 1;\n$L_two:\n.loc 1 3 1\nst.shared.b32 [%r4], %r2;\n"
        );
        for choice in BOTH {
            let found = lines(&body, choice).join("\n");
            assert!(found.contains(list) && found.contains(jump), "{found}");
        }
    }

    #[test]
    fn calls_are_named_before_what_was_inlined_there() {
        let call = |what: &str| format!("function_name $L__inlined_function0, inlined_at {what}");
        let (outer, inner) = (".loc 1 7 1", format!(".loc 2 5 3, {}", call("1 7 1")));
        let (deep, late) = (format!(".loc 2 9 2, {}", call("2 5 3")), ".loc 1 8 1");
        let body = format!(
            "{outer}\n{inner}\n{deep}\nld.global.b32 %r1, [%rd1];\n{late}\nmov.b32 %r2, 1;\nbar.sync 0;\n\
             {inner}\nadd.s32 %r3, %r2, %r1;\nst.shared.b32 [%r4], %r3;\n{deep}\nbra $L__BB0_1;\n"
        );
        for choice in BOTH {
            let found = lines(&body, choice);
            let mut said = Vec::new();
            for line in found.iter().filter_map(|line| line.strip_prefix(".loc ")) {
                let (own, at) = line.split_once(", function_name").unwrap_or((line, ""));
                if let Some((_, at)) = at.split_once("inlined_at ") {
                    assert!(said.contains(&at), "{choice:?} {found:?}");
                }
                said.push(own);
            }
            for (place, what) in [(deep.as_str(), "ld."), (late, "mov."), (&inner, "add."), (&deep, "bra ")] {
                let at = found.iter().position(|line| line.starts_with(what)).unwrap();
                let near = found[..at].iter().rev().find(|line| line.starts_with(".loc")).unwrap();
                assert_eq!(near, place, "{choice:?} {found:?}");
            }
        }
    }

    #[test]
    fn a_call_of_the_same_place_is_named_again() {
        // One place of a helper, reached by two calls, each with what it calls in turn.
        let text = |call: &str| {
            format!(
                ".loc 1 {call} 1\n.loc 2 5 3, function_name $f, inlined_at 1 {call} 1\n.loc 3 9 2, function_name $g, inlined_at 2 5 3\n"
            )
        };
        let body = format!(
            "{}ld.global.b32 %r1, [%rd1];\nbar.sync 0;\n{}ld.global.b32 %r2, [%rd2];\nbar.sync 0;\n",
            text("7"),
            text("8")
        );
        for choice in BOTH {
            // What ends the kernel may say its place once more.
            let (made, body): (Vec<_>, Vec<&str>) = (lines(&body, choice), body.lines().collect());
            assert_eq!(made[..body.len()], body, "{choice:?}");
        }
    }

    #[test]
    fn declarations_are_there_once() {
        let body = ".local .align 4 .b8 \t__local_depot0[28];\n.reg .b64 \t%SPL;\nmov.b64 \t%SPL, __local_depot0;\nld.local.b32 \t%r1, [%SPL];\nst.shared.b32 \t[%r4], %r1;\n";
        for choice in BOTH {
            assert_eq!(lines(body, choice), body.lines().collect::<Vec<_>>(), "{choice:?}");
        }
    }

    #[test]
    fn what_calls_is_left_alone() {
        assert!(reordered(&kernel("\t{ // callseq 0, 0\n\t}\n"), Choice::FewestAlive).is_none());
        let two = [kernel(""), kernel("")].concat();
        assert!(reordered(&two, Choice::FewestAlive).is_none());
        assert!(reordered(b"no kernel", Choice::FewestAlive).is_none());
    }

    /// What a body does to memory: registers and memory are numbers that mix what went into them.
    fn runs(body: &[String]) -> HashMap<String, u64> {
        let mut state: HashMap<String, u64> = HashMap::new();
        let get =
            |state: &HashMap<String, u64>, name: &str| state.get(name).copied().unwrap_or(name.len() as u64);
        for one in body {
            let (name, operands) = one.trim_end_matches(';').split_once(' ').unwrap_or((one, ""));
            let operands: Vec<&str> = operands.split(", ").collect();
            let space = if name.contains("shared") { "shared" } else { "global" };
            let mix = |a: u64, b: u64| a.wrapping_mul(0x9e37_79b9).rotate_left(7) ^ b;
            match name.split('.').next().unwrap() {
                "bar" => {
                    let all = mix(get(&state, "shared"), get(&state, "global"));
                    state.insert("shared".into(), all);
                    state.insert("global".into(), mix(all, 1));
                }
                "ld" => {
                    let value = mix(get(&state, space), get(&state, operands[1]));
                    state.insert(operands[0].into(), value);
                }
                "st" => {
                    let value =
                        mix(mix(get(&state, space), get(&state, operands[0])), get(&state, operands[1]));
                    state.insert(space.into(), value);
                }
                _ => {
                    let value = mix(get(&state, operands[1]), get(&state, operands[2]));
                    state.insert(operands[0].into(), value);
                }
            }
        }
        state
    }

    #[test]
    fn random_bodies_do_the_same_in_any_order() {
        let mut seed = 1u64;
        let mut pick = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        let mut moved = 0;
        for _ in 0..300 {
            let body: Vec<String> = (0..40)
                .map(|_| {
                    let (a, b, c) = (pick(12), pick(12), pick(12));
                    match pick(12) {
                        0 => "bar.sync 0;".into(),
                        1 => format!("st.global.b32 [%rd{a}], %r{b};"),
                        2 => format!("st.shared.b32 [%rd{a}], %r{b};"),
                        3 | 4 => format!("ld.global.b32 %r{a}, [%rd{b}];"),
                        5 | 6 => format!("ld.shared.b32 %r{a}, [%rd{b}];"),
                        _ => format!("add.s32 %r{a}, %r{b}, %r{c};"),
                    }
                })
                .collect();
            // Registers that a part passes on are alive behind it: all, for another part has them.
            let all: String = (0..12).map(|i| format!("add.s32 %r50, %r{i}, %r50;\n")).collect();
            for choice in BOTH {
                let found = lines(&format!("{}\n$L__BB0_1:\n{all}", body.join("\n")), choice);
                let end = found.iter().position(|line| line.starts_with('$')).unwrap();
                moved += usize::from(found[..end] != body);
                assert_eq!(runs(&found[..end]), runs(&body), "{choice:?} {body:?}\n{found:?}");
            }
        }
        assert!(moved > 300, "only {moved} were changed");
    }
}
