//! What a kernel costs.
//!
//! Every instruction is counted where it stands, so all sums can be given per kernel, per class and per
//! source line. The units:
//!
//! * *instructions* are executed warp instructions, *lanes* the active lanes summed over them. Instructions
//!   are those of the LLVM IR and of inline assembly after decoding: what is only a renaming of registers
//!   (vector inserts and extracts, bitcasts, phis on their own) does not count, copies on loop edges count
//!   as moves. Machine code differs from this by what the code generator fuses and adds.
//! * *sectors* are the distinct 32-byte pieces of global memory that one warp instruction touches
//!   (of asynchronous copies of 16 bytes a lane, see [`copy_sectors`]); the *minimum* is what the same number of distinct bytes needs at least.
//! * *wavefronts* are the passes of shared memory: a pass serves one word of each bank of
//!   4 bytes, and which lanes go together is told in [`crate::banks`]. On NVIDIA accesses of 8 bytes a lane go in two
//!   halves of the warp, of 16 bytes in four quarters; in each part the words in the busiest bank decide. Lanes that read the same word share it. Where all lanes of
//!   both parts of a half (16 bytes) or of the warp (8 bytes) come in pairs with one address, neighbours or
//!   next but one, NVIDIA's memory serves the two parts of a load as one. `ldmatrix` and
//!   `stmatrix` take one part per 8×8 matrix. *Conflicts* are the wavefronts beyond one for each part. The *minimum* is the number of distinct words over 32.
//! * *mma operations* are multiplications and additions: 2·m·n·k of every matrix instruction.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::bytecode::*;
use crate::ir::Loc;

/// Classes of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Class {
    Float32,
    Float64,
    Half,
    Integer,
    Convert,
    Special,
    Move,
    Branch,
    GlobalLoad,
    GlobalStore,
    SharedLoad,
    SharedStore,
    Local,
    Atomic,
    AsyncCopy,
    Shuffle,
    Vote,
    Barrier,
    Matrix,
    Other,
}

impl Class {
    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Class::Float32 => "fp32",
            Class::Float64 => "fp64",
            Class::Half => "fp16",
            Class::Integer => "integer",
            Class::Convert => "convert",
            Class::Special => "special-function",
            Class::Move => "move",
            Class::Branch => "branch",
            Class::GlobalLoad => "global-load",
            Class::GlobalStore => "global-store",
            Class::SharedLoad => "shared-load",
            Class::SharedStore => "shared-store",
            Class::Local => "local",
            Class::Atomic => "atomic",
            Class::AsyncCopy => "async-copy",
            Class::Shuffle => "shuffle",
            Class::Vote => "vote",
            Class::Barrier => "barrier",
            Class::Matrix => "matrix",
            Class::Other => "other",
        }
    }
}

fn float_class(f: Fmt) -> Class {
    match f {
        Fmt::F32 => Class::Float32,
        Fmt::F64 => Class::Float64,
        _ => Class::Half,
    }
}

/// The class of an operation.
pub fn class(op: &Op) -> Class {
    match op {
        Op::Mov { .. } | Op::Freeze { .. } | Op::Undef { .. } | Op::Special { .. } | Op::Pick { .. } => {
            Class::Move
        }
        Op::Int { .. }
        | Op::IntUn { .. }
        | Op::IntTern { .. }
        | Op::ICmp { .. }
        | Op::Select { .. }
        | Op::MapShared { .. }
        | Op::RankOf { .. }
        | Op::Lea { .. }
        | Op::Bits { .. }
        | Op::Join { .. }
        | Op::Mbcnt { .. } => Class::Integer,
        Op::Float { f, .. }
        | Op::Fma { f, .. }
        | Op::FCmp { f, .. }
        | Op::FClass { f, .. }
        | Op::Dot2 { f, .. } => float_class(*f),
        Op::Med3 { .. } => Class::Float32,
        Op::FloatUn { op, f, .. } => match op {
            FloatUn::Neg | FloatUn::Abs | FloatUn::Canonical => float_class(*f),
            FloatUn::Floor | FloatUn::Ceil | FloatUn::Trunc | FloatUn::Rint | FloatUn::Round => {
                Class::Convert
            }
            _ => Class::Special,
        },
        Op::Cvt { .. } => Class::Convert,
        Op::Ld { at, .. } => match at.space {
            Space::Shared => Class::SharedLoad,
            Space::Local => Class::Local,
            _ => Class::GlobalLoad,
        },
        Op::St { at, .. } => match at.space {
            Space::Shared => Class::SharedStore,
            Space::Local => Class::Local,
            _ => Class::GlobalStore,
        },
        Op::LdMatrix { .. } => Class::SharedLoad,
        Op::StMatrix { .. } => Class::SharedStore,
        Op::Atom { .. } => Class::Atomic,
        Op::CpAsync { .. }
        | Op::CpCommit { .. }
        | Op::CpWait { .. }
        | Op::CpMbarArrive { .. }
        | Op::MapReplace { .. }
        | Op::MapCopy { .. }
        | Op::TmaLoad { .. }
        | Op::TmaStore { .. }
        | Op::BulkLoad { .. }
        | Op::BulkMove { .. }
        | Op::StAsync { .. }
        | Op::BulkStore { .. }
        | Op::BulkCommit { .. }
        | Op::BulkWait { .. }
        | Op::TensorMove { .. }
        | Op::TensorWait { .. } => Class::AsyncCopy,
        Op::Shfl { .. } | Op::Permute { .. } | Op::Dpp(_) | Op::ReadLane { .. } | Op::WriteLane { .. } => {
            Class::Shuffle
        }
        Op::Vote { .. } | Op::Match { .. } | Op::Elect { .. } => Class::Vote,
        Op::WarpSync { .. }
        | Op::Bar { .. }
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::MbarInit { .. }
        | Op::MbarInval { .. }
        | Op::MbarArrive { .. }
        | Op::MbarTry { .. }
        | Op::FenceAsync { .. } => Class::Barrier,
        Op::Mma(_) | Op::Wgmma(_) | Op::WgmmaCommit | Op::WgmmaWait { .. } => Class::Matrix,
        Op::Jump { .. } | Op::Branch { .. } | Op::Exit => Class::Branch,
        Op::Print { .. }
        | Op::Message { .. }
        | Op::Assert { .. }
        | Op::Trap
        | Op::Nop(_)
        | Op::Fence { .. }
        | Op::WgmmaFence => Class::Other,
    }
}

/// Floating or integer operations of one matrix instruction of a warp.
fn matrix_ops(op: &Op) -> u64 {
    match op {
        Op::Mma(m) => {
            let blocks = if let MmaLayout::Mfma { blocks } = m.layout { blocks } else { 1 };
            2 * u64::from(m.shape.0 * m.shape.1) * u64::from(m.shape.2 * blocks)
        }
        Op::Wgmma(w) => 2 * 16 * u64::from(w.n * w.k),
        _ => 0,
    }
}

/// Counters of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// Executed warp instructions.
    pub instructions: u64,
    /// Active lanes summed over them.
    pub lanes: u64,
    /// Sectors of global memory.
    pub sectors: u64,
    /// The least number of sectors for the bytes touched.
    pub min_sectors: u64,
    /// Bytes moved to or from global memory.
    pub global_bytes: u64,
    /// Wavefronts of shared memory.
    pub wavefronts: u64,
    /// The least number of wavefronts for the words touched.
    pub min_wavefronts: u64,
    /// Wavefronts of shared memory beyond the first of each part.
    pub conflicts: u64,
    /// Bytes moved to or from shared memory.
    pub shared_bytes: u64,
    /// Multiplications and additions of matrix instructions.
    pub mma_ops: u64,
}

impl Count {
    fn add(&mut self, o: &Count) {
        self.instructions += o.instructions;
        self.lanes += o.lanes;
        self.sectors += o.sectors;
        self.min_sectors += o.min_sectors;
        self.global_bytes += o.global_bytes;
        self.wavefronts += o.wavefronts;
        self.min_wavefronts += o.min_wavefronts;
        self.conflicts += o.conflicts;
        self.shared_bytes += o.shared_bytes;
        self.mma_ops += o.mma_ops;
    }

    fn json(&self) -> Value {
        json!({
            "instructions": self.instructions, "lanes": self.lanes,
            "global_sectors": self.sectors, "global_sectors_min": self.min_sectors, "global_bytes": self.global_bytes,
            "shared_wavefronts": self.wavefronts, "shared_wavefronts_min": self.min_wavefronts,
            "bank_conflicts": self.conflicts,
            "shared_bytes": self.shared_bytes, "mma_ops": self.mma_ops,
        })
    }
}

/// Counters of all instructions of a kernel.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// One entry per instruction.
    pub at: Vec<Count>,
}

impl Counts {
    /// Zero for `n` instructions.
    pub fn new(n: usize) -> Counts {
        Counts { at: vec![Count::default(); n] }
    }

    /// Adds the counters of another run of the same kernel.
    pub fn merge(&mut self, other: &Counts) {
        for (a, b) in self.at.iter_mut().zip(&other.at) {
            a.add(b);
        }
    }

    /// Sums by class, by source line, and in total.
    pub fn summary(&self, p: &Program) -> Summary {
        let mut s = Summary::default();
        for ((count, op), loc) in self.at.iter().zip(p.code.iter()).zip(p.locs.iter()) {
            if count.instructions == 0 {
                continue;
            }
            let mut c = *count;
            c.mma_ops += matrix_ops(op) * c.instructions;
            s.total.add(&c);
            s.by_class.entry(class(op)).or_default().add(&c);
            s.by_line.entry(*loc).or_default().add(&c);
            s.by_line_class.entry((*loc, class(op))).or_default().add(&c);
        }
        s.files = p.files.clone();
        s.kernel = p.name.clone();
        s
    }
}

/// Sums of counters.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The kernel.
    pub kernel: String,
    /// Over the kernel.
    pub total: Count,
    /// By class of instruction.
    pub by_class: BTreeMap<Class, Count>,
    /// By source line.
    pub by_line: BTreeMap<Loc, Count>,
    /// By source line and class.
    pub by_line_class: BTreeMap<(Loc, Class), Count>,
    files: Vec<String>,
}

impl Summary {
    fn place(&self, l: &Loc) -> String {
        if l.line == 0 {
            return "(no line)".into();
        }
        let file = self.files.get(l.file as usize).map_or("", String::as_str);
        format!("{}:{}", file.rsplit('/').next().unwrap_or(file), l.line)
    }

    /// Warp instructions of a class.
    pub fn instructions(&self, c: Class) -> u64 {
        self.by_class.get(&c).map_or(0, |c| c.instructions)
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let classes: serde_json::Map<String, Value> =
            self.by_class.iter().map(|(c, n)| (c.name().to_owned(), n.json())).collect();
        let lines: Vec<Value> = self
            .by_line
            .iter()
            .map(|(l, n)| {
                let mut v = n.json();
                v["file"] = json!(self.files.get(l.file as usize).map_or("", String::as_str));
                v["line"] = json!(l.line);
                let of: serde_json::Map<String, Value> = self
                    .by_line_class
                    .iter()
                    .filter(|((k, _), _)| k == l)
                    .map(|((_, c), n)| (c.name().to_owned(), json!(n.instructions)))
                    .collect();
                v["instructions_by_class"] = Value::Object(of);
                v
            })
            .collect();
        json!({ "kernel": self.kernel, "total": self.total.json(), "classes": classes, "lines": lines })
    }

    /// As tables: classes, then the source lines that cost something.
    pub fn table(&self) -> String {
        let mut rows =
            vec![["class", "warp instr", "lanes", "sectors", "min", "wavefronts", "min"].map(str::to_owned)];
        let dash = |n: u64, show: bool| if show { n.to_string() } else { "-".to_owned() };
        let mut row = |name: String, c: &Count| {
            rows.push([
                name,
                c.instructions.to_string(),
                c.lanes.to_string(),
                dash(c.sectors, c.sectors > 0),
                dash(c.min_sectors, c.sectors > 0),
                dash(c.wavefronts, c.wavefronts > 0),
                dash(c.min_wavefronts, c.wavefronts > 0),
            ]);
        };
        for (c, n) in &self.by_class {
            row(c.name().to_owned(), n);
        }
        row("total".to_owned(), &self.total);
        row(String::new(), &Count::default());
        for (l, n) in &self.by_line {
            row(self.place(l), n);
        }
        let blank = self.by_class.len() + 2;
        rows[blank] =
            ["line", "warp instr", "lanes", "sectors", "min", "wavefronts", "min"].map(str::to_owned);
        let mut widths = [0; 7];
        for r in &rows {
            for (w, cell) in widths.iter_mut().zip(r) {
                *w = (*w).max(cell.len());
            }
        }
        let mut out = String::new();
        for (i, r) in rows.iter().enumerate() {
            if i == blank {
                out.push('\n');
            }
            out.push_str(&format!("{:<w$}", r[0], w = widths[0]));
            for (cell, w) in r.iter().zip(widths).skip(1) {
                out.push_str(&format!("  {cell:>w$}"));
            }
            out.push('\n');
        }
        let t = &self.total;
        let percent = |min: u64, n: u64| if n == 0 { 100.0 } else { 100.0 * min as f64 / n as f64 };
        out.push_str(&format!(
            "\nglobal: {} bytes, coalescing efficiency {:.1}%; shared: {} bytes, {} extra wavefronts ({:.1}% of the minimum); matrix operations: {}\n",
            t.global_bytes,
            percent(t.min_sectors, t.sectors),
            t.shared_bytes,
            t.wavefronts.saturating_sub(t.min_wavefronts),
            percent(t.min_wavefronts, t.wavefronts),
            t.mma_ops
        ));
        out
    }
}

/// Sectors of 32 bytes touched by lanes that each access `bytes` from their address on, the least possible
/// number, and the bytes.
pub fn sectors(addresses: &[u64], active: u64, bytes: u64) -> (u64, u64, u64) {
    let mut list = [0u64; 128];
    let mut n = 0;
    let mut sorted = true;
    let mut lanes = 0;
    let per_lane = bytes.div_ceil(32) + 1;
    if per_lane * addresses.len() as u64 > 128 {
        return many_sectors(addresses, active, bytes);
    }
    // Distinct addresses, for the minimum: in sorted order duplicates are neighbours.
    let mut distinct = 0;
    let mut last = u64::MAX;
    for (l, a) in addresses.iter().enumerate() {
        if active >> l & 1 == 0 {
            continue;
        }
        lanes += 1;
        distinct += u64::from(*a != last);
        last = *a;
        for s in a >> 5..=(a + bytes - 1) >> 5 {
            if n > 0 && list[n - 1] == s {
                continue;
            }
            sorted &= n == 0 || list[n - 1] < s;
            list[n] = s;
            n += 1;
        }
    }
    if !sorted {
        list[..n].sort_unstable();
        let mut all: Vec<u64> =
            addresses.iter().enumerate().filter(|(l, _)| active >> l & 1 != 0).map(|(_, a)| *a).collect();
        all.sort_unstable();
        all.dedup();
        distinct = all.len() as u64;
    }
    let unique = if n == 0 { 0 } else { 1 + list[..n].windows(2).filter(|w| w[0] != w[1]).count() as u64 };
    (unique, (distinct * bytes).div_ceil(32), lanes * bytes)
}

/// Sectors of asynchronous copies of 16 bytes a lane, as an H200 counts them: what two neighbouring lanes take from one
/// line of 128 bytes is one, however it lies in the line (docs/simt.md).
pub fn copy_sectors(addresses: &[u64], active: u64) -> u64 {
    let lanes = addresses.iter().enumerate().filter(|(l, _)| active >> l & 1 != 0);
    // Pairs follow each other, so only the two lanes of one can agree.
    let mut last = None;
    let mut count = 0;
    for (l, address) in lanes {
        let piece = Some((l / 2, address >> 7));
        count += u64::from(piece != last);
        last = piece;
    }
    count
}

fn many_sectors(addresses: &[u64], active: u64, bytes: u64) -> (u64, u64, u64) {
    let mut starts: Vec<u64> =
        addresses.iter().enumerate().filter(|(l, _)| active >> l & 1 != 0).map(|(_, a)| *a).collect();
    let lanes = starts.len() as u64;
    let mut all: Vec<u64> = starts.iter().flat_map(|a| a >> 5..=(a + bytes - 1) >> 5).collect();
    all.sort_unstable();
    all.dedup();
    starts.sort_unstable();
    starts.dedup();
    (all.len() as u64, (starts.len() as u64 * bytes).div_ceil(32), lanes * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(f: impl Fn(u64) -> u64) -> Vec<u64> {
        (0..32).map(f).collect()
    }

    #[test]
    fn sectors_of_common_patterns() {
        let all = 0xffff_ffff;
        assert_eq!(sectors(&lanes(|l| 4 * l), all, 4), (4, 4, 128));
        assert_eq!(sectors(&lanes(|l| 4 * l + 16), all, 4), (5, 4, 128));
        assert_eq!(sectors(&lanes(|l| 128 * l), all, 4), (32, 4, 128));
        assert_eq!(sectors(&lanes(|_| 64), all, 4), (1, 1, 128));
        assert_eq!(sectors(&lanes(|l| 16 * (31 - l)), all, 16), (16, 16, 512));
        assert_eq!(sectors(&lanes(|l| 4 * l), 0xff, 4), (1, 1, 32));
        // Rows of 208 bytes, from byte 128 on: five lanes of eight.
        let rows = |first: u64| lanes(|l| 208 * (first + l / 8) + 128 + 16 * (l % 8));
        assert_eq!(sectors(&rows(0), 0x1f1f_1f1f, 16).0, 12);
        assert_eq!((copy_sectors(&rows(0), 0x1f1f_1f1f), copy_sectors(&rows(4), 0x1f1f_1f1f)), (14, 12));
        // Six lanes from byte 16 on lie in four sectors.
        assert_eq!(
            (sectors(&lanes(|l| 16 + 16 * l), 0x3f, 16).0, copy_sectors(&lanes(|l| 16 + 16 * l), 0x3f)),
            (4, 3)
        );
    }
}
