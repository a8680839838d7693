package provisioner

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
)

// parameters are the parameters of a StorageClass.
type parameters struct {
	fileServer, fileServerNamespace string
	// fileShare is the share whose directories claims become; "": each claim gets its own share.
	fileShare             string
	layout                v1alpha1.ShareLayout
	depth, maxDirectories int32
	// path is a pattern, "" if the class has none.
	path     string
	uid, gid int64
	mode     string
	// sizeEnforced: make no volume whose size can't be enforced.
	sizeEnforced bool
	mountOptions []string
}

const (
	defaultPath = "/{namespace}/{claim}-{id}"
	// defaultMode lets all users of the claim's pods write: their user IDs are not known, and the kubelet does not
	// apply a pod's fsGroup to NFS volumes. Only pods with the claim, and processes on nodes, reach the share.
	defaultMode = "0777"

	sizeBestEffort = "BestEffort"
	sizeRequired   = "Required"
)

var (
	label     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	octalMode = regexp.MustCompile(`^0?[0-7]{3,4}$`)
)

// read parses each parameter. It returns an error sentence that follows the parameter's name, or "".
var read = map[string]func(*parameters, string) string{
	"fileServer": func(p *parameters, value string) string {
		p.fileServer = value
		return unless(len(value) <= 40 && label.MatchString(value), "give the name of a FileServer")
	},
	"fileServerNamespace": func(p *parameters, value string) string {
		p.fileServerNamespace = value
		return unless(len(value) <= 63 && label.MatchString(value), "give the Kubernetes namespace of the FileServer")
	},
	"fileShare": func(p *parameters, value string) string {
		p.fileShare = value
		return unless(len(value) <= 50 && label.MatchString(value), "give the name of a FileShare of the FileServer's namespace, or leave it out: then each claim gets a share of its own")
	},
	"layout": func(p *parameters, value string) string {
		p.layout = v1alpha1.ShareLayout(value)
		return unless(p.layout == v1alpha1.LayoutSingle || p.layout == v1alpha1.LayoutDistributed, "give Single or Distributed")
	},
	"depth":          func(p *parameters, value string) string { return number(&p.depth, value, 1, 8) },
	"maxDirectories": func(p *parameters, value string) string { return number(&p.maxDirectories, value, 1, 100_000) },
	"path": func(p *parameters, value string) string {
		p.path = value
		return "" // checkPattern checks it, because it needs other parameters.
	},
	"uid": func(p *parameters, value string) string { return number(&p.uid, value, 0, 4294967294) },
	"gid": func(p *parameters, value string) string { return number(&p.gid, value, 0, 4294967294) },
	"mode": func(p *parameters, value string) string {
		p.mode = value
		return unless(octalMode.MatchString(value), `give octal permission bits in quotes, for example "0777" or "2770"`)
	},
	"size": func(p *parameters, value string) string {
		p.sizeEnforced = value == sizeRequired
		return unless(value == sizeBestEffort || value == sizeRequired, "give BestEffort (the size that claims ask for is kept where the storage can) or Required (claims are refused where it can't)")
	},
}

// parametersOf reads a StorageClass. It returns all errors as sentences, in the order of the parameters' names.
func parametersOf(class *storagev1.StorageClass) (parameters, []string) {
	p := parameters{layout: v1alpha1.LayoutSingle, mode: defaultMode}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(class.Parameters)) {
		value := class.Parameters[name]
		if read[name] == nil {
			problems = append(problems, fmt.Sprintf("parameter %s is not known; there are %s", name, strings.Join(slices.Sorted(maps.Keys(read)), ", ")))
		} else if problem := read[name](&p, value); problem != "" {
			problems = append(problems, fmt.Sprintf("parameter %s is %q: %s", name, value, problem))
		}
	}
	for name, what := range map[string]string{"fileServer": "its name", "fileServerNamespace": "its Kubernetes namespace"} {
		if _, given := class.Parameters[name]; !given {
			problems = append(problems, fmt.Sprintf("parameter %s is missing: name the FileServer that serves the claims, by %s", name, what))
		}
	}
	if value, given := class.Parameters["path"]; given {
		if problem := checkPattern(value, p.fileShare != ""); problem != "" {
			problems = append(problems, fmt.Sprintf("parameter path is %q: %s", value, problem))
		}
	} else if p.fileShare == "" {
		p.path = defaultPath
	}
	if p.fileShare != "" {
		problems = append(problems, checkDirectories(class)...)
	}
	for _, name := range []string{"depth", "maxDirectories"} {
		if _, given := class.Parameters[name]; given && p.fileShare == "" && p.layout == v1alpha1.LayoutSingle {
			problems = append(problems, fmt.Sprintf("parameter %s is for layout Distributed: a Single share is one directory on one server; add layout: Distributed, or leave %s out", name, name))
		}
	}
	if len(class.AllowedTopologies) > 0 {
		problems = append(problems, "allowedTopologies are given: every node reaches every share; leave them out")
	}
	p.mountOptions = mergeOptions(desired.MountOptions(false), class.MountOptions)
	for _, option := range class.MountOptions {
		if problem := checkOption(option); problem != "" {
			problems = append(problems, fmt.Sprintf("mount option %q: %s", option, problem))
		}
	}
	slices.Sort(problems)
	return p, problems
}

// checkDirectories returns the parameters that directories of a share can't have.
func checkDirectories(class *storagev1.StorageClass) []string {
	var problems []string
	for _, name := range []string{"layout", "depth", "maxDirectories"} {
		if _, given := class.Parameters[name]; given {
			problems = append(problems, fmt.Sprintf("parameter %s is for shares: with fileShare, claims are directories of one that there is; leave it out", name))
		}
	}
	if reclaimPolicyOf(class) == corev1.PersistentVolumeReclaimDelete {
		problems = append(problems, "reclaimPolicy is Delete (or unset, which means it): a directory of a share is not removed with what is in it; "+
			"set reclaimPolicy: Retain, or leave parameter fileShare out, for shares of their own")
	}
	return problems
}

func unless(good bool, problem string) string {
	if good {
		return ""
	}
	return problem
}

func number[T int32 | int64](into *T, value string, least, most int64) string {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > most {
		return fmt.Sprintf("give a number from %d to %d, in quotes", least, most)
	}
	*into = T(n)
	return ""
}

// opposites are mount options without a value that replace each other.
var opposites = map[string]string{
	"soft": "hard", "softerr": "hard", "hard": "hard", "suid": "suid", "nosuid": "suid", "dev": "dev", "nodev": "dev",
	"ro": "rw", "rw": "rw", "ac": "ac", "noac": "ac", "exec": "exec", "noexec": "exec", "resvport": desired.OptionAnyPort,
}

// optionKey is the same for options that replace each other.
func optionKey(option string) string {
	key, _, _ := strings.Cut(option, "=")
	if of := opposites[key]; of != "" {
		return of
	}
	return key
}

// mergeOptions returns the recommended mount options, overridden by the class's options.
func mergeOptions(recommended, own []string) []string {
	var merged []string
	taken := map[string]bool{}
	for _, option := range own {
		taken[optionKey(option)] = true
	}
	for _, option := range recommended {
		if !taken[optionKey(option)] {
			merged = append(merged, option)
		}
	}
	return append(merged, own...)
}

// checkOption refuses mount options with which no share can be mounted.
func checkOption(option string) string {
	key, value, _ := strings.Cut(option, "=")
	switch key {
	case "":
		return "it is empty; leave it out"
	case "vers", "nfsvers":
		return unless(value == "4.1", "shares speak NFS 4.1: give vers=4.1, or leave it out")
	case "minorversion":
		return unless(value == "1", "shares speak NFS 4.1: leave it out")
	case "proto":
		return unless(value == "tcp" || value == "tcp6", "shares speak NFS over TCP: leave it out")
	case "port":
		return unless(value == "2049", "servers answer at port 2049: leave it out")
	case "sec":
		return unless(value == "sys", "shares speak AUTH_SYS: leave it out")
	}
	return unless(!strings.ContainsAny(option, ", \t\n"), "one option is one item of mountOptions")
}
