//! What plans are estimated to take, what they print, and what is chosen by that.

use linear_layout::plan::{
    Conversion, ConversionPlan, GatherPlan, MatrixInstruction, RowsFate, ScanPlan, ScanStep,
    ShuffleInstruction, TmaRowsPlan,
};
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
        let mut primitives = Primitives::default();
        primitives.ds_swizzle = true;
        assert_eq!(with(primitives, mask), swizzle, "{mask}");
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

/// Rows of two CTAs of four warps, which hold different columns of them: by rows of eight elements a lane.
fn tile(lanes: [u64; 2], cluster: &str) -> LinearLayout {
    let [y, x] = lanes;
    let text = format!(
        "#ttg.blocked<{{sizePerThread = [1, 8], threadsPerWarp = [{y}, {x}], warpsPerCTA = [4, 1], order = [1, 0]{cluster}}}>"
    );
    text.parse::<Encoding>().unwrap().to_linear_layout(&[64, 128]).unwrap()
}

#[test]
fn memory_of_other_ctas_takes_longer() {
    let across = |cluster: [&str; 2], budget| {
        let (source, result) = (tile([4, 8], cluster[0]), tile([8, 4], cluster[1]));
        ConversionPlan::through_shared(&source, &result, 32, &h100(), budget).unwrap()
    };
    let plan = across([", CGALayout = [[1, 0]]", ", CGALayout = [[0, 1]]"], 1 << 17);
    let Conversion::Cluster(shared) = &plan.conversion else { panic!("{plan}") };
    let remote = [&shared.store, &shared.load].into_iter().find(|access| access.block.is_some()).unwrap();
    let mut local = remote.clone();
    local.block = None;
    let target = h100();
    let more = target.cost.wavefront * (target.cost.remote_factor - 1.0) * remote.wavefronts as f64;
    assert!(more > 0.0);
    assert!((remote.cycles(&target) - local.cycles(&target) - more).abs() < 1e-6);
    assert!(plan.to_string().contains("block ^"), "{plan}");
    // One CTA, one pass: neither is said.
    let text = across(["", ""], 1 << 17).to_string();
    assert!(text.contains(" at ^") && !text.contains("block ^") && !text.contains("pass ^"), "{text}");
    let text = across(["", ""], 1 << 13).to_string();
    assert!(text.contains("pass ^"), "{text}");
}

/// A dot as deep as an instruction uses that instruction.
#[test]
fn the_instruction_that_the_depth_fills_is_preferred() {
    let mut several = 0;
    for target in TargetDesc::all() {
        let of_warp = |row: &&MatrixInstruction| row.c.warps.is_empty();
        for row in MatrixInstruction::of(&target).filter(of_warp) {
            let same = |other: &&MatrixInstruction| other.multiplies(row.operand, row.sum, false);
            let depth = u64::from(row.shape[2]);
            let filled = |other: &&MatrixInstruction| u64::from(other.shape[2]) <= depth;
            let wanted = MatrixInstruction::of(&target).filter(of_warp).filter(same).find(filled).unwrap();
            let found = MatrixInstruction::of_warp(row.operand, row.sum, false, depth, &target);
            assert_eq!(found[0].shape, wanted.shape, "{}", target.name);
            several += usize::from(found.iter().any(|other| other.shape[2] < row.shape[2]));
        }
    }
    assert!(several > 0, "some types have instructions of several depths");
}
