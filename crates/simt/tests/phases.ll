; Warp 0 waits on a barrier object that warp 1 arrives on, then reads what warp 1 wrote.
@smem = internal addrspace(3) global [64 x i32] undef, align 16
@bar = internal addrspace(3) global i64 undef, align 8

define ptx_kernel void @phases(ptr addrspace(1) %out) "nvvm.reqntid"="64" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp eq i32 %t, 0
  call void asm sideeffect "@$0 mbarrier.init.shared::cta.b64 [$1], 32;", "b,r"(i1 %first, ptr addrspace(3) @bar)
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %w = lshr i32 %t, 5
  %l = and i32 %t, 31
  %p = getelementptr i32, ptr addrspace(3) @smem, i32 %l
  %one = icmp eq i32 %w, 1
  br i1 %one, label %producer, label %consumer
producer:
  store i32 %t, ptr addrspace(3) %p, align 4
  call void asm sideeffect "mbarrier.arrive.shared::cta.b64 _, [$0];", "r"(ptr addrspace(3) @bar)
  ret void
consumer:
  call void asm sideeffect "{\0A.reg .pred done;\0Await:\0Ambarrier.try_wait.parity.shared::cta.b64 done, [$0], 0;\0A@!done bra.uni wait;\0A}", "r"(ptr addrspace(3) @bar)
  %v = load i32, ptr addrspace(3) %p, align 4
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %l
  store i32 %v, ptr addrspace(1) %po, align 4
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
