#!/usr/bin/env python3
"""The recipes of examples/cluster: mpirun.sh runs an artifact in two processes of this machine, and says what is wrong; the other files can be read.

    cluster.py BIN      exit status 77 where mpirun is missing
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "examples" / "cluster"


def run(*command, expect=0, **environment):
    done = subprocess.run([str(word) for word in command], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
    if done.returncode != expect:
        sys.exit(f"$ {' '.join(map(str, command))}\nends with status {done.returncode}, not {expect}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def need(text, pattern):
    if not re.search(pattern, text):
        sys.exit(f"no '{pattern}' in:\n{text}")


def main():
    if not shutil.which("mpirun"):
        print("skipped: there is no mpirun (tools/setup.sh installs it)")
        return 77
    environment = {"PATH": f"{sys.argv[1]}:{os.environ['PATH']}", "PARTITA_MPIRUN": "--oversubscribe", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    for script in ("mpirun.sh", "train.sbatch"):
        run("bash", "-n", CLUSTER / script)
    launch = CLUSTER / "mpirun.sh"
    need(run(launch, expect=1, **environment), r"mpirun\.sh HOSTS ARTIFACT")
    need(run("bash", CLUSTER / "train.sbatch", expect=1, **environment), "usage: sbatch train.sbatch ARTIFACT RUN")
    with tempfile.TemporaryDirectory() as folder:
        # Open MPI makes and removes a folder there, at which another test must not be.
        environment["TMPDIR"] = folder
        artifact = pathlib.Path(folder) / "digits.partita"
        run(pathlib.Path(sys.argv[1]) / "partita-compile", ROOT / "examples" / "digits" / "digits.onnx", "--dim", "batch=8", "--devices", 2, "-o", artifact)
        need(run(launch, CLUSTER / "hosts", artifact, "--benchmark", "--runs", 3, **environment), r"cpu:1")
        need(run(launch, folder + "/none", artifact, expect=1, **environment), "cannot read the host file")
        need(run(launch, CLUSTER / "hosts", folder + "/none", expect=1, **environment), "cannot read the artifact")
    try:
        import yaml
    except ImportError:
        return 0
    job = yaml.safe_load((CLUSTER / "mpijob.yaml").read_text())
    if job["kind"] != "MPIJob" or set(job["spec"]["mpiReplicaSpecs"]) != {"Launcher", "Worker"}:
        sys.exit("mpijob.yaml is no MPIJob with a launcher and workers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
