//===- DescribeNeeds.cpp - What an artifact for GPUs needs ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Artifact.h"
#include "runtime/base/Programs.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <set>

namespace partita::runtime {

std::vector<std::string> describeCudaNeeds(const Artifact &artifact) {
  const abi::Plan &plan = artifact.plan();
  std::set<abi::CallKind> calls;
  for (int64_t d = 0; d < length(plan.devices()); ++d)
    if (at(plan.devices(), d).kind() == abi::DeviceKind::cuda)
      forEachInstruction(programOf(plan, static_cast<int>(d)),
                         /*with_load=*/true,
                         [&](const abi::Instruction &instruction) {
                           if (const auto *call = instruction.work_as_Call())
                             calls.insert(call->kind());
                         });
  const auto architecture = artifact.ptx().architecture;
  std::vector<std::string> needs = {
      "a GPU of NVIDIA's" +
      (architecture == abi::GpuArchitecture::none
           ? std::string()
           : " of sm_" + std::to_string(static_cast<int>(architecture)) +
                 " or later") +
      ", with a driver of CUDA 12.0 or later"};
  if (calls.count(abi::CallKind::dot))
    needs.push_back("cuBLASLt 12 or 13");
  const bool attention = calls.count(abi::CallKind::attention) != 0;
  if (attention || calls.count(abi::CallKind::conv) ||
      calls.count(abi::CallKind::pool_max) ||
      calls.count(abi::CallKind::pool_avg))
    needs.push_back("cuDNN 9");
  if (attention)
    needs.push_back("NVRTC of the CUDA that cuDNN is for");
  return needs;
}

} // namespace partita::runtime
