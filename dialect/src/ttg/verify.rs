//! Verification of layouts, shared by the operations of all dialects.

use super::attrs::{encoding, is_distributed};
use super::layout::to_linear_layout;
use super::module_attrs;
use super::types::MemDescType;
use linear_layout::{Dim, Encoding};
use mlir_host::def::VerifyResult;
use mlir_host::ir::{Attr, Op, TensorType, Value};
use mlir_host::traits::Trait;

/// Every operand, result and block argument has an encoding that fits its
/// shape and the module's number of warps, threads per warp and CTAs.
pub const TENSOR_LAYOUTS: Trait = Trait::Verify("tensor layouts", tensor_layouts);
/// As [`TENSOR_LAYOUTS`], for memory descriptors.
pub const MEMDESC_LAYOUTS: Trait = Trait::Verify("memdesc layouts", memdesc_layouts);

/// Applies `check` to the operands, the results and the arguments of entry blocks.
fn each_value<'c>(op: Op<'c>, mut check: impl FnMut(Value<'c>) -> VerifyResult) -> VerifyResult {
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

fn memdesc_layouts(op: Op<'_>) -> VerifyResult {
    let mut ctas = None;
    each_value(op, |value| {
        let Some(ty) = MemDescType::cast(value.ty()) else { return Ok(()) };
        let value = encoding(ty.encoding())?;
        let wanted = *ctas.get_or_insert_with(|| module_attrs::num_ctas(op).unwrap_or(1));
        let blocks = 1u64 << value.cga_layout().len().min(32);
        if matches!(value, Encoding::TensorMemoryScales(_)) || blocks == u64::from(wanted) {
            return Ok(());
        }
        Err(format!(
            "{} is for {blocks} CTAs, but here there are {wanted} ({})",
            ty.encoding(),
            module_attrs::NUM_CTAS
        ))
    })
}

/// Verifies the attributes of the dialect on operations: those of modules.
pub(super) fn op_attr(op: Op<'_>, name: &str, attr: Attr<'_>) -> VerifyResult {
    let positive = || match attr.as_int() {
        Some(value) if attr.ty().is_some_and(|ty| ty.is_int(32)) => {
            if value > 0 && value.count_ones() == 1 {
                Ok(())
            } else {
                Err(format!("attribute '{name}' must be a power of two, got {value}"))
            }
        }
        _ => Err(format!("attribute '{name}' must be a 32-bit integer, got {attr}")),
    };
    // Functions may run on another number of warps than the module says.
    let (on_module, on_function) = (op.name() == "builtin.module", op.name().ends_with("func"));
    match name {
        module_attrs::NUM_WARPS if !on_module && !on_function => {
            Err(format!("attribute '{name}' is only for modules and functions"))
        }
        module_attrs::NUM_CTAS | module_attrs::THREADS_PER_WARP | module_attrs::TARGET if !on_module => {
            Err(format!("attribute '{name}' is only for modules"))
        }
        module_attrs::NUM_WARPS | module_attrs::NUM_CTAS | module_attrs::THREADS_PER_WARP => positive(),
        module_attrs::TARGET if attr.as_str().is_none() => {
            Err(format!("attribute '{name}' must be a string, got {attr}"))
        }
        _ => Ok(()),
    }
}
