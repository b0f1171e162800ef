//! What MLIR has to say, as values: for callers that must not find it on stderr.

use mlir_sys::{MlirDiagnostic, MlirDiagnosticHandlerID, MlirLocation, MlirLogicalResult, MlirStringRef};
use std::ffi::{c_uint, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Nothing was compiled.
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
        let mut message = String::new();
        // SAFETY: by the caller; the string outlives the call, notes are counted.
        unsafe {
            mlir_sys::mlirDiagnosticPrint(raw, Some(append), (&raw mut message).cast());
            let severity = match mlir_sys::mlirDiagnosticGetSeverity(raw) {
                mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticError => Severity::Error,
                mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticWarning => Severity::Warning,
                mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticNote => Severity::Note,
                _ => Severity::Remark,
            };
            let range = range(mlir_sys::mlirDiagnosticGetLocation(raw)).unwrap_or_default();
            let notes = (0..mlir_sys::mlirDiagnosticGetNumNotes(raw))
                .map(|i| Self::read(mlir_sys::mlirDiagnosticGetNote(raw, i)))
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

/// # Safety
/// `data` is a `String` that nobody else uses.
unsafe extern "C" fn append(text: MlirStringRef, data: *mut c_void) {
    // SAFETY: by the caller; MLIR passes a valid range.
    let (out, bytes) = unsafe {
        let bytes = match text.length {
            0 => &[][..],
            length => std::slice::from_raw_parts(text.data.cast::<u8>(), length),
        };
        (&mut *data.cast::<String>(), bytes)
    };
    out.push_str(&String::from_utf8_lossy(bytes));
}

/// The first place in a file that a location knows: of a call the callee's, of a fusion the first that has one.
///
/// # Safety
/// The location is valid.
unsafe fn range(at: MlirLocation) -> Option<Range> {
    let number = |n: i32| u32::try_from(n).unwrap_or(0);
    // SAFETY: by the caller; each form is asked for before its parts are.
    unsafe {
        if mlir_sys::mlirLocationIsAFileLineColRange(at) {
            let name = mlir_sys::mlirIdentifierStr(mlir_sys::mlirLocationFileLineColRangeGetFilename(at));
            let mut file = String::new();
            append(name, (&raw mut file).cast());
            return Some(Range {
                file,
                line: number(mlir_sys::mlirLocationFileLineColRangeGetStartLine(at)),
                column: number(mlir_sys::mlirLocationFileLineColRangeGetStartColumn(at)),
                end_line: number(mlir_sys::mlirLocationFileLineColRangeGetEndLine(at)),
                end_column: number(mlir_sys::mlirLocationFileLineColRangeGetEndColumn(at)),
            });
        }
        if mlir_sys::mlirLocationIsAName(at) {
            return range(mlir_sys::mlirLocationNameGetChildLoc(at));
        }
        if mlir_sys::mlirLocationIsACallSite(at) {
            return range(mlir_sys::mlirLocationCallSiteGetCallee(at));
        }
        if mlir_sys::mlirLocationIsAFused(at) {
            let count: c_uint = mlir_sys::mlirLocationFusedGetNumLocations(at);
            let mut parts = vec![MlirLocation { ptr: std::ptr::null() }; count as usize];
            mlir_sys::mlirLocationFusedGetLocations(at, parts.as_mut_ptr());
            return parts.into_iter().find_map(|part| range(part));
        }
    }
    None
}

/// Takes diagnostics.
pub type Sink<'a> = dyn FnMut(Diagnostic) + 'a;

/// While it lives, diagnostics of a context go to a sink, and to nobody else.
pub(crate) struct Handler<'a, 's> {
    context: &'a melior::Context,
    id: MlirDiagnosticHandlerID,
    sink: *mut &'a mut Sink<'s>,
    _borrowed: PhantomData<&'a mut Sink<'s>>,
}

impl<'a, 's> Handler<'a, 's> {
    pub(crate) fn attach(context: &'a melior::Context, sink: &'a mut Sink<'s>) -> Self {
        let sink = Box::into_raw(Box::new(sink));
        // SAFETY: the sink is freed after the handler is detached.
        let id = unsafe {
            mlir_sys::mlirContextAttachDiagnosticHandler(context.to_raw(), Some(take), sink.cast(), None)
        };
        Self { context, id, sink, _borrowed: PhantomData }
    }
}

impl Drop for Handler<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: attached by `attach`; nobody uses the sink after that.
        unsafe {
            mlir_sys::mlirContextDetachDiagnosticHandler(self.context.to_raw(), self.id);
            drop(Box::from_raw(self.sink));
        }
    }
}

/// # Safety
/// `data` is the sink of a [`Handler`]. The context has no threads of its own, so nobody else uses it.
unsafe extern "C" fn take(raw: MlirDiagnostic, data: *mut c_void) -> MlirLogicalResult {
    // A sink that panics must not unwind through MLIR.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: by the caller.
        unsafe { (*data.cast::<&mut Sink<'_>>())(Diagnostic::read(raw)) }
    }));
    MlirLogicalResult { value: 1 }
}
