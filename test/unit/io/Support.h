//===- Support.h - Files and bytes for the tests of runtime/io --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_IO_SUPPORT_H
#define PARTITA_TEST_UNIT_IO_SUPPORT_H

#include "runtime/io/Tensor.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <unistd.h>

namespace partita::runtime::testing {

/// A folder of this test's own, removed at its end.
class Folder {
public:
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "partita-io-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
  std::string file(const std::string &name) const {
    return (path / name).string();
  }
  std::string write(const std::string &name, const std::string &bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }
  /// The number of files and folders in it.
  size_t entries() const {
    return size_t(std::distance(std::filesystem::directory_iterator(path),
                                std::filesystem::directory_iterator()));
  }
  std::filesystem::path path;
};

inline std::string fileBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline std::span<const uint8_t> bytesOf(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

template <typename T>
Tensor makeTensor(abi::DType dtype, std::vector<int64_t> shape,
                  const std::vector<T> &values) {
  Expected<Tensor> tensor = Tensor::allocate(dtype, std::move(shape));
  EXPECT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->bytes(), int64_t(values.size() * sizeof(T)));
  if (!values.empty())
    std::memcpy(tensor->mutableData(), values.data(),
                values.size() * sizeof(T));
  return *tensor;
}

inline std::vector<double> valuesOf(const Tensor &tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    values.push_back(toDouble(
        tensor.dtype(), tensor.data() + i * elementBytes(tensor.dtype())));
  return values;
}

/// Expects an error that contains `part`.
template <typename T>
void expectError(const Expected<T> &result, const std::string &part) {
  ASSERT_FALSE(result.ok()) << "no error, but one with: " << part;
  EXPECT_NE(result.status().message().find(part), std::string::npos)
      << result.status().message();
}
inline void expectError(const Status &status, const std::string &part) {
  ASSERT_FALSE(status.ok()) << "no error, but one with: " << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

} // namespace partita::runtime::testing

#endif // PARTITA_TEST_UNIT_IO_SUPPORT_H
