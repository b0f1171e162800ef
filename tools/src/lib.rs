//! The ttopt, ttc and tt-lsp-server drivers and the mlir-opt plugin.
