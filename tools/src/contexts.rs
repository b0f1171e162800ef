//! MLIR contexts that serve one compilation after another. Loading dialects takes a third of the time of a small kernel.

use mlir_host::driver::Pipelines;
use std::sync::{Mutex, Once, TryLockError};

/// A context, which one thread uses at a time, and what it has been through.
struct Warm {
    // They go before their context.
    pipelines: Pipelines,
    context: melior::Context,
    compilations: usize,
    bytes: usize,
}

// SAFETY: the context has no threads of its own, keeps nothing by thread, and whoever takes it and its pipelines out of
// `Contexts` is alone with them.
unsafe impl Send for Warm {}

/// What a context serves for at most: attributes, types and locations stay until it goes.
const MOST_COMPILATIONS: usize = 64;
/// Bytes of input that it serves for at most, once it has served.
const MOST_BYTES: usize = 1 << 20;
/// Contexts that nobody uses; further ones are let go.
const MOST_SPARE: usize = 16;

/// Contexts that nobody uses at the moment. A context holds values that are equal wherever they are made, so what is compiled
/// in it does not depend on what was before; but for structures of LLVM with a name, whose bodies a context knows once only.
#[derive(Default)]
pub(crate) struct Contexts(Mutex<Vec<Warm>>);

impl std::fmt::Debug for Contexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contexts").finish_non_exhaustive()
    }
}

impl Contexts {
    /// Does `work`, on `inputs` and nothing else, in a context that nobody else uses meanwhile, by pipelines that may have run in
    /// it before. What a failure or a panic leaves is not used again.
    pub(crate) fn with<T, E>(
        &self,
        inputs: &[&[u8]],
        work: impl FnOnce(&melior::Context, &Pipelines) -> Result<T, E>,
    ) -> Result<T, E> {
        let fresh = || {
            let context = make();
            // SAFETY: both are moved together, and the pipelines are dropped first.
            let pipelines = unsafe { Pipelines::new(context.to_raw()) };
            Warm { pipelines, context, compilations: 0, bytes: 0 }
        };
        let mut warm = self.all(Vec::pop).flatten().unwrap_or_else(fresh);
        let made = work(&warm.context, &warm.pipelines)?;
        warm.compilations += 1;
        warm.bytes += inputs.iter().map(|input| input.len()).sum::<usize>();
        let is_used_up = warm.compilations >= MOST_COMPILATIONS || warm.bytes >= MOST_BYTES;
        if !is_used_up && !inputs.iter().any(|input| names_a_structure(input)) {
            self.all(|all| {
                if all.len() < MOST_SPARE {
                    all.push(warm);
                }
            });
        }
        Ok(made)
    }

    /// Does something with all of them, unless another thread does, even one that a fork left behind in another process.
    fn all<T>(&self, work: impl FnOnce(&mut Vec<Warm>) -> T) -> Option<T> {
        match self.0.try_lock() {
            Ok(mut all) => Some(work(&mut all)),
            Err(TryLockError::Poisoned(poisoned)) => Some(work(&mut poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Whether a module, text or bytecode, may have a structure of LLVM with a name: `!llvm.struct<"name", …>`.
fn names_a_structure(input: &[u8]) -> bool {
    let is_named = |at: &[u8]| {
        at.strip_prefix(b"struct<").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"\""))
    };
    let starts = input.iter().enumerate().filter(|(_, byte)| **byte == b's').map(|(at, _)| at);
    starts.map(|at| &input[at..]).any(is_named)
}

/// A context with all dialects that kernels use, none of them loaded.
fn make() -> melior::Context {
    // MLIR's registry of passes is one for the process, and has no lock.
    static PASSES: Once = Once::new();
    PASSES.call_once(|| {
        crate::passes().iter().for_each(|pass| pass.register());
        mlir_host::driver::register_transform_passes();
    });
    let mut registry = mlir_host::driver::Registry::new();
    registry.add_codegen();
    registry.add(&ttopt_dialect::DIALECTS);
    registry.add(&[&ttopt_dialect::legacy::GPU]);
    let context = melior::Context::new();
    // SAFETY: both handles are valid; the context copies the registry.
    unsafe { mlir_sys::mlirContextAppendDialectRegistry(context.to_raw(), registry.raw()) };
    // A pass manager on one module of one kernel gains nothing from threads.
    context.enable_multi_threading(false);
    // Errors name a line of the source; the module as it is by then would bury it.
    // SAFETY: the context is valid.
    unsafe { mlir_host::driver::print_op_on_diagnostic(context.to_raw(), false) };
    context
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which contexts `count` compilations of `input` take, those that fail among them.
    fn served(contexts: &Contexts, input: &[u8], fails: bool, count: usize) -> Vec<usize> {
        let serve = |_| {
            let mut raw = 0;
            let made = contexts.with(&[input], |context, _| {
                raw = context.to_raw().ptr as usize;
                if fails { Err(()) } else { Ok(()) }
            });
            assert_eq!(made.is_err(), fails);
            raw
        };
        (0..count).map(serve).collect()
    }

    fn spare(contexts: &Contexts) -> usize {
        contexts.all(|all| all.len()).expect("nobody else is here")
    }

    #[test]
    fn a_context_serves_until_it_is_used_up() {
        let contexts = Contexts::default();
        let first = served(&contexts, b"module {}", false, MOST_COMPILATIONS - 1);
        assert!(first.iter().all(|raw| *raw == first[0]) && spare(&contexts) == 1);
        assert_eq!(served(&contexts, b"module {}", false, 1), [first[0]]);
        assert_eq!(spare(&contexts), 0);
        served(&contexts, &vec![b' '; MOST_BYTES - 1], false, 1);
        assert_eq!(spare(&contexts), 1);
        served(&contexts, b" ", false, 1);
        assert_eq!(spare(&contexts), 0);
    }

    #[test]
    fn what_failed_or_panicked_is_not_used_again() {
        let contexts = Contexts::default();
        served(&contexts, b"", true, 2);
        assert_eq!(spare(&contexts), 0);
        served(&contexts, b"", false, 1);
        let panics = std::panic::AssertUnwindSafe(|| {
            let _: Result<(), ()> = contexts.with(&[], |_, _| panic!("for this test"));
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(spare(&contexts), 0);
    }

    #[test]
    fn structures_with_names_leave_no_context() {
        for (input, kept) in [
            (&b"%0 : !llvm.struct<(f32, i32)>"[..], 1),
            (b"%0 : !llvm.struct<\"pair\", (f32)>", 0),
            (b"!llvm.struct< \"pair\", (f32)>", 0),
            (b"module attributes {a = struct}", 1),
        ] {
            let contexts = Contexts::default();
            served(&contexts, input, false, 1);
            assert_eq!(spare(&contexts), kept, "{}", String::from_utf8_lossy(input));
        }
    }

    #[test]
    fn pipelines_run_again_in_their_context_and_only_there() {
        let (contexts, others) = (Contexts::default(), Contexts::default());
        let run = |pipelines: &Pipelines, module: &melior::ir::Module<'_>, pipeline: &str| {
            let op = mlir_host::ir::Op::from(module);
            pipelines.run(pipeline, op, true)
        };
        for _ in 0..2 {
            let ran: Result<(), String> = contexts.with(&[], |context, pipelines| {
                let module = melior::ir::Module::parse(context, "module {}").ok_or("not parsed")?;
                assert_eq!(run(pipelines, &module, "builtin.module(canonicalize,cse)"), Ok(true));
                let error = run(pipelines, &module, "builtin.module(no-such-pass)").expect_err("no pass");
                assert!(error.contains("no-such-pass"), "{error}");
                others.with(&[], |_, elsewhere| {
                    run(elsewhere, &module, "builtin.module(cse)").expect_err("of another context");
                    Ok(())
                })
            });
            assert_eq!(ran, Ok(()));
        }
    }

    #[test]
    fn whoever_holds_the_lock_keeps_nobody_waiting() {
        let contexts = Contexts::default();
        let held = contexts.0.lock();
        served(&contexts, b"", false, 1);
        drop(held);
        assert_eq!(spare(&contexts), 0);
    }
}
