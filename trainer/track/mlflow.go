package track

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// MLflow sends a run to an MLflow tracking server over its REST API 2.0: parameters, metrics, and the run's files as artifacts, if
// the server takes these itself (mlflow server --serve-artifacts, the default).
type MLflow struct {
	run    Run
	uri    string
	getenv func(string) string
	http   *http.Client
	now    func() time.Time

	id        string // of the run on the server
	artifacts string // its artifact URI
}

// NewMLflow makes the sink of a run on the server at uri. MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and _PASSWORD, are sent
// where getenv has them.
func NewMLflow(run Run, uri string, getenv func(string) string, now func() time.Time) *MLflow {
	return &MLflow{run: run, uri: strings.TrimRight(uri, "/"), getenv: getenv, http: &http.Client{}, now: now}
}

// Limits of a request that the server sets.
const (
	batchMetrics = 1000
	batchParams  = 100
	paramLength  = 500 // characters of older servers; newer ones take 6000
)

// Begin implements Sink: it makes the run on the server, or finds the one that a resumed run has there.
func (m *MLflow) Begin(ctx context.Context) error {
	if err := m.open(ctx); err != nil {
		return err
	}
	var params []any
	for _, key := range slices.Sorted(maps.Keys(m.run.Config)) {
		params = append(params, map[string]string{"key": m.key(key), "value": clip(m.run.Config[key], paramLength)})
	}
	for part := range slices.Chunk(params, batchParams) {
		if err := m.post(ctx, "runs/log-batch", map[string]any{"run_id": m.id, "params": part}, nil); err != nil && m.run.Step == 0 {
			return err // where a run is resumed with another configuration, the first one's parameters stay
		}
	}
	return nil
}

// mlflowRun is a run as the server tells of it.
type mlflowRun struct {
	Run struct {
		Info struct {
			ID        string `json:"run_id"`
			Artifacts string `json:"artifact_uri"`
		}
	}
}

func (m *MLflow) open(ctx context.Context) error {
	var got mlflowRun
	kept, err := m.kept()
	if err == nil && m.run.Step > 0 {
		query := url.Values{"run_id": {kept}}
		if err = m.get(ctx, "runs/get", query, &got); err == nil {
			err = m.post(ctx, "runs/update", map[string]any{"run_id": kept, "status": "RUNNING"}, nil)
		}
		if err == nil {
			m.id, m.artifacts = kept, got.Run.Info.Artifacts
			return nil
		}
		if !isStatus(err, http.StatusNotFound) {
			return err
		}
	}
	experiment, err := m.experiment(ctx)
	if err != nil {
		return err
	}
	err = m.post(ctx, "runs/create", map[string]any{"experiment_id": experiment, "run_name": m.run.Name, "start_time": m.now().UnixMilli()}, &got)
	if err != nil {
		return err
	}
	m.id, m.artifacts = got.Run.Info.ID, got.Run.Info.Artifacts
	if err := os.MkdirAll(filepath.Dir(m.idFile()), 0o755); err != nil {
		return err
	}
	return os.WriteFile(m.idFile(), []byte(m.id+"\n"), 0o644)
}

func (m *MLflow) idFile() string { return filepath.Join(m.run.Dir, "track", "mlflow-run-id") }

func (m *MLflow) kept() (string, error) {
	b, err := os.ReadFile(m.idFile())
	return strings.TrimSpace(string(b)), err
}

// experiment finds the experiment of the run's project, or makes it.
func (m *MLflow) experiment(ctx context.Context) (string, error) {
	var got struct {
		ID         string `json:"experiment_id"`
		Experiment struct {
			ID string `json:"experiment_id"`
		}
	}
	err := m.get(ctx, "experiments/get-by-name", url.Values{"experiment_name": {m.run.Project}}, &got)
	if err == nil {
		return got.Experiment.ID, nil
	}
	if !isStatus(err, http.StatusNotFound) {
		return "", err
	}
	err = m.post(ctx, "experiments/create", map[string]string{"name": m.run.Project}, &got)
	return got.ID, err
}

// Send implements Sink. What is not a number is left out.
func (m *MLflow) Send(ctx context.Context, r Record, at time.Time) error {
	var metrics []any
	for _, name := range r.Names() {
		if v := r.Values[name]; !math.IsNaN(v) && !math.IsInf(v, 0) {
			metrics = append(metrics, map[string]any{"key": m.key(name), "value": v, "step": r.Step, "timestamp": at.UnixMilli()})
		}
	}
	for part := range slices.Chunk(metrics, batchMetrics) {
		if err := m.post(ctx, "runs/log-batch", map[string]any{"run_id": m.id, "metrics": part}, nil); err != nil {
			return err
		}
	}
	return nil
}

// key is a name as MLflow takes it: letters, digits, and _-. :/ and space.
func (m *MLflow) key(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-. :/", r) {
			return r
		}
		return '_'
	}, name)
}

// End implements Sink: files, then the run's state.
func (m *MLflow) End(ctx context.Context, e End) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		if err := m.upload(ctx, name, e.Files[name]); err != nil {
			errs = append(errs, fmt.Errorf("artifact %s: %w", name, err))
			break // the others would fail likewise
		}
	}
	state := map[Status]string{Finished: "FINISHED", Interrupted: "KILLED", Failed: "FAILED"}[e.Status]
	end := map[string]any{"run_id": m.id, "status": state, "end_time": m.now().UnixMilli()}
	return errors.Join(append(errs, m.post(ctx, "runs/update", end, nil))...)
}

// upload puts a file among the run's artifacts, through the server's proxy; a file that is not there is left out.
func (m *MLflow) upload(ctx context.Context, name, path string) error {
	root, ok := strings.CutPrefix(m.artifacts, "mlflow-artifacts:/")
	if !ok {
		return fmt.Errorf("the server keeps artifacts at %s, where only MLflow's own clients can write: run it with --serve-artifacts", m.artifacts)
	}
	if rest, host := strings.CutPrefix(root, "/"); host { // mlflow-artifacts://HOST/PATH
		_, root, _ = strings.Cut(rest, "/")
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	to := m.uri + "/api/2.0/mlflow-artifacts/artifacts/" + (&url.URL{Path: root + "/" + name}).EscapedPath()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, to, f)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil {
		req.ContentLength = info.Size()
	}
	return m.do(req, nil)
}

func (m *MLflow) get(ctx context.Context, call string, query url.Values, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.uri+"/api/2.0/mlflow/"+call+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	return m.do(req, out)
}

func (m *MLflow) post(ctx context.Context, call string, body, out any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.uri+"/api/2.0/mlflow/"+call, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return m.do(req, out)
}

// refusal is what a server answers that does not do what it is asked.
type refusal struct {
	status int
	text   string
}

func (r refusal) Error() string {
	return fmt.Sprintf("%d %s: %s", r.status, http.StatusText(r.status), r.text)
}

func isStatus(err error, status int) bool {
	r, ok := errors.AsType[refusal](err)
	return ok && r.status == status
}

func (m *MLflow) do(req *http.Request, out any) error {
	if token := m.getenv("MLFLOW_TRACKING_TOKEN"); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	} else if user := m.getenv("MLFLOW_TRACKING_USERNAME"); user != "" {
		req.SetBasicAuth(user, m.getenv("MLFLOW_TRACKING_PASSWORD"))
	}
	resp, err := m.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	const most = 1 << 20 // of a reply
	b, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return refusal{resp.StatusCode, clip(strings.TrimSpace(string(b)), 300)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// clip cuts s to so many characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
