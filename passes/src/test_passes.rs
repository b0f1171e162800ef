//! Passes that show analyses, for tests.

use crate::analysis::axis_info::AxisInfoAnalysis;
use mlir_host::ir::{Op, Walk};
use mlir_host::pass::{Options, PassDef, PassResult};

/// The pass.
pub static TEST_PRINT_AXIS_INFO: PassDef = PassDef {
    ..PassDef::new("test-print-axis-info", "Report what is known about integers and pointers as remarks", run)
};

fn run(root: Op<'_>, _: &Options) -> PassResult {
    let analysis = AxisInfoAnalysis::new(root);
    root.walk(&mut |op| {
        let infos: Vec<String> =
            op.results().filter_map(|result| analysis.get(result)).map(|info| info.to_string()).collect();
        if !infos.is_empty() {
            op.remark(infos.join("; "));
        }
        Walk::Advance
    });
    Ok(())
}
