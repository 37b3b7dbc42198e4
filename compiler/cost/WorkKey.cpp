//===- WorkKey.cpp - The same work in every plan --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/WorkKey.h"

#include "dialects/nn/NNDialect.h"

#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace partita {
namespace {

std::string describe(Operation *op, analysis::Rates &rates) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << op->getName();
  if (Attribute properties = op->getPropertiesAsAttribute())
    stream << properties;
  if (op->hasAttr(nn::kWinogradAttr))
    stream << nn::kWinogradAttr;
  for (Value operand : op->getOperands())
    stream << (rates.isLoad(operand) ? " constant " : " ") << operand.getType();
  stream << " to " << op->getResultTypes();
  return text;
}

} // namespace

uint64_t getWorkKey(const ClusterWork &work) {
  std::vector<std::string> lines;
  for (Operation *op : work.ops)
    // A cluster takes its own copies of these along, or leaves them outside.
    if (!isa<nn::ReshapeOp, nn::BroadcastOp, nn::ConstantOp, nn::IotaOp>(op))
      lines.push_back(describe(op, work.rates));
  // Ops that do not depend on each other have no order of their own.
  llvm::sort(lines);
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return std::max<uint64_t>(llvm::xxh3_64bits(text), 1);
}

} // namespace partita
