/* SPDX-License-Identifier: Apache-2.0 */
/* Tells by its exit status whether it may change its root directory. For tests alone: attack.c. */

#include <errno.h>
#include <unistd.h>

int main(void)
{
	return chroot("/") == 0 ? 0 : errno;
}
