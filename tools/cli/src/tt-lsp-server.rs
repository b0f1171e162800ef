//! MLIR's language server with Triton's dialects.

fn main() {
    std::process::exit(mlir_host::driver::lsp_main(&ttopt_dialect::DIALECTS));
}
