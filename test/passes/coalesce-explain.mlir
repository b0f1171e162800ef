// RUN: %ttopt %s --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce=explain=true -verify-diagnostics -o /dev/null

tt.func @f(%o: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %i: tensor<1024xi32>, %n: i32 {tt.divisibility = 4 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  // expected-remark@+2 {{choice of vector of this access: 8 neighbours in each thread: 20 cycles (issue 4.0, lines and sectors 16) | 4 neighbours in each thread: 24}}
  // expected-remark@+1 {{each thread accesses 8 elements of 16 bits at once (128 bits): along dimension 0, 1024 elements are contiguous, their address is a multiple of 16 bytes; this is the widest access there is}}
  %x = tt.load %q : tensor<1024x!tt.ptr<f16>>
  %g = tt.addptr %b, %i : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  // expected-remark@+1 {{each thread accesses 1 element of 16 bits at once (16 bits): along dimension 0, no elements are known to be contiguous, their address is a multiple of 2 bytes; contiguity is the limit}}
  %y = tt.load %g : tensor<1024x!tt.ptr<f16>>
  %d = tt.splat %o : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %e = tt.addptr %d, %r : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %s = tt.splat %n : i32 -> tensor<1024xi32>
  %m = arith.cmpi slt, %r, %s : tensor<1024xi32>
  // expected-remark@+2 {{choice of vector of this access: 4 neighbours in each thread}}
  // expected-remark@+1 {{and 4 share one mask value; the mask is the limit}}
  %z = tt.load %e, %m : tensor<1024x!tt.ptr<f16>>
  tt.return
}
