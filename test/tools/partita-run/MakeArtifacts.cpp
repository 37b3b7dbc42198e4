//===- MakeArtifacts.cpp - Small artifacts and data for the tests ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   make-artifacts FOLDER
//
// writes artifacts whose results are known exactly: every device multiplies
// its input x[4, 64] with a matrix that shifts the features by one and doubles
// them, so d devices give y[n, f] = 2^d * x[n, f - d]. No compiler is needed.
//
//   one.partita, two.partita, four.partita    1, 2 and 4 devices, 3
//                                             micro-batches of 4 samples
//   v4.partita          as one.partita, with a kernel for x86-64-v4 only
//   slow.partita, slow4.partita
//                       2 and 4 devices, features enough to be caught in the
//                       middle
//   x.npy               10 samples: 2 full micro-batches and a half
//   more.npy            29 samples: 3 steps, the last one partial
//   double.npy          10 samples as float64
//   narrow.npy          10 samples of 63 features
//   data1, data2, data4 input_0.pb and output_0.pb for 10 samples
//   wrong               the same for one device, with one wrong value
//   sets                test_data_set_0, test_data_set_1 for one device
//
//===----------------------------------------------------------------------===//

#include "test/unit/io/WriteTensorProto.h"
#include "test/unit/runtime/PlanBuilder.h"

#include "runtime/io/Npy.h"
#include "runtime/io/PendingFile.h"

#include <cstdio>
#include <filesystem>

using namespace partita;
using namespace partita::test;
using partita::abi::ActionKind;
using partita::abi::DType;
using runtime::Status;
using runtime::Tensor;

namespace {

constexpr int64_t kFeatures = 64;

std::vector<float> shiftAndDouble(int64_t features) {
  std::vector<float> matrix(size_t(features * features), 0.0f);
  for (int64_t f = 0; f < features; ++f)
    matrix[size_t(f * features + (f + 1) % features)] = 2;
  return matrix;
}

/// The unit of one device: slot `in` times the matrix to slot `out`.
UnitSpec makeUnit(PlanSpec &plan, int device, int in, int out) {
  const int64_t features =
      plan.programs[size_t(device)].slots[size_t(in)].shape[1];
  int weight =
      plan.addWeight(device, {features, features}, shiftAndDouble(features));
  InstructionSpec dot;
  dot.label = "/layer" + std::to_string(device) + "/MatMul";
  dot.views = {plan.view(device, in), plan.view(device, weight),
               plan.view(device, out)};
  UnitSpec unit;
  unit.name = "F" + std::to_string(device);
  unit.stage = device;
  unit.instructions = {dot};
  return unit;
}

PlanSpec chain(int devices, int microBatches, int64_t samples,
               int64_t features) {
  const Shape shape = {samples, features};
  PlanSpec plan;
  plan.micro_batches = microBatches;
  plan.inputs = {{"x", DType::f32, shape, 0}};
  plan.outputs = {{"layers/y:0", DType::f32, shape, 0}};
  for (int d = 0; d + 1 < devices; ++d)
    plan.channels.push_back({"/layer" + std::to_string(d) + "/MatMul_output", d,
                             d + 1, product(shape) * 4});
  for (int d = 0; d < devices; ++d) {
    plan.addDevice();
    const int in = plan.addFrameSlot(d, shape, microBatches);
    const int out = plan.addFrameSlot(d, shape, microBatches);
    ProgramSpec &program = plan.programs[size_t(d)];
    program.units = {makeUnit(plan, d, in, out)};
    for (int m = 0; m < microBatches; ++m) {
      if (d == 0)
        program.actions.push_back({ActionKind::load_input, m, 0, in});
      else
        program.actions.push_back({ActionKind::recv, m, d - 1, in});
      program.actions.push_back({ActionKind::run, m, 0});
      if (d + 1 == devices)
        program.actions.push_back({ActionKind::store_output, m, 0, out});
      else
        program.actions.push_back({ActionKind::send, m, d, out});
    }
    for (int m = 0; m < microBatches && d + 1 < devices; ++m)
      program.actions.push_back({ActionKind::wait, m, d});
  }
  return plan;
}

Tensor makeTensor(int64_t samples, int64_t features,
                  float (*value)(int64_t, int64_t)) {
  Tensor tensor = *Tensor::allocate(DType::f32, {samples, features});
  auto *data = reinterpret_cast<float *>(tensor.mutableData());
  for (int64_t n = 0; n < samples; ++n)
    for (int64_t f = 0; f < features; ++f)
      data[n * features + f] = value(n, f);
  return tensor;
}

float inputValue(int64_t n, int64_t f) { return float(n * 100 + f) / 8 - 20; }

/// What `devices` devices make of the input.
Tensor expected(int devices, int64_t samples) {
  Tensor tensor = makeTensor(samples, kFeatures, inputValue);
  auto *data = reinterpret_cast<float *>(tensor.mutableData());
  for (int64_t n = 0; n < samples; ++n)
    for (int64_t f = 0; f < kFeatures; ++f)
      data[n * kFeatures + (f + devices) % kFeatures] =
          float(1 << devices) * inputValue(n, f);
  return tensor;
}

bool check(const Status &status) {
  if (!status.ok())
    std::fprintf(stderr, "make-artifacts: %s\n", status.message().c_str());
  return status.ok();
}

bool writeNpy(const std::string &path, const Tensor &tensor) {
  auto file = runtime::PendingFile::create(path);
  return check(file.status()) &&
         check((*file)->write(runtime::npyHeader(tensor))) &&
         check((*file)->write({tensor.data(), size_t(tensor.bytes())})) &&
         check((*file)->commit());
}

bool writeSet(const std::string &folder, const Tensor &input,
              const Tensor &output) {
  std::filesystem::create_directories(folder);
  return check(runtime::testing::writeTensorProto(folder + "/input_0.pb",
                                                  {"x", input})) &&
         check(runtime::testing::writeTensorProto(folder + "/output_0.pb",
                                                  {"layers/y:0", output}));
}

bool makeAll(const std::string &folder) {
  std::filesystem::create_directories(folder);
  const std::string at = folder + "/";
  writeArtifact(at + "one.partita", chain(1, 3, 4, kFeatures));
  writeArtifact(at + "two.partita", chain(2, 3, 4, kFeatures));
  writeArtifact(at + "four.partita", chain(4, 3, 4, kFeatures));
  PlanSpec withKernel = chain(1, 3, 4, kFeatures);
  withKernel.kernels = {"kernel"};
  // The bytes are never looked at below the level they are for.
  writeArtifact(at + "v4.partita", withKernel,
                {{abi::CpuLevel::x86_64_v4, {'c', 'o', 'd', 'e'}}});
  writeArtifact(at + "slow.partita", chain(2, 4, 64, 512));
  writeArtifact(at + "slow4.partita", chain(4, 4, 64, 512));
  const Tensor x = makeTensor(10, kFeatures, inputValue);
  Tensor wide = *Tensor::allocate(DType::f64, {10, kFeatures});
  std::memset(wide.mutableData(), 0, size_t(wide.bytes()));
  Tensor wrong = expected(1, 10);
  reinterpret_cast<float *>(wrong.mutableData())[3 * kFeatures + 5] += 1;
  return writeNpy(at + "x.npy", x) &&
         writeNpy(at + "more.npy", makeTensor(29, kFeatures, inputValue)) &&
         writeNpy(at + "double.npy", wide) &&
         writeNpy(at + "narrow.npy",
                  makeTensor(10, kFeatures - 1, inputValue)) &&
         writeSet(at + "data1", x, expected(1, 10)) &&
         writeSet(at + "data2", x, expected(2, 10)) &&
         writeSet(at + "data4", x, expected(4, 10)) &&
         writeSet(at + "wrong", x, wrong) &&
         writeSet(at + "sets/test_data_set_0", x, expected(1, 10)) &&
         writeSet(at + "sets/test_data_set_1",
                  makeTensor(29, kFeatures, inputValue), expected(1, 29));
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make-artifacts FOLDER\n");
    return 1;
  }
  return makeAll(argv[1]) ? 0 : 1;
}
