//! A context with hosted dialects, a module in it, and what MLIR says about it.
#![allow(dead_code)] // Each test uses a part of it.

use mlir_host::DialectDef;
use mlir_host::driver::{Registry, register_transform_passes};
use mlir_host::ir::{Context, Loc, Op};
use mlir_sys::*;

/// A parsed module and the diagnostics so far.
pub struct Session {
    context: MlirContext,
    pub module: MlirModule,
    // Boxed: the handler holds its address.
    pub diagnostics: Box<Told>,
}

/// What was said, and where.
#[derive(Default)]
pub struct Told {
    texts: Vec<String>,
    lines: Vec<u32>,
}

impl Told {
    /// The line of each; 0 where it is unknown.
    pub fn lines(&self) -> &[u32] {
        &self.lines
    }
}
impl std::ops::Deref for Told {
    type Target = Vec<String>;
    fn deref(&self) -> &Vec<String> {
        &self.texts
    }
}
impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.texts.iter().zip(&self.lines)).finish()
    }
}

unsafe extern "C" fn append(text: MlirStringRef, out: *mut std::ffi::c_void) {
    let bytes = unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) };
    unsafe { (*out.cast::<String>()).push_str(std::str::from_utf8(bytes).unwrap()) }
}

unsafe extern "C" fn collect(diagnostic: MlirDiagnostic, data: *mut std::ffi::c_void) -> MlirLogicalResult {
    let mut text = String::new();
    unsafe { mlirDiagnosticPrint(diagnostic, Some(append), (&raw mut text).cast()) };
    let position = unsafe { Loc::from_raw(mlirDiagnosticGetLocation(diagnostic)) }.and_then(Loc::position);
    let told = unsafe { &mut *data.cast::<Told>() };
    told.texts.push(text);
    told.lines.push(position.map_or(0, |position| position.1));
    MlirLogicalResult { value: 1 }
}

impl Session {
    pub fn parse(dialects: &[&'static DialectDef], text: &str) -> Session {
        unsafe {
            let mut registry = Registry::new();
            registry.add_upstream();
            registry.add(dialects);
            let context = mlirContextCreateWithRegistry(registry.raw(), false);
            let mut diagnostics = Box::new(Told::default());
            mlirContextAttachDiagnosticHandler(context, Some(collect), (&raw mut *diagnostics).cast(), None);
            // MLIR's lexer looks one byte past the end.
            let terminated = std::ffi::CString::new(text).unwrap();
            let text = MlirStringRef { data: terminated.as_ptr(), length: text.len() };
            let module = mlirModuleCreateParse(context, text);
            Session { context, module, diagnostics }
        }
    }
    pub fn op(&self) -> Op<'_> {
        assert!(!self.module.ptr.is_null(), "parse error: {:?}", self.diagnostics);
        unsafe { Op::from_raw(mlirModuleGetOperation(self.module)) }.unwrap()
    }
    pub fn context(&self) -> Context<'_> {
        unsafe { Context::from_raw(self.context) }
    }
    /// Whether a pipeline such as `builtin.module(cse)` succeeds.
    pub fn run(&self, pipeline: &str, verify: bool) -> bool {
        register_transform_passes();
        let text = MlirStringRef { data: pipeline.as_ptr().cast(), length: pipeline.len() };
        let mut message = String::new();
        unsafe {
            let passes = mlirPassManagerCreate(self.context);
            mlirPassManagerEnableVerifier(passes, verify);
            let parsed = mlirParsePassPipeline(
                mlirPassManagerGetAsOpPassManager(passes),
                text,
                Some(append),
                (&raw mut message).cast(),
            );
            assert!(parsed.value != 0, "{message}");
            let ran = mlirPassManagerRunOnOp(passes, self.op().raw());
            mlirPassManagerDestroy(passes);
            ran.value != 0
        }
    }
    pub fn says(&self, wanted: &str) -> bool {
        self.diagnostics.iter().any(|text| text.contains(wanted))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        unsafe {
            if !self.module.ptr.is_null() {
                mlirModuleDestroy(self.module);
            }
            mlirContextDestroy(self.context);
        }
    }
}
