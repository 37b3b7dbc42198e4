// Weights that are worth cutting where devices are near each other.
nn.weight @up "up" : tensor<8192x16384xf32> = dense<0.5> : tensor<8192x16384xf32>
nn.weight @down "down" : tensor<16384x8192xf32> = dense<0.5> : tensor<16384x8192xf32>
func.func @main(%x: tensor<4x8192xf32>) -> tensor<4x8192xf32> {
  %u = nn.parameter @up : tensor<8192x16384xf32>
  %d = nn.parameter @down : tensor<16384x8192xf32>
  %0 = nn.dot %x, %u batch [] x [] contract [1] x [0] : tensor<4x8192xf32>, tensor<8192x16384xf32> -> tensor<4x16384xf32>
  %1 = nn.relu %0 : tensor<4x16384xf32>
  %2 = nn.dot %1, %d batch [] x [] contract [1] x [0] : tensor<4x16384xf32>, tensor<16384x8192xf32> -> tensor<4x8192xf32>
  return %2 : tensor<4x8192xf32>
}
