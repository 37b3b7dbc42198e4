//===- Fields.h - Parameters of attributes as text --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How PlanAttrs.td reads and writes what MLIR has no text for.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PLAN_FIELDS_H
#define PARTITA_DIALECTS_PLAN_FIELDS_H

#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/Hashing.h"

#include <optional>

namespace partita::plan {

/// A double as a parameter: equal if its bits are.
struct Number {
  explicit Number(double value = 0) : value(value) {}
  operator double() const { return value; }

  double value;
};
inline uint64_t bitsOf(const Number &number) {
  return llvm::bit_cast<uint64_t>(number.value);
}
inline llvm::hash_code hash_value(const Number &number) {
  return llvm::hash_value(bitsOf(number));
}
inline bool operator==(const Number &a, const Number &b) {
  return bitsOf(a) == bitsOf(b);
}

inline llvm::FailureOr<Number> parseNumber(mlir::AsmParser &parser) {
  llvm::APFloat number(0.0);
  if (parser.parseFloat(llvm::APFloat::IEEEdouble(), number))
    return llvm::failure();
  return Number(number.convertToDouble());
}

inline llvm::FailureOr<bool> parseFlag(mlir::AsmParser &parser) {
  if (succeeded(parser.parseOptionalKeyword("true")))
    return true;
  if (parser.parseKeyword("false"))
    return llvm::failure();
  return false;
}

/// A list in brackets.
template <typename T, typename Parse>
llvm::FailureOr<llvm::SmallVector<T>> parseBracketed(mlir::AsmParser &parser,
                                                     Parse parse) {
  llvm::SmallVector<T> values;
  if (parser.parseCommaSeparatedList(mlir::AsmParser::Delimiter::Square, [&] {
        return parse(values.emplace_back());
      }))
    return llvm::failure();
  return values;
}

inline llvm::FailureOr<llvm::SmallVector<int64_t>>
parseInts(mlir::AsmParser &parser) {
  return parseBracketed<int64_t>(
      parser, [&](int64_t &value) { return parser.parseInteger(value); });
}
inline void printInts(mlir::AsmPrinter &printer,
                      llvm::ArrayRef<int64_t> values) {
  printer << '[';
  llvm::interleaveComma(values, printer.getStream());
  printer << ']';
}

/// An attribute with its name, such as `#plan.view<...>`.
template <typename AttrT>
llvm::FailureOr<AttrT> parseWhole(mlir::AsmParser &parser) {
  AttrT value;
  if (parser.parseAttribute(value))
    return llvm::failure();
  return value;
}

template <typename AttrT>
llvm::FailureOr<llvm::SmallVector<AttrT>> parseList(mlir::AsmParser &parser) {
  return parseBracketed<AttrT>(
      parser, [&](AttrT &value) { return parser.parseAttribute(value); });
}
template <typename AttrT>
void printList(mlir::AsmPrinter &printer, llvm::ArrayRef<AttrT> values) {
  printer << '[';
  llvm::interleaveComma(values, printer.getStream(), [&](AttrT value) {
    printer << mlir::Attribute(value);
  });
  printer << ']';
}

/// A name of an enum.
template <typename EnumT, typename Symbolize>
llvm::FailureOr<EnumT> parseWord(mlir::AsmParser &parser, llvm::StringRef what,
                                 Symbolize symbolize) {
  llvm::StringRef keyword;
  const llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return llvm::failure();
  if (std::optional<EnumT> parsed = symbolize(keyword))
    return *parsed;
  return parser.emitError(loc) << "unknown " << what << " '" << keyword << "'";
}

} // namespace partita::plan

#endif // PARTITA_DIALECTS_PLAN_FIELDS_H
