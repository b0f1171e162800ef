//! What moving and recomputing data costs, in cycles of one block.

use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::coalesce::AccessFacts;
use crate::machine::{Layouts, Machine};
use crate::rules::is_cheap;
use linear_layout::plan::{ConversionPlan, VectorPlan};
use linear_layout::{Dim, target::TargetDesc};
use mlir_host::ir::{Attr, Op, TensorType};
use std::cell::OnceCell;
use std::collections::HashMap;
use ttopt_dialect::tt::ops::LoadOp;
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::layout::{equivalent, to_linear_layout};

/// A shape, the width of its elements, and a pair of layouts.
type Key<'c> = (smallvec::SmallVec<[i64; 4]>, u32, Attr<'c>, Attr<'c>);

/// What a barrier costs besides its own cycles: warps that could have gone on wait.
const BARRIER: f64 = 56.0;

/// Arithmetic runs mostly while other warps wait for memory, and casts that
/// follow a conversion instead of standing before it let loads go to shared
/// memory directly.
const OVERLAP: f64 = 1.0 / 3.0;

/// Costs, each computed once.
pub struct Costs<'c> {
    module: Op<'c>,
    conversions: HashMap<Key<'c>, f64>,
    /// Made when the first access to memory is to be moved.
    analysis: OnceCell<AxisInfoAnalysis<'c>>,
}

/// Bits of an element in a register.
pub fn element_bits(ty: TensorType<'_>) -> u32 {
    let element = ty.element();
    if pointee(element).is_some() { 64 } else { element.bits().unwrap_or(32).next_power_of_two().max(8) }
}

fn target(machine: &Machine) -> Option<&TargetDesc> {
    machine.target.as_ref()
}

impl<'c> Costs<'c> {
    /// Costs of the operations of a module.
    pub fn new(module: Op<'c>) -> Self {
        Self { module, conversions: HashMap::new(), analysis: OnceCell::new() }
    }

    /// Of converting a tensor of type `ty` to another layout.
    pub fn conversion(&mut self, ty: TensorType<'c>, to: Attr<'c>, layouts: &Layouts<'c>) -> f64 {
        let Some(from) = ty.encoding() else { return f64::INFINITY };
        let bits = element_bits(ty);
        let key = (ty.shape(), bits, from, to);
        if let Some(cost) = self.conversions.get(&key) {
            return *cost;
        }
        let plan = || {
            let source = to_linear_layout(from, &ty.shape()).ok()?;
            let destination = to_linear_layout(to, &ty.shape()).ok()?;
            if source == destination {
                return Some(0.0);
            }
            let plan = ConversionPlan::new(&source, &destination, bits, target(&layouts.machine)?).ok()?;
            Some(plan.cost.cycles + plan.cost.barriers.min(1) as f64 * BARRIER)
        };
        // Where there is no plan, something must be better.
        let cost = plan().unwrap_or(1e6);
        self.conversions.insert(key, cost);
        cost
    }

    /// Of computing `op` again with results of type `ty` in layout `to`;
    /// `None` where it must not be copied.
    pub fn copy(&self, op: Op<'c>, ty: TensorType<'c>, to: Attr<'c>, layouts: &Layouts<'c>) -> Option<f64> {
        let layout = to_linear_layout(to, &ty.shape()).ok()?;
        let load = LoadOp::cast(op);
        // The same computation on the same registers: one of the two goes.
        if load.is_none() && is_cheap(op) && equivalent(to, ty.encoding()?, &ty.shape()) {
            return Some(0.0);
        }
        let warps = layouts.machine.num_warps as f64;
        let alu = target(&layouts.machine).map_or(0.5, |target| target.cost.alu);
        // Registers that hold copies are computed once.
        let distinct =
            1u64 << (layout.in_bits(Dim::REGISTER) - layout.free_variable_mask(Dim::REGISTER).count_ones());
        let per_warp = distinct as f64;
        if op.num_operands() == 0
            || matches!(
                op.name(),
                "tt.splat" | "tt.broadcast" | "tt.expand_dims" | "tt.trans" | "tt.reshape" | "tt.join"
            )
        {
            return Some(0.0);
        }
        if is_cheap(op) {
            // Of neighbouring pointers only the first is computed: the rest are offsets of it.
            let pointers = pointee(ty.element()).is_some();
            let wide = if element_bits(ty) == 64 && !pointers { 2.0 } else { 1.0 };
            return Some(per_warp * warps * alu * wide * OVERLAP);
        }
        load.filter(|load| load.is_volatile() != Some(true))?;
        let facts = AccessFacts::of(op, self.analysis.get_or_init(|| AxisInfoAnalysis::new(self.module)))?;
        let machine = target(&layouts.machine)?;
        let plan = VectorPlan::for_addresses(&layout, element_bits(ty), &facts.addresses(), machine).ok()?;
        // An instruction of a warp is served line by line. Sectors that are used
        // in full are taken to be neighbours, four in a line; others to be alone.
        let lanes = 1u64 << (layout.in_bits(Dim::LANE) - layout.free_variable_mask(Dim::LANE).count_ones());
        let bytes = lanes * u64::from(plan.vec_elems) * u64::from(plan.elem_bits.div_ceil(8));
        let lines = plan.sectors as f64 / if plan.sectors * 32 <= bytes { 4.0 } else { 1.0 };
        let lines = lines.max(1.0);
        Some(plan.accesses.len() as f64 * warps * (1.0 + lines))
    }
}
