//! Decoding of LLVM instructions.

use super::{Decoder, Frame, Term, What};
use crate::bytecode::*;
use crate::ir::{Callee, Code, Inst, Ty};
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
        mut args: Vec<Vec<Src>>,
    ) -> What<Option<Vec<Src>>> {
        let ty = &inst.ty;
        let element = ty.element().clone();
        let each = |n: usize| 0..n;
        Ok(match &inst.code {
            Code::Phi(_) => None,
            Code::Binary(name) if *ty == Ty::Int(128) => Some(self.wide(name, &args[0], &args[1])?),
            Code::Binary(name) => {
                let mut out = Vec::new();
                for i in each(args[0].len()) {
                    let (a, b) = (args[0][i], args[1][i]);
                    out.push(match int_op(name) {
                        Some(op) => self.int_op(op, width(&element)?, a, b),
                        None => {
                            let op = match *name {
                                "fadd" => FloatOp::Add,
                                "fsub" => FloatOp::Sub,
                                "fmul" => FloatOp::Mul,
                                "fdiv" => FloatOp::Div,
                                _ => FloatOp::Rem,
                            };
                            self.float_op(op, fmt(&element)?, a, b)
                        }
                    });
                }
                Some(out)
            }
            Code::FNeg => {
                let f = fmt(&element)?;
                let op = FloatUn::Neg;
                Some(
                    args[0]
                        .iter()
                        .map(|a| {
                            self.value(|d| Op::FloatUn {
                                op,
                                f,
                                round: Round::Nearest,
                                ftz: false,
                                approx: false,
                                d,
                                a: *a,
                            })
                        })
                        .collect(),
                )
            }
            Code::Cast(name) => Some(self.cast(name, &inst.arg_tys[0], ty, &args[0])?),
            Code::ICmp(p) => {
                let (op, w) = (int_cmp(p), width(inst.arg_tys[0].element())?);
                Some(
                    each(args[0].len())
                        .map(|i| self.value(|d| Op::ICmp { op, w, d, a: args[0][i], b: args[1][i] }))
                        .collect(),
                )
            }
            Code::FCmp(p) => {
                let (op, f) = (float_cmp(p), fmt(inst.arg_tys[0].element())?);
                let make = |d, i: usize| Op::FCmp { op, f, ftz: false, d, a: args[0][i], b: args[1][i] };
                Some(each(args[0].len()).map(|i| self.value(|d| make(d, i))).collect())
            }
            Code::Select => {
                let many = args[0].len() == args[1].len();
                let mut out = Vec::new();
                for i in each(args[1].len()) {
                    let c = args[0][if many { i } else { 0 }];
                    let (a, b) = (args[1][i], args[2][i]);
                    out.push(if a == b { a } else { self.value(|d| Op::Select { d, c, a, b }) });
                }
                Some(out)
            }
            Code::Freeze => Some(args[0].iter().map(|s| self.value(|d| Op::Freeze { d, s: *s })).collect()),
            Code::Gep { offset, strides } => Some(self.gep(inst, *offset, strides, &args)?),
            Code::Alloca(bytes) => {
                let Ty::Ptr(space, _) = ty else { return Err("an alloca without a pointer".into()) };
                Some(vec![self.alloca(*bytes, *space)])
            }
            Code::Load { align, order } => {
                let at = self.access(&inst.arg_tys[0], args[0][0], *align, *order)?;
                Some(self.load(ty, at)?)
            }
            Code::Store { align, order } => {
                let at = self.access(&inst.arg_tys[1], args[1][0], *align, *order)?;
                self.store(&inst.arg_tys[0], &args[0], at)?;
                None
            }
            Code::AtomicRmw(name, order) => {
                let op = self.rmw(name, &inst.arg_tys[1])?;
                let mut at = self.access(&inst.arg_tys[0], args[0][0], 0, *order)?;
                if inst.arg_tys[1] == Ty::Int(128) {
                    if op != AtomOp::Exch {
                        return Err(format!("atomicrmw {name} of 128 bits"));
                    }
                    (at.bytes, at.align) = (8, 16);
                    let d: Vec<Reg> = vec![self.fresh(), self.fresh()];
                    let v = args[1].clone().into();
                    self.emit(Op::Atom { op, d: d.clone().into(), v, cmp: Box::new([]), at });
                    return Ok(Some(d.into_iter().map(Src::reg).collect()));
                }
                at.bytes = (inst.arg_tys[1]
                    .bits()
                    .max(inst.arg_tys[1].scalars().len() as u32 * inst.arg_tys[1].element().bits())
                    / 8) as u8;
                at.align = u32::from(at.bytes);
                let v = if args[1].len() > 1 {
                    vec![self.pack(&inst.arg_tys[1], &args[1])]
                } else {
                    args[1].clone()
                };
                let d = self.fresh();
                self.emit(Op::Atom { op, d: vec![d].into(), v: v.into(), cmp: Box::new([]), at });
                if args[1].len() > 1 {
                    Some(self.unpack(&inst.arg_tys[1], Src::reg(d)))
                } else {
                    Some(vec![Src::reg(d)])
                }
            }
            Code::CmpXchg(order) => {
                let mut at = self.access(&inst.arg_tys[0], args[0][0], 0, *order)?;
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
                Some(out)
            }
            Code::Fence => {
                self.emit(Op::Fence);
                None
            }
            Code::ExtractValue { first, count } => Some(args[0][*first..first + count].to_vec()),
            Code::InsertValue { first } => {
                let new = args.swap_remove(1);
                let mut out = args.swap_remove(0);
                out[*first..first + new.len()].copy_from_slice(&new);
                Some(out)
            }
            Code::ExtractElement => match self.known(args[1][0]) {
                Some(i) if (i as usize) < args[0].len() => Some(vec![args[0][i as usize]]),
                Some(_) => Some(vec![self.const_entry(0, true)]),
                None => {
                    let (index, items) = (args[1][0], args[0].clone().into());
                    Some(vec![self.value(|d| Op::Pick { d, index, items })])
                }
            },
            Code::InsertElement => {
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
                Some(out)
            }
            Code::Shuffle(mask) => {
                let n = args[0].len();
                let undef = self.const_entry(0, true);
                let pick = |i: &i32| match *i {
                    i if i < 0 => undef,
                    i if (i as usize) < n => args[0][i as usize],
                    i => args[1][i as usize - n],
                };
                Some(mask.iter().map(pick).collect())
            }
            Code::Call(Callee::Asm(text, constraints)) => {
                Some(self.inline_asm(text, constraints, inst, &args)?)
            }
            Code::Call(Callee::Named(name)) => {
                let module = self.module;
                if let Some(callee) = module.functions.iter().find(|g| g.name == *name) {
                    Some(self.call(callee, args, ty).map_err(|e| e.0)?)
                } else {
                    Some(self.intrinsic(name, inst, &args)?)
                }
            }
            Code::Br(t) => {
                let to = self.edge(f, block, *t);
                self.end(Term::Jump(to));
                None
            }
            Code::CondBr(t, e) => {
                let (yes, no) = if t == e {
                    let one = self.edge(f, block, *t);
                    (one, one)
                } else {
                    (self.edge(f, block, *t), self.edge(f, block, *e))
                };
                match self.known(args[0][0]) {
                    Some(c) => self.end(Term::Jump(if c & 1 != 0 { yes } else { no })),
                    None if yes == no => self.end(Term::Jump(yes)),
                    None => self.end(Term::Branch { c: args[0][0], yes, no }),
                }
                None
            }
            Code::Switch(default, cases) => {
                let w = width(&inst.arg_tys[0])?;
                let a = args[0][0];
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
                None
            }
            Code::Ret => {
                match f.ret.clone() {
                    Some((to, regs)) => {
                        if let Some(values) = args.first() {
                            let copies = regs.iter().copied().zip(values.iter().copied()).collect();
                            self.parallel_copy(copies);
                        }
                        self.end(Term::Jump(to));
                    }
                    None => self.end(Term::Exit),
                }
                None
            }
            Code::Unreachable => {
                self.emit(Op::Trap);
                self.end(Term::Exit);
                None
            }
            Code::Unsupported(name) => return Err(format!("the instruction '{name}'")),
        })
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
