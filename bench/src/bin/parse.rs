//! Reads a module, verifies it and prints it again, some times in one process.
//! Usage: `bench-parse FILE COUNT`. Prints JSON: the number of operations and
//! the microseconds of each repetition.

use mlir_host::driver::{Registry, Source};
use mlir_host::ir::{Op, Walk};
use std::time::Instant;

/// The time one repetition took, in microseconds, the operations of the module
/// and the text it was printed as.
fn round(context: mlir_sys::MlirContext, text: &str) -> Option<(u128, usize, String)> {
    let start = Instant::now();
    // SAFETY: the context lives as long as the process.
    let source = unsafe { Source::new(context, text, "input") }.ok()?;
    let module = source.parse()?;
    // SAFETY: the module was just made; it is destroyed below, after its last use.
    let op = unsafe { Op::from_raw(mlir_sys::mlirModuleGetOperation(module)) }?;
    let printed = op.to_string();
    let took = start.elapsed().as_micros();
    let mut count = 0;
    op.walk(&mut |_| {
        count += 1;
        Walk::Advance
    });
    // SAFETY: the module is owned here and no longer used.
    unsafe { mlir_sys::mlirModuleDestroy(module) };
    Some((took, count, printed))
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, count] = args.as_slice() else { panic!("usage: bench-parse FILE COUNT") };
    let text = std::fs::read_to_string(path).expect("the file is readable");
    let count: usize = count.parse().expect("COUNT is a number");
    let mut registry = Registry::new();
    registry.add_codegen();
    registry.add(&ttopt_dialect::DIALECTS);
    // SAFETY: the registry is valid; the context copies it.
    let context = unsafe { mlir_sys::mlirContextCreateWithRegistry(registry.raw(), false) };
    let rounds: Vec<_> = (0..count).map(|_| round(context, &text).expect("the module is valid")).collect();
    let (_, ops, printed) = &rounds[0];
    let again = round(context, printed).expect("what was printed is valid");
    assert_eq!(&again.2, printed, "printing is a fixpoint");
    let times: Vec<String> = rounds.iter().map(|(took, ..)| took.to_string()).collect();
    println!("{{\"ops\": {ops}, \"us\": [{}]}}", times.join(", "));
}
