//===- Drive.cpp - Runs a fuzz target without libFuzzer -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   partita-fuzz-FOO [--runs N] [--seed S] [--truncate K] [--sample M]
//                    [--name FILE] [--seconds T] [--fork 0] PATH...
//
// runs every file below PATH (only those called FILE; only M of them), then N
// mutations of them, a pure function of seed and files. With --truncate each
// file is also cut at K places, evenly spread. An input gets T seconds
// of the processor's time and 8 GiB. The inputs run in a child process; what it
// was doing when it died is left in crash-FOO, and the exit status is 1.
//
// A crash file as PATH repeats the crash; --fork 0 does it without the child
// process, for a debugger.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Target.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <vector>

extern "C" size_t __attribute__((weak))
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

namespace fs = std::filesystem;
using namespace partita::fuzz;

namespace {

using Bytes = std::vector<uint8_t>;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr size_t kMostBytes = 1 << 20;
constexpr uint64_t kMostMemory = uint64_t(8) << 30;

Random mutations(1);

struct Options {
  std::vector<std::string> paths;
  std::string name;
  uint64_t runs = 0, seed = 1, truncate = 0, sample = 0;
  unsigned seconds = 20;
  bool fork = true;
};

/// The input that is running, shared with the parent.
struct Current {
  uint64_t executions = 0;
  size_t size = 0;
  uint8_t bytes[kMostBytes];
};

Bytes read(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

std::vector<fs::path> listFiles(const Options &options) {
  std::vector<fs::path> files;
  auto add = [&](const fs::path &path) {
    if (fs::is_regular_file(path) && fs::file_size(path) <= kMostBytes &&
        (options.name.empty() || path.filename() == options.name))
      files.push_back(path);
  };
  for (const std::string &path : options.paths) {
    if (fs::is_directory(path))
      for (const auto &entry : fs::recursive_directory_iterator(path))
        add(entry.path());
    else
      files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  Random random(options.seed);
  while (options.sample && files.size() > options.sample)
    files.erase(files.begin() + static_cast<long>(random.below(files.size())));
  return files;
}

class Driver {
public:
  Driver(const Options &options, Current &current)
      : options(options), current(current) {}

  void run() {
    std::vector<Bytes> seeds;
    for (const fs::path &path : listFiles(options)) {
      Bytes bytes = read(path);
      for (uint64_t i = 0; i < options.truncate; ++i)
        execute({bytes.begin(),
                 bytes.begin() +
                     static_cast<long>(bytes.size() * i / options.truncate)});
      execute(bytes);
      if (options.runs)
        seeds.push_back(std::move(bytes));
    }
    for (uint64_t i = 0; i < options.runs && !seeds.empty(); ++i) {
      mutations = Random(options.seed * 1000003 + i);
      execute(mutate(seeds[mutations.below(seeds.size())]));
    }
  }

private:
  Bytes mutate(const Bytes &bytes) {
    size_t size = std::min(bytes.size(), kMostBytes);
    std::copy_n(bytes.begin(), size, room.begin());
    for (uint64_t count = 1 + mutations.below(4); count > 0; --count)
      size =
          LLVMFuzzerCustomMutator
              ? LLVMFuzzerCustomMutator(room.data(), size, kMostBytes,
                                        static_cast<unsigned>(mutations.next()))
              : LLVMFuzzerMutate(room.data(), size, kMostBytes);
    return Bytes(room.begin(), room.begin() + static_cast<long>(size));
  }

  void execute(const Bytes &bytes) {
    current.size = std::min(bytes.size(), kMostBytes);
    std::copy_n(bytes.begin(), current.size, current.bytes);
    ++current.executions;
    limitTime(options.seconds);
    // A copy of exactly this size, so that reading past it can be noticed.
    Bytes exact(bytes.begin(), bytes.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
    limitTime(0);
  }

  /// Of the processor's time, which does not depend on what else runs.
  static void limitTime(unsigned seconds) {
    itimerval timer = {};
    timer.it_value.tv_sec = static_cast<time_t>(seconds);
    ::setitimer(ITIMER_PROF, &timer, nullptr);
  }

  const Options &options;
  Current &current;
  /// Where mutations are made. Filled with zeros only once: most inputs are
  /// small, and that would take longer than all else.
  Bytes room = Bytes(kMostBytes);
};

bool parse(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (!word.starts_with("--")) {
      options.paths.emplace_back(word);
      continue;
    }
    if (++i == argc)
      return false;
    if (word == "--name") {
      options.name = argv[i];
      continue;
    }
    uint64_t number = std::strtoull(argv[i], nullptr, 10);
    if (word == "--runs")
      options.runs = number;
    else if (word == "--seed")
      options.seed = number;
    else if (word == "--truncate")
      options.truncate = number;
    else if (word == "--sample")
      options.sample = number;
    else if (word == "--seconds")
      options.seconds = static_cast<unsigned>(number);
    else if (word == "--fork")
      options.fork = number != 0;
    else
      return false;
  }
  return !options.paths.empty();
}

} // namespace

/// A few of the mutations that libFuzzer makes.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) {
  Random &random = mutations;
  if (size == 0) {
    data[0] = static_cast<uint8_t>(random.next());
    return 1;
  }
  size_t at = random.below(size);
  switch (random.below(7)) {
  case 0:
    data[at] ^= static_cast<uint8_t>(1 << random.below(8));
    return size;
  case 1:
    data[at] = static_cast<uint8_t>(random.interesting());
    return size;
  case 2: { // a number, of 2, 4 or 8 bytes
    size_t bytes = std::min(size_t(2) << random.below(3), size - at);
    int64_t value = random.interesting();
    std::memcpy(data + at, &value, bytes);
    return size;
  }
  case 3: { // bytes taken out
    size_t count = 1 + random.below(std::min<size_t>(size - at, 32));
    std::memmove(data + at, data + at + count, size - at - count);
    return size - count;
  }
  case 4: // cut off
    return at;
  default: { // bytes of another place put in, or written over
    size_t from = random.below(size);
    size_t count = 1 + random.below(std::min<size_t>(size - from, 64));
    Bytes piece(data + from, data + from + count);
    if (random.below(2)) {
      count = std::min(count, most - size);
      std::memmove(data + at + count, data + at, size - at);
      size += count;
    } else {
      count = std::min(count, size - at);
    }
    std::copy_n(piece.begin(), count, data + at);
    return size;
  }
  }
}

int main(int argc, char **argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: %s [--runs N] [--seed S] [--truncate K] [--sample M] "
                 "[--name FILE] [--seconds T] [--fork 0] PATH...\n",
                 argv[0]);
    return 2;
  }
  void *shared = ::mmap(nullptr, sizeof(Current), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return 2;
  auto *current = new (shared) Current;
  pid_t child = options.fork ? ::fork() : 0;
  if (child == 0) {
    // The sanitizers reserve far more addresses than they use.
    rlimit memory = {kMostMemory, kMostMemory};
    if (!kSanitized)
      ::setrlimit(RLIMIT_AS, &memory);
    rlimit none = {0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    Driver(options, *current).run();
    std::exit(0);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  std::printf("%llu executions\n", (unsigned long long)current->executions);
  if (status == 0)
    return current->executions == 0; // no input is no test
  std::string program = fs::path(argv[0]).filename();
  std::string crash =
      "crash-" + program.substr(std::string("partita-fuzz-").size());
  std::ofstream(crash, std::ios::binary)
      .write(reinterpret_cast<const char *>(current->bytes),
             static_cast<std::streamsize>(current->size));
  std::printf("%s; the input is in %s\n",
              WIFSIGNALED(status) ? ::strsignal(WTERMSIG(status))
                                  : "exited by itself",
              fs::absolute(crash).c_str());
  return 1;
}
