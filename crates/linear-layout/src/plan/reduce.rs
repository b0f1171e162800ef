//! Reductions along one dimension.
//!
//! A reduction works on the bits of the axis where they lie: in registers by combining values of one
//! thread, in lanes by butterfly shuffles, in warps and blocks by bringing the partial results together
//! through shared memory. Bits whose column is zero, or depends on earlier ones, hold copies: they are
//! never combined (which would count elements twice), nor stored (paper, Section 5.1, "Broadcasting", and
//! Table 3).

use std::fmt;

use crate::f2::{self, Echelon, Vectors};
use crate::plan::convert::{ConversionPlan, Cost};
use crate::plan::display::{Count, write_cost};
use crate::plan::shuffle::ShuffleInstruction;
use crate::plan::{PlanError, PlanResult};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// A butterfly: every lane combines each of its values with that of the lane whose number differs by
/// `mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReduceShuffle {
    /// XORed with the lane number. One bit.
    pub mask: u64,
    /// What does it.
    pub instruction: ShuffleInstruction,
}

/// How values of one thread and then of lanes are combined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalReduction {
    /// For each value that is left, the registers it is combined from, in the order of their numbers.
    pub registers: Vec<Vec<u32>>,
    /// Then these exchanges, each on all values.
    pub shuffles: Vec<ReduceShuffle>,
}

impl LocalReduction {
    /// Combinations of two values in one thread.
    pub fn combinations(&self) -> u64 {
        let within: usize = self.registers.iter().map(|r| r.len().saturating_sub(1)).sum();
        (within + self.registers.len() * self.shuffles.len()) as u64
    }
}

/// How partial results of different warps come together.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceExchange {
    /// Who holds which partial result: `register` numbers the values of the first stage, and the axis has
    /// one place per warp and block that holds a part of it.
    pub partial: LinearLayout,
    /// Where they are brought.
    pub gathered: LinearLayout,
    /// How, one conversion for each operand.
    pub conversions: Vec<ConversionPlan>,
    /// How they are combined there.
    pub combine: LocalReduction,
}

/// How a tensor is reduced along one dimension.
///
/// ```
/// use linear_layout::{Dim, LinearLayout};
/// use linear_layout::plan::ReducePlan;
/// use linear_layout::target::TargetDesc;
/// // Rows of 128 elements, four in each of 32 lanes; four warps hold the same.
/// let layout = LinearLayout::from_bases(
///     &[
///         (Dim::REGISTER, vec![[1], [2]]),
///         (Dim::LANE, vec![[4], [8], [16], [32], [64]]),
///         (Dim::WARP, vec![[0], [0]]),
///     ],
///     &[Dim::out(0)],
/// )?;
/// let plan = ReducePlan::new(&layout, Dim::out(0), &[32], &TargetDesc::parse("cuda:90")?)?;
/// assert_eq!((plan.local.combinations(), plan.cost.shuffles), (3 + 5, 5));
/// assert!(plan.exchange.is_none(), "what the warps hold is the same");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReducePlan {
    /// The dimension that disappears.
    pub axis: Dim,
    /// Within each warp.
    pub local: LocalReduction,
    /// Between warps and blocks, where the axis reaches across them.
    pub exchange: Option<ReduceExchange>,
    /// For each register of the result, the value that it is.
    pub targets: Vec<u32>,
    /// The layout of the result: the operand's without the axis.
    pub result: LinearLayout,
    /// What it costs, all operands together; combinations not counted.
    pub cost: Cost,
    /// Name of the target.
    pub target: &'static str,
}

impl ReducePlan {
    /// The plan for operands of these widths that are all in `layout`.
    ///
    /// # Errors
    /// No such axis, more lanes than the target has, or a layout in which one bit of a register, lane or
    /// warp number moves along the axis and another dimension at once.
    pub fn new(
        layout: &LinearLayout,
        axis: Dim,
        elem_bits: &[u32],
        target: &TargetDesc,
    ) -> PlanResult<ReducePlan> {
        let split = Split::new(layout, axis)?;
        let result = split.result(layout)?;
        let local = LocalReduction { registers: split.groups(), shuffles: split.shuffles(target) };
        let targets = split.targets(&result);
        let mut plan = ReducePlan {
            axis,
            local,
            exchange: None,
            targets,
            result,
            cost: Cost::default(),
            target: target.name,
        };
        if split.across > 0 {
            let in_registers = split.exchange(layout, elem_bits, target, false)?;
            let in_lanes = split.exchange(layout, elem_bits, target, true)?;
            let cheaper = |x: &ReduceExchange| cost_of(&plan.local, Some(x), elem_bits, target).cycles;
            plan.exchange =
                Some(if cheaper(&in_lanes) < cheaper(&in_registers) { in_lanes } else { in_registers });
        }
        plan.cost = cost_of(&plan.local, plan.exchange.as_ref(), elem_bits, target);
        Ok(plan)
    }

    /// Shared-memory instructions in the code of one thread, which is what Table 3 of the paper counts.
    pub fn shared_instructions(&self) -> u64 {
        self.cost.stores + self.cost.loads
    }

    /// Shared memory needed in each block, in bytes.
    pub fn shared_bytes(&self) -> u64 {
        let conversions = self.exchange.iter().flat_map(|x| &x.conversions);
        conversions.map(|c| c.shared_bytes().next_multiple_of(16)).sum()
    }
}

impl fmt::Display for ReducePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = |f: &mut fmt::Formatter<'_>, r: &LocalReduction| {
            let width = r.registers.first().map_or(1, Vec::len);
            let (width, values) = (Count(width as u64, "register"), Count(r.registers.len() as u64, "value"));
            writeln!(f, "  combine {width} into each of {values}")?;
            r.shuffles
                .iter()
                .try_for_each(|s| writeln!(f, "  combine with lane ^ {} by {}", s.mask, s.instruction.name()))
        };
        writeln!(f, "reduce along {}:", self.axis)?;
        stage(f, &self.local)?;
        if let Some(exchange) = &self.exchange {
            for conversion in &exchange.conversions {
                write!(f, "  bring partial results together {conversion}")?;
            }
            stage(f, &exchange.combine)?;
        }
        write_cost(f, &self.cost, self.target)
    }
}

/// Shuffle instructions for a value of this width.
fn words(elem_bits: u32) -> u64 {
    elem_bits.div_ceil(32).into()
}

fn cost_of(
    local: &LocalReduction,
    exchange: Option<&ReduceExchange>,
    elem_bits: &[u32],
    target: &TargetDesc,
) -> Cost {
    let mut cost = Cost::default();
    let words: u64 = elem_bits.iter().map(|&b| words(b)).sum();
    let warps = exchange.map_or(1, |x| 1u64 << x.partial.in_bits(Dim::WARP)) as f64;
    let mut stage = |r: &LocalReduction| {
        let each: f64 = r.shuffles.iter().map(|s| s.instruction.cycles(target)).sum();
        let values = r.registers.len() as u64 * words;
        cost.shuffles += values * r.shuffles.len() as u64;
        cost.cycles += r.shuffles.len() as f64 * target.cost.shuffle_latency
            + warps * (values as f64 * each + (r.combinations() * words) as f64 * target.cost.alu);
    };
    stage(local);
    if let Some(exchange) = exchange {
        stage(&exchange.combine);
        for c in exchange.conversions.iter().map(|c| &c.cost) {
            cost.cycles += c.cycles;
            cost.shuffles += c.shuffles;
            cost.selects += c.selects;
            cost.permutes += c.permutes;
            cost.address_ops += c.address_ops;
            cost.stores += c.stores;
            cost.loads += c.loads;
            cost.barriers += c.barriers;
            cost.wavefronts += c.wavefronts;
            cost.minimum_wavefronts += c.minimum_wavefronts;
        }
    }
    cost
}

/// The bits of each resource, told apart by whether they move along the axis.
struct Split {
    axis: Dim,
    outs: Vec<(Dim, u32)>,
    /// Register bits that lead to different elements, along the axis and not.
    along: Vec<u32>,
    beside: Vec<u32>,
    /// Lane bits along the axis.
    lanes: Vec<u32>,
    /// Columns of the other dimensions, packed without the axis; zero for bits along the axis.
    others: Distinct,
    /// Part of the axis in warps and blocks, as bits of a shorter axis.
    warp_parts: Vectors,
    block_parts: Vectors,
    /// log2 of the partial results per element of the result.
    across: u32,
}

struct Distinct {
    reg: Vectors,
    lane: Vectors,
    warp: Vectors,
    block: Vectors,
}

impl Split {
    fn new(layout: &LinearLayout, axis: Dim) -> PlanResult<Split> {
        if !layout.has_out_dim(axis) {
            let have = layout.out_dims().map(|d| d.to_string()).collect::<Vec<_>>().join(", ");
            return Err(crate::Error::UnknownDim { side: "output", dim: axis, have }.into());
        }
        let mask = layout.out_mask(axis);
        for dim in layout.in_dims() {
            for (bit, &c) in layout.columns_of(dim).iter().enumerate() {
                if c & mask != 0 && c & !mask != 0 {
                    let reason =
                        format!("bit {bit} of `{dim}` moves along `{axis}` and another dimension at once");
                    return Err(PlanError::Unsupported(reason));
                }
            }
        }
        let rest: Vec<Dim> = layout.out_dims().filter(|&d| d != axis).collect();
        let ins: Vec<Dim> = layout.in_dims().collect();
        let slice = layout.sublayout(&ins, &rest)?;
        let columns = |l: &LinearLayout, dim| Vectors::from_slice(l.columns_of(dim));
        let others = Distinct {
            reg: columns(&slice, Dim::REGISTER),
            lane: columns(&slice, Dim::LANE),
            warp: columns(&slice, Dim::WARP),
            block: columns(&slice, Dim::BLOCK),
        };
        let along_axis = |dim| layout.columns_of(dim).iter().map(|c| c & mask).collect::<Vectors>();
        let mut span = Echelon::new();
        let mut fresh = |v: Vectors| -> Vec<u32> {
            (0..v.len() as u32).filter(|&i| span.insert(v[i as usize])).collect()
        };
        let along = fresh(along_axis(Dim::REGISTER));
        let lanes = fresh(along_axis(Dim::LANE));
        // Warps and blocks modulo what registers and lanes reach: each new direction is a new bit.
        let within: Vectors = along_axis(Dim::REGISTER).into_iter().chain(along_axis(Dim::LANE)).collect();
        let mut span = Echelon::of(&within);
        let mut parts: Vectors = Vectors::new();
        let mut across = 0;
        let mut units = Vectors::new();
        for c in along_axis(Dim::WARP).into_iter().chain(along_axis(Dim::BLOCK)) {
            let known = span.express(c);
            span.insert(c);
            let part = match known {
                Some(x) => f2::mul(&units, x.checked_shr(within.len() as u32).unwrap_or(0)),
                None => {
                    across += 1;
                    1 << (across - 1)
                }
            };
            units.push(part);
            parts.push(part);
        }
        let warps = layout.in_bits(Dim::WARP) as usize;
        let beside_span = &mut Echelon::new();
        let beside =
            (0..others.reg.len() as u32).filter(|&i| beside_span.insert(others.reg[i as usize])).collect();
        Ok(Split {
            axis,
            outs: slice.out_dim_bits().collect(),
            along,
            beside,
            lanes,
            others,
            warp_parts: parts[..warps].iter().copied().collect(),
            block_parts: parts[warps..].iter().copied().collect(),
            across,
        })
    }

    /// The layout without the axis.
    fn result(&self, layout: &LinearLayout) -> PlanResult<LinearLayout> {
        let ins: Vec<Dim> = layout.in_dims().collect();
        let rest: Vec<Dim> = layout.out_dims().filter(|&d| d != self.axis).collect();
        Ok(layout.sublayout(&ins, &rest)?)
    }

    fn groups(&self) -> Vec<Vec<u32>> {
        let at = |bits: &[u32], x: u64| {
            bits.iter().enumerate().fold(0u32, |r, (i, &b)| r | ((x >> i & 1) as u32) << b)
        };
        (0..1u64 << self.beside.len())
            .map(|v| {
                (0..1u64 << self.along.len()).map(|x| at(&self.beside, v) | at(&self.along, x)).collect()
            })
            .collect()
    }

    fn shuffles(&self, target: &TargetDesc) -> Vec<ReduceShuffle> {
        let step = |&bit: &u32| {
            let mask = 1 << bit;
            ReduceShuffle { mask, instruction: ShuffleInstruction::for_xor(mask, target) }
        };
        self.lanes.iter().map(step).collect()
    }

    /// The value of each register of the result.
    fn targets(&self, result: &LinearLayout) -> Vec<u32> {
        let columns: Vectors = self.beside.iter().map(|&b| self.others.reg[b as usize]).collect();
        let values = Echelon::of(&columns);
        let registers = result.columns_of(Dim::REGISTER);
        (0..1u64 << registers.len())
            .map(|r| values.express(f2::mul(registers, r)).unwrap_or(0) as u32)
            .collect()
    }

    /// Partial results brought to where they are combined: the axis in registers, or as far as there are
    /// lanes that hold copies of the result, in those.
    fn exchange(
        &self,
        layout: &LinearLayout,
        elem_bits: &[u32],
        target: &TargetDesc,
        to_lanes: bool,
    ) -> PlanResult<ReduceExchange> {
        let others: u32 = self.outs.iter().map(|d| d.1).sum();
        let mut outs = self.outs.clone();
        outs.push((self.axis, self.across));
        let values: Vectors = self.beside.iter().map(|&b| self.others.reg[b as usize]).collect();
        let with = |columns: &Vectors, parts: &Vectors| -> Vectors {
            columns.iter().zip(parts).map(|(c, p)| c | p << others).collect()
        };
        let (warp_bits, block_bits) = (layout.in_bits(Dim::WARP), layout.in_bits(Dim::BLOCK));
        let lane_bits = layout.in_bits(Dim::LANE);
        let build = |reg: &Vectors, lane: &Vectors, warp: &Vectors, block: &Vectors| {
            let ins = [
                (Dim::REGISTER, reg.len() as u32),
                (Dim::LANE, lane_bits),
                (Dim::WARP, warp_bits),
                (Dim::BLOCK, block_bits),
            ];
            let columns = reg.iter().chain(lane).chain(warp).chain(block).copied();
            LinearLayout::from_columns(&ins, &outs, columns.collect::<Vec<_>>())
        };
        let o = &self.others;
        let partial =
            build(&values, &o.lane, &with(&o.warp, &self.warp_parts), &with(&o.block, &self.block_parts))?;
        let mut lane = o.lane.clone();
        let mut shuffles = Vec::new();
        let mut parts: Vectors = (0..self.across).map(|i| 1u64 << (others + i)).collect();
        if to_lanes {
            for (bit, column) in lane.iter_mut().enumerate().filter(|(_, c)| **c == 0) {
                if parts.is_empty() {
                    break;
                }
                *column = parts.remove(0);
                let mask = 1 << bit;
                shuffles.push(ReduceShuffle { mask, instruction: ShuffleInstruction::for_xor(mask, target) });
            }
        }
        let in_registers = parts.len();
        let reg: Vectors = parts.iter().chain(&values).copied().collect();
        let gathered = build(&reg, &lane, &o.warp, &o.block)?;
        let group = |v: u32| (0..1u32 << in_registers).map(|x| v << in_registers | x).collect();
        let registers = (0..1u32 << values.len()).map(group).collect();
        let conversion = |&bits: &u32| ConversionPlan::new(&partial, &gathered, bits, target);
        let conversions = elem_bits.iter().map(conversion).collect::<PlanResult<Vec<_>>>()?;
        Ok(ReduceExchange { partial, gathered, conversions, combine: LocalReduction { registers, shuffles } })
    }
}
