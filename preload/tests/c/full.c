/* A library that replaces `write` to simulate a full disk. The files in the folder that the
 * environment variable FULL names, without its subfolders, can hold at most FULL_BYTES bytes
 * together. A write of more bytes than fit writes only those that fit, and the next write fails. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* If the descriptor leads to a file in the folder FULL, returns the number of bytes that still fit
 * into the folder. Returns -1 otherwise. */
static long bytes_left(int fd)
{
    const char *folder = getenv("FULL"), *limit = getenv("FULL_BYTES");
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (!folder || !limit || length < 0)
        return -1;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder)) || path[strlen(folder)] != '/')
        return -1;
    long left = atol(limit);
    DIR *all = opendir(folder);
    if (!all)
        return -1;
    for (struct dirent *entry; (entry = readdir(all));) {
        struct stat about;
        if (!fstatat(dirfd(all), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) && S_ISREG(about.st_mode))
            left -= about.st_size;
    }
    closedir(all);
    return left > 0 ? left : 0;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    static ssize_t (*next)(int, const void *, size_t);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "write");
    long left = bytes_left(fd);
    if (left == 0 && n > 0) {
        errno = ENOSPC;
        return -1;
    }
    return next(fd, bytes, left > 0 && (size_t)left < n ? (size_t)left : n);
}
