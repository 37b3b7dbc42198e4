//===- Reordering.h - A call with an operand in another order ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution, or a derivative of one, one of whose operands comes in another
// order than the library's fast code wants: it is brought into that order, in
// the scratch, before each run.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_REORDERING_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_REORDERING_H

#include "runtime/device/cpu/onednn/PrimitiveTask.h"

namespace partita::runtime {

/// Bytes of packed weights, or of an image, in the scratch.
size_t packedBytes(const dnnl_memory_desc_t &desc);

/// Brings what lies at `from_data` into the order `to`, at `to_data`. The
/// addresses are its arguments 0 and 1; null: set later.
Expected<std::unique_ptr<PrimitiveTask>>
makeReorder(OnednnContext &context, const dnnl_memory_desc_t &from,
            float *from_data, const dnnl_memory_desc_t &to, float *to_data);

/// `task` with an operand at `data`, in the order `from`, brought into the
/// order `to` before. `operand`: where the task keeps its address.
Expected<std::unique_ptr<Task>>
reorderBefore(OnednnContext &context, const dnnl_memory_desc_t &from,
              float *data, const dnnl_memory_desc_t &to,
              std::unique_ptr<Task> task, AddressPlace operand);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_REORDERING_H
