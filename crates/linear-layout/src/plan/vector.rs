//! How wide the accesses of a thread to global memory can be.
//!
//! Let `L` be the layout with its outputs packed in memory order, the fastest dimension lowest. The lowest
//! `n` memory bits can travel in one access of `2ⁿ` elements when the registers of a thread span them,
//! `{e₀ … eₙ₋₁} ⊂ span(L_Reg)`, and no lane, warp or block touches them (paper, Section 5.1, "Contiguous
//! elements"). Nothing is asked of the *order* of the registers: it is read off the matrix, which is the
//! register permutation `P_Reg` of Section 5.3.

use std::fmt;

use crate::f2::{self, Echelon, low_mask};
use crate::plan::space::Distributed;
use crate::plan::{PlanError, PlanResult, ThreadMasks};
use crate::target::{TargetDesc, Touched};
use crate::{Dim, LinearLayout};

/// What is known about the addresses of a global access.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddressFacts {
    /// The dimensions of the tensor, the one that runs fastest in memory first. All of them.
    pub order: Vec<Dim>,
    /// Elements that are consecutive in memory, when elements are counted in `order`, and start at an
    /// address that is a multiple of their size together. May span several dimensions.
    pub contiguous: u64,
    /// Elements that are consecutive in memory, wherever they start: what counts for the sectors touched.
    pub neighbours: u64,
    /// Bits between neighbours along the first dimension of `order` where none are consecutive, fewer than an element has where
    /// several have one address; 0 where that is not known.
    pub stride_bits: u64,
    /// Elements in `order` that share one mask value, in aligned runs.
    pub mask_constancy: u64,
    /// For each dimension of `order`, the elements along it, a power of two of them in aligned groups, that have one
    /// address, one mask value and one value in place of what is masked: a load reads them once. Empty where nothing is
    /// known of that, and for stores, which may not leave any out.
    pub repeats: Vec<u64>,
    /// Bytes of memory that all of the addresses lie in, as those of a table; [`u64::MAX`] where that is not known.
    pub within: u64,
}

impl AddressFacts {
    /// The facts for a tensor whose last dimension is the fastest.
    pub fn row_major(layout: &LinearLayout, contiguous: u64, mask_constancy: u64) -> AddressFacts {
        let mut order: Vec<Dim> = layout.out_dims().collect();
        order.reverse();
        AddressFacts {
            order,
            contiguous,
            neighbours: contiguous,
            stride_bits: 0,
            mask_constancy,
            repeats: Vec::new(),
            within: u64::MAX,
        }
    }

    /// Elements along the first dimension, a power of two of them, that lie in a piece of memory of `bytes` bytes, to the nearest:
    /// at most as many as √2 such pieces hold.
    fn in_piece(&self, layout: &LinearLayout, bytes: u64) -> u64 {
        let known = self.stride_bits != 0 && self.neighbours <= 1;
        let Some(fast) = self.order.first().filter(|_| known) else { return 1 };
        let most = (8.0 * 2.0f64.sqrt() * bytes as f64 / self.stride_bits as f64) as u64;
        prev_power_of_two(most).min(1 << layout.out_bits(*fast))
    }

    /// The bits of an element's number, counted in `order`, that its address does not depend on.
    fn repeated_bits(&self, layout: &LinearLayout) -> u64 {
        let (mut bits, mut shift) = (0, 0);
        for (dim, repeats) in self.order.iter().zip(&self.repeats) {
            let own = layout.out_bits(*dim);
            bits |= low_mask(power_of_two_part(*repeats).trailing_zeros().min(own)) << shift;
            shift += own;
        }
        bits
    }
}

/// One access: the registers that it fills or writes, in the order of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VectorAccess {
    /// The registers, lowest address first. The address of the access is that of the first one.
    pub registers: Vec<u32>,
}

/// Bytes of a sector of global memory, which moves whole.
pub const SECTOR: u64 = 32;

/// The accesses with which every thread loads or stores its elements from or to global memory.
///
/// A load does every access once and copies each register to those that [`copies`](Self::copies) names it
/// for; a store or an atomic is done only by the threads for which [`duplicates`](Self::duplicates) is
/// clear.
///
/// ```
/// use linear_layout::{Dim, LinearLayout};
/// use linear_layout::plan::VectorPlan;
/// use linear_layout::target::TargetDesc;
/// // 512×2 bytes, eight rows a thread: contiguity spans both dimensions (paper, Table 2).
/// let (reg, lane) = (Dim::REGISTER, Dim::LANE);
/// let layout = LinearLayout::from_bases(
///     &[
///         (reg, vec![[0, 1], [1, 0], [2, 0], [4, 0]]),
///         (lane, vec![[8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]),
///         (Dim::WARP, vec![[256, 0]]),
///     ],
///     &[Dim::out(0), Dim::out(1)],
/// )?;
/// let target = TargetDesc::parse("cuda:90")?;
/// let plan = VectorPlan::for_global(&layout, 8, 1024, 1024, &target)?;
/// assert_eq!((plan.vec_elems, plan.access_bits(), plan.words()), (16, 128, (4, 32)));
/// assert_eq!(plan.accesses.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VectorPlan {
    /// Bits of one element in memory.
    pub elem_bits: u32,
    /// Elements of one access.
    pub vec_elems: u32,
    /// The accesses of one thread, no element twice.
    pub accesses: Vec<VectorAccess>,
    /// For each register of the layout, the register of some access that holds the same element.
    pub copies: Vec<u32>,
    /// The threads that hold only copies of what others hold.
    pub duplicates: ThreadMasks,
    /// 32-byte sectors of memory that one access of a full warp touches, runs beyond the proven
    /// contiguity counted as apart.
    pub sectors: u64,
    /// 128-byte lines that it touches, counted alike.
    pub lines: u64,
    /// 32-byte sectors that all accesses of all warps of a CTA touch together, counted alike.
    pub all_sectors: u64,
    /// Runs of neighbours in memory of which it touches some.
    pub runs: u64,
    /// What of each of them it touches, in bytes.
    pub run_bytes: u64,
    /// What the address at which a run begins is known to be a multiple of, in bytes.
    pub run_alignment: u64,
}

impl VectorPlan {
    /// One access of one element by one thread of the CTA.
    pub fn scalar(elem_bits: u32) -> VectorPlan {
        VectorPlan {
            elem_bits,
            vec_elems: 1,
            accesses: vec![VectorAccess { registers: vec![0] }],
            copies: vec![0],
            duplicates: ThreadMasks { lane: u64::MAX, warp: u64::MAX, block: u64::MAX },
            sectors: 1,
            lines: 1,
            all_sectors: 1,
            runs: 1,
            run_bytes: u64::from(elem_bits.div_ceil(8)),
            run_alignment: u64::from(elem_bits.div_ceil(8)),
        }
    }

    /// The widest accesses to a row-major tensor (its last dimension fastest), of which aligned runs of
    /// `max_contig_elems` elements are contiguous in memory and aligned to their size, and aligned runs of
    /// `mask_align` elements share one mask value.
    ///
    /// # Errors
    /// A layout with more lanes than the target, or elements of more than 64 bits.
    pub fn for_global(
        layout: &LinearLayout,
        elem_bits: u32,
        max_contig_elems: u64,
        mask_align: u64,
        target: &TargetDesc,
    ) -> PlanResult<VectorPlan> {
        let facts = AddressFacts::row_major(layout, max_contig_elems, mask_align);
        Self::for_addresses(layout, elem_bits, &facts, target)
    }

    /// The widest accesses that the addresses and the mask allow.
    ///
    /// # Errors
    /// As [`for_global`](Self::for_global); an order that does not name the dimensions of the layout; and
    /// elements narrower than a byte of which no access would fill whole bytes.
    pub fn for_addresses(
        layout: &LinearLayout,
        elem_bits: u32,
        facts: &AddressFacts,
        target: &TargetDesc,
    ) -> PlanResult<VectorPlan> {
        if !(1..=64).contains(&elem_bits) {
            return Err(PlanError::ElementWidth { bits: elem_bits });
        }
        let whole = Distributed::new(layout, &facts.order, target)?;
        let d = whole.without(facts.repeated_bits(layout));
        let widest = u64::from(target.max_global_vector_bits / elem_bits);
        let limit = [facts.contiguous, facts.mask_constancy].into_iter().map(power_of_two_part).min();
        let limit = prev_power_of_two(limit.unwrap_or(1).min(widest).max(1)).trailing_zeros();
        let bits = contiguous_bits(&d, limit);
        if !(u64::from(elem_bits) << bits).is_multiple_of(8) {
            return Err(PlanError::PartialByte { elems: 1 << bits, bits: elem_bits });
        }
        let accesses = group_registers(&d, bits);
        let run =
            power_of_two_part(facts.neighbours).max(power_of_two_part(facts.contiguous)).trailing_zeros();
        let runs = f2::rank(&d.lane.iter().map(|c| c >> run.max(bits)).collect::<Vec<u64>>());
        let bytes = |bits: u64| bits.div_ceil(8);
        // Pieces of memory of `size` bytes.
        let pieces = |columns: &[u64], size: u64| -> Vec<u64> {
            let elems = (8 * size / u64::from(elem_bits)).max(1).ilog2();
            let skip = elems.min(run.max(bits)).max(facts.in_piece(layout, size).ilog2());
            columns.iter().map(|column| column >> skip).collect()
        };
        let own = |size: u64| (u64::from(elem_bits) << bits).div_ceil(8 * size);
        Ok(VectorPlan {
            elem_bits,
            vec_elems: 1 << bits,
            accesses,
            copies: d.representatives(),
            duplicates: whole.duplicates(),
            sectors: own(32) << f2::rank(&pieces(&d.lane, 32)),
            lines: own(128) << f2::rank(&pieces(&d.lane, 128)),
            all_sectors: 1
                << f2::rank(&[&d.lane, &d.reg, &d.warp].map(|columns| pieces(columns, 32)).concat()),
            runs: 1 << runs,
            run_bytes: bytes(u64::from(elem_bits) << bits << (f2::rank(&d.lane) - runs)),
            run_alignment: bytes(u64::from(elem_bits) * power_of_two_part(facts.contiguous)),
        })
    }

    /// Sectors of 32 bytes that one access of a full warp touches on average, wherever runs begin that are not known to begin at one.
    pub fn usual_sectors(&self) -> f64 {
        let torn = SECTOR - self.run_alignment.min(self.run_bytes).min(SECTOR);
        self.runs as f64 * (self.run_bytes + torn) as f64 / SECTOR as f64
    }

    /// What one access of a warp touches of which `lanes` lanes are active, where `warps` warps do what the plan says.
    pub fn touched(&self, lanes: u64, warps: f64) -> Touched {
        let bytes = lanes * u64::from(self.vec_elems) * u64::from(self.elem_bits.div_ceil(8));
        let new = self.all_sectors as f64 / (self.accesses.len().max(1) as f64 * warps);
        Touched { bytes, sectors: self.sectors, lines: self.lines, new }
    }

    /// Bits of one access.
    pub fn access_bits(&self) -> u32 {
        self.elem_bits * self.vec_elems
    }

    /// `(count, bits)` of the words of one access, as in `v4.b32`: words of 32 bits, or of the element
    /// where that is wider, or of the whole access where that is narrower.
    pub fn words(&self) -> (u32, u32) {
        let word = self.access_bits().min(self.elem_bits.max(32));
        (self.access_bits() / word, word)
    }
}

impl fmt::Display for VectorPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, bits) = self.words();
        let n = self.accesses.len();
        writeln!(f, "{n} accesses of {} elements (v{count}.b{bits}) per thread", self.vec_elems)?;
        for access in &self.accesses {
            let registers: Vec<String> = access.registers.iter().map(|r| format!("r{r}")).collect();
            writeln!(f, "  [{}]", registers.join(" "))?;
        }
        let copied = self.copies.iter().enumerate().filter(|&(r, &c)| r as u32 != c).count();
        if copied > 0 {
            writeln!(f, "  {copied} registers are copies")?;
        }
        writeln!(f, "stores where {}", self.duplicates)?;
        writeln!(f, "{} sectors of 32 bytes per access of a warp", self.sectors)
    }
}

/// The most low memory bits, up to `limit`, that registers span and no thread touches.
pub(super) fn contiguous_bits(d: &Distributed, limit: u32) -> u32 {
    let touched = d.lane.iter().chain(&d.warp).chain(&d.block).fold(0, |m, c| m | c);
    let limit = limit.min(touched.trailing_zeros()).min(d.out_bits);
    let registers = Echelon::of(&d.reg);
    (0..limit).take_while(|&i| registers.contains(1 << i)).count() as u32
}

/// The registers, copies left out, in groups of `2^bits` that are neighbours in memory.
pub(super) fn group_registers(d: &Distributed, bits: u32) -> Vec<VectorAccess> {
    let free = d.free_registers();
    let registers = Echelon::of(&d.reg);
    // Registers that hold the run at zero; one access per coset of them.
    let run: Vec<u64> = (0..1u64 << bits).filter_map(|x| registers.express(x)).collect();
    let units: Vec<u64> = (0..bits).filter_map(|i| registers.express(1 << i)).collect();
    let mut basis = Echelon::of(&units);
    let others: Vec<u64> = (0..d.reg.len())
        .filter(|i| free >> i & 1 == 0)
        .map(|i| 1 << i)
        .filter(|&r| basis.insert(r))
        .collect();
    let mut accesses: Vec<VectorAccess> = (0..1u64 << others.len())
        .map(|g| {
            let base = f2::mul(&others, g);
            // Other registers may permute the run: sort by the low memory bits.
            let low = f2::mul(&d.reg, base) & low_mask(bits);
            VectorAccess {
                registers: (0..run.len()).map(|x| (base ^ run[x ^ low as usize]) as u32).collect(),
            }
        })
        .collect();
    accesses.sort_by_key(|a| a.registers.iter().min().copied());
    accesses
}

/// The largest power of two that divides `n`; 1 for 0.
fn power_of_two_part(n: u64) -> u64 {
    if n == 0 { 1 } else { 1 << n.trailing_zeros() }
}

fn prev_power_of_two(n: u64) -> u64 {
    1 << n.max(1).ilog2()
}
