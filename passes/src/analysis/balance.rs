//! What an iteration of a loop asks of a multiprocessor: bytes of memory, and cycles of its units.

use super::axis_info::AxisInfoAnalysis;
use super::registers::tensor_words;
use crate::ir_util::is_dot;
use crate::objective::arithmetic;
use crate::plans::AccessFacts;
use linear_layout::target::TargetDesc;
use mlir_host::ir::{Op, Type, Value, Walk};
use mlir_host::upstream::Dialect;
use ttopt_dialect::interfaces::Dot;
use ttopt_dialect::tt::ops::{DescriptorLoadOp, LoadOp};
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::AsyncTmaCopyGlobalToLocalOp;

/// An iteration of a loop, its nested regions once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Balance {
    /// Bytes that a CTA loads.
    pub bytes: f64,
    /// Cycles of a multiprocessor for dots and for arithmetic of floating-point numbers.
    pub cycles: f64,
}

impl Balance {
    /// Of the loop `around`, whose CTAs have `warps` warps.
    pub fn of<'c>(around: Op<'c>, warps: u64, axis: &AxisInfoAnalysis<'c>, target: &TargetDesc) -> Self {
        let mut balance = Balance::default();
        around.walk(&mut |op| {
            if op != around {
                let one = Self::of_one(op, warps, axis, target);
                balance.bytes += one.bytes;
                balance.cycles += one.cycles;
            }
            Walk::Advance
        });
        balance
    }

    /// Of one operation.
    pub fn of_one<'c>(op: Op<'c>, warps: u64, axis: &AxisInfoAnalysis<'c>, target: &TargetDesc) -> Self {
        let mut balance = Balance { bytes: loaded(op, axis), cycles: 0.0 };
        balance.add(op, warps as f64, target);
        balance
    }

    /// Cycles of a multiprocessor for the dots of an iteration of `around`.
    pub fn of_dots(around: Op<'_>, target: &TargetDesc) -> f64 {
        let mut balance = Balance::default();
        around.walk(&mut |op| {
            if is_dot(op) {
                balance.add(op, 1.0, target);
            }
            Walk::Advance
        });
        balance.cycles
    }

    /// Whether the memory needs longer than the multiprocessor's units.
    pub fn is_bound_by_memory(&self, target: &TargetDesc) -> bool {
        self.bytes > self.cycles * target.cost.memory_bytes
    }

    fn add(&mut self, op: Op<'_>, warps: f64, target: &TargetDesc) {
        let cost = &target.cost;
        let Some(result) = op.results().next() else { return };
        if let Some([a, ..]) = Dot::operands(op).filter(|_| is_dot(op)) {
            let (Some((sums, _)), Some((_, bits))) = (elements(result.ty()), elements(a.ty())) else {
                return;
            };
            let depth = shape(a.ty()).and_then(|shape| shape.last().copied()).unwrap_or(1);
            self.cycles += sums * depth as f64 / cost.multiply_adds * (bits / 16.0);
        } else if result.ty().as_tensor().is_some_and(|ty| ty.element().is_float())
            && matches!(Dialect::of(op), Some(Dialect::Math | Dialect::Arith))
        {
            self.cycles += tensor_words(result) as f64 * warps * arithmetic::cycles(op, cost);
        }
    }
}

/// Bytes that `op` reads of global memory, elements of one address once.
fn loaded<'c>(op: Op<'c>, axis: &AxisInfoAnalysis<'c>) -> f64 {
    let bytes = |ty| elements(ty).map_or(0.0, |(count, bits)| count * bits / 8.0);
    if AsyncTmaCopyGlobalToLocalOp::cast(op).is_some() {
        // Its barrier is eight bytes more.
        let buffers = op.operands().map(Value::ty).filter(|ty| MemDescType::cast(*ty).is_some());
        return buffers.map(bytes).sum();
    }
    if let Some(load) = DescriptorLoadOp::cast(op) {
        return bytes(load.result().ty());
    }
    let Some(load) = LoadOp::cast(op) else { return 0.0 };
    let repeated = AccessFacts::of(op, axis).map_or(1, |facts| facts.repeated());
    bytes(load.result().ty()) / repeated as f64
}

/// The shape of a tensor, in registers or in shared memory.
fn shape(ty: Type<'_>) -> Option<Vec<i64>> {
    ty.as_tensor().map(|ty| ty.shape().to_vec()).or_else(|| Some(MemDescType::cast(ty)?.shape().to_vec()))
}

/// The number of elements of a tensor, and the bits of each.
fn elements(ty: Type<'_>) -> Option<(f64, f64)> {
    let element = ty.as_tensor().map(|ty| ty.element()).or_else(|| Some(MemDescType::cast(ty)?.element()))?;
    let bits = if pointee(element).is_some() { 64 } else { element.bits()? };
    Some((shape(ty)?.iter().map(|size| *size as f64).product(), f64::from(bits)))
}
