; Two programs of one warp exchange what they stored in shared memory through `shared::cluster` addresses.
@smem = internal addrspace(3) global [128 x i8] undef, align 16

define ptx_kernel void @exchange(ptr addrspace(1) %out) "nvvm.reqntid"="32" "nvvm.cluster_dim"="2,1,1" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %r = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
  %base = shl i32 %r, 5
  %mine = or i32 %base, %t
  %ps = getelementptr i32, ptr addrspace(3) @smem, i32 %t
  store i32 %mine, ptr addrspace(3) %ps
  call void @llvm.nvvm.barrier.cluster.arrive.aligned()
  call void @llvm.nvvm.barrier.cluster.wait.aligned()
  %other = xor i32 %r, 1
  %pr = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %ps, i32 %other)
  %v = load i32, ptr addrspace(7) %pr
  call void @llvm.nvvm.barrier.cluster.arrive.aligned()
  call void @llvm.nvvm.barrier.cluster.wait.aligned()
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %mine
  store i32 %v, ptr addrspace(1) %po
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
declare void @llvm.nvvm.barrier.cluster.arrive.aligned()
declare void @llvm.nvvm.barrier.cluster.wait.aligned()
declare ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3), i32)
