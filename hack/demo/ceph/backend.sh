# Sourced by hack/demo.sh: the demo on storage.ceph, with a small real Ceph in the lab and shares that Howdah makes in it.
# shellcheck shell=bash disable=SC2034 # hack/demo.sh reads them
default_lab=howdah-ceph
# Beside a data server a node has the mgr or the mon, an OSD and an MDS.
lab_flags=(--memory 2500M)
samples_are='kubectl apply: the share and the job of config/samples, and a FileServer on that Ceph (hack/demo/ceph/fileserver.gotmpl)'

# install_storage LAB: a Ceph.
install_storage() { hack/ceph.sh --lab "$1" | awk '{print "  " $0}'; }

# write_samples FOLDER: what the demo applies. The Ceph's own Secret says where it is and which account may provision.
write_samples() {
  cp config/samples/fileshare.yaml config/samples/mlperfstoragejob.yaml "$1"
  kubectl -n ceph get secret howdah-provisioner -o go-template-file=hack/demo/ceph/fileserver.gotmpl >"$1/fileserver.yaml"
}
