//! Atomic accesses: LLVM's `atomicrmw`, `cmpxchg`, and loads and stores with an order, which its memory model of AMD GPUs
//! turns into instructions, waits and invalidations (LLVM, "User Guide for AMDGPU Backend", "Memory Model").

use super::memory::bits_of;
use super::{Amd, memory};
use crate::emit::{Emit, ICmp, Lowered, unsupported};
use crate::handlers::{llvm_operation, llvm_order};
use crate::target::{AtomicAccess, AtomicElement, AtomicKind, Target};
use linear_layout::target::HalfSums;
use mlir_host::ir::{Attr, FloatKind, Value};
use ttopt_dialect::tt::enums::{MemSemantic, RmwOp};
use ttopt_passes::plans;

/// The order of a load that is asked for `sem`: a load cannot release, a store cannot acquire.
fn one_sided(sem: MemSemantic, acquires: bool) -> i64 {
    llvm_order(match (sem, acquires) {
        (MemSemantic::Acquire | MemSemantic::AcquireRelease, true) => MemSemantic::Acquire,
        (MemSemantic::Release | MemSemantic::AcquireRelease, false) => MemSemantic::Release,
        _ => MemSemantic::Relaxed,
    })
}

/// The words of the old values where `access.result`, else none.
pub(super) fn emit<'c>(
    e: &mut Emit<'c>,
    target: &Amd,
    access: &AtomicAccess<'_, 'c>,
) -> Lowered<Vec<Value<'c>>> {
    let (ctx, bits) = (e.context(), access.element.bits());
    let scope = Attr::string(ctx, target.sync_scope(access.scope));
    let word = e.int(bits);
    let alignment = |bits: usize| Attr::int(ctx, 64, (bits / 8).max(1) as i64);
    let count = match access.kind {
        AtomicKind::CompareExchange | AtomicKind::Load => 1,
        AtomicKind::Store | AtomicKind::ReadModifyWrite(_) => access.operands.len(),
    };
    let mut otherwise = Vec::new();
    if access.mask.is_some() && access.kind != AtomicKind::Store {
        // What a thread that does not take part gets is never used, but defined.
        let none = e.const_int(bits, 0)?;
        otherwise = vec![none; count];
    }
    let old = e.guarded(access.mask, &otherwise, |e| match (access.kind, access.operands) {
        (AtomicKind::Load, _) => {
            let attrs = [
                ("ordering", Attr::int(ctx, 64, one_sided(access.sem, true))),
                ("syncscope", scope),
                ("alignment", alignment(bits as usize)),
            ];
            Ok(vec![e.value("llvm.load", &[access.ptr], word, &attrs)?])
        }
        (AtomicKind::Store, &[value]) => {
            let attrs = [
                ("ordering", Attr::int(ctx, 64, one_sided(access.sem, false))),
                ("syncscope", scope),
                ("alignment", alignment(bits as usize)),
            ];
            e.op("llvm.store", &[value, access.ptr], &[], &attrs)?;
            Ok(Vec::new())
        }
        (AtomicKind::CompareExchange, &[expected, new]) => {
            let flag = e.i1();
            let pair = e.struct_of(&[word, flag])?;
            let attrs = [
                ("success_ordering", Attr::int(ctx, 64, llvm_order(access.sem))),
                ("failure_ordering", Attr::int(ctx, 64, one_sided(access.sem, true))),
                ("syncscope", scope),
                ("alignment", alignment(bits as usize)),
            ];
            let both = e.value("llvm.cmpxchg", &[access.ptr, expected, new], pair, &attrs)?;
            Ok(vec![e.extract_value(both, 0, word)?])
        }
        (AtomicKind::ReadModifyWrite(op), words) => {
            let float = match (op, access.element) {
                (RmwOp::Fadd, AtomicElement::Float(kind)) => Some(kind),
                _ => None,
            };
            let in_pairs = |kind: &_| plans::half_sums_of(*kind, target.desc()) == Some(HalfSums::Pairs);
            if let (Some(kind), &[word]) = (float.filter(in_pairs), words) {
                return Ok(vec![add_alone(e, access, kind, word, scope)?]);
            }
            let ty = float.map_or(word, |kind| e.float(kind));
            let ty = if words.len() > 1 { e.vector(words.len(), ty)? } else { ty };
            let operand = e.join(words, ty)?;
            let old = read_modify_write(e, op, access.ptr, operand, (access.sem, scope))?;
            memory::split(e, old, words.len(), bits)
        }
        _ => unsupported(format!("atomic access of {bits} bits")),
    })?;
    e.note_global_access(bits * count as u32);
    Ok(if access.result { old } else { Vec::new() })
}

/// `llvm.atomicrmw` of memory that is aligned as `operand` is long, in the order and scope that are given.
fn read_modify_write<'c>(
    e: &mut Emit<'c>,
    op: RmwOp,
    ptr: Value<'c>,
    operand: Value<'c>,
    (sem, scope): (MemSemantic, Attr<'c>),
) -> Lowered<Value<'c>> {
    let ctx = e.context();
    let mut attrs = vec![
        ("bin_op", Attr::int(ctx, 64, llvm_operation(op))),
        ("ordering", Attr::int(ctx, 64, llvm_order(sem))),
        ("syncscope", scope),
        ("alignment", Attr::int(ctx, 64, i64::from(bits_of(operand.ty())? / 8).max(1))),
    ];
    if op == RmwOp::Fadd {
        attrs.extend(plain_memory(e));
    }
    e.value("llvm.atomicrmw", &[ptr, operand], operand.ty(), &attrs)
}

/// Adds a float of 16 bits to memory, and -0 to its neighbour in the same word of 32 bits, which stays what it is. Gives the old value.
fn add_alone<'c>(
    e: &mut Emit<'c>,
    access: &AtomicAccess<'_, 'c>,
    kind: FloatKind,
    word: Value<'c>,
    scope: Attr<'c>,
) -> Lowered<Value<'c>> {
    let (i32t, i64t, half) = (e.i32(), e.i64(), e.int(16));
    let (float, pair) = (e.float(kind), e.vector(2, e.float(kind))?);
    // Bytes before the element in its word: none or two.
    let address = e.value("llvm.ptrtoint", &[access.ptr], i64t, &[])?;
    let before = e.mask(address, 2)?;
    let none = e.const_int(64, 0)?;
    let back = e.same("llvm.sub", &[none, before])?;
    let byte = e.int(8);
    let ptr = e.gep(access.ptr, back, byte)?;
    let is_first = e.icmp(ICmp::Eq, before, none)?;
    let word = e.bitcast(word, float)?;
    let nothing = e.const_int(16, -(1 << 15))?;
    let nothing = e.bitcast(nothing, float)?;
    let (low, high) = (e.select(is_first, word, nothing)?, e.select(is_first, nothing, word)?);
    let operand = e.join(&[low, high], pair)?;
    let old = read_modify_write(e, RmwOp::Fadd, ptr, operand, (access.sem, scope))?;
    let old = e.bitcast(old, i32t)?;
    let upper = e.lshr(old, 16)?;
    let mine = e.select(is_first, old, upper)?;
    e.value("llvm.trunc", &[mine], half, &[])
}

/// That memory is the GPU's own, coarse-grained and ordinary, where sums of floats have instructions: what Triton's
/// users allocate (LLVM, "User Guide for AMDGPU Backend", "Memory access metadata").
fn plain_memory<'c>(e: &Emit<'c>) -> [(&'static str, Attr<'c>); 3] {
    let unit = Attr::unit(e.context());
    [
        ("rocdl.no_fine_grained_memory", unit),
        ("rocdl.no_remote_memory", unit),
        ("rocdl.ignore_denormal_mode", unit),
    ]
}

/// Adds one to a counter in the LDS.
pub(super) fn count_shared<'c>(e: &mut Emit<'c>, ptr: Value<'c>, mask: Option<Value<'c>>) -> Lowered<()> {
    let (ctx, one) = (e.context(), e.const_i32(1)?);
    e.guarded(mask, &[], |e| {
        let attrs = [
            ("bin_op", Attr::int(ctx, 64, llvm_operation(RmwOp::Add))),
            ("ordering", Attr::int(ctx, 64, llvm_order(MemSemantic::Relaxed))),
            ("syncscope", Attr::string(ctx, "workgroup")),
        ];
        let ty = one.ty();
        e.value("llvm.atomicrmw", &[ptr, one], ty, &attrs)?;
        Ok(Vec::new())
    })?;
    Ok(())
}
