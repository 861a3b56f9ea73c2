package main

import (
	"context"
	"encoding/json"
	"os"

	"transitd.test/clients/internal/must"
)

// login logs in and lets the client use the new token.
func login(c *Client, method AuthMethod) (*Secret, error) {
	return c.Auth().Login(context.Background(), method)
}

func auth(c *Client) Outcome {
	must.Do(c.Sys().PutPolicy("clerk", `path "transit/keys" { capabilities = ["list"] }`))
	for _, method := range []string{"userpass", "approle"} {
		must.Do(c.Sys().EnableAuthWithOptions(method, &EnableAuthOptions{Type: method}))
	}
	write := func(path string, body map[string]any) *Secret { return must.Get(c.Logical().Write(path, body)) }
	write("auth/userpass/users/ann", map[string]any{"password": "correct horse", "token_policies": "clerk"})
	write("auth/approle/role/shop", map[string]any{"token_policies": []string{"clerk"}, "secret_id_num_uses": 2})
	roleID := must.Get(c.Logical().Read("auth/approle/role/shop/role-id")).Data["role_id"].(string)
	wrapper := must.Get(c.Clone())
	wrapper.SetToken(c.Token())
	wrapper.SetWrappingLookupFunc(func(_, _ string) string { return "5m" })
	secretID := must.Get(wrapper.Logical().Write("auth/approle/role/shop/secret-id", nil)).WrapInfo.Token

	withPassword := func(password string) AuthMethod {
		return must.Get(newUserpassAuth("ann", &Password{FromString: password}))
	}
	withSecretID := must.Get(newAppRoleAuth(roleID, &SecretID{FromString: secretID}, withWrappingToken()))
	ann, shop := withToken(c, ""), withToken(c, "")
	person := must.Get(login(ann, withPassword("correct horse")))
	service := must.Get(login(shop, withSecretID))
	_, wrong := login(withToken(c, ""), withPassword("wrong"))
	_, spent := login(withToken(c, ""), withSecretID)
	_, mayList := ann.Logical().List("transit/keys")
	_, mayNot := shop.Logical().Read("transit/keys/none")
	methods := must.Get(c.Sys().ListAuth())
	outcome := Outcome{
		"person":   person.Auth.Policies,
		"metadata": person.Auth.Metadata,
		"service":  service.Auth.Policies,
		"wrong":    statusOf(wrong),
		"spent":    statusOf(spent),
		"may":      []int{statusOf(mayList), statusOf(mayNot)},
		"methods":  []string{methods["userpass/"].Type, methods["approle/"].Type, methods["token/"].Type},
	}
	must.Do(c.Sys().DisableAuth("userpass"))
	_, ended := ann.Auth().Token().LookupSelf()
	outcome["ended"] = statusOf(ended)
	return outcome
}

// workload has the identities of a workload, and what the methods need to recognize them.
type workload map[string]string

// logins logs in with the identities that workloads have already.
func logins(c *Client) Outcome {
	var own workload
	must.Do(json.Unmarshal([]byte(os.Getenv("TRANSITD_WORKLOAD")), &own))
	for _, method := range []string{"kubernetes", "jwt", "cert"} {
		must.Do(c.Sys().EnableAuthWithOptions(method, &EnableAuthOptions{Type: method}))
	}
	return Outcome{"kubernetes": byAccount(c, own), "jwt": byToken(c, own), "cert": byCertificate(c, own)}
}

// byAccount logs in with the token of a service account, which Kubernetes keeps in a file of the pod.
func byAccount(c *Client, own workload) Outcome {
	must.Get(c.Logical().Write("auth/kubernetes/config", map[string]any{
		"kubernetes_host": own["cluster"], "kubernetes_ca_cert": own["cluster_ca"], "token_reviewer_jwt": own["reviewer"],
	}))
	must.Get(c.Logical().Write("auth/kubernetes/role/web", map[string]any{
		"bound_service_account_names": "web", "bound_service_account_namespaces": "shop", "audience": "transitd",
		"token_policies": "writer", "token_ttl": "10m",
	}))
	with := func(file string) AuthMethod {
		return must.Get(newKubernetesAuth("web", withServiceAccountTokenPath(file)))
	}
	_, unknown := login(withToken(c, ""), with(own["reviewer_file"]))
	return Outcome{"login": entered(c, with(own["account_file"])), "unknown": statusOf(unknown)}
}

// byToken logs in with the token of a job. Neither client has a helper for it.
func byToken(c *Client, own workload) Outcome {
	must.Get(c.Logical().Write("auth/jwt/config", map[string]any{
		"jwt_validation_pubkeys": []string{own["issuer_key"]}, "bound_issuer": "https://cluster",
	}))
	must.Get(c.Logical().Write("auth/jwt/role/ci", map[string]any{
		"role_type": "jwt", "user_claim": "sub", "bound_audiences": []string{"transitd"}, "bound_claims": map[string]any{"job": "7"},
		"token_policies": []string{"writer"}, "token_ttl": "10m",
	}))
	with := func(jwt string) AuthMethod {
		return byPath{"auth/jwt/login", map[string]any{"role": "ci", "jwt": jwt}}
	}
	_, other := login(withToken(c, ""), with(own["other_job"]))
	return Outcome{"login": entered(c, with(own["job"])), "other": statusOf(other)}
}

// byCertificate logs in with the client's certificate of the TLS connection. Neither client has a helper for it.
func byCertificate(c *Client, own workload) Outcome {
	must.Get(c.Logical().Write("auth/cert/certs/web", map[string]any{
		"certificate": own["authority"], "allowed_common_names": "web", "token_policies": "writer", "token_ttl": "10m",
	}))
	tls := TLSConfig{CACert: own["ca"], ClientCert: own["client_cert_file"], ClientKey: own["client_key_file"]}
	shown := must.Get(newClient(c.Address(), &tls))
	with := func(role string) AuthMethod { return byPath{"auth/cert/login", map[string]any{"name": role}} }
	_, without := login(withToken(c, ""), with("web"))
	_, other := login(shown, with("other"))
	return Outcome{"login": entered(shown, with("web")), "without": statusOf(without), "other": statusOf(other)}
}

// byPath is a login without a helper.
type byPath struct {
	path string
	body map[string]any
}

func (b byPath) Login(ctx context.Context, c *Client) (*Secret, error) {
	return c.Logical().WriteWithContext(ctx, b.path, b.body)
}

// entered logs in, and returns what the client finds in the answer, and about the new token.
func entered(c *Client, method AuthMethod) Outcome {
	own := withToken(c, "")
	secret := must.Get(login(own, method))
	looked := must.Get(own.Auth().Token().LookupSelf())
	return Outcome{
		"policies":  must.Get(secret.TokenPolicies()),
		"metadata":  must.Get(secret.TokenMetadata()),
		"ttl":       must.Get(secret.TokenTTL()).String(),
		"renewable": must.Get(secret.TokenIsRenewable()),
		"same":      must.Get(looked.TokenAccessor()) == must.Get(secret.TokenAccessor()),
		"name":      looked.Data["display_name"],
		"renewed":   must.Get(own.Auth().Token().RenewSelf(300)).Auth.LeaseDuration,
	}
}
