; Each thread copies 16 bytes asynchronously into shared memory, waits, meets the others, and stores the
; neighbour's. Two warps.
@smem = internal addrspace(3) global [1024 x i8] undef, align 128

define ptx_kernel void @copies(ptr addrspace(1) %x, ptr addrspace(1) %out) "nvvm.reqntid"="64" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %o = shl i32 %t, 4
  %ps = getelementptr i8, ptr addrspace(3) @smem, i32 %o
  %px = getelementptr i8, ptr addrspace(1) %x, i32 %o
  call void asm sideeffect "cp.async.cg.shared.global [ $0 + 0 ], [ $1 + 0 ], 0x10;", "r,l"(ptr addrspace(3) %ps, ptr addrspace(1) %px)
  call void @llvm.nvvm.cp.async.commit.group()
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %n = xor i32 %o, 512
  %pr = getelementptr i8, ptr addrspace(3) @smem, i32 %n
  %v = load <4 x i32>, ptr addrspace(3) %pr, align 16
  %po = getelementptr i8, ptr addrspace(1) %out, i32 %o
  store <4 x i32> %v, ptr addrspace(1) %po, align 16
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
