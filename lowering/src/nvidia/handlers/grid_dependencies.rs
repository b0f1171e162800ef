//! Programmatic dependent launch (PTX ISA, "griddepcontrol"): a grid begins before those that it depends on have ended.

use crate::emit::{Lowered, unsupported};
use crate::lower::{Handler, Lower};

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("tt.grid_dependency_wait", |l, _| control(l, "wait")),
    ("tt.grid_dependency_launch_dependents", |l, _| control(l, "launch.dependents")),
];

fn control(l: &mut Lower<'_, '_>, what: &str) -> Lowered<()> {
    // sm_90 brought it along with bulk copies.
    let desc = l.target.desc();
    if !desc.primitives.bulk_copy {
        return unsupported(format!(
            "programmatic dependent launch needs sm_90, the target is {}",
            desc.name.replace("cuda:", "sm_")
        ));
    }
    l.emit.intrinsic_void(&format!("llvm.nvvm.griddepcontrol.{what}"), &[])
}
