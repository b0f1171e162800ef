// RUN: %ttopt %s --triton-nvidia-store-invariant-operands --split-input-file | FileCheck %s
// RUN: %ttopt %s --triton-nvidia-store-invariant-operands --triton-nvidia-store-invariant-operands --split-input-file | FileCheck %s

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!a = tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
!b = !ttg.memdesc<64x64xf16, #shared, #smem>
!c = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Some iterations mask their products. The operand is stored once, before the outer loop; both dots read it.
// CHECK-LABEL: @branches(
// CHECK:         %[[A:.*]] = ttg.local_alloc %arg0 {{.*}} -> !ttg.memdesc<64x64xf16, #shared{{[0-9]*}}, #smem>
// CHECK-NEXT:    scf.for
// CHECK:           scf.for
// CHECK:             ttng.warp_group_dot %[[A]],
// CHECK:             ttng.warp_group_dot %[[A]],
// CHECK-NOT:     ttg.local_alloc
tt.func public @branches(%a: !a, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %all = scf.for %j = %c0 to %n step %c1 iter_args(%outer = %zero) -> (!c) : i32 {
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %outer) -> (!c) : i32 {
      %d = ttng.warp_group_dot %a, %b, %acc : !a * !b -> !c
      %is = arith.cmpi eq, %i, %n : i32
      %masked = scf.if %is -> (!c) {
        %m = arith.mulf %d, %d : !c
        scf.yield %m : !c
      } else {
        scf.yield %d : !c
      }
      %e = ttng.warp_group_dot %a, %b, %masked : !a * !b -> !c
      scf.yield %e : !c
    }
    scf.yield %r : !c
  }
  tt.return %all : !c
}

// A subroutine is a branch.
// CHECK-LABEL: @subroutine(
// CHECK:         ttg.local_alloc
// CHECK:         scf.for
tt.func public @subroutine(%a: !a, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!c) : i32 {
    %d = ttng.warp_group_dot %a, %b, %acc : !a * !b -> !c
    %e = tt.precise_divf %d, %d : !c
    scf.yield %e : !c
  }
  tt.return %r : !c
}

// Without branches it stays in registers, as does what the loop makes itself.
// CHECK-LABEL: @straight(
// CHECK-NOT:     ttg.local_alloc
tt.func public @straight(%a: !a, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!c) : i32 {
    %d = ttng.warp_group_dot %a, %b, %acc : !a * !b -> !c
    %e = math.exp2 %d : !c
    scf.yield %e : !c
  }
  tt.return %r : !c
}

// CHECK-LABEL: @made_in_the_loop(
// CHECK-NOT:     ttg.local_alloc
tt.func public @made_in_the_loop(%a: !a, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %carried = %a) -> (!c, !a) : i32 {
    %d = ttng.warp_group_dot %carried, %b, %acc : !a * !b -> !c
    %twice = arith.addf %a, %a : !a
    %e = ttng.warp_group_dot %twice, %b, %d : !a * !b -> !c
    %f = math.sin %e : !c
    scf.yield %f, %twice : !c, !a
  }
  tt.return %r#0 : !c
}
}

// -----

// The buffer of the right operand leaves no room.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @no_room(
// CHECK:         ttg.local_alloc
// CHECK-NOT:     ttg.local_alloc
// CHECK:         ttng.warp_group_dot %arg0,
tt.func public @no_room(%a: tensor<64x1024xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, %x: tensor<1024x64xf16, #blocked>, %zero: tensor<64x64xf32, #mma>, %n: i32) -> tensor<64x64xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %b = ttg.local_alloc %x : (tensor<1024x64xf16, #blocked>) -> !ttg.memdesc<1024x64xf16, #shared, #smem>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
    %d = ttng.warp_group_dot %a, %b, %acc : tensor<64x1024xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<1024x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
    %e = math.sin %d : tensor<64x64xf32, #mma>
    scf.yield %e : tensor<64x64xf32, #mma>
  }
  tt.return %r : tensor<64x64xf32, #mma>
}
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!a = tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
!b = !ttg.memdesc<64x64xf16, #shared, #smem>
!c = tensor<64x64xf32, #mma>
!h = tensor<64x64xf16, #mma>
!p = tensor<64x64x!tt.ptr<f16>, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Powers of a matrix: nothing is loaded, and each product waits for the one before.
// CHECK-LABEL: @powers(
// CHECK:         %[[A:.*]] = ttg.local_alloc %arg0
// CHECK-NEXT:    scf.for
// CHECK:           %[[B:.*]] = ttg.local_alloc
// CHECK:           ttng.warp_group_dot %[[A]], %[[B]],
tt.func public @powers(%a: !a, %x: !h, %zero: !c, %n: i32) -> !h {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%power = %x) -> (!h) : i32 {
    %b = ttg.local_alloc %power : (!h) -> !b
    %d = ttng.warp_group_dot %a, %b, %zero : !a * !b -> !c
    %next = arith.truncf %d : !c to !h
    scf.yield %next : !h
  }
  tt.return %r : !h
}

// Where the loop loads what it multiplies by, the left operand stays in registers; so it does where the right one is there before the loop.
// CHECK-LABEL: @loads(
// CHECK-NOT:     ttg.local_alloc %arg0
// CHECK:         ttng.warp_group_dot %arg0,
// CHECK:         ttng.warp_group_dot %arg0,
tt.func public @loads(%a: !a, %p: !p, %zero: !c, %n: i32) -> (!c, !c) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!c) : i32 {
    %x = tt.load %p : !p
    %b = ttg.local_alloc %x : (!h) -> !b
    %d = ttng.warp_group_dot %a, %b, %acc : !a * !b -> !c
    scf.yield %d : !c
  }
  %y = tt.load %p : !p
  %b = ttg.local_alloc %y : (!h) -> !b
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!c) : i32 {
    %d = ttng.warp_group_dot %a, %b, %acc : !a * !b -> !c
    scf.yield %d : !c
  }
  tt.return %r, %s : !c, !c
}
}
