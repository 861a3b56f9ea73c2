// What makes the cluster of docker-compose.yml run by itself. NOT FOR PRODUCTION: an operator keeps the seal's key and the root
// token apart, and away from the nodes' disks.
//   demo.mjs key              makes the seal's key when there is none
//   demo.mjs init ADDRESS…    initialises the first of these nodes when none of them is, and waits until all of them serve
import { randomBytes } from 'node:crypto';
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const folder = '/var/lib/transitd';
const keyFile = `${folder}/seal.key`;
const tokenFile = `${folder}/root-token`;

/** Whole or not at all, readable by the nodes' user alone. */
function writeSecret(file, text) {
  writeFileSync(`${file}.part`, text, { mode: 0o400, flush: true });
  renameSync(`${file}.part`, file);
}

async function until(what, condition) {
  for (let tries = 0; ; tries += 1) {
    const result = await condition().catch(() => undefined);
    if (result !== undefined && result !== false) return result;
    if (tries % 20 === 10) console.log(`waiting until ${what}`);
    await pause(500);
  }
}

const ask = (address, path, init, timeoutMs = 5000) =>
  fetch(`${address}/v1/sys/${path}`, { ...init, signal: AbortSignal.timeout(timeoutMs) });

async function initialize(addresses) {
  // One that is initialised but does not answer must not be missed: a second cluster beside it would have other keys.
  const states = await until('every node answers', () =>
    Promise.all(addresses.map(async (address) => (await (await ask(address, 'init')).json()).initialized)),
  );
  if (!states.includes(true)) {
    const body = JSON.stringify({ recovery_shares: 1, recovery_threshold: 1 });
    // The token is shown this once: a slow machine gets the time that it needs.
    const answer = await ask(addresses[0], 'init', { method: 'POST', body }, 120_000);
    if (!answer.ok) throw new Error(`${addresses[0]} was not initialised: ${answer.status} ${await answer.text()}`);
    writeSecret(tokenFile, `${(await answer.json()).root_token}\n`);
  }
  await until('every node serves', async () => {
    const answers = await Promise.all(addresses.map((address) => ask(address, 'health?perfstandbyok=true')));
    return answers.every(({ status }) => status === 200);
  });
}

const [command, ...addresses] = process.argv.slice(2);
if (command === 'key') {
  if (!existsSync(keyFile)) writeSecret(keyFile, `${randomBytes(32).toString('base64')}\n`);
} else if (command === 'init') {
  await initialize(addresses);
  console.log(`
${addresses.length} nodes serve. NOT FOR PRODUCTION: they were initialised and unsealed by themselves.
The seal's key and the root token lie in the volume "demo": who reads it has every key. The token is shown by

  docker compose exec n1 cat /run/demo/root-token
`);
} else {
  console.error('demo.mjs key | init ADDRESS…');
  process.exitCode = 1;
}
