//! How far the layout engine is from the best: on random small functions, what it leaves is compared with the cheapest
//! of all assignments of layouts, both as the objective counts them. `docs/objective.md` has what came of it.
//!
//! `TTOPT_PROGRAMS` says how many functions there are, `TTOPT_SEED` with which seed they begin, and `TTOPT_WORST` how many
//! of the worst are printed, with what each operation costs.

mod function;
mod generate;
mod report;
mod search;
mod session;
mod space;
mod text;

use mlir_host::driver::on_large_stack;
use report::Report;
use search::{Found, by_trying_all, nothing, optimum};
use session::Session;
use ttopt_passes::machine::Layouts;

/// No function may cost more than so many times its optimum.
const WORST: f64 = 1.25;
/// So many of all functions must be within 5 % of it.
const CLOSE: f64 = 0.95;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn the_engine_is_close_to_the_optimum() {
    let (first, count, worst) =
        (number("TTOPT_SEED", 1000), number("TTOPT_PROGRAMS", 40), number("TTOPT_WORST", 0));
    let report = on_large_stack(|| {
        let mut report = Report::default();
        let mut session = Session::new();
        for seed in first..first + count {
            if seed % 128 == 127 {
                // Attributes live as long as their context.
                session = Session::new();
            }
            report.add(seed, session.compare(&generate::function(seed)));
        }
        let session = Session::new();
        for (seed, _) in report.worst(worst as usize) {
            session.explain(seed, &generate::function(seed));
        }
        report
    });
    println!("{report}");
    assert!(report.close() >= CLOSE, "{report}");
    assert!(report.largest() <= WORST, "{report}");
}

#[test]
fn the_search_leaves_nothing_out_that_is_cheaper() {
    /// Functions with more assignments are left to the search alone.
    const MOST: usize = 5_000;
    let compared = on_large_stack(|| {
        let session = Session::new();
        let mut compared = 0;
        for seed in 0..100 {
            let function = generate::function(seed);
            let layouts = Layouts::new(session.context(), generate::machine(&function));
            let Some((space, _)) = session.space(&function, &layouts) else { continue };
            let Some(least) = by_trying_all(&space, &nothing(&function), 0, &mut MOST.clone()) else {
                continue;
            };
            let Found::Optimum(_, found) = optimum(&space, f64::INFINITY) else {
                panic!("seed {seed}: nothing")
            };
            assert!((found - least).abs() < 1e-6 * least, "seed {seed}: {found} found, {least} there");
            compared += 1;
        }
        compared
    });
    assert!(compared > 5, "{compared} functions were small enough");
}
