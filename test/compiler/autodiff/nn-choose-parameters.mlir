// RUN: partita-opt --nn-choose-parameters %s | FileCheck %s
// RUN: partita-opt --nn-choose-parameters="freeze=fc*" %s | FileCheck %s --check-prefix=FREEZE
// RUN: partita-opt --nn-choose-parameters="train-only=fc.w,mask,freq" %s | FileCheck %s --check-prefix=ONLY
// RUN: not partita-opt --nn-choose-parameters="freeze=head*" %s 2>&1 | FileCheck %s --check-prefix=UNUSED

// UNUSED: --freeze head* names no parameter; --list-parameters lists them

// CHECK: @fc.w {{.*}}nn.trained
// FREEZE: @fc.w {{.*}}nn.untrained = "--freeze names it"
// ONLY: @fc.w {{.*}}nn.trained
nn.weight @fc.w "fc.w" : tensor<2x2xf32> = dense<[[0.5, 1.0], [0.0, 2.0]]> : tensor<2x2xf32>
// CHECK: @bias {{.*}}nn.trained
// FREEZE: @bias {{.*}}nn.trained
// ONLY: @bias {{.*}}nn.untrained = "--train-only does not name it"
nn.weight @bias "bias" : tensor<2xf32> = dense<0.0> : tensor<2xf32>
// CHECK: @ones {{.*}}nn.trained
nn.weight @ones "ones" : tensor<2x2xf32> = dense<1.0> : tensor<2x2xf32>
// CHECK: @mask {{.*}}nn.untrained = "it is a mask"
// ONLY: @mask {{.*}}nn.trained
nn.weight @mask "mask" : tensor<2x2xf32> = dense<[[0.0, -1.0e9], [0.0, 0.0]]> : tensor<2x2xf32>
// CHECK: @triangle {{.*}}nn.untrained = "it is a mask"
nn.weight @triangle "triangle" : tensor<2x2xf32> = dense<[[1.0, 0.0], [1.0, 1.0]]> : tensor<2x2xf32>
// CHECK: @number {{.*}}nn.untrained = "it is a single number"
nn.weight @number "number" : tensor<f32> = dense<3.0> : tensor<f32>
// CHECK: @scale {{.*}}nn.trained
nn.weight @scale "scale" : tensor<f32> = dense<3.0> : tensor<f32> {nn.declared = "parameter"}
// CHECK: @halves {{.*}}nn.trained
nn.weight @halves "halves" : tensor<2x2xf32> = dense<[[1.0, 0.0], [1.0, 1.0]]> : tensor<2x2xf32> {nn.declared = "parameter"}
// CHECK: @freq {{.*}}nn.untrained = "it is a buffer"
// ONLY: @freq {{.*}}nn.trained
nn.weight @freq "freq" : tensor<2xf32> = dense<[3.0, 4.0]> : tensor<2xf32> {nn.declared = "buffer"}
// CHECK: @table {{.*}}nn.untrained = "it is a constant"
nn.weight @table "table" : tensor<2xf32> = dense<[3.0, 5.0]> : tensor<2xf32> {nn.declared = "constant"}
// CHECK: @ids {{.*}}nn.untrained = "its elements are no floats"
nn.weight @ids "ids" : tensor<2xi64> = dense<[3, 4]> : tensor<2xi64>
// CHECK: @mean {{.*}}nn.untrained = "it is a running statistic"
nn.weight @mean "mean" : tensor<2xf32> = dense<[3.0, 4.0]> : tensor<2xf32> {nn.declared = "buffer"}

func.func @main() -> tensor<2xf32> {
  %0 = nn.parameter @mean {nn.statistic} : tensor<2xf32>
  return %0 : tensor<2xf32>
}
