//! Matrix products: what is known about their operands ([`operands`]), which
//! products depend on each other ([`chains`]), and how each is computed
//! ([`plan`]).

pub mod build;
pub mod chains;
pub mod operands;
pub mod plan;
