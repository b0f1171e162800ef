//! What plans are estimated to take, what they print, and what is chosen by that.

use linear_layout::plan::{GatherPlan, RowsFate, ScanPlan, ScanStep, ShuffleInstruction, TmaRowsPlan};
use linear_layout::target::{Primitives, TargetDesc};
use linear_layout::{Dim, Encoding, LinearLayout};

fn h100() -> TargetDesc {
    TargetDesc::parse("cuda:90").unwrap()
}

/// A row of `registers` neighbours in each of 32 lanes of one warp.
fn row(registers: u64) -> LinearLayout {
    let text = format!(
        "#ttg.blocked<{{sizePerThread = [{registers}], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}}>"
    );
    text.parse::<Encoding>().unwrap().to_linear_layout(&[32 * registers]).unwrap()
}

#[test]
fn each_operand_of_a_scan_is_combined() {
    let combining =
        |operands: &[u32]| ScanPlan::new(&row(4), Dim::out(0), operands, false, &h100()).unwrap().combining;
    assert!(combining(&[32]) > 0.0);
    assert_eq!(combining(&[32, 32, 32]), 3.0 * combining(&[32]));
}

/// The bits of a lane number that a scan runs along count, whatever lies between them.
#[test]
fn neighbours_of_a_scan_are_one_apart() {
    let part = |lane: u64| lane & 1 | lane >> 2 & 6;
    let mut step = ScanStep::default();
    step.neighbour = 0b11001;
    for lane in 0..32 {
        for (reverse, next) in [(false, part(lane) + 7), (true, part(lane) + 1)] {
            let source = step.source(lane, reverse);
            assert_eq!((part(source), source & 0b110), (next % 8, lane & 0b110), "lane {lane}");
        }
    }
}

#[test]
fn what_a_target_lacks_is_not_used() {
    let mut amd = TargetDesc::parse("hip:gfx942").unwrap();
    let mut with = |primitives: Primitives, mask| {
        amd.primitives = primitives;
        ShuffleInstruction::for_xor(mask, &amd)
    };
    for mask in 1..64 {
        assert_eq!(with(Primitives::default(), mask), ShuffleInstruction::DsBpermute, "{mask}");
        let swizzle = if mask < 32 { ShuffleInstruction::DsSwizzle } else { ShuffleInstruction::DsBpermute };
        assert_eq!(with(Primitives { ds_swizzle: true, ..Primitives::default() }, mask), swizzle, "{mask}");
    }
}

#[test]
fn a_gather_by_shuffles_says_how_many() {
    for (registers, says) in [(1, "1 shuffle for each result"), (4, "4 shuffles for each result")] {
        let plan = GatherPlan::by_shuffles(&row(registers), &row(1), Dim::out(0), 32, &h100());
        let text = plan.unwrap().expect("all lines are within the warp").to_string();
        assert!(text.contains(says), "{text}");
    }
}

/// As measured (docs/tma.md): short rows are loaded by threads, and for a dot only rows that are one copy are copied.
#[test]
fn rows_are_copied_where_that_is_faster() {
    let is_worth = |row_bytes, fate| TmaRowsPlan::is_worth((row_bytes, 2), fate, &h100()).is_ok();
    assert!(is_worth(512, RowsFate::InRegisters));
    assert!(!is_worth(256, RowsFate::InRegisters));
    assert!(is_worth(128, RowsFate::Multiplied));
    assert!(!is_worth(256, RowsFate::Multiplied) && !is_worth(64, RowsFate::Multiplied));
    assert!(!is_worth(512, RowsFate::Stored) && !is_worth(512, RowsFate::Scattered));
    let four_rows =
        TargetDesc::all().find(|target| target.primitives.bulk_rows).expect("a target that copies four");
    assert!(TmaRowsPlan::is_worth((64, 2), RowsFate::Stored, &four_rows).is_ok());
}
