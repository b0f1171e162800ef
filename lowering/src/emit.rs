//! Emits operations of the `llvm` and `nvvm` dialects at the end of a block.

use crate::handlers::llvm_order;
use crate::lines::Lines;
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, Context, FloatKind, Loc, Op, Type, Value};
use mlir_host::rewrite::create;
use std::cell::RefCell;
use ttopt_dialect::tt::enums::MemSemantic;

/// Why the lowering of a module stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// What is not supported or wrong, to be reported at the operation being lowered.
    #[error("{0}")]
    Unsupported(String),
    /// What passes and plans should have made impossible: a bug, to be reported at the operation being lowered.
    #[error("internal error: {0}")]
    Internal(String),
    /// The error was reported where it occurred.
    #[error("an error was reported")]
    Reported(Reported),
}

impl From<Reported> for Failure {
    fn from(reported: Reported) -> Self {
        Failure::Reported(reported)
    }
}

impl Failure {
    /// Reports it at `op`, if it is not reported yet.
    pub fn report(self, op: Op<'_>) -> Reported {
        match self {
            Failure::Reported(reported) => reported,
            other => op.error(other.to_string()),
        }
    }
}

/// The result of lowering something.
pub type Lowered<T> = Result<T, Failure>;

/// A [`Failure::Unsupported`].
pub fn unsupported<T>(message: impl Into<String>) -> Lowered<T> {
    Err(Failure::Unsupported(message.into()))
}

/// A [`Failure::Internal`].
pub fn internal<T>(message: impl Into<String>) -> Lowered<T> {
    Err(Failure::Internal(message.into()))
}

/// Sums of two numbers.
pub type Sums<'c> = FastMap<(Value<'c>, Value<'c>), Value<'c>>;

/// The width of an integer.
pub fn int_bits(value: Value<'_>) -> Lowered<u32> {
    let ty = value.ty();
    ty.int_bits().ok_or_else(|| Failure::Internal(format!("{ty} is no integer")))
}

/// The width of an integer or float.
pub fn number_bits(ty: Type<'_>) -> Lowered<u32> {
    ty.bits().ok_or_else(|| Failure::Internal(format!("{ty} is no number")))
}

/// Address spaces of the NVPTX and AMDGPU targets.
pub mod address_space {
    /// Addresses of any memory.
    pub const GENERIC: u32 = 0;
    /// Global memory.
    pub const GLOBAL: u32 = 1;
    /// Shared memory (LDS).
    pub const SHARED: u32 = 3;
    /// Shared memory of the CTAs of a cluster.
    pub const SHARED_CLUSTER: u32 = 7;
}

/// Integer comparisons, by MLIR's numbering of predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ICmp {
    Eq = 0,
    Ne = 1,
    Slt = 2,
    Sle = 3,
    Sgt = 4,
    Sge = 5,
    Ult = 6,
    Ule = 7,
    Ugt = 8,
    Uge = 9,
}

/// An insertion point with the types and attributes that emission needs often.
pub struct Emit<'c> {
    ctx: Context<'c>,
    block: Block<'c>,
    /// Where operations go instead of the block's end, if set.
    before: Option<Op<'c>>,
    loc: Loc<'c>,
    lines: Lines<'c>,
    i1: Type<'c>,
    i8: Type<'c>,
    i16: Type<'c>,
    i32: Type<'c>,
    i64: Type<'c>,
    f32: Type<'c>,
    flushes: bool,
    contract: Option<Attr<'c>>,
    contract_narrow: Option<Attr<'c>>,
    disjoint: Attr<'c>,
    pointers: RefCell<FastMap<u32, Type<'c>>>,
    vectors: RefCell<FastMap<(usize, Type<'c>), Type<'c>>>,
    /// What [`Emit::displaced`] made its results of.
    displaced: FastMap<Value<'c>, (Value<'c>, i64)>,
    /// What [`Emit::sum`] made its results of: a number that several sums share, and a constant.
    summed: FastMap<Value<'c>, (Value<'c>, i64)>,
    /// What [`Emit::extend`] made its results of by `llvm.sext`.
    sign_extended: FastMap<Value<'c>, Value<'c>>,
    /// Bits that each instruction moves that accessed global memory since [`Emit::take_global_accesses`].
    global_accesses: Vec<u32>,
    has_copies: bool,
    adds_constants_last: bool,
    joins: bool,
    /// What values are parts of: of all where [`Emit::joined`] is to know, else of bytes alone.
    pieces: FastMap<Value<'c>, Piece<'c>>,
}

/// Bits of a value, which begin with bit `at` of `whole`.
#[derive(Clone, Copy, Debug)]
struct Piece<'c> {
    whole: Value<'c>,
    at: u32,
    bits: u32,
}

/// Bits of a number or of a vector of numbers.
fn all_bits(ty: Type<'_>) -> Option<u32> {
    match ty.as_vector() {
        Some((count, element)) => Some(count as u32 * number_bits(element).ok()?),
        None => number_bits(ty).ok(),
    }
}

impl<'c> Emit<'c> {
    /// Whether the function copies to shared memory beside the program.
    pub fn has_copies(&self) -> bool {
        self.has_copies
    }
    /// Whether [`sum`](Self::sum) adds constants last: not in functions with dots, whose accumulators leave few registers. Told by the PTX that
    /// such a function needs fewer, code generation has it run with more CTAs, which ptxas pays for elsewhere.
    pub fn set_adds_constants_last(&mut self, last: bool) {
        self.adds_constants_last = last;
    }
    /// See [`has_copies`](Self::has_copies).
    pub fn set_has_copies(&mut self, copies: bool) {
        self.has_copies = copies;
    }
    /// Emits at the end of `block`.
    pub fn new(block: Block<'c>, loc: Loc<'c>) -> Self {
        let ctx = loc.context();
        Self {
            ctx,
            block,
            before: None,
            loc,
            lines: Lines::default(),
            i1: Type::int(ctx, 1),
            i8: Type::int(ctx, 8),
            i16: Type::int(ctx, 16),
            i32: Type::int(ctx, 32),
            i64: Type::int(ctx, 64),
            f32: Type::float(ctx, FloatKind::F32),
            contract: Attr::parse(ctx, "#llvm.fastmath<contract>"),
            contract_narrow: Attr::parse(ctx, "#llvm.fastmath<contract, arcp>"),
            flushes: false,
            disjoint: Attr::unit(ctx),
            pointers: RefCell::default(),
            vectors: RefCell::default(),
            displaced: FastMap::default(),
            summed: FastMap::default(),
            sign_extended: FastMap::default(),
            global_accesses: Vec::new(),
            has_copies: false,
            adds_constants_last: true,
            joins: false,
            pieces: FastMap::default(),
        }
    }
    /// Whether values that are taken apart and put together again are to stay whole ([`Emit::joined`]); they are not by default.
    #[must_use]
    pub fn joining(mut self, joins: bool) -> Self {
        self.joins = joins;
        self
    }
    /// As [`joining`](Self::joining) says.
    pub fn joins(&self) -> bool {
        self.joins
    }
    /// Whether functions of singles take denormal numbers for zero, and give it for them; they do not by default.
    #[must_use]
    pub fn flushing(mut self, flushes: bool) -> Self {
        self.flushes = flushes;
        self
    }
    /// As [`flushing`](Self::flushing) says.
    pub fn flushes(&self) -> bool {
        self.flushes
    }
    /// Whether products and sums may be contracted; so they may by default.
    #[must_use]
    pub fn fusing(mut self, fuses: bool) -> Self {
        self.contract = self.contract.filter(|_| fuses);
        self.contract_narrow = self.contract_narrow.filter(|_| fuses);
        self
    }
    /// The context.
    pub fn context(&self) -> Context<'c> {
        self.ctx
    }
    /// Notes that an instruction was emitted that moves so many bits between one thread and global memory.
    pub fn note_global_access(&mut self, bits: u32) {
        self.global_accesses.push(bits);
    }
    /// What instructions were noted since this was asked last.
    pub fn take_global_accesses(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.global_accesses)
    }
    /// The location given to what is emitted.
    pub fn loc(&self) -> Loc<'c> {
        self.loc
    }
    /// Sets the location given to what is emitted.
    pub fn set_loc(&mut self, loc: Loc<'c>) {
        self.loc = self.lines.of(loc);
    }
    /// Sets the function whose lines locations are.
    pub fn set_lines(&mut self, lines: Lines<'c>) {
        self.lines = lines;
    }
    /// The block that is emitted to.
    pub fn block(&self) -> Block<'c> {
        self.block
    }
    /// Emits to the end of `block` from now on.
    pub fn set_block(&mut self, block: Block<'c>) {
        self.block = block;
        self.before = None;
    }
    /// A new basic block of the function that is emitted to, with arguments of LLVM types.
    ///
    /// # Errors
    /// Outside of a function.
    pub fn new_block(&mut self, types: &[Type<'c>]) -> Lowered<Block<'c>> {
        let Some(region) = self.block.parent_region() else {
            return internal("a block outside of a function");
        };
        let block = Block::new(&types.iter().map(|ty| (*ty, self.loc)).collect::<Vec<_>>());
        region.append(block);
        Ok(block)
    }
    /// Emits before an operation, or at the end of the block again; returns
    /// what was set.
    pub fn replace_before(&mut self, op: Option<Op<'c>>) -> Option<Op<'c>> {
        std::mem::replace(&mut self.before, op)
    }
    /// `i1`
    pub fn i1(&self) -> Type<'c> {
        self.i1
    }
    /// `i8`
    pub fn i8(&self) -> Type<'c> {
        self.i8
    }
    /// `i16`
    pub fn i16(&self) -> Type<'c> {
        self.i16
    }
    /// `i32`
    pub fn i32(&self) -> Type<'c> {
        self.i32
    }
    /// `i64`
    pub fn i64(&self) -> Type<'c> {
        self.i64
    }
    /// `f32`
    pub fn f32(&self) -> Type<'c> {
        self.f32
    }
    /// `i<bits>`
    pub fn int(&self, bits: u32) -> Type<'c> {
        match bits {
            1 => self.i1,
            8 => self.i8,
            16 => self.i16,
            32 => self.i32,
            64 => self.i64,
            _ => Type::int(self.ctx, bits),
        }
    }
    /// A float type.
    pub fn float(&self, kind: FloatKind) -> Type<'c> {
        Type::float(self.ctx, kind)
    }
    /// A type given as text; for the types of the `llvm` dialect.
    pub fn parse_type(&self, text: &str) -> Lowered<Type<'c>> {
        Type::parse(self.ctx, text)
            .ok_or_else(|| Failure::Unsupported(format!("cannot make the type {text}")))
    }
    /// `!llvm.ptr<space>`
    pub fn ptr(&self, space: u32) -> Lowered<Type<'c>> {
        if let Some(found) = self.pointers.borrow().get(&space) {
            return Ok(*found);
        }
        let text = if space == 0 { "!llvm.ptr".to_owned() } else { format!("!llvm.ptr<{space}>") };
        let made = self.parse_type(&text)?;
        self.pointers.borrow_mut().insert(space, made);
        Ok(made)
    }
    /// `vector<n x element>`
    pub fn vector(&self, n: usize, element: Type<'c>) -> Lowered<Type<'c>> {
        if let Some(found) = self.vectors.borrow().get(&(n, element)) {
            return Ok(*found);
        }
        let made = self.parse_type(&format!("vector<{n}x{element}>"))?;
        self.vectors.borrow_mut().insert((n, element), made);
        Ok(made)
    }
    /// `!llvm.struct<(…)>`
    pub fn struct_of(&self, types: &[Type<'c>]) -> Lowered<Type<'c>> {
        let inner: Vec<String> = types.iter().map(|ty| ty.to_string()).collect();
        self.parse_type(&format!("!llvm.struct<({})>", inner.join(", ")))
    }

    /// Puts a detached operation at the insertion point.
    pub fn insert(&mut self, op: Op<'c>) -> Op<'c> {
        match self.before {
            Some(before) => op.move_before(before),
            None => self.block.append(op),
        }
        op
    }
    /// Emits an operation.
    pub fn op(
        &mut self,
        name: &str,
        operands: &[Value<'c>],
        results: &[Type<'c>],
        attrs: &[(&str, Attr<'c>)],
    ) -> Lowered<Op<'c>> {
        let op = create(name, self.loc, operands, results, attrs, &[])?;
        Ok(self.insert(op))
    }
    /// Emits an operation with one result.
    pub fn value(
        &mut self,
        name: &str,
        operands: &[Value<'c>],
        result: Type<'c>,
        attrs: &[(&str, Attr<'c>)],
    ) -> Lowered<Value<'c>> {
        Ok(self.op(name, operands, &[result], attrs)?.result(0))
    }
    /// Emits `name` on operands of one type, which is the result's.
    pub fn same(&mut self, name: &str, operands: &[Value<'c>]) -> Lowered<Value<'c>> {
        self.value(name, operands, operands[0].ty(), &[])
    }
    /// Emits a floating-point operation that may be contracted into an FMA.
    ///
    /// LLVM's InstCombine computes in 16 bits what is computed in 32 bits of numbers of 16 bits and rounded to those again, and keeps
    /// the flag that lets a product and a sum become one, although what was rounded between them may not. So operations
    /// that are of 16 bits here are also given `arcp`, which says nothing about sums and products, and whoever runs InstCombine
    /// takes `contract` from those without it.
    pub fn contracted(&mut self, name: &str, operands: &[Value<'c>]) -> Lowered<Value<'c>> {
        let ty = operands[0].ty();
        let flags = if ty.element().bits() == Some(16) { self.contract_narrow } else { self.contract };
        match flags {
            Some(flags) => self.value(name, operands, ty, &[("fastmathFlags", flags)]),
            None => self.value(name, operands, ty, &[]),
        }
    }
    /// A constant attribute of type `ty`.
    pub fn constant(&mut self, ty: Type<'c>, value: Attr<'c>) -> Lowered<Value<'c>> {
        self.value("llvm.mlir.constant", &[], ty, &[("value", value)])
    }
    /// An integer constant of `bits` bits.
    pub fn const_int(&mut self, bits: u32, value: i64) -> Lowered<Value<'c>> {
        let ty = self.int(bits);
        self.constant(ty, Attr::int_of(ty, value))
    }
    /// An `i32` constant.
    pub fn const_i32(&mut self, value: i64) -> Lowered<Value<'c>> {
        self.const_int(32, value)
    }
    /// A float constant.
    pub fn const_float(&mut self, ty: Type<'c>, value: f64) -> Lowered<Value<'c>> {
        self.constant(ty, Attr::float_of(ty, value))
    }
    /// An undefined value.
    pub fn undef(&mut self, ty: Type<'c>) -> Lowered<Value<'c>> {
        self.value("llvm.mlir.undef", &[], ty, &[])
    }
    /// `a + b`
    pub fn add(&mut self, a: Value<'c>, b: Value<'c>) -> Lowered<Value<'c>> {
        self.same("llvm.add", &[a, b])
    }
    /// `a + b`, where a constant that either of them is above another number is added last: elements of a thread then differ from
    /// one sum, one of `shared`, by constants, and LLVM finds what holds for all of them, such as that a bound does.
    pub fn sum(&mut self, a: Value<'c>, b: Value<'c>, shared: &mut Sums<'c>) -> Lowered<Value<'c>> {
        if !self.adds_constants_last {
            return self.add(a, b);
        }
        let apart = |value| {
            let found = self.displaced.get(&value).or_else(|| self.summed.get(&value));
            found.copied().unwrap_or((value, 0))
        };
        let ((a, above_a), (b, above_b)) = (apart(a), apart(b));
        let base = match shared.get(&(a, b)) {
            Some(base) => *base,
            None => {
                let base = self.add(a, b)?;
                shared.insert((a, b), base);
                base
            }
        };
        let above = above_a.wrapping_add(above_b);
        if above == 0 {
            return Ok(base);
        }
        let constant = self.const_int(int_bits(base)?, above)?;
        let value = self.add(base, constant)?;
        self.summed.insert(value, (base, above));
        Ok(value)
    }
    /// `a & b`
    pub fn and(&mut self, a: Value<'c>, b: Value<'c>) -> Lowered<Value<'c>> {
        self.same("llvm.and", &[a, b])
    }
    /// `a | b`
    pub fn or(&mut self, a: Value<'c>, b: Value<'c>) -> Lowered<Value<'c>> {
        self.same("llvm.or", &[a, b])
    }
    /// `a | b` where no bit is set in both: LLVM may treat it as an addition.
    pub fn or_disjoint(&mut self, a: Value<'c>, b: Value<'c>) -> Lowered<Value<'c>> {
        let disjoint = self.disjoint;
        self.value("llvm.or", &[a, b], a.ty(), &[("isDisjoint", disjoint)])
    }
    /// `base | offset`, where no bit is set in both and `offset` is not negative: a number `offset` above another.
    pub fn displaced(&mut self, base: Value<'c>, offset: i64) -> Lowered<Value<'c>> {
        let bits = int_bits(base)?;
        let constant = self.const_int(bits, offset)?;
        let value = self.or_disjoint(base, constant)?;
        self.displaced.insert(value, (base, offset));
        Ok(value)
    }
    /// `value` with more bits, by `name` (`llvm.sext` or `llvm.zext`). What is a constant above another number stays so,
    /// which LLVM cannot find out: addresses of neighbouring rows would each be computed anew, and have an induction
    /// variable each.
    pub fn extend(&mut self, name: &str, value: Value<'c>, ty: Type<'c>) -> Lowered<Value<'c>> {
        let extended = match self.displaced.get(&value).copied() {
            Some((base, offset)) => {
                let base = self.value(name, &[base], ty, &[])?;
                self.displaced(base, offset)?
            }
            None => self.value(name, &[value], ty, &[])?,
        };
        if name == "llvm.sext" {
            self.sign_extended.insert(extended, value);
        }
        Ok(extended)
    }
    /// Numbers that compare as `a` and `b` do, with fewer bits where both were extended from so few.
    pub fn before_extension(&self, a: Value<'c>, b: Value<'c>) -> (Value<'c>, Value<'c>) {
        match (self.sign_extended.get(&a), self.sign_extended.get(&b)) {
            (Some(a), Some(b)) if a.ty() == b.ty() => (*a, *b),
            _ => (a, b),
        }
    }
    /// `a ^ b`
    pub fn xor(&mut self, a: Value<'c>, b: Value<'c>) -> Lowered<Value<'c>> {
        self.same("llvm.xor", &[a, b])
    }
    /// `a << n`
    pub fn shl(&mut self, a: Value<'c>, n: u32) -> Lowered<Value<'c>> {
        let bits = int_bits(a)?;
        let n = self.const_int(bits, n.into())?;
        self.same("llvm.shl", &[a, n])
    }
    /// Logical `a >> n`
    pub fn lshr(&mut self, a: Value<'c>, n: u32) -> Lowered<Value<'c>> {
        let bits = int_bits(a)?;
        let n = self.const_int(bits, n.into())?;
        self.same("llvm.lshr", &[a, n])
    }
    /// `a & mask`
    pub fn mask(&mut self, a: Value<'c>, mask: i64) -> Lowered<Value<'c>> {
        let bits = int_bits(a)?;
        let mask = self.const_int(bits, mask)?;
        self.and(a, mask)
    }
    /// Integer or pointer comparison.
    pub fn icmp(&mut self, predicate: ICmp, a: Value<'c>, b: Value<'c>) -> Lowered<Value<'c>> {
        let attr = Attr::int(self.ctx, 64, predicate as i64);
        let i1 = self.i1;
        self.value("llvm.icmp", &[a, b], i1, &[("predicate", attr)])
    }
    /// `condition ? a : b`
    pub fn select(&mut self, condition: Value<'c>, a: Value<'c>, b: Value<'c>) -> Lowered<Value<'c>> {
        self.value("llvm.select", &[condition, a, b], a.ty(), &[])
    }
    /// Reinterprets the bits of `value` as `ty`.
    pub fn bitcast(&mut self, value: Value<'c>, ty: Type<'c>) -> Lowered<Value<'c>> {
        if value.ty() == ty {
            return Ok(value);
        }
        let cast = self.value("llvm.bitcast", &[value], ty, &[])?;
        if self.joins {
            self.note_piece(cast, value, 0);
        }
        Ok(cast)
    }
    /// Notes that `part` has the bits of `of` that begin with bit `at`.
    fn note_piece(&mut self, part: Value<'c>, of: Value<'c>, at: u32) {
        let Some(bits) = all_bits(part.ty()).filter(|bits| bits % 8 == 0) else { return };
        let (whole, first) = self.pieces.get(&of).map_or((of, 0), |piece| (piece.whole, piece.at));
        self.pieces.insert(part, Piece { whole, at: first + at, bits });
    }
    /// The value that a byte was taken out of, of at least 16 bits, and the bit with which it begins there.
    pub fn byte_of(&self, byte: Value<'c>) -> Option<(Value<'c>, u32)> {
        let piece = self.pieces.get(&byte).filter(|piece| piece.bits == 8)?;
        all_bits(piece.whole.ty()).filter(|bits| bits % 16 == 0)?;
        Some((piece.whole, piece.at))
    }
    /// `bits` bits of `whole` that begin with bit `at`, as an integer; `None` where `whole` is no multiple of them.
    ///
    /// # Errors
    /// When an operation cannot be made.
    pub fn part(&mut self, whole: Value<'c>, at: u32, bits: u32) -> Lowered<Option<Value<'c>>> {
        let (of, ty) = (all_bits(whole.ty()).unwrap_or(0), self.int(bits));
        if of % bits != 0 || !at.is_multiple_of(bits) || at >= of {
            return Ok(None);
        }
        if of == bits {
            return Ok(Some(self.bitcast(whole, ty)?));
        }
        let vector = self.vector((of / bits) as usize, ty)?;
        let parts = self.bitcast(whole, vector)?;
        Ok(Some(self.extract_element(parts, (at / bits) as usize, ty)?))
    }
    /// `values` side by side as a `ty`, if they are parts of one value that lie in it as they are to: all of it, or words of 32 bits.
    ///
    /// What LLVM finds out of extractions and insertions of elements, it does for each of them again, in several passes.
    pub fn joined(&mut self, values: &[Value<'c>], ty: Type<'c>) -> Lowered<Option<Value<'c>>> {
        if !self.joins {
            return Ok(None);
        }
        let pieces = &self.pieces;
        let Some(first) = values.first().and_then(|value| pieces.get(value)).copied() else {
            return Ok(None);
        };
        let mut end = first.at;
        for value in values {
            match pieces.get(value) {
                Some(piece) if piece.whole == first.whole && piece.at == end => end += piece.bits,
                _ => return Ok(None),
            }
        }
        let (whole, bits) = (first.whole, end - first.at);
        let Some(of) = all_bits(whole.ty()).filter(|_| all_bits(ty) == Some(bits)) else { return Ok(None) };
        if bits == of {
            return Ok(Some(self.bitcast(whole, ty)?));
        }
        if [first.at, bits, of].iter().any(|bits| bits % 32 != 0) {
            return Ok(None);
        }
        let (i32t, start, count) = (self.i32, (first.at / 32) as usize, (bits / 32) as usize);
        let vector = self.vector((of / 32) as usize, i32t)?;
        let words = self.bitcast(whole, vector)?;
        let taken = if count == 1 {
            self.extract_element(words, start, i32t)?
        } else {
            let mask: Vec<i32> = (start..start + count).map(|i| i as i32).collect();
            let some = self.vector(count, i32t)?;
            let poison = self.value("llvm.mlir.poison", &[], vector, &[])?;
            let mask = [("mask", Attr::i32_array(self.ctx, &mask))];
            let taken = self.value("llvm.shufflevector", &[words, poison], some, &mask)?;
            self.note_piece(taken, words, first.at);
            taken
        };
        Ok(Some(self.bitcast(taken, ty)?))
    }
    /// `values` of one type side by side as a `ty`.
    pub fn join(&mut self, values: &[Value<'c>], ty: Type<'c>) -> Lowered<Value<'c>> {
        let [first, rest @ ..] = values else { return unsupported("an access of no elements") };
        if rest.is_empty() {
            return self.bitcast(*first, ty);
        }
        if let Some(joined) = self.joined(values, ty)? {
            return Ok(joined);
        }
        let bits = all_bits(first.ty()).unwrap_or(32);
        if let (true, Some(total)) =
            (self.joins() && bits < 32, all_bits(ty).filter(|total| total % 32 == 0 && *total > 32))
        {
            let i32t = self.i32;
            let mut words = Vec::with_capacity((total / 32) as usize);
            for elements in values.chunks((32 / bits) as usize) {
                words.extend(self.joined(elements, i32t)?);
            }
            if words.len() == (total / 32) as usize {
                return self.side_by_side(&words, ty);
            }
        }
        self.side_by_side(values, ty)
    }
    fn side_by_side(&mut self, values: &[Value<'c>], ty: Type<'c>) -> Lowered<Value<'c>> {
        let Some(first) = values.first() else { return unsupported("an access of no elements") };
        let vector = self.vector(values.len(), first.ty())?;
        let mut packed = self.undef(vector)?;
        for (i, value) in values.iter().enumerate() {
            packed = self.insert_element(packed, *value, i)?;
        }
        self.bitcast(packed, ty)
    }
    /// `base + offset * sizeof(element)`
    pub fn gep(&mut self, base: Value<'c>, offset: Value<'c>, element: Type<'c>) -> Lowered<Value<'c>> {
        let attrs = [
            ("elem_type", Attr::type_of(element)),
            // The one index is dynamic.
            ("rawConstantIndices", Attr::i32_array(self.ctx, &[i32::MIN])),
        ];
        self.value("llvm.getelementptr", &[base, offset], base.ty(), &attrs)
    }
    /// Element `i` of a vector.
    pub fn extract_element(&mut self, vector: Value<'c>, i: usize, element: Type<'c>) -> Lowered<Value<'c>> {
        let index = self.const_i32(i as i64)?;
        let taken = self.value("llvm.extractelement", &[vector, index], element, &[])?;
        if self.joins || element == self.i8 {
            self.note_piece(taken, vector, i as u32 * all_bits(element).unwrap_or(0));
        }
        Ok(taken)
    }
    /// `vector` with element `i` replaced.
    pub fn insert_element(&mut self, vector: Value<'c>, value: Value<'c>, i: usize) -> Lowered<Value<'c>> {
        let index = self.const_i32(i as i64)?;
        self.value("llvm.insertelement", &[vector, value, index], vector.ty(), &[])
    }
    /// Field `i` of a struct.
    pub fn extract_value(&mut self, aggregate: Value<'c>, i: usize, ty: Type<'c>) -> Lowered<Value<'c>> {
        let position = Attr::i64_array(self.ctx, &[i as i64]);
        self.value("llvm.extractvalue", &[aggregate], ty, &[("position", position)])
    }
    /// A struct with field `i` replaced.
    pub fn insert_value(&mut self, aggregate: Value<'c>, value: Value<'c>, i: usize) -> Lowered<Value<'c>> {
        let position = Attr::i64_array(self.ctx, &[i as i64]);
        self.value("llvm.insertvalue", &[aggregate, value], aggregate.ty(), &[("position", position)])
    }
    /// Calls an intrinsic: `llvm.nvvm.…`.
    pub fn intrinsic(&mut self, name: &str, operands: &[Value<'c>], result: Type<'c>) -> Lowered<Value<'c>> {
        let attrs = [
            ("intrin", Attr::string(self.ctx, name)),
            ("operandSegmentSizes", Attr::i32_array(self.ctx, &[operands.len() as i32, 0])),
            ("op_bundle_sizes", Attr::i32_array(self.ctx, &[])),
        ];
        self.value("llvm.call_intrinsic", operands, result, &attrs)
    }
    /// Calls an intrinsic without a result.
    pub fn intrinsic_void(&mut self, name: &str, operands: &[Value<'c>]) -> Lowered<()> {
        let attrs = [
            ("intrin", Attr::string(self.ctx, name)),
            ("operandSegmentSizes", Attr::i32_array(self.ctx, &[operands.len() as i32, 0])),
            ("op_bundle_sizes", Attr::i32_array(self.ctx, &[])),
        ];
        self.op("llvm.call_intrinsic", operands, &[], &attrs)?;
        Ok(())
    }
    /// Inline assembly. `results` are the outputs, a struct where there are several.
    pub fn inline_asm(
        &mut self,
        text: &str,
        constraints: &str,
        operands: &[Value<'c>],
        results: &[Type<'c>],
        side_effects: bool,
    ) -> Lowered<Vec<Value<'c>>> {
        let mut attrs = vec![
            ("asm_string", Attr::string(self.ctx, text)),
            ("constraints", Attr::string(self.ctx, constraints)),
        ];
        if side_effects {
            attrs.push(("has_side_effects", Attr::unit(self.ctx)));
        }
        let result = match results {
            [] => None,
            [one] => Some(*one),
            many => Some(self.struct_of(many)?),
        };
        let types: Vec<Type<'c>> = result.into_iter().collect();
        let op = self.op("llvm.inline_asm", operands, &types, &attrs)?;
        match results {
            [] => Ok(Vec::new()),
            [_] => Ok(vec![op.result(0)]),
            many => {
                let all = op.result(0);
                many.iter().enumerate().map(|(i, ty)| self.extract_value(all, i, *ty)).collect()
            }
        }
    }
    /// Calls a function that is declared in the module.
    pub fn call(
        &mut self,
        callee: &str,
        operands: &[Value<'c>],
        results: &[Type<'c>],
    ) -> Lowered<Vec<Value<'c>>> {
        let result = match results {
            [] => None,
            [one] => Some(*one),
            many => Some(self.struct_of(many)?),
        };
        let types: Vec<Type<'c>> = result.into_iter().collect();
        let attrs = [
            ("callee", Attr::symbol(self.ctx, callee)),
            ("operandSegmentSizes", Attr::i32_array(self.ctx, &[operands.len() as i32, 0])),
            ("op_bundle_sizes", Attr::i32_array(self.ctx, &[])),
        ];
        let op = self.op("llvm.call", operands, &types, &attrs)?;
        match results {
            [] => Ok(Vec::new()),
            [_] => Ok(vec![op.result(0)]),
            many => {
                let all = op.result(0);
                many.iter().enumerate().map(|(i, ty)| self.extract_value(all, i, *ty)).collect()
            }
        }
    }
    /// Branches to `dest`.
    pub fn br(&mut self, dest: Block<'c>, args: &[Value<'c>], annotation: Option<Attr<'c>>) -> Lowered<()> {
        let attrs: Vec<(&str, Attr<'c>)> =
            annotation.into_iter().map(|attr| ("loop_annotation", attr)).collect();
        self.branch("llvm.br", args, &[dest], &attrs)
    }
    /// Emits `f` where `mask` is true or absent, in a basic block of its own: what `f` gives there, `otherwise`
    /// elsewhere. Emission goes on behind.
    pub fn guarded(
        &mut self,
        mask: Option<Value<'c>>,
        otherwise: &[Value<'c>],
        f: impl FnOnce(&mut Self) -> Lowered<Vec<Value<'c>>>,
    ) -> Lowered<Vec<Value<'c>>> {
        let Some(mask) = mask else { return f(self) };
        let types: Vec<_> = otherwise.iter().map(|value| value.ty()).collect();
        let (act, done) = (self.new_block(&[])?, self.new_block(&types)?);
        self.cond_br(mask, (act, &[]), (done, otherwise))?;
        self.set_block(act);
        let results = f(self)?;
        if results.len() != otherwise.len() {
            return internal("a guarded access gives other results than its absence");
        }
        self.br(done, &results, None)?;
        self.set_block(done);
        Ok(done.args().collect())
    }
    /// A fence of the threads of a scope, as LLVM calls it, with further attributes.
    pub fn fence(&mut self, order: MemSemantic, scope: &str, more: &[(&str, Attr<'c>)]) -> Lowered<()> {
        let mut attrs = vec![
            ("ordering", Attr::int(self.ctx, 64, llvm_order(order))),
            ("syncscope", Attr::string(self.ctx, scope)),
        ];
        attrs.extend_from_slice(more);
        self.op("llvm.fence", &[], &[], &attrs)?;
        Ok(())
    }
    /// Branches on a condition.
    pub fn cond_br(
        &mut self,
        condition: Value<'c>,
        then: (Block<'c>, &[Value<'c>]),
        or_else: (Block<'c>, &[Value<'c>]),
    ) -> Lowered<()> {
        let mut operands = vec![condition];
        operands.extend_from_slice(then.1);
        operands.extend_from_slice(or_else.1);
        let sizes = Attr::i32_array(self.ctx, &[1, then.1.len() as i32, or_else.1.len() as i32]);
        self.branch("llvm.cond_br", &operands, &[then.0, or_else.0], &[("operandSegmentSizes", sizes)])
    }
    fn branch(
        &mut self,
        name: &str,
        operands: &[Value<'c>],
        successors: &[Block<'c>],
        attrs: &[(&str, Attr<'c>)],
    ) -> Lowered<()> {
        let op = mlir_host::rewrite::create_branch(name, self.loc, operands, attrs, successors)?;
        self.insert(op);
        Ok(())
    }
}
