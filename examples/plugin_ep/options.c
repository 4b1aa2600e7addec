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

static bool is_among(const char *const *names, const char *name) {
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

static bool is_session_option(const char *key) {
    size_t count, i;
    const epctx_option_info *list = epctx_option_list(&count);
    for (i = 0; i < count; i++)
        if (strcmp(list[i].key, key) == 0) return true;
    return false;
}

static OrtStatus *unknown_option(const ep_session *session, const char *key) {
    const ep_device *device = session->factory->device;
    const char *nearest =
        device->option_keys ? epctx_nearest_name(epctx_str_of(key), device->option_keys) : NULL;
    const char *const *lists[] = {device->option_keys, common_keys};
    char all[400] = "";
    size_t i, k;
    if (!nearest) nearest = epctx_nearest_name(epctx_str_of(key), common_keys);
    for (i = 0; i < 2; i++) {
        for (k = 0; lists[i] && lists[i][k]; k++) {
            const size_t used = strlen(all);
            snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", lists[i][k]);
        }
    }
    return epctx_ort_fail(session->api, EPCTX_ERR_ARG, "%s has no option '%s'%s%s%s: it knows %s",
                          device->ep_name, key, nearest ? ", did you mean '" : "",
                          nearest ? nearest : "", nearest ? "'?" : "", all);
}

/* A misspelled option would have no effect: of our own that is an error. Of the session's "ep.*"
 * entries a newer ORT may know more than epctx.h, so these are warned about. */
OrtStatus *ep_options_check(const ep_session *session) {
    const char *const *keys = NULL, *const *values = NULL;
    epctx_options scratch;
    epctx_arena arena;
    ep_options own;
    OrtStatus *status = NULL;
    size_t count = 0, i, prefix;
    ep_options_of(session, &own);
    prefix = strlen(own.prefix);
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, NULL);
    epctx_options_init(&scratch, &arena);
    session->api->ort->GetKeyValuePairs(session->config, &keys, &values, &count);
    for (i = 0; i < count && !status; i++) {
        epctx_error error;
        if (strncmp(keys[i], own.prefix, prefix) == 0) {
            const char *name = keys[i] + prefix;
            if (is_among(session->factory->device->option_keys, name)) continue;
            if (!is_among(common_keys, name)) status = unknown_option(session, name);
            continue;
        }
        epctx_error_clear(&error);
        /* ep_options_read checks the values of known keys. */
        if (is_session_option(keys[i]) ||
            epctx_options_set(&scratch, epctx_str_of(keys[i]), epctx_str_of(values[i]), &error) !=
                EPCTX_ERR_ARG)
            continue;
        epctx_ort_log(session->api, session->logger, ORT_LOGGING_LEVEL_WARNING, "%s: %s",
                      session->factory->device->ep_name, error.message);
    }
    epctx_arena_free(&arena);
    return status;
}

static const char *get_entry(void *user, const char *key) {
    const ep_session *session = (const ep_session *)user;
    return session->api->ort->GetKeyValue(session->config, key);
}

static void log_warning(void *user, epctx_log level, const char *text) {
    const ep_session *session = (const ep_session *)user;
    epctx_ort_log(session->api, session->logger,
                  level == EPCTX_LOG_WARNING ? ORT_LOGGING_LEVEL_WARNING : ORT_LOGGING_LEVEL_INFO,
                  "%s: %s", session->factory->device->ep_name, text);
}

/* What ORT and applications ask of a session, read as epctx.h reads it: values that a key does not
 * allow and options that contradict each other are errors, with the cure, if they count now. */
OrtStatus *ep_options_read(ep_session *session) {
    const epctx_options *options = &session->options;
    epctx_hooks hooks;
    epctx_error error;
    epctx_status status;
    memset(&hooks, 0, sizeof hooks);
    hooks.user = session;
    hooks.log_fn = log_warning;
    epctx_arena_init(&session->arena, NULL);
    epctx_options_init(&session->options, &session->arena);
    status = epctx_options_read(&session->options, get_entry, session, &hooks, &error);
    session->generate = epctx_option_on(options, EPCTX_OPTION_CONTEXT_ENABLE);
    session->embed = epctx_option_on(options, EPCTX_OPTION_CONTEXT_EMBED_MODE);
    session->share = epctx_option_on(options, EPCTX_OPTION_SHARE_EP_CONTEXTS);
    session->stop = epctx_option_on(options, EPCTX_OPTION_STOP_SHARE_EP_CONTEXTS);
    session->compile_only = epctx_option_on(options, EPCTX_OPTION_COMPILE_ONLY);
    session->context_path = epctx_option_text(options, EPCTX_OPTION_CONTEXT_FILE_PATH);
    session->prefix = epctx_option_text(options, EPCTX_OPTION_CONTEXT_NODE_NAME_PREFIX);
    if (status == EPCTX_OK) {
        epctx_options asked = *options;
        /* Older compile APIs do not identify themselves, and name the binary without extension. */
        if (session->api->version < EP_COMPILE_ONLY_API)
            asked.values[EPCTX_OPTION_COMPILE_ONLY] = "1";
        asked.values[EPCTX_OPTION_DISABLE_MODEL_COMPILE] = NULL; /* ORT has a code for it */
        /* The model is not known yet: Compile sees whether it came from memory. */
        status = epctx_options_check(
            &asked, session->generate ? EPCTX_PHASE_GENERATE : EPCTX_PHASE_LOAD, "model", &error);
    }
    return epctx_ort_status(session->api, status, &error);
}
