package analyst

// When an update acts.
const (
	trigger  = 0.15 // defensive: the share of gaming answers is this much above that of the first update
	leastPay = 0.1  // and a criterion pays them this much more than others, in units of weight
	mastered = 0.75 // curriculum: the mean credit of what earns something, by weight, is above this
)

// part is a criterion that an update brings in.
type part struct {
	Text     string  `json:"text"`
	Weight   float64 `json:"weight"`
	Category string  `json:"category"`
}

// Categories of criteria.
const (
	following = "instruction_following"
	guarding  = "anti_reward_hacking"
	writing   = "communication_quality"
)

// What updates do is fixed in three tables. parts take the place of the criteria that reward quantity.
var parts = map[string][]part{
	detail:   {{size, 3, following}, {brief, 1, writing}},
	mentions: {{topic, 2, following}, {named, 1, following}},
}

// guards are the penalties for the kinds of gaming.
var guards = map[string]part{
	Padding: {fillers, -2, guarding}, Repetition: {repeats, -2, guarding}, Excess: {beyond, -2, guarding},
}

// ladder is what is asked for in addition when the rest is mastered, one thing at a time; before it form gets the weight formWeight.
var ladder = []part{{fillers, -1, writing}, {repeats, -1, writing}, {beyond, -1, writing}}

const formWeight = 4
