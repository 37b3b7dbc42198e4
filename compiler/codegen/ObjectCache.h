//===- ObjectCache.h - Compiled kernels kept for later ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A process that compiles many models often meets the same kernels: a model's
// kernels do not depend on the devices for which it is cut. The cache is for
// one thread. It drops all objects when it is full.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_OBJECTCACHE_H
#define PARTITA_COMPILER_CODEGEN_OBJECTCACHE_H

#include "compiler/codegen/Codegen.h"

#include "llvm/ADT/StringRef.h"

#include <map>
#include <string>
#include <vector>

namespace partita::codegen {

class ObjectCache {
public:
  explicit ObjectCache(size_t capacity = size_t(64) << 20)
      : capacity(capacity) {}

  /// The code that was compiled for this level from a module of
  /// kernels with this text, or null.
  const CompiledObject *find(llvm::StringRef text, abi::CpuLevel level);
  void insert(llvm::StringRef text, abi::CpuLevel level,
              const CompiledObject &object);

  int64_t hits = 0, misses = 0;

private:
  std::map<std::pair<abi::CpuLevel, std::string>, CompiledObject> objects;
  size_t capacity, bytes = 0;
};

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_OBJECTCACHE_H
