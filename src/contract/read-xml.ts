/**
 * Reads a pain.001 or pain.002 document: well-formed, no DOCTYPE, the right message, its structure, and the rules of payments for
 * its amounts and accounts. The XML parser resolves no external entities.
 */

import { isUtf8 } from 'node:buffer';
import { SaxesParser } from 'saxes';
import { transactionStatuses } from '../pis/transaction-status.ts';
import { collapse, StructureCheck } from './content-model.ts';
import { isXmlDate, isXmlDateAndTime } from './dates.ts';
import type { DeviationList } from './deviation.ts';
import { looksLikeIban } from './iban.ts';
import { decimalPattern, dialectOf, documentModel, messageElement } from './pain001-models.ts';
import { isSepaProduct, type PathOfPayment, TransferRules } from './pain001-rules.ts';
import { checkAmountValue, checkCurrency, checkIban } from './payment-rules.ts';
import { limits } from './read-json.ts';

export interface XmlDocument {
  /** Path of the document in the message. */
  readonly root: string;
  /** Without their zones, and without the one that means "as soon as possible". */
  readonly executionDates: readonly string[];
}

export type MessageName = 'pain.001' | 'pain.002';

const maxDepth = 64;
const maxElements = 100_000;
/** A document has one; a bulk may have one per group. */
const maxDates = 100;

/** In place of a date, in ReqdExctnDt, which pain.001 requires (the German DK and others). */
const asSoonAsPossible = '1999-01-01';

const reportNamespace = /^urn:iso:std:iso:20022:tech:xsd:pain\.002\.\d{3}\.\d{2}$/;
const knownStatuses: ReadonlySet<string> = new Set(transactionStatuses);

/** @returns `undefined` if it cannot be read; the list has the reason */
export function readXml(
  body: Buffer,
  message: MessageName,
  path: PathOfPayment,
  root: string,
  list: DeviationList,
): XmlDocument | undefined {
  if (body.length > limits.bytes) return void list.add('harmful', 'too-large', root, 'not-judged');
  const text = decode(body);
  if (text === undefined) return void list.add('harmful', 'encoding', root, 'refused');
  const reader = createReader(message, path, root, list);
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

/** Ends the parser, which can only be stopped by an error in one of its events. */
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

/** The checks of a document, which depend on its message. */
interface Checks {
  readonly namespace: string;
  /** The name of the message's element: the only child of `Document`. */
  readonly child: string;
  readonly structure: StructureCheck | undefined;
  readonly rules: TransferRules | undefined;
}

function createReader(message: MessageName, path: PathOfPayment, root: string, list: DeviationList) {
  const open: string[] = [];
  const executionDates: string[] = [];
  let checks: Checks | undefined;
  let elements = 0;
  let content = '';
  let currency: string | undefined;
  /** Whether the innermost element has no children so far. */
  let isLeaf = false;

  const checkAccount = (value: string) => {
    const iban = value.trim();
    // In a published example; the type of ISO 20022 collapses white space in some parsers only.
    if (iban !== value) list.add('usual', 'white-space', `${root}/IBAN`, 'may-be-refused');
    if (looksLikeIban(iban)) checkIban(iban, root, 'IBAN', list);
    else list.add('harmful', 'pattern', `${root}/IBAN`, 'refused');
  };
  const checkAmount = (value: string, name: string) => {
    if (currency === undefined) list.add('harmful', 'required', `${root}/${name}/Ccy`, 'refused');
    else if (!/^[A-Z]{3}$/.test(currency)) list.add('harmful', 'pattern', `${root}/${name}/Ccy`, 'refused');
    else checkCurrency(currency, root, `${name}/Ccy`, list);
    if (decimalPattern.test(value)) checkAmountValue(plainDecimal(value), currency, root, name, list);
    else list.add('harmful', 'pattern', `${root}/${name}`, 'refused');
  };
  const checkDay = (day: string, isFine: (text: string) => boolean) => {
    if (!isFine(day)) list.add('harmful', 'format', `${root}/ReqdExctnDt`, 'refused');
    else if (!day.startsWith(asSoonAsPossible) && executionDates.length < maxDates)
      executionDates.push(day.slice(0, 10));
  };

  return {
    executionDates,
    open(local: string, uri: string, ccy: string | undefined): void {
      if (open.length === maxDepth || ++elements > maxElements) stop('too-complex');
      if (elements === 1) checks = local === 'Document' ? checksFor(uri) : wrongMessage();
      if (elements === 2 && checks && local !== checks.child) checks = wrongMessage();
      checks?.structure?.open(uri === checks.namespace ? local : undefined, content);
      open.push(local);
      content = '';
      isLeaf = true;
      if (local === 'InstdAmt' || (local === 'Amt' && open.at(-2) === 'EqvtAmt')) currency = ccy;
    },
    text(part: string): void {
      content += part;
    },
    close(): void {
      const local = open.pop();
      const value = content;
      content = '';
      if (checks?.structure) {
        checks.rules?.close(checks.structure, value, currency);
        checks.structure.close(value);
      }
      if (isLeaf) checkValue(local, value);
      isLeaf = false;
      if (local === 'Document' && elements === 1) wrongMessage();
    },
  };

  function checkValue(local: string | undefined, value: string): void {
    switch (local) {
      case 'IBAN':
        checkAccount(value);
        return;
      case 'InstdAmt':
        checkAmount(collapse(value), 'InstdAmt');
        return;
      case 'Amt':
        if (open.at(-1) === 'EqvtAmt') checkAmount(collapse(value), 'EqvtAmt');
        return;
      case 'ReqdExctnDt':
        checkDay(collapse(value), isXmlDate);
        return;
      case 'Dt': // inside ReqdExctnDt in newer messages
        if (open.at(-1) === 'ReqdExctnDt') checkDay(collapse(value), isXmlDate);
        return;
      case 'DtTm':
        if (open.at(-1) === 'ReqdExctnDt') checkDay(collapse(value), isXmlDateAndTime);
        return;
      case 'GrpSts':
      case 'PmtInfSts':
      case 'TxSts':
        // A published example has ACCT, which is in no list.
        if (!knownStatuses.has(value.trim()))
          list.add('usual', 'enum', `${root}/${local}`, 'client-may-fail');
    }
  }

  function checksFor(namespace: string): Checks | undefined {
    if (message === 'pain.002') {
      if (!reportNamespace.test(namespace)) return wrongMessage();
      return { namespace, child: 'CstmrPmtStsRpt', structure: undefined, rules: undefined };
    }
    const dialect = dialectOf(namespace);
    if (!dialect) return wrongMessage();
    if (!dialect.isKnown) list.add('notable', 'message-version', root, 'may-be-refused');
    const model = documentModel(dialect, isSepaProduct(path.paymentProduct));
    return {
      namespace,
      child: messageElement(dialect),
      structure: new StructureCheck(model, root, dialect.isKnown, list),
      rules: new TransferRules(path, root, list),
    };
  }

  function wrongMessage(): undefined {
    list.add('harmful', 'message-type', root, 'refused');
  }
}

/** xs:decimal allows `+1`, `1.` and `.5`. */
function plainDecimal(value: string): string {
  if (/^-?\d+(?:\.\d+)?$/.test(value)) return value;
  const [whole = '', fraction = ''] = value.replace('+', '').split('.');
  return `${/\d/.test(whole) ? whole : `${whole}0`}${fraction === '' ? '' : `.${fraction}`}`;
}
