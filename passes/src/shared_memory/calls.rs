//! Functions that call others: what a callee does to memory, as its callers see it.
//!
//! Allocation gives a call as much shared memory as its callee takes, and notes that at the call. What comes after it asks the
//! call. A call without that note, in a module that allocation has not seen or whose callee changed since, would look as if it
//! touched nothing, so [`Callees::of`] refuses it.

use super::barriers::{callees, places};
use super::buffers::Buffers;
use super::readback::{GlobalAccess, Proxies};
use super::{OFFSET, SIZE, callee, callees_first};
use crate::analysis::flow_graph::FlowGraph;
use crate::analysis::pointer_roots::PointerRoots;
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Op, Walk};
use ttopt_dialect::tt::ops::FuncOp;

/// What a function does to memory, with all that it calls.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    /// Bytes of shared memory, up to the last one.
    shared: u64,
    /// Whether it loads from global memory.
    loads: bool,
    /// Whether it stores there.
    stores: bool,
    /// Who does.
    proxies: Proxies,
}

/// What the functions that a module calls do to memory.
pub(crate) struct Callees {
    uses: FastMap<String, Uses>,
}

impl Callees {
    /// Those of `module`.
    ///
    /// # Errors
    /// Recursion, and a call with less shared memory than its callee uses.
    pub fn of(module: Op<'_>, target: &TargetDesc) -> Result<Self, Reported> {
        let functions =
            callees_first(module).map_err(|call| call.error("calls a function that is being called"))?;
        let (called, mut known) = (called(module), Self { uses: FastMap::default() });
        if called.is_empty() {
            return Ok(known);
        }
        for function in functions {
            known.check_calls(function)?;
            let name = FuncOp::of(function).sym_name();
            if called.contains(name) {
                let uses = known.uses_of(function, target)?;
                known.uses.insert(name.to_owned(), uses);
            }
        }
        Ok(known)
    }

    /// What a call does to global memory; nothing is known of where.
    pub fn global_access<'c>(&self, op: Op<'c>) -> Option<GlobalAccess<'c>> {
        let uses = self.uses.get(callee(op)?)?;
        (uses.loads || uses.stores).then(|| GlobalAccess::anywhere(uses.loads, uses.stores, uses.proxies))
    }

    fn uses_of(&self, function: Op<'_>, target: &TargetDesc) -> Result<Uses, Reported> {
        let graph = FlowGraph::new(function);
        let buffers =
            Buffers::new(&graph, &callees(function), target).map_err(|(op, message)| op.error(message))?;
        let places = places(&buffers).map_err(|(op, message)| op.error(message))?;
        let mut roots = PointerRoots::default();
        let mut uses =
            Uses { shared: places.iter().map(|(_, end)| *end).fold(0, u64::max), ..Uses::default() };
        for op in graph.ops() {
            let access = GlobalAccess::of(*op, &mut roots).or_else(|| self.global_access(*op));
            let Some(access) = access else { continue };
            uses.loads |= access.reads;
            uses.stores |= access.writes;
            uses.proxies.threads |= access.proxies().threads;
            uses.proxies.bulk |= access.proxies().bulk;
        }
        Ok(uses)
    }

    fn check_calls(&self, function: Op<'_>) -> Result<(), Reported> {
        let mut checked = Ok(());
        function.walk(&mut |op| {
            let used = callee(op).and_then(|name| Some((name, self.uses.get(name)?.shared)));
            if let Some((name, bytes)) = used.filter(|(_, bytes)| *bytes > 0)
                && let Err(reported) = check_call(op, name, bytes)
            {
                checked = Err(reported);
                return Walk::Stop;
            }
            Walk::Advance
        });
        checked
    }
}

/// Whether a call has the shared memory of its callee.
fn check_call(call: Op<'_>, name: &str, bytes: u64) -> Result<(), Reported> {
    let number = |attr: &str| call.attr(attr).and_then(Attr::as_int).and_then(|n| u64::try_from(n).ok());
    let Some(size) = number(OFFSET).and_then(|_| number(SIZE)) else {
        return Err(call.error(format!(
            "has no shared memory, of which @{name} uses {bytes} bytes: run --allocate-shared-memory-nv first"
        )));
    };
    if size < bytes {
        return Err(call.error(format!(
            "has {size} bytes of shared memory, of which @{name} uses {bytes}: run --allocate-shared-memory-nv again"
        )));
    }
    Ok(())
}

/// The symbols that a module's calls name.
fn called(module: Op<'_>) -> FastSet<String> {
    let mut names = FastSet::default();
    module.walk(&mut |op| {
        names.extend(callee(op).map(str::to_owned));
        Walk::Advance
    });
    names
}
