/* session_keys.c - see session_keys.h. */
#include "session_keys.h"

#include <string.h>

/* From onnxruntime_session_options_config_keys.h of API 29 and from the libraries 1.30.0 and
 * 1.31.1, of which there are no headers; tests/test_option.sh compares. Keys of run options
 * ("memory.") are none. */
static const session_key keys[] = {
    {"ep.context_embed_mode", 0},
    {"ep.context_enable", 0},
    {"ep.context_file_path", 0},
    {"ep.context_model_external_initializers_file_name", 0},
    {"ep.context_node_name_prefix", 0},
    {"ep.context_source_model_path", 0},
    {"ep.cuda.fpa_intb_gemm", 31},
    {"ep.cuda.fpa_intb_profile_m", 31},
    {"ep.cuda.gqa_workspace_max_total_sequence_length", 31},
    {"ep.dynamic.qnn_htp_performance_mode", 0},
    {"ep.dynamic.workload_type", 0},
    {"ep.enable_weightless", 0},
    {"ep.enable_weightless_ep_context_nodes", 0},
    {"ep.nnapi.partitioning_stop_ops", 0},
    {"ep.share_ep_contexts", 0},
    {"ep.stop_share_ep_contexts", 0},
    {"mlas.disable_kleidiai", 0},
    {"mlas.enable_gemm_fastmath_arm64_bfloat16", 0},
    {"mlas.kleidiai.conv_igemm_max_work", 0},
    {"mlas.nchwc_depthwise_sliding", 31},
    {"mlas.nchwc_pointwise_conv_max_input_channel_batch", 0},
    {"mlas.qnbit.force_fp32", 31},
    {"mlas.use_lut_gemm", 0},
    {"optimization.constant_folding_max_output_size_in_bytes", 0},
    {"optimization.disable_specified_optimizers", 0},
    {"optimization.enable_cast_chain_elimination", 0},
    {"optimization.enable_gelu_approximation", 0},
    {"optimization.enable_memory_probe_recompute_config", 0},
    {"optimization.memory_optimizer_config", 0},
    {"optimization.minimal_build_optimizations", 0},
    {"session.allow_released_opsets_only", 0},
    {"session.collect_node_memory_stats_to_file", 0},
    {"session.compile_only", 0},
    {"session.debug_layout_transformation", 0},
    {"session.disable_aot_function_inlining", 0},
    {"session.disable_cpu_ep_fallback", 0},
    {"session.disable_double_qdq_remover", 0},
    {"session.disable_model_compile", 0},
    {"session.disable_prepacking", 0},
    {"session.disable_qdq_constant_folding", 0},
    {"session.disable_quant_qdq", 0},
    {"session.dynamic_block_base", 0},
    {"session.enable_cpu_mem_arena", 0},
    {"session.enable_dq_matmulnbits_fusion", 0},
    {"session.enable_mem_pattern", 0},
    {"session.enable_moe_expert_counting", 31},
    {"session.enable_moe_expert_statistics", 31},
    {"session.enable_profiling", 0},
    {"session.enable_quant_qdq_cleanup", 0},
    {"session.enable_saved_runtime_optimizations", 0},
    {"session.execution_mode", 0},
    {"session.fail_on_suboptimal_compiled_model", 0},
    {"session.force_spinning_stop", 0},
    {"session.function_expansion_byte_limit", 31},
    {"session.function_expansion_node_limit", 31},
    {"session.gqa_value_layout", 0},
    {"session.graph_optimization_level", 0},
    {"session.graph_optimizations_loop_level", 0},
    {"session.inter_op.allow_spinning", 0},
    {"session.inter_op.spin_backoff_max", 0},
    {"session.inter_op.spin_duration_us", 0},
    {"session.inter_op_num_threads", 0},
    {"session.intra_op.allow_spinning", 0},
    {"session.intra_op.spin_backoff_max", 0},
    {"session.intra_op.spin_duration_us", 0},
    {"session.intra_op_num_threads", 0},
    {"session.intra_op_thread_affinities", 0},
    {"session.layer_assignment_settings", 0},
    {"session.load_model_format", 0},
    {"session.log_id", 0},
    {"session.log_severity_level", 0},
    {"session.log_verbosity_level", 0},
    {"session.max_shape_override", 0},
    {"session.model_external_initializers_file_folder_path", 0},
    {"session.moe_expert_counter_alpha", 31},
    {"session.moe_expert_counter_beta", 31},
    {"session.moe_expert_counter_state_file", 31},
    {"session.name_based_layer_assignment", 0},
    {"session.node_partition_config_file", 0},
    {"session.optimized_model_external_initializers_file_name", 0},
    {"session.optimized_model_external_initializers_min_size_in_bytes", 0},
    {"session.optimized_model_filepath", 0},
    {"session.prepack.enable_parallel", 31},
    {"session.qdq_matmulnbits_accuracy_level", 0},
    {"session.qdq_matmulnbits_block_size", 0},
    {"session.qdqisint8allowed", 0},
    {"session.record_ep_graph_assignment_info", 0},
    {"session.resource_cuda_partitioning_settings", 0},
    {"session.save_external_prepacked_constant_initializers", 0},
    {"session.save_model_format", 0},
    {"session.set_denormal_as_zero", 0},
    {"session.strict_shape_type_inference", 0},
    {"session.strict_workspace_verification", 31},
    {"session.use_deterministic_compute", 0},
    {"session.use_device_allocator_for_initializers", 0},
    {"session.use_env_allocators", 0},
    {"session.use_external_initializer_file_buffers_directly", 31},
    {"session.use_memory_mapped_ort_model", 0},
    {"session.use_ort_model_bytes_directly", 0},
    {"session.use_ort_model_bytes_for_initializers", 0},
    {"session.use_per_session_threads", 0},
    {"session.x64quantprecision", 0},
};
#define KEY_COUNT (sizeof keys / sizeof keys[0])

const session_key *session_key_list(size_t *count) {
    *count = KEY_COUNT;
    return keys;
}

const session_key *session_key_find(epctx_str key) {
    size_t i;
    for (i = 0; i < KEY_COUNT; i++)
        if (epctx_str_is(key, keys[i].key)) return &keys[i];
    return NULL;
}

/* The bytes up to the dot with which the name of an EP ends in "ep.NAME.option", or the first word;
 * 0: there is no dot. */
static size_t space_size(epctx_str key) {
    const size_t from = epctx_str_starts(key, "ep.") ? 3 : 0;
    const char *dot =
        (const char *)(key.size > from ? memchr(key.data + from, '.', key.size - from) : NULL);
    return dot != NULL ? (size_t)(dot - key.data) + 1 : from;
}

/* Options "ep.NAME.x" are the EP's own; only those of an EP that ORT has are compared. */
session_key_kind session_key_judge(epctx_str key, cli_guess *guess) {
    const size_t size = space_size(key);
    const bool of_ep = size > 3 && epctx_str_starts(key, "ep.");
    const char *names[KEY_COUNT + 1]; /* what follows, of the keys that begin in the same way */
    size_t count = 0;
    size_t i;
    *guess = cli_guess_of(key);
    if (session_key_find(key) != NULL) return SESSION_KEY_KNOWN;
    for (i = 0; i < KEY_COUNT; i++) {
        const bool same = size > 0 && space_size(epctx_str_of(keys[i].key)) == size &&
                          memcmp(keys[i].key, key.data, size) == 0;
        if (same) names[count++] = keys[i].key + size;
        if (same || !of_ep) cli_guess_word(guess, keys[i].key);
    }
    if (guess->best != NULL) return SESSION_KEY_MISSPELLED;
    if (count == 0) return SESSION_KEY_FOREIGN;
    names[count] = NULL;
    key.data += size;
    key.size -= size;
    guess->best = epctx_nearest_name(key, names);
    if (guess->best != NULL) guess->best -= size;
    return SESSION_KEY_UNKNOWN;
}
