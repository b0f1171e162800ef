//! `--triton-rewrite-tensor-descriptor-to-pointer`: accesses through tensor
//! descriptors as accesses through pointers, for targets without them. With a
//! target, descriptors that it has tensor maps for stay ([`Webs`] decides).
//!
//! A descriptor becomes what it is made of: base, shape, strides, and two
//! flags, in this order, which is also how a launcher passes one: whether
//! elements outside of the tensor are NaN, and whether `f32` is rounded to
//! `tf32` as it is loaded. Results, block arguments and operands that are
//! descriptors are replaced by these in place.

mod access;

pub(crate) use access::atomic_of;

use crate::buffer_plans;
use crate::ir_util::{blocks_in_dominance_order, is_private};
use crate::machine::{error, internal};
use crate::tma::webs::Webs;
use access::Access;
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Block, FunctionType, Loc, Op, Region, TensorType, Type, Value};
use mlir_host::is_one_of;
use mlir_host::match_op;
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::rewrite::{create, create_branch, new_region};
use mlir_host::upstream::{Dialect, PoisonOp, SelectOp};
use smallvec::SmallVec;
use ttopt_dialect::tt::enums::PaddingOption;
use ttopt_dialect::tt::ops::{
    CallOp, DescriptorGatherOp, DescriptorLoadOp, DescriptorReduceOp, DescriptorScatterOp, DescriptorStoreOp,
    FuncOp, MakeTensorDescOp, ReshapeOp, ReturnOp,
};
use ttopt_dialect::tt::types::{TensorDescType, pointer_to};

/// The pass.
pub static REWRITE_TENSOR_DESCRIPTOR_TO_POINTER: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["tt", "arith", "scf", "cf"],
    options: &[
        PassOption {
            name: "target",
            description: "the GPU whose tensor maps may stand for descriptors, e.g. cuda:90; none by default",
            kind: OptionKind::Str(""),
        },
        PassOption {
            name: "explain",
            description: "Say as remarks why descriptors become pointers",
            kind: OptionKind::Bool(false),
        },
        PassOption {
            name: "num-ctas",
            description: "blocks of a cluster that work on a program",
            kind: OptionKind::Int(1),
        },
        PassOption {
            name: "all-tensor-maps",
            description: "Keep also descriptors that pointers were measured to be faster for",
            kind: OptionKind::Bool(false),
        },
    ],
    ..PassDef::new(
        "triton-rewrite-tensor-descriptor-to-pointer",
        "Turn accesses through tensor descriptors into masked accesses through pointers",
        run,
    )
};

/// What a descriptor is made of.
#[derive(Clone)]
struct Parts<'c> {
    base: Value<'c>,
    /// Integers of 32 or 64 bits.
    shape: SmallVec<[Value<'c>; 5]>,
    /// `i64`, in elements.
    strides: SmallVec<[Value<'c>; 5]>,
    /// `i1`: elements outside of the tensor are NaN.
    nan: Value<'c>,
    /// `i1`: `f32` is rounded to `tf32`.
    round: Value<'c>,
    /// Whether a launcher passes them, and so promises an aligned base, aligned rows and contiguous elements.
    passed: bool,
}

impl<'c> Parts<'c> {
    fn values(&self) -> Vec<Value<'c>> {
        let mut all = vec![self.base];
        all.extend(self.shape.iter().chain(&self.strides));
        all.extend([self.nan, self.round]);
        all
    }

    fn of_values(values: &[Value<'c>], rank: usize) -> Option<Parts<'c>> {
        if values.len() != 2 * rank + 3 {
            return None;
        }
        Some(Parts {
            base: values[0],
            shape: SmallVec::from_slice(&values[1..=rank]),
            strides: SmallVec::from_slice(&values[rank + 1..=2 * rank]),
            nan: values[2 * rank + 1],
            round: values[2 * rank + 2],
            passed: false,
        })
    }
}

/// The types of the parts of a descriptor that is passed on.
fn part_types<'c>(desc: TensorDescType<'c>) -> Option<Vec<Type<'c>>> {
    let ty = desc.ty();
    let rank = desc.shape().len();
    let (i64t, i1) = (Type::int(ty.context(), 64), Type::int(ty.context(), 1));
    let mut types = vec![pointer_to(desc.signless_element())?];
    types.extend(std::iter::repeat_n(i64t, 2 * rank));
    types.extend([i1, i1]);
    Some(types)
}

/// Bytes that the base of a descriptor, and all of its strides but the last one, which is one element, are multiples of:
/// what tensor maps ask for (CUDA driver API, `cuTensorMapEncodeTiled`), launchers check on every GPU.
const ALIGNMENT: i64 = 16;

/// What is known of the parts of a descriptor that a launcher passes, as attributes of arguments: `attrs` of its base besides.
fn promises<'c>(desc: TensorDescType<'c>, attrs: Attr<'c>) -> Vec<Attr<'c>> {
    let ctx = desc.ty().context();
    let multiple = |of: i64| ("tt.divisibility", Attr::int(ctx, 32, of));
    let mut base = attrs.as_dict().unwrap_or_default();
    if base.iter().all(|(name, _)| *name != "tt.divisibility") {
        base.push(multiple(ALIGNMENT));
    }
    let (rank, bits) = (desc.shape().len(), desc.signless_element().bits().unwrap_or(8));
    let stride = Attr::dict(ctx, &[multiple((8 * ALIGNMENT / i64::from(bits)).max(1))]);
    let mut all = vec![Attr::dict(ctx, &base)];
    all.extend((1..2 * rank + 3).map(|part| {
        // Behind the base and the sizes; those of the last dimension and the flags have none.
        if (rank + 1..2 * rank).contains(&part) { stride } else { Attr::dict(ctx, &[]) }
    }));
    all
}

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let target = match options.string("target").as_str() {
        "" => None,
        name => Some(TargetDesc::parse(name).map_err(|err| error(module, err.to_string()))?),
    };
    let several_blocks = options.int("num-ctas") > 1;
    let mut rewrite = Rewrite {
        webs: Webs::new(module, target.as_ref(), options.bool("all-tensor-maps"), several_blocks),
        several_blocks,
        explain: options.bool("explain"),
        kept: FastSet::default(),
        parts: FastMap::default(),
        erase: Vec::new(),
    };
    for region in module.regions() {
        rewrite.region(region)?;
    }
    // Uses before definitions.
    for op in rewrite.erase.into_iter().rev() {
        op.erase();
    }
    Ok(())
}

struct Rewrite<'c> {
    webs: Webs<'c>,
    /// Whether several CTAs of a cluster run a program.
    several_blocks: bool,
    explain: bool,
    /// Values made here that stand for descriptors with tensor maps.
    kept: FastSet<Value<'c>>,
    parts: FastMap<Value<'c>, Parts<'c>>,
    erase: Vec<Op<'c>>,
}

/// The attributes that operations passing values on have of their own.
const INHERENT: [&str; 7] =
    ["callee", "unsignedCmp", "branch_weights", "operandSegmentSizes", "arg_attrs", "res_attrs", "fastmath"];

impl<'c> Rewrite<'c> {
    /// The types of the parts of a descriptor that becomes pointers; `None` for other values.
    fn part_types(&self, value: Value<'c>) -> Option<Vec<Type<'c>>> {
        let desc = TensorDescType::cast(value.ty())?;
        if self.kept.contains(&value) || self.webs.reason(value).is_none() {
            return None;
        }
        part_types(desc)
    }

    fn is_rewritten(&self, value: Value<'c>) -> bool {
        self.part_types(value).is_some()
    }

    /// `new` stands for `old`, which is no descriptor, or one with a tensor map.
    fn keep(&mut self, old: Value<'c>, new: Value<'c>) {
        old.replace_all_uses_with(new);
        if TensorDescType::cast(new.ty()).is_some() {
            self.kept.insert(new);
        }
    }

    fn flatten_types(&self, values: impl Iterator<Item = Value<'c>>) -> Vec<Type<'c>> {
        values.flat_map(|value| self.part_types(value).unwrap_or_else(|| vec![value.ty()])).collect()
    }

    fn region(&mut self, region: Region<'c>) -> Result<(), Reported> {
        // All arguments first: branches may go backwards.
        let blocks = blocks_in_dominance_order(region);
        for block in &blocks {
            self.arguments(*block)?;
        }
        for block in blocks {
            let ops: Vec<Op<'c>> = block.ops().collect();
            for op in ops {
                self.operation(op)?;
            }
        }
        Ok(())
    }

    /// Replaces arguments that are descriptors by their parts, in place.
    fn arguments(&mut self, block: Block<'c>) -> Result<(), Reported> {
        let old: Vec<Value<'c>> = block.args().collect();
        if !old.iter().any(|arg| self.is_rewritten(*arg)) {
            return Ok(());
        }
        let gone: Vec<bool> = old.iter().map(|arg| self.is_rewritten(*arg)).collect();
        let kernel = block.parent().filter(|op| is_one_of!(*op, FuncOp) && !is_private(*op));
        let passed = kernel.is_some_and(|kernel| kernel.region(0).first_block() == Some(block));
        for arg in &old {
            match self.part_types(*arg) {
                Some(types) => {
                    let rank = (types.len() - 3) / 2;
                    let new: Vec<Value<'c>> =
                        types.into_iter().map(|ty| block.add_arg(ty, arg.loc())).collect();
                    let parts = Parts::of_values(&new, rank).ok_or_else(|| {
                        arg.loc().error("internal error: the parts of a tensor descriptor are not all there")
                    })?;
                    self.parts.insert(*arg, Parts { passed, ..parts });
                }
                None => self.keep(*arg, block.add_arg(arg.ty(), arg.loc())),
            }
        }
        // Descriptors are still used by operations to come; they go with their
        // uses, when those have been rewritten.
        for (i, arg) in old.iter().enumerate().rev() {
            if gone[i] {
                self.detach(*arg)?;
            }
            block.erase_arg(i);
        }
        Ok(())
    }

    /// Gives the uses of a block argument that is about to go a stand-in.
    fn detach(&mut self, arg: Value<'c>) -> Result<(), Reported> {
        let Some(block) = arg.arg_block() else { return Ok(()) };
        let ctx = arg.context();
        let stand_in = create("ub.poison", arg.loc(), &[], &[arg.ty()], &poison(ctx), &[])?;
        match block.first() {
            Some(first) => stand_in.move_before(first),
            None => block.append(stand_in),
        }
        let value = stand_in.result(0);
        arg.replace_all_uses_with(value);
        if let Some(parts) = self.parts.remove(&arg) {
            self.parts.insert(value, parts);
        }
        self.erase.push(stand_in);
        Ok(())
    }

    fn operation(&mut self, op: Op<'c>) -> Result<(), Reported> {
        match_op!(op, {
            FuncOp => self.function(op)?,
            DescriptorLoadOp | DescriptorStoreOp | DescriptorReduceOp if !self.is_rewritten(op.operand(0)) =>
                return self.whole_block(op),
            DescriptorGatherOp | DescriptorScatterOp if !self.is_rewritten(op.operand(0)) => return Ok(()),
            MakeTensorDescOp if !self.is_rewritten(op.result(0)) => return Ok(()),
            MakeTensorDescOp(make) => return self.make(make),
            DescriptorLoadOp | DescriptorStoreOp | DescriptorReduceOp | DescriptorGatherOp | DescriptorScatterOp =>
                return self.access(op),
            // A stand-in.
            PoisonOp if self.parts.contains_key(&op.result(0)) => return Ok(()),
            SelectOp if self.is_rewritten(op.result(0)) => return self.select(op),
            _ => {},
        });
        let op = match op.operands().chain(op.results()).any(|value| self.is_rewritten(value)) {
            true => self.flatten(op)?,
            false => op,
        };
        for region in op.regions() {
            self.region(region)?;
        }
        Ok(())
    }

    fn function(&mut self, op: Op<'c>) -> Result<(), Reported> {
        let signature = op.attr("function_type").and_then(Attr::as_type).and_then(Type::as_function);
        let Some(signature) = signature else { return Ok(()) };
        let is_kernel = !is_private(op);
        let entry = op.region(0).first_block().filter(|_| self.explain && is_kernel);
        for (i, arg) in entry.into_iter().flat_map(|block| block.args()).enumerate() {
            if let Some(reason) = self.webs.reason(arg).filter(|_| TensorDescType::cast(arg.ty()).is_some()) {
                op.remark(format!("argument {i} becomes pointers: {reason}"));
            }
        }
        // No function returns a tensor map.
        let returned = |ty: Type<'c>| TensorDescType::cast(ty).and_then(part_types);
        let results: Vec<_> = signature.results().into_iter().map(|ty| (ty, returned(ty))).collect();
        let inputs: Vec<_> = match op.region(0).first_block() {
            Some(entry) => entry.args().map(|arg| (arg.ty(), self.part_types(arg))).collect(),
            None => signature.inputs().into_iter().map(|ty| (ty, returned(ty))).collect(),
        };
        let ctx = op.context();
        for (name, types) in [("arg_attrs", &inputs), ("res_attrs", &results)] {
            let known = is_kernel && name == "arg_attrs" && types.iter().any(|(_, parts)| parts.is_some());
            let given = match op.attr(name).and_then(Attr::as_array) {
                Some(given) => given,
                None if known => vec![Attr::dict(ctx, &[]); types.len()],
                None => continue,
            };
            let mut all = Vec::new();
            for ((ty, parts), attrs) in types.iter().zip(given) {
                let n = parts.as_ref().map_or(1, Vec::len);
                match TensorDescType::cast(*ty).filter(|_| known && n > 1) {
                    Some(desc) => all.extend(promises(desc, attrs)),
                    None => {
                        all.push(attrs);
                        // What is said of a descriptor is said of its base.
                        all.extend(std::iter::repeat_n(Attr::dict(ctx, &[]), n - 1));
                    }
                }
            }
            op.set_attr(name, Attr::array(ctx, &all));
        }
        let flat = |types: Vec<(Type<'c>, Option<Vec<Type<'c>>>)>| -> Vec<Type<'c>> {
            types.into_iter().flat_map(|(ty, parts)| parts.unwrap_or_else(|| vec![ty])).collect()
        };
        let ty = FunctionType::new(ctx, &flat(inputs), &flat(results)).ty();
        op.set_attr("function_type", Attr::type_of(ty));
        Ok(())
    }

    /// The parts of a descriptor, as they are passed on: shapes of 64 bits.
    fn passed(&self, op: Op<'c>, value: Value<'c>) -> Result<Vec<Value<'c>>, Reported> {
        let Some(parts) = self.parts.get(&value) else {
            return Err(error(op, "uses a tensor descriptor that is not known here"));
        };
        let wide = Type::int(op.context(), 64);
        let mut parts = parts.clone();
        for size in &mut parts.shape {
            if size.ty() != wide {
                *size = before(op, "arith.extsi", &[*size], wide)?;
            }
        }
        Ok(parts.values())
    }

    /// Makes an operation that only passes descriptors on again, with their parts.
    fn flatten(&mut self, op: Op<'c>) -> Result<Op<'c>, Reported> {
        let flows = matches!(Dialect::of(op), Some(Dialect::Scf | Dialect::Cf));
        let passes = flows || is_one_of!(op, CallOp | ReturnOp);
        if !passes {
            let name = op.name();
            return Err(error(op, format!("'{name}' of tensor descriptors cannot become one of pointers")));
        }
        let mut operands = Vec::new();
        let mut lengths = Vec::new();
        for operand in op.operands() {
            let new = if self.is_rewritten(operand) { self.passed(op, operand)? } else { vec![operand] };
            lengths.push(new.len() as i32);
            operands.extend(new);
        }
        let mut attrs = op.discardable_attrs();
        for name in INHERENT {
            let Some(attr) = op.attr(name) else { continue };
            attrs.retain(|(known, _)| *known != name);
            let attr = match (name, attr.as_i32_array()) {
                ("operandSegmentSizes", Some(sizes)) => {
                    let mut rest = lengths.as_slice();
                    let mut grown = Vec::with_capacity(sizes.len());
                    for size in sizes {
                        let (mine, others) = rest.split_at((size.max(0) as usize).min(rest.len()));
                        grown.push(mine.iter().sum());
                        rest = others;
                    }
                    Attr::i32_array(op.context(), &grown)
                }
                _ => attr,
            };
            attrs.push((name, attr));
        }
        let results = self.flatten_types(op.results());
        let successors: Vec<Block<'c>> = op.successors().collect();
        let made = if successors.is_empty() {
            let regions: Vec<_> = op.regions().map(|_| new_region()).collect();
            create(op.name(), op.loc(), &operands, &results, &attrs, &regions)
        } else {
            create_branch(op.name(), op.loc(), &operands, &attrs, &successors)
        }?;
        made.move_before(op);
        for (new, old) in made.regions().zip(op.regions()) {
            new.take_body(old);
        }
        let mut new: Vec<Value<'c>> = made.results().collect();
        for old in op.results() {
            let types = self.part_types(old);
            let n = types.as_ref().map_or(1, Vec::len);
            let rest = new.split_off(n.min(new.len()));
            match Parts::of_values(&new, n.saturating_sub(3) / 2).filter(|_| types.is_some()) {
                Some(parts) => drop(self.parts.insert(old, parts)),
                None => self.keep(old, new[0]),
            }
            new = rest;
        }
        self.erase.push(op);
        Ok(made)
    }

    fn select(&mut self, op: Op<'c>) -> Result<(), Reported> {
        let (yes, no) = (self.passed(op, op.operand(1))?, self.passed(op, op.operand(2))?);
        let mut chosen = Vec::new();
        for (yes, no) in yes.iter().zip(&no) {
            chosen.push(before(op, "arith.select", &[op.operand(0), *yes, *no], yes.ty())?);
        }
        let parts = Parts::of_values(&chosen, (chosen.len() - 3) / 2)
            .ok_or_else(|| internal(op, "the parts of a tensor descriptor are not all there"))?;
        self.parts.insert(op.result(0), parts);
        self.erase.push(op);
        Ok(())
    }

    fn make(&mut self, make: MakeTensorDescOp<'c>) -> Result<(), Reported> {
        let op = make.op();
        let flag = |value: bool| -> Result<Value<'c>, Reported> {
            let i1 = Type::int(op.context(), 1);
            constant(op, i1, Attr::bool(op.context(), value))
        };
        let nan = make.padding() == PaddingOption::Nan;
        let parts = Parts {
            base: make.base(),
            shape: make.shape().collect(),
            strides: make.strides().collect(),
            nan: flag(nan)?,
            round: flag(false)?,
            passed: false,
        };
        if let Some(reason) = self.webs.reason(op.result(0)).filter(|_| self.explain) {
            op.remark(format!("becomes pointers: {reason}"));
        }
        self.parts.insert(op.result(0), parts);
        self.erase.push(op);
        Ok(())
    }

    fn access(&mut self, op: Op<'c>) -> Result<(), Reported> {
        let Some(parts) = self.parts.get(&op.operand(0)) else {
            return Err(error(op, "uses a tensor descriptor that is not known here"));
        };
        let ty = TensorDescType::cast(op.operand(0).ty()).ok_or_else(|| {
            error(op, format!("accesses {}, which is no tiled descriptor", op.operand(0).ty()))
        })?;
        Access::new(op, parts, ty)?.rewrite()?;
        self.erase.push(op);
        Ok(())
    }

    /// Lets an access move the block as the descriptor has it, which may have other dimensions than the tensor. Leading
    /// dimensions of one element may be missing, since a dot reads matrices; in clusters they may not, which divide blocks
    /// along any dimension.
    fn whole_block(&self, op: Op<'c>) -> Result<(), Reported> {
        let desc = TensorDescType::cast(op.operand(0).ty());
        let Some((desc, block)) = desc.and_then(|desc| Some((desc, desc.block()?))) else {
            return Err(error(op, "moves no block"));
        };
        let moved = if op.num_results() == 0 { op.operand(1) } else { op.result(0) };
        let holds = |ty: TensorType<'_>| ty.rank() > 1 && buffer_plans::holds_block(desc, &ty.shape());
        let as_it_is = !self.several_blocks && moved.ty().as_tensor().is_some_and(holds);
        if as_it_is || moved.ty() == block.ty() {
            return Ok(());
        }
        if op.num_results() == 0 {
            op.set_operand(1, before(op, "tt.reshape", &[moved], block.ty())?);
            return Ok(());
        }
        let (wanted, uses): (_, Vec<(Op<'_>, usize)>) = (moved.ty(), moved.uses().collect());
        moved.set_type(block.ty());
        let reshape = ReshapeOp::build(op.loc(), moved).results(&[wanted]).detached()?;
        reshape.op().move_after(op);
        uses.into_iter().for_each(|(user, operand)| user.set_operand(operand, reshape.result()));
        Ok(())
    }
}

/// The attribute that `ub.poison` needs.
fn poison<'c>(ctx: mlir_host::ir::Context<'c>) -> Vec<(&'static str, Attr<'c>)> {
    Attr::parse(ctx, "#ub.poison").map(|value| ("value", value)).into_iter().collect()
}

/// Puts an operation with one result before `op`.
fn before<'c>(
    op: Op<'c>,
    name: &str,
    operands: &[Value<'c>],
    result: Type<'c>,
) -> Result<Value<'c>, Reported> {
    with_attrs(op, name, operands, result, &[])
}

fn with_attrs<'c>(
    op: Op<'c>,
    name: &str,
    operands: &[Value<'c>],
    result: Type<'c>,
    attrs: &[(&str, Attr<'c>)],
) -> Result<Value<'c>, Reported> {
    let loc: Loc<'c> = op.loc();
    let made = create(name, loc, operands, &[result], attrs, &[])?;
    made.move_before(op);
    Ok(made.result(0))
}

fn constant<'c>(op: Op<'c>, ty: Type<'c>, value: Attr<'c>) -> Result<Value<'c>, Reported> {
    with_attrs(op, "arith.constant", &[], ty, &[("value", value)])
}
