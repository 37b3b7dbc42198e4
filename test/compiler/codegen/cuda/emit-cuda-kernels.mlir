// RUN: partita-opt --emit-cuda-kernels --split-input-file -verify-diagnostics %s | FileCheck %s

#id = affine_map<(d0) -> (d0)>

// A thread computes four elements. The last block has threads too many.
// CHECK: func.func @points(%[[X:.*]]: memref<132000xf32, 1> {llvm.align = 64 : i64, llvm.noalias}, %[[R:.*]]: memref<132000xf32, 1> {llvm.align = 64 : i64, llvm.noalias})
// CHECK: nvvm.read.ptx.sreg.ctaid.x
// CHECK: nvvm.read.ptx.sreg.tid.x
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c4_i32
// CHECK: arith.cmpi ult, %[[FIRST]], %c132000_i32
// CHECK: vector.load %[[X]]{{.*}} {alignment = 16 : i64}
// CHECK: vector.store %{{.*}}, %[[R]]{{.*}} {alignment = 16 : i64}
func.func @points(%x: tensor<132000xf32>, %r: tensor<132000xf32>) -> tensor<132000xf32>
    attributes {nn.grid = {threads = 128 : i64, row_threads = 1 : i64, width = 4 : i64}, nn.schedule = {rows = [array<i64: 0>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64>}} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<132000xf32>) outs(%r : tensor<132000xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.mulf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<132000xf32>
  return %0 : tensor<132000xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

// A weight may begin at any element.
// CHECK: func.func @unaligned(%[[X:.*]]: memref<131072xf32, 1> {llvm.noalias}, %[[R:.*]]: memref<131072xf32, 1> {llvm.align = 64 : i64, llvm.noalias})
// CHECK-NOT: scf.if
// CHECK: vector.load %[[X]][%{{.*}}] : memref
// CHECK: vector.store %{{.*}}, %[[R]]{{.*}} {alignment = 16 : i64}
func.func @unaligned(%x: tensor<131072xf32> {nn.unaligned}, %r: tensor<131072xf32>) -> tensor<131072xf32>
    attributes {nn.grid = {threads = 128 : i64, row_threads = 1 : i64, width = 4 : i64}, nn.schedule = {rows = [array<i64: 0>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64>}} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<131072xf32>) outs(%r : tensor<131072xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.mulf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<131072xf32>
  return %0 : tensor<131072xf32>
}

// -----

#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A warp a row: temporaries lie in shared memory, and a sum goes from register
// to register.
// CHECK: memref.global "private" @rows_shared0 : memref<400xf32, 3>
// CHECK-LABEL: func.func @rows
// CHECK: math.exp
// CHECK: vector.store %{{.*}}, %{{.*}} : memref<400xf32, 3>
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.barrier
// CHECK: arith.divf
func.func @rows(%x: tensor<8x100xf32>, %r: tensor<8x100xf32>) -> tensor<8x100xf32>
    attributes {nn.grid = {threads = 128 : i64, row_threads = 32 : i64, width = 1 : i64}, nn.schedule = {rows = [array<i64: 0, -1>, array<i64: 0, -1>, array<i64: 0, -1>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64>}} {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x100xf32>
  %0 = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x100xf32>) outs(%e0 : tensor<8x100xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = math.exp %in : f32
    linalg.yield %4 : f32
  } -> tensor<8x100xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#matrix, #row], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<8x100xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = arith.addf %out, %in : f32
    linalg.yield %4 : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#matrix, #row, #matrix], iterator_types = ["parallel", "parallel"]} ins(%0, %1 : tensor<8x100xf32>, tensor<8xf32>) outs(%r : tensor<8x100xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %4 = arith.divf %in, %sum : f32
    linalg.yield %4 : f32
  } -> tensor<8x100xf32>
  return %2 : tensor<8x100xf32>
}

// -----

#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>

// A sum that lies where an operand of its row was: one thread writes it when all
// have read. Then the row itself, when all have read that.
// CHECK-LABEL: func.func @in_place
// CHECK-SAME: (%{{.*}}: memref<800xf32, 1> {{.*}}, %[[Y:.*]]: memref<8xf32, 1> {{.*}}, %{{.*}}: memref<8xf32, 1> {{.*}}, %[[S:.*]]: memref<8xf32, 1> {{.*}}, %{{.*}}: memref<800xf32, 1> {{.*}})
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: memref.load %[[Y]]
// CHECK: nvvm.bar.warp.sync
// CHECK: memref.store %{{.*}}, %[[S]]
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.for
func.func @in_place(%x: tensor<8x100xf32>, %y: tensor<8xf32>, %z: tensor<8xf32>, %s: tensor<8xf32>, %r: tensor<8x100xf32>) -> (tensor<8xf32>, tensor<8x100xf32>)
    attributes {nn.grid = {threads = 128 : i64, row_threads = 32 : i64, width = 1 : i64}, nn.schedule = {rows = [array<i64: 0, -1>, array<i64: 0>, array<i64: 0, -1>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64: 0, 1, 1, 0>}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#matrix, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x100xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = arith.addf %out, %in : f32
    linalg.yield %4 : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#one, #one, #one, #one], iterator_types = ["parallel"]} ins(%0, %y, %z : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%s : tensor<8xf32>) {
  ^bb0(%in: f32, %a: f32, %b: f32, %out: f32):
    %4 = arith.addf %in, %a : f32
    %5 = arith.addf %4, %b : f32
    linalg.yield %5 : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#matrix, #row, #matrix], iterator_types = ["parallel", "parallel"]} ins(%x, %1 : tensor<8x100xf32>, tensor<8xf32>) outs(%r : tensor<8x100xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %4 = arith.divf %in, %sum : f32
    linalg.yield %4 : f32
  } -> tensor<8x100xf32>
  return %1, %2 : tensor<8xf32>, tensor<8x100xf32>
}

// -----

#matrix = affine_map<(d0, d1) -> (d0, d1)>
#crossed = affine_map<(d0, d1) -> (d1, d0)>

// A block loads a tile of 32x32 along the operand's rows. Lines of 33 elements in
// shared memory keep its threads out of each other's banks. It stores along the
// result's rows; only there does a thread that has no element do nothing.
// CHECK: memref.global "private" @tiles_tile0 : memref<1056xf32, 3>
// CHECK-LABEL: func.func @tiles
// CHECK-SAME: (%[[X:.*]]: memref<180500xf32, 1> {{.*}}, %[[Y:.*]]: memref<180500xf32, 1> {{.*}}, %[[R:.*]]: memref<180500xf32, 1> {{.*}})
// CHECK-NOT: scf.if
// CHECK-COUNT-4: memref.load %[[X]]
// CHECK-COUNT-4: memref.store %{{.*}}, %{{.*}} : memref<1056xf32, 3>
// CHECK: nvvm.barrier0
// CHECK: scf.for
// CHECK: scf.if
// CHECK: arith.muli %{{.*}}, %c33_i32
// CHECK: memref.load %{{.*}} : memref<1056xf32, 3>
// CHECK: memref.load %[[Y]]
// CHECK: arith.addf
// CHECK: memref.store %{{.*}}, %[[R]]
func.func @tiles(%x: tensor<361x500xf32>, %y: tensor<500x361xf32>, %r: tensor<500x361xf32>) -> tensor<500x361xf32>
    attributes {nn.grid = {threads = 256 : i64, row_threads = 1 : i64, width = 1 : i64, tile = array<i64: 32, 32>}, nn.schedule = {rows = [array<i64: 0, 1>], tiles = array<i64: 1, 1>, grain = 1 : i64, in_place = array<i64>}} {
  %0 = linalg.generic {indexing_maps = [#crossed, #matrix, #matrix], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<361x500xf32>, tensor<500x361xf32>) outs(%r : tensor<500x361xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %1 = arith.addf %in, %other : f32
    linalg.yield %1 : f32
  } -> tensor<500x361xf32>
  return %0 : tensor<500x361xf32>
}

// -----

#matrix = affine_map<(d0, d1) -> (d0, d1)>

// Nothing crosses here.
// expected-error@+1 {{the kernel's grid is not one of its stages}}
func.func @no_tiles(%x: tensor<361x500xf32>, %r: tensor<361x500xf32>) -> tensor<361x500xf32>
    attributes {nn.grid = {threads = 256 : i64, row_threads = 1 : i64, width = 1 : i64, tile = array<i64: 32, 32>}, nn.schedule = {rows = [array<i64: 0, 1>], tiles = array<i64: 1, 1>, grain = 1 : i64, in_place = array<i64>}} {
  %0 = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<361x500xf32>) outs(%r : tensor<361x500xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<361x500xf32>
  return %0 : tensor<361x500xf32>
}

// -----

#columns = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>

// A block has 32 columns, 8 threads a column: neighbours read along a row. Those
// behind the last column sum the last one up, too, and store nothing. The sums
// of a column meet in shared memory.
// CHECK: memref.global "private" @columns_shared0 : memref<256xf32, 3>
// CHECK-LABEL: func.func @columns
// CHECK: %[[COLUMN:.*]] = arith.remui %{{.*}}, %c32_i32
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %[[COLUMN]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi ule, %[[ROW]], %c1000_i32
// CHECK: %[[STORES:.*]] = arith.andi %{{.*}}, %[[INSIDE]]
// CHECK: arith.minui %[[ROW]], %c1000_i32
// CHECK-NOT: scf.if
// CHECK: scf.for
// CHECK: memref.store %{{.*}} : memref<256xf32, 3>
// CHECK-COUNT-4: nvvm.barrier0
// CHECK-NOT: nvvm.barrier0
// CHECK: scf.if %[[STORES]]
func.func @columns(%x: tensor<500x1001xf32>, %r: tensor<1001xf32>) -> tensor<1001xf32>
    attributes {nn.grid = {threads = 256 : i64, row_threads = 8 : i64, width = 1 : i64, columns = 32 : i64}, nn.schedule = {rows = [array<i64: 0, -1>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64>}} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<1001xf32>) -> tensor<1001xf32>
  %1 = linalg.generic {indexing_maps = [#columns, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<500x1001xf32>) outs(%init : tensor<1001xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = arith.addf %out, %in : f32
    linalg.yield %4 : f32
  } -> tensor<1001xf32>
  return %1 : tensor<1001xf32>
}

// -----

#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Six threads cannot halve what they have.
// expected-error@+1 {{the kernel's grid is not one of its stages}}
func.func @odd_columns(%x: tensor<500x1001xf32>, %r: tensor<500xf32>) -> tensor<500xf32>
    attributes {nn.grid = {threads = 192 : i64, row_threads = 6 : i64, width = 1 : i64, columns = 32 : i64}, nn.schedule = {rows = [array<i64: 0, -1>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64>}} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<500xf32>) -> tensor<500xf32>
  %1 = linalg.generic {indexing_maps = [#matrix, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<500x1001xf32>) outs(%init : tensor<500xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = arith.addf %out, %in : f32
    linalg.yield %4 : f32
  } -> tensor<500xf32>
  return %1 : tensor<500xf32>
}

// -----

#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A block a row: the sums of its eight warps meet in shared memory.
// CHECK: memref.global "private" @rows_shared1 : memref<8xf32, 3>
// CHECK-LABEL: func.func @rows
// CHECK: nvvm.barrier0
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: nvvm.barrier0
// CHECK-COUNT-8: memref.load
// CHECK-NOT: nvvm.barrier
// CHECK: arith.divf
func.func @rows(%x: tensor<8x4000xf32>, %r: tensor<8x4000xf32>) -> tensor<8x4000xf32>
    attributes {nn.grid = {threads = 256 : i64, row_threads = 256 : i64, width = 1 : i64}, nn.schedule = {rows = [array<i64: 0, -1>, array<i64: 0, -1>, array<i64: 0, -1>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64>}} {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x4000xf32>
  %0 = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x4000xf32>) outs(%e0 : tensor<8x4000xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = math.exp %in : f32
    linalg.yield %4 : f32
  } -> tensor<8x4000xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#matrix, #row], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<8x4000xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = arith.addf %out, %in : f32
    linalg.yield %4 : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#matrix, #row, #matrix], iterator_types = ["parallel", "parallel"]} ins(%0, %1 : tensor<8x4000xf32>, tensor<8xf32>) outs(%r : tensor<8x4000xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %4 = arith.divf %in, %sum : f32
    linalg.yield %4 : f32
  } -> tensor<8x4000xf32>
  return %2 : tensor<8x4000xf32>
}

// -----

// A block a sequence: products by warps, gates by threads, states in shared
// memory.
// CHECK: memref.global "private" @layer_sums : memref<4xf32, 3>
// CHECK: memref.global "private" @layer_state : memref<4xf32, 3>
// CHECK-LABEL: func.func @layer
// CHECK: nvvm.barrier0
// CHECK: scf.for
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: nvvm.barrier0
// CHECK: math.tanh
// CHECK: nvvm.barrier0
func.func @layer(%x: tensor<7x2x1x4xf32>, %w: tensor<1x4x4xf32>, %out: tensor<8x1x2x4xf32>) -> tensor<8x1x2x4xf32> {
  %r = nn.recurrent rnn %x, %w reversed [false] functions [#nn.gate<tanh>] : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
  return %r : tensor<8x1x2x4xf32>
}

// -----

// A block a row of 2000, in two parts: four elements a thread, then those of its
// warp, of its block, and of the parts before. Both barriers are in the loop that
// all threads run through.
// CHECK: memref.global "private" @scan_warps : memref<8xf64, 3>
// CHECK-LABEL: func.func @scan
// CHECK: scf.for %{{.*}} = %c0 to %c2000 step %c1024 iter_args(%[[CARRIED:.*]] = %{{.*}}) -> (f64)
// CHECK-COUNT-10: nvvm.shfl.sync up
// CHECK: nvvm.barrier0
// CHECK: arith.addf %[[CARRIED]]
// CHECK-COUNT-4: memref.store %{{.*}} : memref<12000xf64, 1>
// CHECK: nvvm.barrier0
// CHECK: scf.yield
func.func @scan(%x: tensor<2x2000x3xf64>, %r: tensor<2x2000x3xf64>) -> tensor<2x2000x3xf64>
    attributes {nn.grid = {threads = 256 : i64}} {
  %0 = nn.scan sum %x dim 1 : tensor<2x2000x3xf64>
  return %0 : tensor<2x2000x3xf64>
}

// -----

// A pass over the row for each of three results, behind the one before it. The
// candidates of threads meet by shuffles, those of warps in shared memory. All
// threads run through all passes.
// CHECK-DAG: memref.global "private" @choose_elements : memref<8xf32, 3>
// CHECK-DAG: memref.global "private" @choose_places : memref<8xi32, 3>
// CHECK-LABEL: func.func @choose
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c3{{.*}} step %c1{{.*}} iter_args(%[[LAST:[^ ]*]] = {{.*}}) -> (f32, i32)
// CHECK: scf.for %{{.*}} to %c1000{{.*}} step %c256{{.*}} iter_args
// CHECK: arith.cmpf olt, %[[LAST]]
// CHECK-COUNT-10: nvvm.shfl.sync bfly
// CHECK: nvvm.barrier0
// CHECK: memref.load %{{.*}} : memref<8xf32, 3>
// CHECK: nvvm.barrier0
// CHECK: memref.store %{{.*}} : memref<15xi64, 1>
func.func @choose(%x: tensor<5x1000xf32>, %r: tensor<5x3xi64>) -> tensor<5x3xi64>
    attributes {nn.grid = {threads = 256 : i64}} {
  %0 = nn.top_k largest %x : tensor<5x1000xf32> -> tensor<5x3xi64>
  return %0 : tensor<5x3xi64>
}

// -----

#id = affine_map<(d0) -> (d0)>

// expected-error@+1 {{the kernel's grid is not one of its stages}}
func.func @too_wide(%x: tensor<1001xf32>, %r: tensor<1001xf32>) -> tensor<1001xf32>
    attributes {nn.grid = {threads = 128 : i64, row_threads = 1 : i64, width = 4 : i64}, nn.schedule = {rows = [array<i64: 0>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64>}} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<1001xf32>) outs(%r : tensor<1001xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.mulf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<1001xf32>
  return %0 : tensor<1001xf32>
}

// -----

// expected-error@+1 {{the kernel has no schedule}}
func.func @undecided(%x: tensor<1xf32>, %r: tensor<1xf32>) -> tensor<1xf32> {
  return %x : tensor<1xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

// Two blocks of the one kernel, twice, and then one of the other. Each member
// has its own operands; what only groups start is no kernel by itself.
// CHECK: func.func @group(%[[A:.*]]: memref<200xf32, 1> {llvm.align = 64 : i64, llvm.noalias}, %[[B:.*]]: memref<200xf32, 1> {llvm.align = 64 : i64, llvm.noalias}, %[[C:.*]]: memref<60xf32, 1> {llvm.align = 64 : i64}, %[[RA:.*]]: memref<200xf32, 1> {llvm.align = 64 : i64, llvm.noalias}, %[[RB:.*]]: memref<200xf32, 1> {llvm.align = 64 : i64, llvm.noalias}, %[[RC:.*]]: memref<60xf32, 1> {llvm.align = 64 : i64})
// CHECK: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[OWN:.*]] = arith.subi %[[BLOCK]], %c0_i32
// CHECK: %[[HERE:.*]] = arith.cmpi ult, %[[OWN]], %c4_i32
// CHECK: scf.if %[[HERE]]
// CHECK:   %[[WHICH:.*]] = arith.divui %[[OWN]], %c2_i32
// CHECK:   arith.remui %[[OWN]], %c2_i32
// CHECK:   %[[SECOND:.*]] = arith.cmpi eq, %[[WHICH]], %c1_i32
// CHECK:   arith.select %[[SECOND]], %[[B]], %[[A]]
// CHECK:   arith.select %[[SECOND]], %[[RB]], %[[RA]]
// CHECK:   arith.mulf
// CHECK: %[[OTHER:.*]] = arith.subi %[[BLOCK]], %c4_i32
// CHECK: arith.cmpi ult, %[[OTHER]], %c1_i32
// CHECK:   memref.load %[[C]]
// CHECK:   math.tanh
// CHECK-NOT: func.func @square
// CHECK: func.func @tanh
// CHECK-NOT: func.func
func.func private @square(%x: tensor<200xf32>, %r: tensor<200xf32>) -> tensor<200xf32>
    attributes {nn.grid = {threads = 128 : i64, row_threads = 1 : i64, width = 1 : i64}, nn.schedule = {rows = [array<i64: 0>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64>}} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<200xf32>) outs(%r : tensor<200xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.mulf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<200xf32>
  return %0 : tensor<200xf32>
}
func.func @group(%a: tensor<200xf32>, %b: tensor<200xf32>, %c: tensor<60xf32>, %ra: tensor<200xf32>, %rb: tensor<200xf32>, %rc: tensor<60xf32>) -> (tensor<200xf32>, tensor<200xf32>, tensor<60xf32>)
    attributes {nn.grid = {threads = 128 : i64}} {
  %0 = call @square(%a, %ra) : (tensor<200xf32>, tensor<200xf32>) -> tensor<200xf32>
  %1 = call @square(%b, %rb) : (tensor<200xf32>, tensor<200xf32>) -> tensor<200xf32>
  %2 = call @tanh(%c, %rc) : (tensor<60xf32>, tensor<60xf32>) -> tensor<60xf32>
  return %0, %1, %2 : tensor<200xf32>, tensor<200xf32>, tensor<60xf32>
}
func.func @tanh(%x: tensor<60xf32>, %r: tensor<60xf32>) -> tensor<60xf32>
    attributes {nn.grid = {threads = 128 : i64, row_threads = 1 : i64, width = 1 : i64}, nn.schedule = {rows = [array<i64: 0>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64: 0, 0>}} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<60xf32>) outs(%r : tensor<60xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = math.tanh %in : f32
    linalg.yield %1 : f32
  } -> tensor<60xf32>
  return %0 : tensor<60xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

func.func @square(%x: tensor<200xf32>, %r: tensor<200xf32>) -> tensor<200xf32>
    attributes {nn.grid = {threads = 128 : i64, row_threads = 1 : i64, width = 1 : i64}, nn.schedule = {rows = [array<i64: 0>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64>}} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<200xf32>) outs(%r : tensor<200xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.mulf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<200xf32>
  return %0 : tensor<200xf32>
}
// expected-error@+1 {{the kernel is no group: its members do not fit one grid, or it passes on their operands and results in another order}}
func.func @group(%a: tensor<200xf32>, %b: tensor<200xf32>, %ra: tensor<200xf32>, %rb: tensor<200xf32>) -> (tensor<200xf32>, tensor<200xf32>)
    attributes {nn.grid = {threads = 128 : i64}} {
  %0 = call @square(%a, %rb) : (tensor<200xf32>, tensor<200xf32>) -> tensor<200xf32>
  %1 = call @square(%b, %ra) : (tensor<200xf32>, tensor<200xf32>) -> tensor<200xf32>
  return %0, %1 : tensor<200xf32>, tensor<200xf32>
}
