//! Inline assembly, of elements and of threads.

use super::atomic::share;
use crate::emit::internal;
use crate::emit::{Failure, Lowered, unsupported};
use crate::lower::{Handler, Lower};
use crate::target::{BarrierMemory, Target};
use crate::words::{from_words, to_words};
use mlir_host::ir::{Op, Type, Value};
use ttopt_dialect::tt::ops::ElementwiseInlineAsmOp;
use ttopt_dialect::ttg::ops::InlineAsmOp;
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_passes::plans;
use ttopt_passes::shared_memory::ONCE;

pub(super) const HANDLERS: &[(&str, Handler)] =
    &[("tt.elementwise_inline_asm", inline_asm), ("ttg.inline_asm", thread_asm)];

/// Values packed so many to a register of at least 32 bits.
fn pack<'c>(l: &mut Lower<'_, 'c>, values: &[Value<'c>]) -> Lowered<Value<'c>> {
    let [first, ..] = values else { return unsupported("nothing to pack") };
    if values.len() == 1 {
        return Ok(*first);
    }
    let vector = l.emit.vector(values.len(), first.ty())?;
    let mut packed = l.emit.undef(vector)?;
    for (i, value) in values.iter().enumerate() {
        packed = l.emit.insert_element(packed, *value, i)?;
    }
    let Some(bits) = first.ty().bits() else { return internal("packs what is no number") };
    let word = l.emit.int(values.len() as u32 * bits);
    l.emit.bitcast(packed, word)
}

fn unpack<'c>(
    l: &mut Lower<'_, 'c>,
    word: Value<'c>,
    n: usize,
    element: Type<'c>,
) -> Lowered<Vec<Value<'c>>> {
    if n == 1 {
        return Ok(vec![l.emit.bitcast(word, element)?]);
    }
    let vector = l.emit.vector(n, element)?;
    let packed = l.emit.bitcast(word, vector)?;
    (0..n).map(|i| l.emit.extract_element(packed, i, element)).collect()
}

/// Letters of constraints for numbers that are written into the text, and for any operand (LLVM's language reference, "Supported
/// Constraint Code List"). Those for places in memory are missing: operands are numbers.
const NUMBERS: [&str; 13] = ["i", "n", "s", "E", "F", "I", "J", "K", "L", "M", "N", "O", "P"];
const ANYTHING: &str = "X";

/// The codes of one constraint, which say where an operand may be: letters, two letters behind a `^`, a register in braces, the
/// number of an output.
fn codes(mut rest: &str) -> Vec<&str> {
    let mut codes = Vec::new();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '{' => rest.find('}').map_or(rest.len(), |end| end + 1),
            '^' => rest.char_indices().nth(3).map_or(rest.len(), |(end, _)| end),
            '0'..='9' => rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (code, others) = rest.split_at(length);
        // Alternatives.
        if code != "|" {
            codes.push(code.trim_start_matches('^'));
        }
        rest = others;
    }
    codes
}

/// Refuses constraints that LLVM would stop at without saying where, or would crash at: registers that a target does not have,
/// and other numbers of results and operands than `results` and `operands`. `per_thread` says that operands are numbers of
/// each thread's own.
fn check_constraints(
    constraints: &str,
    results: &[Type<'_>],
    operands: &[Type<'_>],
    per_thread: bool,
    target: &dyn Target,
) -> Lowered<()> {
    let name = target.desc().name;
    let known = target.asm_registers();
    let (mut outputs, mut inputs) = (0, 0);
    // Kernels have spaces behind commas, which LLVM passes over.
    for constraint in constraints.split(',').map(str::trim).filter(|constraint| !constraint.is_empty()) {
        if constraint.starts_with('~') {
            continue;
        }
        let is_output = constraint.starts_with('=');
        let (place, types) = if is_output { (&mut outputs, results) } else { (&mut inputs, operands) };
        let bits = types.get(*place).and_then(|ty| ty.bits());
        *place += 1;
        if let Some(bits) = bits.filter(|bits| *bits < known.least_bits && !NUMBERS.contains(&constraint)) {
            return unsupported(format!(
                "'{constraint}' of inline assembly is for {bits} bits, registers of {name} are given {} or more",
                known.least_bits
            ));
        }
        let codes = codes(constraint.trim_start_matches(['=', '&', '%']));
        if codes.is_empty() {
            return unsupported(format!("the constraint '{constraint}' of inline assembly says nothing"));
        }
        for code in codes {
            let is_scalar = known.one_for_all.contains(&code);
            if is_scalar && per_thread && !is_output {
                return unsupported(format!(
                    "'{code}' in the constraint '{constraint}' of inline assembly is a register that all lanes share on {name}, \
                     the operand is a tensor: {}",
                    known.about
                ));
            }
            let is_number = !is_output && (NUMBERS.contains(&code) || known.numbers.contains(&code));
            let is_output_again =
                !is_output && code.parse().is_ok_and(|number: usize| number < results.len());
            let is_known = is_scalar
                || is_number
                || is_output_again
                || code == ANYTHING
                || code.starts_with('{')
                || known.of_lanes.contains(&code);
            if !is_known {
                return unsupported(format!(
                    "'{code}' in the constraint '{constraint}' of inline assembly is no register of {name}: {}",
                    known.about
                ));
            }
        }
    }
    let (results, operands) = (results.len(), operands.len());
    if (outputs, inputs) != (results, operands) {
        return unsupported(format!(
            "inline assembly has {results} results and {operands} operands in registers, its constraints '{constraints}' \
             are for {outputs} and {inputs}"
        ));
    }
    Ok(())
}

/// Refuses text that LLVM would stop at without saying where (LLVM's language reference, "Inline Asm Template String"): places of
/// operands that there are not, and what is no place. `operands` counts results, too.
fn check_template(text: &str, operands: usize) -> Lowered<()> {
    let wrong = |what: String| unsupported(format!("{what} in the text of inline assembly: '{text}'"));
    let (mut rest, mut in_variants) = (text, false);
    while let Some((_, behind)) = rest.split_once('$') {
        let mut letters = behind.chars();
        let next = letters.next();
        match next {
            Some('(') if in_variants => return wrong("'$(' within '$('".to_owned()),
            Some('$' | '(' | '|' | ')') => {
                in_variants = next == Some('(') || in_variants && next != Some(')');
                rest = letters.as_str();
                continue;
            }
            _ => {}
        }
        let braced = behind.strip_prefix('{').map(|within| within.split_once('}'));
        let (place, after) = match braced {
            Some(Some(parts)) => parts,
            Some(None) => return wrong("'${' without '}'".to_owned()),
            None => behind.split_at(behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len())),
        };
        rest = after;
        if matches!(place, ":uid" | ":private" | ":comment") {
            continue;
        }
        let (number, modifier) =
            place.split_at(place.find(|c: char| !c.is_ascii_digit()).unwrap_or(place.len()));
        if number.is_empty() {
            return wrong("'$' without the number of an operand ('$$' is a dollar)".to_owned());
        }
        if !number.parse().is_ok_and(|number: usize| number < operands) {
            return wrong(format!("operand ${number} of {operands}"));
        }
        if !modifier.is_empty() && (modifier.chars().count() != 2 || !modifier.starts_with(':')) {
            return wrong(format!("'{modifier}' behind an operand, where a colon and one letter may be,"));
        }
    }
    if in_variants { wrong("'$(' without '$)'".to_owned()) } else { Ok(()) }
}

/// More than the operands of any instruction hold.
const MOST_PACKED: usize = 1 << 10;

/// Inline assembly is given `packed_element` elements at a time: of each
/// operand, so many to a 32-bit register as fit.
fn inline_asm<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let inline = ElementwiseInlineAsmOp::of(op);
    let (asm, constraints, pure_asm) = (inline.asm_string(), inline.constraints(), inline.pure());
    let Ok(packed) = usize::try_from(inline.packed_element()) else {
        return internal("inline assembly of a negative number of elements");
    };
    if packed > MOST_PACKED {
        return unsupported(format!(
            "inline assembly of {packed} elements at a time, the most is {MOST_PACKED}"
        ));
    }
    let results: Vec<Value<'c>> = op.results().collect();
    let Some(first) = results.first() else { return unsupported("inline assembly without results") };
    let n = l.num_values(first.ty())?;
    let operands: Vec<_> = op.operands().map(|value| l.get(value)).collect::<Lowered<Vec<_>>>()?;
    let elements: Vec<Type<'c>> =
        results.iter().map(|value| l.register_type(value.ty().element())).collect::<Lowered<_>>()?;
    let per_word = |ty: Type<'c>| (32 / ty.bits().unwrap_or(32).min(32)) as usize;
    let mut out: Vec<Vec<Value<'c>>> = vec![Vec::new(); results.len()];
    let mut start = 0;
    while start < n {
        let mut args = Vec::new();
        for values in &operands {
            let at = |i: usize| values.get(i.min(n - 1)).or(values.first()).copied();
            let group: Vec<Value<'c>> = (start..start + packed)
                .map(at)
                .collect::<Option<_>>()
                .ok_or_else(|| Failure::Unsupported("operand without values".to_owned()))?;
            for word in group.chunks(per_word(group[0].ty()).min(packed).max(1)) {
                args.push(pack(l, word)?);
            }
        }
        let mut words = Vec::new();
        let mut shapes = Vec::new();
        for element in &elements {
            let each = per_word(*element).min(packed).max(1);
            for _ in 0..packed.div_ceil(each) {
                let bits = each as u32 * element.bits().unwrap_or(32);
                words.push(if each == 1 { *element } else { l.emit.int(bits) });
                shapes.push((each, *element));
            }
        }
        let per_thread = op.operands().any(|operand| operand.ty().as_tensor().is_some());
        let types: Vec<Type<'_>> = args.iter().map(|arg| arg.ty()).collect();
        check_constraints(constraints, &words, &types, per_thread, l.target)?;
        check_template(asm, words.len() + types.len())?;
        let made = l.emit.inline_asm(asm, constraints, &args, &words, !pure_asm)?;
        let mut made = made.into_iter().zip(shapes);
        for (result, element) in out.iter_mut().zip(&elements) {
            let each = per_word(*element).min(packed).max(1);
            for _ in 0..packed.div_ceil(each) {
                if let Some((word, (count, element))) = made.next() {
                    result.extend(unpack(l, word, count, element)?);
                }
            }
        }
        start += packed;
    }
    let once = op.attr(ONCE).is_some();
    for (i, (result, mut values)) in results.into_iter().zip(out).enumerate() {
        values.truncate(n);
        if once && !result.is_unused() {
            // All results pass through the same memory.
            if i > 0 {
                l.barrier(BarrierMemory::Shared)?;
            }
            let bits = plans::word_bits(result.ty()).map_err(Failure::Unsupported)?;
            let words = to_words(l, &values, result.ty().element(), bits)?;
            let words = share(l, (op, i), words, false)?;
            values = from_words(l, &words, result.ty().element())?;
        }
        l.set(result, values);
    }
    Ok(())
}

/// Inline assembly that is given all registers of its operands at once, and the addresses of buffers.
fn thread_asm<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let asm = InlineAsmOp::of(op);
    let (text, constraints) = (asm.asm_string(), asm.constraints());
    let (i32t, mut args) = (l.emit.i32(), Vec::new());
    for value in asm.args() {
        if MemDescType::cast(value.ty()).is_some() {
            let buffer = l.buffer(value)?;
            let start = l.buffer_start(&buffer)?;
            args.push(l.emit.value("llvm.ptrtoint", &[start], i32t, &[])?);
        } else {
            args.extend_from_slice(&l.get(value)?);
        }
    }
    let mut registers = Vec::new();
    for result in op.results() {
        let element = l.register_type(result.ty().element())?;
        registers.extend(std::iter::repeat_n(element, l.num_values(result.ty())?));
    }
    let pure = asm.pure();
    let types: Vec<Type<'_>> = args.iter().map(|arg| arg.ty()).collect();
    check_constraints(constraints, &registers, &types, false, l.target)?;
    check_template(text, registers.len() + types.len())?;
    let mut made = l.emit.inline_asm(text, constraints, &args, &registers, !pure)?.into_iter();
    for result in op.results() {
        let n = l.num_values(result.ty())?;
        l.set(result, made.by_ref().take(n).collect::<Vec<_>>());
    }
    Ok(())
}
