# Sourced by hack/demo.sh: the demo on storage.volumes, on volumes of the lab's default StorageClass.
# shellcheck shell=bash disable=SC2034 # hack/demo.sh reads them
default_lab=howdah
lab_flags=()
samples_are='kubectl apply -f config/samples'

# install_storage LAB: the lab has its StorageClass.
install_storage() { :; }

# write_samples FOLDER: what the demo applies.
write_samples() { cp config/samples/*.yaml "$1"; }
