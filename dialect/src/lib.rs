//! Triton's tt, ttg, ttng and amdg dialects on hosted MLIR.
