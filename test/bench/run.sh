#!/usr/bin/env bash
# Compares Partita with ONNX Runtime and OpenVINO: makes a virtual environment, brings the models, calibrates, measures, prints a table and draws it.
#   test/bench/run.sh [options of bench.py]
# Everything goes to build/bench (or $PARTITA_BENCH). Needs a build (tools/build.sh) and, for the three small models, ../shared/data or $PARTITA_TEST_DATA.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
folder=${PARTITA_BENCH:-$repository/build/bench}
data=${PARTITA_TEST_DATA:-$repository/../shared/data}/models
export PARTITA_BIN=${PARTITA_BIN:-$repository/build/bin}
mkdir -p "$folder/models"
if [ ! -x "$folder/venv/bin/python" ]; then
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet numpy matplotlib onnx onnxscript onnxruntime openvino torch torchvision transformers
fi
for name in resnet50 mobilenet_v2 bert_base gpt2; do
  [ -e "$folder/models/$name/model.onnx" ] || "$folder/venv/bin/python" "$here/export_models.py" "$folder/models" "$name"
done
for path in detection/yunet-n-640 detection/ultraface-slim-320 encoder/bert-tiny-mlm-vespa; do
  if [ -e "$data/$path/model.onnx" ]; then
    mkdir -p "$folder/models/$(basename "$path")"
    ln -sf "$(realpath "$data/$path/model.onnx")" "$folder/models/$(basename "$path")/model.onnx"
  else
    echo "skipped: $path (no $data/$path)"
  fi
done
"$PARTITA_BIN/partita-run" --calibrate "$folder/machine.json"
"$folder/venv/bin/python" "$here/bench.py" "$folder/models" --machine "$folder/machine.json" --plot "$folder/bench.svg" --json "$folder/bench.json" "$@"
echo "plot: $folder/bench.svg"
