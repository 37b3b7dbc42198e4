//===- ThreadProduct.h - A matrix product of one thread ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tasks whose threads compute products by themselves. A product is made
// once, and each thread has arguments of its own for it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_THREADPRODUCT_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_THREADPRODUCT_H

#include "runtime/device/cpu/onednn/PrimitiveTask.h"

namespace partita::runtime {

/// A matrix by its strides in elements.
struct Matrix {
  int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;

  dnnl_memory_desc_t describe() const {
    int64_t inner = columns == 1 ? 1 : column_stride;
    return stridedDesc({rows, columns},
                       {rows == 1 ? columns * inner : row_stride, inner});
  }
};

/// lhs[rows, inner] . rhs[inner, columns], for one thread.
struct ThreadProduct {
  Matrix lhs, rhs, result;
  bool adds = false; ///< to what the result holds
  ProductPrimitive made;

  /// Starting the library takes as long as so many multiplications.
  static constexpr int64_t kSmall = 256;
  bool isSmall() const {
    return lhs.rows * lhs.columns * rhs.columns <= kSmall;
  }

  /// `owner` names the task in messages: "this attention". The caller has set
  /// the number of OpenMP's threads to one.
  Status make(OnednnContext &context, const char *owner) {
    if (isSmall())
      return Status();
    return made.make(context, lhs.describe(), rhs.describe(), result.describe(),
                     owner, adds);
  }

  void runSmall(const float *left, const float *right, float *out) const {
    for (int64_t i = 0; i < result.rows; ++i)
      for (int64_t j = 0; j < result.columns; ++j) {
        float &to = out[i * result.row_stride + j * result.column_stride];
        float sum = adds ? to : 0;
        for (int64_t k = 0; k < lhs.columns; ++k)
          sum += left[i * lhs.row_stride + k * lhs.column_stride] *
                 right[k * rhs.row_stride + j * rhs.column_stride];
        to = sum;
      }
  }
};

/// The arguments of one thread.
struct ThreadArguments {
  OwnedMemory lhs, rhs, result, scratch;
  dnnl_exec_arg_t list[4];

  Status make(OnednnContext &context, const ThreadProduct &product) {
    if (product.isSmall())
      return Status();
    const dnnl_memory_desc_t left = product.lhs.describe(),
                             right = product.rhs.describe(),
                             out = product.result.describe();
    for (auto [desc, memory] :
         {std::pair(&left, &lhs), std::pair(&right, &rhs),
          std::pair(&out, &result), std::pair(&product.made.scratch, &scratch)})
      if (Status status = context.memory(*desc, DNNL_MEMORY_NONE, *memory);
          !status.ok())
        return status;
    list[0] = {DNNL_ARG_SRC, lhs.get()};
    list[1] = {DNNL_ARG_WEIGHTS, rhs.get()};
    list[2] = {DNNL_ARG_DST, result.get()};
    list[3] = {DNNL_ARG_SCRATCHPAD, scratch.get()};
    return Status();
  }

  void useScratch(uint8_t *data) {
    if (scratch.get())
      dnnl_memory_set_data_handle(scratch.get(), data);
  }

  bool run(const ThreadProduct &product, dnnl_stream_t stream, float *left,
           float *right, float *out) {
    if (product.isSmall()) {
      product.runSmall(left, right, out);
      return true;
    }
    dnnl_memory_set_data_handle(lhs.get(), left);
    dnnl_memory_set_data_handle(rhs.get(), right);
    dnnl_memory_set_data_handle(result.get(), out);
    return dnnl_primitive_execute(product.made.primitive.get(), stream,
                                  product.made.scratch_bytes ? 4 : 3,
                                  list) == dnnl_success;
  }
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_THREADPRODUCT_H
