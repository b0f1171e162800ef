//! Every check finds the mistake it is there for, and nothing in the kernel without the mistake.

use simt::check::Kind;
use simt::{Arg, Launch, Outcome, num};

const REVERSE: &str = include_str!("reverse.ll");
const SWIZZLE: &str = include_str!("swizzle.ll");
const MMA: &str = include_str!("mma.ll");
const COPIES: &str = include_str!("copies.ll");
const WGMMA: &str = include_str!("wgmma.ll");
const PHASES: &str = include_str!("phases.ll");

fn launch(ir: &str, args: Vec<Arg>) -> Outcome {
    let module = simt::read::parse("test.ll", ir.as_bytes()).unwrap();
    let program = simt::decode(&module, None).unwrap();
    simt::run(&program, &Launch { args, ..Launch::default() }).unwrap()
}

fn buffer(name: &str, data: Vec<u8>) -> Arg {
    Arg::Buffer { name: name.into(), data }
}

fn words(v: impl IntoIterator<Item = u32>) -> Vec<u8> {
    v.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn to_words(b: &[u8]) -> Vec<u32> {
    b.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

/// The text with one passage replaced, which must be there.
fn mutated(ir: &str, from: &str, to: &str) -> String {
    assert!(ir.contains(from), "{from}");
    ir.replace(from, to)
}

fn kinds(o: &Outcome) -> Vec<Kind> {
    let mut k: Vec<Kind> = o.findings.iter().map(|f| f.kind).collect();
    k.dedup();
    k
}

fn reverse(ir: &str, n: u64) -> Outcome {
    launch(ir, vec![buffer("x", words(0..64)), buffer("out", vec![0; 256]), Arg::Scalar(n)])
}

#[test]
fn a_removed_barrier_is_a_race() {
    let good = reverse(REVERSE, 64);
    assert_eq!(kinds(&good), []);
    assert_eq!(to_words(&good.buffers[1]), (0..64).rev().collect::<Vec<u32>>());
    let bad = reverse(
        &mutated(REVERSE, "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0), !dbg !8", ""),
        64,
    );
    assert!(kinds(&bad).contains(&Kind::SharedRace), "{:?}", bad.findings);
    // Warp 0 reads before warp 1 writes (line 12), and warp 1 reads what warp 0 wrote (line 14).
    let races: Vec<u32> =
        bad.findings.iter().filter(|f| f.kind == Kind::SharedRace).map(|f| f.line).collect();
    assert_eq!(races, [12, 14]);
    let race = bad.findings.iter().find(|f| f.line == 14 && f.kind == Kind::SharedRace).unwrap();
    assert_eq!((race.file.as_str(), race.warp, race.lane), ("reverse.ttir", 1, 0));
    assert_eq!((race.kernel.as_str(), race.address), ("reverse", Some(1024 + 4 * 31)));
}

#[test]
fn a_dropped_mask_leaves_the_buffer() {
    let short =
        |ir: &str| launch(ir, vec![buffer("x", words(0..50)), buffer("out", vec![0; 256]), Arg::Scalar(50)]);
    assert_eq!(kinds(&short(REVERSE)), []);
    let bad = short(&mutated(REVERSE, "@$2 ld.global", "ld.global"));
    assert_eq!(kinds(&bad), [Kind::OutOfBounds]);
    let f = &bad.findings[0];
    assert_eq!((f.line, f.warp, f.lane, f.count), (11, 1, 18, 14));
    assert!(f.message.contains("offset 200 of 'x', which has 200 bytes"), "{}", f.message);
}

#[test]
fn a_load_without_a_default_is_uninitialized_where_masked() {
    let bad = reverse(&mutated(REVERSE, "mov.u32 $0, 0x0;", ""), 60);
    assert_eq!(kinds(&bad), [Kind::Uninitialized]);
    assert_eq!(bad.findings[0].count, 1, "four lanes of one store");
}

#[test]
fn shared_memory_that_nobody_wrote_is_uninitialized() {
    let bad = reverse(&mutated(REVERSE, "store i32 %v, ptr addrspace(3) %ps, align 4, !dbg !7", ""), 64);
    assert_eq!(kinds(&bad), [Kind::Uninitialized]);
    assert!(bad.findings[0].message.contains("reverse.ttir:14"), "{}", bad.findings[0].message);
}

#[test]
fn accesses_outside_shared_memory_and_misaligned_ones() {
    let outside = reverse(&mutated(REVERSE, "sub i32 63, %t", "sub i32 64, %t"), 64);
    assert_eq!(kinds(&outside), [Kind::OutOfBounds]);
    assert_eq!((outside.findings[0].warp, outside.findings[0].lane), (0, 0));
    let odd = reverse(
        &mutated(
            REVERSE,
            "%w = load i32, ptr addrspace(3) %pr, align 4",
            "%w = load i32, ptr addrspace(3) %pr, align 8",
        ),
        64,
    );
    assert_eq!(kinds(&odd), [Kind::Misaligned]);
}

#[test]
fn a_barrier_in_divergent_code_is_reported() {
    let from = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0), !dbg !8";
    let to = "%odd = and i32 %t, 1\n %c = icmp eq i32 %odd, 0\n br i1 %c, label %a, label %b\na:\n \
              call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0), !dbg !8\n br label %b\nb:";
    let bad = reverse(&mutated(REVERSE, from, to), 64);
    let f = bad.findings.iter().find(|f| f.kind == Kind::Divergent).expect("a divergent barrier");
    assert_eq!((f.line, f.lane), (13, 1));
}

/// 8 x 32 halves numbered row by row, and what ldmatrix.x4 gives of them.
fn swizzle(ir: &str) -> (Outcome, Vec<u32>) {
    let word = |row: u32, col: u32| (row * 32 + col) | (row * 32 + col + 1) << 16;
    let x = words((0..128).map(|i| word(i / 16, i % 16 * 2)));
    let want = (0..32u32).flat_map(|l| (0..4).map(move |m| word(l / 4, 8 * m + 2 * (l % 4)))).collect();
    (launch(ir, vec![buffer("x", x), buffer("out", vec![0; 512])]), want)
}

#[test]
fn a_wrong_swizzle_gives_wrong_numbers_and_none_gives_conflicts() {
    let (good, want) = swizzle(SWIZZLE);
    assert_eq!(kinds(&good), []);
    assert_eq!(to_words(&good.buffers[1]), want);
    let total = good.counts.total;
    assert_eq!((total.wavefronts, total.min_wavefronts), (8, 8));
    let (bad, want) = swizzle(&mutated(SWIZZLE, "%hh = lshr i32 %rr, 1", "%hh = lshr i32 %rr, 0"));
    assert_ne!(to_words(&bad.buffers[1]), want);
    let none =
        mutated(&mutated(SWIZZLE, "xor i32 %c, %m", "xor i32 %c, 0"), "xor i32 %cc, %mm", "xor i32 %cc, 0");
    let (slow, want) = swizzle(&none);
    assert_eq!(to_words(&slow.buffers[1]), want);
    // Rows of 64 bytes: a matrix's eight rows meet in half of the banks, four times.
    assert_eq!((slow.counts.total.wavefronts, slow.counts.total.min_wavefronts), (4 + 16, 8));
}

fn halves(n: usize, f: impl Fn(usize) -> f64) -> Vec<u8> {
    (0..n).flat_map(|i| num::f64_to_f16(f(i)).to_le_bytes()).collect()
}

/// The product of a (m x 16) and b (8 x 16, by columns), and what the kernel gives.
fn product(ir: &str, m: usize) -> (Outcome, Vec<f32>) {
    let (fa, fb) = (|i: usize| (i % 7) as f64 - 3.0, |i: usize| (i % 5) as f64 / 2.0);
    let mut want = Vec::new();
    for i in 0..m {
        for j in 0..8 {
            want.push((0..16).map(|k| fa(i * 16 + k) * fb(j * 16 + k)).sum::<f64>() as f32);
        }
    }
    let args =
        vec![buffer("a", halves(m * 16, fa)), buffer("b", halves(128, fb)), buffer("out", vec![0; m * 32])];
    (launch(ir, args), want)
}

fn floats(b: &[u8]) -> Vec<f32> {
    to_words(b).into_iter().map(f32::from_bits).collect()
}

#[test]
fn a_wrong_fragment_layout_gives_wrong_numbers() {
    let (good, want) = product(MMA, 16);
    assert_eq!(kinds(&good), []);
    assert_eq!(floats(&good.buffers[2]), want);
    assert_eq!(good.counts.total.mma_ops, 2 * 16 * 8 * 16);
    let (bad, want) = product(&mutated(MMA, "i32 %a1, i32 %a2,", "i32 %a2, i32 %a1,"), 16);
    assert_ne!(floats(&bad.buffers[2]), want);
}

fn copies(ir: &str) -> Outcome {
    launch(ir, vec![buffer("x", words(0..256)), buffer("out", vec![0; 1024])])
}

#[test]
fn copies_are_there_after_the_wait_and_not_before() {
    let good = copies(COPIES);
    assert_eq!(kinds(&good), []);
    assert_eq!(to_words(&good.buffers[1]), (128..256).chain(0..128).collect::<Vec<u32>>());
    let wait = "call void @llvm.nvvm.cp.async.wait.group(i32 0)\n";
    assert!(kinds(&copies(&mutated(COPIES, wait, "\n"))).contains(&Kind::AsyncHazard));
    let lazy = mutated(COPIES, wait, "call void @llvm.nvvm.cp.async.wait.group(i32 1)\n");
    assert!(kinds(&copies(&lazy)).contains(&Kind::AsyncHazard));
    // The wait alone does not make another warp's copies visible.
    let unmet = mutated(COPIES, "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n  %n", "%n");
    let bad = copies(&unmet);
    assert!(
        kinds(&bad).iter().any(|k| matches!(k, Kind::SharedRace | Kind::Uninitialized | Kind::AsyncHazard)),
        "{:?}",
        bad.findings
    );
}

#[test]
fn copies_that_ignore_what_they_would_read_write_zeros() {
    let plain = "asm sideeffect \"cp.async.cg.shared.global [ $0 + 0 ], [ $1 + 0 ], 0x10;\", \"r,l\"(ptr addrspace(3) %ps, ptr addrspace(1) %px)";
    let masked = |predicate: &str, operand: &str| {
        let with = format!(
            "asm sideeffect \"cp.async.cg.shared.global [ $0 + 0 ], [ $1 + 0 ], 0x10, {predicate};\", \"r,l,{operand}\"(ptr addrspace(3) %ps, ptr addrspace(1) %px, {})",
            if operand == "b" { "i1 %odd" } else { "i32 %some" },
        );
        let call = format!("call void {with}");
        let before =
            "%bit = and i32 %t, 1\n  %odd = icmp eq i32 %bit, 1\n  %some = select i1 %odd, i32 0, i32 16\n  ";
        copies(&mutated(COPIES, &format!("call void {plain}"), &format!("{before}{call}")))
    };
    let every = |odd: bool| {
        let x = |i: u32| if (i / 4 % 2 == 1) == odd { i } else { 0 };
        (128..256).chain(0..128).map(x).collect::<Vec<u32>>()
    };
    for (predicate, operand, odd) in [("$2", "b", false), ("!$2", "b", true), ("$2", "r", false)] {
        let got = masked(predicate, operand);
        assert_eq!(kinds(&got), [], "{predicate}");
        assert_eq!(to_words(&got.buffers[1]), every(odd), "{predicate}");
    }
}

#[test]
fn wgmma_multiplies_and_its_rules_are_checked() {
    let (good, want) = product(WGMMA, 64);
    assert_eq!(kinds(&good), [], "{:?}", good.findings);
    assert_eq!(floats(&good.buffers[2]), want);
    let (unfenced, _) =
        product(&mutated(WGMMA, "  call void @llvm.nvvm.fence.proxy.async.shared_cta()\n", ""), 64);
    assert_eq!(kinds(&unfenced), [Kind::MissingFence]);
    let early = mutated(WGMMA, "store float %d0,", "store float %e0,");
    let early = mutated(&early, "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;");
    assert!(kinds(&product(&early, 64).0).contains(&Kind::AsyncHazard));
    let overwritten = mutated(
        WGMMA,
        "%e0 = extractvalue { float, float, float, float } %d, 0",
        "store <4 x i32> %va, ptr addrspace(3) %sa, align 16\n  %e0 = extractvalue { float, float, float, float } %d, 0",
    );
    assert!(kinds(&product(&overwritten, 64).0).contains(&Kind::AsyncHazard));
    // A stride of the other dimension: another core matrix is read.
    let (bad, want) = product(&mutated(WGMMA, "or i64 %lo64, 68720001024", "or i64 %lo64, 34360786944"), 64);
    assert_ne!(floats(&bad.buffers[2]), want);
}

#[test]
fn a_barrier_object_orders_its_producer_and_consumer() {
    let run = |ir: &str| launch(ir, vec![buffer("out", vec![0; 128])]);
    let good = run(PHASES);
    assert_eq!(kinds(&good), [], "{:?}", good.findings);
    assert_eq!(to_words(&good.buffers[0]), (32..64).collect::<Vec<u32>>());
    let missing = run(&mutated(PHASES, "[$1], 32;", "[$1], 33;"));
    assert_eq!(kinds(&missing), [Kind::Deadlock]);
    let text = missing.findings[0].message.clone();
    assert!(text.contains("warp 0 at the barrier object") && text.contains("1 arrivals"), "{text}");
    let early = run(&mutated(PHASES, "[$0], 0;", "[$0], 1;"));
    // The wrong parity is over before the phase begins, and begins anew when it ends.
    assert_eq!(kinds(&early), [Kind::Deadlock], "{:?}", early.findings);
}

#[test]
fn what_is_not_known_is_named() {
    let error = |ir: &str| {
        simt::read::parse("test.ll", ir.as_bytes())
            .and_then(|m| simt::decode(&m, None).map(|_| ()))
            .unwrap_err()
            .to_string()
    };
    let unknown = mutated(REVERSE, "ld.global.b32 { $0 }, [ $1 + 0 ];", "frobnicate.b32 $0, $1;");
    assert_eq!(
        error(&unknown),
        "unsupported: the instruction 'frobnicate.b32' in inline assembly (in @reverse, reverse.ttir:11)"
    );
    let call = mutated(COPIES, "@llvm.nvvm.read.ptx.sreg.tid.x", "@llvm.nvvm.read.ptx.sreg.envreg7");
    assert!(error(&call).contains("@llvm.nvvm.read.ptx.sreg.envreg7"), "{}", error(&call));
    assert!(error("define void @f( {").starts_with("test.ll:"));
}
