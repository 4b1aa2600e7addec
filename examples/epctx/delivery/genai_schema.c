/* genai_schema.c - what ORT GenAI's parser accepts (src/config.cpp of 2026-08): as data, because it
 * grows with every version. */
#include "delivery_internal.h"
#include "core/session_keys.h"

#include <string.h>

/* An object: its name here, and its keys with what they hold: s text, n number, b boolean, S and N
 * lists of these, {x} an object x, [x] a list of them; '*' is any other key, '-' anything. */
static const char *const objects[][2] = {
    {"root", "model:{model} search:{search} speculative:{speculative} engine:{engine}"},
    {"model",
     "type:s tokenizer_dir:s vocab_size:n context_length:n pad_token_id:n eos_token_id:n "
     "eos_token_id:N bos_token_id:n decoder_start_token_id:n sep_token_id:n image_token_id:n "
     "audio_token_id:n boa_token_id:n video_token_id:n vision_start_token_id:n num_mels:n "
     "fft_size:n hop_length:n win_length:n preemph:n log_eps:n norm_eps:n subsampling_factor:n "
     "left_context:n conv_context:n pre_encode_cache_size:n sample_rate:n chunk_samples:n "
     "blank_id:n max_symbols_per_step:n left_context_samples:n right_context_samples:n "
     "bot_token_id:n eot_token_id:n bor_token_id:n eor_token_id:n tdt_durations:N "
     "encoder:{encoder} decoder:{decoder} draft:{decoder} vision:{vision} embedding:{embedding} "
     "speech:{speech} joiner:{joiner} vad:{vad} mtp:{mtp} dflash2:{block} dspark:{block}"},
    {"decoder",
     "filename:s hidden_size:n num_attention_heads:n num_hidden_layers:n num_key_value_heads:n "
     "head_size:n state_update_capacity:n conv_cache_size:n ple_token_pad_id:n "
     "session_options:{session} run_options:{texts} inputs:{decoder_inputs} "
     "outputs:{decoder_outputs} sliding_window:{window} pipeline:{stages} pipeline:[stages] "
     "layer_types:S shared_initializers:[shared] state_groups:[state_group]"},
    {"decoder_inputs",
     "input_ids:s inputs_embeds:s attention_mask:s position_ids:s past_key_names:s "
     "past_value_names:s past_key_scale_names:s past_value_scale_names:s past_names:s "
     "cross_past_key_names:s cross_past_value_names:s past_sequence_length:s "
     "current_sequence_length:s total_sequence_length:s encoder_hidden_states:s "
     "encoder_attention_mask:s rnn_states_prev:s past_key_values_length:s cache_indirection:s "
     "cumulative_sequence_lengths:s past_sequence_lengths:s block_table:s block_table_windowed:s "
     "attention_metadata:s past_conv_names:s past_recurrent_names:s past_ple_token_names:s "
     "past_ple_conv_names:s past_indexer_names:s state_update_capture_count:s "
     "state_update_active:s hidden_states:s targets:s lstm_hidden_state:s lstm_cell_state:s "
     "per_layer_inputs:s targets_length:s"},
    {"decoder_outputs",
     "logits:s present_key_names:s present_value_names:s present_key_scale_names:s "
     "present_value_scale_names:s present_names:s output_cross_qk_names:s rnn_states:s "
     "present_conv_names:s present_recurrent_names:s present_ple_token_names:s "
     "present_ple_conv_names:s present_indexer_names:s state_update_conv_value_names:s "
     "state_update_recurrent_capsule_names:s hidden_states:s aux_hidden_states:s outputs:s "
     "lstm_hidden_state:s lstm_cell_state:s outputs_length:s"},
    {"window", "window_size:n pad_value:n alignment:s slide_key_value_cache:b slide_inputs:b "
               "cache_slack:n layers:N"},
    {"stages", "*:{stage}"},
    {"stage", "filename:s run_on_prompt:b run_on_token_gen:b is_lm_head:b "
              "inherit_session_options:b reset_session_idx:n session_options:{session} "
              "run_options:{texts} output_names_forwarder:{texts} inputs:S outputs:S"},
    {"session", "log_id:s enable_profiling:s intra_op_num_threads:n inter_op_num_threads:n "
                "log_severity_level:n log_verbosity_level:n enable_cpu_mem_arena:b "
                "enable_mem_pattern:b graph_optimization_level:s custom_ops_library:s "
                "provider_options:[providers] *:s"},
    {"providers", "*:{provider}"},
    {"provider", "device_filtering_options:{filter} *:s"},
    {"filter", "hardware_device_type:s hardware_device_id:n hardware_vendor_id:n"},
    {"texts", "*:s"},
    {"shared", "name:s data_file:s offset:s length:s data_type:n shape:N"},
    {"state_group", "kind:s state_update:{state_update} layer_ids:N"},
    {"state_update", "enabled:b capacity:n key_head_count:n"},
    {"encoder", "filename:s hidden_size:n num_attention_heads:n num_hidden_layers:n "
                "num_key_value_heads:n head_size:n session_options:{session} run_options:{texts} "
                "inputs:{encoder_inputs} outputs:{encoder_outputs}"},
    {"encoder_inputs", "input_ids:s inputs_embeds:s attention_mask:s position_ids:s "
                       "audio_features:s input_lengths:s cache_last_channel:s cache_last_time:s "
                       "cache_last_channel_len:s lang_id:s"},
    {"encoder_outputs",
     "encoder_hidden_states:s encoder_outputs:s output_lengths:s cache_last_channel_next:s "
     "cache_last_time_next:s cache_last_channel_len_next:s cross_present_key_names:s "
     "cross_present_value_names:s"},
    {"mtp", "filename:s num_hidden_layers:n num_key_value_heads:n head_size:n "
            "main_hidden_states:s session_options:{session} run_options:{texts} inputs:{texts} "
            "outputs:{texts} shared_initializers:[shared]"},
    {"block", "filename:s num_hidden_layers:n num_key_value_heads:n head_size:n block_size:n "
              "num_draft_tokens:n selector_top_k:n mask_token_id:n sliding_window:n "
              "main_aux_hidden_states:s session_options:{session} run_options:{texts} "
              "inputs:{texts} outputs:{texts} shared_initializers:[shared] "
              "aux_hidden_state_layers:N"},
    {"vision", "filename:s config_filename:s adapter_filename:s spatial_merge_size:n "
               "tokens_per_second:n patch_size:n num_visual_tokens:n window_size:n "
               "num_position_embeddings:n session_options:{session} run_options:{texts} "
               "inputs:{vision_inputs} outputs:{vision_outputs} pipeline:{vision_stages} "
               "pipeline:[vision_stages]"},
    {"vision_inputs", "pixel_values:s pixel_position_ids:s image_sizes:s image_grid_thw:s "
                      "attention_mask:s pos_embed_indices:s pos_embed_weights:s vision_cos:s "
                      "vision_sin:s vision_attention_bias:s"},
    {"vision_outputs", "image_features:s"},
    {"vision_stages", "*:{vision_stage}"},
    {"vision_stage", "filename:s run_on_cpu:b session_options:{session} run_options:{texts} "
                     "inputs:S outputs:S"},
    {"speech", "filename:s config_filename:s adapter_filename:s session_options:{session} "
               "run_options:{texts} inputs:{speech_inputs} outputs:{speech_outputs}"},
    {"speech_inputs", "audio_embeds:s attention_mask:s audio_sizes:s audio_projection_mode:s"},
    {"speech_outputs", "audio_features:s"},
    {"joiner", "filename:s session_options:{session} run_options:{texts} inputs:{joiner_inputs} "
               "outputs:{joiner_outputs}"},
    {"joiner_inputs", "encoder_outputs:s decoder_outputs:s"},
    {"joiner_outputs", "logits:s"},
    {"vad", "filename:s threshold:n silence_duration_ms:n prefix_padding_ms:n "
            "session_options:{session} run_options:{texts}"},
    {"embedding", "filename:s session_options:{session} run_options:{texts} "
                  "inputs:{embedding_inputs} outputs:{embedding_outputs}"},
    {"embedding_inputs", "input_ids:s image_features:s audio_features:s"},
    {"embedding_outputs", "inputs_embeds:s per_layer_inputs:s"},
    {"search", "min_length:n max_length:n batch_size:n num_beams:n num_return_sequences:n top_k:n "
               "top_p:n temperature:n repetition_penalty:n length_penalty:n "
               "no_repeat_ngram_size:n diversity_penalty:n random_seed:n chunk_size:n "
               "do_sample:b past_present_share_buffer:b early_stopping:b blank_penalty:n"},
    {"speculative", "max_draft_tokens:n ngram_size:n ngram_chained_lookup:b min_adaptive_k:n "
                    "cooldown:b"},
    {"engine", "dynamic_batching:{dynamic} static_batching:{static}"},
    {"dynamic", "block_size:n num_blocks:n gpu_utilization_factor:n max_batch_size:n "
                "max_scheduled_tokens:n"},
    {"static", "max_batch_size:n"},
};

static epctx_str keys_of(epctx_str object) {
    size_t i;
    for (i = 0; i < sizeof objects / sizeof objects[0]; i++)
        if (epctx_str_is(object, objects[i][0])) return epctx_str_of(objects[i][1]);
    return epctx_str_of("");
}

static bool holds(const json *value, json_kind kind) {
    const json *child;
    if (value->kind != JSON_LIST) return false;
    for (child = value->first; child != NULL; child = child->next)
        if (child->kind != kind) return false;
    return true;
}

static bool fits(const json *value, char what) {
    switch (what) {
    case 's': return value->kind == JSON_STRING;
    case 'n': return value->kind == JSON_NUMBER;
    case 'b': return value->kind == JSON_BOOL;
    case 'S': return holds(value, JSON_STRING);
    case 'N': return holds(value, JSON_NUMBER);
    case '{': return value->kind == JSON_OBJECT;
    case '[': return holds(value, JSON_OBJECT);
    default: return true;
    }
}

static const char *word_of(char what) {
    switch (what) {
    case 's': return "text";
    case 'n': return "a number";
    case 'b': return "true or false";
    case 'S': return "a list of texts";
    case 'N': return "a list of numbers";
    case '{': return "an object";
    default: return "a list of objects";
    }
}

/* What a key may hold, the one that fits if there are several; false: the key is not known. */
static bool find_key(epctx_str object, const json *member, epctx_str *what) {
    epctx_str rest = keys_of(object);
    bool found = false;
    while (rest.data != NULL && rest.size > 0) {
        epctx_str kind = epctx_str_cut(&rest, ' ');
        epctx_str key = epctx_str_cut(&kind, ':');
        if (!epctx_str_eq(key, member->key) && !(epctx_str_is(key, "*") && !found)) continue;
        *what = kind;
        found = true;
        if (fits(member, kind.data[0])) return true;
    }
    return found;
}

/* Objects below that are options of sessions and providers have a rule of their own. */
static bool is_option(epctx_str object) {
    return epctx_str_is(object, "session") || epctx_str_is(object, "providers") ||
           epctx_str_is(object, "provider") || epctx_str_is(object, "filter");
}

/* `where`: names of the objects around, for messages. */
typedef struct place {
    const struct place *outer;
    epctx_str key;
} place;

static void put_place(epctx_text *text, const place *at) {
    if (at == NULL) return;
    put_place(text, at->outer);
    epctx_text_put_shown(text, at->key);
    epctx_text_put_char(text, '.');
}

/* What ORT GenAI does not know itself it passes on to ONNX Runtime. */
static void check_session_key(delivery *d, epctx_str key, const char *path) {
    const epctx_str nothing = epctx_str_of("");
    epctx_str rest = keys_of(epctx_str_of("session"));
    const bool plain = memchr(key.data, '.', key.size) == NULL;
    char word[64];
    cli_guess guess;
    const session_key_kind kind = session_key_judge(key, &guess);
    while (plain && rest.size > 0) {
        epctx_str known = epctx_str_cut(&rest, ' ');
        epctx_text text = epctx_text_of(word, sizeof word);
        known = epctx_str_cut(&known, ':');
        if (epctx_str_eq(known, key)) return;
        epctx_text_put(&text, known);
        cli_guess_word(&guess, word);
        if (guess.best == word) {
            delivery_say(d, DELIVERY_G_SESSION_KEY, nothing, "'%s%S' is no session option%s", path,
                         &key, cli_guess_hint(&guess));
            return;
        }
    }
    if (kind == SESSION_KEY_MISSPELLED || kind == SESSION_KEY_UNKNOWN) {
        delivery_say(d, DELIVERY_G_SESSION_KEY, nothing,
                     "'%s%S' is no session option of ONNX Runtime up to 1.31%s", path, &key,
                     cli_guess_hint(&guess));
    }
}

static void check_object(delivery *d, const json *object, epctx_str name, const place *at);

static void check_member(delivery *d, const json *member, epctx_str name, const place *at) {
    const int rule = is_option(name) ? DELIVERY_G_OPTIONS : DELIVERY_G_CONFIG;
    const epctx_str nothing = epctx_str_of("");
    char path[300];
    epctx_text text = epctx_text_of(path, sizeof path);
    epctx_str what;
    const json *child;
    const place here = {at, member->key};
    put_place(&text, at);
    if (epctx_str_is(name, "session")) check_session_key(d, member->key, path);
    if (!find_key(name, member, &what)) {
        /* A scalar at the top is passed over. */
        if (epctx_str_is(name, "root") && member->kind <= JSON_STRING) return;
        if (epctx_str_is(member->key, "ep_context") || epctx_str_is(member->key, "compile_options"))
            delivery_say(
                d, rule, nothing,
                "'%s%S' was proposed for ORT GenAI but is in no version: name the compiled "
                "model in filename",
                path, &member->key);
        else
            delivery_say(d, rule, nothing, "'%s%S' is no key that ORT GenAI knows", path,
                         &member->key);
    } else if (!fits(member, what.data[0])) {
        delivery_say(d, rule, nothing, "'%s%S' is not %s", path, &member->key,
                     word_of(what.data[0]));
    } else if (what.size > 2) {
        what.data++;
        what.size -= 2;
        if (member->kind == JSON_OBJECT)
            check_object(d, member, what, &here);
        else
            for (child = member->first; child != NULL; child = child->next)
                check_object(d, child, what, &here);
    }
}

static void check_object(delivery *d, const json *object, epctx_str name, const place *at) {
    const json *member;
    for (member = object->first; member != NULL; member = member->next)
        check_member(d, member, name, at);
}

void genai_check_schema(delivery *d, const json *root) {
    check_object(d, root, epctx_str_of("root"), NULL);
}

/* -- providers -- */

const char *genai_provider(epctx_str name) {
    static const char *const names[] = {"CPU",    "cuda",     "QNN",     "WebGPU",
                                        "DML",    "OpenVINO", "VitisAI", "NvTensorRtRtx",
                                        "AMDGPU", "RyzenAI"};
    const char end[] = "ExecutionProvider";
    const size_t size = sizeof end - 1;
    epctx_str tail;
    size_t i;
    if (name.size > size) {
        tail.data = name.data + name.size - size;
        tail.size = size;
        if (epctx_str_eq_nocase(tail, epctx_str_of(end))) name.size -= size;
    }
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (epctx_str_eq_nocase(name, epctx_str_of(names[i]))) return names[i];
    return NULL;
}

const char *genai_provider_of(epctx_str source) {
    static const char *const known[][2] = {
        {"qnn", "QNN"},         {"qnn_plugin", "QNN"},  {"openvino", "OpenVINO"},
        {"vitisai", "VitisAI"}, {"migraphx", "AMDGPU"}, {"nv_tensorrt_rtx", "NvTensorRtRtx"}};
    const char *profile = epctx_profile_of(source)->name;
    size_t i;
    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(profile, known[i][0]) == 0) return known[i][1];
    return genai_provider(source);
}
