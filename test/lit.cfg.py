# lit's configuration: partita-opt and FileCheck on the .mlir files under test/.
import os
import sys

import lit.formats

config.name = "Partita"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.partita_binary_dir, "test", "lit")
config.excludes = ["executed", "bench", "shapes", "unit"]

# Diagnostics and tables must not depend on the terminal or the language.
config.environment["LC_ALL"] = "C"
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.partita_binary_dir, "bin"), config.llvm_tools_dir, config.environment.get("PATH", "")]
)

config.substitutions.append(("%python", sys.executable))
