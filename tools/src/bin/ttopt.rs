//! `mlir-opt` with Triton's dialects and ttopt's passes.

fn main() {
    std::process::exit(mlir_host::driver::opt_main(
        "ttopt: MLIR optimizer driver with Triton's dialects\n",
        &ttopt_dialect::DIALECTS,
        &ttopt_tools::passes(),
    ));
}
