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

use crate::ir::{Attr, Block, Op, Region, Value};

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
                (op.name() == $opname).then_some(Self(op))
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
        Some(match op.name() {
            "arith.addi" => both(Self::Add),
            "arith.subi" => both(Self::Sub),
            "arith.remui" => both(|a, b| Self::Rem(a, b, false)),
            "arith.remsi" => both(|a, b| Self::Rem(a, b, true)),
            "arith.andi" => both(Self::And),
            "arith.index_cast" | "arith.extsi" | "arith.extui" | "arith.trunci" => {
                Self::Resized(op.operand(0))
            }
            _ => Self::Select(SelectOp::cast(op)?),
        })
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
