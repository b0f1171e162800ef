// RUN: %ttopt %s --tritongpu-cluster-buffers | FileCheck %s
// The layout engine keeps what blocks need.
// RUN: %ttopt %s --tritongpu-cluster-buffers --tritongpu-remove-layout-conversions | FileCheck %s

#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#both = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 0]]}>
#mine = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], CGALayout = [[1, 0]]}>
#all = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], CGALayout = [[0, 0]]}>
#columns = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], CGALayout = [[0, 1]]}>
#smem = #ttg.shared_memory
// CHECK-DAG: #[[ROWS:.*]] = #ttg.blocked<{{.*}}CGALayout = {{\[\[}}1, 0]]}>
// CHECK-DAG: #[[BOTH:.*]] = #ttg.blocked<{{.*}}CGALayout = {{\[\[}}0, 0]]}>
// CHECK-DAG: #[[COLUMNS:.*]] = #ttg.blocked<{{.*}}CGALayout = {{\[\[}}0, 1]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Each block stores the rows that it has.
// CHECK-LABEL: tt.func @the_same
// CHECK-NOT:     ttg.convert_layout
// CHECK:         tt.return
tt.func @the_same(%x: tensor<64x64xf16, #rows>) {
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #rows>) -> !ttg.memdesc<64x64xf16, #mine, #smem>
  tt.return
}

// The buffer of each block holds all rows.
// CHECK-LABEL: tt.func @all_rows
// CHECK:         %[[ALL:.*]] = ttg.convert_layout %{{.*}} : tensor<64x64xf16, #[[ROWS]]> -> tensor<64x64xf16, #[[BOTH]]>
// CHECK:         ttg.local_alloc %[[ALL]]
tt.func @all_rows(%x: tensor<64x64xf16, #rows>) {
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #rows>) -> !ttg.memdesc<64x64xf16, #all, #smem>
  tt.return
}

// CHECK-LABEL: tt.func @columns
// CHECK:         %[[COLS:.*]] = ttg.convert_layout %{{.*}} : tensor<64x64xf16, #[[ROWS]]> -> tensor<64x64xf16, #[[COLUMNS]]>
// CHECK:         ttg.local_store %[[COLS]]
tt.func @columns(%x: tensor<64x64xf16, #rows>) {
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #columns, #smem, mutable>
  ttg.local_store %x, %m : tensor<64x64xf16, #rows> -> !ttg.memdesc<64x64xf16, #columns, #smem, mutable>
  tt.return
}

// A block that has all rows stores its own: those of the others are in their memory.
// CHECK-LABEL: tt.func @own_rows
// CHECK:         %[[OWN:.*]] = ttg.convert_layout %{{.*}} : tensor<64x64xf16, #[[BOTH]]> -> tensor<64x64xf16, #[[ROWS]]>
// CHECK:         ttg.local_alloc %[[OWN]]
tt.func @own_rows(%x: tensor<64x64xf16, #both>) {
  %m = ttg.local_alloc %x : (tensor<64x64xf16, #both>) -> !ttg.memdesc<64x64xf16, #mine, #smem>
  tt.return
}
}
