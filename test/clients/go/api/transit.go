package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"

	"transitd.test/clients/internal/must"
)

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func bytesOf(text any) []byte { return must.Get(base64.StdEncoding.DecodeString(text.(string))) }

// writer returns a function that writes below a mount and ends the program on an error.
func writer(c *Client, mount string) func(path string, body map[string]any) map[string]any {
	return func(path string, body map[string]any) map[string]any {
		secret := must.Get(c.Logical().Write(mount+"/"+path, body))
		if secret == nil {
			return nil
		}
		return secret.Data
	}
}

func transit(c *Client) Outcome {
	write := writer(c, "transit")
	write("keys/notes", map[string]any{"exportable": true, "allow_plaintext_backup": true})
	first := write("encrypt/notes", map[string]any{"plaintext": b64("hello")})["ciphertext"].(string)
	write("keys/notes/rotate", nil)
	second := write("rewrap/notes", map[string]any{"ciphertext": first})["ciphertext"].(string)
	outcome := Outcome{
		"prefixes":  []string{first[:7], second[:7]},
		"decrypted": string(bytesOf(write("decrypt/notes", map[string]any{"ciphertext": second})["plaintext"])),
		"as_vault":  string(bytesOf(write("decrypt/notes", map[string]any{"ciphertext": "vault" + first[3:]})["plaintext"])),
		"exported":  len(must.Get(c.Logical().Read("transit/export/encryption-key/notes")).Data["keys"].(map[string]any)),
		"random":    len(bytesOf(write("random/32", nil)["random_bytes"])),
		"hash":      len(write("hash/sha2-256", map[string]any{"input": b64("hello")})["sum"].(string)),
	}
	dataKey := write("datakey/plaintext/notes", map[string]any{"bits": 512})
	outcome["data_key"] = len(bytesOf(dataKey["plaintext"]))
	opened := write("decrypt/notes", map[string]any{"ciphertext": dataKey["ciphertext"]})
	outcome["data_key_opened"] = opened["plaintext"] == dataKey["plaintext"]
	outcome["batch"] = batches(c)
	outcome["signed"] = signatures(c)

	write("keys/notes/config", map[string]any{"min_decryption_version": 2, "min_encryption_version": 2, "deletion_allowed": true})
	write("keys/notes/trim", map[string]any{"min_available_version": 2})
	_, trimmed := c.Logical().Write("transit/decrypt/notes", map[string]any{"ciphertext": first})
	backup := must.Get(c.Logical().Read("transit/backup/notes")).Data["backup"]
	must.Get(c.Logical().Delete("transit/keys/notes"))
	_, deleted := c.Logical().Write("transit/decrypt/notes", map[string]any{"ciphertext": second})
	write("restore/notes", map[string]any{"backup": backup})
	outcome["trimmed"], outcome["deleted"] = statusOf(trimmed), statusOf(deleted)
	outcome["restored"] = string(bytesOf(write("decrypt/notes", map[string]any{"ciphertext": second})["plaintext"]))
	return outcome
}

func batches(c *Client) Outcome {
	write := writer(c, "transit")
	results := write("encrypt/notes", map[string]any{"batch_input": []map[string]any{
		{"plaintext": b64("one"), "reference": "a"}, {"plaintext": b64("two"), "associated_data": b64("row 2")},
	}})["batch_results"].([]any)
	first, second := results[0].(map[string]any), results[1].(map[string]any)
	item := map[string]any{"ciphertext": second["ciphertext"]}
	items := []map[string]any{{"ciphertext": first["ciphertext"]}, item}
	_, half := c.Logical().Write("transit/decrypt/notes", map[string]any{"batch_input": items})
	lenient := write("decrypt/notes", map[string]any{"batch_input": items, "partial_failure_response_code": 200})["batch_results"].([]any)
	item["associated_data"] = b64("row 2")
	opened := []string{}
	for _, result := range write("decrypt/notes", map[string]any{"batch_input": items})["batch_results"].([]any) {
		opened = append(opened, string(bytesOf(result.(map[string]any)["plaintext"])))
	}
	return Outcome{
		"reference": first["reference"],
		"versions":  []any{first["key_version"], second["key_version"]},
		"half":      statusOf(half),
		"lenient":   lenient[1].(map[string]any)["error"] != nil,
		"opened":    opened,
	}
}

func signatures(c *Client) Outcome {
	write := writer(c, "transit")
	write("keys/signer", map[string]any{"type": "ed25519"})
	versions := must.Get(c.Logical().Read("transit/keys/signer")).Data["keys"].(map[string]any)
	public := ed25519.PublicKey(bytesOf(versions["1"].(map[string]any)["public_key"]))
	signature := write("sign/signer", map[string]any{"input": b64("hello")})["signature"].(string)
	hmac := write("hmac/signer/sha2-512", map[string]any{"input": b64("hello")})["hmac"]
	verify := func(path, input, kind string, value any) any {
		return write("verify/"+path, map[string]any{"input": b64(input), kind: value})["valid"]
	}
	return Outcome{
		"here":  ed25519.Verify(public, []byte("hello"), bytesOf(signature[strings.LastIndex(signature, ":")+1:])),
		"there": []any{verify("signer", "hello", "signature", signature), verify("signer", "other", "signature", signature)},
		"hmac":  []any{verify("signer/sha2-512", "hello", "hmac", hmac), verify("signer/sha2-512", "other", "hmac", hmac)},
	}
}
