//! Execution of exchanges between the lanes of a warp.

use std::collections::HashMap;

use super::conversion::Registers;
use super::{CheckError, number};
use crate::plan::{Cost, Exchange, SelectStage, ShuffleInstruction, ShufflePlan, Threads};
use crate::target::{TargetDesc, Vendor};

/// Elements that travel together.
type Payload = Vec<Option<u64>>;

/// Whether `instruction` of the target reads, in every lane, the lane whose number differs by `mask`
/// (PTX ISA, "shfl.sync"; CDNA3 and RDNA3 ISA, "DPP", "DS_SWIZZLE_B32"; CDNA4 ISA, "V_PERMLANE16_SWAP").
pub(super) fn exchanges(instruction: ShuffleInstruction, mask: u64, target: &TargetDesc) -> bool {
    use ShuffleInstruction::*;
    let p = &target.primitives;
    let exists = 1 <= mask && mask < target.lanes.into();
    exists
        && match instruction {
            ShflBfly => target.vendor == Vendor::Nvidia,
            ShflIdx => false,
            QuadPerm => p.dpp && mask <= 3,
            RowMirror => p.dpp && (mask == 7 || mask == 15),
            // A quad permutation after it changes two bits more, or one.
            RowMirrorQuad => p.dpp && [mask ^ 7, mask ^ 15].iter().any(|quad| (1..4).contains(quad)),
            RowRotate => p.dpp && mask == 8,
            RowRotateQuad => p.dpp && (1..4).contains(&(mask ^ 8)),
            RowXmask => p.dpp_row_xmask && mask <= 15,
            Permlanex16 => p.permlanex16 && mask == 16,
            PermlaneSwap => p.permlane_swap && (mask == 16 || mask == 32),
            DsSwizzle => p.ds_swizzle && mask <= 31,
            DsBpermute => target.vendor == Vendor::Amd,
        }
}

/// Whether `instruction` of the target reads lanes by number.
fn reads_by_number(instruction: ShuffleInstruction, target: &TargetDesc) -> bool {
    match target.vendor {
        Vendor::Nvidia => instruction == ShuffleInstruction::ShflIdx,
        Vendor::Amd => instruction == ShuffleInstruction::DsBpermute,
    }
}

/// Cycles of one warp: what goes through the crossbar of the shared memory, and what does not.
pub(super) fn cycles(instruction: ShuffleInstruction, target: &TargetDesc) -> f64 {
    use ShuffleInstruction::*;
    match instruction {
        ShflBfly | ShflIdx | DsSwizzle | DsBpermute => target.cost.shuffle,
        QuadPerm | RowMirror | RowRotate | RowXmask | Permlanex16 | PermlaneSwap => target.cost.fixed_shuffle,
        // Two vector instructions.
        RowMirrorQuad | RowRotateQuad => target.cost.fixed_shuffle + target.cost.fixed_shuffle,
    }
}

/// Cycles until the result is there: vector instructions wait for one another, the crossbar takes longer.
pub(super) fn latency(instruction: ShuffleInstruction, target: &TargetDesc) -> f64 {
    use ShuffleInstruction::*;
    let (crossbar, vector) = (target.cost.shuffle_latency, target.cost.fixed_shuffle_latency);
    match instruction {
        ShflBfly | ShflIdx | DsSwizzle | DsBpermute => crossbar,
        QuadPerm | RowMirror | RowRotate | RowXmask | Permlanex16 | PermlaneSwap => vector,
        RowMirrorQuad | RowRotateQuad => vector + vector,
    }
}

/// Instructions of one thread that compute the lane that it reads, once for all rounds.
const LANE_NUMBER: u64 = 4;

/// What is counted while an exchange is executed.
struct Run<'a> {
    target: &'a TargetDesc,
    /// 32-bit words of a payload.
    words: u64,
    cost: Cost,
    shuffle_cycles: f64,
}

impl Run<'_> {
    /// The payloads of one thread; each element after the first of a word is put there by a permute.
    fn gather(plan: &ShufflePlan, t: Threads, input: &mut Registers) -> Result<Vec<Payload>, CheckError> {
        let one = |source: &Vec<u32>| source.iter().map(|&r| input.at(r.into(), t).map(|v| *v)).collect();
        plan.sources.iter().map(one).collect()
    }

    fn stages(values: Vec<Payload>, stages: &[SelectStage], t: Threads) -> Result<Vec<Payload>, CheckError> {
        stages.iter().try_fold(values, |values, stage| {
            let odd = [
                (stage.condition.lane, t.lane),
                (stage.condition.warp, t.warp),
                (stage.condition.block, t.block),
            ];
            if odd.iter().map(|(mask, number)| (mask & number).count_ones()).sum::<u32>() % 2 == 0 {
                return Ok(values);
            }
            let moved = (0..values.len()).map(|i| values.get(i ^ stage.xor as usize).cloned());
            let missing =
                || CheckError::Malformed(format!("a stage by {} of {} payloads", stage.xor, values.len()));
            moved.collect::<Option<Vec<Payload>>>().ok_or_else(missing)
        })
    }

    /// The lane that a thread reads, and what one word costs.
    fn source(&self, exchange: &Exchange, t: Threads) -> Result<(u64, f64), CheckError> {
        let cannot =
            |i: ShuffleInstruction, what: String| CheckError::Malformed(format!("{} {what}", i.name()));
        match exchange {
            Exchange::Local => Ok((t.lane, 0.0)),
            Exchange::Xor { mask, instruction: i } if exchanges(*i, *mask, self.target) => {
                Ok((t.lane ^ mask, cycles(*i, self.target)))
            }
            Exchange::Xor { mask, instruction } => {
                Err(cannot(*instruction, format!("does not read lane ^ {mask}")))
            }
            Exchange::Index { base, lanes, instruction: i } if reads_by_number(*i, self.target) => {
                Ok((base ^ number(lanes, t), cycles(*i, self.target)))
            }
            Exchange::Index { instruction, .. } => {
                Err(cannot(*instruction, "does not read lanes by number".into()))
            }
        }
    }

    /// Counts what one thread, or its warp, executes.
    fn count(&mut self, plan: &ShufflePlan) -> Result<(), CheckError> {
        let mut numbers = 0;
        for round in &plan.rounds {
            if round.exchange != Exchange::Local {
                self.cost.shuffles += self.words;
                numbers += u64::from(matches!(round.exchange, Exchange::Index { .. }));
                self.shuffle_cycles +=
                    self.words as f64 * self.source(&round.exchange, Threads::default())?.1;
            }
        }
        for (stages, values) in [(&plan.send, plan.sources.len()), (&plan.receive, plan.rounds.len())] {
            self.cost.selects += stages.iter().map(|_| self.words * values as u64).sum::<u64>();
        }
        // Elements that no instruction moves need not be put together.
        if self.cost.shuffles + self.cost.selects > 0 && plan.storage_bits < 32 {
            let joined = plan.sources.iter().map(|payload| payload.len() as u64 - 1);
            let taken_apart = plan.rounds.iter().map(|_| plan.sources[0].len() as u64 - 1);
            self.cost.permutes = joined.chain(taken_apart).sum();
        }
        self.cost.address_ops = numbers + if numbers > 0 { LANE_NUMBER } else { 0 };
        Ok(())
    }
}

/// Executes `plan` in every thread. The cost is that of one warp: cycles without latencies.
pub(super) fn shuffle(
    plan: &ShufflePlan,
    threads: &[Threads],
    input: &mut Registers,
    output: &mut Registers,
    target: &TargetDesc,
) -> Result<Cost, CheckError> {
    let elems = plan.sources.first().map_or(0, Vec::len);
    let bits = elems as u32 * plan.storage_bits;
    if elems == 0 || plan.sources.iter().any(|s| s.len() != elems) || bits > 64 {
        return Err(CheckError::Malformed("payloads of different, no or too many elements".into()));
    }
    if elems > 1 && bits > 32 {
        return Err(CheckError::Malformed("several elements in more than one word".into()));
    }
    let words = bits.div_ceil(32).into();
    let mut run = Run { target, words, cost: Cost::default(), shuffle_cycles: 0.0 };
    let mut sent = HashMap::new();
    for &t in threads {
        sent.insert(t, Run::stages(Run::gather(plan, t, input)?, &plan.send, t)?);
    }
    let lanes = target.lanes.into();
    for &t in threads {
        let mut received = Vec::new();
        for round in &plan.rounds {
            let (lane, _) = run.source(&round.exchange, t)?;
            let from =
                sent.get(&Threads { lane, ..t }).ok_or(CheckError::NoSuchLane { thread: t, lane, lanes })?;
            let missing = || CheckError::Malformed(format!("no payload {}", round.payload));
            received.push(from.get(round.payload as usize).ok_or_else(missing)?.clone());
        }
        let received = Run::stages(received, &plan.receive, t)?;
        for (r, &(payload, position)) in plan.targets.iter().enumerate() {
            let value = received.get(payload as usize).and_then(|p| p.get(position as usize));
            let missing = || CheckError::Malformed(format!("no element {position} of payload {payload}"));
            *output.at(r as u64, t)? = *value.ok_or_else(missing)?;
        }
    }
    run.count(plan)?;
    let alu = run.cost.selects + run.cost.permutes + run.cost.address_ops;
    run.cost.cycles = run.shuffle_cycles + alu as f64 * target.cost.alu;
    Ok(run.cost)
}
