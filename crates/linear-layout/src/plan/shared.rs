//! Accesses to a tensor that lies in shared memory in a given layout: `local_load`, `local_store` and
//! copies from global memory that do not pass through registers.

use std::fmt;

use crate::f2::{Echelon, Vectors, low_mask};
use crate::plan::access::{AccessPlan, FragmentWords, MemoryAccess, OffsetMap};
use crate::plan::display::Count;
use crate::plan::space::Distributed;
use crate::plan::vector::{AddressFacts, contiguous_bits};
use crate::plan::{PlanError, PlanResult, ThreadMasks, Threads, Unsupported, fewest};
use crate::target::{Direction, TargetDesc};
use crate::{Dim, LinearLayout};

/// How a tensor in a distributed layout is read from, or written to, shared memory of a given layout.
///
/// ```
/// use linear_layout::{Dim, Encoding, LinearLayout};
/// use linear_layout::plan::SharedAccessPlan;
/// use linear_layout::target::{Direction, TargetDesc};
/// let shape = [64, 64];
/// let memory: Encoding =
///     "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>".parse()?;
/// let mma: Encoding = "#ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, \
///     versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>, kWidth = 2}>".parse()?;
/// let (memory, mma) = (memory.to_linear_layout(&shape)?, mma.to_linear_layout(&shape)?);
/// let target = TargetDesc::parse("cuda:80")?;
/// let plan = SharedAccessPlan::new(&mma, &memory, 16, Direction::Load, &target)?;
/// assert_eq!(plan.mnemonic, "ldmatrix.x4");
/// assert_eq!(plan.access.wavefronts, plan.access.minimum);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedAccessPlan {
    /// The accesses.
    pub access: AccessPlan,
    /// Mnemonic of the instruction.
    pub mnemonic: String,
    /// `(interval, padding)` in elements: an offset `o` lies at `o + Σ padding · ⌊o / interval⌋`.
    pub padding: Vec<(u64, u64)>,
    /// The highest bits of every offset that are the number of a partition: memory in partitions is planned,
    /// and bank conflicts counted, as if they lay one after the other.
    pub partition_bits: u32,
    /// Whether a copy from global memory leaves what it reads in the L1: what has fewer than 16 bytes always does (PTX ISA,
    /// "cp.async"), and pieces of 16 bytes that lie apart from each other in a table of up to 32 KiB: threads look entries
    /// up again and again. Tiles of rows are read once, and would only drive out what others left there.
    pub through_l1: bool,
}

/// Bytes of a table whose entries stay in the L1, an eighth of what it and shared memory have together (CUDA programming guide, "Technical
/// Specifications per Compute Capability").
const TABLE_BYTES: u64 = 32 << 10;

impl SharedAccessPlan {
    /// The cheapest way to move a tensor between registers in the layout `distributed` and shared memory
    /// in the layout `memory`, from `offset` in elements (and `partition` and `block`).
    ///
    /// # Errors
    /// Layouts of different shapes, elements that memory does not hold, more lanes than the target has, or
    /// elements narrower than a byte that no access fills bytes with.
    pub fn new(
        distributed: &LinearLayout,
        memory: &LinearLayout,
        elem_bits: u32,
        direction: Direction,
        target: &TargetDesc,
    ) -> PlanResult<SharedAccessPlan> {
        Self::with_padding(distributed, memory, &[], elem_bits, direction, target)
    }

    /// As [`new`](Self::new), for memory with padding: after every `interval` elements, `padding` unused
    /// ones. Accesses never straddle padding. Padding at intervals beyond the end of a partition is none.
    ///
    /// # Errors
    /// As [`new`](Self::new), intervals that are not powers of two, and [`PlanError::TooLarge`].
    pub fn with_padding(
        distributed: &LinearLayout,
        memory: &LinearLayout,
        padding: &[(u64, u64)],
        elem_bits: u32,
        direction: Direction,
        target: &TargetDesc,
    ) -> PlanResult<SharedAccessPlan> {
        Self::for_fragments(distributed, memory, padding, (elem_bits, FragmentWords::ONE), direction, target)
    }

    /// As [`with_padding`](Self::with_padding), for elements of `elements.0` bits in registers of which instructions take
    /// the words of the fragment `elements.1` together: one access gives them all where it can.
    ///
    /// # Errors
    /// As [`with_padding`](Self::with_padding).
    pub fn for_fragments(
        distributed: &LinearLayout,
        memory: &LinearLayout,
        padding: &[(u64, u64)],
        elements: (u32, FragmentWords),
        direction: Direction,
        target: &TargetDesc,
    ) -> PlanResult<SharedAccessPlan> {
        let (elem_bits, fragment) = elements;
        let storage_bits = storage(elem_bits)?;
        let partition_bits = memory.in_bits(Dim::PARTITION);
        let mut map = offset_map(distributed, memory, direction, target)?;
        map.fragment = fragment;
        let (padding, run) = padding_within(padding, map.offset_bits - partition_bits)?;
        check_size(map.offset_bits, storage_bits, &padding)?;
        map.run_bits = run;
        let bits = storage_bits;
        let access = if padding.is_empty() {
            map.choose(storage_bits, direction, target)
                .map(|choice| map.realize(&choice, storage_bits, direction))
        } else {
            // Padding decides which banks rows are in, so which instruction takes the fewest cycles.
            let choices = map.choices(storage_bits, direction, target).map(|choice| {
                let mut access = map.realize(&choice, storage_bits, direction);
                access.wavefronts = padded_wavefronts(&access, &padding, target);
                (choice.cycles_with(access.wavefronts, target), access)
            });
            fewest(choices, |(cycles, _)| *cycles).map(|(_, access)| access)
        };
        let access = access.ok_or(PlanError::PartialByte { elems: 1, bits })?;
        let mnemonic = access.instruction.name(direction, target);
        Ok(SharedAccessPlan { access, mnemonic, padding, partition_bits, through_l1: false })
    }

    /// Copies from global memory straight into shared memory at addresses that each lane chooses (`cp.async`,
    /// `global_load_async_to_lds`): `facts`
    /// are what is known of the global addresses. Each access is consecutive in both memories, its
    /// registers being those that the elements would pass through. Loads that write a wave's lanes one after the other
    /// are planned by [`LdsLoadPlan`](crate::plan::LdsLoadPlan).
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`PlanError::Unsupported`] when no access is as wide as the narrowest
    /// copy of the target, 4 bytes (gfx1250 has one of a byte, too, and none of two), or the target has none.
    pub fn async_copy(
        distributed: &LinearLayout,
        memory: &LinearLayout,
        elem_bits: u32,
        facts: &AddressFacts,
        target: &TargetDesc,
    ) -> PlanResult<SharedAccessPlan> {
        Self::async_copy_padded(distributed, memory, &[], elem_bits, facts, target)
    }

    /// As [`async_copy`](Self::async_copy), to memory with padding, as in [`with_padding`](Self::with_padding).
    ///
    /// # Errors
    /// The same, and as [`with_padding`](Self::with_padding).
    pub fn async_copy_padded(
        distributed: &LinearLayout,
        memory: &LinearLayout,
        padding: &[(u64, u64)],
        elem_bits: u32,
        facts: &AddressFacts,
        target: &TargetDesc,
    ) -> PlanResult<SharedAccessPlan> {
        let storage_bits = storage(elem_bits)?;
        let mut map = offset_map(distributed, memory, Direction::Store, target)?;
        let partition_bits = memory.in_bits(Dim::PARTITION);
        let (padding, run) = padding_within(padding, map.offset_bits - partition_bits)?;
        check_size(map.offset_bits, storage_bits, &padding)?;
        let runs = Runs::new(&map, distributed, (storage_bits, partition_bits), facts, target)?;
        let widths: &[u32] = match (target.primitives.cp_async, target.primitives.async_to_lds) {
            (true, _) => &[128, 64, 32],
            (false, true) => &[128, 64, 32, 8],
            (false, false) => &[],
        };
        let fits = |bits: &u32| runs.fit(*bits, &map) && (*bits / storage_bits).max(1).ilog2() <= run;
        let bits = widths.iter().copied().find(fits).ok_or_else(|| runs.too_few())?;
        map.run_bits = (bits / storage_bits).ilog2();
        let choice = map.vector(storage_bits, Direction::Store, target);
        let choice = choice.ok_or(PlanError::PartialByte { elems: 1, bits: storage_bits })?;
        let mut access = map.realize(&choice, storage_bits, Direction::Store);
        if !padding.is_empty() {
            access.wavefronts = padded_wavefronts(&access, &padding, target);
        }
        let alone = facts.neighbours * u64::from(storage_bits) <= u64::from(bits);
        let looks_up = alone && facts.within <= TABLE_BYTES;
        let through_l1 = target.primitives.cp_async && (bits < 128 || looks_up);
        let mnemonic = if target.primitives.cp_async {
            format!("cp.async.{}.shared.global {}", if through_l1 { "ca" } else { "cg" }, bits / 8)
        } else {
            format!("global_load_async_to_lds_b{bits}")
        };
        Ok(SharedAccessPlan { access, mnemonic, padding, partition_bits, through_l1 })
    }

    /// Where an offset lies when padding is counted, in elements.
    pub fn padded(&self, offset: u64) -> u64 {
        padded(&self.padding, offset)
    }

    /// Cycles of one warp, latencies left out.
    pub fn cycles(&self, target: &TargetDesc) -> f64 {
        self.access.cycles(target)
    }
}

impl fmt::Display for SharedAccessPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let a = &self.access;
        let (n, name) = (a.count, &self.mnemonic);
        let wavefronts = Count(a.wavefronts, "wavefront");
        writeln!(f, "{n} × {name} per warp, {wavefronts} (minimum {})", a.minimum)
    }
}

/// The padding at intervals within a partition of `2^bits` elements, and log2 of the elements that no access may straddle.
fn padding_within(padding: &[(u64, u64)], bits: u32) -> PlanResult<(Vec<(u64, u64)>, u32)> {
    if let Some(&(interval, _)) = padding.iter().find(|p| !p.0.is_power_of_two()) {
        let what = "a padding interval".to_owned();
        return Err(crate::Error::NotPowerOfTwo { what, value: interval }.into());
    }
    let size = 1u64.checked_shl(bits).unwrap_or(u64::MAX);
    let padding: Vec<(u64, u64)> = padding.iter().copied().filter(|p| p.0 <= size).collect();
    // The start of an access stays aligned when both interval and padding are multiples of it.
    let run = padding.iter().map(|p| (p.0 | p.1).trailing_zeros()).min();
    Ok((padding, run.unwrap_or(bits).min(bits)))
}

/// Bits that an element takes in memory.
pub(super) fn storage(elem_bits: u32) -> PlanResult<u32> {
    match elem_bits {
        1..=64 => Ok(elem_bits.next_power_of_two().max(4)),
        bits => Err(PlanError::ElementWidth { bits }),
    }
}

/// Whether the bit after the last element, padding counted, still has a 64-bit number.
pub(super) fn check_size(offset_bits: u32, storage_bits: u32, padding: &[(u64, u64)]) -> PlanResult<()> {
    let elems = 1u64.checked_shl(offset_bits);
    let pad =
        |sum: u64, &(interval, pad): &(u64, u64)| sum.checked_add((elems? / interval).checked_mul(pad)?);
    let all = elems.and_then(|n| padding.iter().try_fold(n, pad));
    match all.and_then(|n| n.checked_mul(storage_bits.into())) {
        Some(_) => Ok(()),
        None => Err(PlanError::TooLarge { offset_bits, bits: storage_bits, padding: padding.to_vec() }),
    }
}

pub(super) fn padded(padding: &[(u64, u64)], offset: u64) -> u64 {
    padding.iter().fold(offset, |o, &(interval, pad)| o + offset / interval * pad)
}

/// Runs of elements that are consecutive in global and in shared memory.
pub(super) struct Runs {
    global: Distributed,
    storage_bits: u32,
    /// log2 of the most elements that are consecutive in both, if in the same registers.
    widest: u32,
}

impl Runs {
    /// Of elements of `bits.0` bits in memory whose highest `bits.1` bits of an offset are the number of a partition.
    pub(super) fn new(
        map: &OffsetMap,
        distributed: &LinearLayout,
        (storage_bits, partition_bits): (u32, u32),
        facts: &AddressFacts,
        target: &TargetDesc,
    ) -> PlanResult<Runs> {
        let global = Distributed::new(distributed, &facts.order, target)?;
        let aligned = |n: u64| n.max(1).trailing_zeros();
        let limit = aligned(facts.contiguous).min(aligned(facts.mask_constancy));
        let limit = limit.min(map.offset_bits - partition_bits);
        let widest = contiguous_bits(&global, limit).min(contiguous_bits(&map.columns, limit));
        Ok(Runs { global, storage_bits, widest })
    }

    /// Whether registers have runs of `bits` bits at the same places of both memories.
    pub(super) fn fit(&self, bits: u32, map: &OffsetMap) -> bool {
        let elements = (bits / self.storage_bits).max(1).ilog2();
        let low = low_mask(elements);
        bits >= self.storage_bits
            && elements <= self.widest
            && self.global.reg.iter().zip(&map.columns.reg).all(|(g, s)| g & low == s & low)
    }

    pub(super) fn too_few(&self) -> PlanError {
        let widest = self.storage_bits << self.widest;
        PlanError::unsupported(
            Unsupported::Memory,
            format!("{widest} consecutive bits are too few to copy without registers"),
        )
    }
}

/// `L = M⁻¹ D`: every block finds its elements in its own memory if they are there.
pub(super) fn offset_map(
    distributed: &LinearLayout,
    memory: &LinearLayout,
    direction: Direction,
    target: &TargetDesc,
) -> PlanResult<OffsetMap> {
    let order: Vec<Dim> = memory.out_dims().collect();
    let d = Distributed::new(distributed, &order, target)?;
    for dim in memory.in_dims() {
        if ![Dim::OFFSET, Dim::PARTITION, Dim::BLOCK].contains(&dim) && memory.in_bits(dim) > 0 {
            return Err(PlanError::ForeignDim { what: "shared memory", dim });
        }
    }
    if !order.iter().all(|&dim| distributed.out_size(dim) == memory.out_size(dim)) {
        let expected = memory.out_dims().map(|d| format!("{d}: {}", memory.out_size(d).unwrap_or(1)));
        let got = distributed.out_dims().map(|d| format!("{d}: {}", distributed.out_size(d).unwrap_or(1)));
        let (expected, got) = (expected.collect::<Vec<_>>().join(", "), got.collect::<Vec<_>>().join(", "));
        return Err(crate::Error::DimMismatch { what: "shared access", expected, got }.into());
    }
    let blocks = memory.columns_of(Dim::BLOCK);
    // Partitions follow each other.
    let parts = [Dim::OFFSET, Dim::PARTITION].into_iter().flat_map(|dim| memory.columns_of(dim));
    let offsets: Vectors = parts.copied().collect();
    let offset_bits = offsets.len() as u32;
    let own = Echelon::of(&offsets);
    let all = Echelon::of(&offsets.iter().chain(blocks).copied().collect::<Vectors>());
    let find = |dim, columns: &[u64]| -> PlanResult<Vectors> {
        let place = |(bit, &c): (usize, &u64)| {
            all.express(c).ok_or(PlanError::Layout(crate::Error::NoSolution { dim, bit: bit as u32 }))
        };
        columns.iter().enumerate().map(place).collect()
    };
    let mut inactive = if direction == Direction::Store { d.duplicates() } else { ThreadMasks::default() };
    inactive.block = 0;
    let active = |v: &[u64], mask: u64| -> Vectors {
        v.iter().enumerate().map(|(i, &c)| if mask >> i & 1 == 1 { 0 } else { c }).collect()
    };
    let mut block = Vectors::new();
    for (i, &c) in d.block.iter().enumerate() {
        let mine = blocks.get(i).copied().unwrap_or(0);
        let unit = if i < blocks.len() { 1u64 << (offset_bits as usize + i) } else { 0 };
        match own.express(c ^ mine) {
            Some(offset) => block.push(offset | unit),
            None => block.extend(find(Dim::BLOCK, &[c])?),
        }
    }
    let mut columns = Distributed {
        reg: find(Dim::REGISTER, &d.reg)?,
        lane: find(Dim::LANE, &active(&d.lane, inactive.lane))?,
        warp: find(Dim::WARP, &active(&d.warp, inactive.warp))?,
        block,
        out_bits: offset_bits + blocks.len() as u32,
    };
    let threads = columns.reg.iter().chain(&columns.lane).chain(&columns.warp);
    let at_home = threads.clone().all(|c| c.checked_shr(offset_bits).unwrap_or(0) == 0)
        && columns.block.iter().enumerate().all(|(i, c)| {
            let unit = if i < blocks.len() { 1 << i } else { 0 };
            c.checked_shr(offset_bits).unwrap_or(0) == unit
        });
    if at_home {
        columns.block.iter_mut().for_each(|c| *c &= low_mask(offset_bits));
    }
    Ok(OffsetMap {
        columns,
        offset_bits,
        tile_bits: 0,
        remote: !at_home,
        inactive,
        run_bits: offset_bits,
        fragment: FragmentWords::ONE,
    })
}

/// Wavefronts when padding shifts addresses between banks, counted for the lanes of warp 0.
fn padded_wavefronts(access: &AccessPlan, padding: &[(u64, u64)], target: &TargetDesc) -> u64 {
    let served = access.instruction.served(access.direction, target);
    let address = |lane: u64| {
        let thread = Threads { lane, ..Threads::default() };
        access.inactive.is_clear(thread).then(|| access.address.of(thread))
    };
    // All accesses have these, but for their offset.
    let addresses: Vec<Option<u64>> = (0..served.lanes.into()).map(address).collect();
    let phases = served.lanes_by_phase();
    let byte = |offset: u64| padded(padding, offset) * u64::from(access.storage_bits) / 8;
    let wavefronts = |one: &MemoryAccess| {
        served.wavefronts_of(&phases, |lane| addresses[lane as usize].map(|at| byte(at ^ one.offset)))
    };
    access.accesses.iter().map(wavefronts).sum()
}
