//! Decoding of LLVM instructions.

use super::{Decoder, Frame, Term, What};
use crate::bytecode::*;
use crate::ir::{Callee, Code, Inst, Order, Ty};
use crate::num::Round;

/// The arithmetic format of a scalar type.
pub(crate) fn fmt(ty: &Ty) -> What<Fmt> {
    match ty {
        Ty::F16 => Ok(Fmt::F16),
        Ty::BF16 => Ok(Fmt::BF16),
        Ty::F32 => Ok(Fmt::F32),
        Ty::F64 => Ok(Fmt::F64),
        other => Err(format!("arithmetic on {other:?}")),
    }
}

pub(super) fn width(ty: &Ty) -> What<u8> {
    match ty.bits() {
        0 => Err(format!("an integer operation on {ty:?}")),
        w @ 1..=64 => Ok(w as u8),
        w => Err(format!("an integer of {w} bits")),
    }
}

pub(crate) fn float_cmp(p: &str) -> FloatCmp {
    let (unordered, rest) = match p {
        "false" => return FloatCmp(0),
        "true" => return FloatCmp(15),
        "ord" => return FloatCmp(7),
        "uno" => return FloatCmp(8),
        _ => (p.starts_with('u'), &p[1..]),
    };
    let set = match rest {
        "lt" => 1,
        "eq" => 2,
        "le" => 3,
        "gt" => 4,
        "ne" => 5,
        _ => 6,
    };
    FloatCmp(set | if unordered { 8 } else { 0 })
}

fn int_cmp(p: &str) -> Cmp {
    match p {
        "eq" => Cmp::Eq,
        "ne" => Cmp::Ne,
        "ugt" => Cmp::UGt,
        "uge" => Cmp::UGe,
        "ult" => Cmp::ULt,
        "ule" => Cmp::ULe,
        "sgt" => Cmp::SGt,
        "sge" => Cmp::SGe,
        "slt" => Cmp::SLt,
        _ => Cmp::SLe,
    }
}

fn int_op(name: &str) -> Option<IntOp> {
    Some(match name {
        "add" => IntOp::Add,
        "sub" => IntOp::Sub,
        "mul" => IntOp::Mul,
        "udiv" => IntOp::UDiv,
        "sdiv" => IntOp::SDiv,
        "urem" => IntOp::URem,
        "srem" => IntOp::SRem,
        "shl" => IntOp::Shl,
        "lshr" => IntOp::LShr,
        "ashr" => IntOp::AShr,
        "and" => IntOp::And,
        "or" => IntOp::Or,
        "xor" => IntOp::Xor,
        _ => return None,
    })
}

fn float_op(name: &str) -> FloatOp {
    match name {
        "fadd" => FloatOp::Add,
        "fsub" => FloatOp::Sub,
        "fmul" => FloatOp::Mul,
        "fdiv" => FloatOp::Div,
        _ => FloatOp::Rem,
    }
}

impl<'m> Decoder<'m> {
    pub(crate) fn float_op(&mut self, op: FloatOp, f: Fmt, a: Src, b: Src) -> Src {
        self.value(|d| Op::Float { op, f, round: Round::Nearest, ftz: false, d, a, b })
    }

    pub(crate) fn int_op(&mut self, op: IntOp, w: u8, a: Src, b: Src) -> Src {
        self.value(|d| Op::Int { op, w, d, a, b })
    }

    pub(super) fn inst(&mut self, f: &mut Frame<'_>, block: u32, inst: &'_ Inst) -> Result<(), String> {
        let mut args = Vec::with_capacity(inst.args.len());
        if !matches!(inst.code, Code::Phi(_)) {
            for (o, t) in inst.args.iter().zip(&inst.arg_tys) {
                args.push(self.operand(f, o, t)?);
            }
        }
        let result = self.code(f, block, inst, args)?;
        if let Some(r) = result {
            f.values[inst.id as usize] = Some(r);
        }
        Ok(())
    }

    fn code(
        &mut self,
        f: &mut Frame<'_>,
        block: u32,
        inst: &Inst,
        args: Vec<Vec<Src>>,
    ) -> What<Option<Vec<Src>>> {
        match &inst.code {
            Code::Phi(_) => Ok(None),
            Code::Gep { .. }
            | Code::Alloca(_)
            | Code::Load { .. }
            | Code::Store { .. }
            | Code::AtomicRmw(..)
            | Code::CmpXchg(_)
            | Code::Fence { .. } => self.memory_code(inst, &args),
            Code::ExtractValue { .. }
            | Code::InsertValue { .. }
            | Code::ExtractElement
            | Code::InsertElement
            | Code::Shuffle(_) => self.aggregate(inst, args).map(Some),
            Code::Call(callee) => self.call_code(callee, inst, args).map(Some),
            Code::Br(_) | Code::CondBr(..) | Code::Switch(..) | Code::Ret | Code::Unreachable => {
                self.flow(f, block, inst, &args).map(|()| None)
            }
            Code::Unsupported(name) => Err(format!("the instruction '{name}'")),
            _ => self.arithmetic(inst, &args).map(Some),
        }
    }

    /// Element by element: arithmetic, comparisons, casts, selects.
    fn arithmetic(&mut self, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let ty = &inst.ty;
        let pairs = |i: usize| (args[0][i], args[1][i]);
        let n = args[0].len();
        match &inst.code {
            Code::Binary(name) if *ty == Ty::Int(128) => self.wide(name, &args[0], &args[1]),
            Code::Binary(name) => (0..n)
                .map(|i| {
                    let (a, b) = pairs(i);
                    match int_op(name) {
                        Some(op) => Ok(self.int_op(op, width(ty.element())?, a, b)),
                        None => Ok(self.float_op(float_op(name), fmt(ty.element())?, a, b)),
                    }
                })
                .collect(),
            Code::FNeg => {
                let (f, op, round) = (fmt(ty.element())?, FloatUn::Neg, Round::Nearest);
                let make = |d, a| Op::FloatUn { op, f, round, ftz: false, approx: false, d, a };
                Ok(args[0].iter().map(|a| self.value(|d| make(d, *a))).collect())
            }
            Code::Cast(name) => self.cast(name, &inst.arg_tys[0], ty, &args[0]),
            Code::ICmp(p) => {
                let (op, w) = (int_cmp(p), width(inst.arg_tys[0].element())?);
                let make = |d, (a, b)| Op::ICmp { op, w, d, a, b };
                Ok((0..n).map(|i| self.value(|d| make(d, pairs(i)))).collect())
            }
            Code::FCmp(p) => {
                let (op, f) = (float_cmp(p), fmt(inst.arg_tys[0].element())?);
                let make = |d, (a, b)| Op::FCmp { op, f, ftz: false, d, a, b };
                Ok((0..n).map(|i| self.value(|d| make(d, pairs(i)))).collect())
            }
            Code::Select => {
                let many = n == args[1].len();
                let one = |s: &mut Self, i: usize| {
                    let (c, a, b) = (args[0][if many { i } else { 0 }], args[1][i], args[2][i]);
                    if a == b { a } else { s.value(|d| Op::Select { d, c, a, b }) }
                };
                Ok((0..args[1].len()).map(|i| one(self, i)).collect())
            }
            Code::Freeze => Ok(args[0].iter().map(|s| self.value(|d| Op::Freeze { d, s: *s })).collect()),
            other => Err(format!("the instruction {other:?}")),
        }
    }

    /// Addresses, loads, stores and atomic operations.
    fn memory_code(&mut self, inst: &Inst, args: &[Vec<Src>]) -> What<Option<Vec<Src>>> {
        match &inst.code {
            Code::Gep { offset, strides } => self.gep(inst, *offset, strides, args).map(Some),
            Code::Alloca(bytes) => match inst.ty {
                Ty::Ptr(space, _) => Ok(Some(vec![self.alloca(*bytes, space)?])),
                _ => Err("an alloca without a pointer".into()),
            },
            Code::Load { align, order } => {
                let at = self.access(&inst.arg_tys[0], args[0][0], *align, *order)?;
                self.load(&inst.ty, at).map(Some)
            }
            Code::Store { align, order } => {
                let at = self.access(&inst.arg_tys[1], args[1][0], *align, *order)?;
                self.store(&inst.arg_tys[0], &args[0], at).map(|()| None)
            }
            Code::AtomicRmw(name, order) => self.atomic_rmw(name, *order, inst, args).map(Some),
            Code::CmpXchg(order) => self.compare_exchange(*order, inst, args).map(Some),
            Code::Fence { order, device } => {
                self.emit(Op::Fence { order: *order, device: *device });
                Ok(None)
            }
            _ => Err("no access to memory".to_owned()),
        }
    }

    fn atomic_rmw(&mut self, name: &str, order: Order, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let ty = &inst.arg_tys[1];
        let op = self.rmw(name, ty)?;
        let mut at = self.access(&inst.arg_tys[0], args[0][0], 0, order)?;
        if *ty == Ty::Int(128) {
            if op != AtomOp::Exch {
                return Err(format!("atomicrmw {name} of 128 bits"));
            }
            (at.bytes, at.align) = (8, 16);
            let d: Vec<Reg> = vec![self.fresh(), self.fresh()];
            let v = args[1].clone().into();
            self.emit(Op::Atom { op, d: d.clone().into(), v, cmp: Box::new([]), at });
            return Ok(d.into_iter().map(Src::reg).collect());
        }
        at.bytes = (ty.bits().max(ty.scalars().len() as u32 * ty.element().bits()) / 8) as u8;
        at.align = u32::from(at.bytes);
        let packed = args[1].len() > 1;
        let v = if packed { vec![self.pack(ty, &args[1])] } else { args[1].clone() };
        let d = self.fresh();
        self.emit(Op::Atom { op, d: vec![d].into(), v: v.into(), cmp: Box::new([]), at });
        Ok(if packed { self.unpack(ty, Src::reg(d)) } else { vec![Src::reg(d)] })
    }

    /// Old value and whether it was the expected one.
    fn compare_exchange(&mut self, order: Order, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let mut at = self.access(&inst.arg_tys[0], args[0][0], 0, order)?;
        let words = args[1].len();
        let w = if inst.arg_tys[1] == Ty::Int(128) { 64 } else { width(&inst.arg_tys[1])? };
        at.bytes = w / 8;
        at.align = u32::from(at.bytes) * words as u32;
        let d: Vec<Reg> = (0..words).map(|_| self.fresh()).collect();
        let (v, cmp) = (args[2].clone().into(), args[1].clone().into());
        self.emit(Op::Atom { op: AtomOp::Cas, d: d.clone().into(), v, cmp, at });
        let mut out: Vec<Src> = d.into_iter().map(Src::reg).collect();
        let mut same = self.constant(1);
        for i in 0..words {
            let (a, b) = (out[i], args[1][i]);
            let equal = self.value(|d| Op::ICmp { op: Cmp::Eq, w, d, a, b });
            same = if i == 0 { equal } else { self.int_op(IntOp::And, 1, same, equal) };
        }
        out.push(same);
        Ok(out)
    }

    /// Parts of structures, arrays and vectors: renamings, but for indices that are not constant.
    fn aggregate(&mut self, inst: &Inst, mut args: Vec<Vec<Src>>) -> What<Vec<Src>> {
        Ok(match &inst.code {
            Code::ExtractValue { first, count } => args[0][*first..first + count].to_vec(),
            Code::InsertValue { first } => {
                let new = args.swap_remove(1);
                let mut out = args.swap_remove(0);
                out[*first..first + new.len()].copy_from_slice(&new);
                out
            }
            Code::ExtractElement => match self.known(args[1][0]) {
                Some(i) if (i as usize) < args[0].len() => vec![args[0][i as usize]],
                Some(_) => vec![self.const_entry(0, true)],
                None => {
                    let (index, items) = (args[1][0], args[0].clone().into());
                    vec![self.value(|d| Op::Pick { d, index, items })]
                }
            },
            Code::InsertElement => self.insert_element(inst, &args)?,
            Code::Shuffle(mask) => {
                let n = args[0].len();
                let undef = self.const_entry(0, true);
                let pick = |i: &i32| match *i {
                    i if i < 0 => undef,
                    i if (i as usize) < n => args[0][i as usize],
                    i => args[1][i as usize - n],
                };
                mask.iter().map(pick).collect()
            }
            other => return Err(format!("the instruction {other:?}")),
        })
    }

    fn insert_element(&mut self, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let mut out = args[0].clone();
        match self.known(args[2][0]) {
            Some(i) if (i as usize) < out.len() => out[i as usize] = args[1][0],
            Some(_) => {
                let undef = self.const_entry(0, true);
                out.fill(undef);
            }
            None => {
                let (b, w) = (args[2][0], width(&inst.arg_tys[2])?);
                for (i, s) in out.iter_mut().enumerate() {
                    let a = self.constant(i as u64);
                    let c = self.value(|d| Op::ICmp { op: Cmp::Eq, w, d, a, b });
                    let old = *s;
                    *s = self.value(|d| Op::Select { d, c, a: args[1][0], b: old });
                }
            }
        }
        Ok(out)
    }

    fn call_code(&mut self, callee: &Callee, inst: &Inst, args: Vec<Vec<Src>>) -> What<Vec<Src>> {
        let name = match callee {
            Callee::Asm(text, constraints) => return self.inline_asm(text, constraints, inst, &args),
            Callee::Named(name) => name,
        };
        let module = self.module;
        match module.functions.iter().find(|g| g.name == *name) {
            Some(callee) => self.call(callee, args, &inst.ty).map_err(|e| e.0),
            None => self.intrinsic(name, inst, &args),
        }
    }

    /// The end of a block.
    fn flow(&mut self, f: &mut Frame<'_>, block: u32, inst: &Inst, args: &[Vec<Src>]) -> What<()> {
        match &inst.code {
            Code::Br(t) => {
                let to = self.edge(f, block, *t);
                self.end(Term::Jump(to));
            }
            Code::CondBr(t, e) => {
                let yes = self.edge(f, block, *t);
                let no = if t == e { yes } else { self.edge(f, block, *e) };
                match self.known(args[0][0]) {
                    Some(c) => self.end(Term::Jump(if c & 1 != 0 { yes } else { no })),
                    None if yes == no => self.end(Term::Jump(yes)),
                    None => self.end(Term::Branch { c: args[0][0], yes, no }),
                }
            }
            Code::Switch(default, cases) => {
                let (w, a) = (width(&inst.arg_tys[0])?, args[0][0]);
                for (value, target) in cases {
                    let b = self.constant(*value);
                    let c = self.value(|d| Op::ICmp { op: Cmp::Eq, w, d, a, b });
                    let yes = self.edge(f, block, *target);
                    let no = self.new_block();
                    self.end(Term::Branch { c, yes, no });
                    self.start(no);
                }
                let to = self.edge(f, block, *default);
                self.end(Term::Jump(to));
            }
            Code::Ret => match f.ret.clone() {
                Some((to, regs)) => {
                    if let Some(values) = args.first() {
                        self.parallel_copy(regs.into_iter().zip(values.iter().copied()).collect());
                    }
                    self.end(Term::Jump(to));
                }
                None => self.end(Term::Exit),
            },
            _ => {
                self.emit(Op::Trap);
                self.end(Term::Exit);
            }
        }
        Ok(())
    }

    /// 128-bit arithmetic on (low, high) words.
    fn wide(&mut self, name: &str, a: &[Src], b: &[Src]) -> What<Vec<Src>> {
        let zero = |d: &Self, s: Src| d.known(s) == Some(0);
        let op = |d: &mut Self, o: IntOp, x: Src, y: Src| d.int_op(o, 64, x, y);
        match name {
            "and" | "or" | "xor" => {
                let o = int_op(name).unwrap_or(IntOp::And);
                Ok(vec![op(self, o, a[0], b[0]), op(self, o, a[1], b[1])])
            }
            "add" | "sub" => {
                let (o, carry) =
                    if name == "add" { (IntOp::Add, IntOp::UAddOvf) } else { (IntOp::Sub, IntOp::USubOvf) };
                let low = op(self, o, a[0], b[0]);
                let c = op(self, carry, a[0], b[0]);
                let high = op(self, o, a[1], b[1]);
                Ok(vec![low, op(self, o, high, c)])
            }
            "mul" => {
                let low = op(self, IntOp::Mul, a[0], b[0]);
                let mut high = op(self, IntOp::MulHiU, a[0], b[0]);
                for (x, y) in [(a[0], b[1]), (a[1], b[0])] {
                    if !zero(self, x) && !zero(self, y) {
                        let p = op(self, IntOp::Mul, x, y);
                        high = op(self, IntOp::Add, high, p);
                    }
                }
                Ok(vec![low, high])
            }
            "lshr" | "ashr" | "shl" => {
                let n = self
                    .known(b[0])
                    .filter(|n| *n < 128)
                    .ok_or("a shift of 128 bits by a variable number")?;
                let left = name == "shl";
                // (near, far): the word that receives bits of its own, and the one they come from.
                let (near, far) = if left { (a[1], a[0]) } else { (a[0], a[1]) };
                let toward = if left { IntOp::Shl } else { IntOp::LShr };
                let outer = if name == "ashr" { IntOp::AShr } else { toward };
                let count = self.constant(n % 64);
                let fill = match name {
                    "ashr" => {
                        let top = self.constant(63);
                        op(self, IntOp::AShr, far, top)
                    }
                    _ => self.constant(0),
                };
                let (first, second) = if n >= 64 {
                    (op(self, outer, far, count), fill)
                } else if n == 0 {
                    (near, far)
                } else {
                    let back = self.constant(64 - n);
                    let across = op(self, if left { IntOp::LShr } else { IntOp::Shl }, far, back);
                    let own = op(self, toward, near, count);
                    (op(self, IntOp::Or, own, across), op(self, outer, far, count))
                };
                Ok(if left { vec![second, first] } else { vec![first, second] })
            }
            _ => Err(format!("the 128-bit operation '{name}'")),
        }
    }
}
