//===- LinkObject.cpp - Relocatable to shared objects ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/CpuCodegen.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

LLD_HAS_DRIVER(elf)

using namespace mlir;

namespace partita::codegen {

/// What every process that runs kernels has: see the contract in kernel.h.
static bool isAllowed(StringRef symbol) {
  static const llvm::StringSet<> allowed = [] {
    llvm::StringSet<> names;
    for (StringRef name : {"memcpy", "memmove", "memset"})
      names.insert(name);
    for (StringRef name :
         {"acos",  "acosh", "asin",  "asinh",     "atan",  "atan2",  "atanh",
          "cbrt",  "ceil",  "cos",   "cosh",      "erf",   "erfc",   "exp",
          "exp2",  "expm1", "floor", "fma",       "fmod",  "log",    "log10",
          "log1p", "log2",  "pow",   "roundeven", "sin",   "sincos", "sinh",
          "sqrt",  "tan",   "tanh",  "trunc",     "round", "fmax",   "fmin"}) {
      names.insert(name);
      names.insert((name + "f").str());
    }
    return names;
  }();
  return allowed.contains(symbol);
}

static llvm::Error checkSymbols(ArrayRef<char> object) {
  llvm::MemoryBufferRef buffer(StringRef(object.data(), object.size()),
                               "kernels");
  auto file = llvm::object::ObjectFile::createObjectFile(buffer);
  if (!file)
    return file.takeError();
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    llvm::Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty() &&
        *name != "_GLOBAL_OFFSET_TABLE_" && !isAllowed(*name))
      return llvm::createStringError("kernels call '" + *name +
                                     "', which the runtime does not provide");
  }
  return llvm::Error::success();
}

namespace {
/// A directory for the linker's files, removed with all that is in it.
struct TemporaryDirectory {
  llvm::SmallString<128> path;
  std::error_code code =
      llvm::sys::fs::createUniqueDirectory("partita-link", path);
  ~TemporaryDirectory() {
    if (!code)
      llvm::sys::fs::remove_directories(path);
  }
  std::string file(StringRef name) const {
    llvm::SmallString<128> full(path);
    llvm::sys::path::append(full, name);
    return std::string(full);
  }
};
} // namespace

llvm::Expected<std::vector<char>>
linkObjects(ArrayRef<std::vector<char>> objects) {
  TemporaryDirectory directory;
  if (directory.code)
    return llvm::createStringError("cannot make a temporary directory: " +
                                   directory.code.message());
  const std::string output = directory.file("kernels.so");
  std::vector<std::string> inputs;
  for (const std::vector<char> &object : objects) {
    if (llvm::Error error = checkSymbols(object))
      return error;
    inputs.push_back(
        directory.file("kernels" + std::to_string(inputs.size()) + ".o"));
    std::error_code code;
    llvm::raw_fd_ostream stream(inputs.back(), code);
    if (!code) {
      stream.write(object.data(), object.size());
      stream.close();
      code = stream.error();
    }
    if (code)
      return llvm::createStringError("cannot write '" + inputs.back() +
                                     "': " + code.message());
  }
  // Not --no-undefined: the mathematics library is the process's own, and
  // checkSymbols has seen what is missing.
  std::vector<const char *> arguments = {
      "ld.lld",          "-shared",    "-nostdlib",   "-o",
      output.c_str(),    "-z",         "noexecstack", "-s",
      "--build-id=none", "--threads=1"};
  for (const std::string &input : inputs)
    arguments.push_back(input.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result =
      lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return llvm::createStringError("linking failed: " + messages);
  auto linked = llvm::MemoryBuffer::getFile(output, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!linked)
    return llvm::createStringError("cannot read '" + output +
                                   "': " + linked.getError().message());
  return std::vector<char>((*linked)->getBufferStart(),
                           (*linked)->getBufferEnd());
}

} // namespace partita::codegen
