//! Copyable handles to MLIR's IR.
//!
//! Each handle is one pointer tagged with the lifetime `'c` of its context.
//! As in C++, a handle to an operation, block, region or value must not be
//! used after the thing it names was erased: passes erase what they own.

mod attribute;
mod operation;
mod types;

pub use attribute::{Attr, ElementsAttr};
pub use operation::{Block, Op, OpKind, OpOperands, Region, Severity, Symbols, Uses, Value, Walk};
pub use types::{FloatKind, FunctionType, TensorType, Type};

use crate::ffi;
use mlir_sys::*;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

macro_rules! handle {
    ($(#[$meta:meta])* $name:ident, $raw:ident, $ptr:ty) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub struct $name<'c>(std::ptr::NonNull<std::ffi::c_void>, std::marker::PhantomData<&'c ()>);

        impl std::hash::Hash for $name<'_> {
            /// What lies in the same line of a cache has the same low bits, the next line the next ones.
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                state.write_usize((self.0.as_ptr() as usize).rotate_right(6));
            }
        }

        impl<'c> $name<'c> {
            /// Wraps a C API handle; `None` when it is null.
            ///
            /// # Safety
            /// A non-null handle is valid and belongs to a context that lives for `'c`.
            pub unsafe fn from_raw(raw: mlir_sys::$raw) -> Option<Self> {
                std::ptr::NonNull::new(raw.ptr as *mut std::ffi::c_void)
                    .map(|ptr| Self(ptr, std::marker::PhantomData))
            }
            /// The C API handle.
            pub fn raw(self) -> mlir_sys::$raw {
                mlir_sys::$raw { ptr: self.0.as_ptr() as $ptr }
            }
        }
    };
}
pub(crate) use handle;

/// A context: owns all uniqued types, attributes and the loaded dialects.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Context<'c>(NonNull<c_void>, PhantomData<&'c ()>);

impl<'c> Context<'c> {
    /// Wraps a C API context.
    ///
    /// # Safety
    /// The context is valid and lives for `'c`.
    pub unsafe fn from_raw(raw: MlirContext) -> Self {
        // SAFETY: a context handle is never null.
        Self(unsafe { NonNull::new_unchecked(raw.ptr) }, PhantomData)
    }

    /// The C API handle.
    pub fn raw(self) -> MlirContext {
        MlirContext { ptr: self.0.as_ptr() }
    }

    /// The uniqued pointer of an operation name, as [`Op::name_id`] gives it.
    pub fn name_id(self, name: &str) -> usize {
        // SAFETY: the context is valid.
        unsafe { mlirIdentifierGet(self.raw(), ffi::str_ref(name)).ptr as usize }
    }

    /// Loads a dialect of the registry, so that its operations can be made;
    /// false when the registry has none of this name. Passes list their
    /// dialects in [`PassDef::dependencies`](crate::pass::PassDef) instead.
    pub fn load(self, dialect: &str) -> bool {
        // SAFETY: the context is valid; a null dialect means failure.
        unsafe { !mlirContextGetOrLoadDialect(self.raw(), ffi::str_ref(dialect)).ptr.is_null() }
    }

    /// A location without information.
    pub fn unknown_loc(self) -> Loc<'c> {
        // SAFETY: locations belong to this context.
        unsafe { Loc::from_raw(mlirLocationUnknownGet(self.raw())) }.expect("a location")
    }
}

handle!(
    /// A source location.
    Loc, MlirLocation, *const c_void
);

/// What a location is made of.
#[derive(Clone)]
#[non_exhaustive]
pub enum LocKind<'c> {
    /// A place in a file.
    File(&'c str),
    /// A place that has a name.
    Name(Loc<'c>),
    /// A place in a function that was inlined at another place.
    CallSite {
        /// In the function that was inlined.
        callee: Loc<'c>,
        /// Where that was.
        caller: Loc<'c>,
    },
    /// Several places.
    Fused(Vec<Loc<'c>>),
    /// Unknown, or of another kind.
    Other,
}

impl<'c> Loc<'c> {
    /// The context.
    pub fn context(self) -> Context<'c> {
        // SAFETY: the location is valid.
        unsafe { Context::from_raw(mlirLocationGetContext(self.raw())) }
    }
    /// File, line and column of the code, from one: those of the first place
    /// among fused ones, of the callee at a call that was inlined. `None` when
    /// the location does not say.
    pub fn position(self) -> Option<(String, u32, u32)> {
        // SAFETY: the location is valid, and each part is asked only of its kind.
        unsafe {
            let raw = self.raw();
            if mlirLocationIsAFileLineColRange(raw) {
                let file = mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(raw));
                let line = mlirLocationFileLineColRangeGetStartLine(raw);
                let column = mlirLocationFileLineColRangeGetStartColumn(raw);
                return Some((ffi::str_of(file).to_owned(), line.max(0) as u32, column.max(0) as u32));
            }
            if mlirLocationIsAName(raw) {
                return Loc::from_raw(mlirLocationNameGetChildLoc(raw))?.position();
            }
            if mlirLocationIsACallSite(raw) {
                return Loc::from_raw(mlirLocationCallSiteGetCallee(raw))?.position();
            }
            if mlirLocationIsAFused(raw) {
                let count = mlirLocationFusedGetNumLocations(raw) as usize;
                let mut parts = vec![MlirLocation { ptr: std::ptr::null() }; count];
                mlirLocationFusedGetLocations(raw, parts.as_mut_ptr());
                return parts.into_iter().find_map(|part| Loc::from_raw(part)?.position());
            }
            None
        }
    }
    /// What it is made of.
    pub fn kind(self) -> LocKind<'c> {
        let known = |raw: MlirLocation| {
            // SAFETY: a part of a valid location.
            unsafe { Loc::from_raw(raw) }.unwrap_or(self.context().unknown_loc())
        };
        // SAFETY: the location is valid, and each part is asked only of its kind.
        unsafe {
            let raw = self.raw();
            if mlirLocationIsAFileLineColRange(raw) {
                LocKind::File(ffi::str_of(mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(raw))))
            } else if mlirLocationIsAName(raw) {
                LocKind::Name(known(mlirLocationNameGetChildLoc(raw)))
            } else if mlirLocationIsACallSite(raw) {
                LocKind::CallSite {
                    callee: known(mlirLocationCallSiteGetCallee(raw)),
                    caller: known(mlirLocationCallSiteGetCaller(raw)),
                }
            } else if mlirLocationIsAFused(raw) {
                let count = mlirLocationFusedGetNumLocations(raw) as usize;
                let mut parts = vec![MlirLocation { ptr: std::ptr::null() }; count];
                mlirLocationFusedGetLocations(raw, parts.as_mut_ptr());
                LocKind::Fused(parts.into_iter().map(known).collect())
            } else {
                LocKind::Other
            }
        }
    }
    /// A place in a function that was inlined where `caller` says.
    pub fn inlined_at(self, caller: Loc<'c>) -> Loc<'c> {
        // SAFETY: both are valid and of one context.
        unsafe { Loc::from_raw(mlirLocationCallSiteGet(self.raw(), caller.raw())) }.unwrap_or(self)
    }
    /// This location together with `metadata`, as `loc(fused<metadata>[…])`.
    pub fn fused(self, metadata: Attr<'c>) -> Loc<'c> {
        let part = self.raw();
        // SAFETY: location and attribute belong to one context.
        let made = unsafe {
            Loc::from_raw(mlirLocationFusedGet(mlirLocationGetContext(part), 1, &part, metadata.raw()))
        };
        made.unwrap_or(self)
    }
    /// Reports an error here.
    pub fn error(self, message: &str) -> crate::asm::Reported {
        crate::poison::note_error();
        // SAFETY: the location is valid.
        unsafe { ffi::mhEmit(self.raw(), 0, ffi::str_ref(message)) }
        crate::asm::Reported::BY_MLIR
    }
    /// Reports a remark here.
    pub fn remark(self, message: &str) {
        // SAFETY: the location is valid.
        unsafe { ffi::mhEmit(self.raw(), 2, ffi::str_ref(message)) }
    }
    /// Reports a warning here.
    pub fn warning(self, message: &str) {
        // SAFETY: the location is valid.
        unsafe { ffi::mhEmit(self.raw(), 1, ffi::str_ref(message)) }
    }
}

unsafe extern "C" fn append(text: MlirStringRef, out: *mut c_void) {
    // SAFETY: `print` passes a String, MLIR passes valid text.
    unsafe { (*out.cast::<String>()).push_str(&String::from_utf8_lossy(ffi::bytes_of(text))) }
}

/// Collects what a C API print function writes.
pub(crate) fn print(f: impl FnOnce(MlirStringCallback, *mut c_void)) -> String {
    let mut out = String::new();
    f(Some(append), (&raw mut out).cast());
    out
}

macro_rules! display {
    ($name:ident, $function:ident) => {
        impl fmt::Display for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // SAFETY: the handle is valid.
                f.write_str(&print(|callback, out| unsafe { $function(self.raw(), callback, out) }))
            }
        }
        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}
display!(Loc, mlirLocationPrint);
display!(Type, mlirTypePrint);
display!(Attr, mlirAttributePrint);
display!(Op, mlirOperationPrint);
display!(Value, mlirValuePrint);
display!(Block, mlirBlockPrint);

impl fmt::Debug for Region<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region at {:?}", self.raw().ptr)
    }
}
