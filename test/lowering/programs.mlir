// RUN: split-file %s %t
// RUN: %ttopt %t/one.mlir --convert-triton-gpu-to-llvm | FileCheck %t/one.mlir
// RUN: %ttopt %t/cluster.mlir --convert-triton-gpu-to-llvm --cse | FileCheck %t/cluster.mlir

//--- one.mlir
// The ABI of kernels: the arguments, then global and profile scratch.
// CHECK-LABEL: llvm.func @programs(
// CHECK-SAME:    %[[OUT:[^:]*]]: !llvm.ptr<1> {llvm.align = 16 : i64}, %{{[^:]*}}: i32, %{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: !llvm.ptr<1>)
// CHECK-SAME:    attributes {nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 64>}
// CHECK-DAG:     %[[X:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK-DAG:     %[[Y:.*]] = nvvm.read.ptx.sreg.ctaid.y : i32
// CHECK-DAG:     %[[Z:.*]] = nvvm.read.ptx.sreg.nctaid.z : i32
// CHECK:         %[[XY:.*]] = llvm.add %[[X]], %[[Y]]
// CHECK:         llvm.add %[[XY]], %[[Z]]
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @programs(%out: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %x = tt.get_program_id x : i32
    %y = tt.get_program_id y : i32
    %z = tt.get_num_programs z : i32
    %xy = arith.addi %x, %y : i32
    %xyz = arith.addi %xy, %z : i32
    tt.store %out, %xyz : !tt.ptr<i32>
    tt.return
  }
}

//--- cluster.mlir
// Blocks of a cluster work on one program: programs are clusters, a tensor is
// spread over the blocks, and one thread of the cluster stores a scalar.
// CHECK-LABEL: llvm.func @programs(
// CHECK-SAME:    nvvm.cluster_dim = array<i32: 2>
// CHECK:         %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank : i32
// CHECK:         %[[MYBLOCK:.*]] = llvm.and %[[RANK]], %{{.*}} : i32
// CHECK:         %[[X:.*]] = nvvm.read.ptx.sreg.clusterid.x : i32
// CHECK:         %[[N:.*]] = nvvm.read.ptx.sreg.nclusterid.x : i32
// CHECK-NOT:     sreg.ctaid
// CHECK:         llvm.add %[[X]], %[[N]]
// CHECK:         llvm.store %{{.*}}, %{{.*}} : vector<2xi32>
// CHECK:         %[[ANY:.*]] = llvm.or %{{.*}}, %[[MYBLOCK]]
// CHECK:         %[[FIRST:.*]] = llvm.icmp "eq" %[[ANY]], %{{.*}} : i32
// CHECK:         llvm.inline_asm {{.*}} "@$2 st.global.b32 [ $0 ], $1;", "l,r,b" %{{.*}}, %{{.*}}, %[[FIRST]]
#blocked = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [2], order = [0], CGALayout = [[1]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @programs(%out: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %x = tt.get_program_id x : i32
    %n = tt.get_num_programs x : i32
    %sum = arith.addi %x, %n : i32
    %r = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #blocked>
    %s = tt.splat %out : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>, #blocked>
    %p = tt.addptr %s, %r : tensor<256x!tt.ptr<i32>, #blocked>, tensor<256xi32, #blocked>
    tt.store %p, %r : tensor<256x!tt.ptr<i32>, #blocked>
    tt.store %out, %sum : !tt.ptr<i32>
    tt.return
  }
}
