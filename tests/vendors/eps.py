"""The EPs of the bench: where they lie, how their vendors say that they are registered."""
import glob
import os
import platform

CACHE = os.environ.get("EPCTX_VENDORS", "")  # PACKAGE-VERSION/ for each, unpacked
BUILD = os.environ.get("EPCTX_BUILD_DIR", "build")
BETWEEN = os.environ.get("EPCTX_INTEL_BETWEEN")  # the folder of vendors/intel.c's library


def folder_of(package):
    found = glob.glob(os.path.join(CACHE, package + "-[0-9]*"))
    return max(found, default=os.path.join(CACHE, package))


class Ep:
    """An EP with the options of one target."""

    def __init__(self, ident, name, library, options=(), tool=(), package=None, intel=False,
                 refused=()):
        self.id, self.name, self.registers = ident, name, name
        self.package, self.tool = package, list(tool)
        self.refused = dict(refused)  # edits that it cannot have: what the tool says of each
        self.folder = folder_of(package) if package else BUILD
        self.library = os.path.abspath(os.path.join(self.folder, library)) if library else None
        if intel and not is_intel() and BETWEEN:  # vendors/intel.c
            os.environ["EPCTX_INTEL_EP"] = self.library
            self.library = os.path.join(BETWEEN, os.path.basename(library))
        self.options = {k: v.replace("@", os.path.dirname(self.library or "")) for k, v in options}

    def words(self):
        """Of the tool's command line."""
        out = ["--ep", self.library, *self.tool]
        for key, value in self.options.items():
            out += ["--ep-opt", f"{key}={value}"]
        return out

    def missing(self, bench):
        """Why it cannot be asked here; None: it can."""
        if not os.path.exists(self.library):
            return f"{self.library} is not there"
        if self.package and platform.machine() != "x86_64":
            return f"{self.package} is fetched for x86_64 only"
        code, text = bench.epctx("devices", "--ep", self.library)
        if f"device of --ep {self.name} " not in text:
            return f"lists no device here: {text[-200:]}"
        return None


def is_intel():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return "GenuineIntel" in file.read()


def qnn(ident, soc, arch):
    return Ep(ident, "QNNExecutionProvider", "onnxruntime_qnn/libonnxruntime_providers_qnn.so",
              [("backend_path", "@/libQnnHtp.so"), ("soc_model", soc), ("htp_arch", arch),
               ("enable_htp_fp16_precision", "1")], package="onnxruntime-qnn")


CPU = Ep("cpu", "CPUExecutionProvider", None)
ALL = [
    qnn("qnn-SM8750", "69", "79"),
    qnn("qnn-SM8550", "43", "73"),
    Ep("openvino", "OpenVINOExecutionProvider",
       "onnxruntime_ep_openvino/libonnxruntime_providers_openvino_plugin.so",
       tool=["--device", "cpu"], package="onnxruntime-ep-openvino", intel=True,
       refused={"rename": "openvino finds it in the binary by name", "merge": "its EP finds "
                "the inputs and outputs of a compiled node by name"}),
    Ep("npu", "EpctxNpuExecutionProvider", "libepctx_ep.so"),
]
