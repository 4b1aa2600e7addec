/* What the work on a model costs, beside the two things EP authors do today: libprotobuf's
 * generated classes (Debian's libonnx-dev), and cp with fsync for what cannot be less than a copy.
 *
 *     build/tests/bench_protobuf FOLDER        FOLDER has room for 4 GB; emptied afterwards
 *
 * Every measurement is the best of several, each in a process of its own. "memory" is anonymous
 * memory while the model is open. */
#define ONNX_ML        1
#define ONNX_NAMESPACE onnx
#define ONNX_API
#include "epctx.h"

#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <onnx/onnx-ml.pb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

namespace {

struct Cost {
    double seconds;
    double kib; /* RssAnon that came up */
};

std::string folder;
volatile uint64_t sink;

std::string in_folder(const std::string &name) {
    return folder + "/" + name;
}

double now() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double anonymous_kib() {
    double kib = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f != nullptr && fgets(line, sizeof line, f) != nullptr)
        if (sscanf(line, "RssAnon: %lf", &kib) == 1) break;
    if (f != nullptr) fclose(f);
    return kib;
}

[[noreturn]] void die(const char *what) {
    fprintf(stderr, "bench_protobuf: %s\n", what);
    exit(1);
}

void must(epctx_status status, const epctx_error &error) {
    if (status != EPCTX_OK) die(error.message);
}

/* `work` gets a function to call when its result stands in memory. */
typedef std::function<void(const std::function<void()> &)> Work;

Cost once(const Work &work) {
    int ends[2];
    Cost cost = {0, 0};
    int status = 0;
    if (pipe(ends) != 0) die("pipe");
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        double before = anonymous_kib(), start = now();
        Cost mine = {0, 0};
        work([&] {
            mine.seconds = now() - start;
            mine.kib = anonymous_kib() - before;
        });
        if (write(ends[1], &mine, sizeof mine) != (ssize_t)sizeof mine) _exit(2);
        _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], &cost, sizeof cost) != (ssize_t)sizeof cost) die("a measurement failed");
    close(ends[0]);
    if (waitpid(child, &status, 0) != child || status != 0) die("a measurement failed");
    return cost;
}

Cost best(const Work &work, int times = 5) {
    Cost least = {1e9, 0};
    for (int i = 0; i < times; i++) {
        Cost cost = once(work);
        if (cost.seconds < least.seconds) least = cost;
    }
    return least;
}

void row(const char *what, const char *peer, Cost ours, Cost theirs) {
    printf("%-52s %9.2f ms %9.2f ms  %8.2fx %-18s %8.0f KiB %8.0f KiB\n", what, ours.seconds * 1e3,
           theirs.seconds * 1e3, theirs.seconds / ours.seconds, peer, ours.kib, theirs.kib);
    fflush(stdout);
}

/* ------------------------------------------------------------------ models */

void save(const onnx::ModelProto &model, const std::string &path) {
    int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (fd < 0 || !model.SerializeToFileDescriptor(fd)) die("cannot write a model");
    close(fd);
}

void value(onnx::ValueInfoProto *info, const char *name) {
    info->set_name(name);
    info->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    info->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(1);
}

onnx::ModelProto empty_model() {
    onnx::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(13);
    onnx::OperatorSetIdProto *ms = model.add_opset_import();
    ms->set_domain("com.microsoft");
    ms->set_version(1);
    model.mutable_graph()->set_name("g");
    value(model.mutable_graph()->add_input(), "x");
    value(model.mutable_graph()->add_output(), "y");
    return model;
}

void attribute(onnx::NodeProto *node, const char *name, int64_t i, const std::string *s) {
    onnx::AttributeProto *attr = node->add_attribute();
    attr->set_name(name);
    attr->set_type(s != nullptr ? onnx::AttributeProto::STRING : onnx::AttributeProto::INT);
    if (s != nullptr)
        attr->set_s(*s);
    else
        attr->set_i(i);
}

/* One EPContext node with `size` bytes in it. */
std::string embedded(size_t size) {
    std::string path = in_folder("embedded_" + std::to_string(size) + ".onnx");
    onnx::ModelProto model = empty_model();
    onnx::NodeProto *node = model.mutable_graph()->add_node();
    std::string payload(size, '\0'), source("EpctxNpuExecutionProvider"), version("1");
    uint64_t state = 1;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(&payload[i], &state, 8);
    }
    node->set_name("ctx");
    node->set_op_type("EPContext");
    node->set_domain("com.microsoft");
    node->add_input("x");
    node->add_output("y");
    attribute(node, "main_context", 1, nullptr);
    attribute(node, "embed_mode", 1, nullptr);
    attribute(node, "ep_cache_context", 0, &payload);
    attribute(node, "source", 0, &source);
    attribute(node, "ep_sdk_version", 0, &version);
    save(model, path);
    return path;
}

/* A chain of nodes, one initializer for every fourth of them. */
std::string chain(int nodes) {
    std::string path = in_folder("chain_" + std::to_string(nodes) + ".onnx"), last = "x";
    onnx::ModelProto model = empty_model();
    onnx::GraphProto *graph = model.mutable_graph();
    for (int i = 0; i < nodes; i++) {
        std::string weight = "w" + std::to_string(i / 4);
        onnx::NodeProto *node = graph->add_node();
        if (i % 4 == 0) {
            onnx::TensorProto *tensor = graph->add_initializer();
            tensor->set_name(weight);
            tensor->set_data_type(onnx::TensorProto::FLOAT);
            tensor->add_dims(4);
            tensor->set_raw_data(std::string(16, 'w'));
        }
        node->set_name("node_" + std::to_string(i));
        node->set_op_type("Add");
        node->add_input(last);
        node->add_input(weight);
        last = i + 1 == nodes ? "y" : "v" + std::to_string(i);
        node->add_output(last);
        attribute(node, "axis", i, nullptr);
    }
    save(model, path);
    return path;
}

/* ------------------------------------------------------------------ the work */

void parse(const std::string &path, onnx::ModelProto *model) {
    int fd = open(path.c_str(), O_RDONLY);
    google::protobuf::io::FileInputStream stream(fd);
    if (fd < 0 || !model->ParseFromZeroCopyStream(&stream)) die("libprotobuf cannot read a model");
    close(fd);
}

Work open_ours(const std::string &path) {
    return [path](const std::function<void()> &done) {
        epctx_model model;
        epctx_error error;
        must(epctx_model_open_file(&model, path.c_str(), nullptr, &error), error);
        epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(&model));
        epctx_cursor tensors = epctx_view_graph_initializers(epctx_model_graph(&model));
        epctx_node_view node;
        epctx_tensor_view tensor;
        while (epctx_next_node(&nodes, &node)) {
            epctx_epnode ep;
            sink += node.name.size + node.input_count;
            if (!epctx_view_is_epnode(&node)) continue;
            must(epctx_view_read_epnode(&node, &ep, &error), error);
            sink += ep.ep_cache_context.size + ep.source.size;
        }
        while (epctx_next_tensor(&tensors, &tensor)) sink += tensor.name.size;
        done();
        epctx_model_close(&model);
    };
}

Work open_theirs(const std::string &path) {
    return [path](const std::function<void()> &done) {
        onnx::ModelProto model;
        parse(path, &model);
        for (const onnx::NodeProto &node : model.graph().node()) {
            sink += node.name().size() + (uint64_t)node.input_size();
            if (node.op_type() == "EPContext")
                for (const onnx::AttributeProto &attr : node.attribute()) sink += attr.s().size();
        }
        for (const onnx::TensorProto &tensor : model.graph().initializer())
            sink += tensor.name().size();
        done();
    };
}

/* Temporary file, fsync, rename: what epctx does, for the peers. */
void durable(const std::string &path, const std::function<bool(int)> &fill) {
    std::string temporary = path + ".tmp";
    int fd = open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (fd < 0 || !fill(fd) || fsync(fd) != 0 || close(fd) != 0 ||
        rename(temporary.c_str(), path.c_str()) != 0)
        die("cannot write a file");
}

Work set_ours(const std::string &path, const std::string &out) {
    return [path, out](const std::function<void()> &done) {
        epctx_model model;
        epctx_error error;
        epctx_attr attr;
        epctx_node_view node;
        must(epctx_model_open_file(&model, path.c_str(), nullptr, &error), error);
        epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(&model));
        if (!epctx_next_node(&nodes, &node)) die("no node");
        memset(&attr, 0, sizeof attr);
        attr.name = epctx_str_of("ep_sdk_version");
        attr.type = EPCTX_ATTR_STRING;
        attr.s = epctx_str_of("2.0");
        must(epctx_edit_set_attr(&model, node.view, &attr, &error), error);
        must(epctx_model_write_file(&model, out.c_str(), nullptr, &error), error);
        done();
        epctx_model_close(&model);
    };
}

Work set_theirs(const std::string &path, const std::string &out) {
    return [path, out](const std::function<void()> &done) {
        onnx::ModelProto model;
        parse(path, &model);
        model.mutable_graph()->mutable_node(0)->mutable_attribute(4)->set_s("2.0");
        durable(
            out, [&](int fd) { return model.SerializeToFileDescriptor(fd); });
        done();
    };
}

Work copy(const std::string &path, const std::string &out) {
    return [path, out](const std::function<void()> &done) {
        durable(
            out,
            [&](int fd) {
                std::vector<char> block((size_t)1 << 20);
                int from = open(path.c_str(), O_RDONLY);
                ssize_t got;
                while ((got = read(from, block.data(), block.size())) > 0)
                    if (write(fd, block.data(), (size_t)got) != got) return false;
                close(from);
                return got == 0;
            });
        done();
    };
}

typedef epctx_status (*convert_fn)(epctx_model *, const epctx_convert_opts *, epctx_changes *,
                                   epctx_error *);

Work convert(convert_fn function, const std::string &path, const std::string &out) {
    return [function, path, out](const std::function<void()> &done) {
        epctx_model model;
        epctx_error error;
        epctx_convert_opts opts;
        epctx_changes changes;
        memset(&opts, 0, sizeof opts);
        opts.output_path = out.c_str();
        must(epctx_model_open_file(&model, path.c_str(), nullptr, &error), error);
        must(function(&model, &opts, &changes, &error), error);
        for (size_t i = 0; i < changes.file_count; i++) remove(changes.files[i].path);
        must(epctx_model_write_group(&model, out.c_str(), nullptr, changes.files,
                                     changes.file_count, EPCTX_OVERWRITE_REPLACE, &error),
             error);
        done();
        epctx_model_close(&model);
    };
}

void reading() {
    static const size_t sizes[] = {(size_t)1 << 20, (size_t)256 << 20, (size_t)1 << 30};
    for (size_t size : sizes) {
        std::string path = embedded(size);
        char what[64];
        snprintf(what, sizeof what, "open, read the EPContext node, %zu MiB in it", size >> 20);
        row(what, "libprotobuf", best(open_ours(path)),
            best(open_theirs(path), size > (size_t)1 << 28 ? 2 : 5));
        if (size != (size_t)256 << 20) remove(path.c_str());
    }
    std::string path = chain(20000);
    row("open, index 20,000 nodes and 5,000 initializers", "libprotobuf", best(open_ours(path), 9),
        best(open_theirs(path), 9));
}

void writing() {
    std::string path = in_folder("embedded_268435456.onnx");
    std::string out = in_folder("out.onnx"), apart = in_folder("apart.onnx");
    Cost cp = best(copy(path, out));
    Cost set = best(set_ours(path, out));
    row("change an attribute, write 256 MiB durably", "libprotobuf", set,
        best(set_theirs(path, out)));
    row("the same", "cp + fsync", set, cp);
    row("extract 256 MiB durably", "cp + fsync", best(convert(epctx_edit_extract, path, apart)),
        cp);
    row("embed 256 MiB durably", "cp + fsync", best(convert(epctx_edit_embed, apart, out)), cp);
}

void growing() {
    for (int nodes = 1000; nodes <= 1000000; nodes *= 10) {
        std::string path = chain(nodes);
        Cost ours = best(open_ours(path), 3);
        printf("open, index %7d nodes %34.0f ns per node\n", nodes, ours.seconds * 1e9 / nodes);
        remove(path.c_str());
    }
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2 || (mkdir(argv[1], 0755) != 0 && access(argv[1], W_OK) != 0))
        die("give it a folder to work in");
    folder = argv[1];
    printf("%-52s %12s %12s  %9s %-18s %12s %12s\n", "", "epctx", "peer", "faster", "peer",
           "memory", "peer's");
    reading();
    writing();
    growing();
    for (const char *name :
         {"embedded_268435456.onnx", "out.onnx", "apart.onnx", "apart_npu.bin", "chain_20000.onnx"})
        remove(in_folder(name).c_str());
    return rmdir(argv[1]) != 0;
}
