//! Operations of other dialects that older versions of Triton print, for programs that read text of all of them.
//!
//! Triton 3.4 to 3.8 write `gpu.barrier`, of MLIR's dialect `gpu`, where 3.9 writes `ttg.barrier all`. That dialect has
//! much that no kernel needs; [`GPU`] is a stand-in with this one operation, for contexts without MLIR's own.
//!
//! Triton 3.9 has a newer MLIR, too, which prints kinds of instructions by their names where MLIR 22 has numbers.

use crate::tt::fold;
use crate::ttg::enums::AddrSpace;
use crate::ttg::ops::{MemDescIndexOp, MemDescSubsliceOp, MemDescSubviewOp};
use crate::ttg::types::MemDescType;
use mlir_host::DialectDef;
use mlir_host::asm::ParseResult;
use mlir_host::ir::{Attr, Op, Type, Value};
use mlir_host::{op, rewrite};
use std::borrow::Cow;

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
pub fn upgrade(module: Op<'_>) -> ParseResult<()> {
    let (mut barriers, mut subviews) = (Vec::new(), Vec::new());
    module.walk_post(&mut |op| {
        // By name: where MLIR's own dialect is loaded, as in `mlir-opt`, it is that one's operation, not the one above.
        if op.name() == BarrierOp::DEF.name {
            barriers.push(op);
        }
        subviews.extend(MemDescSubviewOp::cast(op));
    });
    for old in barriers {
        let spaces = AddrSpace::ALL.attr(old.context());
        let new = rewrite::create("ttg.barrier", old.loc(), &[], &[], &[("addrSpace", spaces)], &[])?;
        new.move_before(old);
        old.erase();
    }
    subviews.into_iter().try_for_each(upgrade_subview)
}

/// `ttg.memdesc_subview` of Triton 3.4 is a buffer of several, a part of one, or a part of a buffer of several.
fn upgrade_subview<'c>(old: MemDescSubviewOp<'c>) -> ParseResult<()> {
    let op = old.op();
    let types = MemDescType::cast(old.src().ty()).zip(MemDescType::cast(old.result().ty()));
    let Some((from, to)) = types else { return Err(op.error("takes and gives buffers")) };
    let (offsets, rank) = (Vec::from_iter(old.offsets()), to.shape().len());
    if offsets.len() != from.shape().len() || offsets.len().saturating_sub(rank) > 1 || rank > offsets.len() {
        return Err(
            op.error("must have an offset for each dimension of the source, and drop the first one or none")
        );
    }
    let (number, starts) = offsets.split_at(offsets.len() - rank);
    let known =
        |start: &Value<'_>| fold::constant(*start)?.as_int().and_then(|start| i32::try_from(start).ok());
    let Some(starts) = starts.iter().map(known).collect::<Option<Vec<_>>>() else {
        return Err(op.error("offsets within a buffer must be constants of 32 bits"));
    };
    let is_part = from.shape()[number.len()..] != to.shape()[..] || starts.iter().any(|start| *start != 0);
    let add = |name, operands: &[Value<'c>], ty: Type<'c>, attrs: &[(&str, Attr<'c>)]| {
        let made = rewrite::create(name, op.loc(), operands, &[ty], attrs, &[])?;
        made.move_before(op);
        if made.verify() { Ok(made.result(0)) } else { Err(op.error("is no view of its buffer")) }
    };
    let mut view = old.src();
    if let Some(number) = number.first() {
        let whole = MemDescType::view(
            &from.shape()[1..],
            from.element(),
            from.encoding(),
            from.space(),
            from.mutable(),
            &from.alloc_shape()[1..],
        );
        let whole = whole.ok_or_else(|| op.error("has no buffers of less dimensions"))?;
        view = add(MemDescIndexOp::DEF.name, &[view, *number], whole.ty(), &[])?;
    }
    if is_part {
        let starts = Attr::i32_array(op.context(), &starts);
        view = add(MemDescSubsliceOp::DEF.name, &[view], to.ty(), &[("offsets", starts)])?;
    }
    if view.ty() != to.ty() {
        return Err(op.error(format!("gives a {}, but must give a {}", to.ty(), view.ty())));
    }
    old.result().replace_all_uses_with(view);
    op.erase();
    Ok(())
}

/// Operations of MLIR's dialect `rocdl` that begin with a mask of instructions.
const MASKED: [&str; 2] = ["rocdl.sched.barrier ", "rocdl.sched.group.barrier "];

/// Names of kinds of instructions, and their bits (LLVM, "User Guide for AMDGPU Backend", `llvm.amdgcn.sched.barrier`).
const KINDS: [(&str, u32); 12] = [
    ("none", 0),
    ("non_mem_non_sideeffect", 0x1),
    ("valu", 0x2),
    ("salu", 0x4),
    ("mfma_wmma", 0x8),
    ("all_vmem", 0x10),
    ("vmem_read", 0x20),
    ("vmem_write", 0x40),
    ("all_ds", 0x80),
    ("ds_read", 0x100),
    ("ds_write", 0x200),
    ("transcendental", 0x400),
];

/// Text in which masks of instructions are numbers, each in the place of the names that newer versions of MLIR print:
/// nothing else moves. What is no text, or has no such names, stays as it is.
pub fn with_numbers_as_masks(input: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(input) else { return Cow::Borrowed(input) };
    let mut made = Vec::new();
    let mut done = 0;
    for name in MASKED {
        for (at, _) in text.match_indices(name) {
            let start = at + name.len();
            let is_name = |c: char| c.is_ascii_lowercase() || c == '_' || c == '|';
            let length = text[start..].find(|c| !is_name(c)).unwrap_or(text.len() - start);
            let kinds = text[start..start + length].split('|');
            let bits = kinds.map(|kind| KINDS.iter().find(|known| known.0 == kind).map(|known| known.1));
            if let Some(mask) = bits.sum::<Option<u32>>().filter(|_| length > 0) {
                made.push((start, format!("{mask:<length$}")));
            }
        }
    }
    if made.is_empty() {
        return Cow::Borrowed(input);
    }
    made.sort();
    let mut out = Vec::with_capacity(input.len());
    for (start, number) in made {
        out.extend_from_slice(&input[done..start]);
        out.extend_from_slice(number.as_bytes());
        done = start + number.len();
    }
    out.extend_from_slice(&input[done..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::with_numbers_as_masks;

    #[test]
    fn names_of_masks_become_numbers_in_their_places() {
        let same = |text: &str, wanted: &str| {
            assert_eq!(String::from_utf8_lossy(&with_numbers_as_masks(text.as_bytes())), wanted);
        };
        same("rocdl.sched.barrier none loc(#a)\n", "rocdl.sched.barrier 0    loc(#a)\n");
        same("rocdl.sched.group.barrier mfma_wmma, 1, 0", "rocdl.sched.group.barrier 8        , 1, 0");
        same("rocdl.sched.barrier valu|salu", "rocdl.sched.barrier 6        ");
        same(
            "rocdl.sched.group.barrier salu, 3, 0\nrocdl.sched.barrier none",
            "rocdl.sched.group.barrier 4   , 3, 0\nrocdl.sched.barrier 0   ",
        );
        // What is not known is for the parser to refuse.
        same("rocdl.sched.barrier fish", "rocdl.sched.barrier fish");
        same("rocdl.sched.barrier 2", "rocdl.sched.barrier 2");
    }
}
