module github.com/howdah/howdah/hack/lab/pause

go 1.26.0
