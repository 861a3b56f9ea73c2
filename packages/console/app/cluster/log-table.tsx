import { Badge } from '../parts/badge.tsx';
import { bytes, count, milliseconds } from '../parts/format.ts';
import type { Tone } from '../parts/tone.ts';
import type { ClusterView, Report } from './members.ts';

const digests: Readonly<Record<string, readonly [string, Tone]>> = {
  reference: ['reference', 'quiet'],
  same: ['equal', 'ok'],
  different: ['different', 'bad'],
  unknown: ['not compared', 'quiet'],
};

function Digest({ digest }: Pick<Report, 'digest'>) {
  const [word, tone] = digests[digest] ?? ['not compared', 'quiet'];
  return <Badge tone={tone}>{word}</Badge>;
}

function Disk({ diskLow, stalledMs, freeBytes }: Report) {
  if (diskLow) return <Badge tone="bad">below the reserve</Badge>;
  if (stalledMs > 1000) return <Badge tone="bad">a write hangs for {milliseconds(stalledMs)}</Badge>;
  return <>{freeBytes === undefined ? '–' : `${bytes(freeBytes)} free`}</>;
}

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
              {report.base === 0 ? '–' : count(report.base)}
            </td>
            <td data-title="Flushed" class="number">
              {count(report.flushed)}
            </td>
            <td data-title="Last entry" class="number">
              {count(report.last)}
            </td>
            <td data-title="Not applied" class="number">
              {count(Math.max(0, report.commit - report.applied))}
            </td>
            <td data-title="Records">
              <Digest digest={report.digest} />
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
