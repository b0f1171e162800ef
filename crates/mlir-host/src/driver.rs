//! MLIR's stock drivers with hosted dialects and passes in them.

use crate::bytecode::{self, Malformed};
use crate::dialect::DialectDef;
use crate::ffi;
use crate::ir::{Context, Op};
use crate::owned::PassManager;
use crate::pass::PassDef;
use crate::text;
use mlir_sys::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int};
use std::sync::{Mutex, PoisonError};

/// A dialect registry.
pub struct Registry(MlirDialectRegistry);

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        // SAFETY: freed on drop.
        Self(unsafe { mlirDialectRegistryCreate() })
    }
    /// Adds all dialects, extensions and LLVM translations of MLIR.
    pub fn add_upstream(&mut self) {
        // SAFETY: the registry is valid.
        unsafe { ffi::mhRegisterUpstream(self.0) }
    }
    /// Adds the dialects a GPU compiler meets (arith, cf, llvm, math, nvvm,
    /// rocdl, scf, ub) and their translations to LLVM IR.
    pub fn add_codegen(&mut self) {
        // SAFETY: the registry is valid.
        unsafe { register_codegen(self.0) }
    }
    /// Adds hosted dialects.
    pub fn add(&mut self, dialects: &[&'static DialectDef]) {
        // SAFETY: the registry is valid.
        dialects.iter().for_each(|dialect| unsafe { dialect.register(self.0) });
    }
    /// Puts all of it into a context, also one that has other dialects.
    pub fn append_to(&self, context: Context<'_>) {
        // SAFETY: both are valid; the context copies the registry.
        unsafe { mlirContextAppendDialectRegistry(context.raw(), self.0) }
    }
    /// The C API handle.
    pub fn raw(&self) -> MlirDialectRegistry {
        self.0
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // SAFETY: made by `new`.
        unsafe { mlirDialectRegistryDestroy(self.0) }
    }
}

/// Pass managers of a context by their pipelines. Each is made once: what passes set up before they first run (patterns, by
/// the names of operations) is theirs as long as the context has the same dialects.
pub struct Pipelines {
    context: Context<'static>,
    made: RefCell<HashMap<String, PassManager<'static>>>,
}

impl Pipelines {
    /// None so far.
    ///
    /// # Safety
    /// The context lives longer than what is returned.
    pub unsafe fn new(context: MlirContext) -> Self {
        // SAFETY: by the caller, and neither the context nor what is made in it leaves this.
        Self { context: unsafe { Context::from_raw(context) }, made: RefCell::default() }
    }

    /// Runs a pipeline, in MLIR's syntax, on an operation of the context, and verifies after each pass where it is to `verify`. Says
    /// whether it went well.
    ///
    /// # Errors
    /// What is wrong with the pipeline.
    pub fn run(&self, pipeline: &str, op: Op<'_>, verify: bool) -> Result<bool, String> {
        if op.context().raw().ptr != self.context.raw().ptr {
            return Err("the operation is of another context".to_owned());
        }
        let mut made = self.made.borrow_mut();
        if !made.contains_key(pipeline) {
            made.insert(pipeline.to_owned(), PassManager::parse(self.context, pipeline)?);
        }
        let manager = made.get_mut(pipeline).ok_or("it was just made")?;
        manager.verify(verify);
        Ok(manager.run_on(op).is_ok())
    }
}

/// [`Registry::add_codegen`] for a registry of someone else's.
///
/// # Safety
/// The registry is valid.
pub unsafe fn register_codegen(registry: MlirDialectRegistry) {
    // SAFETY: by the caller.
    unsafe { ffi::mhRegisterCodegen(registry) }
}

/// Whether errors at operations of a context come with the operation, and all that is in it, as a note.
///
/// # Safety
/// The context is valid.
pub unsafe fn print_op_on_diagnostic(context: MlirContext, enable: bool) {
    // SAFETY: by the caller.
    unsafe { ffi::mhPrintOpOnDiagnostic(context, enable.into()) }
}

/// Registers all passes of MLIR.
pub fn register_upstream_passes() {
    // SAFETY: no preconditions; MLIR ignores repetitions.
    unsafe { ffi::mhRegisterUpstreamPasses() }
}

/// Registers the passes of MLIR that no dialect owns: canonicalize, cse,
/// inline, symbol-dce, loop-invariant-code-motion, …
pub fn register_transform_passes() {
    // SAFETY: no preconditions; MLIR ignores repetitions.
    unsafe { mlirRegisterTransformsPasses() }
}

fn with_args<T>(f: impl FnOnce(i32, *mut *mut c_char) -> T) -> T {
    let args: Vec<CString> =
        std::env::args_os().map(|arg| CString::new(arg.as_encoded_bytes()).unwrap_or_default()).collect();
    let mut pointers: Vec<*mut c_char> = args.iter().map(|arg| arg.as_ptr().cast_mut()).collect();
    pointers.push(std::ptr::null_mut());
    f(args.len() as i32, pointers.as_mut_ptr())
}

/// `mlir-opt` with the hosted dialects and passes and all upstream ones.
/// Returns the exit code, which is not zero if a callback panicked.
pub fn opt_main(tool: &str, dialects: &[&'static DialectDef], passes: &[&'static PassDef]) -> i32 {
    on_large_stack(|| {
        let mut registry = Registry::new();
        registry.add_upstream();
        registry.add(dialects);
        register_upstream_passes();
        passes.iter().for_each(|pass| pass.register());
        let before = crate::poison::caught();
        let code =
            // SAFETY: the arguments outlive the call.
            with_args(|argc, argv| unsafe {
                ffi::mhOptMain(argc, argv, ffi::str_ref(tool), registry.raw(), check_input)
            });
        if crate::poison::caught() == before { code } else { code.max(1) }
    })
}

/// Registers passes in a tool like `mlir-opt` that is loading a plugin, and gives them flags (`--my-pass=option=1`) behind
/// `--load-pass-plugin` on the command line. Elsewhere it registers them only.
///
/// Such a tool knows the flags of passes that are registered before it parses its options. What follows the plugin is parsed
/// after these are there, too: passes of both kinds run in the order of their flags.
pub fn register_plugin_passes(passes: &[&'static PassDef]) {
    passes.iter().for_each(|pass| pass.register());
    let names: Vec<MlirStringRef> = passes.iter().map(|pass| ffi::str_ref(pass.argument)).collect();
    // SAFETY: the names live during the call, and are looked up in MLIR's registry.
    unsafe { ffi::mhAddLateFlags(names.as_ptr(), names.len() as isize) }
}

/// Refuses malformed bytecode, and text that would end MLIR's parser. Returns 0 after appending why.
extern "C" fn check_input(input: MlirStringRef, marker: MlirStringRef, message: *mut ffi::Sink) -> c_int {
    // SAFETY: the driver's buffer and one of its options, both alive while this runs.
    let [input, marker] = [input, marker].map(|text| unsafe { ffi::bytes_of(text) });
    let checked = std::panic::catch_unwind(|| check_parts(input, marker));
    match checked.unwrap_or_else(|payload| Err(crate::poison::text(&*payload))) {
        Ok(()) => 1,
        Err(why) => {
            // SAFETY: the driver's string.
            unsafe { ffi::mhSinkString(message, ffi::str_ref(&why)) };
            0
        }
    }
}

/// Refuses what would end MLIR's readers, of bytecode or of text.
pub(crate) fn check(input: &[u8]) -> Result<(), Malformed> {
    if bytecode::is_bytecode(input) {
        return bytecode::check(input);
    }
    check_text(input)
}

fn check_text(input: &[u8]) -> Result<(), Malformed> {
    text::check(input).map_err(|(at, what)| {
        let line = Some(text::position(input, at));
        Malformed { at, line, what: what.to_owned() }
    })
}

/// Bytecode is all of an input, or follows a marker that splits it; all else is text.
fn check_parts(input: &[u8], marker: &[u8]) -> Result<(), String> {
    let follows = |at: usize| at == 0 || !marker.is_empty() && input[..at].ends_with(marker);
    let words = input.windows(bytecode::MAGIC.len()).enumerate();
    for (at, _) in words.filter(|(at, word)| *word == bytecode::MAGIC && follows(*at)) {
        check(&input[at..]).map_err(|err| err.to_string())?;
    }
    let is_split = !marker.is_empty() && input.windows(marker.len()).any(|word| word == marker);
    if bytecode::is_bytecode(input) && !is_split {
        return Ok(());
    }
    check_text(input).map_err(|err| err.to_string())
}

/// Runs `f` with a stack of a gigabyte, which takes memory only as it is used.
/// MLIR's parser recurses as its input nests, and ends the process where the
/// stack ends: a few thousand open braces are enough for the usual one. Where
/// address space is limited, less must do, at worst the stack that there is.
///
/// # Panics
/// When `f` does.
pub fn on_large_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    let work = Mutex::new(Some(f));
    let run = || {
        let f = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        f.expect("the one thread that was started takes it, or this one")()
    };
    std::thread::scope(|scope| {
        let start = |stack| {
            let thread = std::thread::Builder::new().name("main".to_owned()).stack_size(stack);
            thread.spawn_scoped(scope, run).ok()
        };
        match [1 << 30, 1 << 27, 1 << 23].into_iter().find_map(start) {
            Some(thread) => thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)),
            None => run(),
        }
    })
}

/// MLIR's language server with the hosted dialects and all upstream ones.
/// Returns the exit code.
pub fn lsp_main(dialects: &[&'static DialectDef]) -> i32 {
    let mut registry = Registry::new();
    registry.add_upstream();
    registry.add(dialects);
    // SAFETY: the arguments outlive the call.
    with_args(|argc, argv| unsafe { ffi::mhLspMain(argc, argv, registry.raw()) })
}

/// A source, text or bytecode, whose diagnostics, those of passes included, are printed to
/// stderr with the line they are about, until this value is dropped.
pub struct Source {
    raw: *mut ffi::RawSource,
    context: MlirContext,
}

impl Source {
    /// Copies `input`, which is text or bytecode; `name` is the file name in diagnostics.
    ///
    /// # Errors
    /// Where bytecode is malformed, and how; where text would end MLIR's parser.
    ///
    /// # Safety
    /// The context is valid and outlives this value.
    pub unsafe fn new(
        context: MlirContext,
        input: &(impl AsRef<[u8]> + ?Sized),
        name: &str,
    ) -> Result<Self, Malformed> {
        let bytes = input.as_ref();
        check(bytes)?;
        let input = MlirStringRef { data: bytes.as_ptr().cast(), length: bytes.len() };
        // SAFETY: by the caller.
        Ok(Self { raw: unsafe { ffi::mhSourceNew(context, input, ffi::str_ref(name)) }, context })
    }
    /// Parses and verifies the module; `None` after errors, which were printed.
    /// The caller owns the module.
    pub fn parse(&self) -> Option<MlirModule> {
        // SAFETY: both are alive.
        let module = unsafe { ffi::mhSourceParse(self.raw, self.context) };
        (!module.ptr.is_null()).then_some(module)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // SAFETY: made by `new`.
        unsafe { ffi::mhSourceFree(self.raw) }
    }
}

/// Links what an LLVM module needs of a bitcode file, with internal linkage.
///
/// # Errors
/// Why the file could not be read or linked.
///
/// # Safety
/// `module` is a valid `LLVMModuleRef`.
pub unsafe fn link_needed(module: *mut std::ffi::c_void, path: &str) -> Result<(), String> {
    let text = crate::asm::CxxString::new();
    // SAFETY: by the caller.
    let linked = unsafe { ffi::mhLinkNeeded(module, ffi::str_ref(path), text.raw()) };
    if linked != 0 { Ok(()) } else { Err(text.get()) }
}
