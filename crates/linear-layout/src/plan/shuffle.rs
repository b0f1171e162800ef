//! Conversions within a warp by exchanging registers between lanes (paper, Section 5.4, "Intra-warp Data
//! Exchange").
//!
//! Let `A` be the source, `B` the destination. A *payload* is what one shuffle carries: the elements of
//! `V ⊂ span(A_Reg) ∩ span(B_Reg)`, as many as fit in 32 bits. Let `ρ` number the payloads that a lane
//! receives, `t` the lane, and let
//!
//! ```text
//! B(ρ, t) = A(U ρ + W t, P ρ + Q t)        registers U ρ + W t of lane P ρ + Q t
//! ```
//!
//! In round `j` lane `t` receives payload `ρ = j + Φ t` for some matrix `Φ`: it reads lane `P j + M t`,
//! `M = P Φ + Q`, which sends its payload `U j + (U Φ + W) t`. A lane can send only one payload in a
//! round, so `M` must not send two lanes that need different payloads to the same source.
//!
//! *Fewest rounds.* A lane `t` has `2^dim(ker P)` of its payloads itself if `(1 + Q) t ∈ im P`, and none
//! otherwise; all others must come in by a shuffle. So there are at least `2^|ρ| − 2^dim(ker P)` shuffles
//! when `im(1 + Q) ⊂ im P`, and `2^|ρ|` when not. Both are reached: in the first case by the `Φ` with
//! `P Φ = 1 + Q`, which makes `M` the identity, every shuffle an XOR by `P j`, and the rounds with
//! `P j = 0` copies within the lane; in the second by any `Φ` that makes `M` injective, which exists
//! because all lanes of `A` hold something that `B` needs. Where lanes of `A` hold replicas (`ker A`), `P`
//! and `Q` may be changed by vectors of that kernel, and "`∈ im P`" is read modulo it.
//!
//! The registers that a lane sends and fills depend on its number by `(U Φ + W) t` and `Φ t`: they are
//! brought to a fixed place by stages of selects, one per dimension, that swap registers whose numbers
//! differ by a constant in the lanes where a parity of lane bits is odd.

use std::fmt;

use crate::f2::{self, Echelon, Vectors, low_mask};
use crate::plan::access::ThreadBases;
use crate::plan::space::Distributed;
use crate::plan::{ThreadMasks, Threads};
use crate::target::{TargetDesc, Vendor};

/// A stage of selects: in the threads where `condition` holds, value `i` becomes value `i ^ xor`, for all
/// `i` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectStage {
    /// Distance of the values that change places.
    pub xor: u64,
    /// Holds in a thread when the bits of its numbers under these masks have odd parity together.
    pub condition: ThreadMasks,
}

impl SelectStage {
    /// Whether values change places in `thread`.
    pub fn applies(&self, thread: Threads) -> bool {
        let bits = (self.condition.lane & thread.lane).count_ones()
            + (self.condition.warp & thread.warp).count_ones()
            + (self.condition.block & thread.block).count_ones();
        bits % 2 == 1
    }
}

/// The instruction of an exchange between lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShuffleInstruction {
    /// `shfl.sync.bfly.b32`.
    ShflBfly,
    /// `shfl.sync.idx.b32`.
    ShflIdx,
    /// DPP `quad_perm`, XOR below 4.
    QuadPerm,
    /// DPP `row_half_mirror` (XOR 7) or `row_mirror` (XOR 15).
    RowMirror,
    /// DPP `row_half_mirror` or `row_mirror`, then `quad_perm`: XOR 4 to 6 and 12 to 14.
    RowMirrorQuad,
    /// DPP `row_ror:8`: eight lanes further in a row of sixteen is XOR 8.
    RowRotate,
    /// DPP `row_ror:8`, then `quad_perm`: XOR 9 to 11.
    RowRotateQuad,
    /// DPP `row_xmask`, XOR below 16.
    RowXmask,
    /// `v_permlanex16`, XOR 16.
    Permlanex16,
    /// `v_permlane16_swap` or `v_permlane32_swap`, XOR 16 or 32.
    PermlaneSwap,
    /// `ds_swizzle_b32`, XOR below 32.
    DsSwizzle,
    /// `ds_bpermute_b32`, by index.
    DsBpermute,
}

impl ShuffleInstruction {
    /// The mnemonic.
    pub fn name(self) -> &'static str {
        match self {
            ShuffleInstruction::ShflBfly => "shfl.sync.bfly.b32",
            ShuffleInstruction::ShflIdx => "shfl.sync.idx.b32",
            ShuffleInstruction::QuadPerm => "dpp quad_perm",
            ShuffleInstruction::RowMirror => "dpp row_mirror",
            ShuffleInstruction::RowMirrorQuad => "dpp row_mirror, quad_perm",
            ShuffleInstruction::RowRotate => "dpp row_ror",
            ShuffleInstruction::RowRotateQuad => "dpp row_ror, quad_perm",
            ShuffleInstruction::RowXmask => "dpp row_xmask",
            ShuffleInstruction::Permlanex16 => "v_permlanex16_b32",
            ShuffleInstruction::PermlaneSwap => "v_permlane_swap_b32",
            ShuffleInstruction::DsSwizzle => "ds_swizzle_b32",
            ShuffleInstruction::DsBpermute => "ds_bpermute_b32",
        }
    }

    /// Cycles of one warp instruction.
    pub fn cycles(self, target: &TargetDesc) -> f64 {
        use ShuffleInstruction::*;
        match self {
            ShflBfly | ShflIdx | DsSwizzle | DsBpermute => target.cost.shuffle,
            QuadPerm | RowMirror | RowRotate | RowXmask | Permlanex16 | PermlaneSwap => {
                target.cost.fixed_shuffle
            }
            RowMirrorQuad | RowRotateQuad => 2.0 * target.cost.fixed_shuffle,
        }
    }

    /// Cycles until its result can be used.
    pub fn latency(self, target: &TargetDesc) -> f64 {
        use ShuffleInstruction::*;
        match self {
            ShflBfly | ShflIdx | DsSwizzle | DsBpermute => target.cost.shuffle_latency,
            QuadPerm | RowMirror | RowRotate | RowXmask | Permlanex16 | PermlaneSwap => {
                target.cost.fixed_shuffle_latency
            }
            RowMirrorQuad | RowRotateQuad => 2.0 * target.cost.fixed_shuffle_latency,
        }
    }

    /// The cheapest instruction that reads the lane with a number XORed with `mask`, not zero.
    pub fn for_xor(mask: u64, target: &TargetDesc) -> ShuffleInstruction {
        let p = &target.primitives;
        match mask {
            _ if target.vendor == Vendor::Nvidia => ShuffleInstruction::ShflBfly,
            1..=3 if p.dpp => ShuffleInstruction::QuadPerm,
            7 | 15 if p.dpp => ShuffleInstruction::RowMirror,
            4..=15 if p.dpp_row_xmask => ShuffleInstruction::RowXmask,
            8 if p.dpp => ShuffleInstruction::RowRotate,
            9..=11 if p.dpp => ShuffleInstruction::RowRotateQuad,
            4..=14 if p.dpp => ShuffleInstruction::RowMirrorQuad,
            16 if p.permlanex16 => ShuffleInstruction::Permlanex16,
            16 | 32 if p.permlane_swap => ShuffleInstruction::PermlaneSwap,
            1..=31 if p.ds_swizzle => ShuffleInstruction::DsSwizzle,
            _ => ShuffleInstruction::DsBpermute,
        }
    }

    /// The instruction that reads a lane by number.
    pub fn for_index(target: &TargetDesc) -> ShuffleInstruction {
        match target.vendor {
            Vendor::Nvidia => ShuffleInstruction::ShflIdx,
            Vendor::Amd => ShuffleInstruction::DsBpermute,
        }
    }
}

/// From which lane a value comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// From the lane itself: no instruction.
    Local,
    /// From the lane whose number differs by `mask`.
    Xor {
        /// XORed with the lane number. Not zero.
        mask: u64,
        /// What does it.
        instruction: ShuffleInstruction,
    },
    /// From lane `base ^ lanes(thread)`.
    Index {
        /// The lane that thread zero reads.
        base: u64,
        /// What each bit of the reading thread's numbers changes.
        lanes: ThreadBases,
        /// What does it.
        instruction: ShuffleInstruction,
    },
}

impl Exchange {
    /// Mnemonic of the instruction, if there is one.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Exchange::Local => None,
            Exchange::Xor { instruction, .. } | Exchange::Index { instruction, .. } => {
                Some(instruction.name())
            }
        }
    }

    /// The lane that `thread` reads.
    pub fn source_lane(&self, thread: Threads) -> u64 {
        match self {
            Exchange::Local => thread.lane,
            Exchange::Xor { mask, .. } => thread.lane ^ mask,
            Exchange::Index { base, lanes, .. } => base ^ lanes.of(thread),
        }
    }
}

/// One payload from every lane to some lane.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShuffleRound {
    /// The payload that is sent, as numbered after the [`send`](ShufflePlan::send) stages.
    pub payload: u64,
    /// Who reads it.
    pub exchange: Exchange,
}

/// A conversion within warps. To execute it, in every thread: gather the payloads from the registers
/// ([`sources`](Self::sources)); apply the `send` stages to the list of payloads; do the rounds, the
/// payload received in round `j` becoming number `j` of a new list; apply the `receive` stages to that;
/// spread the payloads over the registers ([`targets`](Self::targets)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShufflePlan {
    /// Bits of one element within a payload.
    pub storage_bits: u32,
    /// For each payload, its source registers, lowest bits first. A payload has at most 32 bits, or 64
    /// when that is the width of one element; it then takes two shuffles.
    pub sources: Vec<Vec<u32>>,
    /// Selects on payloads before they are sent.
    pub send: Vec<SelectStage>,
    /// One round per payload received.
    pub rounds: Vec<ShuffleRound>,
    /// Selects on payloads after they are received.
    pub receive: Vec<SelectStage>,
    /// For each destination register, the received payload and the position of the element in it.
    pub targets: Vec<(u32, u32)>,
}

impl ShufflePlan {
    /// Elements of one payload.
    pub fn payload_elems(&self) -> usize {
        self.sources.first().map_or(1, Vec::len)
    }

    /// Shuffle instructions of one payload.
    pub fn words(&self) -> u64 {
        (self.payload_elems() as u64 * u64::from(self.storage_bits)).div_ceil(32)
    }

    /// Shuffle instructions of one warp.
    pub fn shuffles(&self) -> u64 {
        let exchanged = self.rounds.iter().filter(|r| r.exchange != Exchange::Local);
        exchanged.count() as u64 * self.words()
    }

    /// Selects of one thread.
    pub fn selects(&self) -> u64 {
        let send = self.send.len() as u64 * self.sources.len() as u64;
        let receive = self.receive.len() as u64 * self.rounds.len() as u64;
        (send + receive) * self.words()
    }

    /// Byte permutes of one thread, to pack payloads and to unpack them.
    pub fn permutes(&self) -> u64 {
        if self.storage_bits >= 32 || self.shuffles() + self.selects() == 0 {
            return 0;
        }
        let each = self.payload_elems() as u64 - 1;
        each * (self.sources.len() + self.rounds.len()) as u64
    }

    /// Instructions of one thread that compute the lanes to read.
    pub fn address_ops(&self) -> u64 {
        let indexed = self.rounds.iter().filter(|r| matches!(r.exchange, Exchange::Index { .. })).count();
        indexed as u64 + if indexed > 0 { 4 } else { 0 }
    }

    /// Cycles until the slowest of the exchanges, which do not wait for each other, is done.
    pub fn latency(&self, target: &TargetDesc) -> f64 {
        let each = self.rounds.iter().map(|r| match &r.exchange {
            Exchange::Local => 0.0,
            Exchange::Xor { instruction, .. } | Exchange::Index { instruction, .. } => {
                instruction.latency(target)
            }
        });
        each.fold(0.0, f64::max)
    }

    /// Cycles of one warp, latencies left out.
    pub fn cycles(&self, target: &TargetDesc) -> f64 {
        let exchange = |r: &ShuffleRound| match &r.exchange {
            Exchange::Local => 0.0,
            Exchange::Xor { instruction, .. } | Exchange::Index { instruction, .. } => {
                instruction.cycles(target)
            }
        };
        let shuffles: f64 = self.rounds.iter().map(exchange).sum();
        let alu = self.selects() + self.permutes() + self.address_ops();
        shuffles * self.words() as f64 + alu as f64 * target.cost.alu
    }
}

impl fmt::Display for ShufflePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elems = self.payload_elems();
        let bits = elems as u32 * self.storage_bits;
        let plural = if elems == 1 { "" } else { "s" };
        writeln!(f, "  payloads of {elems} element{plural}, {bits} bits:")?;
        for (p, registers) in self.sources.iter().enumerate() {
            let registers: Vec<String> = registers.iter().map(|r| format!("r{r}")).collect();
            writeln!(f, "    p{p} = [{}]", registers.join(" "))?;
        }
        let stages = |f: &mut fmt::Formatter<'_>, name, stages: &[SelectStage]| {
            stages.iter().try_for_each(|s| {
                let c = &s.condition;
                let on = [("lane", c.lane), ("warp", c.warp), ("block", c.block)];
                let on: Vec<String> =
                    on.iter().filter(|x| x.1 != 0).map(|(n, m)| format!("{n} & {m:#x}")).collect();
                writeln!(f, "  {name}: where {} is odd, p[i] = p[i ^ {}]", on.join(" ^ "), s.xor)
            })
        };
        stages(f, "select to send", &self.send)?;
        for (j, round) in self.rounds.iter().enumerate() {
            write!(f, "  round {j}: ")?;
            match &round.exchange {
                Exchange::Local => writeln!(f, "keep p{}", round.payload)?,
                Exchange::Xor { mask, instruction } => {
                    writeln!(f, "send p{}, {} from lane ^ {mask}", round.payload, instruction.name())?;
                }
                Exchange::Index { base, lanes, instruction } => {
                    let bits: Vec<String> = lanes.lane.iter().map(u64::to_string).collect();
                    let (p, name) = (round.payload, instruction.name());
                    writeln!(f, "send p{p}, {name} from lane {base} ^ [{}]·lane", bits.join(" "))?;
                }
            }
        }
        stages(f, "select received", &self.receive)
    }
}

/// A source of one element or payload: payload number, position within it, lane.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    payload: u64,
    position: u64,
    lane: u64,
}

impl Place {
    fn xor(self, other: Place) -> Place {
        Place {
            payload: self.payload ^ other.payload,
            position: self.position ^ other.position,
            lane: self.lane ^ other.lane,
        }
    }
}

/// One direction of the numbers of received payloads.
#[derive(Clone, Copy, Debug)]
struct Slot {
    column: u64,
    place: Place,
}

/// The plan with the fewest shuffles, if all elements stay in their warp and no lane would have to send
/// several payloads at once.
pub(crate) fn plan_shuffle(
    a: &Distributed,
    b: &Distributed,
    storage_bits: u32,
    target: &TargetDesc,
) -> Option<ShufflePlan> {
    let widest = (32 / storage_bits).max(1).ilog2();
    (0..=widest).rev().find_map(|v| Setup::new(a, b, v, storage_bits)?.plan(target))
}

struct Setup<'a> {
    a: &'a Distributed,
    b: &'a Distributed,
    storage_bits: u32,
    /// Elements of one payload, a basis.
    v: Vectors,
    /// Basis of the payloads of a source lane.
    sent: Vectors,
    slots: Vec<Slot>,
    /// Differences of places that hold the same element.
    copies: Vec<Place>,
    /// Where the element of received payload 0 is, per bit of lane, warp and block number.
    threads: Vec<Place>,
}

impl<'a> Setup<'a> {
    /// `None` when no `v` bits of registers are common, some element is in another warp, or elements
    /// would change their position within the payload from thread to thread.
    fn new(a: &'a Distributed, b: &'a Distributed, v: u32, storage_bits: u32) -> Option<Setup<'a>> {
        let span_b = Echelon::of(&b.reg);
        let mut common: Vectors = a.reg.iter().copied().filter(|&c| c != 0 && span_b.contains(c)).collect();
        common.extend(f2::intersection(&a.reg, &b.reg));
        let mut payload: Vectors = f2::basis(&common);
        if payload.len() < v as usize {
            return None;
        }
        payload.truncate(v as usize);
        let sent = f2::complement_within(&payload, &a.reg);
        let received = f2::complement_within(&payload, &b.reg);
        // Columns in the order position, payload, lane, so that copies are read from the lowest lane.
        let columns: Vectors = payload.iter().chain(&sent).chain(&a.lane).copied().collect();
        if columns.len() > 64 {
            return None;
        }
        let places = Echelon::of(&columns);
        let (vb, pb) = (v, sent.len() as u32);
        let split = |x: u64| Place {
            position: x & low_mask(vb),
            payload: x >> vb & low_mask(pb),
            lane: x.checked_shr(vb + pb).unwrap_or(0),
        };
        let place = |column: u64| places.express(column).map(split);
        let slots: Option<Vec<Slot>> = received
            .iter()
            .map(|&column| {
                // A slot may start anywhere in its payload: drop the position.
                let place = place(column)?;
                let column = column ^ f2::mul(&payload, place.position);
                Some(Slot { column, place: Place { position: 0, ..place } })
            })
            .collect();
        let slots = slots?;
        let copies: Vec<Place> = f2::kernel(&columns).iter().map(|&x| split(x)).collect();
        let pairs = |x: &[u64], y: &[u64]| -> Vec<u64> {
            let at = |v: &[u64], i: usize| v.get(i).copied().unwrap_or(0);
            (0..x.len().max(y.len())).map(|i| at(x, i) ^ at(y, i)).collect()
        };
        let moved = b.lane.iter().copied().chain(pairs(&a.warp, &b.warp)).chain(pairs(&a.block, &b.block));
        let threads: Option<Vec<Place>> = moved.map(place).collect();
        let threads = threads?;
        let still = threads.iter().chain(&copies).all(|p| p.position == 0);
        still.then_some(Setup { a, b, storage_bits, v: payload, sent, slots, copies, threads })
    }

    fn plan(mut self, target: &TargetDesc) -> Option<ShufflePlan> {
        self.split_slots();
        let phi = match self.keep_local() {
            Some(phi) => phi,
            None => self.spread()?,
        };
        self.schedule(&phi, target)
    }

    /// Changes the basis of received payloads so that those which a lane holds itself, `ker P`, are
    /// spanned by basis vectors, whose lane is zero.
    fn split_slots(&mut self) {
        let mut echelon = Echelon::new();
        let k = self.copies.len();
        self.copies.iter().for_each(|c| _ = echelon.insert(c.lane));
        for i in 0..self.slots.len() {
            let slot = self.slots[i];
            if let Some(x) = echelon.express(slot.place.lane) {
                let others = (0..i).filter(|j| x >> (k + j) & 1 == 1).map(|j| self.slots[j]);
                let mut combined = others
                    .fold(slot, |s, o| Slot { column: s.column ^ o.column, place: s.place.xor(o.place) });
                let copies = (0..k).filter(|c| x >> c & 1 == 1).map(|c| self.copies[c]);
                combined.place = copies.fold(combined.place, Place::xor);
                self.slots[i] = combined;
            }
            echelon.insert(slot.place.lane);
        }
    }

    /// `Φ` with `P Φ = 1 + Q`, if there is one: then lanes exchange by XOR and keep what they have.
    fn keep_local(&mut self) -> Option<Vec<u64>> {
        let k = self.copies.len();
        let lanes: Vectors =
            self.copies.iter().map(|c| c.lane).chain(self.slots.iter().map(|s| s.place.lane)).collect();
        let echelon = Echelon::of(&lanes);
        let lane_bits = self.a.lane.len();
        let solve = |(i, p): (usize, &Place)| {
            let own = if i < lane_bits { 1 << i } else { 0 };
            echelon.express(p.lane ^ own)
        };
        let solutions: Option<Vec<u64>> = self.threads.iter().enumerate().map(solve).collect();
        let solutions = solutions?;
        for (i, x) in solutions.iter().enumerate() {
            self.move_by_copies(i, x & low_mask(k as u32));
        }
        Some(solutions.iter().map(|x| x >> k).collect())
    }

    /// `Φ` for which different lanes read different lanes, unless they need the same.
    ///
    /// A lane bit whose `Q` is independent of earlier ones, modulo what `P` and copies can change, keeps
    /// it. Any other reads the lane that some of those read together: either all need the same payload, or
    /// it is sent to a lane nobody else reads.
    fn spread(&mut self) -> Option<Vec<u64>> {
        let copy_lanes: Vectors = self.copies.iter().map(|c| c.lane).collect();
        let slot_lanes: Vectors = self.slots.iter().map(|s| s.place.lane).collect();
        let free: Vectors = copy_lanes.iter().chain(&slot_lanes).copied().collect();
        let (span, own_copies) = (Echelon::of(&free), Echelon::of(&copy_lanes));
        let received: Vectors = self.slots.iter().map(|s| s.column).chain(self.v.iter().copied()).collect();
        let received = Echelon::of(&received);
        let (mut modulo, mut unused) = (span.clone(), f2::basis(&free));
        let mut phi = vec![0u64; self.threads.len()];
        for (i, phi) in phi.iter_mut().enumerate().take(self.a.lane.len()) {
            let lane = self.threads[i].lane;
            let combination = modulo.express(lane);
            modulo.insert(lane);
            let Some(x) = combination else { continue };
            let fellows: Vec<usize> = (0..i).filter(|j| x >> (free.len() + j) & 1 == 1).collect();
            let together = fellows.iter().fold(lane, |l, &j| l ^ self.threads[j].lane);
            let column = fellows.iter().fold(self.b.lane[i], |c, &j| c ^ self.b.lane[j]);
            let copies;
            if let Some(same) = received.express(column) {
                *phi = same & low_mask(self.slots.len() as u32);
                copies = own_copies.express(together ^ f2::mul(&slot_lanes, *phi))?;
            } else {
                let solution = span.express(together ^ unused.pop()?)?;
                *phi = solution >> copy_lanes.len();
                copies = solution & low_mask(copy_lanes.len() as u32);
            }
            self.move_by_copies(i, copies);
        }
        Some(phi)
    }

    /// Reads payload 0 of a thread bit from another copy.
    fn move_by_copies(&mut self, thread_bit: usize, copies: u64) {
        let chosen = self.copies.iter().enumerate().filter(|(c, _)| copies >> c & 1 == 1);
        self.threads[thread_bit] = chosen.fold(self.threads[thread_bit], |p, (_, &c)| p.xor(c));
    }

    fn schedule(&self, phi: &[u64], target: &TargetDesc) -> Option<ShufflePlan> {
        let lane_bits = self.a.lane.len();
        let slot_lanes: Vectors = self.slots.iter().map(|s| s.place.lane).collect();
        let slot_payloads: Vectors = self.slots.iter().map(|s| s.place.payload).collect();
        // M and Y = U Φ + W, per bit of lane, warp and block.
        let m: Vectors =
            self.threads.iter().zip(phi).map(|(p, &f)| p.lane ^ f2::mul(&slot_lanes, f)).collect();
        let y: Vectors =
            self.threads.iter().zip(phi).map(|(p, &f)| p.payload ^ f2::mul(&slot_payloads, f)).collect();
        let lanes_read = Echelon::of(&m[..lane_bits]);
        // Lanes that read the same lane must want the same payload.
        if f2::kernel(&m[..lane_bits]).iter().any(|&t| f2::mul(&y, t) != 0) {
            return None;
        }
        // What lane s sends: through the t that reads it, t = M⁻¹(s + P j + M_w w + M_b b).
        let reader = |s: u64| lanes_read.reduce(s).1;
        let sent_by = |s: u64| f2::mul(&y, reader(s));
        let mut send: Vec<u64> = (0..lane_bits).map(|i| sent_by(1 << i)).collect();
        send.extend((lane_bits..m.len()).map(|i| y[i] ^ sent_by(m[i])));
        let by_xor = m.iter().enumerate().all(|(i, &c)| c == if i < lane_bits { 1 << i } else { 0 });
        let warp_bits = self.a.warp.len().max(self.b.warp.len());
        let split = |v: &[u64]| ThreadBases {
            lane: v[..lane_bits].iter().copied().collect(),
            warp: v[lane_bits..lane_bits + warp_bits].iter().copied().collect(),
            block: v[lane_bits + warp_bits..].iter().copied().collect(),
        };
        let round = |j: u64| {
            let lane = f2::mul(&slot_lanes, j);
            let payload = f2::mul(&slot_payloads, j) ^ sent_by(lane);
            let exchange = match (by_xor, lane) {
                (true, 0) => Exchange::Local,
                (true, mask) => {
                    Exchange::Xor { mask, instruction: ShuffleInstruction::for_xor(mask, target) }
                }
                (false, base) => {
                    let instruction = ShuffleInstruction::for_index(target);
                    Exchange::Index { base, lanes: split(&m), instruction }
                }
            };
            ShuffleRound { payload, exchange }
        };
        Some(ShufflePlan {
            storage_bits: self.storage_bits,
            sources: self.sources(),
            send: stages(&split(&send)),
            rounds: (0..1u64 << self.slots.len()).map(round).collect(),
            receive: stages(&split(phi)),
            targets: self.targets()?,
        })
    }

    fn sources(&self) -> Vec<Vec<u32>> {
        let registers = Echelon::of(&self.a.reg);
        let register = |element: u64| registers.express(element).unwrap_or(0) as u32;
        let payload = |p: u64| {
            let base = f2::mul(&self.sent, p);
            (0..1u64 << self.v.len()).map(|i| register(base ^ f2::mul(&self.v, i))).collect()
        };
        (0..1u64 << self.sent.len()).map(payload).collect()
    }

    fn targets(&self) -> Option<Vec<(u32, u32)>> {
        let columns: Vectors = self.v.iter().copied().chain(self.slots.iter().map(|s| s.column)).collect();
        let echelon = Echelon::of(&columns);
        let v = self.v.len() as u32;
        (0..1u64 << self.b.reg.len())
            .map(|r| {
                let x = echelon.express(f2::mul(&self.b.reg, r))?;
                Some(((x >> v) as u32, (x & low_mask(v)) as u32))
            })
            .collect()
    }
}

/// Stages that XOR the number of every value with `shift(thread)`: one per dimension of its image.
fn stages(shift: &ThreadBases) -> Vec<SelectStage> {
    let all: Vectors = shift.lane.iter().chain(&shift.warp).chain(&shift.block).copied().collect();
    let basis = f2::basis(&all);
    let echelon = Echelon::of(&basis);
    let mask = |columns: &[u64], k: usize| {
        columns.iter().enumerate().fold(0, |m, (i, &c)| m | (echelon.express(c).unwrap_or(0) >> k & 1) << i)
    };
    basis
        .iter()
        .enumerate()
        .map(|(k, &xor)| SelectStage {
            xor,
            condition: ThreadMasks {
                lane: mask(&shift.lane, k),
                warp: mask(&shift.warp, k),
                block: mask(&shift.block, k),
            },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_instruction_that_reads_a_lane() {
        use ShuffleInstruction::*;
        let of = |name: &str, mask| ShuffleInstruction::for_xor(mask, &TargetDesc::parse(name).unwrap());
        for mask in [1, 3, 16, 31] {
            assert_eq!(of("cuda:90", mask), ShflBfly);
        }
        let of = |name: &str| [1, 3, 4, 7, 8, 10, 15, 16, 20, 32, 48].map(|mask| of(name, mask));
        let cdna3 = [
            QuadPerm,
            QuadPerm,
            RowMirrorQuad,
            RowMirror,
            RowRotate,
            RowRotateQuad,
            RowMirror,
            DsSwizzle,
            DsSwizzle,
            DsBpermute,
            DsBpermute,
        ];
        assert_eq!(of("hip:gfx942"), cdna3);
        let cdna4 = [
            QuadPerm,
            QuadPerm,
            RowMirrorQuad,
            RowMirror,
            RowRotate,
            RowRotateQuad,
            RowMirror,
            PermlaneSwap,
            DsSwizzle,
            PermlaneSwap,
            DsBpermute,
        ];
        assert_eq!(of("hip:gfx950"), cdna4);
        let rdna3 = [RowXmask, RowMirror, RowXmask, RowXmask, RowMirror, Permlanex16];
        assert_eq!(of("hip:gfx1100")[2..8], rdna3);
        for (name, by_number) in [("cuda:80", ShflIdx), ("hip:gfx1100", DsBpermute)] {
            let target = TargetDesc::parse(name).unwrap();
            assert_eq!(ShuffleInstruction::for_index(&target), by_number);
        }
    }

    #[test]
    fn values_change_places_where_the_parity_of_all_numbers_is_odd() {
        let stage = SelectStage { xor: 1, condition: ThreadMasks { lane: 0b101, warp: 0b1, block: 0b10 } };
        let applies = |lane, warp, block| stage.applies(Threads { lane, warp, block });
        assert!(!applies(0, 0, 0) && applies(1, 0, 0) && applies(0, 1, 0) && applies(0, 0, 2));
        assert!(!applies(5, 0, 0) && !applies(1, 1, 0) && !applies(1, 0, 2) && applies(1, 1, 2));
        assert!(!applies(2, 2, 1), "numbers outside of the masks do not count");
    }

    #[test]
    fn instructions_have_names() {
        use ShuffleInstruction::*;
        let all = [
            ShflBfly,
            ShflIdx,
            QuadPerm,
            RowMirror,
            RowMirrorQuad,
            RowRotate,
            RowRotateQuad,
            RowXmask,
            Permlanex16,
            PermlaneSwap,
            DsSwizzle,
            DsBpermute,
        ];
        let names = [
            "shfl.sync.bfly.b32",
            "shfl.sync.idx.b32",
            "dpp quad_perm",
            "dpp row_mirror",
            "dpp row_mirror, quad_perm",
            "dpp row_ror",
            "dpp row_ror, quad_perm",
            "dpp row_xmask",
            "v_permlanex16_b32",
            "v_permlane_swap_b32",
            "ds_swizzle_b32",
            "ds_bpermute_b32",
        ];
        assert_eq!(all.map(ShuffleInstruction::name), names);
    }
}
