//! Errors of LLVM's back ends as values: LLVM's own handler prints them and ends the process.

use inkwell::context::{AsContextRef, Context};
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use std::cell::RefCell;
use std::ffi::{CStr, c_void};

/// What went wrong in a context since it is collected.
pub(crate) struct Errors<'c> {
    texts: Box<RefCell<Vec<String>>>,
    context: &'c Context,
}

impl<'c> Errors<'c> {
    /// Collects from now on.
    pub(crate) fn collect(context: &'c Context) -> Self {
        let texts = Box::new(RefCell::new(Vec::new()));
        // SAFETY: the context is valid, the list lives until the handler is taken away.
        unsafe {
            LLVMContextSetDiagnosticHandler(
                context.as_ctx_ref(),
                Some(take),
                (&raw const *texts).cast_mut().cast(),
            )
        };
        Self { texts, context }
    }

    /// The first error.
    pub(crate) fn first(&self) -> Option<String> {
        self.texts.borrow().first().cloned()
    }
}

impl Drop for Errors<'_> {
    fn drop(&mut self) {
        // SAFETY: the context is valid.
        unsafe { LLVMContextSetDiagnosticHandler(self.context.as_ctx_ref(), None, std::ptr::null_mut()) };
    }
}

/// # Safety
/// `data` is the list of an [`Errors`], used by one thread.
extern "C" fn take(info: LLVMDiagnosticInfoRef, data: *mut c_void) {
    // SAFETY: LLVM passes a valid diagnostic, whose description is ours to free.
    unsafe {
        if !matches!(LLVMGetDiagInfoSeverity(info), LLVMDiagnosticSeverity::LLVMDSError) {
            return;
        }
        let text = LLVMGetDiagInfoDescription(info);
        let texts = &*data.cast::<RefCell<Vec<String>>>();
        if let Ok(mut texts) = texts.try_borrow_mut() {
            texts.push(CStr::from_ptr(text).to_string_lossy().into_owned());
        }
        LLVMDisposeMessage(text);
    }
}
