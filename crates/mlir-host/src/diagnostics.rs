//! What MLIR has to say, as values: for callers that must not find it on stderr.
//!
//! A [`Handler`] takes the diagnostics of a context as long as it lives, [`during`] while some work is done. Of several the one
//! that was attached last is asked.

use crate::ffi;
use crate::ir::Context;
use mlir_sys::*;
use std::cell::RefCell;
use std::ffi::{c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// What was asked for failed.
    Error,
    /// It may not be what was meant.
    Warning,
    /// Belongs to the diagnostic that it comes with.
    Note,
    /// What was chosen, and why.
    Remark,
}

/// A place in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Range {
    /// As the input was called, or as its locations say. Empty where nobody knows.
    pub file: String,
    /// From 1; 0 where nobody knows.
    pub line: u32,
    /// From 1; 0 where nobody knows.
    pub column: u32,
    /// The last line.
    pub end_line: u32,
    /// Behind the last character.
    pub end_column: u32,
}

/// A message at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What it says.
    pub message: String,
    /// Where.
    pub range: Range,
    /// What belongs to it.
    pub notes: Vec<Diagnostic>,
}

impl Diagnostic {
    /// One that is about no place.
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            range: Range::default(),
            notes: Vec::new(),
        }
    }

    /// # Safety
    /// The diagnostic is valid.
    unsafe fn read(raw: MlirDiagnostic) -> Self {
        // SAFETY: by the caller; notes are counted.
        unsafe {
            let message = crate::ir::print(|callback, out| mlirDiagnosticPrint(raw, callback, out));
            let severity = match mlirDiagnosticGetSeverity(raw) {
                severity if severity == MlirDiagnosticSeverity_MlirDiagnosticError => Severity::Error,
                severity if severity == MlirDiagnosticSeverity_MlirDiagnosticWarning => Severity::Warning,
                severity if severity == MlirDiagnosticSeverity_MlirDiagnosticNote => Severity::Note,
                _ => Severity::Remark,
            };
            let range = range(mlirDiagnosticGetLocation(raw)).unwrap_or_default();
            let notes = (0..mlirDiagnosticGetNumNotes(raw))
                .map(|i| Self::read(mlirDiagnosticGetNote(raw, i)))
                .collect();
            Self { severity, message, range, notes }
        }
    }
}

/// As `file:line:column: error: message`, with its notes on lines of their own.
impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Range { file, line, column, .. } = &self.range;
        if !file.is_empty() {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
            Severity::Remark => "remark",
        };
        write!(f, "{severity}: {}", self.message)?;
        self.notes.iter().try_for_each(|note| write!(f, "\n{note}"))
    }
}

/// The first place in a file that a location knows: of a call the callee's, of a fusion the first that has one.
///
/// # Safety
/// The location is valid.
unsafe fn range(at: MlirLocation) -> Option<Range> {
    let number = |n: i32| u32::try_from(n).unwrap_or(0);
    // SAFETY: by the caller; each form is asked for before its parts are.
    unsafe {
        if mlirLocationIsAFileLineColRange(at) {
            let name = mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(at));
            let file = String::from_utf8_lossy(ffi::bytes_of(name)).into_owned();
            return Some(Range {
                file,
                line: number(mlirLocationFileLineColRangeGetStartLine(at)),
                column: number(mlirLocationFileLineColRangeGetStartColumn(at)),
                end_line: number(mlirLocationFileLineColRangeGetEndLine(at)),
                end_column: number(mlirLocationFileLineColRangeGetEndColumn(at)),
            });
        }
        if mlirLocationIsAName(at) {
            return range(mlirLocationNameGetChildLoc(at));
        }
        if mlirLocationIsACallSite(at) {
            return range(mlirLocationCallSiteGetCallee(at));
        }
        if mlirLocationIsAFused(at) {
            let count: c_uint = mlirLocationFusedGetNumLocations(at);
            let mut parts = vec![MlirLocation { ptr: std::ptr::null() }; count as usize];
            mlirLocationFusedGetLocations(at, parts.as_mut_ptr());
            return parts.into_iter().find_map(|part| range(part));
        }
    }
    None
}

/// Takes diagnostics.
pub type Sink<'a> = dyn FnMut(Diagnostic) + 'a;

/// What a handler hands to MLIR. The engine of a context calls one handler at a time, but a sink may emit again.
type Taker = RefCell<Box<Sink<'static>>>;

/// While it lives, diagnostics of a context go to a sink, and to nobody else.
#[must_use = "diagnostics go to the sink as long as this lives"]
pub struct Handler<'c> {
    context: Context<'c>,
    id: MlirDiagnosticHandlerID,
    taker: *mut Taker,
}

impl<'c> Handler<'c> {
    /// Has `sink` take diagnostics. With threads in the context, it may be called on any of them, on one at a time; what it
    /// emits itself goes to others.
    pub fn attach(context: Context<'c>, sink: impl FnMut(Diagnostic) + Send + 'static) -> Self {
        Self::attach_boxed(context, Box::new(sink))
    }

    /// Has a borrowed sink take them.
    ///
    /// # Safety
    /// The handler is dropped before `sink` is used again, and not forgotten. The context has no threads of its own, or the
    /// sink may be called on any thread.
    pub unsafe fn attach_borrowed<'s>(context: Context<'c>, sink: &'s mut Sink<'s>) -> Self {
        let sink: Box<Sink<'s>> = Box::new(sink);
        // SAFETY: only the lifetime differs; by the caller the handler ends within it.
        let sink = unsafe { std::mem::transmute::<Box<Sink<'s>>, Box<Sink<'static>>>(sink) };
        Self::attach_boxed(context, sink)
    }

    fn attach_boxed(context: Context<'c>, sink: Box<Sink<'static>>) -> Self {
        let taker = Box::into_raw(Box::new(RefCell::new(sink)));
        // SAFETY: the context is valid; the taker is freed after the handler is detached.
        let id = unsafe { mlirContextAttachDiagnosticHandler(context.raw(), Some(take), taker.cast(), None) };
        Self { context, id, taker }
    }
}

impl Drop for Handler<'_> {
    fn drop(&mut self) {
        // SAFETY: attached by `attach_boxed`; nobody uses the taker after that.
        unsafe {
            mlirContextDetachDiagnosticHandler(self.context.raw(), self.id);
            drop(Box::from_raw(self.taker));
        }
    }
}

/// Does `work`; what the context has to say meanwhile goes to `sink`.
///
/// ```
/// use mlir_host::{diagnostics, driver::Registry, owned::OwnedContext};
/// let context = OwnedContext::new(&Registry::new());
/// let mut said = Vec::new();
/// diagnostics::during(context.handle(), |diagnostic| said.push(diagnostic.message), || {
///     context.handle().unknown_loc().warning("it is late");
/// });
/// assert_eq!(said, ["it is late"]);
/// ```
pub fn during<T>(
    context: Context<'_>,
    mut sink: impl FnMut(Diagnostic) + Send,
    work: impl FnOnce() -> T,
) -> T {
    // SAFETY: the handler is dropped when this returns or unwinds, and the sink may be called on any thread.
    let _handler = unsafe { Handler::attach_borrowed(context, &mut sink) };
    work()
}

/// # Safety
/// `data` is the taker of a [`Handler`].
unsafe extern "C" fn take(raw: MlirDiagnostic, data: *mut c_void) -> MlirLogicalResult {
    // A sink that panics must not unwind through MLIR.
    let taken = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: by the caller. MLIR holds a lock, so that only this thread can be in the sink already.
        let Ok(mut sink) = (unsafe { &*data.cast::<Taker>() }).try_borrow_mut() else { return false };
        // SAFETY: MLIR's diagnostic is valid during the call.
        sink(unsafe { Diagnostic::read(raw) });
        true
    }));
    MlirLogicalResult { value: taken.unwrap_or(true).into() }
}
