//! Shared memory: which bytes of it belong to whom, and where threads must wait
//! for each other.
//!
//! * [`buffers`] finds what occupies shared memory, and to which of that the
//!   memory descriptors of a function may refer.
//! * [`liveness`] says what is occupied at the same time.
//! * [`allocate`] gives everything an offset.
//! * [`fit`] keeps tensors in registers where it would not suffice.
//! * [`slots`] tells buffers of one allocation apart.
//! * [`effects`] says which buffers an operation reads and writes, and when.
//! * `calls` says what functions that are called do to memory.
//! * [`once`] says what must be loaded by one thread for all.
//! * [`readback`] says which accesses to global memory may meet those of other threads.
//! * `together` says which stores warps had better do at the same time.
//! * [`barriers`] puts a barrier where two accesses could meet otherwise.

pub mod allocate;
pub mod barriers;
pub mod buffers;
pub(crate) mod calls;
pub mod effects;
pub mod fit;
pub mod liveness;
pub mod once;
pub mod one_thread;
pub mod readback;
pub mod slots;
mod together;

pub use once::ONCE;
pub use one_thread::ALONE;

use mlir_host::ir::Op;
use ttopt_dialect::tt::ops::{CallOp, FuncOp};

/// Where an operation's shared memory begins, in bytes.
pub const OFFSET: &str = "allocation.offset";
/// To which the shared memory of a CTA is aligned, in bytes: what 128-byte swizzles need (PTX ISA, "tensor memory access").
pub const ALIGNMENT: u64 = 1024;
/// How many bytes of shared memory an operation has. On a function: how many its body has.
pub const SIZE: &str = "allocation.size";

/// The functions of a module, each after those that it calls.
///
/// # Errors
/// The call that closes a cycle: what is recursive has no bound.
pub(crate) fn callees_first<'c>(module: Op<'c>) -> Result<Vec<Op<'c>>, Op<'c>> {
    struct Order<'c> {
        functions: Vec<(Op<'c>, Vec<(Op<'c>, usize)>)>,
        /// 1 while being visited, 2 when done.
        state: Vec<u8>,
        out: Vec<Op<'c>>,
    }
    fn visit<'c>(order: &mut Order<'c>, i: usize) -> Result<(), Op<'c>> {
        order.state[i] = 1;
        for (call, callee) in order.functions[i].1.clone() {
            match order.state[callee] {
                0 => visit(order, callee)?,
                1 => return Err(call),
                _ => {}
            }
        }
        order.state[i] = 2;
        let function = order.functions[i].0;
        order.out.push(function);
        Ok(())
    }
    let Some(body) = (module.num_regions() > 0).then(|| module.region(0).first_block()).flatten() else {
        return Ok(Vec::new());
    };
    let functions: Vec<Op<'c>> =
        body.ops().filter(|op| FuncOp::cast(*op).is_some() && !op.region(0).is_empty()).collect();
    let named = |symbol: &str| functions.iter().position(|op| FuncOp::of(*op).sym_name() == symbol);
    let calls = |function: Op<'c>| {
        let mut calls = Vec::new();
        function.walk(&mut |op| {
            if let Some(callee) = callee(op).and_then(named) {
                calls.push((op, callee));
            }
            mlir_host::ir::Walk::Advance
        });
        calls
    };
    let state = vec![0; functions.len()];
    let functions: Vec<_> = functions.iter().map(|op| (*op, calls(*op))).collect();
    let mut order = Order { functions, state, out: Vec::new() };
    for i in 0..order.functions.len() {
        if order.state[i] == 0 {
            visit(&mut order, i)?;
        }
    }
    Ok(order.out)
}

/// The symbol that a call calls.
pub(crate) fn callee(op: Op<'_>) -> Option<&str> {
    CallOp::cast(op)?.callee().as_symbol()
}
