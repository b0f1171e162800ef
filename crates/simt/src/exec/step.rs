//! One instruction of one warp.

use super::warp::Message;
use super::{Cta, State, Warp};
use crate::alu;
use crate::bytecode::*;
use crate::check::Kind;
use crate::mem::LOCAL_WINDOW;
use crate::num::{self, Round};
use crate::shared::{Epoch, SEVERAL};

/// Runs a closure on every lane of two operands.
macro_rules! lanes2 {
    ($self:ident, $warp:ident, $d:expr, $a:expr, $b:expr, |$x:ident, $y:ident| $body:expr) => {{
        let undef = $warp.undef($self.consts, $a) | $warp.undef($self.consts, $b);
        let mut out = [0u64; W];
        {
            let (p, q) = ($warp.src($self.consts, $a), $warp.src($self.consts, $b));
            for l in 0..W {
                let ($x, $y) = (p[l], q[l]);
                out[l] = $body;
            }
        }
        $self.finish_value($warp, $d, &out, undef, &[$a, $b]);
    }};
}

macro_rules! lanes1 {
    ($self:ident, $warp:ident, $d:expr, $a:expr, |$x:ident| $body:expr) => {{
        let undef = $warp.undef($self.consts, $a);
        let mut out = [0u64; W];
        {
            let p = $warp.src($self.consts, $a);
            for l in 0..W {
                let $x = p[l];
                out[l] = $body;
            }
        }
        $self.finish_value($warp, $d, &out, undef, &[$a]);
    }};
}

macro_rules! lanes3 {
    ($self:ident, $warp:ident, $d:expr, $a:expr, $b:expr, $c:expr, |$x:ident, $y:ident, $z:ident| $body:expr) => {{
        let undef =
            $warp.undef($self.consts, $a) | $warp.undef($self.consts, $b) | $warp.undef($self.consts, $c);
        let mut out = [0u64; W];
        {
            let (p, q, r) =
                ($warp.src($self.consts, $a), $warp.src($self.consts, $b), $warp.src($self.consts, $c));
            for l in 0..W {
                let ($x, $y, $z) = (p[l], q[l], r[l]);
                out[l] = $body;
            }
        }
        $self.finish_value($warp, $d, &out, undef, &[$a, $b, $c]);
    }};
}

impl<const W: usize> Cta<'_, W> {
    /// Writes a result; operands that still belong to an asynchronous operation are reported.
    #[inline(always)]
    fn finish_value(&mut self, warp: &mut Warp<W>, d: Reg, out: &[u64; W], undef: u64, from: &[Src]) {
        if undef & warp.mask != 0 {
            self.used_early(warp, from);
        }
        warp.set(d, out, undef);
    }

    /// Reports operands that an asynchronous matrix operation has yet to write.
    #[cold]
    pub(super) fn used_early(&mut self, warp: &Warp<W>, from: &[Src]) {
        if from.iter().any(|s| warp.tag_of(*s) != 0) {
            self.report(warp, Kind::AsyncHazard, warp.mask.trailing_zeros(), None, || {
                "the result of a wgmma is used before its wait".to_owned()
            });
        }
    }

    /// Reports a register of an asynchronous matrix operation that was written at instruction `pc`.
    pub(super) fn register_hazard(
        &mut self,
        warp: &Warp<W>,
        kind: Kind,
        pc: u32,
        message: impl FnOnce(&str) -> String,
    ) {
        let place = self.place(pc);
        let other = Epoch::new(warp.slot, SEVERAL, 0, pc);
        let here = (warp.pc, warp.slot, warp.mask.trailing_zeros());
        self.report_pair(kind, here, Some(other), None, || message(&place));
    }

    /// Reports an undefined value that decides something.
    #[inline(always)]
    pub(super) fn demand(&mut self, warp: &Warp<W>, s: Src, lanes: u64, use_as: &'static str) {
        let undef = warp.undef(self.consts, s) & lanes;
        if undef != 0 {
            self.undefined(warp, s, undef, use_as);
        }
    }

    #[cold]
    fn undefined(&mut self, warp: &Warp<W>, s: Src, undef: u64, use_as: &'static str) {
        if warp.tag_of(s) != 0 {
            self.used_early(warp, &[s]);
            return;
        }
        let origin = match warp.uninit {
            Some((pc, addr)) => {
                format!("; uninitialized memory at {addr:#x} was last read{}", self.place(pc))
            }
            None => String::new(),
        };
        self.report(warp, Kind::Uninitialized, undef.trailing_zeros(), None, || {
            format!("an undefined value is used as {use_as}{origin}")
        });
    }

    pub(super) fn step(&mut self, warp: &mut Warp<W>) {
        while warp.pc == warp.join {
            warp.pop();
            if warp.state == State::Ended {
                return;
            }
        }
        let pc = warp.pc as usize;
        let shape = self.shape;
        let op = &shape.program.code[pc];
        let count = &mut self.counts.at[pc];
        count.instructions += 1;
        count.lanes += u64::from(warp.mask.count_ones());
        self.executed += 1;
        warp.tick = warp.tick.wrapping_add(1);
        if let Some(t) = shape.trace
            && t.warp == warp.index
            && t.program == self.id_of(warp.rank)
            && warp.mask >> t.lane & 1 != 0
        {
            self.trace_before(warp, op, t.lane);
            self.execute(warp, op);
            self.trace_after(warp, op, pc, t.lane);
            return;
        }
        self.execute(warp, op);
    }

    /// Executes one operation and moves on.
    #[inline(always)]
    fn execute(&mut self, warp: &mut Warp<W>, op: &Op) {
        match op {
            Op::Jump { to } => {
                warp.pc = *to;
                return;
            }
            Op::Branch { c, yes, no, join } => {
                self.demand(warp, *c, warp.mask, "a branch condition");
                let v = warp.src(self.consts, *c);
                let mut taken = 0;
                for (l, x) in v.iter().enumerate() {
                    taken |= (x & 1) << l;
                }
                warp.branch(taken & warp.mask, *yes, *no, *join);
                return;
            }
            Op::Exit => {
                self.end_of_lanes(warp);
                return;
            }
            Op::Nop(_) => {}
            Op::Trap => {
                self.report(warp, Kind::Assertion, warp.mask.trailing_zeros(), None, || {
                    "the program trapped".to_owned()
                });
                warp.end_lanes();
                return;
            }
            Op::Assert { message, file, line, func } => self.assert(warp, [*message, *file, *line, *func]),
            Op::Print { format, args } => self.printf(warp, *format, *args),
            Op::Message { d, part, last } => self.message(warp, *d, part, *last),
            Op::Ld { d, at } => self.load(warp, d, at),
            Op::St { v, at } => self.store(warp, v, at),
            Op::Atom { op, d, v, cmp, at } => self.atom(warp, *op, d, v, cmp, at),
            Op::LdMatrix { d, addr, form, packed } => self.ldmatrix(warp, d, addr, *form, *packed),
            Op::StMatrix { v, addr, form } => self.stmatrix(warp, v, addr, *form),
            Op::Shfl { kind, d, p, v, b, c, mask } => self.shfl(warp, *kind, *d, *p, [*v, *b, *c, *mask]),
            Op::Vote { kind, d, v, mask } => self.vote(warp, *kind, *d, *v, *mask),
            Op::Match { all, d, p, v, mask } => self.matching(warp, *all, *d, *p, *v, *mask),
            Op::MapShared { d, addr, rank } => self.map_shared(warp, *d, *addr, *rank),
            Op::RankOf { d, addr } => self.rank_of(warp, *d, *addr),
            Op::Elect { d, p, mask } => self.elect(warp, *d, *p, *mask),
            Op::Permute { kind, d, d2, v, idx, c } => self.permute(warp, *kind, *d, *d2, [*v, *idx, *c]),
            Op::Dpp(x) => self.dpp(warp, x),
            Op::ReadLane { d, v, lane } => self.read_lane(warp, *d, *v, *lane),
            Op::WriteLane { d, old, v, lane } => self.write_lane(warp, *d, *old, *v, *lane),
            Op::Mma(m) => self.mma(warp, m),
            Op::Wgmma(m) => self.wgmma(warp, m),
            _ => {
                if !self.compute(warp, op) && !self.transfer(warp, op) && !self.synchronize(warp, op) {
                    return;
                }
            }
        }
        warp.pc += 1;
    }

    /// Executes arithmetic of every lane for itself. False: it is none.
    #[inline(always)]
    fn compute(&mut self, warp: &mut Warp<W>, op: &Op) -> bool {
        match op {
            Op::Undef { d } => warp.set(*d, &[0; W], u64::MAX),
            Op::Int { op, w, d, a, b } => self.int(warp, *op, *w, *d, *a, *b),
            Op::IntUn { op, w, d, a } => {
                lanes1!(self, warp, *d, *a, |x| alu::low(alu::int_un(*op, *w, x), *w))
            }
            Op::IntTern { op, w, d, a, b, c } => {
                lanes3!(self, warp, *d, *a, *b, *c, |x, y, z| alu::low(alu::int_tern(*op, *w, x, y, z), *w));
            }
            Op::Float { op, f, round, ftz, d, a, b } => self.float(warp, *op, *f, *round, *ftz, *d, *a, *b),
            Op::FloatUn { op, f, round, ftz, d, a, .. } => match (op, f) {
                (FloatUn::Neg, Fmt::F32) => lanes1!(self, warp, *d, *a, |x| x ^ 0x8000_0000),
                _ => lanes1!(self, warp, *d, *a, |x| alu::float_un(*op, *f, *round, *ftz, x)),
            },
            Op::Fma { f, round, ftz, relu, d, a, b, c } => {
                if (*f, *round, *ftz, *relu) == (Fmt::F32, Round::Nearest, false, false) {
                    lanes3!(self, warp, *d, *a, *b, *c, |x, y, z| alu::fma(
                        Fmt::F32,
                        Round::Nearest,
                        false,
                        false,
                        x,
                        y,
                        z
                    ));
                } else {
                    lanes3!(self, warp, *d, *a, *b, *c, |x, y, z| alu::fma(*f, *round, *ftz, *relu, x, y, z));
                }
            }
            Op::Med3 { d, a, b, c } => lanes3!(self, warp, *d, *a, *b, *c, |x, y, z| {
                let [x, y, z] = [x, y, z].map(|v| f32::from_bits(v as u32));
                u64::from(x.min(y).max(x.max(y).min(z)).to_bits())
            }),
            Op::Dot2 { f, d, a, b, c } => self.dot2(warp, *f, *d, *a, *b, *c),
            Op::ICmp { op, w, d, a, b } => match op {
                Cmp::Eq => lanes2!(self, warp, *d, *a, *b, |x, y| u64::from(x == y)),
                Cmp::SLt => {
                    lanes2!(self, warp, *d, *a, *b, |x, y| u64::from(alu::sext(x, *w) < alu::sext(y, *w)))
                }
                _ => lanes2!(self, warp, *d, *a, *b, |x, y| u64::from(alu::icmp(*op, *w, x, y))),
            },
            Op::FCmp { op, f: Fmt::F32, ftz: true, d, a, b } => {
                let value = |v| f64::from(num::flush(alu::to_f32(Fmt::F32, v)));
                lanes2!(self, warp, *d, *a, *b, |x, y| u64::from(alu::fcmp(*op, value(x), value(y))));
            }
            Op::FCmp { op, f, d, a, b, .. } => {
                lanes2!(self, warp, *d, *a, *b, |x, y| u64::from(alu::fcmp(
                    *op,
                    alu::to_f64(*f, x),
                    alu::to_f64(*f, y)
                )));
            }
            Op::FClass { f, mask, d, a } => {
                lanes1!(self, warp, *d, *a, |x| u64::from(alu::class(*f, x) & mask != 0))
            }
            Op::Select { d, c, a, b } => self.select(warp, *d, *c, *a, *b),
            Op::Cvt { cvt, d, a } => match *cvt {
                Cvt::Zext(w) => lanes1!(self, warp, *d, *a, |x| alu::low(x, w)),
                Cvt::Sext(w, to) => lanes1!(self, warp, *d, *a, |x| alu::low(alu::sext(x, w) as u64, to)),
                cvt => lanes1!(self, warp, *d, *a, |x| alu::convert(cvt, x)),
            },
            Op::Lea { d, base, index, index_bits, stride, offset, bits } => {
                lanes2!(self, warp, *d, *base, *index, |x, y| {
                    let at = x.wrapping_add(
                        (alu::sext(y, *index_bits).wrapping_mul(*stride).wrapping_add(*offset)) as u64,
                    );
                    alu::low(at, *bits)
                });
            }
            _ => return false,
        }
        true
    }

    /// Executes what moves values and says where a lane is. False: it is nothing of that.
    #[inline(always)]
    fn transfer(&mut self, warp: &mut Warp<W>, op: &Op) -> bool {
        match op {
            Op::Mov { d, s } => self.copy(warp, *d, *s, false),
            Op::Freeze { d, s } => self.copy(warp, *d, *s, true),
            // Halves in one register are one value of LLVM's, but two here: packing and unpacking are mostly no
            // instructions of the machine. So they do not use what is not there yet, and write nothing new.
            Op::Bits { d, a, shift, width } => {
                let (tag, shape) = (warp.tag_of(*a), warp.shape_of(*a));
                if tag == 0 {
                    lanes1!(self, warp, *d, *a, |x| alu::low(x >> shift, *width));
                    warp.carry(*d, &[*a]);
                } else {
                    let out = warp.src(self.consts, *a).map(|x| alu::low(x >> shift, *width));
                    warp.set(*d, &out, u64::MAX);
                    warp.tag(*d, tag, shape);
                }
            }
            Op::Join { d, a, b, shift } => {
                let (tag, shape) = (warp.tag_of(*a).max(warp.tag_of(*b)), warp.shape_of(*a));
                if tag == 0 {
                    lanes2!(self, warp, *d, *a, *b, |x, y| x | y << shift);
                    warp.carry(*d, &[*a, *b]);
                } else {
                    let mut out = *warp.src(self.consts, *a);
                    let high = warp.src(self.consts, *b);
                    out.iter_mut().zip(high).for_each(|(o, h)| *o |= h << shift);
                    warp.set(*d, &out, u64::MAX);
                    warp.tag(*d, tag, shape);
                }
            }
            Op::Pick { d, index, items } => self.pick(warp, *d, *index, items),
            Op::Special { d, what } => {
                let v = self.special(warp, *what);
                warp.set(*d, &v, 0);
            }
            Op::Mbcnt { d, high, mask, a } => self.mbcnt(warp, *d, *high, *mask, *a),
            _ => return false,
        }
        true
    }

    /// Copies a register, with what it waits for; `freeze`: undefined lanes count as defined.
    #[inline(always)]
    fn copy(&mut self, warp: &mut Warp<W>, d: Reg, s: Src, freeze: bool) {
        let v = *warp.src(self.consts, s);
        let undef = warp.undef(self.consts, s);
        let tag = if undef != 0 && warp.has_tags() { warp.tag_of(s) } else { 0 };
        if warp.has_tags() {
            warp.untag(d);
        }
        let shape = warp.shape_of(s);
        warp.set(d, &v, if freeze && tag == 0 { 0 } else { undef });
        if tag != 0 {
            warp.tag(d, tag, shape);
        }
        warp.carry(d, &[s]);
    }

    fn pick(&mut self, warp: &mut Warp<W>, d: Reg, index: Src, items: &[Src]) {
        let mut out = [0; W];
        let mut undef = warp.undef(self.consts, index);
        let idx = *warp.src(self.consts, index);
        for (l, o) in out.iter_mut().enumerate() {
            match items.get(idx[l] as usize) {
                Some(s) => {
                    *o = warp.src(self.consts, *s)[l];
                    undef |= warp.undef(self.consts, *s) & (1 << l);
                }
                None => undef |= 1 << l,
            }
        }
        warp.set(d, &out, undef);
    }

    fn mbcnt(&mut self, warp: &mut Warp<W>, d: Reg, high: bool, mask: Src, a: Src) {
        let (m, x) = (*warp.src(self.consts, mask), *warp.src(self.consts, a));
        let mut out = [0; W];
        for (l, o) in out.iter_mut().enumerate() {
            let below = (1u64 << l) - 1;
            let part = if high { below >> 32 } else { below & 0xffff_ffff };
            *o = alu::low(x[l] + u64::from((m[l] & part).count_ones()), 32);
        }
        let undef = warp.undef(self.consts, mask) | warp.undef(self.consts, a);
        warp.set(d, &out, undef);
    }

    #[inline(always)]
    fn int(&mut self, warp: &mut Warp<W>, op: IntOp, w: u8, d: Reg, a: Src, b: Src) {
        match op {
            IntOp::Add => lanes2!(self, warp, d, a, b, |x, y| alu::low(x.wrapping_add(y), w)),
            IntOp::Sub => lanes2!(self, warp, d, a, b, |x, y| alu::low(x.wrapping_sub(y), w)),
            IntOp::Mul => lanes2!(self, warp, d, a, b, |x, y| alu::low(x.wrapping_mul(y), w)),
            IntOp::And => lanes2!(self, warp, d, a, b, |x, y| x & y),
            IntOp::Or => lanes2!(self, warp, d, a, b, |x, y| x | y),
            IntOp::Xor => lanes2!(self, warp, d, a, b, |x, y| x ^ y),
            IntOp::Shl => {
                lanes2!(self, warp, d, a, b, |x, y| if y >= u64::from(w) {
                    0
                } else {
                    alu::low(x << (y & 63), w)
                });
            }
            IntOp::LShr => {
                lanes2!(self, warp, d, a, b, |x, y| if y >= u64::from(w) { 0 } else { x >> (y & 63) })
            }
            _ => lanes2!(self, warp, d, a, b, |x, y| alu::low(alu::int(op, w, x, y), w)),
        }
    }

    #[inline(always)]
    fn float(
        &mut self,
        warp: &mut Warp<W>,
        op: FloatOp,
        f: Fmt,
        round: Round,
        ftz: bool,
        d: Reg,
        a: Src,
        b: Src,
    ) {
        let f32s = |x: u64, y: u64| (f32::from_bits(x as u32), f32::from_bits(y as u32));
        let bits = |v: f32| u64::from(v.to_bits());
        if f == Fmt::F32 && round == Round::Nearest && !ftz {
            match op {
                FloatOp::Add => lanes2!(self, warp, d, a, b, |x, y| {
                    let (x, y) = f32s(x, y);
                    bits(x + y)
                }),
                FloatOp::Sub => lanes2!(self, warp, d, a, b, |x, y| {
                    let (x, y) = f32s(x, y);
                    bits(x - y)
                }),
                FloatOp::Mul => lanes2!(self, warp, d, a, b, |x, y| {
                    let (x, y) = f32s(x, y);
                    bits(x * y)
                }),
                _ => lanes2!(self, warp, d, a, b, |x, y| alu::float(op, f, round, ftz, x, y)),
            }
        } else {
            lanes2!(self, warp, d, a, b, |x, y| alu::float(op, f, round, ftz, x, y));
        }
    }

    fn dot2(&mut self, warp: &mut Warp<W>, f: Fmt, d: Reg, a: [Src; 2], b: [Src; 2], c: Src) {
        let mut out = [0; W];
        let mut undef = warp.undef(self.consts, c);
        for s in a.iter().chain(&b) {
            undef |= warp.undef(self.consts, *s);
        }
        for (l, o) in out.iter_mut().enumerate() {
            let v = |s: Src| alu::to_f64(f, warp.src(self.consts, s)[l]);
            let sum = v(a[0]) * v(b[0])
                + v(a[1]) * v(b[1])
                + f64::from(f32::from_bits(warp.src(self.consts, c)[l] as u32));
            *o = u64::from((sum as f32).to_bits());
        }
        warp.set(d, &out, undef);
    }

    /// Only the side that is chosen needs to be defined.
    #[inline(always)]
    fn select(&mut self, warp: &mut Warp<W>, d: Reg, c: Src, a: Src, b: Src) {
        let (uc, ua, ub) =
            (warp.undef(self.consts, c), warp.undef(self.consts, a), warp.undef(self.consts, b));
        let mut out = [0; W];
        let mut chosen = 0u64;
        {
            let (p, q, r) = (warp.src(self.consts, c), warp.src(self.consts, a), warp.src(self.consts, b));
            for l in 0..W {
                out[l] = if p[l] & 1 != 0 { q[l] } else { r[l] };
            }
            if ua | ub != 0 {
                for (l, x) in p.iter().enumerate() {
                    chosen |= (x & 1) << l;
                }
            }
        }
        let undef = uc | (ua & chosen) | (ub & !chosen);
        self.finish_value(warp, d, &out, undef, &[a, b]);
    }

    fn special(&self, warp: &Warp<W>, what: Special) -> [u64; W] {
        let id = self.id_of(warp.rank);
        let (grid, cluster) = (self.shape.grid, self.shape.cluster);
        let mut out = [0; W];
        for (l, o) in out.iter_mut().enumerate() {
            *o = match what {
                Special::Tid(axis) => {
                    // Threads are numbered along x first, then along y and z.
                    let [nx, ny, _] = self.shape.block;
                    let n = warp.index * W as u32 + l as u32;
                    u64::from([n % nx, n / nx % ny, n / (nx * ny)][axis as usize])
                }
                Special::NTid(axis) => u64::from(self.shape.block[axis as usize]),
                Special::Ctaid(a) => u64::from(id[a as usize]),
                Special::NCtaid(a) => u64::from(grid[a as usize]),
                Special::LaneId => l as u64,
                Special::WarpId => u64::from(warp.index),
                Special::LaneMaskLt => (1 << l) - 1,
                Special::LaneMaskLe => (2u64 << l).wrapping_sub(1),
                Special::LaneMaskGt => !(2u64 << l).wrapping_sub(1) & super::warp::full::<W>(),
                Special::LaneMaskGe => !((1u64 << l) - 1) & super::warp::full::<W>(),
                Special::ActiveMask => warp.mask,
                Special::Clock => self.executed,
                Special::ClusterCtaid(a) => u64::from(id[a as usize] % cluster[a as usize]),
                Special::ClusterNCtaid(a) => u64::from(cluster[a as usize]),
                Special::ClusterId(a) => u64::from(id[a as usize] / cluster[a as usize]),
                Special::NClusterId(a) => u64::from(grid[a as usize] / cluster[a as usize]),
                Special::ClusterRank => u64::from(warp.rank),
                Special::ClusterSize => u64::from(self.ranks),
                Special::NWarpId => u64::from(self.per_rank),
                Special::ImplicitArgs => self.shape.implicit_args,
                Special::Zero => 0,
            };
        }
        out
    }

    // ---- messages of the device ----

    fn assert(&mut self, warp: &mut Warp<W>, parts: [Src; 4]) {
        let lane = warp.mask.trailing_zeros();
        let [message, file, line, func] = parts.map(|s| warp.uniform(self.consts, s));
        let text = |a| self.shape.global.string(a).unwrap_or_default();
        let (message, file, func) = (text(message), text(file), text(func));
        self.report(warp, Kind::Assertion, lane, None, || {
            format!("assertion failed: {message} ({file}:{line}, {func})")
        });
    }

    /// `vprintf`: the arguments lie behind one another in the lane's stack, each aligned to its size.
    fn printf(&mut self, warp: &mut Warp<W>, format: Src, args: Src) {
        for l in 0..W {
            if warp.mask >> l & 1 == 0 {
                continue;
            }
            let at = warp.src(self.consts, format)[l];
            let text = self.shape.global.string(at).unwrap_or_default();
            let mut arg = warp.src(self.consts, args)[l].wrapping_sub(LOCAL_WINDOW);
            let base = l as u64 * u64::from(warp.local_bytes);
            let mut next = |size: u64| {
                arg = arg.next_multiple_of(size);
                let bytes: Vec<u8> = (0..size)
                    .map(|i| warp.local.get((base + arg + i) as usize).copied().unwrap_or(0))
                    .collect();
                arg += size;
                bytes.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b))
            };
            (self.shape.print)(&format_c(&text, &mut next));
        }
    }

    /// Collects a part of a message of each lane, and prints those that are complete.
    fn message(&mut self, warp: &mut Warp<W>, d: Reg, part: &MessagePart, last: Option<Src>) {
        warp.messages.resize(W, Message::default());
        let is_last = last.map(|last| *warp.src(self.consts, last));
        for l in (0..W).filter(|l| warp.mask >> l & 1 != 0) {
            match part {
                MessagePart::Begin => warp.messages[l] = Message::default(),
                MessagePart::Text(text) => {
                    let at = warp.src(self.consts, *text)[l];
                    warp.messages[l].format = self.shape.global.string(at).unwrap_or_default();
                }
                MessagePart::Args { count, args } => {
                    let count = warp.src(self.consts, *count)[l] as usize;
                    for arg in args.iter().take(count) {
                        let value = warp.src(self.consts, *arg)[l];
                        warp.messages[l].args.push(value);
                    }
                }
            }
            if is_last.is_some_and(|last| last[l] & 1 != 0) {
                let message = std::mem::take(&mut warp.messages[l]);
                let mut args = message.args.into_iter();
                let mut next = |bytes: u64| {
                    let value = args.next().unwrap_or(0);
                    if bytes < 8 { value & ((1 << (8 * bytes)) - 1) } else { value }
                };
                (self.shape.print)(&format_c(&message.format, &mut next));
            }
        }
        warp.set(d, &[0; W], 0);
    }

    // ---- trace ----

    #[cold]
    fn trace_before(&self, warp: &Warp<W>, op: &Op, lane: u32) {
        let mut reads = Vec::new();
        let mut op = op.clone();
        crate::visit::visit(&mut op, &mut |_| {}, &mut |s| {
            reads.push(format!("{}={:#x}", crate::visit::name(*s), warp.src(self.consts, *s)[lane as usize]));
        });
        let loc = self.shape.program.locs[warp.pc as usize];
        (self.shape.print)(&format!(
            "trace pc={} line={} {:?} <- {}\n",
            warp.pc,
            loc.line,
            crate::visit::mnemonic(&op),
            reads.join(" ")
        ));
    }

    #[cold]
    fn trace_after(&self, warp: &Warp<W>, op: &Op, pc: usize, lane: u32) {
        let mut op = op.clone();
        let mut writes = Vec::new();
        crate::visit::visit(
            &mut op,
            &mut |d| writes.push(format!("r{d}={:#x}", warp.src(self.consts, Src::reg(*d))[lane as usize])),
            &mut |_| {},
        );
        if !writes.is_empty() {
            (self.shape.print)(&format!("trace pc={pc}   -> {}\n", writes.join(" ")));
        }
    }
}

/// Formats as C's printf does, for the conversions that device code uses.
fn format_c(format: &str, next: &mut impl FnMut(u64) -> u64) -> String {
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut spec = String::new();
        while let Some(c) =
            chars.next_if(|c| matches!(c, '0'..='9' | '.' | '-' | '+' | ' ' | '#' | 'l' | 'h' | 'z'))
        {
            spec.push(c);
        }
        let long = spec.matches('l').count() >= 1 || spec.contains('z');
        let flags: String = spec.chars().filter(|c| !matches!(c, 'l' | 'h' | 'z')).collect();
        let zero = flags.starts_with('0');
        let (width, precision) = flags.split_once('.').unwrap_or((&flags, ""));
        let width: usize = width.trim_start_matches(['-', '+', ' ', '#']).parse().unwrap_or(0);
        let int = |n: &mut dyn FnMut(u64) -> u64| n(if long { 8 } else { 4 });
        let text = match chars.next() {
            Some('d' | 'i') => {
                let v = int(next);
                if long { (v as i64).to_string() } else { (v as i32).to_string() }
            }
            Some('u') => int(next).to_string(),
            Some('x') => format!("{:x}", int(next)),
            Some('X') => format!("{:X}", int(next)),
            Some('p') => format!("{:#x}", next(8)),
            Some('c') => char::from(next(4) as u8).to_string(),
            Some('f' | 'F') => format!("{:.*}", precision.parse().unwrap_or(6), f64::from_bits(next(8))),
            Some('e' | 'g' | 'E' | 'G') => format!("{:e}", f64::from_bits(next(8))),
            Some('%') => "%".to_owned(),
            Some(other) => format!("%{spec}{other}"),
            None => String::new(),
        };
        let missing = width.saturating_sub(text.len());
        if flags.starts_with('-') {
            out.push_str(&text);
            out.push_str(&" ".repeat(missing));
        } else {
            out.push_str(&if zero { "0" } else { " " }.repeat(missing));
            out.push_str(&text);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::format_c;

    #[test]
    fn printf_conversions() {
        let values = [3u64, 0xffff_ffff, 1.5f64.to_bits(), 0xbeef];
        let mut i = 0;
        let mut next = |_| {
            i += 1;
            values[i - 1]
        };
        assert_eq!(format_c("(%3u) %i %f 0x%08x %%\n", &mut next), "(  3) -1 1.500000 0x0000beef %\n");
    }
}
