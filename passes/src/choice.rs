//! Choices among alternatives, as they are told to those who ask (`--explain`).
//!
//! A choice prints as one line: what was chosen and what it costs, then, behind bars, what else could have been, the cheapest
//! first. Costs are cycles of one CTA, the objective's own ([`objective`](crate::objective)), unless the line says otherwise.

use linear_layout::Encoding;
use mlir_host::ir::Attr;
use std::fmt;
use ttopt_dialect::ttg::attrs::encoding;

/// What the costs of a choice say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Cycles of one CTA.
    Cycles,
    /// Cycles of one CTA more than if nothing changes.
    More,
    /// Times what a kernel without spills or latencies takes.
    Times,
    /// Bytes.
    Bytes,
    /// Registers of a thread.
    Registers,
}

/// What one way costs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cost {
    Known(f64),
    /// Nobody has told or measured it.
    Unmeasured,
    /// It cannot be done so.
    Impossible,
}

/// One way that something could be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    name: String,
    cost: Cost,
    /// What the cost is made of.
    terms: Vec<(&'static str, f64)>,
}

impl Candidate {
    /// Something that costs so much; that is impossible where it has no cost.
    pub fn new(name: impl Into<String>, cost: Option<f64>) -> Self {
        Self { name: name.into(), cost: cost.map_or(Cost::Impossible, Cost::Known), terms: Vec::new() }
    }

    /// Something that can be done, at a cost that nobody has told or measured.
    pub fn unmeasured(name: impl Into<String>) -> Self {
        Self { name: name.into(), cost: Cost::Unmeasured, terms: Vec::new() }
    }

    /// Something whose cost is the sum of `terms`.
    pub fn of_terms(name: impl Into<String>, terms: &[(&'static str, f64)]) -> Self {
        let cost = terms.iter().map(|(_, cost)| cost).sum();
        Self { name: name.into(), cost: Cost::Known(cost), terms: terms.to_vec() }
    }

    /// The place among alternatives: the cheapest first, what is not known behind, what is impossible last.
    fn rank(&self) -> (u8, f64) {
        match self.cost {
            Cost::Known(cost) => (0, cost),
            Cost::Unmeasured => (1, 0.0),
            Cost::Impossible => (2, 0.0),
        }
    }

    /// Name, cost and what that is made of; `word` is what is counted.
    fn text(&self, unit: Unit, word: &str) -> String {
        let Self { name, cost, terms } = self;
        let cost = match cost {
            Cost::Known(cost) => format!("{}{word}", number(*cost, unit)),
            Cost::Unmeasured => "unmeasured".to_owned(),
            Cost::Impossible => "impossible".to_owned(),
        };
        let terms = terms.iter().filter(|(_, cost)| cost.abs() >= LEAST);
        let terms: Vec<String> =
            terms.map(|(name, cost)| format!("{name} {}", number(*cost, unit))).collect();
        let terms = if terms.len() < 2 { String::new() } else { format!(" ({})", terms.join(", ")) };
        format!("{name}: {cost}{terms}")
    }
}

/// A cost, with as many digits as say something.
fn number(cost: f64, unit: Unit) -> String {
    match unit {
        Unit::Times => format!("{cost:.2}"),
        _ if cost.abs() < LEAST => "0".to_owned(),
        Unit::More => format!("{cost:+.0}"),
        Unit::Cycles if cost.abs() < 10.0 => format!("{cost:.1}"),
        Unit::Cycles | Unit::Bytes | Unit::Registers => format!("{cost:.0}"),
    }
}

/// Costs below this are told as none.
const LEAST: f64 = 0.05;

/// What was chosen, and what else could have been.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    subject: String,
    unit: Unit,
    chosen: Candidate,
    others: Vec<Candidate>,
}

/// Alternatives that are told of one choice.
const MOST: usize = 5;

impl Choice {
    /// The choice of something, without alternatives yet.
    pub fn new(subject: impl Into<String>, unit: Unit, chosen: Candidate) -> Self {
        Self { subject: subject.into(), unit, chosen, others: Vec::new() }
    }

    /// The choice of one of `candidates`, by number; `None` where there is no other, or no such number.
    pub fn among(
        subject: impl Into<String>,
        unit: Unit,
        mut candidates: Vec<Candidate>,
        chosen: usize,
    ) -> Option<Self> {
        if candidates.len() < 2 || chosen >= candidates.len() {
            return None;
        }
        let chosen = candidates.remove(chosen);
        Some(candidates.into_iter().fold(Self::new(subject, unit, chosen), Self::instead))
    }

    /// The same with another alternative.
    #[must_use]
    pub fn instead(mut self, other: Candidate) -> Self {
        self.others.push(other);
        self
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Choice { subject, unit, chosen, others } = self;
        let word = match unit {
            Unit::Cycles | Unit::More => " cycles",
            Unit::Times => " times",
            Unit::Bytes => " bytes",
            Unit::Registers => " registers",
        };
        write!(f, "choice of {subject}: {}", chosen.text(*unit, word))?;
        let mut others: Vec<&Candidate> = others.iter().collect();
        others.sort_by(|a, b| a.rank().0.cmp(&b.rank().0).then(a.rank().1.total_cmp(&b.rank().1)));
        for other in others.iter().take(MOST) {
            write!(f, " | {}", other.text(*unit, ""))?;
        }
        match others.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => write!(f, " | {more} more that cost no less"),
        }
    }
}

/// A layout in a few words: what each thread, the lanes of a warp and the warps of a CTA hold of a blocked one.
pub fn short(layout: Attr<'_>) -> String {
    encoding(layout).map_or_else(|_| layout.to_string(), |encoding| short_encoding(&encoding))
}

fn short_encoding(encoding: &Encoding) -> String {
    let sizes = |sizes: &[u64]| sizes.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
    match encoding {
        Encoding::Blocked(blocked) => format!(
            "blocked {} lanes {} warps {}",
            sizes(&blocked.size_per_thread),
            sizes(&blocked.threads_per_warp),
            sizes(&blocked.warps_per_cta)
        ),
        Encoding::Slice(slice) => format!("{} without dim {}", short_encoding(&slice.parent), slice.dim),
        Encoding::NvidiaMma(mma) => {
            format!("{} warps {}", encoding.mnemonic(), sizes(&mma.warps_per_cta))
        }
        Encoding::DotOperand(operand) => {
            format!("operand {} of {}", operand.op_idx, short_encoding(&operand.parent))
        }
        other => other.mnemonic().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_chosen_comes_first_and_the_cheapest_alternatives_follow() {
        let candidates = vec![
            Candidate::new("2 elements", Some(640.0)),
            Candidate::of_terms("8 elements", &[("issue", 64.0), ("lines", 256.0), ("sectors", 0.0)]),
            Candidate::new("16 elements", None),
            Candidate::unmeasured("3 elements"),
            Candidate::of_terms("4 elements", &[("issue", 384.4), ("lines", 0.0)]),
        ];
        let choice = Choice::among("vector", Unit::Cycles, candidates, 1).unwrap();
        assert_eq!(
            choice.to_string(),
            "choice of vector: 8 elements: 320 cycles (issue 64, lines 256) | 4 elements: 384 | 2 elements: 640 \
             | 3 elements: unmeasured | 16 elements: impossible"
        );
    }

    #[test]
    fn differences_have_a_sign() {
        let moved = Candidate::of_terms("move", &[("work", 120.0), ("conversions", -460.0)]);
        let choice = Choice::new("layout", Unit::More, moved).instead(Candidate::new("stay", Some(0.0)));
        assert_eq!(
            choice.to_string(),
            "choice of layout: move: -340 cycles (work +120, conversions -460) | stay: 0"
        );
    }

    #[test]
    fn where_there_is_one_way_nothing_is_chosen() {
        assert_eq!(Choice::among("vector", Unit::Cycles, vec![Candidate::new("1", Some(1.0))], 0), None);
    }

    #[test]
    fn many_alternatives_are_counted() {
        let times = |n: u32| Candidate::new(format!("{n} CTAs"), Some(f64::from(n)));
        let choice = Choice::among("occupancy", Unit::Times, (1..=8).map(times).collect(), 0).unwrap();
        let text = choice.to_string();
        assert!(text.starts_with("choice of occupancy: 1 CTAs: 1.00 times | 2 CTAs: 2.00 |"), "{text}");
        assert!(text.ends_with("| 6 CTAs: 6.00 | 2 more that cost no less"), "{text}");
    }
}
