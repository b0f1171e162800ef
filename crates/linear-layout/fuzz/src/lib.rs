//! Layouts, widths and targets out of the fuzzer's bytes.
//!
//! `cargo +nightly fuzz run conversion` from the folder above; every target pits a planner against its
//! checker and fails on the first plan that is wrong.

use arbitrary::{Arbitrary, Result, Unstructured};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, LinearLayout};

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

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Case> {
        let name = TargetDesc::NAMES[u.int_in_range(0..=TargetDesc::NAMES.len() - 1)?];
        let target = TargetDesc::parse(name).map_err(|_| arbitrary::Error::IncorrectFormat)?;
        let shape = Shape {
            bits: u.int_in_range(0..=10)?,
            lanes: target.lane_bits() as usize,
            warps: u.int_in_range(0..=3)?,
            blocks: u.int_in_range(0..=1)?,
        };
        let (a, b) = (shape.layout(u)?, shape.layout(u)?);
        let elem_bits = u.int_in_range(4..=64)?;
        let budget = if u.arbitrary()? { target.shared_bytes } else { 1 << u.int_in_range(0..=14)? };
        Ok(Case { a, b, elem_bits, budget, target })
    }
}

struct Shape {
    bits: usize,
    lanes: usize,
    warps: usize,
    blocks: usize,
}

impl Shape {
    /// Unit vectors and zeros in any order, mixed by row operations that keep every element reached.
    fn layout(&self, u: &mut Unstructured<'_>) -> Result<LinearLayout> {
        let threads = self.lanes + self.warps + self.blocks;
        let n = threads.max(self.bits) + u.int_in_range(0..=2)?;
        let mut columns: Vec<u64> = (0..n).map(|i| if i < self.bits { 1 << i } else { 0 }).collect();
        for i in (1..n).rev() {
            columns.swap(i, u.int_in_range(0..=i)?);
        }
        for _ in 0..u.int_in_range(0..=4)? {
            let (i, j) = (u.int_in_range(0..=n - 1)?, u.int_in_range(0..=n - 1)?);
            if i != j {
                columns[i] ^= columns[j];
            }
        }
        let ins = [
            (Dim::REGISTER, (n - threads) as u32),
            (Dim::LANE, self.lanes as u32),
            (Dim::WARP, self.warps as u32),
            (Dim::BLOCK, self.blocks as u32),
        ];
        let low = self.bits / 2;
        let outs = [(Dim::out(0), low as u32), (Dim::out(1), (self.bits - low) as u32)];
        LinearLayout::from_columns(&ins, &outs, columns).map_err(|_| arbitrary::Error::IncorrectFormat)
    }
}
