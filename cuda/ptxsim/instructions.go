package ptxsim

// instructions make what runs an instruction, by its name. They return nil if there is no such form of it, or if it only
// changes the order of execution.
var instructions = map[string]func(*builder) exec{
	"add": (*builder).add, "sub": (*builder).sub, "mul": (*builder).mul, "mad": (*builder).mad, "fma": (*builder).mad,
	"div": (*builder).div, "rem": (*builder).rem, "min": (*builder).min, "max": (*builder).max,
	"neg": (*builder).neg, "abs": (*builder).abs, "copysign": (*builder).copysign,
	"rcp": (*builder).function, "sqrt": (*builder).function, "rsqrt": (*builder).function, "ex2": (*builder).function,
	"lg2": (*builder).function, "sin": (*builder).function, "cos": (*builder).function, "tanh": (*builder).function,
	"and": (*builder).logical, "or": (*builder).logical, "xor": (*builder).logical, "not": (*builder).logical,
	"shl": (*builder).shift, "shr": (*builder).shift, "shf": (*builder).funnel,
	"lop3": (*builder).lookup, "prmt": (*builder).permute, "bfe": (*builder).extract, "bfi": (*builder).insert,
	"popc": (*builder).tally, "clz": (*builder).tally, "brev": (*builder).tally,
	"mov": (*builder).mov, "cvt": (*builder).cvt, "cvta": (*builder).cvta, "setp": (*builder).setp, "selp": (*builder).selp,
	"ld": (*builder).load, "ldu": (*builder).load, "st": (*builder).store,
	"atom": (*builder).atomic, "red": (*builder).atomic, "cp": (*builder).copyAsync,
	"shfl": (*builder).shuffle, "vote": (*builder).vote, "activemask": (*builder).activemask,
	"ldmatrix": (*builder).matrices, "mma": (*builder).mma,
	"bra": (*builder).jump, "ret": (*builder).finish, "exit": (*builder).finish, "trap": (*builder).trap,
	"bar": (*builder).barrier, "barrier": (*builder).barrier,
	"membar": (*builder).order, "fence": (*builder).order, "prefetch": (*builder).order,
}
