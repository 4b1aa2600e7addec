// SPDX-License-Identifier: MIT
// epctx_ort.hpp - epctx.h for a plugin EP in C++17 that uses ORT's own wrapper types
// (onnxruntime_cxx_api.h): graphs become records, records become EPContext nodes, and what goes
// wrong becomes the one kind of error that the other side knows.
//
// The work is done in C, in graph.c, node.c, buffers.c and status.c of ../plugin_ep: both families
// of ORT's wrappers (Ort::ConstGraph, Ort::Graph) convert to the C pointer without a word, so a
// second reader in C++ would only be a second reader. Compile these four with your EP, and one file
// with EPCTX_IMPLEMENTATION. Nothing here is copied but what ORT hands out by value.
//
// A plugin does not link ORT: it includes ORT's header with ORT_API_MANUAL_INIT, for every file or
// around each #include, as here. Headers of API 24 or newer do, under whatever name, before this one
// or not. Call epctx::InitApi (in the place of Ort::InitApi) in CreateEpFactories before anything
// of this header.
//
// Without exceptions (-fno-exceptions and ORT_NO_EXCEPTIONS) a failure ends the process as ORT's
// wrappers end it: by ORT_CXX_API_THROW, with the message.
#ifndef EPCTX_ORT_HPP
#define EPCTX_ORT_HPP

#if defined(ORT_CXX_API_THROW) // the EP has included it already
#elif defined(ORT_API_MANUAL_INIT)
#include <onnxruntime_cxx_api.h>
#else
#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>
#undef ORT_API_MANUAL_INIT
#endif

#include <deque>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "bridge.h"

// Ort::InitApi, where ORT's header has it: not if the EP has included that without
// ORT_API_MANUAL_INIT, so that its wrappers ask the ORT that it is linked with. No macro tells,
// because EPs undefine it again.
namespace epctx_ort_linked
{
inline void InitApi(const void *)
{
}
} // namespace epctx_ort_linked
namespace epctx_ort_init
{
inline void Init(const OrtApi *api)
{
    using namespace Ort;
    using namespace epctx_ort_linked;
    InitApi(api);
}
} // namespace epctx_ort_init

namespace epctx
{

// What the C functions need of ORT: the tables that Ort::InitApi was given, and which ORT this is.
// Without InitApi below it is taken for one that is as old as the headers.
inline const epctx_ort_api &Api(const OrtApiBase *base = nullptr)
{
    static const epctx_ort_api api{&Ort::GetApi(), &Ort::GetEpApi(), &Ort::GetModelEditorApi(),
                            base ? epctx_ort_runtime(base) : ORT_API_VERSION};
    return api;
}

// Ort::InitApi, which also sees what an ORT that is newer than the headers can do. False: it is
// older than these, and nothing of it may be used.
inline bool InitApi(const OrtApiBase *base)
{
    if (epctx_ort_runtime(base) < ORT_API_VERSION) return false;
    const OrtApi *ort = base->GetApi(ORT_API_VERSION);
    if (!ort) return false;
    epctx_ort_init::Init(ort);
    Api(base);
    return true;
}

// ----------------------------------------------------------------------------------------- errors

// Of epctx.h, with its whole message; its code is that of the status.
class Failure : public Ort::Exception
{
  public:
    Failure(epctx_status status, const epctx_error &error)
        : Ort::Exception(std::string(*error.message ? error.message : epctx_status_text(status)),
                         static_cast<OrtErrorCode>(epctx_status_to_ort(status))),
          status_(status), error_(error)
    {
    }
    epctx_status Status() const noexcept
    {
        return status_;
    }
    const epctx_error &Error() const noexcept
    {
        return error_;
    }

  private:
    epctx_status status_;
    epctx_error error_;
};

[[noreturn]] inline void Throw(epctx_status status, const epctx_error &error)
{
#ifdef ORT_NO_EXCEPTIONS
    const Failure failure(status, error);
    ORT_CXX_API_THROW(std::string(failure.what()), failure.GetOrtErrorCode());
#else
    throw Failure(status, error);
#endif
}

// Calls `call` with an epctx_error and throws what it returns.
template <class Call> void Try(Call &&call)
{
    epctx_error error{};
    const epctx_status status = call(&error);
    if (status != EPCTX_OK) Throw(status, error);
}

// The same for what loads a context: every failure is INVALID_GRAPH, as the EP-context design asks.
template <class Call> void TryLoad(Call &&call)
{
    epctx_error error{};
    Ort::ThrowOnError(epctx_ort_load_status(&Api(), call(&error), &error));
}

// The body of a callback of ORT's. No exception leaves it: each becomes an OrtStatus, which ORT
// owns.
template <class Body> OrtStatus *Guard(Body &&body) noexcept
{
#ifdef ORT_NO_EXCEPTIONS
    body();
    return nullptr;
#else
    const OrtApi &ort = Ort::GetApi();
    try {
        body();
        return nullptr;
    } catch (const Failure &failure) {
        return epctx_ort_status(&Api(), failure.Status(), &failure.Error());
    } catch (const Ort::Exception &exception) {
        return ort.CreateStatus(exception.GetOrtErrorCode(), exception.what());
    } catch (const std::bad_alloc &) {
        return epctx_ort_no_memory(&Api());
    } catch (const std::exception &exception) {
        return ort.CreateStatus(ORT_FAIL, exception.what());
    } catch (...) {
        return ort.CreateStatus(ORT_FAIL, "an exception that is no std::exception");
    }
#endif
}

// The body of a function that epctx.h calls (epctx_backend). `body` throws or returns.
template <class Body> epctx_status Answer(epctx_error *error, Body &&body) noexcept
{
#ifdef ORT_NO_EXCEPTIONS
    (void)error;
    body();
    return EPCTX_OK;
#else
    try {
        body();
        return EPCTX_OK;
    } catch (const Failure &failure) {
        if (error) *error = failure.Error();
        return failure.Status();
    } catch (const std::bad_alloc &) {
        return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    } catch (const std::exception &exception) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "%s", exception.what());
    } catch (...) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "an exception that is no std::exception");
    }
#endif
}

// Throws a Failure with a message of its own.
template <class... Words>
[[noreturn]] void Fail(epctx_status status, const char *format, Words... words)
{
    epctx_error error{};
    epctx_fail(&error, status, format, words...);
    Throw(status, error);
}

// ------------------------------------------------------------------------------------------- text

inline epctx_str View(const std::string &text)
{
    return epctx_str{text.data(), text.size()};
}
inline std::string Text(epctx_str text)
{
    return text.size ? std::string(text.data, text.size) : std::string();
}

// --------------------------------------------------------------------------------------- lifetime

class Arena
{
  public:
    Arena()
    {
        epctx_arena_init(&arena_, nullptr);
    }
    ~Arena()
    {
        epctx_arena_free(&arena_);
    }
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;
    epctx_arena *get()
    {
        return &arena_;
    }

  private:
    epctx_arena arena_{};
};

// An Ort::ConstGraph as an epctx_graph. Names and weights are borrowed: a Record lives no longer
// than the call (GetCapability, Compile) that brought the graph. Omitted optional inputs are empty
// names, paths are UTF-8 on Windows, too.
class Record
{
  public:
    // With `fused` the graph has that node's inputs and outputs, in its order, and hashes of
    // bodies.
    explicit Record(const OrtGraph *graph, const OrtNode *fused = nullptr)
    {
        Ort::ThrowOnError(epctx_ort_record_read(&record_, &Api(), graph, fused));
    }
    ~Record()
    {
        epctx_ort_record_free(&record_);
    }
    Record(const Record &) = delete;
    Record &operator=(const Record &) = delete;

    const epctx_graph &Graph() const
    {
        return record_.graph;
    }
    Ort::ConstNode Node(size_t index) const // ORT's, of Graph().nodes[index]
    {
        return Ort::ConstNode(record_.nodes[index]);
    }
    const char *ModelPath() const // "" for a model from memory
    {
        return record_.model_path;
    }
    const epctx_ort_record *get() const
    {
        return &record_;
    }

  private:
    epctx_ort_record record_{};
};

// The graphs that Compile gets.
inline std::deque<Record> ReadGraphs(const OrtGraph *const *graphs, const OrtNode *const *fused,
                                     size_t count)
{
    std::deque<Record> records;
    for (size_t i = 0; i < count; i++)
        records.emplace_back(graphs[i], fused[i]);
    return records;
}

// The EPContext nodes among them, one in each graph, with their payloads: for epctx_load_nodes.
// Keep it until epctx_unload. Each payload is read once, straight from ORT into its place.
class ContextNodes
{
  public:
    explicit ContextNodes(const std::deque<Record> &records)
        : payloads_(records.size()), nodes_(records.size())
    {
        for (size_t i = 0; i < records.size(); i++) {
            Ort::ThrowOnError(epctx_ort_context_node_read(records[i].get(), 0, &payloads_[i].buffer,
                                                          arena_.get(), &nodes_[i]));
        }
    }
    ContextNodes(const ContextNodes &) = delete;
    ContextNodes &operator=(const ContextNodes &) = delete;

    const std::vector<epctx_node> &Nodes() const
    {
        return nodes_;
    }

  private:
    struct Payload {
        Payload()
        {
            epctx_buffer_init(&buffer, nullptr);
        }
        ~Payload()
        {
            epctx_buffer_free(&buffer);
        }
        Payload(const Payload &) = delete;
        Payload &operator=(const Payload &) = delete;
        epctx_buffer buffer{};
    };
    Arena arena_;
    std::deque<Payload> payloads_;
    std::vector<epctx_node> nodes_;
};

// The application's callbacks for data of EPContext nodes, with which it keeps context binaries
// elsewhere than in files (buffers.c tells in which ORT). Made in CreateEp. The EP's structure
// derives from ort131_ep, not OrtEp, and its constructor calls Announce(this): then ORT 1.31 hands
// sessions with callbacks over.
class Buffers
{
  public:
    explicit Buffers(Ort::ConstSessionOptions options)
    {
        Ort::ThrowOnError(epctx_ort_buffers_open(&Api(), options, &buffers_));
    }
    static void Announce(ort131_ep *ep)
    {
        epctx_ort_announce(&Api(), ep);
    }
    bool Reads() const
    {
        return buffers_.read_fn != nullptr;
    }
    bool Writes() const
    {
        return buffers_.write_fn != nullptr;
    }
    // To the application: never write a file as well. Its error is the exception.
    void Write(const char *name, epctx_span bytes) const
    {
        Ort::ThrowOnError(buffers_.write_fn(buffers_.write_state, name, bytes.data, bytes.size));
    }
    const epctx_ort_buffers *get() const
    {
        return &buffers_;
    }

  private:
    epctx_ort_buffers buffers_{};
};

// What epctx_load_nodes loaded.
class Loaded
{
  public:
    Loaded() = default;
    ~Loaded()
    {
        epctx_unload(&loaded_);
        epctx_ort_reader_free(&reader_);
    }
    Loaded(const Loaded &) = delete;
    Loaded &operator=(const Loaded &) = delete;

    // `buffers`: binaries outside the nodes come from the application, if it has a callback.
    void Load(const std::vector<epctx_node> &nodes, const epctx_backend &backend,
              const epctx_load_opts &opts, const Buffers *buffers = nullptr)
    {
        epctx_load_opts from = opts;
        if (buffers && buffers->Reads()) {
            epctx_ort_reader_init(&reader_, &Api(), buffers->get());
            from.io = &reader_.io;
        }
        TryLoad([&](epctx_error *error) {
            const epctx_status status =
                epctx_load_nodes(&loaded_, nodes.data(), nodes.size(), &backend, &from, error);
            Ort::ThrowOnError(epctx_ort_reader_refusal(&reader_)); // the application's own words first
            return status;
        });
        if (loaded_.bound_count != nodes.size()) {
            ORT_CXX_API_THROW("EPContext nodes of another EP", ORT_INVALID_GRAPH);
        }
    }
    const epctx_bound &operator[](size_t index) const
    {
        return loaded_.bound[index];
    }

  private:
    epctx_loaded loaded_{};
    epctx_ort_reader reader_{};
};

// -------------------------------------------------------------------------------- nodes, from, to

// Whether this is an EPContext node of the EP `source`. Any node may be asked, also one that is
// null or has no source.
inline bool IsMine(const OrtNode *node, const char *source)
{
    bool mine = false;
    Ort::ThrowOnError(epctx_ort_node_is_context(&Api(), node, source, &mine));
    return mine;
}

inline std::vector<std::string> Names(const OrtNode *node, bool outputs)
{
    Arena arena;
    const char **names = nullptr;
    size_t count = 0;
    Ort::ThrowOnError(epctx_ort_node_names(&Api(), node, outputs, arena.get(), &names, &count));
    return std::vector<std::string>(names, names + count);
}

// An EPContext node with the attributes of `node`; inputs, outputs and attributes of the EP's own are
// those of `record`. For an EP that makes its contexts without epctx_ep_begin. Throws what
// epctx_epnode_check says of a node that can never be loaded.
inline Ort::Node MakeNode(const OrtNode *fused, const epctx_node &record, const epctx_epnode &node,
                          epctx_ort_ends ends = EPCTX_ORT_ENDS_RECORD)
{
    Arena arena;
    OrtNode *made = nullptr;
    Ort::ThrowOnError(epctx_ort_context_node_create(&Api(), fused, &record, &node, ends,
                                                    arena.get(), &made));
    return Ort::Node(made);
}

// EPContext nodes in the order of the fused nodes. `binary`: the name of the file that the first
// node refers to, which is written when all nodes are made; NULL: the contexts stay in the nodes.
// `ends`: by default the nodes have the inputs and outputs of `nodes`, so that no weight is written
// into the context model.
inline std::vector<Ort::Node> MakeNodes(const epctx_node *nodes, const OrtNode *const *fused,
                                        size_t count, const char *binary, const char *model_path,
                                        epctx_ort_ends ends = EPCTX_ORT_ENDS_RECORD)
{
    std::vector<Ort::Node> made;
    made.reserve(count); // nothing throws between a node and its owner
    for (size_t i = 0; i < count; i++) {
        epctx_epnode node{};
        Try([&](epctx_error *error) { return epctx_epnode_from_record(&nodes[i], &node, error); });
        if (binary) {
            node.embed_mode = 0;
            if (node.main_context) node.ep_cache_context = epctx_str_of(binary);
        }
        node.onnx_model_filename = epctx_path_file(epctx_str_of(model_path));
        made.push_back(MakeNode(fused[i], epctx_ort_context_node_own(&nodes[i]), node, ends));
    }
    return made;
}

// To Compile's `out`, last of all: ORT owns the nodes of a Compile that succeeds, and no others.
inline void GiveNodes(std::vector<Ort::Node> made, OrtNode **out)
{
    for (Ort::Node &node : made)
        *out++ = node.release();
}

// ---------------------------------------------------------------------------------------- options

// What the application asks of a session, as epctx_options_read reads it in CreateEp: what is wrong
// and needed throws, with the cure in the message; what is wrong and not needed goes to ORT's log.
class Options
{
  public:
    // `own`: the names of the EP's own options, null at the end; null: it has none. A session that
    // sets another is refused.
    Options(Ort::ConstSessionOptions options, const OrtLogger *logger, const char *ep_name,
            const char *const *own = nullptr)
        : pairs_(Entries(options)), prefix_(Prefix(ep_name))
    {
        epctx_ort_log_to log{&Api(), logger, ep_name};
        const epctx_hooks hooks = epctx_ort_hooks(&log);
        epctx_entries entries{};
        entries.ep_name = ep_name;
        entries.own = own;
        Ort::GetApi().GetKeyValuePairs(pairs_, &entries.keys, &entries.values, &entries.count);
        epctx_options_init(&options_, arena_.get());
        Try([&](epctx_error *error) {
            return epctx_options_read(&options_, &entries, &hooks, error);
        });
    }
    bool On(epctx_option option) const
    {
        return epctx_option_on(&options_, option);
    }
    const char *Text(epctx_option option) const
    {
        return epctx_option_text(&options_, option);
    }
    // The value of an option of the EP's own, nullptr if the session does not set it.
    const char *Own(const char *name) const
    {
        return pairs_.GetValue((prefix_ + name).c_str());
    }

  private:
    static Ort::KeyValuePairs Entries(Ort::ConstSessionOptions options)
    {
        OrtKeyValuePairs *pairs = nullptr;
        Ort::ThrowOnError(Ort::GetApi().GetSessionOptionsConfigEntries(options, &pairs));
        return Ort::KeyValuePairs(pairs);
    }
    // ORT puts "ep.", the EP's name in lower case and a dot before its options.
    static std::string Prefix(const char *ep_name)
    {
        std::string prefix = "ep.";
        for (; *ep_name; ep_name++)
            prefix += *ep_name >= 'A' && *ep_name <= 'Z' ? static_cast<char>(*ep_name - 'A' + 'a')
                                                         : *ep_name;
        return prefix + ".";
    }

    Ort::KeyValuePairs pairs_;
    std::string prefix_;
    Arena arena_;
    epctx_options options_{};
};

} // namespace epctx

#endif
