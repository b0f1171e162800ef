//! Atomic accesses: `atom`, `red`, and `ld`, `st` with a memory order (PTX ISA,
//! "Parallel Synchronization and Communication Instructions: atom, red",
//! "Data Movement and Conversion Instructions: ld, st").

use super::memory::{constraint, vector_suffix};
use crate::emit::{Emit, Lowered};
use crate::target::{AtomicAccess, AtomicElement, AtomicKind};
use mlir_host::ir::{FloatKind, Value};
use ttopt_dialect::tt::enums::{MemSemantic, MemSyncScope, RmwOp};

pub(super) fn scope(scope: MemSyncScope) -> &'static str {
    match scope {
        MemSyncScope::Gpu => "gpu",
        MemSyncScope::Cta => "cta",
        MemSyncScope::System => "sys",
    }
}

pub(super) fn sem(sem: MemSemantic) -> &'static str {
    match sem {
        MemSemantic::Relaxed => "relaxed",
        MemSemantic::Acquire => "acquire",
        MemSemantic::Release => "release",
        MemSemantic::AcquireRelease => "acq_rel",
    }
}

/// The operation and the type of its operands, as in `add.noftz.f16`; `elems`
/// elements a word. `None` when there is no such instruction.
fn operation(bf16_sums: bool, kind: AtomicKind, element: AtomicElement, elems: usize) -> Option<String> {
    let op = match kind {
        AtomicKind::Load | AtomicKind::Store => return None,
        AtomicKind::CompareExchange => {
            return matches!(element.bits(), 16 | 32 | 64).then(|| format!("cas.b{}", element.bits()));
        }
        AtomicKind::ReadModifyWrite(op) => op,
    };
    if let (RmwOp::Fadd, AtomicElement::Float(kind)) = (op, element) {
        let pair = if elems == 2 { "x2" } else { "" };
        return match kind {
            FloatKind::F32 => Some("add.f32".to_owned()),
            FloatKind::F64 => Some("add.f64".to_owned()),
            FloatKind::F16 => Some(format!("add.noftz.f16{pair}")),
            FloatKind::BF16 if bf16_sums => Some(format!("add.noftz.bf16{pair}")),
            _ => None,
        };
    }
    let bits = element.bits();
    if !matches!(bits, 32 | 64) {
        return None;
    }
    let (name, letter) = match op {
        RmwOp::And => ("and", 'b'),
        RmwOp::Or => ("or", 'b'),
        RmwOp::Xor => ("xor", 'b'),
        RmwOp::Exchange => ("exch", 'b'),
        RmwOp::Add => ("add", 'u'),
        RmwOp::Max => ("max", 's'),
        RmwOp::Min => ("min", 's'),
        RmwOp::Umax => ("max", 'u'),
        RmwOp::Umin => ("min", 'u'),
        RmwOp::Fadd => return None,
    };
    Some(format!("{name}.{letter}{bits}"))
}

/// Bytes travel in 16-bit registers.
fn to_register<'c>(e: &mut Emit<'c>, word: Value<'c>) -> Lowered<Value<'c>> {
    let i16t = e.i16();
    if word.ty().int_bits() == Some(8) { e.value("llvm.zext", &[word], i16t, &[]) } else { Ok(word) }
}

/// Pairs of 16-bit words as words of 32 bits.
fn pair<'c>(e: &mut Emit<'c>, words: &[Value<'c>]) -> Lowered<Vec<Value<'c>>> {
    let (i16t, i32t) = (e.i16(), e.i32());
    let ty = e.vector(2, i16t)?;
    let mut out = Vec::with_capacity(words.len() / 2);
    for both in words.chunks(2) {
        let mut vector = e.undef(ty)?;
        for (i, word) in both.iter().enumerate() {
            vector = e.insert_element(vector, *word, i)?;
        }
        out.push(e.bitcast(vector, i32t)?);
    }
    Ok(out)
}

pub(super) fn emit<'c>(
    e: &mut Emit<'c>,
    bf16_sums: bool,
    access: &AtomicAccess<'_, 'c>,
) -> Lowered<Option<Vec<Value<'c>>>> {
    let bits = access.element.bits();
    let (sem, scope) = (sem(access.sem), scope(access.scope));
    let packed = access.kind != AtomicKind::CompareExchange && access.operands.len() > 1 && bits == 16;
    let elems = if packed { 2 } else { 1 };
    let operands = if packed { pair(e, access.operands)? } else { access.operands.to_vec() };
    let operands = operands.iter().map(|word| to_register(e, *word)).collect::<Lowered<Vec<_>>>()?;
    let word_bits = bits * elems as u32;
    let letter = constraint(word_bits);

    let cas = access.kind == AtomicKind::CompareExchange;
    let vector = vector_suffix(if cas { 1 } else { operands.len().max(1) });
    // `red` has no acquiring form.
    let acquires = matches!(access.sem, MemSemantic::Acquire | MemSemantic::AcquireRelease);
    let (opcode, has_result) = match access.kind {
        AtomicKind::Load => (format!("ld.{sem}.{scope}.global.b{bits}"), true),
        AtomicKind::Store => (format!("st.{sem}.{scope}.global.b{bits}"), false),
        kind => {
            let Some(operation) = operation(bf16_sums, kind, access.element, elems) else { return Ok(None) };
            let red = !access.result && !acquires && !cas && !operation.starts_with("exch");
            let operation = match operation.rsplit_once('.') {
                Some((name, ty)) if !vector.is_empty() => format!("{name}{vector}.{ty}"),
                _ => operation,
            };
            // In the order of Triton's text, which scripts and its own tests look for; ptxas takes qualifiers in any.
            (format!("{}.global.{scope}.{sem}.{operation}", if red { "red" } else { "atom" }), !red)
        }
    };

    let mut inputs = vec![access.ptr];
    inputs.extend(&operands);
    inputs.extend(access.mask);
    let count = match has_result {
        true if cas => 1,
        true => operands.len().max(1),
        false => 0,
    };
    let first = count;
    let names: Vec<String> = (0..operands.len()).map(|i| format!("${}", first + 1 + i)).collect();
    let list = match names.as_slice() {
        [] => String::new(),
        [one] => format!(", {one}"),
        many if cas => format!(", {}", many.join(", ")),
        many => format!(", {{ {} }}", many.join(", ")),
    };
    let predicate =
        if access.mask.is_some() { format!("@${} ", first + inputs.len() - 1) } else { String::new() };
    let olds: Vec<String> = (0..count).map(|i| format!("${i}")).collect();
    let result = match olds.as_slice() {
        [] => String::new(),
        [one] => format!("{one}, "),
        many => format!("{{ {} }}, ", many.join(", ")),
    };
    // What a thread that does not take part gets is never used, but defined.
    let clear: String = match access.mask {
        Some(_) => olds.iter().map(|old| format!("mov.b{} {old}, 0;\n\t", word_bits.max(16))).collect(),
        None => String::new(),
    };
    let text = format!("{clear}{predicate}{opcode} {result}[ ${first} ]{list};");
    let mut constraints = vec![format!("=&{letter}"); count];
    constraints.push("l".to_owned());
    constraints.extend(operands.iter().map(|_| letter.to_string()));
    constraints.extend(access.mask.map(|_| "b".to_owned()));
    // Others must not move across: the memory is clobbered.
    constraints.push("~{memory}".to_owned());

    let register = e.int(word_bits.max(16));
    let old = e.inline_asm(&text, &constraints.join(","), &inputs, &vec![register; count], true)?;
    e.note_global_access(word_bits * if cas { 1 } else { operands.len().max(1) as u32 });
    if !access.result {
        return Ok(Some(Vec::new()));
    }
    let (word, mut words) = (e.int(bits), Vec::with_capacity(old.len() * elems));
    for old in old {
        if packed {
            let i16t = e.i16();
            let ty = e.vector(2, i16t)?;
            let halves = e.bitcast(old, ty)?;
            for i in 0..2 {
                words.push(e.extract_element(halves, i, i16t)?);
            }
        } else {
            words.push(if old.ty() == word { old } else { e.value("llvm.trunc", &[old], word, &[])? });
        }
    }
    Ok(Some(words))
}
