package kubeapi

// Fault is why a DataServer is not fully served, with the condition's reason.
type Fault struct {
	Reason string
	Err    error
}

// NewFault is a fault with the reason of a condition.
func NewFault(reason string, err error) *Fault { return &Fault{reason, err} }

// Error is what is wrong.
func (f *Fault) Error() string { return f.Err.Error() }
