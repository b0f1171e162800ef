//! Conversions between layouts.

use crate::emit::{Failure, Lowered};
use crate::exchange;
use crate::lower::{Handler, Lower};
use crate::words::{from_words, to_words};
use linear_layout::plan::Conversion;
use mlir_host::ir::Op;
use ttopt_passes::plans;

pub(super) const HANDLERS: &[(&str, Handler)] = &[("ttg.convert_layout", convert_layout)];

fn convert_layout<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (from, to) = (op.operand(0).ty(), op.result(0).ty());
    let plan = plans::conversion(from, to, l.target.desc()).map_err(Failure::Unsupported)?;
    l.remark(op, || plan.to_string());
    let values = l.get(op.operand(0))?;
    let converted = match &plan.conversion {
        Conversion::NoOp | Conversion::RegisterPermute { .. } => exchange::convert(l, &plan, &values, None)?,
        _ => {
            let scratch = if plan.shared_bytes() > 0 { Some(l.scratch(op)?) } else { None };
            let words = to_words(l, &values, from.element(), plan.elem_bits)?;
            let words = exchange::convert(l, &plan, &words, scratch)?;
            from_words(l, &words, to.element())?
        }
    };
    l.set(op.result(0), converted);
    Ok(())
}
