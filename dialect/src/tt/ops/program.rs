//! The place of a program in the grid, and what helps debugging it.

use crate::constraints::*;
use crate::tt::enums::ProgramDim;
use crate::tt::ops::global;
use crate::tt::traits::ON_TENSORS;
use mlir_host::attrs::{BoolAttr, DenseI32Array, StrAttr};
use mlir_host::def::{EffectKind, EffectOn, Effects};
use mlir_host::op;
use mlir_host::traits::Trait;

op! {
    /// The index of this program along a dimension of the grid.
    pub struct GetProgramIdOp = "tt.get_program_id" {
        results: [result: I32],
        attrs: [axis: ProgramDim],
        traits: [Trait::Pure, ON_TENSORS],
        format: "$axis attr-dict `:` type($result)",
    }
}

op! {
    /// The number of programs along a dimension of the grid.
    pub struct GetNumProgramsOp = "tt.get_num_programs" {
        results: [result: I32],
        attrs: [axis: ProgramDim],
        traits: [Trait::Pure, ON_TENSORS],
        format: "$axis attr-dict `:` type($result)",
    }
}

op! {
    /// Prints values from the device.
    pub struct PrintOp = "tt.print" {
        operands: [args[var]: ANY],
        attrs: [prefix: StrAttr, hex: BoolAttr, is_signed("isSigned"): DenseI32Array],
        traits: [Trait::SameVariadicOperandSize, ON_TENSORS],
        format: "$prefix attr-dict (`:` $args^ `:` type($args))?",
        with: { effects: Effects::List(&[global(EffectKind::Write, EffectOn::Nothing)]) },
    }
}

op! {
    /// Ends the program with a message where a condition does not hold.
    pub struct AssertOp = "tt.assert" {
        operands: [condition: BOOL_LIKE],
        attrs: [message: StrAttr],
        traits: [ON_TENSORS],
        format: "$condition `,` $message attr-dict `:` type($condition)",
        with: { effects: Effects::List(&[global(EffectKind::Write, EffectOn::Nothing)]) },
    }
}
