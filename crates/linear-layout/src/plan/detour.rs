//! Conversions around work that cannot be done in the layout that operands come in.

use crate::f2::{self, Echelon, Vectors};
use crate::plan::PlanResult;
use crate::plan::convert::{ConversionPlan, Cost};
use crate::plan::space::Distributed;
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// Operands are converted to another layout first, and results back from it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Detour {
    /// The layout that the work is done in.
    pub layout: LinearLayout,
    /// To it, one conversion for each operand.
    pub before: Vec<ConversionPlan>,
    /// Back from it, one for each result that is wanted; empty where results have a layout of their own.
    pub after: Vec<ConversionPlan>,
}

impl Detour {
    /// To `layout`, and back for results of `back` bits each that are to be in the layout of the operands.
    pub(crate) fn new(
        operands: &LinearLayout,
        layout: LinearLayout,
        elem_bits: &[u32],
        back: &[u32],
        target: &TargetDesc,
    ) -> PlanResult<Detour> {
        let all =
            |from: &LinearLayout, to: &LinearLayout, elem_bits: &[u32]| -> PlanResult<Vec<ConversionPlan>> {
                elem_bits.iter().map(|&bits| ConversionPlan::new(from, to, bits, target)).collect()
            };
        let before = all(operands, &layout, elem_bits)?;
        let after = all(&layout, operands, back)?;
        Ok(Detour { layout, before, after })
    }

    /// What the conversions cost, added to the cost of the work.
    pub(crate) fn add_to(&self, cost: &mut Cost, target: &TargetDesc) {
        [&self.before, &self.after].iter().for_each(|c| cost.add(&ConversionPlan::cost_together(c, target)));
    }

    /// Shared memory that the conversions need in each block when those of one direction are done together,
    /// in bytes.
    pub fn shared_bytes(&self) -> u64 {
        ConversionPlan::scratch_bytes(&self.before).max(ConversionPlan::scratch_bytes(&self.after))
    }
}

/// Columns of a layout of which some are yet to be chosen.
pub(crate) struct Slots {
    /// Of registers, lanes and warps.
    own: [Vec<Option<u64>>; 3],
    pub block: Vectors,
}

impl Slots {
    /// The columns of `d` that `keep` wants, and those of `block`.
    pub fn new(d: &Distributed, block: Vectors, mut keep: impl FnMut(u64) -> bool) -> Slots {
        let own = [&d.reg, &d.lane, &d.warp];
        Slots { own: own.map(|columns| columns.iter().map(|&c| keep(c).then_some(c)).collect()), block }
    }

    /// Columns of registers, lanes and warps, those that are chosen, and those of `block`.
    pub fn of(own: [Vec<Option<u64>>; 3], block: Vectors) -> Slots {
        Slots { own, block }
    }

    fn kept(&self) -> Vectors {
        self.own.iter().flatten().flatten().copied().collect()
    }

    /// Gives each block bit that moves nothing, but did in `d`, a column that `may` move there, so that
    /// blocks go on sharing the work.
    pub fn share(&mut self, d: &Distributed, may: impl Fn(u64) -> bool) {
        for bit in (0..self.block.len()).filter(|&i| d.block.get(i).is_some_and(|&c| c != 0)) {
            if self.block[bit] != 0 {
                continue;
            }
            let all: Vectors = self.kept().iter().chain(&self.block).copied().collect();
            let rank = f2::rank(&all);
            let needed = |c: u64| {
                let mut others = all.clone();
                if let Some(at) = others.iter().position(|&o| o == c) {
                    others.remove(at);
                }
                f2::rank(&others) < rank
            };
            let slots = self.own.iter_mut().flat_map(|own| own.iter_mut().rev());
            let found = slots.into_iter().find(|slot| slot.is_some_and(|c| c != 0 && may(c) && needed(c)));
            self.block[bit] = found.and_then(Option::take).unwrap_or(0);
        }
    }

    /// Puts the vectors of `wanted` that registers, lanes and warps (and blocks, where `with_blocks`) do
    /// not reach into free places: columns not kept, then ones of zero, then new registers.
    pub fn fill(&mut self, wanted: &[u64], with_blocks: bool) {
        let mut reached = Echelon::of(&self.kept());
        if with_blocks {
            self.block.iter().for_each(|&c| {
                reached.insert(c);
            });
        }
        for &v in wanted {
            if !reached.insert(v) {
                continue;
            }
            let find = |free: Option<u64>| {
                move |(axis, own): (usize, &Vec<Option<u64>>)| {
                    own.iter().position(|slot| *slot == free).map(|at| (axis, at))
                }
            };
            let free = self.own.iter().enumerate().find_map(find(None));
            let free = free.or_else(|| self.own.iter().enumerate().find_map(find(Some(0))));
            match free {
                Some((resource, at)) => self.own[resource][at] = Some(v),
                None => self.own[0].push(Some(v)),
            }
        }
    }

    /// The layout, over `outs` as the vectors have them packed; what is still free holds copies.
    pub fn layout(&self, outs: &[(Dim, u32)]) -> PlanResult<LinearLayout> {
        let [reg, lane, warp] = &self.own;
        let ins = [
            (Dim::REGISTER, reg.len() as u32),
            (Dim::LANE, lane.len() as u32),
            (Dim::WARP, warp.len() as u32),
            (Dim::BLOCK, self.block.len() as u32),
        ];
        let own = self.own.iter().flatten().map(|c| c.unwrap_or(0));
        Ok(LinearLayout::from_columns(&ins, outs, own.chain(self.block.iter().copied()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block takes over a column that nothing else holds: not one of which there is a second.
    #[test]
    fn blocks_take_what_nobody_else_has() {
        let slots = |reg: &[u64]| {
            Slots::of(
                [reg.iter().map(|&c| Some(c)).collect(), vec![Some(4)], vec![]],
                [0].into_iter().collect(),
            )
        };
        let zeros = |n: usize| (0..n).map(|_| 0).collect::<Vectors>();
        let d = Distributed {
            reg: zeros(3),
            lane: zeros(1),
            warp: zeros(0),
            block: [8].into_iter().collect(),
            out_bits: 4,
        };
        for (reg, may, block, left) in [
            (&[2, 1, 1][..], 7, 2, [None, Some(1), Some(1)]),
            (&[2, 1, 3], 7, 4, [Some(2), Some(1), Some(3)]),
            (&[0, 1, 2], 3, 2, [Some(0), Some(1), None]),
            (&[0, 1, 2], 1, 1, [Some(0), None, Some(2)]),
            (&[0, 1, 1], 3, 0, [Some(0), Some(1), Some(1)]),
        ] {
            let mut slots = slots(reg);
            slots.share(&d, |c| c & may == c);
            assert_eq!((slots.block[0], &slots.own[0][..]), (block, &left[..]), "{reg:?}");
        }
    }
}
