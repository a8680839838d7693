// Package tokens has tests on an API server act as the pods of servers do: by a token that the API server makes for a
// pod, under the roles that the operator gives and the admission policies that are installed with it. For tests only.
package tokens
