//===- Worker.cpp - Many compilations and runs in one process -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tool of the tests: carries out command lines of partita-compile and
// partita-run, one after another, and so spares each of them a process, the
// loading of libraries and dialects, and the compilation of kernels that an
// earlier one compiled (those of a model do not depend on its cut).
//
//   partita-test-worker --scratch DIR
//
// A request is a JSON object in one line of standard input, its answer one in
// one line of standard output:
//
//   {"command": ["partita-compile", "m.onnx", "-o", "m.partita", "--quiet"]}
//   {"status": 0, "output": "", "errors": "", "ms": 31.2}
//
//   command   the arguments as one would write them; the first is
//             partita-compile or partita-run
//   status    what the program would exit with
//   output    what it wrote to standard output
//   errors    what it wrote to standard error
//   ms        how long it took
//
// A request that is none is answered with {"refused": "why"}. At the end of the
// input the worker exits with status 0. If a command crashes, the worker is
// gone with it: whoever started it sees how it ended, finds in DIR/output and
// DIR/errors what the command wrote, and starts another. `worker.py` does so.
//
// DIR is best in memory (/dev/shm): the linker's files go there, too.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compile.h"
#include "tools/partita-compile/Program.h"
#include "tools/partita-run/Program.h"

#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

using namespace partita;
using nlohmann::json;

namespace {

/// Standard output and standard error, in files.
class Capture {
public:
  explicit Capture(const std::string &folder) {
    for (auto [descriptor, name] : {std::pair(STDOUT_FILENO, "/output"),
                                    std::pair(STDERR_FILENO, "/errors")}) {
      std::string path = folder + name;
      int file =
          ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
      if (file < 0 || ::dup2(file, descriptor) < 0) {
        std::fprintf(stderr, "partita-test-worker: error: cannot write '%s'\n",
                     path.c_str());
        std::exit(1);
      }
      ::close(file);
      paths.push_back(path);
    }
  }

  void clear() {
    for (const std::string &path : paths)
      if (::truncate(path.c_str(), 0) != 0)
        std::exit(1);
  }

  std::string read(size_t which) const {
    std::fflush(stdout);
    llvm::outs().flush();
    std::ifstream file(paths[which], std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

private:
  std::vector<std::string> paths;
};

/// A compiler that is used again. What a context has seen it keeps, so there is
/// a new one from time to time.
class Compiler {
public:
  Compiler() { driver::registerCompilerDialects(registry); }

  int run(int argc, char **argv) {
    constexpr int kMostRuns = 500;
    if (runs++ % kMostRuns == 0)
      context = std::make_unique<mlir::MLIRContext>(
          registry, mlir::MLIRContext::Threading::DISABLED);
    return tools::runCompiler(argc, argv, *context, &objects);
  }

private:
  mlir::DialectRegistry registry;
  std::unique_ptr<mlir::MLIRContext> context;
  codegen::ObjectCache objects;
  int runs = 0;
};

/// A session pins the thread that runs it and sets its rounding: each gets a
/// thread of its own.
int runArtifact(int argc, char **argv) {
  int status = 1;
  std::thread([&] { status = run::runProgram(argc, argv); }).join();
  return status;
}

json refuse(const std::string &why) { return {{"refused", why}}; }

json answer(const std::string &line, Compiler &compiler, Capture &capture) {
  json request = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object() || !request.contains("command") ||
      !request["command"].is_array() || request["command"].empty())
    return refuse("a request is {\"command\": [program, argument, ...]}");
  std::vector<std::string> words;
  for (const json &word : request["command"]) {
    if (!word.is_string())
      return refuse("every word of a command is a string");
    words.push_back(word.get<std::string>());
  }
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  const int argc = int(words.size());
  const bool compiles = words[0] == "partita-compile";
  if (!compiles && words[0] != "partita-run")
    return refuse("the program is partita-compile or partita-run, not '" +
                  words[0] + "'");
  capture.clear();
  auto begin = std::chrono::steady_clock::now();
  int status = compiles ? compiler.run(argc, argv.data())
                        : runArtifact(argc, argv.data());
  std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - begin;
  return {{"status", status},
          {"output", capture.read(0)},
          {"errors", capture.read(1)},
          {"ms", took.count()}};
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3 || std::strcmp(argv[1], "--scratch") != 0) {
    std::fprintf(stderr, "usage: partita-test-worker --scratch DIR\n");
    return 1;
  }
  run::boundSpinning(argv);
  ::setenv("TMPDIR", argv[2], 1);
  std::FILE *answers = ::fdopen(::dup(STDOUT_FILENO), "w");
  Capture capture(argv[2]);
  Compiler compiler;
  for (std::string line; std::getline(std::cin, line);) {
    // Text that is not UTF-8 is part of some names that tests make up.
    std::string text =
        answer(line, compiler, capture)
            .dump(-1, ' ', false, json::error_handler_t::replace);
    std::fprintf(answers, "%s\n", text.c_str());
    std::fflush(answers);
  }
  return 0;
}
