// Sets up the cluster of docker-compose.yml without an operator. NOT FOR PRODUCTION: there an operator stores the seal key and the root
// token in different places, away from the nodes' disks.
//   demo.mjs key              creates the seal key if it does not exist
//   demo.mjs init ADDRESS…    initializes the first node if no node is initialized, then waits until all nodes serve
import { randomBytes } from 'node:crypto';
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const folder = '/var/lib/transitd';
const keyFile = `${folder}/seal.key`;
const tokenFile = `${folder}/root-token`;

/** Writes the file atomically, readable by the nodes' user only. */
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
  // Every node must answer first: initializing beside an initialized node that is down would create a second cluster with other keys.
  const states = await until('every node answers', () =>
    Promise.all(addresses.map(async (address) => (await (await ask(address, 'init')).json()).initialized)),
  );
  if (!states.includes(true)) {
    const body = JSON.stringify({ recovery_shares: 1, recovery_threshold: 1 });
    // The root token is shown only once, so a slow machine gets enough time. 503 means that nothing was done: a node that is still trying
    // to join another one cannot initialize a cluster at that moment.
    let answer = await ask(addresses[0], 'init', { method: 'POST', body }, 120_000);
    while (answer.status === 503) {
      await pause(500);
      answer = await ask(addresses[0], 'init', { method: 'POST', body }, 120_000);
    }
    if (!answer.ok) throw new Error(`${addresses[0]} was not initialized: ${answer.status} ${await answer.text()}`);
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
${addresses.length} nodes serve. NOT FOR PRODUCTION: they initialized and unsealed themselves.
The seal key and the root token are in the volume "demo": whoever can read it has every key. To show the token:

  docker compose exec n1 cat /run/demo/root-token
`);
} else {
  console.error('demo.mjs key | init ADDRESS…');
  process.exitCode = 1;
}
