// RUN: split-file %s %t
// RUN: partita-opt --dist-assign-mesh="data-parallel=2 tensor-parallel=4 devices=24" %t/model.mlir | FileCheck %s --check-prefix=FLAGS
// RUN: partita-opt --dist-assign-mesh=file=%t/mesh.yaml %t/model.mlir | FileCheck %s --check-prefix=MESH
// RUN: partita-opt --dist-assign-mesh="file=%t/keys.yaml devices=8" %t/model.mlir | FileCheck %s --check-prefix=KEYS
// RUN: partita-opt --dist-assign-mesh="data-parallel=1 devices=3" %t/model.mlir | FileCheck %s --check-prefix=NONE
// RUN: partita-opt --dist-assign-mesh="axes=stage=2,data=3,rows=2 data-parallel=3" %t/model.mlir | FileCheck %s --check-prefix=AXES
// RUN: not partita-opt --dist-assign-mesh="axes=stage" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=NOSIZE
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
// RUN: partita-opt --dist-assign-mesh="devices=4 tensor-parallel=2 targets=cpu,cpu,cuda,cuda" %t/model.mlir | FileCheck %s --check-prefix=KINDS
// RUN: partita-opt --dist-assign-mesh="devices=2 targets=cpu,cpu" %t/model.mlir | FileCheck %s --check-prefix=ONEKIND
// RUN: partita-opt --dist-assign-mesh=file=%t/targets.yaml %t/model.mlir | FileCheck %s --check-prefix=KINDS
// RUN: partita-opt --dist-assign-mesh="file=%t/targets.yaml devices=2 targets=cpu,cuda" %t/model.mlir | FileCheck %s --check-prefix=KINDS
// RUN: not partita-opt --dist-assign-mesh="file=%t/targets.yaml devices=2 targets=cuda,cpu" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// RUN: not partita-opt --dist-assign-mesh="file=%t/targets.yaml devices=3" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=PLACES
// RUN: not partita-opt --dist-assign-mesh="devices=4 tensor-parallel=2 targets=cpu,cuda,cpu,cuda" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=UNLIKE
// RUN: not partita-opt --dist-assign-mesh="devices=4 data-parallel=2 targets=cpu,cpu,cuda,cuda" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=REPLICATED
// RUN: not partita-opt --dist-assign-mesh=file=%t/list.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: not partita-opt --dist-assign-mesh=file=%t/maybe.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=MAYBE

// SAMEBITS: func.func @main{{.*}}dist.reproducible
// KINDS: dist.device_count = 2 : i64, dist.targets = ["cpu", "cuda"]
// ONEKIND: func.func @main
// ONEKIND-NOT: dist.targets
// ELSEWHERE: targets.yaml:1:11: error: 'cpu' here, and 'cuda' by --devices and --target: say it once
// PLACES: targets.yaml:1:11: error: `targets` names 2 devices, and the axis 'stage' has 3: name one for each
// UNLIKE: error: devices 0 ('cpu') and 1 ('cuda') have the same stages, and must be of one kind
// REPLICATED: error: devices 0 ('cpu') and 2 ('cuda') have the same stages, and must be of one kind
// AXES: dist.axes = [#dist.axis<"stage" = 2>, #dist.axis<"data" = 3>, #dist.axis<"rows" = 2>], dist.device_count = 2
// NOSIZE: error: 'stage' is no NAME=SIZE of an axis
// LIST: list.yaml:1:10: error: expected the target of each device
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

//--- targets.yaml
targets: [cpu, cuda]

//--- list.yaml
targets: cpu

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
