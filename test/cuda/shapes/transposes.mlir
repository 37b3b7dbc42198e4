// Transposes of so many elements that blocks take tiles of them: sides that are
// no multiples of a tile or shorter than one, all sizes of elements, several
// operands and results, and what is read in other ways.

func.func @transpose_square(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %0 = nn.transpose %x [1, 0] : tensor<256x256xf32> -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}

func.func @transpose_edges(%x: tensor<3x101x203xf32>, %bias: tensor<101xf32>, %c: tensor<3x203x101xf32>) -> tensor<3x203x101xf32> {
  %t = nn.transpose %x [0, 2, 1] : tensor<3x101x203xf32> -> tensor<3x203x101xf32>
  %b = nn.broadcast %bias [2] : tensor<101xf32> -> tensor<3x203x101xf32>
  %s = nn.add %t, %b : tensor<3x203x101xf32>
  %d = nn.mul %s, %c : tensor<3x203x101xf32>
  %0 = nn.relu %d : tensor<3x203x101xf32>
  return %0 : tensor<3x203x101xf32>
}

func.func @transpose_doubles(%x: tensor<190x201xf64>) -> tensor<201x190xf64> {
  %t = nn.transpose %x [1, 0] : tensor<190x201xf64> -> tensor<201x190xf64>
  %0 = nn.add %t, %t : tensor<201x190xf64>
  return %0 : tensor<201x190xf64>
}

func.func @transpose_halves(%x: tensor<190x201xf32>, %y: tensor<201x190xf32>) -> tensor<201x190xf32> {
  %h = nn.cast %x : tensor<190x201xf32> -> tensor<190x201xf16>
  %z = nn.cast %y : tensor<201x190xf32> -> tensor<201x190xf16>
  %t = nn.transpose %h [1, 0] : tensor<190x201xf16> -> tensor<201x190xf16>
  %s = nn.add %t, %z : tensor<201x190xf16>
  %0 = nn.cast %s : tensor<201x190xf16> -> tensor<201x190xf32>
  return %0 : tensor<201x190xf32>
}

func.func @transpose_short_floats(%x: tensor<190x201xf32>, %y: tensor<201x190xf32>) -> tensor<201x190xf32> {
  %h = nn.cast %x : tensor<190x201xf32> -> tensor<190x201xbf16>
  %z = nn.cast %y : tensor<201x190xf32> -> tensor<201x190xbf16>
  %t = nn.transpose %h [1, 0] : tensor<190x201xbf16> -> tensor<201x190xbf16>
  %s = nn.add %t, %z : tensor<201x190xbf16>
  %0 = nn.cast %s : tensor<201x190xbf16> -> tensor<201x190xf32>
  return %0 : tensor<201x190xf32>
}

func.func @transpose_conditions(%x: tensor<190x201xi1>) -> (tensor<201x190xi1>, tensor<201x190xi1>) {
  %t = nn.transpose %x [1, 0] : tensor<190x201xi1> -> tensor<201x190xi1>
  %0 = nn.not %t : tensor<201x190xi1>
  return %0, %t : tensor<201x190xi1>, tensor<201x190xi1>
}

func.func @transpose_bytes(%x: tensor<70000x3xui8>) -> tensor<3x70000xui8> {
  %0 = nn.transpose %x [1, 0] : tensor<70000x3xui8> -> tensor<3x70000xui8>
  return %0 : tensor<3x70000xui8>
}

func.func @transpose_few_written(%x: tensor<9x5000xi32>) -> tensor<5000x9xi32> {
  %0 = nn.transpose %x [1, 0] : tensor<9x5000xi32> -> tensor<5000x9xi32>
  return %0 : tensor<5000x9xi32>
}

func.func @transpose_heads(%x: tensor<2x70x4x64xf32>) -> tensor<2x4x64x70xf32> {
  %0 = nn.transpose %x [0, 2, 3, 1] : tensor<2x70x4x64xf32> -> tensor<2x4x64x70xf32>
  return %0 : tensor<2x4x64x70xf32>
}

func.func @transpose_reversed(%x: tensor<30x40x50xi64>) -> tensor<50x40x30xi64> {
  %0 = nn.transpose %x [2, 1, 0] : tensor<30x40x50xi64> -> tensor<50x40x30xi64>
  return %0 : tensor<50x40x30xi64>
}

func.func @transpose_two(%x: tensor<200x201xf32>, %y: tensor<200x201xf32>, %z: tensor<201x200xf32>) -> tensor<201x200xf32> {
  %s = nn.transpose %x [1, 0] : tensor<200x201xf32> -> tensor<201x200xf32>
  %t = nn.transpose %y [1, 0] : tensor<200x201xf32> -> tensor<201x200xf32>
  %a = nn.mul %s, %z : tensor<201x200xf32>
  %b = nn.max %t, %z : tensor<201x200xf32>
  %0 = nn.sub %a, %b : tensor<201x200xf32>
  return %0 : tensor<201x200xf32>
}

func.func @transpose_and_itself(%x: tensor<201x201xf32>) -> tensor<201x201xf32> {
  %t = nn.transpose %x [1, 0] : tensor<201x201xf32> -> tensor<201x201xf32>
  %0 = nn.sub %x, %t : tensor<201x201xf32>
  return %0 : tensor<201x201xf32>
}

func.func @transpose_part(%x: tensor<201x400xf32>) -> tensor<200x201xf32> {
  %p = nn.slice %x [0, 100] to [201, 300] by [1, 1] : tensor<201x400xf32> -> tensor<201x200xf32>
  %t = nn.transpose %p [1, 0] : tensor<201x200xf32> -> tensor<200x201xf32>
  %i = nn.iota 1 : tensor<200x201xf32>
  %0 = nn.add %t, %i : tensor<200x201xf32>
  return %0 : tensor<200x201xf32>
}

func.func @transposes_of_a_group(%x: tensor<200x201xf32>, %y: tensor<200x201xf32>, %z: tensor<300x150xf32>) -> (tensor<201x200xf32>, tensor<201x200xf32>, tensor<150x300xf32>) {
  %0 = nn.transpose %x [1, 0] : tensor<200x201xf32> -> tensor<201x200xf32>
  %1 = nn.transpose %y [1, 0] : tensor<200x201xf32> -> tensor<201x200xf32>
  %2 = nn.transpose %z [1, 0] : tensor<300x150xf32> -> tensor<150x300xf32>
  return %0, %1, %2 : tensor<201x200xf32>, tensor<201x200xf32>, tensor<150x300xf32>
}
