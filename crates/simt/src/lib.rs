//! Runs lowered GPU kernels on the CPU, checks them and counts what they cost.
