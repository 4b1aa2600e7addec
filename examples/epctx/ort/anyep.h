/* Any vendor's EP through the real ONNX Runtime (ORT), which is opened at run time. Both work in a
 * child process (ort/), which may fail, hang or crash; the tool itself never loads them. */
#ifndef EPCTX_CLI_ANYEP_H
#define EPCTX_CLI_ANYEP_H

#include "core/options.h"
#include "core/session.h"

enum {
    ANYEP_MOST_MODELS = 1000,
    ANYEP_MOST_DEVICES = 32,
    ANYEP_MOST_DIMS = 8,
    ANYEP_MOST_EPS = 8,
    ANYEP_MOST_PASSED = 24,
    ANYEP_MOST_WARNINGS = 8
};

/* ---------------------------------------------------------------- what is asked for */

/* One --ep, with the options that belong to it. */
typedef struct anyep_ep {
    const char *given;
    /* read by anyep_read: */
    const char *library, *name; /* of the EP; NULL: it is in ORT itself, or the library's first */
    const char *registration;   /* what the library is registered as; NULL: nothing is known */
    const char **options;       /* key, value, ..., NULL */
    int device_type;            /* as ORT numbers them; -1: any */
} anyep_ep;

/* The options that every command with --ort has, as given and as read. */
typedef struct anyep_settings {
    const cli_args *args;
    const char *ort;
    anyep_ep eps[ANYEP_MOST_EPS]; /* of which the first is asked first which nodes it takes */
    size_t ep_count;
    bool verbose;
    bool exact; /* no kernels of the CPU EP that saturate */
    /* read by anyep_find_ort, `ort` too, which is then the library's path: */
    const char *ort_from;  /* "option", "environment", "python", "loader" or "cache" */
    const char *ort_where; /* the Python or the cache */
    const char *passed[ANYEP_MOST_PASSED]; /* "PLACE: why it gave none" */
    size_t passed_count;
    /* read by anyep_read: */
    const char **session; /* session configuration: key, value, ..., NULL */
    const char *dim_names[ANYEP_MOST_DIMS];
    int64_t dim_values[ANYEP_MOST_DIMS];
    size_t dim_count;
    struct { /* INPUT[AXIS]=N */
        const char *input;
        uint32_t axis;
        int64_t value;
    } places[ANYEP_MOST_DIMS];
    size_t place_count;
    double time_limit;
    epctx_arena *arena;
} anyep_settings;

/* What the command line says. `args` stays where it is as long as `set` is used. */
void anyep_take(anyep_settings *set, const cli_args *args);

/* Whether one of them was given: the command then works through ORT. */
bool anyep_asked(const anyep_settings *set);
/* Reads them, but for --ort; `limit`: seconds without --timeout. On a mistake prints what is wrong:
 * the command ends with CLI_USAGE. `needs_ep`: --ep must be given. */
bool anyep_read(anyep_settings *set, epctx_arena *arena, bool needs_ep, unsigned limit);
/* Then: the ONNX Runtime of --ort, or the one that is here, which has been opened for a try. Prints
 * what is wrong: the command fails. */
bool anyep_find_ort(anyep_settings *set);
/* The same where none is no mistake: `ort` is NULL then. False: what is wrong was
 * printed. */
bool anyep_which_ort(anyep_settings *set);
/* Where it came from, in words. */
void anyep_ort_reason(const anyep_settings *set, char *out, size_t size);
/* Whether an input of one of the models has each dimension of --dim, which ORT does not tell;
 * prints what is wrong. Models that cannot be read have all. */
bool anyep_check_dims(const anyep_settings *set, const char *const *models, size_t count);
/* Whether `key` may be a session option of ONNX Runtime or an EP: neither a mistyped one of those
 * that ORT has nor an unknown one of contexts. Prints what is wrong, and of others that are named
 * like ORT's that it ignores them. */
bool anyep_is_option(const char *option, const char *key);
/* Says so when the EP is known to have no option `key`, and to ignore that. */
void anyep_judge_ep_option(const anyep_settings *set, const anyep_ep *ep, const char *option,
                           const char *key);
/* The options of all EPs, as one list; NULL: none, or no memory. */
const char **anyep_ep_options(const anyep_settings *set);
/* Adds a session or EP option that the command itself sets; false: no memory, or the user gave it,
 * too, which is told. */
bool anyep_add(anyep_settings *set, const char ***list, const char *key, const char *value);

/* ---------------------------------------------------------------- what a child does */

/* OPEN: nothing but ONNX Runtime. EXEC: another program. CALL: a function, without ONNX Runtime. */
typedef enum anyep_work {
    ANYEP_OPEN,
    ANYEP_EXEC,
    ANYEP_CALL,
    ANYEP_LIST,
    ANYEP_COMPILE,
    ANYEP_RUN
} anyep_work;

struct anyep_board;

/* One model to compile. */
typedef struct anyep_model {
    const char *source, *output; /* output: path of the context model */
} anyep_model;

/* What one child is to do. */
typedef struct anyep_job {
    const anyep_settings *set;
    anyep_work work;
    bool cpu;           /* without the EPs: ORT's own CPU EP */
    const char *folder; /* of temporary files; "log" in it is what the child and the EP print */
    const char *const *words; /* ANYEP_EXEC: the program's path, its arguments, NULL */
    /* ANYEP_CALL: what the child does; false: `text` says what went wrong. `user` is anyep_share's
     * where it has something to tell. */
    bool (*call_fn)(void *user, struct anyep_board *board);
    void *user;
    /* ANYEP_COMPILE: with more than one the EP shares its contexts. */
    const anyep_model *models;
    size_t count;
    bool embed, weightless;
    bool by_session;          /* session options instead of the compile API */
    bool keeps;               /* applications get what is compiled */
    const char *initializers; /* name of a file beside the model, or NULL */
    /* ANYEP_COMPILE and ANYEP_RUN: */
    bool require_all; /* no node is left to the CPU EP */
    int optimization; /* as ORT numbers the levels; -1: its default */
    int threads;      /* -1: as many as ORT likes */
    /* ANYEP_RUN: `model` (NULL: only the session) with inputs from the results of another run, from
     * DIR/input_<i>.bin, or random; `results` gets inputs and outputs. */
    const char *model;
    const char *inputs, *input_folder, *results;
    uint64_t seed, repeat;
    /* ANYEP_LIST: models whose compatibility strings are asked about. */
    const char *const *files;
    size_t file_count;
} anyep_job;

/* A device, as ORT lists it. */
typedef struct anyep_device {
    char ep[128], vendor[128], version[64], type[8], hardware_vendor[128];
    uint32_t vendor_id, device_id;
    bool of_ep;                                         /* --ep's */
    char metadata[2048], options[2048], hardware[1024]; /* "key=value\n..." */
    char problem[512];                                  /* why the EP cannot work on it, or "" */
} anyep_device;

/* ORT's judgement of a model's compatibility string, for the EP's device. */
typedef struct anyep_verdict {
    char text[2048];
    int verdict; /* OrtCompiledModelCompatibility; -1: the model has no string of this EP */
} anyep_verdict;

/* An EP that a session has. */
typedef struct anyep_used {
    char ep[128], vendor[128], version[64], device[8]; /* device "": it is one inside ORT */
    char driver[64]; /* os_driver_version; "": the EP does not tell */
    bool is_virtual;
    size_t nodes; /* of the session's model */
} anyep_used;

/* What a child tells, in memory that it shares with the tool. */
typedef struct anyep_board {
    char doing[512]; /* what is under way */
    bool returned;   /* the child came to its end, */
    bool ok;         /* and all went well; otherwise: */
    int code;        /* of ORT, 0: it is not ORT that says */
    char text[4096];
    bool at_model; /* ANYEP_RUN: what follows is about the model */
    char ort_version[32];
    anyep_used eps[ANYEP_MOST_EPS]; /* those of the settings; without the EPs the first is empty */
    size_t ep_count;
    char ort_path[4096];  /* of the library that was loaded */
    bool too_old;         /* ONNX Runtime */
    char libraries[8192]; /* in the folder of the first EP's own, that it loaded: a line for each */
    double compile_ms[ANYEP_MOST_MODELS];
    size_t compiled;                         /* models */
    double session_ms, first_ms, median_ms;  /* creation; first run; median of all */
    char warnings[ANYEP_MOST_WARNINGS][320]; /* of ORT and the EP, each once and cut */
    size_t warning_count, more_warnings;
    uint64_t memory;        /* most of the child's process, bytes */
    size_t nodes, ep_nodes; /* of the session's model; of them on the EPs */
    anyep_device devices[ANYEP_MOST_DEVICES];
    size_t device_count, more_devices;
    char inside[ANYEP_MOST_DEVICES][64]; /* EPs inside ORT that have no device */
    size_t inside_count;
    anyep_verdict verdicts[16];
} anyep_board;

/* How a child ended. */
typedef enum anyep_end {
    ANYEP_OK,
    ANYEP_REFUSED, /* ORT or the EP said no */
    ANYEP_CRASHED, /* a signal, `number` */
    ANYEP_EXITED,  /* the EP ended the process, exit code `number` */
    ANYEP_HUNG,    /* over the time limit */
    ANYEP_STOPPED, /* a signal ends the tool */
    ANYEP_NO_CHILD /* no process, no memory */
} anyep_end;

typedef struct anyep_result {
    anyep_end end;
    int number;
    double seconds;
    anyep_board *board; /* never NULL but for ANYEP_NO_CHILD */
    char words[5000];   /* what happened, when not ANYEP_OK */
} anyep_result;

/* Does the job in a child and waits for its end. Free the result in any case. */
void anyep_do(const anyep_job *job, anyep_result *out);
void anyep_free(anyep_result *result);
/* Memory that children share with the tool, zeros; NULL: there is none. */
void *anyep_share(size_t size);
void anyep_unshare(void *memory, size_t size);
/* Prints to standard error what happened, with the last lines of what the EP printed. */
void anyep_tell(const anyep_job *job, const anyep_result *result, const char *what);
/* Prints what ORT and the EP printed, -v. */
void anyep_print_log(const anyep_job *job);
/* The last line that they printed; false: none. */
bool anyep_last_words(const anyep_job *job, char *out, size_t size);
/* Whether it is the machine that cannot load what was made for another. */
bool anyep_needs_device(const anyep_job *job, const anyep_result *result);

/* A line of a report for each EP, with ORT, and the same as members of a JSON object: those of the
 * first EP, and of several "eps". */
void anyep_print_ep(const anyep_board *board);
void anyep_json_ep(json_writer *w, const anyep_board *board);
/* "the EP" or "the EPs" */
const char *anyep_eps_word(const anyep_board *board);

/* A new folder inside `parent` (NULL: that of temporary files), which anyep_remove removes. Until
 * then signals wait. */
bool anyep_folder(const char *parent, char *out, size_t size);
void anyep_remove(const char *folder);
/* The same at `path`, which only one process uses at a time: what a killed one left is removed. */
bool anyep_own_folder(const char *path);

/* A new folder `name` in a temporary one, and in it the path of a context model of `model`. */
bool anyep_context_path(const char *folder, const char *name, const char *model, char *out,
                        size_t size);

/* In the child (ort/work.c). */
void anyep_child(const anyep_job *job, anyep_board *board);

#endif
