//go:build unix && !slow

package rubricmem

import "testing"

// Nothing that was acknowledged is lost when the writer is killed at any moment.
func TestKilledWhileWriting(t *testing.T) { testKills(t, 25) }
