//===- NodeImport.cpp - One ONNX node on its way to nn --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"

#include "compiler/import/model/TensorData.h"

#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/InterleavedRange.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

static SmallVector<Value> getTensors(ArrayRef<ModelValue> values) {
  return map_to_vector(values, [](const ModelValue &v) { return v.tensor(); });
}

NodeImport::NodeImport(const onnx::NodeProto &node, int64_t opset,
                       ArrayRef<ModelValue> values, Location loc,
                       OpBuilder &builder, ValueSource &source)
    : node(node), opset(opset), values(values), inputs(getTensors(values)),
      loc(loc), b(builder), source(source), results(node.output_size()) {}

LogicalResult NodeImport::error(const Twine &message) {
  return emitError(loc) << node.op_type() << ": " << message;
}

Value NodeImport::refuse(const Twine &message) {
  (void)error(message);
  return {};
}

LogicalResult NodeImport::result(unsigned i, ModelValue value) {
  if (!value)
    return failure();
  if (i < results.size())
    results[i] = std::move(value);
  return success();
}

const onnx::AttributeProto *NodeImport::attr(StringRef name) const {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

int64_t NodeImport::intAttr(StringRef name, int64_t byDefault) const {
  const onnx::AttributeProto *attribute = attr(name);
  return attribute ? attribute->i() : byDefault;
}

double NodeImport::floatAttr(StringRef name, double byDefault) const {
  const onnx::AttributeProto *attribute = attr(name);
  return attribute ? attribute->f() : byDefault;
}

std::string NodeImport::stringAttr(StringRef name, StringRef byDefault) const {
  const onnx::AttributeProto *attribute = attr(name);
  return attribute ? attribute->s() : byDefault.str();
}

std::optional<Shape> NodeImport::intsAttr(StringRef name) const {
  const onnx::AttributeProto *attribute = attr(name);
  if (!attribute)
    return std::nullopt;
  return Shape(attribute->ints().begin(), attribute->ints().end());
}

Type NodeImport::typeAttr(StringRef name, Type byDefault) const {
  const onnx::AttributeProto *attribute = attr(name);
  return attribute ? getElementType(b.getContext(), attribute->i()) : byDefault;
}

FailureOr<std::string> NodeImport::choice(StringRef name,
                                          ArrayRef<StringRef> known) {
  std::string value = stringAttr(name, known.front());
  if (!is_contained(known, value))
    return error("the attribute " + name + " is '" + value + "'");
  return value;
}

DenseElementsAttr NodeImport::getConstant(Value value, int depth) {
  if (!value || depth > 32)
    return {};
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (auto constant = dyn_cast<nn::ConstantOp>(op))
    return dyn_cast<DenseElementsAttr>(constant.getValue());
  if (auto parameter = dyn_cast<nn::ParameterOp>(op))
    return source.readWeight(parameter.getWeight());
  // Not folded when it was made, for a weight takes part: try with its value.
  if (typeOf(value).getNumElements() > nn::kMaxFoldedElements ||
      op->getNumResults() != 1 || op->getNumOperands() == 0)
    return {};
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(getConstant(operand, depth + 1));
    if (!operands.back())
      return {};
  }
  SmallVector<OpFoldResult> folded;
  if (failed(op->fold(operands, folded)) || folded.size() != 1)
    return {};
  return dyn_cast_if_present<DenseElementsAttr>(
      dyn_cast<Attribute>(folded.front()));
}

/// The model's inputs that a value is computed from.
static llvm::SetVector<BlockArgument> getSourceArguments(Value value) {
  llvm::SetVector<BlockArgument> arguments;
  llvm::SetVector<Value> visited;
  visited.insert(value);
  for (size_t i = 0; i < visited.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(visited[i]))
      arguments.insert(argument);
    else
      visited.insert_range(visited[i].getDefiningOp()->getOperands());
  }
  return arguments;
}

/// Whether an input looks like what a model computes on. Sizes, positions and
/// conditions are integers, single ones or in a list.
static bool isData(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  return isa<FloatType>(type.getElementType()) || type.getRank() > 1;
}

/// Whether a model is without data where the values of these inputs are fixed.
static bool areAllData(const llvm::SetVector<BlockArgument> &arguments) {
  return llvm::any_of(arguments, isData) &&
         llvm::all_of(arguments.front().getOwner()->getArguments(),
                      [&](BlockArgument argument) {
                        return !isData(argument) ||
                               arguments.contains(argument);
                      });
}

DenseElementsAttr NodeImport::requireConstant(unsigned i, StringRef what) {
  Value value = input(i);
  if (!value) {
    (void)error("input " + Twine(i) + " (" + what + ") is missing");
    return {};
  }
  if (DenseElementsAttr elements = getConstant(value))
    return elements;
  unknownInputs.push_back(
      {i, what.str(), getSourceArguments(value).takeVector()});
  return {};
}

LogicalResult NodeImport::reportUnknownInputs() {
  llvm::SetVector<BlockArgument> sources;
  SmallVector<std::string> inputs;
  for (const UnknownInput &unknown : unknownInputs) {
    std::string text = std::to_string(unknown.index) + " (" + unknown.what +
                       ", '" + node.input(static_cast<int>(unknown.index)) +
                       "')";
    if (unknown.sources.empty())
      return error("input " + text +
                   " must be known when compiling, and it is computed from "
                   "weights, not from shapes alone");
    if (!is_contained(inputs, text))
      inputs.push_back(text);
    sources.insert_range(unknown.sources);
  }
  if (inputs.empty())
    return failure();
  bool one = inputs.size() == 1;
  InFlightDiagnostic diagnostic = emitError(loc);
  diagnostic << node.op_type() << (one ? ": input " : ": inputs ")
             << join(inputs, ", ") << " must be known when compiling, and "
             << (one ? "it depends" : "they depend") << " on the model's input"
             << (sources.size() == 1 ? " " : "s ");
  for (auto [k, source] : enumerate(sources))
    diagnostic << (k ? ", " : "") << "'" << this->source.getInputName(source)
               << "'";
  if (areAllData(sources)) {
    diagnostic << ", on whose values the model computes; change the model so "
                  "that a constant gives "
               << (one ? "it" : "them") << ", or an input of "
               << (one ? "its" : "their")
               << " own, which --constant NAME=FILE then fixes";
    return diagnostic;
  }
  diagnostic << (sources.size() == 1 ? "; give its value with"
                                     : "; give their values with");
  for (BlockArgument source : sources)
    diagnostic << " --constant " << this->source.getInputName(source)
               << "=FILE";
  return diagnostic;
}

FailureOr<Shape> NodeImport::constantInts(unsigned i, StringRef what) {
  DenseElementsAttr elements = PARTITA_TRY(requireConstant(i, what));
  auto type = dyn_cast<IntegerType>(elements.getElementType());
  if (!type)
    return error("input " + Twine(i) + " (" + what + ") must hold integers");
  Shape values;
  // A list for each dimension of something; a number of elements is not one.
  constexpr int64_t most = 1 << 20;
  if (elements.getNumElements() > most)
    return error("input " + Twine(i) + " (" + what + ") has " +
                 Twine(elements.getNumElements()) + " elements; at most " +
                 Twine(most) + " are possible");
  for (const APInt &value : elements.getValues<APInt>())
    values.push_back(type.isUnsigned() || type.getWidth() == 1
                         ? static_cast<int64_t>(value.getZExtValue())
                         : value.getSExtValue());
  return values;
}

FailureOr<int64_t> NodeImport::constantInt(unsigned i, StringRef what) {
  Shape values = PARTITA_TRY(constantInts(i, what));
  if (values.size() != 1)
    return error(what + " must be a single number");
  return values.front();
}

FailureOr<SmallVector<double>> NodeImport::constantFloats(unsigned i,
                                                          StringRef what) {
  DenseElementsAttr elements = PARTITA_TRY(requireConstant(i, what));
  SmallVector<double> values;
  if (isa<FloatType>(elements.getElementType())) {
    for (const APFloat &value : elements.getValues<APFloat>())
      values.push_back(value.convertToDouble());
    return values;
  }
  Shape ints = PARTITA_TRY(constantInts(i, what));
  values.assign(ints.begin(), ints.end());
  return values;
}

FailureOr<int64_t> NodeImport::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return error("axis " + Twine(axis) + " is out of range for rank " +
                 Twine(rank));
  return axis < 0 ? axis + rank : axis;
}

FailureOr<Shape> NodeImport::axes(ArrayRef<int64_t> axes, int64_t rank) {
  Shape sorted;
  for (int64_t a : axes)
    sorted.push_back(PARTITA_TRY(axis(a, rank)));
  llvm::sort(sorted);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return error("an axis is named twice");
  return sorted;
}

RankedTensorType NodeImport::tensor(ArrayRef<int64_t> shape, Type element) {
  if (countElements(shape))
    return RankedTensorType::get(shape, element);
  std::string text;
  llvm::raw_string_ostream(text) << "[" << llvm::interleaved(shape) << "]";
  (void)error("a tensor of shape " + text + " cannot be made");
  return {};
}

FailureOr<Shape> NodeImport::broadcastShape(ArrayRef<Value> values) {
  Shape shape;
  for (Value value : values) {
    ArrayRef<int64_t> other = shapeOf(value);
    if (other.size() > shape.size())
      shape.insert(shape.begin(), other.size() - shape.size(), 1);
    size_t lead = shape.size() - other.size();
    for (auto [i, size] : enumerate(other)) {
      int64_t &own = shape[lead + i];
      if (own == 1)
        own = size;
      else if (size != 1 && size != own) {
        std::string types;
        for (Value v : values)
          types += (types.empty() ? "" : ", ") + debugString(v.getType());
        return error("the operands do not broadcast to one shape: " + types);
      }
    }
  }
  if (!tensor(shape, b.getI1Type()))
    return failure();
  return shape;
}

} // namespace partita::import
