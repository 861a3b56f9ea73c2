import { Badge } from '../parts/badge.tsx';
import { bytes, count, milliseconds } from '../parts/format.ts';
import type { Tone } from '../parts/tone.ts';
import type { ClusterView, Log, Report } from './members.ts';

const digests: Readonly<Record<string, readonly [string, Tone]>> = {
  reference: ['reference', 'quiet'],
  same: ['equal', 'ok'],
  different: ['different', 'bad'],
  unknown: ['not compared', 'quiet'],
  etcd: ['in etcd', 'quiet'],
};

function Digest({ log, isOnEtcd, code }: Report) {
  if (code === 503) return <>–</>; // a sealed node cannot compute a digest
  const [word, tone] = digests[isOnEtcd ? 'etcd' : (log?.digest ?? '')] ?? ['not compared', 'quiet'];
  return <Badge tone={tone}>{word}</Badge>;
}

function Disk({ diskLow, stalledMs, freeBytes }: Report) {
  if (diskLow) return <Badge tone="bad">below the reserve</Badge>;
  if (stalledMs > 1000) return <Badge tone="bad">a write hangs for {milliseconds(stalledMs)}</Badge>;
  return <>{freeBytes === undefined ? '–' : `${bytes(freeBytes)} free`}</>;
}

const indexOf = (index: Log['last'] | undefined): string => (index === undefined || index === 0 ? '–' : count(index));

/** The log, the snapshot and the records of each member. */
export function LogTable({ view }: { readonly view: ClusterView }) {
  const reporting = view.members.flatMap(({ name, report }) => (report === undefined ? [] : [{ name, report }]));
  return (
    <table class="cards">
      <thead>
        <tr>
          <th scope="col">Node</th>
          <th scope="col" class="number">
            Snapshot up to
          </th>
          <th scope="col" class="number">
            Flushed
          </th>
          <th scope="col" class="number">
            Last entry
          </th>
          <th scope="col" class="number">
            Not applied
          </th>
          <th scope="col">Records</th>
          <th scope="col" class="number">
            Log write
          </th>
          <th scope="col">Disk</th>
        </tr>
      </thead>
      <tbody>
        {reporting.map(({ name, report }) => (
          <tr key={name}>
            <th scope="row">
              <span class="name">{name}</span>
            </th>
            <td data-title="Snapshot up to" class="number">
              {indexOf(report.log?.base)}
            </td>
            <td data-title="Flushed" class="number">
              {indexOf(report.log?.flushed)}
            </td>
            <td data-title="Last entry" class="number">
              {indexOf(report.log?.last)}
            </td>
            <td data-title="Not applied" class="number">
              {count(Math.max(0, report.commit - report.applied))}
            </td>
            <td data-title="Records">
              <Digest {...report} />
            </td>
            <td data-title="Log write" class="number">
              {report.writeMs === undefined ? '–' : milliseconds(report.writeMs)}
            </td>
            <td data-title="Disk">
              <Disk {...report} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
