# Sourced by the scripts of this folder: what every build and test agrees on.
# shellcheck shell=bash
export HOWDAH_CACHE=${HOWDAH_CACHE:-/var/cache/howdah}
# CGO must be off and paths trimmed everywhere, or Go's build cache holds everything twice: what
# the tests compile is what the image, helm and the lab's programs are made of.
export CGO_ENABLED=0
export GOFLAGS=${GOFLAGS:--buildvcs=false -trimpath}

# The names that `hack/lab/lab images` gives the images of this checkout.
export HOWDAH_IMAGE=${HOWDAH_IMAGE:-howdah/howdah:dev}
export HOWDAH_SERVER_IMAGE=${HOWDAH_SERVER_IMAGE:-howdah/server:dev}
# Client pods of tests and benchmarks run this image: it has a shell, coreutils and howdah (for howdah load).
export CLIENT_IMAGE=${CLIENT_IMAGE:-$HOWDAH_SERVER_IMAGE}

# kubectl of the cluster's version, made by the lab; any other does too.
PATH=$PATH:$HOWDAH_CACHE/bin:$HOWDAH_CACHE/assets
export PATH
