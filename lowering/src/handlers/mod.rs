//! How each operation is lowered, by topic.

mod arith;
mod atomic;
mod combine;
mod constants;
mod control;
pub(crate) mod dot;
mod fp4;
mod gather;
mod inline_asm;
mod layouts;
mod local;
pub(crate) mod memory;
mod print;
mod reduce;
mod scan;
mod shapes;
mod slices;
mod warp_specialize;

pub(crate) use arith::truth;
pub(crate) use atomic::{llvm_operation, llvm_order};

use crate::lower::Handler;
use crate::target::{Handlers, Target};
use mlir_host::hash::FastMap;
use mlir_host::ir::Context;

/// The handlers that all targets share and those of `target`, keyed by the uniqued pointers of operation names in
/// `ctx`.
pub fn table(ctx: Context<'_>, target: &dyn Target) -> FastMap<usize, Handler> {
    let shared: &[Handlers] = &[
        arith::HANDLERS,
        atomic::HANDLERS,
        combine::HANDLERS,
        constants::HANDLERS,
        control::HANDLERS,
        dot::HANDLERS,
        fp4::HANDLERS,
        gather::HANDLERS,
        inline_asm::HANDLERS,
        layouts::HANDLERS,
        local::HANDLERS,
        memory::HANDLERS,
        print::HANDLERS,
        reduce::HANDLERS,
        scan::HANDLERS,
        shapes::HANDLERS,
        slices::HANDLERS,
        warp_specialize::HANDLERS,
    ];
    let lists = shared.iter().chain(target.handlers());
    lists.copied().flatten().map(|(name, handler)| (ctx.name_id(name), *handler)).collect()
}
