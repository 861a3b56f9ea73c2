// Package deprecation has the names that helm's linter compiles against. It is never called, because package scheme knows no kinds.
package deprecation

import "k8s.io/apimachinery/pkg/runtime"

func IsDeprecated(runtime.Object, int, int) bool { return false }

func WarningMessage(runtime.Object) string { return "" }
