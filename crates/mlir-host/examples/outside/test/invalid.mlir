// RUN: poly-opt %s -split-input-file -verify-diagnostics --poly-evaluate

// expected-error@+1 {{the bound of a polynomial is 1 to 64, not 65}}
func.func private @type(!poly.poly<65>)

// -----

func.func @constant() {
  // expected-error@+1 {{has 3 coefficients, and its type 2}}
  %p = poly.constant [1, 2, 3] : !poly.poly<2>
  return
}

// -----

func.func @unknown(%p: !poly.poly<4>, %x: i32) -> i32 {
  // expected-error@+1 {{evaluates a polynomial that is not known}}
  %y = poly.eval %p at %x : !poly.poly<4>
  return %y : i32
}
