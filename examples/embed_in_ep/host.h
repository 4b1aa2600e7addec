// host.h - stand-ins for the classes an execution provider inside ONNX Runtime's tree works with:
// nodes with attributes, the fused graphs given to Compile, session options, a status with a code.
// Only what acme_ep.cc uses; your EP uses the real ones.
#ifndef HOST_H
#define HOST_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace host {

using Attribute = std::variant<std::int64_t, std::string>;

struct Node {
    std::string name, op_type, domain;
    std::vector<std::string> inputs, outputs;
    std::map<std::string, Attribute> attributes;
};

// One fused node and the graph behind it, as Compile gets them.
struct FusedNodeAndGraph {
    const Node *fused = nullptr;
    std::vector<const Node *> nodes;
    std::string model_path; // empty when the model came from memory
};

using SessionOptions = std::map<std::string, std::string>;

inline std::string Get(const SessionOptions &options, const std::string &key) {
    const auto it = options.find(key);
    return it == options.end() ? std::string() : it->second;
}

// OrtErrorCode and a message; code 0 is success.
struct Status {
    int code = 0;
    std::string message;
    bool ok() const {
        return code == 0;
    }
};

} // namespace host

#endif
