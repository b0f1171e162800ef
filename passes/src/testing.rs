//! Modules for unit tests.

use mlir_host::driver::{Registry, Source};
use mlir_host::ir::{Context, Op, Value, Walk};
use mlir_sys::*;

/// Layouts `#a`, `#b` of a matrix that differ in all dimensions, and `#v`, `#w` of a vector.
pub const LAYOUTS: &str = "
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#v = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#w = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
";

/// A module for cuda:90 with four warps.
pub struct Session {
    context: MlirContext,
    module: MlirModule,
}

impl Session {
    /// With these functions, in which [`LAYOUTS`] are known.
    pub fn new(functions: &str) -> Session {
        let mut registry = Registry::new();
        registry.add_codegen();
        registry.add(&ttopt_dialect::DIALECTS);
        // SAFETY: the registry is valid; the context is destroyed on drop.
        let context = unsafe { mlirContextCreateWithRegistry(registry.raw(), false) };
        let text = format!(
            "{LAYOUTS}module attributes {{\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, ttg.target = \"cuda:90\", \"ttg.threads-per-warp\" = 32 : i32}} {{\n{functions}\n}}"
        );
        // SAFETY: the context outlives the source.
        let source = unsafe { Source::new(context, &text, "test") }.expect("text");
        let module = source.parse().expect("a valid module");
        Session { context, module }
    }

    /// The context.
    pub fn context(&self) -> Context<'_> {
        // SAFETY: it lives as long as this.
        unsafe { Context::from_raw(self.context) }
    }

    /// The module.
    pub fn module(&self) -> Op<'_> {
        // SAFETY: it lives as long as this.
        unsafe { Op::from_raw(mlirModuleGetOperation(self.module)) }.expect("a module")
    }

    /// All operations with this name, in the order of the text.
    pub fn all(&self, name: &str) -> Vec<Op<'_>> {
        let mut found = Vec::new();
        self.module().walk(&mut |op| {
            if op.name() == name {
                found.push(op);
            }
            Walk::Advance
        });
        // Operations around others come first.
        found
    }

    /// The result of the only operation with this name.
    pub fn value(&self, name: &str) -> Value<'_> {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "operations {name} of {}", self.module());
        all[0].result(0)
    }

    /// How many operations have this name.
    pub fn count(&self, name: &str) -> usize {
        self.all(name).len()
    }

    /// The module is valid.
    pub fn verify(&self) {
        assert!(self.module().verify(), "{}", self.module());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: both were made by `new`.
        unsafe {
            mlirModuleDestroy(self.module);
            mlirContextDestroy(self.context);
        }
    }
}
