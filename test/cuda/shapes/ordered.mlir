// Scans of rows that a block carries sums through: one part and several, rows
// along any dimension, all kinds and types. A few elements of long rows, of which
// many are equal.

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

func.func @few_largest(%x: tensor<3x5001xf32>) -> tensor<3x20xi64> {
  %0 = nn.top_k largest %x : tensor<3x5001xf32> -> tensor<3x20xi64>
  return %0 : tensor<3x20xi64>
}

func.func @few_smallest(%x: tensor<2x1000xf64>) -> tensor<2x7xi64> {
  %0 = nn.top_k %x : tensor<2x1000xf64> -> tensor<2x7xi64>
  return %0 : tensor<2x7xi64>
}

func.func @few_integers(%x: tensor<5x256xi64>) -> tensor<5x14xi64> {
  %0 = nn.top_k largest %x : tensor<5x256xi64> -> tensor<5x14xi64>
  return %0 : tensor<5x14xi64>
}

func.func @one_of_a_row(%x: tensor<1x300xi32>) -> tensor<1x1xi64> {
  %0 = nn.top_k %x : tensor<1x300xi32> -> tensor<1x1xi64>
  return %0 : tensor<1x1xi64>
}

func.func @all_in_order(%x: tensor<2x300xf32>) -> tensor<2x300xi64> {
  %0 = nn.top_k largest %x : tensor<2x300xf32> -> tensor<2x300xi64>
  return %0 : tensor<2x300xi64>
}

func.func @roots_in_order(%x: tensor<2x700xf32>) -> tensor<2x60xi64> {
  %r = nn.sqrt %x : tensor<2x700xf32>
  %0 = nn.top_k largest %r : tensor<2x700xf32> -> tensor<2x60xi64>
  return %0 : tensor<2x60xi64>
}
