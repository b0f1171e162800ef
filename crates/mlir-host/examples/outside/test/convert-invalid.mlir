// RUN: poly-opt %s -split-input-file -verify-diagnostics --poly-to-arith

// expected-error@+1 {{argument 1 has attributes, and becomes 2 arguments}}
func.func private @attributes(i1, !poly.poly<2> {llvm.noundef})

// -----

func.func @left(%b: i1, %p: !poly.poly<2>, %r: !poly.poly<2>) -> !poly.poly<2> {
  // expected-error@+1 {{failed to legalize operation 'arith.select'}}
  %q = arith.select %b, %p, %r : !poly.poly<2>
  return %q : !poly.poly<2>
}
