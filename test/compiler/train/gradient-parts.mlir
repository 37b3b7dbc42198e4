// RUN: partita-opt --nn-add-loss="loss=sum:y parts" --nn-differentiate --nn-add-optimizer=optimizer=sgd %s | FileCheck %s
// RUN: partita-opt --nn-add-loss="loss=sum:y parts" --nn-differentiate --nn-sum-gradients=micro-batches=2 %s | FileCheck %s

// Two nodes read a weight, and one of them twice: a sum over the micro-batches
// for each node, which are added up once a step.
// CHECK: func.func @main(
// CHECK: %[[TWICE:.*]] = nn.add %{{.*}}, %{{.*}} : tensor<4xf32>
// CHECK-DAG: %[[ONE:.*]] = nn.sum_micro_batches %{{.*}} {nn.gradient_of = @w} : tensor<4xf32>
// CHECK-DAG: %[[OTHER:.*]] = nn.sum_micro_batches %{{.*}} {nn.gradient_of = @w} : tensor<4xf32>
// CHECK: nn.add %[[ONE]], %[[OTHER]] : tensor<4xf32>
// CHECK-NOT: nn.gradient_of = @w}
// One reads the other weight: its terms have one sum.
// CHECK: nn.sum_micro_batches %{{.*}} {nn.gradient_of = @v} : tensor<4xf32>
// CHECK-NOT: nn.gradient_of
nn.weight @w "w" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.trained}
nn.weight @v "v" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.trained}
func.func @main(%x: tensor<4xf32> {nn.name = "x", nn.port = 0 : i64}) -> (tensor<4xf32> {nn.name = "y", nn.port = 0 : i64}) {
  %w = nn.parameter @w : tensor<4xf32>
  %v = nn.parameter @v : tensor<4xf32>
  %0 = nn.mul %x, %w : tensor<4xf32> loc("a")
  %1 = nn.tanh %0 : tensor<4xf32> loc("a")
  %2 = nn.mul %1, %w : tensor<4xf32> loc("a")
  %3 = nn.mul %2, %v : tensor<4xf32> loc("b")
  %4 = nn.exp %3 : tensor<4xf32> loc("b")
  %5 = nn.mul %4, %v : tensor<4xf32> loc("b")
  %6 = nn.mul %5, %w : tensor<4xf32> loc("c")
  return %6 : tensor<4xf32>
}
