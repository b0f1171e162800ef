//! Dots of warp groups (`wgmma`).

use crate::emit::{Failure, Lowered, internal, unsupported};
use crate::handlers::dot::{at, fragment};
use crate::lower::{Handler, Lower, Values};
use crate::nvidia::wgmma::{WarpGroupFragment, WarpGroupMultiply, WarpGroupStep, Wgmma};
use crate::target::{MatrixTypes, need};
use linear_layout::plan::{
    DotType, MatrixDescriptorPlan, ThreadBases, WarpGroupDotPlan, WarpGroupRun, WarpGroupStep as PlannedStep,
};
use mlir_host::ir::{Op, Value};
use mlir_host::upstream::ConstantOp;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::{FenceAsyncSharedOp, WarpGroupDotOp, WarpGroupDotWaitOp};
use ttopt_passes::invariant_operands::branching_loop_without;
use ttopt_passes::kernel_decisions::WARP_OUTSIDE_LOOPS;
use ttopt_passes::plans;
use ttopt_passes::shared_memory::barriers::ALL_MEMORY;
use ttopt_passes::thread_group::ThreadGroup;

pub(super) const HANDLERS: &[(&str, Handler)] =
    &[("ttng.warp_group_dot", dot), ("ttng.warp_group_dot_wait", wait), ("ttng.fence_async_shared", fence)];

/// Warps of a warp group, of which the first has a number that is a multiple of this (PTX ISA, "wgmma").
const GROUP_WARPS: u32 = 4;

/// Bits of an address that a descriptor has.
const ADDRESS_BITS: i64 = (1 << 18) - 1;

fn groups(l: &Lower<'_, '_>) -> Lowered<Wgmma> {
    need(l.target.desc().primitives.wgmma.then_some(Wgmma), "instructions of warp groups", l.target)
}

/// Orders this thread's writes to shared memory, or to all memory, before asynchronous reads by others (PTX ISA, "fence.proxy").
fn fence<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let desc = l.target.desc();
    if !desc.primitives.bulk_copy {
        return unsupported(format!(
            "asynchronous accesses to shared memory need sm_90, the target is {}",
            desc.name.replace("cuda:", "sm_")
        ));
    }
    let spaces = match FenceAsyncSharedOp::of(op).cluster() {
        _ if op.attr(ALL_MEMORY).is_some() => "",
        true => ".shared::cluster",
        false => ".shared::cta",
    };
    l.emit.inline_asm(&format!("fence.proxy.async{spaces};"), "", &[], &[], true)?;
    Ok(())
}

fn dot<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(dot) = WarpGroupDotOp::cast(op) else { return internal("is no dot of warp groups") };
    let target = l.target;
    let groups = groups(l)?;
    let ThreadGroup { first_warp, warps, .. } = l.group();
    if first_warp % GROUP_WARPS != 0 {
        return unsupported(format!(
            "runs on warps {first_warp} to {}, which are no warp groups: those begin at multiples of {GROUP_WARPS}",
            first_warp + warps - 1
        ));
    }
    let plan = plans::warp_group_dot(dot, target.desc()).map_err(Failure::Unsupported)?;
    l.remark(op, || plan.to_string().trim_end().to_owned());
    let sum = plans::dot_type(dot.d().ty().element(), target.desc()).map_err(Failure::Unsupported)?;
    let element = |value: Value<'c>| match MemDescType::cast(value.ty()) {
        Some(buffer) => buffer.element(),
        None => value.ty().element(),
    };
    let types = MatrixTypes { kind: plan.kind, sum, formats: [element(dot.a()), element(dot.b())] };
    let once = op.attr(WARP_OUTSIDE_LOOPS).is_some();
    let left = match &plan.a {
        Some(descriptors) => Left::Shared(Tiles::new(l, dot.a(), descriptors, &plan.starts[0], once)?),
        None => {
            let anew = branching_loop_without(dot.a(), op).is_some();
            Left::Registers { values: l.get(dot.a())?, fragments: HashMap::new(), anew }
        }
    };
    let right = Tiles::new(l, dot.b(), &plan.b, &plan.starts[1], once)?;
    let adds = match dot.use_c() {
        Some(flag) => Some(l.scalar(flag)?),
        None => None,
    };
    let from_zero = adds.is_none() && is_zero(dot.c());
    // A loop that is not pipelined has its registers for something else (docs/schedules.md).
    let parts = plan.parts(dot.is_async());
    let mut emission = Emission { plan: &plan, types, groups, left, right, adds, from_zero, parts };
    let c = l.get(dot.c())?;
    let sums = if plan.promoted { emission.promoted(l, &c)? } else { emission.at_once(l, &c)? };
    let sums = if dot.is_async() || plan.promoted { sums } else { groups.wait(&mut l.emit, 0, &sums)? };
    let result: Vec<Value<'c>> = plan.copies.iter().map(|r| at(&sums, *r)).collect::<Lowered<_>>()?;
    l.set(dot.d(), result);
    Ok(())
}

/// The same 32 bits from the lane itself: nothing takes that out of a loop.
fn moved<'c>(l: &mut Lower<'_, 'c>, word: Value<'c>) -> Lowered<Value<'c>> {
    let (ty, i32t) = (word.ty(), l.emit.i32());
    let bits = l.emit.bitcast(word, i32t)?;
    let lane = l.target.lane_id(&mut l.emit)?;
    let moved = l.target.shuffle_index(&mut l.emit, bits, lane)?;
    l.emit.bitcast(moved, ty)
}

/// Whether a tensor is the constant zero.
fn is_zero(value: Value<'_>) -> bool {
    let Some(attr) = ConstantOp::defining(value).and_then(ConstantOp::value) else {
        return false;
    };
    let splat = attr.as_elements().and_then(|all| all.splat_value()).unwrap_or(attr);
    splat.as_int() == Some(0)
        || splat.as_float().is_some_and(|value| value == 0.0 && value.is_sign_positive())
}

/// The descriptors of an operand in shared memory.
struct Tiles<'p, 'c> {
    plan: &'p MatrixDescriptorPlan,
    /// The descriptor of the first tile.
    first: Value<'c>,
    made: HashMap<u64, Value<'c>>,
}

impl<'p, 'c> Tiles<'p, 'c> {
    fn new(
        l: &mut Lower<'_, 'c>,
        buffer: Value<'c>,
        plan: &'p MatrixDescriptorPlan,
        warps: &ThreadBases,
        once: bool,
    ) -> Lowered<Self> {
        let Some(ty) = MemDescType::cast(buffer.ty()) else { return internal("is no buffer") };
        let values = l.get(buffer)?;
        let bytes = i64::from(l.memory_bits(ty.element())? / 8);
        let (i32t, i64t) = (l.emit.i32(), l.emit.i64());
        let mut address = l.emit.value("llvm.ptrtoint", &[at(&values, 0)?], i32t, &[])?;
        if let Some(part) = values.get(1) {
            // Where the part would start without swizzle.
            let size = l.emit.const_i32(bytes)?;
            let start = l.emit.same("llvm.mul", &[*part, size])?;
            let row = plan.swizzle.row_bytes() as i64;
            let high = l.emit.lshr(start, 3)?;
            let unit = l.emit.mask(high, row - 16)?;
            let start = l.emit.xor(start, unit)?;
            address = l.emit.add(address, start)?;
        }
        if !warps.is_zero() {
            // The same in all lanes, which the hardware wants to know.
            let number = l.warp_number(warps, once)?;
            address = l.emit.add(address, number)?;
        }
        let field = l.emit.mask(address, ADDRESS_BITS)?;
        let field = l.emit.lshr(field, 4)?;
        let field = l.emit.value("llvm.zext", &[field], i64t, &[])?;
        let bits = l.emit.const_int(64, plan.bits() as i64)?;
        let first = l.emit.or_disjoint(field, bits)?;
        Ok(Self { plan, first, made: HashMap::new() })
    }

    /// The descriptor of a tile.
    fn tile(&mut self, l: &mut Lower<'_, 'c>, tile: [u64; 2]) -> Lowered<Value<'c>> {
        let start = self.plan.start(tile) >> 4;
        Ok(match self.made.get(&start) {
            Some(made) => *made,
            None if start == 0 => self.first,
            None => {
                let offset = l.emit.const_int(64, start as i64)?;
                let made = l.emit.add(self.first, offset)?;
                self.made.insert(start, made);
                made
            }
        })
    }
}

/// The left operand.
enum Left<'p, 'c> {
    Shared(Tiles<'p, 'c>),
    Registers {
        values: Values<'c>,
        fragments: HashMap<Vec<u32>, Vec<Value<'c>>>,
        /// Whether a loop with branches does not change them: ptxas 12.8 and 12.9 then overwrite their registers behind the
        /// dot, so that each iteration moves them to others (`passes::invariant_operands`).
        anew: bool,
    },
}

struct Emission<'p, 'c> {
    plan: &'p WarpGroupDotPlan,
    types: MatrixTypes<'c>,
    groups: Wgmma,
    left: Left<'p, 'c>,
    right: Tiles<'p, 'c>,
    /// Whether the accumulators count; they do, where absent.
    adds: Option<Value<'c>>,
    /// Whether the accumulators are known to be zero.
    from_zero: bool,
    /// Steps of each run that follow a fence of their own.
    parts: SmallVec<[Range<usize>; 2]>,
}

impl<'p, 'c> Emission<'p, 'c> {
    /// All sums in the accumulators.
    fn at_once(&mut self, l: &mut Lower<'_, 'c>, c: &[Value<'c>]) -> Lowered<Vec<Value<'c>>> {
        let mut sums = c.to_vec();
        let mut runs = Vec::new();
        for run in &self.plan.runs {
            let start = if self.from_zero { None } else { Some(c) };
            runs.push((run, self.accumulators(l, run, start)?));
        }
        let mut first = match (self.adds, self.from_zero) {
            (Some(adds), _) => adds,
            (None, zero) => l.emit.const_int(1, i64::from(!zero))?,
        };
        // The assembler counts what comes behind a fence by itself, so that a wait which leaves the last dot under way waits for all but
        // its last run, were there a fence before each. With operands in registers there is: those of a later run are computed while
        // an earlier one multiplies.
        let together = if matches!(self.left, Left::Shared(_)) { runs.len() } else { 1 };
        for part in self.parts.clone() {
            let steps = |run: &'p WarpGroupRun| {
                let steps = run.steps.get(part.clone());
                steps.ok_or_else(|| Failure::Internal("a run without a part's steps".to_owned()))
            };
            for (run, _) in &runs {
                self.pack_left(l, steps(run)?)?;
            }
            for runs in runs.chunks_mut(together.max(1)) {
                let planned = runs.iter().map(|(run, _)| Ok((run.tile, steps(run)?)));
                let planned = planned.collect::<Lowered<Vec<_>>>()?;
                let fragments: Vec<_> =
                    runs.iter_mut().map(|(_, fragment)| std::mem::take(fragment)).collect();
                let sums = self.run(l, &planned, &fragments, first)?;
                runs.iter_mut().zip(sums).for_each(|((_, fragment), sums)| *fragment = sums);
            }
            first = l.emit.const_int(1, 1)?;
        }
        self.groups.commit(&mut l.emit)?;
        for (run, fragment) in runs {
            self.spread(l, run, &fragment, &mut sums)?;
        }
        Ok(sums)
    }

    /// Sums of a few instructions at a time, which are then added up.
    fn promoted(&mut self, l: &mut Lower<'_, 'c>, c: &[Value<'c>]) -> Lowered<Vec<Value<'c>>> {
        let mut sums = c.to_vec();
        if let Some(adds) = self.adds {
            let Some(first) = c.first() else { return unsupported("a dot without result") };
            let zero = l.emit.value("llvm.mlir.zero", &[], first.ty(), &[])?;
            for sum in &mut sums {
                *sum = l.emit.select(adds, *sum, zero)?;
            }
        }
        for run in &self.plan.runs {
            self.pack_left(l, &run.steps)?;
        }
        for run in &self.plan.runs {
            let fragment = self.accumulators(l, run, None)?;
            let never = l.emit.const_int(1, 0)?;
            let fragments = self.run(l, &[(run.tile, &run.steps)], &[fragment], never)?;
            self.groups.commit(&mut l.emit)?;
            let fragment = self.groups.wait(&mut l.emit, 0, &fragments.concat())?;
            let mut partial = sums.clone();
            self.spread(l, run, &fragment, &mut partial)?;
            for register in &run.c {
                let (sum, part) = (at(&sums, *register)?, at(&partial, *register)?);
                sums[*register as usize] = l.emit.same("llvm.fadd", &[sum, part])?;
            }
        }
        Ok(sums)
    }

    /// The fragment of the accumulators of a run, undefined where they do not count.
    fn accumulators(
        &self,
        l: &mut Lower<'_, 'c>,
        run: &WarpGroupRun,
        c: Option<&[Value<'c>]>,
    ) -> Lowered<Vec<Value<'c>>> {
        if let Some(c) = c {
            let registers: Vec<Option<u32>> = run.c.iter().copied().map(Some).collect();
            return fragment(l, self.types.sum, &registers, c);
        }
        let ty = match self.types.sum {
            DotType::F16 => {
                let half = l.emit.float(mlir_host::ir::FloatKind::F16);
                l.emit.vector(2, half)?
            }
            DotType::I32 => l.emit.i32(),
            _ => l.emit.f32(),
        };
        let count = if self.types.sum == DotType::F16 { run.c.len() / 2 } else { run.c.len() };
        let undefined = l.emit.undef(ty)?;
        Ok(vec![undefined; count])
    }

    /// Makes the fragments of a left operand in registers that `steps` take: before the fence, after which these registers
    /// may not be written.
    fn pack_left(&mut self, l: &mut Lower<'_, 'c>, steps: &[PlannedStep]) -> Lowered<()> {
        let Left::Registers { values, fragments, anew } = &mut self.left else { return Ok(()) };
        for step in steps {
            if !fragments.contains_key(&step.a) {
                let registers: Vec<Option<u32>> = step.a.iter().copied().map(Some).collect();
                let mut made = fragment(l, self.types.kind, &registers, values)?;
                if *anew {
                    made = made.into_iter().map(|word| moved(l, word)).collect::<Lowered<_>>()?;
                }
                fragments.insert(step.a.clone(), made);
            }
        }
        Ok(())
    }

    /// The instructions of runs behind a fence, each of a tile and on its `sums`; the first of each adds to the accumulators if `first`
    /// is true, the others do.
    fn run(
        &mut self,
        l: &mut Lower<'_, 'c>,
        planned: &[([u64; 2], &[PlannedStep])],
        sums: &[Vec<Value<'c>>],
        first: Value<'c>,
    ) -> Lowered<Vec<Vec<Value<'c>>>> {
        let always = l.emit.const_int(1, 1)?;
        // Each instruction's tile, step and accumulators, and whether it is the first of its run.
        let (mut places, mut begin) = (Vec::new(), 0);
        for ((tile, planned), fragment) in planned.iter().zip(sums) {
            let end = begin + fragment.len();
            places.extend(planned.iter().enumerate().map(|(i, step)| (*tile, step, begin..end, i == 0)));
            begin = end;
        }
        let mut descriptors = Vec::with_capacity(places.len());
        for ([row, column], step, ..) in &places {
            let left = match &mut self.left {
                Left::Shared(tiles) => Some((tiles.tile(l, [*row, step.k])?, tiles.plan.transposed)),
                Left::Registers { .. } => None,
            };
            descriptors.push((left, self.right.tile(l, [*column, step.k])?));
        }
        let mut steps = Vec::with_capacity(places.len());
        for ((_, step, sums, is_first), (left, right)) in places.into_iter().zip(descriptors) {
            let a = match (left, &self.left) {
                (Some((descriptor, transposed)), _) => WarpGroupFragment::Shared(descriptor, transposed),
                (None, Left::Registers { fragments, .. }) => match fragments.get(&step.a) {
                    Some(fragment) => WarpGroupFragment::Registers(fragment),
                    None => return unsupported("a fragment of the left operand is missing"),
                },
                (None, Left::Shared(_)) => return internal("an operand in shared memory has no descriptor"),
            };
            let b = WarpGroupFragment::Shared(right, self.right.plan.transposed);
            steps.push(WarpGroupStep { sums, a, b, adds: if is_first { first } else { always } });
        }
        let multiply = WarpGroupMultiply { shape: self.plan.shape, types: &self.types, steps };
        let mut all = self.groups.multiply(&mut l.emit, &multiply, &sums.concat())?.into_iter();
        Ok(sums.iter().map(|fragment| all.by_ref().take(fragment.len()).collect()).collect())
    }

    /// Puts the elements of the fragment of a run to their registers.
    fn spread(
        &self,
        l: &mut Lower<'_, 'c>,
        run: &WarpGroupRun,
        fragment: &[Value<'c>],
        sums: &mut [Value<'c>],
    ) -> Lowered<()> {
        let elements = l.target.matrix_elements(&mut l.emit, self.types.sum, fragment)?;
        for (register, element) in run.c.iter().zip(elements) {
            if let Some(sum) = sums.get_mut(*register as usize) {
                *sum = element;
            }
        }
        Ok(())
    }
}

/// Values pass through the wait, so that what uses them comes after it.
fn wait<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let pending = match u64::try_from(WarpGroupDotWaitOp::of(op).pendings()) {
        Ok(pending) if pending <= 7 => pending,
        _ => return unsupported("at most 7 dots may be pending"),
    };
    let is_tensor = |value: &Value<'c>| value.ty().as_tensor().is_some();
    let values = l.get_flat(op.operands().filter(is_tensor))?;
    let waited = groups(l)?.wait(&mut l.emit, pending, &values)?;
    l.set_flat(op.results().filter(is_tensor), &waited)?;
    for (operand, result) in op.operands().zip(op.results()) {
        if !is_tensor(&operand) {
            let values = l.get(operand)?;
            l.set(result, values);
        }
    }
    Ok(())
}
