//! The stable JSON formats.

use crate::LinearLayout;
use crate::target::Direction;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::pair::{Pair, Side, Way};

/// `{"in_dims": {"register": [[0, 1], …], …}, "out_dims": [["dim0", 128], …]}`
pub fn layout(layout: &LinearLayout) -> String {
    to_string(&Layout(layout))
}

/// `{"kind": …, "shuffles": n, "store": {…}, "load": {…}, "tiles": n, "shared_bytes": n, "cycles": n}`, the
/// sides `{"instruction": …, "count": n, "wavefronts": n, "minimum": n}` or null.
pub fn plan(pair: &Pair) -> String {
    match &pair.way {
        Way::Convert(plan) => to_string(&**plan),
        Way::Access(_) => to_string(&Access(pair)),
    }
}

/// `{"error": "…"}`
pub fn error(message: &str) -> String {
    to_string(&std::collections::BTreeMap::from([("error", message)]))
}

fn to_string(value: &impl Serialize) -> String {
    // These values hold nothing that JSON cannot express.
    serde_json::to_string(value).unwrap_or_default()
}

/// A transfer between registers and given memory, in the form of a conversion of which one side is missing.
struct Access<'a>(&'a Pair);

struct AccessSide<'a>(&'a Pair, Side<'a>);

impl Serialize for Access<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pair = self.0;
        let side = |direction: Direction| {
            let side = pair.sides().into_iter().find(|side| side.access.direction == direction);
            side.map(|side| AccessSide(pair, side))
        };
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("kind", pair.kind())?;
        map.serialize_entry("shuffles", &0)?;
        map.serialize_entry("store", &side(Direction::Store))?;
        map.serialize_entry("load", &side(Direction::Load))?;
        map.serialize_entry("tiles", &1)?;
        map.serialize_entry("shared_bytes", &pair.shared_bytes())?;
        map.serialize_entry("cycles", &pair.cycles())?;
        map.end()
    }
}

impl Serialize for AccessSide<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let AccessSide(pair, side) = self;
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("instruction", &pair.mnemonic(*side))?;
        map.serialize_entry("count", &side.access.count)?;
        map.serialize_entry("wavefronts", &side.access.wavefronts)?;
        map.serialize_entry("minimum", &side.access.minimum)?;
        map.end()
    }
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
