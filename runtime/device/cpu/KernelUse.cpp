//===- KernelUse.cpp - What kernels were compiled for ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/KernelUse.h"

#include "runtime/abi/kernel.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/base/Elements.h"

namespace partita::runtime {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

/// How a dispatch differs from what its kernel was compiled for, or "".
std::string useError(const abi::Program &program, const abi::Dispatch &dispatch,
                     const int64_t *use) {
  const int64_t extent = use[PARTITA_USE_EXTENT];
  if (extent >= 0 && dispatch.extent() != extent)
    return "with " + number(dispatch.extent()) +
           " iterations, and it was compiled for " + number(extent);
  if (use[PARTITA_USE_OPERANDS] < 0)
    return "";
  if (length(dispatch.operands()) != use[PARTITA_USE_OPERANDS])
    return "with " + number(length(dispatch.operands())) +
           " operands, and it was compiled for " +
           number(use[PARTITA_USE_OPERANDS]);
  if (dispatch.results() != use[PARTITA_USE_RESULTS])
    return "with " + number(dispatch.results()) +
           " results, and it was compiled for " +
           number(use[PARTITA_USE_RESULTS]);
  for (int64_t i = 0; i < length(dispatch.operands()); ++i) {
    const int64_t has =
        program.slots()
            ->Get(static_cast<unsigned>(
                dispatch.operands()->Get(static_cast<unsigned>(i))))
            ->bytes();
    int64_t needed = use[PARTITA_USE_BYTES + i];
    if (extent < 0 &&
        __builtin_mul_overflow(needed, dispatch.extent(), &needed))
      return "with too many iterations: " + number(dispatch.extent());
    if (has < needed)
      return "with " + number(has) + " bytes as operand " + number(i) +
             ", and it was compiled for " + number(needed);
  }
  return "";
}

} // namespace

Status checkKernelUses(const abi::Plan &plan,
                       const std::vector<const int64_t *> &uses) {
  auto check = [&](const abi::Program &program,
                   const auto *instructions) -> Status {
    for (int64_t i = 0; i < length(instructions); ++i) {
      const abi::Instruction &instruction =
          *instructions->Get(static_cast<unsigned>(i));
      const abi::Dispatch *dispatch = instruction.work_as_Dispatch();
      if (!dispatch || !uses[static_cast<size_t>(dispatch->kernel())])
        continue;
      std::string why = useError(program, *dispatch,
                                 uses[static_cast<size_t>(dispatch->kernel())]);
      if (!why.empty())
        return Status::error(
            std::string("its plan does not fit its code: '") +
            text(instruction.label()) + "' starts the kernel '" +
            text(plan.kernels()
                     ->Get(static_cast<unsigned>(dispatch->kernel()))
                     ->name()) +
            "' " + why + ": compile the model again");
    }
    return Status();
  };
  for (const abi::Program *program : *plan.programs()) {
    PARTITA_TRY(check(*program, program->load()));
    for (int64_t u = 0; u < length(program->units()); ++u)
      PARTITA_TRY(check(
          *program,
          program->units()->Get(static_cast<unsigned>(u))->instructions()));
  }
  return Status();
}

} // namespace partita::runtime
