package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every complaint of docs/faq.md has its proofs, and these tests and transcripts exist.
func TestFAQ(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "faq.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \|.*$`).FindAllStringSubmatch(string(text), -1)
	proof := regexp.MustCompile("`([a-z0-9/]+)\\.(Test\\w+)(?:/(\\w+))?`")
	for i, row := range rows {
		if n, _ := strconv.Atoi(row[1]); n != i+1 {
			t.Fatalf("complaint %s stands at place %d", row[1], i+1)
		}
		proofs := proof.FindAllStringSubmatch(row[0], -1)
		if len(proofs) == 0 {
			t.Errorf("complaint %s has no proof", row[1])
		}
		for _, p := range proofs {
			checkProof(t, row[1], p[1], p[2], p[3])
		}
	}
	if len(rows) != 37 {
		t.Errorf("%d complaints, want 37", len(rows))
	}
}

// checkProof looks for a test in a package, and for the transcript that it names.
func checkProof(t *testing.T, number, pkg, name, script string) {
	dir := filepath.Join("..", "..", filepath.FromSlash(pkg))
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found = found || strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)")
	}
	if !found {
		t.Errorf("complaint %s: there is no %s in %s", number, name, pkg)
	}
	if script != "" {
		if _, err := os.Stat(filepath.Join(dir, "testdata", "script", script+".txtar")); err != nil {
			t.Errorf("complaint %s: %v", number, err)
		}
	}
}
