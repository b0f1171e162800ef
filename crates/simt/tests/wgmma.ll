; One warp group: out (64 x 8, f32) = a (64 x 16, f16) * b (8 x 16, f16, K-major). Both operands lie in shared
; memory without swizzle as 8 x 16-byte core matrices: LBO 128 bytes along k, SBO 256 bytes along rows.
@smem = internal addrspace(3) global [2304 x i8] undef, align 1024

define ptx_kernel void @wgmma(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %out) "nvvm.reqntid"="128" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  ; thread t stores 16 bytes: row t/2, chunk t mod 2
  %r = lshr i32 %t, 1
  %c = and i32 %t, 1
  %rg = lshr i32 %r, 3
  %rl = and i32 %r, 7
  %x0 = shl i32 %rg, 8
  %x1 = shl i32 %rl, 4
  %x2 = shl i32 %c, 7
  %x3 = or i32 %x0, %x1
  %off = or i32 %x3, %x2
  %pa = getelementptr <4 x i32>, ptr addrspace(1) %a, i32 %t
  %va = load <4 x i32>, ptr addrspace(1) %pa, align 16
  %sa = getelementptr i8, ptr addrspace(3) @smem, i32 %off
  store <4 x i32> %va, ptr addrspace(3) %sa, align 16
  %isb = icmp ult i32 %t, 16
  br i1 %isb, label %loadb, label %go
loadb:
  %pb = getelementptr <4 x i32>, ptr addrspace(1) %b, i32 %t
  %vb = load <4 x i32>, ptr addrspace(1) %pb, align 16
  %sb0 = getelementptr i8, ptr addrspace(3) @smem, i32 2048
  %sb = getelementptr i8, ptr addrspace(3) %sb0, i32 %off
  store <4 x i32> %vb, ptr addrspace(3) %sb, align 16
  br label %go
go:
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %base = ptrtoint ptr addrspace(3) @smem to i32
  %lo = lshr i32 %base, 4
  %lo64 = zext i32 %lo to i64
  %da = or i64 %lo64, 68720001024
  %db = add i64 %da, 128
  call void @llvm.nvvm.wgmma.fence.sync.aligned()
  %d = call { float, float, float, float } asm sideeffect "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0,$1,$2,$3}, $4, $5, 0, 1, 1, 0, 0;", "=f,=f,=f,=f,l,l"(i64 %da, i64 %db)
  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()
  %e0 = extractvalue { float, float, float, float } %d, 0
  %e1 = extractvalue { float, float, float, float } %d, 1
  %e2 = extractvalue { float, float, float, float } %d, 2
  %e3 = extractvalue { float, float, float, float } %d, 3
  %w = call { float, float, float, float } asm sideeffect "// wait for regs: $0,$1,$2,$3,$4,$5,$6,$7\0A\09wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,0,1,2,3"(float %e0, float %e1, float %e2, float %e3)
  %d0 = extractvalue { float, float, float, float } %w, 0
  %d1 = extractvalue { float, float, float, float } %w, 1
  %d2 = extractvalue { float, float, float, float } %w, 2
  %d3 = extractvalue { float, float, float, float } %w, 3
  %g = lshr i32 %t, 2
  %gw = lshr i32 %t, 5
  %g7 = and i32 %g, 7
  %w16 = shl i32 %gw, 4
  %row = or i32 %w16, %g7
  %q = and i32 %t, 3
  %row8 = shl i32 %row, 3
  %q2 = shl i32 %q, 1
  %o0 = or i32 %row8, %q2
  %po0 = getelementptr float, ptr addrspace(1) %out, i32 %o0
  %po1 = getelementptr float, ptr addrspace(1) %po0, i32 1
  %po2 = getelementptr float, ptr addrspace(1) %po0, i32 64
  %po3 = getelementptr float, ptr addrspace(1) %po0, i32 65
  store float %d0, ptr addrspace(1) %po0
  store float %d1, ptr addrspace(1) %po1
  store float %d2, ptr addrspace(1) %po2
  store float %d3, ptr addrspace(1) %po3
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.fence.proxy.async.shared_cta()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.wgmma.fence.sync.aligned()
declare void @llvm.nvvm.wgmma.commit_group.sync.aligned()
