//! stub
use mlir_host::rewrite::Pattern;
pub const BARRIER_EXPECT: [Pattern; 0] = [];
pub const WAIT_BARRIER: [Pattern; 0] = [];
pub const ARRIVE_BARRIER: [Pattern; 0] = [];
pub const TMA_LOAD: [Pattern; 0] = [];
pub const TMA_GATHER: [Pattern; 0] = [];
pub const COMMIT: [Pattern; 0] = [];
pub const TMEM_STORE: [Pattern; 0] = [];
