package ptxsim

import "fmt"

// Races in shared memory: between two barriers of the block, threads run in any order, and those of a warp too, between two
// barriers of the warp. Each grain has the last thread that wrote it and the last that read it, each as: the block's barriers
// so far (32 bits), the warp's (19), flags (3), warp (5), lane (5); 0 is nobody.
type touches struct{ wrote, read uint64 }

const (
	byLanes  = 1 << 10 // other lanes of the warp as well
	byWarps  = 1 << 11 // other warps as well
	byAtomic = 1 << 12
	warpBits = 31 << 5
	laneBits = 31
)

// raceShared notes an access of the lanes, and fails if another thread's access conflicts.
func (w *warp) raceShared(a *access, lanes uint32) bool {
	grain, now := w.block.kernel.grain, uint64(w.block.epoch)<<32
	me := now | uint64(w.epoch)<<13 | uint64(w.id)<<5
	if a.kind == updates {
		me |= byAtomic
	}
	several := me | byLanes | laneBits
	for l, at := range w.where {
		if lanes>>l&1 == 0 {
			continue
		}
		for i := at >> grain; i <= (at+a.size-1)>>grain; i++ {
			t := &w.block.shadow[i]
			if a.kind == reads && t.wrote < now && (t.read >= now && t.read&byWarps != 0 || t.read|laneBits == several) {
				continue // known to be read by more than this lane
			}
			if other, verb := t.note(me|uint64(l), now, a.kind); verb != "" {
				w.fail(l, "race in shared memory: %s %d bytes at %#x, which thread %d %s with no barrier between",
					verbs[a.kind], a.size, at, other&(warpBits|laneBits), verb)
				return false
			}
		}
	}
	return true
}

// note adds an access by me. If another races with it, verb is what that one did.
func (t *touches) note(me, now uint64, kind touch) (other uint64, verb string) {
	if t.wrote >= now && t.wrote != me && conflict(t.wrote, me) && (kind == reads || kind == writes || t.wrote&byAtomic == 0) {
		return t.wrote, "wrote"
	}
	if kind == polls {
		return 0, ""
	}
	if kind != reads {
		if t.read >= now && conflict(t.read, me) {
			return t.read, "read"
		}
		t.wrote = me
		return 0, ""
	}
	switch old := t.read; {
	case old < now:
		t.read = me
	case (old^me)&warpBits != 0:
		t.read = me | byWarps
	case old>>13 == me>>13 && (old^me)&laneBits != 0:
		t.read = me | byLanes | old&byWarps
	default:
		t.read = me | old&(byWarps|byLanes)
	}
	return 0, ""
}

// conflict reports whether an earlier access, since the last barrier, is in no order with one by me.
func conflict(old, me uint64) bool {
	switch {
	case old&byWarps != 0 || (old^me)&warpBits != 0:
		return true
	case old>>13 != me>>13: // the warp met since
		return false
	}
	return old&byLanes != 0 || (old^me)&laneBits != 0
}

func text(id [3]int) string { return fmt.Sprintf("(%d,%d,%d)", id[0], id[1], id[2]) }
