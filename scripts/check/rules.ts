// All rules, over all files.
import { decisionFindings } from './decisions.ts';
import { folderArrows } from './folder-arrows.ts';
import { arrowFindings, cycleFindings, fileCycleFindings } from './folders.ts';
import { lineFindings } from './lines.ts';
import type { Finding, SourceFile } from './source-files.ts';

/** Returns the findings of all rules in `files`, sorted by path and line. */
export const findingsIn = (files: readonly SourceFile[]): Finding[] =>
  [
    ...files.flatMap(lineFindings),
    ...decisionFindings(files),
    ...cycleFindings(files),
    ...fileCycleFindings(files),
    ...arrowFindings(files, folderArrows),
  ].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line));

/** Returns a finding as a line that editors can follow. */
export const lineOf = ({ rule, path, line, message }: Finding): string =>
  `${path}${line > 0 ? `:${line}` : ''} ${rule}: ${message}`;
