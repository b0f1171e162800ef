//! Plans that a thread keeps are those of the description that is asked about, not of another with its name.

use linear_layout::target::TargetDesc;
use mlir_host::driver::Registry;
use mlir_host::ir::{Context, Type};
use mlir_sys::{MlirContext, mlirContextCreateWithRegistry, mlirContextDestroy};
use std::sync::Arc;
use ttopt_passes::plans::conversion;

struct Session(MlirContext);

impl Session {
    fn new() -> Session {
        let mut registry = Registry::new();
        registry.add(&ttopt_dialect::DIALECTS);
        // SAFETY: the registry is valid; the context is destroyed on drop.
        let session = Session(unsafe { mlirContextCreateWithRegistry(registry.raw(), false) });
        assert!(["tt", "ttg", "ttng"].into_iter().all(|name| session.context().load(name)));
        session
    }

    fn context(&self) -> Context<'_> {
        // SAFETY: the context lives as long as the session.
        unsafe { Context::from_raw(self.0) }
    }

    fn ty(&self, text: &str) -> Type<'_> {
        Type::parse(self.context(), text).unwrap_or_else(|| panic!("{text} does not parse"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: it was made by `new`.
        unsafe { mlirContextDestroy(self.0) }
    }
}

fn blocked(size: &str, threads: &str, warps: &str) -> String {
    format!(
        "tensor<64x64xf32, #ttg.blocked<{{sizePerThread = {size}, threadsPerWarp = {threads}, warpsPerCTA = {warps}, order = [1, 0]}}>>"
    )
}

#[test]
fn what_a_target_says_decides_which_plan_is_found() {
    let session = Session::new();
    let from = session.ty(&blocked("[1, 4]", "[2, 16]", "[4, 1]"));
    let to = session.ty(&blocked("[4, 1]", "[8, 4]", "[1, 4]"));
    let base = TargetDesc::parse("cuda:90").unwrap();
    let first = conversion(from, to, &base).unwrap();
    let again = conversion(from, to, &base.clone()).unwrap();
    assert!(Arc::ptr_eq(&first, &again), "planned once");

    let mut slow = base.clone();
    slow.cost.wavefront *= 4.0;
    let slower = conversion(from, to, &slow).unwrap();
    assert!(slower.cost.cycles > first.cost.cycles, "{} and {}", slower.cost.cycles, first.cost.cycles);

    let mut plain = base.clone();
    (plain.primitives.ldmatrix, plain.primitives.stmatrix) = (false, false);
    let without = conversion(from, to, &plain).unwrap();
    assert!(!Arc::ptr_eq(&first, &without), "another machine");
    assert!(without.instructions().iter().all(|i| !i.contains("matrix")), "{without}");

    assert!(Arc::ptr_eq(&first, &conversion(from, to, &base).unwrap()), "still there");
}

/// Products in three parts are for targets that have nothing better for f32, whatever they are called.
#[test]
fn tf32_is_emulated_where_nothing_multiplies_f32() {
    use ttopt_passes::pipeline::{Options, pipeline};
    for target in TargetDesc::all() {
        let text = pipeline(&Options::for_target(target.name));
        let expected = target.vendor == linear_layout::target::Vendor::Nvidia;
        assert!(text.contains(&format!("emu-tf32={expected}")), "{target}: {text}");
    }
}
