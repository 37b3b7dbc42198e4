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
    InterfaceMethod<"What the devices do together.", "::partita::abi::CollectiveKind", "getCollectiveKind", (ins), "",
      [{ return ConcreteOp::kCollectiveKind; }]>,
    InterfaceMethod<"The axes, outermost first.", "::mlir::ArrayAttr", "getCollectiveAxes", (ins), "",
      [{ return $_op.getAxes(); }]>,
    InterfaceMethod<"The number of rows, and the elements of one device's part of a row.",
      "::partita::dist::RowsAndPart", "getRowsAndPart">,
    InterfaceMethod<"The reason for the collective, in words.", "::llvm::StringRef", "getCollectiveReason", (ins), "",
      [{ return $_op.getReason(); }]>
  ];
  let extraClassDeclaration = [{
    /// Bytes that one of `devices` devices sends (`abi::sentBytes`).
    int64_t getSentBytes(int64_t devices);
  }];
}

def Dist_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::partita::dist";
  let description = [{
    The vector-Jacobian product of an op along axes of a mesh, for one number
    that all devices compute, the loss. (`nn::DifferentiableOpInterface` is that
    of an op within a device.)

    Either all devices of a group have the same value, or each has its own. The
    cotangent of an own value is the device's own. That of a value that is the
    same on all is whole, and then the same on all, too; or each device has a
    *share* of it, and the cotangent is the sum of all shares.
  }];
  let methods = [
    InterfaceMethod<"The axes, outermost first.", "::mlir::ArrayAttr", "getGroupAxes", (ins), "",
      [{ return $_op.getAxes(); }]>,
    InterfaceMethod<"Whether all devices of a group get the same result.", "bool", "isSameOnAllDevices">,
    InterfaceMethod<[{
        Whether the operand, which then must be the same on all devices, gets
        its whole cotangent. Else an operand that is the same on all gets a
        share of it, and one that differs gets the device's own.
      }], "bool", "givesWhole", (ins), "", "return false;">,
    InterfaceMethod<[{
        The operand's cotangent, given that of the result. `isShare`: each device
        has a share of it. Null, without a message, if this op has no derivative
        that is known.
      }], "::mlir::Value", "buildVjp",
      (ins "const ::partita::nn::grad::Term &":$cotangent, "bool":$isShare)>
  ];
}

def Dist_PlaceholderOpInterface : OpInterface<"PlaceholderOpInterface"> {
  let cppNamespace = "::partita::dist";
  let description = [{
    A placeholder in the step of one replica for what crosses replicas. Those of
    all replicas belong together: the first of each replica, the second, and so
    on.
  }];
  let methods = [
    InterfaceMethod<"What it does, in words: `all_reduce mean`.", "::std::string", "describe">,
    InterfaceMethod<"The number of replicas for which its types are made; nothing if they fit any number.",
      "::std::optional<int64_t>", "getReplicaCount", (ins), "", "return ::std::nullopt;">,
    InterfaceMethod<"Whether all replicas get the same result.", "bool", "isSameOnAllReplicas", (ins), "",
      "return true;">,
    InterfaceMethod<"Whether it takes something of other replicas.", "bool", "communicates", (ins), "", "return true;">,
    InterfaceMethod<"Whether all replicas must give it the same operand.", "bool", "needsSameOperand", (ins), "",
      "return false;">,
    InterfaceMethod<[{
        Builds what takes its place if there are `replicas` of them, at least
        two, along `axis`. `reason` says why the collective exists.
      }], "::mlir::Value", "connect",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::StringAttr":$axis, "int64_t":$replicas, "::mlir::StringAttr":$reason)>
  ];
}

#endif // PARTITA_DIALECTS_DIST_DISTINTERFACES_TD
