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

Expected<std::shared_ptr<Library>>
Library::open(const Api *api, std::shared_ptr<const Gpu> gpu) {
  if (!api) {
    Expected<const Api *> loaded = loadApi();
    if (!loaded)
      return loaded.status();
    api = *loaded;
  }
  std::shared_ptr<Library> library(new Library(*api, std::move(gpu)));
  const Result result = api->create(&library->object);
  if (result == Result::success)
    return library;
  library->object = nullptr;
  return api->error(result,
                    api->name() + " cannot be used on " + library->gpu->name());
}

Library::~Library() {
  if (!object)
    return;
  (void)gpu->use();
  (void)api.destroy(object);
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

Expected<Descriptor> ConvTask::packOf(const DeviceAddress *operands) const {
  Addresses addresses = {};
  std::copy_n(operands, ids.size(), addresses.begin());
  for (const auto &[known, pack] : packs)
    if (known == addresses)
      return pack;
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
  if (result == Result::success)
    return pack;
  return api.error(result, "cannot describe operands to the library");
}

Status ConvTask::enqueue(const DeviceAddress *operands,
                         StreamHandle stream) const {
  const Api &api = library->api;
  const Expected<Descriptor> pack = packOf(operands);
  if (!pack)
    return pack.status();
  Result result = api.setStream(library->handle(), stream);
  if (result == Result::success)
    result = api.execute(library->handle(), plan.plan(), *pack);
  return result == Result::success
             ? Status()
             : api.error(result, "the convolution failed");
}

} // namespace partita::runtime::cuda::cudnn
