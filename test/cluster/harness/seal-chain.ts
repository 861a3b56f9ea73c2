// Further seals for the long chain of migrations: a key in SoftHSM, a key of a service that behaves like AWS KMS, and a static key.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { missing, softhsmLibrary, TokenFolder } from '../../../packages/pkcs11/test/softhsm.ts';
import { awsMock, awsRegion } from '../../../packages/seals/test/awskms/aws-mock.ts';
import { blockOf } from './seals-page.ts';

export type Seal = { readonly type: string } & Readonly<Record<string, unknown>>;

export interface ChainSeals {
  readonly chain: readonly Seal[];
  /** `pkcs11_libraries` of the nodes. */
  readonly libraries: readonly object[];
  /** Environment of the nodes. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

const secret = 'the+secret+of+the+chain';

/** Opens the seals. @throws if this machine has no SoftHSM */
export async function chainSeals(folder: string): Promise<ChainSeals> {
  const reason = missing();
  if (reason !== undefined) throw new Error(reason);
  const tokens = new TokenFolder();
  const pin = '271828';
  execFileSync('sh', ['-ec', blockOf('sh', 'pkcs11')], { cwd: folder, env: { ...process.env, PIN: pin, SO_PIN: '8765432' } });
  const [pin_file, key_file] = [join(folder, 'pin'), join(folder, 'static-key')];
  writeFileSync(pin_file, pin, { mode: 0o600 });
  writeFileSync(key_file, randomBytes(32), { mode: 0o600 });
  const mock = await awsMock();
  Object.defineProperty(mock.state, 'nowMs', { get: () => Date.now() });
  mock.state.credentials.set('AKIDEXAMPLE', { secret, session: undefined });
  return {
    chain: [
      { type: 'pkcs11', library: 'hsm', token_label: 'transitd', key_label: 'unseal', pin_file },
      { type: 'awskms', region: awsRegion, kms_key_id: 'one', endpoint: mock.address },
      { type: 'awskms', name: 'second', region: awsRegion, kms_key_id: 'two', endpoint: mock.address },
      { type: 'static', key_id: 'chain', key_file },
    ],
    libraries: [{ name: 'hsm', path: softhsmLibrary }],
    env: { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: secret },
    close: async () => {
      await mock.close();
      tokens.remove();
    },
  };
}
