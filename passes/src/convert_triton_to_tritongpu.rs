//! `--convert-triton-to-tritongpu`: from tensors to tensors with layouts.
//!
//! Every tensor gets the default blocked layout of its shape, except where an
//! operation ties the layout of its result to that of its operands (`tt.trans`,
//! `tt.reduce`, …) or where all operands of an elementwise operation already
//! agree on another one. `ttg.convert_layout` appears where layouts disagree.
//! Better layouts are the business of the passes that follow.

use crate::ir_util::{
    convert_operand, layout_of, operations_in_dominance_order, set_layout, set_result_layout, with_layout,
};
use crate::machine::{Layouts, Machine, error};
use crate::rules::{Rule, backward, forward, rule};
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, FunctionType, Op, TensorType, Type, Value};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::rewrite::IrRewriter;
use ttopt_dialect::tt::ops::HistogramOp;
use ttopt_dialect::ttg::{infer, module_attrs};

/// The pass.
pub static CONVERT_TRITON_TO_TRITONGPU: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg", "arith", "scf", "cf", "math", "ub"],
    options: &[
        PassOption {
            name: "target",
            description: "the GPU to compile for, e.g. cuda:80, cuda:90, hip:gfx942",
            kind: OptionKind::Str(""),
        },
        PassOption { name: "num-warps", description: "number of warps of a block", kind: OptionKind::Int(4) },
        PassOption {
            name: "threads-per-warp",
            description: "number of threads of a warp",
            kind: OptionKind::Int(32),
        },
        PassOption {
            name: "num-ctas",
            description: "number of blocks of a cluster",
            kind: OptionKind::Int(1),
        },
    ],
    ..PassDef::new(
        "convert-triton-to-tritongpu",
        "Give every tensor a layout: the blocked one of its shape, or the one that its operation implies",
        run,
    )
};

fn number(module: Op<'_>, options: &Options, name: &str) -> Result<u32, Reported> {
    let value = options.int(name);
    u32::try_from(value).ok().filter(|value| value.is_power_of_two() && *value <= 1024).ok_or_else(|| {
        error(module, format!("option {name} must be a power of two up to 1024, but is {value}"))
    })
}

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let target = options.string("target");
    if target.is_empty() {
        return Err(error(module, "option target is required, as in target=cuda:90"));
    }
    let known = TargetDesc::parse(&target).map_err(|err| error(module, err.to_string()))?;
    ttopt_dialect::legacy::upgrade(module)?;
    let threads = number(module, options, "threads-per-warp")?;
    if threads != known.lanes {
        return Err(error(
            module,
            format!(
                "{target} has {} threads per warp, but option threads-per-warp is {threads}",
                known.lanes
            ),
        ));
    }
    module_attrs::set_num_warps(module, number(module, options, "num-warps")?);
    module_attrs::set_threads_per_warp(module, threads);
    module_attrs::set_num_ctas(module, number(module, options, "num-ctas")?);
    module_attrs::set_target(module, &target);

    let layouts = Layouts::new(module.context(), Machine::of(module)?);
    let ops = operations_in_dominance_order(module);
    for op in &ops {
        default_carried(*op, &layouts)?;
    }
    let mut convert = Convert { layouts, rewriter: IrRewriter::new(module.context()) };
    for op in ops {
        convert.operation(op)?;
    }
    Ok(())
}

fn plain(value: Value<'_>) -> Option<TensorType<'_>> {
    value.ty().as_tensor().filter(|ty| ty.encoding().is_none())
}

fn default_type<'c>(op: Op<'c>, ty: Type<'c>, layouts: &Layouts<'c>) -> Result<Type<'c>, Reported> {
    let Some(tensor) = ty.as_tensor().filter(|tensor| tensor.encoding().is_none()) else { return Ok(ty) };
    let layout = layouts.default(&tensor.shape()).map_err(|reason| error(op, reason))?;
    with_layout(tensor, layout).ok_or_else(|| error(op, format!("no tensor type with layout {layout}")))
}

/// Default layouts for block arguments, results of control flow and functions.
fn default_carried<'c>(op: Op<'c>, layouts: &Layouts<'c>) -> Result<(), Reported> {
    for region in op.regions() {
        for arg in region.blocks().flat_map(|block| block.args()) {
            arg.set_type(default_type(op, arg.ty(), layouts)?);
        }
    }
    if rule(op) != Some(Rule::Control) {
        return Ok(());
    }
    for result in op.results() {
        result.set_type(default_type(op, result.ty(), layouts)?);
    }
    let signature = op.attr("function_type").and_then(Attr::as_type).and_then(Type::as_function);
    if let Some(signature) = signature {
        let convert = |types: Vec<Type<'c>>| -> Result<Vec<Type<'c>>, Reported> {
            types.into_iter().map(|ty| default_type(op, ty, layouts)).collect()
        };
        let (inputs, results) = (convert(signature.inputs())?, convert(signature.results())?);
        let ty = FunctionType::new(op.context(), &inputs, &results).ty();
        op.set_attr("function_type", Attr::type_of(ty));
    }
    Ok(())
}

struct Convert<'c> {
    layouts: Layouts<'c>,
    rewriter: IrRewriter<'c>,
}

impl<'c> Convert<'c> {
    fn default_of(&self, op: Op<'c>, value: Value<'c>) -> Result<Option<Attr<'c>>, Reported> {
        let Some(ty) = value.ty().as_tensor() else { return Ok(None) };
        self.layouts.default(&ty.shape()).map(Some).map_err(|reason| error(op, reason))
    }

    /// Results that have no layout yet get the default one.
    fn default_results(&self, op: Op<'c>) -> Result<(), Reported> {
        for result in op.results().filter(|result| plain(*result).is_some()) {
            if let Some(layout) = self.default_of(op, result)? {
                if op.num_results() == 1 {
                    return set_result_layout(op, layout);
                }
                set_layout(result, layout);
            }
        }
        Ok(())
    }

    /// All tensor operands in `layout`.
    fn operands_to(&mut self, op: Op<'c>, layout: Attr<'c>) -> Result<(), Reported> {
        (0..op.num_operands()).try_for_each(|i| convert_operand(&mut self.rewriter, op, i, layout))
    }

    /// The layout on which all tensor operands agree.
    fn common_layout(op: Op<'c>) -> Option<Attr<'c>> {
        let mut layouts = op.operands().filter(|value| value.ty().as_tensor().is_some()).map(layout_of);
        let first = layouts.next()??;
        layouts.all(|layout| layout == Some(first)).then_some(first)
    }

    fn operation(&mut self, op: Op<'c>) -> Result<(), Reported> {
        let mut values = op.operands().chain(op.results());
        if !values.any(|value| value.ty().as_tensor().is_some()) {
            return Ok(());
        }
        let Some(rule) = rule(op) else {
            return Err(error(op, "on tensors cannot be converted to TritonGPU"));
        };
        if rule != Rule::Control && op.results().any(|result| layout_of(result).is_some()) {
            return Ok(());
        }
        match rule {
            Rule::Control => {
                (0..op.num_operands()).try_for_each(|i| match self.default_of(op, op.operand(i))? {
                    Some(layout) => convert_operand(&mut self.rewriter, op, i, layout),
                    None => Ok(()),
                })
            }
            Rule::Source | Rule::Convert => self.default_results(op),
            Rule::Any => self.any(op),
            Rule::Same | Rule::Scan | Rule::Memory | Rule::Cat | Rule::Join | Rule::Reduce(_) => {
                self.agree(op, rule)
            }
            Rule::Broadcast => {
                self.default_results(op)?;
                self.operands_from_result(op, rule)
            }
            Rule::Gather => {
                if let Some(layout) = layout_of(op.operand(1)) {
                    set_result_layout(op, layout)?;
                }
                Ok(())
            }
            Rule::ExpandDims(_) | Rule::Trans | Rule::Reshape | Rule::Unpack(_) => self.follow(op, rule),
            Rule::ReshapeAny => self.follow(op, Rule::Reshape),
            Rule::Split => self.split(op),
            Rule::Dot | Rule::DotScaled => self.dot(op, rule),
        }
    }

    /// Each operand may keep its layout, except that masks follow the values.
    fn any(&mut self, op: Op<'c>) -> Result<(), Reported> {
        self.default_results(op)?;
        if HistogramOp::cast(op).is_some()
            && op.num_operands() == 2
            && let Some(layout) = layout_of(op.operand(0))
        {
            convert_operand(&mut self.rewriter, op, 1, layout)?;
        }
        Ok(())
    }

    /// One layout for all operands, from which that of the results follows.
    fn agree(&mut self, op: Op<'c>, rule: Rule) -> Result<(), Reported> {
        let common = Self::common_layout(op)
            .filter(|layout| rule != Rule::Scan || forward(op, rule, *layout, &self.layouts).is_ok());
        let layout = match common {
            Some(layout) => Some(layout),
            None => match op.operands().find(|value| value.ty().as_tensor().is_some()) {
                Some(value) => self.default_of(op, value)?,
                None => return self.default_results(op),
            },
        };
        let Some(layout) = layout else { return Ok(()) };
        self.operands_to(op, layout)?;
        // Reductions to scalars have no layout.
        if op.results().any(|result| result.ty().as_tensor().is_some()) {
            let result = forward(op, rule, layout, &self.layouts).map_err(|reason| error(op, reason))?;
            set_result_layout(op, result)?;
        }
        Ok(())
    }

    /// Operands as the layout of the result demands.
    fn operands_from_result(&mut self, op: Op<'c>, rule: Rule) -> Result<(), Reported> {
        let Some(result) = layout_of(op.result(0)) else { return Ok(()) };
        for i in 0..op.num_operands() {
            let wanted = backward(op, rule, i, result, &self.layouts).map_err(|reason| error(op, reason))?;
            if let Some(layout) = wanted {
                convert_operand(&mut self.rewriter, op, i, layout)?;
            }
        }
        Ok(())
    }

    /// The result follows from the operand if it can, else the other way round.
    fn follow(&mut self, op: Op<'c>, rule: Rule) -> Result<(), Reported> {
        let operand = layout_of(op.operand(0));
        let inferred = operand.and_then(|layout| forward(op, rule, layout, &self.layouts).ok());
        match inferred {
            Some(layout) => set_result_layout(op, layout),
            None => {
                self.default_results(op)?;
                self.operands_from_result(op, rule)
            }
        }
    }

    /// Both halves of a pair must be in one thread.
    fn split(&mut self, op: Op<'c>) -> Result<(), Reported> {
        if let Some(layout) = layout_of(op.operand(0))
            && let Ok(result) = forward(op, Rule::Split, layout, &self.layouts)
        {
            return set_result_layout(op, result);
        }
        let Some(half) = op.result(0).ty().as_tensor() else { return Ok(()) };
        let layout = self.layouts.default(&half.shape()).map_err(|reason| error(op, reason))?;
        let whole = infer::join(Some(layout), &half.shape()).map_err(|reason| error(op, reason))?;
        if let Some(whole) = whole {
            convert_operand(&mut self.rewriter, op, 0, whole)?;
        }
        set_result_layout(op, layout)
    }

    fn dot(&mut self, op: Op<'c>, rule: Rule) -> Result<(), Reported> {
        let Some(ty) = op.result(0).ty().as_tensor() else { return Ok(()) };
        let shape = ty.shape();
        let rank = shape.len();
        // Square boxes reuse each operand element as often as registers allow.
        let per_thread = ty.num_elements() as u64 / self.layouts.machine.threads();
        let side = if per_thread >= 16 {
            4
        } else if per_thread >= 4 {
            2
        } else {
            1
        };
        let mut size = vec![1; rank];
        for d in rank.saturating_sub(2)..rank {
            size[d] = side.min(shape[d].max(1) as u64);
        }
        let order: Vec<usize> = (0..rank).rev().collect();
        let layout = self.layouts.blocked(self.layouts.machine.blocked(&shape, &size, &order));
        set_result_layout(op, layout.map_err(|reason| error(op, reason))?)?;
        self.operands_from_result(op, rule)
    }
}
