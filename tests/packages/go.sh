#!/bin/sh
# Builds the Go package and runs its tests on the simulated driver; 77 without go.
# Usage: go.sh ROOT BUILD WORK
set -eu
root=$1 build=$2 work=$3
command -v go >/dev/null || { echo "skipped: there is no go"; exit 77; }
mkdir -p "$work"
cd "$root/adapters/bindings/go"
export GOCACHE="$work/cache" GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=1
export CGO_CFLAGS="-I$root/allocator/include -I$root/simulator/include -O1" CGO_LDFLAGS="-L$build" LD_LIBRARY_PATH="$build"
go vet ./...
go test -count=1 ./...
