import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname, resolve } from 'node:path';
import {
  addressText,
  type Config,
  isLoopback,
  type ListenerConfig,
  readConfigFile,
  revocationExpiryMs,
  tlsContext,
} from '@transitd/configuration';
import { requireOwnerOnly, StartError } from '@transitd/process';
import { certificateFinding, diskFinding, type Finding, fail, ok, revocationFinding, warn } from './finding.ts';
import { endpointOf, unreachable } from './reach.ts';
import { sealFindings } from './seal.ts';
import { denial, exposure, type ServiceUser, serviceUser } from './service-user.ts';

/**
 * Checks a configuration file against this machine, as a node would find it at its start.
 * @param userOf - returns the user that runs the node
 */
export async function checkConfiguration(file: string, nowMs: number, userOf = serviceUser): Promise<readonly Finding[]> {
  let config: Config;
  try {
    config = readConfigFile(file);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return error.faults.map((fault) => fail('configuration', fault, `correct ${file}`));
  }
  const user = userOf(file, config.data_dir);
  return [
    ok('configuration', `${file} is valid`),
    ...deniedFiles(file, config, user),
    ...dataDirectory(config, user),
    ...config.listeners.flatMap((listener) => listenerFindings(listener, { config, user, nowMs })),
    ...(await sealFindings(config, user.uid)),
    ...auditDevices(config, user),
    ...libraries(config),
    ...(await joinTargets(config)),
    ...(await etcdMembers(config)),
  ];
}

/** Names the files of the configuration that the service cannot read, although the doctor can. */
function deniedFiles(file: string, config: Config, user: ServiceUser): readonly Finding[] {
  if (user.isOwn) return [];
  return [...new Set([file, ...filesIn(config)])].flatMap((path) => {
    const found = existsSync(path) ? denial(path, 'read', user) : undefined;
    return found === undefined
      ? []
      : [
          fail(
            `file ${path}`,
            found,
            `run chgrp ${user.gids[0]} ${path} && chmod g+r ${path}; its folders need g+x in the same way`,
          ),
        ];
  });
}

/** Returns the paths that a configuration names for reading: values of keys such as `key_file`, key sets, and libraries. */
function filesIn(value: unknown, key = ''): readonly string[] {
  if (typeof value === 'string')
    return key.endsWith('_file') || key === 'jwks_files' || key === 'pkcs11_libraries' ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (key === 'jwks_files' || key === 'pkcs11_libraries') return filesIn(inner, name === 'name' ? '' : key);
    return filesIn(inner, Array.isArray(value) ? key : name);
  });
}

function dataDirectory(config: Config, user: ServiceUser): readonly Finding[] {
  const { data_dir: folder } = config;
  const check = 'data directory';
  const ancestor = existingAncestor(resolve(folder));
  const disk = diskFindings(ancestor, config);
  if (ancestor !== resolve(folder))
    return [
      isWritable(resolve(folder), user)
        ? ok(check, `${folder} does not exist; the first start creates it`)
        : fail(check, `${ancestor} is not writable`, 'make it writable for the user that runs the node'),
      ...disk,
    ];
  const { uid } = statSync(folder);
  if (uid !== user.uid && user.uid !== 0)
    return [
      user.isOwn
        ? warn(check, `${folder} belongs to another user`, 'run the doctor as root, or as the user that runs the node')
        : fail(check, `${folder} belongs to user id ${uid}, and ${user.name} runs the node`, `chown -R ${user.uid} ${folder}`),
      ...disk,
    ];
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
  const { bavail, blocks, bsize } = statfsSync(folder);
  return [diskFinding({ freeBytes: bavail * bsize, totalBytes: blocks * bsize }, reserve)];
}

/** Returns the path itself or its nearest existing ancestor. */
const existingAncestor = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : existingAncestor(dirname(path));

/** Whether the user can write to the path, or create it. */
function isWritable(path: string, user: ServiceUser): boolean {
  const ancestor = existingAncestor(path);
  return denial(ancestor, 'write', user) === undefined && (ancestor === path || statSync(ancestor).isDirectory());
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

function listenerFindings(
  { address, tls }: ListenerConfig,
  { config: { api_addr: api }, user, nowMs }: { readonly config: Config; readonly user: ServiceUser; readonly nowMs: number },
): readonly Finding[] {
  const check = `listener ${addressText(address)}`;
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
  const exposed = exposure(tls.key_file, user);
  const findings = [
    usable,
    certificateFinding(`${check} certificate`, times, nowMs),
    ...(tls.client_crl_file === undefined
      ? []
      : [revocationFinding(`${check} revocation lists`, revocationExpiryMs(tlsContext(tls)), nowMs)]),
    exposed === undefined
      ? ok(`${check} key`, 'only its owner and the service can read it')
      : warn(`${check} key`, exposed, `run chgrp ${user.gids[0]} ${tls.key_file} && chmod g-wx,o= ${tls.key_file}`),
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

function auditDevices({ audit }: Config, user: ServiceUser): readonly Finding[] {
  if (audit.length === 0) return [warn('audit', 'requests are not audited', 'configure an audit device')];
  return audit.map((device) => {
    const check = `audit ${device.name}`;
    if (device.type !== 'file') return ok(check, 'writes to standard output');
    return isWritable(device.path, user)
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

/** Checks whether the nodes in `retry_join` are reachable. This node, which may be one of them, need not run yet. */
const joinTargets = ({ api_addr, retry_join }: Config): Promise<readonly Finding[]> =>
  Promise.all(
    retry_join
      .filter((address) => address !== api_addr)
      .map(async (address) => {
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
