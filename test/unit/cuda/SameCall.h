//===- SameCall.h - Whether two functions are called alike ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declarations of our own against those in a library's header.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_CUDA_SAMECALL_H
#define PARTITA_TEST_UNIT_CUDA_SAMECALL_H

#include <type_traits>

namespace partita::test {

/// Whether two parameters are passed alike. Pointers are, to whatever they
/// point, if both may write there or none.
template <typename Ours, typename Theirs> constexpr bool isAlike() {
  using OurTarget = std::remove_pointer_t<Ours>;
  using TheirTarget = std::remove_pointer_t<Theirs>;
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>)
    return std::is_function_v<OurTarget> == std::is_function_v<TheirTarget> &&
           std::is_const_v<OurTarget> == std::is_const_v<TheirTarget>;
  else
    return std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
           std::is_class_v<Ours> == std::is_class_v<Theirs> &&
           std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs> &&
           sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
}

/// Whether two pointers to functions that return a status are called alike.
template <typename Ours, typename Theirs>
inline constexpr bool is_same_call = false;
template <typename OurStatus, typename... Ours, typename TheirStatus,
          typename... Theirs>
inline constexpr bool
    is_same_call<OurStatus (*)(Ours...), TheirStatus (*)(Theirs...)> = [] {
      if constexpr (sizeof...(Ours) == sizeof...(Theirs))
        return isAlike<OurStatus, TheirStatus>() &&
               (isAlike<Ours, Theirs>() && ...);
      else
        return false;
    }();

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_CUDA_SAMECALL_H
