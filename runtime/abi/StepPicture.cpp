//===- StepPicture.cpp - The order of a step as papers draw it ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/StepPicture.h"

#include "runtime/abi/Text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

namespace partita::abi {
namespace {

constexpr int64_t kMostDevices = 8, kMostMicroBatches = 32;
constexpr int64_t kLineWidth = 160;
constexpr const char *kLetters[][2] = {
    {"P", "once a step"},         {"F", "forward"},    {"B", "backward"},
    {"I", "gradients of values"}, {"W", "of weights"}, {"U", "update"}};

using SentKey = std::pair<int64_t, int64_t>; // channel, micro-batch

/// A unit of a device, in columns.
struct Cell {
  int64_t begin = 0, columns = 1;
  std::string label;
};

bool isOnce(char letter) { return letter == 'P' || letter == 'U'; }

bool isPart(const std::string &unit) {
  return unit.find('.') != std::string::npos;
}

/// The units of a device that have begun, and what it does next.
class DrawnDevice {
public:
  DrawnDevice(const DrawnProgram &program, double nsPerColumn)
      : program(program), nsPerColumn(nsPerColumn) {}

  bool isDone() const { return next == program.actions.size(); }
  int64_t getTime() const { return time; }
  const std::vector<Cell> &getCells() const { return cells; }

  /// Goes as far as it need not wait. `arrived`: when what was sent is there;
  /// `taken`: when it is used no more; `released`: what is used until a
  /// release. Returns whether it went on at all.
  bool advance(std::map<SentKey, int64_t> &arrived,
               std::map<SentKey, int64_t> &taken,
               const std::set<SentKey> &released) {
    const size_t before = next;
    for (; !isDone(); ++next) {
      const ProgramAction &action = program.actions[next];
      const SentKey key(action.subject, action.micro_batch);
      switch (action.kind) {
      case ActionKind::run:
        run(program.units[size_t(action.subject)], action.micro_batch);
        break;
      case ActionKind::send:
        arrived[key] = time;
        break;
      case ActionKind::release:
        taken[key] = time;
        break;
      case ActionKind::recv:
        if (!waitFor(arrived, key))
          return next > before;
        if (released.count(key) == 0)
          taken[key] = time;
        break;
      case ActionKind::wait:
        if (!waitFor(taken, key))
          return next > before;
        break;
      default:
        break;
      }
    }
    return next > before;
  }

private:
  bool waitFor(const std::map<SentKey, int64_t> &times, SentKey key) {
    auto it = times.find(key);
    if (it == times.end())
      return false;
    time = std::max(time, it->second);
    return true;
  }

  void run(const DrawnProgram::Unit &unit, int64_t microBatch) {
    const int64_t columns = std::max<int64_t>(
        1, std::llround(double(unit.duration_ns) / nsPerColumn));
    if (isPart(unit.name) && !cells.empty() &&
        cells.back().begin + cells.back().columns == time) {
      cells.back().columns += columns;
    } else {
      const std::string stage = unit.name.substr(1);
      if (firstStage.empty())
        firstStage = stage;
      const char letter = stage == firstStage
                              ? unit.name[0]
                              : static_cast<char>(std::tolower(
                                    static_cast<unsigned char>(unit.name[0])));
      cells.push_back(
          {time, columns,
           std::string(1, letter) +
               (isOnce(unit.name[0]) ? "" : std::to_string(microBatch))});
    }
    time += columns;
  }

  const DrawnProgram &program;
  const double nsPerColumn;
  size_t next = 0;
  int64_t time = 0;
  std::vector<Cell> cells;
  std::string firstStage;
};

struct Picture {
  std::vector<DrawnDevice> devices;
  int64_t columns = 0;
  size_t columnWidth = 1; ///< characters
  bool isComplete = true;
};

Picture draw(const std::vector<DrawnProgram> &programs, double nsPerColumn) {
  Picture picture;
  std::set<SentKey> released;
  for (const DrawnProgram &program : programs) {
    picture.devices.emplace_back(program, nsPerColumn);
    for (const ProgramAction &action : program.actions)
      if (action.kind == ActionKind::release)
        released.insert({action.subject, action.micro_batch});
  }
  std::map<SentKey, int64_t> arrived, taken;
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (DrawnDevice &device : picture.devices)
      goesOn |= device.advance(arrived, taken, released);
  }
  for (const DrawnDevice &device : picture.devices) {
    picture.isComplete &= device.isDone();
    picture.columns = std::max(picture.columns, device.getTime());
    for (const Cell &cell : device.getCells())
      picture.columnWidth = std::max(picture.columnWidth, cell.label.size());
  }
  return picture;
}

std::string lineOf(const DrawnDevice &device, size_t columnWidth) {
  std::string line;
  for (const Cell &cell : device.getCells()) {
    line.resize(size_t(cell.begin) * columnWidth, ' ');
    line += cell.label;
    line.resize(size_t(cell.begin + cell.columns) * columnWidth, '-');
  }
  while (!line.empty() && line.back() == '-')
    line.pop_back();
  return line;
}

/// What the letters of a picture mean.
std::string legend(const Picture &picture) {
  std::set<char> used;
  for (const DrawnDevice &device : picture.devices)
    for (const Cell &cell : device.getCells())
      used.insert(cell.label[0]);
  std::string text;
  bool hasSmall = false;
  for (const auto &[letter, meaning] : kLetters) {
    const char small = static_cast<char>(std::tolower(letter[0]));
    hasSmall |= used.count(small) > 0;
    if (used.count(letter[0]) + used.count(small) > 0)
      text += (text.empty() ? "" : ", ") + std::string(letter) + " " + meaning;
  }
  return text + (hasSmall ? "; small: a later stage of the device" : "");
}

} // namespace

bool isDrawn(int64_t devices, int64_t micro_batches) {
  return devices > 1 && devices <= kMostDevices &&
         micro_batches <= kMostMicroBatches;
}

std::string stepPicture(const std::vector<DrawnProgram> &programs) {
  size_t nameWidth = 0;
  int64_t shortest = 0, longest = 1;
  for (const DrawnProgram &program : programs) {
    nameWidth = std::max(nameWidth, program.device.size());
    for (const DrawnProgram::Unit &unit : program.units) {
      longest = std::max(longest, unit.duration_ns);
      if (!isOnce(unit.name[0]) && !isPart(unit.name) && unit.duration_ns > 0 &&
          (shortest == 0 || unit.duration_ns < shortest))
        shortest = unit.duration_ns;
    }
  }
  const int64_t room = kLineWidth - int64_t(nameWidth) - 2;
  if (programs.size() < 2 || shortest == 0)
    return "";
  // The shortest unit is a column, if that is not too wide.
  constexpr double kCoarser = 1.25;
  double nsPerColumn = double(shortest);
  Picture picture = draw(programs, nsPerColumn);
  while (picture.columns * int64_t(picture.columnWidth) > room &&
         nsPerColumn < 2 * double(longest)) {
    nsPerColumn *= kCoarser;
    picture = draw(programs, nsPerColumn);
  }
  if (!picture.isComplete)
    return "";
  std::string text = "a step, " + timeText(nsPerColumn) + " a column (" +
                     legend(picture) + "):\n";
  for (size_t i = 0; i < programs.size(); ++i) {
    std::string line = programs[i].device;
    line.resize(nameWidth + 2, ' ');
    line += lineOf(picture.devices[i], picture.columnWidth);
    if (line.size() > size_t(kLineWidth))
      line = line.substr(0, size_t(kLineWidth) - 3) + "...";
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

} // namespace partita::abi
