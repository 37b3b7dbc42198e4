//===- StepHeap.cpp - What libraries allocate in a step -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block may be freed by any thread and in any order: freeing only marks it.
// The thread whose stack it lies on drops marked blocks from the top when it
// allocates the next one.
//
//===----------------------------------------------------------------------===//

#include "runtime/heap/StepHeap.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <unistd.h>

namespace partita::runtime {
namespace {

/// Null: the process goes on without the memory.
const char *ending = nullptr;

/// Needs no memory itself.
[[noreturn, gnu::format(printf, 1, 2)]] void end(const char *format, ...) {
  char text[512];
  int length = std::snprintf(text, sizeof text, "%s: error: ", ending);
  va_list values;
  va_start(values, format);
  length += std::vsnprintf(text + length, sizeof text - size_t(length), format,
                           values);
  va_end(values);
  if (length >= int(sizeof text))
    length = int(sizeof text) - 1;
  text[length++] = '\n';
  (void)!::write(STDERR_FILENO, text, size_t(length));
  // Other threads may hold anything that a destructor waits for.
  std::_Exit(1);
}

constexpr const char *kAdvice =
    "give the process more memory (ulimit -v, or its container's limit)";

[[noreturn]] void endForException() {
  try {
    if (std::exception_ptr current = std::current_exception())
      std::rethrow_exception(current);
  } catch (const std::bad_alloc &) {
    end("there is no memory left; %s", kAdvice);
  } catch (const std::exception &exception) {
    end("%s; if this is for want of memory, %s", exception.what(), kAdvice);
  } catch (...) {
  }
  end("a library gave up; if this is for want of memory, %s", kAdvice);
}

} // namespace

void endWithoutMemory(const char *program) {
  ending = program;
  std::set_terminate(endForException);
}

} // namespace partita::runtime

#ifndef PARTITA_STEP_HEAP

namespace partita::runtime {
bool reserveStepHeap() { return false; }
StepHeapCounts stepHeapCounts() { return {}; }
} // namespace partita::runtime

#else

#include "runtime/base/StepScope.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <new>
#include <sys/mman.h>

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);
}

namespace partita::runtime {
namespace {

constexpr size_t kStackBytes = size_t(64) << 20;
constexpr int kStacks = 128;
constexpr size_t kAlignment = 16;

/// Lies right before the bytes of a block.
struct Header {
  uint32_t below; ///< offset of the header under it; its own if there is none
  uint32_t bytes;
  std::atomic<uint32_t> freed;
  uint32_t unused;
};
static_assert(sizeof(Header) == kAlignment);

std::atomic<uint8_t *> stacks = nullptr;
std::atomic<int> taken = 0;
std::atomic<int64_t> served = 0, from_heap = 0;

/// The stack of this thread.
struct Stack {
  uint8_t *base = nullptr;
  Header *top = nullptr;
  bool refused = false;
};
thread_local Stack own;
std::atomic<size_t> deepest[kStacks];

bool contains(const void *pointer) {
  const uint8_t *base = stacks.load(std::memory_order_relaxed);
  auto *byte = static_cast<const uint8_t *>(pointer);
  return base && byte >= base && byte < base + kStacks * kStackBytes;
}

Header *headerOf(void *pointer) {
  return reinterpret_cast<Header *>(pointer) - 1;
}

bool takeStack(uint8_t *base) {
  int index = taken.fetch_add(1, std::memory_order_relaxed);
  own.refused = index >= kStacks;
  if (!own.refused)
    own.base = base + static_cast<size_t>(index) * kStackBytes;
  return !own.refused;
}

void *push(size_t bytes, size_t alignment) {
  uint8_t *base = stacks.load(std::memory_order_acquire);
  if (!base || own.refused || (!own.base && !takeStack(base)))
    return nullptr;
  while (own.top && own.top->freed.load(std::memory_order_acquire)) {
    auto *below = reinterpret_cast<Header *>(own.base + own.top->below);
    own.top = below == own.top ? nullptr : below;
  }
  size_t used = 0;
  if (own.top)
    used = static_cast<size_t>(reinterpret_cast<uint8_t *>(own.top + 1) -
                               own.base) +
           own.top->bytes;
  alignment = std::max(alignment, kAlignment);
  // Stacks are aligned to more than anything asks for.
  size_t begin =
      (used + sizeof(Header) + alignment - 1) / alignment * alignment;
  if (alignment > kStackBytes || bytes > kStackBytes ||
      begin > kStackBytes - bytes)
    return nullptr;
  auto *header = new (own.base + begin - sizeof(Header)) Header;
  size_t place = begin - sizeof(Header);
  header->below = static_cast<uint32_t>(
      own.top ? reinterpret_cast<uint8_t *>(own.top) - own.base : place);
  header->bytes = static_cast<uint32_t>(bytes);
  header->freed.store(0, std::memory_order_relaxed);
  own.top = header;
  std::atomic<size_t> &most =
      deepest[static_cast<size_t>(own.base - base) / kStackBytes];
  if (begin + bytes > most.load(std::memory_order_relaxed))
    most.store(begin + bytes, std::memory_order_relaxed);
  return own.base + begin;
}

/// Null: not in a step, or no room.
void *take(size_t bytes, size_t alignment) {
  if (!StepScope::active() || StepScope::isOutside())
    return nullptr;
  void *block = push(bytes, alignment);
  (block ? served : from_heap).fetch_add(1, std::memory_order_relaxed);
  return block;
}

/// What the C library gave for `bytes`.
void *given(void *block, size_t bytes) {
  if (!block && bytes && ending)
    end("there is no memory for %zu bytes; %s", bytes, kAdvice);
  return block;
}

void *takeAligned(size_t alignment, size_t bytes) {
  if (void *block = take(bytes, alignment))
    return block;
  return given(__libc_memalign(alignment, bytes), bytes);
}

} // namespace

bool reserveStepHeap() {
  if (stacks.load())
    return true;
  void *base =
      mmap(nullptr, (kStacks + 1) * kStackBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return false;
  auto address = reinterpret_cast<uintptr_t>(base);
  address = (address + kStackBytes - 1) / kStackBytes * kStackBytes;
  stacks.store(reinterpret_cast<uint8_t *>(address), std::memory_order_release);
  return true;
}

StepHeapCounts stepHeapCounts() {
  StepHeapCounts counts;
  counts.served = served.load();
  counts.heap = from_heap.load();
  for (const std::atomic<size_t> &most : deepest)
    counts.bytes += most.load();
  return counts;
}

} // namespace partita::runtime

using partita::runtime::contains;
using partita::runtime::given;
using partita::runtime::headerOf;
using partita::runtime::take;
using partita::runtime::takeAligned;

extern "C" {

void *malloc(size_t bytes) {
  if (void *block = take(bytes, partita::runtime::kAlignment))
    return block;
  return given(__libc_malloc(bytes), bytes);
}

void *calloc(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total))
    total = SIZE_MAX; // which nobody has
  else if (void *block = take(total, partita::runtime::kAlignment))
    return std::memset(block, 0, total);
  return given(__libc_calloc(count, bytes), total);
}

void free(void *block) {
  if (contains(block))
    headerOf(block)->freed.store(1, std::memory_order_release);
  else
    __libc_free(block);
}

void *realloc(void *old, size_t bytes) {
  if (!contains(old))
    return old ? given(__libc_realloc(old, bytes), bytes) : malloc(bytes);
  if (bytes == 0) {
    free(old);
    return nullptr;
  }
  void *block = malloc(bytes);
  if (block) {
    std::memcpy(block, old, std::min<size_t>(headerOf(old)->bytes, bytes));
    free(old);
  }
  return block;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  return takeAligned(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
  return takeAligned(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
  if (alignment < sizeof(void *) || (alignment & (alignment - 1)))
    return EINVAL;
  void *block = takeAligned(alignment, bytes);
  if (!block)
    return ENOMEM;
  *out = block;
  return 0;
}

size_t malloc_usable_size(void *block) {
  if (contains(block))
    return headerOf(block)->bytes;
  using Function = size_t (*)(void *);
  static auto next =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "malloc_usable_size"));
  return next ? next(block) : 0;
}

} // extern "C"

#endif // PARTITA_STEP_HEAP
