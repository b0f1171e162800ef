//! `ttlayout --to`, as its users run it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const ROWS: &str =
    "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>";
const COLUMNS: &str =
    "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>";
const MMA: &str =
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>";
const TWO_WARPS: &str =
    "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>";
const PLAIN: &str = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";

fn ttlayout(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ttlayout"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ttlayout starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("ttlayout reads");
    child.wait_with_output().expect("ttlayout ends")
}

/// The answer for a 64×64 tensor of f16.
fn shown(from: &str, to: &str, more: &[&str]) -> String {
    let args = [&[from, "--shape", "64x64", "--dtype", "f16", "--to", to], more].concat();
    let output = ttlayout(&args, "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn refused(args: &[&str]) -> String {
    let output = ttlayout(args, "");
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    assert!(output.stdout.is_empty());
    let message = String::from_utf8(output.stderr).expect("text");
    message.trim_end().strip_prefix("ttlayout: error: ").expect("a sentence of ttlayout").to_owned()
}

#[test]
fn the_plan_is_told_step_by_step() {
    let text = shown(ROWS, MMA, &[]);
    for part in [
        "through shared memory: 8192 bytes per block",
        "  1. store: 4 × st.shared.v4.b32, 16 wavefronts (minimum 16)",
        "  2. wait for the warps of the block",
        "  3. load: 4 × ldmatrix.x4, 16 wavefronts (minimum 16)",
        "cycles for 4 warps on cuda:90; per warp 4 stores, 4 loads, ",
        "banks of the first store (st.shared.v4.b32) of warp 0: 4 wavefronts, no conflicts",
        "banks of the first load (ldmatrix.x4) of warp 0: 4 wavefronts, no conflicts",
        "   phase 0   0   0   0   0   1   1   1   1   2   2   2   2   3   3   3   3   4 ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains('\x1b') && !text.contains("0!"));
}

#[test]
fn conflicts_are_marked() {
    let text = shown(COLUMNS, PLAIN, &[]);
    assert!(text.contains("32 wavefronts, 28 more than without conflicts"), "{text}");
    assert!(text.contains("   phase 1   8!  8!  8!  8!  ."), "{text}");
    let red = shown(COLUMNS, PLAIN, &["--color", "always"]);
    assert!(red.contains("\x1b[1;31m  8!\x1b[0m"));
    let svg = shown(COLUMNS, PLAIN, &["--format", "svg"]);
    assert_eq!(svg.matches("#d61f1f").count(), 32 * 4);
    assert!(!shown(ROWS, MMA, &["--format", "svg"]).contains("#d61f1f"));
}

#[test]
fn json_has_the_keys_that_tools_know() {
    let answer = shown(ROWS, MMA, &["--format", "json"]);
    assert_eq!(answer.lines().count(), 1);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["kind"], "shared");
    assert_eq!(answer["shuffles"], 0);
    assert_eq!(
        answer["store"],
        json!({"instruction": "st.shared.v4.b32", "count": 4, "wavefronts": 16, "minimum": 16})
    );
    assert_eq!(
        answer["load"],
        json!({"instruction": "ldmatrix.x4", "count": 4, "wavefronts": 16, "minimum": 16})
    );
    assert_eq!(answer["shared_bytes"], 8192);
    assert!(answer["cycles"].is_u64());

    let same: Value = serde_json::from_str(&shown(ROWS, ROWS, &["--format", "json"])).expect("JSON");
    assert_eq!((&same["kind"], &same["store"], &same["cycles"]), (&json!("noop"), &Value::Null, &json!(0)));
}

#[test]
fn given_memory_is_only_written_or_only_read() {
    let json =
        |from, to| -> Value { serde_json::from_str(&shown(from, to, &["--format", "json"])).expect("JSON") };
    let (store, load) = (json(ROWS, PLAIN), json(PLAIN, MMA));
    assert_eq!((&store["kind"], &load["kind"]), (&json!("shared"), &json!("shared")));
    assert_eq!(
        store["store"],
        json!({"instruction": "st.shared.v4.b32", "count": 4, "wavefronts": 16, "minimum": 16})
    );
    assert_eq!(
        load["load"],
        json!({"instruction": "ldmatrix.x4", "count": 4, "wavefronts": 128, "minimum": 16})
    );
    assert_eq!((&store["load"], &load["store"]), (&Value::Null, &Value::Null));
    assert_eq!((&store["shared_bytes"], &load["shared_bytes"]), (&json!(8192), &json!(8192)));
    // After every row of 64 elements but the last, 8 of padding.
    let padded = json("#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>", MMA);
    assert_eq!(padded["shared_bytes"], 2 * (64 * 64 + 63 * 8));
    assert!(shown(PLAIN, MMA, &[]).contains("read registers from shared memory: 8192 bytes per block"));
}

#[test]
fn the_map_leads_from_places_to_places() {
    let bases = shown(ROWS, MMA, &["--format", "bases"]);
    // Register 1 of a row is the next element: in the same lane of the tile.
    assert_eq!(
        bases.lines().next(),
        Some("register = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [16, 0, 0, 0]]")
    );
    let matrix = shown(ROWS, MMA, &["--format", "matrix"]);
    assert!(matrix.starts_with("B⁻¹A"));
    assert!(matrix.contains("register[1] |  .  .  .  .  .  |  .  .  .  .  .  |  .  1"), "{matrix}");
}

#[test]
fn the_picture_shows_both_layouts_and_the_banks() {
    let svg = shown(ROWS, MMA, &["--format", "svg"]);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<g ").count(), 4);
    assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
    // White, two tensors, and 4 phases of 32 banks, stored and loaded.
    assert_eq!(svg.matches("<rect ").count(), 1 + 2 * 64 * 64 + 2 * 4 * 32);
    assert!(svg.contains("A  #ttg.blocked&lt;{sizePerThread"));
    assert!(svg.contains("4 × ldmatrix.x4, 16 wavefronts (minimum 16)"));
}

#[test]
fn mistakes_are_one_sentence_and_exit_one() {
    let tmem = "#ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>";
    let pair = |shape: &str, to: &str| refused(&[ROWS, "--shape", shape, "--dtype", "f16", "--to", to]);
    assert_eq!(
        pair("64x64", "#ttg.blocked<{}>"),
        "the layout to convert to cannot be read: at byte 0: `order` is missing"
    );
    assert_eq!(
        pair("64x64", TWO_WARPS),
        "the layout has 4 warps, the one to convert to has 2; they must be the same"
    );
    assert_eq!(pair("64x64", tmem), "no plan leads to or from tensor_memory_encoding");
    assert_eq!(
        refused(&[PLAIN, "--shape", "64x64", "--to", PLAIN]),
        "both layouts are of shared memory; a plan leads to registers or from them"
    );
    assert!(pair("0x4", MMA).contains("is 0, which is not a power of two"));
    assert!(pair("3x5", MMA).contains("is 3, which is not a power of two"));
    assert!(pair("64", MMA).contains("the shape has 1"));
    assert!(pair("64x", MMA).contains("`64x` is not a shape"));
    assert!(pair("16777216x16777216", MMA).contains("too many to plan for"));
    assert!(pair("1048576x1024", MMA).contains("registers"));
    assert!(pair("64x64", "#ttg.slice<{dim = 0, parent = #ttg.x<{}>}>").contains("is not a layout"));
    assert!(refused(&[ROWS, "--shape", "64x64", "--to", MMA, "--dtype", "f12"]).contains("`f12`"));
    assert!(refused(&[ROWS, "--shape", "64x64", "--to", MMA, "--target", "cuda:1"]).contains("`cuda:1`"));
    let lanes = refused(&[
        "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>",
        "--shape",
        "64x64",
        "--to",
        ROWS,
    ]);
    assert_eq!(lanes, "the layout has 64 lanes, the target cuda:90 has 32");
    let padding = "#ttg.padded_shared<[64:+4611686018427387904] {order = [1, 0], shape = [64, 64]}>";
    assert_eq!(pair("64x64", padding), "padded_shared inserts too much padding to plan for");
}

#[test]
fn a_batch_answers_pairs() {
    let request = |from: &str, to: &str, warps: u64| json!({"layout": from, "shape": [64, 64], "dtype": "f16", "to": to, "target": "cuda:90", "num_warps": warps});
    let requests = [
        request(ROWS, MMA, 4),
        request(ROWS, MMA, 8),
        request(ROWS, TWO_WARPS, 4),
        request(PLAIN, TWO_WARPS, 2),
        request(ROWS, "#ttg.nothing", 4),
        request(ROWS, ROWS, 4),
    ];
    let input: Vec<String> = requests.iter().map(Value::to_string).collect();
    let output = ttlayout(&["--batch", "-"], &input.join("\n"));
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), requests.len());
    assert_eq!(text.lines().next(), Some(shown(ROWS, MMA, &["--format", "json"]).trim_end()));
    assert_eq!(answers[1], json!({"error": "`num_warps` is 8, but the layout has 4"}));
    assert_eq!(answers[2], json!({"error": "`num_warps` is 4, but the layout to convert to has 2"}));
    assert_eq!(answers[3]["store"], Value::Null);
    assert!(answers[4]["error"].as_str().is_some_and(|e| e.starts_with("the layout to convert to cannot")));
    assert_eq!(answers[5]["kind"], "noop");
}
