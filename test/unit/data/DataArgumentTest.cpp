//===- DataArgumentTest.cpp - The value of --data -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/data/Support.h"

#include "runtime/data/DataArgument.h"

using namespace partita;
using namespace partita::data;
using namespace partita::data::testing;
using partita::abi::DType;

namespace {

TEST(DataArgument, isAnInputAndAFile) {
  auto argument = parseDataArgument("image=a/b=c.idx");
  ASSERT_TRUE(argument.ok()) << argument.status().message();
  EXPECT_EQ(argument->input, "image");
  EXPECT_EQ(argument->path, "a/b=c.idx");
  EXPECT_TRUE(argument->options.parts.empty());
  EXPECT_EQ(argument->scale, Scale());
}

TEST(DataArgument, hasPartsAndOptions) {
  auto argument = parseDataArgument("x=a.csv:c,d e,divide=255,mean=-.5,std=2");
  ASSERT_TRUE(argument.ok()) << argument.status().message();
  EXPECT_EQ(argument->path, "a.csv");
  EXPECT_EQ(argument->options.parts, (std::vector<std::string>{"c", "d e"}));
  EXPECT_EQ(argument->scale, (Scale{255, -.5, 2}));

  argument = parseDataArgument("x=t.bin,dtype=uint32,window=8,stride=1");
  ASSERT_TRUE(argument.ok()) << argument.status().message();
  EXPECT_EQ(argument->options.dtype, DType::u32);
  EXPECT_EQ(argument->options.window, 8);
  EXPECT_EQ(argument->options.stride, 1);

  argument = parseDataArgument("x=a.npz:/deep/name:0");
  ASSERT_TRUE(argument.ok()) << argument.status().message();
  EXPECT_EQ(argument->options.parts,
            (std::vector<std::string>{"/deep/name:0"}));
}

TEST(DataArgument, saysWhatIsWrong) {
  EXPECT_EQ(parseDataArgument("x=").status().message().find("--data"),
            std::string::npos);
  for (const char *text : {"", "a.idx", "=a.idx"})
    expectError(parseDataArgument(text), "as in NAME=PATH");
  expectError(parseDataArgument("x="), "no path after 'x='");
  expectError(parseDataArgument("x=:a"), "no path after 'x='");
  expectError(parseDataArgument("x=a.npz:"), "no name after ':'");
  expectError(parseDataArgument("x=a.npz:a,"), "nothing after a comma");
  expectError(parseDataArgument("x=a.npz,images"),
              "arrays and columns follow a colon, as in 'a.npz:images'");
  expectError(parseDataArgument("x=a,widnow=3"),
              "there is no option 'widnow'; did you mean 'window'?");
  expectError(parseDataArgument("x=a,dtype=floot32"),
              "did you mean 'float32'?");
  expectError(parseDataArgument("x=a,window=1,window=2"), "given twice");
  for (const char *wrong : {"window=0", "window=1.5", "stride=-1",
                            "stride=", "window=99999999999999999999"})
    expectError(parseDataArgument(std::string("x=a,") + wrong),
                "is not a whole number from 1 on");
  for (const char *wrong : {"divide=x", "mean=", "std=inf", "mean=1 "})
    expectError(parseDataArgument(std::string("x=a,") + wrong),
                "is not a number");
  for (const char *wrong : {"divide=0", "std=-0"})
    expectError(parseDataArgument(std::string("x=a,") + wrong), "may not be 0");
}

} // namespace
