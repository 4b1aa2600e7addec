/* Sharding: views of device configurations, and what lint says about them. Without arguments, on
 * models made here; with --print FILE, everything that a model says about devices, for
 * tests/judge/devices.py. */
#include "build.h"
#include "examples/epctx/ops/lint.h"
#include "examples/epctx/ops/sharding.h"
#include "test.h"

/* -- printing -- */

static void put(epctx_str text) {
    printf("'%.*s'", (int)text.size, text.size > 0 ? text.data : "");
}

static void put_ints(epctx_cursor it) {
    const char *comma = "";
    int64_t value;
    putchar('[');
    for (; epctx_next_int(&it, &value); comma = ",") printf("%s%" PRId64, comma, value);
    putchar(']');
}

static void print_dim(const epctx_sharded_dim_view *dim) {
    epctx_cursor it = epctx_sharded_dim_parts(dim);
    epctx_simple_sharding part;
    printf("    axis %" PRId64 "\n", dim->axis);
    while (epctx_next_simple_sharding(&it, &part)) {
        printf("      ");
        if (part.dim.known)
            printf("%" PRId64, part.dim.value);
        else if (part.dim.param.data != NULL)
            put(part.dim.param);
        else
            putchar('?');
        printf(" in %" PRId64 "\n", part.num_shards);
    }
}

static void print_sharding(const epctx_sharding_view *sharding) {
    epctx_cursor groups = epctx_sharding_groups(sharding);
    epctx_cursor dims = epctx_sharding_dims(sharding);
    epctx_device_group_view group;
    epctx_sharded_dim_view dim;
    printf("  sharding ");
    put(sharding->tensor_name);
    printf(" devices ");
    put_ints(epctx_sharding_devices(sharding));
    putchar('\n');
    while (epctx_next_device_group(&groups, &group)) {
        printf("    group %" PRId64 " ", group.key);
        put_ints(epctx_device_group_devices(&group));
        putchar('\n');
    }
    while (epctx_next_sharded_dim(&dims, &dim)) print_dim(&dim);
}

static void print_model(const epctx_model *model) {
    epctx_cursor it = epctx_model_device_configs(model);
    epctx_device_config_view config;
    epctx_walk walk;
    epctx_node_view node;
    while (epctx_next_device_config(&it, &config)) {
        epctx_cursor names = epctx_device_config_devices(&config);
        epctx_str name;
        printf("configuration ");
        put(config.name);
        printf(" %" PRId32, config.num_devices);
        while (epctx_next_str(&names, &name)) {
            putchar(' ');
            put(name);
        }
        putchar('\n');
    }
    epctx_walk_begin(&walk, model);
    while (epctx_walk_next(&walk, &node)) {
        epctx_cursor configs = epctx_node_configs(&node);
        epctx_node_config_view on;
        while (epctx_next_node_config(&configs, &on)) {
            epctx_cursor shardings = epctx_node_config_shardings(&on);
            epctx_sharding_view sharding;
            printf("node ");
            put(node.name);
            printf(" in ");
            put(on.configuration_id);
            if (on.has_stage) printf(" stage %" PRId32, on.pipeline_stage);
            putchar('\n');
            while (epctx_next_sharding(&shardings, &sharding)) print_sharding(&sharding);
        }
    }
}

static int print_file(const char *path) {
    epctx_model model;
    epctx_error error;
    if (epctx_model_open_file(&model, path, NULL, &error) != EPCTX_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    print_model(&model);
    epctx_model_close(&model);
    return 0;
}

/* -- tests -- */

static bytes sharded_dim(void) {
    bytes dim = {0}, part = {0}, other = {0};
    put_int(&dim, 1, -1);
    put_int(&part, 1, 8);
    put_int(&part, 3, 2);
    put_child(&dim, 2, &part);
    put_int(&other, 1, 8);
    put_str(&other, 2, "N");
    put_child(&dim, 2, &other);
    return dim;
}

static bytes sharding_of(const char *tensor) {
    static const uint8_t packed[] = {0, 5};
    bytes sharding = {0}, group = {0}, dim = sharded_dim();
    put_str(&sharding, 1, tensor);
    put_int(&sharding, 2, 1); /* packed and not: both are read */
    put_data(&sharding, 2, packed, sizeof packed);
    put_int(&group, 1, 5);
    put_data(&group, 2, packed, sizeof packed);
    put_child(&sharding, 3, &group);
    put_child(&sharding, 4, &dim);
    return sharding;
}

static bytes sharded_model(void) {
    bytes graph = {0}, node = new_node("Relu", "", "r", "x", "y"), on = {0}, config = {0}, model;
    bytes sharding = sharding_of("y");
    put_str(&on, 1, "mesh");
    put_child(&on, 2, &sharding);
    put_int(&on, 3, 7);
    put_child(&node, 10, &on);
    put_child(&graph, 1, &node);
    add_value(&graph, GRAPH_INPUT, "x", 1, NULL);
    add_value(&graph, GRAPH_OUTPUT, "y", 1, NULL);
    model = new_model(&graph);
    put_str(&config, 1, "mesh");
    put_int(&config, 2, 2);
    put_str(&config, 3, "npu:0");
    put_str(&config, 3, "npu:1");
    put_child(&model, 26, &config);
    return model;
}

TEST(configurations_of_a_model) {
    bytes b = sharded_model();
    epctx_model model;
    epctx_device_config_view config;
    epctx_cursor it, names;
    epctx_str name;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    it = epctx_model_device_configs(&model);
    CHECK_TRUE(epctx_next_device_config(&it, &config));
    CHECK_TRUE(epctx_str_is(config.name, "mesh"));
    CHECK_INT(config.num_devices, 2);
    names = epctx_device_config_devices(&config);
    CHECK_TRUE(epctx_next_str(&names, &name) && epctx_str_is(name, "npu:0"));
    CHECK_TRUE(epctx_next_str(&names, &name) && epctx_str_is(name, "npu:1"));
    CHECK_TRUE(!epctx_next_str(&names, &name));
    CHECK_TRUE(!epctx_next_device_config(&it, &config));
    epctx_model_close(&model);
    bytes_free(&b);
}

TEST(configurations_of_a_node) {
    bytes b = sharded_model();
    epctx_model model;
    epctx_node_view node;
    epctx_node_config_view on;
    epctx_sharding_view sharding;
    epctx_device_group_view group;
    epctx_sharded_dim_view dim;
    epctx_simple_sharding part;
    epctx_cursor it, ints;
    int64_t value;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &node));
    it = epctx_node_configs(&node);
    CHECK_TRUE(epctx_next_node_config(&it, &on));
    CHECK_TRUE(epctx_str_is(on.configuration_id, "mesh") && on.has_stage);
    CHECK_INT(on.pipeline_stage, 7);
    it = epctx_node_config_shardings(&on);
    CHECK_TRUE(epctx_next_sharding(&it, &sharding) && epctx_str_is(sharding.tensor_name, "y"));
    ints = epctx_sharding_devices(&sharding);
    CHECK_TRUE(epctx_next_int(&ints, &value) && value == 1);
    CHECK_TRUE(epctx_next_int(&ints, &value) && value == 0);
    CHECK_TRUE(epctx_next_int(&ints, &value) && value == 5);
    CHECK_TRUE(!epctx_next_int(&ints, &value));
    it = epctx_sharding_groups(&sharding);
    CHECK_TRUE(epctx_next_device_group(&it, &group));
    CHECK_INT(group.key, 5);
    ints = epctx_device_group_devices(&group);
    CHECK_TRUE(epctx_next_int(&ints, &value) && value == 0);
    CHECK_TRUE(!epctx_next_device_group(&it, &group));
    it = epctx_sharding_dims(&sharding);
    CHECK_TRUE(epctx_next_sharded_dim(&it, &dim));
    CHECK_INT(dim.axis, -1);
    CHECK_TRUE(!epctx_next_sharded_dim(&it, &(epctx_sharded_dim_view){0}));
    it = epctx_sharded_dim_parts(&dim);
    CHECK_TRUE(epctx_next_simple_sharding(&it, &part));
    CHECK_TRUE(part.dim.known && part.dim.value == 8 && part.num_shards == 2);
    /* dim_value and dim_param are a oneof: the last one counts. */
    CHECK_TRUE(epctx_next_simple_sharding(&it, &part));
    CHECK_TRUE(!part.dim.known && epctx_str_is(part.dim.param, "N") && part.num_shards == 0);
    CHECK_TRUE(!epctx_next_simple_sharding(&it, &part));
    epctx_model_close(&model);
    bytes_free(&b);
}

static void count_doubled(void *user, const epctx_finding *finding) {
    *(size_t *)user += finding->rule == EPCTX_RULE_DOUBLED_FIELD;
}

TEST(several_devices_are_no_doubled_field) {
    bytes b = sharded_model();
    epctx_model model;
    size_t doubled = 0;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_lint(&model, NULL, count_doubled, &doubled, NULL, NULL), EPCTX_OK);
    CHECK_UINT(doubled, 0);
    epctx_model_close(&model);
    bytes_free(&b);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--print") == 0) return print_file(argv[2]);
    RUN(configurations_of_a_model);
    RUN(configurations_of_a_node);
    RUN(several_devices_are_no_doubled_field);
    return test_end();
}
