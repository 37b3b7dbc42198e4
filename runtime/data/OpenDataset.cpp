//===- OpenDataset.cpp - Samples of a file, whatever its format -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/OpenDataset.h"

#include "runtime/base/MappedFile.h"
#include "runtime/base/NearestName.h"
#include "runtime/data/Formats.h"
#include "runtime/data/GzipReader.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Npz.h"

namespace partita::data {

using abi::DType;
using runtime::Expected;
using runtime::MappedFile;
using runtime::Status;
using runtime::Tensor;

namespace {

/// A mapped file, and how the user named it.
struct File {
  std::shared_ptr<const MappedFile> mapped;
  std::string path;
  std::string name; ///< with what is wanted of it, for messages

  std::span<const uint8_t> bytes() const { return mapped->span(); }
  std::string_view text() const { return mapped->text(); }
};

Status cannotRead(const File &file, const std::string &why) {
  return Status::error("cannot read " + file.name + ": " + why);
}

Expected<DatasetPointer> openTokens(const File &file,
                                    const DatasetOptions &options) {
  TokenOptions tokens;
  tokens.dtype = options.dtype.value_or(DType::u16);
  tokens.window = options.window.value_or(0);
  tokens.stride = options.stride.value_or(tokens.window);
  if (options.parts.size() > 1)
    return cannotRead(file, "name either 'inputs' or 'targets'");
  if (!options.parts.empty()) {
    const std::string &part = options.parts.front();
    if (part != "inputs" && part != "targets")
      return cannotRead(file, runtime::unknownName("view of tokens", part,
                                                   {"inputs", "targets"}));
    tokens.targets = part == "targets";
  }
  return parseTokens(file.bytes(), file.mapped, tokens, file.name);
}

Expected<DatasetPointer> openCsv(const File &file,
                                 const DatasetOptions &options) {
  CsvOptions csv;
  csv.columns = options.parts;
  csv.dtype = options.dtype.value_or(DType::f32);
  return parseCsv(file.text(), csv, file.name);
}

Expected<DatasetPointer> openIdx(const File &file, const DatasetOptions &) {
  return GzipReader::recognises(file.bytes())
             ? parseGzippedIdx(file.bytes(), file.name)
             : parseIdx(file.bytes(), file.mapped, file.name);
}

Expected<DatasetPointer> openNpy(const File &file,
                                 const DatasetOptions &options) {
  size_t begin = 0;
  const runtime::NpyHeader header =
      PARTITA_TRY(within("cannot read " + file.name + ": ",
                         runtime::readNpyHeader(file.bytes(), begin)));
  if (header.fortranOrder && header.shape.size() > 1)
    return cannotRead(file, "its array is in Fortran order, so that no sample "
                            "lies in one piece; save "
                            "numpy.ascontiguousarray(array)");
  if (header.descr.starts_with('>') && !header.descr.ends_with('1'))
    return cannotRead(file, "its array is big-endian; save array.astype('<" +
                                header.descr.substr(1) + "')");
  Tensor tensor = PARTITA_TRY(
      runtime::parseNpy(file.bytes(), file.mapped, file.name, options.dtype));
  return samplesOf(tensor, file.name);
}

Expected<DatasetPointer> openNpz(const File &file,
                                 const DatasetOptions &options) {
  if (options.parts.size() > 1)
    return cannotRead(file, "name one array of it, not " +
                                std::to_string(options.parts.size()));
  runtime::NamedTensor item = PARTITA_TRY(runtime::readNpzArray(
      file.path, options.parts.empty() ? "" : options.parts.front(),
      options.dtype));
  return samplesOf(item.tensor, file.name);
}

/// A format, and which options it has.
struct Format {
  const char *what;
  Expected<DatasetPointer> (*open)(const File &, const DatasetOptions &);
  bool hasParts;
  bool hasWindows;
  bool choosesType; ///< the file does not say its type
};

constexpr Format kTokens = {"a file of tokens", openTokens, true, true, true};
constexpr Format kCsv = {"a .csv file", openCsv, true, false, true};
constexpr Format kIdx = {"an IDX file", openIdx, false, false, false};
constexpr Format kNpy = {"a .npy file", openNpy, false, false, false};
constexpr Format kNpz = {"an .npz file", openNpz, true, false, false};

const Format *formatOf(const File &file) {
  if (file.path.ends_with(".bin"))
    return &kTokens;
  if (file.path.ends_with(".csv"))
    return &kCsv;
  if (file.text().starts_with(runtime::kNpyMagic))
    return &kNpy;
  if (file.text().starts_with("PK"))
    return &kNpz;
  if (isIdx(file.bytes()) || GzipReader::recognises(file.bytes()))
    return &kIdx;
  return nullptr;
}

} // namespace

Expected<DatasetPointer> openDataset(const std::string &path,
                                     const DatasetOptions &options) {
  std::shared_ptr<const MappedFile> mapped =
      PARTITA_TRY(MappedFile::open(path));
  File file = {mapped, path, "'" + path};
  for (size_t i = 0; i < options.parts.size(); ++i)
    file.name += (i ? "," : ":") + options.parts[i];
  file.name += "'";
  const Format *format = formatOf(file);
  if (!format)
    return cannotRead(file, file.bytes().empty()
                                ? "it is empty"
                                : "its format is not known; it must be IDX "
                                  "(also gzipped), .npy, .npz, .csv, or tokens "
                                  "in a .bin file");
  const std::string what = format->what;
  if (!format->hasParts && !options.parts.empty())
    return cannotRead(file, what +
                                " has one array without a name; leave out "
                                "':" +
                                options.parts.front() + "'");
  if (!format->hasWindows && (options.window || options.stride))
    return cannotRead(file, what + " has no tokens; leave out '" +
                                (options.window ? "window" : "stride") + "'");
  DatasetPointer dataset = PARTITA_TRY(format->open(file, options));
  const DType dtype = dataset->dtype();
  if (!format->choosesType && options.dtype && *options.dtype != dtype)
    return cannotRead(
        file, "it holds " + std::string(abi::EnumNameDType(dtype)) + ", not " +
                  abi::EnumNameDType(*options.dtype) + "; leave out 'dtype'");
  return dataset;
}

} // namespace partita::data
