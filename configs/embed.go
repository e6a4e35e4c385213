package configs

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var embedded embed.FS

// embeddedNames lists the configurations inside the binary, which -c takes like files.
func embeddedNames() []string {
	names, err := fs.Glob(embedded, "*.yaml")
	if err != nil {
		return nil // only for a malformed pattern
	}
	return names
}
