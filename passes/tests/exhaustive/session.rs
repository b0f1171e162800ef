//! Runs the engine and the search on a function, and has both results counted by the objective.

use crate::function::Function;
use crate::generate::machine;
use crate::search::{Choice, Found, optimum, replay};
use crate::space::{Space, operations};
use crate::text::{Text, write};
use mlir_host::driver::{Registry, Source};
use mlir_host::ir::{Block, Context, Op, Region, Value, Walk};
use mlir_sys::*;
use ttopt_passes::machine::Layouts;
use ttopt_passes::objective::{Objective, Total, spills, weight};

const ENGINE: &str = "builtin.module(tritongpu-remove-layout-conversions)";

/// What came of a function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// What the engine made costs so many times the optimum; the conversions in both.
    Ratio(f64, [usize; 2]),
    /// It costs less than all that is searched.
    Below,
    /// There is too much to search, or registers are spilled, which the search does not follow.
    LeftOut,
}

/// A context with our dialects and passes.
pub struct Session(MlirContext);

/// A module and what it costs.
struct Measured {
    module: MlirModule,
    total: Total,
    spilled: f64,
}

impl Drop for Measured {
    fn drop(&mut self) {
        // SAFETY: it was made by `parse`.
        unsafe { mlirModuleDestroy(self.module) }
    }
}

fn op<'c>(module: &MlirModule) -> Op<'c> {
    // SAFETY: the module is valid for as long as its operations are used.
    unsafe { Op::from_raw(mlirModuleGetOperation(*module)) }.expect("a module")
}

fn functions(module: Op<'_>) -> impl Iterator<Item = Op<'_>> {
    module.regions().flat_map(Region::blocks).flat_map(Block::ops)
}

fn conversions(module: Op<'_>) -> usize {
    let mut count = 0;
    module.walk(&mut |op| {
        count += usize::from(op.name() == "ttg.convert_layout");
        Walk::Advance
    });
    count
}

/// All that is known of a function.
struct Comparison {
    before: Text,
    engine: Measured,
    best: Option<Measured>,
    outcome: Outcome,
}

impl Session {
    /// Nothing in it yet.
    pub fn new() -> Session {
        let mut registry = Registry::new();
        registry.add_codegen();
        registry.add(&ttopt_dialect::DIALECTS);
        ttopt_passes::PASSES.iter().for_each(|pass| pass.register());
        // SAFETY: the registry is valid; the context is destroyed on drop.
        let session = Session(unsafe { mlirContextCreateWithRegistry(registry.raw(), false) });
        assert!(["tt", "ttg"].into_iter().all(|name| session.context().load(name)));
        session
    }

    /// The context.
    pub fn context(&self) -> Context<'_> {
        // SAFETY: it lives as long as this.
        unsafe { Context::from_raw(self.0) }
    }

    fn parse(&self, text: &str) -> MlirModule {
        // SAFETY: the context outlives the source.
        let source = unsafe { Source::new(self.0, text, "function") }.expect("text");
        source.parse().unwrap_or_else(|| panic!("not valid:\n{text}"))
    }

    fn run_engine(&self, module: MlirModule) {
        // SAFETY: all handles are valid; the manager is destroyed.
        unsafe {
            let manager = mlirPassManagerCreate(self.0);
            mlirPassManagerEnableVerifier(manager, true);
            let reference = MlirStringRef { data: ENGINE.as_ptr().cast(), length: ENGINE.len() };
            let nested = mlirPassManagerGetAsOpPassManager(manager);
            let parsed = mlirParsePassPipeline(nested, reference, None, std::ptr::null_mut());
            let ok = parsed.value != 0
                && mlirPassManagerRunOnOp(manager, mlirModuleGetOperation(module)).value != 0;
            mlirPassManagerDestroy(manager);
            assert!(ok, "the engine fails");
        }
    }

    /// What a module costs as it is.
    fn measure<'c>(&'c self, module: MlirModule, layouts: &Layouts<'c>) -> Measured {
        self.measure_by(&Objective::new, module, layouts)
    }

    fn measure_by<'c>(
        &'c self,
        objective: &dyn Fn(Op<'c>) -> Objective<'c>,
        module: MlirModule,
        layouts: &Layouts<'c>,
    ) -> Measured {
        let op: Op<'c> = op(&module);
        assert!(op.verify(), "not valid: {op}");
        let function = functions(op).next().expect("a function");
        let total = objective(op).of_function(function, layouts);
        Measured { module, total, spilled: spills(function, layouts) }
    }

    /// All that can be chosen for a function, with what it costs, and its text as coalescing would leave it.
    pub fn space<'f, 'c: 'f>(
        &'c self,
        function: &'f Function,
        layouts: &'f Layouts<'c>,
    ) -> Option<(Space<'f, 'c>, Text)> {
        let mut space = Space::new(function, layouts)?;
        let first: Choice = (0..function.nodes.len()).map(|id| vec![space.default_way(id)]).collect();
        let (state, _) = replay(&space, &first)?;
        let before = write(&space, &first, &state);
        let measured = self.measure(self.parse(&before.text), layouts);
        let module: Op<'c> = op(&measured.module);
        let objective = Objective::one_by_one(module);
        space.measure(&operations(module, &before.lines, function.nodes.len()), &objective);
        Some((space, before))
    }

    fn comparison<'f, 'c: 'f>(
        &'c self,
        function: &'f Function,
        layouts: &'f Layouts<'c>,
    ) -> Option<Comparison> {
        let (space, before) = self.space(function, layouts)?;
        let module = self.parse(&before.text);
        self.run_engine(module);
        let engine = self.measure(module, layouts);
        assert_eq!(engine.total.unplanned, 0, "the engine leaves what no plan does");
        let cost = engine.total.cycles + engine.spilled;
        let (choice, cycles) = match optimum(&space, cost * (1.0 + 1e-9)) {
            Found::Optimum(choice, cycles) => (choice, cycles),
            found => {
                let outcome = if matches!(found, Found::Nothing) { Outcome::Below } else { Outcome::LeftOut };
                return Some(Comparison { before, engine, best: None, outcome });
            }
        };
        let (state, _) = replay(&space, &choice).expect("what was found");
        let text = write(&space, &choice, &state);
        // The search counts conversions of what reductions give by themselves, so some functions are below what it finds.
        let best = self.measure_by(&Objective::one_by_one, self.parse(&text.text), layouts);
        let differs = (best.total.cycles - cycles).abs() > 1e-6 * cycles || best.total.unplanned > 0;
        assert!(!differs, "searched as {cycles}, but {:?}:\n{}", best.total, text.text);
        let counts = [&engine, &best].map(|measured| conversions(op(&measured.module)));
        let outcome = match best.spilled > 0.0 {
            true => Outcome::LeftOut,
            false => Outcome::Ratio((cost / cycles).max(1.0), counts),
        };
        Some(Comparison { before, engine, best: Some(best), outcome })
    }

    /// What the engine makes of a function beside the best.
    pub fn compare(&self, function: &Function) -> Outcome {
        let layouts = Layouts::new(self.context(), machine(function));
        self.comparison(function, &layouts).map_or(Outcome::LeftOut, |comparison| comparison.outcome)
    }

    /// Prints a function before and after the engine, and the best of it.
    pub fn explain(&self, seed: u64, function: &Function) {
        let layouts = Layouts::new(self.context(), machine(function));
        let Some(comparison) = self.comparison(function, &layouts) else { return };
        println!("==== seed {seed}: {:?}, {} warps, {}", comparison.outcome, function.warps, function.target);
        let before = self.measure(self.parse(&comparison.before.text), &layouts);
        let mut names = Vec::new();
        println!("{}", op(&before.module));
        self.print("before", &before, &layouts, &mut names);
        self.print("engine", &comparison.engine, &layouts, &mut names);
        println!("{}", op(&comparison.engine.module));
        if let Some(best) = &comparison.best {
            self.print("optimum", best, &layouts, &mut names);
            println!("{}", op(&best.module));
        }
    }

    /// What each operation of a module costs, with short names for layouts.
    fn print<'c>(&'c self, title: &str, measured: &Measured, layouts: &Layouts<'c>, names: &mut Vec<String>) {
        let module: Op<'c> = op(&measured.module);
        let objective = Objective::new(module);
        println!("---- {title}: {} cycles, {} of spills", measured.total.cycles, measured.spilled);
        let mut name = |layout: String| {
            let known = names.iter().position(|known| *known == layout);
            let n = known.unwrap_or_else(|| {
                println!("      #{} = {layout}", names.len());
                names.push(layout);
                names.len() - 1
            });
            format!("#{n}")
        };
        let mut numbers: Vec<Value<'c>> = Vec::new();
        let mut value = |value: Value<'c>| {
            let n = numbers.iter().position(|known| *known == value).unwrap_or_else(|| {
                numbers.push(value);
                numbers.len() - 1
            });
            let ty = value.ty().as_tensor()?;
            let layout = ty.encoding().map_or(String::new(), |layout| name(layout.to_string()));
            Some(format!("%{n}:{}{layout}", ty.element()))
        };
        module.walk(&mut |op| {
            let cycles = objective.cycles(op, layouts).unwrap_or(f64::INFINITY) * weight(op);
            let results: Vec<String> = op.results().filter_map(&mut value).collect();
            let operands: Vec<String> = op.operands().filter_map(&mut value).collect();
            let shape = op.results().next().and_then(|result| Some(result.ty().as_tensor()?.shape()));
            if cycles > 0.0 || op.num_regions() > 0 || is_shown(op) {
                let shape = shape.unwrap_or_default();
                println!(
                    "{cycles:9.1} {} = {} {} {shape:?}",
                    results.join(" "),
                    op.name(),
                    operands.join(" ")
                );
            }
            Walk::Advance
        });
    }
}

/// Whether `op` is shown though it costs nothing.
fn is_shown(op: Op<'_>) -> bool {
    ["scf.yield", "tt.trans", "tt.reshape", "tt.dot", "tt.broadcast"].contains(&op.name())
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: made by `new`.
        unsafe { mlirContextDestroy(self.0) }
    }
}
