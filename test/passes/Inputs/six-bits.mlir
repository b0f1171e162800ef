tt.func @six_bits(%a: tensor<64x64xi8>, %sa: tensor<64x2xi8>, %b: tensor<64x64xf8E5M2>, %sb: tensor<64x2xi8>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e2m3 rhs = e5m2 {fastMath = false} : tensor<64x64xi8>, tensor<64x2xi8> * tensor<64x64xf8E5M2>, tensor<64x2xi8> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}
