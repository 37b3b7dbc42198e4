//===- Task.h - A prepared piece of work ------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_TASK_H
#define PARTITA_RUNTIME_DEVICE_CPU_TASK_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <oneapi/dnnl/dnnl.h>
#include <vector>

namespace partita::runtime {

/// A place where a task stores an address: its own pointer, to whatever, or a
/// memory object of the library.
class AddressPlace {
public:
  template <typename T> AddressPlace(T **pointer) : pointer(pointer) {}
  AddressPlace(dnnl_memory_t memory) : memory(memory) {}
  AddressPlace(dnnl_memory_t *) = delete; ///< the object is meant

  uint8_t *get() const;
  void set(uint8_t *address) const;

private:
  void *pointer = nullptr;
  dnnl_memory_t memory = nullptr;
};
using AddressVisitor = std::function<void(AddressPlace)>;

/// A prepared instruction, with its pointers, primitives and packed weights. To
/// run it, nothing is looked up, and the runtime allocates nothing.
class Task {
public:
  virtual ~Task() = default;
  /// False if the library reports an error.
  virtual bool run() = 0;
  /// Bytes the task needs while it runs. All tasks of a device share them.
  virtual size_t scratchBytes() const { return 0; }
  /// Called once before the first `run`, and again whenever the scratch moves.
  virtual void useScratch(uint8_t *) {}
  /// Visits all places with the address of an operand or result, so that it can
  /// be moved. The places live as long as the task.
  virtual void visitAddresses(const AddressVisitor &visit) = 0;
};

/// Runs several tasks in order.
class TaskSequence final : public Task {
public:
  /// Bytes of the scratch, before that of the tasks, in which these hand on
  /// what they make.
  struct Buffer {
    size_t bytes; ///< a multiple of kScratchAlignment
    std::vector<AddressPlace> places;
  };
  std::vector<std::unique_ptr<Task>> tasks;
  std::vector<Buffer> buffers;

  bool run() override {
    return std::all_of(tasks.begin(), tasks.end(),
                       [](auto &task) { return task->run(); });
  }
  size_t scratchBytes() const override {
    size_t most = 0, before = 0;
    for (const auto &task : tasks)
      most = std::max(most, task->scratchBytes());
    for (const Buffer &buffer : buffers)
      before += buffer.bytes;
    return before + most;
  }
  void useScratch(uint8_t *data) override {
    for (const Buffer &buffer : buffers) {
      for (AddressPlace place : buffer.places)
        place.set(data);
      data += buffer.bytes;
    }
    for (auto &task : tasks)
      task->useScratch(data);
  }
  void visitAddresses(const AddressVisitor &visit) override {
    for (auto &task : tasks)
      task->visitAddresses(visit);
  }
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_TASK_H
