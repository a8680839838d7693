package fill

// Usage is what a file system has, for clients.
type Usage struct {
	Bytes, Files Amount
}

// Amount is an amount of bytes, or of inodes. The zero value is unknown: some file systems have no table of inodes.
type Amount struct {
	// Total and Used are of the whole file system.
	Total, Used int64
	// Free is what clients can still take. With Used it is less than Total if a part is kept for others.
	Free int64
}

// Level is how full a volume is. A greater one is fuller.
type Level int

// Levels, by what is used of what clients can have.
const (
	Roomy Level = iota
	Above80
	Above90
	Above95
	// Full means that clients can't write.
	Full
)

const (
	// relief is by how many percent less must be used than what a level begins at until the level is left, so that writes and
	// removals around a border don't change it each time.
	relief = 2
	// fullRelief is how much must be free again, in percent, of a volume that was full.
	fullRelief = 1
	// write is the most that a Linux client writes at once, and so what it is refused as a whole. A volume with less has no room for
	// large files, and would never be full to the last byte.
	write = 1 << 20
	// leastSteps is how many steps a volume has at least: a small one is not full while a good part is free.
	leastSteps = 64
)

// begins is at how many percent a level begins.
var begins = map[Level]int64{Above80: 80, Above90: 90, Above95: 95}

// known tells whether the amount says anything. A volume that reports 0 bytes, or less than nothing, does not.
func (a Amount) known() bool {
	return a.Total > 0 && a.Used >= 0 && a.Free >= 0 && (a.Used > 0 || a.Free > 0)
}

// Percent is how much is used of what clients can have, rounded down; known is false if that is unknown.
func (a Amount) Percent() (percent int, known bool) {
	if !a.known() {
		return 0, false
	}
	return int(float64(a.Used) / (float64(a.Used) + float64(a.Free)) * 100), true
}

// reaches tells whether at least a part is used, in percent. Floating point: the products of large volumes overflow.
func (a Amount) reaches(percent int64) bool {
	return a.known() && float64(a.Used)*100 >= float64(percent)*(float64(a.Used)+float64(a.Free))
}

// isFull tells whether nothing is left for clients, or less than one step takes; stays is for one that was full before.
func (a Amount) isFull(stays bool, step int64) bool {
	step = min(step, a.Total/leastSteps)
	return a.known() && (a.Free == 0 || a.Free < step || stays && (a.Free < 2*step || float64(a.Free)*100 < fullRelief*float64(a.Total)))
}

// level judges one amount, of which a client takes as much as a step at once.
func (a Amount) level(before Level, step int64) Level {
	if a.isFull(before == Full, step) {
		return Full
	}
	for _, level := range []Level{Above95, Above90, Above80} {
		border := begins[level]
		if before >= level {
			border -= relief
		}
		if a.reaches(border) {
			return level
		}
	}
	return Roomy
}

// LevelOf is the level of a volume whose level was known before: the higher one of bytes and inodes.
func LevelOf(usage Usage, before Level) Level {
	return max(usage.Bytes.level(before, write), usage.Files.level(before, 1))
}

// OfFiles tells whether the inodes are fuller than the bytes.
func OfFiles(usage Usage) bool {
	bytes, files := usage.Bytes, usage.Files
	switch {
	case !files.known():
		return false
	case !bytes.known():
		return true
	}
	return float64(files.Used)*(float64(bytes.Used)+float64(bytes.Free)) > float64(bytes.Used)*(float64(files.Used)+float64(files.Free))
}
