//! Loads that write the LDS lane after lane, each executed by the checker.

mod plan_layouts;

use linear_layout::checker::check_lds_load;
use linear_layout::plan::{AddressFacts, LdsLoadPlan, PlanResult};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, Encoding, LinearLayout};
use plan_layouts::any_target;
use proptest::prelude::*;

fn layout(encoding: &str, shape: &[u64]) -> LinearLayout {
    encoding.parse::<Encoding>().unwrap().to_linear_layout(shape).unwrap()
}

fn blocked(size: [u64; 2], threads: [u64; 2], warps: [u64; 2]) -> String {
    format!(
        "#ttg.blocked<{{sizePerThread = {size:?}, threadsPerWarp = {threads:?}, warpsPerCTA = {warps:?}, order = [1, 0]}}>"
    )
}

fn swizzled(vec: u32, per_phase: u32, max_phase: u32) -> String {
    format!(
        "#ttg.swizzled_shared<{{vec = {vec}, perPhase = {per_phase}, maxPhase = {max_phase}, order = [1, 0]}}>"
    )
}

fn plan(
    d: &LinearLayout,
    m: &LinearLayout,
    padding: &[(u64, u64)],
    bits: u32,
    contiguous: u64,
    name: &str,
) -> PlanResult<LdsLoadPlan> {
    let target = TargetDesc::parse(name).unwrap();
    let facts = AddressFacts::row_major(d, contiguous, 64);
    let plan = LdsLoadPlan::new(d, m, padding, bits, &facts, &target)?;
    check_lds_load(&plan, d, m, padding, &facts, &target).unwrap();
    Ok(plan)
}

fn why(plan: PlanResult<LdsLoadPlan>) -> String {
    plan.unwrap_err().to_string()
}

/// Where each lane copies what it points to there is nothing to exchange; padding is between loads.
#[test]
fn rows_in_order_are_copied_as_they_are() {
    let shape = [64, 64];
    let (d, m) = (layout(&blocked([1, 8], [8, 8], [4, 1]), &shape), layout(&swizzled(1, 1, 1), &shape));
    for (bits, name) in [(128, "hip:gfx950"), (32, "hip:gfx942")] {
        let elems = bits / 16;
        let d = if elems == 8 { d.clone() } else { layout(&blocked([1, 2], [2, 32], [4, 1]), &shape) };
        // Padding of one word leaves loads of four at multiples of a word.
        for padding in [&[][..], &[(512, 8)], &[(512, 2)], &[(512, 16), (1024, 8)]] {
            let p = plan(&d, &m, padding, 16, 64, name).unwrap();
            assert_eq!(p.access.instruction.bits_per_lane(), bits, "{name}");
            assert_eq!(u64::from(elems) * p.access.count * 256, 64 * 64);
            assert_eq!((p.sources, p.access.address_ops), (None, 0));
        }
    }
}

/// As Triton lays out the right operand of a dot on gfx950: rows far apart follow each other.
#[test]
fn rows_in_another_order_are_copied_where_the_memory_has_them_so() {
    let (row, column) = (|n| [n, 0], |n| [0, n]);
    let outs = [Dim::out(0), Dim::out(1)];
    let registers = vec![column(1), column(2), column(4), row(8), row(32)];
    let lanes = vec![column(8), column(16), column(32), column(64), column(128), row(16)];
    let warps = vec![row(1), row(2), row(4)];
    let d = LinearLayout::from_bases(
        &[(Dim::REGISTER, registers), (Dim::LANE, lanes), (Dim::WARP, warps)],
        &outs,
    )
    .unwrap();
    let columns = (0..8).map(|bit| column(1 << bit));
    let offsets = columns.chain([16, 1, 2, 4, 8, 32].map(row)).collect();
    let m = LinearLayout::from_bases(&[(Dim::OFFSET, offsets)], &outs).unwrap();
    let p = plan(&d, &m, &[(512, 32)], 16, 8, "hip:gfx950").unwrap();
    assert_eq!((p.mnemonic.as_str(), p.access.count, p.sources), ("global_load_lds_dwordx4", 4, None));
}

/// Pointers in the order of memory are copied without an exchange, by all warps; not where there is less memory than they copy.
#[test]
fn pointers_in_the_order_of_memory_are_copied_as_they_are() {
    let (row, column) = (|n| [n, 0], |n| [0, n]);
    let outs = [Dim::out(0), Dim::out(1)];
    let columns = (0..6).map(|bit| column(1 << bit));
    let offsets = columns.chain([8, 16, 32, 1, 2, 4, 64].map(row)).collect();
    let m = LinearLayout::from_bases(&[(Dim::OFFSET, offsets)], &outs).unwrap();
    for (name, width, warps, loads) in [
        ("hip:gfx950", 128, 4, 4),
        ("hip:gfx950", 128, 16, 1),
        ("hip:gfx950", 32, 4, 16),
        ("hip:gfx942", 32, 8, 8),
    ] {
        let target = TargetDesc::parse(name).unwrap();
        let d = LdsLoadPlan::pointers(&m, 16, width, warps, &target).unwrap();
        assert_eq!(d.in_size(Dim::WARP), Some(warps));
        let unit = u64::from(width / 16);
        let padding = [(unit * 64, 8)];
        let p = plan(&d, &m, &padding, 16, unit, name).unwrap();
        assert_eq!((p.access.count, p.access.accesses[0].registers.len() as u64), (loads, unit), "{name}");
        assert!(p.sources.is_none() && p.access.inactive.is_empty());
    }
    let target = TargetDesc::parse("hip:gfx950").unwrap();
    assert!(LdsLoadPlan::pointers(&m, 16, 128, 32, &target).is_none());
    assert!(LdsLoadPlan::pointers(&m, 64, 32, 4, &target).is_none());
}

/// Swizzles mix bits of rows, which lanes, warps and registers have, into those of columns.
#[test]
fn lanes_exchange_pointers_where_memory_is_swizzled() {
    let shape = [64, 64];
    let d = layout(&blocked([1, 8], [8, 8], [4, 1]), &shape);
    for (vec, per_phase, max_phase) in [(8, 1, 8), (8, 2, 8), (8, 4, 4), (8, 1, 2)] {
        let p = plan(&d, &layout(&swizzled(vec, per_phase, max_phase), &shape), &[], 16, 64, "hip:gfx950");
        let p = p.unwrap();
        assert_eq!(p.access.count, 2);
        assert!(p.sources.is_some());
    }
    // f32 with columns of one element: 32 bits a lane.
    let narrow = layout(&blocked([1, 1], [2, 32], [4, 1]), &[64, 32]);
    let p = plan(&narrow, &layout(&swizzled(1, 2, 8), &[64, 32]), &[], 32, 1, "hip:gfx942").unwrap();
    assert_eq!((p.mnemonic.as_str(), p.access.count), ("global_load_lds_dword", 8));
    // Warps with a swizzle of their own.
    let wide = layout(&blocked([1, 8], [2, 32], [4, 1]), &[16, 256]);
    let p = plan(&wide, &layout(&swizzled(8, 1, 16), &[16, 256]), &[], 16, 64, "hip:gfx950").unwrap();
    let sources = p.sources.unwrap();
    assert!(sources.thread.warp.iter().any(|column| *column != 0) && sources.loads.iter().any(|s| *s != 0));
}

#[test]
fn what_lanes_cannot_write_is_refused() {
    let shape = [64, 64];
    let (d, m) = (layout(&blocked([1, 8], [8, 8], [4, 1]), &shape), layout(&swizzled(1, 1, 1), &shape));
    let refused = |padding, contiguous, name| why(plan(&d, &m, padding, 16, contiguous, name));
    assert_eq!(refused(&[], 64, "hip:gfx942"), "64 lanes do not hold 2 elements each of one piece of memory");
    assert_eq!(
        refused(&[], 64, "hip:gfx1201"),
        "hip:gfx1201 has no loads to shared memory past the registers"
    );
    assert_eq!(refused(&[], 64, "cuda:90"), "cuda:90 has no loads to shared memory past the registers");
    assert_eq!(refused(&[], 1, "hip:gfx950"), "16 consecutive bits are too few to copy without registers");
    let bytes = why(plan(&d, &m, &[], 8, 2, "hip:gfx950"));
    assert_eq!(bytes, "16 consecutive bits are too few to copy without registers");
    let padded = refused(&[(256, 8)], 64, "hip:gfx950");
    assert!(
        padded.starts_with("a load writes 512 elements one after the other, and memory has 8 unused"),
        "{padded}"
    );
    let odd = refused(&[(512, 3)], 64, "hip:gfx950");
    assert!(odd.contains("3 unused ones after every 512"), "{odd}");
    // Columns lie one after the other, and lanes hold rows.
    let columns = layout(&swizzled(1, 1, 1).replace("[1, 0]", "[0, 1]"), &shape);
    assert!(plan(&d, &columns, &[], 16, 64, "hip:gfx950").is_err());
}

/// Plans say what is executed, and where elements lie when padding is counted.
#[test]
fn plans_are_said_and_count_padding() {
    let shape = [64, 64];
    let (d, plain) = (layout(&blocked([1, 8], [8, 8], [4, 1]), &shape), layout(&swizzled(1, 1, 1), &shape));
    let padded = plan(&d, &plain, &[(512, 16), (1024, 8)], 16, 64, "hip:gfx950").unwrap();
    assert_eq!(padded.to_string(), "2 × global_load_lds_dwordx4 per warp\n");
    assert_eq!([511, 512, 1024, 1600].map(|offset| padded.padded(offset)), [511, 528, 1064, 1656]);
    let turned = plan(&d, &layout(&swizzled(8, 1, 8), &shape), &[], 16, 64, "hip:gfx950").unwrap();
    assert_eq!(
        turned.to_string(),
        "2 × global_load_lds_dwordx4 per warp, lanes exchange their pointers before\n"
    );
}

/// Lanes and warps that hold replicas do not copy; those that do are the first of their warp.
#[test]
fn threads_with_copies_are_idle() {
    let shape = [16, 16];
    let (d, m) = (layout(&blocked([1, 8], [32, 2], [4, 1]), &shape), layout(&swizzled(8, 1, 2), &shape));
    let p = plan(&d, &m, &[], 16, 16, "hip:gfx950").unwrap();
    assert_eq!((p.access.inactive.lane, p.access.inactive.warp), (32, 3));
    // Idle lanes keep what they point to.
    assert_eq!(p.sources.unwrap().thread.lane[5], 32);
    let columns = layout(&blocked([1, 8], [32, 2], [4, 1]).replace("[1, 0]", "[0, 1]"), &shape);
    let refused = why(plan(&columns, &m, &[], 16, 16, "hip:gfx950"));
    assert_eq!(refused, "lanes that copy nothing are not the last of their warp");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any memory that is an invertible mixture within loads: what is planned is right.
    #[test]
    fn random_memory(
        target in any_target(),
        bits in prop::sample::select(vec![8u32, 16, 32, 64]),
        mixed in prop::collection::vec(0u64..1 << 12, 12),
        interval in 0u32..13,
        pad in 0u64..64,
        contiguous in 0u32..6,
    ) {
        let shape = [64, 64];
        let elems = (128 / u64::from(bits)).min(if target.primitives.lds_loads_b128 { 16 } else { 32 / u64::from(bits) }).max(1);
        let across = (64 / elems).min(u64::from(target.lanes));
        let threads = [u64::from(target.lanes) / across, across];
        let d = layout(&blocked([1, elems], threads, [4, 1]), &shape);
        // Unit triangular above the bits of an access: what a bit of the offset means, XORed with some below it.
        let unit = elems.ilog2();
        let bases: Vec<[u64; 2]> = (0..12u32)
            .map(|bit| {
                let below = (1u64 << bit.max(unit)) - (1 << unit);
                let word = 1u64 << bit | if bit < unit { 0 } else { mixed[bit as usize] & below };
                [word >> 6, word & 63]
            })
            .collect();
        let m = LinearLayout::from_bases(&[(Dim::OFFSET, bases)], &[Dim::out(0), Dim::out(1)]).unwrap();
        let facts = AddressFacts::row_major(&d, 1 << contiguous, 64);
        for padding in [vec![], vec![(1 << interval, pad)]] {
            if let Ok(p) = LdsLoadPlan::new(&d, &m, &padding, bits, &facts, &target) {
                check_lds_load(&p, &d, &m, &padding, &facts, &target).unwrap();
            }
        }
    }
}
