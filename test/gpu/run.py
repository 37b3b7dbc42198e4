#!/usr/bin/env python3
"""Runs the tests and benchmarks of a packed folder on this machine's GPUs. Needs the driver and Python 3.

    run.py FOLDER [--seconds S] [--emulator LIB] [--tests FILTER]

Prints a line for each thing done, and for each that could not be done why not (skipped tests by name); exit status 1 if something failed. --emulator runs on the libcuda.so.1 of
that folder in place of the driver, with streams in one order; its times mean nothing. PyTorch and TensorRT (trtexec) are measured where they are installed.
"""

import argparse
import ctypes
import json
import os
import pathlib
import re
import shutil
import site
import subprocess
import sys
import tempfile

# As test/unit/cuda/CMakeLists.txt has it.
CONFORMANCE = (
    "*DeviceKinds*:Devices*:Session.*:LocalCommunicator.*:Steps.*:*StreamTest*:*PlanStreams*:Dot.WeightsBiasRelu:Dot.BatchFoldsIntoRows:Dot.VectorsAndExtentsOfOne:TrainingPlanTest.*"
    "-Session.WeightsOfAnotherFile*:Session.SaysWhichLevelsThereAre")
# Which libraries a process of these settings finds.
VERSIONS = """
import ctypes
for names, function in (("libcublasLt.so.13 libcublasLt.so.12", "cublasLtGetVersion"), ("libcudnn.so.9", "cudnnGetVersion"), ("libnccl.so.2", "ncclGetVersion"), ("libnvrtc.so.13 libnvrtc.so.12", "nvrtcVersion")):
    for name in names.split():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        first, second = ctypes.c_int(), ctypes.c_int()
        if function == "ncclGetVersion":
            library.ncclGetVersion(ctypes.byref(first))
        elif function == "nvrtcVersion":
            library.nvrtcVersion(ctypes.byref(first), ctypes.byref(second))
        else:
            call = getattr(library, function)
            call.restype = ctypes.c_size_t
            first.value = call()
        print(name, f"{first.value}.{second.value}" if function == "nvrtcVersion" else first.value)
        break
    else:
        print(names.split()[0], "none")
"""
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")


class Report:
    def __init__(self):
        self.failed, self.left = [], []

    def done(self, what, text):
        print(f"ok      {what}: {text}", flush=True)

    def wrong(self, what, text):
        self.failed.append(what)
        print(f"FAILED  {what}\n{text.rstrip()[-4000:]}", flush=True)

    def missing(self, what, why):
        self.left.append(what)
        print(f"not done: {what}: {why}", flush=True)


class Machine:
    def __init__(self, options):
        self.folder = options.folder.resolve()
        libraries = [str(options.emulator.resolve())] if options.emulator else []
        libraries += [str(self.folder / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        if not options.emulator:  # those of PyPI's packages
            libraries += [str(path) for root in (*site.getsitepackages(), site.getusersitepackages()) for path in sorted(pathlib.Path(root).glob("nvidia/*/lib"))]
        # Two mpirun that make the same folder at once fail (Open MPI 4.1).
        self.env = dict(os.environ, LD_LIBRARY_PATH=":".join(libraries), PARTITA_TEST_FILES=str(self.folder / "files"), OMPI_MCA_orte_tmpdir_base=str(self.folder / "open-mpi"))
        if options.emulator:
            self.env.update(CUDA_EMU_QUIET="1", CUDA_EMU_SEED="1", CUDA_EMU_DEVICES="1")

    def run(self, *command, timeout=1800, **env):
        try:
            done = subprocess.run(
                [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout,
                env=dict(self.env, **env), stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as late:
            return 124, f"ran past {timeout} s\n{(late.output or b'')[-2000:]}"
        return done.returncode, done.stdout

    def program(self, name):
        return self.folder / "bin" / name


def run_suite(machine, report, name, *flags, **env):
    status, text = machine.run(machine.program(name), *flags, **env)
    passed = re.search(r"\[  PASSED  \] (\d+) test", text)
    if status != 0 or not passed or passed[1] == "0":
        return report.wrong(name, text)
    report.done(name, f"{passed[1]} tests")
    for why, test in re.findall(r": Skipped\n(.*?)\n+\[  SKIPPED \] (\S+) \(", text, re.S):
        report.missing(f"{name}, {test}", " ".join(why.split()))


def run_models(machine, report, models):
    for model in models:
        for devices in model["devices"]:
            what = f"{model['name']} on {devices} device{'s' * (devices > 1)} of GPU 0"
            status, text = machine.run(
                machine.program("partita-run"), machine.folder / model["folder"] / f"{devices}.partita", "--test-data",
                machine.folder / model["folder"] / "vectors", "--devices", f"cuda:0*{devices}", *model["tolerance"])
            if status:
                report.wrong(what, text)
            else:
                report.done(what, "as its reference vectors")
            for remark in re.findall(r"remark: (.*CUDA graph.*)", text):
                report.missing(f"graphs of {what}", remark)


TOLERANCE = 1e-5  # of losses, from those of the CPU


def run_trainings(machine, report, trainings):
    """On one device as on the CPU, and on two devices of GPU 0 with the bits of one."""
    for training in trainings:
        found = {}
        for devices in training["devices"]:
            what = f"training {training['name']} on {devices} device{'s' * (devices > 1)} of GPU 0"
            with tempfile.TemporaryDirectory() as folder:
                data = [word for each in training["data"] for word in ("--data", each.replace("=", f"={machine.folder}/training/", 1))]
                status, text = machine.run(
                    machine.program("partita-run"), machine.folder / "training" / f"{training['name']}.{devices}.partita", "--train", "--order", "in-order", "--steps",
                    len(training["losses"]), "--report-every", "1", "--checkpoint", folder, "--devices", f"cuda:0*{devices}", *data)
                log = pathlib.Path(folder) / "log.jsonl"
                found[devices] = [json.loads(line)["loss"] for line in log.read_text().splitlines()] if status == 0 else None
            wanted = training["losses"] if devices == 1 else found[1]
            if status:
                report.wrong(what, text)
            elif not wanted or len(wanted) != len(found[devices]):
                report.wrong(what, f"{len(found[devices])} losses, and {len(wanted or [])} to compare them with")
            elif devices == 1:
                apart = max(abs(loss - other) / abs(loss) for loss, other in zip(wanted, found[devices]))
                (report.done if apart <= TOLERANCE else report.wrong)(what, f"{len(wanted)} losses differ from the CPU's by {apart:.1e} at most")
            elif found[devices] != wanted:
                report.wrong(what, f"its losses have other bits than on one: {found[devices]}, {wanted}")
            else:
                report.done(what, "the bits of one")


# A process takes the place of a machine, and NCCL none of the ways that GPUs of one machine have.
RANK = 'NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK exec "$@"'
ONE_GPU = {
    "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_CUMEM_ENABLE": "0", "NCCL_ALGO": "Ring",
    "NCCL_PROTO": "Simple", "NCCL_MAX_CTAS": "2", "CUDA_MODULE_LOADING": "EAGER", "NCCL_DEBUG": "VERSION", "CUDA_EMU_TRACE": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run_nccl(machine, report, models):
    """Processes on one GPU, joined by NCCL."""
    if not shutil.which("mpirun"):
        return report.missing("NCCL between processes", "there is no mpirun (install Open MPI)")
    for devices in (2, 4):
        model = models[0]
        what = f"{model['name']} in {devices} processes on GPU 0, joined by NCCL"
        status, text = machine.run(
            "mpirun", "--oversubscribe", "-n", devices, "sh", "-c", RANK, "sh", machine.program("partita-run"),
            machine.folder / model["folder"] / f"{devices}.partita", "--test-data", machine.folder / model["folder"] / "vectors", "--devices",
            f"cuda:0*{devices}", "--timeout", "60", *model["tolerance"], timeout=600, **ONE_GPU)
        if status == 0 and (remark := re.search(r".*install libnccl.*", text)):
            report.missing(what, remark[0])
        elif status:
            report.wrong(what, text)
        elif "NCCL version" not in text and "runs: calls of NCCL" not in text:
            report.wrong(what, f"nothing went through NCCL:\n{text}")
        else:
            report.done(what, "as its reference vectors")


def run_sanitizers(machine, report, models):
    tool = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if not tool:
        return report.missing("compute-sanitizer", "it is not installed (it comes with the CUDA toolkit)")
    for check in SANITIZERS:
        for model in models:
            status, text = machine.run(
                tool, "--tool", check, "--error-exitcode", "9", machine.program("partita-run"), machine.folder / model["folder"] / "1.partita", "--test-data",
                machine.folder / model["folder"] / "vectors", "--devices", "cuda:1", *model["tolerance"])
            if status:
                report.wrong(f"compute-sanitizer {check}: {model['name']}", text)
        report.done(f"compute-sanitizer {check}", f"{len(models)} models")


def say_versions(machine, report):
    status, text = machine.run(sys.executable, "-c", VERSIONS)
    if status:
        return report.wrong("versions of libraries", text)
    for line in text.splitlines():
        name, version = line.split()
        if version == "none":
            report.missing(name, "the loader does not find it")
        else:
            report.done(name, f"version {version}")


def run_roofs(machine, report, emulated):
    """What no model can beat; copies are those of the calibration."""
    status, text = machine.run(machine.program("partita_cuda_tests"), "--gtest_filter=CudaRoof.*", PARTITA_ROOF_ROWS="64" if emulated else "4096")
    roofs = re.findall(r"^(roof of products of .*): (.*)$", text, re.M)
    if status:
        return report.wrong("roofs", text)
    if not roofs:
        return report.missing("roofs of products", " ".join(re.findall(r": Skipped\n(.*)", text)) or "nothing was measured")
    for what, rate in roofs:
        report.done(what, rate)


def run_calibration(machine, report, emulated):
    """What partita-compile --machine predicts with; the file stays in the folder, to be taken where models are compiled."""
    if emulated:
        return report.missing("calibration", "its times mean nothing here; cuda-executed.calibration tests it")
    file = machine.folder / "machine.json"
    status, text = machine.run(machine.program("partita-run"), "--calibrate", file)
    figures = re.findall(r"^(measured .*|processors .*|clock .*|memory .*|launch .*|copy .*|host .*|peer .*)$", text.partition("\n\nmeasured    ")[2], re.M)
    if status or not figures:
        return report.wrong("calibration", text)
    report.done("calibration", f"{file}: " + ", ".join(" ".join(line.split()) for line in figures))
    for line in figures:
        if line.startswith("memory"):
            report.done("roof of copies", " ".join(line.split()[1:]))


def run_benchmark(machine, report, models, seconds, emulated):
    """Steps of ours and of others are timed alike: from inputs in the host's memory to results there."""
    alike = "with transfers from and to the host"
    for model in models:
        folder = machine.folder / model["folder"]
        runs = ("--runs", "2", "--warmup", "1") if emulated else ("--seconds", seconds, "--warmup", "10")
        for what, flags in ((f"benchmark {model['name']}", ()), (f"benchmark {model['name']} --no-graphs", ("--no-graphs",))):
            status, text = machine.run(machine.program("partita-run"), folder / "model.partita", "--benchmark", "--json", "--devices", "cuda:1", *flags, *runs)
            if status:
                report.wrong(what, text)
                continue
            times = json.loads(text[text.index("{"):])
            report.done(what, f"{times['median_ms']:.3f} ms a step {alike}; {times['stream_samples_per_s']:.1f} samples/s of a stream")
    names = [model["name"] for model in models]
    status, text = machine.run(sys.executable, machine.folder / "peer.py", "--seconds", seconds, *names)
    if status == 77:
        report.missing(f"PyTorch {', '.join(names)}", text.strip())
    elif status:
        report.wrong("PyTorch", text)
    else:
        for line in text.splitlines():
            what, _, why = line.removeprefix("not done: ").partition(": ")
            if line.startswith("not done: "):
                report.missing(what, why)
            else:
                print(line)
    tool = shutil.which("trtexec")
    if not tool:
        return report.missing("TensorRT", "trtexec is not on the PATH")
    for model in models:
        status, text = machine.run(tool, f"--onnx={machine.folder / model['folder'] / 'model.onnx'}", "--noTF32", f"--duration={seconds}")
        median = {what: re.search(rf"\b{what}:.*median = ([\d.]+) ms", text) for what in ("Latency", "GPU Compute Time")}
        if status or not all(median.values()):
            report.missing(f"TensorRT {model['name']}", text.strip().splitlines()[-1] if text.strip() else f"exit status {status}")
        else:
            report.done(f"TensorRT {model['name']}", f"{median['Latency'][1]} ms a step {alike}; {median['GPU Compute Time'][1]} ms without")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=5, help="how long each model is measured (default: 5)")
    parser.add_argument("--emulator", type=pathlib.Path, metavar="LIB")
    parser.add_argument("--tests", metavar="FILTER", help="only these tests of the two suites, as --gtest_filter says them")
    options = parser.parse_args()
    packed = json.loads((options.folder / "models.json").read_text())
    machine, report = Machine(options), Report()
    if options.emulator:
        print(f"on the emulator of {options.emulator}: numbers are checked, times mean nothing")
    elif tool := shutil.which("nvidia-smi"):
        print(machine.run(tool, "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader")[1].strip())
    else:
        report.missing("the GPU's name", "nvidia-smi is not on the PATH")
    if not options.emulator:
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError as missing:
            sys.exit(f"no driver for NVIDIA's GPUs ({missing}): install it, or say --emulator LIB")
    emulated = options.emulator is not None
    print(f"packed for {packed['target']}")
    say_versions(machine, report)
    run_suite(machine, report, "partita_cuda_tests", f"--gtest_filter={options.tests or '*'}")
    run_suite(machine, report, "partita_runtime_tests", f"--gtest_filter={options.tests or CONFORMANCE}", PARTITA_TEST_DEVICE="cuda")
    run_models(machine, report, packed["models"])
    run_trainings(machine, report, packed["trainings"])
    run_nccl(machine, report, packed["models"])
    run_sanitizers(machine, report, packed["models"])
    run_calibration(machine, report, emulated)
    run_roofs(machine, report, emulated)
    for what, why in packed["left"]:
        report.missing(what, why)
    run_benchmark(machine, report, packed["benchmark"], options.seconds, emulated)
    print(f"{len(report.failed)} failed, {len(report.left)} not done")
    sys.exit(bool(report.failed))


if __name__ == "__main__":
    main()
