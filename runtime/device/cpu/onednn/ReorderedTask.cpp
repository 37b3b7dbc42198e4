//===- ReorderedTask.cpp - A call with an operand in another order --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/ReorderedTask.h"

#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

#include <algorithm>

namespace partita::runtime {
namespace {

class ReorderedTask final : public Task {
public:
  /// `operand`: where the task keeps the address of what is reordered.
  ReorderedTask(std::unique_ptr<PrimitiveTask> reorder,
                std::unique_ptr<Task> task, AddressPlace operand, size_t bytes)
      : reorder(std::move(reorder)), task(std::move(task)), operand(operand),
        bytes(bytes) {}

  bool run() override { return reorder->run() && task->run(); }
  size_t scratchBytes() const override {
    return bytes + std::max(reorder->scratchBytes(), task->scratchBytes());
  }
  void useScratch(uint8_t *data) override {
    reorder->argument(kTo).set(data);
    operand.set(data);
    reorder->useScratch(data + bytes);
    task->useScratch(data + bytes);
  }
  void visitAddresses(const AddressVisitor &visit) override {
    reorder->visitAddresses(visit);
    task->visitAddresses(visit);
  }

private:
  static constexpr int kTo = 1; ///< among the arguments of the reordering
  std::unique_ptr<PrimitiveTask> reorder;
  std::unique_ptr<Task> task;
  AddressPlace operand;
  size_t bytes;
};

} // namespace

size_t packedBytes(const dnnl_memory_desc_t &desc) {
  return rules::alignScratch(dnnl_memory_desc_get_size(&desc));
}

Expected<std::unique_ptr<PrimitiveTask>>
makeReorder(OnednnContext &context, const dnnl_memory_desc_t &from,
            float *from_data, const dnnl_memory_desc_t &to, float *to_data) {
  OwnedAttr attr;
  PARTITA_TRY(makeAttributes({}, nullptr, attr));
  OwnedPrimitiveDesc desc;
  if (dnnl_status_t status = dnnl_reorder_primitive_desc_create(
          desc.out(), &from, context.engine(), &to, context.engine(),
          attr.get());
      status != dnnl_success)
    return Status::error(std::string("oneDNN cannot reorder an operand: ") +
                         onednnText(status));
  auto reorder = PARTITA_TRY(PrimitiveTask::create(context, desc));
  PARTITA_TRY(reorder->add(
      context, {{DNNL_ARG_FROM, from, from_data}, {DNNL_ARG_TO, to, to_data}}));
  return reorder;
}

Expected<std::unique_ptr<Task>>
reorderBefore(OnednnContext &context, const dnnl_memory_desc_t &from,
              float *data, const dnnl_memory_desc_t &to,
              std::unique_ptr<Task> task, AddressPlace operand) {
  auto reorder = PARTITA_TRY(makeReorder(context, from, data, to, nullptr));
  return std::unique_ptr<Task>(std::make_unique<ReorderedTask>(
      std::move(reorder), std::move(task), operand, packedBytes(to)));
}

} // namespace partita::runtime
