//! Typed handles of operations of MLIR's own dialects, for those who ask what an operation is.
//!
//! As with [`op!`](crate::op), `X::cast(op)` answers, and nobody spells names. Only what is asked for is here.
//!
//! ```
//! # use mlir_host::{ir::Value, upstream::ConstantOp};
//! fn is_one(value: Value<'_>) -> bool {
//!     ConstantOp::defining(value).and_then(ConstantOp::int) == Some(1)
//! }
//! ```

use crate::ir::{Attr, Block, Op, OpKind, Region, Value};
use crate::match_op;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The TypeID of an operation of MLIR's, null until one was seen: it is the same in all contexts.
struct Known(AtomicPtr<c_void>);

impl Known {
    fn is(&self, kind: OpKind<'_>, name: &str) -> bool {
        if kind.is_hosted() {
            return false;
        }
        let known = self.0.load(Ordering::Relaxed);
        if !known.is_null() {
            return std::ptr::eq(known, kind.id());
        }
        let is = !kind.id().is_null() && kind.op().name() == name;
        if is {
            self.0.store(kind.id().cast_mut(), Ordering::Relaxed);
        }
        is
    }
}

macro_rules! operations {
    ($( $(#[doc = $doc:literal])+ $name:ident = $opname:literal, )*) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name<'c>(Op<'c>);

        impl<'c> $name<'c> {
            /// The full name.
            pub const NAME: &'static str = $opname;

            /// This operation, if it is one.
            pub fn cast(op: Op<'c>) -> Option<Self> {
                Self::of_kind(op.kind())
            }
            /// The operation of this kind, if it is one.
            pub fn of_kind(kind: OpKind<'c>) -> Option<Self> {
                Self::is(kind).then_some(Self(kind.op()))
            }
            /// Whether operations of this kind are.
            pub fn is(kind: OpKind<'_>) -> bool {
                static KNOWN: Known = Known(AtomicPtr::new(std::ptr::null_mut()));
                KNOWN.is(kind, $opname)
            }
            /// The operation that defines `value`, if it is one.
            pub fn defining(value: Value<'c>) -> Option<Self> {
                Self::cast(value.def_op()?)
            }
            /// The operation.
            pub fn op(self) -> Op<'c> {
                self.0
            }
        }
    )* };
}

operations! {
    /// A module.
    ModuleOp = "builtin.module",
    /// A constant.
    ConstantOp = "arith.constant",
    /// A comparison of integers.
    CmpIOp = "arith.cmpi",
    /// A sum of integers.
    AddIOp = "arith.addi",
    /// A difference of integers.
    SubIOp = "arith.subi",
    /// A product of integers.
    MulIOp = "arith.muli",
    /// A quotient of signed integers.
    DivSIOp = "arith.divsi",
    /// A quotient of unsigned integers.
    DivUIOp = "arith.divui",
    /// A remainder of signed integers.
    RemSIOp = "arith.remsi",
    /// A remainder of unsigned integers.
    RemUIOp = "arith.remui",
    /// A shift to the left.
    ShLIOp = "arith.shli",
    /// A shift to the right that keeps the sign.
    ShRSIOp = "arith.shrsi",
    /// A shift to the right that brings in zeros.
    ShRUIOp = "arith.shrui",
    /// A bitwise conjunction.
    AndIOp = "arith.andi",
    /// A bitwise disjunction.
    OrIOp = "arith.ori",
    /// A bitwise exclusive disjunction.
    XOrIOp = "arith.xori",
    /// The greater of two signed integers.
    MaxSIOp = "arith.maxsi",
    /// The lesser of two signed integers.
    MinSIOp = "arith.minsi",
    /// The greater of two unsigned integers.
    MaxUIOp = "arith.maxui",
    /// The lesser of two unsigned integers.
    MinUIOp = "arith.minui",
    /// A signed integer in a wider type.
    ExtSIOp = "arith.extsi",
    /// An unsigned integer in a wider type.
    ExtUIOp = "arith.extui",
    /// An integer in a narrower type.
    TruncIOp = "arith.trunci",
    /// A signed integer as an index, or the other way round.
    IndexCastOp = "arith.index_cast",
    /// An unsigned integer as an index, or the other way round.
    IndexCastUIOp = "arith.index_castui",
    /// A quotient of signed integers, rounded up.
    CeilDivSIOp = "arith.ceildivsi",
    /// A quotient of unsigned integers, rounded up.
    CeilDivUIOp = "arith.ceildivui",
    /// A quotient of signed integers, rounded down.
    FloorDivSIOp = "arith.floordivsi",
    /// A signed integer as a float.
    SIToFPOp = "arith.sitofp",
    /// An unsigned integer as a float.
    UIToFPOp = "arith.uitofp",
    /// A quotient of floats.
    DivFOp = "arith.divf",
    /// A remainder of floats.
    RemFOp = "arith.remf",
    /// A product of floats.
    MulFOp = "arith.mulf",
    /// A sum of floats.
    AddFOp = "arith.addf",
    /// The larger of floats; NaN where one is.
    MaximumFOp = "arith.maximumf",
    /// The smaller of floats; NaN where one is.
    MinimumFOp = "arith.minimumf",
    /// The larger of floats; the other where one is NaN.
    MaxNumFOp = "arith.maxnumf",
    /// The smaller of floats; the other where one is NaN.
    MinNumFOp = "arith.minnumf",
    /// One of two values.
    SelectOp = "arith.select",
    /// A counted loop.
    ForOp = "scf.for",
    /// A loop with a condition.
    WhileOp = "scf.while",
    /// Two branches.
    IfOp = "scf.if",
    /// A branch to a block.
    BranchOp = "cf.br",
    /// A branch to one of two blocks.
    CondBranchOp = "cf.cond_br",
    /// What a region gives to the operation around it.
    YieldOp = "scf.yield",
    /// A function of MLIR's.
    FuncFuncOp = "func.func",
    /// A function of the `llvm` dialect.
    LlvmFuncOp = "llvm.func",
    /// A constant of the `llvm` dialect.
    LlvmConstantOp = "llvm.mlir.constant",
    /// A fence of the `llvm` dialect.
    LlvmFenceOp = "llvm.fence",
    /// An assumption that is always true.
    AssumeOp = "llvm.intr.assume",
    /// An absolute value of a floating-point number.
    AbsFOp = "math.absf",
    /// An absolute value of an integer.
    AbsIOp = "math.absi",
    /// Rounding up.
    CeilOp = "math.ceil",
    /// Rounding down.
    FloorOp = "math.floor",
    /// A number with another's sign.
    CopySignOp = "math.copysign",
    /// How many bits are set.
    CtPopOp = "math.ctpop",
    /// A multiplication and addition, rounded once.
    FmaOp = "math.fma",
    /// An exponential.
    ExpOp = "math.exp",
    /// A power of two.
    Exp2Op = "math.exp2",
    /// A natural logarithm.
    LogOp = "math.log",
    /// A logarithm to base two.
    Log2Op = "math.log2",
    /// A sine.
    SinOp = "math.sin",
    /// A cosine.
    CosOp = "math.cos",
    /// A hyperbolic tangent.
    TanhOp = "math.tanh",
    /// An error function.
    ErfOp = "math.erf",
    /// A square root.
    SqrtOp = "math.sqrt",
    /// A reciprocal square root.
    RsqrtOp = "math.rsqrt",
    /// A value that does not matter.
    PoisonOp = "ub.poison",
}

/// A dialect of MLIR's, of which all operations are alike to those who ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Dialect {
    Arith,
    Math,
    Scf,
    Cf,
    Ub,
}

impl Dialect {
    /// The dialect of `op`, if it is one of these.
    pub fn of(op: Op<'_>) -> Option<Self> {
        match op.name().split_once('.')?.0 {
            "arith" => Some(Dialect::Arith),
            "math" => Some(Dialect::Math),
            "scf" => Some(Dialect::Scf),
            "cf" => Some(Dialect::Cf),
            "ub" => Some(Dialect::Ub),
            _ => None,
        }
    }
}

impl<'c> ConstantOp<'c> {
    /// What it is.
    pub fn value(self) -> Option<Attr<'c>> {
        self.0.attr("value")
    }
    /// The one integer that it is, or that all its elements are.
    pub fn int(self) -> Option<i64> {
        let value = self.value()?;
        value.as_elements().map_or(Some(value), |elements| elements.splat_value())?.as_int()
    }
}

impl<'c> CmpIOp<'c> {
    /// The number of its predicate, as `arith` counts: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
    pub fn predicate(self) -> Option<i64> {
        self.0.attr("predicate")?.as_int()
    }
}

impl<'c> ForOp<'c> {
    /// The first value of the induction variable.
    pub fn lower(self) -> Value<'c> {
        self.0.operand(0)
    }
    /// What the induction variable stays below.
    pub fn upper(self) -> Value<'c> {
        self.0.operand(1)
    }
    /// What is added to the induction variable.
    pub fn step(self) -> Value<'c> {
        self.0.operand(2)
    }
    /// The body; `None` only in IR that was not verified.
    pub fn body(self) -> Option<Block<'c>> {
        self.0.region(0).first_block()
    }
    /// The induction variable; `None` only in IR that was not verified.
    pub fn induction_variable(self) -> Option<Value<'c>> {
        self.body()?.args().next()
    }
    /// The loop of which `value` is the induction variable.
    pub fn counting(value: Value<'c>) -> Option<Self> {
        let this = Self::cast(value.arg_block()?.parent()?)?;
        (this.induction_variable() == Some(value)).then_some(this)
    }
    /// The loop of which `value` is an iter_arg, and what that is in the first and in the next iteration.
    pub fn carrying(value: Value<'c>) -> Option<(Self, Value<'c>, Value<'c>)> {
        let block = value.arg_block()?;
        let this = Self::cast(block.parent()?)?;
        let number = value.index().checked_sub(1)?;
        Some((this, this.0.operands().nth(3 + number)?, block.terminator()?.operands().nth(number)?))
    }
}

/// Integer arithmetic of `arith`, as those see it who follow numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integer<'c> {
    /// A sum.
    Add(Value<'c>, Value<'c>),
    /// A difference.
    Sub(Value<'c>, Value<'c>),
    /// A remainder, of unsigned or signed numbers.
    Rem(Value<'c>, Value<'c>, bool),
    /// A bitwise conjunction.
    And(Value<'c>, Value<'c>),
    /// The same number in another width.
    Resized(Value<'c>),
    /// One of two, by a condition.
    Select(SelectOp<'c>),
}

impl<'c> Integer<'c> {
    /// What `op` computes, if it is of these.
    pub fn of(op: Op<'c>) -> Option<Self> {
        let both = |make: fn(Value<'c>, Value<'c>) -> Self| make(op.operand(0), op.operand(1));
        Some(match_op!(op, {
            AddIOp => both(Self::Add),
            SubIOp => both(Self::Sub),
            RemUIOp => both(|a, b| Self::Rem(a, b, false)),
            RemSIOp => both(|a, b| Self::Rem(a, b, true)),
            AndIOp => both(Self::And),
            IndexCastOp | ExtSIOp | ExtUIOp | TruncIOp => Self::Resized(op.operand(0)),
            SelectOp(select) => Self::Select(select),
            _ => return None,
        }))
    }
}

/// Whether `op` is control flow of `scf` that is made anew by giving its regions to another one of its kind with more
/// or fewer operands and results.
pub fn is_structured(op: Op<'_>) -> bool {
    ForOp::cast(op).is_some() || WhileOp::cast(op).is_some() || IfOp::cast(op).is_some()
}

/// Whether `op` branches between blocks, and takes more or fewer operands for them.
pub fn is_branch(op: Op<'_>) -> bool {
    BranchOp::cast(op).is_some() || CondBranchOp::cast(op).is_some()
}

/// Whether control flow can be made to pass one value more to where it passes `value`: it is an argument of a block
/// that others branch to, or an argument or result of what [`is_structured`].
pub fn can_pass_more(value: Value<'_>) -> bool {
    match value.arg_block() {
        Some(block) if block.parent_region().and_then(Region::first_block) != Some(block) => true,
        Some(block) => block.parent().is_some_and(is_structured),
        None => value.def_op().is_some_and(is_structured),
    }
}
