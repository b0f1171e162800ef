//! One side of a transfer through shared memory: which instruction, how often, with which registers, at
//! which addresses, and how many wavefronts.
//!
//! Everything is read off the map `L = M⁻¹ D` from registers, lanes, warps and blocks to offsets in
//! memory, where `M` is the memory layout and `D` the distributed one. An instruction with tile `T` can be
//! used when `L` divided on the left by `T` exists for some order of the registers (paper, Theorem 5.1 and
//! "Generalized Vectorization"); each function below states its tile.

use smallvec::SmallVec;

use crate::f2::{self, Echelon, Vectors, low_mask};
use crate::plan::space::Distributed;
use crate::plan::vector::{contiguous_bits, group_registers};
use crate::plan::{NARROWEST_COPY, ThreadMasks, fewest};
use crate::target::{Direction, RowBit, TargetDesc, TransposedReads, Vendor};

/// An instruction that moves data between registers and shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryInstruction {
    /// `ld.shared`/`st.shared` or `ds_read`/`ds_write`: every lane moves consecutive elements at an
    /// address of its own.
    Vector {
        /// Bits that one lane moves.
        bits: u32,
    },
    /// `ldmatrix`/`stmatrix.m8n8.b16`: `count` matrices of 8 rows of 16 bytes; lane `8m + i` gives the
    /// address of row `i` of matrix `m` (PTX ISA, "Warp-level matrix load instruction: ldmatrix").
    Matrix {
        /// Matrices of one instruction: 1, 2 or 4.
        count: u32,
        /// Whether lanes receive columns of 16-bit units instead of rows.
        transposed: bool,
    },
    /// `ldmatrix.m16n16.trans.b8` and `stmatrix.m16n8.trans.b8` of that many words a lane: lane `i` gives the address
    /// of row `i` of 16 bytes; lanes hold bytes of columns (PTX ISA, "ldmatrix", "stmatrix", sm_100a on).
    MatrixBytes {
        /// 32-bit registers of one instruction: 1 (stores only), 2 or 4.
        words: u32,
    },
    /// `ds_read_b64_tr_b16`/`_b8`, `ds_load_tr16_b128`/`tr8_b64`: every lane gives the address of a row; groups of
    /// lanes receive the matrix that their rows form transposed.
    TransposedRead {
        /// Which lanes form one.
        form: TransposedReads,
        /// Bits of the units that are transposed: 16 or 8.
        unit_bits: u32,
    },
}

impl MemoryInstruction {
    /// The mnemonic in the target's assembly.
    pub fn name(&self, direction: Direction, target: &TargetDesc) -> String {
        let load = direction == Direction::Load;
        match (*self, target.vendor) {
            (MemoryInstruction::Vector { bits }, Vendor::Nvidia) => {
                let op = if load { "ld.shared" } else { "st.shared" };
                if bits <= 32 { format!("{op}.b{bits}") } else { format!("{op}.v{}.b32", bits / 32) }
            }
            (MemoryInstruction::Vector { bits }, Vendor::Amd) => match (load, bits) {
                (true, 8 | 16) => format!("ds_read_u{bits}"),
                (true, _) => format!("ds_read_b{bits}"),
                (false, _) => format!("ds_write_b{bits}"),
            },
            (MemoryInstruction::Matrix { count, transposed }, _) => {
                let op = if load { "ldmatrix" } else { "stmatrix" };
                format!("{op}.x{count}{}", if transposed { ".trans" } else { "" })
            }
            (MemoryInstruction::MatrixBytes { words }, _) if load => {
                format!("ldmatrix.m16n16.x{}.trans.b8", words / 2)
            }
            (MemoryInstruction::MatrixBytes { words }, _) => format!("stmatrix.m16n8.x{words}.trans.b8"),
            (MemoryInstruction::TransposedRead { form, unit_bits }, _) => form.name(unit_bits),
        }
    }

    /// Bits of registers that one lane moves.
    pub fn bits_per_lane(&self) -> u32 {
        match *self {
            MemoryInstruction::Vector { bits } => bits,
            MemoryInstruction::Matrix { count: words, .. } | MemoryInstruction::MatrixBytes { words } => {
                32 * words
            }
            MemoryInstruction::TransposedRead { form, unit_bits } => {
                form.bits_per_lane(unit_bits).unwrap_or(0)
            }
        }
    }
}

/// What each bit of a lane, warp or block number contributes to a number, by XOR.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadBases {
    /// Contribution of each bit of the lane number.
    pub lane: SmallVec<[u64; 6]>,
    /// Contribution of each bit of the warp number.
    pub warp: SmallVec<[u64; 6]>,
    /// Contribution of each bit of the block number.
    pub block: SmallVec<[u64; 6]>,
}

impl ThreadBases {
    /// The number that a thread gets.
    pub fn of(&self, thread: crate::plan::Threads) -> u64 {
        f2::mul(&self.lane, thread.lane)
            ^ f2::mul(&self.warp, thread.warp)
            ^ f2::mul(&self.block, thread.block)
    }

    /// Whether every thread gets zero.
    pub fn is_zero(&self) -> bool {
        self.union() == 0
    }

    /// The bits that some thread has set.
    pub fn union(&self) -> u64 {
        self.lane.iter().chain(&self.warp).chain(&self.block).fold(0, |m, c| m | c)
    }

    fn map(&self, f: impl Fn(u64) -> u64) -> ThreadBases {
        let all = |v: &[u64]| v.iter().map(|&c| f(c)).collect();
        ThreadBases { lane: all(&self.lane), warp: all(&self.warp), block: all(&self.block) }
    }
}

/// One execution of the instruction of an [`AccessPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryAccess {
    /// The registers moved, in the order of the instruction: lowest address first for vectors; matrix by
    /// matrix, low half first, for matrices; in result order for transposed reads.
    pub registers: Vec<u32>,
    /// XORed into the address of every thread, in elements.
    pub offset: u64,
    /// Which pass over the shared memory this belongs to, XORed with the thread's part
    /// ([`AccessPlan::tile`]).
    pub tile: u64,
    /// XORed into the number of the block whose memory is accessed ([`AccessPlan::block`]).
    pub block: u64,
}

/// How all the elements of a thread travel between registers and shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessPlan {
    /// To or from memory.
    pub direction: Direction,
    /// The instruction.
    pub instruction: MemoryInstruction,
    /// Bits that one element takes in memory.
    pub storage_bits: u32,
    /// The executions of the instruction.
    pub accesses: Vec<MemoryAccess>,
    /// What the thread contributes to its address, in elements: `address(thread) ^ access.offset`.
    pub address: ThreadBases,
    /// What the thread contributes to the number of the pass.
    pub tile: ThreadBases,
    /// What the thread contributes to the number of the block accessed; `None` when that is its own.
    pub block: Option<ThreadBases>,
    /// For each register of the layout, the register of some access that holds the same element.
    pub copies: Vec<u32>,
    /// Threads with one of these bits set do not store. Empty for loads.
    pub inactive: ThreadMasks,
    /// Instructions that one warp executes, all passes together. More than there are
    /// [`accesses`](Self::accesses) when the lanes of a warp do theirs in different passes.
    pub count: u64,
    /// Wavefronts of all accesses of one warp.
    pub wavefronts: u64,
    /// The least that this instruction could take for these accesses: one wavefront per phase.
    pub minimum: u64,
    /// Address computations besides those that fit in an immediate offset.
    pub address_ops: u64,
    /// Byte permutes between words of adjacent registers and words of accesses.
    pub packing_ops: u64,
    /// The words that instructions take from consecutive registers of the thread.
    pub fragment: FragmentWords,
    /// Words that the assembler moves because an access gives them beside others than those of their fragment.
    pub fragment_moves: u64,
}

impl AccessPlan {
    /// Cycles of one warp, latencies left out.
    pub fn cycles(&self, target: &TargetDesc) -> f64 {
        let remote = if self.block.is_some() { target.cost.remote_factor } else { 1.0 };
        self.wavefronts as f64 * target.cost.wavefront * remote
            + self.count as f64 * target.cost.issue
            + (self.address_ops + self.packing_ops + self.fragment_moves) as f64 * target.cost.alu
    }
}

/// The words of 32 bits that a matrix instruction takes from consecutive registers, as those of one operand's fragment are (PTX
/// ISA, "Matrix Fragments for mma.m16n8k16"): each of one or two bits of a word's place in the fragment is a bit of its number
/// among the words of a thread, copies left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FragmentWords([Option<u8>; 2]);

impl FragmentWords {
    /// Each word by itself.
    pub const ONE: FragmentWords = FragmentWords([None; 2]);

    /// Pairs of words whose numbers differ in bit `bit`.
    pub fn pairs(bit: u8) -> FragmentWords {
        FragmentWords([Some(bit), None])
    }

    /// Four words: bits 0 and 1 of the place are bits `low` and `high` of the number.
    pub fn fours(low: u8, high: u8) -> FragmentWords {
        FragmentWords([Some(low), Some(high)])
    }

    /// The bits of a word's number, that of bit 0 of its place first.
    pub fn bits(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().flatten().map(usize::from)
    }
}

/// The map `L` from hardware to offsets, with what else addresses consist of.
#[derive(Clone, Debug)]
pub(crate) struct OffsetMap {
    /// Columns: the low `offset_bits` are the offset in elements, then `tile_bits`, then the block.
    pub columns: Distributed,
    pub offset_bits: u32,
    pub tile_bits: u32,
    /// Whether blocks access the memory of others.
    pub remote: bool,
    /// Threads that need not store.
    pub inactive: ThreadMasks,
    /// log2 of the elements that stay consecutive in memory; less than the offsets where padding is
    /// inserted.
    pub run_bits: u32,
    /// The words that instructions take from consecutive registers: what one access gives should be those of one such
    /// group in their order, or they have to be moved.
    pub fragment: FragmentWords,
}

/// An instruction that fits, before its register lists are made.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub instruction: MemoryInstruction,
    /// log2 of the registers of one access.
    vec_bits: u32,
    /// Offset bits below a row of a matrix that registers reach alone, and the registers that do.
    fixed: SmallVec<[(u32, u64); 4]>,
    /// Register numbers, one per bit of the position within the access.
    within: SmallVec<[u64; 5]>,
    /// Address contribution of each lane bit; differs from the data's for matrices.
    lane: SmallVec<[u64; 6]>,
    pub count: u64,
    pub wavefronts: u64,
    pub minimum: u64,
    pub packing_ops: u64,
    /// Words that the assembler moves because an access gives them beside others than those of their fragment.
    fragment_moves: u64,
}

impl Choice {
    pub fn cycles(&self, target: &TargetDesc) -> f64 {
        self.cycles_with(self.wavefronts, target)
    }

    /// The same with so many wavefronts.
    pub fn cycles_with(&self, wavefronts: u64, target: &TargetDesc) -> f64 {
        wavefronts as f64 * target.cost.wavefront
            + self.count as f64 * target.cost.issue
            + (self.packing_ops + self.fragment_moves) as f64 * target.cost.alu
    }
}

impl OffsetMap {
    fn offset_mask(&self) -> u64 {
        low_mask(self.offset_bits)
    }

    /// log2 of the registers that hold different elements.
    fn register_rank(&self) -> u32 {
        f2::rank(&self.columns.reg)
    }

    /// The instruction that takes the fewest cycles, if any can do it.
    pub fn choose(&self, storage_bits: u32, direction: Direction, target: &TargetDesc) -> Option<Choice> {
        fewest(self.choices(storage_bits, direction, target), |choice| choice.cycles(target))
    }

    /// Instructions that can do it.
    pub fn choices(
        &self,
        storage_bits: u32,
        direction: Direction,
        target: &TargetDesc,
    ) -> impl Iterator<Item = Choice> + use<> {
        let matrices = self.matrices(storage_bits, direction, target);
        let transposed = self.transposed_read(storage_bits, direction, target);
        let vector = self.vector(storage_bits, direction, target);
        vector.into_iter().chain(matrices).chain(transposed)
    }

    /// Copies past the registers, of 4 bytes or more, which are at most `2^most` consecutive registers in their order.
    pub fn copies(&self, most: u32, storage_bits: u32, target: &TargetDesc) -> Option<Choice> {
        let own = self.columns.reg.iter().filter(|column| **column != 0);
        let run = own.zip(0..).take_while(|(column, i)| **column == 1 << i).count() as u32;
        let run = run.min(self.run_bits).min(most);
        if storage_bits << run.min(8) < NARROWEST_COPY {
            return None;
        }
        let map = OffsetMap { run_bits: run, ..self.clone() };
        map.vector(storage_bits, Direction::Store, target)
    }

    /// Tile: the identity from registers to the lowest `v` offset bits.
    pub fn vector(&self, storage_bits: u32, direction: Direction, target: &TargetDesc) -> Option<Choice> {
        let limit =
            (target.max_vector_bits / storage_bits).max(1).ilog2().min(self.offset_bits).min(self.run_bits);
        let vec_bits = contiguous_bits(&self.columns, limit);
        let bits = storage_bits << vec_bits;
        if !bits.is_multiple_of(8) {
            return None;
        }
        let registers = Echelon::of(&self.columns.reg);
        let within: SmallVec<[u64; 5]> = (0..vec_bits).filter_map(|i| registers.express(1 << i)).collect();
        let lowest: SmallVec<[(u32, u64); 5]> = (0..vec_bits).zip(within.iter().copied()).collect();
        let instruction = MemoryInstruction::Vector { bits };
        let served = instruction.served(direction, target);
        let lane: SmallVec<[u64; 6]> = self.columns.lane.iter().map(|c| c & self.offset_mask()).collect();
        // Only active lanes take part, in each pass a coset of those that do in the first; they form a
        // space, and so do the lanes of one phase.
        let active: Vectors =
            (0..lane.len()).filter(|i| self.inactive.lane >> i & 1 == 0).map(|i| 1 << i).collect();
        let tile_mask = low_mask(self.tile_bits) << self.offset_bits;
        let tiles: Vectors = active.iter().map(|&l| f2::mul(&self.columns.lane, l) & tile_mask).collect();
        let active: Vectors = f2::kernel(&tiles).iter().map(|&x| f2::mul(&active, x)).collect();
        let together = f2::intersection(&active, &served.service.lanes);
        let rows: Vectors = together.iter().map(|&l| f2::mul(&lane, l)).collect();
        let phases = 1u64 << (active.len() - together.len());
        let count = 1u64 << (self.register_rank() - vec_bits + f2::rank(&tiles));
        let wavefronts = phases * served.conflict_degree(&rows, storage_bits);
        Some(Choice {
            instruction,
            vec_bits,
            fixed: SmallVec::new(),
            packing_ops: self.packing(&within, &lowest, storage_bits),
            fragment_moves: self.fragment_moves(&within, storage_bits),
            within,
            lane,
            count,
            wavefronts: count * wavefronts,
            minimum: count * phases,
        })
    }

    /// The bits of register numbers that tell different elements apart: copies left out, the lowest first.
    fn kept_registers(&self) -> Vec<usize> {
        let mut span = Echelon::new();
        (0..self.columns.reg.len()).filter(|&i| span.insert(self.columns.reg[i])).collect()
    }

    /// The registers, as bits of their number, that tell the words of a fragment apart, in the order of the words.
    fn fragment_registers(&self, storage_bits: u32) -> SmallVec<[u64; 2]> {
        let kept = self.kept_registers();
        let words = kept.get((32 / storage_bits).max(1).ilog2() as usize..).unwrap_or_default();
        self.fragment.bits().filter_map(|bit| words.get(bit)).map(|&i| 1 << i).collect()
    }

    /// Words of one thread that are moved, since instructions take some from consecutive registers and accesses whose
    /// positions are the registers `within` give several that are not consecutive in these.
    fn fragment_moves(&self, within: &[u64], storage_bits: u32) -> u64 {
        let in_word = (32 / storage_bits).max(1).ilog2() as usize;
        let given = within.get(in_word..).unwrap_or_default();
        let fragment = self.fragment_registers(storage_bits);
        if fragment.iter().zip(given).all(|(wanted, given)| wanted == given) {
            return 0;
        }
        let kept = self.kept_registers().len();
        1 << (kept - in_word.min(kept))
    }

    /// Byte permutes of one thread: elements live in words of adjacent registers, copies left out, and accesses move
    /// words whose positions are the registers `within`; a register that flips a bit of `fixed` goes with the one that
    /// undoes that.
    fn packing(&self, within: &[u64], fixed: &[(u32, u64)], storage_bits: u32) -> u64 {
        let kept = self.kept_registers();
        let (low, high) = kept.split_at(kept.len().min((32 / storage_bits).max(1).ilog2() as usize));
        let adjacent: Vectors = low.iter().map(|&i| 1 << i).collect();
        let word = &within[..within.len().min(adjacent.len())];
        let both: Vectors = adjacent.iter().chain(word).copied().collect();
        // Bits of the position that tell words of accesses apart of which a word of registers consists.
        let split = f2::rank(&both) - word.len() as u32;
        let words = 1u64 << (self.register_rank() - adjacent.len() as u32);
        if split > 0 {
            return words * ((1 << split) - 1);
        }
        if word != adjacent.as_slice() {
            return words;
        }
        // Words of other registers have the same order where these flip no bit of the position within a word.
        let flips = fixed.iter().filter(|(_, register)| word.contains(register));
        let mask = flips.fold(0, |mask, (bit, _)| mask | 1 << bit);
        let flipped: Vectors = high.iter().map(|&i| self.columns.reg[i] & mask).collect();
        words - (words >> f2::rank(&flipped))
    }

    /// Tile of `ldmatrix`: 32 bits of registers, then lane bits 0 and 1, are the lowest offset bits; lane
    /// bits 2–4 choose the row (paper, Section 5.3). Transposed: 16 bits of registers, then lane bits 2–4,
    /// are the lowest offset bits; one register bit and lane bits 0 and 1 choose the row.
    fn matrices(&self, storage_bits: u32, direction: Direction, target: &TargetDesc) -> Vec<Choice> {
        let (p, full_warp) = (&target.primitives, self.inactive.lane == 0);
        let available = if direction == Direction::Load { p.ldmatrix } else { p.stmatrix && full_warp };
        if !available || self.remote || self.thread_tiles() || self.columns.lane.len() != 5 {
            return Vec::new();
        }
        let mut choices = Vec::new();
        if let Some(unit) = log2_ratio(32, storage_bits) {
            choices.extend(self.matrix(storage_bits, unit, false, &[0, 1], &[2, 3, 4], target));
        }
        if let Some(unit) = log2_ratio(16, storage_bits) {
            choices.extend(self.matrix(storage_bits, unit, true, &[2, 3, 4], &[0, 1], target));
        }
        if let Some(unit) = log2_ratio(8, storage_bits).filter(|_| p.matrix_b8) {
            choices.extend(self.matrix_bytes(storage_bits, unit, direction, target));
        }
        choices
    }

    /// Whether the pass depends on the lane or the warp, so that not all lanes take part together.
    fn thread_tiles(&self) -> bool {
        let mask = low_mask(self.tile_bits) << self.offset_bits;
        self.columns.lane.iter().chain(&self.columns.warp).any(|c| c & mask != 0)
    }

    fn matrix(
        &self,
        storage_bits: u32,
        unit: u32,
        transposed: bool,
        along: &[usize],
        rows: &[usize],
        target: &TargetDesc,
    ) -> Option<Choice> {
        let registers = Echelon::of(&self.columns.reg);
        let served = MemoryInstruction::Matrix { count: 4, transposed }.served(Direction::Load, target);
        let mut within = self.row_tile(&registers, unit, along, rows)?;
        let mut row_offsets: SmallVec<[u64; 6]> = SmallVec::new();
        let fixed: SmallVec<[(u32, u64); 4]> = (0..unit).zip(within.iter().copied()).collect();
        let mut others = self.other_registers(&within, &fixed);
        if transposed {
            // The row is one register bit, then two lane bits; take the register that conflicts least.
            let lanes: Vectors = rows.iter().map(|&l| self.columns.lane[l] & self.offset_mask()).collect();
            let degree = |&(_, c): &(u64, u64)| {
                let all: Vectors = lanes.iter().copied().chain([c & self.offset_mask()]).collect();
                served.conflict_degree(&all, storage_bits)
            };
            let in_pass = |&i: &usize| others[i].1 >> self.offset_bits == 0;
            // Of those, one that the others of its word are adjacent to.
            let order = |&i: &usize| {
                let register = others[i].0;
                let word: SmallVec<[u64; 5]> = within.iter().copied().chain([register]).collect();
                (degree(&others[i]), self.packing(&word, &fixed, storage_bits))
            };
            let best = (0..others.len()).filter(in_pass).min_by_key(order)?;
            let (register, column) = others.remove(best);
            within.push(register);
            row_offsets.push(column & self.offset_mask());
        }
        row_offsets.extend(rows.iter().map(|&l| self.columns.lane[l] & self.offset_mask()));
        let degree = served.conflict_degree(&row_offsets, storage_bits);
        let extra = self.further_matrices(&others, &row_offsets, storage_bits);
        let words = 1u64 << others.len();
        let count = words >> extra.len();
        let mut lane = row_offsets;
        for &(register, column) in &extra {
            within.push(register);
            lane.push(column & self.offset_mask());
        }
        lane.resize(5, 0);
        Some(Choice {
            instruction: MemoryInstruction::Matrix { count: 1 << extra.len(), transposed },
            vec_bits: within.len() as u32,
            packing_ops: self.packing(&within, &fixed, storage_bits),
            fragment_moves: self.fragment_moves(&within, storage_bits),
            fixed,
            within,
            lane,
            count,
            wavefronts: words * degree,
            minimum: words,
        })
    }

    /// The registers, two at most, that choose among the matrices of one instruction, besides rows at the offsets `rows`:
    /// those that tell words of a fragment apart, then the one that leaves the fewest addresses to compute.
    fn further_matrices(
        &self,
        others: &[(u64, u64)],
        rows: &[u64],
        storage_bits: u32,
    ) -> SmallVec<[(u64, u64); 2]> {
        // Registers of one tile only, so that all matrices lie in one pass.
        let mut in_pass: SmallVec<[(u64, u64); 8]> =
            others.iter().filter(|(_, c)| c >> self.offset_bits == 0).copied().collect();
        // Words of a fragment in their order, as far as the first is there.
        let fragment = self.fragment_registers(storage_bits);
        let mut taken = 0;
        for register in fragment {
            let Some(at) = in_pass.iter().position(|other| other.0 == register) else { break };
            let found = in_pass.remove(at);
            in_pass.insert(taken, found);
            taken += 1;
        }
        let Some((&first, rest)) = in_pass.split_first() else { return SmallVec::new() };
        let threads = self.columns.warp.iter().chain(&self.columns.block).chain(rows);
        let threads = threads.fold(first.1, |bits, column| bits | column);
        // Where addresses of threads differ, too, those of further accesses are no constants apart.
        let computed = |second: &&(u64, u64)| {
            let bits = (threads | second.1) & self.offset_mask();
            let left = others.iter().filter(|other| **other != first && **other != **second);
            f2::rank(&left.map(|(_, column)| column & bits).collect::<Vectors>())
        };
        let second = if taken > 1 { rest.first() } else { rest.iter().min_by_key(computed) };
        std::iter::once(first).chain(second.copied()).collect()
    }

    /// Tile of `ldmatrix.m16n16.trans.b8` and `stmatrix.m16n8.trans.b8`: registers below a byte, then lane bits 2–4 and
    /// one register bit are the lowest offset bits, 16 bytes. Two register bits (one for stores) and lane bits 0 and 1
    /// choose the row; a word's bytes are those of two rows and two halves of a row for stores, of four rows for loads.
    fn matrix_bytes(
        &self,
        storage_bits: u32,
        unit: u32,
        direction: Direction,
        target: &TargetDesc,
    ) -> Option<Choice> {
        let registers = Echelon::of(&self.columns.reg);
        let served = MemoryInstruction::MatrixBytes { words: 4 }.served(direction, target);
        let mut within = self.row_tile(&registers, unit, &[2, 3, 4], &[0, 1])?;
        let top = unit + 3;
        if top >= self.offset_bits.min(self.run_bits) {
            return None;
        }
        let half = registers.express(1 << top)?;
        let columns = &self.columns;
        let others = columns.lane[..2].iter().chain(&columns.warp).chain(&columns.block);
        if others.copied().any(|c| c >> top & 1 == 1) {
            return None;
        }
        let fixed: SmallVec<[(u32, u64); 4]> =
            (0..unit).zip(within.iter().copied()).chain([(top, half)]).collect();
        let taken: SmallVec<[u64; 5]> = within.iter().copied().chain([half]).collect();
        let mut others = self.other_registers(&taken, &fixed);
        let offset = |c: u64| c & self.offset_mask();
        let lanes = [offset(columns.lane[0]), offset(columns.lane[1])];
        // Eight rows are served together: those of address lanes 0 to 2.
        let load = direction == Direction::Load;
        let in_pass: Vec<usize> =
            (0..others.len()).filter(|&i| others[i].1 >> self.offset_bits == 0).collect();
        let degree = |rows: &[usize]| {
            let all: Vectors = rows.iter().map(|&i| offset(others[i].1)).chain(lanes).take(3).collect();
            served.conflict_degree(&all, storage_bits)
        };
        let sets: Vec<Vec<usize>> = if load {
            let pairs = in_pass.iter().enumerate();
            pairs.flat_map(|(n, &i)| in_pass[n + 1..].iter().map(move |&j| vec![i, j])).collect()
        } else {
            in_pass.iter().map(|&i| vec![i]).collect()
        };
        let rows = sets.into_iter().min_by_key(|rows| degree(rows))?;
        let conflicts = degree(&rows);
        // A word takes two bits of the byte number: two rows, or one row and the half.
        let words = 1u64 << (others.len() - 1);
        let mut lane: SmallVec<[u64; 6]> = rows.iter().map(|&i| offset(others[i].1)).collect();
        lane.extend(lanes);
        within.extend(rows.iter().map(|&i| others[i].0));
        within.push(half);
        for &i in rows.iter().rev() {
            others.remove(i);
        }
        // Matrices of one instruction lie in one pass.
        let fits = |&&(_, c): &&(u64, u64)| c >> self.offset_bits == 0;
        let extra: Vec<(u64, u64)> = others.iter().filter(fits).take(5 - lane.len()).copied().collect();
        for &(register, column) in &extra {
            within.push(register);
            lane.push(offset(column));
        }
        lane.resize(5, 0);
        let count = 1u64 << (others.len() - extra.len());
        Some(Choice {
            instruction: MemoryInstruction::MatrixBytes { words: (words / count) as u32 },
            vec_bits: within.len() as u32,
            packing_ops: self.packing(&within, &fixed, storage_bits),
            fragment_moves: self.fragment_moves(&within, storage_bits),
            fixed,
            within,
            lane,
            count,
            wavefronts: words * conflicts,
            minimum: words,
        })
    }

    /// Tile of a transposing read: the lowest lane bits are the lowest offset bits, one row; register bits
    /// and other lane bits choose among the rows.
    fn transposed_read(
        &self,
        storage_bits: u32,
        direction: Direction,
        target: &TargetDesc,
    ) -> Option<Choice> {
        let form = target.primitives.transposed_reads.filter(|_| direction == Direction::Load)?;
        // As many units of a row as a lane receives.
        let units = (form.bits_per_lane(storage_bits)? / storage_bits).ilog2() as usize;
        let row_bits = form.rows(storage_bits);
        if self.remote || self.thread_tiles() || self.columns.lane.len() != row_bits.len() {
            return None;
        }
        let along: SmallVec<[usize; 4]> = (0..units).collect();
        let rows: SmallVec<[usize; 6]> = (units..row_bits.len()).collect();
        let registers = Echelon::of(&self.columns.reg);
        self.row_tile(&registers, 0, &along, &rows)?;
        let others = self.other_registers(&[], &[]);
        let in_pass = |&&(_, c): &&(u64, u64)| c >> self.offset_bits == 0;
        let taken: Vec<(u64, u64)> = others.iter().filter(in_pass).take(units).copied().collect();
        if taken.len() < units {
            return None;
        }
        let address = |bit: &RowBit| match *bit {
            RowBit::Lane(l) => self.columns.lane[usize::from(l)] & self.offset_mask(),
            RowBit::Register(r) => taken[usize::from(r)].1 & self.offset_mask(),
        };
        let lane: SmallVec<[u64; 6]> = row_bits.iter().map(address).collect();
        let instruction = MemoryInstruction::TransposedRead { form, unit_bits: storage_bits };
        let served = instruction.served(direction, target);
        let rows: Vectors = served.service.lanes.iter().map(|&l| f2::mul(&lane, l)).collect();
        let phases = served.phases();
        let count = 1u64 << (others.len() - taken.len());
        let within: SmallVec<[u64; 5]> = taken.iter().map(|&(r, _)| r).collect();
        Some(Choice {
            instruction,
            vec_bits: taken.len() as u32,
            fixed: SmallVec::new(),
            packing_ops: self.packing(&within, &[], storage_bits),
            fragment_moves: self.fragment_moves(&within, storage_bits),
            within,
            lane,
            count,
            wavefronts: count * phases * served.conflict_degree(&rows, storage_bits),
            minimum: count * phases,
        })
    }

    /// The registers of the lowest `unit` offset bits, if these bits followed by the lanes `along` are the
    /// lowest offset bits and nothing else reaches them.
    fn row_tile(
        &self,
        registers: &Echelon,
        unit: u32,
        along: &[usize],
        rows: &[usize],
    ) -> Option<SmallVec<[u64; 5]>> {
        let row_bits = unit + along.len() as u32;
        let row_mask = low_mask(row_bits);
        if row_bits > self.offset_bits.min(self.run_bits) {
            return None;
        }
        let lanes = &self.columns.lane;
        let ordered = along.iter().enumerate().all(|(i, &l)| lanes[l] == 1 << (unit + i as u32));
        let others = rows.iter().map(|&l| lanes[l]).chain(self.columns.warp.iter().copied());
        let undisturbed = others.chain(self.columns.block.iter().copied()).all(|c| c & row_mask == 0);
        let upper = row_mask & !low_mask(unit);
        let low_registers = self.columns.reg.iter().all(|c| c & upper == 0);
        if !(ordered && undisturbed && low_registers) {
            return None;
        }
        (0..unit).map(|i| registers.express(1 << i)).collect()
    }

    /// The registers left when those in `within` are taken and copies are dropped: numbers and columns. A
    /// register that also flips a bit of `fixed` is combined with the one that undoes that.
    fn other_registers(&self, within: &[u64], fixed: &[(u32, u64)]) -> Vec<(u64, u64)> {
        let taken: Vectors = within.iter().map(|&r| f2::mul(&self.columns.reg, r)).collect();
        let mut span = Echelon::of(&taken);
        let columns = self.columns.reg.iter().enumerate();
        let others = columns.filter(|&(_, &c)| span.insert(c));
        others
            .map(|(i, &c)| {
                let flipped = fixed.iter().filter(|&&(bit, _)| c >> bit & 1 == 1);
                flipped.fold((1 << i, c), |(r, c), &(bit, register)| (r ^ register, c ^ 1 << bit))
            })
            .collect()
    }

    /// The whole plan for a choice.
    pub fn realize(&self, choice: &Choice, storage_bits: u32, direction: Direction) -> AccessPlan {
        let offset = |c: u64| c & self.offset_mask();
        let tile = |c: u64| c >> self.offset_bits & low_mask(self.tile_bits);
        let block = |c: u64| c.checked_shr(self.offset_bits + self.tile_bits).unwrap_or(0);
        let columns = &self.columns;
        let threads = ThreadBases {
            lane: columns.lane.iter().copied().collect(),
            warp: columns.warp.iter().copied().collect(),
            block: columns.block.iter().copied().collect(),
        };
        let mut address = threads.map(offset);
        address.lane.clone_from(&choice.lane);
        let groups: Vec<Vec<u32>> = if matches!(choice.instruction, MemoryInstruction::Vector { .. }) {
            let accesses = group_registers(columns, choice.vec_bits);
            accesses.into_iter().map(|a| a.registers).collect()
        } else {
            self.matrix_groups(choice)
        };
        let thread_bits = address.union();
        let accesses: Vec<MemoryAccess> = groups
            .into_iter()
            .map(|registers| {
                let column = f2::mul(&columns.reg, registers[0].into());
                MemoryAccess { offset: offset(column), tile: tile(column), block: block(column), registers }
            })
            .collect();
        let mut overlaps: Vec<u64> = accesses.iter().map(|a| a.offset & thread_bits).collect();
        overlaps.sort_unstable();
        overlaps.dedup();
        AccessPlan {
            direction,
            instruction: choice.instruction,
            storage_bits,
            address_ops: overlaps.iter().filter(|&&o| o != 0).count() as u64,
            accesses,
            address,
            tile: threads.map(tile),
            block: self.remote.then(|| threads.map(block)),
            copies: columns.representatives(),
            inactive: self.inactive,
            count: choice.count,
            wavefronts: choice.wavefronts,
            minimum: choice.minimum,
            packing_ops: choice.packing_ops,
            fragment: self.fragment,
            fragment_moves: choice.fragment_moves,
        }
    }

    /// Registers by position within the access, one list per access.
    fn matrix_groups(&self, choice: &Choice) -> Vec<Vec<u32>> {
        let others: Vec<u64> =
            self.other_registers(&choice.within, &choice.fixed).iter().map(|&(r, _)| r).collect();
        let group = |g: u64| {
            let base = f2::mul(&others, g);
            (0..1u64 << choice.vec_bits).map(|x| (base ^ f2::mul(&choice.within, x)) as u32).collect()
        };
        (0..1u64 << others.len()).map(group).collect()
    }
}

fn log2_ratio(a: u32, b: u32) -> Option<u32> {
    (b <= a).then(|| (a / b).ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_names_and_widths() {
        use Direction::{Load, Store};
        use MemoryInstruction::{Matrix, MatrixBytes, TransposedRead, Vector};
        let transposed = |form, unit_bits| TransposedRead { form, unit_bits };
        let matrix = |count, transposed| Matrix { count, transposed };
        for (target, direction, instruction, name, bits) in [
            ("cuda:90", Load, Vector { bits: 8 }, "ld.shared.b8", 8),
            ("cuda:90", Load, Vector { bits: 32 }, "ld.shared.b32", 32),
            ("cuda:90", Store, Vector { bits: 64 }, "st.shared.v2.b32", 64),
            ("cuda:90", Store, Vector { bits: 128 }, "st.shared.v4.b32", 128),
            ("cuda:90", Load, matrix(4, false), "ldmatrix.x4", 128),
            ("cuda:90", Load, matrix(2, true), "ldmatrix.x2.trans", 64),
            ("cuda:90", Store, matrix(1, true), "stmatrix.x1.trans", 32),
            ("cuda:100", Load, MatrixBytes { words: 4 }, "ldmatrix.m16n16.x2.trans.b8", 128),
            ("cuda:100", Store, MatrixBytes { words: 1 }, "stmatrix.m16n8.x1.trans.b8", 32),
            ("hip:gfx950", Load, transposed(TransposedReads::Rows, 16), "ds_read_b64_tr_b16", 64),
            ("hip:gfx1250", Load, transposed(TransposedReads::Squares, 16), "ds_load_tr16_b128", 128),
            ("hip:gfx1250", Load, transposed(TransposedReads::Squares, 8), "ds_load_tr8_b64", 64),
            ("hip:gfx950", Load, Vector { bits: 16 }, "ds_read_u16", 16),
            ("hip:gfx942", Load, Vector { bits: 128 }, "ds_read_b128", 128),
            ("hip:gfx942", Store, Vector { bits: 8 }, "ds_write_b8", 8),
        ] {
            let target = TargetDesc::parse(target).unwrap();
            assert_eq!(
                (instruction.name(direction, &target).as_str(), instruction.bits_per_lane()),
                (name, bits)
            );
        }
    }

    #[test]
    fn bases_of_threads_add_up_by_xor() {
        let bases = ThreadBases {
            lane: [1, 3].into_iter().collect(),
            warp: [6].into_iter().collect(),
            block: [5].into_iter().collect(),
        };
        let of = |lane, warp, block| bases.of(crate::plan::Threads { lane, warp, block });
        assert_eq!([of(0, 0, 0), of(3, 0, 0), of(2, 1, 0), of(1, 1, 1)], [0, 2, 5, 2]);
        assert_eq!((bases.union(), bases.is_zero()), (7, false));
        assert!(ThreadBases::default().is_zero());
    }
}
