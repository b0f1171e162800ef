//! stub
use mlir_host::rewrite::Pattern;
pub const EXTRACT_SLICE: [Pattern; 0] = [];
pub const CONCAT: [Pattern; 0] = [];
