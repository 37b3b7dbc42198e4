//===- Inputs.cpp - A tensor for every input ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/CollectionFile.h"
#include "tools/partita-run/Run.h"

#include "runtime/base/NearestName.h"
#include "runtime/feed/MadeUpInputs.h"
#include "runtime/io/TensorFiles.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace partita::run {

using runtime::Expected;
using runtime::NamedTensor;
using runtime::Status;
using runtime::Tensor;

namespace {

std::optional<size_t> find(const std::vector<Port> &ports,
                           const std::string &name) {
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i].name == name)
      return i;
  return std::nullopt;
}

Status unknownInput(const Model &model, const std::string &name) {
  if (find(model.boundInputs, name))
    return Status::error("the input '" + name +
                         "' was fixed when the model was compiled; nothing can "
                         "be given for it");
  return Status::error(
      runtime::unknownName("input", name, namesOf(model.inputs)));
}

struct Argument {
  std::optional<size_t> input; ///< empty: the file must tell, or there is one
  std::string path;
  const Collection *collection = nullptr; ///< the sequence or optional named
};

/// Names and paths may both contain '=', so known names are tried first.
Expected<Argument> parseArgument(const Model &model,
                                 const std::string &argument) {
  for (size_t at = argument.find('='); at != std::string::npos;
       at = argument.find('=', at + 1))
    if (auto input = find(model.inputs, argument.substr(0, at)))
      return Argument{input, argument.substr(at + 1), nullptr};
  for (size_t at = argument.find('='); at != std::string::npos;
       at = argument.find('=', at + 1))
    for (const Collection &collection : model.inputCollections)
      if (collection.name == argument.substr(0, at))
        return Argument{std::nullopt, argument.substr(at + 1), &collection};
  size_t at = argument.find('=');
  std::error_code error;
  if (at != std::string::npos && !std::filesystem::exists(argument, error))
    return unknownInput(model, argument.substr(0, at));
  return Argument{std::nullopt, argument, nullptr};
}

Status give(const Model &model, InputTensors &inputs, size_t input,
            Tensor tensor) {
  if (inputs[input])
    return Status::error("the input '" + model.inputs[input].name +
                         "' is given twice");
  inputs[input] = std::move(tensor);
  return Status();
}

/// A file with the tensor of one input.
Status readTensor(const Model &model, const std::string &path, size_t input,
                  InputTensors &inputs) {
  Expected<Tensor> tensor =
      runtime::readTensor(path, model.inputs[input].dtype);
  return tensor ? give(model, inputs, input, std::move(*tensor))
                : tensor.status();
}

/// A file with the whole of a sequence or an optional.
Status readWhole(const Model &model, const Argument &argument,
                 InputTensors &inputs) {
  const Collection &collection = *argument.collection;
  if (!argument.path.ends_with(".pb"))
    return Status::error(
        "the input '" + collection.name + "' is " + collection.text() +
        ": give a .pb file (SequenceProto or OptionalProto)" +
        (collection.length > 0
             ? ", or --input " + collection.portName(0) + "=FILE and so on"
             : ""));
  std::vector<Tensor> tensors =
      PARTITA_TRY(readInputCollection(collection, argument.path));
  for (size_t i = 0; i < tensors.size(); ++i)
    if (auto input = find(model.inputs, collection.portName(int(i))))
      PARTITA_TRY(give(model, inputs, *input, tensors[i]));
  return Status();
}

Status readArchive(const Model &model, const Argument &argument,
                   InputTensors &inputs) {
  auto expected = [&](const std::string &name) -> std::optional<abi::DType> {
    if (argument.input)
      return model.inputs[*argument.input].dtype;
    if (auto input = find(model.inputs, name))
      return model.inputs[*input].dtype;
    if (model.inputs.size() == 1)
      return model.inputs[0].dtype;
    return std::nullopt;
  };
  std::vector<NamedTensor> tensors =
      PARTITA_TRY(runtime::readNpz(argument.path, expected));
  // numpy.savez(FILE, array) gives it a name that says nothing.
  const bool isUnnamed = tensors.size() == 1 && tensors[0].name == "arr_0" &&
                         model.inputs.size() == 1;
  if (tensors.size() == 1 && (argument.input || isUnnamed))
    return give(model, inputs, argument.input.value_or(0), tensors[0].tensor);
  if (argument.input)
    return Status::error("'" + argument.path + "' has " +
                         std::to_string(tensors.size()) +
                         " arrays, but one input was named; leave out '" +
                         model.inputs[*argument.input].name + "='");
  for (NamedTensor &item : tensors) {
    auto input = find(model.inputs, item.name);
    if (!input)
      return Status::error(
          "in '" + argument.path +
          "': " + unknownInput(model, item.name).message() +
          (tensors.size() == 1
               ? "; --input NAME=" + argument.path + " takes it for any input"
               : ""));
    PARTITA_TRY(give(model, inputs, *input, std::move(item.tensor)));
  }
  return Status();
}

/// Reads the files of --input ("name=file" or "file"). One file without a name
/// is for the input that no other file is for. The error for an unknown name
/// suggests the nearest known one.
Expected<InputTensors> readInputs(const Model &model,
                                  const std::vector<std::string> &arguments) {
  InputTensors inputs(model.inputs.size());
  std::vector<std::string> unnamed; // files for what no other one is for
  for (const std::string &text : arguments) {
    Argument argument = PARTITA_TRY(parseArgument(model, text));
    if (argument.collection) {
      PARTITA_TRY(readWhole(model, argument, inputs));
      continue;
    }
    if (runtime::isArchive(argument.path)) {
      PARTITA_TRY(readArchive(model, argument, inputs));
      continue;
    }
    if (!argument.input && model.inputs.size() != 1) {
      unnamed.push_back(argument.path);
      continue;
    }
    PARTITA_TRY(
        readTensor(model, argument.path, argument.input.value_or(0), inputs));
  }
  if (unnamed.empty())
    return inputs;
  const auto isLeft = [](const auto &input) { return !input; };
  if (unnamed.size() > 1 ||
      std::count_if(inputs.begin(), inputs.end(), isLeft) != 1)
    return Status::error("the model has " +
                         std::to_string(model.inputs.size()) +
                         " inputs; say which one '" + unnamed.front() +
                         "' is for, with --input NAME=" + unnamed.front());
  const auto left = std::find_if(inputs.begin(), inputs.end(), isLeft);
  PARTITA_TRY(readTensor(model, unnamed.front(),
                         static_cast<size_t>(left - inputs.begin()), inputs));
  return inputs;
}

/// Fails, with a list of names, if inputs have no tensor.
Status checkComplete(const Model &model, const InputTensors &inputs) {
  std::string missing;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i])
      missing += "\n  --input '" + model.inputs[i].name + "=FILE'   " +
                 model.inputs[i].typeText();
  if (missing.empty())
    return Status();
  return Status::error("these inputs are missing:" + missing +
                       "\n(--benchmark makes up what is missing)");
}

} // namespace

Expected<PlanChoice::Choice> choosePlan(const Options &options,
                                        const PlanChoice &plans) {
  const std::vector<int64_t> largest(plans.sizesOfPlan(plans.largest()));
  if (!options.dimensions.empty()) {
    size_t plan = PARTITA_TRY(plans.find(options.dimensions));
    return PlanChoice::Choice{plan, plans.sizesOfPlan(plan), false};
  }
  if (plans.planCount() == 1 || options.inputs.empty())
    return PlanChoice::Choice{plans.largest(), largest, false};
  InputTensors inputs =
      PARTITA_TRY(readInputs(plans.model(plans.largest()), options.inputs));
  return plans.choose(inputs);
}

Expected<InputTensors> prepareInputs(const Options &options,
                                     const PlanChoice &plans,
                                     const PlanChoice::Choice &choice,
                                     Job &job) {
  const Model &model = plans.model(choice.plan);
  InputTensors inputs = PARTITA_TRY(readInputs(model, options.inputs));
  for (size_t i = 0; choice.padded && i < inputs.size(); ++i)
    if (std::optional<Tensor> &input = inputs[i])
      input = PARTITA_TRY(plans.pad(choice, i, *input));
  PARTITA_TRY(options.measures()
                  ? makeUpMissing(model, model.microBatches, inputs)
                  : checkComplete(model, inputs));
  Feed feed = PARTITA_TRY(Feed::create(model, inputs, job.devices()));
  if (!options.measures())
    PARTITA_TRY(Collector::create(model, feed, job.devices()));
  return inputs;
}

} // namespace partita::run
