//===- MatmulTask.cpp - A matrix product by cuBLASLt ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cublaslt/MatmulTask.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <sstream>

namespace partita::runtime::cuda::cublaslt {

using rules::Activation;
using rules::Matmul;
using rules::Matrix;

namespace {

/// How many algorithms the library is asked for.
constexpr size_t kChoices = 8;

DataType typeOf(abi::DType type) {
  switch (type) {
  case abi::DType::f16:
    return DataType::f16;
  case abi::DType::bf16:
    return DataType::bf16;
  case abi::DType::i8:
    return DataType::i8;
  case abi::DType::i32:
    return DataType::i32;
  default:
    return DataType::f32; // describeMatmul takes no other
  }
}

Epilogue epilogueOf(const Matmul &matmul) {
  const bool bias = matmul.bias >= 0;
  switch (matmul.activation) {
  case Activation::relu:
    return bias ? Epilogue::relu_bias : Epilogue::relu;
  case Activation::gelu:
    return bias ? Epilogue::gelu_bias : Epilogue::gelu;
  case Activation::none:
    break;
  }
  return bias ? Epilogue::bias : Epilogue::none;
}

void *pointer(DeviceAddress address) {
  return reinterpret_cast<void *>(address);
}

} // namespace

Expected<std::shared_ptr<Library>> openLibrary(const Api *api,
                                               std::shared_ptr<const Gpu> gpu) {
  if (!api) {
    int version = 0;
    PARTITA_TRY(gpu->api.check(gpu->api.driverGetVersion(&version),
                               "cannot read the version of the driver "
                               "for NVIDIA's GPUs"));
    api = PARTITA_TRY(loadApi(version));
  }
  auto library = std::make_shared<Library>(*api, std::move(gpu));
  PARTITA_TRY(library->create());
  return library;
}

MatmulTask::MatmulTask(std::shared_ptr<Library> library, const Matmul &matmul,
                       const Workspace &workspace)
    : library(library), matmul(matmul), workspace(workspace), product(library),
      a(library), b(library), c(library), d(library) {}

Expected<std::unique_ptr<LibraryTask>>
MatmulTask::prepare(std::shared_ptr<Library> library, const Matmul &matmul,
                    const Alignments &alignments, DeviceAddress bias,
                    const Workspace &workspace) {
  std::unique_ptr<MatmulTask> task(
      new MatmulTask(std::move(library), matmul, workspace));
  PARTITA_TRY(task->describe());
  // The choice may depend on it.
  PARTITA_TRY(task->useBias(bias));
  PARTITA_TRY(task->choose(alignments));
  return std::unique_ptr<LibraryTask>(std::move(task));
}

Status MatmulTask::check(Result result) const {
  return result == Result::success
             ? Status()
             : library->api.error(result,
                                  "cannot describe a product to the library");
}

Status MatmulTask::describe(LayoutDescriptor &layout, DataType type,
                            const Matrix &matrix) {
  const Api &api = library->api;
  if (Status status = check(api.layoutCreate(
          layout.place(), type, static_cast<uint64_t>(matrix.rows),
          static_cast<uint64_t>(matrix.columns), matrix.step));
      !status.ok() || matmul.batch == 1)
    return status;
  const auto batch = static_cast<int32_t>(matmul.batch);
  PARTITA_TRY(check(api.layoutSetAttribute(
      layout.get(), LayoutAttribute::batch_count, &batch, sizeof(batch))));
  return check(
      api.layoutSetAttribute(layout.get(), LayoutAttribute::batch_offset,
                             &matrix.batch_step, sizeof(matrix.batch_step)));
}

Status MatmulTask::describe() {
  const Api &api = library->api;
  const DataType type = typeOf(matmul.type),
                 result = typeOf(matmul.result_type);
  const bool integers = type == DataType::i8;
  // Halves are added in f32, and f32 is never rounded to TF32.
  PARTITA_TRY(check(api.productCreate(
      product.place(), integers ? ComputeType::i32 : ComputeType::f32,
      integers ? DataType::i32 : DataType::f32)));
  auto set = [&](ProductAttribute attribute, auto value) {
    return check(api.productSetAttribute(product.get(), attribute, &value,
                                         sizeof(value)));
  };
  auto operation = [](const Matrix &matrix) {
    return matrix.transposed ? Operation::transpose : Operation::none;
  };
  for (Status status :
       {set(ProductAttribute::transpose_a, operation(matmul.a)),
        set(ProductAttribute::transpose_b, operation(matmul.b)),
        set(ProductAttribute::epilogue, epilogueOf(matmul)),
        describe(a, type, matmul.a), describe(b, type, matmul.b),
        describe(d, result, matmul.d),
        matmul.addend >= 0 ? describe(c, result, matmul.c) : Status()})
    PARTITA_TRY(status);
  return Status();
}

Status MatmulTask::useBias(DeviceAddress address) const {
  if (matmul.bias < 0)
    return Status();
  const void *bias = pointer(address);
  return check(library->api.productSetAttribute(
      product.get(), ProductAttribute::bias_pointer, &bias, sizeof(bias)));
}

/// Everything that the choice depends on, besides the GPU and the library.
std::string MatmulTask::problem(const Alignments &alignments) const {
  std::ostringstream text;
  auto add = [&](const char *name, const Matrix &matrix, uint32_t alignment) {
    text << ' ' << name << (matrix.transposed ? "t " : " ") << matrix.rows
         << 'x' << matrix.columns << ' ' << matrix.step << ' '
         << matrix.batch_step << ' ' << alignment;
  };
  text << abi::EnumNameDType(matmul.type) << ' '
       << abi::EnumNameDType(matmul.result_type);
  add("a", matmul.a, alignments.a);
  add("b", matmul.b, alignments.b);
  if (matmul.addend >= 0)
    add("c", matmul.c, alignments.c);
  add("d", matmul.d, alignments.d);
  text << " batch " << matmul.batch << " epilogue "
       << static_cast<uint32_t>(epilogueOf(matmul)) << " workspace "
       << workspace.bytes;
  return text.str();
}

Status MatmulTask::ask(const Alignments &alignments, Choice &choice) {
  const Api &api = library->api;
  Preference preference(library);
  PARTITA_TRY(check(api.preferenceCreate(preference.place())));
  auto set = [&](PreferenceAttribute attribute, auto value) {
    return check(api.preferenceSetAttribute(preference.get(), attribute, &value,
                                            sizeof(value)));
  };
  const uint64_t most = workspace.bytes;
  const uint32_t c_alignment = matmul.addend >= 0 ? alignments.c : alignments.d;
  for (Status status :
       {set(PreferenceAttribute::max_workspace_bytes, most),
        set(PreferenceAttribute::reduction_scheme_mask, kReduceInComputeType),
        set(PreferenceAttribute::min_alignment_a_bytes, alignments.a),
        set(PreferenceAttribute::min_alignment_b_bytes, alignments.b),
        set(PreferenceAttribute::min_alignment_c_bytes, c_alignment),
        set(PreferenceAttribute::min_alignment_d_bytes, alignments.d)})
    PARTITA_TRY(status);
  // The fastest first, by the library's estimate; some may not work.
  std::array<Choice, kChoices> choices;
  int count = 0;
  Result state =
      api.choose(library->handle(), product.get(), a.get(), b.get(),
                 addendLayout(), d.get(), preference.get(),
                 static_cast<int>(choices.size()), choices.data(), &count);
  if (state != Result::success)
    count = 0;
  else
    state = Result::not_supported;
  for (const Choice &each :
       std::span(choices).first(static_cast<size_t>(count)))
    if (each.state == Result::success && each.workspace <= workspace.bytes) {
      choice = each;
      return Status();
    }
  return api.error(state, "the library has no algorithm for the product " +
                              problem(alignments) + " on " +
                              library->gpu->name() +
                              ": compile the model with --no-library-calls");
}

Status MatmulTask::choose(const Alignments &alignments) {
  const std::string name = problem(alignments);
  Choice choice;
  if (const auto known = library->cache.find(name);
      known && known->size() == std::size(algorithm.data)) {
    std::ranges::copy(*known, algorithm.data);
    if (library->api.check(library->handle(), product.get(), a.get(), b.get(),
                           addendLayout(), d.get(), &algorithm,
                           &choice) == Result::success &&
        choice.workspace <= workspace.bytes)
      return Status();
  }
  choice = {};
  PARTITA_TRY(ask(alignments, choice));
  algorithm = choice.algorithm;
  library->cache.add(name,
                     {std::begin(algorithm.data), std::end(algorithm.data)});
  return Status();
}

Status MatmulTask::enqueue(const DeviceAddress *operands,
                           StreamHandle stream) const {
  const Api &api = library->api;
  const DeviceAddress lhs = operands[0], rhs = operands[1],
                      result = operands[2];
  size_t next = 3;
  const DeviceAddress addend = matmul.addend >= 0 ? operands[next++] : result;
  PARTITA_TRY(useBias(matmul.bias >= 0 ? operands[next] : 0));
  const float scale = matmul.alpha, share = matmul.addend >= 0 ? 1 : 0;
  const int32_t one = 1, zero = 0;
  const bool integers = matmul.type == abi::DType::i8;
  const Result multiplied = api.multiply(
      library->handle(), product.get(),
      integers ? static_cast<const void *>(&one) : &scale, pointer(rhs),
      a.get(), pointer(lhs), b.get(),
      integers ? static_cast<const void *>(&zero) : &share, pointer(addend),
      addendLayout(), pointer(result), d.get(), &algorithm,
      pointer(workspace.address), workspace.bytes, stream);
  return multiplied == Result::success
             ? Status()
             : api.error(multiplied, "the matrix product failed");
}

} // namespace partita::runtime::cuda::cublaslt
