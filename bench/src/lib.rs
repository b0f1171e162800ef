//! Benchmarks of whole programs. The `README.md` beside this package says how
//! to run them and what came out; the crates have their own benchmarks.
