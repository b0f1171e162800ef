//! `--triton-nvidia-optimize-descriptor-encoding`: the layout of the blocks of every descriptor in shared
//! memory.
//!
//! It follows from the type of the descriptor alone ([`buffer_plans::tma_encoding`]), so that all values that
//! control flow and calls may exchange agree; matrix products take their operands in the same layouts.

use crate::buffer_plans;
use crate::machine::{self, error};
use linear_layout::Encoding;
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, FunctionType, Op, Type, Value, Walk};
use mlir_host::pass::{Options, PassDef, PassResult};
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_dialect::ttg::attrs::encoding_attr;

/// The pass.
pub static OPTIMIZE_DESCRIPTOR_ENCODING: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    ..PassDef::new(
        "triton-nvidia-optimize-descriptor-encoding",
        "Give tensor descriptors the layouts of their blocks in shared memory",
        run,
    )
};

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let mut ops = Vec::new();
    module.walk(&mut |op| {
        ops.push(op);
        Walk::Advance
    });
    let mut target = None;
    for op in ops {
        let args = op.regions().flat_map(|region| region.blocks()).flat_map(|block| block.args());
        let open: Vec<Value<'_>> = args.chain(op.results()).filter(|value| is_open(value.ty())).collect();
        let signature = op.attr("function_type").and_then(Attr::as_type).and_then(Type::as_function);
        let signature = signature.filter(|ty| ty.inputs().into_iter().chain(ty.results()).any(is_open));
        if open.is_empty() && signature.is_none() {
            continue;
        }
        let target = match &target {
            Some(target) => target,
            None => target.insert(machine::target(module)?),
        };
        for value in open {
            value.set_type(encoded(op, value.ty(), target)?);
        }
        if let Some(ty) = signature {
            let ty = FunctionType::new(
                op.context(),
                &all_encoded(op, ty.inputs(), target)?,
                &all_encoded(op, ty.results(), target)?,
            );
            let ty = ty.ty();
            op.set_attr("function_type", Attr::type_of(ty));
        }
    }
    Ok(())
}

/// Whether `ty` is a descriptor without a layout.
fn is_open(ty: Type<'_>) -> bool {
    TensorDescType::cast(ty).is_some_and(|desc| desc.layout().is_none())
}

fn encoded<'c>(op: Op<'c>, ty: Type<'c>, target: &TargetDesc) -> Result<Type<'c>, Reported> {
    let Some(desc) = TensorDescType::cast(ty).filter(|desc| desc.layout().is_none()) else { return Ok(ty) };
    let layout = buffer_plans::tma_encoding(desc, target)
        .and_then(|value| encoding_attr(op.context(), &Encoding::NvmmaShared(value)))
        .map_err(|reason| error(op, format!("{ty} has no layout in shared memory: {reason}")))?;
    match TensorDescType::new(&desc.shape(), desc.element(), Some(layout)) {
        Some(desc) => Ok(desc.ty()),
        None => Err(error(op, format!("no descriptor like {ty} has the layout {layout}"))),
    }
}

fn all_encoded<'c>(op: Op<'c>, types: Vec<Type<'c>>, target: &TargetDesc) -> Result<Vec<Type<'c>>, Reported> {
    types.into_iter().map(|ty| encoded(op, ty, target)).collect()
}
