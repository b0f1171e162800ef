//! `--triton-nvidia-tma-lowering`: descriptors as tensor maps, accesses through them as bulk copies.
//!
//! Loads of a `Group` share one mbarrier, which counts their bytes. In a loop it is made before the loop: each
//! iteration completes one phase, whose parity is an iter_arg. What a dot reads from shared memory is the buffer that
//! the copy fills; so is what is stored through another descriptor.

use super::groups::{self, Group};
use super::{element_type, is_load, moves_rows};
use crate::buffer_plans;
use crate::fence_insertion;
use crate::ir_util::{convert_before, layout_of, remake, with_layout};
use crate::machine::{self, Layouts, Machine, error, internal};
use crate::plans::TENSOR_MAP_BYTES;
use crate::tma::is_access;
use linear_layout::Encoding;
use linear_layout::encoding::{Blocked, SwizzledShared};
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::match_op;
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::{IrRewriter, create};
use mlir_host::upstream::ForOp;
use std::collections::HashMap;
use ttopt_dialect::tt::attrs::CachePolicy;
use ttopt_dialect::tt::enums::{CacheModifier, EvictionPolicy, PaddingOption};
use ttopt_dialect::tt::ops::{DescriptorReduceOp, DescriptorScatterOp, DescriptorStoreOp, MakeTensorDescOp};
use ttopt_dialect::tt::types::{TensorDescType, pointer_to};
use ttopt_dialect::ttg::attrs::{encoding, encoding_attr, shared_memory};
use ttopt_dialect::ttg::ops::is_memdesc_view;
use ttopt_dialect::ttg::types::MemDescType;

/// The pass.
pub static TMA_LOWERING: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg", "ttng", "arith", "scf"],
    ..PassDef::new(
        "triton-nvidia-tma-lowering",
        "Make tensor maps of descriptors, and bulk copies of accesses through them",
        run,
    )
};

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let mut accesses = Vec::new();
    module.walk(&mut |op| {
        if MakeTensorDescOp::cast(op).is_some() || is_access(op) {
            accesses.push(op);
        }
        Walk::Advance
    });
    if accesses.is_empty() {
        return Ok(());
    }
    let target = machine::target(module)?;
    let layouts = Layouts::new(module.context(), Machine::of(module)?);
    let mut lowering = Lowering { target, layouts, phases: HashMap::new(), buffers: HashMap::new() };
    for group in groups::find(module) {
        lowering.group(&group)?;
    }
    let (loads, others): (Vec<_>, Vec<_>) = accesses.into_iter().partition(|op| is_load(*op));
    for op in others {
        lowering.access(op)?;
    }
    // Loads last: what is stored again was still theirs.
    loads.into_iter().for_each(Op::erase);
    Ok(())
}

struct Lowering<'c> {
    target: TargetDesc,
    layouts: Layouts<'c>,
    /// The iter_arg that is the phase parity of a loop's mbarriers, by the body of the loop.
    phases: HashMap<Op<'c>, Value<'c>>,
    /// What loads have put into shared memory, by their results.
    buffers: HashMap<Value<'c>, Value<'c>>,
}

/// Puts an operation before `at`.
fn before<'c>(
    at: Op<'c>,
    name: &str,
    operands: &[Value<'c>],
    results: &[Type<'c>],
    attrs: &[(&str, Attr<'c>)],
) -> Result<Op<'c>, Reported> {
    let made = create(name, at.loc(), operands, results, attrs, &[])?;
    made.move_before(at);
    Ok(made)
}

fn constant<'c>(at: Op<'c>, bits: u32, value: i64) -> Result<Value<'c>, Reported> {
    let ty = Type::int(at.context(), bits);
    Ok(before(at, "arith.constant", &[], &[ty], &[("value", Attr::int_of(ty, value))])?.result(0))
}

fn number(op: Op<'_>, value: u64) -> Attr<'_> {
    Attr::int(op.context(), 32, value as i64)
}

/// The type of buffers for `block`, a tensor, which is copied through a descriptor.
fn buffer_type<'c>(
    op: Op<'c>,
    desc: TensorDescType<'c>,
    block: Value<'c>,
    mutable: bool,
) -> Result<MemDescType<'c>, Reported> {
    let shape = block.ty().as_tensor().map_or_else(|| desc.shape(), |ty| ty.shape().to_vec());
    if desc.layout().is_none() {
        let pass = "--triton-nvidia-optimize-descriptor-encoding";
        return Err(error(op, format!("the descriptor {} has no layout: run {pass} first", desc.ty())));
    }
    let layout = buffer_plans::tma_buffer_layout(desc, shape.len()).map_err(|reason| error(op, reason))?;
    shared_memory(op.context())
        .and_then(|space| MemDescType::new(&shape, desc.signless_element(), layout, space, mutable))
        .ok_or_else(|| error(op, format!("no buffer holds blocks of {}", desc.ty())))
}

/// The part of a load's cache policy that copies know: when lines of L2 go.
fn eviction<'c>(load: Op<'c>) -> Option<Attr<'c>> {
    let policy = CachePolicy::decode(load.attr("cachePolicy")?)?;
    let kept = CachePolicy { modifier: CacheModifier::None, ..policy };
    kept.attr(load.context()).filter(|_| policy.eviction != EvictionPolicy::Normal)
}

fn descriptor<'c>(op: Op<'c>, value: Value<'c>) -> Result<TensorDescType<'c>, Reported> {
    TensorDescType::cast(value.ty()).ok_or_else(|| error(op, "is no access through a tensor descriptor"))
}

impl<'c> Lowering<'c> {
    /// The type of the buffer that `block` is copied to or from, and the bytes of each CTA of a cluster.
    fn buffer(
        &self,
        op: Op<'c>,
        block: Value<'c>,
        mutable: bool,
    ) -> Result<(MemDescType<'c>, u64), Reported> {
        let desc = descriptor(op, op.operand(0))?;
        let ty = buffer_type(op, desc, block, mutable)?;
        let bytes = if moves_rows(op) {
            let numbers = self.numbers_type(op, ty)?;
            buffer_plans::tma_rows(desc, ty, numbers, &self.target).map(|plan| plan.bytes)
        } else {
            buffer_plans::tma(desc, ty.encoding(), &self.target).map(|plan| plan.bytes())
        };
        Ok((ty, bytes.map_err(|reason| error(op, reason))?))
    }

    /// The type of row numbers for a buffer: four in each thread, the same in all lanes of a warp.
    fn numbers_type(&self, op: Op<'c>, buffer: MemDescType<'c>) -> Result<Type<'c>, Reported> {
        let machine = &self.layouts.machine;
        let cga = encoding(buffer.encoding()).map_err(|reason| error(op, reason))?.cga_layout();
        let layout = Blocked {
            size_per_thread: vec![1, 4],
            threads_per_warp: vec![machine.threads_per_warp, 1],
            warps_per_cta: vec![1, machine.num_warps],
            order: vec![1, 0],
            cga: cga.iter().map(|basis| vec![0, basis.first().copied().unwrap_or(0)]).collect(),
        };
        let layout = self.layouts.blocked(layout).and_then(|layout| self.layouts.slice(0, layout));
        let layout = layout.map_err(|reason| error(op, reason))?;
        let ty = op.operand(1).ty().as_tensor().and_then(|ty| with_layout(ty, layout));
        ty.ok_or_else(|| error(op, "has no vector of row numbers"))
    }

    /// The numbers of the rows that `op` moves, as threads need them.
    fn numbers(&self, op: Op<'c>, at: Op<'c>, buffer: MemDescType<'c>) -> Result<Value<'c>, Reported> {
        let ty = self.numbers_type(op, buffer)?;
        let layout = ty.as_tensor().and_then(|ty| ty.encoding());
        let layout = layout.ok_or_else(|| internal(op, "numbers of rows without a layout"))?;
        convert_before(&mut IrRewriter::new(op.context()), at, op.operand(1), layout)
    }

    //===------------------------------------------------------------------===//
    // Loads
    //===------------------------------------------------------------------===//

    fn group(&mut self, group: &Group<'c>) -> PassResult {
        let (Some(first), Some(last)) = (group.loads.first(), group.loads.last()) else { return Ok(()) };
        let (first, last) = (*first, *last);
        let around = last.parent().filter(|op| ForOp::cast(*op).is_some());
        let (barrier, phase) = match around {
            Some(body) => {
                let (body, phase) = self.phase(body)?;
                let barrier = self.barrier(body)?;
                let after = before(body, "ttng.inval_barrier", &[barrier], &[], &[])?;
                after.move_after(body);
                (barrier, phase)
            }
            None => (self.barrier(last)?, constant(last, 32, 0)?),
        };
        let (mut buffers, mut numbers) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for load in &group.loads {
            let (ty, more) = self.buffer(*load, load.result(0), true)?;
            bytes += more;
            buffers.push(before(first, "ttg.local_alloc", &[], &[ty.ty()], &[])?.result(0));
            numbers.push(moves_rows(*load).then(|| self.numbers(*load, last, ty)).transpose()?);
        }
        let always = constant(last, 1, 1)?;
        before(last, "ttng.barrier_expect", &[barrier, always], &[], &[("size", number(last, bytes))])?;
        for ((load, buffer), numbers) in group.loads.iter().zip(&buffers).zip(numbers) {
            let mut operands: Vec<Value<'c>> = load.operands().collect();
            let count = operands.len() as i32 - 1;
            operands.extend([barrier, *buffer, always]);
            if let Some(numbers) = numbers {
                operands[1] = numbers;
                before(last, "ttng.async_tma_gather", &operands, &[], &[])?;
                continue;
            }
            let sizes = Attr::i32_array(last.context(), &[1, count, 0, 1, 1, 1]);
            let mut attrs = vec![("operandSegmentSizes", sizes)];
            attrs.extend(eviction(*load).map(|policy| ("cachePolicy", policy)));
            before(last, "ttng.async_tma_copy_global_to_local", &operands, &[], &attrs)?;
        }
        let mut operands = vec![barrier, phase];
        operands.extend(&buffers);
        let sizes =
            ("operandSegmentSizes", Attr::i32_array(last.context(), &[1, 1, 0, buffers.len() as i32]));
        before(last, "ttng.wait_barrier", &operands, &[], &[sizes])?;
        if around.is_none() {
            before(last, "ttng.inval_barrier", &[barrier], &[], &[])?;
        }
        for (load, buffer) in group.loads.iter().zip(buffers) {
            for copy in groups::copies_of(*load) {
                rename(copy.result(0), buffer)?;
                copy.erase();
            }
            let result = load.result(0);
            self.buffers.insert(result, buffer);
            let users: Vec<(Op<'c>, usize)> = result.uses().collect();
            let users: Vec<_> =
                users.into_iter().filter(|(user, _)| !self.stores_again(*user, result)).collect();
            if !users.is_empty() {
                let loaded = self.loaded(last, buffer, result)?;
                users.into_iter().for_each(|(user, operand)| user.set_operand(operand, loaded));
            }
        }
        Ok(())
    }

    /// What `buffer` holds, with the type of `wanted`. CTAs of a cluster read their own memory, and exchange
    /// what they need otherwise.
    fn loaded(&self, at: Op<'c>, buffer: Value<'c>, wanted: Value<'c>) -> Result<Value<'c>, Reported> {
        let fail = |reason: String| error(at, reason);
        let ty = MemDescType::cast(buffer.ty()).ok_or_else(|| internal(at, "loads from no buffer"))?;
        let layout = layout_of(wanted).ok_or_else(|| error(at, "loads a tensor without a layout"))?;
        let cga = encoding(ty.encoding()).map_err(fail)?.cga_layout();
        if encoding(layout).map_err(fail)?.cga_layout() == cga {
            return Ok(before(at, "ttg.local_load", &[buffer], &[wanted.ty()], &[])?.result(0));
        }
        let tensor = wanted.ty().as_tensor().ok_or_else(|| internal(at, "loads no tensor"))?;
        let own = Blocked { cga, ..self.layouts.machine.default_blocked(&tensor.shape()) };
        let own = self.layouts.blocked(own).map_err(fail)?;
        let own = with_layout(tensor, own).ok_or_else(|| error(at, "no tensor type has this layout"))?;
        let loaded = before(at, "ttg.local_load", &[buffer], &[own], &[])?.result(0);
        convert_before(&mut IrRewriter::new(at.context()), at, loaded, layout)
    }

    /// Whether `user` stores what was loaded to `value` as it lies in shared memory.
    fn stores_again(&self, user: Op<'c>, value: Value<'c>) -> bool {
        let Some(store) = DescriptorStoreOp::cast(user) else { return false };
        let Some(desc) = TensorDescType::cast(store.desc().ty()) else { return false };
        let buffer = self.buffers.get(&value).and_then(|buffer| MemDescType::cast(buffer.ty()));
        store.src() == value
            && buffer.is_some_and(|buffer| {
                let layout = buffer_plans::tma_buffer_layout(desc, buffer.rank());
                layout == Ok(buffer.encoding()) && buffer_plans::holds_block(desc, &buffer.shape())
            })
    }

    /// A new barrier for one arrival, made before `at`.
    fn barrier(&self, at: Op<'c>) -> Result<Value<'c>, Reported> {
        let ctas = self.layouts.machine.num_ctas;
        // A word for each block of the cluster.
        let cga = (0..ctas.trailing_zeros()).map(|bit| vec![1 << bit]).collect();
        let layout = SwizzledShared { vec: 1, per_phase: 1, max_phase: 1, order: vec![0], cga };
        let layout = encoding_attr(at.context(), &Encoding::SwizzledShared(layout));
        let layout = layout.map_err(|reason| error(at, reason))?;
        let word = Type::int(at.context(), 64);
        let ty = shared_memory(at.context())
            .and_then(|space| MemDescType::new(&[ctas as i64], word, layout, space, true));
        let ty = ty.ok_or_else(|| error(at, "no buffer holds a barrier"))?;
        let barrier = before(at, "ttg.local_alloc", &[], &[ty.ty()], &[])?.result(0);
        before(at, "ttng.init_barrier", &[barrier], &[], &[("count", number(at, 1))])?;
        Ok(barrier)
    }

    /// The phase parity of each iteration of a loop, which is rebuilt with it as one more iter_arg.
    fn phase(&mut self, op: Op<'c>) -> Result<(Op<'c>, Value<'c>), Reported> {
        if let Some(phase) = self.phases.get(&op) {
            return Ok((op, *phase));
        }
        let i32t = Type::int(op.context(), 32);
        let mut operands: Vec<Value<'c>> = op.operands().collect();
        operands.push(constant(op, 32, 0)?);
        let mut results: Vec<Type<'c>> = op.results().map(Value::ty).collect();
        results.push(i32t);
        let made = remake(op, &operands, &results)?;
        let body = made.region(0).first_block();
        let Some((body, end)) = body.and_then(|body| Some((body, body.terminator()?))) else {
            return Err(error(op, "is a loop without a body"));
        };
        let phase = body.add_arg(i32t, op.loc());
        let one = constant(end, 32, 1)?;
        let next = before(end, "arith.xori", &[phase, one], &[i32t], &[])?.result(0);
        let mut yielded: Vec<Value<'c>> = end.operands().collect();
        yielded.push(next);
        end.set_operands(&yielded);
        for (old, new) in op.results().zip(made.results()) {
            old.replace_all_uses_with(new);
        }
        op.erase();
        self.phases.insert(made, phase);
        Ok((made, phase))
    }

    //===------------------------------------------------------------------===//
    // Stores and descriptors
    //===------------------------------------------------------------------===//

    fn access(&mut self, op: Op<'c>) -> PassResult {
        match_op!(op, {
            MakeTensorDescOp => return self.make(op),
            DescriptorStoreOp(store) => {
                let indices: Vec<Value<'c>> = store.indices().collect();
                self.store(op, store.src(), &indices, "ttng.async_tma_copy_local_to_global")?;
            },
            DescriptorReduceOp(reduce) => {
                let indices: Vec<Value<'c>> = reduce.indices().collect();
                self.store(op, reduce.src(), &indices, "ttng.async_tma_reduce")?;
            },
            _ => {
                let scatter = DescriptorScatterOp::of(op);
                let indices = [scatter.x_offsets(), scatter.y_offset()];
                self.store(op, scatter.src(), &indices, "ttng.async_tma_scatter")?;
            },
        });
        op.erase();
        Ok(())
    }

    /// Copies `src` to shared memory, if it is not there, and from there.
    fn store(&mut self, op: Op<'c>, src: Value<'c>, indices: &[Value<'c>], name: &str) -> PassResult {
        let ty = self.buffer(op, src, false)?.0;
        let mut operands = vec![op.operand(0)];
        operands.extend(indices);
        if moves_rows(op) {
            operands[1] = self.numbers(op, op, ty)?;
        }
        let buffer = match self.buffers.get(&src).filter(|_| self.stores_again(op, src)) {
            Some(buffer) => *buffer,
            None => {
                let buffer = before(op, "ttg.local_alloc", &[src], &[ty.ty()], &[])?.result(0);
                fence_insertion::fence(op)?.move_before(op);
                buffer
            }
        };
        operands.push(buffer);
        let attrs: Vec<_> = op.attr("kind").map(|kind| ("kind", kind)).into_iter().collect();
        before(op, name, &operands, &[], &attrs)?;
        before(op, "ttng.async_tma_store_wait", &[], &[], &[("pendings", number(op, 0))])?;
        Ok(())
    }

    fn make(&mut self, op: Op<'c>) -> PassResult {
        let (make, desc) = (MakeTensorDescOp::of(op), descriptor(op, op.result(0))?);
        let map = buffer_plans::tma_map(desc, &self.target).map_err(|reason| error(op, reason))?;
        let ctx = op.context();
        let (element, bytes) = (desc.element(), map.elem_bytes() as i64);
        let pointer = pointer_to(Type::int(ctx, 8)).ok_or_else(|| internal(op, "no pointers to bytes"))?;
        let memory = [("nbytes", number(op, TENSOR_MAP_BYTES)), ("alignment", number(op, TENSOR_MAP_BYTES))];
        let place = before(op, "ttg.global_scratch_alloc", &[], &[pointer], &memory)?.result(0);
        let mut operands = vec![place, make.base()];
        for size in map.box_shape.iter().rev() {
            operands.push(constant(op, 32, *size as i64)?);
        }
        operands.extend(make.shape().collect::<Vec<_>>().into_iter().rev());
        let strides: Vec<Value<'c>> = make.strides().collect();
        for stride in strides.iter().rev().skip(1) {
            let size = constant(op, 64, bytes)?;
            operands.push(before(op, "arith.muli", &[*stride, size], &[stride.ty()], &[])?.result(0));
        }
        let one = constant(op, 32, 1)?;
        let rank = map.box_shape.len();
        operands.extend(std::iter::repeat_n(one, rank));
        let nan = make.padding() == PaddingOption::Nan;
        let rank = rank as i32;
        let attrs = [
            ("elem_type", number(op, element_type(element).into())),
            ("interleave_layout", number(op, 0)),
            ("swizzle_mode", number(op, map.swizzle_mode().into())),
            ("fill_mode", number(op, nan.into())),
            ("operandSegmentSizes", Attr::i32_array(ctx, &[1, 1, rank, rank, rank - 1, rank])),
        ];
        before(op, "ttng.tensormap_create", &operands, &[], &attrs)?;
        before(op, "ttng.tensormap_fenceproxy_acquire", &[place], &[], &[])?;
        let made = before(op, "ttng.reinterpret_tensor_descriptor", &[place], &[desc.ty()], &[])?;
        op.result(0).replace_all_uses_with(made.result(0));
        op.erase();
        Ok(())
    }
}

/// Replaces a buffer that nobody writes by one that is written, in its views too.
fn rename<'c>(old: Value<'c>, new: Value<'c>) -> PassResult {
    let users: Vec<(Op<'c>, usize)> = old.uses().collect();
    old.replace_all_uses_with(new);
    let mut views: Vec<Op<'c>> = users.into_iter().map(|(user, _)| user).collect();
    while let Some(view) = views.pop() {
        if !is_memdesc_view(view) {
            continue;
        }
        let result = view.result(0);
        let not_a_view = || internal(view, "a view that is no buffer");
        let ty = MemDescType::cast(result.ty()).ok_or_else(not_a_view)?;
        let ty =
            MemDescType::view(&ty.shape(), ty.element(), ty.encoding(), ty.space(), true, &ty.alloc_shape());
        result.set_type(ty.ok_or_else(not_a_view)?.ty());
        views.extend(result.uses().map(|(user, _)| user));
    }
    Ok(())
}
