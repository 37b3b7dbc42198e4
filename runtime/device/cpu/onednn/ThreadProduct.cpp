//===- ThreadProduct.cpp - A matrix product of one thread -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/ThreadProduct.h"

#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

#include <omp.h>

namespace partita::runtime {

Status ThreadProduct::make(OnednnContext &context, const char *owner) {
  OwnedPrimitiveDesc desc;
  PARTITA_TRY(chooseProduct(context, lhs.describe(), rhs.describe(),
                            result.describe(), owner, adds, desc));
  if (dnnl_status_t status = createPrimitive(primitive, desc))
    return Status::error(std::string("oneDNN does not take the products of ") +
                         owner + ": " + context.reason(status));
  scratch =
      *dnnl_primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  scratch_bytes = dnnl_memory_desc_get_size(&scratch);
  return Status();
}

Status ThreadProductTask::prepare(OnednnContext &context,
                                  std::vector<ThreadProduct> all_products,
                                  size_t bytes, int64_t part_count,
                                  const char *owner) {
  products = std::move(all_products);
  own_bytes = bytes;
  parts = part_count;
  // Each thread runs the primitives by itself.
  omp_set_num_threads(1);
  Status status;
  size_t library = 0;
  for (ThreadProduct &product : products) {
    if (product.isSmall() || !status.ok())
      continue;
    status = product.make(context, owner);
    library = std::max(library, product.scratch_bytes);
  }
  omp_set_num_threads(team.size());
  worker_bytes = rules::alignScratch(own_bytes + library);
  for (int i = 0; i < team.size() && status.ok(); ++i) {
    workers.push_back(std::make_unique<Worker>());
    status = workers.back()->make(context, products);
  }
  return status;
}

Status ThreadProductTask::Worker::make(
    OnednnContext &context, const std::vector<ThreadProduct> &all_products) {
  products = &all_products;
  if (dnnl_stream_create(stream.out(), context.engine(),
                         dnnl_stream_default_flags) != dnnl_success)
    return Status::error("oneDNN makes no stream for a thread");
  arguments = std::vector<Arguments>(all_products.size());
  for (size_t i = 0; i < all_products.size(); ++i) {
    const ThreadProduct &product = all_products[i];
    if (product.isSmall())
      continue;
    auto &[lhs, rhs, result, scratch, list] = arguments[i];
    const dnnl_memory_desc_t left = product.lhs.describe(),
                             right = product.rhs.describe(),
                             out = product.result.describe();
    for (auto [desc, memory] :
         {std::pair(&left, &lhs), std::pair(&right, &rhs),
          std::pair(&out, &result), std::pair(&product.scratch, &scratch)})
      PARTITA_TRY(context.memory(*desc, DNNL_MEMORY_NONE, *memory));
    list[0] = {DNNL_ARG_SRC, lhs.get()};
    list[1] = {DNNL_ARG_WEIGHTS, rhs.get()};
    list[2] = {DNNL_ARG_DST, result.get()};
    list[3] = {DNNL_ARG_SCRATCHPAD, scratch.get()};
  }
  return Status();
}

void ThreadProductTask::useScratch(uint8_t *data) {
  for (const std::unique_ptr<Worker> &worker : workers) {
    worker->own = reinterpret_cast<float *>(data);
    for (Worker::Arguments &arguments : worker->arguments)
      if (arguments.scratch.get())
        dnnl_memory_set_data_handle(arguments.scratch.get(), data + own_bytes);
    data += worker_bytes;
  }
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

bool ThreadProductTask::Worker::multiply(size_t number, float *left,
                                         float *right, float *out) {
  const ThreadProduct &product = (*products)[number];
  if (product.isSmall()) {
    multiplySmall(product, left, right, out);
    return true;
  }
  Arguments &own_arguments = arguments[number];
  dnnl_memory_set_data_handle(own_arguments.lhs.get(), left);
  dnnl_memory_set_data_handle(own_arguments.rhs.get(), right);
  dnnl_memory_set_data_handle(own_arguments.result.get(), out);
  return dnnl_primitive_execute(product.primitive.get(), stream.get(),
                                product.scratch_bytes ? 4 : 3,
                                own_arguments.list) == dnnl_success;
}

bool ThreadProductTask::run() {
  failed.store(false, std::memory_order_relaxed);
  // A single part runs in this thread alone, where the library would use the
  // whole team for a product of its own choice.
  omp_set_num_threads(1);
  team.split(parts, 1, [&](int thread, int64_t begin, int64_t end) {
    FlushDenormals flush;
    for (int64_t i = begin; i < end; ++i)
      if (!runPart(*workers[static_cast<size_t>(thread)], i))
        failed.store(true, std::memory_order_relaxed);
  });
  team.enter();
  return !failed.load(std::memory_order_relaxed);
}

} // namespace partita::runtime
