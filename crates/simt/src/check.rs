//! What the checks report.

use std::collections::HashMap;
use std::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// Two threads touch the same shared bytes with no synchronization between, at least one writing.
    SharedRace,
    /// A thread loads from device memory what another of its program stored, with nothing between that orders the two.
    DeviceRace,
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
    /// `fence.proxy.async` between, or registers of a `wgmma` written with no `wgmma.fence` between.
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
            Kind::DeviceRace => "device-race",
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

/// Who did something, and where in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Site {
    /// Source file.
    pub file: String,
    /// Line; 0 when the module has no debug information.
    pub line: u32,
    /// Program id.
    pub program: [u32; 3],
    /// Warp in the program.
    pub warp: u32,
    /// Lane in the warp; 64 for several.
    pub lane: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line != 0 {
            write!(f, "{}:{}, ", self.file, self.line)?;
        }
        let [x, y, z] = self.program;
        write!(f, "program ({x}, {y}, {z}), warp {}", self.warp)?;
        if self.lane < 64 { write!(f, ", lane {}", self.lane) } else { Ok(()) }
    }
}

/// One report. What happens again on the same lines is counted, not repeated.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// The kernel.
    pub kernel: String,
    /// The source file where it was seen first.
    pub file: String,
    /// Line; 0 when the module has no debug information.
    pub line: u32,
    /// Program id.
    pub program: [u32; 3],
    /// Warp in the program.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u32,
    /// The other side, where two accesses are concerned.
    pub other: Option<Site>,
    /// The first address, if one is concerned.
    pub address: Option<u64>,
    /// The lowest and the highest address.
    pub addresses: Option<(u64, u64)>,
    /// In words.
    pub message: String,
    /// How often it happened.
    pub count: u64,
    /// At how many instructions.
    pub places: u32,
}

impl Finding {
    /// Something that happened once, at `site`.
    pub fn new(
        kind: Kind,
        kernel: String,
        site: Site,
        other: Option<Site>,
        address: Option<u64>,
        message: String,
    ) -> Finding {
        let Site { file, line, program, warp, lane } = site;
        let addresses = address.map(|a| (a, a));
        Finding {
            kind,
            kernel,
            file,
            line,
            program,
            warp,
            lane,
            other,
            address,
            addresses,
            message,
            count: 1,
            places: 1,
        }
    }

    /// What makes two reports one: the kind, the lines of both sides, and the words but for numbers.
    fn group(&self) -> Group {
        let side = |s: &Site| (s.file.clone(), s.line);
        let word = |w: &&str| !w.contains(|c: char| c.is_ascii_digit());
        let words = self.message.split_whitespace().filter(word).collect::<Vec<_>>().join(" ");
        (self.kind, (self.file.clone(), self.line), self.other.as_ref().map(side), words)
    }

    fn absorb(&mut self, count: u64, addresses: Option<(u64, u64)>) {
        self.count += count;
        self.addresses = match (self.addresses, addresses) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (a, b) => a.or(b),
        };
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)?;
        match self.addresses {
            Some((a, b)) if a == b => write!(f, " (address {a:#x})")?,
            Some((a, b)) => write!(f, " (addresses {a:#x} to {b:#x})")?,
            None => {}
        }
        let lane = self.lane;
        let site =
            Site { file: self.file.clone(), line: self.line, program: self.program, warp: self.warp, lane };
        write!(f, "\n  in {} at {site}", self.kernel)?;
        if let Some(o) = &self.other {
            write!(f, "\n  and {o}")?;
        }
        match (self.count, self.places) {
            (1, _) => Ok(()),
            (n, 1) => write!(f, "; {n} times"),
            (n, places) => write!(f, "; {n} times at {places} instructions"),
        }
    }
}

/// A kind, an instruction, and the instruction of the other side.
pub type Key = (Kind, u32, Option<u32>);

type Group = (Kind, (String, u32), Option<(String, u32)>, String);

/// Findings by kind and source lines.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    list: Vec<(u32, Finding)>,
    index: HashMap<Key, usize>,
    groups: HashMap<Group, usize>,
}

impl Findings {
    /// Counts one more of a finding that is known for its instructions. False: it is not.
    pub fn again(&mut self, key: Key, address: Option<u64>) -> bool {
        let known = self.index.get(&key);
        if let Some(i) = known {
            self.list[*i].1.absorb(1, address.map(|a| (a, a)));
        }
        known.is_some()
    }

    /// Adds a finding that is new for its instructions.
    pub fn add(&mut self, key: Key, finding: Finding) {
        let group = finding.group();
        let i = match self.groups.get(&group) {
            Some(i) => {
                let known = &mut self.list[*i].1;
                known.absorb(finding.count, finding.addresses);
                known.places += 1;
                *i
            }
            None => {
                self.groups.insert(group, self.list.len());
                self.list.push((key.1, finding));
                self.list.len() - 1
            }
        };
        self.index.insert(key, i);
    }

    /// Takes over the findings of another run of the same kernel.
    pub fn merge(&mut self, other: Findings) {
        let mut keys: Vec<(Key, usize)> = other.index.into_iter().collect();
        keys.sort_unstable_by_key(|(key, i)| (*i, *key));
        for (i, (pc, f)) in other.list.into_iter().enumerate() {
            let of = |k: &&(Key, usize)| k.1 == i;
            let fresh = keys.iter().filter(of).filter(|k| !self.index.contains_key(&k.0)).count() as u32;
            let at = match self.groups.get(&f.group()) {
                Some(at) => {
                    let known = &mut self.list[*at].1;
                    known.absorb(f.count, f.addresses);
                    known.places += fresh;
                    *at
                }
                None => {
                    self.groups.insert(f.group(), self.list.len());
                    self.list.push((pc, f));
                    self.list.len() - 1
                }
            };
            for (key, _) in keys.iter().filter(of) {
                self.index.entry(*key).or_insert(at);
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
