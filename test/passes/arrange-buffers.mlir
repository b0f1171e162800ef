// Memory of an operand is laid out for what writes it at last: a row of 16 numbers in each thread met in four banks.
// RUN: %ttopt %s --tritongpu-arrange-buffers | FileCheck %s
// RUN: %ttopt %s --tritongpu-arrange-buffers --tritongpu-arrange-buffers | FileCheck %s

#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [2, 1], order = [1, 0]}>
#sums = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>
#operand = #ttg.dot_op<{opIdx = 1, parent = #sums}>
#memory = #ttg.shared_linear<{offset = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [16, 0], [32, 0], [0, 9]]}, alignment = 16>
#smem = #ttg.shared_memory
// Threads have vectors of a row there (the lowest bits are columns), and lanes rows, so that nothing meets.
// CHECK-DAG: #[[FIT:.*]] = #ttg.shared_linear<{offset = {{\[\[}}0, 2], [0, 4], {{.*}}}, alignment = 16>
// CHECK-DAG: #[[HAD:.*]] = #ttg.shared_linear<{offset = {{\[\[}}4, 0], [8, 0], [0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [16, 0], [32, 0], [0, 9]]}, alignment = 16>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: @written_by_rows
// CHECK:         ttg.local_alloc %{{.*}} -> !ttg.memdesc<64x16xf32, #[[FIT]], #smem>
// CHECK:         ttg.local_load %{{.*}} : !ttg.memdesc<64x16xf32, #[[FIT]], #smem>
tt.func @written_by_rows(%x: tensor<64x16xf32, #rows>) -> tensor<64x16xf32, #operand> {
  %m = ttg.local_alloc %x : (tensor<64x16xf32, #rows>) -> !ttg.memdesc<64x16xf32, #memory, #smem>
  %y = ttg.local_load %m : !ttg.memdesc<64x16xf32, #memory, #smem> -> tensor<64x16xf32, #operand>
  tt.return %y : tensor<64x16xf32, #operand>
}

// What is read in parts keeps its layout.
// CHECK-LABEL: @read_in_parts
// CHECK:         ttg.local_alloc %{{.*}} -> !ttg.memdesc<64x16xf32, #[[HAD]], #smem>
tt.func @read_in_parts(%x: tensor<64x16xf32, #rows>) -> tensor<64x16xf32, #operand> {
  %m = ttg.local_alloc %x : (tensor<64x16xf32, #rows>) -> !ttg.memdesc<64x16xf32, #memory, #smem>
  %y = ttg.local_load %m : !ttg.memdesc<64x16xf32, #memory, #smem> -> tensor<64x16xf32, #operand>
  %t = ttg.memdesc_trans %m {order = array<i32: 0, 1>} : !ttg.memdesc<64x16xf32, #memory, #smem> -> !ttg.memdesc<64x16xf32, #memory, #smem>
  %z = ttg.local_load %t : !ttg.memdesc<64x16xf32, #memory, #smem> -> tensor<64x16xf32, #operand>
  %s = arith.addf %y, %z : tensor<64x16xf32, #operand>
  tt.return %s : tensor<64x16xf32, #operand>
}
}
