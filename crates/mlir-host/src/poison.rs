//! What a panic in a callback leaves behind.
//!
//! MLIR asks most callbacks questions that have no failure for an answer: what an operation's effects are, how it
//! is printed, whether a pattern applied. A panic there is caught, reported at the operation concerned, answered
//! with what allows MLIR the least, and it *poisons* the context. In a poisoned context
//!
//! * no hosted operation verifies, so that MLIR's pass manager stops behind the pass in which it happened, in
//!   the stock `mlir-opt` too,
//! * a hosted pass in whose course it happened fails,
//! * [`driver::opt_main`](crate::driver::opt_main) ends with an exit code that is not zero, and a program of one's
//!   own asks [`Context::is_poisoned`].
//!
//! An error that a pattern reports poisons the context, too, whatever the pattern answers, and a hosted pass in whose course
//! an error is reported fails: nobody passes over an error that was told.

use crate::ffi;
use crate::ir::{Context, Loc, Op};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Panics caught in this process.
static CAUGHT: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    /// Those on this thread.
    static CAUGHT_HERE: Cell<usize> = const { Cell::new(0) };
    /// Errors reported on this thread.
    static ERRORS_HERE: Cell<usize> = const { Cell::new(0) };
}

/// How many panics of callbacks were caught in this process so far.
pub fn caught() -> usize {
    CAUGHT.load(Ordering::Relaxed)
}

/// How many of them on this thread.
pub(crate) fn caught_here() -> usize {
    CAUGHT_HERE.get()
}

/// How many errors were reported on this thread so far.
pub(crate) fn errors_here() -> usize {
    ERRORS_HERE.get()
}

/// An error was reported.
pub(crate) fn note_error() {
    ERRORS_HERE.set(ERRORS_HERE.get() + 1);
}

impl Context<'_> {
    /// Whether a callback panicked in this context, which was reported: nothing that it holds is to be trusted.
    pub fn is_poisoned(self) -> bool {
        // SAFETY: the context is valid.
        caught() > 0 && unsafe { ffi::mhIsPoisoned(self.raw()) != 0 }
    }

    pub(crate) fn poison(self) {
        CAUGHT.fetch_add(1, Ordering::Relaxed);
        CAUGHT_HERE.set(CAUGHT_HERE.get() + 1);
        // SAFETY: the context is valid.
        unsafe { ffi::mhPoison(self.raw()) }
    }
}

/// What a caught panic said.
pub(crate) fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    format!("internal error (this is a bug): {}", text.unwrap_or_else(|| "panic".to_owned()))
}

/// Runs a callback. After a panic the context is poisoned, and `failed` reports it and answers for the callback.
pub(crate) fn catch<T>(ctx: Context<'_>, f: impl FnOnce() -> T, failed: impl FnOnce(String) -> T) -> T {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        ctx.poison();
        failed(text(&*payload))
    })
}

/// Runs a callback at an operation, where a panic is reported; then the answer is `otherwise`.
pub(crate) fn guard<'c, T>(op: Op<'c>, otherwise: T, f: impl FnOnce() -> T) -> T {
    catch(op.context(), f, |message| {
        op.error(message);
        otherwise
    })
}

/// Runs a callback that is about something at `loc`, such as an attribute.
pub(crate) fn guard_at<'c, T>(loc: Loc<'c>, otherwise: T, f: impl FnOnce() -> T) -> T {
    catch(loc.context(), f, |message| {
        loc.error(&message);
        otherwise
    })
}
