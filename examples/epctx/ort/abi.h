/*
 * abi.h - the part of ONNX Runtime's C API that the tool calls, so that it is built without ONNX
 * Runtime's headers. A function is known by its place in a table of pointers, which only ever grows
 * at its end: what stands here holds for every release from 1.24 on.
 *
 * Places, types and numbers stand in lists: the structures here are made from them, and
 * tests/test_ort_abi.sh compares each entry with the official headers.
 */
#ifndef ORT_ABI_H
#define ORT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row for each entry: */
/* clang-format off */

/* SLOT(place, result, name, (parameters)), in the order of places; GAP(first, last): functions that
 * are not called from here. */
#define ORT_ABI_BASE(SLOT, GAP) \
    SLOT(0, const OrtApi *, GetApi, (uint32_t)) \
    SLOT(1, const char *, GetVersionString, (void))

/* In the first place is a number, the version of the structure. */
#define ORT_ABI_ALLOCATOR(SLOT, GAP) \
    GAP(0, 1) \
    SLOT(2, void, Free, (OrtAllocator *, void *))

#define ORT_ABI_COMPILE(SLOT, GAP) \
    SLOT(0, void, ReleaseModelCompilationOptions, (OrtModelCompilationOptions *)) \
    SLOT(1, OrtStatus *, CreateModelCompilationOptionsFromSessionOptions, \
         (const OrtEnv *, const OrtSessionOptions *, OrtModelCompilationOptions **)) \
    SLOT(2, OrtStatus *, ModelCompilationOptions_SetInputModelPath, \
         (OrtModelCompilationOptions *, const ORTCHAR_T *)) \
    SLOT(3, OrtStatus *, ModelCompilationOptions_SetInputModelFromBuffer, \
         (OrtModelCompilationOptions *, const void *, size_t)) \
    SLOT(4, OrtStatus *, ModelCompilationOptions_SetOutputModelPath, \
         (OrtModelCompilationOptions *, const ORTCHAR_T *)) \
    SLOT(5, OrtStatus *, ModelCompilationOptions_SetOutputModelExternalInitializersFile, \
         (OrtModelCompilationOptions *, const ORTCHAR_T *, size_t)) \
    SLOT(6, OrtStatus *, ModelCompilationOptions_SetOutputModelBuffer, \
         (OrtModelCompilationOptions *, OrtAllocator *, void **, size_t *)) \
    SLOT(7, OrtStatus *, ModelCompilationOptions_SetEpContextEmbedMode, \
         (OrtModelCompilationOptions *, bool)) \
    SLOT(8, OrtStatus *, CompileModel, (const OrtEnv *, const OrtModelCompilationOptions *)) \
    SLOT(9, OrtStatus *, ModelCompilationOptions_SetFlags, \
         (OrtModelCompilationOptions *, uint32_t)) \
    SLOT(10, OrtStatus *, ModelCompilationOptions_SetEpContextBinaryInformation, \
         (OrtModelCompilationOptions *, const ORTCHAR_T *, const ORTCHAR_T *)) \
    SLOT(11, OrtStatus *, ModelCompilationOptions_SetGraphOptimizationLevel, \
         (OrtModelCompilationOptions *, GraphOptimizationLevel)) \
    SLOT(12, OrtStatus *, ModelCompilationOptions_SetOutputModelWriteFunc, \
         (OrtModelCompilationOptions *, OrtWriteBufferFunc, void *)) \
    GAP(13, 14) \
    SLOT(15, OrtStatus *, ModelCompilationOptions_SetWeightlessEnabled, \
         (OrtModelCompilationOptions *, bool))

#define ORT_ABI_API(SLOT, GAP) \
    SLOT(0, OrtStatus *, CreateStatus, (OrtErrorCode, const char *)) \
    SLOT(1, OrtErrorCode, GetErrorCode, (const OrtStatus *)) \
    SLOT(2, const char *, GetErrorMessage, (const OrtStatus *)) \
    GAP(3, 3) \
    SLOT(4, OrtStatus *, CreateEnvWithCustomLogger, \
         (OrtLoggingFunction, void *, OrtLoggingLevel, const char *, OrtEnv **)) \
    GAP(5, 6) \
    SLOT(7, OrtStatus *, CreateSession, \
         (const OrtEnv *, const ORTCHAR_T *, const OrtSessionOptions *, OrtSession **)) \
    SLOT(8, OrtStatus *, CreateSessionFromArray, \
         (const OrtEnv *, const void *, size_t, const OrtSessionOptions *, OrtSession **)) \
    SLOT(9, OrtStatus *, Run, \
         (OrtSession *, const OrtRunOptions *, const char *const *, const OrtValue *const *, \
          size_t, const char *const *, size_t, OrtValue **)) \
    SLOT(10, OrtStatus *, CreateSessionOptions, (OrtSessionOptions **)) \
    GAP(11, 13) \
    SLOT(14, OrtStatus *, EnableProfiling, (OrtSessionOptions *, const ORTCHAR_T *)) \
    GAP(15, 21) \
    SLOT(22, OrtStatus *, SetSessionLogSeverityLevel, (OrtSessionOptions *, int)) \
    SLOT(23, OrtStatus *, SetSessionGraphOptimizationLevel, \
         (OrtSessionOptions *, GraphOptimizationLevel)) \
    SLOT(24, OrtStatus *, SetIntraOpNumThreads, (OrtSessionOptions *, int)) \
    GAP(25, 29) \
    SLOT(30, OrtStatus *, SessionGetInputCount, (const OrtSession *, size_t *)) \
    SLOT(31, OrtStatus *, SessionGetOutputCount, (const OrtSession *, size_t *)) \
    GAP(32, 32) \
    SLOT(33, OrtStatus *, SessionGetInputTypeInfo, (const OrtSession *, size_t, OrtTypeInfo **)) \
    GAP(34, 35) \
    SLOT(36, OrtStatus *, SessionGetInputName, \
         (const OrtSession *, size_t, OrtAllocator *, char **)) \
    SLOT(37, OrtStatus *, SessionGetOutputName, \
         (const OrtSession *, size_t, OrtAllocator *, char **)) \
    GAP(38, 47) \
    SLOT(48, OrtStatus *, CreateTensorAsOrtValue, \
         (OrtAllocator *, const int64_t *, size_t, ONNXTensorElementDataType, OrtValue **)) \
    SLOT(49, OrtStatus *, CreateTensorWithDataAsOrtValue, \
         (const OrtMemoryInfo *, void *, size_t, const int64_t *, size_t, \
          ONNXTensorElementDataType, OrtValue **)) \
    GAP(50, 50) \
    SLOT(51, OrtStatus *, GetTensorMutableData, (OrtValue *, void **)) \
    GAP(52, 54) \
    SLOT(55, OrtStatus *, CastTypeInfoToTensorInfo, \
         (const OrtTypeInfo *, const OrtTensorTypeAndShapeInfo **)) \
    GAP(56, 59) \
    SLOT(60, OrtStatus *, GetTensorElementType, \
         (const OrtTensorTypeAndShapeInfo *, ONNXTensorElementDataType *)) \
    SLOT(61, OrtStatus *, GetDimensionsCount, (const OrtTensorTypeAndShapeInfo *, size_t *)) \
    SLOT(62, OrtStatus *, GetDimensions, (const OrtTensorTypeAndShapeInfo *, int64_t *, size_t)) \
    GAP(63, 66) \
    SLOT(67, OrtStatus *, GetValueType, (const OrtValue *, ONNXType *)) \
    GAP(68, 68) \
    SLOT(69, OrtStatus *, CreateCpuMemoryInfo, (OrtAllocatorType, OrtMemType, OrtMemoryInfo **)) \
    GAP(70, 77) \
    SLOT(78, OrtStatus *, GetAllocatorWithDefaultOptions, (OrtAllocator **)) \
    GAP(79, 92) \
    SLOT(93, void, ReleaseStatus, (OrtStatus *)) \
    GAP(94, 94) \
    SLOT(95, void, ReleaseSession, (OrtSession *)) \
    SLOT(96, void, ReleaseValue, (OrtValue *)) \
    GAP(97, 97) \
    SLOT(98, void, ReleaseTypeInfo, (OrtTypeInfo *)) \
    GAP(99, 99) \
    SLOT(100, void, ReleaseSessionOptions, (OrtSessionOptions *)) \
    GAP(101, 123) \
    SLOT(124, OrtStatus *, AddFreeDimensionOverrideByName, \
         (OrtSessionOptions *, const char *, int64_t)) \
    SLOT(125, OrtStatus *, GetAvailableProviders, (char ***, int *)) \
    SLOT(126, OrtStatus *, ReleaseAvailableProviders, (char **, int)) \
    GAP(127, 129) \
    SLOT(130, OrtStatus *, AddSessionConfigEntry, \
         (OrtSessionOptions *, const char *, const char *)) \
    GAP(131, 215) \
    SLOT(216, OrtStatus *, SessionOptionsAppendExecutionProvider, \
         (OrtSessionOptions *, const char *, const char *const *, const char *const *, size_t)) \
    GAP(217, 293) \
    SLOT(294, const OrtCompileApi *, GetCompileApi, (void)) \
    SLOT(295, void, CreateKeyValuePairs, (OrtKeyValuePairs **)) \
    SLOT(296, void, AddKeyValuePair, (OrtKeyValuePairs *, const char *, const char *)) \
    SLOT(297, const char *, GetKeyValue, (const OrtKeyValuePairs *, const char *)) \
    SLOT(298, void, GetKeyValuePairs, \
         (const OrtKeyValuePairs *, const char *const **, const char *const **, size_t *)) \
    GAP(299, 299) \
    SLOT(300, void, ReleaseKeyValuePairs, (OrtKeyValuePairs *)) \
    SLOT(301, OrtStatus *, RegisterExecutionProviderLibrary, \
         (OrtEnv *, const char *, const ORTCHAR_T *)) \
    SLOT(302, OrtStatus *, UnregisterExecutionProviderLibrary, (OrtEnv *, const char *)) \
    SLOT(303, OrtStatus *, GetEpDevices, (const OrtEnv *, const OrtEpDevice *const **, size_t *)) \
    SLOT(304, OrtStatus *, SessionOptionsAppendExecutionProvider_V2, \
         (OrtSessionOptions *, OrtEnv *, const OrtEpDevice *const *, size_t, \
          const char *const *, const char *const *, size_t)) \
    SLOT(305, OrtStatus *, SessionOptionsSetEpSelectionPolicy, \
         (OrtSessionOptions *, OrtExecutionProviderDevicePolicy)) \
    GAP(306, 306) \
    SLOT(307, OrtHardwareDeviceType, HardwareDevice_Type, (const OrtHardwareDevice *)) \
    SLOT(308, uint32_t, HardwareDevice_VendorId, (const OrtHardwareDevice *)) \
    SLOT(309, const char *, HardwareDevice_Vendor, (const OrtHardwareDevice *)) \
    SLOT(310, uint32_t, HardwareDevice_DeviceId, (const OrtHardwareDevice *)) \
    SLOT(311, const OrtKeyValuePairs *, HardwareDevice_Metadata, (const OrtHardwareDevice *)) \
    SLOT(312, const char *, EpDevice_EpName, (const OrtEpDevice *)) \
    SLOT(313, const char *, EpDevice_EpVendor, (const OrtEpDevice *)) \
    SLOT(314, const OrtKeyValuePairs *, EpDevice_EpMetadata, (const OrtEpDevice *)) \
    SLOT(315, const OrtKeyValuePairs *, EpDevice_EpOptions, (const OrtEpDevice *)) \
    SLOT(316, const OrtHardwareDevice *, EpDevice_Device, (const OrtEpDevice *)) \
    GAP(317, 317) \
    SLOT(318, OrtStatus *, GetTensorSizeInBytes, (const OrtValue *, size_t *)) \
    GAP(319, 377) \
    SLOT(378, OrtStatus *, GetTensorData, (const OrtValue *, const void **)) \
    GAP(379, 387) \
    SLOT(388, OrtStatus *, GetModelCompatibilityForEpDevices, \
         (const OrtEpDevice *const *, size_t, const char *, OrtCompiledModelCompatibility *)) \
    GAP(389, 398) \
    SLOT(399, OrtStatus *, GetHardwareDeviceEpIncompatibilityDetails, \
         (const OrtEnv *, const char *, const OrtHardwareDevice *, \
          OrtDeviceEpIncompatibilityDetails **)) \
    SLOT(400, OrtStatus *, DeviceEpIncompatibilityDetails_GetReasonsBitmask, \
         (const OrtDeviceEpIncompatibilityDetails *, uint32_t *)) \
    SLOT(401, OrtStatus *, DeviceEpIncompatibilityDetails_GetNotes, \
         (const OrtDeviceEpIncompatibilityDetails *, const char **)) \
    SLOT(402, OrtStatus *, DeviceEpIncompatibilityDetails_GetErrorCode, \
         (const OrtDeviceEpIncompatibilityDetails *, int32_t *)) \
    SLOT(403, void, ReleaseDeviceEpIncompatibilityDetails, (OrtDeviceEpIncompatibilityDetails *)) \
    SLOT(404, OrtStatus *, GetCompatibilityInfoFromModel, \
         (const ORTCHAR_T *, const char *, OrtAllocator *, char **)) \
    GAP(405, 405) \
    SLOT(406, OrtStatus *, CreateEnvWithOptions, (const OrtEnvCreationOptions *, OrtEnv **)) \
    SLOT(407, OrtStatus *, Session_GetEpGraphAssignmentInfo, \
         (const OrtSession *, const OrtEpAssignedSubgraph *const **, size_t *)) \
    SLOT(408, OrtStatus *, EpAssignedSubgraph_GetEpName, \
         (const OrtEpAssignedSubgraph *, const char **)) \
    SLOT(409, OrtStatus *, EpAssignedSubgraph_GetNodes, \
         (const OrtEpAssignedSubgraph *, const OrtEpAssignedNode *const **, size_t *)) \
    GAP(410, 413) \
    SLOT(414, OrtStatus *, GetTensorElementTypeAndShapeDataReference, \
         (const OrtValue *, ONNXTensorElementDataType *, const int64_t **, size_t *))

/* The members of OrtEnvCreationOptions. */
#define ORT_ABI_ENV(MEMBER) \
    MEMBER(uint32_t, version) \
    MEMBER(int32_t, logging_severity_level) \
    MEMBER(const char *, log_id) \
    MEMBER(OrtLoggingFunction, custom_logging_function) \
    MEMBER(void *, custom_logging_param) \
    MEMBER(const OrtThreadingOptions *, threading_options) \
    MEMBER(const OrtKeyValuePairs *, config_entries)

/* NUMBER(type, name, value) */
#define ORT_ABI_NUMBERS(NUMBER) \
    NUMBER(OrtErrorCode, ORT_FAIL, 1) \
    NUMBER(OrtLoggingLevel, ORT_LOGGING_LEVEL_INFO, 1) \
    NUMBER(OrtLoggingLevel, ORT_LOGGING_LEVEL_WARNING, 2) \
    NUMBER(GraphOptimizationLevel, ORT_DISABLE_ALL, 0) \
    NUMBER(ONNXType, ONNX_TYPE_UNKNOWN, 0) \
    NUMBER(ONNXType, ONNX_TYPE_TENSOR, 1) \
    NUMBER(ONNXTensorElementDataType, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 1) \
    NUMBER(ONNXTensorElementDataType, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 2) \
    NUMBER(ONNXTensorElementDataType, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 3) \
    NUMBER(ONNXTensorElementDataType, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 6) \
    NUMBER(ONNXTensorElementDataType, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 7) \
    NUMBER(ONNXTensorElementDataType, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 9) \
    NUMBER(OrtAllocatorType, OrtArenaAllocator, 1) \
    NUMBER(OrtMemType, OrtMemTypeDefault, 0) \
    NUMBER(OrtHardwareDeviceType, OrtHardwareDeviceType_CPU, 0) \
    NUMBER(OrtHardwareDeviceType, OrtHardwareDeviceType_GPU, 1) \
    NUMBER(OrtHardwareDeviceType, OrtHardwareDeviceType_NPU, 2) \
    NUMBER(OrtExecutionProviderDevicePolicy, OrtExecutionProviderDevicePolicy_PREFER_NPU, 2) \
    NUMBER(OrtCompiledModelCompatibility, OrtCompiledModelCompatibility_EP_NOT_APPLICABLE, 0) \
    NUMBER(OrtCompileApiFlags, OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED, 1) \
    NUMBER(OrtDeviceEpIncompatibilityReason, OrtDeviceEpIncompatibility_DRIVER_INCOMPATIBLE, 1) \
    NUMBER(OrtDeviceEpIncompatibilityReason, OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE, 2) \
    NUMBER(OrtDeviceEpIncompatibilityReason, OrtDeviceEpIncompatibility_MISSING_DEPENDENCY, 4)

/* clang-format on */

#if !defined(ORT_API_VERSION) /* else the official headers are there, and only compared */

#define ORT_API_CALL
#define ORTCHAR_T char

/* What only ONNX Runtime sees from inside. */
typedef struct OrtDeviceEpIncompatibilityDetails OrtDeviceEpIncompatibilityDetails;
typedef struct OrtEnv OrtEnv;
typedef struct OrtEpAssignedNode OrtEpAssignedNode;
typedef struct OrtEpAssignedSubgraph OrtEpAssignedSubgraph;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtModelCompilationOptions OrtModelCompilationOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtStatus OrtStatus;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtThreadingOptions OrtThreadingOptions;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtValue OrtValue;

/* ONNX Runtime's enumerations all have the size of an int. */
typedef int GraphOptimizationLevel;
typedef int ONNXTensorElementDataType;
typedef int ONNXType;
typedef int OrtAllocatorType;
typedef int OrtCompiledModelCompatibility;
typedef int OrtErrorCode;
typedef int OrtExecutionProviderDevicePolicy;
typedef int OrtHardwareDeviceType;
typedef int OrtLoggingLevel;
typedef int OrtMemType;
#define ORT_ABI_NUMBER(type, name, value) name = value,
enum { ORT_ABI_NUMBERS(ORT_ABI_NUMBER) ORT_ABI_END_OF_NUMBERS = 0 };
#undef ORT_ABI_NUMBER

typedef struct OrtApi OrtApi;
typedef struct OrtApiBase OrtApiBase;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtCompileApi OrtCompileApi;
typedef struct OrtEnvCreationOptions OrtEnvCreationOptions;
typedef void (*OrtLoggingFunction)(void *, OrtLoggingLevel, const char *, const char *,
                                   const char *, const char *);
typedef OrtStatus *(*OrtWriteBufferFunc)(void *, const void *, size_t);

#define ORT_ABI_SLOT(place, result, name, parameters) result(*name) parameters;
/* clang-format off */
#define ORT_ABI_GAP(first, last) void (*others_from_##first[last + 1 - first])(void);
#define ORT_ABI_MEMBER(type, name) type name;
/* clang-format on */
struct OrtApiBase {
    ORT_ABI_BASE(ORT_ABI_SLOT, ORT_ABI_GAP)
};
struct OrtAllocator {
    ORT_ABI_ALLOCATOR(ORT_ABI_SLOT, ORT_ABI_GAP)
};
struct OrtCompileApi {
    ORT_ABI_COMPILE(ORT_ABI_SLOT, ORT_ABI_GAP)
};
struct OrtApi {
    ORT_ABI_API(ORT_ABI_SLOT, ORT_ABI_GAP)
};
struct OrtEnvCreationOptions {
    ORT_ABI_ENV(ORT_ABI_MEMBER)
};
#undef ORT_ABI_SLOT
#undef ORT_ABI_GAP
#undef ORT_ABI_MEMBER

#endif

#endif
