//===- PrimitiveTask.h - A oneDNN primitive with its arguments --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_PRIMITIVETASK_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_PRIMITIVETASK_H

#include "runtime/device/cpu/onednn/LibraryCalls.h"

namespace partita::runtime {

/// One primitive, executed once for each of its argument sets.
class PrimitiveTask final : public Task {
public:
  struct Argument {
    int index; ///< DNNL_ARG_*
    dnnl_memory_desc_t desc;
    float *data;
  };

  /// Makes the primitive of `desc`, which must have user scratchpad mode.
  static Expected<std::unique_ptr<PrimitiveTask>>
  create(OnednnContext &context, const OwnedPrimitiveDesc &desc);

  /// Adds a run of the primitive with these arguments.
  Status add(OnednnContext &context, const std::vector<Argument> &arguments);

  /// The place that holds the address of an argument. `i` counts the arguments
  /// of all `add`s, in their order.
  AddressPlace argument(int i) const { return memories[i].get(); }

  bool run() override;
  size_t scratchBytes() const override { return scratch_bytes; }
  void useScratch(uint8_t *data) override;
  void visitAddresses(const AddressVisitor &visit) override;

private:
  OwnedPrimitive primitive;
  dnnl_stream_t stream = nullptr;
  OwnedMemory scratchpad;
  size_t scratch_bytes = 0;
  std::vector<OwnedMemory> memories;
  std::vector<std::vector<dnnl_exec_arg_t>> sets;
};

/// How an operand is described to the library.
using DescribeOperand = std::function<dnnl_memory_desc_t(const Operand &)>;

/// Makes the attributes that every primitive here has: user scratchpad, and the
/// post-ops of the call, with their operands.
Status makeAttributes(const std::vector<PostOperation> &post_ops,
                      const DescribeOperand &describe, OwnedAttr &attr);

/// Whether this implementation computes these post-ops correctly. Code without
/// vectors makes 0 of the logistic function of NaN, and the reference code -0
/// of the ReLU of negative numbers. Convolutions by a matrix product read wrong
/// elements of a post-op's operand if they have groups.
bool computesRightly(const OwnedPrimitiveDesc &desc,
                     const std::vector<PostOperation> &post_ops);

/// Adds the arguments of the binary post-ops.
void addPostOpArguments(const std::vector<PostOperation> &post_ops,
                        const DescribeOperand &describe,
                        std::vector<PrimitiveTask::Argument> &arguments);

/// Chooses code for a matrix product without bias or post-ops, for the number
/// of threads that this thread has now. `owner` names the task that has the
/// product, for messages: "this attention". `adds`: to what the result holds.
Status chooseProduct(OnednnContext &context, const dnnl_memory_desc_t &left,
                     const dnnl_memory_desc_t &right,
                     const dnnl_memory_desc_t &result, const char *owner,
                     bool adds, OwnedPrimitiveDesc &desc);

/// Makes a call with these post-ops fused. Sets `slow` if the library would
/// compute it with its unoptimised reference code.
using MakeFused = std::function<Expected<std::unique_ptr<Task>>(
    const std::vector<PostOperation> &fused, bool &slow)>;

/// Fuses all post-ops if the library has fast code for that. Otherwise fuses as
/// many of the first ones as it has fast code for, and computes the others in
/// place on `result`. If the context keeps NaN, no post-op that loses NaN is
/// fused.
Expected<std::unique_ptr<Task>>
fusePostOps(OnednnContext &context, const std::vector<PostOperation> &post_ops,
            const Operand &result, const DescribeOperand &describe,
            const MakeFused &make);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_PRIMITIVETASK_H
