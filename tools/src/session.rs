//! Compiling from any thread of somebody else's program: nothing is printed, nothing is read from the environment, no
//! panic gets out, and nothing is left behind.
//!
//! ```
//! use ttopt_tools::compile::{Options, Stage};
//! use ttopt_tools::session::{Cancellation, Session};
//! let kernel = "tt.func public @k(%p: !tt.ptr<i32>) {\n  %c = arith.constant 7 : i32\n  \
//!               tt.store %p, %c : !tt.ptr<i32>\n  tt.return\n}";
//! let mut options = Options::new(Stage::Ptx);
//! options.keep = true;
//! let outcome = Session::new().compile(kernel.as_bytes(), "k.ttir", &options, &Cancellation::default());
//! let compiled = outcome.result.expect("it compiles");
//! assert!(compiled.output.windows(4).any(|word| word == b".reg"));
//! assert!(compiled.artifacts.ttgir.is_some());
//! ```

use crate::compile::{Cancelled, Compiled, Control, Options, Reported, compile_among};
use crate::contexts::Contexts;
use crate::diagnostics::{Diagnostic, Severity};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Compiles, from any number of threads at once. What a compilation makes does not depend on those before it or beside
/// it: each is alone in its context. Later ones use contexts again, which saves a third of the time of small kernels; keep a
/// session for all that you compile.
#[derive(Debug, Default)]
pub struct Session {
    contexts: Contexts,
    compiled: AtomicU64,
    failed: AtomicU64,
}

/// Lets another thread stop a compilation, between passes and stages.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Stops what uses it, now or later.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody did.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The input or the options are not accepted; the diagnostics say why.
    #[error("compilation failed")]
    Diagnosed,
    /// The caller stopped it.
    #[error("compilation was cancelled")]
    Cancelled,
    /// A bug of ours; the diagnostics say where.
    #[error("internal error")]
    Internal,
}

/// What came of a compilation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// What was made.
    pub result: Result<Compiled, Failure>,
    /// What there was to say, in order: errors, and remarks where the options ask for explanations.
    pub diagnostics: Vec<Diagnostic>,
}

/// Address space for the stack of a compilation, which takes memory only as it is used: MLIR's parser recurses as its
/// input nests. Where there is less, less must do.
const STACKS: [usize; 3] = [1 << 30, 1 << 27, 1 << 23];

impl Session {
    /// A new one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compiles a module, text or bytecode; `name` is its file name in diagnostics.
    pub fn compile(
        &self,
        input: &[u8],
        name: &str,
        options: &Options,
        cancellation: &Cancellation,
    ) -> Outcome {
        let work = || compile_here(&self.contexts, input, name, options, cancellation);
        let spawned = std::thread::scope(|scope| {
            let start = |stack| {
                let thread = std::thread::Builder::new().name("ttopt".to_owned()).stack_size(stack);
                thread.spawn_scoped(scope, work).ok()
            };
            STACKS.into_iter().find_map(start).map(|thread| thread.join())
        });
        let outcome = match spawned {
            Some(Ok(outcome)) => outcome,
            Some(Err(payload)) => Outcome::internal(text_of(&*payload)),
            None => Outcome::internal("there is no address space for a stack".to_owned()),
        };
        let counter = if outcome.result.is_ok() { &self.compiled } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        outcome
    }

    /// How many compilations succeeded, and how many did not.
    pub fn counts(&self) -> (u64, u64) {
        (self.compiled.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }
}

impl Outcome {
    fn internal(what: String) -> Self {
        let message = format!("internal error (this is a bug): {what}");
        Self { result: Err(Failure::Internal), diagnostics: vec![Diagnostic::error(message)] }
    }

    /// The errors, one a line; what there is to say where there is none.
    pub fn message(&self) -> String {
        let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
        let errors: Vec<String> = self.diagnostics.iter().filter(is_error).map(ToString::to_string).collect();
        match (&self.result, errors.is_empty()) {
            (Err(failure), true) => failure.to_string(),
            _ => errors.join("\n"),
        }
    }
}

/// What a panic said.
pub fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_owned())
}

fn compile_here(
    contexts: &Contexts,
    input: &[u8],
    name: &str,
    options: &Options,
    cancellation: &Cancellation,
) -> Outcome {
    let mut diagnostics = Vec::new();
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut sink = |diagnostic| diagnostics.push(diagnostic);
        let is_cancelled = || cancellation.is_cancelled();
        let control = Control { diagnostics: Some(&mut sink), is_cancelled: Some(&is_cancelled) };
        compile_among(contexts, input, name, options, control)
    }));
    let result = match result {
        Ok(Ok(compiled)) => Ok(compiled),
        Ok(Err(err)) if err.is::<Cancelled>() => Err(Failure::Cancelled),
        Ok(Err(err)) => {
            if !err.is::<Reported>() {
                diagnostics.push(Diagnostic::error(format!("{err:#}")));
            }
            Err(Failure::Diagnosed)
        }
        Err(payload) => {
            diagnostics
                .push(Diagnostic::error(format!("internal error (this is a bug): {}", text_of(&*payload))));
            Err(Failure::Internal)
        }
    };
    Outcome { result, diagnostics }
}
