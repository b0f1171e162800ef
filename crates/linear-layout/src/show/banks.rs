//! Which banks of shared memory the lanes of a warp touch in one access.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::Threads;
use crate::target::TargetDesc;

use super::pair::Side;

/// The first access of warp 0 of block 0.
pub struct BankMap {
    pub banks: u64,
    /// The groups of lanes that are served together, one after the other.
    pub phases: Vec<Phase>,
}

/// Lanes that are served together.
pub struct Phase {
    /// One line of banks each; more than one where banks conflict.
    pub wavefronts: Vec<Wavefront>,
}

/// By bank, what happens there.
pub type Wavefront = BTreeMap<u64, Touch>;

/// One word of one bank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The lanes that share it, ascending.
    pub lanes: Vec<u64>,
    /// Whether other lanes of the phase want another word of this bank.
    pub conflict: bool,
}

impl BankMap {
    pub fn new(side: Side<'_>, target: &TargetDesc) -> BankMap {
        let plan = side.access;
        let served = plan.instruction.served(plan.direction, target);
        let banks = u64::from(served.service.banks);
        // Lanes that belong to another pass wait.
        let takes_part = |lane: &u64| {
            let thread = Threads { lane: *lane, ..Threads::default() };
            plan.inactive.is_clear(thread) && plan.tile.of(thread) == 0
        };
        let active = |lanes: Vec<u64>| lanes.into_iter().filter(takes_part).collect::<Vec<u64>>();
        let phases: Vec<Vec<u64>> = served.lanes_by_phase().into_iter().map(active).collect();
        let word = u128::from(target.bank_width);
        let words = |lane: u64| {
            let thread = Threads { lane, ..Threads::default() };
            let (offset, home) = plan.accesses.first().map_or((0, 0), |a| (a.offset, a.block));
            let place = side.padding.iter().fold(0u128, |sum, &(interval, padding)| {
                let full = (offset ^ plan.address.of(thread)).checked_div(interval).unwrap_or(0);
                sum + u128::from(full) * u128::from(padding)
            });
            let place = place + u128::from(offset ^ plan.address.of(thread));
            let first = place * u128::from(plan.storage_bits) / 8;
            let last = first + u128::from(served.bytes.max(1)) - 1;
            let home = home ^ plan.block.as_ref().map_or(0, |bases| bases.of(thread));
            (first / word..=last / word).map(move |word| (home, word))
        };
        let phases = phases.iter().filter(|lanes| !lanes.is_empty()).map(|lanes| {
            let mut by_bank: BTreeMap<u64, BTreeMap<(u64, u128), BTreeSet<u64>>> = BTreeMap::new();
            for &lane in lanes {
                for place in words(lane) {
                    let bank = (place.1 % u128::from(banks)) as u64;
                    by_bank.entry(bank).or_default().entry(place).or_default().insert(lane);
                }
            }
            let count = by_bank.values().map(BTreeMap::len).max().unwrap_or(0);
            let mut wavefronts = vec![Wavefront::new(); count];
            for (bank, words) in by_bank {
                let conflict = words.len() > 1;
                for (wavefront, lanes) in wavefronts.iter_mut().zip(words.into_values()) {
                    wavefront.insert(bank, Touch { lanes: lanes.into_iter().collect(), conflict });
                }
            }
            Phase { wavefronts }
        });
        BankMap { banks, phases: phases.collect() }
    }

    /// Wavefronts of the access.
    pub fn wavefronts(&self) -> usize {
        self.phases.iter().map(|phase| phase.wavefronts.len()).sum()
    }

    /// What there is to say about conflicts.
    pub fn verdict(&self) -> String {
        let (wavefronts, phases) = (self.wavefronts(), self.phases.len());
        let conflicts = match wavefronts - phases {
            0 => "no conflicts".to_owned(),
            n => format!("{n} more than without conflicts"),
        };
        format!("{wavefronts} wavefront{}, {conflicts}", if wavefronts == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::pair::{Pair, Way};
    use crate::show::request::{Request, Subject};

    fn pair(from: &str, to: &str, dtype: &str, target: &str) -> Pair {
        let request = Request {
            layout: from.into(),
            shape: vec![64, 64],
            dtype: dtype.into(),
            to: Some(to.into()),
            target: target.into(),
            num_warps: Some(4),
        };
        let destination = Subject::destination(&request).unwrap().unwrap();
        Pair::new(Subject::new(&request).unwrap(), destination).unwrap()
    }

    /// Every access of these plans is alike, so that the first tells what all take.
    #[test]
    fn the_map_agrees_with_the_plan() {
        let rows = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>";
        let columns = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [2, 2], order = [0, 1]}>";
        let mma = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>";
        let plain = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";
        let swizzled = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
        let padded = "#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>";
        let mut conflicts = 0;
        for (from, to) in [
            (rows, mma),
            (mma, columns),
            (columns, rows),
            (rows, plain),
            (columns, plain),
            (plain, mma),
            (swizzled, mma),
            (padded, mma),
            (columns, swizzled),
            (rows, padded),
        ] {
            for dtype in ["i8", "f16", "f32", "f64"] {
                for target in ["cuda:80", "cuda:90"] {
                    let pair = pair(from, to, dtype, target);
                    for side in pair.sides() {
                        let map = BankMap::new(side, &pair.from.target);
                        let what = format!("{from} {to} {dtype} {target} {}", side.name());
                        assert_eq!(
                            map.wavefronts() as u64 * side.access.count,
                            side.access.wavefronts,
                            "{what}"
                        );
                        assert_eq!(
                            map.phases.len() as u64 * side.access.count,
                            side.access.minimum,
                            "{what}"
                        );
                        conflicts += map.wavefronts() - map.phases.len();
                        let touches =
                            || map.phases.iter().flat_map(|p| &p.wavefronts).flat_map(|w| w.values());
                        assert_eq!(
                            touches().any(|t| t.conflict),
                            map.wavefronts() > map.phases.len(),
                            "{what}"
                        );
                    }
                    let accessed = matches!(pair.way, Way::Access(_));
                    assert!(pair.sides().len() == if accessed { 1 } else { 2 } || pair.kind() == "shuffle");
                }
            }
        }
        assert!(conflicts > 0);
    }
}
