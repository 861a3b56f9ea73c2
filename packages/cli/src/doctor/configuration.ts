import { X509Certificate } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname, resolve } from 'node:path';
import { type Config, isLoopback, type ListenerConfig, readConfigFile, tlsContext } from '@transitd/configuration';
import { requireOwnerOnly, StartError } from '@transitd/process';
import { growthBytesMin } from '@transitd/storage-fsm';
import { certificateFinding, diskFinding, type Finding, fail, ok, warn } from './finding.ts';
import { endpointOf, unreachable } from './reach.ts';
import { sealFindings } from './seal.ts';

/** Checks a configuration file against this machine, as a node would find it at its start. */
export async function checkConfiguration(file: string, nowMs: number): Promise<readonly Finding[]> {
  let config: Config;
  try {
    config = readConfigFile(file);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return error.faults.map((fault) => fail('configuration', fault, `correct ${file}`));
  }
  return [
    ok('configuration', `${file} is valid`),
    ...dataDirectory(config),
    ...config.listeners.flatMap((listener) => listenerFindings(listener, config, nowMs)),
    ...(await sealFindings(config)),
    ...auditDevices(config),
    ...libraries(config),
    ...(await joinTargets(config)),
    ...(await etcdMembers(config)),
  ];
}

function dataDirectory(config: Config): readonly Finding[] {
  const { data_dir: folder } = config;
  const check = 'data directory';
  const ancestor = existingAncestor(resolve(folder));
  const disk = diskFindings(ancestor, config);
  if (ancestor !== resolve(folder))
    return [
      isWritable(resolve(folder))
        ? ok(check, `${folder} does not exist; the first start creates it`)
        : fail(check, `${ancestor} is not writable`, 'make it writable for the user that runs the node'),
      ...disk,
    ];
  const { uid } = statSync(folder);
  const own = process.getuid?.();
  if (own !== undefined && own !== 0 && uid !== own)
    return [warn(check, `${folder} belongs to another user`, 'run the doctor as the user that runs the node'), ...disk];
  return [
    findingOf(check, `only the owner can access ${folder}`, `chmod 0700 ${folder}`, () => {
      requireOwnerOnly(folder);
      requireOwnerOnly(resolve(folder, 'node.state'));
    }),
    ...disk,
  ];
}

/** A node on etcd keeps no records on its disk, and has no reserve there. */
function diskFindings(folder: string, { raft: { disk_reserve: reserve }, storage }: Config): readonly Finding[] {
  if (storage.type === 'etcd') return [];
  const { bavail, bsize } = statfsSync(folder);
  return [diskFinding(bavail * bsize, reserve === 0 ? 0 : Math.max(reserve, growthBytesMin))];
}

/** Returns the path itself or its nearest existing ancestor. */
const existingAncestor = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : existingAncestor(dirname(path));

/** Whether this process can write to the path, or create it. */
function isWritable(path: string): boolean {
  const ancestor = existingAncestor(path);
  try {
    accessSync(ancestor, constants.W_OK);
    return ancestor === path || statSync(ancestor).isDirectory();
  } catch {
    return false;
  }
}

function findingOf(check: string, found: string, todo: string, run: () => void): Finding {
  try {
    run();
    return ok(check, found);
  } catch (error) {
    if (error instanceof StartError) return fail(check, error.message, todo);
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return fail(check, `cannot be read: ${code}`, todo);
  }
}

function listenerFindings({ address, tls }: ListenerConfig, { api_addr: api }: Config, nowMs: number): readonly Finding[] {
  const check = `listener ${address.host}:${address.port}`;
  if (tls === undefined)
    return isLoopback(address.host)
      ? [ok(check, 'no TLS, but reachable from this machine only')]
      : [
          warn(
            check,
            'no TLS: tokens and plaintexts cross the network unencrypted',
            'configure tls, or listen on a loopback address',
          ),
        ];
  const usable = findingOf(
    check,
    `${tls.cert_file} and its key match`,
    'configure a certificate and the matching key',
    () => void tlsContext(tls),
  );
  if (usable.state === 'fail') return [usable];
  const certificate = new X509Certificate(readFileSync(tls.cert_file));
  const times = { fromMs: Date.parse(certificate.validFrom), untilMs: Date.parse(certificate.validTo) };
  const key = findingOf(`${check} key`, 'only its owner can read it', `chmod 0600 ${tls.key_file}`, () =>
    requireOwnerOnly(tls.key_file),
  );
  const findings = [
    usable,
    certificateFinding(`${check} certificate`, times, nowMs),
    key.state === 'fail' ? { ...key, state: 'warn' as const } : key,
  ];
  if (api?.startsWith('https:') !== true) return findings;
  const { host } = endpointOf(api);
  const isNamed = (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
  return isNamed
    ? findings
    : [
        ...findings,
        warn(
          `${check} name`,
          `the certificate is not valid for ${host}, the host of api_addr`,
          'add the host to the certificate',
        ),
      ];
}

function auditDevices({ audit }: Config): readonly Finding[] {
  if (audit.length === 0) return [warn('audit', 'requests are not audited', 'configure an audit device')];
  return audit.map((device) => {
    const check = `audit ${device.name}`;
    if (device.type !== 'file') return ok(check, 'writes to standard output');
    return isWritable(device.path)
      ? ok(check, `${device.path} is writable`)
      : fail(
          check,
          `${device.path} is not writable`,
          'make it writable for the user that runs the node: without an audit device the node refuses every request',
        );
  });
}

const libraries = ({ pkcs11_libraries }: Config): readonly Finding[] =>
  pkcs11_libraries.map(({ name, path }) =>
    existsSync(path)
      ? ok(`library ${name}`, `${path} exists`)
      : fail(`library ${name}`, `${path} does not exist`, 'install the library, or correct its path'),
  );

/** Checks whether the nodes in `retry_join` are reachable. */
const joinTargets = ({ retry_join }: Config): Promise<readonly Finding[]> =>
  Promise.all(
    retry_join.map(async (address) => {
      const reason = await unreachable(endpointOf(address));
      return reason === undefined
        ? ok(`retry_join ${address}`, 'is reachable')
        : warn(`retry_join ${address}`, `is not reachable: ${reason}`, 'start that node, or allow connections to it');
    }),
  );

/** Checks whether the members of etcd that keep the records are reachable. A node starts while one of them is. */
async function etcdMembers({ storage }: Config): Promise<readonly Finding[]> {
  if (storage.type !== 'etcd') return [];
  const reasons = await Promise.all(storage.endpoints.map((address) => unreachable(endpointOf(address))));
  const severity = reasons.includes(undefined) ? warn : fail;
  return storage.endpoints.map((address, at) => {
    const reason = reasons[at];
    return reason === undefined
      ? ok(`etcd ${address}`, 'is reachable')
      : severity(`etcd ${address}`, `is not reachable: ${reason}`, 'start that member, or correct storage.endpoints');
  });
}
