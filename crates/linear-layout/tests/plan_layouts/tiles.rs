//! Layouts that instructions of matrices fit, and those that differ from them in one place.

#![allow(dead_code)]

use linear_layout::plan::{PlanResult, SharedAccessPlan};
use linear_layout::target::{Direction, TargetDesc};
use linear_layout::{Dim, LinearLayout};

/// Of a warp, in memory where offsets are elements in order.
pub struct Tile {
    pub target: &'static str,
    pub direction: Direction,
    pub elem_bits: u32,
    registers: &'static [u64],
    lanes: &'static [u64],
}

/// What the manuals draw: rows of 16 bytes for `ldmatrix` and `stmatrix`, 8 bytes a lane for `ds_read_tr`; and what Triton 3.9 reads by
/// gfx1250's `ds_load_tr`, 16 bytes a lane, or 8. Two registers
/// more choose among the matrices.
pub const TILES: &[Tile] = &[
    tile("cuda:90", Direction::Load, 16, &[1, 64, 128], &[2, 4, 8, 16, 32]),
    tile("cuda:90", Direction::Store, 16, &[1, 64, 128], &[2, 4, 8, 16, 32]),
    tile("cuda:90", Direction::Load, 16, &[8, 64, 128], &[16, 32, 1, 2, 4]),
    tile("cuda:90", Direction::Store, 16, &[8, 64, 128], &[16, 32, 1, 2, 4]),
    tile("cuda:100", Direction::Load, 8, &[8, 64, 128, 256], &[16, 32, 1, 2, 4]),
    tile("cuda:100", Direction::Store, 8, &[8, 64, 128], &[16, 32, 1, 2, 4]),
    tile("hip:gfx950", Direction::Load, 16, &[4, 8, 256], &[1, 2, 16, 32, 64, 128]),
    tile("hip:gfx950", Direction::Load, 8, &[8, 16, 32, 512], &[1, 2, 4, 64, 128, 256]),
    tile("hip:gfx1250", Direction::Load, 16, &[8, 16, 32, 256], &[1, 2, 4, 64, 128]),
    tile("hip:gfx1250", Direction::Load, 8, &[8, 16, 64, 256], &[1, 2, 4, 32, 128]),
];

const fn tile(
    target: &'static str,
    direction: Direction,
    elem_bits: u32,
    registers: &'static [u64],
    lanes: &'static [u64],
) -> Tile {
    Tile { target, direction, elem_bits, registers, lanes }
}

/// The layout of the columns, over as many elements as they reach.
fn layout(registers: usize, lanes: usize, columns: &[u64]) -> LinearLayout {
    let ins = [
        (Dim::REGISTER, registers as u32),
        (Dim::LANE, lanes as u32),
        (Dim::WARP, (columns.len() - registers - lanes) as u32),
    ];
    let bits = columns.iter().fold(0, |all, c| all | c).count_ones();
    LinearLayout::from_columns(&ins, &[(Dim::out(0), bits)], columns.iter().copied()).unwrap()
}

/// The columns without the element bit that is the column `at`.
fn without(columns: &[u64], at: usize) -> Vec<u64> {
    let low = columns[at] - 1;
    let rest = columns.iter().enumerate().filter(|(i, _)| *i != at);
    rest.map(|(_, c)| c & low | c >> 1 & !low).collect()
}

impl Tile {
    /// The layout itself, with a warp's bit; those without one of its registers; and of all these those with two columns
    /// exchanged, or one added to another.
    pub fn variations(&self) -> Vec<LinearLayout> {
        let (registers, lanes) = (self.registers.len(), self.lanes.len());
        let top = 1 << (registers + lanes);
        let whole: Vec<u64> = self.registers.iter().chain(self.lanes).copied().chain([top]).collect();
        let fewer = (0..registers).map(|at| (registers - 1, without(&whole, at)));
        let mut all = Vec::new();
        for (registers, columns) in std::iter::once((registers, whole.clone())).chain(fewer) {
            all.push(layout(registers, lanes, &columns));
            for (i, j) in (0..columns.len()).flat_map(|i| (0..columns.len()).map(move |j| (i, j))) {
                let mut changed = columns.clone();
                if i < j {
                    changed.swap(i, j);
                    all.push(layout(registers, lanes, &changed));
                    changed.swap(i, j);
                }
                if i != j {
                    changed[i] ^= columns[j];
                    all.push(layout(registers, lanes, &changed));
                }
            }
        }
        all
    }

    /// Memory of `bits` offset bits whose offsets are elements in order.
    pub fn memory(bits: u32) -> LinearLayout {
        LinearLayout::identity_1d(1 << bits, Dim::OFFSET, Dim::out(0)).unwrap()
    }

    /// How a variation is accessed.
    pub fn plan(&self, layout: &LinearLayout, target: &TargetDesc) -> PlanResult<SharedAccessPlan> {
        let memory = Self::memory(layout.total_out_bits());
        SharedAccessPlan::new(layout, &memory, self.elem_bits, self.direction, target)
    }
}
