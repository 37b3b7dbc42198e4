//===- Onednn.cpp - oneDNN's handles, owned -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/Onednn.h"

#include <omp.h>
#include <sys/mman.h>

namespace partita::runtime {

const char *onednnText(dnnl_status_t status) {
  switch (status) {
  case dnnl_success:
    return "success";
  case dnnl_out_of_memory:
    return "no memory; its code and tables may need 16777216 bytes";
  case dnnl_invalid_arguments:
    return "invalid arguments";
  case dnnl_unimplemented:
    return "no implementation";
  default:
    return "an error of its own";
  }
}

dnnl_status_t createPrimitive(OwnedPrimitive &primitive,
                              const OwnedPrimitiveDesc &desc) {
  // A primitive has up to some dozens of functions of 256 KiB each.
  constexpr size_t kCodeBytes = size_t(16) << 20;
  void *room = ::mmap(nullptr, kCodeBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    return dnnl_out_of_memory;
  ::munmap(room, kCodeBytes);
  return dnnl_primitive_create(primitive.out(), desc.get());
}

dnnl_data_type_t onednnType(abi::DType type) {
  switch (type) {
  case abi::DType::i8:
    return dnnl_s8;
  case abi::DType::u8:
    return dnnl_u8;
  case abi::DType::i32:
    return dnnl_s32;
  case abi::DType::bf16:
    return dnnl_bf16;
  default:
    return dnnl_f32;
  }
}

dnnl_memory_desc_t stridedDesc(const std::vector<int64_t> &dims,
                               const std::vector<int64_t> &strides,
                               abi::DType type) {
  dnnl_memory_desc_t desc = {};
  dnnl_memory_desc_init_by_strides(&desc, static_cast<int>(dims.size()),
                                   dims.data(), onednnType(type),
                                   strides.data());
  return desc;
}

dnnl_memory_desc_t anyDesc(const std::vector<int64_t> &dims, abi::DType type) {
  dnnl_memory_desc_t desc = {};
  dnnl_memory_desc_init_by_tag(&desc, static_cast<int>(dims.size()),
                               dims.data(), onednnType(type),
                               dnnl_format_tag_any);
  return desc;
}

dnnl_memory_desc_t broadcastDesc(const Operand &operand) {
  std::vector<int64_t> dims = operand.dims, strides = operand.strides;
  int64_t dense = 1;
  for (int i = operand.rank() - 1; i >= 0; --i) {
    if (strides[i] == 0)
      dims[i] = 1;
    // The stride of an axis of extent 1 says nothing; the dense one lets the
    // library see a plain layout.
    if (dims[i] == 1)
      strides[i] = dense;
    dense = std::max(dense, strides[i] * dims[i]);
  }
  return stridedDesc(dims, strides, operand.type);
}

Expected<std::unique_ptr<OnednnContext>>
OnednnContext::create(const Room &room, PackedWeights &packs) {
  std::unique_ptr<OnednnContext> context(new OnednnContext(packs));
  context->room = room;
  dnnl_status_t status =
      dnnl_engine_create(context->theEngine.out(), dnnl_cpu, 0);
  if (status == dnnl_success)
    status =
        dnnl_stream_create(context->theStream.out(), context->theEngine.get(),
                           dnnl_stream_default_flags);
  PARTITA_TRY(context->check(status, "oneDNN does not start"));
  return context;
}

dnnl_memory_desc_t queryDesc(const OwnedPrimitiveDesc &desc,
                             dnnl_query_t what) {
  const dnnl_memory_desc_t *found =
      dnnl_primitive_desc_query_md(desc.get(), what, 0);
  return found ? *found : dnnl_memory_desc_t();
}

size_t scratchBytes(const OwnedPrimitiveDesc &desc) {
  const dnnl_memory_desc_t scratch = queryDesc(desc, dnnl_query_scratchpad_md);
  return dnnl_memory_desc_get_size(&scratch);
}

static std::string_view nameOf(const OwnedPrimitiveDesc &desc) {
  const char *name = nullptr;
  return dnnl_primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0,
                                   &name) == dnnl_success &&
                 name
             ? name
             : "";
}

bool isNamed(const OwnedPrimitiveDesc &desc, std::string_view prefix) {
  return nameOf(desc).starts_with(prefix);
}

bool isReference(const OwnedPrimitiveDesc &desc) {
  return isNamed(desc, "ref");
}

int64_t OnednnContext::scratchRoom() const {
  return call_workspace * omp_get_max_threads();
}

dnnl_status_t OnednnContext::choose(
    const_dnnl_op_desc_t op, const OwnedAttr &attr, OwnedPrimitiveDesc &desc,
    const std::function<int64_t(const OwnedPrimitiveDesc &)> &getRoom,
    const_dnnl_primitive_desc_t forward) {
  dnnl_status_t status =
      preferred.empty()
          ? dnnl_unimplemented
          : chooseNamed(preferred, op, attr, desc, getRoom, forward);
  if (status != dnnl_success)
    status = chooseNamed("", op, attr, desc, getRoom, forward);
  if (status == dnnl_success)
    chosen_name = nameOf(desc);
  return status;
}

/// Of those with this name; empty: of all.
dnnl_status_t OnednnContext::chooseNamed(
    const std::string &name, const_dnnl_op_desc_t op, const OwnedAttr &attr,
    OwnedPrimitiveDesc &desc,
    const std::function<int64_t(const OwnedPrimitiveDesc &)> &getRoom,
    const_dnnl_primitive_desc_t forward) {
  using Iterator = Owned<dnnl_primitive_desc_iterator_t,
                         dnnl_primitive_desc_iterator_destroy>;
  Iterator each;
  refused = 0;
  dnnl_status_t status = dnnl_primitive_desc_iterator_create(
      each.out(), op, attr.get(), theEngine.get(), forward);
  const int64_t most = scratchRoom();
  while (status == dnnl_success) {
    OwnedPrimitiveDesc found;
    *found.out() = dnnl_primitive_desc_iterator_fetch(each.get());
    const int64_t more = getRoom ? getRoom(found) : 0;
    if (more < 0 || (!name.empty() && nameOf(found) != name)) {
      status = dnnl_primitive_desc_iterator_next(each.get());
      continue;
    }
    const int64_t bytes = static_cast<int64_t>(scratchBytes(found)) + more;
    // Not its reference code in place of what has no room: it is a hundred
    // times slower.
    if (bytes <= most && !(refused && isReference(found))) {
      desc = std::move(found);
      refused = 0;
      return dnnl_success;
    }
    if (!refused)
      refused = bytes;
    status = dnnl_primitive_desc_iterator_next(each.get());
  }
  return refused ? dnnl_unimplemented : status;
}

Status OnednnContext::check(dnnl_status_t status,
                            const std::string &what) const {
  if (status == dnnl_success)
    return Status();
  if (!refused || status != dnnl_unimplemented)
    return Status::error(what + ": " + onednnText(status));
  const int64_t threads = omp_get_max_threads();
  const int64_t each = (refused + threads - 1) / threads;
  return Status::error(what + ": it needs " + std::to_string(each) +
                       " bytes of scratch on each core, and the plan has " +
                       std::to_string(call_workspace) +
                       "; compile the model again with --workspace " +
                       std::to_string((each >> 20) + 1));
}

Status OnednnContext::memory(const dnnl_memory_desc_t &desc, void *data,
                             OwnedMemory &out) {
  return check(dnnl_memory_create(out.out(), &desc, theEngine.get(), data),
               "oneDNN takes no such memory");
}

Status OnednnContext::makeStream(OwnedStream &out) const {
  return check(
      dnnl_stream_create(out.out(), theEngine.get(), dnnl_stream_default_flags),
      "oneDNN makes no stream for a thread");
}

Expected<float *> OnednnContext::packed(const Operand &operand,
                                        const dnnl_memory_desc_t &plain,
                                        const dnnl_memory_desc_t &wanted) {
  if (dnnl_memory_desc_equal(&plain, &wanted)) {
    readInPlace(operand);
    return operand.data;
  }
  // The source's own layout is part of the key: one address can be read in two
  // ways.
  std::string layouts(reinterpret_cast<const char *>(&plain), sizeof(plain));
  layouts.append(reinterpret_cast<const char *>(&wanted), sizeof(wanted));
  return packedBy(operand, layouts, dnnl_memory_desc_get_size(&wanted),
                  [&](float *data) -> Status {
                    OwnedMemory source, target;
                    PARTITA_TRY(memory(plain, operand.data, source));
                    PARTITA_TRY(memory(wanted, data, target));
                    OwnedPrimitiveDesc desc;
                    OwnedPrimitive reorder;
                    dnnl_status_t status = dnnl_reorder_primitive_desc_create(
                        desc.out(), &plain, theEngine.get(), &wanted,
                        theEngine.get(), nullptr);
                    if (status == dnnl_success)
                      status = createPrimitive(reorder, desc);
                    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source.get()},
                                              {DNNL_ARG_TO, target.get()}};
                    if (status == dnnl_success)
                      status = dnnl_primitive_execute(reorder.get(),
                                                      theStream.get(), 2, args);
                    if (status == dnnl_success)
                      status = dnnl_stream_wait(theStream.get());
                    return check(status, "oneDNN cannot pack these weights");
                  });
}

void OnednnContext::beginCall(int64_t packed_room, int64_t workspace_room) {
  call_room = packed_room;
  call_workspace = room.workspace - room.largest + workspace_room;
  call_packs.clear();
  refused = 0;
}

Expected<float *>
OnednnContext::packedBy(const Operand &operand, const std::string &key,
                        size_t bytes,
                        const std::function<Status(float *)> &make) {
  auto id = std::pair<const void *, std::string>(operand.data, key);
  const Status full =
      Status::error("the plan has no room for these packed weights");
  if (!call_packs.count(id)) {
    if (static_cast<int64_t>(bytes) > call_room)
      return full;
    call_room -= static_cast<int64_t>(bytes);
    call_packs.insert(id);
  }
  auto known = packs.find(id);
  if (known != packs.end())
    return reinterpret_cast<float *>(known->second.data());
  if (static_cast<int64_t>(packedTotal + bytes) > room.packed)
    return full;
  auto arena = PARTITA_TRY(Arena::map(bytes, "packed weights"));
  PARTITA_TRY(make(reinterpret_cast<float *>(arena.data())));
  // At once, or loading would hold all weights twice; a mapped page comes back
  // when another call reads it.
  if (operand.mapped) {
    size_t span = 1;
    for (int i = 0; i < operand.rank(); ++i)
      span += (operand.dims[i] - 1) * operand.strides[i];
    releasePages(operand.data,
                 span * static_cast<size_t>(elementBytes(operand.type)));
  }
  packedTotal += bytes;
  float *data = reinterpret_cast<float *>(arena.data());
  pack_order.push_back(id);
  packs.emplace(std::move(id), std::move(arena));
  return data;
}

void OnednnContext::giveBack(const Taken &before) {
  for (; pack_order.size() > before.packs; pack_order.pop_back()) {
    auto found = packs.find(pack_order.back());
    packedTotal -= found->second.size();
    packs.erase(found);
  }
  call_room = before.room;
  call_packs = before.of_call;
}

} // namespace partita::runtime
