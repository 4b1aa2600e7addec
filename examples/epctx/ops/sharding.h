/* sharding.h - views of device configurations: model.configuration and what nodes refer to. */
#ifndef EPCTX_OPS_SHARDING_H
#define EPCTX_OPS_SHARDING_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DeviceConfigurationProto: a set of devices that nodes can be distributed over. */
typedef struct epctx_device_config_view {
    epctx_view view;
    epctx_str name;
    int32_t num_devices;
} epctx_device_config_view;

/* NodeDeviceConfigurationProto: how a node is distributed over such a set. */
typedef struct epctx_node_config_view {
    epctx_view view;
    epctx_str configuration_id; /* name of an epctx_device_config_view */
    bool has_stage;
    int32_t pipeline_stage;
} epctx_node_config_view;

/* ShardingSpecProto: how an input or output of the node is sharded. */
typedef struct epctx_sharding_view {
    epctx_view view;
    epctx_str tensor_name;
} epctx_sharding_view;

/* IntIntListEntryProto: a number that stands for a group of devices. */
typedef struct epctx_device_group_view {
    epctx_view view;
    int64_t key;
} epctx_device_group_view;

/* ShardedDimProto: how one axis is sharded. */
typedef struct epctx_sharded_dim_view {
    epctx_view view;
    int64_t axis;
} epctx_sharded_dim_view;

/* SimpleShardedDimProto: a dimension in equal parts. */
typedef struct epctx_simple_sharding {
    epctx_dim dim;
    int64_t num_shards;
} epctx_simple_sharding;

/* model.configuration, for epctx_next_device_config. */
epctx_cursor epctx_model_device_configs(const epctx_model *model);
/* For epctx_next_str. */
epctx_cursor epctx_device_config_devices(const epctx_device_config_view *config);
/* For epctx_next_node_config. */
epctx_cursor epctx_node_configs(const epctx_node_view *node);
/* For epctx_next_sharding. */
epctx_cursor epctx_node_config_shardings(const epctx_node_config_view *config);
/* For epctx_next_int. */
epctx_cursor epctx_sharding_devices(const epctx_sharding_view *sharding);
/* For epctx_next_device_group. */
epctx_cursor epctx_sharding_groups(const epctx_sharding_view *sharding);
/* For epctx_next_sharded_dim. */
epctx_cursor epctx_sharding_dims(const epctx_sharding_view *sharding);
/* For epctx_next_int. */
epctx_cursor epctx_device_group_devices(const epctx_device_group_view *group);
/* For epctx_next_simple_sharding. */
epctx_cursor epctx_sharded_dim_parts(const epctx_sharded_dim_view *dim);
/* The next one of a cursor; false at the end. */
bool epctx_next_device_config(epctx_cursor *cursor, epctx_device_config_view *config);
bool epctx_next_node_config(epctx_cursor *cursor, epctx_node_config_view *config);
bool epctx_next_sharding(epctx_cursor *cursor, epctx_sharding_view *sharding);
bool epctx_next_device_group(epctx_cursor *cursor, epctx_device_group_view *group);
bool epctx_next_sharded_dim(epctx_cursor *cursor, epctx_sharded_dim_view *dim);
bool epctx_next_simple_sharding(epctx_cursor *cursor, epctx_simple_sharding *part);

#ifdef __cplusplus
}
#endif

#endif
