//! The one place that says how shared memory serves an instruction: in phases of lanes, each of which takes a
//! *wavefront* for every word that it wants of the bank that it wants most words of.
//!
//! Checkers have a rule of their own.

use crate::f2::{self, Vectors};
use crate::plan::MemoryInstruction;
use crate::target::{Direction, Service, TargetDesc};

/// How shared memory serves one execution of an instruction by a warp.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Served {
    /// Bytes at each address.
    pub bytes: u32,
    /// Lanes that give an address: the lowest ones.
    pub lanes: u32,
    /// Which of them are served together, a basis, and by how many banks.
    pub service: Service,
    /// Bytes of one bank in one line.
    pub bank_width: u32,
}

impl MemoryInstruction {
    /// How shared memory serves the instruction.
    pub fn served(self, direction: Direction, target: &TargetDesc) -> Served {
        let (bytes, lanes, service) = match self {
            MemoryInstruction::Vector { bits } => {
                (bits / 8, target.lanes, target.service(bits / 8, direction, false))
            }
            // Eight rows of 16 bytes at a time, from all ordinary banks.
            MemoryInstruction::Matrix { count: words, .. } | MemoryInstruction::MatrixBytes { words } => {
                (16, 8 * words, Service { banks: target.banks, lanes: [1, 2, 4].into_iter().collect() })
            }
            MemoryInstruction::TransposedRead { .. } => {
                let bytes = self.bits_per_lane() / 8;
                (bytes, target.lanes, target.service(bytes, direction, true))
            }
        };
        Served { bytes, lanes, service, bank_width: target.bank_width }
    }
}

impl Served {
    /// A vector of these bytes for each lane.
    pub(crate) fn vector(bytes: u32, direction: Direction, target: &TargetDesc) -> Served {
        MemoryInstruction::Vector { bits: 8 * bytes }.served(direction, target)
    }

    /// Phases of a full warp: the least wavefronts that the instruction can take.
    pub fn phases(&self) -> u64 {
        u64::from(self.lanes) >> self.service.lanes.len()
    }

    /// Bytes of all banks side by side.
    pub fn line_bytes(&self) -> u32 {
        self.service.banks * self.bank_width
    }

    /// How many wavefronts a phase takes whose lanes have these offsets, a basis, in elements.
    ///
    /// The addresses, in words, form a space; its image in the banks is smaller by the conflicts: every bank
    /// that is hit is hit by `2^(rank of words − rank of banks)` different words (paper, Lemma 9.4, applied to
    /// the lanes of one phase and to words instead of elements). Lanes with more than one word hit aligned
    /// groups of banks, of which the lowest one stands for all.
    pub(crate) fn conflict_degree(&self, rows: &[u64], storage_bits: u32) -> u64 {
        // Accesses are aligned: lanes differ by whole ones.
        let word = |c: u64| c * u64::from(storage_bits) / u64::from(8 * self.bank_width);
        let words: Vectors = rows.iter().map(|&c| word(c)).collect();
        let banks: Vectors = words.iter().map(|w| w & u64::from(self.service.banks - 1)).collect();
        1 << (f2::rank(&words) - f2::rank(&banks))
    }

    /// The lanes of each phase.
    pub fn lanes_by_phase(&self) -> Vec<Vec<u64>> {
        let together = &self.service.lanes;
        let units: Vectors = (0..self.lanes.max(1).ilog2()).map(|i| 1 << i).collect();
        let between = f2::complement_within(&f2::intersection(together, &units), &units);
        let phase = |p: u64| {
            let lanes = (0..1u64 << together.len()).map(|x| f2::mul(&between, p) ^ f2::mul(together, x));
            lanes.filter(|&lane| lane < self.lanes.into()).collect()
        };
        (0..1u64 << between.len()).map(phase).collect()
    }

    /// The words that an access touches from a byte on.
    pub fn words(&self, byte: u64) -> impl Iterator<Item = u64> + use<> {
        let width = u64::from(self.bank_width);
        byte / width..=(byte + u64::from(self.bytes.max(1)) - 1) / width
    }

    /// Wavefronts of lanes at any addresses, in bytes; `None` are idle.
    pub(crate) fn wavefronts(&self, byte: impl Fn(u64) -> Option<u64>) -> u64 {
        self.wavefronts_of(&self.lanes_by_phase(), byte)
    }

    /// The same for those who ask about many accesses; `phases` are those of `lanes_by_phase`.
    pub(crate) fn wavefronts_of(&self, phases: &[Vec<u64>], byte: impl Fn(u64) -> Option<u64>) -> u64 {
        let banks = u64::from(self.service.banks.max(1));
        let (mut words, mut wanted) = (Vec::new(), vec![0; banks as usize]);
        let mut phase = |lanes: &Vec<u64>| {
            words.clear();
            for byte in lanes.iter().filter_map(|lane| byte(*lane)) {
                words.extend(self.words(byte));
            }
            words.sort_unstable();
            words.dedup();
            wanted.fill(0);
            words.iter().for_each(|word| wanted[(word % banks) as usize] += 1);
            wanted.iter().copied().max().unwrap_or(0)
        };
        phases.iter().map(&mut phase).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_divide_the_lanes() {
        for target in TargetDesc::all() {
            let vectors = [8, 16, 32, 64, 128].map(|bits| MemoryInstruction::Vector { bits });
            let matrices = [1, 2, 4].map(|count| MemoryInstruction::Matrix { count, transposed: false });
            let reads = target.primitives.transposed_reads.into_iter();
            let transposed = reads.flat_map(|form| {
                [8, 16].map(|unit_bits| MemoryInstruction::TransposedRead { form, unit_bits })
            });
            for instruction in vectors.into_iter().chain(matrices).chain(transposed) {
                for direction in [Direction::Load, Direction::Store] {
                    let served = instruction.served(direction, &target);
                    let phases = served.lanes_by_phase();
                    assert_eq!(phases.len() as u64, served.phases(), "{target} {instruction:?}");
                    let mut lanes = phases.concat();
                    lanes.sort_unstable();
                    assert!(lanes.into_iter().eq(0..served.lanes.into()), "{target} {instruction:?}");
                }
            }
        }
    }

    #[test]
    fn counting_and_rank_agree() {
        let target = TargetDesc::parse("cuda:90").unwrap();
        for (bits, stride) in [(32, 1), (32, 2), (32, 32), (64, 4), (128, 4), (128, 32), (16, 1), (8, 128)] {
            let served = MemoryInstruction::Vector { bits }.served(Direction::Load, &target);
            let rows: Vec<u64> = served.service.lanes.iter().map(|lane| lane * stride).collect();
            let counted = served.wavefronts(|lane| Some(lane * stride * u64::from(bits / 8)));
            assert_eq!(counted, served.phases() * served.conflict_degree(&rows, bits), "{bits} {stride}");
        }
    }
}
