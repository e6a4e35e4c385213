package datasets

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/hub"
)

// Options say how a data set is got.
type Options struct {
	Client   *hub.Client
	Token    bool   // the client has one
	From     string // folder with the official files; "": they are downloaded
	Out      string // folder for the result
	AnyBytes bool   // take files that are not the known ones too
	Console  io.Writer
}

// Written is a file of rows.
type Written struct {
	Path string
	Rows int
	Bad  int   // official rows that were left out
	Why  error // the first of them
}

// official is the subfolder for the official files.
const official = "official"

// Get brings the official files of a set and writes its rows into o.Out. What is there from an earlier call and is whole is not
// fetched again. Files of rows are replaced as a whole.
func (s *Set) Get(ctx context.Context, o Options) (files []string, rows []Written, err error) {
	if s.Gated && !o.Token && o.From == "" {
		return nil, nil, fmt.Errorf("%s is gated: accept its conditions at %s, make a token in your account's settings there, and set HF_TOKEN to it; or download %s with a browser and give its folder with --from",
			s.Name, s.Home, strings.Join(s.Sources[0].Files, ", "))
	}
	if filepath.Clean(o.From) == filepath.Clean(o.Out) {
		return nil, nil, fmt.Errorf("--from and --out are both %s: rows may have the names of official files, so choose another --out", o.Out)
	}
	if o.From != "" {
		files, err = s.local(o)
	} else {
		files, err = s.download(ctx, o)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(o.Out, 0o777); err != nil {
		return nil, nil, err
	}
	for _, out := range s.Outputs {
		w, err := s.write(files, out, o.Out)
		if err != nil {
			return files, rows, fmt.Errorf("make %s: %w", out.File, err)
		}
		rows = append(rows, w)
	}
	return files, rows, s.describe(files, o)
}

// download fetches the official files.
func (s *Set) download(ctx context.Context, o Options) ([]string, error) {
	var list []hub.Download
	dir := filepath.Join(o.Out, official)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	for _, src := range s.Sources {
		if src.Repo == "" {
			list = append(list, hub.Download{URL: src.URL, Name: src.Name, Path: filepath.Join(dir, src.Name), Size: src.size(), Digest: src.digest()})
			continue
		}
		r := hub.Repo{Name: src.Repo, Dataset: true, Revision: src.revision()}
		_, more, err := o.Client.RepoFiles(ctx, r, src.Files, dir)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	if err := o.Client.FetchAll(ctx, list); err != nil {
		return nil, fmt.Errorf("%w\nif you have the files from elsewhere, give their folder with --from", err)
	}
	var files []string
	for _, d := range list {
		files = append(files, d.Path)
	}
	return files, nil
}

func (src Source) size() int64 {
	if src.Size == 0 {
		return -1
	}
	return src.Size
}

func (src Source) digest() hub.Digest {
	if src.SHA256 == "" {
		return hub.Digest{}
	}
	return hub.Digest{Kind: hub.SHA256, Hex: src.SHA256}
}

func (src Source) revision() string {
	if src.Revision == "" {
		return "main"
	}
	return src.Revision
}

// local finds the official files in a folder, or what their archives hold, and checks those of which something is known.
func (s *Set) local(o Options) ([]string, error) {
	all, err := below(o.From)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, src := range s.Sources {
		found := find(all, src.names())
		for _, f := range found {
			if err := hub.CheckFile(f, src.size(), src.digest()); err != nil && !o.AnyBytes {
				return nil, fmt.Errorf("%s is not the official file: %w; --any-version takes it all the same", f, err)
			} else if err != nil {
				fmt.Fprintf(o.Console, "note: %s is not the official file: %v\n", f, err)
			}
		}
		if len(found) == 0 {
			found = find(all, s.members(src.Name))
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("there is no %s in %s: it is at %s", strings.Join(src.names(), ", "), o.From, s.Home)
		}
		files = append(files, found...)
	}
	return files, nil
}

// names are the patterns of a source's file names.
func (src Source) names() []string {
	if src.Repo == "" {
		return []string{src.Name}
	}
	return src.Files
}

// members are the patterns of what is wanted of an archive.
func (s *Set) members(archive string) []string {
	var list []string
	for _, out := range s.Outputs {
		if out.From == archive && out.Member != "" && path.Ext(archive) == ".zip" {
			list = append(list, out.Member)
		}
	}
	return list
}

// below lists the files of a folder and of its folders, in the order of their names.
func below(dir string) ([]string, error) {
	var list []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, path)
		}
		return err
	})
	return list, err
}

// find picks the files whose last parts match a pattern; a file that lies there twice counts once, as the first.
func find(all, patterns []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, file := range all {
		name := path.Base(filepath.ToSlash(file))
		if !seen[name] && slices.ContainsFunc(patterns, func(p string) bool { return meant(filepath.ToSlash(file), path.Base(p)) }) {
			seen[name] = true
			out = append(out, file)
		}
	}
	return out
}

// write makes a file of rows. A row that cannot be used is left out and counted; if none can be, that is an error.
func (s *Set) write(files []string, out Output, dir string) (Written, error) {
	w := Written{Path: filepath.Join(dir, out.File)}
	tmp, err := os.CreateTemp(dir, "."+out.File+"-")
	if err != nil {
		return w, err
	}
	defer os.Remove(tmp.Name()) // it is gone if all went well
	buffer := bufio.NewWriterSize(tmp, 1<<20)
	enc := json.NewEncoder(buffer)
	enc.SetEscapeHTML(false)
	split := strings.TrimSuffix(out.File, path.Ext(out.File))
	use := func(row map[string]any) error {
		made, err := out.Row(fmt.Sprintf("%s-%s-%d", s.Name, split, w.Rows+w.Bad+1), row)
		if err != nil {
			if w.Bad++; w.Why == nil {
				w.Why = fmt.Errorf("row %d: %w", w.Rows+w.Bad, err)
			}
			return nil
		}
		w.Rows++
		return enc.Encode(made)
	}
	err = out.each(files, use)
	if err == nil && w.Rows == 0 {
		err = errors.Join(errors.New("there is no row that can be used"), w.Why)
	}
	err = errors.Join(err, buffer.Flush(), tmp.Chmod(0o644), tmp.Close())
	if err != nil {
		return w, err
	}
	return w, os.Rename(tmp.Name(), w.Path)
}

// each reads the rows of the official files that an output is made of.
func (out Output) each(files []string, use func(map[string]any) error) error {
	n := 0
	for _, f := range files {
		name := filepath.ToSlash(f)
		member := out.Member
		if member != "" && meant(name, member) { // already unpacked
			member = ""
		} else if !meant(name, out.From) {
			continue
		}
		n++
		if err := read(f, member, use); err != nil {
			return fmt.Errorf("read %s: %w", f, err)
		}
	}
	if n == 0 {
		return fmt.Errorf("no file %s is among the official ones", out.From)
	}
	return nil
}
