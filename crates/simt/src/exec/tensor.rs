//! Matrix instructions of a warp.

use super::{Cta, Warp};
use crate::bytecode::*;
use crate::check::Kind;
use crate::mma;
use crate::shared::RANK_SHIFT;
use crate::wgmma::Descriptor;

/// The shape of an operation, as a number.
fn shape(m: &Wgmma) -> u32 {
    m.n << 8 | m.k
}

impl<const W: usize> Cta<'_, W> {
    fn whole_warp(&mut self, warp: &Warp<W>, what: &'static str) {
        if warp.mask != super::warp::full::<W>() {
            self.report(warp, Kind::Divergent, 0, None, || {
                format!("{what} is executed by a part of the warp")
            });
        }
    }

    pub(super) fn mma(&mut self, warp: &mut Warp<W>, m: &Mma) {
        self.whole_warp(warp, "a matrix instruction");
        for s in m.a.iter().chain(m.b.iter()).chain(m.c.iter()).chain(m.scales.iter()) {
            self.demand(warp, *s, warp.mask, "a matrix operand");
        }
        let mut out = vec![[0u64; W]; m.d.len()];
        {
            let lists = [&m.a, &m.b, &m.c, &m.scales];
            let read = |op: usize, r: usize, l: usize| warp.src(self.consts, lists[op][r])[l];
            mma::multiply(m, W, read, |r, l, bits| out[r][l] = bits);
        }
        for (d, v) in m.d.iter().zip(&out) {
            warp.set(*d, v, 0);
        }
    }

    pub(super) fn wgmma(&mut self, warp: &mut Warp<W>, m: &Wgmma) {
        self.whole_warp(warp, "wgmma");
        if !warp.index.is_multiple_of(4) && self.shape.threads < 128 {
            self.report(warp, Kind::Invalid, 0, None, || "wgmma needs a group of four warps".to_owned());
        }
        let (n, k) = (m.n as usize, m.k as usize);
        let t = m.ab.0.bits() / 8;
        let b_desc = Descriptor::new(warp.uniform(self.consts, m.b));
        self.demand(warp, m.b, warp.mask, "a matrix descriptor");
        self.check_registers(warp, m);
        let mut ranges = Vec::new();
        // A: sixteen rows of this warp.
        let mut a = vec![0.0; 16 * k];
        if m.a.len() == 1 {
            self.demand(warp, m.a[0], warp.mask, "a matrix descriptor");
            let desc = Descriptor::new(warp.uniform(self.consts, m.a[0]));
            let first = 16 * (warp.index % 4);
            self.shared_operand(warp, desc, (first, 16), (m.k, t), m.trans.0, &mut ranges, |i, d, bits| {
                a[i * k + d] = mma::value(m.ab.0, bits);
            });
        } else {
            let e = 32 / m.ab.0.bits() as usize;
            for (r, s) in m.a.iter().enumerate() {
                self.demand(warp, *s, warp.mask, "a matrix operand");
                let v = warp.src(self.consts, *s);
                for (l, word) in v.iter().enumerate() {
                    for j in 0..e {
                        let (row, d) = (l / 4 + 8 * (r % 2), e * (l % 4) + j + 4 * e * (r / 2));
                        a[row * k + d] = mma::value(m.ab.0, word >> (j as u32 * m.ab.0.bits()));
                    }
                }
            }
        }
        let mut b = vec![0.0; k * n];
        self.shared_operand(warp, b_desc, (0, m.n), (m.k, t), m.trans.1, &mut ranges, |i, d, bits| {
            b[d * n + i] = mma::value(m.ab.1, bits);
        });
        if m.neg.0 != m.neg.1 {
            a.iter_mut().for_each(|v| *v = -*v);
        }
        let keep = warp.uniform(self.consts, m.scale_d) & 1 != 0;
        let packed = m.cd == Elem::F16;
        let count = if packed { m.d.len() * 2 } else { m.d.len() };
        // Element i of a lane: row l / 4 + 8·(i / 2 mod 2), column 8·(i / 4) + 2·(l mod 4) + i mod 2.
        let place = |l: usize, i: usize| (l / 4 + 8 * (i / 2 % 2)) * n + 8 * (i / 4) + 2 * (l % 4) + i % 2;
        let mut sums = vec![0.0; 16 * n];
        let group = warp.wgmma_committed + 1;
        if keep {
            for i in 0..count {
                let s = m.c[if packed { i / 2 } else { i }];
                // Accumulators of earlier wgmmas may be used without a wait.
                if warp.tag_of(s) == 0 && (!packed || i % 2 == 0) {
                    self.demand(warp, s, warp.mask, "an accumulator");
                }
                let v = warp.src(self.consts, s);
                for (l, word) in v.iter().enumerate() {
                    sums[place(l, i)] = mma::value(m.cd, if packed { word >> (16 * (i % 2)) } else { *word });
                }
            }
        }
        mma::product(&a, &b, &mut sums, k, n, false);
        for (r, d) in m.d.iter().enumerate() {
            let mut out = [0; W];
            for (l, o) in out.iter_mut().enumerate() {
                *o = if packed {
                    let half = |j: usize| mma::rounded(m.cd, sums[place(l, 2 * r + j)], false);
                    half(0) | half(1) << 16
                } else {
                    mma::rounded(m.cd, sums[place(l, r)], m.saturate)
                };
            }
            warp.set(*d, &out, u64::MAX);
            warp.tag(*d, group, shape(m));
        }
        warp.open_wgmma.ranges.append(&mut ranges);
        if m.a.len() > 1 {
            let regs = m.a.iter().filter_map(|s| s.split().ok());
            let regs: Vec<(Reg, u64)> = regs.map(|r| (r, warp.written(Src::reg(r)))).collect();
            warp.open_wgmma.regs.extend(regs);
        }
    }

    /// Registers of A and accumulators must not have been touched since the last `wgmma.fence`, but for accumulators
    /// of operations of one shape (PTX ISA, "wgmma.fence").
    fn check_registers(&mut self, warp: &Warp<W>, m: &Wgmma) {
        let Some(fence) = warp.fence_tick else {
            self.report(warp, Kind::MissingFence, 0, None, || "a wgmma before any wgmma.fence".to_owned());
            return;
        };
        let fragments: &[Src] = if m.a.len() > 1 { &m.a } else { &[] };
        for s in fragments.iter().chain(&m.c) {
            let written = warp.written(*s);
            if written != 0 && (written >> 32) as u32 > fence {
                self.register_hazard(warp, Kind::MissingFence, written as u32, |place| {
                    format!("a register of a wgmma is written{place} with no wgmma.fence between")
                });
            }
        }
        if m.c.iter().any(|s| warp.tag_of(*s) != 0 && warp.shape_of(*s) != shape(m)) {
            self.report(warp, Kind::MissingFence, 0, None, || {
                "the accumulators of a wgmma are those of one of another shape that has not been waited for"
                    .to_owned()
            });
        }
    }

    /// Reads rows `first .. first + rows` of an operand in shared memory.
    fn shared_operand(
        &mut self,
        warp: &mut Warp<W>,
        desc: Descriptor,
        (first, rows): (u32, u32),
        (k, t): (u32, u32),
        mn: bool,
        ranges: &mut Vec<(u32, u32)>,
        mut put: impl FnMut(usize, usize, u64),
    ) {
        if !desc.plain {
            self.report(warp, Kind::Invalid, 0, None, || "a matrix descriptor with a base offset".to_owned());
        }
        // Sixteen bytes that are contiguous: along the depth, or along the rows.
        let per = 16 / t;
        let (outer, inner) = if mn { (k, rows) } else { (rows, k) };
        for o in 0..outer {
            for chunk in 0..inner / per {
                let (i, d) = if mn { (first + chunk * per, o) } else { (first + o, chunk * per) };
                let at = warp.rank << RANK_SHIFT | desc.address(i, d, t, mn);
                if !self.shared.contains(u64::from(at), 16) {
                    self.report(warp, Kind::OutOfBounds, 0, Some(u64::from(at)), || {
                        "a matrix descriptor points outside shared memory".to_owned()
                    });
                    continue;
                }
                let h = self.shared.begin_read(at, 16, warp.together_async());
                if h.any() {
                    self.hazard(warp, 0, u64::from(at), h, false);
                }
                if h.uninit {
                    warp.uninit = Some((warp.pc, u64::from(at)));
                    self.report(warp, Kind::Uninitialized, 0, Some(u64::from(at)), || {
                        "wgmma reads uninitialized shared memory".to_owned()
                    });
                }
                ranges.push((at, 16));
                for e in 0..per {
                    let bits = self.shared.read(at + e * t, t as u8);
                    let (i, d) = if mn { (i + e, d) } else { (i, d + e) };
                    put((i - first) as usize, d as usize, bits);
                }
            }
        }
    }

    pub(super) fn wgmma_commit(&mut self, warp: &mut Warp<W>) {
        warp.wgmma_committed += 1;
        let operands = std::mem::take(&mut warp.open_wgmma);
        warp.wgmma.push((warp.wgmma_committed, operands));
    }

    pub(super) fn wgmma_wait(&mut self, warp: &mut Warp<W>, keep: u32) {
        let done = warp.wgmma_committed.saturating_sub(keep);
        let mut groups = std::mem::take(&mut warp.wgmma);
        for (_, operands) in groups.iter().filter(|g| g.0 <= done) {
            for (at, n) in &operands.ranges {
                self.shared.end_read(*at, *n, warp.together_async());
            }
            for (r, before) in &operands.regs {
                let written = warp.written(Src::reg(*r));
                if written != *before && written != 0 {
                    self.register_hazard(warp, Kind::AsyncHazard, written as u32, |place| {
                        format!(
                            "a register of A is written{place} before the wait for the wgmma that reads it"
                        )
                    });
                }
            }
        }
        groups.retain(|g| g.0 > done);
        warp.wgmma = groups;
        warp.settle(done);
    }
}
