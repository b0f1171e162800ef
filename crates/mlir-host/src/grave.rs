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

thread_local! {
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
