//===- CarryStates.cpp - What a step leaves for the next one --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/RingBuffer.h"
#include "compiler/analysis/Samples.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/pipeline/Passes.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"
#include "runtime/abi/artifact.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using partita::nn::grad::Term;

namespace partita::pipeline {

#define GEN_PASS_DEF_CARRYSTATESPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

/// What stands for the `*` of a pattern in a name; a pattern without one is the
/// name itself.
std::optional<StringRef> matchStar(StringRef pattern, StringRef name) {
  auto [before, after] = pattern.split('*');
  if (before.size() == pattern.size())
    return pattern == name ? std::optional(StringRef()) : std::nullopt;
  if (name.size() < before.size() + after.size() || !name.starts_with(before) ||
      !name.ends_with(after))
    return std::nullopt;
  return name.drop_front(before.size()).drop_back(after.size());
}

/// "2x8xf32"
std::string describe(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t size : tensor.getShape())
    os << size << "x";
  os << tensor.getElementType();
  return text;
}

/// The dimension in which an output is longer than the input that it is for the
/// next step; nothing if they differ in anything else.
std::optional<unsigned> findGrown(Type input, Type output) {
  auto type = cast<RankedTensorType>(input),
       other = cast<RankedTensorType>(output);
  if (type.getElementType() != other.getElementType() ||
      type.getRank() != other.getRank())
    return std::nullopt;
  std::optional<unsigned> grown;
  for (unsigned dim = 0; dim < type.getRank(); ++dim) {
    if (type.getDimSize(dim) == other.getDimSize(dim))
      continue;
    if (grown || type.getDimSize(dim) > other.getDimSize(dim))
      return std::nullopt;
    grown = dim;
  }
  return grown;
}

class Carrier {
public:
  /// A step is of so many sequences, or of one of several if they `areMany`.
  Carrier(ModuleOp module, func::FuncOp function, int64_t sequences,
          bool areMany)
      : module(module), function(function), sequences(sequences),
        areMany(areMany), symbols(module), b(module.getContext()) {
    for (BlockArgument argument : function.getArguments())
      if (auto name = function.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), nn::kNameAttr))
        inputs[name] = argument.getArgNumber();
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (auto name =
              function.getResultAttrOfType<StringAttr>(i, nn::kNameAttr))
        outputs[name] = i;
  }

  LogicalResult run(ArrayRef<std::string> states) {
    for (const std::string &state : states)
      PARTITA_TRY(addPairs(state));
    if (pairs.size() == outputs.size())
      return emitError(function.getLoc())
             << "--state: every output of the model would be a state";
    if (sequences > 1 && failed(checkParts()))
      return failure();
    addStates();
    module->setAttr(dist::kFullStepsAttr, b.getUnitAttr());
    module->setAttr(dist::kFullMicroBatchesAttr, b.getUnitAttr());
    setAxes();
    return success();
  }

private:
  std::string list(const llvm::MapVector<StringAttr, unsigned> &ports) const {
    std::vector<std::string> names;
    for (const auto &[name, number] : ports)
      names.push_back("'" + name.str() + "'");
    return abi::namesText(names);
  }

  /// "INPUT=OUTPUT". A `*` in both stands for the same text.
  LogicalResult addPairs(StringRef state) {
    auto [from, to] = state.split('=');
    auto fail = [&] {
      return emitError(function.getLoc()) << "--state " << state << ": ";
    };
    if (from.empty() || to.empty() || from.count('*') > 1 ||
        to.count('*') != from.count('*'))
      return fail() << "write it as INPUT=OUTPUT; both may have one *, for the "
                       "same text: past.*=present.*";
    bool any = false;
    for (const auto &[input, argument] : inputs) {
      const std::optional<StringRef> star = matchStar(from, input);
      if (!star)
        continue;
      any = true;
      std::string name = to.str();
      if (const size_t at = name.find('*'); at != std::string::npos)
        name.replace(at, 1, *star);
      auto output = outputs.find(b.getStringAttr(name));
      if (output == outputs.end())
        return fail() << "the model has no output '" << name
                      << "' for the input '" << input.getValue()
                      << "'; its outputs are " << list(outputs);
      const Type type = function.getArgumentTypes()[argument],
                 other = function.getResultTypes()[output->second];
      if (type != other && !findGrown(type, other))
        return fail() << "the input '" << input.getValue() << "' is "
                      << describe(type) << ", and the output '" << name << "' "
                      << describe(other)
                      << ": a state has one type and shape, or keeps the end "
                         "of an output that is longer in one dimension";
      if (!pairs.try_emplace(argument, output->second).second ||
          !taken.insert(output->second).second)
        return fail() << "another --state names '" << input.getValue()
                      << "' or '" << name << "', too";
    }
    if (!any)
      return fail() << "the model has no input '" << from
                    << "'; its inputs are " << list(inputs);
    return success();
  }

  /// Of several sequences each has its part of a state, along dimension 0.
  LogicalResult checkParts() {
    for (const auto &[argument, result] : pairs) {
      const Type type = function.getArgumentTypes()[argument];
      const std::string name =
          function.getArgAttrOfType<StringAttr>(argument, nn::kNameAttr).str();
      auto fail = [&] {
        return emitError(function.getLoc())
               << "a step cannot be of " << sequences << " sequences: ";
      };
      auto state = cast<RankedTensorType>(type);
      if (state.getRank() == 0 || state.getDimSize(0) % sequences)
        return fail() << "the state '" << name << "' is " << describe(type)
                      << ", which they cannot share along dimension 0";
      if (const int64_t bytes = nn::getByteSize(state) / sequences;
          bytes % abi::kSlotAlignment)
        return fail() << "each has " << bytes << " bytes of the state '" << name
                      << "'; they must be a multiple of "
                      << abi::kSlotAlignment;
    }
    return checkIndices();
  }

  /// A wrong index must be one sequence's.
  LogicalResult checkIndices() {
    setInputAxes();
    const analysis::Samples samples(function, /*withChecks=*/true);
    for (OpOperand &result : getEnd()->getOpOperands()) {
      const unsigned number = result.getOperandNumber();
      auto check =
          function.getResultAttrOfType<DictionaryAttr>(number, nn::kCheckAttr);
      if (!check)
        continue;
      std::string why;
      if (samples.mixing())
        why = samples.mixing()->text;
      else if (auto axis = samples.getResultAxis(
                   result.get(), check.getAs<StringAttr>("operand"), why);
               axis &&
               (*axis != 0 ||
                nn::getTensorType(result.get()).getDimSize(0) % sequences))
        why = "dimension 0 is not theirs";
      if (!why.empty())
        return emitError(function.getLoc())
               << "a step cannot be of " << sequences
               << " sequences: nobody would know whose a wrong index of the "
                  "node '"
               << check.getAs<StringAttr>("node").getValue() << "' is: " << why;
    }
    return success();
  }

  /// Steps follow one another along dimension 0 of inputs, or where these say.
  void setInputAxes() {
    // Which sequences there are is none of the samples.
    const unsigned count = function.getNumArguments() - (live ? 1 : 0);
    if (llvm::none_of(llvm::seq(count), [&](unsigned i) {
          return function.getArgAttr(i, nn::kBatchAxisAttr);
        }))
      for (unsigned i = 0; i < count; ++i)
        if (nn::getTensorType(function.getArgument(i)).getRank() > 0)
          function.setArgAttr(i, nn::kBatchAxisAttr, b.getI64IntegerAttr(0));
  }

  Operation *getEnd() { return function.getBody().front().getTerminator(); }

  /// A state, and what a step finds in it.
  struct Carried {
    nn::WeightOp weight;
    nn::ParameterOp parameter;
  };

  Carried addState(OpBuilder &at, Location loc, StringRef name,
                   RankedTensorType type) {
    auto zero =
        DenseElementsAttr::get(type, b.getZeroAttr(type.getElementType()));
    OpBuilder outside(module.getBody(), module.getBody()->begin());
    auto weight =
        nn::WeightOp::create(outside, loc, name, name, type, StringAttr(),
                             IntegerAttr(), IntegerAttr(), zero,
                             /*state=*/true, /*part=*/TypeAttr());
    weight->setAttr(nn::kRoleAttr, b.getStringAttr("carried"));
    symbols.insert(weight);
    auto parameter = nn::ParameterOp::create(
        at, loc, type, FlatSymbolRefAttr::get(weight.getSymNameAttr()),
        b.getUnitAttr());
    parameter->setAttr(nn::kCarriedAttr, b.getUnitAttr());
    return {weight, parameter};
  }

  void addStates() {
    Block &block = function.getBody().front();
    OpBuilder at(&block, block.begin());
    std::map<unsigned, Carried> ofResult;
    llvm::BitVector erased(function.getNumArguments());
    // The first one comes first.
    for (auto [argument, result] : llvm::reverse(pairs)) {
      BlockArgument value = function.getArgument(argument);
      const StringRef name =
          function.getArgAttrOfType<StringAttr>(argument, nn::kNameAttr);
      Carried state =
          addState(at, value.getLoc(), name, nn::getTensorType(value));
      value.replaceAllUsesWith(state.parameter);
      ofResult.emplace(result, state);
      erased.set(argument);
    }
    (void)function.eraseArguments(erased);
    if (sequences > 1)
      addLive();
    moveBack(ofResult);
  }

  /// The last input says which of the sequences there are.
  void addLive() {
    const unsigned number = function.getNumArguments();
    auto type = RankedTensorType::get({sequences}, b.getI1Type());
    const DictionaryAttr attributes = b.getDictionaryAttr(
        b.getNamedAttr(nn::kNameAttr, b.getStringAttr("/live")));
    (void)function.insertArgument(number, type, attributes,
                                  NameLoc::get(b.getStringAttr("/live")));
    live = function.getArgument(number);
  }

  /// Which of so many rows are of sequences that a step is of.
  Term findLive(ImplicitLocOpBuilder &at, int64_t rows) const {
    return Term(at, live)
        .broadcast({0}, {sequences, rows / sequences})
        .reshape({rows});
  }

  /// What a check tells: that there is nothing wrong where no sequence is.
  Value tellNothingOfOthers(Value told, DictionaryAttr check) {
    if (!live)
      return told;
    RankedTensorType type = nn::getTensorType(told);
    ImplicitLocOpBuilder last(live.getLoc(), OpBuilder(getEnd()));
    int64_t count = 1;
    for (int64_t size : check.getAs<DenseI64ArrayAttr>("shape").asArrayRef())
      count *= size;
    const int64_t nothing[] = {count / type.getDimSize(0), 0};
    const Term right(last,
                     nn::ConstantOp::create(
                         last, DenseElementsAttr::get(
                                   RankedTensorType::get({2}, b.getI64Type()),
                                   ArrayRef(nothing))));
    return select(findLive(last, type.getDimSize(0))
                      .broadcast({0}, type.getShape()),
                  Term(last, told), right.broadcast({1}, type.getShape()))
        .get();
  }

  /// What a step leaves in a state: the sequences that it is not of have there
  /// what they had.
  Value keepOthers(Value value, nn::ParameterOp parameter) {
    if (!live)
      return value;
    RankedTensorType type = parameter.getType();
    // States may share it, so it is of none of their nodes.
    Block &block = function.getBody().front();
    ImplicitLocOpBuilder first(live.getLoc(), OpBuilder(&block, block.begin()));
    const Term areLive = findLive(first, type.getDimSize(0));
    auto update = value.getDefiningOp<nn::UpdateSliceOp>();
    if (update && update.getX() == parameter) {
      ImplicitLocOpBuilder before(live.getLoc(), OpBuilder(update));
      update.getStartMutable().assign(
          select(areLive, Term(before, update.getStart()), -1.0).get());
      return value;
    }
    const Term isLive = areLive.broadcast({0}, type.getShape());
    ImplicitLocOpBuilder at(value.getLoc(), afterReaders(parameter, value));
    return select(isLive, Term(at, value), Term(at, parameter)).get();
  }

  /// What reads a state is on one stage with what writes it, and with all
  /// between them. So its ops stand close to each other.
  Operation *findFirstReader(Carried state) {
    Operation *first = getEnd();
    for (Operation *user : state.parameter->getUsers())
      if (user->isBeforeInBlock(first))
        first = user;
    return first;
  }

  /// The place behind `value` and all that reads a state, also where that has
  /// another form: there its new value may lie where the old one was.
  OpBuilder afterReaders(nn::ParameterOp state, Value value) {
    Operation *last = value.getDefiningOp() ? value.getDefiningOp() : state;
    SmallVector<Operation *> left = {state};
    llvm::DenseSet<Operation *> seen;
    while (!left.empty())
      for (Operation *user : left.pop_back_val()->getUsers()) {
        if (user == getEnd() || !seen.insert(user).second)
          continue;
        if (last->isBeforeInBlock(user))
          last = user;
        if (isa<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::ConcatOp,
                nn::GatherOp, nn::GatherElementsOp>(user))
          left.push_back(user);
      }
    OpBuilder after(last);
    after.setInsertionPointAfter(last);
    return after;
  }

  /// Of an output that is longer than the state, what comes last.
  Value keepEnd(Value value, nn::ParameterOp parameter) {
    RankedTensorType type = parameter.getType();
    const std::optional<unsigned> dim = findGrown(type, value.getType());
    if (!dim)
      return value;
    ImplicitLocOpBuilder at(value.getLoc(), afterReaders(parameter, value));
    const Term grown(at, value);
    SmallVector<int64_t> starts(type.getRank());
    starts[*dim] = grown.shape()[*dim] - type.getDimSize(*dim);
    return grown.slice(starts, grown.shape());
  }

  /// New values of states, and which these are.
  using Next = SmallVector<std::pair<Value, Carried>>;

  /// Where rings begin: a number, or one for each sequence of a step, in the
  /// first column of a tensor. A row of it is aligned as a state must be.
  static constexpr int64_t kPlaceColumns =
      abi::kSlotAlignment / sizeof(int64_t);
  SmallVector<int64_t> getPlaceShape() const {
    return areMany ? SmallVector<int64_t>{sequences, kPlaceColumns}
                   : SmallVector<int64_t>{};
  }
  /// A scalar, or one for each of so many rows of several sequences.
  Term readPlace(ImplicitLocOpBuilder &at, nn::ParameterOp place,
                 int64_t rows) const {
    const Term whole(at, place);
    if (!areMany)
      return whole;
    const Term column = whole.slice({0, 0}, {sequences, 1});
    if (sequences == 1)
      return column.reshape({});
    return column.broadcast({0, 1}, {sequences, rows / sequences})
        .reshape({rows});
  }

  /// Makes a state a ring, if the output has new entries behind those of the
  /// state: they are written over the oldest ones. Another state says where the
  /// ring begins.
  Next makeRing(Value value, Carried state, unsigned dim) {
    auto concat = value.getDefiningOp<nn::ConcatOp>();
    // nn.update_slice writes along others than the first one.
    if (!concat || concat.getDim() != dim || dim == 0 ||
        state.parameter.getType().getDimSize(dim) == 0 ||
        concat.getOperands().front() != state.parameter)
      return {};
    const Location loc = state.parameter.getLoc();
    OpBuilder behind(state.parameter);
    behind.setInsertionPointAfter(state.parameter);
    Carried place =
        addState(behind, loc, (state.weight.getOrigin() + "/place").str(),
                 RankedTensorType::get(getPlaceShape(), b.getI64Type()));
    state.weight->setAttr(nn::kRingDimAttr, b.getI64IntegerAttr(dim));
    state.weight->setAttr(
        nn::kRingPlaceAttr,
        FlatSymbolRefAttr::get(place.weight.getSymNameAttr()));
    ImplicitLocOpBuilder first(loc, OpBuilder(findFirstReader(state)));
    const Term ring(first, state.parameter);
    const int64_t rows = ring.shape()[0];
    const Term entries =
        analysis::readRing(ring, readPlace(first, place.parameter, rows), dim);
    state.parameter.getResult().replaceAllUsesExcept(
        entries, entries.get().getDefiningOp());

    ImplicitLocOpBuilder last(concat.getLoc(),
                              afterReaders(state.parameter, concat));
    const int64_t size = ring.shape()[dim],
                  added = concat.getType().getDimSize(dim) - size;
    SmallVector<int64_t> starts(ring.rank());
    starts[dim] = size;
    Term words(last, concat.getOperands()[1]);
    if (concat.getOperands().size() > 2)
      words = Term(last, concat).slice(starts, concat.getType().getShape());
    // What there is no room for passes by.
    starts[dim] = std::max<int64_t>(added - size, 0);
    words = words.slice(starts, words.shape());
    auto move = [&](const Term &before, int64_t count) {
      const Term moved = before + double(count);
      return moved.make<nn::RemOp>(moved.get(),
                                   moved.splat(double(size)).get());
    };
    Term start = readPlace(last, place.parameter, rows);
    if (added > size)
      start = move(start, added - size);
    if (start.rank() == 0)
      start = start.broadcast({}, {rows});
    const Term next = words.make<nn::UpdateSliceOp>(
        ring.type(), ring.get(), words.get(), start.get(), dim);
    return {{next, state}, {move(Term(last, place.parameter), added), place}};
  }

  /// New values come behind the outputs and the checks.
  void moveBack(std::map<unsigned, Carried> &states) {
    Operation *end = getEnd();
    SmallVector<Value> values, last;
    SmallVector<DictionaryAttr> attributes, lastAttributes;
    auto add = [&](Value value, nn::WeightOp state) {
      last.push_back(value);
      lastAttributes.push_back(b.getDictionaryAttr(b.getNamedAttr(
          nn::kStateAttr, FlatSymbolRefAttr::get(state.getSymNameAttr()))));
    };
    // What rings hold has another value then, for other states, too.
    std::map<unsigned, Next> rings;
    for (auto &[result, state] : states)
      if (std::optional<unsigned> dim = findGrown(
              state.weight.getType(), end->getOperand(result).getType()))
        rings[result] = makeRing(end->getOperand(result), state, *dim);
    for (OpOperand &result : end->getOpOperands()) {
      const unsigned number = result.getOperandNumber();
      auto state = states.find(number);
      if (state == states.end()) {
        DictionaryAttr own = function.getResultAttrDict(number);
        auto check =
            own ? own.getAs<DictionaryAttr>(nn::kCheckAttr) : DictionaryAttr();
        values.push_back(check ? tellNothingOfOthers(result.get(), check)
                               : result.get());
        attributes.push_back(own ? own : b.getDictionaryAttr({}));
      } else if (auto ring = rings.find(number);
                 ring != rings.end() && !ring->second.empty()) {
        for (const auto &[value, own] : ring->second)
          add(keepOthers(value, own.parameter), own.weight);
      } else {
        const auto &[weight, parameter] = state->second;
        add(keepOthers(keepEnd(result.get(), parameter), parameter), weight);
      }
    }
    values.append(last);
    attributes.append(lastAttributes);
    setResults(function, values, attributes);
    // What is read of a ring may be for nobody.
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  /// Steps follow one another along dimension 0 of inputs and outputs, or where
  /// the inputs say it.
  void setAxes() {
    std::string why;
    const std::string prefix = "its states go from step to step, and ";
    auto axisOf = [&](unsigned i) {
      return function.getArgAttrOfType<IntegerAttr>(i, nn::kBatchAxisAttr);
    };
    setInputAxes();
    const unsigned count = function.getNumArguments() - (live ? 1 : 0);
    int64_t samples = -1;
    for (unsigned i = 0; i < count && why.empty(); ++i)
      if (IntegerAttr axis = axisOf(i)) {
        const int64_t size = nn::getTensorType(function.getArgument(i))
                                 .getDimSize(axis.getInt());
        if (samples >= 0 && size != samples)
          why = "the inputs differ in the size of dimension 0";
        samples = size;
      }
    if (samples < 0)
      why = "no input has a dimension";
    SmallVector<int64_t> axes;
    for (const auto &[name, number] : outputs) {
      if (taken.contains(number) || !why.empty())
        continue;
      auto type =
          cast<RankedTensorType>(function.getResultTypes()[axes.size()]);
      if (type.getRank() < 1 || type.getDimSize(0) != samples)
        why = "dimension 0 of the output '" + name.str() +
              "' has another size than that of the inputs";
      axes.push_back(0);
    }
    if (!why.empty())
      axes.clear();
    analysis::setSampleAxes(function, axes, why.empty() ? why : prefix + why);
    if (!why.empty())
      emitRemark(function.getLoc())
          << "a run computes one step: " << prefix << why;
  }

  ModuleOp module;
  func::FuncOp function;
  const int64_t sequences;
  const bool areMany;
  SymbolTable symbols;
  Builder b;
  llvm::MapVector<StringAttr, unsigned> inputs, outputs; // numbers, by name
  llvm::MapVector<unsigned, unsigned> pairs;             // results, by argument
  llvm::DenseSet<unsigned> taken;                        // results
  Value live; // which sequences a step is of, if it may be of several
};

struct CarryStatesPass : impl::CarryStatesPassBase<CarryStatesPass> {
  using CarryStatesPassBase::CarryStatesPassBase;

  LogicalResult run(func::FuncOp function) override {
    PARTITA_TRY(Carrier(getOperation(), function, stepSequences,
                        sequences > 1 || stepSequences > 1)
                    .run(llvm::to_vector_of<std::string>(states)));
    Builder b(&getContext());
    for (auto [name, count] :
         {std::pair(dist::kSequencesAttr, sequences.getValue()),
          {dist::kStepSequencesAttr, stepSequences.getValue()}})
      if (count > 1)
        getOperation()->setAttr(name, b.getI64IntegerAttr(count));
    return success();
  }
};

} // namespace
} // namespace partita::pipeline
