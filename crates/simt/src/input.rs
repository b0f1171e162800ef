//! Launch data: element types, NumPy files, and the JSON files that describe a launch.

use std::path::Path;

use serde_json::Value;

use crate::launch::Arg;
use crate::{Error, num};

/// An element type of data files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Dtype {
    F64,
    F32,
    F16,
    BF16,
    F8E4M3,
    F8E5M2,
    I64,
    I32,
    U32,
    I16,
    I8,
    U8,
    I1,
}

impl Dtype {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F64 => "f64",
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::BF16 => "bf16",
            Dtype::F8E4M3 => "f8e4m3",
            Dtype::F8E5M2 => "f8e5m2",
            Dtype::I64 => "i64",
            Dtype::I32 => "i32",
            Dtype::U32 => "u32",
            Dtype::I16 => "i16",
            Dtype::I8 => "i8",
            Dtype::U8 => "u8",
            Dtype::I1 => "i1",
        }
    }

    /// By its name.
    pub fn parse(s: &str) -> Result<Dtype, Error> {
        Ok(match s {
            "f64" => Dtype::F64,
            "f32" => Dtype::F32,
            "f16" => Dtype::F16,
            "bf16" => Dtype::BF16,
            "f8e4m3" => Dtype::F8E4M3,
            "f8e5m2" => Dtype::F8E5M2,
            "i64" => Dtype::I64,
            "i32" => Dtype::I32,
            "u32" => Dtype::U32,
            "i16" => Dtype::I16,
            "i8" => Dtype::I8,
            "u8" => Dtype::U8,
            "i1" => Dtype::I1,
            _ => {
                let known = "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 u32 i16 i8 u8 i1";
                return Err(Error::Data(format!("the element type '{s}'; there are {known}")));
            }
        })
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::F64 | Dtype::I64 => 8,
            Dtype::F32 | Dtype::I32 | Dtype::U32 => 4,
            Dtype::F16 | Dtype::BF16 | Dtype::I16 => 2,
            _ => 1,
        }
    }

    fn descr(self) -> &'static str {
        match self {
            Dtype::F64 => "<f8",
            Dtype::F32 => "<f4",
            Dtype::F16 => "<f2",
            Dtype::BF16 => "<u2",
            Dtype::I64 => "<i8",
            Dtype::I32 => "<i4",
            Dtype::U32 => "<u4",
            Dtype::I16 => "<i2",
            Dtype::I8 => "|i1",
            Dtype::I1 => "|b1",
            _ => "|u1",
        }
    }

    fn from_descr(s: &str) -> Option<Dtype> {
        Some(match s.trim_start_matches(['<', '|', '=']) {
            "f8" => Dtype::F64,
            "f4" => Dtype::F32,
            "f2" => Dtype::F16,
            "i8" | "u8" => Dtype::I64,
            "i4" => Dtype::I32,
            "u4" => Dtype::U32,
            "i2" | "u2" => Dtype::I16,
            "i1" => Dtype::I8,
            "u1" => Dtype::U8,
            "b1" => Dtype::I1,
            _ => return None,
        })
    }

    /// The value of an element as f64.
    pub fn value(self, b: &[u8]) -> f64 {
        let word = b[..self.bytes()].iter().rev().fold(0u64, |v, x| v << 8 | u64::from(*x));
        match self {
            Dtype::F64 => f64::from_bits(word),
            Dtype::F32 => f64::from(f32::from_bits(word as u32)),
            Dtype::F16 => f64::from(num::f16_to_f32(word as u16)),
            Dtype::BF16 => f64::from(num::bf16_to_f32(word as u16)),
            Dtype::F8E4M3 => num::value_of(word as u32, num::E4M3),
            Dtype::F8E5M2 => num::value_of(word as u32, num::E5M2),
            Dtype::I64 => word as i64 as f64,
            Dtype::I32 => f64::from(word as u32 as i32),
            Dtype::I16 => f64::from(word as u16 as i16),
            Dtype::I8 => f64::from(word as u8 as i8),
            Dtype::U32 | Dtype::U8 | Dtype::I1 => word as f64,
        }
    }

    /// The bits of a scalar argument written as a number.
    pub fn scalar(self, v: &Value) -> Result<u64, Error> {
        let bad = || Error::Data(format!("the value {v} for a scalar of type {}", self.name()));
        let float = || v.as_f64().or_else(|| v.as_str().and_then(|s| s.parse().ok())).ok_or_else(bad);
        Ok(match self {
            Dtype::F64 => float()?.to_bits(),
            Dtype::F32 => u64::from((float()? as f32).to_bits()),
            Dtype::F16 => u64::from(num::f64_to_f16(float()?)),
            Dtype::BF16 => u64::from(num::f64_to_bf16(float()?)),
            Dtype::I1 => u64::from(v.as_bool().or_else(|| v.as_i64().map(|i| i != 0)).ok_or_else(bad)?),
            _ => {
                let i = v.as_i64().map(i128::from).or_else(|| v.as_u64().map(i128::from)).ok_or_else(bad)?;
                // Either sign: 0xffffffff is a good i32.
                let bits = 8 * self.bytes() as u32;
                if i >= 1 << bits || i < -(1 << (bits - 1)) {
                    return Err(bad());
                }
                i as u64
            }
        })
    }
}

/// An array as NumPy stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Element type.
    pub dtype: Dtype,
    /// Shape.
    pub shape: Vec<usize>,
    /// Elements in C order, little-endian.
    pub data: Vec<u8>,
}

impl Array {
    /// Reads an `.npy` file's bytes.
    pub fn from_npy(bytes: &[u8]) -> Result<Array, Error> {
        let bad = |m: &str| Error::Data(format!("not an .npy file: {m}"));
        if bytes.len() < 10 || &bytes[..6] != b"\x93NUMPY" {
            return Err(bad("the magic bytes are missing"));
        }
        let (len, start) = match bytes[6] {
            1 => (usize::from(u16::from_le_bytes([bytes[8], bytes[9]])), 10),
            2 | 3 if bytes.len() >= 12 => {
                (u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize, 12)
            }
            _ => return Err(bad("unknown version")),
        };
        let header = bytes.get(start..start + len).ok_or_else(|| bad("the header is cut off"))?;
        let header = std::str::from_utf8(header).map_err(|_| bad("the header is not text"))?;
        let after = |key: &str| header.split_once(key).map(|(_, rest)| rest.trim_start_matches([':', ' ']));
        let descr =
            after("'descr'").and_then(|r| r.split('\'').nth(1)).ok_or_else(|| bad("no element type"))?;
        let dtype = Dtype::from_descr(descr)
            .ok_or_else(|| Error::Data(format!("an .npy file of element type '{descr}'")))?;
        if after("'fortran_order'").is_some_and(|r| r.starts_with("True")) {
            return Err(Error::Data("an .npy file in Fortran order".into()));
        }
        let list = after("'shape'")
            .and_then(|r| r.strip_prefix('('))
            .and_then(|r| r.split(')').next())
            .ok_or_else(|| bad("no shape"))?;
        let shape: Vec<usize> = list
            .split(',')
            .map(str::trim)
            .filter(|s| !s.is_empty())
            .map(|s| s.parse().map_err(|_| bad("a bad shape")))
            .collect::<Result<_, _>>()?;
        let data = bytes[start + len..].to_vec();
        if data.len() as u64 != buffer_bytes(&shape, dtype)? {
            return Err(bad("the data does not fit the shape"));
        }
        Ok(Array { dtype, shape, data })
    }

    /// The bytes of an `.npy` file. bf16 and f8 are stored as unsigned integers.
    pub fn to_npy(&self) -> Vec<u8> {
        let shape: String = self.shape.iter().map(|n| format!("{n}, ")).collect();
        let mut header = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
            self.dtype.descr(),
            shape.trim_end()
        );
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.as_bytes());
        out.extend(&self.data);
        out
    }

    /// The first element that differs by more than `atol + rtol·|want|`, and how many do.
    pub fn compare(
        &self,
        want: &Array,
        rtol: f64,
        atol: f64,
    ) -> Result<Option<(usize, f64, f64, usize)>, Error> {
        if self.data.len() / self.dtype.bytes() != want.data.len() / want.dtype.bytes() {
            return Err(Error::Data(format!(
                "a result of shape {:?} compared with {:?}",
                self.shape, want.shape
            )));
        }
        let mut first = None;
        let mut count = 0;
        let pairs =
            self.data.chunks_exact(self.dtype.bytes()).zip(want.data.chunks_exact(want.dtype.bytes()));
        for (i, (a, b)) in pairs.enumerate() {
            let (a, b) = (self.dtype.value(a), want.dtype.value(b));
            let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= atol + rtol * b.abs();
            if !same {
                count += 1;
                first = first.or(Some((i, a, b)));
            }
        }
        Ok(first.map(|(i, a, b)| (i, a, b, count)))
    }
}

/// Most bytes of a buffer.
pub const MAX_BUFFER: u64 = 1 << 32;

/// Bytes of a buffer, if it can be had.
pub fn buffer_bytes(shape: &[usize], dtype: Dtype) -> Result<u64, Error> {
    shape
        .iter()
        .try_fold(dtype.bytes() as u64, |n, d| n.checked_mul(*d as u64))
        .filter(|n| *n <= MAX_BUFFER)
        .ok_or_else(|| {
            Error::Data(format!(
                "a buffer of shape {shape:?} and type {dtype:?}; the simulator takes {MAX_BUFFER} bytes at most"
            ))
        })
}

/// An argument of a described launch.
#[derive(Clone, Debug)]
pub struct CaseArg {
    /// Name.
    pub name: String,
    /// Element type.
    pub dtype: Dtype,
    /// Shape of a buffer; `None` for a scalar.
    pub shape: Option<Vec<usize>>,
    /// Value of a scalar.
    pub value: u64,
}

/// A launch described in JSON.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The kernel's symbol.
    pub kernel: String,
    /// Warps.
    pub num_warps: u32,
    /// Pipeline stages, for a compiler.
    pub num_stages: u32,
    /// Programs of a cluster that work as one; the grid counts clusters.
    pub num_ctas: u32,
    /// Programs.
    pub grid: [u32; 3],
    /// Arguments.
    pub args: Vec<CaseArg>,
    /// Names of the buffers that hold results.
    pub outputs: Vec<String>,
}

impl Case {
    /// Reads the JSON.
    pub fn parse(text: &str) -> Result<Case, Error> {
        let bad = |m: String| Error::Data(format!("a case file {m}"));
        let v: Value = serde_json::from_str(text).map_err(|e| bad(format!("that is not JSON: {e}")))?;
        let string = |v: &Value, key: &str| {
            v[key].as_str().map(str::to_owned).ok_or_else(|| bad(format!("without '{key}'")))
        };
        let number = |key: &str, default: u64| v[key].as_u64().unwrap_or(default) as u32;
        let grid: Vec<u32> =
            v["grid"].as_array().into_iter().flatten().filter_map(|n| n.as_u64()).map(|n| n as u32).collect();
        let [x, y, z] = grid[..] else { return Err(bad("whose 'grid' is not three numbers".into())) };
        let mut args = Vec::new();
        for a in v["args"].as_array().ok_or_else(|| bad("without 'args'".into()))? {
            let dtype = Dtype::parse(&string(a, "dtype")?)?;
            let is_buffer = string(a, "kind")? == "ptr";
            let shape = is_buffer.then(|| {
                let list = a["shape"].as_array().map(Vec::as_slice).unwrap_or_default();
                list.iter().map(|n| n.as_u64().map(|n| n as usize)).collect::<Option<Vec<usize>>>()
            });
            let shape = match shape {
                Some(None) => return Err(bad(format!("with the shape {}", a["shape"]))),
                Some(s) => s,
                None => None,
            };
            let value = if is_buffer { 0 } else { dtype.scalar(&a["value"])? };
            args.push(CaseArg { name: string(a, "name")?, dtype, shape, value });
        }
        let outputs = v["outputs"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|s| s.as_str())
            .map(str::to_owned)
            .collect();
        Ok(Case {
            name: string(&v, "name")?,
            kernel: string(&v, "kernel")?,
            num_warps: number("num_warps", 4),
            num_stages: number("num_stages", 3),
            num_ctas: number("num_ctas", 1),
            grid: [x, y, z],
            args,
            outputs,
        })
    }

    /// The arguments, with buffers read from `dir/<name>.bin`.
    pub fn load(&self, dir: &Path) -> Result<Vec<Arg>, Error> {
        self.args
            .iter()
            .map(|a| {
                let Some(shape) = &a.shape else { return Ok(Arg::Scalar(a.value)) };
                let path = dir.join(format!("{}.bin", a.name));
                let data =
                    std::fs::read(&path).map_err(|e| Error::Data(format!("{}: {e}", path.display())))?;
                let want = buffer_bytes(shape, a.dtype)?;
                if data.len() as u64 != want {
                    return Err(Error::Data(format!(
                        "{} has {} bytes, its shape {shape:?} needs {want}",
                        path.display(),
                        data.len()
                    )));
                }
                Ok(Arg::Buffer { name: a.name.clone(), data })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npy_files_survive_a_round_trip() {
        let a = Array { dtype: Dtype::F32, shape: vec![2, 3], data: (0..24).collect() };
        assert_eq!(Array::from_npy(&a.to_npy()).unwrap(), a);
        let one = Array { dtype: Dtype::I64, shape: vec![1], data: vec![0; 8] };
        assert_eq!(Array::from_npy(&one.to_npy()).unwrap(), one);
        let mut cut = a.to_npy();
        cut.pop();
        assert!(Array::from_npy(&cut).is_err());
        assert!(Array::from_npy(b"hello").is_err());
    }

    #[test]
    fn absurd_shapes_and_values_are_errors() {
        let huge = [usize::MAX, 4];
        assert!(buffer_bytes(&huge, Dtype::F32).unwrap_err().to_string().contains("at most"));
        assert!(buffer_bytes(&[1 << 31], Dtype::F32).is_err());
        assert_eq!(buffer_bytes(&[0, usize::MAX], Dtype::F64).unwrap(), 0);
        assert_eq!(buffer_bytes(&[], Dtype::I8).unwrap(), 1);
        assert!(Dtype::I32.scalar(&serde_json::json!(1u64 << 32)).is_err());
        assert_eq!(Dtype::I32.scalar(&serde_json::json!(0xffff_ffffu32)).unwrap(), 0xffff_ffff);
        assert!(Dtype::I8.scalar(&serde_json::json!(-129)).is_err());
    }

    #[test]
    fn comparison_counts_what_differs() {
        let of = |v: &[f32]| Array {
            dtype: Dtype::F32,
            shape: vec![v.len()],
            data: v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        let got = of(&[1.0, f32::NAN, 3.0, 4.1]);
        assert_eq!(got.compare(&of(&[1.0, f32::NAN, 3.0, 4.1]), 0.0, 0.0).unwrap(), None);
        let d = got.compare(&of(&[1.0, f32::NAN, 3.01, 5.0]), 1e-2, 0.0).unwrap().unwrap();
        assert_eq!((d.0, d.3), (3, 1));
    }

    #[test]
    fn case_files_say_what_is_wrong() {
        assert!(Case::parse("{}").unwrap_err().to_string().contains("grid"));
        let text = r#"{"name":"a","kernel":"k","num_warps":2,"grid":[1,2,1],"outputs":["o"],
            "args":[{"name":"o","kind":"ptr","dtype":"f16","shape":[4]},{"name":"n","kind":"scalar","dtype":"i32","value":-1}]}"#;
        let c = Case::parse(text).unwrap();
        assert_eq!((c.grid, c.args[1].value as u32), ([1, 2, 1], u32::MAX));
        assert!(Case::parse(&text.replace("f16", "f12")).unwrap_err().to_string().contains("f12"));
    }
}
