//===- PlanBuild.cpp - From stages to a plan ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Samples.h"
#include "compiler/codegen/Backend.h"
#include "compiler/cost/CostModels.h"
#include "compiler/model/Decision.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/partition/ScheduleFile.h"
#include "compiler/pipeline/plan/StageLowering.h"
#include "compiler/schedule/PipelineStages.h"
#include "compiler/schedule/Schedule.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/Path.h"

#include <deque>
#include <map>
#include <set>
#include <tuple>

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_PLANBUILDPASS
#include "compiler/pipeline/Passes.h.inc"

using namespace schedule;

namespace {

/// How many collectives of an update are under way at once: the results of each
/// need memory.
constexpr size_t kMostFlying = 2;

/// Of what replicas add up, one in so many bytes may start before the update:
/// until then its result is held beside the sums.
constexpr int64_t kEarlyShare = 4;

/// One run of the pass.
class PlanBuilder {
public:
  PlanBuilder(ModuleOp module, func::FuncOp function, const CostModels &all)
      : module(module), function(function), models(all),
        lowering(module, models), builder(module.getContext()) {}

  LogicalResult build() {
    problem.microBatches = getInteger(function, dist::kMicroBatchesAttr, 1);
    PARTITA_TRY(lowerStages());
    PARTITA_TRY(collectValues());
    int64_t count = getInteger(function, kDeviceCountAttr, 1);
    for (auto &entry : lowering.devices)
      count = std::max(count, entry.first + 1);
    problem.devices = count;
    PARTITA_TRY(makeSchedule());
    findValuesOnDevices(count);
    PARTITA_TRY(checkStepSequences());

    SymbolTable symbols(module);
    // Those for which verifiers look come first.
    builder.setInsertionPointToStart(module.getBody());
    for (dist::AxisAttr axis : getAxes())
      plan::AxisOp::create(builder, function.getLoc(), axis.getName(),
                           axis.getSize());
    writeModel(scheduleName);
    builder.setInsertionPoint(function);
    writePorts();
    PARTITA_TRY(checkMask());
    // The programs' symbols first: channels and stages name them.
    for (int64_t d = 0; d < count; ++d)
      makeProgram(d, symbols);
    makeChannels(symbols);
    makeCollectives(symbols);
    writeStages();
    makeDevices(count, symbols);
    for (int64_t d = 0; d < count; ++d) {
      fillProgram(d);
      // Programs are long: they come last.
      programs[d]->moveBefore(function);
    }
    function.erase();
    for (auto mesh : llvm::make_early_inc_range(module.getOps<dist::MeshOp>()))
      mesh.erase();
    return success();
  }

private:
  //===--------------------------------------------------------------------===//
  // Stages and the values between them
  //===--------------------------------------------------------------------===//

  LogicalResult lowerStages() {
    for (auto mesh : module.getOps<dist::MeshOp>())
      PARTITA_TRY(addMesh(mesh));
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (isa<dist::TransferOp>(op))
        continue;
      auto stage = dyn_cast<dist::StageOp>(op);
      if (!stage)
        return op.emitError("is in no stage: run --dist-form-stages before");
      PARTITA_TRY(lowering.lower(stage, numbers.lookup(stage.getMeshAttr())));
    }
    formGradientBuckets(lowering, models);
    return success();
  }

  LogicalResult makeSchedule() {
    const auto named = PARTITA_TRY(getSchedule(function));
    if (!named.file) {
      scheduleName = named.kind->name;
      schedule = buildSchedule(problem, named.kind->order(problem));
      if (!schedule.remark.empty())
        function.emitRemark() << schedule.remark;
      return success();
    }
    scheduleName =
        llvm::sys::path::filename(getString(function, dist::kScheduleAttr, ""));
    UnitOrders orders;
    const int stages = static_cast<int>(getDevices(function).size());
    if (std::optional<std::string> misfit =
            orderByFile(problem, *named.file, stages, orders))
      return emitError(getScheduleFileLoc(function)) << *misfit;
    schedule = buildSchedule(problem, orders);
    if (!schedule.remark.empty())
      emitRemark(getScheduleFileLoc(function)) << schedule.remark;
    return success();
  }

  /// The program of a mesh of one device has the number of that device; others
  /// are numbered in the order of their meshes.
  LogicalResult addMesh(dist::MeshOp mesh) {
    if (!meshes.empty() &&
        meshes.begin()->second.getAxesAttr() != mesh.getAxesAttr())
      return mesh.emitError("has other axes than the first mesh");
    const int64_t number = mesh.getAxes() ? static_cast<int64_t>(meshes.size())
                                          : mesh.getDevices()[0];
    numbers[FlatSymbolRefAttr::get(mesh.getSymNameAttr())] = number;
    meshes[number] = mesh;
    return success();
  }

  /// The schedule's value that a placed value is. Values that a stage hands on
  /// as they are, reshaped or not, are the value they come from.
  int getScheduleValue(Value origin) { return valueOf.lookup(origin); }

  LogicalResult collectValues() {
    std::map<std::pair<int64_t, int>, int> known; // (device, value there)
    auto declare = [&](Value origin, int64_t device,
                       int id) -> ScheduleValue & {
      auto [it, isNew] = known.emplace(std::pair(device, id),
                                       static_cast<int>(problem.values.size()));
      if (isNew) {
        problem.values.emplace_back();
        origins.push_back(origin);
      }
      valueOf[origin] = it->second;
      return problem.values[it->second];
    };
    for (auto [index, stage] : llvm::enumerate(lowering.stages)) {
      problem.stages.push_back({static_cast<int>(stage.device), stage.ns,
                                static_cast<Phase>(stage.op.getPhase()),
                                static_cast<int>(stage.op.getStage())});
      for (auto [input, id] :
           llvm::zip(stage.op.getInputs(), stage.arguments)) {
        Value origin = lowering.getSource(input);
        if (auto argument = dyn_cast<BlockArgument>(origin);
            argument && !valueOf.count(origin)) {
          ScheduleValue &value = declare(origin, stage.device, id);
          value.input = argument.getArgNumber();
        }
        int number = valueOf.lookup(origin);
        known.emplace(std::pair(stage.device, id), number);
        ScheduleValue &value = problem.values[number];
        if (!llvm::is_contained(value.consumers, int(index)))
          value.consumers.push_back(index);
      }
      for (auto [number, result, id, state] : llvm::enumerate(
               stage.op.getOutputs(), stage.results, stage.newStates)) {
        if (state)
          continue;
        if (stage.sums.count(static_cast<int64_t>(number))) {
          valueOf[result] = static_cast<int>(problem.values.size());
          problem.values.emplace_back().producer = static_cast<int>(index);
          origins.push_back(result);
          continue;
        }
        bool isNew = !known.count({stage.device, id});
        ScheduleValue &value = declare(result, stage.device, id);
        if (!isNew)
          continue;
        const DeviceValue &held = lowering.devices[stage.device].values[id];
        value.producer = index;
        value.isConstant = held.space != plan::Space::arena;
      }
    }
    priceTransfers();
    findLateWork();
    for (auto [number, value] : llvm::enumerate(problem.values))
      for (int consumer : value.consumers)
        value.readNs.push_back(getReadNs(origins[number], consumer));
    Operation *terminator = function.getBody().front().getTerminator();
    for (OpOperand &operand : terminator->getOpOperands()) {
      if (function.getResultAttr(operand.getOperandNumber(), nn::kStateAttr))
        continue;
      Value origin = lowering.getSource(operand.get());
      if (!valueOf.count(origin))
        return function.emitError("output ")
               << operand.getOperandNumber() << " is made by no stage";
      problem.values[valueOf.lookup(origin)].outputs.push_back(
          operand.getOperandNumber());
    }
    return success();
  }

  /// In training, a unit goes on with gradients of weights when those are made
  /// for which other devices wait. Where that is worth a unit, they are sent
  /// before.
  void findLateWork() {
    constexpr double kLeastPart = 0.05;
    if (!isTrained(problem))
      return;
    std::vector<int> made(lowering.stages.size(), -1); // by work
    for (auto [number, value] : llvm::enumerate(problem.values)) {
      const int producer = value.producer;
      if (producer < 0 || llvm::all_of(
                              value.consumers,
                              [&](int consumer) {
                                return lowering.stages[consumer].device ==
                                       lowering.stages[producer].device;
                              }))
        continue;
      const LoweredStage &stage = lowering.stages[producer];
      auto placed = lowering.placed.find(
          {stage.device, origins[number].getAsOpaquePointer()});
      int last = static_cast<int>(stage.work.size()) - 1;
      if (placed != lowering.placed.end())
        while (last >= 0 &&
               !llvm::is_contained(stage.work[last].outputs, placed->second))
          --last;
      made[producer] = std::max(made[producer], last);
    }
    for (auto [stage, problemStage, last] :
         llvm::zip(lowering.stages, problem.stages, made)) {
      if (last < 0 || problemStage.phase == Phase::prologue ||
          problemStage.phase == Phase::update)
        continue;
      double late = 0;
      for (const DeviceWork &work :
           llvm::drop_begin(stage.work, static_cast<size_t>(last) + 1))
        late += work.time.ns;
      if (late < kLeastPart * stage.ns ||
          late < 2 * models.at(stage.device).getUnitNs())
        continue;
      problemStage.lateNs = late + models.at(stage.device).getUnitNs();
      problemStage.ns += models.at(stage.device).getUnitNs();
      stage.sentAfter = last;
    }
  }

  /// The time to bring each value to the furthest of its readers.
  void priceTransfers() {
    for (auto [number, value] : llvm::enumerate(problem.values)) {
      if (value.producer < 0)
        continue;
      const int64_t from = lowering.stages[value.producer].device,
                    bytes = nn::getByteSize(
                        dist::getTensorType(origins[number].getType()));
      auto add = [&](int64_t to) {
        const double ns = models.getTransferNs(from, to, bytes);
        value.transferNs = std::max(value.transferNs, ns);
        // Only devices that see one memory read a value where it is.
        value.borrowNs =
            std::max(value.borrowNs, models.at(from).sharesMemory() &&
                                             models.at(to).sharesMemory()
                                         ? models.getTransferNs(from, to, 0)
                                         : ns);
      };
      for (int consumer : value.consumers)
        if (const int64_t to = lowering.stages[consumer].device; to != from)
          add(to);
      if (value.transferNs == 0) // it stays, unless the schedule says otherwise
        add(from);
    }
  }

  /// From the begin of a stage's work to the last that reads a value.
  double getReadNs(Value origin, int index) {
    const LoweredStage &stage = lowering.stages[index];
    auto placed =
        lowering.placed.find({stage.device, origin.getAsOpaquePointer()});
    if (placed == lowering.placed.end())
      return stage.ns;
    double ns = 0, nsOfLast = 0;
    for (const DeviceWork &work : stage.work) {
      ns += work.time.ns;
      if (llvm::is_contained(work.inputs, placed->second) ||
          llvm::is_contained(work.outputs, placed->second))
        nsOfLast = ns;
    }
    return std::min(nsOfLast, stage.ns);
  }

  void findValuesOnDevices(int64_t count) {
    valuesOnDevice.resize(count);
    for (auto &[key, id] : lowering.placed) {
      auto it = valueOf.find(Value::getFromOpaquePointer(key.second));
      if (it != valueOf.end())
        valuesOnDevice[key.first][it->second] = id;
    }
  }

  //===--------------------------------------------------------------------===//
  // What holds for the whole
  //===--------------------------------------------------------------------===//

  /// A step of several sequences is one micro-batch of theirs, and each has its
  /// part of what a device has of a state.
  LogicalResult checkStepSequences() {
    const int64_t sequences = getInteger(module, dist::kStepSequencesAttr, 1);
    if (sequences == 1)
      return success();
    auto fail = [&] {
      return module.emitError()
             << "a step cannot be of " << sequences << " sequences";
    };
    if (problem.microBatches * countDevices(/*replicas=*/true) > 1)
      return fail() << ", and of several micro-batches: leave out "
                       "--micro-batches and --data-parallel, or the larger "
                       "sizes of --dim";
    for (auto weight : module.getOps<nn::WeightOp>()) {
      auto sharding =
          weight->getAttrOfType<dist::ShardingAttr>(dist::kShardingAttr);
      if (!weight.isCarried() || !sharding)
        continue;
      const auto part =
          cast<RankedTensorType>(weight.getPart().value_or(weight.getType()));
      if (!sharding.getDims().empty() &&
          !sharding.getDims().front().getAxes().empty())
        return fail() << ": the state '" << weight.getOrigin()
                      << "' is cut along dimension 0";
      if (const int64_t bytes = nn::getByteSize(part) / sequences;
          bytes % abi::kSlotAlignment)
        return fail() << ": of each, a device has " << bytes
                      << " bytes of the state '" << weight.getOrigin()
                      << "'; they must be a multiple of "
                      << abi::kSlotAlignment;
    }
    return success();
  }

  /// How many devices share a stage; or how many replicas of it there are.
  int64_t countDevices(bool replicas) {
    int64_t count = 1;
    for (dist::AxisAttr axis : getAxes())
      if (replicas ? axis.getName() == dist::kDataAxis
                   : axis.getName() != dist::kStageAxis)
        count *= axis.getSize();
    return count;
  }

  /// Those of the mesh on which every program is executed.
  SmallVector<dist::AxisAttr> getAxes() {
    ArrayAttr axes =
        meshes.empty() ? ArrayAttr() : meshes.begin()->second.getAxesAttr();
    return axes ? llvm::to_vector(axes.getAsRange<dist::AxisAttr>())
                : SmallVector<dist::AxisAttr>();
  }

  /// What one device would take for a step of all; 0: there is only one device,
  /// or that is not known.
  int64_t countAloneNs() {
    auto alone = function->getAttrOfType<DenseF64ArrayAttr>(kAloneAttr);
    if (!alone || problem.devices * countDevices(/*replicas=*/false) == 1)
      return 0;
    return static_cast<int64_t>(
        alone[1] + alone[0] * static_cast<double>(problem.microBatches) *
                       static_cast<double>(countDevices(/*replicas=*/true)));
  }

  void writeModel(StringRef order) {
    std::string name = getString(module, "nn.model", "").str();
    auto model = plan::ModelOp::create(
        builder, module.getLoc(), name, order, problem.microBatches,
        static_cast<int64_t>(schedule.stepNs), APFloat(schedule.bubble),
        countAloneNs(),
        models.getName().empty() ? StringAttr()
                                 : builder.getStringAttr(models.getName()),
        models.getThreads(),
        models.getId().empty() ? StringAttr()
                               : builder.getStringAttr(models.getId()),
        module->getAttrOfType<DictionaryAttr>(kDimensionsAttr),
        module->getAttrOfType<StringAttr>(kMaskAttr),
        module->hasAttr(dist::kFullMicroBatchesAttr),
        module->getAttrOfType<StringAttr>(analysis::kMixesAttr),
        module->hasAttr(dist::kFullStepsAttr),
        module->getAttrOfType<StringAttr>(plan::kEntryAttr),
        module->getAttrOfType<StringAttr>(plan::kTrainingAttr),
        getInteger(module, dist::kSequencesAttr, 1),
        getInteger(module, dist::kStepSequencesAttr, 1));
    if (auto memory = function->getAttr(kMemoryAttr))
      model->setAttr(kMemoryAttr, memory);
    if (auto recomputation = function->getAttr(kRecomputationAttr))
      model->setAttr(kRecomputationAttr, recomputation);
    module->removeAttr(kDimensionsAttr);
    module->removeAttr(kMaskAttr);
  }

  /// An input must say where samples end.
  LogicalResult checkMask() {
    plan::ModelOp model = *module.getOps<plan::ModelOp>().begin();
    if (!model.getMask())
      return success();
    for (auto port : module.getOps<plan::PortOp>())
      if (port.getKind() == plan::PortKind::input &&
          port.getPortName() == *model.getMask())
        return success();
    return module.emitError()
           << "--mask " << *model.getMask() << ": the model has no such input";
  }

  void writePort(plan::PortKind kind, DictionaryAttr attributes,
                 StringRef standard, int64_t position, Type type) {
    if (!attributes)
      attributes = builder.getDictionaryAttr({});
    auto name = attributes.getAs<StringAttr>(nn::kNameAttr);
    auto index = attributes.getAs<IntegerAttr>("nn.port");
    auto axis = attributes.getAs<IntegerAttr>(nn::kBatchAxisAttr);
    plan::PortOp::create(
        builder, function.getLoc(), kind, name ? name.getValue() : standard,
        index ? index.getInt() : position, axis ? axis.getInt() : -1, type,
        attributes.getAs<StringAttr>("nn.node"),
        attributes.contains(nn::kPerStepAttr));
  }

  void writeCheck(DictionaryAttr check, RankedTensorType type) {
    auto name = [&](StringRef key) { return check.getAs<StringAttr>(key); };
    auto numbers = [&](StringRef key) {
      return check.getAs<DenseI64ArrayAttr>(key);
    };
    plan::CheckOp::create(builder, function.getLoc(), name("op"), name("node"),
                          name("operand"), name("tensor"), numbers("shape"),
                          builder.getI64IntegerAttr(type.getDimSize(0)),
                          numbers("low"), numbers("high"));
  }

  void writePorts() {
    int64_t outputs = 0, checks = 0;
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
      writePort(plan::PortKind::input, function.getArgAttrDict(i),
                ("input" + Twine(i)).str(), i, type);
    for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
      if (function.getResultAttr(i, nn::kStateAttr)) {
        numberOfResult.push_back(-1);
        continue;
      }
      auto check =
          function.getResultAttrOfType<DictionaryAttr>(i, nn::kCheckAttr);
      numberOfResult.push_back(check ? checks++ : outputs++);
      if (check)
        writeCheck(check, cast<RankedTensorType>(dist::getTensorType(type)));
      else
        writePort(plan::PortKind::output, function.getResultAttrDict(i),
                  ("output" + Twine(i)).str(), i, dist::getTensorType(type));
    }
    for (auto entry : getDictionaries("nn.bound_inputs"))
      plan::PortOp::create(
          builder, function.getLoc(), plan::PortKind::bound_input,
          entry.getAs<StringAttr>("name").getValue(),
          entry.getAs<IntegerAttr>("port").getInt(), -1,
          entry.getAs<TypeAttr>("type").getValue(), StringAttr(),
          /*per_step=*/false);
    for (auto entry : getDictionaries("nn.collections"))
      plan::CollectionOp::create(
          builder, function.getLoc(),
          entry.getAs<BoolAttr>("output").getValue() ? plan::PortKind::output
                                                     : plan::PortKind::input,
          entry.getAs<StringAttr>("name").getValue(),
          entry.getAs<IntegerAttr>("port").getInt(),
          *plan::symbolizeCollectionKind(
              entry.getAs<StringAttr>("kind").getValue()),
          entry.getAs<IntegerAttr>("length").getInt());
  }

  /// The entries of an attribute of the module; none if there is no such one.
  SmallVector<DictionaryAttr> getDictionaries(StringRef attribute) {
    auto entries = module->getAttrOfType<ArrayAttr>(attribute);
    return entries ? llvm::to_vector(entries.getAsRange<DictionaryAttr>())
                   : SmallVector<DictionaryAttr>();
  }

  /// For people, e.g. "cpu:0".
  static std::string deviceName(StringAttr kind, int64_t device) {
    return ((kind ? kind.getValue() : "cpu") + ":" + Twine(device)).str();
  }

  /// The first device of a program, likewise; of several, "cpu:0 and others".
  std::string executorName(int64_t d) const {
    auto it = meshes.find(d);
    if (it == meshes.end())
      return deviceName(StringAttr(), d);
    dist::MeshOp mesh = it->second;
    return deviceName(mesh.getKindAttr(), mesh.getDevices()[0]) +
           (mesh.getDevices().size() > 1 ? " and others" : "");
  }

  void makeProgram(int64_t d, SymbolTable &symbols) {
    auto program = plan::ProgramOp::create(
        builder, function.getLoc(), ("program" + Twine(d)).str(), nullptr,
        nullptr, nullptr, nullptr, nullptr);
    program.getBody().emplaceBlock();
    if (auto mesh = meshes.find(d); mesh != meshes.end())
      if (Attribute target = mesh->second->getAttr(codegen::kTargetAttr))
        program->setAttr(codegen::kTargetAttr, target);
    symbols.insert(program);
    programs.push_back(program);
  }

  /// All devices, in the order of their numbers.
  void makeDevices(int64_t count, SymbolTable &symbols) {
    struct Place {
      int64_t program;
      StringAttr kind;
      SmallVector<int64_t> coordinate;
    };
    std::map<int64_t, Place> places;
    const SmallVector<int64_t> strides = computeStrides(llvm::map_to_vector(
        getAxes(), [](dist::AxisAttr axis) { return axis.getSize(); }));
    for (int64_t d = 0; d < count; ++d) {
      auto it = meshes.find(d);
      if (it == meshes.end()) {
        places[d] = {d, StringAttr(), {}};
        continue;
      }
      dist::MeshOp mesh = it->second;
      for (auto [position, device] : llvm::enumerate(mesh.getDevices()))
        places[device] = {d, mesh.getKindAttr(),
                          delinearize(position, strides)};
    }
    for (auto &[number, place] : places) {
      auto device = plan::DeviceOp::create(
          builder, function.getLoc(), ("device" + Twine(number)).str(),
          deviceName(place.kind, number), place.kind,
          getProgram(place.program).getValue(),
          place.coordinate.empty()
              ? DenseI64ArrayAttr()
              : builder.getDenseI64ArrayAttr(place.coordinate));
      symbols.insert(device);
    }
  }

  FlatSymbolRefAttr getProgram(int64_t d) {
    return FlatSymbolRefAttr::get(programs[d].getSymNameAttr());
  }

  void makeChannels(SymbolTable &symbols) {
    for (auto [index, channel] : llvm::enumerate(schedule.channels)) {
      bool isToken = channel.value < 0;
      std::string source = stageName(channel.sourceStage),
                  target = stageName(channel.targetStage);
      std::string reason =
          isToken ? target + " may begin when " + source +
                        " has ended: one device at a time"
                  : source + " on " + executorName(channel.source) +
                        " makes it, " + target + " on " +
                        executorName(channel.target) + " reads it";
      Value origin = isToken ? Value() : origins[channel.value];
      auto op = plan::ChannelOp::create(
          builder, isToken ? function.getLoc() : origin.getLoc(),
          "channel" + std::to_string(index),
          isToken ? std::string("(token)") : valueName(channel.value),
          getProgram(channel.source).getValue(),
          getProgram(channel.target).getValue(), bytesOf(channel), reason,
          static_cast<int64_t>(getTransferNs(channel)));
      symbols.insert(op);
      channels.push_back(op.getSymNameAttr());
    }
  }

  /// For people: the ONNX node that makes it.
  std::string valueName(int value) {
    std::string name = nn::getNodeName(origins[value].getLoc());
    return name.empty() ? "value " + std::to_string(value) : name;
  }

  double getTransferNs(const ScheduleChannel &channel) {
    if (channel.value < 0)
      return models.getTransferNs(channel.source, channel.target, 0);
    const ScheduleValue &value = problem.values[channel.value];
    return schedule.transfers.borrowed[channel.value] ? value.borrowNs
                                                      : value.transferNs;
  }

  int64_t bytesOf(const ScheduleChannel &channel) {
    return channel.value < 0 ? 0
                             : nn::getByteSize(dist::getTensorType(
                                   origins[channel.value].getType()));
  }

  std::string stageName(int index) {
    return lowering.stages[index].op.getStageName().str();
  }

  /// A row for each unit of a stage, in the order of the stages; stages without
  /// work too.
  void writeStages() {
    // Of what comes once a step, a stage may have several units.
    std::map<std::tuple<int64_t, dist::Phase, int>, int> stageAt;
    SmallVector<int64_t> devices = getDevices(function);
    for (int64_t number = 0; number < static_cast<int64_t>(devices.size());
         ++number)
      stageAt[{number, dist::Phase::forward, 0}] = -1;
    for (auto [index, stage] : llvm::enumerate(lowering.stages)) {
      std::tuple key(stage.op.getStage(), stage.op.getPhase(), 0);
      while (stageAt.count(key) && stageAt[key] >= 0)
        ++std::get<2>(key);
      stageAt[key] = static_cast<int>(index);
    }
    rowOf.resize(lowering.stages.size());
    int64_t row = 0;
    for (const auto &[key, index] : stageAt) {
      if (index < 0) {
        const int64_t number = std::get<0>(key);
        plan::StageOp::create(builder, function.getLoc(),
                              "F" + std::to_string(number),
                              getProgram(devices[number]).getValue(),
                              builder.getArrayAttr({}), 0, 0, 0, 0, 0, 0);
        ++row;
        continue;
      }
      rowOf[index] = row++;
      LoweredStage &stage = lowering.stages[index];
      int64_t sent = 0;
      for (const ScheduleChannel &channel : schedule.channels)
        if (channel.sourceStage == index)
          sent += bytesOf(channel);
      plan::StageOp::create(builder, function.getLoc(), stageName(index),
                            getProgram(stage.device).getValue(),
                            stage.op.getBlocks(), stage.flops,
                            stage.parameterBytes, stage.activationBytes, sent,
                            0, static_cast<int64_t>(stage.ns));
    }
  }

  //===--------------------------------------------------------------------===//
  // A program
  //===--------------------------------------------------------------------===//

  void fillProgram(int64_t d) {
    const LoweredDevice &device = lowering.devices[d];
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&programs[d].getBody().front());
    slots.clear();
    // A lane comes behind the sum that it is of, and what joins sums behind
    // these.
    for (const DeviceValue &value : device.values) {
      const SmallVector<Value> members =
          llvm::map_to_vector(value.members, [&](int id) { return slots[id]; });
      slots.push_back(plan::SlotOp::create(
          builder, function.getLoc(),
          plan::SlotType::get(builder.getContext(), value.type), value.space,
          Value(), IntegerAttr(), value.weight, value.span, getCuts(value),
          value.sum < 0 ? Value() : slots[static_cast<size_t>(value.sum)],
          value.sum < 0 ? IntegerAttr() : builder.getI64IntegerAttr(value.lane),
          value.lanes, members, value.isRenewed));
    }
    if (!device.load.empty()) {
      auto load = plan::LoadOp::create(builder, function.getLoc());
      OpBuilder::InsertionGuard inside(builder);
      builder.createBlock(&load.getBody());
      for (const DeviceWork &work : device.load)
        makeWork(work);
    }
    findEarlyStarts(d);
    for (int s : device.stages)
      makeUnits(s);
    for (const ScheduleAction &action : schedule.programs[d])
      makeAction(d, action);
  }

  //===--------------------------------------------------------------------===//
  // Sums that replicas add up while other gradients are computed
  //===--------------------------------------------------------------------===//

  /// A collective of an update whose operand is a sum over micro-batches starts
  /// in the last of these, as soon as the sum is complete, if that is worth a
  /// unit more in each of them, and there is room.
  void findEarlyStarts(int64_t d) {
    const LoweredDevice &device = lowering.devices[d];
    startsBehind.clear();
    startedEarly.clear();
    lastRun.clear();
    flying.clear();
    for (const ScheduleAction &action : schedule.programs[d])
      if (action.kind == abi::ActionKind::run)
        lastRun[action.stage] = action.microBatch;
    struct Candidate {
      std::pair<int, int> made; ///< stage and work
      const DeviceWork *work;
      int64_t bytes; ///< of its result, if it is not in place
    };
    std::vector<Candidate> candidates;
    int64_t room = 0;
    for (int s : device.stages)
      for (const DeviceWork &work : lowering.stages[s].work)
        if (isCollective(work) && isUpdate(s))
          if (auto made = findComplete(lowering, device, work.inputs[0]);
              made.first >= 0 && lastRun[made.first] == lastRun[s]) {
            const int64_t bytes =
                work.inputs[0] == work.outputs[0]
                    ? 0
                    : nn::getByteSize(device.values[work.outputs[0]].type);
            candidates.push_back({made, &work, bytes});
            room += bytes / kEarlyShare;
          }
    // What is complete first has most to hide behind.
    llvm::stable_sort(candidates, [](const Candidate &a, const Candidate &b) {
      return a.made < b.made;
    });
    // Devices finish in the order in which they start: the update would finish
    // all of these before it could start another that they do not wait for.
    size_t last = 0;
    for (auto [index, each] : llvm::enumerate(candidates))
      if (isWorthStarting(*each.work, each.made.first))
        last = index + 1;
    for (auto [index, each] : llvm::enumerate(candidates))
      if (each.bytes == 0 ? index < last
                          : each.bytes <= room &&
                                isWorthStarting(*each.work, each.made.first)) {
        room -= each.bytes;
        startsBehind[each.made].push_back(each.work);
        startedEarly.insert(each.work);
      }
  }

  static bool isCollective(const DeviceWork &work) {
    return isa_and_nonnull<dist::CollectiveOpInterface>(work.op) &&
           !work.isCopy;
  }

  bool isUpdate(int stage) {
    return lowering.stages[stage].op.getPhase() == dist::Phase::update;
  }

  /// Whether what may be hidden takes longer than the unit's start in each
  /// micro-batch. Results need memory from the start on, so only those that are
  /// parts of their operands are worth it.
  bool isWorthStarting(const DeviceWork &work, int maker) {
    if (!isa<dist::ReduceScatterOp>(work.op) &&
        work.inputs[0] != work.outputs[0])
      return false;
    const int runs = lastRun.count(maker) ? lastRun.at(maker) + 1 : 1;
    return work.time.ns >
           runs * models.at(lowering.stages[maker].device).getUnitNs();
  }

  void start(const DeviceWork *work, int microBatch) {
    plan::createAction(builder, work->op->getLoc(), abi::ActionKind::start,
                       microBatch, collectives.at(work), -1,
                       slots[work->inputs[0]]);
    flying.push_back({work, microBatch});
  }

  void finishFirst() {
    auto [work, microBatch] = flying.front();
    flying.pop_front();
    plan::createAction(builder, work->op->getLoc(), abi::ActionKind::finish,
                       microBatch, collectives.at(work), -1,
                       slots[work->outputs[0]]);
  }

  /// Finishes what started until this has. All devices finish what they do
  /// together in the order in which they started it.
  void finishUntil(const DeviceWork *work) {
    auto isIt = [&](const auto &each) { return each.first == work; };
    while (llvm::any_of(flying, isIt))
      finishFirst();
  }

  /// The collectives of an update before this work that must be finished for
  /// it: it reads what they make, or writes what they read or make.
  static std::vector<const DeviceWork *>
  findNeeded(const LoweredDevice &device, const DeviceWork &work,
             ArrayRef<const DeviceWork *> before) {
    auto share = [&](ArrayRef<int> a, ArrayRef<int> b) {
      return llvm::any_of(a, [&](int id) {
        return llvm::any_of(b, [&](int other) {
          return id == other ||
                 llvm::is_contained(device.values[other].members, id);
        });
      });
    };
    std::vector<const DeviceWork *> needed;
    for (const DeviceWork *other : before)
      if (share(work.inputs, other->outputs) ||
          share(work.outputs, other->outputs) ||
          share(work.outputs, other->inputs))
        needed.push_back(other);
    return needed;
  }

  /// How a state is cut over devices; null if each has all of it.
  ArrayAttr getCuts(const DeviceValue &value) {
    auto state = value.space == plan::Space::state
                     ? SymbolTable::lookupNearestSymbolFrom<nn::WeightOp>(
                           module, value.weight)
                     : nn::WeightOp();
    auto sharding =
        state ? state->getAttrOfType<dist::ShardingAttr>(dist::kShardingAttr)
              : dist::ShardingAttr();
    if (!sharding)
      return {};
    SmallVector<Attribute> cuts;
    for (auto [dim, cut] : llvm::enumerate(sharding.getDims()))
      if (!cut.getAxes().empty())
        cuts.push_back(plan::CutAttr::get(
            builder.getContext(), dim, cut.getBlocks(),
            getAxisNumbers(builder.getArrayAttr(SmallVector<Attribute>(
                cut.getAxes().begin(), cut.getAxes().end())))));
    return builder.getArrayAttr(cuts);
  }

  /// A unit for each part of a stage between collectives, which are actions of
  /// their own, and for what comes when its values are sent.
  void makeUnits(int s) {
    LoweredStage &stage = lowering.stages[s];
    std::vector<StagePart> &parts = partsOf[s];
    parts.assign(1, {});
    auto split = [&] {
      const bool isLate = parts.back().isLate;
      parts.emplace_back();
      parts.back().isLate = isLate;
    };
    std::vector<const DeviceWork *> before; // that nothing has needed yet
    for (auto [index, work] : llvm::enumerate(stage.work)) {
      if (stage.sentAfter && static_cast<int>(index) == *stage.sentAfter + 1) {
        split();
        parts.back().isLate = true;
      }
      if (auto needed =
              findNeeded(lowering.devices[stage.device], work, before);
          !needed.empty()) {
        if (!parts.back().work.empty())
          split();
        llvm::append_range(parts.back().needed, needed);
        llvm::erase_if(before, [&](const DeviceWork *other) {
          return llvm::is_contained(needed, other);
        });
      }
      if (isCollective(work)) {
        parts.back().collective = &work;
        if (isUpdate(s))
          before.push_back(&work);
        split();
      } else {
        parts.back().work.push_back(&work);
      }
      if (auto starts = startsBehind.find({s, static_cast<int>(index)});
          starts != startsBehind.end()) {
        parts.back().starts = starts->second;
        split();
      }
    }
    double ns = models.at(stage.device).getUnitNs();
    for (auto [index, part] : llvm::enumerate(parts)) {
      // A stage that computes nothing still has a unit.
      if (part.work.empty() && parts.size() > 1)
        continue;
      part.unit = stageName(s) + (index ? "." + std::to_string(index) : "");
      for (const DeviceWork *work : part.work)
        ns += work->time.ns;
      auto unit = plan::UnitOp::create(builder, stage.op.getLoc(), part.unit,
                                       rowOf[s], static_cast<int64_t>(ns));
      ns = 0;
      OpBuilder::InsertionGuard guard(builder);
      builder.createBlock(&unit.getBody());
      for (const DeviceWork *work : part.work)
        makeWork(*work);
    }
  }

  void makeWork(const DeviceWork &work) {
    auto lookup = [&](int id) { return slots[id]; };
    SmallVector<Value> inputs = llvm::map_to_vector(work.inputs, lookup),
                       outputs = llvm::map_to_vector(work.outputs, lookup);
    Location loc = work.op ? work.op->getLoc() : function.getLoc();
    const auto predicted = static_cast<int64_t>(work.time.ns),
               rated = static_cast<int64_t>(work.time.modelledNs);
    if (work.isCopy) {
      plan::CopyOp::create(builder, loc, inputs[0], outputs[0], work.label,
                           predicted);
      return;
    }
    if (auto shard = dyn_cast<dist::ShardOp>(work.op)) {
      const dist::RowsAndPart shape = shard.getRowsAndPart();
      plan::SliceOp::create(builder, loc, inputs[0], outputs[0], shape.rows,
                            shape.part, getAxisNumbers(shard.getAxes()),
                            work.label, predicted);
      return;
    }
    nn::LoweringAttrInterface lowered =
        cast<nn::ClusterOp>(work.op).getLoweringAttr();
    if (auto kernel = dyn_cast<plan::KernelAttr>(lowered))
      plan::DispatchOp::create(builder, loc, kernel, inputs, outputs,
                               work.label, work.flops, work.bytes, predicted,
                               rated, work.time.key);
    else
      plan::CallOp::create(builder, loc, cast<plan::CallAttr>(lowered), inputs,
                           outputs, work.label, work.flops, work.bytes,
                           predicted, rated, work.time.key);
  }

  void makeAction(int64_t d, const ScheduleAction &action) {
    if (action.kind == abi::ActionKind::run)
      return makeRun(action);
    Value slot;
    if (action.value >= 0)
      slot = slots[valuesOnDevice[d].at(action.value)];
    abi::ActionKind kind = action.kind;
    int64_t port = action.port;
    if (kind == abi::ActionKind::store_output) {
      if (function.getResultAttr(action.port, nn::kCheckAttr))
        kind = abi::ActionKind::examine;
      port = numberOfResult[action.port];
    }
    plan::createAction(
        builder, function.getLoc(), kind, action.microBatch,
        action.channel >= 0 ? channels[action.channel].str() : "", port, slot);
  }

  /// The units of a stage, and its collectives between them.
  void makeRun(const ScheduleAction &action) {
    for (const StagePart &part : partsOf.at(action.stage)) {
      if (action.part != ScheduleAction::Part::whole &&
          part.isLate != (action.part == ScheduleAction::Part::late))
        continue;
      for (const DeviceWork *work : part.needed)
        finishUntil(work);
      if (!part.unit.empty())
        plan::createAction(builder, function.getLoc(), action.kind,
                           action.microBatch, part.unit, -1, Value());
      if (action.microBatch == lastRun.at(action.stage))
        for (const DeviceWork *work : part.starts)
          start(work, action.microBatch);
      if (!part.collective || startedEarly.contains(part.collective))
        continue;
      // Whole sums gained nothing by it, where they were measured.
      const bool canWait = isUpdate(action.stage) &&
                           !isa<dist::AllReduceOp>(part.collective->op);
      while (flying.size() >= (canWait ? kMostFlying : 1))
        finishFirst();
      start(part.collective, action.microBatch);
      if (!canWait)
        finishUntil(part.collective);
    }
    if (isUpdate(action.stage))
      while (!flying.empty())
        finishFirst();
  }

  //===--------------------------------------------------------------------===//
  // Collectives
  //===--------------------------------------------------------------------===//

  /// Their places among the axes of the plan.
  SmallVector<int64_t> getAxisNumbers(ArrayAttr axes) {
    SmallVector<int64_t> numbers;
    for (auto name : axes.getAsValueRange<StringAttr>())
      for (auto [number, axis] : llvm::enumerate(getAxes()))
        if (axis.getName() == name)
          numbers.push_back(number);
    return numbers;
  }

  void makeCollectives(SymbolTable &symbols) {
    for (const LoweredStage &stage : lowering.stages)
      for (const DeviceWork &work : stage.work) {
        auto collective =
            dyn_cast_or_null<dist::CollectiveOpInterface>(work.op);
        if (!collective || work.isCopy)
          continue;
        dist::RowsAndPart shape = collective.getRowsAndPart();
        std::string reason = collective.getCollectiveReason().str();
        if (const size_t more = work.joined.size(); more > 1) {
          shape = {1, lowering.devices[stage.device]
                          .values[work.inputs[0]]
                          .type.getNumElements()};
          reason += "; so it is for " + abi::countOf(more - 1, "more gradient");
        }
        auto op = plan::CollectiveOp::create(
            builder, work.op->getLoc(),
            "collective" + std::to_string(collectives.size()), work.label,
            collective.getCollectiveKind(), getReduction(work.op),
            cast<RankedTensorType>(work.op->getResult(0).getType())
                .getElementType(),
            getProgram(stage.device).getValue(), shape.rows, shape.part,
            getAxisNumbers(collective.getCollectiveAxes()),
            static_cast<int64_t>(work.time.ns), reason,
            getInteger(work.op, "root", 0));
        symbols.insert(op);
        collectives[&work] = op.getSymName().str();
      }
  }

  /// The enums name the same things in the same order.
  static plan::Reduction getReduction(Operation *op) {
    auto kind = op->getAttrOfType<nn::ReduceKindAttr>("kind");
    return kind ? static_cast<plan::Reduction>(kind.getValue())
                : plan::Reduction::sum;
  }

  /// Units of a stage, each with the collective that follows it, if any.
  struct StagePart {
    std::string unit;                       ///< empty: there is nothing to run
    std::vector<const DeviceWork *> needed; ///< is finished before its unit
    std::vector<const DeviceWork *> work;
    /// Of others: what the unit lets start in the last micro-batch.
    std::vector<const DeviceWork *> starts;
    const DeviceWork *collective = nullptr;
    bool isLate = false; ///< its unit's values are sent before
  };

  ModuleOp module;
  func::FuncOp function;
  const CostModels &models;
  StageLowering lowering;
  OpBuilder builder;
  ScheduleProblem problem;
  Schedule schedule;
  std::string scheduleName;            // of a file, without the folder
  std::vector<int64_t> numberOfResult; // among the outputs, or the checks
  std::vector<int64_t> rowOf;          // among the plan's stages, by stage
  std::vector<Value> origins;          // by schedule value
  llvm::DenseMap<Value, int> valueOf;  // origin -> schedule value
  /// By device: from a schedule's value to the device's.
  std::vector<std::map<int, int>> valuesOnDevice;
  std::vector<plan::ProgramOp> programs;
  std::map<int64_t, dist::MeshOp> meshes;     ///< by program
  llvm::DenseMap<Attribute, int64_t> numbers; ///< programs, by mesh
  std::vector<StringAttr> channels;
  std::map<const DeviceWork *, std::string> collectives; ///< their symbols
  // Of the program being filled.
  /// Behind a work of a stage: collectives that start in the last micro-batch.
  std::map<std::pair<int, int>, std::vector<const DeviceWork *>> startsBehind;
  std::set<const DeviceWork *> startedEarly;
  std::map<int, int> lastRun; ///< by stage: the micro-batch
  /// What has started and is not finished, with its micro-batch, in order.
  std::deque<std::pair<const DeviceWork *, int>> flying;
  std::map<int, std::vector<StagePart>> partsOf; ///< by stage
  std::vector<Value> slots; // of the program being filled, by device value
};

struct PlanBuildPass : impl::PlanBuildPassBase<PlanBuildPass> {
  using PlanBuildPassBase::PlanBuildPassBase;

  LogicalResult run(func::FuncOp function) override {
    auto models = PARTITA_TRY(CostModels::get(function));
    return PlanBuilder(getOperation(), function, *models).build();
  }
};

} // namespace
} // namespace partita::pipeline
