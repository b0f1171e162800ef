//! Operations of other dialects that older versions of Triton print, for programs that read text of all of them.
//!
//! Triton 3.4 to 3.8 write `gpu.barrier`, of MLIR's dialect `gpu`, where 3.9 writes `ttg.barrier all`. That dialect has
//! much that no kernel needs; [`GPU`] is a stand-in with this one operation, for contexts without MLIR's own.

use crate::ttg::enums::AddrSpace;
use mlir_host::DialectDef;
use mlir_host::ir::Op;
use mlir_host::op;

op! {
    /// All threads of a CTA wait for each other, as in Triton 3.4 to 3.8.
    pub struct BarrierOp = "gpu.barrier" {
        format: "attr-dict",
    }
}

/// Stands in for MLIR's dialect `gpu`.
pub static GPU: DialectDef = DialectDef { ops: &[BarrierOp::DEF], ..DialectDef::new("gpu") };

/// Replaces the operations of older versions in a module by those of Triton 3.9. The dialect `ttg` is loaded.
///
/// # Errors
/// When MLIR refuses a replacement, which it has reported.
pub fn upgrade(module: Op<'_>) -> mlir_host::asm::ParseResult<()> {
    let mut barriers = Vec::new();
    module.walk_post(&mut |op| {
        if op.name() == BarrierOp::DEF.name {
            barriers.push(op);
        }
    });
    for old in barriers {
        let spaces = AddrSpace::ALL.attr(old.context());
        let new =
            mlir_host::rewrite::create("ttg.barrier", old.loc(), &[], &[], &[("addrSpace", spaces)], &[])?;
        new.move_before(old);
        old.erase();
    }
    Ok(())
}
