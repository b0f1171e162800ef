//! The cheapest assignment of layouts, by trying all of them.
//!
//! An assignment gives each value a set of layouts in which it is computed, one or more: those beyond the first are
//! rematerialized copies. An operand that is not computed in the layout that an operation needs is converted once for all
//! that need it there, from the layout from which that costs least. iter_args and results of branches may be carried in
//! several layouts too.
//!
//! Nodes are decided one after the other, each after its operands. What the rest of a function costs depends on
//! the past only through the values that it still uses: in which layouts they are computed, and to which they have been
//! converted. Of all beginnings that leave the same there, the cheapest is kept, and none that costs more already
//! than the bound. Both are exact.

use crate::function::{BlockId, Function, Id, Kind};
use crate::space::{LayoutId, Space, Variant};
use smallvec::SmallVec;
use std::collections::HashMap;

/// A value is computed in at most so many layouts.
const COPIES: usize = 2;
/// So many different beginnings are too many.
const MOST: usize = 400_000;

/// A conversion that an assignment needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conversion {
    /// From this layout.
    pub from: LayoutId,
    /// To this one.
    pub to: LayoutId,
    /// In this block: behind what defines the value, or first.
    pub block: BlockId,
}

/// Where a value is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Available {
    /// The layouts in which it is computed, a bit each.
    computed: u64,
    /// Those that it is converted to.
    pub converted: SmallVec<[Conversion; 2]>,
}

impl Available {
    fn is_computed(&self, layout: LayoutId) -> bool {
        self.computed >> layout & 1 != 0
    }
}

/// What is decided about each node so far.
pub type State = Vec<Available>;

/// The ways in which each node is computed.
pub type Choice = Vec<Vec<Variant>>;

/// What came of a search.
pub enum Found {
    /// The cheapest assignment, and what it costs.
    Optimum(Choice, f64),
    /// None costs as little as the bound.
    Nothing,
    /// There are too many.
    TooMany,
}

/// Has the value of `id` in layout `to` for a use in `user`; cycles more that this takes, `None` where it cannot be.
fn need(space: &Space<'_, '_>, state: &mut State, id: Id, to: LayoutId, user: BlockId) -> Option<f64> {
    let function = space.function;
    if state[id].is_computed(to) {
        return Some(0.0);
    }
    let home = function.nodes[id].block;
    let place = function.place(home, user);
    if let Some(known) = state[id].converted.iter_mut().find(|known| known.to == to) {
        let block = function.place(home, function.common(known.block, place));
        let more = function.times(block) - function.times(known.block);
        let once = space.conversion(id, known.from, to)?;
        known.block = block;
        return Some(more * once);
    }
    let computed = (0..u64::BITS as LayoutId).filter(|from| state[id].is_computed(*from));
    let ways = computed.filter_map(|from| Some((from, space.conversion(id, from, to)?)));
    let (from, once) = ways.min_by(|a, b| a.1.total_cmp(&b.1))?;
    state[id].converted.push(Conversion { from, to, block: place });
    state[id].converted.sort_by_key(|known| known.to);
    Some(once * function.times(place))
}

/// Computes node `id` in `ways`; cycles more that this takes, `None` where it cannot be.
fn decide(space: &Space<'_, '_>, state: &mut State, id: Id, ways: &[Variant]) -> Option<f64> {
    let function = space.function;
    let node = &function.nodes[id];
    let mut cycles = 0.0;
    for way in ways {
        cycles += way.cycles;
        let skipped = match node.kind {
            Kind::Yield => 1,
            Kind::LoopResult => node.operands.len(),
            _ => 0,
        };
        for (i, operand) in node.operands.iter().enumerate().skip(skipped) {
            cycles += need(space, state, *operand, way.operands[i], function.use_block(id, i))?;
        }
    }
    if node.kind.has_value() {
        state[id].computed = ways.iter().fold(0, |computed, way| computed | 1 << way.result);
    }
    Some(cycles)
}

/// The choices that there are for a node.
fn choices(space: &Space<'_, '_>, state: &State, id: Id) -> Vec<Vec<Variant>> {
    let node = &space.function.nodes[id];
    let ways = &space.variants[id];
    if node.kind.follows() {
        let carried = &state[node.operands[0]];
        return vec![ways.iter().filter(|way| carried.is_computed(way.result)).cloned().collect()];
    }
    if node.operands.is_empty() && ways.iter().all(|way| way.cycles == 0.0) {
        return vec![ways.clone()];
    }
    let mut sets: Vec<Vec<Variant>> = vec![Vec::new()];
    for way in ways {
        let copies = if node.kind.has_value() { COPIES } else { 1 };
        let has =
            |set: &&Vec<Variant>| set.len() < copies && set.iter().all(|other| other.result != way.result);
        let more: Vec<_> =
            sets.iter().filter(has).map(|set| [&set[..], std::slice::from_ref(way)].concat()).collect();
        sets.extend(more);
    }
    sets.remove(0);
    sets.sort_by_key(Vec::len);
    sets
}

/// Replays choices from the beginning; `None` where they need what cannot be.
pub fn replay(space: &Space<'_, '_>, choice: &Choice) -> Option<(State, f64)> {
    let mut state = nothing(space.function);
    let mut cycles = 0.0;
    for (id, ways) in choice.iter().enumerate() {
        cycles += decide(space, &mut state, id, ways)?;
    }
    Some((state, cycles))
}

/// The least that a function's nodes from each one on cost.
fn least(function: &Function, variants: &[Vec<Variant>]) -> Vec<f64> {
    let mut rest = vec![0.0; function.nodes.len() + 1];
    for id in (0..function.nodes.len()).rev() {
        let cheapest = variants[id].iter().map(|way| way.cycles).fold(f64::INFINITY, f64::min);
        rest[id] = rest[id + 1] + cheapest;
    }
    rest
}

/// A beginning: what it leaves, what it costs, and how it goes on from the one before.
struct Beginning {
    state: State,
    cycles: f64,
    from: usize,
    ways: Vec<Variant>,
}

/// The cheapest assignment that costs at most `bound` cycles.
pub fn optimum(space: &Space<'_, '_>, bound: f64) -> Found {
    let function = space.function;
    let (rest, last) = (least(function, &space.variants), function.last_uses());
    let mut levels =
        vec![vec![Beginning { state: nothing(function), cycles: 0.0, from: 0, ways: Vec::new() }]];
    for id in 0..function.nodes.len() {
        let mut known: HashMap<State, usize> = HashMap::new();
        let mut next: Vec<Beginning> = Vec::new();
        for (from, beginning) in levels[id].iter().enumerate() {
            for ways in choices(space, &beginning.state, id) {
                let own: f64 = ways.iter().map(|way| way.cycles).sum();
                if beginning.cycles + own + rest[id + 1] > bound {
                    continue;
                }
                let mut state = beginning.state.clone();
                let Some(more) = decide(space, &mut state, id, &ways) else { continue };
                let cycles = beginning.cycles + more;
                if cycles + rest[id + 1] > bound {
                    continue;
                }
                for value in 0..=id {
                    if last[value] <= id {
                        state[value] = Available::default();
                    }
                }
                let new = Beginning { state, cycles, from, ways };
                match known.get(&new.state) {
                    Some(at) if next[*at].cycles <= cycles => {}
                    Some(at) => next[*at] = new,
                    None => {
                        known.insert(new.state.clone(), next.len());
                        next.push(new);
                    }
                }
            }
            if next.len() > MOST {
                return Found::TooMany;
            }
        }
        // What is decided is not needed any more but for the way back.
        levels[id].iter_mut().for_each(|beginning| beginning.state = State::new());
        levels.push(next);
    }
    let ends = levels[function.nodes.len()].iter().enumerate();
    let Some((mut at, end)) = ends.min_by(|a, b| a.1.cycles.total_cmp(&b.1.cycles)) else {
        return Found::Nothing;
    };
    let cycles = end.cycles;
    let mut choice = Choice::new();
    for level in levels.iter().skip(1).rev() {
        choice.push(level[at].ways.clone());
        at = level[at].from;
    }
    choice.reverse();
    Found::Optimum(choice, cycles)
}

/// What the cheapest way to decide nodes from `id` on costs, by trying all with nothing left out; `None` where there are
/// more than `left`.
pub fn by_trying_all(space: &Space<'_, '_>, state: &State, id: Id, left: &mut usize) -> Option<f64> {
    if id == space.function.nodes.len() {
        *left = left.checked_sub(1)?;
        return Some(0.0);
    }
    let mut best = f64::INFINITY;
    for ways in choices(space, state, id) {
        let mut state = state.clone();
        if let Some(cycles) = decide(space, &mut state, id, &ways) {
            best = best.min(cycles + by_trying_all(space, &state, id + 1, left)?);
        }
    }
    Some(best)
}

/// Nothing decided yet.
pub fn nothing(function: &Function) -> State {
    vec![Available::default(); function.nodes.len()]
}
