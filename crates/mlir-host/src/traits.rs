//! Traits of operations.

use crate::def::VerifyResult;
use crate::ffi;
use crate::ir::Op;

/// Traits that MLIR itself knows. The numbers are shared with the shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
#[repr(u32)]
pub enum Upstream {
    Terminator = 0,
    IsolatedFromAbove,
    ReturnLike,
    Commutative,
    ConstantLike,
    SymbolTable,
    AffineScope,
    AutomaticAllocationScope,
    RecursiveMemoryEffects,
    NoTerminator,
    SingleBlock,
    Elementwise,
    Scalarizable,
    Vectorizable,
    Tensorizable,
    SameOperandsShape,
    SameOperandsAndResultShape,
    SameOperandsElementType,
    SameOperandsAndResultElementType,
    SameOperandsAndResultType,
    SameTypeOperands,
    Involution,
    Idempotent,
    GraphRegion,
}

/// A trait of a hosted operation.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Trait {
    /// One that MLIR knows, with its verifier.
    Upstream(Upstream),
    /// All variadic operand groups have the same size.
    SameVariadicOperandSize,
    /// All variadic result groups have the same size.
    SameVariadicResultSize,
    /// The parent is one of these operations.
    HasParent(&'static [&'static str]),
    /// A symbol (`sym_name`).
    Symbol,
    /// A function: symbol, callable, `function_type`.
    Function,
    /// A call of the symbol `callee`.
    Call,
    /// A verifier shared by several operations, with its name.
    Verify(&'static str, fn(Op<'_>) -> VerifyResult),
    /// A mark that only Rust code asks for.
    Mark(&'static str),
    /// No memory effects, and may run when it would not have. Stands for both fields of the definition.
    Pure,
    /// MLIR infers result types by its `InferTypeOpInterface`, which asks the definition: for builders that know nothing of
    /// it, as those of the C API. At most 512 operations of a process.
    InferTypes,
    /// A bundle: all of these.
    All(&'static [Trait]),
}

impl PartialEq for Trait {
    fn eq(&self, other: &Trait) -> bool {
        match (self, other) {
            (Trait::Upstream(a), Trait::Upstream(b)) => a == b,
            (Trait::Verify(a, _), Trait::Verify(b, _)) | (Trait::Mark(a), Trait::Mark(b)) => a == b,
            (Trait::HasParent(a), Trait::HasParent(b)) => a == b,
            (Trait::All(a), Trait::All(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Trait {
    /// The last operation of a block.
    pub const TERMINATOR: Trait = Trait::Upstream(Upstream::Terminator);
    /// Nested operations use no values from outside.
    pub const ISOLATED: Trait = Trait::Upstream(Upstream::IsolatedFromAbove);
    /// Passes its operands to the operation around it.
    pub const RETURN_LIKE: Trait = Trait::Upstream(Upstream::ReturnLike);
    /// Has the memory effects of its nested operations.
    pub const RECURSIVE_EFFECTS: Trait = Trait::Upstream(Upstream::RecursiveMemoryEffects);
    /// Regions have at most one block.
    pub const SINGLE_BLOCK: Trait = Trait::Upstream(Upstream::SingleBlock);
    /// Operands and results have one type.
    pub const SAME_TYPE: Trait = Trait::Upstream(Upstream::SameOperandsAndResultType);
    /// Operands and results have one shape.
    pub const SAME_SHAPE: Trait = Trait::Upstream(Upstream::SameOperandsAndResultShape);
    /// Operands and results have one element type.
    pub const SAME_ELEMENT: Trait = Trait::Upstream(Upstream::SameOperandsAndResultElementType);
    /// Operands have one type.
    pub const SAME_OPERAND_TYPES: Trait = Trait::Upstream(Upstream::SameTypeOperands);
    /// Operands have one shape.
    pub const SAME_OPERANDS_SHAPE: Trait = Trait::Upstream(Upstream::SameOperandsShape);

    /// Whether this is `which`, or a bundle with it.
    pub(crate) fn includes(&self, which: &Trait) -> bool {
        match self {
            Trait::All(bundle) => bundle.iter().any(|each| each.includes(which)),
            _ => self == which,
        }
    }

    /// Calls `each` on this, or on what is in the bundle, in order, until it returns an error.
    pub(crate) fn try_each<E>(
        &'static self,
        each: &mut impl FnMut(&'static Trait) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Trait::All(bundle) => bundle.iter().try_for_each(|one| one.try_each(each)),
            _ => each(self),
        }
    }

    pub(crate) fn verify(&self, op: Op<'_>) -> Option<VerifyResult> {
        match self {
            // MLIR's verifiers report by themselves.
            Trait::Upstream(which) => {
                // SAFETY: the operation is valid.
                (unsafe { ffi::mhVerifyTrait(op.raw(), *which as u32) } != 0).then_some(Ok(()))
            }
            Trait::HasParent(names) => Some(match op.parent() {
                Some(parent) if names.contains(&parent.name()) => Ok(()),
                _ => Err(match names {
                    [one] => format!("expects parent op '{one}'"),
                    many => format!("expects parent op to be one of '{}'", many.join(", ")),
                }),
            }),
            Trait::Symbol | Trait::Function => {
                let function = matches!(self, Trait::Function);
                // SAFETY: the operation is valid, and a symbol by its definition.
                (unsafe { ffi::mhVerifySymbol(op.raw(), function.into()) } != 0).then_some(Ok(()))
            }
            Trait::Verify(_, check) => Some(check(op)),
            _ => Some(Ok(())),
        }
    }
}
