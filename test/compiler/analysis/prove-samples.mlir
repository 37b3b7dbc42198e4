// RUN: partita-opt --prove-samples --split-input-file %s 2>%t.err | FileCheck %s
// RUN: FileCheck --check-prefix=WHY %s < %t.err

// What passes through every op reaches the result.
// CHECK-LABEL: @pass_through
// CHECK-SAME: (%{{.*}}: tensor<4x8xf32> {nn.batch_axis = 0 : i64}) -> (tensor<4x3xf32> {nn.batch_axis = 0 : i64})
func.func @pass_through(%x: tensor<4x8xf32> {nn.batch_axis = 0 : i64}) -> tensor<4x3xf32> {
  %w = nn.parameter @w : tensor<8x3xf32>
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<4x8xf32>, tensor<8x3xf32> -> tensor<4x3xf32>
  %1 = nn.softmax %0 dim 1 : tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}
nn.weight @w "w" : tensor<8x3xf32> = dense<1.0> : tensor<8x3xf32>

// -----

// The major part of a merged dimension; it may be the minor part on the way.
// CHECK-LABEL: @merged
// CHECK-SAME: -> (tensor<12x8xf32> {nn.batch_axis = 0 : i64}, tensor<8x12xf32> {nn.batch_axis = 1 : i64})
func.func @merged(%x: tensor<4x3x8xf32> {nn.batch_axis = 0 : i64}) -> (tensor<12x8xf32>, tensor<8x12xf32>) {
  %0 = nn.transpose %x [1, 0, 2] : tensor<4x3x8xf32> -> tensor<3x4x8xf32>
  %1 = nn.reshape %0 : tensor<3x4x8xf32> -> tensor<12x8xf32>
  %2 = nn.exp %1 : tensor<12x8xf32>
  %3 = nn.reshape %2 : tensor<12x8xf32> -> tensor<3x4x8xf32>
  %4 = nn.transpose %3 [1, 0, 2] : tensor<3x4x8xf32> -> tensor<4x3x8xf32>
  %5 = nn.reshape %4 : tensor<4x3x8xf32> -> tensor<12x8xf32>
  %6 = nn.transpose %5 [1, 0] : tensor<12x8xf32> -> tensor<8x12xf32>
  return %5, %6 : tensor<12x8xf32>, tensor<8x12xf32>
}

// -----

// At the end it must be the major one.
// CHECK: module attributes {nn.mixes = "the output 'y' has them within dimension 0, behind others: dimension 0 of 'x'"
// CHECK-LABEL: @minor
// CHECK-NOT: batch_axis
// WHY: remark: the output 'y' has them within dimension 0
func.func @minor(%x: tensor<4x3x8xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> (tensor<12x8xf32> {nn.name = "y"}) {
  %0 = nn.transpose %x [1, 0, 2] : tensor<4x3x8xf32> -> tensor<3x4x8xf32>
  %1 = nn.reshape %0 : tensor<3x4x8xf32> -> tensor<12x8xf32>
  return %1 : tensor<12x8xf32>
}

// -----

// A reshape may tear samples apart.
// CHECK-LABEL: @torn
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'pairs' (nn.reshape) does not keep apart the entries of dimension 0 of 'x'
func.func @torn(%x: tensor<4x6xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<6x4xf32> {
  %0 = nn.reshape %x : tensor<4x6xf32> -> tensor<6x4xf32> loc("pairs")
  return %0 : tensor<6x4xf32>
}

// -----

// CHECK: module attributes {nn.mixes = "'mean' (nn.reduce) combines the entries of dimension 0 of 'x'"
// CHECK-LABEL: @reduced
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'mean' (nn.reduce) combines the entries of dimension 0 of 'x'
func.func @reduced(%x: tensor<4x8xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<4x8xf32> {
  %0 = nn.reduce sum %x [0] : tensor<4x8xf32> -> tensor<8xf32> loc("mean")
  %1 = nn.broadcast %0 [1] : tensor<8xf32> -> tensor<4x8xf32>
  %2 = nn.sub %x, %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @softmax
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'attend' (nn.softmax) needs all entries of dimension 0 of 'x'
func.func @softmax(%x: tensor<4x8xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<4x8xf32> {
  %0 = nn.softmax %x dim 0 : tensor<4x8xf32> loc("attend")
  return %0 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @moved
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'turn' (nn.reverse) moves the entries of dimension 0 of 'x'
func.func @moved(%x: tensor<4x8xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<4x8xf32> {
  %0 = nn.reverse %x [0] : tensor<4x8xf32> loc("turn")
  return %0 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @part
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'first' (nn.slice) moves the entries of dimension 0 of 'x'
func.func @part(%x: tensor<4x8xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<3x8xf32> {
  %0 = nn.slice %x [0, 0] to [3, 8] by [1, 1] : tensor<4x8xf32> -> tensor<3x8xf32> loc("first")
  return %0 : tensor<3x8xf32>
}

// -----

// Rows of a constant that are the same, and rows that differ.
// CHECK-LABEL: @same_rows
// CHECK-SAME: -> (tensor<2x3xf32> {nn.batch_axis = 0 : i64})
func.func @same_rows(%x: tensor<2x3xf32> {nn.batch_axis = 0 : i64}) -> tensor<2x3xf32> {
  %c = nn.constant dense<[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]> : tensor<2x3xf32>
  %i = nn.iota 1 : tensor<2x3xf32>
  %w = nn.parameter @bias : tensor<3xf32>
  %b = nn.broadcast %w [1] : tensor<3xf32> -> tensor<2x3xf32>
  %e = nn.exp %b : tensor<2x3xf32>
  %0 = nn.add %x, %c : tensor<2x3xf32>
  %1 = nn.add %0, %i : tensor<2x3xf32>
  %2 = nn.add %1, %e : tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}
nn.weight @bias "bias" : tensor<3xf32> = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>

// -----

// CHECK-LABEL: @other_rows
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'shift' (nn.add) has a number of its own for each of the entries of dimension 0 of 'x'
func.func @other_rows(%x: tensor<2x3xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<2x3xf32> {
  %c = nn.constant dense<[[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]]> : tensor<2x3xf32>
  %0 = nn.add %x, %c : tensor<2x3xf32> loc("shift")
  return %0 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @numbered
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'count' (nn.add) has a number of its own
func.func @numbered(%x: tensor<2x3xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<2x3xf32> {
  %i = nn.iota 0 : tensor<2x3xf32>
  %0 = nn.add %x, %i : tensor<2x3xf32> loc("count")
  return %0 : tensor<2x3xf32>
}

// -----

// A weight with a row for each sample.
// CHECK-LABEL: @weight_rows
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'scale' (nn.mul) has a number of its own
func.func @weight_rows(%x: tensor<2x3xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<2x3xf32> {
  %w = nn.parameter @rows : tensor<2x3xf32>
  %0 = nn.mul %x, %w : tensor<2x3xf32> loc("scale")
  return %0 : tensor<2x3xf32>
}
nn.weight @rows "rows" : tensor<2x3xf32> = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>

// -----

// An input without samples is a table; here each sample would have its own row.
// CHECK-LABEL: @table
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'meet' (nn.add) has a number of its own
func.func @table(%x: tensor<2x3xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}, %t: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = nn.add %x, %t : tensor<2x3xf32> loc("meet")
  return %0 : tensor<2x3xf32>
}

// -----

// One after another along dimension 0: entries keep apart, but the second half
// lies behind the first.
// CHECK-LABEL: @concat
// CHECK-NOT: batch_axis
// WHY: remark: the output 'output0' has them within dimension 0
func.func @concat(%x: tensor<2x3xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<4x3xf32> {
  %0 = nn.concat %x, %x dim 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// Halves that were put together are taken apart again.
// CHECK-LABEL: @concat_and_slice
// CHECK-SAME: -> (tensor<2x3xf32> {nn.batch_axis = 0 : i64})
func.func @concat_and_slice(%x: tensor<2x3xf32> {nn.batch_axis = 0 : i64}) -> tensor<2x3xf32> {
  %0 = nn.concat %x, %x dim 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %1 = nn.slice %0 [2, 0] to [4, 3] by [1, 1] : tensor<4x3xf32> -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// Scores of each sample with each.
// CHECK-LABEL: @scores
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'scores' (nn.dot) combines, in two dimensions, the entries of dimension 0 of 'x'
func.func @scores(%x: tensor<4x8xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<4x4xf32> {
  %0 = nn.dot %x, %x batch [] x [] contract [1] x [1] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32> loc("scores")
  return %0 : tensor<4x4xf32>
}

// -----

// Rows of a table that samples name, and rows of samples that a table names.
// CHECK-LABEL: @lookup
// CHECK-SAME: -> (tensor<4x2x5xf32> {nn.batch_axis = 0 : i64})
func.func @lookup(%ids: tensor<4x2xi64> {nn.batch_axis = 0 : i64}, %t: tensor<9x5xf32>) -> tensor<4x2x5xf32> {
  %0 = nn.gather %t, %ids dim 0 : tensor<9x5xf32>, tensor<4x2xi64> -> tensor<4x2x5xf32>
  return %0 : tensor<4x2x5xf32>
}

// -----

// CHECK-LABEL: @named_rows
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'choose' (nn.gather) combines the entries of dimension 0 of 'x'
func.func @named_rows(%x: tensor<4x5xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}, %ids: tensor<4xi64>) -> tensor<4x5xf32> {
  %0 = nn.gather %x, %ids dim 0 : tensor<4x5xf32>, tensor<4xi64> -> tensor<4x5xf32> loc("choose")
  return %0 : tensor<4x5xf32>
}

// -----

// Steps of a recurrence follow from each other; sequences of a batch do not.
// CHECK-LABEL: @batch_of_sequences
// CHECK-SAME: -> (tensor<12x1x3x4xf32> {nn.batch_axis = 2 : i64})
func.func @batch_of_sequences(%x: tensor<10x3x1x16xf32> {nn.batch_axis = 1 : i64}) -> tensor<12x1x3x4xf32> {
  %w = nn.parameter @r : tensor<1x16x4xf32>
  %0 = nn.recurrent lstm %x, %w reversed [false] functions [#nn.gate<logistic>, #nn.gate<tanh>, #nn.gate<tanh>] : tensor<10x3x1x16xf32>, tensor<1x16x4xf32> -> tensor<12x1x3x4xf32>
  return %0 : tensor<12x1x3x4xf32>
}
nn.weight @r "r" : tensor<1x16x4xf32> = dense<1.0> : tensor<1x16x4xf32>

// -----

// CHECK-LABEL: @steps
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'lstm' (nn.recurrent) needs all entries of dimension 0 of 'x'
func.func @steps(%x: tensor<10x3x1x16xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<12x1x3x4xf32> {
  %w = nn.parameter @r : tensor<1x16x4xf32>
  %0 = nn.recurrent lstm %x, %w reversed [false] functions [#nn.gate<logistic>, #nn.gate<tanh>, #nn.gate<tanh>] : tensor<10x3x1x16xf32>, tensor<1x16x4xf32> -> tensor<12x1x3x4xf32> loc("lstm")
  return %0 : tensor<12x1x3x4xf32>
}
nn.weight @r "r" : tensor<1x16x4xf32> = dense<1.0> : tensor<1x16x4xf32>

// -----

// One sample: its dimension has size 1, as others have.
// CHECK-LABEL: @one_sample
// CHECK-SAME: -> (tensor<1x2x4xf32> {nn.batch_axis = 0 : i64})
func.func @one_sample(%x: tensor<1x1x8xf32> {nn.batch_axis = 0 : i64}) -> tensor<1x2x4xf32> {
  %0 = nn.softmax %x dim 1 : tensor<1x1x8xf32>
  %1 = nn.reshape %0 : tensor<1x1x8xf32> -> tensor<1x8xf32>
  %2 = nn.reshape %1 : tensor<1x8xf32> -> tensor<1x2x4xf32>
  return %2 : tensor<1x2x4xf32>
}

// -----

// CHECK-LABEL: @mean_of_one
// CHECK-NOT: batch_axis
// WHY: remark: {{.*}}'mean' (nn.reduce) combines the entries of dimension 0 of 'x'
func.func @mean_of_one(%x: tensor<1x8xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> tensor<8xf32> {
  %0 = nn.reduce sum %x [0] : tensor<1x8xf32> -> tensor<8xf32> loc("mean")
  return %0 : tensor<8xf32>
}

// -----

// What no sample goes into is the same for all, or has none.
// CHECK-LABEL: @constant_result
// CHECK-SAME: -> (tensor<2x3xf32> {nn.batch_axis = 0 : i64}, tensor<2x3xf32> {nn.batch_axis = 0 : i64})
func.func @constant_result(%x: tensor<2x3xf32> {nn.batch_axis = 0 : i64}) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %c = nn.constant dense<1.0> : tensor<2x3xf32>
  return %x, %c : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @numbers
// CHECK-NOT: batch_axis
// WHY: remark: the output 'n' has no entry for each of the entries of dimension 0 of 'x'
func.func @numbers(%x: tensor<2x3xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}) -> (tensor<2x3xf32>, tensor<2x3xf32> {nn.name = "n"}) {
  %i = nn.iota 0 : tensor<2x3xf32>
  return %x, %i : tensor<2x3xf32>, tensor<2x3xf32>
}
