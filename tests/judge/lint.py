#!/usr/bin/python3
"""Lint and the reading commands, judged by libprotobuf.

    tests/judge/lint.py EPCTX FOLDER MODELS
    tests/judge/lint.py EPCTX corpus MODELS

MODELS is the folder of genuine EPContext models. Prints the lines that
tests/run reads:

  genuine     no finding of level error in any of them, under the EP's profile
  mutations   each of them changed with libprotobuf in one place: lint names
              the rule that the change breaks, and did not before
  values      every attribute of every EPContext node, by `epctx get`, `scan`
              and `info`, equals what libprotobuf reads
  corpus      in all models of a folder scan counts libprotobuf's nodes
"""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from onnx_schema import CLASSES, ModelProto  # noqa: E402

INT, STRING, GRAPH = 2, 3, 5
KNOWN_EP = {"qnn": "qnn", "openvino": "openvino", "example_ep": "example"}


def load(path):
    with open(path, "rb") as source:
        return ModelProto.FromString(source.read())


def attr(node, name):
    return next((a for a in node.attribute if a.name == name), None)


def put(node, name, value):
    found = attr(node, name) or node.attribute.add(name=name)
    found.ClearField("i")
    found.ClearField("s")
    found.type = INT if isinstance(value, int) else STRING
    if isinstance(value, int):
        found.i = value
    else:
        found.s = value if isinstance(value, bytes) else value.encode()


def drop(node, name):
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)


def epnodes(model):
    return [n for n in model.graph.node if n.op_type == "EPContext"]


def relu(model, name, source, target):
    return model.graph.node.add(op_type="Relu", name=name, input=[source], output=[target])


def value(infos, name, elem_type, dims):
    info = infos.add(name=name)
    info.type.tensor_type.elem_type = elem_type
    for dim in dims:
        info.type.tensor_type.shape.dim.add(dim_value=dim)


def body_node(model, inner):
    """An If node with `inner` as the only node of its branch."""
    node = model.graph.node.add(op_type="If", name="if", input=[model.graph.input[0].name],
                                output=["if_out"])
    branch = node.attribute.add(name="then_branch", type=GRAPH)
    branch.g.name = "then"
    branch.g.node.add().CopyFrom(inner)


def external(model, name, location, offset=0, length=4):
    tensor = model.graph.initializer.add(name=name, data_type=1, dims=[1], data_location=1)
    for key, text in (("location", location), ("offset", str(offset)), ("length", str(length))):
        if text is not None:
            tensor.external_data.add(key=key, value=text)
    return tensor


def node_class():
    return CLASSES["NodeProto"]()


# Mutations: name -> (rule, function of model). A function returns bytes to
# append to the serialized model, or None.

def m_domain_empty(m): epnodes(m)[0].domain = ""
def m_domain_onnx(m): epnodes(m)[0].domain = "ai.onnx"
def m_main_2(m): put(epnodes(m)[0], "main_context", 2)
def m_main_negative(m): put(epnodes(m)[0], "main_context", -1)
def m_embed_7(m): put(epnodes(m)[0], "embed_mode", 7)
def m_main_text(m): put(epnodes(m)[0], "main_context", "1")
def m_source_number(m): put(epnodes(m)[0], "source", 1)
def m_cache_number(m): put(epnodes(m)[0], "ep_cache_context", 1)
def m_source_twice(m): epnodes(m)[0].attribute.add(name="source", type=STRING, s=b"Other")
def m_cache_twice(m): epnodes(m)[0].attribute.add(name="ep_cache_context", type=STRING, s=b"x")
def m_no_cache(m): put(epnodes(m)[0], "main_context", 1), put(epnodes(m)[0], "embed_mode", 1), \
    drop(epnodes(m)[0], "ep_cache_context")
def m_empty_cache(m): put(epnodes(m)[0], "embed_mode", 1), \
    put(epnodes(m)[0], "ep_cache_context", "")
def m_all_secondary(m):
    for node in epnodes(m):
        put(node, "main_context", 0)
        drop(node, "ep_cache_context")
def m_no_source(m): drop(epnodes(m)[0], "source")
def m_source_case(m): put(epnodes(m)[0], "source", "openvinoexecutionPROVIDER")
def m_path(text):
    def mutate(m):
        put(epnodes(m)[0], "embed_mode", 0)
        put(epnodes(m)[0], "main_context", 1)
        put(epnodes(m)[0], "ep_cache_context", text)
    return mutate
def m_same_name(m):
    if len(epnodes(m)) < 2: return False
    epnodes(m)[1].name = epnodes(m)[0].name
def m_no_name(m): epnodes(m)[0].name = ""
def m_value_twice(m): relu(m, "again", m.graph.input[0].name, epnodes(m)[0].output[0])
def m_ghost(m): relu(m, "late", "ghost", "late_out")
def m_ghost_in_body(m):
    inner = node_class()
    inner.op_type, inner.name = "Relu", "inner"
    inner.input.append("outer_weight")
    inner.output.append("q")
    body_node(m, inner)
def m_epnode_in_body(m):
    inner = node_class()
    inner.CopyFrom(epnodes(m)[0])
    inner.name += "_inner"
    body_node(m, inner)
def m_no_value_info(m):
    if not m.graph.value_info: return False
    del m.graph.value_info[:]
def m_string_input(m): m.graph.input[0].type.tensor_type.elem_type = 8
def m_int4_output(m): m.graph.output[0].type.tensor_type.elem_type = 22
def m_complex_input(m): m.graph.input[0].type.tensor_type.elem_type = 14
def m_sequence_input(m):
    m.graph.input[0].type.Clear()
    m.graph.input[0].type.sequence_type.elem_type.tensor_type.elem_type = 1
def m_dynamic(m): m.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
def m_custom_domain(m): relu(m, "custom", m.graph.input[0].name, "c").domain = "nobody.knows"
def m_opset_twice(m): m.opset_import.add(domain="", version=11)
def m_opset_alias(m): m.opset_import.add(domain="ai.onnx", version=11)
def m_no_com_microsoft(m):
    kept = [o for o in m.opset_import if o.domain != "com.microsoft"]
    if len(kept) == len(m.opset_import): return False
    del m.opset_import[:]
    m.opset_import.extend(kept)
def m_no_output(m): del epnodes(m)[0].output[:]
def m_lost_output(m): value(m.graph.output, "nowhere", 1, [1])
def m_initializer_twice(m):
    for _ in range(2):
        m.graph.initializer.add(name="w", data_type=1, dims=[1], raw_data=b"1234")
def m_short_tensor(m): m.graph.initializer.add(name="w", data_type=1, dims=[4], raw_data=b"1234")
def m_negative_dim(m): m.graph.initializer.add(name="w", data_type=1, dims=[-4], raw_data=b"")
def m_memory(m): external(m, "w", "*/_ORT_MEM_ADDR_/*")
def m_external_escape(m): external(m, "w", "../w.bin")
def m_external_missing(m): external(m, "w", "not_there.bin")
def m_no_location(m): external(m, "w", None)
def read(m, tensor):
    relu(m, "reader", tensor.name, "read")
def m_short_read(m): m_short_tensor(m), read(m, m.graph.initializer[-1])
def m_negative_read(m): m_negative_dim(m), read(m, m.graph.initializer[-1])
def m_escape_read(m): m_external_escape(m), read(m, m.graph.initializer[-1])
def m_missing_read(m): m_external_missing(m), read(m, m.graph.initializer[-1])
def m_nowhere_read(m): m_no_location(m), read(m, m.graph.initializer[-1])
def m_unused(m): m.graph.initializer.add(name="w", data_type=1, dims=[1], raw_data=b"1234")
def m_no_graph(m): m.ClearField("graph")
def m_ir(m): m.ir_version = 77
def m_order(m):
    relu(m, "first", "later", "q")
    relu(m, "second", m.graph.input[0].name, "later")
def m_stale(m): m.metadata_props.add(key="ep_compatibility_info.GoneExecutionProvider", value="x")
def m_compat_twice(m):
    for text in ("a", "b"):
        m.metadata_props.add(key="note", value=text)
def m_qnn_compat(m):
    m.metadata_props.add(key="ep_compatibility_info.QNNExecutionProvider", value="6:2.30")
def m_build_path(m): put(epnodes(m)[0], "onnx_model_filename", "C:\\build\\model.onnx")
def m_backslash(m): m_path("sub\\a.bin")(m)
def m_like_path(m):
    put(epnodes(m)[0], "ep_cache_context", "model_qnn.bin")
    drop(epnodes(m)[0], "embed_mode")
def m_payload_ignored(m):
    if len(epnodes(m)) < 2: return False
    put(epnodes(m)[1], "main_context", 0)
    put(epnodes(m)[1], "ep_cache_context", b"abc")
def m_reference(m):
    epnodes(m)[0].attribute.add(name="notes", type=STRING, ref_attr_name="outer")
def m_utf8(m):
    # Python's setter refuses such a name, the parser does not.
    part = CLASSES["NodeProto"].FromString(b"\x1a\x02\xff\xfe")
    epnodes(m)[0].MergeFrom(part)
def m_extra(m): put(epnodes(m)[0], "my_own_attribute", "x")
def m_no_sdk(m): drop(epnodes(m)[0], "ep_sdk_version")
def m_weightless(m):
    m.graph.initializer.add(name="w", data_type=1, dims=[1], raw_data=b"1234")
    epnodes(m)[0].input.append("w")
def m_qnn_31977(m):
    if len(epnodes(m)) < 2: return False
    put(epnodes(m)[0], "embed_mode", 1)
    put(epnodes(m)[0], "ep_cache_context", b"\0payload")
    for node in epnodes(m)[1:]:
        put(node, "main_context", 0)
        put(node, "embed_mode", 1)
        drop(node, "ep_cache_context")
def m_ov_mixed(m):
    other = m.graph.node.add()
    other.CopyFrom(epnodes(m)[0])
    other.name = "second"
    other.output[0] = "second_out"
    put(other, "embed_mode", 1)
    put(other, "ep_cache_context", b"\0payload")
def m_ov_no_embed(m): drop(epnodes(m)[0], "embed_mode")
def m_ov_no_key(m): put(epnodes(m)[0], "ep_cache_context", "mul_1_ep_ctx_ovir.bin")


def m_annotation(m):
    m.graph.quantization_annotation.add(tensor_name="gone")


def devices(m, id_, tensor):
    m.configuration.add(name="mesh", num_devices=2, device=["a", "b"])
    on = epnodes(m)[0].device_configurations.add(configuration_id=id_)
    on.sharding_spec.add(tensor_name=tensor)


def m_configuration(m): devices(m, "gone", epnodes(m)[0].output[0])
def m_sharding(m): devices(m, "mesh", "gone")


def training(m, reads):
    """w is a weight of the main graph, updated with a value of the algorithm."""
    m.graph.initializer.add(name="w", data_type=1, dims=[1], raw_data=b"1234")
    info = m.training_info.add()
    info.algorithm.node.add(op_type="Relu", input=[reads], output=["w_new"])
    value(info.algorithm.output, "w_new", 1, [1])
    return info


def m_binding_key(m): training(m, "w").update_binding.add(key="gone", value="w_new")
def m_binding_value(m): training(m, "w").update_binding.add(key="w", value="gone")
def m_binding_initial(m): training(m, "w").initialization_binding.add(key="w", value="w_new")
def m_training_value(m): training(m, "gone").update_binding.add(key="w", value="w_new")
def m_function_opset(m):
    m.opset_import.add(domain="nobody.knows", version=1)
    function = m.functions.add(name="F", domain="mine")
    function.node.add(op_type="Op", domain="nobody.knows")


def again(field):
    """A second copy of a singular field of the model, appended to its bytes."""
    def mutate(m):
        return field
    return mutate


EVERY = [
    ("domain-empty", "E003", m_domain_empty), ("domain-onnx", "E003", m_domain_onnx),
    ("main-2", "E005", m_main_2), ("main-negative", "E005", m_main_negative),
    ("embed-7", "E005", m_embed_7),
    ("main-text", "E004", m_main_text), ("source-number", "E004", m_source_number),
    ("cache-number", "E004", m_cache_number), ("source-twice", "E006", m_source_twice),
    ("cache-twice", "E006", m_cache_twice), ("no-cache", "E013", m_no_cache),
    ("empty-cache", "E013", m_empty_cache), ("no-source", "W002", m_no_source),
    ("source-case", "E017", m_source_case), ("path-empty", "E019", m_path("")),
    ("path-up", "E020", m_path("../a.bin")), ("path-up-inside", "E020", m_path("a/../../a.bin")),
    ("path-root", "E020", m_path("/etc/passwd")), ("path-drive", "E020", m_path("C:\\a.bin")),
    ("path-unc", "E020", m_path("\\\\host\\a.bin")), ("path-nul", "E020", m_path(b"a\0.bin")),
    ("path-missing", "E022", m_path("not_there.bin")), ("path-folder", "E023", m_path("folder")),
    ("path-empty-file", "E024", m_path("empty.bin")), ("path-link", "E025", m_path("link.bin")),
    ("same-name", "E007", m_same_name), ("no-name", "W010", m_no_name),
    ("value-twice", "E008", m_value_twice), ("ghost", "E010", m_ghost),
    ("ghost-in-body", "E011", m_ghost_in_body), ("epnode-in-body", "W006", m_epnode_in_body),
    ("no-value-info", "E027", m_no_value_info), ("string-input", "E026", m_string_input),
    ("int4-output", "W032", m_int4_output), ("complex-input", "E026", m_complex_input),
    ("sequence-input", "E026", m_sequence_input), ("custom-domain", "E028", m_custom_domain),
    ("opset-twice", "W027", m_opset_twice), ("opset-alias", "W027", m_opset_alias),
    ("no-com-microsoft", "W001", m_no_com_microsoft), ("no-output", "E036", m_no_output),
    ("lost-output", "E037", m_lost_output), ("initializer-twice", "W026", m_initializer_twice),
    ("short-tensor", "W030", m_short_tensor), ("negative-dim", "W030", m_negative_dim),
    ("memory-location", "E021", m_memory), ("external-escape", "W030", m_external_escape),
    ("external-missing", "W030", m_external_missing), ("no-location", "W030", m_no_location),
    ("short-read", "E046", m_short_read), ("negative-read", "E046", m_negative_read),
    ("escape-read", "E020", m_escape_read), ("missing-read", "E022", m_missing_read),
    ("nowhere-read", "E035", m_nowhere_read),
    ("unused-initializer", "I006", m_unused), ("no-graph", "E002", m_no_graph),
    ("ir-version", "E050", m_ir), ("order", "W018", m_order), ("stale-compat", "W004", m_stale),
    ("metadata-twice", "W011", m_compat_twice), ("qnn-compat", "W005", m_qnn_compat),
    ("build-path", "W008", m_build_path), ("backslash", "W007", m_backslash),
    ("like-path", "W009", m_like_path), ("reference", "W033", m_reference),
    ("utf8", "W014", m_utf8), ("extra-attribute", "I002", m_extra), ("no-sdk", "I009", m_no_sdk),
    ("weightless", "I005", m_weightless),
    ("configuration", "W020", m_configuration), ("sharding", "W021", m_sharding),
    ("binding-key", "W022", m_binding_key), ("binding-value", "W022", m_binding_value),
    ("binding-initial", "W022", m_binding_initial), ("training-value", "W023", m_training_value),
    ("function-opset", "E028", m_function_opset),
    ("annotation", "W019", m_annotation), ("second-ir-version", "W025", again(b"\x08\x08")),
    ("second-graph", "W025", again(b"\x3a\x00")),
    ("second-producer", "W025", again(b"\x12\x01x\x12\x01y")),
]
# Only where the model is of that EP: (part of source, name, rule, function).
OF_EP = [
    ("qnn", "qnn-31977", "E014", m_qnn_31977), ("qnn", "qnn-dynamic", "E030", m_dynamic),
    ("openvino", "openvino-mixed", "E015", m_ov_mixed),
    ("openvino", "openvino-no-embed-mode", "E041", m_ov_no_embed),
    ("openvino", "openvino-no-key", "E044", m_ov_no_key),
    ("miniep", "secondary-only", "E012", m_all_secondary),
    ("miniep", "payload-ignored", "W003", m_payload_ignored),
]


class Judge:
    def __init__(self, epctx, folder):
        self.epctx, self.folder = os.path.abspath(epctx), folder
        self.failed = False

    def run(self, *arguments):
        done = subprocess.run([self.epctx, *arguments], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                              check=False)
        return done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace")

    def verdict(self, name, problem):
        print(f"FAIL {name}: {problem}" if problem else f"ok {name}", flush=True)
        self.failed = self.failed or bool(problem)

    def lint(self, path, *options):
        code, out, err = self.run("lint", "--json", "--hints", *options, path)
        try:
            report = json.loads(out)
        except ValueError as error:
            return None, f"{os.path.basename(path)}: exit code {code}, {error}: {err}"
        errors = sum(f["severity"] == "error" for f in report["findings"])
        if errors != report["errors"] or code != (1 if errors else 0):
            return None, f"{os.path.basename(path)}: {errors} errors listed, " \
                         f"{report['errors']} counted, exit code {code}"
        return report["findings"], None

    def genuine(self, paths):
        problem = None
        for path in paths:
            sources = {attr(n, "source").s.decode() for n in epnodes(load(path))}
            options = [()]
            for source in sources:
                options += [("--ep", p) for word, p in KNOWN_EP.items() if word in source.lower()]
            for option in options:
                found, problem = self.lint(path, *option)
                bad = [f for f in found or [] if f["severity"] == "error"]
                if bad:
                    problem = f"{path} {option}: {bad[0]}"
                if problem:
                    self.verdict("genuine models", problem)
                    return
        self.verdict("genuine models", None)
        print(f"note lint: {len(paths)} genuine models without an error")

    def mutate(self, path, name, rule, function, *options):
        """None: does not apply here. Otherwise the problem, "" when found."""
        model = load(path)
        extra = function(model)
        if extra is False:
            return None
        target = os.path.join(os.path.dirname(path), "mutated.onnx")
        with open(target, "wb") as out:
            out.write(model.SerializeToString() + (extra if isinstance(extra, bytes) else b""))
        before, problem = self.lint(path, *options)
        after, problem2 = self.lint(target, *options)
        os.remove(target)
        if problem or problem2:
            return problem or problem2
        old = sum(f["id"] == rule for f in before)
        new = sum(f["id"] == rule for f in after)
        if new <= old:
            return f"{os.path.basename(path)}: {rule} expected, found " \
                   f"{sorted({f['id'] for f in after})}"
        return ""

    def mutations(self, paths):
        tried = 0
        rules = set()
        for name, rule, function in EVERY:
            results = [self.mutate(p, name, rule, function) for p in paths[:6] + paths[-2:]]
            results = [r for r in results if r is not None]
            wrong = next((r for r in results if r), None)
            # Rules that were broken before are no news: one model must show it.
            if wrong and any(r == "" for r in results) and rule in ("W001", "I009"):
                wrong = None
            self.verdict(f"mutation {name}", wrong or (None if results else "no model to try on"))
            tried += 1
            rules.add(rule)
        for word, name, rule, function in OF_EP:
            fitting = [p for p in paths
                       if word in attr(epnodes(load(p))[0], "source").s.decode().lower()]
            # Two EPs have this source; this is a rule of the one in ONNX Runtime's tree.
            options = ("--ep", KNOWN_EP[word]) if word in KNOWN_EP else ()
            results = [self.mutate(p, name, rule, function, *options) for p in fitting]
            results = [r for r in results if r is not None]
            wrong = next((r for r in results if r), None)
            self.verdict(f"mutation {name}", wrong or (None if results else "no model to try on"))
            tried += 1
            rules.add(rule)
        if not self.failed:
            print(f"note lint: {tried} mutations of {len(rules)} rules, each found")

    def values(self, paths):
        compared = 0
        for path in paths:
            with open(path, "rb") as source:
                data = source.read()
            model = ModelProto.FromString(data)
            _, out, _ = self.run("scan", "--json", path)
            scanned = {n["name"]: n for n in json.loads(out)["nodes"]}
            _, out, _ = self.run("info", "--json", path)
            told = {n["name"]: n for n in json.loads(out)["partitions"]}
            for node in epnodes(model):
                for a in node.attribute:
                    want = str(a.i).encode() if a.type == INT else bytes(a.s)
                    _, got, _ = self.run("get", "--node", node.name, path, a.name)
                    if got != want:
                        return f"{path}: get {node.name} {a.name} gives {got[:80]!r}"
                    compared += 1
                    for where, found in (("scan", scanned), ("info", told)):
                        value_ = found[node.name].get(a.name)
                        if isinstance(value_, dict):
                            value_ = data[value_["offset"]:value_["offset"] + value_["length"]]
                        elif isinstance(value_, str):
                            value_ = value_.encode()
                        elif isinstance(value_, int):
                            value_ = str(value_).encode()
                        if value_ is not None and value_ != want:
                            return f"{path}: {where} {node.name} {a.name} is {value_[:80]!r}"
            _, out, _ = self.run("check", "--json", path)
            entries = {e["ep"]: e["value"] for e in json.loads(out)["entries"]}
            want = {p.key[len("ep_compatibility_info."):]: p.value for p in model.metadata_props
                    if p.key.startswith("ep_compatibility_info.")}
            if entries != want:
                return f"{path}: check finds {entries}, libprotobuf {want}"
            _, out, _ = self.run("ls", "--json", path)
            names = {(f["use"], f["name"]) for f in json.loads(out)["files"]}
            want = {("context binary", attr(n, "ep_cache_context").s.decode())
                    for n in epnodes(model) if attr(n, "embed_mode").i == 0
                    and attr(n, "ep_cache_context") is not None}
            want |= {("initializers", e.value) for t in model.graph.initializer
                     for e in t.external_data if e.key == "location"}
            if not want <= names:
                return f"{path}: ls lists {names}, expected {want}"
        print(f"note {compared} attribute values of genuine models equal to libprotobuf's")
        return None


def count_nodes(nodes):
    """All nodes, with those of bodies."""
    count = 0
    for node in nodes:
        count += 1
        for a in node.attribute:
            for graph in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                count += count_nodes(graph.node)
    return count


def tensors(message):
    """Every TensorProto of a message, wherever it stands."""
    for field, content in message.ListFields():
        if field.message_type is None:
            continue
        for part in content if field.is_repeated else [content]:
            if field.message_type.name == "TensorProto":
                yield part
            yield from tensors(part)


def external_data(model):
    found = []
    for tensor in tensors(model):
        entries = {e.key: e.value for e in tensor.external_data}
        if tensor.data_location == 1:
            found.append((tensor.name, entries.get("location", ""), int(entries.get("offset", 0)),
                          int(entries["length"]) if "length" in entries else None))
    return sorted(found, key=str)


def corpus(judge, models):
    """Scan counts the nodes that libprotobuf has, in every model there is, and finds all external
    data."""
    tried = external_count = 0
    for path in models:
        model = load(path)
        want = count_nodes(model.graph.node)
        want += sum(count_nodes(f.node) for f in model.functions)
        for training in model.training_info:
            want += count_nodes(training.initialization.node)
            want += count_nodes(training.algorithm.node)
        code, out, err = judge.run("scan", "--json", path)
        if code != 0 or json.loads(out)["node_count"] != want:
            return f"{path}: libprotobuf has {want} nodes, scan says {out[-80:]!r} {err}"
        listed = sorted(((e["name"], e["location"], e["offset"], e.get("length"))
                         for e in json.loads(out)["external"]), key=str)
        if listed != external_data(model):
            return f"{path}: libprotobuf has {external_data(model)}, scan lists {listed}"
        external_count += len(listed)
        tried += 1
    print(f"note scan: node counts and {external_count} external tensors of {tried} models equal "
          "to libprotobuf's")
    return None


def all_models(folder):
    return sorted(os.path.join(base, name) for base, _, names in os.walk(folder)
                  for name in names if name.endswith(".onnx"))


def main():
    if len(sys.argv) == 4 and sys.argv[2] == "corpus":
        judge = Judge(sys.argv[1], None)
        judge.verdict("scan of the corpus", corpus(judge, all_models(sys.argv[3])))
        sys.exit(1 if judge.failed else 0)
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    epctx, folder, models = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(models, folder)
    for base, folders, names in os.walk(folder):
        os.chmod(base, 0o700)
        with open(os.path.join(base, "empty.bin"), "wb"):
            pass
        os.mkdir(os.path.join(base, "folder"))
        os.symlink("/etc/passwd", os.path.join(base, "link.bin"))
        folders[:] = [f for f in folders if f != "folder"]
    paths = all_models(folder)
    judge = Judge(epctx, folder)
    judge.genuine(paths)
    judge.mutations(paths)
    judge.verdict("values", judge.values(paths))
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if judge.failed else 0)


if __name__ == "__main__":
    main()
