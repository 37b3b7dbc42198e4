//===- EngineTask.cpp - A call of cuDNN -----------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cudnn/EngineTask.h"

#include <algorithm>
#include <tuple>

namespace partita::runtime::cuda::cudnn {

Expected<std::shared_ptr<Library>> openLibrary(const Api *api,
                                               std::shared_ptr<const Gpu> gpu) {
  if (!api)
    api = PARTITA_TRY(loadApi());
  auto library = std::make_shared<Library>(*api, std::move(gpu));
  PARTITA_TRY(library->create());
  return library;
}

EnginePlan::ForDevice forDeviceOf(const Library &library) {
  return [&library](Descriptor descriptor, DescriptorType type) {
    const Handle handle = library.handle();
    if (type == DescriptorType::heuristics || type == DescriptorType::engine)
      return Result::success; // they have the graph's
    return library.api.setAttribute(descriptor,
                                    type == DescriptorType::graph
                                        ? Attribute::graph_handle
                                        : Attribute::plan_handle,
                                    AttributeType::handle, 1, &handle);
  };
}

EngineTask::~EngineTask() {
  for (const auto &[addresses, pack] : packs)
    (void)library->api.descriptorDestroy(pack);
}

Descriptor EngineTask::packOf(const DeviceAddress *operands) const {
  for (const auto &[known, pack] : packs)
    if (std::equal(known.begin(), known.end(), operands))
      return pack;
  return nullptr;
}

Status EngineTask::bind(const DeviceAddress *operands) {
  if (packOf(operands))
    return Status();
  const Api &api = library->api;
  std::vector<int64_t> ids = plan->ids();
  const Addresses addresses(operands, operands + ids.size());
  std::vector<const void *> pointers;
  for (const DeviceAddress address : addresses)
    pointers.push_back(reinterpret_cast<const void *>(address));
  for (const EnginePlan::Extra &extra : plan->extras()) {
    ids.push_back(extra.id);
    pointers.push_back(
        extra.number ? extra.number
                     : reinterpret_cast<const void *>(workspace + extra.place));
  }
  const void *const scratch =
      reinterpret_cast<const void *>(workspace + plan->enginePlace());
  const auto count = static_cast<int64_t>(ids.size());
  Descriptor pack = nullptr;
  Result result = api.descriptorCreate(DescriptorType::variant_pack, &pack);
  if (result != Result::success)
    return api.error(result, "cannot describe operands to the library");
  packs.emplace_back(addresses, pack);
  for (const auto &[name, type, number, values] :
       {std::tuple(Attribute::pack_ids, AttributeType::int64, count,
                   static_cast<const void *>(ids.data())),
        std::tuple(Attribute::pack_pointers, AttributeType::void_ptr, count,
                   static_cast<const void *>(pointers.data())),
        std::tuple(Attribute::pack_workspace, AttributeType::void_ptr,
                   int64_t(1), static_cast<const void *>(&scratch))})
    if (result == Result::success)
      result = api.setAttribute(pack, name, type, number, values);
  if (result == Result::success)
    result = api.finalize(pack);
  return result == Result::success
             ? Status()
             : api.error(result, "cannot describe operands to the library");
}

Status EngineTask::enqueue(const DeviceAddress *operands,
                           StreamHandle stream) const {
  const Api &api = library->api;
  Result result = api.setStream(library->handle(), stream);
  if (result == Result::success)
    result = api.execute(library->handle(), plan->plan(), packOf(operands));
  return result == Result::success
             ? Status()
             : api.error(result, std::string(what) + " failed");
}

} // namespace partita::runtime::cuda::cudnn
