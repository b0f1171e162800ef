//! How the layouts of an operation's operands and results depend on each
//! other: one place that conversion to TritonGPU and the layout engine share.

use crate::ir_util::is_dot;
use crate::machine::Layouts;
use crate::tma::is_load;
use linear_layout::encoding::{DotOperand, Linear};
use linear_layout::{Dim, Encoding, LinearLayout};
use mlir_host::ir::{Attr, Op, TensorType, Value};
use mlir_host::match_op;
use mlir_host::upstream::{ConstantOp, Dialect, DivFOp, DivSIOp, DivUIOp, RemFOp, RemSIOp, RemUIOp};
use ttopt_dialect::tt::ops::{
    AddPtrOp, ApproxDivFOp, AtomicCasOp, AtomicLoadOp, AtomicPollOp, AtomicRmwOp, AtomicStoreOp, BitcastOp,
    BroadcastOp, CallOp, CatOp, ClampFOp, DotOp, DotScaledOp, ElementwiseInlineAsmOp, ExpandDimsOp,
    ExternElementwiseOp, FpToFpOp, FuncOp, GatherOp, IntToPtrOp, JoinOp, LoadOp, MakeRangeOp,
    MapElementwiseOp, MulhiUIOp, PreciseDivFOp, PreciseSqrtOp, PtrToIntOp, ReduceOp, ReshapeOp, ReturnOp,
    ScanOp, SplatOp, SplitOp, StoreOp, TransOp,
};
use ttopt_dialect::ttg::attrs::{self, encoding};
use ttopt_dialect::ttg::infer;
use ttopt_dialect::ttg::layout::{equivalent, reorders_in_place, to_linear_layout};
use ttopt_dialect::ttg::ops::{ConvertLayoutOp, Fp4ToFpOp, LocalAllocOp, LocalLoadOp, LocalStoreOp};

/// What an operation demands of layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// No operands, or scalars: results may have any layout.
    Source,
    /// All tensors have one layout.
    Same,
    /// As [`Same`](Rule::Same), in a blocked layout: Triton's lowering of scans has no other.
    Scan,
    /// As [`Same`](Rule::Same), and the access to memory has a preference.
    Memory,
    /// The result has the operand's layout: the operand is repeated.
    Broadcast,
    /// The operand has the slice of the result's layout.
    ExpandDims(usize),
    /// The result has the slice of the operands' layout.
    Reduce(usize),
    /// The layout is permuted.
    Trans,
    /// The layout is reshaped.
    Reshape,
    /// The elements may go anywhere.
    ReshapeAny,
    /// A new last dimension.
    Join,
    /// The last dimension is removed.
    Split,
    /// Pairs along a dimension become two elements each.
    Unpack(usize),
    /// Two tensors one after the other.
    Cat,
    /// Indices and result have one layout.
    Gather,
    /// Operands are the dot operands of the result's layout.
    Dot,
    /// The accumulator has the layout of the result.
    DotScaled,
    /// Moves data to another layout.
    Convert,
    /// Operands and results may each have any layout.
    Any,
    /// Passes values on: `scf`, `cf`, calls and returns.
    Control,
}

/// The rule of `op`; `None` for operations that are not known to work on tensors.
pub fn rule(op: Op<'_>) -> Option<Rule> {
    let Some(def) = op.def() else { return upstream_rule(op) };
    let axis = |axis: i64| usize::try_from(axis).ok();
    Some(match_op!(op, {
        ConvertLayoutOp => Rule::Convert,
        LoadOp | StoreOp | AtomicRmwOp | AtomicCasOp | AtomicLoadOp | AtomicStoreOp => Rule::Memory,
        AddPtrOp | BitcastOp | IntToPtrOp | PtrToIntOp | FpToFpOp | ClampFOp | PreciseSqrtOp | PreciseDivFOp
        | ApproxDivFOp | MulhiUIOp | ExternElementwiseOp | ElementwiseInlineAsmOp | MapElementwiseOp
        | AtomicPollOp => Rule::Same,
        SplatOp | MakeRangeOp => Rule::Source,
        BroadcastOp => Rule::Broadcast,
        ExpandDimsOp(expand) => Rule::ExpandDims(axis(expand.axis())?),
        ReduceOp(reduce) => Rule::Reduce(axis(reduce.axis())?),
        TransOp => Rule::Trans,
        ReshapeOp(reshape) if reshape.allow_reorder().is_some() => Rule::ReshapeAny,
        ReshapeOp => Rule::Reshape,
        JoinOp => Rule::Join,
        SplitOp => Rule::Split,
        CatOp => Rule::Cat,
        GatherOp => Rule::Gather,
        DotOp => Rule::Dot,
        DotScaledOp => Rule::DotScaled,
        ScanOp => Rule::Scan,
        CallOp | ReturnOp | FuncOp => Rule::Control,
        Fp4ToFpOp(unpack) => Rule::Unpack(axis(unpack.axis())?),
        // Any layout writes to memory and reads from it.
        LocalAllocOp | LocalStoreOp | LocalLoadOp => Rule::Any,
        _ => return (def.dialect() == "tt").then_some(Rule::Any),
    }))
}

/// The rule of an operation of MLIR's.
fn upstream_rule(op: Op<'_>) -> Option<Rule> {
    match Dialect::of(op)? {
        Dialect::Ub => Some(Rule::Source),
        Dialect::Arith if op.num_operands() == 0 => Some(Rule::Source),
        Dialect::Arith | Dialect::Math => Some(Rule::Same),
        Dialect::Scf | Dialect::Cf => Some(Rule::Control),
    }
}

/// Whether `op` moves data to another layout.
pub fn is_conversion(op: Op<'_>) -> bool {
    ConvertLayoutOp::cast(op).is_some()
}

/// Whether a copy of `op` costs next to nothing next to moving data: it reads
/// no memory and runs on the arithmetic units.
pub fn is_cheap(op: Op<'_>) -> bool {
    match rule(op) {
        Some(Rule::Source | Rule::Broadcast | Rule::ExpandDims(_) | Rule::Trans | Rule::Reshape) => true,
        Some(Rule::Same) => match_op!(op, {
            ElementwiseInlineAsmOp | ExternElementwiseOp | MapElementwiseOp => false,
            PreciseSqrtOp | PreciseDivFOp | ApproxDivFOp | AtomicPollOp => false,
            DivFOp | RemFOp => false,
            // Integer division by constants is shifts and multiplications.
            DivSIOp | DivUIOp | RemSIOp | RemUIOp => ConstantOp::defining(op.operand(1)).is_some(),
            _ => Dialect::of(op) != Some(Dialect::Math),
        }),
        _ => false,
    }
}

/// `wanted` for operand `value` of an operation, or the layout that the value
/// has where the operation cannot tell the two apart.
pub fn wanted_or_equal<'c>(rule: Rule, value: Value<'c>, wanted: Attr<'c>) -> Attr<'c> {
    let by_matrix = matches!(rule, Rule::Broadcast | Rule::Trans | Rule::Reshape);
    let ty = value.ty().as_tensor().filter(|_| by_matrix);
    let have = ty.and_then(|ty| Some((ty.encoding()?, ty.shape())));
    let equal = |have: Attr<'c>, shape: &[i64]| {
        if rule != Rule::Broadcast {
            return equivalent(have, wanted, shape);
        }
        // Registers that hold replicas may differ in number.
        let distinct = |layout| to_linear_layout(layout, shape).ok()?.remove_zero_bases(Dim::REGISTER).ok();
        have == wanted || distinct(have).is_some_and(|have| distinct(wanted) == Some(have))
    };
    have.filter(|(have, shape)| equal(*have, shape)).map_or(wanted, |(have, _)| have)
}

/// Why the layout of the results of `op`, or of the pointers of a store, is
/// what it is whatever happens around it; `None` where it follows from others.
pub fn anchor(op: Op<'_>) -> Option<&'static str> {
    match rule(op) {
        // Copied through shared memory, from where any layout can read.
        Some(Rule::Any) if is_load(op) => None,
        Some(Rule::Any) => Some("the operation gives its result in this layout"),
        Some(Rule::Memory) => Some("chosen for this access to memory"),
        Some(Rule::Dot | Rule::DotScaled) => Some("chosen for this dot"),
        Some(Rule::Control) if CallOp::cast(op).is_some() => Some("the callee's signature"),
        None if is_dot(op) => Some("chosen for this dot"),
        None if op.num_results() > 0 => Some("the operation gives its result in this layout"),
        _ => None,
    }
}

fn tensor(op: Op<'_>, operand: usize) -> Option<TensorType<'_>> {
    op.operand(operand).ty().as_tensor()
}

/// The layout of the results when the first tensor operand, the indices for a
/// gather, has `operand`.
///
/// # Errors
/// Where no layout follows, with the reason.
pub fn forward<'c>(
    op: Op<'c>,
    rule: Rule,
    operand: Attr<'c>,
    layouts: &Layouts<'c>,
) -> Result<Attr<'c>, String> {
    let given = |encoding: Option<Attr<'c>>| encoding.ok_or_else(|| "no layout follows".to_owned());
    let source = || tensor(op, 0).ok_or_else(|| "the operand is no tensor".to_owned());
    match rule {
        Rule::Same | Rule::Memory | Rule::Broadcast | Rule::Gather => Ok(operand),
        Rule::Scan if scans(op, operand) => Ok(operand),
        Rule::ExpandDims(axis) => attrs::sliced_parent(operand, axis)
            .ok_or_else(|| format!("{operand} is no slice of dimension {axis}")),
        Rule::Reduce(axis) => layouts.slice(axis, operand),
        Rule::Trans => {
            let order = op.attr("order").and_then(Attr::as_i32_array).unwrap_or_default();
            given(infer::trans(Some(operand), &source()?.shape(), &order)?)
        }
        Rule::Reshape => {
            let to = op.result(0).ty().as_tensor().ok_or("the result is no tensor")?;
            given(infer::reshape(Some(operand), &source()?.shape(), &to.shape())?)
        }
        Rule::Join => given(infer::join(Some(operand), &source()?.shape())?),
        Rule::Split => given(infer::split(Some(operand), &source()?.shape())?),
        Rule::Unpack(axis) => infer::fp4_to_fp(operand, &source()?.shape(), axis),
        Rule::Cat => cat(operand, &source()?.shape(), layouts),
        _ => Err("results do not depend on operands".to_owned()),
    }
}

/// The layout that operand `number` must have when the results have `result`;
/// `None` where any will do.
///
/// # Errors
/// Where there is none, with the reason.
pub fn backward<'c>(
    op: Op<'c>,
    rule: Rule,
    number: usize,
    result: Attr<'c>,
    layouts: &Layouts<'c>,
) -> Result<Option<Attr<'c>>, String> {
    let shape_of_result = || op.result(0).ty().as_tensor().map(|ty| ty.shape()).unwrap_or_default();
    let operand = match rule {
        Rule::Same | Rule::Memory | Rule::Broadcast => Ok(Some(result)),
        Rule::Scan if scans(op, result) => Ok(Some(result)),
        Rule::Scan => Err(format!("a scan has no layout {result}")),
        Rule::Gather => Ok((number == 1).then_some(result)),
        Rule::ExpandDims(axis) => layouts.slice(axis, result).map(Some),
        Rule::Trans => {
            let order = op.attr("order").and_then(Attr::as_i32_array).unwrap_or_default();
            let mut inverse = vec![0i32; order.len()];
            for (i, d) in order.iter().enumerate() {
                let place = usize::try_from(*d).ok().and_then(|d| inverse.get_mut(d));
                *place.ok_or("the order is no permutation")? = i as i32;
            }
            infer::trans(Some(result), &shape_of_result(), &inverse)
        }
        Rule::Reshape => {
            let from = tensor(op, 0).ok_or("the operand is no tensor")?;
            infer::reshape(Some(result), &shape_of_result(), &from.shape())
        }
        Rule::Join => infer::split(Some(result), &shape_of_result()),
        Rule::Split => infer::join(Some(result), &shape_of_result()),
        Rule::Unpack(axis) => infer::fp4_packed(result, &shape_of_result(), axis).map(Some),
        Rule::Dot if number < 2 => {
            let value = Encoding::DotOperand(DotOperand {
                op_idx: number as u32,
                parent: Box::new(encoding(result)?),
                k_width: 0,
            });
            layouts.attr(&value).map(Some)
        }
        Rule::Dot => Ok(Some(result)),
        Rule::DotScaled => Ok((number == 2).then_some(result)),
        _ => Ok(None),
    }?;
    // Several layouts of the result may come from one of the operand, of which
    // inference gives one. A join can have any of them.
    let shape_rule = matches!(rule, Rule::Trans | Rule::Reshape | Rule::Split | Rule::Unpack(_));
    if let Some(operand) = operand.filter(|_| shape_rule)
        && !forward(op, rule, operand, layouts).is_ok_and(|made| equivalent(made, result, &shape_of_result()))
    {
        return Err(format!("no layout of the operand gives the result {result}"));
    }
    Ok(operand)
}

/// Whether a scan can be done in `layout`: a blocked one, or the one that it has.
fn scans<'c>(scan: Op<'c>, layout: Attr<'c>) -> bool {
    let has = scan.result(0).ty().as_tensor().and_then(TensorType::encoding);
    has == Some(layout) || matches!(encoding(layout), Ok(Encoding::Blocked(_)))
}

/// Whether a reshape that may reorder can give the layout `result` to an operand that has `operand`.
pub fn reorders<'c>(reshape: Op<'c>, operand: Attr<'c>, result: Attr<'c>) -> bool {
    let of = |value: Value<'c>, layout| to_linear_layout(layout, &value.ty().as_tensor()?.shape()).ok();
    let (from, to) = (of(reshape.operand(0), operand), of(reshape.result(0), result));
    matches!((from, to), (Some(from), Some(to)) if reorders_in_place(&from, &to))
}

/// Both halves in the registers of each thread, the second after the first.
fn cat<'c>(operand: Attr<'c>, shape: &[i64], layouts: &Layouts<'c>) -> Result<Attr<'c>, String> {
    let half = to_linear_layout(operand, shape)?;
    let first = Dim::out(0);
    let mut ins = Vec::new();
    for dim in half.in_dims() {
        let mut bases: Vec<Vec<u64>> = (0..half.in_bits(dim))
            .filter_map(|bit| half.basis_coords(dim, bit))
            .map(|c| c.to_vec())
            .collect();
        if dim == Dim::REGISTER {
            let mut next = vec![0; shape.len()];
            next[0] = half.out_size(first).unwrap_or(1);
            bases.push(next);
        }
        ins.push((dim, bases));
    }
    let outs: Vec<Dim> = half.out_dims().collect();
    let layout = LinearLayout::from_bases(&ins, &outs).map_err(|err| err.to_string())?;
    layouts.attr(&Encoding::Linear(Linear { layout }))
}
