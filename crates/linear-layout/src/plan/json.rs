//! Plans as JSON, through serde: what is done and what it costs, without the register lists.

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use crate::plan::{AccessPlan, Conversion, ConversionPlan};

/// `{"instruction": …, "count": …, "wavefronts": …, "minimum": …}`, per warp.
struct Side<'a> {
    access: &'a AccessPlan,
    mnemonic: &'a str,
}

impl Serialize for Side<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("instruction", self.mnemonic)?;
        map.serialize_entry("count", &self.access.count)?;
        map.serialize_entry("wavefronts", &self.access.wavefronts)?;
        map.serialize_entry("minimum", &self.access.minimum)?;
        map.end()
    }
}

/// `{"kind": "noop|register|shuffle|shared|cluster", "shuffles": n, "store": {…}|null, "load": {…}|null,
/// "tiles": n, "shared_bytes": n, "cycles": n}`; cycles are rounded up.
impl Serialize for ConversionPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shared = match &self.conversion {
            Conversion::SharedMemory(plan) | Conversion::Cluster(plan) => Some(plan),
            _ => None,
        };
        let sides = shared.zip(self.mnemonics.as_ref());
        let mut s = serializer.serialize_struct("ConversionPlan", 7)?;
        s.serialize_field("kind", self.kind())?;
        s.serialize_field("shuffles", &self.cost.shuffles)?;
        let store = sides.map(|(p, m)| Side { access: &p.store, mnemonic: &m.0 });
        let load = sides.map(|(p, m)| Side { access: &p.load, mnemonic: &m.1 });
        s.serialize_field("store", &store)?;
        s.serialize_field("load", &load)?;
        s.serialize_field("tiles", &shared.map_or(1, |p| p.tiles))?;
        s.serialize_field("shared_bytes", &self.shared_bytes())?;
        s.serialize_field("cycles", &(self.cost.cycles.ceil() as u64))?;
        s.end()
    }
}
