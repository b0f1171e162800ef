//! `--triton-rewrite-tensor-descriptor-to-pointer`: accesses through tensor
//! descriptors as accesses through pointers, for targets without them.
//!
//! A descriptor becomes what it is made of: base, shape, strides, and two
//! flags, in this order, which is also how a launcher passes one: whether
//! elements outside of the tensor are NaN, and whether `f32` is rounded to
//! `tf32` as it is loaded. Results, block arguments and operands that are
//! descriptors are replaced by these in place.

mod access;

use crate::machine::error;
use access::Access;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Block, FunctionType, Loc, Op, Region, Type, Value};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::{create, create_branch, new_region};
use smallvec::SmallVec;
use std::collections::HashMap;
use ttopt_dialect::tt::ops::MakeTensorDescOp;
use ttopt_dialect::tt::types::{TensorDescType, pointer_to};

/// The pass.
pub static REWRITE_TENSOR_DESCRIPTOR_TO_POINTER: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["tt", "arith", "scf", "cf"],
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
        })
    }
}

/// The types of the parts of a descriptor that is passed on: `None` for other types.
fn part_types<'c>(ty: Type<'c>) -> Option<Vec<Type<'c>>> {
    let desc = TensorDescType::cast(ty)?;
    let rank = desc.shape().len();
    let (i64t, i1) = (Type::int(ty.context(), 64), Type::int(ty.context(), 1));
    let mut types = vec![pointer_to(desc.signless_element())?];
    types.extend(std::iter::repeat_n(i64t, 2 * rank));
    types.extend([i1, i1]);
    Some(types)
}

fn flatten_types<'c>(types: impl IntoIterator<Item = Type<'c>>) -> Vec<Type<'c>> {
    types.into_iter().flat_map(|ty| part_types(ty).unwrap_or_else(|| vec![ty])).collect()
}

fn is_descriptor(value: Value<'_>) -> bool {
    TensorDescType::cast(value.ty()).is_some()
}

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let mut rewrite = Rewrite { parts: HashMap::new(), erase: Vec::new() };
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
    parts: HashMap<Value<'c>, Parts<'c>>,
    erase: Vec<Op<'c>>,
}

/// The attributes that operations passing values on have of their own.
const INHERENT: [&str; 7] =
    ["callee", "unsignedCmp", "branch_weights", "operandSegmentSizes", "arg_attrs", "res_attrs", "fastmath"];

impl<'c> Rewrite<'c> {
    fn region(&mut self, region: Region<'c>) -> Result<(), Reported> {
        // All arguments first: branches may go backwards.
        let blocks = crate::ir_util::blocks_in_dominance_order(region);
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
        if !old.iter().copied().any(is_descriptor) {
            return Ok(());
        }
        for arg in &old {
            match part_types(arg.ty()) {
                Some(types) => {
                    let rank = (types.len() - 3) / 2;
                    let new: Vec<Value<'c>> =
                        types.into_iter().map(|ty| block.add_arg(ty, arg.loc())).collect();
                    let Some(parts) = Parts::of_values(&new, rank) else { return Err(Reported) };
                    self.parts.insert(*arg, parts);
                }
                None => arg.replace_all_uses_with(block.add_arg(arg.ty(), arg.loc())),
            }
        }
        // Descriptors are still used by operations to come; they go with their
        // uses, when those have been rewritten.
        for (i, arg) in old.iter().enumerate().rev() {
            if is_descriptor(*arg) {
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
        let stand_in = create("ub.poison", arg.loc(), &[], &[arg.ty()], &poison(ctx), &[]);
        let Some(stand_in) = stand_in else { return Err(Reported) };
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
        match op.name() {
            "tt.func" => self.function(op)?,
            "tt.make_tensor_descriptor" => return self.make(op),
            "tt.descriptor_load"
            | "tt.descriptor_store"
            | "tt.descriptor_reduce"
            | "tt.descriptor_gather"
            | "tt.descriptor_scatter" => return self.access(op),
            // A stand-in.
            "ub.poison" if op.num_results() == 1 && self.parts.contains_key(&op.result(0)) => return Ok(()),
            "arith.select" if is_descriptor(op.result(0)) => return self.select(op),
            _ => {}
        }
        let op = match op.operands().any(is_descriptor) || op.results().any(is_descriptor) {
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
        let (inputs, results) = (signature.inputs(), signature.results());
        let ctx = op.context();
        for (name, types) in [("arg_attrs", &inputs), ("res_attrs", &results)] {
            let Some(given) = op.attr(name).and_then(Attr::as_array) else { continue };
            let mut all = Vec::new();
            for (ty, attrs) in types.iter().zip(given) {
                let n = part_types(*ty).map_or(1, |parts| parts.len());
                all.push(attrs);
                // What is said of a descriptor is said of its base.
                all.extend(std::iter::repeat_n(Attr::dict(ctx, &[]), n - 1));
            }
            op.set_attr(name, Attr::array(ctx, &all));
        }
        let ty = FunctionType::new(ctx, &flatten_types(inputs), &flatten_types(results)).ty();
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
        let passes = op.name().starts_with("scf.")
            || op.name().starts_with("cf.")
            || matches!(op.name(), "tt.call" | "tt.return");
        if !passes {
            let name = op.name();
            return Err(error(op, format!("'{name}' of tensor descriptors cannot become one of pointers")));
        }
        let mut operands = Vec::new();
        let mut lengths = Vec::new();
        for operand in op.operands() {
            let new = if is_descriptor(operand) { self.passed(op, operand)? } else { vec![operand] };
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
        let results = flatten_types(op.results().map(Value::ty));
        let successors: Vec<Block<'c>> = op.successors().collect();
        let made = if successors.is_empty() {
            let regions: Vec<_> = op.regions().map(|_| new_region()).collect();
            create(op.name(), op.loc(), &operands, &results, &attrs, &regions)
        } else {
            create_branch(op.name(), op.loc(), &operands, &attrs, &successors)
        };
        let Some(made) = made else { return Err(Reported) };
        made.move_before(op);
        for (new, old) in made.regions().zip(op.regions()) {
            new.take_body(old);
        }
        let mut new: Vec<Value<'c>> = made.results().collect();
        for old in op.results() {
            let n = part_types(old.ty()).map_or(1, |types| types.len());
            let rest = new.split_off(n.min(new.len()));
            match Parts::of_values(&new, n.saturating_sub(3) / 2).filter(|_| is_descriptor(old)) {
                Some(parts) => drop(self.parts.insert(old, parts)),
                None => old.replace_all_uses_with(new[0]),
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
        let Some(parts) = Parts::of_values(&chosen, (chosen.len() - 3) / 2) else { return Err(Reported) };
        self.parts.insert(op.result(0), parts);
        self.erase.push(op);
        Ok(())
    }

    fn make(&mut self, op: Op<'c>) -> Result<(), Reported> {
        let Some(make) = MakeTensorDescOp::cast(op) else { return Err(Reported) };
        let flag = |value: bool| -> Result<Value<'c>, Reported> {
            let i1 = Type::int(op.context(), 1);
            constant(op, i1, Attr::bool(op.context(), value))
        };
        let nan =
            make.padding().is_some_and(|padding| padding == ttopt_dialect::tt::enums::PaddingOption::Nan);
        let parts = Parts {
            base: make.base(),
            shape: make.shape().collect(),
            strides: make.strides().collect(),
            nan: flag(nan)?,
            round: flag(false)?,
        };
        self.parts.insert(op.result(0), parts);
        self.erase.push(op);
        Ok(())
    }

    fn access(&mut self, op: Op<'c>) -> Result<(), Reported> {
        let Some(parts) = self.parts.get(&op.operand(0)) else {
            return Err(error(op, "uses a tensor descriptor that is not known here"));
        };
        let Some(ty) = TensorDescType::cast(op.operand(0).ty()) else { return Err(Reported) };
        Access::new(op, parts, ty)?.rewrite()?;
        self.erase.push(op);
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
    let Some(made) = create(name, loc, operands, &[result], attrs, &[]) else { return Err(Reported) };
    made.move_before(op);
    Ok(made.result(0))
}

fn constant<'c>(op: Op<'c>, ty: Type<'c>, value: Attr<'c>) -> Result<Value<'c>, Reported> {
    with_attrs(op, "arith.constant", &[], ty, &[("value", value)])
}
