//===- PlanPlace.cpp - Where the values of a device lie -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value that outlives a run has as many copies as micro-batches of it are
// held at the same time: what is received is one where the receiver reads it at
// once, and what is sent alternates between two. A value with several becomes a
// frame. Values with many that live through the same actions share one. All
// others have the same bytes on every micro-batch.
//
// Times are `position of the action in the program * width + 1 + index of the
// instruction in the unit`. On the folded axis (Placement.h) a unit's times are
// the same with the unit's number for the position; the load program comes
// last.
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/plan/Placement.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <array>
#include <map>

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_PLANPLACEPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

/// The instructions of a unit that first write and last use a slot.
struct UnitUse {
  int64_t firstWrite = -1, lastUse = -1;

  int64_t begin() const { return firstWrite >= 0 ? firstWrite : lastUse; }
};

struct UnitTimes {
  plan::UnitOp unit;
  llvm::MapVector<Value, UnitUse> uses; ///< of slots in the arena
  std::vector<int64_t> runs;            ///< positions
};

int64_t countLanes(Value slot) {
  return slot.getDefiningOp<plan::SlotOp>().getLanes();
}

bool isInArena(Value slot) {
  return slot.getDefiningOp<plan::SlotOp>().getSpace() == plan::Space::arena;
}

int64_t getBytes(Value slot) {
  return slot.getDefiningOp<plan::SlotOp>().getByteSize();
}

/// The fewest copies such that no micro-batch is held while a later one has its
/// copy. `held`: by micro-batch.
int64_t countCopies(const std::map<int64_t, LiveRange> &held) {
  std::vector<std::pair<int64_t, int>> changes; // time, one more or less
  for (const auto &[m, range] : held) {
    changes.push_back({range.begin, -1});
    changes.push_back({range.end, 1});
  }
  std::sort(changes.begin(), changes.end());
  int64_t alive = 0, most = 1;
  for (auto [time, change] : changes)
    most = std::max(most, alive -= change);
  const int64_t last = held.rbegin()->first;
  auto suffices = [&](int64_t copies) {
    std::vector<std::pair<int64_t, LiveRange>> byCopy;
    for (const auto &[m, range] : held)
      byCopy.push_back({m % copies, range});
    std::sort(byCopy.begin(), byCopy.end(), [](auto &a, auto &b) {
      return a.first != b.first ? a.first < b.first
                                : a.second.begin < b.second.begin;
    });
    for (size_t i = 1; i < byCopy.size(); ++i)
      if (byCopy[i].first == byCopy[i - 1].first &&
          byCopy[i].second.begin <= byCopy[i - 1].second.end)
        return false;
    return true;
  };
  while (most <= last && !suffices(most))
    ++most;
  return most;
}

/// How many copies of a value are placed one by one. Of more, those of all
/// values that live through the same actions are placed together: the bytes
/// that a value does not need at the beginning or the end of its life are those
/// of one copy among many, and thousands of buffers become hundreds.
constexpr int64_t kMostOwnCopies = 8;

/// Of how many buffers a frame consists at most. Of more copies, some that
/// follow one another are one buffer.
constexpr int64_t kMostBuffers = 64;

/// When each micro-batch of a value is held.
using Held = std::map<int64_t, LiveRange>;

struct Frame {
  int64_t bytes = 0; ///< of a copy
  int64_t copies = 1, copiesInBuffer = 1;
  plan::FrameOp op; ///< null: it is not written yet
};

class ProgramPlacer {
public:
  explicit ProgramPlacer(plan::ProgramOp program) : program(program) {}

  void place() {
    findMembers();
    fillWhatIsSummedUpon();
    collectTimes();
    addLastingValues();
    addLocalValues();
    addLoadValues();
    shareInPlace();
    const Placement arena = placeBuffers(buffers);
    program.setArenaBytes(arena.bytes);
    placeConstants();
    copyWhatIsSummedUpon();
    for (auto slot : llvm::make_early_inc_range(
             program.getBody().front().getOps<plan::SlotOp>()))
      if (slot.getSpace() == plan::Space::arena)
        write(slot, arena);
  }

private:
  //===--------------------------------------------------------------------===//
  // Times
  //===--------------------------------------------------------------------===//

  void collectTimes() {
    Block &body = program.getBody().front();
    llvm::StringMap<size_t> numbers;
    for (auto unit : body.getOps<plan::UnitOp>()) {
      numbers[unit.getSymName()] = units.size();
      units.push_back({unit, {}, {}});
      collectUses(unit.getBody().front(), units.back().uses);
      width = std::max<int64_t>(width,
                                llvm::range_size(unit.getBody().front()) + 2);
    }
    for (auto load : body.getOps<plan::LoadOp>())
      collectUses(load.getBody().front(), loadUses);
    for (auto action : body.getOps<plan::ActionOpInterface>()) {
      if (auto run = dyn_cast<plan::RunOp>(*action)) {
        unitOf.push_back(static_cast<int>(numbers.lookup(run.getUnit())));
        units[unitOf.back()].runs.push_back(actions.size());
      } else {
        unitOf.push_back(-1);
      }
      actions.push_back(action);
    }
  }

  static void collectUses(Block &body, llvm::MapVector<Value, UnitUse> &uses) {
    for (auto [index, op] : llvm::enumerate(body)) {
      auto instruction = cast<plan::InstructionOpInterface>(op);
      for (Value slot : instruction.getInstructionReads())
        if (isInArena(slot))
          uses[slot].lastUse = index;
      for (Value slot : instruction.getInstructionWrites())
        if (isInArena(slot)) {
          UnitUse &use = uses[slot];
          use.lastUse = index;
          if (use.firstWrite < 0)
            use.firstWrite = index;
        }
    }
  }

  int64_t unitBegin(size_t unit) const { return int64_t(unit) * width; }

  /// A range of the whole program, added to the folded axis.
  void fold(LiveRange range, LiveRanges &live) const {
    for (size_t u = 0; u < units.size(); ++u) {
      const std::vector<int64_t> &runs = units[u].runs;
      for (auto run =
               std::lower_bound(runs.begin(), runs.end(), range.begin / width);
           run != runs.end() && *run * width <= range.end; ++run) {
        const int64_t at = *run * width;
        const int64_t begin = std::max(range.begin - at, int64_t(0)),
                      end = std::min(range.end - at, width - 1);
        addLiveRange(live, {unitBegin(u) + begin, unitBegin(u) + end});
        if (begin == 0 && end == width - 1)
          break; // no run tells more
      }
    }
  }

  /// The times of a buffer that lives within units, on the whole program's
  /// axis.
  LiveRanges unfold(const LiveRanges &live) const {
    LiveRanges exact;
    for (LiveRange range : live) {
      const size_t unit = static_cast<size_t>(range.begin / width);
      if (unit >= units.size())
        continue; // of the load program
      for (int64_t run : units[unit].runs)
        addLiveRange(exact, {run * width + range.begin - unitBegin(unit),
                             run * width + range.end - unitBegin(unit)});
    }
    return exact;
  }

  //===--------------------------------------------------------------------===//
  // Buffers
  //===--------------------------------------------------------------------===//

  Buffer &addBuffer(Value slot) {
    copies[slot].push_back(buffers.size());
    buffers.push_back({getBytes(slot), {}, {}});
    return buffers.back();
  }

  /// Every micro-batch of a value lives from the action that writes it to the
  /// last one that needs it.
  void addLastingValues() {
    llvm::MapVector<Value, Held> held;
    llvm::DenseMap<Value, int> users; // units; an action counts as two
    for (const UnitTimes &each : units)
      for (const auto &[slot, use] : each.uses)
        ++users[slot];
    for (plan::ActionOpInterface action : actions)
      if (Value slot = action.getActionSlot(); slot && isInArena(slot))
        users[slot] += 2;
    auto use = [&](Value slot, int64_t m, int64_t begin, int64_t end) {
      auto op = slot.getDefiningOp<plan::SlotOp>();
      if (op.getSpan() != plan::Span::micro_batch)
        m = 0; // it is one for all
      // Lanes live as long as each other, and so do sums that are joined.
      if (op.getSum())
        slot = op.getSum();
      else if (Value joined = joinedOf.lookup(slot))
        slot = joined;
      for (int64_t lane = 0; lane < countLanes(slot); ++lane) {
        auto [it, isNew] =
            held[slot].try_emplace(m + lane, LiveRange{begin, end});
        it->second.begin = std::min(it->second.begin, begin);
        it->second.end = std::max(it->second.end, end);
      }
    };
    using Key = std::pair<Attribute, int64_t>;
    llvm::DenseMap<Key, Value> sent; // until its wait
    llvm::DenseMap<Key, std::pair<Value, int64_t>> started;
    for (auto [position, action] : llvm::enumerate(actions)) {
      const int64_t at = position * width, m = action.getActionMicroBatch();
      if (unitOf[position] >= 0) {
        for (const auto &[slot, used] : units[unitOf[position]].uses)
          if (users.lookup(slot) > 1 ||
              slot.getDefiningOp<plan::SlotOp>().getSum() ||
              countLanes(slot) > 1 || joinedOf.count(slot))
            use(slot, m, at + 1 + used.begin(), at + 1 + used.lastUse);
        continue;
      }
      Value slot = action.getActionSlot();
      const std::pair key(action.getActionSubject(), m);
      if (action.getActionKind() == abi::ActionKind::send)
        sent[key] = slot;
      else if (action.getActionKind() == abi::ActionKind::wait)
        slot = sent[key];
      else if (action.getActionKind() == abi::ActionKind::start)
        started[key] = {slot, at};
      else if (action.getActionKind() == abi::ActionKind::finish) {
        // Both slots are in use from its start to its finish.
        auto [source, begin] = started[key];
        if (source && isInArena(source))
          use(source, m, begin, at);
        if (isInArena(slot))
          use(slot, m, begin, at);
        continue;
      }
      if (slot && isInArena(slot))
        use(slot, m, at, at);
    }
    std::map<std::vector<std::array<int64_t, 3>>, size_t> byLife;
    std::vector<std::pair<SmallVector<Value>, Held>> together;
    for (const auto &[slot, ranges] : held) {
      const int64_t count =
          countLanes(slot) > 1 ? countLanes(slot) : countCopies(ranges);
      if (count <= kMostOwnCopies || countLanes(slot) > 1) {
        addCopies({slot}, ranges, count);
        continue;
      }
      std::vector<std::array<int64_t, 3>> life; // micro-batch, actions
      for (const auto &[m, range] : ranges)
        life.push_back({m, range.begin / width, range.end / width});
      auto [it, isNew] = byLife.try_emplace(std::move(life), together.size());
      if (isNew)
        together.push_back({{}, ranges});
      auto &[slots, all] = together[it->second];
      slots.push_back(slot);
      for (const auto &[m, range] : ranges) {
        all[m].begin = std::min(all[m].begin, range.begin);
        all[m].end = std::max(all[m].end, range.end);
      }
    }
    for (const auto &[slots, ranges] : together)
      addCopies(slots, ranges, countCopies(ranges));
    for (auto slot : program.getBody().front().getOps<plan::SlotOp>())
      if (slot.getSum() && copies.count(slot.getSum()))
        copies[slot.getSlot()] = {
            copies[slot.getSum()][static_cast<size_t>(*slot.getLane())]};
    for (auto [member, joined] : joinedOf) {
      const std::vector<size_t> list = copies[joined];
      copies[member] = list;
    }
  }

  /// The buffers of values that are held at the same times, in `count` copies.
  void addCopies(ArrayRef<Value> slots, const Held &held, int64_t count) {
    Frame frame;
    frame.copies = count;
    frame.copiesInBuffer = llvm::divideCeil(count, kMostBuffers);
    for (Value slot : slots) {
      inFrame[slot] = frame.bytes;
      frame.bytes += slots.size() == 1 && frame.copiesInBuffer == 1
                         ? getBytes(slot)
                         : llvm::alignTo(getBytes(slot), kAlignment);
    }
    std::vector<Buffer> made(
        static_cast<size_t>(llvm::divideCeil(count, frame.copiesInBuffer)));
    for (const auto &[m, range] : held)
      addLiveRange(
          made[static_cast<size_t>(m % count / frame.copiesInBuffer)].exact,
          range);
    for (Value slot : slots)
      for (size_t i = 0; i < made.size(); ++i)
        copies[slot].push_back(buffers.size() + i);
    for (Value slot : slots)
      frameOf[slot] = frames.size();
    frames.push_back(frame);
    for (Buffer &each : made) {
      for (LiveRange range : each.exact)
        fold(range, each.live);
      each.bytes = frame.copiesInBuffer * frame.bytes;
      buffers.push_back(std::move(each));
    }
  }

  /// Where sums lie that a collective adds up at once.
  void findMembers() {
    for (auto slot : program.getBody().front().getOps<plan::SlotOp>()) {
      int64_t offset = 0;
      for (Value member : slot.getMembers()) {
        joinedOf[member] = slot.getSlot();
        inFrame[member] = offset;
        offset += getBytes(member);
      }
    }
  }

  void addLocalValues() {
    for (auto [number, each] : llvm::enumerate(units))
      for (const auto &[slot, use] : each.uses)
        if (!copies.count(slot))
          addLiveRange(addBuffer(slot).live,
                       {unitBegin(number) + 1 + use.begin(),
                        unitBegin(number) + 1 + use.lastUse});
  }

  void addLoadValues() {
    const int64_t begin = unitBegin(units.size());
    for (const auto &[slot, use] : loadUses)
      if (!copies.count(slot))
        addLiveRange(addBuffer(slot).live,
                     {begin + use.begin(), begin + use.lastUse});
  }

  /// The only buffer of a slot; -1 if it has several, none in the arena, or one
  /// that others have, too.
  int64_t getBuffer(Value slot) const {
    auto it = copies.find(slot);
    if (joinedOf.count(slot))
      return -1;
    return it != copies.end() && it->second.size() == 1
               ? static_cast<int64_t>(it->second[0])
               : -1;
  }

  //===--------------------------------------------------------------------===//
  // In place
  //===--------------------------------------------------------------------===//

  void shareInPlace() {
    for (auto [number, each] : llvm::enumerate(units))
      for (auto [index, op] : llvm::enumerate(each.unit.getBody().front())) {
        auto instruction = dyn_cast<plan::InstructionOpInterface>(op);
        if (!instruction)
          continue;
        for (auto [operand, result] : instruction.getInstructionInPlace())
          tryShare(number, index, &op, operand, result);
      }
  }

  /// Lets a result take over the bytes of an operand that nobody needs after
  /// this instruction: their lives meet nowhere but here.
  void tryShare(size_t unit, int64_t index, Operation *op, Value operand,
                Value result) {
    const int64_t from = getBuffer(operand), to = getBuffer(result);
    if (from < 0 || to < 0 || from == to ||
        buffers[from].bytes != buffers[to].bytes)
      return;
    // Read once only, and by no other operand that shares its bytes.
    if (llvm::count_if(op->getOperands(), [&](Value slot) {
          return getBuffer(slot) == from;
        }) != 1)
      return;
    Buffer &a = buffers[from], &b = buffers[to];
    const bool exactly = !a.exact.empty() && !b.exact.empty();
    for (LiveRange x : exactly ? a.exact : a.live)
      for (LiveRange y : exactly ? b.exact : b.live) {
        const int64_t begin = std::max(x.begin, y.begin),
                      end = std::min(x.end, y.end);
        if (begin > end)
          continue;
        const int64_t place = begin / width;
        const bool isHere =
            begin == end && begin % width == 1 + index &&
            (exactly ? unitOf[place] : place) == static_cast<int64_t>(unit);
        // A result that nothing reads must not be written upon what is needed
        // later.
        if (!isHere || (y.end == end && x.end > end))
          return;
      }
    if (!a.exact.empty() || !b.exact.empty()) {
      if (b.exact.empty())
        b.exact = unfold(b.live);
      for (LiveRange range : a.exact.empty() ? unfold(a.live) : a.exact)
        addLiveRange(b.exact, range);
    }
    for (LiveRange range : a.live)
      addLiveRange(b.live, range);
    a = Buffer();
    for (auto &[slot, list] : copies)
      std::replace(list.begin(), list.end(), static_cast<size_t>(from),
                   static_cast<size_t>(to));
  }

  /// The instruction of the load program that fills a constant with numbers
  /// that its kernel knows, or null.
  plan::DispatchOp findFill(Value slot) {
    for (Operation *user : slot.getUsers())
      if (auto fill = dyn_cast<plan::DispatchOp>(user);
          fill && isa<plan::LoadOp>(fill->getParentOp()) &&
          fill.getInputs().empty() && fill.getOutputs().size() == 1)
        return fill;
    return {};
  }

  /// A call that adds upon such a constant, as rows are added upon zeros, adds
  /// upon its own result, which the kernel fills before. So nobody keeps a
  /// table of zeros.
  void fillWhatIsSummedUpon() {
    SmallVector<plan::CallOp> calls;
    for (auto unit : program.getBody().front().getOps<plan::UnitOp>())
      llvm::append_range(calls, unit.getBody().front().getOps<plan::CallOp>());
    for (plan::CallOp call : calls)
      for (auto [operand, result] : call.getCall().getInPlacePairs()) {
        Value from = call.getInputs()[operand], to = call.getOutputs()[result];
        plan::DispatchOp fill = findFill(from);
        if (!fill || from.getType() != to.getType() ||
            llvm::is_contained(call.getInputs(), to))
          continue;
        auto copy = cast<plan::DispatchOp>(OpBuilder(call).clone(*fill));
        copy.getOutputsMutable()[0].set(to);
        call.getInputsMutable()[operand].set(to);
        if (!from.hasOneUse())
          continue;
        plan::LoadOp load = fill->getParentOfType<plan::LoadOp>();
        fill.erase();
        from.getDefiningOp()->erase();
        if (load.getBody().front().empty())
          load.erase();
      }
  }

  /// Whether these are the old and the new value of a state.
  static bool areOneState(Value from, Value to) {
    auto a = from.getDefiningOp<plan::SlotOp>(),
         b = to.getDefiningOp<plan::SlotOp>();
    return a.getSpace() == plan::Space::state && a.getSpace() == b.getSpace() &&
           a.getWeight() == b.getWeight();
  }

  /// What a call adds upon must be in the result's bytes before.
  void copyWhatIsSummedUpon() {
    auto visit = [&](Block &body) {
      for (Operation &op : llvm::make_early_inc_range(body)) {
        auto call = dyn_cast<plan::CallOp>(op);
        if (!call)
          continue;
        // A call shares bytes only with what it adds upon.
        for (auto [operand, result] : call.getCall().getInPlacePairs()) {
          Value from = call.getInputs()[operand],
                to = call.getOutputs()[result];
          if (from == to)
            continue;
          if ((getBuffer(from) >= 0 && getBuffer(from) == getBuffer(to)) ||
              areOneState(from, to))
            continue;
          OpBuilder builder(call);
          plan::CopyOp::create(builder, call.getLoc(), from, to,
                               call.getLabel(), 0);
          call.getInputsMutable()[operand].set(to);
        }
      }
    };
    for (UnitTimes &each : units)
      visit(each.unit.getBody().front());
    for (auto load : program.getBody().front().getOps<plan::LoadOp>())
      visit(load.getBody().front());
  }

  //===--------------------------------------------------------------------===//
  // Offsets
  //===--------------------------------------------------------------------===//

  void placeConstants() {
    std::vector<plan::SlotOp> slots;
    std::vector<Buffer> fixed;
    for (auto slot : program.getBody().front().getOps<plan::SlotOp>())
      if (slot.getSpace() == plan::Space::constant) {
        slots.push_back(slot);
        fixed.push_back({slot.getByteSize(), {{0, 0}}, {}});
      }
    const Placement placement = placeBuffers(fixed);
    program.setConstantBytes(placement.bytes);
    for (auto [slot, offset] : llvm::zip(slots, placement.offsets))
      slot.setOffset(offset);
  }

  void write(plan::SlotOp slot, const Placement &arena) {
    auto it = copies.find(slot.getSlot());
    if (it == copies.end()) {
      slot.erase(); // used by nothing
      return;
    }
    const std::vector<size_t> &list = it->second;
    if (list.size() == 1) {
      slot.setOffset(
          arena.offsets[list[0]] +
          (joinedOf.count(slot) ? inFrame.lookup(slot.getSlot()) : 0));
      return;
    }
    Frame &frame = frames[frameOf.lookup(slot.getSlot())];
    if (!frame.op) {
      OpBuilder builder(slot);
      SmallVector<int64_t> begins;
      for (int64_t i = 0; i < frame.copies; ++i)
        begins.push_back(
            arena.offsets[list[static_cast<size_t>(i / frame.copiesInBuffer)]] +
            i % frame.copiesInBuffer * frame.bytes);
      frame.op =
          plan::FrameOp::create(builder, slot.getLoc(), frame.bytes, begins);
    }
    slot.setSpace(plan::Space::frame);
    slot.setOffset(inFrame.lookup(slot.getSlot()));
    slot.getFrameMutable().assign(frame.op.getFrame());
  }

  plan::ProgramOp program;
  int64_t width = 2;
  std::vector<UnitTimes> units;
  llvm::MapVector<Value, UnitUse> loadUses;
  std::vector<plan::ActionOpInterface> actions;
  std::vector<int> unitOf; ///< by action; -1: it is no run
  std::vector<Buffer> buffers;
  llvm::MapVector<Value, std::vector<size_t>> copies; ///< buffers, by slot
  /// Offsets in a frame, or in what it is joined to, by slot.
  llvm::DenseMap<Value, int64_t> inFrame;
  llvm::MapVector<Value, Value> joinedOf; ///< by slot
  std::vector<Frame> frames;
  llvm::DenseMap<Value, size_t> frameOf; ///< by slot
};

struct PlanPlacePass : impl::PlanPlacePassBase<PlanPlacePass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      ProgramPlacer(program).place();
  }
};

} // namespace
} // namespace partita::pipeline
