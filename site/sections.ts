// The navigation of the documentation site. A test checks that it names every page of docs/ once.

export interface Section {
  readonly title: string;
  /** Files in docs/, without `.md`. */
  readonly pages: readonly string[];
}

export const sections: readonly Section[] = [
  { title: 'First steps', pages: ['index', 'first-steps', 'install', 'containers'] },
  { title: 'Concepts', pages: ['architecture', 'consensus', 'comparison', 'glossary'] },
  {
    title: 'How-to',
    pages: [
      'production',
      'node-operations',
      'cluster-operations',
      'timing',
      'health',
      'monitoring',
      'audit',
      'backup',
      'limits',
      'gateway-threads',
      'replication',
      'etcd',
      'scale',
      'seals',
      'kubernetes',
      'upgrades',
      'moving',
      'console',
      'key-rotation',
      'policies',
    ],
  },
  {
    title: 'Reference',
    pages: ['api', 'api-reference', 'clients', 'command-line', 'command-reference', 'configuration', 'metrics'],
  },
  { title: 'Runbooks', pages: ['runbook', 'troubleshooting', 'sizing'] },
  { title: 'Security', pages: ['threat-model', 'dependencies'] },
  { title: 'Internals', pages: ['decisions/README', 'consensus-faults', 'chaos', 'benchmarks', 'releasing'] },
];
