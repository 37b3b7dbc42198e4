// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @cluster_c1(%x: tensor<2xf32>) {
  // expected-error@+1 {{needs a block whose arguments have the types of the operands}}
  "nn.cluster"(%x) ({
    nn.yield
  }) {kind = #nn<cluster_kind kernel>} : (tensor<2xf32>) -> ()
  return
}

// -----

func.func @cluster_c2(%x: tensor<2xf32>) {
  // expected-error@+1 {{yields values that have not the types of the results}}
  %0 = nn.cluster kernel (%a = %x) : (tensor<2xf32>) -> tensor<3xf32> {
    nn.yield %a : tensor<2xf32>
  }
  return
}

// -----

func.func @cluster_c3(%x: tensor<2xf32>) {
  // expected-error@+1 {{has a lowering of another kind}}
  %0 = nn.cluster call (%a = %x) : (tensor<2xf32>) -> tensor<2xf32> attributes {lowering = #plan.kernel<"k", extent = 1, grain = 1>} {
    nn.yield %a : tensor<2xf32>
  }
  return
}

// -----

func.func @cluster_lowering(%x: tensor<2xf32>) {
  // expected-error@+1 {{attribute 'lowering' failed to satisfy constraint}}
  %0 = nn.cluster call (%a = %x) : (tensor<2xf32>) -> tensor<2xf32> attributes {lowering = "call"} {
    nn.yield %a : tensor<2xf32>
  }
  return
}
