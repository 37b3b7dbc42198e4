//===- FusionTest.cpp - Every post-op that a call may have, computed ------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of runtime/device/cpu/onednn/rules/Fusion.h against loops: each of
// its post-ops, alone and behind another one, with an operand of each form, on
// products and convolutions of all kinds. `partita_runtime_tests.avx2` runs it
// once more on the code that the library has without AVX-512.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/rules/Fusion.h"
#include "runtime/abi/Calls.h"
#include "test/unit/runtime/CallCases.h"

#include <limits>

namespace partita::test {
namespace {

using rules::OperandForm;
using Kind = abi::PostOpKind;

/// How a call is computed does not depend on how many threads compute it.
const RunOptions kOneThread = {.threads = 1};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double larger(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? kNan : std::max(x, y);
}
double smaller(double x, double y) { return -larger(-x, -y); }

double apply(const PostOpSpec &post, double x, double y) {
  switch (post.kind) {
  case Kind::relu:
    return larger(x, 0);
  case Kind::tanh:
    return std::tanh(x);
  case Kind::logistic:
    return sigmoid(x);
  case Kind::gelu_erf:
    return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  case Kind::gelu_tanh:
    return x / 2 * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
  case Kind::sqrt:
    return std::sqrt(x);
  case Kind::abs:
    return std::abs(x);
  case Kind::square:
    return x * x;
  case Kind::linear:
    return post.alpha * x + post.beta;
  case Kind::clip:
    return smaller(larger(x, post.alpha), post.beta);
  case Kind::elu:
    return x > 0 ? x : post.alpha * std::expm1(x);
  case Kind::leaky_relu:
    return x > 0 ? x : post.alpha * x;
  case Kind::swish:
    return x * sigmoid(post.alpha * x);
  case Kind::hardswish:
    return x * smaller(larger(x + 3, 0), 6) / 6;
  case Kind::add:
  case Kind::sum:
    return x + y;
  case Kind::mul:
    return x * y;
  case Kind::max:
    return larger(x, y);
  case Kind::min:
    return smaller(x, y);
  case Kind::sub:
    return x - y;
  case Kind::div:
    return x / y;
  case Kind::exp:
  case Kind::log:
    break;
  }
  ADD_FAILURE() << "the table has a post-op that nothing here computes";
  return 0;
}

/// Parameters that make the functions that have some differ from others.
PostOpSpec specOf(Kind kind) {
  switch (kind) {
  case Kind::linear:
    return postOp(kind, 2, 3);
  case Kind::clip:
    return postOp(kind, -0.5, 0.75);
  case Kind::elu:
    return postOp(kind, 0.5);
  case Kind::leaky_relu:
    return postOp(kind, 0.1f);
  case Kind::swish:
    return postOp(kind, 1.5);
  default:
    return postOp(kind);
  }
}

/// A call without post-ops, and its values.
struct Root {
  std::string name;
  CallCase call;
  std::vector<int> order; ///< in which the result's dimensions lie
  Values values;          ///< where the result has its elements
};

Root makeRoot(std::string name, CallCase call, std::vector<int> order) {
  Root root{std::move(name), std::move(call), std::move(order), {}};
  root.values.resize(root.call.result.values.size());
  const CallCase &made = root.call;
  forEachIndex(made.result.shape, [&](const Shape &i) {
    root.values[made.result.at(i)] =
        static_cast<float>(made.spec.call == abi::CallKind::conv
                               ? convAt(made, i)
                               : dotAt(made.operands[0], made.operands[1], i));
  });
  return root;
}

std::vector<Root> convolutions() {
  std::vector<ConvRow> rows = convRows();
  auto add = [&](const char *name, Shape input, Shape weights, int64_t groups,
                 Shape strides, Shape low, Shape high) {
    const Shape ones(strides.size(), 1);
    rows.push_back({name, input, weights, groups, strides, ones, low, high});
  };
  // Channels that are no multiple of a vector, planes, and what has code of its
  // own in the library.
  add("ragged", {2, 5, 7, 11}, {19, 5, 3, 3}, 1, {1, 1}, {1, 1}, {1, 1});
  add("pointwise64", {2, 32, 7, 9}, {64, 32, 1, 1}, 1, {1, 1}, {0, 0}, {0, 0});
  add("pointwiseStrided", {2, 32, 7, 9}, {64, 32, 1, 1}, 1, {2, 2}, {0, 0},
      {0, 0});
  add("depthwiseRagged", {2, 19, 12, 11}, {19, 1, 3, 3}, 19, {2, 2}, {1, 1},
      {1, 1});
  add("groups16", {2, 32, 8, 9}, {32, 16, 3, 3}, 2, {1, 1}, {1, 1}, {1, 1});
  add("first", {2, 3, 16, 15}, {16, 3, 3, 3}, 1, {2, 2}, {1, 1}, {1, 1});
  add("toOneChannel", {2, 16, 9, 10}, {1, 16, 3, 3}, 1, {1, 1}, {1, 1}, {1, 1});
  // A pixel that sees only padding, and one that sees a pixel.
  for (int64_t pad : {3, 2})
    rows.push_back({"onePixel" + std::to_string(pad),
                    {1, 48, 1, 1},
                    {33, 48, 3, 1},
                    1,
                    {3, 1},
                    {2, 1},
                    {pad, 0},
                    {pad, 0}});
  std::vector<Root> roots;
  for (const ConvRow &row : rows)
    for (bool last : {false, true})
      roots.push_back(
          makeRoot(row.name + (last ? " channels-last" : " channels-first"),
                   convCase(row, last),
                   last ? channelsLast(row.input.size()) : std::vector<int>()));
  // Planes as they lie, for a result with channels innermost.
  for (const ConvRow &row : rows)
    if (row.name == "first") {
      CallCase call = convCase(row, true);
      call.operands[0] = Tensor::random(row.input, 1);
      roots.push_back(makeRoot("first, from planes", call, channelsLast(4)));
    }
  return roots;
}

std::vector<Root> products() {
  struct Row {
    const char *name;
    Shape lhs, rhs, result;
    bool weight;
    std::vector<int> order; ///< of all three
  };
  std::vector<Root> roots;
  for (const Row &row : std::vector<Row>{
           {"weights", {6, 24}, {24, 40}, {6, 40}, true, {}},
           {"more weights", {33, 64}, {64, 96}, {33, 96}, true, {}},
           {"activations", {6, 24}, {24, 40}, {6, 40}, false, {}},
           {"transposed", {6, 24}, {24, 40}, {6, 40}, true, {1, 0}},
           {"shallow and wide", {70, 8}, {8, 1030}, {70, 1030}, true, {}},
           {"one row", {1, 24}, {24, 40}, {1, 40}, true, {}},
           {"one column", {24, 40}, {40, 1}, {24, 1}, true, {}},
           {"batches", {3, 6, 8}, {3, 8, 5}, {3, 6, 5}, false, {}},
           {"batches of heads",
            {2, 3, 6, 8},
            {2, 3, 8, 20},
            {2, 3, 6, 20},
            false,
            {}},
           {"heads inside rows",
            {2, 3, 6, 8},
            {2, 3, 8, 20},
            {2, 3, 6, 20},
            false,
            {0, 2, 1, 3}}}) {
    CallCase call;
    Tensor rhs = Tensor::random(row.rhs, 2, row.order);
    call.operands = {Tensor::random(row.lhs, 1, row.order),
                     row.weight ? rhs.asWeight() : rhs};
    call.result = Tensor::random(row.result, 3, row.order);
    roots.push_back(
        makeRoot(std::string("product of ") + row.name, call, row.order));
  }
  CallCase rows; // one matrix for all batches
  rows.operands = {Tensor::random({2, 3, 7, 20}, 1),
                   Tensor::random({20, 9}, 2)
                       .asWeight()
                       .seenAs({2, 3, 20, 9}, {0, 0, 9, 1})};
  rows.result = Tensor::random({2, 3, 7, 9}, 3);
  roots.push_back(makeRoot("product of rows in batches", rows, {}));
  return roots;
}

/// Operands of every form that the call's table has: all ways to leave out
/// dimensions, in the order of the result and in others.
std::vector<std::pair<std::string, Tensor>> operandsOf(const Root &root) {
  const Tensor &result = root.call.result;
  const size_t rank = result.shape.size();
  std::vector<std::pair<std::string, Tensor>> operands;
  auto add = [&](unsigned kept, const std::vector<int> &order) {
    Shape shape = result.shape;
    std::string name;
    for (size_t dim = 0; dim < rank; ++dim) {
      if (!(kept >> dim & 1))
        shape[dim] = 1;
      name += kept >> dim & 1 ? 'x' : '.';
    }
    Tensor tensor = Tensor::random(shape, 4, order);
    for (float &value : tensor.values)
      value += value < 0 ? -0.5f : 0.5f; // a divisor
    Shape strides = tensor.strides;
    for (size_t dim = 0; dim < rank; ++dim)
      if (!(kept >> dim & 1))
        strides[dim] = 0;
    tensor = tensor.seenAs(result.shape, strides);
    OperandForm form = rules::getOperandForm(root.call.spec.call,
                                             {result.shape, result.strides},
                                             {tensor.shape, tensor.strides});
    if (rules::mayFuse(root.call.spec.call, Kind::add, form))
      operands.emplace_back(name, tensor);
  };
  for (unsigned kept = 0; kept < 1u << rank; ++kept)
    for (const std::vector<int> &order :
         {root.order, std::vector<int>(), channelsLast(rank)})
      if (order == root.order || kept + 1 == 1u << rank)
        add(kept, order);
  return operands;
}

void expectFused(const Root &root, const std::vector<PostOpSpec> &post_ops,
                 const Tensor *operand) {
  CallCase call = root.call;
  call.spec.post_ops = post_ops;
  std::string name = root.name + ":";
  for (size_t i = 0; i < post_ops.size(); ++i) {
    name += std::string(" ") + abi::EnumNamePostOpKind(post_ops[i].kind);
    if (abi::isBinary(post_ops[i].kind))
      call.post_operands.emplace_back(static_cast<int>(i), *operand);
  }
  SCOPED_TRACE(name);
  auto reference = [&](const Shape &i) {
    const size_t at = root.call.result.at(i);
    double x = root.values[at];
    for (const PostOpSpec &post : post_ops)
      x = apply(post, x,
                post.kind == Kind::sum ? call.result.values[at]
                : operand              ? operand->get(i)
                                       : 0);
    return x;
  };
  expectCall(call, reference, 1e-4, kOneThread);
}

void expectTable(const Root &root) {
  const abi::CallKind kind = root.call.spec.call;
  const auto operands = operandsOf(root);
  EXPECT_GE(operands.size(), 2u) << root.name;
  for (Kind post : abi::EnumValuesPostOpKind()) {
    const PostOpSpec spec = specOf(post);
    if (!abi::isBinary(post)) {
      if (!rules::mayFuse(kind, post))
        continue;
      if (post == Kind::sqrt) // of what is positive
        expectFused(root,
                    {postOp(Kind::square), postOp(Kind::linear, 1, 0.5), spec},
                    nullptr);
      else
        expectFused(root, {spec}, nullptr);
      continue;
    }
    for (const auto &[name, operand] : operands) {
      SCOPED_TRACE("operand " + name);
      expectFused(root, {spec}, &operand);
      if (post == Kind::add) { // all have their operand in the same way
        expectFused(root, {postOp(Kind::relu), spec}, &operand);
        expectFused(root, {spec, postOp(Kind::tanh), spec}, &operand);
      }
    }
  }
}

TEST(Fusion, TableOfConvolutions) {
  for (const Root &root : convolutions())
    expectTable(root);
}

TEST(Fusion, TableOfProducts) {
  for (const Root &root : products())
    expectTable(root);
}

/// Two functions in one call: the library has code for each, and one may take
/// the other's parameters. Each call has a third of the pairs, another one than
/// the next call, and each pair is in a third of the calls.
void expectPairs(const Root &root, bool between, size_t turn) {
  const abi::CallKind call = root.call.spec.call;
  auto isFunction = [&](Kind kind) {
    return !abi::isBinary(kind) && kind != Kind::sum && kind != Kind::sqrt &&
           rules::mayFuse(call, kind);
  };
  const Tensor operand =
      Tensor::random(root.call.result.shape, 4, root.order); // of both signs
  for (Kind first : abi::EnumValuesPostOpKind())
    for (Kind second : abi::EnumValuesPostOpKind()) {
      if (!isFunction(first) || !isFunction(second) ||
          !rules::mayFollow(first, second) || turn++ % 3)
        continue;
      std::vector<PostOpSpec> posts = {specOf(first), specOf(second)};
      posts[1].alpha *= 3; // which tells two of one kind apart
      posts[1].beta *= 2;
      if (between)
        posts.insert(posts.begin() + 1, postOp(Kind::add));
      expectFused(root, posts, &operand);
    }
}

TEST(Fusion, PairsInConvolutions) {
  size_t turn = 0;
  for (const Root &root : convolutions())
    for (bool between : {false, true})
      expectPairs(root, between, turn++);
}

TEST(Fusion, PairsInProducts) {
  size_t turn = 0;
  for (const Root &root : products())
    for (bool between : {false, true})
      expectPairs(root, between, turn++);
}

/// The artifact is right, whatever the library computes; the device does not
/// load the call.
void expectRefused(const CallCase &call, const std::string &post_op,
                   int number = 0) {
  std::string path = temporary("refused.partita");
  writeArtifact(path, planOf(call));
  auto artifact = runtime::Artifact::open(path);
  ::unlink(path.c_str());
  ASSERT_TRUE(artifact) << artifact.status().message();
  auto session = runtime::Session::create(*artifact, {});
  ASSERT_FALSE(session);
  EXPECT_NE(session.status().message().find(
                "'node': post-op " + std::to_string(number) + " (" + post_op +
                ") is one that the library is not known to compute rightly"),
            std::string::npos)
      << session.status().message();
}

// What is computed wrongly by the library has no entry, and is refused.
TEST(Fusion, OtherOperandsAreRefused) {
  Root root = makeRoot("conv", convCase(convRows()[0], true), channelsLast(4));
  const Shape &shape = root.call.result.shape;
  for (const Shape &strides : {Shape{0, 0, 0, 1}, Shape{1, 0, 0, 0},
                               Shape{0, 0, 10, 1}, denseStrides(shape)}) {
    CallCase call = root.call;
    call.spec.post_ops = {postOp(Kind::mul)};
    call.post_operands = {{0, Tensor::random(shape, 4).seenAs(shape, strides)}};
    expectRefused(call, "mul");
  }
}

TEST(Fusion, OtherFunctionsAreRefused) {
  CallCase call =
      makeRoot("conv", convCase(convRows()[0], true), channelsLast(4)).call;
  call.spec.post_ops = {postOp(Kind::exp)};
  expectRefused(call, "exp");
}

TEST(Fusion, PairsThatAreOneFunctionOfTheLibraryAreRefused) {
  CallCase call =
      makeRoot("conv", convCase(convRows()[0], true), channelsLast(4)).call;
  call.spec.post_ops = {postOp(Kind::relu), specOf(Kind::leaky_relu)};
  expectRefused(call, "leaky_relu", 1);
  call.spec.post_ops = {specOf(Kind::leaky_relu), postOp(Kind::tanh),
                        postOp(Kind::relu)};
  expectRefused(call, "relu", 2);
}

TEST(Fusion, PoolsHaveNone) {
  CallCase call;
  call.spec.call = abi::CallKind::pool_max;
  call.spec.window = call.spec.strides = {2, 2};
  call.spec.dilations = {1, 1};
  call.spec.pads_low = call.spec.pads_high = {0, 0};
  call.operands = {Tensor::random({1, 2, 4, 4}, 1)};
  call.result = Tensor::random({1, 2, 2, 2}, 2);
  call.spec.post_ops = {postOp(Kind::relu)};
  expectRefused(call, "relu");
}

bool isNanWhere(const Values &got,
                const std::function<bool(size_t)> &expected) {
  for (size_t i = 0; i < got.size(); ++i)
    if (std::isnan(got[i]) != expected(i))
      return false;
  return true;
}

void putNan(CallCase &call) {
  Values &values = call.operands[0].values;
  values[values.size() / 2] = kNan;
}

/// NaN in one element of the input: NaN in the same elements of the result as
/// `without` post-ops, whether the session keeps it from the first step on or
/// computes that step again; and the others have the same bits.
void expectNan(const Root &root, const Values &without,
               const std::vector<PostOpSpec> &post_ops, bool drops, int most) {
  CallCase call = root.call;
  std::string name = root.name + ":";
  for (const PostOpSpec &post : post_ops)
    name += std::string(" ") + abi::EnumNamePostOpKind(post.kind);
  SCOPED_TRACE(name);
  Tensor one = Tensor::random({1}, 5);
  one.values[0] = -1e30f; // the other operand never wins
  if (post_ops.back().kind == Kind::min)
    one.values[0] = 1e30f;
  call.spec.post_ops = post_ops;
  for (size_t i = 0; i < post_ops.size(); ++i)
    if (abi::isBinary(post_ops[i].kind))
      call.post_operands.emplace_back(
          static_cast<int>(i),
          one.seenAs(call.result.shape, Shape(call.result.shape.size(), 0)));
  RunReport report;
  const Values clean = runCall(call, kOneThread, &report);
  EXPECT_FALSE(report.keeps_nan) << "without a NaN";
  EXPECT_EQ(clean, runCall(call, {.threads = 1, .keep_nan = true}));
  putNan(call);
  auto expected = [&](size_t i) { return std::isnan(without[i]); };
  // With more than two threads the device asks after each task.
  for (int threads : drops ? std::vector<int>{1, 2, most} : std::vector{1}) {
    const Values again = runCall(call, {.threads = threads}, &report);
    EXPECT_TRUE(isNanWhere(again, expected)) << threads << " threads";
    EXPECT_EQ(report.keeps_nan, drops) << threads << " threads";
    for (size_t i = 0; i < again.size() && threads == 1; ++i)
      if (!std::isnan(again[i])) {
        ASSERT_EQ(again[i], clean[i]);
      }
  }
  EXPECT_TRUE(
      isNanWhere(runCall(call, {.threads = 1, .keep_nan = true}), expected));
}

TEST(Fusion, NanStaysNan) {
  std::vector<Root> roots = convolutions();
  for (Root &root : products())
    roots.push_back(std::move(root));
  for (const Root &root : roots) {
    if (root.name.starts_with("onePixel3"))
      continue; // it sees no input
    const abi::CallKind call = root.call.spec.call;
    CallCase plain = root.call;
    putNan(plain);
    const Values without = runCall(plain, kOneThread);
    EXPECT_FALSE(isNanWhere(without, [](size_t) { return false; }));
    const int most = &root == &roots.front() ? 3 : 2;
    for (Kind kind : abi::EnumValuesPostOpKind())
      if (rules::mayFuse(call, kind) && kind != Kind::sum && kind != Kind::sqrt)
        expectNan(root, without, {specOf(kind)}, rules::losesNan(kind), most);
    expectNan(root, without,
              {postOp(Kind::mul), postOp(Kind::relu), specOf(Kind::swish)},
              true, most);
  }
}

TEST(Fusion, NanInPools) {
  for (size_t spatial : {1u, 2u, 3u})
    for (bool last : {false, true})
      for (abi::CallKind kind :
           {abi::CallKind::pool_max, abi::CallKind::pool_avg}) {
        CallCase call;
        call.spec.call = kind;
        call.spec.include_pad = true;
        call.spec.window = Shape(spatial, 3);
        call.spec.strides = Shape(spatial, 2);
        call.spec.dilations = Shape(spatial, 1);
        call.spec.pads_low = call.spec.pads_high = Shape(spatial, 1);
        Shape input = {2, 20}, result = {2, 20};
        for (size_t i = 0; i < spatial; ++i) {
          input.push_back(7);
          result.push_back(4);
        }
        auto order = last ? channelsLast(spatial + 2) : std::vector<int>();
        call.operands = {Tensor::random(input, 1, order)};
        call.result = Tensor::random(result, 2, order);
        SCOPED_TRACE(abi::EnumNameCallKind(kind));
        const Values clean = runCall(call, kOneThread);
        EXPECT_EQ(clean, runCall(call, {.threads = 1, .keep_nan = true}));
        // In the middle of image 1, channel 3.
        Shape at = {1, 3};
        at.resize(spatial + 2, 3);
        call.operands[0].values[call.operands[0].at(at)] = kNan;
        const Values got = runCall(call, kOneThread);
        forEachIndex(result, [&](const Shape &i) {
          bool touched = i[0] == 1 && i[1] == 3;
          for (size_t k = 0; k < spatial; ++k)
            touched &= i[k + 2] == 1 || i[k + 2] == 2;
          const float value = got[call.result.at(i)];
          EXPECT_EQ(std::isnan(value), touched);
          if (!touched) {
            EXPECT_EQ(value, clean[call.result.at(i)]);
          }
        });
      }
}

} // namespace
} // namespace partita::test
