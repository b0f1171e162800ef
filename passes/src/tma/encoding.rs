//! `--triton-nvidia-optimize-descriptor-encoding`: the layout of the blocks of every descriptor in shared
//! memory.
//!
//! It is the same for all descriptors that control flow and calls may exchange; dots take their
//! operands in the same layouts ([`buffer_plans::tma_encoding`]).
//! Rows that are only gathered, for dots, are swizzled as the rows of a larger block. In clusters a block is divided
//! among CTAs as most of the tensors that are copied.

use super::webs::Webs;
use super::{is_load, moves_rows};
use crate::buffer_plans;
use crate::ir_util::layout_of;
use crate::machine::{self, error};
use crate::objective::weight;
use crate::tma::is_access;
use linear_layout::Encoding;
use linear_layout::encoding::NvmmaShared;
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, FunctionType, Op, Type, Value, Walk};
use mlir_host::match_op;
use mlir_host::pass::{Options, PassDef, PassResult};
use std::collections::HashMap;
use ttopt_dialect::tt::ops::{DescriptorReduceOp, DescriptorScatterOp, DescriptorStoreOp};
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_dialect::ttg::attrs::{encoding, encoding_attr};
use ttopt_dialect::ttg::module_attrs;
use ttopt_dialect::ttg::ops::LocalAllocOp;
use ttopt_dialect::ttg::types::MemDescType;

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
    if ops.iter().all(|op| open_values(*op).is_empty()) {
        return Ok(());
    }
    let target = machine::target(module)?;
    let uses = Uses::new(module, &ops, &target);
    for op in ops {
        for value in open_values(op) {
            value.set_type(encoded(op, value, &uses, &target)?);
        }
        let signature = op.attr("function_type").and_then(Attr::as_type).and_then(Type::as_function);
        let entry = op.regions().next().and_then(|region| region.first_block());
        if let (Some(signature), Some(entry)) = (signature, entry) {
            if signature.results().into_iter().any(is_open) {
                let pass = "--triton-rewrite-tensor-descriptor-to-pointer";
                return Err(error(op, format!("returns a tensor descriptor: run {pass} first")));
            }
            let inputs: Vec<Type<'_>> = entry.args().map(Value::ty).collect();
            let ty = FunctionType::new(op.context(), &inputs, &signature.results());
            op.set_attr("function_type", Attr::type_of(ty.ty()));
        }
    }
    Ok(())
}

/// How the descriptors of each web are used.
struct Uses<'c> {
    num_ctas: u64,
    webs: Webs<'c>,
    of_web: HashMap<usize, Use>,
}

/// How CTAs of a cluster divide a tensor among them.
type Division = Vec<Vec<u64>>;

#[derive(Default)]
struct Use {
    rows_one_by_one: bool,
    whole_blocks: bool,
    /// Whether buffers of the program hold what is loaded: those of dots.
    in_buffers: bool,
    /// The least rows that are moved one by one at once.
    least_rows: Option<u64>,
    /// How tensors that are copied are divided, and how often.
    divisions: Vec<(Division, f64)>,
}

/// The tensor that an access through a descriptor moves.
fn moved<'c>(op: Op<'c>) -> Option<Value<'c>> {
    match_op!(op, {
        DescriptorStoreOp(store) => Some(store.src()),
        DescriptorReduceOp(reduce) => Some(reduce.src()),
        DescriptorScatterOp(scatter) => Some(scatter.src()),
        _ => op.results().next(),
    })
}

/// The layout of a buffer that holds what `op` loads.
fn buffer_of<'c>(op: Op<'c>) -> Option<Attr<'c>> {
    let mut users = moved(op).filter(|_| is_load(op))?.uses().map(|(user, _)| user);
    users.find_map(|user| Some(MemDescType::cast(LocalAllocOp::cast(user)?.result().ty())?.encoding()))
}

/// How the buffer should be divided that holds what `op` moves.
fn division(op: Op<'_>) -> Option<Division> {
    let layout = buffer_of(op).or_else(|| layout_of(moved(op)?))?;
    Some(encoding(layout).ok()?.cga_layout())
}

impl<'c> Uses<'c> {
    fn new(module: Op<'c>, ops: &[Op<'c>], target: &TargetDesc) -> Self {
        let num_ctas = module_attrs::num_ctas(module).unwrap_or(1).into();
        let webs = Webs::new(module, Some(target), true, false);
        let mut this = Self { num_ctas, webs, of_web: HashMap::new() };
        let accesses = ops.iter().filter(|op| is_access(**op));
        for op in accesses {
            let Some(web) = this.webs.web_of(op.operand(0)) else { continue };
            let found = this.of_web.entry(web).or_default();
            if moves_rows(*op) {
                found.rows_one_by_one = true;
                let rows = moved(*op).and_then(|value| value.ty().as_tensor()).map(|ty| ty.dim(0) as u64);
                found.least_rows = found.least_rows.into_iter().chain(rows).min();
            } else {
                found.whole_blocks = true;
            }
            found.in_buffers |= buffer_of(*op).is_some();
            let Some(division) = division(*op).filter(|_| num_ctas > 1) else { continue };
            match found.divisions.iter_mut().find(|(known, _)| *known == division) {
                Some((_, count)) => *count += weight(*op),
                None => found.divisions.push((division, weight(*op))),
            }
        }
        this
    }

    /// The layout of the blocks of `value`, a `desc`: divided as most of what is copied, if it can be, or not at all.
    fn encoding(
        &self,
        value: Value<'c>,
        desc: TensorDescType<'c>,
        target: &TargetDesc,
    ) -> Result<NvmmaShared, String> {
        let none = Use::default();
        let found = self.webs.web_of(value).and_then(|web| self.of_web.get(&web)).unwrap_or(&none);
        // Without swizzle there are fewer copies, if rows are long.
        let swizzled = found.rows_one_by_one && !found.whole_blocks && found.in_buffers;
        let bits = self.num_ctas.trailing_zeros() as usize;
        let mut divisions = found.divisions.clone();
        divisions.sort_by(|a, b| b.1.total_cmp(&a.1));
        let rank = desc.shape().len();
        divisions.push((vec![vec![0; rank]; bits], 0.0));
        let mut result = Err(format!("{} is not divided among {} blocks", desc.ty(), self.num_ctas));
        for (division, _) in divisions {
            if division.len() != bits || division.iter().any(|basis| basis.len() != rank) {
                continue;
            }
            let split = division.iter().filter(|basis| basis.first() != Some(&0)).count();
            if found.least_rows.is_some_and(|rows| rows >> split < ROWS_OF_SWIZZLE) {
                continue;
            }
            result = if swizzled {
                buffer_plans::tma_rows_encoding(desc, &division, target)
            } else {
                buffer_plans::tma_encoding(desc, &division, target)
            };
            if found.rows_one_by_one {
                let fits = |layout: &NvmmaShared| buffer_plans::tma_rows_fit(desc, layout, target);
                result = result.and_then(|layout| fits(&layout).map(|()| layout));
            }
            if result.is_ok() {
                break;
            }
        }
        result
    }
}

/// Rows after which a swizzle repeats: fewer are not where copies of single rows would put them.
const ROWS_OF_SWIZZLE: u64 = 8;

/// The descriptors without a layout that an operation defines.
fn open_values<'c>(op: Op<'c>) -> Vec<Value<'c>> {
    let args = op.regions().flat_map(|region| region.blocks()).flat_map(|block| block.args());
    args.chain(op.results()).filter(|value| is_open(value.ty())).collect()
}

/// Whether `ty` is a descriptor without a layout.
fn is_open(ty: Type<'_>) -> bool {
    TensorDescType::cast(ty).is_some_and(|desc| desc.layout().is_none())
}

fn encoded<'c>(
    op: Op<'c>,
    value: Value<'c>,
    uses: &Uses<'c>,
    target: &TargetDesc,
) -> Result<Type<'c>, Reported> {
    let ty = value.ty();
    let desc = TensorDescType::cast(ty).ok_or_else(|| error(op, "has no tensor descriptor"))?;
    let layout = uses
        .encoding(value, desc, target)
        .and_then(|value| encoding_attr(op.context(), &Encoding::NvmmaShared(value)))
        .map_err(|reason| error(op, format!("{ty} has no layout in shared memory: {reason}")))?;
    match TensorDescType::new(&desc.shape(), desc.element(), Some(layout)) {
        Some(desc) => Ok(desc.ty()),
        None => Err(error(op, format!("no descriptor like {ty} has the layout {layout}"))),
    }
}
