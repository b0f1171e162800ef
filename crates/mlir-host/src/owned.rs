//! What a program owns that hosts MLIR itself: a context, modules in it, pass managers. [`diagnostics`](crate::diagnostics) has
//! the handler.
//!
//! ```
//! use mlir_host::driver::{Registry, register_transform_passes};
//! use mlir_host::owned::{OwnedContext, OwnedModule, PassManager};
//!
//! let mut registry = Registry::new();
//! registry.add_codegen(); // and hosted dialects, by `add`
//! let context = OwnedContext::new(&registry);
//! let text = "%0 = arith.constant 1 : i32 %1 = arith.constant 1 : i32 \"arith.addi\"(%0, %1) : (i32, i32) -> i32";
//! let mut module = OwnedModule::parse(context.handle(), text, "sum.mlir").expect("it is well-formed");
//! assert_eq!(module.op().region(0).first_block().expect("a body").ops().count(), 3);
//!
//! register_transform_passes();
//! let mut passes = PassManager::parse(context.handle(), "builtin.module(canonicalize)").expect("a pass that is known");
//! passes.run(&mut module).expect("it does not fail");
//! assert_eq!(module.to_string(), "module {\n}\n");
//! ```
//!
//! With the feature `melior` each is made of melior's and turns into it (`From`).

use crate::asm::Reported;
use crate::driver::{self, Registry};
use crate::ffi;
use crate::ir::{Block, Context, Loc, Op};
use crate::pass::PassDef;
use mlir_sys::*;
use std::fmt;
use std::marker::PhantomData;

/// A context of one's own.
pub struct OwnedContext(MlirContext);

impl OwnedContext {
    /// One that knows the dialects of a registry, and loads each when it is first met. It has no threads of its own.
    pub fn new(registry: &Registry) -> Self {
        // SAFETY: the registry is valid, and is copied. Destroyed on drop.
        Self(unsafe { mlirContextCreateWithRegistry(registry.raw(), false) })
    }

    /// Takes over a context of the C API.
    ///
    /// # Safety
    /// The context is valid, and nobody else destroys it.
    pub unsafe fn from_raw(raw: MlirContext) -> Self {
        Self(raw)
    }

    /// The context of the C API, which the caller destroys.
    pub fn into_raw(self) -> MlirContext {
        std::mem::ManuallyDrop::new(self).0
    }

    /// The handle by which everything in it is made.
    pub fn handle(&self) -> Context<'_> {
        // SAFETY: valid while `self` is.
        unsafe { Context::from_raw(self.0) }
    }

    /// Whether pass managers run passes on several functions at once. Diagnostics of functions come in the order of the
    /// functions all the same.
    pub fn set_threads(&mut self, several: bool) {
        // SAFETY: the context is valid, and nothing runs in it: `self` is borrowed alone.
        unsafe { mlirContextEnableMultithreading(self.0, several) }
    }

    /// Whether operations of dialects that nobody registered are accepted.
    pub fn allow_unregistered_dialects(&mut self, allowed: bool) {
        // SAFETY: the context is valid.
        unsafe { mlirContextSetAllowUnregisteredDialects(self.0, allowed) }
    }
}

impl Drop for OwnedContext {
    fn drop(&mut self) {
        // SAFETY: owned; whatever is in it borrows `self`.
        unsafe { mlirContextDestroy(self.0) }
    }
}

impl fmt::Debug for OwnedContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedContext").finish_non_exhaustive()
    }
}

/// A module of one's own.
pub struct OwnedModule<'c> {
    raw: MlirModule,
    context: PhantomData<&'c ()>,
}

impl<'c> OwnedModule<'c> {
    /// An empty one.
    pub fn new(loc: Loc<'c>) -> Self {
        // SAFETY: the location is valid. Destroyed on drop.
        unsafe { Self::from_raw(mlirModuleCreateEmpty(loc.raw())) }
    }

    /// Parses and verifies a module, text or bytecode, which is checked before MLIR reads it; `name` is the file in locations.
    /// Text that nests deeply needs a [large stack](driver::on_large_stack).
    ///
    /// # Errors
    /// What is wrong is a diagnostic of the context's.
    pub fn parse(
        context: Context<'c>,
        input: &(impl AsRef<[u8]> + ?Sized),
        name: &str,
    ) -> Result<Self, Reported> {
        let bytes = input.as_ref();
        driver::check(bytes).map_err(|err| context.unknown_loc().error(&format!("{name}: {err}")))?;
        let input = MlirStringRef { data: bytes.as_ptr().cast(), length: bytes.len() };
        // SAFETY: the context is valid; text and name are copied.
        let raw = unsafe { ffi::mhModuleParse(context.raw(), input, ffi::str_ref(name)) };
        // SAFETY: it was just made, and is nobody else's.
        if raw.ptr.is_null() { Err(Reported::BY_MLIR) } else { Ok(unsafe { Self::from_raw(raw) }) }
    }

    /// Takes over a module of the C API.
    ///
    /// # Safety
    /// The module is valid, its context lives for `'c`, and nobody else destroys the module.
    pub unsafe fn from_raw(raw: MlirModule) -> Self {
        Self { raw, context: PhantomData }
    }

    /// The module of the C API, which the caller destroys.
    pub fn into_raw(self) -> MlirModule {
        std::mem::ManuallyDrop::new(self).raw
    }

    /// The operation `builtin.module`.
    pub fn op(&self) -> Op<'_> {
        // SAFETY: valid while `self` is.
        unsafe { Op::from_raw(mlirModuleGetOperation(self.raw)) }.expect("a module is an operation")
    }

    /// Its one block.
    pub fn body(&self) -> Block<'_> {
        // SAFETY: valid while `self` is.
        unsafe { Block::from_raw(mlirModuleGetBody(self.raw)) }.expect("a module has a body")
    }
}

impl Drop for OwnedModule<'_> {
    fn drop(&mut self) {
        // SAFETY: owned; handles to what is in it borrow `self`.
        unsafe { mlirModuleDestroy(self.raw) }
    }
}

/// As MLIR prints it.
impl fmt::Display for OwnedModule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.op(), f)
    }
}

impl fmt::Debug for OwnedModule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Passes in their order. What they set up before they first run they keep for the next run.
pub struct PassManager<'c> {
    raw: MlirPassManager,
    context: Context<'c>,
}

impl<'c> PassManager<'c> {
    /// Without passes, for modules.
    pub fn new(context: Context<'c>) -> Self {
        let anchor = ffi::str_ref("builtin.module");
        // SAFETY: the context is valid. Destroyed on drop.
        Self { raw: unsafe { mlirPassManagerCreateOnOperation(context.raw(), anchor) }, context }
    }

    /// With those of a pipeline in MLIR's syntax, `builtin.module(cse,func.func(canonicalize))`; all are registered.
    ///
    /// # Errors
    /// What is wrong with the pipeline.
    pub fn parse(context: Context<'c>, pipeline: &str) -> Result<Self, String> {
        let made = Self::new(context);
        let mut parsed = MlirLogicalResult { value: 0 };
        // SAFETY: the manager is alive, the text lives during the call.
        let error = crate::ir::print(|callback, out| unsafe {
            let passes = mlirPassManagerGetAsOpPassManager(made.raw);
            parsed = mlirParsePassPipeline(passes, ffi::str_ref(pipeline), callback, out);
        });
        if parsed.value == 0 { Err(error) } else { Ok(made) }
    }

    /// Adds passes in MLIR's syntax, `cse,my-pass{option=1}`.
    ///
    /// # Errors
    /// What is wrong with them; some may have been added.
    pub fn add(&mut self, passes: &str) -> Result<(), String> {
        let mut parsed = MlirLogicalResult { value: 0 };
        // SAFETY: the manager is alive, the text lives during the call.
        let error = crate::ir::print(|callback, out| unsafe {
            let manager = mlirPassManagerGetAsOpPassManager(self.raw);
            parsed = mlirOpPassManagerAddPipeline(manager, ffi::str_ref(passes), callback, out);
        });
        if parsed.value == 0 { Err(error) } else { Ok(()) }
    }

    /// Registers a hosted pass, where it is not yet, and adds it, with its options as in `a=1 b=text`.
    ///
    /// # Errors
    /// What is wrong with the options, or that it runs on another operation.
    pub fn add_pass(&mut self, pass: &'static PassDef, options: &str) -> Result<(), String> {
        pass.register();
        self.add(&format!("{}{{{options}}}", pass.argument))
    }

    /// Whether the module is verified after each pass, as it is by default.
    pub fn verify(&mut self, each: bool) {
        // SAFETY: the manager is alive.
        unsafe { mlirPassManagerEnableVerifier(self.raw, each) }
    }

    /// Runs the passes on a module. Handles to what is in it cannot be used afterwards.
    ///
    /// # Errors
    /// A pass failed; what is wrong is a diagnostic of the context's.
    pub fn run(&mut self, module: &mut OwnedModule<'_>) -> Result<(), Reported> {
        self.run_on(module.op())
    }

    /// Runs the passes on an operation. Handles to what they remove must not be used afterwards.
    ///
    /// # Errors
    /// As of [`run`](Self::run); or the operation is of another context.
    pub fn run_on(&mut self, op: Op<'_>) -> Result<(), Reported> {
        if op.context().raw().ptr != self.context.raw().ptr {
            return Err(op.error("is of another context than the pass manager"));
        }
        // SAFETY: manager and operation are alive, and of one context.
        match unsafe { mlirPassManagerRunOnOp(self.raw, op.raw()) }.value {
            0 => Err(Reported::BY_MLIR),
            _ => Ok(()),
        }
    }

    /// Takes over a pass manager of the C API.
    ///
    /// # Safety
    /// The pass manager is valid and of this context, and nobody else destroys it.
    pub unsafe fn from_raw(raw: MlirPassManager, context: Context<'c>) -> Self {
        Self { raw, context }
    }

    /// The pass manager of the C API, which the caller destroys.
    pub fn into_raw(self) -> MlirPassManager {
        std::mem::ManuallyDrop::new(self).raw
    }
}

impl Drop for PassManager<'_> {
    fn drop(&mut self) {
        // SAFETY: owned.
        unsafe { mlirPassManagerDestroy(self.raw) }
    }
}

impl fmt::Debug for PassManager<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the manager is alive.
        f.write_str(&crate::ir::print(|callback, out| unsafe {
            mlirPrintPassPipeline(mlirPassManagerGetAsOpPassManager(self.raw), callback, out);
        }))
    }
}
