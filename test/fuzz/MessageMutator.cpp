//===- MessageMutator.cpp - Mutations of a protobuf message ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/MessageMutator.h"

#include "test/fuzz/Target.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <vector>

using namespace google::protobuf;

namespace partita::fuzz {
namespace {

class Mutator {
public:
  explicit Mutator(uint64_t seed) : random(seed) {}

  void mutate(Message &message) {
    collect(message);
    Message &chosen = *messages[random.below(messages.size())];
    const Descriptor &type = *chosen.GetDescriptor();
    if (type.field_count() == 0)
      return;
    // Mostly a field that is there.
    std::vector<const FieldDescriptor *> fields;
    chosen.GetReflection()->ListFields(chosen, &fields);
    const FieldDescriptor *field =
        fields.empty() || random.below(8) == 0
            ? type.field(static_cast<int>(
                  random.below(static_cast<uint64_t>(type.field_count()))))
            : fields[random.below(fields.size())];
    if (field->is_repeated())
      changeRepeated(chosen, *field);
    else
      changeSingle(chosen, *field);
  }

private:
  /// All messages below `message`, and their strings.
  void collect(Message &message) {
    messages.push_back(&message);
    const Reflection &reflection = *message.GetReflection();
    std::vector<const FieldDescriptor *> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor *field : fields) {
      int count =
          field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < count && messages.size() < kMostMessages; ++i) {
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
          collect(field->is_repeated()
                      ? *reflection.MutableRepeatedMessage(&message, field, i)
                      : *reflection.MutableMessage(&message, field));
        else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
          strings.push_back(
              field->is_repeated()
                  ? reflection.GetRepeatedString(message, field, i)
                  : reflection.GetString(message, field));
      }
    }
  }

  std::string otherString(std::string own) {
    if (random.below(3) && !strings.empty())
      return strings[random.below(strings.size())];
    size_t size = own.size();
    own.resize(size + 64);
    own.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(own.data()), size,
                                own.size()));
    return own;
  }

  int otherEnum(const FieldDescriptor &field) {
    const EnumDescriptor &type = *field.enum_type();
    return type
        .value(static_cast<int>(
            random.below(static_cast<uint64_t>(type.value_count()))))
        ->number();
  }

  double otherReal() {
    static constexpr double kReals[] = {0, -0.0, 1, -1, 0.5, 1e-30, 1e30, 3e38};
    return kReals[random.below(8)];
  }

  void changeSingle(Message &message, const FieldDescriptor &field) {
    const Reflection &r = *message.GetReflection();
    if (random.below(6) == 0)
      return r.ClearField(&message, &field);
    switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return r.SetInt32(
          &message, &field,
          static_cast<int32_t>(random.vary(r.GetInt32(message, &field))));
    case FieldDescriptor::CPPTYPE_INT64:
      return r.SetInt64(&message, &field,
                        random.vary(r.GetInt64(message, &field)));
    case FieldDescriptor::CPPTYPE_UINT32:
      return r.SetUInt32(&message, &field,
                         static_cast<uint32_t>(random.interesting()));
    case FieldDescriptor::CPPTYPE_UINT64:
      return r.SetUInt64(&message, &field,
                         static_cast<uint64_t>(random.interesting()));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r.SetDouble(&message, &field, otherReal());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return r.SetFloat(&message, &field, static_cast<float>(otherReal()));
    case FieldDescriptor::CPPTYPE_BOOL:
      return r.SetBool(&message, &field, random.below(2));
    case FieldDescriptor::CPPTYPE_ENUM:
      return r.SetEnumValue(&message, &field, otherEnum(field));
    case FieldDescriptor::CPPTYPE_STRING:
      return r.SetString(&message, &field,
                         otherString(r.GetString(message, &field)));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      // Chosen first: a new member of a oneof deletes the old one.
      if (const Message *other = anyOf(field))
        r.MutableMessage(&message, &field)->CopyFrom(*other);
      else
        r.MutableMessage(&message, &field);
      return;
    }
  }

  /// A copy of some message of the field's type, if there is one.
  const Message *anyOf(const FieldDescriptor &field) {
    const Message *chosen = nullptr;
    uint64_t seen = 0;
    for (const Message *other : messages)
      if (other->GetDescriptor() == field.message_type() &&
          random.below(++seen) == 0)
        chosen = other;
    if (!chosen)
      return nullptr;
    // It may hold the place that it is copied to.
    copy.reset(chosen->New());
    copy->CopyFrom(*chosen);
    return copy.get();
  }

  void changeRepeated(Message &message, const FieldDescriptor &field) {
    const Reflection &r = *message.GetReflection();
    int count = r.FieldSize(message, &field);
    int at = count
                 ? static_cast<int>(random.below(static_cast<uint64_t>(count)))
                 : 0;
    switch (random.below(5)) {
    case 0:
      if (count) {
        r.SwapElements(&message, &field, at, count - 1);
        r.RemoveLast(&message, &field);
      }
      return;
    case 1:
      if (count)
        r.SwapElements(
            &message, &field, at,
            static_cast<int>(random.below(static_cast<uint64_t>(count))));
      return;
    case 2:
      return add(message, field, count, at);
    default:
      if (count)
        changeElement(message, field, at);
    }
  }

  /// Adds a copy of element `at`, or something new.
  void add(Message &message, const FieldDescriptor &field, int count, int at) {
    const Reflection &r = *message.GetReflection();
    switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return r.AddInt32(&message, &field,
                        static_cast<int32_t>(random.interesting()));
    case FieldDescriptor::CPPTYPE_INT64:
      return r.AddInt64(&message, &field, random.interesting());
    case FieldDescriptor::CPPTYPE_UINT64:
      return r.AddUInt64(&message, &field,
                         static_cast<uint64_t>(random.interesting()));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r.AddDouble(&message, &field, otherReal());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return r.AddFloat(&message, &field, static_cast<float>(otherReal()));
    case FieldDescriptor::CPPTYPE_ENUM:
      return r.AddEnumValue(&message, &field, otherEnum(field));
    case FieldDescriptor::CPPTYPE_STRING:
      return r.AddString(&message, &field, otherString(""));
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      Message &added = *r.AddMessage(&message, &field);
      if (count)
        added.CopyFrom(r.GetRepeatedMessage(message, &field, at));
      else if (const Message *other = anyOf(field))
        added.CopyFrom(*other);
      return;
    }
    default:
      return;
    }
  }

  void changeElement(Message &message, const FieldDescriptor &field, int at) {
    const Reflection &r = *message.GetReflection();
    switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return r.SetRepeatedInt32(&message, &field, at,
                                static_cast<int32_t>(random.vary(
                                    r.GetRepeatedInt32(message, &field, at))));
    case FieldDescriptor::CPPTYPE_INT64:
      return r.SetRepeatedInt64(
          &message, &field, at,
          random.vary(r.GetRepeatedInt64(message, &field, at)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return r.SetRepeatedUInt64(&message, &field, at,
                                 static_cast<uint64_t>(random.interesting()));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r.SetRepeatedDouble(&message, &field, at, otherReal());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return r.SetRepeatedFloat(&message, &field, at,
                                static_cast<float>(otherReal()));
    case FieldDescriptor::CPPTYPE_STRING:
      return r.SetRepeatedString(
          &message, &field, at,
          otherString(r.GetRepeatedString(message, &field, at)));
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      if (const Message *other = anyOf(field))
        r.MutableRepeatedMessage(&message, &field, at)->CopyFrom(*other);
      return;
    }
    default:
      return;
    }
  }

  static constexpr size_t kMostMessages = 10000;
  Random random;
  std::vector<Message *> messages;
  std::vector<std::string> strings;
  std::unique_ptr<Message> copy;
};

} // namespace

size_t mutateParsed(Message &message, uint8_t *data, size_t size, size_t most,
                    unsigned seed) {
  Mutator(seed).mutate(message);
  size_t bytes = message.ByteSizeLong();
  // Required fields are the reader's to check.
  if (bytes > most ||
      !message.SerializePartialToArray(data, static_cast<int>(bytes)))
    return LLVMFuzzerMutate(data, size, most);
  return bytes;
}

size_t mutateMessage(Message &message, uint8_t *data, size_t size, size_t most,
                     unsigned seed) {
  if (seed % 4 == 0 ||
      !message.ParsePartialFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, most);
  return mutateParsed(message, data, size, most, seed);
}

} // namespace partita::fuzz
