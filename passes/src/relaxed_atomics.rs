//! `--triton-relax-atomics`: atomic operations by which no program can know of another one order nothing.
//!
//! `tl.atomic_add` acquires and releases unless the program says otherwise: what the threads of a program wrote before is there for whoever
//! reads the sum, which takes a fence that waits for it, and barriers on both sides. Most kernels only add up what programs have found:
//! none of them uses what was there before, so none knows which others have been there, and nobody waits for the sums but who waits for the
//! kernel to end. Such operations are relaxed: each is still one, and what it writes is read by nothing in the kernel.
//!
//! They are, in kernels whose programs cannot know of each other's order (`ir_util::is_alone`), where
//!
//! * the program did not choose the order: it is the one of Triton's default, among the threads of a GPU;
//! * the kernel neither loads nor stores through pointers of the same argument, or of unknown ones;
//! * nobody else can take it for a sign that something was written before: it is of floating-point numbers, of whose sum or maximum one
//!   cannot tell who was there, or it is of tensors, and the kernel stores nothing.
//!
//! An exchange says who was the last, which nothing else here does, and keeps all of them as they are.

use crate::analysis::pointer_roots::{Arguments, PointerRoots};
use crate::ir_util::is_alone;
use mlir_host::hash::FastSet;
use mlir_host::ir::{Op, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use ttopt_dialect::tt::enums::{MemSemantic, MemSyncScope, RmwOp};
use ttopt_dialect::tt::ops::{
    AtomicRmwOp, DescriptorGatherOp, DescriptorLoadOp, DescriptorReduceOp, DescriptorScatterOp,
    DescriptorStoreOp, FuncOp, LoadOp, StoreOp,
};
use ttopt_dialect::tt::types::pointee;

/// The pass.
pub static TRITON_RELAX_ATOMICS: PassDef = PassDef {
    options: &[PassOption {
        name: "explain",
        description: "report which atomic operations order nothing, and why, as remarks",
        kind: OptionKind::Bool(false),
    }],
    ..PassDef::new(
        "triton-relax-atomics",
        "Relax atomic operations by which no program can know of another one",
        run,
    )
};

fn run(root: Op<'_>, options: &Options) -> PassResult {
    let (mut kernels, mut any) = (Vec::new(), false);
    root.walk(&mut |op| {
        kernels.extend(FuncOp::cast(op).map(|_| op));
        any |= AtomicRmwOp::cast(op).is_some_and(|atomic| is_default(&atomic));
        Walk::Advance
    });
    if !any {
        return Ok(());
    }
    for kernel in kernels {
        for atomic in orders_nothing(kernel) {
            atomic.op().set_attr("sem", MemSemantic::Relaxed.attr(kernel.context()));
            if options.bool("explain") {
                atomic.op().remark(
                    "the atomic operation is relaxed: no program uses what one gives, the kernel does not access what it writes \
                     otherwise, and what it writes is no sign for others",
                );
            }
        }
    }
    Ok(())
}

/// Whether the program chose no order, but has Triton's.
fn is_default(atomic: &AtomicRmwOp<'_>) -> bool {
    atomic.sem() == MemSemantic::AcquireRelease && atomic.scope() == MemSyncScope::Gpu
}

/// What a kernel does to memory.
#[derive(Default)]
struct Accesses<'c> {
    atomics: Vec<AtomicRmwOp<'c>>,
    /// Arguments through which it loads and stores, but for atomic operations; of some they are not known.
    plain: FastSet<Value<'c>>,
    unknown: bool,
    stores: bool,
}

impl<'c> Accesses<'c> {
    /// `None` where programs could know of each other's order.
    fn of(kernel: Op<'c>, roots: &mut PointerRoots<'c>) -> Option<Self> {
        let mut found = Self::default();
        let end = kernel.walk(&mut |op| {
            if !is_alone(op) {
                return Walk::Stop;
            }
            if let Some(atomic) = AtomicRmwOp::cast(op) {
                if atomic.atomic_rmw_op() == RmwOp::Exchange {
                    return Walk::Stop;
                }
                found.atomics.push(atomic);
                return Walk::Advance;
            }
            let loads = is_one_of!(op, LoadOp | DescriptorLoadOp | DescriptorGatherOp);
            let stores =
                is_one_of!(op, StoreOp | DescriptorStoreOp | DescriptorScatterOp | DescriptorReduceOp);
            if loads || stores {
                found.stores |= stores;
                match roots.of(op.operand(0)) {
                    Some(roots) => found.plain.extend(roots),
                    None => found.unknown = true,
                }
            }
            Walk::Advance
        });
        (end != Walk::Stop).then_some(found)
    }
}

/// The atomic operations of a kernel that need not order anything.
fn orders_nothing(kernel: Op<'_>) -> Vec<AtomicRmwOp<'_>> {
    let mut roots = PointerRoots::default();
    let Some(accesses) = Accesses::of(kernel, &mut roots).filter(|found| !found.unknown) else {
        return Vec::new();
    };
    let written: Vec<Option<Arguments<'_>>> =
        accesses.atomics.iter().map(|atomic| roots.of(atomic.ptr())).collect();
    let is_float = |root: &Value<'_>| pointee(root.ty()).is_some_and(|ty| ty.float_kind().is_some());
    let is_no_sign = |atomic: &AtomicRmwOp<'_>, written: &Option<Arguments<'_>>| {
        // Maxima of floating-point numbers are made of those of integers.
        let of_floats = written.as_ref().is_some_and(|roots| roots.iter().all(is_float));
        let is_tensor = atomic.ptr().ty().as_tensor().is_some();
        of_floats || is_tensor && !accesses.stores
    };
    let is_apart = |written: &Option<Arguments<'_>>| {
        written.as_ref().is_some_and(|roots| roots.iter().all(|root| !accesses.plain.contains(root)))
    };
    let all = accesses.atomics.iter().zip(&written);
    let nothing = all
        .filter(|(atomic, written)| is_default(atomic) && is_apart(written) && is_no_sign(atomic, written));
    nothing.map(|(atomic, _)| *atomic).collect()
}
