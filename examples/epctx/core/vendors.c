/* The tables come from what vendors and their users publish; numbers of QNN from its headers and
 * its table of API error codes, chips from the QNN SDK's Qnn_SocModel_t and ExecuTorch's list. */
#include "vendors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const vendor_ep eps[] = {
    {"qnn", "QNNExecutionProvider", "libonnxruntime_providers_qnn.so",
     "onnxruntime_providers_qnn.dll",
     "PyPI onnxruntime-qnn; NuGet Qualcomm.ML.OnnxRuntime.QNN; Maven "
     "com.qualcomm.qti:onnxruntime-android-qnn with com.qualcomm.qti:qnn-runtime; Windows ML",
     "libQnnHtp.so, libQnnSystem.so, libQnnHtpV<arch>Stub.so and, on the DSP, "
     "libQnnHtpV<arch>Skel.so (ADSP_LIBRARY_PATH); Windows: NPU driver 30.0.140.0",
     "yes, with libQnnHtpPrepare.so: choose the CPU device, backend_type htp and soc_model",
     "a session that compiles on the device keeps about 300 MB of the NPU's: the EP option "
     "enable_htp_prepare_only 1 (epctx compile --ep-opt) only compiles; one graph may have 2 GB, a "
     "process about 3.5 GB"},
    {"openvino", NULL, "libonnxruntime_providers_openvino_plugin.so",
     "onnxruntime_providers_openvino_plugin.dll",
     "PyPI onnxruntime-ep-openvino; NuGet Intel.ML.OnnxRuntime.EP.OpenVINO; Windows ML",
     "drivers of CPU, GPU or NPU; a blob for the NPU needs a driver that is not older than its "
     "compiler",
     "CPU: yes; NPU: load_config with NPU_PLATFORM and NPU_COMPILER_TYPE PLUGIN", NULL},
    {"tensorrt", NULL, "libonnxruntime_providers_tensorrt.so", "onnxruntime_providers_tensorrt.dll",
     "PyPI onnxruntime-gpu, inside ONNX Runtime",
     "CUDA and TensorRT, of the version that built the engine", "no", NULL},
    {"nv_tensorrt_rtx", NULL, "libonnxruntime_providers_nv_tensorrt_rtx.so",
     "onnxruntime_providers_nv_tensorrt_rtx.dll", "PyPI onnxruntime-ep-nv-tensorrt-rtx; Windows ML",
     "a GPU from Ampere on, driver 32.0.15.5585 (CUDA 12.5)", "no: the EP wants a CUDA device",
     NULL},
    {"migraphx", "AMDGPUExecutionProvider", "libamdgpu-ep.so", "amdgpu-ep.dll",
     "PyPI onnxruntime_ep_migraphx, onnxruntime_ep_amdgpu; Windows ML", "GPU driver 25.10.13.09",
     "no", NULL},
    {"vitisai", NULL, NULL, "onnxruntime_providers_vitisai.dll", "Ryzen AI software; Windows ML",
     "NPU driver 32.0.203.280; XLNX_VART_FIRMWARE where the chip wants an xclbin", NULL,
     "its cache (cache_dir/cache_key) is of no use on another machine, nor after an update of EP "
     "or "
     "driver: delete it, and deliver the EPContext model with the context embedded, which moves as "
     "one file"},
};

const vendor_ep *vendor_ep_of(const char *profile) {
    size_t i;
    if (strcmp(profile, "qnn_plugin") == 0) profile = "qnn"; /* the same EP, newer */
    for (i = 0; i < COUNT(eps); i++)
        if (strcmp(eps[i].profile, profile) == 0) return &eps[i];
    return NULL;
}

/* -- EPs without EPContext -- */

const vendor_plain vendor_plains[] = {
    {"DmlExecutionProvider", "DML/DirectML",
     "Load the original model, or use an EP with EPContext for the same GPU (nv_tensorrt_rtx, "
     "openvino, migraphx)."},
    {"CUDAExecutionProvider", "CUDA",
     "Load the original model, or use an EP with EPContext for the same GPU (tensorrt, "
     "nv_tensorrt_rtx)."},
    {"CoreMLExecutionProvider", "CoreML",
     "Set its option ModelCacheDirectory: it keeps what it compiled there."},
    {"WebGpuExecutionProvider", "WebGPU", "Load the original model."},
    {"CPUExecutionProvider", "CPU", "Load the original model."},
};
const size_t vendor_plain_count = COUNT(vendor_plains);

/* -- error numbers of QNN -- */

const vendor_code vendor_codes[] = {
    {1000, "not supported", "this backend or device lacks the feature"},
    {1002, "out of memory",
     "loading: the DSP's address space is full, or weights are mapped from the file "
     "(disable_file_mapped_weights 1): load fewer models at once, or split; compiling: the graph "
     "is too big (2 GB): split the model"},
    {1003, "system error", "read it together with the FastRPC number in the log"},
    {1004, "invalid argument", NULL},
    {1005, "operation not permitted", NULL},
    {1006, "not on this platform", NULL},
    {1007, "system communication failed",
     "the DSP's subsystem restarted: release everything and create it again"},
    {1008, "incompatible binaries",
     "stub and skel are of different SDKs, or the vendor partition's copy was loaded first: ship "
     "all QNN libraries of one SDK"},
    {1009, "the library is loaded already", NULL},
    {1010, "a resource is not available", "only applications in the foreground may get it: retry"},
    {1011, "the DSP restarted and was not recovered", "end the process"},
    {1100, "general error while running", NULL},
    {3110, "an operator is not supported",
     "normal while nodes are chosen: it runs on the CPU; with session.disable_cpu_ep_fallback 1 "
     "the session fails"},
    {4000, "the backend does not start",
     "the SDK is too old to know the chip, or libraries for the DSP are not found as with 14001"},
    {5000, "invalid argument for a context",
     "QNN on the device is older than the one that made the binary, or the device is another: "
     "epctx info MODEL tells the SDK version"},
    {5001, "unknown context", NULL},
    {5002, "invalid context handle", NULL},
    {5003, "the context is not finalized", NULL},
    {5004, "the binary has another version", "compile again"},
    {5005, "no context from this binary",
     "it was made for a newer HTP architecture, for more VTCM than there is (vtcm_mb) or another "
     "soc_model, or the NPU's driver is old: compile for this chip, or update the driver"},
    {5006, "the size of the binary is not to be had", NULL},
    {5007, "the binary is not to be had", NULL},
    {5008, "the binary was not made for this device", "compile for this chip"},
    {5009, "the profile cannot be set", NULL},
    {5010, "invalid configuration of a context", NULL},
    {5011, "suboptimal, where only the best was accepted", "compile for this chip"},
    {5012, "aborted", NULL},
    {5013, "timeout", NULL},
    {5014, "an incremental buffer is wrong", NULL},
    {6000, "invalid argument for a graph", NULL},
    {6001, "invalid graph handle",
     "seen when a graph was composed at run time: the same model ran as a context binary"},
    {6002, "no such graph",
     "the binary has no graph of that name: the node's name or partition_name was changed, or the "
     "binary belongs to another model"},
    {6003, "invalid name of a graph", "as 6002"},
    {6004, "invalid tensor",
     "inputs and outputs of the node are not those of the graph in the binary: epctx wrap --io "
     "FILE.json makes a node that fits, epctx diff shows the difference"},
    {6005, "invalid configuration of an operator", NULL},
    {6006, "the profile cannot be set", NULL},
    {6007, "a node is not connected", NULL},
    {6020, "the graph was not created", "an unsupported combination, or memory is short"},
    {6021, "the graph was not optimized",
     "a lower htp_graph_finalization_optimization_mode, or split the model"},
    {6022, "the graph was not finalized",
     "a lower htp_graph_finalization_optimization_mode, or split the model"},
    {6023, "the graph is not finalized", NULL},
    {6024, "the graph is finalized already", NULL},
    {6025, "the queue is full", NULL},
    {6030, "a signal is in use", NULL},
    {6031, "the run was aborted", "a fault of the driver, or a reset: update the driver"},
    {14000, "invalid device handle", NULL},
    {14001, "invalid configuration of a device",
     "libraries for the DSP are not found: set ADSP_LIBRARY_PATH before the first session; on "
     "Android declare libcdsprpc.so in the manifest; take all of QNN from the SDK of the binary"},
    {14002, "the hardware is not available", NULL},
    {14003, "the device is still in use", NULL},
    {30010, "this is no context binary",
     "a wrong file, a git-lfs pointer, or another backend's: epctx lint MODEL"},
};
const size_t vendor_code_count = COUNT(vendor_codes);

const vendor_code *vendor_code_of(uint32_t number) {
    size_t i;
    for (i = 0; i < vendor_code_count; i++)
        if (vendor_codes[i].number == number) return &vendor_codes[i];
    return NULL;
}

/* How headers and logs call them, without "QNN_". */
static const struct {
    uint16_t number;
    const char *name;
} code_names[] = {
    {1000, "COMMON_ERROR_NOT_SUPPORTED"},
    {1002, "COMMON_ERROR_MEM_ALLOC"},
    {1003, "COMMON_ERROR_SYSTEM"},
    {1004, "COMMON_ERROR_INVALID_ARGUMENT"},
    {1005, "COMMON_ERROR_OPERATION_NOT_PERMITTED"},
    {1006, "COMMON_ERROR_PLATFORM_NOT_SUPPORTED"},
    {1007, "COMMON_ERROR_SYSTEM_COMMUNICATION"},
    {1008, "COMMON_ERROR_INCOMPATIBLE_BINARIES"},
    {1009, "COMMON_ERROR_LOADING_BINARIES"},
    {1010, "COMMON_ERROR_RESOURCE_UNAVAILABLE"},
    {1011, "COMMON_ERROR_SYSTEM_COMMUNICATION_FATAL"},
    {1100, "COMMON_ERROR_GENERAL"},
    {1000, "CONTEXT_ERROR_UNSUPPORTED_FEATURE"},
    {1002, "CONTEXT_ERROR_MEM_ALLOC"},
    {5000, "CONTEXT_ERROR_INVALID_ARGUMENT"},
    {5001, "CONTEXT_ERROR_CTX_DOES_NOT_EXIST"},
    {5002, "CONTEXT_ERROR_INVALID_HANDLE"},
    {5003, "CONTEXT_ERROR_NOT_FINALIZED"},
    {5004, "CONTEXT_ERROR_BINARY_VERSION"},
    {5005, "CONTEXT_ERROR_CREATE_FROM_BINARY"},
    {5006, "CONTEXT_ERROR_GET_BINARY_SIZE_FAILED"},
    {5007, "CONTEXT_ERROR_GET_BINARY_FAILED"},
    {5008, "CONTEXT_ERROR_BINARY_CONFIGURATION"},
    {5009, "CONTEXT_ERROR_SET_PROFILE"},
    {5010, "CONTEXT_ERROR_INVALID_CONFIG"},
    {5011, "CONTEXT_ERROR_BINARY_SUBOPTIMAL"},
    {5012, "CONTEXT_ERROR_ABORTED"},
    {5013, "CONTEXT_ERROR_TIMED_OUT"},
    {1000, "GRAPH_ERROR_UNSUPPORTED_FEATURE"},
    {1002, "GRAPH_ERROR_MEM_ALLOC"},
    {1100, "GRAPH_ERROR_GENERAL"},
    {6000, "GRAPH_ERROR_INVALID_ARGUMENT"},
    {6001, "GRAPH_ERROR_INVALID_HANDLE"},
    {6002, "GRAPH_ERROR_GRAPH_DOES_NOT_EXIST"},
    {6003, "GRAPH_ERROR_INVALID_NAME"},
    {6004, "GRAPH_ERROR_INVALID_TENSOR"},
    {6005, "GRAPH_ERROR_INVALID_OP_CONFIG"},
    {6006, "GRAPH_ERROR_SET_PROFILE"},
    {6007, "GRAPH_ERROR_UNCONNECTED_NODE"},
    {6020, "GRAPH_ERROR_CREATE_FAILED"},
    {6021, "GRAPH_ERROR_OPTIMIZATION_FAILED"},
    {6022, "GRAPH_ERROR_FINALIZE_FAILED"},
    {6023, "GRAPH_ERROR_GRAPH_NOT_FINALIZED"},
    {6024, "GRAPH_ERROR_GRAPH_FINALIZED"},
    {1000, "DEVICE_ERROR_UNSUPPORTED_FEATURE"},
    {1002, "DEVICE_ERROR_MEM_ALLOC"},
    {1004, "DEVICE_ERROR_INVALID_ARGUMENT"},
    {14000, "DEVICE_ERROR_INVALID_HANDLE"},
    {14001, "DEVICE_ERROR_INVALID_CONFIG"},
    {14002, "DEVICE_ERROR_HARDWARE_UNAVAILABLE"},
    {14003, "DEVICE_ERROR_ASSOCIATED_TO_CONTEXT"},
};

const vendor_code *vendor_code_named(const char *name, size_t size) {
    size_t i;
    if (size < 4 || memcmp(name, "QNN_", 4) != 0) return NULL;
    for (i = 0; i < COUNT(code_names); i++)
        if (strlen(code_names[i].name) == size - 4 &&
            memcmp(code_names[i].name, name + 4, size - 4) == 0)
            return vendor_code_of(code_names[i].number);
    return NULL;
}

const char *vendor_range_of(uint32_t number) {
    static const char *const thousands[] = {
        NULL,          "common",      "a property", "an operator package",
        "the backend", "a context",   "a graph",    "a tensor",
        "memory",      "a signal",    "errors",     "logging",
        "profiling",   "performance", "a device"};
    if (number >= 30000 && number < 50000) return "the system library";
    return number / 1000 < COUNT(thousands) ? thousands[number / 1000] : NULL;
}

/* -- chips -- */

const vendor_chip vendor_chips[] = {
    {30, 68, 4, "SM8350"},
    {35, 68, 0, "SM7325"},
    {37, 68, 0, "SC8280X/SC8280XP/8cx Gen 3"},
    {39, 68, 8, "SA8295/SA8295P"},
    {62, 68, 8, "SA8540/SA8540P"},
    {93, 68, 2, "QCS6490/QCM6490"},
    {36, 69, 8, "SM8450/8 Gen 1"},
    {42, 69, 8, "SM8475/8+ Gen 1"},
    {53, 69, 8, "SXR2230P"},
    {43, 73, 8, "SM8550/8 Gen 2"},
    {45, 73, 2, "SXR1230P"},
    {46, 73, 2, "SSG2115P"},
    {52, 73, 8, "SA8255/SA8255P"},
    {58, 73, 2, "SSG2125P"},
    {60, 73, 8, "SC8380XP/X1E80100/X Elite/X Plus"},
    {66, 73, 0, "QCS8550/QCM8550"},
    {68, 73, 8, "SM8635"},
    {77, 73, 8, "QCS9100"},
    {57, 75, 8, "SM8650/8 Gen 3"},
    {69, 79, 8, "SM8750/SM8750-AC/8 Elite/8 Elite for Galaxy"},
    {75, 79, 8, "SXR2330P"},
    {85, 79, 8, "SM8735"},
    {72, 81, 16, "SA8797"},
    {87, 81, 8, "SM8850/8 Elite Gen 5"},
    {88, 81, 0, "SC8480XP/X2 Elite"},
    {95, 81, 4, "SAR2230P"},
    {96, 81, 4, "SW6100"},
    {97, 81, 8, "SM8845"},
};
const size_t vendor_chip_count = COUNT(vendor_chips);

/* What Linux calls them in /sys/devices/soc0/soc_id. */
static const struct {
    uint16_t soc_id, soc_model;
} soc_ids[] = {{519, 43}, {536, 43}, {557, 57}, {577, 57}, {618, 69}, {639, 69}};

/* One of the names between slashes? */
static bool is_named(const char *names, const char *text) {
    while (*names != '\0') {
        const size_t size = strcspn(names, "/");
        if (strlen(text) == size && strncasecmp(names, text, size) == 0) return true;
        names += size + (names[size] == '/');
    }
    return false;
}

const vendor_plain *vendor_plain_of(const char *text) {
    size_t i;
    for (i = 0; i < vendor_plain_count; i++)
        if (strcasecmp(vendor_plains[i].name, text) == 0 || is_named(vendor_plains[i].alias, text))
            return &vendor_plains[i];
    return NULL;
}

static const vendor_chip *chip_of_model(unsigned long number) {
    size_t i;
    for (i = 0; i < vendor_chip_count; i++)
        if (vendor_chips[i].soc_model == number) return &vendor_chips[i];
    return NULL;
}

const vendor_chip *vendor_chip_of(const char *text) {
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    size_t i;
    if (*text >= '0' && *text <= '9' && *end == '\0') {
        for (i = 0; i < COUNT(soc_ids); i++)
            if (soc_ids[i].soc_id == number) return chip_of_model(soc_ids[i].soc_model);
        return chip_of_model(number);
    }
    if (strncasecmp(text, "Snapdragon ", 11) == 0) text += 11;
    for (i = 0; i < vendor_chip_count; i++)
        if (is_named(vendor_chips[i].name, text)) return &vendor_chips[i];
    return NULL;
}
