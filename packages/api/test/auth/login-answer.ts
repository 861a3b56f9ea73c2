import { expect } from 'chai';
import type { Answer } from '../served.ts';

/** Expects the answer of a login, whole. @param auth - the members that differ between methods and roles */
export function expectLogin({ status, body }: Answer, auth: { readonly policies: readonly string[]; readonly metadata: object }) {
  expect(status).to.equal(200);
  expect(body).to.include({ lease_id: '', renewable: false, lease_duration: 0, data: null, wrap_info: null });
  const { client_token, accessor, ...others } = body.auth;
  expect(client_token).to.match(/^s\./);
  expect(accessor).to.match(/^.{20,}$/);
  expect(others).to.deep.equal({
    token_policies: auth.policies,
    lease_duration: 2_764_800,
    renewable: true,
    entity_id: '',
    token_type: 'service',
    orphan: true,
    mfa_requirement: null,
    num_uses: 0,
    ...auth,
  });
}
