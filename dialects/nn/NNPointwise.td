//===- NNPointwise.td - Ops on corresponding elements --------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op is one line: its name, a summary, its function of one element, and its
// derivative. The class implements cost, sharding, layout, folding, code
// generation and differentiation.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNPOINTWISE_TD
#define PARTITA_DIALECTS_NN_NNPOINTWISE_TD

include "dialects/nn/NNBase.td"

// flops: operations per element of the result. A function that is computed by a
// polynomial counts as the number of its terms.
// vjp: a cotangent for each operand, in the terms of dialects/nn/grad/Term.h. x:
// the operands, y: the result, dy: its cotangent, none: zero everywhere. Without
// it the op has no derivative.
// traits: SameOperandsAndResultType or SameOperandsAndResultShape is one of them.
class NN_PointwiseOp<string mnemonic, string text, code scalar, list<Trait> traits = [], int flops = 1, code vjp = [{}]>
    : NN_ValueOp<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<NN_PointwiseOpInterface, ["getFlopsPerElement"]>,
        NN_PermutableOpInterface],
        !if(!empty(vjp), []<Trait>, [DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]), traits)> {
  let summary = text;
  let description = "Sharding: `([i,j],..)->([i,j])`, in all dimensions.";
  let results = (outs NN_Tensor:$result);
  let hasFolder = 1;
  // x: the scalars; type: the operands' element type with its signedness.
  let extraClassDefinition = [{
    ::mlir::Value $cppClass::emitScalar(::mlir::OpBuilder &b, ::mlir::Location loc, ::mlir::ValueRange x) {
      ::mlir::Type type = ::mlir::getElementTypeOrSelf((*this)->getOperand((*this)->getNumOperands() - 1).getType());
      (void)type;
      return }] # scalar # [{;
    }
    int64_t $cppClass::getFlopsPerElement() { return }] # flops # [{; }
    ::partita::nn::Cost $cppClass::getCost() { return ::partita::nn::pointwiseCost(getOperation()); }
    ::partita::nn::ShardingRule $cppClass::getShardingRule() { return ::partita::nn::pointwiseShardingRule(getOperation()); }
    ::mlir::OpFoldResult $cppClass::fold(FoldAdaptor adaptor) {
      return ::partita::nn::foldPointwise(getOperation(), adaptor.getOperands());
    }
  }] # !if(!empty(vjp), "", [{
    ::llvm::FailureOr<::partita::nn::grad::Cotangents> $cppClass::buildVjp(const ::partita::nn::grad::Term &dy) {
      using namespace ::partita::nn::grad;
      ::llvm::SmallVector<Term, 3> x;
      for (::mlir::Value operand : (*this)->getOperands())
        x.push_back(Term(dy.b(), operand));
      const Term y(dy.b(), getResult()), none;
      (void)y, (void)none;
      return Cotangents{}] # vjp # [{};
    }
  }]);
}

class NN_UnaryOp<string mnemonic, string text, code scalar, code vjp>
    : NN_PointwiseOp<mnemonic, text, scalar, [SameOperandsAndResultType], 1, vjp> {
  let arguments = (ins NN_NumberTensor:$x);
  let assemblyFormat = "$x attr-dict `:` type($result)";
}
class NN_UnaryFloatOp<string mnemonic, string text, code scalar, code vjp, int flops = 1>
    : NN_PointwiseOp<mnemonic, text, scalar, [SameOperandsAndResultType], flops, vjp> {
  let arguments = (ins NN_FloatTensor:$x);
  let assemblyFormat = "$x attr-dict `:` type($result)";
}
class NN_FunctionOp<string mnemonic, string text, code scalar, code vjp>
    : NN_UnaryFloatOp<mnemonic, text, scalar, vjp, 20>;
class NN_UnaryIntegerOp<string mnemonic, string text, code scalar>
    : NN_PointwiseOp<mnemonic, text, scalar, [SameOperandsAndResultType]> {
  let noDerivative = "it computes integers";
  let arguments = (ins NN_IntegerTensor:$x);
  let assemblyFormat = "$x attr-dict `:` type($result)";
}
class NN_BinaryIntegerOp<string mnemonic, string text, code scalar>
    : NN_PointwiseOp<mnemonic, text, scalar, [SameOperandsAndResultType, Commutative]> {
  let noDerivative = "it computes integers";
  let arguments = (ins NN_IntegerTensor:$lhs, NN_IntegerTensor:$rhs);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}
class NN_BinaryOp<string mnemonic, string text, code scalar, code vjp, list<Trait> traits = [], int flops = 1>
    : NN_PointwiseOp<mnemonic, text, scalar, !listconcat([SameOperandsAndResultType], traits), flops, vjp> {
  let arguments = (ins NN_NumberTensor:$lhs, NN_NumberTensor:$rhs);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def NN_AbsOp : NN_UnaryOp<"abs", "absolute value", [{ scalar::abs(b, loc, x[0], type) }], [{ dy * sign(x[0]) }]>;
def NN_NegOp : NN_UnaryOp<"neg", "negation", [{ scalar::neg(b, loc, x[0]) }], [{ -dy }]>;
def NN_ReluOp : NN_UnaryOp<"relu", "max(x, 0)", [{ scalar::relu(b, loc, x[0], type) }], [{ shareOfRelu(getOperation(), y, dy) }]>;
def NN_SignOp : NN_UnaryOp<"sign", "-1, 0 or 1", [{ scalar::sign(b, loc, x[0], type) }], [{ none }]> { let derivativeNote = "zero everywhere"; }
def NN_NotOp : NN_UnaryIntegerOp<"not", "bitwise (for `i1`: logical) negation", [{ scalar::bitNot(b, loc, x[0]) }]>;

def NN_AcosOp : NN_FunctionOp<"acos", "inverse cosine", [{ ::mlir::math::AcosOp::create(b, loc, x[0]) }], [{ -dy / sqrt((1.0 - x[0]) * (x[0] + 1.0)) }]>;
def NN_AcoshOp : NN_FunctionOp<"acosh", "inverse hyperbolic cosine", [{ ::mlir::math::AcoshOp::create(b, loc, x[0]) }], [{ dy / sqrt((x[0] - 1.0) * (x[0] + 1.0)) }]>;
def NN_AsinOp : NN_FunctionOp<"asin", "inverse sine", [{ ::mlir::math::AsinOp::create(b, loc, x[0]) }], [{ dy / sqrt((1.0 - x[0]) * (x[0] + 1.0)) }]>;
def NN_AsinhOp : NN_FunctionOp<"asinh", "inverse hyperbolic sine", [{ ::mlir::math::AsinhOp::create(b, loc, x[0]) }], [{ dy / sqrt(x[0] * x[0] + 1.0) }]>;
def NN_AtanOp : NN_FunctionOp<"atan", "inverse tangent", [{ ::mlir::math::AtanOp::create(b, loc, x[0]) }], [{ dy / (x[0] * x[0] + 1.0) }]>;
def NN_AtanhOp : NN_FunctionOp<"atanh", "inverse hyperbolic tangent", [{ ::mlir::math::AtanhOp::create(b, loc, x[0]) }], [{ dy / ((1.0 - x[0]) * (x[0] + 1.0)) }]>;
def NN_CeilOp : NN_UnaryFloatOp<"ceil", "least integer not below", [{ ::mlir::math::CeilOp::create(b, loc, x[0]) }], [{ none }]> { let derivativeNote = "zero everywhere"; }
def NN_CosOp : NN_FunctionOp<"cos", "cosine", [{ ::mlir::math::CosOp::create(b, loc, x[0]) }], [{ -dy * sin(x[0]) }]>;
def NN_CoshOp : NN_FunctionOp<"cosh", "hyperbolic cosine", [{ ::mlir::math::CoshOp::create(b, loc, x[0]) }], [{ dy * sinh(x[0]) }]>;
def NN_ErfOp : NN_FunctionOp<"erf", "error function", [{ ::mlir::math::ErfOp::create(b, loc, x[0]) }], [{ dy * (exp(-(x[0] * x[0])) * 1.1283791670955126) }]>;
def NN_ExpOp : NN_FunctionOp<"exp", "exponential", [{ ::mlir::math::ExpOp::create(b, loc, x[0]) }], [{ dy * y }]>;
def NN_FloorOp : NN_UnaryFloatOp<"floor", "greatest integer not above", [{ ::mlir::math::FloorOp::create(b, loc, x[0]) }], [{ none }]> { let derivativeNote = "zero everywhere"; }
def NN_LogOp : NN_FunctionOp<"log", "natural logarithm", [{ ::mlir::math::LogOp::create(b, loc, x[0]) }], [{ dy / x[0] }]>;
def NN_LogisticOp : NN_FunctionOp<"logistic", "1 / (1 + exp(-x))", [{ scalar::logistic(b, loc, x[0]) }], [{ dy * (y * (1.0 - y)) }]>;
def NN_ReciprocalOp : NN_UnaryFloatOp<"reciprocal", "1 / x", [{ scalar::reciprocal(b, loc, x[0]) }], [{ -dy * (y * y) }], 4>;
def NN_RoundEvenOp : NN_UnaryFloatOp<"round_even", "nearest integer, halves to even", [{ ::mlir::math::RoundEvenOp::create(b, loc, x[0]) }], [{ none }]> { let derivativeNote = "zero everywhere"; }
def NN_RsqrtOp : NN_UnaryFloatOp<"rsqrt", "1 / sqrt(x)", [{ scalar::rsqrt(b, loc, x[0]) }], [{ dy * (y * y * y * -0.5) }], 4>;
def NN_SinOp : NN_FunctionOp<"sin", "sine", [{ ::mlir::math::SinOp::create(b, loc, x[0]) }], [{ dy * cos(x[0]) }]>;
def NN_SinhOp : NN_FunctionOp<"sinh", "hyperbolic sine", [{ ::mlir::math::SinhOp::create(b, loc, x[0]) }], [{ dy * cosh(x[0]) }]>;
def NN_SqrtOp : NN_UnaryFloatOp<"sqrt", "square root", [{ ::mlir::math::SqrtOp::create(b, loc, x[0]) }], [{ shareOfSqrt(getOperation(), y, dy) }], 4>;
def NN_TanOp : NN_FunctionOp<"tan", "tangent", [{ ::mlir::math::TanOp::create(b, loc, x[0]) }], [{ dy * (y * y + 1.0) }]>;
def NN_TanhOp : NN_FunctionOp<"tanh", "hyperbolic tangent", [{ ::mlir::math::TanhOp::create(b, loc, x[0]) }], [{ dy * (1.0 - y * y) }]>;

def NN_AddOp : NN_BinaryOp<"add", "sum", [{ scalar::add(b, loc, x[0], x[1]) }], [{ dy, dy }], [Commutative]>;
def NN_SubOp : NN_BinaryOp<"sub", "difference", [{ scalar::sub(b, loc, x[0], x[1]) }], [{ dy, -dy }]>;
def NN_MulOp : NN_BinaryOp<"mul", "product", [{ scalar::mul(b, loc, x[0], x[1]) }], [{ dy * x[1], dy * x[0] }], [Commutative]>;
def NN_DivOp : NN_BinaryOp<"div", "quotient; integers round toward zero, x / 0 is 0", [{ scalar::div(b, loc, x[0], x[1], type) }], [{ dy / x[1], -(dy / x[1]) * y }], [], 4> {
  let hasCanonicalizer = 1;
}
def NN_RemOp : NN_BinaryOp<"rem", "remainder with the dividend's sign; x rem 0 is 0 for integers", [{ scalar::rem(b, loc, x[0], x[1], type) }], [{ dy, -dy * round((x[0] - y) / x[1]) }], [], 20>;
def NN_PowOp : NN_BinaryOp<"pow", "power", [{ scalar::pow(b, loc, x[0], x[1], type) }], [{ select(x[1] == 0.0, 0.0, dy * (x[1] * pow(x[0], x[1] - 1.0))), select(x[0] == 0.0 && x[1] >= 0.0, 0.0, dy * (y * log(x[0]))) }], [], 40> {
  let hasCanonicalizer = 1;
}
def NN_MaxOp : NN_BinaryOp<"max", "maximum; NaN if either is", [{ scalar::max(b, loc, x[0], x[1], type) }], [{ shareOfChoice(ComparePredicate::gt, x[0], x[1], dy), shareOfChoice(ComparePredicate::gt, x[1], x[0], dy) }], [Commutative]>;
def NN_MinOp : NN_BinaryOp<"min", "minimum; NaN if either is", [{ scalar::min(b, loc, x[0], x[1], type) }], [{ shareOfChoice(ComparePredicate::lt, x[0], x[1], dy), shareOfChoice(ComparePredicate::lt, x[1], x[0], dy) }], [Commutative]>;
def NN_AndOp : NN_BinaryIntegerOp<"and", "bitwise (for `i1`: logical) and", [{ ::mlir::arith::AndIOp::create(b, loc, x[0], x[1]) }]>;
def NN_OrOp : NN_BinaryIntegerOp<"or", "bitwise (for `i1`: logical) or", [{ ::mlir::arith::OrIOp::create(b, loc, x[0], x[1]) }]>;
def NN_XorOp : NN_BinaryIntegerOp<"xor", "bitwise (for `i1`: logical) exclusive or", [{ ::mlir::arith::XOrIOp::create(b, loc, x[0], x[1]) }]>;

class NN_ShiftOp<string mnemonic, string text, code scalar> : NN_PointwiseOp<mnemonic, text, scalar, [SameOperandsAndResultType]> {
  let noDerivative = "it computes integers";
  let arguments = (ins NN_IntegerTensor:$lhs, NN_IntegerTensor:$rhs);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}
def NN_ShiftLeftOp : NN_ShiftOp<"shift_left", "bits moved up by rhs; 0 if that is the width or more", [{ scalar::shiftLeft(b, loc, x[0], x[1]) }]>;
def NN_ShiftRightOp : NN_ShiftOp<"shift_right", "bits moved down by rhs, zeros coming in; 0 if that is the width or more", [{ scalar::shiftRight(b, loc, x[0], x[1]) }]>;

def NN_ComparePredicate : I32EnumAttr<"ComparePredicate", "how two elements are compared", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::partita::nn";
  let genSpecializedAttr = 0;
}
def NN_ComparePredicateAttr : EnumAttr<NN_Dialect, NN_ComparePredicate, "compare">;

def NN_CompareOp : NN_PointwiseOp<"compare", "comparison; false where a NaN takes part, except `ne`",
    [{ scalar::compare(b, loc, getPredicate(), x[0], x[1], type) }], [SameTypeOperands, SameOperandsAndResultShape]> {
  let noDerivative = "its result is a truth value";
  let arguments = (ins NN_ComparePredicateAttr:$predicate, NN_NumberTensor:$lhs, NN_NumberTensor:$rhs);
  let results = (outs NN_BoolTensor:$result);
  let assemblyFormat = "`` $predicate $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
}

def NN_SelectOp : NN_PointwiseOp<"select", "on_true where the predicate holds, on_false elsewhere",
    [{ ::mlir::arith::SelectOp::create(b, loc, x[0], x[1], x[2]) }], [AllTypesMatch<["on_true", "on_false", "result"]>, SameOperandsAndResultShape], 1,
    [{ none, select(x[0], dy, 0.0), select(x[0], 0.0, dy) }]> {
  let derivativeNote = "to the chosen elements";
  let arguments = (ins NN_BoolTensor:$predicate, NN_Tensor:$on_true, NN_Tensor:$on_false);
  let assemblyFormat = "$predicate `,` $on_true `,` $on_false attr-dict `:` type($predicate) `,` type($result)";
}

def NN_CastOp : NN_PointwiseOp<"cast", "conversion of the element type",
    [{ scalar::cast(b, loc, x[0], type, ::mlir::getElementTypeOrSelf(getType()), getSaturate()) }], [SameOperandsAndResultShape], 1,
    [{ castLike(dy, x[0]) }]> {
  let derivativeNote = "between floats; none to or from integers";
  let description = [{
    A conversion from floating point to integer truncates toward zero. A
    conversion to `i1` tests for not zero. A conversion to a narrower
    floating-point type rounds to nearest, halves to even. With `saturate` (the
    default, as in ONNX) a value beyond the range of an 8-bit float becomes its
    largest value instead of infinity or NaN.

    Sharding: `([i,j])->([i,j])`, in all dimensions.
  }];
  let arguments = (ins NN_Tensor:$x, DefaultValuedAttr<BoolAttr, "true">:$saturate);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
}

def NN_BitcastOp : NN_PointwiseOp<"bitcast", "the same bits as another element type",
    [{ scalar::bitcast(b, loc, x[0], ::mlir::getElementTypeOrSelf(getType())) }], [SameOperandsAndResultShape]> {
  let description = [{
    Constraints:
    * (C1) both element types have the same width.

    Sharding: `([i,j])->([i,j])`, in all dimensions.

    ```mlir
    %r = nn.bitcast %x : tensor<8xf32> -> tensor<8xi32>
    ```
  }];
  let noDerivative = "bits are no numbers";
  let arguments = (ins NN_NumberTensor:$x);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

#endif // PARTITA_DIALECTS_NN_NNPOINTWISE_TD
