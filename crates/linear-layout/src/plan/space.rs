//! A distributed layout taken apart: basis vectors per resource, and who holds replicas.

use std::fmt;

use crate::f2::{self, Echelon, Vectors, low_mask};
use crate::plan::{PlanError, PlanResult};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// A thread of a cluster: numbers of lane, warp and CTA (the dimension `block` of layouts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Threads {
    /// Lane in its warp.
    pub lane: u64,
    /// Warp in its CTA.
    pub warp: u64,
    /// CTA in its cluster.
    pub block: u64,
}

/// Bits of lane, warp and block numbers. As *duplicates*: a thread with one of these bits set holds only
/// copies of what the thread with the bit clear holds, so that of a store or an atomic only the threads
/// with all of them clear do their part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ThreadMasks {
    /// Bits of the lane number.
    pub lane: u64,
    /// Bits of the warp number.
    pub warp: u64,
    /// Bits of the CTA number.
    pub block: u64,
}

impl ThreadMasks {
    /// Whether no bit is set: nothing to predicate.
    pub fn is_empty(&self) -> bool {
        *self == ThreadMasks::default()
    }

    /// Whether the thread has all of these bits clear.
    pub fn is_clear(&self, thread: Threads) -> bool {
        thread.lane & self.lane == 0 && thread.warp & self.warp == 0 && thread.block & self.block == 0
    }
}

impl fmt::Display for ThreadMasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = [("lane", self.lane), ("warp", self.warp), ("block", self.block)]
            .into_iter()
            .filter(|&(_, mask)| mask != 0)
            .map(|(name, mask)| format!("{name} & {mask:#x} == 0"))
            .collect();
        f.write_str(&if parts.is_empty() { "all threads".to_owned() } else { parts.join(" && ") })
    }
}

/// The columns of a distributed layout per resource, over one common packing of the output bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Distributed {
    pub reg: Vectors,
    pub lane: Vectors,
    pub warp: Vectors,
    pub block: Vectors,
    pub out_bits: u32,
}

impl Distributed {
    /// Takes `layout` apart, its output dimensions packed in the given order, first lowest.
    pub fn new(layout: &LinearLayout, out_order: &[Dim], target: &TargetDesc) -> PlanResult<Distributed> {
        for dim in layout.in_dims() {
            if ![Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK].contains(&dim) && layout.in_bits(dim) > 0 {
                return Err(PlanError::ForeignDim { what: "a distributed layout", dim });
            }
        }
        let layout = layout.transpose_outs(out_order)?;
        let columns = |dim| Vectors::from_slice(layout.columns_of(dim));
        let mut lane = columns(Dim::LANE);
        if lane.len() as u32 > target.lane_bits() {
            let (got, limit) = (1 << lane.len(), target.lanes.into());
            return Err(PlanError::TooMany { what: "lanes", got, limit, target: target.name });
        }
        lane.resize(target.lane_bits() as usize, 0);
        let (reg, warp, block) = (columns(Dim::REGISTER), columns(Dim::WARP), columns(Dim::BLOCK));
        if reg.len() > 20 {
            let (got, limit) = (1 << reg.len(), 1 << 20);
            return Err(PlanError::TooMany { what: "registers", got, limit, target: target.name });
        }
        Ok(Distributed { reg, lane, warp, block, out_bits: layout.total_out_bits() })
    }

    /// The same without some bits of the output: elements that differ in them only become one.
    pub fn without(&self, bits: u64) -> Distributed {
        let keep = |columns: &Vectors| columns.iter().map(|column| column & !bits).collect();
        let (reg, lane) = (keep(&self.reg), keep(&self.lane));
        Distributed { reg, lane, warp: keep(&self.warp), block: keep(&self.block), out_bits: self.out_bits }
    }

    /// Bits of register numbers whose vector depends on those of lower bits: copies in the same thread.
    pub fn free_registers(&self) -> u64 {
        low_mask(self.reg.len() as u32) & !f2::independent_columns(&self.reg)
    }

    /// Which threads hold only copies, registers counted before lanes, lanes before warps and blocks.
    pub fn duplicates(&self) -> ThreadMasks {
        let mut echelon = Echelon::of(&self.reg);
        let mut free = |columns: &[u64]| {
            columns.iter().enumerate().fold(0, |m, (i, &c)| m | u64::from(!echelon.insert(c)) << i)
        };
        ThreadMasks { lane: free(&self.lane), warp: free(&self.warp), block: free(&self.block) }
    }

    /// For each register, the lowest register of the same thread that holds the same element.
    pub fn representatives(&self) -> Vec<u32> {
        let echelon = Echelon::of(&self.reg);
        // The register found for a vector uses independent, that is the lowest possible, bits only.
        let of_bit: Vectors =
            self.reg.iter().enumerate().map(|(i, &c)| echelon.express(c).unwrap_or(1 << i)).collect();
        let mut all = vec![0u32];
        for bit in of_bit {
            let upper: Vec<u32> = all.iter().map(|r| r ^ bit as u32).collect();
            all.extend(upper);
        }
        all
    }
}
