// Nodes are named by their modules, and blocks are written so.
// RUN: split-file %s %t
// RUN: partita-opt --dist-assign-blocks=file=%t/modules.yaml %t/model.mlir | FileCheck %s --check-prefix=MODULES
// RUN: partita-opt --dist-assign-blocks=file=%t/begin.yaml %t/model.mlir | FileCheck %s --check-prefix=MODULES
// RUN: partita-opt --dist-assign-blocks=file=%t/some.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=SOME
// RUN: not partita-opt --dist-assign-blocks=file=%t/none.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not partita-opt --dist-assign-blocks=file=%t/begins.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=BEGINS
// RUN: not partita-opt --dist-assign-blocks=file=%t/twice.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=TWICE

// Written: a begin for each block where blocks follow one another, modules where they do not.
// RUN: partita-opt --dist-assign-blocks=file=%t/modules.yaml --dist-assign-stages --dist-choose-schedule --dist-write-partition=file=%t/written.yaml --dist-form-stages %t/model.mlir -o %t/first.mlir
// RUN: FileCheck %s --check-prefix=WRITTEN < %t/written.yaml
// RUN: partita-opt --dist-assign-blocks=file=%t/written.yaml --dist-assign-stages --dist-choose-schedule --dist-form-stages %t/model.mlir -o %t/second.mlir
// RUN: cmp %t/first.mlir %t/second.mlir
// RUN: partita-opt --dist-assign-blocks=file=%t/turns.yaml --dist-assign-stages --dist-choose-schedule --dist-write-partition=file=%t/turns-written.yaml --dist-form-stages %t/towers.mlir -o %t/first.mlir
// RUN: FileCheck %s --check-prefix=TURNS < %t/turns-written.yaml
// RUN: partita-opt --dist-assign-blocks=file=%t/turns-written.yaml --dist-assign-stages --dist-choose-schedule --dist-form-stages %t/towers.mlir -o %t/second.mlir
// RUN: cmp %t/first.mlir %t/second.mlir

// MODULES: nn.exp {{.*}}dist.block = "A"
// MODULES: nn.abs {{.*}}dist.block = "A"
// MODULES: nn.neg {{.*}}dist.block = "A"
// MODULES: nn.tanh {{.*}}dist.block = "B"
// MODULES: nn.relu {{.*}}dist.block = "B"
// MODULES: nn.sqrt {{.*}}dist.block = "B"

// SOME: some.yaml:1:1: remark: 2 operations are in no block; {{.*}}: 'node_tanh' (encoder.layer.10.out), 'node_relu' (encoder.layer.10)
// NONE: none.yaml:1:14: error: no node or module matches 'encoder.layer.3.*'; did you mean 'encoder.layer.0.node_shape'?
// BEGINS: begins.yaml:1:28: error: no node or module is called 'encodr.layer.10'; did you mean 'encoder.layer.10'?
// TWICE: error: node 'node_abs' is in block 'A' already; 'encoder.layer.0' would put it into block 'B' too

// WRITTEN:      begin_blocks:
// WRITTEN-NEXT:   "A": "node_exp"
// WRITTEN-NEXT:   "B": "encoder.layer.10"
// WRITTEN-NEXT: stages: {{\[\[}}"A"], ["B"]]

// TURNS:      blocks:
// TURNS-NEXT:   "A": ["tower.[0-1]"]
// TURNS-NEXT:   "B": ["tower.[2-3]", "join"]

//--- model.mlir
module attributes {nn.nodes = ["node_exp", "node_shape", "node_abs", "node_neg", "node_tanh", "node_relu", "node_sqrt"],
                   nn.node_scopes = ["", "encoder.layer.0", "encoder.layer.0.out", "encoder.layer.0", "encoder.layer.10.out", "encoder.layer.10", "head"]} {
  func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %0 = nn.exp %x {nn.cluster = #nn.cluster<0, kernel>} : tensor<64x64xf32> loc("node_exp")
    %1 = nn.abs %0 {nn.cluster = #nn.cluster<1, kernel>} : tensor<64x64xf32> loc("node_abs"("encoder.layer.0.out"))
    %2 = nn.neg %1 {nn.cluster = #nn.cluster<1, kernel>} : tensor<64x64xf32> loc("node_neg"("encoder.layer.0"))
    %3 = nn.tanh %2 {nn.cluster = #nn.cluster<2, kernel>} : tensor<64x64xf32> loc("node_tanh"("encoder.layer.10.out"))
    %4 = nn.relu %3 {nn.cluster = #nn.cluster<2, kernel>} : tensor<64x64xf32> loc("node_relu"("encoder.layer.10"))
    %5 = nn.sqrt %4 {nn.cluster = #nn.cluster<3, kernel>} : tensor<64x64xf32> loc("node_sqrt"("head"))
    return %5 : tensor<64x64xf32>
  }
}

//--- modules.yaml
blocks: {A: ["node_e*", "encoder.layer.[0-9]"], B: ["encoder.layer.10.*", head]}
stages: [[A], [B]]

//--- begin.yaml
begin_blocks: {A: node_exp, B: encoder.layer.10}

//--- some.yaml
blocks: {A: ["node_exp", "encoder.layer.0.node_*", "encoder.layer.0.out", "node_sqrt"]}

//--- none.yaml
blocks: {A: ["encoder.layer.3.*"]}

//--- begins.yaml
begin_blocks: {A: head, B: encodr.layer.10}

//--- twice.yaml
blocks: {A: ["node_abs"], B: ["encoder.layer.0"]}

//--- turns.yaml
blocks: {A: ["tower.[01].*"], B: ["tower.[23]", join]}
stages: [[A], [B]]

//--- towers.mlir
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a0 = nn.exp %x {nn.cluster = #nn.cluster<0, kernel>} : tensor<64x64xf32> loc("n0"("tower.0"))
  %b0 = nn.abs %x {nn.cluster = #nn.cluster<1, kernel>} : tensor<64x64xf32> loc("n1"("tower.2"))
  %a1 = nn.neg %a0 {nn.cluster = #nn.cluster<2, kernel>} : tensor<64x64xf32> loc("n2"("tower.1"))
  %b1 = nn.tanh %b0 {nn.cluster = #nn.cluster<3, kernel>} : tensor<64x64xf32> loc("n3"("tower.3"))
  %j = nn.add %a1, %b1 {nn.cluster = #nn.cluster<4, kernel>} : tensor<64x64xf32> loc("join")
  return %j : tensor<64x64xf32>
}
