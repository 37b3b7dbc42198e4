//===- ThreadProduct.h - A matrix product of one thread ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tasks whose threads compute products by themselves. The work is cut into
// parts by shapes, and of experts by what rows chose: results do not depend on
// the number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_THREADPRODUCT_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_THREADPRODUCT_H

#include "runtime/device/cpu/onednn/PrimitiveTask.h"

#include <algorithm>
#include <atomic>

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

/// A dimension in parts, of which the last may be smaller.
struct Parts {
  int64_t extent, part;

  int64_t count() const { return (extent + part - 1) / part; }
  int64_t size(int64_t i) const { return std::min(part, extent - i * part); }
  bool isLast(int64_t i) const { return i == count() - 1; }
};

/// lhs[rows, inner] . rhs[inner, columns], for one thread.
struct ThreadProduct {
  Matrix lhs, rhs, result;
  bool adds = false; ///< to what the result holds
  OwnedPrimitive primitive;
  dnnl_memory_desc_t scratch = {};
  size_t scratch_bytes = 0;

  /// Makes the primitive. `owner`: see `chooseProduct`.
  Status make(OnednnContext &context, const char *owner);

  /// Starting the library takes as long as so many multiplications.
  static constexpr int64_t kSmall = 256;
  bool isSmall() const {
    return lhs.rows * lhs.columns * rhs.columns <= kSmall;
  }
};

/// Parts of a call, which threads carry out. Each thread has scratch of its
/// own, and arguments for all products.
class ThreadProductTask : public CallTask {
public:
  bool run() override;
  size_t scratchBytes() const override { return workers.size() * worker_bytes; }
  void useScratch(uint8_t *data) override;

protected:
  /// What a thread works with.
  class Worker {
  public:
    /// False if the library reports an error.
    bool multiply(size_t product, float *left, float *right, float *out);
    float *scratch() const { return own; }

  private:
    friend class ThreadProductTask;
    struct Arguments {
      OwnedMemory lhs, rhs, result, scratch;
      dnnl_exec_arg_t list[4];
    };
    Status make(OnednnContext &context,
                const std::vector<ThreadProduct> &all_products);

    OwnedStream stream;
    std::vector<Arguments> arguments; ///< by product
    const std::vector<ThreadProduct> *products = nullptr;
    float *own = nullptr;
  };

  ThreadProductTask(ResolvedCall call, const ThreadTeam &team)
      : CallTask(std::move(call)), team(team) {}

  /// Called once. A thread has `own_bytes` of scratch, a multiple of 64,
  /// besides the library's. `owner` names the task in messages: "this
  /// attention".
  Status prepare(OnednnContext &context,
                 std::vector<ThreadProduct> all_products, size_t own_bytes,
                 int64_t part_count, const char *owner);
  /// Carries out a part. False if the library reports an error.
  virtual bool runPart(Worker &worker, int64_t index) = 0;

  const std::vector<ThreadProduct> &allProducts() const { return products; }
  /// The number of parts of the next run.
  void setPartCount(int64_t count) { parts = count; }

private:
  const ThreadTeam &team;
  std::vector<ThreadProduct> products;
  std::vector<std::unique_ptr<Worker>> workers;
  size_t own_bytes = 0, worker_bytes = 0;
  int64_t parts = 0;
  std::atomic<bool> failed = false;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_THREADPRODUCT_H
