//! What the machine code of a kernel takes, by the order in which the assembler left it.
//!
//! From Ampere to Hopper an instruction has 128 bits, and says itself for how many cycles the next one waits, which of six
//! counters it raises until what it makes is there, and on which of them it waits. So what one warp takes for straight-line code
//! can be added up: instructions that wait for memory show, and how many loads are under way at once. Fields are those that
//! `nvdisasm` prints; nothing of them is documented. Latencies
//! are of bench/gpu/micro, rounded; that of memory is what the objective takes, too, while other CTAs load.

use crate::binary::section;

/// Bytes of an instruction.
const SIZE: usize = 16;
/// Counters that instructions wait on.
const COUNTERS: usize = 6;
/// Cycles until an operand that is read late (of a store) may be written again.
const READ: f64 = 12.0;
/// How often an iteration is taken to run where nothing is known, and of how many loops around each other.
const ITERATIONS: f64 = 10.0;
const DEEPEST: i32 = 3;

/// Cycles of the way through a kernel that takes each loop some times.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cycles {
    /// Of one warp alone on its part of a multiprocessor, until everything is there that it waits for.
    pub alone: f64,
    /// In which the part issues its instructions, whatever they wait for.
    pub issued: f64,
    /// Loads from global memory on that way. Where an assembler unrolls a loop, more are.
    pub loads: f64,
}

impl Cycles {
    /// Cycles for a load and what comes with it, where `warps` warps share a part of a multiprocessor.
    pub fn each(&self, warps: f64) -> f64 {
        (self.alone / warps.max(1.0)).max(self.issued) / self.loads.max(1.0)
    }

    /// Cycles of all of it, where `warps` warps share a part of a multiprocessor: they fill each other's waits the worse, the nearer
    /// these come to what all of them issue.
    pub fn shared_by(&self, warps: f64) -> f64 {
        let waits = self.alone / warps.max(1.0);
        // `hypot` is of a newer C library than the wheel may ask for.
        (waits * waits + self.issued * self.issued).sqrt()
    }

    fn add(&mut self, times: f64, other: Cycles) {
        self.alone += times * other.alone;
        self.issued += times * other.issued;
        self.loads += times * other.loads;
    }
}

/// Cycles of what is in an innermost loop, and of what is not.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parts {
    /// Of an iteration of each innermost loop.
    pub innermost: Cycles,
    /// Of everything else.
    pub rest: Cycles,
}

impl Parts {
    /// Cycles where innermost loops run so often.
    pub fn with(&self, iterations: f64) -> Cycles {
        let mut all = self.rest;
        all.add(iterations, self.innermost);
        all
    }
}

/// What an instruction does, as far as its time goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Branch,
    Exit,
    GlobalLoad,
    LocalLoad,
    SharedLoad,
    Other,
    /// Runs on a unit that takes two cycles for a warp.
    Slow,
    Nothing,
}

#[derive(Clone, Copy)]
struct Instruction(u128);

impl Instruction {
    fn bits(self, from: u32, count: u32) -> u64 {
        ((self.0 >> from) & ((1 << count) - 1)) as u64
    }

    /// By the operation, whatever its operands are.
    fn kind(self) -> Kind {
        match self.bits(0, 9) {
            0x147 => Kind::Branch,
            0x14d => Kind::Exit,
            0x181 => Kind::GlobalLoad,
            0x183 => Kind::LocalLoad,
            0x184 | 0x03b => Kind::SharedLoad,
            0x118 => Kind::Nothing,
            // MUFU, SHFL, stores, conversions between integers and floating-point numbers, POPC.
            0x108 | 0x189 | 0x186 | 0x188 | 0x044 | 0x104..=0x107 | 0x109 => Kind::Slow,
            _ => Kind::Other,
        }
    }

    /// Whether it depends on a predicate.
    fn is_conditional(self) -> bool {
        const ALWAYS: u64 = 7;
        self.bits(12, 4) != ALWAYS
    }

    /// The instruction, counted from the next one, at which a branch goes on.
    fn distance(self, splits: bool) -> i64 {
        // In instructions: the offset counts words of 32 bits, of which Hopper has the lowest byte apart.
        let high = (self.bits(34, 48) as i64) << 16 >> 16;
        if splits { ((high << 8) | self.bits(16, 8) as i64) / 4 } else { high / 4 }
    }

    fn latency(self) -> f64 {
        match self.kind() {
            Kind::GlobalLoad => 1000.0,
            Kind::LocalLoad => 60.0,
            Kind::SharedLoad => 31.0,
            _ => 20.0,
        }
    }
}

/// Cycles of the only kernel of `cubin`, of the generation `capability` as in 90; `None` where there are several, or the
/// generation's machine code is another.
pub fn cycles(cubin: &[u8], capability: u32) -> Option<Cycles> {
    Some(parts(cubin, capability)?.with(ITERATIONS))
}

/// The same, with what is in innermost loops by itself.
pub fn parts(cubin: &[u8], capability: u32) -> Option<Parts> {
    Some(parts_of(&code(cubin, capability)?, capability >= 90))
}

/// The instructions of the only kernel of `cubin` that load constants, arguments among them, to registers of their own.
pub fn constants(cubin: &[u8], capability: u32) -> Option<usize> {
    const LOADS_CONSTANT: u64 = 0x182;
    let code = code(cubin, capability)?;
    Some(code.iter().filter(|instruction| instruction.bits(0, 9) == LOADS_CONSTANT).count())
}

/// The instructions of the only kernel of `cubin` that load from the stack in innermost loops.
pub fn stack_loads_in_loops(cubin: &[u8], capability: u32) -> Option<usize> {
    Some(stack_loads(&code(cubin, capability)?, capability >= 90))
}

fn stack_loads(code: &[Instruction], splits: bool) -> usize {
    let innermost = control(code, splits).innermost;
    code.iter().zip(innermost).filter(|(one, innermost)| *innermost && one.kind() == Kind::LocalLoad).count()
}

/// Asynchronous dots of a kernel, and its waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsynchronousDots {
    /// `HGMMA`, `QGMMA`, `IGMMA`, `BGMMA`.
    pub dots: usize,
    /// `WARPGROUP.DEPBAR`.
    pub waits: usize,
}

/// Those of the only kernel of `cubin`.
pub fn asynchronous_dots(cubin: &[u8], capability: u32) -> Option<AsynchronousDots> {
    Some(dots_of(&code(cubin, capability)?))
}

fn dots_of(code: &[Instruction]) -> AsynchronousDots {
    const WARP_GROUP: u64 = 0x1c5;
    // What tells waits from the other instructions of that operation, which begin groups.
    const WAITS: u32 = 47;
    let count = |is: fn(&&Instruction) -> bool| code.iter().filter(is).count();
    AsynchronousDots {
        dots: count(|instruction| matches!(instruction.bits(0, 9), 0x1f0..=0x1f3)),
        waits: count(|instruction| instruction.bits(0, 9) == WARP_GROUP && instruction.bits(WAITS, 1) == 1),
    }
}

fn code(cubin: &[u8], capability: u32) -> Option<Vec<Instruction>> {
    if !(80..=90).contains(&capability) {
        return None;
    }
    let bytes = section(cubin, b".text.")?.chunks_exact(SIZE);
    bytes.map(|bytes| Some(Instruction(u128::from_le_bytes(*bytes.first_chunk()?)))).collect()
}

#[cfg(test)]
fn along(code: &[Instruction], splits: bool) -> Cycles {
    parts_of(code, splits).with(ITERATIONS)
}

/// Cycles of `code`, in whose branches the lowest byte of the distance stands apart or not.
fn parts_of(code: &[Instruction], splits: bool) -> Parts {
    let Control { depth, innermost, left_out } = control(code, splits);
    let none = Cycles { alone: 0.0, issued: 0.0, loads: 0.0 };
    let mut found = Parts { innermost: none, rest: none };
    let (mut now, mut ready) = (0.0_f64, [0.0_f64; COUNTERS]);
    for (at, instruction) in code.iter().enumerate() {
        if left_out[at] || instruction.kind() == Kind::Nothing {
            continue;
        }
        let around = depth[at] - i32::from(innermost[at]);
        let weight = ITERATIONS.powi(around.min(DEEPEST));
        let waits = instruction.bits(116, 6);
        let begins =
            (0..COUNTERS).filter(|n| waits >> n & 1 == 1).fold(now, |latest, n| latest.max(ready[n]));
        let stall = instruction.bits(105, 4).max(1) as f64;
        let (made, read) = (instruction.bits(110, 3) as usize, instruction.bits(113, 3) as usize);
        if let Some(counter) = ready.get_mut(made) {
            *counter = counter.max(begins + instruction.latency());
        }
        if let Some(counter) = ready.get_mut(read) {
            *counter = counter.max(begins + READ);
        }
        let kind = instruction.kind();
        let twice = matches!(kind, Kind::Slow | Kind::GlobalLoad | Kind::SharedLoad);
        let part = if innermost[at] { &mut found.innermost } else { &mut found.rest };
        part.add(
            weight,
            Cycles {
                alone: begins - now + stall,
                issued: if twice { 2.0 } else { 1.0 },
                loads: if kind == Kind::GlobalLoad { 1.0 } else { 0.0 },
            },
        );
        now = begins + stall;
        if kind == Kind::Exit && !instruction.is_conditional() {
            break;
        }
    }
    found
}

/// Where each instruction is.
struct Control {
    /// In how many loops.
    depth: Vec<i32>,
    /// Whether in one with no other in it.
    innermost: Vec<bool>,
    /// Whether on a way that is not taken: of two that lead to the same place, the first one.
    left_out: Vec<bool>,
}

fn control(code: &[Instruction], splits: bool) -> Control {
    let target = |at: usize| usize::try_from(at as i64 + 1 + code[at].distance(splits)).ok();
    // Loops that begin at an instruction, less those that end before it.
    let (mut begun, mut left_out) = (vec![0; code.len() + 1], vec![false; code.len()]);
    let mut innermost = vec![false; code.len()];
    // Where the last loop begins.
    let mut last_begin = None;
    for at in (0..code.len()).filter(|at| code[*at].kind() == Kind::Branch) {
        let Some(to) = target(at).filter(|to| *to < code.len()) else { continue };
        if to < at {
            begun[to] += 1;
            begun[at + 1] -= 1;
            if last_begin.is_none_or(|begin| begin < to) {
                innermost[to..=at].fill(true);
                last_begin = Some(to);
            }
        } else if to > at + 1 && code[at].is_conditional() {
            let last = to - 1;
            let jumps = code[last].kind() == Kind::Branch && !code[last].is_conditional();
            if jumps && target(last).is_some_and(|end| end > to) {
                left_out[at + 1..to].fill(true);
            }
        }
    }
    let depth = begun.iter().scan(0, |depth, begun| {
        *depth += begun;
        Some(*depth)
    });
    Control { depth: depth.collect(), innermost, left_out }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn dots_and_waits_for_them_are_counted() {
        // nvdisasm of ptxas 12.8's code for sm_90a.
        let code = [
            0x000f_cc00_0000_0000_0000_0000_0000_79c5, // WARPGROUP.ARRIVE
            0x000f_e600_0c00_08ff_00e0_0000_0838_79f3, // QGMMA.64x64x32.F32.E4M3.E4M3 R56, gdesc[UR8], RZ, !UPT, gsb0
            0x000f_e400_0001_0000_0000_8000_0000_79c5, // WARPGROUP.DEPBAR.LE gsb0, 0x0
        ];
        assert_eq!(dots_of(&code.map(Instruction)), AsynchronousDots { dots: 1, waits: 1 });
    }

    const NONE: u128 = 7;

    /// An instruction without a predicate that waits a cycle.
    fn plain(operation: u128, makes: u128, waits: u128) -> Instruction {
        Instruction(operation | 7 << 12 | 1 << 105 | makes << 110 | NONE << 113 | waits << 116)
    }

    fn branch(distance: i64, conditional: bool) -> Instruction {
        let words = 4 * distance;
        let (low, high) = (words as u128 & 0xff, ((words >> 8) as u128) & ((1 << 48) - 1));
        let predicate: u128 = if conditional { 0 } else { 7 };
        Instruction(0x947 | predicate << 12 | low << 16 | high << 34 | 5 << 105 | NONE << 110 | NONE << 113)
    }

    fn load() -> Instruction {
        plain(0x981, 0, 0)
    }

    fn user() -> Instruction {
        plain(0x221, NONE, 1)
    }

    fn exit() -> Instruction {
        plain(0x94d, NONE, 0)
    }

    #[test]
    fn loads_under_way_at_once_are_waited_for_once() {
        let together = [load(), load(), load(), user(), user(), user(), exit()];
        let apart = [load(), user(), load(), user(), load(), user(), exit()];
        let (together, apart) = (along(&together, true), along(&apart, true));
        assert_eq!((together.issued, together.loads), (apart.issued, apart.loads));
        assert!((1000.0..1100.0).contains(&together.alone), "{together:?}");
        assert!((3000.0..3100.0).contains(&apart.alone), "{apart:?}");
        assert!(apart.each(1.0) > 2.5 * together.each(1.0));
        // As many warps as fill that time hide it.
        assert_eq!(apart.each(1e4), together.each(1e4));
    }

    #[test]
    fn loops_count_as_often_as_they_are_taken_to_run() {
        let once = along(&[load(), user(), exit()], true);
        let loops = along(&[load(), user(), branch(-3, true), exit()], true);
        assert_eq!((once.loads, loops.loads), (1.0, 10.0));
        assert!(loops.alone > 9.0 * once.alone, "{loops:?}");
    }

    fn from_stack() -> Instruction {
        plain(0x983, 0, 0)
    }

    /// Code that only adds so often.
    pub(crate) fn sums(count: usize) -> Vec<u128> {
        vec![plain(0x221, NONE, 0).0; count]
    }

    /// Loads that are waited for one after the other.
    pub(crate) fn waits(count: usize) -> Vec<u128> {
        [load(), user()].repeat(count).into_iter().chain([exit()]).map(|instruction| instruction.0).collect()
    }

    /// A loop of so many loads from the stack.
    pub(crate) fn loop_with_stack_loads(count: usize) -> Vec<u128> {
        let around = [branch(-(count as i64) - 1, true), exit()];
        vec![from_stack(); count].into_iter().chain(around).map(|instruction| instruction.0).collect()
    }

    #[test]
    fn loads_from_the_stack_count_in_innermost_loops() {
        let inner = [from_stack(), from_stack(), user(), branch(-4, true)];
        let outer = [from_stack(), branch(-6, true), from_stack(), exit()];
        assert_eq!(stack_loads(&[inner, outer].concat(), true), 2);
        assert_eq!(stack_loads(&[from_stack(), load(), exit()], true), 0);
    }

    #[test]
    fn innermost_loops_may_run_as_often_as_is_known() {
        // A loop in a loop, and one behind both.
        let code =
            [load(), load(), user(), branch(-3, true), branch(-5, true), load(), branch(-2, true), exit()];
        let parts = parts_of(&code, true);
        assert_eq!((parts.rest.loads, parts.innermost.loads), (10.0, 10.0 + 1.0));
        assert_eq!(parts.with(3.0).loads, 10.0 + 3.0 * 11.0);
        assert_eq!(parts.with(ITERATIONS), along(&code, true));
    }

    #[test]
    fn of_two_ways_one_is_taken() {
        // To the second way; the first one, and past the second.
        let code = [branch(3, true), load(), load(), branch(1, false), load(), user(), exit()];
        assert_eq!(along(&code, true).loads, 1.0);
    }

    #[test]
    fn what_is_no_cubin_has_no_cycles() {
        assert_eq!(cycles(b"", 90), None);
        assert_eq!(constants(b"", 90), None);
        assert_eq!(cycles(b"\x7fELF\x02\x01", 90), None);
        assert_eq!(cycles(&[0x7f; 100], 90), None);
    }
}
