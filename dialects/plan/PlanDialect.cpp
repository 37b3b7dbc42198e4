//===- PlanDialect.cpp - The plan dialect, and its attributes -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/plan/PlanDialect.h"

#include "dialects/support/Try.h"
#include "runtime/abi/Calls.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace partita::plan;

//===----------------------------------------------------------------------===//
// How PlanAttrs.td reads and writes what MLIR has no text for
//===----------------------------------------------------------------------===//

namespace partita::plan {
namespace {

FailureOr<Number> parseNumber(AsmParser &parser) {
  llvm::APFloat number(0.0);
  if (parser.parseFloat(llvm::APFloat::IEEEdouble(), number))
    return failure();
  return Number(number.convertToDouble());
}

FailureOr<bool> parseFlag(AsmParser &parser) {
  if (succeeded(parser.parseOptionalKeyword("true")))
    return true;
  if (parser.parseKeyword("false"))
    return failure();
  return false;
}

/// A list in brackets, of numbers or attributes.
template <typename T> FailureOr<SmallVector<T>> parseList(AsmParser &parser) {
  SmallVector<T> values;
  auto parse = [&]() -> LogicalResult {
    values.push_back(PARTITA_TRY(FieldParser<T>::parse(parser)));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parse))
    return failure();
  return values;
}
template <typename T> void printList(AsmPrinter &printer, ArrayRef<T> values) {
  printer << '[';
  llvm::interleaveComma(values, printer.getStream(),
                        [&](const T &value) { printer << value; });
  printer << ']';
}

/// A name of an enum.
template <typename EnumT, typename Symbolize>
FailureOr<EnumT> parseWord(AsmParser &parser, StringRef what,
                           Symbolize symbolize) {
  StringRef keyword;
  const SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  if (std::optional<EnumT> parsed = symbolize(keyword))
    return *parsed;
  return parser.emitError(loc) << "unknown " << what << " '" << keyword << "'";
}

} // namespace
} // namespace partita::plan

#include "dialects/plan/PlanDialect.cpp.inc"
#include "dialects/plan/PlanEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/plan/PlanTypes.cpp.inc"

#include "dialects/plan/PlanInterfaces.cpp.inc"

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/plan/PlanAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/plan/PlanTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/plan/PlanOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// CallAttr
//===----------------------------------------------------------------------===//

/// The table of the artifact that has such details; nothing if none has.
static std::optional<partita::abi::CallDetails> getTable(Attribute details) {
  using partita::abi::CallDetails;
  if (!details)
    return CallDetails::NONE;
  return llvm::TypeSwitch<Attribute, std::optional<CallDetails>>(details)
      .Case([](ConvAttr) { return CallDetails::Conv; })
      .Case([](PoolAttr) { return CallDetails::Pool; })
      .Case([](AttentionAttr) { return CallDetails::Attention; })
      .Case([](RecurrentAttr) { return CallDetails::Recurrent; })
      .Case([](TopKAttr) { return CallDetails::TopK; })
      .Case([](CombineAttr) { return CallDetails::Combination; })
      .Case([](PackedDotAttr) { return CallDetails::PackedDot; })
      .Default([](Attribute) { return std::nullopt; });
}

LogicalResult
CallAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 CallKind kind, ArrayRef<ViewAttr> /*operands*/,
                 Attribute details, ArrayRef<PostOpAttr> /*postOps*/) {
  if (getTable(details) == partita::abi::detailsOf(kind))
    return success();
  return emitError() << "a call of kind " << stringifyCallKind(kind)
                     << " has no such details: " << details;
}

SmallVector<ViewAttr> CallAttr::getViewsOfDetails() const {
  SmallVector<ViewAttr> views;
  if (!getDetails())
    return views;
  llvm::TypeSwitch<Attribute>(getDetails())
      .Case([&](ConvAttr conv) { views = {conv.getBias()}; })
      .Case([&](AttentionAttr attention) {
        views = {attention.getMaskMul(), attention.getMaskAdd()};
      })
      .Case([&](RecurrentAttr layer) {
        views = {layer.getLengths(), layer.getInitial(), layer.getInitialCell(),
                 layer.getPeepholes(), layer.getHiddenBias()};
      })
      .Case([&](PackedDotAttr packed) {
        views = {packed.getZeros(), packed.getExperts()};
      })
      .Default([](Attribute) {});
  llvm::erase_if(views, [](ViewAttr view) { return !view; });
  return views;
}

//===----------------------------------------------------------------------===//
// How phases see a lowering
//===----------------------------------------------------------------------===//

partita::nn::ClusterKind KernelAttr::getClusterKind() const {
  return partita::nn::ClusterKind::kernel;
}

SmallVector<std::pair<unsigned, unsigned>> KernelAttr::getInPlacePairs() const {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  for (size_t i = 0; i + 1 < getInPlace().size(); i += 2)
    pairs.emplace_back(getInPlace()[i], getInPlace()[i + 1]);
  return pairs;
}

partita::nn::ClusterKind CallAttr::getClusterKind() const {
  return partita::nn::ClusterKind::call;
}

/// A call adds its result upon the operand of a sum, and writes rows upon a
/// table, or a slice upon a tensor.
SmallVector<std::pair<unsigned, unsigned>> CallAttr::getInPlacePairs() const {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  if (getKind() == CallKind::scatter || getKind() == CallKind::update_slice)
    pairs.emplace_back(getOperands().front().getValue(), 0);
  for (PostOpAttr post : getPostOps())
    if (post.getKind() == PostOpKind::sum && post.getView())
      pairs.emplace_back(post.getView().getValue(), 0);
  return pairs;
}
