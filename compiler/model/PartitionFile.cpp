//===- PartitionFile.cpp - What a partition file says ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/PartitionFile.h"

#include "compiler/files/Nesting.h"
#include "compiler/files/ReadFile.h"
#include "compiler/model/ByteSize.h"
#include "compiler/model/Decision.h"
#include "compiler/model/NodeNames.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

using namespace mlir;
namespace yaml = llvm::yaml;

namespace partita {

namespace {

/// The most blocks whose device a file names one by one.
constexpr size_t kMostNamedDevices = 1 << 16;
/// The most axes of a mesh. Most of them have one device.
constexpr size_t kMostAxes = 64;

class PartitionReader {
public:
  PartitionReader(StringRef text, FileErrorFn error)
      : text(text), error(error) {
    sources.setDiagHandler(
        [](const llvm::SMDiagnostic &diagnostic, void *self) {
          auto *reader = static_cast<PartitionReader *>(self);
          reader->report(diagnostic.getLineNo(), diagnostic.getColumnNo() + 1,
                         diagnostic.getMessage().str());
        },
        this);
    lines.push_back(text.begin());
    for (const char &c : text)
      if (c == '\n')
        lines.push_back(&c + 1);
    stream.emplace(text, sources, /*ShowColors=*/false);
  }

  FailureOr<PartitionFile> read() {
    FailureOr<PartitionFile> result = readDocument();
    // The parser gives up on some bytes without a word.
    if (failed(result))
      return fail(1, 1, "the file is not YAML");
    return result;
  }

private:
  FailureOr<PartitionFile> readDocument() {
    auto document = stream->begin();
    if (document == stream->end() || !document->getRoot() || failedAlready)
      return fail(1, 1, "the file is empty or not YAML");
    yaml::Node *root = document->getRoot();
    if (failedAlready)
      return failure();
    if (isa<yaml::NullNode>(root))
      return file;
    auto *mapping = dyn_cast<yaml::MappingNode>(root);
    if (!mapping)
      return fail(root, "expected `key: value` lines, e.g. `stages: [[B1], "
                        "[B2]]`");
    PARTITA_TRY(eachEntry(mapping, [&](const FileText &key, yaml::Node *value) {
      return readKey(key, value);
    }));
    if (failedAlready || stream->failed() || failed(checkNames()))
      return failure();
    return file;
  }

  void report(int line, int column, const std::string &message) {
    if (failedAlready)
      return;
    failedAlready = true;
    // Whatever is wrong behind a bracket that nothing closes is wrong because
    // of that.
    if (std::optional<files::OpenBracket> open = files::findOpenBracket(text))
      error(open->line, open->column, open->message);
    else
      error(line, column, message);
  }
  LogicalResult fail(int line, int column, const std::string &message) {
    report(line, column, message);
    return failure();
  }
  LogicalResult fail(const FileText &at, const std::string &message) {
    return fail(at.line, at.column, message);
  }
  LogicalResult fail(yaml::Node *node, const std::string &message) {
    return fail(place(node), message);
  }

  FileText place(yaml::Node *node) {
    // A node after an error may lie nowhere.
    if (!sources.FindBufferContainingLoc(node->getSourceRange().Start))
      return {"", 1, 1};
    const char *at = node->getSourceRange().Start.getPointer();
    auto line = std::prev(llvm::upper_bound(lines, at));
    return {"", static_cast<int>(line - lines.begin()) + 1,
            static_cast<int>(at - *line) + 1};
  }

  LogicalResult readText(yaml::Node *node, FileText &text) {
    auto *scalar = dyn_cast_or_null<yaml::ScalarNode>(node);
    if (!scalar)
      return node ? fail(node, "expected a name") : failure();
    text = place(scalar);
    SmallString<64> storage;
    text.text = scalar->getValue(storage).str();
    return success(!failedAlready);
  }

  LogicalResult readInteger(yaml::Node *node, int64_t least, int64_t &value) {
    FileText text;
    PARTITA_TRY(readText(node, text));
    if (StringRef(text.text).getAsInteger(10, value) || value < least ||
        value > (1 << 20))
      return fail(text, "expected a whole number of at least " +
                            std::to_string(least) + ", found '" + text.text +
                            "'");
    return success();
  }

  LogicalResult readBool(yaml::Node *node, bool &value) {
    FileText text;
    PARTITA_TRY(readText(node, text));
    if (text.text != "true" && text.text != "false")
      return fail(text, "expected true or false, found '" + text.text + "'");
    value = text.text == "true";
    return success();
  }

  LogicalResult readTexts(yaml::Node *node, std::vector<FileText> &texts,
                          size_t most = SIZE_MAX) {
    if (isa<yaml::ScalarNode>(node))
      return readText(node, texts.emplace_back());
    return eachItem(
        node, "a list, e.g. [\"/conv1/*\", \"/pool1\"]", most,
        [&](yaml::Node *item) { return readText(item, texts.emplace_back()); });
  }

  LogicalResult eachItem(yaml::Node *node, const std::string &expected,
                         size_t most,
                         llvm::function_ref<LogicalResult(yaml::Node *)> read) {
    auto *list = dyn_cast<yaml::SequenceNode>(node);
    if (!list)
      return fail(node, "expected " + expected);
    size_t count = 0;
    for (yaml::Node &item : *list) {
      if (count++ == most)
        return fail(&item, "there are more than " + std::to_string(most) +
                               " entries in this list");
      PARTITA_TRY(read(&item));
    }
    return success(!failedAlready);
  }

  LogicalResult eachEntry(
      yaml::Node *node,
      llvm::function_ref<LogicalResult(const FileText &, yaml::Node *)> entry) {
    auto *mapping = dyn_cast<yaml::MappingNode>(node);
    if (!mapping)
      return fail(node, "expected `name: value` entries");
    llvm::StringSet<> seen;
    for (yaml::KeyValueNode &pair : *mapping) {
      FileText key;
      if (failedAlready || failed(readText(pair.getKey(), key)))
        return failure();
      if (!seen.insert(key.text).second)
        return fail(key, "'" + key.text + "' stands here twice");
      yaml::Node *value = pair.getValue();
      if (!value || isa<yaml::NullNode>(value))
        return fail(key, "'" + key.text + "' has no value");
      PARTITA_TRY(entry(key, value));
    }
    return success(!failedAlready);
  }

  LogicalResult readChoice(yaml::Node *node, StringRef what,
                           ArrayRef<StringRef> known,
                           std::optional<FileText> &result) {
    FileText text;
    PARTITA_TRY(readText(node, text));
    if (!llvm::is_contained(known, text.text))
      return fail(text, "unknown " + what.str() + " '" + text.text + "' (" +
                            llvm::join(known, ", ") + ")" +
                            didYouMean(text.text, known));
    result = text;
    return success();
  }

  LogicalResult readKey(const FileText &key, yaml::Node *value) {
    if (key.text == "blocks")
      return eachEntry(value, [&](const FileText &name, yaml::Node *nodes) {
        return readTexts(nodes, getBlock(name).nodes);
      });
    if (key.text == "begin_blocks")
      return eachEntry(value, [&](const FileText &name, yaml::Node *node) {
        return readText(node, getBlock(name).begin.emplace());
      });
    if (key.text == "auto_stage")
      return readChoice(value, "auto_stage",
                        {"same_as_device", "auto_increment"}, file.autoStage);
    if (key.text == "strategy")
      return readChoice(value, "strategy", {"pipelined", kFormerSequential},
                        file.strategy);
    if (key.text == "schedule")
      return readSchedule(value);
    if (key.text == "micro_batches")
      return readInteger(value, 1, file.microBatches.emplace());
    if (key.text == "memory")
      return readBytes(value, file.memory);
    if (key.text == "stages") {
      file.stages.emplace();
      return eachItem(value, "the blocks of each stage, e.g. [[B1], [B2]]",
                      kMostStages, [&](yaml::Node *item) {
                        return readTexts(item, file.stages->emplace_back());
                      });
    }
    if (key.text == "mesh")
      return eachEntry(value, [&](const FileText &name, yaml::Node *size) {
        if (file.mesh.size() == kMostAxes)
          return fail(name, "a mesh has at most " + std::to_string(kMostAxes) +
                                " axes");
        return readAxis(name, size, file.mesh.emplace_back());
      });
    if (key.text == "data_parallel")
      return readAxis({dist::kDataAxis.str(), key.line, key.column}, value,
                      file.dataParallel.emplace());
    if (key.text == "tensor_parallel")
      return readAxis({dist::kTensorAxis.str(), key.line, key.column}, value,
                      file.tensorParallel.emplace());
    if (key.text == "shard")
      return eachEntry(value, [&](const FileText &name, yaml::Node *dims) {
        return readShard(name, dims);
      });
    if (key.text == "reproducible")
      return readBool(value, file.reproducible);
    if (key.text == "zero") {
      file.zeroAt = key;
      FileText text;
      PARTITA_TRY(readText(value, text));
      if (text.text == "auto") {
        file.zero = kAutoZero;
        return success();
      }
      if (int64_t level; StringRef(text.text).getAsInteger(10, level))
        return fail(text, "expected 0 to 3 or auto, found '" + text.text + "'");
      return readInteger(value, 0, file.zero.emplace());
    }
    if (key.text == "fusion_bytes") {
      if (auto *scalar = dyn_cast<yaml::ScalarNode>(value);
          scalar && scalar->getRawValue() == "0") {
        file.fusionBytes = 0;
        return success();
      }
      return readBytes(value, file.fusionBytes);
    }
    if (key.text == "targets") {
      if (!isa<yaml::SequenceNode>(value))
        return fail(value, "expected the target of each device, e.g. [cpu, "
                           "cuda:sm_90]");
      return readTexts(value, file.targets, dist::kMostDevices);
    }
    if (key.text == "devices") {
      file.devicesAt = place(value);
      return eachItem(value, "the device of each stage, e.g. [0, 1]",
                      kMostNamedDevices,
                      [&](yaml::Node *item) { return readDevice(item); });
    }
    static const SmallVector<StringRef> keys = {
        "blocks",  "begin_blocks", "auto_stage",    "stages",
        "devices", "targets",      "schedule",      "micro_batches",
        "memory",  "mesh",         "data_parallel", "tensor_parallel",
        "shard",   "reproducible", "zero",          "fusion_bytes",
        "strategy"};
    return fail(key, "unknown key '" + key.text + "' (" +
                         llvm::join(keys, ", ") + ")" +
                         didYouMean(key.text, keys));
  }

  LogicalResult readDevice(yaml::Node *node) {
    int64_t &device = file.devices.emplace_back();
    PARTITA_TRY(readInteger(node, 0, device));
    if (device >= dist::kMostDevices)
      return fail(node, "device " + std::to_string(device) +
                            " is beyond the last possible one, " +
                            std::to_string(dist::kMostDevices - 1));
    return success();
  }

  LogicalResult readSchedule(yaml::Node *node) {
    FileText text;
    PARTITA_TRY(readText(node, text));
    if (text.text != kFormerSequential && text.text != kAutoSchedule &&
        (text.text.empty() || !schedule::findSchedule(text.text)))
      return fail(text, describeUnknownSchedule(text.text));
    file.schedule = text;
    return success();
  }

  LogicalResult readBytes(yaml::Node *node, std::optional<int64_t> &bytes) {
    FileText text;
    PARTITA_TRY(readText(node, text));
    bytes = parseByteSize(text.text);
    if (!bytes)
      return fail(text, "expected a size, e.g. 512MiB or 2GB, found '" +
                            text.text + "'");
    return success();
  }

  LogicalResult readAxis(const FileText &name, yaml::Node *size,
                         FileAxis &axis) {
    axis.name = name;
    PARTITA_TRY(readInteger(size, 1, axis.size));
    if (axis.size > dist::kMostDevices)
      return fail(size, "an axis of " + std::to_string(axis.size) +
                            " devices: a plan has at most " +
                            std::to_string(dist::kMostDevices));
    return success();
  }

  LogicalResult readShard(const FileText &tensors, yaml::Node *node) {
    FileShard &shard = file.shards.emplace_back();
    shard.tensors = tensors;
    return eachItem(node, "an entry for each dimension, e.g. [tensor, null]",
                    SIZE_MAX, [&](yaml::Node *item) {
                      return readShardDim(item, shard.dims.emplace_back());
                    });
  }

  /// null, an axis, a list of axes, or {axis: blocks}.
  LogicalResult readShardDim(yaml::Node *node, FileShardDim &dim) {
    if (isa<yaml::NullNode>(node))
      return success();
    if (isa<yaml::MappingNode>(node)) {
      LogicalResult read =
          eachEntry(node, [&](const FileText &axis, yaml::Node *blocks) {
            dim.axes.push_back(axis);
            return readInteger(blocks, 1, dim.blocks);
          });
      if (succeeded(read) && dim.axes.size() != 1)
        return fail(node, "expected one axis and its number of parts, e.g. "
                          "{tensor: 3}");
      return read;
    }
    PARTITA_TRY(readTexts(node, dim.axes));
    if (isa<yaml::ScalarNode>(node) &&
        (dim.axes[0].text == "null" || dim.axes[0].text == "~"))
      dim.axes.clear();
    return success();
  }

  /// The block of that name: one may both begin at a node and have globs.
  FileBlock &getBlock(const FileText &name) {
    auto [it, isNew] = indexOf.try_emplace(name.text, file.blocks.size());
    if (isNew)
      file.blocks.emplace_back().name = name;
    return file.blocks[it->second];
  }

  LogicalResult checkNames() {
    // Unless blocks share a stage, each device is that of a stage.
    if (!file.autoStage && file.devices.size() > size_t(kMostStages))
      return fail(file.devicesAt,
                  "there are " + std::to_string(file.devices.size()) +
                      " devices, one for each stage, and a model has at most " +
                      std::to_string(kMostStages) + " stages");
    if (!file.stages)
      return success();
    llvm::StringMap<int> stageOf;
    for (auto [index, stage] : llvm::enumerate(*file.stages))
      for (const FileText &block : stage) {
        if (!indexOf.contains(block.text)) {
          SmallVector<StringRef> names;
          for (const FileBlock &known : file.blocks)
            names.push_back(known.name.text);
          return fail(block, "unknown block '" + block.text + "'" +
                                 didYouMean(block.text, names));
        }
        if (!stageOf.try_emplace(block.text, index).second)
          return fail(block, "block '" + block.text + "' is already in stage " +
                                 std::to_string(stageOf[block.text]));
      }
    for (const FileBlock &block : file.blocks)
      if (!stageOf.count(block.name.text))
        return fail(block.name, "block '" + block.name.text +
                                    "' is in no stage: name it in `stages`, "
                                    "or leave `stages` out");
    if (!file.devices.empty() && file.devices.size() != file.stages->size())
      return fail(file.devicesAt,
                  (file.devices.size() == 1 ? "there is " : "there are ") +
                      abi::countOf(file.devices.size(), "device") + " for " +
                      abi::countOf(file.stages->size(), "stage") +
                      ": name one for each stage");
    return success();
  }

  StringRef text;
  /// Where lines begin. SourceMgr::getLineAndColumn would look for that again
  /// for each place, in a time that grows with the square of a long line.
  std::vector<const char *> lines;
  llvm::SourceMgr sources;
  std::optional<yaml::Stream> stream;
  FileErrorFn error;
  bool failedAlready = false;
  PartitionFile file;
  llvm::StringMap<size_t> indexOf; ///< of a block, by its name
};

} // namespace

FailureOr<PartitionFile> parsePartitionFile(StringRef text, FileErrorFn error) {
  return PartitionReader(text, error).read();
}

FailureOr<PartitionFile> readPartitionFile(Location loc, StringRef path) {
  if (path.empty())
    return PartitionFile();
  auto buffer = files::readFile(path, files::kMostTextBytes);
  if (!buffer)
    return emitError(loc) << "cannot read the partition file '" << path
                          << "': " << llvm::toString(buffer.takeError());
  return parsePartitionFile(
      (*buffer)->getBuffer(),
      [&](int line, int column, const std::string &message) {
        emitError(FileLineColLoc::get(loc.getContext(), path, line, column))
            << message;
      });
}

} // namespace partita
