// vector_device.cc - a device in C++ behind the functions of epctx_backend. Every function that
// epctx.h calls is an Answer: what is thrown inside becomes a status with its message.
//
// Context binary, as this machine stores numbers: "VECTOR1\0", u64 hash of the rest, then for each
// graph: text name, u64 hash, list of inputs (text name, list of u64 dims), list of steps (u64
// kind, u64 left, u64 right, u64 count, list of floats: of a weight), list of outputs (as inputs),
// list of their values (u64). A list is its u64 length and its members.
#include "vector_device.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "epctx_ort.hpp"

namespace vector {
namespace {

constexpr char kMagic[8] = "VECTOR1";
constexpr std::uint64_t kMaxCount = 1u << 28;

// A graph computes numbered values: first its inputs, then one in each step.
enum Kind : std::uint64_t { kWeight, kRelu, kAdd, kSub, kMul, kKinds };

struct Value {
    std::string name;
    std::vector<std::int64_t> dims;
};

struct Step {
    std::uint64_t kind = kWeight, left = 0, right = 0, count = 0;
    std::vector<float> weight;
    std::size_t at = 0; // of its result in scratch, when loaded
};

struct Graph {
    std::string name;
    std::uint64_t hash = 0;
    std::vector<Value> inputs, outputs;
    std::vector<Step> steps;
    std::vector<std::uint64_t> results; // the value of each output
    // For epctx_graph_info.
    std::vector<epctx_value> shown_inputs, shown_outputs;
    std::size_t scratch_size = 0;
};

// Elements of a tensor; false for more than this device computes.
bool Count(const std::int64_t *dims, std::size_t rank, std::uint64_t *count) {
    *count = 1;
    for (std::size_t i = 0; i < rank; i++) {
        if (dims[i] < 0 || dims[i] > 1 << 20) return false;
        *count *= static_cast<std::uint64_t>(dims[i]);
        if (*count > kMaxCount) return false;
    }
    return true;
}

// --------------------------------------------------------------------------------- which nodes

const epctx_tensor *FindWeight(const epctx_graph &graph, epctx_str name) {
    for (std::size_t i = 0; i < graph.initializer_count; i++)
        if (epctx_str_eq(graph.initializers[i].name, name)) return &graph.initializers[i];
    return nullptr;
}

// The type of a value or a weight; rank -1: not known.
epctx_value TypeOf(const epctx_graph &graph, epctx_str name) {
    const struct {
        const epctx_value *values;
        std::size_t count;
    } lists[] = {{graph.values, graph.value_count},
                 {graph.inputs, graph.input_count},
                 {graph.outputs, graph.output_count}};
    for (const auto &list : lists) {
        for (std::size_t i = 0; i < list.count; i++)
            if (epctx_str_eq(list.values[i].name, name)) return list.values[i];
    }
    epctx_value type{};
    type.rank = -1;
    if (const epctx_tensor *weight = FindWeight(graph, name); weight && weight->data) {
        type.elem_type = weight->elem_type;
        type.rank = weight->rank;
        type.dims = weight->dims;
    }
    return type;
}

bool Fits(const epctx_value &type) {
    std::uint64_t count;
    return type.elem_type == EPCTX_ONNX_FLOAT && type.rank >= 0 &&
           Count(type.dims, static_cast<std::size_t>(type.rank), &count);
}

// kWeight: none of ours.
Kind KindOf(const epctx_node &node) {
    static constexpr const char *names[] = {"", "Relu", "Add", "Sub", "Mul"};
    for (std::uint64_t kind = kRelu; kind < kKinds; kind++)
        if (node.domain.size == 0 && epctx_str_is(node.op_type, names[kind]))
            return static_cast<Kind>(kind);
    return kWeight;
}

// Why a node is not for this device; NULL: it is.
const char *Refusal(const epctx_graph &graph, const epctx_node &node) {
    const Kind kind = KindOf(node);
    if (kind == kWeight || node.output_count != 1 || node.input_count != (kind == kRelu ? 1 : 2))
        return "the device computes Relu, Add, Sub and Mul";
    const epctx_value out = TypeOf(graph, node.outputs[0]);
    if (!Fits(out)) return "its output is not float of a fixed shape";
    for (std::size_t i = 0; i < node.input_count; i++) {
        const epctx_value in = TypeOf(graph, node.inputs[i]);
        if (!Fits(in)) return "an input is not float of a fixed shape";
        if (!std::equal(in.dims, in.dims + in.rank, out.dims, out.dims + out.rank))
            return "it broadcasts an input";
    }
    return nullptr;
}

epctx_status Capability(void *, const epctx_graph *graph, std::uint8_t *take, epctx_error *) {
    for (std::size_t i = 0; i < graph->node_count; i++) take[i] = !Refusal(*graph, graph->nodes[i]);
    return EPCTX_OK;
}

epctx_status Explain(void *, const epctx_graph *graph, std::size_t index, epctx_error *error) {
    const char *why = Refusal(*graph, graph->nodes[index]);
    return why ? epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "%s", why) : EPCTX_OK;
}

// ------------------------------------------------------------------------------------ compiling

class Compiler {
  public:
    explicit Compiler(const epctx_graph &from) : from_(from) {
        for (std::size_t i = 0; i < from.input_count; i++)
            graph_.inputs.push_back(End(from.inputs[i]));
        for (std::size_t i = 0; i < from.input_count; i++) Name(from.inputs[i].name, i);
        for (std::size_t i = 0; i < from.node_count; i++) Add(from.nodes[i]);
        for (std::size_t i = 0; i < from.output_count; i++) {
            graph_.outputs.push_back(End(from.outputs[i]));
            graph_.results.push_back(Use(from.outputs[i].name));
        }
    }
    Graph Take() {
        return std::move(graph_);
    }

  private:
    void Name(epctx_str name, std::uint64_t value) {
        names_[epctx::Text(name)] = value;
    }
    // The ends of a graph need not be those of the nodes that Capability saw.
    static Value End(const epctx_value &value) {
        if (!Fits(value))
            epctx::Fail(EPCTX_ERR_BACKEND, "'%S' is not float of a fixed shape", &value.name);
        return {epctx::Text(value.name), {value.dims, value.dims + value.rank}};
    }
    void Push(epctx_str name, Step step) {
        Name(name, graph_.inputs.size() + graph_.steps.size());
        graph_.steps.push_back(std::move(step));
    }
    // The number of the value `name`; a weight becomes one when it is first used.
    std::uint64_t Use(epctx_str name) {
        const auto known = names_.find(epctx::Text(name));
        if (known != names_.end()) return known->second;
        const epctx_tensor *weight = FindWeight(from_, name);
        Step step;
        if (!weight || !weight->data ||
            !Count(weight->dims, static_cast<std::size_t>(weight->rank), &step.count) ||
            weight->size != step.count * sizeof(float))
            epctx::Fail(EPCTX_ERR_BACKEND, "value '%S' comes from nowhere", &name);
        step.weight.resize(step.count);
        if (weight->size) std::memcpy(step.weight.data(), weight->data, weight->size);
        Push(name, std::move(step));
        return graph_.inputs.size() + graph_.steps.size() - 1;
    }
    void Add(const epctx_node &node) {
        if (const char *why = Refusal(from_, node))
            epctx::Fail(EPCTX_ERR_BACKEND, "node '%S': %s", &node.name, why);
        const epctx_value type = TypeOf(from_, node.outputs[0]);
        Step step;
        step.kind = KindOf(node);
        Count(type.dims, static_cast<std::size_t>(type.rank), &step.count);
        step.left = Use(node.inputs[0]);
        step.right = Use(node.inputs[node.input_count - 1]);
        Push(node.outputs[0], std::move(step));
    }

    const epctx_graph &from_;
    Graph graph_;
    std::unordered_map<std::string, std::uint64_t> names_;
};

// Numbers, texts and lists, one behind the other.
class Writer {
  public:
    void Put(const void *data, std::size_t size) {
        if (size) bytes.append(static_cast<const char *>(data), size);
    }
    void Number(std::uint64_t number) {
        Put(&number, sizeof number);
    }
    template <class Items>
    void Plain(const Items &items) // numbers, or the bytes of a text
    {
        Number(items.size());
        Put(items.data(), items.size() * sizeof *items.data());
    }
    void Values(const std::vector<Value> &values) {
        Number(values.size());
        for (const Value &value : values) {
            Plain(value.name);
            Plain(value.dims);
        }
    }
    void Whole(const Graph &graph) {
        Plain(graph.name);
        Number(graph.hash);
        Values(graph.inputs);
        Number(graph.steps.size());
        for (const Step &step : graph.steps) {
            for (const std::uint64_t number : {step.kind, step.left, step.right, step.count})
                Number(number);
            Plain(step.weight);
        }
        Values(graph.outputs);
        Plain(graph.results);
    }
    std::string bytes;
};

epctx_status Begin(void *, void **build, epctx_error *error) {
    return epctx::Answer(
        error, [&] { *build = new Writer; });
}

void Discard(void *, void *build) {
    delete static_cast<Writer *>(build);
}

epctx_status Compile(void *, void *build, const epctx_graph *from, epctx_str name,
                     std::uint64_t hash, epctx_error *error) {
    return epctx::Answer(
        error,
        [&] {
            Graph graph = Compiler(*from).Take();
            graph.name = epctx::Text(name);
            graph.hash = hash;
            Writer whole; // a failure leaves `build` as it was
            whole.Whole(graph);
            static_cast<Writer *>(build)->bytes += whole.bytes;
        });
}

epctx_status Finish(void *, void *build, epctx_buffer *out, epctx_error *) {
    const std::unique_ptr<Writer> writer(static_cast<Writer *>(build));
    const std::string &bytes = writer->bytes;
    const std::uint64_t hash = epctx_hash(bytes.data(), bytes.size(), 0);
    epctx_status status = epctx_buffer_append(out, kMagic, sizeof kMagic);
    if (status == EPCTX_OK) status = epctx_buffer_append(out, &hash, sizeof hash);
    if (status == EPCTX_OK) status = epctx_buffer_append(out, bytes.data(), bytes.size());
    return status;
}

// -------------------------------------------------------------------------------------- loading

[[noreturn]] void Damaged(const char *what) {
    epctx::Fail(EPCTX_ERR_CONTEXT, "the context binary is damaged: %s", what);
}

// The binary came from a file that anybody may have changed: whatever it says is checked.
class Reader {
  public:
    explicit Reader(epctx_span rest) : rest_(rest) {
    }
    bool Done() const {
        return rest_.size == 0;
    }
    void Take(void *to, std::size_t size) {
        if (size > rest_.size) Damaged("it ends too early");
        if (size) std::memcpy(to, rest_.data, size);
        rest_.data += size;
        rest_.size -= size;
    }
    std::uint64_t Number() {
        std::uint64_t number;
        Take(&number, sizeof number);
        return number;
    }
    // A list cannot have more members than there are bytes.
    std::size_t Length(std::size_t member) {
        const std::uint64_t length = Number();
        if (length > rest_.size / member) Damaged("a list is longer than the file");
        return static_cast<std::size_t>(length);
    }
    template <class Items> void Plain(Items *items) {
        items->resize(Length(sizeof *items->data()));
        Take(items->data(), items->size() * sizeof *items->data());
    }
    void Values(std::vector<Value> *values) {
        std::uint64_t count;
        values->resize(Length(2 * sizeof(std::uint64_t)));
        for (Value &value : *values) {
            Plain(&value.name);
            Plain(&value.dims);
            if (!Count(value.dims.data(), value.dims.size(), &count)) Damaged("a shape");
        }
    }
    void Whole(Graph *graph) {
        Plain(&graph->name);
        graph->hash = Number();
        Values(&graph->inputs);
        graph->steps.resize(Length(5 * sizeof(std::uint64_t)));
        for (Step &step : graph->steps) {
            for (std::uint64_t *number : {&step.kind, &step.left, &step.right, &step.count})
                *number = Number();
            Plain(&step.weight);
        }
        Values(&graph->outputs);
        Plain(&graph->results);
    }

  private:
    epctx_span rest_;
};

// Elements of a value that the first `steps` steps have computed.
std::uint64_t CountOf(const Graph &graph, std::uint64_t value, std::size_t steps) {
    std::uint64_t count = 0;
    const std::size_t inputs = graph.inputs.size();
    if (value >= inputs + steps) Damaged("a value that nothing has computed");
    if (value >= inputs) return graph.steps[value - inputs].count;
    Count(graph.inputs[value].dims.data(), graph.inputs[value].dims.size(), &count);
    return count;
}

void CheckSteps(Graph *graph) {
    for (std::size_t i = 0; i < graph->steps.size(); i++) {
        Step &step = graph->steps[i];
        if (step.kind >= kKinds || step.count > kMaxCount) Damaged("a step");
        if (step.kind == kWeight) {
            if (step.weight.size() != step.count) Damaged("a weight");
            continue;
        }
        if (CountOf(*graph, step.left, i) != step.count ||
            CountOf(*graph, step.right, i) != step.count)
            Damaged("sizes that do not fit");
        const std::size_t size = static_cast<std::size_t>(step.count) * sizeof(float);
        if (graph->scratch_size > SIZE_MAX / 4) Damaged("it needs too much memory");
        step.at = graph->scratch_size;
        graph->scratch_size += (size + 63) / 64 * 64;
    }
    if (graph->results.size() != graph->outputs.size()) Damaged("outputs");
    for (std::size_t i = 0; i < graph->outputs.size(); i++) {
        const Value &output = graph->outputs[i];
        std::uint64_t count;
        Count(output.dims.data(), output.dims.size(), &count);
        if (CountOf(*graph, graph->results[i], graph->steps.size()) != count)
            Damaged("the size of an output");
    }
}

std::vector<epctx_value> Shown(const std::vector<Value> &values) {
    std::vector<epctx_value> shown(values.size());
    for (std::size_t i = 0; i < values.size(); i++) {
        shown[i].name = epctx::View(values[i].name);
        shown[i].elem_type = EPCTX_ONNX_FLOAT;
        shown[i].rank = static_cast<std::int32_t>(values[i].dims.size());
        shown[i].dims = values[i].dims.data();
    }
    return shown;
}

using Context = std::deque<Graph>; // graphs stay where they are: find_fn gives their addresses

// What comes with the bytes: an attribute of one's own, the file, a log.
void TellRemark(const epctx_load_in *in) {
    const epctx_attr *remark = nullptr;
    epctx::Try([&](epctx_error *error) {
        return epctx_node_get_attr(in->record, "remark", EPCTX_ATTR_STRING, &remark, error);
    });
    if (!remark || !in->hooks || !in->hooks->log_fn) return;
    const std::string text =
        "remark '" + std::string(remark->s.data, remark->s.size) + "' on '" + in->path + "'";
    in->hooks->log_fn(in->hooks->user, EPCTX_LOG_INFO, text.c_str());
}

epctx_status Load(void *, const epctx_load_in *in, void **out, epctx_error *error) {
    return epctx::Answer(
        error,
        [&] {
            const epctx_span binary = in->binary;
            Reader reader(binary);
            char magic[sizeof kMagic];
            reader.Take(magic, sizeof magic);
            if (std::memcmp(magic, kMagic, sizeof kMagic) != 0)
                epctx::Fail(EPCTX_ERR_CONTEXT, "not a context binary of %s", kName);
            const std::size_t head = sizeof kMagic + sizeof(std::uint64_t);
            if (reader.Number() != epctx_hash(binary.data + head, binary.size - head, 0))
                Damaged("its hash is another");
            auto context = std::make_unique<Context>();
            while (!reader.Done()) {
                Graph &graph = context->emplace_back();
                reader.Whole(&graph);
                CheckSteps(&graph);
                graph.shown_inputs = Shown(graph.inputs);
                graph.shown_outputs = Shown(graph.outputs);
            }
            TellRemark(in);
            *out = context.release();
        });
}

void Unload(void *, void *context) {
    delete static_cast<Context *>(context);
}

epctx_status Find(void *, void *context, epctx_str name, std::uint64_t hash, void **out,
                  epctx_error *error) {
    Context &graphs = *static_cast<Context *>(context);
    for (Graph &graph : graphs) {
        if (!epctx_str_eq(name, epctx::View(graph.name))) continue;
        if (hash && hash != graph.hash) {
            return epctx_fail(error, EPCTX_ERR_VERSION,
                              "graph '%S' is of another generation: expected %x, found %x", &name,
                              hash, graph.hash);
        }
        *out = &graph;
        return EPCTX_OK;
    }
    return epctx_fail_no_graph(
        error, name, &graphs, graphs.size(), [](const void *all, std::size_t index) {
            return epctx::View((*static_cast<const Context *>(all))[index].name);
        });
}

// Can a context that was made for the node's hardware, by its SDK, run here? The rule is the one
// by which ORT is told about whole models: epctx_compat_compare. What a node omits is ours.
epctx_status Check(void *, const epctx_epnode *node, epctx_error *error) {
    return epctx::Answer(
        error,
        [&] {
            epctx_backend there = Backend();
            const std::string sdk = epctx::Text(node->ep_sdk_version);
            const std::string architecture = epctx::Text(node->hardware_architecture);
            const epctx_backend here = there;
            char ours[256], theirs[256];
            if (!sdk.empty()) there.sdk_version = sdk.c_str();
            if (!architecture.empty()) there.hardware_architecture = architecture.c_str();
            epctx::Try([&](epctx_error *e) {
                return epctx_backend_compatibility(&here, ours, sizeof ours, e);
            });
            epctx::Try([&](epctx_error *e) {
                return epctx_backend_compatibility(&there, theirs, sizeof theirs, e);
            });
            if (epctx_compat_compare(nullptr, epctx_str_of(theirs), epctx_str_of(ours), nullptr) ==
                EPCTX_COMPAT_UNSUPPORTED) {
                const bool other =
                    !architecture.empty() && architecture != here.hardware_architecture;
                epctx::Fail(EPCTX_ERR_VERSION, "attribute '%s': expected what runs on %s, found %s",
                            other ? "hardware_architecture" : "ep_sdk_version", ours, theirs);
            }
        });
}

// -------------------------------------------------------------------------------------- running

epctx_status Info(void *, void *handle, epctx_graph_info *info, epctx_error *) {
    const Graph &graph = *static_cast<const Graph *>(handle);
    info->name = epctx::View(graph.name);
    info->inputs = graph.shown_inputs.data();
    info->input_count = graph.shown_inputs.size();
    info->outputs = graph.shown_outputs.data();
    info->output_count = graph.shown_outputs.size();
    info->scratch_size = graph.scratch_size;
    return EPCTX_OK;
}

// EPContext nodes have attributes of this EP, besides those of the schema: one of every type that
// ONNX Runtime makes.
epctx_status Node(void *, void *, const epctx_graph *, epctx_arena *arena, epctx_node *node,
                  epctx_error *error) {
    return epctx::Answer(
        error,
        [&] {
            static const std::int64_t tiles[] = {2, 3};
            static const float rates[] = {0.5f, 2};
            static const epctx_str stages[] = {{"load", 4}, {"", 0}, {"run", 3}};
            constexpr std::size_t count = 6;
            auto *attrs =
                static_cast<epctx_attr *>(epctx_arena_array(arena, count, sizeof *node->attrs));
            if (!attrs) throw std::bad_alloc();
            const char *const names[count] = {"lanes", "clock", "unit", "tiles", "rates", "stages"};
            const epctx_attr_type types[count] = {EPCTX_ATTR_INT,    EPCTX_ATTR_FLOAT,
                                                  EPCTX_ATTR_STRING, EPCTX_ATTR_INTS,
                                                  EPCTX_ATTR_FLOATS, EPCTX_ATTR_STRINGS};
            for (std::size_t i = 0; i < count; i++) {
                attrs[i].name = epctx_str_of(names[i]);
                attrs[i].type = types[i];
            }
            attrs[0].i = -4;
            attrs[1].f = 1.5f;
            attrs[2].s = epctx_str_of("sum");
            attrs[3].ints = tiles;
            attrs[4].floats = rates;
            attrs[5].strings = stages;
            attrs[3].count = attrs[4].count = 2;
            attrs[5].count = 3;
            node->attrs = attrs;
            node->attr_count = count;
        });
}

float Compute(std::uint64_t kind, float x, float y) {
    switch (kind) {
    case kAdd: return x + y;
    case kSub: return x - y;
    case kMul: return x * y;
    default: return x < 0 ? 0 : x;
    }
}

// ORT's tensors and scratch are aligned, weights are vectors: floats everywhere.
epctx_status Run(void *, void *handle, const epctx_span *inputs, const epctx_memory *outputs,
                 void *scratch, std::size_t, epctx_error *) {
    const Graph &graph = *static_cast<const Graph *>(handle);
    auto *results = static_cast<std::uint8_t *>(scratch);
    const auto place = [&](std::uint64_t value) {
        if (value < graph.inputs.size())
            return static_cast<const float *>(static_cast<const void *>(inputs[value].data));
        const Step &step = graph.steps[value - graph.inputs.size()];
        if (step.kind == kWeight) return step.weight.data();
        return static_cast<const float *>(static_cast<void *>(results + step.at));
    };
    for (const Step &step : graph.steps) {
        if (step.kind == kWeight) continue;
        const float *left = place(step.left), *right = place(step.right);
        auto *to = static_cast<float *>(static_cast<void *>(results + step.at));
        for (std::size_t i = 0; i < step.count; i++) to[i] = Compute(step.kind, left[i], right[i]);
    }
    for (std::size_t i = 0; i < graph.outputs.size(); i++)
        if (outputs[i].size) std::memcpy(outputs[i].data, place(graph.results[i]), outputs[i].size);
    return EPCTX_OK;
}

} // namespace

epctx_backend Backend() {
    epctx_backend backend{};
    backend.version = EPCTX_BACKEND_VERSION;
    backend.source = kName;
    backend.short_name = "vector"; // model_vector.bin
    backend.sdk_version = kVersion;
    backend.hardware_architecture = "vector1";
    backend.capability_fn = Capability;
    backend.explain_fn = Explain;
    backend.begin_fn = Begin;
    backend.compile_fn = Compile;
    backend.finish_fn = Finish;
    backend.discard_fn = Discard;
    backend.load_fn = Load;
    backend.unload_fn = Unload;
    backend.find_fn = Find;
    backend.check_fn = Check;
    backend.info_fn = Info;
    backend.run_fn = Run;
    backend.node_fn = Node;
    return backend;
}

} // namespace vector
