//===- KernelGroup.cpp - Kernels that start as one ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/grid/KernelGroup.h"

#include "compiler/codegen/cuda/grid/EmitGrid.h"
#include "dialects/support/Try.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace partita::codegen::cuda {

int64_t KernelGroup::getBlocks() const {
  int64_t blocks = 0;
  for (const GroupMember &member : members)
    blocks += member.schedule.getBlocks();
  return blocks;
}

SmallVector<int64_t> KernelGroup::getInPlace() const {
  SmallVector<int64_t> pairs, readers(static_cast<size_t>(inputs), 0);
  for (const GroupMember &member : members)
    for (int64_t input : member.inputs)
      ++readers[static_cast<size_t>(input)];
  for (const GroupMember &member : members) {
    ArrayRef<int64_t> own = member.schedule.kernel.inPlace;
    for (size_t i = 0; i + 1 < own.size(); i += 2) {
      const int64_t input = member.inputs[static_cast<size_t>(own[i])];
      if (readers[static_cast<size_t>(input)] == 1)
        llvm::append_values(pairs, input, member.firstResult + own[i + 1]);
    }
  }
  return pairs;
}

bool isGroup(func::FuncOp kernel) {
  return !kernel.isExternal() &&
         !kernel.getBody().front().getOps<func::CallOp>().empty();
}

FailureOr<KernelGroup> formGroup(ArrayRef<func::FuncOp> kernels,
                                 ArrayRef<int64_t> inputs) {
  KernelGroup group;
  for (int64_t input : inputs)
    group.inputs = std::max(group.inputs, input + 1);
  int64_t results = 0, sharedBytes = 0;
  llvm::SmallDenseSet<Operation *> known;
  for (func::FuncOp kernel : kernels) {
    GridSchedule schedule = PARTITA_TRY(readGrid(kernel));
    // Each kernel's code has its own shared memory.
    if (known.insert(kernel).second)
      sharedBytes += getSharedBytes(schedule);
    const size_t count = kernel.getNumArguments() - kernel.getNumResults();
    group.members.push_back({kernel, std::move(schedule),
                             llvm::to_vector(inputs.take_front(count)),
                             results});
    inputs = inputs.drop_front(count);
    results += group.members.back().kernel.getNumResults();
    if (group.members.back().schedule.threads != group.getThreads())
      return failure();
  }
  if (sharedBytes > kMostSharedBytes ||
      group.inputs + results > kMostGroupOperands ||
      static_cast<int64_t>(kernels.size()) > kMostMembers)
    return failure();
  return group;
}

/// The argument of the group's function that is the argument `number` of a
/// member's.
static unsigned getArgument(const KernelGroup &group, const GroupMember &member,
                            unsigned number) {
  const size_t own = member.inputs.size();
  return static_cast<unsigned>(number < own
                                   ? member.inputs[number]
                                   : group.inputs + member.firstResult +
                                         static_cast<int64_t>(number - own));
}

func::FuncOp buildGroup(OpBuilder &b, KernelGroup &group) {
  SmallVector<Type> arguments(static_cast<size_t>(group.inputs)), outputs;
  SmallVector<Location> locations;
  for (GroupMember &member : group.members) {
    locations.push_back(member.kernel.getLoc());
    ArrayRef<Type> types = member.kernel.getArgumentTypes();
    for (auto [input, type] : llvm::zip(member.inputs, types))
      arguments[static_cast<size_t>(input)] = type;
    llvm::append_range(outputs, types.drop_front(member.inputs.size()));
  }
  llvm::append_range(arguments, outputs);
  OpBuilder::InsertionGuard guard(b);
  const Location loc = b.getFusedLoc(locations);
  auto function = func::FuncOp::create(b, loc, "group",
                                       b.getFunctionType(arguments, outputs));
  function->setAttr(kGridAttr,
                    b.getDictionaryAttr(b.getNamedAttr(
                        "threads", b.getI64IntegerAttr(group.getThreads()))));
  b.setInsertionPointToEnd(function.addEntryBlock());
  SmallVector<Value> returned;
  for (GroupMember &member : group.members) {
    SmallVector<Value> operands;
    for (unsigned i = 0; i < member.kernel.getNumArguments(); ++i) {
      const unsigned number = getArgument(group, member, i);
      operands.push_back(function.getArgument(number));
      // One reader that cannot rely on it is enough.
      if (member.kernel.getArgAttr(i, kUnalignedAttr))
        function.setArgAttr(number, kUnalignedAttr, b.getUnitAttr());
    }
    auto call = func::CallOp::create(b, member.kernel.getLoc(), member.kernel,
                                     operands);
    llvm::append_range(returned, call.getResults());
  }
  func::ReturnOp::create(b, loc, returned);
  return function;
}

FailureOr<KernelGroup> readGroup(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  SmallVector<func::FuncOp> kernels;
  SmallVector<int64_t> inputs;
  SmallVector<Value> arguments, outputs, returned;
  llvm::SmallDenseMap<Value, int64_t> numbers;
  for (Operation &op : function.getBody().front().without_terminator()) {
    auto call = dyn_cast<func::CallOp>(op);
    auto kernel =
        call ? module.lookupSymbol<func::FuncOp>(call.getCallee()) : nullptr;
    if (!kernel || kernel.isExternal() || isGroup(kernel))
      return op.emitError("a group of kernels holds nothing but calls of "
                          "kernels");
    kernels.push_back(kernel);
    const size_t count = kernel.getNumArguments() - kernel.getNumResults();
    for (Value input : call.getOperands().take_front(count)) {
      auto [known, isNew] = numbers.try_emplace(input, numbers.size());
      if (isNew)
        arguments.push_back(input);
      inputs.push_back(known->second);
    }
    llvm::append_range(outputs, call.getOperands().drop_front(count));
    llvm::append_range(returned, call.getResults());
  }
  FailureOr<KernelGroup> group = formGroup(kernels, inputs);
  llvm::append_range(arguments, outputs);
  if (failed(group) || !llvm::equal(arguments, function.getArguments()) ||
      !llvm::equal(returned,
                   function.getBody().front().getTerminator()->getOperands()))
    return function.emitError("the kernel is no group: its members do not fit "
                              "one grid, or it passes on their operands and "
                              "results in another order");
  return group;
}

namespace {

/// Members that are the same kernel.
using Alike = SmallVector<GroupMember *>;

/// The buffers of the member of this number, of those that are alike. `which`:
/// null if there is one.
SmallVector<Value> selectBuffers(NumberBuilder &b, func::FuncOp function,
                                 const KernelGroup &group,
                                 ArrayRef<GroupMember *> alike, Value which) {
  SmallVector<Value> buffers;
  auto argument = [&](const GroupMember &member, unsigned number) -> Value {
    return function.getArgument(getArgument(group, member, number));
  };
  for (unsigned i = 0; i < alike.front()->kernel.getNumArguments(); ++i)
    buffers.push_back(argument(*alike.front(), i));
  for (size_t other = 1; other < alike.size(); ++other) {
    Value isOther = b.isEqual(which, b.number(other));
    for (auto [i, buffer] : llvm::enumerate(buffers))
      if (Value own = argument(*alike[other], static_cast<unsigned>(i));
          own != buffer)
        buffer = arith::SelectOp::create(b, isOther, own, buffer);
  }
  return buffers;
}

} // namespace

LogicalResult emitGroup(func::FuncOp function, ModuleOp target) {
  KernelGroup group = PARTITA_TRY(readGroup(function));
  func::FuncOp func = declareKernel(function, group.getInPlace(), target);
  NumberBuilder b(function.getLoc(), func.getBody().front().getTerminator());
  Value block = NVVM::BlockIdXOp::create(b, b.getI32Type());
  llvm::MapVector<Operation *, Alike> kernels;
  for (GroupMember &member : group.members)
    kernels[member.kernel].push_back(&member);
  llvm::SmallDenseSet<Value> unaligned;
  int64_t first = 0;
  size_t number = 0;
  for (auto &[op, alike] : kernels) {
    func::FuncOp kernel = alike.front()->kernel;
    const GridSchedule &schedule = alike.front()->schedule;
    const int64_t blocks = schedule.getBlocks(), count = alike.size();
    // Blocks before the first one wrap around.
    Value own = b.sub(block, b.number(first));
    b.when(b.isBelow(own, b.number(blocks * count)), [&] {
      Value which;
      if (count > 1) {
        which = b.div(own, b.number(blocks));
        own = b.rem(own, b.number(blocks));
      }
      SmallVector<Value> buffers = selectBuffers(b, func, group, alike, which);
      for (auto [i, buffer] : llvm::enumerate(buffers))
        if (kernel.getArgAttr(i, kUnalignedAttr))
          unaligned.insert(buffer);
      emitThread(b, kernel, schedule, target,
                 (function.getName() + "_" + Twine(number++)).str(), buffers,
                 own);
    });
    first += blocks * count;
  }
  alignVectors(func, unaligned);
  return success();
}

} // namespace partita::codegen::cuda
