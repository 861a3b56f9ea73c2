// Which folder of a package may import which. `npm run check:rules -- --arrows PACKAGE` prints the rows that the imports make.
import type { FolderArrows } from './folders.ts';

export const folderArrows: FolderArrows = {
  api: {
    operation: [],
    auth: ['operation'],
    openapi: ['operation'],
    pipeline: ['operation'],
    transit: ['operation'],
    sys: ['openapi', 'operation', 'transit'],
    '.': ['auth', 'operation', 'sys', 'transit'],
  },
  audit: {
    '.': [],
  },
  cli: {
    doctor: [],
    terminal: [],
    session: ['terminal'],
    runner: ['session'],
    work: [],
    commands: ['doctor', 'runner', 'session', 'terminal', 'work'],
    '.': ['commands', 'runner', 'terminal'],
  },
  client: {
    '.': [],
  },
  cluster: {
    ports: [],
    membership: ['ports'],
    refusals: [],
    transport: ['membership', 'refusals'],
    standbys: ['membership', 'transport'],
    maintenance: ['membership', 'ports', 'standbys', 'transport'],
    join: ['maintenance', 'membership', 'refusals'],
    '.': ['join', 'maintenance', 'membership', 'ports', 'standbys', 'transport'],
  },
  configuration: {
    '.': [],
  },
  health: {
    '.': [],
  },
  http: {
    reply: [],
    '.': ['reply'],
    body: ['reply'],
    connection: ['.', 'reply'],
    fields: ['.', 'reply'],
  },
  node: {
    clock: [],
    mounts: [],
    snapshots: [],
    storage: ['clock'],
    bootstrap: ['storage'],
    '.': ['bootstrap', 'clock', 'mounts', 'snapshots', 'storage'],
  },
  pkcs11: {
    '.': [],
  },
  process: {
    '.': [],
  },
  'raft-core': {
    '.': [],
    confchange: ['.'],
    log: ['.'],
    quorum: ['.'],
    'sim/history': [],
    wire: ['.', 'confchange'],
    core: ['.', 'confchange', 'log', 'quorum', 'wire'],
    driver: ['.', 'confchange', 'core', 'wire'],
    sim: ['.', 'confchange', 'driver', 'log'],
    'sim/cluster': ['.', 'confchange', 'core', 'driver', 'log', 'sim', 'sim/history', 'wire'],
    'sim/exhaustive': ['.', 'confchange', 'core', 'sim/cluster', 'wire'],
  },
  server: {
    '.': [],
  },
  'snapshot-archive': {
    '.': [],
  },
  'storage-fsm': {
    '.': [],
    directory: ['.'],
    log: ['.', 'directory'],
    'state/leveldb': ['.'],
    store: [],
    state: ['.', 'state/leveldb', 'store'],
    snapshot: ['.', 'directory', 'log', 'state', 'store'],
  },
};
