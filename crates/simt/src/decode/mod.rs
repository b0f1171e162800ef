//! Decodes LLVM IR into bytecode.
//!
//! Calls of functions with a body are inlined, so a kernel becomes one control-flow graph; recursion is an
//! error, as on the hardware. Phis become copies on the edges, with a block of their own on every edge that
//! needs them. Where lanes may part at a branch, the branch names the block where they meet again: the
//! immediate post-dominator. Blocks are laid out in reverse post-order.

mod amd;
mod arith;
mod asm;
mod inst;
mod intrinsic;
mod memory;
mod needs;
mod nvvm;
mod nvvm_ptx;
mod sync;
mod value;

use std::collections::HashMap;

use crate::bytecode::*;
use crate::gpu::Gpu;
use crate::ir::{self, Loc, Module, Operand, Scalar, Ty, Vendor};
use crate::mem::{CONST_BASE, LOCAL_WINDOW, MOST_LOCAL, MOST_VARIABLES, SHARED_WINDOW};
use crate::{Error, cfg};

/// How a block ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Term {
    Jump(u32),
    Branch { c: Src, yes: u32, no: u32 },
    Exit,
}

#[derive(Default)]
pub(crate) struct Block {
    pub ops: Vec<(Op, Loc)>,
    pub term: Option<(Term, Loc)>,
}

/// What went wrong at one instruction; [`Decoder`] adds where.
pub(crate) type What<T> = Result<T, String>;

pub(crate) struct Decoder<'m> {
    module: &'m Module,
    blocks: Vec<Block>,
    current: u32,
    loc: Loc,
    regs: u32,
    consts: Vec<(u64, bool)>,
    const_of: HashMap<(u64, bool), u32>,
    /// Address of every global variable.
    globals: Vec<u64>,
    static_shared: u32,
    dynamic_shared: bool,
    local_bytes: u32,
    stack: Vec<String>,
    /// Number of the entries of the constant table that are kernel arguments.
    params: u32,
    /// Bytes of constant data.
    rodata: Vec<u8>,
    ftz_flag: bool,
    /// The block in which no load moves from here to before what has been decoded of it, and of those that come before it.
    pinned_in: Option<u32>,
    pub(crate) gpu: Gpu,
}

/// Values of one function being decoded.
pub(crate) struct Frame<'f> {
    function: &'f ir::Function,
    args: Vec<Vec<Src>>,
    values: Vec<Option<Vec<Src>>>,
    /// First decoded block of every IR block.
    block_of: Vec<u32>,
    /// Edges that carry phi copies: (trampoline, from, to).
    edges: Vec<(u32, u32, u32)>,
    /// Where `ret` goes, and its registers; `None` in the kernel.
    ret: Option<(u32, Vec<Reg>)>,
}

/// Chooses the kernel: the one named, or the only one.
pub fn kernel<'m>(module: &'m Module, name: Option<&str>) -> Result<&'m ir::Function, Error> {
    let kernels: Vec<&ir::Function> = module.functions.iter().filter(|f| f.kernel).collect();
    let list = || module.functions.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", ");
    match name {
        Some(n) => module
            .functions
            .iter()
            .find(|f| f.name == n)
            .ok_or_else(|| Error::Launch(format!("no function @{n} in the module; it has: {}", list()))),
        None => match kernels[..] {
            [one] => Ok(one),
            [] if module.functions.len() == 1 => Ok(&module.functions[0]),
            [] if module.functions.is_empty() => Err(Error::Launch("the module has no functions".to_owned())),
            [] => {
                Err(Error::Launch(format!("the module has no kernel; name one of its functions: {}", list())))
            }
            _ => Err(Error::Launch(format!("the module has several kernels; name one of: {}", list()))),
        },
    }
}

/// Decodes a kernel.
pub fn decode(module: &Module, name: Option<&str>) -> Result<Program, Error> {
    let function = kernel(module, name)?;
    let gpu = Gpu::of(module, function)?;
    let shared_base = match gpu.vendor {
        // NVIDIA reserves the first 1 KiB of a program's shared memory for the system (sm_80 and later).
        Vendor::Nvidia => 1024,
        Vendor::Amd => 0,
    };
    let mut d = Decoder {
        module,
        blocks: vec![Block::default()],
        current: 0,
        loc: Loc::default(),
        regs: 0,
        consts: Vec::new(),
        const_of: HashMap::new(),
        globals: Vec::new(),
        static_shared: 0,
        dynamic_shared: false,
        local_bytes: 0,
        stack: Vec::new(),
        params: 0,
        rodata: Vec::new(),
        ftz_flag: module.reflect_ftz,
        pinned_in: None,
        gpu,
    };
    d.place_globals(shared_base)?;
    d.params = function.params.len() as u32;
    for i in 0..d.params {
        d.consts.push((u64::from(i), false));
    }
    let mut args = Vec::new();
    for (i, p) in function.params.iter().enumerate() {
        if p.scalars().len() != 1 {
            return Err(Error::Unsupported {
                what: format!("argument {i} of type {p:?}"),
                place: format!("@{}", function.name),
            });
        }
        args.push(vec![Src::constant(i as u32)]);
    }
    d.function(function, args, None).map_err(|(what, loc)| d.error(&function.name, what, loc))?;
    let layout = cfg::layout(&d.blocks);
    let full = |mask: Src| d.known(mask).is_some_and(|m| m as u32 == u32::MAX);
    let needs = needs::of(&layout.code, full);
    Ok(Program {
        name: function.name.clone(),
        gpu,
        code: layout.code.into(),
        locs: layout.locs.into(),
        files: module.files.clone(),
        regs: d.regs,
        consts: d.consts,
        params: function.params.clone(),
        block: function.block,
        threads: function.threads,
        cluster: function.cluster,
        static_shared: d.static_shared,
        dynamic_shared: d.dynamic_shared,
        shared_base,
        local_bytes: d.local_bytes,
        acquires: needs.acquires,
        exact: needs.exact,
        wgmma: needs.wgmma,
        rodata: d.rodata,
    })
}

impl<'m> Decoder<'m> {
    fn error(&self, kernel: &str, what: String, loc: Loc) -> Error {
        let file = self.module.files.get(loc.file as usize).map_or("", String::as_str);
        let place =
            if loc.line == 0 { format!("@{kernel}") } else { format!("@{kernel}, {file}:{}", loc.line) };
        Error::Unsupported { what, place }
    }

    fn place_globals(&mut self, shared_base: u32) -> Result<(), Error> {
        let mut dynamic = Vec::new();
        for (i, g) in self.module.globals.iter().enumerate() {
            let align = u64::from(g.align.max(16));
            let taken = if g.space == 3 { u64::from(self.static_shared) } else { self.rodata.len() as u64 };
            let end = taken.next_multiple_of(align).saturating_add(g.size);
            if end > MOST_VARIABLES {
                let what = format!("variables of {end} bytes, the most is {MOST_VARIABLES}");
                return Err(Error::Unsupported { what, place: format!("@{}", g.name) });
            }
            if g.space == 3 {
                if g.size == 0 {
                    dynamic.push(i);
                    self.globals.push(0);
                } else {
                    let at = u64::from(self.static_shared).next_multiple_of(align);
                    self.static_shared = (at + g.size) as u32;
                    self.globals.push(u64::from(shared_base) + at);
                }
            } else {
                let at = (self.rodata.len() as u64).next_multiple_of(align);
                self.rodata.resize(at as usize, 0);
                self.rodata.extend_from_slice(&g.init);
                self.rodata.resize((at + g.size) as usize, 0);
                self.globals.push(CONST_BASE + at);
            }
        }
        let at = u64::from(shared_base)
            + u64::from(self.static_shared).next_multiple_of(if self.static_shared == 0 { 1 } else { 128 });
        for i in dynamic {
            self.dynamic_shared = true;
            self.globals[i] = at;
        }
        Ok(())
    }

    // ---- building blocks ----

    pub(crate) fn fresh(&mut self) -> Reg {
        self.regs += 1;
        self.regs - 1
    }

    pub(crate) fn constant(&mut self, v: u64) -> Src {
        self.const_entry(v, false)
    }

    fn const_entry(&mut self, v: u64, undef: bool) -> Src {
        let consts = &mut self.consts;
        let i = *self.const_of.entry((v, undef)).or_insert_with(|| {
            consts.push((v, undef));
            consts.len() as u32 - 1
        });
        Src::constant(i)
    }

    /// The value of an operand that is a known constant.
    pub(crate) fn known(&self, s: Src) -> Option<u64> {
        match s.split() {
            Err(i) if i >= self.params && !self.consts[i as usize].1 => Some(self.consts[i as usize].0),
            _ => None,
        }
    }

    /// Whether it is a constant that is undefined.
    pub(crate) fn is_undefined(&self, s: Src) -> bool {
        matches!(s.split(), Err(i) if i >= self.params && self.consts[i as usize].1)
    }

    pub(crate) fn emit(&mut self, op: Op) {
        let loc = self.loc;
        self.blocks[self.current as usize].ops.push((op, loc));
    }

    /// Emits an operation with a fresh result.
    pub(crate) fn value(&mut self, make: impl FnOnce(Reg) -> Op) -> Src {
        let d = self.fresh();
        self.emit(make(d));
        Src::reg(d)
    }

    pub(crate) fn new_block(&mut self) -> u32 {
        self.blocks.push(Block::default());
        self.blocks.len() as u32 - 1
    }

    pub(crate) fn end(&mut self, term: Term) {
        let loc = self.loc;
        let b = &mut self.blocks[self.current as usize];
        if b.term.is_none() {
            b.term = Some((term, loc));
        }
    }

    pub(crate) fn start(&mut self, block: u32) {
        self.current = block;
    }

    pub(crate) fn place_of_global(&self, g: usize) -> u64 {
        self.globals[g]
    }

    fn scalar(&mut self, s: &Scalar, ty: Option<&Ty>) -> Src {
        match s {
            Scalar::Bits(b) => self.constant(*b),
            Scalar::Undef => self.const_entry(0, true),
            Scalar::Global(g, offset) => {
                let base = self.place_of_global(*g);
                let generic = matches!(ty, Some(Ty::Ptr(0, _))) && self.module.globals[*g].space == 3;
                let at = base.wrapping_add(*offset as u64) + if generic { SHARED_WINDOW } else { 0 };
                let narrow = self.module.globals[*g].space == 3 && !generic;
                self.constant(if narrow { at & 0xffff_ffff } else { at })
            }
        }
    }

    pub(crate) fn operand(&mut self, f: &Frame<'_>, o: &Operand, ty: &Ty) -> What<Vec<Src>> {
        match o {
            Operand::Inst(i) => f.values[*i as usize]
                .clone()
                .ok_or_else(|| "an operand without a value before its use".to_owned()),
            Operand::Arg(i) => Ok(f.args[*i as usize].clone()),
            Operand::Const(scalars) => Ok(scalars.iter().map(|s| self.scalar(s, Some(ty))).collect()),
        }
    }

    // ---- functions ----

    /// Decodes a function from the current block on. Its `ret` goes to `ret`, or ends the lane.
    fn function(
        &mut self,
        function: &ir::Function,
        args: Vec<Vec<Src>>,
        ret: Option<(u32, Vec<Reg>)>,
    ) -> Result<(), (String, Loc)> {
        if self.stack.contains(&function.name) {
            return Err((format!("recursive call of @{}", function.name), self.loc));
        }
        self.stack.push(function.name.clone());
        let mut block_of: Vec<u32> = (0..function.blocks.len()).map(|_| self.new_block()).collect();
        let entry = self.current;
        block_of[0] = entry;
        let mut frame = Frame {
            function,
            args,
            values: vec![None; function.insts as usize],
            block_of,
            edges: Vec::new(),
            ret,
        };
        // Phi results exist before anything is decoded: they are used around loops.
        for inst in function.blocks.iter().flatten() {
            if matches!(inst.code, ir::Code::Phi(_)) {
                let regs = inst.ty.scalars().iter().map(|_| Src::reg(self.fresh())).collect();
                frame.values[inst.id as usize] = Some(regs);
            }
        }
        for b in reverse_post_order(function) {
            self.start(frame.block_of[b]);
            for inst in &function.blocks[b] {
                self.loc = inst.loc;
                self.inst(&mut frame, b as u32, inst).map_err(|what| (what, inst.loc))?;
            }
        }
        for (trampoline, from, to) in std::mem::take(&mut frame.edges) {
            self.start(trampoline);
            self.phi_copies(&frame, from, to).map_err(|what| (what, Loc::default()))?;
            self.end(Term::Jump(frame.block_of[to as usize]));
        }
        self.stack.pop();
        Ok(())
    }

    /// The block to jump to for an edge of the IR.
    fn edge(&mut self, f: &mut Frame<'_>, from: u32, to: u32) -> u32 {
        let has_phi =
            f.function.blocks[to as usize].first().is_some_and(|i| matches!(i.code, ir::Code::Phi(_)));
        if !has_phi {
            return f.block_of[to as usize];
        }
        let trampoline = self.new_block();
        f.edges.push((trampoline, from, to));
        trampoline
    }

    fn phi_copies(&mut self, f: &Frame<'_>, from: u32, to: u32) -> What<()> {
        let mut copies: Vec<(Reg, Src)> = Vec::new();
        for inst in &f.function.blocks[to as usize] {
            let ir::Code::Phi(blocks) = &inst.code else { break };
            let i =
                blocks.iter().position(|b| *b == from).ok_or("a phi without a value for one of its edges")?;
            let sources = self.operand(f, &inst.args[i], &inst.ty)?;
            let Some(results) = &f.values[inst.id as usize] else { continue };
            for (d, s) in results.iter().zip(sources) {
                if let Ok(d) = d.split() {
                    copies.push((d, s));
                }
            }
        }
        self.parallel_copy(copies);
        Ok(())
    }

    /// Emits copies that all read before any writes.
    pub(crate) fn parallel_copy(&mut self, mut copies: Vec<(Reg, Src)>) {
        copies.retain(|(d, s)| Src::reg(*d) != *s);
        // How many pending copies still read a register.
        let mut readers: HashMap<u32, u32> = HashMap::new();
        for (_, s) in &copies {
            *readers.entry(s.0).or_default() += 1;
        }
        let by_dest: HashMap<Reg, usize> = copies.iter().enumerate().map(|(i, c)| (c.0, i)).collect();
        let mut done = vec![false; copies.len()];
        let mut ready: Vec<usize> =
            (0..copies.len()).filter(|i| readers.get(&copies[*i].0).copied().unwrap_or(0) == 0).collect();
        let mut left = copies.len();
        let mut scan = 0;
        while left > 0 {
            while let Some(i) = ready.pop() {
                let (d, s) = copies[i];
                self.emit(Op::Mov { d, s });
                done[i] = true;
                left -= 1;
                let n = readers.entry(s.0).or_default();
                *n = n.saturating_sub(1);
                if *n == 0
                    && let Some(j) = by_dest.get(&s.0).copied().filter(|j| !done[*j])
                {
                    ready.push(j);
                }
            }
            if left == 0 {
                break;
            }
            // Only cycles remain: save one destination and read the copy instead.
            while done[scan] {
                scan += 1;
            }
            let d = copies[scan].0;
            let saved = self.fresh();
            self.emit(Op::Mov { d: saved, s: Src::reg(d) });
            for (i, c) in copies.iter_mut().enumerate() {
                if !done[i] && c.1 == Src::reg(d) {
                    c.1 = Src::reg(saved);
                }
            }
            readers.insert(d, 0);
            ready.push(scan);
        }
    }

    /// Inlines a call.
    fn call(
        &mut self,
        callee: &'m ir::Function,
        args: Vec<Vec<Src>>,
        ty: &Ty,
    ) -> Result<Vec<Src>, (String, Loc)> {
        let results: Vec<Reg> = ty.scalars().iter().map(|_| self.fresh()).collect();
        let after = self.new_block();
        let body = self.new_block();
        self.end(Term::Jump(body));
        self.start(body);
        let loc = self.loc;
        self.function(callee, args, Some((after, results.clone())))?;
        self.loc = loc;
        self.start(after);
        Ok(results.into_iter().map(Src::reg).collect())
    }

    /// A slot of the lane's stack; the address as a pointer of the given space.
    fn alloca(&mut self, bytes: u64, space: u32) -> Result<Src, String> {
        let at = u64::from(self.local_bytes).next_multiple_of(16);
        let end = at.saturating_add(bytes);
        if end > MOST_LOCAL {
            return Err(format!("a stack of {end} bytes for each thread, the most is {MOST_LOCAL}"));
        }
        self.local_bytes = end as u32;
        Ok(self.constant(if space == 5 { at } else { LOCAL_WINDOW + at }))
    }
}

fn reverse_post_order(f: &ir::Function) -> Vec<usize> {
    let successors = |b: usize| -> Vec<usize> {
        match f.blocks[b].last().map(|i| &i.code) {
            Some(ir::Code::Br(t)) => vec![*t as usize],
            Some(ir::Code::CondBr(t, e)) => vec![*t as usize, *e as usize],
            Some(ir::Code::Switch(d, cases)) => {
                std::iter::once(*d as usize).chain(cases.iter().map(|c| c.1 as usize)).collect()
            }
            _ => Vec::new(),
        }
    };
    cfg::reverse_post_order(f.blocks.len(), successors)
}
