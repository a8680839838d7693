// Package gitops judges objects as the tools do that install them from Git: Argo CD by the health checks of
// config/argocd/customizations, in the Lua machine that it runs them in, and Flux by kstatus. Its own tests hold every state that the API
// knows to one verdict of both; the suite of test/integration has it judge all objects that occur there.
package gitops
