//===- InputShapes.cpp - Static shapes of a model's inputs ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/InputShapes.h"

#include "compiler/import/model/DimExpression.h"
#include "compiler/import/model/TensorData.h"
#include "dialects/support/Try.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// Sizes of symbolic dimensions, and what gave them.
class SymbolTable {
public:
  explicit SymbolTable(Location loc) : loc(loc) {}

  LogicalResult bind(StringRef name, int64_t size, const Twine &reason) {
    auto [it, isNew] = sizes.try_emplace(name, size, reason.str());
    if (isNew || it->second.first == size)
      return success();
    return emitError(loc) << "the dimension '" << name << "' would be both "
                          << it->second.first << " (" << it->second.second
                          << ") and " << size << " (" << reason << ")";
  }

  /// What was given, or what follows from it.
  std::optional<int64_t> lookup(StringRef name) const {
    if (std::optional<int64_t> size = getGiven(name))
      return size;
    return evaluateDim(name, [&](StringRef part) { return getGiven(part); });
  }

private:
  std::optional<int64_t> getGiven(StringRef name) const {
    auto it = sizes.find(name);
    return it == sizes.end() ? std::nullopt : std::optional(it->second.first);
  }

  Location loc;
  StringMap<std::pair<int64_t, std::string>> sizes;
};

class Binder {
public:
  Binder(MutableArrayRef<ModelInput> inputs, const ImportOptions &options,
         Location loc)
      : options(options), loc(loc), symbols(loc), inputs(inputs) {}

  LogicalResult run() {
    PARTITA_TRY(checkOptions());
    for (const auto &dim : options.dims)
      if (dim.second < 0)
        return emitError(loc) << "--dim " << dim.first() << "=" << dim.second
                              << ": a size cannot be negative";
      else
        PARTITA_TRY(
            symbols.bind(dim.first(), dim.second,
                         "--dim " + dim.first() + "=" + Twine(dim.second)));
    for (ModelInput &input : inputs) {
      PARTITA_TRY(readValue(input));
      PARTITA_TRY(bindGiven(input));
    }
    for (ModelInput &input : inputs)
      resolve(input);
    // A misspelt name is the likely reason why another one is open.
    PARTITA_TRY(checkDims());
    PARTITA_TRY(reportOpen());
    for (ModelInput &input : inputs)
      if (!countElements(input.type.getShape()))
        return emitError(loc)
               << "the input '" << input.name << "' is too large";
    return success();
  }

private:
  LogicalResult checkDims() {
    SmallVector<StringRef> given(options.dims.keys());
    llvm::sort(given);
    for (StringRef name : given)
      if (!knownDims.contains(name))
        return emitError(loc)
               << "--dim " << name << ": no input has a dimension '" << name
               << "'" << suggestName(name, "its dimensions are", knownDims);
    return success();
  }

  /// Every option must be about an input that exists.
  LogicalResult checkOptions() {
    llvm::StringSet<> names, sequences;
    for (const ModelInput &input : inputs) {
      names.insert(input.name);
      if (!input.sequence.empty())
        sequences.insert(input.sequence);
    }
    SmallVector<StringRef> given(options.shapes.keys());
    llvm::sort(given);
    for (StringRef name : given)
      if (!names.contains(name) && !sequences.contains(name))
        return emitError(loc)
               << "--shape " << name << ": the model has no input '" << name
               << "'" << suggestName(name, "its inputs are", names);
    for (const auto &constant : options.constants)
      if (sequences.contains(constant.first))
        return emitError(loc)
               << "--constant " << constant.first << ": the input '"
               << constant.first
               << "' is a sequence; fix its elements, each with --constant "
               << constant.first << ".0=FILE";
      else if (!names.contains(constant.first))
        return emitError(loc)
               << "--constant " << constant.first
               << ": the model has no input '" << constant.first << "'"
               << suggestName(constant.first, "its inputs are", names);
    return success();
  }

  /// The type of an input whose value is written as `numbers` numbers: what
  /// --shape or the model says, else a scalar, or a list of them.
  FailureOr<RankedTensorType> getLiteralType(const ModelInput &input,
                                             int64_t numbers) {
    const onnx::TypeProto::Tensor &declared = *input.declared;
    Type element = getElementType(loc.getContext(), declared.elem_type());
    SmallVector<int64_t> shape;
    if (auto it = options.shapes.find(input.name); it != options.shapes.end()) {
      shape = it->second;
    } else if (!declared.has_shape()) {
      if (numbers > 1)
        shape.push_back(numbers);
    } else {
      for (const auto &dim : declared.shape().dim()) {
        if (dim.has_dim_value() && dim.dim_value() >= 0)
          shape.push_back(dim.dim_value());
        else if (std::optional<int64_t> size = symbols.lookup(dim.dim_param()))
          shape.push_back(*size);
        else if (declared.shape().dim_size() == 1)
          shape.push_back(numbers);
        else
          return emitError(loc)
                 << "--constant " << input.name
                 << ": the shape of the input is not known: give it with "
                    "--shape "
                 << input.name << "=AxBx..., or a file";
      }
    }
    if (!countElements(shape))
      return emitError(loc) << "the input '" << input.name << "' is too large";
    return RankedTensorType::get(shape, element);
  }

  LogicalResult readValue(ModelInput &input) {
    auto it = options.constants.find(input.name);
    if (it == options.constants.end())
      return success();
    if (isLiteral(it->second)) {
      RankedTensorType type = PARTITA_TRY(
          getLiteralType(input, StringRef(it->second).count(',') + 1));
      input.value = PARTITA_TRY(readLiteral(it->second, type, input.name, loc));
    } else {
      input.value = PARTITA_TRY(readInputFile(it->second, input.name, loc));
    }
    return success();
  }

  /// Matches the shape that was given for an input, if any, with its
  /// declaration.
  LogicalResult bindGiven(ModelInput &input) {
    const onnx::TypeProto::Tensor &declared = *input.declared;
    SmallVector<int64_t> given;
    std::string reason;
    // What is said of an element counts more than what is said of them all.
    auto it = options.shapes.find(input.name);
    if (it == options.shapes.end() && !input.sequence.empty())
      it = options.shapes.find(input.sequence);
    if (it != options.shapes.end()) {
      given = it->second;
      reason = ("--shape " + it->first()).str();
    }
    if (input.value) {
      auto type = cast<RankedTensorType>(input.value.getType());
      if (getOnnxType(type.getElementType()) != declared.elem_type())
        return emitError(loc)
               << "--constant " << input.name << ": the file holds "
               << getOnnxTypeName(getOnnxType(type.getElementType()))
               << ", and the input is of "
               << getOnnxTypeName(declared.elem_type());
      given.assign(type.getShape().begin(), type.getShape().end());
      reason = "--constant " + input.name;
    }
    if (reason.empty())
      return success();
    input.type = RankedTensorType::get(
        given, getElementType(loc.getContext(), declared.elem_type()));
    if (!declared.has_shape())
      return success();
    if (declared.shape().dim_size() != static_cast<int>(given.size()))
      return emitError(loc)
             << reason << " has rank " << given.size()
             << ", and the input has rank " << declared.shape().dim_size();
    for (auto [i, dim] : enumerate(declared.shape().dim())) {
      if (dim.has_dim_value() && dim.dim_value() >= 0 &&
          dim.dim_value() != given[i]) {
        InFlightDiagnostic error = emitError(loc);
        error << reason << ": dimension " << i << " is " << dim.dim_value()
              << " in the model and cannot be " << given[i];
        if (i == 0 && !input.value)
          error << "; if it counts samples, leave it at " << dim.dim_value()
                << ": any number of samples goes through, that many a "
                   "micro-batch";
        return error;
      }
      if (input.sequence.empty() && !dim.dim_param().empty())
        PARTITA_TRY(symbols.bind(dim.dim_param(), given[i], reason));
    }
    return success();
  }

  void resolve(ModelInput &input) {
    const onnx::TypeProto::Tensor &declared = *input.declared;
    const bool isGiven = static_cast<bool>(input.type);
    if (!isGiven && !declared.has_shape()) {
      openRanks.push_back(input.name);
      return;
    }
    SmallVector<int64_t> shape;
    for (auto [i, dim] : enumerate(declared.shape().dim())) {
      StringRef symbol = dim.has_dim_param() ? StringRef(dim.dim_param()) : "";
      if (!symbol.empty()) {
        knownDims.insert(symbol);
        knownDims.insert_range(findDimNames(symbol));
      }
      input.dims.push_back(symbol.str());
      input.fixed.push_back(dim.has_dim_value() && dim.dim_value() >= 0);
      if (isGiven)
        continue;
      // A negative size is how some exporters write an unknown one.
      if (dim.has_dim_value() && dim.dim_value() >= 0) {
        shape.push_back(dim.dim_value());
      } else if (std::optional<int64_t> size = symbols.lookup(symbol);
                 size && !symbol.empty()) {
        shape.push_back(*size);
      } else {
        shape.push_back(1);
        hasOpenInner |= i > 0;
        if (!symbol.empty())
          addOpen(symbol);
        else
          openInputs.push_back(input.name);
      }
    }
    if (!isGiven)
      input.type = RankedTensorType::get(
          shape, getElementType(loc.getContext(), declared.elem_type()));
  }

  /// Of one that depends on dimensions of inputs, those that are open stand for
  /// it.
  void addOpen(StringRef symbol) {
    const SmallVector<StringRef> names = findDimNames(symbol);
    const bool isKnown = llvm::all_of(names, [&](StringRef name) {
      return llvm::any_of(inputs, [&](const ModelInput &input) {
        return llvm::any_of(
            input.declared->shape().dim(),
            [&](const auto &dim) { return dim.dim_param() == name; });
      });
    });
    const bool isOpen = llvm::any_of(
        names, [&](StringRef name) { return !symbols.lookup(name); });
    if (!isKnown || !isOpen)
      openSymbols.insert(symbol);
  }

  LogicalResult reportOpen() {
    if (openSymbols.empty() && openInputs.empty() && openRanks.empty())
      return success();
    // A model that leaves nothing open but its batch.
    if (openSymbols.size() == 1 && openInputs.empty() && openRanks.empty() &&
        !hasOpenInner) {
      StringRef batch = openSymbols.begin()->getKey();
      emitRemark(loc) << "dimension '" << batch
                      << "' is not given: it is 1 in a micro-batch (--dim "
                      << batch << "=SIZE for another size)";
      return success();
    }
    InFlightDiagnostic error = emitError(loc);
    error << "the model's shapes are not all known:";
    SmallVector<StringRef> sorted(openSymbols.keys());
    llvm::sort(sorted);
    for (StringRef symbol : sorted)
      error << "\n  dimension '" << symbol << "': give it with --dim "
            << (isShellWord(symbol) ? symbol + "=SIZE"
                                    : "'" + symbol + "=SIZE'");
    for (const std::string &name : openInputs)
      error << "\n  an unnamed dimension of the input '" << name
            << "': give its shape with --shape " << name << "=AxBx...";
    for (const std::string &name : openRanks)
      error << "\n  the shape of the input '" << name
            << "': give it with --shape " << name << "=AxBx...";
    return error;
  }

  /// Whether a shell takes a name as it is.
  static bool isShellWord(StringRef name) {
    return llvm::all_of(name, [](char c) {
      return isAlnum(c) || StringRef("_-.:/+").contains(c);
    });
  }

  const ImportOptions &options;
  Location loc;
  SymbolTable symbols;
  const MutableArrayRef<ModelInput> inputs;
  llvm::StringSet<> knownDims, openSymbols;
  bool hasOpenInner = false; ///< not the first dimension of an input
  std::vector<std::string> openInputs, openRanks;
};

} // namespace

std::string suggestName(StringRef name, StringRef lead,
                        const llvm::StringSet<> &known) {
  SmallVector<StringRef> sorted(known.keys());
  if (sorted.empty())
    return "";
  llvm::sort(sorted);
  StringRef nearest;
  unsigned distance = std::max<unsigned>(1, name.size() / 3) + 1;
  for (StringRef candidate : sorted)
    if (unsigned d = name.edit_distance_insensitive(candidate, true, distance);
        d < std::min<size_t>(distance, candidate.size())) {
      nearest = candidate;
      distance = d;
    }
  if (!nearest.empty())
    return ("; did you mean '" + nearest + "'?").str();
  return ("; " + lead + " '" + join(sorted, "', '") + "'").str();
}

FailureOr<ModelInputs> bindInputs(const onnx::GraphProto &graph,
                                  const ImportOptions &options, Location loc) {
  ModelInputs inputs = PARTITA_TRY(takeInputsApart(graph, options, loc));
  PARTITA_TRY(Binder(inputs.tensors, options, loc).run());
  PARTITA_TRY(findSampleAxes(inputs.tensors, options, loc));
  return inputs;
}

} // namespace partita::import
