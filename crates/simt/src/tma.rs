//! Tensor maps and the boxes that bulk tensor copies move.
//!
//! The 128 bytes of a tensor map are opaque in PTX; kernels build one by zero-filling it and setting fields
//! with `tensormap.replace`. The encoding here is the simulator's own. The meaning of the fields is that of
//! the PTX ISA ("tensormap.replace", "Tensors"): dimension 0 is the innermost; strides are in bytes and start
//! with that of dimension 1; `rank` holds the rank minus one.

use crate::bytecode::MapField;
use crate::input::Dtype;
use crate::wgmma::swizzled;

/// Bytes of a tensor map.
pub const MAP_BYTES: u32 = 128;

/// Where a field lies: offset and bytes. `None` for an index that does not exist.
pub fn field(f: MapField) -> Option<(u32, u8)> {
    let dim = |i: u8, n: u8| (i < n).then_some(u32::from(i));
    Some(match f {
        MapField::GlobalAddress => (0, 8),
        MapField::Rank => (8, 1),
        MapField::ElemType => (9, 1),
        MapField::Swizzle => (10, 1),
        MapField::Interleave => (11, 1),
        MapField::Fill => (12, 1),
        MapField::BoxDim(i) => (16 + 2 * dim(i, 5)?, 2),
        MapField::ElementStride(i) => (26 + 2 * dim(i, 5)?, 2),
        MapField::GlobalDim(i) => (36 + 4 * dim(i, 5)?, 4),
        MapField::GlobalStride(i) => (56 + 8 * dim(i, 4)?, 8),
    })
}

/// Element types of tensor maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ElemType {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F64,
    BF16,
}

impl ElemType {
    fn new(code: u8) -> Option<ElemType> {
        Some(match code {
            0 => ElemType::U8,
            1 => ElemType::U16,
            2 => ElemType::U32,
            3 => ElemType::S32,
            4 => ElemType::U64,
            5 => ElemType::S64,
            6 => ElemType::F16,
            7 | 8 | 11 | 12 => ElemType::F32,
            9 => ElemType::F64,
            10 => ElemType::BF16,
            _ => return None,
        })
    }

    /// The code in a tensor map.
    fn code(self) -> u64 {
        match self {
            ElemType::U8 => 0,
            ElemType::U16 => 1,
            ElemType::U32 => 2,
            ElemType::S32 => 3,
            ElemType::U64 => 4,
            ElemType::S64 => 5,
            ElemType::F16 => 6,
            ElemType::F32 => 7,
            ElemType::F64 => 9,
            ElemType::BF16 => 10,
        }
    }

    /// That of an array's elements; 8-bit floats are bytes.
    pub fn of(dtype: Dtype) -> ElemType {
        match dtype {
            Dtype::F64 => ElemType::F64,
            Dtype::F32 => ElemType::F32,
            Dtype::F16 => ElemType::F16,
            Dtype::BF16 => ElemType::BF16,
            Dtype::I64 => ElemType::S64,
            Dtype::I32 => ElemType::S32,
            Dtype::U32 => ElemType::U32,
            Dtype::I16 => ElemType::U16,
            Dtype::F8E4M3 | Dtype::F8E5M2 | Dtype::I8 | Dtype::U8 | Dtype::I1 => ElemType::U8,
        }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            ElemType::U8 => 1,
            ElemType::U16 | ElemType::F16 | ElemType::BF16 => 2,
            ElemType::U32 | ElemType::S32 | ElemType::F32 => 4,
            ElemType::U64 | ElemType::S64 | ElemType::F64 => 8,
        }
    }

    /// A quiet NaN, which out-of-bounds elements become when the map asks for it.
    fn nan(self) -> u64 {
        match self {
            ElemType::F16 => 0x7fff,
            ElemType::BF16 => 0x7fff,
            ElemType::F32 => 0x7fff_ffff,
            ElemType::F64 => 0x7fff_ffff_ffff_ffff,
            _ => 0,
        }
    }
}

/// A tensor map that the host makes, of a tensor in C order. Dimensions in the tensor's order: the innermost last.
#[derive(Clone, Debug, PartialEq)]
pub struct HostMap {
    /// Element type.
    pub elem: ElemType,
    /// Shape of the tensor.
    pub dim: Vec<u64>,
    /// Shape of the box.
    pub box_dim: Vec<u16>,
    /// Bytes of the swizzle pattern: 0, 32, 64 or 128.
    pub swizzle: u32,
    /// Elements outside are NaN instead of zero.
    pub fill_nan: bool,
}

impl HostMap {
    /// The map's bytes for a tensor at an address; the error says what the hardware does not take.
    pub fn encode(&self, address: u64) -> Result<Vec<u8>, String> {
        let rank = self.dim.len();
        if !(1..=5).contains(&rank) || self.box_dim.len() != rank {
            return Err(format!("a tensor map of rank {rank} with a box of rank {}", self.box_dim.len()));
        }
        let swizzle = match self.swizzle {
            0 => 0,
            32 => 1,
            64 => 2,
            128 => 3,
            n => {
                return Err(format!("a tensor map with a swizzle of {n} bytes; there are 0, 32, 64 and 128"));
            }
        };
        let mut bytes = vec![0; MAP_BYTES as usize];
        let mut set = |f: MapField, v: u64| {
            let (at, n) = field(f).unwrap_or((0, 0));
            bytes[at as usize..][..n as usize].copy_from_slice(&v.to_le_bytes()[..n as usize]);
        };
        set(MapField::GlobalAddress, address);
        set(MapField::Rank, rank as u64 - 1);
        set(MapField::ElemType, self.elem.code());
        set(MapField::Swizzle, swizzle);
        set(MapField::Fill, u64::from(self.fill_nan));
        let mut stride = u64::from(self.elem.bytes());
        for i in 0..rank {
            let (n, size) = (self.dim[rank - 1 - i], self.box_dim[rank - 1 - i]);
            if !(1..=1 << 31).contains(&n) {
                return Err(format!("a tensor map of a dimension of {n} elements"));
            }
            set(MapField::GlobalDim(i as u8), n);
            set(MapField::BoxDim(i as u8), u64::from(size));
            set(MapField::ElementStride(i as u8), 1);
            if i > 0 {
                set(MapField::GlobalStride(i as u8 - 1), stride);
            }
            stride = stride.saturating_mul(n);
        }
        Map::new(&bytes)?;
        Ok(bytes)
    }
}

/// A decoded tensor map.
#[derive(Clone, Debug)]
pub struct Map {
    address: u64,
    rank: usize,
    /// Element type.
    pub elem: ElemType,
    swizzle: u32,
    fill_nan: bool,
    box_dim: [u32; 5],
    dim: [u32; 5],
    stride: [u64; 5],
}

/// Sixteen bytes or less of a box: address in shared memory, and for each element in order its address in
/// global memory, or none if it lies outside the tensor.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Address in shared memory.
    pub shared: u32,
    /// Address of the first element that is inside.
    pub global: u64,
    /// Elements outside before it, inside, and in total.
    pub outside: u32,
    /// Elements inside.
    pub inside: u32,
    /// Elements of the piece.
    pub total: u32,
}

impl Map {
    /// Decodes the bytes of a map; the error says what is wrong with it.
    pub fn new(b: &[u8]) -> Result<Map, String> {
        let get = |f: MapField| {
            let (o, n) = field(f).unwrap_or((0, 0));
            b[o as usize..o as usize + n as usize].iter().rev().fold(0u64, |v, x| v << 8 | u64::from(*x))
        };
        let rank = get(MapField::Rank) as usize + 1;
        if rank > 5 {
            return Err(format!("a tensor map of rank {rank}"));
        }
        let code = get(MapField::ElemType) as u8;
        let elem = ElemType::new(code).ok_or_else(|| format!("a tensor map with element type {code}"))?;
        let swizzle = match get(MapField::Swizzle) {
            0 => 16,
            1 => 32,
            2 => 64,
            3 => 128,
            other => return Err(format!("a tensor map with swizzle mode {other}")),
        };
        if get(MapField::Interleave) != 0 {
            return Err("a tensor map with interleaved layout".into());
        }
        let t = elem.bytes();
        let (mut box_dim, mut dim, mut stride) = ([1; 5], [1; 5], [u64::from(t); 5]);
        for i in 0..rank {
            box_dim[i] = get(MapField::BoxDim(i as u8)) as u32;
            dim[i] = get(MapField::GlobalDim(i as u8)) as u32;
            if i > 0 {
                stride[i] = get(MapField::GlobalStride(i as u8 - 1));
                if stride[i] % 16 != 0 {
                    return Err(format!(
                        "a tensor map with a stride of {} bytes, no multiple of 16",
                        stride[i]
                    ));
                }
            }
            if get(MapField::ElementStride(i as u8)) != 1 {
                return Err("a tensor map with element strides other than 1".into());
            }
            if !(1..=256).contains(&box_dim[i]) {
                return Err(format!(
                    "a tensor map whose box has {} elements along dimension {i}",
                    box_dim[i]
                ));
            }
        }
        let address = get(MapField::GlobalAddress);
        if address % 16 != 0 {
            return Err("a tensor map whose global address is no multiple of 16".into());
        }
        let inner = box_dim[0] * t;
        if inner % 16 != 0 {
            return Err(format!("a tensor map whose box rows have {inner} bytes, no multiple of 16"));
        }
        if swizzle > 16 && inner > swizzle {
            return Err(format!(
                "a tensor map whose box rows of {inner} bytes exceed the swizzle of {swizzle} bytes"
            ));
        }
        Ok(Map { address, rank, elem, swizzle, fill_nan: get(MapField::Fill) == 1, box_dim, dim, stride })
    }

    /// Rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Rows of a box.
    pub fn rows(&self) -> u32 {
        self.box_dim[1..].iter().product()
    }

    /// Bytes of a box.
    pub fn box_bytes(&self) -> u32 {
        self.box_dim.iter().product::<u32>() * self.elem.bytes()
    }

    /// Alignment that a box needs in shared memory.
    pub fn shared_align(&self) -> u32 {
        128
    }

    /// Bits of an element outside the tensor.
    pub fn fill(&self) -> u64 {
        if self.fill_nan { self.elem.nan() } else { 0 }
    }

    /// The pieces of the box at these coordinates, when it lies at `shared`.
    pub fn pieces(&self, shared: u32, coords: &[i32]) -> Vec<Piece> {
        let t = self.elem.bytes();
        let per = 16 / t;
        let mut out = Vec::with_capacity((self.box_bytes() / 16) as usize);
        let rows: u32 = self.box_dim[1..].iter().product();
        for row in 0..rows {
            let mut rest = row;
            let mut base = self.address;
            let mut inside_row = true;
            for d in 1..5 {
                let i = i64::from(rest % self.box_dim[d]) + i64::from(coords.get(d).copied().unwrap_or(0));
                rest /= self.box_dim[d];
                inside_row &= i >= 0 && i < i64::from(self.dim[d]);
                base = base.wrapping_add((i as u64).wrapping_mul(self.stride[d]));
            }
            let first = i64::from(coords.first().copied().unwrap_or(0));
            let limit = i64::from(self.dim[0]);
            for chunk in 0..self.box_dim[0] / per {
                let start = first + i64::from(chunk * per);
                let end = start + i64::from(per);
                let (lo, hi) = (start.max(0), end.min(limit));
                let inside = if inside_row && hi > lo { (hi - lo) as u32 } else { 0 };
                out.push(Piece {
                    shared: swizzled(shared + (row * self.box_dim[0] + chunk * per) * t, self.swizzle),
                    global: base.wrapping_add((lo as u64).wrapping_mul(u64::from(t))),
                    outside: if inside == 0 { per } else { (lo - start) as u32 },
                    inside,
                    total: per,
                });
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(b: &mut [u8], f: MapField, v: u64) {
        let (o, n) = field(f).unwrap();
        b[o as usize..o as usize + n as usize].copy_from_slice(&v.to_le_bytes()[..n as usize]);
    }

    fn map() -> Vec<u8> {
        let mut b = vec![0; MAP_BYTES as usize];
        set(&mut b, MapField::GlobalAddress, 0x1000);
        set(&mut b, MapField::Rank, 1);
        set(&mut b, MapField::ElemType, 6);
        set(&mut b, MapField::Swizzle, 3);
        for (i, (box_dim, dim)) in [(64, 100), (8, 5)].into_iter().enumerate() {
            set(&mut b, MapField::BoxDim(i as u8), box_dim);
            set(&mut b, MapField::GlobalDim(i as u8), dim);
            set(&mut b, MapField::ElementStride(i as u8), 1);
        }
        set(&mut b, MapField::GlobalStride(0), 208);
        b
    }

    #[test]
    fn boxes_are_swizzled_and_clipped() {
        let m = Map::new(&map()).unwrap();
        assert_eq!(m.box_bytes(), 1024);
        let p = m.pieces(0x400, &[62, 3]);
        assert_eq!(p.len(), 64);
        // Row 1, chunk 0: address bit 7 goes into bit 4; global row 4.
        assert_eq!((p[8].shared, p[8].global), (0x490, 0x1000 + 4 * 208 + 62 * 2));
        // Elements 94 … 101: six are inside.
        assert_eq!((p[4].inside, p[4].outside), (6, 0));
        assert_eq!(p[5].inside, 0);
        // Row 5 does not exist.
        assert_eq!(p[16].inside, 0);
        let q = m.pieces(0x400, &[-3, 0]);
        assert_eq!((q[0].outside, q[0].inside, q[0].global), (3, 5, 0x1000));
    }

    #[test]
    fn malformed_maps_are_errors() {
        let mut b = map();
        set(&mut b, MapField::GlobalStride(0), 200);
        assert!(Map::new(&b).unwrap_err().contains("multiple of 16"));
        let mut b = map();
        set(&mut b, MapField::BoxDim(0), 128);
        assert!(Map::new(&b).unwrap_err().contains("swizzle"));
    }
}
