/** The text of the policy `default` until an operator writes another. It lets a token look up, renew and revoke itself. */
export const defaultPolicyText = `# What a token may do with itself.
path "auth/token/lookup-self" {
  capabilities = ["read"]
}
path "auth/token/renew-self" {
  capabilities = ["update"]
}
path "auth/token/revoke-self" {
  capabilities = ["update"]
}
path "sys/capabilities-self" {
  capabilities = ["update"]
}
path "sys/internal/ui/resultant-acl" {
  capabilities = ["read"]
}

# Wrapped answers: look at one, take it, wrap something.
path "sys/wrapping/lookup" {
  capabilities = ["update"]
}
path "sys/wrapping/unwrap" {
  capabilities = ["update"]
}
path "sys/wrapping/wrap" {
  capabilities = ["update"]
}

# Random bytes and hashes.
path "sys/tools/random" {
  capabilities = ["update"]
}
path "sys/tools/random/*" {
  capabilities = ["update"]
}
path "sys/tools/hash" {
  capabilities = ["update"]
}
path "sys/tools/hash/*" {
  capabilities = ["update"]
}

# What the token keeps for itself.
path "cubbyhole/*" {
  capabilities = ["create", "read", "update", "delete", "list"]
}
`;
