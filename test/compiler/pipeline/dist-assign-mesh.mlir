// RUN: split-file %s %t
// RUN: partita-opt --dist-assign-mesh="data-parallel=2 tensor-parallel=4 devices=24" %t/model.mlir | FileCheck %s --check-prefix=FLAGS
// RUN: partita-opt --dist-assign-mesh=file=%t/mesh.yaml %t/model.mlir | FileCheck %s --check-prefix=MESH
// RUN: partita-opt --dist-assign-mesh="file=%t/keys.yaml devices=8" %t/model.mlir | FileCheck %s --check-prefix=KEYS
// RUN: partita-opt --dist-assign-mesh="data-parallel=1 devices=3" %t/model.mlir | FileCheck %s --check-prefix=NONE
// RUN: partita-opt --dist-assign-mesh="data-parallel=2 replicas=3" %t/model.mlir | FileCheck %s --check-prefix=REPLICAS
// RUN: not partita-opt --dist-assign-mesh="file=%t/replica.yaml replicas=3" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=OTHERS
// RUN: not partita-opt --dist-assign-mesh=file=%t/replica.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=REPLICA
// RUN: not partita-opt --dist-assign-mesh="data-parallel=2 devices=3" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=DIVIDE
// RUN: not partita-opt --dist-assign-mesh="file=%t/mesh.yaml data-parallel=3" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not partita-opt --dist-assign-mesh="file=%t/mesh.yaml devices=12" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not partita-opt --dist-assign-mesh="data-parallel=4096 tensor-parallel=4096" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not partita-opt --dist-assign-mesh=file=%t/no-axis.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=NOAXIS
// RUN: not partita-opt --dist-assign-mesh=file=%t/data.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=DATA
// RUN: not partita-opt --dist-assign-mesh=file=%t/twice.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: not partita-opt --dist-assign-mesh=file=%t/size.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: partita-opt --dist-assign-mesh=file=%t/same.yaml %t/model.mlir | FileCheck %s --check-prefix=SAMEBITS
// RUN: partita-opt --dist-assign-mesh=reproducible %t/model.mlir | FileCheck %s --check-prefix=SAMEBITS
// RUN: not partita-opt --dist-assign-mesh=file=%t/maybe.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=MAYBE

// SAMEBITS: func.func @main{{.*}}dist.reproducible
// MAYBE: maybe.yaml:1:15: error: expected true or false, found 'maybe'
// FLAGS: dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>, #dist.axis<"tensor" = 4>], dist.device_count = 3
// MESH: dist.axes = [#dist.axis<"tensor" = 2>, #dist.axis<"stage" = 2>, #dist.axis<"data" = 2>], dist.device_count = 2
// KEYS: dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>], dist.device_count = 2
// NONE: func.func @main
// NONE-NOT: dist.axes
// NONE-SAME: dist.device_count = 3
// REPLICAS: dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"replica" = 3>, #dist.axis<"stage" = 0>]
// OTHERS: error: the axis 'replica' has the size 3 here and 2 elsewhere: say it once
// REPLICA: replica.yaml:2:15: error: tensors are not cut along the axis 'replica': samples are dealt out along it
// DIVIDE: error: 3 devices cannot be dealt out to a mesh with 2 at each place of a stage: give a multiple of 2
// TWICE: error: the axis 'data' has the size 3 here and 2 elsewhere: say it once
// OTHER: mesh.yaml:1:19: error: the mesh has 8 devices, not 12
// MANY: error: the mesh has more than 4096 devices
// NOAXIS: no-axis.yaml:2:15: error: the mesh has no axis 'tensro': name it in `mesh`, e.g. mesh: {tensro: 2}
// DATA: data.yaml:2:15: error: tensors are not cut along the axis 'data': micro-batches are dealt out along it
// SAME: twice.yaml:2:23: error: 'w' is cut along the axis 'tensor' twice
// SIZE: size.yaml:1:16: error: expected a whole number of at least 1, found '0'

//--- same.yaml
reproducible: true

//--- maybe.yaml
reproducible: maybe

//--- model.mlir
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

//--- mesh.yaml
mesh: {tensor: 2, stage: 2, data: 2}

//--- keys.yaml
tensor_parallel: 2
data_parallel: 2

//--- no-axis.yaml
mesh: {tensor: 2}
shard: {"w": [tensro, null]}

//--- data.yaml
mesh: {data: 2}
shard: {"w": [data, null]}

//--- replica.yaml
mesh: {replica: 2}
shard: {"w": [replica, null]}

//--- twice.yaml
mesh: {tensor: 2}
shard: {"w": [tensor, tensor]}

//--- size.yaml
mesh: {tensor: 0}
