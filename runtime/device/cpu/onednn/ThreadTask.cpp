//===- ThreadTask.cpp - Calls whose parts threads carry out ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/ThreadTask.h"

#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

namespace partita::runtime {

Status ThreadPrimitive::make(OnednnContext &context,
                             const OwnedPrimitiveDesc &desc,
                             std::vector<Argument> given,
                             const std::string &what) {
  PARTITA_TRY(context.check(createPrimitive(primitive, desc), what));
  arguments = std::move(given);
  scratch_bytes = scratchBytes(desc);
  if (scratch_bytes)
    arguments.push_back(
        {DNNL_ARG_SCRATCHPAD, queryDesc(desc, dnnl_query_scratchpad_md)});
  return Status();
}

Status ThreadArguments::make(OnednnContext &context,
                             const ThreadPrimitive &primitive) {
  for (const auto &[index, desc] : primitive.arguments) {
    PARTITA_TRY(
        context.memory(desc, DNNL_MEMORY_NONE, memories.emplace_back()));
    list.push_back({index, memories.back().get()});
  }
  return Status();
}

bool ThreadArguments::run(const ThreadPrimitive &primitive,
                          const OwnedStream &stream) const {
  return dnnl_primitive_execute(primitive.primitive.get(), stream.get(),
                                static_cast<int>(list.size()),
                                list.data()) == dnnl_success;
}

Status ThreadTask::prepare(OnednnContext &context,
                           std::vector<ThreadPrimitive> all_primitives,
                           size_t bytes, int64_t part_count) {
  primitives = std::move(all_primitives);
  own_bytes = bytes;
  parts = part_count;
  size_t library = 0;
  for (const ThreadPrimitive &primitive : primitives)
    library = std::max(library, primitive.scratch_bytes);
  worker_bytes = rules::alignScratch(own_bytes + library);
  for (int i = 0; i < team.size(); ++i) {
    Worker &worker = *workers.emplace_back(std::make_unique<Worker>());
    worker.primitives = &primitives;
    PARTITA_TRY(context.makeStream(worker.stream));
    for (const ThreadPrimitive &primitive : primitives)
      PARTITA_TRY(worker.arguments.emplace_back().make(context, primitive));
  }
  return Status();
}

void ThreadTask::useScratch(uint8_t *data) {
  for (const std::unique_ptr<Worker> &worker : workers) {
    worker->own = reinterpret_cast<float *>(data);
    for (size_t i = 0; i < primitives.size(); ++i)
      if (primitives[i].scratch_bytes)
        worker->arguments[i].setAddress(primitives[i].arguments.size() - 1,
                                        data + own_bytes);
    data += worker_bytes;
  }
}

bool ThreadTask::Worker::run(size_t number,
                             std::initializer_list<float *> addresses) {
  size_t argument = 0;
  for (float *address : addresses)
    arguments[number].setAddress(argument++, address);
  return arguments[number].run((*primitives)[number], stream);
}

bool ThreadTask::run() {
  failed.store(false, std::memory_order_relaxed);
  // A single part runs in this thread alone, where the library would use the
  // whole team for a primitive of its own choice.
  const AloneInTeam alone(team);
  team.split(parts, 1, [&](int thread, int64_t begin, int64_t end) {
    FlushDenormals flush;
    for (int64_t i = begin; i < end; ++i)
      if (!runPart(*workers[static_cast<size_t>(thread)], i))
        failed.store(true, std::memory_order_relaxed);
  });
  return !failed.load(std::memory_order_relaxed);
}

Status ThreadProductTask::prepare(OnednnContext &context,
                                  std::vector<ThreadProduct> all_products,
                                  size_t bytes, int64_t part_count,
                                  const char *owner) {
  products = std::move(all_products);
  std::vector<ThreadPrimitive> primitives(products.size());
  for (size_t i = 0; i < products.size(); ++i) {
    const auto &[lhs, rhs, result, adds] = products[i];
    if (products[i].isSmall())
      continue;
    const AloneInTeam alone(team);
    OwnedPrimitiveDesc desc;
    PARTITA_TRY(chooseProduct(context, lhs.describe(), rhs.describe(),
                              result.describe(), owner, adds, desc));
    PARTITA_TRY(primitives[i].make(
        context, desc,
        {{DNNL_ARG_SRC, lhs.describe()},
         {DNNL_ARG_WEIGHTS, rhs.describe()},
         {DNNL_ARG_DST, result.describe()}},
        std::string("oneDNN does not take the products of ") + owner));
  }
  return ThreadTask::prepare(context, std::move(primitives), bytes, part_count);
}

static void multiplySmall(const ThreadProduct &product, const float *left,
                          const float *right, float *out) {
  const Matrix &lhs = product.lhs, &rhs = product.rhs, &result = product.result;
  for (int64_t i = 0; i < result.rows; ++i)
    for (int64_t j = 0; j < result.columns; ++j) {
      float &to = out[i * result.row_stride + j * result.column_stride];
      float sum = product.adds ? to : 0;
      for (int64_t k = 0; k < lhs.columns; ++k)
        sum += left[i * lhs.row_stride + k * lhs.column_stride] *
               right[k * rhs.row_stride + j * rhs.column_stride];
      to = sum;
    }
}

bool ThreadProductTask::multiply(Worker &worker, size_t number, float *left,
                                 float *right, float *out) const {
  if (!products[number].isSmall())
    return worker.run(number, {left, right, out});
  multiplySmall(products[number], left, right, out);
  return true;
}

} // namespace partita::runtime
