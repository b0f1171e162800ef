//! What came of many functions.

use crate::session::Outcome;
use std::fmt::{Display, Formatter, Result};

/// The bounds of the bars of the histogram.
const BARS: [f64; 7] = [1.0, 1.01, 1.05, 1.1, 1.25, 1.5, 2.0];
/// Ratios this close are equal.
const EQUAL: f64 = 1e-6;

/// Ratios of the engine's costs to those of the best assignments, by seed.
#[derive(Default)]
pub struct Report {
    ratios: Vec<(u64, f64)>,
    /// Functions for which the engine found something cheaper than all that is searched.
    below: usize,
    /// Functions that are not searched: too many assignments, or registers are spilled.
    left_out: usize,
    /// Conversions in what the engine made, and in the best.
    conversions: [usize; 2],
}

impl Report {
    /// Adds what came of a seed.
    pub fn add(&mut self, seed: u64, outcome: Outcome) {
        match outcome {
            Outcome::Ratio(ratio, [engine, optimum]) => {
                self.ratios.push((seed, ratio));
                self.conversions[0] += engine;
                self.conversions[1] += optimum;
            }
            Outcome::Below => {
                self.ratios.push((seed, 1.0));
                self.below += 1;
            }
            Outcome::LeftOut => self.left_out += 1,
        }
    }

    /// The share of functions that are within 5 % of the optimum.
    pub fn close(&self) -> f64 {
        self.up_to(1.05) as f64 / self.ratios.len().max(1) as f64
    }

    /// The largest ratio.
    pub fn largest(&self) -> f64 {
        self.ratios.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max)
    }

    /// The seeds with the largest ratios.
    pub fn worst(&self, count: usize) -> Vec<(u64, f64)> {
        let mut sorted: Vec<_> =
            self.ratios.iter().copied().filter(|(_, ratio)| *ratio > 1.0 + EQUAL).collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        sorted.truncate(count);
        sorted
    }

    fn up_to(&self, bound: f64) -> usize {
        self.ratios.iter().filter(|(_, ratio)| *ratio <= bound + EQUAL).count()
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let count = self.ratios.len();
        writeln!(
            f,
            "{count} functions, {} more left out; the engine is below the search in {}",
            self.left_out, self.below
        )?;
        writeln!(f, "conversions: engine {}, optimum {}", self.conversions[0], self.conversions[1])?;
        let mut before = 0;
        let share = |n: usize| 100.0 * n as f64 / count.max(1) as f64;
        for bound in BARS {
            let n = self.up_to(bound);
            writeln!(f, "<= {bound:4.2} {:6} {:6.2} % {:6.2} %", n - before, share(n - before), share(n))?;
            before = n;
        }
        writeln!(f, "more    {:6} {:6.2} %", count - before, share(count - before))?;
        let mean = self.ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / count.max(1) as f64;
        writeln!(f, "geometric mean {:.4}; the worst:", mean.exp())?;
        for (seed, ratio) in self.worst(20) {
            writeln!(f, "  seed {seed}: {ratio:.4}")?;
        }
        Ok(())
    }
}
