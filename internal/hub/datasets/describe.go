package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sourceFile tells where the rows of a folder are from.
const sourceFile = "SOURCE.md"

// describe writes it.
func (s *Set) describe(files []string, o Options) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n- licence: %s\n- described at: %s\n", s.Name, s.Use, s.Licence, s.Home)
	for _, src := range s.Sources {
		if src.Repo != "" {
			fmt.Fprintf(&b, "- from: data set %s of the hub, revision %s\n", src.Repo, src.revision())
		} else {
			fmt.Fprintf(&b, "- from: %s\n", src.URL)
		}
	}
	for _, f := range files {
		sum, size, err := sumOf(f)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "- %s: %d bytes, SHA-256 %s\n", filepath.Base(f), size, sum)
	}
	if s.Note != "" {
		fmt.Fprintf(&b, "\n%s\n", s.Note)
	}
	return os.WriteFile(filepath.Join(o.Out, sourceFile), []byte(b.String()), 0o666)
}

func sumOf(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}
