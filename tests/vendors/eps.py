"""The EPs of the bench: where they lie, how their vendors say that they are registered."""
import glob
import os
import platform
import re

CACHE = os.environ.get("EPCTX_VENDORS", "")  # PACKAGE-VERSION/ for each, unpacked
BUILD = os.environ.get("EPCTX_BUILD_DIR", "build")
BETWEEN = os.environ.get("EPCTX_INTEL_BETWEEN")  # the folder of vendors/intel.c's library


def folder_of(package):
    found = glob.glob(os.path.join(CACHE, package + "-[0-9]*"))
    return max(found, default=os.path.join(CACHE, package))


class Ep:
    """An EP with the options of one target."""

    def __init__(self, ident, name, library, options=(), tool=(), package=None, intel=False,
                 refused=(), writes=True, wrong=(), registers=None, tool_name=False, brief=False,
                 inside=None, by_node_name=False, lint=(), leaves=(), nameless=False):
        self.id, self.name, self.registers = ident, name, registers or name
        self.version = None  # once it was asked
        self.brief = brief  # only compiled, loaded and run
        self.tool_name = tool_name  # no profile knows it: the tool is told
        self.package, self.tool = package, list(tool)
        self.nameless = nameless  # its binaries do not tell graphs apart
        self.leaves = leaves  # models that take it minutes each time
        self.by_node_name = by_node_name  # it finds a graph by it, in a context of several
        self.writes = writes  # context models
        self.wrong = wrong    # options at load that it may not take: (key, value)
        self.refused = dict(refused)  # edits that it cannot have: what the tool says of each
        self.folder = folder_of(package) if package else BUILD
        self.library = os.path.abspath(os.path.join(self.folder, library)) if library else None
        # The EP is in an ONNX Runtime of its own, this file of the package.
        self.ort = None
        if inside:
            place = os.path.join(self.folder, inside)
            self.ort = max(glob.glob(place), default=place)
        if intel and not is_intel() and BETWEEN:  # vendors/intel.c
            os.environ["EPCTX_INTEL_EP"] = self.library
            self.library = os.path.join(BETWEEN, os.path.basename(library))
        home = os.path.dirname(self.library or "")
        self.options = {k: v.replace("@", home) for k, v in options}
        self.lint = [word.replace("@", home) for word in lint]  # more words of the command

    def words(self, **more):
        """Of the tool's command line."""
        named = f":{self.registers}" if self.tool_name else ""
        out = ["--ort", self.ort] if self.ort else []
        out += ["--ep", self.library + named if self.library else self.name, *self.tool]
        for key, value in {**self.options, **more}.items():
            out += ["--ep-opt", f"{key}={value}"]
        return out

    def job(self, **more):
        """Of app.py's."""
        return {"library": self.library, "name": self.registers, "ep": self.name,
                "options": {**self.options, **more}, "ort": self.folder if self.ort else None}

    def missing(self, bench):
        """Why it cannot be asked here; None: it can."""
        file = self.library or self.ort
        if not os.path.exists(file):
            return f"{file} is not there"
        if self.package and platform.machine() != "x86_64":
            return f"{self.package} is fetched for x86_64 only"
        if self.ort:  # lists no device
            self.version = f"{self.name}, {os.path.basename(self.folder)}"
            return None
        code, text = bench.epctx("devices", *self.words()[:2])
        found = re.search(f"^device of --ep {self.name} ([^ ]*)", text, re.M)
        if not found:
            return f"lists no device here: {text[-200:]}"
        self.version = f"{self.name} {found.group(1)}"
        if self.package:
            self.version += f", {os.path.basename(self.folder)}"
        return None


def is_intel():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return "GenuineIntel" in file.read()


def qnn(ident, soc, arch, brief=False):
    return Ep(ident, "QNNExecutionProvider", "onnxruntime_qnn/libonnxruntime_providers_qnn.so",
              [("backend_path", "@/libQnnHtp.so"), ("soc_model", soc), ("htp_arch", arch),
               ("enable_htp_fp16_precision", "1")], package="onnxruntime-qnn", brief=brief,
              by_node_name=True, lint=["--qnn-system", "@/libQnnSystem.so"],
              leaves=["light_resnet50.onnx", "light_squeezenet.onnx"],
              wrong=[("backend_path", "no_such.so"), ("soc_model", "9999"), ("htp_arch", "68"),
                     ("htp_arch", "x"), ("vtcm_mb", "-7"), ("enable_htp_fp16_precision", "0"),
                     ("htp_performance_mode", "no_such_mode"), ("no_such_option", "1")])


CPU = Ep("cpu", "CPUExecutionProvider", None)
ALL = [
    qnn("qnn-SM8750", "69", "79"),
    qnn("qnn-SM8550", "43", "73", brief=True),
    Ep("openvino", "OpenVINOExecutionProvider",
       "onnxruntime_ep_openvino/libonnxruntime_providers_openvino_plugin.so",
       tool=["--device", "cpu"], package="onnxruntime-ep-openvino", intel=True,
       refused={"rename": "openvino finds it in the binary by name", "merge": "its EP finds "
                "the inputs and outputs of a compiled node by name"},
       wrong=[("load_config", "garbage"), ("load_config", '{"CPU": {"NO_SUCH": "1"}}'),
              ("num_of_threads", "x"), ("num_of_threads", "-1"), ("num_streams", "0"),
              ("reshape_input", "garbage"), ("precision", "FP8"), ("no_such_option", "1")]),
    # Compiles for its CPU, and loads no context of its own; reads the model itself.
    Ep("openvino-inside", "OpenVINOExecutionProvider", None, [("device_type", "CPU")],
       package="onnxruntime-openvino", inside="onnxruntime/capi/libonnxruntime.so.*"),
    Ep("npu", "EpctxNpuExecutionProvider", "libepctx_ep.so",
       wrong=[("no_such_option", "1")]),
    Ep("toy", "ToyExecutionProvider", "libtoy_ep.so", nameless=True,
       wrong=[("no_such_option", "1")]),
    Ep("ggml", "ggml", "onnxruntime_ggml/lib/libonnxruntime_ggml.so", package="onnxruntime-ggml",
       tool_name=True, writes=False),
    Ep("nxrt", "cpu_ep", "nxrt_ep_cpu/libonnx_runtime_ep_cpu_plugin.so", package="nxrt-ep-cpu",
       registers="nxrt_ep_cpu", writes=False),
]
