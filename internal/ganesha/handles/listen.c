// SPDX-License-Identifier: Apache-2.0
// A port that two may listen on, for nfs-ganesha as Debian packages it.
//
// While ganesha starts nobody listens, and a client that is refused comes back after 3, 6, 12 s (Linux). So the instance manager listens in
// ganesha's place until ganesha is up, which two sockets of one user may do if both say so before they are bound (SO_REUSEPORT, socket(7)).
// This function stands in front of the one that binds, and says so for the port in HOWDAH_HELD_PORT.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

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

int bind(int socket, const struct sockaddr *address, socklen_t length)
{
	static bind_socket *real;
	const char *held = getenv("HOWDAH_HELD_PORT");
	const int yes = 1;

	if (real == NULL)
		real = (bind_socket *)dlsym(RTLD_NEXT, "bind");
	if (held != NULL && address != NULL && port_of(address, length) != 0 && port_of(address, length) == atoi(held))
		(void)setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)); // If it fails, so does bind, which is told.
	return real(socket, address, length);
}
