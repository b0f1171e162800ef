//! Conversion plans in plain words, step by step.

use std::fmt;

use crate::plan::{AccessPlan, Conversion, ConversionPlan, Cost, MemoryAccess, Scope, SharedPlan};

/// A number and what is counted, in the singular or plural: `1 load`, `2 loads`.
#[derive(Clone, Copy, Debug)]
pub struct Count(pub u64, pub &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// The line that ends the description of a plan.
pub(crate) fn write_cost(f: &mut fmt::Formatter<'_>, cost: &Cost, target: &str) -> fmt::Result {
    let [shuffles, stores, loads] =
        [(cost.shuffles, "shuffle"), (cost.stores, "store"), (cost.loads, "load")]
            .map(|(n, what)| Count(n, what));
    let cycles = Count(cost.cycles.round() as u64, "cycle");
    writeln!(f, "cost: {cycles} on {target}; {shuffles}, {stores}, {loads}")
}

/// How many accesses a side spells out before it says how many more there are.
const MAX_LINES: usize = 16;

impl fmt::Display for ConversionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.conversion {
            Conversion::NoOp => writeln!(f, "nothing to do: both layouts are the same map")?,
            Conversion::RegisterPermute { sources } => {
                writeln!(f, "rename registers: every element is in its thread already")?;
                let sources: Vec<String> =
                    sources.iter().enumerate().map(|(r, s)| format!("r{r}=r{s}")).collect();
                for line in sources.chunks(16) {
                    writeln!(f, "  {}", line.join(" "))?;
                }
            }
            Conversion::WarpShuffle(plan) => {
                let shuffles = Count(plan.shuffles(), "shuffle");
                let rounds = Count(plan.rounds.len() as u64, "round");
                writeln!(f, "exchange within each warp: {shuffles} in {rounds}")?;
                write!(f, "{plan}")?;
            }
            Conversion::SharedMemory(plan) => self.shared(f, plan, "through shared memory")?,
            Conversion::Cluster(plan) => self.shared(f, plan, "through the shared memory of the cluster")?,
        }
        self.costs(f)
    }
}

impl ConversionPlan {
    fn shared(&self, f: &mut fmt::Formatter<'_>, plan: &SharedPlan, how: &str) -> fmt::Result {
        writeln!(f, "{how}: {} per block", Count(plan.shared_bytes, "byte"))?;
        writeln!(f, "  memory {}", plan.layout)?;
        if plan.tiles > 1 {
            writeln!(f, "  in {} passes, one after the other:", plan.tiles)?;
        }
        let (store, load) = match &self.mnemonics {
            Some((store, load)) => (store.as_str(), load.as_str()),
            None => ("store", "load"),
        };
        side(f, "1. store", store, &plan.store)?;
        let barrier = match plan.scope {
            Scope::Warp => "wait for the lanes of the warp",
            Scope::Block => "wait for the warps of the block",
            Scope::Cluster => "wait for the blocks of the cluster",
        };
        writeln!(f, "  2. {barrier}")?;
        side(f, "3. load", load, &plan.load)
    }

    fn costs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.cost;
        let counts = [
            (c.stores, "store"),
            (c.loads, "load"),
            (c.shuffles, "shuffle"),
            (c.selects, "select"),
            (c.permutes, "byte permute"),
            (c.address_ops, "address computation"),
            (c.barriers, "barrier"),
        ];
        let counts: Vec<String> =
            counts.iter().filter(|c| c.0 > 0).map(|&(n, what)| Count(n, what).to_string()).collect();
        let counts = if counts.is_empty() { "no instructions".to_owned() } else { counts.join(", ") };
        let (cycles, warps) = (Count(c.cycles.ceil() as u64, "cycle"), Count(1 << self.warp_bits, "warp"));
        writeln!(f, "cost: {cycles} for {warps} on {}; per warp {counts}", self.target)
    }
}

fn side(f: &mut fmt::Formatter<'_>, what: &str, instruction: &str, access: &AccessPlan) -> fmt::Result {
    let (count, wavefronts) = (access.count, Count(access.wavefronts, "wavefront"));
    writeln!(f, "  {what}: {count} × {instruction}, {wavefronts} (minimum {})", access.minimum)?;
    if !access.inactive.is_empty() {
        writeln!(f, "     only where {}", access.inactive)?;
    }
    let address = &access.address;
    for (name, bases) in [("lane", &address.lane), ("warp", &address.warp), ("block", &address.block)] {
        if bases.iter().any(|&b| b != 0) {
            writeln!(f, "     offset ^= {bases:?}·{name}")?;
        }
    }
    for access in access.accesses.iter().take(MAX_LINES) {
        writeln!(f, "     {}", Line(access))?;
    }
    let more = access.accesses.len().saturating_sub(MAX_LINES);
    if more > 0 {
        writeln!(f, "     … and {more} more")?;
    }
    Ok(())
}

struct Line<'a>(&'a MemoryAccess);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let registers: Vec<String> = self.0.registers.iter().map(|r| format!("r{r}")).collect();
        write!(f, "[{}] at ^{}", registers.join(" "), self.0.offset)?;
        if self.0.tile != 0 {
            write!(f, ", pass ^{}", self.0.tile)?;
        }
        if self.0.block != 0 {
            write!(f, ", block ^{}", self.0.block)?;
        }
        Ok(())
    }
}
