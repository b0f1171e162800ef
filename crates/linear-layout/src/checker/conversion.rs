//! Execution of conversion plans.

use super::exchange::{self, shuffle};
use super::memory::{Memory, MemoryReport, counted, execute};
use super::{CheckError, count};
use crate::plan::{Conversion, ConversionPlan, Cost, Exchange, Scope, SharedPlan, Threads};
use crate::target::{Direction, TargetDesc};
use crate::{Dim, LinearLayout};

/// What the execution of a conversion counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// In the units of the plan's cost.
    pub cost: Cost,
    /// How far the threads are apart that exchange data through shared memory.
    pub scope: Option<Scope>,
    /// What the stores did.
    pub store: MemoryReport,
    /// What the loads did.
    pub load: MemoryReport,
}

impl Report {
    /// Wavefronts beyond one per phase, of stores and loads.
    pub fn conflicts(&self) -> u64 {
        self.store.conflicts() + self.load.conflicts()
    }
}

/// The threads and registers that a layout speaks of, and what they hold.
pub(super) struct Holders<'a> {
    pub(super) layout: &'a LinearLayout,
    /// Output dimensions in the order of the source layout.
    pub(super) order: Vec<Dim>,
}

impl Holders<'_> {
    /// The label of the element in a register: its coordinates packed in the order of the source.
    pub(super) fn element(&self, register: u64, t: Threads) -> Result<u64, CheckError> {
        let l = self.layout;
        let mut input = 0;
        let parts =
            [(Dim::REGISTER, register), (Dim::LANE, t.lane), (Dim::WARP, t.warp), (Dim::BLOCK, t.block)];
        for (dim, value) in parts {
            // Lanes and warps beyond what the layout speaks of repeat those within.
            let size = l.in_size(dim).unwrap_or(1);
            input |= (value % size) << l.in_shift(dim).unwrap_or(0).min(63);
        }
        self.label(input)
    }

    /// The label of what lies at an offset, in elements, of the shared memory of a block.
    pub(super) fn place(&self, offset: u64, block: u64) -> Result<u64, CheckError> {
        let l = self.layout;
        let mut input = 0;
        for (dim, value) in [(Dim::OFFSET, offset), (Dim::BLOCK, block)] {
            let size = l.in_size(dim).unwrap_or(1);
            if dim == Dim::OFFSET && value >= size {
                return Err(CheckError::OutOfBounds { offset, size });
            }
            input |= (value % size) << l.in_shift(dim).unwrap_or(0).min(63);
        }
        self.label(input)
    }

    fn label(&self, input: u64) -> Result<u64, CheckError> {
        let l = self.layout;
        let point = l.unpack_out(l.apply_packed(input));
        let (mut label, mut shift) = (0, 0);
        for &dim in &self.order {
            let value = point.iter().find(|p| p.0 == dim).map(|p| p.1);
            let missing = || CheckError::Malformed(format!("no dimension `{dim}`"));
            label |= value.ok_or_else(missing)? << shift;
            shift += l.out_bits(dim);
        }
        Ok(label)
    }

    pub(super) fn registers(&self) -> u64 {
        self.layout.in_size(Dim::REGISTER).unwrap_or(1)
    }
}

/// Every register of every thread.
pub(super) struct Registers {
    values: Vec<Option<u64>>,
    registers: u64,
    lanes: u64,
    warps: u64,
}

impl Registers {
    fn new(registers: u64, lanes: u64, warps: u64, blocks: u64) -> Registers {
        let values = vec![None; (registers * lanes * warps * blocks) as usize];
        Registers { values, registers, lanes, warps }
    }

    pub(super) fn at(&mut self, register: u64, t: Threads) -> Result<&mut Option<u64>, CheckError> {
        if register >= self.registers {
            return Err(CheckError::Malformed(format!("register {register} of {}", self.registers)));
        }
        let index = ((t.block * self.warps + t.warp) * self.lanes + t.lane) * self.registers + register;
        let missing = || CheckError::Malformed(format!("no {t:?}"));
        self.values.get_mut(index as usize).ok_or_else(missing)
    }
}

/// Executes `plan` on labelled elements in the layout `source` and compares with `destination`.
///
/// # Errors
/// The first thing found wrong: data, addresses, barriers that do not reach as far as data do, or further, and
/// numbers of a cost other than what the execution takes.
pub fn check_conversion(
    plan: &ConversionPlan,
    source: &LinearLayout,
    destination: &LinearLayout,
    target: &TargetDesc,
) -> Result<Report, CheckError> {
    let order: Vec<Dim> = source.out_dims().collect();
    let from = Holders { layout: source, order: order.clone() };
    let to = Holders { layout: destination, order: order.clone() };
    let size = |dim| source.in_size(dim).unwrap_or(1).max(destination.in_size(dim).unwrap_or(1));
    let (lanes, warps, blocks) = (u64::from(target.lanes), size(Dim::WARP), size(Dim::BLOCK));
    let mut input = Registers::new(from.registers(), lanes, warps, blocks);
    let mut output = Registers::new(to.registers(), lanes, warps, blocks);
    let threads: Vec<Threads> = (0..blocks)
        .flat_map(|block| (0..warps).map(move |warp| (block, warp)))
        .flat_map(|(block, warp)| (0..lanes).map(move |lane| Threads { lane, warp, block }))
        .collect();
    for &t in &threads {
        for r in 0..from.registers() {
            *input.at(r, t)? = Some(from.element(r, t)?);
        }
    }
    count::same("warps of a block", warps, 1u64.checked_shl(plan.warp_bits).unwrap_or(0))?;
    let (mut report, mut shared) = (Report::default(), None);
    match &plan.conversion {
        Conversion::NoOp => output = input,
        Conversion::RegisterPermute { sources } => {
            for &t in &threads {
                for (r, &s) in sources.iter().enumerate() {
                    *output.at(r as u64, t)? = *input.at(s.into(), t)?;
                }
            }
        }
        Conversion::WarpShuffle(p) => {
            stored_bits(plan.elem_bits, p.storage_bits)?;
            report.cost = shuffle(p, &threads, &mut input, &mut output, target)?;
            let latencies = p.rounds.iter().filter_map(|round| match round.exchange {
                Exchange::Local => None,
                Exchange::Xor { instruction, .. } | Exchange::Index { instruction, .. } => {
                    Some(exchange::latency(instruction, target))
                }
            });
            let latency = latencies.fold(0.0, f64::max);
            report.cost.cycles = latency + warps as f64 * report.cost.cycles;
        }
        Conversion::SharedMemory(p) | Conversion::Cluster(p) => {
            let cluster = matches!(plan.conversion, Conversion::Cluster(_));
            if cluster != p.load.block.is_some() || p.store.block.is_some() {
                return Err(CheckError::Malformed("a block uses the memory of another, or should".into()));
            }
            for access in [&p.store, &p.load] {
                stored_bits(plan.elem_bits, access.storage_bits)?;
            }
            let mut run = Shared::new(p, order, &threads, (warps, blocks), target)?;
            run.execute(&mut input, &mut output)?;
            run.copy(&mut output)?;
            shared = Some(run);
        }
    }
    for &t in &threads {
        for r in 0..to.registers() {
            let (got, expected) = (*output.at(r, t)?, to.element(r, t)?);
            if got != Some(expected) {
                return Err(CheckError::WrongElement { register: r, thread: t, got, expected });
            }
        }
    }
    if let Some(run) = shared {
        report = run.measure()?;
    }
    count::agree(&report.cost, &plan.cost)?;
    Ok(report)
}

/// # Errors
/// Places narrower than the elements.
fn stored_bits(elem_bits: u32, storage_bits: u32) -> Result<(), CheckError> {
    if elem_bits <= storage_bits {
        return Ok(());
    }
    Err(CheckError::Malformed(format!("elements of {elem_bits} bits in places of {storage_bits}")))
}

/// A conversion through shared memory that is being executed.
struct Shared<'a> {
    plan: &'a SharedPlan,
    /// Dimensions in the order that labels have.
    order: Vec<Dim>,
    threads: &'a [Threads],
    warps: u64,
    blocks: u64,
    target: &'a TargetDesc,
    memory: Memory,
    /// Elements of one block's memory.
    elems: u64,
    report: Report,
}

impl<'a> Shared<'a> {
    fn new(
        plan: &'a SharedPlan,
        order: Vec<Dim>,
        threads: &'a [Threads],
        (warps, blocks): (u64, u64),
        target: &'a TargetDesc,
    ) -> Result<Shared<'a>, CheckError> {
        let (store, load) = (&plan.store, &plan.load);
        if (store.direction, load.direction) != (Direction::Store, Direction::Load)
            || store.storage_bits != load.storage_bits
        {
            return Err(CheckError::Malformed("what is stored is not what is loaded".into()));
        }
        let elems = (plan.shared_bytes * 8).checked_div(store.storage_bits.into()).unwrap_or(0);
        let memory = Memory::new(blocks as usize, elems as usize);
        let report = Report::default();
        Ok(Shared { plan, order, threads, warps, blocks, target, memory, elems, report })
    }

    fn execute(&mut self, input: &mut Registers, output: &mut Registers) -> Result<(), CheckError> {
        let (plan, target, memory) = (self.plan, self.target, &mut self.memory);
        let (store, load) = (&plan.store, &plan.load);
        let (warps, blocks, report) = (self.warps, self.blocks, &mut self.report);
        for tile in 0..plan.tiles {
            memory.clear();
            let mut read = |t: Threads, r: u32, _| input.at(r.into(), t).ok().and_then(|v| *v);
            execute(store, tile, warps, blocks, target, memory, &[], &mut read, &mut report.store)?;
            let places = Holders { layout: &plan.layout, order: self.order.clone() };
            as_laid_out(memory, &places, tile, self.elems, blocks)?;
            let mut write = |t: Threads, r: u32, value: Option<Option<u64>>| {
                if let (Ok(register), Some(value)) = (output.at(r.into(), t), value) {
                    *register = value;
                }
                None
            };
            execute(load, tile, warps, blocks, target, memory, &[], &mut write, &mut report.load)?;
        }
        Ok(())
    }

    /// What barriers must reach, and the cost.
    fn measure(self) -> Result<Report, CheckError> {
        let Shared { plan, threads, target, memory, mut report, .. } = self;
        let bits = u64::from(plan.store.storage_bits);
        count::same("bytes of shared memory", (memory.used_elems() * bits).div_ceil(8), plan.shared_bytes)?;
        let needed = memory.scope();
        match plan.scope {
            planned if planned < needed => return Err(CheckError::NarrowBarrier { planned, needed }),
            planned if planned > needed => return Err(CheckError::WideBarrier { planned, needed }),
            _ => report.scope = Some(needed),
        }
        let sides = [
            counted(&plan.store, &report.store, threads, target)?,
            counted(&plan.load, &report.load, threads, target)?,
        ];
        sides.iter().for_each(|side| count::add(&mut report.cost, side));
        // Store, barrier, load, and a barrier before the same memory is stored to again; blocks of a cluster
        // wait at the end too, because none may go on while others read its memory.
        let waits = 2 * plan.tiles - u64::from(needed != Scope::Cluster);
        report.cost.barriers = waits;
        report.cost.cycles = plan.tiles as f64 * 1.5 * target.cost.shared_latency
            + waits as f64 * count::barrier(needed, target)
            + self.warps as f64 * report.cost.cycles;
        Ok(report)
    }

    /// Fills the registers that are copies of others.
    fn copy(&self, output: &mut Registers) -> Result<(), CheckError> {
        for &t in self.threads {
            for (r, &from) in self.plan.load.copies.iter().enumerate() {
                *output.at(r as u64, t)? = *output.at(from.into(), t)?;
            }
        }
        Ok(())
    }
}

/// Whether what was stored in a pass lies where the memory layout says.
fn as_laid_out(
    memory: &Memory,
    places: &Holders<'_>,
    tile: u64,
    elems: u64,
    blocks: u64,
) -> Result<(), CheckError> {
    for block in 0..blocks {
        for offset in 0..elems {
            let (got, at) = (memory.read(block, offset)?, tile * elems + offset);
            let expected = places.place(at, block)?;
            if got.is_some_and(|got| got != expected) {
                let reason =
                    format!("offset {at} of block {block} holds {got:?}, the layout says {expected}");
                return Err(CheckError::Malformed(reason));
            }
        }
    }
    Ok(())
}

/// Executes conversions of elements of these widths that are done together, and returns their cost: where several go
/// through shared memory in one pass and all wait for the same threads, they do so once.
pub(super) fn check_together(
    conversions: &[ConversionPlan],
    elem_bits: &[u32],
    from: &LinearLayout,
    to: &LinearLayout,
    target: &TargetDesc,
) -> Result<Cost, CheckError> {
    let mut cost = Cost::default();
    count::same("conversions", conversions.len() as u64, elem_bits.len() as u64)?;
    // Barriers of each that has any, and who waits there.
    let mut waits = Vec::new();
    for (conversion, &bits) in conversions.iter().zip(elem_bits) {
        count::same("bits of an element", conversion.elem_bits.into(), bits.into())?;
        let report = check_conversion(conversion, from, to, target)?;
        count::add(&mut cost, &report.cost);
        waits.extend(report.scope.map(|scope| (report.cost.barriers, scope)));
    }
    if let Some(&first) = waits.first()
        && first.0 == 1
        && first.1 != Scope::Cluster
        && waits.iter().all(|wait| *wait == first)
    {
        let fewer = waits.len() as u64 - 1;
        cost.barriers -= fewer;
        cost.cycles -= fewer as f64 * (1.5 * target.cost.shared_latency + count::barrier(first.1, target));
    }
    Ok(cost)
}
