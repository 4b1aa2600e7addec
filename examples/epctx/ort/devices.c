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
    const OrtKeyValuePairs *metadata = ort->EpDevice_EpMetadata(c->device);
    anyep_device device;
    put_device(c->device, &device);
    memcpy(c->board->ep, device.ep, sizeof device.ep);
    memcpy(c->board->vendor, device.vendor, sizeof device.vendor);
    memcpy(c->board->version, device.version, sizeof device.version);
    memcpy(c->board->device, device.type, sizeof device.type);
    put_text(c->board->driver, sizeof c->board->driver,
             metadata != NULL ? ort->GetKeyValue(metadata, "os_driver_version") : NULL);
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
        !ort_ok(ort->GetCompatibilityInfoFromModel(ort_path(file), c->board->ep, allocator, &text)))
        return child_refused(c);
    if (text == NULL) return true;
    put_text(out->text, sizeof out->text, text);
    allocator->Free(allocator, text);
    if (!ort_ok(ort->GetModelCompatibilityForEpDevices(&c->device, 1, out->text, &verdict)))
        return child_refused(c);
    out->verdict = (int)verdict;
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
        out->of_ep = c->device != NULL && strcmp(out->ep, board->ep) == 0;
        if (out->of_ep) put_problem(devices[i], out);
        board->device_count = i + 1;
    }
    board->more_devices = count - i;
    for (i = 0; c->device != NULL && i < c->job->file_count; i++)
        if (!judge_model(c, c->job->files[i], &board->verdicts[i])) return false;
    return true;
}
