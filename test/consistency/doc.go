// Package consistency judges what clients saw of a share while servers failed, in the style of Jepsen: a history of operations, each
// with the times of its call and its answer, is compared with a model. The tree of directories and registers under locks must be
// linearizable, which porcupine decides. Files without locks must be close-to-open consistent, which closetoopen.go decides.
//
// Models and judgements are pure: they import no client and no clock. Runner runs clients, and takes the times of all of them from
// one clock, so that an interval of the history contains the moment in which the operation took place. Folder agent has the program
// that does operations in a client pod.
package consistency
