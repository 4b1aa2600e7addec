/* qnn_api.c - the tool's own declarations of Qualcomm's interface beside the official ones, for
 * who has the QNN SDK: test_qnn_system.sh compiles it with QNN_SDK_INCLUDE. */
#include "../../examples/epctx/ort/qnn_api.h"

#include <stddef.h>
#include <QnnTypes.h>
#include <System/QnnSystemContext.h>
#include <System/QnnSystemInterface.h>

#define SAME(ours, theirs) _Static_assert((ours) == (theirs), #theirs)
#define PLACE(type, member, theirs, their_member) \
    SAME(offsetof(type, member), offsetof(theirs, their_member))

/* -- values -- */
SAME(QNN_MALFORMED_BINARY, QNN_SYSTEM_CONTEXT_ERROR_MALFORMED_BINARY);
SAME(QNN_HTP, QNN_BACKEND_ID_HTP);
SAME(QNN_INT_8, QNN_DATATYPE_INT_8);
SAME(QNN_INT_64, QNN_DATATYPE_INT_64);
SAME(QNN_UINT_32, QNN_DATATYPE_UINT_32);
SAME(QNN_FLOAT_16, QNN_DATATYPE_FLOAT_16);
SAME(QNN_FLOAT_64, QNN_DATATYPE_FLOAT_64);
SAME(QNN_SFIXED_8, QNN_DATATYPE_SFIXED_POINT_8);
SAME(QNN_UFIXED_32, QNN_DATATYPE_UFIXED_POINT_32);
SAME(QNN_BOOL_8, QNN_DATATYPE_BOOL_8);

/* -- structures -- */
SAME(sizeof(qnn_tensor), sizeof(Qnn_Tensor_t));
PLACE(qnn_tensor, v.name, Qnn_Tensor_t, v2.name);
PLACE(qnn_tensor, v.type, Qnn_Tensor_t, v2.dataType);
PLACE(qnn_tensor, v.rank, Qnn_Tensor_t, v2.rank);
PLACE(qnn_tensor, v.dims, Qnn_Tensor_t, v2.dimensions);
PLACE(qnn_tensor, v.dynamic, Qnn_Tensor_t, v2.isDynamicDimensions);
SAME(sizeof(qnn_graph), sizeof(QnnSystemContext_GraphInfo_t));
PLACE(qnn_graph, v.name, QnnSystemContext_GraphInfo_t, graphInfoV3.graphName);
PLACE(qnn_graph, v.inputs, QnnSystemContext_GraphInfo_t, graphInfoV3.graphInputs);
PLACE(qnn_graph, v.output_count, QnnSystemContext_GraphInfo_t, graphInfoV3.numGraphOutputs);
PLACE(qnn_graph, v.outputs, QnnSystemContext_GraphInfo_t, graphInfoV3.graphOutputs);
SAME(sizeof(qnn_binary), sizeof(QnnSystemContext_BinaryInfo_t));
PLACE(qnn_binary, v.v1.build, QnnSystemContext_BinaryInfo_t, contextBinaryInfoV1.buildId);
PLACE(qnn_binary, v.v1.blob_version, QnnSystemContext_BinaryInfo_t,
      contextBinaryInfoV1.contextBlobVersion);
PLACE(qnn_binary, v.v1.graphs, QnnSystemContext_BinaryInfo_t, contextBinaryInfoV1.graphs);
PLACE(qnn_binary, v.v1.graphs, QnnSystemContext_BinaryInfo_t, contextBinaryInfoV2.graphs);
PLACE(qnn_binary, v.v3.blob_version, QnnSystemContext_BinaryInfo_t,
      contextBinaryInfoV3.contextBlobVersion);
PLACE(qnn_binary, v.v3.graphs, QnnSystemContext_BinaryInfo_t, contextBinaryInfoV3.graphs);
PLACE(qnn_binary, v.v3.soc_model, QnnSystemContext_BinaryInfo_t, contextBinaryInfoV3.socModel);
PLACE(qnn_system, api, QnnSystemInterface_t, systemApiVersion);
PLACE(qnn_system, metadata_fn, QnnSystemInterface_t,
      QNN_SYSTEM_INTERFACE_VER_NAME.systemContextGetMetaData);
