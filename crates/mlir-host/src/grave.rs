//! Operations that were erased.
//!
//! Handles are copied freely, so that an operation may not go away while a pass or a pattern runs that may hold
//! one: it is taken out of the IR, and freed when the outermost callback on its thread returns. No handle lives
//! longer, since callbacks are `for<'c> fn`. Outside of callbacks nothing says when the last handle is gone: there
//! the memory is leaked.

use crate::ffi;
use crate::ir::Op;
use mlir_sys::MlirOperation;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;

thread_local! {
    /// What is converted; null outside of conversions.
    static CONVERTING: Cell<*mut c_void> = const { Cell::new(std::ptr::null_mut()) };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static BURIED: RefCell<Vec<MlirOperation>> = const { RefCell::new(Vec::new()) };
}

/// A callback that may erase operations is running.
pub(crate) struct Erasing(());

impl Erasing {
    pub(crate) fn new() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

impl Drop for Erasing {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() > 0 {
            return;
        }
        // The last first: what was erased later may have been around what was erased before.
        for op in BURIED.take().into_iter().rev() {
            // SAFETY: `bury` got it, nothing refers to it, and the handles are gone.
            unsafe { ffi::mhOpFree(op) }
        }
    }
}

/// A dialect conversion is under way on this thread. MLIR keeps handles to what it may have to take back, and takes back only
/// what it knows of: nothing may be destroyed by another way than the rewriter that patterns are given.
pub(crate) struct Converting(());

impl Converting {
    pub(crate) fn new(root: Op<'_>) -> Self {
        assert!(CONVERTING.get().is_null(), "a conversion within a conversion");
        CONVERTING.set(root.raw().ptr);
        Self(())
    }
    /// Panics where `op` is what is converted, or around it: whoever asked for the conversion has a handle to it.
    #[track_caller]
    pub(crate) fn assert_inside(op: Op<'_>) {
        let raw = MlirOperation { ptr: CONVERTING.get() };
        // SAFETY: it is alive while the conversion is under way, since this refuses to erase it.
        let root = unsafe { Op::from_raw(raw) };
        let mut around = std::iter::successors(root, |op| op.parent());
        let is = around.any(|each| each == op);
        assert!(!is, "{}, which is to be converted, or what is around it, is replaced or erased", op.name());
    }
    /// Panics while a conversion is under way.
    #[track_caller]
    pub(crate) fn forbid(what: &str) {
        assert!(
            CONVERTING.get().is_null(),
            "{what} in a dialect conversion by another way than its rewriter"
        );
    }
}

impl Drop for Converting {
    fn drop(&mut self) {
        CONVERTING.set(std::ptr::null_mut());
    }
}

/// Frees an operation later, which is out of the IR and has no uses.
pub(crate) fn bury(op: Op<'_>) {
    if DEPTH.get() > 0 {
        BURIED.with_borrow_mut(|buried| buried.push(op.raw()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlir_sys::*;

    #[test]
    fn memory_is_kept_while_a_callback_runs() {
        let outer = Erasing::new();
        let inner = Erasing::new();
        // SAFETY: the context outlives the operation.
        unsafe {
            let context = mlirContextCreate();
            let module = mlirModuleCreateEmpty(mlirLocationUnknownGet(context));
            let op = Op::from_raw(mlirModuleGetOperation(module)).expect("a module");
            op.erase();
            drop(inner);
            assert_eq!(BURIED.with_borrow(Vec::len), 1);
            assert_eq!(op.name(), "builtin.module");
            drop(outer);
            assert_eq!(BURIED.with_borrow(Vec::len), 0);
            mlirContextDestroy(context);
        }
    }
}
