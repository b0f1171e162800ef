//! Diagnostics in C's terms.

use std::ffi::{CString, c_char, c_void};
use ttopt_tools::diagnostics::{Diagnostic, Severity};

/// As in the header, field by field.
#[repr(C)]
#[allow(missing_docs)]
pub struct TtoptDiagnostic {
    pub size: usize,
    pub message: *const c_char,
    pub file: *const c_char,
    pub notes: *const TtoptDiagnostic,
    pub num_notes: usize,
    pub severity: i32,
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
}

/// As in the header.
pub type TtoptDiagnosticCallback = unsafe extern "C" fn(*const TtoptDiagnostic, *mut c_void);

/// What the structures point to.
struct Owned {
    message: CString,
    file: CString,
    notes: Vec<Owned>,
    raw_notes: Vec<TtoptDiagnostic>,
}

impl Owned {
    fn new(diagnostic: &Diagnostic) -> Self {
        let text = |text: &str| CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
        let notes: Vec<Self> = diagnostic.notes.iter().map(Self::new).collect();
        let raw_notes = notes.iter().zip(&diagnostic.notes).map(|(owned, note)| owned.raw(note)).collect();
        Self { message: text(&diagnostic.message), file: text(&diagnostic.range.file), notes, raw_notes }
    }

    fn raw(&self, diagnostic: &Diagnostic) -> TtoptDiagnostic {
        debug_assert_eq!(self.notes.len(), self.raw_notes.len());
        TtoptDiagnostic {
            size: size_of::<TtoptDiagnostic>(),
            message: self.message.as_ptr(),
            file: self.file.as_ptr(),
            notes: self.raw_notes.as_ptr(),
            num_notes: self.raw_notes.len(),
            severity: match diagnostic.severity {
                Severity::Error => 0,
                Severity::Warning => 1,
                Severity::Note => 2,
                Severity::Remark => 3,
            },
            line: diagnostic.range.line,
            column: diagnostic.range.column,
            end_line: diagnostic.range.end_line,
            end_column: diagnostic.range.end_column,
        }
    }
}

/// Calls back, if anybody wants to know.
///
/// # Safety
/// The callback may be called with the data.
pub(crate) unsafe fn tell(
    diagnostics: &[Diagnostic],
    callback: Option<TtoptDiagnosticCallback>,
    user_data: *mut c_void,
) {
    let Some(callback) = callback else { return };
    for diagnostic in diagnostics {
        let owned = Owned::new(diagnostic);
        let raw = owned.raw(diagnostic);
        // SAFETY: by the caller; what is pointed to lives until after the call.
        unsafe { callback(&raw const raw, user_data) }
    }
}
