use crate::launch::{Launch, Outcome};
use serde_json::json;

/// Counts and findings as JSON.
pub fn report(launch: &Launch, outcome: &Outcome) -> String {
    let findings: Vec<serde_json::Value> = outcome
        .findings
        .iter()
        .map(|f| {
            json!({
                "kind": f.kind.name(), "message": f.message, "kernel": f.kernel, "file": f.file, "line": f.line,
                "program": f.program, "warp": f.warp, "lane": f.lane, "address": f.address, "count": f.count,
                "addresses": f.addresses.map(|(a, b)| [a, b]), "instructions": f.places,
                "other": f.other.as_ref().map(|o| {
                    json!({
                        "file": o.file, "line": o.line, "program": o.program, "warp": o.warp,
                        "lane": (o.lane < 64).then_some(o.lane),
                    })
                }),
            })
        })
        .collect();
    let mut v = outcome.counts.json();
    v["grid"] = json!(launch.grid);
    v["findings"] = json!(findings);
    v["seconds"] = json!(outcome.seconds);
    v["complete"] = json!(!outcome.stopped);
    format!("{v:#}\n")
}
