//! `--tritongpu-accelerate-matmul`: matrix instructions for dots.
//!
//! For each `tt.dot` a [`MatmulPlan`] says which instruction of the target
//! computes it, how the warps divide the result, and where operands come from.
//! This pass writes that down: the result gets the layout of the instruction;
//! operands become registers in its operand layout, or buffers in shared
//! memory for `wgmma`, whose dot is `ttng.warp_group_dot`. Dots that no
//! instruction computes stay in a blocked layout, their operands brought to one
//! element type, and are multiplied within threads. Scaled dots become
//! plain ones first.

use crate::buffer_plans;
use crate::choice::{Candidate, Choice, Unit};
use crate::ir_util::{convert_before, operations_in_dominance_order};
use crate::machine::{Layouts, Machine, error};
use crate::matmul::build::{cast, with_element};
use crate::matmul::chains::Chains;
use crate::matmul::choices;
use crate::matmul::operands::{describe, unconverted};
use crate::matmul::plan::{Chain, Element, MatmulPlan, OperandPlan, Place, Problem, shared_operand};
use crate::matmul::scaled::{decompose, widen};
use crate::objective::{SYNCHRONIZATION, conversion};
use crate::plans::has_pairs;
use crate::plans::scale_layouts;
use linear_layout::encoding::{DotOperand, Linear};
use linear_layout::plan::{DotType, MatrixInstruction, OperandSource, products_at_once};
use linear_layout::target::{Direction, TargetDesc};
use linear_layout::{Encoding, LinearLayout};
use mlir_host::asm::Reported;
use mlir_host::ir::{FloatKind, Op, TensorType, Type, Value};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::rewrite::IrRewriter;
use ttopt_dialect::tt::enums::{InputPrecision, ScaleDotElemType};
use ttopt_dialect::tt::ops::{DotOp, DotScaledOp};
use ttopt_dialect::tt::verify::dot_scale_factor;
use ttopt_dialect::ttg::attrs::{encoding, shared_memory};
use ttopt_dialect::ttg::ops::LocalAllocOp;
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::WarpGroupDotOp;

/// The pass.
pub static TRITONGPU_ACCELERATE_MATMUL: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg", "ttng", "arith"],
    options: &[PassOption {
        name: "explain",
        description: "report for each dot which instruction was chosen, as a remark",
        kind: OptionKind::Bool(false),
    }],
    ..PassDef::new(
        "tritongpu-accelerate-matmul",
        "Choose matrix instructions for dots, and the layouts that they need",
        run,
    )
};

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let layouts = Layouts::new(module.context(), Machine::of(module)?);
    let Some(target) = layouts.machine.target.clone() else {
        return Err(error(
            module,
            "needs the module attribute ttg.target with a known GPU, as in \"cuda:90\"",
        ));
    };
    let rewriter = IrRewriter::new(module.context());
    let mut ops = operations_in_dominance_order(module);
    let scaled: Vec<_> = ops.iter().filter_map(|op| DotScaledOp::cast(*op)).collect();
    let mut pass =
        Accelerate { layouts: &layouts, target: &target, rewriter, explain: options.bool("explain") };
    if !scaled.is_empty() {
        for dot in scaled {
            if pass.scaled(dot)? {
                continue;
            }
            let wider = pass.has_instruction_for_wider(dot).then(|| widen(&mut pass.rewriter, dot, &layouts));
            let wider = wider.transpose()?;
            match wider {
                Some(wider) if pass.scaled(wider)? => {}
                _ => decompose(&mut pass.rewriter, wider.unwrap_or(dot), &layouts)?,
            }
        }
        ops = operations_in_dominance_order(module);
    }
    let dots: Vec<_> = ops.iter().filter_map(|op| DotOp::cast(*op)).collect();
    if dots.is_empty() {
        return Ok(());
    }
    let chains = Chains::new(&ops);
    for dot in dots {
        pass.dot(dot, chains.of(dot.op()))?;
    }
    Ok(())
}

struct Accelerate<'a, 'c> {
    layouts: &'a Layouts<'c>,
    target: &'a TargetDesc,
    rewriter: IrRewriter<'c>,
    explain: bool,
}

/// Elements along K of a dot with scales.
fn depth(dot: DotScaledOp<'_>) -> Option<i64> {
    let size = *dot.a().ty().as_tensor()?.shape().last()?;
    let two = dot.a_elem_type() == ScaleDotElemType::E2M1 && dot.lhs_k_pack();
    Some(if two { size * 2 } else { size })
}

fn tensor<'c>(op: Op<'c>, value: Value<'c>) -> Result<TensorType<'c>, Reported> {
    value.ty().as_tensor().ok_or_else(|| error(op, "operands must be tensors"))
}

impl<'c> Accelerate<'_, 'c> {
    fn dot(&mut self, dot: DotOp<'c>, chain: Chain) -> PassResult {
        let op = dot.op();
        let ty = tensor(op, dot.d())?;
        let Some(layout) = ty.encoding() else {
            return Err(error(op, "has no layout: run convert-triton-to-tritongpu first"));
        };
        let layout = encoding(layout).map_err(|reason| error(op, reason))?;
        if has_instruction(&layout) {
            return Ok(());
        }
        let operands = [unconverted(dot.a()), unconverted(dot.b())];
        let how = (dot.input_precision(), dot.max_num_imprecise_acc(), chain);
        let problem = problem(how, ty, operands, &layout, self.layouts.machine.num_warps);
        match problem.as_ref().and_then(|problem| Some((problem, MatmulPlan::new(problem, self.target)?))) {
            Some((problem, plan)) => {
                if let Some([matrix, threads]) = plan.slower_than_threads(problem, self.target) {
                    if self.explain {
                        let name = plan.instruction.name;
                        op.remark(format!(
                            "multiplied within threads in {threads} cycles, in place of {matrix} by {name}"
                        ));
                    }
                    return self.within_threads(dot);
                }
                if self.explain {
                    op.remark(format!("computed by {}", describe_plan(&plan)));
                    let all: Vec<MatmulPlan> = MatmulPlan::all(problem, self.target).collect();
                    let choices = [
                        choices::instruction(problem, &all, self.target),
                        choices::warps(problem, &plan, self.target),
                        self.left_operand(operands[0], problem, &plan),
                    ];
                    choices.into_iter().flatten().for_each(|choice| op.remark(choice.to_string()));
                }
                self.rewrite(dot, operands, &plan)
            }
            None => {
                if self.explain {
                    op.remark(format!(
                        "no matrix instruction of {} takes this dot: multiplied within threads",
                        self.target
                    ));
                }
                self.within_threads(dot)
            }
        }
    }

    /// What it takes to have the left operand of an instruction that takes it from registers or from shared memory in either
    /// place, if `value` is computed or loaded in its own layout.
    fn left_operand(&self, value: Value<'c>, problem: &Problem, plan: &MatmulPlan) -> Option<Choice> {
        let takes_both = plan.is_warp_group() && plan.instruction.sources[0] == OperandSource::Either;
        let ty = value.ty().as_tensor().filter(|_| takes_both)?;
        let layout = self.layouts.attr(&Encoding::DotOperand(DotOperand {
            op_idx: 0,
            parent: Box::new(plan.result.clone()),
            k_width: 1 << plan.instruction.a.k_run(),
        }));
        let moved = conversion(ty, layout.ok()?, self.layouts).map(|cycles| cycles + SYNCHRONIZATION);
        let registers = Candidate::new("registers, as its layout is converted", moved);
        let stored = || {
            let layout = Encoding::NvmmaShared(shared_operand(problem, 0, &plan.result));
            let layout = self.layouts.attr(&layout).ok()?;
            let space = shared_memory(value.ty().context())?;
            let buffer = MemDescType::new(&ty.shape(), ty.element(), layout, space, false)?;
            let plan = buffer_plans::access(ty.ty(), buffer, Direction::Store, self.target).ok()?;
            Some(plan.access.cycles(self.target) + self.target.cost.block_barrier)
        };
        let shared = Candidate::new("shared memory, as it is stored there", stored());
        let (chosen, other) = match &plan.operands[0].place {
            Place::Shared(_) => (shared, registers),
            Place::Registers { .. } => (registers, shared),
        };
        Some(Choice::new("place of the left operand", Unit::Cycles, chosen).instead(other))
    }

    /// Has an instruction with scales compute `dot`, if there is one for its formats; says whether.
    fn scaled(&mut self, dot: DotScaledOp<'c>) -> Result<bool, Reported> {
        let op = dot.op();
        let ty = tensor(op, dot.d())?;
        let Some(layout) = ty.encoding() else {
            return Err(error(op, "has no layout: run convert-triton-to-tritongpu first"));
        };
        let layout = encoding(layout).map_err(|reason| error(op, reason))?;
        if matches!(layout, Encoding::AmdMfma(_)) || matches!(layout, Encoding::AmdWmma(_)) && self.takes(dot)
        {
            return Ok(true);
        }
        let operands = [unconverted(dot.a()), unconverted(dot.b())];
        let narrow = operands.iter().all(|value| value.ty().element().float_kind().is_some());
        let pairs = has_pairs(dot);
        if !(narrow || pairs) || ty.shape().len() != 2 {
            return Ok(false);
        }
        let warps = self.layouts.machine.num_warps;
        let how = (InputPrecision::Ieee, 0, Chain::default());
        let mut problem = problem(how, ty, operands, &layout, warps);
        for operand in problem.iter_mut().flat_map(|problem| &mut problem.operands).filter(|_| pairs) {
            operand.element = Element::F4Pair;
        }
        let kind = if pairs { DotType::F4Pair } else { DotType::F8 };
        let scaled = |row: &&MatrixInstruction| row.scales_in_register() > 1 && row.operand == kind;
        let shortest =
            MatrixInstruction::of(self.target).filter(scaled).map(|row| u64::from(row.shape[2])).min();
        if let (Some(problem), Some(shortest)) = (&mut problem, shortest) {
            // Half of what it multiplies is zero then; without scales the instruction would multiply numbers of 16 bits.
            if problem.k * 2 == shortest {
                problem.k = shortest;
            }
        }
        let plan = problem.as_ref().and_then(|problem| MatmulPlan::new(problem, self.target));
        let Some(plan) = plan.filter(|plan| plan.instruction.scaled.is_some()) else { return Ok(false) };
        let mut types = Vec::new();
        for (side, (value, operand)) in operands.iter().zip(&plan.operands).enumerate() {
            let Place::Registers { k_width } = operand.place else { return Ok(false) };
            let own = if pairs { Some(Element::F4Pair) } else { Element::of(value.ty().element()) };
            if own != Some(operand.element) {
                return Ok(false);
            }
            let parent = Box::new(plan.result.clone());
            let layout = Encoding::DotOperand(DotOperand { op_idx: side as u32, parent, k_width });
            types.push(self.with_layout(op, *value, &layout)?);
        }
        let result = self.with_layout(op, dot.d(), &plan.result)?;
        let Ok(layouts) = scale_layouts(dot, [types[0], types[1], result], self.target) else {
            return Ok(false);
        };
        if self.explain {
            op.remark(format!("computed with scales by {}", describe_plan(&plan)));
        }
        self.rewrite_scaled(dot, operands, &plan, layouts)?;
        Ok(true)
    }

    /// Whether an instruction with scales computes `dot` in the layouts that it has.
    fn takes(&self, dot: DotScaledOp<'c>) -> bool {
        scale_layouts(dot, [dot.a().ty(), dot.b().ty(), dot.d().ty()], self.target).is_ok()
    }

    /// Whether an instruction with scales may compute `dot` once its operands of 4 bits have 8.
    fn has_instruction_for_wider(&self, dot: DotScaledOp<'c>) -> bool {
        use ScaleDotElemType::{E2M1, E4M3, E5M2};
        let formats = [dot.a_elem_type(), dot.b_elem_type()];
        let narrow = formats.iter().all(|format| matches!(format, E2M1 | E4M3 | E5M2));
        let shape = dot.d().ty().as_tensor().map(|ty| ty.shape());
        // M and N, and K, of the instructions.
        let fits = |rows: i64, k: i64| {
            shape.as_ref().is_some_and(|shape| shape.len() == 2 && shape.iter().all(|size| *size >= rows))
                && depth(dot).is_some_and(|size| size >= k)
        };
        let reaches = fits(16, 128) || fits(32, 64);
        let has = MatrixInstruction::of(self.target).any(|row| {
            row.scaled.map(i64::from) == Some(dot_scale_factor(dot)) && row.operand == DotType::F8
        });
        narrow && formats.contains(&E2M1) && !has_pairs(dot) && reaches && has
    }

    /// The type of a tensor in another layout.
    fn with_layout(&self, op: Op<'c>, value: Value<'c>, layout: &Encoding) -> Result<Type<'c>, Reported> {
        let layout = self.layouts.attr(layout).map_err(|reason| error(op, reason))?;
        let ty = tensor(op, value)?.with_encoding(Some(layout));
        ty.map(TensorType::ty).ok_or_else(|| error(op, format!("no tensor has the layout {layout}")))
    }

    fn rewrite_scaled(
        &mut self,
        dot: DotScaledOp<'c>,
        operands: [Value<'c>; 2],
        plan: &MatmulPlan,
        scale_layouts: [LinearLayout; 2],
    ) -> PassResult {
        let op = dot.op();
        let mut made = Vec::new();
        for (side, (value, operand)) in operands.into_iter().zip(&plan.operands).enumerate() {
            made.push(self.operand(op, side as u32, value, operand, &plan.result)?);
        }
        let mut scales = Vec::new();
        for (scale, layout) in [dot.a_scale(), dot.b_scale()].into_iter().zip(scale_layouts) {
            let layout = self.layouts.attr(&Encoding::Linear(Linear { layout }));
            let layout = layout.map_err(|reason| error(op, reason))?;
            let moved = scale.map(|scale| convert_before(&mut self.rewriter, op, unconverted(scale), layout));
            scales.push(moved.transpose()?);
        }
        let layout = self.layouts.attr(&plan.result).map_err(|reason| error(op, reason))?;
        let c = convert_before(&mut self.rewriter, op, unconverted(dot.c()), layout)?;
        self.rewriter.set_before(op);
        let c = cast(&mut self.rewriter, op, c, plan.accumulator)?;
        let formats = (dot.a_elem_type(), dot.b_elem_type());
        let built = DotScaledOp::build(op.loc(), made[0], made[1], c, formats.0, formats.1, dot.fast_math())
            .a_scale(scales[0])
            .b_scale(scales[1])
            .lhs_k_pack(dot.lhs_k_pack())
            .rhs_k_pack(dot.rhs_k_pack())
            .discardable_of(op)
            .results(&[c.ty()])
            .insert(&mut self.rewriter)?
            .d();
        self.replace(op, built)
    }

    /// The dot as its plan says.
    fn rewrite(&mut self, dot: DotOp<'c>, operands: [Value<'c>; 2], plan: &MatmulPlan) -> PassResult {
        let op = dot.op();
        let layout = self.layouts.attr(&plan.result).map_err(|reason| error(op, reason))?;
        let mut made = Vec::new();
        for (side, (value, operand)) in operands.into_iter().zip(&plan.operands).enumerate() {
            made.push(self.operand(op, side as u32, value, operand, &plan.result)?);
        }
        let c = convert_before(&mut self.rewriter, op, unconverted(dot.c()), layout)?;
        self.rewriter.set_before(op);
        let c = cast(&mut self.rewriter, op, c, plan.accumulator)?;
        let dot = if plan.is_warp_group() {
            WarpGroupDotOp::build(op.loc(), made[0], made[1], c)
                .input_precision(dot.input_precision())
                .max_num_imprecise_acc(dot.max_num_imprecise_acc())
                .discardable_of(op)
                .results(&[c.ty()])
                .insert(&mut self.rewriter)?
                .d()
        } else {
            DotOp::build(op.loc(), made[0], made[1], c)
                .input_precision(dot.input_precision())
                .max_num_imprecise_acc(dot.max_num_imprecise_acc())
                .discardable_of(op)
                .results(&[c.ty()])
                .insert(&mut self.rewriter)?
                .d()
        };
        self.replace(op, dot)
    }

    /// `op` replaced by `dot`, which may have another layout and other elements.
    fn replace(&mut self, op: Op<'c>, dot: Value<'c>) -> PassResult {
        let old = tensor(op, op.result(0))?;
        self.rewriter.set_before(op);
        let element = Element::of(old.element()).ok_or_else(|| error(op, "elements are no numbers"))?;
        let dot = cast(&mut self.rewriter, op, dot, element)?;
        let dot = match old.encoding() {
            Some(layout) => convert_before(&mut self.rewriter, op, dot, layout)?,
            None => dot,
        };
        self.rewriter.replace(op, &[dot]);
        Ok(())
    }

    /// An operand where the instruction takes it from.
    fn operand(
        &mut self,
        op: Op<'c>,
        side: u32,
        value: Value<'c>,
        plan: &OperandPlan,
        result: &Encoding,
    ) -> Result<Value<'c>, Reported> {
        match &plan.place {
            Place::Registers { k_width } => {
                let layout = Encoding::DotOperand(DotOperand {
                    op_idx: side,
                    parent: Box::new(result.clone()),
                    k_width: *k_width,
                });
                let layout = self.layouts.attr(&layout).map_err(|reason| error(op, reason))?;
                let value = convert_before(&mut self.rewriter, op, value, layout)?;
                self.rewriter.set_before(op);
                cast(&mut self.rewriter, op, value, plan.element)
            }
            Place::Shared(layout) => {
                let ty = tensor(op, value)?;
                let layout = self
                    .layouts
                    .attr(&Encoding::NvmmaShared(layout.clone()))
                    .map_err(|reason| error(op, reason))?;
                let buffer = shared_memory(op.context())
                    .and_then(|space| MemDescType::new(&ty.shape(), ty.element(), layout, space, false));
                let buffer = buffer.ok_or_else(|| error(op, format!("no buffer holds {}", ty.ty())))?;
                self.rewriter.set_before(op);
                let made = LocalAllocOp::build(op.loc()).src(value).results(&[buffer.ty()]);
                Ok(made.insert(&mut self.rewriter)?.result())
            }
        }
    }

    /// Multiplication within threads works on one type of elements: the widest.
    fn within_threads(&mut self, dot: DotOp<'c>) -> PassResult {
        let op = dot.op();
        let elements = [dot.a(), dot.b(), dot.c()].map(|value| Element::of(value.ty().element()));
        let [Some(a), Some(b), Some(c)] = elements else { return Err(error(op, "elements are no numbers")) };
        let pair = common_element(a, b);
        if self.adds_several(pair, c, tensor(op, dot.a())?) {
            // Operands stay as narrow as they are; 8-bit floats are converted as they are multiplied.
            return Ok(());
        }
        let common = common_element(pair, c);
        if a == common && b == common && c == common {
            return Ok(());
        }
        self.rewriter.set_before(op);
        let mut operands = Vec::new();
        for value in [dot.a(), dot.b(), dot.c()] {
            operands.push(cast(&mut self.rewriter, op, value, common)?);
        }
        let ty = with_element(op, tensor(op, dot.d())?, common.ty(op.context()))?;
        let dot = DotOp::build(op.loc(), operands[0], operands[1], operands[2])
            .input_precision(dot.input_precision())
            .max_num_imprecise_acc(dot.max_num_imprecise_acc())
            .results(&[ty])
            .insert(&mut self.rewriter)?;
        self.replace(op, dot.d())
    }

    /// Whether instructions within threads multiply operands of `element`, of which the left one is `left`, and add several
    /// products to sums of `sum` at once.
    fn adds_several(&self, element: Element, sum: Element, left: TensorType<'c>) -> bool {
        let depth = left.shape().last().map_or(0, |size| *size as u64);
        let kinds = element.dot_type(self.target).zip(sum.dot_type(self.target));
        let several = kinds.and_then(|(kind, sum)| products_at_once(kind, sum, self.target));
        several.is_some_and(|count| u64::from(count) <= depth)
    }
}

/// The narrowest type that holds what both do, as far as there is one.
fn common_element(a: Element, b: Element) -> Element {
    match (a, b) {
        _ if a == b => a,
        (Element::Float(_), Element::Float(_)) if a.bits() == b.bits() => {
            // Formats of one width differ in range and precision.
            Element::Float(if a.bits() == 8 { FloatKind::F16 } else { FloatKind::F32 })
        }
        _ if a.bits() >= b.bits() => a,
        _ => b,
    }
}

fn problem<'c>(
    (precision, max_imprecise, chain): (InputPrecision, i64, Chain),
    ty: TensorType<'c>,
    operands: [Value<'c>; 2],
    layout: &Encoding,
    warps: u64,
) -> Option<Problem> {
    let shape: Vec<u64> = ty.shape().iter().map(|size| (*size).max(1) as u64).collect();
    Some(Problem {
        k: operands[0].ty().as_tensor()?.shape().last().map(|k| (*k).max(1) as u64)?,
        shape,
        operands: [describe(operands[0])?, describe(operands[1])?],
        result: Element::of(ty.element())?,
        precision,
        max_imprecise,
        chain,
        warps,
        cga: layout.cga_layout(),
    })
}

/// Whether the pass will choose a matrix instruction for `op`, and with it other layouts than it has.
pub(crate) fn is_to_be_accelerated<'c>(op: Op<'c>, layouts: &Layouts<'c>) -> bool {
    let Some(target) = layouts.machine.target.as_ref() else { return false };
    let result = op.results().next().and_then(|result| result.ty().as_tensor());
    let Some((ty, Ok(layout))) = result.and_then(|ty| Some((ty, encoding(ty.encoding()?)))) else {
        return false;
    };
    if has_instruction(&layout) {
        return false;
    }
    let Some(dot) = DotOp::cast(op) else { return DotScaledOp::cast(op).is_some() };
    let operands = [unconverted(dot.a()), unconverted(dot.b())];
    let how = (dot.input_precision(), dot.max_num_imprecise_acc(), Chain::default());
    let problem = problem(how, ty, operands, &layout, layouts.machine.num_warps);
    problem.is_some_and(|problem| {
        let plan = MatmulPlan::new(&problem, target);
        plan.is_some_and(|plan| plan.slower_than_threads(&problem, target).is_none())
    })
}

/// Whether a layout is that of a matrix instruction's result.
fn has_instruction(layout: &Encoding) -> bool {
    matches!(layout, Encoding::NvidiaMma(_) | Encoding::AmdMfma(_) | Encoding::AmdWmma(_))
}

/// A plan in words.
fn describe_plan(plan: &MatmulPlan) -> String {
    let (name, shape, warps) = match &plan.result {
        Encoding::NvidiaMma(e) if e.version_major == 3 => ("wgmma", &e.instr_shape, &e.warps_per_cta),
        Encoding::NvidiaMma(e) => ("mma.sync", &e.instr_shape, &e.warps_per_cta),
        Encoding::AmdMfma(e) => ("mfma", &e.instr_shape, &e.warps_per_cta),
        other => return format!("#ttg.{}", other.mnemonic()),
    };
    let place = |operand: &OperandPlan| match &operand.place {
        Place::Registers { k_width } => format!("registers, {k_width} along K in each thread"),
        Place::Shared(e) => format!("shared memory, swizzled by {} bytes", e.swizzling_byte_width),
    };
    let [left, right] = [place(&plan.operands[0]), place(&plan.operands[1])];
    format!("{name} {shape:?} on {warps:?} warps; left operand: {left}; right operand: {right}")
}
