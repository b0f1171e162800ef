//! Optimal swizzling: memory layouts that both sides of a conversion access with the widest instructions
//! and without bank conflicts (paper, Sections 5.4 and 9.2).
//!
//! The memory layout is an invertible matrix `S = [S_Low | S_Bank | S_Idx]` from offset bits to element
//! bits. `S_Low` is what one access covers; `S_Low` and `S_Bank` together cover one line of the banks;
//! `S_Idx` counts the lines.
//!
//! *Low bits.* An instruction asks for its tile: a vector of `2ᵛ` elements that the first `v` low bits be
//! spanned by registers; `ldmatrix` and its like that certain low bits be certain lane vectors. The needs
//! of both sides are put together position by position.
//!
//! *Lines.* A side is free of conflicts when `span(S_Idx)` meets `U = span(S_own ∪ L_Phase)` in zero only,
//! where `L_Phase` are the vectors of the lanes that are served together and `S_own` the part of the low
//! bits within which its lanes do not conflict: its vector, or a word where the vector is narrower. The
//! paper counts all lanes; with those of one phase `dim U` is at most the dimension of a line, so by Lemma
//! 9.5 a layout free of conflicts on both sides exists whenever both sides have the same low bits. Where
//! one side has more of them than the other, the vectors of `S_Idx` must not touch them, which can make
//! conflicts on the other side unavoidable; `S_Idx` then meets both spaces in as little as the dimensions
//! allow, at the same time.

use std::cmp::Ordering;

use smallvec::{SmallVec, smallvec};

use crate::f2::{self, Echelon, Vectors, low_mask};
use crate::plan::space::Distributed;
use crate::plan::wavefront::Served;
use crate::plan::{MemoryInstruction, NARROWEST_COPY};
use crate::target::{Direction, RowBit, TargetDesc, TransposedReads};

/// What a conversion through shared memory has to move, in coordinates of the elements of one block.
pub(crate) struct Transfer<'a> {
    /// Columns of the source, copies dropped, threads that do not store zero.
    pub source: &'a Distributed,
    /// Columns of the destination.
    pub target_layout: &'a Distributed,
    /// Lanes whose bits are set do not store.
    pub inactive_lanes: u64,
    /// Bits of an element.
    pub bits: u32,
    /// log2 of the passes, each of which uses the same memory.
    pub tile_bits: u32,
    pub storage_bits: u32,
    /// Where copies past the registers store: log2 of the registers, in their order, that one may move.
    pub copies: Option<u32>,
    pub machine: &'a TargetDesc,
}

/// The tile of an instruction that one side would like to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A vector of `2^v` elements.
    Vector(u32),
    /// Rows of 16 bytes of a matrix: `unit` register bits, then lanes 0 and 1.
    Rows { unit: u32 },
    /// The same transposed: `unit` register bits, then lanes 2, 3 and 4.
    Columns { unit: u32 },
    /// Rows of 16 bytes of a matrix of bytes: `unit` register bits, then lanes 2, 3 and 4, then a register.
    Bytes { unit: u32 },
    /// A row of the lowest lanes, transposed by the load: that many lane bits.
    Lanes { form: TransposedReads, lanes: u32 },
}

#[derive(Clone, Copy)]
enum Need {
    Register,
    Exactly(u64),
}

struct Side<'a> {
    columns: &'a Distributed,
    direction: Direction,
    inactive_lanes: u64,
    copies: Option<u32>,
}

impl<'a> Transfer<'a> {
    fn store(&self) -> Side<'a> {
        let inactive_lanes = self.inactive_lanes;
        Side { columns: self.source, direction: Direction::Store, inactive_lanes, copies: self.copies }
    }

    fn load(&self) -> Side<'a> {
        Side { columns: self.target_layout, direction: Direction::Load, inactive_lanes: 0, copies: None }
    }

    /// Pairs of wishes, the ones that would be cheapest without conflicts first, with that cost in cycles. Where they
    /// cost the same, matrices are loaded rather than vectors: their registers are those of few instructions that use
    /// them, while a vector may hold a part for each of many, which then are all loaded before the first.
    pub fn wishes(&self) -> Vec<(f64, Want, Want)> {
        let stores = self.store().wants(self.storage_bits, self.machine);
        let loads = self.load().wants(self.storage_bits, self.machine);
        let mut pairs: Vec<(f64, Want, Want)> =
            stores.iter().flat_map(|&(sc, s)| loads.iter().map(move |&(lc, l)| (sc + lc, s, l))).collect();
        let is_vector = |load: Want| matches!(load, Want::Vector(_));
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then(is_vector(a.2).cmp(&is_vector(b.2))));
        pairs
    }

    /// The memory layout for a pair of wishes: `bits` columns in element coordinates, tiles last. `None`
    /// when the wishes contradict each other or the layouts.
    pub fn layout(&self, store: Want, load: Want) -> Option<Vectors> {
        let (a, b) = (self.store(), self.load());
        let mut low = self.low_bits(&a, store, &b, load)?;
        let word = (8 * self.machine.bank_width / self.storage_bits).max(1).ilog2();
        let line = |side: &Side<'_>, want| {
            let bytes = side.served(want, self.storage_bits, self.machine).line_bytes();
            (8 * bytes / self.storage_bits).ilog2()
        };
        let (store_line, load_line) = (line(&a, store), line(&b, load));
        let tiled_bits = self.bits - self.tile_bits;
        // The rest, threads first so that passes are told apart by registers if possible.
        let mut span = Echelon::of(&low);
        let mut rest = Vectors::new();
        let units: Vectors = (0..self.bits).map(|i| 1 << i).collect();
        for columns in [
            &a.columns.lane,
            &b.columns.lane,
            &a.columns.warp,
            &b.columns.warp,
            &b.columns.block,
            &a.columns.reg,
            &b.columns.reg,
            &units,
        ] {
            rest.extend(columns.iter().copied().filter(|&c| span.insert(c)));
        }
        if low.len() > tiled_bits as usize {
            return None;
        }
        // Accesses narrower than a word: fill the word, with registers where there are some.
        while (low.len() as u32) < word.min(tiled_bits) {
            let last = rest.len() - 1 - self.tile_bits as usize;
            low.push(rest.remove(last));
        }
        let m = low.len() as u32;
        let basis: Vectors = low.iter().chain(&rest).copied().collect();
        let coordinates = Echelon::of(&basis);
        let phase = |side: &Side<'_>, want| -> Option<Vectors> {
            let (own, lanes) = side.phase(want, &low, self.storage_bits, self.machine);
            let vectors: Vectors = lanes
                .iter()
                .filter_map(|&c| coordinates.express(c))
                .map(|c| c & low_mask(tiled_bits))
                .collect();
            // Those that touch none of the low bits that are not the side's own, without its own.
            let own = own.max(word.min(m));
            let foreign: Vectors = vectors.iter().map(|v| v & low_mask(m) & !low_mask(own)).collect();
            let kernel = f2::kernel(&foreign);
            Some(f2::basis(&kernel.iter().map(|&x| f2::mul(&vectors, x) & !low_mask(m)).collect::<Vectors>()))
        };
        let (u, w) = (phase(&a, store)?, phase(&b, load)?);
        let lines = |line: u32| tiled_bits.saturating_sub(line.max(m)) as usize;
        let space: Vectors = (m..tiled_bits).map(|i| 1 << i).collect();
        let mut idx = avoid(&u, &w, &space, lines(store_line.max(load_line)));
        let shorter = match store_line.cmp(&load_line) {
            Ordering::Less => Some((store_line, &u)),
            Ordering::Greater => Some((load_line, &w)),
            Ordering::Equal => None,
        };
        if let Some((line, own)) = shorter {
            // Among the vectors that tell the banks of the longer line apart, the last ones are lines to the
            // other side: they are to avoid its space, too.
            let used: Vectors = idx.iter().chain(own).copied().collect();
            let more = f2::complement_within(&used, &space).into_iter().take(lines(line) - idx.len());
            idx = more.chain(idx).collect();
        }
        let bank = f2::complement_within(&idx, &space);
        let swizzled = (0..m).map(|i| 1 << i).chain(bank).chain(idx);
        let all = swizzled.chain((tiled_bits..self.bits).map(|i| 1 << i));
        Some(all.map(|c| f2::mul(&basis, c)).collect())
    }

    /// The low bits that serve both wishes.
    fn low_bits(&self, a: &Side<'_>, store: Want, b: &Side<'_>, load: Want) -> Option<Vectors> {
        let (na, nb) = (a.needs(store), b.needs(load));
        let (ra, rb) = (Echelon::of(&a.columns.reg), Echelon::of(&b.columns.reg));
        let len = na.len().max(nb.len());
        let mut fixed: SmallVec<[Option<u64>; 8]> = smallvec![None; len];
        let mut span = Echelon::new();
        for i in 0..len {
            let exact = |need: Option<&Need>| match need {
                Some(&Need::Exactly(v)) => Some(v),
                _ => None,
            };
            fixed[i] = match (exact(na.get(i)), exact(nb.get(i))) {
                (Some(x), Some(y)) if x != y => return None,
                (x, y) => x.or(y),
            };
            if let Some(v) = fixed[i] {
                let fits =
                    |need: Option<&Need>, r: &Echelon| !matches!(need, Some(Need::Register)) || r.contains(v);
                if !fits(na.get(i), &ra) || !fits(nb.get(i), &rb) || !span.insert(v) {
                    return None;
                }
            }
        }
        let word = (32 / self.storage_bits).max(1).ilog2() as usize;
        let common = ordered_intersection(&a.columns.reg, &b.columns.reg, &ra, &rb, word);
        // Registers of one side only: lanes of the other side's phase first, they then share lines.
        let only = |mine: &Distributed, theirs: &Side<'_>, want| {
            let (_, lanes) = theirs.phase(want, &[], self.storage_bits, self.machine);
            let mut list = f2::intersection(&mine.reg, &lanes);
            list.extend_from_slice(&mine.reg);
            list
        };
        let (mut only_a, mut only_b) = (None, None);
        let mut low = Vectors::new();
        for i in 0..len {
            let v = match (fixed[i], na.get(i), nb.get(i)) {
                (Some(v), _, _) => v,
                (None, Some(_), Some(_)) => *common.iter().find(|&&c| span.insert(c))?,
                (None, Some(_), None) => {
                    let list = only_a.get_or_insert_with(|| only(a.columns, b, load));
                    *list.iter().find(|&&c| span.insert(c))?
                }
                (None, None, _) => {
                    let list = only_b.get_or_insert_with(|| only(b.columns, a, store));
                    *list.iter().find(|&&c| span.insert(c))?
                }
            };
            low.push(v);
        }
        Some(low)
    }
}

impl Side<'_> {
    /// The instructions to try with what they cost one warp when nothing conflicts.
    fn wants(&self, storage_bits: u32, machine: &TargetDesc) -> Vec<(f64, Want)> {
        let registers = f2::rank(&self.columns.reg);
        let cost = &machine.cost;
        let mut wants = Vec::new();
        let widest = (machine.max_vector_bits / storage_bits).max(1).ilog2().min(registers);
        let active = machine.lane_bits() - self.inactive_lanes.count_ones();
        for v in (0..=widest).filter(|v| storage_bits << v >= 8) {
            let served = self.served(Want::Vector(v), storage_bits, machine);
            let phases = 1u64 << active.saturating_sub(served.service.lanes.len() as u32);
            // Narrower accesses take words of registers apart.
            let word = (32 / storage_bits).max(1).ilog2().min(registers);
            let apart = ((1u64 << word.saturating_sub(v)) - 1) << (registers - word);
            let each = phases as f64 * cost.wavefront + cost.issue;
            let all = each * (1u64 << (registers - v)) as f64 + apart as f64 * cost.alu;
            wants.push((all, Want::Vector(v)));
        }
        if let Some(run) = self.copies {
            let is_copy = |v: u32| v <= run && storage_bits << v >= NARROWEST_COPY;
            wants.retain(|(_, want)| matches!(want, Want::Vector(v) if is_copy(*v)));
            for (cycles, want) in &mut wants {
                let Want::Vector(v) = *want else { continue };
                *cycles += (1u64 << (registers - v)) as f64 * cost.copy;
            }
            return wants;
        }
        let p = &machine.primitives;
        let load = self.direction == Direction::Load;
        let matrix = if load { p.ldmatrix } else { p.stmatrix && self.inactive_lanes == 0 };
        let words = |unit: u32| (1u64 << (registers - unit)) as f64;
        let matrices = |w: f64| w * cost.wavefront + (w / 4.0).max(1.0) * cost.issue;
        if matrix && storage_bits <= 32 && registers >= (32 / storage_bits).ilog2() {
            let unit = (32 / storage_bits).ilog2();
            wants.push((matrices(words(unit)), Want::Rows { unit }));
        }
        if matrix && storage_bits <= 16 && registers > (16 / storage_bits).ilog2() {
            let unit = (16 / storage_bits).ilog2();
            wants.push((matrices(words(unit + 1)), Want::Columns { unit }));
        }
        if matrix && p.matrix_b8 && storage_bits <= 8 {
            let unit = (8 / storage_bits).ilog2();
            if registers >= unit + if load { 3 } else { 2 } {
                wants.push((matrices(words(unit + 2)), Want::Bytes { unit }));
            }
        }
        let transposed = p.transposed_reads.filter(|_| load);
        if let Some((form, bits)) =
            transposed.and_then(|form| Some((form, form.bits_per_lane(storage_bits)?)))
        {
            let lanes = (bits / storage_bits).ilog2();
            if registers >= lanes {
                let want = Want::Lanes { form, lanes };
                let phases = self.served(want, storage_bits, machine).phases();
                let each = phases as f64 * cost.wavefront + cost.issue;
                wants.push((words(lanes) * each, want));
            }
        }
        wants
    }

    fn needs(&self, want: Want) -> SmallVec<[Need; 8]> {
        let lane = |l: usize| Need::Exactly(self.columns.lane[l]);
        match want {
            Want::Vector(v) if self.copies.is_some() => {
                let own = self.columns.reg.iter().filter(|column| **column != 0);
                own.take(v as usize).map(|column| Need::Exactly(*column)).collect()
            }
            Want::Vector(v) => (0..v).map(|_| Need::Register).collect(),
            Want::Rows { unit } => (0..unit).map(|_| Need::Register).chain([lane(0), lane(1)]).collect(),
            Want::Columns { unit } => {
                (0..unit).map(|_| Need::Register).chain([lane(2), lane(3), lane(4)]).collect()
            }
            Want::Bytes { unit } => {
                let lanes = [lane(2), lane(3), lane(4), Need::Register];
                (0..unit).map(|_| Need::Register).chain(lanes).collect()
            }
            Want::Lanes { lanes, .. } => (0..lanes as usize).map(lane).collect(),
        }
    }

    /// How shared memory serves the instruction.
    fn served(&self, want: Want, storage_bits: u32, machine: &TargetDesc) -> Served {
        let instruction = match want {
            Want::Vector(v) => MemoryInstruction::Vector { bits: storage_bits << v },
            Want::Lanes { form, .. } => MemoryInstruction::TransposedRead { form, unit_bits: storage_bits },
            Want::Rows { .. } => MemoryInstruction::Matrix { count: 4, transposed: false },
            Want::Columns { .. } => MemoryInstruction::Matrix { count: 4, transposed: true },
            Want::Bytes { .. } => MemoryInstruction::MatrixBytes { words: 4 },
        };
        instruction.served(self.direction, machine)
    }

    /// How many low bits are the access's own, and the vectors of what is served together.
    fn phase(&self, want: Want, low: &[u64], storage_bits: u32, machine: &TargetDesc) -> (u32, Vectors) {
        let lane = &self.columns.lane;
        match want {
            Want::Vector(v) => {
                // Lanes that do not store have columns of zero.
                let together = self.served(want, storage_bits, machine).service.lanes;
                (v, together.iter().map(|&l| f2::mul(lane, l)).collect())
            }
            Want::Rows { unit } => (unit + 2, Vectors::from_slice(&lane[2..5])),
            Want::Columns { unit } => {
                let mut span = Echelon::of(low);
                let mut rows = Vectors::from_slice(&lane[..2]);
                rows.iter().for_each(|&c| _ = span.insert(c));
                rows.extend(self.columns.reg.iter().copied().find(|&c| span.insert(c)));
                (unit + 3, rows)
            }
            Want::Bytes { unit } => {
                // Two registers and a lane choose among the eight rows of a load, one and two those of a store.
                let (registers, lanes) = if self.direction == Direction::Load { (2, 1) } else { (1, 2) };
                let mut span = Echelon::of(low);
                let mut rows = Vectors::from_slice(&lane[..2]);
                rows.iter().for_each(|&c| _ = span.insert(c));
                rows.truncate(lanes);
                let columns = self.columns.reg.iter().copied().filter(|&c| span.insert(c));
                rows.extend(columns.take(registers));
                (unit + 4, rows)
            }
            Want::Lanes { form, lanes } => {
                // Registers choose among the rows beside the lanes of their group.
                let bits = form.rows(storage_bits);
                let grouped = bits.iter().rposition(|bit| matches!(bit, RowBit::Register(_))).unwrap_or(0);
                let of_lane = |bit: &RowBit| match *bit {
                    RowBit::Lane(l) => Some(lane[usize::from(l)]),
                    RowBit::Register(_) => None,
                };
                let mut span = Echelon::of(low);
                bits[..grouped].iter().filter_map(of_lane).for_each(|c| _ = span.insert(c));
                let registers: Vectors = self
                    .columns
                    .reg
                    .iter()
                    .copied()
                    .filter(|&c| span.insert(c))
                    .take(lanes as usize)
                    .collect();
                let row = |bit: &RowBit| match *bit {
                    RowBit::Lane(l) => lane[usize::from(l)],
                    RowBit::Register(r) => registers.get(usize::from(r)).copied().unwrap_or(0),
                };
                let rows: Vectors = bits.iter().map(row).collect();
                let together = self.served(want, storage_bits, machine).service.lanes;
                (lanes, together.iter().map(|&l| f2::mul(&rows, l)).collect())
            }
        }
    }
}

/// Vectors that span the intersection of the spans of two lists: first those among the first `word` of a list, which
/// are neighbours in a word of that side's registers, then those of the first list.
fn ordered_intersection(a: &[u64], b: &[u64], span_a: &Echelon, span_b: &Echelon, word: usize) -> Vectors {
    let of_a = |&c: &u64| c != 0 && span_b.contains(c);
    let first = |v: &[u64]| v.iter().copied().take(word).collect::<Vectors>();
    let mut list: Vectors = first(a).into_iter().filter(of_a).collect();
    list.extend(first(b).into_iter().filter(|&c| c != 0 && span_a.contains(c)));
    list.extend(a.iter().copied().filter(of_a));
    list.extend(f2::intersection(a, b));
    list
}

/// `count` independent vectors of `space` whose span meets those of `u` and of `w` in as little as
/// possible: Lemma 9.5 of the paper, and where that runs out the vectors that only one of them contains
/// before those that both do.
fn avoid(u: &[u64], w: &[u64], space: &[u64], count: usize) -> Vectors {
    if count == 0 {
        return Vectors::new();
    }
    let common = f2::intersection(u, w);
    let e = f2::complement_within(&common, u);
    let f = f2::complement_within(&common, w);
    let both: Vectors = common.iter().chain(&e).chain(&f).copied().collect();
    let outside = f2::complement_within(&both, space);
    let pairs = e.iter().zip(&f).map(|(&x, &y)| x ^ y);
    let paired = e.len().min(f.len());
    let left = e[paired..].iter().chain(&f[paired..]).copied();
    outside.iter().copied().chain(pairs).chain(left).chain(common.iter().copied()).take(count).collect()
}
