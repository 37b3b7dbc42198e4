//===- Einsum.cpp - Sums of products by an equation -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexMath.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// The equation "bij, bjk -> bik" in labels; dimensions that "..." stands for
/// are labelled '0', '1', ..., so that the last is the same for all operands.
struct Equation {
  SmallVector<std::string> operands;
  std::string result;
};

FailureOr<std::string> expandTerm(NodeImport &n, StringRef term, int64_t rank,
                                  size_t most) {
  size_t dots = term.find("...");
  std::string labels;
  if (dots != StringRef::npos) {
    size_t named = term.size() - 3;
    size_t count = rank < 0 ? most : static_cast<size_t>(rank) - named;
    if (rank >= 0 && static_cast<size_t>(rank) < named)
      return n.error("the term '" + term + "' has more labels than dimensions");
    labels = term.take_front(dots).str();
    for (size_t i = most - std::min(count, most); i < most; ++i)
      labels += static_cast<char>('0' + i);
    labels += term.drop_front(dots + 3).str();
  } else {
    labels = term.str();
  }
  if (rank >= 0 && labels.size() != static_cast<size_t>(rank))
    return n.error("the term '" + term + "' does not fit an operand of rank " +
                   Twine(rank));
  for (char c : labels)
    if (!isAlnum(c))
      return n.error("the equation has an unexpected '" + Twine(c) + "'");
  return labels;
}

FailureOr<Equation> parseEquation(NodeImport &n) {
  std::string text = n.stringAttr("equation", "");
  erase_if(text, [](char c) { return isSpace(c); });
  auto [left, right] = StringRef(text).split("->");
  bool isExplicit = StringRef(text).contains("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != n.inputs.size())
    return n.error("the equation has " + abi::countOf(terms.size(), "term") +
                   " for " + abi::countOf(n.inputs.size(), "input"));
  size_t most = 0;
  for (auto [term, input] : zip_equal(terms, n.inputs))
    if (term.contains("...") &&
        n.typeOf(input).getRank() + 3 > static_cast<int64_t>(term.size()))
      most = std::max(most, static_cast<size_t>(n.typeOf(input).getRank()) + 3 -
                                term.size());
  if (most > 9)
    return n.error("'...' stands for more than nine dimensions");
  Equation equation;
  std::map<char, int> counts;
  for (auto [term, input] : zip_equal(terms, n.inputs)) {
    std::string labels =
        PARTITA_TRY(expandTerm(n, term, n.typeOf(input).getRank(), most));
    for (char c : labels)
      ++counts[c];
    equation.operands.push_back(labels);
  }
  if (isExplicit) {
    equation.result = PARTITA_TRY(expandTerm(n, right, -1, most));
  } else {
    // In order: what '...' stands for, then labels that occur once.
    for (auto [label, count] : counts)
      if (isDigit(label) || count == 1)
        equation.result += label;
  }
  for (char c : equation.result)
    if (!counts.count(c) || StringRef(equation.result).count(c) > 1)
      return n.error("the label '" + Twine(c) +
                     "' of the result must be one "
                     "of the operands', once");
  return equation;
}

/// A label that occurs twice means the diagonal: its places are taken out of
/// both dimensions at once.
Value takeDiagonals(NodeImport &n, Value x, std::string &labels) {
  for (size_t i = 0; x && i < labels.size(); ++i)
    for (size_t j = labels.size() - 1; x && j > i; --j) {
      if (labels[j] != labels[i])
        continue;
      int64_t rank = labels.size(), size = n.shapeOf(x)[i];
      if (n.shapeOf(x)[j] != size)
        return n.refuse("the sizes of the label '" + Twine(labels[i]) +
                        "' differ");
      Shape permutation;
      for (int64_t k = 0; k < rank; ++k)
        if (k != static_cast<int64_t>(i) && k != static_cast<int64_t>(j))
          permutation.push_back(k);
      permutation.insert(permutation.begin(),
                         {static_cast<int64_t>(i), static_cast<int64_t>(j)});
      Shape flat{size * size}, places;
      Value moved = n.transpose(x, permutation);
      append_range(flat, n.shapeOf(moved).drop_front(2));
      for (int64_t k = 0; k < size; ++k)
        places.push_back(k * size + k);
      x = n.gather(n.reshape(moved, flat), n.indices(places), 0);
      char label = labels[i];
      labels.erase(j, 1);
      labels.erase(i, 1);
      labels.insert(labels.begin(), label);
    }
  return x;
}

/// Sums away labels that nobody else has.
Value sumAway(NodeImport &n, Value x, std::string &labels, StringRef wanted) {
  Shape dims;
  std::string kept;
  for (auto [i, c] : enumerate(labels)) {
    if (wanted.contains(c))
      kept += c;
    else
      dims.push_back(static_cast<int64_t>(i));
  }
  labels = kept;
  return n.reduce(nn::ReduceKind::sum, x, dims, /*keep=*/false);
}

/// The product of two operands, summed over the labels that both have and
/// nobody else wants.
Value contract(NodeImport &n, Value x, std::string &labels, Value y,
               const std::string &others, StringRef wanted) {
  if (!x || !y)
    return {};
  Shape batchX, batchY, sumX, sumY, shape;
  std::string batch, freeX, freeY;
  for (auto [i, c] : enumerate(labels)) {
    size_t j = others.find(c);
    // A size 1 broadcasts; it is of no use to a product.
    if (j == std::string::npos) {
      freeX += c;
      continue;
    }
    if (n.shapeOf(x)[i] != n.shapeOf(y)[j])
      return n.refuse("the sizes of the label '" + Twine(c) + "' differ");
    bool isKept = wanted.contains(c);
    (isKept ? batchX : sumX).push_back(static_cast<int64_t>(i));
    (isKept ? batchY : sumY).push_back(static_cast<int64_t>(j));
    if (isKept) {
      batch += c;
      shape.push_back(n.shapeOf(x)[i]);
    }
  }
  for (char c : freeX)
    shape.push_back(n.shapeOf(x)[labels.find(c)]);
  for (auto [j, c] : enumerate(others))
    if (labels.find(c) == std::string::npos) {
      freeY += c;
      shape.push_back(n.shapeOf(y)[j]);
    }
  RankedTensorType type = n.tensor(shape, n.elementOf(x));
  labels = batch + freeX + freeY;
  return type ? n.make<nn::DotOp>(type, x, y, batchX, batchY, sumX, sumY)
              : Value();
}

LogicalResult importEinsum(NodeImport &n) {
  Equation equation = PARTITA_TRY(parseEquation(n));
  Value all;
  std::string labels;
  for (auto [i, input] : enumerate(n.inputs)) {
    std::string own = equation.operands[i], wanted = equation.result;
    Value x = takeDiagonals(n, input, own);
    for (size_t later = i + 1; later < n.inputs.size(); ++later)
      wanted += equation.operands[later];
    if (!x)
      return failure();
    x = sumAway(n, x, own, wanted + labels);
    if (i == 0) {
      all = x;
      labels = own;
      continue;
    }
    all = contract(n, all, labels, x, own, wanted);
    if (!all)
      return failure();
    all = sumAway(n, all, labels, wanted);
  }
  Shape permutation;
  for (char c : equation.result)
    permutation.push_back(static_cast<int64_t>(labels.find(c)));
  return n.result(0, n.transpose(all, permutation));
}

const OpRow einsumOps[] = {
    {"Einsum", 12, 28, importEinsum},
};

} // namespace

ArrayRef<OpRow> getEinsumOps() { return einsumOps; }

} // namespace partita::import
