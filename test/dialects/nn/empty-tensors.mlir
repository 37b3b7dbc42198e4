// RUN: partita-opt %s --canonicalize -split-input-file | FileCheck %s

// What has no elements is a constant, of whatever op and from whatever operands.

// CHECK-LABEL: func.func @results
// CHECK-DAG: %[[A:.*]] = nn.constant dense<> : tensor<0x8xf32>
// CHECK-DAG: %[[B:.*]] = nn.constant dense<> : tensor<4x0xi64>
// CHECK-DAG: %[[C:.*]] = nn.constant dense<> : tensor<0x5xf32>
// CHECK-NOT: nn.
// CHECK:     return %[[A]], %[[A]], %[[C]], %[[B]], %[[A]]
func.func @results(%x: tensor<0x8xf32>, %w: tensor<8x5xf32>, %y: tensor<4x100xf32>, %n: tensor<0x8x3xf32>)
    -> (tensor<0x8xf32>, tensor<0x8xf32>, tensor<0x5xf32>, tensor<4x0xi64>, tensor<0x8xf32>) {
  %0 = nn.exp %x : tensor<0x8xf32>
  %1 = nn.softmax %x dim 1 : tensor<0x8xf32>
  %2 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<0x8xf32>, tensor<8x5xf32> -> tensor<0x5xf32>
  %3 = nn.top_k largest %y : tensor<4x100xf32> -> tensor<4x0xi64>
  %4 = nn.reduce sum %n [2] : tensor<0x8x3xf32> -> tensor<0x8xf32>
  return %0, %1, %2, %3, %4 : tensor<0x8xf32>, tensor<0x8xf32>, tensor<0x5xf32>, tensor<4x0xi64>, tensor<0x8xf32>
}

// -----

// There are no indices to clamp, and no elements to choose from.

// CHECK-LABEL: func.func @gather
// CHECK: %[[A:.*]] = nn.constant dense<> : tensor<3x0xf32>
// CHECK: return %[[A]], %[[A]]
func.func @gather(%x: tensor<0x0xf32>) -> (tensor<3x0xf32>, tensor<3x0xf32>) {
  %i = nn.constant dense<[0, 1, 2]> : tensor<3xi64>
  %j = nn.constant dense<> : tensor<3x0xi64>
  %y = nn.constant dense<> : tensor<3x0xf32>
  %0 = nn.gather %x, %i dim 0 : tensor<0x0xf32>, tensor<3xi64> -> tensor<3x0xf32>
  %1 = nn.gather_elements %y, %j dim 1 : tensor<3x0xf32>, tensor<3x0xi64> -> tensor<3x0xf32>
  return %0, %1 : tensor<3x0xf32>, tensor<3x0xf32>
}

// -----

// Combinations of nothing are neutral elements.

// CHECK-LABEL: func.func @combine
// CHECK-DAG: %[[SUM:.*]] = nn.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-DAG: %[[PROD:.*]] = nn.constant dense<1> : tensor<4xi32>
// CHECK-DAG: %[[MAX:.*]] = nn.constant dense<0xFF800000> : tensor<4xf32>
// CHECK-DAG: %[[MIN:.*]] = nn.constant dense<255> : tensor<4xui8>
// CHECK-DAG: %[[LOWEST:.*]] = nn.constant dense<-2147483648> : tensor<4xi32>
// CHECK:     return %[[SUM]], %[[PROD]], %[[MAX]], %[[MIN]], %[[LOWEST]]
func.func @combine(%x: tensor<4x0xf32>, %i: tensor<4x0xi32>, %u: tensor<4x0xui8>)
    -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xui8>, tensor<4xi32>) {
  %0 = nn.reduce sum %x [1] : tensor<4x0xf32> -> tensor<4xf32>
  %1 = nn.reduce prod %i [1] : tensor<4x0xi32> -> tensor<4xi32>
  %2 = nn.reduce max %x [1] : tensor<4x0xf32> -> tensor<4xf32>
  %3 = nn.reduce min %u [1] : tensor<4x0xui8> -> tensor<4xui8>
  %4 = nn.reduce max %i [1] : tensor<4x0xi32> -> tensor<4xi32>
  return %0, %1, %2, %3, %4 : tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xui8>, tensor<4xi32>
}

// -----

// CHECK-LABEL: func.func @products
// CHECK-DAG: %[[DOT:.*]] = nn.constant dense<0.000000e+00> : tensor<3x5xf32>
// CHECK-DAG: %[[CONV:.*]] = nn.constant dense<0> : tensor<1x4x8x8xi32>
// CHECK-DAG: %[[ATTENTION:.*]] = nn.constant dense<0.000000e+00> : tensor<1x2x8x16xf32>
// CHECK:     return %[[DOT]], %[[CONV]], %[[ATTENTION]]
func.func @products(%x: tensor<3x0xf32>, %w: tensor<0x5xf32>, %image: tensor<1x0x8x8xui8>, %f: tensor<4x0x3x3xi8>,
                    %q: tensor<1x2x8x16xf32>, %k: tensor<1x2x0x16xf32>)
    -> (tensor<3x5xf32>, tensor<1x4x8x8xi32>, tensor<1x2x8x16xf32>) {
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<3x0xf32>, tensor<0x5xf32> -> tensor<3x5xf32>
  %1 = nn.conv %image, %f channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x0x8x8xui8>, tensor<4x0x3x3xi8> -> tensor<1x4x8x8xi32>
  %2 = nn.attention %q, %k, %k scale 0.25 : tensor<1x2x8x16xf32>, tensor<1x2x0x16xf32>, tensor<1x2x0x16xf32> -> tensor<1x2x8x16xf32>
  return %0, %1, %2 : tensor<3x5xf32>, tensor<1x4x8x8xi32>, tensor<1x2x8x16xf32>
}

// -----

// CHECK-LABEL: func.func @borders
// CHECK-DAG: %[[POOL:.*]] = nn.constant dense<0xFF800000> : tensor<1x4x2x2xf32>
// CHECK-DAG: %[[PAD:.*]] = nn.constant dense<2.500000e+00> : tensor<3x2xf32>
// CHECK:     return %[[POOL]], %[[PAD]]
func.func @borders(%image: tensor<1x4x0x0xf32>, %x: tensor<3x0xf32>) -> (tensor<1x4x2x2xf32>, tensor<3x2xf32>) {
  %value = nn.constant dense<2.5> : tensor<f32>
  %0 = nn.window_reduce max %image window [1, 1, 1, 1] strides [1, 1, 1, 1] dilations [1, 1, 1, 1] pads [0, 0, 1, 1] x [0, 0, 1, 1]
    : tensor<1x4x0x0xf32> -> tensor<1x4x2x2xf32>
  %1 = nn.pad %x, %value low [0, 1] high [0, 1] : tensor<3x0xf32>, tensor<f32> -> tensor<3x2xf32>
  return %0, %1 : tensor<1x4x2x2xf32>, tensor<3x2xf32>
}

// -----

// CHECK-LABEL: func.func @parts
// CHECK-SAME: (%[[EMPTY:.*]]: tensor<2x0xf32>, %[[X:.*]]: tensor<2x3xf32>, %[[Y:.*]]: tensor<2x5xf32>
// CHECK:      %[[BOTH:.*]] = nn.concat %[[X]], %[[Y]] dim 1
// CHECK-NEXT: return %[[BOTH]], %[[X]], %[[X]]
func.func @parts(%e: tensor<2x0xf32>, %x: tensor<2x3xf32>, %y: tensor<2x5xf32>, %p: tensor<0xi64>, %u: tensor<0x3xf32>)
    -> (tensor<2x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = nn.concat %e, %x, %e, %y dim 1 : (tensor<2x0xf32>, tensor<2x3xf32>, tensor<2x0xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  %1 = nn.concat %x, %e dim 1 : (tensor<2x3xf32>, tensor<2x0xf32>) -> tensor<2x3xf32>
  %2 = nn.scatter %x %p %u combine sum : tensor<2x3xf32>, tensor<0xi64>, tensor<0x3xf32>
  return %0, %1, %2 : tensor<2x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}
