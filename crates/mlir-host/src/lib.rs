//! MLIR dialects and passes hosted in Rust.
