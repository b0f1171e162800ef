; Builds a tensor map for x (8 rows of 16 u32), loads four rows of it from column 4 on, and stores them.
@map = internal addrspace(3) global [128 x i8] undef, align 128
@tile = internal addrspace(3) global [128 x i8] undef, align 128
@bar = internal addrspace(3) global i64 undef, align 8

define ptx_kernel void @gather4(ptr addrspace(1) %x, ptr addrspace(1) %maps, ptr addrspace(1) %out) "nvvm.reqntid"="32" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %pm = getelementptr i32, ptr addrspace(3) @map, i32 %t
  store i32 0, ptr addrspace(3) %pm
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %leader = icmp eq i32 %t, 0
  br i1 %leader, label %copy, label %meet
copy:
  %xi = ptrtoint ptr addrspace(1) %x to i64
  call void @llvm.nvvm.tensormap.replace.global.address.p3(ptr addrspace(3) @map, i64 %xi)
  call void @llvm.nvvm.tensormap.replace.rank.p3(ptr addrspace(3) @map, i32 1)
  call void @llvm.nvvm.tensormap.replace.box.dim.p3(ptr addrspace(3) @map, i32 0, i32 8)
  call void @llvm.nvvm.tensormap.replace.box.dim.p3(ptr addrspace(3) @map, i32 1, i32 1)
  call void @llvm.nvvm.tensormap.replace.global.dim.p3(ptr addrspace(3) @map, i32 0, i32 16)
  call void @llvm.nvvm.tensormap.replace.global.dim.p3(ptr addrspace(3) @map, i32 1, i32 8)
  call void @llvm.nvvm.tensormap.replace.global.stride.p3(ptr addrspace(3) @map, i32 0, i64 64)
  call void @llvm.nvvm.tensormap.replace.element.stride.p3(ptr addrspace(3) @map, i32 0, i32 1)
  call void @llvm.nvvm.tensormap.replace.element.stride.p3(ptr addrspace(3) @map, i32 1, i32 1)
  call void @llvm.nvvm.tensormap.replace.elemtype.p3(ptr addrspace(3) @map, i32 2)
  call void asm sideeffect "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 0x80;", "l,r"(ptr addrspace(1) %maps, ptr addrspace(3) @map)
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)
  call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @bar, i32 128)
  %g = addrspacecast ptr addrspace(1) %maps to ptr
  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.gather4.2d(ptr addrspace(3) @tile, ptr addrspace(3) @bar, ptr %g, i32 4, i32 6, i32 0, i32 3, i32 6, i64 0, i1 false)
  br label %meet
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %wait
wait:
  %done = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 0)
  br i1 %done, label %use, label %wait
use:
  %ps = getelementptr i32, ptr addrspace(3) @tile, i32 %t
  %v = load i32, ptr addrspace(3) %ps
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %v, ptr addrspace(1) %po
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)
declare i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3), i32)
declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3), i32)
declare void @llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.gather4.2d(ptr addrspace(3), ptr addrspace(3), ptr, i32, i32, i32, i32, i32, i64, i1)
declare void @llvm.nvvm.tensormap.replace.global.address.p3(ptr addrspace(3), i64)
declare void @llvm.nvvm.tensormap.replace.rank.p3(ptr addrspace(3), i32)
declare void @llvm.nvvm.tensormap.replace.box.dim.p3(ptr addrspace(3), i32, i32)
declare void @llvm.nvvm.tensormap.replace.global.dim.p3(ptr addrspace(3), i32, i32)
declare void @llvm.nvvm.tensormap.replace.global.stride.p3(ptr addrspace(3), i32, i64)
declare void @llvm.nvvm.tensormap.replace.element.stride.p3(ptr addrspace(3), i32, i32)
declare void @llvm.nvvm.tensormap.replace.elemtype.p3(ptr addrspace(3), i32)
