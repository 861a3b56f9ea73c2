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
    title: 'Operation',
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
      'upgrades',
    ],
  },
  {
    title: 'How-to',
    pages: ['seals', 'replication', 'etcd', 'scale', 'kubernetes', 'moving', 'console', 'key-rotation', 'policies'],
  },
  {
    title: 'Reference',
    pages: ['api', 'api-reference', 'clients', 'command-line', 'command-reference', 'configuration', 'metrics'],
  },
  { title: 'Runbooks', pages: ['runbook', 'troubleshooting', 'sizing'] },
  { title: 'Security', pages: ['threat-model', 'dependencies'] },
  {
    title: 'Internals',
    pages: ['decisions/README', 'consensus-rules', 'simulator', 'chaos', 'benchmarks', 'growth', 'releasing'],
  },
];
