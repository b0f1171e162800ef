// RUN: %ttopt %s --canonicalize | FileCheck %s

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<2xi64, #shared, #smem, mutable>

module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {

// Each CTA arrives for itself where all bits of its number are kept.
// CHECK-LABEL: tt.func public @from(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]
// CHECK-NEXT: ttng.barrier_expect %[[ARG0]], 16, %[[ARG1]] : !ttg.memdesc<2xi64, #shared, #smem, mutable>
// CHECK-NEXT: ttng.barrier_expect %[[ARG0]], 16 {fromCTA = 0 : i32}, %[[ARG1]] : !ttg.memdesc<2xi64, #shared, #smem, mutable>
// CHECK-NEXT: ttng.arrive_barrier %[[ARG0]], 1 : !ttg.memdesc<2xi64, #shared, #smem, mutable>
// CHECK-NEXT: ttng.arrive_barrier %[[ARG0]], 1 {fromCTA = 0 : i32} : !ttg.memdesc<2xi64, #shared, #smem, mutable>
// CHECK-NEXT: ttng.arrive_barrier %[[ARG0]], 1 {multicastCTA = 1 : i32} : !ttg.memdesc<2xi64, #shared, #smem, mutable>
// CHECK-NEXT: tt.return
tt.func public @from(%b: !bar, %p: i1) {
  ttng.barrier_expect %b, 16 {fromCTA = 1 : i32}, %p : !bar
  ttng.barrier_expect %b, 16 {fromCTA = 0 : i32}, %p : !bar
  ttng.arrive_barrier %b, 1 {fromCTA = 1 : i32} : !bar
  ttng.arrive_barrier %b, 1 {fromCTA = 0 : i32} : !bar
  ttng.arrive_barrier %b, 1 {fromCTA = 1 : i32, multicastCTA = 1 : i32} : !bar
  tt.return
}

}
