//! Benchmarks of ttopt.
