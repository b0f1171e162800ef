//! The kernel's arguments as the command line writes them.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;

use simt::Arg;
use simt::input::{Array, Case, Dtype, MAX_BUFFER, buffer_bytes};
use simt::ir::Ty;
use simt::tma::{ElemType, HostMap};

/// A buffer that the user named.
pub(super) struct Named {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    /// Whether it is a result of a case.
    pub output: bool,
}

/// The type of a number written without one: that of the parameter.
fn scalar_type(param: Option<&Ty>, value: &str) -> Dtype {
    match param {
        Some(Ty::F16) => Dtype::F16,
        Some(Ty::BF16) => Dtype::BF16,
        Some(Ty::F32) => Dtype::F32,
        Some(Ty::F64) => Dtype::F64,
        Some(Ty::Int(1)) => Dtype::I1,
        Some(Ty::Int(8)) => Dtype::I8,
        Some(Ty::Int(16)) => Dtype::I16,
        Some(Ty::Int(32)) => Dtype::I32,
        _ if value.contains(['.', 'e', 'n']) => Dtype::F32,
        _ => Dtype::I64,
    }
}

/// A tensor: an `.npy` file, or zeros of a type and shape (`f32[64,64]`). `None`: it is neither.
fn tensor(text: &str) -> Result<Option<Array>> {
    if text.ends_with(".npy") {
        let bytes = std::fs::read(text).with_context(|| text.to_owned())?;
        return Ok(Some(Array::from_npy(&bytes).with_context(|| text.to_owned())?));
    }
    let Some((ty, dims)) = text.strip_suffix(']').and_then(|v| v.split_once('[')) else { return Ok(None) };
    let dtype = Dtype::parse(ty)?;
    let shape: Vec<usize> = numbers(dims).context("the shape")?;
    let data = vec![0; buffer_bytes(&shape, dtype)? as usize];
    Ok(Some(Array { dtype, shape, data }))
}

fn numbers<T: std::str::FromStr>(list: &str) -> Result<Vec<T>, T::Err> {
    list.split(',').map(|d| d.trim().parse()).collect()
}

/// Splits at the commas that stand in no brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    out
}

/// A tensor map as the host makes them (`cuTensorMapEncodeTiled`): of a tensor in C order, its box in the tensor's order
/// of dimensions, and options.
fn tensor_map(name: &str, inner: &str, named: &mut Vec<Named>) -> Result<Arg> {
    let list = parts(inner);
    let [of, size, options @ ..] = &list[..] else {
        bail!("a tensor map is tensormap(TENSOR,[BOX]) with options");
    };
    let (buffer, dtype, shape, data) = match tensor(of)? {
        Some(a) => {
            let (dtype, shape) = (a.dtype, a.shape.clone());
            named.push(Named { name: name.to_owned(), dtype, shape: a.shape, output: false });
            (name.to_owned(), dtype, shape, Some(a.data))
        }
        None => match named.iter().find(|n| n.name == *of) {
            Some(n) => (n.name.clone(), n.dtype, n.shape.clone(), None),
            None => bail!("'{of}' is neither a file, a type with a shape, nor an argument before this one"),
        },
    };
    let size = size.strip_prefix('[').and_then(|s| s.strip_suffix(']'));
    let box_dim = numbers(size.context("the box is not of the form [64,64]")?).context("the box")?;
    let elem = ElemType::of(dtype);
    let dim = shape.iter().map(|n| *n as u64).collect();
    let mut map = HostMap { elem, dim, box_dim, swizzle: 0, fill_nan: false };
    for option in options {
        match option.split_once('=') {
            Some(("swizzle", n)) => map.swizzle = n.parse().context("the swizzle")?,
            Some(("fill", "nan")) => map.fill_nan = true,
            Some(("fill", "zero")) => map.fill_nan = false,
            _ => bail!("'{option}' is none of swizzle=0|32|64|128, fill=zero|nan"),
        }
    }
    Ok(Arg::TensorMap { buffer, data, map })
}

/// The arguments of a case.
pub(super) fn of_case(c: &Case, dir: Option<&Path>) -> Result<(Vec<Arg>, Vec<Named>)> {
    let dir = dir.ok_or_else(|| anyhow!("--case needs --data"))?;
    let named = c
        .args
        .iter()
        .filter_map(|a| {
            let (name, shape) = (a.name.clone(), a.shape.clone()?);
            Some(Named { name, dtype: a.dtype, shape, output: c.outputs.contains(&a.name) })
        })
        .collect();
    Ok((c.load(dir)?, named))
}

/// The arguments for these parameters.
pub(super) fn arguments(texts: &[String], params: &[Ty]) -> Result<(Vec<Arg>, Vec<Named>)> {
    let mut args = Vec::new();
    let mut named = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        let unnamed = text.starts_with("tensormap(");
        let (name, value) = match text.split_once('=') {
            Some((n, v)) if !unnamed => (n.to_owned(), v),
            _ => (format!("arg{i}"), text.as_str()),
        };
        let failed = || format!("the argument '{text}'");
        if let Some(inner) = value.strip_prefix("tensormap(").and_then(|v| v.strip_suffix(')')) {
            args.push(tensor_map(&name, inner, &mut named).with_context(failed)?);
        } else if value == "null" {
            args.push(Arg::Address(0));
        } else if let Some(a) = tensor(value).with_context(failed)? {
            named.push(Named { name: name.clone(), dtype: a.dtype, shape: a.shape, output: false });
            args.push(Arg::Buffer { name, data: a.data });
        } else {
            let (dtype, number) = match value.split_once(':') {
                Some((ty, n)) => (Dtype::parse(ty)?, n),
                None => (scalar_type(params.get(i), value), value),
            };
            if matches!(params.get(i), Some(Ty::Ptr(..))) && number.parse::<i64>().is_err() {
                bail!(
                    "the argument '{text}' is for a pointer: give a file.npy, zeros such as f32[64,64], or null"
                );
            }
            let number: serde_json::Value = serde_json::from_str(number).unwrap_or_else(|_| json!(number));
            args.push(Arg::Scalar(dtype.scalar(&number).with_context(failed)?));
        }
    }
    let bytes = |a: &Arg| match a {
        Arg::Buffer { data, .. } | Arg::TensorMap { data: Some(data), .. } => data.len() as u64,
        _ => 0,
    };
    let total: u64 = args.iter().map(bytes).sum();
    if total > MAX_BUFFER {
        bail!("buffers of {total} bytes; the simulator takes {MAX_BUFFER} in all");
    }
    Ok((args, named))
}
