//===- pointwise.mlir - Ops on corresponding elements ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @abs(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.abs %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @neg(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.neg %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @relu(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.relu %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @sign(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.sign %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @acos(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.acos %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @acosh(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.acosh %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @asin(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.asin %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @asinh(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.asinh %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @atan(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.atan %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @atanh(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.atanh %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @ceil(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.ceil %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @cos(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.cos %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @cosh(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.cosh %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @erf(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.erf %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @exp(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.exp %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @floor(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.floor %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @log(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.log %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @logistic(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.logistic %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @reciprocal(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.reciprocal %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @round_even(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.round_even %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @rsqrt(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.rsqrt %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @sin(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.sin %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @sinh(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.sinh %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @sqrt(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.sqrt %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @tan(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.tan %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @tanh(%x: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.tanh %x : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @not(%x: tensor<2x6xi32>) -> tensor<2x6xi32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.not %x : tensor<2x6xi32>
  return %r : tensor<2x6xi32>
}

func.func @add(%x: tensor<2x6xf32>, %y: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.add %x, %y : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @sub(%x: tensor<2x6xf32>, %y: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.sub %x, %y : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @mul(%x: tensor<2x6xf32>, %y: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.mul %x, %y : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @div(%x: tensor<2x6xf32>, %y: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.div %x, %y : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @rem(%x: tensor<2x6xf32>, %y: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.rem %x, %y : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @pow(%x: tensor<2x6xf32>, %y: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.pow %x, %y : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @max(%x: tensor<2x6xf32>, %y: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.max %x, %y : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @min(%x: tensor<2x6xf32>, %y: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.min %x, %y : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @and(%x: tensor<2x6xi32>, %y: tensor<2x6xi32>) -> tensor<2x6xi32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.and %x, %y : tensor<2x6xi32>
  return %r : tensor<2x6xi32>
}

func.func @or(%x: tensor<2x6xi32>, %y: tensor<2x6xi32>) -> tensor<2x6xi32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.or %x, %y : tensor<2x6xi32>
  return %r : tensor<2x6xi32>
}

func.func @xor(%x: tensor<2x6xi32>, %y: tensor<2x6xi32>) -> tensor<2x6xi32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.xor %x, %y : tensor<2x6xi32>
  return %r : tensor<2x6xi32>
}

func.func @shift_left(%x: tensor<2x6xi32>, %y: tensor<2x6xi32>) -> tensor<2x6xi32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.shift_left %x, %y : tensor<2x6xi32>
  return %r : tensor<2x6xi32>
}

func.func @shift_right(%x: tensor<2x6xi32>, %y: tensor<2x6xi32>) -> tensor<2x6xi32> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.shift_right %x, %y : tensor<2x6xi32>
  return %r : tensor<2x6xi32>
}

func.func @compare(%x: tensor<2x6xf32>, %y: tensor<2x6xf32>) -> tensor<2x6xi1> attributes {
    rule = "([i,j],[i,j])->([i,j])"} {
  %r = nn.compare lt %x, %y : tensor<2x6xf32> -> tensor<2x6xi1>
  return %r : tensor<2x6xi1>
}

func.func @select(%p: tensor<2x6xi1>, %x: tensor<2x6xf32>, %y: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {
    rule = "([i,j],[i,j],[i,j])->([i,j])"} {
  %r = nn.select %p, %x, %y : tensor<2x6xi1>, tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @cast(%x: tensor<2x6xf32>) -> tensor<2x6xi32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.cast %x : tensor<2x6xf32> -> tensor<2x6xi32>
  return %r : tensor<2x6xi32>
}

func.func @bitcast(%x: tensor<2x6xf32>) -> tensor<2x6xi32> attributes {
    rule = "([i,j])->([i,j])"} {
  %r = nn.bitcast %x : tensor<2x6xf32> -> tensor<2x6xi32>
  return %r : tensor<2x6xi32>
}

func.func @add_scalar(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> attributes {
    rule = "([],[])->([])"} {
  %r = nn.add %x, %y : tensor<f32>
  return %r : tensor<f32>
}
