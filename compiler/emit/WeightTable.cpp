//===- WeightTable.cpp - The weights that a plan uses ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/WeightTable.h"

#include "dialects/plan/PlanDialect.h"
#include "dialects/support/Try.h"
#include "runtime/abi/artifact.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <filesystem>

using namespace mlir;

namespace partita::emit {
namespace {

LogicalResult makeReal(Operation *op, StringRef path,
                       SmallVectorImpl<char> &real) {
  if (std::error_code error = llvm::sys::fs::real_path(path, real))
    return op->emitError() << "cannot find '" << path
                           << "': " << error.message();
  return success();
}

bool isZero(nn::WeightOp weight) {
  auto value = weight
                   ? dyn_cast_or_null<DenseElementsAttr>(weight.getValueAttr())
                   : DenseElementsAttr();
  if (!value || !value.isSplat())
    return false;
  if (isa<FloatType>(value.getElementType()))
    return value.getSplatValue<APFloat>().isPosZero();
  return value.getSplatValue<APInt>().isZero();
}

/// Bytes of a constant, one byte for each element narrower than that.
SmallVector<char> getBytes(ElementsAttr value) {
  auto type = cast<ShapedType>(value.getType());
  unsigned bits = type.getElementTypeBitWidth();
  unsigned width = bits < 8 ? 1 : bits / 8;
  SmallVector<char> bytes;
  auto add = [&](const APInt &element) {
    uint64_t word = element.getZExtValue();
    for (unsigned i = 0; i < width; ++i)
      bytes.push_back(static_cast<char>(word >> (8 * i)));
  };
  if (isa<FloatType>(type.getElementType()))
    for (const APFloat &element : value.getValues<APFloat>())
      add(element.bitcastToAPInt());
  else if (type.getElementType().isSignlessInteger(8) || bits >= 8 || bits == 1)
    for (const APInt &element : value.getValues<APInt>())
      add(element);
  else // i4 and the like keep their sign in their byte
    for (const APInt &element : value.getValues<APInt>())
      add(type.getElementType().isUnsignedInteger() ? element.zext(8)
                                                    : element.sext(8));
  return bytes;
}

/// Collects the weights of one module after another.
class Collector {
public:
  Collector(bool beside, StringRef artifact)
      : beside(beside), artifact(artifact) {}

  LogicalResult add(ModuleOp module) {
    llvm::StringSet<> used;
    SymbolTable symbols(module);
    module.walk([&](plan::SlotOp slot) {
      // A state that begins with zeros needs no bytes in the file.
      if (slot.getWeight() &&
          (slot.getSpace() != plan::Space::state ||
           !isZero(symbols.lookup<nn::WeightOp>(*slot.getWeight()))))
        used.insert(*slot.getWeight());
    });
    llvm::StringMap<int> &indexOf = table.indexOf.emplace_back();
    for (auto weight : module.getOps<nn::WeightOp>()) {
      if (!used.erase(weight.getSymName()))
        continue;
      // Attributes of one context are equal if they are the same.
      const Bytes bytes = {weight.getValue() ? Attribute(weight.getValueAttr())
                                             : Attribute(weight.getFileAttr()),
                           weight.getOffset().value_or(0),
                           nn::getByteSize(weight.getType()), weight.getType()};
      auto [it, isNew] = known.try_emplace(bytes, table.entries.size());
      indexOf[weight.getSymName()] = it->second;
      if (isNew && failed(addEntry(weight)))
        return failure();
    }
    if (!used.empty())
      return module.emitError("the plan uses '")
             << used.begin()->first() << "', which is no weight of the module";
    return success();
  }

  WeightTable table;

private:
  /// Value or file, the place in the file, size and type.
  using Bytes = std::tuple<Attribute, int64_t, int64_t, Type>;

  LogicalResult addEntry(nn::WeightOp weight) {
    WeightEntry entry;
    entry.op = weight;
    entry.bytes = nn::getByteSize(weight.getType());
    if (beside && weight.getFile()) {
      entry.file =
          PARTITA_TRY(getRelativePath(weight, *weight.getFile(), artifact));
      entry.offset = weight.getOffset().value_or(0);
    } else {
      entry.offset = llvm::alignTo(table.sectionBytes, abi::kSlotAlignment);
      table.sectionBytes = entry.offset + entry.bytes;
    }
    table.entries.push_back(std::move(entry));
    return success();
  }

  const bool beside;
  const StringRef artifact;
  llvm::DenseMap<Bytes, int> known;
};

} // namespace

FailureOr<std::string> getRelativePath(Operation *op, StringRef path,
                                       StringRef artifact) {
  SmallString<256> real, folder;
  StringRef parent = llvm::sys::path::parent_path(artifact);
  PARTITA_TRY(makeReal(op, path, real));
  PARTITA_TRY(makeReal(op, parent.empty() ? "." : parent, folder));
  return std::filesystem::path(real.str().str())
      .lexically_relative(folder.str().str())
      .string();
}

FailureOr<WeightTable> collectWeights(ArrayRef<ModuleOp> modules, bool beside,
                                      StringRef artifact) {
  Collector collector(beside, artifact);
  for (ModuleOp module : modules)
    PARTITA_TRY(collector.add(module));
  return std::move(collector.table);
}

LogicalResult readWeight(nn::WeightOp weight,
                         llvm::function_ref<LogicalResult(StringRef)> sink) {
  if (weight.getValue()) {
    SmallVector<char> bytes = getBytes(*weight.getValue());
    return sink(StringRef(bytes.data(), bytes.size()));
  }
  StringRef path = *weight.getFile();
  auto fail = [&](const Twine &why) {
    return weight.emitError()
           << "cannot read the weight '" << weight.getOrigin() << "' from '"
           << path << "': " << why;
  };
  auto file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file)
    return fail(llvm::toString(file.takeError()));
  llvm::scope_exit close([&] { (void)llvm::sys::fs::closeFile(*file); });
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(*file, status))
    return fail(error.message());
  int64_t offset = *weight.getOffset(), left = *weight.getBytes();
  if (offset + left > static_cast<int64_t>(status.getSize()))
    return fail("the file has " + Twine(status.getSize()) +
                " bytes, the weight ends at " + Twine(offset + left));
  // Windows of the file, so that a model larger than memory passes through.
  constexpr int64_t kWindow = 64 << 20;
  while (left > 0) {
    int64_t piece = std::min(left, kWindow);
    auto window =
        llvm::MemoryBuffer::getOpenFileSlice(*file, path, piece, offset);
    if (!window)
      return fail(window.getError().message());
    PARTITA_TRY(sink((*window)->getBuffer()));
    offset += piece;
    left -= piece;
  }
  return success();
}

} // namespace partita::emit
