; One warp stores an 8 x 32 tile of halves (64 bytes a row) into shared memory and reads it with ldmatrix.
; Chunk c of row r lies at r*64 + 16*(c ^ (r/2 mod 4)), so that neither side has bank conflicts.
@smem = internal addrspace(3) global [512 x i8] undef, align 128

define ptx_kernel void @swizzle(ptr addrspace(1) %x, ptr addrspace(1) %out) "nvvm.reqntid"="32" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  ; store side: row t/4, chunk t mod 4
  %r = lshr i32 %t, 2
  %c = and i32 %t, 3
  %h = lshr i32 %r, 1
  %m = and i32 %h, 3
  %s = xor i32 %c, %m
  %row = shl i32 %r, 6
  %col = shl i32 %s, 4
  %off = or i32 %row, %col
  %ps = getelementptr i8, ptr addrspace(3) @smem, i32 %off
  %px = getelementptr <4 x i32>, ptr addrspace(1) %x, i32 %t
  %v = load <4 x i32>, ptr addrspace(1) %px, align 16
  store <4 x i32> %v, ptr addrspace(3) %ps, align 16
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  ; read side: matrix t/8 is chunk t/8, row t mod 8
  %rr = and i32 %t, 7
  %cc = lshr i32 %t, 3
  %hh = lshr i32 %rr, 1
  %mm = and i32 %hh, 3
  %ss = xor i32 %cc, %mm
  %rrow = shl i32 %rr, 6
  %rcol = shl i32 %ss, 4
  %roff = or i32 %rrow, %rcol
  %pr = getelementptr i8, ptr addrspace(3) @smem, i32 %roff
  %f = call { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3) %pr)
  %f0 = extractvalue { i32, i32, i32, i32 } %f, 0
  %f1 = extractvalue { i32, i32, i32, i32 } %f, 1
  %f2 = extractvalue { i32, i32, i32, i32 } %f, 2
  %f3 = extractvalue { i32, i32, i32, i32 } %f, 3
  %po = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %t
  call void asm sideeffect "st.global.v4.b32 [ $4 + 0 ], { $0, $1, $2, $3 };", "r,r,r,r,l"(i32 %f0, i32 %f1, i32 %f2, i32 %f3, ptr addrspace(1) %po)
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.bar.warp.sync(i32)
declare { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3))
