//===- Reordering.cpp - A call with an operand in another order -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/Reordering.h"

#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

namespace partita::runtime {

size_t packedBytes(const dnnl_memory_desc_t &desc) {
  return rules::alignScratch(dnnl_memory_desc_get_size(&desc));
}

Expected<std::unique_ptr<PrimitiveTask>>
makeReorder(OnednnContext &context, const dnnl_memory_desc_t &from,
            float *from_data, const dnnl_memory_desc_t &to, float *to_data) {
  OwnedAttr attr;
  PARTITA_TRY(makeAttributes({}, nullptr, attr));
  OwnedPrimitiveDesc desc;
  PARTITA_TRY(context.check(
      dnnl_reorder_primitive_desc_create(desc.out(), &from, context.engine(),
                                         &to, context.engine(), attr.get()),
      "oneDNN cannot reorder an operand"));
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
  auto sequence = std::make_unique<TaskSequence>();
  sequence->buffers.push_back(
      {packedBytes(to), {reorder->argument(1), operand}});
  sequence->tasks.push_back(std::move(reorder));
  sequence->tasks.push_back(std::move(task));
  return std::unique_ptr<Task>(std::move(sequence));
}

} // namespace partita::runtime
