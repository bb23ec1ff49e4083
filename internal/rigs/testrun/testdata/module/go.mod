module eidetic

go 1.26.0
