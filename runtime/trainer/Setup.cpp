//===- Setup.cpp - How an artifact is trained -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/Setup.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace partita::runtime::train {
namespace {

using Json = nlohmann::json;

/// The number of a key; `standard` if it is missing or none.
double numberOf(const Json &object, const char *key, double standard) {
  auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>()
                                                     : standard;
}

/// 0 if it is missing or no count.
int64_t countOf(const Json &object, const char *key) {
  auto found = object.find(key);
  return found != object.end() && found->is_number_integer()
             ? std::max<int64_t>(found->get<int64_t>(), 0)
             : 0;
}

std::string textOf(const Json &object, const char *key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

/// None if anything else stands there.
std::vector<double> numbersOf(const Json &object, const char *key) {
  std::vector<double> numbers;
  auto found = object.find(key);
  if (found == object.end() || !found->is_array())
    return numbers;
  for (const Json &each : *found) {
    if (!each.is_number())
      return {};
    numbers.push_back(each.get<double>());
  }
  return numbers;
}

/// KIND:OUTPUT[:INPUT][,OPTION=VALUE...]
LossNames namesOf(const std::string &loss) {
  LossNames names;
  const std::string head = loss.substr(0, loss.find(','));
  const size_t first = head.find(':');
  if (first == std::string::npos)
    return names;
  const size_t second = head.find(':', first + 1);
  names.target =
      second == std::string::npos ? "target" : head.substr(second + 1);
  const std::string key = ",ignore_index=";
  if (const size_t at = loss.find(key); at != std::string::npos)
    names.ignoreIndex =
        std::strtoll(loss.c_str() + at + key.size(), nullptr, 10);
  return names;
}

} // namespace

double RateSchedule::rate(double base, int64_t step) const {
  if (step < warmup)
    return base * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (kind == "step" && every > 0)
    return base * std::pow(factor, static_cast<double>(step / every));
  const int64_t begin = kind == "wsd" ? steps - decay : warmup;
  if (kind == "constant" || steps <= begin || step < begin)
    return base;
  const double done = std::min(1.0, static_cast<double>(step - begin) /
                                        static_cast<double>(steps - begin));
  if (kind == "cosine")
    return final + (base - final) * (1 + std::cos(std::numbers::pi * done)) / 2;
  return base + (final - base) * done;
}

void Setup::rates(int64_t step, std::vector<double> &rates) const {
  const double base = learningRates.front();
  const double now = schedule.rate(base, step);
  rates.resize(learningRates.size());
  rates.front() = now;
  // The schedule changes all groups alike.
  for (size_t i = 1; i < rates.size(); ++i)
    rates[i] = base == 0 ? learningRates[i] : learningRates[i] * (now / base);
}

Expected<Setup> parseSetup(const std::string &text, const std::string &where) {
  const Json all = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object())
    return Status::error("'" + where +
                         "' does not say how it is trained: "
                         "compile the model again");
  Setup setup;
  setup.text = text;
  setup.loss = namesOf(textOf(all, "loss"));
  setup.optimizer = textOf(all, "optimizer");
  setup.onNonfinite = textOf(all, "on_nonfinite");
  setup.learningRates = numbersOf(all, "learning_rate");
  setup.weightDecays = numbersOf(all, "weight_decay");
  if (setup.learningRates.empty() ||
      setup.learningRates.size() != setup.weightDecays.size())
    return Status::error("'" + where +
                         "' has no learning rates: compile the "
                         "model again");
  if (auto schedule = all.find("schedule");
      schedule != all.end() && schedule->is_object()) {
    setup.schedule.kind = textOf(*schedule, "kind");
    setup.schedule.warmup = countOf(*schedule, "warmup");
    setup.schedule.steps = countOf(*schedule, "steps");
    setup.schedule.every = countOf(*schedule, "every");
    setup.schedule.decay = countOf(*schedule, "decay");
    setup.schedule.final = numberOf(*schedule, "final", 0);
    setup.schedule.factor = numberOf(*schedule, "factor", 1);
  }
  if (auto scales = all.find("scale");
      scales != all.end() && scales->is_object())
    for (const auto &[name, scale] : scales->items())
      if (scale.is_object())
        setup.scales[name] = {numberOf(scale, "divide", 1),
                              numberOf(scale, "mean", 0),
                              numberOf(scale, "std", 1)};
  if (auto initial = all.find("initial");
      initial != all.end() && initial->is_object())
    for (const auto &[name, values] : initial->items()) {
      const auto found = values.is_string()
                             ? parseDistribution(values.get<std::string>())
                             : std::nullopt;
      if (!found)
        return Status::error("'" + where + "' does not say how '" + name +
                             "' is drawn: compile the model again");
      setup.initial[name] = *found;
    }
  return setup;
}

} // namespace partita::runtime::train
