//===- DimExpression.cpp - Dimensions that depend on others ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/DimExpression.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace partita::import {
namespace {

/// Reads an expression from left to right.
class Reader {
public:
  Reader(StringRef text, FindSize find) : rest(text), find(find) {}

  /// Whether all of the text is one expression of more than a name or a number.
  bool read() {
    value = readSum();
    rest = rest.ltrim();
    return rest.empty() && !isWrong && operators > 0 && !names.empty();
  }

  std::optional<int64_t> value; ///< nothing: something is not known
  SmallVector<StringRef> names;

private:
  using Value = std::optional<int64_t>;
  /// Parentheses within parentheses: what people write has a few.
  static constexpr int kDeepest = 64;

  /// Whether the next word is `op`; then it is read.
  bool take(StringRef op) {
    rest = rest.ltrim();
    return rest.consume_front(op);
  }

  Value readSum() {
    Value sum = readProduct();
    while (!isWrong) {
      if (take("+"))
        sum = apply(sum, readProduct(), &llvm::checkedAdd<int64_t>);
      else if (take("-"))
        sum = apply(sum, readProduct(), &llvm::checkedSub<int64_t>);
      else
        break;
    }
    return sum;
  }

  Value readProduct() {
    Value product = readTerm();
    while (!isWrong) {
      if (take("*"))
        product = apply(product, readTerm(), &llvm::checkedMul<int64_t>);
      else if (take("//"))
        product = apply(product, readTerm(), divide);
      else if (take("/"))
        product = apply(product, readTerm(), divideExactly);
      else if (take("%"))
        product = apply(product, readTerm(), findRest);
      else
        break;
    }
    return product;
  }

  Value readTerm() {
    rest = rest.ltrim();
    if (rest.empty() || depth == kDeepest) {
      isWrong = true;
      return std::nullopt;
    }
    if (take("(")) {
      ++depth;
      const Value inner = readSum();
      --depth;
      isWrong |= !take(")");
      return inner;
    }
    if (take("-")) {
      ++depth;
      const Value inner = readTerm();
      --depth;
      return apply(0, inner, &llvm::checkedSub<int64_t>);
    }
    StringRef word = rest.take_while(
        [](char c) { return isAlnum(c) || c == '_' || c == '.'; });
    rest = rest.drop_front(word.size());
    int64_t number = 0;
    if (!word.empty() && isDigit(word.front())) {
      isWrong |= word.getAsInteger(10, number);
      return number;
    }
    isWrong |= word.empty();
    names.push_back(word);
    return isWrong ? std::nullopt : find(word);
  }

  static Value divide(int64_t a, int64_t b) {
    return b > 0 ? Value(llvm::divideFloorSigned(a, b)) : std::nullopt;
  }
  static Value divideExactly(int64_t a, int64_t b) {
    return b > 0 && a % b == 0 ? Value(a / b) : std::nullopt;
  }
  static Value findRest(int64_t a, int64_t b) {
    return b > 0 ? Value(a - llvm::divideFloorSigned(a, b) * b) : std::nullopt;
  }

  template <typename Op> Value apply(Value a, Value b, Op op) {
    ++operators;
    return a && b ? op(*a, *b) : std::nullopt;
  }

  StringRef rest;
  FindSize find;
  int depth = 0, operators = 0;
  bool isWrong = false;
};

} // namespace

SmallVector<StringRef> findDimNames(StringRef text) {
  Reader reader(text, [](StringRef) { return std::optional<int64_t>(1); });
  if (!reader.read())
    return {};
  SmallVector<StringRef> names;
  for (StringRef name : reader.names)
    if (!is_contained(names, name))
      names.push_back(name);
  return names;
}

std::optional<int64_t> evaluateDim(StringRef text, FindSize find) {
  Reader reader(text, find);
  return reader.read() && reader.value && *reader.value >= 0 ? reader.value
                                                             : std::nullopt;
}

} // namespace partita::import
