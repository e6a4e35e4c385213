// Command ptxgen compiles cuda/kernels/*.cu to cuda/ptx/*.ptx.gz by NVIDIA's run-time compiler, which needs no GPU and no
// driver. scripts/ptx.sh gets the compiler and calls it.
//
//	go run ./cuda/ptxgen -nvrtc libnvrtc.so.11.2 [-check]
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	lib := flag.String("nvrtc", "", "path of the compiler's library, version 11.8")
	dir := flag.String("dir", "cuda", "folder with kernels and ptx")
	check := flag.Bool("check", false, "write nothing; fail if what is there is not what the sources give")
	text := flag.String("text", "", "folder that the PTX is also written to as text")
	flag.Parse()
	if err := generate(*lib, *dir, *text, *check); err != nil {
		fmt.Fprintln(os.Stderr, "ptxgen:", err)
		os.Exit(1)
	}
}

// The compiler's version and target decide which drivers load the code: PTX 7.8 for compute capability 8.0 and later needs a
// driver of CUDA 11.8 (R520) or later.
const (
	major, minor = 11, 8
	target       = "--gpu-architecture=compute_80"
)

func generate(lib, dir, text string, check bool) error {
	n, err := open(lib)
	if err != nil {
		return err
	}
	var v [2]int32
	if n.version(&v[0], &v[1]); v != [2]int32{major, minor} {
		return fmt.Errorf("the compiler is version %d.%d, want %d.%d", v[0], v[1], major, minor)
	}
	var headers source
	found, err := filepath.Glob(filepath.Join(dir, "kernels", "*.cuh"))
	if err != nil {
		return err
	}
	for _, h := range found {
		b, err := os.ReadFile(h)
		if err != nil {
			return err
		}
		headers.names, headers.body = append(headers.names, filepath.Base(h)), append(headers.body, string(b))
	}
	files, err := filepath.Glob(filepath.Join(dir, "kernels", "*.cu"))
	if err != nil {
		return err
	}
	var wrong []error
	for _, f := range files {
		wrong = append(wrong, one(n, headers, f, text, check))
	}
	return errors.Join(wrong...)
}

// one compiles a file.
func one(n *nvrtc, s source, file, text string, check bool) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s.name, s.text = filepath.Base(file), string(body)
	made, err := n.compileTo(s, target, "--std=c++17")
	if err != nil {
		return err
	}
	stem := strings.TrimSuffix(s.name, ".cu")
	if text != "" {
		if err := os.WriteFile(filepath.Join(text, stem+".ptx"), made, 0o644); err != nil {
			return err
		}
	}
	path := filepath.Join(filepath.Dir(filepath.Dir(file)), "ptx", stem+".ptx.gz")
	switch {
	case bytes.Equal(unpacked(path), made):
		return nil
	case check:
		return fmt.Errorf("%s is not what %s gives: run scripts/ptx.sh", path, file)
	}
	fmt.Println(path, len(made))
	return os.WriteFile(path, packed(made), 0o644)
}

func packed(b []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, err := w.Write(b)
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err) // a buffer takes all
	}
	return out.Bytes()
}

// unpacked is nil if there is no such file.
func unpacked(path string) []byte {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	b, err = io.ReadAll(r)
	if err != nil {
		return nil
	}
	return b
}
