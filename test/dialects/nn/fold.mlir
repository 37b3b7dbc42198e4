// RUN: partita-opt %s --canonicalize -split-input-file | FileCheck %s

// Folding evaluates the op's own function of one element.

// CHECK-LABEL: func.func @integers
// CHECK: nn.constant dense<[-3, 0, -128, 0]> : tensor<4xi8>
func.func @integers() -> tensor<4xi8> {
  %x = nn.constant dense<[7, 7, -128, 3]> : tensor<4xi8>
  %y = nn.constant dense<[-2, 0, -1, 5]> : tensor<4xi8>
  %0 = nn.div %x, %y : tensor<4xi8>
  return %0 : tensor<4xi8>
}

// -----

// CHECK-LABEL: func.func @remainder
// CHECK: nn.constant dense<[1, 0, 0, -1]> : tensor<4xi32>
func.func @remainder() -> tensor<4xi32> {
  %x = nn.constant dense<[7, 7, -2147483648, -7]> : tensor<4xi32>
  %y = nn.constant dense<[-2, 0, -1, 3]> : tensor<4xi32>
  %0 = nn.rem %x, %y : tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

// CHECK-LABEL: func.func @unsigned
// CHECK-DAG: nn.constant dense<[100, 0]> : tensor<2xui8>
// CHECK-DAG: nn.constant dense<[true, false]> : tensor<2xi1>
// CHECK-DAG: nn.constant dense<[2.000000e+02, 1.000000e+00]> : tensor<2xf32>
func.func @unsigned() -> (tensor<2xui8>, tensor<2xi1>, tensor<2xf32>) {
  %x = nn.constant dense<[200, 1]> : tensor<2xui8>
  %y = nn.constant dense<[2, 2]> : tensor<2xui8>
  %0 = nn.div %x, %y : tensor<2xui8>
  %1 = nn.compare gt %x, %y : tensor<2xui8> -> tensor<2xi1>
  %2 = nn.cast %x : tensor<2xui8> -> tensor<2xf32>
  return %0, %1, %2 : tensor<2xui8>, tensor<2xi1>, tensor<2xf32>
}

// -----

// CHECK-LABEL: func.func @powers
// CHECK: nn.constant dense<[81, -8, 1, 0, -1, 1]> : tensor<6xi32>
func.func @powers() -> tensor<6xi32> {
  %x = nn.constant dense<[3, -2, 7, 2, -1, -1]> : tensor<6xi32>
  %y = nn.constant dense<[4, 3, 0, -1, -3, -2]> : tensor<6xi32>
  %0 = nn.pow %x, %y : tensor<6xi32>
  return %0 : tensor<6xi32>
}

// -----

// CHECK-LABEL: func.func @floats
// CHECK: nn.constant dense<[0.000000e+00, 2.000000e+00]> : tensor<2xf32>
func.func @floats() -> tensor<2xf32> {
  %x = nn.constant dense<[-4.0, 4.0]> : tensor<2xf32>
  %0 = nn.relu %x : tensor<2xf32>
  %1 = nn.sqrt %0 : tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// NaN and what is beyond a range: as common processors convert them, by way of
// i32 or i64.
// CHECK-LABEL: func.func @beyond_range
// CHECK-DAG: nn.constant dense<[-2147483648, -2147483648, 3]> : tensor<3xi32>
// CHECK-DAG: nn.constant dense<[0, 0, 3]> : tensor<3xi8>
// CHECK-DAG: nn.constant dense<[9223372036854775808, 10000000000000000000, 3]> : tensor<3xui64>
func.func @beyond_range() -> (tensor<3xi32>, tensor<3xi8>, tensor<3xui64>) {
  %x = nn.constant dense<[0x7FF8000000000000, 1.0e19, 3.5]> : tensor<3xf64>
  %0 = nn.cast %x : tensor<3xf64> -> tensor<3xi32>
  %1 = nn.cast %x : tensor<3xf64> -> tensor<3xi8>
  %2 = nn.cast %x : tensor<3xf64> -> tensor<3xui64>
  return %0, %1, %2 : tensor<3xi32>, tensor<3xi8>, tensor<3xui64>
}

// -----

// CHECK-LABEL: func.func @small_floats
// CHECK-DAG: nn.constant dense<[1.000000e+00, -1.500000e+00, 4.480000e+02, 1.953130e-03]> : tensor<4xf8E4M3FN>
// CHECK-DAG: nn.constant dense<[1.000000e+00, -1.500000e+00, 2.400000e+02, 1.953130e-03]> : tensor<4xf8E4M3FNUZ>
// CHECK-DAG: nn.constant dense<[1.000000e+00, -1.500000e+00, 1.024000e+03, 1.953130e-03]> : tensor<4xf8E5M2>
// CHECK-DAG: nn.constant dense<[1.000000e+00, -1.500000e+00, 6.000000e+00, 0.000000e+00]> : tensor<4xf4E2M1FN>
func.func @small_floats() -> (tensor<4xf8E4M3FN>, tensor<4xf8E4M3FNUZ>, tensor<4xf8E5M2>, tensor<4xf4E2M1FN>) {
  %x = nn.constant dense<[1.0, -1.5, 1000.0, 0.001953125]> : tensor<4xf32>
  %0 = nn.cast %x : tensor<4xf32> -> tensor<4xf8E4M3FN>
  %1 = nn.cast %x : tensor<4xf32> -> tensor<4xf8E4M3FNUZ>
  %2 = nn.cast %x : tensor<4xf32> -> tensor<4xf8E5M2>
  %3 = nn.cast %x : tensor<4xf32> -> tensor<4xf4E2M1FN>
  return %0, %1, %2, %3 : tensor<4xf8E4M3FN>, tensor<4xf8E4M3FNUZ>, tensor<4xf8E5M2>, tensor<4xf4E2M1FN>
}

// -----

// CHECK-LABEL: func.func @small_floats_overflow
// CHECK-DAG: nn.constant dense<0x7F> : tensor<1xf8E4M3FN>
// CHECK-DAG: nn.constant dense<0x7C> : tensor<1xf8E5M2>
// CHECK-DAG: nn.constant dense<0x80> : tensor<1xf8E5M2FNUZ>
func.func @small_floats_overflow() -> (tensor<1xf8E4M3FN>, tensor<1xf8E5M2>, tensor<1xf8E5M2FNUZ>) {
  %x = nn.constant dense<[1.0e6]> : tensor<1xf32>
  %0 = nn.cast %x {saturate = false} : tensor<1xf32> -> tensor<1xf8E4M3FN>
  %1 = nn.cast %x {saturate = false} : tensor<1xf32> -> tensor<1xf8E5M2>
  %2 = nn.cast %x {saturate = false} : tensor<1xf32> -> tensor<1xf8E5M2FNUZ>
  return %0, %1, %2 : tensor<1xf8E4M3FN>, tensor<1xf8E5M2>, tensor<1xf8E5M2FNUZ>
}

// -----

// CHECK-LABEL: func.func @from_small_floats
// CHECK: nn.constant dense<[4.480000e+02, -2.000000e+00, 0.001953125, 0x7FC00000]> : tensor<4xf32>
func.func @from_small_floats() -> tensor<4xf32> {
  %x = nn.constant dense<[448.0, -2.0, 0.001953125, 0x7F]> : tensor<4xf8E4M3FN>
  %0 = nn.cast %x : tensor<4xf8E4M3FN> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @narrow_integers
// CHECK-DAG: nn.constant dense<[-8, 7, -1]> : tensor<3xi4>
// CHECK-DAG: nn.constant dense<[8, 7, 15]> : tensor<3xui4>
// CHECK-DAG: nn.constant dense<[-8.000000e+00, 7.000000e+00, -1.000000e+00]> : tensor<3xf32>
func.func @narrow_integers() -> (tensor<3xi4>, tensor<3xui4>, tensor<3xf32>) {
  %x = nn.constant dense<[8, 7, -1]> : tensor<3xi32>
  %0 = nn.cast %x : tensor<3xi32> -> tensor<3xi4>
  %1 = nn.cast %x : tensor<3xi32> -> tensor<3xui4>
  %2 = nn.cast %0 : tensor<3xi4> -> tensor<3xf32>
  return %0, %1, %2 : tensor<3xi4>, tensor<3xui4>, tensor<3xf32>
}

// -----

// CHECK-LABEL: func.func @shape_ops
// CHECK-DAG: nn.constant dense<{{\[\[}}0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>
// CHECK-DAG: nn.constant dense<{{\[\[}}2, 1, 0], [5, 4, 3]]> : tensor<2x3xi64>
// CHECK-DAG: nn.constant dense<{{\[\[}}1], [4]]> : tensor<2x1xi64>
// CHECK-DAG: nn.constant dense<{{\[\[}}9, 0, 1, 2], [9, 3, 4, 5]]> : tensor<2x4xi64>
// CHECK-DAG: nn.constant dense<[2, 0, 5, 3]> : tensor<4xi64>
// CHECK-DAG: nn.constant dense<[3, 5, 7]> : tensor<3xi64>
// CHECK-DAG: nn.constant dense<5> : tensor<i64>
// CHECK-DAG: nn.constant dense<{{\[\[}}0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]]> : tensor<2x6xi64>
func.func @shape_ops() -> (tensor<3x2xi64>, tensor<2x3xi64>, tensor<2x1xi64>, tensor<2x4xi64>, tensor<4xi64>, tensor<3xi64>, tensor<i64>, tensor<2x6xi64>) {
  %flat = nn.iota 0 : tensor<6xi64>
  %x = nn.reshape %flat : tensor<6xi64> -> tensor<2x3xi64>
  %nine = nn.constant dense<9> : tensor<i64>
  %i = nn.constant dense<[2, -3]> : tensor<2xi64>
  %0 = nn.transpose %x [1, 0] : tensor<2x3xi64> -> tensor<3x2xi64>
  %1 = nn.reverse %x [1] : tensor<2x3xi64>
  %2 = nn.slice %x [0, 1] to [2, 3] by [1, 2] : tensor<2x3xi64> -> tensor<2x1xi64>
  %3 = nn.pad %x, %nine low [0, 1] high [0, 0] : tensor<2x3xi64>, tensor<i64> -> tensor<2x4xi64>
  %g = nn.gather %x, %i dim 1 : tensor<2x3xi64>, tensor<2xi64> -> tensor<2x2xi64>
  %4 = nn.reshape %g : tensor<2x2xi64> -> tensor<4xi64>
  %5 = nn.reduce sum %x [0] : tensor<2x3xi64> -> tensor<3xi64>
  %6 = nn.reduce max %x [0, 1] : tensor<2x3xi64> -> tensor<i64>
  %7 = nn.concat %x, %x dim 1 : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x6xi64>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<3x2xi64>, tensor<2x3xi64>, tensor<2x1xi64>, tensor<2x4xi64>, tensor<4xi64>, tensor<3xi64>, tensor<i64>, tensor<2x6xi64>
}

// -----

// A uniform constant folds at any size.
// CHECK-LABEL: func.func @splat
// CHECK-NEXT: nn.constant dense<5.000000e-01> : tensor<1000x1000xf32>
// CHECK-NEXT: return
func.func @splat() -> tensor<1000x1000xf32> {
  %x = nn.constant dense<0.25> : tensor<f32>
  %0 = nn.broadcast %x [] : tensor<f32> -> tensor<1000x1000xf32>
  %1 = nn.sqrt %0 : tensor<1000x1000xf32>
  %2 = nn.transpose %1 [1, 0] : tensor<1000x1000xf32> -> tensor<1000x1000xf32>
  return %2 : tensor<1000x1000xf32>
}

// -----

// A large one does not.
// CHECK-LABEL: func.func @large
// CHECK: nn.iota
func.func @large() -> tensor<5000xi64> {
  %0 = nn.iota 0 : tensor<5000xi64>
  return %0 : tensor<5000xi64>
}

// -----

// CHECK-LABEL: func.func @identities
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>, %{{.*}}: tensor<2x3xf32>)
// CHECK-NEXT: return %[[X]] : tensor<2x3xf32>
func.func @identities(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = nn.constant dense<0.0> : tensor<2x3xf32>
  %one = nn.constant dense<1.0> : tensor<2x3xf32>
  %true = nn.constant dense<true> : tensor<2x3xi1>
  %0 = nn.add %zero, %x : tensor<2x3xf32>
  %1 = nn.sub %0, %zero : tensor<2x3xf32>
  %2 = nn.mul %one, %1 : tensor<2x3xf32>
  %3 = nn.div %2, %one : tensor<2x3xf32>
  %4 = nn.pow %3, %one : tensor<2x3xf32>
  %5 = nn.neg %4 : tensor<2x3xf32>
  %6 = nn.neg %5 : tensor<2x3xf32>
  %7 = nn.cast %6 : tensor<2x3xf32> -> tensor<2x3xf32>
  %8 = nn.max %7, %7 : tensor<2x3xf32>
  %9 = nn.select %true, %8, %y : tensor<2x3xi1>, tensor<2x3xf32>
  %10 = nn.reshape %9 : tensor<2x3xf32> -> tensor<2x3xf32>
  %11 = nn.transpose %10 [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %12 = nn.broadcast %11 [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %13 = nn.slice %12 [0, 0] to [2, 3] by [1, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %14 = nn.concat %13 dim 0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %14 : tensor<2x3xf32>
}
