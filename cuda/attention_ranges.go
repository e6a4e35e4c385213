package cuda

const (
	fewQueries     = 8   // of a task that is cut along its keys
	leastShared    = 64  // keys that are worth a range of their own for the tasks that share them
	leastRange     = 256 // keys of a piece of a range
	narrowItemRows = 16  // rows of a narrow item
	keyBlock       = 64  // pieces of a range are multiples of it
)

// keyRange is path positions [first, end), shared by the queries [query, query+n); path as in an Item.
type keyRange struct{ query, n, path, first, end int }

// makeRanges plans the tasks of few queries. What consecutive tasks' paths share, such as a prompt of several samples or
// the beginning of several prompts, is a range for them all; each one's own rest is another.
func (p *attentionPlan) makeRanges() {
	few, shared := p.scratch.order[:0], p.scratch.shared[:0]
	for i := range p.tasks {
		if t := &p.tasks[i]; t.Q.N > 0 && p.few(t) {
			few = append(few, *t)
		}
	}
	for i := range few {
		n := 0
		if i+1 < len(few) {
			n = min(prefix(few[i].Keys, few[i+1].Keys), few[i].Pos+1, few[i+1].Pos+1) // what all their queries see
		}
		shared = append(shared, n)
	}
	p.scratch.order, p.scratch.shared, p.scratch.ranges = few, shared, p.scratch.ranges[:0]
	for i, query := 0, 0; i < len(few); {
		j := i + 1
		for j < len(few) && shared[j-1] >= leastShared {
			j++
		}
		query = p.share(i, j, query, 0)
		i = j
	}
	p.cutRanges()
	p.numberParts()
}

// share makes the ranges of tasks [i, j) of the order from a path position on, where they share leastShared keys or more
// each with the next, and returns the number of the query after theirs; query is their first.
func (p *attentionPlan) share(i, j, query, first int) int {
	tasks, shared := p.scratch.order, p.scratch.shared
	n, common := 0, tasks[i].Pos+tasks[i].Q.N
	for t := i; t < j; t++ {
		n += tasks[t].Q.N
	}
	for t := i; t < j-1; t++ {
		common = min(common, shared[t])
	}
	if common > first {
		p.scratch.ranges = append(p.scratch.ranges, keyRange{query, n, p.path(tasks[i].Keys, first, common), first, common})
	}
	if j-i == 1 {
		return query + n
	}
	for from := i; from < j; {
		to := from + 1
		for to < j && shared[to-1] >= common+leastShared {
			to++
		}
		query = p.share(from, to, query, common)
		from = to
	}
	return query
}

// cutRanges makes items of ranges: of at most as many queries as fit a tile, and of pieces of their keys so short that there
// are a few items for each processor.
func (p *attentionPlan) cutRanges() {
	group := p.heads / p.kvHeads
	most, work := queryRows/group, 0
	for _, r := range p.scratch.ranges {
		work += (r.n + most - 1) / most * (r.end - r.first) * p.kvHeads
	}
	length := max(leastRange, work/(4*max(1, p.processors)))
	for _, r := range p.scratch.ranges {
		stacks, pieces := (r.n+most-1)/most, (r.end-r.first+length-1)/length
		piece := ((r.end-r.first+pieces-1)/pieces + keyBlock - 1) / keyBlock * keyBlock
		for s := range stacks {
			from, to := s*r.n/stacks, (s+1)*r.n/stacks
			items := &p.wide
			if (to-from)*group <= narrowItemRows {
				items = &p.narrow
			}
			for at := r.first; at < r.end; at += piece {
				items.add(r.query+from, to-from, r.path, at, min(at+piece, r.end), p.slots)
				p.slots += to - from
			}
		}
	}
}

// Records of an Item and a Query.
const (
	itemInts  = 6
	queryInts = 4
)

// numberParts lists the queries, and the slots of each.
func (p *attentionPlan) numberParts() {
	for _, t := range p.scratch.order {
		for i := range t.Q.N {
			p.queries.add(t.Q.Row+i, t.Pos+i+1, 0, 0)
		}
	}
	q := p.queries.ints
	p.eachPart(func(query, _ int) { q[query*queryInts+3]++ })
	sum := int32(0)
	for i := 0; i < len(q); i += queryInts {
		q[i+2], sum, q[i+3] = sum, sum+q[i+3], 0
	}
	p.partOf.ints = append(p.partOf.ints, make([]int32, sum)...)
	p.eachPart(func(query, slot int) {
		at := q[query*queryInts+2:]
		p.partOf.ints[at[0]+at[1]] = int32(slot)
		at[1]++
	})
}

// eachPart calls f with the query and the slot of each part.
func (p *attentionPlan) eachPart(f func(query, slot int)) {
	for _, s := range []*section{&p.wide, &p.narrow} {
		for i := 0; i < len(s.ints); i += itemInts {
			it := s.ints[i : i+itemInts]
			for j := range int(it[1]) {
				f(int(it[0])+j, int(it[5])+j)
			}
		}
	}
}
