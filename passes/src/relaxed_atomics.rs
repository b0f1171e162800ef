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

use crate::analysis::pointer_roots::PointerRoots;
use crate::ir_util::{enclosing_function, is_alone};
use mlir_host::hash::FastSet;
use mlir_host::ir::{Op, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use ttopt_dialect::tt::enums::{MemSemantic, MemSyncScope, RmwOp};
use ttopt_dialect::tt::ops::{
    AtomicRmwOp, DescriptorGatherOp, DescriptorLoadOp, DescriptorReduceOp, DescriptorScatterOp,
    DescriptorStoreOp, LoadOp, StoreOp,
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
    // Those with something to relax: a walk finishes a function before the next one.
    let mut kernels = Vec::new();
    root.walk(&mut |op| {
        let atomic = AtomicRmwOp::cast(op).filter(is_default);
        let kernel = atomic.and_then(|atomic| enclosing_function(atomic.op()));
        kernels.extend(kernel.filter(|kernel| kernels.last() != Some(kernel)));
        Walk::Advance
    });
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
    /// Arguments through which it loads and stores, but for atomic operations.
    plain: FastSet<Value<'c>>,
    stores: bool,
}

impl<'c> Accesses<'c> {
    /// `None` where programs could know of each other's order, or where it is not known what they load or store.
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
                    None => return Walk::Stop,
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
    let Some(Accesses { mut atomics, plain, stores }) = Accesses::of(kernel, &mut roots) else {
        return Vec::new();
    };
    // Maxima of floating-point numbers are made of those of integers.
    let is_float = |root: &Value<'_>| pointee(root.ty()).is_some_and(|ty| ty.float_kind().is_some());
    atomics.retain(|atomic| {
        let counts = atomic.ptr().ty().as_tensor().is_some() && !stores;
        is_default(atomic)
            && roots.of(atomic.ptr()).is_some_and(|written| {
                let is_no_sign = counts || written.iter().all(is_float);
                is_no_sign && !written.iter().any(|root| plain.contains(root))
            })
    });
    atomics
}
