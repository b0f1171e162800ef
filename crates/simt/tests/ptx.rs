//! Instructions one by one: what each lane gets from its inputs.

use simt::check::Kind;
use simt::{Arg, Launch, Outcome, num};

fn launch(ir: &str, args: Vec<Arg>, grid: u32) -> Outcome {
    let module = simt::read::parse("test.ll", ir.as_bytes()).unwrap();
    let program = simt::decode(&module, None).unwrap();
    simt::run(&program, &Launch { args, grid: [grid, 1, 1], ..Launch::default() }).unwrap()
}

fn words(v: impl IntoIterator<Item = u32>) -> Vec<u8> {
    v.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn to_words(b: &[u8]) -> Vec<u32> {
    b.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn buffer(name: &str, data: Vec<u8>) -> Arg {
    Arg::Buffer { name: name.into(), data }
}

fn clean(o: &Outcome) {
    assert!(o.findings.is_empty(), "{:?}", o.findings);
}

/// A kernel of one warp that runs `body` between loading %x and %y (i32) and storing %r (i32).
fn kernel(body: &str, declarations: &str) -> String {
    format!(
        "@smem = internal addrspace(3) global [1024 x i8] undef, align 16
         define ptx_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %out) \"nvvm.reqntid\"=\"32\" {{
           %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
           %pa = getelementptr i32, ptr addrspace(1) %a, i32 %t
           %pb = getelementptr i32, ptr addrspace(1) %b, i32 %t
           %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
           %x = load i32, ptr addrspace(1) %pa
           %y = load i32, ptr addrspace(1) %pb
           {body}
           store i32 %r, ptr addrspace(1) %po
           ret void
         }}
         declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
         {declarations}"
    )
}

/// Runs a body over 32 pairs of inputs.
fn lanes(body: &str, declarations: &str, x: impl Fn(u32) -> u32, y: impl Fn(u32) -> u32) -> Vec<u32> {
    let args = vec![
        buffer("a", words((0..32).map(x))),
        buffer("b", words((0..32).map(y))),
        buffer("out", vec![0xee; 128]),
    ];
    let o = launch(&kernel(body, declarations), args, 1);
    clean(&o);
    to_words(&o.buffers[2])
}

/// Runs one piece of inline PTX with $0 the result, $1 and $2 the inputs.
fn asm(text: &str, x: impl Fn(u32) -> u32, y: impl Fn(u32) -> u32) -> Vec<u32> {
    lanes(&format!("%r = call i32 asm sideeffect \"{text}\", \"=r,r,r\"(i32 %x, i32 %y)"), "", x, y)
}

fn each(f: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..32).map(f).collect()
}

#[test]
fn carries_are_kept_per_lane() {
    let (x, y) = (|l: u32| l.wrapping_mul(0x1234_5679), |l: u32| 0xf000_0000u32.wrapping_add(l));
    let carry = |l| u32::from(x(l).checked_add(y(l)).is_none());
    let sum = "{ .reg .u32 l; add.cc.u32 l, $1, $2; addc.u32 $0, $1, 5; }";
    assert_eq!(asm(sum, x, y), each(|l| x(l).wrapping_add(5 + carry(l))));
    let difference = "{ .reg .u32 l; sub.cc.u32 l, $1, $2; subc.cc.u32 $0, 0, 0; subc.u32 $0, $0, 0; }";
    let borrow = |l| u32::from(x(l) < y(l));
    assert_eq!(asm(difference, x, y), each(|l| 0u32.wrapping_sub(2 * borrow(l))));
    // The highest word of x * (y:y) + (x:x).
    let product =
        "{ .reg .u32 l, h; mad.lo.cc.u32 l, $1, $2, $1; madc.hi.cc.u32 h, $1, $2, $1; addc.u32 $0, 0, 0;
                   mad.lo.cc.u32 h, $1, $2, h; madc.hi.u32 $0, $1, $2, $0; }";
    let wide = |l: u32| {
        let (a, b) = (u128::from(x(l)), u128::from(y(l)));
        (a * (b << 32 | b) + (a << 32 | a)) >> 64
    };
    assert_eq!(asm(product, x, y), each(|l| wide(l) as u32));
    // Where the predicate is false the flag keeps its value.
    let some = "{ .reg .u32 l; .reg .pred p; setp.lt.u32 p, $1, 9; add.cc.u32 l, 1, 2; @p add.cc.u32 l, 0xffffffff, 1;
                addc.u32 $0, 0, 0; }";
    assert_eq!(asm(some, |l| l, |_| 0), each(|l| u32::from(l < 9)));
    let around = "{ .reg .u32 i, l; .reg .pred p; mov.u32 i, $1; sub.cc.u32 l, $1, 3; again: add.u32 i, i, 1;
                  setp.lt.u32 p, i, 40; @p bra again; subc.u32 $0, 10, 0; }";
    assert_eq!(asm(around, |l| l, |_| 0), each(|l| 10 - u32::from(l < 3)));
    let missing = "%r = call i32 asm sideeffect \"addc.u32 $0, $1, $2;\", \"=r,r,r\"(i32 %x, i32 %y)";
    let module = simt::read::parse("k.ll", kernel(missing, "").as_bytes()).unwrap();
    let error = simt::decode(&module, None).unwrap_err().to_string();
    assert!(error.contains("'addc.u32' without a carry before it"), "{error}");
}

#[test]
fn sixteen_bytes_are_exchanged_as_one() {
    // All lanes of all programs count: one to the low word, three to the high one.
    let count = "define ptx_kernel void @k(ptr addrspace(1) %p) \"nvvm.reqntid\"=\"32\" {
        entry:
          br label %loop
        loop:
          %old = phi i128 [ 0, %entry ], [ %seen, %loop ]
          %new = add i128 %old, 55340232221128654849
          %r = cmpxchg ptr addrspace(1) %p, i128 %old, i128 %new monotonic monotonic, align 16
          %seen = extractvalue { i128, i1 } %r, 0
          %ok = extractvalue { i128, i1 } %r, 1
          br i1 %ok, label %done, label %loop
        done:
          ret void
        }";
    let o = launch(count, vec![buffer("p", vec![0; 16])], 8);
    clean(&o);
    assert_eq!(to_words(&o.buffers[0]), [256, 0, 768, 0]);
    // Lane l compares with l, 7 and writes y, x; every other lane finds what it expects.
    let body = |op: &str| {
        format!(
            "%s = ptrtoint ptr addrspace(3) @smem to i32
             %row = mul i32 %t, 16
             %at = add i32 %s, %row
             %r = call i32 asm sideeffect \"{{ .reg .b64 a, b, c, d; .reg .b128 e, n, o; cvt.u64.u32 a, $1; mov.b64 b, 7;
               cvt.u64.u32 c, $2; st.shared.v2.b64 [$3], {{a, b}}; and.b64 a, a, 30; mov.b128 e, {{a, b}};
               mov.b128 n, {{c, a}}; {op} mov.b128 {{a, b}}, o; ld.shared.v2.b64 {{c, d}}, [$3]; mov.b64 {{$0, _}}, c; }}\", \"=r,r,r,r\"(i32 %x, i32 %y, i32 %at)"
        )
    };
    let swapped = lanes(&body("atom.shared.cas.b128 o, [$3], e, n;"), "", |l| l, |l| 100 + l);
    assert_eq!(swapped, each(|l| if l % 2 == 0 { 100 + l } else { l }));
    let exchanged = lanes(&body("atom.shared.exch.b128 o, [$3], n;"), "", |l| l, |l| 100 + l);
    assert_eq!(exchanged, each(|l| 100 + l));
}

#[test]
fn highest_bits_and_absolute_differences() {
    let at = |v: u32| v.checked_ilog2().unwrap_or(u32::MAX);
    let x = |l: u32| (0x8000_0001u64 >> l) as u32 & !u32::from(l > 30);
    assert_eq!(asm("bfind.u32 $0, $1;", x, |_| 0), each(|l| at(x(l))));
    let amount = asm("bfind.shiftamt.u32 $0, $1;", x, |_| 0);
    assert_eq!(amount, each(|l| if x(l) == 0 { u32::MAX } else { 31 - at(x(l)) }));
    assert_eq!(asm("bfind.s32 $0, $1;", |l| !l, |_| 0), each(at));
    let wide = "{ .reg .b64 w; mov.b64 w, {$2, $1}; bfind.u64 $0, w; }";
    assert_eq!(asm(wide, |l| l, |_| 0), each(|l| if l == 0 { u32::MAX } else { 32 + at(l) }));
    let sad = asm("sad.s32 $0, $1, $2, 7;", |l| l.wrapping_sub(16), |_| 3);
    assert_eq!(sad, each(|l| (l as i32 - 19).unsigned_abs() + 7));
}

#[test]
fn comparisons_give_masks_and_pairs_of_predicates() {
    let half = |l: u32| if l.is_multiple_of(4) { 0x7e00 } else { 0x3c00 + l };
    let pair = |l: u32| half(l) | half(l + 1) << 16;
    let nan = |l: u32| u32::from(l.is_multiple_of(4));
    let float = asm("set.nan.f16x2.f16x2 $0, $1, $1;", pair, |_| 0);
    assert_eq!(float, each(|l| (nan(l) * 0x3c00) | (nan(l + 1) * 0x3c00_0000)));
    let mask = asm("set.nan.u32.f16x2 $0, $1, $1;", pair, |_| 0);
    assert_eq!(mask, each(|l| (nan(l) * 0xffff) | (nan(l + 1) * 0xffff_0000)));
    let word = asm("set.lt.u32.s32 $0, $1, $2;", |l| l.wrapping_sub(10), |_| 0);
    assert_eq!(word, each(|l| if l < 10 { u32::MAX } else { 0 }));
    let one = asm("{ .reg .pred p; setp.gt.u32 p, $1, 3; set.lt.and.f32.u32 $0, $1, $2, p; }", |l| l, |_| 20);
    assert_eq!(one, each(|l| if l > 3 && l < 20 { 1f32.to_bits() } else { 0 }));
    let two = "{ .reg .pred p, q; setp.lt.u32 p|q, $1, 7; selp.b32 $0, 1, 2, p; @q add.u32 $0, $0, 10; }";
    assert_eq!(asm(two, |l| l, |_| 0), each(|l| if l < 7 { 1 } else { 12 }));
    let halves =
        "{ .reg .pred p, q; setp.nan.f16x2 p|q, $1, $1; selp.b32 $0, 1, 0, p; @q add.u32 $0, $0, 2; }";
    assert_eq!(asm(halves, pair, |_| 0), each(|l| nan(l) + 2 * nan(l + 1)));
}

#[test]
fn doubles_round_in_every_direction() {
    let body = |op: &str| {
        format!(
            "{{ .reg .f64 a, b; .reg .u32 h; cvt.rn.f64.u32 a, $1; mov.f64 b, 0d7FE0000000000000; {op} mov.b64 {{$0, h}}, b; }}"
        )
    };
    // 1 + x / 2^1023 is one or its neighbour.
    let down = body("div.rz.f64 a, a, b; add.rm.f64 b, a, 0d3FF0000000000000;");
    let up = body("div.rz.f64 a, a, b; add.rp.f64 b, a, 0d3FF0000000000000;");
    assert_eq!(asm(&down, |l| l, |_| 0), each(|_| 0));
    assert_eq!(asm(&up, |l| l, |_| 0), each(|l| u32::from(l != 0)));
    // The upper word only.
    let coarse = body("rcp.approx.ftz.f64 b, a;");
    assert_eq!(asm(&coarse, |l| l + 1, |_| 0), each(|_| 0));
}

#[test]
fn lanes_find_their_equals() {
    let same = each(|l| (0..32).filter(|k| k % 5 == l % 5).fold(0, |m, k| m | 1 << k));
    assert_eq!(asm("match.any.sync.b32 $0, $1, 0xffffffff;", |l| l % 5, |_| 0), same);
    let intrinsic = "%r = call i32 @llvm.nvvm.match.any.sync.i32(i32 -1, i32 %x)";
    let declared = "declare i32 @llvm.nvvm.match.any.sync.i32(i32, i32)";
    assert_eq!(lanes(intrinsic, declared, |l| l % 5, |_| 0), same);
    let all = "{ .reg .pred p; match.all.sync.b32 $0|p, $1, 0xffffffff; @!p mov.b32 $0, 77; }";
    assert_eq!(asm(all, |_| 9, |_| 0), each(|_| u32::MAX));
    assert_eq!(asm(all, |l| l, |_| 0), each(|_| 77));
}

#[test]
fn barriers_combine_predicates() {
    let red = |op: &str, ty: &str, take: &str| {
        format!("{{ .reg .pred p, q; setp.ne.b32 p, $1, 0; barrier.cta.red.{op}.{ty} {take} }}")
    };
    let popc = red("popc", "u32", "$0, 0, p;");
    assert_eq!(asm(&popc, |l| l % 3, |_| 0), each(|_| 21));
    let and = red("and", "pred", "q, 0, 32, p; selp.b32 $0, 1, 0, q;");
    assert_eq!(asm(&and, |l| l, |_| 0), each(|_| 0));
    assert_eq!(asm(&and, |l| l + 1, |_| 0), each(|_| 1));
    let or = red("or", "pred", "q, 0, p; selp.b32 $0, 1, 0, q;");
    assert_eq!(asm(&or, |l| l, |_| 0), each(|_| 1));
    let body =
        "%p = icmp eq i32 %x, 4\n %r = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %p)";
    let declared = "declare i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32, i1)";
    assert_eq!(lanes(body, declared, |l| l % 8, |_| 0), each(|_| 4));
}

#[test]
fn saturating_and_packed_arithmetic() {
    let f = |v: f32| v.to_bits();
    let clamp = asm("add.sat.f32 $0, $1, $2;", |l| f(l as f32 / 8.0 - 2.0), |_| f(0.5));
    assert_eq!(clamp, each(|l| f((l as f32 / 8.0 - 1.5).clamp(0.0, 1.0))));
    assert_eq!(asm("cvt.sat.f32.f32 $0, $1;", |_| f32::NAN.to_bits(), |_| 0), each(|_| 0));
    let sum = asm("add.sat.s32 $0, $1, $2;", |_| 0x7fff_fff0, |l| l);
    assert_eq!(sum, each(|l| (0x7fff_fff0u32 + l).min(0x7fff_ffff)));
    let field = asm("bfi.b32 $0, $1, $2, 8, 4;", |l| l, |_| 0xffff_ffff);
    assert_eq!(field, each(|l| 0xffff_f0ff | (l & 15) << 8));
    let both = asm(
        "{ .reg .pred p; setp.lt.u32 p, $1, 20; setp.gt.and.u32 p, $1, 10, p; selp.b32 $0, 1, 0, p; }",
        |l| l,
        |_| 0,
    );
    assert_eq!(both, each(|l| u32::from(l > 10 && l < 20)));
    let h = |v: f64| u32::from(num::f64_to_f16(v));
    let most = asm("max.f16x2 $0, $1, $2;", |l| h(f64::from(l)) | h(-1.0) << 16, |_| h(9.0) | h(2.0) << 16);
    assert_eq!(most, each(|l| h(f64::from(l.max(9))) | h(2.0) << 16));
}

#[test]
fn atomics_of_every_width() {
    let run = |text: &str, init: Vec<u8>| {
        let body = format!(
            "call void asm sideeffect \"{text}\", \"l,r,r\"(ptr addrspace(1) %out, i32 %x, i32 %y)
             %r = add i32 0, 0"
        );
        // The result goes elsewhere: %out is the atomic's own.
        let ir = kernel(&body, "").replace(
            "%po = getelementptr i32, ptr addrspace(1) %out",
            "%po = getelementptr i32, ptr addrspace(1) %b",
        );
        let args = vec![
            buffer("a", words((0..32).map(|l| (l as f32).to_bits()))),
            buffer("b", words(0..32)),
            buffer("out", init),
        ];
        let o = launch(&ir, args, 1);
        clean(&o);
        to_words(&o.buffers[2])
    };
    let four = run("red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $1, $1, $1};", vec![0; 16]);
    assert_eq!(four, [496f32.to_bits(); 4]);
    let two = run("{ .reg .b32 a, b; atom.global.add.v2.f32 {a, b}, [$0], {$1, $1}; }", vec![0; 8]);
    assert_eq!(two, [496f32.to_bits(); 2]);
    // Lane l swaps l for l + 1, in order.
    let count = run(
        "{ .reg .b16 o, c, n; .reg .b32 m; add.u32 m, $2, 1; cvt.u16.u32 c, $2; cvt.u16.u32 n, m; \
         atom.acq_rel.gpu.global.cas.b16 o, [$0], c, n; }",
        words([0]),
    );
    assert_eq!(count, [32]);
    let init = words([u32::from(num::f64_to_f16(5.0)) | u32::from(num::f64_to_f16(-3.0)) << 16]);
    let least = run("{ .reg .b32 h; mov.b32 h, 0xc0004000; red.global.min.noftz.f16x2 [$0], h; }", init);
    // 2 and -2 against 5 and -3.
    assert_eq!(least, [u32::from(num::f64_to_f16(2.0)) | u32::from(num::f64_to_f16(-3.0)) << 16]);
}

#[test]
fn blocks_of_memory_are_copied_and_filled() {
    let declared = "declare void @llvm.memcpy.p3.p1.i64(ptr addrspace(3), ptr addrspace(1), i64, i1)
                    declare void @llvm.memset.p3.i64(ptr addrspace(3), i8, i64, i1)";
    let body = "%o = mul i32 %t, 32
                %p = getelementptr i8, ptr addrspace(3) @smem, i32 %o
                call void @llvm.memset.p3.i64(ptr addrspace(3) %p, i8 7, i64 11, i1 false)
                call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) %p, ptr addrspace(1) %pa, i64 3, i1 false)
                %r = load i32, ptr addrspace(3) %p, align 4";
    assert_eq!(lanes(body, declared, |l| 0x0102_0300 + l, |_| 0), each(|l| 0x0702_0300 + l));
}

#[test]
fn barrier_objects_return_states() {
    // Every lane arrives with two phases of 32 arrivals and waits for the state it got.
    let body = "%zero = icmp eq i32 %t, 0
                br i1 %zero, label %init, label %go
              init:
                call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @smem, i32 32)
                br label %go
              go:
                call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
                %s = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) @smem)
                br label %spin
              spin:
                %d = call i1 @llvm.nvvm.mbarrier.test.wait.shared(ptr addrspace(3) @smem, i64 %s)
                br i1 %d, label %next, label %spin
              next:
                %s2 = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) @smem)
                br label %again
              again:
                %d2 = call i1 @llvm.nvvm.mbarrier.test.wait.shared(ptr addrspace(3) @smem, i64 %s2)
                br i1 %d2, label %end, label %again
              end:
                %r = add i32 %x, 1";
    let declared = "declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)
                    declare i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3))
                    declare i1 @llvm.nvvm.mbarrier.test.wait.shared(ptr addrspace(3), i64)
                    declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)";
    assert_eq!(lanes(body, declared, |l| l, |_| 0), each(|l| l + 1));
}

#[test]
fn matrix_intrinsics_are_their_instructions() {
    let declared = "declare { i32, i32, i32, i32 } @llvm.nvvm.mma.m16n8k32.row.col.s8(i32, i32, i32, i32, i32, i32, i32, i32, i32, i32)
                    declare { float, float, float, float } @llvm.nvvm.mma.m16n8k8.row.col.tf32(i32, i32, i32, i32, i32, i32, float, float, float, float)";
    let whole = "%m = call { i32, i32, i32, i32 } @llvm.nvvm.mma.m16n8k32.row.col.s8(i32 %x, i32 %x, i32 %x, i32 %x, i32 %y, i32 %y, i32 5, i32 5, i32 5, i32 5)
                 %r = extractvalue { i32, i32, i32, i32 } %m, 3";
    // Rows of A are all 2, columns of B all 3.
    assert_eq!(lanes(whole, declared, |_| 0x0202_0202, |_| 0x0303_0303), each(|_| 32 * 6 + 5));
    let real = "%m = call { float, float, float, float } @llvm.nvvm.mma.m16n8k8.row.col.tf32(i32 %x, i32 %x, i32 %x, i32 %x, i32 %y, i32 %y, float 1.0, float 1.0, float 1.0, float 1.0)
                %f = extractvalue { float, float, float, float } %m, 0
                %r = bitcast float %f to i32";
    let f = |v: f32| move |_| v.to_bits();
    assert_eq!(lanes(real, declared, f(2.0), f(3.0)), each(|_| 49f32.to_bits()));
}

const CLUSTER: &str = include_str!("cluster.ll");
const MULTICAST: &str = include_str!("multicast.ll");
const GATHER4: &str = include_str!("gather4.ll");

fn kinds(o: &Outcome) -> Vec<Kind> {
    let mut k: Vec<Kind> = o.findings.iter().map(|f| f.kind).collect();
    k.dedup();
    k
}

#[test]
fn programs_of_a_cluster_read_each_others_shared_memory() {
    let run = |ir: &str| launch(ir, vec![buffer("out", vec![0; 256])], 2);
    let o = run(CLUSTER);
    clean(&o);
    assert_eq!(to_words(&o.buffers[0]), (32..64).chain(0..32).collect::<Vec<u32>>());
    // Without the first meeting the other's stores may be missing.
    let meeting = "  call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n  call void @llvm.nvvm.barrier.cluster.wait.aligned()\n";
    let hasty = run(&CLUSTER.replacen(meeting, "", 1));
    assert!(
        kinds(&hasty).iter().any(|k| matches!(k, Kind::SharedRace | Kind::Uninitialized)),
        "{:?}",
        hasty.findings
    );
    // A relaxed arrival orders no memory.
    let relaxed = run(&CLUSTER.replace("cluster.arrive.aligned", "cluster.arrive.relaxed.aligned"));
    assert_eq!(kinds(&relaxed), [Kind::SharedRace]);
    assert!(relaxed.findings[0].message.contains("warp 0 of program ["), "{}", relaxed.findings[0].message);
    let nowhere = run(&CLUSTER.replace("xor i32 %r, 1", "xor i32 %r, 2"));
    assert!(kinds(&nowhere).contains(&Kind::Invalid));
    assert!(nowhere.findings.iter().any(|f| f.message.contains("of a cluster of 2")));
}

#[test]
fn clusters_must_divide_the_grid() {
    let module = simt::read::parse("test.ll", CLUSTER.as_bytes()).unwrap();
    let program = simt::decode(&module, None).unwrap();
    assert_eq!(program.cluster, Some([2, 1, 1]));
    let args = vec![buffer("out", vec![0; 256])];
    let e = simt::run(&program, &Launch { args, grid: [3, 1, 1], ..Launch::default() }).unwrap_err();
    assert!(e.to_string().contains("divides the grid"), "{e}");
}

#[test]
fn a_multicast_reaches_every_program() {
    let run = |ir: &str| launch(ir, vec![buffer("x", words(100..132)), buffer("out", vec![0; 256])], 2);
    let o = run(MULTICAST);
    clean(&o);
    assert_eq!(to_words(&o.buffers[1]), (100..132).chain(100..132).collect::<Vec<u32>>());
    // Only to program 0: the other one waits for ever.
    let lonely = run(&MULTICAST.replace("i16 3,", "i16 1,"));
    assert_eq!(kinds(&lonely), [Kind::Deadlock]);
    assert!(lonely.findings[0].message.contains("of program [1, 0, 0]"), "{}", lonely.findings[0].message);
}

#[test]
fn four_rows_are_gathered() {
    let args = vec![buffer("x", words(0..128)), buffer("maps", vec![0; 128]), buffer("out", vec![0; 128])];
    let o = launch(GATHER4, args, 1);
    clean(&o);
    let want: Vec<u32> = [6, 0, 3, 6].iter().flat_map(|r| (0..8).map(move |c| r * 16 + 4 + c)).collect();
    assert_eq!(to_words(&o.buffers[2]), want);
}

#[test]
fn stores_to_another_program_are_counted_by_its_barrier_object() {
    // Program 0 sends its lane numbers to program 1, which waits for 128 bytes.
    let ir = MULTICAST
        .replace("%send = and i1 %leader, %first", "%send = or i1 %first, %first")
        .replace(
            "call void @llvm.nvvm.cp.async.bulk.global.to.shared.cluster(ptr addrspace(7) %dst, ptr addrspace(3) @bar, ptr addrspace(1) %x, i32 128, i16 3, i64 0, i1 true, i1 false)",
            "call void asm sideeffect \"{ .reg .b32 d, m; mapa.shared::cluster.u32 d, $0, 1; mapa.shared::cluster.u32 m, $1, 1; \
             st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [d], $2, [m]; }\", \"r,r,r\"(ptr addrspace(3) %mine, ptr addrspace(3) @bar, i32 %t)",
        )
        .replace("  %leader = icmp", "  %mine = getelementptr i32, ptr addrspace(3) @smem, i32 %t\n  %leader = icmp")
        .replace("br label %wait\nwait:", "br label %skip\nwait:")
        .replace("use:\n", "skip:\n  call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n  call void @llvm.nvvm.barrier.cluster.wait.aligned()\n  ret void\nuse:\n");
    let o = launch(&ir, vec![buffer("x", words(0..32)), buffer("out", vec![0; 256])], 2);
    clean(&o);
    assert_eq!(to_words(&o.buffers[1])[32..], (0..32).collect::<Vec<u32>>());
}

#[test]
fn minimum_of_magnitudes_with_the_sign_of_the_product() {
    let (x, y) = ([-1.5f32, 2.0, -3.0, 0.25], [1.0f32, -2.5, -2.0, f32::INFINITY]);
    let want = [-1.0f32, -2.0, 2.0, 0.25].map(f32::to_bits);
    let of = |a: [f32; 4]| move |l: u32| a[l as usize % 4].to_bits();
    let got = asm("min.xorsign.abs.f32 $0, $1, $2;", of(x), of(y));
    assert_eq!(got[..4], want);
    let body = "%fx = bitcast i32 %x to float
        %fy = bitcast i32 %y to float
        %m = call float @llvm.nvvm.fmin.xorsign.abs.f(float %fx, float %fy)
        %r = bitcast float %m to i32";
    let declaration = "declare float @llvm.nvvm.fmin.xorsign.abs.f(float, float)";
    assert_eq!(lanes(body, declaration, of(x), of(y))[..4], want);
}
