//! Execution of accesses to shared memory, lane by lane and bank by bank.

use std::collections::{BTreeMap, BTreeSet};

use super::{CheckError, count, is_clear, number};
use crate::plan::{AccessPlan, Cost, MemoryAccess, MemoryInstruction, Scope, Threads};
use crate::target::{Direction, TargetDesc, TransposedReads};

/// The shared memory of every block: labels of elements by offset.
#[derive(Clone, Debug)]
pub struct Memory {
    blocks: Vec<Vec<Option<u64>>>,
    /// By block and offset, the block and warp that accessed it first, and how far from it others did.
    users: Vec<Vec<Option<(u64, u64, Scope)>>>,
}

impl Memory {
    /// Empty memory of `elems` elements in each of `blocks` blocks.
    pub fn new(blocks: usize, elems: usize) -> Memory {
        Memory { blocks: vec![vec![None; elems]; blocks], users: vec![vec![None; elems]; blocks] }
    }

    /// Forgets what it holds, not who accessed it.
    pub fn clear(&mut self) {
        self.blocks.iter_mut().for_each(|b| b.fill(None));
    }

    /// What is at an offset.
    ///
    /// # Errors
    /// [`CheckError::OutOfBounds`].
    pub fn read(&self, block: u64, offset: u64) -> Result<Option<u64>, CheckError> {
        let size = self.blocks.first().map_or(0, Vec::len) as u64;
        let memory = self.blocks.get(block as usize);
        memory.and_then(|m| m.get(offset as usize)).copied().ok_or(CheckError::OutOfBounds { offset, size })
    }

    /// Writes an element where nothing was.
    ///
    /// # Errors
    /// [`CheckError::OutOfBounds`], and [`CheckError::WrittenTwice`] even when the element is the same.
    pub fn write(&mut self, block: u64, offset: u64, element: u64) -> Result<(), CheckError> {
        if let Some(first) = self.read(block, offset)? {
            return Err(CheckError::WrittenTwice { block, offset, first, second: element });
        }
        self.blocks[block as usize][offset as usize] = Some(element);
        Ok(())
    }

    /// Puts an element somewhere, whatever was there.
    ///
    /// # Errors
    /// [`CheckError::OutOfBounds`].
    pub fn place(&mut self, block: u64, offset: u64, element: u64) -> Result<(), CheckError> {
        self.read(block, offset)?;
        self.blocks[block as usize][offset as usize] = Some(element);
        Ok(())
    }

    /// A warp accesses a place. All that access one place have to wait for each other, since one of them
    /// writes what the others read, or overwrites what they have read.
    fn used(&mut self, block: u64, offset: u64, by: Threads) {
        let users = self.users.get_mut(block as usize).and_then(|b| b.get_mut(offset as usize));
        let Some(user) = users else { return };
        let (block, warp, scope) = user.get_or_insert((by.block, by.warp, Scope::Warp));
        let apart = match (*block == by.block, *warp == by.warp) {
            (true, true) => Scope::Warp,
            (true, false) => Scope::Block,
            (false, _) => Scope::Cluster,
        };
        *scope = apart.max(*scope);
    }

    /// How far those are apart who accessed one place, over all places: what barriers must reach.
    pub fn scope(&self) -> Scope {
        self.users.iter().flatten().flatten().map(|user| user.2).max().unwrap_or(Scope::Warp)
    }

    /// Places of one block that anyone accessed.
    pub fn used_elems(&self) -> u64 {
        self.users.iter().map(|block| block.iter().flatten().count() as u64).max().unwrap_or(0)
    }
}

/// What an [`execute`] counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// Wavefronts of each warp of each block, by `(block, warp)`.
    pub wavefronts: BTreeMap<(u64, u64), u64>,
    /// The least each warp could have needed: one per phase with an active lane.
    pub phases: BTreeMap<(u64, u64), u64>,
    /// Instructions executed with at least one active lane.
    pub instructions: BTreeMap<(u64, u64), u64>,
}

impl MemoryReport {
    /// Wavefronts beyond one per phase, over all warps.
    pub fn conflicts(&self) -> u64 {
        self.wavefronts.iter().map(|(warp, n)| n - self.phases.get(warp).copied().unwrap_or(0)).sum()
    }
}

/// One lane's part of an instruction: where in memory, which registers in order.
struct Move {
    lane: u64,
    offset: u64,
    registers: Vec<(u64, u32)>,
}

/// Executes all the accesses of `plan` that belong to pass `tile`, for every warp: `registers` maps
/// (thread, register) to an element and is read by stores and written by loads. Of memory with
/// `padding`, `padding` elements are left out after every `interval`.
///
/// # Errors
/// Accesses that are misaligned, out of bounds, or write one place twice.
pub fn execute(
    plan: &AccessPlan,
    tile: u64,
    warps: u64,
    blocks: u64,
    target: &TargetDesc,
    memory: &mut Memory,
    padding: &[(u64, u64)],
    registers: &mut dyn FnMut(Threads, u32, Option<Option<u64>>) -> Option<u64>,
    report: &mut MemoryReport,
) -> Result<(), CheckError> {
    if !exists(plan, target) {
        let reason = format!("{target} has no {:?} to {:?} by", plan.instruction, plan.direction);
        return Err(CheckError::Malformed(reason));
    }
    let place = |offset: u64| padding.iter().map(|&(every, pad)| offset / every * pad).sum::<u64>() + offset;
    for block in 0..blocks {
        for warp in 0..warps {
            for access in &plan.accesses {
                let thread = |lane| Threads { lane, warp, block };
                let active = |lane: &u64| {
                    let t = thread(*lane);
                    is_clear(&plan.inactive, t) && access.tile ^ number(&plan.tile, t) == tile
                };
                let lanes: Vec<u64> = (0..u64::from(target.lanes)).filter(active).collect();
                if lanes.is_empty() {
                    continue;
                }
                let address = |lane: u64| place(access.offset ^ number(&plan.address, thread(lane)));
                tally(plan, &lanes, &address, target, (block, warp), report);
                for part in moves(plan, access, &lanes, &address, target)? {
                    let home = match &plan.block {
                        Some(bases) => access.block ^ number(bases, thread(part.lane)),
                        None => block,
                    };
                    for (i, &(lane, register)) in part.registers.iter().enumerate() {
                        let offset = part.offset + i as u64;
                        memory.used(home, offset, thread(lane));
                        match plan.direction {
                            Direction::Store => {
                                let element = registers(thread(lane), register, None).ok_or_else(|| {
                                    CheckError::Malformed(format!("register {register} holds nothing"))
                                })?;
                                memory.write(home, offset, element)?;
                            }
                            Direction::Load => {
                                let element = memory.read(home, offset)?;
                                registers(thread(lane), register, Some(element));
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whether the target has the instruction (PTX ISA; CDNA3, CDNA4 and RDNA3 ISA, "Data share operations").
fn exists(plan: &AccessPlan, target: &TargetDesc) -> bool {
    let (p, load) = (&target.primitives, plan.direction == Direction::Load);
    let matrix = if load { p.ldmatrix } else { p.stmatrix };
    match plan.instruction {
        MemoryInstruction::Vector { bits } => {
            matches!(bits, 8 | 16 | 32 | 64 | 128) && bits <= target.max_vector_bits
        }
        MemoryInstruction::Matrix { count, .. } => matrix && matches!(count, 1 | 2 | 4),
        MemoryInstruction::MatrixBytes { words } => {
            matrix && p.matrix_b8 && matches!((load, words), (_, 2 | 4) | (false, 1))
        }
        MemoryInstruction::TransposedRead { form, unit_bits } => {
            load && p.transposed_reads == Some(form) && matches!(unit_bits, 8 | 16)
        }
    }
}

/// Bits that a lane reads by a transposing read.
fn transposed_bits(form: TransposedReads, unit_bits: u32) -> u32 {
    if form == TransposedReads::Squares && unit_bits == 16 { 128 } else { 64 }
}

/// Which consecutive elements of memory go with which register of which lane.
fn moves(
    plan: &AccessPlan,
    access: &MemoryAccess,
    lanes: &[u64],
    address: &dyn Fn(u64) -> u64,
    target: &TargetDesc,
) -> Result<Vec<Move>, CheckError> {
    let bits = plan.storage_bits;
    let need = |elems: u64| {
        let all = lanes.len() as u64 == u64::from(target.lanes);
        if access.registers.len() as u64 == elems && all {
            Ok(())
        } else {
            let got = access.registers.len();
            Err(CheckError::Malformed(format!("{got} registers or idle lanes where {elems} are moved")))
        }
    };
    let aligned = |offset: u64, elems: u64| {
        if offset.is_multiple_of(elems) { Ok(offset) } else { Err(CheckError::Misaligned { offset, elems }) }
    };
    match plan.instruction {
        MemoryInstruction::Vector { bits: width } => {
            let elems = u64::from(width / bits);
            if access.registers.len() as u64 != elems {
                return Err(CheckError::Malformed(format!(
                    "{} registers in {width} bits",
                    access.registers.len()
                )));
            }
            let part = |&lane: &u64| {
                let registers = access.registers.iter().map(|&r| (lane, r)).collect();
                Ok(Move { lane, offset: aligned(address(lane), elems)?, registers })
            };
            lanes.iter().map(part).collect()
        }
        MemoryInstruction::Matrix { count, transposed } => {
            // PTX ISA, ldmatrix: the row of matrix m at the address of lane 8m + row holds eight 16-bit
            // units; lane l receives in register m units 2(l % 4) and 2(l % 4) + 1 of row l / 4.
            // Transposed: it receives unit l / 4 of rows 2(l % 4) and 2(l % 4) + 1.
            need(u64::from(count * 32 / bits))?;
            let row_elems = u64::from(128 / bits);
            let mut parts = Vec::new();
            for matrix in 0..u64::from(count) {
                for row in 0..8u64 {
                    let giver = 8 * matrix + row;
                    let offset = aligned(address(giver), row_elems)?;
                    let mut registers = Vec::new();
                    for unit in 0..8u64 {
                        let (lane, half) = if transposed {
                            (4 * unit + row / 2, row % 2)
                        } else {
                            (4 * row + unit / 2, unit % 2)
                        };
                        let first = matrix * u64::from(32 / bits) + half * u64::from(16 / bits);
                        if bits <= 16 {
                            let each = u64::from(16 / bits);
                            registers
                                .extend((0..each).map(|e| (lane, access.registers[(first + e) as usize])));
                        } else if unit % 2 == 0 {
                            // One element of 32 bits is two units.
                            registers.push((lane, access.registers[matrix as usize]));
                        }
                    }
                    if transposed && bits > 16 {
                        return Err(CheckError::Malformed("transposing halves of elements".into()));
                    }
                    parts.push(Move { lane: giver, offset, registers });
                }
            }
            Ok(parts)
        }
        MemoryInstruction::MatrixBytes { words } => {
            // PTX ISA, ldmatrix.m16n16.trans.b8: lane l receives in word r byte l / 4 + 8r of rows 4(l % 4) to
            // 4(l % 4) + 3; two words a matrix of 16 rows. stmatrix.m16n8.trans.b8: bytes j of lane l's word belong to
            // row 2(l % 4) + j % 2, byte l / 4 + 8(j / 2); one word a matrix of 8 rows.
            if bits > 8 {
                return Err(CheckError::Malformed(format!("bytes of elements of {bits} bits")));
            }
            let each = u64::from(8 / bits);
            need(u64::from(words) * 4 * each)?;
            let load = plan.direction == Direction::Load;
            let mut parts = Vec::new();
            for giver in 0..u64::from(8 * words) {
                let offset = aligned(address(giver), 16 * each)?;
                let mut registers = Vec::new();
                for column in 0..16u64 {
                    let (lane, word, byte) = if load {
                        let (matrix, row) = (giver / 16, giver % 16);
                        (4 * (column % 8) + row / 4, 2 * matrix + column / 8, row % 4)
                    } else {
                        let (matrix, row) = (giver / 8, giver % 8);
                        (4 * (column % 8) + row / 2, matrix, row % 2 + 2 * (column / 8))
                    };
                    let first = (4 * word + byte) * each;
                    registers.extend((first..first + each).map(|i| (lane, access.registers[i as usize])));
                }
                parts.push(Move { lane: giver, offset, registers });
            }
            Ok(parts)
        }
        MemoryInstruction::TransposedRead { form, unit_bits } => {
            let per_lane = u64::from(transposed_bits(form, unit_bits) / unit_bits);
            if unit_bits != bits {
                return Err(CheckError::Malformed(format!("{bits} bits transposed by {unit_bits}")));
            }
            need(per_lane)?;
            let mut parts = Vec::new();
            for lane in 0..u64::from(target.lanes) {
                let offset = aligned(address(lane), per_lane)?;
                let unit = |e: u64| {
                    let (lane, register) = match (form, unit_bits) {
                        // CDNA4 ISA, DS_READ_B64_TR: within 16 lanes, the 8-byte pieces at the addresses of the lanes,
                        // in order, are a matrix of rows of 16 units; lane l receives column l.
                        (TransposedReads::Rows, _) => {
                            let position = lane % 16 * per_lane + e;
                            (lane / 16 * 16 + position % 16, position / 16)
                        }
                        // Squares of eight lanes.
                        (TransposedReads::Squares, 16) => (lane / 8 * 8 + e, lane % 8),
                        // Lanes 0–3 and 8–11 of sixteen have the rows of the first eight, the others those of the last.
                        (TransposedReads::Squares, _) => {
                            (lane / 16 * 16 + lane % 8 / 4 * 8 + e, lane % 4 + lane % 16 / 8 * 4)
                        }
                    };
                    (lane, access.registers[register as usize])
                };
                parts.push(Move { lane, offset, registers: (0..per_lane).map(unit).collect() });
            }
            Ok(parts)
        }
    }
}

/// Counts the wavefronts of one instruction of one warp.
fn tally(
    plan: &AccessPlan,
    lanes: &[u64],
    address: &dyn Fn(u64) -> u64,
    target: &TargetDesc,
    warp: (u64, u64),
    report: &mut MemoryReport,
) {
    let (bytes, phase_bytes, givers) = match plan.instruction {
        MemoryInstruction::Vector { bits } => (bits / 8, bits / 8, lanes.to_vec()),
        MemoryInstruction::Matrix { count: words, .. } | MemoryInstruction::MatrixBytes { words } => {
            (16, 16, (0..u64::from(8 * words)).collect())
        }
        MemoryInstruction::TransposedRead { form, unit_bits } => {
            let bytes = transposed_bits(form, unit_bits) / 8;
            (bytes, bytes, lanes.to_vec())
        }
    };
    // Lanes are served together when they differ by a combination of the basis.
    let (basis, bank_count) = match plan.instruction {
        // Eight rows of 16 bytes.
        MemoryInstruction::Matrix { .. } | MemoryInstruction::MatrixBytes { .. } => {
            (vec![1, 2, 4], target.banks)
        }
        instruction => {
            let transposed = matches!(instruction, MemoryInstruction::TransposedRead { .. });
            let served = target.service(phase_bytes, plan.direction, transposed);
            (served.lanes.to_vec(), served.banks)
        }
    };
    let combinations: Vec<u64> = (0..1u64 << basis.len())
        .map(|x| basis.iter().enumerate().filter(|&(i, _)| x >> i & 1 == 1).fold(0, |a, (_, b)| a ^ b))
        .collect();
    let phase_of = |lane: u64| combinations.iter().map(|c| lane ^ c).min().unwrap_or(lane);
    let mut phases: BTreeMap<u64, BTreeMap<u64, BTreeSet<u64>>> = BTreeMap::new();
    for &lane in &givers {
        let banks = phases.entry(phase_of(lane)).or_default();
        let first = address(lane) * u64::from(plan.storage_bits) / 8;
        let last = first + u64::from(bytes) - 1;
        let width = u64::from(target.bank_width);
        for word in first / width..=last / width {
            banks.entry(word % u64::from(bank_count)).or_default().insert(word);
        }
    }
    let each =
        |banks: &BTreeMap<u64, BTreeSet<u64>>| banks.values().map(BTreeSet::len).max().unwrap_or(0) as u64;
    *report.wavefronts.entry(warp).or_default() += phases.values().map(each).sum::<u64>();
    *report.phases.entry(warp).or_default() += phases.len() as u64;
    *report.instructions.entry(warp).or_default() += 1;
}

/// The cost of `plan` for one warp, whose accesses were executed with `report`, without padding: cycles without
/// latencies.
///
/// # Errors
/// A number that the plan has otherwise.
pub(super) fn counted(
    plan: &AccessPlan,
    report: &MemoryReport,
    threads: &[Threads],
    target: &TargetDesc,
) -> Result<Cost, CheckError> {
    let (what, least) = match plan.direction {
        Direction::Store => ("store", "minimum of stores"),
        Direction::Load => ("load", "minimum of loads"),
    };
    for (what, counted, expected) in
        [(what, &report.wavefronts, plan.wavefronts), (least, &report.phases, plan.minimum)]
    {
        if let Some((&(_, warp), &got)) = counted.iter().find(|&(_, &n)| n != expected) {
            return Err(CheckError::Wavefronts { what, warp, got, expected });
        }
    }
    for &instructions in report.instructions.values() {
        count::same("instructions of a warp", instructions, plan.count)?;
    }
    let most = |counts: &BTreeMap<(u64, u64), u64>| counts.values().copied().max().unwrap_or(0);
    let instructions = most(&report.instructions);
    let (stores, loads) = match plan.direction {
        Direction::Store => (instructions, 0),
        Direction::Load => (0, instructions),
    };
    let mut cost = Cost {
        stores,
        loads,
        wavefronts: most(&report.wavefronts),
        minimum_wavefronts: most(&report.phases),
        permutes: permutes(plan)?,
        address_ops: computed_addresses(plan, threads),
        ..Cost::default()
    };
    count::same("byte permutes of an access", cost.permutes, plan.packing_ops)?;
    count::same("address computations of an access", cost.address_ops, plan.address_ops)?;
    count::same("words moved to their fragments", moved_words(plan), plan.fragment_moves)?;
    cost.cycles = count::access_cycles(plan, &cost, target);
    Ok(cost)
}

/// Addresses that a thread computes besides its first one: those of accesses that are not as far from another
/// one in every thread, so that an immediate offset does not do.
fn computed_addresses(plan: &AccessPlan, threads: &[Threads]) -> u64 {
    let mut bases: Vec<u64> =
        threads.iter().filter(|&&t| is_clear(&plan.inactive, t)).map(|&t| number(&plan.address, t)).collect();
    bases.sort_unstable();
    bases.dedup();
    let address = |offset: u64| bases.iter().map(move |base| base ^ offset);
    let mut known: BTreeSet<Vec<u64>> = BTreeSet::new();
    let mut offsets: Vec<u64> = plan.accesses.iter().map(|a| a.offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    for offset in offsets {
        let first = address(offset).next().unwrap_or(0);
        known.insert(address(offset).map(|a| a.wrapping_sub(first)).collect());
    }
    known.len() as u64 - u64::from(!known.is_empty())
}

/// Byte permutes that the register lists of the accesses ask for: a word of adjacent registers, copies left out,
/// is put together from, or taken apart to, as many words of accesses as it meets; one that is met whole may be
/// in another order.
pub(super) fn permutes(plan: &AccessPlan) -> Result<u64, CheckError> {
    let mut kept = plan.copies.clone();
    kept.sort_unstable();
    kept.dedup();
    let each = ((32 / plan.storage_bits).max(1) as usize).min(kept.len().max(1));
    let place = |register: &u32| {
        let missing = |_| CheckError::Malformed(format!("register {register} is moved, though a copy"));
        kept.binary_search(register).map_err(missing)
    };
    let mut met: Vec<Vec<Vec<usize>>> = vec![Vec::new(); kept.len().div_ceil(each)];
    for access in &plan.accesses {
        for word in access.registers.chunks(each) {
            let places = word.iter().map(place).collect::<Result<Vec<usize>, CheckError>>()?;
            let words: BTreeSet<usize> = places.iter().map(|p| p / each).collect();
            words.into_iter().for_each(|w| met[w].push(places.clone()));
        }
    }
    let ordered = |w: usize, places: &[usize]| places.iter().copied().eq(w * each..(w + 1) * each);
    let of = |(w, met): (usize, &Vec<Vec<usize>>)| match met.as_slice() {
        [one] => u64::from(!ordered(w, one)),
        many => (many.len() as u64).saturating_sub(1),
    };
    Ok(met.iter().enumerate().map(of).sum())
}

/// Words of one thread that come in registers beside those of other fragments than their own, or in another order: an access
/// gives the words of its registers in consecutive registers, and instructions take fragments so. An access that gives
/// whole fragments, or a part of one without a gap, needs no moves; else each of its words is moved.
pub(super) fn moved_words(plan: &AccessPlan) -> u64 {
    let mut kept = plan.copies.clone();
    kept.sort_unstable();
    kept.dedup();
    let each = ((32 / plan.storage_bits).max(1) as usize).min(kept.len().max(1));
    // What the bits of a word's place in its fragment add to its number.
    let bits: Vec<usize> =
        plan.fragment.bits().map(|bit| 1 << bit).filter(|bit| bit * each < kept.len()).collect();
    let in_place = |registers: &[u32]| {
        let given = registers.len() / each;
        let bits = &bits[..bits.len().min(given.max(1).ilog2() as usize)];
        let place = |at: usize| kept.binary_search(&registers[at]).ok();
        (0..given).all(|word| {
            let at = word % (1 << bits.len());
            let number: usize = bits.iter().enumerate().map(|(i, bit)| (at >> i & 1) * bit).sum();
            // The same element of the first word of the fragment.
            (0..each).all(|element| {
                match (place(word * each + element), place((word - at) * each + element)) {
                    (Some(own), Some(first)) => {
                        let all: usize = bits.iter().sum();
                        (first / each) & all == 0 && own == first + number * each
                    }
                    _ => false,
                }
            })
        })
    };
    let moved = plan.accesses.iter().map(|access| access.registers.as_slice()).filter(|r| !in_place(r));
    // Words that accesses share are still one word each.
    moved.map(<[u32]>::len).sum::<usize>().div_ceil(each) as u64
}
