//! `--tritongpu-pipeline`: loops that load while they compute.

use super::expand::expand;
use super::nest::{self, FLATTEN, Nest};
use super::offsets::carry_offsets;
use super::one_loop::Pair;
use super::past_registers::Copies;
use super::plan::{Budget, LoopSchedule};
use super::read_ahead::ReadAhead;
use super::read_direct::read_as_used;
use super::source::{Ahead, Refusal, Source, Stores, body, check_attributes, is_scheduled};
use super::staged::turn_in_registers;
use super::swizzled::swizzle_rings;
use super::worth::{PARTS, Worth};
use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::analysis::registers::{spare_registers_of, waves_together};
use crate::buffer_plans;
use crate::coalesce::layout_alone;
use crate::ir_util::{convert_operand, enclosing_function, is_loop, multiplies, trip_count, with_layout};
use crate::loop_unroll::unroll;
use crate::machine::{self, Layouts, Machine, error, internal};
use crate::plans::{self, AccessFacts, word_bits};
use crate::remove_layout_conversions::improve;
use crate::remove_layout_conversions::remove_unused;
use crate::reorder_instructions::first_user;
use crate::rules::is_conversion;
use linear_layout::plan::VectorPlan;
use linear_layout::show::timeline::{self, Timeline};
use linear_layout::target::{TargetDesc, Vendor};
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Op, TensorType, Type, Walk};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::rewrite::IrRewriter;
use mlir_host::upstream::ForOp;
use ttopt_dialect::tt::ops::LoadOp;
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::ops::{AsyncCopyGlobalToLocalOp, LocalDeallocOp, LocalStoreOp, WarpSpecializeOp};
use ttopt_dialect::ttg::types::MemDescType;

/// The pass.
pub static TRITONGPU_PIPELINE: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg", "ttng", "tt", "amdg", "rocdl", "arith", "scf"],
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
        PassOption {
            name: "record",
            description: "write the schedule of each loop, or why it has none, to the module as JSON (ttg.schedules)",
            kind: OptionKind::Bool(false),
        },
        PassOption {
            name: "ahead-in-registers",
            description: "whether loads may run ahead where all of them only wait in registers, or one stage is asked for",
            kind: OptionKind::Bool(true),
        },
        PassOption {
            name: "leave-room",
            description: "of schedules that cost the same, those whose rings leave shared memory for one more CTA, even if registers may not suffice for it",
            kind: OptionKind::Bool(false),
        },
        PassOption {
            name: "add-stage",
            description: "whether loops of which one stage or two are wanted may have one more where no fewer programs fit beside each other, or that costs less",
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
/// On functions, until kernel decisions are taken: CTAs of a multiprocessor that schedules were made for, an `i32`.
pub const SCHEDULED_CTAS: &str = "ttg.scheduled_ctas";
/// On loads: that they are issued where they are, behind accesses to shared memory that come before them.
pub const PINNED: &str = "ttg.pinned";
/// On modules, where it is asked for: the schedules of loops, as strings with a [`Timeline`] in JSON each.
pub const SCHEDULES: &str = "ttg.schedules";
/// On modules: that loads of a loop run ahead, which nobody asked for, and all of them only wait in registers meanwhile, or one stage was
/// asked for. Whether that pays is known when registers are allocated.
pub const AHEAD_IN_REGISTERS: &str = "ttg.ahead_in_registers";
/// On modules: that a loop has the stages that the option asks for, not an attribute of its own, and copies to shared memory for later
/// iterations.
pub const COPIES_AHEAD: &str = "ttg.copies_ahead";
/// On modules: that a loop has another schedule that costs the same with the option `leave-room`, and the CTAs that there are room for with the
/// one that it has. Whether registers suffice for one more is known when code is there.
pub const COULD_LEAVE_ROOM: &str = "ttg.could_leave_room";
/// On modules: that a loop is a recurrence that multiplies, of which there are as few programs as sequences.
pub const FEW_PROGRAMS: &str = "ttg.few_programs";
/// More stages than this are taken for a mistake.
const MOST_STAGES: i64 = 64;

/// All loops, inner ones first.
fn loops_of(module: Op<'_>) -> Vec<Op<'_>> {
    let mut loops = Vec::new();
    module.walk_post(&mut |op| {
        if ForOp::cast(op).is_some() {
            loops.push(op);
        }
    });
    loops
}

fn has_loop(op: Op<'_>) -> bool {
    op.region(0).first_block().is_some_and(|block| block.ops().any(is_loop))
}

/// Makes one loop of nests in which the outer loop only goes on with what the inner one computes, where that pays or was asked
/// for.
fn join_loops(module: Op<'_>, machine: &Machine, target: &TargetDesc, options: &Options) -> PassResult {
    let specialized = |op: Op<'_>| op.ancestor(|outer| WarpSpecializeOp::cast(outer).is_some()).is_some();
    let inner =
        loops_of(module).into_iter().filter(|op| !has_loop(*op) && multiplies(*op) && !specialized(*op));
    for mut op in inner.collect::<Vec<_>>() {
        let stages = op.attr(NUM_STAGES).and_then(Attr::as_int).unwrap_or_else(|| options.int("num-stages"));
        while stages > 1
            && let Some((outer, _)) = nest::around(op)
        {
            let asked = outer.attr(FLATTEN).is_some();
            let pair = match Pair::of(op) {
                Ok(pair) => pair,
                Err(reason) => {
                    if options.bool("explain") && asked {
                        op.remark(format!("stays a loop of its own in the loop around it: {reason}"));
                    }
                    break;
                }
            };
            // Several CTAs hide each other's latency, and the branch of each iteration costs them instructions.
            let alone = nest::is_alone(op, machine.num_warps, target);
            let gain = Worth::new(module, machine.clone(), target).of_one_loop(&pair, stages as u32);
            let pays = asked || alone && gain.pays();
            if options.bool("explain") {
                let becomes = if pays { "becomes one loop with" } else { "stays a loop of its own in" };
                let shared = if alone { "" } else { ", where other CTAs may hide latency" };
                op.remark(format!("{becomes} the loop around it: {gain}{shared}"));
            }
            if !pays {
                break;
            }
            op = pair.join()?;
        }
    }
    Ok(())
}

fn run<'c>(module: Op<'c>, options: &Options) -> PassResult {
    if loops_of(module).is_empty() {
        return Ok(());
    }
    let (target, machine) = (machine::target(module)?, Machine::of(module)?);
    if machine.num_ctas > 1 {
        return Ok(());
    }
    join_loops(module, &machine, &target, options)?;
    let loops = loops_of(module);
    let axis = AxisInfoAnalysis::new(module);
    let mut said =
        Said { explains: options.bool("explain"), records: options.bool("record"), loops: Vec::new() };
    let worth = Worth::new(module, machine.clone(), &target);
    let may_wait_in_registers = options.bool("ahead-in-registers");
    let may_add_stage = options.bool("add-stage");
    let leave_room = options.bool("leave-room");
    let mut sources = Vec::new();
    for op in loops {
        let asked = op
            .attr(NUM_STAGES)
            .map(|attr| attr.as_int().ok_or_else(|| error(op, "expects an integer as \"tt.num_stages\"")));
        let asked = asked.transpose()?;
        let wanted = asked.unwrap_or_else(|| options.int("num-stages"));
        // Who asks for one stage fears for registers and shared memory; a plan counts both.
        let raised = wanted == 1
            && asked.is_none()
            && may_add_stage
            && may_wait_in_registers
            && target.primitives.cp_async;
        let stages = if raised { 2 } else { wanted };
        if stages > MOST_STAGES {
            return Err(error(op, format!("cannot have {stages} stages, the most is {MOST_STAGES}")));
        }
        let is_nested = op.ancestor(|outer| WarpSpecializeOp::cast(outer).is_some()).is_some();
        if stages < 2 || is_nested || has_loop(op) {
            continue;
        }
        check_attributes(op)?;
        let all = asked.is_some() || is_scheduled(op);
        let source_of = |ahead: &Ahead<'c>| Source::of(op, all, ahead, &axis, machine.num_warps, &target);
        match source_of(&Ahead::default()) {
            Ok(source) => {
                if source.multiplies_and_recurs() {
                    module.set_attr(FEW_PROGRAMS, Attr::unit(module.context()));
                }
                let stages = source.stages(stages as u32);
                let demand = worth.demand(&source);
                // Copies need no registers; what would wait in some takes them from everything else.
                let most = if may_add_stage && asked.is_none() && target.primitives.cp_async {
                    source.most_stages(stages)
                } else {
                    stages
                };
                let budget = |within| {
                    let wanted = source.budget(within, stages, machine.num_warps, demand, &target)?;
                    Ok::<Budget, String>(Budget { stages: most, leave_room, ..wanted })
                };
                let alone = budget(op).map_err(|reason| error(op, reason))?;
                let nested = nest::around(op).map(|(outer, _)| budget(outer)).transpose();
                let nested = nested.map_err(|reason| error(op, reason))?;
                let schedule = LoopSchedule::new(&source.graph, &alone);
                let waits = |schedule: &LoopSchedule| !all && schedule.bytes_under_way(&source.graph, 1) == 0;
                let in_registers = schedule.as_ref().is_some_and(waits);
                if in_registers && !may_wait_in_registers {
                    said.none(op, "what would run ahead would only wait in registers");
                    continue;
                }
                let programs =
                    |schedule: &LoopSchedule| alone.ctas_with(schedule.shared_bytes(&source.graph));
                if raised && schedule.as_ref().is_some_and(|schedule| programs(schedule) > OF_ONE_STAGE) {
                    said.none(op, "it asks for one stage, and the programs that fit hide each other's waits");
                    continue;
                }
                let loses =
                    |schedule: &LoopSchedule| worth.loses(&source, schedule, &alone, raised).filter(|_| !all);
                let schedule = schedule.map(|schedule| (loses(&schedule), schedule));
                if said.explains
                    && let Some((loses, schedule)) = &schedule
                {
                    let choice = worth.choice(&source, Some(schedule).filter(|_| loses.is_none()), &alone);
                    choice.into_iter().for_each(|choice| op.remark(choice.to_string()));
                }
                match schedule {
                    Some((None, schedule)) => {
                        if schedule.could_leave_room(&source.graph, &alone) {
                            let known = module.attr(COULD_LEAVE_ROOM).and_then(Attr::as_int);
                            let ctas = alone.ctas_in_memory(schedule.shared_bytes(&source.graph)) as i64;
                            let ctas = known.map_or(ctas, |known| known.min(ctas));
                            let ty = Type::int(module.context(), 32);
                            module.set_attr(COULD_LEAVE_ROOM, Attr::int_of(ty, ctas));
                        }
                        if raised {
                            module.set_attr(AHEAD_IN_REGISTERS, Attr::unit(module.context()));
                        } else if asked.is_none() && schedule.bytes_under_way(&source.graph, 1) > 0 {
                            module.set_attr(COPIES_AHEAD, Attr::unit(module.context()));
                        }
                        let further = (source.waits_for_nothing(&schedule) && worth.is_short(&source))
                            .then(|| schedule.further(&source.graph, &alone, trip_count(op)))
                            .flatten();
                        if let Some(schedule) = further {
                            sources.push(Planned { source, schedule, nest: None, ctas: alone.ctas });
                            continue;
                        }
                        // CTAs of fewer warps than a multiprocessor has parts do not fill each other's waits. What code for AMD GPUs spills
                        // is known before anything else is tried.
                        let may_be_filled = machine.num_warps as f64 >= PARTS || target.vendor == Vendor::Amd;
                        if in_registers && may_be_filled {
                            module.set_attr(AHEAD_IN_REGISTERS, Attr::unit(module.context()));
                        }
                        let one = Planned { source, schedule, nest: None, ctas: alone.ctas };
                        let turns = || {
                            let source = source_of(&Ahead { stores: Stores::All, reads: Vec::new() }).ok()?;
                            let demand = worth.demand(&source);
                            let budget =
                                source.budget(op, stages, machine.num_warps, demand, &target).ok()?;
                            let schedule = LoopSchedule::in_turns(&source.graph, &budget)?;
                            let ctas = budget.ctas;
                            demand.halves.then_some(Planned { source, schedule, nest: None, ctas })
                        };
                        // Of two CTAs one multiplies while the other one waits for its barriers.
                        let is_shared = worth.leaves_room(&one.source, &one.schedule, &alone);
                        if !one.schedule.halves
                            && !is_shared
                            && let Some(turns) = turns()
                        {
                            sources.push(turns);
                            continue;
                        }
                        let one = match nested {
                            Some(nested) => overlapped(one, (&alone, &nested), &worth, &said),
                            None => one,
                        };
                        let budget_of = |source: &Source<'c>| {
                            let demand = worth.demand(source);
                            source.budget(op, stages, machine.num_warps, demand, &target)
                        };
                        let stored =
                            if target.primitives.cp_async { vec![] } else { ReadAhead::stored(&one.source) };
                        let planned = if stored.is_empty() {
                            with_reads_ahead(one, source_of, &alone, &target, &said)?
                        } else {
                            stored_ahead(one, stored, source_of, budget_of, &target, &said)?
                        };
                        match planned {
                            // Of two programs one multiplies while the other one issues accesses.
                            Some(planned)
                                if worth.demand(&planned.source).spread
                                    && !worth.leaves_room(&planned.source, &planned.schedule, &alone) =>
                            {
                                sources.push(planned.spread());
                            }
                            Some(planned) => sources.push(planned),
                            None => said.none(op, "nothing can run ahead of its dots in parts"),
                        }
                    }
                    Some((Some(reason), _)) => said.none(op, reason),
                    None => said.none(op, "nothing can run ahead"),
                }
            }
            Err(reason) => said.none(op, reason),
        }
    }
    for Planned { source, schedule, ctas, .. } in &sources {
        note_ctas(source.op, *ctas);
        said.schedule(source, schedule);
    }
    said.record(module);
    if sources.is_empty() {
        return Ok(());
    }
    let nested = sources.iter().any(|planned| planned.nest.is_some());
    for Planned { source, schedule, nest, .. } in sources {
        let made = expand(&source, &schedule, nest.as_ref())?;
        if schedule.advances_late {
            carry_offsets(made)?;
        }
        if !target.primitives.cp_async {
            pin_loads(made);
        }
        made.set_attr(NUM_STAGES, Attr::int(made.context(), 32, 1));
        if schedule.unroll > 1 {
            unroll(&mut IrRewriter::new(made.context()), made, i64::from(schedule.unroll))?;
        }
    }
    // Masks of prologues that stand before and in the loop around.
    if nested {
        remove_unused(module)?;
    }
    undo_copies(module, machine.num_warps, &target)?;
    let layouts = Layouts::new(module.context(), machine);
    coalesce_copies(module, &layouts, &target)?;
    turn_in_registers(module, &target)?;
    if target.primitives.cp_async {
        read_as_used(module, &layouts, &target)?;
    }
    swizzle_rings(module, &target)
}

/// A loop and its schedule.
struct Planned<'c> {
    source: Source<'c>,
    schedule: LoopSchedule,
    /// The loop around, where the prologue comes behind the loop of the tile before.
    nest: Option<Nest<'c>>,
    ctas: u64,
}

impl Planned<'_> {
    /// The same with accesses spread between matrix instructions, where operands are read ahead: else an iteration begins with reads
    /// between which there is nothing to multiply.
    fn spread(mut self) -> Self {
        let graph = &self.source.graph;
        if self.schedule.reads_ahead(graph) {
            self.schedule = self.schedule.spreading(graph);
        }
        self
    }
}

/// The schedule of a loop in a loop over tiles with the prologue of the next tile behind the loop of this one, where that is
/// possible and pays or was asked for; else as it is. `budgets` are those of the loop, and where its rings outlive it.
fn overlapped<'c>(
    one: Planned<'c>,
    budgets: (&Budget, &Budget),
    worth: &Worth<'c, '_>,
    said: &Said,
) -> Planned<'c> {
    let (op, graph) = (one.source.op, &one.source.graph);
    let apart = one.schedule.halves;
    let budget = Budget { halves: false, ..*budgets.1 };
    let found = LoopSchedule::new(graph, &budget).ok_or("its rings do not fit beside what is behind it");
    let found = found.and_then(|found| if apart { Err("halves of its warps run apart") } else { Ok(found) });
    let found = found.and_then(|schedule| Ok((Nest::of(&one.source, &schedule)?, schedule)));
    let found = found.and_then(|(nest, schedule)| {
        let asked = nest.outer.attr(FLATTEN).is_some();
        let schedule = schedule.with_prologue_ahead(graph);
        let gain = worth.of_prologue_ahead(&one.source, &nest, (&one.schedule, &schedule), budgets);
        let pays = asked || gain.pays();
        if said.explains {
            let does = if pays { "loads" } else { "does not load" };
            op.remark(format!("{does} for the next tile before this one ends: {gain}"));
        }
        if pays { Ok((nest, schedule)) } else { Err("") }
    });
    match found {
        Ok((nest, schedule)) => {
            let ctas = one.ctas.min(budgets.1.ctas);
            Planned { schedule, nest: Some(nest), ctas, ..one }
        }
        Err(reason) => {
            if said.explains && !reason.is_empty() {
                op.remark(format!("does not load for the next tile before this one ends: {reason}"));
            }
            one
        }
    }
}

/// Programs of a multiprocessor up to which a loop that asks for one stage has two (docs/schedules.md).
const OF_ONE_STAGE: u64 = 5;

/// Programs of a multiprocessor of which one multiplies while another one waits. With two, reading operands ahead gained nothing and cost
/// nothing on an H200 (docs/schedules.md, "Operands read ahead").
const SHARED_BY: u64 = 3;

/// The schedule of a loop with operands that are read an iteration ahead, where that is possible, else as it is: its dots are taken
/// apart for that. `source_of` makes the loop's graph anew. `None` where its dots in parts leave none, which should not be.
fn with_reads_ahead<'c>(
    one: Planned<'c>,
    source_of: impl Fn(&Ahead<'c>) -> Result<Source<'c>, Refusal>,
    budget: &Budget,
    target: &TargetDesc,
    said: &Said,
) -> Result<Option<Planned<'c>>, Reported> {
    let op = one.source.op;
    // Programs that share a multiprocessor hide each other's waits, but for those that are over before that. Where there is no wgmma, dots of
    // large tiles read operands, too, and nobody has compared.
    let shared = budget.ctas_with(one.schedule.shared_bytes(&one.source.graph)) >= SHARED_BY;
    let lasts = trip_count(op).is_none_or(|trips| trips > u64::from(one.schedule.stages));
    let reads = match ReadAhead::of(&one.source, &one.schedule, budget, target) {
        Ok(_) if target.primitives.wgmma && shared && lasts => {
            said.reads_nothing_ahead(op, "of the programs that fit one multiplies while another one waits");
            return Ok(Some(one));
        }
        Ok(ahead) => ahead.apply()?,
        Err(reason) => {
            said.reads_nothing_ahead(op, reason);
            return Ok(Some(one));
        }
    };
    let source = source_of(&Ahead { stores: Stores::None, reads }).map_err(|reason| internal(op, reason))?;
    if let Some(schedule) = one.schedule.reading_ahead(&source.graph, budget) {
        return Ok(Some(Planned { source, schedule, ..one }));
    }
    said.reads_nothing_ahead(op, "it would take slots");
    let source = source_of(&Ahead::default()).map_err(|reason| internal(op, reason))?;
    let schedule = LoopSchedule::new(&source.graph, budget);
    Ok(schedule.map(|schedule| Planned { source, schedule, ..one }))
}

/// The same where threads store operands of the first dot to the buffers that `stored` fills.
fn stored_ahead<'c>(
    one: Planned<'c>,
    stored: Vec<Op<'c>>,
    source_of: impl Fn(&Ahead<'c>) -> Result<Source<'c>, Refusal>,
    budget_of: impl Fn(&Source<'c>) -> Result<Budget, String>,
    target: &TargetDesc,
    said: &Said,
) -> Result<Option<Planned<'c>>, Reported> {
    let op = one.source.op;
    let made = |reads: Vec<Op<'c>>| {
        let ahead = Ahead { stores: Stores::Of(stored.clone()), reads };
        source_of(&ahead).map_err(|reason| internal(op, reason))
    };
    let source = made(Vec::new())?;
    let budget = budget_of(&source).map_err(|reason| error(op, reason))?;
    let slots = vec![1; source.graph.rings.len()];
    let with_slots = LoopSchedule { depths: slots, ..one.schedule.clone() };
    let ahead = match ReadAhead::of(&source, &with_slots, &budget, target) {
        Ok(ahead) => ahead,
        Err(reason) => {
            said.reads_nothing_ahead(op, reason);
            return Ok(Some(one));
        }
    };
    // With a slot more no fewer programs may fit.
    let bytes = source.graph.rings.iter().sum::<u64>();
    let (one_slot, two_slots) = (budget.programs_with(bytes), budget.programs_with(2 * bytes));
    let most = waves_together(op, target) / source.warps.max(1);
    let function = enclosing_function(op).unwrap_or(op);
    let shared = source.warps * one_slot.clamp(1, most.max(1));
    let registers = budget.registers.max(spare_registers_of(function, shared, target));
    let budget = Budget { registers, ..budget };
    let two = two_slots > 0 && two_slots >= one_slot;
    if one_slot > 1 {
        said.reads_nothing_ahead(
            op,
            "of the programs that fit in shared memory one multiplies while another one waits",
        );
        return Ok(Some(one));
    }
    let holds_all = ahead.holds_all();
    if !two && !holds_all {
        said.reads_nothing_ahead(op, "there are no registers for all that a single slot has");
        return Ok(Some(one));
    }
    let source = made(ahead.apply()?)?;
    let of = |slots| LoopSchedule::reading_stored(&source.graph, slots, &budget);
    let schedule = two.then(|| of(2)).flatten().or_else(|| holds_all.then(|| of(1)).flatten());
    if let Some(schedule) = schedule {
        return Ok(Some(Planned { source, schedule, ..one }));
    }
    said.reads_nothing_ahead(op, "what is stored for the next iteration has no place in shared memory");
    let source = source_of(&Ahead::default()).map_err(|reason| internal(op, reason))?;
    let schedule = LoopSchedule::new(&source.graph, &budget);
    Ok(schedule.map(|schedule| Planned { source, schedule, ..one }))
}

/// What is said of loops to those who ask.
struct Said {
    explains: bool,
    records: bool,
    loops: Vec<Timeline>,
}

impl Said {
    /// That a loop has no pipeline, and why.
    fn none(&mut self, op: Op<'_>, reason: &str) {
        if self.explains {
            op.remark(format!("has no software pipeline: {reason}"));
        }
        if self.records {
            self.loops.push(Timeline::without(function_of(op), place_of(op), reason.to_owned()));
        }
    }

    /// That no operand is read an iteration ahead, and why.
    fn reads_nothing_ahead(&self, op: Op<'_>, reason: &str) {
        if self.explains && !reason.is_empty() {
            op.remark(format!("reads no operands an iteration ahead: {reason}"));
        }
    }

    /// The schedule of a loop.
    fn schedule(&mut self, source: &Source<'_>, schedule: &LoopSchedule) {
        if self.explains {
            source.op.remark(source.describe(schedule));
            for what in source.not_kept(schedule) {
                source.op.remark(format!("its schedule is not what its attributes ask for: {what}"));
            }
        }
        if self.records {
            let empty = Timeline::with(function_of(source.op), place_of(source.op), schedule.stages);
            self.loops.push(source.timeline(schedule, empty));
        }
    }

    /// Writes down what is to be recorded.
    fn record(self, module: Op<'_>) {
        if self.records {
            let ctx = module.context();
            let all: Vec<Attr<'_>> = self
                .loops
                .iter()
                .map(|one| Attr::string(ctx, &timeline::to_json(std::slice::from_ref(one))))
                .collect();
            module.set_attr(SCHEDULES, Attr::array(ctx, &all));
        }
    }
}

/// The name of the function around an operation.
fn function_of(op: Op<'_>) -> String {
    let function = enclosing_function(op);
    function.and_then(|function| function.attr("sym_name")?.as_str()).unwrap_or_default().to_owned()
}

/// Where an operation is in the source.
fn place_of(op: Op<'_>) -> String {
    let position = op.loc().position();
    position.map_or_else(String::new, |(file, line, column)| format!("{file}:{line}:{column}"))
}

/// Marks the loads of a loop that run ahead, so that LLVM, which schedules for targets without copies beside the program,
/// leaves them behind what writes the values that they replace to shared memory.
fn pin_loads(around: Op<'_>) {
    let Some((block, end)) = body(around) else { return };
    for op in block.ops().filter(|op| LoadOp::cast(*op).is_some()) {
        if op.result(0).uses().any(|(user, _)| user == end) {
            op.set_attr(PINNED, Attr::unit(op.context()));
        }
    }
}

/// Has copies to shared memory take the layout of pointers that moves most at once. Loads had the layout that what is
/// computed with them wants; the threads that copy need not be those that compute.
fn coalesce_copies<'c>(module: Op<'c>, layouts: &Layouts<'c>, target: &TargetDesc) -> PassResult {
    let axis = AxisInfoAnalysis::new(module);
    let better: Vec<_> = copies(module)
        .into_iter()
        .filter_map(|copy| Some((copy, better_layout(copy, &axis, layouts, target)?)))
        .collect();
    if better.is_empty() {
        return Ok(());
    }
    let mut rewriter = IrRewriter::new(module.context());
    for (copy, layout) in better {
        for i in (0..copy.op().num_operands()).filter(|i| copy.op().operand(*i).ty().as_tensor().is_some()) {
            convert_operand(&mut rewriter, copy.op(), i, layout)?;
        }
    }
    // Pointers are computed in the new layout, not converted.
    improve(module, layouts)?;
    convert_behind_rings(module);
    Ok(())
}

/// Moves conversions of what loops give, which the layout engine puts right behind the loops, to where they are used, if the rings
/// end between: else there would have to be shared memory for both.
fn convert_behind_rings(module: Op<'_>) {
    let mut blocks = Vec::new();
    module.walk(&mut |op| {
        if LocalDeallocOp::cast(op).is_some() {
            blocks.extend(op.block().filter(|block| !blocks.contains(block)));
        }
        Walk::Advance
    });
    for block in blocks {
        let mut end: Option<Op<'_>> = None;
        for op in block.ops().collect::<Vec<_>>().into_iter().rev() {
            if LocalDeallocOp::cast(op).is_some() {
                end = Some(op);
            } else if is_conversion(op)
                && let Some(user) = first_user(op)
                && end.is_some_and(|end| end.is_before_in_block(user))
            {
                op.move_before(user);
            }
        }
    }
}

/// Cycles that a sector of 32 bytes counts beside a wavefront of shared memory, as the objective counts sectors of which a warp's access
/// takes a part. At a half and at a quarter copies of three kernels more of 1,637 change, one of which was timed, and loses (`bitnet_gemm`).
const SECTOR_CYCLES: f64 = 1.0;
/// By how much copies in another layout have to be faster, if they are as many.
const FASTER: f64 = 1.25;

/// The layout of pointers in which a copy takes fewer instructions than in its own, or in which alone it can be done; or as many, which
/// touch fewer sectors. Elements of rows that begin anywhere are copied one by one, in whatever layout, and the engine then has them
/// loaded as a dot reads them: a few of each row in an instruction, whose first and last sectors are touched twice.
fn better_layout<'c>(
    copy: AsyncCopyGlobalToLocalOp<'c>,
    axis: &AxisInfoAnalysis<'c>,
    layouts: &Layouts<'c>,
    target: &TargetDesc,
) -> Option<Attr<'c>> {
    let pointers = copy.src().ty().as_tensor()?;
    let buffer = MemDescType::cast(copy.result().ty())?;
    if !target.primitives.copies_anywhere() {
        let copies = Copies { axis, warps: layouts.machine.num_warps, target };
        return copies.pointers(copy.op(), buffer).filter(|layout| Some(*layout) != pointers.encoding());
    }
    let facts = AccessFacts::of(copy.op(), axis)?;
    let addresses = facts.addresses(u64::MAX);
    // Elements of which no neighbours are known may share addresses, which counts for nothing here.
    let has_rows = facts.usual > 1;
    let layout = layout_alone(copy.op(), facts, layouts).ok()?;
    let bits = word_bits(buffer.element()).ok()?;
    let cost = |ty: TensorType<'c>| {
        let plan = buffer_plans::async_copy(ty.ty(), buffer, &addresses, target).ok()?;
        let registers = to_linear_layout(ty.encoding()?, &ty.shape()).ok()?;
        let read = VectorPlan::for_addresses(&registers, bits, &addresses, target).ok()?;
        let sectors = read.accesses.len() as f64 * read.usual_sectors();
        Some((plan.access.accesses.len(), plan.cycles(target) + SECTOR_CYCLES * sectors))
    };
    let (own, other) = (cost(pointers)?, cost(with_layout(pointers, layout)?.as_tensor()?)?);
    let is_faster = other.0 == own.0 && has_rows && FASTER * other.1 < own.1;
    let is_better = other.0 < own.0 || is_faster;
    is_better.then_some(layout)
}

/// Notes on the function of a loop for how many CTAs it was scheduled: the fewest of all its loops.
fn note_ctas(op: Op<'_>, ctas: u64) {
    let Some(function) = enclosing_function(op) else { return };
    let known = function.attr(SCHEDULED_CTAS).and_then(Attr::as_int).unwrap_or(i64::MAX);
    let ctas = i64::try_from(ctas).map_or(known, |ctas| ctas.min(known));
    function.set_attr(SCHEDULED_CTAS, Attr::int(op.context(), 32, ctas));
}

/// The copies to shared memory that run beside the program.
fn copies(module: Op<'_>) -> Vec<AsyncCopyGlobalToLocalOp<'_>> {
    let mut copies = Vec::new();
    module.walk(&mut |op| {
        copies.extend(AsyncCopyGlobalToLocalOp::cast(op));
        Walk::Advance
    });
    copies
}

/// Makes loads and stores of copies that cannot run beside the program after all: in a loop less may be known of
/// addresses that are carried from iteration to iteration.
fn undo_copies(module: Op<'_>, warps: u64, target: &TargetDesc) -> PassResult {
    let axis = AxisInfoAnalysis::new(module);
    for copy in copies(module) {
        let possible = match MemDescType::cast(copy.result().ty()) {
            Some(buffer) if !target.primitives.copies_anywhere() => {
                Copies { axis: &axis, warps, target }.pointers(copy.op(), buffer).is_some()
            }
            _ => plans::async_copy(copy, &axis, target).is_ok(),
        };
        if !possible {
            undo(copy)?;
        }
    }
    Ok(())
}

fn undo(copy: AsyncCopyGlobalToLocalOp<'_>) -> PassResult {
    let op = copy.op();
    let no_tensor = || internal(op, "copies what is no tensor");
    let pointers = copy.src().ty().as_tensor().ok_or_else(no_tensor)?;
    let element = pointee(pointers.element()).ok_or_else(no_tensor)?;
    let ty = pointers.with_element(element).ok_or_else(no_tensor)?.ty();
    let mut rewriter = IrRewriter::new(op.context());
    rewriter.set_before(op);
    let load = LoadOp::build(op.loc(), copy.src())
        .mask(copy.mask())
        .other(copy.other())
        .cache_policy(copy.cache_policy())
        .is_volatile(copy.is_volatile())
        .results(&[ty])
        .insert(&mut rewriter)?;
    LocalStoreOp::build(op.loc(), load.result(), copy.result()).insert(&mut rewriter)?;
    if op.result(0).is_unused() {
        op.erase();
    }
    Ok(())
}
