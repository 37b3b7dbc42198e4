//===- TensorFiles.h - Tensors by file name ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_TENSORFILES_H
#define PARTITA_RUNTIME_IO_TENSORFILES_H

#include "runtime/io/Npz.h"
#include "runtime/io/Tensor.h"

#include <string>
#include <vector>

namespace partita::runtime {

/// True if `path` ends in ".npz". Such a file has several named tensors.
bool isArchive(const std::string &path);

/// File names (without an extension) for `names`, one each, all different:
/// letters, digits, '.', '_' and '-' stay, everything else becomes '_'.
std::vector<std::string> fileNames(const std::vector<std::string> &names);

/// The names, all different: the second of a name gets ".1", the third ".2",
/// and so on, past those that are names already.
std::vector<std::string> uniqueNames(const std::vector<std::string> &names);

/// Reads one tensor: .npy, or .pb (TensorProto). The error for another ending
/// lists the known ones.
Expected<Tensor> readTensor(const std::string &path,
                            std::optional<abi::DType> expected = std::nullopt);

/// Checks, as far as possible in advance, that writeTensors can write to
/// `path`: an .npz file whose folder exists, or the name of a folder.
Status checkOutputPath(const std::string &path);

/// Writes an .npz file with the tensors' names as keys, or a folder of .npy
/// files whose names are the tensors' names made safe. All or nothing: on an
/// error no file is left that was not there before.
Status writeTensors(const std::string &path,
                    const std::vector<NamedTensor> &tensors);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_TENSORFILES_H
