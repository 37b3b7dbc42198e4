//===- DistInterfaces.td - What passes ask of collectives ----*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_DIST_DISTINTERFACES_TD
#define PARTITA_DIALECTS_DIST_DISTINTERFACES_TD

include "mlir/IR/OpBase.td"

def Dist_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::partita::dist";
  let description = [{
    A collective: an operation of the devices that differ only along some axes
    of their mesh. It sees a tensor as rows. In each row the devices' parts
    follow one another.
  }];
  let methods = [
    InterfaceMethod<"The axes, outermost first.", "::mlir::ArrayAttr", "getCollectiveAxes", (ins), "",
      [{ return $_op.getAxes(); }]>,
    InterfaceMethod<"The number of rows, and the elements of one device's part of a row.",
      "::partita::dist::RowsAndPart", "getRowsAndPart">,
    InterfaceMethod<"The reason for the collective, in words.", "::llvm::StringRef", "getCollectiveReason", (ins), "",
      [{ return $_op.getReason(); }]>,
    InterfaceMethod<[{
        Bytes that one of `devices` devices sends. A ring and direct messages to
        all others send the same number of bytes.
      }], "int64_t", "getSentBytes", (ins "int64_t":$devices)>
  ];
}

#endif // PARTITA_DIALECTS_DIST_DISTINTERFACES_TD
