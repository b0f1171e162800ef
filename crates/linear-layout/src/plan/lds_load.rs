//! Loads that write shared memory without passing through registers, the lanes of a warp one after the other: AMD's
//! loads to the LDS.
//!
//! Such a load takes one address of shared memory for the whole warp; lane `i` writes its elements `i` times their size
//! further (CDNA3 ISA, "Memory Buffer Load to LDS"). Let `L` be the map from registers, lanes and warps to offsets, and
//! `2ᵛ` the elements of a load. The offsets `2ᵛ … 2ᵛ · lanes` of each load must be reached by the lanes and by them
//! alone, which makes the lanes' part of `L` an invertible matrix `N⁻¹` over F2. Where it is the identity each lane copies
//! what it holds pointers to. Elsewhere (memory that is swizzled) the element that belongs where lane `i` writes has its
//! pointer in lane `N (i ⊕ s)`, where `s` is what warps and registers contribute to these offsets, and lanes exchange
//! pointers first.

use std::fmt;

use crate::f2::{self, Vectors, low_mask};
use crate::plan::access::{AccessPlan, OffsetMap, ThreadBases};
use crate::plan::shared::{Runs, check_size, offset_map, padded, storage};
use crate::plan::vector::AddressFacts;
use crate::plan::{PlanError, PlanResult, Unsupported};
use crate::target::{Direction, TargetDesc};
use crate::{Dim, LinearLayout};

/// How a tensor of pointers is copied to shared memory of a given layout by loads that write lanes in order.
///
/// ```
/// use linear_layout::Encoding;
/// use linear_layout::plan::{AddressFacts, LdsLoadPlan};
/// use linear_layout::target::TargetDesc;
/// let shape = [64, 64];
/// let rows: Encoding = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], \
///     warpsPerCTA = [4, 1], order = [1, 0]}>".parse()?;
/// let swizzled: Encoding =
///     "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>".parse()?;
/// let (rows, memory) = (rows.to_linear_layout(&shape)?, swizzled.to_linear_layout(&shape)?);
/// let facts = AddressFacts::row_major(&rows, 64, 64);
/// let target = TargetDesc::parse("hip:gfx950")?;
/// let plan = LdsLoadPlan::new(&rows, &memory, &[], 16, &facts, &target)?;
/// assert_eq!((plan.access.accesses.len(), plan.sources.is_some()), (2, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LdsLoadPlan {
    /// The loads, as stores to shared memory. Addresses are those of a warp: what lanes add is the hardware's.
    pub access: AccessPlan,
    /// Mnemonic of the instruction.
    pub mnemonic: String,
    /// `(interval, padding)` in elements, as in [`SharedAccessPlan`](crate::plan::SharedAccessPlan).
    pub padding: Vec<(u64, u64)>,
    /// Where lanes copy what other lanes hold pointers to.
    pub sources: Option<LaneSources>,
}

/// The lanes whose elements lanes copy: of thread `t` in load `i` it is `thread.of(t) ^ loads[i]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneSources {
    /// What lane and warp contribute.
    pub thread: ThreadBases,
    /// What each load contributes.
    pub loads: Vec<u64>,
}

impl LdsLoadPlan {
    /// The widest loads that copy elements of `elem_bits` bits at pointers in the layout `distributed` to memory in the
    /// layout `memory`, in which `padding` unused elements follow after every `interval`. `facts` are what is known of
    /// the addresses.
    ///
    /// # Errors
    /// As [`SharedAccessPlan::new`](crate::plan::SharedAccessPlan::new), and [`PlanError::Unsupported`] where the target
    /// has no such loads, or none writes what lanes hold where it belongs.
    pub fn new(
        distributed: &LinearLayout,
        memory: &LinearLayout,
        padding: &[(u64, u64)],
        elem_bits: u32,
        facts: &AddressFacts,
        target: &TargetDesc,
    ) -> PlanResult<LdsLoadPlan> {
        if !target.primitives.lds_loads {
            let what = format!("{} has no loads to shared memory past the registers", target.name);
            return refused(Unsupported::Memory, &what);
        }
        let storage_bits = storage(elem_bits)?;
        let map = offset_map(distributed, memory, Direction::Store, target)?;
        if let Some(&(interval, _)) = padding.iter().find(|p| !p.0.is_power_of_two()) {
            let what = "a padding interval".to_owned();
            return Err(crate::Error::NotPowerOfTwo { what, value: interval }.into());
        }
        check_size(map.offset_bits, storage_bits, padding)?;
        if memory.in_bits(Dim::PARTITION) > 0 || map.remote {
            return refused(Unsupported::Memory, "loads write one piece of memory of their own CTA");
        }
        let size = 1u64.checked_shl(map.offset_bits).unwrap_or(u64::MAX);
        let padding: Vec<(u64, u64)> = padding.iter().copied().filter(|p| p.0 < size).collect();
        let runs = Runs::new(&map, distributed, (storage_bits, 0), facts, target)?;
        let has = target.primitives;
        let widths = [(128, has.lds_loads_b128), (32, has.lds_loads)];
        let mut why = None;
        for bits in widths.into_iter().filter(|w| w.1).map(|w| w.0).filter(|bits| runs.fit(*bits, &map)) {
            match Self::of_width(&map, &padding, bits, storage_bits, target) {
                Ok(plan) => return Ok(plan),
                Err(err) => why = why.or(Some(err)),
            }
        }
        Err(why.unwrap_or_else(|| runs.too_few()))
    }

    /// The layout of pointers that loads of `bits` bits a lane copy to `memory` without any exchange between lanes, by
    /// `warps` warps of one CTA: a lane's elements lie one after the other in memory, then those of a warp's lanes, of its warps,
    /// and of further loads. `None` where memory is too small for all warps to copy something.
    pub fn pointers(
        memory: &LinearLayout,
        elem_bits: u32,
        bits: u32,
        warps: u64,
        target: &TargetDesc,
    ) -> Option<LinearLayout> {
        let is_of_many = |dim: Dim| dim != Dim::OFFSET && memory.in_bits(dim) > 0;
        if memory.in_dims().any(is_of_many) || !warps.is_power_of_two() || elem_bits > bits {
            return None;
        }
        let order: Vec<Dim> = (0..memory.num_out_dims()).map(Dim::out).collect();
        let memory = memory.transpose_outs(&order).ok()?;
        let unit = (bits / elem_bits).ilog2() as usize;
        let mut rest = memory.columns_of(Dim::OFFSET);
        let mut take = |count: usize| {
            let (first, others) = rest.split_at_checked(count)?;
            rest = others;
            Some(first.to_vec())
        };
        let mut registers = take(unit)?;
        let lane = take(target.lanes.ilog2() as usize)?;
        let warp = take(warps.ilog2() as usize)?;
        registers.extend_from_slice(rest);
        let ins = [(Dim::REGISTER, &registers), (Dim::LANE, &lane), (Dim::WARP, &warp)];
        let columns = ins.iter().flat_map(|(_, columns)| columns.iter().copied()).collect();
        let ins = ins.iter().map(|(dim, columns)| (*dim, columns.len() as u32)).chain([(Dim::BLOCK, 0)]);
        let outs = order.iter().map(|dim| (*dim, memory.out_bits(*dim)));
        LinearLayout::from_parts(ins, outs, columns).ok()?.require_surjective().ok()
    }

    /// By loads of `bits` bits a lane.
    fn of_width(
        map: &OffsetMap,
        padding: &[(u64, u64)],
        bits: u32,
        storage_bits: u32,
        target: &TargetDesc,
    ) -> PlanResult<LdsLoadPlan> {
        let unit = (bits / storage_bits).max(1).ilog2();
        let lanes = Lanes::of(map, unit)?;
        let reach = 1u64 << (unit + lanes.bits);
        // Addresses in the LDS are multiples of a word, however much a lane copies.
        let word = u64::from(32 / storage_bits.min(32));
        if let Some((interval, pad)) =
            padding.iter().find(|(interval, pad)| *interval < reach || !pad.is_multiple_of(word))
        {
            let what = format!(
                "a load writes {reach} elements one after the other, and memory has {pad} unused ones after every \
                 {interval}"
            );
            return refused(Unsupported::Memory, &what);
        }
        // The same with each lane where it writes.
        let high = !lanes.mask;
        let mut ordered = map.clone();
        ordered.run_bits = unit;
        for (i, column) in ordered.columns.lane.iter_mut().enumerate() {
            *column = if (i as u32) < lanes.bits { 1 << (unit + i as u32) } else { 0 };
        }
        ordered.columns.reg.iter_mut().for_each(|column| *column &= high);
        ordered.columns.warp.iter_mut().for_each(|column| *column &= high);
        let choice = ordered.vector(storage_bits, Direction::Store, target);
        let choice = choice.ok_or(PlanError::PartialByte { elems: 1, bits: storage_bits })?;
        let mut access = ordered.realize(&choice, storage_bits, Direction::Store);
        access.address.lane.fill(0);
        access.copies = map.columns.representatives();
        let warps = access.address.union();
        let mut met: Vec<u64> =
            access.accesses.iter().map(|a| a.offset & warps).filter(|o| *o != 0).collect();
        met.sort_unstable();
        met.dedup();
        access.address_ops = met.len() as u64;
        let sources = lanes.sources(map, &access);
        let mnemonic = format!("global_load_lds_dword{}", if bits == 128 { "x4" } else { "" });
        Ok(LdsLoadPlan { access, mnemonic, padding: padding.to_vec(), sources })
    }

    /// Where an offset lies when padding is counted, in elements.
    pub fn padded(&self, offset: u64) -> u64 {
        padded(&self.padding, offset)
    }
}

fn refused<T>(why: Unsupported, what: &str) -> PlanResult<T> {
    Err(PlanError::unsupported(why, what))
}

/// The lanes of a warp and the offsets that they reach in one load.
struct Lanes {
    unit: u32,
    /// log2 of the lanes that copy something.
    bits: u32,
    /// The bits of offsets that lanes make.
    mask: u64,
    /// From the place of a lane in a load to the lane with its element.
    inverse: Vectors,
}

impl Lanes {
    /// # Errors
    /// Where lanes do not reach all offsets of a load, or others.
    fn of(map: &OffsetMap, unit: u32) -> PlanResult<Lanes> {
        let lane = &map.columns.lane;
        let bits = lane.len() as u32 - map.inactive.lane.count_ones();
        if map.inactive.lane & low_mask(bits) != 0 {
            return refused(
                Unsupported::Distribution,
                "lanes that copy nothing are not the last of their warp",
            );
        }
        let mask = low_mask(bits) << unit;
        let own: Vectors = lane.iter().take(bits as usize).map(|column| column >> unit).collect();
        let within = lane.iter().all(|column| column & !mask == 0);
        match f2::inverse(&own).filter(|_| within) {
            Some(inverse) => Ok(Lanes { unit, bits, mask, inverse }),
            None => refused(
                Unsupported::Distribution,
                &format!(
                    "{} lanes do not hold {} elements each of one piece of memory",
                    1 << bits,
                    1 << unit
                ),
            ),
        }
    }

    fn sources(&self, map: &OffsetMap, access: &AccessPlan) -> Option<LaneSources> {
        let source = |offset: u64| f2::mul(&self.inverse, (offset & self.mask) >> self.unit);
        let lane = (0..map.columns.lane.len() as u32)
            .map(|i| if i < self.bits { f2::mul(&self.inverse, 1 << i) } else { 1 << i })
            .collect();
        let warp = map.columns.warp.iter().map(|column| source(*column)).collect();
        let block = map.columns.block.iter().map(|column| source(*column)).collect();
        let thread = ThreadBases { lane, warp, block };
        let of_load = |registers: &[u32]| source(f2::mul(&map.columns.reg, registers[0].into()));
        let loads: Vec<u64> = access.accesses.iter().map(|load| of_load(&load.registers)).collect();
        let in_place = thread.lane.iter().enumerate().all(|(i, column)| *column == 1 << i)
            && thread.warp.iter().chain(&thread.block).chain(&loads).all(|lane| *lane == 0);
        (!in_place).then_some(LaneSources { thread, loads })
    }
}

impl fmt::Display for LdsLoadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exchanged = if self.sources.is_some() { ", lanes exchange their pointers before" } else { "" };
        writeln!(f, "{} × {} per warp{exchanged}", self.access.count, self.mnemonic)
    }
}
