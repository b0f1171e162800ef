//! Accesses to shared memory of given layouts, each executed by the checker.

mod plan_layouts;
#[path = "plan_layouts/tiles.rs"]
mod tiles;

use linear_layout::checker::{check_async_copy, check_conversion, check_shared_access};
use linear_layout::plan::{
    AddressFacts, Conversion, ConversionPlan, FragmentWords, PlanError, SharedAccessPlan,
};
use linear_layout::target::{Direction, TargetDesc};
use linear_layout::{Dim, Encoding, LinearLayout};
use plan_layouts::any_target;
use proptest::prelude::*;
use tiles::{TILES, Tile};

fn layout(encoding: &str, shape: &[u64]) -> LinearLayout {
    encoding.parse::<Encoding>().unwrap().to_linear_layout(shape).unwrap()
}

fn target(name: &str) -> TargetDesc {
    TargetDesc::parse(name).unwrap()
}

const SWIZZLED: &str = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
const MMA: &str =
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>";
const BLOCKED: &str =
    "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>";

fn plan(d: &str, m: &str, shape: &[u64], bits: u32, direction: Direction, name: &str) -> SharedAccessPlan {
    let (d, m, target) = (layout(d, shape), layout(m, shape), target(name));
    let plan = SharedAccessPlan::new(&d, &m, bits, direction, &target).unwrap();
    check_shared_access(&plan, &d, &m, &target).unwrap();
    plan
}

fn dot(op: u32, k_width: u32) -> String {
    format!("#ttg.dot_op<{{opIdx = {op}, parent = {MMA}, kWidth = {k_width}}}>")
}

#[test]
fn operands_of_mma_load_by_ldmatrix() {
    let left = plan(&dot(0, 2), SWIZZLED, &[64, 64], 16, Direction::Load, "cuda:80");
    assert_eq!((left.mnemonic.as_str(), left.access.count, left.access.wavefronts), ("ldmatrix.x4", 8, 32));
    // The right operand runs along K down the rows of a row-major tensor: transposed.
    let right = plan(&dot(1, 2), SWIZZLED, &[64, 64], 16, Direction::Load, "cuda:80");
    assert_eq!((right.mnemonic.as_str(), right.access.wavefronts), ("ldmatrix.x4.trans", 32));
    let bytes = "#ttg.swizzled_shared<{vec = 16, perPhase = 2, maxPhase = 4, order = [1, 0]}>";
    assert_eq!(plan(&dot(0, 4), bytes, &[64, 64], 8, Direction::Load, "cuda:89").mnemonic, "ldmatrix.x4");
}

#[test]
fn matrices_of_an_instruction_leave_few_addresses_to_compute() {
    // The swizzle mixes three bits of the columns with the row: one of them chooses among the matrices of an
    // instruction, beside the rows that the operand of a product takes.
    let warps = dot(1, 2).replace("[2, 2]", "[4, 1]");
    let right = plan(&warps, SWIZZLED, &[64, 64], 16, Direction::Load, "cuda:80");
    assert_eq!((right.access.count, right.access.wavefronts, right.access.address_ops), (16, 64, 3));
    let first = &right.access.accesses[0].registers;
    assert_eq!(first[..4], [0, 1, 2, 3]);
}

#[test]
fn matrices_of_bytes_are_transposed_where_there_are_instructions() {
    // The right operand of a product of bytes in row-major memory: its columns run across the rows.
    let bytes = "#ttg.swizzled_shared<{vec = 16, perPhase = 2, maxPhase = 4, order = [1, 0]}>";
    let right = dot(1, 4).replace("[2, 2]", "[4, 1]");
    let p = plan(&right, bytes, &[64, 64], 8, Direction::Load, "cuda:100");
    assert_eq!((p.mnemonic.as_str(), p.access.count), ("ldmatrix.m16n16.x2.trans.b8", 8));
    assert_eq!(p.access.wavefronts, p.access.minimum);
    assert_eq!(plan(&right, bytes, &[64, 64], 8, Direction::Load, "cuda:90").mnemonic, "ld.shared.b8");
    // Results in column-major memory.
    let columns = "#ttg.swizzled_shared<{vec = 16, perPhase = 2, maxPhase = 4, order = [0, 1]}>";
    let p = plan(MMA, columns, &[64, 64], 8, Direction::Store, "cuda:100");
    assert_eq!((p.mnemonic.as_str(), p.access.wavefronts), ("stmatrix.m16n8.x4.trans.b8", 8));
    // Two elements of four bits in a byte: registers go along the columns.
    let plain = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";
    let pairs = "#ttg.linear<{register = [[0, 1], [1, 0], [2, 0], [0, 16]], lane = [[4, 0], [8, 0], [0, 2], [0, 4], [0, 8]], warp = [[16, 0], [32, 0]], block = []}>";
    let p = plan(pairs, plain, &[64, 32], 4, Direction::Load, "cuda:100");
    assert_eq!(p.mnemonic, "ldmatrix.m16n16.x1.trans.b8");
}

#[test]
fn results_store_by_stmatrix_where_there_is_one() {
    let hopper = plan(MMA, SWIZZLED, &[64, 64], 16, Direction::Store, "cuda:90");
    assert_eq!((hopper.mnemonic.as_str(), hopper.access.wavefronts), ("stmatrix.x4", 16));
    let ampere = plan(MMA, SWIZZLED, &[64, 64], 16, Direction::Store, "cuda:80");
    assert_eq!(ampere.mnemonic, "st.shared.b32");
}

#[test]
fn words_of_adjacent_registers_need_no_permutes() {
    for operand in [0, 1] {
        let p = plan(&dot(operand, 2), SWIZZLED, &[64, 64], 16, Direction::Load, "cuda:80");
        assert_eq!(p.access.packing_ops, 0);
    }
    let offsets = |columns: &[u64]| {
        let outs = [(Dim::out(0), columns.len() as u32)];
        LinearLayout::from_columns(&[(Dim::OFFSET, columns.len() as u32)], &outs, columns.iter().copied())
            .unwrap()
    };
    let d = LinearLayout::identity_1d(8, Dim::REGISTER, Dim::out(0)).unwrap();
    // Memory, bits of an element, permutes.
    for (m, bits, expected) in [
        (offsets(&[1, 2, 4]), 16, 0),
        // The halves of each word are those of two words.
        (offsets(&[2, 1, 4]), 16, 4),
        (offsets(&[1, 4, 2]), 8, 2),
        // The bytes of each word in another order.
        (offsets(&[2, 1, 4]), 8, 2),
        (offsets(&[4, 2, 1]), 32, 0),
    ] {
        let p = SharedAccessPlan::new(&d, &m, bits, Direction::Load, &target("cuda:80")).unwrap();
        check_shared_access(&p, &d, &m, &target("cuda:80")).unwrap();
        assert_eq!(p.access.packing_ops, expected, "{m}");
    }
}

#[test]
fn unswizzled_memory_conflicts_as_the_hardware_would() {
    let plain = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";
    let p = plan(&dot(0, 2), plain, &[64, 64], 16, Direction::Load, "cuda:80");
    assert_eq!(p.access.wavefronts, 8 * p.access.minimum, "eight rows of 128 bytes start in one bank");
}

#[test]
fn vectors_follow_the_memory() {
    let p = plan(BLOCKED, SWIZZLED, &[64, 64], 16, Direction::Store, "cuda:80");
    assert_eq!((p.mnemonic.as_str(), p.access.wavefronts), ("st.shared.v4.b32", p.access.minimum));
    let transposed = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>";
    let p = plan(BLOCKED, transposed, &[64, 64], 32, Direction::Store, "cuda:80");
    assert_eq!(p.mnemonic, "st.shared.b32");
    assert_eq!(
        plan(BLOCKED, SWIZZLED, &[64, 64], 16, Direction::Load, "cuda:80").mnemonic,
        "ld.shared.v4.b32"
    );
}

#[test]
fn amd_widths_and_transposed_reads() {
    let blocked = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>";
    let rows = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    assert_eq!(plan(blocked, rows, &[64, 64], 16, Direction::Store, "hip:gfx942").mnemonic, "ds_write_b128");
    assert_eq!(plan(blocked, rows, &[64, 64], 16, Direction::Load, "hip:gfx90a").mnemonic, "ds_read_b128");
    let mfma =
        "#ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, 32], isTransposed = false}>";
    let operand = format!("#ttg.dot_op<{{opIdx = 1, parent = {mfma}, kWidth = 4}}>");
    let p = plan(&operand, rows, &[64, 64], 16, Direction::Load, "hip:gfx950");
    assert_eq!(p.mnemonic, "ds_read_b64_tr_b16");
    assert_ne!(plan(&operand, rows, &[64, 64], 16, Direction::Load, "hip:gfx942").mnemonic, p.mnemonic);
}

#[test]
fn padding_moves_banks_and_bounds_vectors() {
    let shape = [32, 32];
    let column = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>";
    let plain = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";
    let (d, m, t) = (layout(column, &shape), layout(plain, &shape), target("cuda:80"));
    let unpadded = SharedAccessPlan::new(&d, &m, 32, Direction::Load, &t).unwrap();
    let padded = SharedAccessPlan::with_padding(&d, &m, &[(32, 1)], 32, Direction::Load, &t).unwrap();
    check_shared_access(&padded, &d, &m, &t).unwrap();
    assert_eq!((unpadded.access.wavefronts, padded.access.wavefronts), (8 * 32, 8));
    assert_eq!(padded.padded(64), 66);
    let wide =
        SharedAccessPlan::with_padding(&layout(BLOCKED, &shape), &m, &[(32, 4)], 16, Direction::Load, &t)
            .unwrap();
    check_shared_access(&wide, &layout(BLOCKED, &shape), &m, &t).unwrap();
    assert_eq!(wide.access.instruction.bits_per_lane(), 64, "padding of 4 elements keeps 8 bytes aligned");
    // Rows of a matrix are as long as what lies between paddings, or longer.
    for (interval, mnemonic) in [(8, "ldmatrix.x4"), (4, "ld.shared.b32")] {
        let d = layout(&dot(0, 2), &shape);
        let padding = [(interval, 8)];
        let plan = SharedAccessPlan::with_padding(&d, &m, &padding, 16, Direction::Load, &t).unwrap();
        check_shared_access(&plan, &d, &m, &t).unwrap();
        assert_eq!(plan.mnemonic, mnemonic);
    }
    let bad = SharedAccessPlan::with_padding(&d, &m, &[(24, 1)], 32, Direction::Load, &t);
    assert!(matches!(bad, Err(PlanError::Layout(_))));
    for pad in [1 << 62, 1 << 58, u64::MAX] {
        let huge = SharedAccessPlan::with_padding(&d, &m, &[(32, pad)], 32, Direction::Load, &t);
        let padding = vec![(32, pad)];
        assert_eq!(huge, Err(PlanError::TooLarge { offset_bits: 10, bits: 32, padding }));
    }
    let sum =
        SharedAccessPlan::with_padding(&d, &m, &[(32, 1 << 52), (64, 1 << 57)], 32, Direction::Load, &t);
    assert!(matches!(sum, Err(PlanError::TooLarge { .. })));
}

/// Padding may be larger than what it pads, as long as the end has a number; memory has offsets, and no threads.
#[test]
fn memory_is_addressed_by_numbers_of_64_bits() {
    let (shape, t) = ([64, 64], target("cuda:90"));
    let (d, m) = (
        layout(BLOCKED, &shape),
        layout(&SWIZZLED.replace("maxPhase = 8", "maxPhase = 1").replace("vec = 8", "vec = 1"), &shape),
    );
    let padded = |pad| SharedAccessPlan::with_padding(&d, &m, &[(4096, pad)], 16, Direction::Load, &t);
    assert_eq!(padded(1 << 41).unwrap().padded(4095), 4095);
    assert!(matches!(padded(1 << 60), Err(PlanError::TooLarge { bits: 16, .. })));
    let threads = SharedAccessPlan::new(&d, &d, 16, Direction::Load, &t);
    assert!(matches!(threads, Err(PlanError::ForeignDim { what: "shared memory", .. })), "{threads:?}");
    // What has no bits is not there.
    let bases = |dim: usize| (0..6).map(move |bit| [0, 1].map(|d| if d == dim { 1u64 << bit } else { 0 }));
    let offsets = bases(1).chain(bases(0)).collect();
    let outs = [Dim::out(0), Dim::out(1)];
    let empty = LinearLayout::from_bases(&[(Dim::OFFSET, offsets), (Dim::LANE, vec![])], &outs).unwrap();
    let plan = |m| SharedAccessPlan::new(&d, m, 16, Direction::Load, &t);
    assert_eq!(plan(&empty).unwrap().access, plan(&m).unwrap().access);
}

#[test]
fn accesses_fill_whole_bytes_or_say_so() {
    let column = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>";
    let plain = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";
    let (d, m, t) = (layout(column, &[32, 4]), layout(plain, &[32, 4]), target("cuda:80"));
    for direction in [Direction::Load, Direction::Store] {
        let refused = SharedAccessPlan::new(&d, &m, 4, direction, &t).unwrap_err();
        assert_eq!(refused.to_string(), "an access of 1 elements of 4 bits does not fill whole bytes");
    }
}

#[test]
fn async_copies_are_wide_in_both_memories() {
    let shape = [64, 64];
    let (d, m) = (layout(BLOCKED, &shape), layout(SWIZZLED, &shape));
    let facts = AddressFacts::row_major(&d, 64, 64);
    let p = SharedAccessPlan::async_copy(&d, &m, 16, &facts, &target("cuda:80")).unwrap();
    assert_eq!((p.mnemonic.as_str(), p.access.count), ("cp.async.cg.shared.global 16", 4));
    check_async_copy(&p, &d, &m, &facts, &target("cuda:80")).unwrap();
    let narrow = AddressFacts::row_major(&d, 2, 64);
    let p = SharedAccessPlan::async_copy(&d, &m, 16, &narrow, &target("cuda:80")).unwrap();
    assert_eq!(p.mnemonic, "cp.async.ca.shared.global 4");
    check_async_copy(&p, &d, &m, &narrow, &target("cuda:80")).unwrap();
    // Entries of 16 bytes of a table that fits stay in the L1; where neighbours are the next ones, or the table is large, nothing is looked up
    // again.
    let table = |neighbours, within| {
        let facts = AddressFacts { neighbours, within, ..AddressFacts::row_major(&d, 8, 64) };
        let p = SharedAccessPlan::async_copy(&d, &m, 16, &facts, &target("cuda:80")).unwrap();
        check_async_copy(&p, &d, &m, &facts, &target("cuda:80")).unwrap();
        (p.through_l1, p.mnemonic)
    };
    let (cached, past) =
        ("cp.async.ca.shared.global 16".to_owned(), "cp.async.cg.shared.global 16".to_owned());
    assert_eq!(table(8, 32 << 10), (true, cached));
    assert_eq!(table(8, (32 << 10) + 1), (false, past.clone()));
    assert_eq!(table(64, 4096), (false, past));
    let unaligned = AddressFacts::row_major(&d, 1, 64);
    assert!(SharedAccessPlan::async_copy(&d, &m, 16, &unaligned, &target("cuda:80")).is_err());
    let mut without = target("cuda:80");
    without.primitives.cp_async = false;
    assert!(SharedAccessPlan::async_copy(&d, &m, 16, &facts, &without).is_err());
    // Not from one partition into the next.
    let line = |registers: u32, lanes: u32| {
        let (ins, n) = ([(Dim::REGISTER, registers), (Dim::LANE, lanes)], registers + lanes);
        LinearLayout::from_columns(&ins, &[(Dim::out(0), n)], (0..n).map(|bit| 1 << bit)).unwrap()
    };
    let parts = |offsets: u32, parts: u32| {
        let (ins, n) = ([(Dim::OFFSET, offsets), (Dim::PARTITION, parts)], offsets + parts);
        LinearLayout::from_columns(&ins, &[(Dim::out(0), n)], (0..n).map(|bit| 1 << bit)).unwrap()
    };
    let copied = |d: &LinearLayout, m: &LinearLayout, name: &str| {
        let (facts, target) = (AddressFacts::row_major(d, 64, 64), target(name));
        let plan = SharedAccessPlan::async_copy(d, m, 16, &facts, &target);
        plan.map(|plan| {
            check_async_copy(&plan, d, m, &facts, &target).unwrap();
            plan.mnemonic
        })
    };
    let few = line(3, 0);
    assert_eq!(copied(&few, &parts(3, 0), "cuda:80").unwrap(), "cp.async.cg.shared.global 16");
    assert_eq!(copied(&few, &parts(2, 1), "cuda:80").unwrap(), "cp.async.ca.shared.global 8");
    // AMD GPUs write lane after lane: `LdsLoadPlan` (tests/plan_lds_load.rs).
    for name in ["hip:gfx942", "hip:gfx950"] {
        assert!(copied(&line(1, 6), &parts(7, 0), name).is_err());
    }
}

/// `mma.m16n8k16` takes a left operand from four consecutive words, a right one from two (PTX ISA, "Matrix Fragments for
/// mma.m16n8k16"). Words that one instruction gives are consecutive, too: where they belong to several fragments, the
/// assembler moves each of them.
#[test]
fn fragments_come_whole() {
    let shape = [64, 64];
    let t = target("cuda:80");
    let columns = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>";
    // Rows and columns in an order in which addresses are cheapest computed for matrices of several fragments.
    let mixed = LinearLayout::from_bases(
        &[(
            Dim::OFFSET,
            vec![
                [1, 0],
                [2, 0],
                [4, 0],
                [8, 0],
                [16, 0],
                [32, 0],
                [0, 8],
                [0, 16],
                [0, 32],
                [8, 1],
                [16, 2],
                [32, 4],
            ],
        )],
        &[Dim::out(0), Dim::out(1)],
    )
    .unwrap();
    let left = (4, FragmentWords::fours(0, 1));
    for (op, (words, fragment)) in [(0, left), (1, (2, FragmentWords::pairs(0)))] {
        let d = layout(&dot(op, 2), &shape);
        for m in [layout(SWIZZLED, &shape), layout(columns, &shape), mixed.clone()] {
            let plan =
                SharedAccessPlan::for_fragments(&d, &m, &[], (16, fragment), Direction::Load, &t).unwrap();
            check_shared_access(&plan, &d, &m, &t).unwrap();
            for access in &plan.access.accesses {
                let fragments = access.registers.chunks(2 * words as usize).map(|registers| {
                    let first = registers[0] / (2 * words);
                    assert!(
                        registers.iter().all(|r| r / (2 * words) == first),
                        "{registers:?} of operand {op}"
                    );
                });
                assert!(fragments.count() > 0);
            }
        }
    }
}

/// What is copied past the registers are consecutive registers, in their order and of 4 bytes or more, whatever the operand is read by: here memory
/// that registers fill best gives a copy 4 bytes, of 16.
#[test]
fn copies_past_the_registers_are_of_registers_in_their_order() {
    let t = target("cuda:90");
    let rows = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>";
    let apart = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>";
    let shape = [16, 256];
    let (from, to) = (layout(rows, &shape), layout(&dot(0, 4), &shape));
    for fragment in [FragmentWords::ONE, FragmentWords::fours(1, 0)] {
        let plan = ConversionPlan::for_copies(&from, &to, (16, fragment), &t).unwrap().unwrap();
        check_conversion(&plan, &from, &to, &t).unwrap();
        let Conversion::SharedMemory(shared) = &plan.conversion else { panic!("{:?}", plan.conversion) };
        assert!(shared.store.count <= 8, "{plan}");
        for access in &shared.store.accesses {
            let in_order = access.registers.windows(2).all(|pair| pair[1] == pair[0] + 1);
            assert!(in_order && access.registers.len() >= 4, "{:?}", access.registers);
        }
    }
    // Single elements of 16 bits are less than a copy moves.
    assert!(
        ConversionPlan::for_copies(&layout(apart, &shape), &to, (16, FragmentWords::ONE), &t)
            .unwrap()
            .is_none()
    );
}

/// A thread that holds two words along K takes them to two instructions: each wants both rows at one of them, in this order.
#[test]
fn fragments_come_in_their_order() {
    let t = target("cuda:90");
    let (from, to) = (layout(BLOCKED, &[64, 64]), layout(&dot(0, 4), &[64, 64]));
    for (fragment, order) in
        [(FragmentWords::fours(1, 0), [0, 2, 1, 3]), (FragmentWords::fours(0, 1), [0, 1, 2, 3])]
    {
        let plan = ConversionPlan::for_fragments(&from, &to, (16, fragment), &t).unwrap();
        check_conversion(&plan, &from, &to, &t).unwrap();
        let Conversion::SharedMemory(shared) = &plan.conversion else { panic!("{:?}", plan.conversion) };
        assert_eq!(shared.load.fragment_moves, 0);
        for access in &shared.load.accesses {
            let words = access.registers.chunks(2).map(|word| word[0] / 2 % 4);
            assert_eq!(words.collect::<Vec<_>>(), order, "{:?}", access.registers);
        }
        // The same access, of which the other order is asked, moves its words.
        let mut wrong = plan.clone();
        let Conversion::SharedMemory(shared) = &mut wrong.conversion else { unreachable!() };
        let natural = order[1] == 1;
        shared.load.fragment = if natural { FragmentWords::fours(1, 0) } else { FragmentWords::fours(0, 1) };
        assert!(check_conversion(&wrong, &from, &to, &t).is_err());
    }
}

/// Registers may be numbered in any way: one that moves along more than its own place also flips a place within a word.
#[test]
fn matrices_move_between_registers_of_any_numbers() {
    let columns = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>";
    let mut moved = 0;
    for (operand, bits) in
        [(dot(0, 2), 16), (dot(1, 2), 16), (dot(0, 4), 8), (dot(1, 4), 8), (MMA.to_owned(), 16)]
    {
        let plain = layout(&operand, &[64, 64]);
        let registers = plain.in_bits(Dim::REGISTER) as usize;
        let (ins, outs): (Vec<_>, Vec<_>) = (plain.in_dim_bits().collect(), plain.out_dim_bits().collect());
        for (i, j) in (0..registers).flat_map(|i| (0..registers).map(move |j| (i, j))) {
            let mut mixed = plain.columns().to_vec();
            mixed[i] ^= if i == j { 0 } else { plain.columns()[j] };
            let d = LinearLayout::from_columns(&ins, &outs, mixed).unwrap();
            for (memory, direction, name) in [SWIZZLED, columns].into_iter().flat_map(|memory| {
                [(Direction::Load, "cuda:80"), (Direction::Store, "cuda:90"), (Direction::Load, "cuda:100")]
                    .map(|(direction, name)| (memory, direction, name))
            }) {
                let (m, t) = (layout(memory, &[64, 64]), target(name));
                let plan = SharedAccessPlan::new(&d, &m, bits, direction, &t).unwrap();
                check_shared_access(&plan, &d, &m, &t).unwrap_or_else(|e| panic!("{e}\n{d}\n{plan:?}"));
                moved += usize::from(plan.mnemonic.contains("matrix"));
            }
        }
    }
    assert!(moved > 200, "{moved}");
}

/// Layouts in which one lane, register or warp is not where an instruction of matrices wants it.
#[test]
fn what_nearly_is_a_tile_of_matrices_is_accessed_right() {
    for tile in TILES {
        let target = target(tile.target);
        let is_matrix =
            |plan: &SharedAccessPlan| ["matrix", "_tr"].iter().any(|part| plan.mnemonic.contains(part));
        let [mut matrices, mut others] = [0, 0];
        for d in tile.variations() {
            let plan = tile.plan(&d, &target).unwrap();
            let m = Tile::memory(d.total_out_bits());
            if let Err(error) = check_shared_access(&plan, &d, &m, &target) {
                panic!("{error}\n{d}\n{plan}");
            }
            *(if is_matrix(&plan) { &mut matrices } else { &mut others }) += 1;
        }
        assert!(matrices > 50 && others > 50, "{} {matrices} {others}", tile.target);
    }
}

#[test]
fn each_of_four_blocks_keeps_to_its_own_memory() {
    let shape = [128, 64];
    let text = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], CGALayout = [[1, 0], [2, 0]]}>";
    let (m, t) = (layout(text, &shape), target("cuda:90"));
    for blocks in [vec![[32, 0], [64, 0]], vec![[64, 0], [32, 0]]] {
        let d = LinearLayout::from_bases(
            &[
                (Dim::REGISTER, vec![[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]]),
                (Dim::LANE, vec![[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]),
                (Dim::BLOCK, blocks.clone()),
            ],
            &[Dim::out(0), Dim::out(1)],
        )
        .unwrap();
        for direction in [Direction::Load, Direction::Store] {
            let p = SharedAccessPlan::new(&d, &m, 16, direction, &t).unwrap();
            // Where blocks are numbered otherwise each reads and writes another one's memory.
            assert_eq!(p.access.block.is_none(), blocks[0] == [32, 0], "{p:?}");
            check_shared_access(&p, &d, &m, &t).unwrap();
        }
    }
}

#[test]
fn two_blocks_keep_to_their_own_memory() {
    let shape = [64, 64];
    let d = LinearLayout::from_bases(
        &[
            (Dim::REGISTER, vec![[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]]),
            (Dim::LANE, vec![[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]),
            (Dim::BLOCK, vec![[32, 0]]),
        ],
        &[Dim::out(0), Dim::out(1)],
    )
    .unwrap();
    let m =
        "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], CGALayout = [[1, 0]]}>";
    let m = layout(m, &shape);
    let t = target("cuda:90");
    for direction in [Direction::Load, Direction::Store] {
        let p = SharedAccessPlan::new(&d, &m, 16, direction, &t).unwrap();
        assert!(p.access.block.is_none());
        check_shared_access(&p, &d, &m, &t).unwrap();
    }
}

#[test]
fn partitions_are_the_highest_offsets() {
    let inner = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    let text = format!(
        "#ttg.partitioned_shared<{{numPartitions = 2, numGroups = 2, partitionDim = 0, partitionLayout = {inner}}}>"
    );
    for (direction, wide) in [(Direction::Load, "ds_read_b128"), (Direction::Store, "ds_write_b128")] {
        let blocked = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>";
        let p = plan(blocked, &text, &[64, 64], 16, direction, "hip:gfx942");
        assert_eq!((p.partition_bits, p.mnemonic.as_str()), (1, wide));
        let partition = |a: u64| a >> 11;
        // Rows 16 to 31 of each half of 32 rows are in the other partition; a warp has eight rows.
        assert_eq!(p.access.address.warp.iter().map(|&a| partition(a)).collect::<Vec<_>>(), [0, 1]);
    }
    // No access reaches from one partition into the next, though elements go on there.
    let d = LinearLayout::identity_1d(8, Dim::REGISTER, Dim::out(0)).unwrap();
    let m = LinearLayout::from_bases(
        &[(Dim::OFFSET, vec![[1], [2]]), (Dim::PARTITION, vec![[4]])],
        &[Dim::out(0)],
    )
    .unwrap();
    let t = target("hip:gfx942");
    let p = SharedAccessPlan::new(&d, &m, 8, Direction::Load, &t).unwrap();
    check_shared_access(&p, &d, &m, &t).unwrap();
    assert_eq!(p.mnemonic, "ds_read_b32");
    let padded = SharedAccessPlan::with_padding(&d, &m, &[(2, 2), (8, 4)], 8, Direction::Load, &t).unwrap();
    check_shared_access(&padded, &d, &m, &t).unwrap();
    assert_eq!((padded.padding.as_slice(), padded.padded(5)), (&[(2, 2)][..], 9));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any linear memory, any distributed layout.
    #[test]
    fn any_memory_is_accessed_right(
        seed in proptest::collection::vec(any::<u64>(), 40),
        bits in 1usize..10,
        width in 3u32..7,
        target in any_target(),
        load in any::<bool>(),
        partitions in 0usize..3,
    ) {
        let shuffled = |n: usize, from: usize, mix: usize| {
            let mut c: Vec<u64> = (0..n).map(|i| if i < bits { 1 << i } else { 0 }).collect();
            for i in (1..n).rev() {
                c.swap(i, (seed[from + i] % (i as u64 + 1)) as usize);
            }
            for &x in &seed[..mix] {
                let (i, j) = ((x >> 8) as usize % n, (x >> 32) as usize % n);
                if i != j {
                    c[i] ^= c[j];
                }
            }
            c
        };
        let lanes = target.lane_bits() as usize;
        let registers = bits.saturating_sub(lanes + 1) + 2;
        let ins = [(Dim::REGISTER, registers as u32), (Dim::LANE, lanes as u32), (Dim::WARP, 1)];
        let outs = [(Dim::out(0), bits as u32)];
        let d = LinearLayout::from_columns(&ins, &outs, shuffled(registers + lanes + 1, 10, 0)).unwrap();
        let part = bits - partitions.min(bits);
        let ins = [(Dim::OFFSET, part as u32), (Dim::PARTITION, (bits - part) as u32)];
        let m = LinearLayout::from_columns(&ins, &outs, shuffled(bits, 0, 6)).unwrap();
        let direction = if load { Direction::Load } else { Direction::Store };
        let plan = SharedAccessPlan::new(&d, &m, 1 << width, direction, &target).unwrap();
        let checked = check_shared_access(&plan, &d, &m, &target);
        prop_assert!(checked.is_ok(), "{:?}\n{} \n{}\n{:?}", checked, d, m, plan);
    }
}

#[test]
fn reads_transposed_within_sixteen_lanes_are_of_loads_of_the_target_that_has_them() {
    let swizzled = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    for (bits, k, k_width, name) in
        [(16, 32, 4, "ds_read_b64_tr_b16"), (8, 64, 8, "ds_read_b64_tr_b8"), (32, 4, 1, "")]
    {
        let mfma = format!(
            "#ttg.amd_mfma<{{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, {k}], isTransposed = false}}>"
        );
        // The right operand by columns, in memory by rows.
        let operand = format!("#ttg.dot_op<{{opIdx = 1, parent = {mfma}, kWidth = {k_width}}}>");
        for (direction, gpu) in [
            (Direction::Load, "hip:gfx950"),
            (Direction::Store, "hip:gfx950"),
            (Direction::Load, "hip:gfx942"),
        ] {
            let (d, m) = (layout(&operand, &[64, 64]), layout(swizzled, &[64, 64]));
            let plan = SharedAccessPlan::new(&d, &m, bits, direction, &target(gpu)).unwrap();
            check_shared_access(&plan, &d, &m, &target(gpu)).unwrap();
            let transposes = (direction, gpu) == (Direction::Load, "hip:gfx950") && !name.is_empty();
            assert_eq!(transposes, plan.mnemonic.contains("_tr_"), "{bits} bits, {gpu}: {plan}");
            assert!(!transposes || plan.mnemonic == name, "{plan}");
        }
        // The left operand lies in rows already.
        let rows = format!("#ttg.dot_op<{{opIdx = 0, parent = {mfma}, kWidth = {k_width}}}>");
        let (d, m) = (layout(&rows, &[64, 64]), layout(swizzled, &[64, 64]));
        let plan = SharedAccessPlan::new(&d, &m, bits, Direction::Load, &target("hip:gfx950")).unwrap();
        assert!(!plan.mnemonic.contains("_tr_"), "{plan}");
    }
}

/// `global_load_async_to_lds`: swizzled memory takes no narrower copies, padding those that do not straddle it.
#[test]
fn copies_that_lanes_write_where_they_say_know_swizzles_and_padding() {
    let (shape, gpu) = ([64, 64], target("hip:gfx1250"));
    let plain = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";
    let d = layout(BLOCKED, &shape);
    let facts = AddressFacts::row_major(&d, 64, 64);
    for (memory, padding, bits) in [
        (SWIZZLED, vec![], Some(128)),
        (plain, vec![(64, 8)], Some(128)),
        (plain, vec![(64, 4)], Some(64)),
        (plain, vec![(32, 16), (64, 2)], Some(32)),
        (plain, vec![(64, 1)], None),
    ] {
        let m = layout(memory, &shape);
        let plan = SharedAccessPlan::async_copy_padded(&d, &m, &padding, 16, &facts, &gpu);
        let Some(bits) = bits else {
            assert!(plan.is_err(), "{padding:?}");
            continue;
        };
        let plan = plan.unwrap();
        assert_eq!(plan.mnemonic, format!("global_load_async_to_lds_b{bits}"), "{padding:?}");
        assert_eq!(plan.access.count, 4 * 128 / bits);
        check_async_copy(&plan, &d, &m, &facts, &gpu).unwrap();
        assert!(check_async_copy(&plan, &d, &m, &facts, &target("cuda:80")).is_err(), "another instruction");
        let mut elsewhere = plan;
        elsewhere.access.address.lane.swap(0, 1);
        assert!(check_async_copy(&elsewhere, &d, &m, &facts, &gpu).is_err(), "{padding:?}");
    }
    // Bytes that do not lie together are copied one at a time; there is no such copy of 16 bits, and none on NVIDIA GPUs.
    let (m, apart) = (layout(plain, &shape), AddressFacts { contiguous: 1, ..facts.clone() });
    let plan = SharedAccessPlan::async_copy(&d, &m, 8, &apart, &gpu).unwrap();
    assert_eq!((plan.mnemonic.as_str(), plan.access.count), ("global_load_async_to_lds_b8", 32));
    check_async_copy(&plan, &d, &m, &apart, &gpu).unwrap();
    assert!(check_async_copy(&plan, &d, &m, &apart, &target("cuda:80")).is_err(), "no copy of a byte");
    assert!(SharedAccessPlan::async_copy(&d, &m, 16, &apart, &gpu).is_err());
    assert!(SharedAccessPlan::async_copy(&d, &m, 8, &apart, &target("cuda:80")).is_err());
    let mut without = gpu;
    without.primitives.async_to_lds = false;
    assert!(SharedAccessPlan::async_copy(&d, &layout(SWIZZLED, &shape), 16, &facts, &without).is_err());
}

/// The right operand of gfx1250's dots, from memory where rows along N are contiguous: one read gives what takes eight without
/// it. Where K is contiguous nothing is transposed; neither is what is stored.
#[test]
fn squares_of_eight_lanes_are_read_transposed() {
    let gpu = target("hip:gfx1250");
    let mut without = gpu.clone();
    without.primitives.transposed_reads = None;
    for (bits, k, name, vector) in
        [(16, 32, "ds_load_tr16_b128", 16), (8, 64, "ds_load_tr8_b64", 8), (8, 128, "ds_load_tr8_b64", 8)]
    {
        let wmma = format!(
            "#ttg.amd_wmma<{{version = 3, isTranspose = true, ctaLayout = {{warp = [[0, 1], [1, 0]]}}, instrShape = [16, 16, {k}]}}>"
        );
        let operand = |side: u32| {
            layout(&format!("#ttg.dot_op<{{opIdx = {side}, parent = {wmma}, kWidth = 8}}>"), &[128, 128])
        };
        let memory =
            format!("#ttg.swizzled_shared<{{vec = {vector}, perPhase = 1, maxPhase = 8, order = [1, 0]}}>");
        let m = layout(&memory, &[128, 128]);
        let plan = SharedAccessPlan::new(&operand(1), &m, bits, Direction::Load, &gpu).unwrap();
        assert_eq!(plan.mnemonic, name);
        check_shared_access(&plan, &operand(1), &m, &gpu).unwrap();
        let each = SharedAccessPlan::new(&operand(1), &m, bits, Direction::Load, &without).unwrap();
        assert_eq!(each.access.count, 8 * plan.access.count, "{each}");
        assert!(check_shared_access(&plan, &operand(1), &m, &without).is_err(), "no such instruction");
        assert!(check_shared_access(&plan, &operand(1), &m, &target("hip:gfx950")).is_err());
        for (side, direction) in [(0, Direction::Load), (1, Direction::Store)] {
            let plan = SharedAccessPlan::new(&operand(side), &m, bits, direction, &gpu).unwrap();
            assert!(!plan.mnemonic.contains("_tr"), "{plan}");
        }
    }
}
