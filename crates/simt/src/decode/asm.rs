//! Inline assembly: binds operands to constraints and lowers the PTX statements to bytecode.

use std::collections::{HashMap, HashSet};

use super::{Decoder, Term, What};
use crate::bytecode::*;
use crate::ir::{Inst, Order, Vendor};
use crate::num;
use crate::ptx::{self, Operand, Statement};

/// Variables of one piece of inline assembly.
pub(super) struct Vars {
    /// Registers and input operands by name.
    pub map: HashMap<String, Src>,
    /// Those of 128 bits, as two words, the low one first.
    pub wide: HashMap<String, [Src; 2]>,
    /// Initial values of outputs that one instruction reads and writes, where no copy was made.
    pub tied: HashMap<Reg, Src>,
    /// Those that are predicates.
    pub predicates: HashSet<String>,
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
    pub fn ty(&self) -> &str {
        self.op.last().map_or("", String::as_str)
    }

    /// An operand that must be there.
    pub fn arg(&self, i: usize) -> What<&Operand> {
        self.args.get(i).map_or_else(|| self.unknown(), Ok)
    }

    pub fn unknown<T>(&self) -> What<T> {
        Err(format!("the instruction '{}' in inline assembly", self.text))
    }
}

pub(super) fn bits_of(ty: &str) -> Option<u8> {
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

pub(super) fn float_of(ty: &str) -> Option<(Fmt, bool)> {
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
        if self.gpu.vendor == Vendor::Amd {
            return self.amd_asm(text, inst, args);
        }
        let statements = ptx::parse(text)?;
        let scalars = inst.ty.scalars();
        let mut vars = Vars {
            map: HashMap::new(),
            wide: HashMap::new(),
            tied: HashMap::new(),
            predicates: HashSet::new(),
        };
        let mut outputs: Vec<Reg> = Vec::new();
        let mut inputs = args.iter();
        let mut n = 0;
        // A matrix instruction reads its accumulators before it writes them: no copies needed for a single one, nor for
        // several of a warp group. Copies of what a warp group still adds to would be findings.
        let is = |s: &Statement, first: &str, second: Option<&str>| {
            matches!(s, Statement::Inst { op, pred: None, .. }
                if op[0] == first && second.is_none_or(|second| op.get(1).is_some_and(|o| o == second)))
        };
        let of_group = |s: &Statement| is(s, "wgmma", Some("mma_async")) || is(s, "wgmma", Some("fence"));
        let alone =
            matches!(&statements[..], [one] if is(one, "mma", None)) || statements.iter().all(of_group);
        for c in constraints.split(',') {
            let c = c.trim();
            if c.starts_with('~') || c.is_empty() {
                continue;
            }
            let name = format!("${n}");
            n += 1;
            if c.starts_with('=') {
                let r = self.fresh();
                if c.ends_with('q') {
                    let high = self.fresh();
                    outputs.extend([r, high]);
                    vars.wide.insert(name, [Src::reg(r), Src::reg(high)]);
                    continue;
                }
                outputs.push(r);
                vars.map.insert(name, Src::reg(r));
                continue;
            }
            if c == "b" {
                vars.predicates.insert(name.clone());
            }
            let Some(v) = inputs.next() else {
                return Err("inline assembly with fewer operands than constraints".into());
            };
            if let ("q", [low, high]) = (c, &v[..]) {
                vars.wide.insert(name, [*low, *high]);
                continue;
            }
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
        // Of several instructions none may use some outputs.
        for (d, s) in std::mem::take(&mut vars.tied).into_iter().filter(|_| statements.len() != 1) {
            self.emit(Op::Mov { d, s });
        }
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
                Statement::Reg(ty, names) if ty == "b128" => {
                    for name in names {
                        let words = [self.fresh(), self.fresh()].map(Src::reg);
                        vars.wide.insert(name.clone(), words);
                    }
                }
                Statement::Reg(ty, names) => {
                    if ty == "pred" {
                        vars.predicates.extend(names.iter().cloned());
                    }
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

    /// A value of 128 bits: a register of that width, or a list of two words.
    fn wide_src(&mut self, v: &Vars, o: &Operand) -> What<[Src; 2]> {
        match o {
            Operand::Var(name) if v.wide.contains_key(name) => Ok(v.wide[name]),
            Operand::List(l) if l.len() == 2 => Ok([self.src(v, &l[0], "b64")?, self.src(v, &l[1], "b64")?]),
            other => Err(format!("{other:?} as an operand of 128 bits")),
        }
    }

    fn wide_dest(&mut self, v: &mut Vars, o: &Operand) -> What<[Reg; 2]> {
        match o {
            Operand::Var(name) => match v.wide.get(name).map(|w| w.map(Src::split)) {
                Some([Ok(low), Ok(high)]) => Ok([low, high]),
                _ => Err(format!("{name} as a destination of 128 bits")),
            },
            Operand::List(l) if l.len() == 2 => Ok([self.dest(v, &l[0])?, self.dest(v, &l[1])?]),
            Operand::Sink => Ok([self.fresh(), self.fresh()]),
            other => Err(format!("{other:?} as a destination of 128 bits")),
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
        let (acquire, release) = (l.has("acquire"), l.has("release"));
        let order = Order {
            strong: l.has("volatile") || l.has("relaxed") || l.has("acq_rel") || acquire || release,
            acquire: acquire || l.has("acq_rel"),
            release: release || l.has("acq_rel"),
            weak: l.has("weak"),
        };
        Ok(Access {
            space: space.unwrap_or(Space::Generic),
            addr,
            offset: *offset,
            bytes,
            align: u32::from(bytes) * n as u32,
            pred: l.pred,
            gaps: 0,
            order,
            buffer: None,
        })
    }

    /// Emits a result under the line's predicate: where it is false the destination keeps its value.
    pub(super) fn result(&mut self, l: &Line<'_>, d: Reg, s: Src) {
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
        // Hardly any instruction has neither modifiers nor operands; the others need what is taken for
        // granted below.
        let head = l.op[0].as_str();
        let alone = matches!(head, "trap" | "brkpt" | "exit" | "pragma");
        let bare =
            matches!(head, "membar" | "fence" | "griddepcontrol" | "barrier" | "cp" | "wgmma" | "prefetch");
        if !alone && (l.op.len() == 1 || (l.args.is_empty() && !bare)) {
            return l.unknown();
        }
        match l.op[0].as_str() {
            "ld" | "ldu" => self.ptx_load(l, v),
            "st" => self.ptx_store(l, v),
            "atom" | "red" => self.ptx_atomic(l, v),
            "mma" => self.ptx_mma(l, v),
            "ldmatrix" | "stmatrix" => self.ptx_matrix(l, v),
            "cp" | "mbarrier" | "tensormap" | "fence" | "bar" | "barrier" | "shfl" | "vote" | "elect"
            | "redux" | "wgmma" | "match" | "activemask" => self.ptx_sync(l, v, outputs),
            "membar" if !l.has("proxy") => {
                self.emit(Op::Fence { order: Order::BOTH, device: true });
                Ok(())
            }
            "membar" | "griddepcontrol" | "setmaxnreg" | "nanosleep" | "prefetch" | "prefetchu"
            | "discard" | "applypriority" | "pragma" => self.nop("hint").map(drop),
            "exit" if l.pred.is_none() => {
                self.emit(Op::Exit);
                Ok(())
            }
            "trap" | "brkpt" => {
                if l.pred.is_some() {
                    return l.unknown();
                }
                self.emit(Op::Trap);
                Ok(())
            }
            "createpolicy" => {
                let d = self.dest(v, l.arg(0)?)?;
                let s = self.constant(0);
                self.result(l, d, s);
                Ok(())
            }
            "mapa" => {
                let d = self.dest(v, l.arg(0)?)?;
                let (addr, rank) = (self.src(v, l.arg(1)?, l.ty())?, self.src(v, l.arg(2)?, "b32")?);
                let s = self.value(|d| Op::MapShared { d, addr, rank });
                self.result(l, d, s);
                Ok(())
            }
            "getctarank" => {
                let d = self.dest(v, l.arg(0)?)?;
                let addr = self.src(v, l.arg(1)?, l.ty())?;
                let s = self.value(|d| Op::RankOf { d, addr });
                self.result(l, d, s);
                Ok(())
            }
            "setp" => self.ptx_setp(l, v),
            "mov" if l.ty() == "b128" => {
                let s = self.wide_src(v, l.arg(1)?)?;
                for (d, s) in self.wide_dest(v, l.arg(0)?)?.into_iter().zip(s) {
                    self.result(l, d, s);
                }
                Ok(())
            }
            "mov" if matches!(l.args.first(), Some(Operand::List(_))) => {
                let d = self.dests(v, l.arg(0)?)?;
                let s = self.src(v, l.arg(1)?, l.ty())?;
                let w = u32::from(bits_of(l.ty()).unwrap_or(32)) / d.len() as u32;
                for (part, d) in self.split(s, w, d.len() as u32).into_iter().zip(d) {
                    self.result(l, d, part);
                }
                Ok(())
            }
            _ => {
                if !matches!(l.args.first(), Some(Operand::Var(_) | Operand::Sink)) {
                    return l.unknown();
                }
                let d = self.dest(v, l.arg(0)?)?;
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
        let d = self.dests(v, l.arg(0)?)?;
        let n = self.vector_width(l);
        if d.len() != n {
            return l.unknown();
        }
        let at = self.ptx_access(v, l, l.arg(1)?, bits / 8, n)?;
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
        let values = self.list(v, l.arg(1)?, &ty)?;
        let n = self.vector_width(l);
        if values.len() != n {
            return l.unknown();
        }
        let at = self.ptx_access(v, l, l.arg(0)?, bits / 8, n)?;
        if l.has("async") {
            let mbar = self.address(v, l.arg(2)?)?;
            self.emit(Op::StAsync { v: values.into(), at, mbar });
            return Ok(());
        }
        self.emit(Op::St { v: values.into(), at });
        Ok(())
    }

    fn ptx_atomic(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        let ty = l.ty().to_owned();
        if ty == "b128" {
            return self.ptx_atomic_wide(l, v);
        }
        let Some(bits) = bits_of(&ty) else { return l.unknown() };
        let red = l.op[0] == "red";
        let (d, rest) = if red { (None, l.args) } else { (Some(l.arg(0)?), &l.args[1..]) };
        if rest.len() < 2 || l.has("async") {
            return l.unknown();
        }
        let values = self.list(v, &rest[1], &ty)?;
        if values.len() != self.vector_width(l) {
            return l.unknown();
        }
        let mut at = self.ptx_access(v, l, &rest[0], bits / 8, values.len())?;
        at.order.strong = true;
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
            Some("min") => match float {
                Some((f, true)) => AtomOp::FMin2(f),
                Some((f, false)) => AtomOp::FMin(f),
                None => {
                    if signed {
                        AtomOp::SMin
                    } else {
                        AtomOp::UMin
                    }
                }
            },
            Some("max") => match float {
                Some((f, true)) => AtomOp::FMax2(f),
                Some((f, false)) => AtomOp::FMax(f),
                None => {
                    if signed {
                        AtomOp::SMax
                    } else {
                        AtomOp::UMax
                    }
                }
            },
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
            AtomOp::Cas => (vec![self.src(v, l.arg(3)?, &ty)?], vec![values[0]]),
            _ => (values, Vec::new()),
        };
        let d = match d {
            Some(o) => self.dests(v, o)?,
            None => Vec::new(),
        };
        if !d.is_empty() && d.len() != v_src.len() {
            return l.unknown();
        }
        self.emit(Op::Atom { op, d: d.into(), v: v_src.into(), cmp: cmp.into(), at });
        Ok(())
    }

    /// `atom.exch.b128` and `atom.cas.b128` (PTX ISA, sm_90 on).
    fn ptx_atomic_wide(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        let (op, words) = match () {
            () if l.has("exch") => (AtomOp::Exch, 3),
            () if l.has("cas") => (AtomOp::Cas, 4),
            () => return l.unknown(),
        };
        if l.op[0] != "atom" || l.args.len() != words {
            return l.unknown();
        }
        let d = self.wide_dest(v, l.arg(0)?)?;
        let mut at = self.ptx_access(v, l, l.arg(1)?, 8, 2)?;
        at.order.strong = true;
        let new = self.wide_src(v, l.arg(words - 1)?)?;
        let cmp = if op == AtomOp::Cas { self.wide_src(v, l.arg(2)?)?.to_vec() } else { Vec::new() };
        self.emit(Op::Atom { op, d: d.into(), v: new.into(), cmp: cmp.into(), at });
        Ok(())
    }
}
