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
// compiler made. Of a model that is trained it changes one of the plans, and
// trains and evaluates. Each change has a process of its own: one that ends by
// a signal is a failure, as no change of the plan alone may end in a fault of
// memory.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/PlanMutator.h"
#include "test/fuzz/PlanStep.h"
#include "test/unit/runtime/PlanBuilder.h"

#include "runtime/artifact/SectionTable.h"
#include "runtime/trainer/Trainer.h"

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

std::vector<test::ObjectSpec> objectsOf(const runtime::PlanSections &plan) {
  std::vector<test::ObjectSpec> objects;
  for (const runtime::ObjectSection &object : plan.objects)
    objects.push_back({object.level, bytesOf(object.data, object.bytes)});
  if (plan.ptx.text) {
    objects.push_back(test::ptxSection(plan.ptx.text, plan.ptx.architecture));
    objects.back().fits = false; // it says what it was compiled for
  }
  return objects;
}

bool trains(const runtime::SectionTable &table) {
  return runtime::text(abi::GetPlan(table.plans.front().plan.data)->entry()) ==
         std::string("train");
}

/// The artifact with one of its plans changed; the unchanged one for seed 0.
/// Of a model that is not trained, it has the first plan alone.
std::vector<uint8_t> changed(const runtime::SectionTable &table,
                             unsigned seed) {
  const size_t count = trains(table) ? table.plans.size() : 1;
  // Plans that learn have more that can be wrong.
  const size_t one = seed % 4 == 0 ? seed / 4 % count : 0;
  std::vector<std::vector<uint8_t>> plans;
  std::vector<std::vector<test::ObjectSpec>> objects;
  for (size_t i = 0; i < count; ++i) {
    const runtime::PlanSections &sections = table.plans[i];
    std::vector<uint8_t> plan =
        bytesOf(sections.plan.data, sections.plan.bytes);
    if (seed && i == one) {
      const size_t size = plan.size(), most = size + 4096;
      plan.resize(most);
      plan.resize(fuzz::mutatePlan(plan.data(), size, most, seed));
    }
    plans.push_back(std::move(plan));
    objects.push_back(objectsOf(sections));
  }
  return test::artifactOf(
      plans, bytesOf(table.weights.data, table.weights.bytes), objects);
}

End refuse(const runtime::Status &status, bool says) {
  if (says)
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return refused;
}

runtime::SessionOptions testOptions() {
  runtime::SessionOptions options;
  options.pin = false;
  options.timeout_s = 5;
  options.trust_weights = true;
  return options;
}

End tryTraining(const std::string &path, bool says) {
  auto artifacts = runtime::Artifact::openTraining(path);
  if (!artifacts)
    return refuse(artifacts.status(), says);
  if (!fuzz::small(artifacts->train->plan()) ||
      !fuzz::small(artifacts->eval->plan()))
    return tooLarge;
  auto made = runtime::train::Trainer::open(path, testOptions());
  if (!made)
    return refuse(made.status(), says);
  runtime::train::Trainer &trainer = **made;
  std::vector<std::vector<uint8_t>> storage;
  std::vector<const uint8_t *> data;
  for (const runtime::train::DataInput &input : trainer.inputs()) {
    int64_t bytes =
        trainer.samplesPerStep() * runtime::elementBytes(input.dtype);
    for (int64_t size : input.shape)
      bytes *= size;
    storage.emplace_back(static_cast<size_t>(bytes));
    data.push_back(storage.back().data());
  }
  runtime::Status status;
  auto note = [&](const runtime::Status &of) {
    fuzz::require(of.message().find("deadline") == std::string::npos,
                  "a plan that was proved does not wait for ever");
    if (status.ok())
      status = of;
  };
  for (int i = 0; i < 2; ++i) {
    note(trainer.step(data).status());
    note(trainer.evaluate(data).status());
  }
  for (int64_t i = 0; i < trainer.stateCount(); ++i) {
    std::vector<uint8_t> state(static_cast<size_t>(trainer.state(i).bytes()));
    note(trainer.readState(i, state.data()));
    note(trainer.writeState(i, state.data()));
  }
  if (says && !status.ok())
    return refuse(status, says);
  return ran;
}

End tryOne(const std::vector<uint8_t> &bytes, bool isTrained, bool says) {
  fuzz::MemoryFile file(bytes.data(), bytes.size());
  if (isTrained)
    return tryTraining(file.path(), says);
  auto artifact = runtime::Artifact::open(file.path());
  if (!artifact)
    return refuse(artifact.status(), says);
  if (!fuzz::small((*artifact)->plan()))
    return tooLarge;
  auto session = runtime::Session::create(*artifact, testOptions());
  if (!session)
    return refuse(session.status(), says);
  fuzz::runStep(**session, (*artifact)->plan());
  return ran;
}

/// The status of a process that tries it, as `waitpid` gives it.
int inAProcess(const runtime::SectionTable &table, unsigned seed, bool says) {
  const std::vector<uint8_t> bytes = changed(table, seed);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(tryOne(bytes, trains(table), says));
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
    const int plain = inAProcess(*table, 0, /*says=*/true);
    if (WIFEXITED(plain) && WEXITSTATUS(plain) == tooLarge)
      continue;
    if (!WIFEXITED(plain) || WEXITSTATUS(plain) != ran) {
      std::fprintf(stderr, "'%s' does not run as it is\n", path.c_str());
      return 1;
    }
    ++used;
    for (int run = a; run < runs; run += artifacts) {
      const int status =
          inAProcess(*table, static_cast<unsigned>(run + 1), false);
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
