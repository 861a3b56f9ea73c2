import type { ComponentChildren } from 'preact';
import { Badge } from '../parts/badge.tsx';
import { count, duration, milliseconds } from '../parts/format.ts';
import type { Tone } from '../parts/tone.ts';
import type { ClusterView, Member, Report } from './members.ts';

interface State {
  readonly word: string;
  readonly tone: Tone;
}

const states: Readonly<Record<number, State>> = {
  200: { word: 'active', tone: 'ok' },
  429: { word: 'standby', tone: 'info' },
  472: { word: 'DR secondary', tone: 'info' },
  473: { word: 'performance standby', tone: 'ok' },
  474: { word: 'no contact', tone: 'bad' },
  501: { word: 'not initialized', tone: 'warn' },
  503: { word: 'sealed', tone: 'warn' },
  530: { word: 'removed', tone: 'bad' },
};

export const stateOf = ({ report }: Member): State =>
  report === undefined
    ? { word: 'no answer', tone: 'bad' }
    : (states[report.code] ?? { word: `code ${report.code}`, tone: 'warn' });

interface Column {
  readonly title: string;
  readonly isNumber?: true;
  /** The meaning of the figure, for readers who do not know the term. */
  readonly means?: string;
  readonly of: (report: Report, member: Member) => ComponentChildren;
}

/** Explains the terms of the columns. */
export const Terms = () => (
  <details>
    <summary>Terms of the columns</summary>
    <dl>
      {columns.map(
        ({ title, means }) =>
          means !== undefined && (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{means}</dd>
            </div>
          ),
      )}
    </dl>
  </details>
);

/** A skew of more than this many milliseconds is marked: certificates and expiry depend on the wall clock. */
const skewMsMax = 1000;

const columns: readonly Column[] = [
  { title: 'Code', isNumber: true, of: ({ code }) => code },
  {
    title: 'Reads',
    of: ({ serves, code }) => (serves !== '' ? 'serves' : decidesNothing(code) ? '–' : <Badge tone="quiet">forwards</Badge>),
  },
  { title: 'Vote', of: ({ isOnEtcd }, { voter }) => (voter ? 'voter' : isOnEtcd ? '–' : 'non-voter') },
  {
    title: 'Term',
    isNumber: true,
    means: 'Number of the election. It grows when another node becomes the leader; the same on all nodes.',
    of: ({ term }) => count(term),
  },
  {
    title: 'Commit',
    isNumber: true,
    means: 'Index of the last log entry that a majority has stored, as this node knows it.',
    of: ({ commit }) => count(commit),
  },
  {
    title: 'Applied',
    isNumber: true,
    means: 'Index of the last log entry in the records of this node. It follows the commit.',
    of: ({ applied }) => count(applied),
  },
  {
    title: 'Heartbeat age',
    isNumber: true,
    means: 'Time since the active node last answered a heartbeat of this node.',
    of: ({ heartbeatMs, code }) => (code === 200 || heartbeatMs === undefined ? '–' : milliseconds(heartbeatMs)),
  },
  {
    title: 'Round trip',
    isNumber: true,
    means: 'Time from a heartbeat of this node to the answer of the active node.',
    of: ({ roundTripMs, code }) => (code === 200 ? '–' : milliseconds(roundTripMs)),
  },
  {
    title: 'Clock skew',
    isNumber: true,
    of: ({ skewMs, code }) =>
      code === 200 ? (
        '–'
      ) : Math.abs(skewMs) > skewMsMax ? (
        <Badge tone="warn">{milliseconds(skewMs)}</Badge>
      ) : (
        milliseconds(skewMs)
      ),
  },
  { title: 'Up for', isNumber: true, of: ({ uptimeS }) => duration(uptimeS) },
  { title: 'Version', of: ({ version }) => version },
];

/** Whether a node with this health code is uninitialized, sealed or removed: then it neither serves nor forwards. */
const decidesNothing = (code: number): boolean => code === 501 || code === 503 || code === 530;

/** Returns the address of the console of another node; undefined unless the node has told an address for browsers. */
function consoleOf(apiAddress: string): string | undefined {
  const url = URL.parse(apiAddress);
  return url !== null && /^https?:$/.test(url.protocol) ? new URL('/ui/', url).href : undefined;
}

const Name = ({ member, isAsked }: { readonly member: Member; readonly isAsked: boolean }) => {
  const href = isAsked ? undefined : consoleOf(member.apiAddress);
  return href === undefined ? (
    <span class="name">{member.name}</span>
  ) : (
    <a class="name" href={href} rel="noreferrer" target="_blank" title={`Console of ${member.name}, in a new tab`}>
      {member.name}
    </a>
  );
};

/** One row for each member; on a narrow screen, one card. */
export function NodeTable({ view, styleOf }: { readonly view: ClusterView; readonly styleOf: (name: string) => number }) {
  return (
    <table class="cards">
      <thead>
        <tr>
          <th scope="col">Node</th>
          <th scope="col">State</th>
          {columns.map(({ title, isNumber }) => (
            <th key={title} scope="col" class={isNumber && 'number'}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {view.members.map((member) => (
          <tr key={member.name} class={member.report === undefined ? 'away' : undefined}>
            <th scope="row">
              <i class={`dot tone-${styleOf(member.name) % 6}`} aria-hidden="true" />
              <Name member={member} isAsked={member.name === view.asked} />
              {member.name === view.asked && <span class="muted small"> this node</span>}
            </th>
            <td data-title="State">
              <Badge tone={stateOf(member).tone}>{stateOf(member).word}</Badge>
            </td>
            {member.report === undefined ? (
              <td class="muted" colSpan={columns.length}>
                {member.error}
              </td>
            ) : (
              <Cells report={member.report} member={member} />
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const Cells = ({ report, member }: { readonly report: Report; readonly member: Member }) => (
  <>
    {columns.map(({ title, isNumber, of }) => (
      <td key={title} data-title={title} class={isNumber && 'number'}>
        {of(report, member)}
      </td>
    ))}
  </>
);
