#map = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1) -> (d1, d0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
module attributes {plan.target = "cuda:sm_90"} {
  func.func @t(%arg0: tensor<4x1000x768xf32>, %arg1: tensor<1000xf32>, %arg2: tensor<4x768x1000xf32>) -> tensor<4x768x1000xf32> {
    %0 = nn.cluster kernel (%arg3 = %arg0, %arg4 = %arg1, %arg5 = %arg2) : (tensor<4x1000x768xf32>, tensor<1000xf32>, tensor<4x768x1000xf32>) -> tensor<4x768x1000xf32> attributes {lowering = #plan.kernel<"k0_relu", extent = 0, grain = 1, in_place = [2, 0], launch = [3072, 256]>} {
      %1 = nn.transpose %arg3 [0, 2, 1] : tensor<4x1000x768xf32> -> tensor<4x768x1000xf32>
      %2 = nn.broadcast %arg4 [2] : tensor<1000xf32> -> tensor<4x768x1000xf32>
      %3 = nn.add %1, %2 : tensor<4x768x1000xf32>
      %4 = nn.add %3, %arg5 : tensor<4x768x1000xf32>
      %5 = nn.relu %4 : tensor<4x768x1000xf32>
      nn.yield %5 : tensor<4x768x1000xf32>
    }
    return %0 : tensor<4x768x1000xf32>
  }
  func.func @t2(%arg0: tensor<64x56x56x128xf16>) -> tensor<64x128x56x56xf16> {
    %0 = nn.cluster kernel (%arg1 = %arg0) : (tensor<64x56x56x128xf16>) -> tensor<64x128x56x56xf16> attributes {lowering = #plan.kernel<"k1_transpose", extent = 0, grain = 1, launch = [6272, 256]>} {
      %1 = nn.transpose %arg1 [0, 3, 1, 2] : tensor<64x56x56x128xf16> -> tensor<64x128x56x56xf16>
      nn.yield %1 : tensor<64x128x56x56xf16>
    }
    return %0 : tensor<64x128x56x56xf16>
  }
  func.func @t3(%arg0: tensor<1000x1000xi1>) -> (tensor<1000x1000xi1>, tensor<1000x1000xi1>) {
    %0:2 = nn.cluster kernel (%arg1 = %arg0) : (tensor<1000x1000xi1>) -> (tensor<1000x1000xi1>, tensor<1000x1000xi1>) attributes {lowering = #plan.kernel<"k2_not", extent = 0, grain = 1, launch = [256, 256]>} {
      %1 = nn.transpose %arg1 [1, 0] : tensor<1000x1000xi1> -> tensor<1000x1000xi1>
      %2 = nn.not %1 : tensor<1000x1000xi1>
      nn.yield %1, %2 : tensor<1000x1000xi1>, tensor<1000x1000xi1>
    }
    return %0#0, %0#1 : tensor<1000x1000xi1>, tensor<1000x1000xi1>
  }
  module @kernels {
    func.func @k0_relu(%arg0: tensor<4x1000x768xf32>, %arg1: tensor<1000xf32>, %arg2: tensor<4x768x1000xf32>, %arg3: tensor<4x768x1000xf32>) -> tensor<4x768x1000xf32> attributes {nn.grid = {team = 1 : i64, threads = 256 : i64, tile = array<i64: 1, 32, 32>, width = 1 : i64}, nn.schedule = {grain = 32768 : i64, in_place = array<i64: 2, 0>, rows = [array<i64: 0, 1, 2>], tiles = array<i64: 1, 1, 1>}} {
      %0 = linalg.generic {indexing_maps = [#map, #map1, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg1, %arg2 : tensor<4x1000x768xf32>, tensor<1000xf32>, tensor<4x768x1000xf32>) outs(%arg3 : tensor<4x768x1000xf32>) {
      ^bb0(%in: f32, %in_0: f32, %in_1: f32, %out: f32):
        %1 = arith.addf %in, %in_0 : f32
        %2 = arith.addf %1, %in_1 : f32
        %cst = arith.constant 0.000000e+00 : f32
        %3 = arith.maximumf %2, %cst : f32
        linalg.yield %3 : f32
      } -> tensor<4x768x1000xf32>
      return %0 : tensor<4x768x1000xf32>
    }
    func.func @k1_transpose(%arg0: tensor<64x56x56x128xf16>, %arg1: tensor<64x128x56x56xf16>) -> tensor<64x128x56x56xf16> attributes {nn.grid = {team = 1 : i64, threads = 256 : i64, tile = array<i64: 1, 64, 64>, width = 1 : i64}, nn.schedule = {grain = 32768 : i64, in_place = array<i64>, rows = [array<i64: 0, 1, 2>], tiles = array<i64: 1, 1, 1>}} {
      %collapsed = tensor.collapse_shape %arg0 [[0], [1, 2], [3]] : tensor<64x56x56x128xf16> into tensor<64x3136x128xf16>
      %collapsed_0 = tensor.collapse_shape %arg1 [[0], [1], [2, 3]] : tensor<64x128x56x56xf16> into tensor<64x128x3136xf16>
      %0 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed : tensor<64x3136x128xf16>) outs(%collapsed_0 : tensor<64x128x3136xf16>) {
      ^bb0(%in: f16, %out: f16):
        linalg.yield %in : f16
      } -> tensor<64x128x3136xf16>
      %expanded = tensor.expand_shape %0 [[0], [1], [2, 3]] output_shape [64, 128, 56, 56] : tensor<64x128x3136xf16> into tensor<64x128x56x56xf16>
      return %expanded : tensor<64x128x56x56xf16>
    }
    func.func @k2_not(%arg0: tensor<1000x1000xi8>, %arg1: tensor<1000x1000xi8>, %arg2: tensor<1000x1000xi8>) -> (tensor<1000x1000xi8>, tensor<1000x1000xi8>) attributes {nn.grid = {team = 1 : i64, threads = 256 : i64, tile = array<i64: 64, 64>, width = 1 : i64}, nn.schedule = {grain = 16384 : i64, in_place = array<i64>, rows = [array<i64: 0, 1>, array<i64: 0, 1>], tiles = array<i64: 1, 1>}} {
      %0 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<1000x1000xi8>) outs(%arg1 : tensor<1000x1000xi8>) {
      ^bb0(%in: i8, %out: i8):
        %c0_i8 = arith.constant 0 : i8
        %2 = arith.cmpi ne, %in, %c0_i8 : i8
        %3 = arith.extui %2 : i1 to i8
        linalg.yield %3 : i8
      } -> tensor<1000x1000xi8>
      %1 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<1000x1000xi8>) outs(%arg2 : tensor<1000x1000xi8>) {
      ^bb0(%in: i8, %out: i8):
        %c0_i8 = arith.constant 0 : i8
        %2 = arith.cmpi ne, %in, %c0_i8 : i8
        %true = arith.constant true
        %3 = arith.xori %2, %true : i1
        %4 = arith.extui %3 : i1 to i8
        linalg.yield %4 : i8
      } -> tensor<1000x1000xi8>
      return %0, %1 : tensor<1000x1000xi8>, tensor<1000x1000xi8>
    }
  }
}

