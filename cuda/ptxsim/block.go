package ptxsim

// block runs the blocks of a launch, one after the other.
type block struct {
	launch *launch
	kernel *kernel
	id     [3]int
	trace  uint64 // the launch and the block, for races in global memory
	params []byte
	shared []byte
	shadow []touches
	epoch  uint32 // barriers so far
	warps  []*warp
}

func newBlock(l *launch) *block {
	k := l.kernel
	room := up(k.shared, dynamicAlign) + l.shared
	b := &block{launch: l, kernel: k, params: l.params, shared: make([]byte, room), shadow: make([]touches, room>>k.grain+1)}
	threads := l.block[0] * l.block[1] * l.block[2]
	for i := range (threads + 31) / 32 {
		w := &warp{block: b, id: i, registers: make([]lanes, k.registers), preds: make([]uint32, k.preds), local: make([]byte, 32*k.local)}
		for _, v := range k.values {
			fill(&w.registers[v.register], v.value)
		}
		for _, s := range k.specials {
			w.identify(s, threads)
		}
		b.warps = append(b.warps, w)
	}
	return b
}

func fill(r *lanes, v uint64) {
	for l := range r {
		r[l] = v
	}
}

// run runs a block of the launch.
func (b *block) run(index int) error {
	l := b.launch
	b.id = l.coordinates(index)
	b.trace = uint64(l.number)<<32 | uint64(index)&traceOwner
	poison(b.shared)
	threads := l.block[0] * l.block[1] * l.block[2]
	for i, w := range b.warps {
		w.groups = append(w.groups[:0], group{lanes: all >> max(0, 32*(i+1)-threads)})
		w.copies, w.commits = w.copies[:0], [32]int{}
		poison(w.local)
		for _, s := range b.kernel.specials {
			if axis, ok := blockAxes[s.name]; ok {
				fill(&w.registers[s.register], uint64(b.id[axis]))
			}
		}
	}
	for running := true; running; {
		b.epoch++
		running = false
		for _, w := range b.warps {
			w.waiting, w.epoch = false, 0
			if w.run(); w.fault != nil {
				return w.fault
			}
			running = running || w.waiting
		}
	}
	return nil
}

// poison makes memory NaN in every type of float.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

// blockAxes are the special registers that are not the same in all blocks.
var blockAxes = map[string]int{"%ctaid.x": 0, "%ctaid.y": 1, "%ctaid.z": 2}

// identify sets a special register that is the same in all blocks of a launch.
func (w *warp) identify(s special, threads int) {
	r, block := &w.registers[s.register], w.block.launch.block
	axis := int(s.name[len(s.name)-1] - 'x')
	for l := range r {
		t := w.id*32 + l
		switch s.name {
		case "%tid.x", "%tid.y", "%tid.z":
			r[l] = uint64([3]int{t % block[0], t / block[0] % block[1], t / (block[0] * block[1])}[axis])
		case "%ntid.x", "%ntid.y", "%ntid.z":
			r[l] = uint64(block[axis])
		case "%nctaid.x", "%nctaid.y", "%nctaid.z":
			r[l] = uint64(w.block.launch.grid[axis])
		case "%laneid":
			r[l] = uint64(l)
		case "%warpid":
			r[l] = uint64(w.id)
		case "%nwarpid":
			r[l] = uint64((threads + 31) / 32)
		default:
			r[l] = laneMask(s.name, l)
		}
	}
}

// laneMask is the special register of the lanes that are less, equal or greater than one.
func laneMask(name string, lane int) uint64 {
	own := uint32(1) << lane
	switch name {
	case "%lanemask_eq":
		return uint64(own)
	case "%lanemask_lt":
		return uint64(own - 1)
	case "%lanemask_le":
		return uint64(own | (own - 1))
	case "%lanemask_ge":
		return uint64(^(own - 1))
	}
	return uint64(^(own | (own - 1)))
}
