package consistency

// register is a state of the model of a file: its value; "" is one without a write.
type register string

func (r register) step(o *Operation) (bool, register) {
	switch o.Kind {
	case Write:
		return true, register(o.Value)
	case Read:
		return o.Open() || o.Got == string(r), r
	case Swap:
		// What an open one would have read is not known.
		return o.Open() || o.Got == string(r), register(o.Value)
	case Mkdir, Rmdir, Rename, Stat, List:
	}
	return false, r
}
