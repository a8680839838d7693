// Package realtest runs tests beside the real ganesha of the server image: in namespaces of their own, in the image's root,
// with a pod's rights. Only tests may import it.
package realtest
