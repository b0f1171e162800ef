//! Inline assembly: binds operands to constraints and lowers the PTX statements to bytecode.

use std::collections::HashMap;

use super::{Decoder, Term, What};
use crate::bytecode::*;
use crate::ir::{Arch, Inst};
use crate::num::{self, Round};
use crate::ptx::{self, Operand, Statement};

/// Variables of one piece of inline assembly.
pub(super) struct Vars {
    /// Registers and input operands by name.
    pub map: HashMap<String, Src>,
    /// Initial values of outputs that one instruction reads and writes, where no copy was made.
    pub tied: HashMap<Reg, Src>,
}

/// One instruction being lowered.
pub(super) struct Line<'a> {
    pub op: &'a [String],
    pub args: &'a [Operand],
    pub pred: Option<Pred>,
    pub text: &'a str,
}

impl Line<'_> {
    pub fn has(&self, part: &str) -> bool {
        self.op.iter().any(|p| p == part)
    }

    /// The type at the end of the opcode.
    fn ty(&self) -> &str {
        self.op.last().map_or("", String::as_str)
    }

    pub fn unknown<T>(&self) -> What<T> {
        Err(format!("the instruction '{}' in inline assembly", self.text))
    }
}

fn bits_of(ty: &str) -> Option<u8> {
    if ty == "pred" {
        return Some(1);
    }
    let digits: String =
        ty.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    match ty {
        "f16x2" | "bf16x2" => Some(32),
        "bf16" => Some(16),
        "tf32" => Some(32),
        _ => digits.parse().ok().filter(|n| matches!(n, 8 | 16 | 32 | 64)),
    }
}

fn float_of(ty: &str) -> Option<(Fmt, bool)> {
    Some(match ty {
        "f16" => (Fmt::F16, false),
        "bf16" => (Fmt::BF16, false),
        "f16x2" => (Fmt::F16, true),
        "bf16x2" => (Fmt::BF16, true),
        "f32" => (Fmt::F32, false),
        "f64" => (Fmt::F64, false),
        _ => return None,
    })
}

impl Decoder<'_> {
    pub(super) fn inline_asm(
        &mut self,
        text: &str,
        constraints: &str,
        inst: &Inst,
        args: &[Vec<Src>],
    ) -> What<Vec<Src>> {
        if matches!(self.arch, Arch::Amd { .. }) {
            return self.amd_asm(text, inst, args);
        }
        let statements = ptx::parse(text)?;
        let scalars = inst.ty.scalars();
        let mut vars = Vars { map: HashMap::new(), tied: HashMap::new() };
        let mut outputs: Vec<Reg> = Vec::new();
        let mut inputs = args.iter();
        let mut n = 0;
        // A single matrix instruction reads its accumulators before it writes them: no copies needed.
        let matrix = |s: &Statement| matches!(s, Statement::Inst { op, pred: None, .. } if op[0] == "mma" || (op[0] == "wgmma" && op[1] == "mma_async"));
        let alone = statements.len() == 1 && matrix(&statements[0]);
        for c in constraints.split(',') {
            let c = c.trim();
            if c.starts_with('~') || c.is_empty() {
                continue;
            }
            let name = format!("${n}");
            n += 1;
            if c.starts_with('=') {
                let r = self.fresh();
                outputs.push(r);
                vars.map.insert(name, Src::reg(r));
                continue;
            }
            let Some(v) = inputs.next() else {
                return Err("inline assembly with fewer operands than constraints".into());
            };
            // A vector of narrow elements is passed in one register.
            let one = match v[..] {
                [one] => one,
                _ => {
                    let position = args.iter().position(|a| std::ptr::eq(a, v)).unwrap_or(0);
                    self.pack(&inst.arg_tys[position], v)
                }
            };
            match c.trim_start_matches(['&', '+']).parse::<usize>() {
                Ok(tied) => {
                    let Some(r) = outputs.get(tied).copied() else {
                        return Err("a constraint tied to no output".into());
                    };
                    if alone {
                        vars.tied.insert(r, one);
                        vars.map.insert(name, one);
                    } else {
                        self.emit(Op::Mov { d: r, s: one });
                        vars.map.insert(name, Src::reg(r));
                    }
                }
                Err(_) => {
                    vars.map.insert(name, one);
                }
            }
        }
        self.statements(&statements, &mut vars, &outputs)?;
        // Outputs that are vectors of narrow elements come in one register each.
        if scalars.len() == outputs.len() {
            return Ok(outputs.into_iter().map(Src::reg).collect());
        }
        let parts = match &inst.ty {
            crate::ir::Ty::Struct(f) => f.clone(),
            t => vec![t.clone()],
        };
        let mut out = Vec::new();
        for (t, r) in parts.iter().zip(outputs) {
            if t.scalars().len() == 1 {
                out.push(Src::reg(r));
            } else {
                out.extend(self.unpack(t, Src::reg(r)));
            }
        }
        Ok(out)
    }

    fn statements(&mut self, statements: &[Statement], vars: &mut Vars, outputs: &[Reg]) -> What<()> {
        let labels: HashMap<&str, u32> = statements
            .iter()
            .filter_map(|s| match s {
                Statement::Label(l) => Some((l.as_str(), self.new_block())),
                _ => None,
            })
            .collect();
        for s in statements {
            match s {
                Statement::Label(l) => {
                    let b = labels[l.as_str()];
                    self.end(Term::Jump(b));
                    self.start(b);
                }
                Statement::Reg(names) => {
                    for name in names {
                        let r = self.fresh();
                        vars.map.insert(name.clone(), Src::reg(r));
                    }
                }
                Statement::Inst { pred, op, args, text } => {
                    let pred = match pred {
                        Some((name, negate)) => {
                            let src =
                                *vars.map.get(name).ok_or_else(|| format!("the unknown predicate {name}"))?;
                            match self.known(src) {
                                Some(v) if (v & 1 != 0) != *negate => None,
                                Some(_) => continue,
                                None => Some(Pred { src, negate: *negate }),
                            }
                        }
                        None => None,
                    };
                    let line = Line { op, args, pred, text };
                    if op[0] == "bra" {
                        let Some(Operand::Var(l)) = args.first() else { return line.unknown() };
                        let to = *labels.get(l.as_str()).ok_or_else(|| format!("the unknown label {l}"))?;
                        let after = self.new_block();
                        match pred {
                            None => self.end(Term::Jump(to)),
                            Some(p) if p.negate => self.end(Term::Branch { c: p.src, yes: after, no: to }),
                            Some(p) => self.end(Term::Branch { c: p.src, yes: to, no: after }),
                        }
                        self.start(after);
                        continue;
                    }
                    self.line(&line, vars, outputs)?;
                }
            }
        }
        Ok(())
    }

    // ---- operands ----

    pub(super) fn src(&mut self, v: &Vars, o: &Operand, ty: &str) -> What<Src> {
        match o {
            Operand::Var(name) => match v.map.get(name) {
                Some(s) => Ok(*s),
                None => match name.strip_prefix('%').and_then(|n| self.sreg(n)) {
                    Some(s) => Ok(s),
                    None => Err(format!("the unknown operand {name} in inline assembly")),
                },
            },
            Operand::Imm(i) => {
                let w = bits_of(ty).unwrap_or(64);
                Ok(self.constant(if w < 64 { i & ((1 << w) - 1) } else { *i }))
            }
            Operand::Float(f) => {
                let bits = match float_of(ty) {
                    Some((Fmt::F64, _)) => f.to_bits(),
                    Some((Fmt::F16, _)) => u64::from(num::f64_to_f16(*f)),
                    Some((Fmt::BF16, _)) => u64::from(num::f64_to_bf16(*f)),
                    _ => u64::from((*f as f32).to_bits()),
                };
                Ok(self.constant(bits))
            }
            Operand::List(l) => {
                let w = u32::from(bits_of(ty).unwrap_or(32)) / l.len().max(1) as u32;
                let parts = l.iter().map(|o| self.src(v, o, "b64")).collect::<What<Vec<Src>>>()?;
                Ok(self.join(&parts, w))
            }
            other => Err(format!("the operand {other:?} in inline assembly")),
        }
    }

    pub(super) fn list(&mut self, v: &Vars, o: &Operand, ty: &str) -> What<Vec<Src>> {
        match o {
            Operand::List(l) => l.iter().map(|o| self.src(v, o, ty)).collect(),
            o => Ok(vec![self.src(v, o, ty)?]),
        }
    }

    pub(super) fn dest(&mut self, v: &mut Vars, o: &Operand) -> What<Reg> {
        match o {
            Operand::Var(name) => match v.map.get(name).map(|s| s.split()) {
                Some(Ok(r)) => Ok(r),
                _ => Err(format!("{name} as the destination of inline assembly")),
            },
            Operand::Sink => Ok(self.fresh()),
            other => Err(format!("{other:?} as the destination of inline assembly")),
        }
    }

    pub(super) fn dests(&mut self, v: &mut Vars, o: &Operand) -> What<Vec<Reg>> {
        match o {
            Operand::List(l) => l.iter().map(|o| self.dest(v, o)).collect(),
            o => Ok(vec![self.dest(v, o)?]),
        }
    }

    /// An address operand with its constant offset folded in.
    pub(super) fn address(&mut self, v: &Vars, o: &Operand) -> What<Src> {
        let Operand::Mem(base, offset, _) = o else { return Err(format!("{o:?} as an address")) };
        let s = self.src(v, base, "b64")?;
        if *offset == 0 {
            return Ok(s);
        }
        let b = self.constant(*offset as u64);
        Ok(self.int_op(IntOp::Add, 64, s, b))
    }

    pub(super) fn ptx_access(
        &mut self,
        v: &Vars,
        l: &Line<'_>,
        o: &Operand,
        bytes: u8,
        n: usize,
    ) -> What<Access> {
        let Operand::Mem(base, offset, _) = o else { return Err(format!("{o:?} as an address")) };
        let addr = self.src(v, base, "b64")?;
        let space = l.op.iter().find_map(|p| match p.split("::").next() {
            Some("global" | "const" | "param") => Some(Space::Global),
            Some("shared") => Some(Space::Shared),
            Some("local") => Some(Space::Local),
            _ => None,
        });
        let volatile = l.has("volatile") || l.has("relaxed") || l.has("acquire") || l.has("release");
        Ok(Access {
            space: space.unwrap_or(Space::Generic),
            addr,
            offset: *offset,
            bytes,
            align: u32::from(bytes) * n as u32,
            pred: l.pred,
            volatile,
            buffer: None,
        })
    }

    /// Emits a result under the line's predicate: where it is false the destination keeps its value.
    fn result(&mut self, l: &Line<'_>, d: Reg, s: Src) {
        match l.pred {
            None => self.emit(Op::Mov { d, s }),
            Some(p) => {
                let old = Src::reg(d);
                let (a, b) = if p.negate { (old, s) } else { (s, old) };
                self.emit(Op::Select { d, c: p.src, a, b });
            }
        }
    }

    fn line(&mut self, l: &Line<'_>, v: &mut Vars, outputs: &[Reg]) -> What<()> {
        match l.op[0].as_str() {
            "ld" | "ldu" => self.ptx_load(l, v),
            "st" => self.ptx_store(l, v),
            "atom" | "red" => self.ptx_atomic(l, v),
            "mma" => self.ptx_mma(l, v),
            "ldmatrix" | "stmatrix" => self.ptx_matrix(l, v),
            "cp" | "mbarrier" | "tensormap" | "fence" | "bar" | "barrier" | "shfl" | "vote" | "elect"
            | "redux" | "wgmma" => self.ptx_sync(l, v, outputs),
            "membar" | "griddepcontrol" | "setmaxnreg" | "nanosleep" | "prefetch" | "prefetchu"
            | "discard" | "applypriority" | "pragma" => self.nop("hint").map(drop),
            "trap" | "brkpt" => {
                self.emit(Op::Trap);
                Ok(())
            }
            "createpolicy" => {
                let d = self.dest(v, &l.args[0])?;
                let s = self.constant(0);
                self.result(l, d, s);
                Ok(())
            }
            "mov" if matches!(l.args.first(), Some(Operand::List(_))) => {
                let d = self.dests(v, &l.args[0])?;
                let s = self.src(v, &l.args[1], l.ty())?;
                let w = u32::from(bits_of(l.ty()).unwrap_or(32)) / d.len() as u32;
                for (part, d) in self.split(s, w, d.len() as u32).into_iter().zip(d) {
                    self.result(l, d, part);
                }
                Ok(())
            }
            _ => {
                if l.args.is_empty() {
                    return l.unknown();
                }
                // `setp` may write a predicate and its complement, `lop3`, `add.cc` an extra carry.
                let d = self.dest(v, &l.args[0])?;
                let s = self.ptx_value(l, v)?;
                self.result(l, d, s);
                Ok(())
            }
        }
    }

    // ---- memory ----

    fn vector_width(&self, l: &Line<'_>) -> usize {
        l.op.iter().find_map(|p| p.strip_prefix('v').and_then(|n| n.parse().ok())).unwrap_or(1)
    }

    fn ptx_load(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        let Some(bits) = bits_of(l.ty()) else { return l.unknown() };
        let d = self.dests(v, &l.args[0])?;
        let n = self.vector_width(l);
        if d.len() != n {
            return l.unknown();
        }
        let at = self.ptx_access(v, l, &l.args[1], bits / 8, n)?;
        let signed = l.ty().starts_with('s') && bits < 32;
        self.emit(Op::Ld { d: d.clone().into(), at });
        if signed {
            for r in d {
                let s = self.value(|x| Op::Cvt { cvt: Cvt::Sext(bits, 32), d: x, a: Src::reg(r) });
                self.result(l, r, s);
            }
        }
        Ok(())
    }

    fn ptx_store(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        let ty = l.ty().to_owned();
        let Some(bits) = bits_of(&ty) else { return l.unknown() };
        let values = self.list(v, &l.args[1], &ty)?;
        let n = self.vector_width(l);
        if values.len() != n {
            return l.unknown();
        }
        let at = self.ptx_access(v, l, &l.args[0], bits / 8, n)?;
        self.emit(Op::St { v: values.into(), at });
        Ok(())
    }

    fn ptx_atomic(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        let ty = l.ty().to_owned();
        let Some(bits) = bits_of(&ty) else { return l.unknown() };
        let red = l.op[0] == "red";
        let (d, rest) = if red { (None, l.args) } else { (Some(&l.args[0]), &l.args[1..]) };
        let values = self.list(v, &rest[1], &ty)?;
        let mut at = self.ptx_access(v, l, &rest[0], bits / 8, values.len())?;
        at.volatile = true;
        let float = float_of(&ty);
        let signed = ty.starts_with('s');
        let op = match l.op.iter().find_map(|p| match p.as_str() {
            "add" | "min" | "max" | "and" | "or" | "xor" | "exch" | "cas" | "inc" | "dec" => Some(p.as_str()),
            _ => None,
        }) {
            Some("add") => match float {
                Some((f, true)) => AtomOp::FAdd2(f),
                Some((f, false)) => AtomOp::FAdd(f),
                None => AtomOp::Add,
            },
            Some("min") => {
                float.map_or(if signed { AtomOp::SMin } else { AtomOp::UMin }, |f| AtomOp::FMin(f.0))
            }
            Some("max") => {
                float.map_or(if signed { AtomOp::SMax } else { AtomOp::UMax }, |f| AtomOp::FMax(f.0))
            }
            Some("and") => AtomOp::And,
            Some("or") => AtomOp::Or,
            Some("xor") => AtomOp::Xor,
            Some("exch") => AtomOp::Exch,
            Some("inc") => AtomOp::Inc,
            Some("dec") => AtomOp::Dec,
            Some(_) => AtomOp::Cas,
            None => return l.unknown(),
        };
        let (v_src, cmp) = match op {
            AtomOp::Cas => (vec![self.src(v, &rest[2], &ty)?], Some(values[0])),
            _ => (values, None),
        };
        let d = match d {
            Some(o) => Some(self.dest(v, o)?),
            None => None,
        };
        self.emit(Op::Atom { op, d, v: v_src.into(), cmp, at });
        Ok(())
    }

    // ---- arithmetic ----

    /// The value of an instruction with one result.
    fn ptx_value(&mut self, l: &Line<'_>, v: &mut Vars) -> What<Src> {
        let ty = l.ty().to_owned();
        let name = l.op[0].as_str();
        if name == "cvt" {
            return self.ptx_cvt(l, v);
        }
        if name == "setp" || name == "set" {
            return self.ptx_setp(l, v);
        }
        let operand_ty = match name {
            "shl" | "shr" => "b64",
            _ => ty.as_str(),
        };
        let mut s = Vec::new();
        for (i, o) in l.args[1..].iter().enumerate() {
            let t = if i == 0 { ty.as_str() } else { operand_ty };
            let t = match (name, i) {
                ("selp", 2) => "pred",
                ("bfe" | "bfi" | "shf" | "lop3" | "prmt", _) => "b32",
                _ => t,
            };
            s.push(self.src(v, o, t)?);
        }
        if s.is_empty() {
            return l.unknown();
        }
        if matches!(name, "mov" | "cvta" | "mapa") {
            return Ok(s[0]);
        }
        if let Some((f, packed)) = float_of(&ty) {
            return self.ptx_float(l, f, packed, &s);
        }
        let Some(w) = bits_of(&ty) else { return l.unknown() };
        let signed = ty.starts_with('s');
        let tern = |d: &mut Self, op, c| Ok(d.value(|r| Op::IntTern { op, w, d: r, a: s[0], b: s[1], c }));
        let bin = |d: &mut Self, op| Ok(d.int_op(op, w, s[0], s[1]));
        let un = |d: &mut Self, op| Ok(d.value(|r| Op::IntUn { op, w, d: r, a: s[0] }));
        let third = s.get(2).copied();
        match (name, s.len()) {
            ("add", 2) => {
                if l.has("cc") {
                    let zero = self.constant(0);
                    let carry = self.value(|r| Op::IntTern {
                        op: IntTern::AddCarry,
                        w,
                        d: r,
                        a: s[0],
                        b: s[1],
                        c: zero,
                    });
                    v.map.insert("cc".into(), carry);
                }
                bin(self, IntOp::Add)
            }
            ("addc", 2) => {
                let carry = *v.map.get("cc").ok_or("an addc without a carry before it")?;
                let sum = self.int_op(IntOp::Add, w, s[0], s[1]);
                if l.has("cc") {
                    let out = self.value(|r| Op::IntTern {
                        op: IntTern::AddCarry,
                        w,
                        d: r,
                        a: s[0],
                        b: s[1],
                        c: carry,
                    });
                    v.map.insert("cc".into(), out);
                }
                Ok(self.int_op(IntOp::Add, w, sum, carry))
            }
            ("sub", 2) if !l.has("cc") => bin(self, IntOp::Sub),
            ("mul", 2) if l.has("hi") => bin(self, if signed { IntOp::MulHiS } else { IntOp::MulHiU }),
            ("mul" | "mad", _) if l.has("wide") => {
                let ext = |d: &mut Self, a| {
                    if signed { d.value(|r| Op::Cvt { cvt: Cvt::Sext(w, 64), d: r, a }) } else { a }
                };
                let (a, b) = (ext(self, s[0]), ext(self, s[1]));
                let p = self.int_op(IntOp::Mul, w * 2, a, b);
                Ok(match third {
                    Some(c) => self.int_op(IntOp::Add, w * 2, p, c),
                    None => p,
                })
            }
            ("mul", 2) => bin(self, IntOp::Mul),
            ("mad", 3) if l.has("hi") => {
                tern(self, if signed { IntTern::MadHiS } else { IntTern::MadHiU }, s[2])
            }
            ("mad", 3) => {
                if l.has("cc") {
                    let carry = self.value(|r| Op::IntTern {
                        op: IntTern::MadCarry,
                        w,
                        d: r,
                        a: s[0],
                        b: s[1],
                        c: s[2],
                    });
                    v.map.insert("cc".into(), carry);
                }
                tern(self, IntTern::MadLo, s[2])
            }
            ("madc", 3) => {
                let carry = *v.map.get("cc").ok_or("a madc without a carry before it")?;
                let op = match (l.has("hi"), signed) {
                    (true, true) => IntTern::MadHiS,
                    (true, false) => IntTern::MadHiU,
                    _ => IntTern::MadLo,
                };
                let product: Src = self.value(|r| Op::IntTern { op, w, d: r, a: s[0], b: s[1], c: s[2] });
                if l.has("cc") {
                    return l.unknown();
                }
                Ok(self.int_op(IntOp::Add, w, product, carry))
            }
            ("div", 2) => bin(self, if signed { IntOp::SDiv } else { IntOp::UDiv }),
            ("rem", 2) => bin(self, if signed { IntOp::SRem } else { IntOp::URem }),
            ("min", 2) => bin(self, if signed { IntOp::SMin } else { IntOp::UMin }),
            ("max", 2) => bin(self, if signed { IntOp::SMax } else { IntOp::UMax }),
            ("and", 2) => bin(self, IntOp::And),
            ("or", 2) => bin(self, IntOp::Or),
            ("xor", 2) => bin(self, IntOp::Xor),
            ("shl", 2) => self.clamped_shift(IntOp::Shl, w, s[0], s[1]),
            ("shr", 2) => self.clamped_shift(if signed { IntOp::AShr } else { IntOp::LShr }, w, s[0], s[1]),
            ("not", 1) => un(self, IntUn::Not),
            ("neg", 1) => un(self, IntUn::Neg),
            ("abs", 1) => un(self, IntUn::Abs),
            ("popc", 1) => un(self, IntUn::Popc),
            ("clz", 1) => un(self, IntUn::Clz),
            ("brev", 1) => un(self, IntUn::BitReverse),
            ("prmt", 3) if l.op.len() == 2 => tern(self, IntTern::Prmt, s[2]),
            ("lop3", _) => {
                let table = s.get(3).and_then(|s| self.known(*s)).ok_or("a lop3 with an unknown table")?;
                tern(self, IntTern::Lop3(table as u8), s[2])
            }
            ("bfe", 3) => tern(self, if signed { IntTern::BfeS } else { IntTern::BfeU }, s[2]),
            ("shf", 3) if l.has("wrap") => {
                // (b:a) shifted; the funnel operations take the high word first.
                let op = if l.has("l") { IntTern::Fshl } else { IntTern::Fshr };
                Ok(self.value(|r| Op::IntTern { op, w: 32, d: r, a: s[1], b: s[0], c: s[2] }))
            }
            ("dp4a", 3) => tern(self, if signed { IntTern::Dp4aS } else { IntTern::Dp4aU }, s[2]),
            ("selp", 3) => Ok(self.value(|d| Op::Select { d, c: s[2], a: s[0], b: s[1] })),
            _ => l.unknown(),
        }
    }

    /// PTX clamps shift amounts to the width; LLVM leaves larger ones undefined.
    fn clamped_shift(&mut self, op: IntOp, w: u8, a: Src, b: Src) -> What<Src> {
        match self.known(b) {
            Some(n) if n < u64::from(w) => Ok(self.int_op(op, w, a, b)),
            _ => {
                // The interpreter's shifts by the width or more give what PTX wants.
                Ok(self.int_op(op, w, a, b))
            }
        }
    }

    fn ptx_float(&mut self, l: &Line<'_>, f: Fmt, packed: bool, s: &[Src]) -> What<Src> {
        if packed {
            let mut halves = Vec::new();
            for i in 0..2u8 {
                let part: Vec<Src> = s
                    .iter()
                    .map(|s| self.value(|d| Op::Bits { d, a: *s, shift: i * 16, width: 16 }))
                    .collect();
                halves.push(self.ptx_float(l, f, false, &part)?);
            }
            return Ok(self.join(&halves, 16));
        }
        let (ftz, approx) = (l.has("ftz"), l.has("approx"));
        let round = rounding(l);
        let bin = |d: &mut Self, op| Ok(d.value(|r| Op::Float { op, f, round, ftz, d: r, a: s[0], b: s[1] }));
        let un = |d: &mut Self, op| Ok(d.value(|r| Op::FloatUn { op, f, ftz, approx, d: r, a: s[0] }));
        match (l.op[0].as_str(), s.len()) {
            ("add", 2) => bin(self, FloatOp::Add),
            ("sub", 2) => bin(self, FloatOp::Sub),
            ("mul", 2) => bin(self, FloatOp::Mul),
            ("div", 2) => bin(self, FloatOp::Div),
            ("min", 2) => bin(self, if l.has("NaN") { FloatOp::Minimum } else { FloatOp::Min }),
            ("max", 2) => bin(self, if l.has("NaN") { FloatOp::Maximum } else { FloatOp::Max }),
            ("copysign", 2) => {
                Ok(self.value(|r| Op::Float { op: FloatOp::CopySign, f, round, ftz, d: r, a: s[1], b: s[0] }))
            }
            ("fma" | "mad", 3) => {
                let relu = l.has("relu");
                Ok(self.value(|r| Op::Fma { f, round, ftz, relu, d: r, a: s[0], b: s[1], c: s[2] }))
            }
            ("ex2", 1) => un(self, FloatUn::Exp2),
            ("lg2", 1) => un(self, FloatUn::Log2),
            ("rcp", 1) => un(self, FloatUn::Rcp),
            ("rsqrt", 1) => un(self, FloatUn::Rsqrt),
            ("sqrt", 1) => un(self, FloatUn::Sqrt),
            ("sin", 1) => un(self, FloatUn::Sin),
            ("cos", 1) => un(self, FloatUn::Cos),
            ("tanh", 1) => un(self, FloatUn::Tanh),
            ("neg", 1) => un(self, FloatUn::Neg),
            ("abs", 1) => un(self, FloatUn::Abs),
            ("selp", 3) => Ok(self.value(|d| Op::Select { d, c: s[2], a: s[0], b: s[1] })),
            _ => l.unknown(),
        }
    }

    fn ptx_setp(&mut self, l: &Line<'_>, v: &mut Vars) -> What<Src> {
        let ty = l.ty().to_owned();
        let n = l.args.len();
        let (a, b) = (self.src(v, &l.args[n - 2], &ty)?, self.src(v, &l.args[n - 1], &ty)?);
        let Some(kind) = l.op.get(1) else { return l.unknown() };
        if n != 3 || l.op[0] == "set" {
            return l.unknown();
        }
        if let Some((f, false)) = float_of(&ty) {
            let name = match kind.as_str() {
                "num" => "ord".to_owned(),
                "nan" => "uno".to_owned(),
                k if k.ends_with('u') => format!("u{}", &k[..2]),
                k => format!("o{k}"),
            };
            let op = super::inst::float_cmp(&name);
            return Ok(self.value(|d| Op::FCmp { op, f, ftz: l.has("ftz"), d, a, b }));
        }
        let Some(w) = bits_of(&ty) else { return l.unknown() };
        let signed = ty.starts_with('s');
        let op = match (kind.as_str(), signed) {
            ("eq", _) => Cmp::Eq,
            ("ne", _) => Cmp::Ne,
            ("lt", true) => Cmp::SLt,
            ("le", true) => Cmp::SLe,
            ("gt", true) => Cmp::SGt,
            ("ge", true) => Cmp::SGe,
            ("lt" | "lo", false) => Cmp::ULt,
            ("le" | "ls", false) => Cmp::ULe,
            ("gt" | "hi", false) => Cmp::UGt,
            ("ge" | "hs", false) => Cmp::UGe,
            _ => return l.unknown(),
        };
        Ok(self.value(|d| Op::ICmp { op, w, d, a, b }))
    }

    fn ptx_cvt(&mut self, l: &Line<'_>, v: &mut Vars) -> What<Src> {
        let n = l.op.len();
        let (to, from) = (l.op[n - 2].as_str(), l.op[n - 1].as_str());
        let mut s = Vec::new();
        for o in &l.args[1..] {
            s.push(self.src(v, o, from)?);
        }
        let round = rounding(l);
        let saturate = l.has("satfinite");
        let relu = l.has("relu");
        let ftz = l.has("ftz");
        let code = |t: &str| match t {
            "e4m3x2" => Some(num::E4M3),
            "e5m2x2" => Some(num::E5M2),
            _ => None,
        };
        let one = |d: &mut Self, cvt: Cvt, a: Src| d.value(|r| Op::Cvt { cvt, d: r, a });
        // Two values packed: `cvt.rn.f16x2.f32 d, high, low`.
        if let Some(f) = code(to) {
            let pair = match (from, s.len()) {
                ("f32", 2) => [(s[1], Fmt::F32), (s[0], Fmt::F32)],
                ("f16x2" | "bf16x2", 1) => {
                    let fmt = if from == "f16x2" { Fmt::F16 } else { Fmt::BF16 };
                    let h = self.split(s[0], 16, 2);
                    [(h[0], fmt), (h[1], fmt)]
                }
                _ => return l.unknown(),
            };
            let codes: Vec<Src> = pair
                .iter()
                .map(|(a, from)| one(self, Cvt::ToCode { from: *from, to: f, round, saturate, relu }, *a))
                .collect();
            return Ok(self.join(&codes, 8));
        }
        if let Some(f) = code(from) {
            let Some((to, true)) = float_of(to) else { return l.unknown() };
            let h = self.split(s[0], 8, 2);
            let values: Vec<Src> = h.iter().map(|a| one(self, Cvt::FromCode { from: f, to }, *a)).collect();
            return Ok(self.join(&values, 16));
        }
        if to == "tf32" {
            return Ok(one(self, Cvt::ToTf32 { round }, s[0]));
        }
        match (float_of(to), float_of(from)) {
            (Some((to, true)), Some((from, false))) if s.len() == 2 => {
                let c = Cvt::Float { from, to, round, saturate, relu, ftz };
                let (low, high) = (one(self, c, s[1]), one(self, c, s[0]));
                Ok(self.join(&[low, high], 16))
            }
            (Some((to, false)), Some((from, false))) => {
                // `cvt.rni.f32.f32` and the like round to an integer.
                let integral = [
                    ("rni", FloatUn::Rint),
                    ("rzi", FloatUn::Trunc),
                    ("rmi", FloatUn::Floor),
                    ("rpi", FloatUn::Ceil),
                ];
                if let Some((_, op)) = integral.iter().find(|(n, _)| l.has(n)) {
                    return Ok(self.value(|d| Op::FloatUn {
                        op: *op,
                        f: from,
                        ftz,
                        approx: false,
                        d,
                        a: s[0],
                    }));
                }
                Ok(one(self, Cvt::Float { from, to, round, saturate, relu, ftz }, s[0]))
            }
            (None, Some((from, false))) => {
                let Some(width) = bits_of(to) else { return l.unknown() };
                Ok(one(self, Cvt::FloatToInt { from, width, signed: to.starts_with('s'), round }, s[0]))
            }
            (Some((to, false)), None) => {
                let Some(width) = bits_of(from) else { return l.unknown() };
                Ok(one(self, Cvt::IntToFloat { width, signed: from.starts_with('s'), to, round }, s[0]))
            }
            (None, None) => {
                let (Some(w), Some(from_bits)) = (bits_of(to), bits_of(from)) else { return l.unknown() };
                if l.has("sat") {
                    return l.unknown();
                }
                if from.starts_with('s') && w > from_bits {
                    return Ok(one(self, Cvt::Sext(from_bits, w), s[0]));
                }
                Ok(one(self, Cvt::Zext(w.min(from_bits)), s[0]))
            }
            _ => l.unknown(),
        }
    }
}

fn rounding(l: &Line<'_>) -> Round {
    let has = |a: &str, b: &str| l.has(a) || l.has(b);
    if has("rz", "rzi") {
        Round::Zero
    } else if has("rm", "rmi") {
        Round::Down
    } else if has("rp", "rpi") {
        Round::Up
    } else if l.has("rna") {
        Round::NearestAway
    } else {
        Round::Nearest
    }
}
