//! See `linear_layout_fuzz::vector`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linear_layout_fuzz::vector(bytes));
