//! Global memory and the LDS.

use crate::emit::{Emit, Lowered, number_bits, unsupported};
use crate::target::{Access, BufferAddress, CachePolicy};
use linear_layout::plan::MemoryInstruction;
use linear_layout::target::{MatrixUnit, TargetDesc, TransposedReads};
use mlir_host::ir::{Attr, Type, Value};
use ttopt_dialect::tt::enums::{CacheModifier, EvictionPolicy};
use ttopt_passes::buffer_accesses::BUFFER_BYTES;

/// Memory that nobody writes while a kernel runs (LLVM, "User Guide for AMDGPU Backend", "Address Spaces").
pub(super) const CONSTANT: u32 = 4;

/// How elements of an access travel: as words of at most 32 bits side by side, or of the elements' width if that is larger.
struct Words {
    count: usize,
    bits: u32,
    elems: usize,
}

impl Words {
    fn of(elems: usize, elem_bits: u32) -> Words {
        let total = elems as u32 * elem_bits;
        let bits = total.min(elem_bits.max(32));
        let count = (total / bits) as usize;
        Words { count, bits, elems: elems / count }
    }

    fn ty<'c>(&self, e: &Emit<'c>) -> Lowered<Type<'c>> {
        let word = e.int(self.bits);
        if self.count == 1 { Ok(word) } else { e.vector(self.count, word) }
    }
}

/// The `count` integers of `bits` bits that `value` is made of.
pub(super) fn split<'c>(
    e: &mut Emit<'c>,
    value: Value<'c>,
    count: usize,
    bits: u32,
) -> Lowered<Vec<Value<'c>>> {
    let element = e.int(bits);
    if count == 1 {
        return Ok(vec![e.bitcast(value, element)?]);
    }
    let vector = e.vector(count, element)?;
    let packed = e.bitcast(value, vector)?;
    (0..count).map(|i| e.extract_element(packed, i, element)).collect()
}

/// Whether nobody is expected to come back to what is accessed: it is the first to leave the caches.
fn streams(policy: CachePolicy) -> bool {
    let Some(hints) = policy.hints else { return policy.last_use };
    match hints.modifier {
        CacheModifier::None => hints.eviction == EvictionPolicy::First,
        modifier => modifier == CacheModifier::Cs,
    }
}

fn attributes<'c>(e: &Emit<'c>, access: &Access<'_, 'c>) -> Vec<(&'static str, Attr<'c>)> {
    let ctx = e.context();
    let bytes = i64::from(access.elems as u32 * access.elem_bits / 8);
    let mut attrs = vec![("alignment", Attr::int(ctx, 64, bytes))];
    // `.cv` and `.wt` ask for memory itself, as volatile accesses do.
    if is_volatile(access.policy) {
        attrs.push(("volatile_", Attr::unit(ctx)));
    } else if streams(access.policy) {
        attrs.push(("nontemporal", Attr::unit(ctx)));
    }
    attrs
}

/// Bits of an integer or a vector of them.
pub(super) fn bits_of(ty: Type<'_>) -> Lowered<u32> {
    match ty.as_vector() {
        Some((count, element)) => Ok(count as u32 * number_bits(element)?),
        None => number_bits(ty),
    }
}

/// The descriptor of a buffer (CDNA3 ISA, "Buffer Resource Descriptor"; RDNA3 ISA, likewise): raw, of all that a 32-bit
/// offset without sign may reach, what is beyond it dropped.
pub(super) fn resource<'c>(e: &mut Emit<'c>, base: Value<'c>, target: &TargetDesc) -> Lowered<Value<'c>> {
    // DATA_FORMAT 32, NUM_FORMAT float: of no meaning for raw buffers, but not zero.
    const FORMAT: i64 = 7 << 12 | 4 << 15;
    // A bit is reserved as one, and OOB_SELECT says that the offset alone is checked.
    const RAW_CHECKED: i64 = 1 << 24 | 3 << 28;
    let selects = target.primitives.buffer_checks_selected;
    let flags = e.const_i32(if selects { FORMAT | RAW_CHECKED } else { FORMAT })?;
    let (stride, bytes) = (e.const_int(16, 0)?, e.const_int(64, BUFFER_BYTES)?);
    let ty = e.ptr(BUFFER_RESOURCE)?;
    e.intrinsic("llvm.amdgcn.make.buffer.rsrc", &[base, stride, bytes, flags], ty)
}

/// An offset that is beyond every buffer.
pub(super) const OUTSIDE: i64 = i32::MIN as i64;
/// Descriptors of buffers (LLVM, "User Guide for AMDGPU Backend", "Address Spaces").
const BUFFER_RESOURCE: u32 = 8;

/// The descriptor and the offset of an access, the latter outside of the buffer where `mask` is false.
fn in_buffer<'c>(
    e: &mut Emit<'c>,
    buffer: BufferAddress<'c>,
    mask: Option<Value<'c>>,
    target: &TargetDesc,
) -> Lowered<[Value<'c>; 2]> {
    let resource = resource(e, buffer.base, target)?;
    let offset = match mask {
        None => buffer.offset,
        Some(mask) => {
            let outside = e.const_i32(OUTSIDE)?;
            e.select(mask, buffer.offset, outside)?
        }
    };
    Ok([resource, offset])
}

/// Words of 32 bits, or of fewer where that is all there is: what buffer instructions move.
fn buffer_type<'c>(e: &Emit<'c>, access: &Access<'_, 'c>) -> Lowered<Type<'c>> {
    let bits = access.elems as u32 * access.elem_bits;
    let word = e.int(bits.min(32));
    if bits <= 32 { Ok(word) } else { e.vector((bits / 32) as usize, word) }
}

/// What buffer instructions are told of caches: that nobody comes back to what CDNA3's read and write (CDNA3 ISA, "NT").
pub(super) fn cache_hint(policy: CachePolicy, target: &TargetDesc) -> i64 {
    let has_hint = matches!(target.matrix_unit, MatrixUnit::Cdna3 | MatrixUnit::Cdna4);
    if has_hint && streams(policy) { 2 } else { 0 }
}

/// As [`cache_hint`], as an operand.
pub(super) fn buffer_policy<'c>(
    e: &mut Emit<'c>,
    policy: CachePolicy,
    target: &TargetDesc,
) -> Lowered<Value<'c>> {
    e.const_i32(cache_hint(policy, target))
}

/// `buffer_load`: zero where `mask` is false.
fn load_buffer<'c>(
    e: &mut Emit<'c>,
    access: &Access<'_, 'c>,
    buffer: BufferAddress<'c>,
    other: Option<&[Value<'c>]>,
    target: &TargetDesc,
) -> Lowered<Vec<Value<'c>>> {
    let ty = buffer_type(e, access)?;
    let [resource, offset] = in_buffer(e, buffer, access.mask, target)?;
    let (zero, policy) = (e.const_i32(0)?, buffer_policy(e, access.policy, target)?);
    let operands = [resource, offset, zero, policy];
    let mut loaded = e.intrinsic("llvm.amdgcn.raw.ptr.buffer.load", &operands, ty)?;
    e.note_global_access(bits_of(ty)?);
    if let (Some(mask), Some(other)) = (access.mask, other) {
        let other = e.join(other, ty)?;
        loaded = e.select(mask, loaded, other)?;
    }
    split(e, loaded, access.elems, access.elem_bits)
}

/// Whether an access asks for memory itself, past the caches.
fn is_volatile(policy: CachePolicy) -> bool {
    let modifier = policy.hints.map(|hints| hints.modifier);
    policy.volatile || matches!(modifier, Some(CacheModifier::Cv | CacheModifier::Wt))
}

/// `global_load`, or `buffer_load` in a buffer.
pub(super) fn load<'c>(
    e: &mut Emit<'c>,
    access: &Access<'_, 'c>,
    other: Option<&[Value<'c>]>,
    target: &TargetDesc,
) -> Lowered<Vec<Value<'c>>> {
    if let Some(buffer) = access.buffer.filter(|_| !is_volatile(access.policy)) {
        return load_buffer(e, access, buffer, other, target);
    }
    let words = Words::of(access.elems, access.elem_bits);
    let ty = words.ty(e)?;
    let attrs = attributes(e, access);
    if let (Some(zeros), Some(mask)) = (access.zeros, access.mask) {
        let ptr = e.select(mask, access.ptr, zeros)?;
        let mut loaded = e.value("llvm.load", &[ptr], ty, &attrs)?;
        e.note_global_access(bits_of(ty)?);
        if let Some(other) = other {
            let other = e.join(other, ty)?;
            loaded = e.select(mask, loaded, other)?;
        }
        return split(e, loaded, words.count * words.elems, access.elem_bits);
    }
    let otherwise = match (access.mask, other) {
        (None, _) => Vec::new(),
        (_, Some(other)) => vec![e.join(other, ty)?],
        // Zero makes the result the same from run to run.
        (_, None) => vec![e.value("llvm.mlir.zero", &[], ty, &[])?],
    };
    let loaded =
        e.guarded(access.mask, &otherwise, |e| Ok(vec![e.value("llvm.load", &[access.ptr], ty, &attrs)?]))?;
    e.note_global_access(bits_of(ty)?);
    split(e, loaded[0], words.count * words.elems, access.elem_bits)
}

/// `global_store`, or `buffer_store` in a buffer.
pub(super) fn store<'c>(
    e: &mut Emit<'c>,
    access: &Access<'_, 'c>,
    values: &[Value<'c>],
    target: &TargetDesc,
) -> Lowered<()> {
    if let Some(buffer) = access.buffer.filter(|_| !is_volatile(access.policy)) {
        let ty = buffer_type(e, access)?;
        let value = e.join(values, ty)?;
        let [resource, offset] = in_buffer(e, buffer, access.mask, target)?;
        let (zero, policy) = (e.const_i32(0)?, buffer_policy(e, access.policy, target)?);
        let operands = [value, resource, offset, zero, policy];
        e.note_global_access(bits_of(ty)?);
        return e.intrinsic_void("llvm.amdgcn.raw.ptr.buffer.store", &operands);
    }
    let ty = Words::of(access.elems, access.elem_bits).ty(e)?;
    let (value, attrs) = (e.join(values, ty)?, attributes(e, access));
    e.guarded(access.mask, &[], |e| {
        e.op("llvm.store", &[value, access.ptr], &[], &attrs)?;
        Ok(Vec::new())
    })?;
    e.note_global_access(bits_of(ty)?);
    Ok(())
}

/// Alias scopes of an access to the LDS.
fn apart_from_copies<'c>(e: &Emit<'c>) -> Lowered<Vec<(&'static str, Attr<'c>)>> {
    if e.has_copies() { super::copies::scopes(e, false) } else { Ok(Vec::new()) }
}

fn shared_type<'c>(e: &Emit<'c>, count: usize, bits: u32) -> Lowered<(Type<'c>, Attr<'c>)> {
    let word = e.int(bits);
    let ty = if count == 1 { word } else { e.vector(count, word)? };
    Ok((ty, Attr::int(e.context(), 64, (count as i64 * i64::from(bits) / 8).max(1))))
}

/// `ds_read`.
pub(super) fn load_shared<'c>(
    e: &mut Emit<'c>,
    ptr: Value<'c>,
    count: usize,
    bits: u32,
) -> Lowered<Vec<Value<'c>>> {
    let (ty, alignment) = shared_type(e, count, bits)?;
    let mut attrs = vec![("alignment", alignment)];
    attrs.extend(apart_from_copies(e)?);
    let loaded = e.value("llvm.load", &[ptr], ty, &attrs)?;
    split(e, loaded, count, bits)
}

/// `ds_write`.
pub(super) fn store_shared<'c>(
    e: &mut Emit<'c>,
    ptr: Value<'c>,
    words: &[Value<'c>],
    mask: Option<Value<'c>>,
) -> Lowered<()> {
    let Some(bits) = words.first().and_then(|word| word.ty().int_bits()) else { return Ok(()) };
    let (ty, alignment) = shared_type(e, words.len(), bits)?;
    let value = e.join(words, ty)?;
    let mut attrs = vec![("alignment", alignment)];
    attrs.extend(apart_from_copies(e)?);
    e.guarded(mask, &[], |e| {
        e.op("llvm.store", &[value, ptr], &[], &attrs)?;
        Ok(Vec::new())
    })?;
    Ok(())
}

/// `ds_read_b64_tr_b16` and `_b8` (CDNA4 ISA), `ds_load_tr16_b128` and `ds_load_tr8_b64` (LLVM 22's gfx1250): words of 32 bits.
pub(super) fn load_transposed<'c>(
    e: &mut Emit<'c>,
    ptr: Value<'c>,
    instruction: MemoryInstruction,
) -> Lowered<Vec<Value<'c>>> {
    let MemoryInstruction::TransposedRead { form, unit_bits } = instruction else {
        return unsupported("an instruction that moves no matrices");
    };
    let (name, ty) = match (form, unit_bits) {
        (TransposedReads::Rows, 16) => ("rocdl.ds.read.tr16.b64", e.vector(4, e.i16())?),
        (TransposedReads::Rows, 8) => ("rocdl.ds.read.tr8.b64", e.vector(2, e.i32())?),
        (TransposedReads::Squares, 16) => ("rocdl.ds.load.tr16.b128", e.vector(8, e.i16())?),
        (TransposedReads::Squares, 8) => ("rocdl.ds.load.tr8.b64", e.vector(2, e.i32())?),
        _ => return unsupported(format!("a transposing read of {unit_bits} bits")),
    };
    let attrs = apart_from_copies(e)?;
    let loaded = e.value(name, &[ptr], ty, &attrs)?;
    split(e, loaded, instruction.bits_per_lane() as usize / 32, 32)
}
