//go:build !amd64 || purego

package cpu

func unpackerSets() map[string]unpackers { return map[string]unpackers{"portable": unpackersGo()} }
