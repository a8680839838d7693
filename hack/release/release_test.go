package main

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	spdxjson "github.com/spdx/tools-golang/json"
)

var epoch = time.Unix(1790000000, 0).UTC()

// dockerArchive is an image of these layers, each a map of files, all made at some time.
func dockerArchive(t *testing.T, made time.Time, layers ...map[string]string) string {
	t.Helper()
	return archiveFor(t, "amd64", made, layers...)
}

func archiveFor(t *testing.T, arch string, made time.Time, layers ...map[string]string) string {
	t.Helper()
	image := empty.Image
	for _, files := range layers {
		var text bytes.Buffer
		w := tar.NewWriter(&text)
		for _, file := range slices.Sorted(maps.Keys(files)) {
			content := files[file]
			if err := w.WriteHeader(&tar.Header{Name: file, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content)), ModTime: made}); err != nil {
				t.Fatal(err)
			}
			_, _ = w.Write([]byte(content))
		}
		_ = w.Close()
		layer, err := tarball.LayerFromReader(bytes.NewReader(text.Bytes())) //nolint:staticcheck // it is in memory
		if err != nil {
			t.Fatal(err)
		}
		// As buildah has it: ids of images that were made on the way.
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Comment: "FROM " + made.String()}}); err != nil {
			t.Fatal(err)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Config = arch, "linux", v1.Config{User: "65532", Entrypoint: []string{"/usr/local/bin/howdah"}}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.CreatedAt(image, v1.Time{Time: made}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(file, name.MustParseReference("howdah/howdah:1"), image); err != nil {
		t.Fatal(err)
	}
	return file
}

// sums are the files of a folder with their digests.
func sums(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		all[strings.TrimPrefix(file, folder)], err = digest(file)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAnImageForTwoProcessorsDependsOnNothingButItsContent(t *testing.T) {
	var folders []map[string]string
	var first string
	for _, made := range []time.Time{time.Unix(1, 0), time.Unix(2, 0)} {
		var archives []string
		for _, arch := range []string{"amd64", "arm64"} {
			archives = append(archives, archiveFor(t, arch, made, map[string]string{"etc/passwd": "root"}, map[string]string{"usr/local/bin/howdah": "for " + arch}))
		}
		into := t.TempDir()
		if err := writeImage(archives, "howdah/howdah:1", into, epoch); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, sums(t, into))
		first = into
	}
	if len(folders[0]) != len(folders[1]) || len(folders[0]) < 9 {
		t.Fatalf("%v\n%v", folders[0], folders[1])
	}
	for file, sum := range folders[0] {
		if folders[1][file] != sum {
			t.Errorf("%s differs between two builds", file)
		}
	}
	index, err := layout.ImageIndexFromPath(first)
	if err != nil {
		t.Fatal(err)
	}
	top, err := index.IndexManifest()
	if err != nil || len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1" {
		t.Fatalf("%v, %+v", err, top)
	}
	images, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := images.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ arch, program string }{{"amd64", "for amd64"}, {"arm64", "for arm64"}} {
		image, err := images.Image(manifest.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != want.arch || config.Config.User != "65532" || !config.Created.Equal(epoch) {
			t.Errorf("%v, %+v", err, config)
		}
		program, err := io.ReadAll(mutate.Extract(image))
		if err != nil || !bytes.Contains(program, []byte(want.program)) || !bytes.Contains(program, []byte("root")) {
			t.Errorf("%s does not have what it should: %v", want.arch, err)
		}
	}
}

func TestTheImageHasTheProgramThatIsReleased(t *testing.T) {
	archive := dockerArchive(t, epoch, map[string]string{"usr/local/bin/howdah": "one"})
	file := filepath.Join(t.TempDir(), "howdah")
	for content, good := range map[string]bool{"one": true, "other": false} {
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := hasProgram(archive, "/usr/local/bin/howdah", file); (err == nil) != good {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func TestImagesForOneProcessorAreNoneForTwo(t *testing.T) {
	one, two := dockerArchive(t, epoch, map[string]string{"usr/local/bin/howdah": "1"}), dockerArchive(t, epoch, map[string]string{"usr/local/bin/howdah": "2"})
	if err := writeImage([]string{one, two}, "howdah/server:1", t.TempDir(), epoch); err == nil || !strings.Contains(err.Error(), "are both for amd64") {
		t.Errorf("%v", err)
	}
	if err := writeImage(nil, "howdah/server:1", t.TempDir(), epoch); err == nil {
		t.Error("an image of nothing")
	}
}

func TestTheListHasModulesAndPackages(t *testing.T) {
	archive := dockerArchive(t, epoch, map[string]string{"var/lib/dpkg/status": "Package: old\nStatus: install ok installed\nVersion: 1\nArchitecture: all\n"}, map[string]string{
		"var/lib/dpkg/status":                  "Package: libntirpc7.2\nStatus: install ok installed\nArchitecture: amd64\nVersion: 7.2-2~bpo13+1\nDescription: x\n y: z\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n\nPackage: linked\nStatus: install ok installed\nVersion: 2\n",
		"usr/share/doc/libntirpc7.2/copyright": "Format: x\n\nFiles: *\nLicense: BSD-3-clause\n\nFiles: y\nLicense: GPL-2+ and Expat\n text\n",
		"usr/share/doc/nfs-ganesha/copyright":  "GNU LESSER GENERAL PUBLIC LICENSE",
		"usr/share/doc/nfs-ganesha/version":    "nfs-ganesha 9.14 with Howdah's patches\n",
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var one, two bytes.Buffer
	for _, out := range []*bytes.Buffer{&one, &two} {
		if err := writeSBOM(out, "howdah", "1", archive, []string{self}, epoch); err != nil {
			t.Fatal(err)
		}
	}
	if one.String() != two.String() {
		t.Error("two lists of the same differ")
	}
	document, err := spdxjson.Read(&one)
	if err != nil {
		t.Fatal(err)
	}
	found, licences := map[string]string{}, map[string]string{}
	for _, p := range document.Packages {
		found[p.PackageName], licences[p.PackageName] = p.PackageVersion, p.PackageLicenseDeclared
	}
	for name, want := range map[string]string{
		"nfs-ganesha": "LGPL-3.0-or-later", "libntirpc7.2": "BSD-3-Clause AND GPL-2.0-or-later AND MIT", "linked": "NOASSERTION",
		"stdlib": "BSD-3-Clause", "github.com/google/go-containerregistry": "Apache-2.0",
	} {
		if licences[name] != want {
			t.Errorf("the licences of %s are %q, want %q", name, licences[name], want)
		}
	}
	if found["nfs-ganesha"] != "9.14+howdah" || found["libntirpc7.2"] != "7.2-2~bpo13+1" || found["gone"] != "" || found["old"] != "" || found["stdlib"] == "" ||
		found["github.com/google/go-containerregistry"] == "" || found["howdah"] != "1" {
		t.Errorf("%v", found)
	}
	if err := writeSBOM(io.Discard, "howdah", "1", "", nil, epoch); err == nil {
		t.Error("a list of nothing")
	}
}

func TestProvenanceNamesTheFilesAndIsSignedWithAKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.tar.gz")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	var bare bytes.Buffer
	if err := writeProvenance(&bare, "1", "abc", "", []string{file}, epoch); err != nil {
		t.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal(bare.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("content"))
	if s.Subject[0].Name != "a.tar.gz" || s.Subject[0].Digest["sha256"] != hex.EncodeToString(sum[:]) ||
		s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != "abc" {
		t.Errorf("%+v", s)
	}

	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	var signed bytes.Buffer
	if err := writeProvenance(&signed, "1", "abc", key, []string{file}, epoch); err != nil {
		t.Fatal(err)
	}
	var e envelope
	if err := json.Unmarshal(signed.Bytes(), &e); err != nil {
		t.Fatal(err)
	}
	payload, _ := base64.StdEncoding.DecodeString(e.Payload)
	sig, _ := base64.StdEncoding.DecodeString(e.Signatures[0].Sig)
	if !ed25519.Verify(public, encoded(payload), sig) || string(payload)+"\n" != bare.String() {
		t.Error("the envelope does not hold")
	}
}
