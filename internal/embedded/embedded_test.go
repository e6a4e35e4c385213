package embedded

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPath(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if got, err := Path("some/folder"); got != "some/folder" || err != nil {
		t.Errorf("Path of an ordinary path = %q, %v", got, err)
	}
	for range 2 { // written, then found
		path, err := Path("embedded:quickstart/config.json")
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		want, _ := fs.ReadFile(files, "quickstart/config.json")
		if err != nil || string(got) != string(want) {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "tokenizer.json")); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"embedded:none", "embedded:../x", "embedded:quickstart/none", "embedded:"} {
		if _, err := Path(bad); err == nil || !strings.Contains(err.Error(), "embedded:quickstart") {
			t.Errorf("Path(%q) = %v, want an error that lists what there is", bad, err)
		}
	}
}
