package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"

	"github.com/tink-crypto/tink-go/v2/kwp/subtle"

	"transitd.test/clients/internal/must"
)

// importKey imports keys created here, as the documentation of Vault and OpenBao shows in Go.
func importKey(c *Client) Outcome {
	write := writer(c, "transit")
	own := random(32)
	write("keys/brought/import", map[string]any{
		"ciphertext": wrapped(c, own), "type": "aes256-gcm96", "hash_function": "SHA256", "allow_rotation": true,
	})
	ciphertext := write("encrypt/brought", map[string]any{"plaintext": b64("hello")})["ciphertext"].(string)
	next := random(32)
	write("keys/brought/import_version", map[string]any{"ciphertext": wrapped(c, next), "hash_function": "SHA256"})
	later := write("encrypt/brought", map[string]any{"plaintext": b64("again")})["ciphertext"].(string)

	public, private, err := ed25519.GenerateKey(rand.Reader)
	must.Do(err)
	write("keys/signer-brought/import", map[string]any{
		"ciphertext": wrapped(c, must.Get(x509.MarshalPKCS8PrivateKey(private))), "type": "ed25519", "exportable": true,
	})
	signature := write("sign/signer-brought", map[string]any{"input": b64("hello")})["signature"].(string)
	return Outcome{
		"opened_here": []string{open(own, ciphertext), open(next, later)},
		"signed":      ed25519.Verify(public, []byte("hello"), bytesOf(signature[len("svc:v1:"):])),
		"latest":      must.Get(c.Logical().Read("transit/keys/brought")).Data["latest_version"],
		"imported":    must.Get(c.Logical().Read("transit/keys/brought")).Data["imported_key"],
	}
}

// wrapped returns the ephemeral AES key under the mount's RSA key (OAEP), followed by key under the AES key (RFC 5649).
func wrapped(c *Client, key []byte) string {
	block, _ := pem.Decode([]byte(must.Get(c.Logical().Read("transit/wrapping_key")).Data["public_key"].(string)))
	public := must.Get(x509.ParsePKIXPublicKey(block.Bytes)).(*rsa.PublicKey)
	ephemeral := random(32)
	wrappedEphemeral := must.Get(rsa.EncryptOAEP(sha256.New(), rand.Reader, public, ephemeral, nil))
	wrappedKey := must.Get(must.Get(subtle.NewKWP(ephemeral)).Wrap(key))
	return base64.StdEncoding.EncodeToString(append(wrappedEphemeral, wrappedKey...))
}

// open decrypts a ciphertext of the service with the key alone: nonce, ciphertext and tag follow the second colon.
func open(key []byte, ciphertext string) string {
	sealed := bytesOf(ciphertext[len("svc:v1:"):])
	aead := must.Get(cipher.NewGCM(must.Get(aes.NewCipher(key))))
	return string(must.Get(aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], nil)))
}

func random(bytes int) []byte {
	made := make([]byte, bytes)
	must.Get(rand.Read(made))
	return made
}
