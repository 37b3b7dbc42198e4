//===- CsvTest.cpp - Columns of numbers, good and wrong -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/data/Support.h"

#include "runtime/data/Formats.h"

#include <cmath>

using namespace partita;
using namespace partita::data;
using namespace partita::data::testing;
using partita::abi::DType;

namespace {

using Floats = std::vector<float>;

runtime::Expected<DatasetPointer> parse(const std::string &text,
                                        const CsvOptions &options = {}) {
  return parseCsv(text, options, "'x.csv'");
}

TEST(Csv, readsAllColumns) {
  auto dataset = parse("a,b\n1,2.5\n-3e2,.5\n");
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->count(), 2);
  EXPECT_EQ((*dataset)->dtype(), DType::f32);
  EXPECT_EQ((*dataset)->sampleShape(), (std::vector<int64_t>{2}));
  EXPECT_EQ(allOf<float>(**dataset), (Floats{1, 2.5, -300, .5}));
}

TEST(Csv, readsColumnsByName) {
  const std::string text =
      "name,a,b,c\n\"Braund, Mr. \"\"O\"\"\",1,2,3\nx,4,5,6";
  EXPECT_EQ(allOf<float>(**parse(text, {{"c", "a"}})), (Floats{3, 1, 6, 4}));
  auto whole = parse(text, {{"b"}, DType::i64});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ((*whole)->sampleShape(), (std::vector<int64_t>{1}));
  EXPECT_EQ(allOf<int64_t>(**whole), (std::vector<int64_t>{2, 5}));
}

TEST(Csv, readsWhatProgramsWrite) {
  // A byte order mark, carriage returns, blanks, quoted numbers, a plus sign,
  // empty lines, and no end of the last one.
  auto dataset = parse("\xef\xbb\xbf a , \"b\"\r\n\r\n \"1\" , +2\r\n \n3,nan");
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  Floats values = allOf<float>(**dataset);
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(Floats(values.begin(), values.begin() + 3), (Floats{1, 2, 3}));
  EXPECT_TRUE(std::isnan(values[3]));
}

TEST(Csv, readsNoneAndOne) {
  auto none = parse("a,b");
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ((*none)->count(), 0);
  EXPECT_EQ((*none)->sampleElements(), 2);
  EXPECT_EQ((*parse("a,b\n\n\n"))->count(), 0);
  EXPECT_EQ(allOf<float>(**parse("a\n7\n")), (Floats{7}));
  expectError(parse(""), "it is empty");
  expectError(parse("\n \n"), "it is empty");
}

TEST(Csv, roundsAsTheTypeDoes) {
  EXPECT_EQ(allOf<float>(**parse("a\n0.1\n1e-60\n-1e-60\n1e-42\n")),
            (Floats{0.1f, 0.0f, -0.0f, 1e-42f}));
  EXPECT_EQ(allOf<double>(**parse("a\n0.1\n1e60\n", {{}, DType::f64})),
            (std::vector<double>{0.1, 1e60}));
  EXPECT_EQ(
      allOf<int64_t>(**parse("a\n9223372036854775807\n", {{}, DType::i64})),
      (std::vector<int64_t>{INT64_MAX}));
}

TEST(Csv, namesLineAndColumn) {
  expectError(parse("a,b\n1,2\n3,x\n"),
              "cannot read 'x.csv': line 3, column 'b': 'x' is not a number");
  expectError(parse("a,b\n\"1\n\",2\n"), "line 2, column 'a': '1?' is not");
  expectError(parse("n,b\n\"x\ny\",2\nz,?\n", {{"b"}}), "line 4, column 'b'");
  expectError(parse("a,b\n1,\n"), "line 2, column 'b': there is no number");
  expectError(parse("a\n1.5\n", {{}, DType::i64}),
              "line 2, column 'a': '1.5' is not a whole number");
  expectError(parse("a\n9223372036854775808\n", {{}, DType::i64}),
              "does not fit into i64");
  expectError(parse("a\n1e60\n"), "'1e60' does not fit into f32");
  expectError(parse("a\n1e600\n", {{}, DType::f64}), "does not fit into f64");
  expectError(parse("a\n1x\n"), "'1x' is not a number");
  expectError(parse("a\n+-1\n"), "'+-1' is not a number");
  expectError(parse("a\n\"1\" 2\n"), "something follows a closed quote");
  expectError(parse("a\n\"1\n"), "a quote is not closed");
  expectError(parse("a,b,c\n1,2\n"), "line 2: it has 2 of 3 columns; 'c'");
  expectError(parse("a\n1,2\n"), "line 2: it has more than the 1 columns");
}

TEST(Csv, findsTheColumnThatWasMeant) {
  const std::string text = "length,width,width\n1,2,3\n";
  expectError(parse(text, {{"lenght"}}), "did you mean 'length'?");
  expectError(parse(text, {{"width"}}), "two columns have the name 'width'");
  expectError(parse(text, {{"length", "length"}}), "named twice");
  expectError(parse(text, {{}, DType::i8}), "f32, f64 or i64, not i8");
}

TEST(Csv, takesMemoryByTheTextsSize) {
  // A million names before a million lines.
  std::string text(1 << 20, ',');
  text += std::string(1 << 20, '\n');
  auto dataset = parse(text);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->count(), 0);
}

} // namespace
