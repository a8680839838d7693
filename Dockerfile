# The images of Howdah: `howdah` (operator, namespace servers, load engine) and
# `server` (data servers: the same binary with nfs-ganesha).
# Bases are arguments, so that a mirror, a digest or a local stand-in can take their place.
ARG GO_IMAGE=docker.io/library/golang:1.26-trixie
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot
ARG DEBIAN_IMAGE=docker.io/library/debian:trixie-slim

FROM ${DEBIAN_IMAGE} AS debian
# Nfs-ganesha's libraries come from backports, which have the ones that ganesha 9 needs. The suite is added from the image's own
# entry for trixie, so that mirrors and keys are those of the base. /etc/mtab is where ganesha looks for file systems; Docker makes
# it, containerd does not, and without it no export can be made. Licences stay in the image (/usr/share/doc/*/copyright).
RUN set -eux; \
    if [ -e /etc/apt/sources.list.d/debian.sources ]; then \
        awk 'BEGIN { RS = ""; ORS = "\n\n" } /(^|\n)Suites:[^\n]*trixie([ \n]|$)/ { sub(/(^|\n)Suites:[^\n]*/, "\nSuites: trixie-backports"); sub(/^\n/, ""); print }' \
            /etc/apt/sources.list.d/debian.sources > /etc/apt/sources.list.d/backports.sources; \
    else \
        sed -n 's/^\(deb .*\) trixie main.*/\1 trixie-backports main/p' /etc/apt/sources.list > /etc/apt/sources.list.d/backports.list; \
    fi; \
    apt-get update; \
    apt-get install --yes --no-install-recommends -t trixie-backports \
        libntirpc7.2 libacl1 libblkid1 libcap2 libuuid1 liburcu8t64 libstdc++6 libcephfs2 librados2 rsync; \
    apt-get clean; \
    find /usr/share/doc -type f ! -name copyright -delete; \
    rm -rf /var/lib/apt/lists/* /var/cache/debconf/* /var/cache/ldconfig/* /var/log/apt /var/log/dpkg.log /usr/share/man/*; \
    ln -sf /proc/self/mounts /etc/mtab; \
    mkdir -p /run/ganesha /var/lib/nfs/ganesha /volumes

# Debian's own nfs-ganesha, which signs no file handles: what tests and benchmarks compare Howdah with. No image for users has it.
FROM debian AS packaged
RUN set -eux; \
    apt-get update; \
    apt-get install --yes --no-install-recommends -t trixie-backports nfs-ganesha nfs-ganesha-vfs nfs-ganesha-ceph; \
    apt-get clean; \
    rm -rf /var/lib/apt/lists/*

# Nfs-ganesha as Howdah builds it, from the source that Debian has, with patches: internal/ganesha/build/README.md.
FROM debian AS source
RUN set -eux; \
    if [ -e /etc/apt/sources.list.d/backports.sources ]; then \
        sed -i 's/^Types:.*/Types: deb deb-src/' /etc/apt/sources.list.d/backports.sources; \
    else \
        sed 's/^deb /deb-src /' /etc/apt/sources.list.d/backports.list >> /etc/apt/sources.list.d/backports-source.list; \
    fi; \
    apt-get update; \
    apt-get install --yes --no-install-recommends -t trixie-backports \
        bison cmake dpkg-dev flex g++ gcc libacl1-dev libattr1-dev libblkid-dev libc6-dev libcap-dev libcephfs-dev libkrb5-dev \
        libnsl-dev libntirpc-dev librados-dev liburcu-dev make patch pkgconf prometheus-cpp-lite uuid-dev
COPY internal/ganesha/build /build
RUN GANESHA_WORK=/work /build/build.sh /out

FROM debian AS cephhelper
# What speaks to Ceph for the supervisor: internal/ceph/helper/README.md. It is compiled against the libraries that ganesha uses.
RUN set -eux; \
    apt-get update; \
    apt-get install --yes --no-install-recommends g++ libc6-dev librados-dev libradospp-dev libcephfs-dev nlohmann-json3-dev
COPY internal/ceph/helper /src
RUN /src/build.sh /out

# Ganesha as data servers run it. Without a key it does not start.
FROM debian AS ganesha
COPY --from=source /out /
COPY --from=cephhelper /out /

# What tests run: also a ganesha without signed file handles.
FROM ganesha AS tested
COPY --from=source /out.tests /

# The same with AddressSanitizer and UndefinedBehaviorSanitizer, and with their libraries: make fuzz-ganesha. No image for users has it.
FROM source AS sanitizedsource
RUN set -eux; \
    rm -rf /out; \
    GANESHA_WORK=/sanitized /build/build.sh /out sanitized; \
    libraries=/usr/lib/$(gcc -print-multiarch); \
    mkdir -p "/out$libraries"; \
    cp -a "$libraries"/libasan.so.* "$libraries"/libubsan.so.* "/out$libraries"

FROM ganesha AS sanitized
COPY --from=sanitizedsource /out /

# Compiled by this machine's Go, whatever processor the image is for.
FROM --platform=${BUILDPLATFORM} ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY internal internal
ARG VERSION=dev
ARG TARGETARCH
# Arguments, so that a builder can mount the caches that it has elsewhere.
ARG GOMODCACHE=/root/go/pkg/mod
ARG GOCACHE=/root/.cache/go-build
# One RUN, so that the module cache is there when the build needs it.
RUN --mount=type=cache,target=/root/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOMODCACHE=${GOMODCACHE} GOCACHE=${GOCACHE} GOFLAGS=-mod=readonly CGO_ENABLED=0 GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/howdah ./cmd/howdah

FROM ${BASE_IMAGE} AS howdah
COPY --from=build /out/howdah /usr/local/bin/howdah
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/howdah"]

FROM ganesha AS server
COPY --from=build /out/howdah /usr/local/bin/howdah
# Root, because ganesha acts on volumes as its clients' users (with Ceph the pod has another user); the pod drops all capabilities but internal/dataserver.Capabilities.
USER 0:0
EXPOSE 2049 9587 9588
ENTRYPOINT ["/usr/local/bin/howdah"]
CMD ["server"]
