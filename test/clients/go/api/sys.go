package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"slices"

	"transitd.test/clients/internal/must"
)

func status(c *Client) Outcome {
	health := must.Get(c.Sys().Health())
	seal := must.Get(c.Sys().SealStatus())
	leader := must.Get(c.Sys().Leader())
	nodes := must.Get(c.Sys().HAStatus()).Nodes
	before := must.Get(c.Sys().KeyStatus())
	must.Do(c.Sys().Rotate())
	after := must.Get(c.Sys().KeyStatus())
	return Outcome{
		"initialized":     must.Get(c.Sys().InitStatus()),
		"health":          []bool{health.Initialized, health.Sealed, health.Standby},
		"same_cluster":    health.ClusterID == seal.ClusterID && health.ClusterID != "",
		"same_version":    health.Version == seal.Version && seal.Version == nodes[0].Version && seal.Version != "",
		"sealed":          seal.Sealed,
		"leader":          leader.IsSelf,
		"active_since":    !leader.ActiveTime.IsZero(),
		"active_nodes":    []bool{nodes[0].ActiveNode},
		"rotated":         after.Term - before.Term,
		"installed_later": !after.InstallTime.Before(before.InstallTime),
		"audit":           len(must.Get(c.Sys().ListAudit())),
	}
}

// initialize initializes a node until it is active, then seals and unseals it.
func initialize(c *Client) Outcome {
	fresh := must.Get(c.Sys().InitStatus())
	made := must.Get(c.Sys().Init(&InitRequest{SecretShares: 3, SecretThreshold: 2}))
	first := must.Get(c.Sys().Unseal(made.Keys[0]))
	reset := must.Get(c.Sys().ResetUnsealProcess())
	must.Get(c.Sys().Unseal(made.Keys[0]))
	second := must.Get(c.Sys().Unseal(made.KeysB64[2]))
	c.SetToken(made.RootToken)
	must.Do(c.Sys().Seal())
	sealed := must.Get(c.Sys().Health())
	hasty := withToken(c, c.Token())
	hasty.SetMaxRetries(0) // otherwise the client repeats a request after a 5xx
	_, whileSealed := hasty.Logical().Read("transit/keys/none")
	must.Get(c.Sys().Unseal(made.Keys[1]))
	must.Get(c.Sys().Unseal(made.Keys[2]))
	return Outcome{
		"fresh":        fresh,
		"shares":       []int{len(made.Keys), len(made.KeysB64), first.T, first.N},
		"progress":     []int{first.Progress, reset.Progress},
		"unsealed":     !second.Sealed,
		"sealed_again": sealed.Sealed,
		"while_sealed": statusOf(whileSealed),
		"serves":       must.Get(c.Auth().Token().LookupSelf()) != nil,
		"made_root":    rootAgain(c, made.Keys[:2]),
		"new_shares":   len(must.Get(newShares(c, made.Keys[:2]))),
		"root_token":   made.RootToken,
	}
}

// rootAgain makes a root token from shares and returns its policies. The clients use different paths.
func rootAgain(c *Client, shares []string) any {
	begun := must.Get(c.Sys().GenerateRootInit("", ""))
	var encoded string
	for _, share := range shares {
		encoded = must.Get(c.Sys().GenerateRootUpdate(share, begun.Nonce)).EncodedToken
	}
	decoded := must.Get(c.Logical().Write("sys/decode-token", map[string]any{"encoded_token": encoded, "otp": begun.OTP}))
	return must.Get(withToken(c, decoded.Data["token"].(string)).Auth().Token().LookupSelf()).Data["policies"]
}

func mounts(c *Client) Outcome {
	description := "keys of the team"
	must.Do(c.Sys().Mount("team", &MountInput{
		Type: "transit", Description: description, Config: MountConfigInput{DefaultLeaseTTL: "1h", MaxLeaseTTL: "2h"},
	}))
	one := must.Get(mountAt(c, "team"))
	tuned := "keys of two teams"
	must.Do(c.Sys().TuneMount("team", MountConfigInput{Description: &tuned, MaxLeaseTTL: "3h"}))
	config := must.Get(c.Sys().MountConfig("team"))
	retold := must.Get(mountAt(c, "team")).Description
	_, err := c.Logical().Write("team/keys/orders", nil)
	must.Do(err)
	must.Do(c.Sys().Remount("team", "crew"))
	moved := must.Get(c.Logical().Read("crew/keys/orders"))
	listed := []string{}
	for path := range must.Get(c.Sys().ListMounts()) {
		listed = append(listed, path)
	}
	slices.Sort(listed)
	must.Do(c.Sys().EnableAuthWithOptions("team/people", &EnableAuthOptions{Type: "userpass"}))
	must.Do(c.Sys().TuneMount("auth/team/people", MountConfigInput{MaxLeaseTTL: "3h", ListingVisibility: "unauth"}))
	must.Do(c.Sys().TuneMount("auth/team/people", MountConfigInput{Description: &tuned}))
	method := must.Get(c.Sys().MountConfig("auth/team/people"))
	must.Do(c.Sys().DisableAuth("team/people"))
	must.Do(c.Sys().Unmount("crew"))
	_, gone := c.Logical().Write("crew/encrypt/orders", map[string]any{"plaintext": ""})
	return Outcome{
		"type":        one.Type,
		"description": one.Description == description,
		"accessor":    one.Accessor != "",
		"uuid":        one.UUID != "",
		"lease":       []int{one.Config.DefaultLeaseTTL, one.Config.MaxLeaseTTL},
		"tuned":       []int{config.DefaultLeaseTTL, config.MaxLeaseTTL},
		"retold":      retold == tuned,
		"method":      method.MaxLeaseTTL,
		"visibility":  method.ListingVisibility,
		"moved":       moved.Data["name"],
		"listed":      listed,
		"gone":        statusOf(gone),
		"unknown":     statusOf(c.Sys().Mount("more", &MountInput{Type: "kv"})),
	}
}

func policies(c *Client) Outcome {
	const rules = `path "transit/encrypt/orders" { capabilities = ["update"] }`
	must.Do(c.Sys().PutPolicy("team/writer", rules))
	secret := must.Get(c.Auth().Token().Create(&TokenCreateRequest{Policies: []string{"team/writer"}, TTL: "10m"}))
	limited := withToken(c, secret.Auth.ClientToken)
	const path = "transit/encrypt/orders"
	byAccessor := must.Get(c.Logical().Write("sys/capabilities-accessor", map[string]any{"accessor": secret.Auth.Accessor, "paths": path}))
	outcome := Outcome{
		"read":        must.Get(c.Sys().GetPolicy("team/writer")) == rules,
		"listed":      slices.Contains(must.Get(c.Sys().ListPolicies()), "team/writer"),
		"self":        must.Get(limited.Sys().CapabilitiesSelf(path)),
		"other":       must.Get(c.Sys().Capabilities(secret.Auth.ClientToken, path)),
		"by_accessor": byAccessor.Data[path],
		"none":        must.Get(limited.Sys().CapabilitiesSelf("transit/decrypt/orders")),
		"broken":      statusOf(c.Sys().PutPolicy("broken", `path "x" {`)),
	}
	must.Do(c.Sys().DeletePolicy("team/writer"))
	outcome["missing"] = must.Get(c.Sys().GetPolicy("team/writer"))
	return outcome
}

func raft(c *Client) Outcome {
	var snapshot bytes.Buffer
	must.Do(c.Sys().RaftSnapshot(&snapshot)) // the client itself checks the end of the archive
	_, err := c.Logical().Write("transit/keys/late", nil)
	must.Do(err)
	archive := tar.NewReader(must.Get(gzip.NewReader(bytes.NewReader(snapshot.Bytes()))))
	names := []string{}
	for header, err := archive.Next(); err == nil; header, err = archive.Next() {
		names = append(names, header.Name)
	}
	must.Do(c.Sys().RaftSnapshotRestore(&snapshot, false))
	late, err := c.Logical().Read("transit/keys/late")
	must.Do(err)

	state := must.Get(c.Sys().RaftAutopilotState())
	config := must.Get(c.Sys().RaftAutopilotConfiguration())
	config.MaxTrailingLogs = 500
	must.Do(c.Sys().PutRaftAutopilotConfiguration(config))
	servers := must.Get(c.Logical().Read("sys/storage/raft/configuration")).Data["config"].(map[string]any)["servers"].([]any)
	return Outcome{
		"archive":      names,
		"late":         late == nil,
		"damaged":      statusOf(c.Sys().RaftSnapshotRestore(bytes.NewReader([]byte("no snapshot")), false)),
		"healthy":      state.Healthy,
		"voters":       len(state.Voters),
		"leader":       state.Servers[state.Leader].Status,
		"servers":      len(servers),
		"autopilot":    must.Get(c.Sys().RaftAutopilotConfiguration()).MaxTrailingLogs,
		"last_contact": config.LastContactThreshold.String(),
	}
}
