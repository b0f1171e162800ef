//! What depends on the number of a thread: XOR-linear addresses and parities,
//! computed once in the prologue of a function.

use super::{Lower, Part, runs};
use crate::emit::{ICmp, Lowered};
use linear_layout::plan::{ThreadBases, ThreadMasks};
use mlir_host::ir::Value;

/// The columns of lane, warp and block that a value is made of.
pub(super) type Key = [Vec<u64>; 3];

impl<'c> Lower<'_, 'c> {
    /// The number that `bases`, scaled by the power of two `scale`, give this
    /// thread; an `i32`. Made once a function.
    pub fn thread_number(&mut self, bases: &ThreadBases, scale: u64) -> Lowered<Value<'c>> {
        let scaled = |columns: &[u64]| -> Vec<u64> {
            let used = columns.iter().rposition(|c| *c != 0).map_or(0, |last| last + 1);
            columns[..used].iter().map(|c| c * scale).collect()
        };
        let key = [scaled(&bases.lane), scaled(&bases.warp), scaled(&bases.block)];
        if let Some(found) = self.function()?.numbers.get(&key) {
            return Ok(*found);
        }
        let (lane, warp, block) = self.thread()?;
        let number = self.in_prologue(|l| l.combine([lane, warp, block], &key))?;
        self.function()?.numbers.insert(key, number);
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
        if let Some(found) = self.function()?.parities.get(&masks) {
            return Ok(*found);
        }
        let (lane, warp, block) = self.thread()?;
        let bits = masks.lane.count_ones() + masks.warp.count_ones() + masks.block.count_ones();
        let odd = self.in_prologue(|l| {
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
        self.function()?.parities.insert(masks, odd);
        Ok(odd)
    }
}

impl Part {
    /// The bits that it sets.
    fn reached(self) -> u64 {
        ((1u64 << self.len) - 1) << self.to
    }
}
