//! AMD instructions: lane exchange and matrix instructions of a wave of 32 lanes (RDNA).

use simt::{Arg, Launch, num};

/// Runs `body`, which gives each lane %r (i32), from lane numbers %t; `words` results a lane when it stores itself.
fn lanes(body: &str, declarations: &str) -> Vec<u32> {
    run(
        &format!(
            "{body}\n  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t\n  store i32 %r, ptr addrspace(1) %po"
        ),
        declarations,
        1,
        "gfx1100",
    )
}

fn decoded(body: &str, declarations: &str, cpu: &str) -> Result<simt::bytecode::Program, simt::Error> {
    let ir = format!(
        "target triple = \"amdgcn-amd-amdhsa\"
         define amdgpu_kernel void @k(ptr addrspace(1) %out) #0 {{
           %t = call i32 @llvm.amdgcn.workitem.id.x()
           {body}
           ret void
         }}
         declare i32 @llvm.amdgcn.workitem.id.x()
         {declarations}
         attributes #0 = {{ \"target-cpu\"=\"{cpu}\" \"amdgpu-flat-work-group-size\"=\"1,32\" }}"
    );
    simt::decode(&simt::read::parse("amd.ll", ir.as_bytes())?, None)
}

fn run(body: &str, declarations: &str, words: usize, cpu: &str) -> Vec<u32> {
    let program = decoded(body, declarations, cpu).unwrap();
    let args = vec![Arg::Buffer { name: "out".into(), data: vec![0; 128 * words] }];
    let o = simt::run(&program, &Launch { args, ..Launch::default() }).unwrap();
    assert!(o.findings.is_empty(), "{:?}", o.findings);
    o.buffers[0].chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn each(f: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..32).map(f).collect()
}

#[test]
fn dpp_moves_within_rows() {
    let declared = "declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)";
    let dpp = |ctrl: u32, rows: u32, bound: bool| {
        let call = format!(
            "%r = call i32 @llvm.amdgcn.update.dpp.i32(i32 99, i32 %t, i32 {ctrl}, i32 {rows}, i32 15, i1 {bound})"
        );
        lanes(&call, declared)
    };
    // quad_perm [1, 0, 3, 2], row_shr:1 with and without bound_ctrl, row_mirror in row 1 only, row_xmask:5.
    assert_eq!(dpp(0xb1, 15, false), each(|l| l ^ 1));
    assert_eq!(dpp(0x111, 15, false), each(|l| if l % 16 == 0 { 99 } else { l - 1 }));
    assert_eq!(dpp(0x111, 15, true), each(|l| if l % 16 == 0 { 0 } else { l - 1 }));
    assert_eq!(dpp(0x140, 2, false), each(|l| if l < 16 { 99 } else { 47 - l }));
    assert_eq!(dpp(0x165, 15, false), each(|l| l ^ 5));
}

#[test]
fn lanes_are_permuted_across_rows() {
    let declared = "declare i32 @llvm.amdgcn.permlanex16.i32(i32, i32, i32, i32, i1, i1)
                    declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)";
    // Lane i of a row takes lane 15 - i of the other row.
    let x16 = "%r = call i32 @llvm.amdgcn.permlanex16.i32(i32 %t, i32 %t, i32 -1985229329, i32 19088743, i1 false, i1 false)";
    assert_eq!(lanes(x16, declared), each(|l| ((l / 16) ^ 1) * 16 + 15 - l % 16));
    let bpermute = "%a = mul i32 %t, 12\n %r = call i32 @llvm.amdgcn.ds.bpermute(i32 %a, i32 %t)";
    assert_eq!(lanes(bpermute, declared), each(|l| 3 * l % 32));
}

#[test]
fn segments_of_two_by_pi_are_chosen_by_the_angle() {
    let declared = "declare double @llvm.amdgcn.trig.preop.f64(double, i32)";
    let segment = |angle: f64, segment: u32| {
        let body = format!(
            "%p = call double @llvm.amdgcn.trig.preop.f64(double 0x{:016X}, i32 {segment})
             %b = bitcast double %p to i64
             %po = getelementptr i64, ptr addrspace(1) %out, i32 %t
             store i64 %b, ptr addrspace(1) %po",
            angle.to_bits()
        );
        let words = run(&body, declared, 2, "gfx942");
        f64::from_bits(u64::from(words[1]) << 32 | u64::from(words[0]))
    };
    // 53 bits each of 2/π, which Machin's formula gave in integers of 1,400 bits.
    let bits = |top: u64, scale: i32| top as f64 * 2f64.powi(scale / 2) * 2f64.powi(scale - scale / 2);
    assert_eq!(segment(1.0, 0), bits(0x145f306dc9c882, -53));
    assert_eq!(segment(-1.0, 1), bits(0x14a7f09d5f47d4, -106));
    // An exponent of 1077 (2⁵⁴) is the last that leaves no bit out; 2⁶¹ leaves out seven.
    assert_eq!(segment(2f64.powi(54), 0), segment(1.0, 0));
    assert_eq!(segment(2f64.powi(61), 0), bits(0xf9836e4e44152, -60));
    // From 2⁹⁴⁵ on, segments are 2¹²⁸ times as large.
    assert_eq!(segment(2f64.powi(944), 2), bits(0x17cbe2f67a0e73, -1049));
    assert_eq!(segment(2f64.powi(945), 0), bits(0x174f463f669e5f, -816));
    // Behind the 1,216 bits that there are, none is set.
    assert_eq!(segment(2f64.powi(1023), 31), 0.0);
}

#[test]
fn products_are_added_within_threads() {
    // 3 l + (-2)(l / 2) + 1 = 2 l + 1 for lane l.
    let dot2 = |element: &str, name: &str, constants: [&str; 4]| {
        let [three, minus_two, half, one] = constants;
        let declared =
            format!("declare float @llvm.amdgcn.{name}(<2 x {element}>, <2 x {element}>, float, i1)");
        let body = format!(
            "%l = uitofp i32 %t to {element}
             %h = fmul {element} %l, {half}
             %a0 = insertelement <2 x {element}> poison, {element} {three}, i32 0
             %a = insertelement <2 x {element}> %a0, {element} {minus_two}, i32 1
             %b0 = insertelement <2 x {element}> poison, {element} %l, i32 0
             %b = insertelement <2 x {element}> %b0, {element} %h, i32 1
             %d = call float @llvm.amdgcn.{name}(<2 x {element}> %a, <2 x {element}> %b, float {one}, i1 false)
             %r = fptoui float %d to i32"
        );
        lanes(&body, &declared)
    };
    let want = each(|l| 2 * l + 1);
    assert_eq!(dot2("half", "fdot2", ["0xH4200", "0xHC000", "0xH3800", "1.0"]), want);
    assert_eq!(dot2("bfloat", "fdot2.f32.bf16", ["0xR4040", "0xRC000", "0xR3F00", "1.0"]), want);
    // Bytes 1, -1, 2, -128 times l, 1, 3, 1, and a sum that wraps.
    let dot4 = "%b = or i32 %t, 16974080
                %r = call i32 @llvm.amdgcn.sdot4(i32 -2147287295, i32 %b, i32 -2147483648, i1 false)";
    let declared = "declare i32 @llvm.amdgcn.sdot4(i32, i32, i32, i1)";
    assert_eq!(lanes(dot4, declared), each(|l| (l as i32 - 1 + 6 - 128).wrapping_add(i32::MIN) as u32));
}

/// D = A · B + C with A the row numbers, B the depths, C one; `n` halves of A and B a lane, `depth` the first of lane %t.
fn wmma(n: usize, depth: &str) -> Vec<u32> {
    let h = |v: f64| format!("0xH{:04X}", num::f64_to_f16(v));
    let mut body = format!("%row = and i32 %t, 15\n %rf = uitofp i32 %row to half\n {depth}\n");
    let (mut a, mut b) = ("poison".to_owned(), "poison".to_owned());
    for i in 0..n {
        body += &format!("%a{i} = insertelement <{n} x half> {a}, half %rf, i32 {i}\n");
        body += &format!(
            "%f{i} = fadd half %first, {}\n %b{i} = insertelement <{n} x half> {b}, half %f{i}, i32 {i}\n",
            h(i as f64)
        );
        (a, b) = (format!("%a{i}"), format!("%b{i}"));
    }
    let ones = ["float 1.0"; 8].join(", ");
    let callee = format!("@llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v{n}f16");
    body += &format!(
        "%d = call <8 x float> {callee}(<{n} x half> {a}, <{n} x half> {b}, <8 x float> <{ones}>)\n"
    );
    body += "%po = getelementptr <8 x float>, ptr addrspace(1) %out, i32 %t\n store <8 x float> %d, ptr addrspace(1) %po";
    let declared = format!("declare <8 x float> {callee}(<{n} x half>, <{n} x half>, <8 x float>)");
    run(&body, &declared, 8, if n == 16 { "gfx1100" } else { "gfx1201" })
}

#[test]
fn wmma_fragments_of_both_generations() {
    // Depths add up to 120: row i of the product is 120 i + 1.
    let want = |row: u32| (120.0 * row as f32 + 1.0).to_bits();
    // RDNA3: a lane holds all depths; register r of lane l is row 2 r + l / 16.
    let gfx11 = wmma(16, "%first = fadd half 0xH0000, 0xH0000");
    assert_eq!(gfx11, (0..256).map(|i| want(2 * (i % 8) + i / 8 / 16)).collect::<Vec<u32>>());
    // RDNA4: half of the wave holds half of the depths; register r of lane l is row 8 (l / 16) + r.
    let gfx12 =
        wmma(8, "%half = lshr i32 %t, 4\n %eight = shl i32 %half, 3\n %first = uitofp i32 %eight to half");
    assert_eq!(gfx12, (0..256).map(|i| want(8 * (i / 8 / 16) + i % 8)).collect::<Vec<u32>>());
}

/// Stores D = A · B + 1 by `v_wmma` of gfx1250: lanes 0 to 15 have the depths 0 and 1, the others 2 and 3. In row i, A is i at the depths
/// 0 and 3, else nothing; B is j + 1 and 10 there, in column j, else 100.
fn wmma_gfx1250(negated: bool) -> (String, String) {
    let callee = "@llvm.amdgcn.wmma.f32.16x16x4.f32.v8f32.v2f32";
    let ones = ["float 1.0"; 8].join(", ");
    let body = format!(
        "%side = and i32 %t, 15
         %i = uitofp i32 %side to float
         %j = fadd float %i, 1.0
         %low = icmp ult i32 %t, 16
         %a0 = select i1 %low, float %i, float 0.0
         %a1 = select i1 %low, float 0.0, float %i
         %b0 = select i1 %low, float %j, float 100.0
         %b1 = select i1 %low, float 100.0, float 10.0
         %av = insertelement <2 x float> poison, float %a0, i32 0
         %a = insertelement <2 x float> %av, float %a1, i32 1
         %bv = insertelement <2 x float> poison, float %b0, i32 0
         %b = insertelement <2 x float> %bv, float %b1, i32 1
         %d = call <8 x float> {callee}(i1 {negated}, <2 x float> %a, i1 false, <2 x float> %b, i16 0, <8 x float> <{ones}>, i1 false, i1 false)
         %po = getelementptr <8 x float>, ptr addrspace(1) %out, i32 %t
         store <8 x float> %d, ptr addrspace(1) %po"
    );
    let declared =
        format!("declare <8 x float> {callee}(i1, <2 x float>, i1, <2 x float>, i16, <8 x float>, i1, i1)");
    (body, declared)
}

#[test]
fn wmma_of_gfx1250() {
    let (body, declared) = wmma_gfx1250(false);
    // Register r of lane l is row 8 (l / 16) + r of column l mod 16.
    let want = |l: u32, r: u32| ((8 * (l / 16) + r) as f32 * (l % 16 + 1 + 10) as f32 + 1.0).to_bits();
    let want: Vec<u32> = (0..256).map(|at| want(at / 8, at % 8)).collect();
    assert_eq!(run(&body, &declared, 8, "gfx1250"), want);

    let error =
        |(body, declared): (String, String), cpu| decoded(&body, &declared, cpu).unwrap_err().to_string();
    let other = error((body, declared), "gfx1201");
    assert!(other.contains("unsupported: the intrinsic @llvm.amdgcn.wmma.f32.16x16x4.f32"), "{other}");
    let negated = error(wmma_gfx1250(true), "gfx1250");
    assert!(negated.contains("with negation or clamping"), "{negated}");
}

/// A matrix of 16 x 16 units of so many bits, each its own number, which lanes read where Triton 3.9 has them read a right operand's
/// rows, and what each lane receives.
fn transposed_reads(unit: u32) -> (String, String, usize) {
    let (name, ty, steps, ones, first) = match unit {
        16 => ("tr16.b128.v8i16", "<8 x i16>", 2, 0x1_0001_0001_0001u64, 0x3_0002_0001_0000u64),
        _ => ("tr8.b64.v2i32", "<2 x i32>", 1, 0x0101_0101_0101_0101, 0x0706_0504_0302_0100),
    };
    let bytes = unit / 8;
    let store = |step: u64| {
        format!(
            "%v{step} = add i64 %all, {}
             %to{step} = getelementptr i8, ptr addrspace(3) %own, i32 {}
             store i64 %v{step}, ptr addrspace(3) %to{step}, align 8\n",
            first + 4 * step * ones,
            8 * step
        )
    };
    let fill: String = (0..steps).map(store).collect();
    // Sixteen bits: eight rows, then eight more columns; bytes: four rows, then eight more columns, then four rows. The upper half of the
    // wave has eight rows more.
    let row = if unit == 16 {
        "%low = and i32 %t, 7\n %k0 = add i32 %low, 0\n %n0 = and i32 %t, 8".to_owned()
    } else {
        "%low = and i32 %t, 3\n %b3 = and i32 %t, 8\n %k4 = lshr i32 %b3, 1\n %k0 = or i32 %low, %k4
         %b2 = and i32 %t, 4\n %n0 = shl i32 %b2, 1"
            .to_owned()
    };
    let body = format!(
        "%t8 = shl i32 %t, 3
         %base = zext i32 %t8 to i64
         %all = mul i64 %base, {ones}
         %mine = mul i32 %t8, {bytes}
         %own = getelementptr i8, ptr addrspace(3) @lds, i32 %mine
         {fill}
         call void @llvm.amdgcn.s.barrier()
         {row}
         %half = lshr i32 %t, 4
         %k8 = shl i32 %half, 3
         %k = or i32 %k0, %k8
         %k16 = shl i32 %k, 4
         %unit = or i32 %k16, %n0
         %byte = mul i32 %unit, {bytes}
         %from = getelementptr i8, ptr addrspace(3) @lds, i32 %byte
         %r = call {ty} @llvm.amdgcn.ds.load.{name}(ptr addrspace(3) %from)
         %po = getelementptr {ty}, ptr addrspace(1) %out, i32 %t
         store {ty} %r, ptr addrspace(1) %po"
    );
    let declared = format!(
        "@lds = external addrspace(3) global [512 x i8], align 16
         declare void @llvm.amdgcn.s.barrier()
         declare {ty} @llvm.amdgcn.ds.load.{name}(ptr addrspace(3))"
    );
    (body, declared, 2 * steps as usize)
}

/// Lane l has the column l mod 16 of the rows 8 (l / 16) to 8 (l / 16) + 7: an operand of `v_wmma`.
#[test]
fn squares_are_read_transposed() {
    for unit in [8, 16] {
        let (body, declared, words) = transposed_reads(unit);
        let bytes: Vec<u8> =
            run(&body, &declared, words, "gfx1250").iter().flat_map(|word| word.to_le_bytes()).collect();
        let got: Vec<u32> = bytes
            .chunks(unit as usize / 8)
            .map(|c| c.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b)))
            .collect();
        let want: Vec<u32> = (0..256).map(|i| (8 * (i / 8 / 16) + i % 8) * 16 + i / 8 % 16).collect();
        assert_eq!(got, want, "{unit} bits");
        let other = decoded(&body, &declared, "gfx1201").unwrap_err().to_string();
        assert!(other.contains("unsupported: the intrinsic @llvm.amdgcn.ds.load.tr"), "{other}");
    }
}

/// D = A · B + C of integers: A[i][k] = i − 8 signed, B[k][j] = j unsigned, C as given.
fn wmma_integer(t: &str, words: usize, c: i32, clamp: bool) -> Vec<u32> {
    let (mask, ones) = if t == "iu8" { (255, 0x0101_0101u32) } else { (15, 0x1111_1111) };
    let ty = if words == 1 { "i32".to_owned() } else { format!("<{words} x i32>") };
    let name = format!(
        "@llvm.amdgcn.wmma.i32.16x16x16.{t}.v8i32.{}",
        if words == 1 { "i32".into() } else { format!("v{words}i32") }
    );
    let splat = |v: &str, to: &str| match words {
        1 => format!("%{to} = add i32 %{v}, 0\n"),
        _ => (0..words)
            .map(|i| {
                let from = if i == 0 { "poison".into() } else { format!("%{to}{}", i - 1) };
                let d = if i + 1 == words { to.to_owned() } else { format!("{to}{i}") };
                format!("%{d} = insertelement {ty} {from}, i32 %{v}, i32 {i}\n")
            })
            .collect(),
    };
    let sums: String = (0..8)
        .map(|i| {
            format!(
                "%e{i} = extractelement <8 x i32> %d, i32 {i}
                 %i{i} = add i32 %first, {i}
                 %p{i} = getelementptr i32, ptr addrspace(1) %out, i32 %i{i}
                 store i32 %e{i}, ptr addrspace(1) %p{i}\n"
            )
        })
        .collect();
    let body = format!(
        "%side = and i32 %t, 15
         %less = sub i32 %side, 8
         %low = and i32 %less, {mask}
         %va = mul i32 %low, {ones}
         %vb = mul i32 %side, {ones}
         {}{}
         %d = call <8 x i32> {name}(i1 true, {ty} %a, i1 false, {ty} %b, <8 x i32> splat (i32 {c}), i1 {clamp})
         %first = mul i32 %t, 8
         {sums}",
        splat("va", "a"),
        splat("vb", "b")
    );
    run(&body, &format!("declare <8 x i32> {name}(i1, {ty}, i1, {ty}, <8 x i32>, i1)"), 8, "gfx1100")
}

#[test]
fn integer_wmma_of_both_generations() {
    let want = |row: fn(usize, usize) -> usize, c: i32| -> Vec<u32> {
        (0..32)
            .flat_map(|l| {
                (0..8).map(move |r| (16 * (row(l, r) as i32 - 8) * (l % 16) as i32).saturating_add(c) as u32)
            })
            .collect()
    };
    let (gfx11, gfx12) = (|l: usize, r: usize| 2 * r + l / 16, |l: usize, r: usize| 8 * (l / 16) + r);
    assert_eq!(wmma_integer("iu8", 4, 1, false), want(gfx11, 1));
    assert_eq!(wmma_integer("iu4", 2, 1, false), want(gfx11, 1));
    assert_eq!(wmma_integer("iu8", 2, 1, false), want(gfx12, 1));
    assert_eq!(wmma_integer("iu4", 1, 1, false), want(gfx12, 1));
    assert_eq!(wmma_integer("iu8", 4, i32::MAX, true), want(gfx11, i32::MAX));
}

/// Copies 64 words of %out by `copies` to the LDS, and stores what lanes then read of word %t to %out + 64 words; the findings.
fn to_lds(copies: &str) -> (Vec<u32>, Vec<String>) {
    let ir = format!(
        "target triple = \"amdgcn-amd-amdhsa\"
         @lds = external addrspace(3) global [0 x i8], align 16
         define amdgpu_kernel void @k(ptr addrspace(1) %out) #0 {{
           %t = call i32 @llvm.amdgcn.workitem.id.x()
           %from = getelementptr i32, ptr addrspace(1) %out, i32 %t
           %next = getelementptr i8, ptr addrspace(3) @lds, i32 256
           {copies}
           %at = getelementptr i32, ptr addrspace(3) @lds, i32 %t
           %v = load i32, ptr addrspace(3) %at, align 4
           %to = getelementptr i32, ptr addrspace(1) %from, i32 64
           store i32 %v, ptr addrspace(1) %to
           ret void
         }}
         declare i32 @llvm.amdgcn.workitem.id.x()
         declare void @llvm.amdgcn.s.waitcnt(i32)
         declare void @llvm.amdgcn.asyncmark()
         declare void @llvm.amdgcn.wait.asyncmark(i16)
         declare void @llvm.amdgcn.global.load.lds(ptr addrspace(1), ptr addrspace(3), i32, i32, i32)
         declare void @llvm.amdgcn.global.load.async.lds(ptr addrspace(1), ptr addrspace(3), i32, i32, i32)
         declare void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8), ptr addrspace(3), i32, i32, i32, i32, i32)
         declare ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1), i16, i64, i32)
         attributes #0 = {{ \"target-cpu\"=\"gfx950\" \"amdgpu-flat-work-group-size\"=\"1,64\" }}"
    );
    let module = simt::read::parse("lds.ll", ir.as_bytes()).unwrap();
    let program = simt::decode(&module, None).unwrap();
    let data: Vec<u8> = (0..128u32).flat_map(|i| (i + 100).to_le_bytes()).collect();
    let args = vec![Arg::Buffer { name: "out".into(), data }];
    let o = simt::run(&program, &Launch { args, block: Some([64, 1, 1]), ..Launch::default() }).unwrap();
    let words = o.buffers[0].chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap()));
    (words.skip(64).collect(), o.findings.iter().map(|f| format!("{f:?}")).collect())
}

/// Loads to the LDS write lane after lane, from wherever lanes point to, and land at the wait that leaves fewer under way.
#[test]
fn loads_to_the_lds_land_at_their_wait() {
    let copy = |to: &str| {
        format!(
            "call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %from, ptr addrspace(3) {to}, i32 4, i32 0, i32 0)\n"
        )
    };
    // vmcnt of 0 and of 1, nothing else waited for.
    let wait = |left: u32| format!("call void @llvm.amdgcn.s.waitcnt(i32 {})\n", 3952 + left);
    let wanted: Vec<u32> = (100..164).collect();
    assert_eq!(to_lds(&(copy("@lds") + &wait(0))), (wanted.clone(), vec![]));
    // The later of two loads may stay under way.
    assert_eq!(to_lds(&(copy("@lds") + &copy("%next") + &wait(1))), (wanted.clone(), vec![]));
    for early in [copy("@lds"), copy("%next") + &copy("@lds") + &wait(1), copy("@lds") + &wait(63)] {
        let (_, findings) = to_lds(&early);
        assert!(findings.iter().any(|f| f.contains("AsyncHazard")), "{findings:?}");
    }
    let marked = copy("@lds").replace("load.lds", "load.async.lds") + "call void @llvm.amdgcn.asyncmark()\n";
    let done = "call void @llvm.amdgcn.wait.asyncmark(i16 0)\n";
    assert_eq!(to_lds(&(marked.clone() + done)), (wanted, vec![]));
    // They do not count as loads of their own.
    assert!(!to_lds(&(copy("@lds").replace("load.lds", "load.async.lds") + &wait(0))).1.is_empty());
}

/// Lanes beyond a buffer write zeros.
#[test]
fn loads_beyond_a_buffer_write_zeros_to_the_lds() {
    let copies = "%r = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %out, i16 0, i64 160, i32 0)
                  %o = mul i32 %t, 4
                  call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %r, ptr addrspace(3) @lds, i32 4, i32 %o, i32 0, i32 0, i32 0)
                  call void @llvm.amdgcn.s.waitcnt(i32 3952)";
    let wanted = (0..64).map(|i| if i < 40 { i + 100 } else { 0 }).collect();
    assert_eq!(to_lds(copies), (wanted, vec![]));
}

/// One half that is alone is added with -0 for its neighbour, which is another buffer's or nobody's.
#[test]
fn a_half_is_added_alone() {
    let body = "
        %half = lshr i32 %t, 1
        %place = getelementptr i32, ptr addrspace(1) %out, i32 %half
        %odd = and i32 %t, 1
        %first = icmp eq i32 %odd, 0
        %n = uitofp i32 %t to half
        %low = select i1 %first, half %n, half -0.0
        %high = select i1 %first, half -0.0, half %n
        %a = insertelement <2 x half> poison, half %low, i32 0
        %pair = insertelement <2 x half> %a, half %high, i32 1
        %old = atomicrmw fadd ptr addrspace(1) %place, <2 x half> %pair syncscope(\"agent\") monotonic, align 4";
    let program = decoded(body, "", "gfx942").unwrap();
    let run = |bytes: usize| {
        let args = vec![Arg::Buffer { name: "out".into(), data: vec![0; bytes] }];
        simt::run(&program, &Launch { args, ..Launch::default() }).unwrap()
    };
    // 31 of the 32 lanes have an element: the last one's is beyond the buffer, and the neighbour of the last but one is nobody's.
    let o = run(62);
    let found: Vec<_> = o.findings.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("offset 62") && found[0].contains("lane 31"), "{found:?}");
    let halves: Vec<u16> =
        o.buffers[0].chunks(2).map(|c| u16::from_le_bytes(c.try_into().unwrap())).collect();
    assert_eq!(halves, (0..31).map(|n| num::f64_to_f16(f64::from(n))).collect::<Vec<_>>());
}
