//! `--tritongpu-pipeline`: loops that load while they compute.

use super::expand::expand;
use super::plan::LoopSchedule;
use super::source::Source;
use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::ir_util::is_loop;
use crate::machine::{self, Machine, error};
use mlir_host::ir::{Attr, Op};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};

/// The pass.
pub static TRITONGPU_PIPELINE: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg", "ttng", "tt", "arith", "scf"],
    options: &[
        PassOption {
            name: "num-stages",
            description: "stages of loops that do not say how many they want (tt.num_stages)",
            kind: OptionKind::Int(3),
        },
        PassOption {
            name: "explain",
            description: "report the schedule of each loop, or why it has none, as remarks",
            kind: OptionKind::Bool(false),
        },
    ],
    ..PassDef::new(
        "tritongpu-pipeline",
        "Run what loads data for later iterations of a loop beside what computes",
        run,
    )
};

/// The attribute of loops that says how many stages they want.
const NUM_STAGES: &str = "tt.num_stages";
/// More stages than this are taken for a mistake.
const MOST_STAGES: i64 = 64;

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let mut loops = Vec::new();
    module.walk_post(&mut |op| {
        if op.name() == "scf.for" {
            loops.push(op);
        }
    });
    if loops.is_empty() {
        return Ok(());
    }
    let (target, machine) = (machine::target(module)?, Machine::of(module)?);
    if !target.primitives.cp_async || machine.num_ctas > 1 {
        return Ok(());
    }
    let axis = AxisInfoAnalysis::new(module);
    let explains = options.bool("explain");
    let mut sources = Vec::new();
    for op in loops {
        let asked = op
            .attr(NUM_STAGES)
            .map(|attr| attr.as_int().ok_or_else(|| error(op, "expects an integer as \"tt.num_stages\"")));
        let asked = asked.transpose()?;
        let stages = asked.unwrap_or_else(|| options.int("num-stages"));
        if stages > MOST_STAGES {
            return Err(error(op, format!("cannot have {stages} stages, the most is {MOST_STAGES}")));
        }
        let is_nested = op.ancestor(|outer| outer.name() == "ttg.warp_specialize").is_some();
        if stages < 2 || is_nested || op.region(0).first_block().is_some_and(|block| block.ops().any(is_loop))
        {
            continue;
        }
        let all = asked.is_some();
        match Source::of(op, all, &axis, &target) {
            Ok(source) => {
                let budget = source.budget(stages as u32, machine.num_warps, &target);
                match LoopSchedule::new(&source.graph, &budget) {
                    Some(schedule) => sources.push((source, schedule)),
                    None if explains => op.remark("has no software pipeline: nothing can run ahead"),
                    None => {}
                }
            }
            Err(reason) if explains => op.remark(format!("has no software pipeline: {reason}")),
            Err(_) => {}
        }
    }
    for (source, schedule) in sources {
        if explains {
            source.op.remark(source.describe(&schedule));
        }
        let made = expand(&source, &schedule)?;
        made.set_attr(NUM_STAGES, Attr::int(made.context(), 32, 1));
    }
    Ok(())
}
