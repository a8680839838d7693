package desired

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/docs"
)

// What docs/operate/sizing.md says of a data server's connections is what it gets.
func TestThePageOfSizesSaysHowManyConnectionsThereAre(t *testing.T) {
	rows, err := docs.Table("../../docs/operate/sizing.md", "memory of `spec.resources`")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		fs := &v1alpha1.FileServer{}
		if row[0] != "unset" {
			fs.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(row[0])}}
		}
		connections := int(MaxConnections(fs))
		for cell, want := range map[int]int{1: connections, 2: connections / 16, 3: connections / 4} {
			if row[cell] != strconv.Itoa(want) {
				t.Errorf("%s: the page says %s, it is %d", row[0], row[cell], want)
			}
		}
	}
}

// And of shares.
func TestThePageOfSizesSaysHowManySharesThereCanBe(t *testing.T) {
	if one, sixteen := MaxShares(1), MaxShares(16); one != 4096 || sixteen != 4095 {
		t.Errorf("docs/operate/sizing.md and docs/kinds/fileshare.md say 4,096 shares, and 4,095 with 16 volumes; they are %d and %d", one, sixteen)
	}
}
