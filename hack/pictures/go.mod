module github.com/howdah/howdah/hack/pictures

go 1.26.0

require github.com/bep/goat v0.5.0
