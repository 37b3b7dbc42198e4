//===- CrashReport.cpp - What a crash ends in -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/crash/CrashReport.h"

#include "compiler/crash/Place.h"

#include "mlir/IR/Action.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <ucontext.h>
#include <unistd.h>

using namespace mlir;

namespace partita::crash {
namespace {

const char *tool = nullptr;
/// Set by the first thread that crashes; others wait for the end.
std::atomic_flag crashed = ATOMIC_FLAG_INIT;

/// A line without memory of its own to allocate: a signal handler may write it.
class Line {
public:
  void add(llvm::StringRef text) {
    for (char c : text) {
      if (size == sizeof(bytes) - 1)
        return;
      bytes[size++] = c == '\n' ? ' ' : c;
    }
  }
  void write() {
    bytes[size++] = '\n';
    for (size_t at = 0; at < size;) {
      ssize_t done = ::write(STDERR_FILENO, bytes + at, size - at);
      if (done <= 0)
        return;
      at += static_cast<size_t>(done);
    }
  }

private:
  char bytes[2048];
  size_t size = 0;
};

/// Writes the line and ends the process. Safe in a signal handler.
[[noreturn]] void report(llvm::StringRef what) {
  static thread_local bool reporting = false;
  if (reporting) // this is what crashes now
    ::_exit(kExitStatus);
  reporting = true;
  if (crashed.test_and_set())
    while (true)
      ::pause();
  // LLVM keeps the list of files that are being written.
  llvm::sys::RunInterruptHandlers();
  Line line;
  if (::isatty(STDERR_FILENO))
    line.add("\r\x1b[K"); // over the progress bar
  line.add(tool);
  line.add(": error: a bug of Partita's: ");
  line.add(what);
  const Place &place = getPlace();
  if (!place.pass.empty()) {
    line.add(", in ");
    line.add(place.pass);
  }
  if (!place.node.empty()) {
    line.add(", at node '");
    line.add(place.node);
    line.add("'");
  }
  line.add("; please report it with the model and the command");
  line.write();
  ::_exit(kExitStatus);
}

#if !defined(__SANITIZE_ADDRESS__)
/// Whether the address that could not be reached is where the stack ends.
bool isStackOverflow(const siginfo_t *info, const void *context) {
#if defined(__x86_64__)
  constexpr uintptr_t kNear = 1 << 16;
  auto *state = static_cast<const ucontext_t *>(context);
  auto top = static_cast<uintptr_t>(state->uc_mcontext.gregs[REG_RSP]);
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  return info->si_code > 0 && address + kNear > top && address < top + kNear;
#else
  return false;
#endif
}

void handleSignal(int number, siginfo_t *info, void *context) {
  switch (number) {
  case SIGSEGV:
    report(isStackOverflow(info, context) ? "the stack is full"
                                          : "segmentation fault");
  case SIGBUS:
    report("bus error");
  case SIGFPE:
    report("arithmetic exception");
  case SIGILL:
    report("illegal instruction");
  default:
    report("abort");
  }
}
#endif

/// Too little memory, or too few threads, is no bug.
[[noreturn]] void reportShortage(llvm::StringRef what) {
  llvm::sys::RunInterruptHandlers();
  Line line;
  line.add(tool);
  line.add(": error: the system has not enough ");
  line.add(what);
  line.write();
  ::_exit(1);
}

[[noreturn]] void handleTerminate() {
  if (std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc &) {
      reportShortage("memory");
    } catch (const std::system_error &e) {
      if (e.code() == std::errc::resource_unavailable_try_again)
        reportShortage("threads, or memory for them");
      report(e.what());
    } catch (const std::exception &e) {
      char what[512];
      std::snprintf(what, sizeof(what), "uncaught exception: %s", e.what());
      report(what);
    } catch (...) {
      report("uncaught exception");
    }
  }
  report("std::terminate");
}

void handleFatalError(void *, const char *reason, bool) {
  char what[1024];
  std::snprintf(what, sizeof(what), "LLVM: %s", reason);
  report(what);
}

} // namespace

void installCrashReport(const char *name) {
  tool = name;
  std::set_terminate(handleTerminate);
  llvm::install_fatal_error_handler(handleFatalError);
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { reportShortage("memory"); });
#if !defined(__SANITIZE_ADDRESS__)
  // LLVM installs its handlers once, and keeps those of others from then on.
  llvm::sys::AddSignalHandler([](void *) {}, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = handleSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    ::sigaction(number, &action, nullptr);
#endif
}

void trackPlaces(MLIRContext &context) {
  context.registerActionHandler(
      [](llvm::function_ref<void()> run, const tracing::Action &action) {
        if (auto *execution = dyn_cast<PassExecutionAction>(&action)) {
          const Pass &pass = execution->getPass();
          AtPass at(pass.getArgument().empty() ? pass.getName()
                                               : pass.getArgument());
          return run();
        }
        for (IRUnit unit : action.getContextIRUnits())
          if (auto *op = dyn_cast_if_present<Operation *>(unit)) {
            AtNode at(op->getLoc());
            return run();
          }
        run();
      });
}

} // namespace partita::crash

/// What glibc's `assert` calls: the one of this program instead, so that the
/// assertion stands in the one line.
extern "C" void __assert_fail(const char *assertion, const char *file,
                              unsigned int line, const char *) noexcept {
  char what[1024];
  const char *slash = std::strrchr(file, '/');
  std::snprintf(what, sizeof(what), "assertion '%s' failed (%s:%u)", assertion,
                slash ? slash + 1 : file, line);
  if (partita::crash::tool)
    partita::crash::report(what);
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}
