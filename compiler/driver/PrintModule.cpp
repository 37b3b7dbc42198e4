//===- PrintModule.cpp - The IR for people --------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PrintModule.h"

#include "compiler/model/NodeNames.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

/// "/conv1/Conv" as the name of a value: "conv1.Conv". A location without
/// names gives "".
static std::string getValueName(Location loc) {
  SmallVector<StringRef, 2> nodes = partita::getNodeNames(loc);
  std::string name;
  for (char c : nodes.empty() ? StringRef() : nodes.back())
    if (llvm::isAlnum(c) || c == '_')
      name += c;
    else if (!name.empty() && name.back() != '.')
      name += '.';
  while (!name.empty() && name.back() == '.')
    name.pop_back();
  // A number is what a value without a name is called.
  return name.empty() || !llvm::isDigit(name[0]) ? name : "node" + name;
}

/// The printer takes names of values from their locations.
static Location getPrintedLoc(Location loc) {
  std::string name = getValueName(loc);
  Location unknown = UnknownLoc::get(loc.getContext());
  return name.empty()
             ? unknown
             : NameLoc::get(StringAttr::get(loc.getContext(), name), unknown);
}

void partita::driver::printModule(ModuleOp module, llvm::raw_ostream &os) {
  module->walk([](Operation *op) {
    if (op->getNumResults() > 0)
      op->setLoc(getPrintedLoc(op->getLoc()));
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setLoc(getPrintedLoc(argument.getLoc()));
  });
  module->print(os, OpPrintingFlags().printNameLocAsPrefix());
}
