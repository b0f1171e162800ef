//! Handles from and to melior's. Both are the C API's underneath: nothing is copied or checked again.
//!
//! Of melior's two lifetimes, the context's and that of what owns the operation, a handle of this crate has the second, shorter
//! one. On the way back both are that one.

use crate::ir::{Attr, Block, Context, Loc, Op, Region, Type, Value};
use crate::owned::{OwnedContext, OwnedModule, PassManager};
use melior::ir::operation::OperationLike as _;
use melior::ir::{AttributeLike as _, BlockLike as _, RegionLike as _, TypeLike as _, ValueLike as _};

impl<'c> From<&'c melior::Context> for Context<'c> {
    fn from(context: &'c melior::Context) -> Self {
        // SAFETY: borrowed for the lifetime.
        unsafe { Self::from_raw(context.to_raw()) }
    }
}

impl<'c> From<melior::ContextRef<'c>> for Context<'c> {
    fn from(context: melior::ContextRef<'c>) -> Self {
        // SAFETY: the context lives for the lifetime; what `to_ref` points to is only read here.
        unsafe { Self::from_raw(context.to_ref().to_raw()) }
    }
}

impl<'c> From<Context<'c>> for melior::ContextRef<'c> {
    fn from(context: Context<'c>) -> Self {
        // SAFETY: the context lives for the lifetime.
        unsafe { Self::from_raw(context.raw()) }
    }
}

/// Both ways between a handle of ours and one of melior's that live as long as each other.
macro_rules! handles {
    ($($ours:ident: [$($life:lifetime),*] $theirs:ty => $back:ty;)*) => {$(
        impl<$($life),*> From<$theirs> for $ours<'a> {
            fn from(handle: $theirs) -> Self {
                // SAFETY: melior's handles are valid for the lifetime, and only its own private ones are null.
                unsafe { Self::from_raw(handle.to_raw()) }.expect("melior has no null handles")
            }
        }

        impl<'a> From<$ours<'a>> for $back {
            fn from(handle: $ours<'a>) -> Self {
                // SAFETY: the handle is valid for the lifetime.
                unsafe { Self::from_raw(handle.raw()) }
            }
        }
    )*};
}

handles! {
    Attr: ['a] melior::ir::Attribute<'a> => melior::ir::Attribute<'a>;
    Type: ['a] melior::ir::Type<'a> => melior::ir::Type<'a>;
    Loc: ['a] melior::ir::Location<'a> => melior::ir::Location<'a>;
    Value: ['c, 'a] melior::ir::Value<'c, 'a> => melior::ir::Value<'a, 'a>;
    Op: ['c, 'a] melior::ir::OperationRef<'c, 'a> => melior::ir::OperationRef<'a, 'a>;
    Block: ['c, 'a] melior::ir::BlockRef<'c, 'a> => melior::ir::BlockRef<'a, 'a>;
    Region: ['c, 'a] melior::ir::RegionRef<'c, 'a> => melior::ir::RegionRef<'a, 'a>;
}

impl<'a> From<&'a melior::ir::Module<'_>> for Op<'a> {
    fn from(module: &'a melior::ir::Module<'_>) -> Self {
        // SAFETY: the module owns the operation, and is borrowed.
        unsafe { Self::from_raw(module.as_operation().to_raw()) }.expect("a module is an operation")
    }
}

impl<'a> From<&'a melior::ir::Operation<'_>> for Op<'a> {
    fn from(operation: &'a melior::ir::Operation<'_>) -> Self {
        // SAFETY: borrowed for the lifetime.
        unsafe { Self::from_raw(operation.to_raw()) }.expect("melior has no null handles")
    }
}

impl From<melior::Context> for OwnedContext {
    fn from(context: melior::Context) -> Self {
        let raw = std::mem::ManuallyDrop::new(context).to_raw();
        // SAFETY: melior does not destroy it any more.
        unsafe { Self::from_raw(raw) }
    }
}

impl<'c> From<melior::ir::Module<'c>> for OwnedModule<'c> {
    fn from(module: melior::ir::Module<'c>) -> Self {
        let raw = std::mem::ManuallyDrop::new(module).to_raw();
        // SAFETY: melior does not destroy it any more; its context lives for `'c`.
        unsafe { Self::from_raw(raw) }
    }
}

impl<'c> From<OwnedModule<'c>> for melior::ir::Module<'c> {
    fn from(module: OwnedModule<'c>) -> Self {
        // SAFETY: it is nobody else's; its context lives for `'c`.
        unsafe { Self::from_raw(module.into_raw()) }
    }
}

impl<'c> From<PassManager<'c>> for melior::pass::PassManager<'c> {
    fn from(passes: PassManager<'c>) -> Self {
        // SAFETY: it is nobody else's; its context lives for `'c`.
        unsafe { Self::from_raw(passes.into_raw()) }
    }
}
