module github.com/periplus/periplus/test/surface/upstream

go 1.26.0
