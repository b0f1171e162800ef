//! Plans random conversions and executes every plan with the checker.
//!
//! `fuzz_conversions [COUNT [SEED]]`: prints how many plans of each kind there were, and stops with an
//! error at the first plan that is wrong.

use std::collections::BTreeMap;
use std::process::ExitCode;

use linear_layout::checker::check_conversion;
use linear_layout::plan::{ConversionPlan, PlanError};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, LinearLayout};

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// A surjective layout of `bits` element bits. Mostly unit vectors and zeros, nearly in order, as real
/// encodings have them; sometimes shuffled, sometimes mixed by row operations.
fn layout(random: &mut Random, bits: u64, lanes: u64, warps: u64, blocks: u64) -> LinearLayout {
    let threads = lanes + warps + blocks;
    let spare = random.below(3);
    let n = (threads + random.below(3)).max(bits) + spare;
    let mut columns: Vec<u64> = (0..n).map(|i| if i < bits { 1 << i } else { 0 }).collect();
    let swaps = match random.below(4) {
        0 => 2,
        1 => n / 2,
        _ => 2 * n,
    };
    for _ in 0..swaps {
        columns.swap(random.below(n) as usize, random.below(n) as usize);
    }
    if random.below(4) == 0 {
        for _ in 0..random.below(n) {
            let (i, j) = (random.below(n) as usize, random.below(n) as usize);
            if i != j {
                columns[i] ^= columns[j];
            }
        }
    }
    let ins = [
        (Dim::REGISTER, (n - threads) as u32),
        (Dim::LANE, lanes as u32),
        (Dim::WARP, warps as u32),
        (Dim::BLOCK, blocks as u32),
    ];
    let low = (bits / 2) as u32;
    let outs = [(Dim::out(0), low), (Dim::out(1), bits as u32 - low)];
    LinearLayout::from_columns(&ins, &outs, columns).expect("as many columns as bits")
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u64>());
    let count = args.next().and_then(Result::ok).unwrap_or(10_000);
    let seed = args.next().and_then(Result::ok).unwrap_or(1);
    let targets: Vec<TargetDesc> = TargetDesc::all().collect();
    let mut random = Random(seed);
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let (mut conflicts, mut over, mut distributed) = (0u64, 0u64, 0u64);
    for i in 0..count {
        let target = &targets[random.below(targets.len() as u64) as usize];
        let (bits, warps, blocks) = (random.below(12), random.below(4), random.below(8) / 6);
        let lanes = u64::from(target.lane_bits());
        let a = layout(&mut random, bits, lanes, warps, blocks);
        let b = layout(&mut random, bits, lanes, warps, blocks);
        let width = [4, 8, 16, 32, 64, 6][random.below(6) as usize];
        let budget = if random.below(5) == 0 { 1 << (4 + random.below(8)) } else { target.shared_bytes };
        let plan = match random.below(4) {
            0 => ConversionPlan::through_shared(&a, &b, width, target, budget),
            1 => match ConversionPlan::through_shuffles(&a, &b, width, target) {
                Ok(Some(plan)) => Ok(plan),
                Ok(None) => ConversionPlan::with_budget(&a, &b, width, target, budget),
                Err(error) => Err(error),
            },
            _ => ConversionPlan::with_budget(&a, &b, width, target, budget),
        };
        let outcome = match plan {
            Ok(plan) => match check_conversion(&plan, &a, &b, target) {
                Ok(report) => {
                    conflicts += report.conflicts();
                    let extra = u64::from(plan.cost.wavefronts > plan.cost.minimum_wavefronts);
                    over += extra;
                    distributed += extra * u64::from(a.is_distributed() && b.is_distributed());
                    let tiles = matches!(&plan.conversion,
                        linear_layout::plan::Conversion::SharedMemory(p) | linear_layout::plan::Conversion::Cluster(p) if p.tiles > 1);
                    *kinds.entry(plan.kind().to_owned()).or_default() += 1;
                    for access in plan.instructions() {
                        *kinds.entry(format!("  {access}")).or_default() += 1;
                    }
                    if tiles {
                        *kinds.entry("  in several passes".to_owned()).or_default() += 1;
                    }
                    Ok(())
                }
                Err(error) => Err(error.to_string()),
            },
            Err(PlanError::SharedBudget { needed, budget }) if needed > budget => {
                *kinds.entry("over budget".to_owned()).or_default() += 1;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = outcome {
            eprintln!(
                "pair {i} of seed {seed}: {error}\nfrom {a}\nto   {b}\n{width} bits on {target}, {budget} bytes"
            );
            return ExitCode::FAILURE;
        }
    }
    println!("{count} pairs of seed {seed}: no errors");
    for (kind, n) in &kinds {
        println!("{n:>8} {kind}");
    }
    println!("{over} plans, {distributed} of them between distributed layouts, take more wavefronts than");
    println!("their instructions need, {conflicts} in all, where that is still the cheapest way found");
    ExitCode::SUCCESS
}
