//! Layouts with names, and tables of plans that are kept under review.

#![allow(dead_code)]

use std::path::Path;

use linear_layout::{Encoding, LinearLayout};

/// Shape of all tensors in registers. Sizes differ, lest one stand for the other.
pub const SHAPE: [u64; 2] = [64, 128];

/// Layouts of four warps: what tensors are loaded in, computed in, multiplied in. With the lanes of a warp.
pub const REGISTERS: &[(&str, u64, &str)] = &[
    (
        "rows",
        32,
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>",
    ),
    (
        "columns",
        32,
        "#ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>",
    ),
    (
        "thin",
        32,
        "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>",
    ),
    (
        "row_per_lane",
        32,
        "#ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [2, 2], order = [1, 0]}>",
    ),
    (
        "warp_rows",
        32,
        "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>",
    ),
    (
        "mma",
        32,
        "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>",
    ),
    (
        "wgmma",
        32,
        "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>",
    ),
    (
        "operand_a",
        32,
        "#ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>, kWidth = 2}>",
    ),
    (
        "operand_b",
        32,
        "#ttg.dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>, kWidth = 2}>",
    ),
    (
        "bytes_b",
        32,
        "#ttg.dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>, kWidth = 4}>",
    ),
    (
        "mixed",
        32,
        "#ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [1, 4], [32, 0], [0, 8]], lane = [[0, 16], [0, 32], [0, 64], [2, 1], [4, 0]], warp = [[8, 0], [16, 3]], block = []}>",
    ),
    (
        "with_copies",
        32,
        "#ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [1, 0], [0, 8], [32, 0], [2, 1], [0, 64]], lane = [[0, 16], [0, 0], [0, 32], [4, 0], [8, 0]], warp = [[0, 0], [16, 0]], block = []}>",
    ),
    (
        "wave_rows",
        64,
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>",
    ),
    (
        "wave_with_copies",
        64,
        "#ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [32, 0]], lane = [[0, 16], [0, 32], [0, 64], [0, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>",
    ),
    (
        "wave_thin",
        64,
        "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 64], warpsPerCTA = [4, 1], order = [1, 0]}>",
    ),
    (
        "mfma",
        64,
        "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>",
    ),
    (
        "mfma_a",
        64,
        "#ttg.dot_op<{opIdx = 0, parent = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>, kWidth = 4}>",
    ),
    (
        "mfma_b",
        64,
        "#ttg.dot_op<{opIdx = 1, parent = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>, kWidth = 4}>",
    ),
    (
        "mfma_wide_b",
        64,
        "#ttg.dot_op<{opIdx = 1, parent = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, 32], isTransposed = false}>, kWidth = 4}>",
    ),
    (
        "mfma_bytes_b",
        64,
        "#ttg.dot_op<{opIdx = 1, parent = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, 64], isTransposed = false}>, kWidth = 8}>",
    ),
];

/// Layouts of shared memory.
pub const MEMORY: &[(&str, &str)] = &[
    ("plain", "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>"),
    ("swizzled", "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"),
    ("bytes", "#ttg.swizzled_shared<{vec = 16, perPhase = 2, maxPhase = 4, order = [1, 0]}>"),
    ("column_major", "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>"),
    ("wgmma_128", "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"),
];

/// Layouts of a cluster of two CTAs of four warps each.
pub const CLUSTER: &[(&str, &str)] = &[
    (
        "rows_by_rows",
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>",
    ),
    (
        "rows_by_columns",
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 1]]}>",
    ),
    (
        "rows_in_both",
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 0]]}>",
    ),
];

/// The layout of a tensor of the shape above.
pub fn layout(encoding: &str) -> LinearLayout {
    let parsed = encoding.parse::<Encoding>().unwrap_or_else(|e| panic!("{encoding}: {e}"));
    parsed.to_linear_layout(&SHAPE).unwrap_or_else(|e| panic!("{encoding}: {e}"))
}

/// Compares a table, line by line, with the one that is kept in `file`; `UPDATE_EXPECT=1` writes that anew.
pub fn is_kept_as(file: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, table).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    let differ: Vec<String> = kept
        .lines()
        .zip(table.lines())
        .filter(|(k, t)| k != t)
        .map(|(k, t)| format!("- {k}\n+ {t}"))
        .collect();
    assert!(
        differ.is_empty() && kept.lines().count() == table.lines().count(),
        "{} of {} lines of {file} differ; where that is wanted, UPDATE_EXPECT=1 writes them anew\n{}",
        differ.len(),
        kept.lines().count(),
        differ.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
    );
}
