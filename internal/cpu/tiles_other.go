//go:build amd64 && !linux && !purego

package cpu

// tilesAllowed: where the system does not hand out the matrix unit's registers on request, it is not used.
func tilesAllowed() bool { return false }
