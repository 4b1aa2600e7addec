/* Devices and EPs, as ONNX Runtime lists them, and compatibility strings. */
#include "child.h"

static const char *type_name(OrtHardwareDeviceType type) {
    switch (type) {
    case OrtHardwareDeviceType_CPU: return "cpu";
    case OrtHardwareDeviceType_GPU: return "gpu";
    case OrtHardwareDeviceType_NPU: return "npu";
    }
    return "other";
}

/* "key=value\n..." */
static void put_pairs(const OrtKeyValuePairs *pairs, char *out, size_t size) {
    const char *const *keys = NULL;
    const char *const *values = NULL;
    size_t count = 0, used = 0, i;
    out[0] = '\0';
    if (pairs != NULL) ort->GetKeyValuePairs(pairs, &keys, &values, &count);
    for (i = 0; i < count; i++) {
        int n = snprintf(out + used, size - used, "%s=%s\n", keys[i], values[i]);
        if (n < 0 || (size_t)n >= size - used) {
            out[used] = '\0'; /* whole lines only */
            return;
        }
        used += (size_t)n;
    }
}

static void put_text(char *out, size_t size, const char *text) {
    snprintf(out, size, "%s", text != NULL ? text : "");
}

/* Why the EP cannot work on the hardware; an EP need not say. */
static void put_problem(const OrtEpDevice *device, anyep_device *out) {
    static const struct {
        uint32_t bit;
        const char *text;
    } reasons[] = {{OrtDeviceEpIncompatibility_DRIVER_INCOMPATIBLE, "driver incompatible"},
                   {OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE, "device incompatible"},
                   {OrtDeviceEpIncompatibility_MISSING_DEPENDENCY, "missing dependency"}};
    OrtDeviceEpIncompatibilityDetails *details = NULL;
    const char *notes = NULL;
    uint32_t bits = 0;
    int32_t code = 0;
    size_t i, used;
    if (!ort_ok(ort->GetHardwareDeviceEpIncompatibilityDetails(
            ort_env, out->ep, ort->EpDevice_Device(device), &details)) ||
        details == NULL)
        return;
    if (ort_ok(ort->DeviceEpIncompatibilityDetails_GetReasonsBitmask(details, &bits)) &&
        bits != 0 && ort_ok(ort->DeviceEpIncompatibilityDetails_GetNotes(details, &notes)) &&
        ort_ok(ort->DeviceEpIncompatibilityDetails_GetErrorCode(details, &code))) {
        for (i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
            if ((bits & reasons[i].bit) == 0) continue;
            used = strlen(out->problem);
            snprintf(out->problem + used, sizeof out->problem - used, "%s%s", used > 0 ? ", " : "",
                     reasons[i].text);
        }
        used = strlen(out->problem);
        snprintf(out->problem + used, sizeof out->problem - used, "%s%s (%d)", used > 0 ? ": " : "",
                 notes != NULL ? notes : "unknown reason", (int)code);
    }
    ort->ReleaseDeviceEpIncompatibilityDetails(details);
}

static void put_device(const OrtEpDevice *device, anyep_device *out) {
    const OrtHardwareDevice *hardware = ort->EpDevice_Device(device);
    const OrtKeyValuePairs *metadata = ort->EpDevice_EpMetadata(device);
    memset(out, 0, sizeof *out);
    put_text(out->ep, sizeof out->ep, ort->EpDevice_EpName(device));
    put_text(out->vendor, sizeof out->vendor, ort->EpDevice_EpVendor(device));
    put_text(out->version, sizeof out->version,
             metadata != NULL ? ort->GetKeyValue(metadata, "version") : NULL);
    put_text(out->type, sizeof out->type, type_name(ort->HardwareDevice_Type(hardware)));
    put_text(out->hardware_vendor, sizeof out->hardware_vendor,
             ort->HardwareDevice_Vendor(hardware));
    out->vendor_id = ort->HardwareDevice_VendorId(hardware);
    out->device_id = ort->HardwareDevice_DeviceId(hardware);
    put_pairs(metadata, out->metadata, sizeof out->metadata);
    put_pairs(ort->EpDevice_EpOptions(device), out->options, sizeof out->options);
    put_pairs(ort->HardwareDevice_Metadata(hardware), out->hardware, sizeof out->hardware);
}

void child_describe(child *c) {
    size_t i;
    for (i = 0; i < c->ep_count; i++) {
        anyep_used *used = &c->board->eps[i];
        const OrtKeyValuePairs *metadata;
        anyep_device device;
        put_text(used->ep, sizeof used->ep, c->specs[i].ep);
        if (c->devices[i] == NULL) continue;
        put_device(c->devices[i], &device);
        memcpy(used->vendor, device.vendor, sizeof device.vendor);
        memcpy(used->version, device.version, sizeof device.version);
        memcpy(used->device, device.type, sizeof device.type);
        metadata = ort->EpDevice_EpMetadata(c->devices[i]);
        put_text(used->driver, sizeof used->driver,
                 metadata != NULL ? ort->GetKeyValue(metadata, "os_driver_version") : NULL);
    }
    c->board->ep_count = c->ep_count;
}

/* The model's string of the EP, and what ORT says of it. */
static bool judge_model(child *c, const char *file, anyep_verdict *out) {
    OrtAllocator *allocator = NULL;
    char *text = NULL;
    OrtCompiledModelCompatibility verdict = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    child_doing(c, "asking about the compatibility of %s", file);
    out->verdict = -1;
    if (!child_is_file(c, file)) return false;
    if (!ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator)) ||
        !ort_ok(ort->GetCompatibilityInfoFromModel(ort_path(file), c->board->eps[0].ep, allocator,
                                                   &text)))
        return child_refused(c);
    if (text == NULL) return true;
    put_text(out->text, sizeof out->text, text);
    allocator->Free(allocator, text);
    out->verdict = (int)verdict;
    if (c->devices[0] == NULL) return true; /* ONNX Runtime asks devices only */
    if (!ort_ok(ort->GetModelCompatibilityForEpDevices(&c->devices[0], 1, out->text, &verdict)))
        return child_refused(c);
    out->verdict = (int)verdict;
    return true;
}

/* EPs inside ONNX Runtime without a device: --ep has their name. */
static bool list_inside(child *c) {
    anyep_board *board = c->board;
    char **names = NULL;
    int count = 0, i;
    if (!ort_ok(ort->GetAvailableProviders(&names, &count))) return child_refused(c);
    for (i = 0; i < count && board->inside_count < ANYEP_MOST_DEVICES; i++)
        if (ort_device_of(NULL, names[i], NULL) == NULL)
            put_text(board->inside[board->inside_count++], sizeof board->inside[0], names[i]);
    ort->ReleaseStatus(ort->ReleaseAvailableProviders(names, count));
    return true;
}

bool child_list(child *c) {
    const OrtEpDevice *const *devices = NULL;
    anyep_board *board = c->board;
    size_t count = 0, i;
    child_doing(c, "listing devices");
    if (!ort_ok(ort->GetEpDevices(ort_env, &devices, &count))) return child_refused(c);
    for (i = 0; i < count && i < ANYEP_MOST_DEVICES; i++) {
        anyep_device *out = &board->devices[i];
        put_device(devices[i], out);
        out->of_ep = c->ep_count > 0 && strcmp(out->ep, board->eps[0].ep) == 0;
        if (out->of_ep) put_problem(devices[i], out);
        board->device_count = i + 1;
    }
    board->more_devices = count - i;
    if (!list_inside(c)) return false;
    for (i = 0; c->ep_count > 0 && i < c->job->file_count; i++)
        if (!judge_model(c, c->job->files[i], &board->verdicts[i])) return false;
    return true;
}
