// Products of few rows, which read their weights, and then others that compute.
nn.weight @wide "wide" : tensor<2048x2048xf32> = dense<0.5> : tensor<2048x2048xf32>
func.func @main(%x: tensor<4x2048xf32>) -> tensor<2048x2048xf32> {
  %w = nn.parameter @wide : tensor<2048x2048xf32>
  %a1 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<4x2048xf32>, tensor<2048x2048xf32> -> tensor<4x2048xf32>
  %a2 = nn.dot %a1, %w batch [] x [] contract [1] x [0] : tensor<4x2048xf32>, tensor<2048x2048xf32> -> tensor<4x2048xf32>
  %a3 = nn.dot %a2, %w batch [] x [] contract [1] x [0] : tensor<4x2048xf32>, tensor<2048x2048xf32> -> tensor<4x2048xf32>
  %a4 = nn.dot %a3, %w batch [] x [] contract [1] x [0] : tensor<4x2048xf32>, tensor<2048x2048xf32> -> tensor<4x2048xf32>
  %c = nn.dot %a4, %a4 batch [] x [] contract [0] x [0] : tensor<4x2048xf32>, tensor<4x2048xf32> -> tensor<2048x2048xf32>
  %b1 = nn.dot %c, %c batch [] x [] contract [1] x [0] : tensor<2048x2048xf32>, tensor<2048x2048xf32> -> tensor<2048x2048xf32>
  %b2 = nn.dot %b1, %w batch [] x [] contract [1] x [0] : tensor<2048x2048xf32>, tensor<2048x2048xf32> -> tensor<2048x2048xf32>
  return %b2 : tensor<2048x2048xf32>
}
