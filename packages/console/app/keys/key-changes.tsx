import { useState } from 'preact/hooks';
import { textsIn } from '../api/json.ts';
import { ApiError } from '../api/request.ts';
import { call } from '../api/session.ts';
import { Note } from '../parts/badge.tsx';
import { moment } from '../parts/format.ts';
import { type Key, keyIn } from './key.ts';
import { agingPreview, minimumsPreview, type Preview, rotationPreview, trimPreview } from './previews.ts';

type Change = 'rotate' | 'minimums' | 'trim' | 'aging';

const titles: Readonly<Record<Change, string>> = {
  rotate: 'Rotate',
  minimums: 'Minimum versions',
  trim: 'Delete old versions',
  aging: 'Let versions age',
};

interface KeyChangesProps {
  readonly value: Key;
  /** Path of the key below `/v1/`. */
  readonly path: string;
  readonly onChanged: (key: Key) => void;
}

/** Changes of a key, each with a preview of its effect. Nothing is sent before it is confirmed. */
export function KeyChanges({ value: key, path, onChanged }: KeyChangesProps) {
  const [change, setChange] = useState<Change>();
  const [message, setMessage] = useState<{ readonly tone: 'ok' | 'bad'; readonly text: string }>();
  const [isBusy, setBusy] = useState(false);

  const send = async (suffix: string, body: object): Promise<void> => {
    setBusy(true);
    try {
      const { data, warnings } = await call('POST', `${path}/${suffix}`, { body });
      onChanged(keyIn(data));
      setMessage({ tone: 'ok', text: ['Done.', ...textsIn(warnings)].join(' ') });
      setChange(undefined);
    } catch (error) {
      setMessage({ tone: 'bad', text: error instanceof ApiError ? wordsFor(error) : String(error) });
    }
    setBusy(false);
  };
  const close = (): void => setChange(undefined);
  return (
    <div class="changes">
      <div class="buttons">
        {(Object.keys(titles) as Change[]).map((name) => (
          <button
            key={name}
            type="button"
            aria-expanded={change === name}
            onClick={() => {
              setMessage(undefined);
              setChange(change === name ? undefined : name);
            }}
          >
            {titles[name]} …
          </button>
        ))}
      </div>
      {key.isSoftDeleted && (
        <>
          <Note tone="warn">
            This key is soft-deleted: every use is refused until it is restored.
            {key.deletionDueMs !== undefined && ` It is deleted permanently on ${moment(key.deletionDueMs)}.`}
          </Note>
          <button type="button" class="main" disabled={isBusy} onClick={() => void send('soft-delete-restore', {})}>
            Restore
          </button>
        </>
      )}
      {message !== undefined && <Note tone={message.tone}>{message.text}</Note>}
      {change === 'rotate' && (
        <Confirmation
          preview={rotationPreview(key)}
          action="Rotate"
          isBusy={isBusy}
          onConfirm={() => void send('rotate', {})}
          onCancel={close}
        />
      )}
      {change === 'minimums' && (
        <Minimums value={key} isBusy={isBusy} onConfirm={(body) => void send('config', body)} onCancel={close} />
      )}
      {change === 'trim' && <Trim value={key} isBusy={isBusy} onConfirm={(body) => void send('trim', body)} onCancel={close} />}
      {change === 'aging' && (
        <Aging value={key} isBusy={isBusy} onConfirm={(body) => void send('config', body)} onCancel={close} />
      )}
    </div>
  );
}

const wordsFor = ({ status, message }: ApiError): string => {
  if (status === 403) return 'Your token may not do this.';
  if (status === 0 || status === 504) return 'No answer: the change may have been made. Read the key again before you repeat it.';
  return `Refused: ${message}.`;
};

interface FormProps {
  readonly value: Key;
  readonly isBusy: boolean;
  readonly onConfirm: (body: object) => void;
  readonly onCancel: () => void;
}

/** Asks the server to refuse if a version that goes was used within so many days. */
const unlessUsed = (days: number): object => (days === 0 ? {} : { unless_used_within: `${days}d` });
const usedWithinDays = 30;

function Minimums({ value: key, isBusy, onConfirm, onCancel }: FormProps) {
  const [decryption, setDecryption] = useState(key.minDecryption);
  const [encryption, setEncryption] = useState(key.minEncryption);
  const [days, setDays] = useState(usedWithinDays);
  const minimums = { min_decryption_version: decryption, min_encryption_version: encryption };
  return (
    <>
      <div class="row">
        <VersionField label="Oldest version that decrypts and verifies" value={decryption} least={1} onChange={setDecryption} />
        <VersionField
          label="Oldest version that encrypts and signs (0: latest only)"
          value={encryption}
          least={0}
          onChange={setEncryption}
        />
        <DaysField value={days} onChange={setDays} />
      </div>
      <Confirmation
        preview={minimumsPreview(key, decryption, encryption)}
        action="Set the minimums"
        isBusy={isBusy}
        onConfirm={() => onConfirm(decryption > key.minDecryption ? { ...minimums, ...unlessUsed(days) } : minimums)}
        onCancel={onCancel}
      />
    </>
  );
}

function Trim({ value: key, isBusy, onConfirm, onCancel }: FormProps) {
  const [oldest, setOldest] = useState(Math.max(1, key.minDecryption));
  const [days, setDays] = useState(usedWithinDays);
  return (
    <>
      <div class="row">
        <VersionField label="Oldest version to keep" value={oldest} least={1} onChange={setOldest} />
        <DaysField value={days} onChange={setDays} />
      </div>
      <Confirmation
        preview={trimPreview(key, oldest)}
        action="Delete permanently"
        isBusy={isBusy}
        onConfirm={() => onConfirm({ min_available_version: oldest, ...unlessUsed(days) })}
        onCancel={onCancel}
      />
    </>
  );
}

const DaysField = (field: Pick<VersionFieldProps, 'value' | 'onChange'>) => (
  <VersionField label="Refuse if one that goes was used within days (0: do not ask)" least={0} {...field} />
);

const hourS = 3600;

function Aging({ value: key, isBusy, onConfirm, onCancel }: FormProps) {
  const [keepEncryption, setKeepEncryption] = useState(key.keepEncryption);
  const [keepDecryption, setKeepDecryption] = useState(key.keepDecryption);
  const [trimAfterS, setTrimAfterS] = useState(key.trimAfterS);
  const [days, setDays] = useState(usedWithinDays);
  const body = {
    keep_encryption_versions: keepEncryption,
    keep_decryption_versions: keepDecryption,
    ...(trimAfterS !== key.trimAfterS && { trim_after: `${trimAfterS}s` }), // needs a right of its own
    ...unlessUsed(days),
  };
  return (
    <>
      <div class="row">
        <VersionField
          label="Versions that encrypt and sign (0: no limit)"
          value={keepEncryption}
          least={0}
          onChange={setKeepEncryption}
        />
        <VersionField
          label="Versions that decrypt and verify (0: no limit)"
          value={keepDecryption}
          least={0}
          onChange={setKeepDecryption}
        />
        <VersionField
          label="Hours until the others are deleted (0: never)"
          value={Math.round(trimAfterS / hourS)}
          least={0}
          onChange={(hours) => setTrimAfterS(hours * hourS)}
        />
        <DaysField value={days} onChange={setDays} />
      </div>
      <Confirmation
        preview={agingPreview(key, { keepEncryption, keepDecryption, trimAfterS })}
        action="Set the limits"
        isBusy={isBusy}
        onConfirm={() => onConfirm(body)}
        onCancel={onCancel}
      />
    </>
  );
}

interface VersionFieldProps {
  readonly label: string;
  readonly value: number;
  readonly least: number;
  readonly onChange: (value: number) => void;
}

const VersionField = ({ label, value, least, onChange }: VersionFieldProps) => (
  <label class="field">
    {label}
    <input
      type="number"
      min={least}
      step={1}
      value={value}
      onInput={(event) => {
        const given = event.currentTarget.valueAsNumber;
        if (Number.isSafeInteger(given) && given >= least) onChange(given);
      }}
    />
  </label>
);

interface ConfirmationProps {
  readonly preview: Preview;
  readonly action: string;
  readonly isBusy: boolean;
  readonly onConfirm: () => void;
  readonly onCancel: () => void;
}

function Confirmation({ preview, action, isBusy, onConfirm, onCancel }: ConfirmationProps) {
  const { works, stops, refused, isFinal, deletes } = preview;
  return (
    <div class="preview">
      <div aria-live="polite">
        {refused.map((text) => (
          <Note key={text} tone="warn">
            {text}
          </Note>
        ))}
        {stops.map((text) => (
          <Note key={text} tone="bad">
            {text}
          </Note>
        ))}
        {works.map((text) => (
          <Note key={text} tone="ok">
            {text}
          </Note>
        ))}
        {stops.length === 0 && refused.length === 0 && <p>Nothing stops working.</p>}
        {isFinal && refused.length === 0 && <p class="muted">This cannot be undone.</p>}
      </div>
      <div class="buttons">
        <button type="button" class={deletes ? 'danger' : 'main'} disabled={isBusy || refused.length > 0} onClick={onConfirm}>
          {action}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </div>
  );
}
