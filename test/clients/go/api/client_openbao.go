//go:build openbao

package main

import (
	"github.com/openbao/openbao/api/v2"
)

type (
	Client               = api.Client
	Secret               = api.Secret
	Response             = api.Response
	ResponseError        = api.ResponseError
	InitRequest          = api.InitRequest
	MountInput           = api.MountInput
	MountOutput          = api.MountOutput
	MountConfigInput     = api.MountConfigInput
	EnableAuthOptions    = api.EnableAuthOptions
	TokenCreateRequest   = api.TokenCreateRequest
	LifetimeWatcherInput = api.LifetimeWatcherInput
)

// newClient returns a client with the option to read its own writes on every node.
func newClient(address string) (*Client, error) {
	config := api.DefaultConfig()
	config.Address = address
	config.DefaultStrongConsistency = true
	config.HttpClient.Transport = over(config.HttpClient.Transport)
	return api.NewClient(config)
}

func mountAt(c *Client, path string) (*MountOutput, error) { return c.Sys().MountInfo(path) }

func loginUserpass(c *Client, name, password string) (*Secret, error) {
	return loggedIn(c, "auth/userpass/login/"+name, map[string]any{"password": password})
}

// loginApprole logs in with a wrapped secret id.
func loginApprole(c *Client, roleID, wrappedSecretID string) (*Secret, error) {
	unwrapped, err := c.Logical().Unwrap(wrappedSecretID)
	if err != nil {
		return nil, err
	}
	return loggedIn(c, "auth/approle/login", map[string]any{"role_id": roleID, "secret_id": unwrapped.Data["secret_id"]})
}

func loggedIn(c *Client, path string, body map[string]any) (*Secret, error) {
	secret, err := c.Logical().Write(path, body)
	if err == nil {
		c.SetToken(secret.Auth.ClientToken)
	}
	return secret, err
}

// newShares replaces the shares of the seal by two new ones.
func newShares(c *Client, shares []string) ([]string, error) {
	begun, err := c.Sys().RotateRootInit(&api.RotateInitRequest{SecretShares: 2, SecretThreshold: 2})
	if err != nil {
		return nil, err
	}
	var updated *api.RotateUpdateResponse
	for _, share := range shares {
		if updated, err = c.Sys().RotateRootUpdate(share, begun.Nonce); err != nil {
			return nil, err
		}
	}
	return updated.Keys, nil
}
