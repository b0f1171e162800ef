//! How each operation is lowered, by topic.

mod arith;
mod atomic;
mod barriers;
mod combine;
mod constants;
mod control;
mod dot;
mod fp4;
mod gather;
mod inline_asm;
mod layouts;
mod local;
mod memory;
mod print;
mod reduce;
mod scan;
mod shapes;
mod tma;
mod warp_group;

pub(crate) use arith::truth;

use crate::lower::Handler;
use mlir_host::hash::FastMap;
use mlir_host::ir::Context;

/// The handlers, keyed by the uniqued pointers of operation names in `ctx`.
pub fn table(ctx: Context<'_>) -> FastMap<usize, Handler> {
    let lists: &[&[(&str, Handler)]] = &[
        arith::HANDLERS,
        atomic::HANDLERS,
        barriers::HANDLERS,
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
        tma::HANDLERS,
        warp_group::HANDLERS,
    ];
    lists.iter().copied().flatten().map(|(name, handler)| (ctx.name_id(name), *handler)).collect()
}
