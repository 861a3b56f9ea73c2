// Package rest has the names that helm's engine compiles against. Rendering without a cluster uses none of them.
package rest

type Config struct{}
