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
  auto visit = [&](const auto *instructions) {
    for (int64_t i = 0; i < length(instructions); ++i)
      if (const auto *call =
              instructions->Get(static_cast<unsigned>(i))->work_as_Call())
        calls.insert(call->kind());
  };
  for (int64_t d = 0; d < length(plan.devices()); ++d) {
    if (plan.devices()->Get(static_cast<unsigned>(d))->kind() !=
        abi::DeviceKind::cuda)
      continue;
    const abi::Program &program = programOf(plan, static_cast<int>(d));
    visit(program.load());
    for (int64_t i = 0; i < length(program.units()); ++i)
      visit(program.units()->Get(static_cast<unsigned>(i))->instructions());
  }
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
