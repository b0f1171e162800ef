//! Encodings: their syntax, and the layouts they denote.
//!
//! `encodings.txt` pins the layout of a few hundred encodings, each `text; shape; layout`.

use linear_layout::{Dim, Encoding, Error, LinearLayout};
use proptest::prelude::*;

const PINNED: &str = include_str!("encodings.txt");

/// `(text, shape, layout)` of every pinned line.
fn pinned() -> impl Iterator<Item = (&'static str, Vec<u64>, &'static str)> {
    PINNED.lines().filter(|line| !line.starts_with('#') || line.starts_with("#tt")).map(|line| {
        let [text, shape, layout] = line.split("; ").collect::<Vec<_>>().try_into().expect("three parts");
        let sizes = shape.trim_matches(['[', ']']).split(", ");
        (text, sizes.map(|s| s.parse().expect("a size")).collect(), layout)
    })
}

fn layout(text: &str, shape: &[u64]) -> LinearLayout {
    text.parse::<Encoding>().expect(text).to_linear_layout(shape).expect(text)
}

#[test]
fn encodings_denote_the_pinned_layouts() {
    for (text, shape, expected) in pinned() {
        assert_eq!(layout(text, &shape).to_string(), expected, "{text} {shape:?}");
    }
}

#[test]
fn every_encoding_is_pinned() {
    let names = [
        "blocked",
        "slice",
        "dot_op",
        "nvidia_mma",
        "amd_mfma",
        "amd_wmma",
        "linear",
        "generic_linear",
        "swizzled_shared",
        "nvmma_shared",
        "partitioned_shared",
        "shared_linear",
    ];
    for name in names {
        let count = pinned().filter(|(text, ..)| text.starts_with(&format!("#ttg.{name}<"))).count();
        assert!(count >= 8, "{name}: {count}");
    }
    for name in ["tensor_memory_encoding", "tensor_memory_scales_encoding"] {
        let count = pinned().filter(|(text, ..)| text.starts_with(&format!("#ttng.{name}<"))).count();
        assert!(count >= 20, "{name}: {count}");
    }
}

#[test]
fn text_round_trips() {
    for (text, ..) in pinned() {
        let encoding: Encoding = text.parse().expect(text);
        assert_eq!(encoding.to_string(), text);
        assert_eq!(encoding.to_string().parse::<Encoding>().as_ref(), Ok(&encoding));
    }
}

#[test]
fn distributed_layouts_reach_the_whole_tensor() {
    for (text, shape, _) in pinned() {
        let layout = layout(text, &shape);
        assert!(layout.is_surjective(), "{text}");
        assert!(layout.has_standard_out_dims(), "{text}");
        let sizes: Vec<u64> = layout.out_dims().map(|d| layout.out_size(d).unwrap()).collect();
        assert_eq!(sizes, shape);
    }
}

/// The element at every offset of a two-dimensional memory layout, rows of the tensor across.
fn memory(layout: &LinearLayout) -> Vec<(u64, u64)> {
    let element = |offset| {
        let point = layout.apply(&[(Dim::OFFSET, offset)]).unwrap();
        (point[0].1, point[1].1)
    };
    (0..layout.in_size(Dim::OFFSET).unwrap()).map(element).collect()
}

#[test]
fn swizzling_follows_its_definition() {
    // Paper, Definition 4.11: element (i, j) lies at column ((i / perPhase mod maxPhase) ⊕ j / vec) · vec
    // ⊕ (j mod vec) of its row.
    for (vec, per_phase, max_phase) in [(1, 1, 4), (2, 1, 4), (4, 2, 2), (8, 4, 1), (1, 2, 8)] {
        let text = format!(
            "#ttg.swizzled_shared<{{vec = {vec}, perPhase = {per_phase}, maxPhase = {max_phase}, order = [1, 0]}}>"
        );
        let held = memory(&layout(&text, &[16, 16]));
        for i in 0..16u64 {
            for j in 0..16u64 {
                let column = (((i / per_phase % max_phase) ^ (j / vec)) * vec) ^ (j % vec);
                assert_eq!(held[(i * 16 + column) as usize], (i, j), "{text}");
            }
        }
    }
}

#[test]
fn rotating_phases_advance_with_every_round() {
    for (vec, per_phase, max_phase) in [(1, 1, 2), (1, 2, 2), (1, 1, 4), (2, 1, 4)] {
        let text = format!(
            "#ttg.amd_rotating_shared<{{vec = {vec}, perPhase = {per_phase}, maxPhase = {max_phase}, order = [1, 0]}}>"
        );
        let held = memory(&layout(&text, &[32, 16]));
        for i in 0..32u64 {
            let phase = (i / per_phase % max_phase) ^ (i / (per_phase * max_phase) % max_phase);
            for j in 0..16u64 {
                let column = ((phase ^ (j / vec)) * vec) ^ (j % vec);
                assert_eq!(held[(i * 16 + column) as usize], (i, j), "{text}");
            }
        }
        assert_eq!(text.parse::<Encoding>().unwrap().to_string(), text);
    }
}

#[test]
fn padding_is_outside_the_map() {
    let short = "#ttg.padded_shared<[16:+2, 64:+4] {order = [1, 0], shape = [4, 8]}>";
    let long =
        "#ttg.padded_shared<[16:+2, 64:+4] {offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], block = []}>";
    let (short_encoding, long_encoding) =
        (short.parse::<Encoding>().unwrap(), long.parse::<Encoding>().unwrap());
    assert_eq!(short_encoding, long_encoding);
    assert_eq!(long_encoding.to_string(), short);
    let held = layout(short, &[4, 8]);
    assert_eq!(held.columns_of(Dim::OFFSET).len(), 5);
    assert_eq!(memory(&held)[9], (1, 1));
    let gap = "#ttg.padded_shared<[8:+1] {offset = [[0, 1], [2, 0], [4, 0], [1, 0]], block = []}>";
    assert_eq!(gap.parse::<Encoding>().unwrap().to_string(), gap);
    assert_eq!(memory(&layout(gap, &[8, 2]))[2], (2, 0));
    let refused = short_encoding.to_linear_layout(&[8, 8]).unwrap_err().to_string();
    assert_eq!(refused, "shape of a memory layout: expected the dimensions [[4, 8]], got [[8, 8]]");
}

#[test]
fn partitions_take_turns() {
    // Pieces of 4 rows: 0 and 2 in the first buffer, 1 and 3 in the second.
    let text = "#ttg.partitioned_shared<{numPartitions = 2, numGroups = 2, partitionDim = 0, partitionLayout = \
                #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}>";
    let layout = layout(text, &[16, 2]);
    assert_eq!(
        layout.to_string(),
        "{offset: [[0, 1], [1, 0], [2, 0], [8, 0]], partition: [[4, 0]], block: []} -> [dim0: 16, dim1: 2]"
    );
}

#[test]
fn scales_may_repeat_along_k_first() {
    let text = "#ttng.tensor_memory_scales_encoding<blockRepOrder = kThenMn>";
    assert_eq!(text.parse::<Encoding>().unwrap().to_string(), text);
    let columns = |text: &str| {
        let layout = layout(text, &[128, 8]);
        (0..layout.in_bits(Dim::COL))
            .map(|b| layout.basis_coords(Dim::COL, b).unwrap().to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(columns(text), [[0, 1], [0, 2], [32, 0], [0, 4], [64, 0]]);
    assert_eq!(columns("#ttng.tensor_memory_scales_encoding<>"), [[0, 1], [0, 2], [32, 0], [64, 0], [0, 4]]);
}

#[test]
fn generic_linear_warps_may_be_swizzled() {
    let text = "#ttg.generic_linear<{register = [[0, 1]], lane = [[1, 0]], warp = [[2, 1]], block = []}>";
    let layout = layout(text, &[4, 2]);
    assert_eq!(layout.apply(&[(Dim::WARP, 1)]).unwrap().as_slice(), &[(Dim::out(0), 2), (Dim::out(1), 1)]);
}

#[test]
fn blocks_divide_the_encodings_that_have_them() {
    let cga = |text: &str| text.parse::<Encoding>().unwrap().cga_layout();
    let blocked = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], \
                   order = [1, 0], CGALayout = [[1, 0], [0, 1]]}>";
    assert_eq!(cga(blocked), [[1, 0], [0, 1]]);
    assert_eq!(cga(&format!("#ttg.slice<{{dim = 0, parent = {blocked}}}>")), [[0], [1]]);
    assert_eq!(cga(&format!("#ttg.dot_op<{{opIdx = 0, parent = {blocked}}}>")), [[1, 0], [0, 0]]);
    assert_eq!(cga(&format!("#ttg.dot_op<{{opIdx = 1, parent = {blocked}}}>")), [[0, 0], [0, 1]]);
    let linear =
        "#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = [[2, 0], [4, 0], [0, 2]]}>";
    assert_eq!(cga(linear), [[1, 0], [2, 0], [0, 1]]);
}

fn refused(text: &str) -> (usize, String) {
    match text.parse::<Encoding>() {
        Err(Error::Parse { position, reason }) => (position, reason),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn syntax_errors_say_where() {
    assert_eq!(refused(""), (0, "expected `#`, found the end".into()));
    assert_eq!(refused("blocked"), (0, "expected `#`, found `b`".into()));
    assert_eq!(refused("#ttg.striped<{}>"), (0, "`#ttg.striped` is not a layout of Triton 3.9".into()));
    assert_eq!(refused("#ttg.blocked<{order = [1, x]}>"), (26, "expected a number".into()));
    assert_eq!(refused("#ttg.blocked<{order = [1 0]}>"), (25, "expected `,` or `]`, found `0`".into()));
    assert_eq!(
        refused("#ttg.blocked<{order = [1, 0]}> x"),
        (31, "unexpected `x` after the attribute".into())
    );
    assert_eq!(refused("#ttg.blocked<{order = [0]}>"), (0, "`sizePerThread` is missing".into()));
    assert_eq!(refused("#ttg.slice<{dim = 0, dim = 1}>"), (21, "`dim` is given twice".into()));
    assert_eq!(refused("#ttg.slice<{dim = 0, parent = 3}>"), (30, "`parent` must be an attribute".into()));
    assert_eq!(
        refused("#ttg.slice<{dim = 99999999999999999999}>"),
        (18, "99999999999999999999 is more than 64 bits hold".into())
    );
    assert_eq!(
        refused("#ttng.tensor_memory_encoding<blockM = 64, blockN = 32, colStride = 1, colour = 2>"),
        (70, "unknown parameter `colour`".into())
    );
    let deep = format!("#ttg.slice<{{parent = {}", "#a<{p = ".repeat(100_000));
    assert!(refused(&deep).1.starts_with("nested more than 64 deep"));
    assert!(
        refused("#ttg.linear<{register = [], lane = [], warp = [], block = []}>")
            .1
            .contains("without a basis")
    );
    assert!(
        refused("#ttg.linear<{register = [[3]], lane = [], warp = [], block = []}>").1.contains("reaches")
    );
}

#[test]
fn contradictions_are_errors() {
    let refuse = |text: &str, shape: &[u64]| {
        text.parse::<Encoding>().expect(text).to_linear_layout(shape).expect_err(text).to_string()
    };
    let blocked = "#ttg.blocked<{sizePerThread = [1, 3], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>";
    assert_eq!(refuse(blocked, &[16, 16]), "the size of `register` is 3, which is not a power of two");
    assert_eq!(refuse(blocked, &[16]), "blocked: it has 2 dimensions, the shape has 1");
    assert_eq!(
        refuse(blocked, &[16, 12]),
        "the size of dimension 1 of the shape is 12, which is not a power of two"
    );
    let mma = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>";
    let operand = format!("#ttg.dot_op<{{opIdx = 1, parent = {mma}, kWidth = 2}}>");
    assert_eq!(
        refuse(&operand, &[64, 64]),
        "dot_op: the right operand of version 3 is read from shared memory"
    );
    let shared = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>";
    assert_eq!(
        refuse(shared, &[64, 32]),
        "nvmma_shared: a swizzle of 128 bytes needs rows of 64 elements, not 32"
    );
    let order = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 1]}>";
    assert_eq!(
        refuse(order, &[4, 4]),
        "swizzled_shared: order [1, 1] does not list each of its 2 dimensions once"
    );
}

/// A pinned text with a few random edits.
fn damaged() -> impl Strategy<Value = String> {
    let texts: Vec<&'static str> = pinned().map(|(text, ..)| text).collect();
    let edit = (any::<prop::sample::Index>(), "[0-9a-z#<>{}\\[\\], =.:+é]{0,3}", 0usize..3);
    (prop::sample::select(texts), prop::collection::vec(edit, 1..4)).prop_map(|(text, edits)| {
        let mut chars: Vec<char> = text.chars().collect();
        for (at, insert, remove) in edits {
            let at = at.index(chars.len() + 1);
            let end = (at + remove).min(chars.len());
            chars.splice(at..end, insert.chars());
        }
        chars.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_panics(text in damaged(), shape in prop::collection::vec(0u64..300, 0..4), bits in prop::collection::vec(0u32..40, 1..4)) {
        if let Ok(encoding) = text.parse::<Encoding>() {
            let printed = encoding.to_string();
            prop_assert_eq!(printed.parse::<Encoding>(), Ok(encoding.clone()), "{}", printed);
            let powers: Vec<u64> = bits.iter().map(|b| 1 << b).collect();
            for shape in [&shape, &powers] {
                let _ = encoding.to_linear_layout(shape);
            }
            let _ = encoding.cga_layout();
        }
    }

    #[test]
    fn no_noise_panics(text in "\\PC{0,40}") {
        prop_assert!(text.parse::<Encoding>().is_err());
    }
}
