#!/usr/bin/env bash
# The whole of Howdah on this machine: a lab of three nodes, the chart, the samples, and a verdict.
# Everything stays up afterwards. Running it again goes on from what is there, with a new job.
#
#   hack/demo.sh            on volumes
#   hack/demo.sh ceph       on a Ceph, which is put into the lab first
#
# A storage back end is a folder of hack/demo, with what the demo needs of it.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
backend=hack/demo/${1:-volumes}/backend.sh
if [ $# -gt 1 ] || [ ! -r "$backend" ]; then
  echo "usage: hack/demo.sh [BACKEND], one of: $(cd hack/demo && echo *)" >&2
  exit 2
fi
# shellcheck source=hack/demo/volumes/backend.sh
source "$backend"
name=${HOWDAH_DEMO_LAB:-$default_lab}
# What ends a demo that will never end; on an idle machine it takes two minutes.
limit=${HOWDAH_DEMO_SECONDS:-2700}

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

samples=$(mktemp -d)
trap 'rm -rf "$samples"' EXIT

say "1. A Kubernetes of three nodes (the first time, everything is built: some 30 minutes on two cores)"
hack/lab/lab up --name "$name" --nodes 3 "${lab_flags[@]}"
eval "$(hack/lab/lab env --name "$name")"
kubectl get nodes

say "2. Howdah: images, and helm upgrade --install"
# awk reads to the end, as head would not: a closed pipe would end the installation.
hack/install.sh --lab "$name" | awk 'NF && n++ < 6'
install_storage "$name"
write_samples "$samples"

say "3. $samples_are"
# A job's spec can't change and its result stays: for a new run it must be a new job.
kubectl delete --ignore-not-found --wait -f "$samples/mlperfstoragejob.yaml"
applied=$SECONDS
kubectl apply -f "$samples"

# One line for each condition and each progress, KIND/NAME<tab>what<tab>value.
# shellcheck disable=SC2016 # $o is the template's
# Of the conditions those that sum up the others.
template='{{range .items}}{{$o := .}}{{with .status}}
{{- range .conditions}}{{if or (eq .type "Ready") (eq .type "Succeeded")}}{{$o.kind}}/{{$o.metadata.name}}{{"\t"}}{{.type}}{{"\t"}}{{.status}} {{.reason}}: {{.message}}{{"\n"}}{{end}}{{end}}
{{- with .progress}}{{$o.kind}}/{{$o.metadata.name}}{{"\t"}}progress{{"\t"}}{{.}}{{"\n"}}{{end}}
{{- end}}{{end}}'

say "4. What happens (a line whenever a condition or the progress changes)"
job=$(kubectl get -f "$samples/mlperfstoragejob.yaml" -o jsonpath='{.metadata.name}')
declare -A seen
reported=$SECONDS
succeeded=Unknown
while [ "$succeeded" = Unknown ]; do
  if [ $((SECONDS - applied)) -gt "$limit" ]; then
    echo "demo: no verdict after $limit s; the last lines above say what it waits for" >&2
    kubectl get nfs,pods -o wide >&2 || true
    exit 1
  fi
  while IFS=$'\t' read -r object what value; do
    [ -n "$value" ] || continue
    if [ "$object/$what" = "MLPerfStorageJob/$job/Succeeded" ]; then
      succeeded=${value%% *}
    fi
    if [ "${seen[$object $what]:-}" != "$value" ]; then
      seen[$object $what]=$value
      reported=$SECONDS
      latest="$object $what: $value"
      printf '%5d s  %-26s %-20s %.140s\n' $((SECONDS - applied)) "$object" "$what" "$value"
    fi
  done < <(kubectl get -f "$samples" -o go-template="$template" 2>/dev/null)
  if [ $((SECONDS - reported)) -ge 10 ]; then
    reported=$SECONDS
    printf '%5d s  still %.160s\n' $((SECONDS - applied)) "${latest:-nothing to see}"
  fi
  sleep 1
done

say "5. The verdict"
kubectl get nfs
if [ -z "$(kubectl get "mlperfstoragejob/$job" -o jsonpath='{.status.result.verdict}')" ]; then
  echo "demo: the job ended without a result" >&2
  kubectl get "mlperfstoragejob/$job" -o jsonpath='{range .status.conditions[*]}{.type} {.status} {.reason}: {.message}{"\n"}{end}' >&2
  exit 1
fi
echo
# The table that the coordinating client printed; it is in its log, too.
kubectl get configmap "$job-result" -o go-template='{{index .data "result.txt"}}'
verdict=$(kubectl get "mlperfstoragejob/$job" -o jsonpath='{.status.result.verdict}')

say "Still running: the lab \"$name\" with everything above. Look around:"
cat <<END
  eval "\$(hack/lab/lab env --name $name)"
  kubectl get nfs -o wide
  kubectl get sharedirectories        # which server owns which directory
  hack/lab/lab status --name $name
  make lab-down NAME=$name            # remove it
END
printf '\nAll of it took %d min %d s, with what had to be built.\n' $((SECONDS / 60)) $((SECONDS % 60))
if [ "$verdict" = Invalid ]; then
  say "INVALID: this machine had too little CPU to spare, so the run says nothing about Howdah (see the table). Run it again when the machine is idle."
  exit 3
fi
