// Scans of rows that a block carries sums through: one part and several, rows
// along any dimension, all kinds and types.

func.func @scan_of_a_row(%x: tensor<5000xf32>) -> tensor<5000xf32> {
  %0 = nn.scan sum %x dim 0 : tensor<5000xf32>
  return %0 : tensor<5000xf32>
}

func.func @scan_of_one_part(%x: tensor<7x129xf64>) -> tensor<7x129xf64> {
  %0 = nn.scan sum %x dim 1 : tensor<7x129xf64>
  return %0 : tensor<7x129xf64>
}

func.func @scan_of_whole_parts(%x: tensor<2x2048x3xi64>) -> tensor<2x2048x3xi64> {
  %s = nn.scan sum %x dim 1 : tensor<2x2048x3xi64>
  %0 = nn.add %s, %s : tensor<2x2048x3xi64>
  return %0 : tensor<2x2048x3xi64>
}

func.func @scan_of_maxima(%x: tensor<3x1500xf32>) -> tensor<3x1500xf32> {
  %s = nn.scan max %x dim 1 : tensor<3x1500xf32>
  %0 = nn.add %s, %x : tensor<3x1500xf32>
  return %0 : tensor<3x1500xf32>
}

func.func @scan_of_minima(%x: tensor<1025x2xi32>) -> tensor<1025x2xi32> {
  %s = nn.scan min %x dim 0 : tensor<1025x2xi32>
  %0 = nn.add %s, %x : tensor<1025x2xi32>
  return %0 : tensor<1025x2xi32>
}

func.func @scan_of_products(%x: tensor<2x300xi32>) -> tensor<2x300xi32> {
  %s = nn.scan prod %x dim 1 : tensor<2x300xi32>
  %0 = nn.add %s, %x : tensor<2x300xi32>
  return %0 : tensor<2x300xi32>
}

func.func @scan_of_a_short_row(%x: tensor<300x50xf32>) -> tensor<300x50xf32> {
  %0 = nn.scan sum %x dim 1 : tensor<300x50xf32>
  return %0 : tensor<300x50xf32>
}
