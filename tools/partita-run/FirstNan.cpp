//===- FirstNan.cpp - Where NaN in outputs comes from ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run without NaN only pays for a look at its outputs. If they have NaN, the
// step of the first one is computed once more, in a session that looks at every
// instruction (SessionOptions.search).
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/Run.h"

#include "runtime/abi/Text.h"
#include "runtime/base/NotFinite.h"
#include "runtime/feed/Feed.h"

#include <algorithm>

namespace partita::run {

using runtime::Expected;
using runtime::NanOrigin;
using runtime::Search;
using runtime::Session;
using runtime::StepBinding;
using runtime::Tensor;

namespace {

/// The first of the entries `begin` to `end` along a port's batch axis that has
/// NaN. A port without that axis has one entry.
std::optional<int64_t> firstEntry(const Port &port, const Tensor &tensor,
                                  int64_t begin, int64_t end) {
  if (!runtime::hasNan(tensor.dtype()))
    return std::nullopt;
  auto find = [&](int64_t first, int64_t count) {
    return runtime::findFirst(
        Search::nan, tensor.dtype(),
        tensor.data() + first * runtime::elementBytes(tensor.dtype()), count);
  };
  if (port.batchAxis < 0)
    return find(0, tensor.elements()) ? std::optional<int64_t>(0)
                                      : std::nullopt;
  const auto axis = size_t(port.batchAxis);
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < tensor.shape().size(); ++i)
    if (i != axis)
      (i < axis ? outer : inner) *= tensor.shape()[i];
  const int64_t entries = tensor.shape()[axis];
  end = std::min(end, entries);
  std::optional<int64_t> first;
  for (int64_t o = 0; o < outer && begin < end; ++o)
    if (std::optional<int64_t> at =
            find((o * entries + begin) * inner, (end - begin) * inner)) {
      first = begin + *at / inner;
      end = *first; // others are of interest only if they are before it
    }
  return first;
}

/// NaN in an input or output of the run.
struct Place {
  const Port *port = nullptr;
  int64_t micro_batch = 0; ///< of all steps
  int64_t sample = 0;      ///< if the port has a batch axis
};

/// The first one in a tensor, by default of all micro-batches.
std::optional<Place> findIn(const Model &model, const Port &port,
                            const Tensor &tensor, int64_t micro_batch = -1) {
  if (port.bytes() == 0)
    return std::nullopt;
  const bool any = micro_batch < 0;
  std::optional<int64_t> entry =
      firstEntry(port, tensor, any ? 0 : micro_batch * port.samples(),
                 any ? tensor.elements() : (micro_batch + 1) * port.samples());
  if (!entry)
    return std::nullopt;
  // A port without a batch axis is the same for all micro-batches.
  if (port.batchAxis < 0)
    return Place{&port, std::max<int64_t>(micro_batch, 0), 0};
  return Place{&port, *entry / port.samples(),
               *entry * model.samples() / port.samples()};
}

/// The earliest one in some tensors; `others` counts further ones.
std::optional<Place> findFirstOf(const Model &model,
                                 const std::vector<Port> &ports,
                                 const std::vector<const Tensor *> &tensors,
                                 int64_t micro_batch, int &others) {
  std::optional<Place> first;
  others = -1;
  for (size_t i = 0; i < ports.size(); ++i) {
    std::optional<Place> place =
        tensors[i] ? findIn(model, ports[i], *tensors[i], micro_batch)
                   : std::nullopt;
    others += place.has_value();
    if (place && (!first || std::pair(place->micro_batch, place->sample) <
                                std::pair(first->micro_batch, first->sample)))
      first = place;
  }
  return first;
}

/// A session that looks for NaN, and memory for outputs that nobody wants.
class Searcher {
public:
  explicit Searcher(Context &context, const InputTensors &inputs)
      : context(context), inputs(inputs) {}

  /// All processes get the same answer.
  bool load() {
    const Model &model = context.model;
    Expected<Feed> made = Feed::create(model, inputs, context.job.devices());
    // The search runs the code that the outputs are of. There is not room for
    // two sessions everywhere.
    const bool keeps = keepsNan(context);
    context.session.reset();
    context.embedded.reset();
    Expected<std::unique_ptr<Session>> loaded =
        loadSearch(context.options, model, context.job, keeps);
    if (!context.job.allLoaded(made && loaded))
      return false;
    feed.emplace(std::move(*made));
    session = std::move(*loaded);
    for (const Port &port : model.outputs)
      outputs.emplace_back(size_t(port.bytes()) * size_t(model.microBatches));
    return true;
  }

  int64_t steps() const { return feed->steps(); }

  /// Process 0 gets the first one of a step, or of one of its micro-batches,
  /// from all processes.
  std::optional<NanOrigin> run(int64_t step, std::optional<int> micro_batch) {
    StepBinding binding;
    feed->fill(step, binding);
    for (std::vector<uint8_t> &output : outputs)
      binding.outputs.push_back(output.data());
    context.job.require(session->run(binding));
    std::vector<NanOrigin> found = session->nanOrigins();
    if (micro_batch)
      std::erase_if(found, [&](const NanOrigin &origin) {
        return origin.micro_batch != *micro_batch;
      });
    std::optional<NanOrigin> first;
    for (const std::vector<NanOrigin> &each :
         context.job.gather<NanOrigin>(found))
      for (const NanOrigin &origin : each)
        first = first ? std::min(*first, origin) : origin;
    return first;
  }

private:
  Context &context;
  const InputTensors &inputs;
  std::optional<Feed> feed;
  std::unique_ptr<Session> session;
  std::vector<std::vector<uint8_t>> outputs;
};

/// The same number on all processes, which process 0 knows.
int64_t fromRoot(Job &job, int64_t number) {
  double shared = job.root() ? double(number) : -1;
  job.max({&shared, 1});
  return int64_t(shared);
}

std::string sampleText(const Place &place, const char *before,
                       const char *after) {
  return place.port->batchAxis < 0
             ? ""
             : std::string(before) + std::to_string(place.sample) + after;
}

/// The instruction that made NaN, or its parameter that has NaN.
std::string originText(const Model &model, const NanOrigin &origin,
                       int64_t step, int64_t steps) {
  std::string where = runtime::describe(*model.plan, origin) +
                      ", in micro-batch " + std::to_string(origin.micro_batch);
  if (steps > 1)
    where += " of step " + std::to_string(step);
  if (std::optional<int> weight =
          runtime::findInParameters(Search::nan, *model.artifact, origin))
    return "the parameter '" +
           std::string(runtime::text(
               model.plan->weights()->Get(unsigned(*weight))->name())) +
           "' of " + where + ", has NaN";
  return "the first op that made NaN is " + where;
}

/// Where NaN of a micro-batch comes from, or if it is below 0, the first of all
/// steps. Only process 0 is told. Empty: nothing is known that a user would
/// want to know.
std::string findOrigin(Context &context, const InputTensors &inputs,
                       int64_t micro_batch) {
  const Model &model = context.model;
  std::vector<const Tensor *> tensors;
  for (const std::optional<Tensor> &input : inputs)
    tensors.push_back(input ? &*input : nullptr);
  int others = 0;
  if (std::optional<Place> place =
          findFirstOf(model, model.inputs, tensors, micro_batch, others))
    return "the input '" + place->port->name + "' has NaN" +
           sampleText(*place, " in sample ", "");

  int shown = 0;
  for (int device = 0; device < model.devices; ++device)
    shown += runtime::canBeSearched(*model.plan, device);
  const std::string unseen =
      shown == model.devices ? "" : "; ops on GPUs were not looked at";
  // Of NaN that no output has, was said before that a step met it.
  const std::string unknown =
      micro_batch < 0 ? "" : "it is not known which op made it" + unseen;
  if (shown == 0)
    return unknown;
  Searcher search(context, inputs);
  if (!search.load())
    return unknown.empty()
               ? ""
               : unknown + ", because the plan could not be loaded again";
  const int64_t begin = micro_batch < 0 ? 0 : micro_batch / model.microBatches;
  const int64_t end = micro_batch < 0 ? search.steps() : begin + 1;
  const std::optional<int> wanted =
      micro_batch < 0 ? std::nullopt
                      : std::optional<int>(micro_batch % model.microBatches);
  for (int64_t step = begin; step < end; ++step) {
    const std::optional<NanOrigin> origin = search.run(step, wanted);
    if (fromRoot(context.job, origin.has_value()) > 0)
      return origin ? originText(model, *origin, step, search.steps()) + unseen
                    : "";
  }
  return unknown;
}

} // namespace

void remarkNan(Context &context, const InputTensors &inputs,
               const std::vector<Tensor> &outputs) {
  const Model &model = context.model;
  std::vector<const Tensor *> tensors;
  for (const Tensor &output : outputs)
    tensors.push_back(&output);
  std::optional<Place> place;
  int others = 0;
  if (context.job.root())
    place = findFirstOf(model, model.outputs, tensors, -1, others);
  const int64_t first = fromRoot(context.job, place ? place->micro_batch : -1);
  if (first < 0 && !context.metNan)
    return;
  const std::string origin = findOrigin(context, inputs, first);
  if (!context.job.root() || origin.empty())
    return;
  std::string what = "a step met NaN";
  if (place) {
    what = "the output '" + place->port->name + "' has NaN" +
           sampleText(*place, " from sample ", " on");
    if (others > 0)
      what += ", and so " + std::string(others == 1 ? "has " : "have ") +
              abi::countOf(others, "other output");
  }
  remark(what + ": " + origin);
}

} // namespace partita::run
