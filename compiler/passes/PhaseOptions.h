//===- PhaseOptions.h - Options of a phase, and their text ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The options of a pipeline of passes, as MLIR parses them from a command line.
// Besides, they write themselves as such text, shortly: options that have their
// default are left out. So the compiler can say how partita-opt repeats what it
// did.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PASSES_PHASEOPTIONS_H
#define PARTITA_COMPILER_PASSES_PHASEOPTIONS_H

#include "mlir/Pass/PassOptions.h"
#include "llvm/ADT/STLExtras.h"

#include <functional>
#include <string>
#include <vector>

namespace partita::passes {

/// Writes one value of an option, in quotes if the text would be split.
void writeValue(llvm::raw_ostream &os, llvm::StringRef value);
void writeValue(llvm::raw_ostream &os, bool value);
void writeValue(llvm::raw_ostream &os, int value);
void writeValue(llvm::raw_ostream &os, int64_t value);
void writeValue(llvm::raw_ostream &os, double value);
void writeValues(llvm::raw_ostream &os, const std::vector<std::string> &texts,
                 char comma);

/// The base of the options of a phase.
class PhaseOptions : public virtual mlir::detail::PassOptions {
public:
  /// One option. `T`: bool, int, int64_t, double or std::string.
  template <typename T> class Value : public Option<T> {
  public:
    Value(PhaseOptions &parent, llvm::StringRef name,
          llvm::StringRef description, T standard = {})
        : Option<T>(parent, name, llvm::cl::desc(description),
                    llvm::cl::init(standard)) {
      parent.writers.push_back([this, name, standard](llvm::raw_ostream &os) {
        if (this->getValue() == standard)
          return false;
        os << name << '=';
        writeValue(os, this->getValue());
        return true;
      });
    }
    using Option<T>::operator=;
  };

  /// An option with any number of texts. Commas separate them, so a comma
  /// within one is written as `comma`.
  class Texts : public ListOption<std::string> {
  public:
    Texts(PhaseOptions &parent, llvm::StringRef name,
          llvm::StringRef description, char comma = ',')
        : ListOption<std::string>(parent, name, llvm::cl::desc(description)) {
      parent.writers.push_back([this, name, comma](llvm::raw_ostream &os) {
        if (this->empty())
          return false;
        os << name << '=';
        writeValues(os, *this, comma);
        return true;
      });
    }
    using ListOption<std::string>::operator=;

    std::vector<std::string> get() const { return {begin(), end()}; }
  };

  /// "name=value name=value", of those that differ from their defaults.
  std::string toText() const;

private:
  std::vector<std::function<bool(llvm::raw_ostream &)>> writers;
};

} // namespace partita::passes

#endif // PARTITA_COMPILER_PASSES_PHASEOPTIONS_H
