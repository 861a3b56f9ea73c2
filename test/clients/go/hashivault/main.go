// Signs and verifies with keys of a transit engine as cosign does, and prints the results as JSON.
//
// Usage: hashivault, with VAULT_ADDR, VAULT_TOKEN and TRANSIT_SECRET_ENGINE_PATH, which the client reads itself.
package main

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"os"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms/hashivault"

	"transitd.test/clients/internal/must"
)

func main() {
	must.Do(json.NewEncoder(os.Stdout).Encode(exercise()))
}

func exercise() map[string]any {
	signer := must.Get(hashivault.LoadSignerVerifier("hashivault://release", crypto.SHA256))
	public := must.Get(signer.CreateKey(context.Background(), hashivault.AlgorithmECDSAP256))
	message := func() *bytes.Reader { return bytes.NewReader([]byte("image digest")) }
	signed, err := signer.SignMessage(message())
	if err != nil {
		return map[string]any{"signed": err.Error()}
	}
	here := must.Get(signature.LoadVerifier(public, crypto.SHA256))
	return map[string]any{
		"signed": true,
		"here":   here.VerifySignature(bytes.NewReader(signed), message()) == nil,
		"there":  signer.VerifySignature(bytes.NewReader(signed), message()) == nil,
		"other":  signer.VerifySignature(bytes.NewReader(signed), bytes.NewReader([]byte("another"))) == nil,
	}
}
