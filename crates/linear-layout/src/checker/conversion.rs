//! Execution of conversion plans.

use super::CheckError;
use super::memory::{Memory, MemoryReport, execute};
use crate::plan::{AccessPlan, Conversion, ConversionPlan, SharedPlan, ShufflePlan, Threads};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// What the execution of a conversion counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Shuffle instructions of one warp.
    pub shuffles: u64,
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
struct Registers {
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

    fn at(&mut self, register: u64, t: Threads) -> Result<&mut Option<u64>, CheckError> {
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
/// The first thing found wrong: data, addresses, or a number of wavefronts other than planned.
pub fn check_conversion(
    plan: &ConversionPlan,
    source: &LinearLayout,
    destination: &LinearLayout,
    target: &TargetDesc,
) -> Result<Report, CheckError> {
    let order: Vec<Dim> = source.out_dims().collect();
    let from = Holders { layout: source, order: order.clone() };
    let to = Holders { layout: destination, order };
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
    let mut report = Report::default();
    match &plan.conversion {
        Conversion::NoOp => output = input,
        Conversion::RegisterPermute { sources } => {
            for &t in &threads {
                for (r, &s) in sources.iter().enumerate() {
                    *output.at(r as u64, t)? = *input.at(s.into(), t)?;
                }
            }
        }
        Conversion::WarpShuffle(p) => shuffle(p, &threads, &mut input, &mut output, &mut report)?,
        Conversion::SharedMemory(p) | Conversion::Cluster(p) => {
            if matches!(plan.conversion, Conversion::SharedMemory(_)) && p.load.block.is_some() {
                return Err(CheckError::Malformed("a block reads the memory of another".into()));
            }
            shared(p, warps, blocks, target, &mut input, &mut output, &mut report)?;
            copy(&p.load, &threads, &mut output)?;
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
    Ok(report)
}

fn shuffle(
    plan: &ShufflePlan,
    threads: &[Threads],
    input: &mut Registers,
    output: &mut Registers,
    report: &mut Report,
) -> Result<(), CheckError> {
    type Payload = Vec<Option<u64>>;
    let elems = plan.payload_elems();
    if plan.sources.iter().any(|s| s.len() != elems) || elems as u32 * plan.storage_bits > 64 {
        return Err(CheckError::Malformed("payloads of different or too many elements".into()));
    }
    if elems > 1 && elems as u32 * plan.storage_bits > 32 {
        return Err(CheckError::Malformed("several elements in more than one word".into()));
    }
    let staged = |values: Vec<Payload>, stages: &[crate::plan::SelectStage], t: Threads| {
        stages.iter().try_fold(values, |values, stage| {
            if !stage.applies(t) {
                return Ok(values);
            }
            let moved = |i: usize| values.get(i ^ stage.xor as usize).cloned();
            let moved: Option<Vec<Payload>> = (0..values.len()).map(moved).collect();
            moved
                .ok_or_else(|| CheckError::Malformed(format!("a stage by {} of {}", stage.xor, values.len())))
        })
    };
    let mut sent = std::collections::HashMap::new();
    for &t in threads {
        let mut payloads = Vec::new();
        for source in &plan.sources {
            let payload: Result<Payload, CheckError> =
                source.iter().map(|&r| input.at(r.into(), t).map(|v| *v)).collect();
            payloads.push(payload?);
        }
        sent.insert(t, staged(payloads, &plan.send, t)?);
    }
    let lanes = input.lanes;
    for &t in threads {
        let mut received = Vec::new();
        for round in &plan.rounds {
            let lane = round.exchange.source_lane(t);
            let from =
                sent.get(&Threads { lane, ..t }).ok_or(CheckError::NoSuchLane { thread: t, lane, lanes })?;
            let payload = from.get(round.payload as usize);
            let missing = || CheckError::Malformed(format!("no payload {}", round.payload));
            received.push(payload.ok_or_else(missing)?.clone());
        }
        let received = staged(received, &plan.receive, t)?;
        for (r, &(payload, position)) in plan.targets.iter().enumerate() {
            let value = received.get(payload as usize).and_then(|p| p.get(position as usize));
            let missing = || CheckError::Malformed(format!("no element {position} of payload {payload}"));
            *output.at(r as u64, t)? = *value.ok_or_else(missing)?;
        }
    }
    report.shuffles = plan.shuffles();
    Ok(())
}

fn shared(
    plan: &SharedPlan,
    warps: u64,
    blocks: u64,
    target: &TargetDesc,
    input: &mut Registers,
    output: &mut Registers,
    report: &mut Report,
) -> Result<(), CheckError> {
    let elems = plan.shared_bytes * 8 / u64::from(plan.store.storage_bits);
    let mut memory = Memory::new(blocks as usize, elems as usize);
    for tile in 0..plan.tiles {
        memory.clear();
        let mut read = |t: Threads, r: u32, _| input.at(r.into(), t).ok().and_then(|v| *v);
        execute(&plan.store, tile, warps, blocks, target, &mut memory, &[], &mut read, &mut report.store)?;
        let mut write = |t: Threads, r: u32, value: Option<Option<u64>>| {
            if let (Ok(register), Some(value)) = (output.at(r.into(), t), value) {
                *register = value;
            }
            None
        };
        execute(&plan.load, tile, warps, blocks, target, &mut memory, &[], &mut write, &mut report.load)?;
    }
    for (what, access, counted) in [("store", &plan.store, &report.store), ("load", &plan.load, &report.load)]
    {
        for (&(_, warp), &got) in &counted.wavefronts {
            if got != access.wavefronts {
                return Err(CheckError::Wavefronts { what, warp, got, expected: access.wavefronts });
            }
        }
        for (&(_, warp), &got) in &counted.phases {
            if got != access.minimum {
                let what = if what == "store" { "minimum of stores" } else { "minimum of loads" };
                return Err(CheckError::Wavefronts { what, warp, got, expected: access.minimum });
            }
        }
        if counted.instructions.values().any(|&n| n != access.count) {
            return Err(CheckError::Malformed(format!("{what}: not {} instructions", access.count)));
        }
    }
    Ok(())
}

/// Fills the registers that are copies of others.
fn copy(load: &AccessPlan, threads: &[Threads], output: &mut Registers) -> Result<(), CheckError> {
    for &t in threads {
        for (r, &from) in load.copies.iter().enumerate() {
            *output.at(r as u64, t)? = *output.at(from.into(), t)?;
        }
    }
    Ok(())
}
