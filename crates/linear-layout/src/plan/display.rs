//! Conversion plans in plain words, step by step.

use std::fmt;

use crate::plan::{AccessPlan, Conversion, ConversionPlan, MemoryAccess, Scope, SharedPlan};

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
                let (n, rounds) = (plan.shuffles(), plan.rounds.len());
                writeln!(f, "exchange within each warp: {n} shuffles in {rounds} rounds")?;
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
        writeln!(f, "{how}: {} bytes per block", plan.shared_bytes)?;
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
            (c.stores, "stores"),
            (c.loads, "loads"),
            (c.shuffles, "shuffles"),
            (c.selects, "selects"),
            (c.permutes, "byte permutes"),
            (c.address_ops, "address computations"),
            (c.barriers, "barriers"),
        ];
        let counts: Vec<String> =
            counts.iter().filter(|c| c.0 > 0).map(|(n, what)| format!("{n} {what}")).collect();
        let counts = if counts.is_empty() { "no instructions".to_owned() } else { counts.join(", ") };
        let warps = 1u64 << self.warp_bits;
        writeln!(
            f,
            "cost: {:.0} cycles for {warps} warps on {}; per warp {counts}",
            c.cycles.ceil(),
            self.target
        )
    }
}

fn side(f: &mut fmt::Formatter<'_>, what: &str, instruction: &str, access: &AccessPlan) -> fmt::Result {
    let (count, wavefronts, minimum) = (access.count, access.wavefronts, access.minimum);
    writeln!(f, "  {what}: {count} × {instruction}, {wavefronts} wavefronts (minimum {minimum})")?;
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
