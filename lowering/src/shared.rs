//! Emits accesses to shared memory: [`AccessPlan`]s at addresses that are
//! XOR-linear in the thread's numbers.
//!
//! The address of an access is `t ^ a`, where `t` depends on the thread and `a`
//! is a constant of the access. Where `a` shares no bits with `t` it is an
//! immediate offset; one address is computed for each value of the bits that
//! it does share.

use crate::emit::{Emit, ICmp, Lowered, internal, unsupported};
use crate::lower::Lower;
use crate::words::{join_words, split_words};
use linear_layout::plan::{AccessPlan, MemoryAccess, MemoryInstruction};
use linear_layout::target::Direction;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Value};

/// Shared memory that is accessed.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a, 'c> {
    /// Its first byte, an address of shared memory.
    pub base: Value<'c>,
    /// A part of the memory, of which all addresses are XORed with a number of elements.
    pub part: Option<Part<'c>>,
    /// `(interval, padding)` in elements, as in `SharedAccessPlan::padding`.
    pub padding: &'a [(u64, u64)],
}

/// See [`Memory::part`].
#[derive(Clone, Copy, Debug)]
pub struct Part<'c> {
    /// XORed into the offset in elements, an `i32`.
    pub offset: Value<'c>,
    /// The bits that may be set in it.
    pub bits: u64,
}

impl<'c> Memory<'_, 'c> {
    /// The memory that begins at `base`.
    pub fn at(base: Value<'c>) -> Self {
        Memory { base, part: None, padding: &[] }
    }
}

/// Emits the offset in memory of an offset that counts no padding.
pub fn padded<'c>(e: &mut Emit<'c>, offset: Value<'c>, padding: &[(u64, u64)]) -> Lowered<Value<'c>> {
    let mut sum = offset;
    for &(interval, pad) in padding {
        let count = e.lshr(offset, interval.trailing_zeros())?;
        let pad = e.const_i32(pad as i64)?;
        let extra = e.same("llvm.mul", &[count, pad])?;
        sum = e.add(sum, extra)?;
    }
    Ok(sum)
}

/// As [`padded`], of a constant.
fn padded_constant(offset: u64, padding: &[(u64, u64)]) -> u64 {
    padding.iter().fold(offset, |sum, (interval, pad)| sum + offset / interval * pad)
}

/// The number that a value is known to be.
fn known(value: Value<'_>) -> Option<u64> {
    let op = value.def_op().filter(|op| op.name() == "llvm.mlir.constant")?;
    op.attr("value").and_then(Attr::as_int).and_then(|value| u64::try_from(value).ok())
}

/// The addresses of the accesses of one plan.
struct Addresses<'p, 'c> {
    plan: &'p AccessPlan,
    memory: Memory<'p, 'c>,
    /// What the thread and the part contribute, in elements.
    thread: Value<'c>,
    /// The bits that may be set in it.
    bits: u64,
    /// What the part contributes where that is a constant, in elements.
    constant: u64,
    /// Bytes of one element.
    bytes: u64,
    /// Whether `thread` counts bytes, not elements.
    in_bytes: bool,
    /// By block accessed, and by the bits of the offset that `thread` has too.
    made: FastMap<(u64, u64), Value<'c>>,
    blocks: FastMap<u64, Value<'c>>,
}

impl<'p, 'c> Addresses<'p, 'c> {
    fn new(l: &mut Lower<'_, 'c>, plan: &'p AccessPlan, memory: Memory<'p, 'c>) -> Lowered<Self> {
        let bits = plan.storage_bits;
        if !bits.is_multiple_of(8) {
            return unsupported(format!("elements of {bits} bits have no address in shared memory"));
        }
        let bytes = u64::from(bits / 8);
        // A part that is known where it begins is so many elements of each access.
        let constant = memory.part.and_then(|part| known(part.offset));
        let memory = Memory { part: memory.part.filter(|_| constant.is_none()), ..memory };
        // Without padding and parts the address is made of bytes at once.
        let in_bytes = memory.part.is_none() && memory.padding.is_empty();
        let mut thread = l.thread_number(&plan.address, if in_bytes { bytes } else { 1 })?;
        let mut union = plan.address.union();
        if let Some(part) = memory.part {
            thread = l.emit.xor(thread, part.offset)?;
            union |= part.bits;
        }
        let (made, blocks) = (FastMap::default(), FastMap::default());
        let constant = constant.unwrap_or(0);
        Ok(Self { plan, memory, thread, bits: union, constant, bytes, in_bytes, made, blocks })
    }

    fn base(&mut self, l: &mut Lower<'_, 'c>, block: u64) -> Lowered<Value<'c>> {
        let Some(blocks) = &self.plan.block else { return Ok(self.memory.base) };
        if let Some(found) = self.blocks.get(&block) {
            return Ok(*found);
        }
        let mut rank = l.thread_number(blocks, 1)?;
        if block != 0 {
            let other = l.emit.const_i32(block as i64)?;
            rank = l.emit.xor(rank, other)?;
        }
        let clusters = crate::target::need(l.target.clusters(), "clusters", l.target)?;
        let mapped = clusters.remote_shared(&mut l.emit, self.memory.base, rank)?;
        self.blocks.insert(block, mapped);
        Ok(mapped)
    }

    fn of(&mut self, l: &mut Lower<'_, 'c>, access: &MemoryAccess) -> Lowered<Value<'c>> {
        let offset = access.offset ^ self.constant;
        let (shared, rest) = (offset & self.bits, offset & !self.bits);
        let key = (access.block, shared);
        let start = match self.made.get(&key) {
            Some(found) => *found,
            None => {
                let base = self.base(l, access.block)?;
                let mut offset = self.thread;
                if shared != 0 {
                    let scale = if self.in_bytes { self.bytes } else { 1 };
                    let constant = l.emit.const_i32((shared * scale) as i64)?;
                    offset = l.emit.xor(offset, constant)?;
                }
                offset = padded(&mut l.emit, offset, self.memory.padding)?;
                if !self.in_bytes && self.bytes > 1 {
                    offset = l.emit.shl(offset, self.bytes.trailing_zeros())?;
                }
                let i8t = l.emit.int(8);
                let made = l.emit.gep(base, offset, i8t)?;
                self.made.insert(key, made);
                made
            }
        };
        let rest = padded_constant(rest, self.memory.padding) * self.bytes;
        if rest == 0 {
            return Ok(start);
        }
        let i8t = l.emit.int(8);
        let rest = l.emit.const_i32(rest as i64)?;
        l.emit.gep(start, rest, i8t)
    }
}

/// The addresses of all accesses of a plan.
///
/// # Errors
/// When elements have no address.
pub fn addresses<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &AccessPlan,
    memory: Memory<'_, 'c>,
) -> Lowered<Vec<Value<'c>>> {
    let mut addresses = Addresses::new(l, plan, memory)?;
    plan.accesses.iter().map(|access| addresses.of(l, access)).collect()
}

/// Whether a thread does an access in pass `pass`: `None` when all do,
/// `Some(None)` when none does.
fn in_pass<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &AccessPlan,
    access: &MemoryAccess,
    pass: u64,
) -> Lowered<Option<Option<Value<'c>>>> {
    let differs = access.tile ^ pass;
    if plan.tile.is_zero() {
        return Ok((differs != 0).then_some(None));
    }
    let (mine, wanted) = (l.thread_number(&plan.tile, 1)?, l.emit.const_i32(differs as i64)?);
    Ok(Some(Some(l.emit.icmp(ICmp::Eq, mine, wanted)?)))
}

/// Stores a thread's values, integers of the plan's width, in pass `pass`.
///
/// # Errors
/// When the plan is no store of such values.
pub fn store<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &AccessPlan,
    memory: Memory<'_, 'c>,
    values: &[Value<'c>],
    pass: u64,
) -> Lowered<()> {
    if plan.direction != Direction::Store {
        return unsupported("a plan to load cannot store");
    }
    let inactive = plan.inactive;
    let mut active = l.is_representative(inactive.lane, inactive.warp, inactive.block)?;
    // Whole warps store matrices or not: they branch.
    let is_matrix =
        matches!(plan.instruction, MemoryInstruction::Matrix { .. } | MemoryInstruction::MatrixBytes { .. });
    let after = match active {
        Some(condition) if is_matrix => {
            let (inside, after) = (l.new_block(&[])?, l.new_block(&[])?);
            l.emit.cond_br(condition, (inside, &[]), (after, &[]))?;
            l.emit.set_block(inside);
            active = None;
            Some(after)
        }
        _ => None,
    };
    let mut addresses = Addresses::new(l, plan, memory)?;
    for access in &plan.accesses {
        let mask = match in_pass(l, plan, access, pass)? {
            Some(None) => continue,
            Some(Some(mine)) => match active {
                Some(active) => Some(l.emit.and(active, mine)?),
                None => Some(mine),
            },
            None => active,
        };
        let mut elements = Vec::with_capacity(access.registers.len());
        for register in &access.registers {
            match values.get(*register as usize) {
                Some(value) => elements.push(*value),
                None => return unsupported(format!("the plan stores register {register}, which is missing")),
            }
        }
        let words = join_words(l, &elements, plan.storage_bits)?;
        let ptr = addresses.of(l, access)?;
        match plan.instruction {
            MemoryInstruction::Vector { .. } => l.target.store_shared(&mut l.emit, ptr, &words, mask)?,
            MemoryInstruction::Matrix { .. } | MemoryInstruction::MatrixBytes { .. } if mask.is_none() => {
                l.target.store_matrix(&mut l.emit, ptr, &words, plan.instruction)?;
            }
            _ => return unsupported("the plan stores with an instruction that the target lacks"),
        }
    }
    if let Some(after) = after {
        l.emit.br(after, &[], None)?;
        l.emit.set_block(after);
    }
    Ok(())
}

/// Loads in pass `pass` into `values`, by register of the layout; what other
/// passes load stays. [`spread`] fills the registers that are copies.
///
/// # Errors
/// When the plan is no load.
pub fn load<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &AccessPlan,
    memory: Memory<'_, 'c>,
    values: &mut [Option<Value<'c>>],
    pass: u64,
) -> Lowered<()> {
    if plan.direction != Direction::Load {
        return unsupported("a plan to store cannot load");
    }
    let mut addresses = Addresses::new(l, plan, memory)?;
    for access in &plan.accesses {
        let mine = match in_pass(l, plan, access, pass)? {
            Some(None) => continue,
            Some(mine) => mine,
            None => None,
        };
        let ptr = addresses.of(l, access)?;
        let words = match plan.instruction {
            MemoryInstruction::Vector { bits } => {
                let width = if plan.storage_bits == 64 { 64 } else { bits.min(32) };
                l.target.load_shared(&mut l.emit, ptr, (bits / width) as usize, width)?
            }
            MemoryInstruction::Matrix { .. }
            | MemoryInstruction::MatrixBytes { .. }
            | MemoryInstruction::TransposedRead { .. } => {
                l.target.load_matrix(&mut l.emit, ptr, plan.instruction)?
            }
        };
        let elements = split_words(l, &words, plan.storage_bits, access.registers.len())?;
        for (register, element) in access.registers.iter().zip(elements) {
            let Some(place) = values.get_mut(*register as usize) else {
                return unsupported(format!("the plan loads register {register}, which is missing"));
            };
            *place = Some(match (*place, mine) {
                (Some(before), Some(mine)) => l.emit.select(mine, element, before)?,
                _ => element,
            });
        }
    }
    Ok(())
}

/// The values of all registers, copies included, after all passes have loaded.
///
/// # Errors
/// When a register was never loaded.
pub fn spread<'c>(plan: &AccessPlan, values: &[Option<Value<'c>>]) -> Lowered<Vec<Value<'c>>> {
    let all: Option<Vec<Value<'c>>> =
        plan.copies.iter().map(|from| values.get(*from as usize).copied().flatten()).collect();
    match all {
        Some(all) => Ok(all),
        None => internal("the plan leaves registers without a value"),
    }
}
