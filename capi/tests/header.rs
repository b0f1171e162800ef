//! Holds `ttopt.h` and the Rust together: functions, numbers, and the layout of structures.

use std::collections::BTreeSet;
use std::mem::offset_of;
use std::process::Command;
use ttopt::{TtoptDiagnostic, TtoptOptions, TtoptOverride};

const HEADER: &str = include_str!("../include/ttopt.h");
const SOURCE: &str = include_str!("../src/lib.rs");

/// The names that follow `marker` in a text.
fn names<'a>(text: &'a str, marker: &str) -> BTreeSet<&'a str> {
    let rests = text.split(marker).skip(1);
    rests.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")).collect()
}

#[test]
fn the_header_declares_what_is_there() {
    let exported: BTreeSet<&str> =
        names(SOURCE, "extern \"C\" fn ").into_iter().filter(|name| name.starts_with("ttopt")).collect();
    let code: String =
        HEADER.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, code)| code)).collect();
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    let declared: BTreeSet<&str> = words.filter(|word| word.starts_with("ttopt")).collect();
    assert_eq!(exported, declared);
    assert!(exported.len() > 10);
}

#[test]
fn structures_lie_in_c_as_in_rust() {
    macro_rules! fields {
        ($ty:ident: $($field:ident),*) => {
            [$((concat!("offsetof(", stringify!($ty), ", ", stringify!($field), ")"), offset_of!($ty, $field))),*]
        };
    }
    let mut wanted = fields!(TtoptOptions: size, target, num_warps, num_stages, num_ctas, stop_after, flags,
        max_registers, ptxas, libdevice, lld, device_libraries, libraries, num_libraries, ptxas_options,
        num_ptxas_options, diagnostic, user_data, cancellation, overrides, num_overrides)
    .to_vec();
    wanted.extend(
        fields!(TtoptDiagnostic: size, message, file, notes, num_notes, severity, line, column, end_line,
        end_column),
    );
    wanted.extend(fields!(TtoptOverride: size, name, bytes, length, stage));
    wanted.push(("sizeof(TtoptOverride)", size_of::<TtoptOverride>()));
    wanted.push(("sizeof(TtoptOptions)", size_of::<TtoptOptions>()));
    wanted.push(("sizeof(TtoptDiagnostic)", size_of::<TtoptDiagnostic>()));
    wanted.push(("TTOPT_ABI_VERSION", ttopt::ABI_VERSION as usize));
    let statuses = [ttopt::OK, ttopt::FAILED, ttopt::CANCELLED, ttopt::INTERNAL, ttopt::INVALID_ARGUMENT];
    let names =
        ["OK", "FAILED", "CANCELLED", "INTERNAL", "INVALID_ARGUMENT"].map(|name| format!("TTOPT_{name}"));
    wanted.extend(names.iter().zip(statuses).map(|(name, status)| (name.as_str(), status as usize)));

    let mut program = "#include \"ttopt.h\"\n#include <stdio.h>\nint main(void) {\n".to_owned();
    for (expression, _) in &wanted {
        program += &format!("  printf(\"%zu\\n\", (size_t)({expression}));\n");
    }
    program += "}\n";
    let dir = tempfile::tempdir().expect("a directory");
    let (source, binary) = (dir.path().join("sizes.c"), dir.path().join("sizes"));
    std::fs::write(&source, program).expect("written");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Werror", "-I", include, "-o"]).arg(&binary).arg(&source);
    assert!(compiler.status().expect("a C compiler").success());
    let printed = Command::new(&binary).output().expect("it runs").stdout;
    let printed: Vec<usize> =
        String::from_utf8_lossy(&printed).lines().map(|line| line.parse().expect("a number")).collect();
    let wanted_numbers: Vec<usize> = wanted.iter().map(|(_, number)| *number).collect();
    assert_eq!(printed, wanted_numbers, "{wanted:?}");
}
