// Changes of the code of gateways: delays, a switch that ends a gateway, and faults.
import type { Change } from '../../changed-copy.ts';

const blockedMs = (ms: number): string => `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ms});`;

/**
 * Returns delays that the protocol allows: a change waits in the port before the counter names it, the event loop of a gateway takes
 * messages late, and a gateway is interrupted after it has read the deadline and before it reads the port.
 * @param lateMs - interval at which the event loop takes messages
 */
export const delaysOf = (lateMs: number): readonly Change[] => [
  {
    file: 'node/src/threads/coherence/change-publisher.ts',
    find: '    yield;\n    this.#raise(number);',
    replace: `    yield;\n    ${blockedMs(2)}\n    this.#raise(number);`,
  },
  {
    file: 'node/src/threads/replica/replica-proxy.ts',
    find: "    port.on('message', (message) => this.#reader.take(message));",
    replace: `    const late = setInterval(() => {
      for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) this.#reader.take(next.message);
    }, ${lateMs});
    port.once('close', () => clearInterval(late));`,
  },
  {
    file: 'node/src/gateway-services.ts',
    find: '    session.proxy.drain();',
    replace: `    if (performance.now() % 7 < 1) ${blockedMs(1)}\n    session.proxy.drain();`,
  },
];

export const delays = delaysOf(20);

/** A gateway ends, hangs or starts slowly when a file with this word and its number is in the data directory, such as `end-1`. */
export const switches: Change = {
  file: 'server/src/gateway-thread.ts',
  find: 'setInterval(() => services.compareClocks(), clocksMs);',
  replace: `import { existsSync, rmSync } from 'node:fs';
const isWanted = (word: string): boolean => {
  const file = config.data_dir + '/' + word + '-' + (row + 1);
  if (!existsSync(file)) return false;
  rmSync(file);
  return true;
};
if (isWanted('slow')) ${blockedMs(2000)}
setInterval(() => {
  services.compareClocks();
  if (isWanted('hang')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (isWanted('end')) throw new Error('ended by the test');
}, clocksMs);`,
};

/** libsodium cannot be loaded, as with an old glibc. */
export const withoutSodium: Change = {
  file: 'transit-engine/src/key-pairs/sodium.ts',
  find: 'loadSodium(createRequire(import.meta.url))',
  replace: "loadSodium(() => process.dlopen({ exports: {} } as NodeJS.Module, '/dev/null'))",
};

/** Faults that the test must find, each together with the delays. */
export const faults: Readonly<Record<string, Change>> = {
  'a gateway does not take the changes before it answers': {
    file: 'node/src/gateway-services.ts',
    find: 'session.proxy.drain();',
    replace: '',
  },
  'a gateway does not pass on requests that a quota counts': {
    file: 'api/src/pipeline/gateway-pipeline.ts',
    find: ' && !services.quotas.mayCount(canonical);',
    replace: ';',
  },
};
