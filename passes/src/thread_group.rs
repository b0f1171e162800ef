//! The warps of a CTA that run an operation together.

use linear_layout::target::TargetDesc;
use mlir_host::ir::{Attr, Op};
use ttopt_dialect::ttg::module_attrs;
use ttopt_dialect::ttg::ops::WarpSpecializePartitionsOp;

/// A range of warps of a CTA that hold tensors together and wait for each other at a barrier of their own: all of a
/// kernel's, or those of one partition of `ttg.warp_specialize`. Threads are numbered from the first one of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadGroup {
    /// The number of its first warp in the CTA.
    pub first_warp: u32,
    /// How many warps it has.
    pub warps: u32,
    /// The number of its barrier (PTX ISA, "bar"): 0 for the group that a kernel begins with, 1 and up for partitions.
    pub barrier: u32,
}

impl ThreadGroup {
    /// The group that runs `op`: that of the partition around it, else that of the module.
    ///
    /// # Errors
    /// When the module does not say how many warps there are, or a partition's number of warps is missing.
    pub fn of(op: Op<'_>) -> Result<ThreadGroup, String> {
        let mut at = op;
        while let Some(parent) = at.parent() {
            if WarpSpecializePartitionsOp::cast(parent).is_some() {
                return Self::of_partition(at, parent);
            }
            at = parent;
        }
        let warps = module_attrs::num_warps(op)
            .filter(|warps| *warps > 0)
            .ok_or("has no \"ttg.num-warps\": run --convert-triton-to-tritongpu first")?;
        Ok(ThreadGroup { first_warp: 0, warps, barrier: 0 })
    }

    /// The group of the partition that `inside` is at the top level of; `partitions` holds all of them.
    fn of_partition(inside: Op<'_>, partitions: Op<'_>) -> Result<ThreadGroup, String> {
        let number = inside.block().and_then(|block| block.parent_region()).map(|region| region.number());
        let specialize = partitions.parent();
        let list = |name: &str| specialize.and_then(|op| op.attr(name)).and_then(Attr::as_i32_array);
        let warps = list("partitionNumWarps").unwrap_or_default().into_iter().map(u32::try_from);
        let warps: Vec<u32> = warps
            .collect::<Result<_, _>>()
            .map_err(|_| "is beside a partition of a negative number of warps")?;
        let own = number.and_then(|number| Some((number, *warps.get(number)?)));
        let Some((number, own)) = own.filter(|(_, warps)| *warps > 0) else {
            return Err("is in a partition without a number of warps".to_owned());
        };
        // Partitions follow the warps that the kernel began with, in order, where nothing else was decided.
        let given = list("warpGroupStartIds").and_then(|starts| u32::try_from(*starts.get(number)?).ok());
        let first_warp = match (given, specialize) {
            (Some(first), _) => first,
            (None, Some(specialize)) => {
                let own = ThreadGroup::of(specialize)?.warps;
                warps[..number].iter().fold(own, |sum, warps| sum.saturating_add(*warps))
            }
            (None, None) => return Err("is in a partition of nothing".to_owned()),
        };
        Ok(ThreadGroup { first_warp, warps: own, barrier: number as u32 + 1 })
    }

    /// Its threads, on a target with warps of `target.lanes`.
    pub fn threads(&self, target: &TargetDesc) -> u32 {
        // Lowering refuses more than a CTA can have.
        self.warps.saturating_mul(target.lanes)
    }
}
