package ptxsim

import "sync/atomic"

// Races in global memory: within a launch, blocks run in any order. Each grain of an allocation has a trace: the launch
// (32 bits), what was done (3 bits), and by which block (29 bits; of more blocks some look the same, and races between them
// are missed).
const (
	traceRead    = uint64(iota) << 29 // by one block
	traceShared                       // read by several
	traceWrote                        // by one block, which may have read it
	traceUpdated                      // atomically by one block
	traceCounter                      // updated by several

	traceOwner = 1<<29 - 1
	traceState = 7 << 29
)

// traces are the traces of an allocation.
func (a *allocation) traces(grain int) []uint64 {
	a.lock.Lock()
	defer a.lock.Unlock()
	if n := a.size>>grain + 1; len(a.shadow) < n {
		a.shadow = make([]uint64, n)
	}
	return a.shadow
}

// raceGlobal notes an access of the lanes to w.last, and fails if another block's access in this launch conflicts.
func (w *warp) raceGlobal(a *access, lanes uint32) bool {
	grain, me := w.block.kernel.grain, w.block.trace
	own, several := me|traceRead, me&^traceOwner|traceShared
	switch a.kind {
	case writes:
		own, several = me|traceWrote, me|traceWrote
	case updates:
		own, several = me|traceUpdated, me&^traceOwner|traceCounter
	}
	for l, at := range w.where {
		if lanes>>l&1 == 0 {
			continue
		}
		for i := at >> grain; i <= (at+a.size-1)>>grain; i++ {
			if old := atomic.LoadUint64(&w.shadow[i]); old != own && old != several && !w.claim(&w.shadow[i], a, l) {
				return false
			}
		}
	}
	return true
}

// claim notes an access of a lane in a trace, or fails.
func (w *warp) claim(trace *uint64, a *access, lane int) bool {
	me := w.block.trace
	for {
		old := atomic.LoadUint64(trace)
		now, ok := join(old, me, a.kind)
		if !ok {
			other := w.block.launch.coordinates(int(old & traceOwner))
			w.fail(lane, "race in global memory: block %s %s %d bytes at %#x, %s in the same launch", text(w.block.id),
				verbs[a.kind], a.size, w.last.at+uint64(w.where[lane]), deed(old, other))
			return false
		}
		if now == old || atomic.CompareAndSwapUint64(trace, old, now) {
			return true
		}
	}
}

// join is the trace after an access by block me; ok is false if there is a race.
func join(old, me uint64, kind touch) (now uint64, ok bool) {
	fresh := old>>32 != me>>32
	if kind == polls {
		return old, fresh || old&traceState != traceWrote || old&traceOwner == me&traceOwner
	}
	if fresh {
		return me | [...]uint64{traceRead, traceWrote, traceUpdated}[kind], true
	}
	mine, state := old&traceOwner == me&traceOwner, old&traceState
	alone := mine && state != traceShared && state != traceCounter
	switch {
	case kind == reads && (alone || state == traceShared):
		return old, true
	case kind == reads && state == traceRead:
		return me&^traceOwner | traceShared, true
	case kind == writes && alone:
		return me | traceWrote, true
	case kind == updates && (state == traceCounter || alone && state != traceRead):
		return old, true
	case kind == updates && alone:
		return me | traceUpdated, true
	case kind == updates && state == traceUpdated:
		return me&^traceOwner | traceCounter, true
	}
	return old, false
}

// deed says what a trace tells of.
func deed(trace uint64, block [3]int) string {
	switch trace & traceState {
	case traceShared:
		return "which other blocks read"
	case traceCounter:
		return "which other blocks update atomically"
	}
	verb := map[uint64]string{traceRead: "reads", traceWrote: "writes", traceUpdated: "updates atomically"}[trace&traceState]
	return "which block " + text(block) + " " + verb
}
