"""What an ONNX test case says of its inputs that a model leaves open: shapes, lengths of sequences, optionals without a value. Read from the
input_k.pb files of its test data, with as much of protobuf's wire format as that takes. Standard library only."""


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """The fields of a message: number, and its integer or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = (4, at) if tag & 7 == 5 else (8, at) if tag & 7 == 1 else varint(data, at)
            value, at = data[at : at + size], at + size
        yield tag >> 3, value


def dims_of(tensor):
    """The dimensions of a TensorProto."""
    dims = []
    for number, value in fields(tensor):
        if number == 1 and isinstance(value, int):
            dims.append(value)
        elif number == 1:  # packed
            at = 0
            while at < len(value):
                dim, at = varint(value, at)
                dims.append(dim)
    return dims


def shape_text(tensor):
    """The shape of a TensorProto as --shape takes it."""
    return "x".join(map(str, dims_of(tensor))) or "scalar"


def elements(sequence):
    return [value for number, value in fields(sequence) if number == 3]


def binding_flags(ports, folder):
    """Flags of partita-compile for inputs as `--describe --json` lists them, so that the model takes the test data in `folder`."""
    flags = []
    for k, port in enumerate(ports):
        path = folder / f"input_{k}.pb"
        if not path.exists():
            continue
        name, data = port["name"], path.read_bytes()
        is_open = port["shape"] is None or any(not size.isdecimal() for size in port["shape"])
        is_sequence = port["sequence"]
        if port["optional"]:
            values = [(number, value) for number, value in fields(data) if number in (3, 5)]
            if not values:
                flags += ["--absent", name]
                continue
            data = values[0][1]
        if is_sequence:
            tensors = elements(data)
            flags += ["--length", f"{name}={len(tensors)}"]
            if is_open:
                for i, tensor in enumerate(tensors):
                    flags += ["--shape", f"{name}.{i}={shape_text(tensor)}"]
        elif is_open:
            flags += ["--shape", f"{name}={shape_text(data)}"]
    return flags
