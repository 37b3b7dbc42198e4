//===- CompareReference.cpp - The first tensor that differs ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/Run.h"
#include "tools/partita-run/show/ComparisonReport.h"

#include "runtime/io/Compare.h"
#include "runtime/io/Npz.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>

namespace partita::run {

using runtime::Comparison;
using runtime::Expected;
using runtime::NamedTensor;
using runtime::Status;
using runtime::Tensor;

namespace {

/// Orders of more dimensions are too many to try.
constexpr size_t kMostPermuted = 5;

std::vector<int64_t> permuted(const std::vector<int64_t> &shape,
                              const std::vector<int> &order) {
  std::vector<int64_t> result;
  for (int d : order)
    result.push_back(shape[size_t(d)]);
  return result;
}

/// The tensor with dimension `order[i]` at position i.
Expected<Tensor> permute(const Tensor &tensor, const std::vector<int> &order) {
  const size_t rank = order.size();
  int64_t stride = 1;
  std::vector<int64_t> old(rank);
  for (size_t d = rank; d-- > 0;) {
    old[d] = stride;
    stride *= tensor.shape()[d];
  }
  const std::vector<int64_t> shape = permuted(tensor.shape(), order),
                             strides = permuted(old, order);
  Tensor made = PARTITA_TRY(Tensor::allocate(tensor.dtype(), shape));
  const int64_t size = runtime::elementBytes(tensor.dtype());
  std::vector<int64_t> at(rank, 0);
  for (int64_t i = 0, from = 0; i < tensor.elements(); ++i) {
    std::memcpy(made.mutableData() + i * size, tensor.data() + from * size,
                size_t(size));
    for (size_t d = rank; d-- > 0;) {
      from += strides[d];
      if (++at[d] < shape[d])
        break;
      from -= strides[d] * shape[d];
      at[d] = 0;
    }
  }
  return made;
}

/// Halves as f32, in which a CPU computes inner tensors of halves. Other
/// tensors stay as they are.
Expected<Tensor> widenHalves(const Tensor &tensor) {
  const abi::DType dtype = tensor.dtype();
  if (dtype != abi::DType::f16 && dtype != abi::DType::bf16)
    return tensor;
  Tensor made = PARTITA_TRY(Tensor::allocate(abi::DType::f32, tensor.shape()));
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto wide = static_cast<float>(
        runtime::toDouble(dtype, tensor.data() + i * sizeof(uint16_t)));
    std::memcpy(made.mutableData() + i * int64_t(sizeof(float)), &wide,
                sizeof wide);
  }
  return made;
}

struct Match {
  Comparison comparison;
  std::string order; ///< what was done to the reference, for people
};

/// The comparison in the order of the reference's dimensions that agrees best.
Match compareInAnyOrder(const Tensor &actual, const Tensor &expected,
                        const runtime::Tolerance &tolerance) {
  Match best{runtime::compareTensors(actual, expected, tolerance), ""};
  const size_t rank = expected.shape().size();
  if (best.comparison.equal || actual.dtype() != expected.dtype() ||
      actual.elements() != expected.elements())
    return best;
  auto consider = [&](const Tensor &tensor, const std::string &order) {
    Comparison comparison = runtime::compareTensors(actual, tensor, tolerance);
    if (comparison.obstacle.empty() &&
        (!best.comparison.obstacle.empty() ||
         comparison.mismatches < best.comparison.mismatches))
      best = {comparison, order};
  };
  if (actual.shape().size() == rank && rank <= kMostPermuted) {
    std::vector<int> order(rank);
    std::iota(order.begin(), order.end(), 0);
    while (!best.comparison.equal &&
           std::next_permutation(order.begin(), order.end())) {
      if (permuted(expected.shape(), order) != actual.shape())
        continue;
      std::string text;
      for (int d : order)
        text += (text.empty() ? "" : ", ") + std::to_string(d);
      if (Expected<Tensor> tensor = permute(expected, order))
        consider(*tensor, ", the reference's dimensions in the order " + text);
    }
  }
  if (!best.comparison.obstacle.empty())
    consider(Tensor::refer(expected.dtype(), actual.shape(), expected.data(),
                           nullptr),
             ", the reference as " + runtime::shapeText(actual.shape()));
  return best;
}

} // namespace

Expected<bool> compareWithReference(const Options &options, const Model &model,
                                    const std::vector<Tensor> &outputs) {
  // NumPy's files do not name all types.
  auto expected = [&](const std::string &name) -> std::optional<abi::DType> {
    for (const Port &port : model.outputs)
      if (port.name == name)
        return port.dtype;
    return std::nullopt;
  };
  std::vector<NamedTensor> file =
      PARTITA_TRY(runtime::readNpz(options.compare, expected));
  std::map<std::string, const Tensor *> references;
  for (const NamedTensor &item : file)
    references[item.name] = &item.tensor;
  std::vector<size_t> order;
  for (bool inner : {true, false})
    for (size_t i = 0; i < outputs.size(); ++i)
      if (model.outputs[i].node.empty() != inner)
        order.push_back(i);
  ComparisonReport report;
  double leastCosine = 1;
  std::string leastName;
  for (size_t i : order) {
    const Port &port = model.outputs[i];
    auto found = references.find(port.name);
    if (found == references.end())
      continue;
    Expected<Tensor> reference = *found->second;
    if (!port.node.empty() && outputs[i].dtype() == abi::DType::f32)
      reference = widenHalves(*found->second);
    if (!reference)
      return reference.status();
    Match match = compareInAnyOrder(
        outputs[i], *reference, options.tolerances.of(found->second->dtype()));
    nlohmann::ordered_json tags = {{"name", port.name},
                                   {"type", outputs[i].typeText()}};
    if (!port.node.empty())
      tags["node"] = port.node;
    report.add(std::move(tags), match.comparison);
    if (match.comparison.equal && match.comparison.cosine <= leastCosine) {
      leastCosine = match.comparison.cosine;
      leastName = port.name;
    }
    if (match.comparison.equal || options.json)
      continue;
    const std::string what =
        port.node.empty() ? "output '" + port.name + "'"
                          : "node '" + port.node + "': '" + port.name + "'";
    std::printf("DIFFERENT: %s %s%s: %s\n", what.c_str(),
                outputs[i].typeText().c_str(), match.order.c_str(),
                match.comparison.text().c_str());
    std::printf("the first of the model's order; %d before it agree\n",
                report.compared() - 1);
    return false;
  }
  if (report.compared() == 0)
    return Status::error(
        "'" + options.compare +
        "' names none of the artifact's outputs; its arrays are named after "
        "tensors of the ONNX model, and partita-compile --expose makes inner "
        "tensors outputs");
  if (options.json)
    std::fputs(report.json().c_str(), stdout);
  else
    std::printf("PASS: %d tensors agree; least cosine %.9g, of '%s'\n",
                report.compared(), leastCosine, leastName.c_str());
  return report.different() == 0;
}

} // namespace partita::run
