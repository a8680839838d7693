// Package child starts processes that must end with their parent. It imports nothing of Howdah's.
package child
