package hub

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"regexp"
)

// The kinds of digests.
const (
	SHA256  = "SHA-256"
	gitBlob = "git SHA-1" // of a small file: git's own name of it
)

// Digest is the hash that a file's bytes must have. The zero Digest asks for nothing.
type Digest struct {
	Kind string
	Hex  string
}

var hexForms = map[string]*regexp.Regexp{
	SHA256:  regexp.MustCompile(`^[0-9a-f]{64}$`),
	gitBlob: regexp.MustCompile(`^[0-9a-f]{40}$`),
}

// known tells whether there is a hash to compare with.
func (d Digest) known() bool { return d.Kind != "" }

func (d Digest) check() error {
	if form := hexForms[d.Kind]; form == nil || !form.MatchString(d.Hex) {
		return fmt.Errorf("%q is no %s", d.Hex, d.Kind)
	}
	return nil
}

// start begins the hash of a file of so many bytes. Without a digest it is SHA-256.
func (d Digest) start(size int64) hash.Hash {
	if d.Kind != gitBlob {
		return sha256.New()
	}
	h := sha1.New() // git's choice, not ours
	fmt.Fprintf(h, "blob %d\x00", size)
	return h
}

// verify compares the hash of all bytes.
func (d Digest) verify(h hash.Hash) error {
	if got := hex.EncodeToString(h.Sum(nil)); d.known() && got != d.Hex {
		return fmt.Errorf("its %s is %s, want %s", d.Kind, got, d.Hex)
	}
	return nil
}

// CheckFile compares a file with what is known of it: its size (-1: nothing) and its digest.
func CheckFile(path string, size int64, d Digest) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if size >= 0 && info.Size() != size {
		return fmt.Errorf("it has %d bytes, want %d", info.Size(), size)
	}
	if !d.known() {
		return nil
	}
	h := d.start(info.Size())
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	return d.verify(h)
}
