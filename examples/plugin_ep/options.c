/* options.c - the options of a session: those of the EP, and those of ORT that concern it. */
#include "ep.h"

#include <stdio.h>

const char *ep_option_get(const ep_options *options, const char *key) {
    char full[256];
    const int length = options ? snprintf(full, sizeof full, "%s%s", options->prefix, key) : -1;
    if (length < 0 || (size_t)length >= sizeof full) return NULL;
    return options->ort->GetKeyValue(options->pairs, full);
}

epctx_status ep_option_switch(const ep_options *options, const char *key, bool *out,
                              epctx_error *error) {
    const char *value = ep_option_get(options, key);
    *out = value && strcmp(value, "1") == 0;
    if (!value || *out || strcmp(value, "0") == 0) return EPCTX_OK;
    return epctx_fail(error, EPCTX_ERR_ARG, "option %s: expected 0 or 1, found '%s'", key, value);
}

epctx_status ep_option_choice(const ep_options *options, const char *key, unsigned *out,
                              epctx_error *error) {
    static const char *const words[] = {"auto", "always", "never"};
    const char *value = ep_option_get(options, key);
    for (*out = 0; *out < 3; ++*out)
        if (strcmp(value ? value : "auto", words[*out]) == 0) return EPCTX_OK;
    return epctx_fail(error, EPCTX_ERR_ARG, "option %s: expected never, auto or always, found '%s'",
                      key, value);
}

epctx_status ep_option_number(const ep_options *options, const char *key, uint32_t low,
                              uint32_t high, uint32_t otherwise, uint32_t *out,
                              epctx_error *error) {
    const char *value = ep_option_get(options, key);
    uint64_t number = otherwise;
    if (value && (!epctx_str_number(epctx_str_of(value), &number) || number < low || number > high))
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "option %s: expected a number from %u to %u, found '%s'", key,
                          (uint64_t)low, (uint64_t)high, value);
    *out = (uint32_t)number;
    return EPCTX_OK;
}

/* ORT prefixes the options of an EP with "ep.", the EP's name in lower case, and a dot. */
static void options_init(ep_options *options, const epctx_ort_api *api,
                         const OrtKeyValuePairs *pairs, const char *ep_name) {
    size_t i;
    options->ort = api->ort;
    options->pairs = pairs;
    snprintf(options->prefix, sizeof options->prefix, "ep.%s.", ep_name);
    for (i = 0; options->prefix[i]; i++) {
        const char c = options->prefix[i];
        if (c >= 'A' && c <= 'Z') options->prefix[i] = (char)(c - 'A' + 'a');
    }
}

void ep_options_of(const ep_session *session, ep_options *out) {
    options_init(out, session->api, session->config, session->factory->device->ep_name);
}

void ep_option_key(const ep_session *session, const char *key, char *out, size_t size) {
    ep_options options;
    options_init(&options, session->api, NULL, session->factory->device->ep_name);
    snprintf(out, size, "%s%s", options.prefix, key);
}

/* Options of all EPs built from this folder. write_control_flow is for tests of ORT. */
static const char *const common_keys[] = {"device_memory_limit", "hugging_face_cache", "map_binary",
                                          "write_control_flow", NULL};

/* Those of the device, and these. */
static const char *const *all_keys(const ep_device *device, epctx_arena *arena) {
    const char *const *lists[] = {device->option_keys, common_keys};
    const char **all;
    size_t count = 0, i, k;
    for (i = 0; i < 2; i++)
        for (k = 0; lists[i] && lists[i][k]; k++) count++;
    all = (const char **)epctx_arena_array(arena, count + 1, sizeof *all);
    if (!all) return NULL;
    for (count = 0, i = 0; i < 2; i++)
        for (k = 0; lists[i] && lists[i][k]; k++) all[count++] = lists[i][k];
    return all;
}

OrtStatus *ep_options_read(ep_session *session) {
    const epctx_options *options = &session->options;
    epctx_ort_log_to log = {session->api, session->logger, session->factory->device->ep_name};
    const epctx_hooks hooks = epctx_ort_hooks(&log);
    epctx_entries entries;
    epctx_error error;
    epctx_status status;
    memset(&entries, 0, sizeof entries);
    epctx_arena_init(&session->arena, NULL);
    epctx_options_init(&session->options, &session->arena);
    session->api->ort->GetKeyValuePairs(session->config, &entries.keys, &entries.values,
                                        &entries.count);
    entries.ep_name = log.ep_name;
    entries.own = all_keys(session->factory->device, &session->arena);
    if (!entries.own) return epctx_ort_no_memory(session->api);
    status = epctx_options_read(&session->options, &entries, &hooks, &error);
    EPCTX_ORT_TRY(epctx_ort_status(session->api, status, &error));
    session->generate = epctx_option_on(options, EPCTX_OPTION_CONTEXT_ENABLE);
    session->embed = epctx_option_on(options, EPCTX_OPTION_CONTEXT_EMBED_MODE);
    session->share = epctx_option_on(options, EPCTX_OPTION_SHARE_EP_CONTEXTS);
    session->stop = epctx_option_on(options, EPCTX_OPTION_STOP_SHARE_EP_CONTEXTS);
    session->compile_only = epctx_option_on(options, EPCTX_OPTION_COMPILE_ONLY);
    session->context_path = epctx_option_text(options, EPCTX_OPTION_CONTEXT_FILE_PATH);
    session->prefix = epctx_option_text(options, EPCTX_OPTION_CONTEXT_NODE_NAME_PREFIX);
    return NULL;
}
