// vector_ep.cc - a plugin EP in C++17 with ORT's wrapper types and epctx.h: it claims nodes,
// compiles them, gives EPContext nodes, loads them from files and from memory, and shares contexts
// between sessions. Everything of EPContext is a call of epctx.h or of epctx_ort.hpp; the rest is
// what any plugin EP has. The device is in vector_device.cc.
#include <algorithm>
#include <memory>

#include "epctx_ort.hpp"
#include "vector_device.hpp"

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace {

// What outlives a session. ORT's pointer is ours: each class derives from ORT's structure.
struct Factory : OrtEpFactory {
    Factory();
    ~Factory() {
        epctx_workspace_close(workspace);
    }
    epctx_backend backend = vector::Backend();
    epctx_workspace *workspace = nullptr; // what sharing sessions have in common
    char compatibility[256];              // by which ORT tells whether a compiled model can run
};

struct Kernel;
using Kernels = std::vector<std::unique_ptr<Kernel>>; // in the order of the fused nodes
using Records = std::deque<epctx::Record>;

// One per session.
struct Ep : ort131_ep {
    Ep(Factory &factory, Ort::ConstSessionOptions options, const OrtLogger *logger);
    ~Ep();
    bool On(epctx_option option) const {
        return options.On(option);
    }
    void Claim(const OrtGraph *graph, OrtEpGraphSupportInfo *info);
    void Compile(const OrtGraph **graphs, const OrtNode **fused, size_t count,
                 OrtNodeComputeInfo **infos, OrtNode **context_nodes);
    void Written();

  private:
    void ClaimGroup(const std::vector<const OrtNode *> &nodes, bool drop_weights,
                    OrtEpGraphSupportInfo *info);
    const char *ModelPath(const epctx::Record &record) const;
    std::string ContextPath(const epctx::Record &record) const;
    void CompileAlone(const Records &records, const OrtNode **fused, const Kernels &kernels,
                      OrtNode **context_nodes);
    void CompileShared(const Records &records, const OrtNode **fused, OrtNode **context_nodes);
    void Load(const Records &records, const OrtNode **fused, const Kernels &kernels);

    Factory &factory;
    epctx_backend backend; // the factory's, as the session's options want it
    const OrtLogger *logger;
    epctx::Options options;
    epctx::Buffers buffers; // the application's
    std::string joined;     // the context model of this session in a group, until it is written
};

// -------------------------------------------------------------------------------------- kernels

// Contexts, and the nodes they came from, live as long as a kernel uses them.
struct Context {
    std::unique_ptr<epctx::ContextNodes> nodes;
    epctx::Arena arena;
    epctx_ep made{}; // compiled in this session
    epctx::Loaded loaded;
    const epctx_backend *backend = nullptr;
    Context() = default;
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;
    ~Context() {
        epctx_ep_end(&made);
    }
};

struct Kernel : OrtNodeComputeInfo {
    Kernel();
    // `inputs`, `outputs`: names of values in the order of the context's graph.
    void Bind(std::shared_ptr<const Context> from, const epctx_bound &bound, const OrtNode *fused,
              const std::vector<std::string> &inputs, const std::vector<std::string> &outputs);
    void Run(Ort::KernelContext context) const;

  private:
    std::shared_ptr<const Context> context;
    void *graph = nullptr; // NULL: the session only compiles
    epctx_graph_info info{};
    std::vector<size_t> in, out; // places in ORT's order
};

Kernel::Kernel() : OrtNodeComputeInfo{} {
    ort_version_supported = ORT_API_VERSION;
    CreateState = [](OrtNodeComputeInfo *self, OrtNodeComputeContext *, void **state) noexcept {
        *state = self; // ORT wants one; everything was prepared in Compile
        return static_cast<OrtStatus *>(nullptr);
    };
    Compute = [](OrtNodeComputeInfo *self, void *, OrtKernelContext *ort) noexcept {
        return epctx::Guard([&] { static_cast<Kernel *>(self)->Run(Ort::KernelContext(ort)); });
    };
    ReleaseState = [](OrtNodeComputeInfo *, void *) noexcept {};
}

constexpr size_t pruned = SIZE_MAX; // ORT removed an output whose readers it folded away

// By value name: the fused node of a model that was loaded again may have another order.
std::vector<size_t> Places(const std::vector<std::string> &wanted, const OrtNode *fused,
                           bool outputs, const epctx_bound &bound) {
    const size_t count = outputs ? bound.info.output_count : bound.info.input_count;
    if (wanted.size() != count) {
        epctx::Fail(EPCTX_ERR_CONTEXT,
                    "node '%S': attribute 'partition_name': graph '%S' of the context has %u %s%s, "
                    "the node has %u",
                    &bound.node.name, &bound.info.name, std::uint64_t{count},
                    outputs ? "output" : "input", count == 1 ? "" : "s",
                    std::uint64_t{wanted.size()});
    }
    const std::vector<std::string> names = epctx::Names(fused, outputs);
    std::vector<size_t> places;
    for (const std::string &name : wanted) {
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end() && !outputs)
            epctx::Fail(EPCTX_ERR_CONTEXT, "input '%s' is not at the fused node", name.c_str());
        places.push_back(found == names.end() ? pruned
                                              : static_cast<size_t>(found - names.begin()));
    }
    return places;
}

void Kernel::Bind(std::shared_ptr<const Context> from, const epctx_bound &bound,
                  const OrtNode *fused, const std::vector<std::string> &inputs,
                  const std::vector<std::string> &outputs) {
    context = std::move(from);
    graph = bound.graph;
    info = bound.info;
    in = Places(inputs, fused, false, bound);
    out = Places(outputs, fused, true, bound);
}

// "float32[1,3]"
std::string Described(std::int32_t type, const std::vector<std::int64_t> &dims) {
    std::string text = epctx_elem_name(type) + std::string("[");
    for (size_t i = 0; i < dims.size(); i++) text += (i ? "," : "") + std::to_string(dims[i]);
    return text + "]";
}

void Kernel::Run(Ort::KernelContext ort) const {
    if (!graph) {
        epctx::Fail(EPCTX_ERR_UNSUPPORTED,
                    "this session only compiles: load the context model to run it");
    }
    std::vector<epctx_span> inputs(in.size());
    for (size_t i = 0; i < in.size(); i++) {
        const epctx_value &want = info.inputs[i];
        const Ort::ConstValue value = ort.GetInput(in[i]);
        const auto type = value.GetTensorTypeAndShapeInfo();
        const std::string expected = Described(want.elem_type, {want.dims, want.dims + want.rank});
        const std::string found =
            Described(static_cast<std::int32_t>(type.GetElementType()), type.GetShape());
        if (found != expected) {
            epctx::Fail(EPCTX_ERR_ARG, "input '%S' of graph '%S': expected %s, found %s",
                        &want.name, &info.name, expected.c_str(), found.c_str());
        }
        inputs[i].data = static_cast<const std::uint8_t *>(value.GetTensorRawData());
        inputs[i].size = value.GetTensorSizeInBytes();
    }
    std::vector<epctx_memory> outputs(out.size());
    std::vector<std::vector<float>> unread; // the device computes floats alone
    for (size_t i = 0; i < out.size(); i++) {
        const epctx_value &have = info.outputs[i];
        if (out[i] == pruned) {
            size_t count = 1;
            for (std::int32_t d = 0; d < have.rank; d++) count *= static_cast<size_t>(have.dims[d]);
            unread.emplace_back(count);
            outputs[i].data = unread.back().data();
            outputs[i].size = count * sizeof(float);
            continue;
        }
        auto value = ort.GetOutput(out[i], have.dims, static_cast<size_t>(have.rank));
        outputs[i].data = value.GetTensorMutableRawData();
        outputs[i].size = value.GetTensorSizeInBytes();
    }
    std::vector<std::uint8_t> scratch(info.scratch_size + 64);
    std::uint8_t *aligned = scratch.data();
    aligned += (64 - reinterpret_cast<std::uintptr_t>(aligned) % 64) % 64;
    epctx::Try([&](epctx_error *error) {
        const epctx_backend &device = *context->backend;
        return device.run_fn(device.self, graph, inputs.data(), outputs.data(), aligned,
                             info.scratch_size, error);
    });
}

// ------------------------------------------------------------------------------------- claiming

void Ep::ClaimGroup(const std::vector<const OrtNode *> &nodes, bool drop_weights,
                    OrtEpGraphSupportInfo *info) {
    OrtNodeFusionOptions fusion{};
    fusion.ort_version_supported = ORT_API_VERSION;
    fusion.drop_constant_initializers = drop_weights;
    Ort::ThrowOnError(Ort::GetEpApi().EpGraphSupportInfo_AddNodesToFuse(info, nodes.data(),
                                                                        nodes.size(), &fusion));
}

void Ep::Claim(const OrtGraph *graph, OrtEpGraphSupportInfo *info) {
    // The bodies of control flow stay on the CPU: ORT cannot write EPContext nodes into them.
    if (Ort::ConstGraph(graph).GetParentNode()) return;
    const epctx::Record record(graph);
    const epctx_graph &model = record.Graph();
    bool compiled = false;
    for (size_t i = 0; i < model.node_count; i++) {
        const epctx_node &node = model.nodes[i];
        if (!epctx_ort_is_context_node(&node)) continue;
        compiled = true;
        if (epctx::IsMine(record.Node(i), factory.backend.source))
            ClaimGroup({record.Node(i)}, false, info);
    }
    if (compiled) return; // what was not compiled then was not for us

    std::vector<std::uint8_t> take(model.node_count + 1);
    epctx::Try([&](epctx_error *error) {
        return factory.backend.capability_fn(factory.backend.self, &model, take.data(), error);
    });
    for (size_t i = 0; i < model.node_count; i++) {
        const std::string other = record.Node(i).GetEpName();
        if (!other.empty() && other != vector::kName) take[i] = 0; // another EP has it already
        if (epctx_ort_hides(&model.nodes[i])) take[i] = 0;
    }
    epctx::Arena arena;
    epctx_partition *groups = nullptr;
    size_t count = 0;
    epctx::Try([&](epctx_error *error) {
        return epctx_backend_partition(&backend, &model, take.data(), arena.get(), &groups, &count,
                                       error);
    });
    for (size_t i = 0; i < count; i++) {
        std::vector<const OrtNode *> nodes;
        for (size_t k = 0; k < groups[i].claim_count; k++)
            nodes.push_back(record.Node(groups[i].claims[k]));
        ClaimGroup(nodes, !factory.backend.weight_inputs, info); // or the binary has the weights
    }
}

// ------------------------------------------------------------------------------------ compiling

// "" when the model came from memory, and when ORT does not tell where it is.
const char *Ep::ModelPath(const epctx::Record &record) const {
    const char *folder = options.Text(EPCTX_OPTION_EXTERNAL_INITIALIZERS_FOLDER);
    return epctx_ort_path_is_hidden(record.ModelPath(), folder) ? "" : record.ModelPath();
}

// Where ORT will write the context model; the binary goes beside it.
std::string Ep::ContextPath(const epctx::Record &record) const {
    const char *given = options.Text(EPCTX_OPTION_CONTEXT_FILE_PATH);
    if (*given) return given;
    if (!*ModelPath(record)) {
        epctx::Fail(EPCTX_ERR_ARG, "the context binary needs a folder, and ONNX Runtime tells none "
                                   "of a model from memory or with a folder for initializers: set "
                                   "ep.context_file_path, or ep.context_embed_mode=1");
    }
    char path[EPCTX_PATH_MAX];
    epctx::Try([&](epctx_error *error) {
        return epctx_path_context_model(epctx_str_of(ModelPath(record)), path, sizeof path, error);
    });
    return path;
}

std::vector<std::string> ValueNames(const epctx_value *values, size_t count) {
    std::vector<std::string> names;
    for (size_t i = 0; i < count; i++) names.push_back(epctx::Text(values[i].name));
    return names;
}

// All graphs into one context. It is made with the contexts inside the nodes, from which it is
// loaded again at once: a context that does not load is never written.
void Ep::CompileAlone(const Records &records, const OrtNode **fused, const Kernels &kernels,
                      OrtNode **context_nodes) {
    const bool generate = On(EPCTX_OPTION_CONTEXT_ENABLE);
    const bool file = generate && !On(EPCTX_OPTION_CONTEXT_EMBED_MODE);
    // ORT would write the context model into the folder for initializers.
    const bool misplaced = generate && !On(EPCTX_OPTION_COMPILE_ONLY) && *records[0].ModelPath() &&
                           !*ModelPath(records[0]);
    char name[EPCTX_PATH_MAX] = "", path[EPCTX_PATH_MAX] = "";
    // The application has a place of its own for the binary, so that a name will do.
    const bool anywhere = buffers.Writes() && !misplaced && !*ModelPath(records[0]) &&
                          !*options.Text(EPCTX_OPTION_CONTEXT_FILE_PATH);
    const std::string model = file && anywhere    ? "model_ctx.onnx"
                              : file || misplaced ? ContextPath(records[0])
                                                  : std::string();
    if (file) {
        epctx::Try([&](epctx_error *error) {
            return epctx_path_binary(epctx::View(model), epctx_str_of(factory.backend.short_name),
                                     name, sizeof name, error);
        });
        epctx::Try([&](epctx_error *error) {
            return epctx_path_join(epctx_path_folder(epctx::View(model)), epctx_str_of(name), path,
                                   sizeof path, error);
        });
    }
    auto context = std::make_shared<Context>();
    context->backend = &factory.backend;
    const std::string first = Ort::ConstNode(fused[0]).GetName(); // ORT puts the model's hash in
    epctx_ep_opts opts{};
    opts.name_prefix = options.Text(EPCTX_OPTION_CONTEXT_NODE_NAME_PREFIX);
    opts.model_hash = epctx_hash(first.data(), first.size(), 0) | 1;
    opts.embed = true;
    opts.prepare_only = On(EPCTX_OPTION_COMPILE_ONLY);
    epctx::Try([&](epctx_error *error) {
        return epctx_ep_begin(&context->made, &factory.backend, &opts, records.size(),
                              context->arena.get(), error);
    });
    for (const epctx::Record &record : records) {
        epctx::Try([&](epctx_error *error) {
            return epctx_ep_compile(&context->made, &record.Graph(), error);
        });
    }
    epctx::Try([&](epctx_error *error) { return epctx_ep_finish(&context->made, error); });
    size_t made = 0;
    const epctx_node *nodes = epctx_ep_context_nodes(&context->made, &made);
    context->loaded.Load({nodes, nodes + made}, factory.backend, epctx_load_opts{});
    for (size_t i = 0; i < kernels.size(); i++) {
        const epctx_graph &graph = records[i].Graph();
        kernels[i]->Bind(context, context->loaded[i], fused[i],
                         ValueNames(graph.inputs, graph.input_count),
                         ValueNames(graph.outputs, graph.output_count));
    }
    if (!generate) return;
    // A node that is refused leaves the older files as they are.
    std::vector<Ort::Node> given =
        epctx::MakeNodes(nodes, fused, made, file ? name : nullptr, ModelPath(records[0]));
    const epctx_span bytes = epctx_ep_binary(&context->made);
    if (file && buffers.Writes()) {
        buffers.Write(name, bytes);
    } else if (file) {
        epctx_write_opts write{};
        write.derived = true; // the name is derived: never through a link
        epctx::Try([&](epctx_error *error) {
            return epctx_write_bytes(nullptr, path, bytes.data, bytes.size, &write, error);
        });
    }
    epctx::GiveNodes(std::move(given), context_nodes);
}

// The graphs join the context of the group. Its binary is written by the last session, so this one
// cannot run.
void Ep::CompileShared(const Records &records, const OrtNode **fused, OrtNode **context_nodes) {
    std::vector<const epctx_graph *> pieces;
    for (const epctx::Record &record : records) pieces.push_back(&record.Graph());
    std::string path = ContextPath(records[0]);
    epctx::Arena arena;
    const epctx_node *nodes = nullptr;
    epctx_share_opts opts{};
    opts.pieces = pieces.data();
    opts.piece_count = pieces.size();
    opts.context_path = path.c_str();
    opts.name_prefix = options.Text(EPCTX_OPTION_CONTEXT_NODE_NAME_PREFIX);
    opts.overwrite = true; // ORT's rule for the model decides
    opts.prepare_only = On(EPCTX_OPTION_COMPILE_ONLY);
    opts.verify = true;
    epctx::Try([&](epctx_error *error) {
        return epctx_share_compile(factory.workspace, &factory.backend, &opts, arena.get(), &nodes,
                                   error);
    });
    joined = std::move(path);
    epctx::GiveNodes(epctx::MakeNodes(nodes, fused, records.size(), nullptr, ModelPath(records[0])),
                     context_nodes);
}

// ORT has written the session's context model. The last session writes the binary.
void Ep::Written() {
    if (!joined.empty()) {
        epctx_share_written(factory.workspace, nullptr, factory.backend.source, joined.c_str(),
                            nullptr);
    }
    joined.clear();
    if (!On(EPCTX_OPTION_CONTEXT_ENABLE) || !On(EPCTX_OPTION_STOP_SHARE_EP_CONTEXTS)) return;
    epctx::Try([&](epctx_error *error) {
        const epctx_status status = epctx_share_finish(
            factory.workspace, nullptr, factory.backend.source, nullptr, nullptr, error);
        return status == EPCTX_ERR_NOT_FOUND ? EPCTX_OK : status; // no session had nodes of ours
    });
}

// -------------------------------------------------------------------------------------- loading

void Ep::Load(const Records &records, const OrtNode **fused, const Kernels &kernels) {
    auto context = std::make_shared<Context>();
    context->backend = &factory.backend;
    context->nodes = std::make_unique<epctx::ContextNodes>(records);
    epctx_ort_log_to log{&epctx::Api(), logger, vector::kName};
    const epctx_hooks hooks = epctx_ort_hooks(&log);
    epctx_load_opts opts{};
    opts.hooks = &hooks;
    opts.model_path = ModelPath(records[0]);
    opts.context_file_path = options.Text(EPCTX_OPTION_CONTEXT_FILE_PATH);
    if (On(EPCTX_OPTION_SHARE_EP_CONTEXTS)) opts.workspace = factory.workspace;
    context->loaded.Load(context->nodes->Nodes(), factory.backend, opts, &buffers);
    for (size_t i = 0; i < kernels.size(); i++) {
        const Ort::ConstNode node = records[i].Node(0);
        std::vector<std::string> inputs = epctx::Names(node, false);
        const size_t count = context->loaded[i].info.input_count;
        if (factory.backend.weight_inputs && inputs.size() > count)
            inputs.resize(count); // the weights are behind
        kernels[i]->Bind(context, context->loaded[i], fused[i], inputs, epctx::Names(node, true));
    }
}

// ------------------------------------------------------------------------------------------- EP

constexpr const char *kOwnOptions[] = {"most_nodes",
                                       nullptr}; // nodes in a partition, 0: any number

size_t MostNodes(const epctx::Options &options, size_t otherwise) {
    const char *text = options.Own("most_nodes");
    std::uint64_t number = otherwise;
    if (text && (!epctx_str_number(epctx_str_of(text), &number) || number > SIZE_MAX))
        epctx::Fail(EPCTX_ERR_ARG, "option most_nodes: expected a number, found '%s'", text);
    return static_cast<size_t>(number);
}

void Ep::Compile(const OrtGraph **graphs, const OrtNode **fused, size_t count,
                 OrtNodeComputeInfo **infos, OrtNode **context_nodes) {
    if (count == 0) return;
    const Records records = epctx::ReadGraphs(graphs, fused, count);
    const bool compiled = epctx_ort_is_context_node(&records[0].Graph().nodes[0]);
    const bool generate = On(EPCTX_OPTION_CONTEXT_ENABLE);
    if (compiled && generate) {
        epctx::Fail(EPCTX_ERR_GRAPH, "the model is compiled already, and ep.context_enable=1 asks "
                                     "for a new context model: give the original model");
    }
    Kernels kernels;
    for (size_t i = 0; i < count; i++) kernels.push_back(std::make_unique<Kernel>());
    if (compiled)
        Load(records, fused, kernels);
    else if (generate && On(EPCTX_OPTION_SHARE_EP_CONTEXTS))
        CompileShared(records, fused, context_nodes);
    else
        CompileAlone(records, fused, kernels, context_nodes);
    // ORT's, until ReleaseNodeComputeInfos, which it calls for what is here after a failure, too.
    for (size_t i = 0; i < count; i++) infos[i] = kernels[i].release();
}

Ep::Ep(Factory &owner, Ort::ConstSessionOptions session, const OrtLogger *to)
    : ort131_ep{}, factory(owner), backend(owner.backend), logger(to),
      options(session, to, vector::kName, kOwnOptions), buffers(session) {
    backend.most_nodes = MostNodes(options, backend.most_nodes);
    if (On(EPCTX_OPTION_SHARE_EP_CONTEXTS) && (buffers.Reads() || buffers.Writes())) {
        epctx::Fail(EPCTX_ERR_ARG,
                    "ep.share_ep_contexts needs files: binaries that the application "
                    "reads or writes itself have no paths to tell them apart");
    }
    epctx::Buffers::Announce(this);
    GetName = [](const OrtEp *) noexcept { return vector::kName; };
    OrtEp::GetCapability = [](OrtEp *self, const OrtGraph *graph,
                              OrtEpGraphSupportInfo *info) noexcept {
        return epctx::Guard([&] { static_cast<Ep *>(self)->Claim(graph, info); });
    };
    OrtEp::Compile = [](OrtEp *self, const OrtGraph **graphs, const OrtNode **fused, size_t count,
                        OrtNodeComputeInfo **infos, OrtNode **context_nodes) noexcept {
        return epctx::Guard(
            [&] { static_cast<Ep *>(self)->Compile(graphs, fused, count, infos, context_nodes); });
    };
    ReleaseNodeComputeInfos = [](OrtEp *, OrtNodeComputeInfo **infos, size_t count) noexcept {
        for (size_t i = 0; i < count; i++) delete static_cast<Kernel *>(infos[i]);
    };
    OnSessionInitializationEnd = [](OrtEp *self) noexcept {
        return epctx::Guard([&] { static_cast<Ep *>(self)->Written(); });
    };
    IsConcurrentRunSupported = [](OrtEp *, bool *supported) noexcept {
        *supported = true;
        return static_cast<OrtStatus *>(nullptr);
    };
    GetCompiledModelCompatibilityInfo = [](OrtEp *self, const OrtGraph *) noexcept {
        return static_cast<const char *>(static_cast<Ep *>(self)->factory.compatibility);
    };
}

// A session whose model was not written leaves its group.
Ep::~Ep() {
    if (!joined.empty())
        epctx_share_withdraw(factory.workspace, nullptr, factory.backend.source, joined.c_str());
}

// -------------------------------------------------------------------------------------- factory

void AddDevices(Factory *factory, const OrtHardwareDevice *const *devices, size_t count,
                OrtEpDevice **out, size_t max, size_t *made) {
    for (size_t i = 0; i < count && *made < max; i++) {
        if (Ort::ConstHardwareDevice(devices[i]).Type() != OrtHardwareDeviceType_CPU) continue;
        Ort::ThrowOnError(
            Ort::GetEpApi().CreateEpDevice(factory, devices[i], nullptr, nullptr, &out[*made]));
        ++*made;
    }
}

Factory::Factory() : OrtEpFactory{} {
    epctx_workspace_opts opts{};
    epctx::Try([&](epctx_error *error) { return epctx_lock_make(&opts.lock, nullptr, error); });
    epctx::Try([&](epctx_error *error) {
        const epctx_status status = epctx_workspace_open(&workspace, &opts, error);
        if (status != EPCTX_OK) opts.lock.free_fn(opts.lock.user);
        return status;
    });
    epctx::Try([&](epctx_error *error) {
        const epctx_status status =
            epctx_backend_compatibility(&backend, compatibility, sizeof compatibility, error);
        if (status != EPCTX_OK) epctx_workspace_close(workspace);
        return status;
    });
    ort_version_supported = ORT_API_VERSION;
    GetName = [](const OrtEpFactory *) noexcept { return vector::kName; };
    GetVendor = [](const OrtEpFactory *) noexcept { return "Vector, Inc."; };
    GetVendorId = [](const OrtEpFactory *) noexcept -> std::uint32_t { return 0x7665; };
    GetVersion = [](const OrtEpFactory *) noexcept { return vector::kVersion; };
    GetSupportedDevices = [](OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                             size_t count, OrtEpDevice **out, size_t max, size_t *made) noexcept {
        *made = 0;
        OrtStatus *status = epctx::Guard(
            [&] { AddDevices(static_cast<Factory *>(self), devices, count, out, max, made); });
        while (status && *made > 0) // ORT takes none of them
            Ort::GetEpApi().ReleaseEpDevice(out[--*made]);
        return status;
    };
    CreateEp = [](OrtEpFactory *self, const OrtHardwareDevice *const *,
                  const OrtKeyValuePairs *const *, size_t count, const OrtSessionOptions *options,
                  const OrtLogger *logger, OrtEp **out) noexcept {
        return epctx::Guard([&] {
            if (count == 0) epctx::Fail(EPCTX_ERR_ARG, "no device was chosen");
            *out = new Ep(*static_cast<Factory *>(self), Ort::ConstSessionOptions(options), logger);
        });
    };
    ReleaseEp = [](OrtEpFactory *, OrtEp *ep) noexcept { delete static_cast<Ep *>(ep); };
    ValidateCompiledModelCompatibilityInfo =
        [](OrtEpFactory *self, const OrtHardwareDevice *const *, size_t, const char *text,
           OrtCompiledModelCompatibility *out) noexcept {
            const epctx_str here = epctx_str_of(static_cast<Factory *>(self)->compatibility);
            *out = static_cast<OrtCompiledModelCompatibility>(
                epctx_compat_compare(nullptr, epctx_str_of(text), here, nullptr));
            return static_cast<OrtStatus *>(nullptr);
        };
    // The device works in ordinary memory, in order. ORT calls these without asking.
    CreateAllocator = [](OrtEpFactory *, const OrtMemoryInfo *, const OrtKeyValuePairs *,
                         OrtAllocator **out) noexcept {
        *out = nullptr;
        return static_cast<OrtStatus *>(nullptr);
    };
    ReleaseAllocator = [](OrtEpFactory *, OrtAllocator *) noexcept {};
    CreateDataTransfer = [](OrtEpFactory *, OrtDataTransferImpl **out) noexcept {
        *out = nullptr;
        return static_cast<OrtStatus *>(nullptr);
    };
    IsStreamAware = [](const OrtEpFactory *) noexcept { return false; };
}

} // namespace

EXPORT OrtStatus *CreateEpFactories(const char *, const OrtApiBase *base, const OrtLogger *,
                                    OrtEpFactory **factories, size_t max, size_t *count) noexcept {
    *count = 0;
    if (!epctx::InitApi(base)) {
        const OrtApi *oldest = base->GetApi(1); // any version can create a status
        return oldest->CreateStatus(ORT_NOT_IMPLEMENTED,
                                    "VectorExecutionProvider needs a newer ONNX Runtime");
    }
    return epctx::Guard([&] {
        if (max == 0) epctx::Fail(EPCTX_ERR_ARG, "no room for a factory");
        factories[0] = new Factory;
        *count = 1;
    });
}

EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory) noexcept {
    delete static_cast<Factory *>(factory);
    return nullptr;
}
