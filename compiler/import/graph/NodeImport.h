//===- NodeImport.h - One ONNX node on its way to nn ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A `NodeImport` is all that the import function of an op works with. Its
// functions that make values accept null values and then return null. Whoever
// made the first null value has emitted an error. So the line
//
//   return n.result(0, n.unary<nn::SqrtOp>(n.broadcastTo(x, shape)));
//
// needs no checks in between. Constant operands fold. A number may stand for a
// tensor that has it everywhere, and the type of the other operand.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_GRAPH_NODEIMPORT_H
#define PARTITA_COMPILER_IMPORT_GRAPH_NODEIMPORT_H

#include "compiler/import/graph/ModelValue.h"
#include "compiler/import/training/TrainingMode.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/support/Try.h"

#include "onnx/onnx_pb.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace partita::import {

using Shape = llvm::SmallVector<int64_t>;

/// Integers, and the zero point (null: 0) that is to be subtracted from them.
struct Biased {
  mlir::Value value, zero;
};

/// The operands from which a tensor of floats was dequantised: it is (numbers -
/// zero) * scale.
struct Dequantized {
  Biased numbers;
  mlir::Value scale;
  int64_t axis = 0;  ///< of the scales, if there are several
  int64_t block = 0; ///< that share a scale along the axis; 0: none do
};

/// The numbers from low to high, both included.
struct NumberRange {
  int64_t low, high;
  bool operator==(const NumberRange &) const = default;
};

template <typename T>
concept Number = std::is_arithmetic_v<T>;

class NodeImport;

/// Values that nodes of one model share.
class ValueSource {
public:
  virtual ~ValueSource() = default;
  /// The number of replicas whose step the model is.
  int64_t replicas = 1;
  bool checkSamples = false; ///< ImportOptions
  /// The results of DequantizeLinear. A product of such values can multiply the
  /// integers instead.
  llvm::DenseMap<mlir::Value, Dequantized> dequantized;
  /// Results of the model's function that tell of wrong indices; see
  /// math/IndexCheck.h.
  struct Check {
    mlir::Value indices;
    llvm::SmallVector<NumberRange> allowed;
    mlir::Value result;
    mlir::DictionaryAttr description; ///< `nn.check`
  };
  llvm::SmallVector<Check> checks;
  /// Results of the model's function that are new values of running
  /// statistics.
  struct Statistic {
    mlir::FlatSymbolRefAttr weight;
    mlir::Value value;
  };
  llvm::SmallVector<Statistic> statistics;
  TrainingOptions training;
  int64_t randomNodes = 0; ///< that have drawn random numbers
  int64_t variables = 0;   ///< that gradients are taken of
  /// How a node computes. `isKept`: a glob says that it computes as at
  /// inference, whatever the mode.
  struct NodeMode {
    TrainingMode mode;
    bool isKept;
  };
  virtual NodeMode getMode(llvm::StringRef node) = 0;
  /// The inputs that TrainingMode.h names. Null, with an error, if the model
  /// has one of that name, or no samples.
  virtual mlir::Value getSampleNumbers(NodeImport &n) = 0;
  virtual mlir::Value getSeed(NodeImport &n) = 0;
  /// Makes a state of a parameter, here and where its weight is.
  virtual void makeState(nn::ParameterOp parameter) = 0;
  /// The elements of a weight of at most `nn::kMaxFoldedElements` elements.
  virtual mlir::DenseElementsAttr readWeight(llvm::StringRef symbol) = 0;
  /// The name of the model's input that an argument of `@main` is.
  virtual llvm::StringRef getInputName(mlir::BlockArgument argument) = 0;
  /// The value of a tensor in an attribute.
  virtual mlir::Value materialize(const onnx::TensorProto &tensor,
                                  llvm::StringRef name, mlir::Location loc) = 0;
  /// Imports the nodes of a graph that is an attribute of the current node.
  /// There must be as many `arguments` as the graph has inputs. The names of
  /// the imported nodes begin with the node's name and `part`. The results are
  /// the graph's outputs.
  virtual mlir::FailureOr<llvm::SmallVector<ModelValue>>
  importBody(const onnx::GraphProto &body, llvm::ArrayRef<ModelValue> arguments,
             llvm::StringRef part) = 0;
  /// Imports the nodes of a function of ONNX's ops, which takes the place of
  /// the current node and has its inputs.
  virtual llvm::LogicalResult expandBody(const onnx::FunctionProto &body) = 0;
  /// The value of a tensor in the current node's graph where other tensors of
  /// the graph have given values. A variable is different from all others.
  struct Binding {
    std::string name;
    mlir::Value value;
    bool isVariable;
  };
  /// Imports once more the nodes that compute `name` from what is bound to
  /// another value. Emits an error if no node of the graph computes it, or if
  /// it does not depend on one of the variables.
  virtual mlir::FailureOr<ModelValue>
  computeFrom(llvm::StringRef name, llvm::ArrayRef<Binding> bindings) = 0;
};

class NodeImport {
public:
  NodeImport(const onnx::NodeProto &node, int64_t opset,
             llvm::ArrayRef<ModelValue> values, mlir::Location loc,
             mlir::OpBuilder &builder, ValueSource &source);

  const onnx::NodeProto &node;
  const int64_t opset; ///< opset in force for the op
  const llvm::ArrayRef<ModelValue> values;
  /// Null for an input that is omitted or a collection.
  const llvm::SmallVector<mlir::Value> inputs;
  const mlir::Location loc;
  mlir::OpBuilder &b;
  ValueSource &source;
  /// The results of the import function; null for an output that it does not
  /// support.
  llvm::SmallVector<ModelValue> results;

  /// Emits an error about this node. Returns failure.
  llvm::LogicalResult error(const llvm::Twine &message);
  /// The same where a value is asked for. Returns null.
  mlir::Value refuse(const llvm::Twine &message);

  //===--- Operands, results, attributes ----------------------------------===//

  /// The input; null if it is omitted or a collection. Only ops whose schema
  /// allows collections need to expect the latter.
  mlir::Value input(unsigned i) const {
    return i < inputs.size() ? inputs[i] : mlir::Value();
  }
  ModelValue value(unsigned i) const {
    return i < values.size() ? values[i] : ModelValue();
  }
  /// The sequence or optional that an input is, else null.
  const Collection *collection(unsigned i) const {
    return i < values.size() ? values[i].collection() : nullptr;
  }
  bool wantsOutput(unsigned i) const {
    return i < static_cast<unsigned>(node.output_size()) &&
           !node.output(static_cast<int>(i)).empty();
  }
  /// Sets a result. Fails if the value is null.
  llvm::LogicalResult result(unsigned i, ModelValue value);

  /// The attribute, null if there is none. Its type is that of the schema.
  const onnx::AttributeProto *attr(llvm::StringRef name) const;
  int64_t intAttr(llvm::StringRef name, int64_t byDefault) const;
  double floatAttr(llvm::StringRef name, double byDefault) const;
  std::string stringAttr(llvm::StringRef name, llvm::StringRef byDefault) const;
  std::optional<Shape> intsAttr(llvm::StringRef name) const;
  /// The element type that an integer names; null if no tensor can have it.
  mlir::Type typeAttr(llvm::StringRef name, mlir::Type byDefault) const;
  /// A string that must be one of these, of which the first is the default.
  mlir::FailureOr<std::string> choice(llvm::StringRef name,
                                      llvm::ArrayRef<llvm::StringRef> known);

  /// The value of an input that must be known at compile time. If it is not
  /// known, this fails without an error. `reportUnknownInputs` emits one error
  /// for all such inputs of the node, after the import has failed.
  mlir::FailureOr<Shape> constantInts(unsigned i, llvm::StringRef what);
  mlir::FailureOr<int64_t> constantInt(unsigned i, llvm::StringRef what);
  mlir::FailureOr<llvm::SmallVector<double>>
  constantFloats(unsigned i, llvm::StringRef what);
  /// Emits an error that says why inputs are unknown and what the user can do,
  /// if there are such inputs. Returns failure.
  llvm::LogicalResult reportUnknownInputs();
  /// The elements of a value if they are known, else null.
  mlir::DenseElementsAttr getConstant(mlir::Value value, int depth = 0);

  /// Maps an axis in -rank .. rank-1 to 0 .. rank-1.
  mlir::FailureOr<int64_t> axis(int64_t axis, int64_t rank);
  /// An attribute that is an axis.
  mlir::FailureOr<int64_t> axisAttr(int64_t byDefault, int64_t rank,
                                    llvm::StringRef name = "axis") {
    return axis(intAttr(name, byDefault), rank);
  }
  /// The same for several axes. The result is sorted. Repeated axes are an
  /// error.
  mlir::FailureOr<Shape> axes(llvm::ArrayRef<int64_t> axes, int64_t rank);

  //===--- Types ----------------------------------------------------------===//

  static mlir::RankedTensorType typeOf(mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  }
  static llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
    return typeOf(value).getShape();
  }
  static mlir::Type elementOf(mlir::Value value) {
    return typeOf(value).getElementType();
  }
  /// A tensor type; null, with an error, if it is too large.
  mlir::RankedTensorType tensor(llvm::ArrayRef<int64_t> shape,
                                mlir::Type element);
  /// The shape to which all values broadcast, by NumPy's rules.
  mlir::FailureOr<Shape> broadcastShape(llvm::ArrayRef<mlir::Value> values);

  //===--- Values ---------------------------------------------------------===//

  template <typename Op, typename... Args> mlir::Value make(Args &&...args) {
    return b.createOrFold<Op>(loc, std::forward<Args>(args)...);
  }
  template <typename Op> mlir::Value unary(mlir::Value x) {
    return x ? make<Op>(x.getType(), x) : mlir::Value();
  }
  template <typename Op> mlir::Value binary(mlir::Value x, mlir::Value y) {
    return checkSameType(x, y) ? make<Op>(x.getType(), x, y) : mlir::Value();
  }
  template <typename Op> mlir::Value binary(mlir::Value x, Number auto y) {
    return binary<Op>(x, splat(static_cast<double>(y), x));
  }
  mlir::Value add(auto x, auto y) { return binary<nn::AddOp>(x, y); }
  mlir::Value sub(auto x, auto y) { return binary<nn::SubOp>(x, y); }
  mlir::Value mul(auto x, auto y) { return binary<nn::MulOp>(x, y); }
  mlir::Value div(auto x, auto y) { return binary<nn::DivOp>(x, y); }
  mlir::Value max(auto x, auto y) { return binary<nn::MaxOp>(x, y); }
  mlir::Value min(auto x, auto y) { return binary<nn::MinOp>(x, y); }

  using Predicate = nn::ComparePredicate;
  mlir::Value compare(Predicate predicate, mlir::Value x, mlir::Value y);
  mlir::Value compare(Predicate predicate, mlir::Value x, Number auto y) {
    return compare(predicate, x, splat(static_cast<double>(y), x));
  }
  mlir::Value lt(auto x, auto y) { return compare(Predicate::lt, x, y); }
  mlir::Value le(auto x, auto y) { return compare(Predicate::le, x, y); }
  mlir::Value gt(auto x, auto y) { return compare(Predicate::gt, x, y); }
  mlir::Value ge(auto x, auto y) { return compare(Predicate::ge, x, y); }
  mlir::Value eq(auto x, auto y) { return compare(Predicate::eq, x, y); }
  mlir::Value ne(auto x, auto y) { return compare(Predicate::ne, x, y); }

  mlir::Value select(mlir::Value predicate, mlir::Value onTrue,
                     mlir::Value onFalse);
  mlir::Value select(mlir::Value predicate, mlir::Value onTrue,
                     Number auto onFalse) {
    return select(predicate, onTrue,
                  splat(static_cast<double>(onFalse), onTrue));
  }
  mlir::Value select(mlir::Value predicate, Number auto onTrue,
                     mlir::Value onFalse) {
    return select(predicate, splat(static_cast<double>(onTrue), onFalse),
                  onFalse);
  }
  /// The numbers have no type.
  mlir::Value select(mlir::Value, Number auto, Number auto) = delete;
  mlir::Value cast(mlir::Value x, mlir::Type element, bool saturate = true);

  mlir::Value constant(mlir::DenseElementsAttr elements);
  /// A tensor of the type of `like` with one value everywhere.
  mlir::Value splat(double value, mlir::Value like);
  mlir::Value splat(double value, llvm::ArrayRef<int64_t> shape,
                    mlir::Type element);
  /// A vector of integers.
  mlir::Value indices(llvm::ArrayRef<int64_t> values);
  /// A vector of numbers, rounded to `element`.
  mlir::Value numbers(llvm::ArrayRef<double> values, mlir::Type element);

  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  /// Broadcasts to a shape by NumPy's rules.
  mlir::Value broadcastTo(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  /// Dimension i of x becomes dimension dims[i].
  mlir::Value broadcastDims(mlir::Value x, llvm::ArrayRef<int64_t> dims,
                            llvm::ArrayRef<int64_t> shape);
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<int64_t> starts,
                    llvm::ArrayRef<int64_t> limits,
                    llvm::ArrayRef<int64_t> strides);
  /// The places `begin` to `end` of a dimension.
  mlir::Value part(mlir::Value x, int64_t dim, int64_t begin, int64_t end);
  /// One place of a dimension, which the result does not have.
  mlir::Value at(mlir::Value x, int64_t dim, int64_t place);
  mlir::Value reverse(mlir::Value x, llvm::ArrayRef<int64_t> dims);
  mlir::Value concat(llvm::ArrayRef<mlir::Value> values, int64_t dim);
  /// The values along a new dimension.
  mlir::Value stack(llvm::ArrayRef<mlir::Value> values, int64_t dim);
  mlir::Value gather(mlir::Value x, mlir::Value indices, int64_t dim);
  mlir::Value pad(mlir::Value x, mlir::Value value, llvm::ArrayRef<int64_t> low,
                  llvm::ArrayRef<int64_t> high);
  /// `dims` must increase. With `keep` they stay in the result, with size 1.
  mlir::Value reduce(nn::ReduceKind kind, mlir::Value x,
                     llvm::ArrayRef<int64_t> dims, bool keep);
  /// The sum of the elements divided by their number.
  mlir::Value mean(mlir::Value x, llvm::ArrayRef<int64_t> dims, bool keep);

private:
  bool checkSameType(mlir::Value x, mlir::Value y);
  mlir::DenseElementsAttr requireConstant(unsigned i, llvm::StringRef what);

  struct UnknownInput {
    unsigned index;
    std::string what;
    llvm::SmallVector<mlir::BlockArgument> sources; ///< none: weights alone
  };
  llvm::SmallVector<UnknownInput> unknownInputs;
};

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_NODEIMPORT_H
