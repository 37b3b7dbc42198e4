//===- PlanChoice.cpp - Which plan computes samples of a size -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/PlanChoice.h"

#include "runtime/base/NearestName.h"
#include "runtime/base/Programs.h"
#include "runtime/base/StateParts.h"

#include <algorithm>
#include <cstring>

namespace partita::feed {

using runtime::Expected;
using runtime::length;
using runtime::Status;
using runtime::Tensor;

namespace {

constexpr int kSame = -1, kOther = -2;

/// "8, 64 and 512"
std::string listText(const std::vector<int64_t> &values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += (i == 0                   ? ""
             : i + 1 == values.size() ? " and "
                                      : ", ") +
            std::to_string(values[i]);
  return text;
}

/// Copies what two tensors of a type and rank have in common: along `axis` and
/// those behind it as many entries as the smaller one has. `read` and `written`
/// number the rows before that.
void copyCommon(const Tensor &from, Tensor &to, size_t axis = 0,
                int64_t read = 0, int64_t written = 0) {
  const int64_t has = from.shape()[axis], gets = to.shape()[axis],
                common = std::min(has, gets);
  if (axis + 1 < from.shape().size()) {
    for (int64_t i = 0; i < common; ++i)
      copyCommon(from, to, axis + 1, read * has + i, written * gets + i);
  } else if (common > 0) {
    const int64_t element = runtime::elementBytes(from.dtype());
    std::memcpy(to.mutableData() + written * gets * element,
                from.data() + read * has * element, size_t(common * element));
  }
}

std::optional<int64_t> sizeOf(const abi::Plan &plan, const std::string &name) {
  for (const abi::Dimension &dimension : runtime::each(plan.dimensions()))
    if (name == runtime::text(dimension.name()))
      return dimension.size();
  return std::nullopt;
}

} // namespace

PlanChoice::PlanChoice(
    std::vector<std::shared_ptr<const runtime::Artifact>> artifacts) {
  for (auto &artifact : artifacts) {
    if (artifact->plan().step_sequences() > 1) {
      several.push_back(std::make_unique<Model>(std::move(artifact)));
      continue;
    }
    models.push_back(std::make_unique<Model>(std::move(artifact)));
    const abi::Plan &plan = *models.back()->plan;
    sizes.emplace_back();
    for (const abi::Dimension &dimension : runtime::each(plan.dimensions())) {
      if (models.size() == 1)
        names.push_back(runtime::text(dimension.name()));
      sizes.back().push_back(dimension.size());
    }
  }
  // Dimensions of which only steps of several sequences have other sizes.
  for (size_t d = names.size(); d-- > 0;)
    if (!several.empty() && sizesOf(d).size() == 1) {
      names.erase(names.begin() + long(d));
      for (std::vector<int64_t> &plan : sizes)
        plan.erase(plan.begin() + long(d));
    }
  axes = {findAxes(&Model::inputs), findAxes(&Model::outputs)};
  batch.resize(names.size());
  describe(models[0]->inputs, axes.first);
  describe(models[0]->outputs, axes.second);
}

PlanChoice::Axes
PlanChoice::findAxes(const std::vector<Port> Model::*ports) const {
  Axes found;
  for (size_t p = 0; p < (*models[0].*ports).size(); ++p) {
    found.emplace_back();
    for (size_t axis = 0; axis < (*models[0].*ports)[p].shape.size(); ++axis) {
      auto isAlways = [&](auto expected) {
        for (size_t i = 0; i < models.size(); ++i)
          if ((*models[i].*ports)[p].shape[axis] != expected(i))
            return false;
        return true;
      };
      const int64_t first = (*models[0].*ports)[p].shape[axis];
      Axis which{isAlways([&](size_t) { return first; }) ? kSame : kOther};
      for (bool mayHaveMore : {false, true})
        for (size_t d = 0; which.dimension == kOther && d < names.size(); ++d)
          if (const int64_t extra = mayHaveMore ? first - sizes[0][d] : 0;
              isAlways([&](size_t i) { return sizes[i][d] + extra; }))
            which = {int(d), extra};
      found.back().push_back(which);
    }
  }
  return found;
}

std::vector<const Model *> PlanChoice::ofSeveral(size_t plan) const {
  std::vector<const Model *> found;
  for (const auto &model : several)
    if (runtime::isOfSeveral(*model->plan, *models[plan]->plan))
      found.push_back(model.get());
  std::sort(found.begin(), found.end(), [](const Model *a, const Model *b) {
    return a->plan->step_sequences() < b->plan->step_sequences();
  });
  return found;
}

std::vector<int64_t> PlanChoice::sizesOf(size_t dimension) const {
  std::vector<int64_t> all;
  for (const std::vector<int64_t> &plan : sizes)
    all.push_back(plan[dimension]);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string PlanChoice::text() const {
  std::string text;
  for (size_t d = 0; d < names.size(); ++d)
    text += (d ? "; " : "") + names[d] + " = " + listText(sizesOf(d));
  return text;
}

void PlanChoice::describe(const std::vector<Port> &ports, const Axes &found) {
  for (size_t p = 0; p < ports.size(); ++p)
    for (size_t axis = 0; axis < found[p].size(); ++axis) {
      const Axis &which = found[p][axis];
      if (which.dimension >= 0 && int(axis) == ports[p].batchAxis)
        batch[size_t(which.dimension)] = true;
      // Where entries besides the dimension's lie, is not known.
      if (other_axis.empty() && (which.dimension == kOther || which.extra != 0))
        other_axis =
            "axis " + std::to_string(axis) + " of '" + ports[p].name + "'";
    }
}

Expected<size_t> PlanChoice::find(
    const std::vector<std::pair<std::string, int64_t>> &wanted) const {
  std::vector<int64_t> exact = sizes.back();
  for (const auto &[name, size] : wanted) {
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end() && !several.empty())
      if (std::optional<int64_t> only = sizeOf(*models[0]->plan, name)) {
        if (*only == size)
          continue;
        return Status::error(
            "there is no choice of '" + name + "': a call has " +
            std::to_string(*only) +
            ", and larger sizes are for steps of "
            "several sequences, which share them as they come");
      }
    if (known == names.end())
      return Status::error(
          names.empty()
              ? "this artifact has one plan: there is no choice of '" + name +
                    "'; compile it with --dim " + name + "=8,64,512"
              : runtime::unknownName("dimension", name, names));
    exact[size_t(known - names.begin())] = size;
  }
  for (size_t plan = 0; plan < models.size(); ++plan)
    if (sizes[plan] == exact)
      return plan;
  return Status::error("there is no plan of these sizes; there are those of " +
                       text());
}

Expected<PlanChoice::Choice>
PlanChoice::choose(const std::vector<int64_t> &wanted) const {
  Choice best;
  best.sizes = wanted;
  double least = 0;
  for (size_t plan = 0; plan < models.size(); ++plan) {
    // Entries that are computed, in as few micro-batches as can be.
    double cost = 1;
    bool fits = true, padded = false;
    for (size_t d = 0; d < names.size(); ++d) {
      const int64_t has = sizes[plan][d];
      if (isBatch(d)) {
        const double rounds =
            has > 0 ? double((std::max<int64_t>(wanted[d], 1) + has - 1) / has)
                    : 1;
        cost *= rounds * double(std::max<int64_t>(has, 1)) + 1e-6 * rounds;
        continue;
      }
      fits &= has >= wanted[d];
      padded |= has != wanted[d];
      cost *= double(std::max<int64_t>(has, 1));
    }
    if (fits && (least == 0 || cost < least)) {
      least = cost;
      best.plan = plan;
      best.padded = padded;
    }
  }
  const bool isMasked = length(models[best.plan]->plan->mask()) != 0;
  if (least != 0 && (!best.padded || (isMasked && other_axis.empty())))
    return best;
  std::string asked;
  for (size_t d = 0; d < names.size(); ++d)
    if (!isBatch(d))
      asked += (asked.empty() ? "" : ", ") + std::to_string(wanted[d]) + " " +
               names[d] + " (there are plans for " + listText(sizesOf(d)) + ")";
  if (least == 0)
    return Status::inputError("the samples are too large: they have " + asked +
                              "; compile the model with larger sizes of --dim");
  if (!isMasked)
    return Status::inputError(
        "the samples have " + asked +
        "; compile the model with their size too" +
        (length(models[best.plan]->plan->states()) != 0
             ? ": a model with states pads no samples"
             : ", or with --mask INPUT, so that samples may "
               "be padded"));
  return Status::inputError(
      "the samples have " + asked + ", and cannot be padded: " + other_axis +
      " varies with these sizes in another way, so it is not known how long "
      "it is for them");
}

Expected<PlanChoice::Choice>
PlanChoice::choose(const InputTensors &inputs) const {
  std::vector<int64_t> wanted(names.size(), -1);
  std::vector<std::string> saidBy(names.size());
  for (size_t i = 0; i < inputs.size() && i < axes.first.size(); ++i) {
    if (!inputs[i] || inputs[i]->shape().size() != axes.first[i].size())
      continue;
    for (size_t axis = 0; axis < axes.first[i].size(); ++axis) {
      const auto &[d, extra] = axes.first[i][axis];
      const int64_t has = inputs[i]->shape()[axis] - extra;
      if (d < 0 || has < 0)
        continue;
      int64_t &size = wanted[size_t(d)];
      std::string &by = saidBy[size_t(d)];
      if (size >= 0 && size != has && !isBatch(size_t(d)))
        return Status::inputError(
            "the inputs '" + by + "' and '" + models[0]->inputs[i].name +
            "' do not fit: they have " + std::to_string(size) + " and " +
            std::to_string(has) + " " + names[size_t(d)]);
      size = has;
      by = models[0]->inputs[i].name;
    }
  }
  // Without an input that says it, the largest.
  for (size_t d = 0; d < wanted.size(); ++d)
    if (wanted[d] < 0)
      wanted[d] = sizes.back()[d];
  return choose(wanted);
}

Expected<Tensor> PlanChoice::resize(const Tensor &tensor,
                                    const std::vector<Axis> &axisOf,
                                    const std::vector<int64_t> &to) const {
  std::vector<int64_t> shape = tensor.shape();
  if (shape.size() != axisOf.size())
    return tensor;
  for (size_t axis = 0; axis < axisOf.size(); ++axis)
    if (const auto &[d, extra] = axisOf[axis]; d >= 0 && !isBatch(size_t(d)))
      shape[axis] = to[size_t(d)] + extra;
  if (shape == tensor.shape())
    return tensor;
  Tensor made = PARTITA_TRY(Tensor::allocate(tensor.dtype(), shape));
  if (made.bytes())
    std::memset(made.mutableData(), 0, size_t(made.bytes()));
  copyCommon(tensor, made);
  return made;
}

Expected<Tensor> PlanChoice::pad(const Choice &choice, size_t input,
                                 const Tensor &tensor) const {
  return resize(tensor, axes.first[input], sizes[choice.plan]);
}

Expected<Tensor> PlanChoice::cut(const Choice &choice, size_t output,
                                 const Tensor &tensor) const {
  return resize(tensor, axes.second[output], choice.sizes);
}

} // namespace partita::feed
