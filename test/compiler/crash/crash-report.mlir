// A crash ends in one line that says where, and in exit status 70.

// RUN: not env PARTITA_CRASH=assertion@nn-fold-scale partita-opt %s --nn-simplify 2>&1 | FileCheck %s --check-prefix=PASS
// RUN: not env PARTITA_CRASH=segmentation@/abs partita-opt %s --canonicalize 2>&1 | FileCheck %s --check-prefix=NODE
// RUN: env PARTITA_CRASH=abort@another-pass partita-opt %s --nn-simplify | FileCheck %s --check-prefix=NONE

// PASS-NOT: {{.}}
// PASS:     partita-opt: error: a bug of Partita's: assertion 'kind != "assertion"' failed (ProvokeCrash.cpp:{{[0-9]+}}), in nn-fold-scale; please report it with the model and the command
// PASS-NOT: {{.}}

// NODE: partita-opt: error: a bug of Partita's: segmentation fault, in canonicalize, at node '/abs'; please report it with the model and the command

// NONE: func.func @main

func.func @main(%x: tensor<2x1x3xf32>) -> tensor<1x2x3xf32> {
  %0 = nn.transpose %x [1, 0, 2] : tensor<2x1x3xf32> -> tensor<1x2x3xf32> loc("/abs")
  return %0 : tensor<1x2x3xf32>
}
