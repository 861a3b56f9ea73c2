import { type Config, sealConfig } from '@transitd/configuration';
import { StartError } from '@transitd/process';
import { credentialFiles } from '@transitd/seals';
import { type Finding, fail, ok, warn } from './finding.ts';
import { endpointOf, unreachable } from './reach.ts';

type OneSeal = Config['seal'];

/**
 * Checks what the seals need at the next unseal: their keys, credentials and, for a transit seal, the way to its provider.
 * @param user - id of the user who runs the node
 */
export async function sealFindings({ seal, migrate_seal_from: before }: Config, user: number): Promise<readonly Finding[]> {
  const findings = await findingsOf('seal', seal, user);
  return before === undefined ? findings : [...findings, ...(await findingsOf('migrate_seal_from', before, user))];
}

async function findingsOf(check: string, seal: OneSeal, user: number): Promise<readonly Finding[]> {
  if (seal.type === 'shamir') return [ok(check, 'shamir: each start of the node requires its shares')];
  if (seal.type === 'static') return [staticFinding(check, seal, user)];
  return [...(await fileFindings(check, seal, user)), await providerFinding(check, seal)];
}

function staticFinding(check: string, seal: Extract<OneSeal, { type: 'static' }>, user: number): Finding {
  const variables = [seal.key_env, seal.previous?.key_env].filter((name) => name !== undefined);
  if (variables.some((name) => process.env[name] === undefined)) return ok(check, 'the environment of the node provides the key');
  try {
    const read = sealConfig(seal, user);
    if (read.type === 'static') for (const key of [read.current, read.previous]) key?.key.fill(0);
    return ok(check, 'static: the key is readable');
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return fail(check, error.message, 'provide a readable key file that only its owner can change');
  }
}

async function fileFindings(check: string, seal: OneSeal, user: number): Promise<readonly Finding[]> {
  const files = await credentialFiles(seal, process.env, user);
  return files.map(({ file, fault, isExposed }) => {
    if (fault !== undefined) return fail(check, fault, `correct ${file}: until then, a node that starts stays sealed`);
    return isExposed
      ? warn(check, `every user of this machine can read ${file}`, `run chmod o-r ${file}`)
      : ok(check, `${file} can be used`);
  });
}

async function providerFinding(check: string, seal: OneSeal): Promise<Finding> {
  if (seal.type === 'pkcs11') {
    const { library } = seal;
    return ok(check, `pkcs11: the library ${library} is used; its token is not called`);
  }
  if (seal.type !== 'transit') return ok(check, `${seal.type}: its provider is not called`);
  const reason = await unreachable(endpointOf(seal.address));
  return reason === undefined
    ? ok(check, `transit: ${seal.address} is reachable; doctor sends it no request`)
    : warn(
        check,
        `${seal.address} is not reachable: ${reason}`,
        'start that cluster: until it serves, a restarted node stays sealed',
      );
}
