; Two warps write shared memory, meet, and read what the other one wrote.
@smem = internal addrspace(3) global [64 x float] undef, align 16

define ptx_kernel void @reverse(ptr addrspace(1) %x, ptr addrspace(1) %out, i32 %n) "nvvm.reqntid"="64" !dbg !3 {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %px = getelementptr float, ptr addrspace(1) %x, i32 %t
  %in = icmp slt i32 %t, %n
  %v = call i32 asm sideeffect "mov.u32 $0, 0x0;\0A\09@$2 ld.global.b32 { $0 }, [ $1 + 0 ];", "=r,l,b"(ptr addrspace(1) %px, i1 %in), !dbg !6
  %ps = getelementptr i32, ptr addrspace(3) @smem, i32 %t
  store i32 %v, ptr addrspace(3) %ps, align 4, !dbg !7
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0), !dbg !8
  %r = sub i32 63, %t
  %pr = getelementptr i32, ptr addrspace(3) @smem, i32 %r
  %w = load i32, ptr addrspace(3) %pr, align 4, !dbg !9
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %w, ptr addrspace(1) %po, align 4, !dbg !10
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "reverse.ttir", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "reverse", file: !1, line: 1, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 11, scope: !3)
!7 = !DILocation(line: 12, scope: !3)
!8 = !DILocation(line: 13, scope: !3)
!9 = !DILocation(line: 14, scope: !3)
!10 = !DILocation(line: 15, scope: !3)
