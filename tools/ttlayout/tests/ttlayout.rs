//! The `ttlayout` program, as its users run it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

const LAYOUT_A: &str =
    "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>";

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

fn shown(args: &[&str]) -> String {
    let output = ttlayout(args, "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn refused(args: &[&str]) -> String {
    let output = ttlayout(args, "");
    // 2 where the options make no sense, 1 where what they name does not.
    let usage = output.stderr.starts_with(b"error: ");
    assert_eq!(output.status.code(), Some(if usage { 2 } else { 1 }));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn the_table_is_the_tensor() {
    let table = shown(&[LAYOUT_A, "--shape", "16x16", "--dtype", "f16"]);
    let rows: Vec<&str> = table.lines().skip_while(|line| !line.is_empty()).skip(1).collect();
    assert_eq!(rows.len(), 16);
    // Figure 1: register 1 of thread 9 holds (2, 3), register 0 of thread 10 holds (2, 4).
    let cells: Vec<&str> = rows[2].split_whitespace().collect();
    assert_eq!((cells[3], cells[4]), ("w0:l9:r1", "w0:l10:r0"));
    assert!(table.contains("contiguous  2 elements along dim1"));
    assert!(table.contains("vector      32 bits of f16 on cuda:90"));
    assert!(!table.contains('\x1b'), "no colour into a pipe");
    assert!(shown(&[LAYOUT_A, "--shape", "16x16", "--color", "always"]).contains("\x1b["));
}

#[test]
fn copies_are_named() {
    let table = shown(&[LAYOUT_A, "--shape", "16x4"]);
    assert!(table.contains("broadcast   lane bits 0b110 (4 copies of every element)"), "{table}");
    assert!(table.contains("w0:l0:r0,w0:l2:r0,+2"), "{table}");
}

#[test]
fn a_tensor_of_three_dimensions_is_several_matrices() {
    let layout = "#ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [2, 4, 4], warpsPerCTA = [1, 1, 1], order = [2, 1, 0]}>";
    let table = shown(&[layout, "--shape", "2x4x4"]);
    assert!(table.contains("\n\ndim0 = 1\nl16  l17  l18  l19\nl20"), "{table}");
    assert!(table.contains("contiguous  1 element along dim2"));
}

#[test]
fn other_formats() {
    let matrix = shown(&[LAYOUT_A, "--shape", "16x16", "--format", "matrix"]);
    assert!(matrix.contains("dim1[1] |  .  .    |  1  .  .  .  .  |  ."), "{matrix}");
    let bases = shown(&[LAYOUT_A, "--shape", "16x16", "--format", "bases"]);
    assert_eq!(bases.lines().next(), Some("register = [[0, 1], [1, 0]]"));
    let svg = shown(&[LAYOUT_A, "--shape", "16x16", "--format", "svg"]);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<rect ").count(), 1 + 256);
    assert!(!svg.contains("stroke-dasharray"));
    assert_eq!(
        shown(&[LAYOUT_A, "--shape", "16x16", "--format", "json"]),
        concat!(
            r#"{"in_dims":{"register":[[0,1],[1,0]],"lane":[[0,2],[0,4],[0,8],[2,0],[4,0]],"warp":[[8,0]],"#,
            r#""block":[]},"out_dims":[["dim0",16],["dim1",16]]}"#,
            "\n"
        )
    );
}

#[test]
fn mistakes_are_one_sentence_and_no_success() {
    assert_eq!(
        refused(&[LAYOUT_A, "--shape", "16"]),
        "ttlayout: error: blocked: it has 2 dimensions, the shape has 1\n"
    );
    assert_eq!(
        refused(&["#ttg.blocked<{}>", "--shape", "16"]),
        "ttlayout: error: the layout cannot be read: at byte 0: `order` is missing\n"
    );
    assert!(
        refused(&[LAYOUT_A, "--shape", "16x16", "--dtype", "f12"]).contains("`f12` is not an element type")
    );
    assert!(refused(&[LAYOUT_A, "--shape", "16x16", "--target", "cuda:1"]).contains("cuda:1"));
    assert!(refused(&[LAYOUT_A]).starts_with("error: ") && refused(&[LAYOUT_A]).contains("--shape"));
    assert!(refused(&["--batch", "no-such-file"]).starts_with("ttlayout: error: cannot read no-such-file: "));
}

#[test]
fn a_batch_is_answered_line_by_line() {
    let request = r##"{"layout": "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 2, order = [1, 0]}>", "shape": [2, 2], "dtype": "f16", "target": "cuda:90", "num_warps": 4}"##;
    let output = ttlayout(&["--batch", "-"], &format!("{request}\nnonsense\n\n{request}\n"));
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<&str> = answers.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[0],
        r#"{"in_dims":{"offset":[[0,1],[1,1]],"block":[]},"out_dims":[["dim0",2],["dim1",2]]}"#
    );
    assert!(lines[1].starts_with(r#"{"error":"#));
    assert_eq!(lines[0], lines[2]);
}
