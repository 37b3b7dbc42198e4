//===- TestData.cpp - Running test vectors --------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestData.h"

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

Expected<InputTensors> readSet(const Model &model, const fs::path &folder) {
  InputTensors inputs(model.inputs.size());
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const Port &port = model.inputs[i];
    const std::string path = vectorPath(folder, "input", port.index);
    Expected<NamedTensor> item = runtime::readTensorProto(path);
    if (!item)
      return Status::error("the input '" + port.name +
                           "': " + item.status().message());
    inputs[i] = item->tensor;
  }
  return inputs;
}

struct Count {
  int compared = 0;
  int different = 0;
};

Status compareSet(const Context &context, const fs::path &folder,
                  const std::vector<Tensor> &outputs, Count &count) {
  int comparedHere = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Port &port = context.model.outputs[i];
    const std::string path = vectorPath(folder, "output", port.index);
    std::error_code error;
    if (!fs::exists(path, error))
      continue;
    Expected<NamedTensor> expected = runtime::readTensorProto(path);
    if (!expected)
      return expected.status();
    Comparison comparison = runtime::compareTensors(
        outputs[i], expected->tensor, context.options.tolerance);
    std::printf(
        "%s: output '%s' %s: %s%s\n", folder.filename().string().c_str(),
        port.name.c_str(), expected->tensor.typeText().c_str(),
        comparison.equal ? "ok, " : "DIFFERENT, ", comparison.text().c_str());
    ++comparedHere;
    count.different += comparison.equal ? 0 : 1;
  }
  count.compared += comparedHere;
  if (comparedHere == 0)
    return Status::error("the folder '" + folder.string() +
                         "' holds no output_K.pb of any output of the model");
  return Status();
}

} // namespace

Status checkTestData(const Options &options, const Model &model) {
  Expected<std::vector<fs::path>> sets = findSets(options.testData);
  if (!sets)
    return sets.status();
  for (const fs::path &folder : *sets) {
    Expected<InputTensors> inputs = readSet(model, folder);
    Status status =
        inputs ? Feed::create(model, *inputs, -1).status() : inputs.status();
    if (!status.ok())
      return Status::error("test data in '" + folder.string() +
                           "': " + status.message());
  }
  return Status();
}

int runTestData(Context &context) {
  Expected<std::vector<fs::path>> sets = findSets(context.options.testData);
  if (!context.team.allWell(sets.status()))
    return 1;
  Count count;
  for (const fs::path &folder : *sets) {
    Expected<InputTensors> inputs = readSet(context.model, folder);
    if (!context.team.allWell(inputs.status()))
      return 1;
    Expected<std::vector<Tensor>> outputs =
        runSamples(context, *inputs, /*showProgress=*/false);
    Status status = outputs.status();
    if (status.ok() && context.team.root())
      status = compareSet(context, folder, *outputs, count);
    if (!context.team.allWell(status))
      return 1;
  }
  if (!context.team.root())
    return 0;
  if (count.different == 0)
    std::printf("PASS\n");
  else
    std::printf("FAIL: %d of %d outputs differ\n", count.different,
                count.compared);
  return count.different == 0 ? 0 : 1;
}

} // namespace partita::run
