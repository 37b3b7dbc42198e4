//===- AnnotatedModel.cpp - A model's file with annotations ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/annotations/AnnotatedModel.h"

#include "compiler/import/graph/GraphPrep.h"
#include "compiler/import/model/ModelFile.h"
#include "compiler/import/model/WireReader.h"
#include "dialects/support/Try.h"

#include "runtime/files/NewFile.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <deque>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// Annotations came with this version.
constexpr uint64_t kIrVersion = 11;

// Fields of messages.
constexpr uint64_t kModelIrVersion = 1, kModelOpsetImport = 8,
                   kModelConfiguration = 26, kFunctionAttribute = 11,
                   kAttributeType = 20, kNodeConfigurations = 10,
                   kTensorExternalData = 13, kEntryKey = 1, kEntryValue = 2;

/// Bytes in pieces: of the mapped file, and new ones.
class Pieces {
public:
  void append(StringRef bytes) {
    bytesInAll += bytes.size();
    if (!list.empty() && list.back().end() == bytes.begin())
      list.back() =
          StringRef(list.back().data(), list.back().size() + bytes.size());
    else if (!bytes.empty())
      list.push_back(bytes);
  }
  void append(const Pieces &other) {
    for (StringRef piece : other.list)
      append(piece);
  }
  uint64_t size() const { return bytesInAll; }
  ArrayRef<StringRef> get() const { return list; }

private:
  std::vector<StringRef> list;
  uint64_t bytesInAll = 0;
};

onnx::ShardingSpecProto getSpec(const dist::TensorAnnotation &tensor) {
  onnx::ShardingSpecProto spec;
  spec.set_tensor_name(tensor.name);
  for (const auto &group : tensor.devices) {
    if (group.size() == 1) {
      spec.add_device(group[0]);
      continue;
    }
    const int64_t key = -1 - spec.index_to_device_group_map_size();
    spec.add_device(key);
    onnx::IntIntListEntryProto *entry = spec.add_index_to_device_group_map();
    entry->set_key(key);
    for (int64_t device : group)
      entry->add_value(device);
  }
  for (const dist::DimAnnotation &dim : tensor.dims) {
    onnx::ShardedDimProto *sharded = spec.add_sharded_dim();
    sharded->set_axis(dim.dim);
    for (auto [size, parts] : llvm::zip(dim.sizes, dim.parts)) {
      onnx::SimpleShardedDimProto *simple = sharded->add_simple_sharding();
      simple->set_dim_value(size);
      simple->set_num_shards(parts);
    }
  }
  return spec;
}

void number(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
            int64_t &next, int64_t step, NodeNumbers &numbers) {
  for (const onnx::NodeProto &node : nodes) {
    numbers[&node] = next;
    next += step;
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        number(attribute.g().node(), next, step, numbers);
      for (const onnx::GraphProto &graph : attribute.graphs())
        number(graph.node(), next, step, numbers);
    }
  }
}

class Writer {
public:
  /// `folder` leads from the copy to the model's folder, e.g. "models/"; it is
  /// nothing if no such path is allowed.
  Writer(const dist::Annotations &annotations,
         ArrayRef<std::string> deviceNames, std::optional<std::string> folder)
      : annotations(annotations), deviceNames(deviceNames),
        folder(std::move(folder)) {
    for (const dist::NodeAnnotation &node : annotations.nodes)
      byNumber[*node.number] = &node;
  }

  bool run(StringRef model, Pieces &out) {
    Field field;
    bool hasOpsets = false;
    for (StringRef rest = model; !rest.empty();) {
      if (!reader.next(rest, field))
        return false;
      if (field.number == kModelIrVersion && field.wireType == 0)
        irVersion = field.varint;
      hasOpsets |= field.number == kModelOpsetImport;
    }
    appendNumber(kModelIrVersion, std::max(irVersion, kIrVersion), out);
    if (!hasOpsets) { // what the first versions had
      onnx::OperatorSetIdProto opset;
      opset.set_version(1);
      appendMessage(kModelOpsetImport, opset.SerializeAsString(), out);
    }
    for (StringRef rest = model; !rest.empty();) {
      if (!reader.next(rest, field))
        return false;
      if (field.number == kModelIrVersion)
        continue;
      if (field.number != kModelConfiguration) {
        step =
            getFieldMessage(Message::model, field.number) == Message::function
                ? -1
                : 1;
        if (!copyField(Message::model, field, out, 0))
          return false;
      }
    }
    onnx::DeviceConfigurationProto configuration;
    configuration.set_name(annotations.configuration);
    configuration.set_num_devices(static_cast<int32_t>(annotations.devices));
    for (const std::string &name : deviceNames)
      configuration.add_device(name);
    appendMessage(kModelConfiguration, configuration.SerializeAsString(), out);
    return byNumber.empty() ||
           reader.fail("it has other nodes than when it was read");
  }

  WireReader reader;

private:
  StringRef keep(std::string bytes) {
    return owned.emplace_back(std::move(bytes));
  }

  void appendNumber(uint64_t number, uint64_t value, Pieces &out) {
    std::string bytes;
    appendVarint(bytes, number << 3);
    appendVarint(bytes, value);
    out.append(keep(std::move(bytes)));
  }

  void appendMessage(uint64_t number, StringRef bytes, Pieces &out) {
    std::string encoded;
    appendBytesField(encoded, number, bytes);
    out.append(keep(std::move(encoded)));
  }

  bool copyField(Message parent, const Field &field, Pieces &out, int depth) {
    const Message child = getFieldMessage(parent, field.number);
    if (child == Message::other || field.wireType != 2 ||
        (child == Message::tensor && folder == "")) {
      out.append(field.encoded);
      return true;
    }
    const bool counted = counts;
    // Values of attributes that a call leaves out are no nodes of the function.
    counts &= parent != Message::function || field.number != kFunctionAttribute;
    Pieces copied;
    const bool isGood = copy(child, field.bytes, copied, depth + 1);
    counts = counted;
    if (!isGood)
      return false;
    std::string head;
    appendVarint(head, field.number << 3 | 2);
    appendVarint(head, copied.size());
    out.append(keep(std::move(head)));
    out.append(copied);
    return true;
  }

  bool copy(Message message, StringRef in, Pieces &out, int depth) {
    if (depth > 64)
      return reader.fail("messages are nested too deeply");
    if (message == Message::tensor)
      return copyTensor(in, out);
    const dist::NodeAnnotation *node = nullptr;
    if (message == Message::node && counts) {
      int64_t &number = step > 0 ? nextInGraph : nextInFunctions;
      if (auto it = byNumber.find(number); it != byNumber.end()) {
        node = it->second;
        byNumber.erase(it);
      }
      number += step;
    }
    // IR version 1 had attributes without a type.
    std::optional<int> type;
    bool hasType = irVersion > 1;
    Field field;
    while (!in.empty()) {
      if (!reader.next(in, field))
        return false;
      if (message == Message::attribute && !hasType) {
        hasType = field.number == kAttributeType;
        if (auto known = getAttributeType(field.number))
          type = known;
      }
      if (message == Message::node && field.number == kNodeConfigurations)
        continue;
      if (!copyField(message, field, out, depth))
        return false;
    }
    if (message == Message::attribute && !hasType && type)
      appendNumber(kAttributeType, *type, out);
    if (node)
      appendMessage(kNodeConfigurations, getConfiguration(*node), out);
    return true;
  }

  std::string getConfiguration(const dist::NodeAnnotation &node) {
    onnx::NodeDeviceConfigurationProto configuration;
    configuration.set_configuration_id(annotations.configuration);
    for (const dist::TensorAnnotation &tensor : node.tensors)
      *configuration.add_sharding_spec() = getSpec(tensor);
    if (node.stage)
      configuration.set_pipeline_stage(static_cast<int32_t>(*node.stage));
    return configuration.SerializeAsString();
  }

  /// Lets a tensor in another file be found from the folder of the copy.
  bool copyTensor(StringRef in, Pieces &out) {
    Field field, part;
    while (!in.empty()) {
      if (!reader.next(in, field))
        return false;
      StringRef key, value;
      if (field.number == kTensorExternalData && field.wireType == 2)
        for (StringRef entry = field.bytes; !entry.empty();) {
          if (!reader.next(entry, part))
            return false;
          (part.number == kEntryKey ? key : value) = part.bytes;
        }
      if (key != "location") {
        out.append(field.encoded);
        continue;
      }
      if (!folder) {
        outside = value.str();
        return reader.fail("a weight cannot be found from there");
      }
      std::string entry;
      appendBytesField(entry, kEntryKey, key);
      appendBytesField(entry, kEntryValue, *folder + value.str());
      appendMessage(kTensorExternalData, entry, out);
    }
    return true;
  }

public:
  std::string outside; ///< a file of weights that has no path from the copy

private:
  const dist::Annotations &annotations;
  ArrayRef<std::string> deviceNames;
  const std::optional<std::string> folder;
  llvm::DenseMap<int64_t, const dist::NodeAnnotation *> byNumber;
  std::deque<std::string> owned;
  uint64_t irVersion = 0;
  int64_t nextInGraph = 0, nextInFunctions = -1, step = 1;
  bool counts = true; ///< whether nodes have numbers here
};

/// How the folder of `model` is called in the folder of `path`; nothing if it
/// is not inside.
std::optional<std::string> findFolder(StringRef model, StringRef path) {
  auto getFolder = [](StringRef file) {
    SmallString<256> folder;
    StringRef parent = sys::path::parent_path(file);
    if (sys::fs::real_path(parent.empty() ? "." : parent, folder))
      return std::string();
    return folder.str().str();
  };
  const std::string from = getFolder(path), to = getFolder(model);
  if (from == to)
    return "";
  const std::string inside = from == "/" ? from : from + "/";
  if (!StringRef(to).starts_with(inside))
    return std::nullopt;
  return to.substr(inside.size()) + "/";
}

std::error_code writeFile(StringRef path, const Pieces &pieces) {
  if (sys::fs::is_directory(path))
    return std::make_error_code(std::errc::is_a_directory);
  files::NewFile file;
  if (std::error_code error = file.create(path.str()))
    return error;
  const std::string temporary = file.temporary();
  if (!temporary.empty())
    sys::RemoveFileOnSignal(temporary);
  raw_fd_ostream stream(file.descriptor(), /*shouldClose=*/false);
  for (StringRef piece : pieces.get())
    stream << piece;
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  if (!error)
    error = file.commit(/*sync=*/true);
  if (!temporary.empty())
    sys::DontRemoveFileOnSignal(temporary);
  return error;
}

} // namespace

NodeNumbers numberNodes(const onnx::ModelProto &model) {
  NodeNumbers numbers;
  int64_t next = 0;
  number(model.graph().node(), next, 1, numbers);
  next = -1;
  for (const onnx::FunctionProto &function : model.functions())
    number(function.node(), next, -1, numbers);
  return numbers;
}

LogicalResult writeAnnotatedModel(StringRef modelPath, StringRef path,
                                  const dist::Annotations &annotations,
                                  ArrayRef<std::string> deviceNames,
                                  Location loc) {
  auto error = [&]() {
    return emitError(loc) << "cannot write the annotated model '" << path
                          << "': ";
  };
  if (sys::fs::equivalent(modelPath, path))
    return error() << "it is the model that is compiled; name another file";
  // A rename would put a file in the place of /dev/null.
  if (sys::fs::exists(path) && !sys::fs::is_directory(path) &&
      !sys::fs::is_regular_file(path))
    return error() << "something that is not a file has this name";
  std::unique_ptr<MemoryBuffer> buffer;
  std::string serialized;
  StringRef bytes;
  if (isTextModel(modelPath)) {
    auto file = PARTITA_TRY(ModelFile::read(modelPath, loc));
    serialized = file->proto.SerializeAsString();
    bytes = serialized;
  } else {
    auto read = MemoryBuffer::getFile(modelPath, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
    if (!read)
      return error() << "cannot open '" << modelPath
                     << "': " << read.getError().message();
    buffer = std::move(*read);
    bytes = buffer->getBuffer();
  }
  Writer writer(annotations, deviceNames, findFolder(modelPath, path));
  Pieces pieces;
  if (!writer.run(bytes, pieces)) {
    if (!writer.outside.empty())
      return error() << "the model has weights in '" << writer.outside
                     << "', which a model can only name in its own folder or "
                        "one inside: write it into the folder of '"
                     << modelPath << "', or one above";
    return error() << "'" << modelPath
                   << "' is not an ONNX model: " << writer.reader.whyNot;
  }
  if (std::error_code code = writeFile(path, pieces))
    return error() << code.message();
  return success();
}

} // namespace partita::import
