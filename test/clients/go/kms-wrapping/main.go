// Wraps and unwraps with the transit wrapper of go-kms-wrapping, as services do that unseal themselves with the keys of another service.
// Prints the results as JSON.
//
// Usage: kms-wrapping MOUNT, with the node's address in TRANSITD_ADDR and a token in TRANSITD_TOKEN.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"

	wrapping "github.com/hashicorp/go-kms-wrapping/v2"
	transit "github.com/hashicorp/go-kms-wrapping/wrappers/transit/v2"
	"github.com/hashicorp/vault/api"

	"transitd.test/clients/internal/must"
)

var background = context.Background()

func main() {
	must.Do(json.NewEncoder(os.Stdout).Encode(exercise(os.Args[1], administrator())))
}

func exercise(mount string, admin *api.Client) map[string]any {
	must.Get(admin.Logical().Write(mount+"/keys/unseal", nil))
	must.Get(admin.Logical().Write(mount+"/keys/other", nil))
	must.Do(admin.Sys().PutPolicy("unseal", `path "`+mount+`/+/unseal" { capabilities = ["update"] }`))
	made := must.Get(admin.Auth().Token().CreateOrphan(&api.TokenCreateRequest{Policies: []string{"unseal"}, Period: "24h"}))

	wrapper := must.Get(configured(mount, "unseal", made.Auth.ClientToken))
	keyIDs := []string{must.Get(wrapper.KeyId(background))}
	first := must.Get(wrapper.Encrypt(background, []byte("root key")))
	must.Get(admin.Logical().Write(mount+"/keys/unseal/rotate", nil))
	second := must.Get(wrapper.Encrypt(background, []byte("root key")))
	keyIDs = append(keyIDs, must.Get(wrapper.KeyId(background)))
	opened := []string{}
	for _, blob := range []*wrapping.BlobInfo{first, second} {
		opened = append(opened, string(must.Get(wrapper.Decrypt(background, blob))))
	}
	_, wrongKey := must.Get(configured(mount, "other", admin.Token())).Decrypt(background, first)
	_, wrongToken := configured(mount, "unseal", "s.nobody")
	_, notAllowed := configured(mount, "other", made.Auth.ClientToken)
	must.Do(wrapper.Finalize(background))
	return map[string]any{
		"prefix":      strings.SplitN(string(first.Ciphertext), ":", 2)[0],
		"key_ids":     keyIDs,
		"blob_ids":    []string{first.KeyInfo.KeyId, second.KeyInfo.KeyId},
		"opened":      opened,
		"wrong_key":   statusOf(wrongKey),
		"wrong_token": statusOf(wrongToken),
		"not_allowed": statusOf(notAllowed),
	}
}

func configured(mount, key, token string) (*transit.Wrapper, error) {
	wrapper := transit.NewWrapper()
	_, err := wrapper.SetConfig(background, wrapping.WithConfigMap(map[string]string{
		"address": os.Getenv("TRANSITD_ADDR"), "token": token, "mount_path": mount, "key_name": key,
	}))
	return wrapper, err
}

func administrator() *api.Client {
	config := api.DefaultConfig()
	config.Address = os.Getenv("TRANSITD_ADDR")
	client := must.Get(api.NewClient(config))
	client.SetToken(os.Getenv("TRANSITD_TOKEN"))
	return client
}

func statusOf(err error) int {
	var refused *api.ResponseError
	if !errors.As(err, &refused) {
		return 0
	}
	return refused.StatusCode
}
