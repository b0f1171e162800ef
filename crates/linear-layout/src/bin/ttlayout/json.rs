//! The stable JSON formats.

use linear_layout::LinearLayout;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// `{"in_dims": {"register": [[0, 1], …], …}, "out_dims": [["dim0", 128], …]}`
pub fn layout(layout: &LinearLayout) -> String {
    to_string(&Layout(layout))
}

/// `{"error": "…"}`
pub fn error(message: &str) -> String {
    to_string(&std::collections::BTreeMap::from([("error", message)]))
}

fn to_string(value: &impl Serialize) -> String {
    // These values hold nothing that JSON cannot express.
    serde_json::to_string(value).unwrap_or_default()
}

struct Layout<'a>(&'a LinearLayout);

struct InDims<'a>(&'a LinearLayout);

impl Serialize for Layout<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let outs: Vec<(&str, u64)> = self.0.out_dim_bits().map(|(d, bits)| (d.name(), 1 << bits)).collect();
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("in_dims", &InDims(self.0))?;
        map.serialize_entry("out_dims", &outs)?;
        map.end()
    }
}

impl Serialize for InDims<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bases = |dim| -> Vec<Vec<u64>> {
            self.0.columns_of(dim).iter().map(|&c| self.0.coords(c).to_vec()).collect()
        };
        serializer.collect_map(self.0.in_dims().map(|dim| (dim.name(), bases(dim))))
    }
}
