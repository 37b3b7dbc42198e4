//===- AddLoss.cpp - A loss in the place of the outputs -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Samples.h"
#include "compiler/autodiff/Losses.h"
#include "compiler/autodiff/Passes.h"
#include "compiler/autodiff/Ports.h"
#include "compiler/autodiff/Replicas.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/support/Try.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace partita::nn::grad;
using partita::nn::grad::Shape;

namespace partita::autodiff {

#define GEN_PASS_DEF_ADDLOSSPASS
#include "compiler/autodiff/Passes.h.inc"

namespace {

class LossBuilder {
public:
  LossBuilder(func::FuncOp function, LossSpec spec, LossResults mode)
      : function(function), spec(std::move(spec)), mode(mode),
        end(function.getBody().front().getTerminator()) {}

  LogicalResult run() {
    PARTITA_TRY(findOutput());
    PARTITA_TRY(checkOutput());
    ImplicitLocOpBuilder b(
        NameLoc::get(StringAttr::get(function.getContext(), "loss")), end);
    Value target = addTarget();
    if (!target && spec.kind->target != Target::none)
      return failure();
    LabelCounts counts;
    const Loss loss = buildWhole(b, target, counts);
    if (spec.kind->target == Target::labels)
      checkLabels(Term(b, target));
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      function.removeArgAttr(i, b.getStringAttr(nn::kBatchAxisAttr));
    if (mode != LossResults::whole) {
      // A step sums micro-batches up: their samples are told apart by nobody.
      function->getParentOp()->removeAttr(analysis::kMixesAttr);
      setParts(loss, counts);
      return success();
    }
    function->getParentOp()->setAttr(
        analysis::kMixesAttr,
        b.getStringAttr("the loss combines the samples of '" + nameOf(output) +
                        "'"));
    Term whole = loss.count.get() ? loss.sum / loss.count : loss.sum;
    setResults(function, {{whole.get(), "loss"}});
    return success();
  }

private:
  /// The loss of all samples. Replicas compute that of their own ones, and add
  /// up. The same of labels, if it is an evaluation that compares with them.
  Loss buildWhole(ImplicitLocOpBuilder &b, Value target, LabelCounts &counts) {
    Value whole = end->getOperand(output);
    const std::optional<DealtOutput> dealt = findDealt(b, whole);
    const bool hasLabels = spec.kind->target == Target::labels;
    const bool isCounted = hasLabels && mode == LossResults::evaluation;
    // One number has no samples, and classes may be dealt out as samples are.
    if (!dealt || spec.kind->name == "output" ||
        (hasLabels && dealt->dim == axis)) {
      if (isCounted)
        counts = countLabels(spec, Term(b, whole), Term(b, target), axis);
      return buildLoss(spec, Term(b, whole), Term(b, target), axis);
    }
    if (target)
      target = dealt->takeOwn(
          b, target, dealt->dim - (hasLabels && axis < dealt->dim ? 1 : 0));
    Loss loss = buildLoss(spec, Term(b, dealt->own), Term(b, target), axis);
    if (isCounted) {
      counts = countLabels(spec, Term(b, dealt->own), Term(b, target), axis);
      for (Term *each : {&counts.all, &counts.right, &counts.rightOfFive})
        *each = {b, sumOverReplicas(b, *each,
                                    "labels are counted over all replicas")};
    }
    loss.sum = {b, sumOverReplicas(b, loss.sum,
                                   "the loss is that of all "
                                   "replicas")};
    if (!loss.count.get())
      return loss;
    // All replicas have equally many elements, but maybe not labels that count.
    loss.count =
        matchPattern(loss.count.get(), m_Constant())
            ? loss.count * static_cast<double>(dealt->replicas)
            : Term(b, sumOverReplicas(b, loss.count,
                                      "the loss is the mean over the samples "
                                      "of all replicas"));
    return loss;
  }

  /// The loss as a sum and the number that it is divided by, and what an
  /// evaluation counts.
  void setParts(const Loss &loss, const LabelCounts &counts) {
    std::vector<Result> results = {{loss.sum.get(), "loss.sum"}};
    if (loss.count.get())
      results.push_back({loss.count.get(), "loss.count"});
    if (counts.all.get())
      results.insert(results.end(),
                     {{counts.all.get(), "labels.count"},
                      {counts.right.get(), "labels.right"},
                      {counts.rightOfFive.get(), "labels.right_of_five"}});
    setResults(function, results);
    if (loss.count.get())
      function.setResultAttr(1, kCountAttr,
                             UnitAttr::get(function.getContext()));
  }

  InFlightDiagnostic fail() {
    return emitError(UnknownLoc::get(function.getContext()))
           << "--loss " << spec.kind->name << ":" << spec.names << ": ";
  }

  StringRef nameOf(unsigned result) {
    auto name = function.getResultAttrOfType<StringAttr>(result, nn::kNameAttr);
    return name ? name.getValue() : StringRef();
  }

  /// Which output the loss is of, and how its input is called.
  LogicalResult findOutput() {
    StringRef names = spec.names;
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      StringRef name = nameOf(i), rest = names;
      if (name.empty() || !rest.consume_front(name) ||
          (!rest.empty() && !rest.consume_front(":")))
        continue;
      // Of names of which one begins with another, the longest.
      if (output >= 0 && nameOf(output).size() > name.size())
        continue;
      output = static_cast<int>(i);
      input = rest.empty() ? "target" : rest.str();
      hasInput = !rest.empty();
    }
    if (output < 0) {
      std::string known;
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        known += (known.empty() ? "'" : ", '") + nameOf(i).str() + "'";
      return fail() << "the model has no output '" << names.split(':').first
                    << "'; its outputs are " << known;
    }
    if (hasInput && spec.kind->target == Target::none)
      return fail() << "this loss compares with nothing, so it has no input '"
                    << input << "'";
    return success();
  }

  LogicalResult checkOutput() {
    auto type = nn::getTensorType(end->getOperand(output));
    if (!isa<FloatType>(type.getElementType()))
      return fail() << "the output is " << type
                    << ", and a loss is computed of floats";
    if (type.getNumElements() == 0)
      return fail() << "the output " << type << " has no elements";
    if (spec.kind->name == "output" && type.getNumElements() != 1)
      return fail() << "the output is " << type
                    << ", and a loss is one number; sum:" << spec.names
                    << " is the sum of its elements";
    if (spec.kind->target != Target::labels)
      return success();
    const int64_t rank = type.getRank();
    // Labels of samples, of positions of a text [N, T, C], of pixels
    // [N, C, H, W].
    axis = spec.axis.value_or(rank <= 3 ? rank - 1 : 1);
    if (rank < 2)
      return fail() << "the output is " << type
                    << "; it needs a dimension of samples and one of classes";
    if (axis < -rank || axis >= rank)
      return fail() << "there is no axis " << axis << " of " << type;
    axis += axis < 0 ? rank : 0;
    if (rank > 2 && !spec.axis)
      emitRemark(UnknownLoc::get(function.getContext()))
          << "the classes of the loss are along axis " << axis << " of "
          << spec.names << " " << type << "; --loss " << spec.kind->name << ":"
          << spec.names << ",axis=... says another";
    return success();
  }

  /// The new input, of the type that the loss compares with.
  Value addTarget() {
    MLIRContext *context = function.getContext();
    auto type = nn::getTensorType(end->getOperand(output));
    if (spec.kind->target == Target::none)
      return {};
    if (spec.kind->target == Target::labels) {
      Shape shape(type.getShape());
      shape.erase(shape.begin() + axis);
      type = RankedTensorType::get(shape, IntegerType::get(context, 64));
    }
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto name = function.getArgAttrOfType<StringAttr>(i, nn::kNameAttr);
      if (name && name.getValue() == input)
        return fail() << "the model has an input '" << input
                      << "' already; name the one of the loss: --loss "
                      << spec.kind->name << ":" << nameOf(output) << ":NAME",
               Value();
    }
    FailureOr<BlockArgument> added = addInput(function, input, type);
    return failed(added) ? Value() : Value(*added);
  }

  /// A label that is no class is an error of the run.
  void checkLabels(Term labels) {
    const int64_t classes =
        nn::getTensorType(end->getOperand(output)).getDimSize(axis);
    Builder b(function.getContext());
    auto word = [&](StringRef key, const Twine &text) {
      return b.getNamedAttr(key, b.getStringAttr(text));
    };
    auto numbers = [&](StringRef key, ArrayRef<int64_t> list) {
      return b.getNamedAttr(key, b.getDenseI64ArrayAttr(list));
    };
    addCheck(function, buildLabelCheck(spec, labels, classes),
             b.getDictionaryAttr(
                 {word("op", spec.kind->name), word("node", "loss"),
                  word("operand", "labels"), word("tensor", input),
                  numbers("shape", labels.shape()), numbers("low", {0}),
                  numbers("high", {classes - 1})}));
  }

  func::FuncOp function;
  const LossSpec spec;
  const LossResults mode;
  Operation *end;
  int output = -1;
  int64_t axis = 0;
  std::string input;
  bool hasInput = false;
};

struct AddLossPass : impl::AddLossPassBase<AddLossPass> {
  using AddLossPassBase::AddLossPassBase;

  void runOnOperation() override {
    Location loc = UnknownLoc::get(&getContext());
    llvm::Expected<LossSpec> spec = parseLoss(loss);
    if (!spec) {
      emitError(loc) << llvm::toString(spec.takeError());
      return signalPassFailure();
    }
    func::FuncOp function = getModelFunction(getOperation());
    const LossResults mode = evaluate ? LossResults::evaluation
                             : parts  ? LossResults::parts
                                      : LossResults::whole;
    if (!function ||
        failed(LossBuilder(function, std::move(*spec), mode).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::autodiff
