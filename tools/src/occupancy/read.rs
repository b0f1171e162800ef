//! Reads of PTX what the estimate of registers needs: which instruction makes and uses which registers, which of them
//! keep their order, and where control goes.

use linear_layout::plan::REGISTERS_OF_LONG_F64;
use smallvec::SmallVec;
use std::ops::Range;

/// A register of a kernel, numbered from zero.
pub type Register = u32;

/// Which instructions keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It follows what it uses, nothing else.
    Free,
    /// A load from global memory: after the stores before it.
    Load,
    /// A store to global memory: after the accesses before it.
    Store,
    /// It works with what other threads have or make (shared memory, shuffles): it stays between the barriers.
    Shared,
    /// All accesses before it stay before, all after it after: barriers, asynchronous groups, atomics, branches.
    Barrier,
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Registers that it writes.
    pub makes: SmallVec<[Register; 4]>,
    /// Registers that it reads; also those that it writes under a predicate.
    pub uses: SmallVec<[Register; 4]>,
    /// What it stays behind.
    pub order: Order,
    /// Whether threads get different numbers from it even if what it reads is equal in all of them.
    pub varies: bool,
}

/// How LLVM's labels begin that only line tables and the like mention.
const DEBUG_LABEL: &[u8] = b"$L__tmp";

/// Instructions that control enters at the first and leaves at the last.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The instructions.
    pub instructions: Vec<Instruction>,
    /// Registers of 32 bits that the subroutine takes which the last instruction may call, besides those that live on.
    pub subroutine: u64,
    /// Where control goes next, by number of the block.
    pub next: SmallVec<[u32; 2]>,
}

/// A kernel with a bound on CTAs.
#[derive(Debug)]
pub struct Kernel {
    /// Threads of a CTA.
    pub threads: u64,
    /// Where the number of `.minnctapersm` stands in the text.
    pub bound: Range<usize>,
    /// Registers of 16 bits that each register takes: none for predicates.
    pub halves: Vec<u8>,
    /// Registers of a thread without which an assembler refuses an instruction of the kernel; 0 where there is none such.
    pub least: u64,
    /// Whether its warps wait at barriers for what others write to shared memory.
    pub synchronizes: bool,
    /// The first is where control begins.
    pub blocks: Vec<Block>,
}

/// Registers that ptxas wants besides the fragments of a `wgmma` (12.8 to 13.5: "C7602 Insufficient registers", for 60 kernels
/// with fragments of 8 to 132 registers).
const BESIDE_FRAGMENTS: u64 = 26;

/// The kernels of `ptx` that have a number of threads and a bound and call nothing.
pub fn kernels(ptx: &[u8]) -> Vec<Kernel> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = position(ptx, from, ENTRY) {
        let Some(body) = position(ptx, at, BODY) else { break };
        let end = body + 2 + closing(&ptx[body + 2..]);
        found.extend(kernel(ptx, at, body, end));
        from = end;
    }
    found
}

/// Threads of a CTA of the only kernel of `ptx`, with a bound or without; `None` where it has not exactly one, calls functions, or does not say.
pub fn threads(ptx: &[u8]) -> Option<u64> {
    let entry = only_entry(ptx)?;
    threads_of(ptx, entry..position(ptx, entry, BODY)? + 1)
}

/// What the head of a kernel begins with, and its body.
const ENTRY: &[u8] = b"\n.visible .entry ";
const BODY: &[u8] = b"\n{\n";
/// What lists of labels to jump to begin with.
pub(super) const TARGETS: &[u8] = b".branchtargets";

/// Threads of a CTA of the kernel with this head.
fn threads_of(ptx: &[u8], head: Range<usize>) -> Option<u64> {
    Some(number(ptx, head, b"\n.reqntid ")?.1)
}

/// How far it is to the brace that closes what is open where `text` begins.
pub(super) fn closing(text: &[u8]) -> usize {
    let mut open = 1;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' if open == 1 => return at,
            b'}' => open -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Where `what` stands in `text` at or after `from`.
pub(super) fn position(text: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    text.get(from..)?.windows(what.len()).position(|window| window == what).map(|at| from + at)
}

/// The digits that follow `name`, by their place, and the number.
fn number(text: &[u8], range: Range<usize>, name: &[u8]) -> Option<(Range<usize>, u64)> {
    let at = position(&text[..range.end], range.start, name)? + name.len();
    let end = at + text[at..range.end].iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some((at..end, std::str::from_utf8(&text[at..end]).ok()?.parse().ok()?))
}

/// The kernel whose head begins `at` and whose body lies between `body` and `end`.
fn kernel(ptx: &[u8], at: usize, body: usize, end: usize) -> Option<Kernel> {
    let threads = threads_of(ptx, at..body + 1)?;
    let (bound, _) = number(ptx, at..body + 1, b"\n.minnctapersm ")?;
    let mut reader = Reader::default();
    reader.body(&ptx[body + 3..end])?;
    reader.link()?;
    let Reader { halves, least, synchronizes, shares, blocks, .. } = reader;
    // Where nothing is handed on, barriers are for stores that had better come together: there warps wait once.
    let synchronizes = synchronizes && shares;
    Some(Kernel { threads, bound, halves, least, synchronizes, blocks })
}

/// The first register of a class, and how many it has.
type Class = (SmallVec<[u8; 4]>, u32, u32);

#[derive(Default)]
struct Reader<'a> {
    classes: SmallVec<[Class; 8]>,
    halves: Vec<u8>,
    least: u64,
    synchronizes: bool,
    /// Whether it accesses shared memory.
    shares: bool,
    blocks: Vec<Block>,
    /// Labels and the blocks that they stand before.
    labels: Vec<(&'a [u8], u32)>,
    /// Branches by block: to which label, and whether control may also go on.
    branches: Vec<(u32, Option<&'a [u8]>, bool)>,
    /// Lists of labels, each by its own, and the blocks that end with a jump to one of a list.
    targets: Vec<(&'a [u8], Vec<&'a [u8]>)>,
    jumps: Vec<(u32, &'a [u8])>,
}

impl<'a> Reader<'a> {
    /// Reads statement after statement; `None` where a kernel does what the estimate does not understand.
    fn body(&mut self, text: &'a [u8]) -> Option<()> {
        self.blocks.push(Block::default());
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            match rest[0] {
                byte if byte.is_ascii_whitespace() || matches!(byte, b'{' | b'}' | b';') => at += 1,
                b'/' => at += line(rest),
                b'.' if rest.starts_with(TARGETS) => {
                    let length = rest.iter().position(|byte| *byte == b';')?;
                    let label = self.labels.last().filter(|(_, at)| *at as usize == self.blocks.len() - 1)?.0;
                    self.targets.push((label, labels_of(&rest[TARGETS.len()..length])));
                    at += length + 1;
                }
                b'.' => {
                    // In blocks of inline assembly more may follow on the line.
                    let line = &rest[..line(rest)];
                    let length = line.iter().position(|byte| *byte == b';').map_or(line.len(), |end| end + 1);
                    self.directive(&line[..length])?;
                    at += length;
                }
                _ => {
                    let length = rest.iter().position(|byte| matches!(byte, b';' | b':'))?;
                    let statement = &rest[..length];
                    // A colon ends a label, or is part of an operation's name.
                    if rest[length] == b':' && is_label(statement) {
                        // Nothing jumps to where only debuggers see a place.
                        if !statement.starts_with(DEBUG_LABEL) {
                            self.begin_block();
                            self.labels.push((statement, self.blocks.len() as u32 - 1));
                        }
                        at += length + 1;
                    } else {
                        let length = rest.iter().position(|byte| *byte == b';')?;
                        self.statement(&rest[..length])?;
                        at += length + 1;
                    }
                }
            }
        }
        Some(())
    }

    /// Declarations of registers; of registers in blocks of inline assembly, which have names of their own, none.
    fn directive(&mut self, text: &[u8]) -> Option<()> {
        let Some(rest) = text.strip_prefix(b".reg .") else { return Some(()) };
        let Some(percent) = rest.iter().position(|byte| *byte == b'%') else { return Some(()) };
        let class = std::str::from_utf8(&rest[..percent]).ok()?.trim();
        let halves = match class {
            "pred" => 0,
            "b16" => 1,
            "b32" => 2,
            "b64" => 4,
            "b128" => 8,
            _ => return None,
        };
        // The pointers to local memory stand alone; they are the same in all threads.
        let Some(open) = rest.iter().position(|byte| *byte == b'<') else { return Some(()) };
        let close = rest.iter().position(|byte| *byte == b'>')?;
        let count: u32 = std::str::from_utf8(rest.get(open + 1..close)?).ok()?.parse().ok()?;
        let first = self.halves.len() as u32;
        self.classes.push((SmallVec::from_slice(rest.get(percent + 1..open)?), first, count));
        self.halves.resize(self.halves.len() + count as usize, halves);
        Some(())
    }

    fn begin_block(&mut self) {
        let from = self.blocks.len() as u32 - 1;
        // Control goes on from the block before, unless its last instruction says otherwise.
        if self.branches.last().is_none_or(|(block, ..)| *block != from) {
            self.branches.push((from, None, true));
        }
        self.blocks.push(Block::default());
    }

    fn statement(&mut self, text: &'a [u8]) -> Option<()> {
        let (predicate, text) = match text.strip_prefix(b"@") {
            Some(rest) => {
                let end = rest.iter().position(u8::is_ascii_whitespace)?;
                (Some(&rest[..end]), rest[end..].trim_ascii_start())
            }
            None => (None, text),
        };
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        let (name, operands) = (&text[..end], text[end..].trim_ascii_start());
        if name.starts_with(b"call") {
            return None;
        }
        if name.starts_with(b"wgmma.mma_async") {
            let in_braces = operands
                .split(|byte| *byte == b'{')
                .skip(1)
                .filter_map(|rest| rest.split(|byte| *byte == b'}').next());
            let fragments: usize =
                in_braces.map(|rest| rest.iter().filter(|byte| **byte == b'%').count()).sum();
            self.least = self.least.max(fragments as u64 + BESIDE_FRAGMENTS);
        }
        if name.starts_with(b"mma.sync.aligned.m16") && name.ends_with(b".f64") {
            self.least = self.least.max(REGISTERS_OF_LONG_F64.into());
        }
        self.synchronizes |= name.starts_with(b"bar.sync") || name.starts_with(b"barrier.sync");
        self.shares |= name.windows(7).any(|part| part == b".shared");
        let mut instruction = self.instruction(name, operands);
        if let Some(predicate) = predicate {
            registers(predicate, |register| instruction.uses.extend(self.find(register)));
            // What the instruction leaves as it was is used.
            let kept = instruction.makes.clone();
            instruction.uses.extend(kept);
        }
        instruction.uses.sort_unstable();
        instruction.uses.dedup();
        self.blocks.last_mut()?.instructions.push(instruction);
        let block = self.blocks.len() as u32 - 1;
        let is_jump = name.starts_with(b"brx");
        if let Some(registers) = subroutine(name) {
            self.blocks.last_mut()?.subroutine = registers;
            self.begin_block();
        } else if name.starts_with(b"bra") {
            let label = operands.split(u8::is_ascii_whitespace).next_back()?;
            self.branches.push((block, Some(label), predicate.is_some()));
            self.blocks.push(Block::default());
        } else if is_jump || matches!(name, b"ret" | b"exit" | b"trap") {
            if is_jump {
                self.jumps.push((block, operands.split(u8::is_ascii_whitespace).next_back()?));
            }
            self.branches.push((block, None, predicate.is_some()));
            self.blocks.push(Block::default());
        }
        Some(())
    }

    fn instruction(&self, name: &[u8], operands: &[u8]) -> Instruction {
        // The first operand is written, or the registers in its braces.
        let first = match operands.first() {
            Some(b'{') => {
                operands.iter().position(|byte| *byte == b'}').map_or(operands.len(), |end| end + 1)
            }
            _ => operands.iter().position(|byte| *byte == b',').unwrap_or(operands.len()),
        };
        let (first, rest) = operands.split_at(first);
        let (mut makes, mut uses) = (SmallVec::new(), SmallVec::new());
        let writes = !WITHOUT_RESULT.iter().any(|prefix| name.starts_with(prefix));
        let mut varies =
            VARYING.iter().any(|prefix| name.starts_with(prefix)) && !name.starts_with(b"ld.param");
        registers(first, |register| {
            let found = self.find(register);
            if writes { makes.extend(found) } else { uses.extend(found) }
        });
        registers(rest, |register| match self.find(register) {
            Some(register) => uses.push(register),
            None => varies |= register.starts_with(b"tid") || register.starts_with(b"lane"),
        });
        // The accumulator is read, too.
        if name.starts_with(b"wgmma.mma") {
            uses.extend(makes.iter().copied());
        }
        Instruction { makes, uses, order: order(name), varies }
    }

    /// The number of a register, given as what follows its `%`; `None` for special ones.
    fn find(&self, name: &[u8]) -> Option<Register> {
        let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (class, number) = name.split_at(name.len() - digits);
        let number: u32 = std::str::from_utf8(number).ok()?.parse().ok()?;
        let (_, first, count) = self.classes.iter().find(|(name, ..)| name.as_slice() == class)?;
        (number < *count).then_some(first + number)
    }

    /// Says of each block where control goes from it.
    fn link(&mut self) -> Option<()> {
        let mut labels = std::mem::take(&mut self.labels);
        labels.sort_unstable();
        let block_of = |label: &[u8]| {
            let at = labels.binary_search_by_key(&label, |(name, _)| name).ok()?;
            Some(labels[at].1)
        };
        let last = (self.blocks.len() as u32).saturating_sub(1);
        self.targets.sort_unstable();
        for (from, list) in &self.jumps {
            let at = self.targets.binary_search_by_key(list, |(name, _)| name).ok()?;
            let next: Option<Vec<u32>> = self.targets[at].1.iter().map(|label| block_of(label)).collect();
            self.blocks[*from as usize].next.extend(next?);
        }
        for (from, label, goes_on) in std::mem::take(&mut self.branches) {
            if let Some(label) = label {
                self.blocks[from as usize].next.push(block_of(label)?);
            }
            if goes_on && from < last {
                self.blocks[from as usize].next.push(from + 1);
            }
        }
        Some(())
    }
}

/// Registers of the subroutine that ptxas calls for operands that the fast path of an instruction does not serve: divisions,
/// reciprocals and roots that round correctly, and divisions of 64-bit integers. Other instructions do not move across that
/// branch. `None` of instructions without one.
///
/// Measured: how many registers fewer live on across the instruction where ptxas 12.8 and 13.4 may use 64 and spill none (2 to
/// 6 of 32 bits; 15 of a division and 14 of a root of f64, 8 of its reciprocal, 11 of integers).
fn subroutine(name: &[u8]) -> Option<u64> {
    let mut parts = name.split(|byte| *byte == b'.');
    let (operation, modifier) = (parts.next()?, parts.next()?);
    let ty = parts.next_back().unwrap_or(modifier);
    let is_rounded = matches!(modifier, b"rn" | b"rz" | b"rm" | b"rp");
    match (operation, ty) {
        (b"div" | b"sqrt", b"f64") => Some(15),
        (b"rcp", b"f64") if is_rounded => Some(8),
        (b"div" | b"rcp" | b"sqrt", b"f32") if is_rounded => Some(6),
        (b"div" | b"rem", b"s64" | b"u64") => Some(11),
        _ => None,
    }
}

/// The labels of a list, between commas.
fn labels_of(list: &[u8]) -> Vec<&[u8]> {
    list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect()
}

/// Bytes up to the end of a line, that included.
pub(super) fn line(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| end + 1)
}

fn is_label(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'$' | b'_' | b'%'))
}

/// Where the only kernel of `ptx` begins. `None` where it has not exactly one, or calls functions.
fn only_entry(ptx: &[u8]) -> Option<usize> {
    let entry = position(ptx, 0, ENTRY)?;
    let is_only = position(ptx, entry + 1, ENTRY).is_none() && position(ptx, 0, b".func").is_none();
    is_only.then_some(entry)
}

/// The body of the only kernel of `ptx`, without its braces. `None` as in [`only_entry`].
pub(super) fn only_body(ptx: &[u8]) -> Option<Range<usize>> {
    let from = position(ptx, only_entry(ptx)?, BODY)? + BODY.len();
    Some(from..from + closing(&ptx[from..]))
}

/// Calls `found` with the name of each register in `text`, without its `%`.
pub(super) fn registers<'t>(text: &'t [u8], mut found: impl FnMut(&'t [u8])) {
    let mut at = 0;
    while let Some(percent) = text[at..].iter().position(|byte| *byte == b'%') {
        let from = at + percent + 1;
        let length = text[from..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        found(&text[from..from + length]);
        at = from + length;
    }
}

/// Instructions whose first operand is read, not written.
const WITHOUT_RESULT: [&[u8]; 22] = [
    b"st.",
    b"red.",
    b"bar.",
    b"barrier",
    b"bra",
    b"cp.",
    b"fence",
    b"membar",
    b"wgmma.fence",
    b"wgmma.commit",
    b"wgmma.wait",
    b"mbarrier.init",
    b"mbarrier.arrive.expect",
    b"mbarrier.inval",
    b"prefetch",
    b"tensormap",
    b"griddepcontrol",
    b"nanosleep",
    b"stmatrix",
    b"discard",
    b"applypriority",
    b"setmaxnreg",
];

/// Instructions of which threads get different numbers.
const VARYING: [&[u8]; 11] = [
    b"ld.",
    b"atom",
    b"shfl",
    b"mma",
    b"wgmma",
    b"ldmatrix",
    b"activemask",
    b"match",
    b"elect",
    b"mbarrier",
    b"vote",
];

/// Instructions that no access passes.
const BARRIERS: [&[u8]; 17] = [
    b"bar.",
    b"barrier",
    b"wgmma",
    b"cp.async",
    b"fence",
    b"membar",
    b"mbarrier",
    b"bra",
    b"ret",
    b"exit",
    b"trap",
    b"red.",
    b"atom",
    b"tensormap",
    b"griddepcontrol",
    b"elect",
    b"setmaxnreg",
];

fn order(name: &[u8]) -> Order {
    let starts = |prefixes: &[&[u8]]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if starts(&BARRIERS) {
        Order::Barrier
    } else if starts(&[b"ld.global", b"ld.weak.global", b"ld.volatile", b"ld.relaxed", b"ld.acquire"]) {
        Order::Load
    } else if starts(&[b"st.global", b"st.volatile", b"st.relaxed", b"st.release"]) {
        Order::Store
    } else if starts(&[b"ld.shared", b"st.", b"ldmatrix", b"stmatrix", b"shfl", b"mma", b"redux", b"vote"]) {
        Order::Shared
    } else {
        Order::Free
    }
}
