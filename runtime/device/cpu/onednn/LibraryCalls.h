//===- LibraryCalls.h - Library calls, prepared at load ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_LIBRARYCALLS_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_LIBRARYCALLS_H

#include "runtime/abi/plan_generated.h"
#include "runtime/device/cpu/Task.h"
#include "runtime/device/cpu/ThreadTeam.h"
#include "runtime/device/cpu/onednn/Onednn.h"

#include <functional>
#include <memory>
#include <optional>

namespace partita::runtime {

struct PackedFunctions;
struct PackedRows;

/// A post-op with the address of its operand.
struct PostOperation {
  abi::PostOpKind kind = abi::PostOpKind::relu;
  float alpha = 0;
  float beta = 0;
  Operand operand; ///< binary only; as long as the result on every axis
};

/// A call with the addresses of one binding. The plan verifier has
/// checked its shapes and attributes.
struct ResolvedCall {
  const abi::Call *call = nullptr;
  std::vector<Operand> operands;
  std::vector<PostOperation> post_ops;
  // What not every call has. The elements of `lengths` are i32.
  std::optional<Operand> bias, mask_mul, mask_add, zeros, experts, lengths,
      initial, initial_cell, peepholes, hidden_bias;

  Operand &result() { return operands.back(); }
};

/// Resolves the views of `call`. `resolve(view)` gives the address of a view,
/// and whether it is constant.
ResolvedCall
resolveCall(const abi::Call &call,
            const std::function<Operand(const abi::View &)> &resolve);

/// A call that reads its operands where they lie, without post-ops.
class CallTask : public Task {
public:
  explicit CallTask(ResolvedCall call) : call(std::move(call)) {}
  void visitAddresses(const AddressVisitor &visit) override;

protected:
  ResolvedCall call;
};

/// A task whose `prepare` has been called.
template <typename Made, typename... Arguments>
Expected<std::unique_ptr<Task>> prepared(std::unique_ptr<Made> task,
                                         OnednnContext &context,
                                         Arguments... arguments) {
  PARTITA_TRY(task->prepare(context, arguments...));
  return std::unique_ptr<Task>(std::move(task));
}

/// The bytes of scratch on each core that the plan has for this call beyond
/// what it has for every call. The compiler counts by the same rules. The plan
/// verifier has checked the call.
int64_t workspaceRoom(const abi::Call &call,
                      const std::vector<Operand> &operands);

/// Creates primitives and packs constant weights. Without `pack`, operands stay
/// in their own layout: the load program uses its operands only once. Must run
/// on the device's thread. Fails for post-ops that the library is not known to
/// compute correctly.
Expected<std::unique_ptr<Task>> prepareCall(ResolvedCall call,
                                            OnednnContext &context,
                                            const ThreadTeam &team, bool pack);

/// `prepareCall` for each kind of call, each in its own file.
#define PARTITA_CALL(kind, name)                                               \
  Expected<std::unique_ptr<Task>> prepare##name(                               \
      ResolvedCall call, OnednnContext &context, const ThreadTeam &team,       \
      bool pack);
#include "runtime/device/cpu/onednn/rules/Calls.def"
#undef PARTITA_CALL

/// Gives both sides of a product the batch axes of its result, by strides only.
void broadcastBatch(ResolvedCall &product);

/// Computes a product lhs[M, K] rhs[K, N] result[M, N] as a convolution of M
/// pixels. The right side must be constant, and the bias, if any, a dense
/// vector. Fails if the library has no fast code for that.
Expected<std::unique_ptr<Task>> preparePointwise(ResolvedCall call,
                                                 OnednnContext &context);

/// A convolution of one group with constant weights, by Winograd's method. The
/// library does this only on images in blocks of channels. So the input is
/// reordered into that layout before, and the result out of it after. Fails if
/// the processor has no such code, or if the plan has no room for it.
Expected<std::unique_ptr<Task>>
prepareWinograd(const ResolvedCall &call, const std::vector<int64_t> &pads_high,
                OnednnContext &context);
/// The same, around matrix products of the library. It is for processors on
/// which the library has fast products, but not this method (AVX2). The
/// convolution must have one group, windows of 3x3, stride 1, channels-last
/// images and constant weights. Fails if the convolution has another form, or
/// if the plan has no memory for it.
Expected<std::unique_ptr<Task>> prepareTiledWinograd(const ResolvedCall &call,
                                                     OnednnContext &context,
                                                     const ThreadTeam &team);

/// The rows of a product's weights where they lie now, those of one expert
/// after another, and the code for them. They are packed or, of an expert_dot,
/// floats.
PackedRows packedRows(const ResolvedCall &call);
PackedFunctions packedFunctions(const ResolvedCall &call);

/// Whether this processor has instructions that multiply bf16.
bool hasBrainProducts();
/// lhs[B.., M, K] . rhs[B.., K, N] = result[B.., M, N], all of bf16 and of any
/// strides. Sums are f32.
Expected<std::unique_ptr<Task>> prepareBrainDot(ResolvedCall call,
                                                OnednnContext &context,
                                                const ThreadTeam &team);

/// Whether the call multiplies integers of 8 bits.
bool multipliesIntegers(const ResolvedCall &call);
/// Whether the library's products of such integers are exact on this processor.
bool hasExactIntegers();
/// Exact products of such integers, on any processor.
Expected<std::unique_ptr<Task>> prepareIntegerDot(ResolvedCall call,
                                                  OnednnContext &context,
                                                  const ThreadTeam &team);
Expected<std::unique_ptr<Task>> prepareIntegerConv(ResolvedCall call,
                                                   OnednnContext &context,
                                                   const ThreadTeam &team);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_LIBRARYCALLS_H
