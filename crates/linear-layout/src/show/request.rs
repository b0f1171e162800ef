//! What is asked: an attribute, a shape, an element type; and what these mean.

use crate::target::TargetDesc;
use crate::{Dim, Encoding, LinearLayout};

/// What to show: a layout, or the way to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The attribute as Triton prints it.
    pub layout: String,
    /// Shape of the tensor.
    pub shape: Vec<u64>,
    /// Element type, such as `f16`, `i8` or `ptr`.
    pub dtype: String,
    /// The attribute to convert to, if that is what is asked for.
    pub to: Option<String>,
    /// The GPU: `cuda:90`, `hip:gfx942`, …
    pub target: String,
    /// Warps that the layout must have, where somebody knows.
    pub num_warps: Option<u64>,
}

/// A layout and what is known about it.
pub struct Subject {
    pub encoding: Encoding,
    pub layout: LinearLayout,
    pub shape: Vec<u64>,
    pub dtype: String,
    pub bits: u32,
    pub target: TargetDesc,
}

impl Subject {
    /// The layout itself.
    pub fn new(request: &Request) -> Result<Subject, String> {
        Subject::of(request, &request.layout, "the layout")
    }

    /// The layout to convert to, if any.
    pub fn destination(request: &Request) -> Result<Option<Subject>, String> {
        let to = request.to.as_ref();
        to.map(|text| Subject::of(request, text, "the layout to convert to")).transpose()
    }

    fn of(request: &Request, text: &str, name: &str) -> Result<Subject, String> {
        let bits = dtype_bits(&request.dtype)?;
        let target = TargetDesc::parse(&request.target).map_err(|error| error.to_string())?;
        let encoding: Encoding =
            text.trim().parse().map_err(|error| format!("{name} cannot be read: {error}"))?;
        let layout = encoding.to_linear_layout(&request.shape).map_err(|error| error.to_string())?;
        // The attribute says how many warps there are; a request may say it again.
        let warps = layout.in_size(Dim::WARP).unwrap_or(1);
        match request.num_warps {
            Some(asked) if encoding.is_distributed() && asked != warps => {
                return Err(format!("`num_warps` is {asked}, but {name} has {warps}"));
            }
            _ => {}
        }
        Ok(Subject {
            encoding,
            layout,
            shape: request.shape.clone(),
            dtype: request.dtype.clone(),
            bits,
            target,
        })
    }
}

/// `128x64` as a list of sizes.
///
/// # Errors
/// What is no shape.
pub fn parse_shape(text: &str) -> Result<Vec<u64>, String> {
    let size = |s: &str| s.trim().parse().map_err(|_| format!("`{text}` is not a shape such as 128x64"));
    text.split('x').map(size).collect()
}

/// Bits of an element as it lies in registers and memory: 4 to 64.
pub fn dtype_bits(name: &str) -> Result<u32, String> {
    let lower = name.to_ascii_lowercase();
    let plain = lower.strip_prefix("torch.").unwrap_or(&lower);
    let known = [("ptr", 64), ("pointer", 64), ("!tt.ptr", 64), ("tf32", 32), ("index", 64), ("bool", 8)];
    if let Some((_, bits)) = known.iter().find(|(prefix, _)| plain.starts_with(prefix)) {
        return Ok(*bits);
    }
    // The number after the letters: f16, bf16, i32, ui8, float32, f8E4M3FN, f4E2M1FN.
    let digits = plain.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let kind = &plain[..plain.len() - digits.len()];
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    let kinds = ["f", "fp", "bf", "float", "bfloat", "i", "si", "ui", "u", "int", "uint"];
    let is_small_float = rest.starts_with('e') && number.len() == 1;
    match number.parse::<u32>() {
        Ok(1) if kinds.contains(&kind) && rest.is_empty() => Ok(8),
        Ok(bits @ (4 | 8 | 16 | 32 | 64)) if kinds.contains(&kind) && (rest.is_empty() || is_small_float) => {
            Ok(bits)
        }
        _ => Err(format!("`{name}` is not an element type of 4 to 64 bits, such as f16, i8 or ptr")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_have_bits() {
        for (name, bits) in [
            ("f16", 16),
            ("bf16", 16),
            ("f32", 32),
            ("f64", 64),
            ("i1", 8),
            ("i8", 8),
            ("i64", 64),
            ("u32", 32),
            ("f8E4M3FN", 8),
            ("f8E5M2", 8),
            ("f4E2M1FN", 4),
            ("i4", 4),
            ("ptr", 64),
            ("!tt.ptr<f16>", 64),
            ("fp16", 16),
            ("torch.float32", 32),
            ("fp8e4nv", 8),
        ] {
            assert_eq!(dtype_bits(name), Ok(bits), "{name}");
        }
        for name in ["", "f", "f12", "f128", "x32", "f16x", "32", "i2"] {
            assert!(dtype_bits(name).is_err(), "{name}");
        }
    }

    #[test]
    fn shapes_are_sizes_with_x_between() {
        assert_eq!(parse_shape("128x64"), Ok(vec![128, 64]));
        assert_eq!(parse_shape("8"), Ok(vec![8]));
        assert!(parse_shape("").is_err() && parse_shape("4x").is_err() && parse_shape("4,4").is_err());
    }
}
