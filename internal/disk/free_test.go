package disk

import (
	"path/filepath"
	"runtime"
	"testing"
)

func TestFree(t *testing.T) {
	if n, ok := Free(t.TempDir()); runtime.GOOS == "linux" && (!ok || n <= 0) {
		t.Errorf("free %d, %v", n, ok)
	}
	if n, ok := Free(filepath.Join(t.TempDir(), "none")); ok {
		t.Errorf("a folder that is not there has %d bytes free", n)
	}
}
