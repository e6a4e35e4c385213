//go:build !linux && !darwin

package cpu

// memoryLimit is not known here.
func memoryLimit() int64 { return 0 }
