//! Functions, calls and control flow.

use super::dot;
use crate::emit::{ICmp, Lowered, internal, unsupported};
use crate::lower::{Handler, Lower, reachable};
use mlir_host::ir::{Attr, Block, Op, Region, Type, Value};
use mlir_host::traits::Upstream;
use ttopt_dialect::tt::ops::CallOp;
use ttopt_passes::{global_scratch, shared_memory};

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("tt.return", ret),
    ("tt.call", call),
    ("scf.for", scf_for),
    ("scf.if", scf_if),
    ("scf.while", scf_while),
    // Terminators of structured regions: their parent reads the operands.
    ("scf.yield", |_, _| Ok(())),
    ("scf.condition", |_, _| Ok(())),
    ("tt.map_elementwise.return", inlined_return),
    ("ttg.warp_yield", inlined_return),
    ("ttg.warp_return", inlined_return),
    ("cf.br", br),
    ("cf.cond_br", cond_br),
    ("llvm.intr.assume", assume),
];

fn ret<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    l.dismiss_workers()?;
    let values = l.get_flat(op.operands())?;
    let operands: Vec<Value<'c>> = match values.as_slice() {
        [] | [_] => values,
        many => {
            let types: Vec<Type<'c>> = many.iter().map(|value| value.ty()).collect();
            let ty = l.emit.struct_of(&types)?;
            let mut all = l.emit.undef(ty)?;
            for (i, value) in many.iter().enumerate() {
                all = l.emit.insert_value(all, *value, i)?;
            }
            vec![all]
        }
    };
    l.emit.op("llvm.return", &operands, &[], &[])?;
    Ok(())
}

fn call<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(callee) = CallOp::of(op).callee().as_symbol() else { return internal("no callee") };
    let mut args = l.get_flat(op.operands())?;
    if op.attr(shared_memory::OFFSET).is_some() {
        args.push(l.scratch(op)?);
    }
    if let Some(offset) = op.attr(global_scratch::OFFSET).and_then(Attr::as_int) {
        args.push(l.global_scratch_at(offset)?);
    }
    let types: Vec<Type<'c>> = op.results().map(Value::ty).collect();
    let flat = l.flatten(types)?;
    let results = l.emit.call(callee, &args, &flat)?;
    l.set_flat(op.results(), &results)
}

/// Gives a block's arguments their values and lowers its operations here.
pub(super) fn enter<'c>(
    l: &mut Lower<'_, 'c>,
    block: Block<'c>,
    args: &[Value<'c>],
) -> Lowered<Vec<Value<'c>>> {
    l.set_flat(block.args(), args)?;
    l.lower_block(block)?;
    match block.terminator() {
        Some(terminator) => l.get_flat(terminator.operands()),
        None => internal("block without a terminator"),
    }
}

fn only_block<'c>(region: Region<'c>) -> Lowered<Block<'c>> {
    let mut blocks = region.blocks();
    match (blocks.next(), blocks.next()) {
        (Some(block), None) => Ok(block),
        _ => unsupported("expected a region of one block"),
    }
}

fn types_of<'c>(values: &[Value<'c>]) -> Vec<Type<'c>> {
    values.iter().map(|value| value.ty()).collect()
}

/// How loops carry values and branches pass them on: elements of 8 and 16 bits in vectors of 32 bits, as registers hold them, and sums
/// of matrix instructions, where LLVM allocates registers, in vectors of a fragment each.
/// One by one each would take a register, and be packed and unpacked in every iteration.
struct Carried<'c> {
    /// Consecutive values and, where they are several, the vector that they become.
    groups: Vec<(usize, Option<(Type<'c>, Type<'c>)>)>,
}

impl<'c> Carried<'c> {
    /// Of values of these types.
    fn new(l: &mut Lower<'_, 'c>, types: impl Iterator<Item = Type<'c>>) -> Lowered<Self> {
        Self::of_sums(l, types, |_, _| None)
    }

    /// The same where `fragment` says how many consecutive registers each fragment of a value has, by the number of the value.
    fn of_sums(
        l: &mut Lower<'_, 'c>,
        types: impl Iterator<Item = Type<'c>>,
        fragment: impl Fn(&Lower<'_, 'c>, usize) -> Option<usize>,
    ) -> Lowered<Self> {
        let mut groups = Vec::new();
        for (number, ty) in types.enumerate() {
            let count = l.num_values(ty)?;
            let bits = match ty.as_tensor() {
                // Pointers stay as they are.
                Some(_) => l.register_type(ty.element())?.bits().unwrap_or(64),
                None => 32,
            };
            let together = match bits {
                8 | 16 => 32 / bits as usize,
                _ => fragment(l, number).unwrap_or(1),
            };
            if together == 1 || count % together != 0 {
                groups.extend(std::iter::repeat_n((1, None), count));
                continue;
            }
            let element = l.register_type(ty.element())?;
            let vector = l.emit.vector(together, element)?;
            groups.extend(std::iter::repeat_n((together, Some((vector, element))), count / together));
        }
        Ok(Self { groups })
    }

    /// The types that values of types `flat` are carried in.
    fn types(&self, flat: &[Type<'c>]) -> Vec<Type<'c>> {
        let mut rest = flat.iter();
        let of = |(count, vector): &(usize, Option<(Type<'c>, Type<'c>)>)| {
            let first = rest.nth(*count - 1).copied();
            vector.map(|(vector, _)| vector).or(first)
        };
        self.groups.iter().filter_map(of).collect()
    }

    fn pack(&self, l: &mut Lower<'_, 'c>, values: &[Value<'c>]) -> Lowered<Vec<Value<'c>>> {
        let mut rest = values;
        let mut packed = Vec::with_capacity(self.groups.len());
        for (count, vector) in &self.groups {
            let Some((mine, others)) = rest.split_at_checked(*count) else {
                return internal("too few values are carried");
            };
            rest = others;
            let Some((ty, _)) = vector else {
                packed.extend(mine);
                continue;
            };
            packed.push(l.emit.join(mine, *ty)?);
        }
        Ok(packed)
    }

    fn unpack(&self, l: &mut Lower<'_, 'c>, packed: &[Value<'c>]) -> Lowered<Vec<Value<'c>>> {
        let mut values = Vec::new();
        for ((count, vector), value) in self.groups.iter().zip(packed) {
            match vector {
                None => values.push(*value),
                Some((_, element)) => {
                    for i in 0..*count {
                        values.push(l.emit.extract_element(*value, i, *element)?);
                    }
                }
            }
        }
        Ok(values)
    }
}

fn scf_for<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (lower, upper, step) = (l.scalar(op.operand(0))?, l.scalar(op.operand(1))?, l.scalar(op.operand(2))?);
    let body = only_block(op.region(0))?;
    let next: Vec<Value<'c>> =
        body.terminator().map(|yielded| yielded.operands().collect()).unwrap_or_default();
    let of_sums =
        |l: &Lower<'_, 'c>, number: usize| next.get(number).and_then(|sum| dot::sums_together(l, *sum));
    let carried = Carried::of_sums(l, op.results().map(Value::ty), of_sums)?;
    let inits = l.get_flat(op.operands().skip(3))?;
    let inits = carried.pack(l, &inits)?;
    let unsigned = op.attr("unsignedCmp").is_some();
    let annotation = op.attr("llvm.loop_annotation");
    let mut types = vec![lower.ty()];
    types.extend(types_of(&inits));
    let header = l.new_block(&types)?;
    let inside = l.new_block(&[])?;
    let exit = l.new_block(&[])?;
    let mut args = vec![lower];
    args.extend(&inits);
    l.emit.br(header, &args, None)?;
    l.emit.set_block(header);
    let iv = header.arg(0);
    let packed: Vec<Value<'c>> = header.args().skip(1).collect();
    let predicate = if unsigned { ICmp::Ult } else { ICmp::Slt };
    let more = l.emit.icmp(predicate, iv, upper)?;
    l.emit.cond_br(more, (inside, &[]), (exit, &[]))?;
    l.emit.set_block(inside);
    let mut args = vec![iv];
    args.extend(carried.unpack(l, &packed)?);
    let yielded = enter(l, body, &args)?;
    // The induction variable cannot pass `upper + step`, which scf.for
    // requires not to overflow.
    l.emit.set_loc(op.loc());
    let next = l.emit.add(iv, step)?;
    let mut args = vec![next];
    args.extend(carried.pack(l, &yielded)?);
    l.emit.br(header, &args, annotation)?;
    l.emit.set_block(exit);
    let results = carried.unpack(l, &packed)?;
    l.set_flat(op.results(), &results)
}

fn scf_if<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let condition = l.scalar(op.operand(0))?;
    let passed = Carried::new(l, op.results().map(Value::ty))?;
    let types: Vec<Type<'c>> = op.results().map(Value::ty).collect();
    let flat = l.flatten(types)?;
    let then = l.new_block(&[])?;
    let or_else = l.new_block(&[])?;
    let join = l.new_block(&passed.types(&flat))?;
    l.emit.cond_br(condition, (then, &[]), (or_else, &[]))?;
    for (block, region) in [(then, op.region(0)), (or_else, op.region(1))] {
        l.emit.set_block(block);
        let yielded = if region.is_empty() { Vec::new() } else { enter(l, only_block(region)?, &[])? };
        l.emit.set_loc(op.loc());
        let yielded = passed.pack(l, &yielded)?;
        l.emit.br(join, &yielded, None)?;
    }
    l.emit.set_block(join);
    let packed: Vec<Value<'c>> = join.args().collect();
    let values = passed.unpack(l, &packed)?;
    l.set_flat(op.results(), &values)
}

fn scf_while<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let carried = Carried::new(l, op.operands().map(Value::ty))?;
    let inits = l.get_flat(op.operands())?;
    let inits = carried.pack(l, &inits)?;
    let annotation = op.attr("llvm.loop_annotation");
    let (before, after) = (only_block(op.region(0))?, only_block(op.region(1))?);
    let header = l.new_block(&types_of(&inits))?;
    l.emit.br(header, &inits, None)?;
    l.emit.set_block(header);
    let packed: Vec<Value<'c>> = header.args().collect();
    let args = carried.unpack(l, &packed)?;
    // scf.condition: the condition, then what is passed on.
    let passed = enter(l, before, &args)?;
    let [condition, passed @ ..] = passed.as_slice() else { return internal("while without a condition") };
    l.emit.set_loc(op.loc());
    let inside = l.new_block(&[])?;
    let exit = l.new_block(&[])?;
    l.emit.cond_br(*condition, (inside, &[]), (exit, &[]))?;
    l.emit.set_block(inside);
    let yielded = enter(l, after, passed)?;
    l.emit.set_loc(op.loc());
    let yielded = carried.pack(l, &yielded)?;
    l.emit.br(header, &yielded, annotation)?;
    l.emit.set_block(exit);
    l.set_flat(op.results(), passed)
}

fn br<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let args = l.get_flat(op.operands())?;
    let Some(dest) = op.successors().next() else { return unsupported("branch to nowhere") };
    let dest = l.block_of(dest)?;
    l.emit.br(dest, &args, None)
}

fn cond_br<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let condition = l.scalar(op.operand(0))?;
    let dests: Vec<Block<'c>> = op.successors().collect();
    let [then, or_else] = dests.as_slice() else {
        return unsupported("conditional branch without two successors");
    };
    let n = then.num_args();
    let then_args = l.get_flat(op.operand_range(1, n))?;
    let else_args = l.get_flat(op.operand_range(1 + n, op.num_operands() - 1 - n))?;
    let (then, or_else) = (l.block_of(*then)?, l.block_of(*or_else)?);
    l.emit.cond_br(condition, (then, &then_args), (or_else, &else_args))
}

fn assume<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let condition = l.scalar(op.operand(0))?;
    // Assumptions with bundles say more than a condition; those are dropped.
    if op.num_operands() == 1 {
        let sizes = Attr::i32_array(l.emit.context(), &[]);
        l.emit.op("llvm.intr.assume", &[condition], &[], &[("op_bundle_sizes", sizes)])?;
    }
    Ok(())
}

fn inlined_return<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let values = l.get_flat(op.operands())?;
    let Some(join) = l.inlined_exit() else { return internal("return outside of an inlined region") };
    l.emit.br(join, &values, None)
}

/// Lowers a region here, with its arguments replaced; returns what its
/// returns pass. Regions of several blocks become blocks of the function.
pub(super) fn inline_region<'c>(
    l: &mut Lower<'_, 'c>,
    region: Region<'c>,
    args: &[Value<'c>],
) -> Lowered<Vec<Value<'c>>> {
    let order = reachable(region);
    let mut returned: Option<Vec<Type<'c>>> = None;
    for block in &order {
        if let Some(op) = block.terminator().filter(|op| op.has_trait(Upstream::ReturnLike)) {
            let types: Vec<Type<'c>> = op.operands().map(Value::ty).collect();
            returned = Some(l.flatten(types)?);
        }
    }
    let Some(types) = returned else { return internal("region without a return") };
    let join = l.new_block(&types)?;
    let Some(entry) = region.first_block() else { return internal("empty region") };
    for block in order.iter().copied() {
        let flat = if block == entry {
            Vec::new()
        } else {
            l.flatten(block.args().map(|arg| arg.ty()).collect::<Vec<_>>())?
        };
        let made = l.new_block(&flat)?;
        l.map_block(block, made);
        if block != entry {
            let values: Vec<Value<'c>> = made.args().collect();
            l.set_flat(block.args(), &values)?;
        }
    }
    let first = l.block_of(entry)?;
    l.emit.br(first, &[], None)?;
    l.set_flat(entry.args(), args)?;
    let saved = l.set_inlined_exit(Some(join));
    for block in order {
        let made = l.block_of(block)?;
        l.emit.set_block(made);
        l.lower_block(block)?;
    }
    l.set_inlined_exit(saved);
    l.emit.set_block(join);
    Ok(join.args().collect())
}
