package consistency

import "testing"

func TestTheModelAnswersAsPOSIXDoes(t *testing.T) {
	state := newTree("p", "p/a", "p/b", "p/b/in", "q")
	for _, test := range []struct {
		name    string
		request Request
		answer  Answer
		legal   bool
		after   tree
	}{
		{"mkdir makes", Request{Kind: Mkdir, Path: "q/n"}, Answer{}, true, newTree("p", "p/a", "p/b", "p/b/in", "q", "q/n")},
		{"mkdir at the top", Request{Kind: Mkdir, Path: "n"}, Answer{}, true, newTree("n", "p", "p/a", "p/b", "p/b/in", "q")},
		{"mkdir of what exists", Request{Kind: Mkdir, Path: "p/a"}, Answer{Error: Exists}, true, state},
		{"mkdir of what exists, done", Request{Kind: Mkdir, Path: "p/a"}, Answer{}, false, ""},
		{"mkdir of what does not exist, refused", Request{Kind: Mkdir, Path: "q/a"}, Answer{Error: Exists}, false, ""},
		{"mkdir in what is missing", Request{Kind: Mkdir, Path: "r/a"}, Answer{Error: Missing}, true, state},
		{"mkdir in what is missing, done", Request{Kind: Mkdir, Path: "r/a"}, Answer{}, false, ""},
		{"an error that POSIX does not have", Request{Kind: Mkdir, Path: "q/n"}, Answer{Error: "EIO"}, false, ""},
		{"rmdir", Request{Kind: Rmdir, Path: "p/a"}, Answer{}, true, newTree("p", "p/b", "p/b/in", "q")},
		{"rmdir of what is not empty", Request{Kind: Rmdir, Path: "p"}, Answer{Error: NotEmpty}, true, state},
		{"rmdir of what is not empty, done", Request{Kind: Rmdir, Path: "p"}, Answer{}, false, ""},
		{"rmdir of what is empty, refused", Request{Kind: Rmdir, Path: "q"}, Answer{Error: NotEmpty}, false, ""},
		{"rmdir of what is missing", Request{Kind: Rmdir, Path: "q/a"}, Answer{Error: Missing}, true, state},
		{"rename", Request{Kind: Rename, Path: "p/a", To: "q/n"}, Answer{}, true, newTree("p", "p/b", "p/b/in", "q", "q/n")},
		{"rename with all that is in it", Request{Kind: Rename, Path: "p/b", To: "q/n"}, Answer{}, true, newTree("p", "p/a", "q", "q/n", "q/n/in")},
		{"rename onto an empty one", Request{Kind: Rename, Path: "p/b", To: "p/a"}, Answer{}, true, newTree("p", "p/a", "p/a/in", "q")},
		{"rename onto one that is not empty", Request{Kind: Rename, Path: "p/a", To: "p/b"}, Answer{Error: NotEmpty}, true, state},
		{"the same, in NFS' word", Request{Kind: Rename, Path: "p/a", To: "p/b"}, Answer{Error: Exists}, true, state},
		{"the same, done", Request{Kind: Rename, Path: "p/a", To: "p/b"}, Answer{}, false, ""},
		{"rename onto itself", Request{Kind: Rename, Path: "p/b", To: "p/b"}, Answer{}, true, state},
		{"rename of what is missing", Request{Kind: Rename, Path: "q/a", To: "q/n"}, Answer{Error: Missing}, true, state},
		{"rename of what is missing, done", Request{Kind: Rename, Path: "q/a", To: "q/n"}, Answer{}, false, ""},
		{"rename to where nothing is", Request{Kind: Rename, Path: "p/a", To: "r/a"}, Answer{Error: Missing}, true, state},
		{"stat", Request{Kind: Stat, Path: "p/a"}, Answer{}, true, state},
		{"stat of what is missing", Request{Kind: Stat, Path: "q/a"}, Answer{Error: Missing}, true, state},
		{"stat of what is there, and not found", Request{Kind: Stat, Path: "p/a"}, Answer{Error: Missing}, false, ""},
		{"stat of what is missing, and found", Request{Kind: Stat, Path: "q/a"}, Answer{}, false, ""},
		{"list", Request{Kind: List, Path: "p"}, Answer{Names: []string{"a", "b"}}, true, state},
		{"list of the empty one", Request{Kind: List, Path: "q"}, Answer{}, true, state},
		{"list of the top", Request{Kind: List}, Answer{Names: []string{"p", "q"}}, true, state},
		{"list with a name too many", Request{Kind: List, Path: "q"}, Answer{Names: []string{"x"}}, false, ""},
		{"list with a name too few", Request{Kind: List, Path: "p"}, Answer{Names: []string{"a"}}, false, ""},
		{"list of what is missing", Request{Kind: List, Path: "r"}, Answer{Error: Missing}, true, state},
	} {
		t.Run(test.name, func(t *testing.T) {
			legal, after := state.step(&Operation{Request: test.request, Answer: test.answer})
			if legal != test.legal || legal && after != test.after {
				t.Errorf("legal %v, then\n%s\nwant %v, then\n%s", legal, after, test.legal, test.after)
			}
			if legal, _ := state.step(&Operation{Request: test.request, Return: Never}); !legal {
				t.Error("without an answer it is not legal")
			}
		})
	}
}

func TestTheModelOfARegister(t *testing.T) {
	for _, test := range []struct {
		name    string
		request Request
		got     string
		legal   bool
		after   register
	}{
		{"write", Request{Kind: Write, Value: "b"}, "", true, "b"},
		{"read", Request{Kind: Read}, "a", true, "a"},
		{"read of another value", Request{Kind: Read}, "b", false, "a"},
		{"swap", Request{Kind: Swap, Value: "b"}, "a", true, "b"},
		{"swap that got another value", Request{Kind: Swap, Value: "b"}, "c", false, "b"},
		{"what a register can't", Request{Kind: Mkdir}, "", false, "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			legal, after := register("a").step(&Operation{Request: test.request, Answer: Answer{Got: test.got}})
			if legal != test.legal || legal && after != test.after {
				t.Errorf("legal %v, then %q", legal, after)
			}
		})
	}
	if legal, after := register("a").step(&Operation{Request: Request{Kind: Swap, Value: "b"}, Return: Never}); !legal || after != "b" {
		t.Errorf("a swap without an answer: legal %v, then %q", legal, after)
	}
}
