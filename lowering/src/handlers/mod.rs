//! How each operation is lowered, by topic.

mod arith;
mod atomic;
mod control;
mod dot;
mod layouts;
mod memory;
mod print;
mod shapes;

pub(crate) use arith::truth;

use crate::lower::Handler;
use mlir_host::ir::Context;
use std::collections::HashMap;

/// The handlers, keyed by the uniqued pointers of operation names in `ctx`.
pub fn table(ctx: Context<'_>) -> HashMap<usize, Handler> {
    let lists: [&[(&str, Handler)]; 8] = [
        arith::HANDLERS,
        atomic::HANDLERS,
        control::HANDLERS,
        dot::HANDLERS,
        layouts::HANDLERS,
        memory::HANDLERS,
        print::HANDLERS,
        shapes::HANDLERS,
    ];
    lists.into_iter().flatten().map(|(name, handler)| (ctx.name_id(name), *handler)).collect()
}
