"""Prints a model with one convolution of 3x3 windows and 32 channels, as text."""

weights = ", ".join(str(i % 7 - 3) for i in range(32 * 32 * 9))
print('<ir_version: 10, opset_import: ["" : 21]>')
print(f"g (float[1,32,112,112] x) => (float[1,32,112,112] y) <float[32,32,3,3] w = {{{weights}}}> {{")
print("  c = Conv <pads = [1, 1, 1, 1]> (x, w)\n  y = Relu(c)\n}")
