package main

import (
	"slices"
	"time"

	"transitd.test/clients/internal/must"
)

func tokens(c *Client) Outcome {
	asRoot := c.Auth().Token()
	_, err := c.Logical().Write("auth/token/roles/batch", map[string]any{"allowed_policies": "default", "token_explicit_max_ttl": "5m"})
	must.Do(err)
	made := must.Get(asRoot.Create(&TokenCreateRequest{
		Policies: []string{"default"}, Metadata: map[string]string{"team": "orders"}, TTL: "10m", DisplayName: "orders",
	}))
	token, accessor := made.Auth.ClientToken, made.Auth.Accessor
	holder := withToken(c, token)
	self := must.Get(holder.Auth().Token().LookupSelf())
	looked := must.Get(asRoot.Lookup(token))
	byAccessor := must.Get(asRoot.LookupAccessor(accessor))
	byRole := must.Get(asRoot.CreateWithRole(&TokenCreateRequest{}, "batch"))
	orphan := must.Get(asRoot.CreateOrphan(&TokenCreateRequest{Policies: []string{"default"}, TTL: "10m"}))
	parent := must.Get(asRoot.Create(&TokenCreateRequest{TTL: "10m"}))
	child := must.Get(withToken(c, parent.Auth.ClientToken).Auth().Token().Create(&TokenCreateRequest{TTL: "5m"}))
	accessors := must.Get(c.Logical().List("auth/token/accessors")).Data["keys"].([]any)

	outcome := Outcome{
		"policies":     must.Get(self.TokenPolicies()),
		"metadata":     must.Get(looked.TokenMetadata()),
		"ttl":          within(must.Get(self.TokenTTL()), 10*time.Minute),
		"renewable":    must.Get(looked.TokenIsRenewable()),
		"by_accessor":  must.Get(byAccessor.TokenAccessor()) == accessor && must.Get(byAccessor.TokenID()) == "",
		"renewed":      must.Get(asRoot.Renew(token, 300)).Auth.LeaseDuration,
		"renewed_self": must.Get(holder.Auth().Token().RenewSelf(1_200)).Auth.LeaseDuration,
		"renewed_as":   must.Get(asRoot.RenewTokenAsSelf(token, 240)).Auth.LeaseDuration,
		"renewed_by":   must.Get(asRoot.RenewAccessor(accessor, 180)).Auth.LeaseDuration,
		"by_role":      byRole.Auth.LeaseDuration,
		"orphan":       must.Get(asRoot.Lookup(orphan.Auth.ClientToken)).Data["orphan"],
		"listed":       slices.Contains(accessors, any(accessor)),
	}
	must.Do(asRoot.RevokeAccessor(accessor))
	must.Do(asRoot.RevokeTree(parent.Auth.ClientToken))
	must.Do(withToken(c, orphan.Auth.ClientToken).Auth().Token().RevokeSelf(""))
	must.Do(asRoot.RevokeOrphan(byRole.Auth.ClientToken))
	revoked := []int{}
	for _, ended := range []*Secret{made, child, orphan, byRole} {
		_, err := withToken(c, ended.Auth.ClientToken).Auth().Token().LookupSelf()
		revoked = append(revoked, statusOf(err))
	}
	outcome["revoked"] = revoked
	return outcome
}

func within(ttl, full time.Duration) bool { return ttl > 0 && ttl <= full }

// watcher keeps a token alive, as long-running services do.
func watcher(c *Client) Outcome {
	made := must.Get(c.Auth().Token().Create(&TokenCreateRequest{Policies: []string{"default"}, TTL: "1h"}))
	holder := withToken(c, made.Auth.ClientToken)
	watching := must.Get(holder.NewLifetimeWatcher(&LifetimeWatcherInput{Secret: made, Increment: 7_200}))
	go watching.Start()
	renewed := <-watching.RenewCh()
	watching.Stop()
	must.Do(<-watching.DoneCh())

	no := false
	fixed := must.Get(c.Auth().Token().Create(&TokenCreateRequest{Policies: []string{"default"}, TTL: "1h", Renewable: &no}))
	renewer := must.Get(holder.NewRenewer(&LifetimeWatcherInput{Secret: fixed}))
	go renewer.Renew()
	return Outcome{
		"lease": renewed.Secret.Auth.LeaseDuration,
		"same":  renewed.Secret.Auth.ClientToken == made.Auth.ClientToken,
		"fixed": (<-renewer.DoneCh()).Error(),
	}
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

	ann, shop := withToken(c, ""), withToken(c, "")
	person := must.Get(loginUserpass(ann, "ann", "correct horse"))
	service := must.Get(loginApprole(shop, roleID, secretID))
	_, wrong := loginUserpass(withToken(c, ""), "ann", "wrong")
	_, spent := loginApprole(withToken(c, ""), roleID, secretID)
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
