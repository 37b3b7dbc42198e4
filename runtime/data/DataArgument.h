//===- DataArgument.h - The value of --data ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_DATAARGUMENT_H
#define PARTITA_RUNTIME_DATA_DATAARGUMENT_H

#include "runtime/data/Conversion.h"
#include "runtime/data/OpenDataset.h"

#include <string_view>

namespace partita::data {

/// Which samples an input of the model gets, as a command line says it:
///
///   NAME=PATH[:PART[,PART...]][,OPTION=VALUE...]
///
///   image=train-images-idx3-ubyte.gz,divide=255,mean=0.1307,std=0.3081
///   label=train.npz:labels
///   features=iris.csv:length,width
///   ids=train.bin:targets,dtype=u16,window=256,stride=1
///
/// A path has no colon and no comma; a part, no comma and no equals sign.
struct DataArgument {
  std::string input; ///< the model's
  std::string path;
  DatasetOptions options;
  Scale scale;
};

/// Options are dtype, window, stride (DatasetOptions), divide, mean and std
/// (Scale). The file is not looked at. An error says what is wrong, and not in
/// which argument.
runtime::Expected<DataArgument> parseDataArgument(const std::string &text);

/// The element type of a name: as in the plan or as in NumPy, e.g. "u16" or
/// "uint16". The error names the nearest one.
runtime::Expected<abi::DType> parseDType(const std::string &name);

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_DATAARGUMENT_H
