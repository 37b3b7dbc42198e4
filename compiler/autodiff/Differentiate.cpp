//===- Differentiate.cpp - The gradient of each trained parameter ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reverse mode. A value is *active* if it is computed from what is
// differentiated, through floats. From the loss on, in reverse order, each op
// with active operands gives them their parts of the cotangent of its result.
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Activity.h"
#include "compiler/autodiff/Passes.h"
#include "compiler/autodiff/Ports.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/grad/Term.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace partita::nn::grad;

namespace partita::autodiff {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "compiler/autodiff/Passes.h.inc"

namespace {

class Differentiator {
public:
  Differentiator(ModuleOp module, func::FuncOp function, bool inputs)
      : module(module), function(function),
        end(function.getBody().front().getTerminator()),
        b(UnknownLoc::get(function.getContext()), end), inputs(inputs) {}

  LogicalResult run() {
    findTrained();
    active = findActive(module, function, inputs);
    Value loss = end->getOperand(0);
    const bool hasCount =
        function.getNumResults() > 1 && function.getResultAttr(1, kCountAttr);
    if (hasCount)
      count = end->getOperand(1);
    const unsigned next = hasCount ? 2 : 1;
    const bool isAlone = end->getNumOperands() == next ||
                         function.getResultAttr(next, nn::kCheckAttr) ||
                         function.getResultAttr(next, nn::kStateAttr);
    if (!isAlone || !isa<FloatType>(elementOf(loss)) ||
        nn::getTensorType(loss).getNumElements() != 1)
      return emitError(function.getLoc())
             << "a loss is one number, of floats; --nn-add-loss makes one";
    if (active.contains(loss))
      cotangents[loss] = Term(b, loss).splat(1);
    for (Operation &op : llvm::make_early_inc_range(
             llvm::reverse(end->getBlock()->without_terminator())))
      if (failed(differentiate(&op)))
        return failure();
    return addResults(loss);
  }

private:
  static Type elementOf(Value value) {
    return nn::getTensorType(value).getElementType();
  }

  /// The values to which the loss is differentiated, in the module's order.
  void findTrained() {
    for (auto weight : module.getOps<nn::WeightOp>())
      if (weight->hasAttr(kTrainedAttr))
        weights[weight.getSymNameAttr()] = {weight, {}};
    function.walk([&](nn::ParameterOp parameter) {
      auto found = weights.find(parameter.getWeightAttr().getAttr());
      if (found != weights.end())
        found->second.uses.push_back(parameter.getResult());
    });
  }

  void add(Value value, Value part) {
    auto [it, isFirst] = cotangents.try_emplace(value, part);
    if (!isFirst)
      it->second = Term(b, it->second) + Term(b, part);
  }

  struct Part {
    nn::SliceOp slice;
    Value cotangent; ///< of its result
  };

  /// The only dimension that is cut, if neighbours are taken; else -1.
  static int64_t dimOf(nn::SliceOp slice) {
    int64_t dim = -1;
    const ArrayRef<int64_t> whole = slice.getX().getType().getShape();
    for (size_t i = 0; i < whole.size(); ++i) {
      if (slice.getStrides()[i] != 1)
        return -1;
      if (slice.getType().getShape()[i] == whole[i])
        continue;
      if (dim >= 0)
        return -1;
      dim = int64_t(i);
    }
    return dim;
  }

  /// Adds the cotangents of slices of a value. Those that lie side by side are
  /// put together: one tensor of the value's size for each of them would be too
  /// much for the steps of a recurrent layer.
  void join(Value value, SmallVector<Part> parts) {
    llvm::stable_sort(parts, [](const Part &one, const Part &other) {
      return startOf(one) < startOf(other);
    });
    while (!parts.empty()) {
      const int64_t dim = dimOf(parts.front().slice);
      SmallVector<Part> later;
      SmallVector<Value> row;
      int64_t end = 0;
      auto fill = [&](int64_t to) {
        if (to == end)
          return;
        Shape shape(nn::getTensorType(value).getShape());
        shape[size_t(dim)] = to - end;
        row.push_back(nn::ConstantOp::create(
            b, DenseElementsAttr::get(
                   RankedTensorType::get(shape, elementOf(value)),
                   b.getFloatAttr(elementOf(value), 0).getValue())));
      };
      for (Part &part : parts) {
        if (dimOf(part.slice) != dim || startOf(part) < end) {
          later.push_back(part);
          continue;
        }
        fill(startOf(part));
        row.push_back(part.cotangent);
        end = part.slice.getLimits()[size_t(dim)];
      }
      fill(nn::getTensorType(value).getDimSize(unsigned(dim)));
      add(value, row.size() == 1
                     ? row[0]
                     : b.createOrFold<nn::ConcatOp>(value.getType(), row, dim));
      parts = later;
    }
  }

  static int64_t startOf(const Part &part) {
    nn::SliceOp slice = part.slice;
    return slice.getStarts()[size_t(dimOf(slice))];
  }

  /// The cotangent of a value whose uses are all done; null if it has none.
  Value take(Value value) {
    if (auto found = slices.find(value); found != slices.end()) {
      join(value, std::move(found->second));
      slices.erase(value);
    }
    Value all = cotangents.lookup(value);
    cotangents.erase(value);
    return all;
  }

  LogicalResult differentiate(Operation *op) {
    if (op->getNumResults() != 1 || isa<nn::ParameterOp>(op))
      return success();
    // The derivative belongs to the node, and so to its block.
    b.setLoc(op->getLoc());
    Value cotangent = take(op->getResult(0));
    if (!cotangent || llvm::none_of(op->getOperands(), [&](Value operand) {
          return active.contains(operand);
        }))
      return success();
    if (auto slice = dyn_cast<nn::SliceOp>(op); slice && dimOf(slice) >= 0) {
      slices[slice.getX()].push_back({slice, cotangent});
      return success();
    }
    SmallVector<Value> parts;
    auto differentiable = dyn_cast<nn::DifferentiableOpInterface>(op);
    if (!differentiable || failed(differentiable.buildVjp(b, cotangent, parts)))
      return refuse(op);
    for (auto [operand, part] : llvm::zip_equal(op->getOperands(), parts))
      if (part && active.contains(operand))
        add(operand, part);
    return success();
  }

  /// What cannot be differentiated, and how the loss depends on it.
  LogicalResult refuse(Operation *op) {
    InFlightDiagnostic error =
        emitError(op->getLoc())
        << op->getName().getStringRef()
        << " has no derivative, and the loss depends on ";
    Value value = op->getResult(0);
    SmallVector<std::string> way;
    while (Value from = active.lookup(value)) {
      std::string name = nn::getNodeName(value.getDefiningOp());
      if (way.empty() || way.back() != name)
        way.push_back(name);
      value = from;
    }
    if (auto parameter = value.getDefiningOp<nn::ParameterOp>())
      error << "'"
            << weights.lookup(parameter.getWeightAttr().getAttr())
                   .weight.getOrigin()
            << "'";
    else
      error << "the input '" << getArgumentName(cast<BlockArgument>(value))
            << "'";
    error << " through it (";
    constexpr size_t kMostNodes = 6;
    for (size_t i = way.size(); i-- > 0;) {
      if (way.size() > kMostNodes && i + 3 < way.size() && i >= 3) {
        error << (i == 3 ? "... -> " : "");
        continue;
      }
      error << way[i] << " -> ";
    }
    return error
           << "loss): freeze what is before it (--freeze), or replace the "
              "node in the model";
  }

  std::string getArgumentName(BlockArgument argument) {
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      nn::kNameAttr);
    return name ? name.str() : "x" + std::to_string(argument.getArgNumber());
  }

  LogicalResult addResults(Value loss) {
    std::vector<Result> results = {{loss, count ? "loss.sum" : "loss"}};
    if (count)
      results.push_back({count, "loss.count"});
    const size_t losses = results.size();
    Builder attributes(function.getContext());
    for (auto &[symbol, trained] : weights) {
      Value sum;
      for (Value use : trained.uses)
        if (Value part = take(use))
          sum = sum ? (Term(b, sum) + Term(b, part)).get() : part;
      if (sum) {
        results.push_back({sum, (trained.weight.getOrigin() + ".grad").str()});
        continue;
      }
      trained.weight->removeAttr(kTrainedAttr);
      trained.weight->setAttr(
          kUntrainedAttr,
          attributes.getStringAttr("the loss does not depend on it"));
    }
    if (inputs)
      for (BlockArgument argument : function.getArguments())
        if (Value sum = take(argument))
          results.push_back({sum, getArgumentName(argument) + ".grad"});
    if (results.size() == losses)
      return emitError(UnknownLoc::get(function.getContext()))
             << "the loss depends on no parameter that is trained; "
                "--list-parameters says why each is not";
    setResults(function, results);
    if (count)
      function.setResultAttr(1, kCountAttr, attributes.getUnitAttr());
    return success();
  }

  struct Trained {
    nn::WeightOp weight;
    SmallVector<Value, 1> uses;
  };
  ModuleOp module;
  func::FuncOp function;
  Operation *end;
  ImplicitLocOpBuilder b;
  Value count; ///< see kCountAttr; or null
  const bool inputs;
  llvm::MapVector<StringAttr, Trained> weights; // by symbol
  llvm::DenseMap<Value, Value> active;
  llvm::DenseMap<Value, Value> cotangents;
  llvm::DenseMap<Value, SmallVector<Part>> slices; // of values, to be joined
};

struct DifferentiatePass : impl::DifferentiatePassBase<DifferentiatePass> {
  using DifferentiatePassBase::DifferentiatePassBase;

  void runOnOperation() override {
    func::FuncOp function = getModelFunction(getOperation());
    if (!function ||
        failed(Differentiator(getOperation(), function, inputs).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::autodiff
