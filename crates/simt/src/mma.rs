//! Matrix instructions with all operands in registers: fragment layouts and arithmetic.
//!
//! # Layouts
//!
//! `mma.sync` (PTX ISA, "Matrix Fragments for mma.m16n8k16" and its neighbours). With *e* elements in a
//! register, *g* = lane / 4 and *t* = lane mod 4:
//!
//! | fragment | register r, element j | row | column |
//! | --- | --- | --- | --- |
//! | A (m × k) | r, j | g + 8·(r mod 2) | e·t + j + 4·e·(r / 2) |
//! | B (k × n) | r, j | e·t + j + 4·e·r | g |
//! | C, D (m × n) | i = 2·(r / 2) … | g + 8·(i / 2) | 2·t + i mod 2 |
//!
//! For m = 8 all rows are g. Accumulators of 16 bits hold two neighbouring columns in a register.
//!
//! `v_mfma` (CDNA3 ISA, "Dense matrix multiplication"; AMD's matrix instruction calculator), with *h*
//! elements of A a lane:
//!
//! | fragment | element j | row or column | depth |
//! | --- | --- | --- | --- |
//! | A, B | j | lane mod m (n) | h·(lane / m) + j, and the block where that exceeds k |
//! | C, D | r | rows 4·G·(r / 4) + 4·(lane / n) + r mod 4, G = 64 / n; columns lane mod n | |
//!
//! With f64 accumulators the rows are G·r + lane / n.
//!
//! `v_mfma_*_f8f6f4` (CDNA4 ISA): a lane holds 32 elements of A and of B. Those of 4 bits are depths 32·(lane / m) + j; those
//! of 8 bits are two runs of 16, depths 16·L·(j / 16) + 16·(lane / m) + j mod 16 with L = 64 / m. A scale is a power of two of 8
//! bits, 2^(s − 127), NaN for 255: that of lane l is for row (column) l mod m and the 32 depths from 32·(l / m) on.
//!
//! `v_wmma` 16×16×16 (RDNA3 ISA: a lane holds a whole row of A or column of B, both halves of the wave the
//! same; D rows 2·r + lane / 16. RDNA4 ISA: depth 8·(lane / 16) + j; D rows 8·(lane / 16) + r).
//!
//! `v_wmma` of gfx1250, of which there is no manual, by the layouts of Triton 3.9: runs of R elements along the depth, eight of 8 and 16 bits
//! and two of 32, belong to the halves of the wave in turn: depth 2·R·(j / R) + R·(lane / 16) + j mod R; D as RDNA4's. With scales runs of 8
//! bits have 16 elements, those of 4 bits 32; byte b of the scales of lane l is for row (column) l mod 16 and the 32 depths from 32·b on, and
//! the instruction says which half of the wave has them.
//!
//! # Arithmetic
//!
//! All products of one instruction and the accumulator are summed in f64, in the order c, k = 0, 1, …, and
//! rounded once to the accumulator's format. The hardware's order and intermediate rounding are not
//! documented; its results are less precise. tf32 operands lose their 13 low bits. f64 products are fused
//! multiply-adds in the order of k. Integers are exact, modulo 2³² or clamped with `.satfinite`.

use crate::bytecode::{Elem, Mma, MmaLayout};
use crate::num;

/// Whether this form exists in the tables above.
pub fn supported(m: &Mma) -> bool {
    let lanes = match m.layout {
        MmaLayout::Ptx | MmaLayout::WmmaGfx11 | MmaLayout::WmmaGfx12 | MmaLayout::WmmaGfx1250 => 32,
        MmaLayout::Mfma { .. } | MmaLayout::MfmaNarrow => 64,
    };
    let (rows, cols, k) = m.shape;
    let words = |n: u32, e: Elem, word: u32| (n * e.bits()) as usize / (lanes * word) as usize;
    let known_cd = match (m.ab.0, m.cd) {
        (Elem::S8 | Elem::U8 | Elem::S4 | Elem::U4, cd) => cd == Elem::S32,
        (Elem::F64, cd) => cd == Elem::F64,
        (_, cd) => matches!(cd, Elem::F32 | Elem::F16),
    };
    known_cd
        && match m.layout {
            MmaLayout::Ptx => {
                let word = if m.ab.0 == Elem::F64 { 64 } else { 32 };
                let cd_word = if m.cd == Elem::F64 { 64 } else { 32 };
                cols == 8
                    && matches!(rows, 8 | 16)
                    && (k * m.ab.0.bits()).is_multiple_of(4 * word)
                    && m.a.len() == words(rows * k, m.ab.0, word)
                    && m.b.len() == words(cols * k, m.ab.1, word)
                    && m.c.len() == words(rows * cols, m.cd, cd_word)
                    && m.d.len() == m.c.len()
            }
            MmaLayout::Mfma { blocks } => {
                let four = m.cd == Elem::F64 && rows == 4;
                !four
                    && blocks > 0
                    && rows == cols
                    && m.cd != Elem::F16
                    && m.c.len() as u32 * 64 == rows * cols * blocks
                    && m.d.len() == m.c.len()
            }
            MmaLayout::MfmaNarrow => {
                let words = |e: Elem| (e.bits() as usize * NARROW_ELEMENTS) / 32;
                matches!(m.shape, (16, 16, 128) | (32, 32, 64))
                    && m.cd == Elem::F32
                    && m.a.len() == words(m.ab.0)
                    && m.b.len() == words(m.ab.1)
                    && m.c.len() as u32 * 64 == rows * cols
                    && m.d.len() == m.c.len()
                    && matches!(m.scales.len(), 0 | 2)
            }
            MmaLayout::WmmaGfx1250 => {
                let summands: &[u32] = match m.ab.0.bits() {
                    4 => &[128],
                    8 if !m.scales.is_empty() => &[128],
                    8 if m.cd == Elem::S32 => &[64],
                    8 => &[64, 128],
                    16 => &[32],
                    _ => &[4],
                };
                // Floats of 16 bits have a register each here, bytes come as words.
                let registers = |n: u32, e: Elem| words(n, e, if e.bits() == 16 { 16 } else { 32 });
                summands.contains(&k)
                    && (rows, cols) == (16, 16)
                    && m.a.len() == registers(rows * k, m.ab.0)
                    && m.b.len() == registers(cols * k, m.ab.1)
                    && m.cd != Elem::F16
                    && matches!(m.scales.len(), 0 | 2)
                    && [m.c.len(), m.d.len()] == [8, 8]
            }
            MmaLayout::WmmaGfx11 | MmaLayout::WmmaGfx12 => {
                m.cd != Elem::F16 && m.c.len() == 8 && m.d.len() == 8
            }
        }
}

/// Elements of A or B in a lane, of `v_mfma_*_f8f6f4`.
const NARROW_ELEMENTS: usize = 32;

/// Depths that one scale is for.
const SCALED: usize = 32;

/// The numbers of sign, two bits of exponent and one of mantissa, without sign (OCP Microscaling Formats, E2M1).
const E2M1: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// A scale (OCP Microscaling Formats, E8M0).
fn scale(code: u64) -> f64 {
    match code & 0xff {
        0xff => f64::NAN,
        exponent => 2f64.powi(exponent as i32 - 127),
    }
}

/// The value of an element as f64; integers too.
#[inline(always)]
pub fn value(e: Elem, code: u64) -> f64 {
    match e {
        Elem::F64 => f64::from_bits(code),
        Elem::F32 => f64::from(f32::from_bits(code as u32)),
        Elem::Tf32 => f64::from(num::tf32_truncate(code as u32)),
        Elem::F16 => f64::from(num::f16_to_f32(code as u16)),
        Elem::BF16 => f64::from(num::bf16_to_f32(code as u16)),
        Elem::E4M3 => num::value_of(code as u32 & 0xff, num::E4M3),
        Elem::E5M2 => num::value_of(code as u32 & 0xff, num::E5M2),
        Elem::E4M3Fnuz => num::value_of(code as u32 & 0xff, num::E4M3_FNUZ),
        Elem::E5M2Fnuz => num::value_of(code as u32 & 0xff, num::E5M2_FNUZ),
        Elem::E2M1 => {
            let size = E2M1[code as usize & 7];
            if code & 8 != 0 { -size } else { size }
        }
        Elem::S8 => f64::from(code as i8),
        Elem::U8 => f64::from(code as u8),
        Elem::S4 => f64::from(((code as i8) << 4) >> 4),
        Elem::U4 => f64::from(code as u8 & 15),
        Elem::S32 => f64::from(code as u32 as i32),
    }
}

/// A sum in f64 as an accumulator's bits.
#[inline(always)]
pub fn rounded(e: Elem, v: f64, saturate: bool) -> u64 {
    match e {
        Elem::F64 => v.to_bits(),
        Elem::F16 => u64::from(num::f64_to_f16(v)),
        // Sums of 8-bit products stay below 2^53: f64 holds them exactly.
        Elem::S32 if saturate => u64::from(v.clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i32 as u32),
        Elem::S32 => u64::from(v as i64 as u32),
        _ => u64::from((v as f32).to_bits()),
    }
}

/// Where an element of a fragment lies: (block, row or column, depth) for A and B.
type Place = (usize, usize, usize);

/// The place of element `j` of register `r` of A (`b` false) or B in lane `l`.
fn operand_place(m: &Mma, b: bool, l: usize, r: usize, j: usize, e: usize) -> Place {
    let k = m.shape.2 as usize;
    match m.layout {
        MmaLayout::Ptx => {
            let (g, t) = (l / 4, l % 4);
            if b || m.shape.0 == 8 {
                (0, g, e * t + j + 4 * e * r)
            } else {
                (0, g + 8 * (r % 2), e * t + j + 4 * e * (r / 2))
            }
        }
        MmaLayout::Mfma { .. } => {
            let size = (if b { m.shape.1 } else { m.shape.0 }) as usize;
            let words = if b { m.b.len() } else { m.a.len() };
            let per_lane = words * e;
            let depth = per_lane * (l / size) + r * e + j;
            (depth / k, l % size, depth % k)
        }
        MmaLayout::MfmaNarrow => {
            let size = (if b { m.shape.1 } else { m.shape.0 }) as usize;
            let (group, at) = (l / size, r * e + j);
            let bits = if b { m.ab.1.bits() } else { m.ab.0.bits() };
            let run = if bits == 8 { 16 } else { NARROW_ELEMENTS };
            (0, l % size, run * (64 / size) * (at / run) + run * group + at % run)
        }
        MmaLayout::WmmaGfx11 => (0, l % 16, r * e + j),
        MmaLayout::WmmaGfx12 => (0, l % 16, 8 * (l / 16) + r * e + j),
        MmaLayout::WmmaGfx1250 => {
            let run = match (if b { m.ab.1 } else { m.ab.0 }).bits() {
                32 => 2,
                4 => 32,
                8 if !m.scales.is_empty() => 16,
                _ => 8,
            };
            let at = r * e + j;
            (0, l % 16, 2 * run * (at / run) + run * (l / 16) + at % run)
        }
    }
}

/// (block, row, column) of element `i` of the accumulators in lane `l`.
fn result_place(m: &Mma, l: usize, i: usize) -> Place {
    let n = m.shape.1 as usize;
    match m.layout {
        MmaLayout::Ptx => {
            let row = if m.shape.0 == 8 { l / 4 } else { l / 4 + 8 * (i / 2) };
            (0, row, 2 * (l % 4) + i % 2)
        }
        MmaLayout::Mfma { .. } | MmaLayout::MfmaNarrow => {
            let groups = 64 / n;
            if m.cd == Elem::F64 {
                return (0, groups * i + l / n, l % n);
            }
            if m.shape.0 == 4 {
                return (l / n, i, l % n);
            }
            let row = 4 * groups * (i / 4) + 4 * (l / n) + i % 4;
            (row / m.shape.0 as usize, row % m.shape.0 as usize, l % n)
        }
        MmaLayout::WmmaGfx11 => (0, 2 * i + l / 16, l % 16),
        MmaLayout::WmmaGfx12 | MmaLayout::WmmaGfx1250 => (0, 8 * (l / 16) + i, l % 16),
    }
}

/// Where the elements of an instruction's fragments lie in the matrices that `multiply` makes of them: A by rows, B by depth,
/// results by rows, one block after the other. It takes longer to say than to multiply.
#[derive(Clone, Debug)]
pub struct Places {
    a: Fragment,
    b: Fragment,
    /// By lane, then by element.
    results: Box<[u32]>,
}

/// Places of the elements of A or B by lane, register and element, of which each register has so many.
#[derive(Clone, Debug)]
struct Fragment {
    places: Box<[u32]>,
    per_word: usize,
}

impl Places {
    fn new(m: &Mma, lanes: usize) -> Places {
        let (rows, cols) = (m.shape.0 as usize, m.shape.1 as usize);
        let elements = (0..lanes).flat_map(|l| (0..results(m)).map(move |i| (l, i)));
        let place = |(l, i)| {
            let (blk, r, c) = result_place(m, l, i);
            ((blk * rows + r) * cols + c) as u32
        };
        Places {
            a: Fragment::new(m, false, lanes),
            b: Fragment::new(m, true, lanes),
            results: elements.map(place).collect(),
        }
    }
}

impl Fragment {
    fn new(m: &Mma, is_b: bool, lanes: usize) -> Fragment {
        let (rows, cols, k) = (m.shape.0 as usize, m.shape.1 as usize, m.shape.2 as usize);
        let (words, size) = if is_b { (m.b.len(), cols) } else { (m.a.len(), rows) };
        let per_word = match m.layout {
            // Both halves of the wave hold the same elements.
            MmaLayout::WmmaGfx11 => 16 / words,
            _ => size * k * blocks(m) / (lanes * words),
        };
        let words = (0..lanes).flat_map(|l| (0..words).map(move |r| (l, r)));
        let elements = words.flat_map(|(l, r)| (0..per_word).map(move |j| (l, r, j)));
        let place = |(l, r, j)| {
            let (blk, i, d) = operand_place(m, is_b, l, r, j, per_word);
            (if is_b { (blk * k + d) * cols + i } else { (blk * rows + i) * k + d }) as u32
        };
        Fragment { places: elements.map(place).collect(), per_word }
    }
}

/// Independent matrices that one instruction multiplies.
fn blocks(m: &Mma) -> usize {
    if let MmaLayout::Mfma { blocks } = m.layout { blocks as usize } else { 1 }
}

/// Elements of the accumulators in a lane.
fn results(m: &Mma) -> usize {
    if m.cd == Elem::F16 { m.c.len() * 2 } else { m.c.len() }
}

/// Multiplies: `read(operand, register, lane)` gives the bits of a register of A (0), B (1), C (2) or of the scales (3);
/// the result is written through `write(register, lane, bits)`.
pub fn multiply(
    m: &Mma,
    lanes: usize,
    read: impl Fn(usize, usize, usize) -> u64,
    mut write: impl FnMut(usize, usize, u64),
) {
    let (rows, cols, k) = (m.shape.0 as usize, m.shape.1 as usize, m.shape.2 as usize);
    let blocks = blocks(m);
    let places = m.places.get_or_init(|| Places::new(m, lanes));
    // A by rows, B by depth, so that the innermost loop runs over columns.
    let mut a = vec![0.0; blocks * rows * k];
    let mut b = vec![0.0; blocks * k * cols];
    let fill = |operand: usize, e: Elem, registers: usize, fragment: &Fragment, out: &mut [f64]| {
        let words = (0..lanes).flat_map(|l| (0..registers).map(move |r| (l, r)));
        for ((l, r), places) in words.zip(fragment.places.chunks_exact(fragment.per_word.max(1))) {
            let mut word = read(operand, r, l);
            for &place in places {
                out[place as usize] = value(e, word);
                // An element of 64 bits is the only one.
                word = word.checked_shr(e.bits()).unwrap_or(0);
            }
        }
    };
    fill(0, m.ab.0, m.a.len(), &places.a, &mut a);
    fill(1, m.ab.1, m.b.len(), &places.b, &mut b);
    for (operand, byte) in m.scale_bytes.iter().enumerate().take(m.scales.len()) {
        let size = if operand == 0 { rows } else { cols };
        // The lane and the byte with the scale of a line and a block along the depth.
        let of = |line: usize, block: usize| match m.layout {
            MmaLayout::WmmaGfx1250 => (line + size * usize::from(*byte), block),
            _ => (line + size * block, usize::from(*byte)),
        };
        for (line, block) in (0..k / SCALED).flat_map(|block| (0..size).map(move |line| (line, block))) {
            let (l, byte) = of(line, block);
            let by = scale(read(3, operand, l) >> (8 * byte));
            let first = SCALED * block;
            for d in first..first + SCALED {
                let at = if operand == 0 { &mut a[line * k + d] } else { &mut b[d * cols + line] };
                *at *= by;
            }
        }
    }
    let packed = m.cd == Elem::F16;
    let count = results(m);
    let mut sums = vec![0.0; blocks * rows * cols];
    for (l, places) in places.results.chunks_exact(count).enumerate() {
        for (i, &place) in places.iter().enumerate() {
            let word = if packed { read(2, i / 2, l) >> (16 * (i % 2)) } else { read(2, i, l) };
            sums[place as usize] = value(m.cd, word);
        }
    }
    for blk in 0..blocks {
        product(
            &a[blk * rows * k..][..rows * k],
            &b[blk * k * cols..][..k * cols],
            &mut sums[blk * rows * cols..][..rows * cols],
            k,
            cols,
            m.cd == Elem::F64,
        );
    }
    for (l, places) in places.results.chunks_exact(count).enumerate() {
        let mut low = 0;
        for (i, &place) in places.iter().enumerate() {
            let bits = rounded(m.cd, sums[place as usize], m.saturate);
            if !packed {
                write(i, l, bits);
            } else if i % 2 == 0 {
                low = bits;
            } else {
                write(i / 2, l, low | bits << 16);
            }
        }
    }
}

/// sums += a · b, with a by rows, b by depth, sums by rows.
pub fn product(a: &[f64], b: &[f64], sums: &mut [f64], k: usize, cols: usize, fused: bool) {
    for (row, sum) in a.chunks_exact(k).zip(sums.chunks_exact_mut(cols)) {
        for (x, line) in row.iter().zip(b.chunks_exact(cols)) {
            if fused {
                for (s, y) in sum.iter_mut().zip(line) {
                    *s = x.mul_add(*y, *s);
                }
            } else {
                for (s, y) in sum.iter_mut().zip(line) {
                    *s += x * y;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytecode::Src;
    use std::collections::HashSet;
    use std::sync::OnceLock;

    fn form(
        layout: MmaLayout,
        shape: (u32, u32, u32),
        ab: Elem,
        cd: Elem,
        a: usize,
        b: usize,
        c: usize,
    ) -> Mma {
        let list = |n| vec![Src::reg(0); n].into();
        Mma {
            layout,
            shape,
            ab: (ab, ab),
            cd,
            d: vec![0; c].into(),
            a: list(a),
            b: list(b),
            c: list(c),
            saturate: false,
            scales: Box::new([]),
            scale_bytes: [0; 2],
            places: OnceLock::new(),
        }
    }

    fn forms() -> Vec<(Mma, usize, usize)> {
        let p = MmaLayout::Ptx;
        let x = |blocks| MmaLayout::Mfma { blocks };
        vec![
            (form(p, (16, 8, 16), Elem::F16, Elem::F32, 4, 2, 4), 32, 2),
            (form(p, (16, 8, 8), Elem::Tf32, Elem::F32, 4, 2, 4), 32, 1),
            (form(p, (16, 8, 32), Elem::S8, Elem::S32, 4, 2, 4), 32, 4),
            (form(p, (8, 8, 4), Elem::F64, Elem::F64, 1, 1, 2), 32, 1),
            (form(x(1), (32, 32, 8), Elem::F16, Elem::F32, 4, 4, 16), 64, 1),
            (form(x(1), (16, 16, 16), Elem::F16, Elem::F32, 4, 4, 4), 64, 1),
            (form(x(1), (32, 32, 16), Elem::S8, Elem::S32, 1, 1, 16), 64, 8),
            (form(x(1), (16, 16, 4), Elem::F64, Elem::F64, 1, 1, 4), 64, 1),
            (form(MmaLayout::MfmaNarrow, (16, 16, 128), Elem::E4M3, Elem::F32, 8, 8, 4), 64, 4),
            (form(MmaLayout::MfmaNarrow, (32, 32, 64), Elem::E2M1, Elem::F32, 4, 4, 16), 64, 8),
            (form(x(16), (4, 4, 4), Elem::F16, Elem::F32, 4, 4, 4), 64, 1),
            (form(MmaLayout::WmmaGfx1250, (16, 16, 4), Elem::F32, Elem::F32, 2, 2, 8), 32, 1),
            (form(MmaLayout::WmmaGfx1250, (16, 16, 32), Elem::F16, Elem::F32, 16, 16, 8), 32, 1),
            (form(MmaLayout::WmmaGfx1250, (16, 16, 64), Elem::S8, Elem::S32, 8, 8, 8), 32, 4),
            (form(MmaLayout::WmmaGfx1250, (16, 16, 128), Elem::E4M3, Elem::F32, 16, 16, 8), 32, 4),
        ]
    }

    #[test]
    fn fragments_cover_each_matrix_once() {
        for (m, lanes, e) in forms() {
            assert!(supported(&m), "{m:?}");
            let (rows, cols, k) = (m.shape.0 as usize, m.shape.1 as usize, m.shape.2 as usize);
            for (b, words, size) in [(false, m.a.len(), rows), (true, m.b.len(), cols)] {
                let mut seen = HashSet::new();
                for (l, r, j) in
                    (0..lanes).flat_map(|l| (0..words).flat_map(move |r| (0..e).map(move |j| (l, r, j))))
                {
                    let (blk, i, d) = operand_place(&m, b, l, r, j, e);
                    assert!(i < size && d < k, "{m:?} {b} {l} {r} {j}");
                    assert!(seen.insert((blk, i, d)), "{m:?} {b} {l} {r} {j}");
                }
            }
            let places: HashSet<Place> = (0..lanes)
                .flat_map(|l| (0..m.c.len()).map(move |i| (l, i)))
                .map(|(l, i)| result_place(&m, l, i))
                .collect();
            assert_eq!(places.len(), lanes * m.c.len());
            assert!(places.iter().all(|(_, r, c)| *r < rows && *c < cols));
        }
    }

    /// Scales are those of rows, columns and 32 depths each; 255 is no number.
    #[test]
    fn scales_are_for_blocks_along_the_depth() {
        let mut m = form(MmaLayout::MfmaNarrow, (16, 16, 128), Elem::E2M1, Elem::F32, 4, 4, 4);
        m.scales = vec![Src::reg(0); 2].into();
        m.scale_bytes = [1, 0];
        assert!(supported(&m));
        // All elements are one; the scales of A are 2^(lane / 16) in row 0, one elsewhere, NaN for row 5; those of B a half.
        let read = |operand: usize, register: usize, lane: usize| match (operand, register) {
            (0 | 1, _) => 0x2222_2222,
            (2, _) => 0,
            (_, 0) if lane.is_multiple_of(16) => (127 + lane as u64 / 16) << 8,
            (_, 0) if lane == 5 => 0xff00,
            (_, 0) => 127 << 8,
            _ => 126,
        };
        let mut d = vec![[0.0f32; 4]; 64];
        multiply(&m, 64, read, |r, l, bits| d[l][r] = f32::from_bits(bits as u32));
        // Row 0 of column 3 is in lane 3, row 5 in lane 19, row 1 in lane 3.
        assert_eq!(d[3][0], 32.0 * (1.0 + 2.0 + 4.0 + 8.0) / 2.0);
        assert_eq!(d[3][1], 64.0);
        assert!(d[19][1].is_nan() && !d[19][2].is_nan());
    }

    /// On gfx1250 each byte of a register has the scale of a block, and either half of the wave may have the register.
    #[test]
    fn scales_are_bytes_of_either_half() {
        let mut m = form(MmaLayout::WmmaGfx1250, (16, 16, 128), Elem::E2M1, Elem::F32, 8, 8, 8);
        m.scales = vec![Src::reg(0); 2].into();
        m.scale_bytes = [1, 0];
        assert!(supported(&m));
        // All elements are one; the scales of A are 1, 2, 4 and 8 in row 3, those of B a half, and no numbers in the other half.
        let ones = 0x7f7f_7f7f;
        let read = |operand: usize, register: usize, lane: usize| match (operand, register, lane) {
            (0 | 1, ..) => 0x2222_2222,
            (2, ..) => 0,
            (_, 0, 19) => 0x8281_807f,
            (_, 0, 16..) => ones,
            (_, 1, ..16) => 0x7e7e_7e7e,
            _ => 0xffff_ffff,
        };
        let mut d = vec![[0.0f32; 8]; 32];
        multiply(&m, 32, read, |r, l, bits| d[l][r] = f32::from_bits(bits as u32));
        // Rows 0 to 7 of column 5 are in lane 5, the others in lane 21.
        assert_eq!(d[5][3], 32.0 * (1.0 + 2.0 + 4.0 + 8.0) / 2.0);
        assert_eq!([d[5][2], d[21][3]], [64.0; 2]);
    }

    #[test]
    fn places_as_the_manuals_print_them() {
        let f = forms();
        // PTX ISA, mma.m16n8k16 with f16: a5 of lane 6 is row 6/4 + 8·... (r = 2, j = 1): row 1, column 13.
        assert_eq!(operand_place(&f[0].0, false, 6, 2, 1, 2), (0, 1, 13));
        assert_eq!(operand_place(&f[0].0, true, 6, 1, 0, 2), (0, 1, 12));
        assert_eq!(result_place(&f[0].0, 6, 3), (0, 9, 5));
        // CDNA3, v_mfma_f32_32x32x8_f16: lane 40, element 2 of A is row 8, k 6; D register 5 is row 8 + 4 + 1.
        assert_eq!(operand_place(&f[4].0, false, 40, 2, 0, 1), (0, 8, 6));
        assert_eq!(result_place(&f[4].0, 40, 5), (0, 13, 8));
    }

    #[test]
    fn one_instruction_multiplies_two_matrices() {
        let (m, lanes, _) = &forms()[0];
        let a_at = |i: usize, d: usize| (i as f64 - 7.0) / 4.0 + d as f64;
        let b_at = |d: usize, j: usize| j as f64 - d as f64 / 2.0;
        let half = |v: f64| u64::from(num::f64_to_f16(v));
        let read = |op: usize, r: usize, l: usize| match op {
            2 => 0,
            _ => (0..2).fold(0, |w, j| {
                let (_, i, d) = operand_place(m, op == 1, l, r, j, 2);
                w | half(if op == 0 { a_at(i, d) } else { b_at(d, i) }) << (16 * j)
            }),
        };
        let mut got = [[0.0f32; 8]; 16];
        multiply(m, *lanes, read, |i, l, bits| {
            let (_, r, c) = result_place(m, l, i);
            got[r][c] = f32::from_bits(bits as u32);
        });
        for (i, row) in got.iter().enumerate() {
            for (j, v) in row.iter().enumerate() {
                let want: f64 = (0..16).map(|d| a_at(i, d) * b_at(d, j)).sum();
                assert_eq!(f64::from(*v), want, "{i} {j}");
            }
        }
    }
}
