//===- ThreadTask.h - Calls whose parts threads carry out -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tasks whose threads run primitives by themselves, matrix products above
// all. The work is cut into parts by shapes, and of experts by what rows chose:
// results do not depend on the number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_THREADTASK_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_THREADTASK_H

#include "runtime/device/cpu/onednn/PrimitiveTask.h"

#include <algorithm>
#include <atomic>
#include <initializer_list>

namespace partita::runtime {

/// A primitive for one thread, and its arguments.
struct ThreadPrimitive {
  struct Argument {
    int index; ///< DNNL_ARG_*
    dnnl_memory_desc_t desc;
  };
  OwnedPrimitive primitive;
  std::vector<Argument> arguments; ///< the library's scratch last, if any
  size_t scratch_bytes = 0;

  /// Makes the primitive of `desc`. `what` stands before the reason if that
  /// fails. `given`: all arguments but the scratch.
  Status make(OnednnContext &context, const OwnedPrimitiveDesc &desc,
              std::vector<Argument> given, const std::string &what);
};

/// What such a primitive works on, in one thread.
class ThreadArguments {
public:
  Status make(OnednnContext &context, const ThreadPrimitive &primitive);
  void setAddress(size_t argument, void *address) const {
    dnnl_memory_set_data_handle(memories[argument].get(), address);
  }
  /// False if the library reports an error.
  bool run(const ThreadPrimitive &primitive, const OwnedStream &stream) const;

private:
  std::vector<OwnedMemory> memories;
  std::vector<dnnl_exec_arg_t> list;
};

/// Parts of a call, which threads carry out. Each thread has scratch of its
/// own, and arguments for all primitives.
class ThreadTask : public CallTask {
public:
  bool run() override;
  size_t scratchBytes() const override { return workers.size() * worker_bytes; }
  void useScratch(uint8_t *data) override;

protected:
  /// What a thread works with.
  class Worker {
  public:
    /// Runs a primitive with its arguments at these addresses. False if the
    /// library reports an error.
    bool run(size_t number, std::initializer_list<float *> addresses);
    float *scratch() const { return own; }

  private:
    friend class ThreadTask;
    OwnedStream stream;
    std::vector<ThreadArguments> arguments; ///< by primitive
    const std::vector<ThreadPrimitive> *primitives = nullptr;
    float *own = nullptr;
  };

  ThreadTask(ResolvedCall call, const ThreadTeam &team)
      : CallTask(std::move(call)), team(team) {}

  /// Called once, with primitives that were made while the thread was
  /// `AloneInTeam`. A thread has `own_bytes` of scratch, a multiple of 64,
  /// besides the library's.
  Status prepare(OnednnContext &context,
                 std::vector<ThreadPrimitive> all_primitives, size_t own_bytes,
                 int64_t part_count);
  /// Carries out a part. False if the library reports an error.
  virtual bool runPart(Worker &worker, int64_t index) = 0;

  /// The number of parts of the next run.
  void setPartCount(int64_t count) { parts = count; }

  const ThreadTeam &team;

private:
  std::vector<ThreadPrimitive> primitives;
  std::vector<std::unique_ptr<Worker>> workers;
  size_t own_bytes = 0, worker_bytes = 0;
  int64_t parts = 0;
  std::atomic<bool> failed = false;
};

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

  /// Starting the library takes as long as so many multiplications.
  static constexpr int64_t kSmall = 256;
  bool isSmall() const {
    return lhs.rows * lhs.columns * rhs.columns <= kSmall;
  }
};

/// A call whose threads compute products.
class ThreadProductTask : public ThreadTask {
protected:
  using ThreadTask::ThreadTask;

  /// See ThreadTask. `owner` names the task in messages: "this attention".
  Status prepare(OnednnContext &context,
                 std::vector<ThreadProduct> all_products, size_t own_bytes,
                 int64_t part_count, const char *owner);
  /// False if the library reports an error.
  bool multiply(Worker &worker, size_t product, float *left, float *right,
                float *out) const;

  std::vector<ThreadProduct> products;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_THREADTASK_H
