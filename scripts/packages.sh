#!/bin/sh
# Draw what imports what, as docs/img/packages.svg: one box for each package that is part of
# the product, an arrow to each that it imports. Arrows that follow from others are left out.
# Fails when packages import each other in a circle, which Go's compiler would refuse too, or
# when an arrow runs back up: every box is on a floor below those that import it.
set -eu
cd "$(dirname "$0")/.."
out=${1:-docs/img/packages.svg}
{
	echo 'digraph packages {'
	echo 'rankdir=TB; ranksep=0.45; nodesep=0.12; bgcolor=white;'
	echo 'node [shape=box style="rounded,filled" fillcolor="#f4f6f8" color="#9aa5b1" fontname="Helvetica" fontsize=11 margin="0.08,0.04" height=0.3];'
	echo 'edge [color="#7b8794" arrowsize=0.5 penwidth=0.7];'
	# shellcheck disable=SC2016 # a template of go list, not of the shell
	go list -f '{{$from := .ImportPath}}{{range .Imports}}{{$from}} {{.}}
{{end}}' ./... |
		grep ' eidetic/' |
		# Benchmarks and what tests alone import are no part of the product.
		grep -Ev '/bench( |/|$)|test( |$)|/(testlab|testrun|repotest|benchrig|truth|noise|peers|simulate)( |/|$)' |
		sed 's#eidetic/##g' | grep -v ' internal/lab$' | sort -u |
		while read -r from to; do printf '"%s" -> "%s";\n' "$from" "$to"; done
	for area in netlab capture control analysis internal image; do
		case $area in
		netlab) colour='#e3f2fd' ;;
		capture) colour='#e8f5e9' ;;
		control) colour='#fff3e0' ;;
		analysis) colour='#f3e5f5' ;;
		image) colour='#efebe9' ;;
		*) continue ;;
		esac
		go list "./$area/..." | sed 's#eidetic/##' |
			grep -Ev '/bench(/|$)|test$|/(peers|simulate|conformance|readers|mitmproxy|fulldisk|flood|measure)$' |
			while read -r p; do printf '"%s" [fillcolor="%s"];\n' "$p" "$colour"; done
	done
	echo '}'
} | tred | dot -Tsvg -o "$out"
