// What is written says everything, and loading it decides the same.
// RUN: partita-opt --dist-assign-blocks="devices=3 memory=4096" --dist-assign-stages --dist-choose-schedule --dist-write-partition=file=%t.yaml --dist-form-stages %s -o %t.first.mlir
// RUN: FileCheck %s < %t.yaml
// RUN: partita-opt --dist-assign-blocks=file=%t.yaml --dist-assign-stages --dist-choose-schedule --dist-write-partition=file=%t.second.yaml --dist-form-stages %s -o %t.second.mlir
// RUN: cmp %t.first.mlir %t.second.mlir
// RUN: cmp %t.yaml %t.second.yaml

// CHECK:      blocks:
// CHECK-NEXT:   "B0": ["/a/*", "/b/soft\\[max\\]#0"]
// CHECK-NEXT:   "B1": ["/b/soft\\[max\\]#1"]
// CHECK-NEXT:   "B2": ["/b/last"]
// CHECK-NEXT: stages: {{\[\[}}"B0"], ["B1"], ["B2"]]
// CHECK-NEXT: devices: [0, 1, 2]
// CHECK-NEXT: schedule: fill_drain
// CHECK-NEXT: micro_batches: 6
// CHECK-NEXT: memory: 4096B
// CHECK-NEXT: reproducible: true

func.func @main(%x: tensor<1024x64xf32>) -> tensor<1024x64xf32> attributes {dist.reproducible} {
  %0 = nn.relu %x {nn.cluster = #nn.cluster<0, kernel>} : tensor<1024x64xf32> loc("/a/one")
  %1 = nn.abs %0 {nn.cluster = #nn.cluster<0, kernel>} : tensor<1024x64xf32> loc("/a/two")
  // One node that became two operations, in two clusters.
  %2 = nn.exp %1 {nn.cluster = #nn.cluster<0, kernel>} : tensor<1024x64xf32> loc("/b/soft[max]")
  %3 = nn.tanh %2 {nn.cluster = #nn.cluster<1, kernel>} : tensor<1024x64xf32> loc("/b/soft[max]")
  %4 = nn.neg %3 {nn.cluster = #nn.cluster<2, kernel>} : tensor<1024x64xf32> loc("/b/last")
  return %4 : tensor<1024x64xf32>
}
