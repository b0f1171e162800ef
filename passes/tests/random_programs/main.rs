//! Random programs go through the passes to TTGIR: no verifier complains,
//! nothing crashes, what comes out parses again, and the layout engine changes
//! nothing when it runs a second time: neither at once nor on the text that comes
//! out at the end.
//!
//! `TTOPT_PROGRAMS` says how many programs there are, `TTOPT_SEED` with which
//! seed they begin.

mod generate;

use generate::{Kind, program};
use mlir_host::driver::{Registry, Source, on_large_stack, register_transform_passes};
use mlir_host::ir::Op;
use mlir_sys::*;
use ttopt_passes::pipeline::{Options, ttir_to_ttgir};

/// The layout engine.
const ENGINE: &str = "tritongpu-remove-layout-conversions";

struct Session {
    context: MlirContext,
}

impl Session {
    fn new() -> Session {
        let mut registry = Registry::new();
        registry.add_codegen();
        registry.add(&ttopt_dialect::DIALECTS);
        ttopt_passes::PASSES.iter().for_each(|pass| pass.register());
        register_transform_passes();
        // SAFETY: the registry is valid; the context is destroyed on drop.
        Session { context: unsafe { mlirContextCreateWithRegistry(registry.raw(), false) } }
    }

    fn text(module: MlirModule) -> String {
        // SAFETY: the module is valid.
        unsafe { Op::from_raw(mlirModuleGetOperation(module)) }.map_or(String::new(), |op| op.to_string())
    }

    /// Runs passes on a module, one after the other, with the verifier between them.
    fn run(&self, module: MlirModule, passes: &[String]) -> Result<(), String> {
        for pass in passes {
            let text = format!("builtin.module({pass})");
            // SAFETY: all handles are valid; the manager is destroyed.
            unsafe {
                let manager = mlirPassManagerCreate(self.context);
                mlirPassManagerEnableVerifier(manager, true);
                let reference = MlirStringRef { data: text.as_ptr().cast(), length: text.len() };
                let nested = mlirPassManagerGetAsOpPassManager(manager);
                let parsed = mlirParsePassPipeline(nested, reference, None, std::ptr::null_mut());
                let op = mlirModuleGetOperation(module);
                let ok = parsed.value != 0 && mlirPassManagerRunOnOp(manager, op).value != 0;
                mlirPassManagerDestroy(manager);
                if !ok {
                    return Err(format!("after {pass}"));
                }
            }
        }
        Ok(())
    }

    /// A program to TTGIR and what else is promised about it.
    fn check(&self, text: &str, options: &Options) -> Result<(), String> {
        // SAFETY: the context outlives the source.
        let source = unsafe { Source::new(self.context, text, "program") }.map_err(|err| err.to_string())?;
        let module = source.parse().ok_or("the program is not valid")?;
        let result = self.check_module(module, options);
        // SAFETY: the module is owned here.
        unsafe { mlirModuleDestroy(module) }
        result
    }

    fn check_module(&self, module: MlirModule, options: &Options) -> Result<(), String> {
        // As the front end leaves programs.
        self.run(module, &["canonicalize", "cse"].map(str::to_owned))?;
        let passes = ttir_to_ttgir(options);
        let decided = passes.iter().position(|pass| pass.starts_with(ENGINE)).ok_or("no layout engine")? + 1;
        self.run(module, &passes[..decided])?;
        self.changes_nothing(module)?;
        self.run(module, &passes[decided..])?;
        // SAFETY: as above.
        let printed = unsafe { Source::new(self.context, &Self::text(module), "ttgir") };
        let printed = printed.map_err(|err| err.to_string())?;
        let parsed = printed.parse().ok_or("the TTGIR does not parse")?;
        let result = self.changes_nothing(parsed);
        // SAFETY: the module is owned here.
        unsafe { mlirModuleDestroy(parsed) }
        result
    }

    /// The layout engine changes nothing in a module in which it has decided.
    fn changes_nothing(&self, module: MlirModule) -> Result<(), String> {
        let once = Self::text(module);
        self.run(module, &[ENGINE.to_owned()])?;
        let twice = Self::text(module);
        if once == twice {
            Ok(())
        } else {
            Err(format!("another run of {ENGINE} changes\n{once}\ninto\n{twice}"))
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: made by `new`.
        unsafe { mlirContextDestroy(self.context) }
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_programs_reach_ttgir() {
    let (first, count) = (number("TTOPT_SEED", 0), number("TTOPT_PROGRAMS", 300));
    let failed = on_large_stack(|| {
        let mut failed = Vec::new();
        let mut session = Session::new();
        for seed in first..first + count {
            if seed % 256 == 255 {
                // Attributes live as long as their context.
                session = Session::new();
            }
            let target = ["cuda:80", "cuda:90", "hip:gfx942"][seed as usize % 3];
            // Clusters are for the second target.
            let num_ctas = if target == "cuda:90" && seed % 5 == 4 { 2 } else { 1 };
            let num_warps = 1 << (seed / 3 % 4);
            let num_stages = 1 + seed as u32 / 4 % 5;
            let mut options = Options::for_target(target);
            (options.num_warps, options.num_ctas, options.num_stages) = (num_warps, num_ctas, num_stages);
            let kind = if seed % 4 == 3 { Kind::Exact } else { Kind::Any };
            if let Err(reason) = session.check(&program(seed, kind), &options) {
                eprintln!("seed {seed}, {target}, {num_warps} warps, {num_ctas} blocks: {reason}");
                failed.push(seed);
            }
        }
        failed
    });
    assert!(failed.is_empty(), "{} of {count} programs failed: {failed:?}", failed.len());
}
