//! The machine that layouts are made for, and the blocked layouts that fit it.

use crate::objective::Conversion;
use crate::thread_group::ThreadGroup;
use linear_layout::Encoding;
use linear_layout::encoding::{Blocked, Slice};
use linear_layout::target::{TargetDesc, UnknownTarget};
use mlir_host::asm::Reported;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Context, Op, TensorType};
use smallvec::SmallVec;
use std::cell::RefCell;
use ttopt_dialect::ttg::attrs::{encoding, encoding_attr};
use ttopt_dialect::ttg::module_attrs;

/// How many threads share a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Warps of a block.
    pub num_warps: u64,
    /// Threads of a warp.
    pub threads_per_warp: u64,
    /// CTAs of a cluster.
    pub num_ctas: u64,
    /// The GPU, where its name is known: [`target`].
    pub target: Option<TargetDesc>,
}

/// Warps of a CTA with which latencies count in full: with fewer of them there are as many more CTAs on a multiprocessor.
const WARPS_WAITING: u64 = 4;

/// `target` for CTAs of so many warps: others fill part of what small ones wait for.
pub fn for_warps(mut target: TargetDesc, num_warps: u64) -> TargetDesc {
    let part = (num_warps as f64 / WARPS_WAITING as f64).min(1.0);
    for latency in [
        &mut target.cost.shuffle_latency,
        &mut target.cost.fixed_shuffle_latency,
        &mut target.cost.shared_latency,
    ] {
        *latency *= part;
    }
    target
}

fn power_of_two<'c>(op: Op<'c>, name: &str, value: Option<u32>) -> Result<u64, Reported> {
    match value {
        Some(value) if value.is_power_of_two() => Ok(value.into()),
        Some(value) => Err(error(op, format!("{name} must be a power of two, but is {value}"))),
        None => Err(error(
            op,
            format!("needs the module attribute {name}: run convert-triton-to-tritongpu first"),
        )),
    }
}

/// Reports an error at `op`.
pub fn error(op: Op<'_>, message: impl AsRef<str>) -> Reported {
    op.error(message)
}

/// Reports at `op` that a pass met what it should have made impossible: a bug, not something unsupported.
pub fn internal(op: Op<'_>, what: impl AsRef<str>) -> Reported {
    op.error(format!("internal error: {}", what.as_ref()))
}

/// The GPU that a module is compiled for, with costs that hold for CTAs of its warps. Whoever plans asks here, so that what the
/// engine estimated is what is allocated and emitted.
///
/// # Errors
/// When the module does not say, or names none that is known.
pub fn target(module: Op<'_>) -> Result<TargetDesc, Reported> {
    let name = module_attrs::target(module)
        .ok_or_else(|| error(module, "has no \"ttg.target\": run --convert-triton-to-tritongpu first"))?;
    parsed(module, name).map_err(|err| error(module, err.to_string()))
}

/// The GPU of this name, as code of `module` may use it.
fn parsed(module: Op<'_>, name: &str) -> Result<TargetDesc, UnknownTarget> {
    let target = TargetDesc::parse(name)?.with_registers(module_attrs::max_registers(module));
    Ok(for_warps(target, module_attrs::module_num_warps(module).map_or(WARPS_WAITING, u64::from)))
}

impl Machine {
    /// What the attributes of a module say.
    ///
    /// # Errors
    /// When one is missing or is no power of two.
    pub fn of(module: Op<'_>) -> Result<Machine, Reported> {
        let warps = module_attrs::module_num_warps(module);
        let threads = module_attrs::threads_per_warp(module);
        let num_warps = power_of_two(module, module_attrs::NUM_WARPS, warps)?;
        let target = module_attrs::target(module).and_then(|name| parsed(module, name).ok());
        Ok(Machine {
            num_warps,
            threads_per_warp: power_of_two(module, module_attrs::THREADS_PER_WARP, threads)?,
            num_ctas: power_of_two(
                module,
                module_attrs::NUM_CTAS,
                module_attrs::num_ctas(module).or(Some(1)),
            )?,
            target,
        })
    }

    /// The same for tensors of `op`, which the warps of its partition hold where it is in one.
    ///
    /// # Errors
    /// When their number is missing or no power of two.
    pub fn at(&self, op: Op<'_>) -> Result<Machine, Reported> {
        let group = ThreadGroup::of(op).map_err(|message| error(op, message))?;
        let num_warps = power_of_two(op, module_attrs::NUM_WARPS, Some(group.warps))?;
        Ok(Machine { num_warps, ..self.clone() })
    }

    /// Threads of a block.
    pub fn threads(&self) -> u64 {
        self.num_warps * self.threads_per_warp
    }

    /// The most bits that one thread reads or writes in global memory at once.
    pub fn vector_bits(&self) -> u64 {
        // Wider accesses exist on sm_100; blocks of 128 bits serve all.
        self.target.as_ref().map_or(128, |target| u64::from(target.max_global_vector_bits.min(128)))
    }

    /// CTAs of the cluster divide the slow dimensions first.
    fn divide_among_ctas(&self, shape: &[i64], order: &[usize]) -> (SmallVec<[u64; 4]>, Vec<Vec<u64>>) {
        let mut split: SmallVec<[u64; 4]> = SmallVec::from_elem(1, shape.len());
        let mut left = self.num_ctas;
        for &d in order.iter().rev() {
            split[d] = left.min(shape[d].max(1) as u64);
            left /= split[d];
        }
        let mut cga = Vec::new();
        for &d in order {
            let mut at = 1;
            while at < split[d] {
                let mut basis = vec![0; shape.len()];
                basis[d] = at;
                cga.push(basis);
                at *= 2;
            }
        }
        while 1 << cga.len() < self.num_ctas {
            cga.push(vec![0; shape.len()]);
        }
        (split, cga)
    }

    /// The blocked layout with a box of `size_per_thread` elements in each
    /// thread, threads and warps laid out along `order`.
    pub fn blocked(&self, shape: &[i64], size_per_thread: &[u64], order: &[usize]) -> Blocked {
        self.blocked_with_warps(shape, size_per_thread, order, order)
    }

    /// As [`blocked`](Self::blocked), with warps along `warp_order`.
    pub fn blocked_with_warps(
        &self,
        shape: &[i64],
        size_per_thread: &[u64],
        order: &[usize],
        warp_order: &[usize],
    ) -> Blocked {
        let (split, cga) = self.divide_among_ctas(shape, order);
        let places = |d: usize| (shape[d].max(1) as u64 / split[d] / size_per_thread[d]).max(1);
        let mut threads: Vec<u64> = vec![1; shape.len()];
        let mut warps = threads.clone();
        let (mut threads_left, mut warps_left) = (self.threads_per_warp, self.num_warps);
        for (i, &d) in order.iter().enumerate() {
            let last = i + 1 == order.len();
            threads[d] = if last { threads_left } else { threads_left.min(places(d)) };
            threads_left /= threads[d];
        }
        for (i, &d) in warp_order.iter().enumerate() {
            let last = i + 1 == warp_order.len();
            warps[d] = if last { warps_left } else { warps_left.min((places(d) / threads[d]).max(1)) };
            warps_left /= warps[d];
        }
        Blocked {
            size_per_thread: size_per_thread.to_vec(),
            threads_per_warp: threads,
            warps_per_cta: warps,
            order: order.to_vec(),
            cga,
        }
    }

    /// The layout of tensors that nothing else is known about: one element at
    /// a time, the last dimension fastest.
    pub fn default_blocked(&self, shape: &[i64]) -> Blocked {
        let order: Vec<usize> = (0..shape.len()).rev().collect();
        self.blocked(shape, &vec![1; shape.len()], &order)
    }
}

/// Makes layout attributes, each once, and remembers what converting between them costs.
pub struct Layouts<'c> {
    ctx: Context<'c>,
    /// The machine.
    pub machine: Machine,
    defaults: RefCell<FastMap<SmallVec<[i64; 4]>, Attr<'c>>>,
    slices: RefCell<FastMap<(usize, Attr<'c>), Attr<'c>>>,
    /// Layouts that operands of dots have only until matrix instructions are chosen for these.
    provisional: RefCell<FastSet<Attr<'c>>>,
    /// What is known of conversions from a type to a layout.
    pub(crate) conversions: RefCell<FastMap<(TensorType<'c>, Attr<'c>), Conversion>>,
}

impl<'c> Layouts<'c> {
    /// Layouts for a machine.
    pub fn new(ctx: Context<'c>, machine: Machine) -> Self {
        Self {
            ctx,
            machine,
            defaults: RefCell::default(),
            slices: RefCell::default(),
            provisional: RefCell::default(),
            conversions: RefCell::default(),
        }
    }

    /// Notes the layouts that values have only until matrix instructions are chosen for the dots that take them: a conversion to
    /// one of them costs nothing, for it will not be done.
    pub(crate) fn set_provisional(&self, provisional: FastSet<Attr<'c>>) {
        *self.provisional.borrow_mut() = provisional;
    }

    /// Whether matrix instructions are still to be chosen for any dots.
    pub(crate) fn awaits_instructions(&self) -> bool {
        !self.provisional.borrow().is_empty()
    }

    /// Whether nothing will be converted to `layout`.
    pub(crate) fn is_provisional(&self, layout: Attr<'c>) -> bool {
        self.provisional.borrow().contains(&layout)
    }

    /// The attribute of a blocked layout.
    ///
    /// # Errors
    /// When the layout is not valid.
    pub fn blocked(&self, blocked: Blocked) -> Result<Attr<'c>, String> {
        encoding_attr(self.ctx, &Encoding::Blocked(blocked))
    }

    /// The attribute of any layout.
    ///
    /// # Errors
    /// When the layout is not valid.
    pub fn attr(&self, value: &Encoding) -> Result<Attr<'c>, String> {
        encoding_attr(self.ctx, value)
    }

    /// The default layout of tensors of `shape`.
    ///
    /// # Errors
    /// For shapes that cannot be laid out.
    pub fn default(&self, shape: &[i64]) -> Result<Attr<'c>, String> {
        if let Some(found) = self.defaults.borrow().get(shape) {
            return Ok(*found);
        }
        if shape.is_empty() {
            return Err("a tensor without dimensions has no layout".to_owned());
        }
        let made = self.blocked(self.machine.default_blocked(shape))?;
        self.defaults.borrow_mut().insert(SmallVec::from_slice(shape), made);
        Ok(made)
    }

    /// `#ttg.slice<{dim = axis, parent = parent}>`
    ///
    /// # Errors
    /// When the parent has no such dimension.
    pub fn slice(&self, axis: usize, parent: Attr<'c>) -> Result<Attr<'c>, String> {
        if let Some(found) = self.slices.borrow().get(&(axis, parent)) {
            return Ok(*found);
        }
        let value = Encoding::Slice(Slice { dim: axis, parent: Box::new(encoding(parent)?) });
        let made = encoding_attr(self.ctx, &value)?;
        self.slices.borrow_mut().insert((axis, parent), made);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_count_in_full_from_four_warps_on() {
        let target = TargetDesc::parse("cuda:90").expect("a target");
        let of = |warps| for_warps(target.clone(), warps).cost;
        for warps in [4, 8, 32] {
            assert_eq!(of(warps), target.cost);
        }
        let (one, two) = (of(1), of(2));
        assert_eq!(4.0 * one.shared_latency, target.cost.shared_latency);
        assert_eq!(2.0 * two.shuffle_latency, target.cost.shuffle_latency);
        // What keeps units busy does so for however many warps.
        assert_eq!((one.shuffle, one.wavefront), (target.cost.shuffle, target.cost.wavefront));
    }
}
