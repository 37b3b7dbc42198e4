//===- NNOps.td - All ops of the nn dialect ------------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "dialects/nn/NNContraction.td"
include "dialects/nn/NNOrdered.td"
include "dialects/nn/NNPointwise.td"
include "dialects/nn/NNRecurrent.td"
include "dialects/nn/NNReduction.td"
include "dialects/nn/NNShape.td"
include "dialects/nn/NNStructure.td"
