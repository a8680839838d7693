// Package chart checks what the Helm chart and the manifests for kustomize give, without a cluster: that values do what
// they say, that bad ones are refused in a sentence, and that both ways to install give the same objects. Whether an API server
// takes them is for test/install. It needs helm and kustomize ($HELM, $KUSTOMIZE; built by hack/tools/build.sh otherwise).
package chart
