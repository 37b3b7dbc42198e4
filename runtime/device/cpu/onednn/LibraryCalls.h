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

/// A post-op with the address of its operand.
struct PostOperation {
  abi::PostOpKind kind = abi::PostOpKind::relu;
  float alpha = 0;
  float beta = 0;
  Operand operand; ///< binary only; as long as the result on every axis
};

/// A library call with the addresses of one binding. The plan verifier has
/// checked shapes and attributes.
struct ResolvedCall {
  const abi::LibraryCall *call = nullptr;
  std::vector<Operand> operands;
  std::vector<PostOperation> post_ops;
  bool has_bias = false, has_mask_mul = false, has_mask_add = false;
  Operand bias, mask_mul, mask_add;
  // Of a recurrent layer; the elements of `lengths` are i32.
  std::optional<Operand> lengths, initial, initial_cell, peepholes, hidden_bias;

  Operand &result() { return operands.back(); }
};

/// Resolves the views of `call`; `resolve(view)` gives address and constness.
ResolvedCall
resolveCall(const abi::LibraryCall &call,
            const std::function<Operand(const abi::View &)> &resolve);

/// Of each operand of a call, and of its result.
using Extents = std::vector<std::vector<int64_t>>;

/// Scratch on each core that the plan has for this call beyond what it has for
/// every call; the compiler counts by the same rules. The plan
/// verifier has checked the call.
int64_t workspaceRoom(const abi::LibraryCall &call, const Extents &operands,
                      bool constant_weights);

/// Creates primitives and packs constant weights. `pack` false: operands are
/// used as they lie (the load program, whose operands are used once).
/// Must run on the device's thread. An error for post-ops that the library is
/// not known to compute rightly.
Expected<std::unique_ptr<Task>> prepareCall(ResolvedCall call,
                                            OnednnContext &context,
                                            const ThreadTeam &team, bool pack);

/// Those of one kind or another, each in its own file.
#define PARTITA_CALL(kind, name)                                               \
  Expected<std::unique_ptr<Task>> prepare##name(                               \
      ResolvedCall call, OnednnContext &context, const ThreadTeam &team,       \
      bool pack);
#include "runtime/device/cpu/onednn/rules/Calls.def"
#undef PARTITA_CALL

/// A product lhs[M, K] rhs[K, N] result[M, N], whose right side is constant and
/// whose bias, if any, is a dense vector, as a convolution of M pixels. Fails
/// if the library has no fast code for that.
Expected<std::unique_ptr<Task>> preparePointwise(ResolvedCall call,
                                                 OnednnContext &context);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_LIBRARYCALLS_H
