// What the parsers and verifiers of attributes and types refuse.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// ttng.blockRepOrder
// expected-error @below {{expected an order of repetition, one of: mnThenK, kThenMn}}
module attributes {x.y = #ttng.blockRepOrder<x>} {}

// -----

// ttng.cache_policy
// expected-error @below {{a cache modifier cannot be combined with an L1 eviction priority}}
module attributes {x.y = #ttng.cache_policy<cache_modifier = cg, l1 = evict_last>} {}

// -----

// ttng.cache_policy
// expected-error @below {{expected an eviction priority, one of: none, evict_normal, evict_unchanged, evict_first, evict_last, no_allocate}}
module attributes {x.y = #ttng.cache_policy<l1 = foo>} {}

// -----

// ttng.cache_policy
// expected-error @below {{expected a cache modifier, one of: none, ca, cg, wb, cs, wt, cv}}
module attributes {x.y = #ttng.cache_policy<cache_modifier = foo>} {}

// -----

// ttng.cache_policy
// expected-error @below {{duplicate or unknown struct parameter name: foo}}
module attributes {x.y = #ttng.cache_policy<foo = 1>} {}

// -----

// ttng.cache_policy
// expected-error @below {{an L2 policy requires l2_primary, l2_secondary and l2_fraction}}
module attributes {x.y = #ttng.cache_policy<l2_primary = evict_first>} {}

// -----

// ttng.cache_policy
// expected-error @below {{l2_secondary and l2_fraction require l2_primary}}
module attributes {x.y = #ttng.cache_policy<l2_fraction = 0.5 : f32>} {}

// -----

// ttng.cache_policy
// expected-error @below {{invalid L2 secondary eviction priority 'evict_last': only evict_first and evict_unchanged are}}
module attributes {x.y = #ttng.cache_policy<l2_primary = evict_last, l2_secondary = evict_last, l2_fraction = 0.5 : f32>} {}

// -----

// ttng.cache_policy
// expected-error @below {{invalid L2 primary eviction priority 'no_allocate'}}
module attributes {x.y = #ttng.cache_policy<l2_primary = no_allocate, l2_secondary = evict_last, l2_fraction = 0.5 : f32>} {}

// -----

// ttng.cache_policy
// expected-error @below {{L2 fraction must be a finite f32 in (0, 1], got 5.000000e-01 : f64}}
module attributes {x.y = #ttng.cache_policy<l2_primary = evict_first, l2_secondary = evict_first, l2_fraction = 0.5>} {}

// -----

// ttng.cache_policy
// expected-error @below {{expected a floating-point attribute}}
module attributes {x.y = #ttng.cache_policy<l2_primary = evict_first, l2_secondary = evict_first, l2_fraction = "x">} {}

// -----

// ttng.cache_policy
// expected-error @below {{L2 prefetch size must be 64, 128, or 256 as an i32, got 128 : i64}}
module attributes {x.y = #ttng.cache_policy<l2_prefetch_size = 128>} {}

// -----

// ttng.cache_policy
// expected-error @below {{expected an integer attribute}}
module attributes {x.y = #ttng.cache_policy<l2_prefetch_size = "x">} {}

// -----

// ttng.redOp
// expected-error @below {{expected a reduction, one of: min, max}}
module attributes {x.y = #ttng.redOp<>} {}

// -----

// ttng.tensor_memory_encoding
// expected-error @below {{blockN must be a power of 2 but got 3}}
module attributes {x.y = #ttng.tensor_memory_encoding<blockM = 128, blockN = 3, colStride = 1>} {}

// -----

// ttng.tensor_memory_encoding
// expected-error @below {{blockM must be 64 or 128 but got 32}}
module attributes {x.y = #ttng.tensor_memory_encoding<blockM = 32, blockN = 64, colStride = 1>} {}

// -----

// ttng.tensor_memory_encoding
// expected-error @below {{blockN must be at most 512, the columns of tensor memory, but got 1024}}
module attributes {x.y = #ttng.tensor_memory_encoding<blockM = 128, blockN = 1024, colStride = 1>} {}

// -----

// ttng.tensor_memory_encoding
// expected-error @below {{colStride must be 1, 2, or 4 but got 3}}
module attributes {x.y = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 3>} {}

// -----

// ttng.tensor_memory_encoding
// expected-error @below {{-1 is not an unsigned number of 32 bits}}
module attributes {x.y = #ttng.tensor_memory_encoding<blockM = 128, blockN = -1, colStride = 1>} {}

// -----

// ttng.tensor_memory_encoding
// expected-error @below {{CGALayout must hold unsigned numbers of 32 bits, got -1}}
module attributes {x.y = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CGALayout = [[-1, 0]]>} {}

// -----

// ttng.tensor_memory_encoding
// expected-error @below {{twoCTAs needs a CGALayout whose first basis is [1, 0], the rows split among the two blocks, but got []}}
module attributes {x.y = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, twoCTAs = true>} {}

// -----

// ttng.tensor_memory_encoding
// expected-error @below {{fp4Padded needs colStride = 1 but got 2}}
module attributes {x.y = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 2, fp4Padded = true>} {}

// -----

// ttng.tensor_memory_encoding
// expected-error @below {{struct is missing required parameter: blockM}}
module attributes {x.y = #ttng.tensor_memory_encoding<>} {}

// -----

// ttng.tensor_memory_scales_encoding
// expected-error @below {{CGALayout = [[2, 0]] must reach every block of the tensor once: besides copies, bases are distinct powers of two, without gaps}}
module attributes {x.y = #ttng.tensor_memory_scales_encoding<CGALayout = [[2, 0]]>} {}

// -----

// ttng.tensor_memory_scales_encoding
// expected-error @below {{CGALayout basis [1] has 1 coordinates, not 2}}
module attributes {x.y = #ttng.tensor_memory_scales_encoding<CGALayout = [[1]]>} {}

// -----

// ttng.tensordesc_im2col
// expected-error @below {{the block of an im2col descriptor must have rank 2, got rank 0}}
module attributes {x.y = !ttng.tensordesc_im2col<f16>} {}
