//===- OpTable.cpp - Which function imports which ONNX op -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"

#include "onnx/defs/schema.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace partita::import {

using Table = StringMap<SmallVector<const OpRow *>>;

static Table buildTable() {
  Table table;
  for (ArrayRef<OpRow> family :
       {getActivationOps(),    getCastOps(),        getConstantOps(),
        getContractionOps(),   getControlFlowOps(), getConvTransposeOps(),
        getEinsumOps(),        getElementwiseOps(), getFourierOps(),
        getNormalizationOps(), getPatternOps(),     getPoolingOps(),
        getQuantizeOps(),      getRandomOps(),      getRankingOps(),
        getRearrangeOps(),     getRecurrentOps(),   getReductionOps(),
        getResizeOps(),        getSamplingOps(),    getScatterOps(),
        getSequenceOps(),      getShapeOps(),       getSliceOps()})
    for (const OpRow &row : family)
      table[row.op].push_back(&row);
  return table;
}

static Table buildTable(ArrayRef<OpRow> rows) {
  Table table;
  for (const OpRow &row : rows)
    table[row.op].push_back(&row);
  return table;
}

/// The ops of a domain that are imported; null: none are.
static const Table *findTable(StringRef domain) {
  static const Table standard = buildTable();
  static const Table training = [] {
    Table table = buildTable(getOptimizerOps());
    for (const OpRow &row : getGradientOps())
      table[row.op].push_back(&row);
    return table;
  }();
  static const Table replicas = [] {
    registerReplicaSchemas();
    return buildTable(getReplicaOps());
  }();
  static const Table microsoft = buildTable(getMicrosoftOps());
  return domain.empty()               ? &standard
         : domain == kReplicaDomain   ? &replicas
         : domain == kTrainingDomain  ? &training
         : domain == kMicrosoftDomain ? &microsoft
                                      : nullptr;
}

/// ONNX Runtime has these under ONNX's domain, where ONNX has the first since
/// opset 17, and the second under another name.
static bool isOnnxRuntimeNorm(StringRef opType) {
  return opType == "LayerNormalization" ||
         opType == "SimplifiedLayerNormalization";
}

OpImport findOp(StringRef domain, StringRef opType, int64_t opset) {
  const Table *table = findTable(domain);
  OpImport result;
  result.schema = onnx::OpSchemaRegistry::Schema(
      opType.str(), static_cast<int>(opset), domain.str());
  if (!result.schema || result.schema->Deprecated()) {
    result.schema = nullptr;
    if (domain.empty() && isOnnxRuntimeNorm(opType))
      return findOp(kMicrosoftDomain, opType, 1);
    for (const OpRow &row : getRetiredOps())
      if (domain.empty() && row.op == opType)
        result.function = row.function;
    return result;
  }
  result.expandable = result.schema->HasFunction() ||
                      result.schema->HasContextDependentFunction();
  if (!table)
    return result;
  int version = result.schema->since_version();
  for (const OpRow *row : table->lookup(opType))
    if (row->first <= version && version <= row->last)
      result.function = row->function;
  return result;
}

} // namespace partita::import
