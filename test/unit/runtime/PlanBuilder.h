//===- PlanBuilder.h - Plans and artifacts made by hand ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain structures that mirror plan.fbs, and functions that write them as a
// FlatBuffers plan and as a .partita file. Nothing is checked, so that wrong
// plans can be written too.
//
//   PlanSpec plan;
//   plan.addDevice();
//   int x = plan.addSlot(0, {2, 3});
//   ...
//   writeArtifact(path, plan);
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_RUNTIME_PLANBUILDER_H
#define PARTITA_TEST_UNIT_RUNTIME_PLANBUILDER_H

#include "runtime/abi/Actions.h"
#include "runtime/abi/Calls.h"
#include "runtime/abi/DeviceKinds.h"
#include "runtime/abi/GpuUses.h"
#include "runtime/abi/artifact.h"
#include "runtime/abi/plan_generated.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>
#include <xxhash.h>

namespace partita::test {

using Shape = std::vector<int64_t>;

struct SlotSpec {
  abi::Space space = abi::Space::arena;
  int64_t offset = 0, bytes = 0;
  abi::DType dtype = abi::DType::f32;
  Shape shape;
  int frame = -1;
  abi::Span span = abi::Span::micro_batch;
  int sum = -1, lane = 0;
  std::vector<int> members;
};

struct FrameSpec {
  int64_t bytes = 0;
  std::vector<int64_t> copies;
};

struct ViewSpec {
  int slot = -1; ///< -1: no view
  Shape shape, strides;
  int64_t offset = 0;
  bool has_shape = true; ///< in the file
};

struct PostOpSpec {
  abi::PostOpKind kind = abi::PostOpKind::relu;
  float alpha = 0, beta = 0;
  ViewSpec view;
  int before = -1;
};

/// An instruction. `type` says which kind of work it is, and so which fields it
/// uses.
struct InstructionSpec {
  abi::Work type = abi::Work::Call;
  std::string label = "node";
  // Dispatch
  int kernel = 0, results = 1;
  std::vector<int> operands; ///< Copy, Slice: source, destination
  // Slice
  int64_t rows = 1, part = 1;
  std::vector<int> axes;
  // Dispatch
  int64_t extent = 1, grain = 1;
  // Call
  abi::CallKind call = abi::CallKind::dot;
  std::vector<ViewSpec> views;
  ViewSpec bias, mask_mul, mask_add, zeros, experts;
  Shape strides, dilations, pads_low, pads_high, window;
  int64_t groups = 1;
  bool include_pad = false;
  float scale = 1;
  std::vector<PostOpSpec> post_ops;
  bool winograd = false;
  abi::Combine combine = abi::Combine::replace;
  bool largest = false;
  int bits = 8;
  /// Instead of those of the kind of call.
  std::optional<abi::CallDetails> details;
};

struct UnitSpec {
  std::string name;
  int stage = 0;
  std::vector<InstructionSpec> instructions;
};

using ActionSpec = abi::ProgramAction;

/// The kind of device on which these plans run. The tests of sessions and calls
/// are the conformance suite of every kind of device.
inline abi::DeviceKind testedKind() {
  const char *name = std::getenv("PARTITA_TEST_DEVICE");
  if (!name)
    return abi::DeviceKind::cpu;
  std::optional<abi::DeviceKind> kind = abi::findDeviceKind(name);
  if (!kind) {
    std::fprintf(stderr, "PARTITA_TEST_DEVICE: no kind of device '%s'\n", name);
    std::abort();
  }
  return *kind;
}

struct ProgramSpec {
  int64_t arena_bytes = 0, constant_bytes = 0, parameter_bytes = 0;
  int64_t packed_bytes = 1 << 30, workspace_bytes = 1 << 20;
  std::vector<FrameSpec> frames;
  std::vector<SlotSpec> slots;
  std::vector<UnitSpec> units;
  std::vector<InstructionSpec> load;
  std::vector<ActionSpec> actions;
};

struct DeviceSpec {
  std::string name;
  abi::DeviceKind kind = testedKind();
  int program = 0;
  std::vector<int> coordinate;
};

struct AxisSpec {
  std::string name;
  int size = 1;
};

struct CollectiveSpec {
  int program = 0;
  abi::CollectiveKind kind = abi::CollectiveKind::all_reduce;
  abi::Reduction reduction = abi::Reduction::sum;
  abi::DType dtype = abi::DType::f32;
  int64_t rows = 1, part = 1;
  std::vector<int> axes = {0};
  int root = 0;
};

struct ChannelSpec {
  std::string name;
  int source = 0, target = 1;
  int64_t bytes = 0;
};

struct WeightSpec {
  std::string name;
  abi::DType dtype = abi::DType::f32;
  Shape shape;
  std::string file;
  int64_t offset = 0, bytes = 0;
  uint64_t hash = 0;
};

struct PortSpec {
  std::string name;
  abi::DType dtype = abi::DType::f32;
  Shape shape;
  int batch_axis = 0;
  bool per_step = false;
};

struct StateSpec {
  std::string name;
  abi::StateRole role = abi::StateRole::parameter;
  abi::DType dtype = abi::DType::f32;
  Shape shape;
  int64_t bytes = 0;
  int weight = -1, ring_dim = -1, ring_place = -1;
};

struct CheckSpec {
  std::string op, node, operand, tensor;
  Shape shape, low, high;
  int64_t rows = 1;
};

inline int64_t product(const Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

inline Shape denseStrides(const Shape &shape) {
  Shape strides(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

/// A kernel; with a grid, it has a launch.
struct KernelSpec {
  KernelSpec(const char *name) : name(name) {}
  std::string name;
  std::vector<int> blocks;
  int threads = 0, shared_bytes = 0;
};

struct PlanSpec {
  int micro_batches = 1;
  bool full_micro_batches = false;
  std::vector<PortSpec> inputs, outputs;
  std::vector<ProgramSpec> programs;
  std::vector<DeviceSpec> devices;
  std::vector<AxisSpec> axes;
  std::vector<ChannelSpec> channels;
  std::vector<CollectiveSpec> collectives;
  std::vector<CheckSpec> checks;
  std::vector<WeightSpec> weights;
  std::vector<StateSpec> states;
  std::vector<KernelSpec> kernels;
  std::vector<std::pair<std::string, int64_t>> dimensions;
  std::string mask;
  std::string mixes;
  bool full_steps = false;
  int sequences = 1, step_sequences = 1;
  std::string entry, training;
  std::vector<uint8_t> weight_bytes; ///< the weights section

  /// Adds a program, and a device "cpu:<index>" that executes it. Returns the
  /// program's index.
  int addDevice() {
    devices.emplace_back();
    devices.back().name = "cpu:" + std::to_string(devices.size() - 1);
    devices.back().program = static_cast<int>(programs.size());
    programs.emplace_back();
    return devices.back().program;
  }

  /// Replaces the device of every program by one for each coordinate of these
  /// axes.
  void addAxes(const std::vector<AxisSpec> &added) {
    axes = added;
    std::vector<DeviceSpec> all;
    for (const DeviceSpec &device : devices) {
      std::vector<DeviceSpec> mesh = {device};
      for (const AxisSpec &axis : axes) {
        std::vector<DeviceSpec> more;
        for (const DeviceSpec &each : mesh)
          for (int i = 0; i < axis.size; ++i) {
            more.push_back(each);
            more.back().coordinate.push_back(i);
          }
        mesh = more;
      }
      all.insert(all.end(), mesh.begin(), mesh.end());
    }
    devices = all;
    for (size_t i = 0; i < devices.size(); ++i)
      devices[i].name = "cpu:" + std::to_string(i);
  }

  /// Adds a slot of f32 behind all others of its space.
  int addSlot(int program, const Shape &shape,
              abi::Space space = abi::Space::arena) {
    ProgramSpec &owner = programs[program];
    SlotSpec slot;
    slot.space = space;
    slot.shape = shape;
    slot.bytes = product(shape) * 4;
    int64_t rounded = (slot.bytes + 63) / 64 * 64;
    if (space == abi::Space::arena || space == abi::Space::constant) {
      int64_t &end =
          space == abi::Space::arena ? owner.arena_bytes : owner.constant_bytes;
      slot.offset = end;
      end += rounded;
    }
    owner.slots.push_back(slot);
    return static_cast<int>(owner.slots.size()) - 1;
  }

  /// Adds a slot of f32 that fills a frame of its own. The frame's copies are
  /// at the end of the arena.
  int addFrameSlot(int program, const Shape &shape, int copies) {
    ProgramSpec &owner = programs[program];
    const int slot = addSlot(program, shape, abi::Space::frame);
    owner.slots[slot].frame = static_cast<int>(owner.frames.size());
    FrameSpec frame;
    frame.bytes = (owner.slots[slot].bytes + 63) / 64 * 64;
    for (int copy = 0; copy < copies; ++copy) {
      frame.copies.push_back(owner.arena_bytes);
      owner.arena_bytes += frame.bytes;
    }
    owner.frames.push_back(frame);
    return slot;
  }

  /// Adds a weight to the artifact, and the slot that names it.
  int addWeight(int program, const Shape &shape,
                const std::vector<float> &values) {
    weight_bytes.resize((weight_bytes.size() + 63) / 64 * 64);
    WeightSpec weight;
    weight.name = "w" + std::to_string(weights.size());
    weight.shape = shape;
    weight.offset = static_cast<int64_t>(weight_bytes.size());
    weight.bytes = static_cast<int64_t>(values.size() * 4);
    weight.hash = XXH3_64bits(values.data(), values.size() * 4);
    const auto *data = reinterpret_cast<const uint8_t *>(values.data());
    weight_bytes.insert(weight_bytes.end(), data, data + weight.bytes);
    weights.push_back(weight);
    int slot = addSlot(program, shape, abi::Space::weight);
    programs[program].slots[slot].offset =
        static_cast<int64_t>(weights.size()) - 1;
    return slot;
  }

  /// Adds a state that begins with a weight, or with zeros, and the slot that
  /// names it.
  int addState(int program, const std::string &name, const Shape &shape,
               int weight = -1) {
    StateSpec state;
    state.name = name;
    state.shape = shape;
    state.bytes = product(shape) * 4;
    state.weight = weight;
    states.push_back(state);
    const int slot = addSlot(program, shape, abi::Space::state);
    programs[program].slots[slot].offset =
        static_cast<int64_t>(states.size()) - 1;
    return slot;
  }

  /// The dense row-major view of all of a slot.
  ViewSpec view(int program, int slot) const {
    const Shape &shape = programs[program].slots[slot].shape;
    return {slot, shape, denseStrides(shape), 0};
  }
};

/// Encodes a plan as FlatBuffers.
class PlanEncoder {
public:
  std::vector<uint8_t> encode(const PlanSpec &plan) {
    std::vector<flatbuffers::Offset<abi::Program>> programs;
    for (const ProgramSpec &program : plan.programs)
      programs.push_back(encode(program));
    std::vector<flatbuffers::Offset<abi::Device>> devices;
    for (const DeviceSpec &device : plan.devices)
      devices.push_back(abi::CreateDevice(fbb, fbb.CreateString(device.name),
                                          device.kind, device.program,
                                          fbb.CreateVector(device.coordinate)));
    std::vector<flatbuffers::Offset<abi::Channel>> channels;
    for (const ChannelSpec &channel : plan.channels)
      channels.push_back(abi::CreateChannel(
          fbb, fbb.CreateString(channel.name), channel.source, channel.target,
          channel.bytes, fbb.CreateString("test")));
    std::vector<flatbuffers::Offset<abi::Axis>> axes;
    for (const AxisSpec &axis : plan.axes)
      axes.push_back(
          abi::CreateAxis(fbb, fbb.CreateString(axis.name), axis.size));
    std::vector<flatbuffers::Offset<abi::Collective>> collectives;
    for (const CollectiveSpec &each : plan.collectives)
      collectives.push_back(abi::CreateCollective(
          fbb, fbb.CreateString("v" + std::to_string(collectives.size())),
          each.program, each.kind, each.reduction, each.dtype, each.rows,
          each.part, fbb.CreateVector(each.axes), 0, 0, each.root));
    std::vector<flatbuffers::Offset<abi::Weight>> weights;
    for (const WeightSpec &weight : plan.weights)
      weights.push_back(abi::CreateWeight(
          fbb, fbb.CreateString(weight.name), weight.dtype,
          fbb.CreateVector(weight.shape), fbb.CreateString(weight.file),
          weight.offset, weight.bytes, weight.hash));
    std::vector<flatbuffers::Offset<abi::Kernel>> kernels;
    for (const KernelSpec &kernel : plan.kernels) {
      flatbuffers::Offset<abi::Launch> launch;
      if (!kernel.blocks.empty())
        launch = abi::CreateLaunch(fbb, fbb.CreateVector(kernel.blocks),
                                   kernel.threads, kernel.shared_bytes);
      kernels.push_back(
          abi::CreateKernel(fbb, fbb.CreateString(kernel.name), launch));
    }
    auto inputs = encode(plan.inputs), outputs = encode(plan.outputs);
    std::vector<flatbuffers::Offset<abi::Stage>> stages;
    for (size_t i = 0; i < plan.programs.size(); ++i)
      stages.push_back(abi::CreateStage(
          fbb, fbb.CreateString("S" + std::to_string(i)), static_cast<int>(i)));
    auto model = fbb.CreateString("test"),
         schedule = fbb.CreateString("fill_drain");
    std::vector<flatbuffers::Offset<abi::Dimension>> dimensions;
    for (const auto &[name, size] : plan.dimensions)
      dimensions.push_back(
          abi::CreateDimension(fbb, fbb.CreateString(name), size));
    auto dimension_vector = fbb.CreateVector(dimensions);
    auto mask = fbb.CreateString(plan.mask);
    auto mixes = fbb.CreateString(plan.mixes);
    std::vector<flatbuffers::Offset<abi::Check>> checks;
    for (const CheckSpec &check : plan.checks)
      checks.push_back(abi::CreateCheck(
          fbb, fbb.CreateString(check.op), fbb.CreateString(check.node),
          fbb.CreateString(check.operand), fbb.CreateString(check.tensor),
          fbb.CreateVector(check.shape), fbb.CreateVector(check.low),
          fbb.CreateVector(check.high), check.rows));
    auto check_vector = fbb.CreateVector(checks);
    std::vector<flatbuffers::Offset<abi::State>> states;
    for (const StateSpec &state : plan.states)
      states.push_back(abi::CreateState(
          fbb, fbb.CreateString(state.name), state.role, state.dtype,
          fbb.CreateVector(state.shape), state.bytes, state.weight, 0, -1, 0,
          false, state.ring_dim, state.ring_place));
    auto state_vector = fbb.CreateVector(states);
    auto entry = fbb.CreateString(plan.entry),
         training = fbb.CreateString(plan.training);
    auto stage_vector = fbb.CreateVector(stages);
    auto program_vector = fbb.CreateVector(programs);
    auto device_vector = fbb.CreateVector(devices);
    auto channel_vector = fbb.CreateVector(channels);
    auto weight_vector = fbb.CreateVector(weights);
    auto kernel_vector = fbb.CreateVector(kernels);
    auto collective_vector = fbb.CreateVector(collectives);
    auto axis_vector = fbb.CreateVector(axes);
    fbb.Finish(abi::CreatePlan(
                   fbb, model, schedule, plan.micro_batches, inputs, outputs, 0,
                   stage_vector, program_vector, device_vector, channel_vector,
                   weight_vector, kernel_vector, 0, 0, 0, 0, 0, 0,
                   collective_vector, axis_vector, dimension_vector, mask,
                   plan.full_micro_batches, mixes, check_vector, state_vector,
                   plan.full_steps, entry, training, 0, 0, 0, 0, plan.sequences,
                   plan.step_sequences),
               abi::PlanIdentifier());
    return {fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()};
  }

private:
  flatbuffers::Offset<abi::View> encode(const ViewSpec &view) {
    if (view.slot == -1)
      return 0;
    return abi::CreateView(fbb, view.slot,
                           view.has_shape ? fbb.CreateVector(view.shape) : 0,
                           fbb.CreateVector(view.strides), view.offset);
  }

  flatbuffers::Offset<void> encodeCall(const InstructionSpec &spec) {
    std::vector<flatbuffers::Offset<abi::View>> views;
    for (const ViewSpec &view : spec.views)
      views.push_back(encode(view));
    std::vector<flatbuffers::Offset<abi::PostOp>> posts;
    for (const PostOpSpec &post : spec.post_ops)
      posts.push_back(abi::CreatePostOp(fbb, post.kind, post.alpha, post.beta,
                                        encode(post.view), post.before));
    auto operands = fbb.CreateVector(views);
    auto post_ops = fbb.CreateVector(posts);
    const abi::CallDetails kind =
        spec.details.value_or(abi::detailsOf(spec.call));
    auto details = encodeDetails(spec, kind);
    return abi::CreateCall(fbb, spec.call, operands, kind, details, post_ops)
        .Union();
  }

  flatbuffers::Offset<void> encodeDetails(const InstructionSpec &spec,
                                          abi::CallDetails kind) {
    auto longs = [&](const Shape &values) { return fbb.CreateVector(values); };
    switch (kind) {
    case abi::CallDetails::Conv: {
      auto strides = longs(spec.strides), dilations = longs(spec.dilations),
           low = longs(spec.pads_low), high = longs(spec.pads_high);
      auto bias = encode(spec.bias);
      return abi::CreateConv(fbb, strides, dilations, low, high, spec.groups,
                             spec.winograd, bias)
          .Union();
    }
    case abi::CallDetails::Pool: {
      auto strides = longs(spec.strides), dilations = longs(spec.dilations),
           low = longs(spec.pads_low), high = longs(spec.pads_high),
           window = longs(spec.window);
      return abi::CreatePool(fbb, strides, dilations, low, high, window,
                             spec.include_pad)
          .Union();
    }
    case abi::CallDetails::Attention: {
      auto mul = encode(spec.mask_mul), add = encode(spec.mask_add);
      return abi::CreateAttention(fbb, mul, add, spec.scale).Union();
    }
    case abi::CallDetails::Recurrent:
      return abi::CreateRecurrent(fbb).Union();
    case abi::CallDetails::TopK:
      return abi::CreateTopK(fbb, spec.largest).Union();
    case abi::CallDetails::Combination:
      return abi::CreateCombination(fbb, spec.combine).Union();
    case abi::CallDetails::PackedDot: {
      auto zeros = encode(spec.zeros), experts = encode(spec.experts);
      return abi::CreatePackedDot(fbb, spec.bits, zeros, experts).Union();
    }
    default:
      return 0;
    }
  }

  flatbuffers::Offset<abi::Instruction> encode(const InstructionSpec &spec) {
    flatbuffers::Offset<void> work;
    if (spec.type == abi::Work::Dispatch)
      work =
          abi::CreateDispatch(fbb, spec.kernel, fbb.CreateVector(spec.operands),
                              spec.results, spec.extent, spec.grain)
              .Union();
    else if (spec.type == abi::Work::Copy)
      work = abi::CreateCopy(fbb, spec.operands[0], spec.operands[1]).Union();
    else if (spec.type == abi::Work::Slice)
      work = abi::CreateSlice(fbb, spec.operands[0], spec.operands[1],
                              spec.rows, spec.part, fbb.CreateVector(spec.axes))
                 .Union();
    else
      work = encodeCall(spec);
    return abi::CreateInstruction(fbb, spec.type, work,
                                  fbb.CreateString(spec.label));
  }

  flatbuffers::Offset<
      flatbuffers::Vector<flatbuffers::Offset<abi::Instruction>>>
  encode(const std::vector<InstructionSpec> &specs) {
    std::vector<flatbuffers::Offset<abi::Instruction>> list;
    for (const InstructionSpec &spec : specs)
      list.push_back(encode(spec));
    return fbb.CreateVector(list);
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<abi::Port>>>
  encode(const std::vector<PortSpec> &specs) {
    std::vector<flatbuffers::Offset<abi::Port>> list;
    for (const PortSpec &port : specs)
      list.push_back(
          abi::CreatePort(fbb, fbb.CreateString(port.name), port.dtype,
                          fbb.CreateVector(port.shape), port.batch_axis,
                          static_cast<int>(list.size()), 0, port.per_step));
    return fbb.CreateVector(list);
  }

  flatbuffers::Offset<abi::Program> encode(const ProgramSpec &program) {
    std::vector<flatbuffers::Offset<abi::Frame>> frames;
    for (const FrameSpec &frame : program.frames)
      frames.push_back(
          abi::CreateFrame(fbb, frame.bytes, fbb.CreateVector(frame.copies)));
    std::vector<flatbuffers::Offset<abi::Slot>> slots;
    for (const SlotSpec &slot : program.slots)
      slots.push_back(
          abi::CreateSlot(fbb, slot.space, slot.offset, slot.bytes, slot.dtype,
                          fbb.CreateVector(slot.shape), slot.frame, slot.span,
                          slot.sum, slot.lane, fbb.CreateVector(slot.members)));
    std::vector<flatbuffers::Offset<abi::Unit>> units;
    for (const UnitSpec &unit : program.units) {
      auto instructions = encode(unit.instructions);
      units.push_back(abi::CreateUnit(fbb, fbb.CreateString(unit.name),
                                      unit.stage, instructions));
    }
    std::vector<abi::Action> actions;
    for (const ActionSpec &action : program.actions)
      actions.emplace_back(static_cast<uint8_t>(action.kind),
                           action.micro_batch, action.subject, action.slot);
    auto load = encode(program.load);
    auto frame_vector = fbb.CreateVector(frames);
    auto slot_vector = fbb.CreateVector(slots);
    auto unit_vector = fbb.CreateVector(units);
    auto action_vector = fbb.CreateVectorOfStructs(actions);
    return abi::CreateProgram(fbb, program.arena_bytes, program.constant_bytes,
                              frame_vector, slot_vector, unit_vector, load,
                              action_vector, program.parameter_bytes,
                              program.packed_bytes, program.workspace_bytes);
  }

  flatbuffers::FlatBufferBuilder fbb;
};

inline std::vector<uint8_t> encode(const PlanSpec &plan) {
  return PlanEncoder().encode(plan);
}

/// A section with code: a shared object for one CPU level, or PTX.
struct ObjectSpec {
  abi::CpuLevel level = abi::CpuLevel::x86_64_v3;
  std::vector<uint8_t> bytes;
  abi::GpuArchitecture architecture = abi::GpuArchitecture::none;
  bool fits = true; ///< PTX says that it is for the plan that it comes with
};

/// The PTX section of a text.
inline ObjectSpec ptxSection(const std::string &text,
                             abi::GpuArchitecture architecture) {
  ObjectSpec section{abi::CpuLevel::none, {}, architecture};
  section.bytes.assign(text.c_str(), text.c_str() + text.size() + 1);
  return section;
}

/// PTX that says what the plan asks of it, as the compiler writes it.
inline std::vector<uint8_t> withUses(const std::vector<uint8_t> &ptx,
                                     const std::vector<uint8_t> &plan) {
  flatbuffers::Verifier verifier(plan.data(), plan.size());
  if (ptx.empty() || ptx.back() != 0 || !abi::VerifyPlanBuffer(verifier))
    return ptx;
  const std::string uses = abi::gpuUses(*abi::GetPlan(plan.data()));
  char text[64];
  std::snprintf(
      text, sizeof text, "%s%016llx\n", abi::kGpuUsesMark,
      static_cast<unsigned long long>(XXH3_64bits(uses.data(), uses.size())));
  std::vector<uint8_t> all(ptx.begin(), ptx.end() - 1);
  all.insert(all.end(), text, text + std::strlen(text) + 1);
  return all;
}

/// Recomputes the hashes of table and header after a test changed the table.
inline void rehash(std::vector<uint8_t> &file) {
  abi::FileHeader header;
  std::memcpy(&header, file.data(), sizeof(header));
  header.table_hash =
      XXH3_64bits(file.data() + sizeof(header),
                  header.section_count * sizeof(abi::SectionEntry));
  header.header_hash =
      XXH3_64bits(&header, offsetof(abi::FileHeader, header_hash));
  std::memcpy(file.data(), &header, sizeof(header));
}

/// The bytes of an artifact with several plans, each with its own objects.
inline std::vector<uint8_t>
artifactOf(const std::vector<std::vector<uint8_t>> &plans,
           const std::vector<uint8_t> &weights,
           const std::vector<std::vector<ObjectSpec>> &objects) {
  std::vector<abi::SectionEntry> table;
  std::vector<const std::vector<uint8_t> *> contents;
  std::deque<std::vector<uint8_t>> texts;
  auto add = [&](abi::SectionKind kind, abi::CpuLevel level, size_t plan,
                 const std::vector<uint8_t> &bytes) {
    abi::SectionEntry entry = {};
    entry.plan = static_cast<uint32_t>(plan);
    entry.kind = kind;
    entry.level = level;
    entry.bytes = bytes.size();
    entry.hash = kind == abi::SectionKind::weights
                     ? 0
                     : XXH3_64bits(bytes.data(), bytes.size());
    table.push_back(entry);
    contents.push_back(&bytes);
  };
  for (size_t plan = 0; plan < plans.size(); ++plan) {
    add(abi::SectionKind::plan, abi::CpuLevel::none, plan, plans[plan]);
    for (const ObjectSpec &object : objects[plan]) {
      const bool isPtx = object.architecture != abi::GpuArchitecture::none;
      if (isPtx)
        texts.push_back(object.fits ? withUses(object.bytes, plans[plan])
                                    : object.bytes);
      add(isPtx ? abi::SectionKind::ptx : abi::SectionKind::object,
          object.level, plan, isPtx ? texts.back() : object.bytes);
      table.back().architecture = object.architecture;
    }
  }
  add(abi::SectionKind::weights, abi::CpuLevel::none, 0, weights);

  std::vector<uint8_t> file(sizeof(abi::FileHeader) +
                            table.size() * sizeof(abi::SectionEntry));
  for (size_t i = 0; i < table.size(); ++i) {
    file.resize((file.size() + abi::kSectionAlignment - 1) /
                abi::kSectionAlignment * abi::kSectionAlignment);
    table[i].offset = file.size();
    file.insert(file.end(), contents[i]->begin(), contents[i]->end());
  }
  abi::FileHeader header = {};
  std::memcpy(header.magic, abi::kMagic, sizeof(header.magic));
  header.version = abi::kVersion;
  header.section_count = static_cast<uint32_t>(table.size());
  header.file_bytes = file.size();
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + sizeof(header), table.data(),
              table.size() * sizeof(abi::SectionEntry));
  rehash(file);
  return file;
}

/// The same objects for each.
inline std::vector<uint8_t>
artifactOfPlans(const std::vector<std::vector<uint8_t>> &plans,
                const std::vector<uint8_t> &weights,
                const std::vector<ObjectSpec> &objects) {
  return artifactOf(
      plans, weights,
      std::vector<std::vector<ObjectSpec>>(plans.size(), objects));
}

inline std::vector<uint8_t>
artifactBytes(const std::vector<uint8_t> &plan,
              const std::vector<uint8_t> &weights,
              const std::vector<ObjectSpec> &objects) {
  return artifactOfPlans({plan}, weights, objects);
}

inline void writeFile(const std::string &path,
                      const std::vector<uint8_t> &bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline std::vector<uint8_t> readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The same plan, whose GPUs start kernels that have no launch with a thread
/// for each iteration.
inline PlanSpec withLaunches(PlanSpec plan) {
  auto launch = [&](InstructionSpec &instruction) {
    if (instruction.type != abi::Work::Dispatch ||
        !plan.kernels[instruction.kernel].blocks.empty())
      return;
    int threads = 128;
    while (instruction.extent % threads)
      --threads;
    KernelSpec kernel = plan.kernels[instruction.kernel];
    kernel.blocks = {static_cast<int>(instruction.extent / threads)};
    kernel.threads = threads;
    instruction.kernel = static_cast<int>(plan.kernels.size());
    plan.kernels.push_back(kernel);
  };
  for (const DeviceSpec &device : plan.devices) {
    if (!abi::launchesGrids(device.kind))
      continue;
    ProgramSpec &program = plan.programs[device.program];
    for (InstructionSpec &instruction : program.load)
      launch(instruction);
    for (UnitSpec &unit : program.units)
      for (InstructionSpec &instruction : unit.instructions)
        launch(instruction);
  }
  return plan;
}

/// Writes `plan` with its weights to `path`.
inline void writeArtifact(const std::string &path, const PlanSpec &plan,
                          const std::vector<ObjectSpec> &objects = {}) {
  writeFile(path, artifactBytes(encode(withLaunches(plan)), plan.weight_bytes,
                                objects));
}

/// A path for a temporary file with this name.
inline std::string temporary(const std::string &name) {
  const char *directory = std::getenv("TMPDIR");
  return std::string(directory ? directory : "/tmp") + "/partita-test-" +
         std::to_string(static_cast<long>(::getpid())) + "-" + name;
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_RUNTIME_PLANBUILDER_H
