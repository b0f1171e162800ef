//! Dots: what is known about their operands ([`operands`]), which dots depend
//! on each other ([`chains`]), and how each is computed ([`plan`]), with what else would have cost ([`choices`]);
//! [`scaled`] makes plain dots of scaled ones.

pub mod build;
pub mod chains;
pub mod choices;
pub mod operands;
pub mod plan;
pub mod scaled;
