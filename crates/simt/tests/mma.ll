; One warp: out (16 x 8, f32) = a (16 x 16, f16) * b (16 x 8, f16, given by columns).
define ptx_kernel void @mma(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %out) "nvvm.reqntid"="32" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %g = lshr i32 %t, 2
  %q = and i32 %t, 3
  ; words of two halves: row g, words q and q + 4; row g + 8 the same
  %g8 = shl i32 %g, 3
  %w0 = add i32 %g8, %q
  %w1 = add i32 %w0, 64
  %w2 = add i32 %w0, 4
  %w3 = add i32 %w0, 68
  %p0 = getelementptr i32, ptr addrspace(1) %a, i32 %w0
  %p1 = getelementptr i32, ptr addrspace(1) %a, i32 %w1
  %p2 = getelementptr i32, ptr addrspace(1) %a, i32 %w2
  %p3 = getelementptr i32, ptr addrspace(1) %a, i32 %w3
  %a0 = load i32, ptr addrspace(1) %p0
  %a1 = load i32, ptr addrspace(1) %p1
  %a2 = load i32, ptr addrspace(1) %p2
  %a3 = load i32, ptr addrspace(1) %p3
  %p4 = getelementptr i32, ptr addrspace(1) %b, i32 %w0
  %p5 = getelementptr i32, ptr addrspace(1) %b, i32 %w2
  %b0 = load i32, ptr addrspace(1) %p4
  %b1 = load i32, ptr addrspace(1) %p5
  %d = call { float, float, float, float } asm sideeffect "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { $0, $1, $2, $3 }, { $8, $9, $10, $11 }, { $12, $13 }, { $4, $5, $6, $7 };", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,r,r"(float 0.0, float 0.0, float 0.0, float 0.0, i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1)
  %d0 = extractvalue { float, float, float, float } %d, 0
  %d1 = extractvalue { float, float, float, float } %d, 1
  %d2 = extractvalue { float, float, float, float } %d, 2
  %d3 = extractvalue { float, float, float, float } %d, 3
  %q2 = shl i32 %q, 1
  %o0 = add i32 %g8, %q2
  %o2 = add i32 %o0, 64
  %po0 = getelementptr float, ptr addrspace(1) %out, i32 %o0
  %po1 = getelementptr float, ptr addrspace(1) %po0, i32 1
  %po2 = getelementptr float, ptr addrspace(1) %out, i32 %o2
  %po3 = getelementptr float, ptr addrspace(1) %po2, i32 1
  store float %d0, ptr addrspace(1) %po0
  store float %d1, ptr addrspace(1) %po1
  store float %d2, ptr addrspace(1) %po2
  store float %d3, ptr addrspace(1) %po3
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
