//! Analyses and passes from TTIR to TTGIR.
