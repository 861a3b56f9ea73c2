/** How good a state is; each has a color. */
export type Tone = 'ok' | 'info' | 'warn' | 'bad' | 'quiet';
