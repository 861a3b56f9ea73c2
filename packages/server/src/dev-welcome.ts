import type { LogConfig } from '@transitd/configuration';
import type { DevNode } from './dev.ts';

/** What someone who has just typed `npm start` needs: where it listens, the root token, and two lines to paste. */
export function printWelcome({
  address,
  rootToken,
  secretsFolder,
  log,
}: DevNode & { readonly address: string; readonly log: LogConfig }): void {
  if (log.level === 'silent') return;
  const kept =
    secretsFolder === undefined
      ? 'Nothing is kept: the data goes with the process.'
      : `Its seal key and root token lie in ${secretsFolder}: who reads this folder has every key.`;
  const curl = `curl -s -H "X-Service-Token: ${rootToken}"`;
  process.stdout.write(`
transitd is running, initialised and unsealed by itself: NOT FOR PRODUCTION.
${kept}

  address     ${address}
  root token  ${rootToken}

Try it:

  ${curl} ${address}/v1/transit/encrypt/my-key -d "{\\"plaintext\\": \\"$(printf 'hello' | base64)\\"}"
  ${curl} ${address}/v1/transit/decrypt/my-key -d '{"ciphertext": "…paste it here…"}'

`);
}
