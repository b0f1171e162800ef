//! The part of a scan that crosses warps.
//!
//! Before it every element holds the combination of its aligned block of `2^first` up to itself. The last
//! element of a block holds its total. All totals are stored at once; after one barrier every thread loads
//! those of its lines, combines them one after the other, and each of its elements with the combination of
//! the totals before its own block.

use std::fmt;
use std::ops::Range;

use crate::f2::{Echelon, low_mask};
use crate::plan::ThreadMasks;
use crate::plan::access::ThreadBases;
use crate::plan::convert::Cost;
use crate::plan::display::Count;
use crate::plan::scan::{Places, Replace};
use crate::plan::space::Distributed;
use crate::plan::wavefront::Served;
use crate::target::{Direction, TargetDesc};
use crate::{Dim, f2};

/// More totals than `2^6` of one line are brought in more than one exchange.
const MOST_BITS: usize = 6;

/// One line of elements along the axis, as far as a thread holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanLine {
    /// XORed into the offsets of its totals.
    pub offset: u64,
    /// Registers of the line, each with what is XORed into the thread's number of its block.
    pub registers: Vec<(u32, u64)>,
    /// Those of them that hold totals, in threads that hold any.
    pub totals: Vec<(u32, u64)>,
}

/// Totals of blocks brought from warp to warp through shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanExchange {
    /// The axis bits that number the blocks of a line.
    pub bits: Range<u32>,
    /// From the last block to the first.
    pub reverse: bool,
    /// Lines of each thread.
    pub lines: Vec<ScanLine>,
    /// The lanes that hold totals: those that this does not change.
    pub lane: Replace,
    /// The warps that do.
    pub warp: Replace,
    /// Threads with one of these bits set hold replicas, and do not store.
    pub duplicates: ThreadMasks,
    /// Where a thread's totals are stored, in elements.
    pub store: ThreadBases,
    /// Where the totals of its lines begin, in elements.
    pub load: ThreadBases,
    /// The number of its elements' block in the line.
    pub number: ThreadBases,
    /// XORed into the offset for the total of each block.
    pub offsets: Vec<u64>,
    /// How many elements one store moves.
    pub store_elems: u32,
    /// How many elements one load moves.
    pub load_elems: u32,
    /// Elements of shared memory for each operand.
    pub elems: u64,
}

impl ScanExchange {
    pub(super) fn new(
        d: &Distributed,
        places: &Places,
        bits: Range<usize>,
        reverse: bool,
        elem_bits: u32,
        target: &TargetDesc,
    ) -> ScanExchange {
        let below = |dim| places.mask(dim, bits.start);
        let among = |dim| places.mask(dim, bits.end) & !below(dim);
        // What tells lines apart: bits of the axis above count as another dimension.
        let line_of = |c: u64| c & !(low_mask(bits.end as u32) << places.shift);
        let registers = low_mask(d.reg.len() as u32) & !d.free_registers();
        let rows = registers & !below(Dim::REGISTER) & !among(Dim::REGISTER);

        // Offsets from the lowest bit on: lines of the registers and then blocks as far as one access
        // reaches, lines of the lanes, what is left of the first two, lines of the warps.
        let widest = u64::from(target.max_vector_bits / elem_bits.next_power_of_two().max(8)).max(1);
        let mut given = 0;
        let mut unit = || {
            given += 1;
            1u64 << (given - 1)
        };
        let mut known = Echelon::new();
        let mut units = Vec::new();
        let mut lines = |columns: &[u64], used: u64, unit: &mut dyn FnMut() -> u64| {
            for (i, &c) in columns.iter().enumerate() {
                let c = line_of(c);
                // A column that depends on others has the offset that they give it.
                if used >> i & 1 == 1 && c != 0 && !known.contains(c) {
                    known.insert(c);
                    units.push(unit());
                }
            }
        };
        let near = widest.trailing_zeros() as usize;
        let inner = (0..d.reg.len()).filter(|i| rows >> i & 1 == 1).take(near).fold(0, |m, i| m | 1 << i);
        lines(&d.reg, inner, &mut unit);
        let blocks_near = bits.len().min(near - u64::count_ones(inner) as usize);
        let mut blocks: Vec<u64> = (0..blocks_near).map(|_| unit()).collect();
        lines(&d.lane, !below(Dim::LANE) & !among(Dim::LANE), &mut unit);
        lines(&d.reg, rows & !inner, &mut unit);
        blocks.extend((blocks_near..bits.len()).map(|_| unit()));
        lines(&d.warp, !below(Dim::WARP) & !among(Dim::WARP), &mut unit);
        let elems = unit();

        let line_offset = |c: u64| f2::mul(&units, known.reduce(line_of(c)).1);
        let block_bit = |dim: Dim, i: usize| {
            (bits.clone()).position(|bit| places.of_bit[bit] == (dim, i as u32)).map(|bit| 1u64 << bit)
        };
        let each = |dim: Dim, columns: &[u64], f: &dyn Fn(u64, u64) -> u64| {
            let of = |(i, &c): (usize, &u64)| f(block_bit(dim, i).unwrap_or(0), c);
            columns.iter().enumerate().map(of).collect()
        };
        let bases = |f: &dyn Fn(u64, u64) -> u64| ThreadBases {
            lane: each(Dim::LANE, &d.lane, f),
            warp: each(Dim::WARP, &d.warp, f),
            block: d.block.iter().map(|_| 0).collect(),
        };
        let load = bases(&|_, c| line_offset(c));
        let store = bases(&|block, c| line_offset(c) ^ f2::mul(&blocks, block));
        let number = bases(&|block, _| block);
        let offsets: Vec<u64> = (0..1u64 << bits.len()).map(|b| f2::mul(&blocks, b)).collect();

        let register_number = |r: u64| {
            (0..d.reg.len())
                .filter(|i| r >> i & 1 == 1)
                .fold(0, |n, i| n | block_bit(Dim::REGISTER, i).unwrap_or(0))
        };
        let last = if reverse { 0 } else { below(Dim::REGISTER) };
        let subsets = |mask: u64| (0..1u64 << d.reg.len()).filter(move |r| r & !mask == 0);
        let line = |row: u64| {
            let all: Vec<(u32, u64)> =
                subsets(registers & !rows).map(|r| ((row | r) as u32, register_number(r))).collect();
            let totals = all.iter().copied().filter(|&(r, _)| u64::from(r) & below(Dim::REGISTER) == last);
            ScanLine { offset: line_offset(f2::mul(&d.reg, row)), totals: totals.collect(), registers: all }
        };
        let lines: Vec<ScanLine> = subsets(rows).map(line).collect();

        let replace = |dim| Replace { clear: below(dim), set: if reverse { 0 } else { below(dim) } };
        let mut exchange = ScanExchange {
            bits: bits.start as u32..bits.end as u32,
            reverse,
            lines,
            lane: replace(Dim::LANE),
            warp: replace(Dim::WARP),
            // Every block has shared memory of its own, to which one of its threads must store.
            duplicates: ThreadMasks { block: 0, ..d.duplicates() },
            store,
            load,
            number,
            offsets,
            store_elems: 1,
            load_elems: 1,
            elems,
        };
        let stored: Vec<u64> = exchange.stored().iter().map(|s| s.0).collect();
        exchange.store_elems = vector(&stored, widest, exchange.store.union());
        let loaded: Vec<u64> = exchange.loaded().iter().map(|s| s.0).collect();
        exchange.load_elems = vector(&loaded, widest, exchange.load.union());
        exchange
    }

    /// Offsets and registers of the totals that a thread holds, by offset.
    pub fn stored(&self) -> Vec<(u64, u32)> {
        let of = |line: &ScanLine| -> Vec<(u64, u32)> {
            line.totals.iter().map(|&(r, n)| (line.offset ^ self.offsets[n as usize], r)).collect()
        };
        let mut all: Vec<(u64, u32)> = self.lines.iter().flat_map(of).collect();
        all.sort_unstable();
        all
    }

    /// Offsets of the totals of a thread's lines, each with the line's number and the block's, by offset.
    pub fn loaded(&self) -> Vec<(u64, (usize, u64))> {
        let of = |(i, line): (usize, &ScanLine)| -> Vec<(u64, (usize, u64))> {
            (0u64..).zip(&self.offsets).map(|(n, offset)| (line.offset ^ offset, (i, n))).collect()
        };
        let mut all: Vec<(u64, (usize, u64))> = self.lines.iter().enumerate().flat_map(of).collect();
        all.sort_unstable();
        all
    }

    /// The blocks in the direction of the scan.
    pub fn order(&self) -> Vec<u64> {
        let n = self.offsets.len() as u64;
        (0..n).map(|i| if self.reverse { n - 1 - i } else { i }).collect()
    }

    /// The numbers that threads of a block can have.
    pub fn thread_numbers(&self) -> Vec<u64> {
        let mask = self.number.union();
        (0..self.offsets.len() as u64).filter(|n| n & !mask == 0).collect()
    }

    /// Combinations and selections of a thread.
    fn instructions(&self) -> u64 {
        let numbers = self.thread_numbers().len() as u64;
        let line = |line: &ScanLine| {
            let mut parts: Vec<u64> = line.registers.iter().map(|r| r.1).collect();
            parts.sort_unstable();
            parts.dedup();
            self.offsets.len() as u64 - 2
                + parts.len() as u64 * (numbers - 1)
                + line.registers.len() as u64
                + line.registers.iter().filter(|r| r.1 == 0).count() as u64
        };
        self.lines.iter().map(line).sum()
    }

    /// What it costs; without combinations. `again`: the memory is in use by an exchange before.
    pub(super) fn cost(&self, elem_bits: &[u32], warps: u64, again: bool, target: &TargetDesc) -> Cost {
        let mut total = Cost { barriers: 1 + u32::from(again) as u64, ..Cost::default() };
        let cost = &target.cost;
        total.cycles += 1.5 * cost.shared_latency + total.barriers as f64 * cost.block_barrier;
        let accesses = [
            (self.stored().len(), self.store_elems, Direction::Store),
            (self.loaded().len(), self.load_elems, Direction::Load),
        ];
        for &bits in elem_bits {
            for (count, elems, direction) in accesses {
                let n = count as u64 / u64::from(elems);
                let bytes = (bits.next_power_of_two().max(8) / 8) * elems;
                let wavefronts = n * Served::vector(bytes, direction, target).phases();
                match direction {
                    Direction::Store => total.stores += n,
                    Direction::Load => total.loads += n,
                }
                total.wavefronts += wavefronts;
                total.minimum_wavefronts += wavefronts;
                total.cycles += warps as f64 * (wavefronts as f64 * cost.wavefront + n as f64 * cost.issue);
            }
        }
        total
    }
}

/// How many of `offsets`, which are in order, one access can move at most.
fn vector(offsets: &[u64], widest: u64, threads: u64) -> u32 {
    let mut n = widest;
    let fits = |n: u64| {
        threads & (n - 1) == 0
            && (offsets.len() as u64).is_multiple_of(n)
            && offsets.chunks(n as usize).all(|c| c[0].is_multiple_of(n) && c[c.len() - 1] - c[0] == n - 1)
    };
    // One always does.
    while !fits(n) {
        n /= 2;
    }
    n as u32
}

/// The exchanges for the axis bits from `first` on: together the cheapest of all ways to divide the bits.
pub(super) fn exchanges(
    d: &Distributed,
    places: &Places,
    first: usize,
    reverse: bool,
    elem_bits: &[u32],
    target: &TargetDesc,
) -> Vec<ScanExchange> {
    let (end, warps) = (places.of_bit.len(), 1u64 << d.warp.len());
    let widest = elem_bits.iter().copied().max().unwrap_or(32);
    // For each bit, the cheapest exchanges from there on.
    let mut best: Vec<(f64, Vec<ScanExchange>)> = vec![(0.0, Vec::new())];
    for from in (first..end).rev() {
        let mut choice: Option<(f64, Vec<ScanExchange>)> = None;
        for to in from + 1..=end.min(from + MOST_BITS) {
            let exchange = ScanExchange::new(d, places, from..to, reverse, widest, target);
            // The first exchange of all has a barrier less, whichever that is.
            let mut cycles = exchange.cost(elem_bits, warps, true, target).cycles;
            cycles += (exchange.instructions() * warps * elem_bits.len() as u64) as f64 * target.cost.alu;
            let (rest, others) = &best[end - to];
            if choice.as_ref().is_none_or(|(known, _)| cycles + rest <= *known) {
                choice = Some((cycles + rest, [&[exchange][..], others].concat()));
            }
        }
        best.extend(choice);
    }
    best.pop().map(|(_, exchanges)| exchanges).unwrap_or_default()
}

impl fmt::Display for ScanExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.bits;
        match end - start {
            1 => write!(f, "bit {start}")?,
            _ => write!(f, "bits {start} to {}", end - 1)?,
        }
        let changed = self.lines.iter().map(|line| line.registers.len() as u64).sum();
        let totals = Count((self.lines.len() * self.offsets.len()) as u64, "total");
        write!(f, ": {} combined with {totals} of all warps through shared memory", Count(changed, "value"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::scan::axis_places;
    use crate::{Encoding, LinearLayout};

    /// A line of `columns` elements, one after the other in the lanes of eight warps, and then in registers.
    fn line(columns: u64) -> LinearLayout {
        let text =
            "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>";
        text.parse::<Encoding>().unwrap().to_linear_layout(&[columns]).unwrap()
    }

    /// All ways to divide the bits from `first` to `end` into ranges.
    fn divisions(first: usize, end: usize) -> Vec<Vec<Range<usize>>> {
        let ways = (0..1usize << (end - first - 1)).map(|cuts| {
            let mut ranges: Vec<Range<usize>> = Vec::new();
            let mut from = first;
            for to in first + 1..=end {
                if to == end || cuts >> (to - first - 1) & 1 == 1 {
                    ranges.push(from..to);
                    from = to;
                }
            }
            ranges
        });
        ways.filter(|ranges| ranges.iter().all(|range| range.len() <= MOST_BITS)).collect()
    }

    #[test]
    fn no_other_division_into_rounds_is_cheaper() {
        let axis = Dim::out(0);
        let mut lengths = std::collections::BTreeSet::new();
        for (columns, step) in [256, 1024, 2048].into_iter().flat_map(|n| (0..24).map(move |i| (n, i))) {
            let mut target = TargetDesc::parse("cuda:90").unwrap();
            target.cost.block_barrier = 4.0 * f64::from(step) + 0.25;
            target.cost.shared_latency = 2.0 * f64::from(step);
            let layout = line(columns);
            let d = Distributed::new(&layout, &[axis], &target).unwrap();
            let places = Places { of_bit: axis_places(&layout, axis).unwrap(), shift: 0 };
            let (first, end) = (5, places.of_bit.len());
            let total = |rounds: &[ScanExchange]| -> f64 {
                let of = |(i, x): (usize, &ScanExchange)| {
                    x.cost(&[32], 8, i > 0, &target).cycles + (8 * x.instructions()) as f64 * target.cost.alu
                };
                rounds.iter().enumerate().map(of).sum()
            };
            let found = exchanges(&d, &places, first, false, &[32], &target);
            lengths.insert(found.len());
            for ranges in divisions(first, end) {
                let made = |bits| ScanExchange::new(&d, &places, bits, false, 32, &target);
                let other: Vec<ScanExchange> = ranges.iter().cloned().map(made).collect();
                assert!(total(&found) <= total(&other) + 1e-6, "{columns}, {step}: {ranges:?} not {found:?}");
            }
        }
        assert!(lengths.len() > 1, "{lengths:?}");
    }

    /// Of divisions that cost the same, the one with the fewest rounds: each has code of its own.
    #[test]
    fn rounds_that_save_nothing_are_not_made() {
        let mut target = TargetDesc::parse("cuda:90").unwrap();
        let c = &mut target.cost;
        [c.alu, c.wavefront, c.issue, c.shared_latency, c.block_barrier] = [0.0; 5];
        let layout = line(1024);
        let d = Distributed::new(&layout, &[Dim::out(0)], &target).unwrap();
        let places = Places { of_bit: axis_places(&layout, Dim::out(0)).unwrap(), shift: 0 };
        assert_eq!(exchanges(&d, &places, 5, false, &[32], &target).len(), 1);
    }

    #[test]
    fn one_access_moves_aligned_neighbours() {
        let widest = |offsets: &[u64]| vector(offsets, 4, 32);
        assert_eq!(widest(&[4, 5, 6, 7]), 4);
        assert_eq!(widest(&[2, 3, 6, 7]), 2, "two pairs with a gap");
        assert_eq!(widest(&[1, 2]), 1, "neighbours on an odd place");
        assert_eq!(widest(&[0, 2]), 1, "a gap");
        assert_eq!(widest(&[0, 1, 2]), 1, "three");
        assert_eq!(vector(&[4, 5, 6, 7], 4, 2), 2, "as many threads as elements go together");
    }
}
