//! Conversions between distributed layouts: the cheapest way from `A` to `B`.
//!
//! What is needed follows from where the solutions of `A X = B` lie (paper, Section 5.4): nothing when the
//! layouts are the same map; a choice of registers when every element is in its thread already; shuffles
//! when it is in its warp; shared memory when it is in its block; the shared memory of other blocks
//! otherwise. Where several ways exist the one with the fewest [cycles](Cost::cycles) is taken.
//!
//! Exchanges between lanes are one step of shuffles. Two steps through a layout in between fill payloads of narrow
//! elements better, but cost their latency, packing and selects twice: an exhaustive search finds none that is
//! cheaper (`tests/plan_optimality.rs`).
//!
//! # Cost model
//! A plan is costed for all warps of one block on one multiprocessor: the throughput of every instruction
//! of every warp, as in [`CostModel`](crate::target::CostModel), one after the other, plus the latencies
//! and barriers of each dependent step once.

use crate::f2::{self, Echelon, Vectors, low_mask};
use crate::plan::access::{AccessPlan, Choice, FragmentWords, OffsetMap};
use crate::plan::shuffle::{ShufflePlan, plan_shuffle};
use crate::plan::space::Distributed;
use crate::plan::swizzle::Transfer;
use crate::plan::{PlanError, PlanResult};
use crate::target::{Direction, TargetDesc};
use crate::{Dim, LinearLayout};

/// How far the threads that exchange data are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Lanes of one warp.
    Warp,
    /// Warps of one CTA.
    Block,
    /// CTAs of one cluster.
    Cluster,
}

/// What a plan costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Cycles of one multiprocessor for one CTA, latencies included.
    pub cycles: f64,
    /// Shuffles of one warp.
    pub shuffles: u64,
    /// Selects of one thread.
    pub selects: u64,
    /// Byte permutes of one thread.
    pub permutes: u64,
    /// Address computations of one thread.
    pub address_ops: u64,
    /// Shared-memory stores of one warp.
    pub stores: u64,
    /// Shared-memory loads of one warp.
    pub loads: u64,
    /// Barriers.
    pub barriers: u64,
    /// Wavefronts of one warp.
    pub wavefronts: u64,
    /// The least wavefronts that these instructions can take.
    pub minimum_wavefronts: u64,
}

impl Cost {
    /// Adds what comes after.
    pub(crate) fn add(&mut self, other: &Cost) {
        self.cycles += other.cycles;
        self.shuffles += other.shuffles;
        self.selects += other.selects;
        self.permutes += other.permutes;
        self.address_ops += other.address_ops;
        self.stores += other.stores;
        self.loads += other.loads;
        self.barriers += other.barriers;
        self.wavefronts += other.wavefronts;
        self.minimum_wavefronts += other.minimum_wavefronts;
    }
}

/// Data through shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedPlan {
    /// The memory layout, from `offset` (elements of one CTA's buffer, passes in the highest bits), and
    /// `block` to the dimensions of the tensor.
    pub layout: LinearLayout,
    /// How the source writes.
    pub store: AccessPlan,
    /// How the destination reads.
    pub load: AccessPlan,
    /// Passes through the same memory, one after the other: store, barrier, load, barrier. A power of two.
    pub tiles: u64,
    /// Who must have written before anyone reads.
    pub scope: Scope,
    /// Bytes of shared memory of one CTA.
    pub shared_bytes: u64,
}

impl SharedPlan {
    /// Barriers: between stores and loads, before the next pass stores again, and at the end where no CTA may go
    /// on while others read its memory.
    pub fn barriers(&self) -> u64 {
        barriers(self.scope, self.tiles)
    }
}

fn barriers(scope: Scope, tiles: u64) -> u64 {
    2 * tiles - u64::from(scope != Scope::Cluster)
}

/// Latencies and barriers of a way through shared memory.
fn fixed_cycles(scope: Scope, tiles: u64, target: &TargetDesc) -> f64 {
    let cost = &target.cost;
    let barrier = match scope {
        Scope::Warp => cost.warp_barrier,
        Scope::Block => cost.block_barrier,
        Scope::Cluster => cost.cluster_barrier,
    };
    let pass = 1.5 * cost.shared_latency;
    tiles as f64 * pass + barriers(scope, tiles) as f64 * barrier
}

/// The way a conversion is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Every register of every thread already holds its element.
    NoOp,
    /// Destination register `r` is source register `sources[r]` of the same thread.
    RegisterPermute {
        /// The source register for every destination register.
        sources: Vec<u32>,
    },
    /// Exchange between the lanes of each warp.
    WarpShuffle(ShufflePlan),
    /// Through the shared memory of each CTA.
    SharedMemory(SharedPlan),
    /// Through the shared memory of the CTAs of a cluster.
    Cluster(SharedPlan),
}

/// How to convert a tensor from one distributed layout to another.
///
/// ```
/// use linear_layout::{Dim, LinearLayout};
/// use linear_layout::plan::{Conversion, ConversionPlan};
/// use linear_layout::target::TargetDesc;
/// // Two registers in each of two lanes, consecutive in the one and strided in the other: the exchange of
/// // one element between the lanes.
/// let (reg, lane) = (Dim::REGISTER, Dim::LANE);
/// let a = LinearLayout::from_bases(&[(reg, vec![[1]]), (lane, vec![[2]])], &[Dim::out(0)])?;
/// let b = LinearLayout::from_bases(&[(reg, vec![[2]]), (lane, vec![[1]])], &[Dim::out(0)])?;
/// let plan = ConversionPlan::new(&a, &b, 32, &TargetDesc::parse("cuda:90")?)?;
/// let Conversion::WarpShuffle(shuffle) = &plan.conversion else { panic!("{plan}") };
/// assert_eq!((shuffle.rounds.len(), shuffle.shuffles()), (2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConversionPlan {
    /// What is done.
    pub conversion: Conversion,
    /// Bits of one element.
    pub elem_bits: u32,
    /// log2 of the warps of a CTA.
    pub warp_bits: u32,
    /// What it costs.
    pub cost: Cost,
    /// Name of the target.
    pub target: &'static str,
    pub(crate) mnemonics: Option<(String, String)>,
}

impl ConversionPlan {
    /// The cheapest plan from `source` to `destination` with all the shared memory of the target.
    ///
    /// # Errors
    /// Layouts of different shapes, ones that are not surjective, more lanes than the target has, or
    /// elements of no or more than 64 bits.
    pub fn new(
        source: &LinearLayout,
        destination: &LinearLayout,
        elem_bits: u32,
        target: &TargetDesc,
    ) -> PlanResult<ConversionPlan> {
        Self::with_budget(source, destination, elem_bits, target, target.shared_bytes)
    }

    /// The cheapest plan that uses at most `budget` bytes of shared memory in each CTA.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`PlanError::SharedBudget`] when no number of passes fits.
    pub fn with_budget(
        source: &LinearLayout,
        destination: &LinearLayout,
        elem_bits: u32,
        target: &TargetDesc,
        budget: u64,
    ) -> PlanResult<ConversionPlan> {
        Pair::new(source, destination, elem_bits, target)?.planned(budget)
    }

    /// The cheapest plan for elements of `elements.0` bits of which instructions then take the words of the fragment
    /// `elements.1` from consecutive registers: one load gives them where it can.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn for_fragments(
        source: &LinearLayout,
        destination: &LinearLayout,
        elements: (u32, FragmentWords),
        target: &TargetDesc,
    ) -> PlanResult<ConversionPlan> {
        let mut pair = Pair::new(source, destination, elements.0, target)?;
        pair.fragment = elements.1;
        pair.planned(target.shared_bytes)
    }

    /// The plan through shared memory that copies fill which pass the registers by (`cp.async`): what a thread copies at once are
    /// consecutive registers of `source` in their order, 4 bytes or more, whose elements follow each other along a dimension. `None`
    /// where no memory can be filled so.
    ///
    /// # Errors
    /// As [`for_fragments`](Self::for_fragments).
    pub fn for_copies(
        source: &LinearLayout,
        destination: &LinearLayout,
        elements: (u32, FragmentWords),
        target: &TargetDesc,
    ) -> PlanResult<Option<ConversionPlan>> {
        let mut pair = Pair::new(source, destination, elements.0, target)?;
        (pair.fragment, pair.copies) = (elements.1, Some(run_along_dimension(source)));
        pair.shared(target.shared_bytes, f64::INFINITY)
    }

    /// The plan through shared memory even where something cheaper exists.
    ///
    /// # Errors
    /// As [`with_budget`](Self::with_budget).
    pub fn through_shared(
        source: &LinearLayout,
        destination: &LinearLayout,
        elem_bits: u32,
        target: &TargetDesc,
        budget: u64,
    ) -> PlanResult<ConversionPlan> {
        let pair = Pair::new(source, destination, elem_bits, target)?;
        let none = || PlanError::Internal { what: "no access fits whole bytes" };
        pair.shared(budget, f64::INFINITY)?.ok_or_else(none)
    }

    /// To all threads that hold an element of `layout`, what only the one of them has that has no bit of the
    /// [`duplicates`](crate::plan::ThreadMasks) set; through shared memory, if need be of the first CTA.
    ///
    /// # Errors
    /// As [`with_budget`](Self::with_budget).
    pub fn to_copies(
        layout: &LinearLayout,
        elem_bits: u32,
        target: &TargetDesc,
        budget: u64,
    ) -> PlanResult<ConversionPlan> {
        let free = layout.free_variable_mask(Dim::BLOCK);
        // One more dimension, along which blocks with replicas differ, and of which all want the first place.
        let bits = layout.total_out_bits();
        let outs: Vec<(Dim, u32)> =
            layout.out_dim_bits().chain([(Dim::out(layout.num_out_dims()), free.count_ones())]).collect();
        let ins: Vec<(Dim, u32)> = layout.in_dim_bits().collect();
        let with = |apart: bool| {
            let mut next = bits;
            let columns = layout.in_dims().flat_map(|dim| {
                let copies = if apart && dim == Dim::BLOCK { free } else { 0 };
                layout.columns_of(dim).iter().enumerate().map(move |(i, c)| (*c, copies >> i & 1 == 1))
            });
            let columns = columns.map(|(c, copy)| {
                next += u32::from(copy);
                if copy { c | 1 << (next - 1) } else { c }
            });
            LinearLayout::from_columns(&ins, &outs, columns)
        };
        let (source, destination) = (with(true)?, with(false)?);
        let pair = Pair::to_some(&source, &destination, elem_bits, target)?;
        let none = || PlanError::Internal { what: "no access fits whole bytes" };
        pair.shared(budget, f64::INFINITY)?.ok_or_else(none)
    }

    /// The plan by shuffles even where shared memory is cheaper; `None` when elements change their warp or
    /// a lane would have to send several payloads at once.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn through_shuffles(
        source: &LinearLayout,
        destination: &LinearLayout,
        elem_bits: u32,
        target: &TargetDesc,
    ) -> PlanResult<Option<ConversionPlan>> {
        let pair = Pair::new(source, destination, elem_bits, target)?;
        let shuffle = plan_shuffle(&pair.a, &pair.b, pair.storage_bits, target);
        Ok(shuffle.map(|s| pair.finish(Conversion::WarpShuffle(s))))
    }

    /// Shared memory needed in each CTA, in bytes.
    pub fn shared_bytes(&self) -> u64 {
        match &self.conversion {
            Conversion::SharedMemory(plan) | Conversion::Cluster(plan) => plan.shared_bytes,
            _ => 0,
        }
    }

    /// Shared memory needed in each CTA by conversions done together, in bytes: theirs side by side, each
    /// aligned to the widest access.
    pub fn scratch_bytes(plans: &[ConversionPlan]) -> u64 {
        plans.iter().map(|plan| plan.shared_bytes().next_multiple_of(16)).sum()
    }

    /// Who waits once for all of `plans`, conversions done together, and how many of them that serves: those that go
    /// through shared memory in one pass, where there are at least two and all have the same scope within a CTA. All
    /// store, then all wait, then all load. `None` where each waits for itself.
    pub fn one_wait(plans: &[ConversionPlan]) -> Option<(Scope, u64)> {
        let mut found: Option<(Scope, u64)> = None;
        for plan in plans {
            match (&plan.conversion, found) {
                (Conversion::SharedMemory(shared), _) if shared.tiles > 1 => return None,
                (Conversion::SharedMemory(shared), Some((scope, _))) if shared.scope != scope => return None,
                (Conversion::SharedMemory(shared), _) => {
                    found = Some((shared.scope, found.map_or(0, |found| found.1) + 1));
                }
                (Conversion::Cluster(_), _) => return None,
                _ => {}
            }
        }
        found.filter(|(_, conversions)| *conversions > 1)
    }

    /// What conversions done together cost.
    pub(crate) fn cost_together(plans: &[ConversionPlan], target: &TargetDesc) -> Cost {
        let mut cost = Cost::default();
        plans.iter().for_each(|plan| cost.add(&plan.cost));
        if let Some((scope, conversions)) = Self::one_wait(plans) {
            let saved = conversions - 1;
            cost.barriers -= saved;
            cost.cycles -= saved as f64 * fixed_cycles(scope, 1, target);
        }
        cost
    }

    /// Cycles less where the conversion waits together with another one: latencies and barriers of a single pass through
    /// the shared memory of each CTA.
    pub fn waits(&self, target: &TargetDesc) -> f64 {
        match &self.conversion {
            Conversion::SharedMemory(shared) if shared.tiles == 1 => fixed_cycles(shared.scope, 1, target),
            _ => 0.0,
        }
    }

    /// Where in that memory each conversion has its own.
    pub fn scratch_offsets(plans: &[ConversionPlan]) -> Vec<u64> {
        (0..plans.len()).map(|i| Self::scratch_bytes(&plans[..i])).collect()
    }

    /// Mnemonics of the instructions that move data between threads, each once.
    pub fn instructions(&self) -> Vec<String> {
        match (&self.conversion, &self.mnemonics) {
            (_, Some((store, load))) => vec![store.clone(), load.clone()],
            (Conversion::WarpShuffle(plan), _) => {
                let mut names: Vec<&str> = plan.rounds.iter().filter_map(|r| r.exchange.name()).collect();
                names.sort_unstable();
                names.dedup();
                names.into_iter().map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// `noop`, `register`, `shuffle`, `shared` or `cluster`.
    pub fn kind(&self) -> &'static str {
        match &self.conversion {
            Conversion::NoOp => "noop",
            Conversion::RegisterPermute { .. } => "register",
            Conversion::WarpShuffle(plan) if plan.shuffles() == 0 => "register",
            Conversion::WarpShuffle(_) => "shuffle",
            Conversion::SharedMemory(_) => "shared",
            Conversion::Cluster(_) => "cluster",
        }
    }
}

/// log2 of the elements that follow each other along a dimension in consecutive registers of `layout`.
fn run_along_dimension(layout: &LinearLayout) -> u32 {
    let own: Vectors =
        layout.columns_of(Dim::REGISTER).iter().copied().filter(|column| *column != 0).collect();
    let Some(first) = own.first() else { return 0 };
    let along = layout.out_dims().map(|dim| layout.out_mask(dim)).find(|mask| first & mask != 0).unwrap_or(0);
    let least = along & along.wrapping_neg();
    let follows = |(i, column): (usize, &u64)| *column & along != 0 && *column == least << i;
    own.iter().enumerate().take_while(|at| follows(*at)).count() as u32
}

/// Two layouts over the same packing of the tensor's bits.
struct Pair<'a> {
    a: Distributed,
    b: Distributed,
    source: &'a LinearLayout,
    elem_bits: u32,
    /// Bits of an element in payloads and memory: the next power of two.
    storage_bits: u32,
    /// Words of 32 bits that instructions take from consecutive registers of the destination.
    fragment: FragmentWords,
    /// Where copies that pass the registers by fill shared memory: log2 of the elements that they may move at once.
    copies: Option<u32>,
    target: &'a TargetDesc,
}

impl<'a> Pair<'a> {
    fn new(
        source: &'a LinearLayout,
        destination: &LinearLayout,
        elem_bits: u32,
        target: &'a TargetDesc,
    ) -> PlanResult<Pair<'a>> {
        let pair = Self::to_some(source, destination, elem_bits, target)?;
        let (rank, bits) = (destination.rank(), destination.total_out_bits());
        if rank != bits {
            return Err(crate::Error::NotSurjective { rank, bits }.into());
        }
        Ok(pair)
    }

    /// The cheapest plan that uses at most `budget` bytes of shared memory in each CTA.
    fn planned(&self, budget: u64) -> PlanResult<ConversionPlan> {
        if self.a.reg == self.b.reg && self.is_still() {
            return Ok(self.finish(Conversion::NoOp));
        }
        if let Some(sources) = self.register_sources() {
            return Ok(self.finish(Conversion::RegisterPermute { sources }));
        }
        let shuffle = plan_shuffle(&self.a, &self.b, self.storage_bits, self.target);
        let shuffle = shuffle.map(|s| self.finish(Conversion::WarpShuffle(s)));
        let shuffle = match shuffle {
            Some(renaming) if renaming.cost.shuffles == 0 => return Ok(renaming),
            other => other,
        };
        let limit = shuffle.as_ref().map_or(f64::INFINITY, |s| s.cost.cycles);
        match (self.shared(budget, limit), shuffle) {
            (Ok(Some(shared)), Some(s)) if shared.cost.cycles >= s.cost.cycles => Ok(s),
            (Ok(Some(shared)), _) => Ok(shared),
            (_, Some(shuffle)) => Ok(shuffle),
            (Ok(None), None) => Err(PlanError::Internal { what: "no access fits whole bytes" }),
            (Err(error), None) => Err(error),
        }
    }

    /// A destination that may lack elements.
    fn to_some(
        source: &'a LinearLayout,
        destination: &LinearLayout,
        elem_bits: u32,
        target: &'a TargetDesc,
    ) -> PlanResult<Pair<'a>> {
        if !(1..=64).contains(&elem_bits) {
            return Err(PlanError::ElementWidth { bits: elem_bits });
        }
        let order: Vec<Dim> = source.out_dims().collect();
        let sizes = |l: &LinearLayout| order.iter().map(|&d| l.out_size(d)).collect::<Vec<_>>();
        if sizes(source) != sizes(destination) || destination.num_out_dims() != order.len() {
            let shape = |l: &LinearLayout| {
                let dims = l.out_dims().map(|d| format!("{d}: {}", l.out_size(d).unwrap_or(1)));
                dims.collect::<Vec<_>>().join(", ")
            };
            let (expected, got) = (shape(source), shape(destination));
            return Err(crate::Error::DimMismatch { what: "conversion", expected, got }.into());
        }
        let a = Distributed::new(source, &order, target)?;
        let b = Distributed::new(destination, &order, target)?;
        let (rank, bits) = (source.rank(), source.total_out_bits());
        if rank != bits {
            return Err(crate::Error::NotSurjective { rank, bits }.into());
        }
        let (mut a, mut b) = (a, b);
        for (x, y) in [(&mut a.warp, &mut b.warp), (&mut a.block, &mut b.block)] {
            let len = x.len().max(y.len());
            x.resize(len, 0);
            y.resize(len, 0);
        }
        let storage_bits = elem_bits.next_power_of_two().max(4);
        let fragment = FragmentWords::ONE;
        Ok(Pair { a, b, source, elem_bits, storage_bits, fragment, copies: None, target })
    }

    /// Whether register 0 of every thread is the same in both layouts.
    fn is_still(&self) -> bool {
        self.a.lane == self.b.lane && self.a.warp == self.b.warp && self.a.block == self.b.block
    }

    /// The source of every register, when no thread needs another and all choose alike.
    fn register_sources(&self) -> Option<Vec<u32>> {
        if !self.is_still() {
            return None;
        }
        let registers = Echelon::of(&self.a.reg);
        let source = |r| registers.express(f2::mul(&self.b.reg, r)).map(|s| s as u32);
        (0..1u64 << self.b.reg.len()).map(source).collect()
    }

    fn warps(&self) -> f64 {
        (1u64 << self.a.warp.len()) as f64
    }

    fn finish(&self, conversion: Conversion) -> ConversionPlan {
        let target = self.target;
        let mut total = Cost::default();
        let mut mnemonics = None;
        match &conversion {
            Conversion::NoOp | Conversion::RegisterPermute { .. } => {}
            Conversion::WarpShuffle(plan) => {
                total.shuffles = plan.shuffles();
                total.selects = plan.selects();
                total.permutes = plan.permutes();
                total.address_ops = plan.address_ops();
                total.cycles = plan.latency(target) + self.warps() * plan.cycles(target);
            }
            Conversion::SharedMemory(plan) | Conversion::Cluster(plan) => {
                let (store, load) = (&plan.store, &plan.load);
                total.stores = store.count;
                total.loads = load.count;
                total.permutes = store.packing_ops + load.packing_ops;
                total.address_ops = store.address_ops + load.address_ops;
                total.wavefronts = store.wavefronts + load.wavefronts;
                total.minimum_wavefronts = store.minimum + load.minimum;
                total.barriers = plan.barriers();
                total.cycles = fixed_cycles(plan.scope, plan.tiles, self.target)
                    + self.warps() * (store.cycles(target) + load.cycles(target));
                let name = |access: &AccessPlan| access.instruction.name(access.direction, target);
                mnemonics = Some((name(store), name(load)));
            }
        }
        ConversionPlan {
            conversion,
            elem_bits: self.elem_bits,
            warp_bits: self.a.warp.len() as u32,
            cost: total,
            target: target.name,
            mnemonics,
        }
    }

    /// The cheapest way through shared memory. `None` when elements are narrower than a byte and cannot be
    /// stored even alone; `limit` is what another way costs, above which nothing is worth trying.
    fn shared(&self, budget: u64, limit: f64) -> PlanResult<Option<ConversionPlan>> {
        let local = Local::new(self)?;
        let mut widths = vec![self.storage_bits, self.storage_bits.max(8)];
        widths.dedup();
        let mut best: Option<ConversionPlan> = None;
        for storage_bits in widths {
            let needed = |tiles: u32| ((u64::from(storage_bits) << (local.bits - tiles)) / 8).max(1);
            // At worst one element at a time: a byte, unless it is wider.
            let Some(tile_bits) = (0..=local.bits).find(|&t| needed(t) <= budget) else {
                return Err(PlanError::SharedBudget { needed: needed(local.bits), budget });
            };
            let mut limit = best.as_ref().map_or(limit, |b| b.cost.cycles.min(limit));
            let found = local.best(self, storage_bits, tile_bits, &mut limit);
            if let Some((plan, _)) = found {
                let done =
                    if local.cluster { Conversion::Cluster(plan) } else { Conversion::SharedMemory(plan) };
                let done = self.finish(done);
                if best.as_ref().is_none_or(|b| done.cost.cycles < b.cost.cycles) {
                    best = Some(done);
                }
            }
        }
        Ok(best)
    }
}

/// The transfer as seen by the memory of one CTA: everything in coordinates of the elements that a CTA
/// of the source holds, its independent columns.
struct Local {
    a: Distributed,
    b: Distributed,
    /// The element of each coordinate bit, then of each block bit, in the packing of the tensor.
    elements: Vectors,
    bits: u32,
    block_bits: u32,
    inactive: crate::plan::ThreadMasks,
    cluster: bool,
    scope: Scope,
    fragment: FragmentWords,
    copies: Option<u32>,
}

impl Local {
    fn new(pair: &Pair<'_>) -> PlanResult<Local> {
        let (a, b) = (&pair.a, &pair.b);
        let own: Vectors =
            f2::basis(&a.reg.iter().chain(&a.lane).chain(&a.warp).copied().collect::<Vectors>());
        let bits = own.len() as u32;
        let block_bits = a.block.len() as u32;
        let all: Vectors = own.iter().chain(&a.block).copied().collect();
        if all.len() > 64 {
            let (got, limit) = (all.len() as u64, 64);
            return Err(PlanError::TooMany {
                what: "bits of elements and blocks",
                got,
                limit,
                target: pair.target.name,
            });
        }
        let echelon = Echelon::of(&all);
        let express = |c: u64| echelon.express(c).ok_or(crate::Error::NotSurjective { rank: 0, bits });
        let columns = |v: &[u64]| v.iter().map(|&c| express(c)).collect::<Result<Vectors, crate::Error>>();
        let mut inactive = a.duplicates();
        inactive.block = 0;
        // What threads that do not store hold is of no concern.
        let active = |v: &[u64], mask: u64| -> Vectors {
            v.iter().enumerate().map(|(i, &c)| if mask >> i & 1 == 1 { 0 } else { c }).collect()
        };
        let own_block = |i: usize| 1u64 << (bits as usize + i);
        let mut la = Distributed {
            reg: columns(&a.reg)?,
            lane: columns(&active(&a.lane, inactive.lane))?,
            warp: columns(&active(&a.warp, inactive.warp))?,
            block: (0..a.block.len()).map(own_block).collect(),
            out_bits: bits + block_bits,
        };
        let mut lb = Distributed {
            reg: columns(&b.reg)?,
            lane: columns(&b.lane)?,
            warp: columns(&b.warp)?,
            block: columns(&a.block.iter().zip(&b.block).map(|(x, y)| x ^ y).collect::<Vectors>())?,
            out_bits: bits + block_bits,
        };
        lb.block.iter_mut().enumerate().for_each(|(i, c)| *c ^= own_block(i));
        let across = |d: &Distributed| {
            let threads = d.reg.iter().chain(&d.lane).chain(&d.warp).all(|c| c >> bits == 0);
            !(threads && d.block.iter().enumerate().all(|(i, c)| c >> bits == 1 << i))
        };
        let cluster = across(&lb);
        let scope = if cluster {
            Scope::Cluster
        } else if stays_in_warp(a, b) && inactive.warp == 0 {
            Scope::Warp
        } else {
            Scope::Block
        };
        if !cluster {
            // Blocks do not appear in addresses, except where they choose among copies.
            la.block.iter_mut().for_each(|c| *c &= low_mask(bits));
            lb.block.iter_mut().for_each(|c| *c &= low_mask(bits));
        }
        let fragment = pair.fragment;
        let copies = pair.copies;
        Ok(Local {
            a: la,
            b: lb,
            elements: all,
            bits,
            block_bits,
            inactive,
            cluster,
            scope,
            fragment,
            copies,
        })
    }

    /// The columns of a side in the coordinates of the elements that a CTA has, without blocks.
    fn elements_of(&self, d: &Distributed) -> Distributed {
        let cut = |v: &Vectors| v.iter().map(|c| c & low_mask(self.bits)).collect::<Vectors>();
        Distributed {
            reg: cut(&d.reg),
            lane: cut(&d.lane),
            warp: cut(&d.warp),
            block: cut(&d.block),
            out_bits: self.bits,
        }
    }

    /// How stores and loads are done best where `inverse` takes elements to offsets.
    fn sides(
        &self,
        inverse: &[u64],
        tile_bits: u32,
        storage_bits: u32,
        target: &TargetDesc,
    ) -> [Option<(OffsetMap, Choice)>; 2] {
        [(&self.a, Direction::Store), (&self.b, Direction::Load)].map(|(d, direction)| {
            let map = self.offset_map(d, inverse, tile_bits, direction);
            let choice = match self.copies.filter(|_| direction == Direction::Store) {
                Some(run) => map.copies(run, storage_bits, target),
                None => map.choose(storage_bits, direction, target),
            };
            choice.map(|choice| (map, choice))
        })
    }

    /// The best memory layout found below `limit` cycles, and those cycles.
    fn best(
        &self,
        pair: &Pair<'_>,
        storage_bits: u32,
        tile_bits: u32,
        limit: &mut f64,
    ) -> Option<(SharedPlan, f64)> {
        let (source, target_layout) = (self.elements_of(&self.a), self.elements_of(&self.b));
        let transfer = Transfer {
            source: &source,
            target_layout: &target_layout,
            inactive_lanes: self.inactive.lane,
            bits: self.bits,
            tile_bits,
            storage_bits,
            copies: self.copies,
            machine: pair.target,
        };
        let fixed = fixed_cycles(self.scope, 1 << tile_bits, pair.target);
        let mut best: Option<(Vectors, Scope, OffsetMap, Choice, OffsetMap, Choice)> = None;
        let mut tried = 0;
        for (bound, store, load) in transfer.wishes() {
            if fixed + pair.warps() * bound >= *limit || tried >= MAX_LAYOUTS {
                break;
            }
            let Some(layout) = transfer.layout(store, load) else { continue };
            let Some(inverse) = f2::inverse(&layout) else { continue };
            tried += 1;
            let sides = self.sides(&inverse, tile_bits, storage_bits, pair.target);
            let [Some((store_map, store)), Some((load_map, load))] = sides else { continue };
            let scope = self.scope_of(&store_map);
            let copies = if self.copies.is_some() { store.count as f64 * pair.target.cost.copy } else { 0.0 };
            let cycles = fixed_cycles(scope, 1 << tile_bits, pair.target)
                + pair.warps() * (store.cycles(pair.target) + copies + load.cycles(pair.target));
            if cycles < *limit {
                *limit = cycles;
                best = Some((layout, scope, store_map, store, load_map, load));
            }
        }
        let (layout, scope, store_map, store, load_map, load) = best?;
        let store = store_map.realize(&store, storage_bits, Direction::Store);
        let load = load_map.realize(&load, storage_bits, Direction::Load);
        let bytes = ((u64::from(storage_bits) << (self.bits - tile_bits)) / 8).max(1);
        let layout = self.memory_layout(pair, &layout)?;
        let tiles = 1 << tile_bits;
        Some((SharedPlan { layout, store, load, tiles, scope, shared_bytes: bytes }, *limit))
    }

    /// Who must wait for whom. Warps that keep to their own elements still wait for each other when one stores in
    /// one pass where another does in another pass.
    fn scope_of(&self, store: &OffsetMap) -> Scope {
        let c = &store.columns;
        let offsets = |columns: &mut dyn Iterator<Item = &u64>| -> u32 {
            f2::rank(&columns.map(|c| c & low_mask(store.offset_bits)).collect::<Vectors>())
        };
        let of_warp = offsets(&mut c.reg.iter().chain(&c.lane));
        let of_all = offsets(&mut c.reg.iter().chain(&c.lane).chain(&c.warp));
        let apart = of_all == of_warp + c.warp.len() as u32;
        if self.scope == Scope::Warp && !apart { Scope::Block } else { self.scope }
    }

    fn offset_map(
        &self,
        d: &Distributed,
        inverse: &[u64],
        tile_bits: u32,
        direction: Direction,
    ) -> OffsetMap {
        let map = |v: &Vectors| -> Vectors {
            let low = low_mask(self.bits);
            v.iter().map(|c| f2::mul(inverse, c & low) | c & !low).collect()
        };
        let store = direction == Direction::Store;
        OffsetMap {
            columns: Distributed {
                reg: map(&d.reg),
                lane: map(&d.lane),
                warp: map(&d.warp),
                block: map(&d.block),
                out_bits: self.bits + self.block_bits,
            },
            offset_bits: self.bits - tile_bits,
            tile_bits,
            remote: self.cluster && !store,
            inactive: if store { self.inactive } else { Default::default() },
            run_bits: self.bits,
            fragment: if store { FragmentWords::ONE } else { self.fragment },
        }
    }

    /// The memory layout in the dimensions of the tensor.
    fn memory_layout(&self, pair: &Pair<'_>, layout: &[u64]) -> Option<LinearLayout> {
        let own = &self.elements[..self.bits as usize];
        let offsets = layout.iter().map(|&c| f2::mul(own, c));
        let blocks = self.elements[self.bits as usize..].iter().copied();
        let outs: Vec<(Dim, u32)> = pair.source.out_dim_bits().collect();
        let ins = [(Dim::OFFSET, self.bits), (Dim::BLOCK, self.block_bits)];
        LinearLayout::from_columns(&ins, &outs, offsets.chain(blocks)).ok()
    }
}

/// How many memory layouts are tried before the best so far is taken.
const MAX_LAYOUTS: u32 = 16;

/// Whether every warp of `b` finds all its elements in the same warp of `a`.
fn stays_in_warp(a: &Distributed, b: &Distributed) -> bool {
    let warp = Echelon::of(&a.reg.iter().chain(&a.lane).copied().collect::<Vectors>());
    let moved = a.warp.iter().zip(&b.warp).chain(a.block.iter().zip(&b.block)).map(|(x, y)| x ^ y);
    b.reg.iter().chain(&b.lane).copied().chain(moved).all(|c| warp.contains(c))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Encoding;
    use crate::plan::MemoryInstruction;
    use crate::plan::swizzle::Want;

    /// Layouts of 64×128 elements by the lanes of a warp.
    const LAYOUTS: &[(u32, &str)] = &[
        (
            32,
            "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>",
        ),
        (
            32,
            "#ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>",
        ),
        (
            32,
            "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>",
        ),
        (
            32,
            "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>",
        ),
        (
            32,
            "#ttg.dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>, kWidth = 2}>",
        ),
        (
            32,
            "#ttg.dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>, kWidth = 4}>",
        ),
        (
            32,
            "#ttg.dot_op<{opIdx = 1, parent = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}, instrShape = [16, 16, 32]}>, kWidth = 8}>",
        ),
        (
            64,
            "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>",
        ),
        (
            64,
            "#ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 8], warpsPerCTA = [1, 4], order = [0, 1]}>",
        ),
        (
            64,
            "#ttg.dot_op<{opIdx = 1, parent = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, 32], isTransposed = false}>, kWidth = 4}>",
        ),
        (
            64,
            "#ttg.dot_op<{opIdx = 1, parent = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, 64], isTransposed = false}>, kWidth = 8}>",
        ),
    ];

    /// The instructions of a side that is as wished, and the permutes of a thread without which it cannot be: where
    /// accesses are narrower than words, these are taken apart.
    fn as_wished(want: Want, storage_bits: u32, registers: u64) -> (u64, u64) {
        let matrices = |words: u64| (words.div_ceil(4), 0);
        match want {
            Want::Vector(v) => {
                let in_word = u64::from(32 / storage_bits).clamp(1, registers);
                let pieces = (in_word >> v).max(1);
                (registers >> v, registers / in_word * (pieces - 1))
            }
            Want::Rows { .. } | Want::Columns { .. } | Want::Bytes { .. } => {
                matrices(registers * u64::from(storage_bits) / 32)
            }
            Want::Lanes { form, .. } => {
                let each = form.bits_per_lane(storage_bits).expect("an instruction that there is");
                (registers * u64::from(storage_bits) / u64::from(each), 0)
            }
        }
    }

    fn is(want: Want, instruction: MemoryInstruction, storage_bits: u32) -> bool {
        match (want, instruction) {
            (Want::Vector(v), MemoryInstruction::Vector { bits }) => bits == storage_bits << v,
            (Want::Rows { .. }, MemoryInstruction::Matrix { transposed, .. }) => !transposed,
            (Want::Columns { .. }, MemoryInstruction::Matrix { transposed, .. }) => transposed,
            (Want::Bytes { .. }, MemoryInstruction::MatrixBytes { .. }) => true,
            (Want::Lanes { .. }, MemoryInstruction::TransposedRead { .. }) => true,
            _ => false,
        }
    }

    /// The search for a memory layout ends where wishes say that nothing cheaper comes: they must say what their
    /// instructions take without conflicts.
    #[test]
    fn wishes_cost_what_their_instructions_take_without_conflicts() {
        let mut compared: BTreeMap<String, u32> = BTreeMap::new();
        for mut target in TargetDesc::all() {
            (target.cost.wavefront, target.cost.issue, target.cost.alu) = (1.25, 0.375, 0.15625);
            let layouts = LAYOUTS.iter().filter(|(lanes, _)| *lanes == target.lanes).map(|(_, text)| {
                text.parse::<Encoding>().expect(text).to_linear_layout(&[64, 128]).expect(text)
            });
            let layouts: Vec<LinearLayout> = layouts.collect();
            for (a, b) in layouts.iter().flat_map(|a| layouts.iter().map(move |b| (a, b))) {
                for bits in [8, 16, 32, 64] {
                    compare(&Pair::new(a, b, bits, &target).expect("a pair"), &mut compared);
                }
            }
        }
        for want in ["Vector", "Rows", "Columns", "Bytes", "Lanes"] {
            let count: u32 =
                compared.iter().filter(|known| known.0.contains(want)).map(|known| known.1).sum();
            assert!(count > 5, "{want}: {count} of {compared:?}");
        }
    }

    fn compare(pair: &Pair<'_>, compared: &mut BTreeMap<String, u32>) {
        let (target, storage_bits) = (pair.target, pair.storage_bits);
        let local = Local::new(pair).expect("a transfer");
        let (source, target_layout) = (local.elements_of(&local.a), local.elements_of(&local.b));
        let transfer = Transfer {
            source: &source,
            target_layout: &target_layout,
            inactive_lanes: local.inactive.lane,
            bits: local.bits,
            tile_bits: 0,
            storage_bits,
            copies: None,
            machine: target,
        };
        for (bound, store, load) in transfer.wishes() {
            let Some(inverse) = transfer.layout(store, load).and_then(|layout| f2::inverse(&layout)) else {
                continue;
            };
            let [Some((_, stored)), Some((_, loaded))] = local.sides(&inverse, 0, storage_bits, target)
            else {
                continue;
            };
            if !is(store, stored.instruction, storage_bits) || !is(load, loaded.instruction, storage_bits) {
                continue;
            }
            let sides = [(store, &stored, &source), (load, &loaded, &target_layout)];
            let mut without = 0.0;
            let mut clean = true;
            for (want, choice, d) in sides {
                let (count, permutes) = as_wished(want, storage_bits, 1 << f2::rank(&d.reg));
                without += choice.minimum as f64 * target.cost.wavefront
                    + count as f64 * target.cost.issue
                    + permutes as f64 * target.cost.alu;
                clean &= (choice.wavefronts, choice.count, choice.packing_ops)
                    == (choice.minimum, count, permutes);
            }
            let both = stored.cycles(target) + loaded.cycles(target);
            let about =
                || format!("{store:?} and {load:?} of {storage_bits} bits on {target}: {bound}, {both}");
            assert!((bound - without).abs() < 1e-9, "{} {without}", about());
            assert!(bound <= both && (!clean || (both - bound).abs() < 1e-9), "{}", about());
            *compared.entry(format!("{store:?} {load:?}")).or_default() += u32::from(clean);
        }
    }
}
