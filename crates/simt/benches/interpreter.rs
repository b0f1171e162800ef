//! Speed of the interpreter in lane instructions a second, on one core.
//!
//! `cargo bench -p ttopt-simt` reports elements per second; an element is one lane executing one instruction. The
//! target is 20 million.

use criterion::{Criterion, Throughput};
use simt::{Arg, Launch};

/// Integer and float arithmetic in a loop, no memory.
const ARITHMETIC: &str = r#"
define ptx_kernel void @arithmetic(ptr addrspace(1) %x) "nvvm.reqntid"="128" {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %f = sitofp i32 %t to float
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i1, %loop ]
  %a = phi float [ %f, %entry ], [ %a2, %loop ]
  %h = phi i32 [ %t, %entry ], [ %h3, %loop ]
  %a1 = fmul float %a, 0.5
  %a2 = fadd float %a1, 1.0
  %h1 = mul i32 %h, 1664525
  %h2 = add i32 %h1, 1013904223
  %h3 = xor i32 %h2, %i
  %i1 = add i32 %i, 1
  %c = icmp slt i32 %i1, 2000
  br i1 %c, label %loop, label %end
end:
  %p = getelementptr float, ptr addrspace(1) %x, i32 %t
  %hf = bitcast i32 %h3 to float
  %s = fadd float %a2, %hf
  store float %s, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
"#;

/// Shared memory, barriers and global memory with all checks.
const MEMORY: &str = include_str!("../tests/reverse.ll");
const MATRIX: &str = include_str!("../tests/mma.ll");

fn run(c: &mut Criterion, name: &str, ir: &str, grid: u32, args: Vec<Arg>) {
    let module = simt::read::parse(name, ir.as_bytes()).expect("the module is valid");
    let program = simt::decode(&module, None).expect("the kernel is supported");
    let launch = Launch { args, grid: [grid, 1, 1], jobs: 1, ..Launch::default() };
    let outcome = simt::run(&program, &launch).expect("the launch is valid");
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    let mut group = c.benchmark_group("lane-instructions");
    group.throughput(Throughput::Elements(outcome.counts.total.lanes)).sample_size(20);
    group.bench_function(name, |b| b.iter(|| simt::run(&program, &launch)));
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let c = &mut criterion;
    let buffer = |n: usize| Arg::Buffer { name: "buffer".into(), data: vec![0; n] };
    run(c, "arithmetic", ARITHMETIC, 4, vec![buffer(512)]);
    run(c, "memory", MEMORY, 256, vec![buffer(256), buffer(256), Arg::Scalar(64)]);
    run(c, "matrix", MATRIX, 256, vec![buffer(512), buffer(256), buffer(512)]);
    criterion.final_summary();
}
