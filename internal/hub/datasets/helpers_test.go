package datasets

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/rubicon-rl/rubicon/internal/hub"
	"github.com/rubicon-rl/rubicon/internal/hub/hubtest"
	"github.com/rubicon-rl/rubicon/trainer/data"
)

// rarRecord is a row of RaR-Science as its card describes it.
type rarRecord struct {
	Question        string `parquet:"question"`
	ReferenceAnswer string `parquet:"reference_answer"`
	QuestionSource  string `parquet:"question_source"`
	Rubric          []struct {
		Description string `parquet:"description"`
		Title       string `parquet:"title"`
		Weight      int64  `parquet:"weight"`
	} `parquet:"rubric,list"`
	RubricList  []string `parquet:"rubric_list,list"`
	RubricCount int64    `parquet:"rubric_count"`
}

func rar(question string) rarRecord {
	r := rarRecord{Question: question, ReferenceAnswer: "Because.", QuestionSource: "made up", RubricList: []string{"x"}, RubricCount: 2}
	r.Rubric = append(r.Rubric, struct {
		Description string `parquet:"description"`
		Title       string `parquet:"title"`
		Weight      int64  `parquet:"weight"`
	}{"Essential Criteria: names the cause", "Cause", 5})
	r.Rubric = append(r.Rubric, r.Rubric[0])
	r.Rubric[1].Weight = -1
	return r
}

func parquetOf[T any](t *testing.T, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t *testing.T, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		w, err := z.Create(members[i])
		if err == nil {
			_, err = io.WriteString(w, members[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(t *testing.T, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: members[i], Size: int64(len(members[i+1])), Mode: 0o644})
		if err == nil {
			_, err = io.WriteString(w, members[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// set is a copy of a known set.
func set(t *testing.T, name string) *Set {
	t.Helper()
	s, _ := Find(name)
	if s == nil {
		t.Fatalf("there is no set %s", name)
	}
	return s
}

// rowsOf reads a file as a run does.
func rowsOf(t *testing.T, path string) (rows []map[string]any) {
	t.Helper()
	prompts, _, err := data.Prompts([]string{path}, data.Options{Format: "auto", NoPrompt: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range prompts {
		rows = append(rows, p.Columns)
	}
	return rows
}

// folder writes files for --from.
func folder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func standIn(t *testing.T, repos map[string]hubtest.Repo) (*hubtest.Server, Options) {
	s := hubtest.Start(t, repos)
	o := hub.DefaultOptions()
	o.Endpoint, o.Cache = s.URL, t.TempDir()
	o.RetryMin, o.RetryMax = 1, 1
	c := hub.New(o)
	t.Cleanup(c.Close)
	return s, Options{Client: c, Out: filepath.Join(t.TempDir(), "out"), Console: io.Discard}
}
