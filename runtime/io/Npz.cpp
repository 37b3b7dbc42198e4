//===- Npz.cpp - NumPy's .npz archives ------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Npz.h"

#include "runtime/base/MappedFile.h"
#include "runtime/base/NearestName.h"
#include "runtime/io/Npy.h"
#include "runtime/io/PendingFile.h"

#include <memory>
#include <set>
#include <zip.h>

namespace partita::runtime {

namespace {

/// Deflate cannot do better than this; a file that claims more is broken, and
/// its claim must not decide how much memory is taken.
constexpr uint64_t kLargestRatio = 1032;
constexpr size_t kMaxEntries = 65536;

struct Discard {
  std::shared_ptr<const MappedFile> file = {}; ///< that is read

  void operator()(zip_t *archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, Discard>;

/// The file is mapped for as long as the archive is open.
Expected<Archive> openArchive(const std::string &path) {
  std::shared_ptr<const MappedFile> file = PARTITA_TRY(MappedFile::open(path));
  if (file->size() == 0)
    return Status::error("cannot read '" + path + "': it is empty");
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source =
      zip_source_buffer_create(file->data(), file->size(), 0, &error);
  zip_t *archive =
      source ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr;
  const std::string reason = archive ? "" : zip_error_strerror(&error);
  zip_error_fini(&error);
  if (archive)
    return Archive(archive, {file});
  if (source)
    zip_source_free(source);
  return Status::error("cannot read '" + path + "': it is not a .npz file (" +
                       reason + ")");
}

/// The uncompressed bytes of an entry. Messages of errors do not name it.
Expected<Tensor> readEntry(zip_t *archive, const zip_stat_t &info) {
  if (info.encryption_method != ZIP_EM_NONE)
    return Status::error("it is encrypted");
  if (info.comp_method != ZIP_CM_STORE && info.comp_method != ZIP_CM_DEFLATE)
    return Status::error("its compression is not one that NumPy uses");
  uint64_t most = info.comp_method == ZIP_CM_STORE
                      ? info.comp_size
                      : info.comp_size * kLargestRatio + 1024;
  if (info.size > most)
    return Status::error("its size is impossible");
  Tensor buffer =
      PARTITA_TRY(Tensor::allocate(abi::DType::u8, {int64_t(info.size)}));
  zip_file_t *file = zip_fopen_index(archive, info.index, 0);
  if (!file)
    return Status::error(zip_strerror(archive));
  uint64_t done = 0;
  int64_t got = 0;
  while (done < info.size && (got = zip_fread(file, buffer.mutableData() + done,
                                              info.size - done)) > 0)
    done += uint64_t(got);
  // Reading to the end makes libzip check the sum.
  char beyond;
  if (got >= 0)
    got = zip_fread(file, &beyond, 1);
  zip_fclose(file);
  if (done != info.size || got != 0)
    return Status::error("its data are damaged");
  return buffer;
}

/// What a zip says of one of its entries.
struct Entry {
  std::string name; ///< of the array
  zip_stat_t info;
};

/// The arrays of an archive, in its order. Nothing is decompressed.
Expected<std::vector<Entry>> listEntries(zip_t *archive,
                                         const std::string &path) {
  const int64_t count = zip_get_num_entries(archive, 0);
  if (count < 0 || size_t(count) > kMaxEntries)
    return Status::error("cannot read '" + path + "': it has too many entries");
  std::vector<Entry> entries;
  std::set<std::string> names;
  for (int64_t i = 0; i < count; ++i) {
    zip_stat_t info;
    const uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_INDEX | ZIP_STAT_SIZE |
                            ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD |
                            ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(archive, uint64_t(i), 0, &info) != 0 ||
        (info.valid & needed) != needed)
      return Status::error("cannot read '" + path + "': entry " +
                           std::to_string(i) + " is damaged");
    std::string name = info.name;
    const std::string where = "'" + name + "' in '" + path + "'";
    if (!name.ends_with(".npy"))
      return Status::error("cannot read " + where + ": it is not a .npy file");
    name.resize(name.size() - 4);
    if (!names.insert(name).second)
      return Status::error("cannot read " + where +
                           ": there are two of this name");
    entries.push_back({name, info});
  }
  return entries;
}

Expected<NamedTensor> readArray(zip_t *archive, const Entry &entry,
                                const std::string &path,
                                std::optional<abi::DType> expected) {
  const std::string where = "'" + entry.name + ".npy' in '" + path + "'";
  auto entryBytes = std::make_shared<Tensor>(PARTITA_TRY(
      within("cannot read " + where + ": ", readEntry(archive, entry.info))));
  Tensor tensor =
      PARTITA_TRY(parseNpy({entryBytes->data(), size_t(entryBytes->bytes())},
                           entryBytes, where, expected));
  return NamedTensor{entry.name, tensor};
}

} // namespace

Expected<std::vector<NamedTensor>> readNpz(const std::string &path,
                                           const ExpectedType &expected) {
  const Archive opened = PARTITA_TRY(openArchive(path));
  zip_t *archive = opened.get();
  std::vector<Entry> entries = PARTITA_TRY(listEntries(archive, path));
  std::vector<NamedTensor> tensors;
  for (const Entry &entry : entries)
    tensors.push_back(PARTITA_TRY(readArray(
        archive, entry, path, expected ? expected(entry.name) : std::nullopt)));
  return tensors;
}

Expected<NamedTensor> readNpzArray(const std::string &path,
                                   const std::string &name,
                                   std::optional<abi::DType> expected) {
  const Archive opened = PARTITA_TRY(openArchive(path));
  zip_t *archive = opened.get();
  std::vector<Entry> entries = PARTITA_TRY(listEntries(archive, path));
  if (name.empty() && entries.size() == 1)
    return readArray(archive, entries.front(), path, expected);
  std::vector<std::string> names;
  for (const Entry &entry : entries) {
    if (entry.name == name && !name.empty())
      return readArray(archive, entry, path, expected);
    names.push_back(entry.name);
  }
  if (!name.empty() || names.empty())
    return Status::error("cannot read '" + path +
                         "': " + unknownName("array", name, names));
  return Status::error(
      "cannot read '" + path + "': it has " + std::to_string(names.size()) +
      " arrays; name one, e.g. '" + path + ":" + names[0] + "'");
}

Status writeNpz(const std::string &path,
                const std::vector<NamedTensor> &tensors) {
  // libzip deletes an archive that would be empty.
  if (tensors.empty())
    return Status::error("cannot write '" + path + "': there are no tensors");
  std::unique_ptr<PendingFile> pending =
      PARTITA_TRY(PendingFile::create(path, files::NewFile::Writer::library));
  int code = 0;
  Archive archive(zip_open(pending->temporaryPath().c_str(),
                           ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!archive)
    return Status::error("cannot write '" + path + "': libzip's error " +
                         std::to_string(code));
  auto fail = [&] {
    return Status::error("cannot write '" + path +
                         "': " + zip_strerror(archive.get()));
  };
  // libzip reads its sources only when the archive is closed.
  std::vector<std::string> headers;
  std::vector<std::vector<zip_buffer_fragment_t>> fragments;
  headers.reserve(tensors.size());
  fragments.reserve(tensors.size());
  for (const NamedTensor &item : tensors) {
    std::string &header = headers.emplace_back(npyHeader(item.tensor));
    std::vector<zip_buffer_fragment_t> &parts = fragments.emplace_back();
    parts.push_back(
        {reinterpret_cast<zip_uint8_t *>(header.data()), header.size()});
    if (item.tensor.bytes() > 0)
      parts.push_back({const_cast<zip_uint8_t *>(item.tensor.data()),
                       zip_uint64_t(item.tensor.bytes())});
    zip_source_t *source = zip_source_buffer_fragment(
        archive.get(), parts.data(), parts.size(), 0);
    if (!source)
      return fail();
    int64_t index = zip_file_add(archive.get(), (item.name + ".npy").c_str(),
                                 source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      return fail();
    }
    // The first of January 1980, the zero of zip's calendar.
    const zip_uint16_t firstDay = (1 << 5) | 1;
    if (zip_set_file_compression(archive.get(), uint64_t(index), ZIP_CM_STORE,
                                 0) != 0 ||
        zip_file_set_dostime(archive.get(), uint64_t(index), 0, firstDay, 0) !=
            0)
      return fail();
  }
  if (zip_close(archive.get()) != 0)
    return fail();
  archive.release(); // closed
  return pending->commit();
}

} // namespace partita::runtime
