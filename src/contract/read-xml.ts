/**
 * Reads a pain.001 or pain.002 document: well-formed, no DOCTYPE, the right message, and the rules of payments for its amounts
 * and accounts. The only file that knows the XML parser. It resolves no entity and reads no other file.
 */

import { isUtf8 } from 'node:buffer';
import { SaxesParser } from 'saxes';
import { transactionStatuses } from '../pis/transaction-status.ts';
import { isDate } from './dates.ts';
import type { DeviationList } from './deviation.ts';
import { looksLikeIban } from './iban.ts';
import { checkAmountValue, checkCurrency, checkIban } from './payment-rules.ts';
import { limits } from './read-json.ts';

export interface XmlDocument {
  /** Path of the document in the message. */
  readonly root: string;
  /** Without a zone, if they had one. */
  readonly executionDates: readonly string[];
}

const maxDepth = 64;
const maxElements = 100_000;
/** A document has one; a bulk may have one per group. */
const maxDates = 100;

/** ISO 20022 messages, by the root element's namespace and its only child. */
const messages = {
  'pain.001': {
    namespace: /^urn:iso:std:iso:20022:tech:xsd:pain\.001\.\d{3}\.\d{2}$/,
    child: 'CstmrCdtTrfInitn',
  },
  'pain.002': {
    namespace: /^urn:iso:std:iso:20022:tech:xsd:pain\.002\.\d{3}\.\d{2}$/,
    child: 'CstmrPmtStsRpt',
  },
} as const;

const knownStatuses: ReadonlySet<string> = new Set(transactionStatuses);

/** @returns `undefined` if it cannot be read; the list has the reason */
export function readXml(
  body: Buffer,
  message: keyof typeof messages,
  root: string,
  list: DeviationList,
): XmlDocument | undefined {
  if (body.length > limits.bytes) return void list.add('harmful', 'too-large', root, 'not-judged');
  const text = decode(body);
  if (text === undefined) return void list.add('harmful', 'encoding', root, 'refused');
  const reader = createReader(message, root, list);
  const parser = new SaxesParser({ xmlns: true, position: false });
  parser.on('error', () => stop('xml'));
  parser.on('doctype', () => stop('doctype'));
  parser.on('opentag', ({ local, uri, attributes }) => {
    reader.open(local, uri, attributes.Ccy?.value);
  });
  parser.on('text', reader.text);
  parser.on('cdata', reader.text);
  parser.on('closetag', reader.close);
  try {
    parser.write(text).close();
  } catch (thrown) {
    if (!(thrown instanceof Stop)) throw thrown;
    return void list.add(
      'harmful',
      thrown.rule,
      root,
      thrown.rule === 'too-complex' ? 'not-judged' : 'refused',
    );
  }
  return { root, executionDates: reader.executionDates };
}

/** Ends the parser inside one of its events: it has no other way. */
class Stop extends Error {
  readonly rule: 'xml' | 'doctype' | 'too-complex';
  constructor(rule: Stop['rule']) {
    super(rule);
    this.rule = rule;
  }
}

function stop(rule: Stop['rule']): never {
  throw new Stop(rule);
}

/** UTF-8, or the single-byte encoding that the document declares. */
function decode(body: Buffer): string | undefined {
  const declared = /^<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']/.exec(
    body.toString('latin1', 0, 300),
  )?.[1];
  if (declared !== undefined && /^(?:iso-8859-1|windows-1252|us-ascii)$/i.test(declared)) {
    return body.toString('latin1');
  }
  if (declared !== undefined && !/^utf-8$/i.test(declared)) return undefined;
  return isUtf8(body) ? body.toString('utf8') : undefined;
}

function createReader(message: keyof typeof messages, root: string, list: DeviationList) {
  const { namespace, child } = messages[message];
  const open: string[] = [];
  const executionDates: string[] = [];
  let elements = 0;
  let content = '';
  let currency: string | undefined;

  const checkAccount = (value: string) => {
    const iban = value.trim();
    // In a published example; the type of ISO 20022 collapses white space in some parsers only.
    if (iban !== value) list.add('usual', 'white-space', `${root}/IBAN`, 'may-be-refused');
    if (looksLikeIban(iban)) checkIban(iban, root, 'IBAN', list);
    else list.add('harmful', 'pattern', `${root}/IBAN`, 'refused');
  };
  const checkAmount = (value: string) => {
    if (currency === undefined) list.add('harmful', 'required', `${root}/InstdAmt/Ccy`, 'refused');
    else if (!/^[A-Z]{3}$/.test(currency)) list.add('harmful', 'pattern', `${root}/InstdAmt/Ccy`, 'refused');
    else checkCurrency(currency, `${root}/InstdAmt/Ccy`, list);
    if (/^-?\d{1,18}(?:\.\d{1,17})?$/.test(value))
      checkAmountValue(value, currency, `${root}/InstdAmt`, list);
    else list.add('harmful', 'pattern', `${root}/InstdAmt`, 'refused');
  };

  const checkDay = (day: string) => {
    if (day === '') return; // of an element that contains others
    if (!/^\d{4}-\d{2}-\d{2}(?:Z|[+-]\d{2}:\d{2})?$/.test(day) || !isDate(day.slice(0, 10))) {
      list.add('harmful', 'format', `${root}/ReqdExctnDt`, 'refused');
    }
    if (executionDates.length < maxDates) executionDates.push(day.slice(0, 10));
  };

  return {
    executionDates,
    open(local: string, uri: string, ccy: string | undefined): void {
      if (open.length === maxDepth || ++elements > maxElements) stop('too-complex');
      if (open.length === 0 && (local !== 'Document' || !namespace.test(uri))) wrongMessage();
      if (open.length === 1 && elements === 2 && local !== child) wrongMessage();
      open.push(local);
      content = '';
      if (local === 'InstdAmt') currency = ccy;
    },
    text(part: string): void {
      content += part;
    },
    close(): void {
      const local = open.pop();
      const value = content;
      content = '';
      switch (local) {
        case 'IBAN':
          checkAccount(value);
          return;
        case 'InstdAmt':
          checkAmount(value.trim());
          return;
        case 'ReqdExctnDt':
        case 'Dt': // inside ReqdExctnDt in newer messages
          if (local === 'Dt' && open.at(-1) !== 'ReqdExctnDt') return;
          checkDay(value.trim());
          return;
        case 'GrpSts':
        case 'PmtInfSts':
        case 'TxSts':
          // A published example has ACCT, which is in no list.
          if (!knownStatuses.has(value.trim()))
            list.add('usual', 'enum', `${root}/${local}`, 'client-may-fail');
          return;
        case 'Document':
          if (elements === 1) wrongMessage();
      }
    },
  };

  function wrongMessage(): void {
    list.add('harmful', 'message-type', root, 'refused');
  }
}
