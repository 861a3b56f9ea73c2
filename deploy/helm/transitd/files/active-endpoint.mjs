// Runs beside each node, and points the Service of the active node to this pod while its node is active. Its only right in Kubernetes
// is to read and change one EndpointSlice. When another node becomes active, the container of that node overwrites the address.
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const {
  POD_IP: ip,
  SLICE: slice,
  HEALTH: health,
  ACCOUNT: account,
  KUBERNETES_SERVICE_HOST: host,
  KUBERNETES_SERVICE_PORT: port,
} = process.env;
// `API` is for tests.
const { API: api = `https://${host?.includes(':') ? `[${host}]` : host}:${port}` } = process.env;
const [namespace, name] = slice.split('/');
const url = `${api}/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices/${name}`;
const intervalMs = 500;
const callMs = 3000;
/** Longest pause between two attempts that fail, such as with an address that the EndpointSlice cannot hold. */
const failedMs = 8000;
/** How often the address is compared while the node stays active: an upgrade of the chart empties the list. */
const compareMs = 5000;

process.on('SIGTERM', () => process.exit(0));

const isActive = () =>
  fetch(health, { signal: AbortSignal.timeout(callMs) }).then(
    async (response) => {
      await response.body?.cancel();
      return response.status === 200;
    },
    () => false,
  );

async function call(method, body) {
  // Kubernetes replaces the token before it expires.
  const headers = {
    authorization: `Bearer ${readFileSync(`${account}/token`, 'utf8').trim()}`,
    'content-type': 'application/json',
  };
  const response = await fetch(url, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(callMs) });
  if (!response.ok) throw new Error(`${method} of the EndpointSlice: ${response.status}`);
  return response.json();
}

/** Writes the address of this pod, or removes it. The resourceVersion in the object makes a concurrent change of another pod win. */
async function setActive(active) {
  const object = await call('GET');
  const present = object.endpoints?.flatMap(({ addresses }) => addresses) ?? [];
  const isOurs = present.length === 1 && present[0] === ip;
  if (active === isOurs || (!active && !present.includes(ip))) return;
  await call('PUT', { ...object, endpoints: active ? [{ addresses: [ip], conditions: { ready: true } }] : [] });
  console.log(
    JSON.stringify({
      level: 'info',
      msg: active ? 'the Service points to this pod' : 'the Service no longer points to this pod',
      ip,
    }),
  );
}

let written = false;
let comparedMs = Number.NEGATIVE_INFINITY;
let pauseMs = intervalMs;
for (; ; await pause(pauseMs)) {
  const active = await isActive();
  if (active === written && (!active || performance.now() - comparedMs < compareMs)) {
    pauseMs = intervalMs;
    continue;
  }
  try {
    await setActive(active);
    written = active;
    comparedMs = performance.now();
    pauseMs = intervalMs;
  } catch (error) {
    pauseMs = Math.min(2 * pauseMs, failedMs);
    console.log(JSON.stringify({ level: 'warn', msg: 'the EndpointSlice was not changed; trying again', reason: String(error) }));
  }
}
