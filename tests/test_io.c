/* >>io: what the file back-end does when the file system refuses. */
#define _XOPEN_SOURCE 700
#include "epctx.h"
#include "temp.h"
#include "test.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[TEST_TEMP];

static char *at(const char *name)
{
    static char path[3][1000];
    static int turn;
    turn = (turn + 1) % 3;
    snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static void make_tree(void)
{
    FILE *file;
    if (!test_temp(root) || mkdir(at("sub"), 0777) != 0) abort();
    file = fopen(at("file"), "wb");
    if (file == NULL || fputs("text", file) < 0 || fclose(file) != 0) abort();
    if (mkfifo(at("pipe"), 0666) != 0 || symlink("sub", at("link")) != 0) abort();
}

static void remove_tree(void)
{
    static const char *const names[] = {"file", "second", "pipe", "link", "sub/new", "sub"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        remove(at(names[i]));
    if (rmdir(root) != 0) abort(); /* a temporary file was left behind */
}

TEST(reading)
{
    static char long_part[400];
    const epctx_io *io = epctx_io_files();
    epctx_mapping m;
    epctx_error e;
    epctx_file_info info;
    char small[4];
    memset(long_part, 'n', sizeof long_part - 1);
    make_tree();
    epctx_error_clear(&e);
    CHECK_INT(io->map_fn(NULL, NULL, at("sub"), false, &m, &e), EPCTX_ERR_IO);
    CHECK_HAS(e.message, "is a folder");
    epctx_error_clear(&e);
    CHECK_INT(io->map_fn(NULL, NULL, at("pipe"), false, &m, &e), EPCTX_ERR_IO);
    CHECK_HAS(e.message, "device or pipe");
    epctx_error_clear(&e);
    CHECK_INT(io->map_fn(NULL, NULL, at("file/below"), false, &m, &e), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(io->map_fn(NULL, NULL, at(long_part), false, &m, NULL), EPCTX_ERR_IO);
    CHECK_INT(io->stat_fn(NULL, at(long_part), &info, NULL), EPCTX_ERR_IO);
    CHECK_INT(io->canonical_fn(NULL, at("file"), small, sizeof small, NULL), EPCTX_ERR_LIMIT);
    /* Below a folder: through no link, and only what is there. */
    CHECK_INT(io->map_fn(NULL, root, "link/new", false, &m, NULL), EPCTX_ERR_PATH);
    CHECK_INT(io->map_fn(NULL, root, "sub/new", false, &m, NULL), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(io->map_fn(NULL, at("none"), "file", false, &m, NULL), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(io->map_fn(NULL, root, long_part, false, &m, NULL), EPCTX_ERR_IO);
    CHECK_INT(io->map_fn(NULL, root, "file", false, &m, NULL), EPCTX_OK);
    CHECK_MEM(m.data, m.size, "text", 4);
    io->unmap_fn(NULL, &m);
    io->unmap_fn(NULL, &m); /* twice is fine */
    remove_tree();
}

/* No descriptor left is a failure of the system, not "the file does not exist". */
TEST(no_descriptors)
{
    const epctx_io *io = epctx_io_files();
    struct rlimit before, none;
    epctx_status status;
    epctx_mapping m;
    make_tree();
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    status = io->map_fn(NULL, NULL, at("file"), false, &m, NULL);
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK_INT(status, EPCTX_ERR_IO);
    remove_tree();
}

TEST(writing)
{
    static char long_path[2 * EPCTX_PATH_MAX], nearly[EPCTX_PATH_MAX];
    const epctx_io *io = epctx_io_files();
    static epctx_io_file file;
    epctx_error e;
    make_tree();
    memset(long_path, '/', sizeof long_path - 2);
    memcpy(long_path, root, strlen(root));
    long_path[sizeof long_path - 2] = 'x';
    CHECK_INT(io->create_fn(NULL, NULL, long_path, &file, NULL), EPCTX_ERR_LIMIT);
    /* The path fits; that of a temporary file beside it would not. */
    memset(nearly, '/', sizeof nearly - 2);
    memcpy(nearly, root, strlen(root));
    nearly[sizeof nearly - 2] = 'x';
    CHECK_INT(io->create_fn(NULL, NULL, nearly, &file, NULL), EPCTX_OK);
    io->close_fn(NULL, &file);
    epctx_error_clear(&e);
    CHECK_INT(io->create_fn(NULL, NULL, at("sub"), &file, &e), EPCTX_ERR_IO);
    CHECK_HAS(e.message, "is a folder");
    CHECK_INT(io->create_fn(NULL, NULL, at("pipe"), &file, NULL), EPCTX_ERR_IO);
    CHECK_INT(io->create_fn(NULL, NULL, at("none/new"), &file, NULL), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(io->create_fn(NULL, NULL, at("file/new"), &file, NULL), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(io->remove_fn(NULL, NULL, at("none"), NULL), EPCTX_ERR_NOT_FOUND);
    /* A folder takes the name between write and commit: an error, and no temporary file. */
    CHECK_INT(io->create_fn(NULL, NULL, at("sub/new"), &file, NULL), EPCTX_OK);
    CHECK_INT(io->write_fn(NULL, &file, "x", 1, NULL), EPCTX_OK);
    CHECK_INT(mkdir(at("sub/new"), 0777), 0);
    epctx_error_clear(&e);
    CHECK_INT(io->commit_fn(NULL, &file, EPCTX_OVERWRITE_REPLACE, &e), EPCTX_ERR_IO);
    CHECK_HAS(e.message, "a regular file was expected");
    CHECK_TRUE(io->back_fn(NULL, &file));
    io->close_fn(NULL, &file);
    rmdir(at("sub/new"));
    remove_tree();
}

TEST(second_names)
{
    const epctx_io *io = epctx_io_files();
    epctx_error e;
    make_tree();
    CHECK_INT(io->link_fn(NULL, NULL, at("file"), at("second"), NULL), EPCTX_OK);
    CHECK_INT(io->link_fn(NULL, NULL, at("file"), at("second"), NULL), EPCTX_ERR_EXISTS);
    CHECK_INT(io->link_fn(NULL, NULL, at("none"), at("third"), NULL), EPCTX_ERR_NOT_FOUND);
    epctx_error_clear(&e);
    CHECK_INT(io->link_fn(NULL, NULL, at("sub"), at("third"), &e), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(e.message, "cannot have a second name");
    remove_tree();
}

int main(int argc, char **argv)
{
    RUN(reading);
    RUN(no_descriptors);
    RUN(writing);
    RUN(second_names);
    return test_end();
}
