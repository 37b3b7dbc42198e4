// RUN: partita-opt --dist-connect-replicas --split-input-file --verify-diagnostics %s

// Another kind in the same place, and another order after it: each is reported.
func.func @kinds(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.replicate 2 (%x) dims [0] results [0] : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-note @+1 {{'dist.replica.all_reduce' of replica 0}}
    %m = dist.replica.all_reduce sum %a : tensor<2x6xf32>
    // expected-note @+1 {{'dist.replica.broadcast' of replica 0}}
    %n = dist.replica.broadcast %m root 0 : tensor<2x6xf32>
    dist.yield %n : tensor<2x6xf32>
  }, {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-error @+1 {{'dist.replica.broadcast' of replica 1 is broadcast from replica 0 of tensor<2x6xf32>, but 'dist.replica.all_reduce' in the same place of replica 0 is all_reduce sum of tensor<2x6xf32>: replicas must meet in the same order}}
    %n = dist.replica.broadcast %a root 0 : tensor<2x6xf32>
    // expected-error @+1 {{'dist.replica.all_reduce' of replica 1 is all_reduce sum of tensor<2x6xf32>, but 'dist.replica.broadcast' in the same place of replica 0 is broadcast from replica 0}}
    %m = dist.replica.all_reduce sum %n : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

// Another reduction; the third replica fits.
func.func @reductions(%x: tensor<6x6xf32>) -> tensor<6x6xf32> attributes {dist.axes = [#dist.axis<"replica" = 3>]} {
  %0 = dist.replicate 3 (%x) dims [0] results [0] : (tensor<6x6xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-note @+1 {{of replica 0}}
    %m = dist.replica.all_reduce sum %a : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }, {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-error @+1 {{of replica 1 is all_reduce mean of tensor<2x6xf32>, but 'dist.replica.all_reduce' in the same place of replica 0 is all_reduce sum}}
    %m = dist.replica.all_reduce mean %a : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }, {
  ^bb0(%a: tensor<2x6xf32>):
    %m = dist.replica.all_reduce sum %a : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }
  return %0 : tensor<6x6xf32>
}

// -----

// Another type.
func.func @types(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.replicate 2 (%x) dims [0] results [0] : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-note @+1 {{of replica 0}}
    %m = dist.replica.all_reduce sum %a : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }, {
  ^bb0(%a: tensor<2x6xf32>):
    %r = nn.reshape %a : tensor<2x6xf32> -> tensor<6x2xf32>
    // expected-error @+1 {{of replica 1 is all_reduce sum of tensor<6x2xf32>, but 'dist.replica.all_reduce' in the same place of replica 0 is all_reduce sum of tensor<2x6xf32>}}
    %m = dist.replica.all_reduce sum %r : tensor<6x2xf32>
    %s = nn.reshape %m : tensor<6x2xf32> -> tensor<2x6xf32>
    dist.yield %s : tensor<2x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

// A replica that waits for nobody.
func.func @more(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.replicate 2 (%x) dims [0] results [0] : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    %m = dist.replica.all_reduce sum %a : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }, {
  ^bb0(%a: tensor<2x6xf32>):
    %m = dist.replica.all_reduce sum %a : tensor<2x6xf32>
    // expected-error @+1 {{'dist.replica.all_reduce' of replica 1, all_reduce max of tensor<2x6xf32>, waits for replica 0, which has only 1 placeholder}}
    %n = dist.replica.all_reduce max %m : tensor<2x6xf32>
    dist.yield %n : tensor<2x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

// The same the other way round.
func.func @fewer(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.replicate 2 (%x) dims [0] results [0] : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-error @+1 {{'dist.replica.all_reduce' of replica 0, all_reduce sum of tensor<2x6xf32>, waits for replica 1, which has only 0 placeholders}}
    %m = dist.replica.all_reduce sum %a : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }, {
  ^bb0(%a: tensor<2x6xf32>):
    dist.yield %a : tensor<2x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

// One program cannot compute two things.
func.func @bodies(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.replicate 2 (%x) dims [0] results [0] : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-note @+1 {{'nn.relu' of replica 0}}
    %m = nn.relu %a : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }, {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-error @+1 {{replica 1 computes 'nn.neg' where replica 0 computes 'nn.relu': one program serves all replicas}}
    %m = nn.neg %a : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

func.func @operands(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.replicate 2 (%x) dims [0] results [0] : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    %m = nn.relu %a : tensor<2x6xf32>
    // expected-note @+1 {{of replica 0}}
    %n = nn.sub %m, %a : tensor<2x6xf32>
    dist.yield %n : tensor<2x6xf32>
  }, {
  ^bb0(%a: tensor<2x6xf32>):
    %m = nn.relu %a : tensor<2x6xf32>
    // expected-error @+1 {{replica 1 computes 'nn.sub' where replica 0 computes 'nn.sub'}}
    %n = nn.sub %a, %m : tensor<2x6xf32>
    dist.yield %n : tensor<2x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

func.func @devices(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {dist.axes = [#dist.axis<"replica" = 4>]} {
  // expected-error @+1 {{there are 2 replicas, and 4 devices along the axis 'replica': give the mesh as many}}
  %0 = dist.replicate 2 (%x) dims [0] results [0] : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    dist.yield %a : tensor<2x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

func.func @gathered(%x: tensor<4x6xf32>) -> tensor<2x18xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.replicate 2 (%x) dims [0] results [-1] : (tensor<4x6xf32>) -> tensor<2x18xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-error @+1 {{'dist.replica.all_gather' is all_gather along dimension 1 of tensor<2x6xf32> for 3 replicas, and there are 2}}
    %m = dist.replica.all_gather %a dim 1 : tensor<2x6xf32> -> tensor<2x18xf32>
    dist.yield %m : tensor<2x18xf32>
  }
  return %0 : tensor<2x18xf32>
}

// -----

func.func @root(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.replicate 2 (%x) dims [0] results [0] : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-error @+1 {{'dist.replica.broadcast' is a broadcast from replica 2; there are replicas 0 to 1}}
    %m = dist.replica.broadcast %a root 2 : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

// One device gives the output, so it must not differ.
func.func @differs(%x: tensor<4x6xf32>) -> (tensor<2x6xf32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.replicate 2 (%x) dims [0] results [-1] : (tensor<4x6xf32>) -> tensor<2x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-error @+1 {{the output 'loss' has no batch dimension, and replicas compute different values for it: join them in the model}}
    %m = nn.relu %a : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }
  return %0 : tensor<2x6xf32>
}

// -----

// A part of what is different everywhere means nothing.
func.func @parts(%x: tensor<4x6xf32>) -> tensor<2x6xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.replicate 2 (%x) dims [0] results [0] : (tensor<4x6xf32>) -> tensor<2x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    // expected-error @+1 {{'dist.replica.shard' deals out a tensor to the replicas, which have different ones: join them before}}
    %m = dist.replica.shard %a dim 0 : tensor<2x6xf32> -> tensor<1x6xf32>
    dist.yield %m : tensor<1x6xf32>
  }
  return %0 : tensor<2x6xf32>
}

// -----

func.func @outside(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{'dist.replica.all_reduce' stands outside of a dist.replicate: run --dist-form-replicas before}}
  %0 = dist.replica.all_reduce sum %x : tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}
