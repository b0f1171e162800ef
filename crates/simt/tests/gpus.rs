//! What depends on the GPU a module is for, and on the shape of its blocks.

use simt::{Arg, Launch, Outcome};

fn decoded(ir: &str, cpu: Option<&str>) -> Result<simt::bytecode::Program, simt::Error> {
    let mut module = simt::read::parse("test.ll", ir.as_bytes())?;
    module.cpu = cpu.map(str::to_owned);
    simt::decode(&module, None)
}

fn launched(ir: &str, launch: Launch) -> Result<Outcome, simt::Error> {
    simt::run(&decoded(ir, None)?, &launch)
}

fn out(bytes: usize) -> Vec<Arg> {
    vec![Arg::Buffer { name: "out".into(), data: vec![0; bytes] }]
}

fn words(b: &[u8]) -> Vec<u32> {
    b.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

/// Every thread of a block stores its coordinates at its linear number.
fn coordinates(reqntid: &str) -> String {
    format!(
        r#"
define ptx_kernel void @k(ptr addrspace(1) %out) "nvvm.reqntid"="{reqntid}" {{
  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %y = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %z = call i32 @llvm.nvvm.read.ptx.sreg.tid.z()
  %nx = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %ny = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  %zy = mul i32 %z, %ny
  %zyy = add i32 %zy, %y
  %a = mul i32 %zyy, %nx
  %i = add i32 %a, %x
  %y8 = shl i32 %y, 8
  %z16 = shl i32 %z, 16
  %v0 = or i32 %x, %y8
  %v = or i32 %v0, %z16
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %v, ptr addrspace(1) %p
  ret void
}}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
"#
    )
}

#[test]
fn blocks_have_up_to_three_dimensions() {
    for [x, y, z] in [[16, 16, 1], [5, 3, 4], [64, 1, 1]] {
        let ir = coordinates(&format!("{x},{y},{z}"));
        let o = launched(&ir, Launch { args: out(4096), ..Launch::default() }).unwrap();
        assert!(o.findings.is_empty(), "{:?}", o.findings);
        let mut want: Vec<u32> =
            (0..x * y * z).map(|i| (i % x) | ((i / x % y) << 8) | ((i / (x * y)) << 16)).collect();
        want.resize(1024, 0);
        assert_eq!(words(&o.buffers[0]), want, "{x} {y} {z}");
    }
    // What is left out is one.
    let o = launched(&coordinates("16,16"), Launch { args: out(4096), ..Launch::default() }).unwrap();
    assert_eq!(words(&o.buffers[0])[255], 15 | 15 << 8);
}

#[test]
fn the_first_programs_of_a_grid_are_told_of_all() {
    let ir = r#"
define ptx_kernel void @k(ptr addrspace(1) %out) "nvvm.reqntid"="1" {
  %x = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %y = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %row = mul i32 %y, %n
  %i = add i32 %row, %x
  %v = add i32 %n, 100
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %v, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
"#;
    let written = |first| {
        let launch = Launch { grid: [3, 3, 1], first, args: out(36), ..Launch::default() };
        launched(ir, launch).map(|o| words(&o.buffers[0]).iter().map(|v| *v == 103).collect::<Vec<_>>())
    };
    assert_eq!(written(None).unwrap(), [true; 9]);
    let (x, o) = (true, false);
    assert_eq!(written(Some([2, 2, 1])).unwrap(), [x, x, o, x, x, o, o, o, o]);
    // There are no more than there are.
    assert_eq!(written(Some([1, 7, 2])).unwrap(), [x, o, o, x, o, o, x, o, o]);
    let none = written(Some([1, 0, 1])).unwrap_err().to_string();
    assert_eq!(none, "the first [1, 0, 1] programs; at least one has to run");
}

#[test]
fn blocks_of_another_size_than_the_module_demands_are_errors() {
    let error = |reqntid: &str, block| {
        let launch = Launch { args: out(4096), block, ..Launch::default() };
        launched(&coordinates(reqntid), launch).unwrap_err().to_string()
    };
    assert_eq!(error("16,16", Some([256, 1, 1])), "a program of 256 × 1 × 1 threads; @k is for 16 × 16 × 1");
    assert_eq!(error("64,32", None), "a program of 64 × 32 × 1 threads; it has 1 to 1024");
    for text in ["16,x", "0", "", "1,2,3,4"] {
        let e = error(text, None);
        assert_eq!(e, format!("@k: the attribute nvvm.reqntid=\"{text}\""));
    }
}

/// A kernel of AMD with a triple, attributes of the kernel, a body that defines %r (i32), and declarations.
fn amd(triple: &str, attributes: &str, body: &str, declared: &str) -> String {
    format!(
        "target triple = \"{triple}\"
         define amdgpu_kernel void @k(ptr addrspace(1) %out) #0 {{
           %t = call i32 @llvm.amdgcn.workitem.id.x()
           {body}
           %p = getelementptr i32, ptr addrspace(1) %out, i32 %t
           store i32 %r, ptr addrspace(1) %p
           ret void
         }}
         declare i32 @llvm.amdgcn.workitem.id.x()
         {declared}
         attributes #0 = {{ \"amdgpu-flat-work-group-size\"=\"1,64\" {attributes} }}"
    )
}

const BALLOT: (&str, &str) =
    ("%r = call i32 @llvm.amdgcn.wavefrontsize()", "declare i32 @llvm.amdgcn.wavefrontsize()");

#[test]
fn waves_have_the_size_of_the_gpu() {
    let old = "amdgcn-amd-amdhsa";
    for (triple, attributes, cpu, want) in [
        (old, r#""target-cpu"="gfx942""#, None, 64),
        (old, r#""target-cpu"="gfx1100""#, None, 32),
        (old, r#""target-cpu"="gfx1201" "target-features"="+dot1-insts,+wavefrontsize64""#, None, 64),
        ("amdgpu9.50-amd-amdhsa", "", None, 64),
        ("amdgpu12.01-amd-amdhsa", "", None, 32),
        (old, "", Some("hip:gfx1100"), 32),
    ] {
        let p = decoded(&amd(triple, attributes, BALLOT.0, BALLOT.1), cpu).unwrap();
        let o = simt::run(&p, &Launch { args: out(256), ..Launch::default() }).unwrap();
        assert_eq!(words(&o.buffers[0]), [want; 64], "{triple} {attributes} {cpu:?}");
    }
}

#[test]
fn gpus_that_are_not_known_are_errors() {
    let error = |triple: &str, attributes: &str, cpu| {
        decoded(&amd(triple, attributes, BALLOT.0, BALLOT.1), cpu).unwrap_err().to_string()
    };
    let old = "amdgcn-amd-amdhsa";
    let nameless = error(old, "", None);
    assert!(nameless.starts_with("@k does not say which GPU it is for"), "{nameless}");
    assert!(nameless.ends_with("known are gfx90a, gfx942, gfx950, gfx1100, gfx1101, gfx1102, gfx1103, gfx1150, gfx1151, gfx1200, gfx1201, gfx1250"), "{nameless}");
    let strange = error(old, r#""target-cpu"="gfx803""#, None);
    assert!(strange.starts_with("the simulator does not know the GPU 'gfx803'; it knows sm_80"), "{strange}");
    assert_eq!(
        error("amdgpu9.42-amd-amdhsa", "", Some("gfx950")),
        "@k is compiled for gfx942, not for gfx950"
    );
    assert_eq!(error(old, "", Some("cuda:90")), "@k is code for Amd, sm_90 is not");
    let wide = error(old, r#""target-cpu"="gfx942" "target-features"="+wavefrontsize32""#, None);
    assert_eq!(wide, "@k has waves of 32 lanes, which gfx942 has not");
}

#[test]
fn constants_are_cut_anew_by_bitcasts() {
    // LLVM leaves bitcasts between vectors of other widths in constants.
    let body = "%i = and i32 %t, 7
 %h = extractelement <8 x half> bitcast (<4 x i32> <i32 1, i32 2, i32 3, i32 -67044352> to <8 x half>), i32 %i
 %b = bitcast half %h to i16
 %w = extractelement <2 x i32> bitcast (<4 x i16> <i16 1, i16 2, i16 3, i16 -4> to <2 x i32>), i32 1
 %z = zext i16 %b to i32
 %s = shl i32 %w, 16
 %r = or i32 %s, %z";
    let ir = amd("amdgcn-amd-amdhsa", r#""target-cpu"="gfx950""#, body, "");
    let o = launched(&ir, Launch { args: out(256), ..Launch::default() }).unwrap();
    assert_eq!(
        words(&o.buffers[0])[..8],
        [0x30001, 0x30000, 0x30002, 0x30000, 0x30003, 0x30000, 0x3fc00, 0x3fc00]
    );
}

#[test]
fn numbers_are_compared_three_ways() {
    let body = "%n = sub i32 %t, 2
 %s = call i8 @llvm.scmp.i8.i32(i32 %n, i32 0)
 %u = call i32 @llvm.ucmp.i32.i32(i32 %n, i32 1)
 %z = zext i8 %s to i32
 %v = shl i32 %u, 8
 %r = or i32 %v, %z";
    let declared = "declare i8 @llvm.scmp.i8.i32(i32, i32)\n declare i32 @llvm.ucmp.i32.i32(i32, i32)";
    let ir = amd("amdgcn-amd-amdhsa", r#""target-cpu"="gfx942""#, body, declared);
    let o = launched(&ir, Launch { args: out(256), ..Launch::default() }).unwrap();
    assert_eq!(words(&o.buffers[0])[..5], [0x1ff, 0x1ff, 0xffff_ff00, 0x001, 0x101]);
}

#[test]
fn eight_bit_floats_are_those_of_the_gpu() {
    let body = "%f = call float @llvm.amdgcn.cvt.f32.fp8(i32 128, i32 0)\n %r = bitcast float %f to i32";
    let declared = "declare float @llvm.amdgcn.cvt.f32.fp8(i32, i32)";
    let code = |cpu: &str| {
        let ir = amd("amdgcn-amd-amdhsa", &format!("\"target-cpu\"=\"{cpu}\""), body, declared);
        launched(&ir, Launch { args: out(256), ..Launch::default() }).map(|o| words(&o.buffers[0])[0])
    };
    // The code of −0 is NaN in the FNUZ formats.
    assert!(f32::from_bits(code("gfx942").unwrap()).is_nan());
    assert_eq!(code("gfx950").unwrap(), 1 << 31);
    assert_eq!(code("gfx1201").unwrap(), 1 << 31);
    let none = code("gfx90a").unwrap_err().to_string();
    assert!(none.contains("8-bit floats, which gfx90a does not have"), "{none}");
}

const DYNAMIC: &str = r#"
@dynamic = external addrspace(3) global [0 x i8], align 16
define ptx_kernel void @k(ptr addrspace(1) %out) "nvvm.reqntid"="32" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %o = shl i32 %t, 2
  %at = add i32 %o, 102400
  %p = getelementptr i8, ptr addrspace(3) @dynamic, i32 %at
  store i32 %t, ptr addrspace(3) %p
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %t
  %v = load i32, ptr addrspace(3) %p
  store i32 %v, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
"#;

#[test]
fn shared_memory_ends_where_the_gpus_does() {
    let run = |cpu: Option<&str>, shared| {
        simt::run(&decoded(DYNAMIC, cpu).unwrap(), &Launch { args: out(128), shared, ..Launch::default() })
    };
    // Byte 102,400 on: inside the 163 KiB of sm_80, outside the 99 KiB of sm_89.
    assert!(run(Some("sm_80"), None).unwrap().findings.is_empty());
    assert_eq!(run(Some("sm_89"), None).unwrap().findings[0].kind.name(), "out-of-bounds");
    assert!(run(None, Some(102_528)).unwrap().findings.is_empty());
    assert_eq!(
        run(Some("sm_89"), Some(102_528)).unwrap_err().to_string(),
        "102528 bytes of shared memory; there are 101376 on sm_89"
    );
    let unsaid = run(None, None).unwrap_err().to_string();
    assert!(unsaid.starts_with("the module does not say which GPU it is for"), "{unsaid}");
    assert_eq!(
        run(None, Some(300_000)).unwrap_err().to_string(),
        "300000 bytes of shared memory; there are 232448 on any GPU"
    );
}

#[test]
fn wavefronts_are_those_of_the_gpu() {
    // 16 bytes a lane, read: lanes 0 and 20 together on gfx942.
    let body = "%o = shl i32 %t, 4
      %ps = getelementptr i8, ptr addrspace(3) @tile, i32 %o
      store <4 x i32> zeroinitializer, ptr addrspace(3) %ps, align 16
      %v = load <4 x i32>, ptr addrspace(3) %ps, align 16
      %r = extractelement <4 x i32> %v, i32 0";
    let tile = "@tile = internal addrspace(3) global [1024 x i8] undef, align 16";
    let waves = |cpu: &str| {
        let ir = amd("amdgcn-amd-amdhsa", &format!("\"target-cpu\"=\"{cpu}\""), body, tile);
        let o = launched(&ir, Launch { args: out(256), ..Launch::default() }).unwrap();
        assert!(o.findings.is_empty(), "{:?}", o.findings);
        o.counts.total.wavefronts
    };
    assert_eq!(waves("gfx942"), 8 + 8);
    assert_eq!(waves("gfx950"), 8 + 4);
}
