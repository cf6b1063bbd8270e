/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/umem_view.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel's limits of a chunk's size (xdp_umem_reg()). */
#define CHUNK_MIN 2048
#define CHUNK_MAX 4096

/* `unit`: bytes a page of the file. All terms are bounded before they are multiplied or added. */
static bool header_fits(const struct umem_header *header, uint64_t file_bytes, uint64_t unit)
{
	uint64_t bytes;

	if (header->magic != UMEM_MAGIC || header->version != UMEM_VERSION ||
	    header->header_bytes != sizeof(*header))
		return false;
	if (header->frame_size < CHUNK_MIN || header->frame_size > CHUNK_MAX || !header->frames)
		return false;
	bytes = (uint64_t)header->frames * header->frame_size; /* below 2^44 */
	bytes = (bytes + unit - 1) / unit * unit;
	return header->frames_offset >= sizeof(*header) && header->frames_offset % unit == 0 &&
	       header->frames_offset <= file_bytes && bytes <= file_bytes - header->frames_offset;
}

int umem_view_open(struct umem_view *view, int fd)
{
	uint64_t unit = (uint64_t)sysconf(_SC_PAGESIZE);
	struct stat file;
	ssize_t len;
	void *base;

	*view = (struct umem_view){ 0 };
	if (fstat(fd, &file))
		return -errno;
	/* For a memfd of huge pages this is their size, in which it must be mapped and unmapped. */
	if (file.st_blksize > 0 && (uint64_t)file.st_blksize > unit)
		unit = (uint64_t)file.st_blksize;
	/* Not through a mapping, in which another process can cut the file short under us. */
	len = pread(fd, &view->header, sizeof(view->header), 0);
	if (len < 0)
		return -errno;
	if (!S_ISREG(file.st_mode) || len != sizeof(view->header) || file.st_size < 0 ||
	    !header_fits(&view->header, (uint64_t)file.st_size, unit))
		return -EBADMSG;
	view->frames_bytes = (uint64_t)view->header.frames * view->header.frame_size;
	view->mapped_bytes = (view->frames_bytes + unit - 1) / unit * unit;
	base = mmap(NULL, view->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    (off_t)view->header.frames_offset);
	if (base == MAP_FAILED)
		return -errno;
	view->frames = base;
	return 0;
}

void umem_view_close(struct umem_view *view)
{
	if (view->frames)
		munmap(view->frames, view->mapped_bytes);
	*view = (struct umem_view){ 0 };
}
