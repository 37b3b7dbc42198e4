// RUN: split-file %s %t
// RUN: partita-opt --dist-assign-blocks=file=%t/globs.yaml %t/model.mlir -mlir-print-debuginfo 2>%t/remarks | FileCheck %s --check-prefix=GLOBS
// RUN: FileCheck %s --check-prefix=REMARK < %t/remarks
// RUN: partita-opt --dist-assign-blocks=file=%t/begin.yaml %t/model.mlir -mlir-print-debuginfo | FileCheck %s --check-prefix=BEGIN
// RUN: partita-opt --dist-assign-blocks="devices=2 micro-batches=3 stages=4 schedule=sharded memory=4096" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=OPTIONS
// RUN: not partita-opt --dist-assign-blocks=file=%t/no-node.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=NONODE
// RUN: not partita-opt --dist-assign-blocks=file=%t/no-match.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=NOMATCH
// RUN: not partita-opt --dist-assign-blocks=file=%t/twice.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not partita-opt --dist-assign-blocks=file=%t/key.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not partita-opt --dist-assign-blocks=file=%t/block.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not partita-opt --dist-assign-blocks=file=%t/strategy.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=STRATEGY
// RUN: not partita-opt --dist-assign-blocks=file=%t/schedule.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not partita-opt --dist-assign-blocks=schedule=loped %t/model.mlir 2>&1 | FileCheck %s --check-prefix=LOPED
// RUN: partita-opt --dist-assign-blocks=file=%t/sharded.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=SHARDED
// RUN: not partita-opt --dist-assign-blocks="file=%t/device.yaml devices=2" %t/model.mlir 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not partita-opt --dist-assign-blocks=file=%t/yaml.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=YAML
// RUN: not partita-opt --dist-assign-blocks=file=%t/batches.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=BATCHES
// RUN: not partita-opt --dist-assign-blocks=file=%t/absent.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: partita-opt --dist-assign-blocks=file=%t/folded.yaml %t/folded.mlir 2>&1 | FileCheck %s --check-prefix=FOLDED --implicit-check-not=remark
// RUN: partita-opt --dist-assign-blocks=file=%t/folded-begin.yaml %t/folded.mlir | FileCheck %s --check-prefix=FOLDED
// RUN: not partita-opt --dist-assign-blocks=file=%t/folded-end.yaml %t/folded.mlir 2>&1 | FileCheck %s --check-prefix=FOLDEDEND
// RUN: not partita-opt --dist-assign-blocks=file=%t/folded-near.yaml %t/folded.mlir 2>&1 | FileCheck %s --check-prefix=FOLDEDNEAR

// GLOBS: func.func @main
// GLOBS-SAME: dist.auto_stage = "same_as_device"
// GLOBS-SAME: dist.devices = array<i64: 1, 0>
// GLOBS-SAME: dist.micro_batches = 4 : i64
// GLOBS-NOT: dist.schedule
// GLOBS-SAME: dist.stage_blocks = {{\[\[}}"B1"], ["B2"]]
// GLOBS: nn.parameter @w :
// GLOBS: nn.exp {{.*}} {dist.block = "B1"}
// GLOBS: nn.add {{.*}} {dist.block = "B1"}
// GLOBS: nn.tanh {{.*}} {dist.block = "B1"}
// GLOBS: nn.abs {{.*}} {dist.block = "B2"}
// GLOBS: nn.neg {{.*}} {dist.block = "B2"}
// REMARK: 1 operation is in no block; each joins the block of what it reads, or else of what reads it: '/between'
// BEGIN: nn.exp {{.*}} {dist.block = "B1"}
// BEGIN: nn.add {{.*}} {dist.block = "B1"}
// BEGIN: nn.tanh {{.*}} {dist.block = "B2"}
// BEGIN: nn.neg {{.*}} {dist.block = "B2"}
// OPTIONS: remark: 'sharded' is called sequential now: say `schedule: sequential`
// OPTIONS: dist.device_count = 2 : i64
// OPTIONS-SAME: dist.memory = 4096 : i64
// OPTIONS-SAME: dist.micro_batches = 3 : i64
// OPTIONS-SAME: dist.schedule = "sequential"
// OPTIONS-SAME: dist.stage_count = 4 : i64
// NONODE: no-node.yaml:2:8: error: no node is called '/conv1/exp2'; did you mean '/conv1/exp'?
// NOMATCH: no-match.yaml:1:15: error: no node matches '/conv2/*'; did you mean '/conv1/exp'?
// TWICE: error: node '/conv1/add' is in block 'B1' already; '/conv1/add' would put it into block 'B2' too
// KEY: key.yaml:1:1: error: unknown key 'block' {{.*}}; did you mean 'blocks'?
// BLOCK: block.yaml:2:11: error: unknown block 'B2'; did you mean 'B1'?
// STRATEGY: strategy.yaml:1:11: error: unknown strategy 'pipelind' (pipelined, sharded); did you mean 'pipelined'?
// SCHEDULE: schedule.yaml:1:11: error: unknown schedule 'fill-drain' (fill_drain, sequential, looped, gpipe, 1f1b, interleaved, zb_h1, zb_v, auto); did you mean 'fill_drain'?
// LOPED: error: unknown schedule 'loped' (fill_drain, sequential, looped, gpipe, 1f1b, interleaved, zb_h1, zb_v, auto); did you mean 'looped'?
// SHARDED: sharded.yaml:1:11: remark: 'sharded' is called sequential now
// SHARDED: dist.memory = 536870912 : i64
// SHARDED-SAME: dist.schedule = "sequential"
// DEVICE: device.yaml:1:11: error: unknown device 7: there are 2 devices; the nearest is 1
// YAML: yaml.yaml:{{[0-9]+}}:{{[0-9]+}}: error:
// BATCHES: batches.yaml:1:16: error: expected a whole number of at least 1, found '0'
// ABSENT: cannot read the partition file '{{.*}}absent.yaml': No such file or directory
// Nodes that have folded away may be named; a block that begins with one begins with the next.
// FOLDED: nn.exp {{.*}} {dist.block = "B1"}
// FOLDED: nn.tanh {{.*}} {dist.block = "B2"}
// FOLDEDEND: folded-end.yaml:1:32: error: block 'B2' is empty: nothing at or after node '/end/shape' is left to compute
// FOLDEDNEAR: error: no node matches '/middel/*'; did you mean '/middle/shape'?

//--- model.mlir
nn.weight @w "w" : tensor<8xf32> = dense<1.0> : tensor<8xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %w = nn.parameter @w : tensor<8xf32> loc("w")
  %0 = nn.exp %x : tensor<8xf32> loc("/conv1/exp")
  %1 = nn.add %0, %w : tensor<8xf32> loc("/conv1/add")
  %2 = nn.tanh %1 : tensor<8xf32> loc("/between")
  %3 = nn.abs %2 : tensor<8xf32> loc("/fc/abs")
  %4 = nn.neg %3 : tensor<8xf32> loc("/fc/neg")
  return %4 : tensor<8xf32>
}

//--- globs.yaml
blocks:
  B1: ["/conv1/*"]
  B2: ["/fc/abs", "/fc/n?g"]
stages: [[B1], [B2]]
devices: [1, 0]
micro_batches: 4

//--- begin.yaml
begin_blocks: {B1: "/conv1/exp", B2: "/between"}
auto_stage: auto_increment

//--- no-node.yaml
blocks:
  B1: ["/conv1/exp2"]

//--- no-match.yaml
blocks: {B1: ["/conv2/*"]}

//--- twice.yaml
blocks: {B1: ["/conv1/*"], B2: ["/conv1/add"]}

//--- key.yaml
block: {B1: ["*"]}

//--- block.yaml
blocks: {B1: ["*"]}
stages: [[B2]]

//--- strategy.yaml
strategy: pipelind

//--- schedule.yaml
schedule: fill-drain

//--- sharded.yaml
strategy: sharded
schedule: fill_drain
memory: 512MiB

//--- device.yaml
devices: [0, 7]

//--- yaml.yaml
blocks: {B1: [

//--- batches.yaml
micro_batches: 0

//--- folded.mlir
module attributes {nn.nodes = ["/exp", "/middle/shape", "/tanh", "/end/shape"]} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = nn.exp %x : tensor<8xf32> loc("/exp")
    %1 = nn.tanh %0 : tensor<8xf32> loc("/tanh")
    return %1 : tensor<8xf32>
  }
}

//--- folded.yaml
blocks: {B1: ["/exp", "/middle/*", "/end/shape"], B2: ["/tanh"]}

//--- folded-begin.yaml
begin_blocks: {B1: "/exp", B2: "/middle/shape"}

//--- folded-end.yaml
begin_blocks: {B1: "/exp", B2: "/end/shape"}

//--- folded-near.yaml
blocks: {B1: ["/middel/*"]}
