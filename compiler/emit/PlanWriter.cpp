//===- PlanWriter.cpp - The plan dialect as FlatBuffers -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/PlanWriter.h"

#include "dialects/nn/NodeScopes.h"
#include "dialects/plan/PlanDialect.h"
#include "runtime/abi/Calls.h"
#include "runtime/abi/DeviceKinds.h"
#include "runtime/abi/plan_generated.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Path.h"

#include <map>
#include <optional>

using namespace mlir;

namespace partita::emit {
namespace {

std::optional<abi::DType> getDType(Type type) {
  using abi::DType;
  // By the logarithm of the width.
  static constexpr DType kSigned[] = {DType::boolean, DType::i2,  DType::i4,
                                      DType::i8,      DType::i16, DType::i32,
                                      DType::i64};
  static constexpr DType kUnsigned[] = {DType::boolean, DType::u2,  DType::u4,
                                        DType::u8,      DType::u16, DType::u32,
                                        DType::u64};
  return llvm::TypeSwitch<Type, std::optional<DType>>(type)
      .Case([](Float32Type) { return DType::f32; })
      .Case([](Float64Type) { return DType::f64; })
      .Case([](Float16Type) { return DType::f16; })
      .Case([](BFloat16Type) { return DType::bf16; })
      .Case([](Float8E4M3FNType) { return DType::f8e4m3fn; })
      .Case([](Float8E4M3FNUZType) { return DType::f8e4m3fnuz; })
      .Case([](Float8E5M2Type) { return DType::f8e5m2; })
      .Case([](Float8E5M2FNUZType) { return DType::f8e5m2fnuz; })
      .Case([](Float8E8M0FNUType) { return DType::f8e8m0; })
      .Case([](Float4E2M1FNType) { return DType::f4e2m1; })
      .Case([](IntegerType integer) -> std::optional<DType> {
        const unsigned width = integer.getWidth();
        if (!llvm::isPowerOf2_32(width) || width > 64)
          return std::nullopt;
        return (integer.isUnsigned() ? kUnsigned
                                     : kSigned)[llvm::Log2_32(width)];
      })
      .Default(std::nullopt);
}

/// The tables have the plan dialect's ops in their order; children are written
/// before the tables that hold them, as FlatBuffers wants it.
class PlanWriter {
public:
  PlanWriter(ModuleOp module, const WeightTable &weights, size_t plan,
             const TrainedModel &trained)
      : module(module), trained(trained), weights(weights),
        weightIndex(weights.indexOf[plan]) {}

  FailureOr<flatbuffers::DetachedBuffer> write() {
    auto models = module.getOps<plan::ModelOp>();
    if (models.empty())
      return module.emitError("has no plan: run --plan-build before");
    plan::ModelOp model = *models.begin();
    for (auto program : module.getOps<plan::ProgramOp>()) {
      if (!program.getArenaBytes() || !program.getConstantBytes())
        return program.emitError(
            "has no places in memory: run --plan-place before");
      programs.try_emplace(program.getSymName(), programs.size());
    }
    for (auto channel : module.getOps<plan::ChannelOp>())
      channels.try_emplace(channel.getSymName(), channels.size());
    for (auto collective : module.getOps<plan::CollectiveOp>())
      collectives.try_emplace(collective.getSymName(), collectives.size());
    findStates();
    // Rows of stages stand in the order of their numbers.
    stageCount = llvm::range_size(module.getOps<plan::StageOp>());

    auto programTables = tables<plan::ProgramOp>(
        [&](plan::ProgramOp program) { return writeProgram(program); });
    auto deviceTables = tables<plan::DeviceOp>(
        [&](plan::DeviceOp device) { return writeDevice(device); });
    auto axisTables = tables<plan::AxisOp>([&](plan::AxisOp axis) {
      return abi::CreateAxis(b, string(axis.getAxisName()),
                             static_cast<int>(axis.getSize()));
    });
    auto inputs = writePorts(plan::PortKind::input);
    auto outputs = writePorts(plan::PortKind::output);
    auto bound = writePorts(plan::PortKind::bound_input);
    auto collections = writeCollections();
    auto checks = writeChecks();
    auto stageTables = writeStages();
    auto channelTables = writeChannels();
    auto collectiveTables = writeCollectives();
    auto weightTables = writeWeights();
    auto stateTables = writeStates();
    std::vector<flatbuffers::Offset<abi::Kernel>> kernelTables;
    for (plan::KernelAttr kernel : usedKernels)
      kernelTables.push_back(writeKernel(kernel));
    if (hasFailed)
      return failure();
    std::vector<flatbuffers::Offset<abi::Dimension>> dimensions;
    if (DictionaryAttr sizes = model.getDimensionsAttr())
      for (NamedAttribute dimension : sizes)
        dimensions.push_back(abi::CreateDimension(
            b, string(dimension.getName().getValue()),
            cast<IntegerAttr>(dimension.getValue()).getInt()));
    const bool trains = model.getTraining().has_value();
    auto plan = abi::CreatePlan(
        b, string(model.getModel()), string(model.getSchedule()),
        model.getMicroBatches(), inputs, outputs, bound, stageTables,
        programTables, deviceTables, channelTables, weightTables,
        b.CreateVector(kernelTables), model.getStepNs(),
        model.getBubble().convertToDouble(), optional(model.getMachine()),
        model.getThreads(), collections, optional(model.getMachineId()),
        collectiveTables, axisTables, b.CreateVector(dimensions),
        optional(model.getMask()), model.getFullMicroBatches(),
        optional(model.getMixes()), checks, stateTables, model.getFullSteps(),
        optional(model.getEntry()), optional(model.getTraining()),
        trains ? string(trained.path) : String(), trains ? trained.bytes : 0,
        trains ? trained.hash : 0, model.getAloneNs(),
        static_cast<int>(model.getSequences()),
        static_cast<int>(model.getStepSequences()));
    abi::FinishPlanBuffer(b, plan);
    return b.Release();
  }

private:
  using String = flatbuffers::Offset<flatbuffers::String>;
  using Shape = flatbuffers::Offset<flatbuffers::Vector<int64_t>>;

  template <typename TableT>
  using Tables =
      flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<TableT>>>;

  /// A table for each op of a kind in the module.
  template <typename OpT, typename Fn,
            typename OffsetT = std::invoke_result_t<Fn, OpT>>
  flatbuffers::Offset<flatbuffers::Vector<OffsetT>> tables(Fn write) {
    std::vector<OffsetT> all;
    for (auto op : module.getOps<OpT>())
      all.push_back(write(op));
    return b.CreateVector(all);
  }
  String string(StringRef text) {
    return b.CreateString(text.data(), text.size());
  }
  String optional(std::optional<StringRef> text) {
    return text ? string(*text) : String();
  }
  flatbuffers::Offset<flatbuffers::Vector<int>>
  axes(ArrayRef<int64_t> numbers) {
    return b.CreateVector(std::vector<int>(numbers.begin(), numbers.end()));
  }
  Shape longs(ArrayRef<int64_t> values) {
    return b.CreateVector(values.data(), values.size());
  }
  abi::DType dtype(Operation *op, RankedTensorType type) {
    std::optional<abi::DType> result = getDType(type.getElementType());
    if (!result) {
      op->emitError() << "no artifact can hold elements of type "
                      << type.getElementType();
      hasFailed = true;
    }
    return result.value_or(abi::DType::f32);
  }

  //===--------------------------------------------------------------------===//
  // Devices
  //===--------------------------------------------------------------------===//

  flatbuffers::Offset<abi::Device> writeDevice(plan::DeviceOp op) {
    abi::DeviceKind kind = abi::DeviceKind::cpu;
    if (std::optional<StringRef> name = op.getKind()) {
      std::optional<abi::DeviceKind> found =
          abi::findDeviceKind(std::string_view(name->data(), name->size()));
      if (!found) {
        op.emitError("is of the kind '") << *name << "', which no runtime has";
        hasFailed = true;
      }
      kind = found.value_or(kind);
    }
    return abi::CreateDevice(
        b, string(op.getDeviceName()), kind, programs.lookup(op.getProgram()),
        axes(op.getCoordinate().value_or(ArrayRef<int64_t>())));
  }

  flatbuffers::Offset<abi::Program> writeProgram(plan::ProgramOp op) {
    slotOf.clear();
    frameOf.clear();
    units.clear();
    std::vector<flatbuffers::Offset<abi::Frame>> frameTables;
    std::vector<flatbuffers::Offset<abi::Slot>> slotTables;
    std::vector<flatbuffers::Offset<abi::Unit>> unitTables;
    std::vector<flatbuffers::Offset<abi::Instruction>> load;
    std::vector<abi::Action> actions;
    for (Operation &part : op.getBody().front()) {
      if (auto frame = dyn_cast<plan::FrameOp>(part)) {
        frameOf[frame.getFrame()] = static_cast<int>(frameTables.size());
        frameTables.push_back(
            abi::CreateFrame(b, frame.getBytes(), longs(frame.getCopies())));
      } else if (auto slot = dyn_cast<plan::SlotOp>(part)) {
        slotOf[slot.getSlot()] = static_cast<int>(slotTables.size());
        slotTables.push_back(writeSlot(slot));
      } else if (auto unit = dyn_cast<plan::UnitOp>(part)) {
        units[FlatSymbolRefAttr::get(unit.getSymNameAttr())] =
            static_cast<int>(unitTables.size());
        unitTables.push_back(writeUnit(unit));
      } else if (auto loads = dyn_cast<plan::LoadOp>(part)) {
        for (Operation &work : loads.getBody().front())
          load.push_back(writeInstruction(work));
      } else {
        actions.push_back(writeAction(cast<plan::ActionOpInterface>(part)));
      }
    }
    flatbuffers::Offset<abi::MemoryParts> memory = 0;
    if (auto parts =
            op->getAttrOfType<DenseI64ArrayAttr>(plan::kMemoryPartsAttr))
      memory = abi::CreateMemoryParts(b, parts[0], parts[1], parts[2], parts[3],
                                      parts[4]);
    return abi::CreateProgram(
        b, *op.getArenaBytes(), *op.getConstantBytes(),
        b.CreateVector(frameTables), b.CreateVector(slotTables),
        b.CreateVector(unitTables), b.CreateVector(load),
        b.CreateVectorOfStructs(actions), op.getParameterBytes().value_or(0),
        op.getPackedBytes().value_or(0), op.getWorkspaceBytes().value_or(0),
        memory);
  }

  flatbuffers::Offset<abi::Slot> writeSlot(plan::SlotOp slot) {
    RankedTensorType type = slot.getSlot().getType().getTensor();
    int64_t offset = slot.getOffset().value_or(0);
    if (slot.getSpace() == plan::Space::state) {
      offset = stateIndex.lookup(*slot.getWeight());
    } else if (slot.getSpace() == plan::Space::weight) {
      offset = weightIndex.lookup(*slot.getWeight());
    } else if (!slot.getOffset()) {
      slot.emitError("has no place in memory: run --plan-place before");
      hasFailed = true;
    }
    std::vector<int32_t> members;
    for (Value member : slot.getMembers())
      members.push_back(slotOf.lookup(member));
    return abi::CreateSlot(
        b, slot.getSpace(), offset, slot.getByteSize(), dtype(slot, type),
        longs(type.getShape()),
        slot.getFrame() ? frameOf.lookup(slot.getFrame()) : -1, slot.getSpan(),
        slot.getSum() ? slotOf.lookup(slot.getSum()) : -1,
        static_cast<int>(slot.getLane().value_or(0)),
        members.empty() ? 0 : b.CreateVector(members), slot.getRenewed());
  }

  flatbuffers::Offset<abi::Unit> writeUnit(plan::UnitOp unit) {
    Block &block = unit.getBody().front();
    std::vector<flatbuffers::Offset<abi::Instruction>> work;
    for (Operation &op : block)
      work.push_back(writeInstruction(op));
    if (unit.getStage() >= stageCount) {
      unit.emitError() << "is of stage " << unit.getStage()
                       << ", but there are only " << stageCount;
      hasFailed = true;
    }
    return abi::CreateUnit(b, string(unit.getSymName()), unit.getStage(),
                           b.CreateVector(work), unit.getDurationNs());
  }

  //===--------------------------------------------------------------------===//
  // Instructions
  //===--------------------------------------------------------------------===//

  flatbuffers::Offset<abi::Instruction> writeInstruction(Operation &op) {
    if (auto dispatch = dyn_cast<plan::DispatchOp>(op)) {
      std::vector<int> operands;
      for (Value slot : dispatch->getOperands())
        operands.push_back(slotOf.lookup(slot));
      plan::KernelAttr kernel = dispatch.getKernel();
      auto work = abi::CreateDispatch(
          b, kernelIndex(kernel), b.CreateVector(operands),
          dispatch.getOutputs().size(), kernel.getExtent(), kernel.getGrain());
      return instruction(op, abi::Work::Dispatch, work.Union(),
                         dispatch.getLabel(), dispatch.getFlops(),
                         dispatch.getBytes(), dispatch.getPredictedNs(),
                         dispatch.getWorkKey(), dispatch.getModelledNs());
    }
    if (auto copy = dyn_cast<plan::CopyOp>(op)) {
      auto work = abi::CreateCopy(b, slotOf.lookup(copy.getSource()),
                                  slotOf.lookup(copy.getDestination()));
      int64_t bytes = copy.getSource().getType().getByteSize();
      return instruction(op, abi::Work::Copy, work.Union(), copy.getLabel(), 0,
                         2 * bytes, copy.getPredictedNs());
    }
    if (auto slice = dyn_cast<plan::SliceOp>(op)) {
      auto work = abi::CreateSlice(b, slotOf.lookup(slice.getSource()),
                                   slotOf.lookup(slice.getDestination()),
                                   slice.getRows(), slice.getPart(),
                                   axes(slice.getAxes()));
      int64_t bytes = slice.getDestination().getType().getByteSize();
      return instruction(op, abi::Work::Slice, work.Union(), slice.getLabel(),
                         0, 2 * bytes, slice.getPredictedNs());
    }
    auto call = cast<plan::CallOp>(op);
    return instruction(op, abi::Work::Call, writeCall(call).Union(),
                       call.getLabel(), call.getFlops(), call.getBytes(),
                       call.getPredictedNs(), call.getWorkKey(),
                       call.getModelledNs());
  }

  flatbuffers::Offset<abi::Instruction>
  instruction(Operation &op, abi::Work kind, flatbuffers::Offset<void> work,
              StringRef label, int64_t flops, int64_t bytes,
              int64_t predictedNs, uint64_t workKey = 0,
              int64_t modelledNs = 0) {
    std::vector<String> scopes;
    for (StringRef scope : nn::getScopes(op.getLoc()))
      scopes.push_back(b.CreateSharedString(scope.data(), scope.size()));
    flatbuffers::Offset<flatbuffers::Vector<String>> scopeList;
    if (!scopes.empty())
      scopeList = b.CreateVector(scopes);
    return abi::CreateInstruction(b, kind, work, string(label), flops, bytes,
                                  predictedNs, workKey, modelledNs, scopeList);
  }

  int kernelIndex(plan::KernelAttr kernel) {
    auto [it, isNew] = kernels.try_emplace(
        kernel.getName(), static_cast<int>(usedKernels.size()));
    if (isNew)
      usedKernels.push_back(kernel);
    return it->second;
  }

  flatbuffers::Offset<abi::Kernel> writeKernel(plan::KernelAttr kernel) {
    flatbuffers::Offset<abi::Launch> launch;
    if (ArrayRef<int64_t> sizes = kernel.getLaunch(); !sizes.empty())
      launch = abi::CreateLaunch(
          b, b.CreateVector(std::vector<int>{static_cast<int>(sizes[0])}),
          static_cast<int>(sizes[1]));
    return abi::CreateKernel(b, string(kernel.getName()), launch);
  }

  flatbuffers::Offset<abi::View> writeView(plan::CallOp call,
                                           plan::ViewAttr view) {
    if (!view)
      return 0;
    return abi::CreateView(b, slotOf.lookup(call.getOperand(view.getValue())),
                           longs(view.getShape()), longs(view.getStrides()),
                           view.getOffset());
  }

  flatbuffers::Offset<abi::Call> writeCall(plan::CallOp op) {
    plan::CallAttr call = op.getCall();
    std::vector<flatbuffers::Offset<abi::View>> operands;
    for (plan::ViewAttr view : call.getOperands())
      operands.push_back(writeView(op, view));
    std::vector<flatbuffers::Offset<abi::PostOp>> postOps;
    for (plan::PostOpAttr post : call.getPostOps()) {
      // What `sum` adds lies in the result's bytes already.
      const bool sums = post.getKind() == plan::PostOpKind::sum;
      postOps.push_back(abi::CreatePostOp(
          b, post.getKind(), post.getAlpha(), post.getBeta(),
          sums ? 0 : writeView(op, post.getView()),
          sums ? slotOf.lookup(op.getOperand(post.getView().getValue())) : -1));
    }
    auto operandTables = b.CreateVector(operands);
    auto details = writeDetails(op, call.getDetails());
    return abi::CreateCall(b, call.getKind(), operandTables,
                           abi::detailsOf(call.getKind()), details,
                           b.CreateVector(postOps));
  }

  flatbuffers::Offset<void> writeDetails(plan::CallOp op, Attribute details) {
    if (!details)
      return 0;
    return llvm::TypeSwitch<Attribute, flatbuffers::Offset<void>>(details)
        .Case([&](plan::ConvAttr conv) {
          return abi::CreateConv(
                     b, longs(conv.getStrides()), longs(conv.getDilations()),
                     longs(conv.getPadsLow()), longs(conv.getPadsHigh()),
                     conv.getGroups(), conv.getWinograd(),
                     writeView(op, conv.getBias()))
              .Union();
        })
        .Case([&](plan::PoolAttr pool) {
          return abi::CreatePool(
                     b, longs(pool.getStrides()), longs(pool.getDilations()),
                     longs(pool.getPadsLow()), longs(pool.getPadsHigh()),
                     longs(pool.getWindow()), pool.getIncludePad())
              .Union();
        })
        .Case([&](plan::AttentionAttr attention) {
          return abi::CreateAttention(b, writeView(op, attention.getMaskMul()),
                                      writeView(op, attention.getMaskAdd()),
                                      double(attention.getScale()))
              .Union();
        })
        .Case([&](plan::RecurrentAttr layer) {
          return writeRecurrent(op, layer).Union();
        })
        .Case([&](plan::TopKAttr select) {
          return abi::CreateTopK(b, select.getLargest()).Union();
        })
        .Case([&](plan::CombineAttr combine) {
          return abi::CreateCombination(b, combine.getKind()).Union();
        })
        .Case([&](plan::PackedDotAttr packed) {
          return abi::CreatePackedDot(b, static_cast<int32_t>(packed.getBits()),
                                      writeView(op, packed.getZeros()),
                                      writeView(op, packed.getExperts()))
              .Union();
        });
  }

  flatbuffers::Offset<abi::Recurrent>
  writeRecurrent(plan::CallOp op, plan::RecurrentAttr recurrent) {
    std::vector<flatbuffers::Offset<abi::GateFunction>> functions;
    for (plan::GateFunctionAttr function : recurrent.getFunctions())
      functions.push_back(abi::CreateGateFunction(
          b, function.getKind(), function.getAlpha(), function.getBeta()));
    std::vector<uint8_t> reversed(recurrent.getReversed().begin(),
                                  recurrent.getReversed().end());
    return abi::CreateRecurrent(
        b, recurrent.getCell(), b.CreateVector(reversed),
        recurrent.getCoupled(), recurrent.getClip(), b.CreateVector(functions),
        writeView(op, recurrent.getLengths()),
        writeView(op, recurrent.getInitial()),
        writeView(op, recurrent.getInitialCell()),
        writeView(op, recurrent.getPeepholes()),
        writeView(op, recurrent.getHiddenBias()));
  }

  //===--------------------------------------------------------------------===//
  // Actions
  //===--------------------------------------------------------------------===//

  abi::Action writeAction(plan::ActionOpInterface action) {
    const abi::ActionKind kind = action.getActionKind();
    const Attribute subject = action.getActionSubject();
    int index;
    if (auto port = dyn_cast<IntegerAttr>(subject))
      index = static_cast<int>(port.getInt());
    else if (abi::usesChannel(kind))
      index = channels.lookup(cast<FlatSymbolRefAttr>(subject).getValue());
    else if (abi::getInfo(kind).subject == abi::ActionSubject::collective)
      index = collectives.lookup(cast<FlatSymbolRefAttr>(subject).getValue());
    else
      index = units.lookup(subject);
    Value slot = action.getActionSlot();
    return abi::Action(static_cast<uint8_t>(kind),
                       static_cast<int>(action.getActionMicroBatch()), index,
                       slot ? slotOf.lookup(slot) : -1);
  }

  //===--------------------------------------------------------------------===//
  // Tables of the whole
  //===--------------------------------------------------------------------===//

  Tables<abi::Collection> writeCollections() {
    return tables<plan::CollectionOp>([&](plan::CollectionOp collection) {
      return abi::CreateCollection(
          b, string(collection.getCollectionName()),
          collection.getKind() == plan::PortKind::output,
          static_cast<int>(collection.getIndex()), collection.getOf(),
          static_cast<int>(collection.getLength()));
    });
  }

  Tables<abi::Check> writeChecks() {
    return tables<plan::CheckOp>([&](plan::CheckOp check) {
      return abi::CreateCheck(b, string(check.getOp()), string(check.getNode()),
                              string(check.getOperand()),
                              string(check.getTensor()),
                              longs(check.getShape()), longs(check.getLow()),
                              longs(check.getHigh()), check.getRows());
    });
  }

  Tables<abi::Port> writePorts(plan::PortKind kind) {
    std::vector<flatbuffers::Offset<abi::Port>> tables;
    for (auto port : module.getOps<plan::PortOp>()) {
      if (port.getKind() != kind)
        continue;
      auto type = cast<RankedTensorType>(port.getType());
      tables.push_back(abi::CreatePort(
          b, string(port.getPortName()), dtype(port, type),
          longs(type.getShape()), static_cast<int>(port.getBatchAxis()),
          port.getIndex(), string(port.getNode().value_or("")),
          port.getPerStep()));
    }
    return b.CreateVector(tables);
  }

  Tables<abi::Stage> writeStages() {
    return tables<plan::StageOp>([&](plan::StageOp stage) {
      std::vector<flatbuffers::Offset<flatbuffers::String>> blocks;
      for (auto block : stage.getBlocks().getAsRange<StringAttr>())
        blocks.push_back(string(block.getValue()));
      return abi::CreateStage(
          b, string(stage.getStageName()), programs.lookup(stage.getProgram()),
          b.CreateVector(blocks), stage.getFlops(), stage.getParameterBytes(),
          stage.getActivationBytes(), stage.getSentBytes(),
          stage.getPeakBytes(), stage.getDurationNs());
    });
  }

  Tables<abi::Channel> writeChannels() {
    return tables<plan::ChannelOp>([&](plan::ChannelOp channel) {
      return abi::CreateChannel(
          b, string(channel.getValue()), programs.lookup(channel.getSource()),
          programs.lookup(channel.getTarget()), channel.getBytes(),
          string(channel.getReason()), channel.getDurationNs());
    });
  }

  Tables<abi::Collective> writeCollectives() {
    return tables<plan::CollectiveOp>([&](plan::CollectiveOp collective) {
      auto element = RankedTensorType::get({}, collective.getElement());
      return abi::CreateCollective(
          b, string(collective.getValue()),
          programs.lookup(collective.getProgram()), collective.getKind(),
          collective.getReduction(), dtype(collective, element),
          collective.getRows(), collective.getPart(),
          axes(collective.getAxes()), collective.getDurationNs(),
          string(collective.getReason()),
          static_cast<int>(collective.getRoot()));
    });
  }

  Tables<abi::Weight> writeWeights() {
    std::vector<flatbuffers::Offset<abi::Weight>> tables;
    for (const WeightEntry &entry : weights.entries) {
      nn::WeightOp op = entry.op;
      auto type = cast<RankedTensorType>(op.getType());
      tables.push_back(abi::CreateWeight(
          b, string(op.getOrigin()), dtype(op, type), longs(type.getShape()),
          string(entry.file), entry.offset, entry.bytes, entry.hash));
    }
    return b.CreateVector(tables);
  }

  /// The file beside the model that has the bytes of a weight; empty: the model
  /// has them itself.
  StringRef getModelFile(nn::WeightOp weight) const {
    StringRef file = weight.getFile().value_or(trained.given);
    if (file == trained.given)
      return "";
    StringRef folder = llvm::sys::path::parent_path(trained.given);
    if (file.consume_front(folder))
      file.consume_front("/");
    return file;
  }

  /// The states that programs use, in the order of the module.
  void findStates() {
    llvm::StringMap<plan::SlotOp> used;
    module.walk([&](plan::SlotOp slot) {
      if (slot.getSpace() == plan::Space::state)
        used.try_emplace(*slot.getWeight(), slot);
    });
    for (auto weight : module.getOps<nn::WeightOp>())
      if (used.contains(weight.getSymName())) {
        stateIndex[weight.getSymName()] = static_cast<int>(states.size());
        states.push_back({weight, used[weight.getSymName()]});
      }
  }

  /// All slots of a state are cut alike.
  std::vector<flatbuffers::Offset<abi::Cut>> writeCuts(plan::SlotOp slot) {
    std::vector<flatbuffers::Offset<abi::Cut>> tables;
    if (std::optional<ArrayAttr> cuts = slot.getCuts())
      for (auto cut : cuts->getAsRange<plan::CutAttr>())
        tables.push_back(abi::CreateCut(
            b, static_cast<int>(cut.getDim()), cut.getBlocks(),
            slot.getSlot().getType().getTensor().getDimSize(cut.getDim()),
            axes(cut.getAxes())));
    return tables;
  }

  Tables<abi::State> writeStates() {
    std::vector<flatbuffers::Offset<abi::State>> tables;
    for (auto [state, slot] : states) {
      auto type = cast<RankedTensorType>(state.getType());
      auto role = state->getAttrOfType<StringAttr>(nn::kRoleAttr);
      auto initial = weightIndex.find(state.getSymName());
      auto ringDim = state->getAttrOfType<IntegerAttr>(nn::kRingDimAttr);
      auto ringPlace =
          state->getAttrOfType<FlatSymbolRefAttr>(nn::kRingPlaceAttr);
      tables.push_back(abi::CreateState(
          b, string(state.getOrigin()),
          role && role == "optimizer"   ? abi::StateRole::optimizer
          : role && role == "statistic" ? abi::StateRole::statistic
          : role && role == "carried"   ? abi::StateRole::carried
                                        : abi::StateRole::parameter,
          dtype(state, type), longs(type.getShape()), nn::getByteSize(type),
          initial == weightIndex.end() ? -1 : initial->second,
          string(getModelFile(state)),
          state.getFile() ? static_cast<int64_t>(*state.getOffset()) : -1,
          b.CreateVector(writeCuts(slot)), state->hasAttr(nn::kOnHostAttr),
          ringDim ? static_cast<int>(ringDim.getInt()) : -1,
          ringPlace ? stateIndex.lookup(ringPlace.getValue()) : -1));
    }
    return b.CreateVector(tables);
  }

  ModuleOp module;
  const TrainedModel &trained;
  std::vector<std::pair<nn::WeightOp, plan::SlotOp>> states; ///< a slot of each
  llvm::StringMap<int> stateIndex;
  const WeightTable &weights;
  const llvm::StringMap<int> &weightIndex;
  flatbuffers::FlatBufferBuilder b;
  bool hasFailed = false;
  llvm::StringMap<int> programs, channels, collectives, kernels;
  int64_t stageCount = 0;
  std::vector<plan::KernelAttr> usedKernels;
  // Of the program being written.
  llvm::DenseMap<Value, int> slotOf, frameOf;
  llvm::DenseMap<Attribute, int> units;
};

} // namespace

FailureOr<flatbuffers::DetachedBuffer> writePlan(ModuleOp module,
                                                 const WeightTable &weights,
                                                 size_t plan,
                                                 const TrainedModel &trained) {
  return PlanWriter(module, weights, plan, trained).write();
}

} // namespace partita::emit
