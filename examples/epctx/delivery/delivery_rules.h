/* delivery_rules.h - the rules for whole deliveries: folders of ORT GenAI (E1.., W1..) and model
 * packages (E2.., W2..). Symbol, id, name, problem, fix, as EPCTX_RULE_LIST. */
#ifndef EPCTX_CLI_DELIVERY_RULES_H
#define EPCTX_CLI_DELIVERY_RULES_H

#define DELIVERY_RULE_LIST(X) \
    X(G_CONFIG, "E101", "genai-config", "ORT GenAI cannot read genai_config.json", \
      "correct the key or value that the message names; unknown keys make the whole load fail") \
    X(G_TYPE, "E102", "genai-type", \
      "model.type, context_length or vocab_size is missing or does not fit the models", \
      "set model.type to decoder-pipeline if there are stages, context_length above 0, and " \
      "vocab_size to the last dimension of the logits") \
    X(G_FILE, "E103", "genai-file", "a model of the configuration cannot be loaded", \
      "put the file into the folder, and name it relative to the folder") \
    X(G_PROVIDER, "E105", "genai-provider", \
      "a stage has EPContext nodes of an EP that its session options do not have", \
      "add the EP to provider_options of the stage; its options replace those of the decoder " \
      "unless inherit_session_options is true") \
    X(G_OPTIONS, "E106", "genai-options", "session or provider options that ORT GenAI rejects", \
      "use text for every option of an EP, and the names of ORT GenAI") \
    X(G_NAMES, "E107", "genai-names", \
      "names of inputs or outputs are missing or are not those of the graph", \
      "spell them as in the graph (epctx info), and list all that a stage needs") \
    X(G_WIRING, "E108", "genai-wiring", \
      "a stage reads a value that no earlier stage of the same phase makes, or of another type", \
      "let an earlier stage output it, under this name or by output_names_forwarder") \
    X(G_WINDOW, "E109", "genai-window", \
      "the fixed sequence length of a model fits neither the sliding window nor single tokens", \
      "set window_size to the sequence length of the prompt's stages; stages for tokens need 1, " \
      "and a model for both a length that is not fixed") \
    X(G_CACHE_SHAPE, "E110", "genai-cache-shape", \
      "a key or value cache is incomplete, or is one that ORT GenAI does not find", \
      "correct the names of the caches in decoder.inputs and decoder.outputs") \
    X(G_CACHE_NAMES, "E111", "genai-cache-names", \
      "the stages for prompt and tokens have different caches", \
      "compile both from one model, so that the names are the same") \
    X(G_LAYERS, "E112", "genai-layers", \
      "two stages share only some layers, or reset_session_idx is no stage", \
      "split the layers so that sets are the same or disjoint") \
    X(G_CACHE_SIZE, "E113", "genai-cache-size", \
      "a key or value cache has another shape than the configuration", \
      "correct num_key_value_heads: later versions of ORT GenAI take it from the model") \
    X(G_BINARY, "E114", "genai-binary", "a context binary is missing, empty or outside", \
      "copy the binary into the folder, beside the model that names it") \
    X(G_EMBEDDED, "E115", "genai-embedded-sharing", \
      "stages that share a context have it embedded", "move the context to a file") \
    X(G_PARTITIONS, "E116", "genai-partitions", \
      "the nodes of a model and the context that they name do not fit", \
      "keep one primary node for each binary and model; compile all stages together again") \
    X(G_GRAPH_NAMES, "E117", "genai-graph-names", "two stages have a QNN graph of the same name", \
      "compile each with its own ep.context_node_name_prefix: ORT GenAI shares one workspace") \
    X(G_BACKEND_PATH, "E119", "genai-absolute-path", "an option is an absolute path", \
      "use backend_type, or a file name") \
    X(G_OPENVINO, "E121", "genai-openvino", "what OpenVINO needs is missing", \
      "deliver the .xml with its .bin, and set lengths above 0") \
    X(G_GENIE, "E122", "genai-genie", "what Genie needs is missing", \
      "deliver the .dlc and tmp*.json, and set genie_model of the EP") \
    X(P_SCHEMA, "E201", "package-schema", "ORT cannot read a JSON file of the model package", \
      "correct the key or value that the message names; unknown keys are rejected") \
    X(P_EMPTY, "E202", "package-empty", "the package has no variant", "add a variant") \
    X(P_FOLDER, "E203", "package-folder", "the folder of a variant or component does not exist", \
      "add the folder, or correct its name") \
    X(P_EP, "E204", "package-ep", "a variant without a known EP is never selected", \
      "set ep to the full name, e.g. QNNExecutionProvider, or as the contexts' source has it") \
    X(P_DEVICE, "E205", "package-device", "the device of a variant is not cpu, gpu or npu", \
      "set it to cpu, gpu or npu") \
    X(P_COMPAT, "E206", "package-compatibility", \
      "compatibility_string is not what the model stores", \
      "copy ep_compatibility_info of the EP from the model (epctx check)") \
    X(P_EXECUTOR, "E208", "package-executor", \
      "executor_info does not lead to a model, or has options that are not text", \
      "correct model_file and options in executor_info.ort") \
    X(P_SOURCE, "E209", "package-source", "a variant has contexts of another EP", \
      "move the model to a variant of its EP, or correct ep") \
    X(P_REACH, "E210", "package-reach", "a context binary is not below the folder of its model", \
      "keep model and binary in one folder or asset: EPs reject '..' and absolute paths") \
    X(P_ASSET, "E211", "package-asset", \
      "a shared asset is missing, or does not have the bytes of its name", \
      "restore the asset, or pack it again: its name is the hash of its files and their names") \
    X(P_GENAI, "E213", "package-genai", "a variant lacks genai_config.json, which others have", \
      "ORT GenAI opens the folder of the variant: give each a complete genai_config.json") \
    X(P_INTERFACE, "E215", "package-interface", \
      "variants of a component differ in their inputs or outputs", \
      "make a component of each model: an application runs whichever variant ORT selects") \
    X(G_REST, "W102", "genai-rest", "genai_config.json goes on behind its end", \
      "remove what follows the object: ORT GenAI does not read it, other readers refuse it") \
    X(G_STAGES, "W104", "genai-stages", \
      "stages have the same name, or none runs on the prompt or on token generation", \
      "name each stage once; set run_on_prompt and run_on_token_gen") \
    X(G_UNUSED, "W107", "genai-unused-name", \
      "a stage lists an input that its graph does not have", \
      "remove it from inputs, or correct it as in the graph (epctx info)") \
    X(G_CACHE_TYPES, "W111", "genai-cache-types", \
      "a cache has other types in the stages for prompt and tokens", \
      "compile both with the same quantization") \
    X(G_LM_HEAD, "W113", "genai-lm-head", "several lm_heads, or one that is not the last stage", \
      "set is_lm_head on the last stage only") \
    X(G_ORPHAN, "W114", "genai-orphan", "a context binary that no model names", "remove the file") \
    X(G_UNSHARED, "W115", "genai-sharing-lost", \
      "the stages for prompt and tokens have binaries of their own", \
      "compile them together with ep.share_ep_contexts 1: otherwise the weights exist twice") \
    X(G_DISAGREE, "W118", "genai-disagree", "stages were made for different EPs, SDKs or chips", \
      "compile all stages together") \
    X(G_BACKEND_OS, "W119", "genai-backend-path", \
      "backend_path names a library of one operating system", "use backend_type") \
    X(G_SIZE, "W120", "genai-size", "the context binaries may be too large for the NPU", \
      "split the model; a process has about 3.5 GB, a graph 2 GB") \
    X(G_OPENVINO_LENGTHS, "W121", "genai-openvino-lengths", \
      "OpenVINO's prompt and response together are shorter than max_length", \
      "raise MAX_PROMPT_LEN or MIN_RESPONSE_LEN, or lower search.max_length") \
    X(G_MANY_DLC, "W122", "genai-several-dlc", "several .dlc files, of which one is used", \
      "deliver one") \
    X(G_TOKENIZER, "W123", "genai-tokenizer", \
      "no tokenizer, or a custom operator library is missing", \
      "add tokenizer.json and tokenizer_config.json, or the library") \
    X(G_DYNAMIC, "W124", "genai-dynamic", "a stage of this EP has dynamic dimensions", \
      "fix the dimensions before compiling") \
    X(G_LEFTOVER, "W125", "genai-leftover", "an option for building is left in the delivery", \
      "remove it: users would compile again, or write files") \
    X(G_DEVICE, "W126", "genai-openvino-device", "OpenVINO has no device_type", \
      "set device_type: ORT GenAI takes the CPU otherwise") \
    X(G_SESSION_KEY, "W106", "genai-session-option", \
      "a session option that ONNX Runtime does not have: it ignores it", \
      "correct the spelling, or remove it") \
    X(P_COMPONENTS, "W202", "package-components", \
      "ORT GenAI reads packages of exactly one component", "make one package of each component") \
    X(P_EP_CASE, "W204", "package-ep-case", "the EP's name is spelled differently", \
      "spell it as the EP does: ORT compares exactly") \
    X(P_NO_DEVICE, "W205", "package-device-doubtful", \
      "the device is missing, or is not the one of the contexts", "set device") \
    X(P_NO_COMPAT, "W206", "package-no-compatibility", \
      "a variant of EPContext models without a compatibility string, or with several", \
      "set compatibility_string: a variant without one loses to any that has one") \
    X(P_DOUBLED, "W207", "package-doubled", "two variants that ORT cannot tell apart", \
      "remove one, or give them different compatibility strings") \
    X(P_ASSET_REST, "W211", "package-asset-rest", \
      "an asset that nothing uses, a link in one, or a rest of writing", "remove it") \
    X(P_FLAT, "W212", "package-flat", \
      "genai_config.json beside manifest.json: ORT GenAI ignores the package", \
      "remove one of the two") \
    X(P_SESSION_KEY, "W208", "package-session-option", \
      "a session option that ONNX Runtime does not have: it ignores it", \
      "correct the spelling, or remove it") \
    X(P_PORTABLE, "W214", "package-portable", "a portable package with a path that leads outside", \
      "keep everything inside, or set layout to installed") \
    X(G_HEADS, "I110", "genai-head-size", "head_size x heads is not hidden_size", \
      "none needed: some models are so")

enum {
#define DELIVERY_RULE_ENUM(symbol, id, name, text, fix) DELIVERY_##symbol,
    DELIVERY_RULE_LIST(DELIVERY_RULE_ENUM)
#undef DELIVERY_RULE_ENUM
        DELIVERY_RULE_COUNT
};

#endif
