package ptxsim

// module is parsed code.
type module struct {
	kernels map[string]*kernel
	consts  []byte // the .const variables with their initial values
}

// kernel is an entry of a module, ready to run. Nothing changes it after parsing, so that devices share it.
type kernel struct {
	name      string
	params    []param
	paramSize int
	block     [3]int // the threads a block may have at most (.maxntid); 0 if it does not say
	shared    int    // bytes of static shared memory
	local     int    // bytes of local memory of a thread
	grain     int    // no access to shared or global memory is smaller, as the power of 2 of its bytes
	consts    []byte // of the module
	code      []instr
	registers int
	preds     int
	values    []value // registers with the same value in every launch
	specials  []special
}

// param is a parameter in the parameter space.
type param struct{ offset, size int }

// value is a register that a kernel begins with.
type value struct {
	register int
	value    uint64
}

// special is a register that holds a special register, such as %tid.x.
type special struct {
	register int
	name     string
}

// instr is an instruction that is ready to run.
type instr struct {
	run    exec
	flow   flow
	target int    // of a branch
	guard  int    // predicate; -1 if the instruction has none
	negate uint32 // all ones if the guard is negated
	meets  bool   // waits for the lanes that member names
	member int    // register with the mask of lanes, or -1 for the whole warp
	line   int
	text   string // as it is written, with its spaces
}

// exec runs an instruction for the active lanes of a warp, of which there is at least one.
type exec func(w *warp, active uint32)

// flow says what an instruction does to the order of execution.
type flow int

const (
	next flow = iota
	branch
	barrier
	exit
	trap
)
