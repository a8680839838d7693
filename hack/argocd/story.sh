#!/usr/bin/env bash
# What Argo CD has to do with Howdah, once through, on the cluster that KUBECONFIG names: it installs the chart and makes the storage of
# a team, by the examples of config/argocd; nothing that Howdah writes is a difference, for HOWDAH_ARGOCD_MINUTES (2; 10 is the goal)
# under load, with servers and operator killed; an edit by hand is undone; a share that is pruned keeps its data; and a benchmark that does not
# pass stops a sync. hack/argocd/run.sh runs Argo CD beside it; hack/test-argocd.sh has a lab for both. The last lines are the figures.
#
#   hack/argocd/story.sh FOLDER     the folder that git://127.0.0.1 serves; it makes the repositories "howdah" and "platform" in it
set -euo pipefail
shopt -s extglob
folder=$(cd "${1:?a folder for Git repositories}" && pwd)
cd "$(dirname "$0")/../.."
source hack/environment.sh
kustomize=$(hack/tools/build.sh kustomize)
minutes=${HOWDAH_ARGOCD_MINUTES:-2}
patience=${HOWDAH_E2E_PATIENCE:-4}
platform=$folder/platform
team="team-a"
storage="storage-$team"
figures=$folder/figures

say() { printf '\n=== %s (at %d s)\n' "$*" "$SECONDS"; }
fail() {
  echo "argocd: $*" >&2
  kubectl -n argocd get applications -o jsonpath='{range .items[*]}{.metadata.name}: {.status.sync.status} {.status.health.status}; {.status.operationState.phase} {.status.operationState.message}{"\n"}{range .status.conditions[*]}  {.type}: {.message}{"\n"}{end}{range .status.resources[?(@.status!="Synced")]}  {.kind} {.namespace}/{.name} {.status}{"\n"}{end}{end}' >&2
  kubectl get nfs,pods -A >&2
  exit 1
}
figure() { printf '%-90s %s\n' "$1" "$2" | tee -a "$figures"; }
milliseconds() { date +%s%3N; }
seconds_since() { awk -v from="$1" -v to="$(milliseconds)" 'BEGIN {printf "%.1f s", (to - from) / 1000}'; }

# record REPOSITORY MESSAGE: what is in its folder is its next commit.
record() {
  git -C "$folder/$1" add --all
  git -C "$folder/$1" -c user.name=test -c user.email=test@example.com -c commit.gpgsign=false commit --quiet --message "$2"
}
# commit MESSAGE: the same of the platform's, and Argo CD, which would look within three minutes, is asked to look at once, as a webhook does.
commit() {
  record platform "$1"
  kubectl -n argocd annotate applications --all argocd.argoproj.io/refresh=normal --overwrite >/dev/null
}
head_of() { git -C "$folder/$1" rev-parse HEAD; }

app() { kubectl -n argocd get application "$1" -o jsonpath="$2" 2>/dev/null || true; }
# until_app NAME SECONDS PATTERN [JSONPATH]: waits until what is asked of an Application (sync, health, revision) is like the pattern of case.
# Argo CD has missed that a Deployment became ready, until it compared again by itself two minutes later: every 20 s it is asked to.
until_app() {
  local name=$1 limit=$((SECONDS + $2 * patience)) pattern=$3 what=${4:-'{.status.sync.status} {.status.health.status} {.status.sync.revision}'} now last='' ask=$((SECONDS + 20))
  while :; do
    now=$(app "$name" "$what")
    [ "$now" = "$last" ] || printf '%5d s  %s: %s\n' "$SECONDS" "$name" "$now"
    last=$now
    # shellcheck disable=SC2254 # it is a pattern
    case $now in $pattern) return ;; esac
    [ "$SECONDS" -lt "$limit" ] || fail "$name was to become $pattern within $(($2 * patience)) s, and is: $now"
    if [ "$SECONDS" -ge "$ask" ]; then
      ask=$((SECONDS + 20))
      kubectl -n argocd annotate application "$name" argocd.argoproj.io/refresh=normal --overwrite >/dev/null 2>&1 || true
    fi
    sleep 1
  done
}
# until_true SECONDS COMMAND…
until_true() {
  local limit=$((SECONDS + $1 * patience))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$limit" ] || fail "never came true: $*"
    sleep 1
  done
}
# share_pod NAME CLAIM SCRIPT: a pod with the claim at /data.
share_pod() {
  kubectl -n "$team" apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  containers:
  - name: client
    image: $CLIENT_IMAGE
    imagePullPolicy: IfNotPresent
    command: [sh, -c, '$3']
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: $2}}]
END
}
# action APP NAMESPACE KIND NAME [ACTION]: does it to an object of an Application as the web pages would; without ACTION those that are offered, in
# lines with ! before what can't be chosen.
action() {
  local to="http://127.0.0.1:8080/api/v1/applications/$1/resource/actions" answer
  if [ $# -eq 4 ]; then
    answer=$(curl --silent --show-error --fail-with-body -m 20 "$to?appNamespace=argocd&namespace=$2&group=howdah.io&version=v1alpha1&kind=$3&resourceName=$4") || fail "actions of $3 $4: $answer"
    grep -o '{[^{}]*}' <<<"$answer" | sed -n -e '/"disabled":true/s/.*"name":"\([^"]*\)".*/!\1/p' -e '/"disabled":true/!s/.*"name":"\([^"]*\)".*/\1/p' | sort | tr '\n' ' '
    return
  fi
  answer=$(curl --silent --show-error --fail-with-body -m 20 -H 'Content-Type: application/json' "$to/v2" -d \
    "{\"name\":\"$1\",\"appNamespace\":\"argocd\",\"namespace\":\"$2\",\"group\":\"howdah.io\",\"version\":\"v1alpha1\",\"kind\":\"$3\",\"resourceName\":\"$4\",\"action\":\"$5\"}") \
    || fail "$5 of $3 $4: $answer"
}
loads() { kubectl -n "$team" exec load -- cat /tmp/done; }

: >"$figures"
say "two repositories: the chart as it is here, and the storage of $team"
mkdir -p "$folder/howdah/charts" "$platform/storage/$team" "$platform/gate"
cp -r charts/howdah "$folder/howdah/charts/"
git -C "$folder/howdah" init --quiet --initial-branch main
record howdah "the chart"
git -C "$platform" init --quiet --initial-branch main
sed -e 's/replicas: 3/replicas: 2/' -e 's/size: 2Gi/size: 1Gi/' config/samples/fileserver.yaml >"$platform/storage/$team/fileserver.yaml"
cp config/samples/fileshare.yaml "$platform/storage/$team/"
cat >"$platform/storage/$team/home.yaml" <<END
apiVersion: howdah.io/v1alpha1
kind: FileShare
metadata: {name: home}
spec:
  fileServerRef: {name: training}
  path: /home
  layout: Single
  mode: "0777"
END
cp config/argocd/gate.yaml "$platform/gate/"
# What is promoted only once the benchmark has passed.
cat >"$platform/gate/promoted.yaml" <<END
apiVersion: v1
kind: ConfigMap
metadata:
  name: promoted
  annotations:
    argocd.argoproj.io/hook: PostSync
    argocd.argoproj.io/hook-delete-policy: BeforeHookCreation
    argocd.argoproj.io/sync-wave: "1"
data: {release: "1"}
END
cat >"$platform/gate/release.yaml" <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: release}
data: {release: "1"}
END
record platform "storage of $team"
kubectl create namespace "$team" --dry-run=client -o yaml | kubectl apply -f -
kubectl label --overwrite namespace "$team" pod-security.kubernetes.io/enforce=privileged

say "the health checks, and the two examples of config/argocd with these repositories and images"
kubectl apply --server-side --field-manager=howdah --namespace argocd -k config/argocd/customizations
mkdir "$folder/examples"
cp config/argocd/application.yaml config/argocd/applicationset.yaml "$folder/examples"
cat >"$folder/examples/kustomization.yaml" <<END
resources: [application.yaml, applicationset.yaml]
patches:
- target: {kind: Application}
  patch: |
    - {op: replace, path: /spec/source/repoURL, value: "git://127.0.0.1/howdah"}
    - {op: add, path: /spec/source/helm/valuesObject/image, value: {repository: "${HOWDAH_IMAGE%:*}", tag: "${HOWDAH_IMAGE##*:}"}}
    - {op: add, path: /spec/source/helm/valuesObject/serverImage, value: {repository: "${HOWDAH_SERVER_IMAGE%:*}", tag: "${HOWDAH_SERVER_IMAGE##*:}"}}
- target: {kind: ApplicationSet}
  patch: |
    - {op: replace, path: /spec/generators/0/git/repoURL, value: "git://127.0.0.1/platform"}
    - {op: replace, path: /spec/template/spec/source/repoURL, value: "git://127.0.0.1/platform"}
END
started=$(milliseconds)
"$kustomize" build "$folder/examples" | kubectl apply -f -
until_app howdah 150 "Synced Healthy $(head_of howdah)"
figure "Git repository to Synced and Healthy: the chart" "$(seconds_since "$started")"
until_app "$storage" 180 "Synced Healthy $(head_of platform)"
figure "the same: a FileServer of two data servers and two shares, by the ApplicationSet" "$(seconds_since "$started")"

say "load, and a scale by a commit: 2 to 3 data servers"
# shellcheck disable=SC2016 # of the pod's shell
share_pod load unet3d 'i=0; while :; do d=/data/train/$((i % 6)); dd if=/dev/zero of=$d/load bs=64k count=8 status=none && cmp -s -n 524288 $d/load /dev/zero || exit 1; i=$((i + 1)); echo $i >/tmp/done; done'
share_pod writer home 'echo kept >/data/file'
until_true 90 kubectl -n "$team" exec load -- test -s /tmp/done
kubectl -n "$team" wait --for=jsonpath='{.status.phase}'=Succeeded pod/writer --timeout=$((60 * patience))s
kubectl -n "$team" delete pod writer
sed -i 's/replicas: 2/replicas: 3/' "$platform/storage/$team/fileserver.yaml"
started=$(milliseconds)
commit "three data servers"
until_app "$storage" 120 "Synced Healthy $(head_of platform)"
figure "a commit that scales from 2 to 3 data servers, to Synced and Healthy" "$(seconds_since "$started")"

say "$minutes minutes under load: a data server, a namespace server and the operator are killed, and Git stays as it is"
before=$(loads)
samples=$folder/samples
# Argo CD compares by itself every two minutes: it is asked to every ten samples.
sample() {
  local n=0
  while sleep 1; do
    kubectl -n argocd get applications -o jsonpath='{range .items[*]}{.metadata.name} {.status.sync.status} {.status.health.status} {.status.operationState.startedAt} {.status.reconciledAt}{"\n"}{end}'
    if [ $((n = n + 1)) -eq 10 ]; then
      n=0
      kubectl -n argocd annotate applications --all argocd.argoproj.io/refresh=normal --overwrite >/dev/null
    fi
  done
}
sample >"$samples" &
sampler=$!
trap 'kill "$sampler" 2>/dev/null || true' EXIT
for killed in data-server namespace-server operator nobody; do
  case $killed in
    data-server) kubectl -n "$team" delete pod training-1 --wait=false ;;
    namespace-server) kubectl -n "$team" delete --wait=false "$(kubectl -n "$team" get pods -l app.kubernetes.io/component=namespace-server -o name | awk 'NR == 1')" ;;
    operator) kubectl -n howdah-system delete pod --wait=false -l app.kubernetes.io/component=operator ;;
  esac
  sleep $((minutes * 15))
done
kill "$sampler"
wait "$sampler" 2>/dev/null || true
after=$(loads)
for name in howdah "$storage"; do
  read -r number synced operations looks healthy < <(awk -v app="$name" '$1 == app {n++; if ($2 == "Synced") synced++; if ($3 == "Healthy") healthy++; operations[$4]; looks[$5]}
    END {for (o in operations) k++; for (l in looks) m++; print n + 0, synced + 0, k + 0, m + 0, healthy + 0}' "$samples")
  figure "$name in $minutes minutes: samples that were Synced; Healthy; comparisons by Argo CD; syncs" \
    "$synced of $number; $healthy; $looks; $((operations - 1))"
  if [ "$number" -eq 0 ] || [ "$synced" -ne "$number" ]; then fail "$name did not stay Synced"; fi
  [ "$operations" -eq 1 ] || fail "$name was synced again, though Git is as it was"
done
[ "$after" -gt "$before" ] || fail "the load stood still: $before, $after"
figure "rounds of the load meanwhile (0.5 MB written and read back), without an error" "$((after - before))"
until_app "$storage" 120 "Synced Healthy *"

say "selfHeal: an edit by hand, of a field that Git has"
started=$(milliseconds)
kubectl -n "$team" patch fileshare unet3d --type merge -p '{"spec": {"mode": "0700"}}'
until_true 60 bash -c "! kubectl -n $team get fileshare unet3d -o jsonpath={.spec.mode} | grep -qx 0700"
figure "an edit by hand is undone after" "$(seconds_since "$started")"
until_app "$storage" 60 "Synced Healthy *"

say "actions, as Argo CD's pages do them: pause and resume"
offered=$(action "$storage" "$team" FileServer training)
[ "$offered" = "!resume pause " ] || fail "of a FileServer on volumes there is offered: $offered"
for kind in FileServer/training FileShare/unet3d; do
  action "$storage" "$team" "${kind%/*}" "${kind#*/}" pause
  until_app "$storage" 60 "Synced Suspended *"
  offered=$(action "$storage" "$team" "${kind%/*}" "${kind#*/}")
  [ "$offered" = "!pause resume " ] || fail "of a paused $kind there is offered: $offered"
  action "$storage" "$team" "${kind%/*}" "${kind#*/}" resume
  until_app "$storage" 60 "Synced Healthy *"
done
figure "a FileServer and a share paused and resumed by Argo CD's actions: Suspended, then Healthy, and Synced all the while" yes

say "prune: a share that leaves Git"
git -C "$platform" rm --quiet "storage/$team/home.yaml"
commit "no home"
until_app "$storage" 60 "OutOfSync * $(head_of platform)"
sleep 5
kubectl -n "$team" get fileshare home -o name >/dev/null || fail "the ApplicationSet says prune: false, and the share is gone"
kubectl -n argocd patch application "$storage" --type merge -p '{"operation": {"initiatedBy": {"username": "story"}, "sync": {"prune": true, "syncOptions": ["ServerSideApply=true"]}}}'
until_app "$storage" 90 "Synced Healthy $(head_of platform)"
until_true 60 bash -c "! kubectl -n $team get fileshare home"
kept=
for pod in $(kubectl -n "$team" get pods -l app.kubernetes.io/component=data-server -o name); do
  kept+=$(kubectl -n "$team" exec "$pod" -- sh -c 'cat /volumes/*/home/file 2>/dev/null || true')
done
[ "$kept" = kept ] || fail "of the pruned share's file there is: '$kept'"
git -C "$platform" checkout --quiet HEAD~1 -- "storage/$team/home.yaml"
commit "home again"
until_app "$storage" 90 "Synced Healthy $(head_of platform)"
share_pod reader home 'cat /data/file'
kubectl -n "$team" wait --for=jsonpath='{.status.phase}'=Succeeded pod/reader --timeout=$((60 * patience))s
[ "$(kubectl -n "$team" logs reader)" = kept ] || fail "a share that comes back has lost its data"
kubectl -n "$team" delete pod reader --wait=false
figure "a share that leaves Git: stays until a sync with prune; its data stays, and is there when it comes back" yes

say "a benchmark as gate"
# Nothing else on the share, and one accelerator that asks for little: the first verdict is to be that it passes.
kubectl -n "$team" delete pod load
sed -i -e 's/count: 2/count: 1/' -e 's/clients: 2/clients: 1/' -e 's/sampleSize: 100k/sampleSize: 20k/' "$platform/gate/gate.yaml"
commit "a small gate"
kubectl apply -f - <<END
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: gate, namespace: argocd}
spec:
  project: default
  source: {repoURL: git://127.0.0.1/platform, targetRevision: main, path: gate}
  destination: {server: https://kubernetes.default.svc, namespace: $team}
  syncPolicy: {automated: {selfHeal: true, prune: true}, retry: {limit: 0}, syncOptions: [ServerSideApply=true]}
END
result='{.status.operationState.phase} {.status.operationState.syncResult.revision}'
job='{.status.result.verdict} AU {.status.result.auPercent} %; {.status.conditions[?(@.type=="Succeeded")].reason}'
started=$(milliseconds)
until_app gate 240 "@(Succeeded|Failed|Error) $(head_of platform)" "$result"
# On a machine that is very busy it may not: then once more, by a commit as always.
for try in 2 3; do
  [ "$(app gate '{.status.operationState.phase}')" != Succeeded ] || break
  echo "the benchmark says $(kubectl -n "$team" get mlps gate -o jsonpath="$job"); once more"
  sed -i "s/data: .*/data: {release: \"1\", try: \"$try\"}/" "$platform/gate/release.yaml"
  started=$(milliseconds)
  commit "release 1, try $try"
  until_app gate 240 "@(Succeeded|Failed|Error) $(head_of platform)" "$result"
done
figure "a sync with a benchmark of seconds as PostSync hook: $(kubectl -n "$team" get mlps gate -o jsonpath="$job")" "$(app gate '{.status.operationState.phase}'), $(seconds_since "$started")"
[ "$(app gate '{.status.operationState.phase}')" = Succeeded ] || fail "the gate was to let release 1 pass"
until_true 30 kubectl -n "$team" get configmap promoted
offered=$(action gate "$team" MLPerfStorageJob gate)
[ "$offered" = "!resume !suspend run-again " ] || fail "of a job that has ended there is offered: $offered"
action gate "$team" MLPerfStorageJob gate run-again
again=$(kubectl -n "$team" get mlps -o name | grep -o 'gate-[0-9]*$') || fail "Argo CD's action run-again made no job"
kubectl -n "$team" wait --for=jsonpath='{.status.completionTime}' mlps/"$again" --timeout=$((120 * patience))s
figure "the job once more by the action run-again: $again" "$(kubectl -n "$team" get mlps "$again" -o jsonpath="$job")"
sed -i 's/release: "1"/release: "2"/' "$platform/gate/release.yaml" "$platform/gate/promoted.yaml"
# More accelerators than the lab can feed.
sed -i -e 's/type: A100/type: H100/' -e 's/count: 1/count: 24/' -e 's/samples: 84/samples: 336/' -e 's/sampleSize: 20k/sampleSize: 400k/' "$platform/gate/gate.yaml"
started=$(milliseconds)
commit "release 2, which is too slow"
until_app gate 300 "@(Succeeded|Failed|Error) $(head_of platform)" "$result"
figure "one that asks for more than the share can feed: $(kubectl -n "$team" get mlps gate -o jsonpath="$job")" "$(app gate '{.status.operationState.phase}'), $(seconds_since "$started")"
[ "$(app gate '{.status.operationState.phase}')" = Failed ] || fail "the gate was to stop release 2"
app gate '{.status.operationState.message}{"\n"}'
release=$(kubectl -n "$team" get configmap promoted -o jsonpath='{.data.release}')
[ "$release" = 1 ] || fail "release $release was promoted, though the benchmark did not pass"
figure "what waits for the gate in a later wave, after that" "as it was (release $release)"

if [ -n "${HOWDAH_FLUX:-}" ]; then
  say "the same manifests by the engine of Flux's kustomize-controller, in the namespace team-b"
  kubectl create namespace team-b --dry-run=client -o yaml | kubectl apply -f -
  kubectl label --overwrite namespace team-b pod-security.kubernetes.io/enforce=privileged
  sed -i 's/replicas: 3/replicas: 1/' "$platform/storage/$team/fileserver.yaml"
  started=$(milliseconds)
  "$HOWDAH_FLUX" -namespace team-b -for 1s -timeout $((3 * patience))m "$platform/storage/$team"
  figure "Flux's engine: a FileServer of one data server and two shares, to kstatus' Current" "$(seconds_since "$started")"
  kubectl -n team-b patch fileshare unet3d --type merge -p '{"spec": {"mode": "0700"}}'
  kubectl -n team-b delete pod training-0 --wait=false
  "$HOWDAH_FLUX" -namespace team-b -edited -for "${minutes}m" -timeout $((3 * patience))m "$platform/storage/$team" | tee "$folder/flux"
  figure "the same: an edit by hand is undone; then, with a data server killed" "$(tail -1 "$folder/flux")"
fi

say "done; all figures"
echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores; $(date -u '+%Y-%m-%d %H:%M')" | tee -a "$figures"
cat "$figures"
