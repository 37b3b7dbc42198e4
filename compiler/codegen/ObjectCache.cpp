//===- ObjectCache.cpp - Compiled kernels kept for later ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/ObjectCache.h"

namespace partita::codegen {

const CompiledObject *ObjectCache::find(llvm::StringRef text,
                                        abi::CpuLevel level) {
  auto it = objects.find({level, text.str()});
  ++(it == objects.end() ? misses : hits);
  return it == objects.end() ? nullptr : &it->second;
}

void ObjectCache::insert(llvm::StringRef text, abi::CpuLevel level,
                         const CompiledObject &object) {
  const size_t size = text.size() + object.bytes.size();
  if (bytes + size > capacity) {
    objects.clear();
    bytes = 0;
  }
  if (objects.try_emplace({level, text.str()}, object).second)
    bytes += size;
}

} // namespace partita::codegen
