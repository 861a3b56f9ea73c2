import { expect } from 'chai';
import type { LiveServer } from './live-server.ts';

/** Returns a token whose only rights are those of this policy. Replaces the policy of an earlier call on the same server. */
export async function tokenWith(server: LiveServer, policy: string): Promise<string> {
  expect((await server.call('PUT', 'sys/policies/acl/tried', { policy })).status).to.equal(204);
  const made = await server.call('POST', 'auth/token/create', { policies: ['tried'], no_default_policy: true });
  return made.string('auth.client_token');
}
