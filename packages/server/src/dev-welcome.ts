import type { Config } from '@transitd/configuration';
import type { DevNode } from './dev.ts';

/** Prints the address, the root token, the console and two example commands of a --dev node. */
export function printWelcome({
  address,
  rootToken,
  secretsFolder,
  config: { log, ui },
}: DevNode & { readonly address: string; readonly config: Pick<Config, 'log' | 'ui'> }): void {
  if (log.level === 'silent') return;
  const storage =
    secretsFolder === undefined
      ? 'The data is in a temporary directory and is deleted when the process exits.'
      : `The seal key and the root token are in ${secretsFolder}: anyone who can read this directory can decrypt all keys.`;
  const curl = `curl -s -H "X-Service-Token: ${rootToken}"`;
  process.stdout.write(`
transitd is running in dev mode, initialized and unsealed: NOT FOR PRODUCTION.
${storage}

  address     ${address}
  root token  ${rootToken}${ui ? `\n  console     ${address}/ui/` : ''}

Try it:

  ${curl} ${address}/v1/transit/encrypt/my-key -d "{\\"plaintext\\": \\"$(printf 'hello' | base64)\\"}"
  ${curl} ${address}/v1/transit/decrypt/my-key -d '{"ciphertext": "…paste the ciphertext here…"}'

`);
}
