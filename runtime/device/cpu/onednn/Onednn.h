//===- Onednn.h - oneDNN's handles, owned -----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_ONEDNN_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_ONEDNN_H

#include "runtime/base/Arena.h"
#include "runtime/base/Status.h"
#include "runtime/device/cpu/onednn/Operand.h"

#include <functional>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.h>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace partita::runtime {

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

/// Whether the name that the library gives an implementation begins so.
bool isNamed(const OwnedPrimitiveDesc &desc, std::string_view prefix);
/// Whether the library would use its reference code.
bool isReference(const OwnedPrimitiveDesc &desc);

/// "word" for a status of the library.
const char *onednnText(dnnl_status_t status);

/// The library's name of f32 or of an integer of 8 or 32 bits.
dnnl_data_type_t onednnType(abi::DType type);

/// Elements with these extents and strides (elements).
dnnl_memory_desc_t stridedDesc(const std::vector<int64_t> &dims,
                               const std::vector<int64_t> &strides,
                               abi::DType type = abi::DType::f32);
/// The same extents in the layout that the library likes best.
dnnl_memory_desc_t anyDesc(const std::vector<int64_t> &dims,
                           abi::DType type = abi::DType::f32);
/// An operand that is broadcast: extent 1 where its stride is 0.
dnnl_memory_desc_t broadcastDesc(const Operand &operand);

class ThreadTeam;

/// Constants in an order of the library's own, by where their bytes lie and by
/// the name of the order.
using PackedWeights = std::map<std::pair<const void *, std::string>, Arena>;

/// Engine and stream of a device, and its packed weights.
class OnednnContext {
public:
  /// What the plan gives the library.
  struct Room {
    int64_t packed = 0;    ///< bytes for constants in an order of its own
    int64_t workspace = 0; ///< bytes of scratch on each core
    int64_t largest = 0;   ///< of that: what one call has that others do not
  };

  /// Must run on the device's thread, after its team was made. `packs`: where
  /// packed weights are found, and put; they outlive the context.
  static Expected<std::unique_ptr<OnednnContext>> create(const Room &room,
                                                         PackedWeights &packs);

  /// The first of the library's implementations of `op` (a pointer to its
  /// descriptor) whose scratch, for as many threads as this thread has now, is
  /// within the plan's room.
  /// `getRoom`, if given, says how much an implementation takes of that room
  /// besides its scratch, or -1 if it is not wanted.
  dnnl_status_t choose(const_dnnl_op_desc_t op, const OwnedAttr &attr,
                       OwnedPrimitiveDesc &desc,
                       const std::function<int64_t(const OwnedPrimitiveDesc &)>
                           &getRoom = nullptr);
  /// The name of what `choose` has chosen last.
  const std::string &chosen() const { return chosen_name; }
  /// From now on `choose` takes an implementation of this name, where there is
  /// one; empty: no longer.
  void prefer(const std::string &name) { preferred = name; }
  /// Bytes of scratch that the call may take, on all of the cores this thread
  /// has now.
  int64_t scratchRoom() const;
  /// Whether the last `choose` failed for want of room only.
  bool lacksRoom() const { return refused > 0; }
  /// Why `choose` or another call of the library failed.
  std::string reason(dnnl_status_t status) const;

  dnnl_engine_t engine() const { return theEngine.get(); }
  dnnl_stream_t stream() const { return theStream.get(); }

  /// Begins a call that may have so many bytes of packed copies, and of scratch
  /// on each core beyond what every call has, whatever room the plan has for
  /// others: what a call computes with must not depend on which calls share its
  /// device.
  void beginCall(int64_t packed_room, int64_t workspace_room);

  /// The operand's constant bytes in layout `wanted`: its own if they are so
  /// already, else a packed copy, made once for all calls that want the same.
  /// Fails if the call has no room for it: then use the bytes as they lie.
  Expected<float *> packed(const Operand &operand,
                           const dnnl_memory_desc_t &plain,
                           const dnnl_memory_desc_t &wanted);
  /// The same for an order that `make` writes, of so many bytes; `key` names
  /// it.
  Expected<float *> packedBy(const Operand &operand, const std::string &key,
                             size_t bytes,
                             const std::function<Status(float *)> &make);
  /// What calls have taken so far, to give back what a try took that is not
  /// used: nothing of it may be alive any more.
  struct Taken {
    size_t packs = 0;
    int64_t room = 0;
    std::set<std::pair<const void *, std::string>> of_call;
  };
  Taken taken() const { return {pack_order.size(), call_room, call_packs}; }
  void giveBack(const Taken &before);
  /// Of those that this context has put there.
  size_t packedBytes() const { return packedTotal; }
  /// Lets calls that are prepared from now on keep NaN where the library's code
  /// would drop it (NanKeeping.h), by loops on this team; null: does not.
  void keepNan(const ThreadTeam *team) { nan_team = team; }
  /// Who runs loops of our own in the place of what the library has no code
  /// for; null (where calls are only measured): nobody.
  void useTeam(const ThreadTeam &team) { loop_team = &team; }
  const ThreadTeam *team() const { return loop_team; }
  const ThreadTeam *nanTeam() const { return nan_team; }
  /// Notes that a call reads a constant operand as it lies.
  void readInPlace(const Operand &operand) { in_place.insert(operand.data); }
  bool isReadInPlace(const void *data) const { return in_place.count(data); }
  /// Whether a constant operand was reordered, and no call reads it as it lies.
  bool isPacked(const void *data) const {
    auto found = packs.lower_bound({data, std::string()});
    return found != packs.end() && found->first.first == data &&
           !isReadInPlace(data);
  }

  Status memory(const dnnl_memory_desc_t &desc, void *data, OwnedMemory &out);

private:
  explicit OnednnContext(PackedWeights &packs) : packs(packs) {}

  dnnl_status_t chooseNamed(
      const std::string &name, const_dnnl_op_desc_t op, const OwnedAttr &attr,
      OwnedPrimitiveDesc &desc,
      const std::function<int64_t(const OwnedPrimitiveDesc &)> &getRoom);
  PackedWeights &packs;
  OwnedEngine theEngine;
  OwnedStream theStream;
  std::vector<std::pair<const void *, std::string>> pack_order;
  std::set<const void *> in_place;
  Room room;
  size_t packedTotal = 0;
  /// Of the call that is being prepared: what it may still pack, and the packs
  /// that it has, no matter which call made them.
  int64_t call_room = 0, call_workspace = 0;
  std::set<std::pair<const void *, std::string>> call_packs;
  const ThreadTeam *nan_team = nullptr, *loop_team = nullptr;
  int64_t refused = 0; ///< scratch of the implementation that had no room
  std::string chosen_name, preferred;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_ONEDNN_H
