// The navigation of the documentation. The site, docs/index.md and the check of the links are made from it.

export interface Section {
  readonly title: string;
  /** Files in docs/, without `.md`, and the question that each answers. */
  readonly pages: Readonly<Record<string, string>>;
}

export const sections: readonly Section[] = [
  {
    title: 'Get started',
    pages: {
      'first-steps': 'one node, a key, its rotation, a token for a program, and the program in four languages',
      install: 'the artifacts of a release: verify, install, upgrade',
      containers: 'the image, a cluster with Docker Compose, and killing its leader',
      moving: 'keys, mounts and policies, the way back, and a comparison',
    },
  },
  {
    title: 'Use the API',
    pages: {
      api: 'paths, tokens, formats, the behavior that operations share, and the rotation of a key',
      'api-reference': 'every operation with its fields and answers',
      jwt: 'exchange a JSON Web Token for a token: set up, rotation, protection',
      policies: 'for common roles, each with requests that it allows and denies',
      'command-line': 'environment, exit codes, completion, and an example of every command',
      'command-reference': 'every command with its arguments and options',
      console: 'sign-in, pages and rights at `/ui/`',
    },
  },
  {
    title: 'Operate',
    pages: {
      production: 'from bare machines to backup and upgrade',
      'node-operations': 'one node: configuration, signals, exit codes, initialization, seal, threads, backup and restore',
      'cluster-operations': 'join, remove and replace nodes, leases and clocks, lost quorum',
      kubernetes: 'the Helm chart and plain manifests',
      seals: 'which seal to choose, an example and the threats of each',
      upgrades: 'and the way back; the feature level',
      replication: 'for the loss of a site: concept, fence, fail-over',
      etcd: 'that you run already (preview)',
      sizing: 'cores, memory, disk, nodes and several clusters, from measurements',
    },
  },
  {
    title: 'Watch and repair',
    pages: {
      monitoring: 'health probes, metrics, traces, and the log of an outage',
      audit: 'devices, entries, what is hidden, verification',
      runbook: 'symptoms, alerts and errors: meaning, impact, action',
    },
  },
  {
    title: 'Look up',
    pages: {
      configuration: 'every key of the configuration: type, default, range, reload or restart',
      limits: 'every limit, its refusal, and the metrics of load',
      metrics: 'every metric: type, labels, meaning',
      glossary: 'the terms of code, logs, metrics and API',
    },
  },
  {
    title: 'Security',
    pages: {
      'threat-model': 'the attackers considered, and what each can and cannot do',
      dependencies: 'the packages that a node runs on, each with its reason',
    },
  },
  {
    title: 'Internals',
    pages: {
      architecture: 'the packages, and one request and one write followed through them',
      consensus: 'how consensus works, and where it differs from the Raft paper',
      testing: 'the simulator of consensus and the chaos runs: commands, faults, checks',
      benchmarks: 'how fast requests are and how costs grow: commands and results',
      'decisions/README': 'the reasons behind the design',
    },
  },
];

/** Pages that git does not have: `npm run site` makes them from the program. */
export const generated: readonly string[] = ['api-reference', 'command-reference'];

/** Returns docs/index.md. @param titleOf - the first heading of a page */
export const indexPage = (titleOf: (page: string) => string): string =>
  [
    '# Documentation',
    'transitd is a clustered transit cryptography service with the HTTP API of the transit engine of Vault and OpenBao. Made by\n' +
      '`npm run build` from the navigation in `site/sections.ts`.',
    ...sections.flatMap(({ title, pages }) => [
      `## ${title}`,
      Object.entries(pages)
        .filter(([page]) => !generated.includes(page))
        .map(([page, about]) => `- [${titleOf(page)}](${page}.md): ${about}`)
        .join('\n'),
    ]),
    [
      'The site has two more pages, made from the program: every operation of the API, and every command with all its options.',
      '`npm run site` builds it, with search, in `site/dist`. A node describes its API at `/v1/sys/internal/specs/openapi`,',
      'and `transitd help` its commands.',
    ].join('\n'),
  ]
    .join('\n\n')
    .concat('\n');
