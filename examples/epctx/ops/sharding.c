/* sharding.c - views of device configurations. */
#include "sharding.h"

epctx_cursor epctx_model_device_configs(const epctx_model *model) {
    return epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_CONFIGURATION);
}

epctx_cursor epctx_device_config_devices(const epctx_device_config_view *config) {
    return epctx_view_fields(config->view, EPCTX_FIELD_DEVICE_CONFIG_DEVICE);
}

epctx_cursor epctx_node_configs(const epctx_node_view *node) {
    return epctx_view_fields(node->view, EPCTX_FIELD_NODE_DEVICE_CONFIGURATIONS);
}

epctx_cursor epctx_node_config_shardings(const epctx_node_config_view *config) {
    return epctx_view_fields(config->view, EPCTX_FIELD_NODE_CONFIG_SHARDING_SPEC);
}

epctx_cursor epctx_sharding_devices(const epctx_sharding_view *sharding) {
    return epctx_view_fields(sharding->view, EPCTX_FIELD_SHARDING_DEVICE);
}

epctx_cursor epctx_sharding_groups(const epctx_sharding_view *sharding) {
    return epctx_view_fields(sharding->view, EPCTX_FIELD_SHARDING_INDEX_TO_DEVICE_GROUP_MAP);
}

epctx_cursor epctx_sharding_dims(const epctx_sharding_view *sharding) {
    return epctx_view_fields(sharding->view, EPCTX_FIELD_SHARDING_SHARDED_DIM);
}

epctx_cursor epctx_device_group_devices(const epctx_device_group_view *group) {
    return epctx_view_fields(group->view, EPCTX_FIELD_DEVICE_GROUP_VALUE);
}

epctx_cursor epctx_sharded_dim_parts(const epctx_sharded_dim_view *dim) {
    return epctx_view_fields(dim->view, EPCTX_FIELD_SHARDED_DIM_SIMPLE_SHARDING);
}

/* The last string in a field, as libprotobuf reads it. */
static epctx_str sharding_str(epctx_view message, uint32_t number) {
    epctx_cursor it = epctx_view_fields(message, number);
    epctx_str text = epctx_str_of(NULL);
    while (epctx_next_str(&it, &text)) {
    }
    return text;
}

/* The same for a number; false when it is not stored. */
static bool sharding_int(epctx_view message, uint32_t number, int64_t *value) {
    epctx_cursor it = epctx_view_fields(message, number);
    epctx_field field;
    bool found = false;
    *value = 0;
    while (epctx_next_field(&it, &field)) {
        if (field.wire == EPCTX_WIRE_VARINT) {
            *value = (int64_t)field.value;
            found = true;
        }
    }
    return found;
}

bool epctx_next_device_config(epctx_cursor *cursor, epctx_device_config_view *config) {
    int64_t devices;
    if (!epctx_next_view(cursor, &config->view)) return false;
    config->name = sharding_str(config->view, EPCTX_FIELD_DEVICE_CONFIG_NAME);
    (void)sharding_int(config->view, EPCTX_FIELD_DEVICE_CONFIG_NUM_DEVICES, &devices);
    config->num_devices = (int32_t)(uint32_t)devices;
    return true;
}

bool epctx_next_node_config(epctx_cursor *cursor, epctx_node_config_view *config) {
    int64_t stage;
    if (!epctx_next_view(cursor, &config->view)) return false;
    config->configuration_id = sharding_str(config->view, EPCTX_FIELD_NODE_CONFIG_CONFIGURATION_ID);
    config->has_stage = sharding_int(config->view, EPCTX_FIELD_NODE_CONFIG_PIPELINE_STAGE, &stage);
    config->pipeline_stage = (int32_t)(uint32_t)stage;
    return true;
}

bool epctx_next_sharding(epctx_cursor *cursor, epctx_sharding_view *sharding) {
    if (!epctx_next_view(cursor, &sharding->view)) return false;
    sharding->tensor_name = sharding_str(sharding->view, EPCTX_FIELD_SHARDING_TENSOR_NAME);
    return true;
}

bool epctx_next_device_group(epctx_cursor *cursor, epctx_device_group_view *group) {
    if (!epctx_next_view(cursor, &group->view)) return false;
    (void)sharding_int(group->view, EPCTX_FIELD_DEVICE_GROUP_KEY, &group->key);
    return true;
}

bool epctx_next_sharded_dim(epctx_cursor *cursor, epctx_sharded_dim_view *dim) {
    if (!epctx_next_view(cursor, &dim->view)) return false;
    (void)sharding_int(dim->view, EPCTX_FIELD_SHARDED_DIM_AXIS, &dim->axis);
    return true;
}

/* Its dim_value and dim_param have the numbers that they have in TensorShapeProto. */
bool epctx_next_simple_sharding(epctx_cursor *cursor, epctx_simple_sharding *part) {
    epctx_view body;
    if (!epctx_next_view(cursor, &body)) return false;
    part->dim = epctx_view_as_dim(body);
    (void)sharding_int(body, EPCTX_FIELD_SIMPLE_SHARDING_NUM_SHARDS, &part->num_shards);
    return true;
}
