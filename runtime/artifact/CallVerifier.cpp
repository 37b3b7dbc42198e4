//===- CallVerifier.cpp - Shapes and attributes of calls ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Calls.h"
#include "runtime/artifact/PlanChecks.h"
#include "runtime/artifact/PlanVerifier.h"

#include <algorithm>
#include <utility>

namespace partita::runtime {
namespace {

/// Extents, strides and pads beyond this are nonsense, and below it the sums
/// and products here cannot overflow.
constexpr int64_t kLargest = int64_t(1) << 31;
/// Devices have room for so many; convolutions have 1 to 3 spatial ones.
constexpr int64_t kMostDimensions = 12;

int64_t rank(const abi::View *view) { return length(view->shape()); }
int64_t extent(const abi::View *view, int64_t axis) {
  return view->shape()->Get(axis);
}

/// "[2, 3]"
std::string shown(const Longs *shape) {
  std::string text = "[";
  for (int64_t i = 0; i < length(shape); ++i)
    text += (i ? ", " : "") + std::to_string(shape->Get(i));
  return text + "]";
}

class CallVerifier {
public:
  CallVerifier(const abi::Program &program, const abi::Call &call)
      : program(program), call(call) {}

  std::string verify() {
    if (call.kind() > abi::CallKind::MAX)
      return "is of an unknown kind";
    const abi::CallDetails wanted = abi::detailsOf(call.kind());
    if (call.details_type() != wanted ||
        (wanted != abi::CallDetails::NONE && !call.details()))
      return std::string("is of the kind ") +
             abi::EnumNameCallKind(call.kind()) + " and has the details '" +
             abi::EnumNameCallDetails(call.details_type()) + "'";
    const int64_t operands = operandsOf(call.kind());
    const bool ordered = call.kind() >= abi::CallKind::top_k;
    if (length(call.operands()) != operands)
      return "has " + std::to_string(length(call.operands())) +
             " operands and should have " + std::to_string(operands);
    const bool integers = multipliesIntegers();
    if (call.kind() == abi::CallKind::packed_dot)
      for (int64_t i : {0, 2, 3})
        if (viewError(program, operand(i)).empty() &&
            dtype(operand(i)) != abi::DType::f32)
          return "operand " + std::to_string(i) + " is not f32";
    for (int64_t i = 0; i < operands; ++i)
      if (std::string error = ordered    ? dense(operand(i), mayBeTransposed(i))
                              : integers ? strided(operand(i))
                                         : floats(operand(i));
          !error.empty())
        return "operand " + std::to_string(i) + " " + error;
    const abi::Conv *conv = call.details_as_Conv();
    if (integers && (length(call.post_ops()) ||
                     (conv && (conv->bias() || conv->winograd()))))
      return "multiplies integers and has a bias, post-ops or Winograd's "
             "method, which only floats have";
    result = operand(operands - 1);
    for (int64_t i = 0; i < rank(result); ++i)
      if (extent(result, i) > 1 && result->strides()->Get(i) == 0)
        return "writes the same elements more than once";

    PARTITA_RETURN_ERROR(kindError());
    for (int64_t i = 0; i < length(call.post_ops()); ++i)
      if (std::string error = postOpError(*call.post_ops()->Get(i));
          !error.empty())
        return "post-op " + std::to_string(i) + " " + error;
    return "";
  }

private:
  /// Their number, with the result.
  static int64_t operandsOf(abi::CallKind kind) {
    switch (kind) {
    case abi::CallKind::attention:
    case abi::CallKind::scatter:
    case abi::CallKind::packed_dot:
    case abi::CallKind::update_slice:
    case abi::CallKind::expert_dot:
    case abi::CallKind::expert_outer:
      return 4;
    case abi::CallKind::pool_max:
    case abi::CallKind::pool_avg:
    case abi::CallKind::top_k:
    case abi::CallKind::scan:
      return 2;
    default:
      return 3;
    }
  }

  std::string kindError() const {
    switch (call.details_type()) {
    case abi::CallDetails::NONE:
      return call.kind() == abi::CallKind::update_slice ? updateSliceError()
             : call.kind() == abi::CallKind::dot ? dotError()
                                                 : productOfExpertsError();
    case abi::CallDetails::Conv:
      return convError(*call.details_as_Conv());
    case abi::CallDetails::Pool:
      return poolError(*call.details_as_Pool());
    case abi::CallDetails::Attention:
      return attentionError(*call.details_as_Attention());
    case abi::CallDetails::Recurrent:
      return recurrentError(*call.details_as_Recurrent());
    case abi::CallDetails::TopK:
      return orderedError(abi::Combine::replace);
    case abi::CallDetails::Combination:
      return orderedError(call.details_as_Combination()->kind());
    case abi::CallDetails::PackedDot:
      return packedDotError(*call.details_as_PackedDot());
    }
    return "has details of an unknown kind";
  }

  const abi::View *operand(int64_t i) const { return call.operands()->Get(i); }

  abi::DType dtype(const abi::View *view) const {
    return program.slots()->Get(view->slot())->dtype();
  }

  /// Whether an operand may be matrices that are stored with their columns one
  /// after another.
  bool mayBeTransposed(int64_t i) const {
    return call.kind() == abi::CallKind::expert_dot && i == 1;
  }

  /// A whole slot, or the begin of one, as it lies.
  std::string dense(const abi::View *view, bool mayBeTransposed = false) const {
    PARTITA_RETURN_ERROR(viewError(program, view));
    if (rank(view) > kMostDimensions)
      return "has more than 12 dimensions";
    int64_t stride = 1;
    const int64_t last = rank(view) - 1;
    const bool swaps = mayBeTransposed && last >= 1 &&
                       view->strides()->Get(last - 1) == 1 &&
                       view->strides()->Get(last) != 1;
    for (int64_t place = last; place >= 0; --place) {
      const int64_t i =
          swaps && place + 1 >= last ? 2 * last - 1 - place : place;
      if (extent(view, i) <= 0)
        return "has the extent " + std::to_string(extent(view, i));
      if (view->strides()->Get(i) != stride && extent(view, i) != 1)
        return "is not dense";
      if (!checkedMul(stride, extent(view, i), stride))
        return "has more elements than can be counted";
    }
    return view->offset() == 0 ? "" : "does not begin with its slot";
  }

  /// The runtime's own calls; see CallKind.
  std::string orderedError(abi::Combine combine) const {
    const abi::View *x = operand(0);
    const bool chooses = call.kind() == abi::CallKind::top_k,
               scans = call.kind() == abi::CallKind::scan;
    if (length(call.post_ops()))
      return "has post-ops, which this call has not";
    constexpr abi::DType kTypes[] = {abi::DType::f32, abi::DType::f64,
                                     abi::DType::i32, abi::DType::i64};
    if (std::ranges::find(kTypes, dtype(x)) == std::end(kTypes))
      return "has elements of a type that it does not take";
    if (rank(x) != (scans ? 3 : 2) || rank(result) != rank(x))
      return mismatch();
    if (dtype(result) != (chooses ? abi::DType::i64 : dtype(x)))
      return "has a result of another type than it computes";
    for (int64_t i = 0; i < rank(x); ++i)
      if (chooses && i == 1 ? extent(result, i) > extent(x, i)
                            : extent(result, i) != extent(x, i))
        return mismatch();
    if (combine > abi::Combine::MAX ||
        (scans && combine == abi::Combine::replace))
      return "does not say how elements are combined";
    if (chooses || scans)
      return "";
    const abi::View *places = operand(1), *updates = operand(2);
    if (dtype(places) != abi::DType::i64 || dtype(updates) != dtype(x))
      return "has places or updates of another type than it takes";
    return rank(places) == 1 && rank(updates) == 2 &&
                   extent(places, 0) == extent(updates, 0) &&
                   extent(updates, 1) == extent(x, 1)
               ? ""
               : mismatch();
  }

  std::string packedDotError(const abi::PackedDot &details) const {
    const abi::View *x = operand(0), *weights = operand(1),
                    *scales = operand(2);
    if (length(call.post_ops()))
      return "has post-ops, which this call has not";
    const int64_t bits = details.bits();
    if (bits != 2 && bits != 4 && bits != 8)
      return "has weights of " + std::to_string(bits) + " bits";
    if (dtype(weights) != abi::DType::u8)
      return "has weights of another type than it takes";
    const abi::View *experts = details.experts();
    if (experts)
      PARTITA_RETURN_ERROR(expertsError(experts, x));
    const int64_t outer = experts ? 1 : 0; // dimensions before the others
    if (rank(x) != 2 || rank(weights) != 3 + outer ||
        rank(scales) != 2 + outer || rank(result) != 2)
      return mismatch();
    const int64_t rows = extent(weights, outer),
                  blocks = extent(weights, outer + 1),
                  bytes = extent(weights, outer + 2);
    int64_t numbers;
    if ((bytes & (bytes - 1)) || bytes < 2 * bits ||
        !checkedMul(blocks, bytes * 8 / bits, numbers) || numbers >= kLargest ||
        extent(x, 1) > numbers || extent(x, 1) <= numbers - bytes * 8 / bits ||
        extent(scales, 0) != extent(weights, 0) ||
        extent(scales, outer) != rows || extent(scales, outer + 1) != blocks ||
        extent(result, 0) != extent(x, 0) || extent(result, 1) != rows ||
        extent(x, 0) >= kLargest || extent(weights, 0) >= kLargest ||
        rows >= kLargest)
      return mismatch();
    const abi::View *zeros = details.zeros();
    if (!zeros)
      return "";
    if (std::string error = dense(zeros); !error.empty())
      return prefixed("zeros", error);
    if (dtype(zeros) != abi::DType::f32 || rank(zeros) != rank(scales) ||
        !std::ranges::equal(*zeros->shape(), *scales->shape()))
      return "has zeros " + shown(zeros->shape()) + " of " +
             abi::EnumNameDType(dtype(zeros)) + ", which do not fit its scales";
    return "";
  }

  /// The indices that choose a matrix for each row of x.
  std::string expertsError(const abi::View *experts, const abi::View *x) const {
    if (std::string error = dense(experts); !error.empty())
      return prefixed("experts", error);
    return dtype(experts) == abi::DType::i64 && rank(experts) == 1 &&
                   rank(x) == 2 && extent(experts, 0) == extent(x, 0)
               ? ""
               : "has experts " + shown(experts->shape()) + " of " +
                     abi::EnumNameDType(dtype(experts)) +
                     ", which do not fit the rows of its first operand";
  }

  /// y[M, N] = x[M, K] . weights[E, N, K]^T, or the derivative to the weights.
  std::string productOfExpertsError() const {
    const bool isOuter = call.kind() == abi::CallKind::expert_outer;
    const abi::View *x = operand(isOuter ? 1 : 0),
                    *y = isOuter ? operand(0) : result,
                    *weights = isOuter ? result : operand(1);
    if (length(call.post_ops()))
      return "has post-ops, which this call has not";
    for (const abi::View *view : {x, weights, y})
      if (dtype(view) != abi::DType::f32)
        return "has operands of another type than f32";
    PARTITA_RETURN_ERROR(expertsError(operand(2), x));
    if (rank(weights) != 3 || rank(y) != 2 ||
        extent(weights, 2) != extent(x, 1) || extent(y, 0) != extent(x, 0) ||
        extent(y, 1) != extent(weights, 1))
      return mismatch();
    for (const abi::View *view : {x, weights})
      for (int64_t i = 0; i < rank(view); ++i)
        if (extent(view, i) >= kLargest)
          return mismatch();
    return "";
  }

  std::string updateSliceError() const {
    const abi::View *x = operand(0), *update = operand(1), *start = operand(2);
    if (length(call.post_ops()))
      return "has post-ops, which this call has not";
    if (dtype(update) != dtype(x) || dtype(result) != dtype(x) ||
        dtype(start) != abi::DType::i64)
      return "has an update, places or a result of another type than it takes";
    if (rank(x) != 3 || rank(update) != 3 || rank(start) != 1 ||
        rank(result) != 3)
      return mismatch();
    for (int64_t i = 0; i < 3; ++i)
      if (extent(result, i) != extent(x, i) ||
          (i == 1 ? extent(update, i) > extent(x, i)
                  : extent(update, i) != extent(x, i)))
        return mismatch();
    return extent(x, 0) % extent(start, 0) ? mismatch() : "";
  }

  /// Whether it has integers of 8 bits, signed ones on its right side, and
  /// their sums; see CallKind.
  bool multipliesIntegers() const {
    if (call.kind() != abi::CallKind::dot && call.kind() != abi::CallKind::conv)
      return false;
    for (int64_t i = 0; i < 3; ++i)
      if (!viewError(program, operand(i)).empty())
        return false;
    const abi::DType left = dtype(operand(0));
    return (left == abi::DType::i8 || left == abi::DType::u8) &&
           dtype(operand(1)) == abi::DType::i8 &&
           dtype(operand(2)) == abi::DType::i32;
  }

  /// What a call of floats computes with: f32, or the type of a product, a
  /// convolution, a pool or attention.
  abi::DType floatType() const {
    using abi::CallKind;
    const abi::View *lhs = operand(0);
    constexpr CallKind kinds[] = {CallKind::dot, CallKind::conv,
                                  CallKind::pool_max, CallKind::pool_avg,
                                  CallKind::attention};
    if (std::ranges::find(kinds, call.kind()) != std::end(kinds) &&
        viewError(program, lhs).empty())
      for (abi::DType type : {abi::DType::f16, abi::DType::bf16})
        if (dtype(lhs) == type)
          return type;
    return abi::DType::f32;
  }

  std::string floats(const abi::View *view) const {
    PARTITA_RETURN_ERROR(viewError(program, view));
    if (const abi::DType wanted = floatType(); dtype(view) != wanted)
      return std::string("is not ") + abi::EnumNameDType(wanted);
    return strided(view);
  }

  std::string strided(const abi::View *view) const {
    if (rank(view) > kMostDimensions)
      return "has more than 12 dimensions";
    for (int64_t i = 0; i < rank(view); ++i)
      if (extent(view, i) == 0 || extent(view, i) >= kLargest)
        return "has the extent " + std::to_string(extent(view, i));
    return nested(view) ? "" : "has strides that interleave its dimensions";
  }

  /// Whether each dimension steps over all of those with smaller strides:
  /// libraries describe no other tensors.
  static bool nested(const abi::View *view) {
    std::vector<std::pair<int64_t, int64_t>> dims; // stride, extent
    for (int64_t i = 0; i < rank(view); ++i)
      if (extent(view, i) > 1 && view->strides()->Get(i) != 0)
        dims.emplace_back(view->strides()->Get(i), extent(view, i));
    std::sort(dims.begin(), dims.end());
    for (size_t i = 1; i < dims.size(); ++i)
      if (dims[i].first / dims[i - 1].second < dims[i - 1].first)
        return false;
    return true;
  }

  /// A view that is combined with the elements of `shape`.
  std::string broadcastError(const abi::View *view,
                             const std::vector<int64_t> &shape) const {
    PARTITA_RETURN_ERROR(floats(view));
    bool fits = rank(view) == static_cast<int64_t>(shape.size());
    for (int64_t i = 0; fits && i < rank(view); ++i)
      fits = extent(view, i) == shape[i] || extent(view, i) == 1;
    return fits ? "" : "of shape " + shown(view->shape()) + " does not fit";
  }

  std::vector<int64_t> resultShape() const {
    return {result->shape()->begin(), result->shape()->end()};
  }

  std::string postOpError(const abi::PostOp &post) const {
    if (post.kind() > abi::PostOpKind::MAX)
      return "is of an unknown kind";
    const bool binary = abi::isBinary(post.kind());
    if (binary != (post.view() != nullptr))
      return binary ? "has no view" : "has a view and needs none";
    return binary ? broadcastError(post.view(), resultShape()) : "";
  }

  std::string mismatch() const {
    std::string text = "combines";
    for (int64_t i = 0; i < length(call.operands()); ++i)
      text += (i ? " and " : " ") + shown(operand(i)->shape());
    return text + ", which do not fit";
  }

  std::string dotError() const {
    const abi::View *lhs = operand(0), *rhs = operand(1);
    int64_t dims = rank(result);
    if (dims < 2 || rank(lhs) != dims || rank(rhs) != dims)
      return mismatch();
    for (int64_t i = 0; i < dims - 2; ++i)
      for (const abi::View *view : {lhs, rhs})
        if (extent(view, i) != extent(result, i) && extent(view, i) != 1)
          return mismatch();
    if (extent(lhs, dims - 2) != extent(result, dims - 2) ||
        extent(lhs, dims - 1) != extent(rhs, dims - 2) ||
        extent(rhs, dims - 1) != extent(result, dims - 1))
      return mismatch();
    return "";
  }

  static std::string prefixed(const char *what, const std::string &error) {
    return error.empty() ? "" : std::string(what) + " " + error;
  }

  std::string numbers(const Longs *values, int64_t count, int64_t least,
                      const char *name) const {
    if (length(values) != count)
      return std::string(name) + " has " + std::to_string(length(values)) +
             " entries for " + std::to_string(count) + " spatial dimensions";
    if (!isAligned(values))
      return std::string(name) + " is not aligned";
    for (int64_t value : *values)
      if (value < least || value >= kLargest)
        return std::string(name) + " has the entry " + std::to_string(value);
    return "";
  }

  /// Of a Conv or a Pool. `window(i)`: the window's extent; the number of
  /// windows must be the result's extent, where `ceil` also admits a last one
  /// that is cut off.
  template <typename Details, typename Window>
  std::string spatialError(const Details &details, const abi::View *input,
                           const abi::View *result, Window window,
                           bool ceil) const {
    int64_t spatial = rank(input) - 2;
    if (spatial < 1 || spatial > 3 || rank(result) != rank(input) ||
        extent(result, 0) != extent(input, 0))
      return mismatch();
    for (auto [values, least, name] :
         {std::tuple(details.strides(), int64_t(1), "strides"),
          std::tuple(details.dilations(), int64_t(1), "dilations"),
          std::tuple(details.pads_low(), int64_t(0), "pads_low"),
          std::tuple(details.pads_high(), int64_t(0), "pads_high")})
      PARTITA_RETURN_ERROR(numbers(values, spatial, least, name));
    for (int64_t i = 0; i < spatial; ++i) {
      int64_t reach, room;
      if (!checkedMul(details.dilations()->Get(i), window(i) - 1, reach))
        return mismatch();
      room = extent(input, i + 2) + details.pads_low()->Get(i) +
             details.pads_high()->Get(i) - reach - 1;
      int64_t stride = details.strides()->Get(i), is = extent(result, i + 2);
      int64_t least = room / stride + 1;
      int64_t most = ceil ? (room + stride - 1) / stride + 1 : least;
      if (room < 0 || is < least || is > most)
        return mismatch();
    }
    return "";
  }

  /// Of a convolution, or of a derivative of one.
  std::string convError(const abi::Conv &conv, const abi::View *input,
                        const abi::View *weights,
                        const abi::View *result) const {
    int64_t groups = conv.groups();
    if (groups < 1 || groups >= kLargest)
      return "has " + std::to_string(groups) + " groups";
    if (rank(weights) != rank(input) || rank(input) < 3)
      return mismatch();
    if (std::string error = spatialError(
            conv, input, result,
            [&](int64_t i) { return extent(weights, i + 2); }, false);
        !error.empty())
      return error;
    if (extent(weights, 0) != extent(result, 1) ||
        extent(weights, 0) % groups != 0 ||
        extent(weights, 1) * groups != extent(input, 1))
      return mismatch();
    if (!conv.bias())
      return "";
    if (call.kind() != abi::CallKind::conv)
      return "has a bias, which a derivative of a convolution has not";
    return prefixed("bias", broadcastError(conv.bias(), {extent(result, 1)}));
  }

  std::string convError(const abi::Conv &conv) const {
    switch (call.kind()) {
    case abi::CallKind::conv_dx:
      return convError(conv, result, operand(1), operand(0));
    case abi::CallKind::conv_dw:
      return convError(conv, operand(0), result, operand(1));
    default:
      return convError(conv, operand(0), operand(1), result);
    }
  }

  std::string poolError(const abi::Pool &pool) const {
    const abi::View *input = operand(0);
    if (rank(input) < 3)
      return mismatch();
    PARTITA_RETURN_ERROR(numbers(pool.window(), rank(input) - 2, 1, "window"));
    if (std::string error = spatialError(
            pool, input, result,
            [&](int64_t i) { return pool.window()->Get(i); }, true);
        !error.empty())
      return error;
    return extent(result, 1) == extent(input, 1) ? "" : mismatch();
  }

  std::string attentionError(const abi::Attention &attention) const {
    const abi::View *q = operand(0), *k = operand(1), *v = operand(2);
    for (const abi::View *view : {q, k, v, result})
      if (rank(view) != 4 || extent(view, 0) != extent(q, 0) ||
          extent(view, 1) != extent(q, 1))
        return mismatch();
    if (extent(k, 3) != extent(q, 3) || extent(v, 2) != extent(k, 2) ||
        extent(result, 2) != extent(q, 2) || extent(result, 3) != extent(v, 3))
      return mismatch();
    if (length(call.post_ops()))
      return "has post-ops, which attention has not";
    std::vector<int64_t> scores = {extent(q, 0), extent(q, 1), extent(q, 2),
                                   extent(k, 2)};
    for (auto [mask, name] : {std::pair(attention.mask_mul(), "mask_mul"),
                              std::pair(attention.mask_add(), "mask_add")})
      if (mask)
        if (std::string error = broadcastError(mask, scores); !error.empty())
          return prefixed(name, error);
    return "";
  }

  /// A view of exactly this shape, or none.
  std::string exactError(const abi::View *view,
                         const std::vector<int64_t> &shape, bool integers,
                         const char *name) const {
    if (!view)
      return "";
    if (std::string error = viewError(program, view); !error.empty())
      return prefixed(name, error);
    abi::DType wanted = integers ? abi::DType::i32 : abi::DType::f32;
    if (program.slots()->Get(view->slot())->dtype() != wanted)
      return prefixed(name, integers ? "is not i32" : "is not f32");
    bool fits = rank(view) == static_cast<int64_t>(shape.size());
    for (int64_t i = 0; fits && i < rank(view); ++i)
      fits = extent(view, i) == shape[i];
    return fits ? ""
                : prefixed(name, "of shape " + shown(view->shape()) +
                                     " does not fit");
  }

  std::string recurrentError(const abi::Recurrent &layer) const {
    const abi::View *x = operand(0), *weights = operand(1);
    if (layer.cell() > abi::Cell::MAX)
      return "is a recurrent layer of an unknown kind";
    if (length(call.post_ops()))
      return "has post-ops, which a recurrent layer has not";
    bool gru = layer.cell() == abi::Cell::gru;
    bool lstm = layer.cell() == abi::Cell::lstm;
    int64_t gates = lstm ? 4 : gru ? 3 : 1;
    if (rank(x) != 4 || rank(weights) != 3 || rank(result) != 4)
      return mismatch();
    int64_t steps = extent(x, 0), batch = extent(x, 1), count = extent(x, 2),
            hidden = extent(weights, 2);
    if (extent(weights, 0) != count || extent(weights, 1) != gates * hidden ||
        extent(x, 3) != gates * hidden ||
        extent(result, 0) != steps + (lstm ? 2 : 1) ||
        extent(result, 1) != count || extent(result, 2) != batch ||
        extent(result, 3) != hidden)
      return mismatch();
    int64_t functions = count * (lstm ? 3 : gru ? 2 : 1);
    if (length(layer.reversed()) != count ||
        length(layer.functions()) != functions)
      return "has directions or functions that do not fit its weights";
    for (const abi::GateFunction *function : *layer.functions())
      if (function->kind() > abi::GateFunctionKind::MAX)
        return "has a gate with an unknown function";
    if ((layer.hidden_bias() && !gru) ||
        ((layer.initial_cell() || layer.peepholes() || layer.coupled()) &&
         !lstm))
      return "has an operand that a layer of its kind has not";
    std::vector<int64_t> state = {count, batch, hidden};
    for (const std::string &error :
         {exactError(layer.lengths(), {batch}, true, "lengths"),
          exactError(layer.initial(), state, false, "initial"),
          exactError(layer.initial_cell(), state, false, "initial_cell"),
          exactError(layer.peepholes(), {count, 3 * hidden}, false,
                     "peepholes"),
          exactError(layer.hidden_bias(), {count, hidden}, false,
                     "hidden_bias")})
      if (!error.empty())
        return error;
    return "";
  }

  const abi::Program &program;
  const abi::Call &call;
  const abi::View *result = nullptr;
};

} // namespace

std::string viewError(const abi::Program &program, const abi::View *view) {
  if (!view)
    return "is missing";
  PARTITA_RETURN_ERROR(indexError("names slot", view->slot(), program.slots()));
  if (length(view->shape()) != length(view->strides()))
    return "has another number of strides than of dimensions";
  if (!isAligned(view->shape()) || !isAligned(view->strides()))
    return "has a shape or strides that are not aligned";
  int64_t last = view->offset();
  if (last < 0)
    return "begins before its slot";
  bool empty = false;
  for (int64_t i = 0; i < length(view->shape()); ++i) {
    int64_t reach;
    if (view->shape()->Get(i) < 0 || view->strides()->Get(i) < 0)
      return "has a negative extent or stride";
    if (view->shape()->Get(i) == 0) {
      empty = true;
      continue;
    }
    if (!checkedMul(view->shape()->Get(i) - 1, view->strides()->Get(i),
                    reach) ||
        !checkedAdd(last, reach, last))
      return "reaches past the end of its slot";
  }
  if (!empty &&
      last >= elementCount(program.slots()->Get(view->slot())->shape()))
    return "reaches past the end of its slot";
  return "";
}

std::string callError(const abi::Program &program, const abi::Call &call) {
  return CallVerifier(program, call).verify();
}

} // namespace partita::runtime
