//! One JSON request a line in, one JSON answer a line out.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde_json::Value;

use linear_layout::show::{self, Format, Request};

/// Answers every line of the file at `path`. A bad line gets an `{"error": …}` of its own; only an
/// unreadable file is an error of the whole.
pub fn run(path: &Path, out: &mut impl Write) -> Result<io::Result<()>, String> {
    let unreadable = |error: io::Error| format!("cannot read {}: {error}", path.display());
    let input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path).map_err(unreadable)?))
    };
    for line in input.split(b'\n') {
        let line = line.map_err(unreadable)?;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = answer(&line).unwrap_or_else(|message| show::error_json(&message));
        if let Err(error) = writeln!(out, "{answer}") {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

fn answer(line: &[u8]) -> Result<String, String> {
    let value: Value = serde_json::from_slice(line).map_err(|error| format!("not JSON: {error}"))?;
    let request = request(&value)?;
    show::text(&request, Format::Json)
}

fn request(value: &Value) -> Result<Request, String> {
    let object = value.as_object().ok_or("a request is a JSON object")?;
    let known = ["layout", "shape", "dtype", "to", "target", "num_warps"];
    if let Some(key) = object.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("unknown key `{key}`; a request has {}", known.join(", ")));
    }
    let given = |key: &str| object.get(key).filter(|value| !value.is_null());
    let string = |key: &str| match given(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("`{key}` must be a string, not {other}")),
    };
    let sizes = given("shape").and_then(Value::as_array).ok_or("`shape` must be a list of sizes")?;
    let size = |v: &Value| v.as_u64().ok_or_else(|| format!("`shape` must hold sizes, not {v}"));
    let warps = |v: &Value| {
        v.as_u64().filter(|&n| n > 0).ok_or_else(|| "`num_warps` must be a positive number".to_owned())
    };
    Ok(Request {
        layout: string("layout")?.ok_or("`layout` is missing")?,
        shape: sizes.iter().map(size).collect::<Result<_, _>>()?,
        dtype: string("dtype")?.unwrap_or_else(|| "f32".into()),
        to: string("to")?,
        target: string("target")?.unwrap_or_else(|| "cuda:90".into()),
        num_warps: given("num_warps").map(warps).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &str) -> String {
        answer(line.as_bytes()).unwrap_or_else(|message| show::error_json(&message))
    }

    #[test]
    fn a_request_is_answered_with_the_layout() {
        let line = r##"{"layout": "#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = []}>", "shape": [2, 2]}"##;
        assert_eq!(
            ask(line),
            r#"{"in_dims":{"register":[[0,1]],"lane":[[1,0]],"warp":[],"block":[]},"out_dims":[["dim0",2],["dim1",2]]}"#
        );
    }

    #[test]
    fn a_bad_request_is_answered_with_an_error() {
        assert_eq!(ask("[1]"), r#"{"error":"a request is a JSON object"}"#);
        assert!(ask("{").starts_with(r#"{"error":"not JSON: "#));
        assert_eq!(ask(r#"{"shape": [2]}"#), r#"{"error":"`layout` is missing"}"#);
        assert_eq!(ask(r#"{"layout": "", "shape": [-1]}"#), r#"{"error":"`shape` must hold sizes, not -1"}"#);
        assert_eq!(
            ask(r##"{"layout": "#ttg.x<{}>", "shape": [2]}"##),
            r##"{"error":"the layout cannot be read: at byte 0: `#ttg.x` is not a layout of Triton 3.9"}"##
        );
        assert!(ask(r#"{"layout": "", "shape": [2], "colour": 1}"#).contains("unknown key `colour`"));
        assert!(ask(r#"{"layout": "", "shape": [2], "num_warps": 0}"#).contains("positive number"));
    }
}
