/* epctx explain: from the text of an ORT error to its cause and its cure. */
#include "rules.h"
#include "vendors.h"

#include <stdlib.h>
#include <string.h>

/* The entry fits when every fragment occurs in the text, in any case of letters. */
typedef struct explain_entry {
    const char *fragments[3];
    const char *cause;
    const char *cure;
} explain_entry;

static const explain_entry entries[] = {
    {{"Context binary does not exist", NULL, NULL},
     "QNN does not find the context of a node. If the path in the message is empty, the model "
     "was compiled with ep.context_embed_mode 1 and has several partitions: only the "
     "first node got the context (ORT issue 31977).",
     "Compile again with ep.context_embed_mode 0. Check with: epctx lint MODEL"},
    {{"is not compatible with any execution provider", NULL, NULL},
     "No EP of the session accepts the EPContext node: the EP in its `source` is not registered, "
     "not appended to the session, or spelled differently.",
     "See what the model needs (epctx info MODEL), install and append that EP before loading."},
    {{"Could not find an implementation for EPContext", NULL, NULL},
     "No EP of the session took the EPContext node (older versions of ORT print only this): "
     "the EP in its `source` is not registered, not appended to the session, or failed to start; "
     "or another EP claimed the node and gave it back (ORT issue 27622).",
     "See what the model needs (epctx info MODEL), append that EP first, check the session's log "
     "for its warnings, or use a newer ORT, which prints the EP."},
    {{"Failed to find kernel for com.microsoft.EPContext", NULL, NULL},
     "No EP of the session took the EPContext node, and no EP has a kernel for it: contexts are "
     "loaded by the EP that its `source` names, when it compiles.",
     "See what the model needs (epctx info MODEL), and append that EP to the session."},
    {{"EPContext(", "is not a registered function/op", NULL},
     "This ORT does not know the operator: it was built without the contrib operators, is too old, "
     "or the model imports com.microsoft in a version that has no EPContext.",
     "Use a full ORT build. Check the imports with: epctx info MODEL, epctx lint MODEL (rules "
     "E003, "
     "E028, W001)"},
    {{"of operator (EPContext)", "is invalid", NULL},
     "An input or output of the node has an element type that EPContext does not allow, such as "
     "strings or 4-bit integers.",
     "Compile so that such values stay outside the partition. epctx lint MODEL (rule E026) names "
     "the value."},
    {{"No Op registered for EPContext", NULL, NULL},
     "The node lost its domain com.microsoft, for example in an editor.",
     "Set the domain again. Check with: epctx lint MODEL (rule E003)"},
    {{"Please ensure the input model is not already compiled", NULL, NULL},
     "The model to compile already has EPContext nodes, or the EP gave its EPContext "
     "node another name than the fused node's (a prefix on the node name does that).",
     "Compile the original model. EP authors: use exactly the fused node's name, and put a prefix "
     "into partition_name."},
    {{"Failed to find the EPContext node with main_context=1", NULL, NULL},
     "All nodes for this EP are secondary: the one with the context was lost, or belongs to "
     "another model of the group.",
     "Use the complete output of the compilation. Check with: epctx lint MODEL (rule E012)"},
    {{"Failed to load from EpContext model", NULL, NULL},
     "The EP could not load the context: file missing, empty, damaged, or made by another SDK.",
     "epctx ls MODEL shows the files, epctx info MODEL the SDK version to compare with."},
    {{"create context from binary", NULL, NULL},
     "QNN rejects the context (often error 5000 or 5005): it was compiled with a newer QNN SDK, or "
     "for another HTP architecture or SoC; it is damaged; or the device is out of memory.",
     "Compare SDK version and architecture (epctx info MODEL, epctx check MODEL) with the "
     "device's. Compile for this device, with an SDK that is not newer than the one on it."},
    {{"could not deserialize engine", NULL, NULL},
     "TensorRT engines load only with the TensorRT version and on the kind of GPU that they were "
     "built for (except hardware-compatible ones); or the file is damaged, or needs plugins that "
     "are not loaded.",
     "Build the engine on this machine. epctx info MODEL shows how the model was compiled, epctx "
     "ls MODEL the engine file."},
    {{"can't find engine cache", NULL, NULL},
     "The TensorRT engine that ep_cache_context names is not beside the context model.",
     "Copy it there. epctx ls MODEL shows where it is searched."},
    {{"ep_cache_context", "security purpose", NULL},
     "TensorRT accepts only a relative path without '..' in ep_cache_context. The usual cause is "
     "an absolute trt_engine_cache_path at compile time (ORT issue 22131).",
     "Compile again with a relative trt_engine_cache_path. Check with: epctx lint MODEL (rule "
     "E020)"},
    {{"escapes model directory", NULL, NULL},
     "A path in the model leaves its folder: it has '..', is absolute, or goes through a link.",
     "Put the file beside the model and store a relative path. epctx ls MODEL shows the "
     "files; for links of a Hugging Face cache, use a newer ORT."},
    {{"External data path validation failed", NULL, NULL},
     "Initializers are in a file that ORT cannot or must not open: the model came from memory and "
     "no folder was set, or the location leaves the folder.",
     "Set session.model_external_initializers_file_folder_path, or load the model from its file."},
    {{"Deserialize tensor", "failed", NULL},
     "The file with the initializers is missing, too short, or not where ORT looks.",
     "epctx ls MODEL shows where it is searched, epctx lint MODEL (rules E022, E034) the "
     "problem."},
    {{"out of bounds or can not be read in full", NULL, NULL},
     "The file with the initializers is too short: it belongs to another model, or the copy is "
     "incomplete.",
     "Copy model and data file again, together. Check with: epctx lint MODEL (rule E034)"},
    {{"File doesn't exist", NULL, NULL},
     "The model, or a file that it names, does not exist.",
     "epctx ls MODEL shows all files and where they are searched."},
    {{"context_file_path should not point to a folder", NULL, NULL},
     "ep.context_file_path must be a file name with an extension.",
     "Set it to the output model, such as out/model_ctx.onnx"},
    {{"Failed to generate EP context model since the file", "exist", NULL},
     "The output of an earlier compilation exists; session options never overwrite it.",
     "Remove or move it, or use the Compile API, which overwrites."},
    {{"Both ep_context_path and model_path are empty", NULL, NULL},
     "The model came from memory, so the name of the output cannot be derived.",
     "Set ep.context_file_path."},
    {{"loaded from bytes", "without a valid location", NULL},
     "The model came from memory, and generation was enabled without an output location.",
     "Set ep.context_file_path (or an output location of the Compile API)."},
    {{"Unable to compile any nodes", NULL, NULL},
     "No EP of the session claimed a node: it is not appended, its device is absent, or it does "
     "not support the operators.",
     "Append the EP first, check the session's log for GetCapability, and try "
     "session.disable_cpu_ep_fallback 1."},
    {{"larger than 2GB", NULL, NULL},
     "A protobuf of 2 GiB or more cannot be written: the context or all initializers are "
     "embedded.",
     "Compile with ep.context_embed_mode 0 and an external initializers file."},
    {{"exceeds maximum supported size", NULL, NULL},
     "A model of 2 GiB or more was given as bytes.",
     "Load it from its file, with contexts and initializers in files."},
    {{"Protobuf serialization failed", NULL, NULL},
     "The output could not be written: it exceeds 2 GiB, or the disk is full.",
     "Use ep.context_embed_mode 0 and an external initializers file; check the disk space."},
    {{"is not output of any previous nodes", NULL, NULL},
     "A node reads a value that the model does not have. In compiled models with If or Loop, this "
     "is "
     "an initializer that ORT dropped (issue 32131) or a body node that an EP claimed.",
     "epctx lint MODEL (rules E010, E011) names the value. EP authors: claim nothing in bodies "
     "while generating."},
    {{"initializer name is not unique", NULL, NULL},
     "ORT wrote the initializers of a body twice.",
     "Keep constants out of bodies before compiling, or remove the second copies."},
    {{"type inference failed", "EPContext", NULL},
     "An output of an EPContext node has no type: nothing infers it.",
     "Add value_info for it. epctx lint MODEL (rule E027) names the value."},
    {{"_ORT_MEM_ADDR_", NULL, NULL},
     "The model names data in the memory of the process that wrote it (issue 28158).",
     "Write it again with the initializers inside. epctx lint MODEL (rule E021) lists them."},
    {{"Compiled model is not supported by execution provider", NULL, NULL},
     "The EP rejects its compatibility string in the model: other hardware or another SDK.",
     "Compile for this machine. epctx check MODEL shows the string."},
    {{"Compiled model is suboptimal", NULL, NULL},
     "The model would run, but compiling it again is recommended, and "
     "session.fail_on_suboptimal_compiled_model is 1.",
     "Compile again, or set the option to 0. epctx check MODEL shows the string."},
    {{"Failed to validate compiled model compatibility", NULL, NULL},
     "The EP failed while checking its compatibility string.",
     "epctx check MODEL shows the string; a string of another EP version is the usual cause."},
    {{"User disabled EP compilation", NULL, NULL},
     "session.disable_model_compile is 1 and the model still has nodes that an EP would compile.",
     "Compile the model first; epctx info MODEL shows the remaining nodes."},
    {{"MODEL_REQUIRES_COMPILATION", NULL, NULL},
     "session.disable_model_compile is 1 and the model still has nodes that an EP would compile "
     "(OrtErrorCode 13).",
     "Compile the model first; epctx info MODEL shows the remaining nodes."},
    {{"fallback to CPU EP has been explicitly disabled", NULL, NULL},
     "Some nodes run only on the CPU EP, which session.disable_cpu_ep_fallback forbids.",
     "epctx info MODEL lists them under 'on the CPU'; allow the fallback or compile them too."},
    {{"returned a NULL EPContext node", NULL, NULL},
     "For EP authors: with ep.context_enable 1, Compile must fill every entry of ep_context_nodes.",
     "Create one EPContext node per fused node, at the same index."},
    {{"were not created with OrtModelEditorApi", NULL, NULL},
     "For EP authors: EPContext nodes must come from OrtModelEditorApi::CreateNode.",
     "Create them there; never release them yourself."},
    {{"Weightless mode requested", NULL, NULL},
     "ep.enable_weightless is 1, but the EP does not support it on this device.",
     "Set it to 0, or use an EP whose device metadata has weightless_support."},
    {{"Duplicate graph names detect across sessions", NULL, NULL},
     "Two models of a group that share contexts have graphs of the same name.",
     "Compile with a different ep.context_node_name_prefix for each."},
    {{"Create state function failed", NULL, NULL},
     "The EP failed to create the state of a compiled graph; ORT drops its message.",
     "Find the message in the session's log, at a more verbose level."},
    {{"Protobuf parsing failed", NULL, NULL},
     "The file is not an ONNX model, or is incomplete.",
     "epctx info MODEL shows the problem, and recognizes git-lfs pointers and archives."},
    {{"Unsupported model IR version", NULL, NULL},
     "The model was written by a newer ORT or ONNX than the one that loads it.",
     "Use a newer ORT; compiled models have the highest version of the ORT that wrote them."},
    {{"Provider", "has already been registered", NULL},
     "The same EP was appended twice, perhaps from two registrations.",
     "Append it once."},
    {{"has invalid ort_version_supported", NULL, NULL},
     "For EP authors: OrtEp.ort_version_supported must be ORT_API_VERSION of the headers.",
     "Set it, and zero the rest of the struct."},
    {{"set nodes that cannot be fused together", NULL, NULL},
     "The EP's partition is not convex: it depends on itself through nodes outside. One such group "
     "makes ORT drop all of them.",
     "Form groups that stay free of cycles when contracted (epctx_graph_partition does)."},
    {{"The requested API version", "is not available", NULL},
     "The program or EP library was built with headers of a newer ORT than the one that runs.",
     "Use that ORT or a newer one, or build with the older headers."},
    {{"LoadLibrary failed with error", NULL, NULL},
     "Windows cannot load the EP's library: it, or a library that it needs, is not found (126) or "
     "lacks a function (127).",
     "Put the vendor's libraries on the PATH or beside the EP, in the versions the EP was built "
     "for."},
    {{"Failed to load library", NULL, NULL},
     "The EP's library, or a library that it needs, was not found. Relative paths start at ORT's "
     "folder.",
     "Register it by its absolute path; ldd shows what it needs."},
    {{"ENGINE_ERROR", NULL, NULL},
     "The device driver crashed while the context was in use (QNN: subsystem restart).",
     "Create the session again; update the driver."},
    {{"Header size mismatch", NULL, NULL},
     "The container with OpenVINO's blobs is damaged, or was written by another version of the EP.",
     "Compile again. epctx ls MODEL shows the file."},
    {{"Required file missing or empty", NULL, NULL},
     "The container with OpenVINO's blobs is damaged or incomplete.",
     "Copy model and container again, together, or compile again."},
    {{"Invalid provider_option key", NULL, NULL},
     "OpenVINO's plugin EP refuses this option: keys such as device_type, cache_dir and precision "
     "are not taken, and ep.context_* are entries of the session.",
     "Give the device by OrtEpDevice and the rest in load_config; ep.context_* go into the "
     "session's options."},
    {{"ZE_RESULT_ERROR_UNSUPPORTED_VERSION", NULL, NULL},
     "The blob comes from a compiler that is newer than the NPU's driver or firmware (0x78000002).",
     "Update the NPU's driver, or compile with the compiler of that driver."},
    {{"0x78000002", NULL, NULL},
     "The blob comes from a compiler that is newer than the NPU's driver or firmware.",
     "Update the NPU's driver, or compile with the compiler of that driver."},
    {{"ZE_RESULT_ERROR_UNKNOWN", NULL, NULL},
     "A fault inside Intel's NPU driver or compiler (0x7ffffffe).",
     "Take a newer OpenVINO and a newer NPU driver."},
    {{"Version tag does not match", NULL, NULL},
     "The TensorRT engine was built by another version of TensorRT.",
     "Build it again with the version that runs."},
    {{"incompatible device", NULL, NULL},
     "The engine was built for a GPU of another generation.",
     "Build it on this GPU, or with hardware compatibility."},
    {{"xclbin", NULL, NULL},
     "VitisAI does not find the overlay of the chip: its configuration does not cover it, or "
     "XLNX_VART_FIRMWARE is not set.",
     "Set XLNX_VART_FIRMWARE to the xclbin of the chip, or take a newer Ryzen AI software, which "
     "needs none."},
    {{"invalid unordered_map<K, T> key", NULL, NULL},
     "VitisAI: the model was compiled for another chip, or EP and model are of different versions.",
     "Compile again on this machine, with an empty cache_dir."},
    {{"key not found: profile", NULL, NULL},
     "VitisAI: the cache is of another version.",
     "Delete the folder cache_dir/cache_key and compile again."},
    {{"Failed to find available PD", NULL, NULL},
     "The DSP has no process domain with room for the context.",
     "Load fewer models at once, or split the model."},
    {{"Request feature vtcm size", NULL, NULL},
     "The binary wants more VTCM than the chip has.",
     "Compile with a smaller vtcm_mb; epctx profiles --chips lists what chips have."},
    {{"requires estimated allocation", NULL, NULL},
     "QNN: the graph is larger than 2 GB.",
     "Split the model."},
    {{"Failed to get context binary info", NULL, NULL},
     "QNN's system library cannot read the binary: it is no context binary, damaged, or made by a "
     "newer SDK.",
     "epctx info MODEL shows the SDK version; take QNN libraries that are not older."},
    {{"Unsupported HTP arch", NULL, NULL},
     "The model was compiled for a newer HTP architecture than the chip has.",
     "Compile for this chip: epctx profiles --chips lists soc_model and architecture."},
    {{"No Snapdragon SOC detected", NULL, NULL},
     "QNN's SDK is too old to know the chip, or libraries for the DSP are not found.",
     "Take a newer SDK; set ADSP_LIBRARY_PATH before the first session."},
    {{"untrusted app", NULL, NULL},
     "FastRPC does not let the application use a signed process domain.",
     "Enable the unsigned process domain of QNN, or sign the libraries."},
    {{"0x80073D3B", NULL, NULL},
     "Windows could not install the EP's package.",
     "Restart if an update is pending, let Windows Update run, and try again."},
};
#define ENTRY_COUNT (sizeof entries / sizeof entries[0])

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool has(const char *text, const char *part) {
    size_t size = strlen(part);
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (i < size && lower(text[i]) == lower(part[i])) i++;
        if (i == size) return true;
    }
    return false;
}

static bool fits(const explain_entry *entry, const char *text) {
    int i;
    for (i = 0; i < 3 && entry->fragments[i] != NULL; i++)
        if (!has(text, entry->fragments[i])) return false;
    return true;
}

static void put_entry(const explain_entry *entry, bool first) {
    int i;
    if (!first) putchar('\n');
    for (i = 0; i < 3 && entry->fragments[i] != NULL; i++)
        printf("%s\"%s\"", i > 0 ? " ... " : "", entry->fragments[i]);
    printf("\n  cause: %s\n  cure:  %s\n", entry->cause, entry->cure);
}

static void json_fragments(const explain_entry *entry) {
    int i;
    fputs("\"text\": [", stdout);
    for (i = 0; i < 3 && entry->fragments[i] != NULL; i++) {
        if (i > 0) fputs(", ", stdout);
        cli_put_json(stdout, epctx_str_of(entry->fragments[i]));
    }
    fputs("], ", stdout);
}

/* -- numbers of QNN -- */

/* Logs have them in decimal or as 0x..., and the code in the lower 16 bits. */
static bool put_number(uint64_t value, const char *digits, size_t size, bool json, bool first) {
    const uint32_t number = (uint32_t)(value & 0xffff);
    const vendor_code *code = vendor_code_of(number);
    const char *range = vendor_range_of(number);
    char meaning[120];
    if (range == NULL) return false;
    if (code != NULL)
        snprintf(meaning, sizeof meaning, "QNN error %u: %s", (unsigned)number, code->meaning);
    else
        snprintf(meaning, sizeof meaning, "QNN error %u, which is about %s", (unsigned)number,
                 range);
    if (json) {
        printf("%s\n  {\"text\": [\"%.*s\"], ", first ? "" : ",", (int)size, digits);
        cli_json_str("cause", epctx_str_of(meaning), ", ");
        cli_json_str("cure", epctx_str_of(code != NULL && code->cure != NULL ? code->cure : ""),
                     "}");
        return true;
    }
    printf("%s\"%.*s\"\n  cause: %s\n", first ? "" : "\n", (int)size, digits, meaning);
    if (code != NULL && code->cure != NULL) printf("  cure:  %s\n", code->cure);
    return true;
}

/* A text that is a number, or numbers behind words such as "QNN" and "error": those of the table.
 * Returns how many there were. */
static size_t put_numbers(const char *text, bool json, bool first) {
    const size_t most = 8;
    uint32_t seen[8];
    size_t count = 0, i;
    const char *at = text;
    while (*at != '\0' && count < most) {
        char *end;
        uint64_t value;
        bool alone, known;
        if (*at < '0' || *at > '9' || (at > text && (lower(at[-1]) >= 'a' || at[-1] == '.'))) {
            at++;
            continue;
        }
        value = strtoull(at, &end, at[0] == '0' && lower(at[1]) == 'x' ? 16 : 10);
        alone = at == text && *end == '\0';
        known = vendor_code_of((uint32_t)(value & 0xffff)) != NULL && value >= 1000;
        for (i = 0; i < count; i++) known = known && seen[i] != (uint32_t)value;
        if ((alone || (known && has(text, "qnn") && has(text, "err"))) &&
            put_number(value, at, (size_t)(end - at), json, first && count == 0))
            seen[count++] = (uint32_t)value;
        at = end;
    }
    return count;
}

static void begin_json(void) {
    cli_json_begin(stdout);
    fputs("\"entries\": [", stdout);
}

static void end_json(void) {
    fputs("\n]", stdout);
    cli_json_end(stdout);
}

static int explain(const char *text, bool json) {
    size_t i, found = 0;
    if (json) begin_json();
    for (i = 0; i < ENTRY_COUNT; i++) {
        if (!fits(&entries[i], text)) continue;
        if (json) {
            printf("%s\n  {", found > 0 ? "," : "");
            json_fragments(&entries[i]);
            cli_json_str("cause", epctx_str_of(entries[i].cause), ", ");
            cli_json_str("cure", epctx_str_of(entries[i].cure), "}");
        } else
            put_entry(&entries[i], found == 0);
        found++;
    }
    found += put_numbers(text, json, found == 0);
    if (found == 0) cli_fail_text("nothing is known about this text; try epctx lint MODEL");
    if (json) end_json();
    return found > 0 ? CLI_OK : CLI_FAILED;
}

/* TEXT may be a rule of lint, by id or name; false: it is none. */
static bool explain_rule(const char *text, bool json) {
    int rule = rule_find(epctx_str_of(text));
    epctx_rule_info info = rule_info(rule);
    if (rule == RULE_COUNT) return false;
    if (json) {
        begin_json();
        printf("\n  {\"text\": [\"%s\", \"%s\"], ", info.id, info.name);
        cli_json_str("cause", epctx_str_of(info.text), ", ");
        cli_json_str("cure", epctx_str_of(info.fix), "}");
        end_json();
    } else
        printf("%s %s\n  cause: %s\n  cure:  %s\n", info.id, info.name, info.text, info.fix);
    return true;
}

/* All of standard input, terminated; NULL when memory runs out. A log of 1 MiB is enough. */
static char *read_input(void) {
    const size_t room = (size_t)1 << 20;
    char *text = (char *)malloc(room + 1);
    size_t size = text != NULL ? fread(text, 1, room, stdin) : 0;
    size_t i;
    for (i = 0; i < size; i++)
        if (text[i] == '\0') text[i] = ' ';
    if (text != NULL) text[size] = '\0';
    return text;
}

static int run(int argc, char **argv) {
    bool json = false;
    const char *text = NULL;
    char *input;
    int code;
    const cli_option options[] = {{"--json", NULL, &json}, {NULL, NULL, NULL}};
    if (!cli_parse(&cli_explain, argc, argv, options, &text, 1)) return CLI_USAGE;
    if (explain_rule(text, json)) return CLI_OK;
    if (strcmp(text, "-") != 0) return explain(text, json);
    input = read_input();
    if (input == NULL) return cli_fail_text("out of memory");
    code = explain(input, json);
    free(input);
    return code;
}

const cli_command cli_explain = {
    "explain",
    "[--json] TEXT",
    "explain an ONNX Runtime error message or a lint rule",
    "Prints the cause and the fix. TEXT is an error message, '-' to read a log from\n"
    "standard input, a rule of `epctx lint` such as E012, or an error number of QNN\n"
    "such as 5005 or 0x138d. The exit code is 1 if no explanation is found.\n\n"
    "  --json   print one JSON array\n"
    "\nExample: epctx explain - < session.log\n",
    run,
};
