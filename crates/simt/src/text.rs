//! Makes LLVM IR text written by a newer LLVM readable for the one that is linked.
//!
//! LLVM 23 prints floating-point constants in ways LLVM 22 does not read: `f0x3F800000` (the bits of the
//! value in its own format), `+inf`, `-inf`, `+qnan`, `-nan(0x…)`, and decimals that are rounded to the
//! type instead of being exact in it. All become hexadecimal constants as every LLVM reads them:
//! `0xH…` (half), `0xR…` (bfloat), and `0x…` with the bits of the value as a double (float, double).
//! The type of a constant is the last floating-point type named before it on the same line.

use crate::num;

#[derive(Clone, Copy, PartialEq)]
enum Fp {
    Half,
    BFloat,
    Float,
    Double,
}

/// Rewrites floating-point constants; leaves everything else alone.
pub fn normalize(ir: &str) -> String {
    let mut out = String::with_capacity(ir.len() + ir.len() / 8);
    for line in ir.split_inclusive('\n') {
        let code = line.trim_start();
        if code.starts_with("attributes") {
            out.push_str(&without_target_memory(line));
        } else if code.starts_with('!') || code.starts_with(';') {
            out.push_str(line);
        } else {
            rewrite_line(line, &mut out);
        }
    }
    out
}

/// Drops the memory locations that only newer versions know from `memory(…)`.
fn without_target_memory(line: &str) -> String {
    let mut rest = line;
    let mut out = String::new();
    while let Some(at) = rest.find(", target_mem") {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 2..];
        rest = &tail[tail.find([',', ')']).unwrap_or(tail.len())..];
    }
    out + rest
}

fn rewrite_line(line: &str, out: &mut String) {
    let bytes = line.as_bytes();
    let mut i = 0;
    let mut ty = None;
    while i < bytes.len() {
        let c = bytes[i];
        if c == b'"' {
            let end = line[i + 1..].find('"').map_or(bytes.len(), |n| i + n + 2);
            out.push_str(&line[i..end]);
            i = end;
        } else if is_word(c) || (matches!(c, b'+' | b'-') && i + 1 < bytes.len() && is_word(bytes[i + 1])) {
            let mut end = i + 1;
            while end < bytes.len()
                && (is_word(bytes[end]) || (matches!(bytes[end], b'+' | b'-') && in_exponent(&line[i..end])))
            {
                end += 1;
            }
            if line[i..end].ends_with("nan") && bytes.get(end) == Some(&b'(') {
                end = line[end..].find(')').map_or(end, |n| end + n + 1);
            }
            let word = &line[i..end];
            match word {
                "half" => ty = Some(Fp::Half),
                "bfloat" => ty = Some(Fp::BFloat),
                "float" => ty = Some(Fp::Float),
                "double" => ty = Some(Fp::Double),
                _ => {}
            }
            let named = i > 0 && matches!(bytes[i - 1], b'%' | b'@' | b'!' | b'#');
            match ty.filter(|_| !named).and_then(|t| constant(word, t)) {
                Some(new) => out.push_str(&new),
                None => out.push_str(word),
            }
            i = end;
        } else {
            let n = line[i..].chars().next().map_or(1, char::len_utf8);
            out.push_str(&line[i..i + n]);
            i += n;
        }
    }
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'$')
}

/// Whether a sign may follow: `1.5e` does, `0x1e` does not.
fn in_exponent(word: &str) -> bool {
    let digits = word.trim_start_matches(['+', '-']);
    digits.ends_with(['e', 'E'])
        && digits.contains('.')
        && digits.as_bytes()[0].is_ascii_digit()
        && !digits.starts_with("0x")
}

fn constant(word: &str, ty: Fp) -> Option<String> {
    let (negative, body) = match word.as_bytes()[0] {
        b'-' => (true, &word[1..]),
        b'+' => (false, &word[1..]),
        _ => (false, word),
    };
    let (exp_bits, man_bits) = match ty {
        Fp::Half => (5, 10),
        Fp::BFloat => (8, 7),
        Fp::Float => (8, 23),
        Fp::Double => (11, 52),
    };
    let exp_ones = ((1u64 << exp_bits) - 1) << man_bits;
    let sign = u64::from(negative) << (exp_bits + man_bits);
    let bits = if let Some(hex) = body.strip_prefix("f0x") {
        u64::from_str_radix(hex, 16).ok()?
    } else if body == "inf" {
        exp_ones | sign
    } else if body == "qnan" {
        exp_ones | 1 << (man_bits - 1) | sign
    } else if let Some(p) = body.strip_prefix("nan(").or_else(|| body.strip_prefix("snan(")) {
        let payload = u64::from_str_radix(p.trim_end_matches(')').strip_prefix("0x")?, 16).ok()?;
        exp_ones | payload | sign
    } else if body.as_bytes()[0].is_ascii_digit() && body.contains('.') {
        let v: f64 = word.parse().ok()?;
        match ty {
            Fp::Half => u64::from(num::f64_to_f16(v)),
            Fp::BFloat => u64::from(num::f64_to_bf16(v)),
            Fp::Float => u64::from(word.parse::<f32>().ok()?.to_bits()),
            Fp::Double => v.to_bits(),
        }
    } else {
        return None;
    };
    Some(match ty {
        Fp::Half => format!("0xH{bits:04X}"),
        Fp::BFloat => format!("0xR{bits:04X}"),
        Fp::Float => format!("0x{:016X}", float_as_double_bits(bits as u32)),
        Fp::Double => format!("0x{bits:016X}"),
    })
}

/// The bits of the double with the value of a float; NaN payloads move along.
fn float_as_double_bits(f: u32) -> u64 {
    let v = f32::from_bits(f);
    if v.is_nan() {
        let sign = u64::from(f >> 31) << 63;
        return sign | 0x7ff << 52 | u64::from(f & 0x7f_ffff) << 29;
    }
    f64::from(v).to_bits()
}

#[cfg(test)]
mod tests {
    use super::normalize;

    #[test]
    fn constants_become_hexadecimal_of_their_type() {
        let cases = [
            (
                "  %1 = fmul float %0, f0x3FB8AA3B, !dbg !1",
                "  %1 = fmul float %0, 0x3FF7154760000000, !dbg !1",
            ),
            (
                "%1 = phi float [ -inf, %a ], [ %2, %b ]",
                "%1 = phi float [ 0xFFF0000000000000, %a ], [ %2, %b ]",
            ),
            ("%1 = fadd half %0, f0x3C00", "%1 = fadd half %0, 0xH3C00"),
            ("%1 = fadd bfloat %0, 1.000000e+00", "%1 = fadd bfloat %0, 0xR3F80"),
            ("%1 = fmul float %.02.i, 2.885390e+00", "%1 = fmul float %.02.i, 0x4007154760000000"),
            ("store float +qnan, ptr %p", "store float 0x7FF8000000000000, ptr %p"),
            ("store float +nan(0x3FFFFF), ptr %p", "store float 0x7FF7FFFFE0000000, ptr %p"),
        ];
        for (before, after) in cases {
            assert_eq!(normalize(before), after);
        }
    }

    #[test]
    fn memory_locations_of_newer_targets_go() {
        let line =
            "attributes #0 = { memory(read, argmem: readwrite, target_mem0: none, target_mem1: none) }";
        assert_eq!(normalize(line), "attributes #0 = { memory(read, argmem: readwrite) }");
    }

    #[test]
    fn names_strings_and_integers_stay() {
        for line in [
            "call void asm \"mov.f32 $0, 1.0;\", \"f\"(float %inf)",
            "%1 = add i32 %2, 16",
            "!1 = !{float 1.5}",
        ] {
            assert_eq!(normalize(line), line);
        }
    }
}
