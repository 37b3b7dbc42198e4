//===- Place.h - Where the compiler is at the moment ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each thread records the pass that it runs and the node that it works on. A
// crash report names both. Keeping the record up to date costs a few
// assignments.
//
//   crash::AtPass pass("reading the model");
//   for (const Node &node : nodes) {
//     crash::AtNode at(node.loc);
//     ...
//   }
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CRASH_PLACE_H
#define PARTITA_COMPILER_CRASH_PLACE_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringRef.h"

namespace partita::crash {

/// What a thread is doing. The text is not owned.
struct Place {
  llvm::StringRef pass; ///< its flag, or the name of a phase
  llvm::StringRef node; ///< name of an ONNX node; empty: none, or not known
};

/// The place of the calling thread. May be read in a signal handler.
const Place &getPlace();

/// Records, for its lifetime, that the calling thread runs a pass and is at no
/// node yet. The text must live as long. Also gives the thread a separate stack
/// for signal handlers, which is needed when its own overflows.
class AtPass {
public:
  explicit AtPass(llvm::StringRef pass);
  ~AtPass();
  AtPass(const AtPass &) = delete;
  AtPass &operator=(const AtPass &) = delete;

private:
  Place outer;
};

/// Records, for its lifetime, that the calling thread works on a node: the
/// first that the location names. A location without names changes nothing.
class AtNode {
public:
  explicit AtNode(mlir::Location loc);
  ~AtNode();
  AtNode(const AtNode &) = delete;
  AtNode &operator=(const AtNode &) = delete;

private:
  llvm::StringRef outer;
};

/// For tests of the crash report: makes the compiler crash if the environment
/// has PARTITA_CRASH=KIND@NAME and `name` is that pass or node. KIND is one of
/// abort, assertion, bus, exception, fatal, floating-point, illegal,
/// segmentation and stack.
void provokeCrash(llvm::StringRef name);

} // namespace partita::crash

#endif // PARTITA_COMPILER_CRASH_PLACE_H
