//===- PlanChoice.h - Which plan computes samples of a size -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An artifact may have a plan for each of several sizes of the model's
// dimensions. The smallest plan that is large enough computes the samples. The
// samples are padded with zeros to the plan's sizes, and the results are cut to
// the samples' sizes.
//
//   partita-compile bert.onnx --dim tokens=8,64,512 --mask attention_mask ...
//
//   attention_mask [1, 50], 1 everywhere    plan tokens=64: [1, 64], 14 zeros
//   logits [1, 64, 30522] of that plan      [1, 50, 30522]
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FEED_PLANCHOICE_H
#define PARTITA_RUNTIME_FEED_PLANCHOICE_H

#include "runtime/feed/MadeUpInputs.h"
#include "runtime/feed/Model.h"

#include "runtime/base/Status.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace partita::feed {

class PlanChoice {
public:
  /// `artifacts`: all plans of a file, as Artifact::openAll gives them.
  explicit PlanChoice(
      std::vector<std::shared_ptr<const runtime::Artifact>> artifacts);

  size_t planCount() const { return models.size(); }
  const Model &model(size_t plan) const { return *models[plan]; }
  /// The plans whose steps are several steps of this one, of as many sequences
  /// (Plan.step_sequences), in increasing number. They are none of the others.
  std::vector<const Model *> ofSeveral(size_t plan) const;
  /// The plan of the largest sizes.
  size_t largest() const { return models.size() - 1; }

  /// The dimensions that have several sizes.
  const std::vector<std::string> &dimensions() const { return names; }
  int64_t size(size_t plan, size_t dimension) const {
    return sizes[plan][dimension];
  }
  /// The sizes of a plan, by dimension.
  const std::vector<int64_t> &sizesOfPlan(size_t plan) const {
    return sizes[plan];
  }
  /// Whether a dimension counts samples. Any number of samples is cut into
  /// micro-batches of any size, so samples are never padded along it.
  bool isBatch(size_t dimension) const { return batch[dimension]; }
  /// All sizes of a dimension, in increasing order.
  std::vector<int64_t> sizesOf(size_t dimension) const;
  /// What the size of an axis of a port follows.
  struct Axis {
    /// -1: it has the same size in all plans; -2: its size varies in a way that
    /// is not known.
    int dimension = -1;
    /// Entries besides those of the dimension, as a cache has before new words.
    int64_t extra = 0;
  };
  const Axis &inputAxis(size_t input, size_t axis) const {
    return axes.first[input][axis];
  }
  const Axis &outputAxis(size_t output, size_t axis) const {
    return axes.second[output][axis];
  }
  /// E.g. "tokens = 8, 64 and 512". Empty for an artifact with one plan.
  std::string text() const;

  /// The plan of exactly these sizes, given as pairs (name, size). A dimension
  /// that is not named has its largest size.
  runtime::Expected<size_t>
  find(const std::vector<std::pair<std::string, int64_t>> &wanted) const;

  /// A plan, and the sizes that the samples themselves have.
  struct Choice {
    size_t plan = 0;
    std::vector<int64_t> sizes; ///< by dimension
    bool padded = false;
  };
  /// The plan that computes samples of these sizes, one per dimension. Fails if
  /// no plan is large enough, or if samples would have to be padded and the
  /// artifact does not allow it.
  runtime::Expected<Choice> choose(const std::vector<int64_t> &wanted) const;
  /// The same for inputs, some of which may not be given. Later checks refuse
  /// those that do not fit the model at all.
  runtime::Expected<Choice> choose(const InputTensors &inputs) const;

  /// Pads an input from the samples' sizes to the plan's.
  runtime::Expected<runtime::Tensor> pad(const Choice &choice, size_t input,
                                         const runtime::Tensor &tensor) const;
  /// Cuts an output from the plan's sizes to the samples'.
  runtime::Expected<runtime::Tensor> cut(const Choice &choice, size_t output,
                                         const runtime::Tensor &tensor) const;

private:
  using Axes = std::vector<std::vector<Axis>>; ///< by port and axis

  /// Gives the tensor of a port the sizes `to`, one for each dimension.
  runtime::Expected<runtime::Tensor>
  resize(const runtime::Tensor &tensor, const std::vector<Axis> &axisOf,
         const std::vector<int64_t> &to) const;
  Axes findAxes(const std::vector<Port> Model::*ports) const;
  /// Notes what the axes of ports say of dimensions.
  void describe(const std::vector<Port> &ports, const Axes &found);

  std::vector<std::unique_ptr<Model>> models, several;
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> sizes; ///< by plan and dimension
  std::pair<Axes, Axes> axes;
  std::vector<bool> batch; ///< by dimension
  /// Describes an axis of a port that varies but follows no dimension. Empty if
  /// there is none.
  std::string other_axis;
};

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_PLANCHOICE_H
