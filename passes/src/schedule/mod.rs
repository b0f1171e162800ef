//! Software pipelining: [`plan`] schedules loops as plain data, [`checker`] executes schedules to find mistakes.

pub mod checker;
pub mod plan;

#[cfg(test)]
mod tests;
