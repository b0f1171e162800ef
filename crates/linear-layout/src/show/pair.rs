//! Two layouts of one tensor and the way from the one to the other.

use crate::plan::{AccessPlan, Conversion, ConversionPlan, Count, SharedAccessPlan};
use crate::target::Direction;
use crate::{Dim, Encoding, LinearLayout};

use super::request::Subject;

/// How many accesses are spelled out before it is said how many more there are.
const MAX_LINES: usize = 16;
/// log2 of the most elements and of the most places (all registers of all threads) that are planned for;
/// more than any GPU holds.
const MAX_BITS: u32 = 40;

/// A source, a destination, and how to get there.
pub struct Pair {
    pub from: Subject,
    pub to: Subject,
    pub way: Way,
}

/// How the tensor travels.
pub enum Way {
    /// From registers to registers.
    Convert(Box<ConversionPlan>),
    /// From registers to shared memory, or back, as the access says.
    Access(Box<SharedAccessPlan>),
}

/// One half of a way through shared memory.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    pub access: &'a AccessPlan,
    /// `(interval, padding)` in elements.
    pub padding: &'a [(u64, u64)],
}

impl Side<'_> {
    /// `store` or `load`.
    pub fn name(&self) -> &'static str {
        match self.access.direction {
            Direction::Store => "store",
            Direction::Load => "load",
        }
    }
}

impl Pair {
    pub fn new(from: Subject, to: Subject) -> Result<Pair, String> {
        for subject in [&from, &to] {
            let (ins, outs) = (subject.layout.total_in_bits(), subject.layout.total_out_bits());
            if ins.max(outs) > MAX_BITS {
                return Err(format!(
                    "2^{ins} places of 2^{outs} elements are too many to plan for; at most 2^{MAX_BITS}"
                ));
            }
        }
        let way = match (place(&from)?, place(&to)?) {
            (Place::Registers, Place::Registers) => {
                same_number(&from, &to, Dim::WARP)?;
                same_number(&from, &to, Dim::BLOCK)?;
                let plan = ConversionPlan::new(&from.layout, &to.layout, from.bits, &from.target);
                Way::Convert(Box::new(plan.map_err(|error| error.to_string())?))
            }
            (Place::Registers, Place::Memory) => access(&from, &to, Direction::Store)?,
            (Place::Memory, Place::Registers) => access(&to, &from, Direction::Load)?,
            (Place::Memory, Place::Memory) => {
                return Err(
                    "both layouts are of shared memory; a plan leads to registers or from them".into()
                );
            }
        };
        Ok(Pair { from, to, way })
    }

    /// `B⁻¹A`: for each place of the source the place of the destination that holds the same element.
    pub fn map(&self) -> Result<LinearLayout, String> {
        self.from.layout.invert_and_compose(&self.to.layout).map_err(|error| error.to_string())
    }

    /// The accesses to shared memory, in the order in which they happen.
    pub fn sides(&self) -> Vec<Side<'_>> {
        match &self.way {
            Way::Convert(plan) => match &plan.conversion {
                Conversion::SharedMemory(shared) | Conversion::Cluster(shared) => {
                    [&shared.store, &shared.load].map(|access| Side { access, padding: &[] }).into()
                }
                _ => Vec::new(),
            },
            Way::Access(plan) => vec![Side { access: &plan.access, padding: &plan.padding }],
        }
    }

    /// Mnemonic of the instruction of one side.
    pub fn mnemonic(&self, side: Side<'_>) -> String {
        side.access.instruction.name(side.access.direction, &self.from.target)
    }

    /// `noop`, `register`, `shuffle`, `shared` or `cluster`.
    pub fn kind(&self) -> &'static str {
        match &self.way {
            Way::Convert(plan) => plan.kind(),
            Way::Access(plan) if plan.access.block.is_some() => "cluster",
            Way::Access(_) => "shared",
        }
    }

    /// Bytes of shared memory of one block.
    pub fn shared_bytes(&self) -> u64 {
        match &self.way {
            Way::Convert(plan) => plan.shared_bytes(),
            Way::Access(plan) => {
                let memory = if self.from.encoding.is_shared() { &self.from } else { &self.to };
                let last = (1u64 << memory.layout.in_bits(Dim::OFFSET)) - 1;
                ((plan.padded(last) + 1) * u64::from(plan.access.storage_bits)).div_ceil(8)
            }
        }
    }

    /// Cycles of one multiprocessor for all warps of a block, rounded up.
    pub fn cycles(&self) -> u64 {
        let cycles = match &self.way {
            Way::Convert(plan) => plan.cost.cycles,
            Way::Access(plan) => {
                let target = &self.from.target;
                let latency = match plan.access.direction {
                    Direction::Store => target.cost.shared_latency / 2.0,
                    Direction::Load => target.cost.shared_latency,
                };
                latency + self.warps() as f64 * plan.cycles(target)
            }
        };
        cycles.ceil() as u64
    }

    fn warps(&self) -> u64 {
        number(&self.from, Dim::WARP).max(number(&self.to, Dim::WARP))
    }

    /// The plan step by step, in plain words.
    pub fn steps(&self) -> String {
        let plan = match &self.way {
            Way::Convert(plan) => return plan.to_string(),
            Way::Access(plan) => plan,
        };
        let access = &plan.access;
        let (what, step) = match access.direction {
            Direction::Store => ("write registers to shared memory", "1. store"),
            Direction::Load => ("read registers from shared memory", "1. load"),
        };
        let mut lines = vec![format!("{what}: {} per block", Count(self.shared_bytes(), "byte"))];
        lines.push(format!("  {step}: {}", plan.to_string().trim_end()));
        if !access.inactive.is_empty() {
            lines.push(format!("     only where {}", access.inactive));
        }
        let address = &access.address;
        for (name, bases) in [("lane", &address.lane), ("warp", &address.warp), ("block", &address.block)] {
            if bases.iter().any(|&b| b != 0) {
                lines.push(format!("     offset ^= {bases:?}·{name}"));
            }
        }
        for one in access.accesses.iter().take(MAX_LINES) {
            let registers: Vec<String> = one.registers.iter().map(|r| format!("r{r}")).collect();
            lines.push(format!("     [{}] at ^{}", registers.join(" "), one.offset));
        }
        if access.accesses.len() > MAX_LINES {
            lines.push(format!("     … and {} more", access.accesses.len() - MAX_LINES));
        }
        let (cycles, warps, target) = (self.cycles(), self.warps(), &self.from.target);
        let counts = [
            (access.count, if access.direction == Direction::Store { "store" } else { "load" }),
            (access.packing_ops, "byte permute"),
            (access.address_ops, "address computation"),
        ];
        let counts: Vec<String> =
            counts.iter().filter(|c| c.0 > 0).map(|&(n, what)| Count(n, what).to_string()).collect();
        let (counts, cycles, warps) = (counts.join(", "), Count(cycles, "cycle"), Count(warps, "warp"));
        lines.push(format!("cost: {cycles} for {warps} on {target}; per warp {counts}"));
        lines.join("\n") + "\n"
    }

    /// The plan on one line.
    pub fn summary(&self) -> String {
        let mut parts = vec![self.kind().to_owned()];
        if let Way::Convert(plan) = &self.way
            && plan.cost.shuffles > 0
        {
            parts.push(Count(plan.cost.shuffles, "shuffle").to_string());
        }
        for side in self.sides() {
            let AccessPlan { count, wavefronts, minimum, .. } = side.access;
            let mnemonic = self.mnemonic(side);
            let wavefronts = Count(*wavefronts, "wavefront");
            parts.push(format!("{count} × {mnemonic}, {wavefronts} (minimum {minimum})"));
        }
        if self.shared_bytes() > 0 {
            parts.push(Count(self.shared_bytes(), "byte").to_string());
        }
        parts.push(Count(self.cycles(), "cycle").to_string());
        parts.join("; ")
    }
}

enum Place {
    Registers,
    Memory,
}

fn place(subject: &Subject) -> Result<Place, String> {
    let encoding = &subject.encoding;
    match (encoding.is_distributed(), encoding.is_shared()) {
        (true, _) => Ok(Place::Registers),
        (_, true) => Ok(Place::Memory),
        _ => Err(format!("no plan leads to or from {}", encoding.mnemonic())),
    }
}

fn number(subject: &Subject, dim: Dim) -> u64 {
    subject.layout.in_size(dim).unwrap_or(1)
}

/// A conversion leaves the number of warps and blocks as it is.
fn same_number(from: &Subject, to: &Subject, dim: Dim) -> Result<(), String> {
    let (a, b) = (number(from, dim), number(to, dim));
    if a == b {
        return Ok(());
    }
    let plural = if a == 1 { "" } else { "s" };
    Err(format!("the layout has {a} {dim}{plural}, the one to convert to has {b}; they must be the same"))
}

fn access(registers: &Subject, memory: &Subject, direction: Direction) -> Result<Way, String> {
    let padding: &[(u64, u64)] = match &memory.encoding {
        Encoding::PaddedShared(padded) => &padded.intervals,
        _ => &[],
    };
    let elems = 1u128 << memory.layout.in_bits(Dim::OFFSET);
    let inserted =
        padding.iter().map(|&(interval, pad)| (elems / u128::from(interval.max(1))) * u128::from(pad));
    if elems + inserted.sum::<u128>() > 1 << (MAX_BITS + 8) {
        return Err(format!("{} inserts too much padding to plan for", memory.encoding.mnemonic()));
    }
    let (bits, target) = (registers.bits, &registers.target);
    SharedAccessPlan::with_padding(&registers.layout, &memory.layout, padding, bits, direction, target)
        .map(|plan| Way::Access(Box::new(plan)))
        .map_err(|error| error.to_string())
}
