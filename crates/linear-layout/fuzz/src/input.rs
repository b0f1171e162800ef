//! Layouts, texts, widths and targets out of bytes. When these run out, zeros follow: every string makes a case.

use linear_layout::plan::{DotType, DotTypes};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, LinearLayout};

use super::uneven::uneven;

/// Two layouts of one tensor, an element width and a target.
#[derive(Debug)]
pub struct Case {
    /// Source.
    pub a: LinearLayout,
    /// Destination.
    pub b: LinearLayout,
    /// Bits of an element.
    pub elem_bits: u32,
    /// Bytes of shared memory allowed.
    pub budget: u64,
    /// Machine.
    pub target: TargetDesc,
}

impl Case {
    /// The case that the bytes make.
    pub fn of(bytes: &[u8]) -> Case {
        Input::new(bytes).case()
    }
}

/// Bytes that are being read.
#[derive(Debug)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All of them are still to be read.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    /// A number below `n`, which is at most 2¹⁶.
    pub fn below(&mut self, n: u64) -> u64 {
        let bytes = if n > 256 { 2 } else { 1 };
        let (now, rest) = self.0.split_at(self.0.len().min(bytes));
        self.0 = rest;
        now.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)) % n.max(1)
    }

    /// The size of a dimension: mostly a small power of two.
    pub fn size(&mut self) -> u64 {
        match self.below(16) {
            0 => self.below(1 << 16),
            1 => 1 << self.below(64),
            _ => 1 << self.below(9),
        }
    }

    /// Any known target, half of them with other costs.
    pub fn target(&mut self) -> TargetDesc {
        let names = TargetDesc::NAMES;
        let pick = self.below(2 * names.len() as u64) as usize;
        let target = TargetDesc::parse(names[pick % names.len()]).expect("a known name");
        if pick < names.len() { target } else { uneven(target) }
    }

    /// Two layouts of a tensor, and the rest.
    pub fn case(&mut self) -> Case {
        let target = self.target();
        let shape = Shape {
            bits: self.below(11) as usize,
            lanes: target.lane_bits() as usize,
            warps: self.below(4) as usize,
            blocks: self.below(2) as usize,
        };
        let (a, b) = (self.layout(&shape), self.layout(&shape));
        let elem_bits = 4 + self.below(61) as u32;
        let elem_bits = if self.below(2) == 0 { elem_bits.next_power_of_two() } else { elem_bits };
        let budget = if self.below(2) == 0 { target.shared_bytes } else { 1 << self.below(15) };
        Case { a, b, elem_bits, budget, target }
    }

    /// Unit vectors and zeros in any order, mixed by row operations that keep every element reached.
    fn layout(&mut self, shape: &Shape) -> LinearLayout {
        let threads = shape.lanes + shape.warps + shape.blocks;
        let n = threads.max(shape.bits) + self.below(3) as usize;
        let mut columns: Vec<u64> = (0..n).map(|i| if i < shape.bits { 1 << i } else { 0 }).collect();
        for i in (1..n).rev() {
            columns.swap(i, self.below(i as u64 + 1) as usize);
        }
        for _ in 0..self.below(5) {
            let (i, j) = (self.below(n as u64) as usize, self.below(n as u64) as usize);
            if i != j {
                columns[i] ^= columns[j];
            }
        }
        let ins = [
            (Dim::REGISTER, (n - threads) as u32),
            (Dim::LANE, shape.lanes as u32),
            (Dim::WARP, shape.warps as u32),
            (Dim::BLOCK, shape.blocks as u32),
        ];
        let low = shape.bits / 2;
        let outs = [(Dim::out(0), low as u32), (Dim::out(1), (shape.bits - low) as u32)];
        LinearLayout::from_columns(&ins, &outs, columns).expect("as many columns as bits")
    }

    /// The layout, or one with two columns exchanged or one added to another.
    pub fn disturbed(&mut self, layout: LinearLayout) -> LinearLayout {
        let mut columns = layout.columns().to_vec();
        let n = columns.len() as u64;
        let (how, i, j) = (self.below(8), self.below(n) as usize, self.below(n) as usize);
        match how {
            0 if n > 0 => columns.swap(i, j),
            1 if i != j => columns[i] ^= columns[j],
            _ => return layout,
        }
        let (ins, outs): (Vec<_>, Vec<_>) = (layout.in_dim_bits().collect(), layout.out_dim_bits().collect());
        LinearLayout::from_columns(&ins, &outs, columns).expect("as many columns as before")
    }

    /// One of the encodings of `tests/encodings.txt`, with pieces of text exchanged, dropped and repeated; or bytes.
    pub fn encoding(&mut self) -> String {
        const KNOWN: &str = include_str!("../../tests/encodings.txt");
        let known: Vec<&str> =
            KNOWN.lines().filter(|l| l.starts_with("#tt")).filter_map(|l| l.split("; ").next()).collect();
        if self.below(16) == 0 {
            return String::from_utf8_lossy(self.0).into_owned();
        }
        let mut text: Vec<char> = known[self.below(known.len() as u64) as usize].chars().collect();
        for _ in 0..self.below(4) {
            let at = self.below(text.len() as u64 + 1) as usize;
            let end = text.len().min(at + self.below(12) as usize);
            match self.below(5) {
                0 => drop(text.drain(at..end)),
                1 => {
                    let piece: Vec<char> = text[at..end].to_vec();
                    text.splice(at..at, piece);
                }
                2 => text.insert(at, b"0123456789[]{}<>=,:+# "[self.below(22) as usize].into()),
                3 => text.splice(at..end, self.size().to_string().chars()).for_each(drop),
                _ => {
                    let other = known[self.below(known.len() as u64) as usize];
                    text.splice(at..end, other.chars()).for_each(drop);
                }
            }
        }
        text.into_iter().collect()
    }

    /// An encoding of results of dots on the target, or on another one.
    pub fn dot_parent(&mut self, target: &TargetDesc) -> String {
        let (x, y) = (1 << self.below(2), 1 << self.below(2));
        let [rows, columns] = [1 << self.below(3), 1 << self.below(3)];
        let lanes = target.lanes / 4;
        match self.below(6) {
            0 | 1 => format!(
                "#ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = [{x}, {y}], instrShape = [16, 8]}}>"
            ),
            2 => format!(
                "#ttg.amd_mfma<{{version = 3, warpsPerCTA = [{x}, {y}], instrShape = [16, 16, 16], isTransposed = false}}>"
            ),
            3 => format!(
                "#ttg.amd_mfma<{{version = 4, warpsPerCTA = [{x}, {y}], instrShape = [32, 32, 16], isTransposed = true}}>"
            ),
            _ => format!(
                "#ttg.blocked<{{sizePerThread = [{rows}, {columns}], threadsPerWarp = [{lanes}, 4], warpsPerCTA = [{x}, {y}], order = [1, 0]}}>"
            ),
        }
    }

    /// Types of a product.
    pub fn dot_types(&mut self, target: &TargetDesc) -> DotTypes {
        use DotType::*;
        let kinds = [F16, Bf16, F8, F32, I8, F64, I16, I32, I64];
        let a = kinds[self.below(9) as usize];
        let b = if self.below(4) == 0 { kinds[self.below(9) as usize] } else { a };
        DotTypes { exact: self.below(2) == 1, ..DotTypes::new(a, b, target) }
    }

    /// The layout of a vector of row numbers: the first in registers, others in warps, registers and blocks.
    pub fn row_numbers(&mut self, rows: u64) -> LinearLayout {
        let mut parts = [vec![], vec![], vec![], vec![]];
        let mut row = 1;
        while row < rows {
            let part = if row < 4 { 0 } else { [0, 2, 2, 3][self.below(4) as usize] };
            parts[part].push(if self.below(16) == 0 { 0 } else { row });
            row *= 2;
        }
        parts[1].resize(5, 0);
        parts[2].extend((0..self.below(2)).map(|_| 0));
        let dims = [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK];
        let ins: Vec<(Dim, u32)> = dims.into_iter().zip(parts.iter().map(|p| p.len() as u32)).collect();
        let bits = rows.max(1).ilog2();
        LinearLayout::from_columns(&ins, &[(Dim::out(0), bits)], parts.concat()).expect("row numbers")
    }
}

struct Shape {
    bits: usize,
    lanes: usize,
    warps: usize,
    blocks: usize,
}
