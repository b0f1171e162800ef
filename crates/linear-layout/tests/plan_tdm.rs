//! Tensor operations of AMD's tensor data mover, executed element by element.

use linear_layout::Encoding;
use linear_layout::checker::check_tdm;
use linear_layout::plan::{PlanError, TdmPlan};
use linear_layout::target::{Direction, TargetDesc};

const BOTH: [Direction; 2] = [Direction::Load, Direction::Store];

fn target() -> TargetDesc {
    TargetDesc::parse("hip:gfx1250").unwrap()
}

/// A plan for rows with `padding`, which the checker has executed.
fn planned(
    shape: &[u64],
    padding: Option<(u64, u64)>,
    bits: u32,
    warps: u32,
    direction: Direction,
) -> Result<TdmPlan, PlanError> {
    let order: Vec<String> = (0..shape.len()).rev().map(|dim| dim.to_string()).collect();
    let order = order.join(", ");
    let text = match padding {
        Some((interval, pad)) => {
            format!("#ttg.padded_shared<[{interval}:+{pad}] {{order = [{order}], shape = {shape:?}}}>")
        }
        None => format!("#ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [{order}]}}>"),
    };
    let encoding: Encoding = text.parse().unwrap();
    let memory = encoding.to_linear_layout(shape).unwrap();
    let padding: Vec<(u64, u64)> = padding.into_iter().collect();
    let plan = TdmPlan::new(&memory, &padding, bits, warps, direction, &target())?;
    if let Err(error) = check_tdm(&plan, &memory, &padding, warps.into()) {
        panic!("{text} of {bits} bits, {warps} warps, {direction:?}: {error}\n{plan}");
    }
    Ok(plan)
}

#[test]
fn every_block_of_rows_is_moved() {
    let sizes = [1u64, 2, 8, 64, 128];
    let (mut plans, mut refused) = (0, 0);
    for bits in [8, 16, 64] {
        for row in sizes {
            for rows in sizes {
                for shape in [vec![row], vec![rows, row], vec![4, rows, row], vec![2, 1, 2, rows, row]] {
                    for warps in [1, 3, 4] {
                        for direction in BOTH {
                            let words = row * u64::from(bits) / 32;
                            planned(&shape, None, bits, warps, direction).unwrap();
                            match planned(&shape, Some((row, 128 / u64::from(bits))), bits, warps, direction)
                            {
                                Ok(_) => plans += 1,
                                Err(why) => {
                                    assert!(
                                        direction == Direction::Store && !(2..=256).contains(&words),
                                        "{shape:?}: {why}"
                                    );
                                    refused += 1;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(plans > 1000 && refused > 0, "{plans} {refused}");
}

#[test]
fn loads_leave_words_out_after_several_rows_or_within_one() {
    let plan = planned(&[128, 64], Some((128, 8)), 16, 4, Direction::Store).unwrap();
    assert_eq!(plan.tile[..], [32, 64]);
    assert_eq!(plan.padding.map(|p| (p.interval_words, p.words)), Some((64, 4)));
    planned(&[16, 128], Some((32, 4)), 32, 4, Direction::Store).unwrap();
    // Each warp's part is shorter than what padding follows.
    assert_eq!(planned(&[16, 64], Some((256, 8)), 16, 8, Direction::Store).unwrap().padding, None);
}

#[test]
fn stores_take_padding_for_elements_of_rows() {
    let plan = planned(&[64, 64], Some((64, 8)), 16, 4, Direction::Load).unwrap();
    assert_eq!((plan.row_padding, &plan.tile_dims()[..]), (8, &[72, 16][..]));
    let why = planned(&[64, 64], Some((128, 8)), 16, 4, Direction::Load).unwrap_err().to_string();
    assert!(why.contains("behind rows, of 64 elements, but it comes every 128"), "{why}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |text: &str, padding: &[(u64, u64)], bits, part: &str| {
        let encoding: Encoding = text.parse().unwrap();
        let memory = encoding.to_linear_layout(&[64, 64]).unwrap();
        let why =
            TdmPlan::new(&memory, padding, bits, 4, Direction::Store, &target()).unwrap_err().to_string();
        assert!(why.contains(part), "{why}");
    };
    let swizzled = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    refused(swizzled, &[], 16, "without swizzle");
    let columns = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>";
    refused(columns, &[], 16, "rows one after the other");
    let rows = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";
    refused(rows, &[(64, 1)], 16, "not 2 bytes after 128");
    refused(rows, &[(512, 4)], 32, "not 16 bytes after 2048");
    refused(rows, &[(32, 4), (64, 4)], 16, "padding of one kind");
    refused(rows, &[], 4, "no elements of 4 bits");
    let memory = rows.parse::<Encoding>().unwrap().to_linear_layout(&[64, 64]).unwrap();
    let other = TargetDesc::parse("hip:gfx950").unwrap();
    let why = TdmPlan::new(&memory, &[], 16, 4, Direction::Store, &other).unwrap_err();
    assert!(matches!(why, PlanError::NotOnTarget { .. }), "{why}");
}

#[test]
fn the_checker_finds_each_thing_wrong() {
    for direction in BOTH {
        let text = "#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>";
        let memory = text.parse::<Encoding>().unwrap().to_linear_layout(&[64, 64]).unwrap();
        let padding = [(64, 8)];
        let plan = TdmPlan::new(&memory, &padding, 16, 4, direction, &target()).unwrap();
        let check = |plan: &TdmPlan| check_tdm(plan, &memory, &padding, 4);
        assert_eq!(check(&plan), Ok(()));
        let mut mutations: Vec<TdmPlan> = Vec::new();
        let mut add = |change: &dyn Fn(&mut TdmPlan)| {
            let mut changed = plan.clone();
            change(&mut changed);
            mutations.push(changed);
        };
        add(&|plan| plan.elem_bits = 32);
        add(&|plan| plan.tile[0] = 8);
        add(&|plan| plan.tile[1] = 32);
        add(&|plan| plan.warp_bytes[0] += 16);
        add(&|plan| plan.warp_bytes.swap(0, 1));
        add(&|plan| plan.warp_starts[1][0] += 1);
        add(&|plan| plan.idle_warps = 1);
        add(&|plan| plan.block_mask = 1);
        add(&|plan| plan.row_padding += 8);
        add(&|plan| {
            plan.direction =
                if plan.direction == Direction::Load { Direction::Store } else { Direction::Load }
        });
        if direction == Direction::Store {
            add(&|plan| plan.padding = None);
            add(&|plan| plan.padding.iter_mut().for_each(|padding| padding.words += 1));
            add(&|plan| plan.padding.iter_mut().for_each(|padding| padding.interval_words *= 2));
        }
        for changed in mutations {
            assert_ne!(changed, plan);
            assert!(check(&changed).is_err(), "not found: {changed:?}");
        }
    }
}
