//! `ldmatrix` and `stmatrix`.

use super::memory::Place;
use super::{Cta, Warp};
use crate::bytecode::*;
use crate::check::Kind;

/// Sixteen unsigned numbers of 4 or 6 bits, packed from the lowest bit on, as bytes.
fn unpacked(words: [u64; 2], bits: u8) -> [u8; 16] {
    let all = u128::from(words[0]) | u128::from(words[1]) << 64;
    std::array::from_fn(|i| ((all >> (i as u32 * u32::from(bits))) & ((1 << bits) - 1)) as u8)
}

impl<const W: usize> Cta<'_, W> {
    /// Where the rows of all matrices lie: those of matrix i at the addresses of its own lanes, in order.
    fn matrix_rows(
        &mut self,
        warp: &mut Warp<W>,
        at: &Access,
        form: MatrixForm,
        registers: usize,
        write: bool,
    ) -> Vec<Option<u32>> {
        let (addresses, active) = self.addresses(warp, at);
        let rows = 8 * registers;
        debug_assert!(form.rows() <= rows);
        let used = if rows >= 32 { u64::MAX } else { (1u64 << rows) - 1 };
        if warp.mask != super::warp::full::<W>() {
            self.report(warp, Kind::Divergent, 0, None, || {
                "ldmatrix or stmatrix is executed by a part of the warp".to_owned()
            });
        }
        let (places, good) = self.places(warp, at, &addresses, active & used, 16, write);
        let banks = self.shape.program.gpu.banks();
        let c = &mut self.counts.at[warp.pc as usize];
        // Eight rows fill a line.
        for part in 0..registers {
            let w = banks.waves(&addresses, good & (0xff << (8 * part)), 16, 16, write);
            c.wavefronts += w.total;
            c.conflicts += w.conflicts;
        }
        c.min_wavefronts += registers as u64;
        c.shared_bytes += 128 * registers as u64;
        places
            .iter()
            .take(rows)
            .map(|p| match p {
                Place::Shared(a) => Some(*a),
                _ => None,
            })
            .collect()
    }

    pub(super) fn ldmatrix(
        &mut self,
        warp: &mut Warp<W>,
        d: &[Reg],
        at: &Access,
        form: MatrixForm,
        packed: Option<u8>,
    ) {
        let rows = self.matrix_rows(warp, at, form, d.len(), false);
        let mut data = vec![[0u8; 16]; rows.len()];
        let mut undef_row = 0u64;
        for (r, (bytes, place)) in data.iter_mut().zip(&rows).enumerate() {
            let Some(a) = *place else { continue };
            let h = self.shared.note_read(a, 16, warp.together());
            if h.any() {
                self.hazard(warp, r as u32, u64::from(a), h, false);
            }
            if h.uninit {
                warp.uninit = Some((warp.pc, u64::from(a)));
                undef_row |= 1 << r;
            }
            let words = [self.shared.read(a, 8), self.shared.read(a + 8, 8)];
            *bytes = unpacked(words, packed.unwrap_or(8));
        }
        for (i, d) in d.iter().enumerate() {
            let (first, r) = (i / form.registers() * form.rows(), i % form.registers());
            let (mut out, mut undef) = ([0; W], 0);
            for (l, o) in out.iter_mut().enumerate().take(32) {
                for j in 0..4 {
                    let (row, byte) = form.place(l, r, j);
                    *o |= u64::from(data[first + row][byte]) << (8 * j);
                    undef |= (undef_row >> (first + row) & 1) << l;
                }
            }
            warp.set(*d, &out, undef);
        }
    }

    pub(super) fn stmatrix(&mut self, warp: &mut Warp<W>, v: &[Src], at: &Access, form: MatrixForm) {
        let rows = self.matrix_rows(warp, at, form, v.len(), true);
        for (i, s) in v.iter().enumerate() {
            let values = *warp.src(self.consts, *s);
            let undef = warp.undef(self.consts, *s);
            let mut data = [[0u8; 16]; 8];
            let mut unknown = [0u16; 8];
            for (l, value) in values.iter().enumerate().take(32) {
                for j in 0..4 {
                    let (row, byte) = form.place(l, 0, j);
                    data[row][byte] = (value >> (8 * j)) as u8;
                    unknown[row] |= ((undef >> l & 1) as u16) << byte;
                }
            }
            for (r, bytes) in data.iter().enumerate() {
                let Some(a) = rows[8 * i + r] else { continue };
                let mut h = self.shared.note_write(a, 16, warp.together());
                let all = u128::from_le_bytes(*bytes);
                let words = [all as u64, (all >> 64) as u64];
                // Writing what is there already harms nobody.
                if matches!(h.race, Some((_, true)))
                    && (self.shared.read(a, 8), self.shared.read(a + 8, 8)) == (words[0], words[1])
                {
                    h.race = None;
                }
                if h.any() {
                    self.hazard(warp, (8 * i + r) as u32, u64::from(a), h, true);
                }
                self.shared.write(a, 8, words[0]);
                self.shared.write(a + 8, 8, words[1]);
                for byte in (0..16).filter(|b| unknown[r] >> b & 1 != 0) {
                    self.shared.forget(a + byte, 1);
                }
            }
        }
    }
}
