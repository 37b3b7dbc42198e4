// RUN: partita-opt "--nn-choose-initial-values=init=*=default,w*=normal;std=0.5,v=kaiming_normal" %s | FileCheck %s
// RUN: partita-opt "--nn-choose-initial-values=init=v=xavier_uniform" %s | FileCheck %s --check-prefix=XAVIER
// RUN: not partita-opt "--nn-choose-initial-values=init=w=default" %s 2>&1 | FileCheck %s --check-prefix=DEFAULT
// RUN: not partita-opt "--nn-choose-initial-values=init=b=kaiming_normal" %s 2>&1 | FileCheck %s --check-prefix=FANS
// RUN: not partita-opt "--nn-choose-initial-values=init=w/m=zeros" %s 2>&1 | FileCheck %s --check-prefix=MOMENT
// RUN: not partita-opt "--nn-choose-initial-values=init=w" %s 2>&1 | FileCheck %s --check-prefix=FORM

// The last that matches holds; a moment and what is not trained begin as they did.
// CHECK: nn.weight state @w "w"{{.*}}nn.initial = "normal,mean=0.{{0*}}e+00,std=5.{{0*}}e-01"
// CHECK: nn.weight state @v "v"{{.*}}nn.initial = "normal,mean=0.{{0*}}e+00,std=8.16496580927726{{[0-9]*}}e-01"
// CHECK: nn.weight state @b "b"{{.*}}nn.initial = "constant,value=1"
// CHECK: nn.weight state @m "w/m"
// CHECK-NOT: nn.initial
// CHECK: nn.weight @f "f"
// CHECK-NOT: nn.initial
// The square root of 6 / (3 + 5).
// XAVIER: nn.weight state @v "v"{{.*}}nn.initial = "uniform,low=-8.660254037844386{{[0-9]*}}e-01,high=8.660254037844386{{[0-9]*}}e-01"
// DEFAULT: error: --init w=default: 'w': no layer reads it, so it has no default: name a kind, e.g. normal,std=0.02
// FANS: error: --init b=kaiming_normal: 'b': 'kaiming_normal' needs to know how many numbers a layer sums
// MOMENT: error: --init w/m names no
// FORM: error: --init: 'w' is no GLOB=KIND[,KEY=VALUE...]
nn.weight state @w "w" : tensor<4xf32> = dense<1.0> : tensor<4xf32>
nn.weight state @v "v" : tensor<3x5xf32> = dense<1.0> : tensor<3x5xf32> {nn.fans = array<i64: 3, 5>}
nn.weight state @b "b" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.default_initial = "constant,value=1"}
nn.weight state @m "w/m" : tensor<4xf32> = dense<0.0> : tensor<4xf32> {nn.role = "optimizer"}
nn.weight @f "f" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.default_initial = "constant,value=1"}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
