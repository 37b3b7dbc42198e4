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

// Rows that are summed at given places: upon zeros and upon a tensor, rows that do not fill a block's turns, more updates than a block has threads, of which
// many have one row or none. What is short, or of halves, is reduced.

func.func @scatter_of_rows(%p: tensor<300xi64>, %u: tensor<300x700xf32>) -> tensor<50x700xf32> {
  %zero = nn.constant dense<0.0> : tensor<50x700xf32>
  %0 = nn.scatter %zero %p %u combine sum : tensor<50x700xf32>, tensor<300xi64>, tensor<300x700xf32>
  return %0 : tensor<50x700xf32>
}

func.func @scatter_upon(%x: tensor<1200x33xf64>, %p: tensor<64xi64>, %u: tensor<64x33xf64>) -> tensor<1200x33xf64> {
  %0 = nn.scatter %x %p %u combine sum : tensor<1200x33xf64>, tensor<64xi64>, tensor<64x33xf64>
  return %0 : tensor<1200x33xf64>
}

func.func @scatter_of_integers(%x: tensor<700x50xi32>, %p: tensor<257xi64>, %u: tensor<257x50xi32>) -> tensor<700x50xi32> {
  %0 = nn.scatter %x %p %u combine sum : tensor<700x50xi32>, tensor<257xi64>, tensor<257x50xi32>
  return %0 : tensor<700x50xi32>
}

func.func @scatter_beside(%p: tensor<2x40xi64>, %u: tensor<2x40x512xf32>) -> tensor<70x512xf32> {
  %zero = nn.constant dense<1.0> : tensor<70x512xf32>
  %q = nn.reshape %p : tensor<2x40xi64> -> tensor<80xi64>
  %v = nn.reshape %u : tensor<2x40x512xf32> -> tensor<80x512xf32>
  %0 = nn.scatter %zero %q %v combine sum : tensor<70x512xf32>, tensor<80xi64>, tensor<80x512xf32>
  %1 = nn.relu %0 : tensor<70x512xf32>
  return %1 : tensor<70x512xf32>
}

func.func @scatter_of_halves(%p: tensor<100xi64>, %u: tensor<100x700xf16>) -> tensor<50x700xf16> {
  %zero = nn.constant dense<0.0> : tensor<50x700xf16>
  %0 = nn.scatter %zero %p %u combine sum : tensor<50x700xf16>, tensor<100xi64>, tensor<100x700xf16>
  return %0 : tensor<50x700xf16>
}

// Blocks make three rows each, and the last one makes one. Updates go to many of them.
func.func @scatter_over_a_table(%p: tensor<600xi64>, %u: tensor<600x48xf32>) -> tensor<3100x48xf32> {
  %apart = nn.constant dense<431> : tensor<600xi64>
  %n = nn.iota 0 : tensor<600xi64>
  %wide = nn.mul %p, %apart : tensor<600xi64>
  %q = nn.add %wide, %n : tensor<600xi64>
  %zero = nn.constant dense<0.0> : tensor<3100x48xf32>
  %0 = nn.scatter %zero %q %u combine sum : tensor<3100x48xf32>, tensor<600xi64>, tensor<600x48xf32>
  return %0 : tensor<3100x48xf32>
}
