import { useState } from 'preact/hooks';

/** Copies a text. Over plain HTTP browsers have no clipboard, so the text is selected instead: then one key copies it. */
export function CopyButton({ text, from }: { readonly text: string; readonly from: string }) {
  const [word, setWord] = useState('Copy');
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setWord('Copied');
    } catch {
      const place = document.getElementById(from);
      if (place !== null) getSelection()?.selectAllChildren(place);
      setWord('Selected');
    }
  };
  return (
    <button type="button" class="plain" onClick={() => void copy()} onBlur={() => setWord('Copy')}>
      {word}
    </button>
  );
}
