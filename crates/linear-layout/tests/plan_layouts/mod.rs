//! Random layouts for the tests of plans.

#![allow(dead_code)]

use linear_layout::target::TargetDesc;
use linear_layout::{Dim, LinearLayout, f2};
use proptest::prelude::*;

#[path = "../../fuzz/src/uneven.rs"]
mod uneven;
pub use uneven::uneven;

/// Any known target, half of them with other costs.
pub fn any_target() -> impl Strategy<Value = TargetDesc> {
    (0..TargetDesc::NAMES.len(), any::<bool>()).prop_map(|(i, other)| {
        let target = TargetDesc::parse(TargetDesc::NAMES[i]).unwrap();
        if other { uneven(target) } else { target }
    })
}

/// Two layouts of one tensor. `general`: any surjective matrices; otherwise distributed ones (Definition
/// 4.10), that is unit vectors and zeros.
pub fn pair(general: bool) -> impl Strategy<Value = (LinearLayout, LinearLayout)> {
    (0u32..12, 0usize..3, 0usize..2)
        .prop_flat_map(move |(bits, warps, blocks)| {
            let one = columns(bits, warps, blocks, general);
            let two = columns(bits, warps, blocks, general);
            (Just((bits, warps, blocks)), one, two)
        })
        .prop_map(|((bits, warps, blocks), a, b)| {
            (layout(bits, warps, blocks, &a), layout(bits, warps, blocks, &b))
        })
}

/// Columns for 5 lane bits, the warps and blocks, and as many registers as it takes to be surjective.
fn columns(bits: u32, warps: usize, blocks: usize, general: bool) -> impl Strategy<Value = Vec<u64>> {
    let threads = 5 + warps + blocks;
    let n = threads.max(bits as usize) + 2;
    let order: Vec<u64> = (0..n as u32).map(|i| if i < bits { 1u64 << i } else { 0 }).collect();
    let noise = proptest::collection::vec(any::<u64>(), n);
    (Just(order).prop_shuffle(), noise, 0usize..4, any::<bool>()).prop_map(move |(mut c, noise, mix, any)| {
        if general && any {
            // Row operations keep the rank: add columns to others.
            for (i, &x) in noise.iter().enumerate().take(mix * n / 3) {
                let j = (x % n as u64) as usize;
                if i != j {
                    c[i] ^= c[j];
                }
            }
        }
        debug_assert_eq!(f2::rank(&c), bits);
        c
    })
}

fn layout(bits: u32, warps: usize, blocks: usize, columns: &[u64]) -> LinearLayout {
    let registers = columns.len() - 5 - warps - blocks;
    let ins = [
        (Dim::REGISTER, registers as u32),
        (Dim::LANE, 5),
        (Dim::WARP, warps as u32),
        (Dim::BLOCK, blocks as u32),
    ];
    let low = bits / 2;
    let outs = [(Dim::out(0), low), (Dim::out(1), bits - low)];
    LinearLayout::from_columns(&ins, &outs, columns.iter().copied()).unwrap()
}
