//! See `linear_layout_fuzz::conversion`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linear_layout_fuzz::conversion(bytes));
