//===- ChangedPlans.cpp - Wrong plans before the compiler's own kernels ---===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   partita-changed-plans RUNS ARTIFACT...
//
// Changes the plan of each artifact in turn, RUNS times in all, mends the
// hashes, and runs a step of what is still accepted, with the kernels that the
// compiler made. Each change has a process of its own: one that ends by a
// signal is a failure, as no change of the plan alone may end in a fault of
// memory.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/PlanMutator.h"
#include "test/fuzz/PlanStep.h"
#include "test/unit/runtime/PlanBuilder.h"

#include "runtime/artifact/SectionTable.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

using namespace partita;

/// What PlanMutator asks for when it changes bytes: another value of one.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t) {
  static fuzz::Random random(1);
  if (size)
    data[random.below(size)] ^= static_cast<uint8_t>(1 + random.below(255));
  return size;
}

namespace {

/// How a changed plan ended, as the exit status of its process.
enum End { refused, ran, tooLarge, kEnds };

std::vector<uint8_t> bytesOf(const uint8_t *data, size_t size) {
  return {data, data + size};
}

/// The artifact with its first plan changed; the unchanged one for seed 0.
std::vector<uint8_t> changed(const runtime::SectionTable &table,
                             unsigned seed) {
  const runtime::PlanSections &first = table.plans.front();
  std::vector<uint8_t> plan = bytesOf(first.plan.data, first.plan.bytes);
  size_t size = plan.size();
  const size_t most = size + 4096;
  plan.resize(most);
  if (seed)
    size = fuzz::mutatePlan(plan.data(), size, most, seed);
  plan.resize(size);
  std::vector<test::ObjectSpec> objects;
  for (const runtime::ObjectSection &object : first.objects)
    objects.push_back({object.level, bytesOf(object.data, object.bytes)});
  if (first.ptx.text) {
    objects.push_back(test::ptxSection(first.ptx.text, first.ptx.architecture));
    objects.back().fits = false; // it says what it was compiled for
  }
  return test::artifactBytes(
      plan, bytesOf(table.weights.data, table.weights.bytes), objects);
}

End tryOne(const std::vector<uint8_t> &bytes, bool says) {
  fuzz::MemoryFile file(bytes.data(), bytes.size());
  auto artifact = runtime::Artifact::open(file.path());
  if (!artifact) {
    if (says)
      std::fprintf(stderr, "%s\n", artifact.status().message().c_str());
    return refused;
  }
  if (!fuzz::small((*artifact)->plan()))
    return tooLarge;
  runtime::SessionOptions options;
  options.pin = false;
  options.timeout_s = 5;
  options.trust_weights = true;
  auto session = runtime::Session::create(*artifact, options);
  if (!session) {
    if (says)
      std::fprintf(stderr, "%s\n", session.status().message().c_str());
    return refused;
  }
  fuzz::runStep(**session, (*artifact)->plan());
  return ran;
}

/// The status of a process that tries it, as `waitpid` gives it.
int inAProcess(const std::vector<uint8_t> &bytes, bool says) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(tryOne(bytes, says));
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) {
    std::perror("cannot run a process");
    std::exit(1);
  }
  return status;
}

} // namespace

int main(int count, char **words) {
  if (count < 3) {
    std::fprintf(stderr, "usage: partita-changed-plans RUNS ARTIFACT...\n");
    return 1;
  }
  const int runs = std::atoi(words[1]), artifacts = count - 2;
  int ends[kEnds] = {}, faults = 0, used = 0;
  for (int a = 0; a < artifacts; ++a) {
    const std::string path = words[2 + a];
    const std::vector<uint8_t> file = test::readFile(path);
    auto table = runtime::readSectionTable(path, file.data(), file.size());
    if (!table) {
      std::fprintf(stderr, "%s\n", table.status().message().c_str());
      return 1;
    }
    if (table->plans.front().objects.empty() && !table->plans.front().ptx.text)
      continue;
    // What is not changed must run, or nothing is tested; unless a run of it is
    // too large for a test.
    const int plain = inAProcess(changed(*table, 0), /*says=*/true);
    if (WIFEXITED(plain) && WEXITSTATUS(plain) == tooLarge)
      continue;
    if (!WIFEXITED(plain) || WEXITSTATUS(plain) != ran) {
      std::fprintf(stderr, "'%s' does not run as it is\n", path.c_str());
      return 1;
    }
    ++used;
    for (int run = a; run < runs; run += artifacts) {
      const int status =
          inAProcess(changed(*table, static_cast<unsigned>(run + 1)), false);
      if (WIFEXITED(status) && WEXITSTATUS(status) < kEnds) {
        ++ends[WEXITSTATUS(status)];
        continue;
      }
      ++faults;
      std::fprintf(stderr, "'%s', change %d: ended by signal %d\n",
                   path.c_str(), run + 1,
                   WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
  }
  std::printf("%d artifacts: %d changes refused, %d ran, %d too large, %d "
              "faults\n",
              used, ends[refused], ends[ran], ends[tooLarge], faults);
  return faults || !used || !ends[refused] || !ends[ran];
}
