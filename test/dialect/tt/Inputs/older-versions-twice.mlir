tt.func @f(%p: !tt.ptr<f32>) {
  %a = tt.load %p cacheModifier = ca cacheModifier = cg : !tt.ptr<f32>
  tt.return
}
