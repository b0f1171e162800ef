//! Verification that layouts fit, shared by the operations of all dialects.

use super::attrs::{encoding, is_distributed};
use super::layout::to_linear_layout;
use super::module_attrs;
use linear_layout::Dim;
use mlir_host::def::VerifyResult;
use mlir_host::ir::{Attr, Op, TensorType, Value};
use mlir_host::traits::Trait;

/// Every operand, result and block argument has an encoding that fits its
/// shape and the module's number of warps, threads per warp and CTAs.
pub const TENSOR_LAYOUTS: Trait = Trait::Verify("tensor layouts", tensor_layouts);

/// Applies `check` to the operands, the results and the arguments of entry blocks.
pub(crate) fn each_value<'c>(op: Op<'c>, mut check: impl FnMut(Value<'c>) -> VerifyResult) -> VerifyResult {
    for (i, value) in op.operands().enumerate() {
        check(value).map_err(|reason| format!("operand #{i}: {reason}"))?;
    }
    for (i, value) in op.results().enumerate() {
        check(value).map_err(|reason| format!("result #{i}: {reason}"))?;
    }
    for region in op.regions() {
        for (i, value) in region.first_block().into_iter().flat_map(|block| block.args()).enumerate() {
            check(value).map_err(|reason| format!("block argument #{i}: {reason}"))?;
        }
    }
    Ok(())
}

fn tensor_layouts(op: Op<'_>) -> VerifyResult {
    let (mut machine, mut checked) = (None, None);
    each_value(op, |value| {
        // Operands and results are often of one type.
        if checked.replace(value.ty()) == Some(value.ty()) {
            return Ok(());
        }
        let Some(tensor) = value.ty().as_tensor() else { return Ok(()) };
        let Some(attr) = tensor.encoding() else { return Ok(()) };
        let machine = machine.get_or_insert_with(|| Machine::of(op));
        verify_tensor(tensor, attr, machine)
    })
}

/// What the surroundings of an operation say about the machine; absent
/// numbers are not checked.
struct Machine {
    warps: Option<u32>,
    threads: Option<u32>,
    ctas: Option<u32>,
}

impl Machine {
    fn of(op: Op<'_>) -> Self {
        Self {
            warps: module_attrs::num_warps(op),
            threads: module_attrs::threads_per_warp(op),
            ctas: module_attrs::num_ctas(op),
        }
    }
}

/// The most elements of a thread, copies included: twice those of the largest tensor ([`crate::tt`]) in one warp.
const MOST_REGISTERS: u64 = 1 << 16;

fn verify_tensor(tensor: TensorType<'_>, attr: Attr<'_>, machine: &Machine) -> VerifyResult {
    if !is_distributed(attr) {
        return if attr.def().is_some_and(|def| def.dialect == "ttg") {
            Err(format!("{attr} does not distribute a tensor over threads"))
        } else {
            Ok(())
        };
    }
    let unfit = |reason: String| match (tensor.rank(), encoding(attr)) {
        (rank, Ok(value)) if rank != value.rank() => {
            format!("{attr} has {} dimensions, but '{}' has {rank}", value.rank(), tensor.ty())
        }
        _ => format!("'{}': {reason}", tensor.ty()),
    };
    let layout = to_linear_layout(attr, tensor.sizes()).map_err(unfit)?;
    let registers = layout.in_size(Dim::REGISTER).unwrap_or(1);
    if registers > MOST_REGISTERS {
        let ty = tensor.ty();
        return Err(format!(
            "'{ty}': a thread would hold {registers} elements, the most are {MOST_REGISTERS}"
        ));
    }
    for (what, name, dim, wanted) in [
        ("warps", module_attrs::NUM_WARPS, Dim::WARP, machine.warps),
        ("threads per warp", module_attrs::THREADS_PER_WARP, Dim::LANE, machine.threads),
        ("CTAs", module_attrs::NUM_CTAS, Dim::BLOCK, machine.ctas.or(Some(1))),
    ] {
        let (Some(wanted), size) = (wanted, layout.in_size(dim).unwrap_or(1)) else { continue };
        if size != u64::from(wanted) {
            return Err(format!("{attr} is for {size} {what}, but here there are {wanted} ({name})"));
        }
    }
    Ok(())
}
