package mountinfo

import "strings"

// whyOwn ends every refusal. It is written for a new user, who may see it as Howdah's first message.
const whyOwn = "A client with a forged or leaked file handle could reach everything on that file system, and size and free space would be those of all " +
	"of it. Nothing is written to the volume or exported. Use a StorageClass that makes a file system for each volume (the class of a FileServer " +
	"can't be changed: make another FileServer), or, where all clients may see all that is there, set " +
	"spec.storage.volumes.sharedFileSystemPolicy to Allow"

// Refusal says why volumes are refused and what to do, by the verdicts of Shared on the claims; "" if none is refused.
func Refusal(claims, verdicts []string) string {
	var refused []string
	for i, verdict := range verdicts {
		if verdict != "" {
			refused = append(refused, "claim "+claims[i]+" "+verdict)
		}
	}
	if len(refused) == 0 {
		return ""
	}
	return strings.Join(refused, "; ") + ". " + whyOwn
}
