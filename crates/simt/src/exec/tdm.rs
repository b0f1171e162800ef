//! Tensor operations of AMD's tensor data mover. As other asynchronous operations they take effect as late as they may: a load
//! writes shared memory at the wait for it, a store reads shared memory and writes global memory at the wait.

use std::sync::atomic::Ordering;

use super::warp::TensorMove;
use super::{Cta, Warp};
use crate::bytecode::*;
use crate::check::Kind;
use crate::shared::{Epoch, SEVERAL, Who};
use crate::tdm::{Descriptor, Row};

/// A warp's tensor operation as an accessor. There are no proxies, so no fences between them.
fn mover<const W: usize>(warp: &Warp<W>) -> Who<'_> {
    Who { fenced: None, ..warp.together_async() }
}

impl<const W: usize> Cta<'_, W> {
    /// Begins an operation, which counts whether it moves anything or not.
    pub(super) fn tensor_move(&mut self, warp: &mut Warp<W>, loads: bool, words: &[Src]) {
        let (mask, live) = (warp.mask, warp.live);
        if mask != live {
            self.report(warp, Kind::Divergent, (live & !mask).trailing_zeros(), None, || {
                format!("a tensor operation, which is one of the wave, is executed by the lanes {mask:#x} of {live:#x}")
            });
        }
        let mut values = Vec::with_capacity(words.len());
        for word in words {
            self.demand(warp, *word, mask, "a word of a tensor's descriptor");
            let first = warp.uniform(self.consts, *word) as u32;
            let lanes = warp.src(self.consts, *word);
            if (0..W).any(|l| mask >> l & 1 != 0 && lanes[l] as u32 != first) {
                self.report(warp, Kind::Divergent, 0, None, || {
                    "lanes have different descriptors of a tensor".to_owned()
                });
            }
            values.push(first);
        }
        let rows = match Descriptor::new(&values) {
            Ok(made) if made.active => made.rows(loads),
            Ok(_) => Vec::new(),
            Err(why) => {
                self.report(warp, Kind::Invalid, 0, None, || why);
                Vec::new()
            }
        };
        let element = Descriptor::new(&values).map_or(1, |made| made.bytes);
        let mut begun = Vec::with_capacity(rows.len());
        for row in rows {
            let at = warp.shared(row.shared.into());
            // What a store reads that is outside of the tensor may be outside of the buffer, too.
            let bytes = if loads { row.bytes } else { row.inside };
            if bytes == 0 {
                continue;
            }
            if !row.global.is_multiple_of(element) && row.inside > 0 {
                self.report(warp, Kind::Misaligned, 0, Some(row.global), || {
                    format!("a tensor operation on elements of {element} bytes")
                });
            }
            if !self.shared.contains(at.into(), bytes.into()) {
                self.report(warp, Kind::OutOfBounds, 0, Some(row.shared.into()), || {
                    "a tensor operation outside shared memory".to_owned()
                });
                continue;
            }
            let data = if loads { self.load_row(warp, &row) } else { Vec::new() };
            let h = if loads {
                self.shared.begin_write(at, bytes, mover(warp))
            } else {
                self.shared.begin_read(at, bytes, mover(warp))
            };
            if h.any() {
                self.hazard(warp, 0, at.into(), h, loads);
            }
            if h.uninit && !loads {
                self.report(warp, Kind::Uninitialized, 0, Some(at.into()), || {
                    "a tensor operation reads uninitialized shared memory".to_owned()
                });
            }
            self.count_row(warp, &row, bytes);
            begun.push((at, Row { bytes, ..row }, data));
        }
        warp.tensors.push(TensorMove { loads, rows: begun, pc: warp.pc });
    }

    /// What a load writes: zeros outside of the tensor.
    fn load_row(&mut self, warp: &Warp<W>, row: &Row) -> Vec<u8> {
        let mut data = vec![0; row.bytes as usize];
        if row.inside == 0 {
            return data;
        }
        match self.shape.global.locate(row.global, row.inside.into()) {
            Ok((b, o)) => {
                (0..row.inside as usize).for_each(|i| data[i] = b.read(o + i as u64, 1) as u8);
                self.check_order(warp, SEVERAL as usize, row.global, row.inside.into(), warp.together());
            }
            Err(fault) => {
                self.report(warp, Kind::OutOfBounds, 0, Some(row.global), || {
                    format!("a tensor operation reads {} bytes outside: {fault:?}", row.inside)
                });
            }
        }
        data
    }

    /// Rows have all banks of shared memory in turn.
    fn count_row(&mut self, warp: &Warp<W>, row: &Row, bytes: u32) {
        const BANK_BYTES: u64 = 32 * 4;
        let c = &mut self.counts.at[warp.pc as usize];
        if row.inside > 0 {
            c.sectors += ((row.global + u64::from(row.inside) - 1) >> 5) - (row.global >> 5) + 1;
            c.min_sectors += u64::from(row.inside).div_ceil(32);
            c.global_bytes += u64::from(row.inside);
        }
        c.wavefronts += u64::from(bytes).div_ceil(BANK_BYTES);
        c.min_wavefronts += u64::from(bytes).div_ceil(BANK_BYTES);
        c.shared_bytes += u64::from(bytes);
    }

    /// All but the latest `keep` operations of the warp are done.
    pub(super) fn tensor_wait(&mut self, warp: &mut Warp<W>, keep: u32) {
        let done = warp.tensors.len().saturating_sub(keep as usize);
        let moves: Vec<TensorMove> = warp.tensors.drain(..done).collect();
        moves.iter().for_each(|done| self.finish_move(warp, done));
    }

    fn finish_move(&mut self, warp: &Warp<W>, done: &TensorMove) {
        let now = Epoch::new(warp.slot, SEVERAL, warp.order.now(), done.pc);
        for (at, row, data) in &done.rows {
            if done.loads {
                self.shared.bytes_mut(*at, row.bytes).copy_from_slice(data);
                self.shared.end_write(*at, row.bytes, now);
                continue;
            }
            match self.shape.global.locate_mut(row.global, row.inside.into()) {
                Ok((b, o)) => {
                    self.stored.note_write(row.global, row.inside.into(), warp.together());
                    for i in 0..row.inside {
                        let byte = self.shared.read(at + i, 1);
                        b.write(o + u64::from(i), 1, byte);
                    }
                }
                Err(fault) => self.report(warp, Kind::OutOfBounds, 0, Some(row.global), || {
                    format!("a tensor operation writes {} bytes outside: {fault:?}", row.inside)
                }),
            }
            self.shared.end_read(*at, row.bytes, Who { now, ..warp.together() });
        }
        self.shape.progress.fetch_add(1, Ordering::Relaxed);
    }
}
