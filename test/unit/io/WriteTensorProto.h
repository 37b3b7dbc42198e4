//===- WriteTensorProto.h - Tensors as .pb files ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_IO_WRITETENSORPROTO_H
#define PARTITA_TEST_UNIT_IO_WRITETENSORPROTO_H

#include "runtime/io/PendingFile.h"
#include "runtime/io/Tensor.h"
#include "runtime/io/tensor.pb.h"

namespace partita::runtime::testing {

/// Writes a TensorProto with the elements in raw_data.
inline Status writeTensorProto(const std::string &path,
                               const NamedTensor &item) {
  const Tensor &tensor = item.tensor;
  const ElementType &type = elementType(tensor.dtype());
  io::TensorFile file;
  for (int64_t dim : tensor.shape())
    file.add_dims(dim);
  file.set_data_type(type.onnx);
  if (!item.name.empty())
    file.set_name(item.name);
  std::string raw(reinterpret_cast<const char *>(tensor.data()),
                  size_t(tensor.bytes()));
  if (type.bits < 8) {
    const int64_t each = 8 / type.bits;
    raw.assign(size_t((tensor.elements() + each - 1) / each), '\0');
    for (int64_t i = 0; i < tensor.elements(); ++i)
      raw[size_t(i / each)] |= char((tensor.data()[i] & ((1 << type.bits) - 1))
                                    << (type.bits * int(i % each)));
  }
  file.set_raw_data(std::move(raw));
  return writeFile(path, file.SerializeAsString());
}

} // namespace partita::runtime::testing

#endif // PARTITA_TEST_UNIT_IO_WRITETENSORPROTO_H
