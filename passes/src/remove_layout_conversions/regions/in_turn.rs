//! Layouts for regions that reduce one tensor along many of its dimensions in turn.
//!
//! A bitonic sort exchanges elements by reductions of pairs: the tensor is reshaped to two elements along each of its dimensions, and
//! reduced along one of them in each step. Elements next to each other meet in every stage, those half a tensor apart in the last one
//! alone. A reduction costs nothing where a thread holds what it reduces, shuffles where a warp does, and shared memory else: so
//! the dimensions that are reduced most often belong in registers, the next ones in lanes, and the others in warps. No neighbour of
//! such a region need have that layout.

use super::Regions;
use crate::ir_util::layout_of;
use crate::machine::Machine;
use crate::objective::weight;
use crate::rules::Rule;
use linear_layout::encoding::Linear;
use linear_layout::{Dim, Encoding, LinearLayout};
use mlir_host::hash::FastMap;
use mlir_host::ir::Attr;
use smallvec::SmallVec;
use ttopt_dialect::encoding::infer::reshape_layout;
use ttopt_dialect::ttg::layout::equivalent;

/// Reductions along so many different dimensions make a region one that reduces in turn.
const LEAST_DIMENSIONS: usize = 3;
/// Bits of an element's number at most: no tensor that a kernel can hold has more elements.
const MOST_BITS: usize = 32;

/// What a region does to its tensors of one size. Elements are numbered row by row, whatever the shape: so a reshape changes nothing.
#[derive(Default)]
struct Reduced {
    /// For each bit of an element's number, how often elements that differ in it are reduced.
    often: Vec<f64>,
    /// The first bits of dimensions that are reduced.
    dimensions: u64,
    /// A member that makes what is reduced.
    maker: Option<usize>,
}

impl<'c> Regions<'_, '_, 'c> {
    /// Of each region that reduces in turn a member, and the layout that it would have if the dimensions reduced most often were in
    /// registers.
    pub(super) fn reduced_in_turn(&mut self) -> Vec<(usize, Attr<'c>)> {
        let mut found: FastMap<(usize, usize), Reduced> = FastMap::default();
        for member in 0..self.members.len() {
            let Rule::Reduce(axis) = self.members[member].rule else { continue };
            let [(op, number, value)] = self.members[member].operands[..] else { continue };
            let (Some(maker), Some(ty)) = (self.of.get(&value).copied(), value.ty().as_tensor()) else {
                continue;
            };
            if self.wants.get(&(op, number)).copied() != layout_of(value) {
                continue;
            }
            let bits = bits_of(&ty.shape());
            if bits[axis] == 0 || bits.iter().sum::<usize>() > MOST_BITS {
                continue;
            }
            let first: usize = bits[axis + 1..].iter().sum();
            let reduced = found.entry((self.root(maker), bits.iter().sum())).or_default();
            reduced.often.resize(bits.iter().sum(), 0.0);
            reduced.often[first..first + bits[axis]].iter_mut().for_each(|often| *often += weight(op));
            reduced.dimensions |= 1 << first;
            reduced.maker.get_or_insert(maker);
        }
        let in_turn = found
            .into_values()
            .filter(|reduced| reduced.dimensions.count_ones() as usize >= LEAST_DIMENSIONS);
        let mut layouts: Vec<_> = in_turn.filter_map(|reduced| self.layout_of_reduced(&reduced)).collect();
        layouts.sort_unstable_by_key(|(member, _)| *member);
        layouts
    }

    fn layout_of_reduced(&self, reduced: &Reduced) -> Option<(usize, Attr<'c>)> {
        let maker = reduced.maker?;
        let layouts = self.planner.layouts();
        let ty = self.members[maker].values.first()?.ty().as_tensor()?;
        let layout = most_in_registers(
            &ty.shape(),
            &reduced.often,
            &layouts.machine.at(self.members[maker].op).ok()?,
        )?;
        let layout = layouts.attr(&Encoding::Linear(Linear { layout })).ok()?;
        (!equivalent(layout, self.members[maker].layout, &ty.shape())).then_some((maker, layout))
    }
}

/// The bits of an element's number along each dimension.
fn bits_of(shape: &[i64]) -> SmallVec<[usize; 8]> {
    shape.iter().map(|size| size.trailing_zeros() as usize).collect()
}

/// The layout of tensors of `shape` that has in registers as many as there must be of the bits of which `often` is highest, in lanes the
/// next ones, and in warps the others. `None` for clusters of CTAs, and where nothing can be chosen.
fn most_in_registers(shape: &[i64], often: &[f64], machine: &Machine) -> Option<LinearLayout> {
    let (lanes, warps) = (machine.threads_per_warp.trailing_zeros(), machine.num_warps.trailing_zeros());
    let held = often
        .len()
        .checked_sub((lanes + warps) as usize)
        .filter(|held| *held > 0 && machine.num_ctas == 1)?;
    let mut bits: Vec<usize> = (0..often.len()).collect();
    bits.sort_by(|a, b| often[*b].total_cmp(&often[*a]));
    let (registers, threads) = bits.split_at_mut(held);
    let (lanes, warps) = threads.split_at_mut(lanes as usize);
    let [registers, lanes, warps] =
        [(Dim::REGISTER, registers), (Dim::LANE, lanes), (Dim::WARP, warps)].map(|(dim, bits)| {
            bits.sort_unstable();
            (dim, bits.iter().map(|bit| vec![1 << *bit]).collect::<Vec<_>>())
        });
    let bases = [registers, lanes, warps, (Dim::BLOCK, Vec::new())];
    let elements = 1 << often.len();
    let layout = LinearLayout::from_bases_sized(&bases, &[(Dim::out(0), elements)], true).ok()?;
    reshape_layout(&layout, &[elements as i64], shape).ok()
}
