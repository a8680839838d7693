#!/usr/bin/env bash
# The whole of Howdah on this machine: a lab of three nodes, the chart, the samples, and a verdict.
# Everything stays up afterwards. Running it again goes on from what is there, with a new job.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
name=${HOWDAH_DEMO_LAB:-howdah}
limit=${HOWDAH_DEMO_SECONDS:-900}

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
bytes() { numfmt --to=si --suffix=B "$1"; }

say "1. A Kubernetes of three nodes (the first time, everything is built: some 20 minutes)"
hack/lab/lab up --name "$name" --nodes 3
eval "$(hack/lab/lab env --name "$name")"
kubectl get nodes

say "2. Howdah: images, and helm upgrade --install"
hack/install.sh --lab "$name" | grep -v -e '^$' | head -8

say "3. kubectl apply -f config/samples"
# A job's spec can't change and its result stays: for a new run it must be a new job.
kubectl delete --ignore-not-found --wait -f config/samples/mlperfstoragejob.yaml
applied=$SECONDS
kubectl apply -f config/samples

# One line for each condition and each progress, KIND/NAME<tab>what<tab>value.
# shellcheck disable=SC2016 # $o is the template's
template='{{range .items}}{{$o := .}}{{with .status}}
{{- range .conditions}}{{$o.kind}}/{{$o.metadata.name}}{{"\t"}}{{.type}}{{"\t"}}{{.status}} {{.reason}}: {{.message}}{{"\n"}}{{end}}
{{- with .progress}}{{$o.kind}}/{{$o.metadata.name}}{{"\t"}}progress{{"\t"}}{{.}}{{"\n"}}{{end}}
{{- end}}{{end}}'

say "4. What happens (a line whenever a condition or the progress changes)"
declare -A seen
succeeded=Unknown
while [ "$succeeded" = Unknown ]; do
  if [ $((SECONDS - applied)) -gt "$limit" ]; then
    echo "demo: no verdict after $limit s; the last lines above say what it waits for" >&2
    kubectl get nfs,pods -o wide >&2 || true
    exit 1
  fi
  while IFS=$'\t' read -r object what value; do
    [ -n "$value" ] || continue
    if [ "$object/$what" = "${job:=MLPerfStorageJob/$(kubectl get -f config/samples/mlperfstoragejob.yaml -o jsonpath='{.metadata.name}')}/Succeeded" ]; then
      succeeded=${value%% *}
    fi
    if [ "${seen[$object $what]:-}" != "$value" ]; then
      seen[$object $what]=$value
      printf '%5d s  %-26s %-20s %.140s\n' $((SECONDS - applied)) "$object" "$what" "$value"
    fi
  done < <(kubectl get -f config/samples -o go-template="$template" 2>/dev/null)
  sleep 1
done

say "5. The verdict"
kubectl get nfs
result() { kubectl get -f config/samples/mlperfstoragejob.yaml -o go-template="$1"; }
if [ -z "$(result '{{with .status}}{{with .result}}{{.verdict}}{{end}}{{end}}')" ]; then
  echo "demo: the job ended without a result" >&2
  result '{{range .status.conditions}}{{.type}} {{.status}} {{.reason}}: {{.message}}{{"\n"}}{{end}}' >&2
  exit 1
fi
echo
result '{{.spec.workload}} on {{.status.result.accelerators}} x {{.spec.accelerator.type}}: {{.status.result.verdict}}
  {{.status.result.label}}
{{printf "  %-22s %s %%" "AU (goal 90 %)" .status.result.auPercent}}
{{printf "  %-22s %s" "samples/s" .status.result.samplesPerSecond}}
'
printf '  %-22s %s/s, %s in all\n' read \
  "$(bytes "$(result '{{printf "%.0f" .status.result.bytesPerSecond}}')")" \
  "$(bytes "$(result '{{printf "%.0f" .status.result.bytesRead}}')")"
# Numbers of JSON are floats to a template: %.0f.
result '{{range .status.result.perClient}}{{.name}} {{.nodeName}} {{printf "%.0f" .bytesPerSecond}} {{.auPercent}}{{"\n"}}{{end}}' |
  while read -r client node rate au; do
    printf '  %-22s %s/s, AU %s %%, on %s\n' "client $client" "$(bytes "$rate")" "$au" "$node"
  done
servers=$(result '{{range .status.result.perServer}}{{.name}} {{printf "%.0f %.0f" .bytesRead .bytesPerSecond}}{{"\n"}}{{end}}')
while read -r server read rate; do
  [ -n "$server" ] || continue
  printf '  %-22s %s served, %s/s\n' "server $server" "$(bytes "$read")" "$(bytes "$rate")"
done <<<"$servers"
awk '$2 > max {max = $2} NR == 1 || $2 < min {min = $2} END {if (min > 0) printf "  %-22s %.2f\n", "busiest / idlest", max / min}' <<<"$servers"
result '{{range .status.result.rules}}{{printf "  %-22s %s: %s\n" .name .state .message}}{{end}}'

say "Still running: the lab \"$name\" with everything above. Look around:"
cat <<END
  eval "\$(hack/lab/lab env --name $name)"
  kubectl get nfs -o wide
  kubectl get sharedirectories        # which server owns which directory
  hack/lab/lab status --name $name
  make lab-down NAME=$name            # remove it
END
