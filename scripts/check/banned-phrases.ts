// Phrases that a reader of English has to read twice, and their replacements. A pattern must match every text in `bad` and no text in
// `good`, which is correct English that looks similar. A phrase that is sometimes right ("behind", "comes to") has no row.

export interface BannedPhrase {
  readonly pattern: RegExp;
  /** What to write. */
  readonly write: string;
  readonly bad: readonly string[];
  readonly good: readonly string[];
}

/** A place where a phrase is allowed, and why. `path` ends with a slash for a whole folder. */
export interface PhraseException {
  readonly path: string;
  /** The allowed text, exactly as it is in the file; absent if the file may use every phrase. */
  readonly text?: string;
  readonly because: string;
}

const anyOf = (...words: readonly string[]): string => `(?:${words.join(' ').replaceAll(' ', '|')})`;
const concrete = anyOf(
  'files? folders? director(?:y|ies) logs? records? segments? configurations? lists? tables?',
  'traces? tokens? messages? headers? answers? metrics audit',
);
const determiner = '(?:the|a|an|this|that|these|those|its|their|one|each|every)';

export const bannedPhrases: readonly BannedPhrase[] = [
  {
    pattern: /\banew\b/i,
    write: '"again"',
    bad: ['the shares are gathered anew'],
    good: ['a new share', 'the shares are gathered again'],
  },
  {
    pattern: /\bthe own\b(?![- ]goal)/i,
    write: '"its own" or "this node\'s"',
    bad: ['the own records differ', 'The own log has come as far'],
    good: ['its own records', 'the owner of the file', "the node's own log"],
  },
  {
    pattern: new RegExp(
      `(?<!\\bthere )\\b(?:go(?:es)? on|${anyOf(
        'is are was were leads? votes? serves? works? lives? exists? follows?',
        'good known valid stored taken needed used trusted listed followed member',
      )}) no more(?=\\s*(?:[.,;:)!?]|$|\\b(?:and|but)\\b))`,
      'i',
    ),
    write: '"not", "no longer" or "no further"',
    bad: ['this node leads no more, and waits', 'it is good no more', 'a cluster that is no more.', 'when it can go on no more'],
    good: [
      'it is no more than fit',
      'no more is read',
      'it accepts no more.',
      'there is no more.',
      'it knows no more than itself',
    ],
  },
  {
    pattern: /\b(?:that|which|what|who) (?:is|are|was|were) none\b(?! of\b)/i,
    write: '"is not a …" or "is not valid"',
    bad: ['a path that is none', 'names of what is none'],
    good: ['undefined when there is none', 'a claim that is none of these', 'the default is none'],
  },
  {
    pattern: /\b(?:an?|two) (?:(?!there|if|when|where|while|until|that)[\w-]+ ){1,3}(?:is|are) none(?=\s*(?:[.,;:)]|$))/i,
    write: '"is not a …" or "counts as absent"',
    bad: ['an empty query is none', 'a trailing slash is none)', 'two tokens are none'],
    good: ['empty when there are none', 'the default is none', 'a record if there is none', 'no error if there is none'],
  },
  {
    pattern: /\b(?:is|are|was|were) none of (?:this (?:cluster|node)|ours|theirs|mine)\b/i,
    write: '"does not belong to …"',
    bad: ['the index is none of this cluster', 'the public half is none of ours'],
    good: ['it is none of them', "none of this node's peers answers"],
  },
  {
    pattern: /\bthere (?:is|are) none of (?:that|this) name\b/i,
    write: '"there is no … with that name"',
    bad: ['undefined when there is none of that name'],
    good: ['undefined when there is none'],
  },
  {
    pattern: /(?<!\b(?:one|after|with|from|to) )\banother (?:(?!rather|more|less|other|sooner|later)[\w’'-]+ )?than\b/i,
    write: '"a different … from", "not the same … as" or "other than"',
    bad: ['the interval is another than on the leader', 'by another clock than this one', 'is another one than before'],
    good: [
      'closer to one another than to us',
      'another node, rather than this one',
      'another rather than none',
      'other than that',
    ],
  },
  {
    pattern: /\btells (?:that|so|of)\b|\b(?:log|list|lock file|record|mark) tells(?: it)?(?=\s*(?:[.,;)]|$))/i,
    write: '"says", "reports" or "records"',
    bad: ['the record tells of its removal', 'it tells that the log is damaged', 'until the log tells'],
    good: ['it tells the peer to campaign', '`--names` tells them apart', 'nobody can tell that apart'],
  },
  {
    pattern: new RegExp(`\\b(?:stands?|stood) in (?:clear\\b|${determiner} (?:[\\w-]+ )?${concrete}\\b)`, 'i'),
    write: '"is in" or "is stored in"',
    bad: ['the times stand in the configuration', 'the root token stands in the log', 'their PIN stands in clear nowhere'],
    good: ['a stub stands in for the token', 'it stands in the way of the log', 'the standing in the list'],
  },
  {
    pattern: new RegExp(
      `(?<!\\b(?:problem|fault|danger|difference|reason|cause|error|risk|bug|trouble|strength|weakness|cost|mistake|answer|it|that) )` +
        `\\b(?:lies?|lay) in (?:(?:clear|memory)\\b|${determiner} (?:[\\w-]+ )?${concrete}\\b)`,
      'i',
    ),
    write: '"is in" or "is stored in"',
    bad: ['entries lie in a segment', 'an acknowledged write may still lie in its log', 'so its hash may lie in clear'],
    good: ['the danger lies in the log', 'the work lies in between', 'that lies in store'],
  },
  {
    pattern: /\bsummed up its own\b|\brecords (?:[\w-]+ ){0,3}summed up\b/i,
    write: '"state digest", "compute the digest"',
    bad: ['this one has summed up its own', 'the records could not be summed up'],
    good: ['the counters are summed up', 'the records of a table'],
  },
  {
    pattern: /\b(?:goes|went|leads?|led|reads?) on(?=\s*(?:[.,;:)]|$|\b(?:with|without|for|while|until|behind)\b))/i,
    write: '"continues", "keeps leading" or "keeps running"',
    bad: ['this node goes on without a list', 'it leads on for a while', 'while the clock went on.'],
    good: ['the work that goes on here', 'it depends on it', 'the node that is going on'],
  },
  {
    pattern:
      /\b(?:takes?|taken|took) (?:(?:input|messages|it|them|something|an? [\w-]+) )?in(?=\s*(?:[.,;:)]|$|\b(?:an|only|at)\b))/i,
    write: '"processes", "receives" or "accepts"',
    bad: [
      'a driver takes input in only at its next turn',
      'a message that the node has taken in, and its status',
      'it took something in.',
    ],
    good: ['taken in one turn', 'takes part in an election', 'it takes seconds in all'],
  },
  {
    pattern: /\blogin methods?\b/i,
    write: '"auth method"',
    bad: ['a login method at a path'],
    good: ['an auth method', 'the method of a login'],
  },
  {
    pattern: /\b(?:disks?|data director(?:y|ies)) (?:(?:that|which) )?(?:(?:is|are|was|were|has been|have been) )?set back\b/i,
    write: '"rolled back"',
    bad: ['a disk that was set back', 'its data directory was set back'],
    good: ['the clock is set back', 'a disk that was rolled back'],
  },
  {
    pattern: /\blead (?:(?:is|was|has been) )?handed over\b|\bhand(?:s|ed|ing)? over the lead\b|\brather leaves the lead\b/i,
    write: '"leadership transfer"',
    bad: ['the lead was handed over', 'hands over the lead', 'rather leaves the lead to others'],
    good: ['the key is handed over', 'leadership was transferred', 'the lead engineer handed over'],
  },
  {
    pattern: /\bhand(?:ed|ing) on\b|\bhands on (?:requests|what|the signed)\b/i,
    write: '"forwarded", "forwarding"',
    bad: ['a request handed on', 'the handing on of requests'],
    good: ['hands-on', 'the request is handed to the one that forwards', 'get their hands on keys'],
  },
  {
    pattern: /\b(?:self|autopilot)-care\b|\bupkeep\b/i,
    write: '"maintenance"',
    bad: ['the self-care of a node', 'periodic upkeep'],
    good: ['take care', 'health care'],
  },
  {
    pattern: /\brosters?\b/i,
    write: '"membership list" or "known members"',
    bad: ['the roster of a node'],
    good: ['the membership list', 'roasters'],
  },
  { pattern: /\bacquaintances?\b/i, write: '"known nodes"', bad: ['a node and its acquaintances'], good: ['acquainted with it'] },
  {
    pattern: /\bsuch a one\b(?!-)/i,
    write: 'the noun',
    bad: ['no node is such a one'],
    good: ['such a one-time key', 'such an entry'],
  },
  { pattern: /\blaid away\b/i, write: '"stored"', bad: ['the shares are laid away'], good: ['it was laid out'] },
  {
    pattern: /\bwhom that (?:names|knows|lists)\b/i,
    write: 'the noun: "members that … lists"',
    bad: ['whom that knows'],
    good: ['the nodes whom it knows'],
  },
  {
    pattern: /\b(?:behaviou|colou|favou|honou|neighbou|rumou|labou)r(?:s|ed|ing|al|ally|hood|able|ite)?\b/i,
    write: 'the American spelling: "-or"',
    bad: ['its behaviour', 'coloured'],
    good: ['its behavior', 'four', 'an hour', 'troubadour'],
  },
  {
    pattern: new RegExp(
      `\\b(?:un|re|de|dis)?${anyOf(
        'initial author final real organ recogn serial normal optim summar minim maxim synchron linear categor general priorit',
        'util custom random memor anonym sanit canonical material token penal capital emphas apolog critic stabil local formal',
        'neutral visual parallel modern standard equal central privat',
      )}is(?:e|es|ed|ing|er|ers|able|ation|ations)\\b`,
      'i',
    ),
    write: 'the American spelling: "-ize"',
    bad: ['not initialised', 'an unauthorised caller', 'linearisable', 'serialises'],
    good: ['advise', 'promise', 'exercise', 'initialize', 'precise', 'otherwise', 'minimum', 'a realist'],
  },
  {
    pattern: /\b(?:analys|paralys|catalys)(?:e|ed|ing|er|ers)\b/i,
    write: 'the American spelling: "-yze"',
    bad: ['to analyse a trace'],
    good: ['an analysis', 'the analyses', 'to analyze'],
  },
  {
    pattern:
      /\b(?:(?:de|of)fence|licence|centre|fibre|grey|artefact|whilst|amongst|fulfil|skilful|programme|cheque|sceptic(?:al)?|ageing)s?\b/i,
    write: 'the American spelling',
    bad: ['the licence', 'in the centre', 'artefacts', 'to fulfil it'],
    good: ['a license', 'fulfill', 'program', 'programmed', 'programmer', 'centered', 'fulfilled', 'an acknowledgement'],
  },
  {
    pattern:
      /\b(?:cancel|label|travel|model|signal|channel|tunnel|level|total|fuel|marshal|initial|equal|dial)l(?:ed|ing|er|ers)\b/i,
    write: 'the American spelling: one "l"',
    bad: ['a cancelled request', 'labelled', 'unmarshalled and modelling'],
    good: ['canceled', 'labeled', 'controlled', 'compelling', 'a canceling caller', 'cancellation', 'installed'],
  },
];

/**
 * Sentences that begin with a paraphrase of their subject. Only questions and headings may begin like this. `pattern` is tried at the
 * start of each sentence.
 */
export const bannedStarts: readonly BannedPhrase[] = [
  {
    pattern: /^(?:what(?:ever)?|who(?:m|ever|mever)?|that which)\b(?![’'])/i,
    write: 'the subject: name the thing, or "Returns …"',
    bad: [
      'What a member keeps of its log.',
      'Whoever holds the key reads it.',
      'whom a certificate names',
      'That which is stored counts.',
    ],
    good: ['What does it cost?', 'Why it is slow.', 'That node leads.', "What's more, it is fast.", 'Whole entries only.'],
  },
  {
    pattern: /^since when\b/i,
    write: '"the time since which" or "how long"',
    bad: ['Since when the node waits.'],
    good: ['Since then it waits.', 'The time since which the node waits.'],
  },
];

export const phraseExceptions: readonly PhraseException[] = [
  { path: 'scripts/check/banned-phrases.ts', because: 'it quotes the phrases' },
  { path: 'test/scripts/check/', because: 'its fixtures break the rules' },
];
