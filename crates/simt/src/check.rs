//! What the checks report.

use std::collections::HashMap;
use std::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Two warps touch the same shared bytes with no synchronization between, at least one writing.
    SharedRace,
    /// An access outside every buffer, or outside shared memory or the stack.
    OutOfBounds,
    /// An address that is not a multiple of what the instruction demands.
    Misaligned,
    /// A value that was never defined decides something: stored, branched on, used as an address.
    Uninitialized,
    /// A barrier, shuffle or vote that not all lanes it names execute together.
    Divergent,
    /// Data of an asynchronous operation used, or overwritten, before the wait for it.
    AsyncHazard,
    /// Shared memory written by ordinary stores and read by a tensor core or bulk copy with no
    /// `fence.proxy.async` between.
    MissingFence,
    /// No warp can go on.
    Deadlock,
    /// A device assertion failed, or the program trapped.
    Assertion,
    /// Malformed use of an instruction (descriptor, barrier object, tensor map).
    Invalid,
}

impl Kind {
    /// A short name for tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::SharedRace => "shared-race",
            Kind::OutOfBounds => "out-of-bounds",
            Kind::Misaligned => "misaligned",
            Kind::Uninitialized => "uninitialized",
            Kind::Divergent => "divergent",
            Kind::AsyncHazard => "async-hazard",
            Kind::MissingFence => "missing-fence",
            Kind::Deadlock => "deadlock",
            Kind::Assertion => "assertion",
            Kind::Invalid => "invalid",
        }
    }
}

/// One report. Repetitions at the same instruction are counted, not repeated.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// The kernel.
    pub kernel: String,
    /// Source file and line; line 0 when the module has no debug information.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Program id.
    pub program: [u32; 3],
    /// Warp in the program.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u32,
    /// Address, if one is concerned.
    pub address: Option<u64>,
    /// In words.
    pub message: String,
    /// How often it happened at this instruction.
    pub count: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)?;
        if let Some(a) = self.address {
            write!(f, " (address {a:#x})")?;
        }
        write!(f, "\n  in {}", self.kernel)?;
        if self.line != 0 {
            write!(f, " at {}:{}", self.file, self.line)?;
        }
        let [x, y, z] = self.program;
        write!(f, ", program ({x}, {y}, {z}), warp {}, lane {}", self.warp, self.lane)?;
        if self.count > 1 {
            write!(f, "; {} times", self.count)?;
        }
        Ok(())
    }
}

/// Findings by kind and instruction.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    list: Vec<(u32, Finding)>,
    index: HashMap<(Kind, u32), usize>,
}

impl Findings {
    /// Adds one at instruction `pc`; `make` runs only for the first there.
    pub fn add(&mut self, kind: Kind, pc: u32, make: impl FnOnce() -> Finding) {
        match self.index.get(&(kind, pc)) {
            Some(i) => self.list[*i].1.count += 1,
            None => {
                self.index.insert((kind, pc), self.list.len());
                self.list.push((pc, make()));
            }
        }
    }

    /// Takes over the findings of another run of the same kernel.
    pub fn merge(&mut self, other: Findings) {
        for (pc, f) in other.list {
            match self.index.get(&(f.kind, pc)) {
                Some(i) => self.list[*i].1.count += f.count,
                None => {
                    self.index.insert((f.kind, pc), self.list.len());
                    self.list.push((pc, f));
                }
            }
        }
    }

    /// All findings, in the order of the code.
    pub fn into_vec(mut self) -> Vec<Finding> {
        self.list.sort_by_key(|(pc, f)| (*pc, f.kind));
        self.list.into_iter().map(|(_, f)| f).collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
