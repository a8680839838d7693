package session

// SetSlotSequence makes a slot as if it had been used so often.
func (s *Server) SetSlotSequence(id sessionID, number, sequence uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := &s.sessions[id].slots[number]
	slot.sequence, slot.used = sequence, true
}
