// SPDX-License-Identifier: Apache-2.0
// A socket that outlives ganesha, for nfs-ganesha as Debian packages it.
//
// While no ganesha runs nobody would listen, and a client that is refused comes back after 3, 6, 12 s (Linux). So the instance manager has the
// socket, which listens all the time, and each ganesha inherits it: descriptor HOWDAH_HELD_SOCKET, for the port HOWDAH_HELD_PORT. What connects
// meanwhile waits in the kernel for the next one to accept it. This function stands in front of the one that binds, and puts the inherited socket
// in the place of the one that is to be bound, with the options that ganesha has given to that.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef int bind_socket(int socket, const struct sockaddr *address, socklen_t length);

__attribute__((visibility("default"))) bind_socket bind;

static int port_of(const struct sockaddr *address, socklen_t length)
{
	if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in))
		return ntohs(((const struct sockaddr_in *)address)->sin_port);
	if (address->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6))
		return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
	return 0;
}

static int option_of(int socket, int name)
{
	int value = -1;
	socklen_t length = sizeof(value);

	return getsockopt(socket, SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
}

static void copy_option(int from, int to, int level, int name)
{
	int value;
	socklen_t length = sizeof(value);

	if (getsockopt(from, level, name, &value, &length) == 0)
		(void)setsockopt(to, level, name, &value, length); // Connections without it serve, too.
}

// Connections inherit these from the socket that listens (alloc_socket_setopts in nfs_rpc_dispatcher_thread.c).
static void copy_options(int from, int to)
{
	copy_option(from, to, SOL_SOCKET, SO_KEEPALIVE);
	copy_option(from, to, IPPROTO_TCP, TCP_KEEPCNT);
	copy_option(from, to, IPPROTO_TCP, TCP_KEEPIDLE);
	copy_option(from, to, IPPROTO_TCP, TCP_KEEPINTVL);
}

int bind(int socket, const struct sockaddr *address, socklen_t length)
{
	static bind_socket *real;
	const char *port = getenv("HOWDAH_HELD_PORT"), *inherited = getenv("HOWDAH_HELD_SOCKET");

	if (real == NULL)
		real = (bind_socket *)dlsym(RTLD_NEXT, "bind");
	if (port != NULL && inherited != NULL && address != NULL && port_of(address, length) != 0 && port_of(address, length) == atoi(port) &&
	    option_of(socket, SO_TYPE) == SOCK_STREAM) {
		int held = atoi(inherited);

		// With another family (a node without IPv6, which one of the two did not notice) bind fails, which is told, and the next start
		// has the port for itself.
		if (option_of(held, SO_ACCEPTCONN) == 1 && option_of(held, SO_DOMAIN) == option_of(socket, SO_DOMAIN)) {
			copy_options(socket, held);
			return dup2(held, socket) < 0 ? -1 : 0;
		}
	}
	return real(socket, address, length);
}
