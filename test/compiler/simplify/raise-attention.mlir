// RUN: partita-opt %s --nn-raise-attention --canonicalize | FileCheck %s
// RUN: sed -e '1i module attributes {plan.target = "cuda:sm_90"} {' -e '$a }' %s | partita-opt --nn-raise-attention | FileCheck %s --check-prefix=PRODUCTS --implicit-check-not="nn.attention "
// RUN: sed -e '1i module attributes {plan.target = "cuda:sm_90"} {' -e '$a }' %s | partita-opt --nn-raise-attention=library-calls=false --canonicalize | FileCheck %s

// On GPUs products are calls, if libraries are called at all.
// PRODUCTS: nn.softmax

// Scores divided, and a mask of [batch, keys] added.
// CHECK-LABEL: func.func @encoder
// CHECK-SAME: (%[[Q:.*]]: tensor<3x2x8x16xf32>, %[[K:.*]]: tensor<3x2x16x8xf32>, %[[V:.*]]: tensor<3x2x8x16xf32>, %[[M:.*]]: tensor<3x8xf32>)
// CHECK-DAG: %[[KT:.*]] = nn.transpose %[[K]] [0, 1, 3, 2]
// CHECK-DAG: %[[M4:.*]] = nn.reshape %[[M]] : tensor<3x8xf32> -> tensor<3x1x1x8xf32>
// CHECK: %[[R:.*]] = nn.attention %[[Q]], %[[KT]], %[[V]] mask_add %[[M4]] : tensor<3x1x1x8xf32> scale 2.500000e-01
// CHECK: return %[[R]]
func.func @encoder(%q: tensor<3x2x8x16xf32>, %k: tensor<3x2x16x8xf32>, %v: tensor<3x2x8x16xf32>, %m: tensor<3x8xf32>) -> tensor<3x2x8x16xf32> {
  %s = nn.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [2] : tensor<3x2x8x16xf32>, tensor<3x2x16x8xf32> -> tensor<3x2x8x8xf32>
  %c = nn.constant dense<4.0> : tensor<3x2x8x8xf32>
  %d = nn.div %s, %c : tensor<3x2x8x8xf32>
  %b = nn.broadcast %m [0, 3] : tensor<3x8xf32> -> tensor<3x2x8x8xf32>
  %a = nn.add %b, %d : tensor<3x2x8x8xf32>
  %p = nn.softmax %a dim 3 : tensor<3x2x8x8xf32>
  %r = nn.dot %p, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<3x2x8x8xf32>, tensor<3x2x8x16xf32> -> tensor<3x2x8x16xf32>
  return %r : tensor<3x2x8x16xf32>
}

// scores / 4 * m - n, as GPT-2 writes a causal mask.
// CHECK-LABEL: func.func @decoder
// CHECK-SAME: %[[M:[a-z0-9]*]]: tensor<8x8xf32>, %[[N:[a-z0-9]*]]: tensor<8x8xf32>)
// CHECK-DAG: %[[NEG:.*]] = nn.neg %[[N]]
// CHECK-DAG: %[[N4:.*]] = nn.reshape %[[NEG]] : tensor<8x8xf32> -> tensor<1x1x8x8xf32>
// CHECK-DAG: %[[M4:.*]] = nn.reshape %[[M]] : tensor<8x8xf32> -> tensor<1x1x8x8xf32>
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask_mul %[[M4]] : tensor<1x1x8x8xf32> mask_add %[[N4]] : tensor<1x1x8x8xf32> scale 2.500000e-01
func.func @decoder(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x16x8xf32>, %v: tensor<1x2x8x16xf32>, %m: tensor<8x8xf32>, %n: tensor<8x8xf32>) -> tensor<1x2x8x16xf32> {
  %s = nn.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [2] : tensor<1x2x8x16xf32>, tensor<1x2x16x8xf32> -> tensor<1x2x8x8xf32>
  %c = nn.constant dense<4.0> : tensor<1x2x8x8xf32>
  %d = nn.div %s, %c : tensor<1x2x8x8xf32>
  %bm = nn.broadcast %m [2, 3] : tensor<8x8xf32> -> tensor<1x2x8x8xf32>
  %bn = nn.broadcast %n [2, 3] : tensor<8x8xf32> -> tensor<1x2x8x8xf32>
  %f = nn.mul %d, %bm : tensor<1x2x8x8xf32>
  %a = nn.sub %f, %bn : tensor<1x2x8x8xf32>
  %p = nn.softmax %a dim 3 : tensor<1x2x8x8xf32>
  %r = nn.dot %p, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>
  return %r : tensor<1x2x8x16xf32>
}

// The scale on q, one batch dimension, and a selection against -infinity.
// CHECK-LABEL: func.func @select
// CHECK: %[[S:.*]] = nn.select %{{.*}} : tensor<8x8xi1>, tensor<8x8xf32>
// CHECK: %[[M:.*]] = nn.reshape %[[S]] : tensor<8x8xf32> -> tensor<1x1x8x8xf32>
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask_add %[[M]] : tensor<1x1x8x8xf32> scale 1.250000e-01 : tensor<6x1x8x16xf32>
func.func @select(%q0: tensor<6x8x16xf32>, %k: tensor<6x8x16xf32>, %v: tensor<6x8x16xf32>, %m: tensor<8x8xi1>) -> tensor<6x8x16xf32> {
  %c = nn.constant dense<0.125> : tensor<6x8x16xf32>
  %q = nn.mul %q0, %c : tensor<6x8x16xf32>
  %s = nn.dot %q, %k batch [0] x [0] contract [2] x [2] : tensor<6x8x16xf32>, tensor<6x8x16xf32> -> tensor<6x8x8xf32>
  %inf = nn.constant dense<0xFF800000> : tensor<6x8x8xf32>
  %b = nn.broadcast %m [1, 2] : tensor<8x8xi1> -> tensor<6x8x8xi1>
  %a = nn.select %b, %s, %inf : tensor<6x8x8xi1>, tensor<6x8x8xf32>
  %p = nn.softmax %a dim 2 : tensor<6x8x8xf32>
  %r = nn.dot %p, %v batch [0] x [0] contract [2] x [1] : tensor<6x8x8xf32>, tensor<6x8x16xf32> -> tensor<6x8x16xf32>
  return %r : tensor<6x8x16xf32>
}

// The probabilities are a result of the model.
// CHECK-LABEL: func.func @two_uses
// CHECK-NOT: nn.attention
func.func @two_uses(%q: tensor<6x8x16xf32>) -> (tensor<6x8x16xf32>, tensor<6x8x8xf32>) {
  %s = nn.dot %q, %q batch [0] x [0] contract [2] x [2] : tensor<6x8x16xf32>, tensor<6x8x16xf32> -> tensor<6x8x8xf32>
  %p = nn.softmax %s dim 2 : tensor<6x8x8xf32>
  %r = nn.dot %p, %q batch [0] x [0] contract [2] x [1] : tensor<6x8x8xf32>, tensor<6x8x16xf32> -> tensor<6x8x16xf32>
  return %r, %p : tensor<6x8x16xf32>, tensor<6x8x8xf32>
}

// A softmax over queries is no attention.
// CHECK-LABEL: func.func @other_dim
// CHECK-NOT: nn.attention
func.func @other_dim(%q: tensor<6x8x16xf32>) -> tensor<6x8x16xf32> {
  %s = nn.dot %q, %q batch [0] x [0] contract [2] x [2] : tensor<6x8x16xf32>, tensor<6x8x16xf32> -> tensor<6x8x8xf32>
  %p = nn.softmax %s dim 1 : tensor<6x8x8xf32>
  %r = nn.dot %p, %q batch [0] x [0] contract [2] x [1] : tensor<6x8x8xf32>, tensor<6x8x16xf32> -> tensor<6x8x16xf32>
  return %r : tensor<6x8x16xf32>
}

// Keys that are repeated are not written for two rows. They are for more.
// CHECK-LABEL: func.func @few_rows
// CHECK-NOT: nn.attention
// CHECK-LABEL: func.func @more_rows
// CHECK: nn.attention
func.func @few_rows(%q: tensor<1x4x2x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x4x8x16xf32>) -> tensor<1x4x2x16xf32> {
  %b = nn.broadcast %k [0, 1, 3, 4] : tensor<1x2x8x16xf32> -> tensor<1x2x2x8x16xf32>
  %a = nn.reshape %b : tensor<1x2x2x8x16xf32> -> tensor<1x4x8x16xf32>
  %s = nn.dot %q, %a batch [0, 1] x [0, 1] contract [3] x [3] : tensor<1x4x2x16xf32>, tensor<1x4x8x16xf32> -> tensor<1x4x2x8xf32>
  %p = nn.softmax %s dim 3 : tensor<1x4x2x8xf32>
  %r = nn.dot %p, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<1x4x2x8xf32>, tensor<1x4x8x16xf32> -> tensor<1x4x2x16xf32>
  return %r : tensor<1x4x2x16xf32>
}
func.func @more_rows(%q: tensor<1x4x12x16xf32>, %k: tensor<1x2x8x16xf32>, %v: tensor<1x4x8x16xf32>) -> tensor<1x4x12x16xf32> {
  %b = nn.broadcast %k [0, 1, 3, 4] : tensor<1x2x8x16xf32> -> tensor<1x2x2x8x16xf32>
  %a = nn.reshape %b : tensor<1x2x2x8x16xf32> -> tensor<1x4x8x16xf32>
  %s = nn.dot %q, %a batch [0, 1] x [0, 1] contract [3] x [3] : tensor<1x4x12x16xf32>, tensor<1x4x8x16xf32> -> tensor<1x4x12x8xf32>
  %p = nn.softmax %s dim 3 : tensor<1x4x12x8xf32>
  %r = nn.dot %p, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<1x4x12x8xf32>, tensor<1x4x8x16xf32> -> tensor<1x4x12x16xf32>
  return %r : tensor<1x4x12x16xf32>
}
