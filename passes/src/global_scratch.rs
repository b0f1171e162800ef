//! `--tritongpu-global-scratch-memory-allocation`: places in global memory that belong to one program.
//!
//! A function that is called has its own numbering from 0: a call needs as much as the callee, and says at
//! which offset.

use crate::machine::error;
use crate::shared_memory::{callee, callees_first};
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Op, Walk};
use mlir_host::pass::{Options, PassDef, PassResult};
use ttopt_dialect::ttg::module_attrs;
use ttopt_dialect::ttg::ops::GlobalScratchAllocOp;

/// Where the memory of an allocation or of a call begins, in bytes.
pub const OFFSET: &str = "ttg.global_scratch_memory_offset";
/// On a function: how many bytes its body needs.
pub const SIZE: &str = "ttg.global_scratch_memory_size";

/// The pass.
pub static GLOBAL_SCRATCH_MEMORY_ALLOCATION: PassDef = PassDef {
    anchor: "builtin.module",
    ..PassDef::new(
        "tritongpu-global-scratch-memory-allocation",
        "Give allocations of global scratch memory their places",
        run,
    )
};

#[derive(Clone, Copy)]
struct Needs {
    bytes: u64,
    alignment: u64,
}

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let functions = callees_first(module).map_err(|call| {
        error(call, "calls a function that is being called: recursion needs scratch memory without bound")
    })?;
    let mut all: FastMap<String, Needs> = FastMap::default();
    let mut most = Needs { bytes: 0, alignment: 1 };
    for function in functions {
        let needs = allocate(function, &all)?;
        if needs.bytes == 0 {
            continue;
        }
        function.set_attr(SIZE, number(function, needs.bytes)?);
        most = Needs { bytes: most.bytes.max(needs.bytes), alignment: most.alignment.max(needs.alignment) };
        if let Some(name) = function.attr("sym_name").and_then(Attr::as_str) {
            all.insert(name.to_owned(), needs);
        }
    }
    // Programs follow each other in memory.
    most.bytes = most.bytes.next_multiple_of(most.alignment);
    module.set_attr(module_attrs::GLOBAL_SCRATCH_SIZE, number(module, most.bytes)?);
    module.set_attr(module_attrs::GLOBAL_SCRATCH_ALIGNMENT, number(module, most.alignment)?);
    Ok(())
}

fn number(op: Op<'_>, value: u64) -> Result<Attr<'_>, Reported> {
    match i32::try_from(value) {
        Ok(value) => Ok(Attr::int(op.context(), 32, value.into())),
        Err(_) => Err(error(op, format!("{value} bytes of global scratch memory are too many"))),
    }
}

fn allocate(function: Op<'_>, callees: &FastMap<String, Needs>) -> Result<Needs, Reported> {
    let mut needs = Needs { bytes: 0, alignment: 1 };
    let mut result = Ok(());
    function.walk(&mut |op| {
        let wanted = if let Some(alloc) = GlobalScratchAllocOp::cast(op) {
            match (u64::try_from(alloc.nbytes()), u64::try_from(alloc.alignment())) {
                (Ok(bytes), Ok(alignment)) if alignment.is_power_of_two() => Some(Needs { bytes, alignment }),
                _ => {
                    let what = "needs a positive number of bytes and an alignment that is a power of two";
                    result = Err(error(op, what));
                    return Walk::Stop;
                }
            }
        } else {
            callee(op).and_then(|symbol| callees.get(symbol).copied())
        };
        let Some(wanted) = wanted else { return Walk::Advance };
        let offset = needs.bytes.next_multiple_of(wanted.alignment);
        match number(op, offset) {
            Ok(offset) => op.set_attr(OFFSET, offset),
            Err(err) => result = Err(err),
        }
        needs.bytes = offset + wanted.bytes;
        needs.alignment = needs.alignment.max(wanted.alignment);
        Walk::Advance
    });
    result.map(|()| needs)
}
