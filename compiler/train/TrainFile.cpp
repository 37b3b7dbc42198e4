//===- TrainFile.cpp - How a model is trained -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/train/TrainFile.h"

#include "compiler/files/Nesting.h"
#include "compiler/files/ReadFile.h"
#include "compiler/train/InitSpec.h"
#include "compiler/train/OptimizerSpec.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

#include <cmath>

using namespace llvm;

namespace partita::train {
namespace {

Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

/// Reads the nodes of a file as they stand. The first error is kept.
class TrainReader {
public:
  explicit TrainReader(StringRef text)
      : stream(text, sources, /*ShowColors=*/false) {
    sources.setDiagHandler(
        [](const SMDiagnostic &found, void *self) {
          static_cast<TrainReader *>(self)->report(
              found.getLineNo(), found.getColumnNo() + 1, found.getMessage());
        },
        this);
  }

  Expected<TrainSettings> read() {
    auto document = stream.begin();
    yaml::Node *root = document == stream.end() ? nullptr : document->getRoot();
    if (root && message.empty() && !isa<yaml::NullNode>(root))
      readMapping(
          root, "the file",
          [&](StringRef key, yaml::Node *value) { return readKey(key, value); },
          "loss, freeze, train_only, eval_mode, optimizer, groups, schedule, "
          "clip_norm, micro_batches, recompute, recompute_nodes, "
          "optimizer_state, on_nonfinite, mixed_precision, init, reduction and "
          "scale");
    checkGroups();
    if (message.empty() && (!root || stream.failed()))
      report(1, 1, "the file is empty or not YAML");
    if (!message.empty())
      return makeError(message);
    return settings;
  }

private:
  void report(int line, int column, const Twine &text) {
    if (message.empty())
      message = (Twine(line) + ":" + Twine(column) + ": " + text).str();
  }
  void fail(yaml::Node *node, const Twine &text) {
    if (!node || !message.empty())
      return;
    const SMLoc at = node->getSourceRange().Start;
    // A node after an error may lie nowhere.
    if (!sources.FindBufferContainingLoc(at))
      return report(1, 1, text);
    auto [line, column] = sources.getLineAndColumn(at);
    // What stands in brackets begins behind the first one for the parser.
    const bool isInBrackets =
        isa<yaml::MappingNode, yaml::SequenceNode>(node) && column > 1 &&
        StringRef("{[").contains(at.getPointer()[-1]);
    report(static_cast<int>(line), static_cast<int>(column) - isInBrackets,
           text);
  }

  std::string readText(yaml::Node *node) {
    auto *scalar = dyn_cast_or_null<yaml::ScalarNode>(node);
    if (!scalar) {
      fail(node, "expected a word or a number");
      return "";
    }
    SmallString<64> storage;
    return scalar->getValue(storage).str();
  }

  double readNumber(yaml::Node *node, StringRef what, double least) {
    const std::string text = readText(node);
    double value = 0;
    if (StringRef(text).getAsDouble(value) || !std::isfinite(value) ||
        value < least)
      fail(node, what + " is '" + text + "', and not a number" +
                     (least == 0 ? " of at least 0" : ""));
    return value;
  }

  int64_t readCount(yaml::Node *node, StringRef what, int64_t least) {
    const std::string text = readText(node);
    int64_t value = 0;
    if (StringRef(text).getAsInteger(10, value) || value < least ||
        value > kMostSteps)
      fail(node, what + " is '" + text +
                     "', and not a whole number of at least " + Twine(least));
    return value;
  }

  std::vector<std::string> readTexts(yaml::Node *node) {
    std::vector<std::string> texts;
    if (isa_and_nonnull<yaml::ScalarNode>(node))
      return {readText(node)};
    auto *list = dyn_cast_or_null<yaml::SequenceNode>(node);
    if (!list) {
      fail(node, "expected a list, e.g. [\"*.bias\", \"*norm*\"]");
      return texts;
    }
    for (yaml::Node &item : *list) {
      texts.push_back(readText(&item));
      if (!message.empty() || texts.size() > kMostEntries)
        break;
    }
    if (texts.size() > kMostEntries)
      fail(node, "there are more than " + Twine(kMostEntries) +
                     " entries in this list");
    return texts;
  }

  /// Each entry once; a value that is read must be looked at.
  void readMapping(yaml::Node *node, const Twine &what,
                   llvm::function_ref<bool(StringRef, yaml::Node *)> entry,
                   StringRef keys = "") {
    auto *mapping = dyn_cast_or_null<yaml::MappingNode>(node);
    if (!mapping)
      return fail(node, "expected `key: value` entries of " + what);
    llvm::StringSet<> seen;
    for (yaml::KeyValueNode &pair : *mapping) {
      const std::string key = readText(pair.getKey());
      if (!message.empty())
        return;
      if (!seen.insert(key).second)
        return fail(pair.getKey(), "'" + key + "' stands here twice");
      yaml::Node *value = pair.getValue();
      if (!value || isa<yaml::NullNode>(value))
        return fail(pair.getKey(), "'" + key + "' has no value");
      if (!entry(key, value))
        fail(pair.getKey(), "'" + key + "' is no key of " + what +
                                (keys.empty() ? "" : "; its keys are ") + keys);
      if (!message.empty())
        return;
    }
  }

  bool readKey(StringRef key, yaml::Node *value) {
    if (key == "loss")
      readLoss(value);
    else if (key == "freeze")
      settings.freeze = readTexts(value);
    else if (key == "train_only")
      settings.trainOnly = readTexts(value);
    else if (key == "eval_mode")
      settings.evalMode = readTexts(value);
    else if (key == "optimizer")
      readOptimizer(value);
    else if (key == "groups")
      readGroups(value);
    else if (key == "schedule")
      readSchedule(value);
    else if (key == "clip_norm")
      settings.clipNorm = readNumber(value, key, 0);
    else if (key == "micro_batches")
      settings.microBatches = readCount(value, key, 1);
    else if (key == "recompute")
      settings.recompute = readChoice(value, key, {"none", "standard", "full"});
    else if (key == "recompute_nodes")
      settings.recomputeNodes = readTexts(value);
    else if (key == "optimizer_state")
      settings.optimizerState = readChoice(value, key, {"device", "host"});
    else if (key == "on_nonfinite")
      settings.onNonfinite = readChoice(value, key, {"stop", "skip"});
    else if (key == "mixed_precision")
      settings.mixedPrecision = readChoice(value, key, {"bf16"});
    else if (key == "reduction")
      settings.sums = readChoice(value, key, {"mean", "sum"}) == "sum";
    else if (key == "init")
      readInit(value);
    else if (key == "scale")
      readScale(value);
    else
      return false;
    return true;
  }

  std::string readChoice(yaml::Node *node, StringRef what,
                         ArrayRef<StringRef> known) {
    std::string text = readText(node);
    if (!is_contained(known, text))
      fail(node, what + " is '" + text + "', and not " + join(known, " or "));
    return text;
  }

  /// As --loss says it.
  void readLoss(yaml::Node *node) {
    if (isa<yaml::ScalarNode>(node)) {
      settings.loss = readText(node);
      return;
    }
    std::string kind, output, labels, options;
    readMapping(node, "a loss", [&](StringRef key, yaml::Node *value) {
      std::string text = readText(value);
      if (key == "kind")
        kind = text;
      else if (key == "output")
        output = text;
      else if (key == "labels" || key == "target")
        labels = text;
      else
        options += "," + key.str() + "=" + text;
      return true;
    });
    if (kind.empty() || output.empty())
      fail(node, "a loss has a kind and an output, e.g. {kind: cross_entropy, "
                 "output: logits, labels: label}");
    settings.loss =
        kind + ":" + output + (labels.empty() ? "" : ":" + labels) + options;
  }

  /// KEY=VALUE of a setting of an optimizer.
  std::string readSetting(StringRef key, yaml::Node *value) {
    if (key != "betas")
      return "," + key.str() + "=" + readText(value);
    return ",betas=" + join(readTexts(value), ":");
  }

  /// KIND, or {kind: KIND, KEY: VALUE}, as KIND[,KEY=VALUE...].
  std::string readKind(yaml::Node *node, const Twine &what) {
    if (isa<yaml::ScalarNode>(node))
      return readText(node);
    std::string kind, options;
    readMapping(node, what, [&](StringRef key, yaml::Node *value) {
      if (key == "kind")
        kind = readText(value);
      else
        options += readSetting(key, value);
      return true;
    });
    return kind + options;
  }

  void readOptimizer(yaml::Node *node) {
    settings.optimizer = readKind(node, "an optimizer");
    if (StringRef(*settings.optimizer).split(',').first.empty())
      fail(node, "an optimizer has a kind, e.g. {kind: adamw}");
    auto parsed = parseOptimizer(*settings.optimizer);
    if (!parsed)
      fail(node, toString(parsed.takeError()));
  }

  void readGroups(yaml::Node *node) {
    auto *list = dyn_cast<yaml::SequenceNode>(node);
    if (!list)
      return fail(node, "expected a list, e.g. [{parameters: [\"*.bias\"], "
                        "weight_decay: 0}]");
    for (yaml::Node &item : *list) {
      std::vector<std::string> globs;
      std::string options;
      readMapping(&item, "a group", [&](StringRef key, yaml::Node *value) {
        if (key == "parameters") {
          globs = readTexts(value);
          return true;
        }
        const std::string setting = readSetting(key, value);
        options += setting;
        groupSettings.push_back({setting, value});
        return true;
      });
      if (globs.empty())
        fail(&item, "a group has parameters: {parameters: [GLOB, ...], ...}");
      settings.groups.push_back(join(globs, "|") + options);
      if (!message.empty() || settings.groups.size() > kMostEntries)
        return;
    }
  }

  /// When the optimizer is known, which may stand behind the groups.
  void checkGroups() {
    auto optimizer = parseOptimizer(settings.optimizer.value_or("adamw"));
    if (!optimizer)
      return consumeError(optimizer.takeError());
    for (const auto &[setting, node] : groupSettings) {
      auto parsed = parseGroup("*" + setting, *optimizer);
      if (!parsed)
        fail(node, toString(parsed.takeError()));
    }
  }

  void readSchedule(yaml::Node *node) {
    auto parsed = parseSchedule(readKind(node, "a schedule"));
    if (!parsed)
      return fail(node, toString(parsed.takeError()));
    settings.schedule = *parsed;
  }

  /// GLOB: KIND, or GLOB: {kind: KIND, KEY: VALUE}.
  void readInit(yaml::Node *node) {
    readMapping(node, "what parameters begin with",
                [&](StringRef glob, yaml::Node *entry) {
                  const std::string kind = readKind(entry, "initial values");
                  if (Error error = checkInit(kind))
                    fail(entry, toString(std::move(error)));
                  settings.init.push_back((glob + "=" + kind).str());
                  return settings.init.size() <= kMostEntries;
                });
  }

  void readScale(yaml::Node *node) {
    readMapping(
        node, "the scales of inputs", [&](StringRef name, yaml::Node *entry) {
          InputScale &scale = settings.scale[name.str()];
          readMapping(entry, "a scale", [&](StringRef key, yaml::Node *value) {
            if (key == "divide")
              scale.divide = readNumber(value, key, 0);
            else if (key == "mean")
              scale.mean = readNumber(value, key, -kLargest);
            else if (key == "std")
              scale.std = readNumber(value, key, 0);
            else
              return false;
            return true;
          });
          if (scale.divide == 0 || scale.std == 0)
            fail(entry, "divide and std are not 0");
          return true;
        });
  }

  static constexpr size_t kMostEntries = 1 << 16;
  static constexpr int64_t kMostSteps = int64_t(1) << 40;
  static constexpr double kLargest = 1e300;

  SourceMgr sources;
  yaml::Stream stream;
  std::string message;
  TrainSettings settings;
  /// ",KEY=VALUE" of groups, with the node of the value.
  std::vector<std::pair<std::string, yaml::Node *>> groupSettings;
};

/// The rates of the parameters that no group names, and of each group.
json::Array listOf(ArrayRef<OptimizerSpec> groups,
                   double OptimizerSpec::*value) {
  json::Array list;
  for (const OptimizerSpec &group : groups)
    list.push_back(group.*value);
  return list;
}

json::Object describe(const RateSchedule &schedule) {
  return json::Object{{"kind", schedule.kind},   {"warmup", schedule.warmup},
                      {"steps", schedule.steps}, {"final", schedule.final},
                      {"every", schedule.every}, {"factor", schedule.factor},
                      {"decay", schedule.decay}};
}

} // namespace

Expected<RateSchedule> parseSchedule(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  RateSchedule schedule;
  schedule.kind = parts.front().str();
  const StringRef kinds[] = {"constant", "step", "linear", "cosine", "wsd"};
  if (!is_contained(kinds, schedule.kind))
    return makeError("'" + parts.front() + "' is no schedule; there are " +
                     join(ArrayRef(kinds), ", "));
  // What each kind has beside a warm-up.
  const StringRef own = schedule.kind == "step"       ? "every, factor"
                        : schedule.kind == "wsd"      ? "steps, decay, final"
                        : schedule.kind == "constant" ? ""
                                                      : "steps, final";
  for (StringRef part : ArrayRef(parts).drop_front()) {
    auto [key, value] = part.split('=');
    SmallVector<StringRef> names;
    own.split(names, ", ");
    if (key != "warmup" && !is_contained(names, key))
      return makeError("'" + part + "' is no setting of the schedule '" +
                       schedule.kind + "'; its settings are warmup" +
                       (own.empty() ? "" : ", ") + own);
    double number = 0;
    int64_t count = 0;
    const bool isCount = !value.getAsInteger(10, count) && count >= 0 &&
                         count <= (int64_t(1) << 40);
    const bool isNumber =
        !value.getAsDouble(number) && std::isfinite(number) && number >= 0;
    if (key == "warmup" && isCount)
      schedule.warmup = count;
    else if (key == "steps" && isCount)
      schedule.steps = count;
    else if (key == "every" && isCount)
      schedule.every = count;
    else if (key == "decay" && isCount)
      schedule.decay = count;
    else if (key == "final" && isNumber)
      schedule.final = number;
    else if (key == "factor" && isNumber)
      schedule.factor = number;
    else
      return makeError("'" + part +
                       "' is no setting of a schedule: warmup, steps, every "
                       "and decay are whole numbers of at least 0, final and "
                       "factor numbers of at least 0");
  }
  const bool needsSteps = schedule.kind == "linear" ||
                          schedule.kind == "cosine" || schedule.kind == "wsd";
  if (needsSteps && schedule.steps <= schedule.warmup)
    return makeError("a schedule '" + schedule.kind +
                     "' needs more `steps` than those of its warm-up");
  if (schedule.kind == "step" && schedule.every == 0)
    return makeError("a schedule 'step' needs `every`: the steps after which "
                     "the rate is `factor` times as large");
  if (schedule.kind == "wsd" &&
      (schedule.decay == 0 ||
       schedule.decay > schedule.steps - schedule.warmup))
    return makeError("a schedule 'wsd' needs `decay`: the last of its steps, "
                     "in which the rate falls");
  return schedule;
}

Expected<TrainSettings> parseTrainFile(StringRef text) {
  // Strings and comments are the same as in ONNX's text.
  if (auto deep = files::findDeepNesting(text, files::Syntax::onnx))
    return makeError(*deep);
  TrainReader reader(text);
  return reader.read();
}

Expected<TrainSettings> readTrainFile(StringRef path) {
  auto buffer =
      files::readFile(path, files::kMostTextBytes, files::Ending::null);
  if (!buffer)
    return makeError("--train " + path + ": " + toString(buffer.takeError()));
  Expected<TrainSettings> settings = parseTrainFile((*buffer)->getBuffer());
  if (!settings)
    return makeError(path + ":" + toString(settings.takeError()));
  return settings;
}

Error apply(const TrainSettings &settings, autodiff::AutodiffOptions &autodiff,
            TrainOptions &train) {
  if (settings.loss)
    autodiff.loss = *settings.loss;
  if (settings.sums && !autodiff.loss.empty() &&
      !StringRef(autodiff.loss).contains(",reduction="))
    autodiff.loss += ",reduction=sum";
  autodiff.freeze.insert(autodiff.freeze.end(), settings.freeze.begin(),
                         settings.freeze.end());
  autodiff.trainOnly.insert(autodiff.trainOnly.end(),
                            settings.trainOnly.begin(),
                            settings.trainOnly.end());
  train.optimizer = settings.optimizer.value_or("adamw");
  train.groups = settings.groups;
  train.evalMode = settings.evalMode;
  train.recompute = settings.recompute.value_or("");
  train.recomputeNodes = settings.recomputeNodes;
  train.onNonfinite = settings.onNonfinite.value_or("");
  train.mixedPrecision = settings.mixedPrecision.value_or("");
  train.optimizerOnHost = settings.optimizerState == "host";
  train.init = settings.init;
  for (const std::string &text : train.init)
    if (auto init = parseInit(text); !init)
      return makeError("--init: " + toString(init.takeError()));
  train.clipNorm = settings.clipNorm.value_or(0);
  if (!std::isfinite(train.clipNorm) || train.clipNorm < 0)
    return makeError("--clip-norm: it is a number of at least 0");
  train.microBatches = settings.microBatches.value_or(1);
  SmallVector<OptimizerSpec> groups;
  auto standard = parseOptimizer(train.optimizer);
  if (!standard)
    return makeError("--optimizer: " + toString(standard.takeError()));
  groups.push_back(*standard);
  for (const std::string &text : train.groups) {
    auto group = parseGroup(text, *standard);
    if (!group)
      return makeError("--group: " + toString(group.takeError()));
    groups.push_back(group->settings);
  }
  // The description is JSON.
  std::vector<StringRef> texts = {autodiff.loss, train.optimizer};
  for (const auto *list : {&train.groups, &train.evalMode, &train.init,
                           &autodiff.freeze, &autodiff.trainOnly})
    texts.insert(texts.end(), list->begin(), list->end());
  for (const auto &[name, scale] : settings.scale)
    texts.push_back(name);
  for (StringRef text : texts)
    if (!json::isUTF8(text))
      return makeError("'" + json::fixUTF8(text) +
                       "' has bytes that are not UTF-8");
  json::Object scales;
  for (const auto &[name, scale] : settings.scale) {
    train.scaledInputs.push_back(name);
    scales[name] = json::Object{
        {"divide", scale.divide}, {"mean", scale.mean}, {"std", scale.std}};
  }
  // Whoever goes on from a checkpoint must have said the same.
  const json::Object said{{"optimizer", train.optimizer},
                          {"groups", json::Array(train.groups)},
                          {"freeze", json::Array(autodiff.freeze)},
                          {"train_only", json::Array(autodiff.trainOnly)},
                          {"eval_mode", json::Array(train.evalMode)}};
  json::Object all{
      {"said", json::Object(said)},
      {"loss", autodiff.loss},
      {"optimizer", getName(standard->kind)},
      {"learning_rate", listOf(groups, &OptimizerSpec::learningRate)},
      {"weight_decay", listOf(groups, &OptimizerSpec::weightDecay)},
      {"schedule", describe(settings.schedule.value_or(RateSchedule()))},
      {"clip_norm", train.clipNorm},
      {"micro_batches", train.microBatches},
      {"on_nonfinite", train.onNonfinite},
      {"scale", std::move(scales)}};
  if (!train.mixedPrecision.empty())
    all["mixed_precision"] = train.mixedPrecision;
  train.description = formatv("{0}", json::Value(std::move(all))).str();
  return Error::success();
}

} // namespace partita::train
