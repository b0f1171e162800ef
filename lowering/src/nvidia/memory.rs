//! Global memory: `ld.global` and `st.global`.
//!
//! Accesses without a mask and without hints are LLVM loads and stores; the
//! others are inline PTX, since LLVM has no predicated access for PTX (PTX
//! ISA, "Data Movement and Conversion Instructions: ld, st").

use crate::emit::{Emit, Lowered, internal};
use crate::target::{Access, CachePolicy};
use mlir_host::ir::{Attr, Type, Value};
use ttopt_dialect::tt::enums::{CacheModifier, EvictionPolicy};
use ttopt_dialect::ttng::enums::CacheEvictionPriority;

/// The words of an access: how many, their bits, and elements in each.
struct Words {
    count: usize,
    bits: u32,
    elems: usize,
}

fn words(access: &Access<'_, '_>) -> Words {
    let total = access.elems as u32 * access.elem_bits;
    let bits = total.min(access.elem_bits.max(32));
    let count = (total / bits) as usize;
    Words { count, bits, elems: access.elems / count }
}

/// The letter of a register constraint. PTX has no 8-bit registers: bytes
/// travel in 16-bit ones.
pub(super) fn constraint(bits: u32) -> char {
    match bits {
        64 => 'l',
        32 => 'r',
        _ => 'h',
    }
}

fn register_type<'c>(e: &Emit<'c>, bits: u32) -> Type<'c> {
    e.int(bits.max(16))
}

/// When the L2 lets go of the lines of an access (PTX ISA, "createpolicy").
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct L2Policy {
    /// That of a fraction of the accesses.
    pub(super) primary: CacheEvictionPriority,
    /// That of the others.
    pub(super) secondary: CacheEvictionPriority,
    /// The fraction.
    pub(super) fraction: f64,
}

impl L2Policy {
    /// The policy of all lines that `eviction` asks for; `None` where that is the usual one.
    pub(super) fn of_all(eviction: EvictionPolicy) -> Option<Self> {
        let primary = match eviction {
            EvictionPolicy::Normal => return None,
            EvictionPolicy::First => CacheEvictionPriority::First,
            EvictionPolicy::Last => CacheEvictionPriority::Last,
        };
        Some(L2Policy { primary, secondary: CacheEvictionPriority::Unchanged, fraction: 1.0 })
    }

    /// The operand that tells an access so.
    pub(super) fn operand<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>> {
        let i64t = e.i64();
        let secondary = format!(".L2::{}", self.secondary.keyword());
        // The default, which ptxas does not take by its name.
        let secondary =
            if self.secondary == CacheEvictionPriority::Unchanged { "" } else { secondary.as_str() };
        let text = format!(
            "createpolicy.fractional.L2::{}{secondary}.b64 $0, {};",
            self.primary.keyword(),
            format_args!("0f{:08X}", (self.fraction as f32).to_bits())
        );
        match e.inline_asm(&text, "=l", &[], &[i64t], false)?.first() {
            Some(made) => Ok(*made),
            None => internal("createpolicy gives no value"),
        }
    }
}

/// `.volatile`, cache operator or eviction priority, as it goes into the
/// opcode before and after `.global`, and the policy of the L2, which is an operand. A cache operator and an eviction
/// priority exclude each other; the operator may change what is read
/// (`.cv`), the priority never does, so the operator wins.
fn qualifiers(policy: CachePolicy) -> (&'static str, String, Option<L2Policy>) {
    if policy.volatile {
        return (".volatile", String::new(), None);
    }
    let hints = policy.hints;
    let modifier = hints.map(|hints| hints.modifier).filter(|modifier| *modifier != CacheModifier::None);
    let eviction = hints.map(|hints| hints.eviction).filter(|eviction| *eviction != EvictionPolicy::Normal);
    match (modifier, eviction) {
        (Some(modifier), _) => ("", format!(".{}", modifier.keyword()), None),
        (None, Some(eviction)) => {
            let both = format!(".L1::{}.L2::cache_hint", eviction.keyword());
            ("", both, L2Policy::of_all(eviction))
        }
        (None, None) if policy.last_use => ("", ".L1::no_allocate".to_owned(), None),
        (None, None) => ("", String::new(), None),
    }
}

/// What an access says behind its address or its values to have a policy of the L2, which becomes its last operand.
fn policy_operand<'c>(
    e: &mut Emit<'c>,
    policy: Option<L2Policy>,
    operands: &mut Vec<Value<'c>>,
    constraints: &mut Vec<String>,
) -> Lowered<String> {
    let Some(policy) = policy else { return Ok(String::new()) };
    operands.push(policy.operand(e)?);
    constraints.push("l".to_owned());
    // Operands are numbered as their constraints are, results before them.
    Ok(format!(", ${}", constraints.len() - 1))
}

fn is_plain(access: &Access<'_, '_>) -> bool {
    let policy = access.policy;
    access.mask.is_none() && access.needed.is_none() && !policy.volatile && qualifiers(policy).1.is_empty()
}

pub(super) fn vector_suffix(count: usize) -> String {
    if count == 1 { String::new() } else { format!(".v{count}") }
}

fn braces(list: &str, count: usize) -> String {
    if count == 1 { list.to_owned() } else { format!("{{ {list} }}") }
}

/// Splits words into elements.
fn split<'c>(e: &mut Emit<'c>, word: Value<'c>, words: &Words, elem_bits: u32) -> Lowered<Vec<Value<'c>>> {
    let element = e.int(elem_bits);
    let word = if word.ty().int_bits() == Some(words.bits) {
        word
    } else {
        let narrow = e.int(words.bits);
        e.value("llvm.trunc", &[word], narrow, &[])?
    };
    if words.elems == 1 {
        return Ok(vec![word]);
    }
    let vector = e.vector(words.elems, element)?;
    let packed = e.bitcast(word, vector)?;
    (0..words.elems).map(|i| e.extract_element(packed, i, element)).collect()
}

/// Joins elements into words held in registers.
fn join<'c>(e: &mut Emit<'c>, elems: &[Value<'c>], words: &Words, elem_bits: u32) -> Lowered<Value<'c>> {
    let word = if elems.len() == 1 {
        elems[0]
    } else {
        let element = e.int(elem_bits);
        let vector = e.vector(elems.len(), element)?;
        let mut packed = e.undef(vector)?;
        for (i, value) in elems.iter().enumerate() {
            packed = e.insert_element(packed, *value, i)?;
        }
        let ty = e.int(words.bits);
        e.bitcast(packed, ty)?
    };
    let register = register_type(e, words.bits);
    if word.ty() == register { Ok(word) } else { e.value("llvm.zext", &[word], register, &[]) }
}

pub(super) fn load<'c>(
    e: &mut Emit<'c>,
    access: &Access<'_, 'c>,
    other: Option<&[Value<'c>]>,
) -> Lowered<Vec<Value<'c>>> {
    let words = words(access);
    if is_plain(access) {
        let word = e.int(words.bits);
        let ty = if words.count == 1 { word } else { e.vector(words.count, word)? };
        let align = i64::from(access.elems as u32 * access.elem_bits / 8);
        let align = Attr::int(e.context(), 64, align);
        let loaded = e.value("llvm.load", &[access.ptr], ty, &[("alignment", align)])?;
        e.note_global_access(words.bits * words.count as u32);
        let mut out = Vec::with_capacity(access.elems);
        for i in 0..words.count {
            let word = if words.count == 1 { loaded } else { e.extract_element(loaded, i, word)? };
            out.extend(split(e, word, &words, access.elem_bits)?);
        }
        return Ok(out);
    }
    let register = register_type(e, words.bits);
    let (volatile, hint, policy) = qualifiers(access.policy);
    // All threads load, for ptxas branches around a load that few threads do, and then waits for one after the other. One that
    // meets stores of the thread that needs it says so: `.weak` is what loads are that say nothing (PTX ISA, "ld").
    let weak = if access.needed.is_some() && volatile.is_empty() { ".weak" } else { "" };
    let letter = constraint(words.bits);
    let bits = words.bits;
    let mov = bits.max(16);
    let mut operands = vec![access.ptr];
    // Outputs are set before the load reads its address and its mask, so that
    // they must not share registers with inputs.
    let early = if access.mask.is_some() { "&" } else { "" };
    let mut constraints: Vec<String> = (0..words.count).map(|_| format!("={early}{letter}")).collect();
    constraints.push("l".to_owned());
    let mut lines = Vec::new();
    let predicate = match access.mask {
        Some(mask) => {
            operands.push(mask);
            constraints.push("b".to_owned());
            // Masked elements get `other`, or zero, which makes the result
            // the same from run to run.
            for word in 0..words.count {
                match other {
                    Some(other) => {
                        let elems = &other[word * words.elems..(word + 1) * words.elems];
                        let value = join(e, elems, &words, access.elem_bits)?;
                        lines.push(format!("mov.b{mov} ${word}, ${};", words.count + operands.len()));
                        operands.push(value);
                        constraints.push(letter.to_string());
                    }
                    None => lines.push(format!("mov.b{mov} ${word}, 0;")),
                }
            }
            format!("@${} ", words.count + 1)
        }
        None => String::new(),
    };
    let outputs: Vec<String> = (0..words.count).map(|i| format!("${i}")).collect();
    let policy = policy_operand(e, policy, &mut operands, &mut constraints)?;
    lines.push(format!(
        "{predicate}ld{volatile}{weak}.global{hint}{}.b{bits} {}, [ ${} ]{policy};",
        vector_suffix(words.count),
        braces(&outputs.join(", "), words.count),
        words.count
    ));
    let text = format!("{{\n\t{}\n}}", lines.join("\n\t"));
    let results = vec![register; words.count];
    let loaded = e.inline_asm(&text, &constraints.join(","), &operands, &results, true)?;
    e.note_global_access(words.bits * loaded.len() as u32);
    let mut out = Vec::with_capacity(access.elems);
    for word in loaded {
        out.extend(split(e, word, &words, access.elem_bits)?);
    }
    Ok(out)
}

pub(super) fn store<'c>(e: &mut Emit<'c>, access: &Access<'_, 'c>, values: &[Value<'c>]) -> Lowered<()> {
    let words = words(access);
    let packed = values
        .chunks(words.elems)
        .map(|elems| join(e, elems, &words, access.elem_bits))
        .collect::<Lowered<Vec<_>>>()?;
    if is_plain(access) {
        let word = e.int(words.bits);
        let align = Attr::int(e.context(), 64, i64::from(access.elems as u32 * access.elem_bits / 8));
        let narrow =
            packed
                .iter()
                .map(|value| {
                    if value.ty() == word { Ok(*value) } else { e.value("llvm.trunc", &[*value], word, &[]) }
                })
                .collect::<Lowered<Vec<_>>>()?;
        let value = match narrow.as_slice() {
            [one] => *one,
            many => {
                let ty = e.vector(many.len(), word)?;
                let mut vector = e.undef(ty)?;
                for (i, value) in many.iter().enumerate() {
                    vector = e.insert_element(vector, *value, i)?;
                }
                vector
            }
        };
        e.op("llvm.store", &[value, access.ptr], &[], &[("alignment", align)])?;
        e.note_global_access(words.bits * narrow.len() as u32);
        return Ok(());
    }
    let (volatile, hint, policy) = qualifiers(access.policy);
    let mut operands = vec![access.ptr];
    let mut constraints = vec!["l".to_owned()];
    let mut inputs = Vec::new();
    for value in packed {
        inputs.push(format!("${}", operands.len()));
        operands.push(value);
        constraints.push(constraint(words.bits).to_string());
    }
    let predicate = match access.mask {
        Some(mask) => {
            operands.push(mask);
            constraints.push("b".to_owned());
            format!("@${} ", operands.len() - 1)
        }
        None => String::new(),
    };
    let policy = policy_operand(e, policy, &mut operands, &mut constraints)?;
    let text = format!(
        "{predicate}st{volatile}.global{hint}{}.b{} [ $0 ], {}{policy};",
        vector_suffix(words.count),
        words.bits,
        braces(&inputs.join(", "), words.count)
    );
    e.inline_asm(&text, &constraints.join(","), &operands, &[], true)?;
    e.note_global_access(words.bits * inputs.len() as u32);
    Ok(())
}
