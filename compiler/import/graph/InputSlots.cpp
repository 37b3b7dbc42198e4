//===- InputSlots.cpp - The tensors among a model's inputs ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/InputShapes.h"

#include "compiler/import/model/TensorData.h"
#include "dialects/support/Try.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

class InputParts {
public:
  InputParts(const onnx::GraphProto &graph, const ImportOptions &options,
             Location loc)
      : options(options), loc(loc) {
    llvm::StringSet<> initializers;
    for (const onnx::TensorProto &initializer : graph.initializer())
      initializers.insert(initializer.name());
    for (const onnx::ValueInfoProto &info : graph.input())
      if (!initializers.contains(info.name()))
        infos.push_back(&info);
  }

  FailureOr<ModelInputs> run() {
    for (const onnx::ValueInfoProto *info : infos)
      PARTITA_TRY(addValue(*info));
    PARTITA_TRY(checkOptions());
    PARTITA_TRY(reportOpen());
    for (auto [value, type] : zip_equal(inputs.values, types))
      PARTITA_TRY(addTensors(value, *type.tensor));
    return std::move(inputs);
  }

private:
  LogicalResult addValue(const onnx::ValueInfoProto &info) {
    std::optional<DeclaredType> type = getDeclaredType(info.type());
    if (!type) {
      StringRef kind =
          info.type().has_map_type()             ? "a map"
          : info.type().has_sparse_tensor_type() ? "a sparse tensor"
          : info.type().has_sequence_type() || info.type().has_optional_type()
              ? "a collection of what are no tensors"
              : "of no known type";
      return emitError(loc)
             << "the input '" << info.name() << "' is " << kind
             << "; tensors, sequences of tensors and optionals are supported";
    }
    InputValue value;
    value.name = info.name();
    value.port = static_cast<int64_t>(inputs.values.size());
    value.kind = type->kind;
    value.element = getElementType(loc.getContext(), type->tensor->elem_type());
    if (!value.element)
      return emitError(loc) << "the input '" << info.name() << "' is of "
                            << getOnnxTypeName(type->tensor->elem_type())
                            << ", which is not supported";
    value.present = !is_contained(options.absent, value.name);
    bool isSequence =
        value.kind && value.kind != CollectionKind::optional_tensor;
    if (!isSequence) {
      value.count = value.present ? 1 : 0;
    } else if (auto it = options.lengths.find(value.name);
               it != options.lengths.end()) {
      value.count = it->second;
    } else if (value.present) {
      open.push_back(value.name);
    }
    all.insert(value.name);
    if (isSequence)
      sequences.insert(value.name);
    if (value.kind && value.kind != CollectionKind::sequence)
      optionals.insert(value.name);
    inputs.values.push_back(std::move(value));
    types.push_back(*type);
    return success();
  }

  /// An option must be about an input that exists and is of the right kind.
  LogicalResult check(StringRef option, StringRef name, StringRef kind,
                      const llvm::StringSet<> &fitting) {
    if (fitting.contains(name))
      return success();
    if (all.contains(name))
      return emitError(loc) << option << " " << name << ": the input '" << name
                            << "' is not " << kind;
    return emitError(loc) << option << " " << name
                          << ": the model has no input '" << name << "'"
                          << suggestName(name,
                                         fitting.empty() ? "its inputs are"
                                                         : "there are",
                                         fitting.empty() ? all : fitting);
  }

  LogicalResult checkOptions() {
    constexpr int64_t mostElements = 65536;
    for (const std::string &name : options.absent)
      PARTITA_TRY(check("--absent", name, "an optional", optionals));
    SmallVector<StringRef> given(options.lengths.keys());
    llvm::sort(given);
    for (StringRef name : given) {
      int64_t length = options.lengths.lookup(name);
      PARTITA_TRY(check("--length", name, "a sequence", sequences));
      if (length < 0 || length > mostElements)
        return emitError(loc)
               << "--length " << name << "=" << length
               << ": a sequence has 0 to " << mostElements << " elements";
      if (is_contained(options.absent, name))
        return emitError(loc) << "--length " << name << ": --absent " << name
                              << " leaves out the whole sequence";
    }
    return success();
  }

  LogicalResult reportOpen() {
    if (open.empty())
      return success();
    InFlightDiagnostic error = emitError(loc);
    error << "the lengths of the model's sequences are not all known:";
    for (const std::string &name : open) {
      error << "\n  the sequence '" << name << "': give it with --length "
            << name << "=COUNT";
      if (optionals.contains(name))
        error << ", or leave it out with --absent " << name;
    }
    return error;
  }

  LogicalResult addTensors(InputValue &value,
                           const onnx::TypeProto::Tensor &declared) {
    value.first = inputs.tensors.size();
    if (!value.kind || value.kind == CollectionKind::optional_tensor) {
      if (value.present)
        inputs.tensors.push_back({value.name, value.port, &declared, ""});
      return success();
    }
    for (size_t i = 0; i < value.count; ++i) {
      std::string name = getElementName(value.name, i);
      if (all.contains(name))
        return emitError(loc)
               << "the sequence '" << value.name << "' and the input '" << name
               << "' cannot be told apart: an element of the sequence has that "
                  "name too; rename one of the two in the model";
      inputs.tensors.push_back({name, value.port, &declared, value.name});
    }
    return success();
  }

  const ImportOptions &options;
  Location loc;
  std::vector<const onnx::ValueInfoProto *> infos;
  ModelInputs inputs;
  std::vector<DeclaredType> types; // of inputs.values
  llvm::StringSet<> all, sequences, optionals;
  std::vector<std::string> open;
};

} // namespace

FailureOr<ModelInputs> takeInputsApart(const onnx::GraphProto &graph,
                                       const ImportOptions &options,
                                       Location loc) {
  return InputParts(graph, options, loc).run();
}

} // namespace partita::import
