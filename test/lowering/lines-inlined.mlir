// RUN: %ttc %s --target cuda:90 --emit ptx | FileCheck %s --check-prefix=PTX
// RUN: %ttc %s --target cuda:90 --emit ptx --no-line-info | FileCheck %s --check-prefix=NONE
// RUN: %ttc %s --target cuda:90 --emit llvmir -o %t.ll && FileCheck %s --check-prefix=LLVM --input-file %t.ll && FileCheck %s --check-prefix=INLINED --input-file %t.ll
// RUN: %ttc %s --target hip:gfx942 --emit llvmir | FileCheck %s --check-prefix=AMD

// Places in other files keep them, and what was inlined says at which place. ptxas wants to know that place before: where no
// directive is about it, one comes first.
// PTX: .loc [[KERNEL:[0-9]+]] 5 1{{$}}
// PTX: .loc [[LIBRARY:[0-9]+]] 14 3{{$}}
// PTX: .loc [[KERNEL]] 7 2{{$}}
// PTX-NEXT: .loc [[LIBRARY]] 16 7, function_name [[NAME:\$[A-Za-z_0-9]+]], inlined_at [[KERNEL]] 7 2{{$}}
// PTX: .loc [[KERNEL]] 8 2{{$}}
// PTX-NEXT: .loc [[LIBRARY]] 19 7, function_name [[NAME]], inlined_at [[KERNEL]] 8 2{{$}}
// PTX-NEXT: .loc [[LIBRARY]] 18 7, function_name [[NAME]], inlined_at [[LIBRARY]] 19 7{{$}}
// Nobody knows what was inlined here, or where.
// PTX: .loc [[KERNEL]] 9 2{{$}}
// PTX: .loc [[LIBRARY]] 20 7{{$}}
// A file in which nothing is but a call.
// PTX: .loc [[CALLS:[0-9]+]] 30 4{{$}}
// PTX-NEXT: .loc [[LIBRARY]] 21 7, function_name [[NAME]], inlined_at [[CALLS]] 30 4{{$}}
// PTX-DAG: .file [[KERNEL]] "/code/kernel.py"
// PTX-DAG: .file [[LIBRARY]] "/code/library.py"
// PTX-DAG: .file [[CALLS]] "/code/'calls'.py"
// Locations do not say what was inlined; the function that it is in is `k`.
// PTX: .section .debug_str
// PTX-NEXT: {
// PTX-NEXT: [[NAME]]:
// PTX-NEXT: .b8 107
// PTX-NEXT: .b8 0
// PTX-NEXT: }

// NONE-NOT: .loc
// NONE: .entry k(
// NONE-NOT: .loc
// NONE-NOT: .file

// What was inlined says where, also where that was inlined itself.
// INLINED: [[FUNCTION:![0-9]+]] = distinct !DISubprogram(name: "k"
// INLINED: [[BLOCK:![0-9]+]] = distinct !DILexicalBlockFile(scope: [[FUNCTION]], file: [[FILE:![0-9]+]]
// INLINED: [[FILE]] = !DIFile(filename: "library.py", directory: "/code")
// INLINED: !DILocation(line: 16, column: 7, scope: [[BLOCK]], inlinedAt: [[AT:![0-9]+]])
// INLINED: [[AT]] = !DILocation(line: 7, column: 2, scope: [[FUNCTION]])
// INLINED: !DILocation(line: 18, column: 7, scope: [[BLOCK]], inlinedAt: [[MIDDLE:![0-9]+]])
// INLINED: [[MIDDLE]] = !DILocation(line: 19, column: 7, scope: [[BLOCK]], inlinedAt: [[OUTER:![0-9]+]])
// INLINED: [[OUTER]] = !DILocation(line: 8, column: 2, scope: [[FUNCTION]])

// An assertion says where it is.
// LLVM-DAG: @[[TEXT:[a-z_0-9]+]] = {{.*}} c"too large\00"
// LLVM-DAG: @[[FILE:[a-z_0-9]+]] = {{.*}} c"/code/library.py\00"
// LLVM-DAG: @[[FUNCTION:[a-z_0-9]+]] = {{.*}} c"k\00"
// LLVM: call void @__assertfail(ptr {{[^,]*}}@[[TEXT]] {{[^,]*}}, ptr {{[^,]*}}@[[FILE]] {{[^,]*}}, i32 22, ptr {{[^,]*}}@[[FUNCTION]] {{[^,]*}}, i64 1)
// AMD: c"/code/library.py:22: k: Assertion `too large' failed.\0A\00"

#kernel = loc("/code/kernel.py":7:2)
#other = loc("/code/kernel.py":8:2)
tt.func public @k(%p: !tt.ptr<i32> loc(unknown)) {
  %a = tt.load %p {isVolatile = true} : !tt.ptr<i32> loc("/code/kernel.py":5:1)
  %b = tt.load %p {isVolatile = true} : !tt.ptr<i32> loc("/code/library.py":14:3)
  %c = tt.load %p {isVolatile = true} : !tt.ptr<i32> loc(callsite("named"("/code/library.py":16:7) at #kernel))
  %d = tt.load %p {isVolatile = true} : !tt.ptr<i32> loc(callsite("/code/library.py":18:7 at callsite("/code/library.py":19:7 at "named"(#other))))
  %e = tt.load %p {isVolatile = true} : !tt.ptr<i32> loc(callsite(unknown at "/code/kernel.py":9:2))
  %f = tt.load %p {isVolatile = true} : !tt.ptr<i32> loc(callsite("/code/library.py":20:7 at unknown))
  %g = tt.load %p {isVolatile = true} : !tt.ptr<i32> loc(callsite("/code/library.py":21:7 at "/code/\"calls\".py":30:4))
  %0 = arith.addi %a, %b : i32 loc(unknown)
  %1 = arith.addi %c, %d : i32 loc(unknown)
  %2 = arith.addi %e, %f : i32 loc(unknown)
  %3 = arith.addi %0, %1 : i32 loc(unknown)
  %6 = arith.addi %3, %g : i32 loc(unknown)
  %4 = arith.addi %2, %6 : i32 loc(unknown)
  %5 = arith.cmpi sgt, %4, %2 : i32 loc(unknown)
  tt.assert %5, "too large" : i1 loc(callsite("/code/library.py":22:1 at #kernel))
  tt.return loc(unknown)
} loc("/code/kernel.py":3:1)
