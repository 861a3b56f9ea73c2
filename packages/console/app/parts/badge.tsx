import type { ComponentChildren } from 'preact';
import type { Tone } from './tone.ts';

/** A short state in a color. The words say it too, for readers who do not see colors. */
export const Badge = ({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) => (
  <span class={`badge ${tone}`}>{children}</span>
);

/** A message about the whole page. */
export const Note = ({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) => (
  <div class={`note ${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
    {children}
  </div>
);
