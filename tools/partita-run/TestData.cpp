//===- TestData.cpp - Running test vectors --------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/CollectionFile.h"
#include "tools/partita-run/Run.h"
#include "tools/partita-run/show/ComparisonReport.h"

#include "runtime/io/TensorProtoFile.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace partita::run {

namespace fs = std::filesystem;
using runtime::Comparison;
using runtime::Expected;
using runtime::NamedTensor;
using runtime::Status;
using runtime::Tensor;

namespace {

std::string vectorPath(const fs::path &folder, const char *kind, int index) {
  return (folder / (std::string(kind) + "_" + std::to_string(index) + ".pb"))
      .string();
}

bool holdsVectors(const fs::path &folder) {
  std::error_code error;
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(".pb") &&
        (name.starts_with("input_") || name.starts_with("output_")))
      return true;
  }
  return false;
}

Expected<std::vector<fs::path>> findSets(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return Status::error("there is no folder '" + path + "'");
  if (holdsVectors(path))
    return std::vector<fs::path>{path};
  std::vector<fs::path> sets;
  for (const fs::directory_entry &entry : fs::directory_iterator(path, error))
    if (entry.is_directory(error) && holdsVectors(entry.path()))
      sets.push_back(entry.path());
  if (sets.empty())
    return Status::error("the folder '" + path +
                         "' holds no input_0.pb or output_0.pb, nor does any "
                         "folder in it");
  // test_data_set_2 before test_data_set_10.
  std::sort(sets.begin(), sets.end(), [](const fs::path &a, const fs::path &b) {
    std::string x = a.string(), y = b.string();
    return x.size() != y.size() ? x.size() < y.size() : x < y;
  });
  return sets;
}

bool belongsToOne(const std::vector<Collection> &collections,
                  const Port &port) {
  return std::any_of(
      collections.begin(), collections.end(),
      [&](const Collection &c) { return c.index == port.index; });
}

std::optional<size_t> findPort(const std::vector<Port> &ports,
                               const std::string &name, int index) {
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i].name == name && ports[i].index == index)
      return i;
  return std::nullopt;
}

/// The tensors of a sequence or an optional. Elements that were fixed when
/// compiling are no inputs.
Status readParts(const Model &model, const Collection &collection,
                 const fs::path &folder, InputTensors &inputs) {
  const std::string path = vectorPath(folder, "input", collection.index);
  std::error_code error;
  if (collection.length <= 0 && !fs::exists(path, error))
    return Status();
  std::vector<Tensor> tensors =
      PARTITA_TRY(readInputCollection(collection, path));
  for (size_t i = 0; i < tensors.size(); ++i)
    if (auto input = findPort(model.inputs, collection.portName(int(i)),
                              collection.index))
      inputs[*input] = tensors[i];
  return Status();
}

Expected<InputTensors> readSet(const Model &model, const fs::path &folder) {
  InputTensors inputs(model.inputs.size());
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const Port &port = model.inputs[i];
    if (belongsToOne(model.inputCollections, port))
      continue;
    const std::string path = vectorPath(folder, "input", port.index);
    NamedTensor item = PARTITA_TRY(within("the input '" + port.name + "': ",
                                          runtime::readTensorProto(path)));
    inputs[i] = std::move(item.tensor);
  }
  for (const Collection &collection : model.inputCollections)
    PARTITA_TRY(within("the input '" + collection.name + "': ",
                       readParts(model, collection, folder, inputs)));
  return inputs;
}

void compareOne(const Context &context, const fs::path &folder,
                const std::string &name, const Tensor &found,
                const Tensor &expected, ComparisonReport &report) {
  const Comparison comparison = runtime::compareTensors(
      found, expected, context.options.tolerances.of(expected.dtype()));
  const std::string set = folder.filename().string();
  if (!context.options.json)
    std::printf("%s: output '%s' %s: %s%s\n", set.c_str(), name.c_str(),
                expected.typeText().c_str(),
                comparison.equal ? "ok, " : "DIFFERENT, ",
                comparison.text().c_str());
  report.add({{"set", set}, {"name", name}, {"type", expected.typeText()}},
             comparison);
}

/// A sequence that has another length is one difference; what both have is
/// compared.
Status compareParts(const Context &context, const fs::path &folder,
                    const Collection &collection, const std::string &path,
                    const std::vector<Tensor> &outputs,
                    ComparisonReport &report) {
  std::optional<std::vector<Tensor>> expected =
      PARTITA_TRY(readCollection(collection, path));
  Collection wanted = collection;
  wanted.length = expected ? int(expected->size()) : -1;
  bool same = wanted.length == collection.length;
  if (!same || wanted.length <= 0) {
    const std::string set = folder.filename().string();
    const std::string obstacle =
        same ? "" : collection.text() + ", not " + wanted.text();
    if (!context.options.json)
      std::printf("%s: output '%s': %s%s\n", set.c_str(),
                  collection.name.c_str(), same ? "ok, " : "DIFFERENT, ",
                  (same ? collection.text() : obstacle).c_str());
    report.add({{"set", set}, {"name", collection.name}}, obstacle);
  }
  for (int i = 0; i < std::min(wanted.length, collection.length); ++i)
    if (auto port = findPort(context.model.outputs, collection.portName(i),
                             collection.index))
      compareOne(context, folder, collection.portName(i), outputs[*port],
                 (*expected)[size_t(i)], report);
  return Status();
}

Status compareSet(const Context &context, const fs::path &folder,
                  const std::vector<Tensor> &outputs,
                  ComparisonReport &report) {
  const Model &model = context.model;
  const int before = report.compared();
  std::error_code error;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Port &port = model.outputs[i];
    const std::string path = vectorPath(folder, "output", port.index);
    if (belongsToOne(model.outputCollections, port) || !fs::exists(path, error))
      continue;
    NamedTensor expected = PARTITA_TRY(runtime::readTensorProto(path));
    compareOne(context, folder, port.name, outputs[i], expected.tensor, report);
  }
  for (const Collection &collection : model.outputCollections) {
    const std::string path = vectorPath(folder, "output", collection.index);
    if (!fs::exists(path, error))
      continue;
    PARTITA_TRY(
        compareParts(context, folder, collection, path, outputs, report));
  }
  if (report.compared() == before)
    return Status::error("the folder '" + folder.string() +
                         "' holds no output_K.pb of any output of the model");
  return Status();
}

} // namespace

Status checkTestData(const Options &options, const Model &model) {
  if (runtime::length(model.plan->states()) > 0)
    return Status::error(
        "--test-data: the model has states (partita-compile --state), which "
        "begin with zeros, and test data have values for them: compile it "
        "without --state");
  std::vector<fs::path> sets = PARTITA_TRY(findSets(options.testData));
  for (const fs::path &folder : sets) {
    Expected<InputTensors> inputs = readSet(model, folder);
    Status status =
        inputs ? Feed::create(model, *inputs, {}).status() : inputs.status();
    PARTITA_TRY(within("test data in '" + folder.string() + "': ", status));
  }
  return Status();
}

int runTestData(Context &context) {
  Expected<std::vector<fs::path>> sets = findSets(context.options.testData);
  if (!context.job.allWell(sets.status()))
    return 1;
  ComparisonReport report;
  for (const fs::path &folder : *sets) {
    Expected<InputTensors> inputs = readSet(context.model, folder);
    if (!context.job.allWell(inputs.status()))
      return 1;
    Expected<std::vector<Tensor>> outputs =
        runSamples(context, *inputs, /*showProgress=*/false);
    Status status = outputs.status();
    if (status.ok() && context.job.root())
      status = compareSet(context, folder, *outputs, report);
    if (!context.job.allWell(status))
      return 1;
    remarkNan(context, *inputs, *outputs);
  }
  if (!context.job.root())
    return 0;
  if (context.options.json)
    std::fputs(report.json().c_str(), stdout);
  else if (report.different() == 0)
    std::printf("PASS\n");
  else
    std::printf("FAIL: %d of %d outputs differ\n", report.different(),
                report.compared());
  return report.different() == 0 ? 0 : 1;
}

} // namespace partita::run
