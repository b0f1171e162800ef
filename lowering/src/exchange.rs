//! Emits plans that move data between registers, lanes, warps and blocks.

use crate::emit::{Failure, Lowered, unsupported};
use crate::lower::Lower;
use linear_layout::plan::{Conversion, ConversionPlan};
use mlir_host::ir::Value;

/// Converts a thread's values, integers of the plan's element width, to another
/// layout. `scratch` is the plan's shared memory, if it needs some: when the
/// code begins no thread uses it, and when it ends other threads may still
/// read from it.
///
/// # Errors
/// When the target lacks an instruction of the plan.
pub fn convert<'c>(
    _l: &mut Lower<'_, 'c>,
    plan: &ConversionPlan,
    values: &[Value<'c>],
    _scratch: Option<Value<'c>>,
) -> Lowered<Vec<Value<'c>>> {
    match &plan.conversion {
        Conversion::NoOp => Ok(values.to_vec()),
        Conversion::RegisterPermute { sources } => sources
            .iter()
            .map(|source| values.get(*source as usize).copied())
            .collect::<Option<_>>()
            .ok_or_else(|| Failure::Unsupported("the plan reads registers that do not exist".to_owned())),
        _ => unsupported(format!("conversions by {} cannot be lowered yet", plan.kind())),
    }
}
