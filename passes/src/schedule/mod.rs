//! Software pipelining: [`plan`] schedules loops as plain data, [`checker`] executes schedules to find mistakes.

pub mod checker;
pub mod expand;
pub mod nest;
pub mod offsets;
pub mod one_loop;
mod order;
pub mod pass;
pub mod past_registers;
pub mod plan;
pub mod read_ahead;
pub mod read_direct;
pub mod source;
pub mod spread;
pub mod staged;
pub mod swizzled;
pub mod worth;

#[cfg(test)]
mod tests;
