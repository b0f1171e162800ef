//! Analyses: what is known about values, without changing the IR.

pub mod advance;
pub mod axis_info;
pub mod balance;
pub mod flow_graph;
pub mod pointer_roots;
pub mod ranges;
pub mod recomputation;
pub mod registers;
