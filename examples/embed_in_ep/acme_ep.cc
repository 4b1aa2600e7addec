// acme_ep.cc - an execution provider in C++, in the manner of those inside ONNX Runtime's tree,
// that uses epctx.h for EPContext models. It has its own graph classes (host.h) and no model
// bytes, so it uses the parts that work without them: EPCTX_NO_WIRE, no nanopb.
//
// The device is a toy (it adds, doubles and negates one number), the EPContext work is complete:
// generation with and without a file of its own, several partitions in one binary,
// GetEpContextNodes, loading with contained paths and ORT's error codes. README.md explains it.
#ifndef EPCTX_NO_WIRE // may come from the compiler's command line, as for a whole program
#define EPCTX_NO_WIRE
#endif
#define EPCTX_STATIC
#define EPCTX_IMPLEMENTATION
#include "epctx.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "host.h"

namespace {

constexpr const char *kSource = "AcmeExecutionProvider";
constexpr const char *kShortName = "acme"; // [ep] in [model]_[ep].bin
constexpr const char *kSdkVersion = "3.1.0";

// ---------------------------------------------------------------------------------- small bridges

epctx_str View(const std::string &text) {
    return epctx_str{text.data(), text.size()};
}

host::Status ToStatus(epctx_status status, const epctx_error &error) {
    return {epctx_status_to_ort(status), error.message};
}

// No exception may pass through epctx.h. What throws in a callback, on bytes that are hostile, can
// only be the allocator.
template <class Body> epctx_status Guarded(epctx_error *error, Body body) {
    try {
        return body();
    } catch (const std::exception &exception) {
        return epctx_fail(error, EPCTX_ERR_NOMEM, "%s", exception.what());
    }
}

// ------------------------------------------------------------------------- nodes <-> epctx_epnode

bool IsContextNode(const host::Node &node) {
    return node.op_type == EPCTX_OP_TYPE && node.domain == EPCTX_DOMAIN;
}

// A node as epctx.h reads it. It borrows from `node`, a payload of gigabytes is not copied, and its
// attributes are in `attrs`.
epctx_node RecordOf(const host::Node &node, std::vector<epctx_attr> &attrs) {
    for (const auto &[name, value] : node.attributes) {
        epctx_attr attr{};
        attr.name = View(name);
        if (const auto *number = std::get_if<std::int64_t>(&value)) {
            attr.type = EPCTX_ATTR_INT;
            attr.i = *number;
        } else {
            attr.type = EPCTX_ATTR_STRING;
            attr.s = View(std::get<std::string>(value));
        }
        attrs.push_back(attr);
    }
    epctx_node record{};
    record.name = View(node.name);
    record.op_type = View(node.op_type);
    record.domain = View(node.domain);
    record.attrs = attrs.data();
    record.attr_count = attrs.size();
    return record;
}

// Name, inputs and outputs are the fused node's: ORT replaces one with the other.
std::unique_ptr<host::Node> MakeContextNode(const host::Node &fused, const epctx_epnode &content) {
    auto node = std::make_unique<host::Node>();
    node->name = fused.name;
    node->op_type = EPCTX_OP_TYPE;
    node->domain = EPCTX_DOMAIN;
    node->inputs = fused.inputs;
    node->outputs = fused.outputs;
    epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT];
    const std::size_t count = epctx_epnode_attrs(&content, attrs);
    for (std::size_t i = 0; i < count; i++) {
        const std::string name(attrs[i].name.data, attrs[i].name.size);
        if (attrs[i].type == EPCTX_ATTR_INT)
            node->attributes[name] = attrs[i].i;
        else
            node->attributes[name] = std::string(attrs[i].s.data, attrs[i].s.size);
    }
    return node;
}

// ----------------------------------------------------------------------------------------- device

// "Compiled" graphs by name. The context binary is text: "ACME3\n", then a line per graph.
using Program = std::vector<std::string>;

struct DeviceContext {
    std::map<std::string, Program> graphs;

    std::string Serialize() const {
        std::string out = "ACME3\n";
        for (const auto &[name, program] : graphs) {
            out += name;
            for (const auto &op : program) out += ' ' + op;
            out += '\n';
        }
        return out;
    }

    bool Deserialize(epctx_span binary) {
        std::istringstream in(
            std::string(reinterpret_cast<const char *>(binary.data), binary.size));
        std::string line;
        if (!std::getline(in, line) || line != "ACME3") return false;
        while (std::getline(in, line)) {
            std::istringstream words(line);
            std::string name, op;
            words >> name;
            while (words >> op) graphs[name].push_back(op);
        }
        return !graphs.empty();
    }
};

float Execute(const Program &program, float value) {
    for (const auto &op : program) {
        if (op == "AddOne") value += 1;
        if (op == "Double") value *= 2;
        if (op == "Neg") value = -value;
    }
    return value;
}

// What epctx_load_nodes asks of a device: context binaries become contexts, names become graphs.

epctx_status DeviceLoad(void *, const epctx_load_in *in, void **context, epctx_error *error) {
    return Guarded(
        error,
        [&] {
            auto loaded = std::make_unique<DeviceContext>();
            if (!loaded->Deserialize(in->binary))
                return epctx_fail(error, EPCTX_ERR_CONTEXT, "not a context of SDK %s", kSdkVersion);
            *context = loaded.release();
            return EPCTX_OK;
        });
}

void DeviceUnload(void *, void *context) {
    delete static_cast<DeviceContext *>(context);
}

epctx_status DeviceFind(void *, void *context, epctx_str name, std::uint64_t, void **graph,
                        epctx_error *error) {
    return Guarded(
        error,
        [&] {
            auto &graphs = static_cast<DeviceContext *>(context)->graphs;
            const auto found = graphs.find(std::string(name.data, name.size));
            if (found == graphs.end())
                return epctx_fail(error, EPCTX_ERR_CONTEXT, "the context has no graph '%S'", &name);
            *graph = &found->second;
            return EPCTX_OK;
        });
}

epctx_status DeviceInfo(void *, void *, epctx_graph_info *info, epctx_error *) {
    *info = epctx_graph_info{};
    return EPCTX_OK;
}

// An EP with its own compiler fills in only what loading needs.
epctx_backend LoadingBackend() {
    epctx_backend backend{};
    backend.version = EPCTX_BACKEND_VERSION;
    backend.source = kSource;
    backend.load_fn = DeviceLoad;
    backend.unload_fn = DeviceUnload;
    backend.find_fn = DeviceFind;
    backend.info_fn = DeviceInfo;
    return backend;
}

// --------------------------------------------------------------------------------------------- EP

class AcmeExecutionProvider {
  public:
    explicit AcmeExecutionProvider(host::SessionOptions options) : options_(std::move(options)) {
    }

    // One kernel per fused graph, by the fused node's name.
    host::Status Compile(const std::vector<host::FusedNodeAndGraph> &graphs);

    float Run(const std::string &fused_node, float input) const {
        return Execute(kernels_.at(fused_node), input);
    }

    // ORT calls this after Compile if ep.context_enable is 1. The EP owns the nodes.
    std::vector<const host::Node *> GetEpContextNodes() const {
        std::vector<const host::Node *> nodes;
        for (const auto &node : context_nodes_) nodes.push_back(node.get());
        return nodes;
    }

  private:
    host::Status Generate(const std::vector<host::FusedNodeAndGraph> &graphs);
    host::Status Load(const std::vector<host::FusedNodeAndGraph> &graphs);

    host::SessionOptions options_;
    std::map<std::string, Program> kernels_;
    std::vector<std::unique_ptr<host::Node>> context_nodes_;
};

host::Status AcmeExecutionProvider::Compile(const std::vector<host::FusedNodeAndGraph> &graphs) {
    bool compiled = false;
    for (const auto &graph : graphs) compiled |= IsContextNode(*graph.nodes.front());
    const bool generate = host::Get(options_, "ep.context_enable") == "1";
    if (compiled && generate) {
        epctx_error error{};
        return ToStatus(epctx_fail(&error, EPCTX_ERR_GRAPH, "the model is already compiled"),
                        error);
    }
    if (compiled) return Load(graphs);
    for (const auto &graph : graphs) {
        Program &program = kernels_[graph.fused->name];
        for (const auto *node : graph.nodes) program.push_back(node->op_type);
    }
    return generate ? Generate(graphs) : host::Status{};
}

// All partitions go into one context; the first node carries it, the others refer to it.
host::Status AcmeExecutionProvider::Generate(const std::vector<host::FusedNodeAndGraph> &graphs) {
    const bool embed = host::Get(options_, "ep.context_embed_mode") == "1";
    const std::string prefix = host::Get(options_, "ep.context_node_name_prefix");
    std::string model = host::Get(options_, "ep.context_file_path");
    char binary_name[EPCTX_PATH_MAX] = "";
    epctx_error error;

    DeviceContext context;
    for (const auto &graph : graphs)
        context.graphs[prefix + graph.fused->name] = kernels_[graph.fused->name];
    const std::string bytes = context.Serialize();

    if (!embed) {
        char path[EPCTX_PATH_MAX];
        if (model.empty()) {
            const epctx_status status = epctx_path_context_model(View(graphs.front().model_path),
                                                                 path, sizeof path, &error);
            if (status != EPCTX_OK) return ToStatus(status, error);
            model = path;
        }
        epctx_status status = epctx_path_binary(View(model), epctx_str_of(kShortName), binary_name,
                                                sizeof binary_name, &error);
        if (status != EPCTX_OK) return ToStatus(status, error);
        const epctx_str folder = epctx_path_folder(View(model));
        const std::string target = std::string(folder.data, folder.size) + binary_name;
        epctx_write_opts opts{};
        opts.derived = true; // derived name: never through a link
        status =
            epctx_write_bytes(nullptr, target.c_str(), bytes.data(), bytes.size(), &opts, &error);
        if (status != EPCTX_OK) return ToStatus(status, error);
    }

    for (const auto &graph : graphs) {
        const bool first = context_nodes_.empty();
        const std::string partition = prefix + graph.fused->name;
        epctx_epnode node = epctx_epnode_default();
        node.main_context = first ? 1 : 0;
        node.embed_mode = embed ? 1 : 0;
        node.source = epctx_str_of(kSource);
        node.partition_name = View(partition);
        node.ep_sdk_version = epctx_str_of(kSdkVersion);
        node.present =
            1u << EPCTX_EPNODE_MAIN_CONTEXT | 1u << EPCTX_EPNODE_EMBED_MODE; // also their defaults
        if (first) node.ep_cache_context = embed ? View(bytes) : epctx_str_of(binary_name);
        context_nodes_.push_back(MakeContextNode(*graph.fused, node));
    }
    return {};
}

// Primary and secondary nodes in any order, payloads inside or in files beside the context model
// (or beside ep.context_file_path, for a model from memory); a name that leaves that folder is
// refused.
host::Status AcmeExecutionProvider::Load(const std::vector<host::FusedNodeAndGraph> &graphs) {
    const epctx_backend backend = LoadingBackend();
    const std::string option = host::Get(options_, "ep.context_file_path");
    std::vector<std::vector<epctx_attr>> attrs(graphs.size());
    std::vector<epctx_node> nodes;
    for (std::size_t i = 0; i < graphs.size(); i++)
        nodes.push_back(RecordOf(*graphs[i].nodes.front(), attrs[i]));
    epctx_load_opts opts{};
    opts.model_path = graphs.front().model_path.c_str();
    opts.context_file_path = option.c_str();
    epctx_loaded loaded;
    epctx_error error{};
    const epctx_status status =
        epctx_load_nodes(&loaded, nodes.data(), nodes.size(), &backend, &opts, &error);
    if (status != EPCTX_OK) return ToStatus(status, error);
    for (std::size_t i = 0; i < loaded.bound_count; i++) {
        const epctx_bound &bound = loaded.bound[i];
        kernels_[graphs[bound.index].fused->name] = *static_cast<const Program *>(bound.graph);
    }
    epctx_unload(&loaded); // this device keeps nothing of the context
    return {};
}

// Is this node for us? GetCapability claims exactly the EPContext nodes for which it is.
bool IsOurs(const host::Node &node) {
    const auto source = node.attributes.find("source");
    if (!IsContextNode(node) || source == node.attributes.end()) return false;
    const auto *text = std::get_if<std::string>(&source->second);
    return text && *text == kSource;
}

// ------------------------------------------------------------------------------------- try it out

int failures;

void Check(const char *name, bool good, const std::string &found) {
    if (good) {
        std::printf("ok embed_in_ep %s\n", name);
    } else {
        std::printf("FAIL embed_in_ep %s: found %s\n", name, found.c_str());
        failures++;
    }
}

// A model of two partitions, one after the other, as ORT hands them to Compile.
struct Model {
    std::vector<host::Node> ops{{"n1", "AddOne", "", {"x"}, {"a"}, {}},
                                {"n2", "Double", "", {"a"}, {"b"}, {}},
                                {"n3", "Neg", "", {"c"}, {"y"}, {}}};
    host::Node fused1{"Acme_17_0", "Acme_17_0", kSource, {"x"}, {"b"}, {}};
    host::Node fused2{"Acme_17_1", "Acme_17_1", kSource, {"c"}, {"y"}, {}};
    std::vector<host::FusedNodeAndGraph> graphs;

    explicit Model(const std::string &path)
        : graphs{{&fused1, {&ops[0], &ops[1]}, path}, {&fused2, {&ops[2]}, path}} {
    }
};

// The EPContext nodes as a session meets them in the context model: fused again, under new names.
struct ContextModel {
    std::vector<host::Node> nodes, fused;
    std::vector<host::FusedNodeAndGraph> graphs;

    ContextModel(const std::vector<const host::Node *> &from, const std::string &path) {
        for (const auto *node : from) {
            nodes.push_back(*node);
            fused.push_back(*node);
            fused.back().name = "Acme_99_" + std::to_string(fused.size());
        }
        for (std::size_t i = 0; i < nodes.size(); i++)
            graphs.push_back({&fused[i], {&nodes[i]}, path});
    }
};

void RoundTrip(const std::string &folder, bool embed) {
    const std::string how = embed ? "embedded" : "external";
    AcmeExecutionProvider generator({{"ep.context_enable", "1"},
                                     {"ep.context_embed_mode", embed ? "1" : "0"},
                                     {"ep.context_node_name_prefix", "p_"}});
    Model model(folder + "net.onnx");
    host::Status status = generator.Compile(model.graphs);
    Check((how + " generated").c_str(), status.ok(), status.message);
    const bool file = std::filesystem::exists(folder + "net_acme.bin");
    Check((how + " binary in a file").c_str(), file == !embed, file ? "a file" : "no file");

    const auto made = generator.GetEpContextNodes();
    Check((how + " nodes").c_str(),
          made.size() == 2 && made[0]->name == "Acme_17_0" && IsOurs(*made[0]) &&
              std::get<std::int64_t>(made[0]->attributes.at("main_context")) == 1 &&
              std::get<std::int64_t>(made[1]->attributes.at("main_context")) == 0 &&
              !made[1]->attributes.count("ep_cache_context") &&
              std::get<std::string>(made[1]->attributes.at("partition_name")) == "p_Acme_17_1",
          std::to_string(made.size()) + " nodes");

    ContextModel saved(made, folder + "net_ctx.onnx");
    std::swap(saved.nodes[0], saved.nodes[1]); // the secondary first
    AcmeExecutionProvider session({});
    status = session.Compile(saved.graphs);
    Check((how + " loaded").c_str(), status.ok(), status.message);
    if (status.ok()) {
        const float b = session.Run("Acme_99_2", 3), y = session.Run("Acme_99_1", 5);
        Check((how + " runs").c_str(), b > 7.5f && b < 8.5f && y < -4.5f && y > -5.5f,
              std::to_string(b) + " and " + std::to_string(y));
    }

    status = generator.Compile(saved.graphs);
    Check((how + " compiled input refused").c_str(), status.code == 10, status.message);
}

void Refuses(const std::string &folder, const std::string &path, const char *why) {
    host::Node node{"c", EPCTX_OP_TYPE, EPCTX_DOMAIN, {"x"}, {"y"}, {}};
    node.attributes = {{"source", std::string(kSource)},
                       {"embed_mode", std::int64_t{0}},
                       {"ep_cache_context", path}};
    ContextModel model({&node}, folder + "net_ctx.onnx");
    AcmeExecutionProvider session({});
    const host::Status status = session.Compile(model.graphs);
    Check(why,
          status.code == 10 && status.message.find("ep_cache_context") != std::string::npos &&
              status.message.find("'c'") != std::string::npos,
          std::to_string(status.code) + ": " + status.message);
}

} // namespace

int main() {
    namespace fs = std::filesystem;
    const fs::path path =
        fs::temp_directory_path() / ("embed_in_ep_" + std::to_string(std::random_device()()));
    fs::create_directories(path);
    const std::string folder = path.string() + "/";
    RoundTrip(folder, true);
    RoundTrip(folder, false);
    Refuses(folder, "../net_acme.bin", "path that leaves the folder");
    Refuses(folder, "/etc/passwd", "absolute path");
    Refuses(folder, "missing.bin", "missing file");
    std::ofstream(folder + "later.bin") << "ACME4\nc AddOne\n";
    Refuses(folder, "later.bin", "context of another SDK");
    Refuses(folder, std::string("net_acme.bin\0.png", 17), "name with a zero byte");
    fs::remove_all(path);
    return failures ? 1 : 0;
}
