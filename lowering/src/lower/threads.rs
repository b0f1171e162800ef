//! What depends on the number of a thread: XOR-linear addresses and parities,
//! computed once in the prologue of a function, and once more behind a loop
//! that leaves no registers for them.

use super::Lower;
use crate::emit::{ICmp, Lowered, internal};
use crate::target::need;
use linear_layout::plan::{ThreadBases, ThreadMasks};
use linear_layout::{Dim, LinearLayout};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Op, Value};
use std::rc::Rc;
use std::sync::Arc;

/// The columns of lane, warp and CTA that a value is made of.
pub(super) type Key = [Vec<u64>; 3];

/// What was computed of the number of a thread.
pub(super) struct Numbers<'c> {
    /// The terminator of the basic block in which numbers are computed: each is put before it.
    end: Op<'c>,
    /// Lane, warp and CTA.
    thread: Option<(Value<'c>, Value<'c>, Value<'c>)>,
    /// Whether these are rematerialized behind a loop: the lane is read from its own special register, so that neither
    /// LLVM nor ptxas merges it, or what is computed from it, with the values of the prologue.
    again: bool,
    /// Index bases by layout.
    bases: FastMap<usize, Rc<[Value<'c>]>>,
    /// Numbers of the thread by their columns.
    numbers: FastMap<Key, Value<'c>>,
    /// The warp, as a shuffle gives it.
    warp: Option<Value<'c>>,
    /// Numbers that all lanes of a warp have alike, made of that.
    of_warps: FastMap<Key, Value<'c>>,
    /// Parities of bits of the thread's numbers.
    parities: FastMap<ThreadMasks, Value<'c>>,
}

/// The columns of `bases`, scaled by the power of two `scale`, without zeros at their ends.
fn key(bases: &ThreadBases, scale: u64) -> Key {
    [&bases.lane, &bases.warp, &bases.block].map(|columns| {
        let used = columns.iter().rposition(|c| *c != 0).map_or(0, |last| last + 1);
        columns[..used].iter().map(|c| c * scale).collect()
    })
}

impl<'c> Numbers<'c> {
    pub(super) fn new(end: Op<'c>) -> Self {
        Self {
            end,
            thread: None,
            again: false,
            bases: FastMap::default(),
            numbers: FastMap::default(),
            warp: None,
            of_warps: FastMap::default(),
            parities: FastMap::default(),
        }
    }
}

impl<'c> Lower<'_, 'c> {
    pub(super) fn threads(&mut self) -> Lowered<&mut Numbers<'c>> {
        Ok(&mut self.function()?.threads)
    }

    /// Goes on in a new block behind one for numbers of the thread, which ends where the result says.
    pub(super) fn begin_numbers(&mut self) -> Lowered<Numbers<'c>> {
        let (numbers, next) = (self.new_block(&[])?, self.new_block(&[])?);
        self.emit.br(numbers, &[], None)?;
        self.emit.set_block(numbers);
        self.emit.br(next, &[], None)?;
        self.emit.set_block(next);
        let Some(end) = numbers.last() else { return internal("empty block") };
        Ok(Numbers::new(end))
    }

    /// From here on numbers of the thread are others to LLVM and ptxas than those so far.
    pub(super) fn number_threads_again(&mut self) -> Lowered<()> {
        let numbers = self.begin_numbers()?;
        *self.threads()? = Numbers { again: true, ..numbers };
        Ok(())
    }

    fn with_numbers<T>(&mut self, f: impl FnOnce(&mut Self) -> Lowered<T>) -> Lowered<T> {
        let end = self.threads()?.end;
        self.before(end, f)
    }

    /// The thread's lane, its warp, and its block in the cluster.
    pub fn thread(&mut self) -> Lowered<(Value<'c>, Value<'c>, Value<'c>)> {
        if let Some(found) = self.threads()?.thread {
            return Ok(found);
        }
        let again = self.threads()?.again;
        let (threads, blocks, group) = (self.num_threads(), self.num_blocks, self.group);
        let cta_threads = self.cta_threads();
        let lanes = self.target.desc().lanes;
        let found = self.with_numbers(|this| {
            let e = &mut this.emit;
            let mut thread = this.target.thread_id(e, cta_threads)?;
            if group.first_warp > 0 {
                let first = e.const_i32(i64::from(group.first_warp * lanes))?;
                thread = e.same("llvm.sub", &[thread, first])?;
            }
            let lane = if again { this.target.lane_id(e)? } else { e.mask(thread, i64::from(lanes) - 1)? };
            let warp = if threads > lanes {
                let warp = e.lshr(thread, lanes.trailing_zeros())?;
                this.target.uniform(e, warp)?
            } else {
                e.const_i32(0)?
            };
            let block = match blocks {
                1 => e.const_i32(0)?,
                _ => need(this.target.clusters(), "clusters", this.target)?.cta_id(e)?,
            };
            Ok((lane, warp, block))
        })?;
        self.threads()?.thread = Some(found);
        Ok(found)
    }

    /// The number that `bases` give all lanes of this warp; an `i32` that the assembler may keep in a register of the warp, since it
    /// is computed from a shuffle's result. With `once` the shuffle is made once a function: nothing takes it out of a loop.
    pub fn warp_number(&mut self, bases: &ThreadBases, once: bool) -> Lowered<Value<'c>> {
        if !once {
            let number = self.thread_number(bases, 1)?;
            let zero = self.emit.const_i32(0)?;
            return self.target.shuffle_index(&mut self.emit, number, zero);
        }
        let key = key(bases, 1);
        if let Some(found) = self.threads()?.of_warps.get(&key) {
            return Ok(*found);
        }
        let (lane, warp, block) = self.thread()?;
        let warp = match self.threads()?.warp {
            Some(warp) => warp,
            None => self.with_numbers(|l| {
                let zero = l.emit.const_i32(0)?;
                l.target.shuffle_index(&mut l.emit, warp, zero)
            })?,
        };
        self.threads()?.warp = Some(warp);
        let number = self.with_numbers(|l| l.combine([lane, warp, block], &key))?;
        self.threads()?.of_warps.insert(key, number);
        Ok(number)
    }

    /// The number that `bases`, scaled by the power of two `scale`, give this
    /// thread; an `i32`. Made once a function.
    pub fn thread_number(&mut self, bases: &ThreadBases, scale: u64) -> Lowered<Value<'c>> {
        let key = key(bases, scale);
        if let Some(found) = self.threads()?.numbers.get(&key) {
            return Ok(*found);
        }
        let (lane, warp, block) = self.thread()?;
        let number = self.with_numbers(|l| l.combine([lane, warp, block], &key))?;
        self.threads()?.numbers.insert(key, number);
        Ok(number)
    }

    /// The XOR of the columns of the bits that are set in `value`, an `i32`.
    pub fn spread_bits(&mut self, value: Value<'c>, columns: &[u64]) -> Lowered<Value<'c>> {
        self.combine([value; 3], &[columns.to_vec(), Vec::new(), Vec::new()])
    }

    /// The XOR of the columns of the bits that are set in `values`.
    pub(super) fn combine(&mut self, values: [Value<'c>; 3], columns: &Key) -> Lowered<Value<'c>> {
        let mut sum: Option<(Value<'c>, u64)> = None;
        for (value, columns) in values.into_iter().zip(columns) {
            for part in runs(columns.iter().copied()) {
                let (bits, reached) = (self.part(value, part)?, part.reached());
                sum = Some(match sum {
                    None => (bits, reached),
                    Some((sum, others)) if others & reached == 0 => {
                        (self.emit.or_disjoint(sum, bits)?, others | reached)
                    }
                    Some((sum, others)) => (self.emit.xor(sum, bits)?, others | reached),
                });
            }
        }
        match sum {
            Some((sum, _)) => Ok(sum),
            None => self.emit.const_i32(0),
        }
    }

    /// Whether the bits of this thread's numbers under `masks` have odd parity
    /// together. Made once a function.
    pub fn is_odd(&mut self, masks: ThreadMasks) -> Lowered<Value<'c>> {
        if let Some(found) = self.threads()?.parities.get(&masks) {
            return Ok(*found);
        }
        let (lane, warp, block) = self.thread()?;
        let bits = masks.lane.count_ones() + masks.warp.count_ones() + masks.block.count_ones();
        let odd = self.with_numbers(|l| {
            let (zero, i32t) = (l.emit.const_i32(0)?, l.emit.i32());
            let mut sum = zero;
            for (value, mask) in [(lane, masks.lane), (warp, masks.warp), (block, masks.block)] {
                if mask == 0 {
                    continue;
                }
                let masked = l.emit.mask(value, mask as i64)?;
                if bits == 1 {
                    return l.emit.icmp(ICmp::Ne, masked, zero);
                }
                let count = l.emit.value("llvm.intr.ctpop", &[masked], i32t, &[])?;
                sum = l.emit.xor(sum, count)?;
            }
            let parity = l.emit.mask(sum, 1)?;
            l.emit.icmp(ICmp::Ne, parity, zero)
        })?;
        self.threads()?.parities.insert(masks, odd);
        Ok(odd)
    }

    /// The coordinates of the thread's register 0: the part of the index that
    /// depends on lane, warp and block, per dimension. Computed once a layout.
    fn index_bases(&mut self, layout: &Arc<LinearLayout>) -> Lowered<Rc<[Value<'c>]>> {
        let key = Arc::as_ptr(layout) as usize;
        if let Some(found) = self.threads()?.bases.get(&key) {
            return Ok(found.clone());
        }
        let (lane, warp, block) = self.thread()?;
        let bases = self.with_numbers(|this| {
            let mut bases = Vec::new();
            for dim in layout.out_dims() {
                let columns = [Dim::LANE, Dim::WARP, Dim::BLOCK].map(|input| along(layout, input, dim));
                bases.push(this.combine([lane, warp, block], &columns)?);
            }
            Ok(Rc::from(bases))
        })?;
        self.threads()?.bases.insert(key, Rc::clone(&bases));
        Ok(bases)
    }

    /// The bits `part.from..part.from + part.len` of `value`, moved to `part.to`.
    fn part(&mut self, value: Value<'c>, part: Part) -> Lowered<Value<'c>> {
        let e = &mut self.emit;
        let mask = ((1i64 << part.len) - 1) << part.from;
        let bits = e.mask(value, mask)?;
        match part.to.cmp(&part.from) {
            std::cmp::Ordering::Equal => Ok(bits),
            std::cmp::Ordering::Greater => e.shl(bits, part.to - part.from),
            std::cmp::Ordering::Less => e.lshr(bits, part.from - part.to),
        }
    }

    /// The coordinate along `dim` of each register's element, `i32`s.
    pub fn indices(&mut self, layout: &Arc<LinearLayout>, dim: usize) -> Lowered<Vec<Value<'c>>> {
        let base = self.index_bases(layout)?[dim];
        let out = Dim::out(dim);
        // A dimension that the layout lacks has no bits: the mask is empty.
        let shift = layout.out_shift(out).unwrap_or(0);
        let mask = layout.out_mask(out);
        let along = |word: u64| (word & mask) >> shift;
        let thread_bits = [Dim::LANE, Dim::WARP, Dim::BLOCK]
            .iter()
            .flat_map(|input| layout.columns_of(*input))
            .fold(0, |bits, column| bits | along(*column));
        let columns = layout.columns_of(Dim::REGISTER);
        let mut made: FastMap<u64, Value<'c>> = FastMap::default();
        (0..1u64 << columns.len())
            .map(|register| {
                let offset = along(linear_layout::f2::mul(columns, register));
                if let Some(found) = made.get(&offset) {
                    return Ok(*found);
                }
                let value = if offset == 0 {
                    base
                } else if offset & thread_bits == 0 {
                    self.emit.displaced(base, offset as i64)?
                } else {
                    let offset = self.emit.const_i32(offset as i64)?;
                    self.emit.xor(base, offset)?
                };
                made.insert(offset, value);
                Ok(value)
            })
            .collect()
    }

    /// Whether this thread is the one that acts for all threads that hold the
    /// same elements: `(index & mask) == 0` for lane, warp and block. `None`
    /// when no thread holds copies.
    pub fn is_representative(&mut self, lanes: u64, warps: u64, blocks: u64) -> Lowered<Option<Value<'c>>> {
        if lanes | warps | blocks == 0 {
            return Ok(None);
        }
        let (lane, warp, block) = self.thread()?;
        let mut sum: Option<Value<'c>> = None;
        for (value, mask) in [(lane, lanes), (warp, warps), (block, blocks)] {
            if mask != 0 {
                let bits = self.emit.mask(value, mask as i64)?;
                sum = Some(match sum {
                    None => bits,
                    Some(sum) => self.emit.or(sum, bits)?,
                });
            }
        }
        let Some(sum) = sum else { return Ok(None) };
        let zero = self.emit.const_i32(0)?;
        Ok(Some(self.emit.icmp(ICmp::Eq, sum, zero)?))
    }
}

/// A run of input bits that goes to a run of output bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    from: u32,
    to: u32,
    len: u32,
}

impl Part {
    /// The bits that it sets.
    fn reached(self) -> u64 {
        ((1u64 << self.len) - 1) << self.to
    }
}

/// The contribution of `input` to output dimension `dim`.
fn along(layout: &LinearLayout, input: Dim, dim: Dim) -> Vec<u64> {
    // The mask of a dimension that the layout lacks is empty.
    let (shift, mask) = (layout.out_shift(dim).unwrap_or(0), layout.out_mask(dim));
    layout.columns_of(input).iter().map(|column| (column & mask) >> shift).collect()
}

/// The map from bit `i` to `columns[i]`, as runs of bits.
fn runs(columns: impl IntoIterator<Item = u64>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (bit, mut rest) in columns.into_iter().enumerate() {
        let from = bit as u32;
        while rest != 0 {
            let to = rest.trailing_zeros();
            rest &= rest - 1;
            // Extends the run that ends just below, if there is one.
            match parts.iter_mut().find(|part| part.from + part.len == from && part.to + part.len == to) {
                Some(part) => part.len += 1,
                None => parts.push(Part { from, to, len: 1 }),
            }
        }
    }
    parts
}
