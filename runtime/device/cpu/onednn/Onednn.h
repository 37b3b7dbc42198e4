//===- Onednn.h - Handles and operands of oneDNN ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_ONEDNN_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_ONEDNN_H

#include "runtime/abi/plan_generated.h"
#include "runtime/base/Arena.h"
#include "runtime/base/Elements.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.h>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace partita::runtime {

/// A view with its address. A stride of 0 on an axis longer than 1 broadcasts.
struct Operand {
  float *data = nullptr; ///< or elements of another type
  abi::DType type = abi::DType::f32;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides; ///< elements
  bool constant = false;        ///< the same bytes in every step
  bool mapped = false;          ///< lies in a mapped weight file

  /// Moves the begin by this many elements.
  void advance(int64_t elements) {
    data = reinterpret_cast<float *>(reinterpret_cast<uint8_t *>(data) +
                                     elements * elementBytes(type));
  }
  int rank() const { return static_cast<int>(dims.size()); }
  /// Gives axes of extent 1 the extents of `shape`, with stride 0.
  void broadcastTo(const std::vector<int64_t> &shape) {
    for (int i = 0; i < rank(); ++i)
      if (dims[i] == 1 && shape[i] != 1) {
        dims[i] = shape[i];
        strides[i] = 0;
      }
  }
  /// Elements from the begin to a place among those that the axes [first, last)
  /// of `shape` have, which are counted along the last axis first.
  int64_t offsetOf(const std::vector<int64_t> &shape, int first, int last,
                   int64_t place) const {
    int64_t offset = 0;
    for (int axis = last - 1; axis >= first; --axis) {
      offset += place % shape[axis] * strides[axis];
      place /= shape[axis];
    }
    return offset;
  }
};

/// A handle of the library, destroyed with its owner.
template <typename Handle, dnnl_status_t (*destroy)(Handle)> class Owned {
public:
  Owned() = default;
  Owned(Owned &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)) {}
  Owned &operator=(Owned &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Owned() {
    if (handle)
      destroy(handle);
  }
  Handle get() const { return handle; }
  Handle *out() { return &handle; }

private:
  Handle handle = nullptr;
};

using OwnedEngine = Owned<dnnl_engine_t, dnnl_engine_destroy>;
using OwnedStream = Owned<dnnl_stream_t, dnnl_stream_destroy>;
using OwnedMemory = Owned<dnnl_memory_t, dnnl_memory_destroy>;
using OwnedPrimitive = Owned<dnnl_primitive_t, dnnl_primitive_destroy>;
using OwnedPrimitiveDesc =
    Owned<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using OwnedAttr = Owned<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;
using OwnedPostOps = Owned<dnnl_post_ops_t, dnnl_post_ops_destroy>;

/// Whether the library's name for the implementation begins with `prefix`.
bool isNamed(const OwnedPrimitiveDesc &desc, std::string_view prefix);
/// Whether the library would use its reference code.
bool isReference(const OwnedPrimitiveDesc &desc);

/// What an implementation says of one of its arguments; of no bytes, if it has
/// no such argument.
dnnl_memory_desc_t queryDesc(const OwnedPrimitiveDesc &desc, dnnl_query_t what);
/// The bytes of its scratch.
size_t scratchBytes(const OwnedPrimitiveDesc &desc);

/// A text for a status of the library, e.g. "out of memory".
const char *onednnText(dnnl_status_t status);

/// `dnnl_primitive_create`, where there is memory for the code that the library
/// writes; it does not look whether it got any. Otherwise `dnnl_out_of_memory`.
dnnl_status_t createPrimitive(OwnedPrimitive &primitive,
                              const OwnedPrimitiveDesc &desc);

/// The library's type for f32 or bf16, or for an integer of 8 or 32 bits.
dnnl_data_type_t onednnType(abi::DType type);

/// The description of a tensor with these extents and strides (elements).
dnnl_memory_desc_t stridedDesc(const std::vector<int64_t> &dims,
                               const std::vector<int64_t> &strides,
                               abi::DType type = abi::DType::f32);
/// The same for a tensor whose layout the library may choose.
dnnl_memory_desc_t anyDesc(const std::vector<int64_t> &dims,
                           abi::DType type = abi::DType::f32);
/// The description of an operand that is broadcast. It has extent 1 wherever
/// the operand's stride is 0.
dnnl_memory_desc_t broadcastDesc(const Operand &operand);

class ThreadTeam;

/// Constants in an order of the library's own. The key is the address of the
/// plain bytes and the name of the order.
using PackedWeights = std::map<std::pair<const void *, std::string>, Arena>;

/// The engine and stream of a device, and its packed weights.
class OnednnContext {
public:
  /// The memory that the plan gives the library.
  struct Room {
    int64_t packed = 0;    ///< bytes for constants in the library's own order
    int64_t workspace = 0; ///< bytes of scratch on each core
    int64_t largest = 0;   ///< the part of `workspace` that not all calls have
  };

  /// Must run on the device's thread, after its team was made. Packed weights
  /// are looked up in `packs` and added to it. `packs` must outlive the
  /// context.
  static Expected<std::unique_ptr<OnednnContext>> create(const Room &room,
                                                         PackedWeights &packs);

  /// Chooses the first of the library's implementations of `op` (a pointer to
  /// its descriptor) whose scratch fits into the plan's room. The scratch is
  /// counted for as many threads as this thread has now. `getRoom`, if given,
  /// returns the bytes that an implementation takes of that room besides its
  /// scratch, or -1 if the caller does not want the implementation. `forward`:
  /// of what `op` is a derivative of.
  dnnl_status_t choose(const_dnnl_op_desc_t op, const OwnedAttr &attr,
                       OwnedPrimitiveDesc &desc,
                       const std::function<int64_t(const OwnedPrimitiveDesc &)>
                           &getRoom = nullptr,
                       const_dnnl_primitive_desc_t forward = nullptr);
  /// The name of the implementation that `choose` has chosen last.
  const std::string &chosen() const { return chosen_name; }
  /// From now on `choose` prefers an implementation of this name, if there is
  /// one. An empty name ends this.
  void prefer(const std::string &name) { preferred = name; }
  /// The bytes of scratch that the call may take, on all of the cores that this
  /// thread has now.
  int64_t scratchRoom() const;
  /// Whether the last `choose` failed only because an implementation had no
  /// room.
  bool lacksRoom() const { return refused > 0; }
  /// Fails with `what` and the reason if `choose` or another call of the
  /// library has failed.
  Status check(dnnl_status_t status, const std::string &what) const;

  dnnl_engine_t engine() const { return theEngine.get(); }
  dnnl_stream_t stream() const { return theStream.get(); }

  /// Begins a call. It may have this many bytes of packed copies, and of
  /// scratch on each core beyond what every call has. The room that the plan
  /// has for other calls does not count: the implementation of a call must not
  /// depend on which calls share its device.
  void beginCall(int64_t packed_room, int64_t workspace_room);

  /// The operand's constant bytes in layout `wanted`. They are the operand's
  /// own bytes if these have that layout already. Otherwise they are a packed
  /// copy, which is made once for all calls that want the same. Fails if the
  /// call has no room for the copy. The caller then uses the bytes in their
  /// plain layout.
  Expected<float *> packed(const Operand &operand,
                           const dnnl_memory_desc_t &plain,
                           const dnnl_memory_desc_t &wanted);
  /// The same for an order that `make` writes, of `bytes` bytes. `key` names
  /// the order.
  Expected<float *> packedBy(const Operand &operand, const std::string &key,
                             size_t bytes,
                             const std::function<Status(float *)> &make);
  /// The memory that calls have taken so far. If a try is not used, giveBack
  /// returns what it took since. Nothing may refer to that memory any more.
  struct Taken {
    size_t packs = 0;
    int64_t room = 0;
    std::set<std::pair<const void *, std::string>> of_call;
  };
  Taken taken() const { return {pack_order.size(), call_room, call_packs}; }
  void giveBack(const Taken &before);
  /// The bytes of packed weights that this context has added.
  size_t packedBytes() const { return packedTotal; }
  /// Calls that are prepared from now on keep NaN where the library's code
  /// would drop it (NanKeeping.h). They do it by loops on this team. Null ends
  /// this.
  void keepNan(const ThreadTeam *team) { nan_team = team; }
  /// Sets the team that runs loops of our own in place of what the library has
  /// no code for. There is none where calls are only measured.
  void useTeam(const ThreadTeam &team) { loop_team = &team; }
  const ThreadTeam *team() const { return loop_team; }
  const ThreadTeam *nanTeam() const { return nan_team; }
  /// Notes that a call reads an operand, if it is constant, in its plain
  /// layout.
  void readInPlace(const Operand &operand) {
    if (operand.constant)
      in_place.insert(operand.data);
  }
  bool isReadInPlace(const void *data) const { return in_place.count(data); }
  /// Whether a constant operand was reordered and no call reads its plain
  /// bytes.
  bool isPacked(const void *data) const {
    auto found = packs.lower_bound({data, std::string()});
    return found != packs.end() && found->first.first == data &&
           !isReadInPlace(data);
  }

  Status memory(const dnnl_memory_desc_t &desc, void *data, OwnedMemory &out);
  /// Makes a stream for a thread that runs primitives by itself.
  Status makeStream(OwnedStream &out) const;

private:
  explicit OnednnContext(PackedWeights &packs) : packs(packs) {}

  dnnl_status_t
  chooseNamed(const std::string &name, const_dnnl_op_desc_t op,
              const OwnedAttr &attr, OwnedPrimitiveDesc &desc,
              const std::function<int64_t(const OwnedPrimitiveDesc &)> &getRoom,
              const_dnnl_primitive_desc_t forward);
  PackedWeights &packs;
  OwnedEngine theEngine;
  OwnedStream theStream;
  std::vector<std::pair<const void *, std::string>> pack_order;
  std::set<const void *> in_place;
  Room room;
  size_t packedTotal = 0;
  /// For the call that is being prepared: the bytes that it may still pack, its
  /// scratch, and the packs that it has, no matter which call made them.
  int64_t call_room = 0, call_workspace = 0;
  std::set<std::pair<const void *, std::string>> call_packs;
  const ThreadTeam *nan_team = nullptr, *loop_team = nullptr;
  int64_t refused = 0; ///< scratch of the implementation that had no room
  std::string chosen_name, preferred;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_ONEDNN_H
