package hub

import (
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"strings"
)

// Repo names a repository of a hub.
type Repo struct {
	Name     string // ORG/NAME
	Dataset  bool   // a data set, not a model
	Revision string // branch, tag or commit
}

// mainRevision is the branch that is meant if none is named.
const mainRevision = "main"

var (
	namePattern   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}/[A-Za-z0-9_][A-Za-z0-9._-]{0,95}$`)
	commitPattern = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// ParseRepo reads ORG/NAME or ORG/NAME@revision. The revision is main if none is given.
func ParseRepo(text string) (Repo, error) {
	name, revision, given := strings.Cut(text, "@")
	if !namePattern.MatchString(name) || strings.Contains(name, "--") {
		return Repo{}, fmt.Errorf("%q is no name of a repository: give ORG/NAME or ORG/NAME@revision", text)
	}
	if !given {
		revision = mainRevision
	}
	// It becomes part of a path.
	if !fs.ValidPath(revision) || revision == "." || strings.ContainsAny(revision, "\\:") {
		return Repo{}, fmt.Errorf("%q is no revision: give a branch, a tag or a commit after the @", revision)
	}
	return Repo{Name: name, Revision: revision}, nil
}

// String is the repository as a user writes it.
func (r Repo) String() string {
	if r.Revision == mainRevision {
		return r.Name
	}
	return r.Name + "@" + r.Revision
}

// kind is what the hub calls repositories of this kind in its API.
func (r Repo) kind() string {
	if r.Dataset {
		return "datasets"
	}
	return "models"
}

// folder is the repository's in the cache.
func (r Repo) folder() string {
	return r.kind() + "--" + strings.ReplaceAll(r.Name, "/", "--")
}

// page is the address at which people see the repository.
func (r Repo) page(endpoint string) string {
	if r.Dataset {
		return endpoint + "/datasets/" + r.Name
	}
	return endpoint + "/" + r.Name
}

// pull is the command that downloads the repository.
func (r Repo) pull() string {
	if r.Dataset {
		return "rubicon pull --dataset " + r.String()
	}
	return "rubicon pull " + r.String()
}

// fileURL is the address of a file at a commit.
func (r Repo) fileURL(endpoint, commit, path string) string {
	return r.page(endpoint) + "/resolve/" + commit + "/" + (&url.URL{Path: path}).EscapedPath()
}

// apiURL is the address of the API's call about a revision.
func (r Repo) apiURL(endpoint, call, revision string) string {
	return endpoint + "/api/" + r.kind() + "/" + r.Name + "/" + call + "/" + url.PathEscape(revision)
}
