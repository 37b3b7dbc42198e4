//===- PlanAttrs.cpp - How a cluster is computed --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls and post-ops are printed as a kind, then `key = value` for what differs
// from its default, in the order of the declaration. They are read in any
// order.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace partita::plan;

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttrs.cpp.inc"

void PlanDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/plan/PlanAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Key = value lists
//===----------------------------------------------------------------------===//

namespace {

/// Prints `, key = value` for what is not the default.
class Fields {
public:
  explicit Fields(AsmPrinter &printer) : printer(printer) {}

  void add(StringRef key, int64_t value, int64_t standard) {
    if (value != standard)
      begin(key) << value;
  }
  void add(StringRef key, bool value) {
    if (value)
      begin(key) << "true";
  }
  void add(StringRef key, double value, double standard) {
    if (llvm::bit_cast<uint64_t>(value) != llvm::bit_cast<uint64_t>(standard))
      begin(key).printFloat(APFloat(value));
  }
  void add(StringRef key, Attribute value) {
    if (value)
      begin(key) << value;
  }
  void add(StringRef key, ArrayRef<int64_t> values) {
    if (values.empty())
      return;
    begin(key) << '[';
    llvm::interleaveComma(values, printer.getStream());
    printer << ']';
  }
  void addWord(StringRef key, StringRef value) { begin(key) << value; }
  template <typename AttrT>
  void addAttrs(StringRef key, ArrayRef<AttrT> values) {
    if (values.empty())
      return;
    begin(key) << '[';
    llvm::interleaveComma(values, printer.getStream(),
                          [&](AttrT value) { printer << Attribute(value); });
    printer << ']';
  }

private:
  AsmPrinter &begin(StringRef key) {
    printer << ", " << key << " = ";
    return printer;
  }
  AsmPrinter &printer;
};

ParseResult parseBool(AsmParser &parser, bool &value) {
  value = succeeded(parser.parseOptionalKeyword("true"));
  return value ? success() : parser.parseKeyword("false");
}

ParseResult parseDouble(AsmParser &parser, double &value) {
  APFloat number(0.0);
  if (parser.parseFloat(APFloat::IEEEdouble(), number))
    return failure();
  value = number.convertToDouble();
  return success();
}

ParseResult parseInts(AsmParser &parser, SmallVectorImpl<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(values.emplace_back());
  });
}

template <typename AttrT>
ParseResult parseAttrs(AsmParser &parser, SmallVectorImpl<AttrT> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseAttribute(values.emplace_back());
  });
}

/// Reads `, key = value` until `>`; `field` reads the value of a key, or
/// returns nothing for a key it does not know.
ParseResult
parseFields(AsmParser &parser,
            llvm::function_ref<std::optional<ParseResult>(StringRef)> field) {
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    std::optional<ParseResult> result = field(key);
    if (!result)
      return parser.emitError(loc) << "unknown key '" << key << "'";
    if (failed(*result))
      return failure();
  }
  return parser.parseGreater();
}

template <typename EnumT>
ParseResult
parseWord(AsmParser &parser, EnumT &kind, StringRef what,
          llvm::function_ref<std::optional<EnumT>(StringRef)> symbolize) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<EnumT> parsed = symbolize(keyword);
  if (!parsed)
    return parser.emitError(loc)
           << "unknown " << what << " '" << keyword << "'";
  kind = *parsed;
  return success();
}

template <typename EnumT>
ParseResult
parseKind(AsmParser &parser, EnumT &kind, StringRef what,
          llvm::function_ref<std::optional<EnumT>(StringRef)> symbolize) {
  if (parser.parseLess())
    return failure();
  return parseWord<EnumT>(parser, kind, what, symbolize);
}

} // namespace

//===----------------------------------------------------------------------===//
// ViewAttr
//===----------------------------------------------------------------------===//

void KernelAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printString(getName());
  printer << ", extent = " << getExtent() << ", grain = " << getGrain();
  if (!getInPlace().empty())
    printer << ", in_place = [" << getInPlace() << "]";
  if (!getLaunch().empty())
    printer << ", launch = [" << getLaunch() << "]";
  printer << ">";
}

Attribute KernelAttr::parse(AsmParser &parser, Type) {
  std::string name;
  int64_t extent = 0, grain = 0;
  SmallVector<int64_t> inPlace, launch;
  auto list = [&](SmallVector<int64_t> &into) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      return parser.parseInteger(into.emplace_back());
    });
  };
  if (parser.parseLess() || parser.parseString(&name) || parser.parseComma() ||
      parser.parseKeyword("extent") || parser.parseEqual() ||
      parser.parseInteger(extent) || parser.parseComma() ||
      parser.parseKeyword("grain") || parser.parseEqual() ||
      parser.parseInteger(grain))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    const bool isLaunch = succeeded(parser.parseOptionalKeyword("launch"));
    if ((!isLaunch && parser.parseKeyword("in_place")) || parser.parseEqual() ||
        list(isLaunch ? launch : inPlace))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), name, extent, grain, inPlace, launch);
}

void ViewAttr::print(AsmPrinter &printer) const {
  printer << '<' << getValue() << " shape [";
  llvm::interleaveComma(getShape(), printer.getStream());
  printer << "] strides [";
  llvm::interleaveComma(getStrides(), printer.getStream());
  printer << ']';
  if (getOffset())
    printer << " offset " << getOffset();
  printer << '>';
}

Attribute ViewAttr::parse(AsmParser &parser, Type) {
  int64_t value = 0, offset = 0;
  SmallVector<int64_t> shape, strides;
  if (parser.parseLess() || parser.parseInteger(value) ||
      parser.parseKeyword("shape") || parseInts(parser, shape) ||
      parser.parseKeyword("strides") || parseInts(parser, strides))
    return {};
  if (succeeded(parser.parseOptionalKeyword("offset")) &&
      parser.parseInteger(offset))
    return {};
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), value, shape, strides, offset);
}

//===----------------------------------------------------------------------===//
// PostOpAttr
//===----------------------------------------------------------------------===//

void PostOpAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyPostOpKind(getKind());
  Fields fields(printer);
  fields.add("alpha", getAlpha(), 0.0);
  fields.add("beta", getBeta(), 0.0);
  fields.add("view", Attribute(getView()));
  printer << '>';
}

Attribute PostOpAttr::parse(AsmParser &parser, Type) {
  PostOpKind kind = PostOpKind::relu;
  double alpha = 0, beta = 0;
  ViewAttr view;
  if (parseKind<PostOpKind>(parser, kind, "post-op", [](StringRef text) {
        return symbolizePostOpKind(text);
      }))
    return {};
  if (parseFields(parser, [&](StringRef key) -> std::optional<ParseResult> {
        if (key == "alpha")
          return parseDouble(parser, alpha);
        if (key == "beta")
          return parseDouble(parser, beta);
        if (key == "view")
          return parser.parseAttribute(view);
        return std::nullopt;
      }))
    return {};
  return get(parser.getContext(), kind, alpha, beta, view);
}

//===----------------------------------------------------------------------===//
// GateFunctionAttr, RecurrentAttr
//===----------------------------------------------------------------------===//

void GateFunctionAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyGateFunctionKind(getKind());
  Fields fields(printer);
  fields.add("alpha", getAlpha(), 0.0);
  fields.add("beta", getBeta(), 0.0);
  printer << '>';
}

Attribute GateFunctionAttr::parse(AsmParser &parser, Type) {
  GateFunctionKind kind = GateFunctionKind::relu;
  double alpha = 0, beta = 0;
  if (parseKind<GateFunctionKind>(
          parser, kind, "gate function",
          [](StringRef text) { return symbolizeGateFunctionKind(text); }))
    return {};
  if (parseFields(parser, [&](StringRef key) -> std::optional<ParseResult> {
        if (key == "alpha")
          return parseDouble(parser, alpha);
        if (key == "beta")
          return parseDouble(parser, beta);
        return std::nullopt;
      }))
    return {};
  return get(parser.getContext(), kind, alpha, beta);
}

void RecurrentAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyCell(getCell());
  Fields fields(printer);
  fields.add("reversed", getReversed());
  fields.add("coupled", getCoupled());
  fields.add("clip", getClip(), 0.0);
  fields.addAttrs("functions", getFunctions());
  fields.add("lengths", Attribute(getLengths()));
  fields.add("initial", Attribute(getInitial()));
  fields.add("initial_cell", Attribute(getInitialCell()));
  fields.add("peepholes", Attribute(getPeepholes()));
  fields.add("hidden_bias", Attribute(getHiddenBias()));
  printer << '>';
}

Attribute RecurrentAttr::parse(AsmParser &parser, Type) {
  Cell cell = Cell::rnn;
  SmallVector<int64_t> reversed;
  bool coupled = false;
  double clip = 0;
  SmallVector<GateFunctionAttr> functions;
  ViewAttr lengths, initial, initialCell, peepholes, hiddenBias;
  if (parseKind<Cell>(parser, cell, "cell",
                      [](StringRef text) { return symbolizeCell(text); }))
    return {};
  auto field = [&](StringRef key) -> std::optional<ParseResult> {
    if (key == "reversed")
      return parseInts(parser, reversed);
    if (key == "coupled")
      return parseBool(parser, coupled);
    if (key == "clip")
      return parseDouble(parser, clip);
    if (key == "functions")
      return parseAttrs(parser, functions);
    if (key == "lengths")
      return parser.parseAttribute(lengths);
    if (key == "initial")
      return parser.parseAttribute(initial);
    if (key == "initial_cell")
      return parser.parseAttribute(initialCell);
    if (key == "peepholes")
      return parser.parseAttribute(peepholes);
    if (key == "hidden_bias")
      return parser.parseAttribute(hiddenBias);
    return std::nullopt;
  };
  if (parseFields(parser, field))
    return {};
  return get(parser.getContext(), cell, reversed, coupled, clip, functions,
             lengths, initial, initialCell, peepholes, hiddenBias);
}

//===----------------------------------------------------------------------===//
// CallAttr
//===----------------------------------------------------------------------===//

void CallAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyCallKind(getKind());
  Fields fields(printer);
  fields.addAttrs("operands", getOperands());
  fields.add("bias", Attribute(getBias()));
  fields.add("mask_mul", Attribute(getMaskMul()));
  fields.add("mask_add", Attribute(getMaskAdd()));
  fields.add("strides", getStrides());
  fields.add("dilations", getDilations());
  fields.add("pads_low", getPadsLow());
  fields.add("pads_high", getPadsHigh());
  fields.add("window", getWindow());
  fields.add("groups", getGroups(), 1);
  fields.add("include_pad", getIncludePad());
  fields.add("scale", getScale(), 1.0);
  fields.addAttrs("post_ops", getPostOps());
  fields.add("recurrent", Attribute(getRecurrent()));
  fields.add("winograd", getWinograd());
  if (getCombine() != Combine::replace)
    fields.addWord("combine", stringifyCombine(getCombine()));
  fields.add("largest", getLargest());
  printer << '>';
}

Attribute CallAttr::parse(AsmParser &parser, Type) {
  CallKind kind = CallKind::dot;
  SmallVector<ViewAttr> operands;
  ViewAttr bias, maskMul, maskAdd;
  SmallVector<int64_t> strides, dilations, padsLow, padsHigh, window;
  int64_t groups = 1;
  bool includePad = false;
  double scale = 1.0;
  SmallVector<PostOpAttr> postOps;
  RecurrentAttr recurrent;
  bool winograd = false, largest = false;
  Combine combine = Combine::replace;
  if (parseKind<CallKind>(parser, kind, "library call", [](StringRef text) {
        return symbolizeCallKind(text);
      }))
    return {};
  auto field = [&](StringRef key) -> std::optional<ParseResult> {
    if (key == "operands")
      return parseAttrs(parser, operands);
    if (key == "bias")
      return parser.parseAttribute(bias);
    if (key == "mask_mul")
      return parser.parseAttribute(maskMul);
    if (key == "mask_add")
      return parser.parseAttribute(maskAdd);
    if (key == "strides")
      return parseInts(parser, strides);
    if (key == "dilations")
      return parseInts(parser, dilations);
    if (key == "pads_low")
      return parseInts(parser, padsLow);
    if (key == "pads_high")
      return parseInts(parser, padsHigh);
    if (key == "window")
      return parseInts(parser, window);
    if (key == "groups")
      return parser.parseInteger(groups);
    if (key == "include_pad")
      return parseBool(parser, includePad);
    if (key == "scale")
      return parseDouble(parser, scale);
    if (key == "post_ops")
      return parseAttrs(parser, postOps);
    if (key == "recurrent")
      return parser.parseAttribute(recurrent);
    if (key == "winograd")
      return parseBool(parser, winograd);
    if (key == "combine")
      return parseWord<Combine>(
          parser, combine, "way to combine",
          [](StringRef text) { return symbolizeCombine(text); });
    if (key == "largest")
      return parseBool(parser, largest);
    return std::nullopt;
  };
  if (parseFields(parser, field))
    return {};
  return get(parser.getContext(), kind, operands, bias, maskMul, maskAdd,
             strides, dilations, padsLow, padsHigh, window, groups, includePad,
             scale, postOps, recurrent, winograd, combine, largest);
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

/// A call adds its result upon the operand of a sum, and rows upon a table.
SmallVector<std::pair<unsigned, unsigned>> CallAttr::getInPlacePairs() const {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  if (getKind() == CallKind::scatter)
    pairs.emplace_back(getOperands().front().getValue(), 0);
  for (PostOpAttr post : getPostOps())
    if (post.getKind() == PostOpKind::sum && post.getView())
      pairs.emplace_back(post.getView().getValue(), 0);
  return pairs;
}
