//===- OrderFile.cpp - Orders that a person writes ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/OrderFile.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

namespace partita::schedule {
namespace {

constexpr int kMostStages = 4096, kMostMicroBatches = 65536;

bool isDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text) {
  auto isBlank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && isBlank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isBlank(text.back()))
    text.remove_suffix(1);
  return text;
}

/// Takes the digits at the begin of a text; -1 if there are none, or the number
/// is larger than all that may be.
int takeNumber(std::string_view &text) {
  if (text.empty() || !isDigit(text.front()))
    return -1;
  int number = 0;
  for (; !text.empty() && isDigit(text.front()); text.remove_prefix(1))
    number = std::min(10 * number + (text.front() - '0'), 1 << 24);
  return number < 1 << 24 ? number : -1;
}

std::string quote(std::string_view text) {
  constexpr size_t mostShown = 40;
  std::string shown = "'";
  for (char c : text.substr(0, mostShown))
    shown += std::isprint(static_cast<unsigned char>(c)) ? c : '?';
  return shown + (text.size() > mostShown ? "...'" : "'");
}

/// A cell of the file, and where it stands.
struct Cell {
  std::string_view text;
  int rank, number;
  int line, column;
};

class OrderParser {
public:
  OrderParser(std::string_view text, OrderFile &file)
      : text(text), file(file) {}

  std::optional<OrderError> parse() {
    if (!split())
      return error;
    for (const Cell &cell : cells)
      if (!addCell(cell, cell.text))
        return error;
    if (!checkStages())
      return error;
    return std::nullopt;
  }

private:
  bool fail(const Cell &at, std::string message) {
    error = {std::move(message), at.line, at.column};
    return false;
  }

  //===--- Cells ----------------------------------------------------------===//

  bool split() {
    std::vector<std::string_view> lines;
    for (std::string_view left = text; !left.empty();) {
      const size_t end = left.find('\n');
      lines.push_back(left.substr(0, end));
      left.remove_prefix(std::min(left.size(), lines.back().size() + 1));
    }
    size_t first = 0;
    while (first < lines.size() && trim(lines[first]).empty())
      ++first;
    if (first < lines.size() &&
        trim(lines[first]).substr(0, 6) == std::string_view("Rank 0"))
      return splitTable(lines, first);
    // A rank without actions is an empty line; at the end it is none.
    size_t end = lines.size();
    while (end > first && trim(lines[end - 1]).empty())
      --end;
    if (!checkRanks(end - first, static_cast<int>(first) + 1))
      return false;
    for (size_t l = first; l < end; ++l)
      splitRow(lines[l], static_cast<int>(l - first), static_cast<int>(l) + 1);
    return true;
  }

  /// A stage has one rank, so more ranks than stages have nothing to do.
  bool checkRanks(size_t count, int line) {
    if (count > kMostStages)
      return fail(Cell{{}, 0, 0, line, 1},
                  "orders " + std::to_string(count) + " devices; at most " +
                      std::to_string(kMostStages) + " are");
    file.ofRank.resize(count);
    return true;
  }

  void splitRow(std::string_view line, int rank, int number) {
    for (size_t begin = 0, count = 1; begin <= line.size(); ++count) {
      const size_t end = std::min(line.find(',', begin), line.size());
      addText(line.substr(begin, end - begin), rank, static_cast<int>(count),
              number, static_cast<int>(begin));
      begin = end + 1;
    }
  }

  /// A column for each rank, as wide as its header or its widest action.
  bool splitTable(const std::vector<std::string_view> &lines, size_t first) {
    std::vector<size_t> begins;
    const std::string_view header = lines[first];
    for (size_t at = header.find("Rank "); at != std::string_view::npos;
         at = header.find("Rank ", at + 1))
      begins.push_back(at);
    if (!checkRanks(begins.size(), static_cast<int>(first) + 1))
      return false;
    for (size_t l = first + 1; l < lines.size(); ++l) {
      const std::string_view line = lines[l];
      for (size_t rank = 0; rank < begins.size(); ++rank) {
        if (begins[rank] >= line.size())
          break;
        const size_t end =
            rank + 1 < begins.size() ? begins[rank + 1] : line.find(" <-- ");
        addText(line.substr(begins[rank],
                            std::max(std::min(end, line.size()), begins[rank]) -
                                begins[rank]),
                static_cast<int>(rank), static_cast<int>(l - first),
                static_cast<int>(l) + 1, static_cast<int>(begins[rank]));
      }
    }
    return true;
  }

  void addText(std::string_view cell, int rank, int number, int line,
               int begin) {
    std::string_view trimmed = trim(cell);
    if (trimmed.size() >= 2 && trimmed.front() == '"' && trimmed.back() == '"')
      trimmed = trim(trimmed.substr(1, trimmed.size() - 2));
    if (trimmed.empty())
      return;
    const auto before = static_cast<int>(trimmed.data() - cell.data());
    cells.push_back({trimmed, rank, number, line, begin + before + 1});
  }

  //===--- Actions --------------------------------------------------------===//

  bool addCell(const Cell &cell, std::string_view action) {
    if (action.front() != '(')
      return addAction(cell, action);
    const size_t end = action.find(')');
    if (end == std::string_view::npos ||
        action.substr(end + 1) != "OVERLAP_F_B")
      return fail(cell, quote(action) + " is no list of actions: write "
                                        "(0F3;1B2)OVERLAP_F_B");
    for (std::string_view left = action.substr(1, end - 1); !left.empty();) {
      const std::string_view one = left.substr(0, left.find(';'));
      if (std::string_view trimmed = trim(one);
          !trimmed.empty() && !addAction(cell, trimmed))
        return false;
      left.remove_prefix(std::min(left.size(), one.size() + 1));
    }
    return true;
  }

  bool addAction(const Cell &cell, std::string_view whole) {
    std::string_view left = whole;
    OrderAction action;
    action.rank = cell.rank;
    action.cell = cell.number;
    action.stage = takeNumber(left);
    const size_t letters = std::min(
        left.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), left.size());
    const std::string_view kind = left.substr(0, letters);
    left.remove_prefix(letters);
    for (std::string_view name :
         {"UNSHARD", "RESHARD", "REDUCE_GRAD", "WAIT_REDUCE_GRAD"})
      if (action.stage >= 0 && kind == name) {
        if (std::find(file.leftOut.begin(), file.leftOut.end(), name) ==
            file.leftOut.end())
          file.leftOut.emplace_back(name);
        return true;
      }
    for (std::string_view name :
         {"SEND_F", "RECV_F", "SEND_B", "RECV_B", "WAIT_SEND_F", "WAIT_SEND_B"})
      if (action.stage >= 0 && kind == name)
        return fail(cell, quote(whole) +
                              " is a transfer, which follows from the order: "
                              "leave transfers out (PyTorch writes such a file "
                              "with format=\"compute_only\")");
    action.microBatch = takeNumber(left);
    if (action.stage < 0 || action.microBatch < 0 || !left.empty() ||
        kind.size() != 1 ||
        std::string_view("FBIW").find(kind[0]) == std::string_view::npos)
      return fail(cell, quote(whole) +
                            " is no action: write a stage, F, B, I or W, and a "
                            "micro-batch, as in 2F0");
    if (action.stage >= kMostStages || action.microBatch >= kMostMicroBatches)
      return fail(cell, quote(whole) + ": stages are 0 to " +
                            std::to_string(kMostStages - 1) +
                            ", and micro-batches 0 to " +
                            std::to_string(kMostMicroBatches - 1));
    action.kind = kind[0];
    return enter(cell, action);
  }

  /// Stage, micro-batch, and F, I or W.
  using Key = std::tuple<int, int, char>;

  bool enter(const Cell &cell, const OrderAction &action) {
    const std::string kinds =
        action.kind == 'B' ? "IW" : std::string(1, action.kind);
    for (char kind : kinds) {
      auto [it, isNew] =
          known.try_emplace(Key(action.stage, action.microBatch, kind), action);
      if (isNew) {
        auto [last, isFirst] =
            newest.try_emplace(std::pair(action.stage, kind), action);
        if (!isFirst && last->second.microBatch > action.microBatch &&
            file.descent.empty())
          file.descent =
              action.describe() + " comes after " + last->second.describe();
        last->second = action;
        continue;
      }
      const OrderAction &other = it->second;
      if (other.kind == action.kind)
        return fail(cell, action.describe() +
                              " is there already: " + other.describe());
      return fail(cell, action.describe() +
                            " computes what is computed already: " +
                            other.describe() + "; B is I and W in one");
    }
    if (action.stage >= static_cast<int>(file.rankOf.size()))
      file.rankOf.resize(action.stage + 1, -1);
    int &rank = file.rankOf[action.stage];
    if (rank >= 0 && rank != action.rank)
      return fail(cell, action.describe() + ": stage " +
                            std::to_string(action.stage) + " is on rank " +
                            std::to_string(rank) + " already");
    rank = action.rank;
    file.microBatches = std::max(file.microBatches, action.microBatch + 1);
    file.hasBackward |= action.kind != 'F';
    file.isSplit |= action.kind == 'I' || action.kind == 'W';
    file.ofRank[action.rank].push_back(action);
    return true;
  }

  //===--- The whole ------------------------------------------------------===//

  bool checkStages() {
    const Cell whole{{}, 0, 0, 1, 1};
    if (file.rankOf.empty())
      return fail(whole, "orders nothing: a row for each device, as in "
                         "0F0,0F1,0B0,0B1");
    for (int s = 0; s < static_cast<int>(file.rankOf.size()); ++s)
      if (file.rankOf[s] < 0)
        return fail(whole, "has no action of stage " + std::to_string(s) +
                               ", and some of stage " +
                               std::to_string(file.rankOf.size() - 1));
    const std::string_view kinds = file.hasBackward ? "FIW" : "F";
    for (int s = 0; s < static_cast<int>(file.rankOf.size()); ++s)
      for (char kind : kinds)
        for (int m = 0; m < file.microBatches; ++m)
          if (!known.count(Key(s, m, kind)))
            return failMissing(s, kind, m);
    return true;
  }

  bool failMissing(int stage, char kind, int m) {
    OrderAction action;
    action.stage = stage;
    action.microBatch = m;
    action.kind = kind;
    if (kind != 'F' && !known.count(Key(stage, m, kind == 'I' ? 'W' : 'I')))
      action.kind = 'B';
    const int rank = file.rankOf[stage];
    const Cell row{{}, rank, 0, lineOf(rank), 1};
    return fail(row, action.getName() + " is in no cell of rank " +
                         std::to_string(rank) +
                         ": every stage has all micro-batches up to " +
                         std::to_string(file.microBatches - 1));
  }

  int lineOf(int rank) const {
    for (const Cell &cell : cells)
      if (cell.rank == rank)
        return cell.line;
    return 1;
  }

  std::string_view text;
  OrderFile &file;
  std::vector<Cell> cells;
  std::map<Key, OrderAction> known;
  std::map<std::pair<int, char>, OrderAction> newest; ///< by stage and kind
  OrderError error;
};

} // namespace

std::string OrderAction::getName() const {
  return std::to_string(stage) + kind + std::to_string(microBatch);
}

std::string OrderAction::describe() const {
  return getName() + " (rank " + std::to_string(rank) + ", cell " +
         std::to_string(cell) + ")";
}

std::optional<OrderError> parseOrders(std::string_view text, OrderFile &file) {
  return OrderParser(text, file).parse();
}

} // namespace partita::schedule
