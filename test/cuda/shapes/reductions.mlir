// Reductions of so many elements to so few that threads share a result: columns
// whose number is no power of two, several reduced dimensions, all kinds, and
// what is computed of results.

func.func @columns(%x: tensor<5000x8xf32>) -> tensor<8xf32> {
  %0 = nn.reduce sum %x [0] : tensor<5000x8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func @columns_of_an_edge(%x: tensor<300x1001xf32>, %y: tensor<1001xf32>) -> tensor<1001xf32> {
  %0 = nn.reduce max %x [0] : tensor<300x1001xf32> -> tensor<1001xf32>
  %1 = nn.mul %0, %y : tensor<1001xf32>
  return %1 : tensor<1001xf32>
}

func.func @columns_of_integers(%x: tensor<7x200x3xi64>) -> tensor<7x3xi64> {
  %0 = nn.reduce sum %x [1] : tensor<7x200x3xi64> -> tensor<7x3xi64>
  %1 = nn.add %0, %0 : tensor<7x3xi64>
  return %1 : tensor<7x3xi64>
}

func.func @columns_of_maxima(%x: tensor<9x30x20x5xf32>) -> tensor<9x5xf32> {
  %0 = nn.reduce max %x [1, 2] : tensor<9x30x20x5xf32> -> tensor<9x5xf32>
  %1 = nn.relu %0 : tensor<9x5xf32>
  return %1 : tensor<9x5xf32>
}

func.func @columns_of_doubles(%x: tensor<1000x40xf64>) -> tensor<40xf64> {
  %0 = nn.reduce sum %x [0] : tensor<1000x40xf64> -> tensor<40xf64>
  return %0 : tensor<40xf64>
}

func.func @columns_of_halves(%x: tensor<1000x40xf32>) -> tensor<40xf32> {
  %h = nn.cast %x : tensor<1000x40xf32> -> tensor<1000x40xf16>
  %s = nn.reduce max %h [0] : tensor<1000x40xf16> -> tensor<40xf16>
  %0 = nn.cast %s : tensor<40xf16> -> tensor<40xf32>
  return %0 : tensor<40xf32>
}

func.func @product_with_a_long_sum(%x: tensor<20x600xf64>, %y: tensor<600x30xf64>) -> tensor<20x30xf64> {
  %0 = nn.dot %x, %y batch [] x [] contract [1] x [0] : tensor<20x600xf64>, tensor<600x30xf64> -> tensor<20x30xf64>
  return %0 : tensor<20x30xf64>
}

func.func @whole_sum(%x: tensor<300000xf32>) -> tensor<f32> {
  %0 = nn.reduce sum %x [0] : tensor<300000xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

func.func @long_columns(%x: tensor<40000x3xf32>, %y: tensor<40000x3xf32>) -> tensor<3xf32> {
  %p = nn.mul %x, %y : tensor<40000x3xf32>
  %0 = nn.reduce sum %p [0] : tensor<40000x3xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

func.func @a_prime_of_rows(%x: tensor<30011x3xf32>) -> tensor<3xf32> {
  %0 = nn.reduce max %x [0] : tensor<30011x3xf32> -> tensor<3xf32>
  %1 = nn.add %0, %0 : tensor<3xf32>
  return %1 : tensor<3xf32>
}

func.func @sum_of_squares(%x: tensor<200000xf32>, %y: tensor<200000xf32>) -> tensor<f32> {
  %d = nn.sub %x, %y : tensor<200000xf32>
  %s = nn.mul %d, %d : tensor<200000xf32>
  %0 = nn.reduce sum %s [0] : tensor<200000xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
