package session

// SetSlotSequence makes a slot as if it had been used so often.
func (s *Server) SetSlotSequence(id sessionID, number, sequence uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.sessions[id].slot(number)
	slot.sequence, slot.used = sequence, true
}

// InFlight is how many requests of a session have not ended.
func (s *Server) InFlight(id sessionID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.sessions[id]; session != nil {
		return session.inFlight
	}
	return 0
}

// Held is how many addresses there are, and the sum of what is counted for them.
func (s *Server) Held() (addresses, sum int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.addresses {
		sum += len(a.clients) + a.tentative.Len() + a.sessions + a.cached
	}
	return len(s.addresses), sum
}
