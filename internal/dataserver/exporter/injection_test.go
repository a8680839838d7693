package exporter

import (
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/ganeshatest"
)

// schemaRule is what the schema asks of a string.
type schemaRule struct {
	pattern  *regexp.Regexp
	min, max int
	values   []string
}

func (r schemaRule) accepts(text string) bool {
	if len(r.values) > 0 {
		for _, value := range r.values {
			if value == text {
				return true
			}
		}
		return text == "" // Optional.
	}
	return len(text) >= r.min && len(text) <= r.max && (r.pattern == nil || r.pattern.MatchString(text))
}

// schemaRules are those of the generated CRD, so that a schema that gets looser is tested as it is.
func schemaRules(t testing.TB) map[string]schemaRule {
	t.Helper()
	specOf := func(kind string) apiextensionsv1.JSONSchemaProps {
		text, err := os.ReadFile("../../../config/crd/bases/internal.howdah.io_" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatal(err)
		}
		return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	}
	spec, export := specOf("dataservers"), specOf("shareexports")
	access := export.Properties["access"].Items.Schema
	rules := map[string]schemaRule{}
	for name, schema := range map[string]apiextensionsv1.JSONSchemaProps{
		"serverScope": spec.Properties["serverScope"], "fileServer": spec.Properties["fileServerRef"].Properties["name"],
		"shareName": export.Properties["fileShareRef"].Properties["name"], "mode": export.Properties["mode"],
		"clients":    *access.Properties["clients"].Items.Schema,
		"accessType": access.Properties["accessType"], "squash": access.Properties["squash"],
	} {
		rule := schemaRule{min: 0, max: 1 << 20}
		if schema.MinLength != nil {
			rule.min = int(*schema.MinLength)
		}
		if schema.MaxLength != nil {
			rule.max = int(*schema.MaxLength)
		}
		if schema.Pattern != "" {
			rule.pattern = regexp.MustCompile(schema.Pattern)
		}
		for _, value := range schema.Enum {
			rule.values = append(rule.values, strings.Trim(string(value.Raw), `"`))
		}
		rules[name] = rule
	}
	return rules
}

// isAddress is the schema's CEL rule isIP or isCIDR: Kubernetes reads them with
// net/netip, without zones and without IPv4-mapped IPv6.
func isAddress(text string) bool {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Zone() == "" && !address.Is4In6()
	}
	prefix, err := netip.ParsePrefix(text)
	return err == nil && !prefix.Addr().Is4In6()
}

func FuzzNoAcceptedDataServerInjectsADirective(f *testing.F) {
	rules := schemaRules(f)
	f.Add("8c5b9a0e-2c57", "training", "unet3d", "0755", "10.0.0.0/8", "ReadWrite", "Root", int64(0), int32(10))
	f.Add("a", "t", "a-b", "01777", "::/0", "ReadOnly", "All", int64(4294967294), int32(5))
	f.Add("a-", "T\"; }", "0", "777", "0.0.0.0/0", "", "", int64(65534), int32(120))
	f.Add("a\"; }\nEXPORT {", "t\\", "a\nb", "07 55", "10.0.0.0/8; }", "RW", "None; }", int64(1), int32(6))
	f.Fuzz(func(t *testing.T, scope, fileServer, name, mode, from, access, squash string, owner int64, seconds int32) {
		for field, value := range map[string]string{
			"serverScope": scope, "fileServer": fileServer, "shareName": name, "mode": mode, "clients": from,
			"accessType": access, "squash": squash,
		} {
			if !rules[field].accepts(value) {
				return
			}
		}
		if !isAddress(from) || seconds < 5 || seconds > 120 || owner < 0 || owner > 4294967294 {
			return
		}
		dataServer := dataservertest.DataServer(2)
		dataServer.Name = fileServer + "-0"
		dataServer.Spec.FileServerRef.Name, dataServer.Spec.ServerScope = fileServer, scope
		dataServer.Spec.LeaseSeconds, dataServer.Spec.GraceSeconds = seconds, seconds
		export := dataservertest.NewExport(dataservertest.ShareSpec(name,
			v1alpha1.AccessRule{Clients: []string{from}, AccessType: v1alpha1.AccessType(access), Squash: v1alpha1.Squash(squash)}))
		export.Spec.UID, export.Spec.GID, export.Spec.Mode = &owner, &owner, mode
		if _, err := attributesOf(export.Spec); err != nil {
			t.Fatalf("an accepted mode is refused: %v", err)
		}
		ids := &exportids.Table{Parts: []map[string]exportids.Entry{{}, {}}}
		if err := ids.Allocate(name, nil); err != nil {
			t.Fatal(err)
		}
		config, err := desiredConfig(dataServer, []*internalv1.ShareExport{export}, nil, ids, volumes.New("/volumes", quiet), server.OwnAddress(), 0)
		if err != nil {
			t.Fatalf("an accepted DataServer is refused: %v", err)
		}
		text, err := ganesha.Render(config)
		if err != nil {
			t.Fatalf("an accepted DataServer can't be written: %v", err)
		}
		got, err := ganeshatest.Parse(text)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		config.Port, config.MonitoringPort = 2049, ganesha.DefaultMonitoringPort
		if diff := cmp.Diff(config, got, cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("what ganesha reads is not what was asked for: %s", diff)
		}
	})
}
