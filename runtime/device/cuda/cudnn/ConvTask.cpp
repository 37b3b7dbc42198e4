//===- ConvTask.cpp - A convolution by cuDNN ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cudnn/ConvTask.h"

#include <algorithm>
#include <tuple>

namespace partita::runtime::cuda::cudnn {

Expected<std::shared_ptr<Library>> openLibrary(const Api *api,
                                               std::shared_ptr<const Gpu> gpu) {
  if (!api) {
    Expected<const Api *> loaded = loadApi();
    if (!loaded)
      return loaded.status();
    api = *loaded;
  }
  auto library = std::make_shared<Library>(*api, std::move(gpu));
  if (Status status = library->create(); !status.ok())
    return status;
  return library;
}

Expected<std::unique_ptr<LibraryTask>>
ConvTask::prepare(std::shared_ptr<Library> library, const rules::Conv &conv,
                  const ConvWishes &wishes, DeviceAddress workspace) {
  std::unique_ptr<ConvTask> task(new ConvTask(std::move(library), workspace));
  const Api &api = task->library->api;
  const Handle handle = task->library->handle();
  auto for_device = [&](Descriptor descriptor, DescriptorType type) {
    if (type == DescriptorType::heuristics)
      return Result::success; // it has the graph's
    return api.setAttribute(descriptor,
                            type == DescriptorType::graph
                                ? Attribute::graph_handle
                                : Attribute::plan_handle,
                            AttributeType::handle, 1, &handle);
  };
  if (Status status = task->plan.make(conv, wishes, for_device); !status.ok())
    return status;
  auto add = [&](TensorId id) {
    task->ids.push_back(static_cast<int64_t>(id));
  };
  add(TensorId::x);
  add(TensorId::weights);
  add(TensorId::result);
  if (conv.addend >= 0)
    add(TensorId::addend);
  if (conv.bias >= 0)
    add(TensorId::bias);
  return std::unique_ptr<LibraryTask>(std::move(task));
}

ConvTask::~ConvTask() {
  for (const auto &[addresses, pack] : packs)
    (void)library->api.descriptorDestroy(pack);
}

ConvTask::Addresses ConvTask::addressesOf(const DeviceAddress *operands) const {
  Addresses addresses = {};
  std::copy_n(operands, ids.size(), addresses.begin());
  return addresses;
}

Descriptor ConvTask::packOf(const DeviceAddress *operands) const {
  const Addresses addresses = addressesOf(operands);
  for (const auto &[known, pack] : packs)
    if (known == addresses)
      return pack;
  return nullptr;
}

Status ConvTask::bind(const DeviceAddress *operands) {
  if (packOf(operands))
    return Status();
  const Api &api = library->api;
  std::array<void *, 5> pointers = {};
  for (size_t i = 0; i < ids.size(); ++i)
    pointers[i] = reinterpret_cast<void *>(operands[i]);
  void *const scratch = reinterpret_cast<void *>(workspace);
  const auto count = static_cast<int64_t>(ids.size());
  Descriptor pack = nullptr;
  Result result = api.descriptorCreate(DescriptorType::variant_pack, &pack);
  if (result != Result::success)
    return api.error(result, "cannot describe operands to the library");
  packs.emplace_back(addressesOf(operands), pack);
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

Status ConvTask::enqueue(const DeviceAddress *operands,
                         StreamHandle stream) const {
  const Api &api = library->api;
  Result result = api.setStream(library->handle(), stream);
  if (result == Result::success)
    result = api.execute(library->handle(), plan.plan(), packOf(operands));
  return result == Result::success
             ? Status()
             : api.error(result, "the convolution failed");
}

} // namespace partita::runtime::cuda::cudnn
