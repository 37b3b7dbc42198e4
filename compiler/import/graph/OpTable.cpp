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

static Table buildTable(ArrayRef<ArrayRef<OpRow>> families) {
  Table table;
  for (ArrayRef<OpRow> family : families)
    for (const OpRow &row : family)
      table[row.op].push_back(&row);
  return table;
}

/// The ops of a domain that are imported; null: none are.
static const Table *findTable(StringRef domain) {
  static const Table standard = buildTable(
      {getActivationOps(),    getCastOps(),        getConstantOps(),
       getContractionOps(),   getControlFlowOps(), getConvTransposeOps(),
       getEinsumOps(),        getElementwiseOps(), getFourierOps(),
       getNormalizationOps(), getPatternOps(),     getPoolingOps(),
       getQuantizeOps(),      getRandomOps(),      getRankingOps(),
       getRearrangeOps(),     getRecurrentOps(),   getReductionOps(),
       getResizeOps(),        getSamplingOps(),    getScatterOps(),
       getSequenceOps(),      getShapeOps(),       getSliceOps()});
  static const Table training =
      buildTable({getOptimizerOps(), getGradientOps()});
  static const Table replicas = buildTable({getReplicaOps()});
  static const Table microsoft = buildTable({getMicrosoftOps()});
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

//===----------------------------------------------------------------------===//
// Schemas, by which nodes are checked
//===----------------------------------------------------------------------===//

using onnx::OpSchema;

static void addFormals(OpSchema &schema, StringRef list, bool isInput) {
  SmallVector<StringRef> names;
  list.split(names, ", ", -1, /*KeepEmpty=*/false);
  for (auto [i, name] : enumerate(names)) {
    OpSchema::FormalParameterOption option =
        name.consume_back("?")   ? OpSchema::Optional
        : name.consume_back("*") ? OpSchema::Variadic
                                 : OpSchema::Single;
    if (isInput)
      schema.Input(static_cast<int>(i), name.str(), "", "T", option,
                   /*is_homogeneous=*/false);
    else
      schema.Output(static_cast<int>(i), name.str(), "", "T", option,
                    /*is_homogeneous=*/false);
  }
}

static void addAttribute(OpSchema &schema, StringRef text) {
  using onnx::AttributeProto;
  auto [declared, byDefault] = text.split(" = ");
  auto [name, type] = declared.split(": ");
  if (type == "int" && !byDefault.empty()) {
    int64_t value = 0;
    byDefault.getAsInteger(10, value);
    schema.Attr(name.str(), "", AttributeProto::INT, value);
  } else if (type == "float" && !byDefault.empty()) {
    double value = 0;
    byDefault.getAsDouble(value);
    schema.Attr(name.str(), "", AttributeProto::FLOAT,
                static_cast<float>(value));
  } else {
    schema.Attr(name.str(), "",
                type == "int"      ? AttributeProto::INT
                : type == "float"  ? AttributeProto::FLOAT
                : type == "string" ? AttributeProto::STRING
                : type == "ints"   ? AttributeProto::INTS
                : type == "floats" ? AttributeProto::FLOATS
                : type == "graph"  ? AttributeProto::GRAPH
                                   : AttributeProto::STRINGS,
                /*required=*/type == "graph");
  }
}

std::vector<OpRow> registerOps(StringRef domain,
                               ArrayRef<ArrayRef<ForeignOp>> families) {
  auto &versions = onnx::OpSchemaRegistry::DomainToVersionRange::Instance();
  versions.AddDomainToVersion(domain.str(), 1, 1);
  std::vector<OpRow> rows;
  for (ArrayRef<ForeignOp> family : families)
    for (const ForeignOp &op : family) {
      OpSchema schema(op.name.str(), __FILE__, __LINE__);
      schema.SetDomain(domain.str()).SinceVersion(1);
      addFormals(schema, op.inputs, /*isInput=*/true);
      addFormals(schema, op.outputs, /*isInput=*/false);
      SmallVector<StringRef> attributes;
      op.attributes.split(attributes, ", ", -1, /*KeepEmpty=*/false);
      for (StringRef attribute : attributes)
        addAttribute(schema, attribute);
      schema.TypeConstraint("T", OpSchema::all_tensor_types_ir13(), "");
      onnx::RegisterSchema(schema);
      rows.push_back({op.name, 1, 1, op.function});
    }
  return rows;
}

} // namespace partita::import
